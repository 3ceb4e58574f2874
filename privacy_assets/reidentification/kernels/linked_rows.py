"""Counting of people with a group of released rows that fit several known rows, each a different one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.bit_sets import count_ones, place_of_lowest
from privacy_assets.kernels.compilation import allocating_part, kernel, part
from privacy_assets.kernels.sorting import place_in, sort_ascending

MOST_WORDS = 1 << 24
"""Words of bits of the known rows of one person, of 128 MiB; a person with more is not searched."""


class RowFits(NamedTuple):
    """The boxes that each known row fits, and the groups of released rows by box, as lists one after the other.

    The boxes of a known row, ascending, begin at ``fit_first``; the groups with rows in a box at ``box_first``; the box
    of each row of a group, ascending, at ``group_first``. ``owner``, ascending, is the person of each group. If each
    known row fits a single box, it has the number of the box.
    """

    fit_first: NDArray[np.int64]
    fit_box: NDArray[np.int64]
    box_first: NDArray[np.int64]
    box_group: NDArray[np.int64]
    group_first: NDArray[np.int64]
    group_box: NDArray[np.int64]
    owner: NDArray[np.int64]


class _Choices(NamedTuple):
    """The known rows of a person, each as its first copy, its second, and so on.

    ``bits`` has for each of them the groups in which all of the person's rows up to this copy have a row of their own,
    as far as all known rows have: of any choice, its common bits are groups that fit, and all if boxes do not overlap.
    """

    known: NDArray[np.int64]
    copy: NDArray[np.int64]
    owner: NDArray[np.int64]
    bits: NDArray[np.uint64]


@kernel
def count_people(
    begin: int, stop: int, fits: RowFits, first: NDArray[np.int64], known: NDArray[np.int64], sizes: NDArray[np.int64]
) -> None:
    """Count the people left by each sample of known rows, ``known[first[s]:first[s + 1]]``, ascending, not empty.

    Cost of a sample: the groups in the boxes of its rarest row; where boxes overlap, a matching for each group left.
    """
    of_group, scratch = _make_scratch(fits, first, np.arange(begin, stop))
    for s in range(begin, stop):
        sizes[s] = _count_left(fits, known[first[s] : first[s + 1]], of_group, scratch)


@allocating_part
def _make_scratch(
    fits: RowFits, first: NDArray[np.int64], samples: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Make an array by group, of zeros between any two uses, and one by known row, and by row if rows are matched."""
    n_groups, longest = len(fits.owner), 0
    for s in samples:
        longest = max(longest, first[s + 1] - first[s])
    is_disjoint = len(fits.fit_box) == len(fits.fit_first) - 1
    for g in range(0 if is_disjoint else n_groups):
        longest = max(longest, fits.group_first[g + 1] - fits.group_first[g])
    return np.zeros((4, n_groups), np.int64), np.empty((6, longest), np.int64)


@part
def _count_left(fits: RowFits, own: NDArray[np.int64], of_group: NDArray[np.int64], scratch: NDArray[np.int64]) -> int:
    """Count the people with a group in which different rows fit the known rows, ascending."""
    n_fit, left, is_seen = of_group[0], of_group[1], of_group[2]
    rarest, shortest, n_left, total = 0, len(fits.box_group) + 1, 0, 0
    for i in range(len(own)):
        length = 0
        for b in fits.fit_box[fits.fit_first[own[i]] : fits.fit_first[own[i] + 1]]:
            length += fits.box_first[b + 1] - fits.box_first[b]
        if length < shortest:
            rarest, shortest = i, length
    for b in fits.fit_box[fits.fit_first[own[rarest]] : fits.fit_first[own[rarest] + 1]]:
        for g in fits.box_group[fits.box_first[b] : fits.box_first[b + 1]]:
            if n_fit[g] == 0:
                left[n_left] = g
                n_left += 1
            n_fit[g] = 1
    for g in left[:n_left]:
        n_fit[g] = 0
    for i in range(len(own)):
        if i + 1 < len(own) and own[i] == own[i + 1]:
            continue
        copies = i + 1 - place_in(own, own[i])
        if own[i] == own[rarest] and copies == 1:
            continue
        n_kept = 0
        for g in left[:n_left]:
            left[n_kept] = g
            n_kept += _count_fitting(fits, own[i], g) >= copies
        n_left = n_kept
    is_enough = len(fits.fit_box) == len(fits.fit_first) - 1 or len(own) == 1
    for g in left[:n_left]:
        if is_seen[fits.owner[g]] == 0 and (is_enough or _match(fits, own, g, True, scratch) == len(own)):
            is_seen[fits.owner[g]] = 1
            total += 1
    for g in left[:n_left]:
        is_seen[fits.owner[g]] = 0
    return total


