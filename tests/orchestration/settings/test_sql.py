"""Tables out of databases: DuckDB and PostgreSQL give the same release, and problems are said without a password."""

import json

import numpy as np
import pandas as pd
import pytest
from dagster.components.resolved.errors import ResolutionException
from pydantic import ValidationError

from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import ContractError, InvalidSettingError, InvalidTableError
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.sources import SqlQuery
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from tests.orchestration.project import CONTRACT, Project, failure_of, people
from tests.orchestration.settings.postgresql import require_postgresql, running_server

duckdb = pytest.importorskip("duckdb", reason="needs the extra `sql`")
sqlalchemy = pytest.importorskip("sqlalchemy", reason="needs the extra `sql`")
URL = "TEST_DATABASE_URL"
QUERY = "SELECT * FROM people ORDER BY patient"
PARTS_OF_A_RUN = {"created_at", "run_id", "files", "digest"}
BEYOND_FLOATS = 2**53 + 1
TABLE = """
    CREATE TABLE people (patient text, age integer, plan text, joined timestamp, cost numeric(8, 1));
"""


def rows():
    """People with missing values, which make a float of a whole number where one is careless."""
    table = people(300, 1)
    random = np.random.default_rng(2)
    table["plan"] = table["plan"].astype(object).where(random.random(300) > 0.1, None)
    table["cost"] = table["cost"].astype(object).where(random.random(300) > 0.1, None)
    return [tuple(row) for row in table.itertuples(index=False)]


@pytest.fixture
def in_duckdb(tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(TABLE)
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows())
    return f"duckdb:///{path}"


@pytest.fixture(scope="module")
def in_postgresql():
    require_postgresql()
    import psycopg

    with running_server() as url:
        with psycopg.connect(url) as connection:
            connection.execute(TABLE)
            connection.cursor().executemany("INSERT INTO people VALUES (%s, %s, %s, %s, %s)", rows())
        yield url


@pytest.fixture(params=["in_duckdb", "in_postgresql"])
def database(request, monkeypatch):
    monkeypatch.setenv(URL, request.getfixturevalue(request.param))
    return request.param


def figures(directory):
    """Return what a manifest says of the table and why it was admitted, without when and by which run."""
    manifest = json.loads((directory / "manifest.json").read_text())
    return {name: value for name, value in manifest.items() if name not in PARTS_OF_A_RUN}


def test_a_release_over_postgresql_has_the_figures_of_one_over_duckdb(tmp_path, monkeypatch, in_duckdb, in_postgresql):
    found = {}
    for name, url in {"duckdb": in_duckdb, "postgresql": in_postgresql}.items():
        monkeypatch.setenv(URL, url)
        (tmp_path / name).mkdir()
        project = Project(tmp_path / name)
        project.write_tables()
        definitions = project.definitions(
            source=SqlQuery(QUERY, URL),
            anonymized=AnonymizationSettings(k=3),
            policy=Policy(
                (Limit("privacy_risk_score", 0.999, "at_most"), Limit("smallest_class", 3)),
                RequiredSettings(control_records=40, detectable_share=None),
            ),
        )
        result = project.run(definitions)
        assert result.success, failure_of(result)
        found[name] = [figures(project.releases(side=side)[-1]) for side in ("synthetic", "anonymized")]
    for one, other in zip(found["duckdb"], found["postgresql"], strict=True):
        assert one == other
        assert one["n_records"] > 0


def test_both_databases_give_what_the_contract_admits(database):
    admitted = TableContract.from_mapping(CONTRACT).admit(SqlQuery(QUERY, URL).read(None))
    expected = TableContract.from_mapping(CONTRACT).admit(
        pd.DataFrame(sorted(rows()), columns=list(CONTRACT["columns"]))
    )
    pd.testing.assert_frame_equal(admitted, expected)


def test_the_partition_is_bound_and_not_pasted(database):
    query = "SELECT patient, :partition_key AS part FROM people WHERE plan = :partition_key AND age::text LIKE '2%'"
    table = SqlQuery(query, URL).read("free")
    assert len(table) > 0
    assert set(table["part"]) == {"free"}
    assert len(SqlQuery(query, URL).read("free' OR '1' = '1")) == 0


def test_whole_numbers_stay_exact_beside_missing_ones(database):
    query = f"SELECT {BEYOND_FLOATS}::bigint AS n, true AS b UNION ALL SELECT NULL, NULL ORDER BY n"
    table = SqlQuery(query, URL).read(None)
    assert sorted(table["n"].dropna()) == [BEYOND_FLOATS]
    described = {"role": "other", "nullable": True}
    contract = {"n": {"type": "integer"} | described, "b": {"type": "boolean"} | described}
    admitted = TableContract.from_mapping({"columns": contract}).admit(table)
    assert sorted(admitted["n"].dropna()) == [BEYOND_FLOATS]
    assert admitted["b"].isna().sum() == 1


