"""The guard: if an asset fails, no cell of a table reaches an event, a log or the screen.

An exception's text, its cause, a printed frame and a warning can all contain cells. So every body runs with its output
redirected to a private file, and every exception leaves as a `dagster.Failure` with the kind of error, the place, and
the message if the error is one of this package. The full traceback goes to a private file.

No part of an exception object is trusted: its class, its attributes and its text can be foreign code. The replacement
is made after the exception was caught, outside of every `except`, where Python cannot attach the original again. If
that fails, a constant message is used.
"""

import contextlib
import errno
import functools
import gc
import logging
import os
import traceback
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TypeVar, cast

import dagster as dg

from privacy_assets.columns.safe_names import class_name
from privacy_assets.disclosure.text_shapes import shape_of
from privacy_assets.errors import PrivacyAssetsError
from privacy_assets.kernels.compilation_progress import reported_to
from privacy_assets.orchestration.dagster_internals import DagsterExecutionInterruptedError, nothing_attached_to_step
from privacy_assets.orchestration.private.hidden_output import HiddenOutput, say_openly
from privacy_assets.orchestration.private.recorded import keyed_result
from privacy_assets.own_code import MadeHere, is_own_class, is_own_frame, is_trusted_frame
from privacy_assets.storage.memory import memory_of_the_system

INTERRUPTS = (KeyboardInterrupt, GeneratorExit, DagsterExecutionInterruptedError)
"""Exceptions that stop a run from outside; they pass, without their text and context."""
ADVICE, REFUSAL_PAGE = "advice", "refusal_page"
"""Keys in the metadata of a failed check that the last line of its run repeats."""
WITHHELD = "The text of this error is withheld here, because it may contain cells of the table."

T = TypeVar("T")


class ValueFreeFailure(MadeHere, dg.Failure):
    """A failure raised by this package: its description and metadata contain no cell."""


class ReleaseRefused(ValueFreeFailure):
    """A refusal of a release by the gate; description and metadata contain the verdicts."""


class ReleaseWaits(ValueFreeFailure):
    """Nothing was published, because people are still to decide; description and metadata contain the verdicts."""


