import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.tables.compatibility import is_compatible
from privacy_assets.tables.errors import InvalidSettingError
from tests.reference import reidentification as reference


@st.composite
def probabilities(draw):
    """A true and a claimed probability; half of the claims are made of focal sets, so that they are compatible."""
    n = draw(st.integers(2, 5))
    weights = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n).filter(any))
    truth = np.array(weights) / sum(weights)
    if draw(st.booleans()):
        truth = (truth > 0) / (truth > 0).sum()
    if draw(st.booleans()):
        claimed = np.zeros(n)
        for x in np.flatnonzero(truth):
            for _ in range(2):
                focal = draw(st.frozensets(st.integers(0, n - 1))) | {int(x)}
                claimed[sorted(focal)] += truth[x] / 2 / len(focal)
        shift = draw(st.sampled_from([0.0, 0.0, 0.05]))
        claimed[0] += shift
        claimed /= 1 + shift
    else:
        own = draw(st.lists(st.integers(0, 6), min_size=n, max_size=n).filter(any))
        claimed = np.array(own) / sum(own)
    return truth, claimed


@given(probabilities())
@settings(max_examples=300, deadline=None)
def test_the_linear_program_agrees_with_all_focal_sets(drawn):
    truth, claimed = drawn
    assert is_compatible(truth, claimed) == reference.is_compatible(truth, claimed)


def test_links_and_supersets():
    for k in (1, 2, 5):
        truth = np.array([1 / k] * k + [0])
        assert is_compatible(truth, np.array([1] + [0] * k)) == (k == 1)
    assert is_compatible(np.array([1 / 3] * 3 + [0] * 4), np.full(7, 1 / 7))
    # Proposition 19: half of the probability on a record that is no candidate.
    assert is_compatible(np.array([0.2] * 5 + [0]), np.array([0.1] * 5 + [0.5]))
    assert not is_compatible(np.array([0.2] * 5 + [0]), np.array([0.08] * 5 + [0.6]))


@pytest.mark.parametrize(
    ("truth", "claimed", "match"),
    [
        ([0.5, 0.5], [1.0], "2 true and 1 claimed"),
        ([0.0, 0.0], [1.0, 0.0], "The true probability"),
        ([1.0, 0.0], [-1.0, 2.0], "The claimed probability"),
        ([1.0, 0.0], [np.nan, 2.0], "not finite"),
        ([[1.0]], [1.0], r"shape \(1, 1\)"),
    ],
)
def test_what_is_no_probability_is_refused(truth, claimed, match):
    with pytest.raises(InvalidSettingError, match=match):
        is_compatible(np.array(truth), np.array(claimed))
