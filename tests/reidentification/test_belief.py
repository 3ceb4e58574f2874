import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError
from privacy_assets.reidentification.belief import BeliefFunction
from tests.examples import examples
from tests.reference import reidentification as reference

RECORDS = range(5)


@st.composite
def masses(draw):
    focal = draw(st.lists(st.frozensets(st.sampled_from(RECORDS), min_size=1), min_size=1, max_size=6, unique=True))
    weights = draw(st.lists(st.integers(0, 9), min_size=len(focal), max_size=len(focal)).filter(any))
    return {own: weight / sum(weights) for own, weight in zip(focal, weights, strict=True)}


@given(masses(), st.frozensets(st.sampled_from(RECORDS)))
@settings(max_examples=examples(200), deadline=None)
def test_belief_is_at_most_probability_is_at_most_plausibility(drawn, event):
    found = BeliefFunction(drawn)
    assert sum(found.masses.values()) == pytest.approx(1)
    probability = sum(found.pignistic().get(record, 0) for record in event)
    assert found.belief(event) <= probability + 1e-12
    assert probability <= found.plausibility(event) + 1e-12
    assert found.belief(event) == pytest.approx(reference.belief(drawn, event))
    assert found.plausibility(event) == pytest.approx(reference.plausibility(drawn, event))
    assert found.belief(event) == pytest.approx(1 - found.plausibility(set(RECORDS) - event))
    assert found.pignistic() == pytest.approx({k: v for k, v in reference.pignistic(drawn).items() if v > 0})
    assert found.entropy() == pytest.approx(reference.entropy(drawn))
    assert found.nonspecificity() == pytest.approx(reference.nonspecificity(drawn))


@given(masses(), masses())
@settings(max_examples=examples(150), deadline=None)
def test_compatibility_is_that_of_all_sets(drawn, other):
    truth = reference.pignistic(other)
    found = BeliefFunction(drawn)
    events = reference.subsets(RECORDS)
    expected = all(sum(truth.get(x, 0) for x in event) >= reference.belief(drawn, event) - 1e-9 for event in events)
    assert found.is_compatible_with(truth) == expected
    assert BeliefFunction(other).is_compatible_with(truth)


def test_one_candidate_is_certain_and_many_are_not():
    one = BeliefFunction.categorical([3])
    assert (one.belief([3]), one.nonspecificity(), one.entropy()) == (1, 0, 0)
    two = BeliefFunction.categorical([3, 4])
    assert (two.belief([3]), two.plausibility([3]), two.pignistic()) == (0, 1, {3: 0.5, 4: 0.5})


@pytest.mark.parametrize(
    ("drawn", "match"),
    [
        ({frozenset([1]): 0.5}, "add up to 0.5"),
        ({frozenset([1]): 1.5, frozenset([2]): -0.5}, "the smallest is -0.5"),
        ({frozenset([1]): float("nan")}, "add up to nan"),
        ({frozenset(): 1.0}, "empty set has a mass"),
        ({}, "0 masses"),
    ],
)
def test_masses_that_are_none_are_refused(drawn, match):
    with pytest.raises(InvalidSettingError, match=match):
        BeliefFunction(drawn)
