import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns.masks import Interval, ReleaseModel, Suppressed
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.linkage.matching import match_candidates
from privacy_assets.reidentification.candidate_index import CandidateIndex
from tests.examples import examples
from tests.reference import reidentification as reference

MODEL = ReleaseModel({"x": Interval("low", "high", True), "y": Suppressed()})


@st.composite
def releases(draw):
    """Originals with few values, intervals around them, some not released."""
    values = draw(st.lists(st.integers(0, 5), min_size=1, max_size=6))
    original = pd.DataFrame({"x": values, "y": 0})
    truth = draw(st.permutations(range(len(values))))
    truth = truth[: draw(st.integers(1, len(values)))]
    below, above = (draw(st.lists(st.integers(0, 3), min_size=6, max_size=6)) for _ in range(2))
    rows = [(values[x] - below[i], values[x] + above[i]) for i, x in enumerate(truth)]
    return original, pd.DataFrame(rows, columns=["low", "high"]), np.array(truth)


@given(releases())
@settings(max_examples=examples(150), deadline=None)
def test_candidates_that_remain_are_those_of_some_perfect_matching(drawn):
    original, released, truth = drawn
    index = CandidateIndex(MODEL, original, released, truth, n_threads=1)
    own = [index.members(i, ["x"]).tolist() for i in range(len(released))]
    matchings = reference.perfect_matchings(own, len(original))
    found = match_candidates(index, ["x"])
    for i in range(len(released)):
        expected = sorted({matching[i] for matching in matchings})
        assert found.members(i).tolist() == expected
        assert found.sizes[i] == len(expected)


def test_nothing_known_leaves_everybody():
    original = pd.DataFrame({"x": [1, 2, 3], "y": 0})
    index = CandidateIndex(MODEL, original, pd.DataFrame({"low": [0, 0], "high": [9, 9]}), [0, 2])
    for known in ([], ["y"], ["x"]):
        found = match_candidates(index, known)
        assert found.sizes.tolist() == [3, 3]
        assert found.members(1).tolist() == [0, 1, 2]


def test_records_released_twice_and_people_are_refused():
    original = pd.DataFrame({"x": [1, 2, 3], "y": 0})
    released = pd.DataFrame({"low": [0, 0], "high": [9, 9]})
    with pytest.raises(InvalidTableError, match="1 released records have the same original"):
        match_candidates(CandidateIndex(MODEL, original, released, [1, 1]), ["x"])
    with pytest.raises(InvalidSettingError, match="counts people"):
        match_candidates(CandidateIndex(MODEL, original, released, [0, 1], subject="y"), ["x"])
