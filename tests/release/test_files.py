import hashlib
import json
import shutil
from dataclasses import replace

import pandas as pd
import pytest

from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.release import files as release_files
from privacy_assets.release.files import ReleaseRecord, require_formats, write_release
from privacy_assets.release.gate import Verdict
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.received_checks import _verdict_problems
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.fingerprint import fingerprint

TABLE = pd.DataFrame({"age": [31, 42], "plan": ["free", None]})
RECORD = ReleaseRecord(
    release="people",
    stage="synthetic",
    partition=None,
    run_id="run",
    policy=Policy((Limit("privacy_risk_score", 0.1),)),
    verdicts=(
        Verdict("synthetic_is_as_recorded", True, "error", "the stored content is what the run recorded"),
        Verdict(
            "privacy_risk_score_is_below_its_limit", True, "error", "0.05", "", "privacy_risk_score", 0.05, 0.1, "below"
        ),
    ),
    settings={"split": {"seed": 0}},
    figures={"mpucc_assessment": {"privacy_risk_score": 0.05}},
    columns=[{"column": "age", "role": "quasi_identifier"}, {"column": "plan", "role": "other"}],
    refusals_before=2,
)


def write(directory, table=TABLE, record=RECORD, formats=("parquet", "csv")):
    return write_release(directory, table, fingerprint(table), record, formats)


def test_a_release_verifies_and_its_manifest_tells_why_it_was_admitted(tmp_path):
    written = write(tmp_path / "people")
    assert verify_release(written, max_bytes=None).verified
    assert verify_release(tmp_path / "people" / "latest", max_bytes=None).verified
    assert sorted(path.name for path in written.iterdir()) == [
        "croissant.json",
        "dcat.jsonld",
        "manifest.json",
        "report.html",
        "synthetic.csv",
        "synthetic.parquet",
    ]
    manifest = json.loads((written / "manifest.json").read_text())
    assert manifest["fingerprint"] == fingerprint(TABLE)
    assert manifest["policy"]["limits"][0]["value"] == 0.1
    assert manifest["verdicts"][1]["value"] == 0.05
    assert manifest["refusals_before"] == 2
    assert manifest["run_id"] == "run"
    assert {"python", "privacy-assets", "pandas", "numpy", "pyarrow"} == set(manifest["versions"])
    assert (written / "synthetic.csv").read_text() == "age,plan\n31,free\n42,\n"


def test_released_files_can_be_read_by_others(tmp_path):
    written = write(tmp_path / "people")
    assert written.stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o777 for path in written.iterdir()} == {0o644}


def test_an_earlier_release_stays_and_latest_points_to_the_new_one(tmp_path):
    first = write(tmp_path)
    second = write(tmp_path, TABLE.assign(age=[1, 2]))
    assert first != second
    assert verify_release(first, max_bytes=None).verified
    assert (tmp_path / "latest").resolve() == second


def append_byte(path):
    path.write_bytes(path.read_bytes() + b" ")


def hide_manifest(directory):
    (directory / "manifest.json").unlink()
    (directory / "manifest.json").mkdir()


def name_a_long_file(directory):
    files = json.loads((directory / "manifest.json").read_text())["files"]
    edit_manifest(directory, files=files | {"x" * 5_000: files["synthetic.csv"]})


def record_a_huge_value(directory):
    condition, verdict = json.loads((directory / "manifest.json").read_text())["verdicts"]
    edit_manifest(directory, verdicts=[condition, verdict | {"value": 10**400}])


def edit_manifest(directory, **changes):
    path = directory / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def swap_table(directory, data=None):
    if data is None:
        data = TABLE.assign(age=[9, 9]).to_parquet(index=False)
    (directory / "synthetic.parquet").write_bytes(data)
    files = json.loads((directory / "manifest.json").read_text())["files"]
    files["synthetic.parquet"] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    edit_manifest(directory, files=files)


def claim_a_preset(directory):
    policy = json.loads((directory / "manifest.json").read_text())["policy"]
    edit_manifest(directory, policy=policy | {"use_case": "public_release"})


