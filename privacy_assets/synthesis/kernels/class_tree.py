"""Classification trees on small integer codes: every split is found in a histogram of codes and classes.

A split raises the log-likelihood of the classes in a node, sum n_c log(n_c / n), by as much as it lowers their entropy
times the number of people, so the best one is that of CART [1]_ with the entropy.

References
----------
.. [1] L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone (1984), "Classification and Regression Trees".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel, part

LEAF = -1
TOLERANCE = 1e-9
"""People, and nats, by which sums of the same terms in another order may differ."""


class ClassTree(NamedTuple):
    """Nodes of a tree from the root, number 0; all arrays are of shape (n_nodes,), dtype=int64.

    A node with a ``feature`` sends its codes up to ``threshold`` to node ``left`` and the others to ``left + 1``; the
    feature of a leaf is -1. ``gain`` is how much its split raises the log-likelihood, dtype=float64; 0 for a leaf.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.int64]
    left: NDArray[np.int64]
    gain: NDArray[np.float64]


@kernel
def grow_tree(
    codes: NDArray[np.uint8],
    target: NDArray[np.uint8],
    weights: NDArray[np.float64],
    min_people: float,
    min_gain: float,
    whose: NDArray[np.int64],
) -> ClassTree:
    """Split nodes at their best split, as long as there is one with enough people and gain.

    Equally good splits: the first feature, then the lowest code. Codes between two neighbors of a node go with the
    nearer one, the middle one with the lower. Cost: rows times features times the depth of the tree.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_rows), dtype=np.uint8
        Predictors, one a row. Not checked here, like the lengths of the others.
    target : ndarray of shape (n_rows,), dtype=np.uint8
        Class of each row.
    weights : ndarray of shape (n_rows,), dtype=np.float64
        People of each row, above 0.
    min_people : float
        Smallest number of people on each side of a split: the sum of their weights, or of different ones, if it is
        known ``whose`` the rows are.
    min_gain : float
        Smallest rise of the log-likelihood by a split, in nats.
    whose : ndarray of shape (n_rows,) or (0,), dtype=np.int64
        Person of each row, ascending (not checked). Without any, the weights say how many people a row is.

    Returns
    -------
    ClassTree
    """
    n_features, n_rows = codes.shape
    n_codes, n_classes, n_all = 1, 1, 0.0
    for i in range(n_rows):
        n_classes, n_all = max(n_classes, target[i] + 1), n_all + weights[i]
        for j in range(n_features):
            n_codes = max(n_codes, codes[j, i] + 1)
    # A side with enough different people has at least as many rows.
    most = 2 * int((n_rows if len(whose) else n_all) / min_people + 1) + 1
    feature, threshold, left = np.full(most, LEAF), np.zeros(most, np.int64), np.zeros(most, np.int64)
    begin, end, gains = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most)
    rows, moved = np.arange(n_rows), np.empty(n_rows, np.int64)
    counts = np.zeros((n_codes, n_classes))
    total, below, above = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes)
    starting, ending = np.zeros(n_codes), np.zeros(n_codes)  # people by their lowest and by their highest code
    end[0], n_nodes, node = n_rows, 1, 0
    while node < n_nodes:
        first, last = begin[node], end[node]
        n_people, best = 0.0, min_gain
        for c in range(n_classes):
            total[c] = 0.0
        for i in range(first, last):
            total[target[rows[i]]] += weights[rows[i]]
            n_people += weights[rows[i]]
        own = _log_likelihood(total, n_people)
        for j in range(n_features if n_people >= 2 * min_people - TOLERANCE else 0):
            for c in range(n_classes):
                below[c] = 0.0
                for code in range(n_codes):
                    counts[code, c] = 0.0
            for i in range(first, last):
                row = rows[i]
                counts[codes[j, row], target[row]] += weights[row]
            n_different = _count_by_codes(rows, first, last, whose, codes[j], starting, ending) if len(whose) else 0.0
            n_starting, n_ended = 0.0, 0.0
            n_below, previous = 0.0, 0
            for code in range(n_codes):
                n_own = 0.0
                for c in range(n_classes):
                    n_own += counts[code, c]
                if n_own == 0.0:
                    continue
                n_above = n_people - n_below
                fewest = min(n_starting, n_different - n_ended) if len(whose) else min(n_below, n_above)
                if fewest >= min_people - TOLERANCE:  # cut between the previous code and this one
                    for c in range(n_classes):
                        above[c] = total[c] - below[c]
                    gain = _log_likelihood(below, n_below) + _log_likelihood(above, n_above) - own
                    if gain > best + TOLERANCE:
                        best, feature[node], threshold[node] = gain, j, (previous + code) // 2
                for c in range(n_classes):
                    below[c] += counts[code, c]
                n_below += n_own
                n_starting, n_ended = n_starting + starting[code], n_ended + ending[code]
                previous = code
        if feature[node] != LEAF:
            at, n_moved, gains[node] = first, 0, best
            for i in range(first, last):
                row = rows[i]
                if codes[feature[node], row] <= threshold[node]:
                    rows[at] = row
                    at += 1
                else:
                    moved[n_moved] = row
                    n_moved += 1
            for i in range(n_moved):
                rows[at + i] = moved[i]
            left[node] = n_nodes
            begin[n_nodes], end[n_nodes], begin[n_nodes + 1], end[n_nodes + 1] = first, at, at, last
            n_nodes += 2
        node += 1
    return ClassTree(feature[:n_nodes], threshold[:n_nodes], left[:n_nodes], gains[:n_nodes])


@part
def _count_by_codes(
    rows: NDArray[np.int64],
    first: int,
    last: int,
    whose: NDArray[np.int64],
    codes: NDArray[np.uint8],
    starting: NDArray[np.float64],
    ending: NDArray[np.float64],
) -> float:
    """Count the people of rows from ``first`` to ``last`` by their lowest and highest code; return their number."""
    n_people, low, high = 0.0, 0, 0
    for code in range(len(starting)):
        starting[code] = ending[code] = 0.0
    for i in range(first, last):
        own: Any = np.int64(codes[rows[i]])
        if i > first and whose[rows[i]] == whose[rows[i - 1]]:
            low, high = min(low, own), max(high, own)
        else:
            if i > first:
                starting[low] += 1.0
                ending[high] += 1.0
            n_people, low, high = n_people + 1.0, own, own
    if last > first:
        starting[low] += 1.0
        ending[high] += 1.0
    return n_people


@part
def _log_likelihood(counts: NDArray[np.float64], total: float) -> float:
    found = 0.0
    for count in counts:
        if count > 0:
            found += count * np.log(count / total)
    return found


@kernel
def find_leaves(tree: ClassTree, codes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the number of the leaf of each row, shape (n_rows,), for predictors of shape (n_features, n_rows)."""
    leaves = np.zeros(codes.shape[1], np.int64)
    for i in range(codes.shape[1]):
        node = 0
        while tree.feature[node] != LEAF:
            node = tree.left[node] + np.int64(codes[tree.feature[node], i] > tree.threshold[node])
        leaves[i] = node
    return leaves
