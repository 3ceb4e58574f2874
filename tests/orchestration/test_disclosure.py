"""The disclosure test as an asset: evidence like every other, the decision on leakage, limits, manifest and report."""

import json
import os
import shutil
import signal
import threading
import time
from dataclasses import replace

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.result import DisclosureAssessment
from privacy_assets.disclosure.scores import Workers
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import GivenSplit, Split, Synthesis
from privacy_assets.release.leakage import figures_of_disclosure
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.storage.artifact_files import read_artifact
from tests.orchestration.project import ADMITS, CONTRACT, blocked_by, failure_of, key, people, refusal

STAGE = "disclosure_assessment"
COLUMNS = ["age", "plan", "joined", "cost"]
OF_SPLIT = ("source", "original", "control")


def limits(*more, detectable_share=None, **required):
    return Policy(
        (Limit("privacy_risk_score", ADMITS, "at_most"), Limit("leakage_detected", 0), *more),
        RequiredSettings(control_records=40, detectable_share=detectable_share, **required),
    )


class Interpolation:
    """SMOTE as users write it: each record lies between a record and one of its five nearest neighbors."""

    name = "smote"
    settings: dict = {}  # noqa: RUF012

    def fit(self, table, *, seed):
        self.table = table.reset_index(drop=True)
        return self

    def sample(self, n_records, *, seed):
        original, random = self.table, np.random.default_rng(seed)
        numbers = original[["age", "cost"]].to_numpy(float)
        days = (original["joined"] - pd.Timestamp("2020-01-01")).dt.days.to_numpy(float)
        places = np.column_stack([numbers[:, 0], numbers[:, 1], days / 2])
        first = random.integers(0, len(original), n_records)
        distances = ((places[first][:, None] - places[None]) ** 2).sum(axis=2)
        second = np.argsort(distances, axis=1)[np.arange(n_records), random.integers(1, 6, n_records)]
        share = random.random(n_records)
        between = places[first] + share[:, None] * (places[second] - places[first])
        plan = np.where(random.random(n_records) < 0.5, original["plan"].iloc[first], original["plan"].iloc[second])
        return pd.DataFrame(
            {
                "age": np.rint(between[:, 0]).astype(np.int64),
                "plan": plan,
                "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.rint(2 * between[:, 2]), unit="D"),
                "cost": between[:, 1].round(1),
            }
        )


def stored(project):
    return DisclosureAssessment.from_artifact(read_artifact(project.stored(STAGE)))


def test_a_release_shows_what_it_discloses(project):
    more = Limit("singling_out_excess", 0.9), Limit("inference_excess", 0.9), Limit("near_copies_excess", 0.9)
    result = project.run(project.definitions(policy=limits(*more), disclosure=DisclosureSettings(seed=3)))
    assert result.success, failure_of(result)
    original, control, synthetic = (
        read_artifact(project.stored(stage)).frames["table"] for stage in ("original", "control", "synthetic")
    )
    whose = [*COLUMNS, "patient"]
    expected = assess_disclosure(
        original[whose],
        synthetic,
        control[whose],
        seed=3,
        sensitive=["cost"],
        quasi_identifiers=["age", "plan", "joined"],
        person="patient",
    )
    found = stored(project)
    assert dict(found.scores) == dict(expected.scores)
    assert found.settings["columns"] == COLUMNS
    assert read_artifact(project.stored(STAGE)).made_of.keys() == {"original", "control", "synthetic"}

    manifest = json.loads((project.releases()[0] / "manifest.json").read_text())
    assert manifest["figures"][STAGE]["detectable_people"] == expected.scores["detectable_people"]
    assert "seed" not in manifest["settings"][STAGE]
    verdicts = {each["name"]: each for each in manifest["verdicts"]}
    people_unseen = f"copies of whole records of fewer than {expected.scores['detectable_people']} people"
    assert people_unseen in verdicts["no_leakage_is_detected"]["reason"]
    report = (project.releases()[0] / "report.html").read_text()
    assert "The legal criteria (WP216) and the findings" in report
    assert people_unseen in report
    assert [each["criterion"] for each in manifest["figures"][STAGE]["criteria"]] == list(
        expected.criteria["criterion"]
    )
    assert [each["column"] for each in manifest["figures"][STAGE]["guessed_columns"]] == ["cost"]
    upper = expected.scores["inference_interval"][1]
    assert verdicts["inference_excess_is_below_its_limit"]["value"] == upper
    metadata = result.asset_materializations_for_node(f"people__{STAGE}")[0].metadata
    assert metadata["found"].value == expected.summary()
    assert {"excess", "guessed"} <= metadata.keys()


