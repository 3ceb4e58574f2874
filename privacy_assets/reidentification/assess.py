"""Re-identification assessment: candidates of released records for an attacker who knows some columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.coding import read_column
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import ReleaseModel, Suppressed
from privacy_assets.columns.safe_names import type_name
from privacy_assets.display.notebook import ShowsFigures, ShowsPictures
from privacy_assets.display.pictures import Drawn
from privacy_assets.display.progress_bar import StageProgress, shows_progress
from privacy_assets.engine.protocol import Engine
from privacy_assets.errors import InvalidSettingError
from privacy_assets.reidentification.candidate_index import CandidateIndex, Figures
from privacy_assets.reidentification.curve import CurveSearch, count_sets
from privacy_assets.reidentification.linked_releases import LinkedReleases, RowsOfRelease
from privacy_assets.reidentification.linked_rows import (
    LinkedRows,
    is_constant,
    link_rows,
    linked_curve,
    read_known_rows,
    share_certain_by_rows,
)
from privacy_assets.reidentification.other_releases import OtherRelease
from privacy_assets.setting_checks import is_integer, require
from privacy_assets.storage.algorithms import ALGORITHM, algorithm_of
from privacy_assets.storage.artifact import Artifact, EqualByContent
from privacy_assets.storage.result_columns import texts_to_tuples, tuples_to_text

DEFAULT_MAX_KNOWN = 3
DEFAULT_CURVE_SAMPLE = 10_000
MAX_SETS = 5000


@dataclass(frozen=True, eq=False, repr=False)
class ReidentificationAssessment(EqualByContent, ShowsFigures, ShowsPictures):
    """Result of :func:`assess_reidentification`; ``docs/reidentification.md`` defines the figures.

    Attributes
    ----------
    scores : dict
        The worst of each figure over the column sets in ``known`` and up to ``known_rows`` linked rows, and counts,
        without cells of the table. ``n_people_not_proven``: people of whom it was not decided whether ``known_rows``
        rows leave k people; figures assume the worst. ``share_certain_by_rows``: largest share of people whose value of
        a sensitive column, ``column_certain_by_rows``, is the only one that the classes of so many of their rows have
        in common; None without a column that is the same in all rows of nearly everybody.
    curve : DataFrame
        One row per set of known columns: ``known`` (tuple of str), ``n_known``, the fields of
        `Figures`, and ``chosen_as``: ``named``, ``subset`` (all of a
        size), ``greedy`` or ``all``; ``n_records``, the number of released records, all or a random sample, from which
        the figures were computed; ``n_rows``, the number of a person's rows that are known: above 1, ``chosen_as`` is
        ``linked``, the figures are about people, their extremes are proven, and means and shares are from ``n_records``
        random choices of known rows; and the ends of intervals of means and shares, such as
        ``mean_reidentification_probability_low`` and
        ``_high``, which together contain the figures of all records in 95 % of all samples. It does not contain cells
        of the table.
    records : DataFrame
        One row per released record at risk: fewer than k candidates (without k: a single one) for some set assessed.
        ``released`` and ``original`` are row positions, ``candidates`` the fewest over all sets, ``known`` the smallest
        set of columns that leaves so few, among the sets counted for this record: outside the sample, all columns and
        the named sets. Private.
    settings : dict
        All settings that affect the result, as JSON values.
    """

    pictures = ("candidates", "rows")
    main_figures = (
        "max_reidentification_probability",
        "mean_reidentification_probability",
        "fewest_candidates",
        "share_below_k",
        "n_released",
    )

    scores: dict[str, Any]
    curve: pd.DataFrame
    records: pd.DataFrame
    settings: dict[str, Any]

    def _draw(self, what: str) -> Drawn:
        from privacy_assets.reidentification.pictures import draw_candidates, draw_linked_rows

        if what == "rows":
            return draw_linked_rows(self.curve)
        return draw_candidates(self._of_one_row)

    @property
    def _of_one_row(self) -> pd.DataFrame:
        return self.curve[self.curve["chosen_as"] != "linked"]

    @property
    def drawable(self) -> tuple[str, ...]:
        """Those of ``pictures`` that this result has: ``rows`` needs figures for several known rows of a person."""
        return self.pictures if (self.curve["n_rows"] > 1).any() else self.pictures[:1]

    def figures(self, known: Sequence[str]) -> dict[str, Any]:
        """Return the figures for one set of known columns, in any order.

        Raises
        ------
        InvalidSettingError
            If the set was not assessed.
        """
        wanted = frozenset(known)
        for row in self._of_one_row.to_dict("records"):
            if frozenset(row["known"]) == wanted:
                return {name: None if pd.isna(row[name]) else row[name] for name in Figures._fields}
        raise InvalidSettingError(
            f"The columns {sorted(wanted)} were not assessed as known. Expected one of the {len(self.curve)} sets of "
            "`curve`. Name them in `known`, and assess again."
        )

    def to_artifact(self) -> Artifact:
        """Write everything as plain columns under a JSON header; tuples become JSON text."""
        frames = {}
        for name, frame in (("curve", self.curve), ("records", self.records)):
            frames[name] = frame.assign(known=tuples_to_text(frame["known"]))
        return Artifact("ReidentificationAssessment", {"scores": self.scores, "settings": self.settings}, frames)

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> ReidentificationAssessment:
        """Read the output of :meth:`to_artifact`."""
        frames = {}
        for name in ("curve", "records"):
            frame = artifact.frames[name]
            frames[name] = frame.assign(known=texts_to_tuples(frame["known"]))
            frames[name] = frames[name].astype({"chosen_as": object} if name == "curve" else {})
        header: Mapping[str, Any] = artifact.header
        return cls(dict(header["scores"]), frames["curve"], frames["records"], dict(header["settings"]))


@shows_progress
def assess_reidentification(
    original: pd.DataFrame,
    released: pd.DataFrame | Anonymization,
    model: ReleaseModel | None = None,
    *,
    known: Sequence[Sequence[str]] | None = None,
    max_known: int = DEFAULT_MAX_KNOWN,
    curve_sample: int | None = DEFAULT_CURVE_SAMPLE,
    quasi_identifiers: Sequence[str] | None = None,
    k: int | None = None,
    truth: str | ArrayLike | None = None,
    subject: str | None = None,
    links: Sequence[str] = (),
    groups: ArrayLike | None = None,
    sensitive: Sequence[str] = (),
    known_rows: int | Literal["all"] = 1,
    other_releases: Sequence[OtherRelease] = (),
    hierarchies: Mapping[str, Hierarchy] | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    progress: Callable[[StageProgress], None] | None = None,
    engine: Engine | None = None,
) -> ReidentificationAssessment:
    """Count the candidates of each released record, for many sets of columns that an attacker may know.

    Parameters
    ----------
    original : DataFrame
        All records that a released record may come from: the table given to ``anonymize``.
    released : Anonymization or DataFrame
        The result of ``anonymize``, which provides model, truth, k, subject and quasi-identifiers; or a table that was
        anonymized elsewhere.
    model : ReleaseModel, optional
        How each column of a table anonymized elsewhere was masked.
    known : sequence of sequence of str, optional
        Sets of columns that an attacker is assumed to know; ``scores`` are the worst over these. Default: one set, all
        quasi-identifiers.
    max_known : int
        ``curve`` has all sets of up to this many quasi-identifiers; beyond them a greedy chain adds the column that
        raises the mean probability most.
    curve_sample : int, optional
        Number of released records from which ``curve`` is computed, drawn at random if there are more; None for all.
        The sets in
        ``known``, all quasi-identifiers together, and sets whose masks are functions of the original are always
        computed from all records, and so are ``scores``.
    quasi_identifiers : sequence of str, optional
        Columns for ``curve``. Default for a table anonymized elsewhere: all columns with a mask, except suppressed
        ones.
    k : int, optional
        Smallest number of candidates that a record should have.
    truth : str or array-like of int, optional
        For a table anonymized elsewhere, where each released record comes from: the name of a column that identifies
        the records of both tables, or positions in ``original``.
    subject : str, optional
        Column of the original with the person of each row; then candidates are people.
    links : sequence of str
        Released columns that show which rows are of one person, such as a pseudonym.
    groups : array-like of int, optional
        For each released row, the number of the group of rows that ``links`` show to be of one person. Default: rows
        with a value of one of these columns in common.
    sensitive : sequence of str
        Sensitive columns of a table anonymized elsewhere.
    known_rows : int or "all"
        Number of rows of a person that an attacker knows; ``scores`` are the worst up to this number. Without links,
        it only affects ``share_certain_by_rows``.
    other_releases : sequence of OtherRelease
        Other releases of the same people, which an attacker also has. A candidate must be a candidate in all of them. A
        key that is one of ``links`` may repeat: it ties groups of rows, and not single ones.
    hierarchies : mapping of str to Hierarchy, optional
        Hierarchies that the model names; by default those of the anonymization.
    seed : int
        Seed of the sample.
    n_threads, progress
        Number of threads (default: all cores), which does not affect the result; function called from time to time; an
        exception that it raises ends the work.
    engine : LocalEngine or SparkEngine, optional
        Where candidates are counted, by tasks that each have some of the originals; the result does not depend on it.
        Default: in this process. Masks are read, and columns whose masks are functions of the original are grouped, in
        this process in any case.

    Raises
    ------
    MaskError
        If the true original of a released record is not among its candidates.
    ConflictError
        If another release contradicts this one: the same key belongs to different originals.
    InvalidTableError, InvalidSettingError
        If a table cannot be used, a setting is out of range, or there are more sets than MAX_SETS.

    Notes
    -----
    Definitions: ``docs/reidentification.md``. A non-uniform prior, and columns that are not in the table, can make a
    record's probability larger than reported.
    """
    if isinstance(released, Anonymization):
        _refuse_given(model=model, truth=truth, subject=subject, quasi_identifiers=quasi_identifiers, k=k)
        sensitive = sensitive or released.settings["sensitive"]
        quasi_identifiers = released.settings["quasi_identifiers"]
        k, subject = released.settings["k"], released.settings["subject"]
    wrong = sorted({type_name(other) for other in other_releases if not isinstance(other, OtherRelease)})
    require(not wrong, "other_releases", wrong, "a list of OtherRelease")
    keys = tuple(dict.fromkeys([*links, *(other.key for other in other_releases)]))
    index = _make_index(original, released, model, truth, subject, hierarchies, keys, n_threads, progress)
    first_model = index.model
    quasi_identifiers = _checked_names(index, quasi_identifiers)
    for other in other_releases:
        if other.key in links:
            index = index.also_with(list(other.used_model().masks))
        else:
            index = other.intersect(index, original, subject)
        quasi_identifiers = tuple(dict.fromkeys([*quasi_identifiers, *other.known_columns()]))
    index.engine = engine
    named = _checked_known(index, known, quasi_identifiers)
    require(k is None or is_integer(k, 1), "k", k, "None or an integer above 0")
    _check_max_known(max_known, len(quasi_identifiers))
    require(
        curve_sample is None or is_integer(curve_sample, 1), "curve_sample", curve_sample, "None or an integer above 0"
    )
    require(is_integer(seed, 0), "seed", seed, "an integer of at least 0")
    require(known_rows == "all" or is_integer(known_rows, 1), "known_rows", known_rows, "'all' or an integer above 0")
    table = released.table if isinstance(released, Anonymization) else released
    for setting, given in (("links", links), ("sensitive", sensitive)):
        lacking = [name for name in given if name not in table.columns]
        require(not lacking, setting, lacking, f"columns of the release, which has {list(table.columns)}")
    names = [*quasi_identifiers, *(name for each in named for name in each)]
    refuse_undescribed("The release", first_model, table, names)
    for other in other_releases:
        words = f"The release {other.name!r}"
        refuse_undescribed(words, other.used_model(), other.released(), [*names, *other.columns_to_be_described()])
    n_sets = count_sets(named, len(quasi_identifiers), max_known)
    search = CurveSearch(index, k, named, quasi_identifiers, curve_sample, seed, progress, n_sets)
    search.run(max_known)
    read = {name: _codes(table[name]) for name in {*links, *sensitive}}
    of_rows = link_rows([read[name] for name in links]) if links and groups is None else np.asarray(groups)
    tied = [other.join(index, of_rows, original, subject) for other in other_releases if other.key in links]
    constant = {name: read[name] for name in sensitive}
    rows_known = of_rows if links else None, tied, constant, known_rows, seed
    several_rows, scores_of_rows = _assess_several_rows(search, *rows_known)
    settings = {
        ALGORITHM: algorithm_of("reidentification_assessment"),
        "known": [list(each) for each in named],
        "quasi_identifiers": list(quasi_identifiers),
        "max_known": int(max_known),
        "curve_sample": None if curve_sample is None else int(curve_sample),
        "seed": int(seed),
        "k": None if k is None else int(k),
        "subject": subject,
        "unit": "records" if subject is None else "people",
        "links": list(links),
        "known_rows": known_rows,
        "model": first_model.to_json(),
        "other_releases": [other.described() for other in other_releases],
    }
    scores = {
        **search.worst(several_rows),
        **scores_of_rows,
        "n_known_sets": len(named),
        "n_sets_assessed": len(search.rows),
        "n_records_at_risk": int(search.is_at_risk.sum()),
        "n_released": index.n_released,
        "n_original": index.n_original,
    }
    return ReidentificationAssessment(scores, search.curve(several_rows), search.records(), settings)


def _assess_several_rows(
    search: CurveSearch,
    groups: NDArray[np.int64] | None,
    tied: Sequence[tuple[CandidateIndex, NDArray[np.int64]]],
    sensitive: Mapping[str, NDArray[np.int64]],
    known_rows: int | Literal["all"],
    seed: int,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the figures of several known rows for each named set, and the scores of values that stay the same."""
    index = search.index
    curve: list[dict[str, Any]] = []
    certain: dict[str, float] = {}
    everybody = np.arange(index.n_original) if index.people is None else index.people
    people = everybody[index.truth]
    constant = {name: values for name, values in sensitive.items() if is_constant(people, values)}
    for known in search.named if groups is not None or constant else ():
        rows = read_known_rows(index.masked(known), index.truth, index.n_threads)
        options = (index.n_threads, search.report_waiting)
        if groups is not None:
            linked = LinkedRows.of_groups(rows, people, groups, *options)
            if tied:
                releases = [
                    RowsOfRelease(rows, index.truth, groups),
                    *(RowsOfRelease.of(*each, known) for each in tied),
                ]
                linked = LinkedReleases.of_releases(releases, everybody, *options)
            found = linked_curve(linked, known_rows, search.k, seed=seed)
            same = {"known": known, "n_known": len(known), "chosen_as": "linked"}
            curve += [{**row, **same} for row in found if tied or row["n_rows"] > 1]
        for name, values in constant.items():
            by_value = LinkedRows.of_values(rows, people, values, *options)
            share, *_ = share_certain_by_rows(by_value, known_rows, seed=seed)
            certain[name] = max(share, certain.get(name, 0.0))
    by_rows: dict[str, int] = {}
    for row in sorted([*search.of_named(), *curve], key=lambda row: int(row["n_rows"])) if groups is not None else ():
        n_rows = str(row["n_rows"])
        by_rows[n_rows] = min(row["fewest_candidates"], by_rows.get(n_rows, row["fewest_candidates"]))
    worst = max(certain, key=lambda name: certain[name], default=None)
    return curve, {
        **({"known_rows": known_rows, "fewest_candidates_by_rows": by_rows} if groups is not None else {}),
        "n_people_not_proven": max((row["n_people_open"] for row in curve), default=0),
        "share_certain_by_rows": None if worst is None else certain[worst],
        "column_certain_by_rows": worst,
    }


