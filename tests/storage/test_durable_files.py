"""What is said to be stored has reached the disk: files before they get their name, names before the call returns.

A power cut cannot be tried here. What can be seen is the order of the calls to the system that it depends on.
"""

import os
from pathlib import Path

import pytest

from privacy_assets.storage.durable_files import replace_file, sync_directory, write_directory, write_file
from privacy_assets.storage.histories import add_to_history
from privacy_assets.synthesis.private.ledger import PrivacyLedger


@pytest.fixture
def calls(monkeypatch):
    """The synchronized files and directories, with their sizes, and the renamed ones, in order."""
    seen, sync, rename, replace = [], os.fsync, os.rename, os.replace

    def synchronized(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append(("sync", path.name, None if path.is_dir() else os.fstat(descriptor).st_size))
        sync(descriptor)

    def renamed(move):
        def call(source, target, **options):
            seen.append(("rename", Path(source).name, Path(target).name))
            move(source, target, **options)

        return call

    monkeypatch.setattr(os, "fsync", synchronized)
    monkeypatch.setattr(os, "rename", renamed(rename))
    monkeypatch.setattr(os, "replace", renamed(replace))
    return seen


pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not say what is open")


@pytest.mark.parametrize("size", [0, 1, 4_096, 1_000_000])
def test_a_file_is_synchronized_with_all_of_its_bytes(tmp_path, calls, size):
    write_file(tmp_path / "file", lambda file: file.write(bytes(size)))
    assert calls == [("sync", "file", size)]


def test_a_directory_is_synchronized(tmp_path, calls):
    sync_directory(tmp_path)
    assert calls == [("sync", tmp_path.name, None)]


def test_a_file_is_whole_on_the_disk_before_it_gets_its_name_and_the_name_before_the_call_returns(tmp_path, calls):
    replace_file(tmp_path / "file", b"content")
    (_, temporary, _), *_ = calls
    assert temporary.startswith(".partial-file-")
    assert calls == [("sync", temporary, 7), ("rename", temporary, "file"), ("sync", tmp_path.name, None)]


def test_a_directory_is_whole_on_the_disk_before_it_gets_its_name(tmp_path, calls):
    files = {"a": lambda file: file.write(b"12"), "b": lambda file: file.write(b"345")}
    for replaced in (False, True):
        calls.clear()
        write_directory(tmp_path / "made", files)
        assert calls[:2] == [("sync", "a", 2), ("sync", "b", 3)]
        _, temporary, _ = calls[2]
        assert temporary.startswith(".partial-made-")
        assert calls[2] == ("sync", temporary, None)
        assert [call[1] for call in calls[3:-2]] == (["made"] if replaced else [])
        assert calls[-2:] == [("rename", temporary, "made"), ("sync", tmp_path.name, None)]


def test_an_entry_of_a_history_is_on_the_disk_when_it_is_added(tmp_path, calls):
    path = tmp_path / "history.jsonl"
    for _ in range(2):
        calls.clear()
        add_to_history(path, [{"number": 1}], "these numbers", "Nothing was counted.")
        assert ("sync", "history.jsonl", path.stat().st_size) in calls


def test_a_fit_is_on_the_disk_in_ledger_and_witness_before_it_begins(tmp_path, calls):
    ledger = PrivacyLedger(tmp_path / "ledgers", "people")
    ledger.reserve(
        rho=0.1,
        epsilon=1.0,
        delta=1e-6,
        at_most=3.0,
        total_delta=1e-6,
        release="people",
        run_id="a run",
        made_of="0" * 64,
    )
    at = calls.index(("sync", ledger.path.name, ledger.path.stat().st_size))
    assert ("sync", ledger.path.parent.name, None) in calls[at:]
    witness = ledger.witness_path
    renamed = next(place for place, call in enumerate(calls) if call[0] == "rename" and call[2] == witness.name)
    assert calls[renamed - 1][:2] == ("sync", calls[renamed][1])
    assert calls[renamed + 1] == ("sync", witness.parent.name, None)
