"""Iterative proportional fitting ("raking" [1]_) of one model to the margins of groups, which are first shrunk.

References
----------
.. [1] W. E. Deming, F. F. Stephan (1940), "On a least squares adjustment of a sampled frequency table when the expected
   marginal totals are known", Annals of Mathematical Statistics 11(4), 427-444, doi:10.1214/aoms/1177731829.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

MAX_BLOCKS: Final = 4
ROUNDS: Final = 3


def blocks_of(counts: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the block of each class, from 0: itself, or one of `MAX_BLOCKS` neighborhoods of about equal frequency."""
    if len(counts) <= MAX_BLOCKS:
        return np.arange(len(counts))
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    blocks: NDArray[np.intp] = np.unique((middle * MAX_BLOCKS).astype(np.intp), return_inverse=True)[1]
    return blocks


def rake(
    donors: NDArray[np.float64],
    rows_in_leaves: NDArray[np.float64],
    observed: NDArray[np.float64],
    people: NDArray[np.float64],
    pool: float,
) -> NDArray[np.float64]:
    """Return the factors by which a group multiplies the frequency of each block in every leaf.

    The share of a block in a group is wanted to be what the leaves of its rows let expect, moved toward what is
    observed by ``max(0, 1 - 2 df / chi2) n / (n + pool)``, with n the people of the group and chi2 that of its blocks,
    with df degrees of freedom: groups that do not differ beyond chance (Akaike's criterion) are not moved, small ones
    little.

    Parameters
    ----------
    donors : ndarray of shape (n_leaves, n_blocks), dtype=np.float64
        Rows of all groups; every leaf has some.
    rows_in_leaves : ndarray of shape (n_groups, n_leaves), dtype=np.float64
        Rows of each group by leaf; every group has some.
    observed : ndarray of shape (n_groups, n_blocks), dtype=np.float64
        Rows of each group by block.
    people : ndarray of shape (n_groups,), dtype=np.float64
        People of each group.
    pool : float
        People of a group that is moved half of the way.

    Returns
    -------
    factors : ndarray of shape (n_groups, n_blocks), dtype=np.float64
        Above 0; 1 leaves the frequency of a block as it is.
    """
    shares = donors / donors.sum(axis=1, keepdims=True)
    n_rows = rows_in_leaves.sum(axis=1, keepdims=True)
    expected, seen = rows_in_leaves @ shares / n_rows, observed / n_rows
    unlikely = np.divide((seen - expected) ** 2, expected, out=np.zeros_like(seen), where=expected > 0)
    chi2, df = people * unlikely.sum(axis=1), observed.shape[1] - 1
    beyond_chance = 1 - 2 * df / np.maximum(chi2, 2 * df) if df else np.zeros_like(people)
    wanted = expected + (beyond_chance * people / (people + pool))[:, None] * (seen - expected)
    factors: NDArray[np.float64] = np.ones_like(seen)
    for _ in range(ROUNDS):
        raked = shares * factors[:, None]
        raked /= raked.sum(axis=2, keepdims=True)
        made = np.einsum("gl,glb->gb", rows_in_leaves, raked) / n_rows
        factors *= np.divide(wanted, made, out=np.ones_like(made), where=made > 0)
    return factors
