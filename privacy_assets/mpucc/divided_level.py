"""Division of a level of the mpUCC search into tasks that need only some of the rows.

Rows that agree on a combination agree on its first column, the *pivot*. So the rows are put into buckets by the pivot
and a hash of its code, and every combination is searched in the buckets of its own pivot. A bucket that has too many
rows, because some code is frequent, is divided again by each further column, down to whole combinations; a bucket of
a whole combination of any size is small, because two rows of each side represent all with the same codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LARGEST_SHARE = 2
"""A bucket of more than this many times the rows of a task is divided."""


class Bucket(NamedTuple):
    """Rows whose code in a column has one hash."""

    column: int
    n_buckets: int
    number: int


class Part(NamedTuple):
    """Tasks that have the rows of some buckets of the same columns.

    Attributes
    ----------
    within : tuple of Bucket
        The buckets of all columns before the last one.
    column, n_buckets : int
        The last column by which rows are put into buckets.
    numbers : tuple of int
        Its buckets that are tasks of this part; the others are divided.
    first_task : int
        The task of bucket 0.
    begin, stop : int
        The combinations that begin with the columns of this part.
    is_whole : bool
        Whether there is one such combination, which has no other columns.
    is_base : bool
        Whether the tasks say only if the columns of this part have live classes.
    is_thinned : bool
        Whether a few rows of equal codes represent all.
    """

    within: tuple[Bucket, ...]
    column: int
    n_buckets: int
    numbers: tuple[int, ...]
    first_task: int
    begin: int
    stop: int
    is_whole: bool
    is_base: bool
    is_thinned: bool

    @property
    def prefix(self) -> list[int]:
        """The columns that rows were put into buckets by."""
        return [*(bucket.column for bucket in self.within), self.column]


def bucket_numbers(codes: NDArray[Any], n_buckets: int) -> NDArray[np.int64]:
    """Return the bucket of each code, from 0 to ``n_buckets - 1``."""
    # Fibonacci hashing, as in `code_blocks`: neighboring codes are often equally frequent.
    mixed = (codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)
    return mixed.astype(np.int64) % n_buckets


def rows_within(columns: Sequence[NDArray[Any]], within: tuple[Bucket, ...]) -> NDArray[np.int64] | None:
    """Return the positions of the rows in all of the buckets; None for all rows."""
    rows: NDArray[np.int64] | None = None
    for column, n_buckets, number in within:
        codes = columns[column] if rows is None else columns[column][rows]
        kept = np.flatnonzero(bucket_numbers(codes, n_buckets) == number)
        rows = kept if rows is None else rows[kept]
    return rows


class Division:
    """The parts of a level, for combinations of one size in lexicographic order."""

    def __init__(
        self,
        columns: Sequence[NDArray[Any]],
        n_codes: Sequence[int],
        combos: NDArray[np.int16],
        rows_per_task: int,
    ) -> None:
        self.columns, self.n_codes, self.combos = columns, n_codes, combos
        self.rows_per_task = rows_per_task
        self.size = combos.shape[1]
        self.parts: list[Part] = []
        self.n_tasks = 0
        self._divide((), 0, len(combos))

    def _divide(self, within: tuple[Bucket, ...], begin: int, stop: int) -> None:
        """Add the parts of all combinations from ``begin`` to ``stop``, which begin with the columns of ``within``."""
        rows = rows_within(self.columns, within)
        last = self.combos[begin:stop, len(within)]
        for column in np.unique(last):
            first, end = np.searchsorted(last, [column, column + 1])
            self._divide_by(int(column), within, begin + int(first), begin + int(end), rows)

    def _divide_by(
        self, column: int, within: tuple[Bucket, ...], begin: int, stop: int, rows: NDArray[np.int64] | None
    ) -> None:
        codes = self.columns[column] if rows is None else self.columns[column][rows]
        n_wanted = -(-len(codes) // self.rows_per_task)
        n_buckets = max(1, min(int(self.n_codes[column]), n_wanted))
        is_whole = len(within) + 1 == self.size
        is_thinned = is_whole or self._has_few_tuples(column, within)
        n_rows = np.bincount(bucket_numbers(codes, n_buckets), minlength=n_buckets)
        is_large = (n_rows > LARGEST_SHARE * self.rows_per_task) & (not is_thinned)
        self._add(within, column, n_buckets, np.flatnonzero((n_rows > 0) & ~is_large), begin, stop, False, is_thinned)
        for number in np.flatnonzero(is_large).tolist():
            if len(within) + 2 == self.size:
                # The parts of whole combinations do not see whole classes of the combination before.
                self._add(within, column, n_buckets, np.array([number]), begin, stop, True, True)
            self._divide((*within, Bucket(column, n_buckets, number)), begin, stop)

    def _add(
        self,
        within: tuple[Bucket, ...],
        column: int,
        n_buckets: int,
        numbers: NDArray[np.int64],
        begin: int,
        stop: int,
        is_base: bool,
        is_thinned: bool,
    ) -> None:
        if len(numbers):
            kept = tuple(numbers.tolist())
            is_whole = len(within) + 1 == self.size
            part = Part(within, column, n_buckets, kept, self.n_tasks, begin, stop, is_whole, is_base, is_thinned)
            self.parts.append(part)
            self.n_tasks += n_buckets

    def _has_few_tuples(self, column: int, within: tuple[Bucket, ...]) -> bool:
        """Return whether at most a task's rows are left if a few rows represent all with equal codes."""
        n_tuples = 4
        for c in [*(bucket.column for bucket in within), *range(column, len(self.n_codes))]:
            n_tuples *= max(int(self.n_codes[c]), 1)
            if n_tuples > self.rows_per_task:
                return False
        return True


