"""Files received from others: opened only if they are regular files, and read only up to the expected size.

A received directory may contain a link out of it, a pipe that never ends, a file that grew, or one that unpacks to
terabytes or ends the process of its reader. None of these may block, fill or end the process that checks the directory.
"""

import contextlib
import errno
import hashlib
import json
import os
import pickle
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

BLOCK_BYTES = 1 << 20
MOST_CPU_SECONDS = 3_600
BYTES_OF_LIBRARIES = 2**29
"""Libraries that are loaded late, and their threads."""
ENVIRONMENT_OF_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1") | {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
}
"""Threads and pools reserve memory that they do not use."""
STARTED = b"\0"
"""Precedes the answer; a byte that JSON never has."""
EXIT_OUT_OF_MEMORY = 3


class NotRegularError(FileNotFoundError):
    """The path is a link, a directory, a pipe or a device instead of a file."""


class TooLargeError(OSError):
    """The file has more bytes than it may have."""


class NoAnswerError(Exception):
    """The process of its own did not start, or ended without an answer."""


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading, without following a link or waiting for a pipe.

    Raises NotRegularError for anything else, and OSError if the file does not exist or cannot be read.
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
    """Return the content of a regular file; raise TooLargeError if it has more bytes, OSError as `open_regular`."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        # A file can grow, and reading this many bytes reserves that much memory at once, even for a small file.
        data = file.read(size + 1) if size <= max_bytes else b""
    if max(size, len(data)) > max_bytes:
        raise TooLargeError(errno.EFBIG, "larger than expected")
    return data


def in_limited_process(function: str, asked: Any, max_bytes: int) -> Any:
    """Call a function, given by module and name, in a process with limited memory and time that leaves no core behind.

    The argument must be picklable, the result JSON values. The memory is in addition to what libraries need. macOS
    ignores this limit. Raises NoAnswerError if the process ended in any other way, with the reason.
    """
    module, _, name = function.rpartition(".")
    # The process runs this copy of the package, wherever Python would find one, and finds no other module beside it.
    # Without -P, a module in the current directory, which may be the received one, would be imported.
    package = str(Path(__file__).parents[1] / "__init__.py")
    code = (
        "import importlib.util, sys; "
        f"spec = importlib.util.spec_from_file_location('privacy_assets', {package!a}); "
        "sys.modules['privacy_assets'] = importlib.util.module_from_spec(spec); "
        "spec.loader.exec_module(sys.modules['privacy_assets']); "
        f"from privacy_assets.release.received_files import answer; from {module} import {name}; answer({name})"
    )
    asked_for = pickle.dumps((BYTES_OF_LIBRARIES + max_bytes, MOST_CPU_SECONDS, asked))
    command = [sys.executable or "", "-P", "-c", code]
    try:
        run = subprocess.run(  # noqa: S603 - this interpreter, with code of this package
            command, input=asked_for, capture_output=True, env=os.environ | ENVIRONMENT_OF_ONE_THREAD, check=False
        )
    except OSError as error:
        raise NoAnswerError(_not_started(type(error).__name__)) from None
    ended = f"signal {-run.returncode}" if run.returncode < 0 else f"exit code {run.returncode}"
    _, started, answered = run.stdout.partition(STARTED)
    if not started:
        raise NoAnswerError(_not_started(ended))
    if run.returncode == 0:
        with contextlib.suppress(ValueError):
            return json.loads(answered)
    if run.returncode < 0 or run.returncode == EXIT_OUT_OF_MEMORY:
        limits = f"{max_bytes / 2**20:,.0f} MiB and one hour"
        raise NoAnswerError(
            f"it cannot be read within the limits of this verification, {limits} ({ended}). If you trust its sender, "
            "allow more: max_bytes, or --max-gib"
        )
    raise NoAnswerError(f"it was not verified: the process that reads it ended without an answer ({ended})")


def _not_started(ended: str) -> str:
    return (
        f"it was not verified: the process that reads it could not start ({ended}). Its Python must find the libraries "
        "of privacy_assets without changes of sys.path"
    )


def answer(function: Callable[[Any], Any]) -> None:
    """Limit this process, call the function with what standard input has, and write its result."""
    n_bytes, seconds, asked = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that started this
    sys.stdout.flush()  # What libraries printed must come before.
    sys.stdout.buffer.write(STARTED)
    sys.stdout.buffer.flush()
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_CPU, seconds)
    if sys.platform == "linux":
        n_pages = int(Path("/proc/self/statm").read_text().split()[0])
        _limit(resource.RLIMIT_AS, n_pages * resource.getpagesize() + n_bytes)
    try:
        sys.stdout.write(json.dumps(function(asked)))
    except MemoryError:
        sys.exit(EXIT_OUT_OF_MEMORY)


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


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

    Raises ValueError if the bytes are not UTF-8, not JSON or not an object, or have a repeated key or a number that is
    not finite, and RecursionError if they are nested too deeply.
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
