"""The only conversion between frames and integer codes.

A column is read once per table (:func:`read_column`): its distinct values are found in their own storage, so that
everything after it (rounding, comparison of types, text) touches distinct values only. :func:`encode_column` then gives
equal values of all tables the same code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import time
from typing import Any, Literal, cast
from uuid import UUID

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.distinct_values import DistinctValues
from privacy_assets.columns.safe_names import class_name, dtype_name, type_name
from privacy_assets.columns.time_units import DATETIME_UNITS, LARGEST_INT64, integers_in, own_unit
from privacy_assets.errors import InvalidTableError
from privacy_assets.kernels.numbers import number_type

Kind = Literal["number", "boolean", "text", "datetime", "aware datetime", "duration", "missing"]

# Kinds with a natural order; ordered categories are also ordered, by their categories.
ORDERED_KINDS = ("number", "datetime", "aware datetime", "duration")
MAX_DECIMALS = 10
# This many values are read first, because one with too many decimals is enough to decide.
_FIRST_READ = 1000
_ROWS_COPIED_AT_ONCE = 2**20
_MOST_DIFFERENT = 0.8
# Nanoseconds of each precision, coarsest first, under the names that settings and results use.
_NUMPY_UNITS = {"D": "D", "H": "h", "T": "m", "s": "s", "ms": "ms", "us": "us", "ns": "ns"}
_INFERRED_KINDS: Mapping[str, Kind] = {
    "string": "text",
    "time": "text",
    "interval": "text",
    "period": "text",
    "bytes": "text",
    "empty": "missing",
    "boolean": "boolean",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "date": "datetime",
    "datetime": "datetime",
    "datetime64": "datetime",
    "timedelta": "duration",
    "timedelta64": "duration",
}


@dataclass(frozen=True)
class ColumnValues:
    """One column of one table: its distinct values, and the value of each row.

    ``kind`` is one of ``number, boolean, text, datetime, aware datetime, duration, missing`` (without any value).
    ``codes`` are positions in ``distinct``, -1 for a missing value; these are int64, float64, bool, datetime64 (of
    local time), timedelta64, or objects (text, large integers). ``offsets`` are the seconds east of UTC of each aware
    datetime. Ranked texts stand for values with an order, in which ``distinct`` is sorted: times of day, periods,
    intervals.
    """

    kind: Kind
    codes: NDArray[np.integer[Any]]
    distinct: NDArray[Any]
    offsets: NDArray[np.int64] | None = None
    time_zone: str | None = None
    is_ranked: bool = False
    is_bytes: bool = False
    is_category: bool = False

    @property
    def is_float(self) -> bool:
        """Whether the values are floating-point numbers, which are rounded before they are compared."""
        return self.distinct.dtype.kind == "f"

    @property
    def decimals(self) -> int | None:
        """The fewest decimals at which rounding does not change values: 0 unless they are floats, None if above 10."""
        return _decimals_of(self.distinct[~np.isnan(self.distinct)]) if self.is_float else 0

    @property
    def description(self) -> str:
        """The kind as text, for error messages."""
        kind = "bytes" if self.is_bytes else self.kind
        return f"{kind} ({self.time_zone})" if self.time_zone else kind


@dataclass(frozen=True)
class EncodedColumn:
    """One column of several tables in common codes: equal codes mean equal values.

    ``labels`` has the text of each code; None for the missing value. ``precision`` is the decimals of rounded floats,
    or the unit of floored datetimes. ``key_of`` has for each code the first with the same spelling, or that of missing
    values; None if no two are spelled alike.
    """

    codes: tuple[NDArray[np.unsignedinteger[Any]], ...]
    labels: NDArray[np.object_]
    kind: Kind
    precision: int | str | None
    key_of: NDArray[np.int64] | None = None

    @property
    def all_spelled(self) -> list[NDArray[np.unsignedinteger[Any]]]:
        """The codes of each table in which values that are spelled alike have one code."""
        return [own if self.key_of is None else self.key_of[own].astype(own.dtype) for own in self.codes]

    def with_keys(self, keys: Sequence[Any]) -> EncodedColumn:
        """Return the column with ``key_of`` for the spelling of each code."""
        first = {keys[-1]: len(keys) - 1} if len(keys) and self.labels[-1] is None else {}
        key_of = np.array([first.setdefault(key, code) for code, key in enumerate(keys)], np.int64)
        return self if len(first) == len(keys) else replace(self, key_of=key_of)


def read_column(column: pd.Series[Any], where: str) -> ColumnValues:
    """Find the distinct values of a column and their kind.

    Any dtype of numbers, booleans, text, dates, datetimes or durations is read; objects if all values are of one kind.
    Times of day, periods, intervals, UUIDs and bytes (in hexadecimal digits) are text. Categories count as their
    underlying values; unused ones are ignored. Integers beyond 2**53 keep all digits, unless objects mix them with
    fractions.

    Refused are values of several kinds or of a kind not listed, infinite numbers, mixed time zones, and values that
    pandas or NumPy cannot represent (text with lone surrogates, signaling NaN, durations beyond int64). ``where`` is
    used in messages, such as ``"Column 'age' of the original table"``.
    """
    try:
        return _read(column, where)
    except InvalidTableError:
        raise
    except Exception as error:  # noqa: BLE001 - any pandas error may show a cell
        problem = class_name(type(error))
    # Raised here instead of above, so that the other error is not its context.
    raise InvalidTableError(
        f"{where} has values that cannot be read ({problem}). Expected numbers, booleans, text in Unicode, dates, "
        "datetimes or durations within 292 years. Set other values to missing, or remove the column."
    )


def _read(column: pd.Series[Any], where: str) -> ColumnValues:
    """Read a column; pandas errors pass through."""
    if isinstance(column.dtype, pd.SparseDtype):
        column = pd.Series(np.asarray(column))
    if isinstance(column.dtype, pd.ArrowDtype):
        column = _without_arrow(column)
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = column.cat.remove_unused_categories().cat
        codes, values = levels.codes.to_numpy(), pd.Series(levels.categories)
        if len(values) == 0:
            return ColumnValues("missing", codes, np.zeros(0, object))
        kind = _kind_of(values, where)
        # The codes of ordered categories are in their order, regardless of the values.
        return replace(_checked(kind, codes, values, where, may_rank=not column.dtype.ordered), is_category=True)
    if _holds_objects(column):
        return _read_objects(column, where)
    kind = _kind_of(column, where)
    if kind == "missing":
        return without_values(len(column))
    codes, distinct = pd.factorize(column)
    return _checked(kind, codes, pd.Series(distinct), where)


def _read_objects(column: pd.Series[Any], where: str) -> ColumnValues:
    """Read a column of objects; text, the most frequent kind, is recognized by its distinct values."""
    distinct = np.zeros(0, object)
    with suppress(TypeError):  # lists and the like: their kind is named in the refusal
        codes, distinct = pd.factorize(column.to_numpy())
    is_text = pd.api.types.infer_dtype(distinct, skipna=False) == "string"
    kind = "text" if is_text else _kind_of(column, where)
    if kind == "missing":
        return without_values(len(column))
    # As objects: pandas would convert the texts, and all would be converted back.
    return _checked(kind, codes, pd.Series(distinct, dtype=object), where)


def without_values(n_rows: int) -> ColumnValues:
    """Return a column in which every value is missing."""
    return ColumnValues("missing", np.full(n_rows, -1, np.int8), np.zeros(0, object))


def _without_arrow(column: pd.Series[Any]) -> pd.Series[Any]:
    """Turn Arrow storage other than text into the nullable or plain dtype that keeps every value."""
    kind = column.dtype.kind
    if kind in "iu":
        return column.astype("UInt64" if kind == "u" else "Int64")
    if kind == "b":
        return column.astype("boolean")
    if kind == "f":
        stored: Any = column.dtype
        return pd.Series(column.to_numpy(dtype=stored.numpy_dtype, na_value=np.nan))
    return column.astype(object)


def _holds_objects(column: pd.Series[Any]) -> bool:
    return isinstance(column.dtype, np.dtype) and column.dtype.kind == "O"


def kind_of_dtype(dtype: Any) -> Literal["boolean", "number", "datetime", "text"]:
    """Return the kind of the values of a dtype; any other kind counts as text."""
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_numeric_dtype(dtype):
        return "number"
    return "datetime" if pd.api.types.is_datetime64_any_dtype(dtype) else "text"


def _kind_of(column: pd.Series[Any], where: str) -> Kind:
    """Return the kind of values of a column, from its dtype if possible."""
    dtype = column.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        return "aware datetime" if column.notna().any() else "missing"
    if isinstance(dtype, (pd.IntervalDtype, pd.PeriodDtype, pd.StringDtype)):
        return "text" if column.notna().any() else "missing"
    if not _holds_objects(column) and dtype.kind in "biufmM":
        is_nullable = dtype.kind in "fmM" or not isinstance(dtype, np.dtype)
        if is_nullable and not column.notna().any():
            return "missing"
        kinds: Mapping[str, Kind] = {"b": "boolean", "m": "duration", "M": "datetime"}
        return kinds.get(dtype.kind, "number")
    inferred = pd.api.types.infer_dtype(column, skipna=True) if _holds_objects(column) else str(dtype)
    kind = _INFERRED_KINDS.get(inferred)
    if inferred == "mixed" and all(isinstance(value, UUID) for value in column.dropna()):
        kind = "text"
    if kind is None:
        found = inferred if _holds_objects(column) else dtype_name(dtype)
        if _holds_objects(column):
            found = f"{inferred}, by type: {dict(Counter(type_name(value) for value in column.dropna()))}"
        raise InvalidTableError(
            f"{where} has values of a kind that cannot be compared ({found}). Expected numbers, booleans, text, "
            "dates, datetimes or durations, one kind per column. Convert the column to one of them, or remove it."
        )
    if inferred == "datetime" and kind == "datetime":
        zones = {str(value.tzinfo) for value in column.dropna()}
        if len(zones) > 1:
            raise InvalidTableError(
                f"{where} mixes {len(zones)} time zones (naive counts as one). Expected one time zone per column. "
                "Convert it to one zone, for example with pandas.to_datetime(..., utc=True)."
            )
        return "datetime" if zones == {"None"} else "aware datetime"
    return kind


def _checked(
    kind: Kind, codes: NDArray[Any], distinct: pd.Series[Any], where: str, *, may_rank: bool = True
) -> ColumnValues:
    """Convert distinct values to the storage of their kind; refuse infinite values."""
    if kind == "number":
        values = _numbers(distinct)
        if values.dtype.kind == "f":
            n_infinite = int(np.isinf(values)[codes][codes >= 0].sum()) if len(values) else 0
            if n_infinite:
                raise InvalidTableError(
                    f"{where} has {n_infinite} infinite values, or values beyond 1.8e308. Expected finite numbers or "
                    "missing values. Set them to missing or to a bound of your choice."
                )
            codes = np.where(np.append(np.isnan(values), False)[codes], -1, codes)
        return ColumnValues(kind, codes, values)
    if kind == "text":
        cells = distinct.tolist()
        is_text = pd.api.types.infer_dtype(cells, skipna=False) == "string"
        as_text = cells if is_text else [text_of_cell(cell) for cell in cells]
        "".join(as_text).encode()  # lone surrogates could not be stored later; the caller handles the error
        order = order_of_cells(cells, as_text) if may_rank and not is_text else None
        if order is None:
            return ColumnValues(kind, codes, as_objects(as_text), is_bytes=isinstance(cells[0], bytes))
        place = np.full(len(order) + 1, -1, np.int64)
        place[order] = np.arange(len(order))
        return ColumnValues(kind, place[codes], as_objects([as_text[i] for i in order]), is_ranked=True)
    if kind == "boolean":
        return ColumnValues(kind, codes, distinct.to_numpy(dtype=bool))
    if kind == "duration":
        return ColumnValues(kind, codes, cast("NDArray[Any]", pd.to_timedelta(distinct).to_numpy()))
    if kind == "aware datetime":
        moments = pd.DatetimeIndex(pd.to_datetime(distinct))
        local = moments.tz_localize(None).to_numpy()
        universal = moments.tz_convert("UTC").tz_localize(None).to_numpy()
        offsets = (local - universal).astype("timedelta64[s]").astype(np.int64)
        return ColumnValues(kind, codes, local, offsets, str(moments.tz))
    if kind == "datetime" and _holds_objects(distinct):
        has_time = any(hasattr(value, "hour") for value in distinct)
        return ColumnValues(kind, codes, _moments(distinct) if has_time else distinct.to_numpy("datetime64[D]"))
    return ColumnValues(kind, codes, distinct.to_numpy())


def _moments(distinct: pd.Series[Any]) -> NDArray[np.datetime64]:
    """Turn datetime objects into datetime64; in microseconds if nanoseconds cannot represent them."""
    try:
        return cast("NDArray[np.datetime64]", pd.to_datetime(distinct).to_numpy())
    except pd.errors.OutOfBoundsDatetime:
        return distinct.to_numpy("datetime64[us]")


def code_type(n_codes: int) -> np.dtype[Any]:
    """Return the smallest type of codes from 0 to ``n_codes - 1``."""
    return np.dtype(np.min_scalar_type(max(n_codes - 1, 0)))


def count_codes(codes: NDArray[np.integer[Any]], n_codes: int, lowest: int = 0) -> NDArray[np.int64]:
    """Count the rows of each of ``n_codes`` codes from ``lowest`` on, without a wider copy of all codes."""
    counts = np.zeros(n_codes, np.int64)
    for begin in range(0, len(codes), _ROWS_COPIED_AT_ONCE):
        places = codes[begin : begin + _ROWS_COPIED_AT_ONCE].astype(np.int64) - lowest
        if places.min() < 0:
            raise ValueError(f"codes from {lowest} on were expected, and a lower one was found")
        np.add.at(counts, places, 1)
    return counts


def compact(codes: NDArray[np.integer[Any]], n_codes: int) -> tuple[NDArray[np.signedinteger[Any]], int]:
    """Renumber codes consecutively from 0, in a small type, keeping their order; -1, the missing value, comes last."""
    # -1 indexes the last position, which is the missing value.
    occurs = np.zeros(n_codes + 1, np.bool_)
    occurs[codes] = True
    number = np.cumsum(occurs) - 1
    return number.astype(np.min_scalar_type(-1 - n_codes))[codes], int(occurs.sum())


def as_objects(values: Sequence[Any]) -> NDArray[np.object_]:
    """Put values into an object array unchanged."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _numbers(distinct: pd.Series[Any]) -> NDArray[Any]:
    """Turn numbers of any storage into int64 or float64, or into objects if they are integers beyond int64."""
    if distinct.dtype.kind == "f":
        stored: Any = getattr(distinct.dtype, "numpy_dtype", distinct.dtype)
        values = distinct.to_numpy(dtype=stored, na_value=np.nan)
        return values.astype(np.float64) if stored.itemsize >= 8 else np.array([_as_float(v) for v in values])
    if _holds_objects(distinct):
        floats = np.array([_as_float(value) for value in distinct], np.float64)
        if not np.isfinite(floats).all() or any(value != int(value) for value in distinct):
            return floats
        distinct = pd.Series(as_objects([int(value) for value in distinct]), dtype=object)
    fits = distinct.dtype.kind == "i" or len(distinct) == 0
    if fits or (distinct.min() >= -LARGEST_INT64 and distinct.max() <= LARGEST_INT64):
        return distinct.to_numpy(dtype=np.int64)
    return as_objects([int(value) for value in distinct])


