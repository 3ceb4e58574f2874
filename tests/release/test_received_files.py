import resource
import signal

import pytest

from privacy_assets.release import received_files
from privacy_assets.release.received_files import in_limited_process

MIB = 2**20


def test_a_function_answers_from_its_process():
    assert in_limited_process("builtins.sum", range(10), 64 * MIB) == 45
    assert in_limited_process("builtins.list", ("\ud800", 0.1, None), 64 * MIB) == ["\ud800", 0.1, None]


def test_no_core_is_left_behind():
    assert in_limited_process("resource.getrlimit", resource.RLIMIT_CORE, 64 * MIB) == [0, 0]


@pytest.mark.parametrize(
    ("function", "asked"),
    [
        ("builtins.list", range(10**9)),  # 8 GB.
        ("builtins.sum", range(10**12)),  # Hours.
        ("signal.raise_signal", signal.SIGABRT),  # As an exception of C++ that nobody catches.
        ("signal.raise_signal", signal.SIGKILL),
        ("os._exit", 0),
        ("builtins.int", "no number"),
    ],
)
def test_whatever_ends_the_process_is_no_answer(monkeypatch, function, asked):
    monkeypatch.setattr(received_files, "MOST_CPU_SECONDS", 2)
    assert in_limited_process(function, asked, 64 * MIB) is None


def test_a_module_in_the_current_directory_is_not_run(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit(0)")
    monkeypatch.chdir(tmp_path)
    assert in_limited_process("builtins.sum", range(3), 64 * MIB) == 3
