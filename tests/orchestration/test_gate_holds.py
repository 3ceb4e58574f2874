"""Every known way around a plain blocking check, tried on a persistent instance; and its passing counterpart.

Each test brings the project into a state in which the policy does not admit the release, tries to release, and sees the
refusal with its reason; then it mends what was wrong and sees it admitted. A kind of way around is tried in a run for a
table and for an assessment; its other members are decided on what is stored, by the functions that such a run calls.
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

from privacy_assets.disclosure.declared_unit import DOUBT_CHECK, UNIT_CHECK
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration import release_steps
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import (
    AssessmentSettings,
    ExternalSynthetic,
    GivenSplit,
    Split,
    Synthesis,
)
from privacy_assets.release.evidence import SPLIT_STAGES
from privacy_assets.release.manifest import CARD_FILES
from privacy_assets.release.metrics import DISCLOSURE
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.storage.algorithms import VERSIONS, algorithm_of
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from tests.orchestration.project import (
    ADMITS,
    ASSESSMENT,
    ASSESSMENTS,
    BEFORE_THE_RELEASE,
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
    report_by_hand,
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
    assert project.refused_because(project.definitions()) == ""


def test_a_failed_limit_refuses_a_later_run_of_the_release_alone(project):
    project.refuse()
    assert_refused(project, release_alone(project, project.definitions(REFUSES)), "privacy_risk_score is")
    assert_released(project, release_alone(project, project.definitions()))


def test_a_check_that_never_ran_is_asked_by_the_release_step(project):
    project.assess()
    # The checks that ran were those of another policy.
    assert "privacy_risk_score is" in project.refused_because(project.definitions(REFUSES))
    assert project.refused_because(project.definitions()) == ""


def test_deselected_checks_do_not_deselect_the_gate(project):
    refused = project.run(project.definitions(REFUSES), checks=False)
    assert_refused(project, refused, "privacy_risk_score is")
    assert project.refused_because(project.definitions()) == ""


def test_a_failure_of_severity_warn_does_not_open_the_gate(project):
    project.refuse()
    with project.instance() as instance:
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                check_name=SCORE_CHECK, asset_key=key(ASSESSMENT), passed=False, severity=dg.AssetCheckSeverity.WARN
            )
        )
    assert "privacy_risk_score is" in project.refused_because(project.definitions(REFUSES))
    result = project.run(project.definitions(REFUSES, severity="warn"))
    assert_released(project, result)
    manifest = json.loads((project.releases()[0] / "manifest.json").read_text())
    failed = {verdict["name"]: verdict["severity"] for verdict in manifest["verdicts"] if not verdict["passed"]}
    # Nobody has two rows, which `one_row_per_person` would say.
    assert failed == dict.fromkeys([SCORE_CHECK, "no_nearly_unique_measure_leaves_undecided", DOUBT_CHECK], "warn")
    shown = result.asset_materializations_for_node(f"{NAME}__{RELEASE}")[0].metadata["verdicts"]
    decides = [record.data["if_it_fails"] for record in shown.records]
    assert (decides[:3], set(decides[3:])) == (["warns", "warns", "warns"], {"refuses"})


def test_an_assessment_of_earlier_synthetic_records_is_stale(project):
    definitions = project.definitions()
    project.assess()
    project.write_synthetic(seed=77)
    assert_refused(project, project.run(definitions, "synthetic", RELEASE), "a different synthetic table")
    # One of the two is not enough.
    project.run(definitions, "preprocessed", ASSESSMENT)
    assert "disclosure_assessment was made from a different synthetic table" in project.refused_because(definitions)
    assert_released(project, project.run(definitions, DISCLOSURE, RELEASE))


def test_synthetic_records_made_of_an_earlier_split_are_stale(project):
    definitions = project.definitions(synthetic=Synthesis("gaussian_copula", seed=3))
    project.assess()
    assert project.run(definitions, "synthetic").success
    project.write_tables(seed=5)
    later = project.run(definitions, "source", "original", "control", "preprocessed", *ASSESSMENTS, RELEASE)
    assert_refused(project, later, "made from an earlier version of ['original']")
    assert project.run(definitions, "synthetic", "preprocessed", *ASSESSMENTS).success
    assert project.refused_because(definitions) == ""


def test_leaving_out_the_asset_in_between_releases_nothing(project):
    stages = ("source", "original", "control", "synthetic", RELEASE)
    assert_refused(project, project.run(project.definitions(), *stages), "no readable mpucc_assessment")


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
    assert project.refused_because(project.definitions()) == ""


def test_a_pass_that_was_posted_to_the_webserver_is_no_evidence(project):
    project.refuse()
    post_to_webserver(project, f"/report_asset_check/{NAME}/{ASSESSMENT}", check_name=SCORE_CHECK, passed=True)
    with project.instance() as instance:
        history = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(key(ASSESSMENT), SCORE_CHECK), limit=1
        )
    assert history[0].evaluation.passed
    assert "privacy_risk_score is" in project.refused_because(project.definitions(REFUSES))
    assert project.refused_because(project.definitions()) == ""


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


@pytest.mark.parametrize("stage", [ASSESSMENT, "synthetic"])
def test_a_materialization_that_was_reported_by_hand_is_no_evidence(project, stage):
    definitions = project.definitions()
    project.assess()
    report_by_hand(project, stage)
    reason = f"no run made the latest {'synthetic' if stage == 'synthetic' else f'materialization of {stage}'}"
    assert_refused(project, release_alone(project, definitions), reason)
    if stage == ASSESSMENT:
        assert_released(project, project.run(definitions, stage, RELEASE))


@pytest.mark.parametrize(
    ("stage", "conditions"),
    [
        (DISCLOSURE, ["disclosure_assessment_was_made_by_a_run"]),
        ("preprocessed", [f"{ASSESSMENT}_stands_on_the_recorded_tables"]),
        ("source", [*(f"{side}_was_made_of_the_recorded_tables" for side in SPLIT_STAGES), UNIT_CHECK]),
        *(
            (
                side,
                [
                    f"{side}_was_made_of_the_recorded_tables",
                    "one_run_made_original_and_control",
                    *(f"{each}_stands_on_the_recorded_tables" for each in ASSESSMENTS),
                ],
            )
            for side in SPLIT_STAGES
        ),
    ],
)
def test_no_stage_that_the_release_stands_on_may_be_reported_by_hand(project, stage, conditions):
    project.assess()
    report_by_hand(project, stage)
    failed = [verdict.name for verdict in project.decided(project.definitions()) if verdict.blocks]
    assert sorted(failed) == sorted(conditions)


def test_a_materialization_that_was_posted_to_the_webserver_is_no_evidence(project):
    definitions = project.definitions()
    project.assess()
    digest = read_artifact(project.stored(ASSESSMENT)).digest
    post_to_webserver(project, f"/report_asset_materialization/{NAME}/{ASSESSMENT}", data_version=digest)
    assert "reported by hand" in project.refused_because(definitions)


def test_a_table_overwritten_outside_dagster_is_refused(project):
    definitions = project.definitions()
    project.assess()
    with project.kept("synthetic"):
        write_artifact(project.stored("synthetic"), Artifact.of_table(synthetic_people(180, seed=9)))
        assert_refused(project, release_alone(project, definitions), "overwritten")
        # What was written past Dagster is not even assessed.
        assert "is not what Dagster recorded" in failure_of(project.run(definitions, "preprocessed", *ASSESSMENTS))
        assert "overwritten" in project.refused_because(definitions)
    assert project.refused_because(definitions) == ""


@pytest.mark.parametrize(
    ("overwritten", "stages"),
    [
        ("source", ("original", "control", RELEASE)),
        ("original", ("preprocessed", *ASSESSMENTS, RELEASE)),
        ("control", (DISCLOSURE, RELEASE)),
    ],
)
def test_nothing_is_made_of_a_table_overwritten_outside_dagster(project, overwritten, stages):
    definitions = project.definitions()
    project.assess()
    with project.kept(overwritten):
        strangers = read_artifact(project.stored(overwritten)).frames["table"].assign(age=99)
        write_artifact(project.stored(overwritten), Artifact.of_table(strangers))
        failed = project.run(definitions, *stages)
        assert not failed.success
        assert "is not what Dagster recorded" in failure_of(failed)
        assert project.everything_released() == []
    assert project.refused_because(definitions) == ""


def test_a_source_that_was_made_again_makes_the_split_stale(project):
    definitions = project.definitions()
    project.assess()
    people(300, seed=60).to_parquet(project.root / "data" / "people.parquet", index=False)
    project.run(definitions, "source")
    found = project.refused_because(definitions)
    for side in ("original", "control"):
        assert f"{side} was made from an earlier version of ['source']" in found


def test_a_contract_that_changed_since_is_asked_again(project):
    project.assess()
    stricter = copy.deepcopy(CONTRACT)
    stricter["columns"]["plan"]["role"] = "direct_identifier"
    changed = project.definitions(contract=stricter)
    assert_refused(project, release_alone(project, changed), "does not meet the current contract")
    narrower = copy.deepcopy(CONTRACT)
    narrower["columns"]["age"]["max"] = 30
    changed = project.definitions(contract=narrower)
    assert "does not meet the current contract" in project.refused_because(changed)
    # The records meet this one as well, but as other numbers than those that were assessed.
    retyped = copy.deepcopy(CONTRACT)
    retyped["columns"]["age"]["type"] = "float"
    assert "does not meet the current contract" in project.refused_because(project.definitions(contract=retyped))
    assert project.refused_because(project.definitions()) == ""


def test_a_comparison_too_weak_to_see_leakage_is_refused(project):
    # Made under a policy that does not limit leakage: one that does refuses these settings before.
    few = Split(train_fraction=0.99)
    lenient = project.definitions(policy=Policy((Limit("privacy_risk_score", ADMITS, "at_most"),)), split=few)
    assert project.run(lenient, *(stage for stage in BEFORE_THE_RELEASE if stage != DISCLOSURE)).success
    found = project.refused_because(project.definitions())
    assert "expected at least 40" in found
    assert project.refused_because(lenient) == ""


def test_external_records_whose_maker_saw_the_control_are_refused_when_the_definitions_are_built(project):
    path = TableFile(str(project.root / "data" / "synthetic.parquet"))
    with pytest.raises(InvalidSettingError, match="control_was_withheld=True"):
        project.definitions(synthetic=ExternalSynthetic(path))
    given = GivenSplit(lambda: people(200, 1), lambda: people(60, 2))
    assert_released(project, project.run(project.definitions(source=None, split=given)))


def test_a_given_split_without_a_person_column_is_not_said_to_be_clean(project):
    columns = {name: each for name, each in CONTRACT["columns"].items() if name != "patient"}
    contract = {"one_row_per_person": True, "columns": columns}
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
    project.assess()
    assert project.run(made, "synthetic", "preprocessed", *ASSESSMENTS, checks=False).success
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
    assert project.refused_because(project.definitions()) == ""


def test_a_damaged_history_of_refusals_stops_no_release_and_counts(project):
    project.refuse()
    history = next((project.private / "refusals").iterdir())
    history.write_text(history.read_text() + '\n{"torn')
    refusal(release_alone(project, project.definitions(REFUSES)))
    assert_released(project, release_alone(project, project.definitions()))
    assert json.loads((project.releases()[0] / "manifest.json").read_text())["refusals_before"] == 3


def test_an_assessment_of_edited_codes_is_refused(project):
    definitions = project.definitions()
    project.assess()
    with project.kept("preprocessed", ASSESSMENT):
        shutil.rmtree(project.stored(ASSESSMENT))
        codes = read_artifact(project.stored("preprocessed"))
        without_matches = {**codes.frames, "original": codes.frames["original"].assign(code_0=0, code_2=0)}
        write_artifact(project.stored("preprocessed"), replace(codes, frames=without_matches))
        assert "is not what Dagster recorded" in failure_of(project.run(definitions, ASSESSMENT))
        assert "no readable mpucc_assessment" in project.refused_because(definitions)
    assert project.refused_because(definitions) == ""


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
    assert "were not made by the same run" in project.refused_because(definitions)


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


def edit_header(path, change):
    header = json.loads((path / "header.json").read_text())
    change(header["header"])
    (path / "header.json").write_text(json.dumps(header))


def test_an_edited_assessment_is_refused(project):
    project.refuse()

    def without_risk(header):
        assert header["scores"]["privacy_risk_score"] > 0
        header["scores"]["privacy_risk_score"] = 0.0

    with project.kept(ASSESSMENT):
        edit_header(project.stored(ASSESSMENT), without_risk)
        refused = release_alone(project, project.definitions(REFUSES))
        assert_refused(project, refused, "the stored mpucc_assessment is not what the run recorded: it was changed")
        # The figure alone would pass.
        assert "privacy_risk_score" not in refusal(refused)
    assert project.refused_because(project.definitions()) == ""


@pytest.mark.parametrize(
    ("stage", "place"),
    [
        (ASSESSMENT, ("control", "matched_identification_rate")),
        (ASSESSMENT, ("settings", "search")),
        (DISCLOSURE, ("scores", "leakage_detected")),
        (DISCLOSURE, ("scores", "detectable_share")),
        (DISCLOSURE, ("settings", "n_people")),
    ],
)
def test_whatever_was_edited_in_an_assessment_is_seen(project, stage, place):
    definitions = project.definitions()
    project.assess()
    group, name = place

    def change(header):
        assert name in header[group]
        header[group][name] = None

    with project.kept(stage):
        edit_header(project.stored(stage), change)
        assert f"the stored {stage} is not what the run recorded: it was changed" in project.refused_because(
            definitions
        )
    assert project.refused_because(definitions) == ""


def policy_requiring(**required):
    """The policy of the project's releases, with other required settings."""
    limits = (Limit("privacy_risk_score", ADMITS, "at_most"), Limit("leakage_detected", 0))
    return Policy(limits, RequiredSettings(control_records=40, detectable_share=None, **required))


