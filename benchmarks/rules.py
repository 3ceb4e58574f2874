"""Make synthetic records of tables with rules, with and without them, and time the rules themselves.

    python benchmarks/rules.py [--tables NAME ...] [--json [FILE]]

Three tables have planted rules of every kind (an order, an implication, a determined label, a sum); in the RAND Health
Insurance Experiment, its own are found: the parts of its expenditure, the plan and its coinsurance. A clinic has rules
on patients and on their visits, which are made together. Half of the people are learned from, half judge.

Bars: no violations in 5,000 records of every built-in method, with a worth of at most .01 below that of its records
made without the rules (of the clinic, in its lowest view); a table whose rules contradict is refused with the names of
both; ten rules on 10**6 rows take at most .5 CPU seconds; of 10**4 random texts, each is refused or evaluated. The exit
code is 1 if a bar is missed.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd

from benchmarks.measurements import Measurements, add_json_option
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.related import Child, RelatedTables
from privacy_assets.contract.rule_expressions import Columns
from privacy_assets.contract.rules import read_rules, violations
from privacy_assets.errors import ContractError, InvalidSettingError
from privacy_assets.examples import rand_hie
from privacy_assets.synthesis.split import split_records
from privacy_assets.synthesis.synthesize import make_synthetic_records, synthesize
from privacy_assets.utility.assess import assess_utility

N_PEOPLE, N_RECORDS, SEEDS = 5_000, 5_000, (1, 2, 3)
METHODS = ("smooth_cart", "gaussian_copula", "cart")
MOST_LOST, MOST_SECONDS = 0.01, 0.5
CLINIC = "clinic"
WORDS = [
    *("age", "sex", "code", "day", "'male'", "1", "0", "1e308", "(", ")", "[", "]", ",", " and ", " or ", " not ", "+"),
    *("-", "*", "/", "**", "==", "!=", "<", ">=", " in ", "missing(", "`", '"', "#", "\\", "\n", "lambda:", ".", ":="),
    *(
        "__import__('os')",
        "exec(",
        "{",
        "}",
        "if ",
        "else ",
        "@",
        "%",
        "is None",
        "True",
        "\u0663",
        "\ufb01",
        "9" * 400,
    ),
]
ATOMS = [
    *("age > 1", 'sex == "male"', "missing(code)", "not age == 2", "age / 2 < 3", 'day < "2024-02-01"'),
    "age in [1, 2]",
]


def stays(random: np.random.Generator) -> pd.DataFrame:
    """Return stays in hospital: discharged after admission, men not pregnant, a label by code, a cost of two parts."""
    sex = random.choice(["male", "female"], 2 * N_PEOPLE)
    age = random.integers(18, 90, 2 * N_PEOPLE)
    code = random.integers(0, 30, 2 * N_PEOPLE) * (1 + (age > 50))
    admitted = pd.Timestamp("2023-01-01") + pd.to_timedelta(random.integers(0, 700, 2 * N_PEOPLE), "D")
    stay = random.geometric(0.2, 2 * N_PEOPLE) - 1 + code // 10
    parts = np.round(random.gamma(2, 300, (2, 2 * N_PEOPLE)) * (1 + stay), 2)
    return pd.DataFrame(
        {
            "age": age,
            "sex": pd.Categorical(sex),
            "pregnancies": np.where(sex == "male", 0, random.poisson(1.5, 2 * N_PEOPLE)),
            "code": code.astype(str),
            "name": [f"diagnosis {each}" for each in code],
            "admitted": admitted,
            "discharged": admitted + pd.to_timedelta(stay, "D"),
            "inpatient": parts[0],
            "outpatient": parts[1],
            "cost": np.round(parts.sum(axis=0), 2),
        }
    )


def jobs(random: np.random.Generator) -> pd.DataFrame:
    """Return people with work: a start after school, no salary without work, a band by age, hours of two kinds."""
    age = random.integers(16, 70, 2 * N_PEOPLE)
    left_school = np.minimum(age, 15 + random.integers(0, 10, 2 * N_PEOPLE))
    works = random.random(2 * N_PEOPLE) < 0.75
    hours = np.where(works, random.choice([20, 30, 40], 2 * N_PEOPLE), 0)
    extra = np.where(works, random.poisson(3, 2 * N_PEOPLE), 0)
    salary = np.round(np.where(works, random.lognormal(10, 0.5, 2 * N_PEOPLE) * hours / 40, 0), -2)
    return pd.DataFrame(
        {
            "age": age,
            "age_band": np.array(["young", "middle", "old"])[(age > 30).astype(int) + (age > 55)],
            "left_school": left_school,
            "status": pd.Categorical(np.where(works, "works", "none")),
            "salary": salary,
            "hours": hours,
            "extra_hours": extra,
            "all_hours": hours + extra,
        }
    )


def houses(random: np.random.Generator) -> pd.DataFrame:
    """Return flats with missing cells: a sale after the building, no lift in small houses, a region by town."""
    town = random.choice(40, 2 * N_PEOPLE, p=np.arange(40, 0, -1) / 820)
    built = random.integers(1900, 2015, 2 * N_PEOPLE)
    floors = random.choice([1, 2, 3, 5, 8], 2 * N_PEOPLE)
    rooms, baths = random.integers(1, 7, 2 * N_PEOPLE), random.integers(1, 3, 2 * N_PEOPLE)
    found = pd.DataFrame(
        {
            "town": [f"town {each}" for each in town],
            "region": pd.Categorical([f"region {each % 6}" for each in town]),
            "built": built,
            "sold": np.minimum(built + random.geometric(0.06, 2 * N_PEOPLE), 2024),
            "floors": floors,
            "lift": pd.Categorical(np.where((floors > 2) & (random.random(2 * N_PEOPLE) < 0.7), "yes", "no")),
            "rooms": pd.array(rooms, "Int64"),
            "baths": pd.array(baths, "Int64"),
            "all_rooms": pd.array(rooms + baths, "Int64"),
        }
    )
    for name in ("region", "rooms", "all_rooms"):
        found.loc[random.random(len(found)) < 0.05, name] = None
    return found


def rand(random: np.random.Generator) -> pd.DataFrame:
    """Return people of RAND, in random order, with the parts of their expenditure in their first year."""
    years = pd.read_csv(rand_hie._path()).sort_values(["zper", "year"], kind="stable").drop_duplicates("zper")
    found = rand_hie.load_rand_hie().drop(columns=["person_id", "medical_expenditure"])
    for name in ("outpdol", "drugdol", "suppdol", "inpdol", "meddol", "totadm", "plan"):
        found[name] = years[name].to_numpy()
    found["meddol"] = (found["outpdol"] + found["drugdol"] + found["suppdol"] + found["inpdol"]).round(4)
    return found.iloc[random.permutation(len(found))].reset_index(drop=True)


TABLES = {
    "stays": (
        stays,
        {
            "order": "discharged >= admitted",
            "implication": 'not (sex == "male" and pregnancies > 0)',
            "label": {"determines": ["code", "name"]},
            "total": {"sum": ["inpatient", "outpatient"], "equals": "cost", "within": 0.01},
        },
    ),
    "jobs": (
        jobs,
        {
            "order": "left_school <= age",
            "implication": 'status == "works" or (salary == 0 and hours == 0)',
            "label": {"determines": ["age", "age_band"]},
            "total": {"sum": ["hours", "extra_hours"], "equals": "all_hours"},
        },
    ),
    "houses": (
        houses,
        {
            "order": "sold > built or sold == 2024",
            "implication": 'floors > 2 or lift == "no"',
            "label": {"determines": ["town", "region"]},
            "total": {"sum": ["rooms", "baths"], "equals": "all_rooms"},
        },
    ),
    "rand": (
        rand,
        {
            "order": "drugdol <= meddol + 0.001",
            "implication": "inpdol == 0 or totadm > 0",
            "label": {"determines": ["plan", "coinsurance_percent"]},
            "total": {"sum": ["outpdol", "drugdol", "suppdol", "inpdol"], "equals": "meddol", "within": 0.001},
        },
    ),
}


RULES_OF_CLINIC = {
    "people": {
        "implication": 'not (sex == "male" and pregnancies > 0)',
        "label": {"determines": ["code", "name"]},
        "total": {"sum": ["inpatient", "outpatient"], "equals": "cost", "within": 0.01},
    },
    "visits": {
        "order": "left >= admitted",
        "implication": 'not (ward == "none" and nights > 0)',
        "label": {"determines": ["drug", "maker"]},
        "total": {"sum": ["room", "care"], "equals": "bill", "within": 0.01},
        "paid": "paid <= bill",
    },
}


def clinic(random: np.random.Generator) -> RelatedTables:
    """Return patients with such costs and labels, and their visits, which resemble each other."""
    people = stays(random).drop(columns=["admitted", "discharged"]).head(N_PEOPLE).assign(patient=range(N_PEOPLE))
    whose = np.repeat(people["patient"], random.poisson(people["age"] / 25))
    frail, n = random.gamma(2, 1, N_PEOPLE)[whose], len(whose)
    own = np.where(random.random(n) < 0.7, whose % 12, random.integers(0, 12, n))
    ward = random.choice(["none", "day", "night"], n)
    nights = np.where(ward == "none", 0, random.poisson(frail))
    admitted = pd.Timestamp("2023-01-01") + pd.to_timedelta(random.integers(0, 700, n), "D")
    parts = np.round(random.gamma(2, 50, (2, n)) * (1 + frail + nights), 2)
    bill = np.round(parts.sum(axis=0), 2)
    visits = pd.DataFrame(
        {
            "patient": whose.to_numpy(),
            "admitted": admitted,
            "left": admitted + pd.to_timedelta(nights, "D"),
            "ward": ward,
            "nights": nights,
            "drug": [f"drug {each}" for each in own],
            "maker": [f"maker {each // 3}" for each in own],
            "room": parts[0],
            "care": parts[1],
            "bill": bill,
            "paid": np.round(bill * random.choice([0, 0.5, 1], n), 2),
        }
    )
    return RelatedTables(people, {"visits": Child(visits, key="patient", order="admitted")}, person="patient")


def judged_together(measured: Measurements) -> None:
    tables = clinic(np.random.default_rng(0))
    original, control = split_records(tables, train_fraction=0.5, seed=0)
    lost, found, worths = [], dict.fromkeys(((), "rules"), 0), {}
    n_rows, seconds = 0, {}
    for seed in SEEDS:
        for rules in found:
            began = time.process_time()
            made = synthesize(original, seed=seed, rules=RULES_OF_CLINIC if rules else None)
            seconds[rules] = time.process_time() - began
            for name, own in RULES_OF_CLINIC.items():
                broken = violations(read_rules(own, tables.tables[name]), Columns(made.tables[name]))
                found[rules] += int(np.any(list(broken.values()), axis=0).sum())
                n_rows += len(made.tables[name]) if rules else 0
            worths[rules] = assess_utility(original, made, control, seed=seed).scores["utility"]
        lost.append(worths[()] - worths["rules"])
    most = float(np.mean(lost))
    measured.keep(clinic_violations=found["rules"], clinic_worth_lost=most, clinic_seconds=seconds["rules"])
    said = f"{found['rules']} violations of {n_rows:,} rows ({found[()]:,} without the rules)"
    measured.check(f"clinic, smooth_cart: {said}", found["rules"] == 0)
    said = f"worth {worths['rules']:.3f}, which is {most:.4f} below that without rules; at most {MOST_LOST}"
    said += f"; {seconds['rules']:.1f} CPU s, without rules {seconds[()]:.1f}"
    measured.check(f"clinic, smooth_cart: {said}", most <= MOST_LOST)


def judged(name: str, measured: Measurements) -> None:
    make, written = TABLES[name]
    people = make(np.random.default_rng(0))
    original, control = people[: len(people) // 2], people[len(people) // 2 :].reset_index(drop=True)
    rules = read_rules(written, people)
    for method in METHODS:
        lost, n_violations, n_without = [], 0, 0
        for seed in SEEDS:
            worths = []
            for own in ((), rules):
                made = make_synthetic_records(original, method, N_RECORDS, seed, None, None, rules=own).table
                found = np.any(list(violations(rules, Columns(made)).values()), axis=0).sum()
                worths.append(assess_utility(original, made, control, seed=seed).scores["utility"])
                n_violations, n_without = (
                    (n_violations + found, n_without) if own else (n_violations, n_without + found)
                )
            lost.append(worths[0] - worths[1])
        most = float(np.mean(lost))
        measured.keep(**{f"{name}_{method}_violations": n_violations, f"{name}_{method}_worth_lost": most})
        said = f"{n_violations} violations of {N_RECORDS * len(SEEDS):,} ({n_without:,} without the rules)"
        measured.check(f"{name}, {method}: {said}", n_violations == 0)
        said = f"worth {worths[1]:.3f}, which is {most:.4f} below that without rules; at most {MOST_LOST}"
        measured.check(f"{name}, {method}: {said}", most <= MOST_LOST)


def contradiction(measured: Measurements) -> None:
    columns = {name: {"type": "integer", "role": "other"} for name in ("first", "second", "third")}
    rules = {"rises": "second > first", "falls": "second < first", "is_small": "third < 90"}
    contract = TableContract.from_mapping({"columns": columns, "rules": rules, "one_row_per_person": True})
    table = pd.DataFrame(np.random.default_rng(1).integers(0, 100, (2_000, 3)), columns=list(columns))
    try:
        contract.check(table)
        said = ""
    except ContractError as error:
        said = str(error)
    is_named = "rules 'rises' and 'falls' contradict each other" in said and said.count("contradict") == 1
    measured.check("a table whose rules contradict is refused with the names of both", is_named)


def speed(measured: Measurements) -> None:
    table = stays(np.random.default_rng(2))
    table = table.take(np.random.default_rng(3).integers(0, len(table), 10**6)).reset_index(drop=True)
    more = {
        "days": "discharged - admitted <= 400",
        "young": 'age < 50 or sex == "female" or pregnancies == 0',
        "few": "pregnancies in [0, 1, 2, 3, 4, 5] or age > 20",
        "ratio": "inpatient / cost <= 1.01",
        "since": 'admitted >= "2022-01-01"',
        "back": {"determines": ["name", "code"]},
    }
    rules = read_rules(TABLES["stays"][1] | more, table)
    began = time.process_time()
    found = violations(rules, Columns(table))
    seconds = time.process_time() - began
    measured.keep(cpu_seconds_of_ten_rules=seconds)
    assert len(found) == 10
    measured.check(f"10 rules on 10**6 rows take {seconds:.2f} CPU s; at most {MOST_SECONDS}", seconds <= MOST_SECONDS)


def fuzzed(measured: Measurements) -> None:
    random = np.random.default_rng(4)
    table = pd.DataFrame({"age": [1, 2], "sex": pd.Categorical(["male", "female"]), "code": ["x", None]})
    table["day"] = pd.Timestamp("2024-01-01")
    n_read, n_other = 0, 0
    for _ in range(10**4):
        text = random.choice([" and ", " or "]).join(random.choice(ATOMS, random.integers(1, 6)))
        for _ in range(random.integers(0, 8)):
            at, gone = random.integers(0, len(text) + 1), random.integers(0, 3)
            text = text[:at] + random.choice(WORDS) + text[at + gone :]
        try:
            (rule,) = read_rules({"fuzzed": text}, table)
            violations([rule], Columns(table))
            n_read += 1
        except InvalidSettingError:
            pass
        except Exception as error:  # noqa: BLE001 - the bar
            print(repr(text), repr(error))
            n_other += 1
    measured.keep(fuzzed_texts_evaluated=n_read)
    measured.check(f"of 10**4 random texts {n_read} are evaluated, and the others refused", n_other == 0 and n_read > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", choices=[*TABLES, CLINIC], default=[*TABLES, CLINIC])
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("rules", options)
    contradiction(measured)
    speed(measured)
    fuzzed(measured)
    for name in options.tables:
        if name == CLINIC:
            judged_together(measured)
        else:
            judged(name, measured)
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
