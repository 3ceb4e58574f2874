"""The nearest synthetic record of each real record: by Gower's distance, and by how surprising its agreement is.

Both compare all pairs, column by column over many records at once, in integers, so that ties are exact. Records are
compared in blocks, in any order; what was found in some is kept in arrays that are modified in place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import allocating_part, kernel, part
from privacy_assets.kernels.sorting import place_in

BLOCK = 4096
"""Synthetic records that are compared at once, so that their sums stay in the nearest cache."""
SPARE_BITS = 12
"""Bits of a logarithm that are cut off, so that sums of 30,000 columns, each of at most 32 bits, are below 2**31."""
UNITS_PER_BIT, BITS_OF_ONE = 1 << (23 - SPARE_BITS), 127 << (23 - SPARE_BITS)
MOST_NATS = 80
"""Of a product, so that no float is too small for it."""
SLACK = 0.000001
"""Rounding of the factor of a column and of its product, at most, in bits."""
STRETCH = 128
"""Synthetic records that are searched together, if the smallest distance among them is small enough."""
LARGEST_DISTANCE = 65_535


@part
def _add_distances(
    total: NDArray[np.uint16], column: NDArray[np.integer], value: int, is_number: bool, unit: np.uint16
) -> None:
    """Add the distances of a column to a value; numbers are at most one unit apart."""
    if is_number:
        for i in range(len(total)):
            total[i] += min(np.uint16(abs(np.int16(column[i] - value))), unit)
    else:
        for i in range(len(total)):
            total[i] += unit if column[i] != value else np.uint16(0)


@part
def _least(distances: NDArray[np.uint16]) -> np.uint16:
    least: np.uint16 = distances[0]
    for i in range(len(distances)):
        least = min(least, distances[i])
    return least


@part
def _find_below(total: NDArray[np.uint16], limit: int, found: NDArray[np.int32]) -> int:
    """Write the positions of totals up to a limit, and return how many there are."""
    n_found = 0
    for start in range(0, len(total), STRETCH):
        end = min(start + STRETCH, len(total))
        if _least(total[start:end]) > limit:
            continue
        for i in range(start, end):
            if total[i] <= limit:
                found[n_found] = i
                n_found += 1
    return n_found


@kernel
def guess_values(
    begin: int,
    stop: int,
    real: NDArray[np.integer],
    block: NDArray[np.integer],
    is_number: NDArray[np.bool_],
    is_known: NDArray[np.bool_],
    unit: int,
    real_values: NDArray[np.int32],
    values: NDArray[np.int32],
    nearest: NDArray[np.int64],
    least: NDArray[np.int32],
    n_nearest: NDArray[np.int32],
    n_right: NDArray[np.int32],
) -> None:
    """Guess each value of real records from the nearest synthetic record on the other known columns.

    Parameters
    ----------
    real, block : ndarray of shape (n_columns, n_records), int16 or int32
        Real records from ``begin`` to ``stop`` are compared with a block of synthetic ones. Numbers as positions from 0
        to ``unit``, and ``-unit - 1`` for missing ones; other values as codes. The distance of a column that
        ``is_number`` is that of positions, at most ``unit``; otherwise ``unit`` unless values are equal.
    unit : int
        Largest distance of a column; the distance over all columns is at most `LARGEST_DISTANCE` (not checked here).
    real_values, values : ndarray of shape (n_columns, n_records), dtype=int32
        A guess is right if these are equal.
    nearest : ndarray of shape (n_real,), dtype=int64
        Distance of the nearest synthetic record on all known columns; it begins with `LARGEST_DISTANCE`.
    least, n_nearest, n_right : ndarray of shape (n_real, n_columns), dtype=int32
        Smallest distance without each column, the number of records with it, and of those with the right value. They
        begin with `LARGEST_DISTANCE` and zeros.

    Notes
    -----
    Without one column, a record is nearer by at most ``unit``. So only records whose distance on all columns exceeds
    the smallest by at most that are examined column by column.
    """
    n_columns, n_synthetic = block.shape
    step = np.uint16(unit)
    near = np.empty(BLOCK, np.int32)
    for start in range(0, n_synthetic, BLOCK):
        end = min(start + BLOCK, n_synthetic)
        total = np.empty(end - start, np.uint16)
        for x in range(begin, stop):
            total[:] = 0
            for j in range(n_columns):
                if is_known[j]:
                    _add_distances(total, block[j, start:end], real[j, x], is_number[j], step)
            here = np.int64(_least(total))
            limit = np.int64(0)
            nearest[x] = min(nearest[x], here)
            for j in range(n_columns):
                limit = max(limit, min(np.int64(least[x, j]), here) + (unit if is_known[j] else 0))
            n_near = _find_below(total, int(limit), near) if here <= limit else 0
            for j in range(n_columns):
                column, own = block[j, start:end], real[j, x]
                for k in range(n_near):
                    i = near[k]
                    rest = np.int64(total[i])
                    if is_known[j] and is_number[j]:
                        rest -= min(abs(np.int64(column[i]) - own), unit)
                    elif is_known[j] and column[i] != own:
                        rest -= unit
                    if rest > least[x, j]:
                        continue
                    if rest < least[x, j]:
                        least[x, j] = rest
                        n_nearest[x, j] = 0
                        n_right[x, j] = 0
                    n_nearest[x, j] += 1
                    n_right[x, j] += values[j, start + i] == real_values[j, x]


@kernel
def nearest_distances(
    begin: int,
    stop: int,
    real: NDArray[np.integer],
    block: NDArray[np.integer],
    is_number: NDArray[np.bool_],
    unit: int,
    own_rows: NDArray[np.int64],
    first: NDArray[np.int64],
    end_of_own: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Find Gower's distance of records to the nearest of a block, except those of the same person.

    The codes are those of `guess_values`. The records of the block that belong to the person of a real record x are
    ``own_rows[first[x] : end_of_own[x]]``, ascending. ``found``, of shape (n_real,), begins with `LARGEST_DISTANCE`,
    and is modified in place.
    """
    n_others, step = block.shape[1], np.uint16(unit)
    for start in range(0, n_others, BLOCK):
        end = min(start + BLOCK, n_others)
        total = np.empty(end - start, np.uint16)
        for x in range(begin, stop):
            total[:] = 0
            for j in range(len(block)):
                _add_distances(total, block[j, start:end], real[j, x], is_number[j], step)
            own = own_rows[first[x] : end_of_own[x]]
            for k in range(place_in(own, start), len(own)):
                if own[k] >= end:
                    break
                total[own[k] - start] = LARGEST_DISTANCE
            found[x] = min(found[x], np.int64(_least(total)))


