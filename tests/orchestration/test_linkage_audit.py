"""The linkage audit as an asset: figures for the officer, which hold nothing up."""

import sys

import pytest

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.errors import InvalidSettingError
from privacy_assets.linkage.audit import audit_linkage
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.pipeline.settings.linkage import LinkageAuditSettings
from privacy_assets.storage.artifact_files import read_artifact
from tests.orchestration.project import failure_of, key, people
from tests.orchestration.test_anonymized_release import definitions_of, run_release, visits

STAGE = "linkage_audit"


@pytest.fixture
def project(project):
    project.write_tables()
    return project


def asset_of(definitions, stage):
    return next(each for each in definitions.assets if key(stage) in each.keys)


def test_the_audit_shows_its_figures_and_the_release_does_not_wait_for_it(project):
    settings = LinkageAuditSettings(known=["age", "joined"], n_records=100, seed=2)
    definitions = definitions_of(project, linkage_audit=settings)
    asset, release = asset_of(definitions, STAGE), asset_of(definitions, "anonymized_release")
    assert asset.group_names_by_key == {key(STAGE): "people"}
    assert key(STAGE) not in release.keys_by_input_name.values()
    result = project.run(definitions)
    assert result.success, failure_of(result)
    stored = read_artifact(project.stored(STAGE))
    anonymized = read_artifact(project.stored("anonymized"))
    expected = audit_linkage(people(300, 1), Anonymization.from_artifact(anonymized), **settings.arguments)
    assert dict(stored.header) == {"scores": expected.scores, "settings": expected.settings}
    assert stored.made_of.keys() == {"source", "anonymized"}
    metadata = result.asset_materializations_for_node(f"people__{STAGE}")[0].metadata
    shown = {name.removeprefix("privacy_assets/"): each.value for name, each in metadata.items()}
    assert {name: shown[name] for name in expected.scores} == pytest.approx(expected.scores, rel=0.01)
    assert shown["found"] == expected.summary()
    assert shown["made_with"]["known"] == ["age", "joined"]


def test_an_audit_that_fails_does_not_hold_the_release(project):
    visits(60).to_parquet(project.root / "data" / "people.parquet", index=False)
    audited = {"anonymized": AnonymizationSettings(k=5), "linkage_audit": LinkageAuditSettings()}
    definitions = definitions_of(project, **audited)
    project.run(definitions, "source", "anonymized")
    assert "60 people have 300 of the 300 records" in failure_of(project.run(definitions, STAGE))
    assert run_release(project, definitions).success


@pytest.mark.parametrize(
    ("settings", "more", "message"),
    [
        ({"known": ["patient"]}, {}, r"assumes that an attacker knows \['patient'\], which the release does not have"),
        ({}, {"anonymized": AnonymizationSettings(k=5, output="centroid")}, "class centers are published"),
    ],
)
def test_audits_that_cannot_work_are_refused_when_the_definitions_are_built(project, settings, more, message):
    with pytest.raises(InvalidSettingError, match=message):
        definitions_of(project, linkage_audit=LinkageAuditSettings(**settings), **more)


def test_an_audit_without_anonymized_records_is_refused(project):
    with pytest.raises(InvalidSettingError, match="assesses anonymized records, but makes none"):
        project.definitions(linkage_audit=LinkageAuditSettings())


def test_without_splink_the_definitions_are_refused(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "splink", None)
    with pytest.raises(InvalidSettingError, match=r"pip install 'privacy-assets\[linkage\]'"):
        definitions_of(project, linkage_audit=LinkageAuditSettings(method="fellegi_sunter"))
    definitions_of(project, linkage_audit=LinkageAuditSettings())
