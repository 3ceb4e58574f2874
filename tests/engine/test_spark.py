"""Tasks on a real Spark Connect server find what the kernels find, and a failure quotes no code."""

import logging
import re
from contextlib import nullcontext
from dataclasses import replace
from weakref import WeakSet, ref

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from privacy_assets import anonymize, assess_mpuccs, measure_column_changes, synthesize
from privacy_assets.engine import connection
from privacy_assets.engine.protocol import Engine
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import EngineError, InvalidSettingError
from privacy_assets.mpucc.assess import assess_preprocessed
from privacy_assets.mpucc.preprocess import preprocess
from tests.engine.tasks import Copies, DiesOnce, Fails
from tests.mpucc.search_cases import agree, searches
from tests.spark_server import read_uncompressed, spark_server

NUMBER = pa.schema([("number", pa.int64())])
SENTINEL = 918_273_645


@pytest.fixture(scope="module")
def engine():
    return SparkEngine(session=spark_server().session, rows_per_task=50, tag="privacy_assets: a release")


@settings(max_examples=5, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(searches())
def test_tasks_on_a_server_find_what_the_kernels_find(engine, case):
    tables, arguments = case
    agree(engine, tables, arguments | {"max_size": min(arguments["max_size"], 2)})


def test_assessments_on_a_server_are_equal_and_leave_no_value_there(engine):
    rng = np.random.default_rng(4)
    original, synthetic = (
        pd.DataFrame(
            {
                "age": rng.integers(18, 90, 200),
                "name": pd.Series([f"Sentinel{n}" for n in rng.integers(0, 40, 200)], dtype=str),
            }
        )
        for _ in range(2)
    )
    expected, found = (assess_mpuccs(original, synthetic, n_threads=1, engine=each) for each in (None, engine))
    assert found.scores == expected.scores
    pd.testing.assert_frame_equal(found.details, expected.details)
    pd.testing.assert_frame_equal(found.tree, expected.tree)
    tables = preprocess(original, synthetic)
    changes = [measure_column_changes(tables, assess_preprocessed(tables), engine=each) for each in (None, engine)]
    assert set(changes[0]["change"]) == {"dropped", "coarsened"}
    pd.testing.assert_frame_equal(*changes)
    wards = original.assign(ward=rng.integers(0, 3, 200))
    for more in ({}, {"sensitive": ["ward"], "l_diversity": 2}):
        expected, found = (
            anonymize(wards, quasi_identifiers=["age", "name"], k=5, engine=each, **more) for each in (None, engine)
        )
        assert found == expected
        assert found.stats["n_classes"] > 3
    pd.testing.assert_frame_equal(
        *(synthesize(original, method="gaussian_copula", seed=2, engine=each) for each in (engine, None))
    )
    files = [path for path in spark_server().files.rglob("*") if path.is_file()]
    held = {path: read_uncompressed(path) for path in files}
    # The names of the jobs are there, so these are the files of this server.
    assert any(b"privacy_assets: a release" in content for content in held.values())
    assert not [path for path, content in held.items() if b"Sentinel" in content]


def test_a_worker_that_dies_is_replaced(engine, tmp_path):
    numbers = np.arange(1_000)
    with engine.place({"number": numbers}) as batches:
        made = engine.collect(engine.map(batches, DiesOnce(str(tmp_path / "mark")), NUMBER))
    assert (tmp_path / "mark").exists()
    assert sorted(made.column("number").to_pylist()) == numbers.tolist()


def test_codes_in_a_staging_directory_are_found_and_nothing_enters_the_store_of_the_server(engine, tmp_path):
    numbers = np.arange(1_000)
    staged = replace(engine, staging=str(tmp_path))
    log = spark_server().files / "server.log"
    begin = log.stat().st_size
    for n_rows in (1_000, 0):
        with staged.place({"number": numbers[:n_rows]}) as batches:
            assert len(list(tmp_path.iterdir())) == 1
            made = staged.collect(staged.map(batches, Copies(), NUMBER))
            assert sorted(made.column("number").to_pylist()) == numbers[:n_rows].tolist()
            assert staged.collect(batches).num_rows == n_rows
        assert not list(tmp_path.iterdir())
    said = log.read_bytes()[begin:]
    assert re.search(rb"Block broadcast_\d+ stored", said)
    assert not re.search(rb"Block (cache|rdd)_", said)
    # What is sent without the directory does.
    with engine.place({"number": numbers}) as batches:
        engine.collect(engine.map(batches, Copies(), NUMBER))
    assert re.search(rb"Block rdd_", log.read_bytes()[begin:])


@pytest.mark.parametrize("has_staging", [True, False])
def test_codes_that_the_cluster_has_are_not_kept_here(engine, tmp_path, has_staging):
    numbers = np.arange(1_000)
    kept, placed = ref(numbers), {"number": numbers}
    with replace(engine, staging=str(tmp_path) if has_staging else None).place(placed) as batches:
        del numbers, placed
        assert kept() is None
        assert engine.collect(engine.map(batches, Copies(), NUMBER)).num_rows == 1_000


def test_a_staging_directory_that_the_server_does_not_see_is_refused(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("privacy_assets.engine.spark.staged", lambda *_: nullcontext(str(tmp_path / "elsewhere")))
    staged = replace(engine, staging=str(tmp_path))
    with (
        pytest.raises(EngineError, match="could not find the codes in the staging directory .*PATH_NOT_FOUND"),
        staged.place({"number": np.arange(10)}),
    ):
        pass


def test_an_address_has_its_own_session_which_ends_and_the_server_stays(engine, monkeypatch):
    from pyspark.sql.connect.client.retries import DefaultPolicy

    monkeypatch.setattr(connection, "_checked_addresses", {"local[2, 4]"})
    given, own = engine.session, SparkEngine(remote="local[2, 4]", rows_per_task=50)
    given.sql("SELECT 1 AS one").createOrReplaceTempView("of_the_given_session")
    given.client.set_retry_policies([DefaultPolicy()])
    with own.place({"number": np.arange(100)}) as batches:
        session = batches.connection.spark
        assert session.session_id != given.session_id
        assert not session.catalog.tableExists("of_the_given_session")
        made = own.collect(own.map(batches, Copies(), NUMBER))
        assert sorted(made.column("number").to_pylist()) == list(range(100))
    assert session.client.is_closed
    assert given.range(3).count() == 3
    # A process asks its own server once more when it ends, and waits for it as long as for any other.
    assert [policy.max_retries for policy in given.client.get_retry_policies()] == [connection.RETRIES["max_retries"]]


def test_workers_that_die_again_and_again_are_refused(engine, tmp_path):
    with (
        engine.place({"number": np.arange(10)}) as batches,
        pytest.raises(EngineError, match="Spark could not run the tasks") as refused,
    ):
        engine.collect(engine.map(batches, DiesOnce(str(tmp_path / "mark"), always=True), NUMBER))
    assert refused.value.__context__ is None


def test_a_failure_quotes_nothing_that_a_worker_had(engine, caplog, capfd):
    with (
        caplog.at_level(logging.DEBUG),
        engine.place({"number": np.array([SENTINEL])}) as batches,
        pytest.raises(EngineError) as refused,
    ):
        engine.collect(engine.map(batches, Fails(), NUMBER))
    assert str(SENTINEL) not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    assert not [record for record in caplog.records if str(SENTINEL) in record.getMessage()]
    assert engine.session.getTags() == set()


def test_workers_of_another_version_are_refused_before_anything_is_sent(monkeypatch):
    monkeypatch.setattr("privacy_assets.__version__", "0.0.0+other")
    monkeypatch.setattr(connection, "_checked_sessions", WeakSet())
    engine = SparkEngine(session=spark_server().session)
    with pytest.raises(EngineError, match="Install the same version") as refused, engine.place({"a": np.arange(3)}):
        pass
    assert "0.0.0+other" in str(refused.value)


def test_an_object_with_a_session_is_taken_like_a_resource_of_dagster():
    class Resource:
        spark_session = spark_server().session

    engine: Engine = SparkEngine(session=Resource(), rows_per_task=7)
    with engine.place({"number": np.arange(20)}) as batches:
        assert engine.collect(batches).num_rows == 20
    with engine.place({"number": np.arange(0)}) as batches:
        assert engine.collect(batches).num_rows == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"remote": "sc://host", "session": object()},
        {"remote": "sc://host", "rows_per_task": 0},
        {"remote": "sc://host", "tag": "a,b"},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong):
    with pytest.raises(InvalidSettingError):
        SparkEngine(**wrong)


def test_a_resource_that_has_no_session_yet_is_refused():
    pytest.importorskip("pyspark", reason="needs the extra `spark`")

    class Resource:
        spark_session = None

    with (
        pytest.raises(EngineError, match="The Spark resource has no session yet"),
        SparkEngine(session=Resource()).place({"number": np.arange(3)}),
    ):
        pass
