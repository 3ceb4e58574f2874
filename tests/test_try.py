"""The command `privacy_assets try`: what it asks and refuses, what it writes, and that no cell reaches its output."""

import os
import pty
import subprocess
import sys
import threading

import numpy as np
import pytest
import yaml

from privacy_assets import InvalidSettingError, TableContract
from privacy_assets.cli import main, trial
from privacy_assets.pipeline.forecast import Forecast
from tests.orchestration.project import people
from tests.orchestration.sentinels import SENTINELS, TEXT, sentinel_people


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capfd, *arguments, code=0):
    assert main(["try", *arguments]) == code
    found = capfd.readouterr()
    return found.out + found.err


def test_proposals_are_tried_marked_and_not_decided_and_only_the_draft_is_written(folder, capfd):
    people(700, 0).to_csv("people.csv", index=False)
    told = said(capfd, "people.csv", "--accept-proposals")
    assert "Nobody decided these proposals: person patient; direct_identifier patient; quasi_identifier" in told
    assert "anonymized: yes, k=" in told
    assert "This is not a release" in told
    assert "trying k=5" in told
    assert sorted(path.name for path in folder.iterdir()) == ["people.csv", "people.yaml"]
    assert (folder / "people.yaml").stat().st_mode & 0o077 == 0
    written = yaml.safe_load((folder / "people.yaml").read_text())["attributes"]
    assert written["anonymized"]["k"] in (5, 10)
    assert "split" not in written
    with pytest.raises(InvalidSettingError, match="draft that is not decided yet"):
        TableContract.from_mapping(written["contract"])
    assert "already exists, and is not overwritten" in said(capfd, "people.csv", "--accept-proposals", code=1)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "roles are proposals, and nobody can be asked"),
        (("--policy", "anything"), "There is no use case 'anything'"),
        (("-o", "people.csv"), "already exists"),
    ],
)
def test_what_cannot_be_tried_is_refused_and_nothing_is_written(folder, capfd, arguments, expected):
    people(300, 0).to_csv("people.csv", index=False)
    assert expected in said(capfd, "people.csv", *arguments, code=1)
    assert [path.name for path in folder.iterdir()] == ["people.csv"]


def test_a_table_whose_person_has_no_proposal_is_refused_without_a_terminal(folder, capfd):
    people(300, 0).drop(columns="patient").to_csv("rows.csv", index=False)
    assert "no proposed answer for ['the person'" in said(capfd, "rows.csv", "--accept-proposals", code=1)


def test_rows_of_other_people_than_was_answered_are_refused(folder, capfd, monkeypatch):
    table = people(300, 0)
    table.loc[table.index.repeat(4)].to_csv("visits.csv", index=False)
    monkeypatch.setattr(trial, "answered", lambda draft, _, **__: trial_answer(draft, "one"))
    assert "its rows seem to be of one person" in said(capfd, "visits.csv", code=1)


def trial_answer(draft, given):
    from privacy_assets.drafting.answers import answer, question_of_person

    return answer(draft, question_of_person(draft), given)


def test_of_a_side_without_a_yes_one_option_is_tried_and_classes_are_as_large_as_the_policy_demands():
    table = people(300, 0).drop(columns="patient")
    columns = {name: {"type": "text", "role": "quasi_identifier"} for name in table}
    contract = TableContract.from_mapping({"one_row_per_person": True, "columns": columns})

    def names(**is_yes):
        forecasts = {side: Forecast("", own) for side, own in is_yes.items()}
        return [each.name for each in trial._options(table.astype(str), contract, "research_sharing", forecasts)]

    assert names(synthetic=False, anonymized=True) == ["k=5", "k=10", "smooth_cart"]
    assert names(synthetic=False, anonymized=False) == ["k=5", "smooth_cart"]
    both = names(synthetic=True, anonymized=True)
    assert both[:4] == ["smooth_cart", "k=5", "k=10", "smooth_cart soft_leaves=True"]
    assert names() == both


@pytest.mark.parametrize("failure", [None, "unreadable", "mixed"])
def test_no_cell_reaches_the_output(folder, capfd, failure):
    table = sentinel_people(300)
    if failure == "mixed":
        table["income"] = np.where(np.arange(300) % 9 == 0, TEXT, table["income"].astype(str))
    table.to_csv("people.csv", index=False)
    if failure == "unreadable":
        (folder / "people.csv").write_bytes((folder / "people.csv").read_bytes() + b'"' + TEXT.encode() + b"\xff,,,\n")
    told, code = "", main(["try", "people.csv", "--accept-proposals"])
    told = "".join(capfd.readouterr())
    assert [own for own in SENTINELS if own.decode() in told] == []
    assert told
    assert code in (0, 1)


def test_on_a_terminal_it_asks(folder):
    people(300, 0).drop(columns="patient").to_csv("rows.csv", index=False)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "privacy_assets.cli", "try", "rows.csv", "--limit-seconds", "0.001"]
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.close(theirs)
    os.write(ours, b"one\n" + 9 * b"sensitive\n" + b"\n")
    killer = threading.Timer(120, process.kill)
    killer.start()
    told = process.communicate()[0].decode()
    killer.cancel()
    os.close(ours)
    assert told.count("Whose is each row?") == 1
    assert "time had run out" in told
    assert process.returncode == 1
    assert yaml.safe_load((folder / "rows.yaml").read_text())["attributes"]["contract"]["one_row_per_person"] is True
