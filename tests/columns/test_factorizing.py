"""Codes of many texts are those of pandas, however few of them are looked at together."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns import factorizing
from privacy_assets.columns.factorizing import factorize, number_by_appearance
from tests.examples import examples

TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "A", "ä", "a\u0308", "10", "9", "z" * 40]), st.text(max_size=3))


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(TEXTS, max_size=60),
    st.integers(1, 20),
    st.integers(1, 90),
    st.booleans(),
    st.sampled_from(["str", "string", object, "category"]),
)
def test_codes_and_values_are_those_of_pandas(texts, at_once, drawn, sort, dtype):
    column = pd.Series(texts, dtype=object).astype(dtype)
    codes, values = pd.factorize(column, sort=sort)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factorizing, "TEXTS_AT_ONCE", at_once)
        patch.setattr(factorizing, "N_DRAWN", drawn)
        found, distinct = factorize(column, sort=sort)
    assert found.tolist() == codes.tolist()
    pd.testing.assert_index_equal(distinct, pd.Index(values))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("sort", [True, False])
def test_rows_may_be_many_more_than_ranges(monkeypatch, sort, share):
    monkeypatch.setattr(factorizing, "TEXTS_AT_ONCE", 10)
    monkeypatch.setattr(factorizing, "N_DRAWN", 300)
    random = np.random.default_rng(0)
    texts = pd.Series([f"text {number}" for number in random.integers(0, 2_000, 5_000)], dtype="str")
    texts[random.random(5_000) < share] = "the most frequent one"
    texts[random.random(5_000) < 0.1] = None
    codes, values = pd.factorize(texts, sort=sort)
    found, distinct = factorize(texts, sort=sort)
    assert found.tolist() == codes.tolist()
    pd.testing.assert_index_equal(distinct, pd.Index(values))


NUMBERS = st.lists(st.one_of(st.none(), st.integers(-3, 3)), min_size=2, max_size=40)
DTYPES = [
    "str",
    "string",
    "category",
    "Int64",
    "Float64",
    "float64",
    "float16",
    "boolean",
    "datetime64[us]",
    "timedelta64[ns]",
]


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=examples(60), deadline=None)
@given(NUMBERS, st.integers(1, 9), st.integers(1, 3), st.booleans(), st.integers(0, 40))
def test_long_columns_have_the_codes_and_values_of_pandas(dtype, numbers, rows, batches, sort, middle):
    cells = [None if number is None else number > 0 for number in numbers] if dtype == "boolean" else numbers
    column = pd.Series(cells, dtype=object).astype(dtype)
    # A column of texts in two pieces of memory.
    column = pd.concat([column.iloc[:middle], column.iloc[middle:]], ignore_index=True)
    codes, values = pd.factorize(column, sort=sort)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factorizing, "ROWS_AT_ONCE", rows)
        patch.setattr(factorizing, "_has_few_values", lambda _: True)
        patch.setattr(factorizing, "BATCHES_AT_ONCE", batches)
        found, distinct = factorize(column, sort=sort)
    assert found.tolist() == codes.tolist()
    pd.testing.assert_index_equal(distinct, pd.Index(values))


@pytest.mark.parametrize("is_category", [False, True])
def test_long_columns_of_overlapping_intervals_have_the_codes_of_pandas(monkeypatch, is_category):
    begins = np.arange(40) % 5
    column = pd.Series(pd.arrays.IntervalArray.from_arrays(begins, begins + 3))
    column = column.astype("category") if is_category else column
    codes, values = pd.factorize(column)
    monkeypatch.setattr(factorizing, "ROWS_AT_ONCE", 10)
    found, distinct = factorize(column)
    assert found.tolist() == codes.tolist()
    pd.testing.assert_index_equal(distinct, pd.Index(values))


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(0, 6)), max_size=40), st.integers(1, 9))
def test_numbers_by_appearance_are_those_of_pandas(numbers, rows):
    column = pd.Series(numbers, dtype="Int64")
    in_order, values = pd.factorize(column, sort=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factorizing, "ROWS_AT_ONCE", rows)
        found, first_rows = number_by_appearance(in_order, len(values))
    assert found.tolist() == pd.factorize(column)[0].tolist()
    known = [number for number in numbers if number is not None]
    assert first_rows.tolist() == [numbers.index(number) for number in dict.fromkeys(known)]
