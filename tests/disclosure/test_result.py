"""Intervals of differences keep what they say, also for few people and rare events."""

import numpy as np
import pytest

from privacy_assets.disclosure.result import difference_of_ratios, difference_of_shares


def by_ratios(right, n_original):
    right = np.asarray(right, float)
    return difference_of_ratios(right, np.ones(len(right)), n_original)


def by_shares(right, n_original):
    right = np.asarray(right, float)
    return difference_of_shares(right[:n_original], right[n_original:])


@pytest.mark.parametrize("of_people", [by_ratios, by_shares])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_share_of_nobody_or_everybody_has_an_interval(of_people, value):
    """Of 100 originals and 50 controls, a difference of 3 % would leave no trace in one of 20 tables."""
    few = of_people(np.full(150, value), 100)
    assert few.value == 0
    assert few.high > 0.03
    assert few.low < -0.03
    many = of_people(np.full(150_000, value), 100_000)
    assert 0 < many.high < 1e-4


@pytest.mark.parametrize("of_people", [by_ratios, by_shares])
@pytest.mark.parametrize(
    ("share_of_originals", "share_of_controls"), [(0.02, 0.0), (0.05, 0.03), (0.5, 0.4), (0.99, 0.9)]
)
@pytest.mark.parametrize(("n_original", "n_control"), [(100, 50), (1_000, 200)])
def test_intervals_contain_the_difference_as_often_as_they_say(
    of_people, share_of_originals, share_of_controls, n_original, n_control
):
    random = np.random.default_rng(0)
    true, n_inside, n_above = share_of_originals - share_of_controls, 0, 0
    for _ in range(1_000):
        found = of_people(
            np.r_[random.random(n_original) < share_of_originals, random.random(n_control) < share_of_controls],
            n_original,
        )
        n_inside += found.low <= true <= found.high
        n_above += true <= found.high
    assert n_inside >= 930
    # A limit compares the upper end, which is above the difference in 97.5 % of the tables.
    assert n_above >= 940


def test_people_with_more_records_count_more_and_a_side_without_any_is_unknown():
    right, n = np.array([3.0, 0.0, 1.0, 1.0]), np.array([3, 1, 2, 2])
    assert difference_of_ratios(right, n, 2).value == pytest.approx(3 / 4 - 2 / 4)
    assert np.isnan(difference_of_ratios(np.zeros(4), np.array([0, 0, 1, 1]), 2).value)
