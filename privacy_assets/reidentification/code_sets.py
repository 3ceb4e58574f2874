"""Sets of codes: the possible originals of a released cell, as ranges of codes of the original column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class CodeSets(NamedTuple):
    """Distinct sets of codes, and the set of every row.

    The ranges of a set, ``low`` to ``high``, begin at ``first``; they are ascending and not adjacent. A set may be
    without ranges.
    """

    set_of_row: NDArray[np.int64]
    first: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]

    @property
    def n_sets(self) -> int:
        """Number of distinct sets."""
        return len(self.first) - 1

    @property
    def set_of_range(self) -> NDArray[np.int64]:
        """Set of each range."""
        return np.repeat(np.arange(self.n_sets), np.diff(self.first))

    def contain(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the set of each row has a code, one code per row."""
        if len(self.low) == 0:
            return np.zeros(len(codes), np.bool_)
        # Ranges of all sets on one line: the relevant one is the last that begins at or before the code.
        width = int(max(self.high.max(), codes.max(initial=0))) + 1
        begins = self.set_of_range * width + self.low
        place = np.searchsorted(begins, self.set_of_row * width + codes, side="right") - 1
        found = np.maximum(place, 0)
        is_own = (place >= 0) & (self.set_of_range[found] == self.set_of_row)
        return np.asarray(is_own & (codes <= self.high[found]))

    def only(self, numbers: NDArray[np.int64]) -> CodeSets:
        """Return some of the sets, in the given order, without rows."""
        lengths = np.diff(self.first)[numbers]
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        ranges = np.repeat(self.first[numbers] - first[:-1], lengths) + np.arange(first[-1])
        return CodeSets(np.zeros(0, np.int64), first, self.low[ranges], self.high[ranges])

    def codes_of(self, number: int) -> NDArray[np.int64]:
        """Return the codes of one set, ascending."""
        ranges = range(self.first[number], self.first[number + 1])
        parts = [np.arange(self.low[r], self.high[r] + 1) for r in ranges]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def from_ranges(
    low: NDArray[np.int64], high: NDArray[np.int64], has_last: NDArray[np.bool_], last: int, rows: NDArray[np.int64]
) -> CodeSets:
    """Make sets of one range each (``low > high`` if empty), with the code ``last``, above all others, if ``has_last``.

    That code may be the one of the missing value; ``rows`` has the set of each row.
    """
    is_empty = low > high
    low, high = np.where(is_empty, last, low), np.where(is_empty, last - 1, high)
    keys = (low * (last + 1) + high + 1) * 2 + has_last
    _, example, number = np.unique(keys, return_index=True, return_inverse=True)
    low, high, has_last = low[example], high[example], has_last[example]
    has_range = low <= high
    is_joined = has_last & has_range & (high == last - 1)
    n_ranges = has_range.astype(np.int64) + (has_last & ~is_joined)
    first = np.concatenate([[0], np.cumsum(n_ranges)]).astype(np.int64)
    lows, highs = np.full(first[-1], last), np.full(first[-1], last)
    place = first[:-1][has_range]
    lows[place], highs[place] = low[has_range], np.where(is_joined, last, high)[has_range]
    return CodeSets(number.astype(np.int64)[rows], first, lows, highs)


def from_lists(lists: Sequence[NDArray[np.int64]], rows: NDArray[np.int64]) -> CodeSets:
    """Make sets from lists of codes, ascending; equal lists become one set."""
    numbers: dict[bytes, int] = {}
    number_of = np.array([numbers.setdefault(codes.tobytes(), len(numbers)) for codes in lists], np.int64)
    first, lows, highs = [0], [], []
    for encoded in numbers:
        codes = np.frombuffer(encoded, np.int64)
        breaks = np.flatnonzero(np.diff(codes) > 1)
        if len(codes):
            lows.append(codes[np.concatenate([[0], breaks + 1])])
            highs.append(codes[np.concatenate([breaks, [len(codes) - 1]])])
        first.append(first[-1] + (len(breaks) + 1 if len(codes) else 0))
    none = [np.zeros(0, np.int64)]
    return CodeSets(
        number_of[rows], np.array(first, np.int64), np.concatenate(lows or none), np.concatenate(highs or none)
    )


def used(sets: CodeSets) -> CodeSets:
    """Leave out the sets without a row, such as that of missing cells if no cell is missing."""
    numbers, set_of_row = np.unique(sets.set_of_row, return_inverse=True)
    return sets.only(numbers)._replace(set_of_row=set_of_row.astype(np.int64))


def coarsen(codes: NDArray[np.int64], n_codes: int, sets: CodeSets) -> tuple[NDArray[np.int32], int, CodeSets]:
    """Merge codes that the sets do not distinguish; returns codes, their number, and the sets."""
    begins = np.unique(np.concatenate([[0], sets.low, sets.high + 1]))
    begins = begins[begins < n_codes]
    place = np.searchsorted(begins, np.arange(n_codes), side="right") - 1
    coarse = sets._replace(low=place[sets.low], high=place[sets.high])
    return place[codes].astype(np.int32), max(len(begins), 1), coarse


def partition_of(sets: CodeSets, n_codes: int) -> NDArray[np.int64] | None:
    """Return the set of each code (-1 for none) if no two sets share one; else None."""
    if int((sets.high - sets.low + 1).sum()) > n_codes:
        return None
    set_of_code = np.full(n_codes, -1, np.int64)
    lengths = sets.high - sets.low + 1
    members = np.repeat(sets.low - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths) + np.arange(lengths.sum())
    if len(np.unique(members)) < len(members):
        return None
    set_of_code[members] = np.repeat(sets.set_of_range, lengths)
    return set_of_code
