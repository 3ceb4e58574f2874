"""Pairs of rows of one person in groups of rows, and changes of a value between the rows of a person.

Rows are sorted by group first. Then only what occurs in a group is visited: ``place[p]`` is the place of p in the list
of those seen in the group, if p is there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel, part

Ints = NDArray[np.int32]


class _Groups(NamedTuple):
    """Numbers of the members by group, those of group g from ``starts[g]`` to ``starts[g + 1]``."""

    members: Ints
    starts: NDArray[np.int64]


def count_pairs(group: Ints, row: Ints, person: Ints, k: int) -> tuple[int, int, int]:
    """Count, in groups of fewer than k people, the pairs of rows, those of one person, and the rows in the latter.

    ``group`` has, for each of ``row``, a number from 0, or -1 for none; ``person`` that of each row of the table. A row
    may be in several groups.
    """
    n_people = int(person.max(initial=-1)) + 1
    seen, counts = np.empty(min(k, n_people + 1), np.int32), np.empty(min(k, n_people + 1), np.int32)
    is_linked = np.zeros(len(person), np.bool_)
    groups = _sorted(group)
    n_pairs, n_same = _count_pairs(groups, row, person, k, np.zeros(n_people, np.int32), seen, counts, is_linked)
    return n_pairs, n_same, int(np.count_nonzero(is_linked))


def count_changes(codes: Ints, person: Ints) -> tuple[int, int, int]:
    """Count the rows without the most frequent value of their person, the people with several rows, and these without.

    A code of -1 is missing, and its row does not count.
    """
    groups = _sorted(person)
    most = int(np.diff(groups.starts).max(initial=0))
    place = np.zeros(int(codes.max(initial=-1)) + 1, np.int32)
    return _count_changes(groups, codes, place, np.empty(most, np.int32), np.empty(most, np.int32))


def _sorted(group: Ints) -> _Groups:
    n_groups = int(group.max(initial=-1)) + 1
    members, starts = np.empty(np.count_nonzero(group >= 0), np.int32), np.zeros(n_groups + 1, np.int64)
    _sort(group, members, starts)
    return _Groups(members, starts)


@kernel
def _sort(group: Ints, members: Ints, starts: NDArray[np.int64]) -> None:
    """Write the fields of `_Groups`; ``starts`` is 0 before."""
    for g in group:
        if g >= 0:
            starts[g] += 1
    total = 0
    for g in range(len(starts)):
        total += starts[g]
        starts[g] = total
    # Each place moves from the end of its group to its start.
    for member in range(len(group) - 1, -1, -1):
        g = group[member]
        if g >= 0:
            starts[g] -= 1
            members[starts[g]] = member


@part
def _add(p: int, n_seen: int, place: Ints, seen: Ints, counts: Ints) -> int:
    """Count p, which may be new if there is room; return how many were seen."""
    if place[p] < n_seen and seen[place[p]] == p:
        counts[place[p]] += 1
        return n_seen
    place[p], seen[n_seen], counts[n_seen] = n_seen, p, 1
    return n_seen + 1


@kernel
def _count_pairs(
    groups: _Groups,
    row: Ints,
    person: Ints,
    k: int,
    place: Ints,
    seen: Ints,
    counts: Ints,
    is_linked: NDArray[np.bool_],
) -> tuple[int, int]:
    n_pairs = n_same = 0
    for g in range(len(groups.starts) - 1):
        begin, end = groups.starts[g], groups.starts[g + 1]
        n_seen = 0
        for i in range(begin, end):
            n_seen = _add(person[row[groups.members[i]]], n_seen, place, seen, counts)
            if n_seen == k:
                break
        if n_seen == k:
            continue
        n_pairs += (end - begin) * (end - begin - 1) // 2
        for p in range(n_seen):
            n_same += np.int64(counts[p]) * (counts[p] - 1) // 2
        for i in range(begin, end):
            r = row[groups.members[i]]
            is_linked[r] = is_linked[r] or counts[place[person[r]]] > 1
    return n_pairs, n_same


@kernel
def _count_changes(groups: _Groups, codes: Ints, place: Ints, seen: Ints, counts: Ints) -> tuple[int, int, int]:
    n_changes = n_several = n_constant = 0
    for g in range(len(groups.starts) - 1):
        n_rows = n_seen = most = 0
        for i in range(groups.starts[g], groups.starts[g + 1]):
            code = codes[groups.members[i]]
            if code >= 0:
                n_seen = _add(code, n_seen, place, seen, counts)
                most = max(most, counts[place[code]])
                n_rows += 1
        n_changes += n_rows - most
        n_several += n_rows > 1
        n_constant += n_rows > 1 and n_rows == most
    return n_changes, n_several, n_constant
