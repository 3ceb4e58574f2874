"""Other tools and plain attacks on the leaks of `disclosure.py`, each at the level of 5 %, and the time per target.

    python benchmarks/disclosure.py --peers [N] --anonymeter PYTHON --sdmetrics PYTHON [--json]
    python benchmarks/disclosure_peers.py --anonymeter PYTHON [--data FOLDER] [--json]

The interpreters are those of environments of their own, with anonymeter 1.1 and with sdmetrics. The first command
counts what each finds of the leaks of four tables, with 1,000 originals and half as many controls:

- Anonymeter: of singling out (univariate and of three columns), linking (two halves of the columns) and inference of
  each column, the interval of the risk beyond the control is above 0 for some, at a level that is divided by their
  number. As many originals as controls, because others are singled out more often only because they are more.
- SDMetrics: the share of synthetic records that are closer to an original (`DCROverfittingProtection`, as many
  originals as controls) is above one half by more than 1.64 standard deviations; it has no test of its own.
- plain attacks, each by itself, as permutation tests of both directions of a mean over the people: distance to the
  nearest synthetic record; most values that are equal to those of one synthetic record; people with the same most
  frequent difference to a synthetic record; distance to the nearest synthetic record over that to the nearest person.

The second compares the CPU time per target, of 26,031 originals, 9,758 controls and the 39,040 records that CTGAN made
of adult: linking and inference of all columns by Anonymeter, against our linking and inference from the nearest record
alone, and against the whole of our test.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from peers import answer_of, metadata_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

LEVEL = 0.05
ABOVE_BY_CHANCE = 1.645
"""Standard deviations that chance exceeds with a probability of 5 %."""
FASTER = 100
PEOPLE = (1_000, 500)
COMPARED = ("adult", "MedExp", "NMES1988", "k401ksubs")
N_ATTACKS, N_SAMPLED = 300, 500
N_DIVISIONS = 999
TOOLS = ("made", "ours", "anonymeter", "sdmetrics", "distance", "agreement", "differences", "density")
MOST_PAIRS = 3_000_000
SIDES = ("original", "control", "synthetic")


def of_anonymeter(folder: Path, n_attacks: int) -> dict:
    import pandas as pd
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

    original, control, synthetic = (pd.read_csv(folder / f"{side}.csv") for side in SIDES)
    original = original.sample(min(len(original), len(control)), random_state=0).reset_index(drop=True)
    names, above, seconds, failed = list(original), {}, {}, 0
    confidence = 1 - 2 * LEVEL / (len(names) + 3)

    def judge(kind: str, evaluator: object, **options: object) -> None:
        nonlocal failed
        start = time.process_time()
        try:
            risk = evaluator.evaluate(**options).risk(confidence_level=confidence)
            above[kind] = above.get(kind, False) or risk.ci[0] > 0
        except RuntimeError:
            # No query of it singles anybody out.
            failed += 1
        seconds[kind] = seconds.get(kind, 0.0) + time.process_time() - start

    halves = (names[::2], names[1::2])
    # Its distances are compiled first.
    LinkabilityEvaluator(original[:50], synthetic[:50], halves, n_attacks=5, control=control[:50]).evaluate(n_jobs=1)
    both = {"ori": original, "syn": synthetic, "control": control, "n_attacks": n_attacks}
    for mode in ("univariate", "multivariate"):
        judge("singling_out", SinglingOutEvaluator(**both), mode=mode)
    judge("linking", LinkabilityEvaluator(**both, aux_cols=halves), n_jobs=1)
    for secret in names:
        others = [name for name in names if name != secret]
        evaluator = InferenceEvaluator(**both, aux_cols=others, secret=secret, regression=None)
        judge("inference", evaluator, n_jobs=1)
    per_target = (seconds["linking"] + seconds["inference"]) / (2 * n_attacks)
    return {"detected": any(above.values()), "by": above, "failed": failed, "seconds": seconds, "target": per_target}


def of_sdmetrics(folder: Path, n_sampled: int) -> dict:
    import pandas as pd
    from sdmetrics.single_table import DCROverfittingProtection

    original, control, synthetic = (pd.read_csv(folder / f"{side}.csv") for side in SIDES)
    metadata = metadata_of(original)
    drawn = original.sample(len(control), random_state=0).reset_index(drop=True)
    start = time.process_time()
    n = min(n_sampled, len(synthetic))
    found = DCROverfittingProtection.compute_breakdown(drawn, synthetic, control, metadata, None, num_rows_subsample=n)
    distance = time.process_time() - start
    closer = found["synthetic_data_percentages"]["closer_to_training"]
    return {
        "detected": bool(closer > 0.5 + ABOVE_BY_CHANCE * 0.5 / n**0.5),
        "score": float(found["score"]),
        "closer_to_originals": float(closer),
        "seconds": {"distance": distance},
    }


def of_plain(original: "pd.DataFrame", synthetic: "pd.DataFrame", control: "pd.DataFrame") -> dict[str, int]:
    """Return which of the plain attacks flag a table."""
    import numpy as np
    import pandas as pd
    from disclosure_tables import places
    from sklearn.neighbors import NearestNeighbors

    people = pd.concat([original, control], ignore_index=True)
    own, made = places(people, people), places(synthetic, people)
    to_synthetic = NearestNeighbors(n_neighbors=1).fit(made).kneighbors(own)[0][:, 0]
    to_people = NearestNeighbors(n_neighbors=2).fit(own).kneighbors(own)[0][:, 1]
    scores = {
        "distance": to_synthetic,
        "agreement": most_equal_values(people, synthetic),
        "differences": sharing_a_difference(people, synthetic),
        "density": np.log((to_synthetic + 0.01) / (to_people + 0.01)),
    }
    return {name: int(differs(score, len(original))) for name, score in scores.items()}


def differs(score: "np.ndarray", n_original: int) -> bool:
    """Whether the mean of the originals is larger or smaller than in all but 2.5 % of random divisions."""
    import numpy as np

    random = np.random.default_rng(0)
    means = [random.permutation(score)[:n_original].mean() for _ in range(N_DIVISIONS)]
    n_beyond = [sum(sign * own >= sign * score[:n_original].mean() - 1e-9 for own in means) for sign in (1, -1)]
    return (min(n_beyond) + 1) / (N_DIVISIONS + 1) <= LEVEL / 2


def most_equal_values(people: "pd.DataFrame", synthetic: "pd.DataFrame") -> "np.ndarray":
    """Return for each person the most columns in which one synthetic record is equal."""
    import numpy as np
    import pandas as pd

    whole = pd.concat([people, synthetic], ignore_index=True)
    codes = np.stack([pd.factorize(whole[name])[0] for name in whole], 1)
    made = codes[len(people) :]
    return np.array([(made == own).sum(axis=1).max() for own in codes[: len(people)]], float)


def sharing_a_difference(people: "pd.DataFrame", synthetic: "pd.DataFrame") -> "np.ndarray":
    """Return for each person how many have its most frequent difference of all numbers, all else being equal."""
    import numpy as np
    import pandas as pd
    from disclosure_leaks import numbers

    names = numbers(people)
    others = [name for name in people if name not in names]
    if not names:
        return np.zeros(len(people))
    sides = [own.assign(row=range(len(own))) for own in (people, synthetic)]
    pairs = sides[0].merge(sides[1], on=others, how="inner") if others else sides[0].merge(sides[1], how="cross")
    pairs = pairs.sample(min(len(pairs), MOST_PAIRS), random_state=0)
    found = pd.DataFrame({name: (pairs[f"{name}_y"] - pairs[f"{name}_x"]).round(6).fillna(-0.5) for name in names})
    keys = pd.util.hash_pandas_object(found, index=False).to_numpy()
    of_people = pd.DataFrame({"key": keys, "person": pairs["row_x"].to_numpy()})[(found != 0).any(axis=1).to_numpy()]
    of_people = of_people.drop_duplicates()
    n_sharing = of_people.groupby("key")["person"].transform("size")
    most = n_sharing.groupby(of_people["person"]).max()
    return most.reindex(range(len(people)), fill_value=0).to_numpy(float)


def of_ours(folder: Path) -> dict:
    import pandas as pd

    from privacy_assets.disclosure.assess import assess_disclosure

    original, control, synthetic = (pd.read_csv(folder / f"{side}.csv") for side in SIDES)
    assess_disclosure(original[:200], synthetic[:200], control[:100])
    of_stage: dict[str, list[float]] = {}
    since, stage = time.process_time(), "preparation"

    def note(at: object) -> None:
        nonlocal since, stage
        if at.stage != stage:
            now = time.process_time()
            of_stage.setdefault(stage, []).append(now - since)
            since, stage = now, at.stage

    start = since
    found = assess_disclosure(original, synthetic, control, progress=note).scores
    seconds = time.process_time() - start
    n_targets = len(original) + len(control)
    # Later stages of these names are those of the smallest detectable share.
    alone = sum(of_stage[name][0] for name in ("preparation", "matching", "linking", "guessing"))
    return {
        "detected": found["leakage_detected"] is True,
        "seconds": {"all": seconds},
        "target": seconds / n_targets,
        "alone": alone / n_targets,
    }


def child(tool: str, folder: str, n: str) -> None:
    """Print what a tool finds in each folder of a folder, and our time for one."""
    if tool == "ours":
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
        found = of_ours(Path(folder))
    else:
        of_tool = of_anonymeter if tool == "anonymeter" else of_sdmetrics
        found = [of_tool(own, int(n)) for own in sorted(Path(folder).iterdir())]
    print(json.dumps(found, default=bool))


def count_by_tool(
    made: Mapping[str, Callable[[], "pd.DataFrame"]], options: argparse.Namespace, measured: object
) -> None:
    """Count the tables in which each tool and attack finds each leak, and those that they flag without one."""
    import numpy as np
    from disclosure_leaks import HONEST, LEAKS, SUBTLE, attribute_leaked, divided_people, numbers, secrets_of
    from measurements import figure_name

    from privacy_assets.disclosure.assess import assess_disclosure

    def attribute(people: object, random: object) -> object:
        secret = next(iter(secrets_of(people.original).values()))
        known = [name for name in numbers(people.original) if name != secret][:4]
        return attribute_leaked(people, random, 0.15, known, secret)

    cases = {"other people": HONEST["other people"], **LEAKS, "one value of 15 %": attribute, **SUBTLE}
    tools = {name: own for name in ("anonymeter", "sdmetrics") if (own := getattr(options, name))}
    found: dict[str, Counter[str]] = {case: Counter() for case in cases}
    with tempfile.TemporaryDirectory() as root:
        case_of: list[str] = []
        for case, name, seed in product(cases, [name for name in COMPARED if name in made], range(options.peers)):
            random = np.random.default_rng([seed, 19])
            people = divided_people(made[name](), *PEOPLE, random)
            synthetic = cases[case](people, random)
            if synthetic is None:
                continue
            sides = (people.original, synthetic, people.control)
            ours = assess_disclosure(*sides, seed=seed, n_threads=1).scores["leakage_detected"]
            found[case].update({"made": 1, "ours": int(ours is True), **of_plain(*sides)})
            folder = Path(root) / f"{len(case_of):05d}"
            folder.mkdir()
            for side, own in zip(("original", "synthetic", "control"), sides, strict=True):
                own.to_csv(folder / f"{side}.csv", index=False)
            case_of.append(case)
        for tool, python in tools.items():
            n = N_ATTACKS if tool == "anonymeter" else N_SAMPLED
            for case, own in zip(case_of, answer_of(python, __file__, "--child", tool, root, n), strict=True):
                found[case][tool] += own["detected"]
    print(f"{'':>43}" + "".join(f"{tool:>12}" for tool in TOOLS))
    for case, own in found.items():
        print(f"{case:>42} " + "".join(f"{own[tool]:>12}" for tool in TOOLS), flush=True)
        measured.keep(**{figure_name(tool, case): own[tool] for tool in TOOLS if tool in own})


def main() -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from disclosure_tables import FILES
    from measurements import Measurements, add_json_option

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("PRIVACY_ASSETS_SHARED", Path(__file__).resolve().parent.parent.parent / "shared"))
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder with the files of adult")
    parser.add_argument("--anonymeter", type=Path, required=True, help="interpreter of its environment")
    parser.add_argument("--attacks", type=int, default=500, help="of Anonymeter, each")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("disclosure_peers_time", options)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "adult").mkdir()
        for side, name in zip(SIDES, FILES, strict=True):
            (Path(folder) / "adult" / f"{side}.csv").symlink_to(options.data.resolve() / name)
        ours = answer_of(sys.executable, __file__, "--child", "ours", f"{folder}/adult", 0)
        (theirs,) = answer_of(options.anonymeter, __file__, "--child", "anonymeter", folder, options.attacks)
    milliseconds = {
        "ours": 1000 * ours["target"],
        "linking_and_guessing": 1000 * ours["alone"],
        "anonymeter": 1000 * theirs["target"],
    }
    measured.keep(**{f"{name}_ms_per_target": own for name, own in milliseconds.items()})
    times = milliseconds["anonymeter"] / milliseconds["linking_and_guessing"]
    shown = ", ".join(f"{name} {own:.3f}" for name, own in milliseconds.items())
    measured.check(f"milliseconds per target: {shown}: {times:.0f} times; at least {FASTER}", times >= FASTER)
    return measured.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        sys.exit(main())
