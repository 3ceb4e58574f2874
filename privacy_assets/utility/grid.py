"""The common grid: every column in a few bins, which all tables share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.quasi_identifiers import Dimension, Scale, read_dimension
from privacy_assets.columns.time_units import align_times
from privacy_assets.errors import InvalidTableError
from privacy_assets.reidentification.released_values import TEXT_KINDS

N_BINS = 10
"""Bins of equal frequency; a value of more than one in this many rows has its own bin."""


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of one column, the last that of the missing value.

    ``cuts`` are the first value of each bin except the first, ascending; None if the values of the originals are
    ``listed``. Then the bin before the last is that of values that no original has, and the one before, unless values
    are ordered categories, that of rare ones. Of the ``natural`` share, that of people of the control whose value no
    original has, unseen values count as rare. ``uniform`` are the shares of a column that is uniform over its range if
    it was cut at quantiles, and else over its bins; the bin of missing values is one of them if an original has a
    missing value.
    """

    name: str
    kind: str
    cuts: NDArray[Any] | None
    listed: dict[Any, int]
    n_bins: int
    uniform: NDArray[np.float64]
    natural: float = 0.0

    @property
    def unseen(self) -> int | None:
        """The bin of values that no original has; None if values are cut, where the first and last bins have them."""
        return self.n_bins - 2 if self.cuts is None else None

    @property
    def is_ordered(self) -> bool:
        """Whether the bins follow an order."""
        return self.cuts is not None or self.kind == "category"

    def find(self, column: pd.Series[Any], words: str) -> NDArray[np.uint8]:
        """Return the bin of each row of a column of another table, whose values must be of the same kind."""
        dimension = _read(column)
        bin_of_code = np.append(self._bins_of(dimension.scale, words), self.n_bins - 1)
        self._keep_natural(bin_of_code, np.bincount(dimension.codes, minlength=len(bin_of_code)))
        return np.asarray(bin_of_code.astype(np.uint8)[dimension.codes])

    def share_unseen(self, codes: NDArray[np.uint8]) -> float:
        """Return the share of the rows in the bin of values that no original has, of those with a value."""
        n_known = int(np.count_nonzero(codes != self.n_bins - 1))
        return 0.0 if self.unseen is None else int(np.count_nonzero(codes == self.unseen)) / max(n_known, 1)

    def _keep_natural(self, bin_of_code: NDArray[np.int64], n_rows: NDArray[np.int64]) -> None:
        """Move unseen values to the bin of rare ones, the rarest first, up to their natural share; in place.

        Beyond that share, less is natural, and nothing at twice of it: a table where all values are new is not made of
        other people.
        """
        n_known = int(n_rows[:-1].sum())
        if not self.natural or not n_known or self.unseen is None:
            return
        unseen = np.flatnonzero(bin_of_code == self.unseen)
        share = float(n_rows[unseen].sum() / n_known)
        in_order = unseen[np.argsort(n_rows[unseen], kind="stable")]
        n_natural = n_known * min(share, max(2 * self.natural - share, 0.0))
        bin_of_code[in_order[np.cumsum(n_rows[in_order]) <= n_natural + 1e-6]] = self.unseen - 1

    def _bins_of(self, scale: Scale, words: str) -> NDArray[np.int64]:
        if scale.n_known == 0:
            return np.zeros(0, np.int64)
        is_text = {self.kind, scale.kind} <= {*TEXT_KINDS}
        if not is_text and self.kind not in (scale.kind, "missing"):
            raise InvalidTableError(
                f"Column {self.name!r} has {self.kind} values in the original and {scale.kind} values in the {words}. "
                "Expected the same kind. Convert the column; for a generalized release, pass its model."
            )
        if self.cuts is not None:
            cuts, known = align_times(self.cuts, scale.known)
            return np.searchsorted(cuts, known, side="right").astype(np.int64)
        return np.array([self.listed.get(value, self.unseen) for value in scale.known.tolist()], np.int64)


