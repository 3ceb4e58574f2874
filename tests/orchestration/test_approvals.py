"""Releases that wait for people: who may approve what, and every way to get a table out without them."""

import json
import os
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import yaml

from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration import release_steps
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.release import clock
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.signing import generate_key_pair
from privacy_assets.release.verification import verify_release
from privacy_assets.storage import durable_files
from tests.orchestration.project import NAME, Project, failure_of
from tests.orchestration.test_waivers import sign

pytest.importorskip("cryptography", reason="needs the extra `signing`")
POLICY = Policy((Limit("smallest_class", 5),)).with_required(approvals=1)
STATEMENT = "Very small risk for this recipient, because it works in an enclave"
DECLARED = {"purpose": "Teaching statistics", "recipient": "Students <b>of</b> the course"}


class Officers:
    """People with keys, and the file that names them as approvers."""

    def __init__(self, project, *names):
        self.project, self.keys = project, {}
        self.file = project.root / "approvers.yaml"
        for name in names:
            self.keys[name] = generate_key_pair(project.root / f"{name}.pem")
        self.write(*names)

    def write(self, *names, **more):
        entries = [
            {"name": name, "role": "privacy officer", "public_key": self.keys[name][1].read_text()} for name in names
        ]
        self.file.write_text(yaml.safe_dump([entry | more for entry in entries]))

    def decide(self, monkeypatch, name, *arguments, answer="yes", path=None):
        monkeypatch.setattr("builtins.input", lambda _: answer)
        where = self.waiting if path is None else path
        return main(["approve", str(where), "--key", str(self.keys[name][0]), "--statement", STATEMENT, *arguments])

    @property
    def waiting(self):
        (path,) = (path.parent for path in (self.project.private / "pending").rglob("manifest.json"))
        return path

    @property
    def decided(self):
        return sorted((self.project.private / "pending").rglob("approval-*.json"))


@pytest.fixture
def officers(project):
    return Officers(project, "Ada", "Grace")


def definitions(project, officers, policy=POLICY, k=5, **settings):
    settings = {"declaration": DECLARED, "approvers": str(officers.file)} | settings
    return project.definitions(policy=policy, synthetic=None, anonymized=AnonymizationSettings(k=k), **settings)


def released(project):
    return project.releases(side="anonymized")


def released_again(project, officers, **settings):
    return project.run(definitions(project, officers, **settings), "anonymized_release")


def waits(result):
    """Return for what a run waits; fails if it does not."""
    failures = [event for event in result.all_events if event.is_step_failure]
    (data,) = [event.step_failure_data.user_failure_data for event in failures]
    assert data.description.startswith(f"{NAME}/anonymized_release is not released yet: ")
    gate = [each for each in result.get_asset_check_evaluations() if each.check_name == "release_gate"]
    assert [(each.passed, each.severity) for each in gate] == [(False, dg.AssetCheckSeverity.WARN)]
    return data.description


def refused(result):
    failures = [event for event in result.all_events if event.is_step_failure]
    (data,) = [event.step_failure_data.user_failure_data for event in failures]
    assert "was refused: " in data.description
    return data.description