def guarded(body: Callable[..., Generator[Any, None, None]]) -> Callable[..., Iterator[Any]]:
    """Guard the generator body of an asset or asset check.

    The first argument must be the Dagster context of a step with the resource ``private_tables``.
    """

    @functools.wraps(body)
    def wrapper(context: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        private_path: Path = context.resources.private_tables.base_path
        what = context.op_execution_context.op_handle.name
        events = body(context, *args, **kwargs)
        refused: list[str] = []

        def keyed(digest: str) -> str:
            return str(context.resources.private_tables.keyed(digest))

        def say_compiling(level: int, line: str) -> None:
            log_openly(context, line, level)

        try:
            while True:
                with nothing_attached_to_step(context), reported_to(say_compiling):
                    event = call_guarded(lambda: keyed_result(next(events, None), keyed), private_path, what)
                if event is None:
                    return
                if isinstance(event, dg.AssetCheckResult) and not event.passed:
                    refused += [] if event.severity == dg.AssetCheckSeverity.WARN else [_in_one_line(event)]
                yield event
        except GeneratorExit:
            # Dagster stopped early; the body's objects are released while output is hidden.
            call_guarded(events.close, private_path, what)
            raise
        finally:
            shape_of.cache_clear()
            # Dagster then prints its traceback, which contains only the names of the checks.
            if refused:
                log_openly(context, " ".join(refused), logging.ERROR)

    return wrapper


def _in_one_line(failed: dg.AssetCheckResult) -> str:
    """Print which check stops the run, what it found, what to do, and where the refusal page is."""
    said = [f"REFUSED by {failed.check_name}: {(failed.description or 'no reason was given').rstrip('.')}."]
    for key, word in ((ADVICE, "Advice: "), (REFUSAL_PAGE, "All figures: ")):
        value = failed.metadata.get(key)
        said += [] if value is None else [f"{word}{value.value}"]
    return " ".join(said)


def call_guarded(call: Callable[[], T], private_path: Path, what: str) -> T:
    """Call a function so that nothing it prints, logs, warns or raises can show a cell.

    Parameters
    ----------
    call : callable
        Function without arguments; its result is returned.
    private_path : Path
        Private directory for the tracebacks and the output.
    what : str
        The step or asset, for the message.

    Raises
    ------
    ValueFreeFailure
        If the call raises anything; a `ValueFreeFailure` of its own passes unchanged.
    """
    # Created first, before anything can fail.
    raised: BaseException = ValueFreeFailure(
        description=f"{what} failed. {WITHHELD} Its kind and place could not be determined either."
    )
    done = False
    result: Any = None
    unguarded: BaseException | None = None
    try:
        with HiddenOutput(private_path, what) as hidden, memory_of_the_system():
            result, caught = _outcome(call)
            if caught is None:
                done = True
            else:
                raised = _replacement(caught, hidden, what) or raised
                # Released while output is hidden, because objects in its frames may print when they are deleted.
                _clear_frames(caught)
                caught = None
                gc.collect()
    except BaseException as error:  # noqa: BLE001 - errors of the guard itself, such as too many open files
        unguarded = error
    if done and unguarded is None:
        return cast(T, result)
    if unguarded is not None:
        raised = _failure_of_the_guard(unguarded, what) or raised
        unguarded = None
    try:
        raise raised
    finally:
        # The caller may be handling an exception about the same table.
        raised.__context__ = None


def log_openly(context: Any, message: str, level: int = logging.INFO) -> None:
    """Log a message of this package, which contains no cell, from inside the guard."""
    say_openly(lambda: context.log.log(level, message))


def speaks(error: BaseException) -> bool:
    """Return whether the text of an error may be shown: only this package made, raised and handled it.

    A derived class can contain anything, and foreign code that passes an error on can change it.
    """
    if not issubclass(type(error), PrivacyAssetsError | ValueFreeFailure) or not is_own_class(type(error)):
        return False
    frames = _frames_of(error)
    return bool(
        frames
        and is_own_frame(frames[-1])
        and all(is_trusted_frame(frame) for frame in frames)
        and vars(error).get("was_made_here") is True
    )


def _outcome(call: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return call(), None
    except BaseException as error:  # noqa: BLE001 - only the guard must catch everything
        return None, error


def _replacement(error: BaseException, hidden: HiddenOutput, what: str) -> BaseException | None:
    """Return the failure that replaces an exception; None if the exception's own code prevented that."""
    with contextlib.suppress(BaseException):
        interrupt = next((each for each in INTERRUPTS if issubclass(type(error), each)), None)
        return interrupt() if interrupt is not None else _failure_of(error, hidden, what)
    return None


def _failure_of_the_guard(error: BaseException, what: str) -> BaseException | None:
    with contextlib.suppress(BaseException):
        return ValueFreeFailure(
            description=f"The output of {what} could not be kept private: {class_name(type(error))}: "
            f"{BaseException.__str__(error) if speaks(error) else _constant_text(error)} The step counts as failed."
        )
    return None


def _failure_of(error: BaseException, hidden: HiddenOutput, what: str) -> ValueFreeFailure:
    is_ours = speaks(error)
    if is_ours and isinstance(error, ValueFreeFailure):
        return type(error)(description=error.description, metadata=error.metadata, allow_retries=error.allow_retries)
    kind, place = class_name(type(error)), _place_of(error)
    path = hidden.add(_full_text(error))
    message = BaseException.__str__(error) if is_ours else _constant_text(error)
    return ValueFreeFailure(
        description=f"{what} failed with {kind} at {place}: {message} The full traceback is in {path or 'no file'}.",
        metadata={"error": kind, "place": place, "private_traceback": str(path or "could not be written")},
    )


def _constant_text(error: BaseException) -> str:
    if issubclass(type(error), OSError):
        number = OSError.__dict__["errno"].__get__(error)
        if type(number) is int and number in errno.errorcode:
            return f"{os.strerror(number)}."
    return "Memory ran out." if issubclass(type(error), MemoryError) else WITHHELD


def _full_text(error: BaseException) -> str:
    """Return the traceback for the private file, with the error texts if they can be read."""
    with contextlib.suppress(BaseException):
        return "".join(traceback.format_exception(error))
    with contextlib.suppress(BaseException):
        return "".join(["The text of the error cannot be read.\n", *traceback.format_tb(_traceback_of(error))])
    return "The traceback cannot be written.\n"


def _place_of(error: BaseException) -> str:
    """Return the last place in this package, because names of foreign files and functions can contain cells."""
    own = [each for each in traceback.walk_tb(_traceback_of(error)) if is_own_frame(each[0])]
    if not own:
        return "an unknown place"
    frame, line = own[-1]
    return f"{Path(frame.f_code.co_filename).name}:{line} in {frame.f_code.co_name}"


def _frames_of(error: BaseException) -> list[FrameType]:
    return [frame for frame, _ in traceback.walk_tb(_traceback_of(error))]


def _traceback_of(error: BaseException) -> TracebackType | None:
    """Return the traceback that Python keeps, even if a class overrides the attribute."""
    found: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(error)
    return found


def _clear_frames(error: BaseException) -> None:
    with contextlib.suppress(BaseException):
        traceback.clear_frames(_traceback_of(error))


@contextlib.contextmanager
def nothing_attached_to_input(context: dg.InputContext) -> Iterator[None]:
    """Drop the events and metadata that a user's IO manager attaches to loaded inputs."""
    try:
        yield
    finally:
        list(context.consume_events())
        context.consume_logged_metadata()
