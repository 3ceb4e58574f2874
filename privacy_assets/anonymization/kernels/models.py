"""The models of every class: k in rows or people, l-diversity and t-closeness, tested on both sides of a cut.

References
----------
.. [1] A. Machanavajjhala, D. Kifer, J. Gehrke, M. Venkitasubramaniam (2007), "l-diversity: privacy beyond
   k-anonymity", doi:10.1145/1217299.1217302.
.. [2] N. Li, T. Li, S. Venkatasubramanian (2007), "t-closeness: privacy beyond k-anonymity and l-diversity",
   doi:10.1109/ICDE.2007.367856.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymity.kernels.measures import equal_distance, ordered_distance
from privacy_assets.kernels.compilation import kernel, part

NO_L, DISTINCT, ENTROPY, RECURSIVE = range(4)
# Shares are sums of floats: a class exactly at a limit must not fail because of rounding errors.
TOLERANCE = 1e-9


class Models(NamedTuple):
    """The limits; a sensitive column may have l and t.

    Arrays have shape (n_sensitive,) unless stated otherwise.

    The widest dimension is cut if ``is_by_range``, else the one with the largest gain. The sensitive values of all
    columns are one flat list, in which those of a column begin at ``first_value`` (n_sensitive + 1,). ``l_kind`` is 0
    (none), 1 (distinct), 2 (entropy) or 3 (recursive), ``l_least`` its l and ``l_factor`` the c of the recursive one;
    ``t_most`` is infinity for no limit, and by the ordered distance if ``is_ordered``. Of each value, ``totals`` are
    its rows in the table, never 0, and ``cumulative`` their sums up to it within its column; ``prefix`` (n_values +
    n_sensitive,) has the sums of these before each value, for a column one more than it has values.
    """

    k: int
    is_by_range: bool
    counts_people: bool
    needs_values: bool
    first_value: NDArray[np.int64]
    l_kind: NDArray[np.int64]
    l_least: NDArray[np.float64]
    l_factor: NDArray[np.float64]
    t_most: NDArray[np.float64]
    is_ordered: NDArray[np.bool_]
    totals: NDArray[np.int64]
    cumulative: NDArray[np.int64]
    prefix: NDArray[np.float64]


class Evidence(NamedTuple):
    """Counts of one class along one dimension, in addition to rows per bin.

    ``people_left`` and ``people_right`` are the people on each side of a cut after each listed bin; a person may be on
    both sides. ``arranged`` has the records of the class in the order of the bins, ``sensitive`` (n_records,
    n_sensitive) positions in the flat list of values. ``left`` and ``right`` are the rows per value on each side, up to
    date only for those in the class, ``present`` (ascending). ``by_bin`` (n_listed, n_values) replaces ``arranged``; it
    has no rows if that is given.
    """

    n_people: int
    people_left: NDArray[np.int64]
    people_right: NDArray[np.int64]
    arranged: NDArray[np.int64]
    sensitive: NDArray[np.int32]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    present: NDArray[np.int64]
    by_bin: NDArray[np.int64]


def no_evidence() -> Evidence:
    """Return the counts needed if only rows are counted."""
    none = np.zeros(0, np.int64)
    return Evidence(0, none, none, none, np.zeros((0, 0), np.int32), none, none, none, np.zeros((0, 0), np.int64))


def row_models(k: int, *, is_by_range: bool = False) -> Models:
    """Return the models of plain k-anonymity."""
    ints, floats = np.zeros(0, np.int64), np.zeros(0, np.float64)
    return Models(
        k, is_by_range, False, False, np.zeros(1, np.int64), ints, floats, floats, floats, np.zeros(0, np.bool_), ints,
        ints, floats,
    )  # fmt: skip


@part
def add_place(x: int, begin: int, stop: int, evidence: Evidence) -> None:
    """Move the rows of a listed bin, which are arranged from ``begin`` to ``stop``, from the right to the left."""
    if len(evidence.by_bin) > 0:
        for value in evidence.present:
            evidence.left[value] += evidence.by_bin[x, value]
            evidence.right[value] -= evidence.by_bin[x, value]
        return
    for i in range(begin, stop):
        record = evidence.arranged[i]
        for v in range(evidence.sensitive.shape[1]):
            value = evidence.sensitive[record, v]
            evidence.left[value] += 1
            evidence.right[value] -= 1


@part
def sides_hold(n_left: int, n_right: int, models: Models, evidence: Evidence) -> bool:
    """Whether every l and t is satisfied on both sides."""
    present = evidence.present
    return values_hold(evidence.left, present, n_left, models) and values_hold(evidence.right, present, n_right, models)


@kernel
def values_hold(counts: NDArray[np.int64], present: NDArray[np.int64], size: int, models: Models) -> bool:
    """Return whether every l and t is satisfied in a class of this size.

    Only the counts of values in ``present`` (ascending, at least those that occur) are read, so the cost depends only
    on their number.
    """
    begin = 0
    for v in range(len(models.l_kind)):
        first, last = models.first_value[v], models.first_value[v + 1]
        stop = begin
        while stop < len(present) and present[stop] < last:
            stop += 1
        own = np.empty(stop - begin, np.int64)
        n_own = 0
        for i in range(begin, stop):
            if counts[present[i]] > 0:
                own[n_own] = present[i] - first
                n_own += 1
        own = own[:n_own]
        begin = stop
        of_column = counts[first:last]
        if not _is_diverse(of_column, own, size, models.l_kind[v], models.l_least[v], models.l_factor[v]):
            return False
        if models.t_most[v] < np.inf:
            cumulative = models.cumulative[first:last]
            n_rows = cumulative[-1]
            if models.is_ordered[v]:
                prefix = models.prefix[first + v : last + v + 1]
                distance = ordered_distance(of_column, own, size, cumulative, prefix, n_rows)
            else:
                distance = equal_distance(of_column, own, size, models.totals[first:last], n_rows)
            if distance > models.t_most[v] + TOLERANCE:
                return False
    return True


@part
def _is_diverse(
    counts: NDArray[np.int64], present: NDArray[np.int64], size: int, kind: int, least: float, factor: float
) -> bool:
    """Whether the counts of the values present, never 0, meet a limit on l."""
    if kind == NO_L:
        return True
    if kind == DISTINCT:
        return len(present) >= least
    if kind == ENTROPY:
        total = 0.0
        for value in present:
            total -= counts[value] / size * np.log(counts[value] / size)
        return bool(total >= np.log(least) - TOLERANCE)
    # (c, l): r_1 < c (r_l + r_{l+1} + ...) with the counts r_1 >= r_2 >= ... in descending order.
    largest = second = 0
    rest = 0
    for value in present:
        largest = max(largest, counts[value])
        rest += counts[value]
    n_larger, level = 0, largest
    while level > 0 and n_larger < int(least) - 1:
        n_equal = second = 0
        for value in present:
            if counts[value] == level:
                n_equal += 1
            elif counts[value] < level:
                second = max(second, counts[value])
        n_equal = min(n_equal, int(least) - 1 - n_larger)
        n_larger += n_equal
        rest -= n_equal * level
        level = second
    return largest < factor * rest
