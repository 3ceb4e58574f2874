"""Withdrawn releases: the list, what verification and the register say, and what damages the list."""

import json
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError
from privacy_assets.release import clock, withdrawing
from privacy_assets.release.files import read_anonymized_release, write_release
from privacy_assets.release.register import write_register
from privacy_assets.release.signing import generate_key_pair
from privacy_assets.release.verification import verify_release
from privacy_assets.release.withdrawals import RELEASES_MARK_FILE, WITHDRAWN_FILE, read_withdrawals
from privacy_assets.release.withdrawing import withdraw_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.test_files import RECORD, TABLE, write_anonymized

REASON = "The key of the pseudonyms was lost"


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "releases"
    root.mkdir()
    (root / RELEASES_MARK_FILE).touch()
    return root


def released(root, run_id="run", partition=None):
    directory = root / "people" / "synthetic"
    directory = directory if partition is None else directory / partition
    return write_release(directory, TABLE, fingerprint(TABLE), replace(RECORD, run_id=run_id, partition=partition))


def lines(root):
    return (root / WITHDRAWN_FILE).read_bytes().splitlines()


def test_a_withdrawn_version_no_longer_verifies_and_latest_is_the_newest_other(root, capsys):
    first, second, third = (released(root, run_id) for run_id in ("1", "2", "3"))
    assert main(["withdraw", str(third.parent / "latest"), "--reason", REASON]) == 0
    said = capsys.readouterr().out
    assert f"latest version is now {second.name}" in said
    assert f"The same records are in versions that are not withdrawn: {first.name}, {second.name}.\n" in said
    assert (third.parent / "latest").resolve() == second
    assert main(["withdraw", str(first), "--reason", REASON]) == 0
    assert (third.parent / "latest").resolve() == second
    assert [verify_release(each, max_bytes=None).verified for each in (first, second, third)] == [False, True, False]
    found = verify_release(third, max_bytes=None)
    assert found.problems == ()
    assert found.withdrawn == f"withdrawn on {clock.today()}: {REASON} (not signed)"
    # The files stay, because recipients have theirs.
    assert sorted(path.name for path in third.iterdir()) == sorted(path.name for path in second.iterdir())
    assert main(["withdraw", str(second), "--reason", REASON]) == 0
    assert "There is no latest version any more" in capsys.readouterr().out
    assert not os.path.lexists(third.parent / "latest")
    fourth = released(root, "4")
    assert (fourth.parent / "latest").resolve() == fourth
    assert [entry.number for entry in read_withdrawals(root / WITHDRAWN_FILE)] == [1, 2, 3]


def test_the_command_says_when_and_why_and_fails(root, capsys):
    written = released(root, partition="2026%2D01")
    withdraw_release(written, REASON)
    assert main(["verify", str(written)]) == 1
    assert capsys.readouterr().out.startswith(f"WITHDRAWN: {written} was withdrawn on {clock.today()}: {REASON}")
    assert main(["report", str(written)]) == 1
    assert f"withdrawn on {clock.today()}" in capsys.readouterr().err


def test_a_recipient_compares_a_renamed_copy_with_a_copy_of_the_list(root, tmp_path, capsys):
    received = tmp_path / "received"
    shutil.copytree(released(root), received)
    withdraw_release(max((root / "people" / "synthetic").glob("2*")), REASON)
    assert main(["verify", str(received)]) == 0
    listed = shutil.copy(root / WITHDRAWN_FILE, tmp_path / "list.jsonl")
    assert main(["verify", str(received), "--withdrawn", str(listed)]) == 1
    assert REASON in capsys.readouterr().out
    assert main(["verify", str(received), "--withdrawn", str(tmp_path / "none")]) == 1
    assert "There is no list of withdrawn releases" in capsys.readouterr().out


def test_what_was_withdrawn_stays_known(tmp_path, root):
    # Its readers are those who may combine it with a later release.
    written = write_anonymized(root / "people" / "anonymized")
    withdraw_release(written, REASON)
    assert not verify_release(written, max_bytes=None).verified
    assert len(read_anonymized_release(written, max_bytes=None)[0])


def test_an_entry_is_signed_with_a_key_and_the_signature_is_checked_with_the_public_key(root, tmp_path, capsys):
    pytest.importorskip("cryptography", reason="needs the extra `signing`")
    private, public, key_id = generate_key_pair(tmp_path / "officer.pem")
    written = released(root)
    assert main(["withdraw", str(written), "--reason", REASON, "--key", str(private)]) == 0
    assert f"(signed with the key {key_id})" in verify_release(written, max_bytes=None).withdrawn
    assert "-----" not in capsys.readouterr().out
    (entry,) = lines(root)
    forged = json.loads(entry) | {"signature": "A" * 86 + "=="}
    (root / WITHDRAWN_FILE).write_text(json.dumps(forged))
    assert read_withdrawals(root / WITHDRAWN_FILE)
    with pytest.raises(InvalidSettingError, match="line 1 does not follow"):
        write_register(root, public_keys=[public])
    private.chmod(0o644)
    assert main(["withdraw", str(written), "--reason", REASON, "--key", str(private)]) == 1
    assert "is accessible to others" in capsys.readouterr().out


