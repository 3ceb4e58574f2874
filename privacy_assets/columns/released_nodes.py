"""Nodes of a hierarchy in a released table: the node and ancestors of each label.

A release by hierarchies has labels of nodes, not values. A hierarchy that is a list has its labels. For a rule, the
nodes are those shared by two values of the node: its first value, and one from its last part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any

import pandas as pd

from privacy_assets.columns.hierarchy import DateHierarchy, Hierarchy, IntervalHierarchy
from privacy_assets.columns.leveled_column import ROOT_LABEL
from privacy_assets.errors import InvalidTableError

HIDDEN = "*"
_INTERVAL = re.compile(r"\[([^,\[\]() ]+), ([^,\[\]() ]+)([\])])")
_DECADE, _YEAR, _MONTH = re.compile(r"(\d{3}0)s"), re.compile(r"\d{4}"), re.compile(r"\d{4}-\d{2}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}(?::\d{2}(?::\d{2}(?:\.\d+)?)?)?))?(?: .*|[+-]\d.*)?")
_SECONDS_OF_DAY = 24 * 60 * 60
# Regardless of the number of parts into which an interval is divided, this is not in the first one. It is not a whole
# number, because intervals of decimals would then be taken for intervals of whole numbers.
_LATE = 0.87654321

Pair = tuple[Any, Any]


def nodes_of_labels(labels: Sequence[str], hierarchy: Hierarchy, name: str) -> list[tuple[str, ...]]:
    """Return the nodes at and above each label of a released column, the label first, without the root.

    The distinct labels, without missing values and the root, were released with this hierarchy of intervals, prefixes
    or dates; those that are not its nodes are counted, and refused.
    """
    read = _reader(hierarchy)
    pairs = [_pair(read, label) for label in labels]
    values = [value for pair in pairs if pair is not None for value in pair]
    shared: list[tuple[str, ...]] = []
    if values:
        leveled = hierarchy.apply(pd.Series(values), name).merging()
        # Without the lowest level, which has the labels of single values.
        above = [nodes_upwards(leveled.labels[own]) for own in leveled.nodes[1:, leveled.codes].T]
        shared = [common_nodes(first, last) for first, last in zip(above[::2], above[1::2], strict=True)]
    found, n_unknown, nodes = [], 0, iter(shared)
    for label, pair in zip(labels, pairs, strict=True):
        own: tuple[str, ...] = () if pair is None else next(nodes)
        n_unknown += pair is None or (pair[0] != pair[1] and label not in own)
        found.append((label, *(node for node in own if node != label)))
    if n_unknown:
        raise InvalidTableError(
            f"Column {name!r} has {n_unknown} distinct labels that are not nodes of its hierarchy. Expected a table "
            "released by `anonymize` with this hierarchy. Give the hierarchy of the release, or a nominal scale."
        )
    return found


def nodes_upwards(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct labels of a value, level by level from the lowest, without the root."""
    return tuple(label for label in dict.fromkeys(labels) if label != ROOT_LABEL)


def common_nodes(first: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the nodes that two values share, from the lowest upwards."""
    return tuple(node for node in first if node in other)


def _reader(hierarchy: Hierarchy) -> Callable[[str], Pair | None]:
    if isinstance(hierarchy, IntervalHierarchy):
        return _numbers
    if isinstance(hierarchy, DateHierarchy):
        has_days = "day" in hierarchy.levels
        return lambda label: _moments(label, has_days=has_days)
    return _codes


def _pair(read: Callable[[str], Pair | None], label: str) -> Pair | None:
    """Return two values of a node that do not share a smaller node; equal for a single value."""
    try:
        return read(label)
    except (ValueError, OverflowError):
        return None


def _numbers(label: str) -> Pair | None:
    found = _INTERVAL.fullmatch(label)
    if found is None:
        number: float = int(label) if label.lstrip("-").isdigit() else float(label)
        return (number, number) if isfinite(number) else None
    if found[3] == "]":
        return int(found[1]), int(found[2])
    low, high = float(found[1]), float(found[2])
    return (low, low + _LATE * (high - low)) if isfinite(low) and isfinite(high) else None


def _moments(label: str, *, has_days: bool) -> Pair | None:
    if found := _DECADE.fullmatch(label):
        return pd.Timestamp(f"{found[1]}-01-01"), pd.Timestamp(f"{int(found[1]) + 9}-12-31")
    if _YEAR.fullmatch(label):
        return pd.Timestamp(f"{label}-01-01"), pd.Timestamp(f"{label}-12-31")
    if _MONTH.fullmatch(label):
        return pd.Timestamp(f"{label}-01"), pd.Timestamp(f"{label}-28")
    if _DAY.fullmatch(label):
        day = pd.Timestamp(label)
        return day, day + pd.Timedelta(seconds=_SECONDS_OF_DAY - 1 if has_days else 0)
    if found := _MOMENT.fullmatch(label):
        # Nodes are in local time; the zone that follows is ignored.
        time = found[2] or "00"
        moment = pd.Timestamp(f"{found[1]}T{time}" if ":" in time else f"{found[1]}T{time}:00")
        return moment, moment
    return None


def _codes(label: str) -> Pair | None:
    if label.endswith(HIDDEN):
        stem = label.removesuffix(HIDDEN)
        return (stem + "a", stem + "b") if stem else None
    return label, label
