"""Keys and orders of related tables are proposed from their values, and no draft shows values of few people."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets.drafting.draft import draft_contract
from privacy_assets.drafting.related import draft_related
from privacy_assets.errors import InvalidTableError
from tests.related import clinic

SENTINEL = "QX7731"


def clinic_with_lines(n=200, seed=0):
    """Patients with visits that have numbers, drugs, and lines of the bills of visits."""
    tables = clinic(n, seed)
    visits = tables.children["visits"].table.sort_values(["patient", "date"], ignore_index=True)
    visits["visit"] = np.arange(len(visits)) + 1
    random = np.random.default_rng(seed)
    of_visit = np.sort(random.choice(visits["visit"], 2 * len(visits)))
    lines = pd.DataFrame({"visit": of_visit, "price": np.round(random.exponential(9, len(of_visit)), 2)})
    lines["line"] = lines.groupby("visit").cumcount() + 1
    return {"people": tables.people, "visits": visits, "drugs": tables.children["drugs"].table, "lines": lines}


def drafted(tables):
    return draft_related(tables, {name: draft_contract(table) for name, table in tables.items()})


def roles(draft):
    return {column.name: column.description["role"] for column in draft.columns}


def test_keys_orders_and_roles_are_proposed_for_two_levels():
    drafts, links = drafted(clinic_with_lines())
    assert {name: (own.of, own.key, own.order, own.own_key) for name, own in links.items()} == {
        "visits": ("people", "patient", "date", "visit"),
        "drugs": ("people", "patient", None, None),
        "lines": ("visits", "visit", "line", None),
    }
    assert drafts["people"].person == "patient"
    assert not drafts["people"].one_row_per_person
    for name in ("visits", "drugs", "lines"):
        assert not [own.name for own in drafts[name].columns if "person" in own.description], name
    assert roles(drafts["visits"])["visit"] == roles(drafts["visits"])["patient"] == "direct_identifier"
    assert list(roles(drafts["lines"])) == ["visit", "price", "line"]
    assert "patient" not in drafts["lines"].to_yaml()


def test_numbers_that_start_from_1_in_each_table_are_no_key():
    tables = clinic_with_lines()
    drugs = tables["drugs"].assign(visit=np.arange(len(tables["drugs"])) + 1)
    _, links = drafted({**tables, "drugs": drugs})
    assert (links["drugs"].of, links["drugs"].key) == ("people", "patient")
    # Rows that also have their patient belong to their visit, whose patient it is.
    lines = tables["lines"].merge(tables["visits"][["visit", "patient"]], on="visit")
    drafts, links = drafted({**tables, "lines": lines})
    assert (links["lines"].of, links["lines"].key) == ("visits", "visit")
    assert roles(drafts["lines"])["patient"] == "direct_identifier"


def test_keys_are_compared_as_they_are_written():
    tables = clinic_with_lines()
    people = tables["people"].assign(patient=[f"{place:03}" for place in range(len(tables["people"]))])
    number = dict(zip(tables["people"]["patient"], range(len(people)), strict=True))
    visits = tables["visits"].assign(patient=tables["visits"]["patient"].map(number))
    _, links = drafted({"people": people, "visits": visits})
    assert links["visits"].key == "patient"


def test_values_of_few_people_are_in_no_draft_even_if_many_rows_have_them():
    tables = clinic_with_lines()
    visits, lines = tables["visits"].copy(), tables["lines"].copy()
    own = visits["patient"].isin(visits["patient"].value_counts().index[:3])
    visits.loc[own, "diagnosis"] = SENTINEL
    of_few = lines["visit"].isin(visits.loc[own, "visit"])
    lines["place"] = np.where(of_few, SENTINEL, np.where(lines["line"] == 1, "here", "there"))
    assert lines.loc[of_few, "visit"].nunique() > 10
    drafts, _ = drafted({**tables, "visits": visits, "lines": lines})
    for name in ("visits", "lines"):
        assert SENTINEL not in drafts[name].to_yaml(), name
    assert SENTINEL in draft_contract(lines).to_yaml()  # Alone, each visit counts as a person.


def without_some_keys(visits):
    return visits.assign(patient=visits["patient"].mask(visits.index < 4))


@pytest.mark.parametrize(
    ("people", "visits", "said"),
    [
        (None, lambda t: t.assign(patient=SENTINEL), "rows have another value"),
        (lambda t: pd.concat([t, t.head(2)]), None, "'patient' repeats 2 times in 'people'"),
        (None, without_some_keys, "is missing in 4 rows"),
        (None, lambda t: t.rename(columns={"patient": "who"}), "they have no column in common"),
    ],
)
def test_tables_without_a_key_are_refused_with_what_was_found(people, visits, said):
    tables = {name: own for name, own in clinic_with_lines().items() if name in ("people", "visits")}
    changed = {name: change(tables[name]) for name, change in (("people", people), ("visits", visits)) if change}
    with pytest.raises(InvalidTableError, match=said) as refused:
        drafted(tables | changed)
    assert "Table 'visits' has no key of 'people'" in str(refused.value)
    assert SENTINEL not in str(refused.value)


def test_a_third_level_is_refused():
    tables = clinic_with_lines()
    lines = tables["lines"].assign(item=np.arange(len(tables["lines"])) + 10_000)
    parts = pd.DataFrame({"item": np.repeat(lines["item"], 2), "part": "x"})
    with pytest.raises(InvalidTableError, match=r"\['parts'\] belong to rows of rows of the people"):
        drafted({**tables, "lines": lines, "parts": parts})


def test_an_order_has_no_ties_and_no_missing_values_unless_it_is_of_moments():
    tables = {name: own for name, own in clinic_with_lines().items() if name in ("people", "visits")}
    visits = tables["visits"].drop(columns=["date", "visit"])
    place = visits.groupby("patient").cumcount()
    for column, expected in (
        (place + 1, "step"),
        (place // 2, None),
        (-place, None),
        ((place + 1).astype("Int64").mask(visits.index == 3), None),
    ):
        _, links = drafted({**tables, "visits": visits.assign(step=column)})
        assert links["visits"].order == expected
    same = visits.assign(day=pd.Timestamp("2024-01-01") + pd.to_timedelta(place // 3, unit="D"))
    assert drafted({**tables, "visits": same})[1]["visits"].order == "day"
