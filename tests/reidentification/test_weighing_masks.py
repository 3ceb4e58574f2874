"""Post-randomization and Gaussian noise: probabilities of originals by all ways in which a release can come about."""

import json
from itertools import product
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import InvalidSettingError, InvalidTableError, MaskError
from privacy_assets.reidentification import (
    CandidateIndex,
    Exact,
    GaussianNoise,
    Label,
    Pram,
    RankBuckets,
    ReleaseModel,
    WeightedCandidates,
)
from privacy_assets.reidentification.weighing_masks import swapped_shares
from tests.examples import examples

MATRIX = {"a": {"a": 0.7, "b": 0.2, "c": 0.1}, "b": {"b": 0.5, "c": 0.5}, "c": {"a": 1.0}}
MODEL = ReleaseModel({"letter": Pram("letter", MATRIX), "number": GaussianNoise("number", 1.5), "sex": Exact("sex")})
KNOWN = ["letter", "number", "sex"]


@st.composite
def releases(draw):
    """Draw a small table and a release of it: exchanged letters, numbers with noise, missing values kept."""
    n = draw(st.integers(1, 4))
    original = pd.DataFrame(
        {
            "letter": draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=n, max_size=n)),
            "number": draw(st.lists(st.sampled_from([0.0, 1.0, 4.5, 40.0, None]), min_size=n, max_size=n)),
            "sex": draw(st.lists(st.sampled_from(["f", "m"]), min_size=n, max_size=n)),
        }
    ).astype({"letter": object, "number": float})
    rows = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3))
    released = original.iloc[rows].reset_index(drop=True)
    for i in range(len(rows)):
        if isinstance(released.loc[i, "letter"], str):
            released.loc[i, "letter"] = draw(st.sampled_from(sorted(MATRIX[released.loc[i, "letter"]])))
        released.loc[i, "number"] += draw(st.sampled_from([-3.0, -0.25, 0.0, 1.0]))
    return original, released, rows


def chance_of_cell(name, own, cell):
    if pd.isna(own) or pd.isna(cell):
        return float(pd.isna(own) and pd.isna(cell))
    if name == "letter":
        return MATRIX[own].get(cell, 0.0)
    return NormalDist(own, 1.5).pdf(cell) if name == "number" else float(own == cell)


def enumerated(original, cells, known, rates):
    """Draw a record, which of its columns are wrong, and whose values are true; then the masks make these cells."""
    values = original.to_dict("records")
    weights = []
    for record in values:
        weight = 0.0
        for is_wrong in product([False, True], repeat=len(known)):
            for donors in product(*[values if wrong else [record] for wrong in is_wrong]):
                chance = 1.0
                for name, wrong, donor in zip(known, is_wrong, donors, strict=True):
                    chance *= rates[name] / len(values) if wrong else 1 - rates[name]
                    chance *= chance_of_cell(name, donor[name], cells[name])
                weight += chance
        weights.append(weight)
    return np.array(weights) / sum(weights)


@given(releases(), st.sampled_from([KNOWN, ["letter"], ["number", "letter"]]), st.sampled_from([0.0, 0.2]))
@settings(max_examples=examples(100), deadline=None)
def test_probabilities_are_those_of_all_ways_to_release(release, known, rate):
    original, released, rows = release
    model = ReleaseModel.from_json(json.loads(json.dumps(MODEL.to_json())))
    assert model == MODEL
    weighted = WeightedCandidates(model, original, released, rows)
    rates = {name: rate if name != "sex" else 0.0 for name in known}
    records = weighted.assess(known, error_rates=rates).records
    for i, cells in enumerate(released.to_dict("records")):
        expected = enumerated(original, cells, known, rates)
        np.testing.assert_allclose(weighted.probabilities(i, known, error_rates=rates), expected, atol=1e-9)
        assert records.loc[i, "probability_of_truth"] == pytest.approx(expected[rows[i]], abs=1e-9)
        assert records.loc[i, "largest_probability"] == pytest.approx(expected.max(), abs=1e-9)


