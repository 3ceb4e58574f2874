"""An original column in codes, and released values among its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.labels import texts_of
from privacy_assets.anonymization.quasi_identifiers import Dimension, Scale
from privacy_assets.columns.coding import MAX_DECIMALS, ColumnValues, read_column, round_floats
from privacy_assets.columns.time_units import align_times
from privacy_assets.errors import InvalidTableError
from privacy_assets.reidentification.code_sets import CodeSets, from_ranges

TEXT_KINDS = ("text", "category")


class Original(NamedTuple):
    """An original column: its values in order, and the code of each record."""

    name: str
    column: pd.Series[Any]
    dimension: Dimension

    @property
    def scale(self) -> Scale:
        """The values."""
        return self.dimension.scale

    @property
    def n_values(self) -> int:
        """Number of codes; the last one is that of the missing value, even if no value is missing."""
        return self.scale.n_known + 1

    @property
    def where(self) -> str:
        """Name for messages."""
        return f"Column {self.name!r}"

    def read(self, column: pd.Series[Any]) -> ColumnValues:
        """Read the released column."""
        return read_column(column, f"{self.where} of the release")

    def ranges(
        self,
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        may_be_missing: NDArray[np.bool_],
        rows: NDArray[np.int64],
    ) -> CodeSets:
        """Make sets from ranges of codes."""
        return from_ranges(low, high, may_be_missing, self.scale.n_known, rows)

    def ranges_of_values(self, read: ColumnValues, low: NDArray[np.int64], high: NDArray[np.int64]) -> CodeSets:
        """Make sets from the ranges of distinct released values; that of a missing cell is the missing value."""
        is_missing = np.arange(len(low) + 1) == len(low)
        return self.ranges(np.append(low, 1), np.append(high, 0), is_missing, rows_of_values(read))


def refuse(original: Original, is_refused: NDArray[np.bool_], rows: NDArray[Any], problem: str, expected: str) -> None:
    """Raise if released values cannot be read; the message counts them and does not show them."""
    if is_refused.any():
        n_rows = int(np.append(is_refused, False)[rows].sum())
        raise InvalidTableError(
            f"{original.where}: {int(is_refused.sum())} of its released values (in {n_rows} rows) {problem}. Expected "
            f"{expected}. Use another mask for the column, or correct the release."
        )


def read_released(original: Original, column: pd.Series[Any]) -> tuple[ColumnValues, NDArray[Any]]:
    """Read a released column; returns it, and its distinct values in the type of the original scale."""
    read = original.read(column)
    if original.scale.kind == "category" and read.kind not in (*TEXT_KINDS, "missing"):
        return read, as_categories(original.scale, read)
    kinds = {original.scale.kind, read.kind}
    if len(kinds) == 2 and "missing" not in kinds and not kinds <= set(TEXT_KINDS):
        raise InvalidTableError(
            f"{original.where} has {original.scale.kind} values in the original and {read.description} in the "
            "release. Expected the same kind, or a mask that reads labels. Convert the column, or use the mask Label."
        )
    values = read.distinct
    if read.kind == "aware datetime" and read.offsets is not None:
        values = values - read.offsets.astype("timedelta64[s]")
    return read, values


def as_categories(scale: Scale, read: ColumnValues) -> NDArray[np.object_]:
    """Return distinct values as texts of ordered categories; 1 matches the category 1.0."""
    known = set(scale.known)
    texts = np.empty(len(read.distinct), object)
    for i, value in enumerate(pd.Series(read.distinct).astype(object)):
        ways = [value]
        if read.kind == "number":
            ways += [float(value), *([int(value)] if float(value).is_integer() else [])]
        texts[i] = next((text for text in map(str, ways) if text in known), str(value))
    return texts


def places_among(scale: Scale, values: NDArray[Any], side: str) -> NDArray[np.int64]:
    """Find the positions of values among the known ones."""
    known = scale.known
    if len(known) == 0 or len(values) == 0:
        return np.zeros(len(values), np.int64)
    known, values = align_times(scale.known, values)
    return np.searchsorted(known, values, side=side).astype(np.int64)  # type: ignore[call-overload,no-any-return]


def codes_among(scale: Scale, values: NDArray[Any]) -> NDArray[np.int64]:
    """Find the codes of values; -1 for values that do not occur in the original.

    Other programs write fewer digits of floats: a value without an exact match is taken for the only original that is
    equal to 10 decimals.
    """
    if scale.n_known == 0 or len(values) == 0:
        return np.full(len(values), -1, np.int64)
    if not scale.is_ordered or scale.kind == "category":
        return np.asarray(pd.Index(scale.known, dtype=object).get_indexer(pd.Index(values, dtype=object)), np.int64)
    known, values = align_times(scale.known, values)
    codes = _equal_places(known, values)
    if "f" in (known.dtype.kind, values.dtype.kind) and (codes < 0).any():
        known, values = (round_floats(each.astype(np.float64), MAX_DECIMALS) for each in (known, values))
        is_single = np.searchsorted(known, values, side="right") - np.searchsorted(known, values, side="left") == 1
        codes = np.where((codes < 0) & is_single, _equal_places(known, values), codes)
    return codes


def _equal_places(known: NDArray[Any], values: NDArray[Any]) -> NDArray[np.int64]:
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[places] == values, places, -1).astype(np.int64)


def rows_of_values(read: ColumnValues) -> NDArray[np.int64]:
    """Return the distinct value of each row; the position after the last one for a missing cell."""
    return np.where(read.codes < 0, len(read.distinct), read.codes).astype(np.int64)


def plain_values(read: ColumnValues) -> list[Any]:
    """Return distinct values, with whole floats as integers, so that their text has no decimal point."""
    values = read.distinct.tolist()
    return [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]


def value_texts(scale: Scale) -> list[str]:
    """Return each known value as text; whole floats without a decimal point, as in CSV files of other tools."""
    if scale.kind == "number" and scale.known.dtype.kind == "f":
        return [str(int(v)) if v.is_integer() else str(v) for v in scale.known.tolist()]
    return texts_of(scale)
