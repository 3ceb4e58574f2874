import json
import os
import re
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError
from privacy_assets.release.files import write_release
from privacy_assets.release.gate import EVERY_WAIVER_IS_USED, is_admitted, limit_verdict, verdicts, waived_verdict
from privacy_assets.release.metrics import MPUCC
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.report import ReportMaterial
from privacy_assets.release.verification import verify_release
from privacy_assets.release.waivers import UnusableWaiver, Waiver, Waivers, read_waivers
from privacy_assets.storage.fingerprint import fingerprint
from tests.examples import examples
from tests.release.agreeing import agreeing
from tests.release.test_files import RECORD, TABLE
from tests.release.test_gate import (
    OF_OTHERS,
    POLICY,
    anonymized_evidence,
    good_evidence,
    with_assessment,
    with_metrics,
    with_rare_values,
    without,
)
from tests.shared_data import REPOSITORY

CONTENT = "ab" * 32
TODAY = date(2026, 7, 15)
FIELDS = {
    "release": "people",
    "metric": "privacy_risk_score",
    "limit": 0.1,
    "figure": 0.2,
    "fingerprint": CONTENT,
    "person": "Ada Lovelace, data protection officer",
    "reason": "The recipient works in our enclave.",
    "signed_on": date(2026, 7, 1),
    "expires_on": date(2026, 9, 30),
}
SCORE_CHECK = "privacy_risk_score_is_below_its_limit"


def waiver(file="score.yaml", **changes):
    return Waiver.from_mapping(file, FIELDS | changes)


def written(directory, text="", name="score.yaml", **changes):
    lines = text or "\n".join(f"{field}: {value}" for field, value in (FIELDS | changes).items())
    (directory / name).write_text(lines)
    return directory / name


def of_content(evidence, content=CONTENT):
    """Let evidence be about a content whose fingerprint a waiver can name."""
    tables = dict(evidence.tables)
    tables["synthetic"] = replace(tables["synthetic"], digest=content, recorded_digest=content)
    assessments = {
        name: replace(each, made_of={**each.made_of, "synthetic": content})
        for name, each in evidence.assessments.items()
    }
    return replace(evidence, tables=tables, assessments=assessments)


FAILS = of_content(with_metrics(privacy_risk_score=0.2))


def decide(*files, evidence=FAILS, policy=POLICY, on=TODAY):
    return verdicts(policy, evidence, CONTENT, Waivers("people", on, files))


def named(decided, name):
    return next(verdict for verdict in decided if verdict.name == name)


def test_a_waiver_lets_the_content_out_that_it_names_and_the_verdict_is_marked():
    assert not is_admitted(decide())
    decided = decide(waiver())
    assert is_admitted(decided)
    verdict = named(decided, SCORE_CHECK)
    assert (verdict.passed, verdict.severity, verdict.waived_by) == (True, "error", "score.yaml")
    assert verdict.reason == (
        f"privacy_risk_score is 0.2; expected below 0.1; {OF_OTHERS}; waived by Ada Lovelace, data protection officer "
        "until 2026-09-30: The recipient works in our enclave."
    )
    assert named(decided, EVERY_WAIVER_IS_USED).passed
    assert [each.waived_by for each in decided if each.name != SCORE_CHECK] == [None] * (len(decided) - 1)


@pytest.mark.parametrize("on", [FIELDS["signed_on"], FIELDS["expires_on"]])
def test_it_holds_on_its_first_and_on_its_last_day(on):
    assert is_admitted(decide(waiver(), on=on))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"fingerprint": "6" * 64}, "it is for other content"),
        ({"figure": 0.19}, "it accepts a figure of 0.19, but the figure found is riskier"),
        ({"limit": 0.3}, "it waives a limit of 0.3, but the policy has 0.1"),
        ({"signed_on": date(2026, 7, 16)}, "it applies only from 2026-07-16 on"),
        ({"expires_on": date(2026, 7, 14)}, "it expired on 2026-07-14"),
    ],
)
def test_a_waiver_that_does_not_match_refuses_and_says_why_twice(changes, why):
    decided = decide(waiver(**changes))
    assert not is_admitted(decided)
    verdict = named(decided, SCORE_CHECK)
    assert verdict.blocks
    assert f"not waived (score.yaml: {why})" in verdict.reason
    unused = named(decided, EVERY_WAIVER_IS_USED)
    assert (unused.passed, unused.severity, unused.reason) == (False, "warn", f"score.yaml: {why}")


