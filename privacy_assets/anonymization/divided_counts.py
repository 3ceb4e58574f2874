"""Counts of the rows of large classes by bin, which the tasks of an engine add up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.anonymization.divided_leaves import SortIntoLeaves
from privacy_assets.anonymization.divided_people import Places, places_of
from privacy_assets.anonymization.kernels.mondrian_cuts import Box
from privacy_assets.anonymization.kernels.mondrian_divided import Listed, add_counts
from privacy_assets.engine.protocol import Engine

BINS_PER_CHUNK = 1 << 14
COUNTS = pa.schema([("chunk", pa.int64()), ("counts", pa.binary())])
"""Counts of the bins of a chunk, without empty bins: their positions in it, and then their counts."""
MOST_CELLS = 1 << 23
"""A task counts bins by sensitive value for as many classes at a time as give about this many counts, of 8 bytes."""


@dataclass(frozen=True)
class CountBins:
    """Counts the rows of each bin of some leaves."""

    sort: SortIntoLeaves
    boxes: dict[int, Box]
    first_bin: NDArray[np.int64]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the counts of the rows of one task, by chunk of bins."""
        histograms = np.zeros((len(self.boxes), int(self.first_bin[-1])), np.int64)
        shift = np.stack([box.shift for box in self.boxes.values()])
        offset = self.first_bin[:-1] - (np.stack([box.base for box in self.boxes.values()]) >> shift)
        place = np.full(len(self.sort.tree.dimension) + 1, -1, np.int64)
        place[list(self.boxes)] = np.arange(len(self.boxes))
        for _, codes, leaf in self.sort.leaves(batches):
            add_counts(codes, leaf, place, offset, shift, histograms)
        yield _in_chunks(histograms.ravel())


@dataclass(frozen=True)
class CountCodes:
    """Counts the rows of each code of one leaf."""

    sort: SortIntoLeaves
    leaf: int
    first: NDArray[np.int64]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the counts of the rows of one task, by chunk of codes."""
        n_rows = np.zeros(int(self.first[-1]), np.int64)
        for _, codes, leaf in self.sort.leaves(batches):
            own = codes[leaf == self.leaf]
            for j, n in enumerate(np.diff(self.first)):
                if n > 0:
                    n_rows[self.first[j] : self.first[j + 1]] += np.bincount(own[:, j], minlength=n)
        yield _in_chunks(n_rows)


@dataclass(frozen=True)
class _CountValues:
    """Counts the rows of some leaves by listed bin and sensitive value."""

    sort: SortIntoLeaves
    places: Mapping[int, tuple[Places, ...]]
    first_cell: Mapping[int, int]
    n_cells: int
    n_columns: int
    n_values: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts = np.zeros(self.n_cells, np.int64)
        for table, order, codes, leaf in self.sort(batches):
            values = [table.column(f"v{v}").to_numpy()[order].astype(np.int64) for v in range(self.n_columns)]
            for own, dimensions in self.places.items():
                begin, stop = np.searchsorted(leaf, [own, own + 1])
                for each in dimensions if begin < stop else ():
                    first = int(each.places.min())
                    row = (each.of(codes[begin:stop, each.dimension].astype(np.int64)) - first) * self.n_values
                    start, n_cells = self.first_cell[own] + first * self.n_values, len(each.bins) * self.n_values
                    for of_column in values:
                        counts[start : start + n_cells] += np.bincount(row + of_column[begin:stop], minlength=n_cells)
        yield _in_chunks(counts)


@dataclass(frozen=True)
class _AddCounts:
    """Adds the counts of the bins of a chunk."""

    def __call__(self, table: pa.Table) -> pa.Table:
        total = np.zeros(BINS_PER_CHUNK, np.int64)
        for value in table.column("counts"):
            places, counts = _read_counts(value.as_buffer())
            total[places] += counts
        return pa.table([table.column("chunk")[:1], [_written_counts(total)]], schema=COUNTS)


def _in_chunks(counts: NDArray[np.int64]) -> pa.RecordBatch:
    """Write counts that are not zero, by chunk: Spark receives one row for thousands of bins, not one for each."""
    chunks = np.unique(np.flatnonzero(counts) // BINS_PER_CHUNK)
    blobs = [_written_counts(counts[chunk * BINS_PER_CHUNK : (chunk + 1) * BINS_PER_CHUNK]) for chunk in chunks]
    return pa.record_batch([pa.array(chunks, pa.int64()), pa.array(blobs, pa.binary())], schema=COUNTS)


def _written_counts(counts: NDArray[np.int64]) -> bytes:
    places = np.flatnonzero(counts)
    return np.concatenate([places, counts[places]]).tobytes()


def _read_counts(blob: pa.Buffer) -> NDArray[np.int64]:
    """Return positions and counts, of shape (2, n)."""
    return np.frombuffer(blob, np.int64).reshape(2, -1)


def add_up(
    engine: Engine, batches: Any, count: CountBins | CountCodes | _CountValues, n_bins: int
) -> NDArray[np.int64]:
    """Return the counts of all rows, of shape (n_bins,)."""
    added = engine.collect(engine.map_reduce(batches, count, COUNTS, "chunk", _AddCounts(), COUNTS))
    total = np.zeros(n_bins, np.int64)
    for chunk, value in zip(added.column("chunk").to_pylist(), added.column("counts"), strict=True):
        places, counts = _read_counts(value.as_buffer())
        total[chunk * BINS_PER_CHUNK + places] = counts
    return total


def count_values(
    engine: Engine,
    batches: Any,
    sort: SortIntoLeaves,
    classes: Mapping[int, tuple[Listed, Box]],
    n_columns: int,
    n_values: int,
) -> dict[int, NDArray[np.int64]]:
    """Count the rows of some leaves by bin and sensitive value: an array of shape (n_listed, n_values), int64, by leaf.

    ``batches`` has the rows, with the sensitive values of each as positions in the flat list; bins of dimensions with
    at most one are not counted.
    """
    made: dict[int, NDArray[np.int64]] = {}
    waiting = list(classes)
    while waiting:
        first_cell: dict[int, int] = {}
        n_cells = 0
        while waiting and (not first_cell or n_cells < MOST_CELLS):
            own = waiting.pop(0)
            first_cell[own] = n_cells
            n_cells += len(classes[own][0].bins) * n_values
        places = {own: places_of(*classes[own]) for own in first_cell}
        count = _CountValues(sort, places, first_cell, n_cells, n_columns, n_values)
        counts = add_up(engine, batches, count, n_cells)
        for own, start in first_cell.items():
            n_listed = len(classes[own][0].bins)
            made[own] = counts[start : start + n_listed * n_values].reshape(n_listed, n_values)
    return made
