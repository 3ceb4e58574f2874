"""The page that is signed: what a reader of that page alone can answer, whatever was decided and declared."""

import re
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy_assets.release.first_page import LINE, MOST_LINES, MOST_POINTS, cut
from privacy_assets.release.gate import APPROVAL_CHECK, DECLARATION_CHECK, REJECTION_CHECK, Verdict
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.report import render_report
from privacy_assets.release.report_words import DECISIVE, decisive_words, in_which_columns
from tests.release.test_report import CONDITION, MATERIAL, SCORES, first_page, limit_verdict, page_of, text_of
from tests.release.test_report_criteria import DISCLOSURE, ROW

SYNTHETIC = {"mpucc_assessment": SCORES | {"columns_assessed": 15}, "disclosure_assessment": DISCLOSURE}


@pytest.fixture
def manifest(tmp_path):
    return page_of(tmp_path)[1]


def page_with(manifest, *decided, refusal=None, figures=SYNTHETIC, material=MATERIAL, **changes):
    verdicts = [asdict(each) for each in decided]
    changed = manifest | {"figures": figures, "verdicts": verdicts} | changes
    return text_of(first_page(render_report(changed, material, refusal)))


def part(text, heading, until):
    return text[text.index(heading) + len(heading) : text.index(until)].strip()


@given(st.text(), st.integers(0, 60))
def test_a_text_is_cut_to_a_length_and_points_to_what_has_the_rest(text, longest):
    words = " ".join(text.split())
    lengths = [
        sum(2 if each.isupper() or each in "mw@%" or ord(each) > 591 else 1 for each in words[:n])
        for n in range(len(words) + 1)
    ]
    shown = cut(text, longest, "C")
    if lengths[-1] <= longest:
        assert shown == words
    else:
        n_shown = max(n for n, length in enumerate(lengths) if length <= longest)
        assert shown == words[:n_shown].rstrip() + "\u2026 (all in Annex C)"


def test_a_long_declaration_is_cut_on_the_page_and_whole_in_the_annex(manifest):
    long = "<b>For & against</b> " * 5_000
    declared = {"purpose": long, "recipient": "W" * 100_000, "retention": "until 2030", "roles_decided_by": long}
    page = render_report(manifest | {"declaration": declared}, MATERIAL)
    first = text_of(first_page(page))
    assert len(first) < 5_000
    assert re.search(r"To whom W{35,170}\u2026 \(all in Annex A\) Why", first)
    assert "Until when Retention: until 2030" in first
    assert "<b>" not in page
    assert page.count("&lt;b&gt;For &amp; against&lt;/b&gt;") > 10_000
    assert "W" * 100_000 in page[page.index("Annex A.") :]


def test_what_goes_unnoticed_has_its_size_and_is_not_called_chance(manifest):
    weak = DISCLOSURE | {
        "detectable_people": 604,
        "detectable_share": 0.128,
        "criteria": [
            {"criterion": "linkability", **ROW, "detectable_share": 0.2},
            {"criterion": "near_copies", **ROW, "detectable_share": 0.0129},
            {"criterion": "rare_values", **ROW, "detectable_share": None},
        ],
    }
    leak = limit_verdict("leakage_detected", 0.0, 0)
    text = page_with(manifest, CONDITION, leak, figures=SYNTHETIC | {"disclosure_assessment": weak})
    said = part(text, "What was not answered", "Open points")
    assert "fewer than 604 people (12.8% of the originals) might have gone unnoticed" in said
    assert "copies of parts of records, of more people: not answerable with this control." in said
    assert "copies of fewer than 946 people (20.0%): linkability; copies of everybody: rare values." in said
    assert "near copies" not in said
    assert "combinations of more than 3 of the 15 columns" in said
    assert "whether the records reveal more about the originals is not answerable with this control" in text
    assert "chance" not in text
    answered = page_with(manifest, CONDITION, leak)
    assert (
        "(1.29% of the originals) might have gone unnoticed; copies of parts of records, of more people. W" in answered
    )
    assert "no more about the originals than chance explains" in answered


def test_without_a_control_or_figures_the_page_says_that_nothing_answers(manifest):
    text = page_with(manifest, CONDITION, figures={"mpucc_assessment": SCORES})
    assert "reveal more about the originals than about people never seen: no figure says so." in text
    text = page_with(manifest, CONDITION, figures={}, stage="anonymized")
    assert "How many people a record can belong to: no figure says so." in text
    assert "The policy has no limit on these records, so no figure decided." in text


@pytest.mark.parametrize(
    ("verdict", "open_point", "decided_by"),
    [
        (
            Verdict(APPROVAL_CHECK, False, "error", "waits for 1 of 2 approvals; ask Ann (officer)"),
            "waits for 1 of 2 approvals; ask Ann (officer).",
            "waits for 1 of 2 approvals; ask Ann (officer)",
        ),
        (
            Verdict(DECLARATION_CHECK, False, "error", "recipient is missing", "Declare it."),
            "recipient is missing. Declare it.",
            "The policy, by its limits and conditions; no person: the policy demands no approval.",
        ),
    ],
)
def test_a_release_that_waits_says_for_whom_and_what_would_leave(manifest, verdict, open_point, decided_by):
    text = page_with(manifest, CONDITION, limit_verdict("privacy_risk_score", 0.17, 0.2), verdict)
    assert "Waits for people: nothing was released yet" in text
    assert "What would leave" in text
    assert part(text, "Open points", "Who decided").startswith(open_point)
    assert part(text, "Who decided", "Responsible").startswith(decided_by)


