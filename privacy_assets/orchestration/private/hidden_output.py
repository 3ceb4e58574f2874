"""Redirection of everything that guarded steps print, log and write on the way to private files, also below Python.

Standard output and standard error belong to the whole process. So they are redirected when the first step begins and
restored when the last one has ended, in whatever order steps of several threads begin and end. Meanwhile each thread
prints to the file of its own step. A thread without a step, and code that prints below Python, print to the file of the
step that began last. Log records of all loggers and handlers, including new ones, go the same way. This includes
Dagster's own handlers, which write to the event log. The umask, the directory of temporary files and the size of core
files belong to the whole process as well, and change and return with its output.
"""

import contextlib
import ctypes
import errno
import io
import logging
import os
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from privacy_assets.orchestration.dagster_internals import LOG_RECORD_EVENT_ATTR
from privacy_assets.storage.durable_files import PRIVATE_FILE_MODE, make_private_directory, make_private_root
from privacy_assets.storage.temporary_directories import private_process

FAILURES_DIRECTORY = "failures"
DESCRIPTORS = (1, 2)
PRIVATE_FORMAT = logging.Formatter("%(levelname)s %(name)s: %(message)s")


class HiddenOutput:
    """A block whose output goes to a private file. Blocks may be nested and may overlap in threads."""

    def __init__(self, private_path: Path, what: str) -> None:
        self.path = private_path / FAILURES_DIRECTORY / f"{what.replace('/', '__')}-{uuid.uuid4().hex}.txt"

    def __enter__(self) -> "HiddenOutput":
        self.descriptor = self._open()
        try:
            self.text = open(self.descriptor, "w", buffering=1, errors="replace", closefd=False)
            _GATE.enter(self)
        except BaseException:
            os.close(self.descriptor)
            raise
        _HERE.blocks.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            _HERE.blocks.remove(self)
            _GATE.leave(self)
        finally:
            with contextlib.suppress(OSError, ValueError):
                self.text.close()  # A full disk must not hide the failure that it caused.
            os.close(self.descriptor)
            with contextlib.suppress(OSError):
                if self.path.stat().st_size == 0:
                    self.path.unlink()

    def add(self, text: str) -> Path | None:
        """Add to the file; return its path, or None if it could not be written."""
        try:
            self.text.flush()
            _write_all(self.descriptor, text.encode(errors="replace"))
        except (OSError, ValueError):
            return None
        return self.path

    def _open(self) -> int:
        make_private_root(self.path.parent.parent)  # Created before an asset writes there.
        make_private_directory(self.path.parent)
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, PRIVATE_FILE_MODE)


def say_openly(say: Callable[[], object]) -> None:
    """Let the log records of a call in this thread through; its printed output stays hidden."""
    _HERE.speaks = True
    try:
        say()
    finally:
        _HERE.speaks = False


def print_openly(line: str) -> None:
    """Print a line of this package, which contains no cell, also while a block is active."""
    _GATE.show(sys.stdout, f"{line}\n")


class _Gate:
    """The output of the process: open, or closed while a block is active."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.active: list[HiddenOutput] = []
        self.shown: tuple[Any, ...] = ()
        self.saved: dict[int, int] = {}
        self.process = contextlib.ExitStack()
        self.handle = logging.Handler.handle
        self.call_handlers = logging.Logger.callHandlers

    def enter(self, block: HiddenOutput) -> None:
        with self.lock:
            if not self.active:
                self._close(block.path.parents[1])
            try:
                self._send_to(block)
            except BaseException:
                if not self.active:
                    self._open()
                raise
            self.active.append(block)

    def leave(self, block: HiddenOutput) -> None:
        with self.lock:
            _flush(sys.stdout, sys.stderr, *self.shown)
            self.active.remove(block)
            if self.active:
                self._send_to(self.active[-1])
            else:
                self._open()

    def _close(self, private_path: Path) -> None:
        self.shown = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
        _flush(*self.shown)
        self.saved = {}
        try:
            self.process.enter_context(private_process(private_path))
            for descriptor in DESCRIPTORS:
                saved = _duplicate(descriptor)
                if saved is not None:
                    self.saved[descriptor] = saved
        except BaseException:
            self._forget_saved()
            self.process.close()
            raise
        sys.stdout, sys.stderr = (_Router(self.shown[0], 1), _Router(self.shown[1], 2))
        self.handle, self.call_handlers = logging.Handler.handle, logging.Logger.callHandlers
        logging.Handler.handle = _handle  # type: ignore[method-assign, assignment]
        logging.Logger.callHandlers = _call_handlers  # type: ignore[method-assign, assignment]

    def _open(self) -> None:
        try:
            for descriptor, saved in self.saved.items():
                os.dup2(saved, descriptor)
        finally:
            sys.stdout, sys.stderr = self.shown[:2]
            logging.Handler.handle = self.handle  # type: ignore[method-assign]
            logging.Logger.callHandlers = self.call_handlers  # type: ignore[method-assign]
            self._forget_saved()
            self.process.close()

    def _send_to(self, block: HiddenOutput) -> None:
        for descriptor in self.saved:
            os.dup2(block.descriptor, descriptor)

    def _forget_saved(self) -> None:
        for saved in self.saved.values():
            os.close(saved)
        self.saved = {}

    def show(self, stream: Any, text: str) -> None:
        """Write to the original target of a redirected stream."""
        while isinstance(stream, _Router):
            stream = stream.shown
        saved = self.saved.get(_descriptor_of(stream))
        if saved is None:
            stream.write(text)
            stream.flush()
        else:
            _write_all(saved, text.encode(errors="replace"))


class _Here(threading.local):
    """State of a thread: its blocks, innermost last, and whether it logs a message of this package."""

    def __init__(self) -> None:
        self.blocks: list[HiddenOutput] = []
        self.speaks = False
        self.last_record: logging.LogRecord | None = None


class _Router(io.TextIOBase):
    """Standard output or error while a block is active; afterwards it writes to the original target."""

    def __init__(self, shown: Any, descriptor: int) -> None:
        super().__init__()
        self.shown, self.number = shown, descriptor

    def __getattr__(self, name: str) -> Any:
        # Other attributes of a text file, such as its byte buffer.
        return getattr(self._target(), name)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "replace"

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Stay open, because a closed stream cannot be restored."""

    def fileno(self) -> int:
        return self.number

    def write(self, text: str) -> int:
        try:
            return int(self._target().write(text))
        except ValueError:
            return len(text)  # Another thread has ended the block.

    def flush(self) -> None:
        _flush(self._target())

    def _target(self) -> Any:
        block = _private_block()
        return self.shown if block is None else block.text


