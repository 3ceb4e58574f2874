"""The staging directory holds codes only while they are used, readable by their owner; also after a kill."""

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy_assets.engine import staging
from privacy_assets.engine.spark import CELLS, _cells, _unpack
from privacy_assets.engine.staging import PREFIX, staged, staging_directory
from privacy_assets.errors import EngineError
from tests.shared_data import REPOSITORY

STAGES = """
import sys
import threading
import time
from contextlib import suppress
import pyarrow as pa
from privacy_assets.engine.staging import staged
with staged(sys.argv[1], [], pa.schema([("cell", pa.binary())])) as path:
    print(path, flush=True)
    sys.stdin.read()
"""


def cells_of(table, n_rows=3):
    return _cells(table, n_rows)


def stages_elsewhere(directory):
    """Start a process that stages codes until its input ends; return it and the directory of the codes."""
    process = subprocess.Popen(
        [sys.executable, "-c", STAGES, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    return process, Path(process.stdout.readline().strip()).parent


@given(st.integers(0, 40), st.integers(1, 9))
def test_what_is_read_there_are_the_codes_in_row_groups_of_a_cell(tmp_path_factory, n_rows, rows_per_cell):
    table = pa.table({"row": np.arange(n_rows), "c0": np.arange(n_rows, dtype=np.uint8) % 7})
    with staged(str(tmp_path_factory.getbasetemp()), _cells(table, rows_per_cell), CELLS) as path:
        file = pq.ParquetFile(path)
        assert file.schema_arrow == CELLS
        assert file.metadata.num_row_groups == -(-n_rows // rows_per_cell)
        found = [pa.Table.from_batches(_unpack(iter([batch]))) for batch in file.iter_batches()]
    assert pa.concat_tables([table.schema.empty_table(), *found]).equals(table)
    assert not Path(path).parent.exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_only_the_owner_can_read_it_and_it_is_gone_afterwards(tmp_path, umask, scheme):
    before = os.umask(umask)
    try:
        with staged(f"{scheme}{tmp_path}/", cells_of(pa.table({"c0": [1, 2]})), CELLS) as path:
            assert path.startswith(f"{scheme}{tmp_path}/{PREFIX}")
            (directory,) = tmp_path.iterdir()
            files = {each.name: stat.S_IMODE(each.stat().st_mode) for each in directory.iterdir()}
            assert files == {"codes.parquet": 0o600, "lock": 0o600}
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700
            assert path == f"{scheme}{directory}/codes.parquet"
    finally:
        os.umask(before)
    assert not list(tmp_path.iterdir())


def test_it_is_gone_after_a_failure_and_after_an_interruption(tmp_path):
    for error in (ValueError, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(error), staged(str(tmp_path), cells_of(pa.table({"c0": [1]})), CELLS):
            raise error
        assert not list(tmp_path.iterdir())


def test_nothing_stays_of_workers_that_still_write(tmp_path):
    """Their files would be made between the listing of the directory and its removal."""
    for _ in range(5):
        ended, made = threading.Event(), []

        def write(directory, ended=ended, made=made):
            while not ended.is_set():
                with suppress(OSError):
                    (directory / str(len(made))).write_text("SENTINEL")
                    made.append(1)

        with staging_directory(str(tmp_path)) as directory:
            worker = threading.Thread(target=write, args=[directory])
            worker.start()
            while len(made) < 20:
                time.sleep(0.001)
        ended.set()
        worker.join()
        assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_a_living_one_uses_is_not(tmp_path):
    (tmp_path / "of somebody else").write_text("kept")
    killed, left = stages_elsewhere(tmp_path)
    living, used = stages_elsewhere(tmp_path)
    with killed, living:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (left / "codes.parquet").exists()
        with staged(str(tmp_path), cells_of(pa.table({"c0": [1]})), CELLS) as path:
            assert not left.exists()
            assert (used / "codes.parquet").exists()
            assert Path(path).exists()
        living.stdin.close()
        assert living.wait() == 0
    assert [each.name for each in tmp_path.iterdir()] == ["of somebody else"]


def test_a_leftover_without_a_lock_file_is_removed(tmp_path):
    """A removal that was interrupted after the lock file."""
    (tmp_path / f"{PREFIX}a").mkdir()
    (tmp_path / f"{PREFIX}a" / "codes.parquet").write_bytes(b"codes")
    with staged(str(tmp_path), cells_of(pa.table({"c0": [1]})), CELLS) as path:
        assert [each.name for each in tmp_path.iterdir()] == [Path(path).parent.name]


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "staging").mkdir()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("kept")
    (tmp_path / "staging" / f"{PREFIX}a").symlink_to(tmp_path / "kept")
    with staged(str(tmp_path / "staging"), cells_of(pa.table({"c0": [1]})), CELLS):
        pass
    assert [each.name for each in (tmp_path / "kept").iterdir()] == ["file"]


def _no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _no_locks(*_):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


@pytest.mark.parametrize("failure", ["missing", "a file", "full", "without locks", "not writable"])
def test_a_directory_that_cannot_be_used_is_refused_and_nothing_is_left(tmp_path, monkeypatch, failure):
    directory, reason = tmp_path / "staging", ""
    if failure != "missing":
        directory.mkdir()
    if failure == "missing":
        reason = "No such file or directory"
    elif failure == "a file":
        directory = tmp_path / "file"
        directory.write_text("")
        reason = "Not a directory"
    elif failure == "full":
        monkeypatch.setattr(staging.pq.ParquetWriter, "write_table", _no_space)
        reason = "No space left on device"
    elif failure == "without locks":
        monkeypatch.setattr("privacy_assets.storage.durable_files.fcntl.flock", _no_locks)
        reason = "No locks available"
    else:
        monkeypatch.setattr(
            Path, "mkdir", lambda *_, **__: os.open("/proc/version", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        )
        reason = "File exists"
    with (
        pytest.raises(EngineError, match=f"staging directory: {re.escape(reason)}") as refused,
        staged(str(directory), cells_of(pa.table({"c0": [1]})), CELLS),
    ):
        pass
    assert refused.value.__context__ is None
    monkeypatch.undo()
    assert not directory.is_dir() or not [each for each in directory.iterdir() if each.name.startswith(PREFIX)]
