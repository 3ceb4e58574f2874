"""A release that withholds the figures computed on people's records: it verifies, and nowhere has one of them."""

import json
from dataclasses import replace

import pytest

from privacy_assets.cli import main
from privacy_assets.orchestration.report_material import without_figures
from privacy_assets.release.files import write_release
from privacy_assets.release.formats.attestation import statements_of
from privacy_assets.release.gate import Verdict
from privacy_assets.release.manifest import are_withheld, digest_of
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.received_checks import withheld_problems
from privacy_assets.release.register import write_register
from privacy_assets.release.remade_report import remake_report
from privacy_assets.release.report import Picture, Refusal, ReportMaterial
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.test_files import RECORD, TABLE

SCORE, RARE, EPSILON = 0.0517, 7.0, 0.9173
LEDGER = "c0ffee" * 8
GUARANTEE = {"epsilon": EPSILON, "total_epsilon": 1.4471, "delta": 1e-6, "fits": 2, "ledger": LEDGER}
VALUES = (SCORE, RARE, EPSILON)
POLICY = Policy(
    (
        Limit("privacy_risk_score", 0.1),
        Limit("rare_values_released", 0, severity="warn"),
        Limit("epsilon", 1.0),
    )
)
FULL = replace(
    RECORD,
    policy=POLICY,
    verdicts=(
        Verdict("synthetic_is_as_recorded", True, "error", "the stored content is what the run recorded"),
        Verdict("no_nearly_unique_measure_leaves_undecided", False, "warn", "93.17% of the people", "Coarsen 93.17%."),
        *(
            Verdict(
                limit.check_name,
                limit.holds_for(value),
                limit.severity,
                f"{limit.metric} is {value}",
                "" if limit.holds_for(value) else "There are 7 of them.",
                limit.metric,
                value,
                limit.value,
                limit.direction,
            )
            for limit, value in zip(POLICY.limits, VALUES, strict=True)
        ),
    ),
    settings={"split": {"train_fraction": 0.8}, "mpucc_assessment": {"n_rows": {"original": 48731}}},
    figures={
        "mpucc_assessment": {"privacy_risk_score": SCORE, "total_identified": 48732},
        "rare_values": {"rare_values_released": 7, "by_column": {}},
        "privacy_budget": GUARANTEE,
    },
)
REPORT = ReportMaterial(
    pictures=(Picture("48733 people", b"\x89PNG\r\n\x1a\npicture of people"),),
    refusals=(Refusal("2026-01-01T00:00:00+00:00", ("privacy_risk_score_is_below_its_limit",)),),
    notes=("48734 originals",),
)
SECRETS = ("0.0517", "93.17", "48731", "48732", "48733", "48734", LEDGER)
IN_OTHER_WORDS = ("0.052", "5.17", "48,731", "48,732", "7 of them")


@pytest.fixture
def release(tmp_path):
    record, report = without_figures(FULL, REPORT)
    return write_release(tmp_path / "releases" / "people", TABLE, fingerprint(TABLE), record, ("parquet",), report)


def rewrite(release, change):
    manifest = json.loads((release / "manifest.json").read_text())
    change(manifest)
    manifest["digest"] = digest_of(manifest)
    (release / "manifest.json").write_text(json.dumps(manifest))
    return verify_release(release, max_bytes=None).problems


def test_the_same_release_with_figures_has_what_is_withheld_here(tmp_path):
    figures = {name: own for name, own in FULL.figures.items() if name != "rare_values"}
    record = replace(FULL, policy=Policy((POLICY.limits[0], POLICY.limits[2])), figures=figures)
    record = replace(record, verdicts=tuple(each for each in FULL.verdicts if each.metric != "rare_values_released"))
    written = write_release(tmp_path, TABLE, fingerprint(TABLE), record, ("parquet",), REPORT)
    published = (written / "manifest.json").read_text() + (written / "report.html").read_text()
    assert all(secret in published for secret in SECRETS)
    cards = (written / "croissant.json").read_text()
    assert "0.0517" in cards
    assert "93.17" in cards


def test_no_withheld_figure_is_published_and_every_decision_is(release):
    register, _ = write_register(release.parents[1])
    manifest, report, page = (
        path.read_text() for path in (release / "manifest.json", release / "report.html", register)
    )
    statements = statements_of(json.loads(manifest), manifest.encode())
    cards = (release / "croissant.json").read_text() + (release / "dcat.jsonld").read_text()
    for secret in SECRETS:
        assert secret not in cards, secret
        assert secret.encode() not in b"".join(statements.values()), secret
        assert secret not in manifest, secret
        assert secret not in report, secret
        assert secret not in page, secret
    assert "image/png" not in report
    found = json.loads(manifest)
    assert found["figures_withheld"] is True
    assert found["figures"] == {"privacy_budget": {name: own for name, own in GUARANTEE.items() if name != "ledger"}}
    assert [(each["passed"], each["value"]) for each in found["verdicts"]] == [
        (True, None), (False, None), (True, None), (False, None), (True, EPSILON),
    ]  # fmt: skip
    assert found["verdicts"][2]["reason"] == "privacy_risk_score is withheld; expected below 0.1"
    assert "privacy risk score is rated" not in report
    assert "The figures that were computed on the people&#39;s records are withheld" in report
    assert "The records have a guarantee of epsilon 0.917" in report
    assert "privacy risk score: withheld (" in page
    assert "withheld, not met" in page
    assert "no value" not in page
    assert report.count('<td class="number">withheld</td>') == 2
    assert "<td>withheld</td>" in page


