"""Anonymization of a table that was coded batch by batch: the rows that `anonymize` releases, in batches again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.anonymize import check_columns, check_size, classes_of_cuts
from privacy_assets.anonymization.class_labels import ClassLabels, labels_in_blocks
from privacy_assets.anonymization.classes_by_cuts import CodedTable, class_of_leaves, cut_table, cut_tree_of
from privacy_assets.anonymization.cut_tree import CutTree
from privacy_assets.anonymization.labels import require_free_names
from privacy_assets.anonymization.quasi_identifiers import Dimension, read_dimension
from privacy_assets.anonymization.release import cells_of, describe_release, hash_classes, label_classes
from privacy_assets.anonymization.sensitive_values import in_one_list, require_everybody
from privacy_assets.anonymization.settings import AnonymizeSettings
from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.columns.row_hashes import hash_coded_rows
from privacy_assets.columns.spelling import spelled_alike
from privacy_assets.display.progress_bar import StageProgress
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import threads_to_use
from privacy_assets.storage.coded_columns import CodedColumn, unload
from privacy_assets.storage.memory import give_back_memory

ROWS_PER_BATCH = 2**20


@dataclass(frozen=True, eq=False)
class AnonymizationInBatches:
    """The same as :class:`~privacy_assets.anonymization.result.Anonymization`, with the table in batches.

    ``columns`` are those of the given table, ``labels`` the released columns of each quasi-identifier by class; of each
    released row, ``records`` is its position in the given table, and ``class_of_row`` (int32) its class. Both are
    private.
    """

    model: ReleaseModel
    classes: pd.DataFrame
    stats: dict[str, Any]
    tree: CutTree | None
    settings: dict[str, Any]
    columns: Mapping[str, CodedColumn]
    labels: Mapping[str, ClassLabels]
    records: NDArray[np.integer[Any]]
    class_of_row: NDArray[np.int32]

    def batches(self, rows_per_batch: int = ROWS_PER_BATCH) -> Iterator[pd.DataFrame]:
        """Yield the rows to release, in the order of `anonymize`, with labels as text."""
        hidden = {*self.settings["direct_identifiers"], self.settings["subject"]}
        for begin in range(0, len(self.records), rows_per_batch):
            rows, classes = (
                self.records[begin : begin + rows_per_batch],
                self.class_of_row[begin : begin + rows_per_batch],
            )
            batch: dict[str, Any] = {}
            for name, column in self.columns.items():
                if name in self.labels:
                    batch.update(self.labels[name].columns(classes))
                elif name not in hidden:
                    batch[name] = column.take(rows)
            yield pd.DataFrame(batch, copy=False)


def anonymize_coded(
    columns: Mapping[str, CodedColumn],
    settings: AnonymizeSettings,
    *,
    n_threads: int | None = None,
    progress: Callable[[StageProgress], None] | None = None,
    with_tree: bool = True,
) -> AnonymizationInBatches:
    """Anonymize all columns of a coded table as `anonymize` does a frame, with the same result and errors.

    A setting that needs the table in memory (a lattice, hierarchies, ``relaxed``) is refused. In memory are codes,
    record numbers and classes of the rows, the codes of the values of all classes, and the distinct values of all
    columns; measured in ``docs/scale.md``. Pages of mapped files are freed after each step.
    """
    settings.check()
    n_used = threads_to_use(n_threads, "Nothing was anonymized.")
    if settings.method != "mondrian" or settings.relaxed:
        raise InvalidSettingError(
            "A table in batches is anonymized with method='mondrian' and relaxed=False. Nothing was anonymized; for "
            "other settings, read the whole table at once."
        )
    n_rows = len(next(iter(columns.values()))) if columns else 0
    check_columns(list(columns), n_rows, settings)
    coded = _coded_table(columns, settings)
    check_size(coded, settings)
    for name in settings.quasi_identifiers:
        unload(columns[name].codes)
    with_cuts = with_tree or settings.bounds == "cell"
    give_back_memory()
    found = cut_table(coded, settings, n_used, progress, with_cuts=with_cuts)
    settings = replace(settings, normalize=found.normalize)
    tree = cut_tree_of(coded, found, settings) if with_cuts else None
    class_of_leaf = class_of_leaves(coded, found, settings, None) if tree is None else tree.class_of_leaf
    classes = classes_of_cuts(coded, found, class_of_leaf, settings)
    del found
    sizes = classes.sizes
    n_classes = len(sizes)
    cells = cells_of(tree, settings)
    labels = label_classes(coded.dimensions, classes, settings, cells, {})
    model, frame, stats = describe_release(
        list(columns),
        coded.dimensions,
        classes,
        settings,
        lambda name: labels_in_blocks(labels[name], n_classes),
        cells,
        {},
    )
    for each in coded.dimensions:
        unload(each.codes)
    records = classes.records
    del classes, cells, coded
    give_back_memory()
    class_of_row = np.repeat(np.arange(n_classes, dtype=np.int32), sizes)
    order = _order_of_release(columns, labels, records, class_of_row, n_classes, settings)
    return AnonymizationInBatches(
        model,
        frame,
        stats,
        tree if with_tree else None,
        settings.described(),
        columns,
        labels,
        records[order],
        class_of_row[order],
    )


def _coded_table(columns: Mapping[str, CodedColumn], settings: AnonymizeSettings) -> CodedTable:
    """Read the columns that the anonymization needs, as `code_table` does."""
    dimensions = _dimensions(columns, settings.quasi_identifiers)
    if settings.output == "labels":
        hidden = {*settings.direct_identifiers, settings.subject, *settings.quasi_identifiers}
        require_free_names([each.scale for each in dimensions], [name for name in columns if name not in hidden])
    n_columns, n_rows = len(dimensions), len(next(iter(columns.values())))
    people = None if settings.subject is None else _people(columns[settings.subject], settings.subject)
    return CodedTable(
        dimensions,
        [None] * n_columns,
        [each.codes for each in dimensions],
        [None] * n_columns,
        in_one_list(settings.sensitive, _dimensions(columns, settings.sensitive, spelled_alike), n_rows),
        people,
    )


def _dimensions(
    columns: Mapping[str, CodedColumn],
    names: tuple[str, ...],
    read: Callable[[pd.Series[Any]], pd.Series[Any]] = lambda column: column,
) -> list[Dimension]:
    found, problems = [], []
    for name in names:
        try:
            own = read_dimension(read(columns[name].distinct))
        except InvalidTableError as error:
            problems.append(str(error))
            continue
        found.append(Dimension(own.scale, columns[name].translated(own.codes)))
    if problems:
        raise InvalidTableError(" ".join(problems))
    return found


def _people(column: CodedColumn, name: str) -> NDArray[np.int32]:
    is_missing = column.distinct.isna().to_numpy()
    require_everybody(int(is_missing[column.codes].sum()) if is_missing.any() else 0, name)
    # The distinct values are in order of their first appearance.
    return column.codes.astype(np.int32)


def _order_of_release(
    columns: Mapping[str, CodedColumn],
    labels: Mapping[str, ClassLabels],
    records: NDArray[np.integer[Any]],
    class_of_row: NDArray[np.int32],
    n_classes: int,
    settings: AnonymizeSettings,
) -> NDArray[np.integer[Any]]:
    """Order rows by a keyed hash of their released values; see `release`."""
    hash_of_class = hash_classes(labels, n_classes, settings.seed)
    hidden = {*settings.direct_identifiers, settings.subject, *labels}

    def codes_of(column: CodedColumn) -> Callable[[int, int], NDArray[Any]]:
        return lambda begin, stop: column.codes[records[begin:stop]]

    others = ((column.distinct, codes_of(column)) for name, column in columns.items() if name not in hidden)
    by_class = (pd.Series(hash_of_class), lambda begin, stop: class_of_row[begin:stop])
    hashes = hash_coded_rows([by_class, *others], len(records), settings.seed)
    for name, column in columns.items():
        if name not in hidden:
            unload(column.codes)
    return np.lexsort((records, hashes))
