"""The mpUCC assessment: how well synthetic records single out original ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.parts import Parts, check_parts, names_with_parts
from privacy_assets.columns.spelling import SPELLING
from privacy_assets.columns.unknown_values import blind_columns
from privacy_assets.display.notebook import ShowsFigures, ShowsPictures
from privacy_assets.display.pictures import Drawn
from privacy_assets.display.progress_bar import shows_progress
from privacy_assets.engine.protocol import Engine
from privacy_assets.mpucc.control import ControlComparison, compare_with_control
from privacy_assets.mpucc.copies_beyond_people import copies_beyond_people
from privacy_assets.mpucc.draws import draw_rows, most_records
from privacy_assets.mpucc.kernels.search import SearchResult
from privacy_assets.mpucc.placed_tables import placed_tables
from privacy_assets.mpucc.preprocess import (
    DatetimePrecision,
    NumericPrecision,
    PreprocessedTables,
    check_columns,
    preprocess,
    separate_people,
)
from privacy_assets.mpucc.readings import LONE, comparable_scores, riskier_reading
from privacy_assets.mpucc.results import (
    SearchProgress,
    SyntheticSearch,
    describe_details,
    describe_tree,
    lone_originals,
    protection_scores,
    score,
)
from privacy_assets.mpucc.settings import (
    DEFAULT_DECAY_FACTOR,
    DEFAULT_MAX_COMBINATIONS,
    DEFAULT_RENYI_ALPHA,
    DEFAULT_SETTINGS,
    LIVE_CLASSES,
    MpuccSettings,
    Pruning,
    largest_size,
)
from privacy_assets.mpucc.strangers import scores_of_strangers
from privacy_assets.setting_checks import threads_to_use
from privacy_assets.storage.algorithms import ALGORITHM, algorithm_of
from privacy_assets.storage.artifact import Artifact, EqualByContent
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.result_columns import labels_at, texts_to_tuples, tuples_to_text

__all__ = [
    "DEFAULT_MAX_COMBINATIONS",
    "MpuccAssessment",
    "MpuccSettings",
    "SearchProgress",
    "assess_mpuccs",
    "assess_preprocessed",
]


@dataclass(frozen=True, eq=False, repr=False)
class MpuccAssessment(EqualByContent, ShowsFigures, ShowsPictures):
    """Result of :func:`assess_mpuccs`; the names are those of its source; ``docs/mpucc.md`` defines them.

    Attributes
    ----------
    scores : dict
        Figures of the whole table, ``privacy_risk_score`` first (absent with ``calculate_baseline=False``, as is
        ``score_of_lone_people``, by which nobody is singled out whose record three or more people have); with a
        control also ``score_of_strangers`` and ``originals_singled_out_by_strangers``, the same figures of other people
        in place of as many synthetic records, and, of columns that depend on no others, ``score_of_related_columns``
        and ``score_of_strangers_on_related_columns``.
    details : DataFrame
        One row per identified synthetic record, in search order: ``risk_level, syn_idx, ori_idx, combo_size,
        field_combo, value_combo, baseline_protection, agreement``. Private, because it contains cells. If people have
        several equal records, equal synthetic records have one row.
    tree : DataFrame
        One row per combination checked, in search order.
    control : ControlComparison or None
        Leakage or coincidence; None without a control table.
    settings : dict
        All arguments that affect the result, the columns, the precisions used and the rows of each table.
    """

    pictures = ("sizes", "columns")
    main_figures = (
        "privacy_risk_score",
        "score_of_strangers",
        "originals_singled_out",
        "identification_rate",
        "total_identified",
        "total_syn_records",
    )

    scores: dict[str, Any]
    details: pd.DataFrame
    tree: pd.DataFrame
    control: ControlComparison | None
    settings: dict[str, Any]

    def _figures(self) -> Mapping[str, object]:
        return self.scores if self.control is None else {**self.scores, **self.control.to_header()}

    def _draw(self, what: str) -> Drawn:
        from privacy_assets.mpucc.pictures import draw_driving_columns, draw_identified_by_size, shares_by_column

        if what == "columns":
            shares = shares_by_column(self.details, self.settings["columns"])
            return draw_driving_columns(shares, len(self.details))
        return draw_identified_by_size(self.tree, self.control, counts_people="n_people" in self.settings)

    def to_artifact(self) -> Artifact:
        """Write everything as plain columns under a JSON header; tuples become JSON text."""
        texts = {name: tuples_to_text(self.details[name]) for name in ("field_combo", "value_combo")}
        pruned_by = pd.Series([reason or "" for reason in self.tree["pruned_by"]], dtype=str)
        frames = {
            "details": self.details.assign(**texts),
            "tree": self.tree.assign(field_combo=tuples_to_text(self.tree["field_combo"]), pruned_by=pruned_by),
        }
        header = {
            "scores": self.scores,
            "settings": self.settings,
            "control": None if self.control is None else self.control.to_header(),
        }
        return Artifact("MpuccAssessment", header, frames)

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> MpuccAssessment:
        """Read the output of :meth:`to_artifact`."""
        read = cls.without_values(artifact)
        values = texts_to_tuples(artifact.frames["details"]["value_combo"])
        place = list(artifact.frames["details"].columns).index("value_combo")
        read.details.insert(place, "value_combo", values)
        return read

    @classmethod
    def without_values(cls, artifact: Artifact) -> MpuccAssessment:
        """Read everything except the ``value_combo`` of each record, whose texts take most of the time and memory."""
        header = artifact.header
        details, tree = artifact.frames["details"].drop(columns="value_combo"), artifact.frames["tree"].copy()
        for frame in (details, tree):
            frame["field_combo"] = texts_to_tuples(frame["field_combo"])
        tree["pruned_by"] = pd.Series([reason or None for reason in tree["pruned_by"]], dtype=object)
        control = header["control"]
        return cls(
            dict(header["scores"]),
            details,
            tree,
            None if control is None else ControlComparison.from_header(control),
            dict(header["settings"]),
        )


@shows_progress
def assess_mpuccs(
    original: pd.DataFrame,
    synthetic: pd.DataFrame,
    control: pd.DataFrame | None = None,
    *,
    max_baseline_cols: int | None = None,
    min_entropy_delta: float = 0.0,
    field_decay_factor: float = DEFAULT_DECAY_FACTOR,
    renyi_alpha: float = DEFAULT_RENYI_ALPHA,
    pruning: Pruning = LIVE_CLASSES,
    numeric_precision: NumericPrecision = None,
    datetime_precision: DatetimePrecision = None,
    n_cols: Sequence[int] | None = None,
    calculate_baseline: bool = True,
    deduplicate: bool = True,
    person: str | None = None,
    parts: Parts | None = None,
    invented: Sequence[str] = (),
    max_combinations: int = DEFAULT_MAX_COMBINATIONS,
    n_matched_samples: int = 5,
    seed: int = 0,
    confidence_level: float = 0.95,
    n_threads: int | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
    engine: Engine | None = None,
) -> MpuccAssessment:
    """Find the synthetic records that single out an original record, and score the table by them.

    Parameters
    ----------
    original, synthetic : DataFrame
        Tables with the same columns, direct identifiers removed.
    control : DataFrame, optional
        Real records that the synthesizer never saw, to distinguish leakage from coincidence.
    max_baseline_cols : int, optional
        Largest number of columns in a combination. Default: all columns.
    min_entropy_delta : float
        Above 0, combinations that gain less normalized entropy than this over their base are not extended; the search
        is then heuristic and may under-report.
    field_decay_factor : float
        Weight lost per further column, in (0, 1], for ``weighted_collision``.
    renyi_alpha : float
        Order of the entropy, 0 or more; infinity is allowed.
    pruning : {"live_classes", "mutual_information"}
        What is not extended: combinations that cannot identify anybody else, or, in addition, those of two or more
        columns with a negative mutual information, as in the source. That is a heuristic, too.
    numeric_precision, datetime_precision, deduplicate, person, parts, invented
        See :func:`~privacy_assets.mpucc.preprocess.preprocess`.
    n_cols : sequence of int, optional
        The sizes themselves, as the source writes them: ``[1, 2, 3]`` is ``max_baseline_cols=3``.
    calculate_baseline : bool
        Whether to compare with the protection that follows from the numbers of distinct values.
    max_combinations : int
        Combinations that may be checked. The search ends before the size with which it would check more; its result is
        then complete up to the previous size (``max_combo_size``), and a sample of the synthetic records shows how many
        single out an original by combinations of any size (``any_size_identification_rate``).
    n_matched_samples, seed, confidence_level
        Number of random samples of the originals to compare with the control, their seed, and the confidence level of
        all intervals.
    n_threads : int, optional
        Threads to search on; the result does not depend on it. Default: all cores that this process may use.
    progress : callable, optional
        Called before each size of combinations of each search, and again after each 8,192 combinations; an exception
        that it raises ends the assessment.
    engine : LocalEngine or SparkEngine, optional
        Where the combinations are searched; the result does not depend on it. Default: in this process.

    Raises
    ------
    InvalidTableError
        If the tables cannot be compared.
    InvalidSettingError
        If a setting is out of range; checked before any work starts.

    Notes
    -----
    Definitions: ``docs/mpucc.md``; index labels in ``details`` are those of the input tables (as text unless they are
    integers).
    """
    settings = MpuccSettings(
        max_baseline_cols=largest_size(max_baseline_cols, n_cols),
        min_entropy_delta=min_entropy_delta,
        field_decay_factor=field_decay_factor,
        renyi_alpha=renyi_alpha,
        pruning=pruning,
        calculate_baseline=calculate_baseline,
        max_combinations=max_combinations,
        n_matched_samples=n_matched_samples,
        seed=seed,
        confidence_level=confidence_level,
    )
    frames, _ = separate_people({"original": original, "synthetic": synthetic}, person)
    columns = check_columns(frames)
    settings.check(len(names_with_parts(columns, check_parts(parts, columns))))
    tables = preprocess(
        original,
        synthetic,
        control,
        numeric_precision=numeric_precision,
        datetime_precision=datetime_precision,
        deduplicate=deduplicate,
        person=person,
        parts=parts,
        invented=invented,
    )
    assessment = assess_preprocessed(tables, settings, n_threads, progress, engine)
    labels = {
        "syn_idx": labels_at(synthetic.index, assessment.details["syn_idx"]),
        "ori_idx": labels_at(original.index, assessment.details["ori_idx"]),
    }
    return replace(assessment, details=assessment.details.assign(**labels))


def assess_preprocessed(
    tables: PreprocessedTables,
    settings: MpuccSettings = DEFAULT_SETTINGS,
    n_threads: int | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
    engine: Engine | None = None,
) -> MpuccAssessment:
    """Assess tables that :func:`~privacy_assets.mpucc.preprocess.preprocess` prepared.

    Parameters, result and errors as for :func:`assess_mpuccs`; ``syn_idx`` and ``ori_idx`` are row positions.
    """
    settings.check(len(tables.columns))
    if tables.as_written is not None:
        assess = partial(assess_preprocessed, settings=settings, n_threads=n_threads, progress=progress, engine=engine)
        return riskier_reading(tables, assess)
    n_used = threads_to_use(n_threads)
    with placed_tables(engine, list(tables.tables.values())) as placed:
        return _assess(tables, SyntheticSearch(tables, settings, n_used, progress, engine=placed))


def _assess(tables: PreprocessedTables, search: SyntheticSearch) -> MpuccAssessment:
    settings = search.settings
    found = search.against(
        tables.original, "synthetic against original", with_profile=True, max_combinations=settings.max_combinations
    )
    searches, scored = [search], []
    draws = draw_rows(tables, tables.synthetic, most_records(tables))
    if draws:
        names = [f"draw {place} of {len(draws)} " for place in range(1, len(draws) + 1)]
        searches = [search.of(tables.synthetic.take(rows), name) for rows, name in zip(draws, names, strict=True)]
        # With fewer synthetic records, a combination that identifies a record still does.
        known = (found.combo_of_row >= 0) & (settings.search == "exact")
        scored = [
            (each.tables.synthetic, each.count(found.complete_size, known[rows]))
            for each, rows in zip(searches, draws, strict=True)
        ]
    control = None
    if tables.control is not None:
        control = ControlComparison.mean(
            [
                compare_with_control(
                    each.tables,
                    partial(each.matches, max_size=found.complete_size),
                    published=tables.synthetic,
                    n_samples=-(-settings.n_matched_samples // len(searches)),
                    seed=settings.seed + place,
                    confidence_level=settings.confidence_level,
                )
                for place, each in enumerate(searches)
            ]
        )
    scores = score(search, found, scored)
    if settings.calculate_baseline:
        scores |= _score_of_lone_people(searches, found, draws, scores["privacy_risk_score"])
    scores |= copies_beyond_people(tables.original, tables.synthetic, tables.n_codes, settings.confidence_level)
    if tables.control is not None and settings.calculate_baseline:
        scores |= scores_of_strangers(search, scores, found.complete_size)
    # After the searches, because their memory is now free.
    give_back_memory()
    tree = describe_tree(search, found)
    details = describe_details(search, found, tree)
    if not settings.calculate_baseline:
        tree = tree.drop(columns=["baseline_protection", "overall_protection"])
        details = details.drop(columns="baseline_protection")
    described = {**_described(tables, settings), "complete_up_to": found.complete_size}
    scores = comparable_scores(scores, is_comparable=not (tables.foreign or blind_columns(tables.unknown_values)))
    return MpuccAssessment(scores, details, tree, control, described)


def _score_of_lone_people(
    searches: Sequence[SyntheticSearch], found: SearchResult, draws: Sequence[NDArray[Any]], score_of_all: float
) -> dict[str, float]:
    """Score the records without singling out people who are three or more with the same record."""
    lone = lone_originals(searches[0].tables.original)
    if lone is None:
        return {LONE: score_of_all}
    of_rows = list[NDArray[Any] | None](draws) or [None]
    counts = [each.count_of_lone(found, lone, rows) for each, rows in zip(searches, of_rows, strict=True)]
    rates = [n / each.tables.synthetic.n_assessed for each, n in zip(searches, counts, strict=True)]
    own = [protection_scores(each, rate) for each, rate in zip(searches, rates, strict=True)]
    return {LONE: fmean(each["privacy_risk_score"] for each in own)}


def _described(tables: PreprocessedTables, settings: MpuccSettings) -> dict[str, Any]:
    """Return all settings that affect the result, as JSON values."""
    columns = list(tables.columns)
    return {
        ALGORITHM: algorithm_of("mpucc_assessment"),
        "spelling": SPELLING,
        "originals_spelled_alike": 0,
        "unknown_values": tables.unknown_values,
        "foreign": tables.foreign,
        **settings.described(),
        "columns": columns,
        **({"parts": {name: list(own) for name, own in tables.parts.items()}} if tables.parts else {}),
        "columns_without_values": [name for name, kind in zip(columns, tables.kinds, strict=True) if kind == "missing"],
        "numeric_precision": dict(tables.numeric_precision),
        "datetime_precision": dict(tables.datetime_precision),
        "given_precision": dict(tables.given_precision),
        "deduplicate": tables.deduplicate,
        "n_rows": {name: table.n_records for name, table in tables.tables.items()},
        **_described_people(tables),
    }


def _described_people(tables: PreprocessedTables) -> dict[str, Any]:
    """Return the people of each table, if its records are assigned to them."""
    n_people = {name: table.people.n_people for name, table in tables.tables.items() if table.people is not None}
    return {"n_people": n_people} if n_people else {}
