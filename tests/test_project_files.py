"""The files that say how the project is cited, released and measured."""

import json
import re
import tomllib
from argparse import ArgumentParser, Namespace

import pytest
import yaml

import privacy_assets
from tests.shared_data import REPOSITORY

if not (REPOSITORY / "CITATION.cff").exists():
    pytest.skip("the repository is not beside these tests", allow_module_level=True)

from benchmarks.measurements import Measurements, add_json_option

# Of the schema of CFF 1.2.0.
REQUIRED_KEYS = {"authors", "cff-version", "message", "title"}
CFF_KEYS = REQUIRED_KEYS | {
    *("abstract", "commit", "contact", "date-released", "doi", "identifiers", "keywords", "license", "license-url"),
    *("preferred-citation", "references", "repository", "repository-artifact", "repository-code", "type", "url"),
    "version",
}
# A history of versions, and releases that an earlier one wrote.
HISTORY = ("CHANGELOG.md", "benchmarks/results/", "docs/compatibility.md")
RESULTS = sorted((REPOSITORY / "benchmarks" / "results").glob("*/*.json"))


def is_agent(agent):
    return set(agent) == {"name"} or {"family-names", "given-names"} <= set(agent)


def test_the_citation_is_valid():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert set(citation) >= REQUIRED_KEYS
    assert set(citation) <= CFF_KEYS
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["license"] == project["license"]
    assert citation["abstract"] == project["description"]
    cited = [citation, *citation["references"]]
    assert len(cited) > 1
    for each in cited:
        assert {"authors", "title", "type"} <= set(each)
        assert each["authors"]
        assert [agent for agent in each["authors"] if not is_agent(agent)] == []


def test_the_version_is_written_once():
    version = privacy_assets.__version__
    assert tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dynamic"] == [
        "version"
    ]
    files = [
        path
        for pattern in ("*.cff", "*.md", "*.toml", "*.yml", "docs/**/*.md", "**/*.py", "benchmarks/**/*.json")
        for path in REPOSITORY.glob(pattern)
        if ".venv" not in path.parts
    ]
    pattern = re.compile(rf"(?<![\d.]){re.escape(version)}(?![\d.]*\d)")
    naming = {
        path.relative_to(REPOSITORY).as_posix() for path in files if pattern.search(path.read_text(encoding="utf-8"))
    }
    assert {name for name in naming if not name.startswith(HISTORY)} == {"privacy_assets/__init__.py"}


def test_some_results_are_kept():
    assert RESULTS


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_kept_result_says_what_ran_where(path):
    result = json.loads(path.read_text(encoding="utf-8"))
    assert (result["benchmark"], result["version"]) == (path.stem, path.parent.name)
    scripts = [script.stem for script in (REPOSITORY / "benchmarks").rglob("*.py")]
    assert any(f"{path.stem}_".startswith(f"{script}_") for script in scripts)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", result["measured_on"])
    assert result["machine"]["processor"]
    assert {"python", "numpy", "pandas"} <= set(result["versions"])
    assert result["figures"]
    assert all(isinstance(value, int | float) for value in result["figures"].values())
    assert all(set(each) - {"known_missed"} == {"bar", "met"} for each in result["bars"])
    # A place on somebody's machine is of no use to others.
    assert "/" not in json.dumps([result["options"], result["figures"], result["machine"]["system"]])


def test_a_run_is_kept_where_it_is_asked_to_be(tmp_path, capsys):
    parser = ArgumentParser()
    add_json_option(parser)
    parser.add_argument("--rows", type=int, default=5)
    measured = Measurements("example", parser.parse_args(["--json", str(tmp_path / "own" / "example.json")]))
    measured.keep(seconds=0.123456, records=12)
    with pytest.raises(ValueError, match="already kept: \\['records'\\]"):
        measured.keep(records=13)
    measured.check("under 1 s", True)
    assert measured.finish() == 0
    kept = json.loads((tmp_path / "own" / "example.json").read_text())
    assert kept["figures"] == {"seconds": 0.1235, "records": 12}
    assert kept["options"] == {"rows": 5}
    assert kept["bars"] == [{"bar": "under 1 s", "met": True}]
    measured.check("under 0.2 s", False, is_known_missed=True)
    assert measured.finish() == 0
    assert "MISSED  under 0.2 s (known)" in capsys.readouterr().out
    measured.check("under 0.1 s", False)
    assert measured.finish() == 1
    assert "MISSED  under 0.1 s" in capsys.readouterr().out


def test_without_the_option_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    measured = Measurements("example", Namespace(json=None))
    assert measured.finish() == 0
    assert list(tmp_path.iterdir()) == []


def test_the_folders_that_contributing_lists_are_the_layers_of_the_imports():
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(each["layers"] for each in contracts["contracts"] if each.get("containers") == ["privacy_assets"])
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    assert [set(re.findall(r"`(\w+)(?:/|\.py)`", row)) for row in rows] == [set(layer.split(" | ")) for layer in layers]
    found = {path.stem for path in (REPOSITORY / "privacy_assets").iterdir() if path.suffix in ("", ".py")}
    assert found - {"__init__", "__pycache__"} == set().union(*(set(layer.split(" | ")) for layer in layers))
