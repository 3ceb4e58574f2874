"""One Spark Connect server on this machine for all tests of a process."""

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

REMOTE = "PRIVACY_ASSETS_SPARK_REMOTE"
"""Address of a server that runs already; its workers have this package, and its files are in SPARK_FILES."""
FILES = "PRIVACY_ASSETS_SPARK_FILES"


LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
"""


class Server(NamedTuple):
    """A session, and the directory of the server's local files and event log."""

    session: object
    files: Path


def write_settings(files):
    """Write the settings of a server that keeps its files and its log in one directory; return its environment."""
    for name in ("local", "events"):
        (files / name).mkdir(parents=True, exist_ok=True)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        # What runs for a minute is not worth the compiler of what runs for hours, nor several threads for garbage.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        # Plans for tables that are so small take longer to improve and to compile than to run.
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.local.dir": files / "local",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (files / "events").as_uri(),
        "spark.eventLog.buffer.kb": "1k",
        "spark.eventLog.compress": "false",
        # Uncompressed, so that a test can look for values in them.
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        "spark.broadcast.compress": "false",
        # With SPARK_TESTING, shuffle files would be removed at once.
        "spark.sql.shuffleDependency.fileCleanup.enabled": "false",
        "spark.sql.connect.shuffleDependency.fileCleanup.enabled": "false",
        # Spark's own retry: a task whose worker dies is run again.
        "spark.task.maxFailures": "4",
    }
    text = "".join(f"{name} {value}\n" for name, value in settings.items())
    (files / "spark-defaults.conf").write_text(text)
    (files / "log4j2.properties").write_text(LOGGING.format(path=files / "server.log"))
    # A server in tests takes any free port.
    environment = {"SPARK_CONF_DIR": str(files), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_TESTING": "1"}
    return environment | {"PYSPARK_PYTHON": sys.executable}


def read_uncompressed(path):
    """The bytes of a file; event logs are compressed, and not finished yet."""
    import zstandard

    content = path.read_bytes()
    if path.suffix != ".zstd":
        return content
    return zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True).read()


@cache
def spark_server():
    """Start a server with two workers; skip where Java or pyspark is missing."""
    pytest.importorskip("pyspark", reason="needs the extra `spark`")
    from pyspark.sql import SparkSession

    if REMOTE in os.environ:
        return Server(SparkSession.builder.remote(os.environ[REMOTE]).getOrCreate(), Path(os.environ[FILES]))
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    files = Path(tempfile.mkdtemp(prefix="spark"))
    atexit.register(shutil.rmtree, files, ignore_errors=True)
    os.environ |= write_settings(files)
    # Failures are retried by whole tasks: `local[2, 4]` is two workers and up to four attempts.
    return Server(SparkSession.builder.remote("local[2, 4]").getOrCreate(), files)