def test_a_release_waits_until_somebody_approves_exactly_it(project, officers, monkeypatch, capsys):
    said = waits(project.run(definitions(project, officers)))
    assert (
        "waits for 1 of 1 approvals; ask Ada (privacy officer), Grace (privacy officer), who read report.html" in said
    )
    assert f"`privacy_assets approve {officers.waiting} --key FILE --statement WHY`" in said
    assert project.everything_released() == []
    page = (officers.waiting / "report.html").read_text()
    assert "Waits for people: nothing was released yet" in page
    assert "Students &lt;b&gt;of&lt;/b&gt; the course" in page
    assert {path.stat().st_mode & 0o077 for path in officers.waiting.iterdir() if path.suffix != ".yaml"} <= {0, 0o44}
    files = {path.name: path.read_bytes() for path in officers.waiting.glob("*.parquet")}

    assert officers.decide(monkeypatch, "Ada", answer="no") == 1
    assert officers.decided == []
    assert officers.decide(monkeypatch, "Ada", "--decision", "approve") == 0
    shown = capsys.readouterr().out
    assert "Purpose: Teaching statistics" in shown
    assert (
        "  Not stated: recipient_means, legal_basis, retention, roles_decided_by, policy_decided_by, sampling" in shown
    )
    # Once for each time that it was asked.
    assert shown.count("Not stated") == 2
    assert "smallest_class is " in shown
    assert released_again(project, officers).success
    (directory,) = released(project)
    assert {name: (directory / name).read_bytes() for name in files} == files
    manifest = json.loads((directory / "manifest.json").read_text())
    assert [(each["name"], each["statement"]) for each in manifest["approvals"]] == [("Ada", STATEMENT)]
    assert manifest["refusals_before"] == 0
    assert (
        f"<strong>Approved:</strong> Ada (privacy officer), {clock.today()}: {STATEMENT}"
        in (directory / "report.html").read_text()
    )
    assert f"Approved by Ada (privacy officer), {clock.today()}: {STATEMENT}" in project.register.read_text()
    # The files no longer wait; the decision stays.
    assert [path.name for path in officers.decided[0].parent.iterdir()] == [officers.decided[0].name]

    # A recipient without the project.
    received = shutil.copytree(directory, project.root / "received")
    assert main(["verify", str(received), "--approvers", str(officers.file)]) == 0
    assert f"Approved by Ada (privacy officer), {clock.today()}: {STATEMENT}\n" in capsys.readouterr().out
    officers.write("Grace")
    assert main(["verify", str(received), "--approvers", str(officers.file)]) == 1
    assert "it was not approved as recorded" in capsys.readouterr().out
    # The same content may be published again, because exactly it is approved.
    officers.write("Ada", "Grace")
    assert released_again(project, officers).success
    assert len(released(project)) == 2


def test_nothing_but_a_decision_that_holds_publishes_the_release(project, officers, monkeypatch):
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada") == 0
    (approval,) = officers.decided
    right = json.loads(approval.read_text())

    def with_file(content):
        approval.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return waits(released_again(project, officers))

    edited = "its key is not that of an approver, or it was edited after it was signed"
    assert edited in with_file(right | {"statement": "Another statement is put here"})
    assert edited in with_file(right | {"name": "Grace"})
    assert edited in with_file(right | {"signature": "A" * 86 + "=="})
    assert edited in with_file(right | {"key_id": "0" * 64})
    assert edited in with_file(right | {"subject": right["subject"] | {"fingerprint": "0" * 64}})
    no_approval = "it is not an approval"
    assert no_approval in with_file(right | {"more": 1})
    assert no_approval in with_file(right | {"decision": "maybe"})
    assert no_approval in with_file(right | {"name": "Ada \x1b[31m"})
    assert no_approval in with_file(b"\xef\xbb\xbf" + json.dumps(right).encode())
    assert no_approval in with_file(b'{"decision": "approve",' + json.dumps(right).encode()[1:])
    assert no_approval in with_file(b"[" * 100_000)
    assert no_approval in with_file(json.dumps(right).encode() + b" " * 100_000)
    with approval.open("wb") as file:
        file.truncate(2**30)
    assert no_approval in waits(released_again(project, officers))
    approval.unlink()
    approval.symlink_to(project.root / "elsewhere.json")
    (project.root / "elsewhere.json").write_text(json.dumps(right))
    assert no_approval in waits(released_again(project, officers))
    approval.unlink()
    os.mkfifo(approval)
    assert no_approval in waits(released_again(project, officers))
    approval.unlink()
    assert project.everything_released() == []
    approval.write_text(json.dumps(right))
    assert released_again(project, officers).success


