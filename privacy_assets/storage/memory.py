"""Return of freed memory to the system, instead of keeping it for later, and how much of it there is."""

import ctypes
import functools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

Item = TypeVar("Item")
M_MMAP_THRESHOLD, SMALLEST_MAPPED = -3, 2**21
GROUPS, GROUP_ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


@contextmanager
def memory_of_the_system() -> Iterator[None]:
    """Let Arrow use the allocator of the system, which `give_back_memory` can empty; Arrow's own keeps freed memory.

    A step that reads and writes one large table after another would otherwise need the memory of all of them.
    """
    _map_large_blocks()
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def give_back_memory() -> None:
    """Give freed memory back to the system."""
    pa.default_memory_pool().release_unused()
    _trim()(0)


def memory_given_back(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items, and give freed memory back after each, because memory freed by many small steps is scattered."""
    for item in items:
        yield item
        give_back_memory()


@functools.cache
def _trim() -> Callable[[int], int]:
    """Return ``malloc_trim`` of the GNU C library; elsewhere, a function that does nothing."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):
        return lambda _: 0
    return trim


@functools.cache
def _map_large_blocks() -> None:
    """Let the GNU C library map blocks of 2 MiB and more, which are given back when they are freed.

    By default, it keeps blocks of up to 32 MiB between others, where only blocks of their size fit.
    """
    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, SMALLEST_MAPPED)


def memory_limit(groups: Path = GROUPS, root: Path = GROUP_ROOT) -> int:
    """Return how many bytes this process may use: the lowest limit of its control groups, or all of the machine."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    lines = groups.read_text().splitlines() if groups.exists() else []
    for kinds, own in (line.split(":", 2)[1:] for line in lines):
        if kinds in ("", "memory"):
            top, name = (root / "memory", "memory.limit_in_bytes") if kinds else (root, "memory.max")
            place = top / own.lstrip("/")
            # A container may see only its own group, at the top. Without a limit, there is no number.
            for each in (place, *place.parents[: len(Path(own).parts) - 1]):
                with suppress(OSError, ValueError):
                    limits.append(int((each / name).read_text()))
    return min(limits)
