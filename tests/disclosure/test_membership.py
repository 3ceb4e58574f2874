"""Membership by a score: all pairs, thresholds, and originals who are closer than everybody in the control."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.membership import advantage_of, measure_membership, share_at_false_positives
from tests.examples import examples
from tests.orchestration.project import people
from tests.reference import membership as reference

scores_of = st.lists(st.integers(-3, 3) | st.floats(-5, 5), min_size=2, max_size=30)


@given(scores_of, scores_of)
@settings(max_examples=examples(200), deadline=None)
def test_the_advantage_and_its_interval_are_those_of_all_pairs(originals, controls):
    found = advantage_of(np.array(originals, float), np.array(controls, float))
    value = 2 * reference.auc(originals, controls) - 1
    reach = 2 * 1.959964 * sqrt(reference.delong_variance(originals, controls))
    assert found.value == pytest.approx(value, abs=1e-12)
    assert found.low == pytest.approx(max(value - reach, -1), abs=1e-6)
    assert found.high == pytest.approx(min(value + reach, 1), abs=1e-6)


@given(scores_of, scores_of, st.integers(0, 2**31))
@settings(max_examples=examples(100), deadline=None)
def test_exposed_people_are_closer_than_every_control(originals, controls, seed):
    found = measure_membership(np.array([*originals, *controls], float), len(originals), seed)
    assert found["most_exposed_people"] == sum(all(a > b for b in controls) for a in originals)
    assert found["most_exposed_people_by_chance"] == len(originals) / (len(controls) + 1)
    assert found["membership_tpr_at_1_percent"] is None
    assert found["membership_advantage_upper"] == max(map(abs, found["membership_advantage_interval"]))


@given(st.integers(0, 2**31), st.sampled_from([0.0, 1.0]))
@settings(max_examples=examples(20), deadline=None)
def test_one_percent_of_the_controls_are_above_the_threshold(seed, rounded):
    rng = np.random.default_rng(seed)
    originals, controls = rng.normal(0.5, 1, 300), rng.normal(0, 1, 250)
    if rounded:
        originals, controls = originals.round(1), controls.round(1)
    found = share_at_false_positives(originals, controls, np.random.default_rng(seed))
    threshold = sorted(controls, reverse=True)[2]
    assert sum(controls > threshold) <= 2
    assert found.value == pytest.approx(sum(originals > threshold) / 300)
    assert found.low <= found.high
    drawn = []
    for _ in range(1_000):
        own, others = rng.choice(originals, 300), rng.choice(controls, 250)
        drawn.append(sum(own > np.partition(others, -3)[-3]) / 300)
    assert [found.low, found.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.05)


def test_copies_are_exposed_and_other_people_are_not():
    original, control, other = (people(300, seed).drop(columns="patient") for seed in (1, 2, 3))
    copied = other.copy()
    copied[:30] = original[:30]
    honest, copies = (assess_disclosure(original, each, control).scores for each in (other, copied))
    assert honest["membership_advantage_interval"][0] < 0 < honest["membership_advantage_interval"][1]
    assert honest["most_exposed_people"] < 8
    assert copies["most_exposed_people"] >= 25 > 10 * copies["most_exposed_people_by_chance"]
    assert copies["membership_tpr_at_1_percent"] > honest["membership_tpr_at_1_percent"]