class Compared(NamedTuple):
    """Real records and a block of synthetic ones, by which bounds of their closeness are found.

    Attributes
    ----------
    real, block : ndarray of shape (n_columns, n_records), dtype=int32
        Numbers as positions in the grid of their column, -1 for missing ones; other values as codes.
    real_middles, middles : ndarray of shape (n_columns, n_records), dtype=float32
        Of numbers, the number of real records with smaller ones, and half of those with equal ones; infinity for
        missing ones.
    is_number : ndarray of shape (n_columns,), dtype=bool
    equal_weights : ndarray of shape (n_columns, n_real), dtype=int32
        Weight of a value equal to that of the real record.
    units : float
        Weights are logarithms, in this many units per nat.
    n_records : int
        Number of all real records.
    """

    real: NDArray[np.int32]
    block: NDArray[np.int32]
    real_middles: NDArray[np.float32]
    middles: NDArray[np.float32]
    is_number: NDArray[np.bool_]
    equal_weights: NDArray[np.int32]
    units: float
    n_records: int


class Grids(NamedTuple):
    """Numbers of all columns, by which the closeness of records is found exactly.

    Attributes
    ----------
    weights : ndarray of shape (n_records + 1,), dtype=int32
        Weight of a number that differs, by the number of real records that are at most as far away; descending.
    numbers, below
        Distinct numbers of all columns, ascending in each, and the number of real records below each (see `_weight`;
        one more entry per column).
    first : ndarray of shape (n_columns + 1,), dtype=int64
        Where the numbers of a column begin; ``below`` begins one later for each column before.
    """

    weights: NDArray[np.int32]
    numbers: NDArray[np.float64]
    below: NDArray[np.int64]
    first: NDArray[np.int64]


class _Bounds(NamedTuple):
    """Room for the records of a block: products and the same bits, sums of logarithms, and places that were found."""

    product: NDArray[np.float32]
    bits: NDArray[np.int32]
    total: NDArray[np.int32]
    found: NDArray[np.int32]


