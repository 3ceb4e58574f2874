"""Freed memory: given back to the system, by a step with the allocator of the system."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from privacy_assets.storage import memory
from privacy_assets.storage.memory import give_back_memory, memory_limit, memory_of_the_system

STATUS = Path("/proc/self/status")


def held_mib():
    return int(re.search(r"VmRSS:\s+(\d+) kB", STATUS.read_text())[1]) / 1024


@pytest.mark.skipif(not STATUS.exists(), reason="only Linux says how much memory a process holds")
def test_what_was_freed_is_given_back():
    # Too small to be mapped one by one; the last one keeps the C library from giving the rest back by itself.
    arrays = [np.ones(8_000) for _ in range(2_000)]
    last = np.ones(8_000)
    full = held_mib()
    del arrays
    give_back_memory()
    assert held_mib() < full - 80
    assert last.sum() == 8_000


def test_a_step_allocates_from_the_system_and_leaves_the_pool_of_arrow_as_it_was():
    before = pa.default_memory_pool().backend_name
    with pytest.raises(ZeroDivisionError), memory_of_the_system():
        assert pa.default_memory_pool().backend_name == "system"
        raise ZeroDivisionError
    assert pa.default_memory_pool().backend_name == before


def test_another_c_library_is_left_alone(monkeypatch):
    memory._trim.cache_clear()
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())
    try:
        give_back_memory()
    finally:
        memory._trim.cache_clear()


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/\n", {"memory.max": "1000000\n"}, 1_000_000),
        ("0::/\n", {"memory.max": "max\n"}, None),
        ("0::/\n", {}, None),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "2000000", "memory.max": "3000000"}, 2_000_000),
        ("3:cpu:/a\n2:memory:/docker/x\n", {"memory/memory.limit_in_bytes": "4000000"}, 4_000_000),
        ("2:memory:/a\n", {"memory/a/memory.limit_in_bytes": str(2**63 - 4096)}, None),
        (None, {}, None),
    ],
)
def test_the_limit_is_the_lowest_of_the_control_groups_or_the_memory_of_the_machine(tmp_path, groups, files, limit):
    root = tmp_path / "groups"
    for name, text in {**files, "elsewhere/memory.max": "1"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "memory.max").write_text("5")  # Above the top.
    own = tmp_path / "cgroup"
    if groups is not None:
        own.write_text(groups)
    whole = int(re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())[1]) * 1024
    assert memory_limit(own, root) == (whole if limit is None else limit)


def test_large_blocks_are_given_back_where_others_lie_between_them():
    """In a process of its own, because what other tests freed would be used again."""
    code = """
import re, sys
import numpy as np
from pathlib import Path
from privacy_assets.storage.memory import memory_of_the_system

def memory():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

with memory_of_the_system():
    del_first = np.ones(2**21)  # 16 MiB; by default, smaller blocks are then kept when they are freed.
    del del_first
    blocks = [(np.ones(2**20), bytearray(2**16)) for _ in range(20)]
    before = memory()
    between = [small for _, small in blocks]
    del blocks
    print(before - memory())
"""
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(made.stdout) > 150
