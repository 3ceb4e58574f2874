"""No run configuration, link, key or second run makes the gate look, write or count elsewhere.

Each test tries a way around on a persistent instance, sees it refused, and sees the honest counterpart released.
"""

import json
import os
import re
import shutil
from pathlib import Path

import dagster as dg
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration import release_steps
from privacy_assets.orchestration.private.directories import partition_directory, require_separate
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings, ReidentificationSettings
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.storage.durable_files import make_private_root
from tests.orchestration.evidence.test_other_releases import TestOtherReleases as OtherReleases
from tests.orchestration.evidence.test_other_releases import numbered, released, released_as, run_all
from tests.orchestration.forked import PROCESSES
from tests.orchestration.project import (
    NAME,
    REFUSES,
    Project,
    blocked_by,
    failure_of,
    key,
    people,
    refusal,
)
from tests.orchestration.test_records_assessments import CANDIDATES

RELEASE = "synthetic_release"


def configured(project, definitions, run_config):
    with project.instance() as instance:
        return dg.materialize(
            [*definitions.assets, *definitions.asset_checks],
            resources=dict(definitions.resources),
            instance=instance,
            run_config=run_config,
            raise_on_error=False,
        )


@pytest.mark.parametrize("resource", ["release_store", "private_tables"])
@pytest.mark.parametrize("place", ["elsewhere", "releases/people/synthetic/latest", "private/people", {"env": "HOME"}])
def test_no_run_configuration_points_a_directory_elsewhere(project, resource, place):
    path = place if isinstance(place, dict) else str(project.root / place)
    config = {"resources": {resource: {"config": {"base_path": path}}}}
    with pytest.raises(dg.DagsterInvalidConfigError) as refused:
        configured(project, project.definitions(), config)
    assert os.environ["HOME"] not in str(refused.value)
    assert sorted(path.name for path in project.root.iterdir()) == ["data", "home"]


def test_definitions_without_configuration_release(project):
    assert configured(project, project.definitions(), {}).success
    assert len(project.releases()) == 1


def test_what_another_release_published_is_not_hidden_by_a_wipe(project):
    """The records of the other release are wiped by whoever has the UI; what it published lies where it did."""
    others = ReidentificationSettings(other_releases=OtherReleases.others)
    first, second = released_as(project, "first"), OtherReleases().second(project, reidentification=others)
    assert run_all(project, first).success
    coarse = released_as(project, "first", anonymized=AnonymizationSettings(k=140, criterion="range"))
    with project.instance() as instance:
        instance.wipe_assets([dg.AssetKey(["first", "anonymized_release"])])
    run_all(project, coarse, selection=[dg.AssetKey(["first", "anonymized"])])
    own = dg.AssetSelection.assets(
        *(key(stage) for stage in ("source", "anonymized", CANDIDATES, "anonymized_release"))
    )
    blocked = run_all(project, coarse, second, selection=own)
    assert blocked_by(blocked) == {"max_reidentification_probability_is_at_most_its_limit"}
    alone = run_all(project, coarse, second, selection=dg.AssetSelection.assets(key("anonymized_release")))
    assert "max_reidentification_probability is" in refusal(alone, "anonymized")
    assert released(project, "people") == []
    assert len(released(project, "first")) == 1


@pytest.mark.parametrize("forgotten", ["wiped", "run deleted", "partitioned since"])
def test_what_was_published_elsewhere_is_not_forgotten_with_its_events(project, forgotten):
    """The place of releases moved in good faith; then nothing but the private record knows of the first."""
    result = run_all(project, released_as(project, "first"))
    assert result.success
    settings = {"release_path": str(project.root / "moved")}
    if forgotten == "partitioned since":

        def source(partition_key):
            return numbered()

        settings |= {"partitions_def": dg.StaticPartitionsDefinition(["a"]), "source": source}
    with project.instance() as instance:
        if forgotten == "wiped":
            instance.wipe_assets([dg.AssetKey(["first", stage]) for stage in ("anonymized", "anonymized_release")])
        elif forgotten == "run deleted":
            instance.delete_run(result.run_id)
    others = ReidentificationSettings(other_releases=OtherReleases.others)
    coarse = released_as(project, "first", anonymized=AnonymizationSettings(k=140, criterion="range"), **settings)
    merged = dg.Definitions.merge(coarse, OtherReleases().second(project, reidentification=others, **settings))
    stages = [key(stage) for stage in ("source", "anonymized", CANDIDATES, "anonymized_release")]
    stages += [dg.AssetKey(["first", stage]) for stage in ("source", "anonymized")]
    with project.instance() as instance:
        blocked = dg.materialize(
            [*merged.assets, *merged.asset_checks],
            selection=dg.AssetSelection.assets(*stages),
            resources=dict(merged.resources),
            instance=instance,
            partition_key="a" if forgotten == "partitioned since" else None,
            raise_on_error=False,
        )
    assert blocked_by(blocked) == {"max_reidentification_probability_is_at_most_its_limit"}, failure_of(blocked)
    assert not (project.root / "moved" / "people").exists()


