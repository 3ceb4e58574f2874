"""Candidates of every distinct combination of released cells, by lists of the originals with each code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows
from privacy_assets.reidentification.masked_columns import MaskedColumn


def members_by_cells(
    columns: Sequence[MaskedColumn], n_original: int, n_released: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the positions of released records with equal cells, and of their candidates, ascending.

    Without known columns, everybody is a candidate. Each set begins with the column that leaves fewest originals, and
    only examines these.
    """
    if not columns:
        yield np.arange(n_released), np.arange(n_original)
        return
    sets = [column.sets for column in columns]
    groups, n_groups = group_rows([own.set_of_row for own in sets], [own.n_sets for own in sets])
    rows_in_order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[rows_in_order], np.arange(n_groups + 1))
    lists = [_Lists(column) for column in columns]
    for group in range(n_groups):
        rows = rows_in_order[starts[group] : starts[group + 1]]
        numbers = [int(own.set_of_row[rows[0]]) for own in sets]
        counts = [own.count(number) for own, number in zip(lists, numbers, strict=True)]
        order = np.argsort(counts, kind="stable").tolist()
        members = lists[order[0]].positions(numbers[order[0]])
        for place in order[1:]:
            members = members[lists[place].contains(numbers[place], members)]
        yield rows, np.sort(members)


class _Lists:
    """The originals of a column in the order of their codes."""

    def __init__(self, column: MaskedColumn) -> None:
        self.column = column
        self.order = np.argsort(column.codes, kind="stable")
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(column.codes, minlength=column.n_codes))])
        self.is_inside = np.zeros(column.n_codes, np.bool_)

    def _ranges(self, number: int) -> list[tuple[int, int]]:
        """Return the codes of a set as ranges (first, one after the last)."""
        sets = self.column.sets
        own = slice(sets.first[number], sets.first[number + 1])
        return list(zip(sets.low[own].tolist(), (sets.high[own] + 1).tolist(), strict=True))

    def count(self, number: int) -> int:
        return sum(int(self.starts[end] - self.starts[begin]) for begin, end in self._ranges(number))

    def positions(self, number: int) -> NDArray[np.int64]:
        parts = [self.order[self.starts[begin] : self.starts[end]] for begin, end in self._ranges(number)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def contains(self, number: int, members: NDArray[np.int64]) -> NDArray[np.bool_]:
        ranges = self._ranges(number)
        for begin, end in ranges:
            self.is_inside[begin:end] = True
        found: NDArray[np.bool_] = self.is_inside[self.column.codes[members]]
        for begin, end in ranges:
            self.is_inside[begin:end] = False
        return found
