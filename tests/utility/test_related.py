"""Related tables are worth what their lowest view is; rows per person and consecutive rows are those of loops."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from privacy_assets.contract.views import related_views
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.synthesis.split import split_records
from privacy_assets.synthesis.synthesize import synthesize
from privacy_assets.utility.assess import assess_utility
from tests.related import clinic, of_visits, with_lines


@pytest.fixture(scope="module")
def sides():
    return split_records(clinic(1600), train_fraction=0.5)


@pytest.fixture(scope="module")
def made(sides):
    return synthesize(sides.original)


def test_the_lowest_view_decides_and_is_named(sides, made):
    found = assess_utility(sides.original, made, sides.control)
    frames = [related_views(own) for own in (sides.original, made, sides.control)]
    each = {}
    for view in frames[0]:
        own = assess_utility(*(side[view].drop(columns="patient") for side in frames))
        assert found.scores[f"utility of {view}"] == own.scores["utility"]
        if own.scores["utility"] is not None:
            each[view] = own.scores
    lowest = min(each, key=lambda view: each[view]["utility"])
    assert found.settings["lowest_view"] == lowest
    assert found.scores["utility_upper"] == each[lowest]["utility_upper"]
    assert 0.5 < found.scores["utility"] < 1
    assert {name.partition(": ")[0] for name in found.columns["column"]} == set(found.settings["views"])
    assert type(found).from_artifact(found.to_artifact()).scores == found.scores
    assert found.drawn().text


def ranks(values, known):
    return [sum(k < v for k in known) + sum(k <= v for k in known) for v in values]


def by_loops(tables, control):
    """Distance of rows per person, error of the correlation of costs, and of the share of unchanged diagnoses."""

    def counted(own):
        rows = Counter(own.children["visits"].table["patient"])
        return Counter(rows.get(key, 0) for key in own.people["patient"])

    a, b = counted(tables), counted(control)
    distance = sum(abs(a[n] / len(tables.people) - b[n] / len(control.people)) for n in {*a, *b}) / 2
    known = control.children["visits"].table["cost"].tolist()

    def consecutive(own):
        pairs = []
        for _, rows in own.children["visits"].table.groupby("patient"):
            rows = rows.sort_values("date", kind="stable")
            lines = list(zip(ranks(rows["cost"], known), rows["diagnosis"], rows["paid"], strict=True))
            pairs += list(pairwise(lines))
        first, second = zip(*pairs, strict=True)
        costs = np.corrcoef([x[0] for x in first], [x[0] for x in second])[0, 1]
        same = [np.mean([x[i] == y[i] for x, y in pairs]) for i in (1, 2)]
        return costs, same

    one, other = consecutive(tables), consecutive(control)
    return distance, abs(one[0] - other[0]), np.mean(np.abs(np.subtract(one[1], other[1])))


def test_errors_of_rows_are_those_of_loops():
    original, control = (without_ties(own) for own in split_records(clinic(400, seed=2), train_fraction=0.5))
    found = assess_utility(original, original, control).scores
    expected = by_loops(original, control)
    names = ["rows_per_person_distance", "lag_1_error", "unchanged_error"]
    for name, own in zip(names, expected, strict=True):
        assert found[f"{name} of visits"] == pytest.approx(own)
        assert found[f"{name} of visits of originals"] == found[f"{name} of visits"]


def without_ties(tables):
    visits = tables.children["visits"].table
    return of_visits(tables, table=visits.drop_duplicates(["patient", "date"], ignore_index=True))


def test_rows_of_other_people_are_worth_less(sides):
    """Rows that are dealt out at random keep each table, and lose who they belong to."""
    original, control = (of_visits(own) for own in sides)
    visits = original.children["visits"].table
    dealt = visits.assign(patient=np.random.default_rng(0).permutation(visits["patient"]))
    found = assess_utility(original, of_visits(original, table=dealt), control)
    assert found.scores["utility of histories of visits"] < 0.6
    assert found.scores["lag_1_error of visits"] > 5 * found.scores["lag_1_error of visits of originals"]
    assert found.scores["rows_per_person_distance of visits"] == pytest.approx(
        found.scores["rows_per_person_distance of visits of originals"]
    )


def test_a_release_without_histories_has_no_utility(sides, made):
    original, control = (of_visits(own) for own in sides)
    first = made.children["visits"].table.drop_duplicates("patient")
    found = assess_utility(original, of_visits(made, table=first), control)
    assert found.scores["utility"] is None
    assert found.scores["utility of people"] is not None
    assert any("'histories of visits' cannot be judged: it has no rows in the released" in note for note in found.notes)


def test_what_is_not_built_for_related_tables_is_refused_by_name(sides, made):
    for name, value in {"group": "sex", "bounds": "cell", "domain": pd.DataFrame(), "hierarchies": {}}.items():
        with pytest.raises(InvalidSettingError, match=f"`{name}` cannot be set with RelatedTables"):
            assess_utility(sides.original, made, sides.control, **{name: value})
    with pytest.raises(InvalidTableError, match="The released tables are not RelatedTables"):
        assess_utility(sides.original, made.people, sides.control)
    with pytest.raises(InvalidSettingError, match="seed"):
        assess_utility(sides.original, made, sides.control, seed=-1)


def test_rows_of_rows_that_are_dealt_out_are_worth_less():
    original, control = split_records(with_lines(clinic(800, seed=1)), train_fraction=0.5)
    lines = original.children["lines"]
    dealt = lines.table.assign(visit=np.random.default_rng(0).permutation(lines.table["visit"]))
    children = {**original.children, "lines": replace(lines, table=dealt)}
    found = assess_utility(original, replace(original, children=children), control).scores
    assert found["utility of rows of lines"] < found["utility of rows of visits"] - 0.1
    counts = [np.bincount(own.whose["lines"], minlength=len(own.people)) for own in (original, control)]
    expected = sum(abs(np.mean(counts[0] == n) - np.mean(counts[1] == n)) for n in range(200)) / 2
    assert found["rows_per_person_distance of lines"] == pytest.approx(expected)
