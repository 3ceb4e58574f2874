"""Processing of a long list in slices, on several threads that release the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np

SLICES_PER_THREAD = 16


class SlicePool:
    """Runs a kernel over slices of a list on several threads, handing slices out in ascending order."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def __enter__(self) -> SlicePool:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.shutdown()

    def run(self, n_items: int, task: Callable[[Iterator[tuple[int, int]]], Any]) -> list[Any]:
        """Call ``task`` once per thread with an iterator over (begin, stop) slices that all threads share."""
        if n_items == 0:
            return []
        if self.pool is None:
            return [task(iter([(0, n_items)]))]
        n_slices = min(n_items, SLICES_PER_THREAD * self.n_threads)
        edges = np.linspace(0, n_items, n_slices + 1).astype(np.int64).tolist()
        ticket = count()

        def slices() -> Iterator[tuple[int, int]]:
            while (s := next(ticket)) < n_slices:
                yield edges[s], edges[s + 1]

        return list(self.pool.map(lambda _: task(slices()), range(min(self.n_threads, n_slices))))
