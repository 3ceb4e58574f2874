"""A column under a conceptual scale: the attributes of each cell.

A cell for several values (an interval, a set, a node of a hierarchy) has the attributes shared by all of them; a
missing or suppressed cell has no attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import read_column
from privacy_assets.columns.hierarchy import Hierarchy, ListedHierarchy
from privacy_assets.columns.leveled_column import MISSING_LABEL, ROOT_LABEL, Leaves
from privacy_assets.columns.masks import HierarchyMapping, Interval, Label, Mask, ValueSet
from privacy_assets.columns.released_nodes import common_nodes, nodes_of_labels, nodes_upwards
from privacy_assets.columns.scales import Ancestors, Binary, ConceptualScale, Generalized, Nominal, Ordinal, Windows
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.semantic_risk.ordered_cells import Cells, OrderedColumn, window_limits

MAX_ATTRIBUTES = 4096
# Nodes at and above a value, from the lowest upwards.
Nodes = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ScaledColumn:
    """Attributes of the cells of a column: the pattern of each row, and ``patterns`` (n_patterns, n_attributes).

    Patterns are distinct, and each occurs. Labels are private, because they have values of the table. ``conceivable``
    has the attributes of every single value that the scale admits, whether it occurs or not; a cell of several values
    has those that they share, a missing cell has no attributes.
    """

    codes: NDArray[np.int64]
    patterns: NDArray[np.bool_]
    labels: tuple[str, ...]
    conceivable: NDArray[np.bool_]


def scale_column(table: pd.DataFrame, name: str, scale: ConceptualScale, mask: Mask | None) -> ScaledColumn:
    """Apply a scale to a column of a table, or of a released table whose model has this mask for it."""
    is_generalized = isinstance(mask, Interval | ValueSet)
    if isinstance(scale, Generalized):
        if not is_generalized:
            raise InvalidSettingError(
                f"Column {name!r} has a generalized scale, but is not generalized in this table or no release model "
                "was given. Expected the model that `anonymize` returned, or another scale."
            )
        return _generalized(table, name, mask)
    if isinstance(scale, Nominal):
        return _nominal(_without_missing(table[name], mask), name)
    if isinstance(scale, Binary):
        return _binary(table[name], name)
    if isinstance(scale, Ancestors):
        return _ancestors(table, name, scale.hierarchy, mask)
    if isinstance(mask, ValueSet):
        raise InvalidSettingError(
            f"Column {name!r} has sets of values, which are not ordered. Expected a nominal, generalized or hierarchy "
            f"scale instead of {scale.kind}."
        )
    return _windowed(_cells(table, name, mask, scale), name, scale)


def _without_missing(column: pd.Series[Any], mask: Mask | None) -> pd.Series[Any]:
    """Turn the label of the missing value into a missing cell, if cells are labels."""
    if not isinstance(mask, Interval | ValueSet | HierarchyMapping | Label):
        return column
    is_missing = column.isin([MISSING_LABEL]).to_numpy(dtype=bool)
    return column.astype(object).mask(is_missing, None) if is_missing.any() else column


def require_few(name: str, n_attributes: int) -> None:
    """Refuse more attributes than a context may have."""
    if n_attributes > MAX_ATTRIBUTES:
        raise InvalidSettingError(
            f"Column {name!r} would yield {n_attributes} attributes. Expected at most {MAX_ATTRIBUTES} in total. Give "
            "it thresholds, windows or a hierarchy, or remove it. Nothing was assessed."
        )


def _distinct_patterns(
    patterns: NDArray[np.bool_],
    pattern_of_row: NDArray[np.int64],
    labels: Sequence[str],
    conceivable: NDArray[np.bool_],
) -> ScaledColumn:
    """Assign numbers to distinct patterns, and drop those that do not occur."""
    occurring, codes = np.unique(pattern_of_row, return_inverse=True)
    packed = np.packbits(patterns[occurring], axis=1)
    numbers: dict[bytes, int] = {}
    number_of = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in packed], np.int64)
    _, example = np.unique(number_of, return_index=True)
    return ScaledColumn(number_of[codes], patterns[occurring][example], tuple(labels), np.unique(conceivable, axis=0))


def _nominal(column: pd.Series[Any], name: str) -> ScaledColumn:
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "mixed-integer":
        column = column.where(column.isna(), column.map(str))
    leaves = Leaves.read(column, f"Column {name!r}")
    is_value = np.array([label != ROOT_LABEL for label in leaves.labels], np.bool_)
    n_values = int(is_value.sum())
    require_few(name, n_values)
    order = np.argsort(leaves.labels[is_value].astype(str), kind="stable")
    patterns = np.zeros((len(is_value) + 1, n_values), np.bool_)
    patterns[np.flatnonzero(is_value)[order], np.arange(n_values)] = True
    labels = [f"{name} = {label}" for label in leaves.labels[is_value][order]]
    return _distinct_patterns(patterns, leaves.codes, labels, np.eye(n_values, dtype=np.bool_))


def _binary(column: pd.Series[Any], name: str) -> ScaledColumn:
    values = read_column(column, f"Column {name!r}")
    is_true = np.zeros(len(values.distinct), np.bool_)
    is_known = np.zeros(len(values.distinct), np.bool_)
    if values.kind in ("boolean", "number"):
        is_true, is_known = values.distinct == 1, (values.distinct == 1) | (values.distinct == 0)
    if not is_known.all():
        raise InvalidTableError(
            f"Column {name!r} has {int((~is_known).sum())} values other than true, false, 1 and 0 "
            f"({values.description}). Expected a binary column. Give it another scale, or convert it."
        )
    patterns = np.append(is_true, False)[:, np.newaxis].astype(np.bool_)
    codes = np.where(values.codes < 0, len(is_true), values.codes).astype(np.int64)
    return _distinct_patterns(patterns, codes, [name], np.ones((1, 1), np.bool_))


def _cells(table: pd.DataFrame, name: str, mask: Mask | None, scale: Ordinal | Windows) -> Cells:
    """Read the ends of the cells of an ordered column; a row that may be missing does not have ends.

    Ends of categories are released as text without order; an ordinal scale restores it.
    """
    if not isinstance(mask, Interval):
        column = OrderedColumn.read(table[name], f"Column {name!r}")
        return Cells(column, column, True)
    ends = {}
    for end in (mask.low, mask.high):
        cells = table[end]
        if mask.missing is not None:
            cells = cells.mask(table[mask.missing].astype(bool))
        if read_column(cells, f"Column {end!r}").kind in ("text", "category"):
            cells = _in_order(cells, name, end, scale)
        ends[end] = OrderedColumn.read(cells, f"Column {end!r}")
    _require_low_below_high(ends[mask.low], ends[mask.high], name)
    return Cells(ends[mask.low], ends[mask.high], mask.includes_high)


def _in_order(cells: pd.Series[Any], name: str, end: str, scale: Ordinal | Windows) -> pd.Series[Any]:
    """Order text by the thresholds of an ordinal scale, which must include all values that occur."""
    if isinstance(cells.dtype, pd.CategoricalDtype) and cells.dtype.ordered:
        return cells
    expected = (
        f"Column {name!r} is released as intervals of categories, and the table does not have their order. Expected an "
        "ordinal scale that lists all its categories, the smallest first: {'ordinal': [...]}."
    )
    if not isinstance(scale, Ordinal) or scale.thresholds is None:
        raise InvalidSettingError(expected)
    order = [str(threshold) for threshold in scale.thresholds]
    if len(set(order)) < len(order):
        raise InvalidSettingError(f"{expected} It lists some categories twice.")
    texts = cells.astype(object).map(str, na_action="ignore")
    n_unknown = int((~texts.dropna().isin(order)).sum())
    if n_unknown:
        raise InvalidSettingError(f"{expected} {n_unknown} cells of {end!r} are not among the {len(order)} listed.")
    return pd.Series(pd.Categorical(texts, categories=order, ordered=True), index=cells.index)


def _require_low_below_high(low: OrderedColumn, high: OrderedColumn, name: str) -> None:
    """Refuse intervals of categories that end before they begin, because then the order must be a different one."""
    if low.kind != "category" or high.kind != "category":
        return
    n_reversed = int(((high.codes >= 0) & (low.codes > high.codes)).sum())
    if n_reversed:
        raise InvalidSettingError(
            f"Column {name!r} has {n_reversed} released intervals whose lower end is above the upper end, in the "
            "order of its scale. Expected the order of the anonymization, smallest first. Nothing was "
            "assessed."
        )


def _windowed(cells: Cells, name: str, scale: Ordinal | Windows) -> ScaledColumn:
    column = cells.low
    if (column.codes < 0).all():
        empty = np.zeros((1, 0), np.bool_)
        return ScaledColumn(np.zeros(len(column.codes), np.int64), empty, (), empty)
    if isinstance(scale, Windows):
        lower, upper = column.ends([w[0] for w in scale.windows]), column.ends([w[1] for w in scale.windows])
        if not (lower < upper).all():
            raise InvalidSettingError(
                f"Column {name!r} has an interval scale with a window whose lower end is not below its upper one."
            )
        ends = np.unique(np.concatenate([lower, upper]))
        first, last = window_limits(lower, upper, ends, scale.closed)
        opening = "[" if scale.closed in ("both", "left") else "("
        closing = "]" if scale.closed in ("both", "right") else ")"
        texts = zip(column.texts(lower), column.texts(upper), strict=True)
        labels = [f"{name} in {opening}{low}, {high}{closing}" for low, high in texts]
    else:
        if scale.thresholds is None:
            lower = np.unique(column.distinct[np.unique(column.codes[column.codes >= 0])])
            require_few(name, len(lower))
        else:
            lower = column.ends(scale.thresholds)
            if not (lower[:-1] < lower[1:]).all():
                raise InvalidSettingError(f"Column {name!r} has an ordinal scale whose thresholds do not ascend.")
        ends = lower
        first, last = window_limits(lower, None, ends, "left")
        labels = [f"{name} >= {text}" for text in column.texts(lower)]
    require_few(name, len(labels))
    low, high = cells.places(ends)
    n_places = 2 * len(ends) + 2
    pairs, code_of_row = np.unique((low + 1) * n_places + high + 1, return_inverse=True)
    lows, highs = pairs // n_places - 1, pairs % n_places - 1
    patterns = (lows[:, None] >= first) & (highs[:, None] <= last) & (lows[:, None] >= 0) & (highs[:, None] >= 0)
    places = np.arange(2 * len(ends) + 1)[:, np.newaxis]
    return _distinct_patterns(patterns, code_of_row.astype(np.int64), labels, (places >= first) & (places <= last))


def _generalized(table: pd.DataFrame, name: str, mask: Mask | None) -> ScaledColumn:
    """Compare the labels: a cell has the attributes of all labels that contain it."""
    code_of_label, labels = pd.factorize(table[name].astype(object))
    example = np.unique(code_of_label, return_index=True)[1]
    if (code_of_label < 0).any():
        raise InvalidTableError(
            f"Column {name!r} has {int((code_of_label < 0).sum())} cells without a label. Expected a table released "
            "by `anonymize`."
        )
    require_few(name, len(labels))
    rows = table.iloc[example]
    contains, says_something, conceivable = _contained(rows, mask)
    # Pattern of a label: which labels contain it.
    patterns = contains.T & says_something[:, None] & says_something
    kept = np.flatnonzero(says_something)
    texts = [f"{name} in {label}" for label in labels[kept]]
    return _distinct_patterns(patterns[:, kept], code_of_label.astype(np.int64), texts, conceivable[:, kept])


def _read_sets(texts: Iterable[Any], name: str) -> list[frozenset[str | None]]:
    """Read JSON arrays of text; null is the missing value."""
    sets = []
    n_unreadable = 0
    for text in texts:
        try:
            values = json.loads(text)
        except (TypeError, ValueError):
            values = None
        is_set = isinstance(values, list) and values and all(v is None or isinstance(v, str) for v in values)
        n_unreadable += not is_set
        sets.append(frozenset(values if is_set else ()))
    if n_unreadable:
        raise InvalidTableError(
            f"The sets of column {name!r} have {n_unreadable} distinct cells that are not JSON arrays of text. "
            "Expected a table released by `anonymize`."
        )
    return sets


def _contained(rows: pd.DataFrame, mask: Mask | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which labels (one per row) contain which, have a value that is not missing, and contain each value.

    Values are those of the sets, or the ends of the intervals and the gaps between them, and the missing value.
    """
    if isinstance(mask, ValueSet):
        sets = _read_sets(rows[mask.column], mask.column)
        members = sorted({value for own in sets for value in own if value is not None})
        place = {value: i for i, value in enumerate([*members, None])}
        holds = np.zeros((len(sets), len(place)), np.float32)
        for i, own in enumerate(sets):
            holds[i, [place[value] for value in own]] = 1
        n_outside = (1 - holds) @ holds.T
        return np.asarray(n_outside == 0), np.asarray(holds[:, :-1].any(axis=1)), holds.T.astype(np.bool_)
    assert isinstance(mask, Interval)  # noqa: S101 - the caller checked it
    low, high = (OrderedColumn.read(rows[end], f"Column {end!r}") for end in (mask.low, mask.high))
    ends = np.unique(np.concatenate([low.distinct, high.comparable(low.distinct)]))
    may_be_missing = np.zeros(len(rows), np.bool_)
    if mask.missing is not None:
        may_be_missing = rows[mask.missing].to_numpy(dtype=bool)
    if len(ends) == 0:
        return np.eye(len(rows), dtype=np.bool_), np.zeros(len(rows), np.bool_), np.ones((1, len(rows)), np.bool_)
    lows, highs = Cells(low, high, True).places(ends)
    contains = (lows[:, None] <= lows) & (highs[:, None] >= highs) & (may_be_missing[:, None] >= may_be_missing)
    places = np.arange(2 * len(ends) + 1)[:, np.newaxis]
    return contains, lows >= 0, np.vstack([(lows <= places) & (highs >= places), may_be_missing])


