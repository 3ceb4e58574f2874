"""Audit of one linkage method on an anonymization: its links, and whether the release supports them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from privacy_assets.anonymization.records_of_people import count_records_of_people
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.display.notebook import ShowsFigures
from privacy_assets.display.progress_bar import StageProgress, shows_progress
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.linkage.distance import link_by_distance
from privacy_assets.linkage.evaluation import evaluate_linker
from privacy_assets.linkage.fellegi_sunter import MAX_PAIRS, link_by_fellegi_sunter
from privacy_assets.reidentification.candidate_index import CandidateIndex
from privacy_assets.setting_checks import is_integer, is_number, one_of, require
from privacy_assets.storage.algorithms import ALGORITHM, algorithm_of
from privacy_assets.storage.artifact import Artifact

Method = Literal["distance", "fellegi_sunter"]
DEFAULT_N_RECORDS = 1_000
_WORDS = {"distance": "Linkage by distance", "fellegi_sunter": "Linkage after Fellegi and Sunter"}


@dataclass(frozen=True, eq=False, repr=False)
class LinkageAudit(ShowsFigures):
    """Result of :func:`audit_linkage`; ``docs/reidentification.md`` explains how to read the figures.

    Attributes
    ----------
    scores : dict
        Those of :func:`~privacy_assets.linkage.evaluation.evaluate_linker`, with ``n_audited`` for its ``n_released``;
        ``standard_error_of_correct_links``, 0 if all records were linked; of the candidates of the same records
        ``mean_reidentification_probability`` (the expected share of correct links if each is drawn among them) and
        ``share_of_singletons``; ``n_released`` and ``n_original``.
    records : DataFrame
        Those of `evaluate_linker`; ``released`` is the position in the released table. Private.
    settings : dict
        All settings that affect the result, as JSON values.
    """

    main_figures = (
        "expected_correct_links",
        "mean_reidentification_probability",
        "compatible_share",
        "overclaim_share",
        "n_audited",
    )

    scores: dict[str, Any]
    records: pd.DataFrame
    settings: dict[str, Any]

    def summary(self) -> str:
        """Describe the result in words, with shares and counts only."""
        found = self.scores
        correct, drawn, sound, over = (
            f"{100 * found[name]:.1f} %"
            for name in (
                "expected_correct_links",
                "mean_reidentification_probability",
                "compatible_share",
                "overclaim_share",
            )
        )
        sampled = found["n_audited"] < found["n_released"]
        records = f"{found['n_audited']:,} records" + (f", drawn from {found['n_released']:,}," if sampled else "")
        error = f" (standard error {100 * found['standard_error_of_correct_links']:.1f} %)" if sampled else ""
        return (
            f"{_WORDS[self.settings['method']]} of {records} to {found['n_original']:,} originals is correct for "
            f"{correct}{error}; a link drawn among the candidates of each record would be correct for {drawn}. "
            f"{sound} of its "
            f"claims are compatible with what the release reveals, {over} are more certain than it allows. This is one "
            "method on these records: if it finds little, this does not prove that the release is safe."
        )

    def to_artifact(self) -> Artifact:
        """Write everything as plain columns under a JSON header."""
        return Artifact("LinkageAudit", {"scores": self.scores, "settings": self.settings}, {"records": self.records})


def check_audit_settings(
    method: object, known: Sequence[str] | None, n_records: object, softness: object, seed: object
) -> None:
    """Refuse settings of :func:`audit_linkage` that are invalid for every table."""
    require(method in get_args(Method), "method", method, one_of(get_args(Method)), "Nothing was linked.")
    names = None if known is None or isinstance(known, str) else list(known)
    if known is not None and (not names or len({*map(str, names)}) < len(names)):
        raise InvalidSettingError("`known` must be a non-empty list of distinct column names. Nothing was linked.")
    is_count = n_records is None or is_integer(n_records, 1)
    require(is_count, "n_records", n_records, "None or a whole number of at least 1", "Nothing was linked.")
    is_soft = softness is None or (is_number(softness, 0) and float(softness) > 0)
    require(is_soft, "softness", softness, "None or a number above 0", "Nothing was linked.")
    if softness is not None and method != "distance":
        raise InvalidSettingError("softness is a setting of the method 'distance' only. Leave it out.")
    require(is_integer(seed, 0), "seed", seed, "a whole number of at least 0", "Nothing was linked.")


@shows_progress
def audit_linkage(
    original: pd.DataFrame,
    anonymization: Anonymization,
    *,
    method: Method = "distance",
    known: Sequence[str] | None = None,
    n_records: int | None = DEFAULT_N_RECORDS,
    softness: float | None = None,
    seed: int = 0,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    progress: Callable[[StageProgress], None] | None = None,
) -> LinkageAudit:
    """Link anonymized records to the originals, and compare the links with what the known columns reveal.

    Parameters
    ----------
    original : DataFrame
        The table that was anonymized.
    anonymization : Anonymization
        The result of ``anonymize``.
    method : {"distance", "fellegi_sunter"}
        `link_by_distance`, or `link_by_fellegi_sunter` (extra ``linkage``).
    known : sequence of str, optional
        Columns that the attacker knows about everybody, by which records are linked and candidates counted. Default:
        all quasi-identifiers.
    n_records : int or None
        Number of released records to link, drawn at random if there are more; None for all.
    softness : float, optional
        As for `link_by_distance`.
    seed : int
        Seed of the records drawn, and of the method.
    hierarchies : mapping of str to Hierarchy, optional
        Hierarchies that the model names; by default those of the anonymization.
    progress : callable, optional
        As for `evaluate_linker`.

    Raises
    ------
    InvalidSettingError
        If a setting is out of its range, a column has no mask, Splink is missing, or there is too much to compare.
    InvalidTableError
        If a person has several records: a link to another record of the same person would count as wrong.
    MaskError
        If the true original of a released record is not among its candidates.
    """
    check_audit_settings(method, known, n_records, softness, seed)
    require_unique_text_names(original)
    _require_records_of_people(original, anonymization.settings.get("subject"))
    columns = list(anonymization.settings["quasi_identifiers"] if known is None else known)
    n_released = len(anonymization.table)
    rows = np.arange(n_released)
    if n_records is not None and n_records < n_released:
        rows = np.sort(np.random.default_rng(seed).choice(n_released, n_records, replace=False))
    if method == "fellegi_sunter" and len(rows) * len(original) > MAX_PAIRS:
        raise InvalidSettingError(
            f"There are {len(rows)} records to link and {len(original)} originals. Linkage after Fellegi and Sunter "
            f"takes at most {MAX_PAIRS} pairs. Expected n_records of at most {MAX_PAIRS // len(original)}. Nothing was "
            "linked."
        )
    drawn = replace(
        anonymization,
        table=anonymization.table.iloc[rows].reset_index(drop=True),
        members=anonymization.members.iloc[rows].reset_index(drop=True),
        settings={**anonymization.settings, "subject": None},
    )
    hierarchies = {**anonymization.hierarchies, **(hierarchies or {})}
    index = CandidateIndex.of_anonymization(original, drawn, hierarchies=hierarchies)
    index.require_known(columns)
    if method == "distance":
        claims = link_by_distance(
            original, drawn.table, drawn.model, columns, softness=softness, hierarchies=hierarchies
        )
    else:
        claims = link_by_fellegi_sunter(index, original, drawn.table, columns, seed=seed)
    found = evaluate_linker(index, claims, known=columns, progress=progress)
    n_candidates, correct = found.records["n_candidates"], found.records["expected_correct"]
    error = 0.0
    if len(rows) < n_released:
        error = float(correct.std(ddof=0) / np.sqrt(len(rows)) * np.sqrt(1 - len(rows) / n_released))
    scores = {
        **{
            name: float(value) if isinstance(value, np.floating) else value
            for name, value in found.scores.items()
            if name != "n_released"
        },
        "standard_error_of_correct_links": error,
        "mean_reidentification_probability": float((1 / n_candidates).mean()),
        "share_of_singletons": float((n_candidates == 1).mean()),
        "n_audited": len(rows),
        "n_released": n_released,
        "n_original": len(original),
    }
    settings = {
        ALGORITHM: algorithm_of("linkage_audit"),
        "method": method,
        "known": columns,
        "n_records": None if n_records is None else int(n_records),
        "softness": None if softness is None else float(softness),
        "seed": int(seed),
    }
    return LinkageAudit(scores, found.records.assign(released=rows), settings)


def _require_records_of_people(original: pd.DataFrame, subject: str | None) -> None:
    """Refuse people with several records."""
    if subject is None:
        return
    if subject not in original.columns:
        raise InvalidTableError(f"The original lacks the column {subject!r} of the person. Nothing was linked.")
    found = count_records_of_people(original[subject])
    if found.n_people:
        raise InvalidTableError(
            f"A linkage audit counts records, so a link to another record of the same person would count as wrong: "
            f"{found.n_people} people have {found.n_of_these} of the {found.n_records} records. Expected one record "
            "per person. Aggregate the source to one record per person, or remove the audit. Nothing was linked."
        )
