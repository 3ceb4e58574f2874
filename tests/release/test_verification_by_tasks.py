"""A release whose checks are the tasks of an engine has the same problems."""

import hashlib
import shutil
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.campaigns import fuzz_manifest
from privacy_assets import EngineError, InvalidSettingError, LocalEngine, verify_release
from privacy_assets.release import received_checks, received_files, verification
from privacy_assets.release.files import write_release
from privacy_assets.release.signing import SignatureFound
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.test_files import RECORD, TABLE
from tests.release.test_parts import release  # noqa: F401 - a fixture
from tests.release.test_received_releases import BEYOND_LIMITS, MIB, parquet, rewrite, swap
from tests.release.test_related_files import DAMAGES, released  # noqa: F401 - a fixture

ONE_TASK_EACH = LocalEngine(rows_per_batch=1, batches_per_partition=1)


def same_by_tasks(directory, **asked):
    """Verify a release here, and by tasks, without limits."""
    found = verify_release(directory, **asked | {"max_bytes": None})
    assert verify_release(directory, **asked | {"max_bytes": None}, engine=ONE_TASK_EACH) == found
    return found


def test_whatever_a_manifest_says_the_tasks_find_the_same(tmp_path, monkeypatch):
    pytest.importorskip("cryptography", reason="needs the extra `signing`")
    fuzzed = fuzz_manifest.make_releases(tmp_path)
    monkeypatch.setattr(fuzz_manifest, "verify_release", same_by_tasks)
    assert fuzz_manifest.campaign(60, seed=5, releases=fuzzed).tracebacks == []
    assert fuzz_manifest.forge(60, seed=5, releases=fuzzed).tracebacks == []


@pytest.mark.parametrize("what", list(DAMAGES)[::5])
def test_damaged_related_tables(released, tmp_path, what):  # noqa: F811
    own = shutil.copytree(released[0], tmp_path / "own")
    DAMAGES[what][0](own, released[1])
    assert not same_by_tasks(own).verified


def damaged_parts(directory):
    for part in (directory / "synthetic.parquet").iterdir():
        part.write_bytes(part.read_bytes()[:-9] + b"other" + b"PAR1")


DAMAGED = {
    "nothing": lambda directory: None,
    "every part": damaged_parts,
    "a part that is missing": lambda directory: next((directory / "synthetic.parquet").iterdir()).unlink(),
    "a part more": lambda directory: shutil.copy(
        directory / "synthetic.parquet" / "part-00000.parquet", directory / "synthetic.parquet" / "part-9.parquet"
    ),
    "the report": lambda directory: (directory / "report.html").unlink(),
    "the CSV file": lambda directory: (directory / "synthetic.csv").write_text("age,plan\n"),
    "a card": lambda directory: (directory / "croissant.json").write_text("{}"),
    "the fingerprint": lambda directory: rewrite(directory, lambda own: own.update(fingerprint="0" * 64)),
    "the number of records": lambda directory: rewrite(directory, lambda own: own.update(n_records=1)),
    "a name of a column": lambda directory: rewrite(directory, lambda own: own["columns"][0].update(column="x")),
    "a format": lambda directory: rewrite(directory, lambda own: own.update(formats=["parquet"])),
    "the manifest": lambda directory: (directory / "manifest.json").write_text("{}"),
}


@pytest.mark.parametrize("most", [1, 2, 32])
@pytest.mark.parametrize("what", DAMAGED)
def test_parts_of_which_one_or_several_are_of_a_task(release, monkeypatch, what, most):  # noqa: F811
    monkeypatch.setattr(received_checks, "MOST_CHECKS_OF_FILES", most)
    DAMAGED[what](release)
    assert same_by_tasks(release).verified == (what == "nothing")


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\0" * 99 + b"PAR1"])
def test_a_table_that_nobody_can_read_is_said_once(tmp_path, data):
    one = of_one_file(tmp_path)
    swap(one, data)
    found = same_by_tasks(one).problems
    assert found.count("the file 'synthetic.parquet' cannot be read as a table") == 1


def of_one_file(place):
    return write_release(place / "releases", TABLE, fingerprint(TABLE), RECORD, ("parquet", "csv"))


def answer(directory, number):
    """Make one check of a release."""
    data = (directory / "manifest.json").read_bytes()
    return received_checks.Received(directory, data, SignatureFound(), None).answer(number)


def other_manifest(place):
    rewrite(place, lambda own: own.update(run_id="another"))


def relinked(path):
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


UNSEEN = {
    "another manifest": other_manifest,
    "no manifest": lambda place: (place / "manifest.json").unlink(),
    "no table": lambda place: (place / "synthetic.parquet").unlink(),
    "a larger table": lambda place: (place / "synthetic.parquet").write_bytes(bytes(5_000)),
    "one file more": lambda place: (place / "more").touch(),
    "one directory more": lambda place: (place / "more").mkdir(),
    "a link in place of the table": lambda place: relinked(place / "synthetic.parquet"),
    "nothing": shutil.rmtree,
}


@dataclass(frozen=True)
class Sees:
    """A check of which the worker sees something else; the other workers see the release."""

    check: Any
    number: int
    change: Any

    def __call__(self, number):
        if number != self.number:
            return self.check(number)
        place = self.check.directory
        kept = shutil.copytree(place, place.with_name("kept"))
        try:
            self.change(place)
            return self.check(number)
        finally:
            shutil.rmtree(place, ignore_errors=True)
            kept.rename(place)


def seen_by(number, change, monkeypatch, directory, **asked):
    """Verify a release by workers, one of whom sees it changed."""
    make = verification._CheckOnWorker
    with monkeypatch.context() as patched:
        patched.setattr(verification, "_CheckOnWorker", lambda *own: Sees(make(*own), number, change))
        return verify_release(directory, engine=ONE_TASK_EACH, **{"max_bytes": None, **asked})


