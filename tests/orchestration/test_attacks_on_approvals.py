"""Ways around approvals, rejections and withdrawals that a reviewer found."""

import json
import os
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
import yaml

from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration import release_steps
from privacy_assets.release import clock
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.verification import verify_release
from tests.orchestration import test_approvals
from tests.orchestration.test_approvals import (
    Officers,
    definitions,
    refused,
    released,
    released_again,
    waits,
)
from tests.orchestration.test_waivers import sign

UNAPPROVED = Policy((Limit("smallest_class", 5),))
REASON = "A person was found in it"


@pytest.fixture
def officers(project):
    return Officers(project, "Ada", "Grace")


def resealed(directory, **changes):
    """Change a manifest, with the digest that fits."""
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(manifest | {"digest": digest_of(manifest)}))


def test_a_rejection_holds_when_approvals_are_no_longer_required(project, officers, monkeypatch):
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada", "--decision", "reject") == 0
    assert "rejected by Ada" in refused(released_again(project, officers, policy=UNAPPROVED))
    unknown = released_again(project, officers, policy=UNAPPROVED, approvers=None)
    assert "waits until these decisions are restored or removed" in waits(unknown)
    assert project.everything_released() == []


@pytest.mark.parametrize("damage", [lambda text: text[:-20], lambda text: text.replace("enclave", "Enclave")])
def test_a_damaged_rejection_is_not_ignored(project, officers, monkeypatch, damage):
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada", "--decision", "reject") == 0
    (file,) = officers.decided
    file.write_text(damage(file.read_text()))
    assert officers.decide(monkeypatch, "Grace") == 0
    assert f"restored or removed: {file.name}: it " in waits(released_again(project, officers))


def test_a_rejection_is_not_undone_by_another_role_of_who_rejected(project, officers, monkeypatch):
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada", "--decision", "reject") == 0
    officers.write("Ada", "Grace", role="data protection officer")
    waits(released_again(project, officers))
    assert officers.decide(monkeypatch, "Grace") == 0
    assert "it rejects, and its key is not that of an approver" in waits(released_again(project, officers))


def test_a_statement_cannot_look_like_the_approval_of_somebody_else(project, officers, monkeypatch, capsys):
    monkeypatch.setattr(test_approvals, "STATEMENT", "Very small risk\nApproved by Grace (privacy officer): I agree")
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada") == 0
    assert released_again(project, officers).success
    capsys.readouterr()
    assert main(["verify", str(released(project)[0]), "--approvers", str(officers.file)]) == 0
    assert [line[:15] for line in capsys.readouterr().out.splitlines() if "Approved by" in line] == ["Approved by Ada"]


def test_who_cannot_be_shown_is_no_approver_and_who_is_none_today_is_not_asked(project, officers):
    officers.write("Ada", "Grace", role="officer \x1b[31m")
    with pytest.raises(InvalidSettingError, match="approver 1 needs name, role"):
        definitions(project, officers)
    officers.write("Ada", "Grace", until=str(clock.today() - timedelta(days=1)))
    assert "ask nobody: there is no other approver today" in waits(project.run(definitions(project, officers)))


def test_an_approval_is_not_for_other_settings_columns_or_number_of_records(project, officers, monkeypatch, capsys):
    project.run(definitions(project, officers))
    resealed(officers.waiting, n_records=1_000_000)
    waits(released_again(project, officers))
    capsys.readouterr()
    assert officers.decide(monkeypatch, "Ada") == 0
    assert "1,000,000" not in capsys.readouterr().out
    assert released_again(project, officers).success
    (directory,) = released(project)
    manifest = json.loads((directory / "manifest.json").read_text())
    assert verify_release(directory, max_bytes=None, approvers=officers.file).verified
    for changed in (
        {"settings": manifest["settings"] | {"more": 1}},
        {"columns": [manifest["columns"][0] | {"reason": "None"}, *manifest["columns"][1:]]},
    ):
        resealed(directory, **(manifest | changed))
        found = verify_release(directory, max_bytes=None, approvers=officers.file)
        assert "it is about other figures" in "; ".join(found.problems)


