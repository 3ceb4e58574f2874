"""A URL is refused wherever a path is expected, before anything is made: it would become a local directory.

Only `release_path` and `verify` take the address of an object store, see ``test_object_store.py``.
"""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from dagster.components.core.component_tree import ComponentTree

from privacy_assets import (
    AnonymizationSettings,
    ExternalSynthetic,
    GivenSplit,
    Hierarchy,
    OtherReleaseSettings,
    SigningKey,
    TableContract,
    TableFile,
    UpstreamAsset,
    anonymize_dataset,
    build_privacy_risk_checks,
    build_release_definitions,
    draft_contract,
)
from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.component.drafted import DraftParams, drafted_table
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager, ReleaseStore
from privacy_assets.setting_checks import is_in_store, local_path

URLS = [
    "s3://bucket/people.parquet",
    "gs://bucket/people.parquet",
    "abfss://container@account.dfs.core.windows.net/people.parquet",
    "https://user:secret@example.org/people.parquet",
    "hdfs:///data/people.parquet",
    "S3A://bucket/people.parquet",
    "dbfs:/mnt/people.parquet",
    "file:///data/people.parquet",
    " s3://bucket/people.parquet",
]
CONTRACT = {"one_row_per_person": True, "columns": {"age": {"type": "integer", "role": "quasi_identifier"}}}
BASE = {"contract": CONTRACT, "policy": "research_sharing", "anonymized": AnonymizationSettings()}


def table():
    return pd.DataFrame({"age": range(40)})


def released(**settings):
    return build_release_definitions("people", **({"source": table} | BASE | settings))


def from_yaml(**attributes):
    given = {"source": {"file": "people.csv"}, **BASE, "anonymized": {}, **attributes}
    context = ComponentTree.for_test().load_context
    component = PrivacyReleaseComponent.from_attributes_dict(attributes=given, context=context)
    return build_release_definitions(**component.arguments(Path("people"), Path.cwd()))


LATTICE = AnonymizationSettings(method="lattice")
HIERARCHY = {
    "one_row_per_person": True,
    "columns": {"age": {"type": "integer", "role": "quasi_identifier", "hierarchy": {"arx_csv": "URL"}}},
}


def contract_with(url):
    return yaml.safe_load(yaml.safe_dump(HIERARCHY).replace("URL", url))


SETTINGS = {
    "release_path": lambda url: released(release_path=url),
    "private_path": lambda url: released(private_path=url),
    "waivers": lambda url: released(waivers=url),
    "signing key": lambda url: SigningKey(path=url),
    "table": lambda url: TableFile(url),
    "synthetic records": lambda url: ExternalSynthetic(TableFile(url)),
    "split": lambda url: GivenSplit(TableFile(url), table),
    "other release": lambda url: OtherReleaseSettings("last", key="id", directory=url),
    "checks": lambda url: build_privacy_risk_checks(
        assets=UpstreamAsset("people"), policy="research_sharing", contract=CONTRACT, private_path=url
    ),
    "release store": ReleaseStore,
    "IO manager": PrivateParquetIOManager,
    "hierarchy": Hierarchy.from_arx_csv,
    "hierarchy of a contract": lambda url: released(contract=contract_with(url), anonymized=LATTICE),
    "hierarchy of a release": lambda url: released(
        anonymized=AnonymizationSettings(hierarchies={"age": {"arx_csv": url}})
    ),
    "draft": draft_contract,
    "drafted release": lambda url: drafted_table(DraftParams(source=url), Path.cwd()),
    "data set": lambda url: anonymize_dataset(url, "new", TableContract.from_mapping(CONTRACT), k=2),
    "anonymized data set": lambda url: anonymize_dataset("old", url, TableContract.from_mapping(CONTRACT), k=2),
    "YAML: release_path": lambda url: from_yaml(release_path=url),
    "YAML: private_path": lambda url: from_yaml(private_path=url),
    "YAML: waivers": lambda url: from_yaml(waivers=url),
    "YAML: source": lambda url: from_yaml(source={"file": url}),
    "YAML: source with a format": lambda url: from_yaml(source={"file": url, "format": "parquet"}),
    "YAML: signing": lambda url: from_yaml(signing={"key_file": url}),
    "YAML: hierarchy": lambda url: from_yaml(contract=contract_with(url), anonymized={"method": "lattice"}),
    "YAML: other release": lambda url: from_yaml(
        reidentification={"other_releases": [{"name": "last", "key": "age", "directory": url}]}
    ),
}


