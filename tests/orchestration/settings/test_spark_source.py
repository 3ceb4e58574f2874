"""A table of a Spark cluster: the rows of the same table anywhere else, in an order that does not depend on Spark."""

import copy
import datetime as dt
import logging
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from privacy_assets.columns.row_hashes import hash_rows
from privacy_assets.contract.contract import TableContract
from privacy_assets.engine.local import LocalEngine
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import ContractError, EngineError, InvalidSettingError, InvalidTableError
from privacy_assets.orchestration.settings.sources import TableFile, read_source, require_partitioned
from privacy_assets.orchestration.settings.spark_source import SparkSource
from privacy_assets.storage.artifact_files import read_artifact
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.storage.table import fingerprint_of, frame_of
from tests.orchestration.project import CONTRACT, Project, failure_of
from tests.orchestration.project import people as made_people
from tests.spark_server import read_uncompressed, spark_server

COLUMNS = {
    "patient": {"type": "text", "role": "direct_identifier", "person": True},
    "name": {"type": "text", "role": "direct_identifier"},
    "age": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 120, "nullable": True},
    "sex": {"type": "category", "role": "quasi_identifier", "categories": ["f", "m"]},
    "cost": {"type": "float", "role": "other"},
    "paid": {"type": "float", "role": "other", "nullable": True},
    "since": {"type": "datetime", "role": "other"},
    "seen": {"type": "datetime64[us, UTC]", "role": "other"},
    "diagnosis": {"type": "text", "role": "sensitive", "nullable": True},
}


def in_order(table, contract):
    """Return the rows of a frame in the order in which they come from a cluster."""
    without_person = {name: own | {"person": False, "role": "other"} for name, own in contract["columns"].items()}
    kept = [name for name, own in contract["columns"].items() if own["role"] != "direct_identifier" or "person" in own]
    converted = TableContract.from_mapping({"columns": without_person}).admit(table)
    hashes = [hash_rows([converted[name] for name in kept], len(table), seed) for seed in (1, 0)]
    return table.iloc[np.lexsort(hashes)].reset_index(drop=True)


def people(n_rows=400, token="SENTINEL"):
    """A table with a token in its cells."""
    rng = np.random.default_rng(5)
    day = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    rows = [
        {
            "patient": f"{token}patient{rng.integers(0, n_rows // 2):05}",
            "name": f"{token}name{row}",
            "age": None if rng.random() < 0.1 else int(rng.integers(0, 90)),
            "sex": "fm"[rng.integers(0, 2)],
            "cost": float(rng.integers(0, 50)) / 4,
            "paid": None if rng.random() < 0.2 else Decimal(int(rng.integers(0, 900))) / 100,
            "since": dt.date(2019, 1, 1) + dt.timedelta(days=int(rng.integers(0, 300))),
            "seen": day + dt.timedelta(minutes=int(rng.integers(0, 10_000))),
            "diagnosis": None if rng.random() < 0.3 else f"{token}diagnosis{rng.integers(0, 20)}",
        }
        for row in range(n_rows)
    ]
    return pa.Table.from_pylist(rows)


@pytest.fixture(scope="module")
def engine():
    return SparkEngine(session=spark_server().session)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    pq.write_table(people(), path)
    return path


@pytest.fixture(scope="module")
def view(engine, parquet):
    """A view in the catalog whose rows are in another order, in several partitions."""
    frame = engine.session.read.parquet(str(parquet))
    frame.repartition(5).createOrReplaceTempView("people")
    return "people"


def contract_of(columns):
    return TableContract.from_mapping({"columns": columns})


def test_a_spark_table_is_admitted_as_the_same_rows_of_a_file(engine, parquet, view, tmp_path):
    contract = contract_of(COLUMNS)
    rows = in_order(TableFile(str(parquet)).read(None), {"columns": COLUMNS})
    expected = contract.admit(rows)
    staged = replace(engine, staging=str(tmp_path))
    for source, own in ((SparkSource(table=view), engine), (SparkSource(path=str(parquet)), staged)):
        found = source.admit(contract, None, own, "people source", tmp_path)
        pd.testing.assert_frame_equal(frame_of(found.table), expected)
        assert fingerprint_of(found.table) == fingerprint(expected)
        assert found.checked["patient"].tolist() == rows["patient"].tolist()
    assert not list(tmp_path.iterdir())


def test_the_digest_does_not_depend_on_the_partitions(engine, parquet, tmp_path):
    contract, session = contract_of(COLUMNS), engine.session
    digests = set()
    for n_partitions in (1, 3, 7):
        session.read.parquet(str(parquet)).repartition(n_partitions).createOrReplaceTempView("parts")
        digests.add(fingerprint_of(SparkSource(table="parts").admit(contract, None, engine, "people", tmp_path).table))
    session.read.parquet(str(parquet)).createOrReplaceTempView("parts")
    session.sql("SELECT * FROM parts WHERE false UNION ALL SELECT * FROM parts").createOrReplaceTempView("empty_parts")
    found = SparkSource(table="empty_parts").admit(contract, None, engine, "people", tmp_path)
    digests.add(fingerprint_of(found.table))
    assert len(digests) == 1


