"""Who signed a release: rotation, a lost key, an edit after the signature, a signature of something else."""

import base64
import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.release import received_checks, verification
from privacy_assets.release.files import write_release
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.signing import SigningKey, generate_key_pair, load_signer, write_signature
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.examples import examples
from tests.release.test_files import RECORD, TABLE

pytest.importorskip("cryptography", reason="needs the extra `signing`")
DEMANDING = replace(RECORD, policy=RECORD.policy.with_required(signature=True))


class Key:
    """A pair of keys on disk."""

    def __init__(self, directory, name):
        self.private, self.public, self.key_id = generate_key_pair(directory / f"{name}.pem")

    @property
    def signer(self):
        return load_signer(SigningKey(self.private))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("signed")


@pytest.fixture(scope="module")
def keys(place):
    return Key(place, "old"), Key(place, "new")


def release(directory, key=None, table=TABLE, record=DEMANDING):
    signer = None if key is None else key.signer
    return write_release(directory, table, fingerprint(table), record, ("parquet", "csv"), signer=signer)


@pytest.fixture(scope="module")
def original(place, keys):
    return release(place / "releases", keys[0])


@pytest.fixture
def signed(original, tmp_path):
    shutil.copytree(original, tmp_path / "release")
    return tmp_path / "release"


def problems(directory, *trusted):
    found = verify_release(directory, public_keys=[key.public for key in trusted], max_bytes=None)
    assert found.verified == (not found.problems)
    return "; ".join(found.problems)


def rewrite(directory, change):
    """Edit a manifest as somebody would who knows the format: its digest is right again, and so is the signature's."""
    manifest = json.loads((directory / "manifest.json").read_text())
    change(manifest)
    manifest["digest"] = digest_of(manifest)
    (directory / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    if (directory / "signature.json").exists():
        manifest_sha256 = hashlib.sha256((directory / "manifest.json").read_bytes()).hexdigest()
        edit_signature(directory, manifest_sha256=manifest_sha256)


def edit_signature(directory, **changes):
    path = directory / "signature.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_signed_release_says_who_signed_it(original, keys, capsys):
    old, new = keys
    found = verify_release(original, public_keys=[new.public, old.public])
    assert (found.verified, found.signing_key_id, found.trusted_key) == (True, old.key_id, "old.pub.pem")
    assert main(["verify", str(original), "--public-key", str(new.public), "--public-key", str(old.public)]) == 0
    assert f"Signed with the key {old.key_id} (old.pub.pem)." in capsys.readouterr().out
    assert {path.name for path in original.iterdir()} == {
        *("manifest.json", "report.html", "signature.json", "synthetic.csv", "synthetic.parquet"),
        *("croissant.json", "dcat.jsonld", "attestation.json", "attestation-figures.json"),
    }
    assert (original / "signature.json").stat().st_mode & 0o777 == 0o644
    assert "It is signed with the key" in (original / "report.html").read_text()
    assert old.key_id in (original / "report.html").read_text()


def test_without_a_public_key_a_signature_is_said_to_be_not_checked(original, keys, capsys):
    found = verify_release(original, max_bytes=None)
    assert (found.verified, found.signing_key_id, found.trusted_key) == (True, keys[0].key_id, None)
    assert main(["verify", str(original)]) == 0
    assert "was not checked: give --public-key FILE" in capsys.readouterr().out


def test_a_release_without_a_signature_is_verified_only_where_nobody_asks_for_one(tmp_path, keys, capsys):
    plain = release(tmp_path, record=RECORD)
    assert problems(plain) == ""
    assert problems(plain, keys[0]) == "it is not signed"
    assert main(["verify", str(plain)]) == 0
    assert "does not show who wrote it" in capsys.readouterr().out
    assert main(["verify", str(plain), "--public-key", str(keys[0].public)]) == 1
    assert "It is not signed" in (plain / "report.html").read_text()


def test_what_is_signed_is_a_context_and_the_bytes_of_the_manifest(original, keys):
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    signature = json.loads((original / "signature.json").read_text())
    # As the documentation says it, so that anybody can check it with another program.
    message = b"privacy_assets release manifest, signature version 1\0" + (original / "manifest.json").read_bytes()
    load_pem_public_key(keys[0].public.read_bytes()).verify(base64.b64decode(signature["signature"]), message)


def test_after_a_rotation_old_releases_verify_with_the_old_key_and_new_ones_with_the_new(tmp_path, original, keys):
    old, new = keys
    later = release(tmp_path, new, TABLE.assign(age=[1, 2]))
    assert problems(original, old, new) == problems(later, old, new) == ""
    assert problems(original, old) == problems(later, new) == ""
    assert f"signed with the key {new.key_id}; expected one of {old.key_id}" in problems(later, old)
    assert f"signed with the key {old.key_id}; expected one of {new.key_id}" in problems(original, new)


def test_a_lost_key_signs_nothing_more_and_what_it_signed_still_verifies(tmp_path, place):
    key = Key(tmp_path, "lost")
    written = release(tmp_path / "releases", key)
    key.private.unlink()
    with pytest.raises(InvalidSettingError, match="does not exist"):
        release(tmp_path / "releases", key)
    assert problems(written, key) == ""


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest["verdicts"][1].update(value=0.01),
        lambda manifest: manifest.update(run_id="another"),
        lambda manifest: manifest.update(refusals_before=0),
        lambda manifest: manifest.update(signed_by=None),
        lambda manifest: manifest["policy"]["required"].update(signature=False),
    ],
)
def test_a_manifest_edited_after_it_was_signed_does_not_verify(signed, keys, change):
    rewrite(signed, change)
    assert "edited after signing, or the signature belongs to another release" in problems(signed, keys[0])