def fail_verdict(directory):
    condition, verdict = json.loads((directory / "manifest.json").read_text())["verdicts"]
    edit_manifest(directory, verdicts=[condition, verdict | {"value": 0.4}])


def forget_conditions(directory):
    edit_manifest(directory, verdicts=json.loads((directory / "manifest.json").read_text())["verdicts"][1:])


def loosen(directory):
    policy = json.loads((directory / "manifest.json").read_text())["policy"]
    limits = [limit | {"severity": "warn"} for limit in policy["limits"]]
    edit_manifest(directory, policy=policy | {"limits": limits})


def drop_csv(directory):
    (directory / "synthetic.csv").unlink()
    files = json.loads((directory / "manifest.json").read_text())["files"]
    del files["synthetic.csv"]
    edit_manifest(directory, files=files)


def drop_report(directory):
    (directory / "report.html").unlink()
    files = json.loads((directory / "manifest.json").read_text())["files"]
    del files["report.html"]
    edit_manifest(directory, files=files)


def link_outside(directory):
    (directory / "synthetic.parquet").rename(directory.parent / "elsewhere.parquet")
    (directory / "synthetic.parquet").symlink_to(directory.parent / "elsewhere.parquet")


def forget(key):
    def damage(directory):
        path = directory / "manifest.json"
        manifest = json.loads(path.read_text())
        del manifest[key]
        path.write_text(json.dumps(manifest))

    return damage


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda directory: append_byte(directory / "synthetic.csv"), "'synthetic.csv' was changed"),
        (lambda directory: append_byte(directory / "synthetic.parquet"), "'synthetic.parquet' was changed"),
        (lambda directory: (directory / "synthetic.csv").unlink(), "'synthetic.csv' is missing"),
        (
            lambda directory: (directory / "synthetic.parquet").write_bytes(b"x"),
            "'synthetic.parquet' was changed",
        ),
        (lambda directory: swap_table(directory, b"SENTINEL"), "cannot be read as a table"),
        (lambda directory: (directory / "extra.csv").write_text("x"), "1 files are not listed in the manifest"),
        (lambda directory: (directory / "manifest.json").unlink(), "no regular file manifest.json"),
        (lambda directory: (directory / "manifest.json").write_text("{"), "damaged or incomplete"),
        (lambda directory: (directory / "manifest.json").write_text("[]"), "damaged or incomplete"),
        (lambda directory: edit_manifest(directory, fingerprint="0" * 64), "recorded fingerprint"),
        (lambda directory: edit_manifest(directory, n_records=7), "recorded columns and number"),
        (lambda directory: edit_manifest(directory, verdicts=[]), "'privacy_risk_score' is not decided as recorded"),
        (lambda directory: edit_manifest(directory, policy={}, verdicts=[]), "damaged or incomplete"),
        (forget_conditions, "no condition on the evidence"),
        (loosen, "damaged or incomplete"),
        (lambda directory: append_byte(directory / "report.html"), "'report.html' was changed"),
        (lambda directory: (directory / "report.html").unlink(), "'report.html' is missing"),
        (drop_report, "does not list the files of its formats and its report"),
        (drop_csv, "does not list the files of its formats"),
        (link_outside, "'synthetic.parquet' is missing"),
        *(
            (forget(key), "damaged or incomplete")
            for key in ("run_id", "settings", "created_at", "versions", "partition")
        ),
        (hide_manifest, "no regular file manifest.json"),
        (name_a_long_file, "x' is missing"),
        (record_a_huge_value, "a recorded verdict is invalid"),
        (swap_table, "recorded fingerprint"),
        (fail_verdict, "'privacy_risk_score' is not decided as recorded"),
        (claim_a_preset, "the policy differs from the preset that it names"),
    ],
)
def test_a_release_that_was_tampered_with_does_not_verify(tmp_path, damage, problem, capsys):
    written = write(tmp_path)
    damage(written)
    found = verify_release(written, max_bytes=None)
    assert not found.verified
    assert problem in "; ".join(found.problems)
    assert main(["verify", str(written)]) == 1
    assert "SENTINEL" not in capsys.readouterr().out