WEAKER = {
    "max_baseline_cols": (2, {"max_baseline_cols": 2}, "combinations of up to 2 columns"),
    "min_entropy_delta": (0.01, {"exact_search": False}, "search is 'heuristic'"),
    "pruning": ("mutual_information", {"exact_search": False}, "search is 'heuristic'"),
    "deduplicate": (False, {"deduplicated": False}, "repeated records were kept"),
    "confidence_level": (0.999, {"confidence_level": 0.999}, "intervals have confidence 0.999"),
}


def _weakly_assessed(project):
    assert project.run(project.definitions(), *BEFORE_THE_RELEASE).success
    required = {name: value for _, own, _ in WEAKER.values() for name, value in own.items()}
    assessment = AssessmentSettings(**{name: value for name, (value, _, _) in WEAKER.items()}, n_matched_samples=2)
    weak = project.definitions(assessment=assessment, policy=policy_requiring(**required))
    assert project.run(weak, "preprocessed", ASSESSMENT).success
    assert project.refused_because(weak) == ""


@pytest.mark.parametrize("weaker", WEAKER)
def test_an_assessment_under_weaker_settings_is_refused_by_a_policy_that_changed(project, weaker):
    value, _, reason = WEAKER[weaker]
    assessment = AssessmentSettings(**({"max_baseline_cols": 3, "n_matched_samples": 2} | {weaker: value}))
    with pytest.raises(InvalidSettingError, match=f"never accepts .* Write {weaker}"):
        project.definitions(assessment=assessment)
    project.begin_as(_weakly_assessed)
    needed = WEAKER[weaker][1]
    accepts = {name: value for _, own, _ in WEAKER.values() if own != needed for name, value in own.items()}
    found = project.refused_because(project.definitions(policy=policy_requiring(**accepts)))
    assert reason in found and "; " not in found


