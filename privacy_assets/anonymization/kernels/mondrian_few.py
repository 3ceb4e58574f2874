"""The cut of a class with few rows, if only rows are counted; most classes are small.

Small classes have at most 64 bins per dimension, so the bits of a word mark the non-empty ones. The word alone gives
the width of the dimension and excludes most dimensions; scanning a histogram for this takes longer than counting. The
decision is that of :func:`~privacy_assets.anonymization.kernels.mondrian_cuts.decide`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.models import Evidence, Models
from privacy_assets.anonymization.kernels.mondrian_cuts import (
    DIMENSION,
    IS_COARSE,
    NO_CUT,
    Box,
    Dimensions,
    Lists,
    can_score,
    sort_set,
    tighten_between,
    try_cuts,
)
from privacy_assets.kernels.bit_sets import BITS, count_ones, place_of_highest, place_of_lowest
from privacy_assets.kernels.compilation import part

ONE = np.uint64(1)


@part
def fit_words(dimensions: Dimensions) -> bool:
    """Whether the bins of small classes fit into words; sets have a bin per value in classes of any size."""
    for j in range(len(dimensions.is_set)):  # noqa: SIM110 - a compiled loop
        if dimensions.is_set[j] and dimensions.n_values[j] > BITS:
            return False
    return True


@part
def count_few_rows(
    codes: NDArray[np.unsignedinteger[Any]],
    begin: int,
    stop: int,
    first_bin: NDArray[np.int64],
    box: Box,
    histogram: NDArray[np.int64],
    occupied: NDArray[np.uint64],
) -> None:
    """Add rows to the histogram of their class; write the non-empty bins of each dimension, bin b as bit b."""
    for j in range(len(box.low)):
        shift = np.uint64(box.shift[j])
        base = np.uint64(box.base[j]) >> shift
        first = np.uint64(first_bin[j])
        word = np.uint64(0)
        for i in range(begin, stop):
            b = (np.uint64(codes[i, j]) >> shift) - base
            histogram[first + b] += 1
            word |= ONE << b
        occupied[j] = word


@part
def decide_on_few(
    size: int,
    histogram: NDArray[np.int64],
    occupied: NDArray[np.uint64],
    dimensions: Dimensions,
    box: Box,
    lists: Lists,
    models: Models,
    evidence: Evidence | None,
    cut: NDArray[np.int64],
) -> None:
    """Choose the cut as `decide` does, in a class of fewer than ``FEW_ROWS`` rows.

    ``histogram`` and ``occupied`` are left by :func:`count_few_rows`, the words of chunks of a class combined with
    "or"; the histogram is zero afterwards.
    """
    cut[DIMENSION] = NO_CUT
    cut[IS_COARSE] = 0
    best = -np.inf
    for j in range(len(box.low)):
        word = occupied[j]
        first = dimensions.first_bin[j]
        if word & (word - ONE) == 0 and box.shift[j] == 0:
            # Only one code, the most frequent case: nothing to cut.
            b = place_of_lowest(word)
            histogram[first + b] = 0
            if not dimensions.is_set[j]:
                box.low[j] = box.high[j] = box.base[j] + b
            continue
        lowest, highest = int(place_of_lowest(word)), int(place_of_highest(word))
        width = tighten_between(lowest, highest, int(count_ones(word)), j, dimensions, box)
        n_listed = 0
        while word != 0:
            b = place_of_lowest(word)
            word &= word - ONE
            lists.bins[n_listed] = b
            lists.tally[n_listed] = histogram[first + b]
            histogram[first + b] = 0
            n_listed += 1
        if not can_score(size, width, best, models):
            continue
        if dimensions.is_set[j]:
            sort_set(n_listed, j, dimensions, lists)
        best = try_cuts(size, width, n_listed, j, dimensions, box, lists, models, evidence, best, cut)
