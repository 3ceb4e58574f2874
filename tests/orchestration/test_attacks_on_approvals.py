"""Ways around approvals, rejections and withdrawals that a reviewer found."""

import hashlib
import json
import os
import re
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pyarrow.parquet as pq
import pytest
import yaml

from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration import release_steps
from privacy_assets.release import approvals, clock
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.verification import verify_release
from tests.orchestration import test_approvals
from tests.orchestration.project import failure_of
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
    assert "rejected by Ada" in refused(released_again(project, officers, policy=UNAPPROVED, approvers=None))
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
        assert isinstance(sensor(context), dg.SkipReason)
        (waiting / "manifest.json").write_text(before)
        assert len(sensor(context)) == 1


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


def test_an_approver_who_was_shown_another_page_approved_nothing(project, officers, monkeypatch):
    project.run(definitions(project, officers))
    waiting = officers.waiting
    honest = (waiting / "report.html").read_bytes()
    (waiting / "report.html").write_bytes(honest.replace(b"Students", b"Teachers"))
    files = json.loads((waiting / "manifest.json").read_text())["files"]
    digest = hashlib.sha256((waiting / "report.html").read_bytes()).hexdigest()
    resealed(waiting, files=files | {"report.html": files["report.html"] | {"sha256": digest}})
    assert officers.decide(monkeypatch, "Ada") == 0
    assert "who approved was shown another page" in waits(released_again(project, officers))
    assert b"Teachers" not in (waiting / "report.html").read_bytes()
    # Files are named after the second of the decision.
    (approval,) = officers.decided
    approval.rename(approval.with_name("approval-1.json"))
    assert officers.decide(monkeypatch, "Ada") == 0
    assert released_again(project, officers).success


def test_a_rejection_that_a_run_has_read_holds_without_its_file(project, officers, monkeypatch):
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada", "--decision", "reject") == 0
    assert "rejected by Ada" in refused(released_again(project, officers))
    for each in officers.decided:
        each.unlink()
    assert "rejected by Ada" in refused(released_again(project, officers))
    # Also if Ada is no approver any more, or nobody is.
    officers.write("Grace")
    assert "rejected by Ada" in refused(released_again(project, officers))
    assert "rejected by Ada" in refused(released_again(project, officers, policy=UNAPPROVED, approvers=None))
    assert project.everything_released() == []


def test_no_number_of_files_hides_a_rejection(project, officers, monkeypatch):
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada") == 0
    (approval,) = officers.decided
    for number in range(approvals.MOST_APPROVALS):
        os.link(approval, approval.with_name(f"approval-0-{number:04}.json"))
    assert "restored or removed: 1,001 files" in waits(released_again(project, officers))


def test_a_list_of_withdrawals_that_lost_its_end_is_found(project, officers):
    assert project.run(definitions(project, officers, UNAPPROVED)).success
    (directory,) = released(project)
    assert main(["withdraw", str(directory), "--reason", REASON]) == 0
    refused(released_again(project, officers, policy=UNAPPROVED))
    listed = project.root / "releases" / "withdrawn.jsonl"
    before = listed.read_text()
    listed.unlink()
    assert "lacks entry 1, which an earlier run has read" in failure_of(
        released_again(project, officers, policy=UNAPPROVED)
    )
    listed.write_text(before)
    assert REASON in refused(released_again(project, officers, policy=UNAPPROVED))


def test_an_unused_waiver_does_not_void_what_was_approved(project, officers, monkeypatch):
    waivers = project.root / "waivers"
    waivers.mkdir()
    settings = {"waivers": str(waivers)}
    project.run(definitions(project, officers, **settings))
    assert officers.decide(monkeypatch, "Ada") == 0
    sign(waivers, "0" * 64, 3, metric="smallest_class", limit=5)
    assert released_again(project, officers, **settings).success
    (directory,) = released(project)
    assert verify_release(directory, max_bytes=None, approvers=officers.file).verified


def test_approvals_are_asked_for_once_the_declaration_is_complete(project, officers):
    policy = test_approvals.POLICY.with_required(declaration=("review_by",))
    said = waits(project.run(definitions(project, officers, policy)))
    assert "needs 1 approvals, which can be given once the declaration is complete" in said
    assert "ask Ada" not in said


@pytest.mark.parametrize("hidden", [{b"note": b"Ada"}, {b"pandas": b'{"index_columns": [], "attributes": {"a": 1}}'}])
def test_content_beside_the_table_of_a_parquet_file_is_found(project, officers, hidden):
    assert project.run(definitions(project, officers, UNAPPROVED)).success
    (directory,) = released(project)
    path = directory / "anonymized.parquet"
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata(table.schema.metadata | hidden), path)
    files = json.loads((directory / "manifest.json").read_text())["files"]
    described = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
    resealed(directory, files=files | {path.name: described})
    found = verify_release(directory, max_bytes=None)
    assert "has content beside its table, which nobody has assessed" in "; ".join(found.problems)


def test_an_approval_is_not_for_a_waiver_that_was_changed_after_it(project, officers, monkeypatch):
    directory = project.root / "waivers"
    directory.mkdir()
    policy = Policy((Limit("smallest_class", 6),)).with_required(approvals=1)
    settings = {"policy": policy, "waivers": str(directory)}
    project.run(definitions(project, officers, k=5, **settings))
    said = refused(released_again(project, officers, **settings))
    page = max((project.private / "refusal_pages").rglob("refusal.html")).read_text()
    fingerprint = re.search(r"<dt>Fingerprint</dt><dd>(\w{64})</dd>", page)[1]
    figure = int(re.search(r"smallest_class is (\d+)", said)[1])
    sign(directory, fingerprint, figure, metric="smallest_class", limit=6)
    waits(released_again(project, officers, **settings))
    assert officers.decide(monkeypatch, "Ada") == 0
    waiver = directory / "score.yaml"
    before = waiver.read_text()
    waiver.write_text(before.replace("our enclave", "any place"))
    assert "it is about other waivers" in waits(released_again(project, officers, **settings))
    waiver.write_text(before)
    assert released_again(project, officers, **settings).success
    (written,) = released(project)
    assert verify_release(written, max_bytes=None, approvers=officers.file).verified


def test_a_card_that_says_something_else_than_the_manifest_is_found(project, officers):
    assert project.run(definitions(project, officers, UNAPPROVED)).success
    (directory,) = released(project)
    card = directory / "dcat.jsonld"
    card.write_text(card.read_text().replace("people", "others"))
    files = json.loads((directory / "manifest.json").read_text())["files"]
    described = {"sha256": hashlib.sha256(card.read_bytes()).hexdigest(), "bytes": card.stat().st_size}
    resealed(directory, files=files | {card.name: described})
    found = verify_release(directory, max_bytes=None)
    assert found.problems == ("the file 'dcat.jsonld' is not what the manifest says",)


def test_the_lists_of_two_directories_of_releases_are_not_taken_for_each_other(project, officers):
    assert project.run(definitions(project, officers, UNAPPROVED)).success
    (directory,) = released(project)
    assert main(["withdraw", str(directory), "--reason", REASON]) == 0
    refused(released_again(project, officers, policy=UNAPPROVED))
    (kept,) = (project.private / "decisions").glob("last_withdrawal-*.json")
    kept.write_text("{")
    assert "which has what people decided before, cannot be read" in failure_of(
        released_again(project, officers, policy=UNAPPROVED)
    )
    kept.rename(kept.with_name("last_withdrawal-of-another-list.json"))
    assert REASON in refused(released_again(project, officers, policy=UNAPPROVED))
