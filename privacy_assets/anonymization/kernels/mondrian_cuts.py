"""Choice of the cut of a Mondrian class: a pure function of its size, its box and its counts.

Nothing here reads rows. If k counts rows and there are no other models, two kinds of integer histograms decide: rows
per bin of every dimension (:func:`decide`) and, where no boundary of bins allows a cut, rows per code of the binned
dimensions (:func:`decide_on_codes`). Histograms of chunks of a class sum to that of the class, so any counter (one
thread, several, chunks of a file, a query engine) gets the same cut from the same functions.

This does not work for k in people, l-diversity and t-closeness: counts of people cannot be summed, because a person may
have rows in several chunks. They need the rows of the class (`mondrian_guarded`), or counts in which each person occurs
once (`choose_cut_of_people` in `mondrian_divided`).

A *dimension* is a column as codes 0, 1, ... in the order of its values. An *ordered* dimension has a coordinate per
code, and its width in a class is the distance between the outermost coordinates, at most 1. A *set* has no order: its
width is (values present - 1) / (values - 1), and it is cut by frequency inside the class; with a hierarchy, both follow
the nodes (`mondrian_nodes`). Large ranges of codes are counted in at most 256 *bins*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.models import Evidence, Models, add_place, sides_hold
from privacy_assets.anonymization.kernels.mondrian_nodes import Nodes, shared_loss, sort_by_nodes
from privacy_assets.kernels.bit_sets import BITS
from privacy_assets.kernels.compilation import inlined_part, part

MOST_BINS = 256
# A class of fewer rows is counted in no more bins than a word has bits.
FEW_ROWS = 128
# For the criterion "gain". Measured on adult at k = 10, loss in percent: 4.88 at 0.15, 4.86 at 0.25, 4.65 at 0.35, 4.71
# at 0.5; the order is the same at every other k except 50, where 0.15 is best by half a percent.
BALANCE_WEIGHT = 0.35
# Cuts along a hierarchy separate one node from many, which is seldom balanced: on adult with hierarchies for all
# columns or for the categories, weights of 0.15 and 0.35 lose 0.5 to 4 % more, and 0.9 up to 85 %.
BALANCE_WEIGHT_OF_NODES = 0.0
NO_CUT = -1
# Positions in the array that describes a cut.
DIMENSION, THRESHOLD, RIGHT_LOW, N_HEAD, IS_COARSE = range(5)


class Dimensions(NamedTuple):
    """The dimensions of a table; arrays of shape (n_dimensions,) unless said otherwise.

    Sets (``is_set``) have no order, or a hierarchy in ``nodes``, and then their codes are numbered depth-first.
    ``first_bin`` (n_dimensions + 1,) is the start of the bins of each in a flat histogram, and its length.
    ``coordinates`` has, from ``first_coordinate`` on, the coordinate of each code of each ordered dimension, ascending:
    from 0 to 1, and 2 for a missing value, so that a class of missing and other values has the full width.
    """

    is_set: NDArray[np.bool_]
    n_values: NDArray[np.int64]
    first_bin: NDArray[np.int64]
    coordinates: NDArray[np.float64]
    first_coordinate: NDArray[np.int64]
    nodes: Nodes


class Box(NamedTuple):
    """Smallest and largest code by ordered dimension, and the bins that cover them; int64 of shape (n_dimensions,).

    Bin b of dimension j has the codes from ``base[j] + (b << shift[j])`` to those of the next bin.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    base: NDArray[np.int64]
    shift: NDArray[np.int64]
    n_bins: NDArray[np.int64]


class Lists(NamedTuple):
    """Buffers for the non-empty bins of one dimension, and for the codes on the left of a cut of a set."""

    bins: NDArray[np.int64]
    tally: NDArray[np.int64]
    head: NDArray[np.int64]


def make_box(n_dimensions: int) -> Box:
    """Return an empty box."""
    return Box(*(np.zeros(n_dimensions, np.int64) for _ in range(5)))


