"""What a recipient without this package finds out from the public files alone.

Run as ``python recipient.py DIRECTORY KEY APPROVERS WITHDRAWN``; prints JSON. It knows the formats from the
documentation, and imports nothing of the package, which is not there.
"""

import base64
import hashlib
import json
import sys
from pathlib import Path

sys.modules["privacy_assets"] = None

import yaml  # noqa: E402
from cryptography.exceptions import InvalidSignature  # noqa: E402
from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: E402
from google.protobuf.json_format import Parse  # noqa: E402
from in_toto_attestation.v1.statement import Statement  # noqa: E402
from in_toto_attestation.v1.statement_pb2 import Statement as Message  # noqa: E402
from securesystemslib.dsse import Envelope  # noqa: E402
from securesystemslib.exceptions import VerificationError  # noqa: E402
from securesystemslib.signer import SSlibKey  # noqa: E402

APPROVAL = b"privacy_assets approval, signature version 1\0"
WITHDRAWAL = b"privacy_assets withdrawal, signature version 1\0"


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def identifier(key):
    return sha256(key.public_bytes_raw())


def is_signed(key, signature, message):
    try:
        key.verify(base64.b64decode(signature), message)
    except InvalidSignature:
        return False
    return True


def attested(directory, key, name):
    """Return whether the key attests that the policy admitted every file in the directory."""
    envelope = Envelope.from_dict(json.loads((directory / name).read_text()))
    try:
        envelope.verify([SSlibKey.from_crypto(key, keyid=identifier(key))], 1)
    except VerificationError:
        return False
    Statement.copy_from_pb(Parse(envelope.payload, Message())).validate()
    subject = {each["name"]: each["digest"]["sha256"] for each in json.loads(envelope.payload)["subject"]}
    signatures = {"signature.json", "attestation.json", "attestation-figures.json"}
    files = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    return subject == {name: sha256(path.read_bytes()) for name, path in files.items() if name not in signatures}


def approved(manifest, approvers):
    """Return who of the approvers approved this content, policy and declaration."""
    data = {
        name: entry["sha256"]
        for name, entry in manifest["files"].items()
        if name.rpartition(".")[2] in ("parquet", "csv")
    }
    parts = {"files": data, "policy": manifest["policy"], "declaration": manifest.get("declaration", {})}
    expected = {name: sha256(canonical(value)) for name, value in parts.items()}
    expected |= {name: manifest[name] for name in ("release", "stage", "partition", "fingerprint")}
    found = []
    for approval in manifest.get("approvals", ()):
        body = canonical({name: value for name, value in approval.items() if name != "signature"})
        is_of_this = all(approval["subject"][name] == value for name, value in expected.items())
        for each in approvers:
            key = load_pem_public_key(each["public_key"].encode())
            is_own = (identifier(key), each["name"], each["role"]) == tuple(
                approval[x] for x in ("key_id", "name", "role")
            )
            if is_of_this and is_own and is_signed(key, approval["signature"], APPROVAL + body):
                found.append(each["name"])
    return found


def withdrawn(manifest, listed, key):
    """Return the reason for which the release was withdrawn; None if it is not in the list, which must be whole."""
    previous, reason = "", None
    for line in listed:
        entry = json.loads(line)
        body = canonical({name: value for name, value in entry.items() if name not in ("digest", "signature")})
        if entry["previous"] != previous or entry["digest"] != sha256(body):
            return "the list was edited"
        if not is_signed(key, entry["signature"], WITHDRAWAL + body):
            return "an entry is not signed"
        previous = entry["digest"]
        reason = entry["reason"] if entry["manifest"] == digest_of(manifest) else reason
    return reason


def digest_of(manifest):
    return sha256(canonical({name: value for name, value in manifest.items() if name != "digest"}))


def main(directory, key, approvers, listed):
    key = load_pem_public_key(Path(key).read_bytes())
    manifest = json.loads((Path(directory) / "manifest.json").read_text())
    return {
        "attested": attested(Path(directory), key, "attestation.json"),
        "figures": attested(Path(directory), key, "attestation-figures.json"),
        "approved": approved(manifest, yaml.safe_load(Path(approvers).read_text())),
        "withdrawn": withdrawn(manifest, Path(listed).read_text().splitlines(), key),
    }


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
