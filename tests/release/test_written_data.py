"""The tasks of an engine write the files of a release that one process writes."""

import datetime
import errno
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy_assets import EngineError, InvalidTableError, LocalEngine, verify_release
from privacy_assets.release import written_data
from privacy_assets.release.files import write_release
from privacy_assets.release.written_data import _WriteFile, write_data
from privacy_assets.storage import durable_files, parquet_parts
from privacy_assets.storage import table as table_module
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.storage.table import store
from tests.release.test_files import RECORD, TABLE

ONE_TASK_EACH = LocalEngine(rows_per_batch=1, batches_per_partition=1)
N_ROWS = 503
random = np.random.default_rng(2)
ROWS = pd.DataFrame(
    {
        "age": random.integers(0, 90, N_ROWS),
        "plan": random.choice(["=basic", "plus, or none", "", None], N_ROWS),
        "grade": pd.Categorical.from_codes(random.integers(0, 3, N_ROWS), [*"lmh", "never given"], ordered=True),
        "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, N_ROWS), "D"),
    }
)
OF_ROWS = replace(RECORD, columns=[{"column": name, "role": "sensitive"} for name in ROWS.columns])


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(table_module, "ROWS_PER_BATCH", 100)
    monkeypatch.setattr(parquet_parts, "ROWS_PER_GROUP", 100)
    # Row groups of an anonymized table are no multiples of a batch.
    return store((ROWS.iloc[begin : begin + 30] for begin in range(0, N_ROWS, 30)), tmp_path)


def write(directory, table, engine=ONE_TASK_EACH, rows_per_part=1_000):
    return write_release(
        directory, table, table.fingerprint, OF_ROWS, ("parquet", "csv"), rows_per_part=rows_per_part, engine=engine
    )


def files_of(directory):
    """The files of the data, with their modes and bytes."""
    return {
        path.relative_to(directory).as_posix(): (path.stat().st_mode, path.read_bytes())
        for path in sorted(directory.rglob("synthetic*/**/*")) + sorted(directory.glob("synthetic.*"))
        if path.is_file()
    }


