"""Differences of pairs of records, and how many people share each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel


@kernel
def write_differences(
    first: NDArray[np.int64],
    stop: NDArray[np.int64],
    real: NDArray[np.int64],
    synthetic: NDArray[np.int64],
    mixers: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    whose: NDArray[np.int32],
) -> int:
    """Write a key of the difference of each pair of records that is not zero, and return how many there are.

    Parameters
    ----------
    first, stop : ndarray of shape (n_real,), dtype=int64
        Each real record is subtracted from the synthetic records from ``first`` to ``stop``.
    real, synthetic : ndarray of shape (n_columns, n_records), dtype=int64
    mixers : ndarray of shape (n_columns,), dtype=uint64
        Odd numbers.
    keys : ndarray of shape (n_pairs,), dtype=uint64, modified in place
        Equal for equal differences; those of opposite ones differ in the last bit alone. Others are equal by chance
        with a probability of 2**-63.
    whose : ndarray of shape (n_pairs,), dtype=int32, modified in place
        Position of the real record.
    """
    n = 0
    for x in range(real.shape[1]):
        for i in range(first[x], stop[x]):
            key, sign = np.uint64(0), 0
            for j in range(len(real)):
                difference = synthetic[j, i] - real[j, x]
                if sign == 0:
                    sign = -1 if difference < 0 else int(difference > 0)
                key = (key ^ np.uint64(sign * difference)) * mixers[j]
                key ^= key >> np.uint64(29)
            keys[n] = (key << np.uint64(1)) | np.uint64(sign > 0)
            whose[n] = x
            n += sign != 0
    return n


@kernel
def count_beyond_opposite(
    keys: NDArray[np.uint64], whose: NDArray[np.int32], person: NDArray[np.int32], beyond: NDArray[np.int64]
) -> None:
    """Raise ``beyond``, by real record, to the number of people with one of its keys, minus those with the opposite.

    ``keys`` are ascending, equal ones in the order of real records, ``whose``; records are in the order of their
    ``person``.
    """
    begin = 0
    while begin < len(keys):
        middle, end, n_negative, n_positive, last = begin, begin, 0, 0, -1
        while end < len(keys) and keys[end] == keys[begin] & ~np.uint64(1):
            n_negative += person[whose[end]] != last
            last = person[whose[end]]
            end += 1
        middle, last = end, -1
        while end < len(keys) and keys[end] == keys[begin] | np.uint64(1):
            n_positive += person[whose[end]] != last
            last = person[whose[end]]
            end += 1
        for k in range(begin, middle):
            beyond[whose[k]] = max(beyond[whose[k]], n_negative - n_positive)
        for k in range(middle, end):
            beyond[whose[k]] = max(beyond[whose[k]], n_positive - n_negative)
        begin = end
