"""Lossless conversion of a column to the type of its contract, without guessing.

pandas and pandera coerce too much for a gate: 1.5 becomes 1, "no" becomes True, an unknown category becomes missing.
Here, a value that cannot be converted losslessly is counted and left missing, and the contract refuses the table.
Different numbers, texts or moments never become equal, and the result does not depend on how a table was stored.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.contract.written_values import read_written
from privacy_assets.setting_checks import is_integer
from privacy_assets.storage.arrow_frames import as_series

_Failures = tuple[tuple[str, int], ...]
Kind = Literal["integer", "float", "boolean", "text", "category", "datetime"]

TEXT_DTYPE: Final = pd.Series(["text"]).dtype
"""The dtype of text in the installed pandas: `str` from version 3, `object` before."""

TRUTH: Final = {"true": True, "false": False}
WHOLE: Final = re.compile(r"[+-]?\d{1,400}", re.ASCII)
NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
INFINITE: Final = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
ISO: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[ T](?:[01]\d|2[0-3]):\d\d(?::\d\d(?:[.,](\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d){1,2})?)?", re.ASCII
)
"""Datetimes in ISO 8601; the groups are the fraction of a second and the offset from UTC."""
INT64: Final = np.iinfo(np.int64)
EXACT_BOUND: Final = 2**53
"""Whole numbers beyond it are not all floats; only those written without point and exponent are read as integers."""
EPOCH: Final = dt.datetime(1970, 1, 1)
YEARS: Final = (dt.MINYEAR, dt.MAXYEAR)


@dataclass(frozen=True)
class ColumnType:
    """Type of a column in a contract; its dtype survives a Parquet round trip."""

    kind: Kind
    nullable: bool
    time_zone: Any = None
    categories: pd.Index | None = None
    ordered: bool = False
    format: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()
    may_be_empty: bool = False
    """Whether a column without any value is admitted."""

    @property
    def label(self) -> str:
        """Name of the dtype, without categories (which are values)."""
        if self.kind == "datetime":
            return f"datetime64[us, {self.time_zone}]" if self.time_zone is not None else "datetime64[us]"
        plain = {"float": "float64", "text": "str", "category": "category"}
        masked = {"integer": ("int64", "Int64"), "boolean": ("bool", "boolean")}
        return plain[self.kind] if self.kind in plain else masked[self.kind][self.nullable]


class Converted(NamedTuple):
    """A column in its contracted type, and the losses as (check, count)."""

    column: pd.Series
    failures: tuple[tuple[str, int], ...]


def convert(column: pd.Series, wanted: ColumnType) -> Converted:
    """Convert `column` to the type `wanted`; values that do not fit become missing and are counted."""
    try:
        return _convert(column, wanted)
    except Exception:  # noqa: BLE001, S110 - values that pandas cannot examine, whose error may quote them
        pass
    nothing, _ = _converter(wanted.kind)(pd.Series([None] * len(column), dtype=object), wanted)
    return Converted(nothing, ((f"has_type_{wanted.kind}", len(column)),))


def _convert(column: pd.Series, wanted: ColumnType) -> Converted:
    column = in_memory(column.reset_index(drop=True))
    column = read_written(column, wanted.format, wanted.decimal, wanted.missing)
    result, failures = _converted_texts(column, wanted) or _converter(wanted.kind)(_decoded(column), wanted)
    n_missing = int(column.isna().sum())
    if n_missing == len(column) and not wanted.may_be_empty:
        failures = (*failures, ("is_not_all_missing", n_missing))
    elif n_missing and not wanted.nullable:
        failures = (*failures, ("is_not_missing", n_missing))
    return Converted(result, tuple((check, count) for check, count in failures if count))


def _converter(kind: Kind) -> Callable[[pd.Series, ColumnType], tuple[pd.Series, _Failures]]:
    return {
        "integer": _to_integer,
        "float": _to_float,
        "boolean": _to_boolean,
        "text": _to_text,
        "category": _to_category,
        "datetime": _to_datetime,
    }[kind]


def _converted_texts(column: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures] | None:
    """Convert a column that only contains texts to text or a category, without examining each cell.

    None if the column may contain anything else, or another kind is wanted.
    """
    if wanted.kind not in ("text", "category"):
        return None
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, distinct = column.cat.codes.to_numpy(), pd.Series(column.cat.categories)
        occurs = np.bincount(codes[codes >= 0], minlength=len(distinct)) > 0
        if types.infer_dtype(distinct[occurs], skipna=False) != "string" or not is_unicode(distinct[occurs]):
            return None
        if wanted.kind == "text":
            return column.cat.remove_unused_categories().astype(TEXT_DTYPE), ()
        place = np.append(np.where(occurs, np.cumsum(occurs) - 1, -1), -1)
        codes, distinct = place[codes], distinct[occurs].astype(TEXT_DTYPE)
    elif isinstance(column.dtype, pd.StringDtype) and (
        column.dtype.storage == "pyarrow" or is_unicode(column.dropna())
    ):
        if wanted.kind == "text":
            return column.astype(TEXT_DTYPE), ()
        codes, values = pd.factorize(column.astype(TEXT_DTYPE))
        distinct = pd.Series(values)
    else:
        return None
    if wanted.categories is None:
        known = pd.Categorical(distinct, ordered=wanted.ordered or None)
    else:
        listed = distinct.where(distinct.isin(wanted.categories), None)
        known = pd.Categorical(listed, categories=wanted.categories, ordered=wanted.ordered)
    code_of = np.append(known.codes, -1)
    result = pd.Series(pd.Categorical.from_codes(code_of[codes], dtype=known.dtype))
    return result, (("is_a_category", int((code_of[codes[codes >= 0]] < 0).sum())),)


def in_memory(column: pd.Series) -> pd.Series:
    """Return a column in dtypes of pandas itself, with one kind of missing float."""
    if isinstance(column.dtype, pd.SparseDtype):
        column = pd.Series(np.asarray(column))
    if isinstance(column.dtype, pd.ArrowDtype):
        column = as_series(column)
    if column.dtype == np.longdouble:
        column = column.astype(object)  # pandas would round them
    if types.is_float_dtype(column.dtype) and not isinstance(column.dtype, np.dtype):
        column = pd.Series(column.to_numpy(dtype=getattr(column.dtype, "numpy_dtype", float), na_value=np.nan))
    return column


def _decoded(column: pd.Series) -> pd.Series:
    """Return categories as their values, and values without a plain pandas dtype as objects."""
    known = (types.is_bool_dtype, types.is_integer_dtype, types.is_float_dtype, types.is_datetime64_any_dtype)
    return column if any(test(column.dtype) for test in known) else column.astype(object)


def _lost(source: pd.Series, result: pd.Series) -> int:
    return int((source.notna() & result.isna()).sum())


def _each(source: pd.Series, read: Callable[[Any], Any]) -> list[Any]:
    """Read each present value, and equal texts once; None for a missing one."""
    known: dict[Any, Any] = {}
    found: list[Any] = []
    for value, is_missing in zip(source.tolist(), source.isna().tolist(), strict=True):
        if is_missing:
            found.append(None)
        elif isinstance(value, str):
            if value not in known:
                known[value] = read(value)
            found.append(known[value])
        else:
            found.append(read(value))
    return found


def _number_of(value: Any) -> int | float | decimal.Decimal | None:
    """Return a number exactly; whole numbers as int only if they are written without point and exponent."""
    if isinstance(value, str):
        text = value.strip()
        if WHOLE.fullmatch(text):
            return int(text)
        if NUMBER.fullmatch(text):
            found = float(text)
            return found if repr(found) == text else decimal.Decimal(text)
        return math.inf if INFINITE.fullmatch(text) else None
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            return math.inf
        return int(value) if value.as_tuple().exponent == 0 else value
    if isinstance(value, float | np.floating):
        return float(_shortest(np.asarray(value)))
    return int(value) if is_integer(value) else None


def _shortest(values: NDArray[Any]) -> NDArray[np.float64]:
    """Widen narrow floats through their shortest decimals: float32 0.1 is 0.1, not 0.10000000149."""
    if values.dtype.itemsize < np.dtype(np.float64).itemsize:
        values = values.astype("U32")
    found = values.astype(np.float64)
    return found if values.dtype.kind == "U" else np.where(found == values, found, np.nan)


def _exact_integer(number: int | float | decimal.Decimal | None) -> int | None:
    if number is None or isinstance(number, int):
        return number if number is None or INT64.min <= number <= INT64.max else None
    # The float 2**53 may have been 2**53 + 1; a Decimal was not.
    largest = EXACT_BOUND - isinstance(number, float)
    is_small = -largest <= number <= largest
    return int(number) if is_small and number == int(number) else None


def _exact_float(number: int | float | decimal.Decimal | None) -> float | None:
    """Return the float with the digits of a number, None if there is none: then several numbers would become equal."""
    if number is None or isinstance(number, float):
        return number
    try:
        found = float(number)
    except OverflowError:
        return math.inf
    return found if math.isinf(found) or decimal.Decimal(repr(found)) == number else None


def _to_integer(source: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures]:
    n_infinite = 0
    if types.is_integer_dtype(source.dtype):
        kept = (source if str(source.dtype).lower() != "uint64" else source.where(source <= INT64.max)).astype("Int64")
    elif types.is_float_dtype(source.dtype):
        values = _shortest(source.to_numpy())
        n_infinite = int(np.isinf(values).sum())
        kept = source.where((np.floor(values) == values) & (np.abs(values) < EXACT_BOUND)).astype("Int64")
    else:
        numbers = _each(source, _number_of)
        n_infinite = sum(isinstance(each, float) and math.isinf(each) for each in numbers)
        kept = pd.Series([_exact_integer(each) for each in numbers], dtype="Int64")
    result = kept if wanted.nullable or kept.isna().any() else kept.astype("int64")
    return result, (("is_finite", n_infinite), ("has_type_integer", _lost(source, kept) - n_infinite))


def _to_float(source: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures]:  # noqa: ARG001
    n_inexact = 0
    if types.is_float_dtype(source.dtype):
        values = _shortest(source.to_numpy())
    else:
        numbers = _each(source, _number_of)
        floats = [_exact_float(each) for each in numbers]
        n_inexact = sum(each is not None and own is None for each, own in zip(numbers, floats, strict=True))
        values = np.array([np.nan if each is None else each for each in floats], np.float64)
    n_infinite = int(np.isinf(values).sum())
    result = pd.Series(np.where(np.isinf(values), np.nan, values))
    return result, (
        ("is_finite", n_infinite),
        ("is_exact_as_float", n_inexact),
        ("has_type_float", _lost(source, result) - n_infinite - n_inexact),
    )


def _to_boolean(source: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures]:
    is_read = types.is_bool_dtype(source.dtype)
    result = source.astype("boolean") if is_read else pd.Series(_each(source, _truth_of), dtype="boolean")
    exact = result if wanted.nullable or result.isna().any() else result.astype("bool")
    return exact, (("has_type_boolean", _lost(source, result)),)


def _truth_of(value: Any) -> bool | None:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, str) and value.lower() in TRUTH:
        return TRUTH[value.lower()]
    number = _number_of(value)
    return bool(number) if number in (0, 1) else None


def _to_text(source: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures]:
    found = _each(source, _text_of)
    given = {value for value in source if isinstance(value, str)}
    if given:
        # The number 7 and the text "7" would become equal.
        is_text = source.map(lambda value: isinstance(value, str))
        found = [None if text in given and not own else text for text, own in zip(found, is_text, strict=True)]
    if not is_unicode({text for text in found if text is not None}):
        found = [text if text is None or is_unicode([text]) else None for text in found]
    result = pd.Series(found, dtype=object).astype(TEXT_DTYPE)
    return result, ((f"has_type_{wanted.kind}", _lost(source, result)),)


def is_unicode(texts: Any) -> bool:
    """Whether texts can be stored; parts of a character (surrogates) cannot."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


