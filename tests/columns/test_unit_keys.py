"""Columns whose values repeat like people, found by their structure, whatever they are called."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns import key_candidates, unit_keys
from privacy_assets.columns.coding import connected
from privacy_assets.columns.unit_keys import find_unit_keys
from tests.examples import examples


def keys_of(table, **given):
    return {key.column: key for key in find_unit_keys(table, **given) if not key.made_by}


def visits(n_people=200, n_rows=4, seed=0):
    """People with an age and a sex, several rows each, in random order."""
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(n_people), n_rows)
    table = pd.DataFrame(
        {
            "who": random.permutation(10 * n_people)[who],
            "age": random.integers(18, 90, n_people)[who],
            "sex": random.choice(["f", "m"], n_people)[who],
            "illness": random.choice(list("abcdefgh"), len(who)),
            "cost": random.integers(0, 400, len(who)),
        }
    )
    return table.sample(frac=1, random_state=seed).reset_index(drop=True)


KINDS = {
    "whole numbers": lambda who: who,
    "whole numbers as floats": lambda who: who.astype("float64"),
    "texts": lambda who: "S-" + who.astype(str),
    "categories": lambda who: who.astype(str).astype("category"),
    "hashes": lambda who: (who * 2_654_435_761 % 2**32).map("{:08x}".format),
    "numbers with a missing value": lambda who: who.astype("Int64").mask(who.index % 20 == 0),
    "floats with a missing value": lambda who: who.astype("float64").mask(who.index % 20 == 0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_of_people_is_found_in_any_form(kind):
    table = visits()
    table["who"] = KINDS[kind](table["who"])
    key = keys_of(table)["who"]
    assert key.is_strong
    assert set(key.facts) == {"age", "sex"}
    assert key.measures == ("age",)
    assert key.n_values == 200
    assert key.n_rows == table["who"].notna().sum()


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_wrong_entries_do_not_hide_people(share):
    table = visits(500)
    random = np.random.default_rng(1)
    wrong = random.random(len(table)) < share
    table.loc[wrong, "age"] = random.integers(18, 90, wrong.sum())
    assert keys_of(table)["who"].is_strong


@pytest.mark.parametrize(("n_people", "n_rows", "n_items"), [(60, 10, 50), (300, 10, 40), (1_000, 20, 300)])
def test_who_has_no_fact_is_found_by_what_each_person_has_once(n_people, n_rows, n_items):
    random = np.random.default_rng(0)
    weights = 1 / (np.arange(n_items) + 10.0)
    movies = [random.choice(n_items, n_rows, replace=False, p=weights / weights.sum()) for _ in range(n_people)]
    table = pd.DataFrame({"user": np.repeat(np.arange(n_people), n_rows), "movie": np.concatenate(movies)})
    table["stars"] = random.integers(1, 6, len(table))
    key = keys_of(table)["user"]
    assert (key.halves, key.is_strong) == (("movie",), True)


def cross_section(n=2_000, seed=0):
    """One row for each person, with places, codes, and columns made of others."""
    random = np.random.default_rng(seed)
    age, place = random.integers(18, 90, n), random.choice(400, n, p=random.dirichlet(np.full(400, 0.7)))
    town, illness = np.sort(random.integers(0, 120, 400))[place], random.choice(80, n, p=random.dirichlet(np.ones(80)))
    table = pd.DataFrame({"age": age, "band": age // 10, "minor": age < 21, "squared": age**2, "born": 2020 - age})
    table["zip"], table["town"], table["state"] = 10_000 + 7 * place, town, random.integers(0, 12, 120)[town]
    table["code"] = [f"{chr(65 + each // 10)}{each % 10}" for each in illness]
    table["chapter"], table["sex"] = illness // 10, random.integers(0, 2, n)
    table["height"], table["weight"] = random.integers(150, 200, n), random.integers(40, 120, n)
    table["index"] = (table["weight"] / (table["height"] / 100) ** 2).round(1)
    return table


@pytest.mark.parametrize("n", [300, 2_000, 20_000])
def test_no_column_of_a_table_with_one_row_per_person_is_strong(n):
    assert {name: key for name, key in keys_of(cross_section(n)).items() if key.is_strong} == {}


def of_the_order(table):
    """Return who each row is of, in the order of people, and the number of each row among those of its person."""
    who = pd.factorize(table["who"])[0]
    return who, table.groupby(who).cumcount().to_numpy()


HIDING_PLACES = {
    "a suffix": lambda who, visit: {"visit": [f"P{1000 + a}-{b}" for a, b in zip(who, visit, strict=True)]},
    "a prefix": lambda who, visit: {"visit": [f"{b}/{1000 + a}" for a, b in zip(who, visit, strict=True)]},
    "the middle": lambda who, visit: {"visit": [f"{1000 + a}.{b}.x{b}" for a, b in zip(who, visit, strict=True)]},
    "the first digits": lambda who, visit: {"visit": 10 * who + visit},
    "more first digits": lambda who, visit: {"visit": (100 * who + visit).astype("float64")},
    "the first characters": lambda who, visit: {"visit": [f"P{a:04d}{b:02d}" for a, b in zip(who, visit, strict=True)]},
    "two columns": lambda who, visit: {"visit": who // 20 + 100, "and": who % 20},
    "links": lambda who, visit: {
        "visit": 7_000 - 3 * np.arange(len(who)),
        "before": pd.Series(7_003 - 3 * np.arange(len(who)), dtype="Int64").mask(visit == 0),
    },
    "an order": lambda who, visit: {"visit": np.arange(len(who)) ** 2},
}


@pytest.mark.parametrize("place", HIDING_PLACES)
def test_a_number_of_people_is_found_where_it_hides(place):
    table = visits(300).sort_values("who", ignore_index=True)
    table["region"] = np.random.default_rng(1).integers(0, 6, 300)[table.index // 4]
    who, visit = of_the_order(table)
    table = table.drop(columns="who").assign(
        **HIDING_PLACES[place](who * 7 % 300 if place != "an order" else who, visit)
    )
    found = {key.column: key for key in find_unit_keys(table.sample(frac=1, random_state=0)) if key.made_by}
    key = found["and" if place == "two columns" else "visit"]
    assert {"age", "region"} & set(key.facts)
    assert key.is_strong


@pytest.mark.parametrize("n", [300, 2_000, 20_000])
def test_nothing_hides_in_a_table_with_one_row_per_person(n):
    table = cross_section(n)
    random = np.random.default_rng(1)
    table["number"], table["uuid"] = (
        np.arange(n),
        [f"{each:016x}-{each % 97:04x}" for each in random.integers(0, 2**60, n)],
    )
    table["rank"], table["day"] = (
        random.permutation(n),
        [f"2024-{each % 12 + 1:02d}-{each % 28 + 1:02d}" for each in range(n)],
    )
    assert [key for key in find_unit_keys(table) if key.is_strong] == []


def test_serial_numbers_given_by_place_and_day_are_no_people():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"place": np.repeat(np.arange(12), 200), "day": random.integers(0, 90, 2_400)})
    table = table.sort_values(["place", "day"], ignore_index=True).assign(number=np.arange(2_400))
    table["age"], table["sex"] = random.integers(18, 90, 2_400), random.integers(0, 2, 2_400)
    assert [key for key in find_unit_keys(table) if key.is_strong and key.made_by] == []


def test_parts_and_orders_of_a_large_table_are_examined_in_its_middle(monkeypatch):
    monkeypatch.setattr(key_candidates, "MOST_IN_ORDER", 600)
    table = visits(1_000).sort_values("who", ignore_index=True)
    table["region"] = np.random.default_rng(1).integers(0, 6, 1_000)[table.index // 4]
    who, visit = of_the_order(table)
    for made in ({"visit": 10 * who + visit}, {"visit": np.arange(len(who))}, {"visit": who // 20, "and": who % 20}):
        found = find_unit_keys(table.drop(columns="who").assign(**made))
        assert next(key.column for key in found if key.is_strong and key.made_by) == "visit"


visits_before = st.lists(st.integers(-1, 11), min_size=1, max_size=12)


@settings(max_examples=examples(100), deadline=None)
@given(visits_before)
def test_linked_rows_are_those_that_links_lead_to(before):
    before = [each if each < len(before) else -1 for each in before]
    group = list(range(len(before)))
    for _ in before:
        for row, other in enumerate(before):
            if other >= 0:
                group[row] = group[other] = min(group[row], group[other])
    after = [row for row, other in enumerate(before) if other >= 0]
    found = connected(np.array(before)[after], np.array(after, int), len(before)).tolist()
    assert [[a == b for a in found] for b in found] == [[a == b for a in group] for b in group]


def test_numbers_of_places_are_no_measures():
    random = np.random.default_rng(0)
    town = random.integers(0, 60, 2_000)
    table = pd.DataFrame({"town": random.permutation(1_000)[town], "size": random.permutation(30)[town // 2]})
    table["age"] = random.integers(18, 90, 2_000)
    assert keys_of(table)["town"].is_strong
    assert not keys_of(table.rename(columns={"size": "stateCode"}))["town"].is_strong


def test_keys_are_related_to_the_people_who_are_given():
    table = visits(300)
    who = pd.factorize(table["who"])[0].astype(np.int64)
    # Households of about two people, physicians who see anybody, and two rows for each visit.
    table["household"], table["physician"] = who // 2, np.random.default_rng(1).integers(0, 40, len(table))
    table["rent"] = table["household"] * 7 % 97
    table["ward"], table["rooms"] = table["physician"] % 9 * 7 % 9, table["physician"] * 11 % 37
    table["visit"] = 7 * who + table.groupby("who").cumcount() // 2
    related = {name: (key.is_finer, key.is_coarser) for name, key in keys_of(table, people=who).items()}
    assert related["who"] == related["visit"] == (True, False)
    assert (related["household"], related["physician"]) == ((False, True), (False, False))
    assert not any(key.is_finer or key.is_coarser for key in find_unit_keys(table))


def test_rows_of_a_large_table_are_compared_for_whole_people(monkeypatch):
    monkeypatch.setattr(unit_keys, "MOST_ROWS", 400)
    key = keys_of(visits(2_000, 3))["who"]
    assert (key.n_values, key.n_rows, key.is_strong) == (2_000, 6_000, True)


def test_in_a_wide_table_keys_are_compared_with_some_columns(monkeypatch):
    monkeypatch.setattr(unit_keys, "MOST_PAIRS", 0)
    who = np.repeat(np.arange(200), 4)
    facts = {f"fact {place}": np.random.default_rng(place).integers(18, 90, 200)[who] for place in range(60)}
    key = keys_of(pd.DataFrame({"who": who, **facts}))["who"]
    assert unit_keys.FEWEST_COMPARED - 1 <= len(key.facts) <= unit_keys.FEWEST_COMPARED


def test_the_order_of_the_rows_changes_nothing():
    table = visits()
    assert keys_of(table)["who"] == keys_of(table.sort_values("who"))["who"]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [], "b": []}),
        pd.DataFrame({"a": [1], "b": [2]}),
        pd.DataFrame({"a": [[1], [2]] * 20, "b": [1, "x"] * 20, "c": [None] * 40}),
        pd.DataFrame({"day": pd.date_range("2024-01-01", periods=40).repeat(3), "age": np.repeat(np.arange(40), 3)}),
        pd.DataFrame({"fraction": (np.arange(40) / 7).repeat(3), "age": np.repeat(np.arange(40), 3)}),
    ],
)
def test_what_cannot_number_people_is_none(table):
    assert set(keys_of(table)) <= {"age"}


codes = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30)


@settings(max_examples=examples(100), deadline=None)
@given(codes)
def test_pairs_that_repeat_are_counted(rows):
    counts = np.array([rows.count(each) for each in set(rows)])
    assert unit_keys._n_pairs(counts) == sum(one == other for one, other in combinations(rows, 2))


@pytest.mark.parametrize("people", [None, "many", "many, and one with very many rows", "few"])
def test_of_a_column_with_few_values_some_rows_are_compared(people, monkeypatch):
    """All of a person, whose records repeat what they are of."""
    random = np.random.default_rng(3)
    station, hour = (own.ravel() for own in np.indices((40, 500)))
    whose = {
        "many": station * 125 + hour // 4,
        "many, and one with very many rows": np.where(station, station * 125 + hour // 4, 0),
        "few": station,
    }.get(people)
    table = pd.DataFrame({"station": station, "hour": hour, "wind": random.integers(0, 30, 20_000)})
    for name in ("height", "opened", "cost"):
        table[name] = random.integers(20, 90, 40)[station]
    expected = {key.column: key for key in unit_keys.find_unit_keys(table, whose)}
    n_compared = []
    monkeypatch.setattr(
        unit_keys, "_numbered", lambda codes, own=unit_keys._numbered: n_compared.append(len(codes)) or own(codes)
    )
    monkeypatch.setattr(unit_keys, "MOST_ROWS", 1_000)
    monkeypatch.setattr(unit_keys, "FEWEST_ROWS", 1_000)
    found = {key.column: key for key in unit_keys.find_unit_keys(table, whose)}
    assert found["station"] == expected["station"]
    assert expected["station"].facts
    assert expected["station"].halves == ("hour",)
    assert expected["station"].is_coarser == (people is not None and people != "few")
    assert max(n_compared) < 6_000