@pytest.mark.parametrize("assessment", ASSESSMENTS)
def test_an_assessment_by_another_version_of_its_algorithm_is_refused(project, monkeypatch, assessment):
    definitions = project.definitions()
    project.assess()
    with monkeypatch.context() as earlier:
        earlier.setitem(VERSIONS, assessment, 0)
        assert project.run(definitions, assessment, checks=False).success
        assert project.refused_because(definitions) == ""
    expected = f"another version of the algorithm made {assessment}; expected {algorithm_of(assessment)}"
    assert project.refused_because(definitions) == expected


def test_an_assessment_at_a_precision_set_by_hand_is_refused(project):
    project.assess()
    definitions = project.definitions(assessment=AssessmentSettings(max_baseline_cols=3, numeric_precision=0))
    in_the_same_run = project.run(definitions, "preprocessed", ASSESSMENT, RELEASE)
    assert SETTINGS_CHECK in blocked_by(in_the_same_run)
    assert project.everything_released() == []
    assert "a precision was set by hand" in project.refused_because(project.definitions())


def test_a_score_of_nan_is_refused(project):
    project.assess()
    with project.kept(ASSESSMENT):
        edit_header(project.stored(ASSESSMENT), lambda header: header["scores"].update(privacy_risk_score=math.nan))
        failed = {verdict.name for verdict in project.decided(project.definitions()) if verdict.blocks}
        assert SCORE_CHECK in failed
    assert project.refused_because(project.definitions()) == ""