def _text_of(value: object) -> str | None:
    """Return a value that has one way to be written as text: whole numbers, times of day, UUIDs."""
    if isinstance(value, str):
        return value
    if isinstance(value, dt.time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, decimal.Decimal):
        value = _number_of(value)
    return str(value) if is_integer(value) else None


def _to_category(source: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures]:
    texts, failures = _to_text(source, wanted)
    if wanted.categories is None:
        return pd.Series(pd.Categorical(texts, ordered=wanted.ordered or None)), failures
    known = texts.where(texts.isin(wanted.categories), None)
    result = pd.Series(pd.Categorical(known, categories=wanted.categories, ordered=wanted.ordered))
    return result, (("is_a_category", _lost(source, result)),)


class Moments(NamedTuple):
    """The datetimes of a column in UTC, which of them are finer than microseconds, and how many have a time zone."""

    times: NDArray[np.datetime64]
    is_finer: NDArray[np.bool_]
    n_aware: int
    n_naive: int


def _to_datetime(source: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures]:
    """Convert to moments if they have a time zone, else to times of the clock; a column has one of them."""
    empty = pd.Series(pd.NaT, index=source.index, dtype=wanted.label)
    times, is_finer, n_aware, n_naive = read_moments(source)
    if n_aware and n_naive:
        return empty, (("has_one_time_zone", min(n_aware, n_naive)),)
    n_unread = int((source.notna() & np.isnat(times)).sum())
    if n_naive and wanted.time_zone is not None:
        return empty, (("has_a_time_zone", n_naive), ("has_type_datetime", n_unread))
    exact: Any = pd.Series(np.where(is_finer, np.datetime64("NaT"), times))
    result = exact if wanted.time_zone is None else exact.dt.tz_localize("UTC").dt.tz_convert(wanted.time_zone)
    return result, (("has_type_datetime", n_unread), ("has_no_more_than_microseconds", int(is_finer.sum())))


