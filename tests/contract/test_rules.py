"""Rules across columns: which records violate them, and what is refused."""

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy_assets.contract.batches import BatchAdmission
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.rule_expressions import Columns
from privacy_assets.contract.rules import read_rules, violations
from privacy_assets.errors import ContractError, InvalidSettingError, InvalidTableError
from tests.reference.rules import as_text, breaks_sum, fewest_to_remove, value_of

SECRET = "S3CRET-cell"
LEVELS = ["low", "mid", "high"]
COLUMNS = {
    "admitted": {"type": "datetime", "role": "quasi_identifier"},
    "discharged": {"type": "datetime", "role": "sensitive", "nullable": True},
    "sex": {"type": "category", "role": "quasi_identifier", "categories": ["female", "male"]},
    "n born": {"type": "integer", "role": "sensitive", "nullable": True},
    "code": {"type": "text", "role": "sensitive"},
    "label": {"type": "text", "role": "sensitive", "nullable": True},
    "part": {"type": "float", "role": "sensitive", "nullable": True},
    "other": {"type": "float", "role": "sensitive"},
    "total": {"type": "float", "role": "sensitive"},
    "level": {"type": "category", "role": "other", "categories": LEVELS, "ordered": True},
    "smokes": {"type": "boolean", "role": "other", "nullable": True},
    "seen": {"type": "datetime64[us, Europe/Berlin]", "role": "other"},
    "who": {"type": "text", "role": "direct_identifier"},
}
TABLE = pd.DataFrame(
    {
        "admitted": ["2024-01-01", "2024-02-01", "2024-03-01"],
        "discharged": ["2024-01-03", None, "2024-03-01"],
        "sex": ["female", "male", "male"],
        "n born": [2, 0, None],
        "code": ["A", "A", "B"],
        "label": ["a", None, "b"],
        "part": [0.1, None, 2.0],
        "other": [0.2, 1.0, 3.0],
        "total": [0.3, 9.0, 5.0],
        "level": ["low", "mid", "high"],
        "smokes": [True, False, None],
        "seen": ["2024-01-01T00:00+01:00", "2024-06-30T22:00Z", "2024-07-01T00:00+02:00"],
        "who": [f"{SECRET}{i}" for i in range(3)],
    }
)


def contract(**rules):
    return TableContract.from_mapping({"one_row_per_person": True, "columns": COLUMNS, "rules": rules})


def broken(written, **changed):
    """Return the places of the records of the table, with some columns changed, that violate a rule."""
    own = contract(rule=written)
    table = contract().check(TABLE.assign(**changed))
    return np.flatnonzero(violations(own.rules, Columns(table))["rule"]).tolist()


@pytest.mark.parametrize(
    ("written", "changed", "expected"),
    [
        ("discharged >= admitted", {}, []),
        ("discharged > admitted", {}, [2]),
        ("discharged - admitted <= 1", {}, [0]),
        ('admitted >= "2024-02-01"', {}, [0]),
        ('admitted == "2024-02-01T00:00"', {}, [0, 2]),
        ('seen >= "2024-07-01"', {}, [0]),
        ('seen >= "2024-06-30T22:00:01Z"', {}, [0, 1, 2]),
        ('not (sex == "male" and `n born` > 0)', {"n born": [2, 1, None]}, [1]),
        ('sex == "female"', {}, [1, 2]),
        ('sex in ["female"]', {}, [1, 2]),
        ('sex not in ["female", "male"]', {}, [0, 1, 2]),
        ("missing(discharged)", {}, [0, 2]),
        ("not missing(`n born`) or smokes", {}, []),
        ("smokes", {}, [1]),
        ("smokes == False", {}, [0]),
        ('level >= "mid"', {}, [0]),
        ("code == label", {"label": ["A", "B", "x"]}, [1, 2]),
        ("0 <= part < 1", {}, [2]),
        ("part / other < 0.6", {"other": [0.0, 1.0, 3.0]}, [2]),
        ("total\n  > 1\nor other < 1", {}, []),
        ({"determines": ["code", "label"]}, {}, []),
        ({"determines": ["code", "label"]}, {"code": "A"}, [2]),
        ({"determines": ["sex", "code"]}, {}, [2]),
        ({"sum": ["part", "other"], "equals": "total"}, {}, []),
        ({"sum": ["part", "other"], "equals": "total"}, {"total": [0.31, 9.0, 5.0]}, [0]),
        ({"sum": ["part", "other"], "equals": "total", "within": 0.01}, {"total": [0.31, 9.0, 5.02]}, [2]),
    ],
)
def test_a_rule_is_violated_where_it_is_known_to_be_false(written, changed, expected):
    assert broken(written, **changed) == expected


