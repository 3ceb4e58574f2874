"""Time candidate sets against a count with pandas, on adult, and whole assessments up to a million rows, in one go.

    python benchmarks/reidentification.py --data ../shared/data [--pandas-sets N | --skip-pandas] [--skip-million]
        [--skip-assessments] [--json]

Adult: the 30,162 complete rows, eight quasi-identifiers, released by Mondrian with k = 5: all sets of up to three known
columns and the full set, on one thread. Pandas counts with equal cells and equal originals once; ``--pandas-sets`` lets
it count for every n-th set only, and compares with the same ones. A million rows: drawn from adult, with an income of
many values instead of the race; the full set. Whole assessments: generated people with several records each, eight
quasi-identifiers, k = 5 people, with the curve by default, in CPU seconds; and, at 20,000 rows, how many of 100 samples
have the whole exact curve within their intervals. Every measurement runs in a process of its own, which reports its
seconds (making the release not counted) and its peak memory. The exit code is 1 if a bar is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

from measurements import Measurements, add_json_option
from memory import peak_mib

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

COLUMNS = [
    "age",
    "workclass",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
]
K, MAX_KNOWN, N_MILLION = 5, 3, 1_000_000
ASSESSMENT_BARS = {100_000: 6, 1_000_000: 60}
N_EXACT, N_SAMPLED, N_SEEDS, SEEDS_BAR = 20_000, 2_000, 100, 93
SECONDS_BAR, RATIO_BAR, MILLION_SECONDS_BAR, MILLION_GIB_BAR = 10, 50, 60, 6


def adult(data: str):
    import pandas as pd

    return pd.read_csv(Path(data) / "adult.csv").dropna().reset_index(drop=True)[COLUMNS]


def million(data: str):
    """A million rows of many different boxes: ages in months, and an income instead of the race."""
    import numpy as np

    rng = np.random.default_rng(0)
    table = adult(data).sample(N_MILLION, replace=True, random_state=0, ignore_index=True)
    table["age"] = table["age"] * 12 + rng.integers(0, 12, N_MILLION)
    table["race"] = np.round(rng.lognormal(10, 1, N_MILLION)).astype(np.int64)
    return table.rename(columns={"race": "income"})


def people(n_rows: int):
    """Skewed and mixed columns of people, four records for three of them."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    n_people = n_rows * 3 // 4
    codes = {
        "zip": rng.zipf(1.3, n_people) % 10_000,
        "country": rng.zipf(1.8, n_people) % 30,
        "occupation": rng.zipf(1.4, n_people) % 40,
        "marital": rng.integers(0, 5, n_people),
        "sex": rng.choice(3, n_people, p=[0.5, 0.49, 0.01]),
    }
    table = pd.DataFrame({name: pd.Categorical(own).rename_categories(str) for name, own in codes.items()})
    table["age"] = rng.gamma(6, 7, n_people).clip(0, 99).astype(int)
    table["education"] = np.clip(rng.normal(4, 2, n_people), 0, 7).astype(int)
    table["person"] = np.arange(n_people)
    rows = rng.permutation(np.concatenate([np.arange(n_people), rng.integers(0, n_people, n_rows - n_people)]))
    table = table.iloc[rows].reset_index(drop=True)
    table["admission"] = np.datetime64("2022-01-01") + rng.integers(0, 1500, n_rows).astype("timedelta64[D]")
    return table


