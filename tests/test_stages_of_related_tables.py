"""The command `privacy_assets` on people and their rows: what is proposed, checked and assessed, without a release."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml

from privacy_assets.cli import main
from privacy_assets.synthesis.split import split_records
from tests.orchestration.component.test_component import project
from tests.orchestration.related_project import (
    DRUGS_CONTRACT,
    LINES_CONTRACT,
    NUMBERED_VISITS_CONTRACT,
    PEOPLE_CONTRACT,
    VISITS_CONTRACT,
)
from tests.related import clinic, with_lines

CHILDREN = {
    "visits": {"key": "patient", "order": "date", "contract": VISITS_CONTRACT},
    "drugs": {"key": "patient", "contract": DRUGS_CONTRACT},
}
RELEASE = {"attributes": {"source": {"file": "people.csv"}, "contract": PEOPLE_CONTRACT, "children": CHILDREN}}
SENTINEL = "QX7731"


def write(tables, side=""):
    tables.people.to_csv(f"{side}people.csv", index=False)
    for name, child in tables.children.items():
        child.table.to_csv(f"{side}{name}.csv", index=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "release.yaml").write_text(yaml.safe_dump(RELEASE, sort_keys=False))
    return tmp_path


def said(capsys, *arguments, code=0):
    assert main(list(arguments)) == code
    return capsys.readouterr()


CHECK = ("check", "people.csv", "release.yaml", "--child", "visits.csv", "--child", "drugs=drugs.csv")


def test_tables_are_checked_together(folder, capsys):
    tables = clinic(300)
    write(tables)
    n_rows = {name: len(child.table) for name, child in tables.children.items()}
    found = json.loads(said(capsys, *CHECK, "--json").out)
    assert (found["admitted"], found["is_release"]) == (True, False)
    assert found["records"] == {"people": 300, **n_rows}
    assert found["columns_that_repeat_the_person"] == {}
    told = said(capsys, *CHECK).out
    assert f"every row has its person: <RelatedTables 300 people, {n_rows['visits']:,} rows of 'visits'" in told
    repeating = tables.children["visits"].table.assign(paid=tables.whose["visits"] % 2 == 0)
    repeating.to_csv("visits.csv", index=False)
    assert "visits: ['paid'] never differ within a person. Move them to the people" in said(capsys, *CHECK).out


def test_rows_of_nobody_and_broken_contracts_are_counted_without_a_cell(folder, capsys):
    tables = clinic(300)
    visits = tables.children["visits"].table
    write(tables)
    visits.assign(patient=visits["patient"].where(visits.index > 4, SENTINEL)).to_csv("visits.csv", index=False)
    told = said(capsys, *CHECK, code=1)
    assert "5 rows of 'visits' have a 'patient' that nobody in 'people' has" in told.out
    visits.assign(cost=-1.0, diagnosis=SENTINEL).to_csv("visits.csv", index=False)
    found = json.loads(said(capsys, *CHECK, "--json", code=1).out)
    assert [(each["column"], each["count"]) for each in found["failures"]] == [("visits: cost", len(visits))]
    assert found["admitted"] is False
    assert SENTINEL not in told.out + told.err + json.dumps(found)


def test_children_are_given_as_the_contract_has_them(folder, capsys):
    write(clinic(100))
    for arguments in (CHECK[:3], CHECK[:5], (*CHECK, "--child", "visits.csv"), (*CHECK[:6], "drugs.csv", "x.csv")):
        assert "has the children ['visits', 'drugs']" in said(capsys, *arguments, code=1).err
    (folder / "alone.yaml").write_text(yaml.safe_dump({"contract": PEOPLE_CONTRACT}))
    alone = ("check", "people.csv", "alone.yaml", *CHECK[3:5])
    assert "has the children [], and 1 are" in said(capsys, *alone, code=1).err
    for children, words in (
        ({"visits": 3}, "lacks `contract` or `key`"),
        ([], "do not map names to tables"),
        ({"visits": {**CHILDREN["visits"], "key": "age"}}, "has the key 'age'"),
    ):
        (folder / "release.yaml").write_text(yaml.safe_dump({"contract": PEOPLE_CONTRACT, "children": children}))
        assert words in said(capsys, *CHECK[:5], code=1).err
    (folder / "release.yaml").write_text(yaml.safe_dump(RELEASE, sort_keys=False))
    told = said(capsys, "anonymize", "people.csv", "release.yaml", "--k", "5", "-o", "out.csv", code=1)
    assert "are not anonymized with their links. Use `aggregate_rows`" in told.err


def numbered(tables):
    """The same people and rows with keys from 1 on, as synthetic tables have them."""
    numbers = np.arange(1, len(tables.people) + 1)
    children = {
        name: replace(own, table=own.table.assign(patient=numbers[tables.whose[name]]))
        for name, own in tables.children.items()
    }
    return replace(tables, people=tables.people.assign(patient=numbers), children=children)


ASSESS = (
    *("assess", "people.csv", "made_people.csv", "--control", "control_people.csv", "--contract", "release.yaml"),
    *("--child", "visits.csv", "made_visits.csv", "control_visits.csv"),
    *("--child", "drugs.csv", "made_drugs.csv", "control_drugs.csv"),
)


def test_synthetic_people_and_their_rows_are_assessed(folder, capsys):
    original, control = split_records(clinic(500), train_fraction=0.5, seed=0)
    write(original)
    write(control, "control_")
    write(numbered(clinic(250, seed=9)), "made_")
    found = json.loads(said(capsys, *ASSESS, "--json").out)
    assert found["disclosure"]["scores"]["leakage_detected"] is False
    assert list(found["views"])[:2] == ["people", "rows of visits"]
    assert 0 <= found["views"]["rows of visits"]["privacy_risk_score"] <= 1
    write(numbered(original), "made_")
    copies = said(capsys, *ASSESS).out
    assert "privacy_risk_score of rows of visits: " in copies
    assert json.loads(said(capsys, *ASSESS, "--json").out)["disclosure"]["scores"]["leakage_detected"] is True


def test_what_cannot_be_assessed_is_refused_with_what_to_do(folder, capsys):
    original, control = split_records(clinic(200), train_fraction=0.5, seed=0)
    write(original)
    write(control, "control_")
    write(numbered(original), "made_")
    without_control = (*ASSESS[:3], *ASSESS[5:])
    for arguments in (without_control, (*ASSESS, "--max-cols", "2")):
        assert "`assess` needs --control, and takes no --max-cols" in said(capsys, *arguments, code=1).err
    write(replace(original, people=original.people), "control_")
    assert "repeat a 'patient'" in said(capsys, *ASSESS, code=1).err
    write(control, "control_")
    swapped = pd.concat([original.children["drugs"].table, control.children["drugs"].table.head(3)])
    swapped.to_csv("drugs.csv", index=False)
    told = said(capsys, *ASSESS, code=1).err
    assert "3 rows of 'drugs' are among the originals and of a person of the control" in told


def test_a_draft_has_keys_and_orders_and_is_checked_once_it_is_decided(folder, capsys):
    write(clinic(300))
    told = said(capsys, "draft", "people.csv", "visits.csv", "drugs.csv")
    assert "Drafted 5 columns of visits of " in told.err
    drafted = yaml.safe_load(told.out)["attributes"]
    assert drafted["source"] == {"file": "people.csv"}
    assert "anonymized" not in drafted
    visits = drafted["children"]["visits"]
    assert (visits["source"], visits["key"], visits["order"]) == ({"file": "visits.csv"}, "patient", "date")
    assert "order" not in drafted["children"]["drugs"]
    assert "# No `order`: no column" in told.out
    (folder / "drafted.yaml").write_text(told.out)
    check = ("check", "people.csv", "drafted.yaml", *CHECK[3:])
    assert "is not decided yet" in said(capsys, *check, code=1).err
    (folder / "drafted.yaml").write_text(told.out.replace("drafted: true", "# decided"))
    assert "every row has its person" in said(capsys, *check).out
    at_length = said(capsys, "draft", "people.csv", "visits.csv", "--all").out
    assert yaml.safe_load(at_length)["attributes"]["children"]["visits"]["key"] == "patient"


@pytest.mark.filterwarnings("ignore:.* is currently in beta", "ignore:`parse_obj_as` is deprecated")
@pytest.mark.parametrize("more", [("drugs.csv",), ("drugs.csv", "--all"), ("lines.csv",)])
def test_a_decided_draft_is_a_release_of_all_tables(folder, capsys, more):
    tables = with_lines(clinic(300)) if "lines.csv" in more else clinic(300)
    write(tables)
    drafted = said(capsys, "draft", "people.csv", "visits.csv", *more).out
    decided = drafted.replace("drafted: true", "# decided").replace("role: decide", "role: quasi_identifier")
    decided = decided.replace("research_sharing", "internal_analytics")
    with project(clinic=decided) as sandbox, sandbox.build_all_defs() as definitions:
        made = {key.to_user_string() for key in definitions.resolve_asset_graph().get_all_asset_keys()}
    assert {"clinic/source", "clinic/synthetic", "clinic/synthetic_release"} <= made


DEEP = ("people.csv", "visits.csv", "lines.csv")
CHECK_DEEP = ("check", "people.csv", "release.yaml", "--child", "visits.csv", "--child", "lines.csv")


def test_rows_of_rows_are_drafted_and_checked(folder, capsys):
    tables = with_lines(clinic(200))
    write(tables)
    told = said(capsys, "draft", *DEEP).out
    children = yaml.safe_load(told)["attributes"]["children"]
    links = {name: [own.get(each) for each in ("of", "key", "order", "own_key")] for name, own in children.items()}
    assert links == {"visits": [None, "patient", "date", "visit"], "lines": ["visits", "visit", None, None]}
    decided = told.replace("drafted: true", "# decided").replace("role: decide", "role: quasi_identifier")
    (folder / "release.yaml").write_text(decided)
    n_lines = len(tables.children["lines"].table)
    assert f"{n_lines} rows of 'lines'>" in said(capsys, *CHECK_DEEP).out
    found = json.loads(said(capsys, *CHECK_DEEP, "--json").out)
    assert found["admitted"]
    assert "the 'patient' of its 'visits' is the person" in found["unit"]["lines"]["reason"]
    lines = tables.children["lines"].table
    lines.assign(visit=lines["visit"].where(lines.index > 4, 7731)).to_csv("lines.csv", index=False)
    told = said(capsys, *CHECK_DEEP, code=1)
    assert "5 rows of 'lines' have a 'visit' that no row in 'visits' has" in told.out
    assert "7731" not in told.out + told.err


def test_a_second_level_is_assessed(folder, capsys):
    children = {
        "visits": {"key": "patient", "order": "date", "own_key": "visit", "contract": NUMBERED_VISITS_CONTRACT},
        "lines": {"of": "visits", "key": "visit", "order": "line", "contract": LINES_CONTRACT},
    }
    release = {"contract": PEOPLE_CONTRACT, "children": children}
    (folder / "release.yaml").write_text(yaml.safe_dump(release, sort_keys=False))
    original, control = split_records(with_lines(clinic(500)), train_fraction=0.5, seed=0)
    write(original)
    write(control, "control_")
    lines = ("--child", "lines.csv", "made_lines.csv", "control_lines.csv")
    for tables, leaks in ((with_lines(clinic(250, seed=9), 9), False), (original, True)):
        write(tables.renumbered(), "made_")
        found = json.loads(said(capsys, *ASSESS[:-4], *lines, "--json").out)
        assert found["disclosure"]["scores"]["leakage_detected"] is leaks
        assert {"rows of lines", "histories of lines"} <= set(found["views"])
    control.children["lines"].table.head(3).to_csv("more.csv", index=False)
    both = pd.concat([pd.read_csv("lines.csv"), pd.read_csv("more.csv")])
    both.to_csv("lines.csv", index=False)
    told = said(capsys, *ASSESS[:-4], *lines, code=1).err
    assert "3 rows of 'lines' are among the originals and of a person of the control" in told
    no_own_key = {**children, "visits": {**children["visits"], "own_key": None}}
    (folder / "release.yaml").write_text(yaml.safe_dump({"contract": PEOPLE_CONTRACT, "children": no_own_key}))
    told = said(capsys, *ASSESS[:-4], *lines, code=1).err
    assert "'lines' belongs to rows of 'visits' by the key 'visit', and `own_key` there is None" in told


def test_a_draft_is_refused_with_what_to_do(folder, capsys):
    tables = clinic(100)
    write(tables)
    told = said(capsys, "draft", "people.csv", "visits.csv", "--contract-only", code=1).err
    assert "Leave out --contract-only" in told
    (folder / "more").mkdir()
    tables.children["visits"].table.to_csv("more/visits.csv", index=False)
    assert (
        "Expected different names" in said(capsys, "draft", "people.csv", "visits.csv", "more/visits.csv", code=1).err
    )
    marked = tables.children["visits"].table.assign(patient=SENTINEL)
    marked.to_csv("visits.csv", index=False)
    told = said(capsys, "draft", "people.csv", "visits.csv", code=1)
    assert "Table 'visits' has no key of 'people'" in told.err
    assert SENTINEL not in told.out + told.err
