"""Dagster's records do not tell which private table a stage made: fingerprints have a key outside of them."""

import stat

import dagster as dg
import pytest

from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact
from tests.orchestration.project import ADMITS, Project, failure_of, refusal


def stored(project):
    """Return all stored artifacts by the name of their stage."""
    return {path.stem: read_artifact(path) for path in project.private.rglob("*.artifact")}


def plain_digests(artifact: Artifact):
    return {artifact.digest, *artifact.fingerprints.values(), *artifact.made_of.values()}


def said_by_dagster(project):
    with project.instance() as instance:
        logs = [instance.all_logs(run.run_id) for run in instance.get_runs()]
    return "\n".join(dg.serialize_value(event) for log in logs for event in log)


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path)
    made.write_tables()
    return made


def test_no_plain_fingerprint_of_a_private_table_is_recorded(project):
    limits = (Limit("privacy_risk_score", ADMITS), Limit("leakage_detected", 0), Limit("smallest_class", 5, "at_least"))
    policy = Policy(limits, RequiredSettings(control_records=40, detectable_share=None))
    definitions = project.definitions(policy=policy, anonymized=AnonymizationSettings(k=5))
    result = project.run(definitions)
    assert result.success, failure_of(result)
    made, said = stored(project), said_by_dagster(project)
    # What was released is no secret: its fingerprint is in the manifest.
    released = {made[stage].fingerprints["table"] for stage in ("synthetic", "anonymized")}
    private = set().union(*map(plain_digests, made.values())) - released
    assert len(private) >= 6
    assert [stage for stage in made if any(each in said for each in plain_digests(made[stage]) & private)] == []
    assert all(each in said for each in released)


def test_a_refused_release_does_not_record_it_either(project):
    project.refuse()
    made, said = stored(project), said_by_dagster(project)
    assert "refused" in said
    assert [stage for stage in made if any(each in said for each in plain_digests(made[stage]))] == []


def test_equal_tables_of_two_projects_have_different_versions(project, tmp_path):
    (tmp_path / "other").mkdir()
    other = Project(tmp_path / "other")
    other.write_tables()
    versions = []
    for each in (project, other):
        assert each.run(each.definitions(), "source").success
        with each.instance() as instance:
            key = dg.AssetKey(["people", "source"])
            versions.append(instance.get_latest_materialization_event(key).asset_materialization.tags)
    assert stored(project)["source"].digest == stored(other)["source"].digest
    assert versions[0]["dagster/data_version"] != versions[1]["dagster/data_version"]


def test_without_the_key_every_table_counts_as_changed_until_it_is_made_again(project):
    project.assess()
    key = project.private / "keys" / "fingerprint"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(key.read_bytes()) == 32
    key.unlink()
    definitions = project.definitions()
    failed = project.run(definitions, "synthetic_release")
    assert "is not what the run recorded" in refusal(failed)
    assert "is not what Dagster recorded" in failure_of(project.run(definitions, "preprocessed"))
    assert project.run(definitions).success


@pytest.mark.parametrize("content", [b"", b"x", b"x" * 33])
def test_a_damaged_key_is_refused(project, content):
    project.assess()
    key = project.private / "keys" / "fingerprint"
    key.write_bytes(content)
    for stage in ("source", "preprocessed", "synthetic_release"):
        assert "is not the key that was made there" in failure_of(project.run(project.definitions(), stage))
    assert project.everything_released() == []


def test_a_key_that_cannot_be_read_fails_inside_the_guard(project):
    project.assess()
    key = project.private / "keys" / "fingerprint"
    key.unlink()
    key.mkdir()
    result = project.run(project.definitions(), "source")
    assert "is not the key that was made there" in failure_of(result)


def test_a_key_is_closed_to_others(project):
    project.assess()
    key = project.private / "keys" / "fingerprint"
    key.chmod(0o644)
    assert project.run(project.definitions(), "preprocessed").success
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
