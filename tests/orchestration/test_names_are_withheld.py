"""Names that others choose can be cells: columns of a file without its header, classes, dtypes, settings, checks."""

import sqlite3
from contextlib import nullcontext
from functools import partial

import dagster as dg
import pandas as pd
import pandera.pandas as pa
import pytest

from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.contract.batches import BatchAdmission, refusal
from privacy_assets.contract.contract import TableContract
from privacy_assets.engine.local import LocalEngine
from privacy_assets.errors import ContractError, InvalidTableError
from privacy_assets.orchestration.risk_checks import build_privacy_risk_checks
from privacy_assets.orchestration.settings.anonymized import (
    AnonymizationSettings,
    OtherReleaseSettings,
    ReidentificationSettings,
)
from privacy_assets.orchestration.settings.sources import SqlQuery, TableFile, UpstreamAsset
from privacy_assets.orchestration.settings.spark_source import SparkSource
from privacy_assets.orchestration.settings.synthetic import ExternalSynthetic, GivenSplit, Synthesis
from privacy_assets.release.policy import Limit, Policy
from tests.orchestration.project import Project, failure_of
from tests.orchestration.sentinels import (
    CONTRACT,
    INTEGER,
    TEXT,
    assert_nothing_leaked,
    enough_sentinel_people,
    sentinel_people,
    sentinel_synthetic,
)

NUMBERED = {"columns": {**CONTRACT["columns"], "number": {"type": "integer", "role": "other"}}}


@pytest.fixture
def project(tmp_path):
    return Project(
        tmp_path,
        settings={"contract": CONTRACT, "synthetic": ExternalSynthetic(sentinel_synthetic, control_was_withheld=True)},
    )


def numbered() -> pd.DataFrame:
    return sentinel_people().assign(number=range(INTEGER, INTEGER + 120))


def without_header(project, table: pd.DataFrame, name: str) -> TableFile:
    path = project.root / "data" / f"{name}.csv"
    table.to_csv(path, index=False, header=False)
    return TableFile(str(path))


def with_other_release(project, source):
    other = OtherReleaseSettings("plans", "number", table=source, model=ReleaseModel.from_labels(["name_of_plan"]))
    return project.definitions(
        contract=NUMBERED,
        policy=Policy((Limit("smallest_class", 2), Limit("max_reidentification_probability", 0.99))),
        source=numbered,
        synthetic=None,
        anonymized=AnonymizationSettings(k=30),
        reidentification=ReidentificationSettings(other_releases=(other,)),
    )


def test_another_release_without_its_header_is_refused_by_counts(project, capfd):
    table = numbered()[["name_of_plan", "number", "income"]]
    definitions = with_other_release(project, without_header(project, table, "other"))
    result = project.run(definitions, "other_plans")
    assert not result.success
    assert "3 of the 3 columns of the other release 'plans'" in failure_of(result)
    assert_nothing_leaked(project, capfd, "(positions 0, 1, 2)")


def test_another_release_with_a_column_that_nobody_described_is_refused_by_counts(project, capfd):
    table = numbered()[["name_of_plan", "number"]].assign(**{f"{TEXT}-{INTEGER}": 1})
    result = project.run(with_other_release(project, lambda: table), "other_plans")
    assert "1 of the 3 columns of the other release 'plans'" in failure_of(result)
    assert_nothing_leaked(project, capfd, "(positions 2)")


def test_another_release_may_have_the_columns_of_the_contract(project):
    table = numbered()[["name_of_plan", "number", "cost"]]
    assert project.run(with_other_release(project, lambda: table), "other_plans").success


@pytest.mark.parametrize("headerless", ["original", "control"])
def test_a_side_of_a_split_without_its_header_is_refused_by_counts(project, capfd, headerless):
    sides = {"original": sentinel_people(), "control": sentinel_people(40, seed=2).drop(columns="cost")}
    given = {name: (lambda side=side: side) for name, side in sides.items()}
    given[headerless] = without_header(project, sides[headerless], headerless)
    result = project.run(project.definitions(source=None, split=GivenSplit(**given)), "original", "control")
    assert "has_any_of_the_columns" in failure_of(result)
    assert_nothing_leaked(project, capfd, "has_any_of_the_columns")


