"""The questions of the law in one table: of synthetic records, of anonymized ones, and of neither."""

import pytest

from privacy_assets.disclosure.criteria import CRITERIA
from privacy_assets.release.report_criteria import HEADINGS, questions_of_the_law
from privacy_assets.release.report_words import plain_words

ROW = {
    "original": 0.14,
    "control": 0.13,
    "low": -0.01,
    "high": 0.03,
    "adjusted_p_value": 0.48,
    "detectable_share": 0.02,
}
DISCLOSURE = {
    "n_original": 4_730,
    "n_control": 1_182,
    "adjusted_p_value": 0.48,
    "leakage_detected": False,
    "detectable_people": 61,
    "detectable_share": 0.0129,
    "criteria": [{"criterion": name, **ROW} for name in CRITERIA],
}
ANONYMIZED = {
    "anonymity": {
        "k": 3,
        "share_in_homogeneous_classes": 0.79,
        "sensitive": {"cost": {"l_distinct": 2, "t": 0.25}, "plan": {"l_distinct": 1, "t": 0.75}},
    },
    "reidentification_assessment": {"fewest_candidates": 3, "max_reidentification_probability": 1 / 3},
    "semantic_assessment": {"maximum_semantic_risk": 1.0, "medium_semantic_risk": 0.4},
}


def rows(figures, others=()):
    settings = {"reidentification_assessment": {"other_releases": list(others)}}
    return [dict(zip(HEADINGS, row, strict=True)) for row in questions_of_the_law(figures, settings)]


def test_each_criterion_is_asked_and_says_what_it_does_not_answer():
    found = rows({"disclosure_assessment": DISCLOSURE})
    laws = "Singling out", "Linkability", "Inference", "Inference", "Membership", "Membership"
    assert [row["Criterion"] for row in found][: len(laws)] == list(laws)
    assert [row["Question"] for row in found] == [criterion.question for criterion in CRITERIA.values()]
    first = found[0]
    assert first["About"] == "4,730 originals and 1,182 people of the control"
    drawn = rows({"disclosure_assessment": DISCLOSURE | {"n_examined": 500}})[0]
    assert drawn["About"] == "4,730 originals and 1,182 people of the control, of whom 500 were drawn"
    assert rows({"disclosure_assessment": DISCLOSURE | {"n_examined": 5_912}})[0] == first
    assert first["Finding"].startswith("14.0% of originals, 13.0% of the control: no more than chance explains")
    assert first["Difference, 95 % interval"] == "-1.00% to 3.00%"
    assert first["Would go unnoticed"] == "copies of fewer than 95 people (2.00%)"
    weak = [{"criterion": "linkability", **ROW, "detectable_share": share} for share in (0.05, 0.0501, None)]
    found_of_weak = rows({"disclosure_assessment": DISCLOSURE | {"criteria": weak}})
    assert ["not answerable with this control" in row["Finding"] for row in found_of_weak] == [False, True, True]
    assert ["no more than chance" in row["Finding"] for row in found_of_weak] == [True, False, False]
    assert found[2]["Finding"].startswith(
        "mean score 0.14 of originals, 0.13 of the control (a higher score reveals more)"
    )


def test_a_failed_criterion_and_one_that_shows_no_copies_say_so():
    changed = [{"criterion": "near_copies", **ROW, "adjusted_p_value": 0.05, "detectable_share": None}]
    (row,) = rows({"disclosure_assessment": DISCLOSURE | {"criteria": changed}})
    assert "more than of the control (adjusted p value 0.05)" in row["Finding"]
    assert row["Would go unnoticed"] == "copies of everybody"


def test_gaps_around_originals_are_not_said_to_reveal_more():
    changed = [{"criterion": "absence", **ROW, "adjusted_p_value": 0.004, "detectable_share": None}]
    (row,) = rows({"disclosure_assessment": DISCLOSURE | {"criteria": changed}})
    assert (
        "(a higher score: fewer are near): more gaps than around the control (adjusted p value 0.004)" in row["Finding"]
    )
    assert row["Would go unnoticed"] == "not known: it does not look for copies"


def test_anonymized_records_are_in_the_same_table():
    found = rows(ANONYMIZED)
    assert [row["Criterion"] for row in found] == [
        *("Singling out", "Linkability", "Inference", "Inference", "Membership")
    ]
    assert "at least 3" in found[0]["Finding"]
    assert "33.3%" in found[0]["Finding"]
    assert (
        found[2]["Finding"]
        == "certain for 79.0%; in some class there is only 1 value (l); distance from the table at most 0.75 (t)"
    )
    assert "40.0% on average (semantic risk)" in found[3]["Finding"]


@pytest.mark.parametrize("figures", [{}, {"mpucc_assessment": {"privacy_risk_score": 0.1}}])
def test_without_an_assessment_there_is_no_table(figures):
    assert rows(figures) == []


def test_the_decision_is_said_in_people():
    (said,) = plain_words({"disclosure_assessment": DISCLOSURE}, {})
    assert "Of 4,730 originals and 1,182 people whom the synthesizer never saw" in said
    assert "copies of whole records of fewer than 61 people (1.29% of the originals) might have gone unnoticed" in said
    failed = DISCLOSURE | {"leakage_detected": True, "near_copies_adjusted_p_value": 0.001}
    (said,) = plain_words({"disclosure_assessment": failed}, {})
    assert said.endswith("more about the originals than chance explains: near copies.")


def test_linkability_is_not_said_to_be_answered_where_no_other_release_is_configured():
    said = [rows(ANONYMIZED, others)[1] for others in ([], [{}], [{}, {}])]
    assert [row["Criterion"] for row in said] == 3 * ["Linkability"]
    assert [row["Finding"] for row in said] == [
        "not asked: no other release is configured",
        "1 other release is part of the candidates above",
        "2 other releases are part of the candidates above",
    ]
    assert [row["Difference, 95 % interval"] for row in said] == ["none", *2 * ["measured, no interval"]]
