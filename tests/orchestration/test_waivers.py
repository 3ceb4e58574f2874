"""A waiver through Dagster: refused without one, released under one, refused again when the content changes."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from privacy_assets.contract.contract import TableContract
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.synthetic import AssessmentSettings, Split, Synthesis
from privacy_assets.release.policy import Limit, Policy
from tests.orchestration.project import CONTRACT, NAME, REFUSES, blocked_by, refusal

SCORE_CHECK = "privacy_risk_score_is_at_most_its_limit"


def evaluation(result, check):
    return next(each for each in result.get_asset_check_evaluations() if each.check_name == check)


def sign(directory, fingerprint, figure, **changes):
    today = datetime.now(UTC).date()
    fields = {
        "release": NAME,
        "metric": "privacy_risk_score",
        "limit": REFUSES,
        "figure": figure,
        "fingerprint": fingerprint,
        "person": "Ada Lovelace, data protection officer",
        "reason": "The recipient works in our enclave.",
        "signed_on": today,
        "expires_on": today + timedelta(days=30),
    }
    (directory / "score.yaml").write_text(yaml.safe_dump(fields | changes))


def test_a_waiver_lets_out_the_content_that_it_names_and_no_other(project):
    directory = project.root / "waivers"
    directory.mkdir()
    definitions = project.definitions(REFUSES, waivers=str(directory))
    stopped = project.run(definitions)
    assert blocked_by(stopped) == {SCORE_CHECK}
    refused = project.run(definitions, "synthetic_release")
    assert "waive" not in refusal(refused)
    page = max((project.private / "refusal_pages").rglob("refusal.html")).read_text()
    fingerprint = re.search(r"<dt>Fingerprint</dt><dd>(\w{64})</dd>", page)[1]

    # The figure as a person copies it from the refusal.
    score = float(re.search(r"privacy_risk_score is \S+ \(exactly (\S+)\);", refusal(refused))[1])
    assert score == pytest.approx(evaluation(stopped, SCORE_CHECK).metadata["score"].value, abs=0.0005)
    sign(directory, fingerprint, score, reason="")
    assert "its reason is not a text" in str(verdicts_of(project.run(definitions, "synthetic_release")))
    assert project.everything_released() == []

    sign(directory, fingerprint, score)
    released = project.run(definitions)
    assert released.success
    shown = evaluation(released, SCORE_CHECK)
    assert shown.passed
    assert "waived by Ada Lovelace" in shown.description
    (written,) = project.releases()
    manifest = json.loads((written / "manifest.json").read_text())
    assert [waiver["file"] for waiver in manifest["waivers"]] == ["score.yaml"]
    page = (written / "report.html").read_text()
    assert "Released under 1 waiver" in page
    # The runs that were refused before, with what was found in each.
    history = page[page.index("History of refusals") : page.index("Verify the files</h2>")]
    assert (
        history.count(f"privacy_risk_score is {score:.3g} (exactly {score!r}); expected at most 0")
        == manifest["refusals_before"]
        == 3
    )

    project.write_synthetic(seed=77)
    other = project.run(definitions)
    assert blocked_by(other) == {SCORE_CHECK}
    assert "not waived (score.yaml: it is for other content" in evaluation(other, SCORE_CHECK).description
    assert "it is for other content" in refusal(project.run(definitions, "synthetic_release"))
    assert project.releases() == [written]


def verdicts_of(result):
    failure = next(event for event in result.all_events if event.is_step_failure)
    return failure.step_failure_data.user_failure_data.metadata["verdicts"].value


def test_each_side_is_shown_its_own_waivers_and_what_is_no_waiver(tmp_path):
    sign(tmp_path, "0" * 64, 0.2)
    (tmp_path / "notes.txt").touch()
    policy = Policy((Limit("privacy_risk_score", 0.1), Limit("smallest_class", 5)))
    release = ReleaseSettings(
        name=NAME,
        contract=TableContract.from_mapping(CONTRACT),
        policy=policy,
        source=lambda: None,
        split=Split(),
        synthetic=Synthesis(),
        assessment=AssessmentSettings(),
        formats=("parquet",),
        anonymized=AnonymizationSettings(),
        waivers=tmp_path,
    )
    shown = {side: [each.file for each in release.waivers_of(side).files] for side in ("synthetic", "anonymized")}
    assert shown == {"synthetic": ["notes.txt", "score.yaml"], "anonymized": ["notes.txt"]}
    # Where there is no such side, nobody else would look at it.
    alone = replace(release, synthetic=None)
    assert [each.file for each in alone.waivers_of("anonymized").files] == ["notes.txt", "score.yaml"]
