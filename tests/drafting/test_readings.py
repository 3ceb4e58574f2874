"""Formats that shapes of texts rule out are those that cannot read them; numbers are read as one by one."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.contract.written_values import read_number
from privacy_assets.drafting import readings
from privacy_assets.drafting.readings import DAYS, FORMATS, TIMES, readings_of_text
from tests.examples import examples

DAYS_OF_A_YEAR = pd.date_range("2019-11-04 08:05:09", periods=40, freq="37h")
SOME = [day + TIMES[number % len(TIMES)] for number, day in enumerate(DAYS)]


def as_written(form):
    """Write times as people do: names of months in any case, days without a zero."""
    texts = [time.strftime(form) for time in DAYS_OF_A_YEAR]
    texts += [text.upper() for text in texts[:3]]
    return texts + [time.strftime(form.replace("%d", "%-d").replace("%m", "%-m")) for time in DAYS_OF_A_YEAR[:3]]


@pytest.mark.parametrize("form", SOME)
def test_every_format_that_pandas_reads_is_found(form):
    """The reference asks pandas for all of them."""
    texts = pd.Series(as_written(form), dtype=object)
    expected = []
    for each in FORMATS:
        times = pd.to_datetime(texts, format=each, errors="coerce")
        if (times.notna() & (times.dt.year > 1800) & (times.dt.year < 2200)).mean() >= 0.4:
            expected.append(each)
    found = [each.form for each in readings_of_text(texts) if each.kind == "datetime" and each.form]
    assert form in found
    assert found == expected


@pytest.mark.parametrize("text", ["{}.50", "{}", "{}-street", "no {}", "1{},50"])
def test_columns_of_other_values_take_no_parsing_of_times(monkeypatch, text):
    """A table of 10,000 columns took a quarter of an hour, because each column was read in 114 formats."""
    asked = []
    parse = pd.to_datetime
    monkeypatch.setattr(readings.pd, "to_datetime", lambda *rest, **named: asked.append(1) or parse(*rest, **named))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        readings_of_text(pd.Series([text.format(number) for number in range(10, 90)], dtype=object))
    assert len(asked) <= 1


WRITTEN = st.one_of(
    st.from_regex(readings.NUMBER, fullmatch=True),
    st.from_regex(r"-?[0-9]{1,17}([.,][0-9]{1,17})?", fullmatch=True),
    st.from_regex(r"\s?[+-]?[0-9]{1,3}([.,' ][0-9]{3}){1,3}([.,][0-9]+)?", fullmatch=True),
    st.sampled_from(["", "-", ".", "[1, 2]", " {1}", "a[0]", "\ud800", "٣", "1\n", "1e5", "+3", "007", "-0", "1_000"]),
    st.text(max_size=6),
)


@given(st.lists(WRITTEN, min_size=1, max_size=12))
@settings(max_examples=examples(400), deadline=None)
def test_numbers_and_lists_are_those_of_the_patterns(written):
    texts = pd.Series(written, dtype=object)
    assert readings.are_numbers(texts).tolist() == [readings.NUMBER.fullmatch(text) is not None for text in written]
    assert readings.are_lists(texts).tolist() == [readings.LIST.fullmatch(text) is not None for text in written]


# Of control characters and the digits of other scripts, pandas and Python make different numbers.
@given(st.lists(WRITTEN.filter(lambda text: text.isascii() and text.isprintable()), min_size=1, max_size=12))
@settings(max_examples=examples(400), deadline=None)
def test_numbers_are_read_as_python_reads_them(written):
    texts = pd.Series(written, dtype=object)
    for read, form, mark in (
        (readings._read_point, readings.NUMBER, "."),
        (readings._read_grouped, readings._GROUPED, "."),
        (readings._read_comma, readings._COMMA, ","),
    ):
        for text, found in zip(written, read(texts), strict=True):
            number = read_number(text, mark) if form is not readings.NUMBER else text
            expected = float(number) if number is not None and form.fullmatch(text) else np.nan
            expected = expected if np.isfinite(expected) else np.nan
            assert found == pytest.approx(expected, rel=1e-15, nan_ok=True), (text, mark)