def test_a_synthetic_table_without_its_header_is_refused_by_counts(project, capfd):
    brought = ExternalSynthetic(without_header(project, sentinel_synthetic(), "synthetic"), control_was_withheld=True)
    result = project.run(project.definitions(source=sentinel_people, synthetic=brought), "synthetic")
    assert "has_any_of_the_columns" in failure_of(result)
    assert_nothing_leaked(project, capfd)


def test_a_table_of_others_without_its_header_is_checked_by_places(project, capfd):
    read = pd.read_csv(without_header(project, sentinel_people(), "shared").path, dtype=str)
    upstream = dg.asset(name="shared", io_manager_key="memory")(lambda: read.assign(**{TEXT: [[1]] * len(read)}))
    definitions = build_privacy_risk_checks(
        assets=UpstreamAsset("shared", "memory"),
        contract=CONTRACT,
        policy=Policy((Limit("smallest_class", 5),)),
        private_path=str(project.private),
    )
    with project.instance() as instance:
        dg.materialize(
            [upstream, *definitions.asset_checks],
            resources={**definitions.resources, "memory": dg.InMemoryIOManager()},
            instance=instance,
            raise_on_error=False,
        )
    assert_nothing_leaked(project, capfd, "Column 'column at position 6' has values of a kind that cannot be compared")


PIVOTED = {f"{TEXT} {number}": 1 for number in range(50)}
"""Columns that are named after cells, as in a pivoted table."""


@pytest.mark.parametrize("kept", [6, 3, 1, 0])
def test_only_names_of_the_contract_are_shown_however_many_of_its_columns_the_table_has(kept):
    contract = TableContract.from_mapping(CONTRACT)
    table = sentinel_people().assign(**PIVOTED)
    table = table[[*contract.columns[:kept], *PIVOTED]]
    for admit in (contract.admit, contract.require_known_columns, partial(in_batches, contract)):
        with pytest.raises(ContractError) as refused:
            admit(table)
        said = f"{refused.value} {refused.value.failures}"
        assert TEXT not in said
        assert "has_any_of_the_columns" in said if not kept else f"(positions {kept}, {kept + 1}, " in said
        assert "30 more" in said or not kept
        assert [name for name in contract.columns[kept:] if name not in said] == []


def in_batches(contract, table):
    admission = BatchAdmission(contract)
    admission.check(table)
    raise refusal(contract, admission.losses())


def csv_file(root, table):
    table.to_csv(root / "people.csv", index=False)
    return TableFile(str(root / "people.csv"))


def ragged_csv_file(root, table):
    source = csv_file(root, table)
    with (root / "people.csv").open("a") as file:
        file.write(f"{TEXT}," * 99 + "\n")
    return source


def csv_file_with_repeated_names(root, table):
    names = [*table.columns[:6], *([TEXT] * (table.shape[1] - 6))]
    return csv_file(root, table.set_axis(names, axis=1))


def parquet_file(root, table):
    table.to_parquet(root / "people.parquet")
    return TableFile(str(root / "people.parquet"))


def parquet_file_with_lists(root, table):
    return parquet_file(root, table.assign(**{TEXT: [[1]] * len(table)}))


def directory(root, table):
    for part in (0, 1):
        table.to_parquet(root / f"{part}.parquet")
    return TableFile(str(root), "parquet")


def directory_of_parts_that_differ(root, table):
    source = directory(root, table)
    table.astype(dict.fromkeys(PIVOTED, str)).to_parquet(root / "1.parquet")
    return source


def directory_with_names_twice(root, table):
    source = directory(root, table)
    below = root / f"{TEXT} 1=2"
    below.mkdir()
    for part in (0, 1):
        (root / f"{part}.parquet").rename(below / f"{part}.parquet")
    return source


def database(root, table):
    pytest.importorskip("sqlalchemy", reason="needs the extra `sql`")
    with sqlite3.connect(root / "people.db") as connection:
        table.to_sql("people", connection, index=False)
    connection.close()
    return SqlQuery("SELECT * FROM people", "PEOPLE_URL")