def _codes(column: pd.Series[Any]) -> NDArray[np.int64]:
    return (read_column(column, f"Column {column.name!r}").codes + 1).astype(np.int64)


def _make_index(
    original: pd.DataFrame,
    released: pd.DataFrame | Anonymization,
    model: ReleaseModel | None,
    truth: str | ArrayLike | None,
    subject: str | None,
    hierarchies: Mapping[str, Hierarchy] | None,
    keys: tuple[str, ...],
    n_threads: int | None,
    progress: Callable[[StageProgress], None] | None,
) -> CandidateIndex:
    """Index the result of ``anonymize``, or a plain table with its model and truth."""

    def on_column(n_columns: int) -> None:
        if progress is not None:
            progress(StageProgress("columns of the release", n_columns, 0))

    options: dict[str, Any] = {"hierarchies": hierarchies, "keys": keys, "n_threads": n_threads, "on_column": on_column}
    if isinstance(released, Anonymization):
        return CandidateIndex.of_anonymization(original, released, **options)
    if model is None or truth is None:
        lacking = [name for name, value in (("model", model), ("truth", truth)) if value is None]
        raise InvalidSettingError(
            f"The release is a plain table, but {lacking} are missing. Expected a release model, and the origin of "
            "each released record: without it a wrong model would look like a low risk. Nothing was assessed."
        )
    return CandidateIndex(model, original, released, truth, subject=subject, **options)


