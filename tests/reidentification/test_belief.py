import math
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacy_assets.errors import ConflictError, InvalidSettingError
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


@given(masses(), masses(), st.sampled_from([1e-9, 0.1001, 0.3001]))
@settings(max_examples=examples(300), deadline=None)
def test_compatibility_is_that_of_all_sets(drawn, other, tolerance):
    truth = reference.pignistic(other)
    found = BeliefFunction(drawn)
    events = reference.subsets(RECORDS)
    worst = min(sum(truth.get(x, 0) for x in event) - reference.belief(drawn, event) for event in events)
    assume(abs(worst + tolerance) > 1e-10)
    assert found.is_compatible_with(truth, tolerance) == (worst >= -tolerance)
    assert BeliefFunction(other).is_compatible_with(truth)


@pytest.mark.parametrize("second", [[{0}, {1}], [{0, 1}, {2, 3}]])
def test_a_tolerance_is_that_of_each_set_and_not_of_each_part(second):
    hints = BeliefFunction({frozenset(second[0]): 0.25, frozenset(second[1]): 0.25, frozenset([4]): 0.5})
    truth = {min(second[0]): 0.16, min(second[1]): 0.16, 4: 0.68}
    assert not hints.is_compatible_with(truth, tolerance=0.1)
    assert hints.is_compatible_with(truth, tolerance=0.19)


def test_many_focal_sets_of_one_record_are_compared_at_once():
    shares = dict.fromkeys(range(5000), 1 / 5000)
    found = BeliefFunction({frozenset([record]): share for record, share in shares.items()})
    assert found.is_compatible_with(shares)
    assert not found.is_compatible_with(shares | {0: 0.0, 1: 2 / 5_000})
    pairs = BeliefFunction({frozenset([record, record + 2_500]): 2 / 5_000 for record in range(2_500)})
    assert pairs.is_compatible_with(shares)
    assert not pairs.is_compatible_with(shares | {0: 0.0, 2_500: 0.0, 1: 3 / 5_000})


def test_unions_that_are_too_many_to_compare_are_refused():
    chain = BeliefFunction({frozenset([record, record + 1]): 1 / 50 for record in range(50)})
    with pytest.raises(InvalidSettingError, match="More than 100,000 unions of focal sets share records"):
        chain.is_compatible_with(dict.fromkeys(range(51), 1 / 51))


@pytest.mark.parametrize(
    ("truth", "match"),
    [
        ({0: 5.0}, "1 records sum to 5"),
        ({0: 1.5, 1: -0.5}, "the smallest is -0.5"),
        ({0: float("nan")}, "sum to nan"),
        ({}, "0 records sum to 0"),
    ],
)
def test_a_truth_that_is_not_a_probability_is_refused(truth, match):
    with pytest.raises(InvalidSettingError, match=match):
        BeliefFunction.categorical([0]).is_compatible_with(truth)


@given(masses(), masses(), masses())
@settings(max_examples=examples(150), deadline=None)
def test_combining_is_intersecting_what_independent_sources_believe(first, second, third):
    """Enumerate all triples at once, where the package goes source by source."""
    expected = {}
    for triple in product(first.items(), second.items(), third.items()):
        common = frozenset.intersection(*(focal for focal, _ in triple))
        expected[common] = expected.get(common, 0) + prod(mass for _, mass in triple)
    expected.pop(frozenset(), None)
    total = sum(expected.values())
    functions = [BeliefFunction(each) for each in (first, second, third)]
    if total == 0:
        with pytest.raises(ConflictError, match="The evidence contradicts itself"):
            functions[0].combine(*functions[1:])
        return
    found = functions[0].combine(*functions[1:])
    assert found.masses == pytest.approx({focal: mass / total for focal, mass in expected.items() if mass > 0})
    assert functions[2].combine(functions[0], functions[1]).masses == pytest.approx(found.masses)


def test_conditioning_is_that_of_probabilities_where_all_focal_sets_are_records():
    found = BeliefFunction({frozenset([1]): 0.5, frozenset([2]): 0.3, frozenset([3]): 0.2}).condition([2, 3, 4])
    assert found.masses == pytest.approx({frozenset([2]): 0.6, frozenset([3]): 0.4})
    with pytest.raises(ConflictError):
        found.condition([1])


def test_what_two_releases_say_of_a_record_is_acceptable_where_the_truth_is_in_both():
    releases = [BeliefFunction.categorical([1, 2, 3]), BeliefFunction.categorical([2, 3, 4])]
    both = releases[0].combine(releases[1])
    assert both.masses == {frozenset([2, 3]): 1.0}
    assert both.is_acceptable_combination_of(releases, {2: 1.0})
    assert not releases[0].is_acceptable_combination_of([both], {2: 1.0})
    with pytest.raises(InvalidSettingError, match="1 of 2 belief functions are not compatible"):
        both.is_acceptable_combination_of(releases, {1: 1.0})
    # Dempster's rule lets two weak hints add up to more than the truth admits.
    hint = BeliefFunction({frozenset([1]): 0.5, frozenset([1, 2]): 0.5})
    assert not hint.combine(hint).is_acceptable_combination_of([hint, hint], {1: 0.5, 2: 0.5})


