"""Temporary directories that only their owner can enter, for what libraries write on the way.

A directory is locked as long as its process lives. So what a killed process left behind is recognized, and removed by
the next process that makes a directory in the same place.
"""

import contextlib
import multiprocessing.util
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privacy_assets.storage.durable_files import locked
from privacy_assets.storage.private_directories import closed_umask, make_private_directory

PREFIX = "privacy_assets-"
DIRECTORY = "temporary"
RESERVED = ("memory", "system", "temp")
"""Names of databases that DuckDB itself has."""
VARIABLES = ("TMPDIR", "TEMP", "TMP", "SQLITE_TMPDIR", "JOBLIB_TEMP_FOLDER")
"""Where libraries and child processes look for the directory of temporary files."""


@contextlib.contextmanager
def temporary_directory(parent: Path) -> Iterator[Path]:
    """Make a directory, and remove it at the end, as well as those of processes that were killed."""
    for abandoned in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if abandoned.lstat().st_uid == os.geteuid():
                with locked(abandoned, wait=False, make=False) as is_abandoned:
                    if is_abandoned:
                        shutil.rmtree(abandoned, ignore_errors=True)
    with contextlib.ExitStack() as stack:
        made = None
        while made is None:
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            # Another process may have taken it for an abandoned one before it was locked.
            with contextlib.suppress(FileNotFoundError):
                made = path if stack.enter_context(locked(path, wait=False, make=False)) and path.exists() else None
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def private_process(private_path: Path) -> Iterator[None]:
    """Let the whole process write temporary files below a private directory, and all files for their owner only.

    A crash writes no core file, which would have the memory of the process. All of it is restored at the end.
    """
    parent = private_path / DIRECTORY
    make_private_directory(parent)
    with temporary_directory(parent) as directory, closed_umask(), _no_core_files(), _temporary_files_in(directory):
        yield


@contextlib.contextmanager
def duckdb_connection(database: str | None = None) -> Iterator[Any]:
    """Connect DuckDB, which otherwise writes what does not fit into memory beside the database, or in ``.tmp``.

    A database is a file, which can only be read. It is attached, because all connections of a process that open one
    file must have the same settings, and the connections of others have theirs.
    """
    import duckdb

    above = Path(tempfile.gettempdir())
    is_private = above.name.startswith(PREFIX)
    with (
        contextlib.nullcontext(above) if is_private else temporary_directory(above) as directory,
        duckdb.connect(config={"temp_directory": str(directory)}) as connection,
    ):
        if database is not None:
            stem = Path(database).stem
            name = '"' + ("the_file" if stem in RESERVED else stem).replace('"', '""') + '"'
            path = "'" + database.replace("'", "''") + "'"
            connection.execute(f"ATTACH {path} AS {name} (READ_ONLY)")
            connection.execute(f"USE {name}")
        yield connection


@contextlib.contextmanager
def _temporary_files_in(directory: Path) -> Iterator[None]:
    with contextlib.suppress(OSError):
        # It is kept until the process ends, and has sockets, whose paths must be short, and no content.
        multiprocessing.util.get_temp_dir()
    before, variables = tempfile.tempdir, {name: os.environ.get(name) for name in VARIABLES}
    tempfile.tempdir = str(directory)
    os.environ.update(dict.fromkeys(VARIABLES, str(directory)))
    try:
        yield
    finally:
        tempfile.tempdir = before
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _no_core_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # The step may have lowered the hard limit.
            resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
