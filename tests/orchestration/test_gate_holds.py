"""Every known way around a plain blocking check, tried on a persistent instance; and its passing counterpart.

Each test brings the project into a state in which the policy does not admit the release, tries to release, and sees the
refusal with its reason; then it mends what was wrong and sees the same way release.
"""

import copy
import json
import math
import shutil
import threading
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration import release_steps
from privacy_assets.orchestration.evidence import evidence as evidence_module
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import (
    AssessmentSettings,
    ExternalSynthetic,
    GivenSplit,
    Split,
    Synthesis,
)
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.storage.algorithms import VERSIONS, algorithm_of
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from tests.orchestration.project import (
    ADMITS,
    ASSESSMENT,
    ASSESSMENTS,
    CONTRACT,
    NAME,
    PROJECT_VARIABLE,
    REFUSES,
    Project,
    admitted_job,
    blocked_by,
    failure_of,
    key,
    people,
    refusal,
    refused_job,
    synthetic_people,
)

SETTINGS_CHECK = "mpucc_assessment_settings_meet_the_policy"
SCORE_CHECK = "privacy_risk_score_is_at_most_its_limit"
RELEASE = "synthetic_release"
# A process per step is for the tests of a killed run.
IN_PROCESS = {"execution": {"config": {"in_process": {}}}}


def release_alone(project, definitions, partition=None):
    return project.run(definitions, RELEASE, partition=partition)


def assert_refused(project, result, reason):
    assert reason in refusal(result)
    assert project.everything_released() == []


def assert_released(project, result, partition=None):
    assert result.success, [event.message for event in result.all_events if event.is_failure]
    assert len(project.releases(partition)) == 1


def test_a_failed_limit_releases_nothing_in_the_same_run(project):
    refused = project.run(project.definitions(REFUSES))
    assert not refused.success
    assert blocked_by(refused) == {SCORE_CHECK}
    assert not refused.asset_materializations_for_node(f"{NAME}__{RELEASE}")
    assert project.everything_released() == []
    assert_released(project, project.run(project.definitions()))


def test_a_failed_limit_refuses_a_later_run_of_the_release_alone(project):
    project.refuse()
    assert_refused(project, release_alone(project, project.definitions(REFUSES)), "privacy_risk_score is")
    assert_released(project, release_alone(project, project.definitions()))


def test_a_check_that_never_ran_is_asked_by_the_release_step(project):
    stages = ("source", "original", "control", "synthetic", "preprocessed", *ASSESSMENTS)
    assert project.run(project.definitions(REFUSES), *stages, checks=False).success
    assert_refused(project, release_alone(project, project.definitions(REFUSES)), "privacy_risk_score is")
    assert_released(project, release_alone(project, project.definitions()))


def test_deselected_checks_do_not_deselect_the_gate(project):
    refused = project.run(project.definitions(REFUSES), checks=False)
    assert_refused(project, refused, "privacy_risk_score is")
    assert_released(project, project.run(project.definitions(), checks=False))


def test_a_failure_of_severity_warn_does_not_open_the_gate(project):
    project.run(project.definitions(REFUSES, severity="error"), checks=False)
    with project.instance() as instance:
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                check_name=SCORE_CHECK, asset_key=key(ASSESSMENT), passed=False, severity=dg.AssetCheckSeverity.WARN
            )
        )
    assert_refused(project, release_alone(project, project.definitions(REFUSES)), "privacy_risk_score is")
    warned = project.definitions(REFUSES, severity="warn")
    result = project.run(warned)
    assert_released(project, result)
    manifest = json.loads((project.releases()[0] / "manifest.json").read_text())
    failed = {verdict["name"]: verdict["severity"] for verdict in manifest["verdicts"] if not verdict["passed"]}
    assert failed == {SCORE_CHECK: "warn", "no_nearly_unique_measure_leaves_undecided": "warn"}
    shown = result.asset_materializations_for_node(f"{NAME}__{RELEASE}")[0].metadata["verdicts"]
    decides = [record.data["if_it_fails"] for record in shown.records]
    assert (decides[:2], set(decides[2:])) == (["warns", "warns"], {"refuses"})


