"""Processing of a long list in slices, on several threads that release the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

SLICES_PER_THREAD = 16
SECONDS_BETWEEN_REPORTS = 0.5


class SlicePool:
    """Runs a kernel over slices of a list on several threads, handing slices out in ascending order.

    The thread of the caller only waits, so that an interrupt reaches it; after that, no further slices are handed out.
    It calls ``on_wait`` about twice a second; an exception that this raises ends the work as an interrupt does. A
    kernel whose slices take long checks ``is_stopped``, of shape (1,).
    """

    def __init__(self, n_threads: int, on_wait: Callable[[], None] | None = None) -> None:
        self.n_threads, self.on_wait = n_threads, on_wait
        self.pool = ThreadPoolExecutor(n_threads)
        self.is_stopped: NDArray[np.bool_] = np.zeros(1, np.bool_)

    def __enter__(self) -> SlicePool:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown()

    def run(self, n_items: int, task: Callable[[Iterator[tuple[int, int]]], Any]) -> list[Any]:
        """Call ``task`` once per thread with an iterator over (begin, stop) slices that all threads share."""
        if n_items == 0:
            return []
        n_slices = min(n_items, SLICES_PER_THREAD * self.n_threads)
        edges = np.linspace(0, n_items, n_slices + 1).astype(np.int64).tolist()
        ticket = count()

        def slices() -> Iterator[tuple[int, int]]:
            while (s := next(ticket)) < n_slices and not self.is_stopped[0]:
                yield edges[s], edges[s + 1]

        try:
            futures = [self.pool.submit(task, slices()) for _ in range(min(self.n_threads, n_slices))]
            while True:
                done, not_done = wait(futures, SECONDS_BETWEEN_REPORTS, FIRST_EXCEPTION)
                for failed in (future for future in done if future.exception() is not None):
                    failed.result()
                if not not_done:
                    return [future.result() for future in futures]
                if self.on_wait is not None:
                    self.on_wait()
        except BaseException:
            self.is_stopped[0] = True
            raise