def test_a_waiver_of_another_limit_waives_nothing_and_says_so():
    policy = POLICY.with_limit(Limit("identification_rate", 0.9))
    of_k = waiver("k.yaml", metric="smallest_class", limit=5, figure=2)
    evidence = of_content(with_metrics(privacy_risk_score=0.2, identification_rate=0.1))
    decided = decide(waiver(metric="identification_rate", limit=0.9), of_k, policy=policy, evidence=evidence)
    assert not is_admitted(decided)
    # Nor is it mentioned where it could not apply.
    assert named(decided, SCORE_CHECK).reason == f"privacy_risk_score is 0.2; expected below 0.1; {OF_OTHERS}"
    assert named(decided, EVERY_WAIVER_IS_USED).reason == (
        "score.yaml: the limit on identification_rate is met, or is already waived; "
        "k.yaml: the policy has no limit on smallest_class here"
    )


def test_a_limit_that_only_warns_stays_failed_whatever_is_waived():
    policy = POLICY.with_limit(Limit("privacy_risk_score", 0.1, severity="warn"))
    decided = decide(waiver(), policy=policy)
    assert is_admitted(decided)
    verdict = named(decided, SCORE_CHECK)
    assert (verdict.passed, verdict.severity, verdict.waived_by) == (False, "warn", None)
    assert verdict.reason == "privacy_risk_score is 0.2; expected below 0.1"
    unused = named(decided, EVERY_WAIVER_IS_USED)
    assert (unused.passed, unused.reason) == (False, "score.yaml: the limit on privacy_risk_score only warns")


def test_so_many_rare_values_and_no_more_can_be_waived():
    three = waiver("rare.yaml", metric="rare_values_released", limit=0, figure=3)
    for found, is_waived in ((3.0, True), (4.0, False), (None, False)):
        decided = decide(three, evidence=of_content(with_rare_values(found)))
        assert is_admitted(decided) == is_waived
        assert (named(decided, "rare_values_released_is_at_most_its_limit").waived_by is not None) == is_waived


@pytest.mark.parametrize(
    ("evidence", "name"),
    [
        (with_metrics(privacy_risk_score=None), SCORE_CHECK),
        (with_metrics(privacy_risk_score=float("nan")), SCORE_CHECK),
        (without(MPUCC), "mpucc_assessment_exists"),
        (with_assessment(run_id=None, metrics={"privacy_risk_score": 0.2}), "mpucc_assessment_was_made_by_a_run"),
        (good_evidence(keeps_contract=False), "synthetic_keeps_the_contract"),
    ],
)
def test_neither_conditions_on_the_evidence_nor_a_missing_figure_can_be_waived(evidence, name):
    evidence = of_content(evidence)
    every_metric = [
        waiver(f"{metric}.yaml", metric=metric, limit=value)
        for metric, value in (("privacy_risk_score", 0.1), ("leakage_detected", 0))
    ]
    decided = decide(*every_metric, evidence=evidence)
    assert not is_admitted(decided)
    assert named(decided, name).blocks


def test_a_missing_figure_says_that_it_cannot_be_waived():
    decided = decide(waiver(), evidence=of_content(with_metrics(privacy_risk_score=None)))
    assert "score.yaml: a figure without a value cannot be waived" in named(decided, SCORE_CHECK).reason
    assert "a figure without a value cannot be waived" in named(decided, EVERY_WAIVER_IS_USED).reason