def test_a_damaged_record_of_publications_refuses(project):
    others = ReidentificationSettings(other_releases=OtherReleases.others)
    first, second = released_as(project, "first"), OtherReleases().second(project, reidentification=others)
    assert run_all(project, first).success
    record = project.private / "publications" / "first__anonymized_release.jsonl"
    record.write_text(record.read_text() + "\n{")
    selection = dg.AssetSelection.assets(*(key(stage) for stage in ("source", "anonymized", CANDIDATES)))
    failed = run_all(project, first, second, selection=selection)
    assert "a record of what was published, is damaged" in failure_of(failed)


@pytest.mark.parametrize("linked", ["private", "releases"])
def test_directories_that_a_link_has_joined_since_are_refused(project, linked):
    definitions = project.definitions()
    (project.root / "private").mkdir()
    (project.root / "releases").mkdir()
    target = project.root / ("releases" if linked == "private" else "private")
    (project.root / linked).rmdir()
    (project.root / linked).symlink_to(target, target_is_directory=True)
    result = project.run(definitions)
    assert not result.success
    assert project.everything_released() == []
    assert list(target.iterdir()) == []
    said = [event.step_failure_data.error_display_string for event in result.all_events if event.is_step_failure]
    assert all("once symbolic links are resolved" in each for each in said if "private_path" in each)
    assert any("private_path" in each for each in said)
    (project.root / linked).unlink()
    assert project.run(definitions).success
    assert len(project.releases()) == 1


def test_a_link_that_leads_a_release_or_a_table_elsewhere_is_refused(project):
    definitions = project.definitions()
    project.assess()
    (project.root / "elsewhere").mkdir()
    (project.root / "releases").mkdir()
    (project.root / "releases" / NAME).symlink_to(project.root / "elsewhere", target_is_directory=True)
    assert "A symbolic link leads" in failure_of(project.run(definitions, RELEASE))
    assert list((project.root / "elsewhere").iterdir()) == []
    (project.root / "releases" / NAME).unlink()
    assert project.run(definitions, RELEASE).success
    assert len(project.releases()) == 1
    shutil.rmtree(project.private)
    make_private_root(project.private)
    (project.private / NAME).symlink_to(project.root / "elsewhere", target_is_directory=True)
    assert "A symbolic link leads" in failure_of(project.run(definitions, "source"))
    assert list((project.root / "elsewhere").iterdir()) == []
    (project.private / NAME).unlink()
    assert project.run(definitions, "source").success


OPENED = {
    "a private directory that others can replace": ("", 0o777, "is in .*, which other users may write in"),
    "releases that others write in": ("releases", 0o777, "/releases' is one that other users may write in"),
    "releases of a table that others write in": (f"releases/{NAME}/synthetic", 0o757, "is one that other users may"),
}


@pytest.mark.parametrize("what", OPENED)
def test_directories_that_were_opened_to_others_are_refused_when_they_are_used(project, what):
    name, mode, expected = OPENED[what]
    project.assess()
    definitions = project.definitions()
    (project.root / name).mkdir(parents=True, exist_ok=True)
    (project.root / name).chmod(mode)
    assert re.search(expected, failure_of(project.run(definitions, RELEASE)))
    (project.root / name).chmod(0o755)
    assert project.run(definitions, RELEASE).success
    assert len(project.releases()) == 1


def test_an_unmarked_private_directory_with_files_of_others_is_not_used(project):
    definitions = project.definitions()
    project.private.mkdir()
    (project.private / "notes.txt").touch()
    assert "has 1 entries, but no .gitignore" in failure_of(project.run(definitions, "source"))
    assert [path.name for path in project.private.iterdir()] == ["notes.txt"]


