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

    ``cuts`` are the first value of each bin except the first, ascending; None if values are ``listed``; the others
    share the bin before the last. ``uniform`` are the shares of a column that is uniform over its range if it was cut
    at quantiles, and else over its bins; the bin of missing values is one of them if an original has a missing value.
    """

    name: str
    kind: str
    cuts: NDArray[Any] | None
    listed: dict[Any, int]
    n_bins: int
    uniform: NDArray[np.float64]

    @property
    def is_ordered(self) -> bool:
        """Whether the bins follow an order."""
        return self.cuts is not None or self.kind == "category"

    def find(self, column: pd.Series[Any], words: str) -> NDArray[np.uint8]:
        """Return the bin of each row of a column of another table, whose values must be of the same kind."""
        dimension = _read(column)
        scale, missing = dimension.scale, self.n_bins - 1
        bin_of_code = np.append(self._bins_of(scale, words), missing).astype(np.uint8)
        return np.asarray(bin_of_code[dimension.codes])

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
        other = self.n_bins - 2
        return np.array([self.listed.get(value, other) for value in scale.known.tolist()], np.int64)


@dataclass(frozen=True, eq=False)
class Grid:
    """The bins of all columns."""

    columns: tuple[Bins, ...]

    @classmethod
    def of(cls, original: pd.DataFrame) -> Grid:
        """Choose bins from the originals."""
        return cls(tuple(_bins_for(original[name]) for name in original.columns))

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
        values = scale.known.tolist()
        listed = {values[code]: i for i, code in enumerate(order.tolist())}
        cuts, n_bins, begins = None, len(order) + 2, np.zeros(0, np.int64)
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
