"""The Duquenne-Guigues basis of a context: a minimal set of implications from which all others follow.

A set is a pseudo-intent if it is not closed but includes the closure of every smaller pseudo-intent in it; the basis
has one implication for each. Sets that are closed under the implications found so far are visited in lectic order [1]_,
in a depth-first search with branches from the last attribute to the first. So the records of a set are found among
those of its parent, and sets of too few records are pruned with their subtrees. A set includes everything implied by
its last attribute alone, unless both have the same records; so branches that lack some of it are pruned.

References
----------
.. [1] B. Ganter, R. Wille (1999), "Formal Concept Analysis", section 2.3, doi:10.1007/978-3-642-59830-2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.bit_sets import BITS, includes, place_of_lowest
from privacy_assets.kernels.compilation import allocating_part, kernel, part
from privacy_assets.semantic_risk.kernels.concepts import close_sets, full_set, words_to_close
from privacy_assets.semantic_risk.kernels.formal_context import PackedContext


class Implications(NamedTuple):
    """Implications in bits; a conclusion is the closure of its premise, so it includes the premise.

    ``supports`` are the records with the premise, ``words_read`` the words of 8 bytes that were read.
    """

    premises: NDArray[np.uint64]
    conclusions: NDArray[np.uint64]
    supports: NDArray[np.int64]
    words_read: int


def find_stem_basis(
    context: PackedContext, min_support: int = 0, max_sets: int = 1 << 20, max_words: int = 1 << 40
) -> Implications | None:
    """Find the implications of the stem basis with enough support, in lectic order; None if a bound was reached.

    All implications of at least this support follow from the result. At most ``max_sets`` closed sets and
    pseudo-intents are visited, and ``max_words`` words of 8 bytes of rows and implications, and attributes of sets and
    rows, are read: about 10**9 per second. Their number does not depend on the machine.
    """
    everything = full_set(context.n_attributes, context.rows.shape[1])
    singles = _singles(context.n_attributes)
    n_read = words_to_close(len(context.rows), context.first, context.holders, singles)
    if n_read > max_words:
        return None
    alone = close_sets(context.rows, context.first, context.holders, singles, everything)
    premises, conclusions, supports, n_more, is_complete = _find(
        context.rows,
        context.weights,
        np.diff(context.first),
        everything,
        alone,
        min_support,
        max_sets,
        max_words - n_read,
    )
    return Implications(premises, conclusions, supports, n_read + n_more) if is_complete else None


def _singles(n_attributes: int) -> NDArray[np.uint64]:
    """Return the sets of one attribute."""
    sets = np.zeros((n_attributes, max(-(-n_attributes // BITS), 1)), np.uint64)
    each = np.arange(n_attributes)
    sets[each, each // BITS] = np.uint64(1) << (each % BITS).astype(np.uint64)
    return sets


@kernel
def _find(
    rows: NDArray[np.uint64],
    weights: NDArray[np.int64],
    n_holders: NDArray[np.int64],
    everything: NDArray[np.uint64],
    alone: NDArray[np.uint64],
    min_support: int,
    max_sets: int,
    max_words: int,
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64], int, bool]:
    """Visit the sets; return premises, conclusions, supports, the words read, and whether all sets were visited.

    ``alone`` has the closure of each attribute.
    """
    n_rows, n_words = rows.shape
    n_attributes = len(n_holders)
    premises, conclusions = np.empty((256, n_words), np.uint64), np.empty((256, n_words), np.uint64)
    supports, following = np.empty(256, np.int64), np.empty(256, np.int64)
    # Implications are looked up by the rarest attribute of their premise; the last position is for the empty premise.
    # Implications without support are separate: they apply only to sets without records, and close these at once.
    heads = np.full((2, n_attributes + 1), -1, np.int64)
    n_found, n_sets = 0, 0
    members, starts = np.empty(2 * n_rows, np.int64), np.zeros(n_attributes + 3, np.int64)
    members[:n_rows] = np.arange(n_rows)
    starts[1] = n_rows
    on_path = np.zeros((n_attributes + 2, n_words), np.uint64)
    to_do = np.empty((n_attributes + 256, 2), np.int64)
    to_do[0] = (1, -1)
    n_to_do = 1
    n_with = np.zeros(n_attributes, np.int64)
    n_alone = np.zeros(n_attributes, np.int64)
    for g in range(n_rows):
        for j in range(n_words):
            rest = rows[g, j]
            while rest:
                n_alone[64 * j + place_of_lowest(rest)] += weights[g]
                rest &= rest - np.uint64(1)
    n_read = 0
    while n_to_do > 0:
        n_to_do -= 1
        depth, generator = to_do[n_to_do]
        begin, stop = starts[depth], starts[depth]
        while len(members) < 2 * stop - starts[depth - 1]:
            members = np.concatenate((members, np.empty_like(members)))
        closure, support = everything.copy(), np.int64(0)
        for i in range(starts[depth - 1], starts[depth]):
            g = members[i]
            if generator < 0 or (rows[g, generator >> 6] >> np.uint64(generator & 63)) & np.uint64(1):
                members[stop] = g
                stop += 1
                support += weights[g]
                for j in range(n_words):
                    closure[j] &= rows[g, j]
        starts[depth + 1] = stop
        n_read += n_words * (starts[depth] - starts[depth - 1])
        if n_read > max_words:
            return premises[:0], conclusions[:0], supports[:0], n_read, False
        if support < min_support:
            continue
        own = on_path[depth - 1].copy()
        if generator >= 0:
            own[generator >> 6] |= np.uint64(1) << np.uint64(generator & 63)
        if not _is_equal(own, closure):
            is_empty = False
            if support == 0:
                is_empty, n_tried = _applies(own, premises, heads[0], following)
                n_read += n_words * n_tried
            if not is_empty:
                n_read += n_words * _close(own, premises, conclusions, heads[1], following)
                if support == 0:
                    is_empty, n_tried = _applies(own, premises, heads[0], following)
                    n_read += n_words * n_tried
            if is_empty:
                own[:] = everything
        if generator >= 0 and _adds_before(on_path[depth - 1], own, generator):
            continue
        if n_sets == max_sets:
            return premises[:0], conclusions[:0], supports[:0], n_read, False
        n_sets += 1
        on_path[depth] = own
        if not _is_equal(own, closure):
            if n_found == len(supports):
                premises = np.concatenate((premises, np.empty_like(premises)))
                conclusions = np.concatenate((conclusions, np.empty_like(conclusions)))
                supports = np.concatenate((supports, np.empty_like(supports)))
                following = np.concatenate((following, np.empty_like(following)))
            premises[n_found], conclusions[n_found], supports[n_found] = own, closure, support
            rarest = _rarest(own, n_holders)
            kind = np.int64(support > 0)
            following[n_found] = heads[kind, rarest]
            heads[kind, rarest] = n_found
            n_found += 1
        for i in range(begin, stop):
            g = members[i]
            for j in range(n_words):
                rest = rows[g, j] & ~own[j]
                while rest:
                    held = 64 * j + place_of_lowest(rest)
                    n_with[held] += weights[g]
                    rest &= rest - np.uint64(1)
                    n_read += 1
        if n_to_do + n_attributes > len(to_do):
            to_do = np.concatenate((to_do, np.empty_like(to_do)))
        n_read += n_words * (stop - begin)
        for a in range(generator + 1, n_attributes):
            n_read += 1 + (a >> 6)
            is_in = (own[a >> 6] >> np.uint64(a & 63)) & np.uint64(1)
            is_cut = n_with[a] < n_alone[a] and _adds_before(own, alone[a], a)
            if not is_in and n_with[a] >= min_support and not is_cut:
                to_do[n_to_do, 0], to_do[n_to_do, 1] = depth + 1, a
                n_to_do += 1
            n_with[a] = 0
        n_with[: generator + 1] = 0
    return premises[:n_found], conclusions[:n_found], supports[:n_found], n_read, True


@part
def _is_equal(own: NDArray[np.uint64], other: NDArray[np.uint64]) -> bool:
    for j in range(len(own)):  # noqa: SIM110 - a compiled loop
        if own[j] != other[j]:
            return False
    return True


@part
def _rarest(own: NDArray[np.uint64], n_holders: NDArray[np.int64]) -> int:
    """Return the element of a set that the fewest rows have; the number of attributes for the empty set."""
    rarest = np.int64(len(n_holders))
    for j in range(len(own)):
        rest = own[j]
        while rest:
            a = 64 * j + place_of_lowest(rest)
            rest &= rest - np.uint64(1)
            if rarest == len(n_holders) or n_holders[a] < n_holders[rarest]:
                rarest = a
    return int(rarest)


@part
def _adds_before(before: NDArray[np.uint64], after: NDArray[np.uint64], attribute: int) -> bool:
    """Whether a set has an element below ``attribute`` that an earlier one lacks."""
    for j in range(attribute >> 6):
        if after[j] & ~before[j]:
            return True
    below = (np.uint64(1) << np.uint64(attribute & 63)) - np.uint64(1)
    j = attribute >> 6
    return bool(after[j] & ~before[j] & below)


@allocating_part
def _close(
    own: NDArray[np.uint64],
    premises: NDArray[np.uint64],
    conclusions: NDArray[np.uint64],
    heads: NDArray[np.int64],
    following: NDArray[np.int64],
) -> int:
    """Extend a set by the implications with smaller premises; return how many were tried."""
    n_tried = 0
    is_changed = True
    while is_changed:
        is_changed, n_own = _apply(own, premises, conclusions, heads[-1], following)
        n_tried += n_own
        before = own.copy()
        for j in range(len(own)):
            rest = before[j]
            while rest:
                a = 64 * j + place_of_lowest(rest)
                rest &= rest - np.uint64(1)
                has_grown, n_own = _apply(own, premises, conclusions, heads[a], following)
                is_changed |= has_grown
                n_tried += 1 + n_own
    return n_tried


@part
def _applies(
    own: NDArray[np.uint64], premises: NDArray[np.uint64], heads: NDArray[np.int64], following: NDArray[np.int64]
) -> tuple[bool, int]:
    """Whether the premise of some implication is smaller than a set; return also how many were tried."""
    n_tried = 0
    for j in range(len(own)):
        rest = own[j]
        while rest:
            head = heads[64 * j + place_of_lowest(rest)]
            rest &= rest - np.uint64(1)
            while head >= 0:
                n_tried += 1
                if includes(own, premises[head]) and not _is_equal(own, premises[head]):
                    return True, n_tried
                head = following[head]
    return False, n_tried


@part
def _apply(
    own: NDArray[np.uint64],
    premises: NDArray[np.uint64],
    conclusions: NDArray[np.uint64],
    head: int,
    following: NDArray[np.int64],
) -> tuple[bool, int]:
    """Apply a list of implications once; return whether the set has grown, and the number of implications."""
    is_changed, n_tried = False, 0
    while head >= 0:
        n_tried += 1
        is_smaller = includes(own, premises[head]) and not _is_equal(own, premises[head])
        if is_smaller and not includes(own, conclusions[head]):
            own |= conclusions[head]
            is_changed = True
        head = following[head]
    return is_changed, n_tried
