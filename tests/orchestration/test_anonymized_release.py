"""The anonymized side: released when its classes are what the policy asks for, and by no way around it."""

import copy
import json
import shutil
from dataclasses import replace

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize_with
from privacy_assets.anonymization.settings import LDiversity
from privacy_assets.contract.contract import TableContract, resolve_contract
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration import anonymized_assets
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import ExternalSynthetic, GivenSplit
from privacy_assets.pipeline.settings.semantic_risk import SemanticRiskSettings
from privacy_assets.release import files
from privacy_assets.release.files import read_anonymized_release
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.algorithms import VERSIONS
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from tests.orchestration.project import (
    CONTRACT,
    NAME,
    Project,
    blocked_by,
    failure_of,
    key,
    people,
    refusal,
    report_by_hand,
)

RELEASE = "anonymized_release"
SMALLEST = "smallest_class_is_at_least_its_limit"


def policy_of(smallest: float = 5, *limits: Limit) -> Policy:
    return Policy((Limit("smallest_class", smallest), *limits))


def definitions_of(project, smallest=5, *limits, k=None, **settings):
    given = settings.pop("anonymized", AnonymizationSettings(k=k))
    return project.definitions(
        **({"synthetic": None, "policy": policy_of(smallest, *limits), "anonymized": given} | settings)
    )


def run_release(project, definitions, partition=None):
    return project.run(definitions, RELEASE, partition=partition)


def refused_because(project, definitions, partition=None):
    return project.refused_because(definitions, "anonymized", partition)


def assert_refused(project, result, reason):
    assert reason in refusal(result, "anonymized")
    assert project.everything_released() == []


def assert_released(project, result, partition=None):
    assert result.success, failure_of(result)
    assert len(project.releases(partition, "anonymized")) == 1


def released_table(project):
    written = project.releases(side="anonymized")[-1]
    return pd.read_parquet(written / "anonymized.parquet"), json.loads((written / "manifest.json").read_text())


def visits(n_people: int = 60, seed: int = 1) -> pd.DataFrame:
    """Make people of whom everybody has five records that differ in the cost alone: five rows are one person."""
    table = people(n_people, seed).loc[np.repeat(np.arange(n_people), 5)].reset_index(drop=True)
    # The cost of a person's first record would otherwise show the others.
    return table.assign(cost=np.random.default_rng(seed).permutation(5 * n_people) / 2)


def _anonymized(project):
    definitions = definitions_of(project)
    assert project.run(definitions, "source", "anonymized").success
    assert refused_because(project, definitions) == ""


def test_a_source_in_parts_is_released_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FEWEST_ROWS_PER_PART", 1)
    project = Project(tmp_path)
    table = people(90, seed=0)
    for place in range(3):
        part = tmp_path / "parts" / str(place) / "0.parquet"
        part.parent.mkdir(parents=True)
        table.iloc[30 * place : 30 * (place + 1)].to_parquet(part, index=False)
    settings = {"source": TableFile(str(tmp_path / "parts"), "parquet"), "rows_per_part": 40}
    assert_released(project, project.run(definitions_of(project, **settings)))
    released, manifest = released_table(project)
    assert len(released) == sum(manifest["parts"]["rows"])
    assert manifest["parts"]["rows_per_part"] == 40
    assert verify_release(project.releases(side="anonymized")[-1], max_bytes=None).verified
    read, _, _ = read_anonymized_release(project.releases(side="anonymized")[-1])
    pd.testing.assert_frame_equal(read, released)


