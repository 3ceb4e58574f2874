"""Drift of a table from an earlier one, as distances and counts without values.

The earlier table is stored as a profile: the shares of each column's values in at most 100 cells. Numbers and times are
cut at quantiles of the earlier table. In other columns each of the most frequent values has its own cell, and all
others share one. Missing values have their own cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import ORDERED_KINDS, read_column
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.table import Table

MAX_CELLS = 100
PROFILE_KIND = "TableProfile"


class Drift(NamedTuple):
    """The result of `measure_drift`: distances of columns from 0 (unchanged) to 1, and columns of one table only."""

    distances: dict[str, float]
    rows_before: int
    rows_now: int
    columns_lost: list[str]
    columns_added: list[str]

    @property
    def largest(self) -> float:
        """The largest distance of a column; 1 if columns were lost or added."""
        return 1.0 if self.columns_lost or self.columns_added else max(self.distances.values(), default=0.0)


def profile_table(table: Table) -> Artifact:
    """Summarize a table for `measure_drift`. The profile contains values, so it is private."""
    frames = {f"column_{place}": _cells_of(table[name], name) for place, name in enumerate(table.columns)}
    kinds = [_kind(table[name], str(name)) for name in table.columns]
    return Artifact(PROFILE_KIND, {"columns": list(table.columns), "kinds": kinds, "rows": len(table)}, frames)


def measure_drift(profile: Artifact, table: Table) -> Drift:
    """Compare a table with the profile of an earlier one.

    The distance of an ordered column is the largest difference between the two distribution functions at the cells'
    ends (Kolmogorov-Smirnov). For any other column it is half the sum of the differences between the shares (total
    variation). Both include missing values. A column whose kind has changed (from a datetime to a number, from a
    datetime with a time zone to one without, from booleans to text) is at distance 1.

    Raises
    ------
    InvalidTableError
        If the table has no rows, or a column cannot be read.
    """
    header: Mapping[str, Any] = profile.header
    if len(table) == 0:
        raise InvalidTableError("The table has no rows. Expected at least one row; nothing was compared.")
    before = list(header["columns"])
    distances = {}
    for place, (name, kind) in enumerate(zip(before, header["kinds"], strict=True)):
        if name in table.columns:
            distances[name] = _distance(profile.frames[f"column_{place}"], kind, table[name], name)
    return Drift(
        distances,
        int(header["rows"]),
        len(table),
        [name for name in before if name not in table.columns],
        [str(name) for name in table.columns if name not in before],
    )


def _kind(column: pd.Series[Any], name: str) -> str:
    """Return the kind of the values; datetimes are not numbers, and booleans are not text."""
    return read_column(column, f"Column {name!r}").kind


def _cells_of(column: pd.Series[Any], name: str) -> pd.DataFrame:
    """Return the upper end or value of each cell, and its share; the last cell has the share of missing values."""
    missing = float(column.isna().mean()) if len(column) else 0.0
    if _kind(column, name) in ORDERED_KINDS:
        numbers = _as_numbers(column, name)
        ends = np.unique(np.quantile(numbers, np.linspace(0, 1, MAX_CELLS), method="higher"))
        below = np.searchsorted(np.sort(numbers), ends, side="right") / len(column)
        return pd.DataFrame({"end": np.append(ends, np.nan), "share": np.append(below, missing)})
    counts = column.dropna().astype(str).value_counts(sort=False)
    counts = counts[counts > 0].sort_index().sort_values(ascending=False, kind="stable").head(MAX_CELLS)
    values = pd.Series([*counts.index, None], dtype=object).astype("str")
    return pd.DataFrame({"value": values, "share": np.append(counts.to_numpy() / max(len(column), 1), missing)})


def _distance(cells: pd.DataFrame, kind: str, column: pd.Series[Any], name: str) -> float:
    if _kind(column, name) != kind:
        return 1.0
    shares = cells["share"].to_numpy()
    missing = float(column.isna().mean())
    if kind in ORDERED_KINDS:
        numbers = np.sort(_as_numbers(column, name))
        below = np.searchsorted(numbers, cells["end"].to_numpy()[:-1], side="right") / len(column)
        return float(max(np.abs(below - shares[:-1]).max(initial=0.0), abs(missing - shares[-1])))
    now_shares = column.dropna().astype(str).value_counts(sort=False) / len(column)
    own = now_shares.reindex(cells["value"].iloc[:-1]).fillna(0.0).to_numpy()
    others = (1 - missing - own.sum(), 1 - shares.sum())
    differences = np.abs(own - shares[:-1]).sum() + abs(missing - shares[-1]) + abs(others[0] - others[1])
    return float(differences / 2)


def _as_numbers(column: pd.Series[Any], name: str) -> NDArray[np.float64]:
    values = read_column(column, f"Column {name!r}")
    distinct = values.distinct
    if distinct.dtype.kind in "mM":
        distinct = distinct.astype(f"{distinct.dtype.kind}8[us]").astype(np.int64)
    return np.asarray(distinct.astype(np.float64)[values.codes[values.codes >= 0]], np.float64)
