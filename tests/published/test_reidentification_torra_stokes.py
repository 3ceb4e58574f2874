"""Figures of Torra and Stokes, "A formalization of re-identification in terms of compatible probabilities" (2013),
and of designs that show what its measure sees and k does not.

Source: ``tests/golden/reidentification``. Where the text slips, it holds what the text's own definitions
give: Definition 22 lacks the minus sign, Example 23 prints a wrong P_Bel'(x1), Example 21 needs y = x - alpha e_beta.
"""

import json
from fractions import Fraction
from functools import reduce

import numpy as np
import pandas as pd
import pytest

from privacy_assets.columns.masks import Interval, ReleaseModel
from privacy_assets.linkage.matching import match_candidates
from privacy_assets.reidentification.assess import assess_reidentification
from privacy_assets.reidentification.belief import BeliefFunction
from privacy_assets.reidentification.candidate_index import CandidateIndex
from privacy_assets.reidentification.other_releases import OtherRelease
from tests.shared_data import golden_file, shared_file


def golden(name):
    return json.loads(golden_file("reidentification", f"{name}.json").read_text())


def table(name):
    return pd.read_csv(golden_file("reidentification", f"{name}.csv"))


def belief_of(masses):
    """A belief function from masses such as {"1,2": "5/13"} or {"{x0,x1}": "1/3"}."""
    return BeliefFunction(
        {
            frozenset(int(name.strip("{}x ")) for name in focal.split(",")): float(Fraction(mass))
            for focal, mass in masses.items()
        }
    )


def fractions(values):
    return {int(str(name).strip("x")): float(Fraction(value)) for name, value in values.items()}


@pytest.mark.parametrize("example", ["example_23", "example_24"])
def test_entropies_are_those_of_examples_23_and_24(example):
    known = golden("torra_stokes")[example]
    for name, printed in zip(("Bel", "Bel_prime"), known["printed_entropies"], strict=True):
        found = belief_of(known[name]["mass"])
        assert found.pignistic() == pytest.approx(fractions(known[name]["pignistic"]), abs=1e-12)
        assert found.entropy() == pytest.approx(known[name]["entropy_natural"], abs=1e-12)
        assert found.entropy() == pytest.approx(printed, abs=5e-7)
        assert found.nonspecificity() == pytest.approx(known[name]["nonspecificity_natural"], abs=1e-12)


def test_nonspecificity_falls_with_evidence_where_entropy_may_rise():
    """Proposition 26, and Example 24 against entropy."""
    known = golden("torra_stokes")["example_24"]
    before, after = (belief_of(known[name]["mass"]) for name in ("Bel", "Bel_prime"))
    assert after.nonspecificity() < before.nonspecificity()
    assert after.entropy() > before.entropy()


def test_a_record_outside_the_candidates_may_have_the_largest_probability():
    """Proposition 19."""
    for k, known in golden("torra_stokes")["proposition_19"].items():
        n = int(k)
        found = BeliefFunction({frozenset([0, x]): 1 / n for x in range(1, n + 1)})
        assert found.pignistic()[0] == pytest.approx(float(Fraction(known["pignistic_x0"])))
        assert found.pignistic()[1] == pytest.approx(float(Fraction(known["pignistic_x_in_A"])))
        assert found.is_compatible_with(dict.fromkeys(range(1, n + 1), 1 / n)) is known["compatible"]


def test_beliefs_are_compatible_if_they_contain_the_candidates():
    """Proposition 12, Lemma 13, Lemma 17 (one direction), Example 21 and Dempster's rule."""
    known = golden("torra_stokes")
    truth = dict.fromkeys(known["proposition_12"]["candidate_set"], 1 / 3)
    assert BeliefFunction.categorical([0, 1, 2]).is_compatible_with(truth)
    assert BeliefFunction.categorical([0, 1, 2, 3]).is_compatible_with(truth)
    assert (
        BeliefFunction.categorical([0, 1, 3]).is_compatible_with(truth)
        is (known["lemma_13"]["missing_one_candidate_compatible"])
    )
    assert belief_of(known["lemma_17_only_if_false"]["m"]).is_compatible_with({0: 1.0})
    assert belief_of(known["example_21"]["belief_mass"]).pignistic() == pytest.approx(
        fractions(known["example_21"]["pignistic"])
    )
    dempster = known["dempster_not_acceptable"]
    combined = BeliefFunction({frozenset([x]): mass for x, mass in fractions(dempster["dempster"]).items()})
    assert combined.is_compatible_with(fractions(dempster["P"])) is dempster["compatible"]


