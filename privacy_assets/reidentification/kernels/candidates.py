"""Counting of candidates: the number of originals in each of many products of sets of codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel, part
from privacy_assets.kernels.slices import SlicePool
from privacy_assets.kernels.sorting import place_in

# Marking the codes of a set costs one write per code; looking them up costs one search per point.
CODES_PER_SEARCH = 8
# Examining this many points takes about as long as a search among those of one code.
POINTS_PER_SEARCH = 32


class Points(NamedTuple):
    """Distinct originals, sorted by their code in the first column, and those of one code by the second.

    ``codes`` is of shape (n_columns, n_points), ``weights`` the originals of each point, ``starts`` the start of the
    points of each code of the first column. ``person`` is empty, and ``n_people`` 0, if records are counted.
    """

    codes: NDArray[np.int32]
    weights: NDArray[np.int64]
    person: NDArray[np.int32]
    starts: NDArray[np.int64]
    n_people: int


class Boxes(NamedTuple):
    """Products of sets of codes, one set per column.

    ``sets`` (n_boxes, n_columns) are in lexicographic order, so that neighbors share their first sets; all columns
    share the list of sets, whose ranges, ascending and not adjacent, begin at ``first``.
    """

    sets: NDArray[np.int32]
    first: NDArray[np.int64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]


def count_candidates(
    points: Points, boxes: Boxes, n_codes: int, n_threads: int = 1, on_wait: Callable[[], None] | None = None
) -> NDArray[np.int64]:
    """Count the originals, or the people, in each box of at least one column, which is not checked here.

    The boxes are traversed as a trie: the points of a common prefix are listed once, and every further column filters
    that list. The first column is free, because points are sorted by it, and the second nearly so, because points of
    one code are sorted by it. Cost: the lengths of the filtered lists, summed over the distinct prefixes. ``on_wait``
    is called about twice a second.
    """
    counts = np.zeros(len(boxes.sets), np.int64)
    with SlicePool(n_threads, on_wait) as pool:

        def task(slices: Iterator[tuple[int, int]]) -> None:
            for begin, stop in slices:
                _count(points, boxes, n_codes, begin, stop, counts)

        pool.run(len(boxes.sets), task)
    return counts


class Candidates(NamedTuple):
    """The points in each box: ``points[starts[b]:starts[b + 1]]``."""

    starts: NDArray[np.int64]
    points: NDArray[np.int32]


def list_candidates(points: Points, boxes: Boxes, n_codes: int, n_pairs_of_box: NDArray[np.int64]) -> Candidates:
    """List the points in each box, whose numbers are those of :func:`count_candidates` with weights 1."""
    starts = np.concatenate([[0], np.cumsum(n_pairs_of_box)]).astype(np.int64)
    listed = np.empty(starts[-1], np.int32)
    _list(points, boxes, n_codes, starts, listed)
    return Candidates(starts, listed)


def count_fitting(
    points: Points, boxes: Boxes, n_codes: int, weights: NDArray[np.int64], n_threads: int = 1
) -> NDArray[np.int64]:
    """Sum the weights of the boxes that hold each point; as :func:`count_candidates`, with the sides exchanged."""
    with SlicePool(n_threads) as pool:

        def task(slices: Iterator[tuple[int, int]]) -> NDArray[np.int64]:
            found = np.zeros(points.codes.shape[1], np.int64)
            for begin, stop in slices:
                _add(points, boxes, n_codes, begin, stop, weights, found)
            return found

        return np.asarray(np.sum(pool.run(len(boxes.sets), task), axis=0), np.int64)


@kernel
def _add(
    points: Points,
    boxes: Boxes,
    n_codes: int,
    begin: int,
    stop: int,
    weights: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Add the weights of the boxes from ``begin`` to ``stop`` to their points."""
    n_columns, n_points = points.codes.shape
    lists = np.empty((max(n_columns - 1, 1), n_points), np.int32)
    sizes = np.zeros(n_columns, np.int64)
    is_inside = np.zeros(n_codes, np.bool_)
    for b in range(begin, stop):
        if n_columns == 1:
            for r in range(boxes.first[boxes.sets[b, 0]], boxes.first[boxes.sets[b, 0] + 1]):
                for i in range(points.starts[boxes.low[r]], points.starts[boxes.high[r] + 1]):
                    found[i] += weights[b]
            continue
        depth = 0
        if b > begin:
            while depth < n_columns - 1 and boxes.sets[b, depth] == boxes.sets[b - 1, depth]:
                depth += 1
        for t in range(max(depth, 1), n_columns):
            sizes[t - 1] = _filter(points, boxes, b, t, lists, sizes, is_inside)
        for i in lists[n_columns - 2][: sizes[n_columns - 2]]:
            found[i] += weights[b]


@kernel
def _list(points: Points, boxes: Boxes, n_codes: int, starts: NDArray[np.int64], listed: NDArray[np.int32]) -> None:
    """Write the points of each box to its position."""
    n_columns, n_points = points.codes.shape
    lists = np.empty((max(n_columns - 1, 1), n_points), np.int32)
    sizes = np.zeros(n_columns, np.int64)
    is_inside = np.zeros(n_codes, np.bool_)
    for b in range(len(boxes.sets)):
        place = starts[b]
        if n_columns == 1:
            for r in range(boxes.first[boxes.sets[b, 0]], boxes.first[boxes.sets[b, 0] + 1]):
                for i in range(points.starts[boxes.low[r]], points.starts[boxes.high[r] + 1]):
                    listed[place] = i
                    place += 1
            continue
        depth = 0
        if b > 0:
            while depth < n_columns - 1 and boxes.sets[b, depth] == boxes.sets[b - 1, depth]:
                depth += 1
        for t in range(max(depth, 1), n_columns):
            sizes[t - 1] = _filter(points, boxes, b, t, lists, sizes, is_inside)
        listed[place : starts[b + 1]] = lists[n_columns - 2][: sizes[n_columns - 2]]


