"""The page that is signed: what a reader of that page alone can answer, whatever was decided and declared."""

import json
import re
from dataclasses import asdict, replace

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
        sum(
            0.5 if each in " ijl.,:;'!|" else 2 if each.isupper() or each in "mw@%" or ord(each) > 591 else 1
            for each in words[:n]
        )
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
    assert "(so many could be, unseen): linkability (up to 946); rare values (everybody)." in said
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
            "Nobody yet: it waits for 1 of 2 approvals; ask Ann (officer)",
        ),
        (
            Verdict(DECLARATION_CHECK, False, "error", "recipient is missing", "Declare it."),
            "recipient is missing. Declare it.",
            "The policy “public release”, changed, by its limits and conditions; no person: the policy demands no app",
        ),
    ],
)
def test_a_release_that_waits_says_for_whom_and_what_would_leave(manifest, verdict, open_point, decided_by):
    text = page_with(manifest, CONDITION, limit_verdict("privacy_risk_score", 0.17, 0.2), verdict)
    assert "Waits for people: nothing was released yet" in text
    assert "What would leave" in text
    assert part(text, "Open points", "Who decided").startswith(open_point)
    assert part(text, "Who decided", "Roles of").startswith(decided_by)
    # Only who is to approve signs.
    assert ("Privacy officer Name, place and date Signature" in text) == (verdict.name == APPROVAL_CHECK)
    assert "synthetic records, waiting" in text


def test_a_page_that_waits_says_what_can_be_verified_now(manifest):
    asked = asdict(Verdict(APPROVAL_CHECK, False, "error", "waits for 1 approvals"))
    text = text_of(render_report(manifest | {"verdicts": [*manifest["verdicts"], asked]}, MATERIAL))
    annex = text[text.index("Annex E.") :]
    assert annex.startswith(
        "Annex E. The files that wait These files are not released, and privacy_assets verify does not"
    )
    assert "privacy_assets approve compares sizes and digests" in annex
    assert "anyone who receives this directory" not in annex
    assert "Data files File Bytes SHA-256" in annex
    assert "Annex E. Verify the files With the Python package" in text_of(render_report(manifest, MATERIAL))


def test_names_of_columns_are_not_cut_where_there_is_room(manifest):
    columns = [{"column": f"measured_at_admission_number_{i}", "role": "sensitive"} for i in range(26)]
    few = page_with(manifest, CONDITION, columns=columns, figures={})
    assert ", ".join(each["column"] for each in columns) in few
    many = [Verdict(f"condition_{i}", False, "warn", "long " * 60, "advice " * 60) for i in range(4)]
    declared = dict.fromkeys(("recipient", "recipient_means", "purpose", "legal_basis", "retention"), "long " * 60)
    full = page_with(manifest, *many, columns=columns, declaration=declared)
    assert "measured_at_admission_number_0" in full
    assert "measured_at_admission_number_25" not in full


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
    assert text.index("Refused by 3 conditions") < text.index(
        "Found: beyond the limits: leakage detected, privacy risk score Found: rejected by Ann"
    )
    own = page_with(
        manifest, leak, refusal="The run ended.", policy=manifest["policy"] | {"use_case": None, "changes": []}
    )
    assert "Decided by the policy on 2 records. The run ended." in own
    assert "It is this release\u2019s own. Who decided on the policy: not recorded." in own
    preset = Policy.for_use_case("internal_analytics").with_required(detectable_share=0.02)
    named = page_with(manifest, leak, refusal="The run ended.", policy=json.loads(json.dumps(preset.to_json())))
    assert "Decided by the policy “internal analytics”, changed, on 2 records." in named
    assert "the share of the people of whom copies may go unnoticed from 1.00% to 2.00%" in named
    advice = part(text, "What to do", "Who decided")
    assert advice.startswith(
        "Leakage detected. Measured by column, guessed right more often of originals than of others: income (10.0%). "
        "Use larger leaves. Privacy risk score. Measured on these records, with age dropped: 5.00% of them identified, "
        "instead of 20.0%. Coarsen."
    )
    assert text[text.index("Who decided") :].startswith("Who decided rejected by Ann (officer)")
    assert "Responsible for the release" not in text


BOUNDED = DISCLOSURE | {
    "exposed_share": 0.0151,
    "exposed_share_of_least_visible": 0.3,
    "inference_interval": [-0.01, 0.0222],
    "membership_advantage_upper": 0.0822,
    "membership_advantage_interval": [-0.02, 0.0822],
}
SINGLED_OUT = SCORES | {"originals_singled_out": 0.2001, "originals_singled_out_by_strangers": 0.1999}


def chances(manifest, figures, *decided, **changes):
    text = page_with(manifest, CONDITION, *decided, figures=figures, **changes)
    return part(text, "the figures that decide", "What was not answered").replace("&#39;", "'")


def test_what_can_happen_to_one_person_is_what_the_figures_bound_and_never_less(manifest):
    said = chances(manifest, {"mpucc_assessment": SINGLED_OUT, "disclosure_assessment": BOUNDED})
    # 15.1, 200.1, 541.1 and 22.2 of 1,000, rounded away from safety; others for comparison, toward it.
    for expected in (
        "Copied: At most 16 of 1,000 people in the source have a copy among the records (95 % confidence), as far as "
        "copying strikes people at random; of people who are hardest to notice, up to 300 of 1,000 could be copied.",
        "Singled out: For 201 of 1,000 people in the source (counted), some record fits only them by up to 3 columns",
        "Records of other real people would fit 199 of 1,000 like that, by coincidence.",
        "tells which is which in at most 542 of 1,000 cases (95 % confidence; tossing a coin: 500).",
        "Guessed: At most 23 of 1,000 sensitive values are guessed right",
        "Not bounded: other attacks than these, copies of parts of records, and what other tables add to these ",
    ):
        assert expected in said
    least = chances(
        manifest, {"disclosure_assessment": BOUNDED | {"exposed_share": 0.0, "inference_interval": [-1, -0.1]}}
    )
    # 1.29 % of copies can be seen at least.
    assert "At most 13 of 1,000 people in the source have a copy" in least
    assert "Guessed: At most 0 of 1,000" in least
    all_ = BOUNDED | {"exposed_share": 1.0, "exposed_share_of_least_visible": None}
    assert "copies of everybody in the source cannot be excluded" in chances(manifest, {"disclosure_assessment": all_})
    unknown = chances(manifest, {"disclosure_assessment": BOUNDED | {"exposed_share_of_least_visible": 1.0}})
    assert "of people who are hardest to notice, any number could be copied" in unknown


