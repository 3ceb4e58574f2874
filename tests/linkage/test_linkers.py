"""Linkage methods, and the audit of what they claim."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from privacy_assets.columns.masks import (
    BoundedNoise,
    Exact,
    HierarchyMapping,
    Interval,
    Label,
    RankWindow,
    ReleaseModel,
    Suppressed,
    ValueSet,
)
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.linkage import distance as distance_linkage
from privacy_assets.linkage import evaluation as linker_evaluation
from privacy_assets.linkage.distance import link_by_distance
from privacy_assets.linkage.evaluation import evaluate_linker
from privacy_assets.linkage.fellegi_sunter import link_by_fellegi_sunter
from privacy_assets.reidentification.candidate_index import CandidateIndex
from tests.examples import examples
from tests.linkage.all_pairs import group, least_slack
from tests.reference import reidentification as reference

MODEL = ReleaseModel({"age": BoundedNoise("age", 2), "sex": Exact("sex")})


def people(n_rows=12, seed=0):
    """A table, a noisy release of it in another order, and where each released record comes from."""
    rng = np.random.default_rng(seed)
    original = pd.DataFrame({"age": rng.integers(20, 40, n_rows), "sex": rng.choice(["F", "M"], n_rows)})
    truth = rng.permutation(n_rows)
    released = original.iloc[truth].reset_index(drop=True)
    return original, released.assign(age=released["age"] + rng.integers(-2, 3, n_rows)), truth


def candidate_claims(index, known):
    claims = np.zeros((index.n_released, index.n_original))
    for i in range(index.n_released):
        claims[i, index.members(i, known)] = 1
    return claims


@given(st.integers(0, 30), st.integers(2, 5), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_the_audit_is_that_of_the_definitions(seed, n_rows, data):
    original, released, truth = people(n_rows, seed)
    index = CandidateIndex(MODEL, original, released, truth, n_threads=1)
    number = st.integers(0, 4)
    claims = data.draw(
        st.lists(st.lists(number, min_size=n_rows, max_size=n_rows).filter(any), min_size=n_rows, max_size=n_rows)
    )
    found = evaluate_linker(index, claims)
    sparse = evaluate_linker(index, csr_array(np.array(claims, float)))
    assert sparse.scores == found.scores and sparse.records.equals(found.records)
    for i, row in found.records.iterrows():
        own = np.array(claims[i]) / sum(claims[i])
        true = np.zeros(n_rows)
        true[index.members(i, ["age", "sex"])] = 1 / len(index.members(i, ["age", "sex"]))
        assert row["has_support"] == all(own[true > 0] > 0)
        assert row["is_compatible"] == reference.is_compatible(true, own)
        assert row["overclaims"] == (own.max() > true.max() + 1e-9)
        assert row["probability_of_truth"] == pytest.approx(own[truth[i]])
        best = np.flatnonzero(np.isclose(own, own.max()))
        assert row["expected_correct"] == pytest.approx((truth[i] in best) / len(best))
    for score, column in {
        "support_share": "has_support",
        "compatible_share": "is_compatible",
        "overclaim_share": "overclaims",
        "expected_correct_links": "expected_correct",
        "mean_probability_of_truth": "probability_of_truth",
        "mean_largest_claim": "largest_claim",
    }.items():
        assert found.scores[score] == pytest.approx(found.records[column].mean())


def test_a_compatible_claim_has_support():
    original, released, truth = people(5, 3)
    index = CandidateIndex(MODEL, original, released, truth)
    for claims in (np.ones((5, 5)), candidate_claims(index, ["age", "sex"]), candidate_claims(index, ["sex"])):
        found = evaluate_linker(index, claims)
        assert found.scores["compatible_share"] == found.scores["support_share"] == 1
        assert found.scores["overclaim_share"] == 0


def test_links_are_claims_of_one_original():
    original, released, truth = people()
    index = CandidateIndex(MODEL, original, released, truth)
    found = evaluate_linker(index, truth)
    assert found.scores["expected_correct_links"] == found.scores["mean_probability_of_truth"] == 1
    alone = index.sizes(["age", "sex"]) == 1
    assert (found.records["is_compatible"] == alone).all()
    assert (found.records["overclaims"] == ~alone).all()


@given(st.integers(0, 30), st.sets(st.integers(0, 11), min_size=1, max_size=11))
@settings(max_examples=examples(30), deadline=None)
def test_records_that_a_method_does_not_link_are_no_claims_and_no_correct_links(seed, abstained):
    original, released, truth = people(12, seed)
    index = CandidateIndex(MODEL, original, released, truth)
    is_linked = ~np.isin(np.arange(12), list(abstained))
    links = np.random.default_rng(seed).integers(0, 12, 12)
    found, all_linked = evaluate_linker(index, np.where(is_linked, links, -1)), evaluate_linker(index, links)
    assert all_linked.scores["abstained_share"] == 0
    assert found.scores["abstained_share"] == pytest.approx(len(abstained) / 12)
    assert found.records[is_linked].equals(all_linked.records[is_linked])
    of_claims = ["has_support", "is_compatible", "overclaims", "largest_claim"]
    assert found.records.loc[~is_linked, of_claims].isna().all(axis=None)
    assert found.scores["expected_correct_links"] == pytest.approx((is_linked & (links == truth)).mean())
    for score, column in (("support_share", "has_support"), ("overclaim_share", "overclaims")):
        assert found.scores[score] == pytest.approx(all_linked.records.loc[is_linked, column].mean())


def test_a_method_that_links_nobody_is_refused():
    original, released, truth = people()
    index = CandidateIndex(MODEL, original, released, truth)
    with pytest.raises(InvalidSettingError, match="12 links, 0 of them not to an original, 12 of them -1"):
        evaluate_linker(index, np.full(12, -1))


@pytest.mark.parametrize("tolerance", [float("nan"), -1e-9, 1.0, 5, "0.1", None, True])
def test_tolerances_out_of_their_range_are_refused(tolerance):
    original, released, truth = people()
    with pytest.raises(InvalidSettingError, match="tolerance is"):
        evaluate_linker(CandidateIndex(MODEL, original, released, truth), truth, tolerance=tolerance)


@pytest.mark.parametrize("scale", [1e308, 1e-300, 5e-324])
def test_claims_count_by_their_proportion_however_large_or_small(scale):
    """The sum of finite claims was infinite, and every claim 0."""
    original, released, truth = people()
    index = CandidateIndex(MODEL, original, released, truth)
    claims = candidate_claims(index, ["sex"])
    found, plain = evaluate_linker(index, claims * scale), evaluate_linker(index, claims)
    assert found.scores == plain.scores
    assert found.records.equals(plain.records)
    assert found.scores["mean_largest_claim"] == pytest.approx((1 / index.sizes(["sex"])).mean())


@pytest.mark.parametrize(
    ("claims", "match"),
    [
        (np.ones((12, 11)), r"shape \(12, 11\). Expected \(12, 12\)"),
        (np.ones(12), r"shape \(12,\)"),
        (np.ones((12, 12, 1)), r"shape \(12, 12, 1\)"),
        (np.where(np.eye(12) > 0, -1.0, 1.0), "12 negative ones"),
        (np.where(np.arange(12)[:, None] < 2, 0, np.ones((12, 12))), "2 rows in which all are 0"),
        (np.where(np.eye(12) > 0, np.nan, 1.0), "12 values that are not finite"),
        (np.full((12, 12), "secret"), "dtype <U6"),
        (np.eye(12) * 1j, "dtype complex128"),
        (csr_array(np.eye(12) * 1j), "dtype complex128"),
        ([[1, 2], [3]], "dtype object. Expected real numbers, equally many in each row"),
        (np.arange(11), "There are 11 links, 0 of them not to an original, 0 of them -1, .* Expected 12"),
        (np.arange(12) + 3, "3 of them not to an original"),
        (csr_array((12, 12)), "12 rows in which all are 0"),
        (np.where(np.eye(12) > 0, np.inf, 1.0), "12 values that are not finite"),
        (coo_array((np.full(24, 1e308), (np.tile(range(12), 2), [0] * 24)), (12, 12)), "12 values that are not finite"),
    ],
)
def test_claims_that_are_none_are_refused(claims, match):
    original, released, truth = people()
    index = CandidateIndex(MODEL, original, released, truth)
    with pytest.raises(InvalidSettingError, match=match):
        evaluate_linker(index, claims)


def noisy_index(n=60):
    """Records of two noisy numbers, of which a method makes scores that all differ."""
    rng = np.random.default_rng(0)
    original = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    released = original + rng.uniform(-1, 1, size=(n, 2))
    model = ReleaseModel({name: BoundedNoise(name, 1.0) for name in original})
    return CandidateIndex(model, original, released, np.arange(n)), original, released, model


def test_scores_that_all_differ_are_evaluated_with_progress_and_within_bounds(monkeypatch):
    """200 records with scores of 200 originals took a minute and a half, and said nothing of it."""
    index, original, released, model = noisy_index()
    # At the edge of what is compatible, so that programs are needed.
    claims = candidate_claims(index, ["a", "b"]) * np.random.default_rng(1).uniform(0.2, 1, (60, 60)) + 1e-4
    claims[np.arange(60), claims.argmax(axis=1)] = claims.sum(axis=1) * 0.7
    reported = []
    found = evaluate_linker(index, claims, progress=reported.append)
    assert [each.stage for each in reported[:60]] == ["records"] * 60
    n_programs = len(reported) - 60
    assert n_programs > 0 and reported[-1] == ("linear programs", n_programs - 1, n_programs)
    own = claims / claims.sum(axis=1, keepdims=True)
    for i in range(0, 60, 6):
        truth = np.isin(np.arange(60), index.members(i, ["a", "b"])) * 1.0
        assert found.records["is_compatible"][i] == (least_slack(group(truth / truth.sum(), own[i])) <= 1e-7)
    monkeypatch.setattr(linker_evaluation, "MAX_WORK", 10)
    with pytest.raises(InvalidSettingError, match=rf"{n_programs} distinct claims need a linear program each.*and 10"):
        evaluate_linker(index, claims)
    softened = link_by_distance(original, released, model, ["a", "b"], softness=0.5)
    assert evaluate_linker(index, softened).scores["support_share"] == 1


@pytest.mark.parametrize("tolerance", [float("nan"), -1.0, 5])
def test_tolerances_that_are_none_are_refused(tolerance):
    original, released, truth = people()
    with pytest.raises(InvalidSettingError, match="tolerance is"):
        evaluate_linker(CandidateIndex(MODEL, original, released, truth), truth, tolerance=tolerance)


def test_people_are_not_audited_as_records():
    original, released, truth = people()
    index = CandidateIndex(MODEL, original, released, truth, subject="sex")
    with pytest.raises(InvalidSettingError, match="counts people"):
        evaluate_linker(index, truth)


@given(st.integers(0, 20), st.sampled_from([None, 0.3]))
@settings(max_examples=examples(30), deadline=None)
def test_distances_are_those_of_the_definition(seed, softness):
    original, released, _ = people(8, seed)
    original.loc[0, "age"] = None
    claims = link_by_distance(original, released, MODEL, ["age", "sex"], softness=softness)
    claims = claims if softness else claims.toarray()
    deviation = original["age"].std(ddof=0)
    for i, row in released.iterrows():
        squares = ((original["age"] - row["age"]) / deviation) ** 2
        squares[0] = ((original["age"].mean() - row["age"]) / deviation) ** 2 + 1
        distances = np.sqrt(squares + (original["sex"] != row["sex"]))
        if softness:
            expected = np.exp(-distances.to_numpy() / softness)
        else:
            expected = np.isclose(distances, distances.min(), atol=1e-7).astype(float)
        assert claims[i] == pytest.approx(expected / expected.sum())


@given(st.integers(0, 30), st.integers(1, 5))
@settings(max_examples=examples(30), deadline=None)
def test_a_tree_and_all_pairs_find_the_same_originals(seed, n_texts):
    rng = np.random.default_rng(seed)
    tables = [
        pd.DataFrame(
            {"a": rng.integers(0, 4, 20), "b": rng.choice(["x", "y", None], 20), "c": rng.integers(0, n_texts, 20)}
        )
        for _ in range(2)
    ]
    tables = [table.assign(c=[f"text {number}" for number in table["c"]]) for table in tables]
    model = ReleaseModel({name: Exact(name) for name in "abc"})
    for known in (["a", "b", "c"], ["b", "c"], ["a"]):
        by_tree = link_by_distance(*tables, model, known)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(distance_linkage, "MAX_TREE_DIMENSIONS", 0)
            patch.setattr(distance_linkage, "PAIRS_PER_BLOCK", 50)
            by_pairs = link_by_distance(*tables, model, known)
        assert (by_tree != by_pairs).nnz == 0


def test_thousands_of_texts_need_no_dimension_each(monkeypatch):
    """Each was a dimension of both tables: thousands of texts took minutes and gigabytes."""
    original = pd.DataFrame({"a": np.arange(3000) % 7, "name": [f"name {i}" for i in range(3000)]})
    model = ReleaseModel({"a": Exact("a"), "name": Exact("name")})
    asked = []
    monkeypatch.setattr("scipy.spatial.KDTree", asked.append)
    found = link_by_distance(original, original[:50], model, ["a", "name"])
    assert asked == []
    assert found.indices.tolist() == list(range(50))
    soft = link_by_distance(original, original[:5], model, ["name"], softness=0.5)
    assert soft[0, 1] == pytest.approx(np.exp(-2) / (1 + 2999 * np.exp(-2)))
    monkeypatch.setattr(distance_linkage, "MAX_COMPARED_PAIRS", 1000)
    with pytest.raises(InvalidSettingError, match="give 150000 pairs.* at most 1000"):
        link_by_distance(original, original[:50], model, ["a", "name"])


def test_intervals_count_by_their_middle_and_suppressed_columns_not_at_all():
    original = pd.DataFrame({"age": [10, 20, 30], "sex": ["F", "M", "M"]})
    model = ReleaseModel({"age": Interval("low", "high", True), "sex": Suppressed()})
    released = pd.DataFrame({"low": [5, 18], "high": [16, 30]})
    found = link_by_distance(original, released, model, ["age", "sex"]).toarray()
    assert found.tolist() == [[1, 0, 0], [0, 1, 0]]


@given(st.integers(0, 30), st.sampled_from([None, 0.3]))
@settings(max_examples=examples(30), deadline=None)
def test_cells_of_several_values_count_by_their_middle(seed, softness):
    """Days by the middle of the possible ones among the originals, plans by the centroid of the possible ones."""
    rng = np.random.default_rng(seed)
    plans, n = [None, "a", "b", "c"], 8
    own_plans = [plans[code] for code in rng.integers(0, 4, n)]
    original = pd.DataFrame({"day": rng.integers(0, 9, n), "plan": own_plans})
    start = pd.Timestamp("2020-01-01")
    low, high = original["day"] - rng.integers(0, 3, n), original["day"] + rng.integers(0, 3, n)
    sets = [sorted({own, *(plans[code] for code in rng.integers(0, 4, 2))}, key=str) for own in own_plans]
    dates = original.assign(day=start + pd.to_timedelta(original["day"], unit="D"))
    released = pd.DataFrame({"low": start + pd.to_timedelta(low, unit="D"), "plan": [json.dumps(own) for own in sets]})
    released["high"] = start + pd.to_timedelta(high, unit="D")
    model = ReleaseModel({"day": Interval("low", "high", True), "plan": ValueSet("plan")})
    claims = link_by_distance(dates, released, model, ["day", "plan"], softness=softness)
    claims = claims if softness else claims.toarray()
    deviation = original["day"].std(ddof=0) or 1
    for i in range(n):
        possible = original["day"][original["day"].between(low[i], high[i])]
        distances = np.zeros(n)
        for x in range(n):
            days = (original["day"][x] - (possible.min() + possible.max()) / 2) / deviation
            known_plans = {*sets[i]} & {*own_plans}
            centroid = {plan: 1 / len(known_plans) for plan in known_plans}
            shares = [(plan == own_plans[x]) - centroid.get(plan, 0) for plan in plans]
            distances[x] = np.sqrt(days**2 + sum(share**2 for share in shares) / 2)
        if softness:
            expected = np.exp(-distances / softness)
        else:
            expected = np.isclose(distances, distances.min(), atol=1e-7).astype(float)
        assert claims[i] == pytest.approx(expected / expected.sum())


def test_ordered_categories_count_by_rank_and_an_interval_that_is_only_missing_as_missing():
    sizes = pd.Categorical(["S", "L", None, "XL", "M"], ["S", "M", "L", "XL"], ordered=True)
    original = pd.DataFrame({"size": sizes})
    released = pd.DataFrame({"size": ["{M, L}", "{S, M, L}", "XL"], "truth": [4, 4, 3]})
    model = ReleaseModel({"size": Label("size")})
    found = link_by_distance(original, released, model, ["size"]).toarray()
    # Between M and L both are as near.
    assert found.tolist() == [[0, 0.5, 0, 0, 0.5], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]
    ends = pd.DataFrame({"low": [1.0, None], "high": [2.0, None], "may_miss": [True, True]})
    model = ReleaseModel({"size": Interval("low", "high", True, "may_miss")})
    times = pd.DataFrame({"size": pd.to_timedelta([1.0, 9.0, None], unit="s")})
    ends[["low", "high"]] = ends[["low", "high"]].apply(pd.to_timedelta, unit="s")
    assert link_by_distance(times, ends, model, ["size"]).toarray().tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("mask", [BoundedNoise("day", "P5D"), Exact("day"), RankWindow("day", 50)])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_days_count_by_the_time_between_them(zone, mask):
    """Moments were categories: any two that differ were as far from each other."""
    numbers = {"original": [0, 9, 20, 90, None], "released": [4, 7, 21, 86, None]}
    tables = [pd.DataFrame({"day": own}) for own in numbers.values()]
    start = pd.Timestamp("2020-01-01", tz=zone)
    times = [pd.DataFrame({"day": start + pd.to_timedelta(table["day"], unit="D")}) for table in tables]
    times[1]["day"] = times[1]["day"].dt.as_unit("s")
    of_times = link_by_distance(*times, ReleaseModel({"day": mask}), ["day"], softness=0.5)
    of_numbers = link_by_distance(*tables, ReleaseModel({"day": Exact("day")}), ["day"], softness=0.5)
    assert of_times == pytest.approx(of_numbers)
    nothing = times[1].assign(day=pd.Series([pd.NaT] * 5))
    found = link_by_distance(times[0], nothing, ReleaseModel({"day": mask}), ["day"]).toarray()
    assert found.tolist() == [[0, 0, 0, 0, 1]] * 5


def test_sets_of_too_many_categories_are_refused(monkeypatch):
    monkeypatch.setattr(distance_linkage, "MAX_CATEGORIES_IN_SETS", 2)
    original = pd.DataFrame({"town": ["A", "B", "C"]})
    with pytest.raises(InvalidSettingError, match="sets of 4 categories. Expected at most 2"):
        link_by_distance(original, original, ReleaseModel({"town": Label("town")}), ["town"])


@pytest.mark.parametrize(
    ("known", "options", "match"),
    [
        (["height"], {}, r"does not describe: \['height'\]"),
        ([], {}, "`known` is empty"),
        (["town"], {}, "'town': 1 released cells do not stand for any value of the original"),
        (["plan"], {}, "the hierarchy 'none', which is missing"),
        (["age"], {"softness": 0}, "softness is 0"),
        (["day"], {}, "has numbers in the original and text values in the release"),
    ],
)
def test_columns_without_a_distance_are_refused(known, options, match):
    original = pd.DataFrame({"age": [1, 2], "town": ["A", "B"], "day": [1, 2], "plan": ["x", "y"]})
    released = pd.DataFrame({"age": [1, 2], "town": ['["A"]', '["C"]'], "day": ["secret", "x"], "plan": ["*", "*"]})
    masks = {
        "age": Exact("age"),
        "town": ValueSet("town"),
        "day": Exact("day"),
        "plan": HierarchyMapping("plan", "none"),
    }
    model = ReleaseModel(masks)
    with pytest.raises((InvalidSettingError, InvalidTableError), match=match) as caught:
        link_by_distance(original, released, model, known, **options)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("n_released", [1, 3])
def test_fellegi_sunter_of_a_single_original_is_refused(n_released):
    """Splink failed on its own query: without other pairs there is no rate to compare with."""
    original = pd.DataFrame({"age": [30], "sex": ["F"]})
    released, truth = pd.concat([original] * n_released, ignore_index=True), np.zeros(n_released, np.int64)
    index = CandidateIndex(MODEL, original, released, truth)
    with pytest.raises(InvalidSettingError, match="There is 1 original. Expected at least 2"):
        link_by_fellegi_sunter(index, original, released, ["age", "sex"])


def test_fellegi_sunter_without_splink_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "splink", None)
    original, released, truth = people()
    index = CandidateIndex(MODEL, original, released, truth)
    with pytest.raises(InvalidSettingError, match=r"not installed.*privacy-assets\[linkage\]"):
        link_by_fellegi_sunter(index, original, released, ["age", "sex"])
    with pytest.raises(InvalidSettingError, match="m_from is 'em'"):
        link_by_fellegi_sunter(index, original, released, ["age", "sex"], m_from="em")


def test_fellegi_sunter_finds_what_candidate_sets_allow():
    pytest.importorskip("splink", reason="Splink is not installed: pip install 'privacy-assets[linkage]'")
    original, released, truth = people(60, 1)
    original["town"] = [f"town {i % 5}" for i in range(60)]
    released["area"] = [f"{{town {i % 5}, town {(i + 2) % 5}}}" for i in truth]
    released["rank"] = released["age"] * 0 + original["age"].iloc[truth].to_numpy()
    original["rank"] = original["age"]
    model = ReleaseModel({**MODEL.masks, "town": Label("area"), "rank": RankWindow("rank", 10), "none": Suppressed()})
    index = CandidateIndex(model, original, released, truth)
    known = ["age", "sex", "town", "rank", "none"]
    claims = link_by_fellegi_sunter(index, original, released, known)
    assert claims.shape == (60, 60) and np.allclose(claims.sum(axis=1), 1)
    found = evaluate_linker(index, claims)
    allowed = (1 / index.sizes(known)).mean()
    assert found.scores["support_share"] == 1
    assert found.scores["expected_correct_links"] >= allowed - 0.05
    # What no true pair shows is next to impossible.
    impossible = candidate_claims(index, known) == 0
    assert claims[impossible].max() < 1e-3
    assert np.array_equal(claims, link_by_fellegi_sunter(index, original, released, known))
    with pytest.raises(InvalidSettingError, match="0 of the known columns"):
        link_by_fellegi_sunter(index, original, released, ["none"])
