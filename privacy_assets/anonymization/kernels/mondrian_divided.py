"""Decisions on a class of which nobody has all rows: counts of its parts are added, and decide as those of a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.models import Models, no_evidence
from privacy_assets.anonymization.kernels.mondrian_cuts import (
    Box,
    Dimensions,
    Lists,
    decide,
    decide_on_codes,
    make_box,
    set_bins,
)
from privacy_assets.anonymization.kernels.mondrian_rows import count_rows
from privacy_assets.kernels.compilation import kernel


def cover(size: int, low: NDArray[np.int64], high: NDArray[np.int64], dimensions: Dimensions) -> Box:
    """Return the bins of a class of ``size`` rows between two corners."""
    box = make_box(len(low))
    box.low[:], box.high[:] = low, high
    _cover(size, dimensions, box)
    return box


@kernel
def _cover(size: int, dimensions: Dimensions, box: Box) -> None:
    set_bins(size, dimensions, box)


@kernel
def add_counts(
    codes: NDArray[np.unsignedinteger[Any]], begin: int, stop: int, first_bin: NDArray[np.int64], box: Box,
    histogram: NDArray[np.int64],
) -> None:  # fmt: skip
    """Add some rows of a class to its histogram."""
    count_rows(codes, begin, stop, first_bin, box, histogram)


def choose_cut(
    size: int, histogram: NDArray[np.int64], dimensions: Dimensions, box: Box, lists: Lists, models: Models,
    cut: NDArray[np.int64],
) -> None:  # fmt: skip
    """Choose the cut by the rows of each bin, as `decide` does."""
    _choose_cut(size, histogram, dimensions, box, lists, models, no_evidence(), cut)


@kernel
def _choose_cut(
    size: int, histogram: NDArray[np.int64], dimensions: Dimensions, box: Box, lists: Lists, models: Models,
    evidence: Any, cut: NDArray[np.int64],
) -> None:  # fmt: skip
    decide(size, histogram, dimensions, box, lists, models, evidence, cut)


def choose_cut_on_codes(
    size: int, codes: NDArray[np.int64], tally: NDArray[np.int64], first: NDArray[np.int64], dimensions: Dimensions,
    box: Box, models: Models, cut: NDArray[np.int64],
) -> None:  # fmt: skip
    """Choose the cut by the rows of each code, as `decide_on_codes` does."""
    _choose_cut_on_codes(size, codes, tally, first, dimensions, box, models, no_evidence(), cut)


@kernel
def _choose_cut_on_codes(
    size: int, codes: NDArray[np.int64], tally: NDArray[np.int64], first: NDArray[np.int64], dimensions: Dimensions,
    box: Box, models: Models, evidence: Any, cut: NDArray[np.int64],
) -> None:  # fmt: skip
    decide_on_codes(size, codes, tally, first, dimensions, box, models, evidence, cut)
