"""Violations between consecutive rows are those of loops over the rows of each person."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.contract.related import Child, RelatedTables
from privacy_assets.contract.rules_between_rows import count_rules_between_rows
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from tests.examples import examples
from tests.related import clinic, of_visits

RULES = {
    "never_falls": "`level 2` >= `level 1`",
    "soon": {"expect": "`gap of day` <= 3", "at_most": 0.1},
    "x_stays": "not (`code 1` == 'x' and `code 2` != 'x')",
}
LEVELS = st.one_of(st.none(), st.integers(0, 3))


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), LEVELS, st.sampled_from(["x", "y"])), max_size=12), st.integers(0, 9))
def test_violations_are_those_of_loops(cells, seed):
    days = np.random.default_rng(seed).permutation(20)[: len(cells)]
    rows = pd.DataFrame(cells, columns=["patient", "level", "code"]).astype({"level": "Int64", "patient": "int64"})
    rows["day"] = days
    tables = RelatedTables(
        pd.DataFrame({"patient": range(4)}), {"rows": Child(rows, "patient", "day")}, person="patient"
    )
    found = count_rules_between_rows({"rows": RULES}, {"original": tables})
    expected = {name: [0, 0] for name in RULES}
    for person in range(4):
        own = sorted((day, level, code) for day, (who, level, code) in zip(days, cells, strict=True) if who == person)
        for (day, level, code), (next_day, next_level, next_code) in pairwise(own):
            if level is not None and next_level is not None:
                expected["never_falls"][0] += 1
                expected["never_falls"][1] += next_level < level
            expected["soon"][0] += 1
            expected["soon"][1] += next_day - day > 3
            expected["x_stays"][0] += 1
            expected["x_stays"][1] += code == "x" and next_code != "x"
    assert {own.rule: [own.pairs, own.violations] for own in found.itertuples()} == expected
    for own in found.itertuples():
        assert own.share == (own.violations / own.pairs) if own.pairs else np.isnan(own.share)


def test_tables_are_counted_beside_each_other_and_no_cell_is_shown():
    tables = clinic(100)
    turned = of_visits(tables, table=tables.children["visits"].table.assign(cost=lambda own: -own["cost"]))
    rules = {"visits": {"cost_rises": "`cost 2` > `cost 1`"}}
    found = count_rules_between_rows(rules, {"original": tables, "turned": turned}).set_index("table")
    assert found["pairs"].tolist() == [int((np.bincount(tables.whose["visits"]) - 1).clip(0).sum())] * 2
    assert found.loc["original", "violations"] + found.loc["turned", "violations"] >= found.loc["original", "pairs"]
    assert found.columns.tolist() == ["child", "rule", "pairs", "violations", "share"]


def test_gaps_of_moments_are_in_days():
    rows = pd.DataFrame(
        {"patient": 1, "day": pd.to_datetime(["2024-01-01 00:00", "2024-01-03 12:00", "2024-02-01 00:00"])}
    )
    tables = RelatedTables(pd.DataFrame({"patient": [1]}), {"rows": Child(rows, "patient", "day")}, person="patient")
    found = count_rules_between_rows({"rows": {"soon": "`gap of day` <= 2.5"}}, {"original": tables})
    assert (found["pairs"].item(), found["violations"].item()) == (2, 1)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({}, "must map names"),
        ({"visits": {"a": "cost > 1"}}, "names 'cost'"),
        ({"visits": {"a": "`cost 1` + 1"}}, "no condition"),
        ({"visits": {"a": "__import__('os')"}}, "rule 'a'"),
    ],
)
def test_what_is_no_rule_is_refused(rules, said):
    with pytest.raises(InvalidSettingError, match=said):
        count_rules_between_rows(rules, {"original": clinic(30)})


def test_tables_without_the_child_are_refused_by_name():
    tables = clinic(30)
    for own in (tables.people, replace(tables, children={"drugs": tables.children["drugs"]})):
        with pytest.raises(InvalidTableError, match=r"The tables 'made' have no children \['visits'\]"):
            count_rules_between_rows({"visits": {"a": "`cost 2` > `cost 1`"}}, {"original": tables, "made": own})
