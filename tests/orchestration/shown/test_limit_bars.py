"""Figures beside their limits fit into what Dagster shows in place, and say the same as the verdicts."""

import base64
import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from privacy_assets.orchestration.shown.limit_bars import (
    BLUE,
    LIMITS,
    RED,
    SHOWN_IN_PLACE,
    limit_bars,
    limits_metadata,
    picture_of_limits,
)
from privacy_assets.release.gate import Verdict
from privacy_assets.release.metrics import METRICS
from privacy_assets.release.policy import Limit, Policy

SVG = "{http://www.w3.org/2000/svg}"


def drawn(metadata):
    """Return the texts, and the lengths and colors of the bars."""
    markdown = metadata[LIMITS].value
    assert len(markdown) < SHOWN_IN_PLACE
    coded = re.fullmatch(r"!\[Figures and limits\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", markdown)
    root = ElementTree.fromstring(base64.b64decode(coded[1]))
    bars = [path for path in root.iter(f"{SVG}path") if path.get("fill")]
    lengths = [int(re.search(r"h(\d+)v", bar.get("d"))[1]) for bar in bars]
    return [text.text for text in root.iter(f"{SVG}text")], lengths, [bar.get("fill") for bar in bars]


def verdict(metric, value, limit, *, passed):
    return Verdict(metric, passed, "error", "said elsewhere", metric=metric, value=value, limit=limit)


def test_failed_limits_come_first_and_each_bar_is_as_long_as_its_figure_of_the_limit():
    decided = [
        verdict("privacy_risk_score", 0.1, 0.2, passed=True),
        verdict("leakage_detected", 1.0, 0.0, passed=False),
        verdict("smallest_class", 3, 5, passed=False),
        verdict("share_in_homogeneous_classes", 0.5, 0.0, passed=False),
        Verdict("anonymized_is_as_recorded", True, "error", "no figure"),
    ]
    texts, lengths, colors = drawn(picture_of_limits(decided))
    assert texts == [
        *("smallest_class", "3, limit 5"),
        *("share_in_homogeneous_classes", "0.5, limit 0"),
        *("privacy_risk_score", "0.1, limit 0.2"),
    ]
    # The limit is at 95 of 190.
    assert lengths == [57, 190, 48]
    assert colors == [RED, RED, BLUE]


def test_there_is_no_picture_without_a_figure_that_has_a_limit():
    assert picture_of_limits([Verdict("anonymized_is_as_recorded", True, "error", "no figure")]) == {}
    assert picture_of_limits([verdict("leakage_detected", 1.0, 0.0, passed=False)]) == {}
    assert limits_metadata(Policy((Limit("privacy_risk_score", 0.2),)), "synthetic", {"identification_rate": 0.1}) == {}


def test_an_assessment_is_held_against_the_limits_on_its_side():
    policy = Policy((Limit("privacy_risk_score", 0.2), Limit("smallest_class", 5)))
    texts, lengths, colors = drawn(limits_metadata(policy, "synthetic", {"privacy_risk_score": 0.3}))
    assert (texts, lengths, colors) == (["privacy_risk_score", "0.3, limit 0.2"], [142], [RED])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(METRICS)),
            st.floats(0, 1e12, allow_nan=False),
            st.floats(0, 1e12, allow_nan=False),
            st.booleans(),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_the_picture_is_always_small_enough_to_be_shown_and_has_the_first_figures_that_fit(figures):
    made = picture_of_limits([verdict(name, value, limit, passed=passed) for name, value, limit, passed in figures])
    failed_first = [each for each in figures if not each[3]] + [each for each in figures if each[3]]
    expected = [each for each in failed_first if not METRICS[each[0]].is_yes_no]
    assert bool(made) == bool(expected)
    if not made:
        return
    texts, lengths, colors = drawn(made)
    n_drawn = len(lengths)
    assert (
        n_drawn == len(expected)
        or len(limit_bars([verdict(*own, passed=passed) for *own, passed in expected[: n_drawn + 1]])) >= 1_000
    )
    shown = expected[:n_drawn]
    assert texts[::2] == [name for name, *_ in shown]
    assert colors == [BLUE if passed else RED for *_, passed in shown]
    shares = [min(value / limit, 2) if limit > 0 else 2 * (value > 0) for _, value, limit, _ in shown]
    assert lengths == [max(round(95 * share), 1) for share in shares]
