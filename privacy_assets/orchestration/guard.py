"""The guard: whatever goes wrong in an asset, no cell of a table reaches an event, a log or the screen.

An exception's text, its cause, a printed frame and a warning can all hold cells. So every body runs with its output
turned into a private file, and every exception leaves as a `dagster.Failure` that says the kind of error, our own
message where it is one of ours, and where it happened. The full traceback goes to a private file.
"""

import contextlib
import functools
import io
import logging
import os
import sys
import traceback
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, TypeVar

import dagster as dg

from privacy_assets.tables.durable_files import make_private_directory, write_file
from privacy_assets.tables.errors import PrivacyAssetsError

FAILURES_DIRECTORY = "failures"
OWN_PACKAGE = "privacy_assets"

T = TypeVar("T")
_OPEN_STREAMS: list[tuple[TextIO, TextIO]] = []


class ReleaseRefused(dg.Failure):
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
    dagster.Failure
        In place of every exception of the call; a `ReleaseRefused` passes as it is.
    """
    output = io.StringIO()
    failure: dg.Failure
    try:
        with _output_kept(output):
            result = call()
        _keep(output.getvalue(), private_path, what)
        return result
    except ReleaseRefused as refused:
        failure = refused
    except Exception as error:  # noqa: BLE001 - the guard is the one place that must catch everything
        failure = _value_free_failure(error, output.getvalue(), private_path, what)
    # Raised outside the except block and as a new traceback: inside it, Python would attach the original exception as
    # context, and Dagster stores that.
    failure.__cause__ = failure.__context__ = None
    raise failure


def _value_free_failure(error: Exception, output: str, private_path: Path, what: str) -> dg.Failure:
    kept = _keep("".join(traceback.format_exception(error)) + output, private_path, what)
    kind = type(error).__name__
    place = _place_of(error)
    if isinstance(error, PrivacyAssetsError):
        message = str(error)
    elif isinstance(error, OSError) and error.errno is not None:
        message = f"{os.strerror(error.errno)}. Nothing was stored or released by this step."
    elif isinstance(error, MemoryError):
        message = "Memory ran out. Nothing was stored or released by this step."
    else:
        message = "The text of this error is withheld here, because it may hold cells of the table."
    return dg.Failure(
        description=f"{what} failed with {kind} at {place}: {message} The full traceback is in {kept or 'no file'}.",
        metadata={"error": kind, "place": place, "private_traceback": str(kept or "could not be written")},
    )


def _place_of(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if OWN_PACKAGE in Path(frame.filename).parts]
    if not frames:
        return "an unknown place"
    last = own[-1] if own else frames[-1]
    return f"{Path(last.filename).name}:{last.lineno} in {last.name}"


def _keep(text: str, private_path: Path, what: str) -> Path | None:
    if not text:
        return None
    directory = private_path / FAILURES_DIRECTORY
    path = directory / f"{what.replace('/', '__')}-{uuid.uuid4().hex[:12]}.txt"
    try:
        make_private_directory(directory)
        write_file(path, lambda file: file.write(text.encode(errors="replace")))
    except OSError:
        return None  # A full disk must not replace the failure that it caused.
    return path


@contextlib.contextmanager
def _output_kept(output: io.StringIO) -> Iterator[None]:
    root = logging.getLogger()
    handlers = root.handlers
    root.handlers = [logging.StreamHandler(output)]
    _OPEN_STREAMS.append((sys.stdout, sys.stderr))
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            yield
    finally:
        _OPEN_STREAMS.pop()
        root.handlers = handlers


def log_openly(context: Any, message: str) -> None:
    """Log a message of our own, which holds no cell, from inside the guard."""
    if not _OPEN_STREAMS:
        context.log.info(message)
        return
    stdout, stderr = _OPEN_STREAMS[-1]
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        context.log.info(message)
