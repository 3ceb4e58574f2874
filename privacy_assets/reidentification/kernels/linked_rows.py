"""Counting of people with a group of released rows that fit several known rows, each a different one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.bit_sets import count_ones, place_of_lowest
from privacy_assets.kernels.compilation import allocating_part, kernel, part
from privacy_assets.kernels.sorting import place_in, sort_ascending

# Looking up a box in a group takes about as long as reading this many groups of a list.
GROUPS_PER_SEARCH = 8
# Bits of the known rows of one person: up to 32 MiB. Beyond them, the rows that most groups fit are left out.
MOST_WORDS = 1 << 22
MOST_ATTACKED = 32
"""Known rows of an attack that adds the best row in each step."""
PROVEN, FOUND, OPEN = 0, 1, 2
"""Outcomes of a search for known rows that leave too few people."""


class RowFits(NamedTuple):
    """The boxes that each known row fits, and the groups of released rows by box, as lists one after the other.

    The boxes of a known row, ascending, begin at ``fit_first``; the groups with rows in a box, and their number of
    rows there, at ``box_first``; the box of each row of a group, ascending, at ``group_first``. ``owner``, ascending,
    is the person of each group. If each known row fits a single box, boxes are numbered as known rows.
    """

    fit_first: NDArray[np.int64]
    fit_box: NDArray[np.int64]
    box_first: NDArray[np.int64]
    box_group: NDArray[np.int64]
    box_count: NDArray[np.int64]
    group_first: NDArray[np.int64]
    group_box: NDArray[np.int64]
    owner: NDArray[np.int64]


class _Options(NamedTuple):
    """Choices of a known row of one person, as the n-th copy of it, by the number of groups that fit.

    ``below`` is the choice of one copy less: -1 for the first one, -2 if it was left out. ``fits``
    are the groups with that many fitting rows as bits, and ``matched`` those of them in which all chosen rows of the
    person together have different rows; the same, unless boxes overlap. ``groups`` are the groups of the bits.
    """

    known: NDArray[np.int64]
    copy: NDArray[np.int64]
    below: NDArray[np.int64]
    groups: NDArray[np.int64]
    fits: NDArray[np.uint64]
    matched: NDArray[np.uint64]
    is_complete: bool


@kernel
def count_people(
    begin: int, stop: int, fits: RowFits, first: NDArray[np.int64], known: NDArray[np.int64], sizes: NDArray[np.int64]
) -> None:
    """Count the people left by each sample of known rows, ``known[first[s]:first[s + 1]]``, ascending, not empty.

    Cost of a sample: the groups in the boxes of its rows; where boxes overlap, a matching for each group left.
    """
    n_groups = len(fits.owner)
    n_fit, left = np.zeros(n_groups, np.int64), np.arange(n_groups)
    seen = np.full(fits.owner[n_groups - 1] + 1, -1, np.int64)
    longest = 0
    for s in range(begin, stop):
        longest = max(longest, first[s + 1] - first[s])
    scratch = _scratch(fits, longest)
    is_disjoint = len(fits.fit_box) == len(fits.fit_first) - 1
    for s in range(begin, stop):
        own = known[first[s] : first[s + 1]]
        n_left, i = n_groups, 0
        while i < len(own):
            copies = _copies(own, i)
            n_left = _keep(fits, own[i], copies, i == 0, n_fit, left, n_left)
            i += copies
        for g in left[:n_left]:
            if seen[fits.owner[g]] == s:
                continue
            if is_disjoint or len(own) == 1 or _match(fits, own, g, True, scratch) == len(own):
                seen[fits.owner[g]] = s
                sizes[s] += 1


@part
def _copies(own: NDArray[np.int64], i: int) -> int:
    """Count the known rows from position ``i`` on that are the same."""
    n = 1
    while i + n < len(own) and own[i + n] == own[i]:
        n += 1
    return n


@part
def _keep(
    fits: RowFits,
    q: int,
    copies: int,
    is_first: bool,
    n_fit: NDArray[np.int64],
    left: NDArray[np.int64],
    n_left: int,
) -> int:
    """Keep the groups with ``copies`` rows that fit known row ``q``, of all if it is the first; return their number."""
    boxes = fits.fit_box[fits.fit_first[q] : fits.fit_first[q + 1]]
    length, n_kept = 0, 0
    for b in boxes:
        length += fits.box_first[b + 1] - fits.box_first[b]
    if not is_first and n_left * len(boxes) * GROUPS_PER_SEARCH < length:
        for g in left[:n_left]:
            own = fits.group_box[fits.group_first[g] : fits.group_first[g + 1]]
            n = 0
            for b in boxes:
                n += place_in(own, b + 1) - place_in(own, b)
            left[n_kept] = g
            n_kept += n >= copies
        return n_kept
    _add(fits, q, n_fit)
    if not is_first:
        for g in left[:n_left]:
            left[n_kept] = g
            n_kept += n_fit[g] >= copies
    for b in boxes:
        for place in range(fits.box_first[b], fits.box_first[b + 1]):
            g = fits.box_group[place]
            if is_first and n_fit[g] >= copies:
                left[n_kept] = g
                n_kept += 1
            n_fit[g] = 0
    return n_kept


@part
def _add(fits: RowFits, q: int, n_fit: NDArray[np.int64]) -> None:
    """Add the number of rows of each group that fit a known row."""
    for b in fits.fit_box[fits.fit_first[q] : fits.fit_first[q + 1]]:
        for place in range(fits.box_first[b], fits.box_first[b + 1]):
            n_fit[fits.box_group[place]] += fits.box_count[place]


@allocating_part
def _scratch(fits: RowFits, n_known: int) -> NDArray[np.int64]:
    """Make the arrays of a matching, by known row or by row of the group, as one of shape (5, n)."""
    n = n_known
    for g in range(len(fits.owner)):
        n = max(n, fits.group_first[g + 1] - fits.group_first[g])
    return np.empty((5, n), np.int64)


@part
def _match(fits: RowFits, own: NDArray[np.int64], g: int, needs_all: bool, scratch: NDArray[np.int64]) -> int:
    """Match known rows to different rows of a group, by augmenting paths in the order of the known rows.

    Returns the number of matched rows; ``scratch[0]`` is the row of the group of each, or -1. A row that is matched
    once stays so. If all are needed, the first row without a match ends the search.
    """
    row_of, known_of, found_from, seen, queue = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    boxes = fits.group_box[fits.group_first[g] : fits.group_first[g + 1]]
    known_of[: len(boxes)] = -1
    seen[: len(boxes)] = -1
    n_matched = 0
    for i in range(len(own)):
        row_of[i] = -1
        queue[0] = i
        n_queued, head = 1, 0
        while head < n_queued:
            now = queue[head]
            head += 1
            fitting = fits.fit_box[fits.fit_first[own[now]] : fits.fit_first[own[now] + 1]]
            for row in range(len(boxes)):
                if seen[row] == i:
                    continue
                place = place_in(fitting, boxes[row])
                if place == len(fitting) or fitting[place] != boxes[row]:
                    continue
                seen[row], found_from[row] = i, now
                if known_of[row] >= 0:
                    queue[n_queued] = known_of[row]
                    n_queued += 1
                    continue
                end = row
                while end >= 0:
                    now = found_from[end]
                    known_of[end], end, row_of[now] = now, row_of[now], end
                n_queued = head  # ends the search
                n_matched += 1
                break
        if needs_all and row_of[i] < 0:
            break
    return n_matched


@part
def _count_both(
    a: NDArray[np.uint64], b: NDArray[np.uint64], groups: NDArray[np.int64], owner: NDArray[np.int64]
) -> int:
    """Count the people with a group in both sets of bits."""
    total, last = 0, -1
    if owner[len(owner) - 1] == len(owner) - 1:  # one group each
        for w in range(len(a)):
            total += int(count_ones(a[w] & b[w]))
        return total
    for w in range(len(a)):
        word = a[w] & b[w]
        while word:
            person = int(owner[groups[64 * w + place_of_lowest(word)]])
            total += person != last
            last = person
            word &= word - np.uint64(1)
    return total


@allocating_part
def _make_options(
    fits: RowFits, own: NDArray[np.int64], n_rows: int, of_group: NDArray[np.int64], scratch: NDArray[np.int64]
) -> _Options:
    """Make the choices of the known rows of one person, each up to ``n_rows`` times.

    ``of_group`` (3, n_groups) is scratch: numbers of fitting rows, 0; places among the bits, -1; groups.
    """
    n_fit, place_of, touched = of_group[0], of_group[1], of_group[2]
    known, copy, keys = np.empty(len(own), np.int64), np.empty(len(own), np.int64), np.zeros(len(own), np.int64)
    n_options, n_touched, i = 0, 0, 0
    while i < len(own):
        copies = min(_copies(own, i), n_rows)
        _add(fits, own[i], n_fit)
        for b in fits.fit_box[fits.fit_first[own[i]] : fits.fit_first[own[i] + 1]]:
            for g in fits.box_group[fits.box_first[b] : fits.box_first[b + 1]]:
                if place_of[g] < 0:
                    place_of[g] = 0
                    touched[n_touched] = g
                    n_touched += 1
                for j in range(min(copies, n_fit[g])):
                    keys[n_options + j] += len(own)
                n_fit[g] = 0
        for j in range(copies):
            known[n_options], copy[n_options] = own[i], j + 1
            keys[n_options] += n_options
            n_options += 1
        i += _copies(own, i)
    groups = touched[:n_touched].copy()
    sort_ascending(groups)
    for place in range(n_touched):
        place_of[groups[place]] = place
    sort_ascending(keys[:n_options])
    n_words = (n_touched + 63) // 64
    n_kept = min(n_options, max(MOST_WORDS // n_words, 2))
    bits = np.zeros((n_kept, n_words), np.uint64)
    order, position = np.empty(n_kept, np.int64), np.full(n_options, -1, np.int64)
    for o in range(n_kept):
        order[o] = keys[o] % len(own)
        position[order[o]] = o
    for o in range(n_options):
        if copy[o] == 1 and position[o] >= 0:
            _add(fits, known[o], n_fit)
            for b in fits.fit_box[fits.fit_first[known[o]] : fits.fit_first[known[o] + 1]]:
                for g in fits.box_group[fits.box_first[b] : fits.box_first[b + 1]]:
                    place, j = place_of[g], o
                    while n_fit[g] > 0 and j < n_options and known[j] == known[o]:
                        if position[j] >= 0:
                            bits[position[j], place >> 6] |= np.uint64(1) << np.uint64(place & 63)
                        j += 1
                        n_fit[g] -= 1
                    n_fit[g] = 0
    matched = bits
    if len(fits.fit_box) != len(fits.fit_first) - 1:
        matched = np.zeros_like(bits)
        for place in range(n_touched):
            _match(fits, known[:n_options], groups[place], False, scratch)
            for o in range(n_options):
                if scratch[0, o] >= 0 and position[o] >= 0:
                    matched[position[o], place >> 6] |= np.uint64(1) << np.uint64(place & 63)
    below = np.full(n_kept, -1, np.int64)
    for o in range(n_kept):
        if copy[order[o]] > 1:
            below[o] = position[order[o] - 1] if position[order[o] - 1] >= 0 else -2
    for g in groups:
        place_of[g] = -1
    return _Options(known[order], copy[order], below, groups, bits, matched, n_kept == n_options)


@allocating_part
def _scratch_of_targets(
    fits: RowFits, first: NDArray[np.int64], targets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Make the arrays that the targets use one after the other."""
    of_group = np.zeros((3, len(fits.owner)), np.int64)
    of_group[1] = -1
    longest = 0
    for t in targets:
        longest = max(longest, first[t + 1] - first[t])
    return of_group, _scratch(fits, longest)


