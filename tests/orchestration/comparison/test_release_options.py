"""The comparison as an asset: on demand, counted, upstream of nothing, and of help to whoever was refused."""

import itertools
import json
from types import SimpleNamespace

import dagster as dg
import numpy as np
import pytest
import yaml

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.comparison import making
from privacy_assets.orchestration.comparison import result as comparison_result
from privacy_assets.orchestration.comparison.result import ReleaseOptions
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.options import Candidate, OptionsSettings
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import GivenSplit, Split, Synthesis
from privacy_assets.pipeline.settings.utility import UtilitySettings
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.storage.artifact_files import read_artifact
from privacy_assets.utility import assess
from tests.orchestration.project import ADMITS, failure_of, key, people, refusal

STAGE = "release_options"
CANDIDATES = (
    Candidate(anonymized=AnonymizationSettings(k=3)),
    Candidate(anonymized=AnonymizationSettings(k=8)),
    Candidate(synthetic=Synthesis()),
)
POLICY = Policy(
    (Limit("privacy_risk_score", ADMITS, "at_most"), Limit("leakage_detected", 0), Limit("smallest_class", 5)),
    RequiredSettings(control_records=40, detectable_share=None),
)


def related(n_records, seed):
    made = people(n_records, seed)
    random = np.random.default_rng(seed)
    made["plan"] = np.where(made["age"] + random.integers(-9, 9, n_records) < 35, "single", made["plan"])
    made["cost"] = (made["age"] * 4 + random.integers(0, 40, n_records)) / 10
    return made


@pytest.fixture
def project(project, monkeypatch):
    monkeypatch.setattr(assess, "N_QUERIES", 200)
    related(1_700, 1).to_parquet(project.root / "data" / "people.parquet", index=False)
    return project


def settings_of(**more):
    own = {"policy": POLICY, "synthetic": None, "anonymized": AnonymizationSettings(k=2)}
    return own | {"assessment": None, "options": OptionsSettings(candidates=CANDIDATES)} | more


def stored(project):
    return ReleaseOptions.from_artifact(read_artifact(project.stored(STAGE)))


def shown_of(result):
    metadata = result.asset_materializations_for_node(f"people__{STAGE}")[0].metadata
    return {name.removeprefix("privacy_assets/"): each.value for name, each in metadata.items()}


def manifest_of(project, side="anonymized"):
    return json.loads((project.releases(side=side)[-1] / "manifest.json").read_text())


def test_a_refusal_names_what_would_be_admitted_and_the_pasted_settings_are_released_and_counted(project):
    definitions = project.definitions(**settings_of(utility=UtilitySettings()))
    # Nothing is compared yet, so a refusal says how to.
    project.run(definitions, "source", "anonymized", "anonymized_utility_assessment")
    said = refusal(project.run(definitions, "anonymized_release", checks=False), "anonymized")
    assert "materialize people/release_options, or run `privacy_assets compare`" in said

    result = project.run(definitions, STAGE)
    assert result.success, failure_of(result)
    options, shown = stored(project), shown_of(result)
    assert options.table["candidate"].tolist() == ["k=3", "k=8", "smooth_cart"]
    assert shown["candidates_compared"] == shown["candidates"] == 3
    assert shown["recommended_anonymized"] == "k=8" == options.best("anonymized")
    assert "anonymized:\n  k: 8" in shown["settings_to_paste"]
    assert shown["map"].startswith("![1 candidate with synthetic records was compared: 1 proposed, 0 refused; ")
    assert {each.data["candidate"] for each in shown["options"].records} == {*options.table["candidate"]}

    refused = project.run(definitions, "anonymized_release", checks=False)
    row = options.table.set_index("candidate").loc["k=8"]
    people_worth = f"{int(float(f'{row.worth_in_people:.1e}')):,}"
    assert f"k=8: worth about {people_worth} people" in refusal(refused, "anonymized")
    check = next(each for each in refused.get_asset_check_evaluations() if each.check_name == "release_gate")
    assert "Recommended: k=8." in check.metadata["nearest_options"].value
    # What a check of a limit says, too, where it stops a run before the gate.
    stopped = project.run(definitions)
    evaluations = [each for each in stopped.get_asset_check_evaluations() if "limit" in each.check_name]
    failed = [each for each in evaluations if not each.passed and each.severity == dg.AssetCheckSeverity.ERROR]
    assert failed
    assert all("k=8: worth about" in each.metadata["nearest_options"].value for each in failed)

    pasted = PrivacyReleaseComponent.from_mapping(
        {"source": {"file": "people.parquet"}, "contract": {"columns": {"age": {"type": "integer", "role": "other"}}}}
        | {"policy": "development", **yaml.safe_load(options.yaml("k=8"))}
    )
    result = project.run(project.definitions(**settings_of(anonymized=pasted.anonymized)))
    assert result.success, failure_of(result)
    # The second comparison took everything from the first, so three candidates were made in all.
    assert manifest_of(project)["options_compared"] == 3
    assert "3 candidate releases" in (project.releases(side="anonymized")[-1] / "report.html").read_text()


