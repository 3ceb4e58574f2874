"""The command `privacy_assets` on single stages: what it prints, its exit codes, and that it makes no release."""

import json
import re
import sys
import warnings

import pandas as pd
import pytest
import yaml

from privacy_assets import InvalidTableError, TableContract, anonymize, verify_anonymity
from privacy_assets.cli import main
from privacy_assets.display.progress_bar import StageProgress
from tests.orchestration.project import CONTRACT, people, synthetic_people
from tests.orchestration.sentinels import SENTINELS, TEXT, sentinel_people

NO_RELEASE = "This is not a release"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(CONTRACT))
    people(300, 0).to_csv("people.csv", index=False)
    people(300, 2).to_csv("control.csv", index=False)
    synthetic_people(300, 1).to_csv("synthetic.csv", index=False)
    return tmp_path


def said(capsys, *arguments, code=0):
    assert main(list(arguments)) == code
    return capsys.readouterr()


def test_a_draft_is_printed_written_decided_and_checked(folder, capsys):
    printed = said(capsys, "draft", "people.csv")
    drafted = yaml.safe_load(printed.out)
    assert drafted["attributes"]["source"] == {"file": "people.csv"}
    assert drafted["attributes"]["anonymized"] == {"k": 5}
    assert "  #split: {train_fraction: auto}" in printed.out
    of_sides = re.findall(r"(?m)^  # Under research_sharing: .+$", printed.out)
    assert len(of_sides) == 2
    assert "300 people are in classes of at least 5" in of_sides[1]
    assert "It contains categories of plan" in printed.err
    written = said(capsys, "draft", "people.csv", "-o", "release.yaml")
    assert written.out == ""
    assert (folder / "release.yaml").read_text() == printed.out
    assert "already exists" in said(capsys, "draft", "people.csv", "-o", "release.yaml", code=1).err
    assert "is not decided yet" in said(capsys, "check", "people.csv", "release.yaml", code=1).err
    lines = (folder / "release.yaml").read_text().splitlines(keepends=True)
    (folder / "release.yaml").write_text("".join(line for line in lines if "drafted: true" not in line))
    assert "people.csv keeps its contract: 300 records." in said(capsys, "check", "people.csv", "release.yaml").out
    contract_only = said(capsys, "draft", "people.csv", "--contract-only").out
    assert yaml.safe_load(contract_only) == drafted["attributes"]["contract"]


def test_without_a_unit_a_check_refuses_and_figures_count_rows_with_a_remark(folder, capsys):
    columns = {name: own for name, own in CONTRACT["columns"].items() if name != "patient"}
    (folder / "rows.yaml").write_text(yaml.safe_dump({"columns": columns}))
    for name in ("people", "control"):
        pd.read_csv(f"{name}.csv").drop(columns="patient").to_csv(f"{name}.csv", index=False)
    assert "does not say whose a row is" in said(capsys, "check", "people.csv", "rows.yaml", code=1).err
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        told = said(capsys, "anonymize", "people.csv", "rows.yaml", "--k", "5", "-o", "out.csv")
    assert told.err.startswith("The contract does not say whose a row is: rows are taken for people")


def test_a_check_counts_what_breaks_the_contract(folder, capsys):
    table = people(300, 0).assign(age=130)
    table.to_parquet("broken.parquet")
    told = said(capsys, "check", "broken.parquet", "contract.yaml", code=1).out
    assert NO_RELEASE in told
    found = json.loads(said(capsys, "check", "broken.parquet", "contract.yaml", "--json", code=1).out)
    assert (found["admitted"], found["is_release"]) == (False, False)
    assert [(each["column"], each["count"]) for each in found["failures"]] == [("age", 300)]


@pytest.mark.parametrize("place", ["whole.parquet", "parts"])
def test_a_check_names_the_column_that_numbers_other_people(folder, capsys, place):
    table = people(300, 0)
    table = table.loc[table.index.repeat(4)].sample(frac=1, random_state=0).assign(cost=1.5)
    table.to_parquet("whole.parquet", index=False)
    (folder / "parts").mkdir()
    for number in range(3):
        part = table.iloc[400 * number : 400 * number + 400]
        part.to_parquet(folder / "parts" / f"{number}.parquet", index=False)
    in_rows = {"columns": {name: {**own} for name, own in CONTRACT["columns"].items()}, "one_row_per_person": True}
    del in_rows["columns"]["patient"]["person"]
    (folder / "rows.yaml").write_text(yaml.safe_dump(in_rows))
    told = said(capsys, "check", place, "rows.yaml", code=1).out
    assert "'patient' repeats (300 values, 4.0 rows each) and goes with 'joined', 'age'" in told
    assert "person: true" in told
    found = json.loads(said(capsys, "check", place, "rows.yaml", "--json", code=1).out)
    assert (found["admitted"], found["failures"], found["unit"]["passed"]) == (False, [], False)
    assert "'patient' is the person" in said(capsys, "check", place, "contract.yaml").out


