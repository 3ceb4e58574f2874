"""Codes of records by column, each as compact as its values allow, which are handed out as blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Codes:
    """Codes of records, by column.

    Attributes
    ----------
    columns : tuple of ndarray of shape (n_records,), unsigned integer
        A code of each record.
    tables : tuple of ndarray, or None
        By column, the code that each of these stands for; None if they stand for themselves.
    dtype : data type
        Of the blocks.
    """

    columns: tuple[NDArray[Any], ...]
    tables: tuple[NDArray[Any] | None, ...]
    dtype: Any = np.int32

    @classmethod
    def of(cls, columns: Sequence[NDArray[Any]]) -> Codes:
        """Return codes that stand for themselves."""
        return cls(tuple(columns), (None,) * len(columns))

    @property
    def n_records(self) -> int:
        """Number of records."""
        return len(self.columns[0])

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[j] for j in range(len(self.columns)))

    def __getitem__(self, j: int) -> NDArray[Any]:
        """Return a column."""
        return self._translated(j, self.columns[j])

    def by(self, tables: Sequence[NDArray[Any] | None], dtype: Any = np.int32) -> Codes:
        """Return other codes of the same records, by the codes here, which stand for themselves."""
        return Codes(self.columns, tuple(tables), dtype)

    def take(self, rows: NDArray[np.int64] | slice) -> NDArray[Any]:
        """Return the codes of some records, contiguous, of shape (n_columns, n_rows)."""
        found = [self._translated(j, own[rows]) for j, own in enumerate(self.columns)]
        return np.array(found, self.dtype)

    def of_rows(self, rows: NDArray[np.int64]) -> Codes:
        """Return some of the records."""
        return replace(self, columns=tuple(own[rows] for own in self.columns))

    def only(self, columns: Sequence[int]) -> Codes:
        """Return the columns at some places, in this order."""
        return replace(
            self, columns=tuple(self.columns[j] for j in columns), tables=tuple(self.tables[j] for j in columns)
        )

    def replaced(self, places: Any, other: Codes, rows: Any) -> Codes:
        """Return the records with those at some places replaced by some of others, which have the same tables."""
        columns = tuple(own.copy() for own in self.columns)
        for own, its in zip(columns, other.columns, strict=True):
            own[places] = its[rows]
        return replace(self, columns=columns)

    def _translated(self, j: int, codes: NDArray[Any]) -> NDArray[Any]:
        table = self.tables[j]
        return codes if table is None else table[codes]


class Sides(NamedTuple):
    """One kind of codes of all real and all synthetic records."""

    real: Codes
    synthetic: Codes

    def by(self, tables: Sequence[NDArray[Any] | None]) -> Sides:
        """Return other codes of the same records, by the codes here, which stand for themselves."""
        return Sides(*(own.by(tables) for own in self))


class WrittenSides(NamedTuple):
    """Codes of one column of all real and all synthetic records, each of shape (n_records,)."""

    real: NDArray[Any]
    synthetic: NDArray[Any]
