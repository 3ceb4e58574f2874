"""What fewer than 5 people have is in nothing that a draft writes or says."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import TableContract, draft_contract
from privacy_assets.orchestration.component.drafted import fields_in_yaml, release_in_yaml
from tests.examples import examples

NAME = "Wilhelmina Zuckerkandl"
COMMON = ["north", "south", "east", "west"]
FEWEST = 5


def drafted(table, **file):
    """Return the draft of a table, and everything that it writes or says."""
    draft = draft_contract(table if not file else file["path"])
    fields = fields_in_yaml({"file": "people.csv"}, draft, {})
    told = (draft.to_yaml(), draft.mapping, draft.shown(), draft, draft.columns, fields, release_in_yaml(fields))
    return draft, "\n".join(map(str, told))


def admits(draft, table):
    mapping = yaml.safe_load(draft.to_yaml())
    del mapping["drafted"]
    has_person = any("person" in own for own in mapping["columns"].values())
    mapping |= {} if has_person else {"one_row_per_person": True}
    for own in mapping["columns"].values():
        own["role"] = "quasi_identifier" if own["role"] == "decide" else own["role"]
    return TableContract.from_mapping(mapping).admit(table) is not None


def with_rare(rare, n_rows=200):
    return pd.DataFrame({"region": [*np.resize(COMMON, n_rows - len(rare)), *rare], "wave": [1, 2] * (n_rows // 2)})


RARE = {
    "a name": [NAME],
    "a name that 4 have": [NAME] * 4,
    "two names": [NAME, f"{NAME} the Younger"],
    "a cell of digits in words": [f"flat 4711 {NAME}"],
    "a missing one beside it": [NAME, None],
    "a name in another case": [NAME, NAME.upper()],
}


@pytest.mark.parametrize("rare", RARE.values(), ids=RARE)
@pytest.mark.parametrize("kind", ["object", "category", "ordered", "string", "csv"])
def test_a_rare_category_is_counted_and_in_nothing_that_a_draft_says(tmp_path, rare, kind):
    table, file = with_rare(rare), {}
    if kind == "csv":
        file = {"path": tmp_path / "people.csv"}
        table.to_csv(file["path"], index=False)
    elif kind == "ordered":
        order = [*COMMON, *dict.fromkeys(each for each in rare if each)]
        table["region"] = pd.Categorical(table["region"], order, ordered=True)
    else:
        table["region"] = table["region"].astype(kind)
    draft, told = drafted(table, **file)
    assert NAME.casefold() not in told.casefold()
    own = draft.mapping["columns"]["region"]
    assert own["type"] == "category"
    assert not own.keys() & {"categories", "ordered"}
    n_rare = len({each for each in rare if each})
    assert f"{n_rare} of its {4 + n_rare} categories have fewer than 5 people" in told
    assert admits(draft, with_rare(rare))


def test_categories_that_five_people_have_are_listed():
    table = with_rare(["the fifth"] * FEWEST)
    draft, told = drafted(table)
    assert draft.mapping["columns"]["region"]["categories"] == sorted([*COMMON, "the fifth"])
    assert "fewer than 5 people" not in told
    assert admits(draft, table)


def test_a_declared_category_that_nobody_has_is_not_written():
    table = with_rare([])
    table["region"] = pd.Categorical(table["region"], [*COMMON, NAME])
    draft, told = drafted(table)
    assert NAME not in told
    assert "1 of its 5 categories" in told
    assert admits(draft, table)


def test_people_are_counted_and_not_their_rows():
    people = [f"P{number:05d}" for number in range(100)]
    visits = pd.DataFrame({"patient_id": np.repeat(people, 10), "region": np.resize(COMMON, 1_000), "age": 40})
    visits.loc[visits["patient_id"].isin(people[:4]), ["region", "age"]] = [NAME, 103]
    draft, told = drafted(visits)
    assert draft.person == "patient_id"
    assert NAME not in told
    assert "103" not in told
    assert "categories" not in draft.mapping["columns"]["region"]
    visits.loc[visits["patient_id"] == people[4], "region"] = NAME
    assert NAME in drafted(visits)[0].mapping["columns"]["region"]["categories"]


ENDS = {
    "an age": ([*range(20, 80)] * 5, 97, {"min": 20, "max": 100}),
    "an age that four have": ([*range(20, 80)] * 5, 103, {"min": 20}),
    "a salary": ([*range(1_000, 6_000, 10)] * 2, 987_654, {"min": 0}),
    "a debt": ([*range(100, 600)] * 2, -7_300, {"max": 600}),
    "a half": ([number / 2 for number in range(20, 180)] * 5, 91.5, {"min": 10.0, "max": 100.0}),
    "a level": ([3] * 30, 4, {"min": 3, "max": 10}),
}


@pytest.mark.parametrize(("values", "alone", "expected"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("as_text", [False, True], ids=["numbers", "text"])
def test_an_end_is_written_if_five_people_share_it(values, alone, expected, as_text):
    table = pd.DataFrame({"size": [*values, alone], "wave": 1})
    table["size"] = table["size"].map(str) if as_text else table["size"]
    draft, _ = drafted(table)
    own = draft.mapping["columns"]["size"]
    assert {end: own[end] for end in ("min", "max") if end in own} == expected
    assert admits(draft, table)


def test_an_end_that_few_people_have_is_left_out_with_a_remark():
    table = pd.DataFrame({"salary": [*range(1_000, 6_000, 10)] * 2 + [987_654], "wave": 1})
    draft, told = drafted(table)
    assert "max" not in draft.mapping["columns"]["salary"]
    assert "max left out, because fewer than 5 people are near" in told
    for end in ("987", "988", "990000", "1000000"):
        assert end not in told


@pytest.mark.parametrize("kind", ["datetime", "text", "dates"])
@pytest.mark.parametrize("year", [1911, 1899, 1941, 1700, 2044])
def test_the_year_of_one_person_is_not_an_end(kind, year):
    days = [dt.datetime(1950 + number % 50, 3, 1 + number % 28) for number in range(500)]
    born = pd.Series([*days, dt.datetime(year, 5, 17)], dtype="datetime64[us]")
    born = born.dt.strftime("%Y-%m-%d") if kind == "text" else born.dt.date if kind == "dates" else born
    table = pd.DataFrame({"born": born, "wave": 1})
    draft, told = drafted(table)
    own = draft.mapping["columns"]["born"]
    assert str(year) not in told
    assert str(year + 1) not in told
    assert "max" in own if year < 1950 else "min" in own
    assert admits(draft, table)


@given(st.lists(st.integers(0, 120), min_size=FEWEST, max_size=40), st.lists(st.integers(-(10**6), 10**6), max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_an_end_is_one_that_the_people_without_the_farthest_four_allow(many, few):
    values = [*many * 3, *few]
    table = pd.DataFrame({"size": values, "wave": 1})
    draft = draft_contract(table)
    assert admits(draft, table)
    own = draft.mapping["columns"]["size"]
    in_order = sorted(values)
    fifth = {"min": in_order[FEWEST - 1], "max": in_order[-FEWEST]}
    size = max(map(abs, fifth.values()))
    # By decimals alone: the unit of the second digit of what the fifth people have, or ten or a hundred times it.
    first = 10.0 ** (len(str(size)) - 2) if size else 1.0
    for end, drafted_end in own.items():
        if end in fifth and drafted_end:
            away = -1 if end == "min" else 1
            steps = [first * coarser for coarser in (1, 10, 100)]
            assert any(drafted_end % step == 0 and 0 <= away * (drafted_end - fifth[end]) < step for step in steps)