@given(masses(), masses())
@settings(max_examples=examples(60), deadline=None)
def test_an_acceptable_combination_is_as_specific_as_all_common_truths_allow(first, second):
    functions = [BeliefFunction(each) for each in (first, second)]
    least = reference.least_nonspecificity(*({own: m for own, m in each.items() if m} for each in (first, second)))
    if least is None:
        with pytest.raises(ConflictError, match="no probability is compatible with both"):
            functions[0].combine_acceptably(functions[1])
        return
    assert functions[0].combine_acceptably(functions[1]).nonspecificity() == pytest.approx(least, abs=1e-6)


@pytest.fixture(scope="module")
def random_pairs():
    """300 pairs of belief functions of 2 to 4 records, with a truth that is compatible with both."""
    rng = np.random.default_rng(1)
    pairs = []
    for _ in range(300):
        n = int(rng.integers(2, 5))
        truth = rng.dirichlet(np.ones(n))
        own = []
        for _ in range(2):
            moved = {}
            for record in range(n):
                for _ in range(2):
                    focal = frozenset(np.flatnonzero(rng.random(n) < 0.5).tolist()) | {record}
                    moved[focal] = moved.get(focal, 0) + truth[record] / 2
            own.append(BeliefFunction(moved))
        pairs.append((own, dict(enumerate(truth.tolist()))))
    return pairs


def test_dempsters_rule_contradicts_the_truth_of_176_of_300_random_pairs(random_pairs):
    assert sum(not own[0].combine(own[1]).is_compatible_with(truth) for own, truth in random_pairs) == 176


def test_the_acceptable_combination_contradicts_none_of_them(random_pairs):
    for own, truth in random_pairs:
        assert own[0].combine_acceptably(own[1]).is_acceptable_combination_of(own, truth)


def test_definition_28_and_proposition_29_of_several_sources(random_pairs):
    """Specificity never falls, and a probability among the sources is what the combination becomes."""
    for own, truth in random_pairs[:20]:
        certain = BeliefFunction({frozenset([record]): share for record, share in truth.items()})
        sources, n_before = [own[0], own[1], BeliefFunction.categorical(truth), certain], float("inf")
        for r in range(1, 5):
            combined = sources[0].combine_acceptably(*sources[1:r])
            assert combined.is_compatible_with(truth)
            assert combined.nonspecificity() <= n_before + 1e-9
            n_before = combined.nonspecificity()
        assert combined.masses == pytest.approx(certain.masses, abs=1e-9)


def test_evidence_that_depends_on_itself_adds_nothing_and_sets_are_intersected():
    hint = BeliefFunction({frozenset([1]): 0.5, frozenset([1, 2]): 0.5})
    assert hint.combine_acceptably(hint).masses == pytest.approx(hint.masses)
    many = [BeliefFunction.categorical(range(start, start + 50_000)) for start in (0, 20_000)]
    assert many[0].combine_acceptably(many[1]).masses == {frozenset(range(20_000, 50_000)): 1.0}
    # No one set of pairs of focal sets suits both truths, (0, 1/2, 1/2, 0) and (1/2, 0, 0, 1/2).
    halves = [BeliefFunction({frozenset(own): 0.5 for own in two}) for two in (((0, 1), (2, 3)), ((0, 2), (1, 3)))]
    both = halves[0].combine_acceptably(halves[1])
    assert both.nonspecificity() == pytest.approx(math.log(2))
    for truth in ({1: 0.5, 2: 0.5}, {0: 0.5, 3: 0.5}):
        assert both.is_acceptable_combination_of(halves, truth)


def test_too_many_unions_to_bound_are_refused():
    chain = BeliefFunction({frozenset([record, record + 1]): 1 / 16 for record in range(16)})
    with pytest.raises(InvalidSettingError, match="16 and 16 focal sets have more than 4,000 unions"):
        chain.combine_acceptably(chain)


@given(masses())
@settings(max_examples=examples(150), deadline=None)
def test_masses_are_found_from_the_beliefs_of_all_sets(drawn):
    own = BeliefFunction(drawn)
    records = sorted(set().union(*drawn))
    belief = {event: own.belief(event) for event in map(frozenset, reference.subsets(records)) if event}
    assert BeliefFunction.from_belief(belief).masses == pytest.approx(own.masses)


def test_beliefs_that_masses_cannot_have_are_refused():
    two = {frozenset([1]): 0.7, frozenset([2]): 0.7, frozenset([1, 2]): 1.0}
    with pytest.raises(InvalidSettingError, match="the smallest is -0.4"):
        BeliefFunction.from_belief(two)
    with pytest.raises(InvalidSettingError, match="belief of 1 of 3 sets of 2 records is missing"):
        BeliefFunction.from_belief({frozenset([1]): 0.5, frozenset([1, 2]): 1.0})


def test_one_candidate_is_certain_and_many_are_not():
    one = BeliefFunction.categorical([3])
    assert (one.belief([3]), one.nonspecificity(), one.entropy()) == (1, 0, 0)
    two = BeliefFunction.categorical([3, 4])
    assert (two.belief([3]), two.plausibility([3]), two.pignistic()) == (0, 1, {3: 0.5, 4: 0.5})


@pytest.mark.parametrize(
    ("drawn", "match"),
    [
        ({frozenset([1]): 0.5}, "sum to 0.5"),
        ({frozenset([1]): 1.5, frozenset([2]): -0.5}, "the smallest is -0.5"),
        ({frozenset([1]): float("nan")}, "sum to nan"),
        ({frozenset(): 1.0}, "empty set has a mass"),
        ({}, "0 masses"),
    ],
)
def test_masses_that_are_none_are_refused(drawn, match):
    with pytest.raises(InvalidSettingError, match=match):
        BeliefFunction(drawn)
