"""What an upgrade of Dagster may move: each part is used here as we use it, so that a failure names the part."""

import ast
import logging
import os
import signal
import time

import dagster as dg
import pytest

from privacy_assets.orchestration import dagster_internals as internals
from tests.shared_data import REPOSITORY

PACKAGE = REPOSITORY / "privacy_assets"


def is_internal(module):
    parts = module.split(".")
    return parts[0] == "dagster" and (len(parts) > 1 or any(part.startswith("_") for part in parts))


def imported_by(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def materialize(function, instance):
    return dg.materialize([dg.asset(name="made")(function), refusing], instance=instance)


@dg.asset_check(asset="made")
def refusing():
    return dg.AssetCheckResult(passed=False, description="it is refused")


def materialization_of(result):
    return result.asset_materializations_for_node("made")[0]


def test_one_module_alone_imports_what_dagster_does_not_publish():
    importing = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(map(is_internal, imported_by(path)))
    }
    assert importing == {"orchestration/dagster_internals.py"}


@pytest.mark.parametrize(("tags", "is_run_again"), [({}, True), ({internals.MAX_RETRIES_TAG: "0"}, False)])
def test_a_tag_that_a_step_adds_decides_on_retries_of_its_run(tags, is_run_again):
    @dg.asset
    def fails(context):
        context.instance.add_run_tags(context.run.run_id, tags)
        raise dg.Failure

    retries = {"run_retries": {"enabled": True, "max_retries": 1}}
    with dg.instance_for_test(overrides=retries) as instance:
        result = dg.materialize([fails], instance=instance, raise_on_error=False)
        tagged = instance.get_run_by_id(result.run_id).tags
    assert tagged["dagster/will_retry"] == str(is_run_again).lower()


def test_a_version_that_an_asset_gives_is_tagged_as_its_own(instance):
    given = materialization_of(materialize(lambda: dg.MaterializeResult(data_version=dg.DataVersion("1")), instance))
    assert given.tags[internals.DATA_VERSION_TAG] == "1"
    assert given.tags[internals.DATA_VERSION_IS_USER_PROVIDED_TAG] == "true"
    made_up = materialization_of(materialize(lambda: None, instance))
    assert made_up.tags[internals.DATA_VERSION_TAG]
    assert internals.DATA_VERSION_IS_USER_PROVIDED_TAG not in made_up.tags


def test_the_history_of_a_check_has_its_evaluations_latest_first(instance):
    for _ in range(3):
        materialize(lambda: None, instance)
    latest, middle = internals.check_history(instance, refusing.check_key, limit=2, cursor=None)
    (first,) = internals.check_history(instance, refusing.check_key, limit=2, cursor=middle.id)
    assert latest.id > middle.id > first.id
    for record in (latest, middle, first):
        assert isinstance(record, internals.AssetCheckExecutionRecord)
        assert record.event.dagster_event.event_specific_data.description == "it is refused"
        assert instance.has_run(record.run_id)


def test_what_a_function_attaches_to_its_step_can_be_dropped(instance):
    def attaching(context: dg.AssetExecutionContext):
        context.add_output_metadata({"kept": 1})
        with internals.nothing_attached_to_step(context):
            context.add_asset_metadata({"dropped": 2})
            context.log_event(dg.AssetObservation("made"))

    result = materialize(attaching, instance)
    assert "dropped" not in materialization_of(result).metadata
    assert [event for event in result.all_events if event.event_type_value == "ASSET_OBSERVATION"] == []


def test_runs_are_tagged_with_their_partition_or_the_range_of_them(instance):
    partitions = dg.StaticPartitionsDefinition(["a", "b"])
    made = dg.asset(name="made", partitions_def=partitions)(lambda: None)
    run = dg.materialize([made], instance=instance, partition_key="a")
    assert instance.get_run_by_id(run.run_id).tags[internals.PARTITION_NAME_TAG] == "a"
    assert internals.ASSET_PARTITION_RANGE_START_TAG == "dagster/asset_partition_range_start"


def test_the_log_records_of_events_carry_them(instance, monkeypatch):
    records = []
    monkeypatch.setattr(logging.Handler, "handle", lambda handler, record: records.append(record))
    materialize(lambda: None, instance)
    events = [getattr(record, internals.LOG_RECORD_EVENT_ATTR, None) for record in records]
    assert "ASSET_MATERIALIZATION" in [event.event_type_value for event in events if event is not None]


def test_an_interrupted_run_ends_with_what_is_passed_on(instance):
    def interrupted():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)

    with pytest.raises(internals.DagsterExecutionInterruptedError):
        materialize(interrupted, instance)


def test_fields_are_resolved_with_their_templates():
    class Settings(dg.Model, dg.Resolvable):
        written: int
        left_out: int = 5

    model = Settings.model()(written="{{ 2 + 1 }}")
    assert internals.resolve_fields(model, Settings, dg.ResolutionContext.default()) == {"written": 3}
