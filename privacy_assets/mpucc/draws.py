"""Draws of records, as many as there are originals: publishing more of them must not lower a score.

A recipient can always draw fewer of the published records, so no figure may be better than on such a draw. The rows of
a draw are the first in an order that follows from their content alone: the order of the records, and repeats of some of
them, change nothing, and nobody can search for a favorable seed.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows
from privacy_assets.columns.row_hashes import hash_rows
from privacy_assets.columns.spelling import canonical
from privacy_assets.mpucc.preprocess import CodedTable, PreprocessedTables

N_DRAWS = 3
REPEATED_LESS = 1.1
"""Distinct records of a draw, at most, for each distinct original.

In a table of few values most records repeat others, and publishing more of them adds few distinct ones. Synthetic
tables of as many records as originals had 0.93 to 1.16 times as many distinct ones.
"""


def most_records(tables: PreprocessedTables) -> int:
    """Return how many synthetic records are scored together: no more than there are originals."""
    original = tables.original
    if not tables.deduplicate:
        return original.n_records
    if original.n_assessed > original.n_distinct:
        # Repeats were dropped before the records were generalized, and what they were is not known.
        return int(REPEATED_LESS * original.n_assessed)
    return min(original.n_records, int(REPEATED_LESS * group_rows(original.codes, tables.n_codes)[1]))


class Draws:
    """Draws of the rows of a table of single records; all draws of a table are the first in the same orders.

    Without deduplication a distinct row is drawn with all its records, and the draw ends before the row with which it
    would have more; it has at least one row. Each of the `N_DRAWS` draws has its own order.
    """

    def __init__(self, tables: PreprocessedTables, table: CodedTable) -> None:
        self.tables, self.table = tables, table

    @cached_property
    def _orders(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        hashes = pd.Series(_hashes(self.tables, self.table))
        orders = [np.argsort(hash_rows([hashes], len(hashes), seed), kind="stable") for seed in range(N_DRAWS)]
        return [(rows, np.cumsum(self.table.multiplicities[rows], dtype=np.int64)) for rows in orders]

    def of(self, n_records: int) -> tuple[NDArray[np.int64], ...]:
        """Draw at most this many records after deduplication; no draws if the table has no more."""
        if self.table.n_assessed <= n_records:
            return ()
        return tuple(rows[: max(int(np.searchsorted(sums, n_records, side="right")), 1)] for rows, sums in self._orders)


def draw_rows(tables: PreprocessedTables, table: CodedTable, n_records: int) -> tuple[NDArray[np.int64], ...]:
    """Draw rows of a table as `Draws` does."""
    return Draws(tables, table).of(n_records)


def _hashes(tables: PreprocessedTables, table: CodedTable) -> NDArray[np.uint64]:
    """Hash the values of each row; codes, spelling, and names and order of the columns, do not matter."""
    # Only texts are written in several ways: the label of any other value follows from the value.
    values = [
        [label and canonical(label) for label in labels] if kind == "text" else labels
        for labels, kind in zip(tables.labels, tables.kinds, strict=True)
    ]
    of_values = [hash_rows([pd.Series(own, dtype=object)], len(own), 0) for own in values]
    # Columns are told apart by their values among the originals.
    sums = [own[codes].sum(dtype=np.uint64) for own, codes in zip(of_values, tables.original.codes, strict=True)]
    columns = (pd.Series(of_values[c][table.codes[c]]) for c in np.argsort(np.array(sums), kind="stable"))
    return hash_rows(columns, table.n_distinct, 0)