def test_the_source_alone_is_anonymized_verified_and_released(project):
    definitions = definitions_of(project)
    assert {asset_key.path[-1] for asset in definitions.assets for asset_key in asset.keys} == {
        "source",
        "anonymized",
        RELEASE,
    }
    result = project.run(definitions)
    assert_released(project, result)
    table, manifest = released_table(project)
    generalized = ["age", "age_low", "age_high", "plan", "plan_values", "joined", "joined_low", "joined_high"]
    assert list(table.columns) == [*generalized, "cost"]
    assert table.groupby(generalized, observed=True).size().min() >= 5
    original = pd.read_parquet(project.root / "data" / "people.parquet")
    assert sorted(table["cost"]) == sorted(original["cost"])
    assert [each["role"] for each in manifest["columns"]] == ["quasi_identifier"] * 8 + ["sensitive"]
    assert [each.get("generalizes") for each in manifest["columns"]][:3] == ["age"] * 3
    assert manifest["figures"]["anonymity"]["k_people"] >= 5
    assert manifest["figures"]["model"]["age"] == {
        "kind": "interval", "low": "age_low", "high": "age_high", "includes_high": True, "missing": None
    }  # fmt: skip
    assert manifest["settings"]["anonymized"]["k"] == 5
    assert "seed" not in manifest["settings"]["anonymized"]
    assert {verdict["metric"]: verdict["value"] for verdict in manifest["verdicts"] if verdict["metric"]} == {
        "smallest_class": manifest["figures"]["anonymity"]["k_people"],
        "share_in_homogeneous_classes": 0.0,
    }
    checks = {each.check_name: each for each in result.get_asset_check_evaluations()}
    assert set(checks) == {
        "source_keeps_its_contract",
        "rows_belong_to_the_declared_people",
        "no_identifying_column_leaves_undecided",
        "enough_memory",
        "every_class_has_at_least_k_records",
        SMALLEST,
        "share_in_homogeneous_classes_is_at_most_its_limit",
        "release_gate",
        "release_is_not_withdrawn",
        "review_is_not_overdue",
    }
    lineage = result.asset_materializations_for_node("people__anonymized")[0].metadata["dagster/column_lineage"].value
    assert lineage.deps_by_column["age_low"] == [dg.TableColumnDep(key("source"), "age")]
    assert lineage.deps_by_column["cost"] == [dg.TableColumnDep(key("source"), "cost")]
    assert checks[SMALLEST].metadata["score"].value >= checks[SMALLEST].metadata["limit"].value == 5.0


def test_what_the_policy_asks_for_is_what_the_anonymization_aims_at(project):
    limits = (Limit("l_diversity", 3), Limit("t_closeness", 0.4), Limit("suppressed_share", 0.0001))
    result = project.run(definitions_of(project, 7, *limits))
    assert_released(project, result)
    _, manifest = released_table(project)
    values = {verdict["metric"]: verdict["value"] for verdict in manifest["verdicts"] if verdict["metric"]}
    assert values["smallest_class"] >= 7
    assert values["l_diversity"] >= 3
    assert values["t_closeness"] <= 0.4
    assert values["suppressed_share"] == 0


def test_classes_smaller_than_the_policy_asks_for_are_refused_in_every_run(project):
    definitions = definitions_of(project, smallest=6, k=3)
    refused = project.run(definitions)
    assert blocked_by(refused) == {SMALLEST}
    assert project.everything_released() == []
    assert refused_because(project, definitions) == "smallest_class is 3; expected at least 6"
    unchecked = definitions.assets
    with project.instance() as instance:
        alone = dg.materialize(
            [asset for asset in unchecked if key(RELEASE) in asset.keys],
            resources=dict(definitions.resources),
            instance=instance,
            raise_on_error=False,
        )
    assert_refused(project, alone, "smallest_class is 3")
    assert_released(project, project.run(definitions_of(project, smallest=6)))
    assert released_table(project)[1]["refusals_before"] == 2


def test_a_warning_is_written_but_does_not_refuse(project):
    project.begin_as(_anonymized)
    assert_released(project, run_release(project, definitions_of(project, 5, Limit("information_loss", 0.001))))
    _, manifest = released_table(project)
    failed = [verdict for verdict in manifest["verdicts"] if verdict["metric"] and not verdict["passed"]]
    assert [verdict["metric"] for verdict in failed] == ["information_loss"]


@pytest.mark.parametrize(
    ("anonymized", "limits", "reason"),
    [
        (AnonymizationSettings(k=500), (), "k is 500, but the table has 300 people"),
        (AnonymizationSettings(k=5), (Limit("l_diversity", 10_000),), "10000"),
    ],
)
def test_what_no_anonymization_can_reach_is_refused_with_counts(project, anonymized, limits, reason):
    failed = project.run(definitions_of(project, 5, *limits, anonymized=anonymized))
    assert reason in failure_of(failed)
    assert project.everything_released() == []
    assert "no run made the latest anonymized" in refused_because(project, definitions_of(project))


