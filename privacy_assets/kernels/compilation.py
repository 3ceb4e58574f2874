"""Decorators of compiled functions, and the handling of their compilation.

Python calls *kernels*; only kernels and parts call *parts*. Numba makes entry points of every function for Python and
for C, with code that unpacks each array; for parts, this would take up to a third of their compile time. Compiling
makes millions of objects that stay in memory, so the garbage collector, which would examine all of them repeatedly, is
paused.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from numba import config, njit, version_info
from numba.core import event
from numba.core.registry import CPUDispatcher

from privacy_assets.kernels.compilation_progress import progress

OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "no_cfunc_wrapper": True}
PACKAGE = __name__.partition(".")[0]
SHORTENED = ((0, 68),)
"""Versions of Numba whose internals `part_compiler` fits. With others, compiling only takes longer."""
IS_SHORTENED = version_info.short in SHORTENED

Function = TypeVar("Function", bound=Callable[..., Any])


class _Part(CPUDispatcher):
    """A compiled function without an entry point for Python: called from there, it runs as Python."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.py_func(*args, **kwargs)


def kernel(function: Function) -> Function:
    """Compile a function that Python calls, and that releases the interpreter lock."""
    return _compiled(function, {"_nrt": True})  # type: ignore[no-any-return]


def part(function: Function) -> Function:
    """Compile a function that other compiled functions call, which returns numbers and does not make arrays."""
    return _part(function, counts_references=False)


def inlined_part(function: Function) -> Function:
    """Compile a part into each of its callers; passing its arguments would take longer than its work."""
    return _part(function, is_inlined=True, counts_references=False)


def allocating_part(function: Function) -> Function:
    """Compile a part that makes or returns arrays, or copies one into another; their references are counted."""
    return _part(function, counts_references=True)


def _part(function: Function, *, is_inlined: bool = False, counts_references: bool) -> Function:
    options: dict[str, Any] = {"no_cpython_wrapper": True}
    if IS_SHORTENED:
        from privacy_assets.kernels.part_compiler import InlinedPartCompiler, PartCompiler

        options |= {"pipeline_class": InlinedPartCompiler if is_inlined else PartCompiler, "_nrt": counts_references}
    else:
        options["forceinline"] = is_inlined
    compiled = _compiled(function, options)
    if not getattr(config, "DISABLE_JIT", False):
        compiled.__class__ = _Part
    return compiled  # type: ignore[no-any-return]


def _compiled(function: Function, options: dict[str, Any]) -> Any:
    return njit(**OPTIONS, **options)(function)


class _Compilations(event.Listener):
    """Compilations of this package's functions; Numba's lock lets only one thread compile at a time."""

    def __init__(self) -> None:
        self.depth = 0
        self.collects_garbage = False
        self.is_done = threading.Event()

    def on_start(self, started: event.Event) -> None:
        """Report compiling, and pause the garbage collector, when the first function begins."""
        is_ours = started.data["dispatcher"].py_func.__module__.partition(".")[0] == PACKAGE
        if self.depth == 0 and not is_ours:
            return
        if self.depth == 0:
            self.collects_garbage = gc.isenabled()
            gc.disable()
            progress.say()
            self.is_done = threading.Event()
            threading.Thread(target=progress.say_until, args=(self.is_done,), daemon=True).start()
        self.depth += 1

    def on_end(self, _: event.Event) -> None:
        """Start the garbage collector again when the last function ends."""
        if self.depth == 0:
            return
        self.depth -= 1
        progress.n_functions += 1
        if self.depth > 0:
            return
        self.is_done.set()
        if self.collects_garbage:
            gc.enable()


_compilations = _Compilations()
event.register("numba:compile", _compilations)  # type: ignore[no-untyped-call]