def test_an_assessment_of_earlier_synthetic_records_is_stale(project):
    definitions = project.definitions()
    project.assess()
    project.write_synthetic(seed=77)
    assert project.run(definitions, "synthetic").success
    assert_refused(project, release_alone(project, definitions), "a different synthetic table")
    project.run(definitions, "preprocessed", *ASSESSMENTS)
    assert_released(project, release_alone(project, definitions))


def test_synthetic_records_made_of_an_earlier_split_are_stale(project):
    definitions = project.definitions(synthetic=Synthesis(seed=3))
    project.run(definitions, "source", "original", "control", "synthetic", "preprocessed", *ASSESSMENTS)
    project.write_tables(seed=5)
    project.run(definitions, "source", "original", "control", "preprocessed", *ASSESSMENTS)
    assert_refused(project, release_alone(project, definitions), "made from an earlier version of ['original']")
    assert_released(project, project.run(definitions))


def test_leaving_out_the_asset_in_between_releases_nothing(project):
    stages = ("source", "original", "control", "synthetic", RELEASE)
    assert_refused(project, project.run(project.definitions(), *stages), "no readable mpucc_assessment")
    assert_released(project, project.run(project.definitions()))


def test_re_executing_the_release_step_alone_is_refused(project, monkeypatch):
    monkeypatch.setenv(PROJECT_VARIABLE, str(project.root))

    def run(job, **options):
        with project.instance() as instance:
            result = dg.execute_job(dg.reconstructable(job), instance, IN_PROCESS, raise_on_error=False, **options)
            failures = [event for event in result.all_events if event.is_step_failure]
            reasons = [
                str(event.step_failure_data.user_failure_data.description)
                for event in failures
                if event.step_failure_data.user_failure_data
            ]
            return result.run_id, result.success, reasons

    first, success, _ = run(refused_job)
    assert not success
    again = {"reexecution_options": dg.ReexecutionOptions(parent_run_id=first, step_selection=[f"{NAME}__{RELEASE}"])}
    _, success, reasons = run(refused_job, **again)
    assert not success
    assert "privacy_risk_score is" in "".join(reasons)
    assert project.everything_released() == []
    _, success, _ = run(admitted_job, **again)
    assert success
    assert len(project.releases()) == 1


def test_another_code_location_is_refused_as_well(project):
    project.refuse()

    def elsewhere(limit):
        definitions = project.definitions(limit)
        release_only = [asset for asset in definitions.assets if asset.keys == {key(RELEASE)}]
        with project.instance() as instance:
            return dg.materialize(
                release_only, resources=dict(definitions.resources), instance=instance, raise_on_error=False
            )

    assert_refused(project, elsewhere(REFUSES), "privacy_risk_score is")
    assert_released(project, elsewhere(0.999))


def test_a_pass_that_was_reported_by_hand_is_no_evidence(project):
    project.refuse()
    with project.instance() as instance:
        for check in (SCORE_CHECK, "no_leakage_is_detected"):
            instance.report_runless_asset_event(
                dg.AssetCheckEvaluation(check_name=check, asset_key=key(ASSESSMENT), passed=True)
            )
    assert_refused(project, release_alone(project, project.definitions(REFUSES)), "privacy_risk_score is")
    assert_released(project, release_alone(project, project.definitions()))


def test_a_pass_that_was_posted_to_the_webserver_is_no_evidence(project):
    project.refuse()
    post_to_webserver(project, f"/report_asset_check/{NAME}/{ASSESSMENT}", check_name=SCORE_CHECK, passed=True)
    with project.instance() as instance:
        history = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(key(ASSESSMENT), SCORE_CHECK), limit=1
        )
    assert history[0].evaluation.passed
    assert_refused(project, release_alone(project, project.definitions(REFUSES)), "privacy_risk_score is")
    assert_released(project, release_alone(project, project.definitions()))


def post_to_webserver(project, path, **body):
    pytest.importorskip("dagster_webserver", reason="needs the extra `ui`")
    import uvicorn
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import EmptyWorkspaceTarget
    from dagster_webserver.webserver import DagsterWebserver

    with (
        project.instance() as instance,
        WorkspaceProcessContext(instance, EmptyWorkspaceTarget(), version="test") as workspace,
    ):
        app = DagsterWebserver(workspace).create_asgi_app()
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none"))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request) as response:
                assert response.status == 200
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize("stage", [ASSESSMENT, "synthetic", "original"])
def test_a_materialization_that_was_reported_by_hand_is_no_evidence(project, stage):
    definitions = project.definitions()
    project.run(definitions, checks=False)
    shutil.rmtree(project.root / "releases")
    with project.instance() as instance:
        recorded = instance.get_latest_materialization_event(key(stage)).asset_materialization
        instance.report_runless_asset_event(
            dg.AssetMaterialization(key(stage), tags={"dagster/data_version": recorded.tags["dagster/data_version"]})
        )
    result = release_alone(project, definitions)
    assert_refused(project, result, "by hand" if stage != "original" else "based on tables other than those recorded")
    assert_released(project, project.run(definitions))