def test_a_change_of_policy_declaration_figures_or_content_needs_another_approval(project, officers, monkeypatch):
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada") == 0
    (approval,) = officers.decided
    milder = Policy((Limit("smallest_class", 4),)).with_required(approvals=1)
    assert "it is about another policy, other figures" in waits(released_again(project, officers, policy=milder))
    other = {"declaration": DECLARED | {"recipient": "Anybody"}}
    assert "it is about another declaration" in waits(released_again(project, officers, **other))
    assert "it is about other files" in waits(released_again(project, officers, formats=("parquet", "csv")))
    # What was approved may still be published.
    kept = approval.read_bytes()
    waits(project.run(definitions(project, officers, k=9)))
    copied = officers.waiting / approval.name
    assert copied != approval
    assert sorted(path.name for path in approval.parent.iterdir()) == [approval.name]
    copied.write_bytes(kept)
    assert "it is about other content, other files, other figures" in waits(released_again(project, officers, k=9))
    assert project.everything_released() == []


def test_a_rejection_refuses_the_content_whoever_approves_it_and_whatever_is_changed(project, officers, monkeypatch):
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada", "--decision", "reject") == 0
    assert officers.decide(monkeypatch, "Grace") == 0
    said = refused(released_again(project, officers))
    assert f"rejected by Ada (privacy officer), {clock.today()}: {STATEMENT}" in said
    assert "Nothing was written" in said
    refused(released_again(project, officers, declaration={"purpose": "Another purpose"}))
    waits(project.run(definitions(project, officers, k=9)))
    refused(project.run(definitions(project, officers)))
    assert project.everything_released() == []


def test_two_approvals_need_two_people_with_keys_of_their_own(project, officers, monkeypatch):
    policy = POLICY.with_required(approvals=2)
    project.run(definitions(project, officers, policy))
    assert officers.decide(monkeypatch, "Ada") == 0
    (approval,) = officers.decided
    shutil.copy(approval, approval.with_name("approval-again.json"))
    assert "waits for 1 of 2 approvals; ask Grace" in waits(released_again(project, officers, policy=policy))
    officers.keys["Eve"] = officers.keys["Ada"]
    officers.write("Ada", "Eve")
    said = waits(released_again_with(definitions_of_before(project, officers, policy), project))
    assert "two approvers have the same key" in said
    with pytest.raises(InvalidSettingError, match="two approvers have the same key"):
        definitions(project, officers, policy)
    officers.write("Ada")
    with pytest.raises(InvalidSettingError, match=r"requires approvals \(2\) .* names 1 people"):
        definitions(project, officers, policy)
    officers.write("Ada", "Grace")
    assert officers.decide(monkeypatch, "Grace") == 0
    assert released_again(project, officers, policy=policy).success


def definitions_of_before(project, officers, policy):
    """Return definitions that were built when the file still named two people with their own keys."""
    now = officers.file.read_text()
    officers.write("Ada", "Grace")
    built = definitions(project, officers, policy)
    officers.file.write_text(now)
    return built


def released_again_with(built, project):
    return project.run(built, "anonymized_release")


def test_an_approver_counts_until_the_last_day_alone(project, officers, monkeypatch, capsys):
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada") == 0
    officers.write("Ada", until=clock.today() - timedelta(days=1))
    assert "is an approver until" in waits(released_again(project, officers))
    assert officers.decide(monkeypatch, "Ada") == 1
    assert "Ask another one" in capsys.readouterr().out
    officers.write("Ada", until=clock.today())
    assert released_again(project, officers).success
    (directory,) = released(project)
    # Later it stays approved, because it was approved in time.
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + timedelta(days=400))
    assert verify_release(directory, approvers=officers.file, max_bytes=None).verified


def test_a_clock_that_went_back_a_day_counts_no_approval_of_the_future(project, officers, monkeypatch):
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada") == 0
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) - timedelta(days=1))
    assert "which is still to come at" in waits(released_again(project, officers))
    monkeypatch.undo()
    assert released_again(project, officers).success


