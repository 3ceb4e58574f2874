"""Time the disclosure test, and count what it detects and how often it is wrong.

    python benchmarks/disclosure.py --data ../shared/data [--splits N] [--seeds N] [--million] [--json [FILE]]

First the whole of adult and the records that CTGAN made of it, in a process of its own. Then false alarms: eight tables
are divided at random into originals, controls and others, and the synthetic records are the others, a bootstrap of
them, or made of them by CART and by the Gaussian copula, so that nothing can leak (``--splits`` times each; wide and
slow tables less often). Last, detection: copies, near copies (one or two values of other originals in each),
interpolations (SMOTE, 5 neighbors), CART with leaves of 5 and the copula, of 3,000 originals of four tables
(``--seeds`` times each). Copies are shares of the originals; all other synthetic records are of other people. The exit
code is 1 if a bar is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
from measurements import Measurements, add_json_option
from memory import peak_mib
from synthesis import prices, stays, survey

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.examples.rand_hie import load_rand_hie
from privacy_assets.mpucc.intervals import wilson_interval
from privacy_assets.synthesis.synthesize import synthesize

REPOSITORY = Path(__file__).resolve().parent.parent
FALSE_ALARMS, OF_A_TABLE, NEIGHBORS = 0.05, 0.08, 5
SECONDS_OF_ADULT, SECONDS_OF_A_MILLION, GIB_OF_A_MILLION = 50.0, 240.0, 4.0
"""Twice what a machine of twice the speed may take."""
MUST_BE_FOUND = ("copies 1 %", "near copies 5 %", "SMOTE", "CART")
FILES = ("adult_ori.csv", "adult_control.csv", "adult_syn_ctgan.csv")


def wide(seed: int, n: int = 2_000, n_columns: int = 42) -> pd.DataFrame:
    """Columns of 2 to 12 values that share five causes."""
    rng = np.random.default_rng(seed)
    causes, loadings = rng.normal(size=(n, 5)), np.random.default_rng(99).normal(size=(5, n_columns))
    scores = causes @ loadings + 1.5 * rng.normal(size=(n, n_columns))
    return pd.DataFrame({f"c{j}": np.digitize(scores[:, j], np.linspace(-4, 4, 2 + j % 11)) for j in range(n_columns)})


def of_statsmodels(name: str) -> pd.DataFrame:
    import statsmodels.api as sm

    return getattr(sm.datasets, name).load_pandas().data


def tables(data: Path) -> dict[str, Callable[[int], pd.DataFrame]]:
    """Return what makes each table; only generated ones depend on the seed."""
    adult = pd.concat([pd.read_csv(data / name) for name in FILES[:2]], ignore_index=True)
    rand = load_rand_hie().drop(columns="person_id")
    fair, anes = of_statsmodels("fair"), of_statsmodels("anes96")
    return {
        "adult": lambda _seed: adult,
        "rand": lambda _seed: rand,
        "fair": lambda _seed: fair,
        "anes96": lambda _seed: anes,
        "prices": prices,
        "stays": stays,
        "survey": survey,
        "wide": wide,
    }


def divided(table: pd.DataFrame, sizes: tuple[int, ...], rng: np.random.Generator) -> list[pd.DataFrame]:
    order = rng.permutation(len(table))
    parts = np.split(order, np.cumsum(sizes))[: len(sizes)]
    return [table.iloc[part].reset_index(drop=True) for part in parts]


def made_by(method: str, learned: pd.DataFrame, n: int, rng: np.random.Generator) -> pd.DataFrame:
    return synthesize(learned, method=method, n_records=n, seed=int(rng.integers(2**30)))


def interpolated(learned: pd.DataFrame, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Numbers between a record and one of its nearest neighbors, other values of either of them."""
    from sklearn.neighbors import NearestNeighbors

    is_number = [pd.api.types.is_numeric_dtype(own) and own.nunique() > 2 for _, own in learned.items()]
    parts = [
        own.astype(float).rank(pct=True).fillna(-1).to_numpy()[:, None]
        if number
        else 0.7 * pd.get_dummies(own.astype(str)).to_numpy(float)
        for number, (_, own) in zip(is_number, learned.items(), strict=True)
    ]
    places = np.hstack(parts)
    first = rng.choice(len(learned), n)
    near = NearestNeighbors(n_neighbors=NEIGHBORS + 1).fit(places).kneighbors(places[first], return_distance=False)
    second = near[np.arange(n), rng.integers(1, NEIGHBORS + 1, n)]
    share, made = rng.random(n), {}
    for number, (name, own) in zip(is_number, learned.items(), strict=True):
        one, other = (own.iloc[rows].reset_index(drop=True) for rows in (first, second))
        if number:
            between = one.astype(float) + share * (other.astype(float) - one.astype(float))
            n_decimals = 0 if pd.api.types.is_integer_dtype(own) or (own.dropna() % 1 == 0).all() else 2
            made[name] = between.round(n_decimals).astype(own.dtype)
        else:
            made[name] = one.where(pd.Series(rng.random(n) >= share), other)
    return pd.DataFrame(made)


