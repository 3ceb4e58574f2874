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
from numba import njit
from numpy.typing import NDArray

NO_L, DISTINCT, ENTROPY, RECURSIVE = range(4)
# Shares are sums of floats: a class exactly at a limit must not fail because of rounding errors.
TOLERANCE = 1e-9


class Models(NamedTuple):
    """The limits. Arrays have shape (n_sensitive,) unless said otherwise; a sensitive column may carry l and t.

    Attributes
    ----------
    k : int
        Fewest rows, or people, of a class.
    is_by_range : bool
        Whether the widest dimension is cut (criterion "range") instead of the one with the largest gain (criterion
        "gain").
    counts_people : bool
        Whether k counts people.
    needs_values : bool
        Whether there is any l or t.
    first_value : ndarray of shape (n_sensitive + 1,), dtype=int64
        Where the values of each sensitive column begin in a flat list of all.
    l_kind, l_least, l_factor : ndarray
        Kind of diversity (0 none, 1 distinct, 2 entropy, 3 recursive), its l, and the c of the recursive one.
    t_most : ndarray, dtype=float64
        Largest distance to the table; infinity for no limit.
    is_ordered : ndarray, dtype=bool
        Whether the distance is the ordered one (numbers) or the equal one (categories).
    shares : ndarray of shape (n_values,), dtype=float64
        Share of each sensitive value in the table.
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
    shares: NDArray[np.float64]


class Evidence(NamedTuple):
    """Counts of one class along one dimension, in addition to rows per bin.

    Attributes
    ----------
    n_people : int
        People in the class.
    people_left, people_right : ndarray of shape (n_listed,), dtype=int64
        People on each side of a cut after each listed bin; a person may be on both sides.
    arranged : ndarray of shape (n_rows,), dtype=int64
        Records of the class in the order of the listed bins.
    sensitive : ndarray of shape (n_records, n_sensitive), dtype=int32
        Sensitive values of each record, as positions in the flat list of values.
    left, right : ndarray of shape (n_values,), dtype=int64
        Rows per sensitive value on each side.
    """

    n_people: int
    people_left: NDArray[np.int64]
    people_right: NDArray[np.int64]
    arranged: NDArray[np.int64]
    sensitive: NDArray[np.int32]
    left: NDArray[np.int64]
    right: NDArray[np.int64]


def no_evidence() -> Evidence:
    """Return the counts needed if only rows are counted."""
    none = np.zeros(0, np.int64)
    return Evidence(0, none, none, none, np.zeros((0, 0), np.int32), none, none)


def row_models(k: int, *, is_by_range: bool = False) -> Models:
    """Return the models of plain k-anonymity."""
    ints, floats = np.zeros(0, np.int64), np.zeros(0, np.float64)
    return Models(
        k, is_by_range, False, False, np.zeros(1, np.int64), ints, floats, floats, floats, np.zeros(0, np.bool_), floats
    )


@njit(nogil=True, cache=True)
def add_place(begin: int, stop: int, evidence: Evidence) -> None:
    """Move the rows of one listed bin from the right to the left."""
    for i in range(begin, stop):
        record = evidence.arranged[i]
        for v in range(evidence.sensitive.shape[1]):
            value = evidence.sensitive[record, v]
            evidence.left[value] += 1
            evidence.right[value] -= 1


@njit(nogil=True, cache=True)
def sides_hold(n_left: int, n_right: int, models: Models, evidence: Evidence) -> bool:
    """Whether every l and t is satisfied on both sides."""
    return values_hold(evidence.left, n_left, models) and values_hold(evidence.right, n_right, models)


@njit(nogil=True, cache=True)
def values_hold(counts: NDArray[np.int64], size: int, models: Models) -> bool:
    """Whether every l and t is satisfied in a class of ``size`` rows with these counts per sensitive value."""
    for v in range(len(models.l_kind)):
        begin, stop = models.first_value[v], models.first_value[v + 1]
        if not _is_diverse(counts[begin:stop], size, models.l_kind[v], models.l_least[v], models.l_factor[v]):
            return False
        if models.t_most[v] < np.inf:
            distance = distance_to_table(counts[begin:stop], size, models.shares[begin:stop], models.is_ordered[v])
            if distance > models.t_most[v] + TOLERANCE:
                return False
    return True


@njit(nogil=True, cache=True)
def _is_diverse(counts: NDArray[np.int64], size: int, kind: int, least: float, factor: float) -> bool:
    if kind == NO_L:
        return True
    if kind == DISTINCT:
        n_present = 0
        for count in counts:
            n_present += count > 0
        return n_present >= least
    if kind == ENTROPY:
        return bool(entropy_of(counts, size) >= np.log(least) - TOLERANCE)
    # (c, l): r_1 < c (r_l + r_{l+1} + ...) with the counts r_1 >= r_2 >= ... in descending order.
    ordered = np.sort(counts[counts > 0])[::-1]
    return len(ordered) > 0 and ordered[0] < factor * ordered[int(least) - 1 :].sum()


@njit(nogil=True, cache=True)
def entropy_of(counts: NDArray[np.int64], size: int) -> float:
    """Entropy of counts that sum to ``size``, in nats."""
    total = 0.0
    for count in counts:
        if count > 0:
            total -= count / size * np.log(count / size)
    return total


@njit(nogil=True, cache=True)
def distance_to_table(counts: NDArray[np.int64], size: int, shares: NDArray[np.float64], is_ordered: bool) -> float:
    """Earth mover's distance between a class and the table, with ordered or with equal ground distance [2]_.

    A value without a share does not count, because all its rows were suppressed.
    """
    if size == 0:
        return 0.0
    n_values = 0
    total = 0.0
    moved = 0.0
    for value in range(len(counts)):
        if shares[value] == 0.0:
            continue
        n_values += 1
        gap = counts[value] / size - shares[value]
        moved += gap
        total += abs(moved) if is_ordered else abs(gap)
    return total / max(n_values - 1, 1) if is_ordered else total / 2.0


class ClassMeasures(NamedTuple):
    """Diversity and distance of each class in each sensitive column; arrays of shape (n_classes, n_sensitive).

    ``n_distinct`` (distinct l-diversity), ``entropy_l`` (exp of the entropy), ``distance`` (t-closeness).
    """

    n_distinct: NDArray[np.int64]
    entropy_l: NDArray[np.float64]
    distance: NDArray[np.float64]


@njit(nogil=True, cache=True)
def hold_by_class(models: Models, sensitive: NDArray[np.int32], edges: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each class satisfies every l and t; ``sensitive`` is sorted by class."""
    holds = np.ones(len(edges) - 1, np.bool_)
    counts = np.zeros(len(models.shares), np.int64)
    for c in range(len(edges) - 1):
        counts[:] = 0
        for i in range(edges[c], edges[c + 1]):
            for v in range(sensitive.shape[1]):
                counts[sensitive[i, v]] += 1
        holds[c] = values_hold(counts, edges[c + 1] - edges[c], models)
    return holds


@njit(nogil=True, cache=True)
def measure_classes(models: Models, sensitive: NDArray[np.int32], edges: NDArray[np.int64]) -> ClassMeasures:
    """Measure diversity and distance of each class; ``sensitive`` is sorted by class."""
    n_classes, n_sensitive = len(edges) - 1, sensitive.shape[1]
    n_distinct = np.zeros((n_classes, n_sensitive), np.int64)
    entropy_l = np.zeros((n_classes, n_sensitive))
    distance = np.zeros((n_classes, n_sensitive))
    counts = np.zeros(len(models.shares), np.int64)
    for c in range(n_classes):
        counts[:] = 0
        size = edges[c + 1] - edges[c]
        for i in range(edges[c], edges[c + 1]):
            for v in range(n_sensitive):
                counts[sensitive[i, v]] += 1
        for v in range(n_sensitive):
            begin, stop = models.first_value[v], models.first_value[v + 1]
            own = counts[begin:stop]
            for count in own:
                n_distinct[c, v] += count > 0
            entropy_l[c, v] = np.exp(entropy_of(own, size))
            distance[c, v] = distance_to_table(own, size, models.shares[begin:stop], models.is_ordered[v])
    return ClassMeasures(n_distinct, entropy_l, distance)
