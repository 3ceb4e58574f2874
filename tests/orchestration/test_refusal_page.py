"""A refusal is readable: one line that says why the run ended, a page in the private directory, and the register."""

import logging
import re

import dagster as dg
import pytest

from privacy_assets.orchestration import refusal_page
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from tests.orchestration.project import ADMITS, ASSESSMENT, NAME, REFUSES, blocked_by, refusal

pytestmark = pytest.mark.pictures


def error_lines(project, result):
    """Return what this package logged as an error, as the UI's run page shows it."""
    with project.instance() as instance:
        logged = instance.all_logs(result.run_id)
    errors = [each.user_message for each in logged if not each.is_dagster_event and each.level == logging.ERROR]
    # Dagster has lines of its own about the steps that were not run.
    return [line for line in errors if not line.startswith("Dependencies for step")]


def pages(project):
    return sorted((project.private / "refusal_pages").rglob("refusal.html"))


def page_in(metadata):
    assert isinstance(metadata["refusal_page"], dg.PathMetadataValue)
    return metadata["refusal_page"].value


def test_the_run_that_a_check_stops_ends_with_one_error_line_and_a_page(project):
    result = project.run(project.definitions(REFUSES))
    assert not result.success
    (line,) = error_lines(project, result)
    failed = [each for each in result.get_asset_check_evaluations() if not each.passed]
    assert [each.check_name for each in failed] == ["privacy_risk_score_is_at_most_its_limit"]
    (page,) = pages(project)
    assert line == (
        f"REFUSED by {failed[0].check_name}: {failed[0].description}. Advice: {failed[0].metadata['advice'].value} "
        f"All figures: {page}"
    )
    assert page_in(failed[0].metadata) == str(page)
    assert page.parent.name == result.run_id
    for path in (page, page.parent, page.parent.parent):
        assert path.stat().st_mode & 0o077 == 0


def test_the_page_of_a_project_is_named_from_its_root(project, monkeypatch):
    project.assess()
    monkeypatch.chdir(project.root)
    result = project.run(project.definitions(REFUSES), ASSESSMENT)
    (page,) = pages(project)
    (failed,) = [each for each in result.get_asset_check_evaluations() if not each.passed]
    assert page_in(failed.metadata) == str(page.relative_to(project.root))
    (line,) = error_lines(project, result)
    assert line.endswith(f"All figures: {page.relative_to(project.root)}")


def test_the_line_comes_before_the_trace_of_dagster_on_the_command_line(project, capfd):
    project.assess()
    project.run(project.definitions(REFUSES), ASSESSMENT)
    said = capfd.readouterr().err
    assert 0 < said.index("REFUSED by privacy_risk_score") < said.index("DagsterAssetCheckFailedError")


def test_the_page_has_the_verdict_first_then_advice_measured_on_these_tables(project):
    project.assess()
    result = project.run(project.definitions(REFUSES), ASSESSMENT)
    page = pages(project)[0].read_text()
    evaluation = next(each for each in result.get_asset_check_evaluations() if not each.passed)
    verdict = page[page.index('id="verdict"') : page.index("<nav")]
    assert "Refused by 1 condition: nothing was released" in verdict
    # The page names the figure in words.
    assert evaluation.description.replace("privacy_risk_score", "privacy risk score") in page
    assert "privacy risk score 0.483 (limit: at most 0)" in " ".join(re.sub("<[^>]*>", "", verdict).split())
    assert evaluation.metadata["advice"].value in verdict.replace("&#39;", "'")
    assert "is at most its limit" not in verdict.casefold()
    assert "The run ended after mpucc assessment" in verdict
    assert "Identification rate if one or two columns were dropped or coarsened" in page
    assert evaluation.metadata["nearest_options"].value in page.replace("&#39;", "'")
    assert "not met: refused" in page
    assert "Verify the files" not in page
    assert "<script" not in page
    assert "data:image/png" in page


def test_what_an_earlier_run_found_of_other_records_is_not_on_the_page(project):
    project.assess()
    project.write_synthetic(77)
    result = project.run(project.definitions(REFUSES), "synthetic", "preprocessed", ASSESSMENT)
    assert blocked_by(result) == {"privacy_risk_score_is_at_most_its_limit"}
    page = pages(project)[0].read_text()
    # The run has no test of disclosure; the one in storage is of the earlier records.
    assert "leakage detected" not in page
    assert "Figures: disclosure" not in page


def test_the_release_step_writes_the_page_with_every_condition(project):
    project.refuse()
    result = project.run(project.definitions(REFUSES), "synthetic_release")
    said = refusal(result)
    failure = next(event for event in result.all_events if event.is_step_failure)
    page = next(path for path in pages(project) if path.parent.name == result.run_id)
    assert page_in(failure.step_failure_data.user_failure_data.metadata) == str(page)
    (line,) = error_lines(project, result)
    assert line.startswith("REFUSED by release_gate: ")
    assert line.endswith(f"All figures: {page}")
    assert "privacy_risk_score is" in said
    text = page.read_text()
    assert refusal_page.AT_THE_GATE in text
    assert "in 1 run</dd>" in text
    assert f"{ASSESSMENT.replace('_', ' ')} is as recorded" in text


