"""The concepts of a context and their covers, above a support; and the upper neighbors of one concept.

Concepts are listed depth first by Close-by-One [1]_: a concept is reached once, from the one that lacks its smallest
new attribute. One pass over the records of a concept gives the closures of all attributes that it lacks; the smallest
of these closures are the intents of its lower neighbors [2]_.

References
----------
.. [1] S. O. Kuznetsov (1993), "A fast algorithm for computing all intersections of objects in a finite semi-lattice".
.. [2] C. Lindig (2000), "Fast concept analysis".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.bit_sets import count_bits, find_or_add, includes, place_of_lowest, power_above
from privacy_assets.kernels.compilation import allocating_part, kernel, part
from privacy_assets.semantic_risk.kernels.formal_context import PackedContext, shortest_list


class Concepts(NamedTuple):
    """Concepts and their covers; the first one has all records.

    Intents are attributes in bits; ``upper`` and ``lower`` are pairs of a concept and a lower neighbor.
    """

    intents: NDArray[np.uint64]
    supports: NDArray[np.int64]
    upper: NDArray[np.int64]
    lower: NDArray[np.int64]


def list_concepts(
    context: PackedContext, min_support: int = 0, max_concepts: int = 1 << 20, max_words: int = 1 << 40
) -> Concepts | None:
    """List all concepts with a minimum number of records, and their covers; None if a bound was reached.

    A ``min_support`` of 0 includes the concept without records, if there is one. ``max_words`` bounds the words of 8
    bytes of rows and closures to read. Time: for each concept, the attributes of its distinct rows. Memory: two sets of
    bits per concept and cover.
    """
    n_attributes = context.n_attributes
    intents, supports, upper, lower_intents, is_complete = _enumerate(
        context.rows, context.weights, n_attributes, max(min_support, 1), max_concepts, max_words
    )
    if not is_complete:
        return None
    lower = _find_sets(intents, lower_intents)
    everything = full_set(n_attributes, context.rows.shape[1])
    if min_support == 0 and (context.rows[0] != everything).any():
        if len(intents) == max_concepts:
            return None
        atoms = np.setdiff1d(np.arange(len(intents)), upper)
        upper = np.concatenate([upper, atoms])
        lower = np.concatenate([lower, np.full(len(atoms), len(intents))])
        intents, supports = np.vstack([intents, everything]), np.append(supports, 0)
    return Concepts(intents, supports, upper, lower)


def full_set(n_attributes: int, n_words: int) -> NDArray[np.uint64]:
    """Return the set of all attributes in bits."""
    bits = np.zeros(n_words * 64, np.bool_)
    bits[:n_attributes] = True
    return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


@kernel
def _enumerate(
    rows: NDArray[np.uint64],
    weights: NDArray[np.int64],
    n_attributes: int,
    min_support: int,
    max_concepts: int,
    max_words: int,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64], bool]:
    """List intents, supports, and covers as the number of the upper concept and the intent of the lower one."""
    n_rows, n_words = rows.shape
    intents, supports = np.empty((256, n_words), np.uint64), np.empty(256, np.int64)
    upper, lower = np.empty(256, np.int64), np.empty((256, n_words), np.uint64)
    n_concepts, n_covers, n_read = 0, 0, 0
    # Records of the concepts on the path to the current one; each has a subset of those of the one above.
    members, starts = np.empty(2 * n_rows, np.int64), np.zeros(n_attributes + 3, np.int64)
    members[:n_rows] = np.arange(n_rows)
    starts[1] = n_rows
    to_do = np.empty((256, 2), np.int64)
    to_do[0] = (1, -1)
    n_to_do = 1
    closures = np.empty((n_attributes, n_words), np.uint64)
    n_with, touched = np.zeros(n_attributes, np.int64), np.empty(n_attributes, np.int64)
    while n_to_do > 0:
        n_to_do -= 1
        depth, generator = to_do[n_to_do]
        begin, stop = starts[depth], starts[depth]
        while len(members) < 2 * stop - starts[depth - 1]:
            members = np.concatenate((members, np.empty_like(members)))
        for i in range(starts[depth - 1], starts[depth]):
            g = members[i]
            if generator < 0 or (rows[g, generator >> 6] >> np.uint64(generator & 63)) & np.uint64(1):
                members[stop] = g
                stop += 1
        starts[depth + 1] = stop
        n_read += n_words * (starts[depth] - starts[depth - 1])
        own = rows[members[begin]].copy()
        support = np.int64(0)
        for i in range(begin, stop):
            support += weights[members[i]]
            for j in range(n_words):
                own[j] &= rows[members[i], j]
        if support < min_support:
            continue
        if n_concepts == max_concepts or n_read > max_words:
            return intents[:0], supports[:0], upper[:0], lower[:0], False
        if n_concepts == len(supports):
            intents = np.concatenate((intents, np.empty_like(intents)))
            supports = np.concatenate((supports, np.empty_like(supports)))
        intents[n_concepts], supports[n_concepts] = own, support
        n_touched, n_crosses = _close_all(rows, weights, members[begin:stop], own, n_with, closures, touched)
        n_read += n_words * n_crosses
        for t in range(n_touched):
            a = touched[t]
            if n_with[a] < min_support:
                continue
            first, largest = _added_by(closures[a], own, n_with)
            if first != a:
                continue
            # If more records had another attribute of the closure, there would be a concept between the two.
            if largest == n_with[a]:
                if n_covers == len(upper):
                    upper = np.concatenate((upper, np.empty_like(upper)))
                    lower = np.concatenate((lower, np.empty_like(lower)))
                upper[n_covers], lower[n_covers] = n_concepts, closures[a]
                n_covers += 1
            if a > generator:
                if n_to_do == len(to_do):
                    to_do = np.concatenate((to_do, np.empty_like(to_do)))
                to_do[n_to_do, 0], to_do[n_to_do, 1] = depth + 1, a
                n_to_do += 1
        for t in range(n_touched):
            n_with[touched[t]] = 0
        n_concepts += 1
    return intents[:n_concepts], supports[:n_concepts], upper[:n_covers], lower[:n_covers], True


@allocating_part
def _close_all(
    rows: NDArray[np.uint64],
    weights: NDArray[np.int64],
    members: NDArray[np.int64],
    own: NDArray[np.uint64],
    n_with: NDArray[np.int64],
    closures: NDArray[np.uint64],
    touched: NDArray[np.int64],
) -> tuple[int, int]:
    """Close a concept with each attribute that it lacks and some of its rows have.

    Writes the number of records with such an attribute to ``n_with``, which is 0 before, the attributes that all their
    rows share to ``closures``, and the attributes to ``touched``. Returns their number, and how often rows have one of
    them.
    """
    n_touched, n_crosses = 0, 0
    n_words = rows.shape[1]
    for g in members:
        for j in range(n_words):
            rest = rows[g, j] & ~own[j]
            while rest:
                a = 64 * j + place_of_lowest(rest)
                rest &= rest - np.uint64(1)
                n_crosses += 1
                if n_with[a] == 0:
                    touched[n_touched] = a
                    n_touched += 1
                    closures[a] = rows[g]
                else:
                    for word in range(n_words):
                        closures[a, word] &= rows[g, word]
                n_with[a] += weights[g]
    return n_touched, n_crosses


@part
def _added_by(
    closure: NDArray[np.uint64], own: NDArray[np.uint64], n_with: NDArray[np.int64]
) -> tuple[np.int64, np.int64]:
    """Return the first attribute that a closure adds, and the largest number of records with an added attribute."""
    first, largest = np.int64(-1), np.int64(0)
    for j in range(len(own)):
        rest = closure[j] & ~own[j]
        while rest:
            b = 64 * j + place_of_lowest(rest)
            rest &= rest - np.uint64(1)
            if first < 0:
                first = b
            largest = max(largest, n_with[b])
    return first, largest


@kernel
def _below(
    rows: NDArray[np.uint64], weights: NDArray[np.int64], own: NDArray[np.uint64], n_attributes: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return intents and supports of the lower neighbors of a concept."""
    members = np.empty(len(rows), np.int64)
    n_members = 0
    for g in range(len(rows)):
        if includes(rows[g], own):
            members[n_members] = g
            n_members += 1
    n_with, touched = np.zeros(n_attributes, np.int64), np.empty(n_attributes, np.int64)
    closures = np.empty((n_attributes, rows.shape[1]), np.uint64)
    n_touched, _ = _close_all(rows, weights, members[:n_members], own, n_with, closures, touched)
    kept, n_kept = np.empty(n_touched, np.int64), 0
    for a in np.sort(touched[:n_touched]):
        first, largest = _added_by(closures[a], own, n_with)
        if first == a and largest == n_with[a]:
            kept[n_kept] = a
            n_kept += 1
    return closures[kept[:n_kept]], n_with[kept[:n_kept]]


