"""Coded columns, which candidates for numbers of people are made of."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns.key_candidates import code_columns
from tests.examples import examples

NUMBERS = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 9)), st.booleans()), min_size=1, max_size=60)


@pytest.mark.parametrize("kind", ["Int64", "Float64", "str", "category", "datetime64[us]"])
@settings(max_examples=examples(60), deadline=None)
@given(NUMBERS)
def test_the_codes_of_some_rows_are_those_of_a_table_of_these_rows(kind, drawn):
    numbers, kept = zip(*drawn, strict=True)
    texts = [None if number is None else f"P-{number}" for number in numbers]
    column = pd.Series(texts if kind in ("str", "category") else numbers, dtype=object).astype(kind)
    rows = np.array(kept)
    table = pd.DataFrame({"own": column})
    found = code_columns(table)["own"].of_rows(rows)
    expected = code_columns(table[rows].reset_index(drop=True))["own"]
    assert found.codes.tolist() == expected.codes.tolist()
    assert found.distinct.tolist() == expected.distinct.tolist()
    assert (found.may_number, found.may_measure) == (expected.may_number, expected.may_measure)