def _ancestors(table: pd.DataFrame, name: str, hierarchy: Hierarchy, mask: Mask | None) -> ScaledColumn:
    if isinstance(mask, Interval):
        return _ancestors_of_intervals(table, name, hierarchy, mask)
    if isinstance(mask, ValueSet):
        return _ancestors_of_sets(table[mask.column], name, hierarchy)
    cells = _without_missing(table[name], mask)
    if isinstance(mask, HierarchyMapping) and not isinstance(hierarchy, ListedHierarchy):
        return _ancestors_of_labels(cells, name, hierarchy)
    nodes, codes = _nodes_of(cells, name, hierarchy)
    return _noded(nodes, codes, name)


def _ancestors_of_labels(cells: pd.Series[Any], name: str, hierarchy: Hierarchy) -> ScaledColumn:
    codes, labels = pd.factorize(cells.map(str, na_action="ignore"))
    says_something = np.array([label != ROOT_LABEL for label in labels], np.bool_)
    known = iter(nodes_of_labels(labels[says_something].tolist(), hierarchy, name))
    nodes = [next(known) if says else () for says in says_something.tolist()]
    return _noded([*nodes, ()], np.where(codes < 0, len(nodes), codes).astype(np.int64), name)


def _nodes_of(column: pd.Series[Any], name: str, hierarchy: Hierarchy) -> tuple[list[Nodes], NDArray[np.int64]]:
    """Return the nodes at and above each distinct cell, and the cell of each row; the last one is the missing cell."""
    if isinstance(hierarchy, ListedHierarchy):
        leaves = Leaves.read(column, f"Column {name!r}")
        above = _nodes_above(hierarchy, name)
        labels = leaves.labels
        lacks = np.array([label not in above for label in labels], np.bool_)
        if lacks.any():
            # Numbers that are written differently in the hierarchy.
            own = hierarchy.find(leaves)
            labels = np.where(lacks & (own >= 0), hierarchy.levels[0][own], labels)
            lacks &= own < 0
        if lacks.any():
            raise InvalidTableError(
                f"Column {name!r} has {int(lacks.sum())} values (in {leaves.count_rows(lacks)} rows) that are not "
                "nodes of its hierarchy. Expected its values or labels. Add them, or clean the column."
            )
        return [*(above[label] for label in labels), ()], leaves.codes
    leveled = hierarchy.apply(column, name).merging()
    nodes = [nodes_upwards(leveled.labels[own]) for own in leveled.nodes.T]
    return [*nodes, ()], np.where(column.isna(), len(nodes), leveled.codes).astype(np.int64)