def assessment_child(n_rows: str, n_seeds: str) -> None:
    """Assess in this process; print CPU seconds, peak memory, boxes, sets, and the seeds whose intervals hold."""
    from memory import start_peak

    from privacy_assets import anonymize, assess_reidentification

    def released(n: int):
        table = people(n)
        names = [name for name in table if name != "person"]
        return table, anonymize(table, quasi_identifiers=names, k=K, subject="person", n_threads=1)

    table, made = released(2_000)
    assess_reidentification(table, made, curve_sample=500, n_threads=1)
    table, made = released(int(n_rows))
    before = start_peak()
    start = time.process_time()
    found = assess_reidentification(table, made, n_threads=1, curve_sample=None if int(n_seeds) else 10_000)
    seconds, peak = time.process_time() - start, peak_mib() - before
    n_within = widest = 0
    exact = {frozenset(row["known"]): row for row in found.curve.to_dict("records")}
    figures = ["mean_reidentification_probability", "mean_nonspecificity", "share_of_singletons", "share_below_k"]
    for seed in range(int(n_seeds)):
        drawn = assess_reidentification(table, made, curve_sample=N_SAMPLED, seed=seed, n_threads=1).curve
        # Where the greedy chain of a sample is another one, its sets are compared if the exact chain tried them.
        pairs = [(row, exact[own]) for row in drawn.to_dict("records") if (own := frozenset(row["known"])) in exact]
        n_within += all(
            row[f"{name}_low"] - 1e-12 <= of_all[name] <= row[f"{name}_high"] + 1e-12
            for row, of_all in pairs
            for name in figures
        )
        widest = max(widest, *(row[f"{figures[0]}_high"] - row[f"{figures[0]}_low"] for row, _ in pairs))
    print(json.dumps([seconds, peak / 1024, len(made.classes), len(found.curve), n_within, widest]))


def known_sets(columns):
    sizes = [*range(1, MAX_KNOWN + 1), len(columns)]
    return [list(known) for size in sizes for known in combinations(columns, size)]


def plain_masks(model):
    from privacy_assets.columns.masks import Interval

    return {
        name: ("interval", mask.low, mask.high, mask.includes_high)
        if isinstance(mask, Interval)
        else ("set", mask.column)
        for name, mask in model.masks.items()
    }


def child(kind: str, data: str, every: str) -> None:
    """Measure in this process; print seconds, a checksum of the figures, peak memory, boxes."""
    from privacy_assets.anonymization.anonymize import anonymize
    from privacy_assets.reidentification.candidate_index import CandidateIndex

    table = million(data) if kind == "million" else adult(data)
    columns = list(table)
    made = anonymize(table, quasi_identifiers=columns, k=K)
    sets = [columns] if kind == "million" else known_sets(columns)[:: int(every)]
    if kind == "pandas":
        from tests.reference.reidentification import sizes_with_pandas

        masks = plain_masks(made.model)
        start = time.perf_counter()
        means = [float((1 / sizes_with_pandas(table, made.table, masks, known)).mean()) for known in sets]
    else:
        small = table[:1000]
        warm = CandidateIndex.of_anonymization(small, anonymize(small, quasi_identifiers=columns, k=K), n_threads=1)
        warm.sizes(columns), warm.sizes(columns[:1])
        start = time.perf_counter()
        index = CandidateIndex.of_anonymization(table, made, n_threads=1)
        means = [float((1 / index.sizes(known)).mean()) for known in sets]
    seconds = time.perf_counter() - start
    print(json.dumps([seconds, means, peak_mib() / 1024, len(made.classes), len(sets)]))


def measure(kind: str, data: Path, every: int = 1):
    return run_child("--child", kind, str(data), str(every))


def run_child(*arguments: str):
    command = [sys.executable, __file__, *arguments]
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode:
        raise SystemExit(f"{arguments} failed:\n{found.stderr[-2000:]}")
    return json.loads(found.stdout.splitlines()[-1])


