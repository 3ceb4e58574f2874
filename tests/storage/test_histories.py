"""Private histories: what is damaged is seen, and hides nothing else."""

import os

import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.storage.histories import add_to_history, read_history


def add(path, *numbers):
    add_to_history(path, [{"number": number} for number in numbers], "these numbers", "Nothing was counted.")


def read(path):
    return read_history(path, lambda entry: int(entry["number"]))


def test_what_is_added_is_read_in_order_by_its_owner_alone(tmp_path):
    path = tmp_path / "kept" / "people.jsonl"
    assert read(path) == []
    add(path, 1, 2)
    add(path, 3)
    assert read(path) == [1, 2, 3]
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize(
    "damaged", [b'{"numb', b"[1]", b'{"number": "\xff"}', b'{"other": 1}', b"[" * 100_000, b"null"]
)
def test_a_damaged_line_is_one_entry_and_hides_no_other(tmp_path, damaged):
    path = tmp_path / "people.jsonl"
    add(path, 1)
    with path.open("ab") as file:
        file.write(b"\n" + damaged)
    add(path, 2)
    assert read(path) == [1, None, 2]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_one_damaged_entry_and_takes_no_other(tmp_path, make):
    path = tmp_path / "people.jsonl"
    make(path)
    assert read(path) == [None]
    with pytest.raises(InvalidSettingError, match=r"is not a file, so these numbers could not be added .* Nothing was"):
        add(path, 1)


def test_a_link_is_not_followed(tmp_path):
    path, elsewhere = tmp_path / "people.jsonl", tmp_path / "elsewhere"
    path.symlink_to(elsewhere)
    with pytest.raises(OSError, match=os.strerror(40)):
        add(path, 1)
    assert not elsewhere.exists()
