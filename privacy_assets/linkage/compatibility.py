"""Compatibility with any true probability, by one linear program with a variable for each pair of records.

A focal set with mass for a record x gives x and every other record of the set the same share of it; mixtures of such
shares are exactly the distributions that are largest at x. So the claims are compatible if and only if there is t >= 0
with the true probabilities as row sums, the claims as column sums, and t[x, z] <= t[x, x]. Records with equal true and
claimed probability are interchangeable, so one of them represents all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacy_assets.errors import InvalidSettingError
from privacy_assets.linkage.uniform_compatibility import (
    GROUPING_DECIMALS,
    TOLERANCE,
    decide_by_program,
    decide_quickly,
)
from privacy_assets.reidentification.belief import MASS_TOLERANCE
from privacy_assets.setting_checks import is_number, require

MAX_GROUP_PAIRS = 100_000


def is_compatible(truth: ArrayLike, claims: ArrayLike, *, tolerance: float = TOLERANCE) -> bool:
    """Return whether claims are compatible with a true probability, as Definition 14 of the source requires.

    They are if they are the pignistic probability of some belief function that is nowhere above the true probability.

    Parameters
    ----------
    truth : array-like of shape (n_records,)
        Probability of each record to be the true one, with sum 1 (within 1e-6); not necessarily uniform.
    claims : array-like of shape (n_records,)
        Probability that a linkage method claims for each record, with sum 1 (within 1e-6).
    tolerance : float
        Total error allowed in the claims, at least 0 and below 1; 1e-7 if it is smaller.

    Raises
    ------
    InvalidSettingError
        If the arguments are not probabilities of the same records, the tolerance is out of range, or more than 100,000
        pairs of distinct probabilities would be compared; a uniform truth has no such bound.

    References
    ----------
    V. Torra, K. Stokes, "A formalization of re-identification in terms of compatible probabilities" (2013).
    """
    true, claimed = np.asarray(truth, np.float64), np.asarray(claims, np.float64)
    shares = np.array([true, claimed]) if true.shape == claimed.shape and true.ndim == 1 else np.full((2, 1), np.nan)
    if not ((shares >= 0).all() and (np.abs(shares.sum(axis=1) - 1) <= MASS_TOLERANCE).all()):
        raise InvalidSettingError(
            f"truth and claims have the shapes {true.shape} and {claimed.shape}, or are not probabilities. Expected "
            "numbers of at least 0 that sum to 1, for the same records. Nothing was decided."
        )
    is_small = is_number(tolerance, 0, 1) and tolerance < 1
    require(is_small, "tolerance", tolerance, "a number of at least 0 and below 1", "Nothing was decided.")
    is_true = true > 0
    inside, outside = claimed[is_true], claimed[~is_true]
    if (inside <= 0).any():
        return False
    if np.ptp(true[is_true]) <= 10.0**-GROUPING_DECIMALS:
        decided = decide_quickly(inside, outside, tolerance=tolerance)
        return decide_by_program(inside, outside, tolerance=tolerance) if decided is None else decided
    groups = group(true, claimed)
    if groups.n_sources * len(groups.sizes) > MAX_GROUP_PAIRS:
        raise InvalidSettingError(
            f"There are {groups.n_sources} distinct pairs of a true probability above 0 and a claim, and "
            f"{len(groups.sizes)} with those of other records. Expected a product of at most {MAX_GROUP_PAIRS:,}. "
            "Round the probabilities. Nothing was decided."
        )
    return least_slack(groups) <= max(tolerance, TOLERANCE)


class Groups(NamedTuple):
    """Records with equal true and claimed probability; sources, whose true probability is above 0, come first."""

    truth: NDArray[np.float64]
    claimed: NDArray[np.float64]
    sizes: NDArray[np.int64]
    n_sources: int


def group(truth: NDArray[np.float64], claimed: NDArray[np.float64]) -> Groups:
    """Group records with equal probabilities; those with neither are left out."""
    used = (truth > 0) | (claimed > 0)
    pairs = np.round(np.column_stack([truth[used], claimed[used]]), GROUPING_DECIMALS)
    _, number, sizes = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    number = number.ravel()
    means = [np.bincount(number, weights=own[used]) / sizes for own in (truth, claimed)]
    order = np.argsort(means[0] <= 0, kind="stable")
    return Groups(means[0][order], means[1][order], sizes[order].astype(np.int64), int((means[0] > 0).sum()))


def least_slack(groups: Groups) -> float:
    """Return the smallest deviation of the column sums from the claims, as a share of the total probability.

    The variables are t[x, x] of each source group, then t[x, z] of each pair of a source group and a group, for z other
    than x, then the deviations of the columns upwards and downwards.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    n_sources, n_groups = groups.n_sources, len(groups.sizes)
    source = np.repeat(np.arange(n_sources), n_groups)
    target = np.tile(np.arange(n_groups), n_sources)
    pair = n_sources + np.arange(n_sources * n_groups)
    own = np.arange(n_sources)
    n_shares = n_sources + len(pair)
    others = groups.sizes[target] - (source == target)
    senders = groups.sizes[source] - (source == target)
    miss = n_shares + np.arange(n_groups)
    rows = [own, source, n_sources + own, n_sources + target, n_sources + np.arange(n_groups)]
    rows.append(rows[-1])
    columns = [own, pair, own, pair, miss, miss + n_groups]
    values = [np.ones(n_sources), others, np.ones(n_sources), senders, np.ones(n_groups), -np.ones(n_groups)]
    shape = (n_sources + n_groups, n_shares + 2 * n_groups)
    sums = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    at_most = coo_array(
        (
            np.concatenate([np.ones(len(pair)), -np.ones(len(pair))]),
            (np.tile(np.arange(len(pair)), 2), np.concatenate([pair, source])),
        ),
        shape=(len(pair), shape[1]),
    )
    found = linprog(
        np.concatenate([np.zeros(n_shares), groups.sizes, groups.sizes]),
        A_ub=at_most.tocsr(),
        b_ub=np.zeros(len(pair)),
        A_eq=sums.tocsr(),
        b_eq=np.concatenate([groups.truth[:n_sources], groups.claimed]),
        method="highs",
    )
    if found.status != 0:
        raise ArithmeticError(f"the linear program of compatibility ended with status {found.status}")
    return float(found.fun)