def refused_of(project, synthesizer):
    """Definitions and run of a synthesizer whose records are refused because they leak."""
    people(1_500, 1).to_parquet(project.root / "data" / "people.parquet", index=False)
    definitions = project.definitions(policy=limits(), synthetic=Synthesis(synthesizer, seed=1), split=Split(0.6))
    result = project.run(definitions)
    assert "no_leakage_is_detected" in blocked_by(result)
    assert project.everything_released() == []
    return definitions, result


def test_a_smote_synthesizer_of_the_user_is_refused_with_the_criterion(project):
    definitions, result = refused_of(project, Interpolation())
    assert project.run(definitions, "preprocessed", "mpucc_assessment", checks=False).success
    reason = project.refused_because(definitions)
    assert "leakage_detected is yes; expected no (" in reason
    assert "near copies" in reason.split("leakage_detected is yes")[1]
    metadata = result.asset_materializations_for_node(f"people__{STAGE}")[0].metadata
    assert "interpolate" in metadata["advice"].value
    without = metadata["without_a_column"].records
    assert {each.data["without"] for each in without} == {*COLUMNS}


@pytest.mark.parametrize("stage", ["guessing", "permutations"])
def test_a_canceled_assessment_ends_promptly_and_writes_nothing(project, monkeypatch, stage):
    """As Dagster's run launcher does it: the run is marked as canceling, and its process is interrupted.

    The permutations that are asked for would take minutes.
    """
    canceled = []

    def cancel():
        with project.instance() as instance:
            (run,) = instance.get_runs()
            instance.report_run_canceling(run)
        canceled.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def report(workers):
        # Only the assessment has progress to show; the rehearsal of the source has none.
        if workers.at.stage == stage and workers.progress is not None and not timers:
            timers.append(threading.Timer(0.1, cancel))
            timers[0].start()

    timers: list[threading.Timer] = []
    monkeypatch.setattr(Workers, "report", report)
    definitions = project.definitions(disclosure=DisclosureSettings(n_permutations=2_000_000))
    assert not project.run(definitions, *OF_SPLIT, "synthetic", STAGE).success
    assert time.monotonic() - canceled[0] < 20
    with project.instance() as instance:
        (run,) = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.CANCELED
        assert instance.get_latest_materialization_event(key("synthetic")) is not None
        assert instance.get_latest_materialization_event(key(STAGE)) is None
    assert not project.stored(STAGE).exists()
    assert list(project.private.rglob(".partial*")) == []
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]


def test_no_leak_is_no_answer_where_too_many_copies_would_go_unnoticed(project):
    project.assess()
    assert stored(project).scores["leakage_detected"] is False
    reason = project.refused_because(project.definitions(policy=limits(detectable_share=0.001)))
    assert "leakage_detected has no value; expected no (copies of whole records of fewer than" in reason
    assert "the policy accepts 0.10%" in reason
    share = stored(project).scores["detectable_share"]
    assert project.refused_because(project.definitions(policy=limits(detectable_share=share))) == ""