def test_a_materialization_that_was_posted_to_the_webserver_is_no_evidence(project):
    definitions = project.definitions()
    project.assess()
    digest = read_artifact(project.stored(ASSESSMENT)).digest
    post_to_webserver(project, f"/report_asset_materialization/{NAME}/{ASSESSMENT}", data_version=digest)
    assert_refused(project, release_alone(project, definitions), "reported by hand")
    project.run(definitions, ASSESSMENT)
    assert_released(project, release_alone(project, definitions))


def test_a_table_overwritten_outside_dagster_is_refused(project):
    definitions = project.definitions()
    project.assess()
    write_artifact(project.stored("synthetic"), Artifact.of_table(synthetic_people(180, seed=9)))
    assert_refused(project, release_alone(project, definitions), "overwritten")
    # What was written past Dagster is not even assessed.
    assert "is not what Dagster recorded" in failure_of(project.run(definitions, "preprocessed", *ASSESSMENTS))
    assert_refused(project, release_alone(project, definitions), "overwritten")
    assert_released(project, project.run(definitions))


@pytest.mark.parametrize(
    ("overwritten", "stages"),
    [
        ("source", ("original", "control", "synthetic", "preprocessed", *ASSESSMENTS, RELEASE)),
        ("original", ("preprocessed", *ASSESSMENTS, RELEASE)),
        ("control", ("preprocessed", *ASSESSMENTS, RELEASE)),
    ],
)
def test_nothing_is_made_of_a_table_overwritten_outside_dagster(project, overwritten, stages):
    definitions = project.definitions()
    project.assess()
    strangers = read_artifact(project.stored(overwritten)).frames["table"].assign(age=99)
    write_artifact(project.stored(overwritten), Artifact.of_table(strangers))
    failed = project.run(definitions, *stages)
    assert not failed.success
    assert "is not what Dagster recorded" in failure_of(failed)
    assert project.everything_released() == []
    assert_released(project, project.run(definitions))


def test_a_source_that_was_made_again_makes_the_split_stale(project):
    definitions = project.definitions()
    project.assess()
    people(300, seed=60).to_parquet(project.root / "data" / "people.parquet", index=False)
    project.run(definitions, "source")
    assert_refused(
        project, release_alone(project, definitions), "original was made from an earlier version of ['source']"
    )
    assert_released(project, project.run(definitions))


def test_a_contract_that_changed_since_is_asked_again(project):
    project.assess()
    stricter = copy.deepcopy(CONTRACT)
    stricter["columns"]["plan"]["role"] = "direct_identifier"
    changed = project.definitions(contract=stricter)
    assert_refused(project, release_alone(project, changed), "does not meet the current contract")
    narrower = copy.deepcopy(CONTRACT)
    narrower["columns"]["age"]["max"] = 30
    changed = project.definitions(contract=narrower)
    assert_refused(project, release_alone(project, changed), "does not meet the current contract")
    assert_released(project, release_alone(project, project.definitions()))


@pytest.mark.parametrize(
    "weaker",
    [
        {"split": Split(train_fraction=0.99)},
    ],
)
def test_a_comparison_too_weak_to_see_leakage_is_refused(project, weaker):
    # Made under a policy that does not limit leakage: one that does refuses these settings before.
    lenient = project.definitions(policy=Policy((Limit("privacy_risk_score", ADMITS, "at_most"),)), **weaker)
    stages = ("source", "original", "control", "synthetic", "preprocessed", ASSESSMENT)
    assert project.run(lenient, *stages).success
    assert "expected at" in refusal(release_alone(project, project.definitions()))
    assert project.everything_released() == []
    assert_released(project, project.run(project.definitions()))


