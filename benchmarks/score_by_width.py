"""Show how the score depends on the number of columns and on the size of combinations, also of other real people.

    python benchmarks/score_by_width.py --data ../shared/data [--json [FILE]]

Generated tables of 1,600 originals, a control of 400 and 1,600 synthetic records, all drawn from one population, with
columns of 2 to 12 values, and combinations of up to 3 columns; then the same with a fifth of the synthetic records
copied. Last, adult and the records that CTGAN made of it, by ``max_baseline_cols``: these scores must be those of the
documentation. The exit code is 1 if a bar is missed.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
from measurements import Measurements, add_json_option

from privacy_assets.mpucc.assess import assess_mpuccs

WIDTHS, COPIED = (4, 6, 8, 10, 12, 16, 26), 0.2
SHOWN = ("privacy_risk_score", "score_at_control_size", "score_of_control", "score_beyond_control")
ADULT = {1: 0.040, 2: 0.078, 3: 0.264, 15: 0.800}
"""Scores by ``max_baseline_cols`` in docs/mpucc.md."""
N_ORIGINAL, N_CONTROL, COMBINATION_SIZE = 1_600, 400, 3


def records(rng: np.random.Generator, n_rows: int, n_columns: int) -> pd.DataFrame:
    """Draw columns of 2, 5, 8 and 12 values, in which small numbers are more frequent, and which share a cause."""
    shared = rng.normal(size=n_rows)
    columns = {}
    for place in range(n_columns):
        n_values = (2, 5, 8, 12)[place % 4]
        score = 0.5 * shared + rng.normal(size=n_rows)
        columns[f"c{place}"] = np.clip((np.abs(score) * n_values / 2.5).astype(int), 0, n_values - 1)
    return pd.DataFrame(columns)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of adult.csv and adult_syn_ctgan.csv")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("score_by_width", options)
    print(f"columns, copied: {', '.join(SHOWN)}, leakage, baseline")
    for n_columns in WIDTHS:
        rng = np.random.default_rng(n_columns)
        original, control = records(rng, N_ORIGINAL, n_columns), records(rng, N_CONTROL, n_columns)
        honest = records(rng, N_ORIGINAL, n_columns)
        n_copied = int(COPIED * N_ORIGINAL)
        for name, synthetic in (("0", honest), ("20", pd.concat([original[:n_copied], honest[n_copied:]]))):
            found = assess_mpuccs(original, synthetic, control, max_baseline_cols=COMBINATION_SIZE)
            scores = found.scores
            shown = [scores[key] for key in SHOWN]
            texts = ["-" if value is None else f"{value:.3f}" for value in shown]
            print(
                f"{n_columns}, {name} %: {', '.join(texts)}, {found.control.leakage_detected}, "
                f"{scores['baseline_protection']:.6f}",
                flush=True,
            )
            measured.keep(
                **{
                    f"columns_{n_columns}_copied_{name}_{key}": value
                    for key, value in zip(SHOWN, shown, strict=True)
                    if value is not None
                }
            )
    tables = [pd.read_csv(options.data / name) for name in ("adult.csv", "adult_syn_ctgan.csv")]
    for size, documented in ADULT.items():
        score = assess_mpuccs(*tables, max_baseline_cols=size).scores["privacy_risk_score"]
        measured.keep(**{f"adult_{size}_score": score})
        measured.check(
            f"adult, up to {size} columns: {score:.4f}; as documented, {documented}", round(score, 3) == documented
        )
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