def _nodes_above(hierarchy: ListedHierarchy, name: str) -> Mapping[str, Nodes]:
    """Return the nodes at and above each node of a hierarchy; ``*`` is not below or above any node."""
    above: dict[str, Nodes] = {ROOT_LABEL: ()}
    leaves_of: dict[str, frozenset[int]] = {}
    for level in reversed(range(len(hierarchy.levels))):
        labels = hierarchy.levels[level]
        members: dict[str, list[int]] = {}
        for leaf, label in enumerate(labels):
            members.setdefault(label, []).append(leaf)
        for label, own in members.items():
            if label == ROOT_LABEL:
                continue
            if leaves_of.setdefault(label, frozenset(own)) != frozenset(own):
                raise InvalidSettingError(
                    f"The hierarchy of column {name!r} has a label that stands for different sets of values on "
                    "different levels. Expected one meaning per label. Rename nodes."
                )
            parent = hierarchy.levels[level + 1][own[0]] if level + 1 < len(hierarchy.levels) else ROOT_LABEL
            above.setdefault(label, (label, *above[parent]))
    return above


def _noded(nodes: Sequence[Nodes], codes: NDArray[np.int64], name: str) -> ScaledColumn:
    labels = sorted({label for own in nodes for label in own})
    require_few(name, len(labels))
    place = {label: number for number, label in enumerate(labels)}
    # A node implies those above it.
    above = {own[i]: own[i:] for own in nodes for i in range(len(own))}
    patterns, conceivable = _marked(nodes, place), _marked([above[label] for label in labels], place)
    return _distinct_patterns(patterns, codes, [f"{name} under {label}" for label in labels], conceivable)