@pytest.mark.parametrize("what", UNSEEN)
def test_a_worker_that_does_not_see_the_release_verifies_nothing(tmp_path, what, monkeypatch):
    one = of_one_file(tmp_path)
    with pytest.raises(EngineError, match="see other files.*, or none. The release was not verified"):
        seen_by(3, UNSEEN[what], monkeypatch, one)
    assert verify_release(one, max_bytes=None).verified


def other_bytes(place):
    data = (place / "synthetic.parquet").read_bytes()
    (place / "synthetic.parquet").write_bytes(data.replace(b"free", b"paid"))


def test_no_worker_checks_a_table_of_the_same_size_that_others_did_not_see(tmp_path, monkeypatch):
    one = of_one_file(tmp_path)
    n_checks = answer(one, 0)["n_checks"]
    refused = [n for n in range(n_checks) if not seen_by(n, other_bytes, monkeypatch, one).verified]
    # The checks of the file and of the table: its fingerprint, CSV file, columns, rare values, rules and figures.
    assert len(refused) == 7
    assert refused[1:] == [*range(n_checks - 7, n_checks - 1)]


def test_cards_of_the_same_size_that_one_worker_sees_otherwise(tmp_path, monkeypatch):
    """The recorded one is wrong, and a worker sees the right one."""
    one = of_one_file(tmp_path)
    right = (one / "croissant.json").read_bytes()
    wrong = right.replace(b"people", b"peoplE", 1)
    (one / "croissant.json").write_bytes(wrong)
    rewrite(one, lambda own: own["files"]["croissant.json"].update(sha256=hashlib.sha256(wrong).hexdigest()))
    assert same_by_tasks(one).problems == ("the file 'croissant.json' is not what the manifest says",)
    last = answer(one, 0)["n_checks"] - 1
    found = seen_by(last, lambda place: (place / "croissant.json").write_bytes(right), monkeypatch, one)
    assert found.problems == ("the file 'croissant.json' was changed",)


def test_a_manifest_that_vanishes_in_the_meantime(tmp_path, monkeypatch):
    one = of_one_file(tmp_path)
    find = verification.find_signature

    def vanishes(*asked):
        (one / "manifest.json").unlink()
        return find(*asked)

    monkeypatch.setattr(verification, "find_signature", vanishes)
    with pytest.raises(EngineError, match="see other files"):
        verify_release(one, engine=ONE_TASK_EACH)


def test_latest_can_lead_elsewhere_in_the_meantime(tmp_path, monkeypatch):
    one = of_one_file(tmp_path)
    latest, find = one.parent / "latest", verification.find_signature

    def moves(*asked):
        latest.unlink()
        latest.symlink_to("elsewhere")
        return find(*asked)

    monkeypatch.setattr(verification, "find_signature", moves)
    for engine in (None, ONE_TASK_EACH):
        latest.unlink()
        latest.symlink_to(one.name)
        found = verify_release(latest, max_bytes=None, engine=engine)
        assert (found.verified, found.directory) == (True, latest)


def test_related_tables_that_one_worker_sees_otherwise(released, tmp_path, monkeypatch):  # noqa: F811
    own = shutil.copytree(released[0], tmp_path / "own")

    def change(place):
        data = bytearray((place / "visits.parquet").read_bytes())
        data[-1:] = b"x"
        (place / "visits.parquet").write_bytes(data)

    of_content = answer(own, 0)["n_checks"] - 2
    assert "the file 'visits.parquet' was changed" in seen_by(of_content, change, monkeypatch, own).problems


def test_a_bomb_is_met_in_a_process_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(received_files, "BYTES_OF_LIBRARIES", 0)
    one, n_records = of_one_file(tmp_path), 100_000
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_records, np.int32)), ["x" * (2 * MIB)])
    swap(one, parquet(pa.table({"plan": texts}), store_schema=False), ["plan"], n_records)
    before = pa.total_allocated_bytes()
    found = verify_release(one, max_bytes=64 * MIB, engine=ONE_TASK_EACH).problems
    assert any(problem.startswith(BEYOND_LIMITS) for problem in found)
    assert pa.total_allocated_bytes() == before


def test_what_workers_answer_is_bounded(tmp_path, monkeypatch):
    one = of_one_file(tmp_path)

    def forge(own):
        named = ({**own["verdicts"][0], "name": "x" * 90_000, "passed": False, "metric": None} for _ in range(500))
        own["verdicts"] += named

    rewrite(one, forge)
    found = same_by_tasks(one).problems
    assert found[-1].endswith(" more problems were found")
    monkeypatch.setattr(received_checks, "LONGEST_NAME", 90_000)
    answers = [answer(one, number) for number in range(answer(one, 0)["n_checks"])]
    assert max(len(each["problems"]) for each in answers) == received_checks.MAX_PROBLEMS
    assert max(len(problem) for each in answers for problem in each["problems"]) == received_checks.LONGEST_PROBLEM


def test_problems_before_one_at_which_a_check_ends_are_not_lost(tmp_path):
    one = of_one_file(tmp_path)

    def forge(own):
        own["policy"]["required"]["signed_waivers"] = True
        own["waivers"] = [{"file": "x", "metric": 3}]

    rewrite(one, forge)
    found = same_by_tasks(one).problems
    assert "the waivers differ from those that the verdicts name" in found
    assert any("while it was checked" in problem for problem in found)


def test_a_release_in_an_object_store_is_downloaded_first():
    with pytest.raises(InvalidSettingError, match="not one in an object store. Nothing was checked. Download it"):
        verify_release("s3://bucket/people/synthetic/latest", engine=LocalEngine())
