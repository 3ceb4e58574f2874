"""Gaussian copula: empirical margins, and the dependence of a multivariate normal distribution between them.

Every value of a column has a *cell*: an interval of [0, 1] whose width is the frequency of the value. Numbers,
datetimes, ordered categories and booleans are in their own order; text and unordered categories are ordered by
association with the other columns (`order_by_association`). A missing value is one more value, in the last cell. A
record becomes a random position inside each of its cells, the positions become normal scores, and only their
correlation matrix is learned of the dependence. Sampling reverses these steps. Random positions blur the dependence
twice, in learning and in sampling, so the matrix is calibrated until drawn records have the correlation of real ones.

What it may reveal: text, categories, booleans, numeric columns of few values and numbers that several records share are
reproduced as *observed values*. Text and categories are reproduced only if `min_atom` people share them; rarer ones are
first redrawn from the others of their column. Numbers of fewer than `min_atom` records are drawn evenly from intervals
of `min_interval` records, but the ends of such intervals are observed values, including the smallest and the largest
number. Whole records are reproduced only by coincidence, because only pairwise dependence is learned.

References
----------
.. [1] R. B. Nelsen (2006), "An Introduction to Copulas", 2nd ed., section 2.9, doi:10.1007/0-387-28678-0.
.. [2] N. Patki, R. Wedge, K. Veeramachaneni (2016), "The Synthetic Data Vault", DSAA, section III,
   doi:10.1109/DSAA.2016.49. Their margins are parametric; ours are empirical.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from privacy_assets.columns.coding import MAX_DECIMALS
from privacy_assets.disclosure.rare_values import RareColumn
from privacy_assets.errors import InvalidSettingError
from privacy_assets.synthesis.redraw import MIN_ATOM, redraw_rare_values
from privacy_assets.synthesis.synthesize import REDRAWN_KINDS, Kind, check_kinds, check_setting

MIN_EIGENVALUE: Final = 1e-6
MAX_CORRELATION: Final = 0.999
CALIBRATION_ROUNDS: Final = 8
CALIBRATION_RECORDS: Final = 20_000
UNITS_PER_SECOND: Final[Mapping[str, int]] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class GaussianCopula:
    """Synthesizer with empirical margins and normal dependence; see the module for what it may reveal.

    Parameters
    ----------
    min_atom : int
        A number or datetime that at least this many records share is reproduced unchanged; rarer ones are interpolated.
        Text and categories shared by fewer people are redrawn (`redraw_rare_values`); 1 reproduces all of them.
    min_interval : int
        Smallest number of records in an interval from which rare numbers are drawn evenly (fewer between two atoms).
        Intervals from one record to the next would follow clusters of real numbers so closely that many would be
        reproduced; on adult the control comparison detects them.
    max_discrete : int
        A numeric column of at most this many distinct values, with `min_atom` records each on average, is reproduced
        value by value (codes, scores, counts).
    """

    name = "gaussian_copula"

    def __init__(self, *, min_atom: int = MIN_ATOM, min_interval: int = 20, max_discrete: int = 100) -> None:
        self._min_atom = check_setting(self.name, "min_atom", min_atom, at_least=1)
        self._min_interval = check_setting(self.name, "min_interval", min_interval, at_least=1)
        self._max_discrete = check_setting(self.name, "max_discrete", max_discrete, at_least=0)
        self._names: pd.Index[Any] = pd.Index([])
        self._dtypes: pd.Series[Any] = pd.Series([], dtype=object)
        self._margins: tuple[_Margin, ...] = ()
        self._root: NDArray[Any] = np.empty((0, 0))
        self.redrawn: Mapping[str, RareColumn] = {}

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings in use."""
        return {
            "min_atom": self._min_atom,
            "min_interval": self._min_interval,
            "max_discrete": self._max_discrete,
        }

    def fit(self, table: pd.DataFrame, *, seed: int, person: Sequence[Any] | None = None) -> GaussianCopula:
        """Learn the margins and the correlation of the normal scores; cost is linear in rows, quadratic in columns.

        `person` is the person of each row, for `min_atom`; `redrawn` counts the redrawn values.
        """
        kinds = check_kinds(table, self.name)
        self._dtypes = table.dtypes
        columns = [name for name, kind in kinds.items() if kind in REDRAWN_KINDS]
        table, self.redrawn = redraw_rare_values(
            table, columns, min_atom=self._min_atom, seed=seed, person=person, synthesizer=self.name
        )
        table = _without_arrow_moments(table, kinds)
        random = np.random.default_rng(seed)
        cells, margins = self._learn_margins(table, kinds)
        within = random.random(table.shape)
        scores = np.column_stack(
            [m.scores(c, within[:, i]) for i, (c, m) in enumerate(zip(cells, margins, strict=True))]
        )
        for i, kind in enumerate(kinds.values()):
            if margins[i].n_values > 2 and not _has_own_order(table.dtypes.iloc[i], kind):
                order = order_by_association(
                    cells[i], np.delete(scores, i, axis=1), margins[i].n_values, self._min_atom
                )
                cells[i], margins[i] = _reorder(cells[i], margins[i], order)
                scores[:, i] = margins[i].scores(cells[i], within[:, i])
        self._names, self._margins = table.columns, tuple(margins)
        self._root = np.linalg.cholesky(_calibrate(_correlation(scores), self._margins, random))
        return self

    def sample(self, n_records: int, *, seed: int) -> pd.DataFrame:
        """Draw normal scores and read each margin at their positions."""
        if not self._margins:
            raise InvalidSettingError(f"{self.name!r} cannot sample before it is fitted. Call `fit` first.")
        random = np.random.default_rng(seed)
        positions = ndtr(random.standard_normal((n_records, len(self._margins))) @ self._root.T)
        columns = [
            _with_dtype(margin.read(positions[:, i]), self._dtypes.iloc[i]) for i, margin in enumerate(self._margins)
        ]
        return pd.DataFrame(dict(zip(self._names, columns, strict=True)), columns=self._names)

    def _learn_margins(
        self, table: pd.DataFrame, kinds: Mapping[str, Kind]
    ) -> tuple[list[NDArray[np.intp]], list[_Margin]]:
        learned = [
            self._learn_numbers(column, kind) if kind in {"integer", "float", "datetime"} else _learn_values(column)
            for (_, column), kind in zip(table.reset_index(drop=True).items(), kinds.values(), strict=True)
        ]
        return [cells for cells, _ in learned], [margin for _, margin in learned]

    def _learn_numbers(self, column: pd.Series, kind: Kind) -> tuple[NDArray[np.intp], _Margin]:
        present = np.flatnonzero(column.notna().to_numpy())
        numbers = _numbers(column.iloc[present], kind)
        distinct, first, inverse, counts = np.unique(
            numbers, return_index=True, return_inverse=True, return_counts=True
        )
        is_discrete = len(distinct) <= min(self._max_discrete, len(numbers) / self._min_atom)
        cells = np.full(len(column), len(distinct), dtype=np.intp)
        cells[present] = inverse
        runs = _runs(np.logical_and(not is_discrete, counts < self._min_atom))
        line = _NumberLine(
            distinct, runs, _knots(runs, counts, self._min_interval), kind, _step(distinct, column, kind)
        )
        return cells, _margin(column, cells, present[first], line)


