"""Freed memory: given back to the system, by a step with the allocator of the system."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from privacy_assets.storage import memory
from privacy_assets.storage.memory import give_back_memory, memory_of_the_system

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