def test_a_comparison_of_another_table_or_of_other_settings_is_not_named(project):
    definitions = project.definitions(**settings_of())
    project.run(definitions, "source", "anonymized", STAGE)
    assert "k=8: worth" in refusal(project.run(definitions, "anonymized_release", checks=False), "anonymized")
    for change in ({"options": OptionsSettings()}, {"policy": POLICY.with_limit(Limit("smallest_class", 4))}):
        other = project.definitions(**settings_of(**change))
        said = refusal(project.run(other, "anonymized_release", checks=False), "anonymized")
        assert "no comparison of this table with these settings" in said
    without = project.definitions(**settings_of(options=None))
    said = refusal(project.run(without, "anonymized_release", checks=False), "anonymized")
    assert "add `options` to the settings of people and materialize people/release_options" in said
    related(1_700, 5).to_parquet(project.root / "data" / "people.parquet", index=False)
    project.run(definitions, "source", "anonymized")
    said = refusal(project.run(definitions, "anonymized_release", checks=False), "anonymized")
    assert "There is no comparison of this table" in said
    # A comparison that cannot be read keeps no refusal from being made.
    for path in project.stored(STAGE).rglob("*"):
        if path.is_file():
            path.write_bytes(b"damaged")
    said = refusal(project.run(definitions, "anonymized_release", checks=False), "anonymized")
    assert "There is no comparison of this table" in said


def test_synthetic_records_made_afresh_are_released_and_counted_without_their_asset(project, monkeypatch):
    # Some seeds divide people, or make records, so that a test of the policy is significant by chance.
    new_seeds = itertools.count()
    monkeypatch.setattr(comparison_result, "secrets", SimpleNamespace(randbits=lambda n_bits: next(new_seeds)))
    options = OptionsSettings(candidates=CANDIDATES[2:], seed=3)
    settings = settings_of(anonymized=None, synthetic=Synthesis(), options=options)
    definitions = project.definitions(**settings)
    assert project.run(definitions, "source", STAGE).success
    pasted = yaml.safe_load(stored(project).yaml("smooth_cart"))
    assert {pasted["split"]["seed"], pasted["synthetic"]["seed"]} <= {*range(next(new_seeds))}
    made = {"split": Split(**pasted["split"]), "synthetic": Synthesis(**pasted["synthetic"]), "options": None}
    result = project.run(project.definitions(**settings | made))
    assert result.success, failure_of(result)
    manifest = manifest_of(project, "synthetic")
    assert manifest["options_compared"] == 1
    (history,) = (project.private / "comparisons").iterdir()
    history.write_text("not a line\n" + history.read_text())
    project.run(project.definitions(**settings | made), "synthetic_release")
    assert manifest_of(project, "synthetic")["options_compared"] == 2
    history.unlink()
    project.run(project.definitions(**settings | made), "synthetic_release")
    # Dagster has recorded it as well.
    assert manifest_of(project, "synthetic")["options_compared"] == 1