def test_even_a_space_is_an_edit(signed, keys):
    (signed / "manifest.json").write_bytes((signed / "manifest.json").read_bytes() + b"\n")
    assert "edited after signing" in problems(signed, keys[0])
    assert "edited after signing" in problems(signed)  # The signature says of which manifest it is.


@pytest.mark.parametrize("corrected", [False, True])
def test_a_signature_of_another_release_does_not_verify(tmp_path, signed, keys, corrected):
    other = release(tmp_path / "releases", keys[0], TABLE.assign(age=[1, 2]))
    shutil.copy(other / "signature.json", signed / "signature.json")
    if corrected:
        edit_signature(signed, manifest_sha256=hashlib.sha256((signed / "manifest.json").read_bytes()).hexdigest())
    assert "the signature belongs to another release" in problems(signed, keys[0])


def test_the_report_is_covered_by_the_signature(signed, keys):
    (signed / "report.html").write_text("forged")
    digest = {"sha256": hashlib.sha256(b"forged").hexdigest(), "bytes": 6}
    assert "'report.html' was changed" in problems(signed, keys[0])
    rewrite(signed, lambda manifest: manifest["files"].update({"report.html": digest}))
    assert "edited after signing" in problems(signed, keys[0])


def test_a_stripped_signature_does_not_go_unnoticed(signed, keys):
    (signed / "signature.json").unlink()
    assert f"the manifest names the key {keys[0].key_id}, but there is no signature.json" in problems(signed)
    assert problems(signed, keys[0]) == "it is not signed"
    rewrite(signed, lambda manifest: manifest.update(signed_by=None))
    assert "its policy requires a signature" in problems(signed)


def test_a_signature_beside_a_manifest_that_names_no_key_or_another_does_not_verify(tmp_path, keys):
    old, new = keys
    for signed_by in (None, old.key_id):
        written = release(tmp_path / str(signed_by), record=RECORD)
        manifest = json.loads((written / "manifest.json").read_text()) | {"signed_by": signed_by}
        manifest["digest"] = digest_of(manifest)
        (written / "manifest.json").write_text(json.dumps(manifest))
        write_signature(written / "signature.json", (written / "manifest.json").read_bytes(), new.signer, 0o644)
        named = "no key" if signed_by is None else f"the key {signed_by}"
        expected = f"the signature was made with the key {new.key_id}, but the manifest names {named}"
        assert problems(written, new) == problems(written) == expected


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-40]),
        lambda path: path.write_text(""),
        lambda path: path.write_text("[]"),
        lambda path: path.write_text("[" * 4_000),
        lambda path: path.write_bytes(b"\xff\xfe"),
        lambda path: path.write_bytes(path.read_bytes() + b" " * 5_000),
        lambda path: edit_signature(path.parent, signature="no base64!"),
        lambda path: edit_signature(path.parent, signature="ä" * 88),
        lambda path: edit_signature(path.parent, signature=base64.b64encode(b"x" * 63).decode()),
        lambda path: edit_signature(path.parent, signature=json.loads(path.read_text())["signature"] + "\n"),
        lambda path: edit_signature(path.parent, signature=5),
        lambda path: edit_signature(path.parent, algorithm="none"),
        lambda path: edit_signature(path.parent, algorithm=None),
        lambda path: edit_signature(path.parent, signature_version=2),
        lambda path: edit_signature(path.parent, signature_version=True),
        lambda path: edit_signature(path.parent, key_id="../../etc/passwd"),
        lambda path: edit_signature(path.parent, more=1),
        lambda path: path.write_text(path.read_text().replace("{", '{"algorithm": "none",', 1)),
    ],
)
def test_a_damaged_signature_does_not_verify_with_a_key_or_without(signed, keys, damage):
    damage(signed / "signature.json")
    for trusted in ((), keys):
        assert problems(signed, *trusted) == "signature.json is damaged: it cannot be a signature"


