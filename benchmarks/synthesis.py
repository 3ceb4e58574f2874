"""Count how often the Gaussian copula is flagged although it does not copy, and the loss of its margins.

    python benchmarks/synthesis.py --data ../shared/data [--splits N] [--before N] [--first SEED] [--admitted N]
        [--decided N] [--large N] [--json [FILE]]

Five tables: adult, and four generated ones: prices in steps of 0.05, purchases of 1.25 records a person, stays in a
hospital, and a small survey. Each is split at random, the Gaussian copula learns from the larger part, and the control
comparison says whether it leaks (combinations of up to 2 columns, where margins show most). Its three intervals of 95 %
may flag 7.5 % of the splits by chance. Margins are compared with those without smoothing (``smoothing=0``) on the first
``--before`` splits, of which the number flagged without smoothing is printed as well. A sixth table, purchases of 250
items in 400 postal areas, has no bar: the copula does not smooth frequencies of text, so that many values of few people
are still flagged.

With ``--admitted N`` only this: the RAND Health Insurance Experiment and adult, both in bands as their owners would
generalize them, are split N times, and synthesized by each built-in method (the copula and CART on the first three
splits). `smooth_cart`, with larger leaves for adult, must be worth 0.90 on average, and meet the limit on the score of
`internal_analytics` and of `research_sharing`, and not be detected to leak, on all but one of 20 splits each. No method
here is worth 0.90 on RAND and leaks in so few splits (``docs/synthetic.md``): there the last two bars are missed, are
shown as missed, and do not set the exit code.

With ``--decided N`` only this: how often the test of disclosure, by which the gate decides, flags the copula in N
splits of RAND, in bands and exact, and by which criteria. The bar is what a test of 5 % keeps in 99 % of the cases.

With ``--large N`` only this: time and memory of `smooth_cart` for N rows of 15 columns of all kinds, of which those of
its trees alone are compared with those of scikit-learn on the same classes, in the same run. Bars for 1,000,000 rows:
40 CPU seconds and 1.5 GB at the peak; for any number, the same number of leaves, and trees in less time.

The exit code is 1 if a bar is missed.
"""

import argparse
import math
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
from measurements import Measurements, add_json_option
from scipy.stats import binom

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.examination import LEVEL
from privacy_assets.examples.rand_hie import load_rand_hie
from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.release.policy import Policy
from privacy_assets.synthesis import smooth_cart
from privacy_assets.synthesis.kernels.class_tree import LEAF, grow_tree
from privacy_assets.synthesis.split import split_records
from privacy_assets.synthesis.synthesize import synthesize
from privacy_assets.utility.assess import Judge
from tests.synthesis.fidelity import marginals_and_pairs

NOMINAL_SHARE, MARGINS_BAR, COMBINATION_SIZE = 0.075, 0.99, 2
PERSON = "person"
LEAST_WORTH, MOST_REFUSED, ADMITTED_SIZE, OTHERS_SPLITS = 0.90, 0.05, 3, 3
LARGE_SECONDS, LARGE_GB = 40, 1.5
SMOOTHING_OF_ADULT = 5.1
"""In a large table of few kinds of records, copies by coincidence are detected with the default of 1.75."""
ADULT_BANDS = {
    "age": (17, 25, 35, 45, 55, 65),
    "hours_per_week": (0, 20, 35, 40, 41, 50, 60),
    "capital_gain": (0, 1, 5_000),
    "capital_loss": (0, 1),
}
"""Lower limits of the bands."""


def prices(seed: int, n: int = 7_000) -> pd.DataFrame:
    """Customers of a telephone company: prices in steps of 0.05, many of them paid by few people."""
    rng = np.random.default_rng(seed)
    plans = [20.0, 45.0, 55.0, 70.0, 80.0, 90.0, 100.0, 110.0]
    plan = rng.choice(plans, n, p=[0.22, 0.1, 0.1, 0.16, 0.16, 0.12, 0.09, 0.05])
    monthly = np.round((plan + rng.normal(0, 1.8, n)) / 0.05) * 0.05
    tenure = np.minimum(72, rng.gamma(0.8, 45, n).astype(int))
    return pd.DataFrame(
        {
            "gender": rng.choice(["F", "M"], n),
            "senior": rng.integers(0, 2, n) * (rng.random(n) < 0.3),
            "partner": rng.random(n) < 0.5,
            "internet": np.where(plan < 25, "no", np.where(plan < 65, "dsl", "fiber")),
            "contract": rng.choice(["month", "1y", "2y"], n, p=[0.55, 0.21, 0.24]),
            "pay": rng.choice(list("abcd"), n),
            "tenure": tenure,
            "monthly": np.round(monthly, 2),
            "total": np.round(monthly * tenure * (1 + rng.normal(0, 0.02, n)), 2),
        }
    )


