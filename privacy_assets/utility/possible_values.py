"""The values that the labels of a column can stand for, from the release alone if it contains them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import ORDERED_KINDS, read_column
from privacy_assets.columns.hierarchy import Hierarchy, ListedHierarchy
from privacy_assets.columns.leveled_column import Leaves
from privacy_assets.columns.masks import HierarchyMapping, Interval, Label, ValueSet
from privacy_assets.errors import InvalidSettingError
from privacy_assets.reidentification.mask_labels import Meaning, read_label, read_number_label

MOST_WHOLE_NUMBERS = 10_000
MOST_DECIMALS = 10
"""The search in the ends of ranges stops at this many."""


def possible_values(
    name: str,
    table: pd.DataFrame,
    mask: Interval | ValueSet | HierarchyMapping | Label,
    known: pd.Series[Any] | None,
    hierarchies: Mapping[str, Hierarchy],
) -> tuple[pd.Series[Any], Interval | ValueSet | HierarchyMapping | Label]:
    """Return the values of a column among which labels are read, and the mask to read them with.

    Values that are known to exist are used if the release does not contain them; without any, it is refused.
    """
    if isinstance(mask, Interval):
        return _between_ends(name, table, mask, known), mask
    if isinstance(mask, ValueSet):
        return _in_sets(name, table[mask.column], known), mask
    hierarchy = hierarchies.get(mask.hierarchy) if isinstance(mask, HierarchyMapping) else None
    if isinstance(hierarchy, ListedHierarchy):
        return _in_list(name, hierarchy, known), mask
    if known is not None:
        return known, mask
    if isinstance(mask, HierarchyMapping):
        mask = Label(mask.column)
    return _in_labels(name, table[mask.column]), mask


def _between_ends(name: str, table: pd.DataFrame, mask: Interval, known: pd.Series[Any] | None) -> pd.Series[Any]:
    low, high = (read_column(table[end], f"Column {name!r} of the release") for end in (mask.low, mask.high))
    kinds = {each.kind for each in (low, high)} - {"missing"}
    if not kinds <= {*ORDERED_KINDS}:
        if known is None:
            raise InvalidSettingError(
                f"Column {name!r} has ranges of ordered categories, and the release does not contain their order. "
                "Expected a `domain` with the column. No record was drawn."
            )
        return known
    if not kinds:
        return pd.Series([None], name=name, dtype=object)
    ends = [table[mask.low], table[mask.high]]
    if kinds == {"number"}:
        lows, highs = low.distinct, high.distinct
        values = _whole(lows, highs) if mask.includes_high else np.concatenate([lows, _below(lows, highs)])
        return pd.Series(values, name=name)
    if not mask.includes_high:
        # Dates and times have no decimals: only a foreign release excludes their upper ends.
        ends = ends[:1]
    return pd.concat([end.dropna() for end in ends], ignore_index=True).drop_duplicates().rename(name)


def _whole(lows: NDArray[Any], highs: NDArray[Any]) -> NDArray[Any]:
    """Return both ends, and all whole numbers between the first and the last if there are not too many."""
    values = np.concatenate([lows, highs])
    if values.dtype.kind == "O" or not np.array_equal(values, np.floor(values)):
        return values
    first, last = values.min(), values.max()
    if float(last) - float(first) > MOST_WHOLE_NUMBERS:
        return values
    return np.arange(int(first), int(last) + 1)


def _below(lows: NDArray[Any], highs: NDArray[Any]) -> NDArray[np.float64]:
    """Return the largest number below each excluded end, with as many decimals as the ends have."""
    ends = np.concatenate([lows, highs]).astype(np.float64)
    highs = highs.astype(np.float64)
    nearest = np.nextafter(highs, -np.inf)
    for decimals in range(MOST_DECIMALS + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            if (np.round(ends, decimals) == ends).all():
                below = np.round(highs - 10.0**-decimals, decimals)
                return np.asarray(np.where(np.isfinite(below) & (below < highs), below, nearest))
    return np.asarray(nearest)


def _in_sets(name: str, column: pd.Series[Any], known: pd.Series[Any] | None) -> pd.Series[Any]:
    read = read_column(column, f"Column {name!r} of the release")
    texts: dict[str, None] = {}
    for cell in read.distinct.tolist():
        try:
            values = json.loads(cell) if isinstance(cell, str) else []
        except ValueError:
            values = []  # refused where the sets are read, which counts such cells
        texts |= dict.fromkeys(
            value for value in (values if isinstance(values, list) else []) if isinstance(value, str)
        )
    kind = None if known is None else read_column(known, f"Column {name!r} of the domain").kind
    if kind == "boolean" and set(texts) <= {"True", "False"}:
        return pd.Series([text == "True" for text in texts], name=name, dtype=bool)
    return _texts(name, sorted(texts))


def _in_list(name: str, hierarchy: ListedHierarchy, known: pd.Series[Any] | None) -> pd.Series[Any]:
    """Return the known values that are in a list, else the whole list: its labels do not stand for other values."""
    if known is None:
        return _texts(name, hierarchy.levels[0].tolist())
    leaves = Leaves.read(known, f"Column {name!r} of the domain")
    is_listed = np.append(hierarchy.find(leaves) >= 0, True)
    return known[is_listed[leaves.codes]]


def _in_labels(name: str, column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the values that labels name: numbers if all of them are, else text."""
    read = read_column(column, f"Column {name!r} of the release")
    if read.kind not in ("text", "missing"):
        return pd.Series(read.distinct, name=name)
    texts: dict[str, None] = {}
    for label in map(str, read.distinct):
        texts |= dict.fromkeys(_named(read_number_label(label) or read_label(label)))
    try:
        numbers = np.array([float(text) for text in texts])
    except ValueError:
        numbers = np.zeros(0)
    if len(numbers) and np.isfinite(numbers).all():
        is_whole = all(text.lstrip("+-").isdigit() for text in texts)
        return pd.Series(_whole(numbers, numbers) if is_whole else numbers, name=name)
    return _texts(name, list(texts))


def _named(meaning: Meaning) -> list[str]:
    ends = [end for each in meaning.ranges for end in (each.low, each.high) if end is not None]
    return [*meaning.texts, *ends]


def _texts(name: str, texts: list[str]) -> pd.Series[Any]:
    values: list[Any] = texts or [None]
    return pd.Series(values, name=name, dtype=object)
