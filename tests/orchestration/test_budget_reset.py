"""A privacy budget that cannot be reset: whoever removes some of what knows of a fit is stopped by what is left."""

import json
import re
import shutil
from dataclasses import replace

import dagster as dg
import pytest

from privacy_assets.orchestration.evidence.spending import recorded_fits
from privacy_assets.orchestration.settings.synthetic import Split
from privacy_assets.pipeline.settings.privacy_budget import PrivacyBudget
from privacy_assets.release.policy import Limit
from privacy_assets.synthesis.private.ledger import PrivacyLedger
from privacy_assets.synthesis.private.records import PrivateRecords
from privacy_assets.synthesis.private.spending import parse_witness
from tests.extras import NEEDS_DP
from tests.orchestration import project as project_module
from tests.orchestration.project import Project, blocked_by, failure_of, key, refusal
from tests.orchestration.test_private_synthesis import definitions, ledger, release, release_and_fit_again, write_people

pytestmark = NEEDS_DP
TO_THE_FIT = ("source", "original", "control", "noisy_model")


def fit(project):
    write_people(project)
    assert project.run(definitions(project), *TO_THE_FIT).success


@pytest.fixture
def project(project):
    write_people(project)
    return project


def wipe_events(project):
    with project.instance() as instance:
        instance.wipe_assets([key("noisy_model")])
        assert recorded_fits(instance) == []


def wipe_everything(project):
    delete_runs(project)
    with project.instance() as instance:
        instance.wipe_assets(instance.all_asset_keys())
        assert recorded_fits(instance) == []


def delete_runs(project):
    with project.instance() as instance:
        for run in instance.get_runs():
            instance.delete_run(run.run_id)


def materialize_keys(made, keys, instance):
    return dg.materialize(
        [*made.assets, *made.asset_checks],
        selection=dg.AssetSelection.assets(*keys),
        resources=dict(made.resources),
        instance=instance,
        raise_on_error=False,
    )


def files(project, population="people"):
    own = ledger(project, population)
    return own.path, own.witness_path


def backup(project):
    return {path: path.read_bytes() for path in files(project)}


def cut(project):
    path = ledger(project).path
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def delete_ledger(project):
    ledger(project).path.unlink()


def delete_both(project):
    for path in files(project):
        path.unlink()


def delete_witness(project):
    ledger(project).witness_path.unlink()


def forget_model(project):
    shutil.rmtree(project.stored("noisy_model"))


def forget_releases(project):
    shutil.rmtree(project.root / "releases")


def move_releases(project):
    (project.root / "releases" / project_module.NAME).rename(project.root / "archive")


def damage_manifests(project):
    for path in (project.root / "releases").rglob("manifest.json"):
        path.write_bytes(path.read_bytes()[:-5])


def restore(copies):
    for path, content in copies.items():
        path.write_bytes(content)


