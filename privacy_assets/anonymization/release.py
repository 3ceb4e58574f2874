"""Construction of the released table, its model and its figures from classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types
from pandas.api.extensions import ExtensionArray

from privacy_assets.anonymization.class_labels import (
    CLASSES_AT_A_TIME,
    ClassLabels,
    GivenLabels,
    IntervalLabels,
    SetLabels,
    labels_in_blocks,
)
from privacy_assets.anonymization.class_statistics import Classes, describe_classes, measure
from privacy_assets.anonymization.cut_tree import CutTree
from privacy_assets.anonymization.information_loss import class_widths, entropy_of_labels, non_uniform_entropy
from privacy_assets.anonymization.labels import (
    HIGH,
    LOW,
    MISSING,
    VALUES,
    centroid_column,
    repeated_text,
    widened,
)
from privacy_assets.anonymization.measured_loss import label_widths
from privacy_assets.anonymization.nodes_of_classes import NodeLabels
from privacy_assets.anonymization.quasi_identifiers import Dimension, Scale
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.anonymization.settings import AnonymizeSettings
from privacy_assets.columns.coding import count_codes
from privacy_assets.columns.masks import Exact, HierarchyMapping, Interval, Mask, ReleaseModel, Suppressed, ValueSet
from privacy_assets.columns.row_hashes import Repeated, hash_rows, order_of_hashes
from privacy_assets.storage.coded_columns import code_repeated
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.table import Table, store

Cells = tuple[NDArray[np.int64], NDArray[np.int64]]
ROWS_LABELED_AT_ONCE = 2**16


class DescribedClasses(NamedTuple):
    """What is released of classes: labels by quasi-identifier, how to read them, one row per class, and figures.

    ``class_of_row`` (int32) has the class of each row of the table, -1 for rows that are left out.
    """

    labels: Mapping[str, ClassLabels]
    model: ReleaseModel
    frame: pd.DataFrame
    stats: dict[str, Any]
    class_of_row: NDArray[np.int32]


def describe(
    table: Table,
    dimensions: list[Dimension],
    classes: Classes,
    settings: AnonymizeSettings,
    *,
    tree: CutTree | None = None,
    nodes: Mapping[str, NodeLabels] | None = None,
) -> DescribedClasses:
    """Label and measure classes; ``nodes`` has the labels of the quasi-identifiers that are released as nodes."""
    nodes = nodes or {}
    # The regions of the classes, if they are released; otherwise the values that occur are.
    of_regions = settings.bounds == "cell" and settings.output == "labels"
    cells = tree.cells() if tree is not None and of_regions else None
    labels = _label_classes(dimensions, classes, settings, cells, nodes)
    frame, stats = describe_classes(classes, settings), measure(classes, dimensions, settings)
    model = _release_model(list(table.columns), [d.scale for d in dimensions], settings)
    model = ReleaseModel({**model.masks, **{name: HierarchyMapping(name, name) for name in nodes}})
    penalties = {name: own.penalties for name, own in nodes.items()}
    if cells is not None:
        penalties |= _use_cells(labels, model, cells, dimensions, classes, stats)
    if penalties:
        _use_penalties(penalties, classes, frame, stats)
    for scale, codes in ((d.scale, d.codes) for d in dimensions if d.scale.name in nodes):
        counts = count_codes(codes, scale.n_values)
        covered = nodes[scale.name].covered
        stats["non_uniform_entropy"][scale.name] = entropy_of_labels(covered, counts, classes.sizes)
    class_of_row = np.full(len(table), -1, np.int32)
    class_of_row[classes.records] = np.repeat(np.arange(len(frame), dtype=np.int32), classes.sizes)
    return DescribedClasses(labels, model, frame, stats, class_of_row)


def release(
    table: Table,
    described: DescribedClasses,
    settings: AnonymizeSettings,
    *,
    tree: CutTree | None = None,
    directory: Path | None = None,
) -> Anonymization:
    """Assemble the released table, with its rows in an order that depends only on the released content.

    With a directory, the rows are in a file without a name there instead of in memory.
    """
    labels, model, frame, stats, class_of_row = described
    # Only released rows: the others must not affect the result.
    kept = np.flatnonzero(class_of_row >= 0) if (class_of_row < 0).any() else None
    class_of_row = class_of_row if kept is None else class_of_row[kept]
    hidden = {*settings.direct_identifiers, settings.subject}
    others = {
        name: _unchanged(table, name, kept) for name in table.columns if name not in labels and name not in hidden
    }
    # An order by the originals, even hashed, would reveal something about them to anyone who knows the key.
    # The columns next to a label repeat it, so the labels distinguish rows as well as all columns would.
    of_class = _hash_classes(labels, len(frame), settings.seed)
    rows_of_classes = Repeated(pd.Series(of_class), class_of_row)
    # Equal rows by their position, so that nothing depends on how the classes were found.
    order = order_of_hashes(hash_rows((rows_of_classes, *others.values()), len(class_of_row), settings.seed))
    del rows_of_classes
    class_of_released = class_of_row[order]
    del class_of_row
    give_back_memory()

    def rows(begin: int, stop: int) -> pd.DataFrame:
        columns: dict[str, pd.Series[Any] | ExtensionArray] = {}
        for name in table.columns:
            if name in labels:
                columns.update(labels[name].columns(class_of_released[begin:stop]))
            elif name in others:
                values, places = others[name]
                positions = order[begin:stop]
                columns[name] = _taken(values, positions if places is None else places[positions])
        return pd.DataFrame(columns, copy=False)

    n_rows = len(order)
    # The values of objects determine how they are stored, so they are written at once.
    n_at_once = n_rows if any(map(types.is_object_dtype, rows(0, 1).dtypes)) else ROWS_LABELED_AT_ONCE
    batches = (rows(begin, begin + n_at_once) for begin in range(0, n_rows, n_at_once))
    if directory is None:
        released: Table = _with_sorted_labels(rows(0, n_rows), labels)
    else:
        released = store(batches, directory)
    members = {"class": class_of_released, "row": order if kept is None else kept.astype(order.dtype)[order]}
    return Anonymization(released, model, frame, pd.DataFrame(members, copy=False), stats, tree, settings.described())


def _hash_classes(labels: Mapping[str, ClassLabels], n_classes: int, seed: int) -> NDArray[np.uint64]:
    """Return a keyed hash of the labels of each class."""
    found = np.zeros(n_classes, np.uint64)
    for begin in range(0, n_classes, CLASSES_AT_A_TIME):
        classes = np.arange(begin, min(begin + CLASSES_AT_A_TIME, n_classes))
        texts = (own.columns(classes)[name] for name, own in labels.items())
        found[classes] = hash_rows(texts, len(classes), seed)
    return found


def _label_classes(
    dimensions: list[Dimension],
    classes: Classes,
    settings: AnonymizeSettings,
    cells: Cells | None,
    nodes: Mapping[str, NodeLabels],
) -> dict[str, ClassLabels]:
    """Prepare the labels of each quasi-identifier."""
    by_class = np.arange(len(classes.sizes))
    labels: dict[str, ClassLabels] = {}
    for j, (dimension, own) in enumerate(zip(dimensions, classes.generalizations, strict=True)):
        name = dimension.scale.name
        if name in nodes:
            labels[name] = GivenLabels({name: repeated_text(nodes[name].labels, by_class)})
        elif settings.output == "centroid":
            centers = centroid_column(own, dimension.codes[classes.records], classes.edges, by_class)
            labels[name] = GivenLabels({name: centers})
        elif dimension.scale.is_ordered:
            labels[name] = IntervalLabels.of(own, None if cells is None else (cells[0][:, j], cells[1][:, j]))
        else:
            labels[name] = SetLabels.of(own)
    return labels


def _with_sorted_labels(frame: pd.DataFrame, labels: Mapping[str, ClassLabels]) -> pd.DataFrame:
    """Return rows with categories of labels that are sorted instead of in the order of their first rows."""
    intervals = [name for name, own in labels.items() if isinstance(own, IntervalLabels)]
    sets = [name for name, own in labels.items() if isinstance(own, SetLabels)]
    # Other columns may have such a name.
    for name in (*intervals, *sets, *(each + VALUES for each in sets)):
        frame[name] = frame[name].cat.reorder_categories(frame[name].cat.categories.sort_values())
    return frame


def _unchanged(table: Table, name: str, kept: NDArray[np.integer[Any]] | None) -> Repeated:
    """Return the rows of a column that is released unchanged; of a stored one whose values repeat, each value once."""
    coded = code_repeated(table, name)
    if coded is not None:
        return Repeated(coded.distinct, coded.codes if kept is None else coded.codes[kept])
    column = table[name]
    return Repeated(column if kept is None else pd.Series(_taken(column, kept), dtype=column.dtype, copy=False), None)


def _taken(column: pd.Series[Any], positions: NDArray[np.integer[Any]]) -> pd.Series[Any] | ExtensionArray:
    """Take rows without their index, which would cost more than the rows."""
    taken = column.array.take(positions)
    # For objects, pandas would infer the dtype again.
    return pd.Series(taken, dtype=object, copy=False) if column.dtype == object else taken


def _use_penalties(
    penalties: Mapping[str, NDArray[np.float64]], classes: Classes, frame: pd.DataFrame, stats: dict[str, Any]
) -> None:
    """Replace the losses of the values in each class by those of labels that are coarser, in some columns."""
    of_columns = [penalties.get(g.scale.name, class_widths(g)) for g in classes.generalizations]
    frame["loss"] = np.mean(of_columns, axis=0)
    for name, own in penalties.items():
        stats["certainty_penalty"][name] = float(own @ classes.sizes + stats["n_suppressed"]) / stats["n_rows"]
    stats["information_loss"] = float(np.mean(list(stats["certainty_penalty"].values())))


def _use_cells(
    labels: Mapping[str, ClassLabels],
    model: ReleaseModel,
    cells: Cells,
    dimensions: list[Dimension],
    classes: Classes,
    stats: dict[str, Any],
) -> dict[str, NDArray[np.float64]]:
    """Return the losses of wider labels by column, and replace the entropies of the values in each class by theirs."""
    penalties = {}
    for j, (dimension, own) in enumerate(zip(dimensions, classes.generalizations, strict=True)):
        scale = dimension.scale
        mask = model.masks[scale.name]
        if isinstance(mask, HierarchyMapping):
            continue
        blocks = labels_in_blocks(labels[scale.name], len(classes.sizes))
        penalties[scale.name] = np.concatenate([label_widths(each, mask, scale) for each in blocks])
        if scale.is_ordered:
            wide = widened(own, cells[0][:, j], cells[1][:, j])
            stats["non_uniform_entropy"][scale.name] = non_uniform_entropy(wide, dimension.codes, classes.sizes)
    return penalties


def _release_model(columns: list[str], scales: list[Scale], settings: AnonymizeSettings) -> ReleaseModel:
    """Return the mask of each original column."""
    masks: dict[str, Mask] = {name: Exact(name) for name in columns}
    for name in (*settings.direct_identifiers, *([] if settings.subject is None else [settings.subject])):
        masks[name] = Suppressed()
    for scale in scales:
        name = scale.name
        if settings.output == "centroid":
            # The center of unknown values does not bound any single value.
            masks[name] = Suppressed()
        elif scale.is_ordered:
            masks[name] = Interval(
                name + LOW, name + HIGH, scale.is_closed, name + MISSING if scale.has_missing else None
            )
        else:
            masks[name] = ValueSet(name + VALUES)
    return ReleaseModel(masks)
