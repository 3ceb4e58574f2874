"""People and their rows keep the rules of each table, and rows follow each other as without rules."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.related import RelatedTables
from privacy_assets.contract.related_contracts import Linked, RelatedContracts
from privacy_assets.contract.rules import read_rules
from privacy_assets.errors import ContractError, InvalidSettingError
from privacy_assets.synthesis.sequences import Sequences
from privacy_assets.synthesis.smooth_cart import SmoothCart
from privacy_assets.synthesis.synthesize import synthesize
from tests.orchestration.related_project import PEOPLE_CONTRACT, VISITS_CONTRACT
from tests.related import clinic, of_visits, with_lines

RULES = {
    "people": {
        "implication": 'not (sex == "male" and born > 0)',
        "label": {"determines": ["born", "parent"]},
    },
    "visits": {
        "order": "left >= date",
        "label": {"determines": ["diagnosis", "name"]},
        "total": {"sum": ["cost", "drugs"], "equals": "bill"},
        "part": "refund <= bill",
    },
}


def with_rules(n=500, seed=0, *, mean_visits=2.0):
    random, tables = np.random.default_rng(seed), clinic(n, seed, mean_visits=mean_visits)
    people = tables.people.assign(born=np.where(tables.people["sex"] == "male", 0, random.poisson(1, n)))
    people["parent"] = pd.Categorical(np.where(people["born"] > 0, "yes", "no"))
    visits = tables.children["visits"].table
    visits = visits.assign(
        left=visits["date"] + pd.to_timedelta(random.geometric(0.3, len(visits)) - 1, "D"),
        name="name of " + visits["diagnosis"],
        drugs=pd.Series(np.round(random.gamma(1, 20, len(visits)), 2)).where(random.random(len(visits)) > 0.1),
    )
    visits["bill"] = (visits["cost"] + visits["drugs"]).round(2).fillna(9.5)
    visits["refund"] = (visits["bill"] * random.choice([0, 0.5, 1], len(visits))).round(2)
    return RelatedTables(people, {"visits": replace(tables.children["visits"], table=visits)}, "patient")


def broken(tables):
    """Count by loops, without the package's rules, what violates the rules above."""
    found = dict.fromkeys(("implication", "parent", "order", "name", "total", "part"), 0)
    for own in tables.people.to_dict("records"):
        found["implication"] += own["sex"] == "male" and own["born"] > 0
        found["parent"] += own["parent"] != ("yes" if own["born"] > 0 else "no")
    for own in tables.children["visits"].table.to_dict("records"):
        found["order"] += own["left"] < own["date"]
        found["name"] += own["name"] != "name of " + own["diagnosis"]
        found["total"] += not pd.isna(own["drugs"]) and abs(own["cost"] + own["drugs"] - own["bill"]) > 1e-6
        found["part"] += own["refund"] > own["bill"]
    return {name: n for name, n in found.items() if n}


@pytest.mark.parametrize("order", ["date", "cost", None])
def test_rows_and_people_keep_rules_of_every_kind(order):
    tables = of_visits(with_rules(), order=order)
    assert broken(tables) == {}
    assert set(broken(synthesize(tables, seed=1))) >= {"order", "total", "part"}
    made = synthesize(tables, seed=1, n_records=800, rules=RULES)
    rows, like = made.children["visits"].table, tables.children["visits"].table
    assert broken(made) == {}
    assert len(made.people) == 800
    for own, known in ((made.people, tables.people), (rows, like)):
        assert list(own) == list(known)
        assert own.dtypes.drop("patient").equals(known.dtypes.drop("patient"))
    assert (rows["bill"] == rows["bill"].round(2)).all()
    assert like["bill"].min() <= rows["bill"].min() <= rows["bill"].max() <= like["bill"].max()
    assert rows["drugs"].isna().mean() == pytest.approx(0.1, abs=0.06)
    assert set(rows["patient"]) <= set(range(1, 801))
    if order is not None:
        assert rows.groupby("patient")[order].apply(lambda own: own.is_monotonic_increasing).all()
    assert made.content == synthesize(tables, seed=1, n_records=800, rules=RULES).content


def lag_1(tables, column):
    own = tables.children["visits"].table.iloc[tables.in_order("visits")]
    before = own.groupby("patient")[column].shift()
    codes = [values.map({code: place for place, code in enumerate("abcdef")}) for values in (own[column], before)]
    if own[column].dtype.kind == "f":
        return own[column].rank().corr(before.rank())
    return (codes[0] == codes[1])[before.notna()].mean()


def test_rows_follow_each_other_as_without_rules():
    tables = with_rules(3_000, 4, mean_visits=3.0)
    plain, kept = (synthesize(tables, seed=2, rules=rules) for rules in (None, RULES))
    for column in ("diagnosis", "cost", "bill", "refund"):
        known, without, found = (lag_1(own, column) for own in (tables, plain, kept))
        assert found == pytest.approx(known, abs=max(0.06, abs(without - known) + 0.04)), column
    zero = [own.children["visits"].table["refund"].eq(0).mean() for own in (tables, kept)]
    assert zero[1] == pytest.approx(zero[0], abs=0.03)
    counts = [np.bincount(np.bincount(own.whose["visits"], minlength=3_000), minlength=8)[:8] for own in (plain, kept)]
    assert np.abs(counts[0] - counts[1]).max() < 100