def with_copies(
    others: pd.DataFrame, learned: pd.DataFrame, share: float, changed: tuple[int, int], rng: np.random.Generator
) -> pd.DataFrame:
    """Replace some of the other people by copies of originals, some values of which are another original's."""
    n = round(share * len(learned))
    copies = learned.iloc[rng.choice(len(learned), n, replace=False)].reset_index(drop=True)
    cells = {name: copies[name].to_numpy(object) for name in copies}
    for i in range(n):
        n_changed = rng.integers(changed[0], changed[1] + 1)
        for name in rng.choice(list(cells), n_changed, replace=False):
            cells[name][i] = learned[name].iloc[rng.integers(len(learned))]
    copies = pd.DataFrame(cells).astype(learned.dtypes.to_dict())
    return pd.concat([copies, others.iloc[n:]], ignore_index=True)


INNOCENT = {
    "other people": lambda others, n, _rng: others.iloc[:n],
    "bootstrap": lambda others, n, rng: others.iloc[rng.choice(len(others), n)].reset_index(drop=True),
    "CART": lambda others, n, rng: made_by("cart", others, n, rng),
    "copula": lambda others, n, rng: made_by("gaussian_copula", others, n, rng),
}
LEAKING = {
    "copies 0.3 %": lambda learned, others, rng: with_copies(others, learned, 0.003, (0, 0), rng),
    "copies 1 %": lambda learned, others, rng: with_copies(others, learned, 0.01, (0, 0), rng),
    "near copies 1 %": lambda learned, others, rng: with_copies(others, learned, 0.01, (1, 2), rng),
    "near copies 5 %": lambda learned, others, rng: with_copies(others, learned, 0.05, (1, 2), rng),
    "SMOTE": lambda learned, others, rng: interpolated(learned, len(others), rng),
    "CART": lambda learned, others, rng: made_by("cart", learned, len(others), rng),
    "copula": lambda learned, others, rng: made_by("gaussian_copula", learned, len(others), rng),
}
SIZES_TO_DETECT = {
    "adult": (3000, 1500, 3000),
    "rand": (3000, 1400, 1500),
    "prices": (3000, 1500, 2500),
    "fair": (3000, 1500, 1800),
}
FEW_VALUES = "fair"
"""Nine columns of mostly six values: many people share a record, so copies are no evidence. It has no bar."""


def sizes_of(n: int) -> tuple[int, int, int]:
    """Originals, controls and others of a table for false alarms."""
    return (600, 300, 600) if n >= 1_500 else (300, 150, n - 450)


