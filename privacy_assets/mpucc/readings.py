"""What the notation of values does to the scores: both readings of texts that are spelled alike, and blind columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from privacy_assets.mpucc.copies_beyond_people import COPIES, LOW
from privacy_assets.mpucc.preprocess import PreprocessedTables

LONE: Final = "score_of_lone_people"
WITHOUT_VALUE: Final = (
    *("privacy_risk_score", LONE, "overall_protection", "main_protection", "identification_rate"),
    *("originals_singled_out", "score_of_related_columns", *COPIES),
)
"""Scores that are None if records cannot be compared with people."""


RISKS: Final = ("privacy_risk_score", "identification_rate", "originals_singled_out")
"""Scores by which the riskier reading is found; without a baseline the first has no value."""
Assessed = TypeVar("Assessed", bound=Any)


def riskier_reading(tables: PreprocessedTables, assess: Callable[[PreprocessedTables], Assessed]) -> Assessed:
    """Assess tables in both readings, and return the result with the larger risk, and the larger share of copies.

    ``7`` and ``007`` may be one value or two: one person may have ``007`` and a hundred ``7``. Its settings have the
    number of distinct originals (or of people, with people) that equal others only because they are spelled alike.
    """
    assert tables.as_written is not None  # noqa: S101 - the caller has asked
    found = [assess(replace(tables, as_written=None)), assess(tables.as_written)]
    n_alike = len(tables.as_written.original.subjects.weights) - len(tables.original.subjects.weights)
    for each in found:
        each.settings["originals_spelled_alike"] = n_alike
    riskier = max(found, key=lambda each: [each.scores.get(name) or 0.0 for name in RISKS])
    copying = max(found, key=lambda each: each.scores.get(LOW) or -1.0)
    riskier.scores.update({name: copying.scores[name] for name in COPIES})
    if riskier.scores.get(LONE) is not None:
        riskier.scores[LONE] = max(each.scores[LONE] or 0.0 for each in found)
    return riskier


def comparable_scores(scores: dict[str, Any], *, is_comparable: bool) -> dict[str, Any]:
    """Return scores without those that are not known if a column is blind, or the records are foreign.

    What was identified stays identified.
    """
    if is_comparable:
        return scores
    return {name: None if name in WITHOUT_VALUE else value for name, value in scores.items()}
