"""Time candidate sets against a count with pandas, on adult, and alone on a million rows, in one go.

    python benchmarks/reidentification.py --data ../shared/data [--pandas-sets N | --skip-pandas] [--skip-million]
        [--json]

Adult: the 30,162 complete rows, eight quasi-identifiers, released by Mondrian with k = 5: all sets of up to three known
columns and the full set, on one thread. Pandas counts with equal cells and equal originals once; ``--pandas-sets`` lets
it count for every n-th set only, and compares with the same ones. A million rows: drawn from adult, with an income of
many values instead of the race; the full set. Every measurement runs in a process of its own, which reports its seconds
(making the release not counted) and its peak memory. The exit code is 1 if a bar is missed.
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
    command = [sys.executable, __file__, "--child", kind, str(data), str(every)]
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode:
        raise SystemExit(f"{kind} failed:\n{found.stderr[-2000:]}")
    return json.loads(found.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("PRIVACY_ASSETS_SHARED", REPOSITORY.parent / "shared"))
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder with adult.csv")
    parser.add_argument("--pandas-sets", type=int, default=1, help="count with pandas for every n-th set")
    parser.add_argument("--skip-pandas", action="store_true")
    parser.add_argument("--skip-million", action="store_true")
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
    return measured.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        sys.exit(main())
