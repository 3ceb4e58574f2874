"""Sessions at servers that are there, are not, do not answer, or are killed in the middle. No Java is needed."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from privacy_assets.cli import main
from privacy_assets.engine import connection
from privacy_assets.engine.connection import Connection
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import EngineError
from privacy_assets.kernels.compilation_progress import reported_to
from privacy_assets.release.files import write_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.engine.tasks import Copies
from tests.release.test_files import RECORD, TABLE
from tests.shared_data import REPOSITORY

pytest.importorskip("pyspark", reason="needs the extra `spark`")
from tests.engine.fake_server import fake_server

NUMBER = pa.schema([("number", pa.int64())])
CODES = {"number": np.arange(10)}
TOKEN = "SentinelTOKEN93"
OF_USERS = connection.RETRIES, connection.SECONDS_TO_ANSWER, connection.SECONDS_TO_CLEAN_UP
BETWEEN_QUESTIONS_OF_USERS = connection.SECONDS_BETWEEN_QUESTIONS


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Wait for less than users do, and take the workers of all servers here for checked."""
    monkeypatch.setattr(connection, "RETRIES", {"max_retries": 3, "max_backoff": 100})
    monkeypatch.setattr(connection, "SECONDS_TO_ANSWER", 1.5)
    monkeypatch.setattr(connection, "SECONDS_TO_CLEAN_UP", 0.5)
    monkeypatch.setattr(connection, "SECONDS_BETWEEN_QUESTIONS", 0.5)
    monkeypatch.setattr(connection, "_checked_addresses", CheckedAddresses())


class CheckedAddresses(set):
    def __contains__(self, _):
        return True


def refusal(engine, match):
    begun = time.monotonic()
    with pytest.raises(EngineError, match=match) as refused, engine.place(CODES):
        raise AssertionError("placed")
    assert refused.value.__context__ is None
    assert TOKEN not in str(refused.value)
    return time.monotonic() - begun


def run_a_job(engine, batches):
    return engine.collect(engine.map(batches, Copies(), NUMBER))


def test_users_wait_for_less_than_a_minute():
    from pyspark.sql.connect.client.retries import DefaultPolicy

    retries, answer, clean_up = OF_USERS
    waits = [each / 1_000 for each in iter(DefaultPolicy(**retries).to_state().next_attempt, None)]
    assert 15 < sum(waits) < 25
    assert max(sum(waits), BETWEEN_QUESTIONS_OF_USERS + answer) + clean_up < 60


@pytest.mark.parametrize("parameters", ["", f"/;token={TOKEN}", f"/;use_ssl=true;token={TOKEN}"])
def test_where_nobody_is_the_run_is_refused_with_the_host(parameters):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"sc://127.0.0.1:{unused.getsockname()[1]}"
    assert refusal(SparkEngine(remote=address + parameters), f"Spark at {address} could not be reached") < 10


def test_a_release_is_not_verified_where_nobody_is(tmp_path, capsys):
    release = write_release(tmp_path / "releases", TABLE, fingerprint(TABLE), RECORD, ("parquet",))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"sc://127.0.0.1:{unused.getsockname()[1]}"
    assert main(["verify", str(release), "--engine", f"{address}/;token={TOKEN}"]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"NOT verified: {release}\n  - Spark at {address} could not be reached")
    assert TOKEN not in said


@pytest.mark.parametrize("parameters", ["", f"/;token={TOKEN}"])
def test_a_socket_that_accepts_and_never_answers_is_refused(parameters):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"sc://127.0.0.1:{silent.getsockname()[1]}"
        engine = SparkEngine(remote=address + parameters)
        assert refusal(engine, rf"Spark at {address} could not be reached \(TimeoutError\)") < 10


