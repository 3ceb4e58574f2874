"""Copies beyond people: unique records of people that the synthetic records have more often than other people do.

No control is needed, so it also judges what was made from everybody. It can only refuse: what is no exact copy is not
seen. Definition: ``docs/mpucc.md``.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows
from privacy_assets.mpucc.control import probability_of_a_draw
from privacy_assets.mpucc.intervals import normal_quantile
from privacy_assets.mpucc.preprocess import CodedTable

COPIES_BEYOND_PEOPLE: Final = "copies_beyond_people"
MOST_REPEATED: Final = 0.01
"""Largest share of one released record that counts, unless that of people has more than half of it."""
LOW, HIGH = f"{COPIES_BEYOND_PEOPLE}_interval_low", f"{COPIES_BEYOND_PEOPLE}_interval_high"
COPIES: Final = ("unique_records_of_others", "unique_records_released", COPIES_BEYOND_PEOPLE, LOW, HIGH)


def copies_beyond_people(
    original: CodedTable, synthetic: CodedTable, n_codes: tuple[int, ...], confidence_level: float
) -> dict[str, Any]:
    """Compare the unique records that equally many released records have with those that other people have.

    The people are divided at random into halves A and B; of the records that one person of A alone has, a share is in
    B, and a share among as many released records as B has. Both are expected values over all divisions, so no figure
    depends on luck. A person counts once, with equal parts for each of their distinct records. A released record counts
    as at most 1 % of all, or twice the share of the most frequent record of people, so that repeats dilute nothing.

    Returns
    -------
    dict
        ``unique_records_of_others`` and ``unique_records_released``, both shares; their difference, ``copies_beyond_
        people``, and both ends of its interval; 0 if nobody is unique.

    Notes
    -----
    If the released records are of other people, each record has the same chance on both sides, so its difference has
    mean 0 and the sum of squares estimates the variance: of records and of people, less what both have [1]_. The square
    of z times what one more pair of equal people would change is added, because few of them have almost no variance.

    .. [1] A. C. Cameron, J. B. Gelbach, D. L. Miller (2011), "Robust inference with multiway clustering",
       doi:10.1198/jbes.2010.07136.
    """
    subjects = original.subjects
    of_row, n_alike, n_people = subjects.of_row, subjects.n_alike, subjects.n_people
    people_of_row = n_alike[of_row].astype(np.float64)
    n_pairs = people_of_row.sum()
    groups, n_groups = group_rows(
        [np.concatenate(pair) for pair in zip(original.codes, synthetic.codes, strict=True)], n_codes
    )
    own, of_synthetic = groups[: original.n_distinct], groups[original.n_distinct :]
    n_holders = np.bincount(own, people_of_row, n_groups)[own].astype(np.float64)
    # A person's equal rows are one record, and so are as many rows of the release.
    repeated = original.n_records / n_pairs
    n_released = np.bincount(of_synthetic, synthetic.n_equal, n_groups) / repeated
    n_released = _without_repeats(n_released, max(MOST_REPEATED, 2 * float(n_holders.max(initial=1) / n_pairs)))
    n_a = n_people // 2
    n_b = min(n_people - n_a, int(n_released.sum() * n_people / n_pairs))
    n_drawn = min(n_b * n_pairs / n_people, n_released.sum())
    alone = _only_one_drawn(n_holders, n_people, n_a, 0)
    alone_and_not_in_b = _only_one_drawn(n_holders, n_people, n_a, n_b)
    # The weight of a row, as expected among the unique records of A.
    weight = people_of_row / np.bincount(of_row)[of_row] / n_holders
    n_unique = float((weight * alone).sum())
    if n_unique <= 0:
        return dict.fromkeys(COPIES, 0.0)
    of_others = weight * (alone - alone_and_not_in_b) / n_unique
    released = weight * alone * probability_of_a_draw(n_released, n_released.sum(), n_drawn)[own] / n_unique
    difference = released - of_others
    two = np.full(1, 2.0)
    of_pair = float((_only_one_drawn(two, n_people, n_a, 0) - _only_one_drawn(two, n_people, n_a, n_b))[0]) / n_unique
    reach = normal_quantile(confidence_level) * sqrt(
        _variance(difference, own, of_row, people_of_row) + (normal_quantile(confidence_level) * of_pair) ** 2
    )
    excess = float(difference.sum())
    shares = float(of_others.sum()), float(released.sum())
    return dict(zip(COPIES, (*shares, excess, max(excess - reach, -1.0), min(excess + reach, 1.0)), strict=True))


def _without_repeats(counts: NDArray[np.float64], most: float) -> NDArray[np.float64]:
    """Lower the largest counts until none is more than a share of the sum."""
    in_order = np.sort(counts)[::-1]
    n_lowered, left = 0, float(counts.sum())
    bound = most * left
    while n_lowered < len(in_order) and in_order[n_lowered] > bound and (n_lowered + 1) * most < 1:
        left -= float(in_order[n_lowered])
        n_lowered += 1
        bound = most * left / (1 - n_lowered * most)
    return np.minimum(counts, bound)


def _only_one_drawn(n_holders: NDArray[np.float64], n_people: int, n_a: int, n_b: int) -> NDArray[np.float64]:
    """Return the probability that exactly one holder of each record is among ``n_a`` people and none among ``n_b``.

    Both are drawn at random from ``n_people``; it is n_a C(n_people - n_a - n_b, holders - 1) / C(n_people, holders).
    """
    from scipy.special import gammaln

    n_left, others = n_people - n_a - n_b, n_holders - 1
    log_ways = gammaln(n_left + 1.0) - gammaln(others + 1.0) - gammaln(np.maximum(n_left - others, 0) + 1.0)
    log_all = gammaln(n_people + 1.0) - gammaln(n_holders + 1.0) - gammaln(n_people - n_holders + 1.0)
    return np.where(others <= n_left, n_a * np.exp(np.minimum(log_ways - log_all, 0.0)), 0.0)


def _variance(
    difference: NDArray[np.float64],
    groups: NDArray[np.int64],
    of_row: NDArray[np.int64],
    people_of_row: NDArray[np.float64],
) -> float:
    """Estimate the variance of the sum of the differences of rows, which equal rows and those of a person share."""
    n_alike = np.zeros(int(of_row.max()) + 1)
    n_alike[of_row] = people_of_row
    of_records = float((np.bincount(groups, difference) ** 2).sum())
    of_people = float((np.bincount(of_row, difference) ** 2 / np.maximum(n_alike, 1)).sum())
    of_both = float((difference**2 / people_of_row).sum())
    return max(of_records + of_people - of_both, of_records)