def test_missing_stale_edited_and_other_evidence_is_refused(project):
    definitions = project.definitions(policy=limits())
    project.assess()
    with project.kept(STAGE):
        shutil.rmtree(project.stored(STAGE))
        assert "no readable disclosure_assessment" in project.refused_because(definitions)
    asks_more = project.definitions(policy=limits(), disclosure=DisclosureSettings(n_permutations=1_999))
    expected = "n_permutations differs from what the current policy and contract require"
    assert project.refused_because(asks_more) == expected
    with project.kept(STAGE):
        header = project.stored(STAGE) / "header.json"
        edited = json.loads(header.read_text())
        edited["header"]["scores"]["detectable_share"] = 0.001
        header.write_text(json.dumps(edited))
        said = "the stored disclosure_assessment is not what the run recorded: it was changed, or a run was interrupted"
        assert project.refused_because(definitions) == said
    project.write_synthetic(seed=77)
    stale = project.run(definitions, "synthetic", "preprocessed", "mpucc_assessment", "synthetic_release", checks=False)
    assert "disclosure_assessment was made from a different synthetic table" in refusal(stale)
    assert project.everything_released() == []


def test_labels_of_generalized_records_are_compared(project):
    definitions = project.definitions(policy=limits(), generalize_synthetic=AnonymizationSettings(k=5))
    result = project.run(definitions)
    assert result.success, failure_of(result)
    assert read_artifact(project.stored(STAGE)).made_of.keys() == {"original", "control", "generalized_synthetic"}
    assert stored(project).settings["columns"] == COLUMNS


def test_a_control_that_is_part_of_the_originals_is_refused_with_the_count(project):
    table = people(400, 1)
    columns = {name: own for name, own in CONTRACT["columns"].items() if name != "patient"}
    contract = {"one_row_per_person": True, "columns": columns}
    paths = {name: project.root / "data" / f"{name}.parquet" for name in ("original", "control")}
    table.drop(columns="patient").to_parquet(paths["original"], index=False)
    table.drop(columns="patient").iloc[:120].to_parquet(paths["control"], index=False)
    split = GivenSplit(*(TableFile(str(path)) for path in paths.values()))
    result = project.run(project.definitions(policy=limits(), contract=contract, source=None, split=split))
    assert "120 of 120 controls equal an original in all columns" in failure_of(result)
    assert project.everything_released() == []


def test_a_control_of_fewer_than_50_people_is_refused(project):
    loose = Policy((Limit("privacy_risk_score", ADMITS, "at_most"), Limit("leakage_detected", 0, severity="warn")))
    definitions = project.definitions(policy=loose, split=Split(0.9))
    assert "There are too few people: {'control': 30}" in failure_of(project.run(definitions))


def wide(n_columns):
    columns = {f"c{j}": {"type": "integer", "role": "other"} for j in range(n_columns)}
    return {"contract": {"one_row_per_person": True, "columns": columns}, "assessment": None}


def removed():
    columns = {"name": {"type": "text", "role": "direct_identifier"}}
    return {"contract": {"one_row_per_person": True, "columns": columns}}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"disclosure": DisclosureSettings(sensitive=["disease"])}, r"`sensitive` names columns .* \['disease'\]"),
        ({"disclosure": DisclosureSettings(known=["age", "patient"])}, r"`known` names columns .* \['patient'\]"),
        (wide(1), "releases only the column 'c0'"),
        (removed(), "releases no column of synthetic records: each is a direct identifier"),
        (wide(2_001), "There are 2,001 columns. Expected at most 2,000, .*or only an anonymized version"),
        (wide(300), "An attacker is assumed to know 300 columns. Expected at most 64"),
        (
            {"synthetic": None, "anonymized": AnonymizationSettings(k=3), "disclosure": DisclosureSettings()},
            "by synthetic records, but makes no such records",
        ),
    ],
)
def test_what_no_run_could_assess_is_refused_when_definitions_are_built(project, settings, message):
    policy = limits(Limit("smallest_class", 2))
    with pytest.raises(InvalidSettingError, match=message):
        project.definitions(policy=policy, **settings)


