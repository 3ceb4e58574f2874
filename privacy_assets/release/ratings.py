"""Ratings of mpUCC figures and mitigation strategies, according to PETsARD's documentation of mpUCCs."""

from __future__ import annotations

from math import isnan
from typing import NamedTuple


class RiskLevel(NamedTuple):
    """Strategies for a range of ``privacy_risk_score`` (PETsARD's documentation of mpUCCs, "Mitigation Strategies")."""

    name: str
    bounds: str
    strategies: tuple[str, ...]


RISK_LEVELS = (
    RiskLevel(
        "high",
        "privacy_risk_score above 0.3",
        (
            "Add differential-privacy noise.",
            "Generalize or suppress the columns with high risk.",
            "Increase the k of k-anonymity.",
            "Consider fully synthetic data.",
        ),
    ),
    RiskLevel(
        "medium",
        "privacy_risk_score above 0.1, up to 0.3",
        (
            *("Review and generalize the quasi-identifiers.", "Suppress rare values."),
            *("Release under access controls.", "Monitor how the data are used."),
        ),
    ),
    RiskLevel("low", "privacy_risk_score up to 0.1", ("Document the measures taken.", "Assess again regularly.")),
)


def risk_level(privacy_risk_score: float | None) -> RiskLevel:
    """Return the risk level of a score; a missing score (None, NaN) means high risk."""
    high, medium, low = RISK_LEVELS
    if privacy_risk_score is None or isnan(privacy_risk_score) or privacy_risk_score > 0.3:
        return high
    return medium if privacy_risk_score > 0.1 else low


def mitigation(privacy_risk_score: float | None) -> str:
    """Return the strategies for a score above its limit as one text; a low score gets those for a medium score."""
    high, medium, _ = RISK_LEVELS
    return " ".join((high if risk_level(privacy_risk_score) == high else medium).strategies)


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


def rate_identification(identification_rate: float) -> str:
    """Rate a share of identified records: excellent < 1 %, good to 5 %, acceptable to 10 %, poor above."""
    for bound, rating in ((0.01, "excellent"), (0.05, "good")):
        if identification_rate < bound:
            return rating
    return "acceptable" if identification_rate <= 0.10 else "poor"


def rate_baseline(baseline_protection: float) -> str:
    """Describe the structure of the table by its baseline protection."""
    if baseline_protection < 0.80:
        return "high-risk structure: needs significant protection measures"
    if baseline_protection < 0.90:
        return "weak structure: consider adding noise or generalizing columns"
    if baseline_protection <= 0.95:
        return "fair structure"
    return "good structure: the columns have many combinations of values"