def test_a_worked_example():
    """By hand: exchanged with probability 1/5, one of three people is a woman; a released woman is her with 2/3."""
    original = pd.DataFrame({"sex": ["f", "m", "m"]})
    model = ReleaseModel({"sex": Pram("sex", pd.DataFrame([[0.8, 0.2], [0.2, 0.8]], ["f", "m"], ["f", "m"]))})
    weighted = WeightedCandidates(model, original, pd.DataFrame({"sex": ["f", "m", "f"]}), range(3))
    assert weighted.probabilities(0, ["sex"]).tolist() == pytest.approx([4 / 6, 1 / 6, 1 / 6])
    assert weighted.probabilities(1, ["sex"]).tolist() == pytest.approx([1 / 9, 4 / 9, 4 / 9])
    scores = weighted.assess().scores
    assert scores["max_reidentification_probability"] == pytest.approx(2 / 3)
    assert scores["expected_correct_links"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert scores["mean_probability_of_truth"] == pytest.approx((2 / 3 + 4 / 9 + 1 / 6) / 3)


@pytest.mark.parametrize(
    ("original", "released", "transitions"),
    [
        ([1, 2, 1], [1, 2, 2], {1: {1: 0.5, 2: 0.5}, 2: {2: 1}}),
        ([1.0, 2.0, np.nan], [1, 2, None], {1.0: {1.0: 0.5, 2.0: 0.5}, 2.0: {2.0: 1}}),
        ([True, False, True], [True, False, False], {True: {True: 0.5, False: 0.5}, False: {False: 1}}),
        (
            pd.Categorical(["x", "y", "x"], ["y", "x"], ordered=True),
            ["x", "y", "y"],
            {"x": {"x": 0.5, "y": 0.5}, "y": {"y": 1}},
        ),
    ],
)
def test_kinds_of_values(original, released, transitions):
    model = ReleaseModel({"v": Pram("v", transitions)})
    model = ReleaseModel.from_json(json.loads(json.dumps(model.to_json())))
    weighted = WeightedCandidates(model, pd.DataFrame({"v": original}), pd.DataFrame({"v": released}), range(3))
    n_first = 2 if pd.notna(pd.Series(original)[2]) else 1
    assert weighted.probabilities(0, ["v"])[0] == pytest.approx(1 / n_first)
    assert weighted.probabilities(1, ["v"])[1] == pytest.approx(1 / (1 + n_first / 2))


def test_noise_of_which_nobody_is_near_in_all_columns_has_probabilities():
    original = pd.DataFrame({"a": [0.0, 1000.0], "b": [1000.0, 1.0]})
    released = pd.DataFrame({"a": [0.0], "b": [0.0]})
    model = ReleaseModel({"a": GaussianNoise("a", 1), "b": GaussianNoise("b", 1)})
    got = WeightedCandidates(model, original, released, [0]).probabilities(0, ["a", "b"])
    assert got.tolist() == pytest.approx([np.exp(0.5) / (1 + np.exp(0.5)), 1 / (1 + np.exp(0.5))])


def test_a_model_that_excludes_the_truth_is_an_error():
    original = pd.DataFrame({"letter": ["a", "b", None], "number": [0.0, 1.0, np.nan], "sex": ["f", "f", "m"]})
    wrong = {"letter": ["a", "a", "a"], "number": [0.0, np.nan, 1e300], "sex": ["f", "f", "f"]}
    with pytest.raises(MaskError, match=r"by column: \{'sex': 1, 'letter': 2, 'number': 2\} of 3"):
        WeightedCandidates(MODEL, original, pd.DataFrame(wrong), range(3))
    with pytest.raises(MaskError, match=r"\{'letter': 1\} of 3"):
        WeightedCandidates(MODEL, original, original.assign(letter=["unknown", "b", None]), range(3))


@pytest.mark.parametrize("factor", [0.4, 2.5])
def test_noise_of_another_size_is_an_error_and_not_a_low_risk(factor):
    random = np.random.default_rng(0)
    original = pd.DataFrame({"x": random.integers(0, 1000, 400)})
    released = original + np.rint(random.normal(0, 5, (400, 1)))
    assert WeightedCandidates(ReleaseModel({"x": GaussianNoise("x", 5)}), original, released, range(400))
    with pytest.raises(MaskError, match="the standard deviation of its noise is .* times that of its mask"):
        WeightedCandidates(ReleaseModel({"x": GaussianNoise("x", 5 * factor)}), original, released, range(400))


def test_a_matrix_that_keeps_other_shares_is_an_error_and_not_a_low_risk():
    random = np.random.default_rng(0)
    original = pd.DataFrame({"x": random.choice(["u", "v"], 400)})
    released = original.where(random.random((400, 1)) < 0.9, original.replace({"u": "v", "v": "u"}))

    def weigh(kept):
        matrix = {"u": {"u": kept, "v": 1 - kept}, "v": {"u": 1 - kept, "v": kept}}
        return WeightedCandidates(ReleaseModel({"x": Pram("x", matrix)}), original, released, range(400))

    assert weigh(0.9).assess().scores["n_released"] == 400
    with pytest.raises(MaskError, match="values are as in the original, but 200 by the mask would be"):
        weigh(0.5)


def test_these_masks_are_refused_where_candidates_count_alike():
    original = pd.DataFrame({"letter": ["a", "b"], "number": [0.0, 1.0], "sex": ["f", "f"]})
    with pytest.raises(InvalidSettingError, match=r"masks of \['letter', 'number'\] .* Use WeightedCandidates"):
        CandidateIndex(MODEL, original, original, range(2))


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (Pram("v", {"a": {"a": 1.0}}), "lacks 1 of 2 original values"),
        (Pram("v", {"a": {"a": 0.9}, "b": {"b": 1.0}}), "1 of 2 rows of its transition matrix"),
        (Pram("v", {"a": {"a": 1.5, "b": -0.5}, "b": {"b": 1.0}}), "1 of 2 rows of its transition matrix"),
        (Pram("v", {"a": {"a": "x"}, "b": {"b": 1.0}}), "1 of 2 rows of its transition matrix"),
        (Pram("v", {"a": 1.0}), "not a mapping of mappings"),
        (GaussianNoise("v", 1), "has Gaussian noise, but text values"),
        (GaussianNoise("v", 0), "standard deviation of its noise is 0"),
        (GaussianNoise("v", float("nan")), "standard deviation of its noise is nan"),
    ],
)
def test_bad_masks_are_refused(mask, message):
    table = pd.DataFrame({"v": ["a", "b"]})
    with pytest.raises(InvalidSettingError, match=message):
        WeightedCandidates(ReleaseModel({"v": mask}), table, table, range(2))