def test_columns_that_the_policy_assumes_to_be_known_cannot_be_left_out(project):
    policy = replace(limits(), known=(("age", "cost"), ("joined",)))
    with pytest.raises(InvalidSettingError, match=r"assumes that an attacker knows \['joined', 'cost'\], but `known`"):
        project.definitions(policy=policy, disclosure=DisclosureSettings(known=["plan", "age"]))
    project.definitions(policy=policy, disclosure=DisclosureSettings(known=["joined", "age", "cost"], max_known=2))
    project.definitions(policy=policy)


def test_the_sensitive_columns_of_the_contract_cannot_be_left_out_or_watered_down(project):
    with pytest.raises(
        InvalidSettingError, match=r"declares \['cost'\] sensitive, but `sensitive` of `disclosure` leaves"
    ):
        project.definitions(policy=limits(), disclosure=DisclosureSettings(sensitive=["age"]))
    more = DisclosureSettings(sensitive=["cost", "age", "plan"])
    project.definitions(policy=limits(), disclosure=more)
    limited = limits(Limit("inference_excess", 0.1))
    with pytest.raises(InvalidSettingError, match=r"\['age', 'plan'\] are not sensitive in the contract"):
        project.definitions(policy=limited, disclosure=more)
    project.definitions(policy=limited, disclosure=DisclosureSettings(sensitive=["cost"]))


def test_the_stage_is_there_if_the_policy_limits_it_or_it_is_asked_for(project):
    def has_stage(**settings):
        definitions = project.definitions(**settings)
        return any(key(STAGE) in each.keys for each in definitions.assets)

    without = Policy((Limit("privacy_risk_score", ADMITS, "at_most"),))
    assert has_stage()
    assert has_stage(policy="development")
    assert has_stage(policy=without.with_limit(Limit("linkability_excess", 0.1)))
    assert has_stage(policy=without, disclosure=DisclosureSettings())
    assert not has_stage(policy=without)
    definitions = project.definitions()
    checks = {spec.key for each in definitions.asset_checks for spec in each.check_specs}
    assert dg.AssetCheckKey(key(STAGE), "no_leakage_is_detected") in checks
    release = next(each for each in definitions.assets if key("synthetic_release") in each.keys)
    assert key(STAGE) in release.asset_deps[key("synthetic_release")]


def test_the_decision_of_the_gate_is_that_of_the_scores(project):
    project.assess()
    decided = figures_of_disclosure(stored(project).scores, RequiredSettings(detectable_share=None))
    assert decided.metrics["leakage_detected"] == 0.0


class Copier:
    """A synthesizer that draws people of its own, and copies a share of the originals, others with each seed."""

    name = "copier"

    def __init__(self, share):
        self.share = share
        self.settings = {"share": share}

    def fit(self, table, *, seed):
        self.table = table
        return self

    def sample(self, n_records, *, seed):
        made = people(n_records, 100 + seed)[COLUMNS]
        n = int(self.share * len(self.table))
        copied = self.table[COLUMNS].sample(n, random_state=seed)
        return pd.concat([copied, made[n:]], ignore_index=True)


def copying(project, share, seed, split_seed=0):
    people(1_500, 1).to_parquet(project.root / "data" / "people.parquet", index=False)
    synthesis = Synthesis(Copier(share), seed=seed)
    return project.definitions(policy=limits(), synthetic=synthesis, split=Split(0.6, seed=split_seed))


def test_what_was_published_before_of_the_same_split_is_tested_with_the_next_release(project):
    said = ""
    for seed in range(20, 40):
        definitions = copying(project, 0.004, seed)
        result = project.run(definitions)
        if not result.success:
            said = result.asset_materializations_for_node(f"people__{STAGE}")[0].metadata["found"].value
        if ", all releases" in said:
            break
    n_published = len(project.releases())
    assert n_published >= 2
    # Alone, the records would have been released.
    assert "near copies," not in said.replace("near copies, all releases", "")
    manifest = json.loads((project.releases()[-1] / "manifest.json").read_text())
    assert manifest["figures"][STAGE]["n_published_together"] == n_published - 1
    assert (manifest["figures"][STAGE]["n_splits"], manifest["figures"][STAGE]["published_apart"]) == (1, [])
    shutil.move(project.releases()[0], project.root / "elsewhere")
    lost = failure_of(project.run(definitions))
    assert "A table that was published of the same originals cannot be read" in lost