def test_rows_of_one_person_are_no_class(project):
    settings = {"source": visits, "anonymized": AnonymizationSettings(k=4)}
    released = project.run(definitions_of(project, 4, **settings))
    assert_released(project, released)
    _, manifest = released_table(project)
    report = manifest["figures"]["anonymity"]
    assert report["k_people"] >= 4
    assert report["k"] >= 5 * report["k_people"]
    # Five rows of one person satisfy k = 5 in rows; in people they are a class of one.
    anonymous = copy.deepcopy(CONTRACT)
    del anonymous["columns"]["patient"]["person"]
    anonymous["one_row_per_person"] = True
    in_rows = project.run(definitions_of(project, 4, contract=anonymous, **settings))
    assert "'patient' repeats" in failure_of(in_rows)
    for column in anonymous["columns"].values():
        column["not_a_person"] = "Nobody is meant; A. Lovelace decided"
    in_rows = project.run(definitions_of(project, 4, contract=anonymous, **settings))
    assert in_rows.success
    assert "does not meet the current contract" in refused_because(project, definitions_of(project, 4, **settings))


def test_an_anonymized_table_of_an_earlier_source_is_stale(project):
    definitions = definitions_of(project)
    project.begin_as(_anonymized)
    project.write_tables(seed=9)
    later = project.run(definitions, "source", RELEASE)
    assert_refused(project, later, "made from an earlier version of ['source']")
    assert_released(project, project.run(definitions, "anonymized", RELEASE))


@pytest.mark.parametrize("stage", ["source", "anonymized"])
def test_a_materialization_that_was_reported_by_hand_is_no_evidence(project, stage):
    definitions = definitions_of(project)
    project.begin_as(_anonymized)
    report_by_hand(project, stage)
    reason = "by hand" if stage == "anonymized" else "earlier version of ['source']"
    assert reason in refused_because(project, definitions)


def test_a_source_that_was_overwritten_outside_dagster_is_refused(project):
    definitions = definitions_of(project)
    project.begin_as(_anonymized)
    with project.kept("source"):
        source = read_artifact(project.stored("source")).frames["table"]
        write_artifact(project.stored("source"), Artifact.of_table(source.assign(patient=np.arange(len(source)) + 7)))
        assert "['source'] is not what the run recorded" in refused_because(project, definitions)
    assert refused_because(project, definitions) == ""


@pytest.mark.parametrize("edit", ["table", "members", "header", "another kind", "cut off"])
def test_an_anonymized_table_that_was_edited_is_refused(project, edit):
    definitions = definitions_of(project)
    project.begin_as(_anonymized)
    path = project.stored("anonymized")
    stored = read_artifact(path)
    frames = dict(stored.frames)
    if edit == "table":
        original = pd.read_parquet(project.root / "data" / "people.parquet")
        frames["table"] = frames["table"].assign(cost=original["cost"].to_numpy())
    elif edit == "members":
        frames["members"] = frames["members"].assign(row=frames["members"]["row"].to_numpy()[::-1])
    header = {**stored.header, "stats": {**stored.header["stats"], "information_loss": 0.0}}
    changed = replace(stored, frames=frames, header=header if edit == "header" else stored.header)
    if edit == "another kind":
        changed = Artifact.of_table(frames["table"])
    with project.kept("anonymized"):
        write_artifact(path, changed)
        if edit == "cut off":
            (path / "header.json").write_text("{")
        assert "not what the run recorded" in refused_because(project, definitions)
        if edit == "table":
            assert_refused(project, run_release(project, definitions), "not what the run recorded")
    assert refused_because(project, definitions) == ""


@pytest.mark.parametrize("bounds", ["tight", "cell"])
def test_a_loss_that_is_not_that_of_the_labels_is_refused_though_a_run_recorded_it(project, monkeypatch, bounds):
    definitions = definitions_of(project, anonymized=AnonymizationSettings(bounds=bounds))

    def embellished(*arguments, **settings):
        found = anonymize_with(*arguments, **settings)
        return replace(found, stats=found.stats | {"information_loss": found.stats["information_loss"] - 1e-6})

    monkeypatch.setattr(anonymized_assets, "anonymize_with", embellished)
    assert "differ from those of the table that would be released" in failure_of(
        project.run(definitions, "source", "anonymized")
    )
    with monkeypatch.context() as patch:
        patch.setattr(anonymized_assets, "require_measured", lambda *_: None)
        # The check of the limit measures as the gate does.
        assert SMALLEST in blocked_by(project.run(definitions, "anonymized"))
    assert "anonymized could not be measured: The stored figures" in refused_because(project, definitions)
    monkeypatch.undo()
    assert project.run(definitions, "anonymized").success
    assert refused_because(project, definitions) == ""


