"""The models that a class must satisfy, on weighted items (distinct rows)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymity.kernels.measures import entropy_of, equal_distance, fill_recursive_c, ordered_distance
from privacy_assets.anonymization.kernels.models import DISTINCT, ENTROPY, RECURSIVE
from privacy_assets.kernels.compilation import kernel, part
from privacy_assets.kernels.sorting import sort_ascending

# exp(entropy) is rounded to nine decimals where it is verified; this is the amount that rounds up there.
ENTROPY_TOLERANCE = 4e-10


class Column(NamedTuple):
    """One quasi-identifier: the value of each item, and ``nodes`` (n_levels, n_values), the node of each on each level.

    Equal nodes stay equal on higher levels. ``loss`` is that of a row released as this node, from 0 to 1, at least that
    of the nodes below it.
    """

    codes: NDArray[np.int64]
    nodes: NDArray[np.int64]
    loss: NDArray[np.float64]


class Sensitive(NamedTuple):
    """One sensitive column, its codes in the order of the values, and its limits.

    ``diversity`` is a kind of :mod:`~privacy_assets.anonymization.kernels.models`, ``least`` its l, ``c`` that of the
    recursive one; ``closeness`` is the largest distance, infinity for no limit.
    """

    codes: NDArray[np.int64]
    n_values: int
    is_ordered: bool
    diversity: int
    least: float
    c: float
    closeness: float


class Items(NamedTuple):
    """Distinct rows and how many each stands for. ``people`` is the person of each, from 0; None counts rows."""

    columns: tuple[Column, ...]
    weights: NDArray[np.int64]
    people: NDArray[np.int64] | None
    sensitive: tuple[Sensitive, ...]


class Limits(NamedTuple):
    """The models as arrays, one entry per sensitive column, with scratch space for compiled code."""

    k: int
    weights: NDArray[np.int64]
    has_people: bool
    people: NDArray[np.int64]
    last_seen: NDArray[np.int64]
    n_calls: NDArray[np.int64]
    values: NDArray[np.int64]
    n_values: NDArray[np.int64]
    is_ordered: NDArray[np.bool_]
    diversity: NDArray[np.int64]
    least: NDArray[np.float64]
    c: NDArray[np.float64]
    closeness: NDArray[np.float64]
    totals: NDArray[np.int64]
    cumulative: NDArray[np.int64]
    prefix: NDArray[np.float64]
    counts: NDArray[np.int64]
    touched: NDArray[np.int64]
    top: NDArray[np.int64]
    c_of_l: NDArray[np.float64]


def limits_of(items: Items, k: int, is_counted: NDArray[np.bool_] | None = None) -> Limits:
    """Put the models into arrays; the distribution of the table is that of the counted items (default: all)."""
    weights = items.weights if is_counted is None else np.where(is_counted, items.weights, 0)
    n_sensitive = len(items.sensitive)
    width = max((column.n_values for column in items.sensitive), default=1)
    totals = np.zeros((n_sensitive, width), np.int64)
    values = np.zeros((n_sensitive, len(items.weights)), np.int64)
    n_values = np.zeros(n_sensitive, np.int64)
    for s, column in enumerate(items.sensitive):
        counts = np.bincount(column.codes, weights, minlength=column.n_values).astype(np.int64)
        # Only values that occur count: a fully suppressed value is not a value of the released table.
        n_values[s] = np.count_nonzero(counts)
        values[s] = np.maximum(np.cumsum(counts > 0) - 1, 0)[column.codes]
        totals[s, : n_values[s]] = counts[counts > 0]
    cumulative = np.cumsum(totals, axis=1)
    prefix = np.zeros((n_sensitive, width + 1))
    prefix[:, 1:] = np.cumsum(cumulative.astype(np.float64), axis=1)
    largest_l = max((int(column.least) for column in items.sensitive if column.diversity == RECURSIVE), default=1)
    people = np.zeros(1, np.int64) if items.people is None else items.people
    return Limits(
        k,
        items.weights,
        items.people is not None,
        people,
        np.zeros(int(people.max(initial=0)) + 1, np.int64),
        np.zeros(1, np.int64),
        values,
        n_values,
        np.array([column.is_ordered for column in items.sensitive], np.bool_),
        np.array([column.diversity for column in items.sensitive], np.int64),
        np.array([column.least for column in items.sensitive], np.float64),
        np.array([column.c for column in items.sensitive], np.float64),
        np.array([column.closeness for column in items.sensitive], np.float64),
        totals,
        cumulative,
        prefix,
        np.zeros(width, np.int64),
        np.empty(width, np.int64),
        np.empty(largest_l, np.int64),
        np.zeros(largest_l + 1),
    )


@part
def _has_enough(group: NDArray[np.int64], limits: Limits) -> bool:
    """Whether a group of items has k rows or people."""
    # Every call has its own number, so that marks of earlier calls need not be cleared one by one.
    limits.n_calls[0] += 1
    stamp = limits.n_calls[0]
    n = 0
    for item in group:
        if not limits.has_people:
            n += limits.weights[item]
        elif limits.last_seen[limits.people[item]] != stamp:
            limits.last_seen[limits.people[item]] = stamp
            n += 1
        if n >= limits.k:
            return True
    return False


@part
def _is_diverse(present: NDArray[np.int64], size: int, limits: Limits, s: int) -> bool:
    """Whether the counts of one sensitive column meet its limit on l."""
    counts = limits.counts
    if limits.diversity[s] == DISTINCT:
        return bool(len(present) >= limits.least[s])
    if limits.diversity[s] == ENTROPY:
        return bool(np.exp(entropy_of(counts, present, size)) >= limits.least[s] - ENTROPY_TOLERANCE)
    if limits.diversity[s] == RECURSIVE:
        fill_recursive_c(counts, present, size, limits.top, limits.c_of_l)
        return bool(limits.c_of_l[int(limits.least[s])] < limits.c[s])
    return True


@kernel
def satisfies(group: NDArray[np.int64], limits: Limits) -> bool:
    """Return whether a group of items satisfies all models."""
    if not _has_enough(group, limits):
        return False
    counts = limits.counts
    for s in range(len(limits.n_values)):
        size: Any = np.int64(0)  # a literal 0 would be a separate type
        n_present = 0
        for item in group:
            value = limits.values[s, item]
            if counts[value] == 0:
                limits.touched[n_present] = value
                n_present += 1
            counts[value] += limits.weights[item]
            size += limits.weights[item]
        present = limits.touched[:n_present]
        holds = _is_diverse(present, size, limits, s)
        if holds and limits.closeness[s] < np.inf:
            n_rows = limits.cumulative[s, -1]
            if limits.is_ordered[s]:
                sort_ascending(present)
                n = limits.n_values[s]
                distance = ordered_distance(counts, present, size, limits.cumulative[s, :n], limits.prefix[s], n_rows)
            else:
                distance = equal_distance(counts, present, size, limits.totals[s], n_rows)
            holds = distance <= limits.closeness[s]
        for value in present:
            counts[value] = 0
        if not holds:
            return False
    return True