def test_a_release_of_a_table_that_was_tested_before_another_was_published_is_refused(project):
    first = copying(project, 0.0, 1)
    assert project.run(first).success
    second = copying(project, 0.0, 2)
    assert project.run(second).success
    history = project.private / "disclosure_tests" / "people__synthetic.jsonl"
    lines = history.read_text().splitlines()
    test = json.loads(lines[-1])
    assert len(test["published"]) == len(test["together_with"]) == 1
    history.write_text("\n".join([*lines[:-1], json.dumps(test | {"published": [], "together_with": []})]))
    reason = project.refused_because(second)
    assert reason == "tables published before of the same originals, not yet tested together with this one: 1"
    history.write_text("")
    assert project.refused_because(second) == "the private record does not have the disclosure test of this table"
    history.write_text("not JSON")
    with pytest.raises(InvalidTableError, match="is damaged"):
        project.refused_because(second)


def test_splits_are_not_tried_until_one_finds_no_leak(project):
    for seed in range(3):
        definitions = copying(project, 0.0, 7 + seed, split_seed=seed)
        result = project.run(definitions)
        assert result.success == (seed < 2)
    assert "2 other splits of these people were tried before; expected at most one" in project.refused_because(
        definitions
    )
    manifest = json.loads((project.releases()[-1] / "manifest.json").read_text())
    assert manifest["figures"][STAGE]["n_splits"] == 2
    assert manifest["figures"][STAGE]["published_apart"] == [project.releases()[0].name]
    # A leak of the same synthesis on another split stays one; another synthesis is another question.
    assert not project.run(copying(project, 0.1, 7)).success
    reason = project.refused_because(copying(project, 0.1, 7))
    assert "leakage_detected is yes" in reason


def test_splits_are_counted_in_the_order_of_their_tests_in_whatever_release(project):
    """A third release of the same rows, under another split, is refused, and not the first, whatever their names."""
    people(1_500, 1).to_parquet(project.root / "data" / "people.parquet", index=False)
    made = {}
    for seed, name in enumerate(("people", "later", "again")):
        synthesis = Synthesis(Copier(0.0), seed=seed)
        made[name] = project.definitions(policy=limits(), synthetic=synthesis, split=Split(0.6, seed=seed), name=name)
        with project.instance() as instance:
            result = dg.materialize(
                [*made[name].assets, *made[name].asset_checks],
                resources=dict(made[name].resources),
                instance=instance,
                raise_on_error=False,
            )
        assert result.success == (name != "again"), name
    assert project.refused_because(made["people"]) == ""


def test_a_leak_on_another_split_stays_one(project):
    definitions = copying(project, 0.1, 7)
    assert not project.run(definitions).success
    history = project.private / "disclosure_tests" / "people__synthetic.jsonl"
    assert json.loads(history.read_text())["leaks"] is True
    other = copying(project, 0.1, 8, split_seed=1)
    project.run(other)
    assert "records of this synthesis leaked on another split of these people (1)" in project.refused_because(other)


class Filter:
    """A synthesizer of other people, without the half that is nearest to the originals, as some tools filter."""

    name = "filter"
    settings: dict = {}  # noqa: RUF012

    def fit(self, table, *, seed):
        self.originals = self.places(table)
        return self

    def sample(self, n_records, *, seed):
        made = people(4 * n_records, 100 + seed)[COLUMNS]
        distances = np.array([np.abs(self.originals - each).sum(axis=1).min() for each in self.places(made)])
        return made[distances > np.median(distances)][:n_records].reset_index(drop=True)

    @staticmethod
    def places(table):
        days = (table["joined"] - pd.Timestamp("2020-01-01")).dt.days
        plan = pd.factorize(table["plan"], sort=True)[0]
        return np.column_stack([table["age"] / 40, table["cost"] / 30, days / 60, plan])