def test_a_private_directory_inside_a_release_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(InvalidSettingError, match="which is a published release"):
        require_separate(tmp_path / "x" / "private", [])
    require_separate(tmp_path.parent / "private", [tmp_path])


def two_projects(root):
    projects = []
    for name in ("one", "other"):
        (root / name).mkdir()
        projects.append(Project(root / name))
        projects[-1].write_tables()
    return projects


def test_private_tables_of_one_project_and_releases_of_another_stay_apart(tmp_path):
    one, other = two_projects(tmp_path)
    one.assess()
    assert one.run(one.definitions(), RELEASE).success
    with pytest.raises(InvalidSettingError, match="which is a release_path, perhaps of another project"):
        other.definitions(private_path=str(one.root / "releases" / "private"))
    for inside in (one.private, one.private / "releases"):
        with pytest.raises(InvalidSettingError, match="which is a private directory, perhaps of another project"):
            other.definitions(release_path=str(inside))
    assert not (one.root / "releases" / "private").exists()
    other.assess()
    assert other.run(other.definitions(), RELEASE).success


def test_private_tables_that_were_there_before_the_first_release_stop_it(tmp_path):
    one, other = two_projects(tmp_path)
    below = one.root / "releases" / "some" / "where"
    assert other.run(other.definitions(private_path=str(below)), "source").success
    one.assess()
    shown = failure_of(one.run(one.definitions(), RELEASE))
    assert "perhaps of another project, is inside release_path" in shown
    assert one.releases() == []
    below.rename(tmp_path / "moved")
    assert one.run(one.definitions(), RELEASE).success


def test_refusals_under_another_private_directory_are_counted(project):
    project.refuse()
    refusal(project.run(project.definitions(REFUSES), RELEASE))
    moved = project.definitions(private_path=str(project.root / "another"))
    assert project.run(moved).success
    manifest = json.loads((project.releases()[0] / "manifest.json").read_text())
    assert manifest["refusals_before"] == 2


def test_refusals_count_once_and_by_partition(tmp_path):
    project = Project(tmp_path, partitions=("a", "b"))
    for seed, partition in enumerate(project.partitions, start=1):
        project.write_tables(seed, partition)
    project.run(project.definitions(REFUSES), partition="a")
    shutil.rmtree(project.private / "refusals")
    refusal(project.run(project.definitions(REFUSES), RELEASE, partition="a"))
    counted = {}
    # Everything but the release has run for one of them.
    for partition, stages in (("a", (RELEASE,)), ("b", ())):
        assert project.run(project.definitions(), *stages, partition=partition).success
        manifest = json.loads((project.releases(partition)[0] / "manifest.json").read_text())
        counted[partition] = manifest["refusals_before"]
    assert counted == {"a": 2, "b": 0}


@pytest.mark.parametrize("damage", ["deep", "directory"])
def test_a_history_of_refusals_that_cannot_be_read_counts_and_stops_no_release(project, damage):
    project.refuse()
    history = next((project.private / "refusals").iterdir())
    if damage == "deep":
        history.write_text(history.read_text() + "\n" + "[" * 200_000)
    else:
        history.unlink()
        history.mkdir()
        failed = project.run(project.definitions(REFUSES), RELEASE)
        assert "is not a file, so this refusal could not be added" in failure_of(failed)
    assert project.run(project.definitions(), RELEASE).success
    manifest = json.loads((project.releases()[0] / "manifest.json").read_text())
    assert manifest["refusals_before"] == (2 if damage == "deep" else 3)


@pytest.mark.parametrize(
    "tags", [{}, {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "b"}]
)
def test_a_run_that_is_not_about_one_partition_is_told_what_to_launch(tmp_path, tags):
    project = Project(tmp_path, partitions=("a", "b"))
    asked = []

    def source(partition_key):
        asked.append(partition_key)
        return people(300, 1)

    definitions = project.definitions(source=source)
    with project.instance() as instance:
        result = dg.materialize(
            [*definitions.assets, *definitions.asset_checks],
            resources=dict(definitions.resources),
            instance=instance,
            raise_on_error=False,
            tags=tags,
        )
    said = failure_of(result)
    assert f"this run selects {'a range of them' if tags else 'none of them'}" in said
    assert "launch a backfill with one run each" in said
    assert asked == []
    assert not (project.root / "releases").exists()


