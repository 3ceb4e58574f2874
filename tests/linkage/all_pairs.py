"""Compatibility with any true probability, by one linear program with a variable for each pair of records.

A focal set with mass for a record x gives x and every other record of the set the same share of it; mixtures of such
shares are exactly the distributions that are largest at x. So the claims are compatible if and only if there is t >= 0
with the true probabilities as row sums, the claims as column sums, and t[x, z] <= t[x, x]. Records with equal true and
claimed probability are interchangeable, so one of them represents all.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.linkage.uniform_compatibility import GROUPING_DECIMALS


class Groups(NamedTuple):
    """Records with equal true and claimed probability; sources, whose true probability is above 0, come first."""

    truth: NDArray[np.float64]
    claimed: NDArray[np.float64]
    sizes: NDArray[np.int64]
    n_sources: int


def group(truth: NDArray[np.float64], claimed: NDArray[np.float64]) -> Groups:
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