def test_external_records_whose_maker_saw_the_control_are_refused_when_the_definitions_are_built(project):
    path = TableFile(str(project.root / "data" / "synthetic.parquet"))
    with pytest.raises(InvalidSettingError, match="control_was_withheld=True"):
        project.definitions(synthetic=ExternalSynthetic(path))
    given = GivenSplit(lambda: people(200, 1), lambda: people(60, 2))
    assert_released(project, project.run(project.definitions(source=None, split=given)))


def test_a_given_split_without_a_person_column_is_not_said_to_be_clean(project):
    contract = {"columns": {name: each for name, each in CONTRACT["columns"].items() if name != "patient"}}
    given = GivenSplit(lambda: synthetic_people(200, 1), lambda: synthetic_people(60, 2))
    result = project.run(project.definitions(contract=contract, source=None, split=given))
    check = [each for each in result.get_asset_check_evaluations() if each.check_name == "no_person_is_on_both_sides"]
    assert [(each.passed, each.severity) for each in check] == [(False, dg.AssetCheckSeverity.WARN)]


def test_partitions_of_two_dimensions_are_released(tmp_path):
    project = Project(tmp_path)
    project.write_tables()
    both = dg.MultiPartitionsDefinition(
        {"site": dg.StaticPartitionsDefinition(["a", "b"]), "year": dg.StaticPartitionsDefinition(["1", "2"])}
    )
    definitions = project.definitions(
        partitions_def=both, source=lambda partition_key: people(300, 1), synthetic=Synthesis("gaussian_copula")
    )
    result = project.run(definitions, partition=dg.MultiPartitionKey({"site": "a", "year": "1"}))
    assert result.success, failure_of(result)
    assert len(list((tmp_path / "releases").rglob("manifest.json"))) == 1


def test_the_manifest_tells_how_the_records_were_made_not_how_they_would_be_made_today(project):
    made = project.definitions(synthetic=Synthesis("cart", seed=1))
    project.run(made, "source", "original", "control", "synthetic", "preprocessed", *ASSESSMENTS, checks=False)
    loose = Policy((Limit("privacy_risk_score", 0.999),))
    today = project.definitions(synthetic=Synthesis("gaussian_copula", seed=42), split=Split(0.5, 9), policy=loose)
    assert_released(project, release_alone(project, today))
    settings = json.loads((project.releases()[0] / "manifest.json").read_text())["settings"]
    assert settings["synthetic"]["method"] == "cart"
    assert settings["split"] == {"train_fraction": 0.8}
    with project.instance() as instance:
        made = instance.get_latest_materialization_event(key("synthetic")).asset_materialization
    # What was drawn can be drawn again with the seed: it stays in the instance.
    assert made.metadata["privacy_assets/made_with"].value["seed"] == 1


@pytest.mark.parametrize("broken", ["write_release", "record_refusal"])
def test_a_full_disk_while_releasing_or_refusing_releases_nothing(project, monkeypatch, broken):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    project.assess()
    monkeypatch.setattr(
        *((release_steps, broken) if broken == "write_release" else (PrivateParquetIOManager, broken)), full
    )
    limit = ADMITS if broken == "write_release" else REFUSES
    result = release_alone(project, project.definitions(limit))
    assert "No space left on device" in failure_of(result)
    gate = [each.passed for each in result.get_asset_check_evaluations() if each.check_name == "release_gate"]
    assert gate == ([] if broken == "write_release" else [False])
    assert project.everything_released() == []
    monkeypatch.undo()
    assert_released(project, release_alone(project, project.definitions()))


def test_a_damaged_history_of_refusals_stops_no_release_and_counts(project):
    project.refuse()
    history = next((project.private / "refusals").iterdir())
    history.write_text(history.read_text() + '\n{"torn')
    refusal(release_alone(project, project.definitions(REFUSES)))
    assert_released(project, project.run(project.definitions()))
    assert json.loads((project.releases()[0] / "manifest.json").read_text())["refusals_before"] == 3


def test_an_assessment_of_edited_codes_is_refused(project):
    definitions = project.definitions()
    project.run(definitions, "source", "original", "control", "synthetic", "preprocessed")
    path = project.stored("preprocessed")
    codes = read_artifact(path)
    without_matches = {**codes.frames, "original": codes.frames["original"].assign(code_0=0, code_2=0)}
    write_artifact(path, replace(codes, frames=without_matches))
    assert "is not what Dagster recorded" in failure_of(project.run(definitions, ASSESSMENT))
    assert_refused(project, release_alone(project, definitions), "no readable mpucc_assessment")
    assert_released(project, project.run(definitions))


