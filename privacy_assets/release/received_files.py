"""Files received from others: opened only if they are regular files, and read only up to the expected size.

A received directory may contain a link out of it, a pipe that never ends, or a file that grew. None of these may block
the process that checks the directory, or fill its memory.
"""

import contextlib
import errno
import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

BLOCK_BYTES = 1 << 20


class NotRegularError(FileNotFoundError):
    """The path is a link, a directory, a pipe or a device instead of a file."""


class TooLargeError(OSError):
    """The file has more bytes than it may have."""


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading, without following a link or waiting for a pipe.

    Raises
    ------
    NotRegularError
        If the path is not a regular file.
    OSError
        If the file does not exist or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise NotRegularError(errno.ENOENT, "not a regular file") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(errno.ENOENT, "not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read_regular(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises
    ------
    TooLargeError
        If the file has more than `max_bytes`.
    OSError
        If the file cannot be read, or is not a regular file.
    """
    with open_regular(path) as file:
        # Reading this many bytes reserves that much memory at once, even for a small file.
        data = file.read(min(os.fstat(file.fileno()).st_size, max_bytes) + 1)
    if len(data) > max_bytes:
        raise TooLargeError(errno.EFBIG, "larger than expected")
    return data


class Unchecked:
    """A file that is read once, and keeps the bytes until they are compared with the expected ones.

    Arrow reads ahead in its own thread, even after it failed; nothing is read after `end`.
    """

    closed = False

    def __init__(self, file: BinaryIO, max_bytes: int) -> None:
        self._file, self._left, self._kept = file, max_bytes, bytearray()
        self._lock, self._is_ended = threading.Lock(), False

    def read(self, n_bytes: int) -> bytes:
        """Return the next block, and keep it."""
        with self._lock:
            block = b"" if self._is_ended else self._file.read(n_bytes)
            self._left -= len(block)
            if self._left < 0:
                raise TooLargeError(errno.EFBIG, "larger than expected")
            self._kept += block
        return block

    def end(self) -> None:
        """Stop reading, after waiting for a block that is being read."""
        with self._lock:
            self._is_ended = True

    def read_all(self) -> bytes:
        """Return the rest of the file."""
        return b"".join(iter(lambda: self.read(BLOCK_BYTES), b""))

    def begins_with(self, expected: bytes | memoryview) -> bool:
        """Return whether the kept bytes begin with the expected ones, and drop them."""
        with self._lock:
            with memoryview(self._kept) as kept:
                is_same = kept[: len(expected)] == expected
            del self._kept[: len(expected)]
        return is_same

    @property
    def is_checked(self) -> bool:
        """Whether nothing is left to compare."""
        return not self._kept


def is_as_recorded(file: BinaryIO, sha256: str, n_bytes: int) -> bool:
    """Return whether an open file has this size and SHA-256. A larger file is not read."""
    if os.fstat(file.fileno()).st_size != n_bytes:
        return False
    found, left = hashlib.sha256(), n_bytes
    file.seek(0)
    while left > 0:
        block = file.read(min(BLOCK_BYTES, left))
        if not block:
            return False
        found.update(block)
        left -= len(block)
    return found.hexdigest() == sha256


def parse_json_object(data: bytes) -> dict[str, Any]:
    """Read a JSON object that all readers understand in the same way.

    Raises
    ------
    ValueError
        If the bytes are not UTF-8, not JSON or not an object, or have a repeated key or a number that is not finite.
    RecursionError
        If the JSON is nested too deeply.
    """
    value = json.loads(
        data.decode("utf-8"), object_pairs_hook=_single_keys, parse_constant=_not_finite, parse_float=_finite
    )
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a key is repeated in an object")
    return read


def _not_finite(_: str) -> float:
    raise ValueError("a number is not finite")


def _finite(text: str) -> float:
    value = float(text)
    return _not_finite(text) if value in (float("inf"), float("-inf")) else value
