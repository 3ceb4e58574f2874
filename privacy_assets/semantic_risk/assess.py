"""Semantic risk assessment: classical, basic semantic and semantic risk, and records to withhold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.display.progress_bar import shows_progress
from privacy_assets.semantic_risk.attribute_advice import advise, no_advice
from privacy_assets.semantic_risk.concept_lattice import describe_neighborhood
from privacy_assets.semantic_risk.formal_context import FormalContext, Scales, read_formal_context
from privacy_assets.semantic_risk.kernels.row_measures import RowMeasures, Suppression, find_greatest_subset
from privacy_assets.semantic_risk.kernels.search import SemanticRisks, search_semantic_risks
from privacy_assets.semantic_risk.result import LACKED_COLUMNS, SemanticAssessment, SemanticProgress
from privacy_assets.semantic_risk.risk_chains import RiskChains, list_chains
from privacy_assets.semantic_risk.row_measures import MAX_COMPARISONS, measure_context
from privacy_assets.semantic_risk.settings import (
    DEFAULT_MIN_SUPPORT,
    MAX_CHAINS,
    MAX_CONCEPTS,
    MAX_WORDS_SEARCHED,
    SemanticSettings,
    largest_risky,
    note_on_limit,
    smallest_acceptable,
)
from privacy_assets.setting_checks import threads_to_use
from privacy_assets.storage.algorithms import ALGORITHM, algorithm_of
from privacy_assets.storage.result_columns import labels_at

__all__ = ["SemanticAssessment", "SemanticProgress", "assess_semantic_risk"]

REGIONS = ("keep", "boundary", "discard")


@shows_progress
def assess_semantic_risk(
    table: pd.DataFrame,
    scales: Scales,
    *,
    model: ReleaseModel | None = None,
    risk_limit: float | None = None,
    three_way: tuple[float, float] | None = None,
    semantic_risk: bool = True,
    advice: bool = True,
    min_support: int = DEFAULT_MIN_SUPPORT,
    max_chains: int = MAX_CHAINS,
    max_concepts: int = MAX_CONCEPTS,
    max_comparisons: int = MAX_COMPARISONS,
    max_words_searched: int = MAX_WORDS_SEARCHED,
    n_threads: int | None = None,
    progress: Callable[[SemanticProgress], None] | None = None,
) -> SemanticAssessment:
    """Measure what the concepts of a table reveal about its records, and find records to withhold.

    Parameters
    ----------
    table, scales, model
        See :func:`~privacy_assets.semantic_risk.formal_context.read_formal_context`.
    risk_limit : float, optional
        Largest acceptable basic semantic risk (lambda), in (0, 1]. ``kept`` is then the greatest subset of records in
        which every record is within it.
    three_way : pair of float, optional
        (alpha, beta) with alpha < beta <= risk_limit: records up to alpha are labeled "keep", from beta on "discard",
        the others "boundary". Labels for triage; the decision is ``kept``.
    semantic_risk : bool
        Whether to also search the semantic risk, within ``max_words_searched``.
    advice : bool
        Whether to compute the effect of forgetting each column, and the columns of risk chains. Each takes about as
        long as an assessment without the semantic risk. The implications of each take up to about two seconds, those of
        all together up to about four.
    min_support : int
        Smallest support of the implications counted in the advice.
    max_chains : int
        Maximum number of listed chains with identification risk.
    max_concepts : int
        Maximum number of closed sets to visit for the implications; beyond it the advice omits them with a note.
    max_comparisons : int
        Maximum number of pairs of rows to compare.
    max_words_searched : int
        Words of 8 bytes that the search of the semantic risk may read: about 5e8 in a second on each core, so half a
        minute on one core by default. Beyond it the search ends, and the result has the risks found so far.
    n_threads : int, optional
        Threads; the result does not depend on it. Default: all cores that this process may use.
    progress : callable, optional
        Called before each stage, twice a second while rows are compared or searched, after each round of suppression
        and before each set of columns to forget; an exception that it raises ends the assessment.

    Raises
    ------
    InvalidTableError, InvalidSettingError
        If table and scales do not form a context, a setting is out of range, or the work is too large.

    Notes
    -----
    Definitions: ``docs/semantic-risk.md``. The basic semantic risk is never above the classical one on the same
    attributes, so it must not be the only limit of a release.
    """
    settings = SemanticSettings(
        risk_limit=risk_limit,
        three_way=three_way,
        semantic_risk=semantic_risk,
        advice=advice,
        min_support=min_support,
        max_chains=max_chains,
        max_concepts=max_concepts,
        max_comparisons=max_comparisons,
        max_words_searched=max_words_searched,
    )
    return assess_semantic_risk_with(table, scales, settings, model, n_threads, progress)


def assess_semantic_risk_with(
    table: pd.DataFrame,
    scales: Scales,
    settings: SemanticSettings,
    model: ReleaseModel | None = None,
    n_threads: int | None = None,
    progress: Callable[[SemanticProgress], None] | None = None,
) -> SemanticAssessment:
    """Assess as :func:`assess_semantic_risk` does, with its settings in one object."""
    settings.check()
    n_used = threads_to_use(n_threads)
    tell = progress or (lambda _: None)
    tell(SemanticProgress("reading the table", len(table) if isinstance(table, pd.DataFrame) else 0))
    context = read_formal_context(table, scales, model)
    return _assess(context, table.index, settings, n_used, tell)


def _assess(
    context: FormalContext,
    index: pd.Index[Any],
    settings: SemanticSettings,
    n_threads: int,
    tell: Callable[[SemanticProgress], None],
) -> SemanticAssessment:
    def compared() -> None:
        tell(SemanticProgress("comparing rows", context.n_records))

    def searched(n_done: int = 0, n_rows: int = 0) -> None:
        tell(SemanticProgress("searching paths", context.n_records, n_rows_done=n_done, n_rows=n_rows))

    compared()
    measures = measure_context(context, settings.max_comparisons, n_threads, compared)
    searched_risks = None
    if settings.semantic_risk:
        searched()
        searched_risks = search_semantic_risks(
            context.packed, measures, n_threads, settings.max_words_searched, searched
        )
    suppression = None
    if settings.risk_limit is not None:
        suppression = find_greatest_subset(
            context.packed,
            measures,
            smallest_acceptable(settings.risk_limit),
            n_threads,
            lambda done: tell(SemanticProgress("suppressing", done.n_records - done.n_removed)),
        )
    risks = None if searched_risks is None else searched_risks.risks
    records = describe_records(context, measures, risks, suppression, settings)
    positions = pd.Series(np.arange(context.n_records))
    records.insert(0, "record", labels_at(index, positions))
    chains = _list_chains(context, measures, settings)
    given = no_advice()
    if settings.advice:
        given = advise(
            context,
            chains.chains,
            settings,
            n_threads,
            lambda columns: tell(SemanticProgress("forgetting columns", context.n_records, columns)),
        )
    scores = _score(context, measures, records, suppression, settings)
    notes = _notes(context, measures)
    if settings.risk_limit is not None:
        note = note_on_limit(settings.risk_limit)
        notes += [note] if note else []
    if searched_risks is not None:
        scores |= _score_search(searched_risks, records)
        notes += _notes_on_search(scores, settings)
    if settings.risk_limit is not None:
        scores |= {"risk_chain_starts": chains.n_starts, "risk_chains_are_complete": chains.is_complete}
    return SemanticAssessment(
        scores,
        records,
        _describe_rounds(suppression),
        given.table,
        chains.chains,
        describe_neighborhood(context, measures),
        pd.DataFrame([vars(attribute) for attribute in context.attributes]).rename(columns={"name": "attribute"}),
        {
            ALGORITHM: algorithm_of("semantic_assessment"),
            **settings.described(),
            "scales": context.scales,
            "n_records": context.n_records,
        },
        (*notes, *_notes_on_chains(chains, settings), *given.notes),
    )


def describe_records(
    context: FormalContext,
    measures: RowMeasures,
    risks: NDArray[np.float64] | None,
    suppression: Suppression | None,
    settings: SemanticSettings,
) -> pd.DataFrame:
    """Describe every record, with the figures of its distinct row."""
    sizes, basic = context.packed.weights, 1.0 / measures.differences
    rows: dict[str, NDArray[Any]] = {
        "class_size": sizes,
        "extent_size": measures.extents,
        "smallest_difference": measures.differences,
        "positive_facts_risk": 1.0 / measures.extents,
        "basic_semantic_risk": basic,
        "classical_risk": 1.0 / sizes,
    }
    if risks is not None:
        rows["semantic_risk"] = risks
    rows["lacked_attribute"] = np.array([*context.names, ""], object)[measures.lacked]
    rows["neighbor_size"] = measures.extents - measures.differences
    rows["confidence_bound"] = (measures.extents - measures.differences) / measures.extents
    if settings.three_way is not None:
        alpha, beta = settings.three_way
        rows["region"] = np.where(basic >= beta, 2, np.where(basic <= alpha, 0, 1))
    if suppression is not None:
        rows["is_kept"] = suppression.is_kept
    records = pd.DataFrame({"row": context.row_of_record})
    for name, values in rows.items():
        records[name] = values[context.row_of_record]
    if "region" in records:
        records["region"] = np.array(REGIONS)[records["region"]]
        records = records.astype({"region": str})
    return records.astype({"lacked_attribute": str})


def _list_chains(context: FormalContext, measures: RowMeasures, settings: SemanticSettings) -> RiskChains:
    """List the risk chains; empty without a limit, which defines the risk."""
    largest = 0 if settings.risk_limit is None else largest_risky(settings.risk_limit)
    return list_chains(context, measures, largest, settings.max_chains)


def _describe_rounds(suppression: Suppression | None) -> pd.DataFrame:
    rounds = () if suppression is None else suppression.rounds
    return pd.DataFrame(
        {
            "records": np.array([own.n_records for own in rounds], np.int64),
            "maximum_semantic_risk": np.array(
                [1.0 / own.smallest_difference if own.n_records else np.nan for own in rounds], np.float64
            ),
            "records_removed": np.array([own.n_removed for own in rounds], np.int64),
        }
    )


def _score(
    context: FormalContext,
    measures: RowMeasures,
    records: pd.DataFrame,
    suppression: Suppression | None,
    settings: SemanticSettings,
) -> dict[str, Any]:
    """Score the whole table: the two figures that a policy limits, then the risks in ascending order."""
    weights = context.packed.weights
    basic = records["basic_semantic_risk"]
    # Definition 3.5 calls these figures of the basic semantic risk maximum and medium semantic risk.
    scores: dict[str, Any] = {"maximum_semantic_risk": float(basic.max()), "medium_semantic_risk": float(basic.mean())}
    for name in ("positive_facts_risk", "classical_risk"):
        scores[f"max_{name}"] = float(records[name].max())
        scores[f"mean_{name}"] = float(records[name].mean())
    scores |= {
        "records": context.n_records,
        "distinct_rows": context.n_rows,
        "attributes": len(context.attributes),
        "attributes_by_column": context.attributes_by_column(),
        "unique_records": int((weights == 1).sum()),
        "records_singled_out": int((measures.differences[context.row_of_record] == 1).sum()),
        "records_whose_row_another_includes": int(weights[measures.n_including > 1].sum()),
    }
    if "region" in records:
        n_in = {region: int((records["region"] == region).sum()) for region in REGIONS}
        scores |= {"records_to_keep": n_in["keep"], "records_in_boundary": n_in["boundary"]}
        scores["records_to_discard"] = n_in["discard"]
    if suppression is not None and settings.risk_limit is not None:
        n_kept = suppression.rounds[-1].n_records
        scores |= {
            "fewest_records_accepted": smallest_acceptable(settings.risk_limit),
            "records_at_risk": suppression.rounds[0].n_removed,
            **_why_at_risk(context, measures, smallest_acceptable(settings.risk_limit)),
            "records_kept": n_kept,
            "records_not_kept": context.n_records - n_kept,
            "share_not_kept": 1 - n_kept / context.n_records,
            "rounds_of_suppression": len(suppression.rounds) - 1,
        }
        if n_kept:
            scores["maximum_semantic_risk_kept"] = 1.0 / suppression.rounds[-1].smallest_difference
    return scores


def _why_at_risk(context: FormalContext, measures: RowMeasures, k: int) -> dict[str, Any]:
    """Count the records above the limit by the column of the attribute that they lack, or as not needing one."""
    weights = np.where(measures.differences < k, context.packed.weights, 0)
    columns = np.array([*(attribute.column for attribute in context.attributes), ""], object)[measures.lacked]
    return {
        "records_at_risk_by_own_attributes": int(weights[measures.lacked < 0].sum()),
        LACKED_COLUMNS: {name: int(weights[columns == name].sum()) for name in context.columns},
    }


def _score_search(found: SemanticRisks, records: pd.DataFrame) -> dict[str, Any]:
    """Score the risks found by the search; the maximum also if the others cannot exceed it, as r_S is at most r_BS."""
    risks = records["semantic_risk"]
    is_found = risks.notna()
    scores: dict[str, Any] = {
        "semantic_risk_is_complete": bool(is_found.all()),
        "records_with_semantic_risk": int(is_found.sum()),
        "words_searched": found.words_read,
    }
    if is_found.any() and not (records["basic_semantic_risk"][~is_found] > risks.max()).any():
        scores["max_weighted_semantic_risk"] = float(risks.max())
    if is_found.all():
        scores["mean_weighted_semantic_risk"] = float(risks.mean())
    return scores


def _notes_on_search(scores: dict[str, Any], settings: SemanticSettings) -> list[str]:
    if scores["semantic_risk_is_complete"]:
        return []
    n_open = scores["records"] - scores["records_with_semantic_risk"]
    known = (
        "No other record can have a larger one than those found"
        if "max_weighted_semantic_risk" in scores
        else "Its maximum and mean are not known; both are at most those of the basic semantic risk"
    )
    return [
        f"The semantic risk was found for {scores['records_with_semantic_risk']:,} of {scores['records']:,} records: "
        f"the search of the other {n_open:,} ended at its bounds, after {scores['words_searched']:.2g} of "
        f"max_words_searched = {settings.max_words_searched:.2g} words. {known}. Use coarser scales or fewer columns, "
        "raise max_words_searched, or leave it out: semantic_risk=False."
    ]


def _notes(context: FormalContext, measures: RowMeasures) -> list[str]:
    notes = []
    if (measures.n_including == 1).all():
        is_nominal = set(context.scales.values()) == {"nominal"}
        reason = "All scales are nominal and no cell is missing, so no" if is_nominal else "No"
        notes.append(
            f"{reason} row includes another one: every semantic risk equals 1 / class size. The assessment adds "
            "nothing to k-anonymity; one with ordinal scales, overlapping windows or hierarchies may."
        )
    silent = context.columns_that_tell_nobody_apart()
    if silent:
        notes.append(
            f"The columns {list(silent)} do not distinguish any records: their scales give all records the same "
            "attributes. Knowledge of them is not assessed; use finer scales if the columns are more informative."
        )
    return notes


def _notes_on_chains(chains: RiskChains, settings: SemanticSettings) -> list[str]:
    if chains.is_complete:
        return []
    return [
        f"Only the first {settings.max_chains} risk chains are listed (max_chains). There are {chains.n_starts} "
        "concepts at which chains begin; the advice covers the columns of the listed chains."
    ]
