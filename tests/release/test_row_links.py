"""The gate refuses released values that link the rows of a person, unless the contract says why and they count."""

from dataclasses import replace

import pytest

from privacy_assets.anonymity.links import Link
from privacy_assets.release.gate import is_admitted, verdicts
from privacy_assets.release.metrics import REIDENTIFICATION
from privacy_assets.release.report_words import plain_words
from privacy_assets.release.row_links import LINKS_CHECK, USED_CHECK, LinkEvidence, decide_on_links, remark_on_rows
from tests.release.test_gate import ANONYMIZED, anonymized_evidence, good_evidence
from tests.release.test_gate import POLICY as SYNTHETIC

PSEUDONYM = Link(("pseudonym",), "alone", 0.98, 1.0, True)
VISITS = Link(("visit", "previous"), "across", 0.9, 0.95, True)
SERIAL = Link(("serial",), "in order", 0.98, 0.9, True)
COST = Link(("cost",), "alone", 0.4, 0.001, False)
REASON = "Needed to follow customers over time; A. Lovelace"


def decided(links=(), declared=(), **more):
    return dict(decide_on_links(LinkEvidence("", links, **more), dict.fromkeys(declared, REASON)))


def test_what_links_is_refused_with_the_four_ways_out_in_their_order():
    found = decided([COST, PSEUDONYM, VISITS])
    assert list(found) == [LINKS_CHECK]
    passed, reason, advice = found[LINKS_CHECK]
    assert not passed
    assert reason == (
        "released values link the rows of a person (2): 'pseudonym' (rows with one value are of one person in 100.0% "
        "of the pairs, which concerns 98.0% of the rows); 'visit' and 'previous' (rows of which one has the "
        "other's value in the other column are of one person in 95.0% of the pairs, which concerns 90.0% of the rows)"
    )
    ways = ["direct_identifier", "other_releases", "quasi-identifier", "one row per person", "links_rows"]
    assert [advice.find(way) for way in ways] == sorted(advice.find(way) for way in ways)
    assert min(advice.find(way) for way in ways) >= 0
    assert "order" not in advice


@pytest.mark.parametrize("declared", [["pseudonym", "visit"], ["visit", "previous"], ["cost"], []])
def test_every_column_of_every_link_needs_a_reason(declared):
    assert not decided([PSEUDONYM, VISITS], declared)[LINKS_CHECK].passed


def test_reasons_for_all_columns_admit_links_and_are_said():
    passed, reason, advice = decided([PSEUDONYM, VISITS, COST], ["pseudonym", "visit", "previous"])[LINKS_CHECK]
    assert (passed, advice) == (True, "")
    assert f"'pseudonym' ({REASON}); 'visit' ({REASON}); 'previous' ({REASON})" in reason


def test_an_order_cannot_be_declared():
    passed, _, advice = decided([SERIAL], ["serial"])[LINKS_CHECK]
    assert not passed
    assert advice.endswith("An order cannot be kept so: give such rows random numbers.")


def test_a_column_that_is_said_to_be_no_person_links_as_if_it_were():
    found = decided([], if_people={"school": [Link(("ward",), "alone", 0.5, 0.5, True)]})[LINKS_CHECK]
    assert not found.passed
    assert "'ward' (rows with one value are of one 'school' (not_a_person) in 50.0% of the pairs" in found.reason
    assert decided([], ["ward"], if_people={"school": [Link(("ward",), "alone", 0.5, 0.5, True)]})[LINKS_CHECK].passed


def test_links_of_synthetic_people_are_shown_if_the_test_of_disclosure_had_their_key():
    passed, reason, _ = decided([PSEUDONYM], is_tested=True)[LINKS_CHECK]
    assert passed
    assert reason.startswith("released values link the rows of synthetic people, as the test of disclosure did: 'pseu")


