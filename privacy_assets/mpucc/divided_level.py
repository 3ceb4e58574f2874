"""Division of a level of the mpUCC search into tasks that need only some of the rows.

Rows that agree on a combination agree on its first column, the *pivot*. So the rows are divided into buckets by the
pivot and a hash of its code, and every combination is searched in the buckets of its pivot. A bucket that receives too
many rows, because some code is frequent, is divided again by each further column, down to whole combinations.

If columns have few codes, rows are dropped before they are sent: a few of them represent all with equal codes. They do
so in each blob of rows that is sent, so the number of rows that a task receives grows with the number of blobs. A
bucket of a whole combination is not divided again, because a few rows of each blob represent its frequent codes. If
people are counted, there are as many of these rows as one person has records, so such a bucket may be larger if
somebody has very many.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LARGEST_SHARE = 2
"""A bucket that receives more than this many times the rows of a task is divided."""

FEW_CODES = 4
"""Each code of a column has a bucket of its own if there are at most this many times the requested buckets."""


class Bucket(NamedTuple):
    """Rows whose codes in a column have the same hash."""

    column: int
    n_buckets: int
    number: int


class Part(NamedTuple):
    """Tasks that have the rows of some buckets of the same columns.

    ``within`` are the buckets of all columns before the last one, ``numbers`` the buckets of that column that are tasks
    of this part (bucket 0 is ``first_task``); the others are divided. ``begin`` to ``stop`` are the combinations that
    begin with these columns; ``is_whole`` if it is only one, without other columns. The tasks of a base only report if
    its columns have live classes; in a thinned part, a few rows of equal codes represent all.
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
        """The columns by which rows were divided into buckets."""
        return [*(bucket.column for bucket in self.within), self.column]


def bucket_numbers(codes: NDArray[Any], n_codes: int, n_buckets: int) -> NDArray[Any]:
    """Return the bucket of each code, from 0 to ``n_buckets - 1``; each code has its own if there are enough."""
    if n_buckets >= n_codes:
        return codes
    if n_codes < len(codes):
        # Each code is hashed once.
        numbers: NDArray[Any] = bucket_numbers(np.arange(n_codes), n_codes, n_buckets)[codes]
        return numbers
    # Fibonacci hashing, as in `code_blocks`: neighboring codes are often equally frequent.
    mixed = (codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)
    return (mixed % np.uint64(n_buckets)).astype(np.min_scalar_type(n_buckets - 1))