def test_detected_leakage_cannot_be_waived_for_its_figure_does_not_say_how_much_leaks():
    evidence = of_content(with_metrics(leakage_detected=1.0, excess_identification_rate=0.9))
    decided = decide(waiver(metric="leakage_detected", limit=0, figure=1), evidence=evidence)
    assert not is_admitted(decided)
    assert (
        "not waived (score.yaml: detected leakage cannot be waived" in named(decided, "no_leakage_is_detected").reason
    )
    # An excess has a figure that a waiver can be bound to.
    policy = Policy((Limit("privacy_risk_score", 0.1), Limit("excess_identification_rate", 0.05)))
    for accepted, is_waived in ((0.9, True), (0.1, False)):
        of_excess = waiver(metric="excess_identification_rate", limit=0.05, figure=accepted)
        assert is_admitted(decide(of_excess, evidence=evidence, policy=policy)) == is_waived


def test_waivers_of_other_releases_may_lie_beside_and_are_not_shown_where_they_play_no_role():
    theirs = waiver("theirs.yaml", release="other_people")
    assert not is_admitted(decided := decide(theirs))
    # A release that is mistyped is told of where the limit refuses.
    assert "not waived (theirs.yaml: it is for another release)" in named(decided, SCORE_CHECK).reason
    assert EVERY_WAIVER_IS_USED not in {verdict.name for verdict in decided}
    together = decide(theirs, waiver())
    assert is_admitted(together)
    assert "theirs.yaml" not in str(together)
    assert named(together, EVERY_WAIVER_IS_USED).reason == "1 of 1 waivers apply to a failed limit"


@pytest.mark.parametrize(
    ("metric", "figure", "is_possible"),
    [
        ("smallest_class", -5, False),
        ("smallest_class", 1, True),
        ("privacy_risk_score", 1.01, False),
        ("privacy_risk_score", 1, True),
        ("excess_identification_rate", -0.2, True),
    ],
)
def test_a_figure_that_the_metric_cannot_have_makes_a_waiver_unusable(tmp_path, metric, figure, is_possible):
    (found,) = read_waivers(written(tmp_path, metric=metric, figure=figure))
    assert isinstance(found, Waiver) == is_possible
    if not is_possible:
        assert f"its figure is impossible: {metric} ranges from" in found.problem


def test_a_policy_that_protects_nobody_cannot_be_waived():
    loose = Policy((Limit("privacy_risk_score", 0.1), Limit("smallest_class", 1.5)))
    waives = waiver(metric="smallest_class", limit=1.5, figure=1)
    decided = verdicts(loose, anonymized_evidence(), "t", Waivers("people", TODAY, (waives,)))
    assert named(decided, "the_policy_limits_the_anonymized_side").blocks


def test_a_waiver_that_is_not_needed_is_shown():
    assert is_admitted(decided := decide(waiver(), evidence=of_content(good_evidence())))
    assert not named(decided, EVERY_WAIVER_IS_USED).passed
    warns = decide(waiver(metric="verbatim_copies", limit=3), evidence=of_content(with_metrics(verbatim_copies=7.0)))
    assert named(warns, EVERY_WAIVER_IS_USED).reason == "score.yaml: the limit on verbatim_copies only warns"
    assert not named(warns, "verbatim_copies_is_at_most_its_limit").passed


def test_of_two_waivers_the_one_that_holds_is_used_and_the_other_is_shown():
    decided = decide(waiver("a.yaml", expires_on=date(2026, 7, 2)), waiver("b.yaml"), waiver("c.yaml"))
    assert named(decided, SCORE_CHECK).waived_by == "b.yaml"
    assert named(decided, EVERY_WAIVER_IS_USED).reason == (
        "a.yaml: it expired on 2026-07-02; c.yaml: the limit on privacy_risk_score is met, or is already waived"
    )


