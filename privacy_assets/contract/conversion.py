"""Lossless conversion of a column to the type of its contract, without guessing.

pandas and pandera coerce too much for a gate: 1.5 becomes 1, "no" becomes True, an unknown category becomes missing.
Here, a value that cannot be converted losslessly is counted and left missing, and the contract refuses the table.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

from privacy_assets.contract.written_values import read_written
from privacy_assets.setting_checks import is_integer

_Failures = tuple[tuple[str, int], ...]
Kind = Literal["integer", "float", "boolean", "text", "category", "datetime"]

TEXT_DTYPE: Final = pd.Series(["text"]).dtype
"""The dtype of text in the installed pandas: `str` from version 3, `object` before."""

TRUTH: Final = {"true": True, "false": False, "1": True, "0": False}
OFFSET: Final = r"(Z|[+-]\d{2}:?\d{2})$"
INT64_BOUND: Final = 2.0**63
EXACT_BOUND: Final = 2.0**53


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
    column = read_written(column.reset_index(drop=True), wanted.format, wanted.decimal, wanted.missing)
    converted = _converted_texts(column, wanted)
    if converted is None:
        column = _decoded(column)
        converted = _converter(wanted)(column, wanted)
    result, failures = converted
    n_missing = int(column.isna().sum())
    if n_missing == len(column):
        failures = (*failures, ("is_not_all_missing", n_missing))
    elif n_missing and not wanted.nullable:
        failures = (*failures, ("is_not_missing", n_missing))
    return Converted(result, tuple((check, count) for check, count in failures if count))


def _converter(wanted: ColumnType) -> Callable[[pd.Series, ColumnType], tuple[pd.Series, _Failures]]:
    return {
        "integer": _to_integer,
        "float": _to_float,
        "boolean": _to_boolean,
        "text": _to_text,
        "category": _to_category,
        "datetime": _to_datetime,
    }[wanted.kind]


def _converted_texts(column: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures] | None:
    """Convert a column that only contains texts to text or a category, without examining each cell.

    None if the column may contain anything else, or another kind is wanted.
    """
    if wanted.kind not in ("text", "category"):
        return None
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, distinct = column.cat.codes.to_numpy(), pd.Series(column.cat.categories)
        occurs = np.bincount(codes[codes >= 0], minlength=len(distinct)) > 0
        if types.infer_dtype(distinct[occurs], skipna=False) != "string":
            return None
        if wanted.kind == "text":
            return column.cat.remove_unused_categories().astype(TEXT_DTYPE), ()
        place = np.append(np.where(occurs, np.cumsum(occurs) - 1, -1), -1)
        codes, distinct = place[codes], distinct[occurs].astype(TEXT_DTYPE)
    elif isinstance(column.dtype, pd.StringDtype):
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


def _decoded(column: pd.Series) -> pd.Series:
    """Return categories as their values, and values without a plain pandas dtype as objects."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object).infer_objects()
    known = (types.is_bool_dtype, types.is_integer_dtype, types.is_float_dtype, types.is_datetime64_any_dtype)
    return column if any(test(column.dtype) for test in known) else column.astype(object)


def _lost(source: pd.Series, result: pd.Series) -> int:
    return int((source.notna() & result.isna()).sum())


def _to_number(source: pd.Series) -> pd.Series:
    """Read numbers as Int64 or Float64, missing where a value is not a number."""
    dtype = source.dtype
    if types.is_float_dtype(dtype):
        return _shortest_float64(source)
    if types.is_bool_dtype(dtype) or types.is_integer_dtype(dtype):
        return source.astype("UInt64" if str(dtype).lower() == "uint64" else "Int64")
    if types.is_datetime64_any_dtype(dtype):
        return pd.Series(pd.NA, index=source.index, dtype="Int64")
    readable = source.where(~source.map(lambda value: isinstance(value, dt.date | dt.time | dt.timedelta)), None)
    numbers: pd.Series = pd.to_numeric(readable, errors="coerce", dtype_backend="numpy_nullable")
    return numbers


def _shortest_float64(source: pd.Series) -> pd.Series:
    """Widen narrow floats through their shortest decimals: float32 0.1 is 0.1, not 0.10000000149."""
    values = source.to_numpy(dtype=source.dtype if isinstance(source.dtype, np.dtype) else np.float64, na_value=np.nan)
    if values.dtype.itemsize < np.dtype(np.float64).itemsize:
        values = values.astype("U32").astype(np.float64)
    return pd.Series(values.astype(np.float64), index=source.index)


def _to_integer(source: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures]:
    numbers = _to_number(source)
    if types.is_float_dtype(numbers.dtype):
        values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
        infinite = np.isinf(values)
        # Text and decimals were converted through floats, which are exact only for whole numbers up to 2**53.
        bound = INT64_BOUND if types.is_float_dtype(source.dtype) else EXACT_BOUND
        whole = (np.floor(values) == values) & (np.abs(values) < bound)
    else:
        infinite = np.zeros(len(numbers), dtype=bool)
        whole = (numbers.notna() & (numbers <= np.iinfo(np.int64).max)).to_numpy(dtype=bool, na_value=False)
    kept = numbers.where(whole).astype("Int64")
    n_infinite = int(infinite.sum())
    result = kept if wanted.nullable or kept.isna().any() else kept.astype("int64")
    return result, (("is_finite", n_infinite), ("has_type_integer", _lost(source, kept) - n_infinite))


