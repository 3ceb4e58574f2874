"""Ratings and strategies are those of the published guidelines."""

import math

import pytest

from privacy_assets.release.ratings import (
    RISK_LEVELS,
    mitigation,
    rate_baseline,
    rate_identification,
    rate_score,
    risk_level,
)


def test_risk_levels_follow_the_published_bounds():
    scores = (0.0, 0.1, 0.11, 0.3, 0.31, 1.0, None, math.nan)
    names = ("low", "low", "medium", "medium", "high", "high", "high", "high")
    assert tuple(risk_level(score).name for score in scores) == names


def test_a_low_score_that_is_too_high_asks_for_more_than_standard_procedures():
    high, medium, low = (" ".join(level.strategies) for level in RISK_LEVELS)
    assert mitigation(0.31) == mitigation(None) == mitigation(math.nan) == high
    assert mitigation(0.3) == mitigation(0.06) == medium
    assert low not in (high, medium)


def test_ratings_follow_the_published_bounds():
    rates = (0.0, 0.009, 0.01, 0.049, 0.05, 0.10, 0.11)
    ratings = ("excellent", "excellent", "good", "good", "acceptable", "acceptable", "poor")
    assert tuple(rate_identification(rate) for rate in rates) == ratings
    scores = (0.0, 0.1, 0.11, 0.3, 0.31, 0.5, 0.51, 1.0, math.nan)
    words = ("very low", "very low", "acceptable", "acceptable", "medium", "medium", "high", "high", "high")
    assert all(rate_score(score).startswith(f"{word} risk") for score, word in zip(scores, words, strict=True))
    assert rate_baseline(0.79).startswith("high-risk")
    assert rate_baseline(0.89).startswith("weak")
    assert rate_baseline(0.95).startswith("fair")
    assert rate_baseline(0.96).startswith("good")


@pytest.mark.parametrize("score", [0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.9])
def test_no_scale_calls_records_safe_to_release(score):
    said = " ".join([rate_score(score), mitigation(score), *risk_level(score).strategies]).casefold()
    assert "safe" not in said
    assert "suitable for" not in said
    assert "standard release" not in said
