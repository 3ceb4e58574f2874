"""The protocol of an engine: three operations on batches of integer codes.

Values, dictionaries and labels stay with the driver, so that workers, shuffle files and tracebacks never contain one.
Workers that verify a release (`tasks`) read its files themselves.
Functions that are sent to workers are functions of a module, or frozen dataclasses with ``__call__``, which the workers
import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Mapper = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Makes batches from batches; it is given the batches of one partition, which may be empty."""
Reducer = Callable[[pa.Table], pa.Table]
"""Makes a table from all rows with one key."""


class Engine(Protocol):
    """Runs functions on batches of integer codes."""

    @property
    def rows_per_task(self) -> int | None:
        """Approximate number of rows of a task; None if the work is not divided."""

    def place(self, columns: Mapping[str, NDArray[np.integer[Any]]]) -> AbstractContextManager[Any]:
        """Hand over columns of one length as batches, and remove them at the end of the context."""

    def map(self, batches: Any, function: Mapper, schema: pa.Schema) -> Any:
        """Return the batches that a function makes of each partition."""

    def map_reduce(
        self, batches: Any, function: Mapper, schema: pa.Schema, key: str, reduce: Reducer, reduced: pa.Schema
    ) -> Any:
        """Map, bring all rows with one value of the integer column ``key`` together, and reduce them to a table."""

    def collect(self, batches: Any) -> pa.Table:
        """Return all batches as one table, in any order."""


def gather_batches(batches: Iterator[pa.RecordBatch], n_rows: int) -> Iterator[pa.Table]:
    """Combine small batches until they have this many rows."""
    waiting: list[pa.RecordBatch] = []
    n_waiting = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        waiting.append(batch)
        n_waiting += batch.num_rows
        if n_waiting >= n_rows:
            yield pa.Table.from_batches(waiting)
            waiting, n_waiting = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