def number_tuples(columns: Sequence[NDArray[Any]], n_codes: Sequence[int]) -> NDArray[np.int64]:
    """Give rows with equal codes in all columns one number."""
    keys = np.zeros(len(columns[0]), np.int64)
    n_keys = 1
    for codes, n in zip(columns, n_codes, strict=True):
        if n_keys * n >= 1 << 62:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
            n_keys = len(keys)
        keys = keys * n + codes
        n_keys *= n
    return keys


class Rows(NamedTuple):
    """Rows of a task; arrays of shape (n_rows,).

    ``number`` (int64) is the row of the search, ``side`` (int8) 0 for open synthetic rows, 1 for other synthetic rows
    and 2 for originals, ``weight`` (int32) its records, ``person`` (int32) the person of an original, or empty.
    """

    number: NDArray[np.int64]
    side: NDArray[np.int8]
    weight: NDArray[np.int32]
    person: NDArray[np.int32]

    def take(self, kept: NDArray[np.int64]) -> Rows:
        """Return some of the rows."""
        return Rows(
            self.number[kept],
            self.side[kept],
            self.weight[kept],
            self.person[kept] if len(self.person) else self.person,
        )


def thin(keys: NDArray[np.int64], rows: Rows, most_records: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Choose rows that represent all of those with equal keys; return their positions and weights.

    These are two synthetic rows, open ones first, and two originals. By person they are one more synthetic row than
    the records of anybody, and the first original row of two people, each with all records of that person.
    """
    by_person = len(rows.person) > 0
    is_original = rows.side == 2
    synthetic, original = np.flatnonzero(~is_original), np.flatnonzero(is_original)
    order = synthetic[np.lexsort((rows.number[synthetic], rows.side[synthetic], keys[synthetic]))]
    kept = order[_ranks(keys[order]) < (most_records + 1 if by_person else 2)]
    weight = rows.weight.copy()
    if by_person and len(original):
        original = original[np.lexsort((rows.number[original], rows.person[original], keys[original]))]
        person, key = rows.person[original], keys[original]
        begins = np.flatnonzero(np.append(True, (person[1:] != person[:-1]) | (key[1:] != key[:-1])))
        firsts = original[begins]
        weight[firsts] = np.add.reduceat(rows.weight[original], begins)
        original = firsts
    else:
        original = original[np.lexsort((rows.number[original], keys[original]))]
    kept = np.concatenate([kept, original[_ranks(keys[original]) < 2]])
    return kept, weight[kept]


def _ranks(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each sorted key in its run of equal ones, from 0."""
    places = np.arange(len(keys))
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = keys[1:] != keys[:-1]
    return places - np.maximum.accumulate(np.where(is_first, places, 0)) if len(keys) else places
