"""Semantic risk of every row of a context: the best path down the concept lattice, found without the lattice.

The semantic risk of a concept C with n records is 1 / n if no smaller concept has records, else the largest risk of a
non-empty lower neighbor D divided by n - #D [1]_. Its inverse is the smallest product of differences along a path down;
a best-first search finds it. Concepts of other rows on the path are already known, because rows with more attributes
come first, so paths end there.

References
----------
.. [1] G. A. Aranda-Corral, J. Borrego-Diaz, J. Galan-Paez, "FCA-based reasoning for privacy", definition 3.4.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.bit_sets import (
    count_ones,
    find_or_add,
    includes,
    place_of_highest,
    place_of_lowest,
    power_above,
)
from privacy_assets.kernels.compilation import allocating_part, kernel
from privacy_assets.kernels.slices import SlicePool
from privacy_assets.semantic_risk.kernels.formal_context import PackedContext, shortest_list
from privacy_assets.semantic_risk.kernels.row_measures import RowMeasures

# Words of 8 bytes that the search of one row may keep.
WORDS_KEPT = 1 << 22
# Words that it may read at first, and the factor by which they grow when it is repeated.
FIRST_WORDS, REPEATED_BY = 1 << 20, 8


class SemanticRisks(NamedTuple):
    """Risks above 0 and at most 1 (0 only below 1e-308), NaN beyond the bounds; words of 8 bytes read."""

    risks: NDArray[np.float64]
    words_read: int


def search_semantic_risks(
    context: PackedContext,
    measures: RowMeasures,
    n_threads: int = 1,
    max_words: int = 1 << 40,
    on_wait: Callable[[int, int], None] | None = None,
) -> SemanticRisks:
    """Find the semantic risk of every row.

    All searches together may read ``max_words`` words of 8 bytes, about 5 * 10**8 of them in a second on each core;
    each search may keep 32 MiB. ``on_wait`` is called about twice a second with the rows searched so far and the rows
    to search. The words are divided without regard to time: rows with equally many attributes share them equally, and
    those whose search did not end receive the words that the others did not use, in rounds. So the same rows are found
    on every machine, with any number of threads.
    """
    products = context.weights.astype(np.float64)
    n_read = np.zeros(len(products), np.int64)
    # A row includes only rows with fewer attributes, so the prerequisites of a search are known level by level.
    open_rows = np.flatnonzero(measures.n_including > 1)
    edges = np.flatnonzero(np.diff(context.n_larger[open_rows], prepend=-1, append=-1))
    products[open_rows] = np.nan
    words_left = max_words

    def report() -> None:
        if on_wait is not None:
            on_wait(int(np.count_nonzero(~np.isnan(products[open_rows]))), len(open_rows))

    with SlicePool(n_threads, report) as pool:
        for begin, stop in pairwise(edges):
            which, before, share = open_rows[begin:stop], 0, FIRST_WORDS
            while len(which) and words_left > 0:
                share = min(share, words_left // len(which))
                if share <= before:
                    break
                n_read[which] = 0

                def task(
                    slices: Iterator[tuple[int, int]], which: NDArray[np.int64] = which, share: int = share
                ) -> None:
                    for low, high in slices:
                        _search_slice(
                            context.rows,
                            context.weights,
                            context.n_larger,
                            context.first,
                            context.holders,
                            measures.n_including,
                            which[low:high],
                            share,
                            products,
                            n_read,
                            pool.is_stopped,
                        )

                pool.run(len(which), task)
                words_left -= int(n_read[which].sum())
                # A larger share only helps a search that read all of its words; the others lack memory or a
                # prerequisite.
                which = which[np.isnan(products[which]) & (n_read[which] >= share)]
                before, share = share, share * REPEATED_BY
    return SemanticRisks(1.0 / products, max_words - words_left)


@kernel
def _search_slice(
    rows: NDArray[np.uint64],
    weights: NDArray[np.int64],
    n_larger: NDArray[np.int64],
    first: NDArray[np.int64],
    holders: NDArray[np.int32],
    n_including: NDArray[np.int64],
    which: NDArray[np.int64],
    max_words: int,
    products: NDArray[np.float64],
    n_read: NDArray[np.int64],
    is_stopped: NDArray[np.bool_],
) -> None:
    """Write the smallest product of some rows that others include, and the words read, at most ``max_words``."""
    for e in which:
        if is_stopped[0]:
            return
        members = np.empty(n_including[e], np.int64)
        n_members = 0
        low, high = shortest_list(rows[e], n_larger[e], first, holders)
        n_read[e] = rows.shape[1] * (high - max(low, 0))
        if n_read[e] >= max_words:
            n_read[e] = max_words
            continue
        for t in range(max(low, 0), high):
            g = np.int64(holders[t]) if low >= 0 else np.int64(t)
            if includes(rows[g], rows[e]):
                members[n_members] = g
                n_members += 1
        members[n_members] = e
        columns = _columns_of(rows, members, len(first) - 1)
        products[e], n_more = _smallest_product(
            columns, members, weights, n_including, products, max_words - n_read[e], is_stopped
        )
        n_read[e] += n_more


@allocating_part
def _columns_of(rows: NDArray[np.uint64], members: NDArray[np.int64], n_attributes: int) -> NDArray[np.uint64]:
    """Return the members with each attribute that some but not all of them have, as bits; equal columns once."""
    n_words = (len(members) + 63) // 64
    last = members[-1]
    number = np.full(n_attributes, -1, np.int64)
    n_columns = 0
    for g in members[:-1]:
        for j in range(rows.shape[1]):
            rest = rows[g, j] & ~rows[last, j]
            while rest:
                a = 64 * j + place_of_lowest(rest)
                rest &= rest - np.uint64(1)
                if number[a] < 0:
                    number[a] = n_columns
                    n_columns += 1
    columns = np.zeros((n_columns, n_words), np.uint64)
    for i in range(len(members) - 1):
        g = members[i]
        for j in range(rows.shape[1]):
            rest = rows[g, j] & ~rows[last, j]
            while rest:
                a = 64 * j + place_of_lowest(rest)
                rest &= rest - np.uint64(1)
                columns[number[a], i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    table = np.full(power_above(2 * n_columns), -1, np.int64)
    n_distinct = 0
    for c in range(n_columns):
        columns[n_distinct] = columns[c]
        if find_or_add(table, columns, n_distinct) == n_distinct:
            n_distinct += 1
    return columns[:n_distinct]


@allocating_part
def _smallest_product(
    columns: NDArray[np.uint64],
    members: NDArray[np.int64],
    weights: NDArray[np.int64],
    n_including: NDArray[np.int64],
    products: NDArray[np.float64],
    max_words: int,
    is_stopped: NDArray[np.bool_],
) -> tuple[float, int]:
    """Search best first from the set of all members; NaN if a bound was reached. Return also the words read."""
    n_columns, n_words = columns.shape
    planes = _weight_planes(members, weights, n_words)
    n_read = 0
    sets = np.zeros((64 + n_columns, n_words), np.uint64)
    sizes = np.zeros(len(sets), np.int64)
    reached = np.full(len(sets), np.inf)
    table = np.full(power_above(2 * len(sets)), -1, np.int64)
    for i in range(len(members)):
        sets[0, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
        sizes[0] += weights[members[i]]
    find_or_add(table, sets, 0)
    reached[0] = 1.0
    n_sets = 1
    best = np.inf
    heap = [(1.0, 0)]
    while len(heap) > 0:
        product, current = heapq.heappop(heap)
        if product >= best or is_stopped[0]:
            break
        if product > reached[current]:
            continue
        if current > 0:
            n_own, last = np.int64(0), 0
            for j in range(n_words):
                word = sets[current, j]
                if word:
                    n_own += np.int64(count_ones(word))
                    last = 64 * j + place_of_highest(word)
            if n_including[members[last]] == n_own:
                # The concept of a row that was searched before, unless that search reached a bound.
                if np.isnan(products[members[last]]):
                    return np.nan, n_read
                best = min(best, product * products[members[last]])
                continue
        if n_sets + n_columns > len(sets):
            if 2 * len(sets) * n_words > WORDS_KEPT:
                return np.nan, n_read
            sets, sizes, reached, table = _grown(sets, sizes, reached, n_sets)
        n_before = n_sets
        neighbors, n_more = _lower_neighbors(columns, sets, sizes, n_sets, current, planes)
        n_read += n_more
        if n_read >= max_words:
            return np.nan, max_words
        for i in range(neighbors):
            c = n_before + i
            size = sizes[c]
            sets[n_sets] = sets[c]
            sizes[n_sets] = size
            reached[n_sets] = np.inf
            number = find_or_add(table, sets, n_sets)
            if number == n_sets:
                n_sets += 1
            longer = product * (sizes[current] - size)
            if longer < reached[number]:
                reached[number] = longer
                heapq.heappush(heap, (longer, number))
    return (np.nan if is_stopped[0] else best), n_read


@allocating_part
def _weight_planes(members: NDArray[np.int64], weights: NDArray[np.int64], n_words: int) -> NDArray[np.uint64]:
    """Return the members with each binary digit of the weights, so that weights of sets are counts of bits."""
    n_planes = 1
    for g in members:
        while weights[g] >> n_planes:
            n_planes += 1
    planes = np.zeros((n_planes, n_words), np.uint64)
    for i in range(len(members)):
        for b in range(n_planes):
            if (weights[members[i]] >> b) & 1:
                planes[b, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    return planes


@allocating_part
def _grown(
    sets: NDArray[np.uint64], sizes: NDArray[np.int64], reached: NDArray[np.float64], n_sets: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Double the memory of the search."""
    n_places = 2 * len(sets)
    new_sets = np.zeros((n_places, sets.shape[1]), np.uint64)
    new_sets[:n_sets] = sets[:n_sets]
    new_sizes = np.zeros(n_places, np.int64)
    new_sizes[:n_sets] = sizes[:n_sets]
    new_reached = np.full(n_places, np.inf)
    new_reached[:n_sets] = reached[:n_sets]
    table = np.full(power_above(2 * n_places), -1, np.int64)
    for c in range(n_sets):
        find_or_add(table, new_sets, c)
    return new_sets, new_sizes, new_reached, table


