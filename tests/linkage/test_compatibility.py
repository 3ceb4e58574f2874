import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError
from privacy_assets.linkage.compatibility import is_compatible
from privacy_assets.linkage.uniform_compatibility import Side, _Program, decide_by_program, decide_quickly
from tests.examples import examples
from tests.linkage.all_pairs import group, least_slack
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
@settings(max_examples=examples(300), deadline=None)
def test_the_linear_program_agrees_with_all_focal_sets(drawn):
    truth, claimed = drawn
    assert is_compatible(truth, claimed) == reference.is_compatible(truth, claimed)


@given(probabilities(), st.sampled_from([1e-7, 0.003, 0.03, 0.2]))
@settings(max_examples=examples(150), deadline=None)
def test_the_tolerance_is_what_claims_may_miss_in_all(drawn, tolerance):
    """It did nothing but where there is one candidate."""
    truth, claimed = drawn
    if (claimed[truth > 0] == 0).any():
        assert not is_compatible(truth, claimed, tolerance=tolerance)
        return
    missed = reference.least_miss(truth, claimed)
    if abs(missed - tolerance) > 1e-6:
        assert is_compatible(truth, claimed, tolerance=tolerance) == (missed <= tolerance)


@st.composite
def edge_claims(draw):
    """A claim of focal sets of the greatest weights: at the edge of what is compatible, or moved off it."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.integers(3, 20))
    n_candidates = draw(st.integers(2, n))
    claimed = np.full(n, 1e-6)
    for _ in range(draw(st.integers(1, 2))):
        weights = np.concatenate(
            [-np.sort(-rng.normal(draw(st.sampled_from([0, 1])), 1, own)) for own in (n_candidates, n - n_candidates)]
        )
        order = np.argsort(-weights)
        for x in range(n_candidates):
            means = [(weights[x] + weights[order[:j]].sum()) / (j + 1) for j in range(n + 1)]
            own = np.unique([x, *order[: int(np.argmax(means))]])
            claimed[own] += 1 / len(own)
    claimed[draw(st.integers(0, n - 1))] += draw(st.sampled_from([0, 0, 0.01, 0.5]))
    return n_candidates, claimed / claimed.sum()


@given(edge_claims())
@settings(max_examples=examples(150), deadline=None)
def test_quick_tests_and_growing_program_agree_with_the_program_of_all_pairs(drawn):
    n_candidates, claimed = drawn
    truth = np.where(np.arange(len(claimed)) < n_candidates, 1 / n_candidates, 0)
    missed = least_slack(group(truth, claimed))
    inside, outside = claimed[:n_candidates], claimed[n_candidates:]
    for tolerance in (1e-7, 0.01):
        if abs(missed - tolerance) > 1e-6 and (missed > 1e-12 or tolerance > 1e-6):
            expected = missed <= tolerance
            assert decide_by_program(inside, outside, tolerance=tolerance) == expected
            assert decide_quickly(inside, outside, tolerance=tolerance) in (None, expected)
            assert is_compatible(truth, claimed, tolerance=tolerance) == expected
    if missed <= 1e-12:
        assert is_compatible(truth, claimed)


def test_hundreds_of_different_claims_need_few_bounds():
    """Of all pairs of 400 records and 200 candidates the program took a quarter of a minute."""
    rng = np.random.default_rng(0)
    claimed = np.exp(-rng.uniform(0, 3, 400))
    claimed /= claimed.sum()
    program = _Program(Side.of(claimed[:200]), Side.of(claimed[200:]))
    assert program.decide(1e-7)
    assert program.n_rows < 400 * 200 / 10


@pytest.mark.parametrize(
    ("truth", "claims", "tolerance", "match"),
    [
        ([0.5, 0.5], [1.0], 0, r"the shapes \(2,\) and \(1,\)"),
        ([0.5, 0.4], [0.5, 0.5], 0, "not probabilities"),
        ([0.5, 0.5], [1.5, -0.5], 0, "not probabilities"),
        ([0.5, np.nan], [0.5, 0.5], 0, "not probabilities"),
        ([[1.0]], [[1.0]], 0, "not probabilities"),
        ([], [], 0, "not probabilities"),
        ([1.0], [1.0], 1.0, "tolerance is 1.0"),
    ],
)
def test_what_are_no_probabilities_of_the_same_records_is_refused(truth, claims, tolerance, match):
    with pytest.raises(InvalidSettingError, match=match):
        is_compatible(truth, claims, tolerance=tolerance)


def test_too_many_different_probabilities_are_refused_unless_the_truth_is_uniform():
    claims = np.arange(1, 1_001) / np.arange(1, 1_001).sum()
    assert is_compatible(np.full(1_000, 1 / 1_000), np.full(1_000, 1 / 1_000))
    with pytest.raises(InvalidSettingError, match="1000 records with a true probability above 0, of 1000"):
        is_compatible(claims[::-1], claims)


def test_sums_that_rounding_left_are_no_error_of_the_claims():
    assert is_compatible([0.7000004, 0.3], [0.5, 0.4999996])


def test_links_and_supersets():
    for k in (1, 2, 5):
        truth = np.array([1 / k] * k + [0])
        assert is_compatible(truth, np.array([1] + [0] * k)) == (k == 1)
    assert is_compatible(np.array([1 / 3] * 3 + [0] * 4), np.full(7, 1 / 7))
    # Proposition 19: half of the probability on a record that is no candidate.
    assert is_compatible(np.array([0.2] * 5 + [0]), np.array([0.1] * 5 + [0.5]))
    assert not is_compatible(np.array([0.2] * 5 + [0]), np.array([0.08] * 5 + [0.6]))