@pytest.mark.parametrize(("figure", "is_accepted"), [(3, False), (2, True), (1, True)])
def test_which_figure_is_riskier_depends_on_the_metric(figure, is_accepted):
    policy = Policy((Limit("smallest_class", 5),))
    evidence = anonymized_evidence(measured={"anonymity": {"smallest_class": 2.0}})
    limit = policy.limits[0]
    verdict = limit_verdict(limit, evidence)
    waivers = Waivers("people", TODAY, (waiver(metric="smallest_class", limit=5, figure=figure),))
    assert waived_verdict(limit, verdict, waivers, CONTENT).passed == is_accepted


def test_a_limit_is_named_as_verdicts_show_it():
    third = Policy((Limit("privacy_risk_score", 1 / 3 - 0.2),))
    shown = re.search(r"expected below (\S+)$", named(decide(policy=third), SCORE_CHECK).reason)[1]
    assert is_admitted(decide(waiver(limit=float(shown)), policy=third))
    for other in (0.133333, 0.1333):
        assert not is_admitted(decide(waiver(limit=other), policy=third))


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"figure": 0.2}, 0.2000004),
        ({"figure": 0.2}, 0.2 + 1e-16 + 2e-17),
        ({"limit": 0.1000004}, 0.2),
        ({"limit": 0.1 - 1e-16}, 0.2),
    ],
)
def test_nothing_riskier_is_accepted_and_no_other_limit_is_waived_by_however_little(changes, value):
    assert is_admitted(decide(waiver(), evidence=of_content(with_metrics(privacy_risk_score=0.2))))
    decided = decide(waiver(**changes), evidence=of_content(with_metrics(privacy_risk_score=value)))
    assert value == 0.2 or re.search(rf"\b{value!r}\)?;", named(decided, SCORE_CHECK).reason)
    assert not is_admitted(decided)


def copied_from(reason):
    """Return the waiver of somebody who copies what the refusal says into YAML."""
    shown = r"privacy_risk_score is (?:\S+ \(exactly )?([^\s)]+)\)?; expected below (\S+)$"
    figure, limit = re.search(shown, reason).groups()
    return "\n".join(f"{name}: {value}" for name, value in (FIELDS | {"figure": figure, "limit": limit}).items())


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(5e-324, 0.5), st.floats(0.5, 1), st.floats(0.5, 1))
def test_a_waiver_copied_from_the_refusal_excuses_from_that_figure_and_from_nothing_riskier(tmp_path, limit, one, two):
    value, riskier = sorted([one, two])
    policy = Policy((Limit("privacy_risk_score", limit),))
    refused = decide(policy=policy, evidence=of_content(with_metrics(privacy_risk_score=value)))
    if not named(refused, SCORE_CHECK).blocks:
        return
    (read,) = read_waivers(written(tmp_path, copied_from(named(refused, SCORE_CHECK).reason)))
    assert is_admitted(decide(read, policy=policy, evidence=of_content(with_metrics(privacy_risk_score=value))))
    of_riskier = of_content(with_metrics(privacy_risk_score=riskier))
    assert is_admitted(decide(read, policy=policy, evidence=of_riskier)) == (riskier == value)


def test_waivers_are_read_from_a_file_and_from_a_directory(tmp_path):
    path = written(tmp_path)
    written(tmp_path, name="second.yml", metric="leakage_detected", limit=0)
    (tmp_path / ".gitkeep").touch()
    assert read_waivers(path) == (waiver(),)
    assert read_waivers(tmp_path) == (waiver(), waiver("second.yml", metric="leakage_detected", limit=0))
    assert Waiver.from_json(json.loads(json.dumps(waiver().to_json()))) == waiver()


def test_the_example_of_the_documentation_can_be_read(tmp_path):
    page = REPOSITORY / "docs" / "waivers.md"
    if not page.exists():
        pytest.skip("the tests of the wheel run without the documentation")
    blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        (read,) = read_waivers(written(tmp_path, block))
        assert (read.metric, read.expires_on) == ("privacy_risk_score", date(2026, 9, 30))


