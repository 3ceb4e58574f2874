"""Judge releases of known worth, and compare their figures and times with those of the page that defines them.

    python benchmarks/utility.py --data ../shared/data [--large | --trees | --coverage N | --sdmetrics PYTHON]

On adult (26,031 originals, 9,758 people as control): samples of the originals, CART, Mondrian, lattices, the Gaussian
copula, smooth_cart, CTGAN, and shuffled columns; then the synthesizers on the RAND Health Insurance Experiment. Bars:
originals are worth 1 and shuffled columns less than 0.05, CTGAN < copula < Mondrian 50 < CART, pairs and predictions of
Mondrian and CART are within 0.02 of the page's prototype, and judge and releases stay within their times on one core.
With --trees only the order of the releases by `utility` is compared with that by a discriminator of gradient boosted
trees, by rank correlation, which must be 0.9. With --coverage only this: RAND, and 6,000 people of adult, are split at
random into originals, other people and control, N times; counted are the intervals that cover the mean of a figure over
all splits, and on adult those that cover what the 29,789 people outside of the split say of the same release. With
--sdmetrics only the order and the time are compared with those of its quality report, which the interpreter of an
environment with sdmetrics makes of the originals and the release. With --large also the time and the memory of 10^6
originals. ``--json [FILE]`` keeps the figures. The exit code is 1 if a bar is missed.
"""

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
from measurements import Measurements, add_json_option
from peers import answer_of

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.examples.rand_hie import load_rand_hie
from privacy_assets.synthesis.split import split_records
from privacy_assets.synthesis.synthesize import synthesize
from privacy_assets.utility.assess import Judge
from privacy_assets.utility.drawing import draw_records
from privacy_assets.utility.trees import assess_with_trees

KNOWN = ["age", "workclass", "education_num", "marital_status", "occupation", "race", "sex", "native_country"]
PROTOTYPE = {
    "half": (0.999, 0.995),
    "tenth": (0.978, 0.945),
    "cart_5": (0.996, 0.990),
    "cart_50": (0.996, 0.989),
    "cart_500": (0.984, 0.954),
    "mondrian_5": (0.990, 0.969),
    "mondrian_10": (0.974, 0.932),
    "mondrian_50": (0.901, 0.797),
    "mondrian_500": (0.594, 0.437),
    "ctgan": (0.767, 0.813),
}
"""Pairs and prediction of `utility.md`; its counts and copula are of earlier forms."""
WITHIN = 0.02
JUDGE_SECONDS, RELEASE_SECONDS = 8.0, 1.5
SHOWN = ("utility_columns", "utility_pairs", "utility_counts", "utility_prediction", "utility")
KNOWN_OF_RAND = ["site", "age", "sex", "head_is_black", "education_years", "family_size"]
SPLIT_OF_ADULT = 6_000
ORIGINALS, OTHERS = 0.4, 0.4
"""Shares of a split; the rest is control."""
COVERED = 0.9


