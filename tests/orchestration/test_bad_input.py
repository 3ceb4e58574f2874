"""Bad input through Dagster: the error says what was found and what to do, and earlier releases stay."""

import re

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.settings.sources import SqlQuery, TableFile, UpstreamAsset
from privacy_assets.orchestration.settings.synthetic import (
    AssessmentSettings,
    ExternalSynthetic,
    GivenSplit,
    Split,
    Synthesis,
)
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.verification import verify_release
from tests.orchestration.project import ADMITS, CONTRACT, Project, failure_of, people, synthetic_people


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("released"))
    project.write_tables()
    assert project.run(project.definitions()).success
    return project


BAD_TABLES = {
    "missing column": (lambda table: table.drop(columns="age"), "column 'age' is missing"),
    "extra column": (lambda table: table.assign(notes="x"), r"1 columns \(positions \d\) are not in the contract"),
    "wrong type": (lambda table: table.assign(age=[f"{age} years" for age in table["age"]]), "age"),
    "out of range": (
        lambda table: table.assign(age=table["age"] + 100),
        r"column 'age' fails less_than_or_equal_to\(120\) in \d+ records",
    ),
    "all-missing column": (lambda table: table.assign(plan=None), "plan"),
    "repeated names": (lambda table: pd.concat([table, table[["age"]]], axis=1), "1 are repeated"),
    "no rows": (lambda table: table.iloc[:0], "there are no records"),
    "infinity": (lambda table: table.assign(cost=[np.inf, *table["cost"].iloc[1:]]), "cost"),
    "times with and without a zone": (
        lambda table: table.assign(
            joined=[
                date.tz_localize("Europe/Paris" if number % 2 else None) for number, date in enumerate(table["joined"])
            ]
        ),
        "joined",
    ),
}


@pytest.mark.parametrize("side", ["source", "synthetic"])
@pytest.mark.parametrize("bad", BAD_TABLES)
def test_a_bad_table_is_named_and_the_earlier_release_stays(released, side, bad):
    damage, message = BAD_TABLES[bad]
    make = people if side == "source" else synthetic_people

    def table():
        return damage(make(200, seed=50))

    before = {path: path.read_bytes() for path in released.everything_released()}
    bad_side = (
        {"source": table} if side == "source" else {"synthetic": ExternalSynthetic(table, control_was_withheld=True)}
    )
    result = released.run(released.definitions(**bad_side))
    assert not result.success
    assert re.search(message, failure_of(result)), failure_of(result)
    failed_checks = [each.check_name for each in result.get_asset_check_evaluations() if not each.passed]
    assert failed_checks in (["source_keeps_its_contract"], ["synthetic_keeps_the_contract"])
    assert {path: path.read_bytes() for path in released.everything_released()} == before
    assert all(verify_release(path, max_bytes=None).verified for path in released.releases())


def test_a_single_person_cannot_be_split_and_is_said(released):
    result = released.run(released.definitions(source=lambda: people(1, 0)))
    assert "has 1 person; a split needs one on each side" in failure_of(result)


def test_a_constant_column_goes_through(released):
    definitions = released.definitions(
        source=lambda: people(300, 0).assign(plan="free"),
        synthetic=ExternalSynthetic(lambda: synthetic_people(150, 9).assign(plan="free"), control_was_withheld=True),
    )
    assert released.run(definitions).success


def test_a_file_that_is_not_there_is_named(released):
    result = released.run(released.definitions(source=TableFile("no/such/people.csv")))
    assert "There is no file 'no/such/people.csv'" in failure_of(result)


ARGUMENTS = {"contract": CONTRACT, "policy": "development", "source": TableFile("people.csv")}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"policy": "public"}, "no use case 'public'"),
        ({"contract": {"columns": {"age": {"type": "integer", "role": "identifier"}}}}, "identifier"),
        ({"contract": {"columns": {"age": {"type": "integer"}}}}, "age"),
        ({"contract": "no.such.module:contract"}, "no.such.module"),
        ({"formats": ["xlsx"]}, "xlsx"),
        ({"assessment": AssessmentSettings(max_baseline_cols=0)}, "max_baseline_cols is 0"),
        ({"assessment": AssessmentSettings(max_baseline_cols=-2)}, "max_baseline_cols is -2"),
        ({"assessment": AssessmentSettings(renyi_alpha=-1)}, "renyi_alpha is -1"),
        ({"assessment": AssessmentSettings(field_decay_factor=1.5)}, "field_decay_factor is 1.5"),
        ({"assessment": AssessmentSettings(min_entropy_delta=-0.1)}, "min_entropy_delta is -0.1"),
        ({"assessment": AssessmentSettings(numeric_precision=-1)}, "numeric_precision"),
        ({"assessment": AssessmentSettings(datetime_precision="fortnight")}, "fortnight"),
        ({"assessment": AssessmentSettings(max_combinations=3)}, "max_combinations is 3. Expected at least 4"),
        ({"source": None}, "it has neither"),
        ({"split": GivenSplit(TableFile("a.csv"), TableFile("b.csv"))}, "it has both"),
        *(
            ({"synthetic": Synthesis("smooth_cart", settings={"group": name})}, f"`group` .* is '{name}', which is a")
            for name in ("town", "patient")
        ),
    ],
)
def test_a_bad_setting_is_refused_when_the_definitions_are_built(changed, message):
    with pytest.raises(InvalidSettingError, match=message):
        build_release_definitions("people", **(ARGUMENTS | changed))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Split(train_fraction=1.0), "train_fraction.* is 1.0"),
        (lambda: Split(seed=-1), "seed.* is -1"),
        (lambda: Synthesis("gan"), "no synthesizer named 'gan'"),
        (lambda: Synthesis(settings={"leaves": 5}), r"no settings \['leaves'\]"),
        (lambda: Synthesis(n_records=0), "n_records.* is 0"),
        (lambda: Synthesis(object()), "lacks"),
    ],
)
def test_a_bad_setting_of_a_stage_is_refused_when_it_is_made(make, message):
    with pytest.raises(InvalidSettingError, match=message):
        make()