@kernel
def attack(
    begin: int,
    stop: int,
    fits: RowFits,
    first: NDArray[np.int64],
    known: NDArray[np.int64],
    targets: NDArray[np.int64],
    n_rows: int,
    chosen: NDArray[np.int64],
    is_worst: NDArray[np.bool_],
) -> None:
    """Choose known rows of some people that leave few: the worst pair, then the worst row in each step.

    The rows of a target, ``known[first[t]:first[t + 1]]``, are ascending and at least two. ``chosen`` (n_targets,
    at least 2) begins with -1. ``is_worst`` says whether all pairs were compared.
    """
    of_group, scratch = _scratch_of_targets(fits, first, targets[begin:stop])
    pair = np.empty(2, np.int64)
    is_disjoint = len(fits.fit_box) == len(fits.fit_first) - 1
    for x in range(begin, stop):
        t = targets[x]
        options = _make_options(fits, known[first[t] : first[t + 1]], n_rows, of_group, scratch)
        n_options, n_words = options.matched.shape
        both = np.zeros(n_words, np.uint64)
        is_taken = np.zeros(n_options, np.bool_)
        best, a, b = len(fits.owner) + 1, 0, 0
        for o in range(n_options):
            if best == 1:
                break
            if options.copy[o] == 2 and options.below[o] >= 0:
                size = _count_both(options.fits[o], options.fits[o], options.groups, fits.owner)
                if size < best:
                    best, a, b = size, options.below[o], o
            if options.copy[o] > 1:
                continue
            for p in range(o):
                if options.copy[p] > 1:
                    continue
                size = _count_both(options.matched[o], options.matched[p], options.groups, fits.owner)
                if size < best and not is_disjoint:
                    pair[0], pair[1] = options.known[o], options.known[p]
                    for w in range(n_words):
                        both[w] = options.matched[o, w] & options.matched[p, w]
                        word = options.fits[o, w] & options.fits[p, w] & ~both[w]
                        while word:
                            lowest = word & (~word + np.uint64(1))
                            if _match(fits, pair, options.groups[64 * w + place_of_lowest(word)], True, scratch) == 2:
                                both[w] |= lowest
                            word &= ~lowest
                    size = _count_both(both, both, options.groups, fits.owner)
                if size < best:
                    best, a, b = size, p, o
        is_worst[x] = options.is_complete or best == 1
        is_taken[a] = is_taken[b] = True
        chosen[x, 0], chosen[x, 1] = options.known[a], options.known[b]
        for w in range(n_words):
            both[w] = options.matched[a, w] & options.matched[b, w]
        for step in range(2, chosen.shape[1]):
            fewest, best = len(fits.owner) + 1, -1
            for o in range(n_options):
                if is_taken[o] or options.below[o] == -2 or (options.below[o] >= 0 and not is_taken[options.below[o]]):
                    continue
                size = _count_both(both, options.matched[o], options.groups, fits.owner)
                if size < fewest:
                    fewest, best = size, o
            if best < 0:
                break
            is_taken[best] = True
            chosen[x, step] = options.known[best]
            for w in range(n_words):
                both[w] &= options.matched[best, w]


