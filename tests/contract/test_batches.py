import datetime as dt
from collections import Counter

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.contract.batches import BatchAdmission, refusal
from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import ContractError, InvalidSettingError, InvalidTableError
from tests.contract.test_contract import MAPPING, good_table
from tests.examples import examples

KINDS = {
    "integer": ({"type": "integer", "min": 0}, [0, 1, "2", 2.5, -3, None, "SENTINEL"]),
    "nullable": ({"type": "integer", "nullable": True}, [0, 1, None]),
    "float": ({"type": "float", "nullable": True, "max": 5}, [0.5, "1.5", 7, float("inf"), None]),
    "boolean": ({"type": "boolean"}, [True, "false", 0, 5, None]),
    "text": ({"type": "text", "nullable": True, "isin": ["a", "b"]}, ["a", "b", "c", 1, None]),
    "category": ({"type": "category", "categories": ["u", "v"]}, ["u", "v", "w", None]),
    "free category": ({"type": "category", "nullable": True}, ["u", "v", "w", None]),
    "datetime": (
        {"type": "datetime", "nullable": True, "min": "2020-01-01"},
        ["2020-01-01", "2019-01-01", "9999-12-31", "2020-01-01T00:00:00Z", dt.date(2021, 1, 1), "SENTINEL", None],
    ),
    "aware": (
        {"type": "datetime64[us, UTC]", "nullable": True},
        ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00+01:00", "2020-01-01", None],
    ),
    "german": ({"type": "datetime", "nullable": True, "format": "%d.%m.%Y"}, ["31.12.2025", "2025-12-31", None]),
    "person": ({"type": "text", "person": True}, ["p", "q", "P ", "s", None]),
}


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True))
    n_rows = draw(st.integers(1, 12))
    columns, described = {}, {}
    for kind in kinds:
        own, pool = KINDS[kind]
        pool = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=len(pool), unique=True))
        columns[kind] = pd.Series(draw(st.lists(st.sampled_from(pool), min_size=n_rows, max_size=n_rows)), dtype=object)
        described[kind] = {"role": "other", **own}
    if draw(st.integers(0, 9)) == 0:
        columns["extra"] = [1] * n_rows
    if draw(st.integers(0, 9)) == 0:
        described["absent"] = {"type": "text", "role": "other"}
    return pd.DataFrame(columns), TableContract.from_mapping({"columns": described})


def cut(table, sizes):
    begin, place = 0, 0
    while begin < len(table):
        size = sizes[place % len(sizes)]
        yield table.iloc[begin : begin + size].reset_index(drop=True)
        begin, place = begin + size, place + 1


def admitted_in_batches(table, contract, sizes):
    admission = BatchAdmission(contract)
    batches = [admission.check(batch) for batch in cut(table, sizes)]
    failures = admission.losses() + admission.check_failures()
    if failures:
        raise refusal(contract, failures)
    return batches


@settings(max_examples=examples(300), deadline=None)
@given(tables(), st.lists(st.integers(0, 4), min_size=1, max_size=3).filter(any))
def test_batches_are_admitted_as_the_whole_table_is(given_table, sizes):
    table, contract = given_table
    expected, refused = None, None
    try:
        expected = contract.check(table)
    except ContractError as error:
        refused = error
    if refused is not None:
        with pytest.raises(ContractError) as raised:
            admitted_in_batches(table, contract, sizes)
        assert Counter(raised.value.failures) == Counter(refused.failures)
        assert "SENTINEL" not in str(raised.value)
        return
    found = [batch for batch in admitted_in_batches(table, contract, sizes) if len(batch)]
    for name in expected.columns:
        if isinstance(expected[name].dtype, pd.CategoricalDtype):
            values = [value for batch in found for value in batch[name].astype(object)]
            pd.testing.assert_series_equal(
                pd.Series(pd.Categorical(values, dtype=expected[name].dtype)), expected[name], check_names=False
            )
        else:
            joined = pd.concat([batch[name] for batch in found], ignore_index=True)
            pd.testing.assert_series_equal(joined, expected[name])


def test_a_table_of_every_kind_is_admitted_in_batches():
    contract = TableContract.from_mapping(MAPPING)
    found = admitted_in_batches(good_table(), contract, [1])
    pd.testing.assert_frame_equal(pd.concat(found, ignore_index=True)[["patient"]], good_table()[["patient"]])
    assert {str(batch["moment"].dtype) for batch in found} == {"datetime64[us, UTC]"}


def test_a_table_without_rows_or_with_other_columns_is_refused():
    contract = TableContract.from_mapping({"columns": {"a": {"type": "integer", "role": "other"}}})
    with pytest.raises(ContractError, match="there are no records"):
        admitted_in_batches(pd.DataFrame({"a": []}), contract, [1])
    admission = BatchAdmission(contract)
    with pytest.raises(ContractError, match="does not meet its contract"):
        admission.check(pd.DataFrame({"SENTINEL": [1]}))
    admission = BatchAdmission(contract)
    admission.check(pd.DataFrame({"a": [1]}))
    with pytest.raises(InvalidTableError, match="different columns"):
        admission.check(pd.DataFrame({"a": [1], "b": [1]}))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (pa.DataFrameSchema({"a": pa.Column(int, unique=True, metadata={"role": "other"})}), r"'a': \['unique'\]"),
        (
            pa.DataFrameSchema(
                {"a": pa.Column(int, metadata={"role": "other"})}, checks=pa.Check(lambda t: t["a"] > 0)
            ),
            "checks of the table",
        ),
        (
            pa.DataFrameSchema(
                {"a": pa.Column(int, pa.Check(lambda s: s.mean() > 0, name="in_range"), metadata={"role": "other"})}
            ),
            r"'a': \['in_range'\]",
        ),
        (
            pa.DataFrameSchema({"a": pa.Column(int, pa.Check.unique_values_eq([1]), metadata={"role": "other"})}),
            "unique_values_eq",
        ),
    ],
)
def test_checks_that_need_the_whole_table_are_refused(schema, message):
    with pytest.raises(InvalidSettingError, match=message):
        BatchAdmission(TableContract(schema))


def test_a_check_of_each_value_is_counted_over_all_batches():
    check = pa.Check(lambda value: value > 0, element_wise=True, name="is_positive")
    contract = TableContract(pa.DataFrameSchema({"a": pa.Column(int, check, metadata={"role": "other"})}))
    with pytest.raises(ContractError, match="fails is_positive in 3 records"):
        admitted_in_batches(pd.DataFrame({"a": np.array([1, 0, -1, 2, -2])}), contract, [2])
