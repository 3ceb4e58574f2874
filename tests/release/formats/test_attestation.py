"""``attestation.json``: read and verified by other programs, and every way to change or exchange it."""

import base64
import hashlib
import json
import os
import re

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from google.protobuf.json_format import Parse, ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st
from in_toto_attestation.predicates.vsa.v1.vsa_pb2 import VerificationSummary
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as Message
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from privacy_assets.cli import main
from privacy_assets.release.formats.attestation import ATTESTATIONS, PAYLOAD_TYPE, signed_message
from privacy_assets.release.verification import verify_release
from tests.examples import examples
from tests.release.formats.released import WRITTEN, declared, manifest_of, release
from tests.release.test_files import RECORD, TABLE
from tests.release.test_signature import Key, rewrite

SUMMARY, FIGURES = ATTESTATIONS


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    place = tmp_path_factory.mktemp("keys")
    return Key(place, "own"), Key(place, "other")


@pytest.fixture
def signed(tmp_path, keys):
    return release(tmp_path / "releases", signer=keys[0].signer)


def statement_of(directory, name, key):
    """Return the statement of an envelope that a key signed, as other programs read it."""
    envelope = Envelope.from_dict(json.loads((directory / name).read_text()))
    public = load_pem_public_key(key.public.read_bytes())
    envelope.verify([SSlibKey.from_crypto(public, keyid=key.key_id)], 1)
    assert envelope.payload_type == "application/vnd.in-toto+json"
    Statement.copy_from_pb(Parse(envelope.payload, Message())).validate()
    return json.loads(envelope.payload)


def problems(directory, *trusted):
    return "; ".join(verify_release(directory, public_keys=[key.public for key in trusted], max_bytes=None).problems)


@pytest.mark.parametrize("name", ATTESTATIONS)
def test_other_programs_verify_every_file_of_a_signed_release(signed, keys, name):
    statement = statement_of(signed, name, keys[0])
    with pytest.raises(VerificationError):
        statement_of(signed, name, keys[1])
    found = {each["name"]: each["digest"] for each in statement["subject"]}
    files = {path.name: path.read_bytes() for path in signed.iterdir() if path.name not in ATTESTATIONS}
    del files["signature.json"]
    assert found == {name: {"sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    assert set(found) == {
        *("manifest.json", "report.html", "croissant.json", "dcat.jsonld", "synthetic.csv", "synthetic.parquet")
    }
    assert (signed / name).stat().st_mode & 0o777 == 0o644


def test_the_first_one_is_a_verification_summary_without_a_level(signed, keys):
    statement = statement_of(signed, SUMMARY, keys[0])
    manifest = manifest_of(signed)
    assert statement["predicateType"] == "https://slsa.dev/verification_summary/v1"
    predicate = statement["predicate"]
    assert predicate["verifiedLevels"] == []
    # The schema of in-toto-attestation has a text where the specification has an array (its issue 425).
    summary = ParseDict(
        {name: own for name, own in predicate.items() if name != "verifiedLevels"}, VerificationSummary()
    )
    assert summary.verification_result == "PASSED"
    assert summary.verifier.id == f"pkg:generic/privacy-assets@{manifest['versions']['privacy-assets']}"
    assert manifest["fingerprint"] in summary.resource_uri
    assert summary.time_verified.ToJsonString() == manifest["created_at"].replace("+00:00", "Z")
    policy = json.dumps(manifest["policy"], sort_keys=True, separators=(",", ":")).encode()
    assert predicate["policy"]["digest"] == {"sha256": hashlib.sha256(policy).hexdigest()}
    assert predicate["policy"]["uri"] == "urn:privacy-assets:policy:own"


def test_the_second_one_has_the_figures_and_verdicts_of_the_manifest_and_no_others(signed, keys):
    statement = statement_of(signed, FIGURES, keys[0])
    manifest = manifest_of(signed)
    assert statement["predicateType"] == "urn:privacy-assets:release-figures:v1"
    assert statement["predicate"] == {"figures": manifest["figures"], "verdicts": manifest["verdicts"]}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_whatever_a_person_wrote_is_attested(tmp_path, keys, text):
    directory = release(tmp_path, declared(text), signer=keys[0].signer)
    assert manifest_of(directory)["declaration"]["purpose"] == text
    for name in ATTESTATIONS:
        statement_of(directory, name, keys[0])
    assert problems(directory, keys[0]) == ""


@given(st.binary(max_size=200))
@settings(max_examples=examples(50))
def test_what_is_signed_is_the_encoding_of_the_envelope(payload):
    assert signed_message(payload) == Envelope(payload, PAYLOAD_TYPE, {}).pae()


def test_a_release_without_a_key_has_none_and_an_added_one_is_found(tmp_path, keys, signed):
    plain = release(tmp_path / "plain")
    assert not any((plain / name).exists() for name in ATTESTATIONS)
    (plain / SUMMARY).write_bytes((signed / SUMMARY).read_bytes())
    assert problems(plain) == "1 files are not listed in the manifest"


def edited(change):
    def edit(path, **_):
        envelope = json.loads(path.read_text())
        change(envelope)
        path.write_text(json.dumps(envelope))

    return edit


def of_another_release(path, place, keys):
    other = release(place / "another", table=TABLE.assign(age=[1, 2]), signer=keys[0].signer)
    path.write_bytes((other / path.name).read_bytes())


def signed_by_another_key(path, keys, **_):
    edited(lambda envelope: envelope.update(signatures=[signature_of(envelope, keys[1], keys[1].key_id)]))(path)


def signed_by_another_key_that_names_this_one(path, keys, **_):
    edited(lambda envelope: envelope.update(signatures=[signature_of(envelope, keys[1], keys[0].key_id)]))(path)


def with_another_statement_that_is_signed_again(path, keys, **_):
    def change(envelope):
        statement = json.loads(base64.b64decode(envelope["payload"]))
        statement["subject"] = statement["subject"][1:]
        envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
        envelope["signatures"] = [signature_of(envelope, keys[0], keys[0].key_id)]

    edited(change)(path)


def signature_of(envelope, key, named):
    message = Envelope(base64.b64decode(envelope["payload"]), envelope["payloadType"], {}).pae()
    return {"keyid": named, "sig": base64.b64encode(key.signer.sign(message)).decode()}


def of_a_huge_size(path, **_):
    os.truncate(path, 2**40)


def a_link(path, place, **_):
    path.rename(place / "outside.json")
    path.symlink_to(place / "outside.json")


def a_pipe(path, **_):
    path.unlink()
    os.mkfifo(path)


def with_a_repeated_key(path, **_):
    path.write_text(path.read_text().replace("{", '{"payloadType": "text/plain",', 1))


def after_a_byte_order_mark(path, **_):
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


NOT_THIS, DAMAGED = "is not about this manifest, or was edited", "is damaged: expected a signed envelope"


@pytest.mark.parametrize("name", ATTESTATIONS)
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path, **_: path.unlink(), "is missing: expected a signed envelope"),
        (of_another_release, NOT_THIS),
        (with_another_statement_that_is_signed_again, NOT_THIS),
        (edited(lambda envelope: envelope.update(payloadType="application/json")), NOT_THIS),
        (edited(lambda envelope: envelope.update(more=1)), NOT_THIS),
        (edited(lambda envelope: envelope.update(signatures=[])), NOT_THIS),
        (edited(lambda envelope: envelope["signatures"].append(envelope["signatures"][0])), NOT_THIS),
        (edited(lambda envelope: envelope.update(signatures={})), NOT_THIS),
        (edited(lambda envelope: envelope["signatures"][0].update(more=1)), NOT_THIS),
        (edited(lambda envelope: envelope["signatures"][0].update(sig="A" * 40)), NOT_THIS),
        (edited(lambda envelope: envelope["signatures"][0].update(sig=7)), NOT_THIS),
        (signed_by_another_key, "names another key than the manifest"),
        (of_a_huge_size, DAMAGED),
        (a_link, DAMAGED),
        (a_pipe, DAMAGED),
        (with_a_repeated_key, DAMAGED),
        (after_a_byte_order_mark, DAMAGED),
        (lambda path, **_: path.write_text("[" * 100_000), DAMAGED),
        (lambda path, **_: path.write_text("[]"), DAMAGED),
        (lambda path, **_: path.write_bytes(b"\xff"), DAMAGED),
    ],
)
def test_a_changed_attestation_is_found_also_without_a_key(signed, keys, tmp_path, name, damage, said):
    damage(signed / name, place=tmp_path, keys=keys)
    assert problems(signed) == problems(signed, keys[0]) == f"{name} {said}"