NUMBERS = st.one_of(st.none(), st.integers(-3, 3), st.floats(-2, 2), st.sampled_from([1e200, -1e308]))
EQUALITY = st.sampled_from(["==", "!="])
LEAVES = st.one_of(
    st.sampled_from(["x", "y z"]).map(lambda name: ("column", name)),
    st.sampled_from([0, 1, -2, 0.5, 1e155]).map(lambda value: ("constant", value)),
)
SUMS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("+-*"), inner, inner),
        st.tuples(st.just("/"), inner, st.just(("column", "x"))),
        st.tuples(st.just("minus"), inner),
    ),
    max_leaves=4,
)
COMPARISONS = st.one_of(
    st.tuples(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), SUMS, SUMS),
    st.tuples(EQUALITY, st.just(("column", "text")), st.just(("column", "kind"))),
    st.tuples(EQUALITY, st.just(("column", "text")), st.sampled_from("ab").map(lambda value: ("constant", value))),
    st.tuples(st.sampled_from(["in", "not in"]), st.just(("column", "kind")), st.just(["a", "c"])),
    st.sampled_from(["x", "text"]).map(lambda name: ("missing", name)),
    st.just(("column", "truth")),
)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(st.tuples(st.sampled_from(["and", "or"]), inner, inner), st.tuples(st.just("not"), inner)),
    max_leaves=6,
)
ROWS = st.lists(
    st.tuples(
        NUMBERS, NUMBERS, st.sampled_from([None, "a", "b", "c"]), st.sampled_from([None, "a", "b"]),
        st.sampled_from([None, True, False]),
    ),
    min_size=1, max_size=8,
)  # fmt: skip


def typed(rows):
    x, y, text, kind, truth = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "x": pd.Series(x, dtype="float64"),
            "y z": pd.Series(y, dtype="float64"),
            "text": pd.Series(text, dtype=object),
            "kind": pd.Categorical(kind, categories=["b", "c", "a"]),
            "truth": pd.array(truth, "boolean"),
        }
    )


@given(CONDITIONS, ROWS)
def test_columns_are_evaluated_as_rows_are(expression, rows):
    table = typed(rows)
    try:
        (rule,) = read_rules({"rule": as_text(expression)}, table)
    except InvalidSettingError as refused:
        assert "names no column" in str(refused)
        return
    cells = rule.outcome(Columns(table))
    found = [None if missing else bool(value) for value, missing in zip(cells.data, cells.missing, strict=True)]
    names = list(table.columns)
    assert found == [value_of(expression, dict(zip(names, row, strict=True))) for row in rows]


@given(ROWS)
def test_a_determined_column_differs_in_the_fewest_records(rows):
    table = typed(rows)
    for names in (["text", "kind"], ["kind", "x"], ["x", "truth"]):
        rules = read_rules({"rule": {"determines": names}}, table)
        found = violations(rules, Columns(table))["rule"]
        places = [list(table.columns).index(name) for name in names]
        pairs = [tuple(row[place] for place in places) for row in rows]
        assert found.sum() == fewest_to_remove(pairs)
        assert not fewest_to_remove([pair for pair, is_left in zip(pairs, ~found, strict=True) if is_left])


@given(st.lists(st.tuples(*[st.one_of(st.none(), st.integers(-9, 9), st.floats(-9, 9))] * 3), min_size=1))
def test_a_sum_is_violated_beyond_its_tolerance(rows):
    table = pd.DataFrame(rows, columns=["a", "b", "c"], dtype="float64")
    rules = read_rules({"rule": {"sum": ["a", "b"], "equals": "c", "within": 0.5}}, table)
    found = violations(rules, Columns(table))["rule"].tolist()
    assert found == [breaks_sum(row[:2], row[2], 0.5) for row in rows]


