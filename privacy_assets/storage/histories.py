"""Histories: private files with one line of JSON per entry, which survive wiped Dagster events."""

import fcntl
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from privacy_assets.errors import InvalidSettingError
from privacy_assets.storage.durable_files import PRIVATE_FILE_MODE, make_private_directory

T = TypeVar("T")


def add_to_history(path: Path, entries: Sequence[Mapping[str, Any]], what: str, undone: str) -> None:
    """Add entries to a history; ``what`` and ``undone``, the consequence of a failure, are for the message."""
    if path.exists() and not path.is_file():
        raise InvalidSettingError(
            f"{str(path)!r} is not a file, so {what} could not be added to the history in it. {undone} Move it away."
        )
    make_private_directory(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, PRIVATE_FILE_MODE)
    with os.fdopen(descriptor, "w") as file:
        # Long text is written in pieces, between which another process must not write.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Each entry begins a new line, even if an interrupted process left a partial one.
        file.write("".join(f"\n{json.dumps(entry)}" for entry in entries))
        file.flush()
        os.fsync(descriptor)


def read_history(path: Path, read: Callable[[Any], T]) -> list[T | None]:
    """Return the result of ``read`` for each entry of a history; None for each damaged line, or for a damaged file."""
    if not path.exists():
        return []
    if not path.is_file():
        return [None]  # Reading a pipe would never end.
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return [None]
    return [_entry(line, read) for line in lines if line]


def _entry(line: bytes, read: Callable[[Any], T]) -> T | None:
    try:
        return read(json.loads(line))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