@dataclass(frozen=True, eq=False)
class Grid:
    """The bins of all columns."""

    columns: tuple[Bins, ...]

    @classmethod
    def of(cls, original: pd.DataFrame, control: pd.DataFrame) -> Grid:
        """Choose bins from the originals; the control shows how many values of other people no original has."""
        grid = cls(tuple(_bins_for(original[name]) for name in original.columns))
        of_control = grid.encode(control, "control")
        columns = zip(grid.columns, of_control, strict=True)
        # Other ordered categories are another type, and never natural.
        return cls(
            tuple(
                bins if bins.kind == "category" else replace(bins, natural=bins.share_unseen(codes))
                for bins, codes in columns
            )
        )

    @cached_property
    def n_bins(self) -> NDArray[np.int64]:
        """Bins of each column."""
        return np.array([bins.n_bins for bins in self.columns], np.int64)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [bins.name for bins in self.columns]

    def encode(self, table: pd.DataFrame, words: str) -> NDArray[np.uint8]:
        """Return the bins of a table, of shape (n_columns, n_rows); a column that it lacks is missing in every row.

        All columns with values of other kinds than the originals are reported.
        """
        codes = np.empty((len(self.columns), len(table)), np.uint8)
        problems = []
        for j, bins in enumerate(self.columns):
            if bins.name not in table.columns:
                codes[j] = bins.n_bins - 1
                continue
            try:
                codes[j] = bins.find(table[bins.name], words)
            except InvalidTableError as error:
                problems.append(str(error))
        if problems:
            raise InvalidTableError(f"{' '.join(problems)} Nothing was assessed.")
        return codes


def _read(column: pd.Series[Any]) -> Dimension:
    """Read a column; bytes are not text, although their codes are."""
    dimension = read_dimension(column)
    has_bytes = any(isinstance(value, bytes) for value in column.dropna().head(1))
    return replace(dimension, scale=replace(dimension.scale, kind="bytes")) if has_bytes else dimension


def _bins_for(column: pd.Series[Any]) -> Bins:
    dimension = _read(column)
    scale = dimension.scale
    counts = np.bincount(dimension.codes, minlength=scale.n_known + 1)
    known = counts[: scale.n_known]
    listed: dict[Any, int]
    cuts: NDArray[Any] | None
    if scale.is_ordered:
        begins = _first_codes(known)
        bin_of_code = np.searchsorted(begins, np.arange(scale.n_known), side="right")
        n_bins, listed = len(begins) + 2, {}
        cuts = scale.known[begins]
        if scale.kind == "category":
            # Their order is that of the originals alone, so other categories cannot be placed in it.
            listed, cuts, n_bins = _listed(column, scale, bin_of_code), None, n_bins + 1
    else:
        order = np.argsort(-known, kind="stable")[: N_BINS - 1 if len(known) > N_BINS else N_BINS]
        bin_of_code = np.full(len(known), len(order))
        bin_of_code[order] = np.arange(len(order))
        listed = dict(zip(scale.known.tolist(), bin_of_code.tolist(), strict=True))
        cuts, n_bins, begins = None, len(order) + 3, np.zeros(0, np.int64)
    return Bins(scale.name, scale.kind, cuts, listed, n_bins, _uniform(scale, n_bins, begins))


def _uniform(scale: Scale, n_bins: int, begins: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the shares of a column of which only the bins are known, or only the range if it was cut at quantiles.

    Bins of equal frequency are filled uniformly by every table with the right quantiles, so they cannot be a zero.
    """
    shares = np.ones(n_bins)
    n_known = n_bins - 1
    if scale.is_ordered and scale.n_known > N_BINS:
        ends = scale.positions[np.concatenate([[0], begins, [scale.n_known - 1]])]
        shares[:n_known] = 0
        shares[: len(begins) + 1] = np.diff(ends) * (len(begins) + 1)
    if not scale.is_ordered:
        shares[-2] = 0
    shares[-1] = scale.has_missing
    return np.asarray(shares / shares.sum())


def _first_codes(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first code of each bin except the first."""
    n_known, n_rows = len(counts), int(counts.sum())
    if n_known <= N_BINS:
        return np.arange(1, max(n_known, 1))
    ranks = np.arange(1, N_BINS) * n_rows // N_BINS
    at_ranks = np.searchsorted(np.cumsum(counts), ranks, side="right")
    frequent = np.flatnonzero(counts * N_BINS > n_rows)
    begins = np.unique(np.concatenate([at_ranks, frequent, frequent + 1]))
    return begins[(begins > 0) & (begins < n_known)]


def _listed(column: pd.Series[Any], scale: Scale, bin_of_code: NDArray[np.int64]) -> dict[Any, int]:
    """Return the bin of each ordered category; one without originals is in the bin of the next lower one with any."""
    listed = dict(zip(scale.known.tolist(), bin_of_code.tolist(), strict=True))
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return listed
    last = 0
    placed = {}
    for text in map(str, column.dtype.categories):
        last = placed[text] = listed.get(text, last)
    return placed
