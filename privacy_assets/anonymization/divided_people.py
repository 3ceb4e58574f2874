"""People on each side of every cut of large classes, counted by the tasks of an engine.

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

from privacy_assets.anonymization.divided_leaves import SortIntoLeaves
from privacy_assets.anonymization.kernels.mondrian_cuts import Box
from privacy_assets.anonymization.kernels.mondrian_divided import Listed
from privacy_assets.engine.protocol import Engine

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
            sides = [_written(np.unique(places, return_counts=True)) for places in (first, last)]
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


def _written(counts: tuple[NDArray[np.int32], NDArray[np.intp]]) -> bytes:
    return np.stack([each.astype(np.int64) for each in counts]).tobytes()


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