@dataclass(frozen=True)
class _NumberLine:
    """Distinct numbers of a column in ascending order, and which of them are interpolated."""

    numbers: NDArray[Any]
    runs: NDArray[np.intp]
    """Run of neighboring rare numbers of each number; -1 for atoms, which are reproduced unchanged."""
    knots: NDArray[np.intp]
    """Rare numbers between which the others are interpolated, including the first and the last of each run."""
    kind: Kind
    step: int
    """Decimals of a float column; for whole numbers and datetimes, the unit all are multiples of."""

    def between(self, low: NDArray[np.intp], high: NDArray[np.intp], weight: NDArray[np.float64]) -> NDArray[Any]:
        """Interpolate from number `low` to number `high`, at the column's own precision and within its range."""
        start, end = self.numbers[low], self.numbers[high]
        if self.kind == "float":
            mixed = start * (1 - weight) + end * weight
            rounded = np.round(mixed, self.step) if self.step <= MAX_DECIMALS else mixed
            return np.clip(rounded, self.numbers[0], self.numbers[-1])
        # Offsets from the lower knot stay small, so that large whole numbers keep their last digits. They are unsigned,
        # because int64 cannot represent its own range; a weight below 1 keeps a rounded offset within uint64.
        unsigned, step = np.uint64, np.uint64(self.step)
        lowest = start.astype(unsigned)
        span = (end.astype(unsigned) - lowest) // step
        n_steps = np.minimum(np.rint(span.astype(np.float64) * np.minimum(weight, 1 - 2**-53)).astype(unsigned), span)
        between: NDArray[Any] = (lowest + n_steps * step).astype(start.dtype)
        return between


