"""The cuts of a Mondrian partition as a tree: the class of a row, and the region of each class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.mondrian import Partition
from privacy_assets.anonymization.kernels.mondrian_rows import list_class_values
from privacy_assets.kernels.compilation import kernel
from privacy_assets.kernels.sorting import place_in


class TreeArrays(NamedTuple):
    """A binary tree of cuts, parents first; arrays of shape (n_cuts,), int64.

    ``threshold`` and ``right_low`` are the largest code on the left and the smallest on the right (0 for sets);
    ``left`` and ``right`` the position of the child cut, or -1 - class. ``head`` has the codes on the left of the cuts
    of sets, ascending, from ``first_head`` on.
    """

    dimension: NDArray[np.int64]
    threshold: NDArray[np.int64]
    right_low: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    first_head: NDArray[np.int64]
    head: NDArray[np.int64]


def build_tree(
    partition: Partition, columns: list[NDArray[np.signedinteger]], n_values: list[int], is_set: list[bool]
) -> TreeArrays:
    """Link the cuts of a partition; ``columns`` has the code of each record by dimension."""
    begins, stops, middles, dimension, threshold = (partition.cuts[:, i].copy() for i in range(5))
    n_cuts = len(begins)
    left = -1 - np.searchsorted(partition.begins, begins)
    right = -1 - np.searchsorted(partition.begins, middles)
    if n_cuts:
        after = np.minimum(np.arange(n_cuts) + 1, n_cuts - 1)
        is_cut = (begins[after] == begins) & (stops[after] == middles)
        left[is_cut] = after[is_cut]
        at = np.minimum(np.searchsorted(begins, middles), n_cuts - 1)
        is_cut = (begins[at] == middles) & (stops[at] == stops)
        right[is_cut] = at[is_cut]
    n_head = np.zeros(n_cuts, np.int64)
    heads = {}
    for j in np.flatnonzero(is_set):
        own = np.flatnonzero(dimension == j)
        if len(own):
            codes = columns[j][partition.records]
            first, heads[j] = list_class_values(codes, begins[own], middles[own], n_values[j])
            n_head[own] = np.diff(first)
    first_head = np.concatenate([[0], np.cumsum(n_head)]).astype(np.int64)
    head = np.zeros(int(first_head[-1]), np.int64)
    for j, values in heads.items():
        head[np.repeat(dimension == j, n_head)] = values
    is_ordered = ~np.array(is_set, np.bool_)[dimension] if n_cuts else np.zeros(0, np.bool_)
    right_low = np.where(is_ordered, threshold + 1, 0)
    return TreeArrays(dimension, threshold, right_low, left, right, first_head, head)


@kernel
def route_rows(tree: TreeArrays, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Find the class of each row of codes, an array with a column for each dimension; further columns are ignored."""
    n_rows = len(codes)
    classes = np.zeros(n_rows, np.int64)
    for i in range(n_rows):
        node = 0 if len(tree.dimension) > 0 else -1
        while node >= 0:
            code = int(codes[i, tree.dimension[node]])
            begin, stop = tree.first_head[node], tree.first_head[node + 1]
            if stop > begin:
                at = begin + place_in(tree.head[begin:stop], code)
                goes_left = at < stop and tree.head[at] == code
            else:
                goes_left = code <= tree.threshold[node]
            node = tree.left[node] if goes_left else tree.right[node]
        classes[i] = -1 - node
    return classes


@kernel
def cells_of_classes(
    tree: TreeArrays, n_values: NDArray[np.int64], n_classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Smallest and largest code of the region of each class; of shape (n_classes, n_dimensions).

    Only ordered dimensions are meaningful.
    """
    n_cuts = len(tree.dimension)
    n_dimensions = len(n_values)
    low, high = np.zeros((n_classes, n_dimensions), np.int64), np.zeros((n_classes, n_dimensions), np.int64)
    low_of_cut, high_of_cut = np.zeros((n_cuts, n_dimensions), np.int64), np.zeros((n_cuts, n_dimensions), np.int64)
    for j in range(n_dimensions):
        for c in range(n_classes):
            high[c, j] = n_values[j] - 1
        for node in range(min(n_cuts, 1)):
            high_of_cut[node, j] = n_values[j] - 1
    for node in range(n_cuts):
        j = tree.dimension[node]
        is_ordered = tree.first_head[node + 1] == tree.first_head[node]
        for is_left in (True, False):
            child = tree.left[node] if is_left else tree.right[node]
            into_low, into_high = (
                (low_of_cut[child], high_of_cut[child]) if child >= 0 else (low[-1 - child], high[-1 - child])
            )
            for i in range(n_dimensions):
                into_low[i] = low_of_cut[node, i]
                into_high[i] = high_of_cut[node, i]
            if is_ordered and is_left:
                into_high[j] = tree.threshold[node]
            elif is_ordered:
                into_low[j] = tree.right_low[node]
    return low, high
