"""Information loss of a generalization, computed from class membership.

Labels that are coarser than membership (nodes of hierarchies, cells) lose more:
:mod:`~privacy_assets.anonymization.measured_loss` measures labels, and the gate uses it to measure all of them again.

Notes
-----
- **NCP** of a cell [1]_: ordered columns: range of the class / range of the table; sets: (values in the class - 1) /
  (values in the table - 1). A missing value is a separate value: in a set it counts as one, and a class of an ordered
  column that mixes missing and other values has loss 1. A constant column has loss 0, a suppressed cell loss 1.
- **GCP**: mean NCP over all cells of the quasi-identifiers.
- **DM** [2]_: sum of squared class sizes, and for each suppressed row the size of the table.
- **C_avg**: mean class size / k.
- **Non-uniform entropy** [3]_ of a column: the bits needed to identify each value among those its label covers,
  weighted by their frequency in the table, as a share of the bits if everything is suppressed.

References
----------
.. [1] J. Xu et al. (2006), "Utility-based anonymization using local recoding", doi:10.1145/1150402.1150504.
.. [2] R. Bayardo, R. Agrawal (2005), "Data privacy through optimal k-anonymization", doi:10.1109/ICDE.2005.42.
.. [3] A. Gionis, T. Tassa (2009), "k-Anonymization with minimal loss of information", doi:10.1109/TKDE.2008.129.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.generalization import Generalization
from privacy_assets.anonymization.quasi_identifiers import Scale
from privacy_assets.columns.coding import count_codes

OUTERMOST_SHARE = 0.005
"""Share of records at each end of a column that `positions_of_most` leaves out."""


def class_widths(generalization: Generalization, positions: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """NCP of one column in every class, from 0 to 1, with ordered values at ``positions``; default: as on its scale."""
    scale = generalization.scale
    if not scale.is_ordered:
        return np.asarray((np.diff(generalization.first) - 1) / max(scale.n_values - 1, 1), np.float64)
    if scale.n_known == 0:
        return np.zeros(len(generalization.low))
    last = scale.n_known - 1
    has_known = generalization.has_known
    low, high = np.minimum(generalization.low, last), np.maximum(generalization.high, 0)
    positions = scale.positions if positions is None else positions
    widths = np.where(has_known, positions[high] - positions[low], 0.0)
    return np.asarray(np.where(has_known & generalization.has_missing, 1.0, widths), np.float64)


def positions_of_most(scale: Scale, codes: NDArray[np.integer[Any]], k: int) -> NDArray[np.float64] | None:
    """Place ordered values on the line from 0 to 1 that most records span; values beyond its ends are at the ends.

    Outside are, at each end, half a percent of the records with a value, and at least k - 1 of them: these share a
    class with the k-th under any cuts, so no cut can remove their distance from it. With the range of the whole table
    instead, one extreme value would hide all detail among the others. All values lie between the smallest and the
    largest if most records have the same value, or the table has fewer than 2 k records. None for a set.
    """
    if not scale.is_ordered:
        return None
    up_to = np.cumsum(count_codes(codes, scale.n_values)[: scale.n_known])
    n_rows = int(up_to[-1]) if len(up_to) else 0
    n_outermost = max(k, int(np.ceil(OUTERMOST_SHARE * n_rows)))
    if 2 * n_outermost > n_rows:
        return scale.positions
    low = scale.positions[np.searchsorted(up_to, n_outermost)]
    high = scale.positions[np.searchsorted(up_to, n_rows - n_outermost, side="right")]
    return (np.clip(scale.positions, low, high) - low) / (high - low) if low < high else scale.positions


def certainty_penalty(generalization: Generalization, sizes: NDArray[np.int64], n_rows: int) -> float:
    """NCP of one column: mean over all rows of the table; rows in no class are suppressed."""
    lost = float(class_widths(generalization) @ sizes) + n_rows - int(sizes.sum())
    return lost / n_rows


def non_uniform_entropy(
    generalization: Generalization, codes: NDArray[np.integer[Any]], sizes: NDArray[np.int64]
) -> float:
    """Non-uniform entropy of one column, from 0 to 1; ``codes`` are those of the whole table."""
    scale = generalization.scale
    counts = count_codes(codes, scale.n_values)
    if scale.is_ordered:
        before = np.concatenate([[0], np.cumsum(counts[: scale.n_known])])
        known = before[np.maximum(generalization.high + 1, 0)] - before[np.minimum(generalization.low, scale.n_known)]
        missing = counts[scale.n_known] if scale.has_missing else 0
        covered = np.where(generalization.has_known, known, 0) + np.where(generalization.has_missing, missing, 0)
    else:
        covered = np.add.reduceat(counts[generalization.values], generalization.first[:-1]) if len(sizes) else sizes
    return entropy_of_labels(covered, counts, sizes)


def entropy_of_labels(covered: NDArray[np.int64], counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
    """Non-uniform entropy of one column.

    ``counts`` are the rows of the table by value, ``covered`` the rows whose values the label of each class covers.
    """
    n_rows = int(counts.sum())
    present = counts[counts > 0]
    most = n_rows * np.log2(n_rows) - float(present @ np.log2(present))
    if most <= 0:
        return 0.0
    # Rows by the rows their label covers, minus rows by those with their value: sums of whole numbers, so that the loss
    # of exact labels is exactly 0.
    counted, place = np.unique(np.concatenate([covered, present, [n_rows]]), return_inverse=True)
    weights = np.bincount(place, np.concatenate([sizes, -present, [n_rows - sizes.sum()]]))
    return float(min(max(weights @ np.log2(counted) / most, 0.0), 1.0))


def discernibility(sizes: NDArray[np.int64], n_rows: int) -> int:
    """DM: number of rows equal to each row, summed over the rows."""
    return int((sizes * sizes).sum()) + (n_rows - int(sizes.sum())) * n_rows


def average_class_ratio(sizes: NDArray[np.int64], k: int) -> float:
    """C_avg: 1 if every class has exactly k members."""
    return float(sizes.mean()) / k
