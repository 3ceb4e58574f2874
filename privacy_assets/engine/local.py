"""The engine of one machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy_assets.engine.protocol import Mapper, Reducer
from privacy_assets.setting_checks import is_integer, require


@dataclass(frozen=True)
class LocalEngine:
    """Runs everything in this process.

    Parameters
    ----------
    rows_per_task : int, optional
        Divide the work into tasks of about this many rows, as a cluster does; the result is the same. Default: the
        kernels receive the whole table at once, which is faster.
    rows_per_batch : int
        Rows of a batch, if the work is divided.
    batches_per_partition : int
        Batches that one call of a function receives, if the work is divided.

    Raises
    ------
    InvalidSettingError
        If a number is not an integer above 0.
    """

    rows_per_task: int | None = None
    rows_per_batch: int = 1 << 18
    batches_per_partition: int = 4

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (name == "rows_per_task" and value is None):
                require(is_integer(value, 1), name, value, "an integer of at least 1")

    @contextmanager
    def place(self, columns: Mapping[str, NDArray[np.integer[Any]]]) -> Iterator[pa.Table]:
        """Hand over columns as batches."""
        whole = pa.table(dict(columns))
        yield pa.Table.from_batches(whole.to_batches(max_chunksize=self.rows_per_batch), whole.schema)

    def map(self, batches: pa.Table, function: Mapper, schema: pa.Schema) -> pa.Table:
        """Return the batches that a function makes of each partition."""
        given, step = batches.to_batches(), self.batches_per_partition
        made: list[pa.RecordBatch] = []
        for begin in range(0, len(given), step):
            made += function(iter(given[begin : begin + step]))
        return pa.Table.from_batches(made, schema)

    def map_reduce(
        self, batches: pa.Table, function: Mapper, schema: pa.Schema, key: str, reduce: Reducer, reduced: pa.Schema
    ) -> pa.Table:
        """Map, bring all rows with one value of ``key`` together, and reduce them to a table."""
        mapped = self.map(batches, function, schema)
        keys = mapped.column(key)
        made = [reduce(mapped.filter(pc.equal(keys, value))).cast(reduced) for value in pc.unique(keys)]
        return pa.concat_tables([reduced.empty_table(), *made])

    def collect(self, batches: pa.Table) -> pa.Table:
        """Return all batches as one table."""
        return batches
