"""Whose a row is: one statement of the contract, people that several columns number together, and survey weights."""

from unittest import mock

import pandas as pd
import pandera.pandas as pa
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns.spelling import canonical
from privacy_assets.contract.batches import BatchAdmission
from privacy_assets.contract.column_admission import admit_columns
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.mapping import METADATA
from privacy_assets.errors import ContractError, InvalidSettingError
from privacy_assets.storage import column_files
from tests.contract.test_divided_admission import divided
from tests.examples import examples

AGE = {"type": "integer", "role": "quasi_identifier"}
KEY = {"type": "text", "role": "direct_identifier", "person": True}
REASON = "Schools of the pupils; A. Lovelace"


def contract(columns, **unit):
    return TableContract.from_mapping({"columns": columns} | unit)


def test_one_of_two_statements_says_whose_a_row_is():
    by_rows, by_key = contract({"age": AGE}, one_row_per_person=True), contract({"age": AGE, "who": KEY})
    column = pa.Column(int, metadata={"role": "other"})
    in_pandera = TableContract(pa.DataFrameSchema({"age": column}, metadata={"one_row_per_person": True}))
    for each in (by_rows, by_key, in_pandera):
        each.require_unit()
    assert [each.person for each in (by_rows, by_key, in_pandera)] == [None, "who", None]
    assert [each.one_row_per_person for each in (by_rows, by_key, in_pandera)] == [True, False, True]


@pytest.mark.parametrize("unit", [{}, {"one_row_per_person": False}])
def test_without_a_statement_a_contract_makes_no_release_and_warns_of_its_figures(unit):
    own = contract({"age": AGE}, **unit)
    with pytest.raises(InvalidSettingError, match=r"does not say whose a row is.*`person: true`.*one_row_per_person"):
        own.require_unit()
    with pytest.warns(UserWarning, match="rows are taken for people"):
        own.admit(pd.DataFrame({"age": [1]}))


@pytest.mark.parametrize(
    ("columns", "unit", "reason"),
    [
        ({"who": KEY}, {"one_row_per_person": True}, r"both `one_row_per_person` and that \['who'\]"),
        ({"age": AGE}, {"one_row_per_person": "yes"}, "neither true nor false"),
        ({"age": AGE}, {"one_row_per_person": "decide"}, r"\['one_row_per_person'\] still have `decide`"),
        ({"who": KEY | {"not_a_person": REASON}}, {}, "`not_a_person`, but is the person"),
        ({"age": AGE | {"not_a_person": "no"}}, {}, "`not_a_person` without a reason; expected what its values number"),
        ({"age": AGE | {"not_a_person": True}}, {}, "`not_a_person` that is not text"),
        ({"age": AGE | {"not_a_person": "decide"}}, {}, r"\['age'\] still have `decide`"),
        ({"age": AGE | {"links_rows": "a" * 501}}, {}, "`links_rows` of 501 characters"),
        ({"age": AGE | {"role": "direct_identifier", "links_rows": REASON}}, {}, "never released"),
        ({"who": KEY | {"links_rows": REASON}}, {}, "`links_rows`, but is never released"),
        ({"who": {"type": "float", "role": "other", "person": True}}, {}, "is the person, but has the type float"),
        ({"who": {"type": "datetime", "role": "other", "person": True}}, {}, "has the type datetime"),
        ({"who": {"type": "boolean", "role": "other", "person": True}}, {}, "has the type boolean"),
        ({"age": AGE | {"weight": "yes"}}, {}, "`weight` that is neither true nor false"),
        ({"age": {"type": "text", "role": "other", "weight": True}}, {}, "is a `weight`, but no number"),
        ({"age": AGE | {"person": True, "weight": True}}, {}, "is a `weight`, but no number, or the person"),
        ({"a": KEY, "b": KEY, "a + b": AGE}, {}, "named together: rename it"),
    ],
)
def test_statements_that_contradict_each_other_or_say_nothing_are_refused(columns, unit, reason):
    with pytest.raises(InvalidSettingError, match=reason):
        contract(columns, **unit)


def test_reasons_and_weights_are_read():
    own = contract({"a": AGE | {"not_a_person": f" {REASON} ", "links_rows": REASON}, "b": AGE | {"weight": True}})
    assert own.not_a_person == own.links_rows == {"a": REASON}
    assert own.weights == ("b",)
    assert {"person", "weight", "not_a_person", "links_rows"} <= set(METADATA)


@st.composite
def visits(draw):
    sites = draw(st.lists(st.sampled_from(["a", "A ", "b", "1", "01", "(", "', '"]), min_size=1, max_size=12))
    numbers = draw(st.lists(st.integers(0, 2), min_size=len(sites), max_size=len(sites)))
    return pd.DataFrame({"age": range(len(sites)), "site": sites, "patient": numbers})


COMPOSITE = {"age": AGE, "site": KEY | {"role": "quasi_identifier"}, "patient": KEY | {"type": "integer"}}


@settings(max_examples=examples(200), deadline=None)
@given(visits(), st.integers(1, 5))
def test_columns_that_number_people_together_are_one_column_of_an_admitted_table(table, n_rows):
    own = contract(COMPOSITE)
    seen = {}
    keys = zip(map(canonical, table["site"]), table["patient"], strict=True)
    expected = [seen.setdefault(key, len(seen)) for key in keys]
    admitted = own.admit(table)
    assert list(admitted.columns) == own.admitted_columns == ["age", "site + patient"]
    assert own.released_columns == ("age",)
    assert own.person == "site + patient"
    assert admitted["site + patient"].tolist() == expected
    with mock.patch.object(column_files, "ROWS_PER_BATCH", n_rows):
        by_columns = admit_columns(own, list(table), len(table), lambda names: table[names])
    pd.testing.assert_frame_equal(by_columns.table.frame(), admitted)
    on_workers = divided(pyarrow.table(table.astype(str)), own, (n_rows,)).table.sort_values("age", ignore_index=True)
    assert pd.factorize(on_workers["site + patient"])[0].tolist() == expected


def test_a_row_without_a_person_is_counted_and_not_admitted():
    table = pd.DataFrame({"age": [1, 2, 3], "site": ["a", None, None], "patient": [1, 1, None]})
    with pytest.raises(ContractError, match="give each unknown one a key of their own") as raised:
        contract(COMPOSITE).admit(table)
    assert raised.value.failures == (("site", "is_not_missing", 2), ("patient", "is_not_missing", 1))


def test_weights_are_positive_numbers():
    own = contract({"age": AGE, "weight": {"type": "float", "role": "other", "weight": True}}, one_row_per_person=True)
    table = pd.DataFrame({"age": [1, 2, 3], "weight": [0.5, 0, -1]})
    with pytest.raises(ContractError, match=r"column 'weight' fails greater_than\(0\) in 2 records"):
        own.admit(table)
    batches = BatchAdmission(own)
    batches.check(table)
    assert batches.check_failures() == [("weight", "greater_than(0)", 2)]
    with pytest.raises(ContractError, match=r"greater_than\(0\) in 2 records"):
        divided(pyarrow.table(table.astype(str)), own)
    own.admit(table.assign(weight=1.5))
