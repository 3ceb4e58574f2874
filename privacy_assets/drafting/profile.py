"""Profile of a column, made block by block in bounded memory: counts, kind, range, few values.

A profile keeps values only while a column has few distinct ones, because they may become the categories of the
contract.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections import Counter
from typing import Any, Final
from uuid import UUID
from zoneinfo import available_timezones

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.columns.safe_names import class_name
from privacy_assets.contract.conversion import ColumnType, convert, in_memory, is_unicode, zones_of
from privacy_assets.drafting.readings import (
    Reading,
    are_lists,
    are_numbers,
    are_plain_numbers,
    is_missing,
    readings_of_text,
)
from privacy_assets.errors import InvalidTableError

MOST_CATEGORIES: Final = 60
MOST_COUNTED: Final = 200_000
"""Largest number of distinct values that are counted."""
MOST_COUNTED_IN_ALL: Final = 5_000_000
MOST_FIRST: Final = 100_000
MOST_FIRST_BYTES: Final = 2**24
MOST_KEPT_BYTES: Final = 2**29
"""Memory of the sample of rows."""
LONGEST_MISSING: Final = 9
PLAIN: Final = (str, bool, int, float, np.generic, decimal.Decimal, dt.date, dt.time, dt.timedelta, UUID)


class ColumnProfile:
    """Profile of one column. The more columns the table has, the fewer distinct values of each are counted."""

    def __init__(self, name: str, n_columns: int = 1) -> None:
        self.name = name
        self.n_values = self.n_missing = 0
        self.kinds: Counter[str] = Counter()
        self.readings: list[Reading] | None = None
        self.typed: dict[str, Reading] = {}
        self.few: Counter[Any] | None = Counter()
        self.missing_texts: Counter[str] = Counter()
        self.categories: list[Any] | None = None
        self.is_ordered = False
        self.is_padded = False
        self.n_numbers = self.n_lists = 0
        self.fits_text = True
        self.zones: Counter[str] = Counter()
        self.zone: str | None = None
        self.other_classes: Counter[str] = Counter()
        self._most_counted = max(1_000, min(MOST_COUNTED, MOST_COUNTED_IN_ALL // n_columns))
        self._hashes: NDArray[np.uint64] = np.empty(0, np.uint64)

    @property
    def n_distinct(self) -> int:
        """Distinct values, including texts for missing values; at most as many as are counted, see `is_counted`."""
        return len(self._hashes)

    @property
    def is_counted(self) -> bool:
        """Whether all distinct values were counted."""
        return self.n_distinct < self._most_counted

    def see(self, column: pd.Series) -> None:
        """Add a block."""
        column = in_memory(column)
        present = column[column.notna()]
        self.n_missing += len(column) - len(present)
        self.n_values += len(present)
        if not len(present):
            return
        if isinstance(column.dtype, pd.CategoricalDtype):
            self._see_categories(column.dtype)
            present = present.astype(object)
        if types.is_object_dtype(present.dtype):
            self._require_plain(present)
            if not is_unicode(value for value in present if isinstance(value, str)):
                self.kinds["text"], self.fits_text = self.n_values, False
                return
        counted = present.value_counts(sort=False)
        values = pd.Series(counted.index, dtype=counted.index.dtype)
        counts = np.asarray(counted.to_numpy(), dtype=np.int64)
        self._count(values, counts)
        self._see_values(values, counts)

    def _require_plain(self, present: pd.Series) -> None:
        others = present[~present.map(lambda value: isinstance(value, PLAIN))]
        if len(others):
            classes = sorted({class_name(type(value)) for value in others})
            raise InvalidTableError(
                f"The column {self.name!r} has {len(others):,} values that are not single values: {classes}. A "
                "contract has columns of numbers, truth values, texts and times: turn the parts into columns, or drop "
                "the column."
            )

    def _see_categories(self, dtype: pd.CategoricalDtype) -> None:
        own = dtype.categories.tolist()
        known = [] if self.categories is None else self.categories
        self.categories = known + [value for value in own if value not in known]
        self.is_ordered = bool(dtype.ordered)

    def _count(self, values: pd.Series, counts: NDArray[np.int64]) -> None:
        if self.is_counted:
            hashed = pd.util.hash_array(values.map(str).to_numpy(dtype=object), categorize=False)
            self._hashes = np.union1d(self._hashes, hashed)[: self._most_counted]
        if self.few is not None:
            self.few.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
            self.few = self.few if len(self.few) <= MOST_CATEGORIES + 10 else None

    def _see_values(self, values: pd.Series, counts: NDArray[np.int64]) -> None:
        if isinstance(values.dtype, pd.StringDtype):
            self._see_texts(values.astype(object), counts)
            return
        if types.is_object_dtype(values.dtype):
            self.fits_text &= not convert(values, ColumnType("text", True)).failures
        elif not types.is_integer_dtype(values.dtype):
            self.fits_text = False
        if types.is_bool_dtype(values.dtype):
            self.kinds["boolean"] += int(counts.sum())
        elif types.is_integer_dtype(values.dtype) or types.is_float_dtype(values.dtype):
            self._see_typed("number", values, counts)
        elif types.is_datetime64_any_dtype(values.dtype):
            self._see_typed("datetime", values, counts)
        else:
            self._see_objects(values.astype(object), counts)

    def _see_objects(self, values: pd.Series, counts: NDArray[np.int64]) -> None:
        """Add values that are Python objects, by their own types."""
        kind = values.map(_kind_of_object)
        for each, own in values.groupby(kind):
            own_counts = counts[(kind == each).to_numpy()]
            if each == "text":
                self._see_texts(own, own_counts)
            elif each in ("number", "datetime"):
                self._see_typed(str(each), own, own_counts)
            else:
                self.kinds[str(each)] += int(own_counts.sum())

    def _see_typed(self, kind: str, values: pd.Series, counts: NDArray[np.int64]) -> None:
        self.kinds[kind] += int(counts.sum())
        if kind == "datetime":
            self.zones.update(zones_of(values, ColumnType("datetime", True)))
            self.zone = self.zone or _zone_of(values)
        reading = self.typed.setdefault(kind, Reading(kind, "", self._typed_values))
        reading.see(values.reset_index(drop=True), counts)

    def _typed_values(self, values: pd.Series) -> pd.Series:
        """Return numbers, or datetimes of the column's zone, as a contract admits them."""
        if _kind_of_object(values.iloc[0]) == "datetime":
            times: Any = convert(values, ColumnType("datetime", True, self.zone)).column
            local: pd.Series = times.dt.tz_localize(None)
            return local
        whole = convert(values, ColumnType("integer", True))
        return convert(values, ColumnType("float", True)).column if whole.failures else whole.column

    def _see_texts(self, texts: pd.Series, counts: NDArray[np.int64]) -> None:
        self.kinds["text"] += int(counts.sum())
        missing = np.zeros(len(texts), dtype=bool)
        is_short = (texts.str.len() <= LONGEST_MISSING).to_numpy(dtype=bool)
        short = np.flatnonzero(is_short & ~are_plain_numbers(texts))
        missing[short] = [is_missing(text) for text in texts.iloc[short]]
        if missing.any():
            self.missing_texts.update(dict(zip(texts[missing], counts[missing].tolist(), strict=True)))
            texts, counts = texts[~missing], counts[~missing]
        if not len(texts):
            return
        texts = texts.reset_index(drop=True)
        self.is_padded = self.is_padded or bool(texts.str.fullmatch(r"0\d+").any())
        self.n_numbers += int(counts[are_numbers(texts)].sum())
        self.n_lists += int(counts[are_lists(texts)].sum())
        if self.readings is None:
            self.readings = readings_of_text(texts)
        for reading in self.readings:
            reading.see(texts, counts)
        self.readings = [each for each in self.readings if each.is_plausible]


