"""Gaussian copula: empirical margins, and the dependence of a multivariate normal distribution between them.

Every value of a column has a *cell*: an interval of [0, 1] whose width is the frequency of the value. Numbers,
datetimes, ordered categories and booleans are in their own order; text and unordered categories are ordered by
association with the other columns (`order_by_association`). A missing value is one more value, in the last cell. A
record becomes a random position inside each of its cells, the positions become normal scores, and only their
correlation matrix is learned of the dependence. Sampling reverses these steps. Random positions blur the dependence
twice, in learning and in sampling, so the matrix is calibrated until drawn records have the correlation of real ones.

What it may reveal: text, categories, booleans, numeric columns of few values and numbers that many people share are
reproduced as *observed values*. Text and categories are reproduced only if `min_atom` people share them; rarer ones are
first redrawn from the others of their column. Numbers that fewer people share are drawn evenly from intervals that hold
enough people, but the ends of such intervals are observed values, including the smallest and the largest number. Whole
records are reproduced only by coincidence, because only pairwise dependence is learned.

How many people are enough grows with the square root of their number, like the bins of a histogram [3]_. A margin that
reproduces the frequency of each value contains a share of 1 / m of each of the m people who hold it. Combined with
other columns that singles these people out, more often than people whom the synthesizer never saw; the chance of the
control comparison shrinks with the square root, so a fixed number would be enough for small tables only.

References
----------
.. [1] R. B. Nelsen (2006), "An Introduction to Copulas", 2nd ed., section 2.9, doi:10.1007/0-387-28678-0.
.. [2] N. Patki, R. Wedge, K. Veeramachaneni (2016), "The Synthetic Data Vault", DSAA, section III,
   doi:10.1109/DSAA.2016.49. Their margins are parametric; ours are empirical.
.. [3] The rule is that of common statistical software; the source of a histogram's best bins is D. Freedman,
   P. Diaconis (1981), "On the histogram as a density estimator: L2 theory", doi:10.1007/BF01025868.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.disclosure.rare_values import RareColumn, people_of_values
from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import is_number
from privacy_assets.synthesis.number_lines import (
    NumberLine,
    as_numbers,
    coarsest_step,
    interval_knots,
    rare_runs,
    restore_numbers,
    shares_of_people,
)
from privacy_assets.synthesis.redraw import MIN_ATOM, redraw_rare_values
from privacy_assets.synthesis.synthesize import REDRAWN_KINDS, Kind, check_kinds, check_setting

DEFAULT_SMOOTHING: Final = 1.75
MIN_EIGENVALUE: Final = 1e-6
MAX_CORRELATION: Final = 0.999
CALIBRATION_ROUNDS: Final = 8
CALIBRATION_RECORDS: Final = 20_000


class GaussianCopula:
    """Synthesizer with empirical margins and normal dependence; see the module for what it may reveal.

    Parameters
    ----------
    min_atom : int
        Text and categories shared by fewer people are redrawn (`redraw_rare_values`); 1 reproduces all of them. Numbers
        and datetimes shared by fewer people are interpolated.
    min_interval : int
        Smallest number of people in an interval from which rare numbers are drawn evenly (fewer between two atoms).
        Intervals from one record to the next would follow clusters of real numbers so closely that many would be
        reproduced; on adult the control comparison detects them.
    max_discrete : int
        A numeric column of at most this many distinct values, shared by enough people on average, is reproduced value
        by value (codes, scores, counts).
    smoothing : float
        Enough are at least this many times the square root of the number of people: who must share a number for it to
        be reproduced, be in an interval, share the values of a discrete column on average, and share a category for it
        to be ordered by its own association. 0 or more; 0 leaves `min_atom` and `min_interval` alone.

    Notes
    -----
    Frequencies of text and categories are not smoothed, because they have no neighbors. Columns with many more such
    values than the square root of the number of people remain detectable by the control comparison.
    """

    name = "gaussian_copula"

    def __init__(
        self,
        *,
        min_atom: int = MIN_ATOM,
        min_interval: int = 20,
        max_discrete: int = 100,
        smoothing: float = DEFAULT_SMOOTHING,
    ) -> None:
        self._min_atom = check_setting(self.name, "min_atom", min_atom, at_least=1)
        self._min_interval = check_setting(self.name, "min_interval", min_interval, at_least=1)
        self._max_discrete = check_setting(self.name, "max_discrete", max_discrete, at_least=0)
        if not is_number(smoothing, 0, inf):
            raise InvalidSettingError(
                f"`smoothing` of {self.name!r} is {smoothing!r}; expected a finite number, 0 or more."
            )
        self._smoothing = float(smoothing)
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
            "smoothing": self._smoothing,
        }

    def fit(self, table: pd.DataFrame, *, seed: int, person: Sequence[Any] | None = None) -> GaussianCopula:
        """Learn the margins and the correlation of the normal scores; cost is linear in rows, quadratic in columns.

        `person` is the person of each row, so that somebody with many rows counts once; `redrawn` counts the redrawn
        values.
        """
        kinds = check_kinds(table, self.name)
        self._dtypes = table.dtypes
        columns = [name for name, kind in kinds.items() if kind in REDRAWN_KINDS]
        table, self.redrawn = redraw_rare_values(
            table, columns, min_atom=self._min_atom, seed=seed, person=person, synthesizer=self.name
        )
        table = _without_arrow_moments(table, kinds)
        random = np.random.default_rng(seed)
        whose = None if person is None else pd.factorize(np.asarray(person))[0]
        n_people = len(table) if whose is None else len(pd.unique(whose))
        smoothed = ceil(self._smoothing * sqrt(n_people))
        enough = _Enough(max(self._min_atom, smoothed), max(self._min_interval, smoothed))
        cells, margins = self._learn_margins(table, kinds, enough, whose)
        within = random.random(table.shape)
        scores = np.column_stack(
            [m.scores(c, within[:, i]) for i, (c, m) in enumerate(zip(cells, margins, strict=True))]
        )
        for i, kind in enumerate(kinds.values()):
            if margins[i].n_values > 2 and not _has_own_order(table.dtypes.iloc[i], kind):
                is_shared = people_of_values(cells[i], margins[i].n_cells, whose)[: margins[i].n_values] >= enough.atom
                order = order_by_association(cells[i], np.delete(scores, i, axis=1), is_shared)
                cells[i], margins[i] = _reorder(cells[i], margins[i], order)
                scores[:, i] = margins[i].scores(cells[i], within[:, i])
        self._names, self._margins = table.columns, tuple(margins)
        self._root = np.linalg.cholesky(_calibrate(_correlation(scores), self._margins, random))
        return self

    def sample(self, n_records: int, *, seed: int) -> pd.DataFrame:
        """Draw normal scores and read each margin at their positions."""
        from scipy.special import ndtr

        if not self._margins:
            raise InvalidSettingError(f"{self.name!r} cannot sample before it is fitted. Call `fit` first.")
        random = np.random.default_rng(seed)
        positions = ndtr(random.standard_normal((n_records, len(self._margins))) @ self._root.T)
        columns = [
            _with_dtype(margin.read(positions[:, i]), self._dtypes.iloc[i]) for i, margin in enumerate(self._margins)
        ]
        return pd.DataFrame(dict(zip(self._names, columns, strict=True)), columns=self._names)

    def _learn_margins(
        self, table: pd.DataFrame, kinds: Mapping[str, Kind], enough: _Enough, whose: NDArray[np.intp] | None
    ) -> tuple[list[NDArray[np.intp]], list[_Margin]]:
        learned = [
            self._learn_numbers(column, kind, enough, whose)
            if kind in {"integer", "float", "datetime"}
            else _learn_values(column)
            for (_, column), kind in zip(table.reset_index(drop=True).items(), kinds.values(), strict=True)
        ]
        return [cells for cells, _ in learned], [margin for _, margin in learned]

    def _learn_numbers(
        self, column: pd.Series, kind: Kind, enough: _Enough, whose: NDArray[np.intp] | None
    ) -> tuple[NDArray[np.intp], _Margin]:
        present = np.flatnonzero(column.notna().to_numpy())
        numbers = as_numbers(column.iloc[present], kind)
        distinct, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        whose = None if whose is None else whose[present]
        people, shares = people_of_values(inverse, len(distinct), whose), shares_of_people(inverse, whose)
        is_discrete = len(distinct) <= min(self._max_discrete, shares.sum() / enough.atom)
        cells = np.full(len(column), len(distinct), dtype=np.intp)
        cells[present] = inverse
        runs = rare_runs(np.logical_and(not is_discrete, people < enough.atom))
        knots = interval_knots(runs, shares, enough.interval)
        line = NumberLine(distinct, runs, knots, kind, *coarsest_step(distinct, column, kind))
        return cells, _margin(column, cells, present[first], line)


class _Enough(NamedTuple):
    """How many people must share a value for it to be learned on its own, and how many must be in an interval."""

    atom: int
    interval: int


@dataclass(frozen=True)
class _Margin:
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
        return len(self.upper)

    @property
    def lower(self) -> NDArray[np.float64]:
        return np.concatenate([[0.0], self.upper[:-1]])

    def scores(self, cells: NDArray[np.intp], within: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the normal scores of records at `within` (0 to 1) of the width of their `cells`."""
        from scipy.special import ndtri

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
    cells: NDArray[np.intp], others: NDArray[np.float64], is_shared: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Order the values of a column so that its correlation with the other columns is strongest.

    Parameters
    ----------
    cells : ndarray of shape (n_rows,), dtype=np.intp
        Value of each record; `n_values` stands for missing.
    others : ndarray of shape (n_rows, n_columns - 1), dtype=np.float64
        Normal scores of the other columns.
    is_shared : ndarray of shape (n_values,), dtype=np.bool_
        Whether enough people share the value. The others are treated as average, because their position would reveal
        something about their people.

    Returns
    -------
    ndarray of shape (n_values,), dtype=np.intp
        Values by their mean scores' first principal component, weighted by frequency; ties keep their order.
    """
    n_values = len(is_shared)
    counts = np.bincount(cells, minlength=n_values)[:n_values]
    sums = np.zeros((n_values, max(others.shape[1], 1)))
    for position, column in enumerate(others.T):
        sums[:, position] = np.bincount(cells, column, minlength=n_values)[:n_values]
    means = np.where(is_shared[:, None], sums / np.maximum(counts, 1)[:, None], 0.0)
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
    column: pd.Series, cells: NDArray[np.intp], representatives: NDArray[np.intp], line: NumberLine | None
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
    from scipy.special import ndtr

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
