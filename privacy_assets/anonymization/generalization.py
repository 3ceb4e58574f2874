"""Generalization of a quasi-identifier in a class: a range or set of codes, from membership alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.mondrian_rows import list_class_values
from privacy_assets.anonymization.quasi_identifiers import Scale

CLASSES_AT_ONCE = 2**18
# A set of at most this many values fits the bits of one integer.
_MOST_BITS = 62


@dataclass(frozen=True, eq=False)
class Generalization:
    """The values of one dimension in every class.

    Ordered dimensions have ``low`` and ``high``, of shape (n_classes,): the smallest and largest code that is not
    missing; ``low > high`` if all are. Sets have ``values``, the codes of each class, ascending, and ``first``
    (n_classes + 1,), where those of each class begin. The other arrays are empty.
    """

    scale: Scale
    low: NDArray[np.signedinteger[Any]]
    high: NDArray[np.signedinteger[Any]]
    has_missing: NDArray[np.bool_]
    first: NDArray[np.int64]
    values: NDArray[np.integer[Any]]

    @property
    def has_known(self) -> NDArray[np.bool_]:
        """Whether a value of the class is not missing; of ordered dimensions only."""
        return np.asarray(self.low <= self.high)

    def distinct(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return a class for each distinct generalization, and the generalization of every class."""
        if self.scale.is_ordered:
            n = self.scale.n_known + 1
            keys = (np.minimum(self.low, n).astype(np.int64) * (n + 1) + self.high + 1) * 2 + self.has_missing
        elif self.scale.n_values <= _MOST_BITS:
            bits = np.left_shift(np.int64(1), self.values)
            keys = np.bitwise_or.reduceat(bits, self.first[:-1])
        else:
            keys = _number_lists(self.first, self.values)
        _, example, which = np.unique(keys, return_index=True, return_inverse=True)
        return example, which.astype(np.int64)


def _number_lists(first: NDArray[np.int64], values: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Give equal lists of values the same number, in the order in which they first appear."""
    sizes = np.diff(first)
    keys = np.empty(len(sizes), np.int64)
    n_keys = 0
    for size in np.unique(sizes).tolist():
        own = np.flatnonzero(sizes == size)
        lists = np.ascontiguousarray(values[first[own][:, None] + np.arange(size)])
        _, number = np.unique(lists.view(np.dtype((np.void, lists.itemsize * size))).ravel(), return_inverse=True)
        keys[own] = n_keys + number
        n_keys += int(number.max()) + 1
    _, example, number = np.unique(keys, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(example))[number], np.int64)


def generalize(scale: Scale, codes: NDArray[np.integer[Any]], edges: NDArray[np.int64]) -> Generalization:
    """Describe one dimension of classes; ``codes`` are sorted by class, between ``edges``."""
    none = np.zeros(0, np.int64)
    begins = edges[:-1]
    if not scale.is_ordered:
        first, values = _list_values(codes, edges, scale.n_values)
        has_missing = np.zeros(len(begins), np.bool_)
        if scale.has_missing:
            has_missing = values[first[1:] - 1] == scale.n_known
        return Generalization(scale, none, none, has_missing, first, values)
    low = np.minimum.reduceat(codes, begins).astype(np.int32)
    high = np.maximum.reduceat(codes, begins).astype(np.int32)
    has_missing = high == scale.n_known
    if has_missing.any():
        known = codes.astype(np.int32)
        known[known == scale.n_known] = -1
        high = np.maximum.reduceat(known, begins)
    return Generalization(scale, low, high, has_missing, none, none)


def _list_values(
    codes: NDArray[np.integer[Any]], edges: NDArray[np.int64], n_values: int
) -> tuple[NDArray[np.int64], NDArray[np.integer[Any]]]:
    """Do what `list_class_values` does for some classes at a time, whose codes are converted."""
    n_distinct, values = [np.zeros(1, np.int64)], []
    for begin in range(0, len(edges) - 1, CLASSES_AT_ONCE):
        own = edges[begin : begin + CLASSES_AT_ONCE + 1]
        rows = codes[own[0] : own[-1]]
        first, found = list_class_values(rows, own[:-1] - own[0], own[1:] - own[0], n_values)
        n_distinct.append(np.diff(first))
        values.append(found.astype(codes.dtype))
    return np.cumsum(np.concatenate(n_distinct)), np.concatenate(values or [codes[:0]])
