"""Ratings of mpUCC figures on general scales, according to PETsARD's documentation of mpUCCs."""

from __future__ import annotations


def rate_score(privacy_risk_score: float) -> str:
    """Rate a score on the second published scale ("Understanding the Simplified Metrics"), which divides high risk.

    The scale calls the lowest scores safe to release, which one figure cannot decide.
    """
    for bound, rating in (
        (0.1, "very low risk by this figure"),
        (0.3, "acceptable risk for internal use"),
        (0.5, "medium risk, needs additional protection"),
    ):
        if privacy_risk_score <= bound:
            return rating
    return "high risk, not recommended for release"


def rating_agrees(privacy_risk_score: float | None, use_case: str | None) -> bool:
    """Return whether the rating of a score does not contradict that a policy of this use case admits the records."""
    is_for_others = use_case in ("public_release", "research_sharing", "high_risk_data")
    return privacy_risk_score is None or privacy_risk_score <= (0.1 if is_for_others else 0.3)


def rate_baseline(baseline_protection: float) -> str:
    """Describe the structure of the table by its baseline protection."""
    if baseline_protection < 0.80:
        return "high-risk structure: needs significant protection measures"
    if baseline_protection < 0.90:
        return "weak structure: consider adding noise or generalizing columns"
    if baseline_protection <= 0.95:
        return "fair structure"
    return "good structure: the columns have many combinations of values"