def test_a_server_that_accepts_calls_and_never_answers_them_is_refused():
    with fake_server(answers_calls=False) as (port, heard):
        assert refusal(SparkEngine(remote=f"sc://127.0.0.1:{port}"), "could not be reached") < 10
        assert heard


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("at", ["before the job", "in the job", "before the codes are removed"])
def test_a_killed_or_stopped_server_is_refused_and_is_not_asked_to_clean_up(at, by):
    """The process of the server ends as a machine that kills it ends it, or stops and keeps its connections."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.engine.fake_server"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY,
    )  # fmt: skip
    with server, ExitStack() as stack:
        stack.callback(server.kill)
        address = f"sc://127.0.0.1:{server.stdout.readline().strip()}"
        engine = SparkEngine(remote=address)
        killed = []

        def kill():
            killed.append(time.monotonic())
            os.kill(server.pid, by)

        if at == "before the codes are removed":
            with engine.place(CODES):
                kill()
        else:
            with (
                pytest.raises(EngineError, match=f"Spark at {address} could not run the tasks") as refused,
                engine.place(CODES) as batches,
            ):
                threading.Timer(0.5, kill).start() if at == "in the job" else kill()
                run_a_job(engine, batches)
            assert refused.value.__context__ is None
        assert time.monotonic() - killed[0] < 10


def test_clean_up_is_bounded_and_a_server_that_did_not_answer_once_is_not_asked_again():
    lost = Connection("sc://host", None)
    asked = []

    def never():
        asked.append(time.monotonic())
        threading.Event().wait(20)

    begun = time.monotonic()
    for _ in range(5):
        lost.clean_up(never)
    assert len(asked) == 1
    assert time.monotonic() - begun < 5


def test_work_that_fails_does_not_end_the_clean_up():
    found, asked = Connection("sc://host", None), []

    def fails():
        asked.append("asked")
        raise ValueError("a cell")

    for _ in range(3):
        found.clean_up(fails)
    assert len(asked) == 3


def test_a_second_address_gets_its_own_session_and_both_end_with_the_work():
    from pyspark.sql.connect.session import SparkSession

    active = SparkSession.getActiveSession()
    with fake_server() as (one_port, one), fake_server() as (other_port, other):
        engines = [SparkEngine(remote=f"sc://127.0.0.1:{port}") for port in (one_port, other_port)]
        with engines[0].place(CODES):
            assert not other
            with engines[1].place(CODES):
                n_heard = len(one)
            assert len(one) == n_heard
        sessions = [{session for _, session, _ in heard} for heard in (one, other)]
        assert [len(each) for each in sessions] == [1, 1]
        assert sessions[0].isdisjoint(sessions[1])
        assert [heard[-1][0] for heard in (one, other)] == ["ReleaseSession"] * 2
        assert SparkSession.getActiveSession() is active
        with engines[0].place(CODES):
            pass
        assert len({session for _, session, _ in one}) == 2


def test_the_log_names_the_host_and_not_the_token():
    said = []
    with (
        fake_server() as (port, _),
        reported_to(lambda _, line: said.append(line)),
        SparkEngine(remote=f"sc://localhost:{port}/;token={TOKEN}").place(CODES),
    ):
        pass
    assert said == [f"Tasks run on Spark at sc://localhost:{port}."]


def test_a_stage_has_one_session_which_ends_also_after_a_failure():
    with fake_server() as (port, heard):
        with (
            pytest.raises(ValueError, match="of the stage"),
            SparkEngine(remote=f"sc://127.0.0.1:{port}").opened() as engine,
        ):
            assert not heard
            for _ in range(3):
                with engine.place(CODES):
                    pass
            raise ValueError("of the stage")
        assert len({session for _, session, _ in heard}) == 1
        assert [name for name, _, _ in heard].count("ReleaseSession") == 1


def cancel_the_job(heard):
    """Interrupt the main thread once it waits for the job at the server; on a busy machine that takes a while."""
    while "ExecutePlan" not in [name for name, _, _ in list(heard)]:
        time.sleep(0.05)
    time.sleep(0.5)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def test_a_job_that_is_canceled_is_canceled_at_the_server(request):
    # A shell ignores the signal in what it runs in the background.
    request.addfinalizer(
        partial(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
    )
    with fake_server() as (port, heard):
        engine = SparkEngine(remote=f"sc://127.0.0.1:{port}")
        with pytest.raises(KeyboardInterrupt), engine.place(CODES) as batches:
            threading.Thread(target=cancel_the_job, args=[heard], daemon=True).start()
            run_a_job(engine, batches)
        names = [name for name, _, _ in heard]
        assert "Interrupt" in names[names.index("ExecutePlan") :]
        assert "ReleaseSession" in names


def test_the_token_of_the_server_of_this_process_is_not_sent_to_another(monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_REMOTE", "1")
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", TOKEN)
    with fake_server() as (port, heard):
        with SparkEngine(remote=f"sc://localhost:{port}").place(CODES):
            pass
        assert {credentials for _, _, credentials in heard} == {None}
        with SparkEngine(remote=f"sc://localhost:{port}/;token=own").place(CODES):
            pass
        assert "Bearer own" in {credentials for _, _, credentials in heard}


def test_retries_that_somebody_set_for_a_session_are_kept():
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    class Own(DefaultPolicy):
        """Set by a user, or by a product."""

    session = SparkSession(connection="sc://127.0.0.1:9")
    try:
        connection._bound_retries(session)
        (policy,) = session.client.get_retry_policies()
        assert (policy.max_retries, policy.max_backoff) == (3, 100)
        session.client.set_retry_policies([Own(max_retries=40)])
        connection._bound_retries(session)
        assert session.client.get_retry_policies()[0].max_retries == 40
    finally:
        session.client.close()
