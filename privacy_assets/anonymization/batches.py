"""Anonymization of a table that was coded batch by batch: the rows that `anonymize` releases, in batches again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.anonymize import check_columns, check_size, classes_of_cuts
from privacy_assets.anonymization.classes_by_cuts import CodedTable, cut_table, cut_tree_of
from privacy_assets.anonymization.cut_tree import CutTree
from privacy_assets.anonymization.labels import require_free_names
from privacy_assets.anonymization.quasi_identifiers import Dimension, read_dimension
from privacy_assets.anonymization.release import cells_of, describe_release, label_classes
from privacy_assets.anonymization.result import AnonymizationProgress
from privacy_assets.anonymization.row_hashes import hash_coded_rows, hash_rows
from privacy_assets.anonymization.sensitive_values import SensitiveValues
from privacy_assets.anonymization.settings import AnonymizeSettings
from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import threads_to_use
from privacy_assets.storage.coded_columns import CodedColumn

ROWS_PER_BATCH = 2**20


@dataclass(frozen=True, eq=False)
class AnonymizationInBatches:
    """What :class:`~privacy_assets.anonymization.result.Anonymization` has, with the table in batches.

    Attributes
    ----------
    model, classes, stats, tree, settings
        As there.
    columns : mapping of str to CodedColumn
        The table handed in.
    labels : dict of str to (dict of str to Series)
        Released columns of each quasi-identifier, with one row per class.
    records : ndarray of shape (n_released,), integer
        Position in the table handed in of each released row. Private.
    class_of_row : ndarray of shape (n_released,), dtype=int32
        Class of each released row. Private.
    """

    model: ReleaseModel
    classes: pd.DataFrame
    stats: dict[str, Any]
    tree: CutTree
    settings: dict[str, Any]
    columns: Mapping[str, CodedColumn]
    labels: Mapping[str, Mapping[str, pd.Series[Any]]]
    records: NDArray[np.integer[Any]]
    class_of_row: NDArray[np.int32]

    def batches(self, rows_per_batch: int = ROWS_PER_BATCH) -> Iterator[pd.DataFrame]:
        """Yield the rows to release, in the order in which `anonymize` has them."""
        hidden = {*self.settings["direct_identifiers"], self.settings["subject"]}
        for begin in range(0, len(self.records), rows_per_batch):
            rows, classes = (
                self.records[begin : begin + rows_per_batch],
                self.class_of_row[begin : begin + rows_per_batch],
            )
            batch: dict[str, Any] = {}
            for name, column in self.columns.items():
                if name in self.labels:
                    batch.update({label: own.array.take(classes) for label, own in self.labels[name].items()})
                elif name not in hidden:
                    batch[name] = column.take(rows)
            yield pd.DataFrame(batch, copy=False)


def anonymize_coded(
    columns: Mapping[str, CodedColumn],
    settings: AnonymizeSettings,
    *,
    n_threads: int | None = None,
    progress: Callable[[AnonymizationProgress], None] | None = None,
) -> AnonymizationInBatches:
    """Do for a coded table what `anonymize` does for a frame, with the same result.

    Parameters
    ----------
    columns : mapping of str to CodedColumn
        All columns of the table, in order, as `ColumnCoder` makes them.
    settings : AnonymizeSettings
        ``method`` is "mondrian" without hierarchies, and ``relaxed`` is False.
    n_threads, progress
        As in `anonymize`.

    Raises
    ------
    InvalidTableError, InvalidSettingError
        As `anonymize`, and for settings that need the table in memory.

    Notes
    -----
    Memory: codes, record numbers and classes of the rows, the values and labels of all classes, and the distinct values
    of all columns; measured in ``docs/scale.md``.
    """
    settings.check()
    n_used = threads_to_use(n_threads, "Nothing was anonymized.")
    if settings.method != "mondrian" or settings.relaxed:
        raise InvalidSettingError(
            "A table in batches is anonymized with method='mondrian' and relaxed=False. Nothing was anonymized; read "
            "the table at once for other settings."
        )
    n_rows = len(next(iter(columns.values()))) if columns else 0
    check_columns(list(columns), n_rows, settings)
    coded = _coded_table(columns, settings)
    check_size(coded, settings)
    found = cut_table(coded, settings, n_used, progress)
    settings = replace(settings, normalize=found.normalize)
    tree = cut_tree_of(coded, found, settings)
    classes = classes_of_cuts(coded, found, tree.class_of_leaf, settings)
    del found
    cells = cells_of(tree, settings)
    labels = label_classes(coded.dimensions, classes, settings, cells, {})
    model, frame, stats = describe_release(list(columns), coded.dimensions, classes, settings, labels, cells, {})
    class_of_row = np.repeat(np.arange(len(classes.sizes), dtype=np.int32), classes.sizes)
    order = _order_of_release(columns, labels, classes.records, class_of_row, settings)
    return AnonymizationInBatches(
        model,
        frame,
        stats,
        tree,
        settings.described(),
        columns,
        labels,
        classes.records[order],
        class_of_row[order],
    )


def _coded_table(columns: Mapping[str, CodedColumn], settings: AnonymizeSettings) -> CodedTable:
    """Read the columns that the anonymization needs, as `code_table` does."""
    dimensions = _dimensions(columns, settings.quasi_identifiers)
    if settings.output == "labels":
        hidden = {*settings.direct_identifiers, settings.subject, *settings.quasi_identifiers}
        require_free_names([each.scale for each in dimensions], [name for name in columns if name not in hidden])
    n_columns = len(dimensions)
    people = None if settings.subject is None else _people(columns[settings.subject], settings.subject)
    return CodedTable(
        dimensions,
        [None] * n_columns,
        [each.codes for each in dimensions],
        [None] * n_columns,
        _sensitive_values(columns, settings.sensitive),
        people,
    )


def _dimensions(columns: Mapping[str, CodedColumn], names: tuple[str, ...]) -> list[Dimension]:
    found, problems = [], []
    for name in names:
        try:
            own = read_dimension(columns[name].distinct)
        except InvalidTableError as error:
            problems.append(str(error))
            continue
        found.append(Dimension(own.scale, columns[name].translated(own.codes)))
    if problems:
        raise InvalidTableError(" ".join(problems))
    return found


def _sensitive_values(columns: Mapping[str, CodedColumn], names: tuple[str, ...]) -> SensitiveValues:
    dimensions = _dimensions(columns, names)
    first = np.cumsum([0, *(each.scale.n_values for each in dimensions)]).astype(np.int64)
    n_rows = len(next(iter(columns.values())))
    codes = np.zeros((n_rows, len(dimensions)), np.int32)
    for place, each in enumerate(dimensions):
        codes[:, place] = each.codes
        codes[:, place] += np.int32(first[place])
    return SensitiveValues(names, codes, first, np.array([each.scale.is_ordered for each in dimensions], np.bool_))


def _people(column: CodedColumn, name: str) -> NDArray[np.int32]:
    is_missing = column.distinct.isna().to_numpy()
    if is_missing.any():
        n_missing = int(is_missing[column.codes].sum())
        raise InvalidTableError(
            f"{n_missing} rows have no value in the subject column {name!r}. Expected the person of every row. "
            "Nothing was anonymized; drop those rows, or give them a person."
        )
    # The distinct values are in order of their first appearance.
    return column.codes.astype(np.int32)


def _order_of_release(
    columns: Mapping[str, CodedColumn],
    labels: Mapping[str, Mapping[str, pd.Series[Any]]],
    records: NDArray[np.integer[Any]],
    class_of_row: NDArray[np.int32],
    settings: AnonymizeSettings,
) -> NDArray[np.integer[Any]]:
    """Order rows by a keyed hash of what is released of them; see `release`."""
    hash_of_class = hash_rows(
        (own[name] for name, own in labels.items()), len(class_of_row) and int(class_of_row[-1]) + 1, settings.seed
    )
    hidden = {*settings.direct_identifiers, settings.subject, *labels}

    def codes_of(column: CodedColumn) -> Callable[[int, int], NDArray[Any]]:
        return lambda begin, stop: column.codes[records[begin:stop]]

    others = ((column.distinct, codes_of(column)) for name, column in columns.items() if name not in hidden)
    by_class = (pd.Series(hash_of_class), lambda begin, stop: class_of_row[begin:stop])
    hashes = hash_coded_rows([by_class, *others], len(records), settings.seed)
    return np.lexsort((records, hashes))
