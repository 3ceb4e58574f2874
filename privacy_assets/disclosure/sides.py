"""Whether originals and controls come from one process, which needs no synthetic records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows
from privacy_assets.disclosure.permutation_test import PERMUTATIONS_AT_ONCE, adjusted_p_values
from privacy_assets.disclosure.pooled_records import PooledRecords

MOST_DEVIATIONS: Final = 5.0


def count_shared(records: PooledRecords) -> tuple[int, bool]:
    """Count the controls that equal an original on all columns, and judge whether chance explains them.

    Returns
    -------
    n_shared : int
        Number of controls, each a person of its own (not checked here).
    is_too_many : bool
        Whether there are more than a random division of the people would give, by more than `MOST_DEVIATIONS` standard
        deviations: then the control contains originals.

    Notes
    -----
    Of a record that m people have, c are controls, and these c equal an original unless c is m. c is taken as binomial.
    """
    groups, n_groups = group_rows(list(records.exact.real), records.n_exact.tolist())
    n_original = records.n_original_people
    size = np.bincount(groups, minlength=n_groups)
    n_control = np.bincount(groups[n_original:], minlength=n_groups)
    n_shared = int(n_control[n_control < size].sum())
    share = 1 - n_original / len(groups)
    m, n_with = np.unique(size, return_counts=True)
    mean = m * share - m * share**m
    variance = m * share * (1 - share) + (m * share) ** 2 - m**2 * share**m - mean**2
    expected, spread = float(n_with @ mean), float(np.sqrt(max(n_with @ variance, 0.0)))
    return n_shared, n_shared > expected + MOST_DEVIATIONS * spread


def compare_sides(
    records: PooledRecords,
    rows: NDArray[np.int64],
    n_permutations: int,
    rng: np.random.Generator,
    on_done: Callable[[int], None],
) -> NDArray[np.float64]:
    """Test by permutation whether values are distributed alike among originals and controls.

    Parameters
    ----------
    records : PooledRecords
        The tables.
    rows : ndarray of shape (n_rows,), dtype=int64
        The real records to compare.
    n_permutations : int
        Number of random divisions of the people.
    rng : Generator
        Source of the divisions.
    on_done : callable
        Called with the number of divisions that are done.

    Returns
    -------
    ndarray of shape (n_columns,), dtype=float64
        p value of the chi-squared statistic of each column (numbers in bins), adjusted for all columns by the maximum
        of the standardized statistics.
    """
    begin = np.concatenate([[0], np.cumsum(records.n_binned)[:-1]])
    # Of shape (n_rows, n_columns), so that drawing rows copies whole ones.
    codes = np.ascontiguousarray((records.binned.take(rows) + begin[:, None]).T)
    total = np.bincount(codes.ravel(), minlength=int(records.n_binned.sum())).astype(float)
    people, owner = np.unique(records.people[rows], return_inverse=True)
    is_original = people < records.n_original_people
    n_drawn = min(int(is_original.sum()), int((~is_original).sum()))
    expected = total * (n_drawn / len(people))

    def statistic(is_drawn: NDArray[np.bool_]) -> NDArray[np.float64]:
        found = np.bincount(np.compress(is_drawn[owner], codes, axis=0).ravel(), minlength=len(total))
        return np.asarray(np.add.reduceat((found - expected) ** 2 / np.maximum(total, 1), begin))

    drawn = is_original if is_original.sum() == n_drawn else ~is_original
    statistics = [statistic(drawn)]
    for i in range(n_permutations):
        if i % PERMUTATIONS_AT_ONCE == 0:
            on_done(i)
        drawn = np.zeros(len(people), np.bool_)
        drawn[rng.choice(len(people), n_drawn, replace=False, shuffle=False)] = True
        statistics.append(statistic(drawn))
    # Standardized and not as p values, of which n_permutations have too few for the smallest of many columns.
    found = np.array(statistics)
    spread = found.std(axis=0)
    return adjusted_p_values(-np.rint((found - found.mean(axis=0)) / np.where(spread > 0, spread, 1) * 1e9))
