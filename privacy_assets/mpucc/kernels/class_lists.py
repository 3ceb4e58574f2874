"""Lists of the rows of each class, one list per column that combinations begin with, for the compiled searches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import allocating_part, part


@allocating_part
def begin_lists(
    size: int, n_rows: int, n_open: int, n_synthetic: int, fewest_rows: int, n_codes: NDArray[np.int64], n_counts: int
) -> tuple[
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int32],
]:
    """Make the lists of a search of combinations of ``size`` columns, which begins with one class of all rows.

    Of each depth, these are the rows of each class together (of the first depth, they are all rows in order, and not
    listed), and, from a place for each depth on, where each class begins, and where its original rows begin (a class
    has at least ``fewest_rows``, of which one is open and one original); the number of classes; the columns by which
    they were split, or -1; ``n_counts`` zeros for each value of a column, and a list of values, not filled.
    """
    most_codes = 1
    for c in range(len(n_codes)):
        most_codes = max(most_codes, n_codes[c])
    places = np.zeros(size + 1, np.int64)
    most_classes = 1
    for d in range(size):
        places[d + 1] = places[d] + most_classes + 2
        most_classes = min(most_classes * most_codes, n_rows // fewest_rows)
    rows = np.empty((size - 1, n_rows), np.int32)
    starts = np.empty(places[size], np.int32)
    mids = np.empty(places[size], np.int32)
    n_classes = np.zeros(size, np.int64)
    prefix = np.empty(size, np.int64)
    counts = np.zeros((most_codes, n_counts), np.int32)
    touched = np.empty(most_codes, np.int32)
    starts[0], mids[0], starts[1] = 0, n_synthetic, n_rows
    n_classes[0] = 1 if n_open > 0 and n_synthetic < n_rows else 0
    for d in range(size):
        prefix[d] = -1
    return rows, places, starts, mids, n_classes, prefix, counts, touched


@part
def count_shared(prefix: NDArray[np.int64], depth: int, candidates: NDArray[np.int16], i: int) -> int:
    """Count the leading columns of a candidate by which the lists are already split."""
    shared = 0
    while shared < depth and prefix[shared] == candidates[i, shared]:
        shared += 1
    return shared
