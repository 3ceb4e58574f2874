"""Atomic and durable files, which only their owner can read until they are published."""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from privacy_assets.errors import InvalidSettingError
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
    "kept_key",
    "locked",
    "make_private_directory",
    "make_private_root",
    "remove_leftovers",
    "replace_file",
    "sync_directory",
    "temporary_sibling",
    "write_directory",
    "write_file",
    "write_json",
    "write_mark",
]

PRIVATE_FILE_MODE = 0o600
KEY_BYTES = 32


def make_private_root(path: Path) -> None:
    """Make a directory that only its owner can read and that git ignores.

    An existing directory is closed to others with all its content.

    Raises
    ------
    InvalidSettingError
        If the directory is not only for private tables, or its permissions cannot be restricted.
    """
    require_private_root(path)
    if path.exists():
        close_tree_to_others(path.resolve())
    make_private_directory(path)
    if not is_marked(path):
        write_mark(path / MARK_FILE, MARK)


def write_mark(path: Path, content: bytes, mode: int = PRIVATE_FILE_MODE) -> None:
    """Atomically make the file that marks a directory, because a partial mark would not be recognized."""
    with locked(path.parent):
        replace_file(path, content, mode)


def replace_file(path: Path, content: bytes, mode: int = PRIVATE_FILE_MODE) -> None:
    """Replace a file as a whole, and return after it has reached the disk; only one process at a time may do so."""
    remove_leftovers(path)
    temporary = path.parent / f"{TEMPORARY_MARK}{path.name}-{uuid.uuid4().hex}"
    try:
        write_file(temporary, lambda file: file.write(content), mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def write_file(path: Path, write: Callable[[BinaryIO], Any], mode: int = PRIVATE_FILE_MODE) -> None:
    """Make a new file with ``write``, and return after its bytes have reached the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)  # The umask may have removed bits.
        write(file)
        file.flush()
        os.fsync(file.fileno())


def write_json(path: Path, value: Any, mode: int = PRIVATE_FILE_MODE) -> None:
    """Write a JSON file for people and programs; NaN and infinity are refused with ValueError."""
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    write_file(path, lambda file: file.write(text.encode()), mode)


def temporary_sibling(path: Path) -> Path:
    """Return a new private directory next to ``path``, which is renamed to ``path`` when it is complete."""
    make_private_directory(path.parent)
    temporary = path.parent / f"{TEMPORARY_MARK}{path.name}-{uuid.uuid4().hex}"
    temporary.mkdir(mode=PRIVATE_DIRECTORY_MODE)
    temporary.chmod(PRIVATE_DIRECTORY_MODE)  # The umask may have removed bits.
    return temporary


def write_directory(path: Path, files: Mapping[str, Callable[[BinaryIO], Any]]) -> None:
    """Replace ``path`` by a directory of exactly these files, or leave it unchanged.

    A process that dies between the two renames leaves no ``path``: readers then find nothing, never a mixture. Its
    remains are removed the next time the directory is written.
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
def locked(path: Path, *, wait: bool = True, make: bool = True) -> Iterator[bool]:
    """Lock a directory against other users of `locked`, or report that it is locked; the lock ends with the process.

    Any other path is a file, made if it is missing unless not ``make``: network file systems do not lock directories.

    Yields whether the lock was obtained, which is always true with ``wait``.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT if make and not path.is_dir() else os.O_RDONLY, PRIVATE_FILE_MODE)
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
    """Return after the names in a directory have reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def kept_key(path: Path) -> bytes:
    """Return the random key in a private file, which the first call makes.

    Raises
    ------
    InvalidSettingError
        If the file is no key.
    """
    make_private_directory(path.parent)
    with locked(path.parent):
        if not path.exists():
            replace_file(path, secrets.token_bytes(KEY_BYTES))
        if path.is_symlink() or not path.is_file() or path.stat().st_size != KEY_BYTES:
            raise InvalidSettingError(
                f"{str(path)!r} is not the key that was made there. Expected a file of {KEY_BYTES} bytes. Restore it "
                "from a backup; or remove it, and everything that depends on it counts as changed."
            )
        path.chmod(PRIVATE_FILE_MODE)
        return path.read_bytes()
