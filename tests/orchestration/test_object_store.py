"""Releases whose `release_path` is an object store, from the run to the recipient."""

import json
from pathlib import Path

import dagster as dg
import pytest

from privacy_assets import verify_release
from privacy_assets.cli import main
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import AssessmentSettings, ExternalSynthetic
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from tests.object_store import SECRET, SLOW_DOWN, served
from tests.orchestration.project import ADMITS, NAME, REFUSES, Project, failure_of, refusal
from tests.orchestration.sentinels import (
    CONTRACT,
    SENTINELS,
    enough_sentinel_people,
    everything_that_was_said,
    sentinel_synthetic,
)

PLACE = f"releases/{NAME}/synthetic"


@pytest.fixture
def server():
    with served() as server:
        yield server


@pytest.fixture
def project(server, tmp_path, made_once, monkeypatch):
    monkeypatch.setattr(Project, "made_once", made_once)
    return Project(tmp_path, settings={"release_path": server.uri()})


def records(project):
    """Return the releases in the local record."""
    return sorted((project.root / "private.uploaded").glob(f"*/{NAME}/synthetic/2*"))


def everything(project):
    files = [path for path in project.home.rglob("*") if path.is_file()]
    files += (path for path in (project.root / "private.uploaded").rglob("*") if path.is_file())
    return b"\n".join(path.read_bytes() for path in files)


def nothing_secret(said):
    said = said.encode() if isinstance(said, str) else said
    found = [text for text in (SECRET, SECRET.replace("/", "%2F"), "AKIASENTINEL") if text.encode() in said]
    assert found == []
    assert b"sentinel-of-the-store" not in said
    return True


def release(project, *stages, limit=ADMITS):
    return project.run(project.definitions(limit), *stages)


def test_two_releases_are_in_the_store_and_latest_names_the_newer(project, server, capfd):
    project.assess()
    for n_releases in (1, 2):
        result = release(project, "synthetic_release")
        assert result.success, failure_of(result)
        local = records(project)
        assert len(local) == n_releases
        assert server.objects()[f"{PLACE}/latest"] == f"{local[-1].name}\n".encode()
        assert server.uploaded()[-2:] == ["manifest.json", "latest"]
        found = verify_release(server.uri(f"{PLACE}/latest"))
        assert found.verified, found.problems
        metadata = result.asset_materializations_for_node(f"{NAME}__synthetic_release")[0].metadata
        assert metadata["privacy_assets/uploaded"].value == f"s3://{server.bucket}/{PLACE}/{local[-1].name}"
    for each in local:
        assert verify_release(server.uri(f"{PLACE}/{each.name}")).verified
        assert verify_release(each).verified
    assert nothing_secret(everything(project) + "".join(capfd.readouterr()).encode())


def test_a_refusal_asks_the_store_nothing(project, server):
    project.refuse()
    assert "privacy_risk_score" in refusal(release(project, "synthetic_release", limit=REFUSES))
    assert server.asked == []
    assert server.objects() == {}
    assert records(project) == []


def test_after_a_failed_upload_the_release_alone_goes_on(project, server, capfd):
    project.assess()
    assert release(project, "synthetic_release").success
    before, local = server.objects(), records(project)
    server.answers = lambda method, key: SLOW_DOWN if method == "POST" and "manifest" in key else None
    result = release(project, "synthetic_release")
    assert not result.success
    said = failure_of(result)
    assert "manifest.json' could not be uploaded: SLOW_DOWN" in said
    assert "Nothing was released, and an earlier release stays unchanged." in said
    assert {key: content for key, content in server.objects().items() if content} == before
    assert records(project) == local
    assert verify_release(server.uri(f"{PLACE}/latest")).verified
    server.answers = lambda method, key: None
    assert release(project, "synthetic_release").success
    assert server.objects()[f"{PLACE}/latest"].decode().strip() == records(project)[-1].name != local[-1].name
    assert nothing_secret(everything(project) + "".join(capfd.readouterr()).encode())


def test_a_release_whose_latest_could_not_be_written_is_one_and_the_log_says_so(project, server, capfd):
    project.assess()
    server.answers = lambda method, key: SLOW_DOWN if key.endswith("/latest") else None
    assert release(project, "synthetic_release").success
    said = "".join(capfd.readouterr())
    assert "The release is complete in the store, but `latest` may not name it yet." in said
    assert nothing_secret(said)
    (local,) = records(project)
    assert verify_release(server.uri(f"{PLACE}/{local.name}")).verified


