"""Probabilities of candidates: every way in which a release can come about, one by one."""

from itertools import product
from math import log

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import InvalidSettingError, MaskError
from privacy_assets.reidentification import (
    BeliefFunction,
    CandidateIndex,
    Exact,
    Interval,
    ReleaseModel,
    WeightedCandidates,
    combine,
)
from tests.examples import examples

MODEL = ReleaseModel({"a": Exact("a"), "b": Interval("b_low", "b_high", includes_high=True)})


def released_from(original, rows, below, above):
    cells = original.iloc[rows].reset_index(drop=True)
    return pd.DataFrame({"a": cells["a"], "b_low": cells["b"] - below, "b_high": cells["b"] + above})


@st.composite
def releases(draw):
    n = draw(st.integers(1, 4))
    numbers = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    original = pd.DataFrame({"a": draw(numbers), "b": draw(numbers)})
    rows = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3))
    return original, released_from(original, rows, draw(st.integers(0, 1)), draw(st.integers(0, 1))), rows


def enumerated(original, cells, known, rates):
    """Weigh every attacker's record by drawing, column by column, whether it is wrong and whose value is true."""
    values = original.to_dict("records")
    fits = {"a": lambda x: x == cells.a, "b": lambda x: cells.b_low <= x <= cells.b_high}
    weights = []
    for record in values:
        weight = 0.0
        for is_wrong in product([False, True], repeat=len(known)):
            for donors in product(*[values if wrong else [record] for wrong in is_wrong]):
                chance = 1.0
                for name, wrong in zip(known, is_wrong, strict=True):
                    chance *= rates[name] / len(values) if wrong else 1 - rates[name]
                if all(fits[name](donor[name]) for name, donor in zip(known, donors, strict=True)):
                    weight += chance
        weights.append(weight)
    return np.array(weights) / sum(weights)


@given(releases(), st.sampled_from([["a"], ["b"], ["a", "b"], []]), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_probabilities_are_those_of_all_ways_to_be_wrong(release, known, data):
    original, released, rows = release
    sizes = CandidateIndex(MODEL, original, released, rows, n_threads=1).sizes(known)
    rates = {name: data.draw(st.sampled_from([0.0, 0.01, 0.3, 1.0])) for name in known}
    weighted = WeightedCandidates(MODEL, original, released, rows)
    assessed = weighted.assess(known, error_rates=rates)
    for i, cells in enumerate(released.itertuples()):
        expected = enumerated(original, cells, known, rates)
        np.testing.assert_allclose(weighted.probabilities(i, known, error_rates=rates), expected, atol=1e-12)
        best = np.flatnonzero(expected >= expected.max() - 1e-9)
        figures = [
            expected.max(),
            (rows[i] in best) / len(best),
            expected[rows[i]],
            -sum(share * log(share) for share in expected if share > 0),
        ]
        np.testing.assert_allclose(assessed.records.iloc[i, 1:].astype(float), figures, atol=1e-9)
        assert expected.max() <= 1 / sizes[i] + 1e-12
    assert assessed.scores["max_reidentification_probability"] == assessed.records["largest_probability"].max()
    assert assessed.scores["mean_probability_of_truth"] == assessed.records["probability_of_truth"].mean()


@given(releases())
@settings(max_examples=examples(40), deadline=None)
def test_without_errors_they_are_uniform_on_the_candidates(release):
    original, released, rows = release
    index = CandidateIndex(MODEL, original, released, rows, n_threads=1)
    weighted = WeightedCandidates.of_index(index)
    for i in range(len(rows)):
        expected = index.belief(i, ["a", "b"]).pignistic()
        got = weighted.probabilities(i, ["a", "b"])
        assert {x: p for x, p in enumerate(got.tolist()) if p} == pytest.approx(expected)
    probability = weighted.assess().scores["mean_reidentification_probability"]
    assert probability == pytest.approx((1 / index.sizes(["a", "b"])).mean())


@given(releases(), st.sampled_from([0.05, 0.4]))
@settings(max_examples=examples(40), deadline=None)
def test_one_column_with_errors_is_the_discounted_belief(release, rate):
    original, released, rows = release
    weighted = WeightedCandidates(MODEL, original, released, rows)
    index = CandidateIndex(MODEL, original, released, rows, n_threads=1)
    for i in range(len(rows)):
        candidates, everybody = frozenset(index.members(i, ["b"]).tolist()), frozenset(range(len(original)))
        masses = {candidates: 1 - rate}
        masses[everybody] = masses.get(everybody, 0.0) + rate
        discounted = BeliefFunction(masses)
        probabilities = dict(enumerate(weighted.probabilities(i, ["b"], error_rates={"b": rate}).tolist()))
        assert probabilities == pytest.approx(discounted.pignistic())
        assert discounted.is_compatible_with(probabilities)


def test_independent_columns_are_combined_as_dempster_does_and_dependent_ones_are_not():
    def compare(original):
        model = ReleaseModel({"a": Exact("a"), "b": Exact("b")})
        weighted = WeightedCandidates(model, original, original, range(len(original)))
        everybody = frozenset(range(len(original)))
        parts = [
            BeliefFunction({frozenset(original.index[original[name] == original[name][0]]): 1 - rate, everybody: rate})
            for name, rate in (("a", 0.2), ("b", 0.4))
        ]
        combined = parts[0].combine(parts[1]).pignistic()
        got = weighted.probabilities(0, ["a", "b"], error_rates={"a": 0.2, "b": 0.4})
        return got.tolist(), [combined[record] for record in range(len(original))]

    got, dempster = compare(pd.DataFrame(list(product([0, 1], [0, 1, 2])), columns=["a", "b"]))
    assert got == pytest.approx(dempster)
    got, dempster = compare(pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 0, 1, 1]}))
    # By hand: those that fit weigh (.8 + .2 / 2) (.6 + .4 / 2) = .72, the others .2 / 2 * .4 / 2 = .02.
    assert got == pytest.approx([0.72 / 1.48, 0.72 / 1.48, 0.02 / 1.48, 0.02 / 1.48])
    assert dempster == pytest.approx([0.48, 0.48, 0.02, 0.02])


