"""The effect of leaving out one column: the same assessment again without each of the columns that matter most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from privacy_assets.disclosure.criteria import criteria_in_words
from privacy_assets.disclosure.examination import LEVEL, compare_split, examine_criteria, find_power, is_answered
from privacy_assets.disclosure.people import draw_people, people_to_examine
from privacy_assets.disclosure.pooled_records import PooledRecords, pool_records
from privacy_assets.disclosure.result import DisclosureAssessment
from privacy_assets.disclosure.scores import Attack, Workers
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.disclosure.sides import require_usable
from privacy_assets.display.progress_bar import StageProgress
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc.preprocess import separate_people
from privacy_assets.setting_checks import threads_to_use

NO_OUTCOME: Final[tuple[bool | None, float, str]] = (None, float("nan"), "")


def assess_without_columns(
    original: pd.DataFrame,
    synthetic: pd.DataFrame,
    control: pd.DataFrame,
    assessment: DisclosureAssessment,
    settings: DisclosureSettings,
    *,
    person: str | None = None,
    synthetic_person: str | None = None,
    most_columns: int,
    progress: Callable[[StageProgress], None] | None = None,
) -> pd.DataFrame:
    """Assess the tables again without each column, beginning with those that are inferred most of originals.

    ``assessment`` is that with all columns, by the same ``settings``. Columns after the first ``most_columns`` are not
    assessed. One row per column: ``without`` (the column), ``leakage_detected`` and ``adjusted_p_value`` of the other
    columns, and the ``criteria`` that still fail, in words. The figures are missing if the column was not left out, or
    if the other columns cannot be assessed. The result is advice, not evidence: trying many columns and taking the best
    finds one that passes by chance.
    """
    tables = {"original": original, "synthetic": synthetic, "control": control}
    invented = [name for name, shares in assessment.settings["unknown_values"].items() if shares["invented"]]
    records = pool_records(*separate_people(tables, person, synthetic_person), invented)
    rows = []
    for number, column in enumerate(_in_order(assessment)):
        outcome = NO_OUTCOME
        if number < most_columns:
            with suppress(InvalidTableError, InvalidSettingError):
                own = records.only([j for j, name in enumerate(records.columns) if name != column])
                require_usable(own)
                outcome = _assess_again(own, _without(settings, column), progress)
        rows.append((column, *outcome))
    return pd.DataFrame(rows, columns=["without", "leakage_detected", "adjusted_p_value", "criteria"])


def _assess_again(
    records: PooledRecords, settings: DisclosureSettings, progress: Callable[[StageProgress], None] | None
) -> tuple[bool | None, float, str]:
    """Return the result of `assess_disclosure`, without the figures that are not needed."""
    divisions, others = (np.random.default_rng([settings.seed, stream]) for stream in range(2))
    n_examined = people_to_examine(records.n_real, records.n_synthetic, settings.sample)
    known = np.array(settings.known_of(records.columns))
    rows = draw_people(records, n_examined, others)
    attack = Attack(known, settings.max_known, rows, settings.wanted_of(records.columns))
    with Workers(threads_to_use(None), progress) as workers:
        examined = examine_criteria(records, attack, settings.n_permutations, workers, divisions)
        failed = [name for name, p in zip(attack.criteria(records), examined.adjusted, strict=True) if p <= LEVEL]
        least = float(examined.adjusted.min())
        if failed:
            return True, least, criteria_in_words(failed)
        split = compare_split(records, attack, settings.n_permutations, workers, divisions)
        copied, _ = find_power(examined, records, attack, workers, others)
    n_detectable = sum(n is not None for n in copied)
    return False if is_answered(n_detectable, float(split.min())) else None, least, ""


def _in_order(assessment: DisclosureAssessment) -> Sequence[str]:
    """Return all columns, beginning with those that are guessed most often for originals beyond controls."""
    found = assessment.sensitive
    nearest = found[found["attack"] == "nearest"].sort_values("excess", ascending=False, kind="stable")["column"]
    return list(dict.fromkeys([*nearest, *assessment.settings["columns"]]))


def _without(settings: DisclosureSettings, column: str) -> DisclosureSettings:
    known = settings.known and tuple(name for name in settings.known if name != column)
    return replace(settings, sensitive=tuple(name for name in settings.sensitive if name != column), known=known)
