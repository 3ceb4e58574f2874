"""The guard: whatever goes wrong in an asset, no cell of a table reaches an event, a log or the screen.

An exception's text, its cause, a printed frame and a warning can all hold cells. So every body runs with its output
turned into a private file, and every exception leaves as a `dagster.Failure` that says the kind of error, our own
message where it is one of ours, and where it happened. The full traceback goes to a private file.
"""

import contextlib
import functools
import logging
import os
import sys
import traceback
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, TypeVar

import dagster as dg
from dagster._core.errors import DagsterExecutionInterruptedError

from privacy_assets.tables.durable_files import PRIVATE_FILE_MODE, make_private_directory, make_private_root, write_file
from privacy_assets.tables.errors import PrivacyAssetsError

FAILURES_DIRECTORY = "failures"
OWN_PACKAGE = "privacy_assets"
INTERRUPTS = (KeyboardInterrupt, GeneratorExit, DagsterExecutionInterruptedError)
"""What stops a run from outside passes, without its text and without the exception that it met."""

T = TypeVar("T")


class ValueFreeFailure(dg.Failure):
    """A failure of our own: its description and metadata hold no cell."""


class ReleaseRefused(ValueFreeFailure):
    """The gate refused a release; description and metadata hold the verdicts."""


def guarded(body: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """Guard the generator body of an asset or asset check.

    The first argument must be the Dagster context of a step that has the resource ``private_tables``.
    """

    @functools.wraps(body)
    def wrapper(context: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        private_path: Path = context.resources.private_tables.base_path
        events = body(context, *args, **kwargs)
        while True:
            event = call_guarded(lambda: next(events, None), private_path, context.op_execution_context.op_handle.name)
            if event is None:
                return
            yield event

    return wrapper


def call_guarded(call: Callable[[], T], private_path: Path, what: str) -> T:
    """Call a function so that nothing it prints, logs, warns or raises can show a cell.

    Parameters
    ----------
    call : callable
        Takes nothing; its result is returned.
    private_path : Path
        Private directory that takes the tracebacks and the output.
    what : str
        The step or asset, for the message.

    Raises
    ------
    ValueFreeFailure
        In place of every exception of the call; one of our own passes as it is.
    """
    failure: dg.Failure | None = None
    interrupt: BaseException | None = None
    kept = _PrivateOutput(private_path, what)
    try:
        with kept:
            return call()
    except ValueFreeFailure as own:
        failure = own
    except INTERRUPTS as error:
        interrupt = type(error)()
    except BaseException as error:  # noqa: BLE001 - the guard is the one place that must catch everything
        failure = _value_free_failure(error, kept, what)
    # Raised outside the except block and as a new traceback: inside it, Python would attach the original exception as
    # context, and Dagster stores that.
    raised = interrupt or failure
    assert raised is not None  # noqa: S101 - one of the branches above has set it
    raised.__cause__ = raised.__context__ = None
    raise raised


def log_openly(context: Any, message: str) -> None:
    """Log a message of our own, which holds no cell, from inside the guard."""
    with _OUTPUTS[-1].opened() if _OUTPUTS else contextlib.nullcontext():
        context.log.info(message)


def _value_free_failure(error: BaseException, kept: "_PrivateOutput", what: str) -> dg.Failure:
    path = kept.add("".join(traceback.format_exception(error)))
    kind = type(error).__name__
    place = _place_of(error)
    if isinstance(error, PrivacyAssetsError):
        message = str(error)
    elif isinstance(error, OSError) and error.errno is not None:
        message = f"{os.strerror(error.errno)}."
    elif isinstance(error, MemoryError):
        message = "Memory ran out."
    else:
        message = "The text of this error is withheld here, because it may hold cells of the table."
    return ValueFreeFailure(
        description=f"{what} failed with {kind} at {place}: {message} The full traceback is in {path or 'no file'}.",
        metadata={"error": kind, "place": place, "private_traceback": str(path or "could not be written")},
    )


def _place_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if OWN_PACKAGE in Path(frame.filename).parts]
    if not frames:
        return "an unknown place"
    last = own[-1] if own else frames[-1]
    return f"{Path(last.filename).name}:{last.lineno} in {last.name}"


class _PrivateOutput:
    """Take everything that a block prints and logs, at Python's level and below it, into a private file."""

    def __init__(self, private_path: Path, what: str) -> None:
        self.path: Path | None = private_path / FAILURES_DIRECTORY / f"{what.replace('/', '__')}-{uuid.uuid4().hex}.txt"

    def __enter__(self) -> None:
        self._target = self._open()
        self._text = os.fdopen(os.dup(self._target), "w", buffering=1, errors="replace")
        self._shown = (sys.stdout, sys.stderr)
        self._handlers = {logger: logger.handlers for logger in _loggers_with_handlers()}
        self._descriptors = [_duplicate(descriptor) for descriptor in (1, 2)]
        self._hide()
        _OUTPUTS.append(self)

    def __exit__(self, *_: object) -> None:
        _OUTPUTS.pop()
        self._show()
        for saved in self._descriptors:
            if saved is not None:
                os.close(saved)
        self._text.close()
        os.close(self._target)
        if self.path is not None and self.path.stat().st_size == 0:
            self.path.unlink()

    def add(self, text: str) -> Path | None:
        """Add to the file after the block; return its path, or None if it could not be written."""
        try:
            if self.path is not None and not self.path.exists():
                write_file(self.path, lambda file: file.write(text.encode(errors="replace")))
            elif self.path is not None:
                with self.path.open("a", errors="replace") as file:
                    file.write(text)
        except OSError:
            return None  # A full disk must not replace the failure that it caused.
        return self.path

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Show again for a moment what is printed and logged."""
        self._show()
        try:
            yield
        finally:
            self._hide()

    def _open(self) -> int:
        assert self.path is not None  # noqa: S101 - set in __init__
        try:
            make_private_root(self.path.parent.parent)  # Here first, whatever an asset writes there afterwards.
            make_private_directory(self.path.parent)
            return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, PRIVATE_FILE_MODE)
        except OSError:
            self.path = None
            return os.open(os.devnull, os.O_WRONLY)

    def _hide(self) -> None:
        _flush(sys.stdout, sys.stderr)
        sys.stdout = sys.stderr = self._text
        private_handler = logging.StreamHandler(self._text)
        for logger in self._handlers:
            logger.handlers = [private_handler]
        for descriptor, saved in zip((1, 2), self._descriptors, strict=True):
            if saved is not None:
                os.dup2(self._target, descriptor)

    def _show(self) -> None:
        _flush(sys.stdout, sys.stderr)
        sys.stdout, sys.stderr = self._shown
        for logger, handlers in self._handlers.items():
            logger.handlers = handlers
        for descriptor, saved in zip((1, 2), self._descriptors, strict=True):
            if saved is not None:
                os.dup2(saved, descriptor)


_OUTPUTS: list[_PrivateOutput] = []


def _loggers_with_handlers() -> list[logging.Logger]:
    """Return the loggers that write by themselves; Dagster's own among them, which writes to the event log."""
    named = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    return [logging.root, *(logger for logger in named if logger.handlers)]


def _duplicate(descriptor: int) -> int | None:
    try:
        return os.dup(descriptor)
    except OSError:
        return None  # A daemon may have closed it; then nothing can be printed to it either.


def _flush(*streams: TextIO) -> None:
    for stream in streams:
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
