"""Checks on assets that exist already: tables of a DuckDB file, as dbt would make them."""

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from privacy_assets.contract.contract import TableContract
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.risk_checks import _evidence_of_synthetic, build_privacy_risk_checks
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.sources import UpstreamAsset
from privacy_assets.orchestration.settings.synthetic import AssessmentSettings
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from tests.orchestration.project import CONTRACT, Project, blocked_by, failure_of, people, synthetic_people

duckdb = pytest.importorskip("duckdb", reason="needs the extra `sql`")


class DuckTables(dg.IOManager):
    """Tables of one DuckDB file, by the last part of the asset key."""

    def __init__(self, path):
        self.path = str(path)

    def handle_output(self, context, obj):
        with duckdb.connect(self.path) as connection:
            connection.register("made", obj)
            connection.execute(f"CREATE OR REPLACE TABLE {context.asset_key.path[-1]} AS SELECT * FROM made")

    def load_input(self, context):
        with duckdb.connect(self.path) as connection:
            return connection.execute(f"SELECT * FROM {context.asset_key.path[-1]}").df()


def made(name, make):
    @dg.asset(name=name, io_manager_key="warehouse", key_prefix="dbt")
    def table():
        return make()

    return table


def upstream(name):
    return UpstreamAsset(f"dbt/{name}", io_manager_key="warehouse")


def run(project: Project, assets, definitions):
    @dg.asset(deps=[dg.AssetKey(["dbt", "shared"])])
    def mailed():
        return None

    with project.instance() as instance:
        return dg.materialize(
            [*assets, mailed, *definitions.asset_checks],
            resources={**definitions.resources, "warehouse": DuckTables(project.root / "warehouse.duckdb")},
            instance=instance,
            raise_on_error=False,
        )


def synthetic_assets(synthetic):
    return [
        made("seen", lambda: people(240, 1)),
        made("unseen", lambda: people(60, 2)),
        made("shared", synthetic),
    ]


def synthetic_checks(project, limit):
    return build_privacy_risk_checks(
        assets=upstream("shared"),
        original=upstream("seen"),
        control=upstream("unseen"),
        contract=CONTRACT,
        policy=Policy(
            (Limit("privacy_risk_score", limit, "at_most"), Limit("leakage_detected", 0)),
            RequiredSettings(control_records=40, detectable_share=None),
        ),
        assessment=AssessmentSettings(max_baseline_cols=3, n_matched_samples=2),
        private_path=str(project.private),
    )


def test_synthetic_records_are_assessed_where_they_are_and_what_comes_after_is_blocked(project):
    assets = synthetic_assets(lambda: synthetic_people(180, 3))
    refused = run(project, assets, synthetic_checks(project, 0.0))
    assert blocked_by(refused) == {"privacy_risk_score_is_at_most_its_limit"}
    assert not refused.asset_materializations_for_node("mailed")
    admitted = run(project, assets, synthetic_checks(project, 0.999))
    assert admitted.success, failure_of(admitted)
    assert admitted.asset_materializations_for_node("mailed")
    scores = {each.check_name: each.metadata.get("score") for each in admitted.get_asset_check_evaluations()}
    assert scores["privacy_risk_score_is_at_most_its_limit"].value > 0
    assert "mpucc_assessment_settings_meet_the_policy" in scores


def test_copies_are_detected(project):
    copies = synthetic_assets(lambda: people(240, 1).drop(columns="patient"))
    assert "no_leakage_is_detected" in blocked_by(run(project, copies, synthetic_checks(project, 0.999)))


def test_values_of_few_people_are_counted_where_the_records_are(project):
    def jobs(n_records, seed, rare):
        table = people(n_records, seed)[["patient", "age"]]
        table["job"] = np.where(table.index < rare, "diver", "cook")
        table.loc[: rare - 1, "patient"] = "the diver"
        return table

    contract = {
        "columns": {name: CONTRACT["columns"][name] for name in ("patient", "age")}
        | {"job": {"type": "text", "role": "other"}}
    }

    def checked(limit, made_up):
        definitions = build_privacy_risk_checks(
            assets=upstream("shared"),
            original=upstream("seen"),
            control=upstream("unseen"),
            contract=contract,
            policy=Policy((Limit("privacy_risk_score", 1), limit)),
            assessment=AssessmentSettings(n_matched_samples=2),
            private_path=str(project.private),
        )
        shared = people(100, 3)[["age"]].assign(job=made_up)
        # One person on both sides: six records, one diver.
        tables = [
            made("seen", lambda: jobs(240, 1, 3)),
            made("unseen", lambda: jobs(60, 2, 3)),
            made("shared", lambda: shared),
        ]
        result = run(project, tables, definitions)
        return {each.check_name: each for each in result.get_asset_check_evaluations()}

    name = "rare_values_released_is_at_most_its_limit"
    found = checked(Limit("rare_values_released", 0), ["diver", "cook"] * 50)[name]
    assert not found.passed
    assert "shared by fewer than 3 people, by column: 'job': 1" in found.description
    assert checked(Limit("rare_values_released", 0), "cook")[name].passed