def test_a_contract_that_changed_since_is_asked_again(project):
    project.begin_as(_anonymized)
    for column, role in (("cost", "quasi_identifier"), ("plan", "direct_identifier"), ("plan", "other")):
        stricter = copy.deepcopy(CONTRACT)
        stricter["columns"][column]["role"] = role
        changed = definitions_of(project, contract=stricter)
        assert "does not meet the current contract" in refused_because(project, changed)
    narrower = copy.deepcopy(CONTRACT)
    narrower["columns"]["age"]["max"] = 30
    changed = definitions_of(project, contract=narrower)
    assert "does not meet the current contract" in refused_because(project, changed)
    assert refused_because(project, definitions_of(project)) == ""


def test_a_table_by_another_version_of_the_algorithm_is_refused(project, monkeypatch):
    definitions = definitions_of(project)
    project.begin_as(_anonymized)
    with monkeypatch.context() as earlier:
        earlier.setitem(VERSIONS, "anonymization", 0)
        assert project.run(definitions, "anonymized").success
        assert refused_because(project, definitions) == ""
    reason = "another version of the algorithm made anonymized; expected anonymization/2"
    assert refused_because(project, definitions) == reason


def test_a_partition_is_held_by_its_own_evidence(tmp_path):
    project = Project(tmp_path, partitions=("a", "b"))
    for seed, partition in enumerate(project.partitions, start=1):
        project.write_tables(seed, partition)
    definitions = definitions_of(project)
    assert_released(project, project.run(definitions, partition="a"), "a")
    loose = definitions_of(project, 2, k=2)
    project.run(loose, "source", "anonymized", partition="b")
    assert "smallest_class is 2" in refusal(run_release(project, definitions, "b"), "anonymized")
    assert project.releases("b", "anonymized") == []
    assert refused_because(project, definitions, "a") == ""
    # The table of one partition cannot be put in the place of another's.
    shutil.copytree(project.stored("anonymized", "a"), project.stored("anonymized", "b"), dirs_exist_ok=True)
    assert "not what the run recorded" in refused_because(project, definitions, "b")
    assert_released(project, project.run(definitions, "anonymized", RELEASE, partition="b"), "b")


def test_both_sides_are_held_by_their_own_limits(project):
    def both(score, smallest):
        policy = Policy(
            (Limit("privacy_risk_score", score, "at_most"), Limit("smallest_class", smallest)),
            RequiredSettings(control_records=40, detectable_share=None),
        )
        return project.definitions(policy=policy, anonymized=AnonymizationSettings(k=5))

    refused = project.run(both(0.0, 5))
    assert blocked_by(refused) == {"privacy_risk_score_is_at_most_its_limit"}
    assert project.releases() == []
    assert len(project.releases(side="anonymized")) == 1
    refused = project.run(both(0.999, 6))
    assert blocked_by(refused) == {SMALLEST}
    assert len(project.releases()) == 1
    assert len(project.releases(side="anonymized")) == 1


def test_a_received_release_is_measured_again(project):
    project.run(definitions_of(project, 5, Limit("l_diversity", 2)))
    written = project.releases(side="anonymized")[0]
    manifest = json.loads((written / "manifest.json").read_text())

    def problems_of(changed):
        (written / "manifest.json").write_text(json.dumps(changed))
        return " ".join(verify_release(written, max_bytes=None).problems)

    differs = "of the table differ from the manifest"
    for measure, forged, found in (
        ("k", 50, f"k {differs}"),
        ("n_classes", 1, f"n_classes {differs}"),
        ("k_people", 10_000, "more people are recorded for the smallest class than it has records"),
    ):
        changed = copy.deepcopy(manifest)
        changed["figures"]["anonymity"][measure] = forged
        assert found in problems_of(changed)
    for verdict, metric in enumerate(each["metric"] for each in manifest["verdicts"]):
        if metric is not None:
            changed = copy.deepcopy(manifest)
            changed["verdicts"][verdict]["value"] += 1
            assert f"the figure for {metric!r}" in problems_of(changed)
    assert problems_of(manifest) == ""


