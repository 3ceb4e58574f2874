"""Measure differentially private records of the UCI Adult table: fidelity, use, time and memory.

    python benchmarks/private.py --data ../shared/data [--fits N] [--peers DIRECTORY [--only-peers]] [--json [FILE]]

For epsilon 1 and 3 at delta 1e-6, with and without ``given: income``, the records are compared with people whom the
synthesizer never saw, on the codes of the public domain: total variation distance of single columns and of pairs (means
over all columns and pairs), and the area under the curve of predicting income for them. The same figures of the binned
originals are the best that noise can reach. Each figure is the mean of the fits; time and memory are the worst. The
exit code is 1 if a bar is missed. The domain is written down below, from the codebook of the table, not from its
records.

With ``--peers``, MST of dpmm, and MST and AIM of smartnoise-synth, are fitted once to the same codes, each in a
separate environment in the directory, which is made if it is missing. A tool that cannot be installed, fails, or takes
longer than ``--peer-seconds`` is listed as not run, with the reason.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
from measurements import Measurements, add_json_option

from privacy_assets.contract.contract import TableContract
from privacy_assets.synthesis.private.domain import PublicDomain
from privacy_assets.synthesis.private.mst import Mst

DELTA = 1e-6
BARS = {
    (1.0, None): {"pairs": 0.060},
    (3.0, None): {"pairs": 0.055},
    (1.0, "income"): {"pairs": 0.053, "auc": 0.87},
    (3.0, "income"): {"pairs": 0.048, "auc": 0.88},
}
MOST_SECONDS, MOST_MEGABYTES = 8.0, 400.0
CATEGORIES = {
    "workclass": "Private,Self-emp-not-inc,Self-emp-inc,Federal-gov,Local-gov,State-gov,Without-pay,Never-worked,?",
    "education": "Bachelors,Some-college,11th,HS-grad,Prof-school,Assoc-acdm,Assoc-voc,9th,7th-8th,12th,Masters,"
    "1st-4th,10th,Doctorate,5th-6th,Preschool",
    "marital_status": "Married-civ-spouse,Divorced,Never-married,Separated,Widowed,Married-spouse-absent,"
    "Married-AF-spouse",
    "occupation": "Tech-support,Craft-repair,Other-service,Sales,Exec-managerial,Prof-specialty,Handlers-cleaners,"
    "Machine-op-inspct,Adm-clerical,Farming-fishing,Transport-moving,Priv-house-serv,Protective-serv,Armed-Forces,?",
    "relationship": "Wife,Own-child,Husband,Not-in-family,Other-relative,Unmarried",
    "race": "White,Asian-Pac-Islander,Amer-Indian-Eskimo,Other,Black",
    "sex": "Female,Male",
    "native_country": "United-States,Cambodia,England,Puerto-Rico,Canada,Germany,Outlying-US(Guam-USVI-etc),India,"
    "Japan,Greece,South,China,Cuba,Iran,Honduras,Philippines,Italy,Poland,Jamaica,Vietnam,Mexico,Portugal,Ireland,France,"
    "Dominican-Republic,Laos,Ecuador,Taiwan,Haiti,Columbia,Hungary,Guatemala,Nicaragua,Scotland,Thailand,Yugoslavia,"
    "El-Salvador,Trinadad&Tobago,Peru,Hong,Holand-Netherlands,?",
    "income": "<=50K,>50K",
}
RANGES = {
    "age": (17, 90),
    "fnlwgt": (0, 1_500_000),
    "education_num": (1, 16),
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 5_000),
    "hours_per_week": (1, 99),
}
BIN_STARTS = {
    "capital_gain": [0, 1, 1000, 2000, 3000, 4000, 5000, 7000, 10_000, 15_000, 20_000, 50_000, 99_999],
    "capital_loss": [0, 1, 500, 1000, 1500, 1750, 2000, 2250, 2500, 3000],
    "hours_per_week": [1, 10, 15, 20, 21, 25, 30, 31, 35, 36, 40, 41, 45, 46, 50, 51, 55, 56, 60, 61, 70, 80],
}
ORDER = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship", "race",
    "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
)  # fmt: skip

PEERS = {"dpmm": "dpmm", "smartnoise-mst": "smartnoise-synth", "smartnoise-aim": "smartnoise-synth"}
"""The package of each peer."""
LONGEST_INSTALLATION = 1800


def adult_domain() -> PublicDomain:
    """Return the public domain of adult."""
    columns = {}
    for name in ORDER:
        if name in RANGES:
            low, high = RANGES[name]
            columns[name] = {"type": "integer", "role": "other", "min": low, "max": high}
        else:
            columns[name] = {"type": "text", "role": "other", "isin": CATEGORIES[name].split(",")}
    return PublicDomain.from_contract(TableContract.from_mapping({"columns": columns}), bin_starts=BIN_STARTS)


def distances(codes: np.ndarray, others: np.ndarray, sizes: tuple[int, ...]) -> tuple[float, float]:
    """Return the mean total variation distance over the columns, and over their pairs."""

    def distance(own: np.ndarray, other: np.ndarray, n_codes: int) -> float:
        shares = [np.bincount(each, minlength=n_codes) / len(each) for each in (own, other)]
        return float(np.abs(shares[0] - shares[1]).sum() / 2)

    single = [distance(codes[:, i], others[:, i], size) for i, size in enumerate(sizes)]
    pairs = [
        distance(codes[:, i] * sizes[j] + codes[:, j], others[:, i] * sizes[j] + others[:, j], sizes[i] * sizes[j])
        for i, j in combinations(range(len(sizes)), 2)
    ]
    return float(np.mean(single)), float(np.mean(pairs))


def auc_of_income(codes: np.ndarray, control: np.ndarray) -> float:
    """Return how well trees that learned from the records rank the income of the control."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    trees = HistGradientBoostingClassifier(random_state=0).fit(codes[:, :-1], codes[:, -1])
    return float(roc_auc_score(control[:, -1], trees.predict_proba(control[:, :-1])[:, 1]))