def banded(width: int) -> pd.DataFrame:
    table = people(240, 1)
    bands = table["age"] // width * width
    return table[["cost"]].assign(age_band=bands.astype(str), plan=table["plan"])


@pytest.mark.parametrize(("width", "released"), [(20, True), (2, False)])
def test_records_that_were_anonymized_elsewhere_are_measured(project, width, released):
    definitions = build_privacy_risk_checks(
        assets=[upstream("shared")], contract=CONTRACT, policy="research_sharing", private_path=str(project.private)
    )
    result = run(project, [made("shared", lambda: banded(width))], definitions)
    assert result.success == released
    assert blocked_by(result) - {"share_in_homogeneous_classes_is_at_most_its_limit"} == (
        set() if released else {"smallest_class_is_at_least_its_limit"}
    )
    sizes = banded(width).groupby(["age_band", "plan"]).size()
    evaluations = {each.check_name: each for each in result.get_asset_check_evaluations()}
    assert evaluations["smallest_class_is_at_least_its_limit"].metadata["score"].value == sizes.min()


@pytest.mark.parametrize("rows_each", [1, 30])
@pytest.mark.parametrize("role", ["direct_identifier", "quasi_identifier", "other"])
def test_a_table_that_still_says_who_is_who_is_refused(project, role, rows_each):
    contract = {"columns": CONTRACT["columns"] | {"patient": {"type": "text", "role": role, "person": True}}}
    plans = people(240, 1)[["patient", "cost"]].assign(plan=["free", "family", "single"] * 80)
    table = pd.concat([plans] * rows_each)
    definitions = build_privacy_risk_checks(
        assets=upstream("shared"), contract=contract, policy="research_sharing", private_path=str(project.private)
    )
    result = run(project, [made("shared", lambda: table)], definitions)
    evaluations = {each.check_name: each for each in result.get_asset_check_evaluations()}
    size = evaluations["smallest_class_is_at_least_its_limit"].metadata["score"].value
    assert (
        blocked_by(result) - {"share_in_homogeneous_classes_is_at_most_its_limit"}
        == {
            "direct_identifier": {"no_direct_identifier_is_left", "smallest_class_is_at_least_its_limit"},
            "quasi_identifier": {"smallest_class_is_at_least_its_limit"},
            # A pseudonym that nobody knows counts people, and not rows.
            "other": set(),
        }[role]
    )
    assert size == (80 if role == "other" else 1)
    if role == "direct_identifier":
        assert "still has the columns ['patient']" in evaluations["no_direct_identifier_is_left"].description
        assert not result.asset_materializations_for_node("mailed")


def test_a_table_that_breaks_the_contract_fails_with_counts(project):
    broken = synthetic_assets(lambda: synthetic_people(180, 3).assign(age=-1))
    assert "column 'age'" in failure_of(run(project, broken, synthetic_checks(project, 0.999)))


def test_a_partition_is_checked_by_itself_whatever_its_asset_is_called(tmp_path):
    key = ["marts", "my-model"]
    sizes = {"2025": 20, "2026": 2}

    @dg.asset(key=key, io_manager_key="lake", partitions_def=dg.StaticPartitionsDefinition([*sizes, "never made"]))
    def shared(context: dg.AssetExecutionContext):
        return banded(sizes[context.partition_key])

    definitions = build_privacy_risk_checks(
        assets=UpstreamAsset("marts/my-model", io_manager_key="lake"),
        contract=CONTRACT,
        policy=Policy((Limit("smallest_class", 5),)),
        private_path=str(tmp_path / "private"),
    )
    resources = {**definitions.resources, "lake": dg.FilesystemIOManager(base_dir=str(tmp_path / "lake"))}
    with dg.DagsterInstance.ephemeral() as instance:

        def run_of(partition, selection=None):
            return dg.materialize(
                [shared, *definitions.asset_checks],
                resources=resources,
                instance=instance,
                partition_key=partition,
                raise_on_error=False,
                selection=selection,
            )

        found = {partition: run_of(partition) for partition in sizes}
        assert {partition: result.success for partition, result in found.items()} == {"2025": True, "2026": False}
        for partition, result in found.items():
            checks = {each.check_name: each for each in result.get_asset_check_evaluations()}
            expected = banded(sizes[partition]).groupby(["age_band", "plan"]).size().min()
            assert checks["smallest_class_is_at_least_its_limit"].metadata["score"].value == expected
        alone = run_of(None, dg.AssetSelection.checks_for_assets(dg.AssetKey(key)))
        assert "marts/my-model has partitions, and the run selects none of them" in failure_of(alone)


