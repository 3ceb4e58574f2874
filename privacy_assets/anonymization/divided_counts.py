"""Counts of the rows and people of large classes, which the tasks of an engine add up.

A person is on the left of a cut unless all their rows come after it, and on the right unless all come before it. So the
first and the last position of each person among the bins of a dimension, in the order in which it is cut, are enough.
The rows of a person may be anywhere: each task that reads rows sends one entry for each person that it meets to the
task that counts this person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.mondrian_cuts import Box
from privacy_assets.anonymization.kernels.mondrian_divided import Listed, add_counts
from privacy_assets.anonymization.kernels.mondrian_rows import pack_rows
from privacy_assets.anonymization.kernels.mondrian_tree import TreeArrays, route_rows
from privacy_assets.engine.protocol import Engine, gather_batches

ROWS_PER_BLOB = 1 << 18


@dataclass(frozen=True)
class SortIntoLeaves:
    """Sorts rows by their leaf in a tree."""

    tree: TreeArrays
    n_values: tuple[int, ...]

    def leaves(
        self, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[tuple[pa.Table, NDArray[np.unsignedinteger[Any]], NDArray[np.int64]]]:
        """Yield rows in their original order, their codes and their leaves."""
        for table in gather_batches(batches, ROWS_PER_BLOB):
            columns = [table.column(f"c{j}").to_numpy() for j in range(len(self.n_values))]
            codes = pack_rows(columns, self.n_values).codes
            yield table, codes, route_rows(self.tree, codes)

    def __call__(
        self, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[tuple[pa.Table, NDArray[np.int64], NDArray[np.unsignedinteger[Any]], NDArray[np.int64]]]:
        """Yield rows in their original order, their order by leaf, and codes and ascending leaves in that order."""
        for table, codes, leaf in self.leaves(batches):
            # Numbers of few leaves are sorted by their bytes.
            order = np.argsort(leaf.astype(np.min_scalar_type(int(leaf.max(initial=0)))), kind="stable")
            yield table, order, codes[order], leaf[order]


MET = pa.schema([("task", pa.int64()), ("leaf", pa.int64()), ("people", pa.binary())])
COUNTED = pa.schema(
    [
        *((name, pa.int64()) for name in ("task", "leaf", "n_people")),
        *((name, pa.binary()) for name in ("first", "last")),
    ]
)


class PeopleOfCuts(NamedTuple):
    """People of a class, and those on each side of a cut after each listed bin, of shape (n_listed,)."""

    n_people: int
    left: NDArray[np.int64]
    right: NDArray[np.int64]


class Places(NamedTuple):
    """Where a code of a dimension is among the listed bins: ``places`` of the ascending ``bins``."""

    dimension: int
    base: int
    shift: int
    bins: NDArray[np.int64]
    places: NDArray[np.int64]

    def of(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position of each code."""
        return self.places[np.searchsorted(self.bins, (codes - self.base) >> self.shift)]


def places_of(listed: Listed, box: Box) -> tuple[Places, ...]:
    """Return the lists of the dimensions that can be cut, numbered through all listed bins."""
    made = []
    for j, (begin, stop) in enumerate(zip(listed.first[:-1], listed.first[1:], strict=True)):
        if stop - begin > 1:
            order = np.argsort(listed.bins[begin:stop])
            bins = listed.bins[begin:stop][order]
            made.append(Places(j, int(box.base[j]), int(box.shift[j]), bins, begin + order))
    return tuple(made)


