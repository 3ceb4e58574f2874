"""Keys that sign releases (Ed25519), and signatures: a file next to the manifest that signs its exact bytes.

The manifest is signed without a canonical form, because two programs could disagree about that form. A private key is
in a file that only its owner can read, or in an environment variable.
No message of this module contains a byte of a key. The package cryptography (extra ``signing``) is imported when a key
is used.
"""

import base64
import binascii
import hashlib
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacy_assets.errors import InvalidSettingError
from privacy_assets.release.manifest import MANIFEST_FILE, SIGNATURE_FILE, is_sha256
from privacy_assets.release.received_files import (
    NotRegularError,
    TooLargeError,
    open_regular,
    parse_json_object,
    read_regular,
)
from privacy_assets.setting_checks import local_path
from privacy_assets.storage.durable_files import PRIVATE_FILE_MODE, write_file, write_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MAX_KEY_BYTES = 65_536
RAW_KEY_BYTES = 32
PUBLIC_FILE_MODE = 0o644
KEY_NAME = "signing_key.pem"
VARIABLE_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,59}"
"""Shorter than a key in base64, so that a key given in place of a name is rejected."""
LOOKS_LIKE_A_KEY = r"(?s).*(PRIVATE KEY|\n|\0).*|[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{100,}={0,2}"
WITHOUT_EXTRA = (
    "Signatures need the package cryptography, which is not installed. Install it: pip install "
    "'privacy-assets[signing]'. Nothing was signed or checked."
)

ALGORITHM = "Ed25519"
SIGNATURE_VERSION = 1
SIGNATURE_BYTES = 64
MAX_SIGNATURE_FILE_BYTES = 4_096
SIGNATURE_KEYS = frozenset({"signature_version", "algorithm", "key_id", "manifest_sha256", "signature"})
CONTEXT = b"privacy_assets release manifest, signature version 1\0"
"""Precedes the manifest in the signed message, so that no other signature is valid for a release."""


@dataclass(frozen=True)
class SigningKey:
    """The location of the private key that signs a release; the key is read when the release is made.

    Parameters
    ----------
    path : str or Path, optional
        PEM file with the key: a regular file (not a link), owned by the user that releases, without permissions for
        others (0600).
    variable : str, optional
        Name of an environment variable with the key: the PEM text, that text in base64, or the 32 bytes in base64.
    key_id : str, optional
        Identifier printed by `privacy_assets keygen`; any other key is refused.

    Raises
    ------
    InvalidSettingError
        If neither or both places are given, or one is invalid. The message does not show the value, which might be the
        key itself.
    """

    path: str | Path | None = None
    variable: str | None = None
    key_id: str | None = None

    def __post_init__(self) -> None:
        if (self.path is None) == (self.variable is None):
            raise InvalidSettingError(
                "A signing key needs one location: the path of its file, or the name of an environment variable "
                "(variable). This one has " + ("neither." if self.path is None else "both.")
            )
        if self.variable is not None and not (
            isinstance(self.variable, str) and re.fullmatch(VARIABLE_NAME, self.variable)
        ):
            raise InvalidSettingError(
                "The variable of the signing key is not the name of an environment variable (letters, digits and "
                "underscores, at most 60). The given value is not shown, in case it is the key itself."
            )
        if self.path is not None:
            if not isinstance(self.path, str | Path) or re.fullmatch(LOOKS_LIKE_A_KEY, str(self.path)):
                raise InvalidSettingError(
                    "The path of the signing key is not a path. The given value is not shown, in case it is the key "
                    "itself."
                )
            object.__setattr__(self, "path", local_path(self.path, "the path of the signing key").absolute())
        if self.key_id is not None and not is_sha256(self.key_id):
            raise InvalidSettingError(
                "The key_id of the signing key is not 64 hexadecimal digits in lower case, as `privacy_assets keygen` "
                "prints them."
            )

    @property
    def place(self) -> str:
        """The location of the key, in words."""
        if self.path is None:
            return f"the environment variable {self.variable}"
        return f"the key file {str(self.path)!r}"


