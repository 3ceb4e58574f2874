"""A release made by clicking in the Dagster UI: refused, refused alone, then released, and its report read."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request

import dagster as dg
import pytest

from tests.orchestration.project import people

pytest.importorskip("dagster_webserver", reason="needs the extra `ui`")
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or not os.environ.get("PRIVACY_ASSETS_UI"),
    reason="needs Chromium, and minutes: set PRIVACY_ASSETS_UI=1 to click through the UI",
)

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
DEFINITIONS = """
from pathlib import Path

import privacy_assets as pa

HERE = Path(__file__).parent
defs = pa.build_release_definitions(
    "people",
    contract={
        "columns": {
            "patient": {"type": "text", "role": "direct_identifier", "person": True},
            "age": {"type": "integer", "role": "quasi_identifier"},
            "plan": {"type": "text", "role": "quasi_identifier"},
            "joined": {"type": "datetime", "role": "quasi_identifier"},
            "cost": {"type": "float", "role": "sensitive"},
        }
    },
    source=pa.TableFile(str(HERE / "people.parquet")),
    anonymized=pa.AnonymizationSettings(k=5),
    policy=pa.Policy((pa.Limit("smallest_class", int((HERE / "smallest_class.txt").read_text())),)),
    private_path=str(HERE / "private"),
    release_path=str(HERE / "releases"),
)
"""
SECONDS_FOR_A_RUN = 120
LOCATION = "definitions.py"


@pytest.fixture
def site(tmp_path):
    """A project with a running webserver and daemon, as `dagster dev` starts them."""
    people(300, 1).to_parquet(tmp_path / "people.parquet", index=False)
    (tmp_path / "smallest_class.txt").write_text("50")
    (tmp_path / LOCATION).write_text(textwrap.dedent(DEFINITIONS))
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\nnux: {enabled: false}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (tmp_path / "dev.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "dagster", "dev", "-f", LOCATION, "-p", str(port)],
            cwd=tmp_path,
            env=os.environ | {"DAGSTER_HOME": str(tmp_path)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(lambda: answers(port), 120, (tmp_path / "dev.log").read_text)
        yield tmp_path, f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def answers(port) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=2) as response:
            return response.status == 200
    except OSError:
        return False


def wait_for(condition, seconds, explain=lambda: ""):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, explain()
        time.sleep(0.3)


def finished_runs(home) -> list[dg.DagsterRun]:
    with dg.DagsterInstance.from_config(str(home)) as instance:
        return [run for run in instance.get_runs() if run.is_finished]


def click_and_wait_for_the_run(page, home, button) -> dg.DagsterRun:
    before = {run.run_id for run in finished_runs(home)}
    page.get_by_role("button", name=button, exact=True).first.click()
    wait_for(lambda: {run.run_id for run in finished_runs(home)} - before, SECONDS_FOR_A_RUN)
    return next(run for run in finished_runs(home) if run.run_id not in before)


def test_a_release_is_refused_and_released_by_clicking(site):
    home, address = site
    releases = home / "releases" / "people" / "anonymized"
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(60_000)

        page.goto(f"{address}/asset-groups?asset-selection=group%3A%22people%22")
        page.get_by_text("anonymized_release").first.wait_for()
        everything = click_and_wait_for_the_run(page, home, "Materialize all")
        assert everything.status == dg.DagsterRunStatus.FAILURE
        page.goto(f"{address}/assets/people/anonymized?view=checks&checkDetail=smallest_class_is_at_least_its_limit")
        page.get_by_text("smallest_class is 5; expected at least 50").first.wait_for()
        assert not releases.exists()

        page.goto(f"{address}/assets/people/anonymized_release")
        alone = click_and_wait_for_the_run(page, home, "Materialize")
        assert alone.status == dg.DagsterRunStatus.FAILURE
        page.goto(f"{address}/runs/{alone.run_id}")
        page.get_by_text(re.compile("was refused: smallest_class is 5; expected at least 50")).first.wait_for()
        page.goto(f"{address}/assets/people/anonymized_release?view=checks&checkDetail=release_gate")
        page.get_by_text("verdicts").first.wait_for()
        assert not releases.exists()

        (home / "smallest_class.txt").write_text("5")
        page.goto(f"{address}/deployment")
        page.get_by_role("button", name=re.compile("Reload")).first.click()
        page.get_by_text("Loaded").first.wait_for()
        page.wait_for_timeout(3000)
        page.goto(f"{address}/assets/people/anonymized_release")
        admitted = click_and_wait_for_the_run(page, home, "Materialize")
        assert admitted.status == dg.DagsterRunStatus.SUCCESS

        page.goto((releases / "latest" / "report.html").resolve().as_uri())
        assert page.locator("h1").count() == 1
        assert "smallest" in page.locator("body").inner_text()
        browser.close()
