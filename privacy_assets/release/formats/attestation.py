"""Attestations of a release: signed statements of in-toto, each in an envelope, about every file by its SHA-256.

They are made from the manifest and its bytes, and signed by the key that signs it. Without a key there are none: an
envelope without a signature says nothing.
"""

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from privacy_assets.release.formats.described import package_uri, release_uri
from privacy_assets.release.manifest import CARD_FILES, MANIFEST_FILE
from privacy_assets.release.received_files import parse_json_object, read_regular
from privacy_assets.release.signing import PublicKey, Signer, signature_bytes
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.storage.durable_files import write_json

STATEMENT: Final = "https://in-toto.io/Statement/v1"
SUMMARY: Final = "https://slsa.dev/verification_summary/v1"
FIGURES: Final = "urn:privacy-assets:release-figures:v1"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
ATTESTATIONS: Final = ("attestation.json", "attestation-figures.json")
MOST_BYTES_AROUND: Final = 4_096
"""Bytes of an envelope in addition to its payload."""


def statements_of(manifest: Mapping[str, Any], data: bytes) -> dict[str, bytes]:
    """Return the payload of each attestation by its file, from a manifest and its bytes.

    Both are about the manifest and every file that it lists. The first says that the policy admitted them, the second
    has the figures and verdicts of the manifest. Another manifest gives other payloads, and the same the same.

    References
    ----------
    .. [1] in-toto Attestation Framework 1.0, "Statement" and "ResourceDescriptor".
    .. [2] SLSA 1.0, "Verification Summary Attestation"; ``verifiedLevels`` is empty, because no SLSA level was asked.
    """
    policy, package, waivers = manifest["policy"], package_uri(manifest), manifest["waivers"]
    # Not the policy alone, where people waived some of its limits.
    asserted = {"policy": policy, "waivers": waivers} if waivers else policy
    at = datetime.fromisoformat(manifest["created_at"]).astimezone(UTC)
    recorded = {name: entry["sha256"] for name, entry in manifest["files"].items()}
    subject = [
        {"name": name, "digest": {"sha256": sha256}}
        for name, sha256 in sorted((recorded | {MANIFEST_FILE: _sha256(data)}).items())
    ]
    summary = {
        "verifier": {"id": package},
        "timeVerified": at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "resourceUri": release_uri(manifest),
        "policy": {
            "uri": f"urn:privacy-assets:policy:{policy['use_case'] or 'own'}{':with-waivers' if waivers else ''}",
            "digest": {"sha256": _sha256(canonical_json(asserted).encode())},
        },
        "verificationResult": "PASSED",
        "verifiedLevels": [],
    }
    figures = {name: manifest[name] for name in ("figures", "verdicts")}
    predicates = zip(ATTESTATIONS, ((SUMMARY, summary), (FIGURES, figures)), strict=True)
    return {
        file: canonical_json(
            {"_type": STATEMENT, "subject": subject, "predicateType": kind, "predicate": predicate}
        ).encode()
        for file, (kind, predicate) in predicates
    }


def is_attested(manifest: Mapping[str, Any]) -> bool:
    """Return whether a release has attestations: if it is signed, and not older than they are."""
    return manifest["signed_by"] is not None and set(CARD_FILES) <= set(manifest["files"])


def write_attestations(directory: Path, manifest: Mapping[str, Any], data: bytes, signer: Signer, mode: int) -> None:
    """Write the envelopes of a release next to its manifest, or to another directory."""
    for file, payload in statements_of(manifest, data).items():
        signature = {"keyid": signer.key_id, "sig": signer.signature_of(signed_message(payload))}
        write_json(directory / file, _envelope(payload) | {"signatures": [signature]}, mode)


def signed_message(payload: bytes) -> bytes:
    """Return what the signature of an envelope covers.

    References
    ----------
    .. [1] DSSE v1.0.0, protocol, "Signature Definition" (pre-authentication encoding).
    """
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def attestation_problems(
    directory: Path, manifest: Mapping[str, Any], data: bytes, trusted: Sequence[PublicKey]
) -> list[str]:
    """Make the attestations of a signed release again and compare; who signed is known only with trusted keys."""
    if not is_attested(manifest):
        return []
    try:
        expected = statements_of(manifest, data)
    except Exception as error:  # noqa: BLE001 - a manifest that breaks the check is not verified
        return [f"{MANIFEST_FILE} is damaged or incomplete: {type(error).__name__} while it was checked"]
    problems = []
    key = next((key for key in trusted if key.key_id == manifest["signed_by"]), None)
    for file, payload in expected.items():
        try:
            found = parse_json_object(read_regular(directory / file, 2 * len(payload) + MOST_BYTES_AROUND))
        except (OSError, ValueError, RecursionError):
            is_there = os.path.lexists(directory / file)
            problems.append(f"{file} is {'damaged' if is_there else 'missing'}: expected a signed envelope")
            continue
        signatures = found.pop("signatures", None)
        signature: Any = signatures[0] if isinstance(signatures, list) and len(signatures) == 1 else None
        is_signature = isinstance(signature, dict) and set(signature) == {"keyid", "sig"}
        if not is_signature or signature_bytes(signature["sig"]) is None or found != _envelope(payload):
            problems.append(f"{file} is not about this manifest, or was edited")
        elif signature["keyid"] != manifest["signed_by"]:
            problems.append(f"{file} names another key than the manifest")
        elif key is not None and not key.made(signature["sig"], signed_message(payload)):
            problems.append(f"{file} is not signed with the key that it names")
    return problems


def _envelope(payload: bytes) -> dict[str, Any]:
    return {"payloadType": PAYLOAD_TYPE, "payload": base64.b64encode(payload).decode()}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