def test_an_approval_is_spent_when_its_release_is_withdrawn(project, officers, monkeypatch):
    project.run(definitions(project, officers))
    assert officers.decide(monkeypatch, "Ada") == 0
    assert released_again(project, officers).success
    (directory,) = released(project)
    assert main(["withdraw", str(directory), "--reason", "The recipient broke the contract"]) == 0
    assert "it is about this content before it was withdrawn" in waits(released_again(project, officers))
    assert officers.decide(monkeypatch, "Ada") == 0
    assert released_again(project, officers).success
    assert json.loads((released(project)[-1] / "manifest.json").read_text())["withdrawn_before"] == 1


def test_what_waits_is_not_exchanged(project, officers, monkeypatch, capsys):
    waits(project.run(definitions(project, officers)))
    path = officers.waiting
    data = path / "anonymized.parquet"
    before = data.read_bytes()
    data.write_bytes(before[:-1] + b"x")
    assert officers.decide(monkeypatch, "Ada") == 1
    assert "the file 'anonymized.parquet' was changed" in capsys.readouterr().out
    waits(released_again(project, officers))
    assert data.read_bytes() == before
    # An edited manifest or report is written anew; an approval of the edited one is about something else.
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"declaration": {"purpose": "Nothing at all"}}))
    assert officers.decide(monkeypatch, "Ada") == 0
    assert "it is about another declaration" in waits(released_again(project, officers))
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))
    failed = released_again(project, officers)
    assert not failed.success
    assert "is a link. Expected a directory" in failure_of(failed)
    assert project.everything_released() == []


@pytest.mark.parametrize(
    "content", ["", "[]", "- 5", "- {name: Ada}", "a: 1\na: 2", "- &a [*a]", "\ufeff- {", "- {name: 1}"]
)
def test_a_file_of_approvers_that_cannot_be_read_refuses_the_definitions(project, officers, content):
    officers.file.write_text(content)
    with pytest.raises(InvalidSettingError, match="approvers in .* cannot be used: .* Nothing was approved"):
        definitions(project, officers)


def test_only_an_approver_approves_and_only_with_reasons(project, officers, monkeypatch, capsys):
    project.run(definitions(project, officers))
    officers.keys["Eve"] = generate_key_pair(project.root / "Eve.pem")
    for name, arguments, said in (
        ("Eve", [], "is not that of an approver: Ada (privacy officer), Grace (privacy officer)"),
        ("Ada", ["--statement", "ok"], "fewer than three words"),
    ):
        assert officers.decide(monkeypatch, name, *arguments) == 1
        assert said in capsys.readouterr().out
    officers.keys["Ada"][0].chmod(0o640)
    assert officers.decide(monkeypatch, "Ada") == 1
    assert "is accessible to others" in capsys.readouterr().out
    officers.keys["Ada"][0].unlink()
    assert officers.decide(monkeypatch, "Ada") == 1
    assert "does not exist. Nothing was decided." in capsys.readouterr().out
    for place in (project.root, project.root / "nowhere", officers.waiting.parent):
        assert officers.decide(monkeypatch, "Grace", path=place) == 1
        assert "is not what waits for approval" in capsys.readouterr().out
    assert officers.decided == []


def test_an_approver_on_another_machine_sends_back_one_file(project, officers, monkeypatch, tmp_path):
    project.run(definitions(project, officers))
    copy = Path(shutil.copytree(officers.waiting, project.root / "sent"))
    assert officers.decide(monkeypatch, "Ada", path=copy) == 0
    (approval,) = copy.glob("approval-*.json")
    shutil.copy(approval, officers.waiting)
    assert released_again(project, officers).success


def test_a_release_without_its_approval_does_not_verify(project, officers, monkeypatch):
    project.run(definitions(project, officers))
    # Neither what waits, nor a release whose approval was taken away, is a release.
    assert not verify_release(officers.waiting, max_bytes=None).verified
    assert officers.decide(monkeypatch, "Ada") == 0
    assert released_again(project, officers).success
    (directory,) = released(project)
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    for changed in ([], manifest["approvals"] * 2, [manifest["approvals"][0] | {"decision": "reject"}], [{}]):
        path.write_text(json.dumps(manifest | {"approvals": changed}))
        assert "approv" in "; ".join(verify_release(directory, max_bytes=None).problems)