def said_by(error):
    texts = []
    while error is not None:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


@pytest.mark.parametrize(
    ("name", "url"),
    [(name, url) for name in SETTINGS for url in URLS if not ("release_path" in name and is_in_store(url))],
)
def test_a_url_is_refused_with_what_to_do(name, url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception) as raised:
        SETTINGS[name](url)
    said = said_by(raised.value)
    scheme = url.strip().split(":")[0]
    assert f" is a URL ({scheme}:). Expected the path of a local file or directory" in said
    assert ("Write the path alone." if scheme == "file" else "Mount the store, or copy its files.") in said
    assert "secret" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["s3://bucket/releases", "hdfs:///data"])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_of_pathlib_has_lost_a_slash_and_is_refused_all_the_same(kind, url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = {"release_path": Path, "private_path": kind, "waivers": kind}
    for settings in ({name: of(url)} for name, of in kinds.items()):
        with pytest.raises(InvalidSettingError, match=r"is a URL \((s3|hdfs):\)"):
            released(**settings)


def test_a_variable_of_the_environment_is_refused_when_it_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELEASES", "hdfs://bucket/releases")
    with pytest.raises(Exception) as raised:
        from_yaml(release_path="{{ env.RELEASES }}")
    assert "release_path is a URL (hdfs:)" in said_by(raised.value)


COMMANDS = [
    ["draft", "URL"],
    ["check", "URL", "c.yaml"],
    ["check", "t.csv", "URL"],
    ["assess", "URL", "s.csv", "--contract", "c.yaml"],
    ["assess", "o.csv", "URL", "--contract", "c.yaml"],
    ["assess", "o.csv", "s.csv", "--contract", "URL"],
    ["assess", "o.csv", "s.csv", "--contract", "c.yaml", "--control", "URL"],
    ["anonymize", "URL", "c.yaml", "--k", "2", "-o", "x.csv"],
    ["anonymize", "t.csv", "c.yaml", "--k", "2", "-o", "URL"],
    ["draft", "t.csv", "-o", "URL"],
    ["verify", "URL"],
    ["verify", "release", "--public-key", "URL"],
    ["report", "URL"],
    ["report", "release", "-o", "URL"],
    ["release-card", "URL"],
    ["release-card", "release", "-o", "URL"],
    ["release-card", "release", "--key", "URL"],
    ["compare", "URL"],
    ["compare", "r.yaml", "--picture", "URL"],
    ["budget", "URL"],
    ["register", "URL"],
    ["register", "releases", "--public-key", "URL"],
    ["keygen", "URL"],
]


@pytest.mark.parametrize(
    ("command", "url"),
    [
        (command, url)
        for command in COMMANDS
        for url in ("s3://bucket/x.csv", "https://user:secret@host/x.csv", "file:///x.csv")
        if not (command == ["verify", "URL"] and is_in_store(url))
    ],
    ids=str,
)
def test_a_command_refuses_a_url(command, url, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([url if word == "URL" else word for word in command]) == 1
    said = capsys.readouterr().err
    assert f" is a URL ({url.split(':')[0]}:). Expected the path of a local file or directory" in said
    assert said.count("\n") == 1
    assert "secret" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "path", ["releases", "./s3:/bucket", "/data/s3://x", "a b/c", "C:/data", "x:y", "{partition_key}/a.csv", ""]
)
def test_local_paths_are_as_before(path):
    assert local_path(path, "release_path") == Path(path)


def test_a_local_release_is_built(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert released(release_path=tmp_path / "out", private_path="private").assets
