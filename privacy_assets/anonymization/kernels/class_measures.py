"""Diversity and closeness of every class of a table, from the values that occur in each.

The cost depends on the rows, not on the product of classes and values: each class counts only its own values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.models import DISTINCT, ENTROPY, NO_L, RECURSIVE, TOLERANCE, Models

# Rows whose classes are measured at a time, so that everything about them stays in the cache.
ROWS_AT_A_TIME = 1 << 15


class ClassMeasures(NamedTuple):
    """Diversity and distance of each class in each sensitive column; arrays of shape (n_classes, n_sensitive).

    ``n_distinct`` (distinct l-diversity), ``entropy_l`` (exp of the entropy), ``distance`` (t-closeness).
    """

    n_distinct: NDArray[np.int64]
    entropy_l: NDArray[np.float64]
    distance: NDArray[np.float64]


class _Table(NamedTuple):
    """One sensitive column of all rows.

    ``values`` are numbered from 0 and all occur; ``totals`` (int64) are the rows of each, and ``prefix`` (float64) the
    sums of the rows before each, which may exceed 64 bits. ``in_order`` has all values, ascending; it is empty if they
    have no order.
    """

    values: NDArray[np.int32]
    totals: NDArray[np.int64]
    prefix: NDArray[np.float64]
    in_order: NDArray[np.int32]


class _Counts(NamedTuple):
    """Rows of each value that occurs in a class; arrays of shape (n_entries,), sorted by class, then by value.

    ``sizes``, of shape (n_classes,), has the rows of each class.
    """

    in_class: NDArray[np.int64]
    value: NDArray[np.int64]
    n_rows: NDArray[np.int64]
    sizes: NDArray[np.int64]


def measure_classes(
    codes: NDArray[np.integer[Any]], first: NDArray[np.int64], is_ordered: NDArray[np.bool_], edges: NDArray[np.int64]
) -> ClassMeasures:
    """Measure diversity and distance of each class; the distance is measured to all given rows.

    ``codes`` of shape (n_rows, n_sensitive) are positions in a flat list of the values of all columns, which begin at
    ``first``; class c has the rows from ``edges[c]`` to ``edges[c + 1]``, at least one. The distance of a column is the
    ordered one if ``is_ordered``, else the equal one [1]_.

    .. [1] N. Li, T. Li, S. Venkatasubramanian (2007), "t-closeness: privacy beyond k-anonymity and l-diversity",
       section 5, doi:10.1109/ICDE.2007.367856.
    """
    shape = (len(edges) - 1, len(is_ordered))
    found = ClassMeasures(np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape))
    for v in range(len(is_ordered)):
        table = _read(codes[:, v], int(first[v]), int(first[v + 1]), is_ordered=bool(is_ordered[v]))
        for own, counts in _count(table, edges):
            found.n_distinct[own, v] = _n_distinct(counts)
            found.entropy_l[own, v] = np.exp(_entropy(counts))
            found.distance[own, v] = _distance(table, counts, bool(is_ordered[v]))
    return found


def hold_by_class(
    models: Models, codes: NDArray[np.integer[Any]], edges: NDArray[np.int64], is_kept: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return whether each class satisfies every l and t; its distance is measured to the classes that are kept.

    The others, of which ``is_kept`` is False, are not measured; their result is False.
    """
    sizes = np.diff(edges)
    codes, edges = codes[np.repeat(is_kept, sizes)], np.concatenate([[0], np.cumsum(sizes[is_kept])])
    holds = np.ones(len(edges) - 1, np.bool_)
    for v in range(len(models.l_kind)):
        begin, stop = int(models.first_value[v]), int(models.first_value[v + 1])
        table = _read(codes[:, v], begin, stop, is_ordered=bool(models.is_ordered[v]))
        for own, counts in _count(table, edges):
            holds[own] &= _is_diverse(
                counts, int(models.l_kind[v]), float(models.l_least[v]), float(models.l_factor[v])
            )
            if models.t_most[v] < np.inf:
                holds[own] &= _distance(table, counts, bool(models.is_ordered[v])) <= models.t_most[v] + TOLERANCE
    found = np.zeros(len(is_kept), np.bool_)
    found[is_kept] = holds
    return found