def _outermost(
    people: NDArray[np.int64], first: NDArray[np.int32], last: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return each person once, with their first and last positions, of shape (n_people, n_dimensions)."""
    order = np.argsort(people, kind="stable")
    distinct, starts = np.unique(people[order], return_index=True)
    return distinct, np.minimum.reduceat(first[order], starts), np.maximum.reduceat(last[order], starts)


@dataclass(frozen=True)
class _MeetPeople:
    """Sends the positions of each person that a task has met to the task that counts this person."""

    sort: SortIntoLeaves
    places: Mapping[int, tuple[Places, ...]]
    n_tasks: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table, order, codes, leaf in self.sort(batches):
            people = table.column("person").to_numpy()[order]
            tasks: list[int] = []
            leaves: list[int] = []
            blobs: list[bytes] = []
            for own, dimensions in self.places.items():
                begin, stop = np.searchsorted(leaf, [own, own + 1])
                if begin == stop:
                    continue
                placed = np.empty((stop - begin, len(dimensions)), np.int32)
                for d, each in enumerate(dimensions):
                    placed[:, d] = each.of(codes[begin:stop, each.dimension].astype(np.int64))
                met, first, last = _outermost(people[begin:stop], placed, placed)
                by_task = np.argsort(met % self.n_tasks, kind="stable")
                task, starts = np.unique((met % self.n_tasks)[by_task], return_index=True)
                for number, rows in zip(task, np.split(by_task, starts[1:]), strict=True):
                    tasks.append(int(number))
                    leaves.append(own)
                    blobs.append(met[rows].tobytes() + first[rows].tobytes() + last[rows].tobytes())
            yield pa.record_batch([pa.array(tasks, pa.int64()), pa.array(leaves, pa.int64()),
                                   pa.array(blobs, pa.binary())], schema=MET)  # fmt: skip


@dataclass(frozen=True)
class _CountPeople:
    """Counts each person once, at their first and at their last position."""

    places: Mapping[int, tuple[Places, ...]]

    def __call__(self, table: pa.Table) -> pa.Table:
        task, leaves = table.column("task")[0].as_py(), table.column("leaf").to_numpy()
        blobs = table.column("people")
        counted = []
        for own in np.unique(leaves).tolist():
            n_dimensions = len(self.places[own])
            met = [_read_people(blobs[int(i)].as_buffer(), n_dimensions) for i in np.flatnonzero(leaves == own)]
            people, first, last = _outermost(*(np.concatenate(parts) for parts in zip(*met, strict=True)))
            sides = [np.stack(np.unique(places, return_counts=True)).tobytes() for places in (first, last)]
            counted.append((task, own, len(people), *sides))
        return pa.table([pa.array(values, each.type) for values, each in zip(zip(*counted, strict=True), COUNTED,
                                                                             strict=True)], schema=COUNTED)  # fmt: skip


def _read_people(blob: pa.Buffer, n_dimensions: int) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    n_people = blob.size // (8 + 8 * n_dimensions)
    n_places = n_people * n_dimensions
    people = np.frombuffer(blob, np.int64, n_people)
    first = np.frombuffer(blob, np.int32, n_places, 8 * n_people).reshape(n_people, n_dimensions)
    last = np.frombuffer(blob, np.int32, n_places, 8 * n_people + 4 * n_places).reshape(n_people, n_dimensions)
    return people, first, last


def count_people(
    engine: Engine, batches: Any, sort: SortIntoLeaves, classes: Mapping[int, tuple[Listed, Box]], n_tasks: int
) -> dict[int, PeopleOfCuts]:
    """Count the people of some leaves, and those on each side of each of their cuts.

    Each of ``n_tasks`` counts the people whose codes have the same remainder; bins of dimensions with at most one are
    not counted.
    """
    places = {own: places_of(listed, box) for own, (listed, box) in classes.items()}
    meet, count = _MeetPeople(sort, places, n_tasks), _CountPeople(places)
    found = engine.collect(engine.map_reduce(batches, meet, MET, "task", count, COUNTED))
    counts = {own: np.zeros((2, len(listed.bins)), np.int64) for own, (listed, _) in classes.items()}
    n_people = dict.fromkeys(classes, 0)
    for own, n_met, *sides in zip(*(found.column(name).to_pylist() for name in COUNTED.names[1:]), strict=True):
        n_people[own] += n_met
        for count_of, side in zip(counts[own], sides, strict=True):
            at, n_at = np.frombuffer(side, np.int64).reshape(2, -1)
            count_of[at] += n_at
    made = {}
    for own, (listed, _) in classes.items():
        left, right = np.zeros_like(counts[own][0]), np.zeros_like(counts[own][0])
        for begin, stop in zip(listed.first[:-1], listed.first[1:], strict=True):
            left[begin:stop] = np.cumsum(counts[own][0][begin:stop])
            right[begin:stop] = n_people[own] - np.cumsum(counts[own][1][begin:stop])
        made[own] = PeopleOfCuts(n_people[own], left, right)
    return made


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