@part
def _count_fitting(fits: RowFits, q: int, g: int) -> int:
    """Count the rows of a group that fit a known row."""
    boxes = fits.fit_box[fits.fit_first[q] : fits.fit_first[q + 1]]
    rows = fits.group_box[fits.group_first[g] : fits.group_first[g + 1]]
    n = 0
    if len(boxes) < len(rows):
        for b in boxes:
            n += place_in(rows, b + 1) - place_in(rows, b)
        return n
    for b in rows:
        place = place_in(boxes, b)
        n += place < len(boxes) and boxes[place] == b
    return n


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
        row_of[i], queue[0] = -1, i
        n_queued, head = 1, 0
        while head < n_queued:
            now = queue[head]
            head += 1
            fitting = fits.fit_box[fits.fit_first[own[now]] : fits.fit_first[own[now] + 1]]
            for row in range(len(boxes)):
                place = place_in(fitting, boxes[row])
                if seen[row] == i or place == len(fitting) or fitting[place] != boxes[row]:
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
                n_matched += 1
                n_queued = head  # ends the search
                break
        if needs_all and row_of[i] < 0:
            break
    return n_matched


@allocating_part
def _make_choices(
    fits: RowFits, own: NDArray[np.int64], n_rows: int, of_group: NDArray[np.int64], scratch: NDArray[np.int64]
) -> _Choices:
    """Make the choices of up to ``n_rows`` of the known rows of a person, ascending; without bits if they are many."""
    touched, place_of = of_group[1], of_group[3]
    known, copy = np.empty(len(own), np.int64), np.empty(len(own), np.int64)
    n, n_touched, is_disjoint = 0, 0, len(fits.fit_box) == len(fits.fit_first) - 1
    for i in range(len(own)):
        copies = i + 1 - place_in(own, own[i])
        if copies <= n_rows:
            known[n], copy[n] = own[i], copies
            n += 1
        if copies == 1:
            for b in fits.fit_box[fits.fit_first[own[i]] : fits.fit_first[own[i] + 1]]:
                for g in fits.box_group[fits.box_first[b] : fits.box_first[b + 1]]:
                    if place_of[g] == 0:
                        touched[n_touched], place_of[g] = g, 1
                        n_touched += 1
    groups, n_words = touched[:n_touched].copy(), (n_touched + 63) // 64
    if fits.owner[len(fits.owner) - 1] < len(fits.owner) - 1:  # people with several groups have them next to each other
        sort_ascending(groups)
    bits = np.zeros((n if n * max(n_words, min(n, n_rows)) <= MOST_WORDS else 0, n_words), np.uint64)
    for x in range(n_touched):
        place_of[groups[x]] = x
    for c in range(len(bits)):
        b = known[c]
        for g in fits.box_group[fits.box_first[b] : fits.box_first[b + 1]] if is_disjoint else groups[:0]:
            if copy[c] == 1 or _count_fitting(fits, b, g) >= copy[c]:
                bits[c, place_of[g] >> 6] |= np.uint64(1) << np.uint64(place_of[g] & 63)
    for x in range(n_touched):
        place_of[groups[x]] = 0
        if len(bits) and not is_disjoint:
            _match(fits, known[:n], groups[x], False, scratch)
            for c in range(n):
                if scratch[0, c] >= 0:
                    bits[c, x >> 6] |= np.uint64(1) << np.uint64(x & 63)
    return _Choices(known[:n], copy[:n], fits.owner[groups], bits)


@part
def _count_common(a: NDArray[np.uint64], b: NDArray[np.uint64], owner: NDArray[np.int64]) -> int:
    """Count the common bits of two sets of groups; with owners, the people of these groups."""
    total, last = 0, -1
    for w in range(len(a)):
        word = a[w] & b[w]
        if len(owner) == 0:
            total += int(count_ones(word))
            continue
        while word:
            person = int(owner[64 * w + place_of_lowest(word)])
            total += person != last
            last = person
            word &= word - np.uint64(1)
    return total


