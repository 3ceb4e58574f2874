"""Views are those of loops over lists of rows, whatever the order in which the tables are stored."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacy_assets.contract.related import Child, RelatedTables
from privacy_assets.contract.views import related_views
from privacy_assets.errors import InvalidTableError
from tests.examples import examples
from tests.reference import related_views as reference
from tests.related import clinic, with_lines


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
    said = r"In people, several columns would be called \['rows of visits'\].* Rename columns of 'visits', or"
    with pytest.raises(InvalidTableError, match=said):
        related_views(related)
    visits = pd.DataFrame({"patient": [1], "date": [0], "gap of date": [1]})
    related = RelatedTables(pd.DataFrame({"patient": [1]}), {"visits": Child(visits, "patient", "date")}, "patient")
    with pytest.raises(
        InvalidTableError, match=r"In rows of visits, several columns would be called \['gap of date'\]"
    ):
        related_views(related)


def test_a_child_without_rows_has_views_without_values():
    empty = clinic(30).children["visits"].table.head(0)
    people = clinic(30).people
    views = related_views(RelatedTables(people, {"visits": Child(empty, key="patient", order="date")}, "patient"))
    assert (views["people"]["rows of visits"] == 0).all()
    assert len(views["rows of visits"]) == 30
    assert len(views["histories of visits"]) == 0


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_rows_of_rows_are_those_of_loops_with_all_columns_above_them(seed, n):
    """Moments of visits differ, so that all orders are defined."""
    related = with_lines(clinic(n, seed, mean_visits=1.5), seed)
    visits, lines = (related.children[name].table for name in ("visits", "lines"))
    assume(len(lines))
    visits = visits.assign(date=pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(visits)), unit="D"))
    tables = {"visits": visits.sample(frac=1, random_state=1), "lines": lines.assign(date=related.above["lines"] % 3)}
    children = {name: replace(child, table=tables[name]) for name, child in related.children.items()}
    views = related_views(RelatedTables(related.people, children, "patient"))
    people, visits, lines = plain(related.people), plain(tables["visits"]), plain(tables["lines"])
    visit_of = {row["visit"]: row for row in visits}
    for row in lines:
        row["patient"] = visit_of[row["visit"]]["patient"]
    in_order = sorted(lines, key=lambda row: (visit_of[row["visit"]]["date"], row["line"]))
    histories, last = [], {}
    for row in in_order:
        before = last.get(row["patient"])
        row["gap of line"] = None if before is None else row["line"] - before["line"]
        last[row["patient"]] = row
        if before is not None:
            both = {f"{name} 1": before[name] for name in ("item", "price", "date")}
            both |= {f"{name} 2": row[name] for name in ("item", "price", "date")}
            histories.append({"patient": row["patient"], "gap of line": row["gap of line"], **both})
    assert in_any_order(plain(views["histories of lines"])) == in_any_order(histories)
    upper = reference.left_join(people, "patient", visits, "patient", "visits")
    own = [{name: value for name, value in row.items() if name != "patient"} for row in lines]
    expected = reference.left_join(upper, "visit", own, "visit", "lines")
    for row in expected:
        del row["visit"]
    assert in_any_order(plain(views["rows of lines"])) == in_any_order(expected)
    counts = dict(zip(views["people"]["patient"], views["people"]["rows of lines"], strict=True))
    assert counts == {own["patient"]: sum(row["patient"] == own["patient"] for row in lines) for own in people}


def test_equal_rows_above_are_told_apart_by_the_rows_that_belong_to_them():
    """Two visits that are equal but for their lines: what comes first does not depend on where rows are stored."""
    people = pd.DataFrame({"patient": [1]})
    visits = pd.DataFrame({"patient": 1, "visit": [7, 8, 9], "date": 0})
    lines = pd.DataFrame({"visit": [7, 8, 8, 9], "item": ["x", "y", "z", "w"]})
    found = set()
    for seed in range(6):
        children = {
            "visits": Child(visits.sample(frac=1, random_state=seed), "patient", "date", own_key="visit"),
            "lines": Child(lines.sample(frac=1, random_state=seed + 10), "visit", of="visits"),
        }
        view = related_views(RelatedTables(people, children, "patient"))["histories of lines"]
        found.add(tuple(zip(view["item 1"], view["item 2"], strict=True)))
    assert len(found) == 1
