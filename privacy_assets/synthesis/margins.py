"""Margins of columns, shared by the synthesizers: every value has a cell of [0, 1] as wide as its frequency.

Numbers that few people share are read evenly from intervals between `interval_knots`; all other values are reproduced
as observed. A missing value is a separate value, in the last cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.columns.coding import people_of_values
from privacy_assets.synthesis.number_lines import (
    NumberLine,
    as_numbers,
    coarsest_step,
    interval_knots,
    rare_runs,
    restore_numbers,
    shares_of_people,
)
from privacy_assets.synthesis.synthesize import Kind

DEFAULT_SMOOTHING: Final = 1.75
"""Enough people, as a multiple of the square root of their number (``docs/synthetic.md``)."""


class Enough(NamedTuple):
    """How many people must share a value for it to be learned separately, and how many must be in an interval."""

    atom: int
    interval: int

    @classmethod
    def of(cls, n_people: int, smoothing: float, min_atom: int, min_interval: int) -> Enough:
        """Return `smoothing` times the square root of the number of people, or the lower bounds if these are larger."""
        smoothed = ceil(smoothing * sqrt(n_people))
        return cls(max(min_atom, smoothed), max(min_interval, smoothed))


@dataclass(frozen=True)
class Margin:
    """Empirical distribution of one column as cells of [0, 1]."""

    upper: NDArray[np.float64]
    """Upper end of each cell."""
    observed: pd.Series
    """One observed value per cell, of the column's own dtype; the last may be missing."""
    n_values: int
    """Number of cells other than the missing one."""
    line: NumberLine | None

    @property
    def n_cells(self) -> int:
        """Number of cells, including that of the missing value."""
        return len(self.upper)

    @property
    def lower(self) -> NDArray[np.float64]:
        """Lower end of each cell."""
        return np.concatenate([[0.0], self.upper[:-1]])

    def cells_at(self, positions: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the cell of each position."""
        return np.minimum(np.searchsorted(self.upper, positions, side="right"), self.n_cells - 1)

    def read(self, positions: NDArray[np.float64]) -> pd.Series:
        """Read the column's values at `positions`."""
        cells = self.cells_at(positions)
        values = self.observed.iloc[cells].reset_index(drop=True)
        if self.line is not None:
            moves, low, high = self._movable(cells, positions, self.line)
            middle = (self.lower + self.upper) / 2
            weight = np.clip((positions[moves] - middle[low]) / (middle[high] - middle[low]), 0, 1)
            if len(moves):
                moved = self.line.between(low, high, weight)
                values.iloc[moves] = restore_numbers(moved, self.observed, self.line.kind).array
        return values

    def _movable(
        self, cells: NDArray[np.intp], positions: NDArray[np.float64], line: NumberLine
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Find the records whose position is between two knots of one run; return them and these knots."""
        middle = (self.lower + self.upper) / 2
        after = np.searchsorted(middle[line.knots], positions, side="right")
        runs = np.append(line.runs, -1)[cells]  # the missing cell is in no run
        inside = np.flatnonzero((runs >= 0) & (after > 0) & (after < len(line.knots)))
        low, high = line.knots[after[inside] - 1], line.knots[after[inside]]
        same = (line.runs[low] == runs[inside]) & (line.runs[high] == runs[inside])
        return inside[same], low[same], high[same]


def learn_margins(
    table: pd.DataFrame, kinds: Mapping[str, Kind], enough: Enough, max_discrete: int, whose: NDArray[np.intp] | None
) -> tuple[list[NDArray[np.intp]], list[Margin]]:
    """Return the cell of each record and the margin, for each column of `table`.

    A column of numbers is reproduced value by value if it has at most `max_discrete` values, shared by enough people on
    average. `whose` is the person of each row, from 0; by default each row is a person.
    """
    learned = [
        _learn_numbers(column, kind, enough, max_discrete, whose)
        if kind in {"integer", "float", "datetime"}
        else _learn_values(column)
        for (_, column), kind in zip(table.reset_index(drop=True).items(), kinds.values(), strict=True)
    ]
    return [cells for cells, _ in learned], [margin for _, margin in learned]


def _learn_numbers(
    column: pd.Series, kind: Kind, enough: Enough, max_discrete: int, whose: NDArray[np.intp] | None
) -> tuple[NDArray[np.intp], Margin]:
    present = np.flatnonzero(column.notna().to_numpy())
    numbers = as_numbers(column.iloc[present], kind)
    distinct, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    whose = None if whose is None else whose[present]
    people, shares = people_of_values(inverse, len(distinct), whose), shares_of_people(inverse, whose)
    is_discrete = len(distinct) <= min(max_discrete, shares.sum() / enough.atom)
    cells = np.full(len(column), len(distinct), dtype=np.intp)
    cells[present] = inverse
    runs = rare_runs(np.logical_and(not is_discrete, people < enough.atom))
    knots = interval_knots(runs, shares, enough.interval)
    line = NumberLine(distinct, runs, knots, kind, *coarsest_step(distinct, column, kind))
    return cells, _margin(column, cells, present[first], line)


def _margin(
    column: pd.Series, cells: NDArray[np.intp], representatives: NDArray[np.intp], line: NumberLine | None
) -> Margin:
    """Build the margin of `column` from the cell of each record and one row per cell (missing excepted)."""
    missing = np.flatnonzero(cells == len(representatives))[:1]
    rows = np.concatenate([representatives, missing])
    shares = np.bincount(cells, minlength=len(rows)) / len(cells)
    upper = np.cumsum(shares)
    upper[-1] = 1.0
    return Margin(upper, column.iloc[rows].reset_index(drop=True), len(representatives), line)


def _learn_values(column: pd.Series) -> tuple[NDArray[np.intp], Margin]:
    codes, _ = pd.factorize(column)
    n_values = int(codes.max()) + 1
    first = np.zeros(n_values + 1, dtype=np.intp)  # code -1, a missing value, writes to the last place
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    first = first[:n_values]
    order = _value_order(column, codes, first)
    rank = np.empty(n_values + 1, dtype=np.intp)
    rank[order] = np.arange(n_values)
    rank[-1] = n_values  # code -1, a missing value, reads the last place
    cells = rank[codes]
    return cells, _margin(column, cells, first[order], None)


def _value_order(column: pd.Series, codes: NDArray[np.intp], first: NDArray[np.intp]) -> NDArray[np.intp]:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        return np.argsort(column.cat.codes.to_numpy()[first], kind="stable")
    if pd.api.types.is_bool_dtype(dtype):
        return np.argsort(column.iloc[first].to_numpy(dtype=bool), kind="stable")
    frequency = np.bincount(codes[codes >= 0], minlength=len(first))
    return np.argsort(-frequency, kind="stable")


def without_arrow_moments(table: pd.DataFrame, kinds: Mapping[str, Kind]) -> pd.DataFrame:
    """Convert datetimes and dates stored by Arrow to pandas' own dtypes, which have a view as integers."""
    table = table.copy(deep=False)
    for name, kind in zip(table.columns, kinds.values(), strict=True):
        dtype = table[name].dtype
        if kind == "datetime" and isinstance(dtype, pd.ArrowDtype):
            table[name] = table[name].astype(_own_dtype(dtype))
    return table


def _own_dtype(dtype: pd.ArrowDtype) -> Any:
    stored = dtype.pyarrow_dtype
    if getattr(stored, "tz", None):
        return pd.DatetimeTZDtype(unit=stored.unit, tz=stored.tz)
    return f"datetime64[{getattr(stored, 'unit', 's')}]"


def with_dtype(values: pd.Series, dtype: Any) -> pd.Series:
    """Return the values in the dtype of the learned column."""
    if values.dtype == dtype:
        return values
    stored = dtype.pyarrow_dtype
    if pa.types.is_date(stored):  # dates take timestamps of whole days only through Arrow
        values = values.astype(pd.ArrowDtype(pa.timestamp(values.dt.unit)))
    return values.astype(dtype)
