"""Files that are there as a whole or not at all, and that only their owner can read until they are published."""

import contextlib
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from privacy_assets.storage.private_directories import (
    MARK,
    MARK_FILE,
    PRIVATE_DIRECTORY_MODE,
    TEMPORARY_MARK,
    close_tree_to_others,
    is_marked,
    make_private_directory,
    require_private_root,
)

__all__ = [
    "PRIVATE_DIRECTORY_MODE",
    "PRIVATE_FILE_MODE",
    "TEMPORARY_MARK",
    "locked",
    "make_private_directory",
    "make_private_root",
    "remove_leftovers",
    "sync_directory",
    "temporary_sibling",
    "write_directory",
    "write_file",
    "write_json",
    "write_mark",
]

PRIVATE_FILE_MODE = 0o600


def make_private_root(path: Path) -> None:
    """Make a directory readable by its owner alone, and keep git from taking up what is in it.

    One that is there is closed to others with all that is in it.

    Raises
    ------
    InvalidSettingError
        If the directory is not for private tables alone, or its permissions cannot be restricted.
    """
    require_private_root(path)
    if path.exists():
        close_tree_to_others(path.resolve())
    make_private_directory(path)
    if not is_marked(path):
        write_mark(path / MARK_FILE, MARK)


def write_mark(path: Path, content: bytes, mode: int = PRIVATE_FILE_MODE) -> None:
    """Make a file that marks its directory, as a whole: one with half a mark would be taken for somebody else's."""
    with locked(path.parent):
        remove_leftovers(path)
        temporary = path.parent / f"{TEMPORARY_MARK}{path.name}-{uuid.uuid4().hex}"
        write_file(temporary, lambda file: file.write(content), mode)
        temporary.replace(path)


def write_file(path: Path, write: Callable[[BinaryIO], Any], mode: int = PRIVATE_FILE_MODE) -> None:
    """Make a new file with ``write``, and return when its bytes have reached the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)  # The process's umask may have taken bits away.
        write(file)
        file.flush()
        os.fsync(file.fileno())


def write_json(path: Path, value: Any, mode: int = PRIVATE_FILE_MODE) -> None:
    """Write a JSON file for people and programs; NaN and infinity are refused with ValueError."""
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    write_file(path, lambda file: file.write(text.encode()), mode)


def temporary_sibling(path: Path) -> Path:
    """Return a new private directory beside ``path`` that becomes ``path`` when everything is in it."""
    make_private_directory(path.parent)
    temporary = path.parent / f"{TEMPORARY_MARK}{path.name}-{uuid.uuid4().hex}"
    temporary.mkdir(mode=PRIVATE_DIRECTORY_MODE)
    temporary.chmod(PRIVATE_DIRECTORY_MODE)  # The process's umask may have taken bits away.
    return temporary


def write_directory(path: Path, files: Mapping[str, Callable[[BinaryIO], Any]]) -> None:
    """Make ``path`` a directory of exactly these files, or leave what was there.

    A process that dies between the two renames leaves no ``path``: readers then find nothing, never a mixture. What
    such a process left behind is removed the next time the directory is written.
    """
    make_private_directory(path.parent)
    with locked(path.parent):
        temporary = temporary_sibling(path)
        try:
            for name, write in files.items():
                write_file(temporary / name, write)
            sync_directory(temporary)
            if path.exists():
                path.rename(path.parent / f"{TEMPORARY_MARK}{path.name}-{uuid.uuid4().hex}")
            temporary.rename(path)
            sync_directory(path.parent)
        finally:
            remove_leftovers(path)


@contextlib.contextmanager
def locked(directory: Path, *, wait: bool = True) -> Iterator[bool]:
    """Keep others that use `locked` on a directory waiting, or find that one of them has it; it ends with the process.

    Yields whether the lock was obtained, which is always so with ``wait``.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        is_obtained = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            is_obtained = False
        yield is_obtained
    finally:
        os.close(descriptor)


def remove_leftovers(path: Path) -> None:
    """Remove the temporary siblings that earlier writers of ``path`` left behind."""
    for leftover in path.parent.glob(f"{TEMPORARY_MARK}{path.name}-*"):
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Return when the names in a directory have reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
