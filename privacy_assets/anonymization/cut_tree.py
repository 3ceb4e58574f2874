"""The cuts of an anonymization: stored, and applied to new rows.

If a later release uses the cuts of an earlier one, no class of one splits a class of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.mondrian_tree import TreeArrays, cells_of_classes, route_rows
from privacy_assets.anonymization.quasi_identifiers import Scale, code_values
from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.display.notebook import ShowsFigures
from privacy_assets.errors import InvalidSettingError, InvalidTableError

NO_CLASS = -1


@dataclass(frozen=True, eq=False, repr=False)
class CutTree(ShowsFigures):
    """Cuts as codes, and the values of the codes; private, because it contains cells.

    Attributes
    ----------
    scales : tuple of Scale
        The dimensions.
    arrays : TreeArrays
        The cuts.
    class_of_leaf : ndarray of shape (n_leaves,), dtype=int64
        Class of each leaf; -1 if the rows of the leaf were suppressed. Leaves with the same labels are one class.
    """

    main_figures = ("columns", "n_leaves")

    scales: tuple[Scale, ...]
    arrays: TreeArrays
    class_of_leaf: NDArray[np.int64]

    def _figures(self) -> Mapping[str, object]:
        return {"columns": [scale.name for scale in self.scales], "n_leaves": len(self.class_of_leaf)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CutTree):
            return NotImplemented
        mine, theirs = self.to_frames(), other.to_frames()
        return self.header() == other.header() and all(frame.equals(theirs[name]) for name, frame in mine.items())

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_cuts(self) -> int:
        """Number of cuts."""
        return len(self.arrays.dimension)

    def cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the smallest and largest possible code of each class, of shape (n_classes, n_dimensions)."""
        n_values = np.array([scale.n_values for scale in self.scales], np.int64)
        low, high = cells_of_classes(self.arrays, n_values, len(self.class_of_leaf))
        # Leaves of one class have equal cells if classes are labeled by cells.
        classes, leaf = np.unique(self.class_of_leaf, return_index=True)
        leaf = leaf[classes >= 0]
        return low[leaf], high[leaf]

    def header(self) -> dict[str, Any]:
        """Return the content that does not fit into frames, as JSON values."""
        return {
            "scales": [
                {
                    "name": scale.name,
                    "kind": scale.kind,
                    "is_ordered": scale.is_ordered,
                    "has_missing": scale.has_missing,
                    "decimals": scale.decimals,
                    "unit": scale.unit,
                    "time_zone": scale.time_zone,
                    "storage": scale.known.dtype.str,
                    "is_whole": bool(scale.known.dtype.kind == "O" and scale.kind == "number"),
                }
                for scale in self.scales
            ]
        }

    def to_frames(self) -> dict[str, pd.DataFrame]:
        """Return cuts and values as frames of plain columns."""
        names = ("dimension", "threshold", "right_low", "left", "right")
        cuts = pd.DataFrame({name: getattr(self.arrays, name) for name in names})
        cuts["n_head"] = np.diff(self.arrays.first_head)
        frames = {
            "tree_cuts": cuts,
            "tree_heads": pd.DataFrame({"code": self.arrays.head}),
            "tree_leaves": pd.DataFrame({"class": self.class_of_leaf}),
        }
        for j, scale in enumerate(self.scales):
            values = scale.known
            if values.dtype.kind in "mM":
                values = values.astype(np.int64)
            is_text = values.dtype.kind == "O"
            column = pd.Series([str(v) for v in values], dtype=str) if is_text else pd.Series(values)
            frames[f"tree_values_{j}"] = pd.DataFrame({"value": column})
        return frames

    @classmethod
    def from_parts(cls, header: dict[str, Any], frames: dict[str, pd.DataFrame]) -> CutTree:
        """Read the output of :meth:`header` and :meth:`to_frames`."""
        scales = []
        for j, described in enumerate(header["scales"]):
            parts = dict(described)
            storage, is_whole = np.dtype(parts.pop("storage")), parts.pop("is_whole")
            column = frames[f"tree_values_{j}"]["value"]
            if storage.kind == "O":
                values = np.empty(len(column), object)
                values[:] = [int(text) if is_whole else str(text) for text in column]
            else:
                values = (
                    column.to_numpy().astype(np.int64).astype(storage) if storage.kind in "mM" else column.to_numpy()
                )
                values = values.astype(storage)
            scales.append(Scale(known=values, **parts))
        cuts = frames["tree_cuts"]
        dimension, threshold, right_low, left, right, n_head = (
            cuts[name].to_numpy(dtype=np.int64).copy()
            for name in ("dimension", "threshold", "right_low", "left", "right", "n_head")
        )
        first_head = np.concatenate([[0], np.cumsum(n_head)]).astype(np.int64)
        head = frames["tree_heads"]["code"].to_numpy(dtype=np.int64).copy()
        leaves = frames["tree_leaves"]["class"].to_numpy(dtype=np.int64).copy()
        return cls(tuple(scales), TreeArrays(dimension, threshold, right_low, left, right, first_head, head), leaves)


def apply_cuts(tree: CutTree, table: pd.DataFrame) -> NDArray[np.int64]:
    """Find the class of new rows.

    Parameters
    ----------
    tree : CutTree
        The cuts of an earlier anonymization.
    table : DataFrame
        Rows with the quasi-identifiers of the tree, of the same kinds; other columns are ignored.

    Returns
    -------
    classes : ndarray of shape (n_rows,), dtype=int64
        Class of each row, as in ``Anonymization.classes``; -1 for suppressed classes, and for a row with a category, a
        missing value, or a value of a column cut along a hierarchy that the table of the tree did not have. Numbers and
        times outside the range of that table belong to the outermost classes, whose labels do not cover them. Labels
        cover the values that occurred in a class, so a new row may be in a class whose label lacks its value.

    Raises
    ------
    InvalidSettingError
        If there is no tree, as in an anonymization by hierarchies.
    InvalidTableError
        If quasi-identifiers are missing or of another kind.

    Notes
    -----
    Rows that a relaxed cut would have separated by the keyed hash go to the left class, whose label includes their
    value.
    """
    if not isinstance(tree, CutTree):
        raise InvalidSettingError(
            f"The tree is a {type(tree).__name__}. Expected the CutTree of an anonymization by the method 'mondrian'; "
            "'lattice' does not make cuts. Nothing was classified."
        )
    require_unique_text_names(table)
    missing = [scale.name for scale in tree.scales if scale.name not in table.columns]
    if missing:
        raise InvalidTableError(
            f"The table lacks {len(missing)} quasi-identifiers of the tree: {missing}. Expected all of "
            f"{[scale.name for scale in tree.scales]}. Nothing was classified."
        )
    columns, problems = [], []
    for scale in tree.scales:
        try:
            columns.append(code_values(scale, table[scale.name]))
        except InvalidTableError as error:
            problems.append(str(error))
    if problems:
        raise InvalidTableError(" ".join(problems))
    codes = np.column_stack(columns)
    leaves = route_rows(tree.arrays, codes)
    return np.where((codes < 0).any(axis=1), NO_CLASS, tree.class_of_leaf[leaves])