def purchases(seed: int, n: int = 20_000, n_areas: int = 40, n_items: int = 50) -> pd.DataFrame:
    """Records of 1.25 a person, with price points, days, and areas and items of very different frequency."""
    rng = np.random.default_rng(seed)
    n_people = int(n / 1.25)
    person = np.concatenate([np.arange(n_people), rng.integers(0, n_people, n - n_people)])
    area = rng.choice(n_areas, n_people, p=_decreasing(n_areas, 8, 1.0))[person]
    age = np.clip(np.round(rng.gamma(9, 5, n_people)), 18, 97).astype(int)[person]
    item = rng.choice(n_items, n, p=_decreasing(n_items, 5, 1.1))
    full_price = np.round(np.exp(rng.normal(3, 0.8, n_items)))[item] - 0.01
    price = np.round(full_price * np.where(rng.random(n) < 0.3, rng.choice([0.9, 0.8, 0.75, 0.5], n), 1), 2)
    quantity = rng.geometric(0.6, n)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta((730 * rng.beta(2, 1.3, n)).astype(int), unit="D")
    table = pd.DataFrame(
        {
            PERSON: person,
            "area": pd.Series(area).map("area {:03d}".format),
            "age": age,
            "item": pd.Series(item).map("item {:03d}".format),
            "price": price,
            "quantity": quantity,
            "paid": np.round(price * quantity, 2),
            "day": day,
        }
    )
    return table.sample(frac=1, random_state=seed).reset_index(drop=True)


def postal_areas(seed: int) -> pd.DataFrame:
    return purchases(seed, n_areas=400, n_items=250)