def write_anonymized(directory):
    """Release records in classes of two people and up."""
    ages = [20, 20, 21, 21, 30, 30, 31, 31]
    source = pd.DataFrame({"age": ages, "illness": list("abcabcab"), "person": [1, 1, 2, 2, 3, 3, 4, 4]})
    found = anonymize(source, quasi_identifiers=["age"], sensitive=["illness"], k=2, subject="person")
    people = source["person"].take(found.members["row"]).reset_index(drop=True)
    known = ["age", "age_low", "age_high"]
    report = verify_anonymity(found.table.assign(person=people), known, ["illness"], subject="person")
    limit = Limit("smallest_class", 2)
    verdict = Verdict(limit.check_name, True, "error", "2", "", "smallest_class", report.k_people, 2, "at_least")
    share = Limit("share_in_homogeneous_classes", 0.99)
    certain = Verdict(share.check_name, True, "warn", "0", "", share.metric, report.share_in_homogeneous_classes, 0.99)
    record = replace(
        RECORD,
        stage="anonymized",
        policy=Policy((limit, share)),
        verdicts=(RECORD.verdicts[0], verdict, certain),
        settings={"anonymized": found.settings},
        figures={"anonymity": report.to_header(), "statistics": found.stats, "model": found.model.to_json()},
        columns=[
            *({"column": name, "role": "quasi_identifier"} for name in known),
            {"column": "illness", "role": "sensitive"},
        ],
    )
    return write_release(directory, found.table, fingerprint(found.table), record)


@pytest.fixture
def anonymized_release(tmp_path):
    """A release of records in classes of two people and up, and a way to forge its manifest."""
    written = write_anonymized(tmp_path)
    manifest = (written / "manifest.json").read_text()

    def problems_of(*path, forged):
        changed = json.loads(manifest)
        part = changed
        for key in path[:-1]:
            part = part[key]
        assert part[path[-1]] != forged
        part[path[-1]] = forged
        (written / "manifest.json").write_text(json.dumps(changed))
        return "; ".join(verify_release(written, max_bytes=None).problems)

    assert verify_release(written, max_bytes=None).verified
    return problems_of


@pytest.mark.parametrize(
    ("path", "forged", "problem"),
    [
        (("figures", "anonymity", "sensitive", "illness", "alpha"), 0.1, "alpha of 'illness'"),
        (("figures", "anonymity", "sensitive", "illness", "beta"), 0.1, "beta of 'illness'"),
        (("figures", "anonymity", "sensitive", "illness", "enhanced_beta"), 0.1, "enhanced_beta of 'illness'"),
        (("figures", "anonymity", "sensitive", "illness", "delta"), 0.1, "delta of 'illness'"),
        (("figures", "anonymity", "sensitive", "illness", "l_recursive_c", "2"), 0.1, "l_recursive_c of 'illness'"),
        (("figures", "anonymity", "sensitive"), {}, "sensitive of the table"),
        (("figures", "anonymity", "class_sizes", "mean"), 9.0, "class_sizes of the table"),
        (("figures", "anonymity", "n_rows"), 80, "n_rows of the table"),
        (("figures", "anonymity", "k_people"), None, "people are not counted as the settings require"),
        (("figures", "anonymity", "class_people"), None, "people are not counted as the settings require"),
        (("settings", "anonymized", "subject"), None, "people are not counted as the settings require"),
        (("figures", "anonymity", "class_people", "largest"), 99, "people in the classes are impossible"),
        (("figures", "anonymity", "k_people"), 99, "more people are recorded"),
        (("figures", "statistics", "n_rows"), 80, "statistics are impossible"),
        (("figures", "statistics", "n_suppressed"), -8, "statistics are impossible"),
        (("figures", "statistics", "suppressed_share"), 0.5, "statistics are impossible"),
        (("figures", "statistics", "information_loss"), 1.5, "statistics are impossible"),
        (("figures", "statistics", "certainty_penalty", "age"), -0.5, "statistics are impossible"),
        (("figures", "statistics"), {}, "damaged or incomplete"),
        (("figures", "model"), {}, "the model does not describe"),
        (("figures", "model", "illness"), {"kind": "exact", "column": "wealth"}, "the model does not describe"),
    ],
)
def test_what_is_recorded_of_an_anonymized_release_is_compared_with_its_table(
    anonymized_release, path, forged, problem
):
    assert problem in anonymized_release(*path, forged=forged)


