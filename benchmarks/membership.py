"""Membership on both sides: on adult, in repeated splits, and up to a million rows.

    python benchmarks/membership.py --data ../shared/data [--skip-million] [--json]

Adult, 13 columns: 6,000 people anonymized by 8 quasi-identifiers, 3,000 others as control; 1,500 originals and 750
controls for synthetic records. Each figure is compared with the interval that was measured before the package had it.
40 splits: 2,000 people anonymized, 1,000 others as control; the interval should contain the advantage over all people
who are in neither. 20 releases: the range that leaves people out should contain the share of the control. 40 samples of
1,000 originals and 500 controls should have the advantage of all in their interval. The exit code is 1 if a bar is
missed.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from disclosure_tables import interpolated, made_by
from measurements import Measurements, add_json_option
from memory import peak_mib

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from reidentification import million  # noqa: E402

from privacy_assets import anonymize, assess_disclosure, assess_membership  # noqa: E402
from privacy_assets.disclosure.membership import advantage_of  # noqa: E402

KNOWN = ["age", "workclass", "education", "marital_status", "occupation", "race", "sex", "native_country"]
NUMBERS = ["hours_per_week", "capital_gain", "capital_loss"]
BEFORE = {2: (0.88, 0.90), 5: (0.73, 0.76), 11: (0.59, 0.62), 50: (0.38, 0.42)}
SYNTHETIC_BEFORE = {
    "other people": (-0.06, 0.04),
    "copies of 1 %": (-0.06, 0.05),
    "copies of 3 %": (-0.04, 0.07),
    "interpolated": (0.56, 0.63),
    "cart": (0.22, 0.32),
    "smooth_cart": (0.04, 0.14),
    "gaussian_copula": (0.01, 0.11),
}
COVERED_BAR, CONTAINED_BAR, N_SPLITS, SECONDS_BAR, N_MILLION = 36, 18, 40, 60, 1_000_000


def adult(data: Path) -> pd.DataFrame:
    table = pd.read_csv(data / "adult.csv", skipinitialspace=True)
    table.columns = [name.replace(".", "_").replace("-", "_") for name in table]
    return table


def released(source: pd.DataFrame, known: list[str] = KNOWN, k: int = 5, **settings):
    others = [name for name in source if name not in known]
    return anonymize(source, quasi_identifiers=known, k=k, sensitive=others, **settings)


def in_bands(table: pd.DataFrame) -> pd.DataFrame:
    hours = pd.cut(table["hours_per_week"], [-1, 34, 40, 200]).astype(str)
    return table.assign(hours_per_week=hours, **{name: (table[name] > 0).astype(int) for name in NUMBERS[1:]})


def of_anonymized(found: Measurements, people: pd.DataFrame) -> None:
    people = people.sample(9_000, random_state=0, ignore_index=True)
    source, control = people[:6_000], people[6_000:].reset_index(drop=True)
    few = [*NUMBERS[1:], "relationship"]
    cases = {f"k = {k}": (source, control, KNOWN, {"k": k}, BEFORE[k]) for k in BEFORE}
    cases |= {
        "numbers generalized": (source, control, [*KNOWN, *NUMBERS], {}, (0.56, 0.59)),
        "numbers in bands": (in_bands(source), in_bands(control), KNOWN, {}, (0.57, 0.60)),
        "fewer columns": (source.drop(columns=few), control.drop(columns=few), KNOWN, {}, (0.62, 0.66)),
        "two incomes": (source, control, KNOWN, {"l_diversity": {"income": 2}, "max_suppression": 0.1}, (0.59, 0.62)),
    }
    print("anonymized                found control | advantage [95 %]        left-out range  quasi-identifiers")
    for words, (own, others, known, settings, (low, high)) in cases.items():
        scores = assess_membership(released(own, known, **settings), own, others).scores
        value, ends = scores["membership_advantage"], scores["membership_advantage_interval"]
        left = [scores["membership_found"] - end for end in reversed(scores["membership_left_out_interval"])]
        print(
            f"{words:25s} {scores['membership_found']:.3f} {scores['membership_found_control']:.3f}   | {value:.3f} "
            f"[{ends[0]:.3f}, {ends[1]:.3f}]   {left[0]:.2f} to {left[1]:.2f}    "
            f"{scores['membership_advantage_of_quasi_identifiers']:.3f}"
        )
        found.keep(**{f"advantage of {words}": value})
        found.check(f"{words}: {low:g} to {high:g}", low - 0.005 <= value <= high + 0.005)
    half = source.sample(frac=0.5, random_state=1)
    rest, of_half = source.drop(half.index).reset_index(drop=True), half.reset_index(drop=True)
    classes = released(of_half)
    shares = [assess_membership(classes, of_half, each).scores["membership_found_control"] for each in (rest, control)]
    value = (1 + shares[0]) / 2 - shares[1]
    print(f"{'a random half released':25s} control {shares[1]:.3f}, advantage {value:.3f}")
    found.keep(advantage_of_a_half=value)
    found.check("a random half released: 0.37 to 0.41", 0.365 <= value <= 0.415)


def of_splits(found: Measurements, people: pd.DataFrame) -> None:
    rng = np.random.default_rng(3)
    n_covered = n_contained = 0
    for split in range(N_SPLITS):
        order = rng.permutation(len(people))
        source, control, others = (
            people.iloc[part].reset_index(drop=True) for part in (order[:2_000], order[2_000:3_000], order[3_000:])
        )
        classes = released(source, k=(3, 5, 10, 20)[split % 4])
        scores, truth = (assess_membership(classes, source, each).scores for each in (control, others))
        low, high = scores["membership_advantage_interval"]
        n_covered += low <= truth["membership_advantage"] <= high
        if split < N_SPLITS // 2:
            low, high = scores["membership_left_out_interval"]
            n_contained += low <= scores["membership_found_control"] <= high
    print(f"intervals of the control that contain the advantage over all others: {n_covered} of {N_SPLITS}")
    print(f"left-out ranges that contain the share of the control: {n_contained} of {N_SPLITS // 2}")
    found.keep(covered_splits=n_covered, contained_shares=n_contained)
    found.check(f"at least {COVERED_BAR} of {N_SPLITS} intervals contain it", n_covered >= COVERED_BAR)
    found.check(f"at least {CONTAINED_BAR} of {N_SPLITS // 2} ranges contain it", n_contained >= CONTAINED_BAR)


def of_synthetic(found: Measurements, people: pd.DataFrame) -> None:
    people = people.sample(frac=1, random_state=5, ignore_index=True)[:6_000]
    people = people.astype(dict.fromkeys(people.select_dtypes(["object", "string"]), object))
    original, control, others = people[:1_500], people[1_500:2_250], people[2_250:3_750].reset_index(drop=True)
    rng = np.random.default_rng(0)

    def copies(n: int) -> pd.DataFrame:
        return pd.concat([original.sample(n, random_state=0), others[n:]], ignore_index=True)

    made = {"other people": others, "copies of 1 %": copies(15), "copies of 3 %": copies(45)}
    made["interpolated"] = interpolated(original, 1_500, rng)
    made |= {name: made_by(name, original, 1_500, rng) for name in ("cart", "smooth_cart", "gaussian_copula")}
    print("synthetic                 advantage [95 %]          at 1 %   exposed (by chance)")
    for words, synthetic in made.items():
        scores = assess_disclosure(original, synthetic, control).scores
        value, (low, high) = scores["membership_advantage"], scores["membership_advantage_interval"]
        exposed, chance = scores["most_exposed_people"], scores["most_exposed_people_by_chance"]
        share = scores["membership_tpr_at_1_percent"]
        print(
            f"{words:25s} {value:+.3f} [{low:+.3f}, {high:+.3f}]   {share:.3f}    {exposed} ({chance:.1f})", flush=True
        )
        found.keep(**{f"advantage of {words}": value, f"exposed of {words}": exposed})
        low, high = SYNTHETIC_BEFORE[words]
        found.check(f"{words}: {low:g} to {high:g}", low - 0.005 <= value <= high + 0.005)


def of_samples(found: Measurements) -> None:
    rng, n_covered = np.random.default_rng(4), 0
    originals, controls = rng.normal(0.3, 1.2, 100_000).round(1), rng.normal(0, 1, 100_000).round(1)
    truth = advantage_of(originals, controls).value
    for _ in range(N_SPLITS):
        estimate = advantage_of(rng.choice(originals, 1_000), rng.choice(controls, 500))
        n_covered += estimate.low <= truth <= estimate.high
    print(f"intervals of samples that contain the advantage of all: {n_covered} of {N_SPLITS}")
    found.keep(covered_samples=n_covered)
    found.check(f"at least {COVERED_BAR} of {N_SPLITS} samples have it in their interval", n_covered >= COVERED_BAR)


def of_a_million(found: Measurements, data: Path) -> None:
    rng = np.random.default_rng(1)
    table = million(str(data))
    table["hours"], table["illness"] = rng.integers(1, 99, len(table)), rng.zipf(1.5, len(table)) % 1_000
    control = table.sample(N_MILLION // 4, random_state=0, ignore_index=True)
    control["income"], control["hours"] = control["income"] + 1, rng.integers(1, 99, len(control))
    classes = released(table, [name for name in table if name not in ("hours", "illness")])
    began = time.process_time()
    assess_membership(classes, table, control, n_threads=1)
    seconds = time.process_time() - began
    print(f"a million rows: {seconds:.1f} CPU s, peak {peak_mib() / 1024:.1f} GiB")
    found.keep(cpu_seconds_of_a_million=seconds)
    found.check(f"a million rows in at most {SECONDS_BAR} CPU s", seconds <= SECONDS_BAR)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory with adult.csv")
    parser.add_argument("--skip-million", action="store_true")
    add_json_option(parser)
    options = parser.parse_args()
    found = Measurements("membership", options)
    people = adult(options.data)
    whole = people.dropna().drop(columns=["fnlwgt", "education_num", "educational_num"], errors="ignore")
    of_anonymized(found, whole)
    of_splits(found, whole)
    of_synthetic(found, people)
    of_samples(found)
    if not options.skip_million:
        of_a_million(found, options.data)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
