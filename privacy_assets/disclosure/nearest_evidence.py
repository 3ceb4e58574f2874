"""Evidence by the nearest synthetic record: guesses of values, distances, and how surprising the closest one is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privacy_assets.disclosure.codes import Codes
from privacy_assets.disclosure.criteria import Evidence, number_of_closest
from privacy_assets.disclosure.kernels.nearest import (
    LARGEST_DISTANCE,
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
    codes, unit = distance_codes(records)
    is_known = np.zeros(len(records.columns), np.bool_)
    is_known[attack.known] = True
    real, values = codes.real.take(attack.rows), records.binned.real.take(attack.rows)
    n_scored, binned = len(attack.rows), records.binned.synthetic
    to_synthetic = np.full(n_scored, LARGEST_DISTANCE, np.int64)
    least = np.full((n_scored, len(values)), LARGEST_DISTANCE, np.int32)
    n_nearest, n_right = np.zeros_like(least), np.zeros_like(least)
    blocks = list(_blocks(records.n_synthetic))
    workers.begin("guessing", n_scored * len(blocks))
    columns = records.is_number, is_known, unit, values
    for rows in blocks:
        block = codes.synthetic.take(rows), *columns, binned.take(rows)
        workers.spread(n_scored, guess_values, real, *block, to_synthetic, least, n_nearest, n_right)
    guessed = np.ascontiguousarray((n_right / n_nearest).T)
    if whole is not None or attack.is_counted:
        return {"guessed": guessed}
    person = records.people[attack.rows]

    def distance(stage: str, real: NDArray[Any], others: Codes, owners: NDArray[np.int32]) -> NDArray[np.int64]:
        blocks, found = list(_blocks(others.n_records)), np.full(n_scored, LARGEST_DISTANCE, np.int64)
        workers.begin(stage, n_scored * len(blocks))
        for rows in blocks:
            whose = owners[rows]
            own_rows = np.argsort(whose, kind="stable")
            of_person = (np.searchsorted(whose, person, side, own_rows) for side in ("left", "right"))
            block = others.take(rows), records.is_number, unit, own_rows, *of_person
            workers.spread(n_scored, nearest_distances, real, *block, found)
        return found

    if not is_known.all():
        of_nobody = np.full(records.n_synthetic, -1, np.int32)
        to_synthetic = distance("nearest synthetic record", real, codes.synthetic, of_nobody)
    # Categories that only real people have equal no synthetic one, but differ from each other.
    tables = [table if is_own else None for table, is_own in zip(codes.real.tables, records.is_number, strict=True)]
    largest = max(int(own.max()) for own in codes.real.by(tables))
    among_real = codes.real.by(tables, np.int16 if largest <= LARGEST_INT16 else np.int32)
    to_others = distance("nearest other person", among_real.take(attack.rows), among_real, records.people)
    return {"guessed": guessed, "relative_distance": np.log(to_synthetic + 1) - np.log(to_others + 1)}


def find_closest_records(
    records: PooledRecords, attack: Attack, workers: Workers, _: Evidence | None = None
) -> Evidence:
    """Return the ``closeness`` of the closest synthetic record, of shape (n_scored,), and how many count as closest."""
    n_columns, n_scored = len(records.columns), len(attack.rows)
    counts = np.arange(1, records.n_real + 1)
    weights = np.rint(-np.log(counts / records.n_real) * UNITS_PER_NAT).astype(np.int32)
    weights = np.concatenate([weights[:1], weights])
    equal = np.zeros((n_columns, n_scored), np.int32)
    grids, below = [np.zeros(0)], [np.zeros(0, np.int64)]
    places: list[NDArray[np.int32] | None] = []
    middles: list[NDArray[np.float32]] = []
    for j, numbers in enumerate(records.values):
        codes, n_codes = records.exact.real[j], max(int(records.n_exact[j]), 1)
        n_of_code = np.bincount(codes, minlength=n_codes)
        if records.is_number[j]:
            grid, n_with = count_values(numbers, codes)
            is_missing = np.isnan(numbers)
            up_to = np.cumsum(n_with)
            # -1, the place of missing values, is the last.
            place = np.where(is_missing, -1, np.searchsorted(grid, numbers)).astype(np.int32)
            of_place = np.append(n_with, n_of_code[is_missing].sum())[place[codes[attack.rows]]]
            places.append(place)
            middles.append(np.append(up_to - n_with / 2, np.inf).astype(np.float32)[place])
            grids.append(grid)
            below.append(np.concatenate([[0], up_to]))
        else:
            of_place = n_of_code[codes[attack.rows]]
            places.append(None)
            middles.append(np.full(n_codes, np.inf, np.float32))
            grids.append(np.zeros(0))
            below.append(np.zeros(1, np.int64))
        equal[j] = weights[of_place] + round(EQUALITY * UNITS_PER_NAT)
    first_of_grid = np.cumsum([len(grid) for grid in grids])
    real, synthetic = records.exact.by(places)
    real_middles, synthetic_middles = (codes.by(middles, np.float32) for codes in records.exact)
    closeness = np.full(n_scored, -1, np.int32)
    by_grid = records.is_number, equal, weights, np.concatenate(grids), np.concatenate(below), first_of_grid
    scored, own_middles = (own.take(attack.rows) for own in (real, real_middles))
    blocks = list(_blocks(records.n_synthetic))
    workers.begin("near copies", n_scored * len(blocks))
    for rows in blocks:
        block = synthetic.take(rows)
        by_middle = UNITS_PER_NAT, own_middles, synthetic_middles.take(rows)
        workers.spread(n_scored, find_closest, scored, block, *by_grid, *by_middle, closeness)
    n_closest = number_of_closest(n_scored, records.n_original_people / records.n_people)
    return {"closeness": closeness, "n_closest": np.array(n_closest)}


def _blocks(n_records: int) -> Iterator[slice]:
    return (slice(begin, min(begin + ROWS_AT_ONCE, n_records)) for begin in range(0, n_records, ROWS_AT_ONCE))