@pytest.mark.parametrize("rows_per_part", [1_000, N_ROWS, N_ROWS - 1, 250, 100, 7])
def test_the_files_are_byte_by_byte_those_of_one_process(tmp_path, table, rows_per_part, monkeypatch):
    expected = write(tmp_path / "here", table, None, rows_per_part)
    # Nothing is written by this process, but by tasks.
    tasks, call = [], _WriteFile.__call__
    monkeypatch.setattr(_WriteFile, "__call__", lambda task, number: [tasks.append(number), call(task, number)][1])
    found = write(tmp_path / "there", table, rows_per_part=rows_per_part)
    assert tasks == list(range(-(-N_ROWS // rows_per_part) + 1))
    assert files_of(found) == files_of(expected)
    assert len(files_of(found)) == len(tasks)
    assert verify_release(found).verified
    assert [path.name for path in found.parent.iterdir() if path.name.startswith(".")] == []


def test_a_frame_is_written_here_and_verified_by_tasks(tmp_path, monkeypatch):
    monkeypatch.setattr(written_data, "_WriteFile", None)
    verified, verify = [], verify_release
    monkeypatch.setattr(
        "privacy_assets.release.files.verify_release",
        lambda directory, **asked: verified.append(asked["engine"]) or verify(directory, **asked),
    )
    found = write_release(tmp_path, TABLE, fingerprint(TABLE), RECORD, engine=ONE_TASK_EACH)
    assert verified == [ONE_TASK_EACH]
    assert verify(found).verified


def refused(tmp_path, table, error, match, **settings):
    """Release once, be refused the second time, and find the first release unchanged."""
    first = write(tmp_path / "releases", table, None, 50)
    before = sorted((tmp_path / "releases").rglob("*"))
    with pytest.raises(error, match=match):
        write(tmp_path / "releases", table, rows_per_part=50, **settings)
    assert sorted((tmp_path / "releases").rglob("*")) == before
    assert (tmp_path / "releases" / "latest").resolve() == first


@pytest.mark.parametrize("seen", ["nothing", "other rows", "rows alone"])
def test_executors_that_do_not_see_the_directory_are_refused(tmp_path, table, seen, monkeypatch):
    call = _WriteFile.__call__

    def elsewhere(task, number):
        if seen == "nothing":
            task = replace(task, rows=tmp_path / "nowhere" / "rows.parquet")
        elif seen == "other rows":
            task.rows.write_bytes(task.rows.read_bytes() + b" ")
        else:
            task = replace(task, path=tmp_path / "nowhere" / "synthetic.parquet")
        return call(task, number)

    monkeypatch.setattr(_WriteFile, "__call__", elsewhere)
    refused(tmp_path, table, EngineError, "do not see .*releases' as this process does. Nothing was released")


def test_a_table_that_cannot_be_written_is_refused_as_by_one_process(tmp_path, monkeypatch):
    monkeypatch.setattr(table_module, "ROWS_PER_BATCH", 10)
    rows = pd.DataFrame({"day": [None] * 10 + [datetime.date(2024, 1, 1)] * 10})
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=10)
    table = table_module.StoredTable([(tmp_path / "rows.parquet").open("rb")])
    for engine in (None, ONE_TASK_EACH):
        (tmp_path / str(engine)).mkdir()
        with pytest.raises(InvalidTableError, match="Parts of the released table have different columns or types"):
            write_data(tmp_path / str(engine), table, "synthetic", ("parquet",), 9, engine)


def test_of_other_errors_the_kind_is_said(tmp_path, table, monkeypatch):
    call = _WriteFile.__call__

    def fails(*_):
        raise ValueError("SentinelCELL")

    def of_csv(task, number):
        with monkeypatch.context() as patched:
            patched.setattr(written_data, "_write_csv", fails)
            return call(task, number)

    monkeypatch.setattr(_WriteFile, "__call__", of_csv)
    refused(tmp_path, table, EngineError, r"could not write the files of the release: ValueError\. Nothing was")


@pytest.mark.parametrize("number", [0, 3, 11])
def test_a_disk_that_is_full_for_a_task_publishes_nothing(tmp_path, table, number, monkeypatch):
    call = _WriteFile.__call__

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def of_number(task, own):
        with monkeypatch.context() as patched:
            if own == number:
                patched.setattr(durable_files.os, "fsync", full)
            return call(task, own)

    monkeypatch.setattr(_WriteFile, "__call__", of_number)
    refused(tmp_path, table, EngineError, "could not write the files of the release: No space left on device. Nothing")


def test_too_many_parts_are_refused_before_any_is_written(tmp_path, table, monkeypatch):
    monkeypatch.setattr(parquet_parts, "MOST_PARTS", 5)
    monkeypatch.setattr(written_data, "_WriteFile", None)
    with pytest.raises(InvalidTableError, match="more than 5 parts of 50 rows"):
        write(tmp_path / "releases", table, rows_per_part=50)
    assert list((tmp_path / "releases").iterdir()) == []


def test_a_worker_that_writes_other_rows_is_found(tmp_path, table, monkeypatch):
    call, path = _WriteFile.__call__, tmp_path / "other.parquet"
    ROWS.assign(age=1).to_parquet(path)
    other = {"rows": path, "n_bytes": path.stat().st_size}
    monkeypatch.setattr(_WriteFile, "__call__", lambda task, number: call(replace(task, **other), number))
    refused(tmp_path, table, InvalidTableError, "do not verify: the table does not have the recorded fingerprint")


def test_a_second_attempt_at_a_task_replaces_the_file_of_the_first(tmp_path, table, monkeypatch):
    expected = write(tmp_path / "here", table, None, 50)
    call = _WriteFile.__call__

    def twice(task, number):
        call(task, number)
        # What a killed worker leaves behind is not in the directory of the release.
        (task.rows.parent / "0-left").write_bytes(b"PAR1")
        return call(task, number)

    monkeypatch.setattr(_WriteFile, "__call__", twice)
    assert files_of(write(tmp_path / "there", table, rows_per_part=50)) == files_of(expected)


@given(st.integers(0, 120), st.integers(0, 120), st.integers(1, 40), st.integers(1, 40), st.integers(1, 50))
def test_rows_of_a_range(begin, stop, rows_per_group, rows_per_batch, n_first):
    """Whatever the groups of rows, the batches, and the files."""
    frame = pd.DataFrame({"n": np.arange(100)})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(table_module, "ROWS_PER_BATCH", rows_per_batch)
        stored = [
            store([own.iloc[at : at + rows_per_group] for at in range(0, len(own), rows_per_group)], None)
            for own in (frame[:n_first], frame[n_first:])
        ]
        found = list(table_module.StoredTable(stored).batches(rows=range(begin, stop)))
    assert [each for batch in found for each in batch["n"]] == list(range(begin, min(stop, 100)))
    assert all(0 < len(batch) <= rows_per_batch for batch in found)
