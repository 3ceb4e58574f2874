"""The nearest synthetic record of each real record: by Gower's distance, and by how surprising its agreement is.

Both compare all pairs, column by column over many synthetic records at once, in integers, so that ties are exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel, part
from privacy_assets.kernels.sorting import place_in

BLOCK = 4096
"""Synthetic records that are compared at once, so that their sums stay in the nearest cache."""
SMALL_BLOCK = 1024
"""The same number for comparisons in which the results of one block save work in the next."""
FEW = 8
"""Records are examined one by one if at most one in this many remains."""
MISSING_BIN = 255
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
    synthetic: NDArray[np.integer],
    is_number: NDArray[np.bool_],
    is_known: NDArray[np.bool_],
    unit: int,
    real_values: NDArray[np.int32],
    synthetic_values: NDArray[np.int32],
    right: NDArray[np.float64],
    nearest: NDArray[np.int64],
) -> None:
    """Guess each value of real records from the nearest synthetic record on the other known columns.

    Parameters
    ----------
    real, synthetic : ndarray of shape (n_columns, n_records), int16 or int32
        Numbers as positions from 0 to ``unit``, and ``-unit - 1`` for missing ones; other values as codes. The distance
        of a column that ``is_number`` is that of positions, at most ``unit``; otherwise ``unit`` unless values are
        equal.
    unit : int
        Largest distance of a column; the distance over all columns is at most `LARGEST_DISTANCE` (not checked here).
    real_values, synthetic_values : ndarray of shape (n_columns, n_records), dtype=int32
        A guess is right if these are equal.
    right : ndarray of shape (n_columns, n_real), dtype=float64, modified in place
        Probability that the guess is right, if one of the nearest records is chosen at random.
    nearest : ndarray of shape (n_real,), dtype=int64, modified in place
        Distance of the nearest synthetic record on all known columns.

    Notes
    -----
    Without one column, a record is nearer by at most ``unit``. So only records whose distance on all columns exceeds
    the smallest by at most that are examined column by column.
    """
    n_columns, n_synthetic = synthetic.shape
    step = np.uint16(unit)
    n_rows = stop - begin
    best = np.full((n_rows, n_columns), LARGEST_DISTANCE, np.int64)
    n_nearest = np.zeros((n_rows, n_columns), np.int64)
    n_right = np.zeros((n_rows, n_columns), np.int64)
    near = np.empty(BLOCK, np.int32)
    nearest[begin:stop] = LARGEST_DISTANCE
    for start in range(0, n_synthetic, BLOCK):
        end = min(start + BLOCK, n_synthetic)
        total = np.empty(end - start, np.uint16)
        for row in range(n_rows):
            x = begin + row
            total[:] = 0
            for j in range(n_columns):
                if is_known[j]:
                    _add_distances(total, synthetic[j, start:end], real[j, x], is_number[j], step)
            least, limit = np.int64(_least(total)), 0
            nearest[x] = min(nearest[x], least)
            for j in range(n_columns):
                limit = max(limit, min(best[row, j], least) + (unit if is_known[j] else 0))
            n_near = _find_below(total, limit, near) if least <= limit else 0
            for j in range(n_columns):
                column, own = synthetic[j, start:end], real[j, x]
                for k in range(n_near):
                    i = near[k]
                    rest = np.int64(total[i])
                    if is_known[j] and is_number[j]:
                        rest -= min(abs(np.int64(column[i]) - own), unit)
                    elif is_known[j] and column[i] != own:
                        rest -= unit
                    if rest > best[row, j]:
                        continue
                    if rest < best[row, j]:
                        best[row, j] = rest
                        n_nearest[row, j] = 0
                        n_right[row, j] = 0
                    n_nearest[row, j] += 1
                    n_right[row, j] += synthetic_values[j, start + i] == real_values[j, x]
    for row in range(n_rows):
        for j in range(n_columns):
            right[j, begin + row] = n_right[row, j] / n_nearest[row, j]


@kernel
def nearest_distances(
    begin: int,
    stop: int,
    real: NDArray[np.integer],
    others: NDArray[np.integer],
    is_number: NDArray[np.bool_],
    unit: int,
    person: NDArray[np.integer],
    first_row: NDArray[np.int64],
    rows: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Find Gower's distance of records to the nearest of others, except those of the same person.

    The codes are those of `guess_values`. Others that belong to the ``person`` of each record, of shape (n_real,), are
    ``rows[first_row[person] : first_row[person + 1]]``, ascending. ``found``, of shape (n_real,), is modified in place.
    """
    n_others, step = others.shape[1], np.uint16(unit)
    found[begin:stop] = LARGEST_DISTANCE
    for start in range(0, n_others, BLOCK):
        end = min(start + BLOCK, n_others)
        total = np.empty(end - start, np.uint16)
        for x in range(begin, stop):
            total[:] = 0
            for j in range(len(others)):
                _add_distances(total, others[j, start:end], real[j, x], is_number[j], step)
            own = rows[first_row[person[x]] : first_row[person[x] + 1]]
            for k in range(place_in(own, start), len(own)):
                if own[k] >= end:
                    break
                total[own[k] - start] = LARGEST_DISTANCE
            found[x] = min(found[x], np.int64(_least(total)))


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
def _write_weights(
    grid: NDArray[np.float64],
    below: NDArray[np.int64],
    weights: NDArray[np.int32],
    own: int,
    own_weight: int,
    found: NDArray[np.int32],
) -> None:
    """Write the weights of all numbers of a grid, as `_weight` returns them; the other end moves with the number."""
    value, end = grid[own], len(grid) - 1
    found[own] = own_weight
    first = own
    for other in range(own + 1, end + 1):
        distance, last = grid[other] - value, other
        while first > 0 and value - grid[first - 1] <= distance:
            first -= 1
        while last < end and grid[last + 1] - value <= distance:
            last += 1
        found[other] = weights[below[last + 1] - below[first]]
    last = own
    for other in range(own - 1, -1, -1):
        distance, first = value - grid[other], other
        while last < end and grid[last + 1] - value <= distance:
            last += 1
        while first > 0 and value - grid[first - 1] <= distance:
            first -= 1
        found[other] = weights[below[last + 1] - below[first]]