SECRET = "SENTINEL-cell"


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.yaml", f"{SECRET}: [", "it is not valid YAML"),
        ("a.yaml", SECRET, "it is not a mapping with the fields release, metric"),
        ("a.yaml", "", "it is not a mapping"),
        ("a.yaml", f"!!python/object/apply:os.system ['{SECRET}']", "it is not valid YAML"),
        ("a.yaml", "release: a\nrelease: b", "it has a field twice"),
        ("a.yaml", "a" * 70_000, "it is larger than 65,536 bytes"),
        ("a.yaml", "[" * 5_000, "it is not valid YAML"),
        ("a.txt", "release: a", "its name does not end in .yaml or .yml"),
        ("a.yaml", "\udcff", "it is not valid YAML"),
        ("a.yaml", f"signed_on: !!timestamp {SECRET}", "it is not valid YAML"),
        ("a.yaml", "figure: !!int ''", "it is not valid YAML"),
        ("a.yaml", "figure: !!float ''", "it is not valid YAML"),
        ("a.yaml", f"figure: !!bool {SECRET}", "it is not valid YAML"),
        ("a.yaml", "figure: 1" + "0" * 400, "its figure is not a number"),
        ("a.yaml", "figure: 1" + "0" * 5_000, "it is not valid YAML"),
        ("a.yaml", "? {a: b}\n: c", "it is not valid YAML"),
        ("a.yaml", "person: &a x\nreason: *a", "it contains a reference (*name)"),
        (
            "a.yaml",
            "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60)),
            "it contains a reference",
        ),
        ("a.yaml", 'person: "\\ud800"', "its person is not a text"),
    ],
)
def test_a_file_that_is_no_waiver_is_named_with_its_problem_and_not_quoted(tmp_path, name, text, problem):
    (tmp_path / name).write_bytes(text.encode(errors="surrogateescape"))
    (found,) = read_waivers(tmp_path)
    assert isinstance(found, UnusableWaiver)
    assert problem in found.problem
    decided = decide(found)
    assert not is_admitted(decided)
    assert problem in named(decided, EVERY_WAIVER_IS_USED).reason
    assert SECRET not in str(decided)


@pytest.mark.parametrize("field", FIELDS)
def test_each_field_is_needed_and_must_be_what_it_is_for(tmp_path, field):
    (lacks,) = read_waivers(written(tmp_path, "\n".join(f"{n}: {v}" for n, v in FIELDS.items() if n != field)))
    assert lacks.problem == f"it lacks {field}"
    (wrong,) = read_waivers(written(tmp_path, **{field: f"[{SECRET}]"}))
    assert wrong.problem.startswith(f"its {field} is not ")
    assert SECRET not in wrong.problem


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"fingerprint": int("7" * 64)}, "its fingerprint is not a fingerprint, 64 characters"),
        ({"fingerprint": CONTENT[:12]}, "its fingerprint is not"),
        ({"person": "' '"}, "its person is not a text"),
        ({"reason": "x" * 2_001}, "its reason is not a text of 1 to 2,000 characters"),
        ({"reason": "----"}, "its reason is not a text of 1 to 2,000 characters, with at least 3 words"),
        ({"reason": "n/a n/a n/a"}, "its reason is not"),
        ({"reason": "tbd"}, "its reason is not"),
        ({"limit": "true"}, "its limit is not a number"),
        ({"limit": ".inf"}, "its limit is not a number"),
        ({"expires_on": "2026-09-30 10:00:00"}, "its expires_on is not a date such as"),
        ({"expires_on": "next week"}, "its expires_on is not a date"),
        ({"expires_on": "2026-02-30"}, None),
        ({"expires_on": date(2026, 6, 30)}, "it applies for -1 days from its signature; expected 0 to 366"),
        ({"expires_on": date(2027, 7, 3)}, "it applies for 367 days from its signature; expected 0 to 366"),
        ({"approved": "yes"}, "1 of its fields are unknown; the fields are release, metric"),
    ],
)
def test_what_a_waiver_cannot_say_makes_it_unusable(tmp_path, changes, problem):
    (found,) = read_waivers(written(tmp_path, **changes))
    assert isinstance(found, UnusableWaiver)
    assert (problem or "") in found.problem