def test_a_filter_by_the_distance_to_originals_is_refused_with_its_advice(project):
    _, result = refused_of(project, Filter())
    metadata = result.asset_materializations_for_node(f"people__{STAGE}")[0].metadata
    assert "absence" in metadata["found"].value
    assert "Do not drop records because they are close to originals" in metadata["advice"].value


def test_records_are_released_after_generalized_ones_of_the_same_originals(project):
    generalized = project.definitions(
        policy=limits(),
        synthetic=Synthesis(Copier(0.0), seed=1),
        split=Split(0.6),
        generalize_synthetic=AnonymizationSettings(k=5),
    )
    plain = copying(project, 0.0, 2)
    assert project.run(generalized).success
    result = project.run(plain)
    assert result.success, failure_of(result)
    manifest = json.loads((project.releases()[-1] / "manifest.json").read_text())
    assert manifest["figures"][STAGE]["published_apart"] == [project.releases()[0].name]


def test_a_published_table_that_was_changed_is_not_tested_together(project):
    assert project.run(copying(project, 0.0, 1)).success
    path = project.releases()[0] / "synthetic.parquet"
    path.chmod(0o644)
    kinds = pd.read_parquet(path).dtypes.to_dict()
    people(900, 999)[COLUMNS].astype(kinds).to_parquet(path, index=False)
    assert not project.run(copying(project, 0.0, 2)).success


def test_the_order_of_the_source_and_its_columns_do_not_make_other_people(project):
    assert project.run(copying(project, 0.0, 1)).success
    path = project.root / "data" / "people.parquet"
    pd.read_parquet(path).sample(frac=1, random_state=3).to_parquet(path, index=False)
    synthesis = Synthesis(Copier(0.0), seed=2)
    assert project.run(project.definitions(policy=limits(), synthetic=synthesis, split=Split(0.6))).success
    manifest = json.loads((project.releases()[-1] / "manifest.json").read_text())
    assert manifest["figures"][STAGE]["n_splits"] == 2


def test_a_release_with_other_columns_is_named(project):
    assert project.run(copying(project, 0.0, 1)).success
    columns = {**CONTRACT["columns"], "cost": {"type": "float", "role": "direct_identifier", "nullable": True}}
    definitions = project.definitions(
        policy=limits(), contract={"columns": columns}, synthetic=Synthesis(), split=Split(0.6)
    )
    assert project.run(definitions).success
    manifest = json.loads((project.releases()[-1] / "manifest.json").read_text())
    assert manifest["figures"][STAGE]["published_apart"] == [project.releases()[0].name]


def test_a_number_of_records_is_no_other_synthesis(project):
    copying(project, 0.0, 7)
    for seed, n_records in enumerate((900, 901, 902)):
        synthesis = Synthesis(Copier(0.0), seed=7 + seed, n_records=n_records)
        definitions = project.definitions(policy=limits(), synthetic=synthesis, split=Split(0.6, seed=seed))
        assert project.run(definitions).success == (seed < 2)


def test_deleting_the_record_of_tests_does_not_hide_what_was_published(project):
    assert project.run(copying(project, 0.0, 1)).success
    (project.private / "disclosure_tests" / "people__synthetic.jsonl").unlink()
    result = project.run(copying(project, 0.0, 2))
    assert result.success, failure_of(result)
    figures = json.loads((project.releases()[-1] / "manifest.json").read_text())["figures"][STAGE]
    assert (figures["n_published_together"], figures["published_apart"]) == (0, [project.releases()[0].name])


def test_the_report_says_which_criteria_are_asked_of_several_releases(project):
    assert project.run(copying(project, 0.0, 1)).success
    assert project.run(copying(project, 0.0, 2)).success
    report = (project.releases()[-1] / "report.html").read_text()
    assert report.count("Is some synthetic record surprisingly close?") == 1