@pytest.mark.parametrize(
    "limits",
    [
        (Limit("suppressed_share", 0.5),),
        (Limit("information_loss", 0.9, severity="error"),),
        (Limit("smallest_class", 1.5),),
        (Limit("smallest_class", 5, severity="warn"), Limit("t_closeness", 0.5)),
        (Limit("max_reidentification_probability", 0.9),),
    ],
)
def test_a_policy_that_would_let_single_people_out_is_refused(project, limits):
    with pytest.raises(InvalidSettingError, match="prevents people from being singled out"):
        definitions_of(project, policy=Policy(limits), anonymized=AnonymizationSettings(k=1))


def test_somebody_whose_sensitive_value_is_certain_is_warned_of_by_default(project):
    one_cost = {"source": lambda: people(300, 1).assign(cost=5.0)}
    result = project.run(definitions_of(project, **one_cost))
    assert_released(project, result)
    manifest = released_table(project)[1]
    limits = [verdict for verdict in manifest["verdicts"] if verdict["metric"] is not None]
    failed = {verdict["metric"]: verdict["value"] for verdict in limits if not verdict["passed"]}
    assert failed == {"share_in_homogeneous_classes": 1.0}


def test_where_nothing_is_sensitive_nothing_sensitive_is_certain(project):
    contract = copy.deepcopy(CONTRACT)
    contract["columns"]["cost"]["role"] = "other"
    assert_released(project, project.run(definitions_of(project, contract=contract)))
    assert all(verdict["passed"] for verdict in released_table(project)[1]["verdicts"] if verdict["metric"])
    with pytest.raises(InvalidSettingError, match="has no sensitive column"):
        definitions_of(project, 5, Limit("l_diversity", 2), contract=contract)


def test_as_many_records_may_be_left_out_as_the_limit_says(project):
    # 20 of 100 people have the only illness of their place, which no class of theirs can hide.
    def places() -> pd.DataFrame:
        table = people(100, 1).assign(plan=["rare"] * 20 + ["free"] * 80, age=30, joined=pd.Timestamp("2020-01-01"))
        return table.assign(cost=[1.0] * 20 + [float(number % 4 + 2) for number in range(80)])

    settings = AnonymizationSettings(l_diversity=LDiversity(3, "recursive", 1.2), max_suppression=0.2)
    limits = (Limit("suppressed_share", 0.2),)
    result = project.run(definitions_of(project, 5, *limits, source=places, anonymized=settings))
    assert_released(project, result)


def test_a_person_column_called_like_a_label_is_no_trouble(project):
    contract = {"columns": dict(copy.deepcopy(CONTRACT)["columns"])}
    contract["columns"]["age_low"] = contract["columns"].pop("patient") | {"role": "sensitive"}
    renamed = {"source": lambda: people(300, 1).rename(columns={"patient": "age_low"}), "contract": contract}
    assert_released(project, project.run(definitions_of(project, **renamed)))


def test_what_separates_ties_is_drawn_in_private(project):
    relaxed = AnonymizationSettings(relaxed=True)
    result = project.run(definitions_of(project, anonymized=relaxed))
    assert_released(project, result)
    seed = read_artifact(project.stored("anonymized")).header["settings"]["seed"]
    assert seed >= 2**32
    manifest = (project.releases(side="anonymized")[0] / "manifest.json").read_text()
    assert str(seed) not in manifest
    assert all(str(seed).encode() not in path.read_bytes() for path in project.home.rglob("*") if path.is_file())
    with pytest.raises(InvalidSettingError, match="can be guessed"):
        definitions_of(project, anonymized=AnonymizationSettings(relaxed=True, seed=7))


@pytest.mark.pictures
def test_what_is_shown_of_64_columns_fits_into_an_event(project):
    random = np.random.default_rng(0)
    names = [f"a_rather_long_name_of_a_column_{number:02}" for number in range(64)]
    columns = {name: {"type": "integer", "role": "quasi_identifier"} for name in names}
    contract = {"one_row_per_person": True, "columns": columns}
    table = pd.DataFrame({name: random.integers(0, 9, 200) for name in names})
    result = project.run(definitions_of(project, contract=contract, source=lambda: table))
    assert_released(project, result)
    events = [event for event in result.all_events if event.is_step_materialization]
    assert {len(dg.serialize_value(event)) <= 100_000 for event in events} == {True}, [
        (event.asset_key.path[-1], len(dg.serialize_value(event))) for event in events
    ]


def test_a_source_that_has_fewer_rows_now_is_a_refusal_and_no_failure(project):
    _anonymized(project)
    people(200, seed=3).to_parquet(project.root / "data" / "people.parquet", index=False)
    definitions = definitions_of(project)
    assert project.run(definitions, "source").success
    assert_refused(
        project, run_release(project, definitions), "anonymized was made from an earlier version of ['source']"
    )


