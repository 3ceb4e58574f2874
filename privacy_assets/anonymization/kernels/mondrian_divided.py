"""Decisions on a class whose rows are never in one place: counts of its parts are summed, and decide in the same way.

Counts of people can also be summed if each is counted once, by the first and by the last bin in which they have a row,
in the order in which a dimension is cut. Counts of sensitive values are summed by bin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.models import Evidence, Models, no_evidence
from privacy_assets.anonymization.kernels.mondrian_cuts import (
    DIMENSION,
    IS_COARSE,
    NO_CUT,
    Box,
    Dimensions,
    Lists,
    can_score,
    decide,
    decide_on_codes,
    list_bins,
    make_box,
    set_bins,
    sort_set,
    take_codes,
    tighten,
    try_cuts,
)
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
    codes: NDArray[np.unsignedinteger[Any]], leaf: NDArray[np.int64], place: NDArray[np.int64],
    offset: NDArray[np.int64], shift: NDArray[np.int64], histograms: NDArray[np.int64],
) -> None:  # fmt: skip
    """Add rows to the histograms of their classes: a code to the bin ``offset + (code >> shift)``.

    ``leaf`` is the class of each row, and ``place`` the histogram of each class, -1 for a class without one.
    """
    for i in range(len(leaf)):
        own = place[leaf[i]]
        if own >= 0:
            for j in range(shift.shape[1]):
                histograms[own, offset[own, j] + (np.int64(codes[i, j]) >> shift[own, j])] += 1


@kernel
def choose_cut(
    size: int, histogram: NDArray[np.int64], dimensions: Dimensions, box: Box, lists: Lists, models: Models,
    evidence: Evidence, cut: NDArray[np.int64],
) -> None:  # fmt: skip
    """Choose the cut by the rows of each bin, as `decide` does."""
    decide(size, histogram, dimensions, box, lists, models, evidence, cut)


@kernel
def choose_cut_on_codes(
    size: int, codes: NDArray[np.int64], tally: NDArray[np.int64], first: NDArray[np.int64], dimensions: Dimensions,
    box: Box, models: Models, evidence: Evidence, cut: NDArray[np.int64],
) -> None:  # fmt: skip
    """Choose the cut by the rows of each code, as `decide_on_codes` does."""
    decide_on_codes(size, codes, tally, first, dimensions, box, models, evidence, cut)


class Listed(NamedTuple):
    """The occurring bins of a class, dimension by dimension from ``first`` on, each in the order in which it is cut.

    ``tally`` has the rows of each bin, ``widths`` the width of each dimension in the class.
    """

    first: NDArray[np.int64]
    bins: NDArray[np.int64]
    tally: NDArray[np.int64]
    widths: NDArray[np.float64]


def list_cuts(histogram: NDArray[np.int64], dimensions: Dimensions, box: Box, lists: Lists) -> Listed:
    """List the bins of a class, and shrink its box as `decide` does; the histogram is zero afterwards."""
    n_dimensions, n_bins = len(box.low), len(histogram)
    made = Listed(
        np.zeros(n_dimensions + 1, np.int64), np.zeros(n_bins, np.int64), np.zeros(n_bins, np.int64),
        np.zeros(n_dimensions, np.float64),
    )  # fmt: skip
    _list_cuts(histogram, dimensions, box, lists, made)
    n_listed = made.first[-1]
    return Listed(made.first, made.bins[:n_listed], made.tally[:n_listed], made.widths)


@kernel
def _list_cuts(histogram: NDArray[np.int64], dimensions: Dimensions, box: Box, lists: Lists, made: Listed) -> None:
    n_done = 0
    for j in range(len(box.low)):
        n_listed = list_bins(histogram, dimensions.first_bin[j], box.n_bins[j], lists)
        made.widths[j] = tighten(n_listed, j, dimensions, box, lists)
        if dimensions.is_set[j]:
            sort_set(n_listed, j, dimensions, lists)
        for x in range(n_listed):
            made.bins[n_done + x] = lists.bins[x]
            made.tally[n_done + x] = lists.tally[x]
        n_done += n_listed
        made.first[j + 1] = n_done


def list_cuts_on_codes(
    codes: NDArray[np.int64], tally: NDArray[np.int64], first: NDArray[np.int64], dimensions: Dimensions, box: Box
) -> Listed:
    """Treat each code as a bin in dimensions with bins of several codes, and shrink the box to them."""
    made = Listed(first, codes, tally, np.zeros(len(box.low), np.float64))
    _list_cuts_on_codes(dimensions, box, made)
    return made


@kernel
def _list_cuts_on_codes(dimensions: Dimensions, box: Box, made: Listed) -> None:
    for j in range(len(box.low)):
        begin, stop = made.first[j], made.first[j + 1]
        if stop > begin:
            lists = Lists(made.bins[begin:stop], made.tally[begin:stop], made.bins[:0])
            made.widths[j] = take_codes(stop - begin, j, dimensions, box, lists)


def choose_cut_of_sides(
    size: int, people: tuple[int, NDArray[np.int64], NDArray[np.int64]] | None, by_bin: NDArray[np.int64] | None,
    listed: Listed, dimensions: Dimensions, box: Box, lists: Lists, models: Models, cut: NDArray[np.int64],
) -> None:  # fmt: skip
    """Choose the cut by the counts on each side, as `decide_on_rows` does.

    ``people`` are those of the class, and on each side of a cut after each listed bin; None if k counts rows.
    ``by_bin`` is None if there is no l or t; the rows of a dimension with only one bin may be missing in it.
    """
    none = no_evidence()
    n_people, people_left, people_right = (size, *none[1:3]) if people is None else people
    if by_bin is None:
        by_bin = none.by_bin
    left, right = np.zeros((2, by_bin.shape[1]), np.int64)
    present = np.flatnonzero(by_bin.any(axis=0))
    sides = Evidence(
        n_people, people_left, people_right, none.arranged, none.sensitive, left, right, present, by_bin
    )  # fmt: skip
    _choose_cut_of_sides(size, listed, dimensions, box, lists, models, sides, cut)


@kernel
def _choose_cut_of_sides(
    size: int, listed: Listed, dimensions: Dimensions, box: Box, lists: Lists, models: Models, sides: Evidence,
    cut: NDArray[np.int64],
) -> None:  # fmt: skip
    cut[DIMENSION] = NO_CUT
    cut[IS_COARSE] = 0
    best = -np.inf
    for j in range(len(box.low)):
        begin, stop = listed.first[j], listed.first[j + 1]
        width = listed.widths[j]
        if stop == begin or not can_score(size, width, best, models):
            continue
        own = Lists(listed.bins[begin:stop], listed.tally[begin:stop], lists.head)
        evidence = Evidence(
            sides.n_people, sides.people_left[begin:stop], sides.people_right[begin:stop], sides.arranged,
            sides.sensitive, sides.left, sides.right, sides.present, sides.by_bin[begin:stop],
        )  # fmt: skip
        for value in sides.present:
            evidence.left[value] = 0
            evidence.right[value] = 0
            for x in range(stop - begin):
                evidence.right[value] += evidence.by_bin[x, value]
        best = try_cuts(size, width, stop - begin, j, dimensions, box, own, models, evidence, best, cut)
