"""Sorting and searching inside compiled functions; Numba would take seconds to compile NumPy's functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import part


@part
def sort_ascending(values: NDArray[np.int64]) -> None:
    """Sort in place: a Shell sort with Tokuda's gaps."""
    gap = 1
    while gap < len(values):
        gap = (9 * gap) // 4 + 1
    while gap > 1:
        gap = (4 * (gap - 1)) // 9 if gap > 3 else 1
        for x in range(gap, len(values)):
            value = values[x]
            y = x - gap
            while y >= 0 and values[y] > value:
                values[y + gap] = values[y]
                y -= gap
            values[y + gap] = value


@part
def place_in(ascending: NDArray[np.integer], value: int) -> int:
    """Return the first position whose value is not smaller than ``value``, or the length."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