@pytest.mark.parametrize("output", ["labels", "centroid"])
def test_every_output_goes_through_the_gate(project, output):
    settings = AnonymizationSettings(output=output, seed=3)
    assert_released(project, project.run(definitions_of(project, anonymized=settings)))


HIERARCHIES = {
    "age": {"intervals": [5, 20]},
    "plan": {"tree": {"*": {"alone": ["single", "free"], "together": ["family"]}}},
    "joined": {"dates": ["month", "year"]},
}


def test_hierarchies_of_the_contract_give_the_labels(project):
    contract = copy.deepcopy(CONTRACT)
    for name in ("age", "plan"):
        contract["columns"][name]["hierarchy"] = HIERARCHIES[name]
    settings = AnonymizationSettings(method="lattice", hierarchies={"joined": HIERARCHIES["joined"]})
    assert_released(project, project.run(definitions_of(project, contract=contract, anonymized=settings)))
    table, manifest = released_table(project)
    assert list(table.columns) == ["age", "plan", "joined", "cost"]
    assert table.groupby(["age", "plan", "joined"], observed=True).size().min() >= 5
    assert manifest["figures"]["model"]["age"]["kind"] == "mapping"
    assert manifest["settings"]["anonymized"]["method"] == "lattice"


def test_some_columns_are_nodes_and_others_are_cut_freely(project):
    """With every figure that the gate and the assessments take from labels."""
    contract = copy.deepcopy(CONTRACT)
    # Hierarchies of the contract are for the lattice.
    contract["columns"]["joined"]["hierarchy"] = HIERARCHIES["joined"]
    settings = AnonymizationSettings(hierarchies={name: HIERARCHIES[name] for name in ("age", "plan")})
    limits = (
        Limit("smallest_class", 5),
        Limit("information_loss", 0.9),
        Limit("max_reidentification_probability", 0.2),
    )
    definitions = definitions_of(
        project,
        policy=Policy(limits),
        contract=contract,
        anonymized=settings,
        semantic_risk=SemanticRiskSettings(),
    )
    assert_released(project, project.run(definitions))
    table, manifest = released_table(project)
    assert list(table.columns) == ["age", "plan", "joined", "joined_low", "joined_high", "cost"]
    kinds = {name: mask["kind"] for name, mask in manifest["figures"]["model"].items()}
    assert kinds["age"] == kinds["plan"] == "mapping" and kinds["joined"] == "interval"
    assert set(manifest["settings"]["anonymized"]["hierarchies"]) == {"age", "plan"}
    assert set(table["plan"]) <= {"*", "alone", "together", "single", "free", "family"}
    assert verify_release(project.releases(side="anonymized")[-1], max_bytes=None).problems == ()


def test_a_quasi_identifier_without_a_hierarchy_is_refused_when_the_definitions_are_built(project):
    settings = AnonymizationSettings(method="lattice", hierarchies={"joined": HIERARCHIES["joined"]})
    with pytest.raises(InvalidSettingError, match=r"quasi-identifiers \['age', 'plan'\] have no hierarchy"):
        definitions_of(project, anonymized=settings)


def test_a_limit_that_only_warns_is_no_target_that_an_anonymization_may_miss(project):
    policy = Policy((Limit("smallest_class", 5), Limit("l_diversity", 10_000, severity="warn")))
    result = project.run(definitions_of(project, policy=policy))
    assert_released(project, result)
    assert [each.check_name for each in result.get_asset_check_evaluations() if not each.passed] == [
        "l_diversity_is_at_least_its_limit"
    ]


@pytest.mark.parametrize(("direction", "n_classes"), [("at_most", 2), ("below", 1)])
def test_a_distance_at_its_limit_is_aimed_at_where_the_limit_admits_it(direction, n_classes):
    contract = TableContract.from_mapping(
        {
            "one_row_per_person": True,
            "columns": {
                "age": {"type": "integer", "role": "quasi_identifier"},
                "disease": {"type": "string", "role": "sensitive"},
            },
        }
    )
    table = pd.DataFrame({"age": [0] * 8 + [1] * 8, "disease": [*"aaaaabbb", *"aaabbbbb"]})
    policy = Policy((Limit("smallest_class", 4), Limit("t_closeness", 0.125, direction)))
    made = anonymize_with(table, AnonymizationSettings().resolve(contract, policy, None).settings)
    assert made.stats["n_classes"] == n_classes
    assert policy.limit_on("t_closeness").holds_for(made.stats["sensitive"]["disease"]["t"])