def test_a_waiver_of_a_year_is_the_longest():
    assert waiver(expires_on=date(2027, 7, 2)).expires_on == date(2027, 7, 2)
    with pytest.raises(InvalidSettingError, match="367 days"):
        waiver(expires_on=date(2027, 7, 3))


def test_what_is_not_a_file_is_named_and_does_not_keep_the_other_waivers_from_counting(tmp_path):
    written(tmp_path)
    os.mkfifo(tmp_path / "a_pipe.yaml")
    (tmp_path / "b_broken.yaml").symlink_to("nowhere")
    (tmp_path / "c_loop.yaml").symlink_to("c_loop.yaml")
    (tmp_path / "d_directory.yaml").mkdir()
    (tmp_path / "e_device.yaml").symlink_to("/dev/zero")
    (tmp_path / os.fsdecode(b"f_\xff.yaml")).write_text("release: x")
    assert {each.file: getattr(each, "problem", None) for each in read_waivers(tmp_path)} == {
        "a_pipe.yaml": "it is not a file but a pipe, a socket or a device",
        "b_broken.yaml": "it does not exist",
        "c_loop.yaml": "it cannot be read",
        "d_directory.yaml": "it is a directory; expected all waivers in one directory",
        "e_device.yaml": "it is not a file but a pipe, a socket or a device",
        "f_\ufffd.yaml": "its name is not UTF-8",
        "score.yaml": None,
    }
    decided = decide(*read_waivers(tmp_path))
    assert is_admitted(decided)
    assert named(decided, EVERY_WAIVER_IS_USED).reason.count(".yaml: ") == 6


@pytest.mark.parametrize("error", [PermissionError(13, SECRET), FileNotFoundError(2, SECRET), OSError(5, SECRET)])
def test_a_file_that_cannot_be_opened_or_vanishes_is_one_problem_of_its_own(tmp_path, monkeypatch, error):
    written(tmp_path)
    written(tmp_path, name="a.yaml")
    opened = os.open

    def refusing(path, *arguments, **options):
        if str(path).endswith("a.yaml"):
            raise error
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refusing)
    unreadable, read = read_waivers(tmp_path)
    assert unreadable.problem in ("it does not exist", "it cannot be read")
    assert read == waiver()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_cannot_be_read_is_said(tmp_path):
    (tmp_path / "closed").mkdir(0o000)
    assert read_waivers(tmp_path / "closed") == (UnusableWaiver("closed", "it cannot be read"),)
    assert read_waivers(tmp_path / "closed" / "a.yaml") == (UnusableWaiver("a.yaml", "it cannot be read"),)


def test_of_very_many_files_the_first_thousand_are_read_and_the_verdict_stays_short(tmp_path):
    written(tmp_path, name="0000.yaml")
    for number in range(1_200):
        (tmp_path / f"{number + 1:04}.yaml").touch()
    found = read_waivers(tmp_path)
    assert found[0] == waiver("0000.yaml")
    assert found[-1] == UnusableWaiver(
        tmp_path.name, "it has 1,201 files, of which only the first 1,000 by name were read"
    )
    decided = decide(*found)
    assert is_admitted(decided)
    assert named(decided, EVERY_WAIVER_IS_USED).reason.endswith("; and 980 more")
    assert len(named(decided, EVERY_WAIVER_IS_USED).reason) < 5_000


def test_a_path_where_nothing_is_and_a_directory_in_a_directory_are_said(tmp_path):
    assert read_waivers(tmp_path / "absent.yaml") == (UnusableWaiver("absent.yaml", "it does not exist"),)
    (tmp_path / "more").mkdir()
    assert "it is a directory" in read_waivers(tmp_path)[0].problem