def test_the_command_verifies_a_release(tmp_path, capsys):
    assert main(["verify", str(write(tmp_path))]) == 0
    assert "2 records" in capsys.readouterr().out


def test_a_table_that_is_not_the_admitted_content_is_never_written(tmp_path):
    with pytest.raises(InvalidTableError, match="differs from the content that the gate admitted"):
        write_release(tmp_path, TABLE, "another fingerprint", RECORD)
    refused = replace(RECORD, verdicts=(replace(RECORD.verdicts[0], passed=False), RECORD.verdicts[1]))
    with pytest.raises(InvalidTableError, match="differs from the content that the gate admitted"):
        write_release(tmp_path, TABLE, fingerprint(TABLE), refused)
    with pytest.raises(InvalidTableError, match="differs from the content that the gate admitted"):
        write_release(tmp_path, TABLE, fingerprint(TABLE), replace(RECORD, verdicts=()))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["write_json", "verify_release", "sync_directory"])
def test_a_failure_while_writing_leaves_the_earlier_release_and_nothing_else(tmp_path, monkeypatch, step):
    first = write(tmp_path)

    def broken(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(release_files, step, broken)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, TABLE.assign(age=[1, 2]))
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([first.name, "latest"])
    assert verify_release(tmp_path / "latest", max_bytes=None).verified


def test_what_a_killed_process_left_behind_is_removed_by_the_next_release(tmp_path):
    abandoned = tmp_path / ".partial-abandoned"
    abandoned.mkdir()
    shutil.copy(__file__, abandoned / "synthetic.parquet")
    (tmp_path / ".partial-latest-abandoned").symlink_to("nowhere")
    written = write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([written.name, "latest"])


@pytest.mark.parametrize("formats", [["xlsx"], "csv", ["parquet", "json"]])
def test_an_unknown_format_is_refused(formats):
    with pytest.raises(InvalidSettingError, match="expected a list with some of"):
        require_formats(formats)


def test_what_no_fingerprint_covers_is_not_written(tmp_path):
    table = TABLE.assign(plan=pd.Categorical(["free", None], categories=["free", "SENTINEL of an original"]))
    table.attrs = {"originals": "SENTINEL"}
    written = write(tmp_path, table)
    assert b"SENTINEL" not in (written / "synthetic.parquet").read_bytes()


def test_releases_of_several_processes_wait_for_each_other(tmp_path):
    import concurrent.futures

    tables = [TABLE.assign(age=[number, number]) for number in range(8)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        written = list(pool.map(lambda table: write(tmp_path, table), tables))
    assert len(set(written)) == 8
    assert all(verify_release(path, max_bytes=None).verified for path in [*written, tmp_path / "latest"])


def test_a_place_without_room_for_the_link_is_refused_before_anything_is_published(tmp_path):
    (tmp_path / "latest").mkdir()
    with pytest.raises(InvalidTableError, match="not a link to a release"):
        write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["latest"]


def test_files_can_be_read_by_others_whatever_the_umask(tmp_path):
    import os

    previous = os.umask(0o077)
    try:
        written = write(tmp_path)
    finally:
        os.umask(previous)
    assert {path.stat().st_mode & 0o777 for path in written.iterdir()} == {0o644}


def test_a_loosened_preset_that_is_not_said_to_be_changed_does_not_verify():
    for value, problem in ((None, []), (0.5, ["the policy differs from the preset that it names"])):
        preset = Policy.for_use_case("research_sharing")
        policy = preset if value is None else preset.with_limit(Limit("share_in_homogeneous_classes", value))
        manifest = {
            "stage": "synthetic",
            "policy": json.loads(json.dumps(policy.to_json())) | {"changes": []},
            "verdicts": [],
            "waivers": [],
            "created_at": "2026-01-01T00:00:00+00:00",
            "fingerprint": "0" * 64,
        }
        found = _verdict_problems(manifest)
        assert [each for each in found if "preset" in each] == problem