def _generalized(project):
    stages = ("source", "original", "control", "synthetic", "generalized_synthetic", "preprocessed", "mpucc_assessment")
    assert project.run(TestGeneralizedSynthetic().mitigated(project), *stages).success


class TestGeneralizedSynthetic:
    """The mitigation: synthetic records that single people out are generalized, and assessed again."""

    def settings(self, project, score, **changes):
        policy = Policy((Limit("privacy_risk_score", score), Limit("smallest_class", 5)), RequiredSettings())
        return project.definitions(**({"policy": policy} | changes))

    def score(self, result):
        checks = {each.check_name: each for each in result.get_asset_check_evaluations()}
        return checks["privacy_risk_score_is_below_its_limit"].metadata["score"].value

    def test_what_was_refused_is_released_generalized_after_it_was_assessed_again(self, project):
        def coarse_costs() -> pd.DataFrame:
            return people(300, 1).assign(cost=lambda table: table["cost"] // 8)

        # The synthetic records are the originals themselves: nearly everybody is singled out by age, plan and day.
        copies = ExternalSynthetic(lambda: coarse_costs().drop(columns="patient"), control_was_withheld=True)
        settings = {"source": coarse_costs, "synthetic": copies}
        plain = project.run(self.settings(project, 0.5, **settings))
        assert blocked_by(plain) == {"privacy_risk_score_is_below_its_limit"}
        mitigated = self.settings(project, 0.5, generalize_synthetic=AnonymizationSettings(k=20), **settings)
        result = project.run(mitigated)
        assert result.success, failure_of(result)
        # Not because labels equal no value: costs still single people out within their classes.
        assert 0 < self.score(result) < self.score(plain)
        written = project.releases()[0]
        table = pd.read_parquet(written / "synthetic.parquet")
        assert table.groupby(["age", "plan", "joined"], observed=True).size().min() >= 20
        manifest = json.loads((written / "manifest.json").read_text())
        assert manifest["settings"]["generalized_synthetic"]["k"] == 20
        assert manifest["settings"]["mpucc_assessment"]["columns"] == ["age", "plan", "joined", "cost"]

    def test_an_assessment_of_the_records_before_is_no_evidence_for_those_after(self, project):
        generalized = AnonymizationSettings(k=5)
        stages = ("source", "original", "control", "synthetic", "preprocessed", "mpucc_assessment")
        assert project.run(self.settings(project, 0.9999), *stages).success
        mitigated = self.settings(project, 0.9999, generalize_synthetic=generalized)
        reason = refusal(project.run(mitigated, "generalized_synthetic", "synthetic_release"))
        assert "made from a different generalized_synthetic table" in reason
        assert project.run(mitigated, "preprocessed", "mpucc_assessment", "synthetic_release").success

    def mitigated(self, project):
        return self.settings(project, 0.9999, generalize_synthetic=AnonymizationSettings(k=5))

    def test_an_assessment_of_the_labels_is_no_evidence_for_the_values_under_them(self, project):
        project.begin_as(_generalized)
        assert project.refused_because(self.mitigated(project)) == ""
        plain = self.settings(project, 0.9999)
        assert "made from a different synthetic table" in refusal(project.run(plain, "synthetic_release"))
        assert project.everything_released() == []

    def test_other_synthetic_records_make_the_generalized_ones_stale(self, project):
        project.begin_as(_generalized)
        project.write_synthetic(seed=77)
        assert project.run(self.mitigated(project), "synthetic").success
        reason = project.refused_because(self.mitigated(project))
        assert "generalized_synthetic was made from an earlier version of ['synthetic']" in reason

    @pytest.mark.parametrize("edit", ["table", "members", "header"])
    def test_generalized_records_that_were_edited_are_refused(self, project, edit):
        project.begin_as(_generalized)
        path = project.stored("generalized_synthetic")
        stored = read_artifact(path)
        frames = dict(stored.frames)
        if edit != "header":
            frames[edit] = frames[edit].iloc[::-1].reset_index(drop=True)
        header = {**stored.header, "stats": {**stored.header["stats"], "information_loss": 0.0}}
        with project.kept("generalized_synthetic"):
            write_artifact(path, replace(stored, frames=frames, header=header if edit == "header" else stored.header))
            assert "not what the run recorded" in project.refused_because(self.mitigated(project))
        assert project.refused_because(self.mitigated(project)) == ""

    def test_classes_that_cannot_be_told_for_the_originals_are_refused(self, project):
        weaker = [{"relaxed": True}, {"output": "centroid"}, {"method": "lattice"}, {"max_suppression": 0.1}]
        weaker.append({"hierarchies": {"age": HIERARCHIES["age"]}})
        for settings in weaker:
            with pytest.raises(InvalidSettingError, match="its classes must also apply to other rows"):
                self.settings(project, 0.5, generalize_synthetic=AnonymizationSettings(k=5, **settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"policy": Policy((Limit("privacy_risk_score", 0.1),))},
            "releases anonymized records, for which",
        ),
        ({"policy": policy_of(2.5), "anonymized": AnonymizationSettings(k=0)}, "k is 0"),
        ({"anonymized": AnonymizationSettings(method="other")}, "method is 'other'"),
        ({"anonymized": AnonymizationSettings(l_diversity={"age": 2})}, "l_diversity names columns that are not sens"),
        ({"anonymized": AnonymizationSettings(t_closeness=2.0)}, "t_closeness"),
        ({"anonymized": AnonymizationSettings(hierarchies={"age": None})}, "the type is NoneType, not Hierarchy"),
        (
            {"anonymized": AnonymizationSettings(hierarchies={"cost": HIERARCHIES["age"]})},
            r"columns are not quasi-identifiers: \['cost'\]",
        ),
        (
            {"anonymized": AnonymizationSettings(hierarchies={"age": HIERARCHIES["age"]}, pictured=("age", "joined"))},
            r"without a hierarchy. There are \['joined'\]",
        ),
        (
            {
                "anonymized": AnonymizationSettings(hierarchies={"age": HIERARCHIES["age"]}),
                "semantic_risk": SemanticRiskSettings(scales={"age": {"ordinal": [30, 40]}}),
            },
            "'age' has a scale of the kind ordinal, but is released as nodes",
        ),
        ({"anonymized": AnonymizationSettings(pictured=("age", "plan"))}, "expected two quasi-identifiers with num"),
        (
            {"anonymized": AnonymizationSettings(pictured=("age", "joined"), output="centroid")},
            "has the method 'mondrian' and the output 'centroid'. Expected 'mondrian' and 'labels'",
        ),
        ({"anonymized": AnonymizationSettings(pictured=("age", "age"))}, "expected two quasi-identifiers with num"),
        ({"source": None, "split": GivenSplit(people, people)}, "but no source to make it from"),
        ({"generalize_synthetic": AnonymizationSettings()}, "generalizes synthetic records, but makes none"),
        (
            {"policy": Policy.for_use_case("development"), "anonymized": AnonymizationSettings(output="centroid")},
            "class centers, which do not bound any single value",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_when_the_definitions_are_built(project, settings, message):
    with pytest.raises(InvalidSettingError, match=message):
        definitions_of(project, **settings)


def test_a_contract_without_quasi_identifiers_cannot_be_anonymized(project):
    contract = copy.deepcopy(CONTRACT)
    for column in ("age", "plan", "joined"):
        contract["columns"][column]["role"] = "other"
    with pytest.raises(InvalidSettingError, match="no quasi-identifier"):
        definitions_of(project, contract=contract)


def test_k_comes_from_a_limit_of_any_direction_or_must_be_given(project):
    above = Policy((Limit("smallest_class", 4, "above"),))
    assert_released(project, project.run(definitions_of(project, policy=above)))
    assert released_table(project)[1]["settings"]["anonymized"]["k"] == 5
    contract = resolve_contract(CONTRACT)
    for direction, k in (("at_most", 5), ("below", 6)):
        by_probability = Policy((Limit("max_reidentification_probability", 0.2, direction),))
        assert AnonymizationSettings().resolve(contract, by_probability, contract.person).settings.k == k
    with pytest.raises(InvalidSettingError, match="There is no k"):
        definitions_of(project, policy=Policy((Limit("l_diversity", 2),)))


def test_the_anonymized_side_needs_no_split_and_reads_any_source(project):
    definitions = definitions_of(project, source=TableFile(str(project.root / "data" / "people.parquet")))
    assert f"{NAME}__split" not in {asset.node_def.name for asset in definitions.assets}
