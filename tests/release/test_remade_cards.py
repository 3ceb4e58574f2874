"""The files for other programs, made anew: the same bytes, elsewhere, and only of a release that verifies."""

import json

import pytest

from privacy_assets.cli import main
from privacy_assets.release.formats.attestation import ATTESTATIONS
from privacy_assets.release.withdrawals import RELEASES_MARK_FILE
from privacy_assets.release.withdrawing import withdraw_release
from tests.release.formats.released import release
from tests.release.test_signature import Key

pytest.importorskip("cryptography", reason="needs the extra `signing`")
CARDS = ("croissant.json", "dcat.jsonld")


@pytest.fixture
def key(tmp_path):
    return Key(tmp_path, "own")


@pytest.fixture
def signed(tmp_path, key, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return release(tmp_path / "releases" / "people" / "synthetic", signer=key.signer)


def files_of(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_same_key_makes_the_same_bytes(signed, key, tmp_path, capsys):
    before = files_of(signed)
    assert main(["release-card", str(signed.parent / "latest"), "--key", str(key.private)]) == 0
    made = files_of(tmp_path / f"card-{signed.name}")
    assert made == {name: before[name] for name in (*CARDS, *ATTESTATIONS)}
    assert files_of(signed) == before
    assert capsys.readouterr().out.count(": as released\n") == 4


def test_without_a_key_nothing_is_attested_and_it_says_why(signed, tmp_path, capsys):
    assert main(["release-card", str(signed), "-o", str(tmp_path / "cards")]) == 0
    assert sorted(files_of(tmp_path / "cards")) == sorted(CARDS)
    assert "were not made: an envelope without a signature says nothing" in capsys.readouterr().out


def test_another_key_may_attest_and_it_is_said_that_this_differs(signed, tmp_path, capsys):
    other = Key(tmp_path, "other")
    assert main(["release-card", str(signed), "-o", "cards", "--key", str(other.private)]) == 0
    assert capsys.readouterr().out.count("the release has none, or another") == 2
    (signature,) = json.loads((tmp_path / "cards" / "attestation.json").read_text())["signatures"]
    assert signature["keyid"] == other.key_id


def test_what_does_not_verify_gets_no_cards(signed, tmp_path, capsys):
    (signed / "croissant.json").write_text("{}")
    assert main(["release-card", str(signed), "-o", "cards"]) == 1
    assert "does not verify: the file 'croissant.json' was changed. Nothing was made." in capsys.readouterr().err
    assert not (tmp_path / "cards").exists()


def test_what_was_withdrawn_gets_no_cards(signed, tmp_path, capsys):
    (tmp_path / "releases" / RELEASES_MARK_FILE).touch()
    withdraw_release(signed, "The key of the pseudonyms was lost")
    assert main(["release-card", str(signed), "-o", "cards"]) == 1
    assert "it was withdrawn on" in capsys.readouterr().err


def test_cards_are_never_written_into_a_release_or_over_something(signed, tmp_path, capsys):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(signed)
    for output, said in (
        (signed / "cards", "is in the release"),
        (tmp_path / "link" / "cards", "is in the release"),
        (tmp_path / "there", "FileExistsError"),
        (tmp_path / "nowhere" / "cards", "FileNotFoundError"),
    ):
        assert main(["release-card", str(signed), "-o", str(output)]) == 1
        assert said in capsys.readouterr().err
    assert not (signed / "cards").exists()


def test_a_key_that_cannot_be_used_makes_nothing(signed, key, tmp_path, capsys):
    key.private.chmod(0o644)
    assert main(["release-card", str(signed), "-o", "cards", "--key", str(key.private)]) == 1
    assert "is accessible to others" in capsys.readouterr().err
    assert not (tmp_path / "cards").exists()
