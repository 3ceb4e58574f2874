"""Anonymization: generalization of quasi-identifiers until every class satisfies the privacy models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymity.kernels.measures import RowsByClass, count_people
from privacy_assets.anonymization.class_statistics import Classes
from privacy_assets.anonymization.classes_by_cuts import (
    CodedTable,
    CutClasses,
    code_table,
    cut_table,
    cut_tree_of,
    number_centers,
)
from privacy_assets.anonymization.cut_tree import apply_cuts
from privacy_assets.anonymization.generalization import Generalization, generalize
from privacy_assets.anonymization.kernels.class_measures import measure_classes
from privacy_assets.anonymization.lattice import lattice_classes, read_hierarchies
from privacy_assets.anonymization.nodes_of_classes import label_by_nodes
from privacy_assets.anonymization.related import rows_to_anonymize
from privacy_assets.anonymization.release import describe, release
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.anonymization.sensitive_values import make_models
from privacy_assets.anonymization.settings import (
    AnonymizeSettings,
    Bounds,
    ClosenessSetting,
    Criterion,
    DiversitySetting,
    LDiversity,
    Method,
    Normalization,
    Output,
    as_names,
    diversities,
    spread,
)
from privacy_assets.columns.column_names import require_unique_names, require_unique_text_names
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.contract.related import RelatedTables, refuse_with_related
from privacy_assets.display.progress_bar import StageProgress, shows_progress
from privacy_assets.engine.protocol import Engine
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import threads_to_use
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.table import Table

__all__ = ["Anonymization", "LDiversity", "anonymize", "apply_cuts"]


@shows_progress
def anonymize(
    table: pd.DataFrame | RelatedTables,
    *,
    quasi_identifiers: Sequence[str],
    k: int,
    sensitive: Sequence[str] = (),
    subject: str | None = None,
    unlinked: str | None = None,
    method: Method = "mondrian",
    criterion: Criterion = "gain",
    relaxed: bool = False,
    normalize: Normalization = "best",
    l_diversity: DiversitySetting = None,
    t_closeness: ClosenessSetting = None,
    max_suppression: float = 0.0,
    output: Output = "labels",
    bounds: Bounds = "tight",
    hierarchies: Mapping[str, Hierarchy | Mapping[str, Any]] | None = None,
    direct_identifiers: Sequence[str] = (),
    seed: int = 0,
    n_threads: int | None = None,
    progress: Callable[[StageProgress], None] | None = None,
    engine: Engine | None = None,
) -> Anonymization:
    """Generalize the quasi-identifiers of a table until every class has at least k rows, or people.

    Parameters
    ----------
    table : DataFrame or RelatedTables
        At least one record; related tables with ``unlinked``. The index is ignored, and the order of the rows does not
        change the result.
    quasi_identifiers : sequence of str
        Columns that an outsider may know. Numbers, times, periods, intervals and ordered categories become intervals,
        all others sets; a missing value is a separate value. Floats are exact, as in `verify_anonymity`: 0.1 + 0.2 is
        not 0.3, and a float32 is read as its shortest decimal. Only hierarchies compare floats to 10 decimals.
    k, subject
        Smallest number of rows in a class; with ``subject``, the column with the person of each row, smallest number of
        people. The subject is not released. k = 1 is allowed but does not protect anybody.
    unlinked : str, optional
        Of related tables, the child whose rows leave without a key, in classes of k people: the table of
        `unlinked_rows`, with those columns of the people that are quasi-identifiers. Columns that leave as they are and
        are the same in all rows of a person are refused, because they tie its rows together again. For figures of the
        rows in place of rows, anonymize the people that `aggregate_rows` returns.
    sensitive : sequence of str
        Columns whose values should not become known; released unchanged.
    method, hierarchies
        "mondrian" finds classes by cuts. "lattice" publishes each class at the most precise nodes of hierarchies that
        satisfy the models. ``hierarchies`` maps quasi-identifiers to a Hierarchy, or to settings for
        :meth:`~.hierarchy.Hierarchy.from_settings`: all quasi-identifiers for "lattice", any of them for "mondrian",
        which cuts these along their hierarchies and releases them as nodes. ``criterion``, ``relaxed``, ``normalize``
        and
        ``bounds`` only apply to cuts and cannot be given with "lattice"; the latter three do not change how columns
        with a hierarchy are cut and labeled.
    criterion : {"gain", "range"}
        How to choose the cut: the one that removes the most loss, or the widest column at the median.
    relaxed : bool
        Whether equal values of an ordered column may be separated: by the other quasi-identifiers, and by a hash of the
        row among records that are equal in all of them.
    normalize : {"best", "rank", "range"}
        Whether cuts are chosen by rank or by value; losses are reported by value. "best" tries both and keeps the one
        that loses less, measured by value without the outermost records; ``Anonymization.settings`` has the one that
        was kept.
    l_diversity : int, LDiversity or mapping of these by column, optional
        Smallest number of values, or another diversity, of each sensitive column in every class.
    t_closeness : float or mapping of float by column, optional
        Largest distance between a class and the released table, from 0 to 1; the ordered distance for ordered columns.
    max_suppression : float
        Share of rows that may be left out if that reduces the loss of the others: to reach l and t, and k if the method
        is "lattice".
    output : {"labels", "centroid"}
        Intervals and sets, or nodes of hierarchies; or the center of each class.
    bounds : {"tight", "cell"}
        Whether intervals end at values that occur in the class, or at the cuts.
    direct_identifiers
        Columns to leave out of the release.
    seed : int
        Key of the order of released rows, and of the hash of ``relaxed``; keep it secret there.
    n_threads, progress
        Maximum number of threads (default: all cores; the lattice uses one), which does not affect the result; function
        called from time to time; an exception that it raises ends the work.
    engine : LocalEngine or SparkEngine, optional
        Where the table is cut; the result does not depend on it. Default: in this process. With l or t, and with
        "lattice", the table is always cut in this process, which needs all rows of a class.

    Raises
    ------
    InvalidTableError, InvalidSettingError
        If a table cannot be used, a setting is out of range, or a model cannot be satisfied.

    Notes
    -----
    A class is cut as long as a cut leaves all models satisfied on both sides. An ordered column is cut between two of
    its values. A set is cut into the n most frequent values of the class and the others, for some n; ties are ordered
    by text. Other partitions of a set are not tried, because there are exponentially many. How cuts are
    chosen: ``docs/design/mondrian.md``, section "Cuts".

    k, l and t are necessary, not sufficient: an attacker who knows how the classes were made may learn more (minimality
    and downcoding attacks).
    """
    if isinstance(table, RelatedTables):
        refuse_with_related(subject=subject)
        subject = table.person
        table = rows_to_anonymize(
            table,
            unlinked,
            quasi_identifiers=quasi_identifiers,
            sensitive=sensitive,
            direct_identifiers=direct_identifiers,
        )
    elif unlinked is not None:
        raise InvalidSettingError(
            "`unlinked` names a child of RelatedTables, but one table is given. Leave it out. Nothing was anonymized."
        )
    require_unique_text_names(table)
    settings = AnonymizeSettings(
        quasi_identifiers=as_names(quasi_identifiers, "quasi_identifiers"),
        k=k,
        sensitive=as_names(sensitive, "sensitive"),
        subject=subject,
        direct_identifiers=as_names(direct_identifiers, "direct_identifiers"),
        method=method,
        criterion=criterion,
        relaxed=relaxed,
        normalize=normalize,
        l_diversity=diversities(l_diversity, sensitive),
        t_closeness=spread(t_closeness, sensitive, "t_closeness"),
        max_suppression=max_suppression,
        output=output,
        bounds=bounds,
        seed=seed,
    )
    return anonymize_with(table, settings, hierarchies, n_threads, progress, engine)


def anonymize_with(
    table: Table,
    settings: AnonymizeSettings,
    hierarchies: Mapping[str, Any] | None = None,
    n_threads: int | None = None,
    progress: Callable[[StageProgress], None] | None = None,
    engine: Engine | None = None,
    directory: Path | None = None,
) -> Anonymization:
    """Do what :func:`anonymize` does, with its settings in one object.

    With a directory, the rows to release are in a file without a name there, as a `StoredTable`.
    """
    settings.check()
    n_used = threads_to_use(n_threads, "Nothing was anonymized.")
    require_unique_names(list(table.columns))
    check_columns(list(table.columns), len(table), settings)
    if settings.method == "lattice":
        coded = code_table(table, settings)
        check_size(coded, settings)
        return _by_lattice(table, coded, hierarchies, settings, progress, directory)
    read = read_hierarchies(hierarchies or {}, settings.quasi_identifiers, of_all=False)
    coded = code_table(table, settings, read)
    check_size(coded, settings)
    found = cut_table(coded, settings, n_used, progress, engine)
    settings = replace(settings, normalize=found.normalize)
    tree = cut_tree_of(coded, found, settings)
    classes = classes_of_cuts(coded, found, tree.class_of_leaf, settings)
    nodes = {
        name: label_by_nodes(along.column, along.common_nodes(classes.records, classes.edges))
        for name, along in zip(settings.quasi_identifiers, coded.along, strict=True)
        if along is not None and settings.output == "labels"
    }
    dimensions = coded.dimensions
    # The memory of each step is needed by the next one.
    del coded, found
    give_back_memory()
    described = describe(table, dimensions, classes, settings, tree=tree, nodes=nodes)
    del dimensions, classes, nodes
    give_back_memory()
    released = release(table, described, settings, tree=tree, directory=directory)
    return _with_hierarchies(released, read)


def check_columns(columns: Sequence[str], n_rows: int, settings: AnonymizeSettings) -> None:
    """Refuse a table without rows, or without the columns that the settings name."""
    roles = {
        "quasi_identifiers": settings.quasi_identifiers,
        "sensitive": settings.sensitive,
        "direct_identifiers": settings.direct_identifiers,
        "subject": () if settings.subject is None else (settings.subject,),
    }
    problems = [
        f"{role} names columns that the table does not have: {unknown}."
        for role, names in roles.items()
        if (unknown := [name for name in names if name not in columns])
    ]
    if problems:
        raise InvalidSettingError(f"{' '.join(problems)} It has {list(columns)}. Nothing was anonymized.")
    if n_rows == 0:
        raise InvalidTableError("The table has no rows. Expected at least one. Nothing was anonymized.")


def check_size(coded: CodedTable, settings: AnonymizeSettings) -> None:
    """Refuse a k above the number of records, or people."""
    n_units = len(coded.dimensions[0].codes) if coded.people is None else int(coded.people.max()) + 1
    if settings.k > n_units:
        raise InvalidSettingError(
            f"k is {settings.k}, but the table has {n_units} {settings.unit}. Expected at most that number. Nothing "
            "was anonymized; lower k, or use more records."
        )


def classes_of_cuts(
    coded: CodedTable, found: CutClasses, class_of_leaf: NDArray[np.int64], settings: AnonymizeSettings
) -> Classes:
    """Describe the classes that are kept."""
    partition = found.partition
    n_rows = len(coded.dimensions[0].codes)
    is_there = np.zeros(n_rows, np.bool_)
    is_there[partition.records] = True
    if len(partition.records) != n_rows or not bool(is_there.all()):
        raise AssertionError("the partition lost or duplicated rows")
    records, edges = found.kept_records
    own = class_of_leaf[found.kept]
    if len(own) == own.max() + 1:
        return _described(coded, records, np.diff(edges), settings, found.generalizations)
    class_of_record = np.repeat(own, np.diff(edges))
    return _described(
        coded, records[np.argsort(class_of_record, kind="stable")], np.bincount(class_of_record), settings
    )


def _described(
    coded: CodedTable,
    records: NDArray[np.integer[Any]],
    sizes: NDArray[np.int64],
    settings: AnonymizeSettings,
    generalizations: Sequence[Generalization] = (),
) -> Classes:
    """Measure classes of these sizes; their records are sorted by class."""
    edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    people = np.diff(edges)
    if coded.people is not None:
        people = count_people(RowsByClass(records, edges), coded.people, int(coded.people.max()) + 1)
    if int(people.min()) < settings.k:
        raise AssertionError(f"a class has {people.min()} {settings.unit}, fewer than k = {settings.k}")
    values = coded.sensitive
    if not generalizations:
        generalizations = [generalize(each.scale, each.codes[records], edges) for each in coded.dimensions]
    return Classes(
        records,
        edges,
        people,
        list(generalizations),
        measure_classes(values.codes[records], values.first, values.is_ordered, edges),
    )


def _by_lattice(
    table: Table,
    coded: CodedTable,
    hierarchies: object,
    settings: AnonymizeSettings,
    progress: Callable[[StageProgress], None] | None,
    directory: Path | None,
) -> Anonymization:
    """Find classes by hierarchies, and release them with the labels and losses of their nodes."""
    read = read_hierarchies(hierarchies, settings.quasi_identifiers)
    models = make_models(settings, coded.sensitive)
    given = lattice_classes(table, read, settings, models, coded.sensitive, coded.people, progress)
    records = np.argsort(given.class_of_row, kind="stable")[int((given.class_of_row < 0).sum()) :]
    sizes = np.bincount(given.class_of_row[records])
    if settings.output == "centroid":
        # Classes of several nodes may have equal centers, which a reader could not distinguish.
        class_of_record = np.repeat(number_centers(coded, records, np.concatenate([[0], np.cumsum(sizes)])), sizes)
        records, sizes = records[np.argsort(class_of_record, kind="stable")], np.bincount(class_of_record)
    classes = _described(coded, records, sizes, settings)
    # Centers of classes are released without labels, so the loss is that of the values in each class.
    nodes = given.labels if settings.output == "labels" else None
    described = describe(table, coded.dimensions, classes, settings, nodes=nodes)
    released = release(table, described, settings, directory=directory)
    return _with_hierarchies(released, read)


def _with_hierarchies(found: Anonymization, hierarchies: Mapping[str, Hierarchy]) -> Anonymization:
    """Add the hierarchies to a result and its settings, if there are any."""
    described = {name: hierarchy.described() for name, hierarchy in hierarchies.items()}
    return (
        replace(found, settings={**found.settings, "hierarchies": described}, hierarchies=dict(hierarchies))
        if described
        else found
    )