@allocating_part
def _lower_neighbors(
    columns: NDArray[np.uint64],
    sets: NDArray[np.uint64],
    sizes: NDArray[np.int64],
    n_sets: int,
    current: int,
    planes: NDArray[np.uint64],
) -> tuple[int, int]:
    """Append the largest proper, non-empty intersections of a set with columns; return their number, and words read.

    ``sets`` has room for one per column.
    """
    n_columns, n_words = columns.shape
    n_found = 0
    n_read = n_columns * n_words * (1 + len(planes))
    for c in range(n_columns):
        place = n_sets + n_found
        size, is_whole = np.int64(0), True
        for j in range(n_words):
            word = sets[current, j] & columns[c, j]
            sets[place, j] = word
            is_whole &= word == sets[current, j]
            if word:
                for b in range(len(planes)):
                    size += np.int64(count_ones(word & planes[b, j])) << b
        if size == 0 or is_whole:
            continue
        is_largest = True
        kept = n_sets
        # Comparisons end early, often at the first word.
        n_read += n_found * (1 + n_words // 8)
        for other in range(n_sets, place):
            if is_largest and includes(sets[other], sets[place]):
                is_largest = False
            if is_largest and includes(sets[place], sets[other]):
                continue
            if kept != other:
                sets[kept] = sets[other]
                sizes[kept] = sizes[other]
            kept += 1
        if is_largest:
            if kept != place:
                sets[kept] = sets[place]
            sizes[kept] = size
            kept += 1
        n_found = kept - n_sets
    return n_found, n_read
