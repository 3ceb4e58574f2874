"""Formats that shapes of texts rule out are those that cannot read them, and pandas is asked for few others."""

import warnings

import pandas as pd
import pytest

from privacy_assets.drafting import readings
from privacy_assets.drafting.readings import DAYS, FORMATS, TIMES, readings_of_text

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
