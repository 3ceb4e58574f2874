"""Hashes of rows do not depend on how a column is given, and their order is that of a stable sort."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns import row_hashes
from privacy_assets.columns.row_hashes import Repeated, hash_rows, order_of_hashes
from tests.examples import examples


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1), st.integers(2**63, 2**63 + 2)), max_size=60),
    st.integers(1, 70),
)
def test_hashes_are_sorted_with_equal_ones_in_their_order(numbers, at_once):
    hashes = np.array(numbers, np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_hashes, "ROWS_PER_BLOCK", at_once)
        found = order_of_hashes(hashes)
    assert found.tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)


@pytest.mark.parametrize("dtype", ["str", "category", "Int64", "float64", "boolean", "datetime64[us]"])
def test_a_column_of_repeated_values_has_the_hashes_of_its_rows(monkeypatch, dtype):
    monkeypatch.setattr(row_hashes, "ROWS_PER_BLOCK", 7)
    values = pd.Series([True, False, None] if dtype == "boolean" else [3, 1, None], dtype=object).astype(dtype)
    places = np.random.default_rng(0).integers(0, 3, 50)
    other = pd.Series(range(50))
    column = values.take(places).reset_index(drop=True)
    expected = hash_rows([other, column], 50, 5)
    assert hash_rows([other, Repeated(values, places)], 50, 5).tolist() == expected.tolist()
    assert hash_rows([Repeated(other, None), column], 50, 5).tolist() == expected.tolist()
