"""Classes by cuts: a table in codes, cut under one or both normalizations, and the cuts in the values of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.cut_tree import CutTree
from privacy_assets.anonymization.divided_cuts import partition_by
from privacy_assets.anonymization.generalization import Generalization, generalize
from privacy_assets.anonymization.information_loss import class_widths, positions_of_most
from privacy_assets.anonymization.kernels.class_measures import hold_by_class
from privacy_assets.anonymization.kernels.models import Models
from privacy_assets.anonymization.kernels.mondrian import Partition, make_dimensions, partition_rows
from privacy_assets.anonymization.kernels.mondrian_rows import pack_rows
from privacy_assets.anonymization.kernels.mondrian_tree import TreeArrays, build_tree
from privacy_assets.anonymization.labels import centroid_column, require_free_names, widened
from privacy_assets.anonymization.nodes_of_classes import NodeDimension, level_columns
from privacy_assets.anonymization.quasi_identifiers import Dimension, Scale, read_dimensions
from privacy_assets.anonymization.sensitive_values import (
    SensitiveValues,
    has_few_values,
    make_models,
    read_people,
    read_sensitive,
    require_reachable,
    table_holds,
)
from privacy_assets.anonymization.settings import AnonymizeSettings, Normalization
from privacy_assets.columns.coding import group_rows
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.row_hashes import hash_rows
from privacy_assets.display.numbers import against
from privacy_assets.display.progress_bar import StageProgress
from privacy_assets.engine.protocol import Engine
from privacy_assets.errors import InvalidSettingError
from privacy_assets.storage.table import Table


class CodedTable(NamedTuple):
    """A table in codes; ``cut_codes`` and ``value_of_code`` separate ties if the cut is relaxed.

    ``along`` has the hierarchies along which columns are cut, None for others.
    """

    dimensions: list[Dimension]
    along: list[NodeDimension | None]
    cut_codes: list[NDArray[np.integer[Any]]]
    value_of_code: list[NDArray[np.int64] | None]
    sensitive: SensitiveValues
    people: NDArray[np.int32] | None

    @property
    def cut_scales(self) -> tuple[Scale, ...]:
        """The scales of the columns as they are cut: those with a hierarchy are sets."""
        return tuple(
            each.scale if along is None else replace(each.scale, is_ordered=False)
            for each, along in zip(self.dimensions, self.along, strict=True)
        )


class CutClasses(NamedTuple):
    """Classes of a table: which of them can be ``kept``, and whether their cuts were chosen by "rank" or "range".

    ``generalizations`` has the values of the classes that are kept, by dimension; it is empty before they are found.
    """

    partition: Partition
    kept: NDArray[np.bool_]
    normalize: Normalization
    generalizations: Sequence[Generalization] = ()

    @property
    def kept_records(self) -> tuple[NDArray[np.integer[Any]], NDArray[np.int64]]:
        """Records of the kept classes, class by class, and where each class begins, with the end of the last."""
        sizes, records = np.diff(self.partition.edges), self.partition.records
        if not self.kept.all():
            records = records[np.repeat(self.kept, sizes)]
        return records, np.concatenate([[0], np.cumsum(sizes[self.kept])]).astype(np.int64)


def code_table(
    table: Table, settings: AnonymizeSettings, hierarchies: Mapping[str, Hierarchy] | None = None
) -> CodedTable:
    """Read the columns of a table that its anonymization needs; those with a hierarchy are cut along it."""
    dimensions = read_dimensions(table, settings.quasi_identifiers)
    leveled = level_columns(table, hierarchies or {}, list(hierarchies or {}))
    if settings.output == "labels" and settings.method == "mondrian":
        cut_freely = [d.scale for d in dimensions if d.scale.name not in leveled]
        hidden = {*settings.direct_identifiers, settings.subject, *(scale.name for scale in cut_freely)}
        require_free_names(cut_freely, [name for name in table.columns if name not in hidden])
    sensitive = read_sensitive(table, settings.sensitive)
    people = None if settings.subject is None else read_people(table, settings.subject)
    cut_codes: list[NDArray[np.integer[Any]]] = [d.codes for d in dimensions]
    value_of_code: list[NDArray[np.int64] | None] = [None] * len(dimensions)
    along = [NodeDimension.of(leveled[d.scale.name]) if d.scale.name in leveled else None for d in dimensions]
    for j, nodes in enumerate(along):
        if nodes is not None:
            cut_codes[j] = nodes.codes
    if settings.relaxed:
        # With ties separated, a strict cut of the ranks is a relaxed cut of the values.
        order = _order_of_ties(table, dimensions, settings.seed)
        for j, dimension in enumerate(dimensions):
            if dimension.scale.is_ordered and along[j] is None:
                own = order[np.argsort(dimension.codes[order], kind="stable")]
                ranks = np.empty(len(own), np.int64)
                ranks[own] = np.arange(len(own))
                cut_codes[j], value_of_code[j] = ranks, dimension.codes[own].astype(np.int64)
    return CodedTable(dimensions, along, cut_codes, value_of_code, sensitive, people)


def _order_of_ties(table: Table, dimensions: list[Dimension], seed: int) -> NDArray[np.int64]:
    """Order records by their quasi-identifiers, those with fewest values first, and equal ones by a keyed hash.

    A cut between equal values of a column is then one between the values of other columns where these differ. If only
    the hash ordered ties, relaxed cuts would lose 10 to 20 % more than strict cuts do.
    """
    hashes = hash_rows((table[name] for name in table.columns), len(table), seed)
    coarsest_first = sorted(dimensions, key=lambda dimension: dimension.scale.n_values)
    return np.lexsort((hashes, *[dimension.codes for dimension in reversed(coarsest_first)]))


def cut_table(
    coded: CodedTable,
    settings: AnonymizeSettings,
    n_threads: int,
    progress: Callable[[StageProgress], None] | None,
    engine: Engine | None = None,
) -> CutClasses:
    """Cut a table into classes; of several ways, take the one that loses least.

    It is refused if no classes satisfy the models and ``max_suppression``.
    """
    coded = coded._replace(sensitive=coded.sensitive.limited(settings))
    models = make_models(settings, coded.sensitive)
    if settings.max_suppression == 0 and not table_holds(models, coded.sensitive):
        require_reachable(settings, coded.sensitive, models)
    n_rows = len(coded.dimensions[0].codes)
    most = min(settings.most_suppressed(n_rows), n_rows - 1)
    fewest_suppressed = n_rows
    best, least, positions = None, np.inf, None
    # Classes take most of the memory, so only the best are kept.
    for normalize in _normalizations(coded, settings):
        for attempt in _attempts(coded, settings, models, normalize, n_threads, progress, engine):
            fewest_suppressed = min(fewest_suppressed, _n_suppressed(attempt))
            if _n_suppressed(attempt) > most:
                continue
            if positions is None:
                positions = [positions_of_most(each.scale, each.codes, settings.k) for each in coded.dimensions]
            found = attempt._replace(generalizations=_generalize(coded, attempt))
            loss = _loss(coded, settings, found, positions)
            if best is None or loss < least:
                best, least = found, loss
            del attempt, found
    if best is None:
        share, limit = against(fewest_suppressed / n_rows, settings.max_suppression)
        raise InvalidSettingError(
            f"The table as one class does not satisfy l_diversity, and {fewest_suppressed} of {n_rows} rows, a share "
            f"of {share}, would have to be left out. Expected at most max_suppression = {limit}. Nothing was "
            "anonymized; lower l or k, or raise max_suppression."
        )
    return best


def _generalize(coded: CodedTable, found: CutClasses) -> list[Generalization]:
    """Describe the values of the classes that are kept, by dimension."""
    records, edges = found.kept_records
    return [generalize(dimension.scale, dimension.codes[records], edges) for dimension in coded.dimensions]


def _normalizations(coded: CodedTable, settings: AnonymizeSettings) -> list[Normalization]:
    """List what to try: both, unless they are the same for every column."""
    if settings.normalize != "best":
        return [settings.normalize]
    pairs = [(scale.coordinates("rank"), scale.coordinates("range")) for scale in coded.cut_scales]
    differ = any(one is not None and other is not None and (one != other).any() for one, other in pairs)
    return ["rank", "range"] if differ else ["rank"]


def _attempts(
    coded: CodedTable,
    settings: AnonymizeSettings,
    models: Models,
    normalize: Normalization,
    n_threads: int,
    progress: Callable[[StageProgress], None] | None,
    engine: Engine | None,
) -> Iterator[CutClasses]:
    """Cut so that all classes satisfy the models; if rows may be left out, also by k alone, and keep those that do."""
    n_rows = len(coded.dimensions[0].codes)
    coordinates, n_values = [], []
    for scale, along, value_of_code in zip(coded.cut_scales, coded.along, coded.value_of_code, strict=True):
        own = scale.coordinates(normalize)
        coordinates.append(own if own is None or value_of_code is None else own[value_of_code])
        n_cut = scale.n_values if along is None else along.n_values
        n_values.append(n_cut if value_of_code is None else n_rows)
    dimensions = make_dimensions(
        coordinates, n_values, [None if each is None else each.hierarchy for each in coded.along]
    )

    def run(models: Models, stage: str) -> Partition:
        def on_rows(n_done: int) -> None:
            if progress is not None:
                progress(StageProgress(f"{stage} by {normalize}", n_done, n_rows))

        if engine is not None and engine.rows_per_task is not None and has_few_values(models):
            return partition_by(
                engine, coded.cut_codes, n_values, dimensions, models, coded.people, coded.sensitive.codes, on_rows
            )
        return partition_rows(
            pack_rows(coded.cut_codes, n_values),
            dimensions,
            models,
            person=coded.people,
            sensitive=coded.sensitive.codes if settings.needs_values else None,
            n_threads=n_threads,
            on_rows=None if progress is None else on_rows,
        )

    if table_holds(models, coded.sensitive):
        partition = run(models, "cut")
        yield CutClasses(partition, np.ones(len(partition.begins), np.bool_), normalize)
    if settings.max_suppression > 0 and settings.needs_values:
        partition = run(models._replace(needs_values=False), "cut and suppress")
        yield CutClasses(partition, _kept(models, coded.sensitive, partition), normalize)


def _kept(models: Models, values: SensitiveValues, partition: Partition) -> NDArray[np.bool_]:
    """Find the classes that can be kept, repeating until nothing changes."""
    kept = np.ones(len(partition.begins), np.bool_)
    in_order = values.codes[partition.records]
    while kept.any():
        holds = hold_by_class(models, in_order, partition.edges, kept)
        if bool((holds == kept).all()):
            break
        kept = holds
    return kept


def _n_suppressed(found: CutClasses) -> int:
    return int(np.diff(found.partition.edges)[~found.kept].sum())


def _loss(
    coded: CodedTable, settings: AnonymizeSettings, found: CutClasses, positions: list[NDArray[np.float64] | None]
) -> float:
    """Sum the loss of all cells, with ordered values at the given positions; suppressed rows lose 1."""
    records, edges = found.kept_records
    total = 0.0
    for along, generalization, own in zip(coded.along, found.generalizations, positions, strict=True):
        if along is not None and settings.output == "labels":
            widths = along.column.loss[along.common_nodes(records, edges)]
        else:
            widths = class_widths(generalization, own)
        total += float(widths @ np.diff(edges)) + _n_suppressed(found)
    return total


def cut_tree_of(coded: CodedTable, found: CutClasses, settings: AnonymizeSettings) -> CutTree:
    """Return the cuts; leaves that are released alike are one class, because a reader could not distinguish them."""
    tree = CutTree(
        coded.cut_scales, _tree_of_values(coded, found.partition), np.where(found.kept, np.cumsum(found.kept) - 1, -1)
    )
    return replace(tree, class_of_leaf=_class_of_leaves(coded, found, settings, tree))


def _class_of_leaves(
    coded: CodedTable, found: CutClasses, settings: AnonymizeSettings, tree: CutTree
) -> NDArray[np.int64]:
    """Assign a class to each leaf in order, one to all that are released alike; -1 to leaves that are left out.

    Strict cuts without hierarchies make no equal labels: each side has values that the other lacks. ``tree`` has the
    regions of the leaves, which labels may show.
    """
    class_of_leaf = np.where(found.kept, np.cumsum(found.kept) - 1, -1)
    records, edges = found.kept_records
    if settings.output == "centroid":
        class_of_leaf[found.kept] = number_centers(coded, records, edges)
    elif settings.relaxed or any(each is not None for each in coded.along):
        cells = None if settings.bounds != "cell" else tree.cells()
        keys = []
        for j, (own, along) in enumerate(zip(found.generalizations, coded.along, strict=True)):
            if along is not None:
                keys.append(along.common_nodes(records, edges))
            elif own.scale.is_ordered and cells is not None:
                keys.append(widened(own, cells[0][:, j], cells[1][:, j]).distinct()[1])
            else:
                keys.append(own.distinct()[1])
        class_of_leaf[found.kept] = group_rows(keys, [int(key.max()) + 1 for key in keys])[0]
    return class_of_leaf


def number_centers(coded: CodedTable, records: NDArray[np.integer[Any]], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Assign numbers to the centers of classes, whose ``records`` are sorted by class, between ``edges``."""
    keys = []
    for dimension in coded.dimensions:
        codes = dimension.codes[records]
        centers = centroid_column(generalize(dimension.scale, codes, edges), codes, edges, np.arange(len(edges) - 1))
        keys.append(pd.factorize(centers, use_na_sentinel=False)[0])
    return group_rows(keys, [int(key.max()) + 1 for key in keys])[0]


def _tree_of_values(coded: CodedTable, partition: Partition) -> TreeArrays:
    """Link the cuts, and convert their thresholds from ranks to codes of values."""
    scales = coded.cut_scales
    n_values = [scale.n_values for scale in scales]
    columns: list[NDArray[Any]] = [dimension.codes for dimension in coded.dimensions]
    tree = build_tree(partition, columns, n_values, [not scale.is_ordered for scale in scales])
    threshold, right_low = tree.threshold.copy(), tree.right_low.copy()
    for j, value_of_code in enumerate(coded.value_of_code):
        if value_of_code is not None:
            own = tree.dimension == j
            threshold[own], right_low[own] = value_of_code[threshold[own]], value_of_code[right_low[own]]
    return tree._replace(threshold=threshold, right_low=right_low)
