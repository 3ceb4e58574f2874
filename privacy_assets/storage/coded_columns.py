"""A table that arrives in batches, in codes: the distinct values of each column, and the code of each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.distinct_values import DistinctValues
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.table import StoredTable


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column in codes.

    Attributes
    ----------
    distinct : Series
        The values that occur, in order of their first appearance and in the dtype of the column; the missing value, if
        the column has one, is the last.
    codes : ndarray of shape (n_rows,), unsigned integer
        Position of each row's value in ``distinct``.
    """

    distinct: pd.Series[Any]
    codes: NDArray[np.unsignedinteger[Any]]

    def take(self, rows: NDArray[np.integer[Any]]) -> pd.Series[Any]:
        """Return the values of some rows."""
        return self.distinct.take(self.codes[rows].astype(np.int64)).reset_index(drop=True)


class ColumnCoder:
    """Codes columns that arrive in batches."""

    def __init__(self) -> None:
        self._values: dict[str, DistinctValues] = {}
        self._numbers: dict[str, list[NDArray[np.int32]]] = {}

    def add(self, batch: pd.DataFrame) -> None:
        """Code the next rows.

        Raises
        ------
        InvalidTableError
            If the batch has other columns than the previous batches.
        """
        if not self._values:
            self._values = {name: DistinctValues() for name in batch.columns}
            self._numbers = {name: [np.zeros(0, np.int32)] for name in batch.columns}
        if list(batch.columns) != list(self._values):
            raise InvalidTableError("The batches of the table have different columns. Nothing was coded.")
        for name, values in self._values.items():
            self._numbers[name].append(values.add(batch[name]).astype(np.int32))

    def finish(self) -> Mapping[str, CodedColumn]:
        """Return the columns; the coder cannot be used again."""
        return {name: self._finished(name) for name in list(self._values)}

    def _finished(self, name: str) -> CodedColumn:
        values, numbers = self._values.pop(name), np.concatenate(self._numbers.pop(name))
        has_missing = bool((numbers < 0).any())
        # -1, the missing value, is the last.
        code_of = np.arange(len(values) + 1).astype(np.min_scalar_type(max(len(values) - 1 + has_missing, 0)))
        return CodedColumn(values.series(name, with_missing=has_missing), code_of[numbers])


def code_stored(
    table: StoredTable, name: str, made_of: Callable[[pd.Series[Any]], pd.Series[Any]] = lambda column: column
) -> CodedColumn:
    """Code a column of a stored table, or what a function makes of its rows, some of which are in memory at a time."""
    coder = ColumnCoder()
    # A batch may lack some of the categories that have an order.
    is_whole = table.is_in_memory(name) or getattr(table.dtypes[name], "ordered", False)
    for batch in [table[[name]]] if is_whole else table.batches([name]):
        coder.add(pd.DataFrame({name: made_of(batch[name])}, copy=False))
    return coder.finish()[name]
