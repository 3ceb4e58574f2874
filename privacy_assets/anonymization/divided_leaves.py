"""Rows of a table that an engine divides, by their class in a tree of cuts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.mondrian_rows import pack_rows
from privacy_assets.anonymization.kernels.mondrian_tree import TreeArrays, route_rows
from privacy_assets.engine.protocol import gather_batches

ROWS_PER_BLOB = 1 << 18


def _codes_of(table: pa.Table, n_values: Sequence[int]) -> NDArray[np.unsignedinteger[Any]]:
    return pack_rows([table.column(f"c{j}").to_numpy() for j in range(len(n_values))], n_values).codes


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
            codes = _codes_of(table, self.n_values)
            yield table, codes, route_rows(self.tree, codes)

    def __call__(
        self, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[tuple[pa.Table, NDArray[np.int64], NDArray[np.unsignedinteger[Any]], NDArray[np.int64]]]:
        """Yield rows in their original order, their order by leaf, and codes and ascending leaves in that order."""
        for table, codes, leaf in self.leaves(batches):
            # Numbers of few leaves are sorted by their bytes.
            order = np.argsort(leaf.astype(np.min_scalar_type(int(leaf.max(initial=0)))), kind="stable")
            yield table, order, codes[order], leaf[order]