def test_a_withdrawal_of_the_local_record_reaches_the_store(project, server, monkeypatch, capsys):
    project.assess()
    assert release(project, "synthetic_release").success
    (local,) = records(project)
    # The record has no credentials.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    assert main(["withdraw", str(local), "--reason", "The wrong table was released"]) == 0
    assert verify_release(server.uri(f"{PLACE}/{local.name}")).withdrawn
    assert f"{PLACE}/latest" not in server.objects()
    result = release(project, "synthetic_release")
    assert "withdrawn" in failure_of(result)


def test_partitions_have_places_of_their_own(server, tmp_path):
    project = Project(tmp_path, partitions=("2026.1", "2026.2"), settings={"release_path": server.uri()})
    for number, partition in enumerate(project.partitions):
        project.write_tables(seed=number + 1, partition=partition)
        result = project.run(project.definitions(), partition=partition)
        assert result.success, failure_of(result)
        metadata = result.asset_materializations_for_node(f"{NAME}__synthetic_release")[0].metadata
        query = server.uri().partition("?")[2]
        address = metadata["privacy_assets/uploaded"].value.replace("s3://", "s3://id:own@") + f"?{query}"
        assert verify_release(address).verified
        latest = server.uri(f"{PLACE}/{partition.replace('.', '%252E')}/latest")
        assert verify_release(latest).verified


def test_no_cell_is_in_what_a_store_that_fails_makes_a_run_say(server, tmp_path, capfd):
    project = Project(tmp_path)
    enough_sentinel_people().to_parquet(tmp_path / "people.parquet", index=False)
    sentinel_synthetic().to_parquet(tmp_path / "synthetic.parquet", index=False)
    settings = {
        "contract": CONTRACT,
        "policy": Policy(
            (Limit("privacy_risk_score", ADMITS, "at_most"),),
            RequiredSettings(control_records=40, detectable_share=None),
        ),
        "source": TableFile(str(tmp_path / "people.parquet")),
        "synthetic": ExternalSynthetic(TableFile(str(tmp_path / "synthetic.parquet")), control_was_withheld=True),
        "assessment": AssessmentSettings(max_baseline_cols=3, n_matched_samples=2),
        "release_path": server.uri(),
    }
    server.answers = lambda method, key: SLOW_DOWN if "parquet" in key else None
    result = project.run(project.definitions(**settings))
    assert "could not be uploaded: SLOW_DOWN" in failure_of(result)
    server.answers = lambda method, key: None
    result = project.run(project.definitions(**settings), "synthetic_release")
    assert result.success, failure_of(result)
    said = everything_that_was_said(project, capfd)
    said += b"".join(content for name, content in server.objects().items() if not name.endswith(".parquet"))
    assert [sentinel for sentinel in SENTINELS if sentinel in said] == []
    assert nothing_secret(said + json.dumps(server.asked).encode())


def test_definitions_of_one_store_share_their_resources_and_ask_it_nothing(project, server):
    first, again, other = project.definitions(), project.definitions(), project.definitions(name="others")
    assert first.resources == again.resources
    merged = dg.Definitions.merge(first, other)
    dg.Definitions.validate_loadable(merged)
    assert server.asked == []
    assert nothing_secret(repr(first.resources))
    assert nothing_secret(repr(merged))
    with pytest.raises(dg.DagsterInvariantViolationError):
        dg.Definitions.merge(first, project.definitions(name="others", release_path=server.uri("elsewhere")))


def test_yaml_takes_the_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attributes = {
        "source": {"file": "people.csv"},
        "contract": {"columns": {"age": {"type": "integer", "role": "quasi_identifier"}}, "one_row_per_person": True},
        "policy": "research_sharing",
        "anonymized": {},
        "release_path": "s3://bucket/releases?region=eu-west-1",
    }
    context = dg.ComponentTree.for_test().load_context
    component = PrivacyReleaseComponent.from_attributes_dict(attributes=attributes, context=context)
    arguments = component.arguments(Path("people"), tmp_path)
    assert arguments["release_path"] == attributes["release_path"]


@pytest.mark.parametrize("address", ["s3://bucket/../private", "s3://id:SECRET/x@bucket", "gs://bucket?colour=SECRET"])
def test_an_address_that_cannot_be_used_is_refused_when_definitions_are_built(project, address):
    with pytest.raises(InvalidSettingError, match="release_path is not the address of an object store") as raised:
        project.definitions(release_path=address)
    assert "SECRET" not in str(raised.value)
    assert not project.private.exists()


def test_executors_write_no_release_in_an_object_store(project):
    engine = SparkEngine(remote="sc://host", writes_releases=True)
    with pytest.raises(InvalidSettingError, match="`writes_releases`, and `release_path` is an object store"):
        project.definitions(release_path="s3://bucket/releases", engine=engine)