_GATE = _Gate()
_HERE = _Here()


def _private_block() -> HiddenOutput | None:
    """Return the block for the output of this thread; None if no block of any thread is active."""
    if _HERE.blocks:
        return _HERE.blocks[-1]
    active = _GATE.active[-1:]
    return active[0] if active else None


def _call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
    """Replace `logging.Logger.callHandlers` while a block is active, because a handler can override `handle`."""
    own = [each for each in _handlers_of(logger) if type(each).handle is not _handle]
    if not own or _private_block() is None or _HERE.speaks or _is_event_of_others(record):
        _GATE.call_handlers(logger, record)
        return
    for handler in _handlers_of(logger):
        if record.levelno >= handler.level:
            _handle(handler, record)


def _handlers_of(logger: logging.Logger) -> Iterator[logging.Handler]:
    current: logging.Logger | None = logger
    while current is not None:
        yield from current.handlers
        current = current.parent if current.propagate else None


def _is_event_of_others(record: logging.LogRecord) -> bool:
    """Whether a record is about one of Dagster's own events, in a thread in which no block is active."""
    return not _HERE.blocks and getattr(record, LOG_RECORD_EVENT_ATTR, None) is not None


def _handle(handler: logging.Handler, record: logging.LogRecord) -> Any:
    """Replace `logging.Handler.handle` while a block is active."""
    block = _private_block()
    if block is None:
        return _GATE.handle(handler, record)
    if _HERE.speaks or _is_event_of_others(record):
        return _handle_openly(handler, record)
    if record is not _HERE.last_record:  # Several handlers get the same record.
        _HERE.last_record = record
        with contextlib.suppress(Exception):
            block.text.write(f"{PRIVATE_FORMAT.format(record)}\n")
    return False


def _handle_openly(handler: logging.Handler, record: logging.LogRecord) -> Any:
    """Pass a record to a handler; a handler that prints uses the original output."""
    stream = getattr(handler, "stream", None)
    if not isinstance(stream, _Router) and _descriptor_of(stream) not in _GATE.saved:
        return _GATE.handle(handler, record)
    passed = handler.filter(record)
    if passed:
        with contextlib.suppress(Exception):  # Handlers also ignore errors of their format or disk.
            _GATE.show(stream, f"{handler.format(record)}\n")
    return passed


def _descriptor_of(stream: Any) -> int:
    try:
        return int(stream.fileno())
    except (AttributeError, OSError, ValueError, TypeError):
        return -1


def _duplicate(descriptor: int) -> int | None:
    try:
        return os.dup(descriptor)
    except OSError as error:
        if error.errno == errno.EBADF:
            return None  # A daemon may have closed the stream.
        raise


def _flush(*streams: Any) -> None:
    """Flush the buffers of streams and of the C library, which do not record who wrote to them."""
    for stream in streams:
        with contextlib.suppress(BaseException):  # Output must be restored regardless of the current stream.
            stream.flush()
    with contextlib.suppress(Exception):
        _c_library().fflush(None)


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
