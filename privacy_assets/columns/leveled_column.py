"""A column with the node of each value on each level of a hierarchy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import MAX_DECIMALS, ColumnValues, encode_column, read_column, round_floats
from privacy_assets.errors import InvalidTableError

MISSING_LABEL = "missing"
ROOT_LABEL = "*"
# Placeholder for the missing value until labels are compared, so that it differs from the text "missing".
_MISSING: Any = object()
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)

Labels = NDArray[np.object_]


@dataclass(frozen=True)
class Leaves:
    """The values of a column, as leaves for a hierarchy; the code of a missing one is ``n_values``."""

    where: str
    column: ColumnValues
    codes: NDArray[np.int64]
    labels: Labels

    @classmethod
    def read(cls, column: pd.Series[Any], where: str) -> Leaves:
        """Read a column; floats that agree to 10 decimals are equal."""
        values = read_column(column, where)
        encoded = encode_column([values])
        labels = encoded.labels
        if len(labels) and labels[-1] is None:
            labels = labels[:-1]
        # Sorted by their text, so that the order of the rows does not matter; missing values stay last.
        order = np.argsort(labels, kind="stable")
        place = np.append(np.argsort(order), len(labels))
        return cls(where, values, place[encoded.codes[0]], labels[order])

    @property
    def has_missing(self) -> bool:
        """Whether a value is missing."""
        return bool((self.codes == len(self.labels)).any())

    def raw(self) -> NDArray[Any]:
        """Return the value of each label, in the storage type of the column; floats to 10 decimals."""
        if len(self.labels) == 0:
            return self.column.distinct[:0]
        code_of_distinct = np.full(len(self.column.distinct) + 1, len(self.labels))
        code_of_distinct[self.column.codes] = self.codes
        raw = np.empty(len(self.labels) + 1, self.column.distinct.dtype)
        raw[code_of_distinct[:-1]] = self.column.distinct
        return round_floats(raw[:-1], MAX_DECIMALS) if self.column.is_float else raw[:-1]

    def count_rows(self, is_counted: NDArray[np.bool_]) -> int:
        """Count the rows that have one of some values."""
        return int(np.append(is_counted, False)[self.codes].sum())


@dataclass(frozen=True)
class LeveledColumn:
    """One column and its hierarchy.

    ``nodes`` (n_levels, n_values) has the node of each occurring value on each level; level 0 has the values. Equal
    labels on any levels are one node. ``n_leaves_under`` counts the values of the hierarchy under each node.
    """

    codes: NDArray[np.int64]
    nodes: NDArray[np.int64]
    labels: Labels
    n_leaves_under: NDArray[np.int64]
    n_leaves: int

    @property
    def loss(self) -> NDArray[np.float64]:
        """Share of the hierarchy that each node hides: (leaves under it - 1) / (leaves - 1); 0 if there is one leaf."""
        return (self.n_leaves_under - 1) / max(self.n_leaves - 1, 1)

    def merging(self) -> LeveledColumn:
        """Omit the levels that do not merge nodes of this column; labels of tables made elsewhere may be on them."""
        kept = [self.nodes[0]]
        for nodes in self.nodes[1:]:
            if len(np.unique(nodes)) < len(np.unique(kept[-1])):
                kept.append(nodes)
        return replace(self, nodes=np.array(kept))

    def count_rows(self) -> NDArray[np.int64]:
        """Count the rows of the table under each node."""
        of_value = np.bincount(self.codes, minlength=self.nodes.shape[1])
        counts = np.zeros(len(self.labels), np.int64)
        for nodes in self.nodes:
            # A node on several levels has the same values on all of them.
            counts = np.maximum(counts, np.bincount(nodes, of_value, minlength=len(counts)).astype(np.int64))
        return counts


def level_column(
    leaves: Leaves, levels: Sequence[Labels], leaf_of_value: NDArray[np.int64], *, is_rule: bool = False
) -> LeveledColumn:
    """Assign numbers to the nodes of a hierarchy, and add the missing value and, if needed, a root.

    ``levels`` has the label of the node of each leaf of the hierarchy on each level, the leaves themselves first; a
    node has one parent (not checked here). If the labels are a rule that defines the values under them, like ``[20,
    29]``, the missing value is only under a root ``*``, otherwise under the top node of the list. One label for several
    sets of values is ambiguous, and refused.
    """
    columns = [*levels]
    # The last level of a rule may be a single node because the table has no other values.
    if len(columns[-1]) and (len(set(columns[-1])) > 1 or (is_rule and leaves.has_missing)):
        columns.append(np.full(len(columns[0]), ROOT_LABEL, object))
    if leaves.has_missing:
        columns = _with_missing(columns)
        leaf_of_value = np.append(leaf_of_value, len(columns[0]) - 1)
    numbers: dict[tuple[Any, int, int], int] = {}
    nodes = []
    for column in columns:
        group, distinct = pd.factorize(column)
        n_under = np.bincount(group, minlength=len(distinct))
        first = np.full(len(distinct), len(column))
        np.minimum.at(first, group, np.arange(len(column)))
        # Nodes of a tree are nested or disjoint: with the same first leaf and size, they are the same set.
        keys = zip(distinct.tolist(), first.tolist(), n_under.tolist(), strict=True)
        number_of = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
        nodes.append(number_of[group][leaf_of_value])
    labels = [MISSING_LABEL if label is _MISSING else label for label, _, _ in numbers]
    n_ambiguous = len(labels) - len(set(labels))
    if n_ambiguous:
        raise InvalidTableError(
            f"{leaves.where}: {n_ambiguous} labels of its hierarchy stand for different sets of values on different "
            f"levels (missing values are labeled {MISSING_LABEL!r}). Expected one meaning per label. Rename nodes."
        )
    texts = np.empty(len(labels), object)
    texts[:] = labels
    n_leaves_under = np.array([n for _, _, n in numbers], np.int64)
    return LeveledColumn(leaves.codes, np.array(nodes), texts, n_leaves_under, len(columns[0]))


def number_of_text(text: str) -> Decimal | None:
    """Return the number in a text, equal for 1, 1.0 and 1e0, to 10 decimals; None for other texts."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent out of range
        return None
    if number == number.to_integral_value():
        return number
    return Decimal(repr(float(round_floats(np.array([float(number)]), MAX_DECIMALS)[0])))


def _with_missing(columns: list[Labels]) -> list[Labels]:
    """Add the missing value as a leaf: a separate node up to the level at which all leaves are one node."""
    top = columns[-1][0] if len(columns[-1]) else ROOT_LABEL
    n_below = len(columns)
    while n_below > 1 and set(columns[n_below - 1]) == {top}:
        n_below -= 1
    # If the top has the label of one of its parts, the missing value would make the label ambiguous.
    if n_below == len(columns) or any((column == top).any() for column in columns[:n_below]):
        columns, n_below, top = [*columns, np.full(len(columns[0]), ROOT_LABEL, object)], len(columns), ROOT_LABEL
    return [np.append(column, _MISSING if level < n_below else top) for level, column in enumerate(columns)]
