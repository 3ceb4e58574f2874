"""What synthetic records are worth, as an asset: evidence like every other, limits, manifest and report."""

import json

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.pipeline.settings.utility import UtilitySettings
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.storage.artifact_files import read_artifact
from privacy_assets.synthesis.split import split_records
from privacy_assets.utility import assess
from privacy_assets.utility.result import FIGURES, GROUP_FIGURES, UtilityAssessment
from tests.orchestration.project import ADMITS, blocked_by, failure_of, key, people, refusal

STAGE = "utility_assessment"


def related(n_records, seed):
    """People whose columns go together: the older pay more, and for other plans."""
    made = people(n_records, seed)
    random = np.random.default_rng(seed)
    made["plan"] = np.where(made["age"] + random.integers(-9, 9, n_records) < 35, "single", made["plan"])
    made["cost"] = (made["age"] * 4 + random.integers(0, 40, n_records)) / 10
    return made


def shuffled(table, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame({name: random.permutation(table[name].to_numpy()) for name in table})


def limits(*more, control_records=40):
    return Policy(
        (Limit("privacy_risk_score", ADMITS, "at_most"), Limit("leakage_detected", 0), *more),
        RequiredSettings(control_records=control_records, detectable_share=None),
    )


@pytest.fixture
def project(project, monkeypatch):
    monkeypatch.setattr(assess, "N_QUERIES", 200)
    related(1_700, 1).to_parquet(project.root / "data" / "people.parquet", index=False)
    related(900, 2).drop(columns="patient").to_parquet(project.root / "data" / "synthetic.parquet", index=False)
    return project


def stored(project):
    return UtilityAssessment.from_artifact(read_artifact(project.stored(STAGE)))


def test_a_release_shows_what_it_is_worth(project):
    policy = limits(Limit("utility", 0.5, severity="error"), Limit("utility_pairs", 0.5, severity="error"))
    result = project.run(project.definitions(policy=policy, utility=UtilitySettings(seed=3)))
    assert result.success, failure_of(result)
    original, control, synthetic = (
        read_artifact(project.stored(stage)).frames["table"] for stage in ("original", "control", "synthetic")
    )
    columns = ["age", "plan", "joined", "cost"]
    expected = assess.assess_utility(original[columns], synthetic, control[columns], seed=3)
    found = stored(project)
    assert dict(found.scores) == dict(expected.scores)
    assert found.settings["columns"] == columns
    artifact = read_artifact(project.stored(STAGE))
    assert artifact.made_of.keys() == {"original", "control", "synthetic"}

    release = project.releases()[0]
    manifest = json.loads((release / "manifest.json").read_text())
    figures = manifest["figures"][STAGE]
    assert figures["in_people"] == expected.sentence
    assert all(value == round(value, 3) for value in figures.values() if isinstance(value, float))
    assert figures["worst_pairs"] == expected.worst["worst_pairs"]
    verdicts = {each["name"]: each for each in manifest["verdicts"]}
    assert verdicts["utility_is_at_least_its_limit"]["value"] == expected.shown_scores["utility_lower"]
    assert verdicts["utility_is_at_least_its_limit"]["value"] <= expected.scores["utility_lower"]
    assert verdicts["utility_assessment_is_of_this_table"]["passed"]
    report = (release / "report.html").read_text()
    assert "<h3>What it is worth</h3>" in report
    assert expected.sentence in report
    metadata = result.asset_materializations_for_node(f"people__{STAGE}")[0].metadata
    shown = {name.removeprefix("privacy_assets/"): each.value for name, each in metadata.items()}
    assert {name: shown[name] for name in FIGURES} == pytest.approx(
        {name: expected.shown_scores[name] for name in FIGURES}, rel=0.01
    )
    assert shown["found"] == expected.sentence


def test_a_release_is_judged_within_its_groups(project):
    policy = limits(Limit("utility_by_group", 0.1, severity="error"), Limit("utility_worst_group", 0.01))
    definitions = project.definitions(policy=policy, utility=UtilitySettings(group="plan"))
    result = project.run(definitions)
    assert result.success, failure_of(result)
    original, control, synthetic = (
        read_artifact(project.stored(stage)).frames["table"] for stage in ("original", "control", "synthetic")
    )
    columns = ["age", "plan", "joined", "cost"]
    expected = assess.assess_utility(original[columns], synthetic, control[columns], group="plan")
    assert dict(stored(project).scores) == dict(expected.scores)
    pd.testing.assert_frame_equal(stored(project).groups, expected.groups, check_dtype=False)
    release = project.releases()[0]
    manifest = json.loads((release / "manifest.json").read_text())
    verdicts = {each["name"]: each for each in manifest["verdicts"]}
    for name in GROUP_FIGURES:
        assert manifest["figures"][STAGE][name] == expected.shown_scores[name]
        assert verdicts[f"{name}_is_at_least_its_limit"]["value"] == expected.shown_scores[f"{name}_lower"]
    assert "utility by group" in (release / "report.html").read_text()
    # Which group is the worst is a cell of the table.
    shown = [manifest["figures"][STAGE], dict(result.asset_materializations_for_node(f"people__{STAGE}")[0].metadata)]
    assert not any(repr(group) in repr(shown) for group in expected.groups["group"])
    other = project.definitions(policy=policy, utility=UtilitySettings(group="age"))
    assert "group differs from what" in refusal(project.run(other, "synthetic_release", checks=False))

    mixed = synthetic.assign(plan=np.random.default_rng(0).permutation(synthetic["plan"]))
    mixed.to_parquet(project.root / "data" / "synthetic.parquet", index=False)
    assert "utility_by_group_is_at_least_its_limit" in blocked_by(project.run(definitions))


@pytest.mark.parametrize(
    ("policy", "settings", "words"),
    [
        (limits(), UtilitySettings(group="income"), "'income'. Expected one of the released columns"),
        (limits(), UtilitySettings(group="patient"), "'patient'. Expected one of the released columns"),
        (limits(Limit("utility_worst_group", 0.5)), UtilitySettings(), r"limits \['utility_worst_group'\], but"),
        (limits(Limit("utility_by_group", 0.5)), None, "utility.group names no column"),
    ],
)
def test_a_group_must_be_released_and_is_needed_by_its_limits(project, policy, settings, words):
    with pytest.raises(InvalidSettingError, match=words):
        project.definitions(policy=policy, utility=settings)


@pytest.mark.parametrize("group", ["", 3])
def test_the_setting_of_a_group_is_a_name(group):
    with pytest.raises(InvalidSettingError, match="utility.group is"):
        UtilitySettings(group=group)


def test_useless_records_are_refused_and_nothing_but_the_limit_is_needed(project):
    shuffled(related(900, 2).drop(columns="patient")).to_parquet(project.root / "data" / "synthetic.parquet")
    definitions = project.definitions(policy=limits(Limit("utility", 0.5, severity="error")))
    assert "utility_is_at_least_its_limit" in blocked_by(project.run(definitions))
    assert "utility is " in refusal(project.run(definitions, "synthetic_release", checks=False))
    assert project.releases() == []
    # A new table is not admitted by the worth of the old one.
    related(900, 3).drop(columns="patient").to_parquet(project.root / "data" / "synthetic.parquet", index=False)
    project.run(definitions, "synthetic", "preprocessed", "mpucc_assessment")
    assert "utility_assessment was made from a different synthetic table" in refusal(
        project.run(definitions, "synthetic_release", checks=False)
    )


def test_a_small_control_has_no_figure_which_fails(project):
    related(600, 1).to_parquet(project.root / "data" / "people.parquet", index=False)
    definitions = project.definitions(policy=limits(Limit("utility", 0.1, severity="error")))
    result = project.run(definitions)
    assert "utility_is_at_least_its_limit" in blocked_by(result)
    assert "Expected at least 300" in stored(project).notes[0]
    assert "utility has no value" in refusal(project.run(definitions, "synthetic_release", checks=False))
    assert stored(project).drawn().text == "Nothing could be judged."


def test_labels_of_generalized_records_are_read(project):
    definitions = project.definitions(
        policy=limits(Limit("utility", 0.3)), generalize_synthetic=AnonymizationSettings(k=2)
    )
    result = project.run(definitions)
    assert result.success, failure_of(result)
    assert read_artifact(project.stored(STAGE)).made_of.keys() == {"original", "control", "generalized_synthetic"}
    assert stored(project).scores["utility"] > 0.3


def test_a_release_without_limits_on_it_has_no_such_asset(project):
    assert all(key(STAGE) not in each.keys for each in project.definitions().assets)


def test_anonymized_records_are_judged_by_half_of_the_people(project):
    policy = Policy((Limit("smallest_class", 2), Limit("utility", 0.3, severity="error")))
    settings = AnonymizationSettings(k=3)
    definitions = project.definitions(policy=policy, synthetic=None, assessment=None, anonymized=settings)
    result = project.run(definitions)
    assert result.success, failure_of(result)
    artifact = read_artifact(project.stored(f"anonymized_{STAGE}"))
    assert artifact.made_of.keys() == {"source", "anonymized"}
    found = UtilityAssessment.from_artifact(artifact)
    source = read_artifact(project.stored("source")).frames["table"]
    made = Anonymization.from_artifact(read_artifact(project.stored("anonymized")))
    columns = ["age", "plan", "joined", "cost"]
    half = split_records(source, train_fraction=0.5, person="patient").control
    expected = assess.assess_utility(source[columns], made.table, half[columns], made)
    assert found.scores["n_originals"] == len(source) == 1_700
    assert found.scores["utility"] == pytest.approx(expected.scores["utility"], abs=0.02)
    assert 0.3 < found.scores["utility"] < 1
    manifest = json.loads((project.releases(side="anonymized")[0] / "manifest.json").read_text())
    assert manifest["figures"][STAGE]["in_people"] == found.sentence
    assert {each["name"]: each["passed"] for each in manifest["verdicts"]}["utility_is_at_least_its_limit"]

    too_high = Policy((Limit("smallest_class", 2), Limit("utility", 0.9999, severity="error")))
    definitions = project.definitions(policy=too_high, synthetic=None, assessment=None, anonymized=settings)
    refused = project.run(definitions, "anonymized_release", checks=False)
    assert "utility is 0." in refusal(refused, "anonymized")


def test_both_sides_have_an_asset_and_the_limits(project):
    policy = limits(Limit("utility", 0.3), Limit("smallest_class", 2))
    definitions = project.definitions(policy=policy, anonymized=AnonymizationSettings(k=3))
    keys = {each for asset in definitions.assets for each in asset.keys}
    assert {key(STAGE), key(f"anonymized_{STAGE}")} <= keys
    checks = {spec.key for each in definitions.asset_checks for spec in each.check_specs}
    for stage in (STAGE, f"anonymized_{STAGE}"):
        assert dg.AssetCheckKey(key(stage), "utility_is_at_least_its_limit") in checks
    for side in ("synthetic", "anonymized"):
        release = next(each for each in definitions.assets if key(f"{side}_release") in each.keys)
        stage = STAGE if side == "synthetic" else f"anonymized_{STAGE}"
        assert key(stage) in release.asset_deps[key(f"{side}_release")]


@pytest.mark.parametrize("seed", [-1, True, 0.5, "1"])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(InvalidSettingError, match=r"utility\.seed"):
        UtilitySettings(seed=seed)


def test_a_preset_warns_of_little_worth_only_where_it_is_asked_for(project):
    def checks(**more):
        definitions = project.definitions(policy=Policy.for_use_case("development"), **more)
        return {key.name for each in definitions.asset_checks for key in each.check_keys}

    added = checks(utility=UtilitySettings()) - checks()
    assert {"utility_is_at_least_its_limit", "utility_columns_is_at_least_its_limit"} <= added
