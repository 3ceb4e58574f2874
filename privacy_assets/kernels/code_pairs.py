"""The pairs of the values of two columns: how far one column determines the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel


@kernel
def compare_codes(
    key: NDArray[np.int64], column: NDArray[np.int64], n_keys: int, n_values: int, most: int
) -> tuple[int, int]:
    """Count the rows that would have to change so that a key determines a column, and the pairs of equal rows.

    Codes are from 0 to ``n_keys - 1`` and to ``n_values - 1`` (not checked here). The count ends early once more than
    ``most`` rows would have to change; both numbers are then too small.
    """
    begins = np.zeros(n_keys + 1, np.int64)
    for row in range(len(key)):
        begins[key[row] + 1] += 1
    for k in range(n_keys):
        begins[k + 1] += begins[k]
    places, values = begins[:n_keys].copy(), np.empty(len(key), np.int64)
    for row in range(len(key)):
        values[places[key[row]]] = column[row]
        places[key[row]] += 1
    counts = np.zeros(n_values, np.int64)
    n_changes = n_pairs = 0
    for k in range(n_keys):
        largest = np.int64(0)
        for place in range(begins[k], begins[k + 1]):
            n_pairs += counts[values[place]]
            counts[values[place]] += 1
            largest = max(largest, counts[values[place]])
        for place in range(begins[k], begins[k + 1]):
            counts[values[place]] = 0
        n_changes += begins[k + 1] - begins[k] - largest
        if n_changes > most:
            break
    return n_changes, n_pairs