def measure_assessments(measured: Measurements) -> None:
    """Measure whole assessments with their curves, and how many samples contain the exact curve."""
    import numpy as np

    taken = []
    for n_rows, bar in ASSESSMENT_BARS.items():
        seconds, peak, n_boxes, n_sets, _, _ = run_child("--assess", str(n_rows), "0")
        print(f"{n_rows} rows: {n_boxes} boxes, {n_sets} sets: {seconds:.1f} CPU s, {peak:.2f} GiB above the input")
        measured.keep(**{f"assessment_{n_rows}_cpu_seconds": seconds, f"assessment_{n_rows}_gib": peak})
        measured.check(f"an assessment of {n_rows} rows takes {seconds:.1f} CPU s; at most {bar}", seconds <= bar)
        taken.append(seconds)
    exponent = float(np.log10(taken[1] / taken[0]))
    measured.keep(assessment_exponent=exponent)
    measured.check(f"exponent from 10^5 to 10^6 rows is {exponent:.2f}; at most 1.2", exponent <= 1.2)
    seconds, _, _, n_sets, n_within, widest = run_child("--assess", str(N_EXACT), str(N_SEEDS))
    words = (
        f"the exact curve ({N_EXACT} rows, {n_sets} sets) is within all intervals of {n_within} of {N_SEEDS} samples"
    )
    print(f"{words}; the widest of a mean probability is {widest:.4f}; the exact curve took {seconds:.1f} CPU s")
    measured.keep(samples_with_the_exact_curve=n_within, widest_interval=widest, exact_20000_cpu_seconds=seconds)
    measured.check(f"{words}; at least {SEEDS_BAR}", n_within >= SEEDS_BAR)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("PRIVACY_ASSETS_SHARED", REPOSITORY.parent / "shared"))
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder with adult.csv")
    parser.add_argument("--pandas-sets", type=int, default=1, help="count with pandas for every n-th set")
    parser.add_argument("--skip-pandas", action="store_true")
    parser.add_argument("--skip-million", action="store_true")
    parser.add_argument("--skip-assessments", action="store_true")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("reidentification", options)
    seconds, means, peak, n_boxes, n_sets = measure("ours", options.data)
    print(f"adult: {n_boxes} boxes, {n_sets} sets of known columns, one thread: {seconds:.2f} s, {peak:.2f} GiB")
    measured.keep(adult_seconds=seconds, adult_peak_gib=peak, adult_boxes=n_boxes, adult_sets=n_sets)
    measured.check(f"{n_sets} sets take {seconds:.2f} s; under {SECONDS_BAR} s", seconds < SECONDS_BAR)
    if not options.skip_pandas:
        every = options.pandas_sets
        peer_seconds, peer_means, peer_peak, _, n_peer_sets = measure("pandas", options.data, every)
        own_seconds = seconds if every == 1 else measure("ours", options.data, every)[0]
        ratio = peer_seconds / own_seconds
        print(
            f"pandas, {n_peer_sets} sets: {peer_seconds:.1f} s, {peer_peak:.2f} GiB; ours {own_seconds:.2f} s: "
            f"{ratio:.0f} times"
        )
        measured.keep(pandas_seconds=peer_seconds, pandas_peak_gib=peer_peak, seconds_of_the_same_sets=own_seconds)
        differing = sum(abs(a - b) > 1e-12 for a, b in zip(means[::every], peer_means, strict=True))
        measured.check(f"{ratio:.0f} times faster than pandas; at least {RATIO_BAR}", ratio >= RATIO_BAR)
        measured.check(f"figures of {differing} sets differ from pandas; none", differing == 0)
    if not options.skip_million:
        seconds, means, peak, n_boxes, _ = measure("million", options.data)
        print(f"{N_MILLION} rows: {n_boxes} boxes, the full set, one thread: {seconds:.1f} s, {peak:.2f} GiB")
        measured.keep(million_seconds=seconds, million_peak_gib=peak, million_boxes=n_boxes)
        is_met = seconds < MILLION_SECONDS_BAR and peak < MILLION_GIB_BAR
        words = f"{N_MILLION} rows take {seconds:.1f} s and {peak:.2f} GiB"
        measured.check(f"{words}; under {MILLION_SECONDS_BAR} s and {MILLION_GIB_BAR} GiB", is_met)
    if not options.skip_assessments:
        measure_assessments(measured)
    return measured.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    elif sys.argv[1:2] == ["--assess"]:
        assessment_child(*sys.argv[2:])
    else:
        sys.exit(main())
