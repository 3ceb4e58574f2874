"""Whether a row singles out another one by any combination of columns, from the columns on which rows agree with it.

The agree set of two rows contains the columns on which they have the same values. A row is singled out by some
combination if and only if its agree set is not contained in the agree set of any other row: that agree set is then such
a combination. This takes time quadratic in the rows at worst, but is independent of the number of combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel

WORD = 64


def agree_sets(columns: Sequence[NDArray[Any]], row: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the columns on which each row agrees with one row, as bits, and their number.

    Bit ``c % 64`` of word ``c // 64`` is column ``c``.
    """
    sets = np.zeros((len(columns[0]), -(-len(columns) // WORD)), np.uint64)
    sizes = np.zeros(len(columns[0]), np.int64)
    for c, column in enumerate(columns):
        agrees = column == column[row]
        sets[:, c // WORD] |= agrees.astype(np.uint64) << np.uint64(c % WORD)
        sizes += agrees
    return sets, sizes


def singles_out(sets: NDArray[np.uint64], sizes: NDArray[np.int64], is_candidate: NDArray[np.bool_]) -> bool:
    """Return whether the agree set of some candidate is not empty, and not contained in that of any other row."""
    # The larger a set, the more others it contains, so that most are found to be contained at once.
    order = np.argsort(-sizes, kind="stable")
    return bool(_has_own_set(sets[order], sizes[order], is_candidate[order]))


@kernel
def _has_own_set(sets: NDArray[np.uint64], sizes: NDArray[np.int64], is_candidate: NDArray[np.bool_]) -> bool:
    """Return whether a candidate's set is not contained in any other; sets are in descending order of their size."""
    for i in range(sets.shape[0]):
        if not is_candidate[i]:
            continue
        if sizes[i] == 0:
            break
        is_contained = False
        j = 0
        while j < sets.shape[0] and sizes[j] >= sizes[i] and not is_contained:
            if j != i:
                is_contained = True
                for word in range(sets.shape[1]):
                    if sets[i, word] & ~sets[j, word]:
                        is_contained = False
                        break
            j += 1
        if not is_contained:
            return True
    return False