@kernel
def search_worst(
    begin: int,
    stop: int,
    fits: RowFits,
    first: NDArray[np.int64],
    known: NDArray[np.int64],
    targets: NDArray[np.int64],
    n_rows: int,
    limit: int,
    n_steps: int,
    fewest: NDArray[np.int64],
    is_proven: NDArray[np.bool_],
) -> None:
    """Prove that any ``n_rows`` known rows of a target leave ``limit`` people, or lower ``fewest`` below that.

    Branch and bound: the row that leaves the fewest groups is tried first, and groups lost to several rows are at most
    the sum of those lost to each. A target has ``n_steps`` words of bits to compare.
    """
    of_group, scratch = _make_scratch(fits, first, targets[begin:stop])
    is_disjoint = len(fits.fit_box) == len(fits.fit_first) - 1
    for x in range(begin, stop):
        t = targets[x]
        choices = _make_choices(fits, known[first[t] : first[t + 1]], n_rows, of_group, scratch)
        n, n_words = choices.bits.shape
        if n == 0:
            continue
        nobody = choices.owner[:0]
        owner = nobody if fits.owner[len(fits.owner) - 1] == len(fits.owner) - 1 else choices.owner
        # At each depth: the groups left, their people, rows still to choose, choices in order, and the next of them.
        most = min(n_rows, n)
        left = np.full((most + 1, n_words), ~np.uint64(0), np.uint64)
        rest, n_tried, next_one = np.full(most + 1, n_rows), np.full(most + 1, n), np.zeros(most + 1, np.int64)
        order, sizes = np.empty((most + 1, n), np.int64), np.empty((most + 1, n), np.int64)
        people, n_groups = np.zeros(most + 1, np.int64), np.full(most + 1, len(choices.owner))
        for g in range(len(choices.owner)):
            people[0] += g == 0 or choices.owner[g] != choices.owner[g - 1]
        order[0] = np.arange(n)
        depth, n_left, is_new = 0, n_steps, True
        while depth >= 0 and fewest[x] >= limit:
            own, m = order[depth], n_tried[depth]
            if is_new:
                n_left -= m * n_words
                for c in range(m):
                    sizes[depth, c] = _count_common(left[depth], choices.bits[own[c]], nobody) * n + own[c]
                sort_ascending(sizes[depth][:m])
                for c in range(m):
                    sizes[depth, c], own[c] = sizes[depth, c] // n, sizes[depth, c] % n
                is_new = False
            c = next_one[depth]
            bound = people[depth]
            for d in range(c, min(c + rest[depth], m)):
                bound -= n_groups[depth] - sizes[depth, d]
            is_useless = is_disjoint and c < m and sizes[depth, c] == n_groups[depth]
            if c == m or is_useless or bound >= limit or n_left < 0:
                depth -= 1
                continue
            next_one[depth] += 1
            rest[depth + 1] = rest[depth] - choices.copy[own[c]]
            if rest[depth + 1] < 0:
                continue
            for w in range(n_words):
                left[depth + 1, w] = left[depth, w] & choices.bits[own[c], w]
            people[depth + 1] = _count_common(left[depth + 1], left[depth + 1], owner)
            if people[depth + 1] < fewest[x]:
                found = people[depth + 1]
                if not is_disjoint:
                    found = _count_chosen(fits, choices, order, next_one, depth, of_group, scratch)
                fewest[x] = min(fewest[x], found)
            if rest[depth + 1] > 0 and c + 1 < m:
                order[depth + 1, : m - c - 1] = own[c + 1 : m]
                n_groups[depth + 1], n_tried[depth + 1], next_one[depth + 1] = sizes[depth, c], m - c - 1, 0
                depth, is_new = depth + 1, True
        is_proven[x] = n_left >= 0 and fewest[x] >= limit


@part
def _count_chosen(
    fits: RowFits,
    choices: _Choices,
    order: NDArray[np.int64],
    next_one: NDArray[np.int64],
    depth: int,
    of_group: NDArray[np.int64],
    scratch: NDArray[np.int64],
) -> int:
    """Count the people left by the rows chosen down to a depth, where boxes overlap."""
    n = 0
    for d in range(depth + 1):
        c, copies = order[d, next_one[d] - 1], 0
        for e in range(d):
            if choices.known[order[e, next_one[e] - 1]] == choices.known[c]:
                copies = max(copies, choices.copy[order[e, next_one[e] - 1]])
        for _ in range(copies, choices.copy[c]):
            scratch[5, n] = choices.known[c]
            n += 1
    sort_ascending(scratch[5][:n])
    return _count_left(fits, scratch[5][:n], of_group, scratch)