def test_a_violated_contract_is_refused_in_the_words_for_a_file_and_without_values(
    engine, parquet, view, caplog, capfd, tmp_path
):
    columns = copy.deepcopy(COLUMNS)
    columns["age"] |= {"max": 40}
    columns["sex"]["categories"] = ["f"]
    columns["diagnosis"] |= {"nullable": False, "unique": True}
    columns["cost"]["type"] = "integer"
    del columns["paid"]
    contract = contract_of(columns)
    with pytest.raises(ContractError) as expected:
        contract.admit(TableFile(str(parquet)).read(None))
    with caplog.at_level(logging.DEBUG), pytest.raises(ContractError) as raised:
        SparkSource(table=view).admit(contract, None, engine, "people source", tmp_path)
    assert str(raised.value) == str(expected.value)
    assert len(raised.value.failures) == 6
    assert "SENTINEL" not in "".join([str(raised.value), caplog.text, *capfd.readouterr()])


def test_rows_are_read_without_a_contract_and_columns_can_be_left_out(engine, parquet, view):
    source = SparkSource(table=view, columns=["diagnosis", "age"])
    found = read_source("synthetic", source, None, {}, engine, "people")
    expected = TableFile(str(parquet)).read(None)[list(found.columns)]
    by = list(found.columns)
    assert sorted(by) == ["age", "diagnosis"]
    found, expected = (table.sort_values(by).reset_index(drop=True) for table in (found, expected))
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    with pytest.raises(InvalidTableError, match=r"names columns that the table does not have: \['weight'\]"):
        SparkSource(table=view, columns=["age", "weight"]).read(None, engine, "people")


def test_a_partition_is_a_table_of_its_own(engine, parquet):
    engine.session.read.parquet(str(parquet)).limit(7).createOrReplaceTempView("`people_2024-05`")
    source = SparkSource(table="`people_{partition_key}`")
    require_partitioned("source", source)
    assert len(source.read("2024-05", engine, "people")) == 7
    for key in ("a`b", "../b", ".."):
        with pytest.raises(InvalidSettingError, match="cannot be part of the name or path"):
            source.read(key, engine, "people")
    with pytest.raises(InvalidSettingError, match="its source is a Spark table, which is the same for all of them"):
        require_partitioned("source", SparkSource(table="people"))


def test_what_spark_does_not_find_is_refused_by_the_name_of_its_condition(engine, tmp_path):
    for source, condition in (
        (SparkSource(table="UNKNOWN.people"), "TABLE_OR_VIEW_NOT_FOUND"),
        (SparkSource(path=str(tmp_path / "UNKNOWN")), "PATH_NOT_FOUND"),
    ):
        with pytest.raises(EngineError, match=f"could not open the table .*{condition}.* Nothing was read") as raised:
            source.read(None, engine, "people")
        assert "UNKNOWN" not in str(raised.value)
        assert raised.value.__context__ is None
    assert engine.session.getTags() == set()


def test_types_with_several_values_in_a_cell_are_refused_by_name(engine, tmp_path):
    query = "SELECT 1 AS age, array(1) AS visits, map('a', 1) AS labs, named_struct('a', 1) AS address, X'00' AS photo"
    engine.session.sql(query).createOrReplaceTempView("nested")
    columns = {name: {"type": "text", "role": "other"} for name in ("age", "visits", "labs", "address", "photo")}
    expected = r"\{'visits': 'array', 'labs': 'map', 'address': 'struct', 'photo': 'binary'\}"
    with pytest.raises(InvalidTableError, match=expected):
        SparkSource(table="nested").admit(contract_of(columns), None, engine, "people", tmp_path)
    # Without a contract, nobody wrote the names.
    with pytest.raises(InvalidTableError, match="{'position 1': 'array', 'position 2': 'map', 'position 3': 'struct'"):
        SparkSource(table="nested").read(None, engine, "people")
    assert SparkSource(table="nested", columns=["age"]).read(None, engine, "people")["age"].tolist() == [1]


@pytest.mark.parametrize("written", [pq, orc])
@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_parts_of_different_schemas_are_refused_or_read_with_all_of_their_columns(engine, tmp_path, names, written):
    few = pa.table({"age": [30, 40], "sex": ["f", "m"]})
    contract = contract_of({name: COLUMNS[name] for name in ("age", "sex")})

    def admit(other):
        for name, part in zip(names, (few, other), strict=True):
            written.write_table(part, tmp_path / name)
        source = SparkSource(path=str(tmp_path), format="parquet" if written is pq else "orc")
        return source.admit(contract, None, engine, "people", tmp_path).table

    with pytest.raises(ContractError, match="name"):
        admit(few.append_column("name", [["SENTINEL", "SENTINEL"]]))
    with pytest.raises(EngineError, match="could not open the table .*MERGE") as raised:
        admit(few.set_column(0, "age", [["SENTINEL", "41"]]))
    assert "SENTINEL" not in str(raised.value)
    # As in a table whose columns were added later, a column that a part lacks has no values there.
    assert sorted(map(str, admit(few.select(["sex"]))["age"])) == ["30", "40", "<NA>", "<NA>"]
    with pytest.raises(ContractError, match="sex"):
        admit(few.select(["age"]))


