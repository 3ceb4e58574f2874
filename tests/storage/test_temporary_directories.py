"""What libraries write on the way is for its owner alone, below the private directory, and ends with its step."""

import multiprocessing
import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privacy_assets.orchestration.private.guard import call_guarded
from privacy_assets.orchestration.settings.sources import SqlQuery
from privacy_assets.storage import temporary_directories
from privacy_assets.storage.temporary_directories import VARIABLES, duckdb_connection, temporary_directory
from tests.extras import NEEDS_SPLINK
from tests.release.test_files import write

CELL = "Zaphodine-Quxington"
SECONDS = 60
KILLED = """
import os, signal, sys, tempfile
from pathlib import Path
from privacy_assets.orchestration.private.guard import call_guarded
from privacy_assets.storage.temporary_directories import temporary_directory

def die():
    file = tempfile.NamedTemporaryFile(delete=False)
    file.write(b"Zaphodine-Quxington")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[1] == "step":
    call_guarded(die, Path(sys.argv[2]), "step")
with temporary_directory(Path(sys.argv[2])) as directory:
    (directory / "spilled").write_text("Zaphodine-Quxington")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def state():
    umask = os.umask(0)
    os.umask(umask)
    variables = {name: os.environ.get(name) for name in VARIABLES}
    return umask, tempfile.tempdir, variables, resource.getrlimit(resource.RLIMIT_CORE)


def files_below(path):
    return [each for each in path.rglob("*") if each.is_file() and each.name != ".gitignore"]


@pytest.mark.parametrize("raises", [False, True])
def test_while_a_step_runs_the_process_writes_for_its_owner_alone_below_the_private_directory(tmp_path, raises):
    before, seen = state(), []

    def work():
        made = [Path(tempfile.mkdtemp()), Path(tempfile.mkstemp()[1]), Path(tempfile.gettempdir(), "library")]
        made[-1].write_text(CELL)
        subprocess.run([sys.executable, "-c", "import tempfile; tempfile.mkstemp()"], check=True)
        seen.extend([state(), made, [stat.S_IMODE(each.stat().st_mode) for each in made], files_below(tmp_path)])
        if raises:
            raise ValueError(CELL)

    try:
        call_guarded(work, tmp_path / "private", "step")
    except Exception:  # noqa: BLE001 - what it says is tested elsewhere
        assert raises
    (umask, directory, variables, (soft, _)), made, modes, files = seen
    assert (umask, soft, set(variables.values())) == (0o077, 0, {directory})
    assert all(each.is_relative_to(tmp_path / "private" / "temporary") for each in made)
    assert modes == [0o700, 0o600, 0o600]
    assert sum(each.is_relative_to(directory) for each in files) == 3
    assert state() == before
    assert not [each for each in files_below(tmp_path) if CELL in each.read_text() and "failures" not in each.parts]
    assert list((tmp_path / "private" / "temporary").iterdir()) == []


@pytest.mark.parametrize("first_to_leave", [0, 1])
def test_steps_that_overlap_share_their_directory_until_the_last_has_ended(tmp_path, first_to_leave):
    before, leave = state(), [threading.Event(), threading.Event()]
    entered, places = [threading.Event(), threading.Event()], {}

    def step(number):
        def work():
            places[number] = Path(tempfile.mkstemp()[1])
            entered[number].set()
            assert leave[number].wait(SECONDS)
            assert places[number].exists()

        call_guarded(work, tmp_path / f"private-{number}", "step")

    with ThreadPoolExecutor(2) as pool:
        steps = []
        for number in range(2):
            steps.append(pool.submit(step, number))
            assert entered[number].wait(SECONDS)
        leave[first_to_leave].set()
        steps[first_to_leave].result(SECONDS)
        assert state() != before
        leave[1 - first_to_leave].set()
        steps[1 - first_to_leave].result(SECONDS)
    assert state() == before
    assert places[0].parent == places[1].parent
    assert not places[0].parent.exists()


def test_a_step_inside_a_step_ends_nothing(tmp_path):
    def outer():
        file = Path(tempfile.mkstemp()[1])
        call_guarded(lambda: None, tmp_path / "private", "inner")
        assert file.exists()
        assert state()[0] == 0o077

    call_guarded(outer, tmp_path / "private", "outer")


@pytest.mark.parametrize("kind", ["step", "call"])
def test_what_a_killed_process_left_is_gone_at_the_next_run(tmp_path, kind):
    run = subprocess.run(
        [sys.executable, "-c", KILLED, kind, str(tmp_path / "private" if kind == "step" else tmp_path)]
    )
    assert run.returncode == -signal.SIGKILL
    assert CELL in [each.read_text() for each in files_below(tmp_path)]
    if kind == "step":
        call_guarded(lambda: None, tmp_path / "private", "step")
    else:
        with temporary_directory(tmp_path):
            pass
    assert CELL not in [each.read_text() for each in files_below(tmp_path)]


def test_a_directory_in_use_and_one_of_another_user_are_left_alone(tmp_path, monkeypatch):
    (tmp_path / "privacy_assets-link").symlink_to("elsewhere")
    (tmp_path / "privacy_assets-file").touch()
    with temporary_directory(tmp_path) as one, temporary_directory(tmp_path) as other:
        assert one != other
        assert one.exists()
        other_user = os.geteuid() + 1
        (tmp_path / "privacy_assets-of-another").mkdir()
        monkeypatch.setattr(temporary_directories.os, "geteuid", lambda: other_user)
        with temporary_directory(tmp_path):
            pass
    assert (tmp_path / "privacy_assets-of-another").exists()


def test_many_that_make_directories_at_once_keep_their_own(tmp_path):
    def use(number):
        with temporary_directory(tmp_path) as directory:
            (directory / "own").write_text(str(number))
            return (directory / "own").read_text()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(200))) == [str(number) for number in range(200)]
    assert list(tmp_path.iterdir()) == []


def test_processes_that_a_source_starts_find_each_other_in_each_step(tmp_path):
    private = tmp_path / ("long-" * 12) / "private"

    def work():
        with multiprocessing.get_context("spawn").Manager() as manager:
            return manager.list([1])[0]

    assert [call_guarded(work, private, "step") for _ in range(2)] == [1, 1]


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_directories_of_releases_that_a_step_makes_keep_the_umask_of_the_user(tmp_path, umask):
    before = os.umask(umask)
    try:
        call_guarded(lambda: write(tmp_path / "releases" / "people"), tmp_path / "private", "step")
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "releases", tmp_path / "releases" / "people")}
    assert modes == {0o755 & ~umask}


def test_duckdb_writes_what_does_not_fit_into_memory_into_a_directory_of_its_owner(tmp_path, monkeypatch):
    pytest.importorskip("duckdb", reason="needs the extra `sql`")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with duckdb_connection() as connection:
        connection.execute("SET memory_limit = '60MB'; SET threads = 1")
        connection.execute("CREATE TABLE t AS SELECT range AS n, hash(range) AS h FROM range(6000000)")
        (directory,) = tmp_path.iterdir()
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert files_below(directory)
    assert list(tmp_path.iterdir()) == []


def setting_of_duckdb(tmp_path, monkeypatch, kind):
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `sql`")
    database = "" if kind == "memory" else str(tmp_path / f"{kind}.duckdb")
    duckdb.connect(database or ":memory:").close()
    monkeypatch.setenv("PEOPLE_URL", f"duckdb:///{database}")
    return SqlQuery("SELECT current_setting('temp_directory') AS place", "PEOPLE_URL").read(None)["place"].iloc[0]


@pytest.mark.parametrize("kind", ["memory", "file", "temp", "quo\"ted's"])
def test_a_query_of_duckdb_has_a_directory_of_its_own_or_that_of_the_step(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    alone = Path(setting_of_duckdb(tmp_path, monkeypatch, kind))
    assert alone.parent == tmp_path
    assert not alone.exists()
    in_step = call_guarded(lambda: setting_of_duckdb(tmp_path, monkeypatch, kind), tmp_path / "private", "step")
    assert Path(in_step).parent == tmp_path / "private" / "temporary"


def test_a_query_of_sqlite_keeps_its_temporary_files_in_memory(tmp_path, monkeypatch):
    pytest.importorskip("sqlalchemy", reason="needs the extra `sql`")
    sqlite3.connect(tmp_path / "people.db").close()
    monkeypatch.setenv("PEOPLE_URL", f"sqlite:///{tmp_path / 'people.db'}")
    assert SqlQuery("SELECT * FROM pragma_temp_store", "PEOPLE_URL").read(None).iloc[0, 0] == 2


@NEEDS_SPLINK
def test_splink_writes_where_a_query_does(tmp_path, monkeypatch):
    import splink

    from privacy_assets.anonymization.anonymize import anonymize
    from privacy_assets.linkage.audit import audit_linkage

    execute, used = splink.DuckDBAPI._execute_sql_against_backend, set()

    def recorded(database, *arguments, **named):
        used.add(database._con.execute("SELECT current_setting('temp_directory')").fetchall()[0][0])
        return execute(database, *arguments, **named)

    monkeypatch.setattr(splink.DuckDBAPI, "_execute_sql_against_backend", recorded)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = pd.DataFrame({"age": np.random.default_rng(0).integers(20, 40, 60), "plan": ["a", "b"] * 30})
    anonymized = anonymize(table, quasi_identifiers=["age", "plan"], k=3)
    audit_linkage(table, anonymized, method="fellegi_sunter")
    (alone,) = used
    assert Path(alone).parent == tmp_path
    used.clear()
    call_guarded(lambda: audit_linkage(table, anonymized, method="fellegi_sunter"), tmp_path / "private", "step")
    (in_step,) = used
    assert Path(in_step).parent == tmp_path / "private" / "temporary"
    assert not Path(alone).exists()
    assert not Path(in_step).exists()


@pytest.mark.parametrize("stem", ["people", "memory", "temp", "system", "a b", "semi;colon", "1"])
def test_a_file_of_duckdb_is_read_under_its_own_name_and_cannot_be_written(tmp_path, stem):
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `sql`")
    path = str(tmp_path / f"{stem}.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE people AS SELECT 7 AS age; CREATE VIEW old AS SELECT * FROM people")
    with duckdb.connect(path, read_only=True), duckdb_connection(path) as connection:
        assert connection.sql("SELECT * FROM old").fetchall() == [(7,)]
        if stem not in temporary_directories.RESERVED:
            assert connection.sql(f'SELECT * FROM "{stem}".main.people').fetchall() == [(7,)]
        with pytest.raises(duckdb.Error):
            connection.execute("DELETE FROM people")