def make_lists(dimensions: Dimensions) -> Lists:
    """Return lists long enough for the bins of any dimension."""
    room = max(MOST_BINS, int(dimensions.n_values[dimensions.is_set].max(initial=0)))
    return Lists(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64))


@inlined_part
def set_bins(size: int, dimensions: Dimensions, box: Box) -> None:
    """Cover the box with as many bins as suit a class of this size."""
    most = MOST_BINS if size >= 1024 else MOST_BINS // 2 if size >= FEW_ROWS else BITS
    for j in range(len(box.low)):
        box.base[j] = 0
        box.shift[j] = 0
        box.n_bins[j] = dimensions.n_values[j]
        if not dimensions.is_set[j]:
            # Bins begin at multiples of their size, so that a shift and an addition give the bin of a code.
            while (box.high[j] >> box.shift[j]) - (box.low[j] >> box.shift[j]) >= most:
                box.shift[j] += 1
            box.base[j] = (box.low[j] >> box.shift[j]) << box.shift[j]
            box.n_bins[j] = ((box.high[j] - box.base[j]) >> box.shift[j]) + 1


@inlined_part
def list_bins(histogram: NDArray[np.int64], begin: int, n_bins: int, lists: Lists) -> int:
    """List the non-empty bins, ascending, and clear them; return their number."""
    n_listed = 0
    for b in range(n_bins):
        count = histogram[begin + b]
        if count > 0:
            lists.bins[n_listed] = b
            lists.tally[n_listed] = count
            histogram[begin + b] = 0
            n_listed += 1
    return n_listed


@inlined_part
def sort_by_count(n_listed: int, lists: Lists) -> None:
    """Put the most frequent value first, equally frequent ones by code.

    A Shell sort with Tokuda's gaps: Numba would need a tenth of the compile time of all kernels for NumPy's sort.
    """
    bins, tally = lists.bins, lists.tally
    gap = 1
    while gap < n_listed:
        gap = (9 * gap) // 4 + 1
    while gap > 1:
        gap = (4 * (gap - 1)) // 9 if gap > 3 else 1
        for x in range(gap, n_listed):
            code, count = bins[x], tally[x]
            y = x - gap
            while y >= 0 and (tally[y] < count or (tally[y] == count and bins[y] > code)):
                bins[y + gap] = bins[y]
                tally[y + gap] = tally[y]
                y -= gap
            bins[y + gap] = code
            tally[y + gap] = count


@inlined_part
def width_between(dimensions: Dimensions, j: int, low: int, high: int) -> float:
    """Width of an ordered dimension between two codes."""
    first = dimensions.first_coordinate[j]
    width: float = min(1.0, dimensions.coordinates[first + high] - dimensions.coordinates[first + low])
    return width


@inlined_part
def width_of_nodes(dimensions: Dimensions, j: int, first: int, last: int) -> float:
    """Width of a dimension with a hierarchy, between the first and the last code of a depth-first order."""
    width: float = shared_loss(dimensions.nodes, j, dimensions.n_values[j], first, last)
    return width


@inlined_part
def sort_set(n_listed: int, j: int, dimensions: Dimensions, lists: Lists) -> None:
    """Put the values of a set, listed in ascending order if it has a hierarchy, in the order in which it is cut."""
    if dimensions.nodes.n_levels[j] > 0:
        sort_by_nodes(n_listed, j, dimensions.n_values[j], dimensions.nodes, lists.bins, lists.tally)
    else:
        sort_by_count(n_listed, lists)


@inlined_part
def tighten_between(first: int, last: int, n_listed: int, j: int, dimensions: Dimensions, box: Box) -> float:
    """Shrink an ordered dimension of the box to its outermost non-empty bins; return the width of the dimension."""
    if dimensions.nodes.n_levels[j] > 0:
        return width_of_nodes(dimensions, j, first, last)
    if dimensions.is_set[j]:
        return (n_listed - 1) / (dimensions.n_values[j] - 1) if n_listed > 1 else 0.0
    box.low[j] = max(box.low[j], box.base[j] + (first << box.shift[j]))
    box.high[j] = min(box.high[j], box.base[j] + ((last + 1) << box.shift[j]) - 1)
    return width_between(dimensions, j, box.low[j], box.high[j])