@dataclass(frozen=True)
class PublicKey:
    """A key for checking signatures: SHA-256 of its 32 bytes as hexadecimal digits, and the name of its file."""

    key_id: str
    name: str
    _key: "Ed25519PublicKey" = field(repr=False, compare=False)

    @classmethod
    def of(cls, key: "Ed25519PublicKey", name: str) -> "PublicKey":
        """Wrap a key."""
        return cls(hashlib.sha256(key.public_bytes_raw()).hexdigest(), name, key)

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Return whether the private key of this public key made a signature of a message."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def made(self, signature: object, message: bytes) -> bool:
        """Return whether a text is the base64 of a signature of a message by this key."""
        try:
            return isinstance(signature, str) and self.verifies(base64.b64decode(signature, validate=True), message)
        except binascii.Error:
            return False


class Signer:
    """A private key in memory. Its text does not show the key, and it cannot be pickled."""

    def __init__(self, key: "Ed25519PrivateKey") -> None:
        self._key = key
        self.public_key = PublicKey.of(key.public_key(), "the signing key")

    def __repr__(self) -> str:
        return f"Signer({self.key_id})"

    def __reduce__(self) -> Any:
        raise TypeError("A signer cannot be pickled, because that would write the private key.")

    @property
    def key_id(self) -> str:
        """Identifier of the key."""
        return self.public_key.key_id

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of a signature."""
        return self._key.sign(message)

    def signature_of(self, message: bytes) -> str:
        """Return a signature in base64."""
        return base64.b64encode(self.sign(message)).decode()


def require_cryptography() -> None:
    """Raise InvalidSettingError with installation advice if the package cryptography is missing."""
    if find_spec("cryptography") is None:
        raise InvalidSettingError(WITHOUT_EXTRA)


def load_signer(settings: SigningKey) -> Signer:
    """Read the private key.

    Raises InvalidSettingError if it is missing, unreadable, readable by others, not an Ed25519 key, or not the expected
    one. The message names the place and shows no part of the key.
    """
    require_cryptography()
    data, problem = _read_variable(settings.variable) if settings.path is None else _read_private_file(settings.path)
    key = None
    if not problem:
        key, problem = _private_key(data)
    if key is None:
        raise InvalidSettingError(f"The signing key cannot be used: {settings.place} {problem}.")
    signer = Signer(key)
    if settings.key_id not in (None, signer.key_id):
        raise InvalidSettingError(
            f"The signing key cannot be used: {settings.place} contains the key {signer.key_id}; expected "
            f"{settings.key_id}."
        )
    return signer


def read_public_key(path: str | Path) -> PublicKey:
    """Read a public key from a PEM file; raise InvalidSettingError if it is not an Ed25519 public key."""
    path, reason = Path(path), ""
    try:
        # The file of a public key may be a link, because its owner does not matter.
        return parse_public_key(read_regular(path.resolve(), MAX_KEY_BYTES), path.name, f" in {str(path)!r}")
    except NotRegularError:
        reason = "it is not a regular file"
    except TooLargeError:
        reason = f"it has more than {MAX_KEY_BYTES:,} bytes"
    except OSError as error:
        reason = os.strerror(error.errno) if isinstance(error.errno, int) else "it cannot be read"
    raise InvalidSettingError(f"The public key in {str(path)!r} cannot be used: {reason}. Nothing was checked.")


def parse_public_key(data: bytes, name: str, place: str = "") -> PublicKey:
    """Read a public key from the text of a PEM file; raise InvalidSettingError if it is not an Ed25519 public key."""
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key, reason = None, "it is not a public key as PEM"
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        if b"PRIVATE KEY" in data:
            reason = "it is a private key, which only the signer should have; expected the public key"
    if not isinstance(key, Ed25519PublicKey):
        reason = "its key is not an Ed25519 key" if key is not None else reason
        raise InvalidSettingError(f"The public key{place} cannot be used: {reason}. Nothing was checked.")
    return PublicKey.of(key, name)


def generate_key_pair(path: str | Path) -> tuple[Path, Path, str]:
    """Make a new pair of keys; return their files and the identifier.

    The private key (0600) is in the given file, or in ``signing_key.pem`` of the given directory; the public key (0644)
    has ``.pub`` before the suffix. Raises InvalidSettingError if a file exists or cannot be written: no key is
    overwritten.
    """
    require_cryptography()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Path(path) / KEY_NAME if Path(path).is_dir() else Path(path)
    public = private.with_name(f"{private.stem}.pub{private.suffix}")
    there = [str(each) for each in (private, public) if os.path.lexists(each)]
    if there:
        raise InvalidSettingError(f"{there} already exist, and keys are not overwritten. Name another file.")
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public_pem = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    written: list[Path] = []
    problem = ""
    try:
        for file, data, mode in ((private, pem, PRIVATE_FILE_MODE), (public, public_pem, PUBLIC_FILE_MODE)):
            write_file(file, lambda opened, data=data: opened.write(data), mode)  # type: ignore[misc]
            written.append(file)
    except OSError as error:
        problem = os.strerror(error.errno) if isinstance(error.errno, int) else "a file system error"
    if problem:
        for file in written:
            file.unlink()
        raise InvalidSettingError(
            f"No key was made: {str(private)!r} and {str(public)!r} cannot be written ({problem})."
        )
    return private, public, PublicKey.of(key.public_key(), public.name).key_id


def _read_variable(name: str | None) -> tuple[bytes, str]:
    value = os.environ.get(str(name), "")
    return value.encode(errors="replace"), "" if value.strip() else "is not set or is empty"


def _read_private_file(path: str | Path) -> tuple[bytes, str]:
    try:
        with open_regular(Path(path)) as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid():
                return b"", "does not belong to the user who releases"
            if stat.S_IMODE(status.st_mode) & 0o077:
                mode = stat.S_IMODE(status.st_mode)
                return b"", f"is accessible to others (its mode is {mode:04o}; expected 0600: chmod 600)"
            data = file.read(MAX_KEY_BYTES + 1)
    except NotRegularError:
        return b"", "is not a regular file; links are not followed"
    except FileNotFoundError:
        return b"", "does not exist"
    except OSError as error:
        return b"", f"cannot be read ({type(error).__name__})"
    return data, "" if len(data) <= MAX_KEY_BYTES else f"has more than {MAX_KEY_BYTES:,} bytes"


def _private_key(data: bytes) -> "tuple[Ed25519PrivateKey | None, str]":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = data.strip()
    if not data.startswith(b"-----BEGIN"):
        try:
            data = base64.b64decode(b"".join(data.split()), validate=True)
        except binascii.Error:
            return None, "does not contain a private key as PEM or base64"
        if len(data) == RAW_KEY_BYTES:
            return Ed25519PrivateKey.from_private_bytes(data), ""
    try:
        key = load_pem_private_key(data, password=None)
    except TypeError:
        return None, "contains a key with a password; expected one without a password, protected by its location"
    except (ValueError, UnsupportedAlgorithm):
        return None, "does not contain a private key as PEM or base64"
    return (key, "") if isinstance(key, Ed25519PrivateKey) else (None, "contains a key that is not Ed25519")


@dataclass(frozen=True)
class SignatureFound:
    """The result of checking the signature of a release.

    ``key_id`` is the key that it names, ``trusted_key`` the name of the trusted key that made it; None if it is not
    readable, or not checked. ``problems`` say why it is not a signature of this manifest by a trusted key.
    """

    key_id: str | None = None
    trusted_key: str | None = None
    problems: tuple[str, ...] = ()


def write_signature(path: Path, manifest: bytes, signer: Signer, mode: int) -> None:
    """Sign the bytes of a manifest, and write the signature to a new file."""
    signature = {
        "signature_version": SIGNATURE_VERSION,
        "algorithm": ALGORITHM,
        "key_id": signer.key_id,
        "manifest_sha256": hashlib.sha256(manifest).hexdigest(),
        "signature": signer.signature_of(CONTEXT + manifest),
    }
    write_json(path, signature, mode)


def find_signature(directory: Path, manifest: bytes, trusted: Sequence[PublicKey]) -> SignatureFound:
    """Find the signature of a manifest. Without trusted keys it is only checked that it is about this manifest."""
    found, problem = None, ""
    try:
        data = read_regular(directory / SIGNATURE_FILE, MAX_SIGNATURE_FILE_BYTES)
        found = _parsed(data)
    except FileNotFoundError:
        if not _is_there(directory / SIGNATURE_FILE):
            return SignatureFound(problems=("it is not signed",) if trusted else ())
        problem = f"{SIGNATURE_FILE} is not a regular file"
    except (OSError, ValueError, RecursionError):
        problem = f"{SIGNATURE_FILE} is damaged: it cannot be a signature"
    if found is None:
        return SignatureFound(problems=(problem,))
    key_id, digest, signature = found
    if digest != hashlib.sha256(manifest).hexdigest():
        return SignatureFound(key_id, None, (_of_another_manifest(key_id),))
    if not trusted:
        return SignatureFound(key_id)
    signers = [key for key in trusted if key.key_id == key_id]
    if not signers:
        names = ", ".join(key.key_id for key in trusted)
        return SignatureFound(key_id, None, (f"it is signed with the key {key_id}; expected one of {names}",))
    if not signers[0].verifies(signature, CONTEXT + manifest):
        return SignatureFound(key_id, None, (_of_another_manifest(key_id),))
    return SignatureFound(key_id, signers[0].name)


def agreement_problems(manifest: Mapping[str, Any], found: SignatureFound) -> list[str]:
    """Compare a manifest's key, and the signature that its policy may require, with its signature."""
    signed_by = manifest.get("signed_by")
    problems = []
    if signed_by is None and manifest["policy"]["required"].get("signature", False):
        problems.append("its policy requires a signature, and the manifest names no key")
    if found.problems:
        return problems
    if signed_by is not None and found.key_id is None:
        problems.append(f"the manifest names the key {signed_by}, but there is no {SIGNATURE_FILE}")
    elif signed_by != found.key_id:
        named = "no key" if signed_by is None else f"the key {signed_by}"
        problems.append(f"the signature was made with the key {found.key_id}, but the manifest names {named}")
    return problems


