"""An engine that divides tiny tables, and shuffles them as a cluster may."""

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from privacy_assets.engine.local import LocalEngine


@dataclass(frozen=True)
class ShufflingEngine(LocalEngine):
    """Batches of few rows in random order, some of them empty, and tasks in random order."""

    rows_per_task: int | None = 50
    rows_per_batch: int = 7
    batches_per_partition: int = 3
    seed: int = 1

    @contextmanager
    def place(self, columns):
        n_rows = len(next(iter(columns.values())))
        order = np.random.default_rng(self.seed).permutation(n_rows)
        with super().place({name: values[order] for name, values in columns.items()}) as table:
            empty = pa.RecordBatch.from_pylist([], table.schema)
            yield pa.Table.from_batches([empty, *table.to_batches(), empty, empty, empty])

    def map(self, batches, function, schema):
        made = super().map(batches, function, schema)
        return made.take(np.random.default_rng(self.seed).permutation(made.num_rows))
