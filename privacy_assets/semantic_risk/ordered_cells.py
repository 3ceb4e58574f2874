"""Cells of an ordered column as segments of a line that is cut at the ends of windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import ORDERED_KINDS, ColumnValues, read_column
from privacy_assets.columns.scales import Closed
from privacy_assets.errors import InvalidSettingError, InvalidTableError

_EXACT_BOUND = 2**53


@dataclass(frozen=True, eq=False)
class OrderedColumn:
    """A column, named ``where`` in messages, whose values have an order.

    ``codes`` are positions in ``distinct``, -1 for a missing value; ``distinct`` has numbers for ordered categories,
    whose ``labels`` are in order, and UTC for aware datetimes. ``kind`` is as in
    :class:`~privacy_assets.columns.coding.ColumnValues`, or "category".
    """

    where: str
    codes: NDArray[np.integer[Any]]
    distinct: NDArray[Any]
    kind: str
    labels: NDArray[np.object_]
    time_zone: str | None = None

    @classmethod
    def read(cls, column: pd.Series[Any], where: str) -> OrderedColumn:
        """Read a column; refuse unordered values."""
        if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
            labels = np.empty(len(column.cat.categories), object)
            labels[:] = [str(category) for category in column.cat.categories]
            return cls(where, column.cat.codes.to_numpy(), np.arange(len(labels)), "category", labels)
        values: ColumnValues = read_column(column, where)
        none = np.zeros(0, object)
        if values.kind == "missing":
            return cls(where, values.codes, np.zeros(0), "number", none)
        if values.kind not in ORDERED_KINDS:
            raise InvalidTableError(
                f"{where} has {values.description} values, which are not ordered. Expected numbers, dates, durations "
                "or ordered categories for an ordinal or interval scale. Make it an ordered category, or give it a "
                "nominal scale or a hierarchy."
            )
        distinct = values.distinct
        if values.offsets is not None:
            distinct = distinct - values.offsets.astype("timedelta64[s]")
        return cls(where, values.codes, distinct, values.kind, none, values.time_zone)

    def ends(self, given: Sequence[Any]) -> NDArray[Any]:
        """Convert ends of windows to the type of the values."""
        try:
            return self._ends(given)
        except InvalidSettingError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            problem = type(error).__name__
        raise InvalidSettingError(
            f"{self.where} has {self.kind} values. The ends in its scale cannot be compared with them "
            f"({problem}). Expected ends of that kind; dates as ISO 8601."
        )

    def _ends(self, given: Sequence[Any]) -> NDArray[Any]:
        if self.kind == "category":
            place = {label: number for number, label in enumerate(self.labels)}
            unknown = [end for end in given if str(end) not in place]
            if unknown:
                raise InvalidSettingError(
                    f"{self.where}: its scale names categories that the column does not have: {unknown}."
                )
            return np.array([place[str(end)] for end in given])
        if self.kind == "number":
            if any(isinstance(end, str | bool) for end in given):
                raise TypeError
            numbers = np.empty(len(given), object)
            numbers[:] = [end.item() if isinstance(end, np.generic) else end for end in given]
            floats = numbers.astype(np.float64)
            if not np.isfinite(floats).all():
                raise ValueError
            # Whole numbers that floats cannot represent are compared one by one.
            is_far = max(np.abs(floats).max(initial=0), np.abs(self.distinct.astype(np.float64)).max(initial=0))
            return numbers if is_far >= _EXACT_BOUND else floats
        if self.kind == "duration":
            return np.array([pd.Timedelta(end).as_unit(self._unit).to_timedelta64() for end in given])
        moments = [pd.Timestamp(end) for end in given]
        if self.time_zone is not None:
            moments = [m.tz_localize(self.time_zone) if m.tz is None else m for m in moments]
            moments = [m.tz_convert("UTC").tz_localize(None) for m in moments]
        return np.array([moment.as_unit(self._unit).to_datetime64() for moment in moments])

    @property
    def _unit(self) -> Any:
        return "ns" if np.datetime_data(self.distinct.dtype)[0] == "ns" else "us"

    def comparable(self, ends: NDArray[Any]) -> NDArray[Any]:
        """Return the distinct values in the type of ends."""
        return self.distinct if ends.dtype == self.distinct.dtype else self.distinct.astype(ends.dtype)

    def texts(self, ends: NDArray[Any]) -> list[str]:
        """Write ends as readable text."""
        if self.kind == "category":
            return [str(self.labels[end]) for end in ends]
        if self.kind == "number":
            return [str(int(end)) if float(end).is_integer() else str(end) for end in ends.tolist()]
        if self.kind == "duration":
            return [str(pd.Timedelta(end)) for end in ends]
        zone = "" if self.time_zone is None else " UTC"
        return [f"{pd.Timestamp(end)}{zone}" for end in ends]


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of a column: the segment of the line that contains the original.

    The ends are equal for exact values; a row with a missing end is unknown. ``includes_high`` is whether the upper end
    itself is possible.
    """

    low: OrderedColumn
    high: OrderedColumn
    includes_high: bool

    def places(self, ends: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Locate both ends of each row on a line cut at the ascending ``ends``; -1 for a missing end.

        The end ``ends[i]`` has position ``2 * i + 1``, the gap between two ends the even number between theirs.
        """
        low = _places(self.low.comparable(ends), ends)
        high = _places(self.high.comparable(ends), ends)
        if not self.includes_high:
            high = high - high % 2
        return np.append(low, -1)[self.low.codes], np.append(high, -1)[self.high.codes]


def _places(values: NDArray[Any], ends: NDArray[Any]) -> NDArray[np.int64]:
    index = np.searchsorted(ends, values, side="left")
    is_end = ends[np.minimum(index, len(ends) - 1)] == values
    return np.asarray(2 * index + (is_end & (index < len(ends))), np.int64)


def window_limits(
    lower: NDArray[Any], upper: NDArray[Any] | None, ends: NDArray[Any], closed: Closed
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last position of each window, as in :meth:`Cells.places`; open ends are unbounded."""
    first = 2 * np.searchsorted(ends, lower) + 1 + (closed not in ("both", "left"))
    if upper is None:
        return first.astype(np.int64), np.full(len(first), 2 * len(ends), np.int64)
    last = 2 * np.searchsorted(ends, upper) + 1 - (closed not in ("both", "right"))
    return first.astype(np.int64), last.astype(np.int64)
