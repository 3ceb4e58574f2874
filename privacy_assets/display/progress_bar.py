"""Progress bars of functions that take longer than two seconds, on a terminal and in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SECONDS_UNTIL_SHOWN: Final = 2.0

P = ParamSpec("P")
T = TypeVar("T")

_is_shown: ContextVar[bool] = ContextVar("is_shown", default=False)


class HasBar(Protocol):
    """Progress that a bar can show."""

    @property
    def bar(self) -> tuple[str, int, int]:
        """The current stage, the number done, and the total; 0 if the total is unknown."""
        ...


class StageProgress(NamedTuple):
    """A stage of the work, the number of its parts that are done, and the total; 0 if the total is unknown."""

    stage: str
    n_done: int
    n_total: int

    @property
    def bar(self) -> tuple[str, int, int]:
        """The same, for a progress bar."""
        return self

    def in_words(self) -> str:
        """Return a line for a log."""
        return f"{self.stage}: {self.n_done:,}{f' of {self.n_total:,}' if self.n_total else ''} done"


def shows_progress(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function whose argument ``progress`` is None show a bar, if somebody can see it.

    Functions that it calls show no bars. A bar has names of stages, columns and candidates, and counts.
    """

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        if kwargs.get("progress") is not None or _is_shown.get() or not _is_watched():
            return function(*args, **kwargs)
        reset = _is_shown.set(True)
        bar = ProgressBar(function.__name__)
        kwargs["progress"] = bar.show
        try:
            return function(*args, **kwargs)
        finally:
            bar.close()
            _is_shown.reset(reset)

    return wrapper


def _is_watched() -> bool:
    """Return whether standard error is a terminal, or this is a notebook."""
    ipython: Any = sys.modules.get("IPython")
    if ipython is not None and "IPKernelApp" in getattr(ipython.get_ipython(), "config", {}):
        return True
    return sys.stderr is not None and sys.stderr.isatty()


class ProgressBar:
    """A bar that appears once its function has run for two seconds, and disappears when the function ends."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun = time.monotonic()
        self._drawn: tuple[Progress, TaskID] | None = None

    def show(self, progress: HasBar) -> None:
        """Show the progress of the function."""
        if self._drawn is None:
            if time.monotonic() - self._begun < SECONDS_UNTIL_SHOWN:
                return
            self._drawn = self._draw()
        drawn, task = self._drawn
        stage, n_done, n = progress.bar
        drawn.update(task, stage=stage, completed=n_done, total=n or None)

    def _draw(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[stage]}", markup=False),
        )
        drawn = Progress(*columns, console=Console(stderr=True), transient=True)
        drawn.start()
        return drawn, drawn.add_task(self._name, total=None, stage="")

    def close(self) -> None:
        """Remove the bar."""
        if self._drawn is not None:
            self._drawn[0].stop()
