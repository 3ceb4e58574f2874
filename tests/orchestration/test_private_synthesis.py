"""Differentially private records as assets: what is spent stays spent, and the gate asks the ledger."""

import json
import re
import shutil
import time

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from dagster._daemon.auto_run_reexecution.auto_run_reexecution import filter_runs_to_should_retry

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration import assets, private_synthesis_assets
from privacy_assets.orchestration.evidence.spending import recorded_fits
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager
from privacy_assets.orchestration.settings.options import Candidate
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import Split, Synthesis
from privacy_assets.pipeline.settings.privacy_budget import PrivacyBudget
from privacy_assets.release.gate import Verdict
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.artifact_files import read_artifact
from privacy_assets.storage.durable_files import locked
from privacy_assets.synthesis.private.accounting import epsilon_of, rho_of
from privacy_assets.synthesis.private.ledger import PrivacyLedger
from privacy_assets.synthesis.private.records import PrivateRecords
from tests.extras import NEEDS_DP
from tests.orchestration.forked import PROCESSES
from tests.orchestration.project import ADMITS, Project, failure_of, key, people, refusal

pytestmark = NEEDS_DP

CONTRACT = {
    "columns": {
        "patient": {"type": "text", "role": "direct_identifier", "person": True},
        "age": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 120},
        "plan": {"type": "text", "role": "quasi_identifier", "isin": ["free", "family", "single"], "nullable": True},
        "cost": {"type": "float", "role": "sensitive", "min": 0, "max": 40, "precision": 1, "nullable": True},
    }
}
MST = Synthesis("mst", seed=3, settings={"epsilon": 1.0, "given": "plan"})


def policy(*limits):
    own = (Limit("privacy_risk_score", ADMITS, "at_most"), *limits)
    return Policy(own, RequiredSettings(control_records=40, detectable_share=None))


def write_people(project, seed=1):
    people(600, seed).drop(columns="joined").to_parquet(project.root / "data" / "people.parquet", index=False)


@pytest.fixture
def project(project):
    write_people(project)
    return project


def definitions(project, *limits, synthetic=MST, **others):
    settings = {"contract": CONTRACT, "policy": policy(*limits), "split": Split(0.5), "synthetic": synthetic}
    return project.definitions(**{**settings, **others})


def ledger(project, population="people"):
    return PrivacyLedger(project.private / "privacy_budget", population)


def release(project):
    write_people(project)
    assert project.run(definitions(project)).success


def release_and_fit_again(project):
    release(project)
    (project.root / "older").mkdir()
    for path in (ledger(project).path, ledger(project).witness_path):
        shutil.copy(path, project.root / "older")
    again = ("noisy_model", "synthetic", "preprocessed", "mpucc_assessment")
    assert project.run(definitions(project), *again).success


def known_fits(instance, population):
    """Return what Dagster knows."""
    return {fit.digest for fit in recorded_fits(instance) if fit.population == population}


def stage(project, made, *stages):
    return project.run(made, *stages)


def test_records_are_released_with_what_was_spent(project):
    made = definitions(project, Limit("epsilon", 1.0), Limit("total_epsilon", 3.0), Limit("delta", 1e-6))
    result = project.run(made)
    assert result.success, failure_of(result)
    (entry,) = ledger(project).entries()
    assert (entry.release, entry.epsilon, entry.delta, entry.run_id) == ("people", 1.0, 1e-6, result.run_id)
    assert entry.rho <= rho_of(1.0, 1e-6)
    (release,) = project.releases()
    manifest = json.loads((release / "manifest.json").read_text())
    verdicts = {each["name"]: Verdict(**each) for each in manifest["verdicts"]}
    assert verdicts["epsilon_is_at_most_its_limit"].value == 1.0
    assert verdicts["total_epsilon_is_at_most_its_limit"].value == pytest.approx(epsilon_of(entry.rho, 1e-6))
    assert verdicts["delta_is_at_most_its_limit"].passed
    assert verdicts["the_privacy_budget_is_recorded"].passed
    assert verdicts["noisy_model_was_made_of_the_recorded_tables"].passed
    assert manifest["settings"]["synthetic"]["method"] == "mst"
    assert manifest["settings"]["synthetic"]["settings"]["epsilon"] == 1.0
    assert "seed" not in manifest["settings"]["synthetic"]
    assert manifest["figures"]["privacy_budget"]["ledger"] == entry.digest
    report = (release / "report.html").read_text()
    assert "The records have a guarantee of epsilon 1; the figures and the decision were computed" in report
    model = read_artifact(project.stored("noisy_model"))
    assert model.made_of.keys() == {"original"}
    assert len(model.header["charges"]) == 2 + 1 + 1
    assert sum(rho for _, rho in model.header["charges"]) == pytest.approx(entry.rho, abs=1e-12)