def test_the_sensor_starts_the_release_once_somebody_decided(project, officers, monkeypatch):
    built = definitions(project, officers, POLICY.with_required(approvals=2))
    (sensor,) = built.sensors
    project.run(built)
    assert asked(project, sensor) is None
    assert officers.decide(monkeypatch, "Ada") == 0
    request = asked(project, sensor)
    assert (sensor.name, request.asset_selection) == (
        f"{NAME}_approvals",
        [dg.AssetKey([NAME, "anonymized_release"])],
    )
    # Dagster starts nothing twice for one key of a run.
    assert asked(project, sensor).run_key == request.run_key
    # The gate has decided: it waits for the other.
    waits(project.run(built, "anonymized_release", tags=request.tags))
    assert asked(project, sensor) is None
    assert officers.decide(monkeypatch, "Grace") == 0
    last = asked(project, sensor)
    assert last.run_key != request.run_key
    assert project.run(built, "anonymized_release", tags=last.tags).success
    assert asked(project, sensor) is None


def test_the_sensor_asks_once_more_if_the_approvers_are_others(project, officers, monkeypatch):
    built = definitions(project, officers)
    (sensor,) = built.sensors
    project.run(built)
    assert officers.decide(monkeypatch, "Ada") == 0
    officers.write("Grace")
    request = asked(project, sensor)
    waits(project.run(built, "anonymized_release", tags=request.tags))
    assert asked(project, sensor) is None
    officers.write("Ada", "Grace")
    again = asked(project, sensor)
    assert again.run_key != request.run_key
    assert project.run(built, "anonymized_release", tags=again.tags).success
    assert asked(project, sensor) is None


def asked(project, sensor):
    """Return what the sensor requests; None if nothing."""
    with project.instance() as instance:
        found = sensor(dg.build_sensor_context(instance))
    if isinstance(found, dg.SkipReason):
        assert "no run has answered" in found.skip_message
        return None
    (request,) = found
    return request


def test_the_sensor_asks_again_after_a_run_that_failed_and_gives_up_after_three(project, officers, monkeypatch):
    built = definitions(project, officers)
    (sensor,) = built.sensors
    project.run(built)
    assert officers.decide(monkeypatch, "Ada") == 0

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(release_steps, "wait_for_people", broken)
    keys = []
    for _ in range(3):
        request = asked(project, sensor)
        keys.append(request.run_key)
        assert "OSError" in failure_of(project.run(built, "anonymized_release", tags=request.tags))
    assert len(set(keys)) == 3
    with project.instance() as instance:
        assert sensor(dg.build_sensor_context(instance)).skip_message.startswith("1 releases failed 3 times")
    monkeypatch.undo()
    # Another decision is another question, and anybody can still start the release.
    assert officers.decide(monkeypatch, "Grace") == 0
    request = asked(project, sensor)
    with project.instance() as instance:
        run = instance.create_run_for_job(built.resolve_implicit_global_asset_job_def(), tags=request.tags)
        # A run that is under way is waited for.
        assert isinstance(sensor(dg.build_sensor_context(instance)), dg.SkipReason)
        instance.report_run_canceled(run)
    assert asked(project, sensor).run_key.endswith(" 2")
    assert released_again(project, officers).success


