"""What may be declared about a release, and what the report, the register and verification say of it."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError
from privacy_assets.release import clock
from privacy_assets.release.declaration import lacks, require_declaration
from privacy_assets.release.files import write_release
from privacy_assets.release.policy import DECLARATION, USE_CASES, Policy
from privacy_assets.release.register import write_register
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.test_files import RECORD, TABLE, edit_manifest

HTML = "<script>alert('x')</script> & <b>bold</b>"


def released(directory, record=RECORD, **declared):
    record = replace(record, declaration=require_declaration(declared))
    return write_release(directory, TABLE, fingerprint(TABLE), record, ("parquet",))


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"purpose": "x" * 100_000}, "more than 500 characters, for \\['purpose'\\]"),
        ({"purpose": "decide", "recipient": "?", "retention": "TODO: "}, "a placeholder, .* 'recipient', 'retention'"),
        ({"x" * 100_000: "y"}, "expected some of"),
        ({"purpose": "half of a \ud800 character"}, "for \\['purpose'\\]"),
        ({"purpose": "a \x1b[31m color"}, "for \\['purpose'\\]"),
        ({"sampling_fraction": 0}, "is no share"),
        ({"sampling_fraction": True}, "is no share"),
        ({"sampling_fraction": float("nan")}, "is no share"),
        ({"sampling_fraction": "0.5"}, "is no share"),
        ({"intruder_test": "Somebody tried to find colleagues"}, "names no date"),
        ({"review_by": "soon"}, "no date of the next three years"),
        ({"review_by": "2027-02-30"}, "no date of the next three years"),
        ({"review_by": datetime.now(UTC)}, "no date of the next three years"),
        ({"review_by": clock.today() + timedelta(days=1_100)}, "no date of the next three years"),
    ],
)
def test_what_is_no_declaration_is_refused_without_its_value(declared, problem):
    with pytest.raises(InvalidSettingError, match=problem) as raised:
        require_declaration(declared)
    assert len(str(raised.value)) < 2_000
    assert "\x1b" not in str(raised.value)


def test_dates_are_read_as_dates_and_as_text_and_what_is_null_is_not_declared():
    day = clock.today() + timedelta(days=1_096)
    found = require_declaration({"review_by": day, "sampling_fraction": 1, "purpose": None, "recipient": " Us \n"})
    assert found == {"recipient": "Us", "sampling_fraction": 1, "review_by": day.isoformat()}
    assert require_declaration({"review_by": day.isoformat()}) == {"review_by": day.isoformat()}
    # Definitions load after the date, too.
    assert require_declaration({"review_by": date(2020, 1, 1)}) == {"review_by": "2020-01-01"}
    assert lacks(found, ("purpose", "recipient", "review_by")) == ("purpose",)


def test_presets_for_others_demand_a_declaration():
    demanded = {name: Policy.for_use_case(name).required.declaration for name in USE_CASES}
    four = ("purpose", "recipient", "roles_decided_by", "review_by")
    outside = ("public_release", "research_sharing", "high_risk_data")
    assert demanded == {name: four if name in outside else () for name in USE_CASES}
    assert set(DECLARATION) == set(outside)
    changed = Policy.for_use_case("public_release").with_required(declaration=["purpose"])
    assert changed.changes == ("required.declaration",)


def test_markup_is_text_on_every_page(tmp_path):
    written = released(tmp_path / "people" / "synthetic", purpose=HTML, recipient_means=HTML)
    page = (written / "report.html").read_text()
    # On the first page, and in Annex A.
    assert page.count("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &lt;b&gt;bold&lt;/b&gt;") == 4
    assert "What the recipient could link, and what prevents it" in page
    assert "<script>" not in page + write_register(tmp_path)[0].read_text()


def test_a_release_whose_review_is_overdue_verifies_and_has_an_exit_code_of_its_own(tmp_path, monkeypatch, capsys):
    day = clock.today()
    written = released(tmp_path / "people" / "synthetic", review_by=day)
    assert main(["verify", str(written)]) == 0
    assert f"Review by {day}" in write_register(tmp_path)[0].read_text()
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + timedelta(days=1))
    assert main(["verify", str(written)]) == 3
    assert f"REVIEW OVERDUE: it was to be reviewed by {day}" in capsys.readouterr().out
    found = verify_release(written, max_bytes=None)
    assert (found.verified, found.is_overdue, found.review_by) == (True, True, day)
    assert f"Review overdue: was due by {day}" in write_register(tmp_path)[0].read_text()
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) - timedelta(days=1))
    assert main(["verify", str(written)]) == 0


def test_a_manifest_without_what_its_policy_demands_does_not_verify(tmp_path):
    record = replace(RECORD, policy=RECORD.policy.with_required(declaration=("purpose", "recipient")))
    written = released(tmp_path, record, purpose="Teaching statistics", recipient="Students of the course")
    edit_manifest(written, declaration={"purpose": "Teaching statistics"})
    assert "the declaration lacks recipient" in "; ".join(verify_release(written, max_bytes=None).problems)


def test_a_share_of_the_population_lowers_the_chance_in_words_and_no_limit(tmp_path):
    from privacy_assets.release.report import _chance_without_knowing
    from tests.release.test_report import limit_verdict

    chance = limit_verdict("max_reidentification_probability", 0.2, 0.2)
    said = "names the right record with a chance of at most 0.02, instead of 0.2"
    assert said in _chance_without_knowing(0.1, [chance])
    assert said in _chance_without_knowing(0.1, [limit_verdict("smallest_class", 5.0, 5)])
    assert _chance_without_knowing(0.1, []) == ""
    assert "10.0%" in (released(tmp_path, sampling_fraction=0.1) / "report.html").read_text()