@kernel
def search(
    begin: int,
    stop: int,
    fits: RowFits,
    first: NDArray[np.int64],
    known: NDArray[np.int64],
    targets: NDArray[np.int64],
    n_rows: int,
    least: int,
    n_steps: int,
    chosen: NDArray[np.int64],
    status: NDArray[np.int64],
) -> None:
    """Prove that no ``n_rows`` known rows of a target leave fewer than ``least`` people, or find some that do.

    Branch and bound: all further rows together leave no more than any of them. A target has ``n_steps`` words of
    bits to compare, then it stays `OPEN`. Where boxes overlap, what was found has to be counted, because some groups
    that fit may be missing.
    """
    of_group, scratch = _scratch_of_targets(fits, first, targets[begin:stop])
    for x in range(begin, stop):
        t = targets[x]
        options = _make_options(fits, known[first[t] : first[t + 1]], n_rows, of_group, scratch)
        n_options, n_words = options.matched.shape
        most = min(n_rows, n_options)
        after = np.full((n_options + 1, n_words), ~np.uint64(0), np.uint64)
        for o in range(n_options - 1, -1, -1):
            for w in range(n_words):
                after[o, w] = after[o + 1, w] & options.matched[o, w]
        left = np.full((most + 1, n_words), ~np.uint64(0), np.uint64)
        option, rest = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
        rest[0], depth, n_left = n_rows, 0, n_steps
        status[x] = PROVEN if options.is_complete else OPEN
        while depth >= 0:
            o = option[depth]
            n_left -= n_words
            if n_left < 0:
                status[x] = OPEN
                break
            if (
                o == n_options
                or rest[depth] == 0
                or (_count_both(left[depth], after[o], options.groups, fits.owner) >= least)
            ):
                depth -= 1
                if depth >= 0:
                    option[depth] += 1
                continue
            if options.copy[o] > rest[depth]:
                option[depth] += 1
                continue
            excludes = False
            for w in range(n_words):
                left[depth + 1, w] = left[depth, w] & options.matched[o, w]
                excludes |= left[depth + 1, w] != left[depth, w]
            if not excludes:
                option[depth] += 1
                continue
            rest[depth + 1], option[depth + 1] = rest[depth] - options.copy[o], o + 1
            depth += 1
            if _count_both(left[depth], left[depth], options.groups, fits.owner) < least:
                status[x], place = FOUND, 0
                for d in range(depth):
                    copies = options.copy[option[d]]
                    for e in range(d):
                        if options.known[option[e]] == options.known[option[d]]:
                            copies = options.copy[option[d]] - options.copy[option[e]]
                    for _ in range(copies):
                        chosen[x, place] = options.known[option[d]]
                        place += 1
                break
