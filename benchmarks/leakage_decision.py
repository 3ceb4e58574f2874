"""Compare the two tests of leakage: the pooled disclosure test, and the three intervals of the mpUCC assessment.

    python benchmarks/leakage_decision.py --data ../shared/data [--seeds N] [--splits N] [--tables NAME ...]

Tables and generators are those of `disclosure_tables.py`. Both tests get the same files. For each generator that leaks
it shows how many of ``--seeds`` files each test flags, and for honest splits how many of ``--splits`` it flags although
nothing leaks. The bar: over all tables together, the pooled test flags at least as many files of each generator that a
release must be refused for. Fewer copies than that and the copula have no bar.
"""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
from disclosure_tables import INNOCENT, LEAKING, MUST_BE_FOUND, SIZES_TO_DETECT, divided, sizes_of, tables
from measurements import Measurements, add_json_option, figure_name

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.mpucc.assess import assess_mpuccs

REPOSITORY = Path(__file__).resolve().parent.parent


def decide(original: pd.DataFrame, synthetic: pd.DataFrame, control: pd.DataFrame, seed: int) -> dict[str, bool]:
    """Return which of the tests flag a synthetic table."""
    pooled = assess_disclosure(original, synthetic, control, seed=seed).scores["leakage_detected"]
    intervals = assess_mpuccs(original, synthetic, control, max_baseline_cols=3).control
    assert intervals is not None
    return {"pooled": pooled is True, "intervals": intervals.leakage_detected is True}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("PRIVACY_ASSETS_SHARED", REPOSITORY.parent / "shared"))
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder with the files of adult")
    parser.add_argument("--seeds", type=int, default=3, help="files of each table and leaking generator")
    parser.add_argument("--splits", type=int, default=3, help="honest splits of each table and generator")
    parser.add_argument("--tables", nargs="*", default=list(SIZES_TO_DETECT), help="names of the tables")
    parser.add_argument("--kinds", nargs="*", default=list(LEAKING), help="generators that leak; default: all")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("leakage_decision", options)
    made = {name: make for name, make in tables(options.data.resolve()).items() if name in options.tables}
    by_kind: dict[str, Counter[str]] = {kind: Counter() for kind in LEAKING}
    for name, make in made.items():
        for place, (kind, generate) in enumerate(LEAKING.items()):
            if kind not in options.kinds:
                continue
            found: Counter[str] = Counter()
            for seed in range(options.seeds):
                rng = np.random.default_rng([seed, place, 17])
                original, control, others = divided(make(seed), SIZES_TO_DETECT[name], rng)
                found.update(decide(original, generate(original, others, rng), control, seed))
            by_kind[kind] += found
            print(f"{name:>10}, {kind:>16}: pooled {found['pooled']}, intervals {found['intervals']}", flush=True)
    honest: Counter[str] = Counter()
    for make in made.values():
        for place, generate in enumerate(INNOCENT.values()):
            for seed in range(options.splits):
                rng = np.random.default_rng([seed, place, 18])
                table = make(seed)
                original, control, others = divided(table, sizes_of(len(table)), rng)
                honest.update(decide(original, generate(others, len(original), rng), control, seed))
    n_honest = len(made) * len(INNOCENT) * options.splits
    print(f"honest splits flagged of {n_honest}: pooled {honest['pooled']}, intervals {honest['intervals']}")
    measured.keep(honest_splits=n_honest, honest_pooled=honest["pooled"], honest_intervals=honest["intervals"])
    for kind in options.kinds:
        found = by_kind[kind]
        key = figure_name(kind)
        measured.keep(**{f"pooled_{key}": found["pooled"], f"intervals_{key}": found["intervals"]})
        words = f"{kind}: {found['pooled']} by the pooled test, {found['intervals']} by intervals"
        if kind in MUST_BE_FOUND:
            measured.check(f"{words}; at least as many", found["pooled"] >= found["intervals"])
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
