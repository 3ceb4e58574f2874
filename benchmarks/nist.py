"""Judge what others made of a table of the American Community Survey, next to the figures that NIST published for it.

    python benchmarks/nist.py --data DIRECTORY [--null N] [--json [FILE]]

The directory has the national excerpt of 2019 (27,253 people of 20 areas, 24 columns), six submissions to NIST's
Collaborative Research Cycle as CSV files, and ``nist_figures.json`` with the published figures. All submissions but the
subsample were made from everybody, so they have no control: there are ranks, and copies beyond people, and a refusal.

Bars: rank correlations of `utility` with NIST's figures, of `utility_by_group` (areas) with its k-marginal score on the
submissions of more than 20 columns; copies beyond people of the subsample and of PRAM, and not of the others; the
subsample is found next to its true control, the people who are not in it. Reported: how often divisions of the people
who are not in it are flagged, next to it. The exit code is 1 if a bar is missed.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from benchmarks.measurements import Measurements, add_json_option
from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.mpucc.copies_beyond_people import COPIES, copies_beyond_people
from privacy_assets.mpucc.preprocess import preprocess
from privacy_assets.utility.assess import assess_utility

SUBMISSIONS = {
    "subsample_40pcnt_all": "40 % of the people, verbatim",
    "cart_cf21": "CART (rsynthpop)",
    "mostlyai_sd_platform": "MOSTLY AI",
    "mwem_pgm": "MWEM+PGM, epsilon 1",
    "pategan_e_10_all": "PATE-GAN, epsilon 10",
    "pram_default": "PRAM (sdcMicro)",
}
SUBSAMPLE, TARGET, GROUP = "subsample_40pcnt_all", "national2019", "PUMA"
COPYING = (SUBSAMPLE, "pram_default")
NUMBERS = ("AGEP", "NOC", "NPF", "DENSITY", "PINCP", "PINCP_DECILE", "POVPIP", "PWGTP", "WGTP")
N_PEOPLE, WIDE = 5_000, 20
OURS = ("utility", "utility_by_group", *COPIES[:4])
THEIRS = {"k_marginal": 1, "pmse": 1, "unique_exact_matches_percent": 0.01}
"""NIST's figures, and what turns them into shares."""


def read(data: Path, name: str) -> pd.DataFrame:
    """Return a file with the columns of the target; N is missing, codes are text, amounts are numbers."""
    columns = pd.read_csv(data / f"{TARGET}.csv", nrows=0).columns
    table = pd.read_csv(data / f"{name}.csv", na_values="N", dtype={GROUP: str}, low_memory=False)
    table = table[[column for column in columns if column in table]].copy()
    for column in set(table.columns) - {GROUP}:
        number = pd.to_numeric(table[column], errors="coerce")
        code = number.astype(float) if column in NUMBERS else number.astype("Int64").astype(str).where(number.notna())
        table[column] = code
    return table


def board(data: Path, people: pd.DataFrame, published: dict, measured: Measurements) -> pd.DataFrame:
    """Print and keep a row for each submission."""
    control = people.sample(frac=0.5, random_state=0)  # Part of the people, so the figures are ranks only.
    rows = {}
    for name, words in SUBMISSIONS.items():
        made = read(data, name)
        columns = list(made.columns)
        group = GROUP if GROUP in columns else None
        worth = assess_utility(people[columns], made, control[columns], group=group).scores
        tables = preprocess(people[columns], made)
        copies = copies_beyond_people(tables.original, tables.synthetic, tables.n_codes, 0.95)
        row = {
            "columns": len(columns),
            **{each: value for each in OURS if (value := {**worth, **copies}.get(each)) is not None},
        }
        row |= {each: factor * published[name][each] for each, factor in THEIRS.items()}
        rows[name] = row
        measured.keep(**{f"{name}_{each}": value for each, value in row.items()})
        print(f"{words:30}", ", ".join(f"{each} {value:.4g}" for each, value in row.items()), flush=True)
    return pd.DataFrame(rows).T


def ranks(table: pd.DataFrame, measured: Measurements) -> None:
    wide = table[table["columns"] > WIDE]
    for which, rows, own, theirs, bar, is_known_missed in (
        ("all", table, "utility", "pmse", -0.9, False),
        ("wide", wide, "utility", "pmse", -0.95, False),
        ("all", table, "utility", "k_marginal", 0.7, False),
        ("wide", wide, "utility_by_group", "k_marginal", 0.9, False),
    ):
        found = float(spearmanr(rows[own], rows[theirs])[0])
        measured.keep(**{f"spearman_{own}_{theirs}_{which}": found})
        is_met = found <= bar + 1e-9 if bar < 0 else found >= bar - 1e-9
        words = f"rank correlation of {own} with {theirs} over {len(rows)} submissions is {found:.3f}"
        measured.check(f"{words}; {'at most' if bar < 0 else 'at least'} {bar}", is_met, is_known_missed)


def copying(table: pd.DataFrame, measured: Measurements) -> None:
    for name, row in table.iterrows():
        beyond, low = row[COPIES[2]], row[COPIES[3]]
        if name in COPYING:
            released = row[COPIES[1]]
            measured.check(f"{name}: {released:.1%} of unique people are released; at least 30 %", released >= 0.3)
            measured.check(f"{name}: blocked, at least {low:.1%} beyond people; above 0", low > 0)
        else:
            measured.check(f"{name}: {beyond:.2%} beyond people; at most 0.2 %", beyond <= 0.002)


def of_subsample(data: Path, people: pd.DataFrame, n_null: int, measured: Measurements) -> None:
    """Test the subsample next to its true control, and next to divisions of people who are not in it."""
    made = read(data, SUBSAMPLE)
    keys = [
        pd.util.hash_pandas_object(each.astype(object).fillna("N").astype(str), index=False) for each in (people, made)
    ]
    is_in = keys[0].isin(keys[1]).to_numpy()
    inside, outside = people[is_in], people[~is_in]
    measured.keep(people_in_subsample=int(is_in.sum()))
    found = assess_disclosure(
        inside.sample(N_PEOPLE, random_state=1), made, outside.sample(N_PEOPLE, random_state=1)
    ).scores
    p = found["adjusted_p_value"]
    print(f"subsample next to its control: leakage {found['leakage_detected']}, p {p:.4f}", flush=True)
    measured.keep(subsample_p_value=p)
    measured.check(f"the subsample is found next to its control, p {p:.4f}; at most .005", p <= 0.005)
    flagged = 0
    for seed in range(n_null):
        drawn = outside.iloc[np.random.default_rng(seed).permutation(len(outside))[: 2 * N_PEOPLE]]
        flagged += (
            assess_disclosure(drawn.iloc[:N_PEOPLE], made, drawn.iloc[N_PEOPLE:]).scores["leakage_detected"] is True
        )
    print(f"null divisions flagged: {flagged} of {n_null}")
    measured.keep(null_divisions=n_null, null_divisions_flagged=flagged)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the excerpt, submissions and figures")
    parser.add_argument("--null", type=int, default=40, metavar="N", help="divisions of people not in the subsample")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("nist", options)
    people = read(options.data, TARGET)
    published = json.loads((options.data / "nist_figures.json").read_text(encoding="utf-8"))["submissions"]
    table = board(options.data, people, published, measured)
    ranks(table, measured)
    copying(table, measured)
    of_subsample(options.data, people, options.null, measured)
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