def test_a_page_that_cannot_be_written_changes_nothing_about_the_refusal(project, monkeypatch):
    def broken(*_):
        raise RuntimeError("a cell")

    project.assess()
    monkeypatch.setattr(refusal_page, "render_refusal", broken)
    result = project.run(project.definitions(REFUSES), ASSESSMENT)
    assert blocked_by(result) == {"privacy_risk_score_is_at_most_its_limit"}
    (line,) = error_lines(project, result)
    assert "REFUSED by" in line
    assert "All figures" not in line
    with project.instance() as instance:
        warned = [each.user_message for each in instance.all_logs(result.run_id) if each.level == logging.WARNING]
    assert any("could not be written (RuntimeError). The release remains refused" in each for each in warned)
    assert not project.everything_released()
    assert pages(project) == []


def test_an_anonymized_table_that_is_refused_has_a_page_of_its_side(project):
    policy = Policy((Limit("smallest_class", 5_000), Limit("max_reidentification_probability", 0.9)))
    result = project.run(project.definitions(policy=policy, synthetic=None, anonymized=AnonymizationSettings(k=5)))
    assert blocked_by(result) == {"smallest_class_is_at_least_its_limit"}
    (page,) = pages(project)
    text = page.read_text()
    assert "anonymized records, refused" in text
    assert "Information loss by column" in text
    assert "max reidentification probability" not in text[text.index("Figures against limits") :]


def test_a_control_too_small_for_the_policy_is_said_at_the_source(project):
    policy = Policy(
        (Limit("privacy_risk_score", 0.9, "at_most"), Limit("leakage_detected", 0)),
        RequiredSettings(control_records=4_000, detectable_share=None),
    )
    definitions = project.definitions(policy=policy)
    result = project.run(definitions, "source")
    assert result.success
    (made,) = result.asset_materializations_for_node(f"{NAME}__source")
    said = f"{made.metadata['found'].value} {made.metadata['advice'].value}"
    assert said.startswith("The split will be refused: ")
    assert "cannot be decided with fewer than 4,000 in the control" in said
    with project.instance() as instance:
        warned = [each.user_message for each in instance.all_logs(result.run_id) if each.level == logging.WARNING]
    assert [said] == [each for each in warned if "split" in each]
    stopped = project.run(definitions, "original", "control")
    assert not stopped.success


def test_the_register_follows_each_refusal_and_release(project):
    project.assess()
    project.run(project.definitions(REFUSES), ASSESSMENT)
    refused = project.register.read_text()
    assert "Nothing has been released" in refused
    assert re.search(r"<td>privacy_risk_score is [0-9.]+ \(exactly [0-9.]+\); expected at most 0</td>", refused)
    assert "is at most its limit" not in refused
    assert project.run(project.definitions(), "synthetic_release").success
    released = project.register.read_text()
    (written,) = project.releases()
    assert f"people/synthetic/{written.name}/report.html" in released
    # The refusal is now part of the release: its line counts it.
    assert re.search(r'aria-labelledby="refused-title">.*?<p>None.</p>', released, re.DOTALL)
    assert "<td>1</td>" in released
    project.run(project.definitions(REFUSES), ASSESSMENT)
    again = project.register.read_text()
    assert "Tables whose latest run was refused" in again
    assert written.name in again


@pytest.mark.parametrize("limit", [ADMITS, REFUSES])
def test_a_register_that_cannot_be_written_loses_no_release_and_no_refusal(project, limit):
    project.assess()
    project.register.parent.mkdir()
    project.register.write_text("somebody else's page")
    result = project.run(project.definitions(limit), ASSESSMENT, "synthetic_release")
    assert result.success == (limit == ADMITS)
    assert len(project.releases()) == (limit == ADMITS)
    assert len(pages(project)) == (limit == REFUSES)
    with project.instance() as instance:
        warned = [each.user_message for each in instance.all_logs(result.run_id) if each.level == logging.WARNING]
    (line,) = [each for each in warned if "register" in each]
    assert "is not a register of this package, so it was not replaced" in line
    assert f"The {'release' if limit == ADMITS else 'refusal'} itself is complete and recorded" in line
    assert project.register.read_text() == "somebody else's page"


def test_the_metadata_of_a_refusal_begins_with_the_sentence_and_the_advice(project):
    definitions = project.definitions(REFUSES)
    project.assess()
    stopped = project.run(definitions, ASSESSMENT)
    check = next(each for each in stopped.get_asset_check_evaluations() if not each.passed)
    assert list(check.metadata)[:4] == ["found", "advice", "score", "limit"]
    refused = project.run(definitions, "synthetic_release")
    gate = next(each for each in refused.get_asset_check_evaluations() if not each.passed)
    assert list(gate.metadata) == ["found", "advice", "nearest_options", "refusal_page", "score_and_limit", "verdicts"]