def test_a_signature_of_another_key_is_found_with_the_public_key(signed, keys):
    signed_by_another_key_that_names_this_one(signed / SUMMARY, keys=keys)
    assert problems(signed, keys[0]) == f"{SUMMARY} is not signed with the key that it names"
    assert problems(signed) == ""  # As for signature.json: without a public key, no signature is checked.


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.update(versions={}),
        lambda manifest: manifest.update(created_at="0001-01-01T00:00:00+14:00"),
    ],
)
def test_a_manifest_that_nothing_can_be_made_of_is_not_verified(signed, change, capsys):
    rewrite(signed, change)
    assert main(["verify", str(signed)]) == 1
    assert re.search("Error while it was checked|is not what the manifest says", capsys.readouterr().out)


def test_a_release_of_before_attestations_still_verifies(signed, keys):
    for name in (*ATTESTATIONS, "croissant.json", "dcat.jsonld"):
        (signed / name).unlink()

    def change(manifest):
        for name in ("croissant.json", "dcat.jsonld"):
            del manifest["files"][name]

    rewrite(signed, change)
    assert problems(signed) == ""


@pytest.mark.parametrize("card", ["croissant.json", "dcat.jsonld"])
def test_a_card_is_covered_by_the_manifest(tmp_path, card):
    plain = release(tmp_path, RECORD)
    text = (plain / card).read_text()
    (plain / card).write_text(text.replace("2 synthetic", "3 synthetic"))
    assert problems(plain) == f"the file {card!r} was changed"
    (plain / card).unlink()
    assert problems(plain) == f"the file {card!r} is missing"
    rewrite(plain, lambda manifest: manifest["files"].pop(card))
    assert problems(plain) == "the manifest does not list the files of its formats and its report"
