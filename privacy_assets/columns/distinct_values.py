"""The distinct values of a column that arrives in batches, numbered in order of their first appearance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


class DistinctValues:
    """Numbers for the values of a column, equal to those of `pandas.factorize` for the whole column.

    The batches are of one dtype; the categories of categorical batches may differ.

    Notes
    -----
    The values are kept in pieces of decreasing size, each with its own index, so that a batch is looked up in few of
    them and each value is indexed again only O(log n) times. Memory: the distinct values and their indexes.
    """

    def __init__(self) -> None:
        self._pieces: list[pd.Index[Any]] = []
        self._n_values = 0
        self._dtype: Any = None
        self._has_one_dtype = True

    def __len__(self) -> int:
        """Return the number of distinct values; a missing value is not counted."""
        return self._n_values

    def add(self, column: pd.Series[Any]) -> NDArray[np.int64]:
        """Return the number of each value, -1 for a missing one; new values get the next numbers."""
        self._has_one_dtype &= self._dtype is None or self._dtype == column.dtype
        self._dtype = column.dtype if self._dtype is None else self._dtype
        local, values = _factorized(column)
        number = np.full(len(values) + 1, -1, np.int64)
        begin = 0
        for piece in self._pieces:
            left = np.flatnonzero(number[:-1] < 0)
            if not len(left):
                break
            places = piece.get_indexer(values[left])
            number[left[places >= 0]] = places[places >= 0] + begin
            begin += len(piece)
        new = np.flatnonzero(number[:-1] < 0)
        if len(new):
            number[new] = self._n_values + np.arange(len(new))
            self._append(values[new])
        return number[local]

    def series(self, name: str, *, with_missing: bool) -> pd.Series[Any]:
        """Return the values in the order of their numbers, in the dtype of the batches; optionally a missing one last.

        If categories do not have a common dtype, the categories are all values in ascending order.
        """
        if self._dtype is None:
            return pd.Series([], dtype=object, name=name)
        values = self._pieces[0].append(self._pieces[1:]) if self._pieces else pd.Index([], dtype=object)
        if isinstance(self._dtype, pd.CategoricalDtype):
            dtype = self._dtype if self._has_one_dtype else None
            found: pd.Series[Any] = pd.Series(
                pd.Categorical(values, dtype=dtype, ordered=None if dtype else self._dtype.ordered)
            )
        else:
            # There is no index of half floats.
            found = pd.Series(values).astype(self._dtype) if len(values) else pd.Series([], dtype=self._dtype)
        if with_missing:
            found = found.reindex(range(len(found) + 1))
        return found.rename(name)

    def _append(self, values: pd.Index[Any]) -> None:
        self._pieces.append(values)
        self._n_values += len(values)
        while len(self._pieces) > 1 and len(self._pieces[-2]) <= 2 * len(self._pieces[-1]):
            last = self._pieces.pop()
            self._pieces[-1] = self._pieces[-1].append(last)


def _factorized(column: pd.Series[Any]) -> tuple[NDArray[np.int64], pd.Index[Any]]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        local, used = pd.factorize(column.cat.codes.where(column.cat.codes >= 0))
        return local, column.cat.categories[used.astype(np.int64)]
    local, values = pd.factorize(column)
    return local, pd.Index(values)
