"""Histograms of a class kept for its two sides: the larger side is the class minus the smaller side.

Counting is most of the work on large classes. With the kept histogram of a class, only its smaller side is counted; the
larger one is the difference between the two. A side can use it if its bins are as wide as those of the class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.mondrian_cuts import Box
from privacy_assets.kernels.compilation import part

NO_SLOT = -1
N_SLOTS = 24
# Below this, counting costs less than keeping.
FEWEST_ROWS_KEPT = 192


class Kept(NamedTuple):
    """Slots for histograms, zero in every free one, and the bins of each, as in `Box`.

    ``free`` lists the free slots; its last place is their number.
    """

    histograms: NDArray[np.int64]
    base: NDArray[np.int64]
    shift: NDArray[np.int64]
    n_bins: NDArray[np.int64]
    free: NDArray[np.int64]


def make_kept(n_bins: int, n_dimensions: int) -> Kept:
    """Make free slots."""
    base, shift, bins = (np.empty((N_SLOTS, n_dimensions), np.int64) for _ in range(3))
    return Kept(np.zeros((N_SLOTS, n_bins), np.int64), base, shift, bins, np.arange(N_SLOTS + 1, dtype=np.int64))


@part
def take_slot(kept: Kept, box: Box) -> int:
    """Take a free slot for the bins of a box; NO_SLOT if none is free."""
    if kept.free[N_SLOTS] == 0:
        return NO_SLOT
    kept.free[N_SLOTS] -= 1
    slot = np.int64(kept.free[kept.free[N_SLOTS]])
    for j in range(len(box.low)):
        kept.base[slot, j] = box.base[j]
        kept.shift[slot, j] = box.shift[j]
        kept.n_bins[slot, j] = box.n_bins[j]
    return int(slot)


@part
def free_slot(kept: Kept, slot: int, first_bin: NDArray[np.int64]) -> None:
    """Clear and release a slot."""
    if slot == NO_SLOT:
        return
    histogram = kept.histograms[slot]
    for j in range(kept.base.shape[1]):
        for b in range(first_bin[j], first_bin[j] + kept.n_bins[slot, j]):
            histogram[b] = 0
    kept.free[kept.free[N_SLOTS]] = slot
    kept.free[N_SLOTS] += 1


@part
def keep(kept: Kept, histogram: NDArray[np.int64], box: Box, first_bin: NDArray[np.int64]) -> int:
    """Copy the histogram of a class; return its slot, NO_SLOT if none is free."""
    slot = take_slot(kept, box)
    if slot != NO_SLOT:
        copy = kept.histograms[slot]
        for j in range(len(box.low)):
            for b in range(first_bin[j], first_bin[j] + box.n_bins[j]):
                copy[b] = histogram[b]
    return slot


@part
def subtract(kept: Kept, slot: int, smaller: int, first_bin: NDArray[np.int64]) -> None:
    """Subtract another slot with the same bins from a slot."""
    own, other = kept.histograms[slot], kept.histograms[smaller]
    for j in range(kept.base.shape[1]):
        for b in range(first_bin[j], first_bin[j] + kept.n_bins[slot, j]):
            own[b] -= other[b]


@part
def take_over(kept: Kept, slot: int, box: Box, first_bin: NDArray[np.int64], histogram: NDArray[np.int64]) -> bool:
    """Write a slot into the histogram of a side, in the bins of the side, and release the slot.

    Returns whether that was possible: it needs a slot, and the bins of the side must not be narrower.
    """
    if slot == NO_SLOT:
        return False
    for j in range(len(box.low)):
        if kept.shift[slot, j] != box.shift[j]:
            free_slot(kept, slot, first_bin)
            return False
    own = kept.histograms[slot]
    for j in range(len(box.low)):
        offset = first_bin[j] + ((box.base[j] - kept.base[slot, j]) >> box.shift[j])
        for b in range(box.n_bins[j]):
            histogram[first_bin[j] + b] = own[offset + b]
    free_slot(kept, slot, first_bin)
    return True