def _as_float(value: Any) -> float:
    """Return the nearest float64; a float32 0.1 means 0.1, not the 0.10000000149 that widening its bits would give."""
    try:
        return float(str(value) if isinstance(value, np.floating) and value.dtype.itemsize < 8 else value)
    except OverflowError:
        return np.inf


def encode_column(
    tables: Sequence[ColumnValues], *, decimals: int | None = None, unit: str | None = None
) -> EncodedColumn:
    """Give equal values of a column in several tables the same code.

    The tables are of one kind or missing (not checked here). The first determines the precision by default: the
    decimals of its floats, at most 10 (0 if it has integers, 10 if it has no value), or the coarsest key of
    ``DATETIME_UNITS`` that leaves it unchanged, which datetimes of the others must fit. If the second has floats of
    single precision, all are compared in it.
    """
    kind: Kind = next((table.kind for table in tables if table.kind != "missing"), "missing")
    precision: int | str | None = None
    if kind == "number":
        tables = [_as_written(table) for table in tables]
    present = [table for table in tables if table.kind != "missing"]
    if kind == "number":
        in_single = decimals is None and _are_compared_in_single(tables[:2])
        if any(table.is_float for table in present):
            own = None if tables[0].kind == "missing" else tables[0].decimals
            precision = next(each for each in (decimals, own, MAX_DECIMALS) if each is not None)
        joint, labels = _join_numbers([_rounded(table.distinct, precision, in_single=in_single) for table in present])
    elif kind in ("datetime", "aware datetime"):
        found = unit if unit is not None else _unit_of(present[0])
        precision = found
        joint, labels = _join_moments(present, found)
    elif kind == "duration":
        joint, labels = _join_durations([table.distinct for table in present])
    else:
        joint, distinct = pd.factorize(np.concatenate([table.distinct for table in present] or [np.zeros(0, object)]))
        labels = [str(value) for value in distinct]
    has_missing = any((table.codes < 0).any() for table in tables)
    n_codes = len(labels) + has_missing
    dtype = code_type(n_codes)
    codes = []
    begin = 0
    for table in tables:
        # -1 indexes the last position, which is the code of missing values.
        code_of = np.append(joint[begin : begin + len(table.distinct)], len(labels)).astype(dtype)
        begin += len(table.distinct)
        codes.append(code_of[table.codes])
    return EncodedColumn(tuple(codes), as_objects([*labels, *[None] * has_missing]), kind, precision)