def stays(seed: int, n: int = 4_000) -> pd.DataFrame:
    """Hospital stays: hours, measurements of different precision, codes of diagnoses, missing weights."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(55, 19, n), 0, 99)
    severity = rng.normal(0, 1, n) + (age - 55) / 30
    pressure = np.round((120 + 12 * severity + rng.normal(0, 9, n)) / 5) * 5
    return pd.DataFrame(
        {
            "age": age.astype(int),
            "sex": rng.choice(["f", "m"], n),
            "ward": pd.Categorical(rng.choice(list("abcdefghijkl"), n)),
            "diagnosis": pd.Series(np.minimum(rng.geometric(0.08, n), 40)).map("C{:03d}".format),
            "admitted": pd.Timestamp("2023-01-01") + pd.to_timedelta((rng.random(n) * 8760).astype(int), unit="h"),
            "weight": np.where(rng.random(n) < 0.1, np.nan, np.round(rng.normal(74, 13, n) * 2) / 2),
            "creatinine": np.round(np.exp(rng.normal(-0.1, 0.35, n) + 0.1 * severity), 2),
            "pressure": (pressure + np.where(rng.random(n) < 0.4, rng.integers(-2, 3, n), 0)).astype(int),
            "nights": rng.poisson(np.exp(1 + 0.5 * severity)),
            "emergency": severity + rng.normal(0, 1, n) > 0.5,
        }
    )


def survey(seed: int, n: int = 1_500) -> pd.DataFrame:
    """A small survey: rounded incomes, years of birth, towns, ordered schooling, missing hours."""
    rng = np.random.default_rng(seed)
    status = rng.normal(0, 1, n)
    income = np.round(np.exp(7.7 + 0.5 * status + rng.normal(0, 0.3, n)), -2) + np.where(rng.random(n) < 0.3, 50, 0)
    schools = np.array(["none", "school", "trade", "college", "master", "doctor"])
    school = schools[np.digitize(status + rng.normal(0, 1, n), [-2, -1, 0, 1, 2])]
    return pd.DataFrame(
        {
            "income": income.astype(int),
            "rent": np.round(income * rng.beta(4, 9, n), -1),
            "born": (1990 - np.clip(rng.normal(20, 16, n), -12, 75)).astype(int),
            "children": rng.poisson(0.9, n),
            "town": pd.Series(np.minimum(rng.geometric(0.1, n), 25)).map("town {}".format),
            "school": pd.Categorical(school, categories=schools, ordered=True),
            "content": rng.integers(1, 8, n),
            "hours": np.where(rng.random(n) < 0.2, np.nan, np.clip(np.round(rng.normal(36, 9, n)), 0, 80)),
        }
    )


def _decreasing(n_values: int, offset: int, power: float) -> np.ndarray:
    weights = 1 / (np.arange(n_values) + offset) ** power
    return weights / weights.sum()


def assess_splits(make: Callable[[int], pd.DataFrame], seeds: range, smoothing: float | None):
    """Return a row per split: whether it is flagged, the excess identification rate, and the marginals kept."""
    rows = []
    for seed in seeds:
        table = make(seed)
        person = PERSON if PERSON in table else None
        original, control = split_records(table, train_fraction=0.8, seed=seed, person=person)
        people = None if person is None else original.pop(PERSON)
        settings = {} if smoothing is None else {"smoothing": smoothing}
        synthetic = synthesize(original, method="gaussian_copula", seed=seed, settings=settings, person=people)
        control = control[list(original)]
        found = assess_mpuccs(original, synthetic, control, max_baseline_cols=COMBINATION_SIZE).control
        marginals, _ = marginals_and_pairs(original, synthetic)
        rows.append((bool(found.leakage_detected), found.excess_identification.value, marginals))
    return pd.DataFrame(rows, columns=["flagged", "excess", "marginals"])


def banded_adult(data: Path) -> pd.DataFrame:
    """Return adult as its owner would share it: without the weight and the second spelling of education, in bands."""
    table = pd.concat([pd.read_csv(data / f"adult_{part}.csv") for part in ("ori", "control")], ignore_index=True)
    table = table.drop(columns=["fnlwgt", "education"])
    for name, limits in ADULT_BANDS.items():
        table[name] = np.asarray(limits)[np.searchsorted(limits, table[name], side="right") - 1]
    frequent = table["native_country"].isin(["United-States", "Mexico"])
    return table.assign(native_country=table["native_country"].where(frequent, "other"))


def assess_decision(name: str, table: pd.DataFrame, n_splits: int, measured: Measurements) -> None:
    flagged: Counter[str] = Counter()
    n_flagged = 0
    for seed in range(n_splits):
        original, control = split_records(table, train_fraction=0.8, seed=seed)
        found = assess_disclosure(original, synthesize(original, method="gaussian_copula", seed=seed), control)
        n_flagged += found.scores["leakage_detected"] is True
        flagged.update(found.criteria.loc[found.criteria["adjusted_p_value"] <= LEVEL, "criterion"])
    most = int(binom.ppf(0.99, n_splits, LEVEL))
    print(f"{name}: flagged in {n_flagged} of {n_splits} splits, by criterion {dict(flagged)}", flush=True)
    measured.keep(**{f"{name}_splits_flagged": n_flagged})
    measured.check(f"{name}: flagged in {n_flagged} of {n_splits} splits; at most {most}", n_flagged <= most)


def assess_admission(
    name: str,
    table: pd.DataFrame,
    use_case: str,
    settings: dict[str, float],
    n_splits: int,
    measured: Measurements,
    *,
    is_known_to_leak: bool = False,
) -> None:
    limit = Policy.for_use_case(use_case).limit_on("privacy_risk_score")
    rows = []
    for seed in range(n_splits):
        original, control = split_records(table, train_fraction=0.8, seed=seed)
        judge = Judge(original, control)
        for method in ("smooth_cart", "gaussian_copula", "cart")[: 3 if seed < OTHERS_SPLITS else 1]:
            started = time.process_time()
            own = settings if method == "smooth_cart" else {}
            synthetic = synthesize(original, method=method, seed=seed, settings=own)
            seconds = time.process_time() - started
            found = assess_mpuccs(original, synthetic, max_baseline_cols=ADMITTED_SIZE)
            score = found.scores["privacy_risk_score"]
            worth = judge.assess(synthetic).scores["utility"]
            leaks = assess_disclosure(original, synthetic, control).scores["leakage_detected"] is True
            rows.append((method, worth, score, leaks, limit.holds_for(score), seconds))
    names = ["method", "worth", "score", "flagged", "below_limit", "cpu_seconds"]
    frame = pd.DataFrame(rows, columns=names)
    for method, own in frame.groupby("method", sort=False):
        print(
            f"{name}, {method}: worth {own.worth.mean():.3f} (least {own.worth.min():.3f}), score at most "
            f"{own.score.max():.3f}, leakage detected in {own.flagged.sum()} of {len(own)} splits, "
            f"{own.cpu_seconds.mean():.1f} CPU s",
            flush=True,
        )
        measured.keep(
            **{
                f"{name}_{method}_worth": float(own.worth.mean()),
                f"{name}_{method}_largest_score": float(own.score.max()),
                f"{name}_{method}_splits_flagged": int(own.flagged.sum()),
                f"{name}_{method}_cpu_seconds": float(own.cpu_seconds.mean()),
            }
        )
    own = frame[frame.method == "smooth_cart"]
    most, worth = int(MOST_REFUSED * len(own)), own.worth.mean()
    n_above, n_flagged = int((~own.below_limit).sum()), int(own.flagged.sum())
    measured.keep(**{f"{name}_smooth_cart_splits_above_limit": n_above})
    measured.check(f"{name}: smooth_cart is worth {worth:.3f}; at least {LEAST_WORTH}", worth >= LEAST_WORTH)
    measured.check(
        f"{name}: above {use_case} in {n_above} of {len(own)}; at most {most}", n_above <= most, is_known_to_leak
    )
    words = f"{name}: flagged in {n_flagged} of {len(own)}; at most {most}"
    measured.check(words, n_flagged <= most, is_known_to_leak)


def of_all_kinds(seed: int, n: int) -> pd.DataFrame:
    """Return 15 dependent columns: numbers of few and of many values, text, booleans and dates."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(18, 90, n), rng.choice(["f", "m"], n)
    school = np.clip(np.round(rng.normal(3, 1, n) + age / 60), 0, 9).astype(int)
    income = np.round(np.exp(9 + 0.2 * school + rng.normal(0, 0.6, n)), -1)
    return pd.DataFrame(
        {
            "age": age,
            "sex": sex,
            "school": school,
            "income": income,
            "rent": np.round(income * rng.beta(3, 8, n) / 12),
            "region": pd.Series(rng.integers(0, 40, n)).map("region {}".format),
            "job": pd.Series(3 * school + rng.integers(0, 9, n)).map("job {}".format),
            "state": rng.choice(list("abcdefghij"), n),
            "children": rng.poisson(1, n),
            "height": np.round(rng.normal(170, 10, n) + 8 * (sex == "m"), 1),
            "smoker": rng.random(n) < 0.2 + 0.02 * school,
            "hours": np.clip(np.round(rng.normal(36, 9, n)), 0, 80),
            "born": pd.Timestamp("2020-01-01") - pd.to_timedelta(365 * age, unit="D"),
            "visits": rng.poisson(np.exp(age / 60)),
            "score": rng.normal(0, 1, n) + school,
        }
    )


