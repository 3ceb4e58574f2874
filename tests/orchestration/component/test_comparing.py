"""The command that compares the candidate releases of a YAML file."""

import re

import numpy as np
import pandas as pd
import pytest
import yaml

from privacy_assets.cli import main
from privacy_assets.utility import assess
from tests.orchestration.comparison.test_release_options import related
from tests.orchestration.project import CONTRACT, configure
from tests.orchestration.sentinels import SENTINELS

# Dagster reads YAML through a function that pydantic will remove.
pytestmark = pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated")
TYPE = "privacy_assets.PrivacyReleaseComponent"
POLICY = {"limits": [{"metric": "smallest_class", "value": 5}]}
RELEASE = {"source": {"file": "data/people.parquet"}, "contract": CONTRACT, "policy": POLICY, "anonymized": {"k": 2}}
OPTIONS = {"candidates": [{"anonymized": {"k": 3}}, {"anonymized": {"k": 8}}]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(assess, "N_QUERIES", 200)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    configure(tmp_path)
    (tmp_path / "data").mkdir()
    related(800, 1).to_parquet("data/people.parquet", index=False)
    return tmp_path


def write(folder, *releases):
    documents = [{"type": TYPE, "attributes": each} for each in releases]
    (folder / "release.yaml").write_text(yaml.safe_dump_all(documents, sort_keys=False))


def test_candidates_are_compared_printed_and_kept(folder, capsys):
    write(folder, RELEASE | {"name": "people", "options": OPTIONS})
    assert main(["compare", "release.yaml", "--picture", "map.png"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"k=3 +\d\.\d{3} +\d+  no: smallest_class is \d; expected at least 5", said)
    assert re.search(r"k=8 +\d\.\d{3} +\d+  yes \(recommended\)", said)
    assert yaml.safe_load(said.split("# anonymized: k=8")[1].split("\n\n")[0]) == {"anonymized": {"k": 8}}
    assert (folder / "map.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / ".dagster/private/people/release_options.artifact").exists()
    assert 'n_compared": 2' in next((folder / ".dagster/private/comparisons").iterdir()).read_text()


def test_standard_candidates_within_a_time_limit(folder, capsys):
    write(folder, RELEASE | {"name": "people", "options": OPTIONS})
    assert main(["compare", "release.yaml", "--candidates", "standard", "--limit-seconds", "0.001"]) == 0
    said = capsys.readouterr().out
    assert "k=50" in said
    assert "not made: time had run out" in said
    assert "No candidate can be proposed" in said


@pytest.mark.parametrize(
    ("releases", "arguments", "message"),
    [
        ([], [], "does not have exactly one release of the type"),
        ([RELEASE | {"name": "a"}, RELEASE | {"name": "b"}], [], "It has ['a', 'b']; name one of them with --name"),
        ([RELEASE | {"name": "a"}], ["--name", "b"], "does not have a release 'b'"),
        ([RELEASE | {"source": {"asset": "people"}}], [], "is an asset of a Dagster project"),
        ([RELEASE], ["--partition", "north"], "has no partitions"),
        (
            [RELEASE | {"partitions": {"type": "static", "partition_keys": ["n"]}}],
            [],
            "has partitions: name one with --partition",
        ),
        ([RELEASE | {"options": {"n_seeds": 1}}], [], "options.n_seeds is 1"),
        ([RELEASE | {"source": {"file": "data/nothing.parquet"}}], [], "There is no file"),
    ],
)
def test_what_cannot_be_compared_is_said(folder, capsys, releases, arguments, message):
    write(folder, *releases)
    assert main(["compare", "release.yaml", *arguments]) == 1
    assert message in capsys.readouterr().out


def test_a_file_that_is_none_and_a_wrong_limit(folder, capsys):
    assert main(["compare", "nothing.yaml"]) == 1
    (folder / "release.yaml").write_text("a: [")
    assert main(["compare", "release.yaml"]) == 1
    assert "is not YAML" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["compare", "release.yaml", "--limit-seconds", "-1"])


def test_no_cell_is_printed(folder, capsys):
    table = related(400, 1)
    table["plan"] = np.where(np.arange(400) % 2 == 0, SENTINELS[0].decode(), "free")
    pd.concat([table, table.head(1)]).to_parquet("data/people.parquet", index=False)
    columns = CONTRACT["columns"] | {"patient": CONTRACT["columns"]["patient"] | {"unique": True}}
    for contract in (CONTRACT, {"columns": columns}):
        write(folder, RELEASE | {"contract": contract, "name": "people", "options": OPTIONS})
        main(["compare", "release.yaml"])
        captured = capsys.readouterr()
        assert not [each for each in SENTINELS if each in (captured.out + captured.err).encode()]
        assert "patient-1-" not in captured.out + captured.err
