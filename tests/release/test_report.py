import json
import math
import re
from dataclasses import asdict, replace
from html.parser import HTMLParser

import pandas as pd
import pytest

from privacy_assets.display.numbers import percent
from privacy_assets.errors import InvalidSettingError
from privacy_assets.release.declaration import require_declaration
from privacy_assets.release.files import ReleaseRecord, write_release
from privacy_assets.release.gate import Verdict
from privacy_assets.release.policy import USE_CASES, Limit, Policy
from privacy_assets.release.report import (
    Picture,
    Refusal,
    ReportMaterial,
    rated_worse,
    render_report,
)
from privacy_assets.release.report_words import changes_in_words, plain_words
from privacy_assets.storage.fingerprint import fingerprint
from tests.declared import DECLARED
from tests.release.agreeing import agreeing

MARKUP = "<script>alert('x')</script>\"&"
TABLE = pd.DataFrame({"age": [31, 42], MARKUP: ["free", None]})
SCORES = {
    "privacy_risk_score": 0.17,
    "overall_protection": 0.83,
    "main_protection": 0.8,
    "baseline_protection": 0.97,
    "score_of_strangers": 0.3,
    "identification_rate": 0.2,
    "total_identified": 800,
    "total_syn_records": 4000,
    "search": "exact",
    "max_combo_size": 3,
    "score_of_lone_people": 0.17,
}
CONTROL = {
    "leakage": "no",
    "n_matched_records": 900,
    "matched_identification_rate": 0.12,
    "control_identification_rate": 0.11,
}
CHANGES = pd.DataFrame(
    {
        "column": ["age", "age"],
        "share_of_identified": [0.5, 0.5],
        "change": ["dropped", "coarsened"],
        "how": ["left out", "10 bands of about as many originals each"],
        "identification_rate": [0.05, None],
        "difference": [-0.15, None],
        "privacy_risk_score": [0.04, None],
    }
)
CHANGES.attrs = {"n_measured": 1, "n_changes": 2}
ADVICE = pd.DataFrame(
    {
        "columns": [(), ("age",)],
        "reason": ["nothing forgotten", "scaled column"],
        "maximum_semantic_risk": [1.0, 0.25],
        "records_kept": pd.array([None, 40], "Int64"),
    }
)
MATERIAL = ReportMaterial(
    pictures=(Picture("Identified records by size (2: 28)", b"\x89PNG picture"),),
    refusals=(
        Refusal(
            "2026-01-02T03:04:05+00:00",
            ("leakage_detected is yes; expected no", "privacy_risk_score is 0.31; expected below 0.2"),
        ),
    ),
    column_changes=CHANGES,
    attribute_advice=ADVICE,
    notes=("A note on what was not measured.",),
)
CONDITION = Verdict("synthetic_is_as_recorded", True, "error", "the stored content is what the run recorded")


def limit_verdict(metric, value, limit, passed=True, severity="error", advice="", side="synthetic"):
    return Verdict(f"{metric}_holds", passed, severity, f"{metric} is {value}", advice, metric, value, limit, "below")


def record(**changes):
    defaults = {
        "release": "people",
        "stage": "synthetic",
        "partition": None,
        "run_id": "run",
        "policy": Policy(
            (Limit("privacy_risk_score", 0.2), Limit("verbatim_copies", 0, severity="warn")), use_case="public_release"
        ),
        "verdicts": (
            CONDITION,
            limit_verdict("privacy_risk_score", 0.17, 0.2),
            limit_verdict("verbatim_copies", 3.0, 0, False, "warn", "Remove copies."),
        ),
        "settings": {"split": {"train_fraction": 0.8}, "mpucc_assessment": {"columns": ["age", MARKUP]}},
        "figures": {"mpucc_assessment": SCORES, "control": CONTROL},
        "columns": [{"column": "age", "role": "quasi_identifier"}, {"column": MARKUP, "role": "other"}],
        "refusals_before": 1,
    }
    return agreeing(ReleaseRecord(**{**defaults, **changes}))


def rare_values(n_values, people=3):
    counted = {MARKUP: {"n_values": n_values, "n_records": n_values}}
    return {
        "people_per_value": people,
        "rare_values_released": n_values,
        "records_with_rare_values": n_values,
        "by_column": counted,
    }


