"""The test is exact: its p values are those of all divisions, and uniform where the synthetic table knows no labels."""

from itertools import combinations, islice

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kstest

from privacy_assets.disclosure import permutation_test
from privacy_assets.disclosure.criteria import criteria_asked, weights_of
from privacy_assets.disclosure.permutation_test import (
    adjusted_p_values,
    as_integers,
    detectable_people,
    is_detected,
    joined,
    p_values,
    permuted_sums,
    sums_to_decide,
    trials,
)
from privacy_assets.disclosure.pooled_records import pool_records
from privacy_assets.disclosure.scores import (
    Attack,
    Workers,
    gather_evidence,
    score_records,
)
from tests.examples import examples
from tests.reference import disclosure as reference

N_PEOPLE, N_ORIGINAL = 8, 4
WEIGHTS = st.lists(st.sampled_from([1, 4]), min_size=4, max_size=4)
DIVISIONS = np.array(list(combinations(range(N_PEOPLE), N_ORIGINAL)))


class Effect:
    """Copies that take nothing from others."""

    def __init__(self, added):
        self.added = added

    def draw(self, m, rng):
        return self.added[rng.integers(0, len(self.added), m)], np.ones(self.added.shape[1])


def scores_of(original, control, synthetic, workers):
    records = pool_records({"original": original, "control": control, "synthetic": synthetic}, {})
    attack = Attack(np.arange(len(records.columns)), 2, np.arange(records.n_real))
    evidence = gather_evidence(records, attack, workers)
    return score_records(attack.criteria(records).values(), evidence, evidence)


def small_table(n, random):
    return pd.DataFrame(
        {
            "age": random.integers(0, 30, n),
            "town": random.choice(["a", "b", "c", "d", "e"], n),
            "cost": np.where(random.random(n) < 0.2, np.nan, random.integers(0, 4, n)),
        }
    )


@settings(max_examples=examples(200), deadline=None)
@given(arrays(np.int64, st.tuples(st.integers(2, 15), st.integers(1, 4)), elements=st.integers(-3, 3)), WEIGHTS)
def test_p_values_are_those_of_the_definition(sums, weights):
    weights = np.array(weights[: sums.shape[1]])
    expected = reference.min_p_step_down(sums.tolist(), weights.tolist())
    assert adjusted_p_values(weights * p_values(sums)) == pytest.approx([float(own) for own in expected])


@given(
    arrays(np.int64, st.tuples(st.integers(1, 25), st.integers(1, 4)), elements=st.integers(-4, 4)),
    WEIGHTS,
    st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.5, 0.9, 1.0]),
)
def test_what_a_trial_detects_is_what_the_adjusted_p_values_say(sums, weights, level):
    weights = np.array(weights[: sums.shape[1]])
    assert is_detected(sums, weights, level) == (adjusted_p_values(weights * p_values(sums)).min() <= level)


def test_p_values_are_uniform_on_a_thousand_small_tables():
    """Of each table, labels are drawn at random, and its p value is found by enumeration of all 70 divisions."""
    random = np.random.default_rng(0)
    uniform, smallest = [], []
    asked = criteria_asked(has_synthetic_people=False, has_named_columns=False)
    weights = weights_of(asked.values())
    with Workers(1, None) as workers:
        for _ in range(examples(1000)):
            pool, synthetic = small_table(N_PEOPLE, random), small_table(10, random)
            labels = random.permutation(N_PEOPLE)
            original, control = pool.iloc[labels[:N_ORIGINAL]], pool.iloc[labels[N_ORIGINAL:]]
            whole, _ = as_integers(scores_of(original, control, synthetic, workers))
            # The originals are the first records, and so are those of the first division.
            sums = whole[DIVISIONS].sum(axis=1)
            above, equal = (sums > sums[0]).mean(axis=0), (sums == sums[0]).mean(axis=0)
            uniform.append(above + random.random(whole.shape[1]) * equal)
            smallest.append(adjusted_p_values(weights * p_values(sums)).min())
    for j, criterion in enumerate(asked):
        assert kstest(np.array(uniform)[:, j], "uniform").pvalue > 0.001, criterion
    for level in (0.05, 0.1, 0.2, 0.5):
        # Ties make the test conservative, never liberal: three standard errors above is all that chance explains.
        assert np.mean(np.array(smallest) <= level) <= level + 3 * np.sqrt(level * (1 - level) / len(smallest))
    assert np.mean(np.array(smallest) <= 0.2) > 0.05


