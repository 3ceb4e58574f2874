"""Basic semantic risk of every row of a context, and the greatest acceptable subset of records.

For a row e let e' be its attributes and e'' the records that have all of them. Every lower neighbor of the concept of e
is e'' intersected with the records of one further attribute, so the lattice is not needed:

    r_BS(e) = 1 / d(e),    d(e) = min over attributes m not in e' of #{g : e' in g', m not in g'}

and d(e) = #(e'') if e has every attribute [1]_. The empty concept counts as a lower neighbor.

References
----------
.. [1] G. A. Aranda-Corral, J. Borrego-Diaz, J. Galan-Paez, "FCA-based reasoning for privacy", definition 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.bit_sets import includes, place_of_lowest
from privacy_assets.kernels.compilation import kernel
from privacy_assets.kernels.slices import SlicePool
from privacy_assets.semantic_risk.kernels.formal_context import PackedContext, list_holders, shortest_list


class RowMeasures(NamedTuple):
    """Measures of each row of a context; all arrays of shape (n_rows,), dtype=np.int64.

    ``extents`` are the records whose row includes this one, including its own: #(e''); ``n_including`` the distinct
    ones of these rows. ``differences`` are the smallest difference d to the extent of a lower neighbor; the basic
    semantic risk is 1 / d. ``lacked`` is the first attribute whose absence leaves d records; -1 if the row's own
    attributes leave equally few.
    """

    extents: NDArray[np.int64]
    differences: NDArray[np.int64]
    n_including: NDArray[np.int64]
    lacked: NDArray[np.int64]


class Round(NamedTuple):
    """One round of suppression: records before it, the smallest d among them (0 without records), and those removed."""

    n_records: int
    smallest_difference: int
    n_removed: int


class Suppression(NamedTuple):
    """The greatest acceptable subset.

    ``differences`` is d of each kept row among the kept rows, and 0 for the others; the last round does not remove
    records.
    """

    is_kept: NDArray[np.bool_]
    differences: NDArray[np.int64]
    rounds: tuple[Round, ...]


def measure_rows(context: PackedContext, n_threads: int = 1, on_wait: Callable[[], None] | None = None) -> RowMeasures:
    """Measure every row of a context.

    Each row is compared with larger rows that have its two rarest attributes: at worst quadratic in the number of rows,
    free if all rows have equally many attributes. Memory: a few numbers per row, and per thread a copy of the rows of
    one attribute. ``on_wait`` is called about twice a second.
    """
    measures = RowMeasures(*(np.zeros(len(context.rows), np.int64) for _ in range(4)))
    with SlicePool(n_threads, on_wait) as pool:
        _measure(context, context.weights, np.arange(len(context.rows)), measures, pool)
    return measures


def find_greatest_subset(
    context: PackedContext,
    measures: RowMeasures,
    k: int,
    n_threads: int = 1,
    on_round: Callable[[Round], None] | None = None,
) -> Suppression:
    """Remove all records with d < k and measure again, until no such records remain.

    d never falls when records are added, so the result is the greatest acceptable subset regardless of the order; if it
    is empty, no subset is acceptable. Only rows that a removed row includes are measured again.
    """
    weights = context.weights.copy()
    current = RowMeasures(*(own.copy() for own in measures))
    rounds = []
    with SlicePool(n_threads) as pool:
        while True:
            is_kept = weights > 0
            is_bad = is_kept & (current.differences < k)
            smallest = int(current.differences[is_kept].min()) if is_kept.any() else 0
            rounds.append(Round(int(weights.sum()), smallest, int(weights[is_bad].sum())))
            if on_round is not None:
                on_round(rounds[-1])
            bad = np.flatnonzero(is_bad)
            if len(bad) == 0:
                break
            weights[bad] = 0
            _measure(context, weights, _list_affected(context, weights, bad, pool), current, pool)
    return Suppression(weights > 0, np.where(weights > 0, current.differences, 0), tuple(rounds))


def _list_affected(
    context: PackedContext, weights: NDArray[np.int64], bad: NDArray[np.int64], pool: SlicePool
) -> NDArray[np.int64]:
    """List the rows of weight above 0 that one of the bad rows includes."""
    first, holders = list_holders(context.rows[bad], context.n_attributes)
    is_affected = np.zeros(len(context.rows), np.bool_)

    def task(slices: Iterator[tuple[int, int]]) -> None:
        for begin, stop in slices:
            _mark_included(context.rows, weights, context.n_larger, bad, first, holders, begin, stop, is_affected)

    pool.run(len(context.rows), task)
    return np.flatnonzero(is_affected)


def _measure(
    context: PackedContext, weights: NDArray[np.int64], which: NDArray[np.int64], measures: RowMeasures, pool: SlicePool
) -> None:
    """Measure some rows into ``measures``; rows of weight 0 do not count."""
    rarest, _ = find_rarest(context.rows, context.n_larger, context.first, context.holders, which)
    order = np.argsort(rarest, kind="stable")
    which = which[order]
    # Group 0 consists of the rows without attributes.
    edges = np.searchsorted(rarest[order], np.arange(-1, context.n_attributes + 1))

    def task(slices: Iterator[tuple[int, int]]) -> None:
        for begin, stop in slices:
            for group in range(begin, stop):
                own = which[edges[group] : edges[group + 1]]
                if len(own):
                    _measure_group(context, weights, group - 1, own, measures)

    pool.run(context.n_attributes + 1, task)


def _measure_group(
    context: PackedContext, weights: NDArray[np.int64], attribute: int, which: NDArray[np.int64], measures: RowMeasures
) -> None:
    """Measure rows among those with one of their attributes, or among all if the attribute is -1."""
    rows, n_larger, first, holders = context.rows, context.n_larger, context.first, context.holders
    others = np.arange(len(rows), dtype=np.int32)
    if attribute >= 0:
        others = holders[first[attribute] : first[attribute + 1]]
    others = others[: np.searchsorted(others, n_larger[which].max())]
    others = others[weights[others] > 0]
    n_before = np.searchsorted(others, n_larger[which])
    _measure_among(rows[others], weights[others], n_before, rows[which], weights[which], which, first, *measures)


@kernel
def find_rarest(
    rows: NDArray[np.uint64],
    n_larger: NDArray[np.int64],
    first: NDArray[np.int64],
    holders: NDArray[np.int32],
    which: NDArray[np.int64],
) -> tuple[NDArray[np.int64], int]:
    """Find the attribute of each chosen row that the fewest larger rows have, -1 for a row without attributes.

    Also return the larger rows with it, summed over the chosen rows: an upper bound of the comparisons.
    """
    rarest, n_compared = np.empty(len(which), np.int64), 0
    for i in range(len(which)):
        e = which[i]
        low, high = shortest_list(rows[e], n_larger[e], first, holders)
        rarest[i] = -1 if low < 0 else np.searchsorted(first, low, side="right") - 1
        n_compared += high - max(low, 0)
    return rarest, n_compared


@kernel
def _measure_among(
    others: NDArray[np.uint64],
    other_weights: NDArray[np.int64],
    n_before: NDArray[np.int64],
    own: NDArray[np.uint64],
    own_weights: NDArray[np.int64],
    which: NDArray[np.int64],
    first_of_all: NDArray[np.int64],
    extents: NDArray[np.int64],
    differences: NDArray[np.int64],
    n_including: NDArray[np.int64],
    lacked: NDArray[np.int64],
) -> None:
    """Measure rows ``own`` among the first ``n_before`` of ``others``; write to the positions ``which``."""
    n_words, n_attributes = own.shape[1], len(first_of_all) - 1
    n_with = np.zeros(n_attributes, np.int64)
    first, holders = list_holders(others, n_attributes)
    for i in range(len(own)):
        extent, count = own_weights[i], 1
        low, high = shortest_list(own[i], n_before[i], first, holders)
        for t in range(max(low, 0), high):
            g = np.int64(holders[t]) if low >= 0 else np.int64(t)
            if not includes(others[g], own[i]):
                continue
            weight = other_weights[g]
            extent += weight
            count += 1
            for j in range(n_words):
                rest = others[g, j] & ~own[i, j]
                while rest:
                    a = 64 * j + place_of_lowest(rest)
                    n_with[a] += weight
                    rest &= rest - np.uint64(1)
        largest, absent = np.int64(0), np.int64(-1)
        if count > 1:
            for b in range(n_attributes):
                if n_with[b] > largest:
                    largest, absent = n_with[b], np.int64(b)
                n_with[b] = 0
        extents[which[i]], differences[which[i]], n_including[which[i]] = extent, extent - largest, count
        lacked[which[i]] = absent


@kernel
def _mark_included(
    rows: NDArray[np.uint64],
    weights: NDArray[np.int64],
    n_larger: NDArray[np.int64],
    bad: NDArray[np.int64],
    first_bad: NDArray[np.int64],
    bad_holders: NDArray[np.int32],
    begin: int,
    stop: int,
    is_affected: NDArray[np.bool_],
) -> None:
    """Mark the rows of a slice, of weight above 0, that a bad row includes; ``bad`` ascends."""
    for e in range(begin, stop):
        if weights[e] == 0:
            continue
        n_before = np.searchsorted(bad, n_larger[e])
        low, high = shortest_list(rows[e], n_before, first_bad, bad_holders)
        for t in range(max(low, 0), high):
            b = np.int64(bad_holders[t]) if low >= 0 else np.int64(t)
            if includes(rows[bad[b]], rows[e]):
                is_affected[e] = True
                break