@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("manifest.json"), lambda path: path.symlink_to("no")]
)
def test_a_signature_that_is_no_regular_file_does_not_verify(signed, keys, make):
    (signed / "signature.json").unlink()
    make(signed / "signature.json")
    for trusted in ((), keys):
        assert problems(signed, *trusted) == "signature.json is not a regular file"


def test_a_key_identifier_that_is_not_that_of_the_signature_does_not_verify(signed, keys):
    old, new = keys
    edit_signature(signed, key_id=new.key_id)
    assert "edited after signing" in problems(signed, old, new)
    names = f"the signature was made with the key {new.key_id}, but the manifest names the key {old.key_id}"
    assert names in problems(signed)


def test_nothing_of_a_manifest_is_read_before_its_signature_is_known_to_be_of_a_trusted_key(signed, keys, monkeypatch):
    def read(_):
        raise AssertionError

    for module in (verification, received_checks):
        monkeypatch.setattr(module, "parse_manifest", read)
    assert "expected one of" in problems(signed, keys[1])


def test_a_demanded_signature_that_nobody_makes_releases_nothing(tmp_path):
    with pytest.raises(InvalidTableError, match="The policy requires a signature, and there is no signing key"):
        release(tmp_path / "releases")
    assert not (tmp_path / "releases").exists()


def test_a_signature_that_cannot_be_written_or_is_wrong_leaves_the_earlier_release_and_nothing_else(
    tmp_path, keys, monkeypatch
):
    from privacy_assets.release import files as release_files
    from privacy_assets.release import signing

    def broken(*_, **__):
        raise OSError(28, "No space left on device")

    first = release(tmp_path, keys[0])
    monkeypatch.setattr(release_files, "write_signature", broken)
    with pytest.raises(OSError, match="No space left"):
        release(tmp_path, keys[0])
    monkeypatch.undo()
    monkeypatch.setattr(signing.Signer, "sign", lambda self, message: bytes(64))
    refused = "do not verify: the signature made with the key .* does not match this manifest"
    with pytest.raises(InvalidTableError, match=refused):
        release(tmp_path, keys[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([first.name, "latest"])
    assert problems(tmp_path / "latest", keys[0]) == ""


def test_a_public_key_that_cannot_be_read_verifies_nothing(original, tmp_path, capsys):
    with pytest.raises(InvalidSettingError, match="Nothing was checked"):
        verify_release(original, public_keys=[tmp_path / "missing.pem"], max_bytes=None)
    assert main(["verify", str(original), "--public-key", str(tmp_path / "missing.pem")]) == 1
    assert "NOT verified" in capsys.readouterr().out


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_no_other_bytes_are_a_signature(original, keys, data):
    path = original / "signature.json"
    written = path.read_bytes()
    start = data.draw(st.integers(0, len(written)))
    stop = data.draw(st.integers(start, min(len(written), start + 3)))
    mutated = written[:start] + data.draw(st.binary(max_size=3)) + written[stop:]
    try:
        path.write_bytes(mutated)
        found = verify_release(original, public_keys=[keys[0].public], max_bytes=None)
    finally:
        path.write_bytes(written)
    # Only what reads as the same may pass: other spaces, or nothing changed at all.
    assert not found.verified or json.loads(mutated) == json.loads(written)