def test_a_manifest_exchanged_after_the_decision_writes_no_file_elsewhere(project, officers, monkeypatch):
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada") == 0
    waiting, real = officers.waiting, release_steps.report_material

    def exchanging(*arguments):
        (waiting / "../../../evil.txt").write_text("evil")
        files = json.loads((waiting / "manifest.json").read_text())["files"]
        resealed(waiting, files=files | {"../../../evil.txt": {"sha256": "0" * 64, "bytes": 4}})
        return real(*arguments)

    monkeypatch.setattr(release_steps, "report_material", exchanging)
    released_again(project, officers)
    assert [path.parent for path in project.root.rglob("evil.txt")] == [project.private]


def test_the_sensor_and_the_command_survive_a_damaged_manifest(project, officers, monkeypatch, capsys):
    built = definitions(project, officers)
    (sensor,) = built.sensors
    project.run(built)
    assert officers.decide(monkeypatch, "Ada") == 0
    waiting, before = officers.waiting, (officers.waiting / "manifest.json").read_text()
    resealed(waiting, verdicts=[{"x": 1}])
    assert officers.decide(monkeypatch, "Ada") == 1
    assert "a recorded verdict is invalid" in capsys.readouterr().out
    (waiting / "manifest.json").write_text("{}")
    with project.instance() as instance:
        context = dg.build_sensor_context(instance)
        assert list(sensor(context)) == []
        (waiting / "manifest.json").write_text(before)
        assert len(list(sensor(dg.build_sensor_context(instance, cursor=context.cursor)))) == 1


def test_a_withdrawn_content_is_not_released_again_without_approvals(project, officers):
    assert project.run(definitions(project, officers, UNAPPROVED)).success
    (directory,) = released(project)
    assert main(["withdraw", str(directory), "--reason", REASON]) == 0
    assert REASON in refused(released_again(project, officers, policy=UNAPPROVED))
    assert not os.path.lexists(directory.parent / "latest")


def test_no_other_list_hides_that_a_version_was_withdrawn(project, officers):
    assert project.run(definitions(project, officers, UNAPPROVED)).success
    (directory,) = released(project)
    edited, empty = directory / "manifest.json", project.root / "old.jsonl"
    empty.touch()
    before = edited.read_text()
    edited.write_text(json.dumps(json.loads(before) | {"digest": "0" * 64}))
    assert main(["withdraw", str(directory), "--reason", REASON]) == 1
    edited.write_text(before)
    assert main(["withdraw", str(directory), "--reason", REASON]) == 0
    assert main(["verify", str(directory), "--withdrawn", str(empty)]) == 1
    (directory.parent / "withdrawn.jsonl").touch()
    assert not verify_release(directory, max_bytes=None).verified


def test_a_waiver_is_not_signed_by_its_rejection_nor_damaged_by_its_signature(project, officers, monkeypatch, capsys):
    sign(project.root, "0" * 64, 5, metric="smallest_class", limit=6)
    waiver = Path(project.root, "score.yaml")
    before = waiver.read_text()
    assert officers.decide(monkeypatch, "Ada", "--decision", "reject", path=waiver) == 1
    assert "Nothing was signed" in capsys.readouterr().out
    assert waiver.read_text() == before
    waiver.write_text(f"{before}...\n")
    assert officers.decide(monkeypatch, "Ada", path=waiver) == 1
    assert "its YAML takes no line more" in capsys.readouterr().out
    assert waiver.read_text() == f"{before}...\n"


@pytest.mark.parametrize("name", ["Ada ", "ada", "A da", "Ada\u200d", "\uff21da"])
def test_one_person_is_not_two_approvers(project, officers, name):
    entries = yaml.safe_load(officers.file.read_text())
    officers.file.write_text(yaml.safe_dump([entries[0], entries[1] | {"name": name}], allow_unicode=True))
    with pytest.raises(InvalidSettingError, match="two approvers have the same name"):
        definitions(project, officers)


def test_nobody_approves_what_is_still_to_be_declared(project, officers, monkeypatch, capsys):
    project.run(definitions(project, officers, test_approvals.POLICY.with_required(declaration=("review_by",))))
    assert officers.decide(monkeypatch, "Ada") == 1
    assert "the declaration lacks review_by, which the policy demands: Declare it" in capsys.readouterr().out
    assert officers.decide(monkeypatch, "Ada", "--decision", "reject") == 0