class BucketRows:
    """The rows in buckets, and how many of them have each code; of all rows counted once, for all levels of a search.

    Only what belongs to the last buckets asked for, and to those that contain them, is kept.
    """

    def __init__(self, columns: Sequence[NDArray[Any]], n_codes: Sequence[int]) -> None:
        self.columns, self.n_codes = columns, [max(int(n), 1) for n in n_codes]
        self._rows: dict[tuple[Bucket, ...], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self._counts: dict[tuple[tuple[Bucket, ...], int], NDArray[np.int64]] = {}

    def rows(self, within: tuple[Bucket, ...]) -> NDArray[np.int64] | None:
        """Return the positions of the rows in all of the buckets; None for all rows."""
        return self._rows_and_others(within)[0] if within else None

    def count(self, column: int, within: tuple[Bucket, ...]) -> NDArray[np.int64]:
        """Return how many rows in all of the buckets have each code of a column."""
        if (within, column) not in self._counts:
            codes, counts_others = self.columns[column], False
            if within:
                rows, others = self._rows_and_others(within)
                counts_others = len(others) < len(rows)
                codes = codes[others if counts_others else rows]
            counts = np.bincount(codes, minlength=self.n_codes[column])
            self._counts[within, column] = self.count(column, within[:-1]) - counts if counts_others else counts
        return self._counts[within, column]

    def release(self) -> None:
        """Release the rows, and how many of those in buckets have each code."""
        self._keep(())

    def _rows_and_others(self, within: tuple[Bucket, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows in all of the buckets, and those in all before the last one but not in it."""
        if within not in self._rows:
            before, (column, n_buckets, number) = self.rows(within[:-1]), within[-1]
            codes = self.columns[column] if before is None else self.columns[column][before]
            is_within = bucket_numbers(codes, self.n_codes[column], n_buckets) == number
            rows, others = np.flatnonzero(is_within), np.flatnonzero(~is_within)
            self._keep(within)
            self._rows[within] = (rows, others) if before is None else (before[rows], before[others])
        return self._rows[within]

    def _keep(self, within: tuple[Bucket, ...]) -> None:
        """Release everything but what belongs to buckets that contain these."""
        self._rows = {own: rows for own, rows in self._rows.items() if own == within[: len(own)]}
        self._counts = {key: counts for key, counts in self._counts.items() if key[0] == within[: len(key[0])]}


class Division:
    """The parts of a level, in the order of their tasks, for combinations of one size in lexicographic order.

    A task receives about ``rows_per_task`` rows, ``largest`` at most (without bases), and of equal codes at most
    ``rows_per_tuple``, if rows are thinned: see :func:`rows_per_tuple`.
    """

    def __init__(
        self,
        bucket_rows: BucketRows,
        combos: NDArray[np.int16],
        rows_per_task: int,
        rows_per_tuple: int,
    ) -> None:
        self.bucket_rows, self.n_codes, self.combos = bucket_rows, bucket_rows.n_codes, combos
        self.rows_per_task, self.rows_per_tuple = rows_per_task, rows_per_tuple
        self.size = combos.shape[1]
        self.parts: list[Part] = []
        self.n_tasks = 0
        self.largest = 0
        self._divide((), 1, 0, len(combos))
        bucket_rows.release()

    def _divide(self, within: tuple[Bucket, ...], n_tuples: int, begin: int, stop: int) -> None:
        """Add the parts of all combinations from ``begin`` to ``stop``, which begin with the columns of ``within``.

        These columns have at most ``n_tuples`` tuples of codes in these buckets.
        """
        last = self.combos[begin:stop, len(within)]
        for column in np.unique(last).tolist():
            first, end = np.searchsorted(last, [column, column + 1])
            self._divide_by(column, within, n_tuples, begin + int(first), begin + int(end))

    def _divide_by(self, column: int, within: tuple[Bucket, ...], n_tuples: int, begin: int, stop: int) -> None:
        n_codes, rows_of_code = self.n_codes[column], self.bucket_rows.count(column, within)
        is_whole = len(within) + 1 == self.size
        # Most rows with one code of this column that are sent, if they are thinned.
        most_of_code = self.rows_per_tuple * n_tuples * (1 if is_whole else prod(self.n_codes[column + 1 :]))
        n_rows = int(rows_of_code.sum())
        # Thinning sorts the rows, which is worth it if at least half of them are dropped.
        is_thinned = is_whole or 2 * most_of_code * n_codes <= n_rows
        sent_of_code = np.minimum(rows_of_code, min(most_of_code, n_rows)) if is_thinned else rows_of_code
        n_wanted = max(-(-int(sent_of_code.sum()) // self.rows_per_task), 1)
        # If codes are few, each has its own bucket, because two frequent ones could have the same hash.
        n_buckets = n_wanted if n_wanted <= 1 or n_codes > FEW_CODES * n_wanted else n_codes
        bucket_of_code = bucket_numbers(np.arange(n_codes), n_codes, n_buckets)
        n_sent, n_own_codes = (
            np.bincount(bucket_of_code, weights, n_buckets).astype(np.int64) for weights in (sent_of_code, None)
        )
        is_large = (n_sent > LARGEST_SHARE * self.rows_per_task) & (not is_whole)
        self._add(within, column, n_buckets, np.flatnonzero((n_sent > 0) & ~is_large), begin, stop, False, is_thinned)
        self.largest = max(self.largest, int(n_sent[~is_large].max(initial=0)))
        for number in np.flatnonzero(is_large).tolist():
            if len(within) + 2 == self.size:
                # The parts of whole combinations do not contain whole classes of the previous combination.
                self._add(within, column, n_buckets, np.array([number]), begin, stop, True, True)
            self._divide((*within, Bucket(column, n_buckets, number)), n_tuples * int(n_own_codes[number]), begin, stop)

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


def number_tuples(columns: Sequence[NDArray[Any]], n_codes: Sequence[int]) -> NDArray[Any]:
    """Give rows with equal codes in all columns one number, in a small type if there are few."""
    keys = np.zeros(len(columns[0]), np.int64)
    n_keys = 1
    for codes, n in zip(columns, n_codes, strict=True):
        if n_keys * n >= 1 << 62:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
            n_keys = len(keys)
        keys = keys * n + codes
        n_keys *= n
    # Numbers of 16 bits are sorted in linear time.
    return keys.astype(np.uint16) if n_keys <= 1 << 16 else keys


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


def rows_per_tuple(n_blobs: int, most_records: int, by_person: bool) -> int:
    """Return the most rows with equal codes that a task receives, if each blob of rows is thinned."""
    return n_blobs * (most_records + 2 if by_person else 2)


def thin(keys: NDArray[Any], rows: Rows, most_records: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Choose rows that represent all of those with equal keys; return their positions in ascending order, and weights.

    The rows are sorted by side, and by number if there are people. If there are more synthetic records than
    ``most_records``, the most of one person, nobody is identified, so the first row is kept with the weight
    ``most_records + 1``; otherwise all are kept. Of the originals, one row with a weight of up to two is kept, or if
    people are counted the first row of two people, each with all records of that person.
    """
    n_synthetic = int(np.searchsorted(rows.side, 2))
    synthetic = np.argsort(keys[:n_synthetic], kind="stable")
    weight = rows.weight.copy()
    synthetic = _merge_equal_rows(synthetic, keys[synthetic], weight, most_records)
    if len(rows.person) > 0:
        original = n_synthetic + np.lexsort((rows.person[n_synthetic:], keys[n_synthetic:]))
        person, key = rows.person[original], keys[original]
        begins = np.flatnonzero(_changes(person) | _changes(key))
        firsts = original[begins]
        if len(begins):
            weight[firsts] = np.add.reduceat(rows.weight[original], begins)
        original = firsts[_ranks(keys[firsts]) < 2]
    else:
        original = n_synthetic + np.argsort(keys[n_synthetic:], kind="stable")
        original = _merge_equal_rows(original, keys[original], weight, 1)
    kept = np.sort(np.concatenate([synthetic, original]))
    return kept, weight[kept]


def _merge_equal_rows(
    rows: NDArray[np.int64], keys: NDArray[Any], weight: NDArray[np.int32], most: int
) -> NDArray[np.int64]:
    """Keep one of the rows with equal keys if they have more than ``most`` records, and set its weight accordingly."""
    begins = np.flatnonzero(_changes(keys))
    if len(begins) == 0:
        return rows
    total = np.add.reduceat(weight[rows], begins, dtype=np.int64)
    is_dropped = np.repeat(total > most, np.diff(np.append(begins, len(rows))))
    is_dropped[begins] = False
    weight[rows[begins[total > most]]] = most + 1
    return rows[~is_dropped]


def _changes(sorted_values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the positions where a sorted array begins or its value changes."""
    is_first = np.ones(len(sorted_values), np.bool_)
    is_first[1:] = sorted_values[1:] != sorted_values[:-1]
    return is_first


def _ranks(keys: NDArray[Any]) -> NDArray[np.int64]:
    """Return the position of each sorted key in its run of equal ones, from 0."""
    places = np.arange(len(keys))
    return places - np.maximum.accumulate(np.where(_changes(keys), places, 0)) if len(keys) else places
