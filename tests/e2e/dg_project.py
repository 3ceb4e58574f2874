"""A Dagster project as its users make one, with a release over a DuckDB table of its own, and its running site."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.orchestration.project import people

NAME = "clinic"
TYPE = "privacy_assets.PrivacyReleaseComponent"
UNREACHABLE_CLASS = 50
# One process for a run: a process for each step costs seconds. The default executor is for `test_a_killed_run`.
EXECUTOR = """\
import dagster as dg


@dg.definitions
def executor() -> dg.Definitions:
    return dg.Definitions(executor=dg.in_process_executor)
"""
RELEASE = """\
type: privacy_assets.PrivacyReleaseComponent

attributes:
  source:
    query: SELECT * FROM people ORDER BY patient
    url_variable: WAREHOUSE_URL
  contract:
    columns:
      patient: {type: text, role: direct_identifier, person: true}
      age: {type: integer, role: quasi_identifier, min: 0, max: 120}
      plan: {type: text, role: quasi_identifier}
      joined: {type: datetime, role: quasi_identifier}
      cost: {type: float, role: sensitive}
  policy:
    limits:
      - {metric: smallest_class, value: 50}
  anonymized: {k: 5}
"""
SECONDS_TO_START = 180
SECONDS_FOR_A_RUN = 300
SECONDS_TO_STOP = 30


@dataclass(frozen=True)
class DgProject:
    """A project of `create-dagster`; the commands are those of the environment that the tests run in."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / NAME

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def defs_yaml(self) -> Path:
        return self.root / "src" / NAME / "defs" / "people" / "defs.yaml"

    @property
    def releases(self) -> Path:
        return self.root / "releases" / "people" / "anonymized"

    @property
    def log(self) -> Path:
        return self.root / "dev.log"

    def environment(self) -> dict[str, str]:
        """Make the project importable, as its installation would, and keep its history beside it."""
        given = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER_", "PYTEST_"))}
        commands = str(Path(sys.executable).parent)
        return given | {
            "PATH": os.pathsep.join([commands, os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self.root / "src"), os.environ.get("PYTHONPATH")])),
            "DAGSTER_HOME": str(self.home),
            "DAGSTER_DG_UPDATE_CHECK_ENABLED": "0",
        }

    def command(self, name: str, *arguments: str, folder: Path | None = None) -> str:
        """Run a command to its end and return what it says; fails when it does."""
        run = subprocess.run(
            [str(Path(sys.executable).with_name(name)), *arguments],
            cwd=folder or self.root,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout


def make_project(folder: Path) -> DgProject:
    """Make a project with `create-dagster`, a table in DuckDB, and the release that `dg scaffold defs` begins."""
    import duckdb

    project = DgProject(folder)
    project.home.mkdir()
    (project.home / "dagster.yaml").write_text("telemetry: {enabled: false}\nnux: {enabled: false}\n")
    project.command("create-dagster", "project", NAME, "--no-uv-sync", folder=folder)
    warehouse = project.root / "warehouse.duckdb"
    (project.root / ".env").write_text(f"WAREHOUSE_URL=duckdb:///{warehouse}\n")
    table = people(300, 1)
    with duckdb.connect(str(warehouse)) as database:
        database.register("made", table)
        database.execute("CREATE TABLE people AS SELECT * FROM made")
    project.command("dg", "scaffold", "defs", TYPE, "people")
    assert project.defs_yaml.read_text().startswith("# A release of a table about people.")
    project.defs_yaml.write_text(RELEASE)
    (project.defs_yaml.parents[1] / "executor.py").write_text(EXECUTOR)
    return project


@dataclass(frozen=True)
class Site:
    """The running UI of a project; its state is asked for where the pages ask for it."""

    project: DgProject
    address: str

    def ask(self, query: str) -> dict[str, Any]:
        """Ask the GraphQL interface."""
        request = urllib.request.Request(
            f"{self.address}/graphql", json.dumps({"query": query}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["data"]

    def runs(self) -> dict[str, str]:
        """Return the status of every run, the latest first."""
        found = self.ask("{runsOrError {... on Runs {results {runId status}}}}")
        return {run["runId"]: run["status"] for run in found["runsOrError"]["results"]}

    def finished_run_beside(self, before: dict[str, str]) -> tuple[str, str]:
        """Wait until a run that was not there before has finished, and return its id and status."""

        def finished() -> list[tuple[str, str]]:
            runs = self.runs().items()
            return [each for each in runs if each[0] not in before and each[1] in ("SUCCESS", "FAILURE", "CANCELED")]

        return wait_for(finished, SECONDS_FOR_A_RUN, self.project.log)[0]

    def limit_on_classes(self) -> str:
        """Return what the loaded definitions say of the limit on the smallest class."""
        found = self.ask(
            '{assetNodeOrError(assetKey: {path: ["people", "anonymized"]}) {... on AssetNode {assetChecksOrError '
            "{... on AssetChecks {checks {name description}}}}}}"
        )
        checks = found["assetNodeOrError"]["assetChecksOrError"]["checks"]
        return next(check["description"] for check in checks if check["name"].startswith("smallest_class"))

    def wait_for_the_limit(self, description: str) -> None:
        """Wait until the definitions are loaded anew and say this of the limit on the smallest class."""
        wait_for(lambda: self.limit_on_classes() == description, SECONDS_TO_START, self.project.log)


@contextlib.contextmanager
def running(project, is_loaded=None):
    """Start the UI and the daemon with `dg dev`, wait until the project is loaded, and stop them in the end."""
    is_loaded = is_loaded or answers
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with project.log.open("w") as log:
        server = subprocess.Popen(
            [str(Path(sys.executable).with_name("dg")), "dev", "--port", str(port)],
            cwd=project.root,
            env=project.environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=listen_to_interrupts,
        )
    site = Site(project, f"http://127.0.0.1:{port}")
    try:
        wait_for(lambda: server.poll() is not None or is_loaded(site), SECONDS_TO_START, project.log)
        assert server.poll() is None, project.log.read_text()
        yield site
    finally:
        # To `dg` alone, which stops what it started: its children must not be gone before it says so.
        server.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(SECONDS_TO_STOP)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def listen_to_interrupts() -> None:
    """Undo what a shell does to commands in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def answers(site: Site) -> bool:
    """Tell whether the project is loaded."""
    try:
        return bool(site.limit_on_classes())
    except (OSError, KeyError, TypeError):
        return False


def wait_for(condition, seconds: float, log: Path):
    """Return what a condition gives as soon as it is true; fails with the end of the log after so many seconds."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, log.read_text()[-5000:]
        time.sleep(0.25)
    return found