REFUSED = {
    "who is": "cannot be read",
    "": "without a text",
    "1 < 2": "names no column",
    "nothing > 1": r"names 'nothing', which the contract lacks \(character 1\)",
    "total > `no column`": r"names 'no column', which the contract lacks \(character 9\)",
    "'ü' == code and nothing": r"names 'nothing', which the contract lacks \(character 17\)",
    "total": "is a number, and no condition",
    "not total": r"has a number where a truth is needed \(character 5\)",
    "total / 0 > 1": r"divides by zero \(character 9\)",
    "total / (1 - 1) > 1": "divides by zero",
    "total > 10**10**10": "has a part that is not allowed",
    f"total > {'9' * 400}": "has a constant that is no finite number",
    "total > 1e999": "has a constant that is no finite number",
    "total == None": r"None is missing\(column\)",
    "total > 1 # and code == 'x'": "has a #",
    'sex == "mael"': r"has a text that is none of the categories of the column \(character 8\)",
    'sex > "female"': "has an order of texts",
    "code > label": "has an order of texts",
    "level > sex": "has an order of texts",
    'total == "1"': "compares a number with a text",
    'admitted > "now"': "compares a time with a text that is none",
    "admitted > seen": "with and without a time zone",
    "admitted - seen > 1": "with and without a time zone",
    'admitted > "2024-01-01T00:00Z"': "with and without a time zone",
    "admitted + 1 > discharged": "of times only the difference",
    "smokes > False": "has an order of truth values",
    "total in other": "without a list of constants",
    "total.real > 1": "has a part that is not allowed",
    "abs(total) > 1": "names 'abs'",
    "missing(total, other)": "has a part that is not allowed",
    "__import__('os').system('true') == total": "names '__import__'",
    "(lambda: total)() > 1": "has a part that is not allowed",
    "[x for x in total]": "names 'x'",
    "f'{total}' == code": "has a part that is not allowed",
    "(total := 1) > other": "has a part that is not allowed",
    "total if smokes else other": "has a part that is not allowed",
    "not " * 150 + "smokes": "is nested deeper than 100 levels",
    "(" * 250 + "smokes" + ")" * 250: "cannot be read",
    "total > 1 or " * 200 + "smokes": "has 2,606 characters; expected at most 2,000",
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_a_text_that_is_no_rule_is_refused_with_the_place(text, reason):
    with pytest.raises(InvalidSettingError, match=reason):
        contract(rule=text)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (3, "neither a text nor a mapping"),
        ({"at_most": 0.1}, "neither a text nor a mapping"),
        ({"expect": "smokes", "sum": ["part", "other"]}, "neither a text nor a mapping"),
        ({"expect": "smokes", "within": 1}, "unknown keys"),
        ({"expect": "smokes", "at_most": 1}, "`at_most`"),
        ({"expect": "smokes", "at_most": True}, "`at_most`"),
        ({"expect": 3}, "without a text"),
        ({"determines": "code"}, "no list of columns"),
        ({"determines": ["code", "label", "sex"]}, "two columns"),
        ({"determines": ["code", "code"]}, "two columns"),
        ({"determines": ["code", "nothing"]}, r"names \['nothing'\]"),
        ({"sum": ["part", "other"]}, "their total as `equals`"),
        ({"sum": ["part", "part"], "equals": "total"}, "their total as `equals`"),
        ({"sum": ["part", "total"], "equals": "total"}, "their total as `equals`"),
        ({"sum": ["part", "code"], "equals": "total"}, "no numbers"),
        ({"sum": ["part", "other"], "equals": "total", "within": -1}, "`within`"),
        ({"sum": ["part", "other"], "equals": "total", "within": float("nan")}, "`within`"),
    ],
)
def test_a_mapping_that_is_no_rule_is_refused(written, reason):
    with pytest.raises(InvalidSettingError, match=reason):
        contract(rule=written)


def test_names_and_numbers_of_rules_are_checked_and_all_problems_are_said():
    with pytest.raises(InvalidSettingError, match=r"rules` of the contract is no mapping"):
        TableContract.from_mapping({"columns": COLUMNS, "rules": ["smokes"]})
    with pytest.raises(InvalidSettingError, match=r"2 problems.*the 1. rule has no name.*rule 'b' names 'x'"):
        contract(**{"a\n": "smokes", "b": "x > 1"})
    with pytest.raises(InvalidSettingError, match=r"101 rules; expected at most 100"):
        contract(**{f"r{i}": "smokes" for i in range(101)})


def test_a_source_that_violates_rules_is_refused_with_counts_and_without_cells():
    own = contract(order="discharged > admitted", known={"expect": "missing(discharged)", "at_most": 0.7})
    with pytest.raises(ContractError, match=r"rule 'order' is violated in 1 records\. Nothing") as refused:
        own.check(TABLE)
    assert refused.value.failures == (("(table)", "rule 'order' is violated", 1),)
    assert SECRET not in str(refused.value)
    assert len(contract(known={"expect": "missing(discharged)", "at_most": 0.7}).admit(TABLE)) == 3
    with pytest.raises(ContractError, match="rule 'known' is violated in 2 records"):
        contract(known={"expect": "missing(discharged)", "at_most": 0.6}).check(TABLE)


def test_rules_on_removed_columns_hold_for_the_source():
    with pytest.raises(ContractError, match="rule 'of_who' is violated in 3 records") as refused:
        contract(of_who="who == code").check(TABLE)
    assert SECRET not in str(refused.value)


