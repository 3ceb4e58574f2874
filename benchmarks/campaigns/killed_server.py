"""Kill a Spark Connect server, with its workers, at points of a Dagster run that releases both sides, and look.

Usage: python -m benchmarks.campaigns.killed_server [--points 10] [--clocks=+26h,-26h]

It needs Java and the extra `spark`. One run that nothing interrupts counts the requests of its engine. With `--clocks`
(needs the program `faketime`), the same run is made with servers and workers whose clocks are off by so much, and its
releases must be equal. Then, for each point, a new server is killed at one of the requests: before it, or while it is
answered. Held of each run:

- a stage that needs the server is refused within 60 seconds;
- what appears is complete and verifies: a side is released, or is not there;
- the staging directory is empty, and no codes were placed in the server's own store;
- no value of the table is in the files of the server, its store and its logs;
- the same run with a new server succeeds, and its releases are those of the run that nothing interrupted.
"""

import argparse
import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pyspark

from privacy_assets.engine.connection import Connection
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.synthetic import Split
from tests.orchestration.project import NAME, Project, failure_of
from tests.orchestration.test_engine import (
    CONTRACT,
    POLICY,
    both_sides,
    contract_with_few_values,
)
from tests.spark_server import write_settings

MOST_SECONDS = 60.0
SIDES = ("synthetic", "anonymized")
SENTINEL = "SentinelTown"