def test_what_the_policy_demands_is_missing_and_what_it_does_not_is_not_stated(manifest):
    demanding = Policy((Limit("privacy_risk_score", 0.2),)).with_required(declaration=["recipient", "review_by"])
    changed = manifest["policy"] | {"required": demanding.to_json()["required"]}
    text = page_with(manifest, CONDITION, policy=changed)
    assert "To whom missing, although the policy demands it Why not stated, and not demanded by the policy" in text
    assert "Until when Review by: missing, although the policy demands it" in text


def test_a_refusal_names_what_was_found_then_the_columns_and_the_lever(manifest):
    guessed = [
        {"column": "income", "original": 0.4, "control": 0.3, "low": 0.02, "high": 0.2},
        {"column": "age", "original": 0.4, "control": 0.39, "low": -0.02, "high": 0.2},
        {"column": "town", "original": 0.5, "control": 0.49, "low": None, "high": None},
    ]
    figures = SYNTHETIC | {"disclosure_assessment": DISCLOSURE | {"guessed_columns": guessed}}
    leak = limit_verdict("leakage_detected", 1.0, 0, False, advice="Use larger leaves.")
    score = limit_verdict("privacy_risk_score", 0.17, 0.1, False, advice="Coarsen.")
    rejected = Verdict(REJECTION_CHECK, False, "error", "rejected by Ann (officer), 2026-01-01: too risky for them")
    text = page_with(manifest, leak, score, rejected, refusal="The run ended.", figures=figures)
    assert text.index("Refused by 3 conditions") < text.index("Found: leakage detected is 1.0")
    advice = part(text, "What to do", "Who decided")
    assert advice.startswith(
        "Leakage detected. Measured by column, guessed right more often of originals than of others: income (10.0%). "
        "Use larger leaves. Privacy risk score. Measured on these records, with age dropped: 5.00% of them identified, "
        "instead of 20.0%. Coarsen."
    )
    assert text[text.index("Who decided") :].startswith("Who decided rejected by Ann (officer)")
    assert "Responsible for the release" not in text


def test_columns_are_named_where_they_were_measured_and_nowhere_else():
    figures = {
        "anonymity": {
            "sensitive": {
                "plan": {"share_in_homogeneous_classes": 0.0},
                "cost": {"share_in_homogeneous_classes": 0.25},
                "town": {"share_in_homogeneous_classes": 0.5},
            }
        },
        "rare_values": {"by_column": {"town": {"n_values": 1_200}, "plan": {"n_values": 0}}},
        "semantic_assessment": {"records_at_risk_by_lacked_column": {"age": 3, "sex": 0}},
    }
    assert in_which_columns("l_diversity", figures).endswith("certain most often: town (50.0%), cost (25.0%)")
    assert in_which_columns("rare_values_released", figures).endswith("rare values: town (1,200)")
    assert in_which_columns("maximum_semantic_risk", figures).endswith("records above the limit: age (3)")
    for metric in ("leakage_detected", "smallest_class", None):
        assert in_which_columns(metric, figures) == ""
    assert in_which_columns("share_in_homogeneous_classes", {}) == ""


def test_the_failed_figures_come_first_then_those_that_say_most(manifest):
    limited = [
        limit_verdict("verbatim_copies", 0.0, 1),
        limit_verdict("rare_values_released", 0.0, 1),
        limit_verdict("leakage_detected", 0.0, 0),
        limit_verdict("privacy_risk_score", 0.17, 0.2),
        limit_verdict("main_protection", 0.8, 0.9, False, "warn"),
    ]
    text = page_with(manifest, *limited)
    shown = part(text, "the figures that decide", "What was not")
    places = [shown.index(each) for each in ("main protection 0.8", "leakage detected no", "privacy risk score 0.17")]
    assert places == sorted(places)
    assert shown.count("(limit: ") == 3


def test_every_decisive_figure_has_words_only_if_all_its_figures_are_there():
    for metric in DECISIVE:
        assert decisive_words(metric, {}) == ""
    assert "20.0% of the synthetic records fit exactly one person" in decisive_words("privacy_risk_score", SYNTHETIC)


def test_many_and_long_points_leave_room_for_the_signature(manifest):
    many = [Verdict(f"condition_{i}", False, "warn", "long " * 500, "advice " * 500) for i in range(30)]
    text = page_with(manifest, *many, n_records=10**9, release="n" * 500, partition="p" * 500)
    points = part(text, "Open points", "Who decided")
    assert f" {31 - MOST_POINTS} more in Annex A." in points
    assert len(points) < (MOST_LINES + MOST_POINTS) * LINE
    assert len(text) < 5_000
