"""Anonymization: generalization of quasi-identifiers until every class satisfies the privacy models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.class_statistics import Classes
from privacy_assets.anonymization.cut_tree import CutTree, apply_cuts
from privacy_assets.anonymization.generalization import generalize
from privacy_assets.anonymization.information_loss import class_widths
from privacy_assets.anonymization.kernels.models import Models, hold_by_class, measure_classes
from privacy_assets.anonymization.kernels.mondrian import Partition, make_dimensions, partition_rows
from privacy_assets.anonymization.kernels.mondrian_rows import list_class_values, pack_rows
from privacy_assets.anonymization.kernels.mondrian_tree import TreeArrays, build_tree
from privacy_assets.anonymization.labels import require_free_names
from privacy_assets.anonymization.lattice import lattice_classes, read_hierarchies
from privacy_assets.anonymization.quasi_identifiers import Dimension, read_dimensions
from privacy_assets.anonymization.release import release
from privacy_assets.anonymization.result import Anonymization, AnonymizationProgress
from privacy_assets.anonymization.row_hashes import hash_rows
from privacy_assets.anonymization.sensitive_values import (
    SensitiveValues,
    make_models,
    read_people,
    read_sensitive,
    require_reachable,
    table_holds,
)
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
    require,
    spread,
)
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.safe_names import type_name
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import is_integer
from privacy_assets.shown_numbers import against
from privacy_assets.storage.fingerprint import require_unique_text_names

__all__ = ["Anonymization", "AnonymizationProgress", "LDiversity", "anonymize", "apply_cuts"]


class _Coded(NamedTuple):
    """A table in codes; ``cut_codes`` and ``cut_scales`` separate ties if the cut is relaxed."""

    dimensions: list[Dimension]
    cut_codes: list[NDArray[np.integer[Any]]]
    value_of_code: list[NDArray[np.int64] | None]
    sensitive: SensitiveValues
    people: NDArray[np.int32] | None


def anonymize(
    table: pd.DataFrame,
    *,
    quasi_identifiers: Sequence[str],
    k: int,
    sensitive: Sequence[str] = (),
    subject: str | None = None,
    method: Method = "mondrian",
    criterion: Criterion = "gain",
    relaxed: bool = False,
    normalize: Normalization = "rank",
    l_diversity: DiversitySetting = None,
    t_closeness: ClosenessSetting = None,
    max_suppression: float = 0.0,
    output: Output = "labels",
    bounds: Bounds = "tight",
    hierarchies: Mapping[str, Hierarchy | Mapping[str, Any]] | None = None,
    direct_identifiers: Sequence[str] = (),
    seed: int = 0,
    n_threads: int | None = None,
    progress: Callable[[AnonymizationProgress], None] | None = None,
) -> Anonymization:
    """Generalize the quasi-identifiers of a table until every class has at least k rows, or people.

    Parameters
    ----------
    table : DataFrame
        At least one record. The index is ignored, and the order of the rows does not change the result.
    quasi_identifiers : sequence of str
        Columns that an outsider may know. Numbers, times and ordered categories become intervals, all others sets; a
        missing value is a separate value. Floats are exact, as in `verify_anonymity`: 0.1 + 0.2 is not 0.3, and a
        float32 is its shortest decimal. Only hierarchies compare floats to 10 decimals.
    k, subject
        Smallest number of rows in a class; with ``subject``, the column with the person of each row, smallest number of
        people. The subject is not released. k = 1 is allowed but does not protect anybody.
    sensitive : sequence of str
        Columns whose values should not become known; released unchanged.
    method, hierarchies
        "mondrian" finds classes by cuts. "lattice" publishes each class at the most precise nodes of hierarchies that
        satisfy the models. ``hierarchies`` maps each quasi-identifier to a Hierarchy, or to settings for
        :meth:`~.hierarchy.Hierarchy.from_settings`. ``criterion``, ``relaxed``, ``normalize`` and ``bounds`` only apply
        to cuts and cannot be given with it.
    criterion : {"gain", "range"}
        How to choose the cut: the one that removes most loss, or the widest column at the median.
    relaxed : bool
        Whether equal values of an ordered column may be separated, by a hash of the row.
    normalize : {"rank", "range"}
        Whether cuts are chosen by rank or by value; losses are reported by value.
    l_diversity : int, LDiversity or mapping of these by column, optional
        Fewest values, or another diversity, of each sensitive column in every class.
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
        called from time to time, whose exceptions end the work.

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

    k, l and t are necessary, not sufficient: somebody who knows how the classes were made may learn more (minimality
    and downcoding attacks).
    """
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
    return anonymize_with(table, settings, hierarchies, n_threads, progress)


def anonymize_with(
    table: pd.DataFrame,
    settings: AnonymizeSettings,
    hierarchies: Mapping[str, Any] | None = None,
    n_threads: int | None = None,
    progress: Callable[[AnonymizationProgress], None] | None = None,
) -> Anonymization:
    """Do what :func:`anonymize` does, with its settings in one object."""
    settings.check()
    require(n_threads is None or is_integer(n_threads, 1), "n_threads", n_threads, "None or a whole number above 0")
    _check_table(table, settings)
    n_used = len(os.sched_getaffinity(0)) if n_threads is None and hasattr(os, "sched_getaffinity") else n_threads
    coded = _code(table, settings)
    _check_size(coded, settings)
    if settings.method == "lattice":
        return _by_lattice(table, coded, hierarchies, settings, progress)
    if hierarchies:
        raise InvalidSettingError(
            "hierarchies are given, but the method 'mondrian' does not use them. Expected the method 'lattice' with "
            "hierarchies. Nothing was anonymized."
        )
    partition, kept = _partition(coded, settings, n_used or os.cpu_count() or 1, progress)
    classes = _classes(coded, partition, kept, settings)
    tree = CutTree(
        tuple(dimension.scale for dimension in coded.dimensions),
        _tree_arrays(coded, partition),
        np.where(kept, np.cumsum(kept) - 1, -1),
    )
    return release(table, coded.dimensions, classes, settings, tree=tree)


def _check_table(table: pd.DataFrame, settings: AnonymizeSettings) -> None:
    if not isinstance(table, pd.DataFrame):
        raise InvalidTableError(f"The table is a {type_name(table)}. Expected a pandas DataFrame. Convert it first.")
    require_unique_text_names(table)
    roles = {
        "quasi_identifiers": settings.quasi_identifiers,
        "sensitive": settings.sensitive,
        "direct_identifiers": settings.direct_identifiers,
        "subject": () if settings.subject is None else (settings.subject,),
    }
    problems = [
        f"{role} names columns that the table does not have: {unknown}."
        for role, names in roles.items()
        if (unknown := [name for name in names if name not in table.columns])
    ]
    if problems:
        raise InvalidSettingError(f"{' '.join(problems)} It has {list(table.columns)}. Nothing was anonymized.")
    if len(table) == 0:
        raise InvalidTableError("The table has no rows. Expected at least one. Nothing was anonymized.")


def _check_size(coded: _Coded, settings: AnonymizeSettings) -> None:
    n_units = len(coded.dimensions[0].codes) if coded.people is None else int(coded.people.max()) + 1
    if settings.k > n_units:
        raise InvalidSettingError(
            f"k is {settings.k}, but the table has {n_units} {settings.unit}. Expected at most that number. Nothing "
            "was anonymized; lower k, or use more records."
        )


def _code(table: pd.DataFrame, settings: AnonymizeSettings) -> _Coded:
    dimensions = read_dimensions(table, settings.quasi_identifiers)
    if settings.output == "labels" and settings.method == "mondrian":
        others = [name for name in table.columns if name not in settings.quasi_identifiers]
        hidden = {*settings.direct_identifiers, settings.subject}
        require_free_names([d.scale for d in dimensions], [name for name in others if name not in hidden])
    sensitive = read_sensitive(table, settings.sensitive)
    people = None if settings.subject is None else read_people(table, settings.subject)
    cut_codes: list[NDArray[np.integer[Any]]] = [d.codes for d in dimensions]
    value_of_code: list[NDArray[np.int64] | None] = [None] * len(dimensions)
    if settings.relaxed:
        # With ties separated by a hash, a strict cut of the ranks is a relaxed cut of the values.
        hashes = hash_rows((table[name] for name in table.columns), len(table), settings.seed)
        for j, dimension in enumerate(dimensions):
            if dimension.scale.is_ordered:
                order = np.lexsort((hashes, dimension.codes))
                ranks = np.empty(len(order), np.int64)
                ranks[order] = np.arange(len(order))
                cut_codes[j], value_of_code[j] = ranks, dimension.codes[order].astype(np.int64)
    return _Coded(dimensions, cut_codes, value_of_code, sensitive, people)


def _partition(
    coded: _Coded,
    settings: AnonymizeSettings,
    n_threads: int,
    progress: Callable[[AnonymizationProgress], None] | None,
) -> tuple[Partition, NDArray[np.bool_]]:
    """Cut the table; return which classes are kept."""
    n_rows = len(coded.dimensions[0].codes)
    coordinates, n_values = [], []
    for dimension, value_of_code in zip(coded.dimensions, coded.value_of_code, strict=True):
        own = dimension.scale.coordinates(settings.normalize)
        coordinates.append(own if own is None or value_of_code is None else own[value_of_code])
        n_values.append(dimension.scale.n_values if value_of_code is None else n_rows)
    dimensions = make_dimensions(coordinates, n_values)

    def run(models: Models, stage: str) -> Partition:
        def on_rows(n_done: int) -> None:
            if progress is not None:
                progress(AnonymizationProgress(stage, n_done, n_rows))

        return partition_rows(
            pack_rows(coded.cut_codes, n_values),
            dimensions,
            models,
            person=coded.people,
            sensitive=coded.sensitive.codes if models.needs_values else None,
            n_threads=n_threads,
            on_rows=None if progress is None else on_rows,
        )

    models = make_models(settings, coded.sensitive, coded.sensitive.shares())
    found: list[tuple[float, Partition, NDArray[np.bool_]]] = []
    if table_holds(models, coded.sensitive):
        partition = run(models, "cut")
        kept = np.ones(len(partition.begins), np.bool_)
        if settings.max_suppression == 0 or not settings.needs_values:
            return partition, kept
        found.append((_loss(coded, partition, kept), partition, kept))
    elif settings.max_suppression == 0:
        require_reachable(settings, coded.sensitive, models)
    partition = run(models._replace(needs_values=False), "cut and suppress")
    kept, n_suppressed = _suppress(models, coded.sensitive, partition)
    if kept.any() and n_suppressed <= settings.most_suppressed(n_rows):
        found.append((_loss(coded, partition, kept), partition, kept))
    if not found:
        share, limit = against(n_suppressed / n_rows, settings.max_suppression)
        raise InvalidSettingError(
            f"The table as one class does not satisfy l_diversity, and {n_suppressed} of {n_rows} rows, a share "
            f"of {share}, would have to be left out. Expected at most max_suppression = {limit}. Nothing was "
            "anonymized; lower l or k, or raise max_suppression."
        )
    _, partition, kept = min(found, key=lambda attempt: attempt[0])
    return partition, kept


def _suppress(models: Models, values: SensitiveValues, partition: Partition) -> tuple[NDArray[np.bool_], int]:
    """Find the classes that can stay and count suppressed rows, repeating until nothing changes."""
    sizes = np.diff(partition.edges)
    kept = np.ones(len(sizes), np.bool_)
    in_order = values.codes[partition.records]
    while kept.any():
        shares = values.shares(partition.records[np.repeat(kept, sizes)])
        holds = hold_by_class(models._replace(shares=shares), in_order, partition.edges)
        if bool((holds | ~kept).all()):
            break
        kept &= holds
    return kept, int(sizes[~kept].sum())


def _loss(coded: _Coded, partition: Partition, kept: NDArray[np.bool_]) -> float:
    sizes = np.diff(partition.edges)
    total = 0.0
    for dimension in coded.dimensions:
        widths = class_widths(generalize(dimension.scale, dimension.codes[partition.records], partition.edges))
        total += float(np.where(kept, widths, 1.0) @ sizes)
    return total


def _tree_arrays(coded: _Coded, partition: Partition) -> TreeArrays:
    """Link the cuts, and convert their thresholds from ranks to codes of values."""
    scales = [dimension.scale for dimension in coded.dimensions]
    n_values = [scale.n_values for scale in scales]
    columns: list[NDArray[Any]] = [dimension.codes for dimension in coded.dimensions]
    tree = build_tree(partition, columns, n_values, [not scale.is_ordered for scale in scales])
    threshold, right_low = tree.threshold.copy(), tree.right_low.copy()
    for j, value_of_code in enumerate(coded.value_of_code):
        if value_of_code is not None:
            own = tree.dimension == j
            threshold[own], right_low[own] = value_of_code[threshold[own]], value_of_code[right_low[own]]
    return tree._replace(threshold=threshold, right_low=right_low)


def _classes(coded: _Coded, partition: Partition, kept: NDArray[np.bool_], settings: AnonymizeSettings) -> Classes:
    """Describe the classes that are kept."""
    sizes = np.diff(partition.edges)
    n_rows = len(coded.dimensions[0].codes)
    if len(partition.records) != n_rows or not bool((np.bincount(partition.records, minlength=n_rows) == 1).all()):
        raise AssertionError("the partition lost or duplicated rows")
    records = partition.records if kept.all() else partition.records[np.repeat(kept, sizes)]
    return _described(coded, records, sizes[kept], settings)


def _described(
    coded: _Coded, records: NDArray[np.integer[Any]], sizes: NDArray[np.int64], settings: AnonymizeSettings
) -> Classes:
    """Measure classes of these sizes; their records are sorted by class."""
    edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    people = np.diff(edges)
    if coded.people is not None:
        first, _ = list_class_values(coded.people[records], edges[:-1], edges[1:], int(coded.people.max()) + 1)
        people = np.diff(first)
    if int(people.min()) < settings.k:
        raise AssertionError(f"a class has {people.min()} {settings.unit}, fewer than k = {settings.k}")
    models = make_models(settings, coded.sensitive, coded.sensitive.shares(records))
    return Classes(
        records,
        edges,
        people,
        [generalize(d.scale, d.codes[records], edges) for d in coded.dimensions],
        measure_classes(models, coded.sensitive.codes[records], edges),
    )


def _by_lattice(
    table: pd.DataFrame,
    coded: _Coded,
    hierarchies: object,
    settings: AnonymizeSettings,
    progress: Callable[[AnonymizationProgress], None] | None,
) -> Anonymization:
    """Find classes by hierarchies, and release them with the labels and losses of their nodes."""
    read = read_hierarchies(hierarchies, settings.quasi_identifiers)
    models = make_models(settings, coded.sensitive, coded.sensitive.shares())
    given = lattice_classes(table, read, settings, models, coded.sensitive, coded.people, progress)
    order = np.argsort(given.class_of_row, kind="stable")
    records = order[int((given.class_of_row < 0).sum()) :]
    classes = _described(coded, records, np.bincount(given.class_of_row[records]), settings)
    # Centers of classes are released without labels, so the loss is that of the values in each class.
    labels = given if settings.output == "labels" else None
    found = release(table, coded.dimensions, classes, settings, given=labels)
    described = {name: hierarchy.described() for name, hierarchy in read.items()}
    return replace(found, settings={**found.settings, "hierarchies": described})