def count_false_alarms(made: dict, first: int, n_splits: int, measured: Measurements) -> None:
    print(f"\nfalse alarms{'table':>12}  " + "".join(f"{name:>16}" for name in INNOCENT) + f"{'all':>16}")
    everything = np.zeros(2, int)
    for name, make in made.items():
        shown, of_table = [], np.zeros(2, int)
        for kind, generate in INNOCENT.items():
            found = np.zeros(2, int)
            for seed in range(first, first + (max(n_splits // 4, 2) if name == "wide" else n_splits)):
                rng = np.random.default_rng([seed, sorted(INNOCENT).index(kind), 15])
                table = make(seed)
                original, control, others = divided(table, sizes_of(len(table)), rng)
                synthetic = generate(others, len(original), rng)
                detected = assess_disclosure(original, synthetic, control, seed=seed).scores["leakage_detected"]
                found += (detected is True, 1)
            shown.append(f"{found[0]} / {found[1]}")
            of_table += found
        everything += of_table
        print(f"{name:>24}  " + "".join(f"{own:>16}" for own in (*shown, f"{of_table[0]} / {of_table[1]}")), flush=True)
        measured.keep(**{f"false_alarms_{name}": int(of_table[0]), f"splits_{name}": int(of_table[1])})
        check_share(name, of_table, OF_A_TABLE, measured)
    measured.keep(false_alarms=int(everything[0]), splits=int(everything[1]))
    check_share("all tables", everything, FALSE_ALARMS, measured)


def check_share(name: str, found: np.ndarray, bar: float, measured: Measurements) -> None:
    """Check that chance explains more flagged splits than the bar: of an exact test half the samples have more."""
    share, low, high = wilson_interval(*map(float, found), 0.95)
    words = f"{name}: {share:.1%} ({low:.1%} to {high:.1%}) of {found[1]} honest splits are flagged"
    measured.check(f"{words}; not above {bar:.0%} beyond chance", low <= bar)


def count_detections(made: dict, n_seeds: int, measured: Measurements) -> None:
    print(f"\ndetected    {'table':>12}  " + "".join(f"{name:>17}" for name in LEAKING))
    for name, sizes in SIZES_TO_DETECT.items():
        if name not in made:
            continue
        shown = []
        for kind, generate in LEAKING.items():
            n_found, by = 0, {}
            for seed in range(n_seeds):
                rng = np.random.default_rng([seed, sorted(LEAKING).index(kind), 16])
                original, control, others = divided(made[name](seed), sizes, rng)
                found = assess_disclosure(original, generate(original, others, rng), control, seed=seed)
                n_found += found.scores["leakage_detected"] is True
                for row in found.criteria.itertuples():
                    by[row.criterion] = by.get(row.criterion, 0) + (row.adjusted_p_value <= 0.05)
            shown.append(f"{n_found} / {n_seeds}")
            key = f"{name}_{kind}".replace(" %", "_percent").replace(" ", "_").replace(".", "_").lower()
            measured.keep(**{f"detected_{key}": n_found})
            print(f"    {name}, {kind}: {by}", flush=True)
            if kind in MUST_BE_FOUND and name != FEW_VALUES:
                words = f"{kind} of {name}: {n_found} of {n_seeds} detected; at least 19 of 20"
                measured.check(words, n_found >= 0.95 * n_seeds)
        print(f"{name:>24}  " + "".join(f"{own:>17}" for own in shown), flush=True)


def child(data: str, kind: str) -> None:
    """Assess all of adult, or a million records a side of its shape, in this process."""
    original, control, synthetic = (pd.read_csv(Path(data) / name) for name in FILES)
    assess_disclosure(original[:200], synthetic[:200], control[:100])
    if kind == "million":
        rng = np.random.default_rng(0)
        drawn = [
            own.sample(n, replace=True, random_state=rng, ignore_index=True)
            for own, n in ((original, 750_000), (control, 250_000), (synthetic, 1_000_000))
        ]
        for own in drawn:
            # So that draws of one record differ.
            own["fnlwgt"] += rng.integers(0, 400_000, len(own))
            own["age"] += rng.integers(0, 3, len(own))
        original, control, synthetic = drawn
    start = time.process_time()
    found = assess_disclosure(original, synthetic, control)
    seconds = time.process_time() - start
    print(json.dumps([seconds, peak_mib() / 1024, found.scores["n_examined"], found.scores["detectable_share"]]))


def measure_cost(data: Path, kind: str, bar: float, measured: Measurements) -> None:
    run = subprocess.run([sys.executable, __file__, "--child", str(data), kind], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{kind} failed:\n{run.stderr[-2000:]}")
    seconds, gib, n_examined, share = json.loads(run.stdout.splitlines()[-1])
    print(
        f"{kind}: {seconds:.1f} CPU s, {gib:.2f} GiB, {n_examined:,} people examined, {share:.2%} detectable",
        flush=True,
    )
    measured.keep(**{f"{kind}_cpu_seconds": seconds, f"{kind}_peak_gib": gib, f"{kind}_detectable_share": share})
    is_met = seconds <= bar and gib <= GIB_OF_A_MILLION
    measured.check(
        f"{kind}: {seconds:.1f} CPU s, {gib:.2f} GiB; at most {bar:.0f} s, {GIB_OF_A_MILLION:.0f} GiB", is_met
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("PRIVACY_ASSETS_SHARED", REPOSITORY.parent / "shared"))
    parser.add_argument("--data", type=Path, default=shared / "data", help=f"folder with {', '.join(FILES)}")
    parser.add_argument("--splits", type=int, default=15, help="honest splits of each table and generator")
    parser.add_argument("--first", type=int, default=0, help="number of the first honest split")
    parser.add_argument("--seeds", type=int, default=20, help="leaking tables of each table and generator")
    parser.add_argument("--million", action="store_true", help="also a million records a side")
    parser.add_argument("--skip-cost", action="store_true")
    parser.add_argument("--tables", nargs="*", help="names of the tables; default: all")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("disclosure", options)
    data = options.data.resolve()
    if not options.skip_cost:
        measure_cost(data, "adult", SECONDS_OF_ADULT, measured)
        if options.million:
            measure_cost(data, "million", SECONDS_OF_A_MILLION, measured)
    made = {name: make for name, make in tables(data).items() if not options.tables or name in options.tables}
    if options.splits:
        count_false_alarms(made, options.first, options.splits, measured)
    if options.seeds:
        count_detections(made, options.seeds, measured)
    return measured.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        sys.exit(main())
