"""The signature of a release: a file next to the manifest that signs the exact bytes of the manifest.

The manifest is signed without a canonical form, because two programs could disagree about that form. Exactly the bytes
that are read are checked.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privacy_assets.release.manifest import MANIFEST_FILE, SIGNATURE_FILE, is_sha256
from privacy_assets.release.received_files import parse_json_object, read_regular
from privacy_assets.release.signing import PublicKey, Signer
from privacy_assets.storage.durable_files import write_json

ALGORITHM = "Ed25519"
SIGNATURE_VERSION = 1
SIGNATURE_BYTES = 64
MAX_SIGNATURE_FILE_BYTES = 4_096
SIGNATURE_KEYS = frozenset({"signature_version", "algorithm", "key_id", "manifest_sha256", "signature"})
CONTEXT = b"privacy_assets release manifest, signature version 1\0"
"""Precedes the manifest in the signed message, so that no other signature is valid for a release."""


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
        "signature": base64.b64encode(signer.sign(CONTEXT + manifest)).decode(),
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
    encoded = read.get("signature")
    is_right = (
        set(read) == SIGNATURE_KEYS
        and type(read["signature_version"]) is int
        and read["signature_version"] == SIGNATURE_VERSION
        and read["algorithm"] == ALGORITHM
        and is_sha256(read["key_id"])
        and is_sha256(read["manifest_sha256"])
        and isinstance(encoded, str)
    )
    if not is_right:
        raise ValueError("not a signature file")
    try:
        signature = base64.b64decode(str(encoded), validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None
    # In base64 the same bytes have several texts; only the canonical one is accepted.
    if len(signature) != SIGNATURE_BYTES or base64.b64encode(signature).decode() != encoded:
        raise ValueError("not 64 bytes in base64")
    return str(read["key_id"]), str(read["manifest_sha256"]), signature


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _of_another_manifest(key_id: str) -> str:
    return (
        f"the signature made with the key {key_id} does not match this {MANIFEST_FILE}: the manifest was edited after "
        "signing, or the signature belongs to another release"
    )
