"""Evidence by the nearest synthetic record: guesses of values, distances, and how surprising the closest one is."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privacy_assets.disclosure.codes import Codes
from privacy_assets.disclosure.criteria import Evidence, number_of_closest
from privacy_assets.disclosure.kernels.nearest import (
    LARGEST_DISTANCE,
    Compared,
    Grids,
    find_closest,
    guess_values,
    nearest_distances,
)
from privacy_assets.disclosure.pooled_records import (
    LARGEST_INT16,
    PooledRecords,
    count_values,
    distance_codes,
)
from privacy_assets.disclosure.scores import Attack, Workers

_RowsOfPeople: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
EQUALITY: Final = 4.0
"""Closeness of an equal value beyond that of its frequency, in nats; a copy loses it for each different value."""
UNITS_PER_NAT: Final = 1_000.0
ROWS_AT_ONCE: Final = 1 << 16
"""Records of a block."""


def guess_from_nearest(
    records: PooledRecords, attack: Attack, workers: Workers, whole: Evidence | None = None
) -> Evidence:
    """Return the probability that the nearest record guesses each value right: ``guessed``, (n_columns, n_scored).

    If it is also asked who is missing, the ``relative_distance``, of shape (n_scored,), is the logarithm of the
    distance to the nearest synthetic record, plus one unit, minus that of the distance to the nearest record of another
    real person.
    """
    needed, binned = Distances(records, attack), records.binned
    real, values = needed.codes.real.take(attack.rows), binned.real.take(attack.rows)
    n_scored, found = len(attack.rows), Guesses.none(len(attack.rows), len(records.columns))
    blocks = list(row_blocks(records.n_synthetic))
    workers.begin("guessing", n_scored * len(blocks))
    columns = records.is_number, needed.is_known, needed.unit, values
    for rows in blocks:
        block = needed.codes.synthetic.take(rows), *columns, binned.synthetic.take(rows)
        workers.spread(n_scored, guess_values, real, *block, *found)
    if whole is not None or attack.is_counted:
        return {"guessed": found.guessed}

    def distance(stage: str, real: NDArray[Any], others: Codes, owners: NDArray[np.int32]) -> NDArray[np.int64]:
        blocks, found = list(row_blocks(others.n_records)), np.full(n_scored, LARGEST_DISTANCE, np.int64)
        workers.begin(stage, n_scored * len(blocks))
        for rows in blocks:
            block = others.take(rows), records.is_number, needed.unit
            own = rows_of_people(owners[rows], records.people[attack.rows])
            workers.spread(n_scored, nearest_distances, real, *block, *own, found)
        return found

    to_synthetic = found.nearest
    if not needed.is_known.all():
        of_nobody = np.full(records.n_synthetic, -1, np.int32)
        to_synthetic = distance("nearest synthetic record", real, needed.codes.synthetic, of_nobody)
    among = needed.among_real
    to_others = distance("nearest other person", among.take(attack.rows), among, records.people)
    return {"guessed": found.guessed, "relative_distance": relative_distance(to_synthetic, to_others)}


def relative_distance(to_synthetic: NDArray[np.int64], to_others: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the logarithm of the distance to synthetic records, minus that of the distance to other people."""
    return np.log(to_synthetic + 1) - np.log(to_others + 1)


def rows_of_people(owners: NDArray[np.int32], people: NDArray[np.int32]) -> _RowsOfPeople:
    """Return rows in the order of their owners, and by person, where theirs begin and end among them."""
    rows = np.argsort(owners, kind="stable")
    begin, end = (np.searchsorted(owners, people, side, rows) for side in ("left", "right"))
    return rows, begin, end