@kernel
def _count(points: Points, boxes: Boxes, n_codes: int, begin: int, stop: int, counts: NDArray[np.int64]) -> None:
    """Count for the boxes from ``begin`` to ``stop``."""
    n_columns, n_points = points.codes.shape
    # lists[t] has the points in the sets of columns 0 to t + 1; the last column is never listed.
    lists = np.empty((max(n_columns - 1, 1), n_points), np.int32)
    sizes = np.zeros(n_columns, np.int64)
    is_inside = np.zeros(n_codes, np.bool_)
    seen = np.full(points.n_people, -1, np.int64)
    for b in range(begin, stop):
        depth = 0
        if b > begin:
            while depth < n_columns and boxes.sets[b, depth] == boxes.sets[b - 1, depth]:
                depth += 1
        if depth == n_columns:
            counts[b] = counts[b - 1]
            continue
        for t in range(max(depth, 1), n_columns):
            sizes[t - 1] = _filter(points, boxes, b, t, lists, sizes, is_inside)
        if n_columns == 1:
            counts[b] = _sum_slices(points, boxes, b, seen)
        else:
            counts[b] = _sum_list(points, lists[n_columns - 2], sizes[n_columns - 2], b, seen)


@part
def _filter(
    points: Points,
    boxes: Boxes,
    b: int,
    t: int,
    lists: NDArray[np.int32],
    sizes: NDArray[np.int64],
    is_inside: NDArray[np.bool_],
) -> int:
    """List the points of the sets of columns 0 to t from those of columns 0 to t - 1; return their number."""
    column = points.codes[t]
    target = lists[t - 1]
    begin, stop = boxes.first[boxes.sets[b, t]], boxes.first[boxes.sets[b, t] + 1]
    n_listed = 0
    if t > 1:
        return _filter_list(column, lists[t - 2][: sizes[t - 2]], boxes, begin, stop, target, is_inside)
    for r in range(boxes.first[boxes.sets[b, 0]], boxes.first[boxes.sets[b, 0] + 1]):
        left, right = points.starts[boxes.low[r]], points.starts[boxes.high[r] + 1]
        if (stop - begin) * (boxes.high[r] - boxes.low[r] + 1) * POINTS_PER_SEARCH < right - left:
            for code in range(boxes.low[r], boxes.high[r] + 1):
                place, end = points.starts[code], points.starts[code + 1]
                for q in range(begin, stop):
                    place += place_in(column[place:end], boxes.low[q])
                    while place < end and column[place] <= boxes.high[q]:
                        target[n_listed] = place
                        n_listed += 1
                        place += 1
        elif stop - begin == 1:
            low, high = boxes.low[begin], boxes.high[begin]
            for i in range(left, right):
                # Every point is written, regardless of its side: a data-dependent branch costs more.
                target[n_listed] = i
                n_listed += (column[i] >= low) & (column[i] <= high)
        elif stop > begin:
            _mark(boxes, begin, stop, is_inside, True)
            for i in range(left, right):
                target[n_listed] = i
                n_listed += is_inside[column[i]]
            _mark(boxes, begin, stop, is_inside, False)
    return n_listed


@part
def _filter_list(
    column: NDArray[np.int32],
    source: NDArray[np.int32],
    boxes: Boxes,
    begin: int,
    stop: int,
    target: NDArray[np.int32],
    is_inside: NDArray[np.bool_],
) -> int:
    """Copy the points of a list whose code is in a set."""
    n_listed = 0
    if stop == begin:
        return 0
    if stop - begin == 1:
        low, high = boxes.low[begin], boxes.high[begin]
        for i in source:
            target[n_listed] = i
            n_listed += (column[i] >= low) & (column[i] <= high)
        return n_listed
    span = 0
    for r in range(begin, stop):
        span += boxes.high[r] - boxes.low[r] + 1
    if span <= CODES_PER_SEARCH * len(source):
        _mark(boxes, begin, stop, is_inside, True)
        for i in source:
            target[n_listed] = i
            n_listed += is_inside[column[i]]
        _mark(boxes, begin, stop, is_inside, False)
        return n_listed
    lows = boxes.low[begin:stop]
    for i in source:
        r = place_in(lows, column[i] + 1) - 1
        target[n_listed] = i
        n_listed += r >= 0 and column[i] <= boxes.high[begin + r]
    return n_listed


@part
def _mark(boxes: Boxes, begin: int, stop: int, is_inside: NDArray[np.bool_], mark: bool) -> None:
    """Set or clear the marks of the codes of a set."""
    for r in range(begin, stop):
        for code in range(boxes.low[r], boxes.high[r] + 1):
            is_inside[code] = mark


@part
def _sum_slices(points: Points, boxes: Boxes, b: int, seen: NDArray[np.int64]) -> int:
    """Count the originals in the set of the only column."""
    total = 0
    for r in range(boxes.first[boxes.sets[b, 0]], boxes.first[boxes.sets[b, 0] + 1]):
        for i in range(points.starts[boxes.low[r]], points.starts[boxes.high[r] + 1]):
            if points.n_people == 0:
                total += points.weights[i]
            elif seen[points.person[i]] != b:
                seen[points.person[i]] = b
                total += 1
    return total


@part
def _sum_list(points: Points, members: NDArray[np.int32], size: int, b: int, seen: NDArray[np.int64]) -> int:
    """Count the originals of a list of points."""
    total = 0
    for i in members[:size]:
        if points.n_people == 0:
            total += points.weights[i]
        elif seen[points.person[i]] != b:
            seen[points.person[i]] = b
            total += 1
    return total
