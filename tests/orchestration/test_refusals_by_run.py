"""A run is one refusal, whichever of its steps found what, how often, and in which process."""

import json
import multiprocessing
import shutil

import pytest

from privacy_assets.orchestration.evidence.refusals import every_refusal
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager, recorded_refusals
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.release.register import open_refusals
from privacy_assets.storage.histories import add_to_history, read_history
from tests.orchestration.project import ADMITS, ASSESSMENT, REFUSES, key
from tests.orchestration.test_refusal_page import pages

RELEASE = key("synthetic_release")
TOO_HIGH = "privacy_risk_score is 0.31; expected below 0.1"
COPIES = "verbatim_copies is 3; expected at most 0"


def private(tmp_path):
    return PrivateParquetIOManager(str(tmp_path / "private"))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([{"score": TOO_HIGH}], [(TOO_HIGH,)]),
        ([{"score": TOO_HIGH}, {"copies": COPIES}], [(COPIES, TOO_HIGH)]),
        ([{"copies": COPIES}, {"score": TOO_HIGH}], [(COPIES, TOO_HIGH)]),
        ([{"score": TOO_HIGH}, {"score": TOO_HIGH}], [(TOO_HIGH,)]),
        ([{"score": TOO_HIGH}, {"copies": COPIES, "score": TOO_HIGH}], [(COPIES, TOO_HIGH)]),
        ([{"score": TOO_HIGH}] * 5 + [{"copies": COPIES}] * 5, [(COPIES, TOO_HIGH)]),
        ([{"a_is_met": COPIES, "b_is_met": COPIES}], [(COPIES,)]),
    ],
    ids=["one", "two steps", "the other way round", "a retry", "a retry that finds more", "many", "found twice"],
)
def test_what_the_steps_of_a_run_found_is_one_refusal(tmp_path, steps, expected):
    tables = private(tmp_path)
    for failed in steps:
        tables.record_refusal(RELEASE, None, "run", failed)
    (own,) = tables.refusal_history(RELEASE, None).values()
    assert [own.found] == expected
    runs = list(every_refusal(tables))
    assert [run.failed for run in runs] == expected
    assert [each.n_runs for each in open_refusals([], runs)] == [1]


def test_runs_and_partitions_are_counted_apart_and_a_damaged_line_counts(tmp_path):
    tables = private(tmp_path)
    for run, partition in [("1", None), ("2", None), ("3", "a"), ("3", "b"), ("2", None)]:
        tables.record_refusal(RELEASE, partition, run, {"score": TOO_HIGH})
    assert set(tables.refusal_history(RELEASE, None)) == {"1", "2"}
    assert set(tables.refusal_history(RELEASE, "a")) == {"3"}
    history = tables.history_path("refusals", RELEASE)
    for damaged in ('{"torn', '{"run_id": "4", "partition": null, "refused_at": "x", "failed": ["a name"]}'):
        with history.open("a") as file:
            file.write(f"\n{damaged}")
    assert len(tables.refusal_history(RELEASE, "a")) == 3
    assert len(list(every_refusal(tables))) == 6


def _add(path, process, barrier):
    barrier.wait()
    for number in range(10):
        found = {f"condition_{process}_{number}": "x" * 30_000}
        entry = {"refused_at": "now", "partition": None, "run_id": "run", "failed": found}
        add_to_history(path, [entry], "this refusal", "Nothing was released.")


def test_steps_in_several_processes_lose_nothing_of_each_other(tmp_path):
    processes = multiprocessing.get_context("fork")
    path, barrier = tmp_path / "history.jsonl", processes.Barrier(4)
    steps = [processes.Process(target=_add, args=(path, number, barrier)) for number in range(4)]
    for step in steps:
        step.start()
    for step in steps:
        step.join()
    assert [step.exitcode for step in steps] == [0] * 4
    assert None not in read_history(path, dict)
    ((run, own),) = recorded_refusals(path).items()
    assert run == (None, "run")
    assert list(own.failed) == sorted(f"condition_{step}_{number}" for step in range(4) for number in range(10))


def two_limits(project, score=REFUSES, excess=-0.9):
    """Return definitions whose checks on two assessments refuse in the same run, unless the limits are others."""
    limits = (
        Limit("privacy_risk_score", score, "at_most"),
        Limit("leakage_detected", 0),
        Limit("singling_out_excess", excess, "at_most"),
    )
    return project.definitions(policy=Policy(limits, RequiredSettings(control_records=40, detectable_share=None)))


@pytest.mark.parametrize("is_lost", [False, True], ids=["both records", "events alone"])
def test_a_run_in_which_two_checks_fail_is_counted_once_with_both_findings(project, is_lost):
    result = project.run(two_limits(project))
    failed = {each.description for each in result.get_asset_check_evaluations() if not each.passed}
    assert len(failed) >= 2
    (page,) = pages(project)
    text = page.read_text()
    assert "is at most its limit:" not in text
    said = project.register.read_text()
    assert "<td>1</td>" in said
    assert all(each in said for each in failed)
    if is_lost:
        shutil.rmtree(project.private / "refusals")
    project.run(two_limits(project), ASSESSMENT)
    assert project.run(two_limits(project, ADMITS, 0.9)).success
    (written,) = project.releases()
    assert json.loads((written / "manifest.json").read_text())["refusals_before"] == 2
    report = (written / "report.html").read_text()
    history = report[report.index("History of refusals") : report.index("Verify the files</h2>")]
    assert all(each in history for each in failed)
    assert "at_most_its_limit" not in history
