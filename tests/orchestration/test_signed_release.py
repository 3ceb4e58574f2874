"""Releases that a key signs, or that are refused because none can."""

import json
from pathlib import Path

import dagster as dg
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.release import signing
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.signing import SigningKey, generate_key_pair
from privacy_assets.release.verification import verify_release
from tests.orchestration.project import NAME, refusal

pytest.importorskip("cryptography", reason="needs the extra `signing`")
VARIABLE = "PRIVACY_ASSETS_TEST_SIGNING_KEY"
POLICY = Policy((Limit("smallest_class", 5),)).with_required(signature=True)


@pytest.fixture
def pair(project):
    return generate_key_pair(project.root / "key.pem")


def definitions(project, key, policy=POLICY):
    return project.definitions(policy=policy, synthetic=None, anonymized=AnonymizationSettings(k=5), signing=key)


def released(project):
    return project.releases(side="anonymized")


def condition(directory):
    manifest = json.loads((directory / "manifest.json").read_text())
    return next((each for each in manifest["verdicts"] if each["name"] == "the_release_is_signed"), None)


def test_a_release_is_signed_and_says_so_everywhere(project, pair):
    private, public, key_id = pair
    assert project.run(definitions(project, SigningKey(private, key_id=key_id))).success
    (directory,) = released(project)
    found = verify_release(directory, public_keys=[public], max_bytes=None)
    assert (found.verified, found.signing_key_id, found.trusted_key) == (True, key_id, "key.pub.pem")
    assert condition(directory)["reason"] == f"the release is signed with the key {key_id}"
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["signed_by"] == key_id
    assert manifest["policy"]["required"]["signature"] is True
    (directory / "signature.json").unlink()
    assert "there is no signature.json" in "; ".join(verify_release(directory, max_bytes=None).problems)


def test_nothing_of_the_private_key_is_anywhere_but_in_its_file(project, pair, monkeypatch, capfd):
    private, _, _ = pair
    secret = private.read_text().splitlines()[1]
    monkeypatch.setenv(VARIABLE, private.read_text())
    in_file, in_variable = (definitions(project, key) for key in (SigningKey(private), SigningKey(variable=VARIABLE)))
    assert project.run(in_file).success
    assert project.run(in_variable, "anonymized_release").success
    private.chmod(0o644)
    assert "is accessible to others" in refusal(project.run(in_file, "anonymized_release"), "anonymized")
    monkeypatch.setenv(VARIABLE, secret + "broken")
    assert "does not contain a private key" in refusal(project.run(in_variable, "anonymized_release"), "anonymized")
    captured = capfd.readouterr()
    assert secret not in captured.out + captured.err
    files = [path for path in project.root.rglob("*") if path.is_file() and path != private]
    assert len(files) > 20
    assert [path for path in files if secret.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("is_demanded", [True, False])
def test_a_lost_key_refuses_the_release_and_leaves_the_earlier_one(project, pair, is_demanded):
    policy = POLICY.with_required(signature=is_demanded)
    defs = definitions(project, SigningKey(pair[0]), policy)
    assert project.run(defs).success
    before = {path: path.read_bytes() for path in project.everything_released()}
    hidden = pair[0].rename(pair[0].with_name("lost.pem"))
    told = refusal(project.run(defs, "anonymized_release"), "anonymized")
    assert f"the key file '{pair[0]}' does not exist" in told
    assert "Nothing was written" in told
    assert {path: path.read_bytes() for path in project.everything_released()} == before
    hidden.rename(pair[0])
    assert project.run(defs, "anonymized_release").success
    assert len(released(project)) == 2
    manifest = json.loads((released(project)[-1] / "manifest.json").read_text())
    assert manifest["refusals_before"] == 1


def test_another_key_in_the_place_of_the_named_one_is_refused(project, pair):
    private, _, key_id = pair
    defs = definitions(project, SigningKey(private, key_id=key_id))
    for path in pair[:2]:
        path.unlink()
    other_id = generate_key_pair(private)[2]
    assert f"contains the key {other_id}; expected {key_id}" in refusal(project.run(defs), "anonymized")
    assert released(project) == []


def test_after_a_rotation_both_releases_verify_with_the_keys_that_signed_them(project, pair):
    old, new = pair, generate_key_pair(project.root / "new.pem")
    assert project.run(definitions(project, SigningKey(old[0]))).success
    assert project.run(definitions(project, SigningKey(new[0])), "anonymized_release").success
    first, second = released(project)
    assert verify_release(first, public_keys=[old[1]], max_bytes=None).verified
    assert verify_release(second, public_keys=[new[1]], max_bytes=None).verified
    assert not verify_release(second, public_keys=[old[1]], max_bytes=None).verified
    assert all(verify_release(each, public_keys=[old[1], new[1]], max_bytes=None).verified for each in (first, second))


def test_a_policy_that_demands_a_signature_refuses_definitions_without_a_key(project):
    with pytest.raises(InvalidSettingError, match="requires signed releases, but this one has no signing key"):
        definitions(project, None)


def test_without_a_key_there_is_no_signature_and_the_log_says_what_is_not_attested(project):
    result = project.run(definitions(project, None, POLICY.with_required(signature=False)))
    assert result.success
    (directory,) = released(project)
    assert condition(directory) is None
    assert sorted(path.name for path in directory.iterdir()) == [
        *("anonymized.parquet", "croissant.json", "dcat.jsonld", "manifest.json", "report.html")
    ]
    with project.instance() as instance:
        said = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert any("attestation.json was not written: there is no signing key" in message for message in said)


def test_a_key_needs_the_extra_when_definitions_are_built(project, pair, monkeypatch):
    monkeypatch.setattr(signing, "find_spec", lambda _: None)
    with pytest.raises(InvalidSettingError, match=r"pip install 'privacy-assets\[signing\]'"):
        definitions(project, SigningKey(pair[0]))


def test_a_run_cannot_point_to_another_key(project, pair):
    defs = definitions(project, SigningKey(pair[0]))
    assert not any("sign" in name or "key" in name for name in dict(defs.resources))
    other = generate_key_pair(project.root / "other.pem")[0]
    with project.instance() as instance:
        dg.materialize(
            [*defs.assets, *defs.asset_checks],
            resources=dict(defs.resources),
            instance=instance,
            run_config={"ops": {f"{NAME}__anonymized_release": {"config": {"signing": {"path": str(other)}}}}},
        )
    assert [verify_release(each, public_keys=[pair[1]], max_bytes=None).verified for each in released(project)] == [
        True
    ]


def test_a_key_among_the_releases_is_refused(project, pair):
    (project.root / "releases").mkdir()
    (project.root / "link").symlink_to(project.root / "releases")
    for place in ("releases/key.pem", "releases/people/anonymized/key.pem", "link/key.pem"):
        with pytest.raises(InvalidSettingError, match="is in the directory of releases"):
            definitions(project, SigningKey(project.root / place))


def test_a_relative_path_is_fixed_when_the_definitions_are_built(project, pair, monkeypatch, tmp_path):
    monkeypatch.chdir(project.root)
    key = SigningKey("key.pem")
    monkeypatch.chdir("/")
    assert key.path == Path(pair[0])
    build_release_definitions(
        NAME,
        source=lambda: None,
        contract={"one_row_per_person": True, "columns": {"age": {"type": "integer", "role": "quasi_identifier"}}},
        policy=POLICY,
        anonymized=AnonymizationSettings(),
        signing=key,
    )