@part
def _weight(
    grid: NDArray[np.float64],
    below: NDArray[np.int64],
    weights: NDArray[np.int32],
    own: int,
    other: int,
) -> int:
    """Return the weight of a number that differs from the record's: that of the people at most as far away.

    The numbers are positions in the ``grid`` of distinct values, ascending; ``below`` has the number of real records
    with a value below each, and of all, ``weights`` the weight by number of records.
    """
    value = grid[own]
    distance = abs(grid[other] - value)
    first, last = min(own, other), max(own, other)
    # The other end is the last value that is near enough on the other side of the own value.
    if other > own:
        low, high = 0, own
        while low < high:
            middle = (low + high) // 2
            if value - grid[middle] <= distance:
                high = middle
            else:
                low = middle + 1
        first = low
    else:
        low, high = own, len(grid) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if grid[middle] - value <= distance:
                low = middle
            else:
                high = middle - 1
        last = low
    # Rounding can make the distances of neighbors equal.
    while first > 0 and value - grid[first - 1] <= distance:
        first -= 1
    while last < len(grid) - 1 and grid[last + 1] - value <= distance:
        last += 1
    return int(weights[below[last + 1] - below[first]])


@part
def _multiply_equal(product: NDArray[np.float32], values: NDArray[np.int32], own: int, factor: np.float32) -> None:
    for i in range(len(product)):
        product[i] = product[i] * factor if values[i] == own else product[i]


@part
def _multiply_between(
    product: NDArray[np.float32],
    middles: NDArray[np.float32],
    own: np.float32,
    factor: np.float32,
    per_record: np.float32,
    rounded: np.float32,
) -> None:
    """Multiply by the share of the real records between two numbers, all on one side, or by a factor if they are equal.

    No fewer are at most as far away. Missing numbers are at infinity, farther than all. Middles beyond the precision of
    a float can have been moved apart; by at most ``rounded`` more than the records that half of each leaves out.
    """
    for i in range(len(product)):
        share = max((abs(middles[i] - own) - rounded) * per_record, per_record)
        share = min(share, np.float32(1))
        product[i] *= factor if middles[i] == own else share


@part
def _add_logarithms(product: NDArray[np.float32], bits: NDArray[np.int32], total: NDArray[np.int32]) -> None:
    """Add the binary logarithms of products, in `UNITS_PER_BIT`, never too large, and set the products to 1.

    The bits of a float, ``bits``, are its logarithm with a straight line between powers of two.
    """
    for i in range(len(total)):
        total[i] += (bits[i] >> SPARE_BITS) - BITS_OF_ONE
    product[:] = 1


@part
def _find_least(total: NDArray[np.int32], limit: int, found: NDArray[np.int32]) -> int:
    """Write the positions of totals below a limit, and return how many there are."""
    n_found = 0
    for start in range(0, len(total), STRETCH):
        stretch = total[start : min(start + STRETCH, len(total))]
        n_below = np.int32(0)
        for i in range(len(stretch)):
            n_below += np.int32(stretch[i] < limit)
        if n_below:
            for i in range(len(stretch)):
                if stretch[i] < limit:
                    found[n_found] = start + i
                    n_found += 1
    return n_found


@allocating_part
def _no_bounds() -> _Bounds:
    product = np.empty(BLOCK, np.float32)
    return _Bounds(product, product.view(np.int32), np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32))


@part
def _write_bounds(x: int, start: int, end: int, compared: Compared, bounds: _Bounds) -> None:
    """Write bounds of the closeness of records of a block, from ``start`` to ``end``, to a real one.

    A weight is the rounded logarithm of a share of the people. The bounds are sums of logarithms of the shares, or of
    smaller ones that cost less: of numbers, the share of the real records between them.
    """
    n = end - start
    product, bits, total = bounds.product[:n], bounds.bits[:n], bounds.total[:n]
    product[:], total[:], nats = 1, 0, 0.0
    per_record = np.float32(1 / compared.n_records)
    rounded = np.float32(2.0 ** max(np.ceil(np.log2(compared.n_records)) - 24, 0.0) - 1)
    for j in range(len(compared.block)):
        own_nats = compared.equal_weights[j, x] / compared.units
        nats += own_nats
        if nats > MOST_NATS:
            _add_logarithms(product, bits, total)
            nats = own_nats
        factor = np.float32(np.exp(-own_nats))
        if compared.is_number[j] and compared.real[j, x] >= 0:
            middles, own = compared.middles[j, start:end], compared.real_middles[j, x]
            _multiply_between(product, middles, own, factor, per_record, rounded)
        else:
            _multiply_equal(product, compared.block[j, start:end], compared.real[j, x], factor)
    _add_logarithms(product, bits, total)


