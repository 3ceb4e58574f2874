"""Keys that sign releases: where they may be, what is refused, and that nothing of them is shown."""

import base64
import os
import pickle

import pytest

from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError
from privacy_assets.release import signing
from privacy_assets.release.signing import SigningKey, generate_key_pair, load_signer, read_public_key

pytest.importorskip("cryptography", reason="needs the extra `signing`")
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

NAME = "PRIVACY_ASSETS_TEST_SIGNING_KEY"
MESSAGE = b"a message"


@pytest.fixture
def pair(tmp_path):
    return generate_key_pair(tmp_path / "release.pem")


def pem_of(key, password=None):
    encryption = serialization.NoEncryption()
    if password is not None:
        encryption = serialization.BestAvailableEncryption(password)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def secret_of(path):
    """Return everything that would give the key away: the body of the PEM file and the key in other notations."""
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    raw = key.private_bytes_raw()
    return [path.read_text().splitlines()[1], raw.hex(), base64.b64encode(raw).decode(), repr(raw)[2:-1]]


def refusal(settings):
    with pytest.raises(InvalidSettingError) as raised:
        load_signer(settings)
    assert raised.value.__cause__ is raised.value.__context__ is None
    return str(raised.value)


def test_a_new_pair_signs_and_its_public_key_verifies(pair, tmp_path):
    private, public, key_id = pair
    assert (private.name, public.name) == ("release.pem", "release.pub.pem")
    assert private.stat().st_mode & 0o777 == 0o600
    assert public.stat().st_mode & 0o777 == 0o644
    signer, trusted = load_signer(SigningKey(private)), read_public_key(public)
    assert signer.key_id == trusted.key_id == key_id
    signature = signer.sign(MESSAGE)
    assert trusted.verifies(signature, MESSAGE)
    assert not trusted.verifies(signature, MESSAGE + b" ")
    assert not trusted.verifies(signature[:-1], MESSAGE)
    other = read_public_key(generate_key_pair(tmp_path / "other.pem")[1])
    assert not other.verifies(signature, MESSAGE)


def test_the_identifier_is_the_hash_of_the_public_key(pair):
    import hashlib

    key = serialization.load_pem_public_key(pair[1].read_bytes())
    assert pair[2] == hashlib.sha256(key.public_bytes_raw()).hexdigest()


def test_a_key_is_never_overwritten(pair, tmp_path):
    private, public, _ = pair
    before = (private.read_bytes(), public.read_bytes())
    with pytest.raises(InvalidSettingError, match="keys are not overwritten"):
        generate_key_pair(private)
    private.unlink()
    with pytest.raises(InvalidSettingError, match="keys are not overwritten"):
        generate_key_pair(private)
    assert not private.exists()
    assert public.read_bytes() == before[1]
    (tmp_path / "link.pem").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidSettingError, match="keys are not overwritten"):
        generate_key_pair(tmp_path / "link.pem")


