"""Coded columns, which candidates for numbers of people are made of."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns.key_candidates import candidates_of, code_columns
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


def test_columns_that_are_compared_hold_no_texts_as_objects():
    """An index of pandas would keep what it looks values up in as long as the column is coded."""
    visits = [f"V-{each:03d}" for each in range(200)]
    coded = code_columns(pd.DataFrame({"visit": visits[1:], "before": visits[:-1]}))
    assert [each.made_by for each in candidates_of(coded)]
    assert not any("_engine" in own.distinct._cache for own in coded.values())
