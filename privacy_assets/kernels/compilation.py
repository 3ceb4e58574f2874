"""Decorators of compiled functions, and what happens while Numba compiles them.

Python calls *kernels*; only kernels and parts call *parts*. Numba makes entry points of every function for Python and
for C, with code that unpacks each array; for parts, that would be up to a third of the time to compile them. Compiling
makes millions of objects that stay, so the garbage collector, which would look at all of them again and again, pauses.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from numba import config, njit
from numba.core import event
from numba.core.registry import CPUDispatcher

SECONDS_BETWEEN_LINES = 2.0
OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "no_cfunc_wrapper": True}
PACKAGE = __name__.partition(".")[0]
FIRST_LINE = (
    "Compiling functions for this processor, which takes some seconds: Numba's cache does not have them. In an image, "
    "run `privacy_assets warm-up` when it is built."
)

Function = TypeVar("Function", bound=Callable[..., Any])
Report = Callable[[int, str], object]
logger = logging.getLogger(__name__)


class _Part(CPUDispatcher):
    """A compiled function without an entry point for Python: called from there, it runs as Python."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.py_func(*args, **kwargs)


def kernel(function: Function) -> Function:
    """Compile a function that Python calls, and that releases the interpreter lock."""
    compiled: Function = njit(**OPTIONS)(function)
    return compiled


def part(function: Function) -> Function:
    """Compile a function that other compiled functions call."""
    return _part(function, forceinline=False)


def inlined_part(function: Function) -> Function:
    """Compile a part into each of its callers; passing its arguments would take longer than its work."""
    return _part(function, forceinline=True)


def _part(function: Function, forceinline: bool) -> Function:
    options = OPTIONS | {"no_cpython_wrapper": True, "forceinline": forceinline}
    compiled: Any = njit(**options)(function)
    if not getattr(config, "DISABLE_JIT", False):
        compiled.__class__ = _Part
    return compiled  # type: ignore[no-any-return]


@contextmanager
def reported_to(report: Report) -> Iterator[None]:
    """Report compiling in any thread to a function instead of the log, while the block runs.

    Parameters
    ----------
    report : callable
        Called with a level of `logging` and a line, from the thread that compiles; its exceptions are ignored.
    """
    _compilations.reports.append(report)
    try:
        yield
    finally:
        _compilations.reports.remove(report)


def number_compiled() -> int:
    """Return how many functions this process compiled, those of Numba that are parts of ours included."""
    return _compilations.n_functions


class _Compilations(event.Listener):
    """Compilations of this package's functions; Numba's lock lets only one thread compile at a time."""

    def __init__(self) -> None:
        self.depth = self.n_functions = 0
        self.collects_garbage = False
        self.last_line: float | None = None
        self.reports: list[Report] = []

    def on_start(self, started: event.Event) -> None:
        """Pause the garbage collector when the first function begins."""
        is_ours = started.data["dispatcher"].py_func.__module__.partition(".")[0] == PACKAGE
        if self.depth == 0 and not is_ours:
            return
        if self.depth == 0:
            self.collects_garbage = gc.isenabled()
            gc.disable()
        self.depth += 1
        self._report()

    def on_end(self, _: event.Event) -> None:
        """Start the garbage collector again when the last function ends."""
        if self.depth == 0:
            return
        self.depth -= 1
        self.n_functions += 1
        if self.depth > 0:
            self._report()
        elif self.collects_garbage:
            gc.enable()

    def _report(self) -> None:
        now = time.monotonic()
        if self.last_line is not None and now - self.last_line < SECONDS_BETWEEN_LINES:
            return
        level, line = logging.INFO, f"Compiling: {self.n_functions} functions so far."
        if self.last_line is None:
            level, line = logging.WARNING, FIRST_LINE
        self.last_line = now
        for report in self.reports.copy() or [logger.log]:
            with suppress(Exception):
                report(level, line)


_compilations = _Compilations()
event.register("numba:compile", _compilations)  # type: ignore[no-untyped-call]