def test_a_reason_for_a_column_that_links_nothing_warns():
    assert USED_CHECK not in decided([PSEUDONYM])
    passed, reason, advice = decided([PSEUDONYM, COST], ["pseudonym", "cost"])[USED_CHECK]
    assert not passed
    assert reason == "the contract has links_rows for ['cost'], which link no rows"
    assert "Remove links_rows" in advice
    assert decided([PSEUDONYM], ["pseudonym"])[USED_CHECK].passed
    evidence = anonymized_evidence(links=LinkEvidence("", [COST]), may_link={"cost": REASON})
    verdict = next(each for each in verdicts(ANONYMIZED, evidence, "t") if each.name == USED_CHECK)
    assert (verdict.passed, verdict.severity) == (False, "warn")
    assert is_admitted(verdicts(ANONYMIZED, evidence, "t"))


@pytest.mark.parametrize(
    ("evidence", "policy", "content"), [(anonymized_evidence(), ANONYMIZED, "t"), (good_evidence(), SYNTHETIC, "s")]
)
def test_both_sides_are_refused_if_rows_are_linked_or_nothing_was_measured(evidence, policy, content):
    assert is_admitted(verdicts(policy, evidence, content))
    for links in (None, LinkEvidence("", [PSEUDONYM])):
        failed = [each for each in verdicts(policy, replace(evidence, links=links), content) if each.blocks]
        assert [each.name for each in failed] == [LINKS_CHECK]
        assert failed[0].metric is None


def test_links_of_a_manifest_have_their_reasons():
    evidence = LinkEvidence("", [PSEUDONYM, COST], {"school": [Link(("ward",), "alone", 0.5, 0.25, True)]})
    assert evidence.to_json({"pseudonym": REASON}) == [
        {
            "columns": ["pseudonym"],
            "how": "alone",
            "share": 0.98,
            "precision": 1.0,
            "if_people": None,
            "links_rows": {"pseudonym": REASON},
        },
        {
            "columns": ["ward"],
            "how": "alone",
            "share": 0.5,
            "precision": 0.25,
            "if_people": "school",
            "links_rows": {"ward": None},
        },
    ]


def test_many_links_are_counted():
    links = [Link((f"c{place}",), "alone", 0.5, 0.5, True) for place in range(30)]
    assert decided(links)[LINKS_CHECK].reason.endswith("; and 10 more")


@pytest.mark.parametrize(
    ("known_rows", "fewest", "said"),
    [
        (1, {"1": 5}, "Somebody who knows 1 of a person's rows finds the person among at least 5 people."),
        (
            4,
            {"1": 1200, "2": 130, "4": 1},
            "Somebody who knows 4 of a person's rows finds the person among at least 1 person "
            "(by number of known rows: 1: 1,200, 2: 130).",
        ),
        (
            "all",
            {"1": 20, "37": 2},
            "Somebody who knows all rows of a person finds the person among at least 2 people "
            "(by number of known rows: 1: 20).",
        ),
    ],
)
def test_the_report_says_whom_somebody_finds_who_knows_several_rows(known_rows, fewest, said):
    scores = {"known_rows": known_rows, "fewest_candidates_by_rows": fewest}
    sentences = plain_words({REIDENTIFICATION: scores}, {})
    assert [each for each in sentences if "rows" in each] == [
        f"Released values show which rows are of one person. {said}"
    ]


@pytest.mark.parametrize(
    ("scores", "k", "said"),
    [
        ({}, 5, ""),
        ({"fewest_candidates_by_rows": {"1": 5, "2": 5, "4": 5}}, 5, ""),
        ({"fewest_candidates_by_rows": {"1": 4, "2": 1}}, 5, ""),  # one row alone is said elsewhere
        (
            {"fewest_candidates_by_rows": {"1": 20, "2": 19, "3": 6, "4": 1}},
            20,
            "c_2 = 19: somebody who knows 2 rows of a person is left with 19 people",
        ),
        (
            {"fewest_candidates_by_rows": {"1": 20, "4": 1}, "n_people_not_proven": 21},
            20,
            "c_4 = 1: somebody who knows 4 rows of a person is left with 1 person; the search ended undecided for 21 "
            "people, for whom the worst is assumed",
        ),
    ],
)
def test_the_fewest_rows_that_single_out_are_named(scores, k, said):
    assert remark_on_rows(scores, k) == said
