"""What a mask leaves possible at its limits: small and large numbers, exact percentages, texts with spaces."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns.masks import BoundedNoise, Label, RankWindow, ReleaseModel
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.reidentification.candidate_index import CandidateIndex
from tests.examples import examples


def sizes(mask, original, released):
    tables = (pd.DataFrame({"x": values}) for values in (original, released))
    return CandidateIndex(ReleaseModel({"x": mask}), *tables, range(len(released)), n_threads=1).sizes(["x"]).tolist()


@given(st.integers(-300, 290), st.lists(st.integers(-400, 400), min_size=1, max_size=9), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_noise_has_no_smallest_scale(exponent, thousandths, data):
    """Originals and ends were rounded to 10 decimals: noise of 1e-12 left everybody as a candidate."""
    scale, n = 10.0**exponent, len(thousandths)
    original = np.arange(1, n + 1) * scale
    released = original + np.array(thousandths) / 1000 * scale
    assert sizes(BoundedNoise("x", 0.45 * scale), original, released) == [1] * n
    far = [data.draw(st.sampled_from([0.9, 1.1])) for _ in released]
    wide = sizes(BoundedNoise("x", 1.3 * scale), original, original + (np.array(far) - 1) * scale)
    assert wide == [len({i - 1, i, i + 1} & set(range(n))) for i in range(n)]


def test_ends_that_floats_miss_are_within_the_noise():
    original = [0.1 + 0.2, 0.7, 500_000.3, 123.4]
    released = [0.1, 0.9, 500_000.1, 123.6]
    assert sizes(BoundedNoise("x", 0.2), original, released) == [1, 1, 1, 1]
    # Where floats are whole numbers, no other one is within a part of 1.
    large = 2.0**53 + 2 * np.arange(5)
    assert sizes(BoundedNoise("x", 0.4), large, large) == [1] * 5
    assert sizes(BoundedNoise("x", 1e308), [-1.7e308, 0.0, 1.7e308], [-1.7e308, 0.0, 1.7e308]) == [1, 1, 1]


@pytest.mark.parametrize("p", [0, 0.7, 7, 14, 28, 29, 29.0, 55, 57, 58, 99.9, 100])
def test_the_window_of_ranks_is_that_of_the_percentage_as_written(p):
    """29 / 100 * 100 is a little below 29 as a float: an honest swap of 29 ranks was a wrong mask."""
    values = np.arange(100)
    window = int(Fraction(str(p)))
    swapped = values.copy()
    farthest = min(window, 99)
    swapped[[0, farthest]] = swapped[[farthest, 0]]
    found = sizes(RankWindow("x", p), values, swapped)
    assert found == [sum(abs(x - y) <= window for x in values) for y in swapped]


def test_labels_may_have_the_spaces_of_the_original():
    original = [" Private", "Private", "Gov ", "x"]
    assert sizes(Label("x"), original, original) == [1, 1, 1, 1]
    # Without such a value the spaces around a label do not count.
    assert sizes(Label("x"), original[1:], ["Private ", "Gov ", " * "]) == [1, 1, 3]


@pytest.mark.parametrize(
    ("mask", "match"),
    [
        (BoundedNoise("x", "5"), "width of its noise is '5'"),
        (BoundedNoise("x", None), "width of its noise is None"),
        (BoundedNoise("x", True), "width of its noise is True"),
        (BoundedNoise("x", float("inf")), "width of its noise is inf"),
        (RankWindow("x", "5"), "window of ranks is '5' percent"),
        (RankWindow("x", float("nan")), "window of ranks is nan percent"),
    ],
)
def test_widths_and_percentages_that_are_no_numbers_are_refused(mask, match):
    with pytest.raises(InvalidSettingError, match=match):
        sizes(mask, [1, 2], [1, 2])


@pytest.mark.parametrize(
    ("mask", "original", "released"),
    [
        (BoundedNoise("x", 1), [None, None], ["secret", "9771"]),
        (BoundedNoise("x", 1), [None, None], pd.to_datetime(["1977-01-01", "1978-01-01"])),
        (Label("x"), [1, 2], [[1, 9771], [2]]),
        (Label("x"), ["secret", "b"], [{"secret", "b"}, "b"]),
    ],
)
def test_released_values_that_are_none_of_the_kind_are_refused_without_them(mask, original, released):
    with pytest.raises(InvalidTableError) as caught:
        sizes(mask, original, released)
    assert "'x'" in str(caught.value)
    assert not any(value in str(caught.value) for value in ("secret", "9771", "1977"))
