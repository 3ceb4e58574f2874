"""The mutual information by which the source of the mpUCC search stops, of combinations of integer codes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy_assets.mpucc.kernels.uniqueness import renyi_entropy

ROUNDING = 1e-9
"""A mutual information is negative if it is below minus this; floats are not exact."""


def mutual_information(
    columns: Sequence[NDArray[Any]], weights: NDArray[np.int32], combos: NDArray[np.int16], alpha: float
) -> NDArray[np.float64]:
    """Return I(X; Y) = H(Y) - H(Y | X) of each combination: Y is its last column, X the others.

    As in the source, X has two values: whether a row is unique on the other columns. H is the Renyi entropy of order
    alpha, in bits, and H(Y | X) its mean, weighted by the share of the rows with each value of X.

    Parameters
    ----------
    columns : sequence of ndarray of shape (n_rows,), integer
        Codes of each column; at least one row.
    weights : ndarray of shape (n_rows,), dtype=int32
        Records of each row.
    combos : ndarray of shape (n_combos, size), dtype=int16
        Combinations of two or more columns, those with the same X one after the other.

    Notes
    -----
    For Shannon's entropy, and all orders up to 1, it is never negative, because these entropies are concave.
    """
    found = np.zeros(len(combos))
    n_records = int(weights.sum())
    for base, own in groupby(range(len(combos)), lambda i: tuple(combos[i, :-1].tolist())):
        labels = np.zeros(len(weights), np.int64)
        for c in base:
            _, labels = np.unique(labels * (int(columns[c].max()) + 1) + columns[c], return_inverse=True)
        is_unique = np.bincount(labels, weights)[labels] == 1
        share = int(is_unique.sum()) / n_records
        for i in own:
            codes = columns[combos[i, -1]]
            every = np.bincount(codes, weights).astype(np.int64)
            unique = np.bincount(codes[is_unique], minlength=len(every))
            parts = [(1.0, every), (-share, unique), (share - 1, every - unique)]
            found[i] = sum(part * renyi_entropy(counts[counts > 0], alpha) for part, counts in parts if counts.any())
    return found
