import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.contract.conversion import TEXT_DTYPE, ColumnType, convert
from tests.examples import examples

CATEGORIES = [None, pd.Index(["b", "a", "unused"], dtype=TEXT_DTYPE), pd.Index(["é", "a", 1], dtype=object)]
HELD_AS = {
    "str": lambda values: pd.Series(values, dtype="str"),
    "string": lambda values: pd.Series(values, dtype="string"),
    "category": lambda values: pd.Series(values, dtype="str").astype("category"),
    "category of objects": lambda values: pd.Series(
        pd.Categorical(values, categories=pd.Index(["unused", "é", "b", "a", "B", "", 7], dtype=object))
    ),
    "category of strings": lambda values: pd.Series(values, dtype="string").astype("category"),
    "ordered category": lambda values: pd.Series(
        pd.Categorical(values, categories=["b", "", "a", "é", "B"], ordered=True)
    ),
}


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_texts_are_converted_as_if_each_cell_were_looked_at(data):
    values = data.draw(st.lists(st.sampled_from(["a", "b", "é", "B", "", None]), min_size=1, max_size=8))
    kind = data.draw(st.sampled_from(["text", "category"]))
    categories = data.draw(st.sampled_from(CATEGORIES)) if kind == "category" else None
    wanted = ColumnType(
        kind, data.draw(st.booleans()), None, categories, kind == "category" and data.draw(st.booleans())
    )
    one_by_one = convert(pd.Series(values, dtype=object), wanted)
    held = HELD_AS[data.draw(st.sampled_from(sorted(HELD_AS)))](values)
    at_once = convert(held, wanted)
    assert at_once.failures == one_by_one.failures
    if all(value is None for value in values) and categories is None:
        return  # Refused as a column without values; objects without a value have categories without a kind.
    pd.testing.assert_series_equal(at_once.column, one_by_one.column)


@pytest.mark.parametrize("held_as", HELD_AS)
def test_the_converted_column_shares_nothing_with_the_given_one(held_as):
    given_column = HELD_AS[held_as](["a", "b", None])
    converted = convert(given_column, ColumnType("text", nullable=True)).column
    converted.iloc[0] = "b"
    assert given_column.tolist()[0] == "a"


def test_times_of_several_zones_are_counted():
    mixed = pd.Series(["2020-01-01T00:00:00Z", "2020-01-01T00:00:00+01:00", "2020-01-01T00:00:00Z", None], dtype=object)
    assert ("has_one_time_zone", 1) in convert(mixed, ColumnType("datetime", True, "UTC")).failures


def test_nanoseconds_are_counted_and_microseconds_are_kept():
    times = pd.Series(
        pd.to_datetime(["2020-01-01 00:00:00.000001", "2020-01-01 00:00:00.000000001", None], format="mixed")
    )
    converted = convert(times.astype("datetime64[ns]"), ColumnType("datetime", nullable=True))
    assert converted.failures == (("has_no_more_than_microseconds", 1),)
    exact = convert(
        times.astype("datetime64[ns]").iloc[[0, 2]].astype("datetime64[us]"), ColumnType("datetime", nullable=True)
    )
    assert exact.failures == ()
    assert str(exact.column.dtype) == "datetime64[us]"
    assert exact.column.isna().tolist() == [False, True]