class Closest:
    """What is needed to find the closest synthetic records: tables by code, and the examined records.

    Attributes
    ----------
    places, middles : list of ndarray of shape (n_codes,), or None
        By column, position in the grid of numbers, and the middle of their ranks; see `Compared`.
    grids : Grids
    """

    def __init__(self, records: PooledRecords, rows: NDArray[np.int64]) -> None:
        counts = np.arange(1, records.n_real + 1)
        weights = np.rint(-np.log(counts / records.n_real) * UNITS_PER_NAT).astype(np.int32)
        weights = np.concatenate([weights[:1], weights])
        equal = np.zeros((len(records.columns), len(rows)), np.int32)
        self.places: list[NDArray[np.int32] | None] = []
        self.middles: list[NDArray[np.float32]] = []
        grids, below = [np.zeros(0)], [np.zeros(0, np.int64)]
        for j, numbers in enumerate(records.values):
            codes, n_codes = records.exact.real[j], max(int(records.n_exact[j]), 1)
            n_of_code = np.bincount(codes, minlength=n_codes)
            if records.is_number[j]:
                grid, n_with = count_values(numbers, codes)
                is_missing = np.isnan(numbers)
                up_to = np.cumsum(n_with)
                # -1, the place of missing values, is the last.
                place = np.where(is_missing, -1, np.searchsorted(grid, numbers)).astype(np.int32)
                of_place = np.append(n_with, n_of_code[is_missing].sum())[place[codes[rows]]]
                self.places.append(place)
                self.middles.append(np.append(up_to - n_with / 2, np.inf).astype(np.float32)[place])
                grids.append(grid)
                below.append(np.concatenate([[0], up_to]))
            else:
                of_place = n_of_code[codes[rows]]
                self.places.append(None)
                self.middles.append(np.full(n_codes, np.inf, np.float32))
                grids.append(np.zeros(0))
                below.append(np.zeros(1, np.int64))
            equal[j] = weights[of_place] + round(EQUALITY * UNITS_PER_NAT)
        first = np.cumsum([len(grid) for grid in grids])
        self.grids = Grids(weights, np.concatenate(grids), np.concatenate(below), first)
        exact = records.exact.real
        real, real_middles = exact.by(self.places).take(rows), exact.by(self.middles, np.float32).take(rows)
        no_middles = np.zeros((len(equal), 0), np.float32)
        by_column = records.is_number, equal, UNITS_PER_NAT, records.n_real
        self._of_nothing = Compared(real, no_middles.astype(np.int32), real_middles, no_middles, *by_column)

    @property
    def n_scored(self) -> int:
        """Number of examined records."""
        return int(self._of_nothing.real.shape[1])

    def compared(self, synthetic: Codes, rows: NDArray[np.int64] | slice) -> Compared:
        """Return the examined records together with some synthetic ones, given as exact codes."""
        block = synthetic.by(self.places).take(rows)
        return self._of_nothing._replace(block=block, middles=synthetic.by(self.middles, np.float32).take(rows))

    def without_values(self) -> Closest:
        """Return the same, with no number of a table, for tasks."""
        found = copy(self)
        found.grids = self.grids._replace(numbers=np.zeros(0))
        return found


def find_closest_records(
    records: PooledRecords, attack: Attack, workers: Workers, _: Evidence | None = None
) -> Evidence:
    """Return the ``closeness`` of the closest synthetic record, of shape (n_scored,), and how many count as closest."""
    needed, blocks = Closest(records, attack.rows), list(row_blocks(records.n_synthetic))
    workers.begin("near copies", len(attack.rows) * len(blocks))
    return {"closeness": closest_in(records, needed, blocks, workers), "n_closest": n_closest_of(records, attack)}


def closest_in(records: PooledRecords, needed: Closest, blocks: list[slice], workers: Workers) -> NDArray[np.int32]:
    """Return the closeness of the closest synthetic records of some blocks."""
    closeness = np.full(needed.n_scored, -1, np.int32)
    for rows in blocks:
        compared = needed.compared(records.exact.synthetic, rows)
        workers.spread(len(closeness), find_closest, compared, needed.grids, closeness)
    return closeness


def n_closest_of(records: PooledRecords, attack: Attack) -> NDArray[np.float64]:
    """Return how many of the examined records count as closest, of shape ()."""
    return np.array(number_of_closest(len(attack.rows), records.n_original_people / records.n_people))


class Distances:
    """What is needed to find the nearest records: codes, the largest distance of a column, and the known columns.

    ``among_real`` are the codes of real records by which they are compared with each other: categories that only real
    people have equal no synthetic one, but differ from each other.
    """

    def __init__(self, records: PooledRecords, attack: Attack) -> None:
        self.codes, self.unit = distance_codes(records)
        self.is_known = np.zeros(len(records.columns), np.bool_)
        self.is_known[attack.known] = True
        real = self.codes.real
        tables = [table if is_own else None for table, is_own in zip(real.tables, records.is_number, strict=True)]
        largest = max(int(own.max()) for own in real.by(tables))
        self.among_real = real.by(tables, np.int16 if largest <= LARGEST_INT16 else np.int32)


class Guesses(NamedTuple):
    """Guesses from the nearest of the records so far; see `guess_values`."""

    nearest: NDArray[np.int64]
    least: NDArray[np.int32]
    n_nearest: NDArray[np.int32]
    n_right: NDArray[np.int32]

    @classmethod
    def none(cls, n_scored: int, n_columns: int) -> Guesses:
        """Return guesses from no records."""
        shape = n_scored, n_columns
        least = np.full(shape, LARGEST_DISTANCE, np.int32)
        nearest = np.full(n_scored, LARGEST_DISTANCE, np.int64)
        return cls(nearest, least, np.zeros(shape, np.int32), np.zeros(shape, np.int32))

    @property
    def guessed(self) -> NDArray[np.float64]:
        """Probability that the nearest record guesses each value right, of shape (n_columns, n_scored)."""
        return np.ascontiguousarray((self.n_right / self.n_nearest).T)


def row_blocks(n_records: int) -> Iterator[slice]:
    """Return the places of the records that are compared at once."""
    return (slice(begin, min(begin + ROWS_AT_ONCE, n_records)) for begin in range(0, n_records, ROWS_AT_ONCE))