def test_rows_of_rows_and_people_without_rows_keep_rules():
    tables = with_lines(clinic(900, 3), 3)
    lines = tables.children["lines"].table
    lines = lines.assign(kind="kind of " + lines["item"], paid=(lines["price"] * 0.8).round(1))
    visits = tables.children["visits"].table.assign(fee=lambda own: (own["cost"] + 5).round(2))
    children = {
        "lines": replace(tables.children["lines"], table=lines),
        "visits": replace(tables.children["visits"], table=visits),
    }
    tables = replace(tables, children=children)
    rules = {
        "lines": {"kind": {"determines": ["item", "kind"]}, "paid": "paid <= price"},
        "visits": {"fee": "fee > cost"},
    }
    made = synthesize(tables, seed=5, rules=rules)
    own = made.children["lines"].table
    assert (own["kind"] == "kind of " + own["item"]).all()
    assert (own["paid"] <= own["price"]).all()
    assert (made.children["visits"].table["fee"] > made.children["visits"].table["cost"]).all()
    assert made.children["lines"].table["visit"].isin(made.children["visits"].table["visit"]).all()
    lonely = [synthesize(tables, seed=seed, n_records=1, rules=rules) for seed in range(6)]
    assert 0 in [len(each.children["visits"].table) for each in lonely]
    assert {tuple(each.children["lines"].table) for each in lonely} == {tuple(lines)}


def test_what_cannot_be_kept_is_counted_and_stays():
    tables = of_visits(clinic(400, 1))
    rules = {
        "visits": read_rules({"never": "cost < 0", "b": 'diagnosis != "a"'}, tables.tables["visits"]),
        "people": read_rules({"old": "age > 90"}, tables.people),
    }
    learned = Sequences(tables, SmoothCart(), seed=0, rules=rules)
    made = learned.sample(100, seed=0)
    n_rows = len(made.children["visits"].table)
    assert learned.counts["people"] == {"redrawn": 0, "left": 100}
    assert learned.counts["visits"] == {"redrawn": n_rows, "left": n_rows}
    rules = {"visits": read_rules({"b": 'diagnosis != "a"'}, tables.tables["visits"])}
    learned = Sequences(tables, SmoothCart(), seed=0, rules=rules)
    own = learned.sample(100, seed=0).children["visits"].table
    assert learned.counts["visits"]["left"] == (own["diagnosis"] == "a").sum() == 0
    assert "people" not in learned.counts


def test_an_order_is_neither_joined_nor_computed():
    tables = with_rules(300)
    visits = tables.children["visits"].table.assign(one=lambda own: own["date"].dt.day_of_year, two=0)
    visits["day"] = visits["one"] + visits["two"]
    tables = of_visits(tables, table=visits, order="day")
    rules = {"day": {"sum": ["one", "two"], "equals": "day"}, "of": {"determines": ["diagnosis", "day"]}}
    made = synthesize(tables, seed=0, rules={"visits": rules})
    own = made.children["visits"].table
    assert own.groupby("patient")["day"].apply(lambda days: days.is_monotonic_increasing).all()


def test_only_pairs_that_enough_people_share_are_joined():
    tables = with_rules(400)
    visits = tables.children["visits"].table
    of_one = visits[visits["patient"] == visits["patient"].mode()[0]].head(1)
    rare = pd.concat([of_one] * 30).assign(diagnosis="z", name="name of one person")
    tables = of_visits(tables, table=pd.concat([visits, rare], ignore_index=True))
    made = synthesize(tables, seed=0, n_records=2_000, rules=RULES)
    assert "name of one person" not in set(made.children["visits"].table["name"])
    assert "z" not in set(made.children["visits"].table["diagnosis"])


@pytest.mark.parametrize("rules", [{"drugs": {}}, {"order": "left >= date"}, ["visits"]])
def test_rules_are_given_by_table(rules):
    with pytest.raises(InvalidSettingError, match="`rules` of RelatedTables must map some of their tables"):
        synthesize(with_rules(60), rules=rules)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("wage > 0", "rule 'r' names 'wage'"),
        ("1 > 0", "rule 'r' names no column"),
        ("cost / 0 > 1", "rule 'r' divides by zero"),
        ({"sum": ["cost", "diagnosis"], "equals": "cost"}, "rule 'r' is no `sum` of different parts"),
    ],
)
def test_what_is_no_rule_is_refused_by_name(rule, said):
    with pytest.raises(InvalidSettingError, match=said):
        synthesize(of_visits(clinic(60)), rules={"visits": {"r": rule}})


def test_a_quotient_by_zero_is_unknown_and_rules_that_contradict_stay_violated():
    tables = of_visits(clinic(200))
    visits = tables.children["visits"].table.assign(n=0)
    own = synthesize(of_visits(tables, table=visits), rules={"visits": {"r": "cost / n > 1"}})
    assert (own.children["visits"].table["n"] == 0).all()
    contradicting = {"high": "cost > 20", "low": "cost < 20"}
    read = {"visits": read_rules(contradicting, visits)}
    learned = Sequences(of_visits(tables, table=visits), SmoothCart(), seed=0, rules=read)
    rows = learned.sample(50, seed=0).children["visits"].table
    assert learned.counts["visits"]["left"] == len(rows) > 0


def test_rules_that_contradict_are_named_when_the_source_is_checked():
    rules = {"high": "cost > 20", "low": "cost < 20"}
    linked = {"visits": Linked({**VISITS_CONTRACT, "rules": rules}, "patient", "date")}
    contracts = RelatedContracts.of(TableContract.from_mapping(PEOPLE_CONTRACT), linked)
    tables = clinic(100)
    with pytest.raises(
        ContractError, match="Table 'visits' does not meet .* rules 'high' and 'low' contradict each other"
    ):
        contracts.check({"people": tables.people, "visits": tables.children["visits"].table})