def test_where_the_public_key_cannot_be_written_there_is_no_private_one(tmp_path, monkeypatch):
    def write_one(path, write, mode):
        if ".pub" in path.name:
            raise OSError(28, "No space left on device")
        path.write_bytes(b"")

    monkeypatch.setattr(signing, "write_file", write_one)
    with pytest.raises(InvalidSettingError, match="No space left on device"):
        generate_key_pair(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_does_not_exist_is_said(tmp_path):
    with pytest.raises(InvalidSettingError, match="No such file or directory"):
        generate_key_pair(tmp_path / "missing" / "key.pem")


def test_the_command_makes_a_pair_and_shows_nothing_of_the_private_key(tmp_path, capsys):
    assert main(["keygen", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert read_public_key(tmp_path / "signing_key.pub.pem").key_id in told
    assert not any(secret in told for secret in secret_of(tmp_path / "signing_key.pem"))
    assert main(["keygen", str(tmp_path)]) == 1
    assert "keys are not overwritten" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("written", "is_right"),
    [
        (lambda pem, raw: pem.decode(), True),
        (lambda pem, raw: "\n" + pem.decode().strip() + " ", True),
        (lambda pem, raw: base64.b64encode(pem).decode(), True),
        (lambda pem, raw: base64.encodebytes(pem).decode(), True),
        (lambda pem, raw: base64.b64encode(raw).decode(), True),
        (lambda pem, raw: base64.b64encode(raw[:-1]).decode(), False),
        (lambda pem, raw: base64.b64encode(raw).decode()[:-2], False),
        (lambda pem, raw: raw.hex() + "é", False),
        (lambda pem, raw: pem.decode()[:80], False),
    ],
)
def test_a_key_may_be_in_an_environment_variable(monkeypatch, written, is_right):
    key = ed25519.Ed25519PrivateKey.generate()
    value = written(pem_of(key), key.private_bytes_raw())
    monkeypatch.setenv(NAME, value)
    if is_right:
        signature = load_signer(SigningKey(variable=NAME)).sign(MESSAGE)
        key.public_key().verify(signature, MESSAGE)
    else:
        told = refusal(SigningKey(variable=NAME))
        assert f"the environment variable {NAME} does not contain a private key as PEM or base64" in told
        assert not any(line in told for line in value.split())


@pytest.mark.parametrize("value", [None, "", " \n"])
def test_a_variable_without_a_value_is_said(monkeypatch, value):
    monkeypatch.delenv(NAME, raising=False)
    if value is not None:
        monkeypatch.setenv(NAME, value)
    assert f"the environment variable {NAME} is not set or is empty" in refusal(SigningKey(variable=NAME))


def hide(path):
    path.unlink()


def replace_by(make):
    def damage(path):
        path.unlink()
        make(path)

    return damage


def fill(data, mode=0o600):
    def make(path):
        path.write_bytes(data)
        path.chmod(mode)

    return make


def move_behind_a_link(path):
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (hide, "does not exist"),
        (lambda path: path.chmod(0o640), r"is accessible to others (its mode is 0640; expected 0600"),
        (lambda path: path.chmod(0o604), "is accessible to others"),
        (lambda path: path.chmod(0o620), "is accessible to others"),
        (move_behind_a_link, "is not a regular file; links are not followed"),
        (replace_by(lambda path: path.mkdir(0o700)), "is not a regular file"),
        (replace_by(lambda path: os.mkfifo(path, 0o600)), "is not a regular file"),
        (replace_by(fill(b"")), "does not contain a private key"),
        (
            replace_by(fill(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")),
            "does not contain a private",
        ),
        (replace_by(fill(b"\xff" * 70_000)), "has more than 65,536 bytes"),
        (replace_by(fill(pem_of(ec.generate_private_key(ec.SECP256R1())))), "a key that is not Ed25519"),
        (replace_by(fill(pem_of(ed25519.Ed25519PrivateKey.generate(), b"password"))), "a key with a password"),
    ],
)
def test_a_key_file_that_cannot_be_used_is_refused_by_its_path(pair, damage, problem):
    private = pair[0]
    secrets = secret_of(private)
    damage(private)
    told = refusal(SigningKey(private))
    assert problem in told
    assert repr(str(private)) in told
    assert not any(secret in told for secret in secrets)


def test_a_key_of_another_user_is_refused(pair, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    assert "does not belong to the user" in refusal(SigningKey(pair[0]))


def test_stricter_rights_are_right(pair):
    pair[0].chmod(0o400)
    assert load_signer(SigningKey(pair[0])).key_id == pair[2]


def test_a_key_other_than_the_one_that_was_named_is_refused(pair, tmp_path):
    other, _, other_id = generate_key_pair(tmp_path / "other.pem")
    assert load_signer(SigningKey(other, key_id=other_id)).key_id == other_id
    other.rename(pair[0])
    assert f"contains the key {other_id}; expected {pair[2]}" in refusal(SigningKey(pair[0], key_id=pair[2]))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "This one has neither"),
        ({"path": "a.pem", "variable": "KEY"}, "This one has both"),
        ({"variable": "no name"}, "not the name of an environment variable"),
        ({"variable": 5}, "not the name of an environment variable"),
        ({"path": 5}, "is not a path"),
        ({"path": "a.pem", "key_id": "12"}, "not 64 hexadecimal digits"),
        ({"path": "a.pem", "key_id": 12}, "not 64 hexadecimal digits"),
    ],
)
def test_a_place_that_cannot_be_one_is_refused(settings, problem):
    with pytest.raises(InvalidSettingError, match=problem):
        SigningKey(**settings)


def test_a_key_that_was_written_in_place_of_a_name_is_not_shown():
    key = ed25519.Ed25519PrivateKey.generate()
    pem, raw = pem_of(key), key.private_bytes_raw()
    body = pem.decode().splitlines()[1]
    for written in (pem.decode(), body, base64.b64encode(pem).decode(), base64.b64encode(raw).decode(), raw.hex()):
        for setting in ("path", "variable"):
            with pytest.raises(InvalidSettingError, match="is not shown") as raised:
                SigningKey(**{setting: written})
            assert written[:12] not in str(raised.value)


def test_a_signer_shows_and_stores_nothing_of_its_key(pair):
    signer = load_signer(SigningKey(pair[0]))
    assert repr(signer) == f"Signer({pair[2]})"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(signer)


@pytest.mark.parametrize(
    ("write", "problem"),
    [
        (lambda path, pair: None, "No such file or directory"),
        (lambda path, pair: path.mkdir(), "not a regular file"),
        (lambda path, pair: os.mkfifo(path), "not a regular file"),
        (lambda path, pair: path.write_bytes(b"x"), "not a public key as PEM"),
        (lambda path, pair: path.write_bytes(b"x" * 70_000), "more than 65,536 bytes"),
        (lambda path, pair: path.write_bytes(pair[0].read_bytes()), "it is a private key"),
        (
            lambda path, pair: path.write_bytes(
                ec.generate_private_key(ec.SECP256R1())
                .public_key()
                .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            ),
            "not an Ed25519 key",
        ),
    ],
)
def test_what_is_no_public_key_is_refused(pair, tmp_path, write, problem):
    path = tmp_path / "trusted.pem"
    write(path, pair)
    with pytest.raises(InvalidSettingError, match=problem) as raised:
        read_public_key(path)
    assert not any(secret in str(raised.value) for secret in secret_of(pair[0]))


def test_without_the_extra_it_is_said_what_to_install(pair, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(signing, "find_spec", lambda _: None)
    for use in (
        lambda: load_signer(SigningKey(pair[0])),
        lambda: read_public_key(pair[1]),
        lambda: generate_key_pair(tmp_path / "new.pem"),
    ):
        with pytest.raises(InvalidSettingError, match=r"pip install 'privacy-assets\[signing\]'"):
            use()
    assert main(["keygen", str(tmp_path / "new.pem")]) == 1
    assert main(["verify", str(tmp_path), "--public-key", str(pair[1])]) == 1
    assert capsys.readouterr().out.count("pip install 'privacy-assets[signing]'") == 2
