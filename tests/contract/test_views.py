"""Views are those of loops over lists of rows, whatever the order in which the tables are stored."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.contract.related import Child, RelatedTables
from privacy_assets.contract.views import related_views
from privacy_assets.errors import InvalidTableError
from tests.examples import examples
from tests.reference import related_views as reference
from tests.related import clinic


def plain(frame):
    """Rows as dictionaries of plain values, None for a missing one."""
    found = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{name: _plain(value) for name, value in row.items()} for row in found]


def _plain(value):
    if isinstance(value, np.generic):
        value = value.item()
    return float(f"{value:.9g}") if isinstance(value, float) else value


def in_any_order(rows):
    return sorted(rows, key=lambda row: repr(sorted(row.items())))


@st.composite
def tables(draw):
    """Some people with none, one or several rows; moments of a person differ, so that their order is defined."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_rows = draw(st.integers(1, 12)), draw(st.integers(0, 30))
    whose = random.integers(0, n, n_rows)
    moments = random.permutation(200)[:n_rows]
    kind = draw(st.sampled_from(["integer", "float", "datetime"]))
    order = {
        "integer": moments,
        "float": moments / 4,
        "datetime": pd.Timestamp("2020-01-01") + pd.to_timedelta(moments, unit="D"),
    }
    some = random.random(n_rows) < 0.2
    people = pd.DataFrame(
        {"age": random.integers(0, 5, n), "patient": random.permutation(n) + 7, "site": list("ab" * n)[:n]}
    )
    rows = pd.DataFrame(
        {
            "when": order[kind],
            "code": pd.Series(random.choice(["x", "y", "z"], n_rows), dtype=object).where(~some, None),
            "patient": people["patient"].to_numpy()[whose],
            "age": random.integers(0, 3, n_rows),
            "cost": np.where(some, np.nan, np.round(random.exponential(10, n_rows), 2)),
        }
    )
    return RelatedTables(people, {"visits": Child(rows, key="patient", order="when")}, person="patient")


@settings(max_examples=examples(150), deadline=None)
@given(tables())
def test_views_are_those_of_loops(related):
    views = related_views(related)
    people, rows = plain(related.people), plain(related.children["visits"].table)
    columns = ["when", "code", "age", "cost"]
    expected = reference.view_of_people(people, [("visits", rows, "patient", "when", ["age", "cost"], ["code"])])
    assert [{name: row[name] for name in views["people"]} for row in expected] == plain(views["people"])
    found = plain(views["rows of visits"])
    expected = reference.view_of_rows(people, "visits", rows, "patient", "when", columns)
    assert in_any_order(found) == in_any_order(expected)
    found = plain(views["histories of visits"])
    expected = reference.view_of_histories(people, "patient", rows, "patient", "when", columns)
    assert in_any_order(found) == in_any_order(expected)


def test_ties_and_unordered_rows_do_not_depend_on_where_rows_are_stored():
    related = clinic(80, seed=1)
    random = np.random.default_rng(0)
    same_day = related.children["visits"].table.assign(date=pd.Timestamp("2020-01-01"))
    children = {"visits": Child(same_day, key="patient", order="date"), "drugs": related.children["drugs"]}
    shuffled = {
        name: Child(child.table.sample(frac=1, random_state=random), key=child.key, order=child.order)
        for name, child in children.items()
    }
    one, other = (related_views(RelatedTables(related.people, own, "patient")) for own in (children, shuffled))
    assert list(one) == ["people", *(f"{what} of {v}" for v in children for what in ("rows", "histories"))]
    for name, view in one.items():
        assert in_any_order(plain(view)) == in_any_order(plain(other[name])), name


def test_a_name_that_two_columns_would_have_is_refused():
    people = pd.DataFrame({"patient": [1, 2], "rows of visits": [0, 0]})
    related = RelatedTables(people, {"visits": Child(pd.DataFrame({"patient": [1]}), key="patient")}, person="patient")
    with pytest.raises(InvalidTableError, match="1 are repeated"):
        related_views(related)


def test_a_child_without_rows_has_views_without_values():
    empty = clinic(30).children["visits"].table.head(0)
    people = clinic(30).people
    views = related_views(RelatedTables(people, {"visits": Child(empty, key="patient", order="date")}, "patient"))
    assert (views["people"]["rows of visits"] == 0).all()
    assert len(views["rows of visits"]) == 30
    assert len(views["histories of visits"]) == 0