def zones_of(column: pd.Series, wanted: ColumnType) -> Mapping[str, int]:
    """Count the times of a column with and without a time zone, which are refused together, also in several batches."""
    written = read_written(in_memory(column.reset_index(drop=True)), wanted.format, None, wanted.missing)
    found = read_moments(_decoded(written))
    counts = {"with a time zone": found.n_aware, "without a time zone": found.n_naive}
    return {which: count for which, count in counts.items() if count}


def read_moments(source: pd.Series) -> Moments:
    """Read datetimes, and texts in ISO 8601; NaT for every other value."""
    if types.is_datetime64_any_dtype(source.dtype):
        index: Any = pd.DatetimeIndex(source)
        is_aware = index.tz is not None
        values = index.tz_convert(None).to_numpy() if is_aware else index.to_numpy()
        years = values.astype("datetime64[Y]").astype(np.int64) + EPOCH.year
        in_range = ~np.isnat(values) & (years >= YEARS[0]) & (years <= YEARS[1])
        times = np.where(in_range, values, np.datetime64("NaT")).astype("datetime64[us]")
        n_times = int(in_range.sum())
        return Moments(times, in_range & (times != values), n_times * is_aware, n_times * (not is_aware))
    found = _each(source, _moment_of)
    none = np.iinfo(np.int64).min
    times = np.array([none if each is None else each[0] for each in found], np.int64).view("datetime64[us]")
    is_finer = np.array([each is not None and each[1] for each in found], np.bool_)
    n_aware = sum(each is not None and each[2] for each in found)
    return Moments(times, is_finer, n_aware, sum(each is not None for each in found) - n_aware)


def _moment_of(value: Any) -> tuple[int, bool, bool] | None:
    """Return the microseconds since 1970 in UTC, whether there are finer parts, and whether there is a time zone."""
    is_finer = False
    if isinstance(value, str):
        found = ISO.fullmatch(value)
        try:
            time = dt.datetime.fromisoformat(value) if found else None
        except ValueError:
            time = None
        if found is None or time is None:
            return None
        is_finer = bool((found[1] or "")[6:].strip("0"))
    elif isinstance(value, pd.Timestamp | np.datetime64):
        stamp = pd.Timestamp(value)
        if not YEARS[0] <= stamp.year <= YEARS[1]:
            return None
        is_finer, time = stamp.nanosecond > 0, stamp.to_pydatetime(warn=False)
    elif isinstance(value, dt.date):
        time = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
    else:
        return None
    offset = time.utcoffset()
    since = time.replace(tzinfo=None) - EPOCH - (offset or dt.timedelta())
    is_in_range = dt.datetime.min - EPOCH <= since <= dt.datetime.max - EPOCH
    return (since // dt.timedelta(microseconds=1), is_finer, offset is not None) if is_in_range else None
