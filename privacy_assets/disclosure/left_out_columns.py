"""What leaving out one column would change: the same assessment again without each, as long as there is time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

import numpy as np
import pandas as pd

from privacy_assets.disclosure.assess import LEVEL, assess_disclosure
from privacy_assets.disclosure.result import WORDS, DisclosureAssessment
from privacy_assets.disclosure.scores import DisclosureProgress
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.errors import InvalidSettingError, InvalidTableError


class _OutOfTimeError(Exception):
    """Ends an assessment for which there is no time left."""


def assess_without_columns(
    original: pd.DataFrame,
    synthetic: pd.DataFrame,
    control: pd.DataFrame,
    assessment: DisclosureAssessment,
    settings: DisclosureSettings,
    *,
    person: str | None = None,
    time_limit_seconds: float,
    progress: Callable[[DisclosureProgress], None] | None = None,
) -> pd.DataFrame:
    """Assess the tables again without each column, those first by which originals are inferred most.

    Parameters
    ----------
    original, synthetic, control : DataFrame
        The tables that were assessed.
    assessment : DisclosureAssessment
        The assessment with all columns.
    settings : DisclosureSettings
        Its settings.
    person : str, optional
        Column with the person of each row.
    time_limit_seconds : float
        After this time the other columns are not assessed.
    progress : callable, optional
        As of `assess_disclosure`.

    Returns
    -------
    DataFrame
        One row per column: ``without`` (the column), ``leakage_detected`` and ``adjusted_p_value`` of the other
        columns, and the ``criteria`` that still fail, in words. The figures are missing if there was no time, or if the
        other columns cannot be assessed.

    Notes
    -----
    As advice, not as evidence: whoever tries many columns and takes the best finds one that passes by chance.
    """
    deadline = time.monotonic() + time_limit_seconds

    def report(at: DisclosureProgress) -> None:
        if time.monotonic() > deadline:
            raise _OutOfTimeError
        if progress is not None:
            progress(at)

    rows = []
    for column in _in_order(assessment):
        tables = [table.drop(columns=column) for table in (original, synthetic, control)]
        found = None
        if time.monotonic() <= deadline:
            try:
                others = _without(settings, column)
                found = assess_disclosure(*tables, **asdict(others), person=person, progress=report)
            except (InvalidTableError, InvalidSettingError, _OutOfTimeError):
                pass
        rows.append((column, *_outcome(found)))
    return pd.DataFrame(rows, columns=["without", "leakage_detected", "adjusted_p_value", "criteria"])


def _in_order(assessment: DisclosureAssessment) -> Sequence[str]:
    """Return all columns, those first whose values are guessed most often of originals beyond those of controls."""
    found = assessment.sensitive
    nearest = found[found["attack"] == "nearest"].sort_values("excess", ascending=False, kind="stable")["column"]
    return list(dict.fromkeys([*nearest, *assessment.settings["columns"]]))


def _without(settings: DisclosureSettings, column: str) -> DisclosureSettings:
    known = settings.known and tuple(name for name in settings.known if name != column)
    return replace(settings, sensitive=tuple(name for name in settings.sensitive if name != column), known=known)


def _outcome(found: DisclosureAssessment | None) -> tuple[bool | None, float, str]:
    if found is None:
        return None, np.nan, ""
    failed = found.criteria[found.criteria["adjusted_p_value"] <= LEVEL]["criterion"]
    detected, p = found.scores["leakage_detected"], found.scores["adjusted_p_value"]
    return detected, p, ", ".join(WORDS[name] for name in failed)
