"""Labels can be read in one way only, and typed columns survive Parquet."""

from datetime import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.anonymization.labels import quote, quote_all
from privacy_assets.storage.fingerprint import fingerprint
from tests.mixed_tables import through_parquet

DAYS = pd.to_datetime(["2020-01-01", "2020-03-31"])
MINUTES = pd.to_datetime(["2020-01-01 10:00", "2020-01-01 12:30"])
# What labels are made of, and what might be mistaken for it.
TEXTS = st.text(alphabet='ab ,{}[]()"\\*\n-', max_size=5) | st.sampled_from(["missing", "a or missing", "*", "[1, 2]"])


def labels_of(values, k=None, **options):
    table = pd.DataFrame({"x": values})
    return anonymize(table, quasi_identifiers=["x"], k=len(table) if k is None else k, **options).table


@given(st.lists(st.lists(TEXTS | st.none(), min_size=1, max_size=3, unique=True), min_size=2, max_size=2))
def test_different_sets_never_have_one_label(sets):
    first, second = sets
    labels = [labels_of(pd.Series(own, dtype=object)).iloc[0, 0] for own in (first, second)]
    assert (labels[0] == labels[1]) == (set(first) == set(second))


@pytest.mark.parametrize(
    ("text", "label"),
    [("Ulm", "Ulm"), ("<=50K", "<=50K"), ("a, b", '"a, b"'), ("missing", '"missing"'), ("", '""'), (" a", '" a"')],
)
def test_text_that_could_be_read_otherwise_is_quoted(text, label):
    assert quote(text) == label


def test_negative_intervals_are_not_ambiguous():
    assert set(labels_of([-5, -1])["x"]) == {"[-5, -1]"}


def test_a_comma_inside_a_category_is_not_ambiguous():
    released = labels_of(["a, b", "c"])
    assert set(released["x"]) == {'{"a, b", c}'}
    assert set(released["x_values"]) == {'["a, b", "c"]'}


@pytest.mark.parametrize(
    ("values", "label", "low", "high"),
    [
        ([20, 29], "[20, 29]", 20, 29),
        ([20.0, 29.0], "[20, 29]", 20, 29),
        ([0.1, 0.3], "[0.1, 0.4)", 0.1, 0.4),
        ([1e300, 1.5], "[1.5, 1.0000000000000002e+300)", 1.5, np.nextafter(1e300, np.inf)),
        (DAYS, "[2020-01-01, 2020-03-31]", *DAYS),
        (MINUTES, "[2020-01-01T10:00, 2020-01-01T12:30]", *MINUTES),
        (
            MINUTES.tz_localize("Europe/Berlin"),
            "[2020-01-01T10:00:00+01:00, 2020-01-01T12:30:00+01:00]",
            *MINUTES.tz_localize("Europe/Berlin"),
        ),
        (pd.to_timedelta(["1h", "3h"]), "[0 days 01:00:00, 0 days 03:00:00]", pd.Timedelta("1h"), pd.Timedelta("3h")),
    ],
)  # fmt: skip
def test_intervals_are_typed_and_closed_except_for_numbers_with_decimals(values, label, low, high):
    released = labels_of(values)
    assert set(released["x"]) == {label}
    assert set(released["x_low"]) == {low} and set(released["x_high"]) == {high}


def test_times_of_day_periods_and_intervals_are_released_as_intervals():
    clock = labels_of([time(14, 45), time(13, 26)])
    assert clock["x"].unique().tolist() == ["[13:26, 14:45]"]
    assert (clock["x_low"].iloc[0], clock["x_high"].iloc[0]) == ("13:26:00", "14:45:00")
    assert labels_of([time(14, 45, 1), time(13, 26)])["x"][0] == "[13:26:00, 14:45:01]"
    assert labels_of(pd.PeriodIndex(["2020-02", "2019-12"], freq="M"))["x"][0] == "[2019-12, 2020-02]"
    bands = pd.IntervalIndex.from_tuples([(100, 105), (5, 10)])
    assert labels_of(bands)["x"][0] == '["(5, 10]", "(100, 105]"]'


@given(st.lists(st.text(st.sampled_from('ab c,[]{}()*"\\\n\r\t\x0b\u2028mising')), max_size=4))
def test_many_texts_are_quoted_as_each_alone(texts):
    assert quote_all(texts) == [quote(text) for text in texts]
    assert quote_all([*texts, "missing"]) == [*(quote(text) for text in texts), '"missing"']


def test_integers_beyond_int64_keep_every_digit():
    assert set(labels_of([2**70, 1])["x"]) == {f"[1, {2**70}]"}


def test_cells_cover_the_space_between_classes():
    days = pd.to_datetime(["2020-01-01", "2020-01-03", "2020-02-01", "2020-02-09"])
    for values, labels in (
        ([1, 3, 7, 9], {"[1, 6]", "[7, 9]"}),
        ([1.5, 3.0, 7.5, 9.0], {"[1.5, 7.5)", "[7.5, 9.1)"}),
        (days, {"[2020-01-01, 2020-01-31]", "[2020-02-01, 2020-02-09]"}),
    ):
        assert set(labels_of(values, k=2, bounds="cell")["x"]) == labels
    assert set(labels_of([1, 3, 7, 9], k=2)["x"]) == {"[1, 3]", "[7, 9]"}


def test_typed_columns_survive_parquet():
    table = pd.DataFrame(
        {
            "whole": pd.Series([1, 2, None, None], dtype="Int64"),
            "float": [0.5, 1.5, None, 2.0],
            "when": pd.Series(pd.to_datetime(["2020-01-01", None, "2020-01-02", None])),
            "rank": pd.Categorical(["a", "b", None, "b"], ordered=True),
            "job": ["x", None, "y", "y"],
        }
    )
    for output in ("labels", "centroid"):
        released = anonymize(table, quasi_identifiers=list(table), k=2, output=output).table
        assert fingerprint(through_parquet(released)) == fingerprint(released)
    released = anonymize(table[["whole"]], quasi_identifiers=["whole"], k=2).table
    assert released["whole_low"].dtype == "Int64" and released["whole_missing"].dtype == bool


def test_cells_of_the_largest_whole_numbers_in_floats_are_apart():
    table = pd.DataFrame({"x": [-1.7e308] * 10 + [-1e18] * 10})
    released = anonymize(table, quasi_identifiers=["x"], k=1, bounds="cell").table
    lower = released[released["x_low"].astype(float) < -1e300]
    assert len(lower) == 10
    assert (lower["x_high"].astype(float) == -1.7e308).all()
