"""Compatibility with any true probability, by one linear program with a variable for each pair of records.

A focal set with mass for a record x gives x and every other record of the set the same share of it; mixtures of such
shares are exactly the distributions that are largest at x. So the claims are compatible if and only if there is t >= 0
with the true probabilities as row sums, the claims as column sums, and t[x, z] <= t[x, x].
"""

from __future__ import annotations

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

MAX_RECORD_PAIRS = 100_000


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
        pairs of records would be compared; a uniform truth has no such bound.

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
    true, claimed = shares / shares.sum(axis=1, keepdims=True)
    is_true = true > 0
    inside, outside = claimed[is_true], claimed[~is_true]
    if (inside <= 0).any():
        return False
    if np.ptp(true[is_true]) <= 10.0**-GROUPING_DECIMALS:
        decided = decide_quickly(inside, outside, tolerance=tolerance)
        return decide_by_program(inside, outside, tolerance=tolerance) if decided is None else decided
    n_sources, n_used = int(is_true.sum()), int((is_true | (claimed > 0)).sum())
    if n_sources * n_used > MAX_RECORD_PAIRS:
        raise InvalidSettingError(
            f"There are {n_sources} records with a true probability above 0, of {n_used}. Expected a product of at "
            f"most {MAX_RECORD_PAIRS:,}. Nothing was decided."
        )
    return _least_slack(true, claimed) <= max(tolerance, TOLERANCE)


def _least_slack(truth: NDArray[np.float64], claims: NDArray[np.float64]) -> float:
    """Return the smallest deviation of the column sums from the claims; variables are t row by row, then deviations."""
    from scipy.optimize import linprog
    from scipy.sparse import block_array, coo_array, eye_array, kron

    used = np.flatnonzero((truth > 0) | (claims > 0))
    sources, n = np.flatnonzero(truth[used] > 0), len(used)
    m, pairs = len(sources), np.arange(len(sources) * n)
    of_rows = kron(eye_array(m), np.ones((1, n)))
    of_columns = kron(np.ones((1, m)), eye_array(n))
    own = coo_array((np.ones(len(pairs)), (pairs, np.repeat(np.arange(m) * n + sources, n))), shape=(len(pairs),) * 2)
    found = linprog(
        np.repeat([0.0, 1.0], [len(pairs), 2 * n]),
        A_ub=block_array([[eye_array(len(pairs)) - own, coo_array((len(pairs), 2 * n))]], format="csr"),
        b_ub=np.zeros(len(pairs)),
        A_eq=block_array([[of_rows, None, None], [of_columns, eye_array(n), -eye_array(n)]], format="csr"),
        b_eq=np.concatenate([truth[used][sources], claims[used]]),
        method="highs",
    )
    if found.status != 0:
        raise ArithmeticError(f"the linear program of compatibility ended with status {found.status}")
    return float(found.fun)