def test_an_assessment_without_the_limited_figure_is_refused(project):
    without_baseline = AssessmentSettings(max_baseline_cols=3, calculate_baseline=False)
    with pytest.raises(InvalidSettingError, match="Write calculate_baseline=True, without which privacy_risk_score"):
        project.definitions(assessment=without_baseline)
    other = Policy(
        (Limit("identification_rate", 0.99), Limit("leakage_detected", 0)),
        RequiredSettings(control_records=40, detectable_share=None),
    )
    project.assess()
    assert project.run(project.definitions(assessment=without_baseline, policy=other), ASSESSMENT).success
    assert "privacy_risk_score has no value" in project.refused_because(project.definitions())


def cut_off(path):
    (path / "header.json").write_text("{")


def test_a_missing_assessment_is_refused(project):
    definitions = project.definitions()
    project.assess()
    shutil.rmtree(project.stored(ASSESSMENT))
    assert_refused(project, release_alone(project, definitions), "no readable mpucc_assessment")
    assert_released(project, project.run(definitions, ASSESSMENT, RELEASE))


@pytest.mark.parametrize("damage", [shutil.rmtree, cut_off])
@pytest.mark.parametrize(
    ("stage", "reason"),
    [
        (ASSESSMENT, "no readable mpucc_assessment"),
        (DISCLOSURE, "no readable disclosure_assessment"),
        ("synthetic", "overwritten, or a run was interrupted"),
        ("source", "columns of ['source'] that would be released unchanged could not be examined"),
    ],
)
def test_what_is_missing_or_cannot_be_read_is_refused(project, stage, reason, damage):
    definitions = project.definitions()
    project.assess()
    with project.kept(stage):
        damage(project.stored(stage))
        assert reason in project.refused_because(definitions)
    assert project.refused_because(definitions) == ""


