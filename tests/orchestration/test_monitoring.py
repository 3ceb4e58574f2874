"""What watches a release: a schedule, warnings of drift, refusals told of once; all of it off unless asked for."""

import time
from datetime import UTC, datetime

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration import monitoring
from privacy_assets.orchestration.monitoring import refusal_sensor
from privacy_assets.orchestration.settings.monitoring import MonitoringSettings, Refusal
from privacy_assets.orchestration.settings.synthetic import GivenSplit, Synthesis
from privacy_assets.pipeline.settings.semantic_risk import SemanticRiskSettings
from privacy_assets.release.policy import Limit, Policy
from tests.orchestration.project import NAME, Project, key
from tests.orchestration.test_anonymized_release import definitions_of


def checks_of(result):
    return {each.check_name: each for each in result.get_asset_check_evaluations()}


def test_nothing_watches_unless_it_is_asked_for(project):
    definitions = definitions_of(project)
    assert not definitions.schedules
    assert not definitions.sensors
    graph = definitions.resolve_asset_graph()
    assert {graph.get(asset_key).automation_condition for asset_key in graph.get_all_asset_keys()} == {None}
    assert "source_has_not_drifted" not in {check.name for check in graph.asset_check_keys}


def test_the_schedule_runs_everything_at_the_start_of_each_quarter(project):
    definitions = definitions_of(project, monitoring=MonitoringSettings())
    schedule = definitions.resolve_schedule_def(f"{NAME}_schedule")
    assert schedule.cron_schedule == "0 6 1 1,4,7,10 *"
    assert schedule.job_name == f"{NAME}_release"
    with project.instance() as instance:
        context = dg.build_schedule_context(instance, scheduled_execution_time=datetime(2027, 1, 1, 6, tzinfo=UTC))
        assert len(schedule.evaluate_tick(context).run_requests) == 1


def test_the_schedule_of_partitions_asks_for_each(tmp_path):
    project = Project(tmp_path, partitions=("a", "b"))
    definitions = definitions_of(project, monitoring=MonitoringSettings())
    schedule = definitions.resolve_schedule_def(f"{NAME}_schedule")
    with project.instance() as instance:
        context = dg.build_schedule_context(
            instance,
            scheduled_execution_time=datetime(2027, 1, 1, 6, tzinfo=UTC),
            repository_def=definitions.get_repository_def(),
        )
        requests = schedule.evaluate_tick(context).run_requests
    assert [request.partition_key for request in requests] == ["a", "b"]


def test_assessments_are_stale_after_90_days_and_automation_respects_blocking_checks(project):
    policy = Policy((Limit("smallest_class", 5), Limit("max_reidentification_probability", 0.2)))
    definitions = definitions_of(project, policy=policy, monitoring=MonitoringSettings(automate=True))
    graph = definitions.resolve_asset_graph()
    assessed = graph.get(key("reidentification_assessment"))
    assert assessed.freshness_policy_or_from_metadata.fail_window.to_timedelta().days == 90
    assert graph.get(key("anonymized")).freshness_policy_or_from_metadata is None
    conditions = {asset_key: str(graph.get(asset_key).automation_condition) for asset_key in graph.get_all_asset_keys()}
    assert all("all_deps_blocking_checks_passed" in condition for condition in conditions.values())


def stale_stages(definitions):
    graph = definitions.resolve_asset_graph()
    keys = graph.get_all_asset_keys()
    return {each.path[-1] for each in keys if graph.get(each).freshness_policy_or_from_metadata is not None}


def test_every_side_has_something_that_becomes_stale(project):
    monitoring = MonitoringSettings()
    assert stale_stages(definitions_of(project, monitoring=monitoring)) == {"anonymized"}
    both = definitions_of(
        project,
        monitoring=monitoring,
        synthetic=Synthesis(),
        policy=Policy((Limit("smallest_class", 5), Limit("privacy_risk_score", 0.5))),
    )
    assert stale_stages(both) == {"anonymized", "mpucc_assessment"}
    withheld = SemanticRiskSettings(withhold=True, risk_limit=0.5)
    assert stale_stages(definitions_of(project, monitoring=monitoring, semantic_risk=withheld)) == {
        "semantic_assessment"
    }
    assert stale_stages(project.definitions(monitoring=monitoring)) == {"mpucc_assessment", "disclosure_assessment"}


def test_drift_of_a_source_that_there_is_not_is_refused(project):
    given = {"source": None, "split": GivenSplit(lambda: None, lambda: None)}
    with pytest.raises(InvalidSettingError, match="monitors the drift of its source, but has no source"):
        project.definitions(monitoring=MonitoringSettings(), **given)
    project.definitions(monitoring=MonitoringSettings(drift_limit=None), **given)


def test_a_source_that_moved_since_the_last_release_warns_and_is_still_assessed(project):
    definitions = definitions_of(project, monitoring=MonitoringSettings(cron_schedule=None))
    first = project.run(definitions)
    assert "There is no release yet" in checks_of(first)["source_has_not_drifted"].description
    unchanged = checks_of(project.run(definitions))["source_has_not_drifted"]
    assert unchanged.passed
    assert unchanged.metadata["score"].value == 0
    path = project.root / "data" / "people.parquet"
    older = pd.read_parquet(path).assign(age=lambda table: table["age"] + 20)
    older.to_parquet(path, index=False)
    result = project.run(definitions)
    moved = checks_of(result)["source_has_not_drifted"]
    assert not moved.passed
    assert moved.severity == dg.AssetCheckSeverity.WARN
    assert moved.metadata["distance of age"].value > 0.4
    assert "1 columns have drifted by more than 0.1" in moved.description
    assert result.success
    assert checks_of(project.run(definitions))["source_has_not_drifted"].passed


