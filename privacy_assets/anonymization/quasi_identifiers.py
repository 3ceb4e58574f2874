"""Quasi-identifiers in codes that keep their order: the dimensions of Mondrian."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy_assets.columns.coding import ORDERED_KINDS, ColumnValues, Kind, read_column
from privacy_assets.columns.time_units import align_times
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.coded_columns import code_stored, distinct_stored
from privacy_assets.storage.table import StoredTable, Table

# The coordinate of a missing value: farther from all others than those are from each other, so that a class that mixes
# both has the full width.
MISSING_COORDINATE = 2.0
_IN_MINUTES = re.compile(r"\d\d:\d\d:00").fullmatch
_TIME_UNITS = ("D", "h", "m", "s", "ms", "us", "ns")


@dataclass(frozen=True, eq=False)
class Scale:
    """The values of a dimension in the order of their codes.

    ``kind`` is that of :class:`~privacy_assets.columns.coding.ColumnValues`; "category" stands for ordered categories,
    times of day, periods and intervals. Values that are not ``is_ordered`` are a set.

    ``known`` has the distinct values, ascending (in UTC for aware datetimes): int64, float64, datetime64, timedelta64,
    bool, or objects (text, large integers). Floats are exact: 0.1 + 0.2 and 0.3 are two values, as in
    `verify_anonymity`. Ordered categories are stored as text, in the order of the categories. The code of missing
    values is ``len(known)``. ``decimals`` are those of float values, None if more than 10; ``unit`` is the coarsest
    unit of time in which all values are whole, for times of day only minutes; ``time_zone`` is UTC if pandas does not
    know the name of the zone.
    """

    name: str
    kind: Kind | str
    is_ordered: bool
    known: NDArray[Any]
    has_missing: bool
    decimals: int | None = 0
    unit: str = ""
    time_zone: str | None = None

    @property
    def n_known(self) -> int:
        """Number of values that are not missing."""
        return len(self.known)

    @property
    def n_values(self) -> int:
        """Number of values, including the missing value; at least 1."""
        return max(self.n_known + self.has_missing, 1)

    @property
    def is_closed(self) -> bool:
        """Whether intervals include their upper end: those of all kinds do, except numbers with decimals."""
        return self.decimals == 0

    @cached_property
    def positions(self) -> NDArray[np.float64]:
        """Ordered values on the line from 0 (smallest) to 1 (largest); ordered categories evenly spaced."""
        if self.kind == "category":
            return _even(self.n_known)
        if self.n_known < 2:
            return np.zeros(self.n_known)
        numbers = self.known
        if numbers.dtype.kind in "mM":
            numbers = numbers.astype(np.int64)
        low, high = numbers[0], numbers[-1]
        if numbers.dtype.kind == "O":
            return np.array([(number - low) / (high - low) for number in numbers], np.float64)
        if numbers.dtype.kind == "i":
            # Differences of int64 may need one bit more, which unsigned integers have.
            offsets = numbers.view(np.uint64) - numbers[:1].view(np.uint64)
            return np.asarray(offsets / float(offsets[-1]), np.float64)
        if high / 2 - low / 2 > np.finfo(np.float64).max / 2:
            numbers = numbers / 2  # their distance is infinite
        return np.asarray((numbers - numbers[0]) / (numbers[-1] - numbers[0]), np.float64)

    def coordinates(self, normalize: str) -> NDArray[np.float64] | None:
        """Return the coordinate of each code by which cuts are chosen, strictly ascending; None for a set."""
        if not self.is_ordered:
            return None
        known = _even(self.n_known) if normalize == "rank" else _apart(self.positions)
        return np.append(known, MISSING_COORDINATE) if self.has_missing else known


@dataclass(frozen=True, eq=False)
class Dimension:
    """A quasi-identifier: its scale, and the code of each record."""

    scale: Scale
    codes: NDArray[np.integer[Any]]


def _even(n: int) -> NDArray[np.float64]:
    return np.arange(n) / max(n - 1, 1)


def _apart(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move values that rounding made equal to the next floats, because a class without width would never be cut."""
    # The bits of floats that are not negative, read as integers, have their order.
    steps = np.arange(len(positions))
    return (np.maximum.accumulate(positions.view(np.int64) - steps) + steps).view(np.float64)


def read_dimensions(
    table: Table, names: Sequence[str], prepare: Callable[[pd.Series[Any]], pd.Series[Any]] = lambda column: column
) -> list[Dimension]:
    """Read columns, or what a function of their values makes of them, as dimensions.

    All unreadable columns are reported at once.
    """
    dimensions, problems = [], []
    for name in names:
        try:
            if isinstance(table, StoredTable):
                coded = code_stored(table, name)
                own = read_dimension(prepare(coded.distinct))
                dimensions.append(Dimension(own.scale, own.codes[coded.codes]))
            else:
                dimensions.append(read_dimension(prepare(table[name])))
        except InvalidTableError as error:
            problems.append(str(error))
    if problems:
        raise InvalidTableError(" ".join(problems))
    return dimensions


def read_scale(table: Table, name: str) -> Scale:
    """Find the scale of a column; of one that is stored, without a code of each record."""
    column = distinct_stored(table, name) if isinstance(table, StoredTable) else table[name]
    return read_dimension(column).scale