def _to_float(source: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures]:  # noqa: ARG001
    values = _to_number(source).to_numpy(dtype=np.float64, na_value=np.nan)
    n_infinite = int(np.isinf(values).sum())
    if types.is_integer_dtype(source.dtype):
        values[np.abs(values) > EXACT_BOUND] = np.nan
    result = pd.Series(np.where(np.isinf(values), np.nan, values))
    return result, (("is_finite", n_infinite), ("has_type_float", _lost(source, result) - n_infinite))


def _to_boolean(source: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures]:
    if types.is_bool_dtype(source.dtype):
        result = source.astype("boolean")
    elif types.is_numeric_dtype(source.dtype):
        result = source.where(source.isin([0, 1])).astype("boolean")
    else:
        result = source.map(lambda value: TRUTH.get(str(value).lower())).astype("boolean")
    exact = result if wanted.nullable or result.isna().any() else result.astype("bool")
    return exact, (("has_type_boolean", _lost(source, result)),)


def _to_text(source: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures]:  # noqa: ARG001
    result = source.astype(object).map(_text_of).astype(TEXT_DTYPE)
    return result, (("has_type_text", _lost(source, result)),)


def _text_of(value: object) -> str | None:
    """Return text unchanged and whole numbers as their digits; the digits of floats are ambiguous."""
    if isinstance(value, str):
        return value
    return str(value) if is_integer(value) else None


def _to_category(source: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures]:
    values = source.astype(object).infer_objects()
    if wanted.categories is None:
        return pd.Series(pd.Categorical(values, ordered=wanted.ordered or None)), ()
    if types.infer_dtype(wanted.categories) == "string":
        values = source.astype(object).map(_text_of)
    known = values.where(values.isin(wanted.categories) & values.notna(), None)
    result = pd.Series(pd.Categorical(known, categories=wanted.categories, ordered=wanted.ordered))
    return result, (("is_a_category", _lost(source, result)),)


def _to_datetime(source: pd.Series, wanted: ColumnType) -> tuple[pd.Series, _Failures]:
    empty = pd.Series(pd.NaT, index=source.index, dtype=wanted.label)
    zones = _time_zones(source)
    n_times = sum(zones.values())
    if len(zones) > 1:
        return empty, (("has_one_time_zone", n_times - max(zones.values())),)
    if not zones:
        return empty, (("has_type_datetime", _lost(source, empty)),)
    is_aware = any(zone is not None for zone in zones)
    if is_aware != (wanted.time_zone is not None):
        check = "has_no_time_zone" if is_aware else "has_a_time_zone"
        return empty, ((check, n_times),)
    times = _read_times(source, is_aware)
    exact, too_fine = times, 0
    if getattr(times.dt, "unit", "ns") == "ns":
        is_exact = times.dt.floor("us") == times
        exact, too_fine = times.where(is_exact), int((times.notna() & ~is_exact).sum())
    result = exact.astype(empty.dtype)
    return result, (
        ("has_type_datetime", _lost(source, result) - too_fine),
        ("has_no_more_than_microseconds", too_fine),
    )


def zones_of(column: pd.Series, wanted: ColumnType) -> Mapping[object, int]:
    """Count the times of a column by their zone, as `convert` reads them; a column has one zone in all batches."""
    if types.is_datetime64_any_dtype(column.dtype) or types.is_numeric_dtype(column.dtype):
        return _time_zones(column)
    return _time_zones(_decoded(read_written(column.reset_index(drop=True), wanted.format, None, wanted.missing)))


def _time_zones(source: pd.Series) -> Mapping[object, int]:
    """Count the time values by their zone: an offset or a zone's name, None without a zone."""
    if types.is_datetime64_any_dtype(source.dtype):
        n_times = int(source.notna().sum())
        return {str(source.dt.tz) if source.dt.tz is not None else None: n_times} if n_times else {}
    if types.is_numeric_dtype(source.dtype):
        return {}
    present = source[source.notna()].astype(object)
    is_text = present.map(lambda value: isinstance(value, str)).astype(bool)
    offsets = present[is_text].astype(str).str.extract(OFFSET, expand=False)
    zones: list[object] = [None if pd.isna(offset) else str(offset) for offset in offsets]
    dates = [value for value in present[~is_text] if isinstance(value, dt.date)]
    return Counter(zones + [None if getattr(value, "tzinfo", None) is None else str(value.tzinfo) for value in dates])  # type: ignore[attr-defined]


def _read_times(source: pd.Series, is_aware: bool) -> pd.Series:
    if types.is_datetime64_any_dtype(source.dtype):
        return source
    readable = source.where(source.map(lambda value: isinstance(value, str | dt.date)), None)
    is_text = readable.map(lambda value: isinstance(value, str)).astype(bool)
    if is_text.any():
        readable = readable.where(is_text, readable.map(lambda value: None if value is None else str(value)))
    times = pd.to_datetime(readable, errors="coerce", utc=is_aware, format="ISO8601" if is_text.any() else None)
    unread = np.flatnonzero((readable.notna() & times.isna()).to_numpy())
    far = {row: _read_far(readable.iloc[row]) for row in unread}
    if all(time is None for time in far.values()):
        return times
    # pandas before version 3 reads text as nanoseconds, which end in 2262; many tables write 9999-12-31 for "open".
    times = times.astype("datetime64[us, UTC]" if is_aware else "datetime64[us]")
    for row, time in far.items():
        times.iloc[int(row)] = None if time is None else pd.Timestamp(time).as_unit("us")
    return times


def _read_far(value: object) -> dt.datetime | None:
    try:
        time = dt.datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return time if time.tzinfo is None else time.astimezone(dt.UTC)