def test_unreadable_releases_are_refused_together():
    original = pd.DataFrame({"letter": ["a", "b"], "number": [0.0, 1.0], "day": pd.to_datetime(["2024-01-01"] * 2)})
    model = ReleaseModel({"letter": Pram("letter", MATRIX), "number": GaussianNoise("number", 1), "day": Label("day")})
    released = pd.DataFrame({"letter": [1, 2], "number": ["x", "y"], "day": ["*", "*"]})
    with pytest.raises(InvalidTableError, match=r"'letter' has text.*'number' has number"):
        WeightedCandidates(model, original, released, range(2))
    with pytest.raises(InvalidSettingError, match="transition matrix, but datetime values"):
        WeightedCandidates(ReleaseModel({"day": Pram("day", {})}), original, original[["day"]], range(2))


def swapped_by_buckets(n, n_buckets, rng):
    """Swap the ranks 0 to n - 1 as Nin, Herranz and Torra describe; returns the rank whose value each receives."""
    bucket = [rank * n_buckets // n for rank in range(n)]
    free = [[rank for rank in range(n) if bucket[rank] == b] for b in range(n_buckets)]
    received = list(range(n))
    for rank in range(n):
        own = bucket[rank]
        if rank in free[own]:
            free[own].remove(rank)
            open_ones = [s for s in range(own, n_buckets) if free[s]]
            if open_ones:
                chances = np.array([0.5**s for s in open_ones])
                chosen = free[rng.choice(open_ones, p=chances / chances.sum())]
                partner = chosen.pop(rng.integers(len(chosen)))
                received[rank], received[partner] = partner, rank
    return np.array(bucket), np.array(received)


@pytest.mark.parametrize("n_buckets", [2, 3, 7])
def test_shares_of_buckets_are_those_of_swapping(n_buckets):
    found = swapped_shares(n_buckets)
    assert found.sum(axis=1) == pytest.approx(1) and (found >= 0).all() and (found == found.T).all()
    counted, rng = np.zeros((n_buckets, n_buckets)), np.random.default_rng(0)
    for _ in range(20):
        bucket, received = swapped_by_buckets(1_400, n_buckets, rng)
        np.add.at(counted, (bucket, bucket[received]), 1)
    assert np.abs(counted / counted.sum(axis=1, keepdims=True) - found).max() < 0.03


@pytest.mark.parametrize("n_values", [400, 31, 2])
def test_swapped_values_are_weighed_by_the_buckets_of_their_records(n_values):
    """Record by record: the mean over the ranks of both values, which may be in several buckets."""
    rng = np.random.default_rng(1)
    ages = np.sort(rng.integers(0, n_values, 400)).astype(float)
    bucket, received = swapped_by_buckets(400, 4, rng)
    original = pd.DataFrame({"age": [*ages, None, None]})
    released = pd.DataFrame({"age": [*ages[received], None, None]})
    weighted = WeightedCandidates(ReleaseModel({"age": RankBuckets("age", 4)}), original, released, range(402))
    shares = swapped_shares(4)
    for i in (0, 1, 150, 399):
        of_cell = bucket[ages == released["age"][i]]
        likelihood = [np.mean([[shares[r, s] for r in bucket[ages == age]] for s in of_cell]) for age in ages]
        expected = np.array([*likelihood, 0, 0]) / sum(likelihood)
        assert weighted.probabilities(i, ["age"]) == pytest.approx(expected)
    assert weighted.probabilities(401, ["age"]).tolist() == [0] * 400 + [0.5] * 2


def test_a_truth_that_buckets_do_not_explain_is_refused():
    rng = np.random.default_rng(2)
    _, received = swapped_by_buckets(2_000, 20, rng)
    original = pd.DataFrame({"age": np.arange(2_000.0)})
    released = pd.DataFrame({"age": received.astype(float)})

    def weigh(n_buckets, original=original, released=released):
        model = ReleaseModel.from_json(ReleaseModel({"age": RankBuckets("age", n_buckets)}).to_json())
        return WeightedCandidates(model, original, released, range(len(original)))

    assert weigh(20).assess().scores["mean_probability_of_truth"] > 5 / 2_000
    for wrong in (2, 60):
        with pytest.raises(MaskError, match="values are in their bucket, but .* by the mask would be"):
            weigh(wrong)
    for wrong in (1, 101, True, 2.0):
        with pytest.raises(InvalidSettingError, match="at least 20 of its 2000 values in each"):
            weigh(wrong)
    with pytest.raises(InvalidSettingError, match="has buckets of ranks, but text values"):
        weigh(2, original.astype(str), released.astype(str))
    with pytest.raises(InvalidTableError, match="are not original values") as error:
        weigh(20, released=released.replace(7.0, 7.25))
    assert "7.25" not in str(error.value)
    with pytest.raises(MaskError):
        weigh(20, released=released.replace(7.0, None))