def interpreter_with(package: str, directory: Path) -> tuple[Path, str]:
    """Return the interpreter of an environment with a package, made if it is missing, or why there is none."""
    environment = directory / package
    python, installed = environment / "bin" / "python", environment / "installed"
    if installed.exists():
        return python, ""
    try:
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, capture_output=True, timeout=300)
        install = [str(python), "-m", "pip", "install", "-q", package]
        done = subprocess.run(install, capture_output=True, text=True, timeout=LONGEST_INSTALLATION)
    except (subprocess.SubprocessError, OSError) as error:
        return python, f"{package} could not be installed ({type(error).__name__})"
    if done.returncode:
        return python, f"{package} could not be installed ({_last_line(done.stderr)})"
    installed.touch()
    return python, ""


def records_of_peer(
    peer: str, directory: Path, codes: np.ndarray, sizes: tuple[int, ...], epsilon: float, most_seconds: float
) -> tuple[np.ndarray | None, dict[str, float], str]:
    """Return the records that a peer draws, its time and memory, and why there are none if so."""
    python, reason = interpreter_with(PEERS[peer], directory)
    if reason:
        return None, {}, reason
    script = Path(__file__).with_name("private_peers.py")
    with tempfile.TemporaryDirectory() as work:
        given, drawn = Path(work) / "codes.npz", Path(work) / "drawn.npz"
        np.savez(given, codes=codes, sizes=sizes)
        words = [str(python), str(script), peer, str(given), str(epsilon), str(DELTA), str(drawn)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=most_seconds)
        except subprocess.TimeoutExpired:
            return None, {}, f"stopped after {most_seconds:g} seconds"
        if done.returncode:
            return None, {}, _last_line(done.stderr)
        with np.load(drawn) as arrays:
            return arrays["codes"], json.loads(done.stdout.splitlines()[-1]), ""


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "it said nothing"


