"""A directory that this process and the workers see, because a server keeps what is sent to it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from privacy_assets.errors import EngineError
from privacy_assets.storage.durable_files import PRIVATE_DIRECTORY_MODE, locked, write_file

PATH = re.compile(r"(file://)?/[^:]*")
PREFIX = "privacy_assets-staged-"


@contextmanager
def staging_directory(staging: str) -> Iterator[Path]:
    """Make a directory that only its owner can read, for this process and the workers, and remove it at the end.

    What killed processes left behind is removed first: their locks ended with them.
    """
    root, name, problem = Path(staging.removeprefix("file://")), f"{PREFIX}{uuid4().hex}", ""
    with ExitStack() as stack:
        try:
            # Neither links nor what other users made.
            own = [
                path for path in root.glob(f"{PREFIX}*") if not path.is_symlink() and path.stat().st_uid == os.getuid()
            ]
            for path in own:
                with suppress(OSError), locked(path / "lock", wait=False) as is_left:
                    if is_left:
                        shutil.rmtree(path, ignore_errors=True)
            # It gets the prefix once it is locked, so that nobody takes it for a leftover.
            new = root / f".new-{name}"
            new.mkdir(PRIVATE_DIRECTORY_MODE)
            stack.callback(_remove, new)
            stack.callback(_remove, root / name)
            stack.enter_context(locked(new / "lock"))
            new.rename(root / name)
        except OSError as error:
            problem = _reason(error)
        _refuse(problem)
        yield root / name


@contextmanager
def staged(staging: str, cells: Iterable[pa.Table], schema: pa.Schema) -> Iterator[str]:
    """Write cells into a file of a `staging_directory`, and yield its path for the workers."""

    def write(file: BinaryIO) -> None:
        # Spark divides a file by row groups, one for each cell; statistics would repeat the cells.
        with pq.ParquetWriter(file, schema, compression="none", use_dictionary=False, write_statistics=False) as writer:
            for cell in cells:
                writer.write_table(cell)

    problem = ""
    with staging_directory(staging) as directory:
        try:
            write_file(directory / "codes.parquet", write)
        except OSError as error:
            problem = _reason(error)
        _refuse(problem)
        yield f"{staging.rstrip('/')}/{directory.name}/codes.parquet"


def _remove(path: Path) -> None:
    """Remove a directory into which workers may still write: not any more, once it has another name."""
    gone = path.with_name(f"{path.name}-gone")
    with suppress(OSError):
        path.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _refuse(problem: str) -> None:
    """Refuse the directory if there is a problem; outside of the handler, so that the error has no context."""
    if problem:
        raise EngineError(
            f"This process cannot write to the staging directory: {problem}. Nothing was read or sent. Expected an "
            "existing directory with enough space on a file system with locks."
        )
