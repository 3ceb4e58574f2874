"""Which columns depend on each other: columns of noise beside them must not decide what can be seen in a table."""

from __future__ import annotations

from collections.abc import Sequence
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
    from scipy.special import chdtrc, ndtr
    from scipy.stats import rankdata

    n = len(codes[0])
    rows = np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(np.int64))
    times = np.ones(len(rows)) if weights is None else weights[rows].astype(float)
    drawn = [own[rows] for own in codes]
    classes = [_classes(own, times, order) for own, order in zip(drawn, is_ordered, strict=True)]
    counts = [np.bincount(own, times) for own in classes]
    ranks = np.zeros((len(codes), len(rows)))
    for place in np.flatnonzero(is_ordered):
        ranks[place] = rankdata(drawn[place])
        ranks[place] -= np.average(ranks[place], weights=times)
    lengths = np.sqrt([times @ own**2 for own in ranks])
    lengths[lengths == 0] = np.inf
    level, related = LEVEL / max(len(codes) * (len(codes) - 1) // 2, 1), []
    for a in range(len(codes)):
        correlations = ranks @ (times * ranks[a]) / (lengths * lengths[a])
        of_ranks = 2 * ndtr(-np.abs(correlations) * np.sqrt(times.sum() - 1))
        for b in range(a + 1, len(codes)):
            expected = np.outer(counts[a], counts[b]) / times.sum()
            table = np.bincount(classes[a] * len(counts[b]) + classes[b], times, expected.size).reshape(expected.shape)
            freedom = (len(counts[a]) - 1) * (len(counts[b]) - 1)
            if freedom and min(chdtrc(freedom, ((table - expected) ** 2 / expected).sum()), of_ranks[b]) <= level:
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