def measure_peers(
    measured: Measurements, codes: np.ndarray, control: np.ndarray, sizes: tuple[int, ...], options: argparse.Namespace
) -> None:
    """Fit each peer once for each epsilon, and print its figures or why they are missing."""
    print("peers                TV of columns   TV of pairs   AUC of income   CPU seconds     MB")
    for epsilon in sorted({epsilon for epsilon, _ in BARS}):
        for peer in PEERS:
            found = records_of_peer(peer, options.peers, codes, sizes, epsilon, options.peer_seconds)
            records, cost, reason = found
            name = f"{peer}, eps {epsilon:g}"
            if records is None:
                print(f"{name:20s} not run: {reason}", flush=True)
                continue
            columns, pairs = distances(records, control, sizes)
            auc = auc_of_income(records, control)
            print(
                f"{name:20s} {columns:13.4f} {pairs:13.4f} {auc:15.3f} {cost['seconds']:13.1f} "
                f"{cost['megabytes']:6.0f}",
                flush=True,
            )
            kept = f"{peer.replace('-', '_')}_epsilon_{epsilon:g}"
            measured.keep(**{f"{kept}_tv_columns": columns, f"{kept}_tv_pairs": pairs, f"{kept}_auc": auc})
            measured.keep(**{f"{kept}_seconds": cost["seconds"], f"{kept}_megabytes": cost["megabytes"]})


def no_ledger(_: float) -> None:
    """Record nothing: adult is public."""


def main() -> int:
    """Run the fits, then judge their records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with adult_ori.csv and adult_control.csv")
    parser.add_argument("--fits", type=int, default=3, help="fits of each setting (default: 3)")
    parser.add_argument(
        "--peers", type=Path, help="folder for the environments of other tools, which are fitted as well"
    )
    parser.add_argument("--only-peers", action="store_true", help="leave out the fits of this package")
    parser.add_argument("--peer-seconds", type=float, default=900, help="longest fit of a peer (default: 900)")
    add_json_option(parser)
    options = parser.parse_args()
    if options.only_peers and options.peers is None:
        parser.error("--only-peers needs --peers")
    measured = Measurements("private", options)
    domain = adult_domain()
    original = pd.read_csv(options.data / "adult_ori.csv")
    codes, control = domain.encode(original), domain.encode(pd.read_csv(options.data / "adult_control.csv"))
    if options.peers is not None:
        measure_peers(measured, codes, control, domain.sizes, options)
    if options.only_peers:
        return measured.finish()
    drawn: dict[tuple[float, str | None], list[np.ndarray]] = {}
    seconds = []
    for (epsilon, given), fit in ((key, fit) for key in BARS for fit in range(options.fits)):
        synthesizer = Mst(domain, epsilon, DELTA, given)
        start = time.process_time()
        model = synthesizer.fit(original, charge=no_ledger)
        seconds.append(time.process_time() - start)
        drawn.setdefault((epsilon, given), []).append(domain.encode(model.sample(seed=fit)))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(seconds)} fits, {max(seconds):.1f} CPU seconds at most (mean {np.mean(seconds):.1f}), {megabytes:.0f} MB"
    )
    measured.keep(most_fit_seconds=max(seconds), mean_fit_seconds=float(np.mean(seconds)), most_megabytes=megabytes)
    print("records              TV of columns   TV of pairs   AUC of income")
    ceiling = (*distances(codes, control, domain.sizes), auc_of_income(codes, control))
    print(f"originals, binned    {ceiling[0]:13.4f} {ceiling[1]:13.4f} {ceiling[2]:15.3f}")
    for (epsilon, given), records in drawn.items():
        found = [(*distances(each, control, domain.sizes), auc_of_income(each, control)) for each in records]
        columns, pairs, auc = (float(each) for each in np.mean(found, axis=0))
        name = f"epsilon {epsilon:g}{'' if given is None else f', given {given}'}"
        print(f"{name:20s} {columns:13.4f} {pairs:13.4f} {auc:15.3f}", flush=True)
        kept = f"epsilon_{epsilon:g}{'' if given is None else '_given'}"
        measured.keep(**{f"{kept}_tv_columns": columns, f"{kept}_tv_pairs": pairs, f"{kept}_auc": auc})
        bars = BARS[epsilon, given]
        measured.check(f"{name}: TV of pairs at most {bars['pairs']}", pairs <= bars["pairs"])
        if "auc" in bars:
            measured.check(f"{name}: AUC of income at least {bars['auc']}", auc >= bars["auc"])
    measured.check(f"a fit takes at most {MOST_SECONDS:g} CPU seconds", max(seconds) <= MOST_SECONDS)
    measured.check(f"all fits take at most {MOST_MEGABYTES:g} MB", megabytes <= MOST_MEGABYTES)
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
