"""Score and limit in one picture: every bar that meets its limit ends on its side of the line, and no other does."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgba

from privacy_assets.display.pictures import AMBER, GREEN, RED
from privacy_assets.release.gate import Verdict
from privacy_assets.release.metrics import METRICS
from privacy_assets.release.outcomes import MOST, draw_limits, share_of_limit
from privacy_assets.release.policy import Limit

pytestmark = pytest.mark.pictures


def verdict(metric, value, limit, severity="error", waived_by=None):
    decided = Limit(metric, limit, severity=severity)
    passed = decided.holds_for(value) or waived_by is not None
    return Verdict(f"{metric}_holds", passed, severity, "", "", metric, value, limit, decided.direction, waived_by)


def test_each_limited_figure_is_a_bar_toward_the_same_line():
    decided = [
        Verdict("synthetic_is_as_recorded", True, "error", ""),
        verdict("privacy_risk_score", 0.1, 0.2),
        verdict("smallest_class", 5, 20),
        verdict("share_in_homogeneous_classes", 0.79, 0, "warn"),
        verdict("leakage_detected", 0.0, 0),
        verdict("rare_values_released", None, 0),
    ]
    drawn = draw_limits(decided)
    (axes,) = drawn.figure.axes
    bars = [(round(bar.get_width(), 3), bar.get_facecolor()) for bar in reversed(axes.patches)]
    assert bars == [
        (0.5, to_rgba(GREEN)),
        (MOST, to_rgba(RED)),
        (MOST, to_rgba(AMBER)),
        (0.01, to_rgba(GREEN)),
    ]
    assert [text.get_text() for text in reversed(axes.texts)] == [
        "0.1 (below 0.2): met",
        "5 (at least 20): not met",
        "0.79 (at most 0): warning",
        "no: met",
        "no value: not met",
    ]
    assert drawn.text == (
        "2 of 5 figures are within their limits, but not smallest class, share in homogeneous classes, rare values "
        "released."
    )


def test_the_sentence_names_the_closest_figure_if_all_are_within_their_limits():
    near, far = verdict("privacy_risk_score", 0.19, 0.2), verdict("smallest_class", 50, 5)
    assert draw_limits([near, far]).text == (
        "All 2 figures are within their limits; closest to its limit is privacy risk score."
    )
    assert draw_limits([far]).text == "The only limited figure, smallest class, is within its limit."
    assert draw_limits([]).text == "No figure is limited."
    waived = draw_limits([verdict("privacy_risk_score", 0.3, 0.2, waived_by="waiver.yaml")])
    assert waived.text == "0 of 1 figures are within their limits, but not privacy risk score."
    assert waived.figure.axes[0].texts[0].get_text() == "0.3 (below 0.2): waived"


@given(
    st.sampled_from(["privacy_risk_score", "excess_identification_rate", "utility"]), st.floats(-1, 1), st.floats(-1, 1)
)
def test_a_share_above_1_is_a_figure_on_the_wrong_side_of_its_limit(metric, value, limit):
    decided = Verdict("", True, "error", "", "", metric, value, limit, METRICS[metric].direction)
    share = share_of_limit(decided)
    is_within = value >= limit if metric == "utility" else value <= limit
    # A share can round to 1 where the figures are next to each other.
    assert share >= 0
    assert (share <= 1) == is_within or math.isclose(value, limit, rel_tol=1e-9)
    assert share_of_limit(Verdict("", False, "error", "", "", metric, math.nan, limit)) is None
