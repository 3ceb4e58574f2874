import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns.distinct_values import DistinctValues
from tests.examples import examples
from tests.mixed_tables import POOLS


@settings(max_examples=examples(150), deadline=None)
@given(st.data(), st.sampled_from(sorted(set(POOLS) - {"missing", "date"})))
def test_the_numbers_are_those_of_the_whole_column(data, kind):
    pool, dtype = POOLS[kind]
    rows = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=20))
    column = pd.Series(rows, dtype=dtype, name="own")
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    found, begin, numbers = DistinctValues(), 0, []
    while begin < len(column):
        size = sizes[len(numbers) % len(sizes)]
        batch = column.iloc[begin : begin + size].reset_index(drop=True)
        if kind == "category":
            batch = batch.cat.remove_unused_categories()
        numbers.append(found.add(batch))
        begin += size
    expected, values = pd.factorize(column)
    np.testing.assert_array_equal(np.concatenate(numbers), expected)
    assert len(found) == len(values)
    series = found.series("own", with_missing=True)
    assert series.iloc[:-1].tolist() == list(values)
    assert series.isna().iloc[-1]
    if kind != "boolean" and kind != "integer":  # These have no missing values in their dtype.
        assert series.dtype == column.dtype or kind == "category"
    rebuilt = series.take(np.concatenate(numbers)).reset_index(drop=True)  # -1 is the last
    assert rebuilt.isna().tolist() == column.isna().tolist()
    assert rebuilt.dropna().tolist() == column.dropna().tolist()


def test_many_batches_of_new_values_are_indexed_in_few_pieces():
    found = DistinctValues()
    for begin in range(0, 3_000, 3):
        assert found.add(pd.Series(range(begin, begin + 3))).tolist() == [begin, begin + 1, begin + 2]
    assert len(found._pieces) < 13
    assert found.add(pd.Series([5, 2_999, 3_000])).tolist() == [5, 2_999, 3_000]


@pytest.mark.parametrize("ordered", [True, False])
def test_categories_of_batches_that_differ_are_all_values_in_order(ordered):
    found = DistinctValues()
    for own in (["b", "a"], ["c"]):
        found.add(pd.Series(pd.Categorical(own, ordered=ordered)))
    series = found.series("own", with_missing=False)
    assert series.tolist() == (["a", "b", "c"] if series.tolist()[0] == "a" else ["b", "a", "c"])
    assert series.dtype == pd.CategoricalDtype(["a", "b", "c"], ordered=ordered)


def test_a_column_without_values_keeps_its_dtype():
    found = DistinctValues()
    found.add(pd.Series([None, None], dtype="Int64"))
    assert found.series("own", with_missing=True).tolist() == [pd.NA]
    assert found.series("own", with_missing=True).dtype == "Int64"
