"""Ratings are those of the published guidelines."""

import math

import pytest

from privacy_assets.release.ratings import (
    rate_baseline,
    rate_score,
)


def test_ratings_follow_the_published_bounds():
    scores = (0.0, 0.1, 0.11, 0.3, 0.31, 0.5, 0.51, 1.0, math.nan)
    words = ("very low", "very low", "acceptable", "acceptable", "medium", "medium", "high", "high", "high")
    assert all(rate_score(score).startswith(f"{word} risk") for score, word in zip(scores, words, strict=True))
    assert rate_baseline(0.79).startswith("high-risk")
    assert rate_baseline(0.89).startswith("weak")
    assert rate_baseline(0.95).startswith("fair")
    assert rate_baseline(0.96).startswith("good")


@pytest.mark.parametrize("score", [0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.9])
def test_no_scale_calls_records_safe_to_release(score):
    said = rate_score(score).casefold()
    assert "safe" not in said
    assert "suitable for" not in said
    assert "standard release" not in said