@pytest.mark.parametrize(
    ("cell", "is_read"),
    [
        ("340282366920938463463374607431768211455::UHUGEINT", False),
        ("TIMETZ '01:02:03+01'", False),
        ("170141183460469231731687303715884105727::HUGEINT", True),
        ("DATE 'infinity'", True),
        ("TIMESTAMP '-infinity'", True),
        ("INTERVAL 1 MONTH", True),
    ],
)
def test_duckdb_hands_over_no_changed_value(monkeypatch, cell, is_read):
    monkeypatch.setenv(URL, "duckdb://")
    query = SqlQuery(f"SELECT 1 AS a, {cell} AS b", URL)
    if not is_read:
        with pytest.raises(InvalidTableError, match=r"1 columns of the query \(positions 1\) have types that DuckDB"):
            query.read(None)
        return
    for kind in ("datetime", "integer", "float"):
        column = {"type": kind, "role": "other"}
        with pytest.raises(ContractError, match="column 'b' fails"):
            TableContract.from_mapping({"columns": {"a": {"type": "integer", "role": "other"}, "b": column}}).admit(
                query.read(None)
            )


def test_a_colon_that_is_no_parameter_can_be_written(database):
    assert SqlQuery(r"SELECT '12\:30' AS clock", URL).read(None)["clock"].tolist() == ["12:30"]


def test_a_duckdb_file_is_read_while_another_reader_has_it_and_cannot_be_written(in_duckdb, monkeypatch):
    monkeypatch.setenv(URL, in_duckdb)
    with duckdb.connect(in_duckdb.removeprefix("duckdb:///"), read_only=True):
        assert len(SqlQuery(QUERY, URL).read(None)) == 300
    with pytest.raises(duckdb.Error):
        SqlQuery("DELETE FROM people", URL).read(None)
    assert len(SqlQuery(QUERY, URL).read(None)) == 300


def test_duckdb_without_a_file_queries_files(tmp_path, monkeypatch):
    people(5, 1).to_parquet(tmp_path / "people.parquet", index=False)
    monkeypatch.setenv(URL, "duckdb://")
    assert len(SqlQuery(f"SELECT * FROM '{tmp_path / 'people.parquet'}'", URL).read(None)) == 5


@pytest.mark.parametrize(
    ("url", "query", "partition_key", "message"),
    [
        (None, QUERY, None, "'TEST_DATABASE_URL' is not set; expected an SQLAlchemy URL"),
        ("secret", QUERY, None, "'TEST_DATABASE_URL' does not contain a SQLAlchemy URL. Expected one such as"),
        ("postgresql://me:secret@host:port/x", QUERY, None, "'TEST_DATABASE_URL' does not contain a SQLAlchemy URL"),
        ("duckdb://", "SELECT :secret", None, r"has the parameters \['secret'\]; only :partition_key is bound"),
        ("duckdb://", "SELECT :partition_key", None, "names :partition_key, but the release has no partitions"),
        ("duckdb:///no/secret.duckdb", QUERY, None, "There is no DuckDB file 'no/secret.duckdb'"),
        ("duckdb:///secret.duckdb?threads=4", QUERY, None, "has a host or options, which are not passed on"),
    ],
)
def test_what_cannot_be_read_is_said_without_the_password(monkeypatch, url, query, partition_key, message):
    monkeypatch.delenv(URL, raising=False)
    if url is not None:
        monkeypatch.setenv(URL, url)
    with pytest.raises((InvalidSettingError, InvalidTableError), match=message) as raised:
        SqlQuery(query, URL).read(partition_key)
    assert "me:secret" not in str(raised.value)
    assert raised.value.__context__ is None


@pytest.mark.parametrize("url_variable", ["postgresql://me:secret@host/db", "a secret", "secret-1", "", None])
def test_what_is_no_name_of_a_variable_is_refused_unseen(url_variable):
    with pytest.raises(InvalidSettingError, match="url_variable is not the name of an environment variable") as raised:
        SqlQuery(QUERY, url_variable)
    assert "secret" not in str(raised.value)


def test_a_template_that_reads_the_url_is_refused_unseen_when_the_release_is_loaded(monkeypatch):
    monkeypatch.setenv("WAREHOUSE_URL", "postgresql://me:secret@host/db")
    source = {"query": QUERY, "url_variable": "{{ env.WAREHOUSE_URL }}"}
    attributes = {"source": source, "contract": CONTRACT, "policy": "development"}
    with pytest.raises(ResolutionException, match="url_variable is not the name") as raised:
        PrivacyReleaseComponent.from_attributes_dict(attributes=attributes)
    assert "secret" not in str(raised.value)
    with pytest.raises(ValidationError, match="url_variable is not the name") as raised:
        PrivacyReleaseComponent(**attributes | {"source": source | {"url_variable": "postgresql://me:secret@host/db"}})
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("package", ["sqlalchemy", "duckdb"])
def test_a_missing_package_names_the_extra(monkeypatch, package):
    from privacy_assets.pipeline import sql_rows

    monkeypatch.setattr(sql_rows, "find_spec", lambda name: None if name == package else object())
    monkeypatch.setenv(URL, "duckdb://")
    with pytest.raises(InvalidSettingError, match=r"install privacy-assets\[sql\]"):
        SqlQuery("SELECT 1", URL).read(None)