@pytest.mark.parametrize(
    "damage",
    {
        "a changed reason": lambda old: [old[0].replace(b"lost", b"kept"), *old[1:]],
        "a line that is missing": lambda old: old[1:],
        "two lines in another order": lambda old: [old[1], old[0], *old[2:]],
        "a line twice": lambda old: [*old, old[-1]],
        "half of a line": lambda old: [*old[:-1], old[-1][:40]],
        "a key twice": lambda old: [old[0].replace(b"{", b'{"number":1,', 1), *old[1:]],
        "a mark of byte order": lambda old: [b"\xef\xbb\xbf" + old[0], *old[1:]],
        "a key more": lambda old: [old[0].replace(b"{", b'{"more":1,', 1), *old[1:]],
        "no object": lambda old: [*old, b"[]"],
    }.items(),
    ids=lambda damage: damage[0],
)
def test_a_list_that_was_edited_verifies_no_release_and_withdraws_none(root, damage):
    versions = [released(root, run_id) for run_id in "1234"]
    for version in versions[:3]:
        withdraw_release(version, REASON)
    damaged = b"\n".join(damage[1](lines(root))) + b"\n"
    (root / WITHDRAWN_FILE).write_bytes(damaged)
    found = verify_release(versions[3], max_bytes=None)
    assert not found.verified
    assert "it is unknown which releases are withdrawn" in found.problems[0]
    with pytest.raises(InvalidSettingError, match="Restore the newest copy"):
        withdraw_release(versions[3], REASON)
    assert (root / WITHDRAWN_FILE).read_bytes() == damaged


@pytest.mark.parametrize("kind", ["pipe", "link", "directory", "large"])
def test_a_list_that_is_no_file_of_bounded_size_is_not_read(root, kind):
    path, written = root / WITHDRAWN_FILE, released(root)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "directory":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(2**30)
    assert "cannot be used" in verify_release(written, max_bytes=None).problems[0]


def test_what_is_no_version_is_not_withdrawn(root, tmp_path, capsys):
    written = released(root)
    elsewhere = tmp_path / written.name
    shutil.copytree(written, elsewhere)
    missing = written.with_name(written.name[:-1] + "x")
    for path, said in (
        (missing, "there is no such directory"),
        (written.with_name("20990101T000000.000000Z-0123456789ab"), "there is no such directory"),
        (written.parent, "it is not the directory of a version"),
        (elsewhere, f"no directory above it has the file {RELEASES_MARK_FILE}"),
    ):
        assert main(["withdraw", str(path), "--reason", REASON]) == 1
        assert said in (printed := capsys.readouterr().out)
        assert "Nothing was withdrawn" in printed
    for reason in ("", "gone", "<b> <i> !!", "word " * 1_000):
        assert main(["withdraw", str(written), "--reason", reason]) == 1
        assert "at least 3 words" in capsys.readouterr().out
    (written / "manifest.json").write_text("{}")
    assert main(["withdraw", str(written), "--reason", REASON]) == 1
    assert "Restore its manifest" in capsys.readouterr().out
    assert not (root / WITHDRAWN_FILE).exists()


def test_an_interrupted_withdrawal_is_finished_by_the_next_without_a_second_entry(root, monkeypatch, capsys):
    first, second = released(root, "1"), released(root, "2")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(withdrawing, "_move_latest", full_disk)
    assert main(["withdraw", str(second), "--reason", REASON]) == 1
    assert "It stands, but `latest`" in capsys.readouterr().out
    assert not verify_release(second, max_bytes=None).verified
    monkeypatch.undo()
    before = lines(root)
    assert main(["withdraw", str(second), "--reason", "Another reason is given"]) == 0
    assert "It was in the list before" in capsys.readouterr().out
    assert lines(root) == before
    assert (first.parent / "latest").resolve() == first


def test_a_clock_that_went_back_a_day_withdraws_as_well(root, monkeypatch):
    first, second = released(root, "1"), released(root, "2")
    withdraw_release(first, REASON)
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) - timedelta(days=1))
    withdraw_release(second, REASON)
    assert [verify_release(each, max_bytes=None).verified for each in (first, second)] == [False, False]


def test_a_clock_that_went_back_a_day_between_two_releases_moves_latest_to_no_older_one(root, monkeypatch):
    first, second = released(root, "1"), released(root, "2")
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) - timedelta(days=1))
    third = released(root, "3")
    assert third.name < first.name
    latest = third.parent / "latest"
    assert withdraw_release(second, REASON).latest == latest.resolve().name == third.name
    page = (root / "index.html").read_text()
    assert page.index(first.name) < page.index(third.name)
    assert withdraw_release(third, REASON).latest == latest.resolve().name == first.name


def test_the_register_shows_what_was_withdrawn_and_escapes_its_reason(root):
    withdraw_release(released(root), "<script>alert(1)</script> was in the file")
    page = (root / "index.html").read_text()
    assert f"withdrawn on {clock.today()}: &lt;script&gt;alert(1)&lt;/script&gt; was in the file" in page
    assert "<script>" not in page


def test_the_list_of_a_copy_of_all_releases_counts_and_no_other_further_up(root, tmp_path):
    written = released(root)
    withdraw_release(written, REASON)
    # Without hidden files, as some programs copy.
    copy = tmp_path / "copy"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".*"))
    (copied,) = (copy / "people" / "synthetic").glob("2*")
    assert REASON in verify_release(copied, max_bytes=None).withdrawn
    far = tmp_path / "a" / "b" / "c" / "d" / "e"
    shutil.copytree(written, far)
    (tmp_path / WITHDRAWN_FILE).write_text("damaged")
    assert verify_release(far, max_bytes=None).verified
