"""The token in the address of a server is shown nowhere, and what is no address is refused without being shown."""

import dataclasses

import numpy as np
import pytest

from privacy_assets.engine.connection import Connection
from privacy_assets.engine.local import LocalEngine
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import EngineError, InvalidSettingError
from privacy_assets.orchestration.settings.engine import engine_name, read_engine
from privacy_assets.orchestration.settings.spark_source import SparkSource

TOKEN = "SentinelTOKEN93"
SHOWN = {
    "sc://host": "sc://host",
    "sc://host:15002": "sc://host:15002",
    "sc://host:15002/": "sc://host:15002",
    f"sc://host:15002/;token={TOKEN}": "sc://host:15002",
    f"sc://a-b.example.org;use_ssl=true;token={TOKEN}%3D%3D": "sc://a-b.example.org",
    f"sc://10.0.0.1:443/;token={TOKEN};user_id=me@example.org": "sc://10.0.0.1:443",
    f"sc://[::1]:15002/;x-databricks-cluster-id={TOKEN}": "sc://[::1]:15002",
    "local": "local",
    "local[2]": "local[2]",
    "local[*]": "local[*]",
    "local[2, 4]": "local[2, 4]",
}
NO_ADDRESSES = [
    "",
    TOKEN,
    f"http://host/;token={TOKEN}",
    f"sc://{TOKEN}@host:15002",
    f"sc://me:{TOKEN}@host:15002/",
    f"sc://me:{TOKEN};a=b@host:15002/;token={TOKEN}",
    f"sc://host:15002/?token={TOKEN}",
    f"sc://host:15002/{TOKEN}",
    f"sc://host:15002#{TOKEN}",
    f"sc://host:15002/;{TOKEN}",
    f"sc://host:15002/;token={TOKEN}==",
    f"sc://host:{TOKEN}",
    f"sc://host:15002 ;token={TOKEN}",
    f"sc://host:15002\n;token={TOKEN}",
    f"local[{TOKEN}]",
    f"spark://host:7077;token={TOKEN}",
    5,
    [f"sc://host/;token={TOKEN}"],
]


@pytest.mark.parametrize(("remote", "shown"), SHOWN.items())
def test_of_an_address_the_part_before_its_parameters_is_shown(remote, shown):
    engine = SparkEngine(remote=remote, staging="/mnt/staging", writes_releases=True)
    texts = [repr(engine), str(engine), f"{engine}", repr([engine]), repr(dataclasses.replace(engine, tag="a"))]
    assert all(f"remote={shown!r}" in text and "staging='/mnt/staging', writes_releases=True" in text for text in texts)
    assert engine_name(engine) == f"spark at {shown}"
    with pytest.raises(EngineError, match="could not be reached") as refused:
        Connection(remote, None).refuse("TimeoutError", "be reached")
    with pytest.raises(InvalidSettingError) as wrong:
        SparkEngine(remote=remote, rows_per_task=0)
    source = SparkSource(table="people", remote=remote)
    for text in (*texts, str(refused.value), str(wrong.value), engine_name(engine), repr(source)):
        assert TOKEN not in text
    assert engine.remote == source.remote == remote


@pytest.mark.parametrize("remote", NO_ADDRESSES)
def test_what_is_no_address_is_refused_without_being_shown(remote):
    for make in (SparkEngine, lambda remote: SparkSource(table="people", remote=remote)):
        with pytest.raises(InvalidSettingError, match="is not the address of a Spark Connect server") as refused:
            make(remote=remote)
        assert TOKEN not in str(refused.value)


def test_engines_have_names_for_the_manifest():
    assert engine_name(LocalEngine()) == engine_name(read_engine(None)) == "local"
    assert engine_name(SparkEngine(session=object())) == "spark"


def test_too_many_codes_for_a_server_are_refused_with_their_size_before_it_is_asked(monkeypatch):
    monkeypatch.setattr("privacy_assets.engine.spark.MOST_UPLOADED", 1 << 20)
    engine = SparkEngine(remote="sc://nowhere.invalid", rows_per_task=50)
    codes = {"row": np.arange(1 << 17), "c0": np.zeros(1 << 17, np.int16)}
    with (
        pytest.raises(InvalidSettingError, match=r"have 1\.2 MiB, .*at most 1 MiB .*Set `staging`"),
        engine.place(codes),
    ):
        pass


@pytest.mark.parametrize(
    "staging", ["", "relative/path", "s3://bucket/a", "s3a:/a", "dbfs:/a", "hdfs://a/b", 5, ["/a"]]
)
def test_only_absolute_paths_of_file_systems_are_staging_directories(staging):
    with pytest.raises(InvalidSettingError, match="the absolute path of a directory, not an object store"):
        SparkEngine(remote="sc://host", staging=staging)