def test_what_is_not_declared_is_said_at_once_and_the_release_waits(project, officers, monkeypatch, caplog):
    policy = Policy((Limit("smallest_class", 5),)).with_required(declaration=("purpose", "review_by"))
    built = definitions(project, officers, policy)
    lacks = "the declaration lacks review_by, which the policy demands"
    assert f"The release 'people' will wait: {lacks}." in caplog.text
    said = waits(project.run(built))
    assert lacks in said
    assert "Declare it in the settings of the release (declaration)" in said
    assert "Open:</strong> the declaration lacks review_by" in (officers.waiting / "report.html").read_text()
    yesterday = str(clock.today() - timedelta(days=1))
    past = DECLARED | {"review_by": yesterday}
    assert f"its review_by, {yesterday}, has passed" in waits(
        released_again(project, officers, policy=policy, declaration=past)
    )
    complete = DECLARED | {"review_by": str(clock.today())}
    assert released_again(project, officers, policy=policy, declaration=complete).success
    (directory,) = released(project)
    assert json.loads((directory / "manifest.json").read_text())["refusals_before"] == 0
    assert list((project.private / "pending").rglob("*.parquet")) == []
    # A figure that fails is what refuses; what is open besides is not a reason.
    worse = Policy((Limit("smallest_class", 50),)).with_required(declaration=("purpose", "review_by"))
    assert "declaration" not in refused(released_again(project, officers, policy=worse))


def check_of(project, built, name):
    """Run one check of the release alone, as the UI does, and return its result."""
    key = dg.AssetCheckKey(dg.AssetKey([NAME, "anonymized_release"]), name)
    with project.instance() as instance:
        result = dg.materialize(
            [*built.assets, *built.asset_checks],
            selection=dg.AssetSelection.checks(key),
            resources=dict(built.resources),
            instance=instance,
            raise_on_error=False,
        )
    (evaluation,) = result.get_asset_check_evaluations()
    return result.success, evaluation.passed, evaluation.severity.value, evaluation.description