def shuffled(table: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame({name: random.permutation(table[name]) for name in table})


def hierarchies(table: pd.DataFrame) -> dict[str, Hierarchy]:
    """Intervals for numbers, and a tree of one level for text."""
    return {
        "age": Hierarchy.intervals([5, 10, 20, 40]),
        "education_num": Hierarchy.intervals([2, 4, 8]),
        **{
            name: Hierarchy.from_mapping({"any": sorted(table[name].dropna().unique())})
            for name in KNOWN
            if name not in ("age", "education_num")
        },
    }


def releases(original: pd.DataFrame, data: Path):
    """Yield the name of each release, its table, and what the judge needs to read it."""
    yield "originals", original, {}
    yield "half", original.sample(frac=0.5, random_state=1), {}
    yield "tenth", original.sample(frac=0.1, random_state=1), {}
    for leaf in (5, 50, 500):
        yield f"cart_{leaf}", synthesize(original, method="cart", settings={"min_samples_leaf": leaf}, seed=0), {}
    for k in (2, 5, 10, 50, 500):
        made = anonymize(original, quasi_identifiers=KNOWN, k=k)
        yield f"mondrian_{k}", made.table, {"model": made}
    levels = hierarchies(original)
    for k in (5, 50):
        made = anonymize(original, quasi_identifiers=KNOWN, k=k, method="lattice", hierarchies=levels)
        yield f"lattice_{k}", made.table, {"model": made, "hierarchies": levels}
    yield "copula", synthesize(original, method="gaussian_copula", seed=0), {}
    yield "smooth_cart", synthesize(original, method="smooth_cart", seed=0), {}
    yield "ctgan", pd.read_csv(data / "adult_syn_ctgan.csv"), {}
    yield "shuffled", shuffled(original), {}


def judged(name: str, judge: Judge, table: pd.DataFrame, how: dict, measured: Measurements) -> dict:
    started = time.process_time()
    found = judge.assess(table, **how)
    seconds = time.process_time() - started
    scores = found.scores
    print(
        f"{name:16}",
        " ".join(f"{scores[figure]:6.3f}" for figure in SHOWN),
        f"[{scores['utility_lower']:.3f}, {scores['utility_upper']:.3f}]",
        f"{scores['worth_in_people']:7,.0f} people, median error of a count {scores['median_count_error']:.3f};",
        f"{seconds:.2f} CPU s",
        flush=True,
    )
    measured.keep(**{f"{name}_{figure}": scores[figure] for figure in SHOWN}, **{f"{name}_cpu_seconds": seconds})
    return {**scores, "seconds": seconds}


def on_adult(data: Path, measured: Measurements) -> None:
    original, control = (pd.read_csv(data / f"adult_{part}.csv") for part in ("ori", "control"))
    started = time.process_time()
    judge = Judge(original, control)
    seconds = time.process_time() - started
    print(f"adult: judge made in {seconds:.2f} CPU s; {', '.join(SHOWN)}")
    measured.keep(adult_judge_cpu_seconds=seconds)
    measured.check(f"the judge takes {seconds:.1f} CPU s; at most {JUDGE_SECONDS}", seconds <= JUDGE_SECONDS)
    found = {name: judged(name, judge, table, how, measured) for name, table, how in releases(original, data)}
    slowest = max(each["seconds"] for each in found.values())
    measured.check(f"a release takes {slowest:.1f} CPU s; at most {RELEASE_SECONDS}", slowest <= RELEASE_SECONDS)
    measured.check("originals are worth 1", all(found["originals"][figure] == 1 for figure in SHOWN))
    nothing = abs(found["shuffled"]["utility"])
    measured.check(f"shuffled columns are worth {nothing:.3f}; less than 0.05", nothing < 0.05)
    order = [found[name]["utility"] for name in ("ctgan", "copula", "mondrian_50", "cart_5")]
    measured.check("CTGAN < copula < Mondrian 50 < CART", order == sorted(order))
    for name, expected in PROTOTYPE.items():
        own = [found[name][figure] for figure in ("utility_pairs", "utility_prediction")]
        apart = max(abs(one - other) for one, other in zip(own, expected, strict=True))
        measured.check(f"{name}: within {apart:.3f} of the prototype; at most {WITHIN}", apart <= WITHIN)


def on_rand(measured: Measurements) -> None:
    table = load_rand_hie().drop(columns="person_id")
    original, control = split_records(table, train_fraction=0.8, seed=0)
    judge = Judge(original, control)
    print("RAND Health Insurance Experiment")
    for name, made in (
        ("rand_copula", synthesize(original, method="gaussian_copula", seed=0)),
        ("rand_cart", synthesize(original, method="cart", seed=0)),
        ("rand_smooth_cart", synthesize(original, method="smooth_cart", seed=0)),
        ("rand_shuffled", shuffled(original)),
    ):
        judged(name, judge, made, {}, measured)


def large(data: Path, measured: Measurements) -> None:
    original, control = (
        pd.read_csv(data / f"adult_{part}.csv").sample(n, replace=True, random_state=0, ignore_index=True)
        for part, n in (("ori", 1_000_000), ("control", 250_000))
    )
    started = time.process_time()
    judged("large_tenth", Judge(original, control), original.sample(frac=0.1, random_state=1), {}, measured)
    seconds = time.process_time() - started
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    measured.keep(large_cpu_seconds=seconds, large_gigabytes=gigabytes)
    measured.check(f"10^6 originals take {seconds:.0f} CPU s; at most 60", seconds <= 60)
    measured.check(f"10^6 originals take {gigabytes:.1f} GB; at most 2", gigabytes <= 2)


def beside_trees(data: Path, measured: Measurements) -> None:
    original, control = (pd.read_csv(data / f"adult_{part}.csv") for part in ("ori", "control"))
    judge = Judge(original, control)
    known = pd.concat([original, control], ignore_index=True)
    worth, distinguished = {}, {}
    for name, table, how in releases(original, data):
        plain = draw_records(table, domain=known, **how) if how else table
        worth[name] = judge.assess(table, **how).scores["utility"]
        started = time.process_time()
        distinguished[name] = assess_with_trees(original, plain[list(original)], control).discriminator_auc
        seconds = time.process_time() - started
        print(f"{name:16} {worth[name]:6.3f}, AUC {distinguished[name]:.3f}; {seconds:.1f} CPU s", flush=True)
        measured.keep(**{f"{name}_discriminator_auc": distinguished[name], f"{name}_trees_cpu_seconds": seconds})
    agreement = -float(pd.Series(worth).corr(pd.Series(distinguished), method="spearman"))
    measured.keep(rank_agreement=agreement)
    measured.check(f"rank agreement with a discriminator is {agreement:.3f}; at least 0.9", agreement >= 0.9)


def beside_sdmetrics(data: Path, python: Path, measured: Measurements) -> None:
    original, control = (pd.read_csv(data / f"adult_{part}.csv") for part in ("ori", "control"))
    judge = Judge(original, control)
    known = pd.concat([original, control], ignore_index=True)
    worth, quality, seconds = {}, {}, []
    script = Path(__file__).with_name("sdmetrics_quality.py")
    for name, table, how in releases(original, data):
        plain = (draw_records(table, domain=known, **how) if how else table)[list(original)]
        started = time.process_time()
        worth[name] = judge.assess(plain).scores["utility"]
        own = time.process_time() - started
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / f"{side}.csv" for side in ("original", "release")]
            for side, file in zip((original, plain), files, strict=True):
                side.to_csv(file, index=False)
            found = answer_of(python, script, *files)
        quality[name] = found["score"]
        seconds.append((own, found["seconds"]))
        parts = ", ".join(f"{part} {score:.3f}" for part, score in found["parts"].items())
        print(f"{name:16} {worth[name]:6.3f} in {own:.1f} CPU s; SDMetrics {found['score']:.3f} ({parts})", end=" ")
        print(f"in {found['seconds']:.1f} CPU s", flush=True)
        measured.keep(**{f"{name}_sdmetrics": found["score"], f"{name}_sdmetrics_cpu_seconds": found["seconds"]})
    agreement = float(pd.Series(worth).corr(pd.Series(quality), method="spearman"))
    ours, theirs = np.median(seconds, axis=0)
    measured.keep(sdmetrics_rank_agreement=agreement, cpu_seconds=float(ours), sdmetrics_cpu_seconds=float(theirs))
    print(f"rank agreement {agreement:.3f}; medians {ours:.1f} and {theirs:.1f} CPU s")