def _refuse_given(**given: object) -> None:
    both = [name for name, value in given.items() if value is not None]
    if both:
        raise InvalidSettingError(
            f"An Anonymization was given together with {both}. Expected only the Anonymization, which includes them. "
            "Nothing was assessed."
        )


def refuse_undescribed(words: str, model: ReleaseModel, released: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse columns that are in a release although its model describes them as suppressed, such as class centers."""
    shown = [
        name
        for name in dict.fromkeys(names)
        if isinstance(model.masks.get(name), Suppressed) and name in released.columns
    ]
    telling = [name for name in shown if len(pd.unique(released[name])) > 1]
    if telling:
        raise InvalidSettingError(
            f"{words} shows different values in {telling}, which its model describes as suppressed, as for centers of "
            "classes. They are informative but do not bound values, so everybody would be a candidate. Expected "
            "labels (output='labels'), or a release without these columns. Nothing was assessed."
        )


def _checked_names(index: CandidateIndex, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the quasi-identifiers."""
    if names is None:
        names = [name for name, mask in index.model.masks.items() if not isinstance(mask, Suppressed)]
    if isinstance(names, str) or not len(names) or len(set(names)) < len(names):
        raise InvalidSettingError(
            "quasi_identifiers must be a non-empty list of distinct column names. Nothing was assessed."
        )
    index.require_known(names)
    return tuple(names)


def _checked_known(
    index: CandidateIndex, known: Sequence[Sequence[str]] | None, default: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """Return the distinct sets that an attacker is assumed to know."""
    if known is None:
        return [default]
    is_list = not isinstance(known, str) and not any(isinstance(each, str) for each in known)
    if not is_list or not all(isinstance(name, str) for each in known for name in each):
        raise InvalidSettingError(
            "known is a string, a list of strings, or has column names that are not strings. Expected a list of "
            'lists of columns, such as [["age", "sex"]]. Nothing was assessed.'
        )
    sets = {frozenset(each): tuple(dict.fromkeys(each)) for each in known}
    if not sets or frozenset() in sets:
        raise InvalidSettingError(
            "known is empty or has an empty set. Expected at least one set of at least one column. Nothing "
            "was assessed."
        )
    for each in sets.values():
        index.require_known(each)
    return list(sets.values())


def _check_max_known(max_known: int, n_columns: int) -> None:
    require(is_integer(max_known, 1), "max_known", max_known, "an integer above 0")
    n_sets = sum(comb(n_columns, size) for size in range(1, min(max_known, n_columns) + 1))
    if n_sets > MAX_SETS:
        raise InvalidSettingError(
            f"max_known is {max_known}, which gives {n_sets} sets of {n_columns} quasi-identifiers. Expected at most "
            f"{MAX_SETS}. Lower max_known, or name fewer quasi-identifiers. Nothing was assessed."
        )