def test_drawing_again_is_free_and_fitting_again_spends(project):
    project.begin_as(release)
    made = definitions(project)
    assert stage(project, made, "synthetic").success
    assert len(ledger(project).entries()) == 1
    assert stage(project, made, "noisy_model").success
    assert len(ledger(project).entries()) == 2
    with project.instance() as instance:
        assert known_fits(instance, "people") == {each.digest for each in ledger(project).entries()}
        assert known_fits(instance, "others") == set()
    # The release must be of the model that exists now.
    stale = stage(project, made, "synthetic_release")
    assert "synthetic was made from an earlier version of ['noisy_model']" in refusal(stale)


def test_a_fit_beyond_the_budget_is_stopped_before_a_record_is_counted(project, monkeypatch):
    made = definitions(project, Limit("total_epsilon", 1.5))
    assert project.run(made).success
    assert stage(project, made, "noisy_model").success
    counted = []
    monkeypatch.setattr(PrivateRecords, "__init__", lambda *_: counted.append(1))
    refused = stage(project, made, "noisy_model")
    assert not refused.success
    assert "The privacy budget of 'people' is used up: 2 fits have spent epsilon 1.45" in failure_of(refused)
    assert not counted
    assert len(ledger(project).entries()) == 2
    assert len(project.releases()) == 1


@pytest.mark.parametrize("damage", ["delete", "cut", "edit", "older"])
def test_a_ledger_that_was_set_back_refuses_the_release_and_the_next_fit(project, damage):
    project.begin_as(release_and_fit_again)
    made = definitions(project)
    path = ledger(project).path
    if damage == "delete":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-40])
    elif damage == "edit":
        path.write_bytes(path.read_bytes().replace(b'"epsilon":1.0', b'"epsilon":0.1', 1))
    else:
        path.write_bytes((project.root / "older" / path.name).read_bytes())
    says = {
        "cut": "has 1 fits, and its witness knows of 2",
        "delete": "has 0 fits, and its witness knows of 2",
        "edit": "cannot be trusted: entry 1 was changed",
        "older": "has 1 fits, and its witness knows of 2",
    }[damage]
    released = stage(project, made, "synthetic_release")
    assert says in refusal(released)
    fitted = stage(project, made, "noisy_model")
    assert not fitted.success
    assert says in failure_of(fitted)
    assert len(project.releases()) == 1


def test_a_fit_that_fails_has_spent(project, monkeypatch):
    made = definitions(project)
    assert stage(project, made, "source", "original", "control").success

    def fail(*_):
        raise RuntimeError("SENTINEL")

    monkeypatch.setattr(PrivateRecords, "noisy_choice", fail)
    failed = stage(project, made, "noisy_model")
    assert not failed.success
    assert "SENTINEL" not in failure_of(failed)
    (entry,) = ledger(project).entries()
    with project.instance() as instance:
        assert known_fits(instance, "people") == {entry.digest}


def fails(*_):
    raise RuntimeError("SENTINEL")


def with_retries(project, **settings):
    """Let the instance run failed runs again, as an administrator may for all of them."""
    retries = json.dumps({"enabled": True, "max_retries": 3, **settings})
    with (project.home / "dagster.yaml").open("a") as file:
        file.write(f"run_retries: {retries}\n")


def is_run_again(project, result):
    with project.instance() as instance:
        run = instance.get_run_by_id(result.run_id)
        assert run.status == dg.DagsterRunStatus.FAILURE
        (record,) = instance.get_run_records(dg.RunsFilter(run_ids=[result.run_id]))
        again = list(filter_runs_to_should_retry([record.dagster_run], instance))
        assert (run.tags["dagster/will_retry"] == "true") == bool(again)
        return bool(again)