def test_a_score_that_looks_at_labels_is_not_uniform():
    """The test above can fail: the number of synthetic records nearest to originals alone."""
    random = np.random.default_rng(0)
    p = []
    for _ in range(200):
        scores = random.integers(0, 5, (N_PEOPLE, 1))
        scores[:N_ORIGINAL] += 1
        sums = scores[DIVISIONS].sum(axis=1)
        p.append((sums > sums[0]).mean() + random.random() * (sums == sums[0]).mean())
    assert kstest(p, "uniform").pvalue < 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_scores_do_not_depend_on_the_labels(seed):
    """Precision, bins and frequencies are those of all real records, also where one side alone has missing values."""
    random = np.random.default_rng(seed)
    pool, synthetic = small_table(60, random), small_table(50, random)
    pool["exact"] = np.where(np.arange(60) < 30, random.random(60).round(1), random.random(60).round(4))
    synthetic["exact"] = random.random(50).round(6)
    pool["cost"] = pool["cost"].where(np.arange(60) >= 30, 1.0)
    order = random.permutation(60)
    with Workers(1, None) as workers:
        first = scores_of(pool[:30].astype({"cost": int}), pool[30:], synthetic, workers)
        second = scores_of(pool.iloc[order[:30]], pool.iloc[order[30:]], synthetic, workers)
    assert second == pytest.approx(first[order], abs=1e-12)
    assert (first.std(axis=0) > 0).sum() >= 4


def test_random_divisions_have_the_sums_of_all():
    random = np.random.default_rng(1)
    scores = random.integers(0, 1000, (N_PEOPLE, 2))
    for n_original in (3, 6):
        every = scores[np.array(list(combinations(range(N_PEOPLE), n_original)))].sum(axis=1)
        drawn = permuted_sums(scores, n_original, 4000, random)
        assert {tuple(own) for own in drawn} == {tuple(own) for own in every}
        assert drawn.mean(axis=0) == pytest.approx(every.mean(axis=0), rel=0.02)


