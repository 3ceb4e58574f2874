"""No value and no column name reaches the log of a Spark server, its event log, or its local files; only codes do."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privacy_assets import anonymize, assess_mpuccs
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import EngineError
from tests.engine.tasks import Copies, Fails, Keeps
from tests.spark_server import spark_server

NUMBER = pa.schema([("number", pa.int64())])
PLACED = 736_455_464_192_837
"""A number that is placed on the server as it is, so that looking for numbers in its files is shown to find them."""
SECRETS = [918_273_645_000 + n for n in range(40)]
NAMES = ("SentinelName", "SentinelCost")


def files_of_server(earlier=frozenset()):
    """What lies in the files of the server now, by path, but for data of earlier tests."""
    held = {}
    for path in spark_server().files.rglob("*"):
        if path in earlier and path.is_relative_to(spark_server().files / "local"):
            continue
        try:
            held[path] = path.read_bytes()
        except OSError:
            # A folder, or a file that Spark removed meanwhile.
            continue
    return held


def as_bytes(number):
    return [str(number).encode(), number.to_bytes(8, "little"), number.to_bytes(8, "big"), np.float64(number).tobytes()]


@dataclass(frozen=True)
class WatchedEngine(SparkEngine):
    """Reads all files of the server after each job, while shuffle files and placed tables are there."""

    def collect(self, batches):
        made = super().collect(batches)
        for path, content in files_of_server(self.earlier).items():
            self.held.setdefault(path, set()).add(content)
        return made


@dataclass(frozen=True)
class FailingEngine(SparkEngine):
    """Sends a function that fails with all that it has."""

    def map(self, batches, function, schema):
        return super().map(batches, Fails(), schema)


@pytest.fixture(scope="module")
def watched():
    engine = WatchedEngine(session=spark_server().session, rows_per_task=150, tag="privacy_assets: watched")
    object.__setattr__(engine, "held", {})
    object.__setattr__(engine, "earlier", {*spark_server().files.rglob("*")})
    return engine


def sentinel_table(seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, 200),
            NAMES[0]: pd.Series([f"SentinelValue{n}" for n in rng.integers(0, 40, 200)], dtype=str),
            NAMES[1]: rng.choice(SECRETS, 200),
        }
    )


def test_files_and_logs_hold_codes_alone_while_a_server_works(watched):
    original, synthetic = sentinel_table(0), sentinel_table(1)
    assert assess_mpuccs(original, synthetic, n_threads=1, engine=watched).scores["total_identified"] > 0
    known = ["age", *NAMES]
    assert anonymize(original, quasi_identifiers=known, k=5, engine=watched).stats["n_classes"] > 1
    with watched.place({"number": np.full(100, PLACED)}) as batches:
        watched.collect(watched.map_reduce(batches, Copies(), NUMBER, "number", Keeps(), NUMBER))
    names = {path.name for path in watched.held}
    assert any(name.startswith("shuffle_") and name.endswith(".data") for name in names)
    assert "server.log" in names
    everything = b"".join(content for contents in watched.held.values() for content in contents)
    assert b"privacy_assets: watched" in everything
    assert any(written in everything for written in as_bytes(PLACED))
    assert b"Sentinel" not in everything
    assert not [number for number in SECRETS for written in as_bytes(number) if written in everything]


def test_the_log_of_a_failure_quotes_codes_alone():
    engine = FailingEngine(session=spark_server().session, rows_per_task=300)
    earlier = {*spark_server().files.rglob("*")}
    with pytest.raises(EngineError):
        assess_mpuccs(sentinel_table(0), sentinel_table(1), n_threads=1, engine=engine)
    everything = b"".join(files_of_server(earlier).values())
    assert b"cannot work on {'row'" in everything
    assert b"Sentinel" not in everything
    assert not [number for number in SECRETS for written in as_bytes(number) if written in everything]
