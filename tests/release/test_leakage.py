"""What a disclosure assessment says under a policy: the decision, what would have gone unnoticed, and advice."""

import pytest

from privacy_assets.disclosure.criteria import CRITERIA
from privacy_assets.release.leakage import MOST_CRITERIA, SPLIT_DIFFERS, TOO_LITTLE_SEEN, figures_of_disclosure
from privacy_assets.release.policy import RequiredSettings

POLICY = RequiredSettings()
EXCESSES = ["inference", *(name for name, criterion in CRITERIA.items() if criterion.share_of)]
SCORES = {
    "leakage_detected": False,
    "adjusted_p_value": 0.4,
    "detectable_share": 0.006,
    "detectable_people": 18,
    **{f"{name}_adjusted_p_value": 0.4 for name in CRITERIA},
    **{f"{name}_interval": [-0.02, 0.01 * place] for place, name in enumerate(EXCESSES)},
}


def test_no_leak_is_no_only_where_few_enough_copies_would_have_been_seen():
    found = figures_of_disclosure(SCORES, POLICY)
    assert found.metrics == {
        "leakage_detected": 0.0,
        **{f"{name}_excess": 0.01 * place for place, name in enumerate(EXCESSES)},
        "membership_advantage_upper": None,
        "exposed_share": None,
        "exposed_share_of_least_visible": None,
        "share_in_homogeneous_cells": None,
        "smallest_shared_cell": None,
    }
    assert (
        found.remark
        == "copies of whole records of fewer than 18 people (0.60% of the originals) might have gone unnoticed; "
        "copies of parts of records, of more people"
    )
    assert found.advice == ""


@pytest.mark.parametrize(
    ("share", "demanded", "decided"),
    [
        (0.01, 0.01, 0.0),
        (0.0101, 0.01, None),
        (0.0101, 0.02, 0.0),
        (0.9, None, 0.0),
        (None, None, None),
        (None, 1.0, None),
        (float("nan"), None, None),
    ],
)
def test_the_policy_says_of_what_share_copies_may_go_unnoticed(share, demanded, decided):
    people = None if share is None else 30
    scores = SCORES | {"detectable_share": share, "detectable_people": people}
    found = figures_of_disclosure(scores, RequiredSettings(detectable_share=demanded))
    assert found.metrics["leakage_detected"] == decided
    assert found.advice == ("" if decided == 0.0 else TOO_LITTLE_SEEN)
    if share is None:
        assert found.remark.startswith("even copies of all originals would have gone unnoticed")


def test_a_leak_is_one_however_little_would_have_been_seen():
    leak = SCORES | {"leakage_detected": True, "near_copies_adjusted_p_value": 0.001, "adjusted_p_value": 0.001}
    for share in (0.006, 0.9, None):
        found = figures_of_disclosure(leak | {"detectable_share": share}, POLICY)
        assert found.metrics["leakage_detected"] == 1.0
        assert found.remark == "near copies; adjusted p value 0.001"
        assert found.advice.startswith("Near copies: Round numbers")


def test_advice_is_for_the_criteria_that_failed_and_short_if_all_did():
    failed = {"inference_exact_adjusted_p_value": 0.05, "singling_out_adjusted_p_value": 0.0500001}
    found = figures_of_disclosure(SCORES | failed | {"leakage_detected": True}, POLICY)
    assert found.advice.startswith("Inference by claims: Coarsen")
    assert "Singling out" not in found.advice
    together = {f"{name}_together_adjusted_p_value": 0.001 for name in ("near_copies", "inference_near")}
    several = SCORES | {"near_copies_adjusted_p_value": 0.001} | together | {"leakage_detected": True}
    words = "near copies, inference by the nearest record, all releases"
    assert figures_of_disclosure(several, POLICY).remark.startswith(words)
    everything = {f"{name}_adjusted_p_value": 0.001 for name in CRITERIA if name != "rare_values"}
    assert figures_of_disclosure(SCORES | everything | {"leakage_detected": True}, POLICY).advice == MOST_CRITERIA


def test_a_split_that_differs_by_itself_is_said_so():
    found = figures_of_disclosure(SCORES | {"leakage_detected": None}, POLICY)
    assert found.metrics["leakage_detected"] is None
    assert found.remark == "originals and control differ even without leakage"
    assert found.advice == SPLIT_DIFFERS


def test_scores_that_are_not_there_give_no_figure():
    assert set(figures_of_disclosure({}, POLICY).metrics.values()) == {None}