@pytest.mark.parametrize(("n_beyond", "n_drawn"), [(0, 999), (200, 999), (45, 9_999)])
def test_there_are_more_divisions_where_they_could_change_the_decision(n_beyond, n_drawn, monkeypatch):
    drawn = []

    def divided(scores, n_original, n, rng, on_done=None):
        drawn.append(n)
        return np.where(np.arange(n) < n_beyond * n // 999, 10, 0)[:, None]

    monkeypatch.setattr(permutation_test, "permuted_sums", divided)
    sums = sums_to_decide(np.full((4, 1), 4), 2, 999, np.ones(1), 0.05, np.random.default_rng(0))
    assert len(sums) - 1 == sum(drawn) == n_drawn
    assert sums[0].tolist() == [8]


def test_several_scores_of_a_criterion_count_as_the_one_that_is_farthest():
    sums = np.array([[5, 1, 40], [5, 2, 10], [6, 3, 20], [4, 2, 10]])
    several = sums[:, 1:].astype(float)
    standardized = (several - several.mean(axis=0)) / several.std(axis=0)
    found = joined(sums, 2)
    assert found[:, 0].tolist() == [5, 5, 6, 4]
    assert found[:, 1] / 1e9 == pytest.approx(standardized.max(axis=1))
    assert np.array_equal(joined(sums, 3), sums)


def test_integers_keep_scores_and_never_overflow():
    scores = np.array([[1.0, 1e12, 0.0, -3e-7], [0.0, -1e12, 0.0, 2e-7]] * 500)
    whole, units = as_integers(scores)
    assert whole * units == pytest.approx(scores, rel=1e-6)
    assert np.array_equal(np.abs(whole.astype(object)).sum(axis=0) < 2**63, [True] * 4)


def detectable(scores, added, n_original, random):
    """Detectable people if all have the same score and copies add to it."""
    sums = np.zeros((999, 1), np.int64)
    return detectable_people(sums, scores, np.ones(1), np.ones(1), Effect(added), n_original, 0.05, random)[0]


def test_copies_that_nothing_else_resembles_need_their_chance_to_be_originals():
    """With a score of 0 for all but m copies, p is the chance that all m are originals: (2 / 3) ** m."""
    scores, random = np.zeros((3000, 1), np.int64), np.random.default_rng(0)
    # (2 / 3) ** 7 is 0.059 and (2 / 3) ** 8 is 0.039; of 399 divisions at most 0.05 are all originals a little later.
    assert detectable(scores, np.ones((50, 1)), 2000, random) in (
        8,
        9,
    )
    assert detectable(scores, np.zeros((50, 1)), 2000, random) is None
    half = np.zeros((1000, 1), np.int64)
    assert detectable(half, np.ones((50, 1)), 500, random) in (
        5,
        6,
    )


def test_who_is_copied_matters_where_copies_of_most_people_add_nothing():
    """If one copy in ten shows, so many are needed that enough of them do in 19 of 20 draws."""
    scores, random = np.zeros((3000, 1), np.int64), np.random.default_rng(0)
    m = detectable(scores, (np.arange(200) % 10 == 0).astype(float)[:, None], 2000, random)
    # 8 of them show in 19 of 20 draws of 140.
    assert 110 <= m <= 200
    draws = random.random((1000, m)) < 0.1
    assert ((2 / 3) ** draws.sum(axis=1) <= 0.05).mean() >= 0.93


@pytest.mark.parametrize("n_alone", [100, 0])
def test_trials_of_many_copies_agree_with_the_test_itself(n_alone, monkeypatch):
    """Those that are drawn one by one, and those that are drawn as normal."""
    monkeypatch.setattr(permutation_test, "MOST_ONE_BY_ONE", n_alone)
    n, n_original, m, random = 600, 400, 60, np.random.default_rng(2)
    weights = np.array([1.0, 2.0])
    base = random.normal(size=(n, 2))
    effects = np.column_stack([random.exponential(1.0, 200), random.normal(0.2, 1, 200)])
    divisions = np.array([random.permutation(n)[:n_original] for _ in range(999)])
    sums = base[divisions].sum(axis=1)
    expected = []
    for _ in range(200):
        own = base.copy()
        real = random.permutation(n)[:n_original]
        own[real[:m]] += effects[random.integers(0, 200, m)]
        observed = own[real].sum(axis=0)
        others = own[divisions[random.integers(0, 999, 399)]].sum(axis=1)
        expected.append(adjusted_p_values(weights * p_values(np.vstack([observed, others]))).min() <= 0.05)
    found = islice(trials(m, sums - sums.mean(axis=0), weights, Effect(effects), n_original / n, 0.05, random), 200)
    assert 0.3 < np.mean(expected) < 0.98
    assert np.mean(list(found)) == pytest.approx(np.mean(expected), abs=0.12)


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_detectable_copies_are_detected_with_the_power_that_is_said(share):
    """Scores of people are normal, and a copy adds 3 standard deviations to one."""
    n, random = 1000, np.random.default_rng(0)
    n_original = int(share * n)

    def sums_of(scores):
        whole, units = as_integers(scores)
        return whole, units, permuted_sums(whole, n_original, 999, random)

    whole, units, sums = sums_of(random.normal(size=(n, 1)))
    m = detectable_people(sums, whole, units, np.ones(1), Effect(np.full((50, 1), 3.0)), n_original, 0.05, random)[0]
    n_found = {m: 0, m // 3: 0}
    for copied in n_found:
        for _ in range(30):
            scores = random.normal(size=(n, 1))
            scores[:copied] += 3
            whole, _, sums = sums_of(scores)
            observed = whole[:n_original].sum(axis=0)
            n_found[copied] += p_values(np.vstack([observed, sums]))[0, 0] <= 0.05
    assert n_found[m] >= 0.85 * 30
    assert n_found[m // 3] <= 0.6 * 30


def test_a_trial_is_detected_as_the_test_would():
    random = np.random.default_rng(0)
    weights = np.array([1.0, 4.0])
    for _ in range(300):
        sums = np.column_stack([np.zeros(400), random.poisson(0.1, 400)])  # All are equal for the first.
        sums[0, 1] = 2
        expected = adjusted_p_values(weights * p_values(sums)).min() <= 0.05
        assert is_detected(sums, weights, 0.05) == expected