def page_of(directory, material=MATERIAL, table=TABLE, **changes):
    written = write_release(directory, table, fingerprint(table), record(**changes), ("csv",), material)
    return (written / "report.html").read_text(), json.loads((written / "manifest.json").read_text())


def text_of(page):
    body = re.sub(r"<(style|title)>.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


class Outline(HTMLParser):
    """Collect what accessibility depends on."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.headings, self.ids, self.links, self.references = [], [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.tags.append((tag, named))
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if "id" in named:
            self.ids.append(named["id"])
        if tag == "a":
            self.links.append(named["href"])
        self.references += [named[name] for name in ("src", "href", "action", "data", "srcset") if name in named]

    def every(self, tag):
        return [named for name, named in self.tags if name == tag]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return page_of(tmp_path_factory.mktemp("release"))[0]


def test_the_page_to_sign_comes_first_and_all_else_is_in_five_annexes(page):
    assert page.index("Released, with 1 warning") < page.index("<h2")
    assert re.findall(r"<h[23][^>]*>(.*?)</h[23]>", page) == [
        "What leaves",
        "What could go wrong for one person, and the figures that decide",
        "What was not answered",
        "Open points",
        "Who decided",
        "Annex A. Decision and limits",
        "Figures against limits",
        "Conditions on the evidence",
        "History of refusals",
        "Annex B. What the records reveal",
        "What the figures mean",
        "Pictures",
        "Annex C. What would lower the risk",
        "Measured on these records",
        "Annex D. All figures and settings",
        "Settings",
        "Annex E. Verify the files",
    ]


def test_a_figure_never_reads_like_the_limit_that_it_is_not_nor_like_none_or_all(tmp_path):
    verdicts = (
        CONDITION,
        limit_verdict("privacy_risk_score", 0.09999999, 0.1),
        limit_verdict("verbatim_rate", 0.1234567, 0.2),
        limit_verdict("share_in_homogeneous_classes", 0.0, 0),
        limit_verdict("main_protection", 0.1004, 0.1, False, "warn"),
        limit_verdict("leakage_detected", 1.0, 0, False, "warn"),
    )
    policy = Policy((Limit("privacy_risk_score", 0.1),))
    scores = SCORES | {"identification_rate": 0.00001, "overall_protection": 0.99999, "privacy_risk_score": 0.09999999}
    text = text_of(page_of(tmp_path, verdicts=verdicts, policy=policy, figures={"mpucc_assessment": scores})[0])
    for said in (
        "0.09999999 below 0.1 met",
        "0.123 below 0.2 met",
        # A failed limit does not look met.
        "0.1004 below 0.1 not met: warning",
        "yes no not met: warning",
        # A limit on sensitive columns where the contract names none.
        "no sensitive column below 0 does not apply",
        "800 of 4,000 synthetic records (&lt;0.01%) can be pinned",
        "the records have &gt;99.9% of the protection",
    ):
        assert said in text, said


def test_a_figure_that_failed_its_limit_does_not_look_as_if_it_met_it_in_any_table_or_sentence(tmp_path):
    verdicts = (
        CONDITION,
        limit_verdict("privacy_risk_score", 0.1004, 0.1, False, "warn"),
        limit_verdict("identification_rate", 0.2004, 0.2, False, "warn"),
        limit_verdict("maximum_semantic_risk", 0.2504, 0.25, False, "warn"),
        limit_verdict("l_diversity", 2.9996, 3, False, "warn"),
        limit_verdict("t_closeness", 0.3001, 0.3, False, "warn"),
    )
    figures = {
        "mpucc_assessment": SCORES | {"privacy_risk_score": 0.1004, "identification_rate": 0.2004},
        "statistics": {"sensitive": {"disease": {"distinct_l": 3, "entropy_l": 2.9996, "t": 0.3001}}},
        "anonymity": {"l_diversity": 2.9996, "t_closeness": 0.3001},
    }
    material = replace(
        MATERIAL,
        column_changes=CHANGES.assign(identification_rate=0.20004, privacy_risk_score=0.10004),
        attribute_advice=ADVICE.assign(maximum_semantic_risk=0.2504),
    )
    manifest = page_of(tmp_path)[1] | {"verdicts": [asdict(verdict) for verdict in verdicts], "figures": figures}
    text = text_of(render_report(manifest, material))
    for said in (
        "The privacy risk score is 0.1004,",
        "privacy risk score 0.1004 overall protection 0.83",
        "identification rate 0.2004 total identified 800",
        "800 of 4,000 synthetic records (20.04%) can be pinned",
        "l diversity 2.9996 t closeness 0.3001",
        "disease 3 2.9996 0.3001",
        "dropped: left out 20.004% -15 points 0.10004",
        "age scaled column 0.2504 40",
    ):
        assert said in text, said


def test_where_more_records_than_originals_are_released_the_page_says_what_the_scores_are(tmp_path):
    drawn = {
        "records_per_draw": 1000,
        "identification_rate_lowest": 0.19,
        "identification_rate_highest": 0.21,
        "privacy_risk_score_lowest": 0.17,
        "privacy_risk_score_highest": 0.18,
        "originals_singled_out": 0.3,
        "originals_singled_out_interval_low": 0.28,
        "originals_singled_out_interval_high": 0.32,
    }
    limits = tuple(limit_verdict(name, SCORES.get(name, 0.3), 0.4) for name in ("originals_singled_out",))
    figures = {"mpucc_assessment": SCORES | drawn, "control": CONTROL}
    text = text_of(page_of(tmp_path, figures=figures, verdicts=(*record().verdicts, *limits))[0])
    for said in (
        "There are more synthetic records (4,000) than originals, and anyone can draw fewer of them. So the scores are "
        "means over draws of 1,000 records: 20.0% of these (19.0% to 21.0%) can be pinned to one original",
        "(0.17 to 0.18 over the draws), on a scale from 0",
        "30.0% of the originals (interval 28.0% to 32.0%) are singled out by some released record.",
        "95 % interval 0.28 to 0.32",
    ):
        assert said in text, said


def test_where_people_were_counted_the_page_speaks_of_people(tmp_path):
    counted = {"people_identified": 300, "people_assessed": 1200}
    figures = {"mpucc_assessment": SCORES | counted, "control": CONTROL | {"counted": "people"}}
    text = text_of(page_of(tmp_path, figures=figures)[0])
    for said in (
        "800 of 4,000 synthetic records (20.0%) can be pinned to one person: in some combination of up to 3 columns",
        "300 of 1,200 people (25.0%) are singled out.",
        "Among 900 people of each,",
    ):
        assert said in text, said


def test_large_settings_and_limits_are_written_in_full_with_commas(tmp_path):
    asked = {"max_combinations": 5_000_000, "max_comparisons": 200_000_000_000, "seed": 2**60 + 1, "rate": 1234.5678}
    text = text_of(page_of(tmp_path, settings={"mpucc_assessment": {"asked": asked}})[0])
    for said in ("5,000,000", "200,000,000,000", "1,152,921,504,606,846,977", "1,234.5678"):
        assert said in text, said


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0.0%"), (0.00012, "0.01%"), (0.05, "5.00%"), (0.5, "50.0%"), (0.9996, ">99.9%"), (1, "100.0%")],
)
def test_shares_are_percent(share, text):
    assert percent(share) == text


def test_the_page_says_what_was_found_what_it_means_and_what_would_lower_it(page):
    text = text_of(page)
    for said in (
        "privacy risk score 1 - overall protection 0.17 below 0.2 met",
        "verbatim copies synthetic records equal to an original on all columns 3 below 0 not met: warning",
        "Remove copies.",
        "800 of 4,000 synthetic records (20.0%) can be pinned to one original",
        "As many real people whom the synthesizer never saw would score 0.3 in place of the synthetic records.",
        "Among 900 records of each, 12.0% of the synthetic records are pinned to an original and 11.0% to a person",
        "age 50.0% of the identified dropped: left out 5.00% -15 points 0.04",
        "for those with the largest effect: 1 of 2 changes measured",
        "coarsened: 10 bands of about as many originals each not measured",
        "On a general scale, which knows no policy, the privacy risk score is rated: acceptable risk for internal use. "
        "The policy decides instead: privacy risk score is 0.17.",
        "none nothing forgotten 1 none",
        "age scaled column 0.25 40",
        "2026-01-02 03:04 UTC leakage_detected is yes; expected no; privacy_risk_score is 0.31; expected below 0.2",
        "Settings: split Setting Value train fraction 0.8",
        "privacy_assets verify .",
        "A note on what was not measured.",
    ):
        assert said in text, said


def test_the_page_says_what_other_people_score_on_columns_that_depend_on_no_others(tmp_path):
    of_related = {"score_of_related_columns": 0.31, "score_of_strangers_on_related_columns": 0.0143}
    text = text_of(page_of(tmp_path, figures={"mpucc_assessment": SCORES | of_related})[0])
    assert "Without columns that depend on no others, the records score 0.31 and these people 0.0143." in text


def test_the_page_says_how_many_copies_are_compatible_with_the_test(tmp_path):
    text = text_of(page_of(tmp_path, figures={"disclosure_assessment": {"exposed_share": 0.0163}})[0])
    assert (
        "Copies of up to 1.63% of the originals cannot be excluded (95 % confidence, if those who were copied were "
        "drawn at random)." in text
    )


def test_the_page_needs_no_network_no_script_and_no_other_file(page):
    outline = Outline(page)
    assert not outline.every("script")
    assert not outline.every("link")
    assert all(reference.startswith(("#", "data:image/png;base64,")) for reference in outline.references)
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in page
    assert "default-src 'none'" in next(each["content"] for each in outline.every("meta") if "http-equiv" in each)


def test_names_are_escaped_wherever_they_are_shown(tmp_path):
    # A name that could leave a title, an attribute or an alternative text.
    material = ReportMaterial(pictures=(Picture(MARKUP, b"png"),), column_changes=CHANGES.assign(column=MARKUP))
    page, _ = page_of(tmp_path, material, release=MARKUP, partition=MARKUP)
    assert "<script" not in page
    assert not [named for _, named in Outline(page).tags if any(name.startswith("on") for name in named)]
    assert Outline(page).every("img")[0]["alt"] == MARKUP
    assert page.count("&lt;script&gt;") >= 5


def test_the_page_can_be_read_by_everybody(page):
    outline = Outline(page)
    assert outline.every("html")[0]["lang"] == "en"
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in zip(outline.headings, outline.headings[1:], strict=False))
    assert all(named.get("scope") in ("col", "row") for named in outline.every("th"))
    assert len(outline.every("caption")) == len(outline.every("table"))
    assert all(named["alt"] for named in outline.every("img"))
    assert len(set(outline.ids)) == len(outline.ids)
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.ids)
    # What scrolls can be reached with the keyboard and has a name.
    scrolling = [named for named in outline.every("div") if named.get("class") == "scroll"]
    assert len(scrolling) == len(outline.every("table"))
    assert all(named["tabindex"] == "0" and named["role"] == "region" and named["aria-label"] for named in scrolling)


def luminance(color):
    digits = color.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_every_text_stands_out_from_what_is_behind_it(page):
    """WCAG 2.2, success criterion 1.4.3: at least 4.5 : 1."""
    style = page[page.index("<style>") : page.index("</style>")]
    named = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", style))
    pairs = [(named[ink], behind) for ink in ("ink", "soft", "blue") for behind in ("#ffffff", named["pale"])]
    pairs += [
        (
            re.search(rf"\.{name} {{[^}}]*[; ]color: (#\w+)", style)[1],
            re.search(rf"\.{name} {{ background: (#\w+)", style)[1],
        )
        for name in ("good", "warning", "waived")
    ]
    assert len(pairs) == 9
    assert min(contrast(*pair) for pair in pairs) >= 4.5


def test_the_manifest_holds_the_digest_of_the_report_and_not_the_report(tmp_path):
    page, manifest = page_of(tmp_path)
    assert set(manifest["files"]) == {
        *("croissant.json", "dcat.jsonld", "report.html", "synthetic.csv", "synthetic.parquet")
    }
    assert manifest["formats"] == ["csv", "parquet"]
    assert manifest["files"]["report.html"]["bytes"] == len(page.encode())
    assert "DOCTYPE" not in json.dumps(manifest)
    assert manifest["files"]["synthetic.parquet"]["sha256"] in page


def test_a_clean_release_says_so_and_little_material_still_makes_a_page(tmp_path):
    verdicts = (CONDITION, limit_verdict("privacy_risk_score", 0.05, 0.2))
    policy = Policy((Limit("privacy_risk_score", 0.2),))
    page, _ = page_of(
        tmp_path,
        ReportMaterial(),
        policy=policy,
        verdicts=verdicts,
        figures={"mpucc_assessment": {"privacy_risk_score": 0.05}},
        settings={},
        refusals_before=0,
    )
    text = text_of(page)
    assert "Released The policy admitted these 2 records. 1 of 1 conditions" in text
    assert "No earlier run of this release was refused." in text
    assert "On a general scale" not in text
    assert "Pictures" not in text


def test_a_preset_is_named_with_what_was_changed_of_it(tmp_path):
    preset = Policy.for_use_case("public_release")
    verdicts = (
        CONDITION,
        limit_verdict("privacy_risk_score", 0.04, 0.05),
        limit_verdict("originals_singled_out", 0.04, 0.05),
        limit_verdict("leakage_detected", 0.0, 0),
        limit_verdict("copies_beyond_people", 0.0, 0),
        limit_verdict("rare_values_released", 0.0, 0),
        limit_verdict("exposed_share", 0.02, 0.05),
    )
    of_related = {"mpucc_assessment": {"score_of_related_columns": 0.04}}
    figures = {"rare_values": rare_values(0, 11), **of_related}
    page, _ = page_of(tmp_path, policy=preset, verdicts=verdicts, figures=figures, declaration=DECLARED)
    assert "The policy “public release” admitted these 2 records." in text_of(page)
    changed = preset.with_limit(Limit("smallest_class", 2))
    figures = {"rare_values": rare_values(0, 2), **of_related}
    page, manifest = page_of(tmp_path, policy=changed, verdicts=verdicts, figures=figures, declaration=DECLARED)
    assert "The policy “public release”, changed, admitted these 2 records." in text_of(page)
    assert "the limit on smallest class from at least 11 to at least 2" in text_of(page)
    assert manifest["policy"]["changes"] == ["smallest_class"]


def test_rare_values_are_explained_and_counted_by_column(tmp_path):
    policy = Policy((Limit("privacy_risk_score", 0.2), Limit("rare_values_released", 0, severity="warn")))
    verdict = limit_verdict("privacy_risk_score", 0.17, 0.2)

    def text(n_values):
        found = limit_verdict("rare_values_released", float(n_values), 0, not n_values, "warn", "Coarsen it.")
        page, _ = page_of(
            tmp_path,
            policy=policy,
            verdicts=(CONDITION, verdict, found),
            figures={"rare_values": rare_values(n_values)},
        )
        return text_of(page)

    one = text(1)
    assert "1 text or category value, in 1 record, is shared by fewer than 3 people" in one
    assert "Text and category values shared by fewer than 3 people, by column Column Values Records" in one
    assert "Warning: rare values released is 1.0. Coarsen it." in one
    # How many people are asked for stands among the figures; the policy leaves it open.
    assert "people per value 3" in one
    assert "required: people per value" not in one
    none = text(0)
    assert "Every text or category value in these records is shared by at least 3 people" in none
    assert "by column Column Values" not in none


def test_settings_that_only_programs_read_are_left_to_the_manifest(tmp_path):
    own = {
        "model": {"age": {"kind": "SECRET"}},
        "long": ["x" * 30] * 30,
        "empty": {},
        "l_diversity": {"a_b": {"least": 2}},
    }
    settings = {"assessment": own, "split": None}
    text = text_of(page_of(tmp_path, settings=settings)[0])
    assert "SECRET" not in text
    shown = "model see manifest.json long see manifest.json empty none l diversity a_b: (least: 2)"
    assert f"Settings: assessment Setting Value {shown}" in text
    assert "Settings: split Setting Value split none" in text


def test_the_sentence_on_concepts_leads_with_records_to_withhold(tmp_path):
    scores = {
        "maximum_semantic_risk": 1.0,
        "medium_semantic_risk": 0.0425,
        "fewest_records_accepted": 5,
        "records": 32561,
        "records_not_kept": 7367,
        "records_at_risk_by_lacked_column": {"age": 0, "hours": 12, "income": 34},
    }
    text = text_of(page_of(tmp_path, figures={"semantic_assessment": scores})[0])
    assert (
        "7,367 of 32,561 records (22.6%) would have to be withheld so that an attacker who knows all attributes of a "
        "record and one that it lacks is always left with at least 5 records." in text
    )
    assert "whose absence shows them Column Records income 34 hours 12" in text
    none = scores | {"records_not_kept": 0, "maximum_semantic_risk": 0.2}
    assert "No record has to be withheld: an attacker" in plain_words({"semantic_assessment": none}, {})[0]
    alone = {name: scores[name] for name in ("maximum_semantic_risk", "medium_semantic_risk")}
    (sentence,) = plain_words({"semantic_assessment": alone}, {})
    assert sentence.startswith("An attacker who knows all attributes of a record and one that it lacks picks the")


@pytest.mark.parametrize("use_case", [None, *USE_CASES])
@pytest.mark.parametrize("score", [None, 0.0, 0.1, 0.1001, 0.3, 0.3001])
def test_a_rating_that_contradicts_the_verdict_has_the_reason(score, use_case):
    """A score that is rated for internal use only, or worse, contradicts a release to others."""
    manifest = {"figures": {"mpucc_assessment": {"privacy_risk_score": score}}, "policy": {"use_case": use_case}}
    said = rated_worse(manifest, [limit_verdict("privacy_risk_score", score, 0.4)])
    is_inside = use_case in (None, "internal_analytics", "development")
    assert bool(said) == (score is not None and score > (0.3 if is_inside else 0.1))
    assert said.endswith(f"privacy risk score is {score}.") == bool(said)
    unlimited = rated_worse(manifest, [])
    assert ("no limit on the score" in unlimited) == bool(said)


def test_what_withholding_would_do_is_not_said_to_be_done(tmp_path):
    figures = {"semantic_assessment": {"records_not_kept": 40, "share_not_kept": 1.0}}
    text = text_of(page_of(tmp_path, figures=figures)[0])
    assert "records that withholding would leave out 40 share that withholding would leave out 1" in text
    assert "records not kept" not in text


def test_a_search_that_ended_early_says_what_larger_combinations_would_find():
    sampled = {
        "any_size_identification_rate": 0.97,
        "any_size_interval_low": 0.948,
        "any_size_interval_high": 0.983,
        "any_size_records": 400,
    }
    words = " ".join(plain_words({"mpucc_assessment": SCORES | sampled}, {}))
    assert "combination of up to 3 columns occurs exactly once" in words
    assert "Of a sample of 400 synthetic records, 97.0% can be pinned to one original" in words
    assert "(interval 94.8% to 98.3%)" in words
    assert "sample of" not in " ".join(plain_words({"mpucc_assessment": SCORES}, {}))


DECLARATION = {"purpose": "Teaching statistics", "roles_decided_by": MARKUP}


def first_page(page):
    return page[page.index('id="verdict"') : page.index("<nav")]


def test_the_first_page_has_what_an_officer_signs(tmp_path):
    page, manifest = page_of(tmp_path, declaration=DECLARATION)
    assert manifest["declaration"] == DECLARATION
    first, text = text_of(first_page(page)), text_of(page)
    assert "Why Teaching statistics" in first
    assert "To whom not stated, and not demanded by the policy" in first
    assert "Legal basis not stated, and not demanded by the policy" in text
    assert "Signature" not in first
    assert "The policy “public release”, changed, by its limits and conditions; no person: the policy demands" in first
    # The table has a quasi-identifier, which a synthesizer draws anew, and one other column.
    assert "1 of these columns have values as precise as those of the source: &lt;script" in first
    assert "Columns that are released unchanged Column Role Distinct values" in text
    assert text.count(" other 100.0% 100.0% ordinary not required") == 1
    assert "No column is released unchanged" not in text
    assert MARKUP not in page


def test_the_report_has_the_questions_of_the_law(tmp_path):
    criterion = {
        "criterion": "singling_out",
        "original": 0.1,
        "control": 0.1,
        "low": -0.01,
        "high": 0.02,
        "adjusted_p_value": 0.9,
        "detectable_share": 0.01,
    }
    interval = {"singling_out_interval": [-0.01, 0.02]}
    disclosure = {"criteria": [criterion], "n_original": 800, "n_control": 200, **interval}
    verdicts = (
        CONDITION,
        limit_verdict("privacy_risk_score", 0.17, 0.2),
        limit_verdict("singling_out_excess", 0.02, 0.05),
    )
    figures = {"mpucc_assessment": SCORES, "disclosure_assessment": disclosure}
    policy = Policy((Limit("privacy_risk_score", 0.2), Limit("singling_out_excess", 0.05)))
    page = page_of(tmp_path, verdicts=verdicts, figures=figures, policy=policy)[0]
    assert "Singling out Do some known columns" in text_of(page)
    # And the limited figure has the interval that was measured.
    assert "0.02 95 % interval -0.01 to 0.02 below 0.05 met" in text_of(page)
    assert "0.17 below 0.2 met" in text_of(page)


@pytest.mark.parametrize(("use_case", "origin"), [("public_release", "preset public release: "), (None, "set for")])
def test_each_limit_says_where_it_comes_from(tmp_path, use_case, origin):
    policy = Policy.for_use_case("public_release").with_limit(Limit("identification_rate", 0.3))
    policy = replace(policy, use_case=use_case)
    decided = [limit_verdict(limit.metric, 0.0, limit.value) for limit in policy.limits if limit.is_on("synthetic")]
    manifest = page_of(tmp_path)[1] | {
        "verdicts": [asdict(verdict) for verdict in decided],
        "policy": json.loads(json.dumps(policy.to_json())),
    }
    text = text_of(render_report(manifest, MATERIAL))
    assert f"privacy risk score {origin}" in text
    # A limit that the preset does not have.
    assert "identification rate set for this release" in text


def test_a_released_table_whose_rating_contradicts_its_release_is_not_green_and_says_why(tmp_path):
    verdicts = (CONDITION, limit_verdict("privacy_risk_score", 0.17, 0.2))
    policy = Policy((Limit("privacy_risk_score", 0.2),))
    poor = page_of(tmp_path / "poor", verdicts=verdicts, policy=policy)[0]
    assert 'class="verdict good"' in poor
    assert "On a general scale: acceptable risk for internal use." in text_of(poor)
    assert "good structure" in poor
    public = page_of(tmp_path / "public", verdicts=verdicts, policy=replace(policy, use_case="public_release"))[0]
    assert 'class="verdict warning"' in public
    assert "is rated: acceptable risk for internal use. The policy decides instead" in text_of(first_page(public))
    assert "On a general scale: acceptable" not in text_of(public)


@pytest.mark.parametrize(("share", "is_most"), [(0.793, True), (0.5, False)])
def test_a_warning_that_concerns_most_records_is_in_the_headline(tmp_path, share, is_most):
    metric = "share_in_homogeneous_classes"
    verdicts = (
        CONDITION,
        limit_verdict("privacy_risk_score", 0.17, 0.2),
        limit_verdict(metric, share, 0, False, "warn", "Require l_diversity."),
    )
    manifest = page_of(tmp_path)[1] | {"verdicts": [asdict(verdict) for verdict in verdicts]}
    text = text_of(first_page(render_report(manifest, MATERIAL)))
    words = f"{100 * share:.1f}% of the records are in classes where a sensitive value is certain"
    assert f"Open points {words}: share in homogeneous classes is {share}. Require l_diversity." in text
    assert (f"Released, with 1 warning: {words}" in text) == is_most


def test_a_refusal_names_figures_in_words(tmp_path):
    failed = limit_verdict("identification_rate", 0.2, 0.1, False, advice="Drop columns.")
    manifest = page_of(tmp_path)[1] | {"verdicts": [asdict(failed)], "files": {}, "formats": []}
    text = text_of(render_report(manifest, MATERIAL, "The run ended here."))
    assert "20.0% of the synthetic records single out an original: identification rate is 0.2. What to do: Drop" in text


def test_what_a_policy_changed_of_its_preset_is_named_in_words(tmp_path):
    policy = Policy.for_use_case("public_release").with_limit(Limit("privacy_risk_score", 0.04))
    policy = replace(policy.with_required(exact_search=False), known=(("age",),))
    manifest = page_of(tmp_path)[1] | {"policy": json.loads(json.dumps(policy.to_json()))}
    text = text_of(first_page(render_report(manifest, MATERIAL)))
    assert (
        "Changed from the preset: the limit on privacy risk score from below 0.05 (or exposed share) to below 0.04; "
        "the required exact search from yes to no; the columns that an attacker knows from all quasi-identifiers to "
        "age. Who decided on the policy: not recorded."
    ) in text
    decided = {"policy_decided_by": "The data office"}
    text = text_of(first_page(render_report(manifest | {"declaration": decided}, MATERIAL)))
    assert "Who decided on the policy: The data office." in text


def test_every_change_of_a_policy_is_said_with_what_it_was_and_what_it_is():
    preset = Policy.for_use_case("internal_analytics")
    changed = replace(
        preset.with_limit(Limit("rare_values_released", 0, severity="error"))
        .with_limit(Limit("smallest_class", 3, advice="Ask us."))
        .with_required(detectable_share=None, declaration=("purpose", "recipient"), people_per_value=4),
        known_rows=1,
    )
    changed = replace(changed, limits=tuple(each for each in changed.limits if each.metric != "copies_beyond_people"))
    assert changes_in_words(changed.to_json()).split("; ") == [
        "the limit on copies beyond people from at most 0 to none",
        "the limit on rare values released from at most 0, as a warning to at most 0",
        "the limit on smallest class: at least 3, with other advice",
        "the share of the people of whom copies may go unnoticed from 1.00% to any",
        "the required people per value from any to 4",
        "the required declaration from nothing to purpose, recipient",
        "the rows of a person that an attacker knows from 2 to 1",
    ]
    assert changes_in_words(preset.to_json()) == ""
    assert changes_in_words(changed.to_json() | {"use_case": "of a later version"}).startswith("the limit on copies")


def test_a_column_that_looks_identifying_is_not_said_to_need_no_reason(tmp_path):
    leaving = {
        "column": "cost",
        "role": "sensitive",
        "share_distinct": 0.2,
        "share_alone": 0.06,
        "reads_like": [],
        "leaves_as_is": None,
    }
    entries = [leaving | {"finding": "nearly_unique"}, leaving | {"column": "sex", "finding": "ordinary"}]
    manifest = page_of(tmp_path)[1] | {"columns_leaving_as_is": entries}
    text = text_of(render_report(manifest, MATERIAL))
    assert "nearly unique not stated sex sensitive" in text
    assert "ordinary not required" in text
    synthetic = "The records are synthetic. In these columns their values are as precise as those of the source"
    assert synthetic in text
    assert synthetic not in text_of(render_report(manifest | {"stage": "anonymized"}, MATERIAL))


def test_logarithms_are_in_bits(tmp_path):
    figures = {"mpucc_assessment": SCORES, "reidentification_assessment": {"mean_nonspecificity": 2 * math.log(2)}}
    assert "mean nonspecificity, bits 2" in text_of(page_of(tmp_path, figures=figures)[0])


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"aim": "x"}, r"declaration has \['aim'\]; expected some of \['purpose'"),
        ({"purpose": " "}, r"for \['purpose'\]. Expected a sentence"),
        ({"purpose": 5}, r"for \['purpose'\]"),
        ({"purpose": "x" * 501}, "more than 500 characters"),
        ("purpose", "is not a mapping"),
    ],
)
def test_a_declaration_that_cannot_be_read_is_refused(declared, problem):
    with pytest.raises(InvalidSettingError, match=problem):
        require_declaration(declared)