def _zone_of(values: pd.Series) -> str | None:
    """Return the zone in which a contract keeps datetimes: their own if it has a name and is the only one, or UTC."""
    zones = {str(value.tzinfo) for value in values if getattr(value, "tzinfo", None) is not None}
    return None if not zones else zones.pop() if len(zones) == 1 and zones <= available_timezones() else "UTC"


def _kind_of_object(value: object) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, int | float | decimal.Decimal | np.integer | np.floating):
        return "number"
    return "datetime" if isinstance(value, dt.date | np.datetime64) else "other"


FEWEST_KEPT: Final = 1_000


class RowSample:
    """An even sample of the rows of a table in blocks: all rows, if they are at most ``most_rows``."""

    def __init__(self, most_rows: int) -> None:
        self._most, self._step, self._n_seen = most_rows, 1, 0
        self._parts: list[pd.DataFrame] = []
        self._first: list[pd.DataFrame] = []
        self._n_kept = self._n_bytes = 0

    @property
    def n_seen(self) -> int:
        """Number of rows so far."""
        return self._n_seen

    def see(self, block: pd.DataFrame) -> None:
        """Add a block."""
        if self._n_seen < MOST_FIRST and sum(map(_bytes_of, self._first)) < MOST_FIRST_BYTES:
            self._first.append(block)
        numbered = block.set_axis(range(self._n_seen, self._n_seen + len(block)), axis=0)
        self._n_seen += len(block)
        self._parts.append(self._thinned(numbered))
        self._n_kept += len(self._parts[-1])
        self._n_bytes += _bytes_of(self._parts[-1])
        while self._n_kept > self._most or (self._n_bytes > MOST_KEPT_BYTES and self._n_kept > FEWEST_KEPT):
            self._step *= 2
            self._parts = [self._thinned(part).copy() for part in self._parts]
            self._n_kept, self._n_bytes = sum(map(len, self._parts)), sum(map(_bytes_of, self._parts))

    def first_rows(self) -> pd.DataFrame:
        """Return the first rows, up to 100,000 or 16 MiB, because people with several rows have one in a sample."""
        return pd.concat(self._first, ignore_index=True).head(MOST_FIRST)

    def rows(self) -> pd.DataFrame:
        """Return the kept rows."""
        return pd.concat(self._parts, ignore_index=True)

    def _thinned(self, part: pd.DataFrame) -> pd.DataFrame:
        if self._step == 1:
            return part
        # Rows are sampled by a hashed number, so that the sample has no period in common with a regular table.
        mixed = part.index.to_numpy(dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
        kept: pd.DataFrame = part[((mixed >> np.uint64(20)) % np.uint64(self._step)) == 0]
        return kept


def _bytes_of(part: pd.DataFrame) -> int:
    return int(part.memory_usage(index=False, deep=True).sum())