@kernel
def _find_sets(sets: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of each wanted set among distinct sets; all must exist."""
    both = np.concatenate((sets, wanted))
    table = np.full(power_above(2 * len(both)), -1, np.int64)
    for i in range(len(sets)):
        find_or_add(table, both, i)
    numbers = np.empty(len(wanted), np.int64)
    for i in range(len(wanted)):
        numbers[i] = find_or_add(table, both, len(sets) + i)
    return numbers


def upper_neighbors(context: PackedContext, intent: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Find the intents of the upper neighbors of a concept, and the additional records of each.

    ``intent`` is closed; not checked here.
    """
    sets, counts = _meets(context.rows, context.weights, intent)
    order = np.argsort(-count_bits(sets), kind="stable")
    sets, counts = np.ascontiguousarray(sets[order]), counts[order]
    is_largest = _are_largest(sets)
    return sets[is_largest], counts[is_largest]


@kernel
def _meets(
    rows: NDArray[np.uint64], weights: NDArray[np.int64], intent: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the distinct intersections of other rows with the intent, and their records."""
    sets = np.empty((64, rows.shape[1]), np.uint64)
    counts = np.zeros(64, np.int64)
    table = np.full(power_above(128), -1, np.int64)
    n_sets = 0
    for g in range(len(rows)):
        if includes(rows[g], intent):
            continue
        if n_sets == len(sets):
            sets = np.concatenate((sets, np.empty_like(sets)))
            counts = np.concatenate((counts, np.zeros_like(counts)))
            table = np.full(power_above(2 * len(sets)), -1, np.int64)
            for i in range(n_sets):
                find_or_add(table, sets, i)
        sets[n_sets] = rows[g] & intent
        number = find_or_add(table, sets, n_sets)
        counts[number] += weights[g]
        n_sets = max(n_sets, number + 1)
    return sets[:n_sets], counts[:n_sets]


@kernel
def _are_largest(sets: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Mark the maximal sets; the sets are distinct, largest first."""
    is_largest = np.ones(len(sets), np.bool_)
    for i in range(len(sets)):
        for other in range(i):
            if is_largest[other] and includes(sets[other], sets[i]):
                is_largest[i] = False
                break
    return is_largest


def lower_neighbors(context: PackedContext, intent: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Find the intents of the lower neighbors of a concept that have records, and their numbers of records."""
    return _below(context.rows, context.weights, np.ascontiguousarray(intent), context.n_attributes)


@kernel
def close_sets(
    rows: NDArray[np.uint64],
    first: NDArray[np.int64],
    holders: NDArray[np.int32],
    sets: NDArray[np.uint64],
    everything: NDArray[np.uint64],
) -> NDArray[np.uint64]:
    """Return the closure of each set of attributes; all attributes if no row has the set."""
    closures = np.empty_like(sets)
    for i in range(len(sets)):
        closures[i] = everything
        begin, stop = shortest_list(sets[i], len(rows), first, holders)
        for t in range(max(begin, 0), stop):
            g = np.int64(holders[t]) if begin >= 0 else np.int64(t)
            if includes(rows[g], sets[i]):
                closures[i] &= rows[g]
    return closures


@kernel
def words_to_close(n_rows: int, first: NDArray[np.int64], holders: NDArray[np.int32], sets: NDArray[np.uint64]) -> int:
    """Return the maximum number of words of 8 bytes that :func:`close_sets` reads."""
    n_read = 0
    for i in range(len(sets)):
        begin, stop = shortest_list(sets[i], n_rows, first, holders)
        n_read += sets.shape[1] * (stop - max(begin, 0))
    return n_read