class Server:
    """A server with two workers, in a group of processes, which a signal ends at once."""

    def __init__(self, files: Path, clock: str | None = None) -> None:
        self.files = files
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        home = Path(pyspark.__file__).parent
        command = [
            *([] if clock is None else ["faketime", "-f", clock]),
            str(home / "bin" / "spark-submit"), "--master", "local[2, 4]",
            "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
            "--conf", f"spark.connect.grpc.binding.port={port}", "spark-internal",
        ]  # fmt: skip
        environment = os.environ | write_settings(files) | {"SPARK_HOME": str(home)}
        environment.pop("SPARK_TESTING")  # It would take any other port.
        with (files / "out").open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=environment, start_new_session=True)
        atexit.register(self.kill)
        self.address = f"sc://127.0.0.1:{port}"
        for _ in range(600):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise SystemExit(f"The server did not start: {(files / 'out').read_text()[-2_000:]}")

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Requests:
    """Count the requests of an engine, and kill the server at one of them."""

    def __init__(self) -> None:
        self.count, self.at, self.server, self.killed = 0, 0, None, 0.0
        whole = Connection.named_jobs

        # It has returned when the jobs begin, so that errors are raised by the package alone, and say what they say.
        def counted(connection: Connection, tag: str) -> Any:
            self._count()
            return whole(connection, tag)

        Connection.named_jobs = counted  # type: ignore[method-assign]

    def armed(self, at: int, server: Server) -> None:
        self.count, self.at, self.server, self.killed = 0, at, server, 0.0

    def _count(self) -> None:
        self.count += 1
        if self.count == self.at:
            if self.at % 2:
                self._kill()
            else:
                threading.Timer(0.3, self._kill).start()

    def _kill(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.killed = time.monotonic()


def table() -> pd.DataFrame:
    """Make people with one to three rows."""
    project = Project(Path(tempfile.mkdtemp()))
    project.write_tables()
    rows = pd.read_parquet(project.root / "data" / "people.parquet")
    rows["patient"] = rows["patient"].str.replace("patient", SENTINEL)
    return rows


def run(folder: Path, rows: pd.DataFrame, server: Server) -> tuple[Project, Any, dict[str, float]]:
    """Release both sides; return when each failed step began and how long it took."""
    project = Project(folder)
    project.write_tables()
    rows.to_parquet(folder / "data" / "people.parquet", index=False)
    (folder / "staging").mkdir(exist_ok=True)
    engine = SparkEngine(remote=server.address, rows_per_task=50, staging=str(folder / "staging"), writes_releases=True)
    made = both_sides(
        project,
        engine,
        contract=contract_with_few_values(CONTRACT),
        split=Split(train_fraction=0.6),
        anonymized=AnonymizationSettings(l_diversity=2, t_closeness=0.6),
        policy=POLICY,
    )
    result = project.run(made)
    failed = {}
    with project.instance() as instance:
        for each in instance.get_run_step_stats(result.run_id):
            if each.status is not None and each.status.name == "FAILURE":
                failed[each.step_key] = (each.start_time, each.end_time)
    return project, result, failed


def released(project: Project) -> dict[str, str]:
    """Return the fingerprint of each side that was released; whatever appeared must verify."""
    found = {}
    for side in SIDES:
        verified = project.releases(None, side)
        appeared = [path for path in project.root.glob(f"releases/{NAME}/{side}/*") if not path.is_symlink()]
        assert sorted(appeared) == sorted(verified), side
        for directory in verified:
            found[side] = json.loads((directory / "manifest.json").read_text())["fingerprint"]
    return found


def left_on(server: Server) -> tuple[int, int]:
    """Return how many blocks of placed tables, and how many other files, a killed server leaves."""
    paths = [path for path in (server.files / "local").rglob("*") if path.is_file()]
    for path in (*paths, server.files / "server.log"):
        assert SENTINEL.encode() not in path.read_bytes(), path
    blocks = [path for path in paths if path.name.startswith(("rdd_", "cache_", "temp_local"))]
    return len(blocks), len(paths)


def main() -> None:
    """Kill at each point, and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--clocks", default="", help="how far clocks are off")
    options = parser.parse_args()
    work, rows, requests = Path(tempfile.mkdtemp(prefix="killed-server-")), table(), Requests()

    def place(name: str) -> Path:
        (work / name).mkdir()
        return work / name

    server = Server(place("server"))
    requests.armed(0, server)
    project, result, _ = run(place("whole"), rows, server)
    assert result.success
    expected, n_requests = released(project), requests.count
    assert sorted(expected) == sorted(SIDES)
    print(f"nothing interrupts it: {n_requests} requests, released: {', '.join(expected)}", flush=True)
    for clock in filter(None, options.clocks.split(",")):
        other = Server(place(f"server{clock}"), clock)
        requests.armed(0, other)
        project, result, _ = run(place(f"run{clock}"), rows, other)
        other.kill()
        assert result.success and released(project) == expected
        print(f"clocks of server and workers off by {clock}: the same releases", flush=True)
    slowest = 0.0
    for point in range(options.points):
        at = 1 + point * (n_requests - 1) // max(options.points - 1, 1)
        killed = Server(place(f"server-{point}"))
        requests.armed(at, killed)
        project, result, failed = run(place(f"run-{point}"), rows, killed)
        killed.kill()
        seconds = max((end - begin for begin, end in failed.values()), default=0.0)
        slowest = max(slowest, seconds)
        staged = list((project.root / "staging").iterdir())
        n_blocks, n_files = left_on(killed)
        print(
            f"killed at request {at}: {len(failed)} steps failed, the slowest after {seconds:.1f} s; released: "
            f"{', '.join(released(project)) or 'nothing'}; staged: {len(staged)}; blocks on the server: {n_blocks} of "
            f"{n_files} files",
            flush=True,
        )
        assert requests.killed
        if result.success:
            # Nothing but the end of a session was left to ask for.
            assert released(project) == expected
            continue
        assert f"Spark at {killed.address} could not" in failure_of(result)
        assert "withheld" not in failure_of(result)
        assert seconds <= MOST_SECONDS and not staged and not n_blocks
        requests.armed(0, server)
        project, result, _ = run(project.root, rows, server)
        assert result.success and released(project) == expected
    server.kill()
    shutil.rmtree(work)
    print(f"{options.points} points: each refused within {slowest:.1f} s (at most {MOST_SECONDS:.0f} allowed)")


if __name__ == "__main__":
    sys.exit(main())
