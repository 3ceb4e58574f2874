"""A release whose checks are the tasks of an engine has the same problems."""

import shutil

import pytest

from benchmarks.campaigns import fuzz_manifest
from privacy_assets import EngineError, InvalidSettingError, LocalEngine, verify_release
from privacy_assets.release import verification
from privacy_assets.release.files import write_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.test_files import RECORD, TABLE
from tests.release.test_parts import release  # noqa: F401 - a fixture
from tests.release.test_received_releases import rewrite, swap
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
    monkeypatch.setattr(verification, "MOST_TASKS_OF_FILES", most)
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


class Elsewhere(LocalEngine):
    """An engine whose workers see another release, or none, at the place."""

    def map(self, batches, function, schema):
        place = function.function.received.directory
        kept = shutil.move(place, place.with_name("kept"))
        try:
            if self.rows_per_task is not None:
                shutil.copytree(place.parents[2] / "other" / "releases" / "latest", place)
            return super().map(batches, function, schema)
        finally:
            shutil.rmtree(place, ignore_errors=True)
            shutil.move(kept, place)


@pytest.mark.parametrize("is_another", [True, False])
def test_workers_that_do_not_see_the_release_verify_nothing(tmp_path, is_another):
    one, other = (of_one_file(tmp_path / name) for name in ("one", "other"))
    rewrite(other, lambda own: own.update(run_id="another"))
    with pytest.raises(EngineError, match="another manifest, or none.*was not verified.*same absolute path"):
        verify_release(one, engine=Elsewhere(rows_per_task=1 if is_another else None))
    assert verify_release(one, max_bytes=None).verified


def test_a_task_is_within_the_limits(tmp_path):
    one = of_one_file(tmp_path)
    found = verify_release(one, max_bytes=1, engine=ONE_TASK_EACH).problems
    assert found == verify_release(one, max_bytes=1).problems
    assert any("has more than 1 bytes, the limit of this verification" in problem for problem in found)


def test_a_release_in_an_object_store_is_downloaded_first():
    with pytest.raises(InvalidSettingError, match="not one in an object store. Nothing was checked. Download it"):
        verify_release("s3://bucket/people/synthetic/latest", engine=LocalEngine())