def test_checks_say_later_that_a_release_was_withdrawn_or_is_to_be_reviewed(project, officers, monkeypatch):
    withdrawn, review = "release_is_not_withdrawn", "review_is_not_overdue"
    policy = Policy((Limit("smallest_class", 5),))
    built = definitions(project, officers, policy, declaration={"review_by": clock.today()})
    assert check_of(project, built, withdrawn)[1:] == (True, "ERROR", "Nothing has been released yet.")
    assert check_of(project, built, review)[1:] == (True, "WARN", "No review was declared.")
    assert project.run(built).success
    assert check_of(project, built, review)[1:] == (True, "WARN", f"It is to be reviewed by {clock.today()}.")
    later = datetime.now(UTC) + timedelta(days=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert check_of(project, built, review)[:3] == (True, False, "WARN")
    monkeypatch.undo()
    (directory,) = released(project)
    assert main(["withdraw", str(directory), "--reason", "The recipient broke the contract"]) == 0
    found = check_of(project, built, withdrawn)
    assert found[:3] == (False, False, "ERROR")
    assert "The recipient broke the contract" in found[3]
    list_of = project.root / "releases" / "withdrawn.jsonl"
    list_of.write_text(list_of.read_text().replace("broke", "kept"))
    with project.instance() as instance:
        result = dg.materialize(
            [*built.assets, *built.asset_checks],
            selection=dg.AssetSelection.checks(dg.AssetCheckKey(dg.AssetKey([NAME, "anonymized_release"]), withdrawn)),
            resources=dict(built.resources),
            instance=instance,
            raise_on_error=False,
        )
    assert "it is unknown which releases are withdrawn" in failure_of(result)


def test_only_a_waiver_that_an_approver_signed_waives_where_that_is_demanded(project, officers, monkeypatch, capsys):
    directory = project.root / "waivers"
    directory.mkdir()
    policy = Policy((Limit("smallest_class", 6),)).with_required(signed_waivers=True)
    settings = {"policy": policy, "waivers": str(directory)}
    # Classes of exactly five.
    built = definitions(project, officers, k=5, **settings)
    project.run(built)
    said = released_again(project, officers, **settings)
    fingerprint = re.search(
        r"<dt>Fingerprint</dt><dd>(\w{64})</dd>",
        max((project.private / "refusal_pages").rglob("refusal.html")).read_text(),
    )[1]
    figure = re.search(r"smallest_class is (\d+)", refused(said))[1]
    sign(directory, fingerprint, int(figure), metric="smallest_class", limit=6)
    waiver = directory / "score.yaml"
    assert "no approver signed it as it is" in refused(released_again(project, officers, **settings))
    unsigned = waiver.read_text()
    officers.keys["Eve"] = generate_key_pair(project.root / "Eve.pem")
    assert officers.decide(monkeypatch, "Eve", path=waiver) == 0
    assert "no approver signed it as it is" in refused(released_again(project, officers, **settings))
    waiver.write_text(unsigned)
    capsys.readouterr()
    assert officers.decide(monkeypatch, "Ada", path=waiver, answer="no") == 1
    shown = capsys.readouterr().out
    assert "Nothing was signed" in shown
    assert waiver.read_text() == unsigned
    assert officers.decide(monkeypatch, "Ada", path=waiver) == 0
    assert f"Signed: {waiver}, a waiver of the limit on smallest_class" in capsys.readouterr().out
    signed = waiver.read_text()
    assert signed.startswith(unsigned)
    waiver.write_text(signed.replace("our enclave", "any place"))
    assert "no approver signed it as it is" in refused(released_again(project, officers, **settings))
    waiver.write_text(signed)
    assert officers.decide(monkeypatch, "Ada", path=waiver) == 1
    assert "has a signature already" in capsys.readouterr().out
    officers.write("Ada", until=clock.today() - timedelta(days=1))
    assert "no approver signed it as it is" in refused(released_again(project, officers, **settings))
    officers.write("Ada")
    built = definitions(project, officers, **settings)
    officers.file.write_text(officers.file.read_text().replace("public_key", "public_keys"))
    assert "approver 1 needs name, role, and public_key" in failure_of(project.run(built, "anonymized_release"))
    officers.write("Ada")
    assert released_again(project, officers, **settings).success
    (written,) = released(project)
    assert verify_release(written, max_bytes=None).verified
    officers.write("Ada", until=str(clock.today() - timedelta(days=1)))
    said = "; ".join(verify_release(written, max_bytes=None, approvers=officers.file).problems)
    assert "no approver signed the waiver of the limit on 'smallest_class'" in said
    manifest = json.loads((written / "manifest.json").read_text())
    (recorded,) = manifest["waivers"]
    without = {name: value for name, value in recorded.items() if name != "signature"}
    (written / "manifest.json").write_text(json.dumps(manifest | {"waivers": [without]}))
    said = "; ".join(verify_release(written, max_bytes=None).problems)
    assert "no approver signed the waiver of the limit on 'smallest_class'" in said


def test_a_decision_that_cannot_be_written_or_was_not_asked_for_decides_nothing(project, officers, monkeypatch, capsys):
    project.run(definitions(project, officers))

    def nobody_there(_):
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody_there)
    asked = ["approve", str(officers.waiting), "--key", str(officers.keys["Ada"][0]), "--statement", STATEMENT]
    assert main(asked) == 1
    assert "Nothing was decided" in capsys.readouterr().out

    def full_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable_files, "write_json", full_disk)
    assert officers.decide(monkeypatch, "Ada") == 1
    assert "could not be written (OSError). Nothing was decided" in capsys.readouterr().out
    assert officers.decided == []


def test_each_partition_waits_for_itself(tmp_path, monkeypatch):
    project = Project(tmp_path, partitions=("a", "b"))
    for seed, partition in enumerate(project.partitions, start=1):
        project.write_tables(seed, partition)
    officers = Officers(project, "Ada")
    built = definitions(project, officers)
    for partition in project.partitions:
        waits(project.run(built, partition=partition))
    first, second = sorted(path.parent for path in (project.private / "pending").rglob("manifest.json"))
    assert (first.parent.name, second.parent.name) == ("a", "b")
    (sensor,) = built.sensors
    assert officers.decide(monkeypatch, "Ada", path=first) == 0
    assert asked(project, sensor).partition_key == "a"
    (approval,) = officers.decided
    shutil.copy(approval, second)
    assert "it is about other content" in waits(project.run(built, "anonymized_release", partition="b"))
    assert project.run(built, "anonymized_release", partition="a").success
    assert [len(project.releases(each, "anonymized")) for each in project.partitions] == [1, 0]