def test_a_part_that_is_damaged_is_refused_and_none_of_spark_is_said(engine, parquet, tmp_path):
    content = bytearray(parquet.read_bytes())
    content[10:4000] = b"SENTINEL" * 500
    (tmp_path / "damaged.parquet").write_bytes(bytes(content))
    with pytest.raises(EngineError, match="Spark could not run the tasks") as raised:
        SparkSource(path=str(tmp_path)).admit(contract_of(COLUMNS), None, engine, "people", tmp_path)
    assert "SENTINEL" not in str(raised.value)
    assert raised.value.__context__ is None


def test_nothing_but_the_table_itself_has_values_on_the_cluster(engine, tmp_path):
    pq.write_table(people(token="WITNESS"), tmp_path / "people.parquet")
    source, contract = SparkSource(path=str(tmp_path / "people.parquet")), contract_of(COLUMNS)
    source.admit(contract, None, engine, "a release with a table of its own", tmp_path)
    refused = copy.deepcopy(COLUMNS)
    refused["diagnosis"] |= {"isin": ["a"]}
    with pytest.raises(ContractError):
        source.admit(contract_of(refused), None, engine, "a release with a table of its own", tmp_path)
    held = {path: read_uncompressed(path) for path in spark_server().files.rglob("*") if path.is_file()}
    assert any(b"a release with a table of its own" in content for content in held.values())
    assert not [path for path, content in held.items() if b"WITNESS" in content]


def stored(folder, table, source=None):
    """Run the first stages of a release of a table; return what they stored."""
    folder.mkdir()
    project = Project(folder)
    project.write_tables()
    table.to_parquet(folder / "data" / "people.parquet", index=False)
    stages = ("source", "original", "control")
    result = project.run(project.definitions(**{} if source is None else {"source": source}), *stages)
    assert result.success, failure_of(result)
    return {stage: read_artifact(project.stored(stage)) for stage in stages}


def test_a_release_stores_of_a_spark_table_what_it_does_of_the_same_rows_in_a_file(tmp_path):
    table = in_order(made_people(300, 1), CONTRACT)
    expected = stored(tmp_path / "of a file", table)
    session = spark_server().session
    # Spark knows the times of a file without a time zone as such.
    session.read.parquet(str(tmp_path / "of a file" / "data" / "people.parquet")).createOrReplaceTempView("in_order")
    session.table("in_order").repartition(3).createOrReplaceTempView("shuffled_people")
    found = stored(tmp_path / "of Spark", table.head(1), SparkSource(table="shuffled_people", session=session))
    for stage, artifact in expected.items():
        pd.testing.assert_frame_equal(found[stage].frames["table"], artifact.frames["table"])
        assert found[stage].fingerprints == artifact.fingerprints


def test_a_violated_contract_on_a_cluster_fails_the_check_with_counts_and_no_value(tmp_path):
    table = made_people(300, 1)
    table.loc[table.index % 3 == 0, "plan"] = "SENTINEL"
    contract = copy.deepcopy(CONTRACT)
    contract["columns"]["plan"]["isin"] = ["free", "family", "single"]
    table.to_parquet(tmp_path / "wrong.parquet", index=False)
    project = Project(tmp_path)
    source = SparkSource(path=str(tmp_path / "wrong.parquet"), session=spark_server().session)
    result = project.run(project.definitions(source=source, contract=contract), "source")
    assert not result.success
    (check,) = [each for each in result.get_asset_check_evaluations() if each.check_name == "source_keeps_its_contract"]
    assert check.metadata["plan: isin"].value == 100
    assert "SENTINEL" not in "".join(map(str, result.all_events))


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"table": "a", "path": "b"},
        {"table": 1},
        {"table": "a", "remote": "sc://host", "session": object()},
        {"path": "a", "format": "csv"},
        {"table": "a", "columns": "age"},
        {"table": "a", "columns": []},
        {"table": "a", "columns": ["age", "age"]},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong):
    with pytest.raises(InvalidSettingError):
        SparkSource(**wrong)


def test_a_source_without_a_cluster_is_refused_before_any_run(tmp_path):
    source = SparkSource(table="people")
    with pytest.raises(InvalidSettingError, match="neither it nor the release names the cluster"):
        Project(tmp_path).definitions(source=source)
    Project(tmp_path).definitions(source=SparkSource(table="people", remote="sc://host"))
    Project(tmp_path).definitions(source=source, engine=SparkEngine(remote="sc://host"), anonymized=None)
    with pytest.raises(InvalidSettingError, match="neither it nor the release"):
        source.read(None, LocalEngine(), "people")
