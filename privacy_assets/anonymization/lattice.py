"""Classes by published hierarchies, each generalized as little as necessary: ARX's local recoding in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.lattice import Sweep, count_nodes, sweep_lattice
from privacy_assets.anonymization.kernels.lattice_models import Column, Items, Sensitive
from privacy_assets.anonymization.kernels.models import NO_L, Models
from privacy_assets.anonymization.nodes_of_classes import NodeLabels, label_by_nodes, level_columns
from privacy_assets.anonymization.sensitive_values import SensitiveValues, require_reachable, table_holds
from privacy_assets.anonymization.settings import AnonymizeSettings
from privacy_assets.columns.coding import group_rows
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.leveled_column import LeveledColumn
from privacy_assets.display.numbers import in_full
from privacy_assets.display.progress_bar import StageProgress
from privacy_assets.errors import InvalidSettingError
from privacy_assets.storage.table import Table

MAX_NODES = 1_000_000


class LatticeClasses(NamedTuple):
    """The class of each row of a table, -1 for a suppressed one, and by quasi-identifier the label of each class."""

    class_of_row: NDArray[np.int64]
    labels: dict[str, NodeLabels]


def read_hierarchies(
    hierarchies: object, quasi_identifiers: tuple[str, ...], *, of_all: bool = True
) -> dict[str, Hierarchy]:
    """Find the hierarchies of quasi-identifiers, also given by settings (`Hierarchy.from_settings`).

    All problems are reported at once: a column without its hierarchy (unless not ``of_all``), one that belongs to
    another column, or an object of another type.
    """
    if not isinstance(hierarchies, Mapping):
        found = "missing" if hierarchies is None else "not a mapping"
        raise InvalidSettingError(
            f"method is 'lattice', but hierarchies is {found}. Expected a mapping with a Hierarchy for each of "
            f"{list(quasi_identifiers)}. Nothing was anonymized."
            if of_all
            else f"hierarchies is {found}. Expected a mapping with a Hierarchy for some of {list(quasi_identifiers)}. "
            "Nothing was anonymized."
        )
    lacking = [name for name in quasi_identifiers if of_all and name not in hierarchies]
    others = [str(name) for name in hierarchies if name not in quasi_identifiers]
    problems = [f"The quasi-identifiers {lacking} have no hierarchy."] if lacking else []
    problems += [f"These columns are not quasi-identifiers: {others}."] if others else []
    read = {}
    for name in quasi_identifiers:
        given = hierarchies.get(name)
        if isinstance(given, Hierarchy):
            read[name] = given
        elif isinstance(given, Mapping):
            try:
                read[name] = Hierarchy.from_settings(given)
            except InvalidSettingError as error:
                problems.append(f"Hierarchy of {name!r}: {error}")
        elif name in hierarchies:
            problems.append(
                f"Hierarchy of {name!r}: the type is {type(given).__name__}, not Hierarchy or a mapping of settings."
            )
    if problems:
        raise InvalidSettingError(
            f"hierarchies is invalid. {' '.join(problems)} Expected one Hierarchy for each quasi-identifier"
            f"{'' if of_all else ' to be released as its nodes'}. Nothing was anonymized."
        )
    return read


def lattice_classes(
    table: Table,
    hierarchies: Mapping[str, Hierarchy],
    settings: AnonymizeSettings,
    models: Models,
    sensitive: SensitiveValues,
    people: NDArray[np.integer[Any]] | None,
    progress: Callable[[StageProgress], None] | None = None,
) -> LatticeClasses:
    """Find classes of rows with equal nodes of their hierarchies, so that every class satisfies the models.

    The table has at least k rows, or ``people`` (None if k counts rows); neither its index nor the order of rows
    affects the result. Refused are values that a hierarchy lacks or cannot take, counted by column, too many levels in
    total, and a diversity that cannot be reached. The search: ``docs/design/mondrian.md``, section "Hierarchies". Equal
    rows are in one class, so a class is determined by the quasi-identifiers of its rows.
    """
    leveled = level_columns(table, hierarchies, settings.quasi_identifiers)
    n_nodes = count_nodes([_column(column) for column in leveled.values()])
    if n_nodes > MAX_NODES:
        levels = {name: len(column.nodes) for name, column in leveled.items()}
        raise InvalidSettingError(
            f"The hierarchies have {levels} levels, which gives a lattice of {n_nodes} nodes. Expected at most "
            f"{MAX_NODES}. Remove levels or quasi-identifiers. Nothing was anonymized."
        )
    if settings.max_suppression == 0 and not table_holds(models, sensitive):
        require_reachable(settings, sensitive, models)
    n_rows = len(table)
    items, item_of_row = _aggregate(
        Items(
            tuple(_column(column) for column in leveled.values()),
            np.ones(n_rows, np.int64),
            None if people is None else people.astype(np.int64),
            _limited(models, sensitive),
        )
    )

    def on_nodes(_n_visited: int, _n_nodes: int, n_left: int) -> None:
        if progress is not None:
            progress(StageProgress("sweep", n_rows - n_left, n_rows))

    n_allowed = settings.most_suppressed(n_rows)
    found = sweep_lattice(items, settings.k, n_allowed=n_allowed, progress=on_nodes)
    if found is None:
        raise InvalidSettingError(
            "The table as one class does not satisfy l_diversity, and no classes were found that leave out at most "
            f"{n_allowed} of {n_rows} rows (max_suppression = {in_full(settings.max_suppression)}). "
            "Nothing was anonymized; lower l or k, or raise max_suppression."
        )
    return _given(leveled, found, found.class_of_item[item_of_row])


def _column(column: LeveledColumn) -> Column:
    return Column(column.codes, column.nodes, column.loss)


def _limited(models: Models, sensitive: SensitiveValues) -> tuple[Sensitive, ...]:
    """List the sensitive columns that have a limit."""
    columns = []
    for v in range(len(models.l_kind)):
        kind, closeness = int(models.l_kind[v]), float(models.t_most[v])
        if kind == NO_L and closeness == inf:
            continue
        first, n_values = sensitive.first[v], int(sensitive.first[v + 1] - sensitive.first[v])
        codes = sensitive.codes[:, v].astype(np.int64) - first
        least, c = float(models.l_least[v]), float(models.l_factor[v])
        columns.append(Sensitive(codes, n_values, bool(models.is_ordered[v]), kind, least, c, closeness))
    return tuple(columns)


def _aggregate(rows: Items) -> tuple[Items, NDArray[np.int64]]:
    """Merge equal rows into items; returns the items and the item of each row."""
    parts = [column.codes for column in rows.columns] + [column.codes for column in rows.sensitive]
    parts += [] if rows.people is None else [rows.people]
    item_of_row, n_items = group_rows(parts, [int(part.max()) + 1 for part in parts])
    first = np.zeros(n_items, np.int64)
    first[item_of_row[::-1]] = np.arange(len(item_of_row) - 1, -1, -1)
    # In a canonical order, so that the order of the rows does not even decide ties.
    order = np.lexsort([part[first] for part in parts[::-1]])
    first = first[order]
    place = np.empty_like(order)
    place[order] = np.arange(n_items)
    item_of_row = place[item_of_row]
    items = Items(
        tuple(column._replace(codes=column.codes[first]) for column in rows.columns),
        np.bincount(item_of_row, minlength=n_items),
        None if rows.people is None else rows.people[first],
        tuple(column._replace(codes=column.codes[first]) for column in rows.sensitive),
    )
    return items, item_of_row


def _given(leveled: Mapping[str, LeveledColumn], found: Sweep, class_of_row: NDArray[np.int64]) -> LatticeClasses:
    """Describe the node of each class in each column."""
    has_class = class_of_row >= 0
    example = np.zeros(len(found.levels), np.int64)
    example[class_of_row[has_class]] = np.flatnonzero(has_class)
    labels = {
        name: label_by_nodes(column, column.nodes[found.levels[:, c], column.codes[example]])
        for c, (name, column) in enumerate(leveled.items())
    }
    return LatticeClasses(class_of_row, labels)