def read_dimension(column: pd.Series[Any]) -> Dimension:
    """Find the scale of a column, and the code of each record.

    Unused categories are ignored: only values that occur count.
    """
    name = str(column.name)
    try:
        read = read_column(column, f"Column {name!r}")
    except TypeError:
        raise InvalidTableError(
            f"Column {name!r} has values that cannot be compared, such as lists. Expected numbers, booleans, text, "
            "dates, datetimes or durations. Convert the column, or leave it out."
        ) from None
    is_ranked = isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered and read.kind != "missing"
    values, code_of = _ranked_texts(column) if is_ranked else _sorted_values(read)
    unit = _unit_of(values)
    if read.is_ranked:
        is_ranked, unit = True, "m" if all(map(_IN_MINUTES, read.distinct)) else ""
    missing = read.codes < 0
    scale = Scale(
        name,
        "category" if is_ranked else read.kind,
        is_ranked or read.kind in ORDERED_KINDS,
        values,
        bool(missing.any()),
        0 if is_ranked else read.decimals,
        unit,
        _named_zone(read) if read.kind == "aware datetime" and not is_ranked else None,
    )
    # -1 indexes the last position, which is the code of missing values.
    codes = np.append(code_of, len(values)).astype(np.min_scalar_type(len(values)))[read.codes]
    return Dimension(scale, codes)


def _ranked_texts(column: pd.Series[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the texts of the ordered categories that occur; the codes of the column are in their order."""
    texts = [str(category) for category in column.cat.remove_unused_categories().cat.categories]
    values = np.empty(len(texts), object)
    values[:] = texts
    return values, np.arange(len(texts))


def _named_zone(read: ColumnValues) -> str:
    """Find the name of the time zone of aware datetimes in pandas; UTC if there is none.

    Other programs cannot read the names of dateutil zones and named offsets.
    """
    assert read.offsets is not None and read.time_zone is not None  # noqa: S101 - aware datetimes have both
    moments = pd.DatetimeIndex(read.distinct - read.offsets.astype("timedelta64[s]")).tz_localize("UTC")
    # tzlocal() depends on the machine.
    names = [] if read.time_zone == "tzlocal()" else [read.time_zone]
    names += re.findall(r"zoneinfo/([^'\"]+)", read.time_zone)
    if len(read.offsets) and (read.offsets == read.offsets[0]).all():
        sign, minutes = "-" if read.offsets[0] < 0 else "+", abs(int(read.offsets[0])) // 60
        names.append(f"UTC{sign}{minutes // 60:02}:{minutes % 60:02}")
    for name in names:
        try:
            local = moments.tz_convert(name).tz_localize(None).to_numpy()
        except (KeyError, ValueError, TypeError, OSError):
            continue
        if (local == read.distinct).all():
            return name
    return "UTC"


def _sorted_values(read: ColumnValues) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct values in ascending order, and the position of each value."""
    values = read.distinct
    if read.is_ranked:
        return values, np.arange(len(values))
    if read.kind == "text":
        # In the order of Python (UTF-8 keeps that of the characters), in a fraction of the time of NumPy.
        order = pc.array_sort_indices(pa.array(values, pa.large_string())).to_numpy()
        ordered = values[order]
        if (ordered[1:] != ordered[:-1]).all():
            place = np.empty(len(values), np.int64)
            place[order] = np.arange(len(values))
            return ordered, place
    if read.is_float:
        values = values + 0.0  # no -0.0, which equals 0.0 and must have the same label
        if np.isnan(values).any():
            # A missing value that is not marked as missing in its storage, such as NaN, is not used by any row.
            known = np.unique(values[~np.isnan(values)])
            return known, np.minimum(np.searchsorted(known, values), max(len(known) - 1, 0)).astype(np.int64)
    elif read.kind == "aware datetime" and read.offsets is not None:
        values = values - read.offsets.astype("timedelta64[s]")
    ordered, code_of = np.unique(values, return_inverse=True)
    return ordered, code_of.astype(np.int64)


def _unit_of(values: NDArray[Any]) -> str:
    if values.dtype.kind not in "mM":
        return ""
    prefix = "datetime64" if values.dtype.kind == "M" else "timedelta64"
    for unit in _TIME_UNITS:
        if bool((values.astype(f"{prefix}[{unit}]") == values).all()):
            return unit
    return "ns"


def code_values(scale: Scale, column: pd.Series[Any]) -> NDArray[np.int64]:
    """Find the codes of other values on a scale.

    An ordered value between two values of the scale has the code of the lower one, and a value outside the scale has
    the nearest code. -1 stands for an unknown category, or for a missing value if the scale does not have one.
    """
    read = read_dimension(column)
    own = read.scale
    place_of_missing = scale.n_known if scale.has_missing else -1
    if own.kind == "missing" or scale.kind == "missing":
        known = np.full(own.n_known, -1, np.int64)
    elif own.kind != scale.kind:
        raise InvalidTableError(
            f"Column {scale.name!r} has values of the kind {own.kind!r}. Expected {scale.kind!r}, as in the table "
            "that was cut. Convert the column."
        )
    elif scale.kind != "category" and (scale.is_ordered or scale.known.dtype.kind in "mM"):
        mine, theirs = align_times(scale.known, own.known)
        known = np.maximum(np.searchsorted(mine, theirs, side="right") - 1, 0).astype(np.int64)
        if not scale.is_ordered:
            known = np.where(mine[known] == theirs, known, -1)
    else:
        known = pd.Index(scale.known).get_indexer(pd.Index(own.known)).astype(np.int64)
    return np.asarray(np.append(known, place_of_missing)[read.codes], np.int64)
