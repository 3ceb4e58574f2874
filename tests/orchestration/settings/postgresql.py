"""A PostgreSQL server of our own for a test: in a directory that goes with it, on a socket in there."""

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

ACCOUNT = "nobody"
"""Who runs the server where the tests run as root, which PostgreSQL refuses to be started by."""


def _program(name):
    found = shutil.which(name) or next(iter(sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))), None)
    if found is None:
        pytest.skip(f"needs a PostgreSQL server; there is no {name} (Debian: postgresql)")
    return str(found)


def require_postgresql():
    """Skip where there is no server or no client."""
    pytest.importorskip("sqlalchemy", reason="needs the extra `sql`")
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        pytest.skip(f"needs psycopg and libpq: {error}")
    _program("initdb")


@contextmanager
def running_server():
    """Start a server; gives the SQLAlchemy URL of its database."""
    import psycopg

    initdb, postgres = _program("initdb"), _program("postgres")
    directory = Path(tempfile.mkdtemp(prefix="postgresql-"))  # a socket's path must be short
    account = {}
    if os.geteuid() == 0:
        shutil.chown(directory, ACCOUNT)
        account = {"user": ACCOUNT, "extra_groups": []}
    data = directory / "data"
    options = ["-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    subprocess.run([initdb, "-D", str(data), *options], check=True, capture_output=True, cwd=directory, **account)
    command = [postgres, "-D", str(data), "-k", str(directory), "-c", "listen_addresses=", "-c", "fsync=off"]
    log = (directory / "log").open("w")
    server = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory, **account)
    try:
        for _ in range(200):
            try:
                psycopg.connect(f"host={directory} user=tester dbname=postgres").close()
                break
            except psycopg.OperationalError:
                assert server.poll() is None, (directory / "log").read_text()
                time.sleep(0.05)
        yield f"postgresql://tester@/postgres?host={directory}"
    finally:
        server.terminate()
        server.wait(timeout=30)
        log.close()
        shutil.rmtree(directory)