def _read(codes: NDArray[np.integer[Any]], first: int, last: int, *, is_ordered: bool) -> _Table:
    """Read a column whose values have the numbers from ``first`` to ``last``, exclusive."""
    values = codes.astype(np.int32) - np.int32(first)
    totals = np.bincount(values, minlength=last - first)
    occurs = totals > 0
    if not occurs.all():
        values, totals = (np.cumsum(occurs, dtype=np.int32) - 1)[values], totals[occurs]
    prefix = np.concatenate([[0.0], np.cumsum(np.cumsum(totals).astype(np.float64))])
    in_order = np.repeat(np.arange(len(totals), dtype=np.int32), totals) if is_ordered else np.zeros(0, np.int32)
    return _Table(values, totals, prefix, in_order)


def _count(table: _Table, edges: NDArray[np.int64]) -> Iterator[tuple[slice, _Counts]]:
    """Count the values in each class, some classes at a time."""
    n_values, begin = len(table.totals), 0
    while begin < len(edges) - 1:
        stop = max(int(np.searchsorted(edges, edges[begin] + ROWS_AT_A_TIME, "right")) - 1, begin + 1)
        sizes = np.diff(edges[begin : stop + 1])
        keys = np.repeat(np.arange(len(sizes)) * n_values, sizes) + table.values[edges[begin] : edges[stop]]
        keys, n_rows = np.unique(keys, return_counts=True)
        in_class, value = np.divmod(keys, n_values)
        yield slice(begin, stop), _Counts(in_class, value, n_rows, sizes)
        begin = stop


def _n_distinct(counts: _Counts) -> NDArray[np.int64]:
    return np.bincount(counts.in_class, minlength=len(counts.sizes))


def _entropy(counts: _Counts) -> NDArray[np.float64]:
    """Entropy of each class, in nats."""
    shares = counts.n_rows / counts.sizes[counts.in_class]
    return np.asarray(-np.bincount(counts.in_class, shares * np.log(shares), len(counts.sizes)), np.float64)


def _is_diverse(counts: _Counts, kind: int, least: float, factor: float) -> NDArray[np.bool_]:
    if kind == NO_L:
        return np.ones(len(counts.sizes), np.bool_)
    if kind == DISTINCT:
        return np.asarray(_n_distinct(counts) >= least)
    if kind == ENTROPY:
        return np.asarray(_entropy(counts) >= np.log(least) - TOLERANCE)
    assert kind == RECURSIVE  # noqa: S101 - there are no others
    # (c, l): r_1 < c (r_l + r_{l+1} + ...) with the counts r_1 >= r_2 >= ... in descending order.
    begins = np.concatenate([[0], np.cumsum(_n_distinct(counts))])[:-1]
    ordered = counts.n_rows[np.lexsort((-counts.n_rows, counts.in_class))]
    is_in_tail = np.arange(len(ordered)) - begins[counts.in_class] >= int(least) - 1
    return np.asarray(ordered[begins] < factor * np.bincount(counts.in_class, ordered * is_in_tail, len(counts.sizes)))


def _distance(table: _Table, counts: _Counts, is_ordered: bool) -> NDArray[np.float64]:
    """Earth mover's distance between each class and all rows.

    Ordered: the sum over values of abs(Q - P), the cumulative shares, divided by the number of values less one. Between
    two values of a class Q is constant while P rises, so there is one value where they cross.
    """
    in_class, begin, sizes = counts.in_class, counts.value, counts.sizes
    n_rows, n_values = len(table.values), len(table.totals)
    size = sizes[in_class]
    if not is_ordered:
        surplus = np.maximum(counts.n_rows * n_rows - table.totals[begin] * size, 0)
        return np.bincount(in_class, surplus, len(sizes)) / (sizes * float(n_rows))
    if n_values == 1:
        return np.zeros(len(sizes))
    is_first = np.diff(in_class, prepend=-1) != 0
    end = np.where(np.append(is_first[1:], True), n_values, np.append(begin[1:], 0))
    so_far = np.cumsum(counts.n_rows)
    seen = so_far - (so_far - counts.n_rows)[is_first][in_class]
    level = seen * n_rows
    # The first value at which P is at least Q has this row; a search would take longer.
    middle = np.clip(table.in_order[-(-level // size) - 1], begin, end)
    above = level.astype(np.float64) * (2 * middle - begin - end)
    below = size * (table.prefix[begin] + table.prefix[end] - 2 * table.prefix[middle])
    before = np.where(is_first, size * table.prefix[begin], 0.0)
    return np.bincount(in_class, before + above + below, len(sizes)) / (sizes * float(n_rows) * (n_values - 1))
