"""Sets as words of bits: element a is bit ``a % 64`` of word ``a // 64``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel, part

BITS = 64


@part
def count_ones(word: np.uint64) -> np.uint64:
    """Count the set bits of a word."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@part
def place_of_lowest(word: np.uint64) -> np.int64:
    """Return the position of the lowest set bit; ``word`` is not 0."""
    return np.int64(count_ones((word & (~word + np.uint64(1))) - np.uint64(1)))


@kernel
def count_bits(rows: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Count the attributes of each row of bits."""
    n_rows, n_words = rows.shape
    sizes = np.zeros(n_rows, np.int64)
    for e in range(n_rows):
        for j in range(n_words):
            sizes[e] += np.int64(count_ones(rows[e, j]))
    return sizes


@part
def includes(larger: NDArray[np.uint64], smaller: NDArray[np.uint64]) -> bool:
    """Whether one set of bits includes another one."""
    for j in range(len(smaller)):  # noqa: SIM110 - a compiled loop
        if smaller[j] & ~larger[j]:
            return False
    return True


@part
def power_above(n: int) -> int:
    """Return a power of two above a number; at least 16."""
    power = 16
    while power <= n:
        power *= 2
    return power


@part
def find_or_add(table: NDArray[np.int64], sets: NDArray[np.uint64], candidate: int) -> int:
    """Look up a set among those before it, and add it if it is new; return the number of the equal set or its own.

    ``table`` has the numbers of sets by hash, -1 for empty slots. Its length is a power of two above twice the number
    of sets.
    """
    key = np.uint64(0x9E3779B97F4A7C15)
    for word in sets[candidate]:
        key = (key ^ word) * np.uint64(0xFF51AFD7ED558CCD)
        key ^= key >> np.uint64(32)
    mask = np.uint64(len(table) - 1)
    place = key & mask
    while table[place] >= 0:
        other = int(table[place])
        is_equal = True
        for j in range(sets.shape[1]):
            if sets[other, j] != sets[candidate, j]:
                is_equal = False
                break
        if is_equal:
            return other
        place = (place + np.uint64(1)) & mask
    table[place] = candidate
    return candidate


@part
def place_of_highest(word: np.uint64) -> int:
    """Return the position of the highest set bit; ``word`` is not 0."""
    place = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(place + step):
            place += step
    return place