@pytest.mark.parametrize(
    ("settings", "stages", "breaks"),
    [
        ({}, ("noisy_model",), (PrivateRecords, "noisy_choice")),
        ({}, (), (PrivateRecords, "noisy_choice")),
        ({}, ("noisy_model", "synthetic"), (assets, "from_artifact")),
        ({"retry_on_asset_or_op_failure": True}, ("noisy_model",), (PrivateRecords, "noisy_choice")),
        ({"max_retries": 1}, ("noisy_model",), (private_synthesis_assets, "to_artifact")),
        ({}, ("noisy_model",), (PrivateParquetIOManager, "dump_to_path")),
    ],
)
def test_a_run_that_spent_is_not_run_again_by_its_instance(project, monkeypatch, settings, stages, breaks):
    with_retries(project, **settings)
    made = definitions(project)
    if stages:
        assert stage(project, made, "source", "original", "control").success
    monkeypatch.setattr(*breaks, fails)
    failed = stage(project, made, *stages)
    assert len(ledger(project).entries()) == 1
    assert not is_run_again(project, failed)


def test_a_run_that_failed_before_it_spent_may_be_run_again(project, monkeypatch):
    with_retries(project)
    made = definitions(project)
    assert stage(project, made, "source", "original", "control").success
    monkeypatch.setattr(private_synthesis_assets, "people_of_fit", fails)
    failed = stage(project, made, "noisy_model")
    assert ledger(project).entries() == ()
    assert is_run_again(project, failed)


def test_a_step_that_spent_is_not_repeated_by_the_policy_of_a_job(project, monkeypatch):
    made = definitions(project)
    assert stage(project, made, "source", "original", "control").success
    monkeypatch.setattr(PrivateRecords, "noisy_choice", fails)
    job = dg.define_asset_job(
        "again", dg.AssetSelection.assets(key("noisy_model")), op_retry_policy=dg.RetryPolicy(max_retries=2)
    )
    with project.instance() as instance:
        resolved = dg.Definitions.merge(made, dg.Definitions(jobs=[job])).resolve_job_def("again")
        assert not resolved.execute_in_process(instance=instance, raise_on_error=False).success
    assert len(ledger(project).entries()) == 1


def test_two_releases_of_one_population_add_up(project):
    budget, limit = PrivacyBudget(population="town"), Limit("total_epsilon", 1.5)
    one = definitions(project, limit, privacy_budget=budget)
    two = definitions(project, limit, privacy_budget=budget, name="others")
    assert project.run(one).success
    second = project.run(two)
    assert second.success, failure_of(second)
    town = ledger(project, "town")
    assert [entry.release for entry in town.entries()] == ["people", "others"]
    assert not ledger(project).path.exists()
    with project.instance() as instance:
        assert known_fits(instance, "town") == {entry.digest for entry in town.entries()}
    # The first is released again, with what both have spent by now.
    assert stage(project, one, "synthetic_release").success
    for name, n_releases in (("people", 2), ("others", 1)):
        releases = sorted((project.root / "releases" / name / "synthetic").glob("2*"))
        assert len(releases) == n_releases
        spent = json.loads((releases[-1] / "manifest.json").read_text())["figures"]["privacy_budget"]
        assert (spent["fits"], spent["epsilon"]) == (2, 1.0)
        assert spent["ledger"] == town.entries()[-1].digest
        assert spent["total_epsilon"] == pytest.approx(epsilon_of(2 * town.entries()[0].rho, 1e-6))
    third = stage(project, one, "noisy_model")
    assert "The privacy budget of 'town' is used up: 2 fits have spent epsilon 1.45" in failure_of(third)
    assert len(town.entries()) == 2


def fit_in_this_process(root, limit, says):
    """Materialize the noisy model of a project that another process made; send what stopped it."""
    project = Project(root)
    fitted = stage(project, definitions(project, Limit("total_epsilon", limit)), "noisy_model")
    says.send((fitted.run_id, fitted.success, failure_of(fitted)))


def started_fits(project):
    with project.instance() as instance:
        logs = [instance.all_logs(run.run_id, dg.DagsterEventType.STEP_START) for run in instance.get_runs()]
    return sum(log.step_key == "people__noisy_model" for each in logs for log in each)