OLDER = object()
ATTEMPTS = {
    "wiped events, deleted ledger": ([wipe_events, delete_ledger], "its witness knows of 2"),
    "wiped events, cut ledger": ([wipe_events, cut], "its witness knows of 2"),
    "deleted runs, deleted ledger": ([delete_runs, delete_ledger], "its witness knows of 2"),
    "everything of Dagster, cut ledger, no releases": ([wipe_everything, forget_releases, cut], "witness knows of 2"),
    "deleted witness": ([delete_witness], "its witness .* is missing"),
    "wiped events, cut ledger, deleted witness": ([wipe_events, cut, delete_witness], "lacks 1 fits"),
    "ledger and witness": ([delete_both], "lacks 2 fits"),
    "ledger, witness and releases": ([delete_both, forget_releases, forget_model], "lacks 2 fits"),
    "wiped events, ledger, witness": ([wipe_events, delete_both], "lacks 2 fits"),
    "wiped events, ledger, witness, releases": ([wipe_events, delete_both, forget_releases], "lacks 2 fits"),
    "wiped events, ledger, witness, model": ([wipe_events, delete_both, forget_model], "lacks 1 fits"),
    "everything of Dagster, ledger, witness, model": ([wipe_everything, delete_both, forget_model], "lacks 1 fits"),
    "all but the record of publications": (
        [wipe_everything, delete_both, forget_model, forget_releases],
        "lacks 1 fits",
    ),
    "releases moved, all but the record of publications": (
        [wipe_everything, delete_both, forget_model, move_releases],
        "lacks 1 fits",
    ),
    "manifest damaged, all but the record of publications": (
        [wipe_everything, delete_both, forget_model, damage_manifests],
        "lacks 1 fits",
    ),
    "older copies": ([OLDER], "lacks 1 fits"),
    "wiped events, older copies": ([wipe_events, OLDER], "lacks 1 fits"),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_whoever_removes_what_knows_of_a_fit_is_stopped_by_what_is_left(project, monkeypatch, attempt):
    project.begin_as(release_and_fit_again)
    made = definitions(project)
    older = {path: (project.root / "older" / path.name).read_bytes() for path in files(project)}
    acts, says = ATTEMPTS[attempt]
    for act in acts:
        if act is OLDER:
            restore(older)
        else:
            act(project)
    manifests = set((project.root / "releases").rglob("manifest.json"))

    # The release alone asks the gate; one attempt shows it in a run.
    found = project.refused_because(made)
    assert re.search(says, found), found
    if attempt == "all but the record of publications":
        assert re.search(says, refusal(project.run(made, "synthetic_release")))
    assert set((project.root / "releases").rglob("manifest.json")) == manifests

    counted = []
    monkeypatch.setattr(PrivateRecords, "__init__", lambda *_: counted.append(1))
    fitted = project.run(made, "noisy_model")
    assert not fitted.success
    assert re.search(says, failure_of(fitted)), failure_of(fitted)
    assert not counted


def test_a_budget_is_as_before_after_both_newest_copies_were_restored(project):
    made = definitions(project)
    project.begin_as(release)
    newest = backup(project)
    delete_both(project)
    assert "lacks 1 fits" in failure_of(project.run(made, "noisy_model"))
    restore(newest)
    assert project.run(made, "noisy_model").success
    assert len(ledger(project).require_known(())) == 2


def test_a_fit_that_ended_before_the_ledger_had_it_is_spent(project, monkeypatch):
    made = definitions(project, Limit("total_epsilon", 1.9))
    assert project.run(made).success

    def fail(*_):
        raise OSError

    with monkeypatch.context() as patched:
        patched.setattr(PrivacyLedger, "_append", fail)
        assert not project.run(made, "noisy_model").success
    assert len(ledger(project).entries()) == 1
    # A release of the model from before is still possible, and states what is spent by now.
    assert project.run(made, "synthetic_release").success
    manifest = json.loads((project.releases()[-1] / "manifest.json").read_text())
    budget = manifest["figures"]["privacy_budget"]
    assert (budget["fits"], budget["population"]) == (2, "people")
    assert budget["total_epsilon"] == pytest.approx(1.45, abs=0.01)
    assert project.run(made, "noisy_model").success
    assert len(ledger(project).entries()) == 3
    assert "used up: 3 fits" in failure_of(project.run(made, "noisy_model"))


@pytest.mark.parametrize("others", [{}, {"split": Split(0.5, seed=9)}], ids=["same", "split again"])
@pytest.mark.parametrize(
    "removed",
    [(), (wipe_events,), (delete_both,), (delete_ledger,), (wipe_events, delete_ledger)],
    ids=lambda acts: " and ".join(act.__name__ for act in acts) or "nothing",
)
def test_the_same_people_under_another_name_are_refused(project, others, removed):
    project.begin_as(fit)
    for act in removed:
        act(project)
    renamed = definitions(project, privacy_budget=PrivacyBudget(population="visitors"), **others)
    refused = project.run(renamed, *(TO_THE_FIT if others else ("noisy_model",)))
    assert not refused.success
    says = "charged to the privacy budget of 'people', and cannot be charged to that of 'visitors' as well"
    assert says in failure_of(refused)
    assert not ledger(project, "visitors").path.exists()


def test_a_source_that_was_hidden_from_the_fit_is_found_by_the_gate(project):
    project.begin_as(fit)
    renamed = definitions(project, privacy_budget=PrivacyBudget(population="visitors"), split=Split(0.5, seed=9))
    assert project.run(renamed, "source", "original", "control").success
    with project.instance() as instance:
        instance.wipe_assets([key("original")])
    assert project.run(renamed, "noisy_model").success
    # With the record of where they come from, the records are what they were.
    drawn = project.run(renamed, "original", "control", "synthetic")
    assert "total_epsilon_is_at_most_its_limit" in blocked_by(drawn)
    released = project.run(renamed, "synthetic_release")
    assert "cannot be charged to that of 'visitors' as well" in refusal(released)
    assert not project.releases()


def test_other_people_under_another_name_are_fitted_and_released(project):
    project.begin_as(release)
    write_people(project, 2)
    result = project.run(definitions(project, privacy_budget=PrivacyBudget(population="visitors")))
    assert result.success, failure_of(result)
    assert len(ledger(project, "visitors").require_known(())) == len(ledger(project).require_known(())) == 1
    # What the release of the others knows is missed as before.
    delete_both(project)
    wipe_events(project)
    write_people(project)
    assert "lacks 1 fits" in failure_of(project.run(definitions(project), *TO_THE_FIT))


def test_a_release_of_a_model_that_was_charged_under_another_name_is_refused(project):
    project.begin_as(release)
    renamed = definitions(project, privacy_budget=PrivacyBudget(population="visitors"))
    assert "'visitors' has no entry for the noisy model" in project.refused_because(renamed)
    assert project.refused_because(definitions(project)) == ""


def test_a_new_name_does_not_hide_what_the_release_published_before(project):
    project.begin_as(release)
    for act in (wipe_everything, delete_both, forget_model):
        act(project)
    fitted = project.run(definitions(project, privacy_budget=PrivacyBudget(population="visitors")), *TO_THE_FIT)
    assert not fitted.success
    assert "the privacy budget of 'people' lacks 1 fits" in failure_of(fitted)


def _release_without_figures(project):
    write_people(project)
    assert project.run(definitions(project, privacy_budget=PrivacyBudget(publish_figures=False))).success


@pytest.mark.parametrize("forgotten", [(), (forget_releases,)], ids=["manifest", "record of publications"])
def test_what_withholds_its_figures_still_knows_how_many_fits_there_were(project, forgotten):
    project.begin_as(_release_without_figures)
    for act in (wipe_everything, delete_both, forget_model, *forgotten):
        act(project)
    made = definitions(project, privacy_budget=PrivacyBudget(publish_figures=False))
    assert "has 0 fits, but a published release states 1" in project.refused_because(made)
    fitted = project.run(made, *TO_THE_FIT)
    assert "has 0 fits, but a published release states 1" in failure_of(fitted)


def test_a_published_budget_of_another_population_that_is_lost_refuses_a_fit(project):
    project.begin_as(release)
    copies = backup(project)
    for act in (wipe_everything, delete_both, forget_model, forget_releases):
        act(project)
    # The record of publications does not tell whose records they were.
    write_people(project, 2)
    renamed = definitions(project, name="again", privacy_budget=PrivacyBudget(population="visitors"))
    fit_again = [dg.AssetKey(["again", stage]) for stage in TO_THE_FIT]
    with project.instance() as instance:
        failed = materialize_keys(renamed, fit_again, instance)
    assert "the privacy budget of 'people' lacks 1 fits" in failure_of(failed)
    assert not ledger(project, "visitors").path.exists()
    restore(copies)
    with project.instance() as instance:
        assert materialize_keys(renamed, fit_again, instance).success


@pytest.mark.parametrize("budget", [5, {}, {"population": 5, "fits": 1}, {"population": "people", "fits": "1"}])
def test_a_damaged_budget_in_the_record_of_publications_refuses_a_fit(project, budget):
    project.begin_as(release)
    (path,) = (project.private / "publications").glob("*.jsonl")
    (line,) = filter(None, path.read_text().splitlines())
    path.write_text(json.dumps(json.loads(line) | {"privacy_budget": budget}))
    assert "is damaged" in failure_of(project.run(definitions(project), "noisy_model"))
    assert len(ledger(project).entries()) == 1


def test_a_witness_that_is_made_to_say_reserved_gives_the_entry_back(project):
    made = definitions(project, Limit("total_epsilon", 1.2))
    assert project.run(made).success
    place = ledger(project).witness_path
    place.write_bytes(replace(parse_witness(place.read_bytes()), is_recorded=False).to_bytes())
    for act in (wipe_everything, forget_releases, forget_model, cut):
        act(project)
    assert "used up: 1 fits" in failure_of(project.run(made, *TO_THE_FIT))


@pytest.mark.parametrize("also", [(), ("home",)], ids=["same instance", "new instance"])
def test_who_starts_in_another_private_directory_is_stopped_by_what_is_left(project, also):
    project.begin_as(release)
    for name in also:
        shutil.rmtree(project.root / name)
    moved = Project(project.root)
    fitted = moved.run(definitions(moved, private_path=str(project.root / "private again")))
    assert not fitted.success
    assert "lacks 1 fits" in failure_of(fitted)


def test_another_release_of_the_same_table_names_its_population(project, monkeypatch):
    project.begin_as(fit)
    # By default, a population is called like its release.
    monkeypatch.setattr(project_module, "NAME", "again")
    for split in (Split(0.5), Split(0.6)):
        refused = project.run(definitions(project, name="again", split=split), *TO_THE_FIT)
        assert "charged to the privacy budget of 'people', and cannot" in failure_of(refused)
    named = definitions(project, name="again", privacy_budget=PrivacyBudget(population="people"))
    assert project.run(named, *TO_THE_FIT).success
    assert [entry.release for entry in ledger(project).require_known(())] == ["people", "again"]


def test_witnesses_cannot_be_linked_elsewhere(project):
    made = definitions(project)
    project.begin_as(fit)
    directory, elsewhere = ledger(project).witness_path.parent, project.root / "elsewhere"
    directory.rename(elsewhere)
    directory.symlink_to(elsewhere)
    assert "symbolic link leads" in failure_of(project.run(made, "noisy_model"))
    assert len(ledger(project).entries()) == 1
