"""Candidates counted by the tasks of an engine: each has some originals and all boxes, and the counts are summed.

All records of a person go to one task, so that counts of people can also be summed: a person with more records than a
task makes the task larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.engine.protocol import Engine, gather_batches
from privacy_assets.reidentification.kernels.candidates import Boxes, count_candidates
from privacy_assets.reidentification.many_known_sets import count_for_many_sets
from privacy_assets.reidentification.masked_columns import MaskedColumn, make_points

ROWS_PER_BLOB = 1 << 18
COUNTS_PER_CHUNK = 1 << 16
BOXES_AT_A_TIME = 1 << 18
"""Distinct released records sent to tasks with their function, which has to fit into a message: 4 bytes a column."""
ROWS_OF_TASKS = pa.schema([("task", pa.int64()), ("rows", pa.binary())])
COUNTS = pa.schema([("chunk", pa.int64()), ("counts", pa.binary())])


class _CountsOf(Protocol):
    """Counts the candidates among some originals."""

    def __call__(self, codes: Sequence[NDArray[np.int32]], people: NDArray[np.int64] | None) -> NDArray[np.int64]: ...


@dataclass(frozen=True)
class _OfBoxes:
    """Counts the originals in each box; the columns do not contain the codes."""

    columns: tuple[MaskedColumn, ...]
    boxes: Boxes

    def __call__(self, codes: Sequence[NDArray[np.int32]], people: NDArray[np.int64] | None) -> NDArray[np.int64]:
        columns = [replace(column, codes=own) for column, own in zip(self.columns, codes, strict=True)]
        return count_candidates(make_points(columns, people), self.boxes, max(column.n_codes for column in columns))


@dataclass(frozen=True)
class _OfSets:
    """Counts the originals in the boxes of some released rows, for many sets of columns."""

    columns: tuple[MaskedColumn, ...]
    sets: tuple[tuple[int, ...], ...]

    def __call__(self, codes: Sequence[NDArray[np.int32]], people: NDArray[np.int64] | None) -> NDArray[np.int64]:
        columns = [replace(column, codes=own) for column, own in zip(self.columns, codes, strict=True)]
        rows = np.arange(len(columns[0].sets.set_of_row))
        return count_for_many_sets(columns, self.sets, rows, people, n_threads=1).ravel()


@dataclass(frozen=True)
class _SendOriginals:
    """Sends originals to their tasks: codes, and people if these are counted."""

    n_columns: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in gather_batches(batches, ROWS_PER_BLOB):
            columns = np.stack([table.column(f"c{j}").to_numpy().astype(np.int32) for j in range(self.n_columns)])
            task = table.column("task").to_numpy()
            order = np.argsort(task, kind="stable")
            tasks, begins = np.unique(task[order], return_index=True)
            blobs = [columns[:, rows].tobytes() for rows in np.split(order, begins[1:])]
            yield pa.record_batch([pa.array(tasks, pa.int64()), pa.array(blobs, pa.binary())], schema=ROWS_OF_TASKS)


@dataclass(frozen=True)
class _CountInTask:
    """Counts candidates among the originals of a task."""

    count: _CountsOf
    n_columns: int
    has_people: bool

    def __call__(self, table: pa.Table) -> pa.Table:
        blobs = [np.frombuffer(value.as_buffer(), np.int32) for value in table.column("rows")]
        columns = np.concatenate([blob.reshape(self.n_columns, -1) for blob in blobs], axis=1)
        people = None
        if self.has_people:
            *codes, person = columns
            people = pd.factorize(person)[0].astype(np.int64)
        else:
            codes = list(columns)
        counts = self.count(codes, people)
        chunks = np.arange(-(-len(counts) // COUNTS_PER_CHUNK))
        own = [counts[chunk * COUNTS_PER_CHUNK :][:COUNTS_PER_CHUNK].tobytes() for chunk in chunks]
        return pa.table([pa.array(chunks, pa.int64()), pa.array(own, pa.binary())], schema=COUNTS)


@dataclass(frozen=True)
class _Pass:
    """Passes the counts of tasks on."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches


@dataclass(frozen=True)
class _Add:
    """Sums the counts of the tasks for a chunk of the boxes."""

    def __call__(self, table: pa.Table) -> pa.Table:
        counts = [np.frombuffer(value.as_buffer(), np.int64) for value in table.column("counts")]
        return pa.table([table.column("chunk")[:1], [np.sum(counts, axis=0).tobytes()]], schema=COUNTS)


def count_in_boxes(
    engine: Engine,
    columns: Sequence[MaskedColumn],
    boxes: Boxes,
    people: NDArray[np.int64] | None,
    on_wait: Callable[[], None] | None = None,
) -> NDArray[np.int64]:
    """Count the originals, or the people, in each box, as `count_candidates` does, by the tasks of an engine.

    It receives codes and people of the originals. ``on_wait`` is called before and after each job.
    """
    without = tuple(_without_rows(column, np.zeros(0, np.int64)) for column in columns)
    parts = [
        _OfBoxes(without, boxes._replace(sets=boxes.sets[begin : begin + BOXES_AT_A_TIME]))
        for begin in range(0, len(boxes.sets), BOXES_AT_A_TIME)
    ]
    return np.concatenate(_count_by(engine, columns, people, parts, lambda _: on_wait() if on_wait else None))


def count_for_many_sets_by(
    engine: Engine,
    columns: Sequence[MaskedColumn],
    sets: Sequence[Sequence[int]],
    rows: NDArray[np.int64],
    people: NDArray[np.int64] | None,
    on_share: Callable[[float], None] | None = None,
) -> NDArray[np.int64]:
    """Count the candidates of released rows for many sets of columns, as `count_for_many_sets` does."""
    blocks = [rows[begin : begin + BOXES_AT_A_TIME] for begin in range(0, len(rows), BOXES_AT_A_TIME)]
    chosen = tuple(map(tuple, sets))
    parts = [_OfSets(tuple(_without_rows(column, own) for column in columns), chosen) for own in blocks]
    counts = _count_by(engine, columns, people, parts, on_share or (lambda _: None))
    return np.concatenate([own.reshape(len(sets), -1) for own in counts], axis=1)


def _without_rows(column: MaskedColumn, rows: NDArray[np.int64]) -> MaskedColumn:
    """Return a column for some released rows, without originals and without the sets of other rows."""
    used, set_of_row = np.unique(column.sets.set_of_row[rows], return_inverse=True)
    sets = column.sets.only(used)._replace(set_of_row=set_of_row.astype(np.int64))
    return MaskedColumn(np.zeros(0, np.int32), column.n_codes, sets, None)


def _count_by(
    engine: Engine,
    columns: Sequence[MaskedColumn],
    people: NDArray[np.int64] | None,
    parts: Sequence[_CountsOf],
    on_share: Callable[[float], None],
) -> list[NDArray[np.int64]]:
    """Place the originals once, and count for each part of the released rows."""
    assert engine.rows_per_task is not None  # noqa: S101 - otherwise the work is not divided
    n_original = len(columns[0].codes)
    n_tasks = -(-n_original // engine.rows_per_task)
    units = np.arange(n_original) if people is None else people
    placed = [column.codes for column in columns] + ([] if people is None else [people])
    types = [np.min_scalar_type(int(codes.max(initial=0))) for codes in placed]
    given = {f"c{j}": codes.astype(own) for j, (codes, own) in enumerate(zip(placed, types, strict=True))}
    given["task"] = units % n_tasks
    n_placed = len(placed)
    found = []
    on_share(0.0)
    with engine.place(given) as batches:
        del given, placed, units
        for number, count in enumerate(parts, 1):
            task = _CountInTask(count, n_placed, people is not None)
            counted = engine.map_reduce(batches, _SendOriginals(n_placed), ROWS_OF_TASKS, "task", task, COUNTS)
            added = engine.collect(engine.map_reduce(counted, _Pass(), COUNTS, "chunk", _Add(), COUNTS))
            counts = dict(zip(added.column("chunk").to_pylist(), added.column("counts"), strict=True))
            found.append(np.concatenate([np.frombuffer(counts[n].as_buffer(), np.int64) for n in range(len(counts))]))
            on_share(number / len(parts))
    return found