@pytest.mark.parametrize(("limit", "n_fits"), [(1.2, 1), (3.0, 2)])
def test_two_runs_at_once_wait_for_each_other_and_never_overspend(project, limit, n_fits):
    made = definitions(project, Limit("total_epsilon", limit))
    assert stage(project, made, "source", "original", "control").success
    own = ledger(project)
    own.directory.mkdir(mode=0o700)
    ends = [PROCESSES.Pipe(duplex=False) for _ in range(2)]
    runs = [PROCESSES.Process(target=fit_in_this_process, args=(project.root, limit, says)) for _, says in ends]
    with locked(own.directory):
        for run in runs:
            run.start()
        until = time.monotonic() + 300
        while started_fits(project) < 2 and time.monotonic() < until:
            assert all(run.is_alive() for run in runs)
            time.sleep(0.2)
        time.sleep(1)
        assert all(run.is_alive() for run in runs)
        assert own.entries() == ()
    assert all(hears.poll(300) for hears, _ in ends)
    found = [hears.recv() for hears, _ in ends]
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0, 0]
    entries = own.entries()
    assert len(entries) == n_fits
    assert {entry.run_id for entry in entries} == {run_id for run_id, success, _ in found if success}
    refused = [failure for _, success, failure in found if not success]
    assert len(refused) == 2 - n_fits
    assert all("is used up: 1 fits have spent epsilon 1 " in says for says in refused), refused
    with project.instance() as instance:
        assert known_fits(instance, "people") == {entry.digest for entry in entries}


def test_figures_that_were_computed_on_people_are_withheld_on_request(project):
    made = definitions(project, privacy_budget=PrivacyBudget(publish_figures=False), formats=("parquet", "csv"))
    result = project.run(made)
    assert result.success, failure_of(result)
    (release,) = project.releases()
    assert verify_release(release, max_bytes=None).figures_withheld
    assert verify_release(release, max_bytes=None).verified
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["figures"].keys() == {"privacy_budget"}
    assert manifest["figures"]["privacy_budget"]["epsilon"] == 1.0
    assert "ledger" not in manifest["figures"]["privacy_budget"]
    assert manifest["settings"].keys() == {"unit", "split", "synthetic"}
    assert {each["value"] for each in manifest["verdicts"] if each["metric"] == "privacy_risk_score"} == {None}
    # Dagster's own record, which only the owner of the instance reads, has the figure.
    (check,) = [each for each in result.get_asset_check_evaluations() if "privacy_risk_score" in each.check_name]
    score = check.metadata["score"].value
    assert 0 < score < 1
    published = [path for path in project.root.joinpath("releases").rglob("*") if path.suffix in (".html", ".json")]
    assert len(published) >= 3, published
    ledger_digest = ledger(project).entries()[-1].digest
    # Also as the beginning of a longer number; but a short score, such as 0.2, is that of many.
    sought = [
        re.escape(each) + (r"(?!\d)" if len(each) < len("0.123") else "") for each in (f"{score:.3g}", str(score))
    ]
    for path in published:
        text = path.read_text()
        assert not any(re.search(each, text) for each in sought)
        assert ledger_digest not in text
        assert "data:image" not in text


def test_a_refusal_shows_its_figures_also_where_a_release_withholds_them(project):
    budget = PrivacyBudget(publish_figures=False)
    strict = Policy((Limit("privacy_risk_score", 1e-6, "at_most"),), policy().required)
    result = project.run(definitions(project, policy=strict, privacy_budget=budget))
    assert not result.success
    assert "privacy_risk_score is 0." in failure_of(result) + str(
        [each.description for each in result.get_asset_check_evaluations()]
    )
    # The register is beside the releases, and the history is shown by a later one.
    (check,) = [each for each in result.get_asset_check_evaluations() if "privacy_risk_score" in each.check_name]
    said = project.register.read_text()
    assert "not met, the finding is withheld: privacy risk score is at most its limit" in said
    history = next((project.private / "refusals").iterdir()).read_text()
    for text in (said, history):
        assert str(check.metadata["score"].value) not in text
        assert f"{check.metadata['score'].value:.3g}" not in text


def test_a_method_without_a_guarantee_fails_a_limit_on_epsilon(project):
    copula = definitions(project, Limit("epsilon", 1.0), synthetic=Synthesis())
    result = project.run(copula)
    evaluations = {each.check_name: each for each in result.get_asset_check_evaluations()}
    assert not evaluations["epsilon_is_at_most_its_limit"].passed
    assert "epsilon has no value" in evaluations["epsilon_is_at_most_its_limit"].description
    assert not project.everything_released()


PARTS = ("north", "south")