def test_checks_stand_beside_a_release_in_one_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checks = build_privacy_risk_checks(assets=UpstreamAsset("marts/shared"), contract=CONTRACT, policy="development")
    release = build_release_definitions(
        "people", source=people, contract=CONTRACT, policy="development", anonymized=AnonymizationSettings()
    )
    merged = dg.Definitions.merge(release, checks)
    assert set(merged.resources) == {*release.resources, *checks.resources}


def test_names_of_steps_are_valid_and_different():
    keys = ["marts/my-model", "marts/my_model", "marts/my.model"]
    names = [
        build_privacy_risk_checks(assets=UpstreamAsset(key), contract=CONTRACT, policy="development").asset_checks
        for key in keys
    ]
    assert len({checks[0].op.name for checks in names}) == len(keys)


def test_a_table_of_which_nothing_is_known_to_anybody_is_said_to_be_that(project):
    definitions = build_privacy_risk_checks(
        assets=upstream("shared"), contract=CONTRACT, policy="development", private_path=str(project.private)
    )
    result = run(project, [made("shared", lambda: people(60, 1)[["cost"]])], definitions)
    assert "An attacker knows none of the 1 columns of the table" in failure_of(result)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"assets": []}, "`assets` is empty"),
        ({"assets": "shared"}, r"given as \['str'\]; expected UpstreamAsset, such as"),
        ({"original": dg.AssetKey("seen")}, r"given as \['AssetKey'\]; expected UpstreamAsset"),
        ({"original": upstream("seen")}, "limits leakage, which is measured against"),
        ({"policy": Policy((Limit("privacy_risk_score", 0.1),))}, "no limit of severity 'error' .* anonymized"),
        ({"original": upstream("seen"), "policy": Policy((Limit("smallest_class", 5),))}, "synthetic records alone"),
        ({"policy": Policy((Limit("suppressed_share", 0.1),))}, "anonymized records alone"),
        (
            {"policy": Policy((Limit("smallest_class", 3), Limit("max_reidentification_probability", 0.05)))},
            "cannot be measured on a table alone",
        ),
    ],
)
def test_what_cannot_be_checked_is_refused_when_the_checks_are_built(settings, message):
    with pytest.raises(InvalidSettingError, match=message):
        build_privacy_risk_checks(
            **({"assets": upstream("shared"), "contract": CONTRACT, "policy": "development"} | settings)
        )


def visits(seed):
    """Five records of each of 200 people, none like another."""
    random, n = np.random.default_rng(seed), 1000
    numbers = {name: random.integers(0, 9, n) for name in ("a", "b", "c")}
    return pd.DataFrame(
        {
            "patient": [f"{seed}-{number // 5}" for number in range(n)],
            **numbers,
            "d": random.choice(list("uvwxyz"), n),
            "e": random.integers(0, 40, n),
        }
    )


def test_all_records_of_a_person_are_tested_for_leakage():
    original, control, synthetic = visits(0), visits(1), visits(2).drop(columns="patient")
    copied = original.groupby("patient").tail(1).drop(columns="patient")
    synthetic.iloc[: len(copied)] = copied.to_numpy()
    columns = {name: {"type": "integer", "role": "quasi_identifier"} for name in ("a", "b", "c", "e")}
    columns["d"] = {"type": "text", "role": "quasi_identifier"}
    columns["patient"] = {"type": "text", "role": "direct_identifier", "person": True}
    evidence = _evidence_of_synthetic(
        TableContract.from_mapping({"columns": columns}),
        Policy((Limit("leakage_detected", 0.0),), RequiredSettings(detectable_share=0.2, people_per_value=None)),
        AssessmentSettings(max_baseline_cols=3),
        DisclosureSettings(),
        synthetic.convert_dtypes(),
        {"original": original, "control": control},
    )
    assert evidence.assessments["disclosure_assessment"].metrics["leakage_detected"] == 1.0
