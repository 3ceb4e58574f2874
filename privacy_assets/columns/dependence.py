"""Which columns depend on each other: columns of noise beside them must not decide what can be seen in a table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FEWEST_COLUMNS: Final = 3
"""Columns of a group, at least, that are looked at without the others."""
MOST_CLASSES: Final = 8
FREQUENT: Final = 1 / 16
MOST_ROWS: Final = 20_000
LEVEL: Final = 0.001
"""Probability, at most, that any two of all columns seem to depend on each other by chance."""


def ranks_of(labels: NDArray[np.object_], kind: str) -> NDArray[np.int64]:
    """Return the place of each code of a column in the order of its values, a missing value last.

    ``labels`` are the texts of the codes, which are in the order in which the values were found, and ``kind`` that of
    the column (`EncodedColumn`). Moments are in the order of their text.
    """
    known = [label for label in labels if label is not None]
    if kind == "number":
        order = np.argsort(np.array(known, np.float64), kind="stable")
    elif kind == "duration":
        order = np.argsort(pd.to_timedelta(known).to_numpy(), kind="stable")
    else:
        order = np.argsort(np.array(known, object), kind="stable")
    ranks = np.arange(len(labels))
    # The missing value, if there is one, has the last code.
    ranks[order] = np.arange(len(order))
    return ranks


def columns_alone(
    codes: Sequence[NDArray[Any]], is_ordered: Sequence[bool], weights: NDArray[Any] | None = None
) -> list[list[int]]:
    """Return the groups of columns to look at without the others: `related_columns` of at least three, but not all."""
    groups = related_columns(codes, is_ordered, weights)
    return [own for own in groups if FEWEST_COLUMNS <= len(own) < len(codes)]


def related_columns(
    codes: Sequence[NDArray[Any]], is_ordered: Sequence[bool], weights: NDArray[Any] | None = None
) -> list[list[int]]:
    """Return the groups of at least two columns that depend on each other, as places, the largest group first.

    Two columns depend on each other if a chi-square test of their classes says so, or, of two ordered columns, the rank
    correlation, at a level of 0.001 divided by the number of pairs; a group has all columns that are connected by such
    pairs. Columns have up to eight classes of about equal size, in the order of the codes; values that are not ordered
    and that one in sixteen records has are classes of their own. No random numbers are used, so no seed can be searched
    for.

    Parameters
    ----------
    codes : sequence of ndarray of shape (n_rows,)
        Codes of each column, from 0; codes of ordered columns are in the order of their values.
    is_ordered : sequence of bool
        Whether the values of each column have an order.
    weights : ndarray of shape (n_rows,), optional
        Number of records of each row. Of more than 20,000 rows, so many are examined, at equal distances.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.stats import chi2, norm, rankdata

    n = len(codes[0])
    rows = np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(np.int64))
    times = np.ones(len(rows)) if weights is None else weights[rows].astype(float)
    drawn = [own[rows] for own in codes]
    classes = [_classes(own, times, order) for own, order in zip(drawn, is_ordered, strict=True)]
    ranks = [rankdata(own) if order else np.zeros(0) for own, order in zip(drawn, is_ordered, strict=True)]
    pairs = list(combinations(range(len(codes)), 2))
    level, related = LEVEL / max(len(pairs), 1), []
    for a, b in pairs:
        n_b = int(classes[b].max()) + 1
        table = np.bincount(classes[a] * n_b + classes[b], times, (int(classes[a].max()) + 1) * n_b).reshape(-1, n_b)
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
        if freedom == 0:
            continue
        p = float(chi2.sf(((table - expected) ** 2 / expected).sum(), freedom))
        if is_ordered[a] and is_ordered[b]:
            covariance = np.cov(ranks[a], ranks[b], aweights=times)
            correlation = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
            p = min(p, 2 * float(norm.sf(abs(correlation) * np.sqrt(times.sum() - 1))))
        if p <= level:
            related.append((a, b))
    first, second = np.array(related, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(first)), (first, second)), (len(codes), len(codes)))
    _, group = connected_components(graph, directed=False)
    groups = [np.flatnonzero(group == each).tolist() for each in np.unique(group)]
    return sorted((own for own in groups if len(own) > 1), key=lambda own: (-len(own), own))


def _classes(codes: NDArray[Any], times: NDArray[np.float64], is_ordered: bool) -> NDArray[np.int64]:
    """Return the class of each row, from 0, without gaps."""
    counts = np.bincount(codes, times)
    is_alone = np.zeros(len(counts), np.bool_) if is_ordered else counts >= FREQUENT * counts.sum()
    others = np.where(is_alone, 0, counts)
    below = np.cumsum(others) - others / 2
    of_code = np.minimum(below * MOST_CLASSES // max(others.sum(), 1), MOST_CLASSES - 1).astype(np.int64)
    of_code[is_alone] = MOST_CLASSES + np.arange(is_alone.sum())
    return np.unique(of_code[codes], return_inverse=True)[1].astype(np.int64)
