"""A run's events as OpenLineage, by the converter of others: lineage of columns, results of checks, and no cell."""

import json

from dagster_openlineage import OpenLineageEventLogStorage
from dagster_openlineage.adapter import OpenLineageAdapter
from openlineage.client.serde import Serde

from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.release.policy import Limit, Policy
from tests.orchestration.project import NAME
from tests.orchestration.sentinels import CONTRACT, SENTINELS, sentinel_people


class Emitted:
    """Takes the events in place of a server."""

    def __init__(self):
        self.events = []

    def emit(self, event):
        self.events.append(json.loads(Serde.to_json(event)))


def emitted(project, **settings):
    """Run a release, and return whether it succeeded, the results of its checks, and what its assets were made of."""
    settings = {"contract": CONTRACT, "source": sentinel_people, "synthetic": None} | settings
    result = project.run(project.definitions(anonymized=AnonymizationSettings(k=5), **settings))
    server = Emitted()
    with project.instance() as instance:
        adapter = OpenLineageAdapter(namespace="test", emitter=server)
        storage = OpenLineageEventLogStorage(instance.event_log_storage, adapter=adapter)
        for entry in instance.all_logs(result.run_id):
            storage._dispatch(entry)  # What `store_event` does after it stored an event.
    written = json.dumps(server.events).encode()
    assert [sentinel for sentinel in SENTINELS if sentinel in written] == []
    checks = {
        each["assertion"]: each["success"]
        for event in server.events
        for dataset in event.get("inputs", ())  # An observation has none.
        for each in dataset.get("inputFacets", {}).get("dataQualityAssertions", {}).get("assertions", ())
    }
    complete = [event for event in server.events if event.get("eventType") == "COMPLETE" and event["outputs"]]
    return result.success, checks, {event["job"]["name"]: event["outputs"][0]["facets"] for event in complete}


def test_the_converter_reads_lineage_of_columns_and_results_of_checks_and_no_cell(project):
    success, checks, made = emitted(project, policy=Policy((Limit("smallest_class", 5),)))
    assert success
    assert checks["smallest_class_is_at_least_its_limit"]
    assert checks["release_gate"]
    fields = made[f"{NAME}/anonymized_release"]["columnLineage"]["fields"]
    assert [each["field"] for each in fields["income_low"]["inputFields"]] == ["income_low"]
    assert {each["name"] for each in made[f"{NAME}/anonymized"]["schema"]["fields"]} >= {"income", "cost"}


def test_a_refused_release_has_failed_assertions_and_no_output(project):
    success, checks, made = emitted(project, policy=Policy((Limit("smallest_class", 6),)))
    assert not success
    assert not checks["smallest_class_is_at_least_its_limit"]
    assert f"{NAME}/anonymized_release" not in made
