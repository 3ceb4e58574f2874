"""The same ways around as somebody takes them who has the webserver: GraphQL, backfills, and the command line.

One webserver with a code server, and runs in processes of their own, on one persistent instance.
"""

import json
import logging
import os
import subprocess
import sys
import threading
import time
import urllib.request

import dagster as dg
import pytest

from tests.orchestration.project import PROJECT_VARIABLE, Project
from tests.shared_data import REPOSITORY

pytest.importorskip("dagster_webserver", reason="needs the extra `ui`")
MODULE = "tests.orchestration.served_project"
LOCATION = "served"
LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchPipelineExecution(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on RunConfigValidationInvalid { errors { message } }
    ... on PythonError { message }
  }
}"""
RE_EXECUTE = LAUNCH.replace("launchPipelineExecution", "launchPipelineReexecution")
WIPE = """
mutation Wipe($key: AssetKeyInput!) {
  wipeAssets(assetPartitionRanges: [{assetKey: $key}]) { __typename }
}"""
REPORT = """
mutation Report($params: ReportRunlessAssetEventsParams!) {
  reportRunlessAssetEvents(eventParams: $params) { __typename }
}"""
BACKFILL = """
mutation Backfill($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}"""


class Site:
    """A webserver of a project, asked by GraphQL."""

    def __init__(self, project, instance, workspace, port):
        self.project, self.instance, self.workspace, self.port = project, instance, workspace, port

    def ask(self, query, **variables):
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as response:
            answer = json.loads(response.read())
        assert "errors" not in answer, answer["errors"]
        (found,) = answer["data"].values()
        return found

    def launch(self, release, *stages, config=None, query=LAUNCH, **more):
        selector = {
            "repositoryName": "__repository__",
            "repositoryLocationName": LOCATION,
            "pipelineName": f"{release}_release",
            "assetSelection": [{"path": [release, stage]} for stage in stages] or None,
        }
        params = {"selector": selector, "mode": "default", "runConfigData": config or {}} | more
        return self.ask(query, params=params)

    def finished(self, answer):
        """Wait for a launched run; return it with what its failed steps say."""
        assert answer["__typename"] == "LaunchRunSuccess", answer
        run_id = answer["run"]["runId"]
        return run_id, self.wait_for(run_id)

    def wait_for(self, run_id):
        end = time.monotonic() + 240
        while not self.instance.get_run_by_id(run_id).is_finished:
            assert time.monotonic() < end, "the run does not finish"
            time.sleep(0.2)
        return self.said(run_id)

    def said(self, run_id):
        logs = self.instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        data = [event.dagster_event.step_failure_data for event in logs]
        return " ".join(each.user_failure_data.description for each in data if each.user_failure_data is not None)

    def succeeded(self, run_id):
        return self.instance.get_run_by_id(run_id).is_success

    def released(self, release):
        return sorted((self.project.root / "releases" / release).rglob("manifest.json"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    import uvicorn
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import ModuleTarget
    from dagster_webserver.webserver import DagsterWebserver

    project = Project(tmp_path_factory.mktemp("served"))
    configuration = project.home / "dagster.yaml"
    coordinator = "run_coordinator: {module: dagster._core.run_coordinator, class: DefaultRunCoordinator}\n"
    configuration.write_text(configuration.read_text() + coordinator)
    os.environ[PROJECT_VARIABLE] = str(project.root)
    target = ModuleTarget(MODULE, attribute=None, working_directory=str(REPOSITORY), location_name=LOCATION)
    try:
        with project.instance() as instance, WorkspaceProcessContext(instance, target, version="test") as workspace:
            app = DagsterWebserver(workspace).create_asgi_app()
            server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none"))
            thread = threading.Thread(target=server.run)
            thread.start()
            try:
                while not server.started:
                    time.sleep(0.01)
                port = server.servers[0].sockets[0].getsockname()[1]
                yield Site(project, instance, workspace, port)
            finally:
                server.should_exit = True
                thread.join()
    finally:
        del os.environ[PROJECT_VARIABLE]


def directory_config(resource, path):
    return {"resources": {resource: {"config": {"base_path": path}}}}


def test_whoever_has_the_webserver_gets_nothing_out_that_the_policy_refuses(site):
    """One story in order, because each step needs the runs before it."""
    elsewhere = site.project.root / "elsewhere"
    first_run, said = site.finished(site.launch("first"))
    assert site.succeeded(first_run), said
    assert len(site.released("first")) == 1

    # The directories take no configuration, whoever launches.
    for resource in ("release_store", "private_tables"):
        for place in (str(elsewhere), {"env": PROJECT_VARIABLE}):
            answer = site.launch("people", config=directory_config(resource, place))
            assert answer["__typename"] == "RunConfigValidationInvalid"
            assert not any(str(site.project.root) in error["message"] for error in answer["errors"])

    # The second release is refused, because the first is out.
    run_id, said = site.finished(site.launch("people"))
    assert not site.succeeded(run_id)
    assert site.released("people") == []
    alone, said = site.finished(site.launch("people", "anonymized_release"))
    assert "was refused: max_reidentification_probability is" in said

    # Nor does it help to execute the refused step again, with another configuration or without.
    again = {"parentRunId": alone, "rootRunId": alone, "tags": []}
    answer = site.launch(
        "people",
        "anonymized_release",
        config=directory_config("release_store", str(elsewhere)),
        query=RE_EXECUTE,
        executionMetadata=again,
    )
    assert answer["__typename"] == "RunConfigValidationInvalid"
    _, said = site.finished(site.launch("people", "anonymized_release", query=RE_EXECUTE, executionMetadata=again))
    assert "was refused: max_reidentification_probability is" in said

    # To report evidence, and to wipe what the other release left in the database, makes it worse.
    for stage in ("reidentification_assessment", "anonymized_release"):
        report = {"eventType": "ASSET_MATERIALIZATION", "assetKey": {"path": ["people", stage]}}
        assert site.ask(REPORT, params=report)["__typename"] == "ReportRunlessAssetEventsSuccess"
    wiped = site.ask(WIPE, key={"path": ["first", "anonymized_release"]})
    assert wiped["__typename"] == "AssetWipeSuccess"
    _, said = site.finished(site.launch("people", "anonymized_release"))
    assert "no run made the latest materialization of" in said
    assert site.released("people") == []
    assert not elsewhere.exists()


@pytest.mark.filterwarnings("ignore:Function `AssetSelection.sources` is deprecated")  # Dagster's own use of it
def test_a_backfill_asks_the_gate_for_each_partition(site):
    from dagster._core.execution.backfill import BulkActionStatus
    from dagster._daemon.backfill import execute_backfill_iteration

    stages = ("source", "anonymized", "reidentification_assessment", "anonymized_release")
    params = {
        "assetSelection": [{"path": ["parts", stage]} for stage in stages],
        "partitionNames": ["a", "b"],
        "fromFailure": False,
    }
    answer = site.ask(BACKFILL, params=params)
    assert answer["__typename"] == "LaunchBackfillSuccess", answer
    end = time.monotonic() + 240
    while site.instance.get_backfill(answer["backfillId"]).status in (
        BulkActionStatus.REQUESTED,
        BulkActionStatus.FAILING,
        BulkActionStatus.CANCELING,
    ):
        assert time.monotonic() < end, "the backfill does not finish"
        list(execute_backfill_iteration(site.workspace, logging.getLogger("backfill")))
        time.sleep(0.3)
    runs = site.instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": answer["backfillId"]}))
    by_partition = {run.tags["dagster/partition"]: run for run in runs}
    assert set(by_partition) == {"a", "b"}
    assert by_partition["a"].is_success, site.said(by_partition["a"].run_id)
    assert not by_partition["b"].is_success
    assert [path.parent.parent.name for path in site.released("parts")] == ["a"]


def test_the_command_line_takes_no_directory_either(site):
    command = [sys.executable, "-m", "dagster", "asset", "materialize", "-m", MODULE, "--select", "key:first/source"]
    environment = os.environ | {"DAGSTER_HOME": str(site.project.home), "PYTHONWARNINGS": "ignore"}
    config = json.dumps(directory_config("private_tables", str(site.project.root / "releases" / "x")))
    refused, honest = (
        subprocess.run([*command, *more], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
        for more in (["--config-json", config], [])
    )
    assert refused.returncode != 0
    assert 'unexpected config entry "base_path"' in refused.stderr
    assert not (site.project.root / "releases" / "x").exists()
    assert honest.returncode == 0, honest.stderr[-3000:]