def test_partition_keys_have_directories_of_their_own():
    def both(site, year):
        return partition_directory(dg.MultiPartitionKey({"site": site, "year": year}))

    assert both("a/b", "c") != both("a", "b/c")
    assert both("a%2Fb", "c") != both("a/b", "c")
    keys = ["a", "a/b", "a%2Fb", "..", ".", "", "latest", "Latest", "%6Catest", "x" * 60, "\N{SNOWMAN}"]
    names = [partition_directory(each) for each in keys]
    assert len(set(names)) == len(keys)
    assert not {"latest", "", ".", ".."} & set(names)
    assert not any("/" in name or name.startswith(".") for name in names)
    assert both("a", "1") == "a%2F1"


def test_partitions_called_latest_or_with_slashes_are_released_apart(tmp_path):
    project = Project(tmp_path)
    project.write_tables()
    both = dg.MultiPartitionsDefinition(
        {"site": dg.StaticPartitionsDefinition(["a/b", "a"]), "year": dg.StaticPartitionsDefinition(["b/c", "c"])}
    )
    policy = Policy((Limit("smallest_class", 5),))
    settings = {"policy": policy, "synthetic": None, "anonymized": AnonymizationSettings(k=5), "assessment": None}
    seeds = {("a/b", "c"): 1, ("a", "b/c"): 2}

    def source(partition_key):
        return people(60, seeds[tuple(partition_key.split("|"))])

    definitions = project.definitions(partitions_def=both, source=source, **settings)
    for site, year in seeds:
        result = project.run(definitions, partition=dg.MultiPartitionKey({"site": site, "year": year}))
        assert result.success, failure_of(result)
    # Each still has its own table in private: the second did not take the place of the first.
    for site, year in seeds:
        again = project.run(
            definitions, "anonymized_release", partition=dg.MultiPartitionKey({"site": site, "year": year})
        )
        assert again.success, failure_of(again)
    whole = project.definitions(source=lambda: people(60, 3), **settings)
    assert project.run(whole).success
    named = project.definitions(
        partitions_def=dg.StaticPartitionsDefinition(["latest"]), source=lambda partition_key: people(60, 4), **settings
    )
    assert project.run(named, partition="latest").success
    directory = project.root / "releases" / NAME / "anonymized"
    assert (directory / "latest").is_symlink()
    assert len(list((directory / "%6Catest").glob("2*/manifest.json"))) == 1


def make_the_source_again(root):
    project = Project(Path(root))
    project.write_tables(seed=9)
    assert project.run(project.definitions(), "source", "synthetic").success


def test_a_source_overwritten_between_check_and_release_releases_nothing(project, monkeypatch):
    definitions = project.definitions()
    project.assess()
    gather = release_steps.gather_evidence

    def while_another_writes(*arguments, **options):
        other = PROCESSES.Process(target=make_the_source_again, args=(str(project.root),))
        other.start()
        other.join(120)
        assert other.exitcode == 0
        return gather(*arguments, **options)

    monkeypatch.setattr(release_steps, "gather_evidence", while_another_writes)
    assert "made from an earlier version of ['source']" in refusal(project.run(definitions, RELEASE))
    monkeypatch.undo()
    assert project.everything_released() == []
    assert "made from an earlier version of ['source']" in project.refused_because(definitions)


def release_when_told(root, begins, goes_on, results):
    """Release in a process of its own; once the evidence is gathered, say so and wait."""
    project = Project(Path(root))
    gather = release_steps.gather_evidence

    def gather_and_wait(*arguments, **options):
        gathered = gather(*arguments, **options)
        begins.set()
        goes_on.wait(60)
        return gathered

    release_steps.gather_evidence = gather_and_wait
    result = project.run(project.definitions(), RELEASE)
    results.put((result.success, failure_of(result)))


def test_two_processes_that_release_the_same_at_once_make_exactly_one_release(project):
    definitions = project.definitions()
    project.assess()
    begins, goes_on, results = PROCESSES.Event(), PROCESSES.Event(), PROCESSES.Queue()
    other = PROCESSES.Process(target=release_when_told, args=(str(project.root), begins, goes_on, results))
    other.start()
    try:
        assert begins.wait(120)
        said = failure_of(project.run(definitions, RELEASE))
        assert project.everything_released() == []
    finally:
        goes_on.set()
        succeeded, failure = results.get(timeout=120)
        other.join(60)
    assert "Another run is releasing people/synthetic_release at this moment" in said
    assert succeeded, failure
    assert len(project.releases()) == 1