@part
def _count_above(total: NDArray[np.int32], limit: int) -> int:
    n_above, least = np.int32(0), np.int32(limit)
    for i in range(len(total)):
        n_above += total[i] > least
    return int(n_above)


@part
def _find_above(total: NDArray[np.int32], limit: int, found: NDArray[np.int32]) -> int:
    """Write the positions of totals above a limit, and return how many there are."""
    n_found = 0
    for i in range(len(total)):
        found[n_found] = i
        n_found += total[i] > limit
    return n_found


@part
def _sort_descending(values: NDArray[np.int64], order: NDArray[np.int64]) -> None:
    """Write the positions of a few values, the largest values first."""
    for j in range(len(values)):
        place = j
        while place > 0 and values[order[place - 1]] < values[j]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = j


@kernel
def find_closest(
    begin: int,
    stop: int,
    real: NDArray[np.int32],
    synthetic: NDArray[np.int32],
    is_number: NDArray[np.bool_],
    equal_weights: NDArray[np.int32],
    weights: NDArray[np.int32],
    grids: NDArray[np.float64],
    below: NDArray[np.int64],
    first_of_grid: NDArray[np.int64],
    bins: NDArray[np.uint8],
    first_of_bin: NDArray[np.int64],
    n_bins: NDArray[np.int64],
    closeness: NDArray[np.int32],
) -> None:
    """Find how close the closest synthetic record is to each real one.

    The closeness of two records is the sum of a weight over the columns, which is large if few real people are at most
    as far away. For values that are not numbers, and for missing values, only equality counts.

    Parameters
    ----------
    real, synthetic : ndarray of shape (n_columns, n_records), dtype=int32
        Numbers as positions in the grid of their column, -1 for missing ones; other values as codes.
    equal_weights : ndarray of shape (n_columns, n_real), dtype=int32
        Weight of a value equal to that of the real record.
    weights : ndarray of shape (n_pool + 1,), dtype=int32
        Weight of a number that differs, by the number of real people who are at most as far away; descending.
    grids, below, first_of_grid
        Distinct numbers of all columns, ascending in each, and the number of real records below each (see `_weight`;
        one more entry per column); ``first_of_grid[j]`` is where the grid of column j begins, ``below`` one later for
        each column before.
    bins, first_of_bin, n_bins
        Bin of each number, an interval of the grid, `MISSING_BIN` for missing ones; position in the grid at which each
        bin of a column begins, and after the last one the length of the grid; bins of each column, at most 255.
    closeness : ndarray of shape (n_real,), dtype=int32, modified in place
        The largest sum.

    Notes
    -----
    First, numbers with more than 255 values count by their bin, with at least the weight of its closest value. Only
    records that could then be the closest are computed exactly. The columns that can weigh most come first, and as soon
    as only few records could be closer than the closest so far, only those are examined.
    """
    n_columns, n_synthetic = synthetic.shape
    in_bin = np.zeros((n_columns, 256), np.int32)
    total = np.empty(SMALL_BLOCK, np.int32)
    # One more than there are records, because the last one is written before it is judged.
    found = np.empty(SMALL_BLOCK + 1, np.int32)
    is_rough = np.zeros(n_columns, np.bool_)
    for j in range(n_columns):
        n_values = first_of_grid[j + 1] - first_of_grid[j]
        is_rough[j] = is_number[j] and n_bins[j] < n_values
    largest, order = np.empty(n_columns, np.int64), np.empty(n_columns, np.int64)
    largest_after = np.zeros(n_columns + 1, np.int64)
    for x in range(begin, stop):
        n_weighted = 0
        for j in range(n_columns):
            own = real[j, x]
            largest[j] = -1
            if not is_number[j] or own < 0:
                continue
            n_weighted += 1
            grid = grids[first_of_grid[j] : first_of_grid[j + 1]]
            people = below[first_of_grid[j] + j : first_of_grid[j + 1] + j + 1]
            if not is_rough[j]:
                _write_weights(grid, people, weights, own, equal_weights[j, x], in_bin[j])
            else:
                for b in range(n_bins[j]):
                    low, high = first_of_bin[j, b], first_of_bin[j, b + 1] - 1
                    if low <= own <= high:
                        in_bin[j, b] = equal_weights[j, x]
                    # Fewer people are between than on both sides, so the weight is at least as large.
                    elif low > own:
                        in_bin[j, b] = weights[people[low + 1] - people[own]]
                    else:
                        in_bin[j, b] = weights[people[own + 1] - people[high]]
            for b in range(n_bins[j]):
                largest[j] = max(largest[j], in_bin[j, b])
        _sort_descending(largest, order)
        largest_after[n_weighted] = 0
        for c in range(n_weighted - 1, -1, -1):
            largest_after[c] = largest_after[c + 1] + largest[order[c]]
        best = np.int64(-1)
        for start in range(0, n_synthetic, SMALL_BLOCK):
            n = min(SMALL_BLOCK, n_synthetic - start)
            total[:n] = 0
            for j in range(n_columns):
                if largest[j] < 0:
                    values, own, weight = synthetic[j, start : start + n], real[j, x], equal_weights[j, x]
                    for i in range(n):
                        total[i] += weight if values[i] == own else np.int32(0)
            n_done = 0
            n_left = _count_above(total[:n], best - largest_after[0])
            while n_done < n_weighted and n_left * FEW > n:
                of_bins, own_bins = in_bin[order[n_done]], bins[order[n_done], start : start + n]
                for i in range(n):
                    total[i] += of_bins[own_bins[i]]
                n_done += 1
                n_left = _count_above(total[:n], best - largest_after[n_done])
            if n_left == 0:
                continue
            n_left = _find_above(total[:n], best - largest_after[n_done], found)
            for k in range(n_left):
                i = start + found[k]
                exact = np.int64(total[found[k]])
                for c in range(n_done, n_weighted):
                    if exact + largest_after[c] <= best:
                        break
                    exact += in_bin[order[c], bins[order[c], i]]
                if exact <= best:
                    continue
                for j in range(n_columns):
                    own, other = real[j, x], synthetic[j, i]
                    if is_rough[j] and own >= 0 and other >= 0 and own != other:
                        grid = grids[first_of_grid[j] : first_of_grid[j + 1]]
                        people = below[first_of_grid[j] + j : first_of_grid[j + 1] + j + 1]
                        exact += _weight(grid, people, weights, own, other) - in_bin[j, bins[j, i]]
                        if exact <= best:
                            break
                best = max(best, exact)
        closeness[x] = best