def test_each_refused_run_is_told_of_once_whatever_refused_it(project):
    told: list[Refusal] = []
    settings = MonitoringSettings(
        None, freshness_days=None, drift_limit=None, on_refusal=lambda _, each: told.append(each)
    )
    definitions = definitions_of(project, smallest=6, k=3, monitoring=settings)
    project.run(definitions)
    project.run(definitions, "anonymized_release")
    project.run(definitions_of(project, smallest=3, k=3, monitoring=settings), "anonymized_release")
    sensor = definitions.resolve_sensor_def(f"{NAME}_refusals")
    with project.instance() as instance:
        cursor = None
        for _ in range(2):
            context = dg.build_sensor_context(instance, cursor=cursor)
            sensor.evaluate_tick(context)
            cursor = context.cursor
        runs = [run.run_id for run in reversed(instance.get_runs())]
    # The first run ended at the check of the limit, the second at the gate; that of the third was fine.
    assert [(each.release, each.side, each.run_id) for each in told] == [(NAME, "anonymized", run) for run in runs[:2]]
    assert all("smallest_class is 3; expected at least 6" in each.reason for each in told)


def test_a_profile_that_cannot_be_kept_does_not_unsay_a_release(project, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(monitoring, "write_artifact", full_disk)
    settings = MonitoringSettings(None, freshness_days=None, drift_limit=0.1)
    assert project.run(definitions_of(project, monitoring=settings)).success
    assert project.releases(side="anonymized")


def report(instance, run_id, kind, data):
    instance.report_dagster_event(dg.DagsterEvent(kind.value, "release", event_specific_data=data), run_id)


def test_runs_that_overtake_each_other_are_all_told_of():
    check = dg.AssetCheckKey(dg.AssetKey([NAME, "anonymized_release"]), "release_gate")
    told: list[str] = []
    sensor = refusal_sensor(NAME, {"anonymized": [check]}, lambda _, refusal: told.append(refusal.run_id))
    with dg.DagsterInstance.ephemeral() as instance:
        about = {"asset_key": check.asset_key, "check_name": check.name}
        for run_id in ("first", "second"):
            instance.add_run(dg.DagsterRun(job_name="release", run_id=run_id))
            planned = AssetCheckEvaluationPlanned(**about)
            report(instance, run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED, planned)
        cursor = None
        for run_id in ("second", "first"):
            failed = dg.AssetCheckEvaluation(
                asset_key=check.asset_key, check_name=check.name, passed=False, metadata={}
            )
            report(instance, run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION, failed)
            context = dg.build_sensor_context(instance, cursor=cursor)
            sensor.evaluate_tick(context)
            cursor = context.cursor
    assert told == ["second", "first"]


def test_who_switches_the_sensor_on_is_told_of_what_is_new_and_of_its_partition(monkeypatch):
    check = dg.AssetCheckKey(dg.AssetKey([NAME, "anonymized_release"]), "release_gate")
    told: list[Refusal] = []
    sensor = refusal_sensor(NAME, {"anonymized": [check]}, lambda _, refusal: told.append(refusal))
    assert sensor.default_status == dg.DefaultSensorStatus.STOPPED
    failed = dg.AssetCheckEvaluation(asset_key=check.asset_key, check_name=check.name, passed=False, metadata={})
    moment = time.time()

    def refuse(run_id, seconds_ago, **tags):
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: moment - seconds_ago)
            instance.add_run(dg.DagsterRun(job_name="release", run_id=run_id, tags=tags))
            report(instance, run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION, failed)

    with dg.DagsterInstance.ephemeral() as instance:
        refuse("last year", 365 * 86_400)
        refuse("just now", 600, **{"dagster/partition": "2026"})
        cursor = None
        for _ in range(2):
            context = dg.build_sensor_context(instance, cursor=cursor)
            sensor.evaluate_tick(context)
            cursor = context.cursor
        assert [(each.run_id, each.partition) for each in told] == [("just now", "2026")]
        # While the daemon was down, refusals became old; they are told of all the same.
        refuse("yesterday", 86_400)
        sensor.evaluate_tick(dg.build_sensor_context(instance, cursor=cursor))
    assert [each.run_id for each in told] == ["just now", "yesterday"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"freshness_days": 0}, "freshness_days is 0; expected a number of days from 1 to 36,500"),
        ({"drift_limit": 0}, "drift_limit is 0; expected a distance between 0 and 1"),
        ({"drift_limit": 1.5}, "drift_limit is 1.5"),
        # JSON and Dagster would refuse numbers of numpy later.
        ({"freshness_days": np.int64(30)}, "freshness_days is .*30.*; expected a number of days from 1 to 36,500"),
        ({"drift_limit": np.float32(0.1)}, "drift_limit is .*0.1.*; expected a distance between 0 and 1"),
        ({"automate": "no"}, "automate is 'no'; expected True or False"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InvalidSettingError, match=message):
        MonitoringSettings(**settings)
