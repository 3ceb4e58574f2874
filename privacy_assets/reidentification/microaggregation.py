"""Microaggregated columns: the originals of each group of records that were released with equal cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.quasi_identifiers import read_dimension
from privacy_assets.columns.coding import group_rows, read_column
from privacy_assets.columns.masks import Microaggregated, ReleaseModel
from privacy_assets.errors import InvalidSettingError
from privacy_assets.reidentification.code_sets import coarsen, from_lists, partition_of
from privacy_assets.reidentification.masked_columns import MaskedColumn


@dataclass(frozen=True)
class MicroaggregatedColumns:
    """Columns that were aggregated over the same groups of records.

    ``truth`` is the position in the original of each row of the release, ``group_of_row`` its group: equal cells in all
    columns. ``rows`` are those that are indexed.
    """

    codes: Mapping[str, NDArray[np.int64]]
    n_codes: Mapping[str, int]
    truth: NDArray[np.int64]
    group_of_row: NDArray[np.int64]
    rows: NDArray[np.int64]

    def column(self, names: Sequence[str]) -> MaskedColumn:
        """Return some of the columns as one, whose values are their combinations.

        An original fits a cell if a record of its group has the same values in all of them.
        """
        own, n_own = group_rows([self.codes[name] for name in names], [self.n_codes[name] for name in names])
        pairs = np.sort(pd.unique(self.group_of_row * n_own + own[self.truth]))
        groups, values = np.divmod(pairs, n_own)
        lists = np.split(values, np.flatnonzero(np.diff(groups)) + 1)
        sets = from_lists(lists, self.group_of_row[self.rows])
        codes, n_codes, sets = coarsen(own, n_own, sets)
        return MaskedColumn(codes, n_codes, sets, partition_of(sets, n_codes))

    def take(self, rows: NDArray[np.int64]) -> MicroaggregatedColumns:
        """Return the columns for other released rows."""
        return replace(self, rows=self.rows[rows])


def read_microaggregated(
    model: ReleaseModel, original: pd.DataFrame, released: pd.DataFrame, truth: NDArray[np.int64]
) -> list[MicroaggregatedColumns]:
    """Read the columns with masks `Microaggregated`, columns of the same groups together."""
    masks = {name: mask for name, mask in model.masks.items() if isinstance(mask, Microaggregated)}
    groups_of = {mask.column: frozenset(mask.together) for mask in masks.values()}
    wrong = [
        name
        for name, mask in masks.items()
        if mask.column not in mask.together
        or len(set(mask.together)) < len(mask.together)
        or any(groups_of.get(column) != frozenset(mask.together) for column in mask.together)
    ]
    if wrong:
        raise InvalidSettingError(
            f"The columns that {wrong} were aggregated together with do not agree. Expected in `together` each column "
            "of the groups once, the released column itself included, and the same columns in the masks of all of "
            "them. Nothing was assessed."
        )
    found = []
    for together in dict.fromkeys(frozenset(mask.together) for mask in masks.values()):
        names = [name for name, mask in masks.items() if frozenset(mask.together) == together]
        dimensions = {name: read_dimension(original[name]) for name in names}
        cells = [read_column(released[column], f"Column {column!r} of the release") for column in sorted(together)]
        groups, _ = group_rows([cell.codes + 1 for cell in cells], [len(cell.distinct) + 1 for cell in cells])
        found.append(
            MicroaggregatedColumns(
                {name: dimension.codes.astype(np.int64) for name, dimension in dimensions.items()},
                {name: dimension.scale.n_known + 1 for name, dimension in dimensions.items()},
                truth,
                groups,
                np.arange(len(released)),
            )
        )
    return found