@pytest.mark.parametrize("name", ["", "two words", "1st", "a/b", "a-b"])
def test_a_name_that_makes_no_asset_key_is_refused(name):
    with pytest.raises(InvalidSettingError, match="expected letters, digits and underscores"):
        build_release_definitions(name, **ARGUMENTS)


def test_columns_that_link_the_rows_of_a_person_are_refused_with_partitions():
    reason = {"links_rows": "Needed to follow people, says the data office"}
    contract = {"columns": CONTRACT["columns"] | {"plan": CONTRACT["columns"]["plan"] | reason}}
    by_year = {"partitions_def": dg.StaticPartitionsDefinition(["2025"]), "source": TableFile("{partition_key}.csv")}
    build_release_definitions("people", **ARGUMENTS | {"contract": contract})
    with pytest.raises(InvalidSettingError, match=r"has partitions.*lets \['plan'\] link the rows of a person"):
        build_release_definitions("people", **ARGUMENTS | by_year | {"contract": contract})


def test_a_format_that_cannot_be_told_is_refused():
    with pytest.raises(InvalidSettingError, match=r"expected one of \['csv', 'parquet'\]"):
        TableFile("people.xlsx")
    assert TableFile("people.data", format="csv").resolved_format == "csv"


def test_a_table_narrower_than_the_required_combinations_is_searched_in_full(tmp_path):
    project = Project(tmp_path)
    narrow = {"columns": {name: CONTRACT["columns"][name] for name in ("patient", "age", "plan")}}
    definitions = project.definitions(
        contract=narrow,
        assessment=None,
        policy=Policy((Limit("privacy_risk_score", 0.999, "at_most"),)),
        source=lambda: people(300, 1)[["patient", "age", "plan"]],
        synthetic=ExternalSynthetic(lambda: synthetic_people(300, 2)[["age", "plan"]], control_was_withheld=True),
    )
    assert project.run(definitions).success
    assert len(project.releases()) == 1


@pytest.mark.parametrize("kind", ["csv", "sql", "upstream", "given split", "made here", "partition function"])
def test_a_table_comes_from_wherever_it_is(tmp_path, monkeypatch, kind):
    project = Project(tmp_path)
    project.write_tables()
    settings, extra, partition = {}, [], None
    if kind == "csv":
        people(300, 1).to_csv(tmp_path / "people.csv", index=False)
        settings = {"source": TableFile(str(tmp_path / "people.csv"))}
    elif kind == "sql":
        sqlalchemy = pytest.importorskip("sqlalchemy", reason="needs the extra `sql`")
        engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'people.db'}")
        people(300, 1).to_sql("people", engine, index=False)
        engine.dispose()
        monkeypatch.setenv("PEOPLE_URL", f"sqlite:///{tmp_path / 'people.db'}")
        settings = {"source": SqlQuery("SELECT * FROM people", "PEOPLE_URL")}
    elif kind == "upstream":

        @dg.asset(key=["warehouse", "people"], io_manager_key="private_tables")
        def warehouse_people():
            return people(300, 1)

        extra, settings = (
            [warehouse_people],
            {"source": UpstreamAsset("warehouse/people", io_manager_key="private_tables")},
        )
    elif kind == "given split":
        settings = {"source": None, "split": GivenSplit(lambda: people(200, 1), lambda: people(60, 2))}
    elif kind == "made here":
        settings = {"synthetic": Synthesis("gaussian_copula")}
    else:
        project = Project(tmp_path, partitions=("a",))
        project.write_tables(partition="a")
        seen = []
        partition = "a"
        settings = {"source": lambda partition_key: seen.append(partition_key) or people(300, 1)}
    definitions = project.definitions(ADMITS, **settings)
    with project.instance() as instance:
        result = dg.materialize(
            [*extra, *definitions.assets, *definitions.asset_checks],
            resources=dict(definitions.resources),
            instance=instance,
            partition_key=partition,
            raise_on_error=False,
        )
    assert result.success, failure_of(result)
    assert len(project.releases(partition)) == 1
    if kind == "partition function":
        assert seen == ["a"]
