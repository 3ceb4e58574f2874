"""Measures of classes by the tasks of an engine: each task receives whole classes, and their results are combined.

A class of any size is measured by one task, because its entropy is a sum whose last bits depend on the order of its
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.anonymity.kernels.measures import group_by_class
from privacy_assets.anonymity.worst_classes import CodedValues, MeasuredClasses, WorstClass, measure_all
from privacy_assets.engine.protocol import Engine, gather_batches

ROWS_PER_BLOB = 1 << 18
ROWS_OF_TASKS = pa.schema([("task", pa.int64()), ("rows", pa.binary())])
ARRAYS = ("classes", "sizes", "people", "is_homogeneous", "worst")
MEASURED = pa.schema([("task", pa.int64()), *((name, pa.binary()) for name in ARRAYS)])


@dataclass(frozen=True)
class _SendClasses:
    """Sends all rows of a class to one task: row, class, person if there are people, and values."""

    names: tuple[str, ...]
    n_tasks: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in gather_batches(batches, ROWS_PER_BLOB):
            columns = np.stack([table.column(name).to_numpy().astype(np.int64) for name in self.names])
            task = columns[self.names.index("class")] % self.n_tasks
            order = np.argsort(task, kind="stable")
            tasks, begins = np.unique(task[order], return_index=True)
            blobs = [columns[:, rows].tobytes() for rows in np.split(order, begins[1:])]
            yield pa.record_batch([pa.array(tasks, pa.int64()), pa.array(blobs, pa.binary())], schema=ROWS_OF_TASKS)


@dataclass(frozen=True)
class _MeasureClasses:
    """Measures the classes of a task."""

    names: tuple[str, ...]
    totals: tuple[NDArray[np.int64], ...]
    is_ordered: tuple[bool, ...]
    largest_l: tuple[int, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        blobs = [
            np.frombuffer(value.as_buffer(), np.int64).reshape(len(self.names), -1) for value in table.column("rows")
        ]
        columns = dict(zip(self.names, np.concatenate(blobs, axis=1), strict=True))
        order = np.argsort(columns["row"])
        classes, own = np.unique(columns["class"][order], return_inverse=True)
        person, n_people = None, 0
        if "person" in columns:
            distinct, person = np.unique(columns["person"][order], return_inverse=True)
            n_people = len(distinct)
        values = [
            CodedValues(columns[f"v{number}"][order], totals, is_ordered, largest_l)
            for number, (totals, is_ordered, largest_l) in enumerate(
                zip(self.totals, self.is_ordered, self.largest_l, strict=True)
            )
        ]
        found = measure_all(group_by_class(own, len(classes)), values, person, n_people)
        people = np.zeros(0, np.int64) if found.people is None else found.people
        worst = np.concatenate([np.zeros(0), *(each.to_array() for each in found.worst)])
        arrays = [classes, found.sizes, people, found.is_homogeneous, worst]
        return pa.table([table.column("task")[:1], *([array.tobytes()] for array in arrays)], schema=MEASURED)


def measure_by(
    engine: Engine,
    class_of_row: NDArray[np.integer[Any]],
    n_classes: int,
    values: Sequence[CodedValues],
    person_of_row: NDArray[np.integer[Any]] | None,
) -> MeasuredClasses:
    """Measure the classes of a table, from 0 to ``n_classes - 1``, by the tasks of an engine that divides the work.

    The engine receives numbers of rows, classes, people and values.
    """
    assert engine.rows_per_task is not None  # noqa: S101 - otherwise the work is not divided
    n_rows = len(class_of_row)
    placed = {"row": np.arange(n_rows), "class": class_of_row}
    if person_of_row is not None:
        placed["person"] = person_of_row
    placed |= {f"v{number}": column.codes for number, column in enumerate(values)}
    names = tuple(placed)
    send = _SendClasses(names, -(-n_rows // engine.rows_per_task))
    measure = _MeasureClasses(
        names,
        tuple(column.totals for column in values),
        tuple(column.is_ordered for column in values),
        tuple(column.largest_l for column in values),
    )
    with engine.place({name: codes.astype(_type_of(codes)) for name, codes in placed.items()}) as batches:
        made = engine.collect(engine.map_reduce(batches, send, ROWS_OF_TASKS, "task", measure, MEASURED))
    found = {name: [value.as_buffer() for chunk in made.column(name).chunks for value in chunk] for name in ARRAYS}
    place = np.concatenate([np.frombuffer(blob, np.int64) for blob in found["classes"]])

    def by_class(name: str, dtype: Any) -> NDArray[Any]:
        whole = np.empty(n_classes, dtype)
        whole[place] = np.concatenate([np.frombuffer(blob, dtype) for blob in found[name]])
        return whole

    worst = []
    begin = 0
    for column in values:
        stop = begin + WorstClass.n_figures(column.largest_l)
        worst.append(WorstClass.of_all([np.frombuffer(blob)[begin:stop] for blob in found["worst"]]))
        begin = stop
    return MeasuredClasses(
        by_class("sizes", np.int64),
        None if person_of_row is None else by_class("people", np.int64),
        by_class("is_homogeneous", np.bool_),
        tuple(worst),
    )


def _type_of(codes: NDArray[np.integer[Any]]) -> np.dtype[Any]:
    """Return the smallest type for codes, which are never negative."""
    return np.min_scalar_type(int(codes.max(initial=0)))