@pytest.mark.parametrize("given", [{"split": "split"}, {"synthetic": "repeats"}, {"utility": "judge"}])
def test_a_release_must_not_use_the_seeds_by_which_it_was_chosen(project, given):
    (name, which), options = next(iter(given.items())), OptionsSettings(candidates=CANDIDATES)
    seed = getattr(options.seeds, which)
    seed = seed[0] if isinstance(seed, list) else seed
    kind = {"split": Split, "synthetic": Synthesis, "utility": UtilitySettings}[name]
    with pytest.raises(InvalidSettingError, match="uses a seed of the comparison by which its settings were chosen"):
        project.definitions(**settings_of(**{"synthetic": Synthesis(), "anonymized": None, name: kind(seed=seed)}))


def test_nothing_depends_on_the_comparison_and_no_job_runs_it(project):
    both = settings_of(synthetic=Synthesis(), utility=UtilitySettings())
    definitions = project.definitions(**both)
    graph = definitions.resolve_asset_graph()
    assert graph.get(key(STAGE)).child_keys == set()
    assert graph.get(key(STAGE)).parent_keys == {key("source")}
    for checks in definitions.asset_checks:
        for spec in checks.check_specs:
            assert key(STAGE) not in {spec.asset_key, *(each.asset_key for each in spec.additional_deps)}
    job = definitions.resolve_job_def("people_release")
    assert f"people__{STAGE}" not in {node.name for node in job.nodes}
    asset = next(each for each in definitions.assets if key(STAGE) in each.keys)
    assert asset.specs_by_key[key(STAGE)].automation_condition is None
    assert isinstance(asset, dg.AssetsDefinition)


def test_verdicts_are_the_same_with_and_without_a_comparison(project, monkeypatch):
    settings = settings_of(anonymized=AnonymizationSettings(k=5))

    def verdicts():
        project.run(project.definitions(**settings), "source", "anonymized", "anonymized_release")
        return [
            {name: value for name, value in each.items() if name != "value"}
            for each in manifest_of(project)["verdicts"]
        ]

    before = verdicts()
    project.run(project.definitions(**settings), STAGE)
    asked = []
    monkeypatch.setattr(
        "privacy_assets.orchestration.comparison.stored.stored_options", lambda *each: asked.append(each)
    )
    assert verdicts() == before
    assert asked == []  # What is admitted does not even look.


def test_a_split_that_is_given_is_divided_again(project):
    for name, seed in (("original", 1), ("control", 2)):
        table = related(900 if name == "original" else 700, seed)
        table.to_parquet(project.root / "data" / f"{name}.parquet", index=False)
    given = GivenSplit(*(TableFile(str(project.root / "data" / f"{name}.parquet")) for name in ("original", "control")))
    settings = settings_of(source=None, split=given, synthetic=Synthesis(), anonymized=None)
    settings["options"] = OptionsSettings(candidates=CANDIDATES[:1] + CANDIDATES[2:])
    result = project.run(project.definitions(**settings), "original", "control", STAGE)
    assert result.success, failure_of(result)
    options = stored(project)
    assert options.table["n_made"].tolist() == [1, 2]
    assert "split" not in yaml.safe_load(options.yaml("smooth_cart"))
    assert options.table["n_originals"].tolist() == [1_600, 1_280]


def test_what_is_stored_is_used_again(project, monkeypatch):
    definitions = project.definitions(**settings_of())
    project.run(definitions, "source", STAGE)
    monkeypatch.setattr(making.Bench, "measure", None)
    result = project.run(definitions, STAGE)
    assert result.success, failure_of(result)
    assert shown_of(result)["candidates_compared"] == 0
    assert stored(project).table["n_made"].tolist() == [1, 1, 2]
