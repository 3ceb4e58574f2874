"""Compatibility of a claimed with a true probability (Definition 14)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.errors import InvalidSettingError
from privacy_assets.linkage.uniform_compatibility import GROUPING_DECIMALS, TOLERANCE, is_compatible_with_uniform
from privacy_assets.setting_checks import is_number, require

# If true probabilities differ, this many pairs take about a minute.
MAX_PAIRS = 100_000


def is_compatible(truth: NDArray[np.float64], claimed: NDArray[np.float64], *, tolerance: float = TOLERANCE) -> bool:
    """Decide whether ``claimed`` is the pignistic probability of some belief function compatible with ``truth``.

    Both are probabilities that a released record comes from each original, of shape (n_records,): the true ones, not
    all 0, and those of a linkage method. Claims may deviate by ``tolerance`` in total, below 1 and not less than the
    linear program can resolve. More than MAX_PAIRS pairs of records are refused, if the true probabilities differ.

    The masses of all 2^n sets are not needed. A focal set with mass for a record x gives x and every other record of
    the set the same share of it; mixtures of such shares are exactly the distributions that are largest at x. So
    ``claimed`` is compatible if and only if there is t >= 0 with row sums ``truth``, column sums ``claimed``, and t[x,
    z] <= t[x, x]: a linear program. Records with equal true and claimed probability are interchangeable, so one of them
    represents all. For a true probability of 1 it requires that x has the largest claim, as in Proposition 18. For a
    uniform true probability :mod:`~privacy_assets.linkage.uniform_compatibility` decides this with less work.
    """
    check_tolerance(tolerance)
    truth, claimed = _normalized(truth, "true"), _normalized(claimed, "claimed")
    if len(truth) != len(claimed):
        raise InvalidSettingError(
            f"There are {len(truth)} true and {len(claimed)} claimed probabilities. Expected equally many of both."
        )
    is_true = truth > 0
    if bool((claimed[is_true] <= 0).any()):
        return False
    inside = truth[is_true]
    if inside.max() - inside.min() <= 10.0**-GROUPING_DECIMALS:
        return is_compatible_with_uniform(claimed[is_true], claimed[~is_true], tolerance=tolerance)
    groups = _group(truth, claimed)
    n_pairs = groups.n_sources * len(groups.sizes)
    if n_pairs > MAX_PAIRS:
        raise InvalidSettingError(
            f"The true probabilities differ, and there are {n_pairs} pairs of different records. Expected at most "
            f"{MAX_PAIRS}. Round the probabilities, so that more records are equal. Nothing was evaluated."
        )
    return _least_slack(groups) <= max(tolerance, TOLERANCE)


def check_tolerance(tolerance: float) -> None:
    """Refuse a tolerance that is not a number of at least 0 and below 1."""
    require(is_number(tolerance, 0, 1) and tolerance < 1, "tolerance", tolerance, "a number of at least 0 and below 1")


def normalized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide numbers of at least 0, not all 0, by their sum, which may overflow."""
    shares = values / values.max()
    return np.asarray(shares / shares.sum())


def _normalized(probability: NDArray[np.float64], words: str) -> NDArray[np.float64]:
    values = np.asarray(probability, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all() or bool((values < 0).any()) or not values.any():
        raise InvalidSettingError(
            f"The {words} probability has the shape {values.shape}, or values that are negative, not finite, or all 0. "
            "Expected one number of at least 0 per record."
        )
    return normalized(values)


class _Groups(NamedTuple):
    """Records with equal true and claimed probability; sources, whose true probability is above 0, come first."""

    truth: NDArray[np.float64]
    claimed: NDArray[np.float64]
    sizes: NDArray[np.int64]
    n_sources: int


def _group(truth: NDArray[np.float64], claimed: NDArray[np.float64]) -> _Groups:
    used = (truth > 0) | (claimed > 0)
    pairs = np.round(np.column_stack([truth[used], claimed[used]]), GROUPING_DECIMALS)
    _, number, sizes = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    number = number.ravel()
    means = [np.bincount(number, weights=own[used]) / sizes for own in (truth, claimed)]
    order = np.argsort(means[0] <= 0, kind="stable")
    return _Groups(means[0][order], means[1][order], sizes[order].astype(np.int64), int((means[0] > 0).sum()))


def _least_slack(groups: _Groups) -> float:
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
