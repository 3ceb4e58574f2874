"""Columns of integer codes in the smallest possible storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Suffixes on which more than this share of the rows differ are not grouped, because too few rows would be dropped.
LARGEST_USEFUL_SHARE = 0.8
# From this size of combinations on, dropping rows that later columns cannot distinguish is worth its first pass.
FIRST_GROUPED_SIZE = 4


class CodeBlocks(NamedTuple):
    """Columns of codes grouped by width, so that each has the smallest possible storage.

    ``narrow``, ``middle`` and ``wide`` are C-contiguous, of shape (columns of that width, n_rows) and dtype uint8,
    uint16 and uint32. Column c is row ``slot[c]`` of the block ``width[c]`` (0, 1, 2); its codes are below
    ``n_codes[c]``.
    """

    narrow: NDArray[np.uint8]
    middle: NDArray[np.uint16]
    wide: NDArray[np.uint32]
    width: NDArray[np.int64]
    slot: NDArray[np.int64]
    n_codes: NDArray[np.int64]


def group_by_width(columns: Sequence[NDArray[Any]], n_codes: Sequence[int]) -> CodeBlocks:
    """Group columns of codes by the smallest unsigned width that fits them.

    Parameters
    ----------
    columns : sequence of ndarray of shape (n_rows,), integer
        Codes of each column, from 0 to ``n_codes[c] - 1``. Not checked here.
    n_codes : sequence of int
        Distinct codes of each column.
    """
    dtypes = (np.uint8, np.uint16, np.uint32)
    n_rows = len(columns[0]) if columns else 0
    width = np.array([0 if n <= 1 << 8 else 1 if n <= 1 << 16 else 2 for n in n_codes], np.int64)
    slot = np.array([np.count_nonzero(width[:c] == w) for c, w in enumerate(width)], np.int64)
    n_of_width = np.bincount(width, minlength=3).tolist()
    # An absent width keeps one column without rows, so that slot 0 is a legal address for compiled code.
    blocks: list[Any] = [np.zeros((max(n, 1), n_rows if n else 0), t) for n, t in zip(n_of_width, dtypes, strict=True)]
    for column, w, s in zip(columns, width, slot, strict=True):
        blocks[w][s] = column
    return CodeBlocks(blocks[0], blocks[1], blocks[2], width, slot, np.maximum(np.array(n_codes, np.int64), 1))


def take_rows(blocks: CodeBlocks, rows: NDArray[np.int64]) -> CodeBlocks:
    """Renumber the rows of all columns."""
    taken: list[Any] = [np.take(b, rows, axis=1) if b.shape[1] else b for b in blocks[:3]]
    return blocks._replace(narrow=taken[0], middle=taken[1], wide=taken[2])


class SuffixGroups(NamedTuple):
    """Groups of rows that agree on a column and on all later ones.

    Inside a class of some combination, such rows stay together in every extension by later columns. If only 0, 1 and
    more are distinguished, two of them represent all.

    Attributes
    ----------
    ids : ndarray of shape (n_columns - first, n_rows), dtype=int32
        ``ids[c - first]`` numbers the groups of columns c, c + 1, ... from 0.
    first : int
        First column with groups; before it nearly all rows differ.
    n_groups : int
        Upper bound of all ids, exclusive.
    """

    ids: NDArray[np.int32]
    first: int
    n_groups: int

    def take(self, rows: NDArray[np.int64]) -> SuffixGroups:
        """Renumber the rows."""
        return self._replace(ids=np.take(self.ids, rows, axis=1)) if self.ids.size else self


def no_suffix_groups(n_columns: int) -> SuffixGroups:
    """Return empty groups."""
    return SuffixGroups(np.zeros((0, 0), np.int32), n_columns, 1)


def suffix_groups(blocks: CodeBlocks) -> SuffixGroups:
    """Group the rows by each suffix of the columns, as long as enough of them agree."""
    n_columns = len(blocks.n_codes)
    ids: list[NDArray[np.int32]] = []
    n_groups = 1
    for c in reversed(range(n_columns)):
        column = blocks[int(blocks.width[c])][blocks.slot[c]].astype(np.int64)
        keys = column * n_groups + ids[-1] if ids else column
        groups, n_groups = _number(keys)
        if n_groups > LARGEST_USEFUL_SHARE * len(column):
            break
        ids.append(groups)
    if not ids:
        return no_suffix_groups(n_columns)
    return SuffixGroups(np.array(ids[::-1]), n_columns - len(ids), max(int(group.max()) + 1 for group in ids))


@njit(nogil=True, cache=True)
def _number(keys: NDArray[np.int64]) -> tuple[NDArray[np.int32], int]:
    """Give equal keys one number, from 0 in order of first appearance, with an open-addressing table."""
    n_keys = len(keys)
    n_bits = 4
    while 1 << n_bits < 2 * n_keys:
        n_bits += 1
    mask = (1 << n_bits) - 1
    table = np.full(1 << n_bits, -1, np.int32)
    firsts = np.empty(n_keys, np.int64)
    ids = np.empty(n_keys, np.int32)
    n_ids = 0
    for i in range(n_keys):
        # Fibonacci hashing: the high bits of a product with 2**64 / golden ratio are well mixed.
        place = np.int64((np.uint64(keys[i]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - n_bits)) & mask
        while table[place] >= 0 and firsts[table[place]] != keys[i]:
            place = (place + 1) & mask
        if table[place] < 0:
            table[place] = n_ids
            firsts[n_ids] = keys[i]
            n_ids += 1
        ids[i] = table[place]
    return ids, n_ids