def combine_columns(index, columns):
    """Candidates by each column alone, intersected."""
    members = [[index.members(i, [name]) for name in columns] for i in range(index.n_released)]
    return [reduce(np.intersect1d, own) for own in members]


def test_the_five_by_five_design_singles_everybody_out():
    """k is 5 on the age band and 5 on the zip, and 1 on both."""
    known = golden("b3_candidates")
    original, released = table("b3_original"), table("b3_released")
    truth = table("b3_truth").set_index("released").loc[released["rel"], "true_id"].to_numpy() - 1
    index = CandidateIndex(
        ReleaseModel.from_labels(["age", "zip"]), original, released, truth, keys=["rel"], n_threads=1
    )
    together = combine_columns(index, ["age", "zip"])
    for i, record in enumerate(known["records"]):
        assert (released["rel"].iloc[i], truth[i] + 1) == (record["released"], record["true_id"])
        assert (together[i] + 1).tolist() == record["intersection"]
        for name, candidates in record["candidates"].items():
            columns = name.split("+")
            assert (index.members(i, columns) + 1).tolist() == candidates
            belief = index.belief(i, columns)
            assert belief.nonspecificity() == pytest.approx(record["N_ln"][name], abs=1e-12)
            assert belief.pignistic()[truth[i]] == pytest.approx(record["pignistic_true"][name])
    for name, k in known["k_per_attribute"].items():
        assert index.sizes([name]).min() == k
    assert index.sizes(["age", "zip"]).min() == known["k_joint"]


def test_two_views_that_are_5_anonymous_join_to_singletons():
    original, first, second = table("b3_views_original"), table("b3_view1"), table("b3_view2")
    options = {"truth": np.arange(len(original)), "k": 5, "quasi_identifiers": ["sex", "age"]}
    model = ReleaseModel.from_labels(["age"], exact=["sex"])
    other = OtherRelease(second, "key", ReleaseModel.from_labels(["zip"], exact=["sex"]))
    together = assess_reidentification(original, first, model, other_releases=[other], **options)
    assert together.scores["share_of_singletons"] == together.scores["mean_reidentification_probability"] == 1.0
    assert together.figures(["sex", "age"])["fewest_candidates"] == 5
    assert together.figures(["sex", "zip"])["fewest_candidates"] == 5
    alone = assess_reidentification(original, first.drop(columns="key"), model, **options)
    assert alone.scores["max_reidentification_probability"] == 0.2 and len(alone.records) == 0


def test_matching_leaves_one_record_a_single_candidate():
    known = golden("b3_matching")
    original = pd.DataFrame({"x": known["X"]})
    released = pd.DataFrame(known["boxes"], columns=["low", "high"])
    truth = np.arange(len(original))
    index = CandidateIndex(ReleaseModel({"x": Interval("low", "high", True)}), original, released, truth)
    assert index.sizes(["x"]).tolist() == known["candidate_counts"]
    found = match_candidates(index, ["x"])
    for i, feasible in enumerate(known["feasible_under_bijection"]):
        assert original["x"].iloc[found.members(i)].tolist() == feasible
        assert found.sizes[i] == len(feasible)


def test_columns_that_are_each_5_anonymous_are_not_so_together():
    """UCI Adult, all 32,561 rows, the age in decades, six columns as they are: 127 sets of known columns."""
    original = pd.read_csv(shared_file("data", "adult.csv"))
    exact = ["workclass", "education", "marital_status", "occupation", "race", "sex"]
    decades = original["age"] // 10 * 10
    released = original[exact].assign(age=decades.astype(str) + "-" + (decades + 9).astype(str))
    model = ReleaseModel.from_labels(["age"], exact=exact)
    truth = np.arange(len(original))
    found = assess_reidentification(original, released, model, truth=truth, k=5, max_known=7).curve.groupby("n_known")
    for known in golden("b3_adult_attributewise"):
        own = found.get_group(known["known"])
        assert own["mean_nonspecificity"].mean() == pytest.approx(known["mean_N"], abs=1e-9)
        assert own["mean_reidentification_probability"].mean() == pytest.approx(known["mean_pignistic"], abs=1e-12)
        assert own["share_of_singletons"].mean() == pytest.approx(known["share_singleton"], abs=1e-12)
        assert own["share_of_singletons"].max() == pytest.approx(known["worst_share_singleton"], abs=1e-12)
        assert own["share_below_k"].mean() == pytest.approx(known["share_lt5"], abs=1e-12)