@part
def _find_candidates(total: NDArray[np.int32], closeness: int, compared: Compared, found: NDArray[np.int32]) -> int:
    """Write the positions of records that can be closer by their bounds, and return how many there are.

    Rounding changes each weight by half a unit at most.
    """
    n_columns = len(compared.block)
    most = (n_columns - closeness) / (compared.units * np.log(2)) + SLACK * n_columns
    return _find_least(total, int(np.ceil(most * UNITS_PER_BIT)), found)


@part
def _closeness(x: int, i: int, compared: Compared, grids: Grids) -> int:
    """Return the closeness of a record of a block to a real one."""
    total = 0
    for j in range(len(compared.block)):
        own, other = compared.real[j, x], compared.block[j, i]
        if own == other:
            total += compared.equal_weights[j, x]
        elif compared.is_number[j] and own >= 0 and other >= 0:
            first, last = grids.first[j], grids.first[j + 1]
            below = grids.below[first + j : last + j + 1]
            total += _weight(grids.numbers[first:last], below, grids.weights, own, other)
    return total


@kernel
def find_closest(begin: int, stop: int, compared: Compared, grids: Grids, closeness: NDArray[np.int32]) -> None:
    """Find how close the closest record of a block is to each real one.

    The closeness of two records is the sum of a weight over the columns, which is large if few real people are at most
    as far away. For values that are not numbers, and for missing values, only equality counts. ``closeness``, of shape
    (n_real,), has the largest sum of each; it begins with -1 and is modified in place.

    Notes
    -----
    Only records that could be the closest by their bounds (`_write_bounds`) are computed exactly.
    """
    n_synthetic, bounds = compared.block.shape[1], _no_bounds()
    for start in range(0, n_synthetic, BLOCK):
        end = min(start + BLOCK, n_synthetic)
        total = bounds.total[: end - start]
        for x in range(begin, stop):
            _write_bounds(x, start, end, compared, bounds)
            if closeness[x] < 0:
                # The record that seems closest comes first, so that few others could be closer.
                closeness[x] = _closeness(x, start + int(np.argmin(total)), compared, grids)
            for k in range(_find_candidates(total, closeness[x], compared, bounds.found)):
                closeness[x] = max(closeness[x], _closeness(x, start + bounds.found[k], compared, grids))


@kernel
def find_closer(
    begin: int, stop: int, compared: Compared, closeness: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return pairs of a real record and one of the block that could be closer than its closest one so far.

    Values are not needed. All pairs that are closer are among them.
    """
    n_synthetic, bounds = compared.block.shape[1], _no_bounds()
    n_pairs, whose, places = 0, np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int64)
    for start in range(0, n_synthetic, BLOCK):
        end = min(start + BLOCK, n_synthetic)
        total = bounds.total[: end - start]
        for x in range(begin, stop):
            _write_bounds(x, start, end, compared, bounds)
            n_found = _find_candidates(total, closeness[x], compared, bounds.found)
            if n_pairs + n_found > len(whose):
                more = 2 * (n_pairs + n_found)
                whose = np.concatenate((whose[:n_pairs], np.empty(more - n_pairs, np.int32)))
                places = np.concatenate((places[:n_pairs], np.empty(more - n_pairs, np.int64)))
            for k in range(n_found):
                whose[n_pairs], places[n_pairs] = x, start + bounds.found[k]
                n_pairs += 1
    return whose[:n_pairs], places[:n_pairs]


@kernel
def raise_closeness(whose: NDArray[np.int32], compared: Compared, grids: Grids, closeness: NDArray[np.int32]) -> None:
    """Raise the closeness of the real records of pairs to that of the others, which are the block."""
    for i in range(len(whose)):
        x = whose[i]
        closeness[x] = max(closeness[x], _closeness(x, i, compared, grids))
