"""Formats of texts that a contract declares: dates such as 31.12.2025, numbers such as 1.234,56, signs for "unknown".

A column with a format is read by this format only: cells that are written differently are counted, and the table is
refused. Values that are not text, such as the dates of a Parquet file, do not need a format and stay unchanged.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pandas as pd
from pandas.api import types

LONGEST_FORMAT: Final = 60
DECIMAL_MARKS: Final = (".", ",")
FORMAT_KEYS: Final = ("format", "decimal", "missing")
UNREADABLE: Final = "?"
"""Stands for a text that is not written as declared; it cannot be read as a number or datetime."""

_GROUPED: Final[Mapping[str, re.Pattern[str]]] = {
    # Digits in groups of three, or without groups; the mark of the groups differs from the decimal mark.
    ",": re.compile(r"([+-]?)(\d+|\d{1,3}(?:([.' \u2019\u00a0\u202f])\d{3})(?:\3\d{3})*)(?:,(\d+))?"),
    ".": re.compile(r"([+-]?)(\d+|\d{1,3}(?:([,' \u2019\u00a0\u202f])\d{3})(?:\3\d{3})*)(?:\.(\d+))?"),
}


def format_problems(metadata: Mapping[str, Any], kind: str | None) -> Iterable[str]:
    """Describe the problems with the formats of a column of this kind."""
    form = metadata.get("format")
    if form is not None:
        if kind != "datetime":
            yield "has a format, which only a datetime column can have"
        elif not _is_format(form):
            yield "has a format that is not one of strftime; expected one such as '%d.%m.%Y'"
    decimal = metadata.get("decimal")
    if decimal is not None:
        if kind not in ("integer", "float"):
            yield "has a decimal mark, which only integer and float columns can have"
        elif decimal not in DECIMAL_MARKS:
            yield f"has the decimal mark {decimal!r}: there are {list(DECIMAL_MARKS)}"
    missing = metadata.get("missing")
    if missing is not None and (
        not isinstance(missing, list | tuple) or not missing or not all(isinstance(each, str) for each in missing)
    ):
        yield "has a `missing` that is not a list of texts, such as [NA]"


def _is_format(form: object) -> bool:
    if not isinstance(form, str) or not 2 <= len(form) <= LONGEST_FORMAT:
        return False
    moment = dt.datetime(2021, 12, 30, 23, 58, 59, tzinfo=dt.UTC)
    try:
        written = moment.strftime(form)
        # Python deprecates reading a day and a month without a year. In 2027 the days of the week are the same.
        if written == moment.replace(year=2027).strftime(form):
            return False
        read = dt.datetime.strptime(written, form)
    except ValueError:
        return False
    return read.year == moment.year


def read_written(column: pd.Series, form: str | None, decimal: str | None, missing: Iterable[str]) -> pd.Series:
    """Return the column with its texts in the form that conversion reads: ISO 8601, plain numbers, missing if unknown.

    Values that are not text are kept. ``form`` is the format of datetimes, as for `strftime`, ``decimal`` the mark of
    numbers, whose digits may be in groups of three.
    """
    unknown = frozenset(missing)
    is_read = form is not None or decimal is not None
    if not (unknown or is_read) or types.is_numeric_dtype(column.dtype) or types.is_datetime64_any_dtype(column.dtype):
        return column
    values = column.astype(object)
    distinct = [value for value in pd.unique(values) if isinstance(value, str)]
    read: dict[str, str | None] = {value: None for value in distinct if value in unknown}
    others = [value for value in distinct if value not in unknown]
    if form is not None:
        read |= _read_datetimes(others, form)
    elif decimal is not None:
        read |= {value: read_number(value, decimal) or UNREADABLE for value in others}
    if not read:
        return column
    return values.map(lambda value: read.get(value, value) if isinstance(value, str) else value).astype(object)


def read_number(text: str, decimal: str) -> str | None:
    """Return a number with this decimal mark in Python's notation; None for another text."""
    found = _GROUPED[decimal].fullmatch(text.strip())
    if found is None:
        return None
    sign, whole, _, decimals = found.groups()
    return f"{sign}{re.sub(r'[^0-9]', '', whole)}" + (f".{decimals}" if decimals else "")


def _read_datetimes(texts: list[str], form: str) -> dict[str, str | None]:
    """Return datetimes as ISO 8601."""
    times = pd.to_datetime(pd.Series(texts, dtype=object), format=form, errors="coerce", utc="%z" in form)
    return {
        text: time.isoformat() if not pd.isna(time) else _read_far(text, form)
        for text, time in zip(texts, times, strict=True)
    }


def _read_far(text: str, form: str) -> str:
    # pandas before version 3 ends in 2262.
    try:
        return dt.datetime.strptime(text, form).isoformat()
    except ValueError:
        return UNREADABLE