def assess_large(n_rows: int, measured: Measurements) -> None:
    table, grown = of_all_kinds(0, n_rows), []
    synthesize(table.head(1_000), method="smooth_cart")  # compiles

    def keep(*arguments):
        grown.append(arguments)
        return grow_tree(*arguments)

    started = time.process_time()
    synthesize(table, method="smooth_cart")
    seconds = time.process_time() - started
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(f"{n_rows:,} rows x 15 columns: {seconds:.1f} CPU s, {gigabytes:.2f} GB at the peak", flush=True)
    measured.keep(large_rows=n_rows, large_cpu_seconds=seconds, large_peak_gb=gigabytes)
    measured.check(f"smooth_cart takes {seconds:.1f} CPU s; at most {LARGE_SECONDS} for 10^6", seconds <= LARGE_SECONDS)
    measured.check(f"and {gigabytes:.2f} GB; at most {LARGE_GB}", gigabytes <= LARGE_GB)
    smooth_cart.grow_tree = keep
    smooth_cart.SmoothCart().fit(table, seed=0)
    smooth_cart.grow_tree = grow_tree
    from sklearn.tree import DecisionTreeClassifier

    own, theirs, leaves = 0.0, 0.0, [0, 0]
    for i, (codes, target, weights, people, gain, whose) in enumerate(grown):
        started = time.process_time()
        leaves[0] += int((grow_tree(codes, target, weights, people, gain, whose).feature == LEAF).sum())
        own += time.process_time() - started
        tree, n_people = DecisionTreeClassifier(criterion="entropy", random_state=0), weights.sum()
        tree.set_params(min_weight_fraction_leaf=people / n_people, min_impurity_decrease=gain / n_people / math.log(2))
        started = time.process_time()
        leaves[1] += tree.fit(codes.T.astype(np.float32), target, weights).get_n_leaves() if i else 1
        theirs += time.process_time() - started
    print(f"trees: {own:.2f} CPU s, those of scikit-learn {theirs:.2f} ({theirs / own:.1f} times as long)", flush=True)
    measured.keep(large_tree_seconds=own, large_tree_time_of_scikit_learn=theirs / own)
    measured.check(f"{leaves[0]:,} leaves; those of scikit-learn have {leaves[1]:,}", leaves[0] == leaves[1])
    measured.check(f"scikit-learn takes {theirs / own:.1f} times as long; more than 1", theirs > own)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of adult.csv")
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--before", type=int, default=8, help="splits that are synthesized without smoothing as well")
    parser.add_argument("--first", type=int, default=0, help="first seed of the tables and splits")
    parser.add_argument("--admitted", type=int, metavar="N", help="only whether policies admit the methods, N splits")
    parser.add_argument("--decided", type=int, metavar="N", help="only how often the gate's test flags the copula")
    parser.add_argument("--large", type=int, metavar="N", help="only time and memory of smooth_cart for N rows")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("synthesis", options)
    if options.large:
        assess_large(options.large, measured)
        return measured.finish()
    if options.decided:
        for name, banded in (("rand_in_bands", True), ("rand", False)):
            table = load_rand_hie(banded=banded).drop(columns="person_id")
            assess_decision(name, table, options.decided, measured)
        return measured.finish()
    if options.admitted:
        rand = load_rand_hie(banded=True).drop(columns="person_id")
        assess_admission("rand", rand, "internal_analytics", {}, options.admitted, measured, is_known_to_leak=True)
        adult, smoother = banded_adult(options.data), {"smoothing": SMOOTHING_OF_ADULT}
        assess_admission("adult", adult, "research_sharing", smoother, options.admitted, measured)
        return measured.finish()
    adult = pd.read_csv(options.data / "adult.csv")
    tables = {
        "adult": lambda _: adult,
        "prices": prices,
        "purchases": purchases,
        "stays": stays,
        "survey": survey,
        "postal_areas": postal_areas,
    }
    for name, make in tables.items():
        seeds = range(options.first, options.first + options.splits)
        own = assess_splits(make, seeds[: options.before] if name == "postal_areas" else seeds, None)
        before = assess_splits(make, seeds[: options.before], 0.0)
        n_flagged, kept = int(own.flagged.sum()), float(own.marginals.head(options.before).mean())
        ratio = kept / float(before.marginals.mean())
        print(
            f"{name}: flagged in {n_flagged} of {len(own)} splits, mean excess {own.excess.mean():.4f}, marginals "
            f"{kept:.4f}; without smoothing {int(before.flagged.sum())} of {len(before)}, {before.excess.mean():.4f}, "
            f"{before.marginals.mean():.4f}",
            flush=True,
        )
        measured.keep(
            **{
                f"{name}_splits_flagged": n_flagged,
                f"{name}_mean_excess": float(own.excess.mean()),
                f"{name}_marginals_ratio": ratio,
                f"{name}_splits_flagged_without_smoothing": int(before.flagged.sum()),
                f"{name}_mean_excess_without_smoothing": float(before.excess.mean()),
            }
        )
        if name != "postal_areas":
            most = int(NOMINAL_SHARE * len(own))
            measured.check(f"{name}: flagged in {n_flagged} of {len(own)} splits; at most {most}", n_flagged <= most)
            measured.check(f"{name}: keeps {ratio:.4f} of the marginals; at least {MARGINS_BAR}", ratio >= MARGINS_BAR)
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