def put_parts(project, south_from=300, n_people=300):
    """Store the table of each partition; the first people are in the north."""
    table = people(2 * n_people, 1).drop(columns="joined")
    for part, begin in zip(PARTS, (0, south_from), strict=True):
        own = table.iloc[begin : begin + n_people]
        own.to_parquet(project.root / "data" / f"{part}.parquet", index=False)


def definitions_of_parts(project, *limits, contract=CONTRACT, **budget):
    return definitions(
        project,
        *limits,
        contract=contract,
        source=TableFile(str(project.root / "data" / "{partition_key}.parquet")),
        partitions_def=dg.StaticPartitionsDefinition(list(PARTS)),
        privacy_budget=PrivacyBudget(**budget),
    )


def fit_part(project, made, part, *stages):
    fitted = project.run(made, *(stages or ("source", "original", "control", "noisy_model")), partition=part)
    shown = [each.metadata for each in fitted.asset_materializations_for_node("people__noisy_model")]
    return fitted, {name: value.value for name, value in shown[-1].items()} if shown else {}


def test_partitions_add_up(project):
    put_parts(project)
    made = definitions_of_parts(project)
    for part in PARTS:
        fitted, _ = fit_part(project, made, part)
        assert fitted.success, failure_of(fitted)
    assert [entry.partition for entry in ledger(project).entries()] == ["north", "south"]
    assert ledger(project).epsilon(1e-6) > 1.4


def test_partitions_with_different_people_cost_as_much_as_the_largest(project):
    # The noise has no seed: of 300 people, 3 of 100 fits leave only records that single somebody out.
    put_parts(project, south_from=1_500, n_people=1_500)
    made = definitions_of_parts(project, Limit("total_epsilon", 1.2), partitions_are_disjoint=True)
    for part in PARTS:
        fitted, shown = fit_part(project, made, part)
        assert fitted.success, failure_of(fitted)
        assert shown["partitions_are_disjoint"] is True
        assert shown["total_epsilon"] == pytest.approx(epsilon_of(ledger(project).entries()[0].rho, 1e-6))
    again, _ = fit_part(project, made, "south", "noisy_model")
    assert "is used up: 2 fits have spent epsilon 1 at delta 1e-06, and with this one it would be 1.45" in (
        failure_of(again)
    )
    rest = ("synthetic", "preprocessed", "mpucc_assessment", "synthetic_release")
    released = project.run(made, *rest, partition="south")
    assert released.success, failure_of(released)
    (release,) = project.releases("south")
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["figures"]["privacy_budget"]["fits"] == 2
    assert manifest["figures"]["privacy_budget"]["total_epsilon"] == pytest.approx(ledger(project).epsilon(1e-6))
    assert ledger(project).epsilon(1e-6) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("limit", "stops"), [(3.0, False), (1.2, True)])
def test_people_who_are_in_two_partitions_at_any_time_make_the_fits_add_up(project, limit, stops):
    put_parts(project)
    made = definitions_of_parts(project, Limit("total_epsilon", limit), partitions_are_disjoint=True)
    assert fit_part(project, made, "north")[0].success
    # The north now has other people, and those it had are in the south: no two tables that exist have one in common.
    table = people(600, 1).drop(columns="joined")
    table.iloc[300:].to_parquet(project.root / "data" / "north.parquet", index=False)
    table.iloc[:300].to_parquet(project.root / "data" / "south.parquet", index=False)
    assert fit_part(project, made, "north", "source", "original", "control")[0].success
    fitted, shown = fit_part(project, made, "south")
    assert fitted.success != stops
    if stops:
        assert "is used up" in failure_of(fitted)
        assert len(ledger(project).entries()) == 1
    else:
        assert shown["partitions_are_disjoint"] is False
        assert shown["total_epsilon"] == pytest.approx(epsilon_of(2 * ledger(project).entries()[0].rho, 1e-6))


def test_partitions_add_up_where_their_people_are_not_known(project):
    put_parts(project)
    undeclared = definitions_of_parts(project)
    made = definitions_of_parts(project, partitions_are_disjoint=True)
    assert fit_part(project, made, "north")[0].success
    # The source of the south was admitted before the people of partitions were kept.
    assert fit_part(project, undeclared, "south", "source", "original", "control")[0].success
    fitted, shown = fit_part(project, made, "south", "noisy_model")
    assert fitted.success, failure_of(fitted)
    assert shown["partitions_are_disjoint"] is False
    assert [bool(entry.people) for entry in ledger(project).entries()] == [True, False]
    assert ledger(project).epsilon(1e-6) > 1.4