@dataclass(frozen=True)
class _Margin:
    """Empirical distribution of one column as cells of [0, 1]."""

    upper: NDArray[np.float64]
    """Upper end of each cell."""
    observed: pd.Series
    """One observed value per cell, of the column's own dtype; the last may be missing."""
    n_values: int
    """Number of cells other than the missing one."""
    line: _NumberLine | None

    @property
    def n_cells(self) -> int:
        return len(self.upper)

    @property
    def lower(self) -> NDArray[np.float64]:
        return np.concatenate([[0.0], self.upper[:-1]])

    def scores(self, cells: NDArray[np.intp], within: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the normal scores of records at `within` (0 to 1) of the width of their `cells`."""
        if self.n_cells == 1:  # a constant column has no dependence; random scores would only add noise
            return np.zeros(len(cells))
        lower = self.lower[cells]
        half = 0.5 / (len(cells) + 1)  # kept off 0 and 1, where scores are infinite
        scores: NDArray[np.float64] = ndtri(np.clip(lower + within * (self.upper[cells] - lower), half, 1 - half))
        return scores

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
                values.iloc[moves] = _restore(moved, self.observed, self.line.kind).array
        return values

    def _movable(
        self, cells: NDArray[np.intp], positions: NDArray[np.float64], line: _NumberLine
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Find the records whose position is between two knots of one run; return them and these knots."""
        middle = (self.lower + self.upper) / 2
        after = np.searchsorted(middle[line.knots], positions, side="right")
        runs = np.append(line.runs, -1)[cells]  # the missing cell is in no run
        inside = np.flatnonzero((runs >= 0) & (after > 0) & (after < len(line.knots)))
        low, high = line.knots[after[inside] - 1], line.knots[after[inside]]
        same = (line.runs[low] == runs[inside]) & (line.runs[high] == runs[inside])
        return inside[same], low[same], high[same]


def positive_definite(correlation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix with eigenvalues raised to `MIN_EIGENVALUE`, scaled back to a unit diagonal."""
    eigenvalues, vectors = np.linalg.eigh(correlation)
    if eigenvalues.min() >= MIN_EIGENVALUE:
        return correlation
    raised = (vectors * np.maximum(eigenvalues, MIN_EIGENVALUE)) @ vectors.T
    scale = np.sqrt(np.diag(raised))
    repaired: NDArray[np.float64] = raised / np.outer(scale, scale)
    return repaired


def order_by_association(
    cells: NDArray[np.intp], others: NDArray[np.float64], n_values: int, min_count: int
) -> NDArray[np.intp]:
    """Order the values of a column so that its correlation with the other columns is strongest.

    Parameters
    ----------
    cells : ndarray of shape (n_rows,), dtype=np.intp
        Value of each record; `n_values` stands for missing.
    others : ndarray of shape (n_rows, n_columns - 1), dtype=np.float64
        Normal scores of the other columns.
    n_values : int
        Number of distinct values, without the missing one.
    min_count : int
        Values of fewer records are treated as average, because their position would reveal something about these
        records.

    Returns
    -------
    ndarray of shape (n_values,), dtype=np.intp
        Values by their mean scores' first principal component, weighted by frequency; ties keep their order.
    """
    counts = np.bincount(cells, minlength=n_values)[:n_values]
    sums = np.zeros((n_values, max(others.shape[1], 1)))
    for position, column in enumerate(others.T):
        sums[:, position] = np.bincount(cells, column, minlength=n_values)[:n_values]
    means = np.where(counts[:, None] >= min_count, sums / np.maximum(counts, 1)[:, None], 0.0)
    _, _, components = np.linalg.svd(np.sqrt(counts)[:, None] * means, full_matrices=False)
    return np.argsort(means @ components[0], kind="stable")


def _correlation(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    centered = scores - scores.mean(axis=0)
    norms = np.sqrt((centered**2).sum(axis=0))
    scaled = centered / np.where(norms > 0, norms, 1.0)
    correlation: NDArray[np.float64] = scaled.T @ scaled
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _margin(
    column: pd.Series, cells: NDArray[np.intp], representatives: NDArray[np.intp], line: _NumberLine | None
) -> _Margin:
    """Build the margin of `column` from the cell of each record and one row per cell (missing excepted)."""
    missing = np.flatnonzero(cells == len(representatives))[:1]
    rows = np.concatenate([representatives, missing])
    shares = np.bincount(cells, minlength=len(rows)) / len(cells)
    upper = np.cumsum(shares)
    upper[-1] = 1.0
    return _Margin(upper, column.iloc[rows].reset_index(drop=True), len(representatives), line)


def _learn_values(column: pd.Series) -> tuple[NDArray[np.intp], _Margin]:
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


def _has_own_order(dtype: object, kind: Kind) -> bool:
    return kind not in {"text", "category"} or (isinstance(dtype, pd.CategoricalDtype) and bool(dtype.ordered))


def _reorder(cells: NDArray[np.intp], margin: _Margin, order: NDArray[np.intp]) -> tuple[NDArray[np.intp], _Margin]:
    places = np.concatenate([order, np.arange(len(order), margin.n_cells)])
    rank = np.empty(margin.n_cells, dtype=np.intp)
    rank[places] = np.arange(margin.n_cells)
    upper = np.cumsum((margin.upper - margin.lower)[places])
    upper[-1] = 1.0
    return rank[cells], replace(margin, upper=upper, observed=margin.observed.iloc[places].reset_index(drop=True))


def _calibrate(
    target: NDArray[np.float64], margins: Sequence[_Margin], random: np.random.Generator
) -> NDArray[np.float64]:
    """Find the correlation of normal scores for which drawn records, blurred as real ones were, show `target`.

    On adult it raises the share of preserved pairs from 0.938 to 0.947; two columns cut in halves need the eight
    rounds.
    """
    correlation = positive_definite(target)
    for _ in range(CALIBRATION_ROUNDS if len(margins) > 1 else 0):
        normal = random.standard_normal((CALIBRATION_RECORDS, len(margins)))
        positions = ndtr(normal @ np.linalg.cholesky(correlation).T)
        within = random.random(positions.shape)
        shown = np.column_stack([m.scores(m.cells_at(positions[:, i]), within[:, i]) for i, m in enumerate(margins)])
        moved = np.clip(correlation + target - _correlation(shown), -MAX_CORRELATION, MAX_CORRELATION)
        np.fill_diagonal(moved, 1.0)
        correlation = positive_definite(moved)
    return correlation


def _numbers(present: pd.Series, kind: Kind) -> NDArray[Any]:
    """Return the values as sortable numbers: datetimes as wall-clock counts of their unit."""
    if kind == "datetime":
        naive = present.dt.tz_localize(None) if isinstance(present.dtype, pd.DatetimeTZDtype) else present
        return naive.to_numpy().view(np.int64)
    if kind == "float":
        return present.to_numpy(dtype=np.float64)
    return present.to_numpy(dtype=np.uint64 if str(present.dtype).lower() == "uint64" else np.int64)


def _step(distinct: NDArray[Any], column: pd.Series, kind: Kind) -> int:
    """Return the coarsest lossless precision, for `_NumberLine.step`."""
    if kind == "float":
        return next((d for d in range(MAX_DECIMALS + 1) if np.array_equal(np.round(distinct, d), distinct)), 99)
    steps = [10**power for power in range(18, -1, -1)]
    if kind == "datetime":
        second = UNITS_PER_SECOND[column.dt.unit]
        steps = [86_400 * second, 3_600 * second, 60 * second, *(step for step in steps if step <= second)]
    # 1 divides every number, so there is always a next step.
    coarsest: int = next(step for step in steps if not np.any(distinct % distinct.dtype.type(step)))
    return coarsest


def _runs(is_rare: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the number of the run of neighboring rare numbers each is in, -1 for the others."""
    starts = is_rare & ~np.concatenate([[False], is_rare[:-1]])
    return np.where(is_rare, np.cumsum(starts) - 1, -1)


def _knots(runs: NDArray[np.intp], counts: NDArray[np.intp], min_records: int) -> NDArray[np.intp]:
    """Choose the ends of each run, and inside it every number that completes an interval of `min_records`."""
    before = np.concatenate([[-1], runs[:-1]])
    after = np.concatenate([runs[1:], [-1]])
    is_end = (runs >= 0) & ((runs != before) | (runs != after))[: len(runs)]
    interval = np.cumsum(counts) // min_records
    completes = interval != np.concatenate([[0], interval[:-1]])
    return np.flatnonzero((runs >= 0) & (is_end | completes))


def _restore(numbers: NDArray[Any], like: pd.Series, kind: Kind) -> pd.Series:
    """Turn numbers back into values of the dtype of `like`."""
    if kind != "datetime":
        return pd.Series(numbers).astype(like.dtype)
    naive = pd.Series(numbers.astype(f"datetime64[{like.dt.unit}]"))
    if not _is_aware(like):
        return naive
    first_of_two = np.ones(len(naive), dtype=bool)
    aware = naive.dt.tz_localize(like.dt.tz, ambiguous=first_of_two, nonexistent="shift_forward")
    return aware.clip(like.min(), like.max())


def _without_arrow_moments(table: pd.DataFrame, kinds: Mapping[str, Kind]) -> pd.DataFrame:
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


def _with_dtype(values: pd.Series, dtype: Any) -> pd.Series:
    """Return the values in the dtype of the column learned from."""
    if values.dtype == dtype:
        return values
    stored = dtype.pyarrow_dtype
    if pa.types.is_date(stored):  # dates take timestamps of whole days only through Arrow
        values = values.astype(pd.ArrowDtype(pa.timestamp(values.dt.unit)))
    return values.astype(dtype)


def _is_aware(column: pd.Series) -> bool:
    return isinstance(column.dtype, pd.DatetimeTZDtype)