def test_nothing_at_all_is_refused(project):
    assert_refused(project, release_alone(project, project.definitions()), "no run made the latest synthetic")


def test_a_partition_is_held_by_its_own_evidence(tmp_path):
    project = Project(tmp_path, partitions=("a", "b"))
    for seed, partition in enumerate(project.partitions, start=1):
        project.write_tables(seed, partition)
    admits, refuses = project.definitions(), project.definitions(REFUSES)
    assert_released(project, project.run(admits, partition="a"), "a")
    assert blocked_by(project.run(refuses, partition="b")) == {SCORE_CHECK}
    assert "privacy_risk_score is" in project.refused_because(refuses, partition="b")
    assert project.releases("b") == []
    # The evidence of one partition cannot be put in the place of another's.
    for stage in ASSESSMENTS:
        shutil.copytree(project.stored(stage, "a"), project.stored(stage, "b"), dirs_exist_ok=True)
    said = refusal(release_alone(project, admits, "b"))
    for stage in ASSESSMENTS:
        assert f"{stage} was made from a different synthetic table" in said
    assert_released(project, project.run(admits, *ASSESSMENTS, RELEASE, partition="b"), "b")


def test_the_manifest_counts_the_refusals_before_and_one_after_leaves_the_release_as_it_is(project):
    project.refuse()
    refusal(release_alone(project, project.definitions(REFUSES)))
    assert_released(project, release_alone(project, project.definitions()))
    assert json.loads((project.releases()[0] / "manifest.json").read_text())["refusals_before"] == 2
    before = {path: path.read_bytes() for path in project.everything_released()}
    refusal(release_alone(project, project.definitions(REFUSES)))
    assert {path: path.read_bytes() for path in project.everything_released()} == before


def test_what_leaves_is_the_synthetic_table_and_nothing_of_the_person(project):
    project.assess()
    release_alone(project, project.definitions(formats=("csv",)))
    written = project.releases()[0]
    table = pd.read_parquet(written / "synthetic.parquet")
    assert list(table.columns) == ["age", "plan", "joined", "cost"]
    expected = pd.read_parquet(project.root / "data" / "synthetic.parquet")
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)
    names = [*CARD_FILES, "manifest.json", "report.html", "synthetic.csv", "synthetic.parquet"]
    assert sorted(path.name for path in written.iterdir()) == names
    assert Path(written.parent / "latest").resolve() == written