def test_people_whose_type_changed_are_not_known_to_differ(project):
    """The text '007' and the number 7 have two hashes."""
    table = people(300, 1).drop(columns="joined").assign(patient=[f"{number:04}" for number in range(300)])
    for part in PARTS:
        table.to_parquet(project.root / "data" / f"{part}.parquet", index=False)
    fitted, _ = fit_part(project, definitions_of_parts(project, partitions_are_disjoint=True), "north")
    assert fitted.success, failure_of(fitted)
    numbers = {**CONTRACT["columns"], "patient": {**CONTRACT["columns"]["patient"], "type": "integer"}}
    made = definitions_of_parts(project, contract={"columns": numbers}, partitions_are_disjoint=True)
    fitted, shown = fit_part(project, made, "south")
    assert fitted.success, failure_of(fitted)
    assert shown["partitions_are_disjoint"] is False
    assert shown["total_epsilon"] == pytest.approx(ledger(project).epsilon(1e-6)) == pytest.approx(1.45, abs=0.01)


@pytest.mark.parametrize(
    ("settings", "more", "says"),
    [
        ({"epsilon": 4.0}, {}, "would spend total_epsilon 4.*never admits: expected at most 3"),
        ({"epsilon": 0}, {}, "epsilon is 0"),
        ({"noise": 1}, {}, r"'mst' has no settings \['noise'\]"),
        ({"given": "age"}, {}, "'age', which has 32 codes"),
        ({"delta": 0.1}, {}, "delta is 0.1"),
        ({"bin_starts": {"age": [5]}}, {}, "'age' has `bin_starts`"),
        (
            {},
            {"contract": {"columns": {**CONTRACT["columns"], "note": {"type": "text", "role": "other"}}}},
            "'note' is text",
        ),
        ({}, {"privacy_budget": lambda: PrivacyBudget(population="a/b")}, "privacy_budget.population is 'a/b'"),
        ({}, {"privacy_budget": lambda: PrivacyBudget(delta=0)}, "delta is 0"),
        ({}, {"privacy_budget": lambda: PrivacyBudget(partitions_are_disjoint=1)}, "disjoint is 1. Expected true or"),
        ({}, {"privacy_budget": lambda: PrivacyBudget(partitions_are_disjoint=True)}, "the release lacks partitions,"),
        ({}, {"privacy_budget": lambda: PrivacyBudget(publish_figures="no")}, "publish_figures is 'no'. Expected true"),
        ({}, {"privacy_budget": lambda: PrivacyBudget(publish_figures=False), "waivers": "w"}, "and there are waivers"),
    ],
)
def test_settings_that_no_fit_could_have_are_refused_when_definitions_are_built(project, settings, more, says):
    with pytest.raises(InvalidSettingError, match=says):
        resolved = {name: value() if callable(value) else value for name, value in more.items()}
        definitions(project, synthetic=Synthesis("mst", settings=settings), **resolved)
    assert not ledger(project).path.exists()


def test_what_would_spend_without_a_record_or_an_end_is_refused(project):
    with pytest.raises(InvalidSettingError, match="nothing is charged to"):
        definitions(project, synthetic=Synthesis(), privacy_budget=PrivacyBudget())
    with pytest.raises(InvalidSettingError, match="'total_epsilon' only warns"):
        definitions(project, Limit("total_epsilon", 3.0, severity="warn"))
    with pytest.raises(InvalidSettingError, match="comparing it would spend"):
        Candidate(synthetic=Synthesis("mst"))


def test_no_cell_leaves_with_the_fit(project):
    table = people(600, 1).drop(columns="joined")
    table.loc[0, "plan"] = "family"
    table["patient"] = "SENTINEL-" + table["patient"]
    table.to_parquet(project.root / "data" / "people.parquet", index=False)
    result = project.run(definitions(project))
    assert result.success
    text = "".join(str(event) for event in result.all_events)
    assert "SENTINEL" not in text
    model = read_artifact(project.stored("noisy_model"))
    assert "SENTINEL" not in json.dumps(model.header)
    assert all(np.issubdtype(dtype, np.number) for frame in model.frames.values() for dtype in frame.dtypes)
    assert isinstance(model.frames["counts"], pd.DataFrame)