@inlined_part
def tighten(n_listed: int, j: int, dimensions: Dimensions, box: Box, lists: Lists) -> float:
    """Shrink an ordered dimension of the box to the listed bins; return the width of the dimension."""
    return tighten_between(lists.bins[0], lists.bins[n_listed - 1], n_listed, j, dimensions, box)


@inlined_part
def take_codes(n_listed: int, j: int, dimensions: Dimensions, box: Box, lists: Lists) -> float:
    """Treat the listed bins of an ordered dimension as single codes; shrink the box and return the width as above."""
    box.base[j] = 0
    box.shift[j] = 0
    return tighten(n_listed, j, dimensions, box, lists)


@inlined_part
def weigh_cuts(
    size: int,
    width: float,
    n_listed: int,
    j: int,
    dimensions: Dimensions,
    box: Box,
    lists: Lists,
    models: Models,
    evidence: Evidence | None,
) -> tuple[float, int]:
    """Find the best allowable cut of one dimension: its score, and the last listed bin on the left.

    The score is -inf if no cut is allowable. By "range" it is the width of the dimension, and the cut is the one
    nearest to the median. By "gain" it is the loss that a cut of m rows into a and m - a removes, ``m w - a w_left - (m
    - a) w_right`` (w: widths), times ``1 - lost / floor(m / k)`` where ``lost = floor(m / k) - floor(a / k) - floor((m
    - a) / k)`` classes can no longer be made, times a weight that falls from 1 at a cut in halves to 1 - BALANCE_WEIGHT
    at the edge. A cut along a hierarchy must leave one of its sides under a lower node.
    """
    k = models.k
    n_units = size
    if evidence is not None and models.counts_people:
        n_units = evidence.n_people
    most = max(n_units // k, 1)
    unit = 1.0 / max(dimensions.n_values[j] - 1, 1)
    has_nodes = dimensions.nodes.n_levels[j] > 0
    balance_weight = BALANCE_WEIGHT_OF_NODES if has_nodes else BALANCE_WEIGHT
    left_width = right_width = 0.0
    left = 0
    best_place = NO_CUT
    best = -np.inf
    for x in range(n_listed - 1):
        left += lists.tally[x]
        right = size - left
        left_units, right_units = left, right
        if evidence is not None:
            if models.needs_values:
                add_place(x, left - lists.tally[x], left, evidence)
            if models.counts_people:
                left_units, right_units = evidence.people_left[x], evidence.people_right[x]
        if left_units < k or right_units < k:
            continue
        if has_nodes:
            left_width = width_of_nodes(dimensions, j, lists.bins[0], lists.bins[x])
            right_width = width_of_nodes(dimensions, j, lists.bins[x + 1], lists.bins[n_listed - 1])
            if left_width >= width and right_width >= width:
                continue
        if models.is_by_range:
            score = -abs(2.0 * left - size)
        else:
            if dimensions.is_set[j] and not has_nodes:
                left_width = x * unit
                right_width = (n_listed - 2 - x) * unit
            elif not has_nodes:
                stop = min(box.high[j], box.base[j] + ((lists.bins[x] + 1) << box.shift[j]) - 1)
                begin = max(box.low[j], box.base[j] + (lists.bins[x + 1] << box.shift[j]))
                left_width = width_between(dimensions, j, box.low[j], stop)
                right_width = width_between(dimensions, j, begin, box.high[j])
            score = size * width - left * left_width - right * right_width
            if score <= best:
                continue  # the weights are at most 1, and computing them dominates the cost
            lost = max(most - left_units // k - right_units // k, 0)
            score *= (1.0 - lost / most) * (1.0 - balance_weight * abs(2.0 * left - size) / size)
        is_better = score > best
        if evidence is not None and is_better and models.needs_values:
            is_better = sides_hold(left, right, models, evidence)
        if is_better:
            best = score
            best_place = x
    if best_place != NO_CUT and models.is_by_range:
        best = width
    return best, best_place


@inlined_part
def can_score(size: int, width: float, best: float, models: Models) -> bool:
    """Whether a cut of a dimension of this width may score above the best so far: a gain never exceeds the width."""
    most = width if models.is_by_range else size * width
    return width > 0.0 and most > best


@inlined_part
def keep_cut(place: int, j: int, dimensions: Dimensions, box: Box, lists: Lists, cut: NDArray[np.int64]) -> None:
    """Record the cut after a listed bin."""
    cut[DIMENSION] = j
    cut[N_HEAD] = 0
    if dimensions.is_set[j]:
        cut[N_HEAD] = place + 1
        for x in range(place + 1):
            lists.head[x] = lists.bins[x]
    else:
        cut[THRESHOLD] = min(box.high[j], box.base[j] + ((lists.bins[place] + 1) << box.shift[j]) - 1)
        cut[RIGHT_LOW] = max(box.low[j], box.base[j] + (lists.bins[place + 1] << box.shift[j]))


@inlined_part
def try_cuts(
    size: int,
    width: float,
    n_listed: int,
    j: int,
    dimensions: Dimensions,
    box: Box,
    lists: Lists,
    models: Models,
    evidence: Evidence | None,
    best: float,
    cut: NDArray[np.int64],
) -> float:
    """Record the best allowable cut of one dimension if it scores above the best so far; return the best score."""
    score, place = weigh_cuts(size, width, n_listed, j, dimensions, box, lists, models, evidence)
    if box.shift[j] > 0 and place == NO_CUT:
        cut[IS_COARSE] = 1
    if score > best:
        keep_cut(place, j, dimensions, box, lists, cut)
    return max(best, score)


@part
def decide(
    size: int,
    histogram: NDArray[np.int64],
    dimensions: Dimensions,
    box: Box,
    lists: Lists,
    models: Models,
    evidence: Evidence | None,
    cut: NDArray[np.int64],
) -> None:
    """Choose the dimension and position of the cut if only rows are counted.

    ``histogram`` has the rows per bin of every dimension and is zero afterwards; ``box`` has these bins
    (:func:`set_bins`), and its ordered dimensions are shrunk in place. Written are ``cut``: dimension (-1 for none),
    largest code on the left, smallest code on the right, length of ``lists.head`` (the codes on the left of a set), and
    whether single values may allow a cut where bins do not.
    """
    cut[DIMENSION] = NO_CUT
    cut[IS_COARSE] = 0
    best = -np.inf
    for j in range(len(box.low)):
        n_listed = list_bins(histogram, dimensions.first_bin[j], box.n_bins[j], lists)
        width = tighten(n_listed, j, dimensions, box, lists)
        if not can_score(size, width, best, models):
            continue
        if dimensions.is_set[j]:
            sort_set(n_listed, j, dimensions, lists)
        best = try_cuts(size, width, n_listed, j, dimensions, box, lists, models, evidence, best, cut)


@part
def decide_on_codes(
    size: int,
    codes: NDArray[np.int64],
    tally: NDArray[np.int64],
    first: NDArray[np.int64],
    dimensions: Dimensions,
    box: Box,
    models: Models,
    evidence: Evidence | None,
    cut: NDArray[np.int64],
) -> None:
    """Choose the cut among single codes if :func:`decide` found none because its bins were too coarse.

    ``codes`` and ``tally`` are the occurring codes and their rows, by dimension from ``first`` on, ascending. Sets and
    dimensions whose bins have one code each (``box.shift`` 0) are ignored. Binned dimensions of ``box``, as left by
    :func:`decide`, are shrunk to the codes, and then have one code in each bin.
    """
    best = -np.inf
    cut[DIMENSION] = NO_CUT
    for j in range(len(box.low)):
        if box.shift[j] == 0:
            continue
        lists = Lists(codes[first[j] : first[j + 1]], tally[first[j] : first[j + 1]], codes[:0])
        n_listed = len(lists.bins)
        width = take_codes(n_listed, j, dimensions, box, lists)
        if not can_score(size, width, best, models):
            continue
        best = try_cuts(size, width, n_listed, j, dimensions, box, lists, models, evidence, best, cut)