def _parsed(data: bytes) -> tuple[str, str, bytes]:
    """Return key, digest of the manifest and signature; raise ValueError if the file is not a signature."""
    read = parse_json_object(data)
    is_right = (
        set(read) == SIGNATURE_KEYS
        and type(read["signature_version"]) is int
        and read["signature_version"] == SIGNATURE_VERSION
        and read["algorithm"] == ALGORITHM
        and is_sha256(read["key_id"])
        and is_sha256(read["manifest_sha256"])
    )
    signature = signature_bytes(read["signature"]) if is_right else None
    if signature is None:
        raise ValueError("not a signature file")
    return str(read["key_id"]), str(read["manifest_sha256"]), signature


def signature_bytes(encoded: object) -> bytes | None:
    """Return the bytes of a signature in base64; None for anything else."""
    try:
        signature = base64.b64decode(encoded, validate=True) if isinstance(encoded, str) else b""
    except ValueError:
        return None
    # In base64 the same bytes have several texts; only the canonical one is accepted.
    is_right = len(signature) == SIGNATURE_BYTES and base64.b64encode(signature).decode() == encoded
    return signature if is_right else None


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _of_another_manifest(key_id: str) -> str:
    return (
        f"the signature made with the key {key_id} does not match this {MANIFEST_FILE}: the manifest was edited after "
        "signing, or the signature belongs to another release"
    )