def duckdb_file(root, table):
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `sql`")
    with duckdb.connect(root / "people.duckdb") as connection:
        connection.register("pivoted", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM pivoted")
    return SqlQuery("SELECT * FROM people", "DUCKDB_URL")


def function(_, table):
    return lambda: table


def function_with_repeated_names(_, table):
    return lambda: pd.concat([table, table], axis=1)


def function_with_numbers_for_names(_, table):
    return lambda: table.rename(columns={name: INTEGER + place for place, name in enumerate(PIVOTED)})


EXTRA = (csv_file, parquet_file, directory, database, duckdb_file, function)
SOURCES = dict.fromkeys(EXTRA, "are not in the contract") | {
    ragged_csv_file: "records with a different number of fields than its header",
    parquet_file_with_lists: "are not in the contract",
    directory_of_parts_that_differ: "Parts have different types in 50 columns (positions 6, 7, ",
    directory_with_names_twice: "named twice, at the levels [1]",
    csv_file_with_repeated_names: "are repeated (positions ",
    function_with_repeated_names: "are repeated (positions ",
    function_with_numbers_for_names: "are not text (positions 6, 7, ",
}


@pytest.mark.parametrize("made", SOURCES, ids=lambda made: made.__name__)
def test_names_of_a_source_that_are_cells_are_not_shown(project, capfd, monkeypatch, made):
    monkeypatch.setenv("PEOPLE_URL", f"sqlite:///{project.root / 'data' / 'people.db'}")
    monkeypatch.setenv("DUCKDB_URL", f"duckdb:///{project.root / 'data' / 'people.duckdb'}")
    source = made(project.root / "data", sentinel_people().assign(**PIVOTED))
    assert not project.run(project.definitions(source=source), "source").success
    assert_nothing_leaked(project, capfd, SOURCES[made])


def test_names_of_columns_of_a_cluster_are_not_shown(monkeypatch):
    columns = [("age", "integer"), (TEXT, "array"), (f"{TEXT} II", "map")]
    monkeypatch.setattr(SparkSource, "_opened", lambda *_: nullcontext((None, None, columns)))
    with pytest.raises(InvalidTableError, match="'position 1': 'array', 'position 2': 'map'") as refused:
        SparkSource(table="people", session=object()).read(None, LocalEngine(), "jobs")
    assert TEXT not in str(refused.value)


def test_names_of_a_side_of_a_split_that_are_cells_are_not_shown(project, capfd):
    split = GivenSplit(sentinel_people, lambda: sentinel_people(40, seed=2).assign(**PIVOTED))
    result = project.run(project.definitions(source=None, split=split), "original", "control")
    assert "50 columns (positions 6, 7, " in failure_of(result)
    assert_nothing_leaked(project, capfd)


def test_a_side_of_a_split_without_a_column_is_refused():
    contract = TableContract.from_mapping(CONTRACT)
    with pytest.raises(ContractError, match="column 'cost' is missing"):
        contract.require_known_columns(sentinel_people().drop(columns="cost"))


@pytest.mark.parametrize("stage", ["seen", "withheld", "shared"])
def test_names_of_tables_of_others_that_are_cells_are_not_shown(project, capfd, stage):
    tables = {
        "seen": sentinel_people(),
        "withheld": sentinel_people(40, seed=2),
        "shared": sentinel_synthetic(),
    }
    tables[stage] = tables[stage].assign(**PIVOTED)

    def made(name):
        return dg.asset(name=name, io_manager_key="memory")(lambda: tables[name])

    definitions = build_privacy_risk_checks(
        assets=UpstreamAsset("shared", "memory"),
        original=UpstreamAsset("seen", "memory"),
        control=UpstreamAsset("withheld", "memory"),
        contract=CONTRACT,
        policy=Policy((Limit("privacy_risk_score", 0.999, "at_most"), Limit("leakage_detected", 0))),
        private_path=str(project.private),
    )
    with project.instance() as instance:
        dg.materialize(
            [*map(made, tables), *definitions.asset_checks],
            resources={**definitions.resources, "memory": dg.InMemoryIOManager()},
            instance=instance,
            raise_on_error=False,
        )
    assert_nothing_leaked(project, capfd, "50 columns (positions ")


@pytest.mark.parametrize("repeats", [False, True])
def test_names_that_a_synthesizer_makes_of_cells_are_not_shown(project, capfd, repeats):
    def one_hot(table):
        made = pd.get_dummies(table, columns=["name_of_plan"])
        return pd.concat([made, made], axis=1) if repeats else made

    definitions = project.definitions(source=enough_sentinel_people, synthetic=Synthesis(Learning(one_hot)))
    failed = project.run(definitions, "source", "original", "control", "synthetic")
    assert "people__synthetic" in [event.step_key for event in failed.all_events if event.is_step_failure]
    assert_nothing_leaked(project, capfd, "did not return the columns it learned|are repeated")


def test_a_column_of_the_contract_that_is_not_released_is_named(project, capfd):
    brought = ExternalSynthetic(lambda: sentinel_people(90).assign(**PIVOTED), control_was_withheld=True)
    result = project.run(project.definitions(source=sentinel_people, synthetic=brought), "synthetic")
    assert "column 'patient' is not released; 50 columns (positions 6, 7, " in failure_of(result)
    assert_nothing_leaked(project, capfd)


class Learning:
    """A synthesizer whose name and settings change with the table that it learns from."""

    def __init__(self, result=None) -> None:
        self.name = "learning"
        self.settings = {"rounds": 1}
        self.result = result

    def fit(self, table, *, seed):
        self.settings["largest"] = int(table["income"].max())
        self.name = str(table["name_of_plan"].iloc[0])
        self.table = table
        return self

    def sample(self, n_records, *, seed):
        return self.table.head(n_records) if self.result is None else self.result(self.table)


def test_a_synthesizer_is_described_as_it_was_before_it_saw_the_table(project, capfd):
    definitions = project.definitions(source=enough_sentinel_people, synthetic=Synthesis(Learning()))
    assert project.run(definitions, "source", "original", "control", "synthetic").success
    assert_nothing_leaked(project, capfd, '"rounds": 1|rounds')


RESULTS = {
    "a class named after a cell": (
        lambda table: type(str(table["name_of_plan"].iloc[0]), (), {})(),
        "returned a subclass of object",
    ),
    "a dtype with a cell": (
        lambda table: table.assign(cost=table["cost"].astype(pd.SparseDtype(float, INTEGER))),
        "SparseDtype instead of float64",
    ),
}


@pytest.mark.parametrize("what", RESULTS)
def test_what_a_synthesizer_returns_is_described_without_cells(project, capfd, what):
    result, message = RESULTS[what]
    definitions = project.definitions(source=enough_sentinel_people, synthetic=Synthesis(Learning(result)))
    failed = project.run(definitions, "source", "original", "control", "synthetic")
    assert "people__synthetic" in [event.step_key for event in failed.all_events if event.is_step_failure]
    assert_nothing_leaked(project, capfd, message)


def test_a_source_that_gives_an_object_of_a_class_named_after_a_cell_shows_no_cell(project, capfd):
    definitions = project.definitions(source=lambda: type(f"{TEXT}-{INTEGER}", (dict,), {})())
    assert "gave a subclass of dict; expected a pandas DataFrame" in failure_of(project.run(definitions, "source"))
    assert_nothing_leaked(project, capfd)


def test_an_error_of_ours_that_an_array_of_others_raises_while_a_contract_is_asked_shows_no_cell(project, capfd):
    class ToldError(ContractError):
        """What a class of others says in place of ours."""

    class Table(pd.DataFrame):
        def __getitem__(self, name):
            raise ToldError(f"{TEXT} {INTEGER}", ((TEXT, TEXT, INTEGER),))

    definitions = project.definitions(source=lambda: Table(sentinel_people()))
    failed = failure_of(project.run(definitions, "source"))
    assert "failed with subclass of ContractError" in failed
    assert_nothing_leaked(project, capfd, "withheld")


def test_checks_of_a_contract_keep_the_names_that_they_had_before_they_saw_a_table():
    def fails(values: pd.Series) -> bool:
        check.name = str(values.iloc[0])
        return False

    check = pa.Check(fails, name="is_plausible")
    contract = TableContract(pa.DataFrameSchema({"plan": pa.Column(str, check, metadata={"role": "other"})}))
    for _ in range(2):
        with pytest.raises(InvalidTableError, match="is_plausible") as refused:
            contract.admit(pd.DataFrame({"plan": [TEXT]}))
        assert TEXT not in str(refused.value)