def test_it_verifies_and_the_command_says_what_that_does_not_show(release, capsys):
    found = verify_release(release, max_bytes=None)
    assert (found.problems, found.figures_withheld) == ((), True)
    assert main(["verify", str(release)]) == 0
    said = capsys.readouterr().out
    assert "The figures by which it was admitted are withheld" in said
    assert "are withheld" in remake_report(release).page


def test_a_release_with_its_figures_does_not_say_that_they_are_withheld(tmp_path, capsys):
    written = write_release(tmp_path, TABLE, fingerprint(TABLE), RECORD)
    assert "figures_withheld" not in json.loads((written / "manifest.json").read_text())
    assert not verify_release(written, max_bytes=None).figures_withheld
    main(["verify", str(written)])
    assert "withheld" not in capsys.readouterr().out + (written / "report.html").read_text()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda each: each.pop("figures_withheld"), "the limit on 'privacy_risk_score' is not decided as recorded"),
        (
            lambda each: each["verdicts"][2].update(value=0.05),
            "figures are recorded although the manifest declares them",
        ),
        (lambda each: each["figures"].update(control={}), "figures are recorded although the manifest declares them"),
        (lambda each: each["figures"].pop("privacy_budget"), "the records have no guarantee"),
        (
            lambda each: each["verdicts"][2].update(passed=False),
            "the condition 'privacy_risk_score_is_below_its_limit'",
        ),
        (lambda each: each["verdicts"][2].update(limit=0.5), "the limit on 'privacy_risk_score' is not decided"),
        (lambda each: each["verdicts"].pop(2), "the limit on 'privacy_risk_score' is not decided as recorded"),
        (lambda each: each["verdicts"][4].update(value=1.5), "the limit on 'epsilon' is not decided as recorded"),
        (lambda each: each["verdicts"][4].update(value=None), "the limit on 'epsilon' is not decided as recorded"),
    ],
)
def test_nothing_else_may_lack_a_figure(release, change, problem):
    assert problem in "; ".join(rewrite(release, change))


WITHOUT_FIGURES = {
    "figures_withheld": True,
    "stage": "synthetic",
    "figures": {"privacy_budget": {"epsilon": 1.0}},
    "verdicts": [
        {"metric": None, "value": None},
        {"metric": "privacy_risk_score", "value": None},
        {"metric": "epsilon", "value": 1.0},
    ],
    "waivers": [],
}
NO_GUARANTEE = "figures are withheld, but the records have no guarantee of differential privacy"
A_FIGURE = "figures are recorded although the manifest declares them withheld"


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({}, []),
        ({"waivers": [{"metric": "privacy_risk_score"}]}, ["a limit is waived, but its figure is withheld"]),
        ({"waivers": [{"metric": "epsilon"}]}, ["a limit is waived, but its figure is withheld"]),
        ({"stage": "anonymized"}, [NO_GUARANTEE]),
        ({"figures": {"privacy_budget": {"delta": 1e-6}}}, [NO_GUARANTEE]),
        ({"figures": {}}, [NO_GUARANTEE]),
        ({"figures": WITHOUT_FIGURES["figures"] | {"control": {}}}, [A_FIGURE]),
        ({"verdicts": [{"metric": "privacy_risk_score", "value": 0.0}]}, [A_FIGURE]),
        ({"verdicts": [{"metric": "rare_values_released", "value": 3}]}, [A_FIGURE]),
    ],
)
def test_what_withholds_its_figures_has_none_has_a_guarantee_and_no_waiver(changes, problems):
    assert withheld_problems(WITHOUT_FIGURES | changes) == problems


@pytest.mark.parametrize("said", [False, None, 1, "true", []])
def test_only_true_declares_figures_withheld(said):
    assert not are_withheld({"figures_withheld": said})
    assert are_withheld({"figures_withheld": True})
    assert not are_withheld({})
    assert withheld_problems({"figures_withheld": said}) == []


def test_a_waiver_of_a_figure_that_is_withheld_is_no_release_that_verifies(release):
    waiver = {"file": "score.yaml", "metric": "privacy_risk_score"}
    problems = rewrite(release, lambda manifest: manifest.update(waivers=[waiver]))
    assert "a limit is waived, but its figure is withheld" in problems


def test_records_without_a_guarantee_cannot_withhold_figures(tmp_path):
    written = write_release(tmp_path, TABLE, fingerprint(TABLE), RECORD)

    def withhold(manifest):
        manifest["figures_withheld"] = True
        manifest["verdicts"][1]["value"] = None
        manifest["figures"] = {}

    assert "the records have no guarantee of differential privacy" in "; ".join(rewrite(written, withhold))