def test_a_leak_points_to_what_bounds_its_size(manifest):
    leak, none = (limit_verdict("leakage_detected", found, 0, not found) for found in (1.0, 0.0))
    for decided, is_said in ((leak, True), (none, False)):
        said = chances(manifest, {"disclosure_assessment": BOUNDED}, decided)
        assert ("Of how many people, the figure on copies bounds." in said) == is_said
    assert "the figure on copies bounds" not in chances(manifest, {}, leak)


def test_no_fewer_copies_are_excluded_than_can_be_seen(manifest):
    lucky = BOUNDED | {"exposed_share": 0.0015, "exposed_share_of_least_visible": 0.002, "detectable_share": 0.039}
    said = chances(manifest, {"disclosure_assessment": lucky})
    assert "At most 39 of 1,000 people in the source have a copy" in said
    assert "hardest to notice, up to 39 of 1,000 could be copied" in said


def test_an_undecided_leak_is_not_said_to_be_none(manifest):
    undecided = replace(
        limit_verdict("leakage_detected", 0.0, 0, False),
        value=None,
        reason="leakage_detected has no value; expected no (copies of 39 people might have gone unnoticed)",
    )
    said = chances(manifest, {"disclosure_assessment": BOUNDED}, undecided)
    assert "leakage detected has no value; expected no (copies of 39 people might have gone unnoticed)." in said
    assert "than chance explains" not in said
    text = page_with(
        manifest, CONDITION, undecided, refusal="The gate refused.", figures={"disclosure_assessment": BOUNDED}
    )
    assert "Found: the policy demands figures that are not known: leakage detected" in text
    assert "beyond the limit" not in text


def test_what_no_figure_bounds_is_named(manifest):
    said = chances(manifest, {})
    assert said.startswith("Not bounded: other attacks than these")
    assert "how many people are copied, singled out, known to be in the source, guessed." in said
    # Blind columns, foreign records and a figure without a value for its limit bound nothing.
    figures = {"mpucc_assessment": SINGLED_OUT, "disclosure_assessment": BOUNDED}
    blind = {"unknown_values": {"age": {"unknown": 0.5, "expected": 0.0, "blind": True, "by_range": False}}}
    for settings in ({"disclosure_assessment": blind}, {"mpucc_assessment": {"foreign": "They are foreign."}}):
        assert "of 1,000" not in chances(manifest, figures, settings=settings)
    none = replace(limit_verdict("exposed_share", 0.0, 0.1, False), value=None)
    said = chances(manifest, figures, none)
    assert "exposed share no value (limit: below 0.1) upper 95 % end of the share" in said
    assert "how many people are copied." in said


def test_what_can_happen_to_a_person_in_anonymized_records(manifest):
    candidates = {
        "max_reidentification_probability": 1 / 3,
        "fewest_candidates": 3,
        "mean_reidentification_probability": 0.2995,
        "membership_advantage_upper": 0.5,
        "membership_estimated": None,
    }
    figures = {"anonymity": {"share_in_homogeneous_classes": 0.793}, "reidentification_assessment": candidates}
    columns = [
        {"column": "age_low", "role": "quasi_identifier", "generalizes": "age"},
        {"column": "age_high", "role": "quasi_identifier", "generalizes": "age"},
        {"column": "cost", "role": "sensitive"},
    ]
    about = {"stage": "anonymized", "columns": columns, "columns_leaving_as_is": []}
    said = chances(manifest, figures, **about)
    for expected in (
        "Recognized: Somebody who knows the columns that the policy assumes (age) picks a person's record with a "
        "chance of at most 1 in 3, and on average that of 300 of 1,000 people (counted).",
        "Sensitive value certain: 793 of 1,000 records are in classes with one value of a sensitive column",
        "these show for at most 500 of 1,000 people in the source that they are in it, net of others who only seem to "
        "be (95 % confidence)",
        "Not bounded: attackers who know other columns, or other tables of these people.",
    ):
        assert expected in said
    estimated = candidates | {"membership_estimated": "there is no control"}
    said = chances(manifest, figures | {"reidentification_assessment": estimated}, **about)
    assert "net of others who only seem to be (estimated without a control)" in said
    known = manifest["policy"] | {"known": [["age", "sex"], ["town"]]}
    assert "(age, sex; town)" in chances(manifest, figures, policy=known, **about)


def test_a_guarantee_bounds_every_conclusion(manifest):
    budget = {"epsilon": 1.0, "total_epsilon": 2.0, "delta": 1e-9}
    said = chances(manifest, {"privacy_budget": budget})
    assert "one person's data makes it at most 2.72 times as likely (epsilon 1; delta 1e-09)." in said
    # Not on attacks alone that were tried.
    assert "Not bounded: how many people are copied" in said


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
    assert (shown.count("(limit: "), shown.count("(must be no)")) == (2, 1)


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
