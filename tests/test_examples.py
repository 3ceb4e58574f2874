"""The examples run as a reader runs them, and each makes a release that verifies."""

import re
import runpy
from datetime import date

import dagster as dg
import pytest

from privacy_assets.release import clock
from tests.orchestration.settings.postgresql import require_postgresql, running_server
from tests.shared_data import REPOSITORY, shared_file

EXAMPLES = REPOSITORY / "examples"
if not EXAMPLES.exists():
    pytest.skip("the examples are not beside these tests", allow_module_level=True)

SCRIPTS = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.glob("*/*.py"))
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")


def run(script, folder, monkeypatch, capsys):
    """Run a script from a folder; return what it prints."""
    monkeypatch.chdir(folder)
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    printed = capsys.readouterr().out
    assert re.search(r"^\d+ records in releases/\w+/\w+/latest; verified: True$", printed, flags=re.MULTILINE)
    return printed


def test_every_example_has_a_line_that_runs_it():
    lines = [line for line in README.splitlines() if line.startswith("| [")]
    assert [re.findall(r"\]\(([\w/.]+)\)", line)[0] for line in lines] == [
        "adult/release.py",
        "duckdb/release.py",
        "postgresql/release.py",
        "dbt/definitions.py",
    ]
    assert sorted(re.findall(r"python examples/([\w/.]+)`", README)) == SCRIPTS


@pytest.mark.parametrize("script", ["../privacy_assets/definitions.py", *SCRIPTS])
def test_what_an_example_declares_is_the_same_whenever_it_is_loaded(script):
    code = (EXAMPLES / script).read_text(encoding="utf-8")
    assert re.search(r"\btoday\b|\bnow\b|\btimedelta\b", code) is None
    for day in re.findall(r'"review_by": (.*),', code):
        assert day == "None" or date.fromisoformat(day.strip('"')) > clock.today()


def test_adult_in_either_form(tmp_path, monkeypatch, capsys):
    table = shared_file("data", "adult.csv")
    monkeypatch.setenv("ADULT_FILE", str(table))
    assert "32561 records in releases/adult/anonymized" in run("adult/release.py", tmp_path, monkeypatch, capsys)
    # As the repository of the table has it: without a header, and with a space after each comma.
    lines = table.read_text(encoding="utf-8").splitlines()[1:2001]
    as_published = tmp_path / "adult.data"
    as_published.write_text("\n".join(", ".join(cell or "?" for cell in line.split(",")) for line in lines) + "\n")
    monkeypatch.setenv("ADULT_FILE", str(as_published))
    (tmp_path / "second").mkdir()
    printed = run("adult/release.py", tmp_path / "second", monkeypatch, capsys)
    assert "2000 records in releases/adult/anonymized" in printed


def test_adult_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADULT_FILE", "nowhere.data")
    with pytest.raises(SystemExit, match=r"There is no file 'nowhere\.data'\. Download UCI Adult"):
        runpy.run_path(str(EXAMPLES / "adult" / "release.py"), run_name="__main__")


def test_duckdb(tmp_path, monkeypatch, capsys):
    pytest.importorskip("duckdb", reason="needs the extra `sql`")
    monkeypatch.setenv("WAREHOUSE_URL", f"duckdb:///{tmp_path}/patients.duckdb")
    assert "releases/patients/synthetic/latest" in run("duckdb/release.py", tmp_path, monkeypatch, capsys)


def test_postgresql(tmp_path, monkeypatch, capsys):
    require_postgresql()
    import psycopg

    with running_server() as url:
        with psycopg.connect(url) as connection:
            connection.execute((EXAMPLES / "postgresql" / "patients.sql").read_text(encoding="utf-8"))
        monkeypatch.setenv("WAREHOUSE_URL", url)
        printed = run("postgresql/release.py", tmp_path, monkeypatch, capsys)
    assert "Columns: ['age', 'age_low', 'age_high', 'sex', 'sex_values', 'zip', 'zip_values', 'diagnosis']" in printed


def test_dbt(tmp_path, monkeypatch, capsys):
    pytest.importorskip("duckdb", reason="needs the extra `sql`")
    printed = run("dbt/definitions.py", tmp_path, monkeypatch, capsys)
    checks = re.findall(r"^(marts/visits_by_decade) \w+: passed$", printed, flags=re.MULTILINE)
    assert len(checks) == 3
    assert "FAILED" not in printed


@pytest.mark.parametrize("script", SCRIPTS)
def test_dagster_loads_an_example_from_its_file(script, tmp_path, monkeypatch):
    """As `dagster dev -f` does."""
    pytest.importorskip("duckdb", reason="needs the extra `sql`")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAREHOUSE_URL", "duckdb://")
    definitions = runpy.run_path(str(EXAMPLES / script), run_name="loaded")["defs"]
    assert isinstance(definitions, dg.Definitions)
    assert [key for key in definitions.resolve_asset_graph().get_all_asset_keys() if key.path[-1].endswith("_release")]
    assert list(tmp_path.iterdir()) == []