def test_a_control_of_another_split_is_refused(project):
    definitions = project.definitions()
    project.assess()
    with project.instance() as instance:
        control = [asset for asset in definitions.assets if key("control") in asset.keys]
        dg.materialize(
            [*control, *(asset for asset in definitions.assets if key("source") in asset.keys)],
            selection=[key("original"), key("control")],
            resources={**definitions.resources, "private_tables": OnlyTheFirst(project.private)},
            instance=instance,
            raise_on_error=False,
        )
    assert_refused(project, release_alone(project, definitions), "were not made by the same run")
    assert_released(project, project.run(definitions))


class OnlyTheFirst(PrivateParquetIOManager):
    """Storage that takes one table and then breaks."""

    def __init__(self, base_path):
        super().__init__(str(base_path))
        self.stored = 0

    def dump_to_path(self, context, obj, path):
        self.stored += 1
        if self.stored > 1:
            raise OSError("no more")
        super().dump_to_path(context, obj, path)


def test_an_edited_assessment_is_refused(project):
    project.refuse()
    path = project.stored(ASSESSMENT) / "header.json"
    header = json.loads(path.read_text())
    assert header["header"]["scores"]["privacy_risk_score"] > 0
    header["header"]["scores"]["privacy_risk_score"] = 0.0
    path.write_text(json.dumps(header))
    assert_refused(project, release_alone(project, project.definitions(REFUSES)), "changed")
    project.run(project.definitions(), ASSESSMENT)
    assert_released(project, release_alone(project, project.definitions()))


def policy_requiring(**required):
    """The policy of the project's releases, with other required settings."""
    limits = (Limit("privacy_risk_score", ADMITS, "at_most"), Limit("leakage_detected", 0))
    return Policy(limits, RequiredSettings(control_records=40, detectable_share=None, **required))


@pytest.mark.parametrize(
    ("weaker", "required", "reason"),
    [
        ({"max_baseline_cols": 2}, {"max_baseline_cols": 2}, "combinations of up to 2 columns"),
        ({"min_entropy_delta": 0.01}, {"exact_search": False}, "search is 'heuristic'"),
        ({"deduplicate": False}, {"deduplicated": False}, "repeated records were kept"),
        ({"confidence_level": 0.999}, {"confidence_level": 0.999}, "intervals have confidence 0.999"),
    ],
)
def test_an_assessment_under_weaker_settings_is_refused_by_a_policy_that_changed(project, weaker, required, reason):
    assessment = AssessmentSettings(**({"max_baseline_cols": 3, "n_matched_samples": 2} | weaker))
    with pytest.raises(InvalidSettingError, match=f"never accepts .* Write {next(iter(weaker))}"):
        project.definitions(assessment=assessment)
    weak = project.definitions(assessment=assessment, policy=policy_requiring(**required))
    project.run(weak, "source", "original", "control", "synthetic", "preprocessed", *ASSESSMENTS)
    assert_refused(project, release_alone(project, project.definitions()), reason)


@pytest.mark.parametrize("assessment", ASSESSMENTS)
def test_an_assessment_by_another_version_of_its_algorithm_is_refused(project, monkeypatch, assessment):
    definitions = project.definitions()
    with monkeypatch.context() as earlier:
        earlier.setitem(VERSIONS, assessment, 0)
        project.run(definitions)
        assert len(project.releases()) == 1
    shutil.rmtree(project.root / "releases" / NAME)
    assert_refused(
        project,
        release_alone(project, definitions),
        f"another version of the algorithm made {assessment}; expected {algorithm_of(assessment)}",
    )
    project.run(definitions, *ASSESSMENTS)
    assert_released(project, release_alone(project, definitions))


def test_an_assessment_at_a_precision_set_by_hand_is_refused(project):
    definitions = project.definitions(assessment=AssessmentSettings(max_baseline_cols=3, numeric_precision=0))
    in_the_same_run = project.run(definitions)
    assert "mpucc_assessment_settings_meet_the_policy" in blocked_by(in_the_same_run)
    assert project.everything_released() == []
    assert_released(project, project.run(project.definitions()))