def released(directory, **changes):
    """Release a table that does not meet its limit under a waiver of today."""
    content = fingerprint(TABLE)
    today = changes.pop("today")
    own = waiver(fingerprint=content, signed_on=today, expires_on=today, **changes)
    verdict = replace(RECORD.verdicts[1], value=0.2, waived_by="score.yaml", reason="waived by Ada Lovelace")
    record = agreeing(replace(RECORD, verdicts=(RECORD.verdicts[0], verdict), waivers=(own,)))
    return write_release(directory, TABLE, content, record, ("parquet",), ReportMaterial())


@pytest.fixture
def today():
    from datetime import UTC, datetime

    return datetime.now(UTC).date()


def test_manifest_and_report_carry_the_waiver_and_the_release_verifies(tmp_path, today):
    directory = released(tmp_path, today=today)
    assert main(["verify", str(directory)]) == 0
    (recorded,) = json.loads((directory / "manifest.json").read_text())["waivers"]
    assert recorded["person"] == FIELDS["person"]
    assert recorded["expires_on"] == today.isoformat()
    page = (directory / "report.html").read_text()
    assert "Released under 1 waiver" in page
    assert "not met: waived" in page
    assert FIELDS["person"] in page
    assert FIELDS["reason"] in page


def forge(directory, change):
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def in_waiver(**changes):
    return lambda manifest: manifest["waivers"][0].update(changes)


def in_verdict(**changes):
    return lambda manifest: manifest["verdicts"][1].update(changes)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda manifest: manifest.update(waivers=[]), "is waived without a waiver"),
        (lambda manifest: manifest.update(waivers=2 * manifest["waivers"]), "is waived without a waiver"),
        (lambda manifest: manifest.pop("waivers"), "damaged or incomplete"),
        (in_waiver(fingerprint="0" * 64), "it is for other content"),
        (in_waiver(release="others"), "it is for another release"),
        (in_waiver(metric="leakage_detected"), "it is for another limit"),
        (in_waiver(figure=0.15), "it accepts a figure of 0.15, but the figure found is riskier"),
        (in_verdict(severity="warn"), "is not decided as recorded"),
        (in_waiver(limit=0.3), "it waives a limit of 0.3, but the policy has 0.1"),
        (in_waiver(signed_on="2001-01-01", expires_on="2001-01-02"), "it expired on 2001-01-02"),
        (in_waiver(expires_on="2999-01-01"), "days from its signature"),
        (in_waiver(signed_on="2999-01-01", expires_on="2999-01-02"), "it applies only from 2999-01-01 on"),
        (in_waiver(person=""), "its person is not a text"),
        (in_waiver(reason=None), "its reason is not a text"),
        (in_waiver(file=3), "is waived without a waiver"),
        (in_verdict(waived_by="other.yaml"), "is waived without a waiver"),
        (in_verdict(waived_by=None), "is not decided as recorded"),
        (in_verdict(value=None), "a figure without a value cannot be waived"),
        (in_verdict(value=0.01), "is not decided as recorded"),
        (in_verdict(passed=False), "is recorded as failed"),
        (lambda manifest: manifest["verdicts"][0].update(waived_by="score.yaml"), "the waivers differ from those"),
        (lambda manifest: manifest.update(created_at="2020-01-01T00:00:00+00:00"), "applies only from"),
    ],
)
def test_a_forged_waiver_does_not_verify(tmp_path, today, change, problem):
    directory = released(tmp_path, today=today)
    forge(directory, change)
    found = verify_release(directory, max_bytes=None)
    assert not found.verified
    assert problem in "; ".join(found.problems)


def test_a_waiver_beside_verdicts_that_need_none_does_not_verify(tmp_path, today):
    directory = write_release(tmp_path, TABLE, fingerprint(TABLE), RECORD)
    forge(directory, lambda manifest: manifest.update(waivers=[waiver().to_json()]))
    assert "the waivers differ from those that the verdicts name" in verify_release(directory, max_bytes=None).problems
