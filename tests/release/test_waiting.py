"""The directory of a release that waits: kept if it is what is asked for, and no decision in it is ever lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from privacy_assets.errors import InvalidTableError
from privacy_assets.release.files import write_release
from privacy_assets.release.report import ReportMaterial
from privacy_assets.release.waiting import forget_files, keep_waiting
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.test_files import RECORD, TABLE

CONTENT = fingerprint(TABLE)
OTHER = replace(RECORD, declaration={"purpose": "Teaching statistics"})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pending" / CONTENT


def keep(path, record=RECORD, formats=("parquet",), rows_per_part=1_000):
    return keep_waiting(path, TABLE, CONTENT, record, formats, ReportMaterial, rows_per_part, sealed)


def sealed(digest):
    return f"keyed-{digest}"


def times(path):
    return {each.name: each.stat().st_mtime_ns for each in path.iterdir()}


def test_what_is_there_already_is_not_written_again_and_what_differs_is(path):
    keep(path)
    before = times(path)
    keep(path, replace(RECORD, run_id="another run", refusals_before=7))
    assert times(path) == before
    assert "declaration" in keep(path, OTHER)
    assert sorted(keep(path, OTHER, ("parquet", "csv"))["files"]) == [
        "report.html",
        "synthetic.csv",
        "synthetic.parquet",
    ]
    (path / "synthetic.csv").unlink()
    keep(path, OTHER, ("parquet", "csv"))
    assert (path / "synthetic.csv").is_file()


def test_an_interrupted_change_loses_no_decision(path, monkeypatch):
    keep(path)
    (path / "approval-1.json").write_text("decided")
    rename = Path.rename

    def fails_half_way(self, target):
        if target == path:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails_half_way)
    with pytest.raises(OSError, match="No space left"):
        keep(path, OTHER)
    monkeypatch.undo()
    assert "declaration" in keep(path, OTHER)
    assert (path / "approval-1.json").read_text() == "decided"
    assert sorted(each.name for each in path.parent.iterdir()) == [CONTENT, f"{CONTENT}.pages"]


def test_only_the_decisions_about_another_content_stay(path):
    other = path.with_name("0" * 64)
    for each in (other, path.with_name("2026-01")):
        (each / "synthetic.parquet").mkdir(parents=True)
        (each / "approval-1.json").write_text("decided")
    keep(path)
    assert [each.name for each in other.iterdir()] == ["approval-1.json"]
    # Another partition, of which the name is no fingerprint, waits for itself.
    assert len(list(path.with_name("2026-01").iterdir())) == 2
    link = path.with_name("1" * 64)
    link.symlink_to(path)
    forget_files(link)
    assert (path / "synthetic.parquet").is_file()


def test_what_waited_is_published_and_no_other_content_in_its_place(path, tmp_path):
    keep(path)
    released = write_release(tmp_path / "releases", TABLE, CONTENT, RECORD, waiting=path)
    assert (released / "synthetic.parquet").read_bytes() == (path / "synthetic.parquet").read_bytes()
    TABLE.assign(age=[9, 9]).to_parquet(path / "synthetic.parquet", index=False)
    with pytest.raises(InvalidTableError, match="does not have the recorded fingerprint"):
        write_release(tmp_path / "releases", TABLE, CONTENT, RECORD, waiting=path)
    demanding = replace(RECORD, policy=RECORD.policy.with_required(approvals=1))
    with pytest.raises(InvalidTableError, match="no files waited for them"):
        write_release(tmp_path / "releases", TABLE, CONTENT, demanding)
    keep(path, demanding)
    with pytest.raises(InvalidTableError, match="waits for 1 of 1 approvals"):
        write_release(tmp_path / "releases", TABLE, CONTENT, demanding, waiting=path)
