"""The errors behind the figures: the distances of a table from the control.

Definitions: ``docs/utility.md``.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privacy_assets.utility.counted import Pair, Plan, Shared

SMALLEST_COUNT = 0.005
"""Share of the rows to which the relative error of a smaller count is relative."""
PENALTY = 1e-4
"""Weight of the squared coefficients of a linear rule, per row, in addition to one row."""


def column_distances(table: Shared, judge: Shared) -> NDArray[np.float64]:
    """Return total variation distances, of shape (n_variants, n_columns)."""
    return np.stack(
        [0.5 * np.abs(one - other).sum(axis=1) for one, other in zip(table.columns, judge.columns, strict=True)], axis=1
    )


def pair_errors(table: Shared, judge: Shared, pairs: list[Pair]) -> NDArray[np.float64]:
    """Return squared differences between (joint - product of margins), of shape (n_variants, n_pairs)."""
    errors = np.zeros((len(table.n_rows), len(pairs)))
    for p, pair in enumerate(pairs):
        difference = _association(table.pairs[pair]) - _association(judge.pairs[pair])
        errors[:, p] = np.einsum("vij,vij->v", difference, difference)
    return errors


def _association(joint: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(joint - joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True))


def count_errors(table: Shared, judge: Shared) -> NDArray[np.float64]:
    """Return squared differences between the roots of answers, of shape (n_variants, n_queries)."""
    return np.asarray((np.sqrt(table.answers) - np.sqrt(judge.answers)) ** 2)


def relative_count_errors(table: Shared, judge: Shared) -> NDArray[np.float64]:
    """Return differences between answers over those of the judge, of shape (n_variants, n_queries)."""
    return np.asarray(np.abs(table.answers - judge.answers) / np.maximum(judge.answers, SMALLEST_COUNT))


def explained_shares(table: Shared, judge: Shared, plan: Plan) -> NDArray[np.float64]:
    """Return the share of the variance of each column in the judge that a linear rule learned on a table explains.

    Columns are one-hot; the rule predicts one of them from the others of its block by least squares with a small
    penalty. A share below 0 counts as 0, and so does that of a column without variance. Of shape (n_variants,
    n_columns).
    """
    explained = np.zeros((len(table.n_rows), len(plan.n_bins)))
    for block in plan.blocks:
        first = np.concatenate([[0], np.cumsum(plan.n_bins[block])])
        owner = np.repeat(np.arange(len(block)), plan.n_bins[block])
        learned, tested = _products(table, block, first), _products(judge, block, first)
        for v, n_rows in enumerate(table.n_rows):
            remainder = _remainder(learned[v], first, PENALTY + 1 / max(int(n_rows), 1))
            errors = np.bincount(owner, np.einsum("ij,ij->j", remainder, tested[v] @ remainder))
            shares = np.diag(tested[v])
            variances = 1 - np.bincount(owner, shares**2)
            has_variance = variances > 1e-12
            explained[v, block[has_variance]] = 1 - errors[has_variance] / variances[has_variance]
    return np.maximum(explained, 0.0)


def _products(table: Shared, block: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return X'X / n of the one-hot columns of a block, of shape (n_variants, width, width)."""
    products = np.zeros((len(table.n_rows), int(first[-1]), int(first[-1])))
    for a, i in enumerate(block.tolist()):
        own = np.arange(first[a], first[a + 1])
        products[:, own, own] = table.columns[i]
        for b in range(a + 1, len(block)):
            other = slice(first[b], first[b + 1])
            joint = table.pairs[i, int(block[b])]
            products[:, first[a] : first[a + 1], other] = joint
            products[:, other, first[a] : first[a + 1]] = joint.transpose(0, 2, 1)
    return products


def _remainder(products: NDArray[np.float64], first: NDArray[np.int64], penalty: float) -> NDArray[np.float64]:
    """Return the matrix that turns one-hot rows into the residuals of each column after prediction from the others.

    With P the inverse of (X'X / n + penalty), the coefficients for the columns y are ``-P[x, y] P[y, y]^-1``: all rules
    follow from one inverse.
    """
    inverse = np.linalg.inv(products + penalty * np.eye(len(products)))
    for begin, end in pairwise(first.tolist()):
        inverse[:, begin:end] = inverse[:, begin:end] @ np.linalg.inv(inverse[begin:end, begin:end])
    return np.asarray(inverse, np.float64)
