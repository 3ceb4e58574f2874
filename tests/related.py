"""Invented patients with visits in order and drugs without one."""

import numpy as np
import pandas as pd

from privacy_assets.contract.related import Child, RelatedTables

FIRST_DAY = pd.Timestamp("2020-01-01")


def clinic(n=300, seed=0, *, mean_visits=2.0):
    """Visits of one patient resemble each other; a third of the patients have none, and none of them has drugs."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 90, n)
    frail = random.gamma(2.0, 0.5, n)
    people = pd.DataFrame(
        {
            "age": age,
            "patient": [f"p{number:05}" for number in random.permutation(n)],
            "sex": random.choice(["female", "male"], n),
        }
    )
    n_visits = random.poisson(frail * mean_visits)
    whose = np.repeat(np.arange(n), n_visits)
    n_rows = len(whose)
    own = random.integers(0, 6, n)
    code = np.where(random.random(n_rows) < 0.7, own[whose], random.integers(0, 6, n_rows))
    visits = pd.DataFrame(
        {
            "date": FIRST_DAY + pd.to_timedelta(random.integers(0, 900, n_rows), unit="D"),
            "diagnosis": np.array(list("abcdef"))[code],
            "patient": people["patient"].to_numpy()[whose],
            "cost": np.round(np.exp(3 + frail[whose] + random.normal(0, 0.3, n_rows)), 2),
            "paid": random.random(n_rows) < 0.4,
        }
    )
    visits = visits.sample(frac=1, random_state=seed).reset_index(drop=True)
    has_visits = np.flatnonzero(n_visits)
    drugs = random.choice(has_visits, n) if len(has_visits) else np.zeros(0, int)
    drugs = pd.DataFrame(
        {"patient": people["patient"].to_numpy()[drugs], "drug": random.choice(["x", "y", "z"], len(drugs))}
    )
    children = {"visits": Child(visits, key="patient", order="date"), "drugs": Child(drugs, key="patient")}
    return RelatedTables(people, children, person="patient")


def of_visits(tables, **changed):
    """The same people with their visits alone, whose table, key or order may be changed."""
    child = tables.children["visits"]
    own = {"table": child.table, "key": child.key, "order": child.order} | changed
    return RelatedTables(tables.people, {"visits": Child(**own)}, tables.person)


def with_lines(tables, seed=0, mean_lines=1.2):
    """The same people with the lines of the bills of their visits, whose items depend on the diagnosis."""
    random = np.random.default_rng(seed)
    visits = tables.children["visits"].table
    visits = visits.assign(visit=random.permutation(len(visits)) + 1000)
    of_visit = np.repeat(np.arange(len(visits)), random.poisson(mean_lines, len(visits)))
    usual = visits["diagnosis"].map({code: place for place, code in enumerate("abcdef")}).to_numpy(int)[of_visit]
    item = np.where(random.random(len(of_visit)) < 0.8, usual, random.integers(0, 6, len(of_visit)))
    lines = pd.DataFrame(
        {
            "item": np.array(list("uvwxyz"))[item],
            "visit": visits["visit"].to_numpy()[of_visit],
            "line": pd.Series(of_visit).groupby(of_visit).cumcount() + 1,
            "price": np.round(random.exponential(5 + 10 * item), 1),
        }
    ).sample(frac=1, random_state=seed, ignore_index=True)
    children = {
        "lines": Child(lines, key="visit", order="line", of="visits"),
        "visits": Child(visits, key="patient", order="date", own_key="visit"),
    }
    return RelatedTables(tables.people, children, tables.person)
