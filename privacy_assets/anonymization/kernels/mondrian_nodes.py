"""Dimensions of Mondrian that are cut along a hierarchy: widths, and the order in which values are cut.

The values of such a dimension are numbered depth-first, so the values under a node are consecutive codes, and the
lowest common ancestor of a class is that of its smallest and its largest code. The width of a class is the loss of this
node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import allocating_part, part


class Nodes(NamedTuple):
    """Nodes of the codes of all dimensions, flat: those of a dimension level by level, its values first.

    The last of the ``n_levels`` of a dimension has one node; without a hierarchy there are 0. ``loss`` of a node, from
    0 to 1, is larger on higher levels.
    """

    n_levels: NDArray[np.int64]
    first: NDArray[np.int64]
    node: NDArray[np.int64]
    loss: NDArray[np.float64]


def make_nodes(hierarchies: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]] | None]) -> Nodes:
    """Describe hierarchies by the nodes of codes, and their losses, of shape (n_levels, n_values); None without one."""
    parts = [(np.zeros((0, 0), np.int64), np.zeros((0, 0))) if each is None else each for each in hierarchies]
    first = np.cumsum([0, *(node.size for node, _ in parts)])[:-1].astype(np.int64)
    node = np.concatenate([node.ravel() for node, _ in parts]).astype(np.int64)
    loss = np.concatenate([loss.ravel() for _, loss in parts]).astype(np.float64)
    return Nodes(np.array([len(node) for node, _ in parts], np.int64), first, node, loss)


@part
def shared_level(nodes: Nodes, j: int, n_values: int, one: int, other: int) -> int:
    """Lowest level on which two codes have the same node."""
    at = nodes.first[j]
    level = 0
    while nodes.node[at + one] != nodes.node[at + other]:
        at += n_values
        level += 1
    return level


@part
def shared_loss(nodes: Nodes, j: int, n_values: int, one: int, other: int) -> float:
    """Loss of the lowest common ancestor of two codes."""
    loss: float = nodes.loss[nodes.first[j] + shared_level(nodes, j, n_values, one, other) * n_values + one]
    return loss


@allocating_part
def sort_by_nodes(
    n_listed: int, j: int, n_values: int, nodes: Nodes, bins: NDArray[np.int64], tally: NDArray[np.int64]
) -> None:
    """Sort the values of a class depth-first, in place.

    Of the children of a node, the one with most rows of the class comes first, ties by code. ``bins`` has the values,
    ascending, and ``tally`` the rows of each.
    """
    codes, counts, order = np.empty(n_listed, np.int64), np.empty(n_listed, np.int64), np.empty(n_listed, np.int64)
    for x in range(n_listed):
        codes[x], counts[x], order[x] = bins[x], tally[x], x
    at = nodes.first[j]
    n_levels = shared_level(nodes, j, n_values, codes[0], codes[n_listed - 1])
    under = np.empty(n_levels * n_listed, np.int64)
    for level in range(n_levels):
        begin, total = 0, counts[0]
        for x in range(1, n_listed + 1):
            if x == n_listed or nodes.node[at + codes[x]] != nodes.node[at + codes[begin]]:
                for y in range(begin, x):
                    under[level * n_listed + y] = total
                begin, total = x, 0
            if x < n_listed:
                total += counts[x]
        at += n_values
    # A Shell sort with Tokuda's gaps, as in `sort_by_count`.
    gap = 1
    while gap < n_listed:
        gap = (9 * gap) // 4 + 1
    while gap > 1:
        gap = (4 * (gap - 1)) // 9 if gap > 3 else 1
        for x in range(gap, n_listed):
            own = order[x]
            y = x - gap
            while y >= 0:
                other = order[y]
                at = (shared_level(nodes, j, n_values, codes[own], codes[other]) - 1) * n_listed
                if under[at + own] < under[at + other]:
                    break
                if under[at + own] == under[at + other] and own > other:
                    break
                order[y + gap] = other
                y -= gap
            order[y + gap] = own
    for x in range(n_listed):
        bins[x] = codes[order[x]]
        tally[x] = counts[order[x]]