def test_two_rules_that_contradict_are_named():
    own = contract(
        rises={"expect": "other < total", "at_most": 0.9},
        falls={"expect": "other > total", "at_most": 0.9},
        holds="other > 0",
        never={"expect": "other > 100", "at_most": 0.99},
    )
    table = TABLE.assign(other=[1.0, 2.0, 9.0])
    with pytest.raises(ContractError) as refused:
        own.check(table)
    said = {check: count for _, check, count in refused.value.failures}
    assert said == {
        "rules 'rises' and 'falls' contradict each other": 3,
        "rule 'never' is violated": 3,
    }


def test_synthetic_records_are_admitted_whatever_the_rules_say():
    own = contract(order="discharged > admitted")
    synthetic = contract().check(TABLE).drop(columns="who")
    assert len(own.admit_synthetic(synthetic)) == 3


class TestChecksOfPandera:
    COLUMNS = {name: pa.Column(int, metadata={"role": "other"}) for name in ("a", "b")}  # noqa: RUF012

    def made(self, *checks, **metadata):
        return TableContract(pa.DataFrameSchema(self.COLUMNS, checks=list(checks), metadata=metadata))

    def test_a_named_check_of_the_whole_table_is_a_rule(self):
        own = self.made(pa.Check(lambda table: table["a"] < table["b"], name="rises"), rules={"low": "a < 9"})
        assert [rule.name for rule in own.rules] == ["low", "rises"]
        table = pd.DataFrame({"a": [1, 5], "b": [2, 4]})
        with pytest.raises(ContractError, match=r"rises fails \(1\)"):
            own.check(table)
        assert len(own.admit_synthetic(table)) == 2
        assert violations(own.rules, Columns(table))["rises"].tolist() == [False, True]

    def test_a_check_without_a_name_is_asked_of_synthetic_records_as_before(self):
        own = self.made(pa.Check(lambda table: table["a"] < table["b"]))
        assert own.rules == ()
        for admit in (own.check, own.admit_synthetic):
            with pytest.raises(ContractError, match=r"custom_check fails \(1\)"):
                admit(pd.DataFrame({"a": [1, 5], "b": [2, 4]}))

    def test_a_check_decides_on_records_on_cells_or_on_the_table(self):
        table = pd.DataFrame({"a": [1, 5], "b": [2, 4]})
        checks = {
            "cells": pa.Check.lt(5),
            "table": pa.Check(lambda own: len(own) > 2, name="table"),
        }
        rules = read_rules({}, table, checks)
        found = {name: own.tolist() for name, own in violations(rules, Columns(table)).items()}
        assert found == {"cells": [False, True], "table": [True, True]}

    @pytest.mark.parametrize("returned", [SECRET, [True], None])
    def test_a_check_that_cannot_be_evaluated_is_an_error_without_cells(self, returned):
        def fails(table):
            table["a"] = 0
            if returned is None:
                raise ValueError(SECRET)
            return returned

        table = pd.DataFrame({"a": [1, 5], "b": [2, 4]})
        with pytest.raises(InvalidTableError, match="'fails' is a check that could not be evaluated") as raised:
            violations(read_rules({}, table, {"fails": pa.Check(fails)}), Columns(table))
        assert SECRET not in str(raised.value)
        assert raised.value.__context__ is None
        assert table["a"].tolist() == [1, 5]


def test_batches_are_refused_with_the_name_of_the_setting():
    with pytest.raises(InvalidSettingError, match=r"need the whole table, .*\['rules'\]"):
        BatchAdmission(contract(order="discharged >= admitted"))


def test_a_contract_without_rules_has_none():
    assert contract().rules == ()


def test_a_rule_on_another_type_is_an_error_of_the_table_and_letters_that_look_alike_need_backticks():
    (rule,) = read_rules({"few": "total > 1"}, pd.DataFrame({"total": [1, 2]}))
    with pytest.raises(InvalidTableError, match="'few' cannot be evaluated on this table: it "):
        rule.outcome(Columns(pd.DataFrame({"total": ["a", "b"]})))
    table = pd.DataFrame({"\ufb01eld": [-1, -1], "field": [1, 1]})
    with pytest.raises(InvalidSettingError, match="in backticks"):
        read_rules({"positive": "\ufb01eld > 0"}, table)
    (rule,) = read_rules({"positive": "`\ufb01eld` > 0"}, table)
    assert rule.outcome(Columns(table)).is_false.all()


def test_whole_numbers_add_up_exactly():
    table = pd.DataFrame({"a": [10**10], "b": [0], "total": [10**10 + 15]})
    (rule,) = read_rules({"adds_up": {"sum": ["a", "b"], "equals": "total"}}, table)
    assert rule.outcome(Columns(table)).is_false.all()