def _marked(sets: Sequence[Nodes], place: Mapping[str, int]) -> NDArray[np.bool_]:
    marked = np.zeros((len(sets), len(place)), np.bool_)
    for i, own in enumerate(sets):
        marked[i, [place[label] for label in own]] = True
    return marked


def _ancestors_of_intervals(table: pd.DataFrame, name: str, hierarchy: Hierarchy, mask: Interval) -> ScaledColumn:
    if isinstance(hierarchy, ListedHierarchy):
        raise InvalidSettingError(
            f"Column {name!r} has intervals, but its hierarchy is a list of values, which does not define the values "
            "in an interval. Expected a hierarchy of intervals or dates, or an interval scale."
        )
    low, high = table[mask.low], table[mask.high]
    if not mask.includes_high and pd.api.types.is_float_dtype(high):
        high = pd.Series(np.nextafter(high.to_numpy(dtype=np.float64), -np.inf), index=high.index)
    if mask.missing is not None:
        may_be_missing = table[mask.missing].astype(bool)
        low, high = low.mask(may_be_missing), high.mask(may_be_missing)
    # Nodes of numbers and dates are intervals: a node with both ends includes everything between them.
    nodes, codes = _nodes_of(pd.concat([low, high], ignore_index=True), name, hierarchy)
    return _noded(*_shared(nodes, codes.reshape(2, -1).T), name)


def _ancestors_of_sets(column: pd.Series[Any], name: str, hierarchy: Hierarchy) -> ScaledColumn:
    code_of_row, texts = pd.factorize(column.astype(object), use_na_sentinel=False)
    sets = _read_sets(texts, name)
    values = sorted({value for own in sets for value in own if value is not None})
    nodes, codes = _nodes_of(pd.Series([*values, None], dtype=object), name, hierarchy)
    own_nodes = dict(zip([*values, None], (nodes[code] for code in codes), strict=True))
    shared = [reduce(common_nodes, (own_nodes[value] for value in own)) for own in sets]
    return _noded(shared, code_of_row.astype(np.int64), name)


def _shared(nodes: Sequence[Nodes], codes: NDArray[np.int64]) -> tuple[list[Nodes], NDArray[np.int64]]:
    """Return the nodes common to both cells of each distinct pair, and the pair of each row."""
    pairs, code_of_row = np.unique(codes, axis=0, return_inverse=True)
    return [common_nodes(nodes[a], nodes[b]) for a, b in pairs.tolist()], code_of_row.ravel().astype(np.int64)
