"""Reports of compiling: its begin, a count now and then, and its end, in the log or for a function that requests it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

SECONDS_BETWEEN_LINES = 20.0
FIRST_LINE = (
    "Compiling functions for this processor, which takes some seconds: Numba's cache does not have them. In an image, "
    "run `privacy_assets warm-up` when it is built."
)

Report = Callable[[int, str], object]
logger = logging.getLogger(__name__)


class CompilationProgress:
    """Number of functions that this process compiled, and the receivers of reports.

    The number includes functions of Numba that are parts of ours. Reports are called with a level of `logging` and a
    line; if there are none, the lines go to the log.
    """

    def __init__(self) -> None:
        self.n_functions = 0
        self.last_line: float | None = None
        self.reports: list[Report] = []

    def say(self) -> None:
        """Report, at most every few seconds; the first line of a process is a warning, because it costs time."""
        now = time.monotonic()
        if self.last_line is not None and now - self.last_line < SECONDS_BETWEEN_LINES:
            return
        level, line = logging.INFO, f"Compiling: {self.n_functions} functions so far."
        if self.last_line is None:
            level, line = logging.WARNING, FIRST_LINE
        self.last_line = now
        self.tell(level, line)

    def tell(self, level: int, line: str) -> None:
        """Report a line without a value of a table, for the log of the stage that runs."""
        for report in self.reports.copy() or [logger.log]:
            with suppress(Exception):
                report(level, line)

    def say_until(self, is_done: threading.Event) -> None:
        """Report every few seconds; one function can take longer than that, and LLVM lets other threads run."""
        while not is_done.wait(SECONDS_BETWEEN_LINES):
            self.say()


progress = CompilationProgress()


@contextmanager
def reported_to(report: Report) -> Iterator[None]:
    """Report compiling in any thread to a function instead of the log, while the block runs, and its end after it.

    Its exceptions are ignored.
    """
    progress.reports.append(report)
    before = progress.n_functions
    try:
        yield
    finally:
        progress.reports.remove(report)
        if progress.n_functions > before:
            with suppress(Exception):
                report(logging.INFO, f"Compiled {progress.n_functions - before} functions; the next run has them.")
