import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys

import pytest

from privacy_assets.release import received_files
from privacy_assets.release.files import write_release
from privacy_assets.release.received_files import NoAnswerError, TooLargeError, in_limited_process
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.test_files import RECORD, TABLE
from tests.shared_data import REPOSITORY

MIB = 2**20


def test_a_function_answers_from_its_process():
    assert in_limited_process("builtins.sum", range(10), 64 * MIB) == 45
    assert in_limited_process("builtins.list", ("\ud800", 0.1, None), 64 * MIB) == ["\ud800", 0.1, None]


def test_no_core_is_left_behind():
    assert in_limited_process("resource.getrlimit", resource.RLIMIT_CORE, 64 * MIB) == [0, 0]


LIMITS = "it cannot be read within the limits of this verification, 64 MiB and one hour"
WHAT_TO_DO = "If you trust its sender, allow more: max_bytes, or --max-gib"
ENDED = "it was not verified: the process that reads it ended without an answer"
NOT_STARTED = "it was not verified: the process that reads it could not start"


@pytest.mark.parametrize(
    ("function", "asked", "told"),
    [
        ("builtins.list", range(10**9), f"{LIMITS} (exit code 3). {WHAT_TO_DO}"),  # 8 GB.
        ("builtins.sum", range(10**12), f"{LIMITS} (signal 9). {WHAT_TO_DO}"),  # Hours.
        (
            "signal.raise_signal",
            signal.SIGABRT,
            f"{LIMITS} (signal 6). {WHAT_TO_DO}",
        ),  # As an exception of C++ that nobody catches.
        ("signal.raise_signal", signal.SIGKILL, f"{LIMITS} (signal 9). {WHAT_TO_DO}"),
        ("os._exit", 0, f"{ENDED} (exit code 0)"),
        ("builtins.int", "SENTINEL", f"{ENDED} (exit code 1)"),
        ("no_such_module.function", 0, f"{NOT_STARTED} (exit code 1)"),
        ("builtins.no_such_function", 0, f"{NOT_STARTED} (exit code 1)"),
    ],
)
def test_whatever_ends_the_process_is_said_and_is_no_answer(monkeypatch, function, asked, told):
    monkeypatch.setattr(received_files, "MOST_CPU_SECONDS", 2)
    with pytest.raises(NoAnswerError) as raised:
        in_limited_process(function, asked, 64 * MIB)
    assert str(raised.value).startswith(told)
    assert "SENTINEL" not in str(raised.value)
    assert "limits" not in told or str(raised.value) == told


@pytest.mark.parametrize("executable", ["/no/such/python", "", None, "/bin/false"])
def test_a_process_that_does_not_start_is_said_not_to_start(monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(NoAnswerError, match=NOT_STARTED):
        in_limited_process("builtins.sum", range(3), 64 * MIB)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_libraries_print_as_they_are_imported_is_no_part_of_the_answer(tmp_path, monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    (tmp_path / "loud.py").write_text("print('42')\nfrom builtins import sum")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert in_limited_process("loud.sum", range(3), 64 * MIB) == 3


VERIFY = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import privacy_assets
from privacy_assets.release.verification import verify_release
print(privacy_assets.__file__, verify_release(Path(sys.argv[2])).problems)
"""


def copied(place, edit=""):
    """Copy the package, and let the copy of its verification do something else."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "privacy_assets", place / "privacy_assets", ignore=ignored)
    with (place / "privacy_assets" / "release" / "verification.py").open("a") as file:
        file.write(edit)
    return place


@pytest.mark.parametrize("other", ["nothing", "a copy that admits everything", "a copy that breaks"])
def test_the_process_runs_this_copy_of_the_package_wherever_it_is(tmp_path, other):
    """The package is reachable only through sys.path, and Python finds none or another copy by itself."""
    release = write_release(tmp_path / "releases", TABLE, fingerprint(TABLE), RECORD, ("parquet",))
    here = copied(tmp_path / "it's here", "\n\ndef _shown(*_): return ('checked here',)\n")
    (here / "json.py").write_text("raise SystemExit(5)")
    edits = {
        "a copy that admits everything": "\n\ndef _verified(*_): return ReleaseVerification(None, None, 1, ())\n",
        "a copy that breaks": "\n\nraise SystemExit(0)\n",
    }
    searched = [copied(tmp_path / "other", edits[other])] if other in edits else []
    # As an installed package, but for the editable one, which is behind PYTHONPATH.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, searched))}
    command = [sys.executable, "-P", "-c", VERIFY, str(here), str(release)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=here, check=True)
    assert run.stdout == f"{here / 'privacy_assets' / '__init__.py'} ('checked here',)\n"


def test_a_module_in_the_current_directory_is_not_run(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit(0)")
    monkeypatch.chdir(tmp_path)
    assert in_limited_process("builtins.sum", range(3), 64 * MIB) == 3


def test_a_file_that_is_too_large_is_refused_by_its_size_without_being_read(tmp_path, monkeypatch):
    path = tmp_path / "approval.json"
    with path.open("wb") as file:
        file.truncate(2**30)

    @contextlib.contextmanager
    def unread(_):
        with path.open("rb") as file:
            yield file
            assert file.tell() == 0

    monkeypatch.setattr(received_files, "open_regular", unread)
    with pytest.raises(TooLargeError):
        received_files.read_regular(path, 65_536)
    path.write_bytes(b"12345")
    with pytest.raises(TooLargeError):
        received_files.read_regular(path, 4)
    monkeypatch.undo()
    assert received_files.read_regular(path, 5) == b"12345"
