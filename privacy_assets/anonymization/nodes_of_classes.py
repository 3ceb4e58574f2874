"""Nodes of hierarchies as labels of classes, and the columns that are cut along a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.leveled_column import LeveledColumn
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.table import Table


class NodeLabels(NamedTuple):
    """Labels of classes in a quasi-identifier, which are nodes of its hierarchy.

    Each has a loss (NCP), from 0 to 1, and covers the values of some rows of the table.
    """

    labels: list[str]
    penalties: NDArray[np.float64]
    covered: NDArray[np.int64]


def label_by_nodes(column: LeveledColumn, nodes: NDArray[np.int64]) -> NodeLabels:
    """Describe the node of each class."""
    return NodeLabels(column.labels[nodes].tolist(), column.loss[nodes], column.count_rows()[nodes])


@dataclass(frozen=True, eq=False)
class NodeDimension:
    """A quasi-identifier that is cut along its hierarchy.

    ``codes`` number values depth-first: those under a node are consecutive. ``nodes`` (n_levels, n_values) has the node
    of each code on each level; one node on the last.
    """

    column: LeveledColumn
    codes: NDArray[np.int64]
    nodes: NDArray[np.int64]

    @classmethod
    def of(cls, column: LeveledColumn) -> NodeDimension:
        """Return the dimension of a column."""
        order = np.lexsort(column.nodes)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return cls(column, place[column.codes], column.nodes[:, order])

    @property
    def n_values(self) -> int:
        """Number of values that occur, including the missing value."""
        return int(self.nodes.shape[1])

    @property
    def hierarchy(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Node of each code on each level, and its loss."""
        return self.nodes, self.column.loss[self.nodes]

    def common_nodes(self, records: NDArray[np.integer[Any]], edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lowest common ancestor of each class; ``records`` are sorted by class, between ``edges``."""
        own = self.codes[records]
        low, high = np.minimum.reduceat(own, edges[:-1]), np.maximum.reduceat(own, edges[:-1])
        found = self.nodes[-1, low]
        for level in self.nodes[-2::-1]:  # if a lower level is shared, so is every higher one
            found = np.where(level[low] == level[high], level[low], found)
        return np.asarray(found, np.int64)


def level_columns(table: Table, hierarchies: Mapping[str, Hierarchy], names: Sequence[str]) -> dict[str, LeveledColumn]:
    """Find the nodes of columns, on the levels that merge some.

    Values that hierarchies lack or cannot take are reported of all columns at once.
    """
    leveled, problems = {}, []
    for name in names:
        try:
            leveled[name] = hierarchies[name].apply(table[name], name).merging()
        except InvalidTableError as error:
            problems.append(str(error))
    if problems:
        raise InvalidTableError(f"{' '.join(problems)} Nothing was anonymized.")
    return leveled