def test_a_score_of_nan_is_refused(project, monkeypatch):
    true_figures = evidence_module.figures_of
    monkeypatch.setattr(
        evidence_module, "figures_of", lambda *given: true_figures(*given) | {"privacy_risk_score": math.nan}
    )
    in_the_same_run = project.run(project.definitions())
    assert blocked_by(in_the_same_run) == {SCORE_CHECK}
    assert_refused(project, release_alone(project, project.definitions()), "privacy_risk_score has no value")
    monkeypatch.undo()
    assert_released(project, release_alone(project, project.definitions()))


def test_an_assessment_without_the_limited_figure_is_refused(project):
    without_baseline = AssessmentSettings(max_baseline_cols=3, calculate_baseline=False)
    with pytest.raises(InvalidSettingError, match="Write calculate_baseline=True, without which privacy_risk_score"):
        project.definitions(assessment=without_baseline)
    other = Policy(
        (Limit("identification_rate", 0.99), Limit("leakage_detected", 0)),
        RequiredSettings(control_records=40, detectable_share=None),
    )
    earlier = project.definitions(assessment=without_baseline, policy=other)
    project.run(earlier, "source", "original", "control", "synthetic", "preprocessed", *ASSESSMENTS)
    assert_refused(project, release_alone(project, project.definitions()), "privacy_risk_score has no value")
    assert_released(project, project.run(project.definitions()))


@pytest.mark.parametrize("damage", [shutil.rmtree, lambda path: (path / "header.json").write_text("{")])
def test_a_missing_or_unreadable_assessment_is_refused(project, damage):
    definitions = project.definitions()
    project.assess()
    damage(project.stored(ASSESSMENT))
    assert_refused(project, release_alone(project, definitions), "no readable mpucc_assessment")
    project.run(definitions, ASSESSMENT)
    assert_released(project, release_alone(project, definitions))


def test_a_missing_table_is_refused(project):
    definitions = project.definitions()
    project.assess()
    shutil.rmtree(project.stored("synthetic"))
    assert_refused(project, release_alone(project, definitions), "overwritten, or a run was interrupted")


def test_nothing_at_all_is_refused(project):
    assert_refused(project, release_alone(project, project.definitions()), "no run made the latest synthetic")


def test_a_partition_is_held_by_its_own_evidence(tmp_path):
    project = Project(tmp_path, partitions=("a", "b"))
    for seed, partition in enumerate(project.partitions, start=1):
        project.write_tables(seed, partition)
    admits, refuses = project.definitions(), project.definitions(REFUSES)
    assert_released(project, project.run(admits, partition="a"), "a")
    assert blocked_by(project.run(refuses, partition="b")) == {SCORE_CHECK}
    assert "privacy_risk_score is" in refusal(release_alone(project, refuses, "b"))
    assert project.releases("b") == []
    # The evidence of one partition cannot be put in the place of another's.
    shutil.copytree(project.stored(ASSESSMENT, "a"), project.stored(ASSESSMENT, "b"), dirs_exist_ok=True)
    assert "a different synthetic table" in refusal(release_alone(project, admits, "b"))
    project.run(admits, ASSESSMENT, partition="b")
    assert_released(project, release_alone(project, admits, "b"), "b")


def test_a_refusal_leaves_the_earlier_release_as_it_is(project):
    project.run(project.definitions())
    before = {path: path.read_bytes() for path in project.everything_released()}
    refusal(release_alone(project, project.definitions(REFUSES)))
    assert {path: path.read_bytes() for path in project.everything_released()} == before


def test_the_manifest_counts_the_runs_that_were_refused_before(project):
    project.refuse()
    refusal(release_alone(project, project.definitions(REFUSES)))
    project.run(project.definitions())
    manifest = json.loads((project.releases()[0] / "manifest.json").read_text())
    assert manifest["refusals_before"] == 2


def test_what_leaves_is_the_synthetic_table_and_nothing_of_the_person(project):
    project.run(project.definitions(formats=("csv",)))
    written = project.releases()[0]
    table = pd.read_parquet(written / "synthetic.parquet")
    assert list(table.columns) == ["age", "plan", "joined", "cost"]
    expected = pd.read_parquet(project.root / "data" / "synthetic.parquet")
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)
    names = ["manifest.json", "report.html", "synthetic.csv", "synthetic.parquet"]
    assert sorted(path.name for path in written.iterdir()) == names
    assert Path(written.parent / "latest").resolve() == written