def test_errors_bring_back_whom_the_release_excludes():
    original = pd.DataFrame({"a": [1, 2, 3, 4], "b": [0, 0, 0, 0]})
    released = released_from(original, [0, 1, 2, 3], 0, 0)
    weighted = WeightedCandidates(MODEL, original, released, range(4))
    assert weighted.assess(["a"]).scores["max_reidentification_probability"] == 1
    scores = weighted.assess(["a"], error_rates={"a": 0.2}).scores
    assert scores["max_reidentification_probability"] == pytest.approx(0.85)
    assert scores["expected_correct_links"] == 1
    assert weighted.assess(["a"], error_rates={"a": 5e-324}).scores["max_reidentification_probability"] == 1
    nothing = weighted.assess(["a"], error_rates={"a": 1}).scores
    assert nothing["max_reidentification_probability"] == pytest.approx(1 / 4)
    assert nothing["min_entropy"] == pytest.approx(log(4))


def test_an_error_counts_once_for_a_column_of_two_releases():
    original = pd.DataFrame({"key": [0, 1, 2, 3], "b": [0, 1, 2, 3]})
    model = ReleaseModel({"b": Interval("low", "high", includes_high=True)})

    def index(low, high):
        released = pd.DataFrame({"key": [0, 1, 2, 3], "low": low, "high": high})
        return CandidateIndex(model, original, released, "key", keys=["key"], n_threads=1)

    both = combine([index([0, 0, 1, 1], [1, 1, 3, 3]), index([0, 0, 2, 2], [2, 2, 3, 3])], "key")
    got = WeightedCandidates.of_index(both).probabilities(2, ["b"], error_rates={"b": 0.4})
    assert got.tolist() == pytest.approx([0.1, 0.1, 0.4, 0.4])


@pytest.mark.parametrize(
    ("known", "rates", "message"),
    [
        ("a", {}, "`known` is a string"),
        (["c"], {}, r"does not describe: \['c'\]"),
        (["a"], {"b": 0.1}, r"not in `known`: \['b'\]"),
        (["a"], {"a": 1.1}, r"rates of \['a'\] are not numbers from 0 to 1"),
        (["a"], {"a": True}, "are not numbers from 0 to 1"),
        (["a"], {"a": float("nan")}, "are not numbers from 0 to 1"),
    ],
)
def test_bad_requests_are_refused(known, rates, message):
    original = pd.DataFrame({"a": [1, 2], "b": [0, 0]})
    weighted = WeightedCandidates(MODEL, original, released_from(original, [0, 1], 0, 0), [0, 1])
    with pytest.raises(InvalidSettingError, match=message):
        weighted.assess(known, error_rates=rates)
    with pytest.raises(InvalidSettingError, match="no released record 2"):
        weighted.probabilities(2, ["a"])


def test_wrong_masks_and_people_are_refused():
    original = pd.DataFrame({"a": [1, 2], "b": [0, 0], "who": ["x", "x"]})
    released = released_from(original, [0, 1], 0, 0)
    with pytest.raises(MaskError, match="The true original is not among the candidates"):
        WeightedCandidates(MODEL, original, released, [1, 0])
    with pytest.raises(InvalidSettingError, match="counts people"):
        WeightedCandidates.of_index(CandidateIndex(MODEL, original, released, [0, 1], subject="who"))