def _decimals_of(values: NDArray[np.float64]) -> int | None:
    if len(values) > _FIRST_READ and _decimals_of(values[:_FIRST_READ]) is None:
        return None
    for decimals in range(MAX_DECIMALS + 1):
        values = values[round_floats(values, decimals) != values]
        if len(values) == 0:
            return decimals
    return None


def round_floats(values: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """Round like ``numpy.round``; values too large to have this many decimals stay unchanged."""
    scale = 10.0**decimals
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.abs(values) * scale < 2.0**52, np.rint(values * scale) / scale, values) + 0.0


def _rounded(values: NDArray[Any], decimals: int | str | None, *, in_single: bool) -> NDArray[Any]:
    if values.dtype.kind != "f":
        return values
    return round_floats(_as_single(values) if in_single else values, cast("int", decimals))


def _are_compared_in_single(tables: Sequence[ColumnValues]) -> bool:
    """Whether single precision keeps the floats of the second table, but not those of the first."""
    if len(tables) < 2 or not all(table.is_float for table in tables):
        return False
    first, second = (table.distinct for table in tables)
    return _is_single(second) and not _is_single(first)


def _as_single(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the numbers are in single precision, as it is written."""
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(np.float32).astype(str).astype(np.float64)


def _as_written(table: ColumnValues) -> ColumnValues:
    """Return floats that have the bits of single precision as they are written: 0.1 for 0.10000000149."""
    if not table.is_float or not _is_single(table.distinct, in_bits=True):
        return table
    is_whole = table.distinct == np.floor(table.distinct)
    return replace(table, distinct=np.where(is_whole, table.distinct, _as_single(table.distinct)))


def _is_single(values: NDArray[np.float64], *, in_bits: bool = False) -> bool:
    """Whether single precision keeps the numbers, as they are written or in bits."""
    if len(values) > _FIRST_READ and not _is_single(values[:_FIRST_READ], in_bits=in_bits):
        return False
    with np.errstate(over="ignore", under="ignore"):
        single = values.astype(np.float32) if in_bits else _as_single(values)
    return bool(((single == values) | np.isnan(values)).all())


def _join_numbers(tables: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], list[str]]:
    """Give equal numbers one code. Integers are compared as integers, exactly even beyond 2**53."""
    values = np.concatenate(tables) if len({table.dtype for table in tables}) == 1 else None
    if values is not None and values.dtype.kind in "iO":
        joint, distinct = pd.factorize(values)
        return joint, [str(value) for value in distinct.tolist()]
    has_objects = any(table.dtype.kind == "O" for table in tables)
    is_whole, whole, rest = [], [], []
    for table in tables:
        if table.dtype.kind != "f":
            is_whole.append(np.ones(len(table), np.bool_))
            whole.append(table)
            continue
        # 2.0**63 is the first float that int64 cannot represent.
        fits = (table == np.floor(table)) & ((np.abs(table) < 2.0**63) | has_objects)
        is_whole.append(fits)
        whole.append(as_objects([int(v) for v in table[fits]]) if has_objects else table[fits].astype(np.int64))
        rest.append(table[~fits])
    is_whole_all = np.concatenate(is_whole)
    whole_joint, whole_distinct = pd.factorize(np.concatenate(whole))
    rest_joint, rest_distinct = pd.factorize(np.concatenate(rest or [np.zeros(0)]), use_na_sentinel=False)
    joint = np.empty(len(is_whole_all), np.int64)
    joint[is_whole_all] = whole_joint
    joint[~is_whole_all] = rest_joint + len(whole_distinct)
    return joint, [*map(str, whole_distinct.tolist()), *map(repr, rest_distinct.tolist())]


def _unit_of(table: ColumnValues) -> str:
    """Find the coarsest unit in which flooring does not change a value."""
    own = own_unit(table.distinct)
    integers = table.distinct.astype(np.int64)
    for name, nanoseconds in DATETIME_UNITS.items():
        if nanoseconds <= DATETIME_UNITS[own] or not (integers % (nanoseconds // DATETIME_UNITS[own])).any():
            return name
    return own


def _join_moments(tables: Sequence[ColumnValues], unit: str) -> tuple[NDArray[np.int64], list[str]]:
    """Give equal datetimes one code after flooring local time; repeated hours stay distinct."""
    floored = np.concatenate([integers_in(table.distinct, DATETIME_UNITS[unit]) for table in tables])
    keys = floored
    if unit != "D" and tables[0].offsets is not None:
        seconds = np.concatenate([table.offsets for table in tables if table.offsets is not None])
        finest = min(DATETIME_UNITS[unit], DATETIME_UNITS["s"])
        keys = floored * (DATETIME_UNITS[unit] // finest) - seconds * (DATETIME_UNITS["s"] // finest)
    joint, distinct = pd.factorize(keys)
    example = np.zeros(len(distinct), np.int64)
    example[joint] = floored
    texts = np.datetime_as_string(example.astype(f"datetime64[{_NUMPY_UNITS[unit]}]"))
    zone = f" {tables[0].time_zone}" if tables[0].time_zone else ""
    return joint, [f"{text}{zone}" for text in texts.tolist()]


def _join_durations(tables: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], list[str]]:
    """Give equal durations one code, in the finest unit of all tables."""
    finest = min((own_unit(values) for values in tables), key=DATETIME_UNITS.__getitem__)
    joint, distinct = pd.factorize(np.concatenate([integers_in(v, DATETIME_UNITS[finest]) for v in tables]))
    return joint, [str(value) for value in distinct.astype(f"timedelta64[{_NUMPY_UNITS[finest]}]")]


def group_rows(columns: Sequence[NDArray[Any]], n_codes: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    """Give equal rows of coded columns, at least one, one number, from 0 in order of first appearance; count them.

    Codes of column c are below ``n_codes[c]``.
    """
    return group_rows_of(zip(columns, n_codes, strict=True), len(columns[0]))


def group_rows_of(columns: Iterable[tuple[NDArray[Any], int]], n_rows: int) -> tuple[NDArray[np.int64], int]:
    """Do what `group_rows` does with columns that come one after the other, each with the number of its codes."""
    key = np.zeros(n_rows, np.int64)
    n_keys, all_differ = 1, False
    for column, n in columns:
        if all_differ:
            # The other columns are still read, because that may refuse them.
            continue
        if n_keys * n > LARGEST_INT64:
            n_keys = max(_renumber(key), 1)
            all_differ = n_keys == n_rows
        key *= n
        key += column
        n_keys *= max(n, 1)
    if all_differ:
        return np.arange(n_rows), n_rows
    return key, _renumber(key)


def _renumber(keys: NDArray[np.int64]) -> int:
    """Replace equal keys by one number, from 0 in order of first appearance, without a copy of all; count them."""
    n_at_once = _ROWS_COPIED_AT_ONCE
    # Indexes of nearly as many keys as rows need more memory, and time, than a copy.
    if len(keys) <= n_at_once or len(pd.unique(keys[:n_at_once])) > _MOST_DIFFERENT * n_at_once:
        keys[:], found = pd.factorize(keys)
        return len(found)
    distinct = DistinctValues()
    for begin in range(0, len(keys), n_at_once):
        some = keys[begin : begin + n_at_once]
        some[:] = distinct.add(pd.Series(some))
    return len(distinct)


def connected(nodes: NDArray[np.int64], others: NDArray[np.int64], n_nodes: int) -> NDArray[np.int64]:
    """Return the group, from 0, of each node: of those that edges between nodes and others connect."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(nodes), np.bool_), (nodes, others)), shape=(n_nodes, n_nodes))
    return np.asarray(connected_components(edges, directed=False)[1], np.int64)


def numbers_of_people(column: pd.Series[Any]) -> tuple[NDArray[np.signedinteger[Any]], int] | None:
    """Return people as numbers from 0, and a number above all of them; None unless the column has such numbers.

    Of these, there may be at most twice as many as rows, because arrays have a place for each.
    """
    is_whole = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu" and len(column) > 0
    if not is_whole or column.min() < 0 or column.max() >= 2 * len(column):
        return None
    n_people = int(column.max()) + 1
    # What a Series returns is read-only, and kernels would be compiled once more for it.
    numbers = column.array.to_numpy()
    return numbers.astype(number_type(n_people), copy=False), n_people


def people_of_values(
    codes: NDArray[np.integer[Any]],
    n_values: int,
    whose: NDArray[np.integer[Any]] | None,
    at_least: int | None = None,
) -> NDArray[np.int64]:
    """Count the distinct people of each value.

    A value of -1 is missing; unknown people, -1, count as one person. Others are numbered from 0; by default each row
    is a person. If it is only asked which values ``at_least`` so many people have, a value of more may have any number
    above.
    """
    is_known = codes >= 0
    codes = codes[is_known].astype(np.int64)
    n_records = np.bincount(codes, minlength=n_values).astype(np.int64)
    if whose is None or not len(codes):
        return n_records
    whose, n_people = whose[is_known].astype(np.int64) + 1, np.zeros_like(n_records)
    if at_least is not None:
        # The records of a value are of at least so many people.
        n_people = -(-n_records // np.bincount(whose).max())
        is_counted = n_people < at_least
        rows = np.flatnonzero(is_counted[codes])
        codes, whose, n_people = codes[rows], whose[rows], np.where(is_counted, 0, n_people)
    n_keys = int(whose.max(initial=0)) + 1
    return n_people + np.bincount(pd.unique(codes * n_keys + whose) // n_keys, minlength=n_values)


def as_numbers(table: ColumnValues, precision: int | str | None) -> NDArray[np.float64]:
    """Return distinct values as numbers; moments in the same unit become the same number."""
    if table.kind == "number":
        return round_floats(table.distinct, int(precision or 0)) if table.is_float else table.distinct.astype(float)
    if table.kind == "duration":
        return integers_in(table.distinct, 1).astype(float)
    unit = DATETIME_UNITS[str(precision)]
    moments = integers_in(table.distinct, unit).astype(float)
    if table.offsets is not None and precision != "D":
        moments -= table.offsets * (DATETIME_UNITS["s"] / unit)
    return moments


def text_of_cell(cell: Any) -> str:
    """Write a cell that is not text; bytes in hexadecimal digits."""
    return cell.hex() if isinstance(cell, bytes) else str(cell)


def order_of_cells(cells: list[Any], as_text: list[str]) -> list[int] | None:
    """Order times of day, periods or intervals; None for other values, and for values without an order."""
    if all(isinstance(value, pd.Interval) for value in cells):
        keys: list[Any] = [(value.left, value.right, text) for value, text in zip(cells, as_text, strict=True)]
    elif all(isinstance(value, pd.Period) for value in cells) or all(isinstance(value, time) for value in cells):
        keys = cells
    else:
        return None
    if len(set(as_text)) < len(as_text):
        return None
    try:
        return sorted(range(len(keys)), key=keys.__getitem__)
    except (TypeError, ValueError):  # naive and aware times, intervals of several kinds, periods of several lengths
        return None