@pytest.mark.parametrize("oldest", [59, 130])
def test_a_directory_is_checked_as_its_table_is(folder, capsys, oldest):
    table = people(300, 0)
    table.loc[299, "age"] = oldest
    table.to_parquet("whole.parquet", index=False)
    (folder / "parts").mkdir()
    for number in range(3):
        table.iloc[100 * number : 100 * number + 100].to_parquet(folder / "parts" / f"{number}.parquet", index=False)
    code = int(oldest > 120)
    whole, parts = (
        json.loads(said(capsys, "check", name, "contract.yaml", "--json", code=code).out)
        for name in ("whole.parquet", "parts")
    )
    assert parts == whole
    assert (parts["records"], len(parts["failures"])) == ((0, 1) if code else (300, 0))


def test_synthetic_records_are_assessed(folder, capsys):
    arguments = ("assess", "people.csv", "synthetic.csv", "--contract", "contract.yaml", "--max-cols", "2")
    alone = said(capsys, *arguments).out
    assert "privacy_risk_score: " in alone
    assert "Leakage is not assessed: give --control FILE" in alone
    found = json.loads(said(capsys, *arguments, "--control", "control.csv", "--json").out)
    assert 0 <= found["scores"]["privacy_risk_score"] <= 1
    assert found["disclosure"]["summary"]


@pytest.mark.parametrize("why", ["blind", "foreign"])
def test_records_that_cannot_be_compared_are_said_and_have_no_score(folder, capsys, why):
    arguments = ("assess", "people.csv", "synthetic.csv", "--contract", "contract.yaml", "--max-cols", "2")
    original = people(900, 0)
    original["age"] = 20 + (((original["age"] - 20) / 40) ** 5 * 39).astype(int)
    original.to_csv("people.csv", index=False)
    changed = 99 if why == "blind" else original["age"].max() + 20 - original["age"]
    original.drop(columns="patient").assign(age=changed).to_csv("synthetic.csv", index=False)
    told = said(capsys, *arguments).out
    expected = "Column 'age': 100.0% of the synthetic values" if why == "blind" else "The records cannot be compared"
    assert expected in told
    found = json.loads(said(capsys, *arguments, "--json").out)
    assert expected in found["incomparable"]
    assert found["scores"]["privacy_risk_score"] is None


def test_a_table_is_anonymized_into_a_new_file(folder, capsys):
    for name in ("out.parquet", "out.csv"):
        arguments = ("anonymize", "people.csv", "contract.yaml", "--k", "5", "-o", name)
        assert NO_RELEASE in said(capsys, *arguments).out
        assert (folder / name).stat().st_mode & 0o077 == 0
        assert "is not overwritten" in said(capsys, *arguments, code=1).err
    made = pd.read_parquet("out.parquet")
    quasi_identifiers = list(TableContract.from_mapping(CONTRACT).columns_with_role("quasi_identifier"))
    assert verify_anonymity(made, quasi_identifiers).k >= 5
    assert "patient" not in made
    assert len(pd.read_csv("out.csv")) == 300
    wrong = said(capsys, "anonymize", "people.csv", "contract.yaml", "--k", "5", "-o", "out.xlsx", code=1)
    assert "neither .parquet nor .csv" in wrong.err


@pytest.mark.parametrize("refused", [False, True])
def test_the_line_with_the_progress_is_removed_also_before_a_refusal(folder, capsys, monkeypatch, refused):
    def told(*arguments, progress, **named):
        progress(StageProgress("rows", 1, 2))
        if refused:
            raise InvalidTableError("SENTINEL")
        return anonymize(*arguments, **named)

    monkeypatch.setattr("privacy_assets.anonymization.anonymize.anonymize", told)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    arguments = ("anonymize", "people.csv", "contract.yaml", "--k", "5", "-o", "made.csv")
    shown = said(capsys, *arguments, code=int(refused)).err
    line, after = shown.split("total 2")
    assert line == "\r\x1b[Kdone 1, "
    assert after.startswith("\r\x1b[K")


def test_nothing_shows_a_cell(folder, capsys):
    sentinel_people(200).to_csv("sentinels.csv", index=False)
    (folder / "ragged.csv").write_text(f"patient,age\na,{TEXT}\n{TEXT}\na,{TEXT},3\n")
    told = [
        said(capsys, "check", "sentinels.csv", "contract.yaml", code=1),
        said(capsys, "check", "ragged.csv", "contract.yaml", code=1),
        said(capsys, "check", "none.csv", "contract.yaml", code=1),
        said(capsys, "check", "people.csv", "ragged.csv", code=1),
        said(capsys, "draft", "ragged.csv", code=1),
    ]
    for each in told:
        assert each.out + each.err
        assert not [cell for cell in SENTINELS if cell in (each.out + each.err).encode()]