def made_of(original: pd.DataFrame, others: pd.DataFrame, known: list[str], seed: int):
    """Yield the name of each release of a split, its table, and what the judge needs to read it."""
    yield "fresh_people", others, {}
    for method in ("gaussian_copula", "cart", "smooth_cart"):
        yield method, synthesize(original, method=method, seed=seed), {}
    made = anonymize(original, quasi_identifiers=known, k=10)
    yield "mondrian_10", made.table, {"model": made}


def coverage(name: str, table: pd.DataFrame, size: int, known: list[str], n_splits: int, measured: Measurements):
    """Count the splits whose interval contains the mean of the figure over all splits, and that by all others.

    The mean is that of a method that makes its releases of ever other people; "all others" judge the very release, and
    are the people of the table who are not in the split.
    """
    found: dict[str, list[list[list[float]]]] = {}
    for seed in range(n_splits):
        order = np.random.default_rng([seed, 16]).permutation(len(table))
        ends = [round(size * ORIGINALS), round(size * (ORIGINALS + OTHERS)), size]
        original, others, control, rest = (table.iloc[rows].reset_index(drop=True) for rows in np.split(order, ends))
        judge, of_rest = Judge(original, control), Judge(original, rest) if len(rest) else None
        for release, made, how in made_of(original, others, known, seed):
            scores = judge.assess(made, **how).scores
            by_rest = of_rest.assess(made, **how).scores if of_rest else {}
            figures = [
                [*(scores[figure + end] for end in ("", "_lower", "_upper")), by_rest.get(figure, np.nan)]
                for figure in SHOWN
            ]
            found.setdefault(release, []).append(figures)
    print(f"{name}, {n_splits} splits: covered, of means and of all others (mean; deviation, half the mean interval)")
    print(" " * 16, *(f"{figure:>34}" for figure in SHOWN), flush=True)
    for release, figures in found.items():
        value, lower, upper, by_rest = np.moveaxis(np.array(figures, float), 2, 0)
        mean = value.mean(axis=0)
        covered, of_all = (((lower <= true) & (true <= upper)).mean(axis=0) for true in (mean, by_rest))
        of_all[np.isnan(by_rest).any(axis=0)] = np.nan
        half = (upper - lower).mean(axis=0) / 2
        shown = zip(covered, of_all, mean, value.std(axis=0, ddof=1), half, strict=True)
        cells = [f"{own:.3f}, {rest:.3f} ({mid:.3f}; {sd:.3f}, {width:.3f})" for own, rest, mid, sd, width in shown]
        print(f"{release:16}", *(f"{cell:>34}" for cell in cells), flush=True)
        for words, shares in (("mean", covered), ("by_all_others", of_all)):
            if np.isnan(shares).any():
                continue
            key = f"{name}_{release}_covered_{words}"
            measured.keep(**{f"{key}_{figure}": float(own) for figure, own in zip(SHOWN, shares, strict=True)})
            own = float(shares[SHOWN.index("utility")])
            shown_words = f"{name}, {release}: {own:.3f} of the intervals cover utility, {words.replace('_', ' ')}"
            measured.check(f"{shown_words}; at least {COVERED}", own >= COVERED)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of adult_ori.csv and adult_control.csv")
    parser.add_argument("--large", action="store_true", help="also judge 10^6 originals")
    parser.add_argument("--trees", action="store_true", help="only compare the order with that of a discriminator")
    parser.add_argument("--coverage", type=int, metavar="N", help="only count how many intervals of N splits cover")
    parser.add_argument("--sdmetrics", type=Path, metavar="PYTHON", help="only compare with its SDMetrics")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("utility", options)
    if options.trees:
        beside_trees(options.data, measured)
        return measured.finish()
    if options.sdmetrics:
        beside_sdmetrics(options.data, options.sdmetrics, measured)
        return measured.finish()
    if options.coverage:
        adult = pd.concat([pd.read_csv(options.data / f"adult_{part}.csv") for part in ("ori", "control")])
        rand = load_rand_hie().drop(columns="person_id")
        coverage("rand", rand, len(rand), KNOWN_OF_RAND, options.coverage, measured)
        coverage("adult", adult, SPLIT_OF_ADULT, KNOWN, options.coverage, measured)
        return measured.finish()
    if options.large:
        large(options.data, measured)
    on_adult(options.data, measured)
    on_rand(measured)
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
