"""The register of releases: complete, whatever its writers do, and without a cell."""

import hashlib
import html
import json
import os
import re
import threading
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError
from privacy_assets.release import manifest, received_files
from privacy_assets.release.files import write_release
from privacy_assets.release.register import (
    RecordedRun,
    open_refusals,
    read_entries,
    render_register,
    write_register,
)
from privacy_assets.release.signing import SIGNATURE_FILE, SigningKey, generate_key_pair, load_signer
from privacy_assets.release.verification import verify_release
from privacy_assets.release.withdrawals import RELEASES_MARK_FILE
from privacy_assets.release.withdrawing import withdraw_release
from privacy_assets.storage.durable_files import locked
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.test_report import MARKUP, Outline, limit_verdict, record, text_of

MIB = 2**20
CELL = "Zaphodine-Quxington"
TABLE = pd.DataFrame({"age": [31, 42], MARKUP: [CELL, None]})


def released(root, name="people", side="synthetic", partition=None, signer=None, **changes):
    directory = root / name / side
    directory = directory if partition is None else directory / partition
    made = record(release=name, stage=side, partition=partition, **changes)
    return write_release(directory, TABLE, fingerprint(TABLE), made, signer=signer)


def edited(written, **changes):
    """Change a manifest in place, as its recipient could."""
    path = written / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | changes))


def page_of(root, **options):
    path, _ = write_register(root, **options)
    return path.read_text()


@pytest.fixture
def root(tmp_path):
    (tmp_path / "releases").mkdir()
    return tmp_path / "releases"


def test_every_release_has_a_line_with_what_its_manifest_says_and_leads_to_its_report(root):
    figures = {
        "utility_assessment": {"utility": 0.91, "utility_lower": 0.85, "utility_upper": 0.95},
        "control": {"excess_identification_interval": [-0.01, 0.02]},
    }
    waiver = {"metric": "verbatim_copies", "person": "A. Officer", "expires_on": "2020-01-01"}
    first = released(
        root,
        figures=figures,
        verdicts=(*record().verdicts, limit_verdict("excess_identification_rate", 0.02, 0.05)),
    )
    second = released(root, "patients", partition="2026%2D01")
    edited(second, waivers=[waiver], columns_leaving_as_is=[{"column": "income"}])
    page = page_of(root)
    text = text_of(page)
    for written in (first, second):
        link = next(each for each in Outline(page).links if written.name in each)
        assert (root / Path(link.replace("%25", "%"))).resolve() == written / "report.html"
    assert "people, synthetic" in text
    assert "patients, synthetic, 2026%2D01" in text
    assert "Policy public release" in text
    assert "Released, with 1 warning" in text
    assert "privacy risk score: 0.17 (below 0.2)" in text
    assert "excess identification rate: 0.02 (below 0.05; -0.01 to 0.02)" in text
    assert "0.91 (0.85 to 0.95)" in text
    assert "verbatim copies, by A. Officer, expires 2020-01-01 (expired)" in text
    assert "income" in text
    assert "not signed" in text
    assert "files exist, content not verified" in text


def test_the_page_needs_nothing_else_and_shows_no_cell(root):
    released(root)
    page = page_of(root, refusals=[RecordedRun(MARKUP, "synthetic", None, "2026-01-02T03:04:05+00:00", (MARKUP,))])
    outline = Outline(page)
    assert CELL not in page
    assert MARKUP not in page
    assert not [tag for tag, _ in outline.tags if tag in ("script", "link", "iframe")]
    assert all(re.fullmatch(r"[\w./%-]+report\.html", each) for each in outline.links)
    assert [named["lang"] for named in outline.every("html")] == ["en"]
    assert outline.headings == sorted(outline.headings)


def test_the_latest_release_comes_first(root):
    older, newer = released(root, "a"), released(root, "b")
    edited(older, created_at="2026-03-01T12:00:00+02:00")
    edited(newer, created_at="2026-03-01T11:00:00+00:00")
    page = page_of(root)
    assert page.index(newer.name) < page.index(older.name)


def not_utf8(text):
    return text.replace("people", "pe\u00f6ple").encode("latin-1")


def with_count(number):
    return lambda text: re.sub(r'(?<="n_records": )\d+', number, text, count=1).encode()


def rewritten(**changes):
    return lambda text: json.dumps(json.loads(text) | changes).encode()


def of_a_verdict(**changes):
    def change(text):
        manifest = json.loads(text)
        manifest["verdicts"][-1] |= changes
        return json.dumps(manifest).encode()

    return change


BROKEN = {
    "cut off": (lambda _: b"{", "it is not JSON"),
    "empty": (lambda _: b"", "it is not JSON"),
    "a list": (lambda _: b"[]", "not an object"),
    "another object": (lambda _: b'{"release": 1}', "it has no manifest_version"),
    "deep list": (lambda _: b"[" * 100_000, "nested too deeply"),
    "deep object": (lambda _: b'{"a":' * 100_000, "nested too deeply"),
    "key twice": (lambda text: text.replace('"run_id"', '"run_id": "x", "run_id"', 1).encode(), "a key is repeated"),
    "NaN": (with_count("NaN"), "a number is not finite"),
    "infinite": (with_count("1e999"), "a number is not finite"),
    "not UTF-8": (not_utf8, "it is not JSON"),
    "UTF-16": (lambda text: text.encode("utf-16"), "it is not JSON"),
    "later version": (rewritten(manifest_version=9), "its version is later"),
    "unknown key": (rewritten(cells=["Zaphodine-Quxington"]), "1 unknown keys"),
    "text for a count": (rewritten(n_records="2"), "the values of n_records are invalid"),
    "count of 5,000 digits": (with_count("9" * 5_000), "damaged or incomplete"),
    "count beyond all": (rewritten(n_records=10**400), "the values of n_records are invalid"),
    "year 1 with an offset": (rewritten(created_at="0001-01-01T00:00:00+14:00"), "OverflowError"),
    "policy without keys": (rewritten(policy={}), "KeyError"),
    "changes that are a number": (rewritten(policy={"use_case": None, "changes": 5, "required": {}}), "TypeError"),
    "waiver without keys": (rewritten(waivers=[{}]), "KeyError"),
    "figures of another shape": (rewritten(figures={"utility_assessment": [1]}), "AttributeError"),
    "verdict without keys": (rewritten(verdicts=[{}]), "TypeError"),
    "verdict of a list": (of_a_verdict(value=[0.5]), "ValueError"),
    "verdict of a text": (of_a_verdict(value="0.5"), "ValueError"),
    "verdict of a boolean": (of_a_verdict(value=True), "ValueError"),
    "verdict beyond floats": (of_a_verdict(limit=10**400), "ValueError"),
    "verdict of an unknown severity": (of_a_verdict(severity=["error"]), "ValueError"),
    "verdict of an unknown direction": (of_a_verdict(direction=5), "ValueError"),
}


@pytest.mark.parametrize(("change", "problem"), BROKEN.values(), ids=BROKEN)
def test_a_damaged_manifest_has_a_row_that_says_so_and_the_rest_stands(root, change, problem):
    released(root)
    path = released(root, "broken") / "manifest.json"
    path.write_bytes(change(path.read_text()))
    text = text_of(page_of(root))
    assert problem in text
    assert text.count("unreadable manifest.json is damaged or incomplete") == 1
    assert "people, synthetic" in text
    assert "Zaphodine-Quxington" not in text


def test_damaged_manifests_have_rows_that_say_so_also_if_every_release_is_verified(root):
    released(root)
    for place, (change, _) in enumerate(BROKEN.values()):
        path = released(root, f"broken{place}") / "manifest.json"
        path.write_bytes(change(path.read_text()))
    text = text_of(page_of(root, verify_within=64 * MIB))
    assert all(problem in text for _, problem in BROKEN.values())
    assert text.count("unreadable manifest.json is damaged or incomplete") == len(BROKEN)
    assert "people, synthetic" in text
    assert "Zaphodine-Quxington" not in text


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path.with_name("report.html")),
        lambda path: path.symlink_to(path.with_name("missing")),
        lambda path: path.symlink_to(path.parent),
        lambda path: None,
    ],
    ids=["pipe", "directory", "device", "link", "broken link", "circle", "nothing"],
)
def test_what_is_no_file_in_place_of_a_manifest_has_a_row(root, make):
    released(root)
    path = released(root, "broken") / "manifest.json"
    path.unlink()
    make(path)
    text = text_of(page_of(root))
    assert text.count("there is no regular file manifest.json") == 1
    assert "people, synthetic" in text


def test_a_manifest_that_is_too_large_is_not_read(root, monkeypatch):
    released(root)
    path = released(root, "broken") / "manifest.json"
    monkeypatch.setattr(manifest, "MAX_MANIFEST_BYTES", path.stat().st_size)
    path.write_bytes(path.read_bytes() + b" ")
    text = text_of(page_of(root))
    assert text.count("manifest.json is too large for a manifest") == 1
    assert "people, synthetic" in text


def test_long_and_many_values_of_a_manifest_do_not_fill_the_page(root):
    released(root)
    written = released(root, "broken")
    waiver = {"metric": "m" * 9_000, "person": "p" * 9_000, "expires_on": "2020-01-01"}
    verdicts = json.loads((written / "manifest.json").read_text())["verdicts"]
    many = [{"column": "c" * 9_000}] * 500
    edited(
        written, release="r" * 9_000, verdicts=verdicts * 2_000, waivers=[waiver] * 2_000, columns_leaving_as_is=many
    )
    assert len(page_of(root)) < 40_000


def test_halves_of_characters_in_names_break_no_page(root):
    edited(released(root, "half"), release="\ud800")
    released(root).rename(root / os.fsdecode(b"bad-\xff"))
    text = text_of(page_of(root))
    assert "?, synthetic" in text
    assert "people, synthetic" in text


@pytest.mark.parametrize("name", ["../report.html", "/etc/passwd", "\0", "..", "a/../report.html"])
def test_a_name_that_leads_elsewhere_is_missing(root, name):
    written = released(root)
    (written.parent / "report.html").write_bytes(b"x")
    files = json.loads((written / "manifest.json").read_text())["files"]
    edited(written, files=files | {name: {"sha256": "0" * 64, "bytes": 1}})
    (entry,) = read_entries(root)
    assert entry.files == "a file is missing, or does not have the recorded size"


def test_a_directory_that_cannot_be_read_has_a_row(root, monkeypatch):
    released(root)
    listed = os.scandir

    def refuse(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    (root / "locked").mkdir()
    monkeypatch.setattr(os, "scandir", refuse)
    text = text_of(page_of(root))
    assert "the directory cannot be read (PermissionError)" in text
    assert "people, synthetic" in text


def test_a_time_of_a_refusal_without_a_zone_is_unknown(root):
    released(root)
    refused = RecordedRun("people", "synthetic", None, "2026-03-01T11:59:59", ("a",))
    (found,) = open_refusals(list(read_entries(root)), [refused])
    assert found.moment == "unknown"


@pytest.mark.parametrize("at", ["2026-03-01T11:59:59", "unknown", "", "yesterday"])
def test_a_refusal_at_an_unknown_time_stays_open_and_its_time_is_said_to_be_unknown(root, at):
    edited(released(root), created_at="2026-03-01T12:00:00+00:00")
    entries = list(read_entries(root))
    known = RecordedRun("people", "synthetic", None, "2026-03-01T12:00:01+00:00", ("known",))
    unknown = RecordedRun("people", "synthetic", None, at, ("unknown",))
    (found,) = open_refusals(entries, [unknown])
    assert (found.n_runs, found.moment, found.failed) == (1, "unknown", ("unknown",))
    (both,) = open_refusals(entries, [unknown, known])
    assert both.n_runs == 2
    assert "<td>unknown</td>" in page_of(root, refusals=[unknown])


def test_a_register_made_without_the_private_directory_keeps_the_refusals_of_the_one_before(root):
    (root / RELEASES_MARK_FILE).touch()
    odd = "<script>alert(1)</script> \"quoted\" & 'single'"
    later = RecordedRun("others", "synthetic", "a", "2999-01-01T00:00:00+00:00", (odd, "b"))
    unknown = RecordedRun("people", "anonymized", None, "yesterday", ("c",))
    before = text_of(page_of(root, refusals=[later, later, unknown]))
    assert text_of(page_of(root)) == before
    withdraw_release(released(root), "The key of the pseudonyms was lost")
    page = (root / "index.html").read_text()
    assert "<script>" not in page
    assert "others, synthetic, a 2999-01-01 00:00 UTC 2 &lt;script" in text_of(page)
    # What was released since is not refused any more.
    run = RecordedRun("people", "synthetic", None, "2020-01-01T00:00:00+00:00", ("before the release",))
    (root / "index.html").write_text(render_register([], open_refusals([], [run])))
    assert "before the release" not in page_of(root)
    assert text_of(page_of(root)).split("Refused since the last release")[1].startswith(" None.")


@pytest.mark.parametrize("content", ["[", "5", '[{"table": 1}]', "[" * 100_000, '[{"n_runs": 0}]', "null"])
def test_refusals_of_a_damaged_register_are_unknown(root, content):
    page_of(root, refusals=[])
    path = root / "index.html"
    assert '" content="[]">' in path.read_text()
    path.write_text(path.read_text().replace('" content="[]">', f'" content="{html.escape(content)}">'))
    assert "Unknown: " in page_of(root)


def test_the_last_release_and_the_last_refusal_of_a_table_are_the_latest_by_their_times(root):
    first, second = released(root), released(root)
    edited(first, created_at="2026-03-02T12:00:00+00:00")
    edited(second, created_at="2026-03-01T12:00:00+00:00")
    entries = list(read_entries(root))

    def refused(at, failed):
        return RecordedRun("people", "synthetic", None, at, (failed,))

    between = refused("2026-03-01T18:00:00+00:00", "a")
    for order in (entries, entries[::-1]):
        assert open_refusals(order, [between]) == ()
    earlier, later = refused("2026-03-03T12:00:00+00:00", "z"), refused("2026-03-04T12:00:00+00:00", "a")
    for runs in ([earlier, later], [later, earlier]):
        (found,) = open_refusals(entries, runs)
        assert (found.n_runs, found.failed) == (2, ("a",))


def test_a_report_that_is_a_link_is_not_linked_and_a_file_that_grew_is_marked(root, tmp_path):
    linked, longer = released(root, "linked"), released(root, "longer")
    (linked / "report.html").rename(tmp_path / "elsewhere.html")
    (linked / "report.html").symlink_to(tmp_path / "elsewhere.html")
    with (longer / "synthetic.parquet").open("ab") as file:
        file.write(b"\0")
    by_table = {entry.table: entry for entry in read_entries(root)}
    assert by_table["linked, synthetic"].link == ""
    for table in ("linked, synthetic", "longer, synthetic"):
        assert by_table[table].files == "a file is missing, or does not have the recorded size"
        assert by_table[table].files_kind == "refused"
    assert by_table["longer, synthetic"].link.endswith(f"{longer.name}/report.html")


def test_files_that_are_missing_or_of_another_size_are_marked_and_verify_reads_them(root):
    lost, same_size = released(root, "lost"), released(root, "same_size")
    (lost / "synthetic.parquet").unlink()
    data = bytearray((same_size / "synthetic.parquet").read_bytes())
    data[10] ^= 1
    (same_size / "synthetic.parquet").write_bytes(data)
    by_table = {entry.table: entry for entry in read_entries(root)}
    assert by_table["lost, synthetic"].files_kind == "refused"
    assert by_table["same_size, synthetic"].files == "files exist, content not verified"
    verified = {entry.table: entry for entry in read_entries(root, verify_within=64 * MIB)}
    assert verified["same_size, synthetic"].files.startswith("NOT verified: ")
    released(root, "good")
    assert {entry.table: entry.files for entry in read_entries(root, verify_within=64 * MIB)}[
        "good, synthetic"
    ] == "verified"


HARMFUL = ("more zeros than the memory", "a file above the limit", "a hidden column")


@pytest.mark.parametrize("kind", HARMFUL)
def test_verify_reads_a_harmful_release_within_limits_and_the_others_all_the_same(root, kind, monkeypatch):
    """In this process, a batch of the first would take 500 MB."""
    harmed, limit = released(root, "harmed"), 64 * MIB
    released(root, "sound")
    monkeypatch.setattr(received_files, "BYTES_OF_LIBRARIES", 0)
    path, told = harmed / "synthetic.parquet", "within the limits of this verification, 64 MiB"
    if kind == "more zeros than the memory":
        zeros = pa.DictionaryArray.from_arrays(np.zeros(300_000, np.int8), ["0" * 1_000])
        pq.write_table(pa.table({"age": zeros, MARKUP: zeros}), path, store_schema=False)
    elif kind == "a file above the limit":
        limit, told = 10, "has more than 10 bytes, the limit of this verification"
    else:
        TABLE.assign(name=CELL).set_index("name").to_parquet(path)
        told = "does not have the recorded columns without an index"
    data = path.read_bytes()
    described = json.loads((harmed / "manifest.json").read_text())
    described["files"][path.name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    edited(harmed, files=described["files"], digest=manifest.digest_of(described))
    by_table = {entry.table: entry for entry in read_entries(root, verify_within=limit)}
    assert told in by_table["harmed, synthetic"].files
    assert by_table["harmed, synthetic"].files_kind == "refused"
    assert (by_table["sound, synthetic"].files == "verified") == (limit > 10)
    assert CELL not in page_of(root, verify_within=limit)


def test_the_command_verifies_within_the_limit_that_it_is_given(root, capsys):
    released(root)
    page = root / "index.html"
    assert main(["register", str(root), "--verify"]) == 0
    assert "NOT verified" not in page.read_text()
    assert main(["register", str(root), "--verify", "--max-gib", "0.000001"]) == 0
    assert "the limit of this verification" in page.read_text()
    assert main(["register", str(root), "--max-gib", "0.000001"]) == 0
    assert "content not verified" in page.read_text()
    capsys.readouterr()


def test_a_signature_is_shown_and_checked_with_a_public_key(root, tmp_path):
    pytest.importorskip("cryptography", reason="needs the extra `sign`")
    private, public, key_id = generate_key_pair(tmp_path / "key.pem")
    _, stranger, _ = generate_key_pair(tmp_path / "other.pem")
    written = released(root, signer=load_signer(SigningKey(path=str(private))))
    assert f"signed with {key_id[:12]}…, not checked" in page_of(root)
    assert f"signed with {key_id[:12]}… (" in page_of(root, public_keys=[public])
    assert "expected one of" in page_of(root, public_keys=[stranger])
    signature = (written / SIGNATURE_FILE).read_bytes()
    (written / SIGNATURE_FILE).unlink()
    assert "manifest and signature name different keys" in page_of(root)
    (written / SIGNATURE_FILE).write_bytes(signature)
    edited(written, n_records=3)
    assert "does not match this manifest.json" in page_of(root)


def test_the_trend_has_a_point_for_each_release(root):
    for value in (0.1, 0.15, 0.05):
        condition, _, copies = record().verdicts
        outcomes = (condition, limit_verdict("privacy_risk_score", value, 0.2), copies)
        released(root, verdicts=outcomes)
    page = page_of(root)
    # The caption says what the picture shows, so that nobody hears it twice.
    assert "<strong>privacy risk score</strong>: 0.1 to 0.05 over 3 releases; limit now 0.2</figcaption>" in page
    pictures = set(re.findall(r"<svg [^>]*>", page))
    assert pictures == {'<svg viewBox="0 0 220 48" width="220" height="48" aria-hidden="true">'}
    found, limits = (re.search(rf'class="{kind}" points="([^"]*)"', page)[1].split() for kind in ("found", "limit"))
    heights = [float(point.split(",")[1]) for point in found]
    # Downwards in SVG: the second figure is the largest, the limit is above all.
    assert heights[1] < heights[0] < heights[2]
    assert {float(point.split(",")[1]) for point in limits} == {4.0}


def test_only_refusals_after_the_last_release_are_open(root):
    written = released(root)
    edited(written, created_at="2026-03-01T12:00:00+00:00")
    entries = list(read_entries(root))

    def refused(at, name="people", failed="b"):
        return RecordedRun(name, "synthetic", None, at, (failed,))

    before, after = refused("2026-03-01T11:59:59+00:00", failed="a"), refused("2026-03-01T12:00:01+00:00")
    later, never = refused("2026-04-01T12:00:01+00:00", failed="c"), refused("2026-01-01T00:00:00+00:00", "patients")
    assert open_refusals(entries, [before]) == ()
    found = {each.table: each for each in open_refusals(entries, [before, after, later, never])}
    assert found["people, synthetic"].n_runs == 2
    assert found["people, synthetic"].failed == ("c",)
    assert found["patients, synthetic"].n_runs == 1


def test_the_command_makes_it_from_manifests_alone(root, capsys):
    released(root)
    assert main(["register", str(root)]) == 0
    assert "lists 1 release." in capsys.readouterr().out
    assert "made only from manifests" in (root / "index.html").read_text()
    assert main(["register", str(root / "missing")]) == 1
    assert "is not a directory" in capsys.readouterr().out


def test_an_empty_directory_has_a_register(root):
    assert "Nothing has been released" in page_of(root)


def test_the_page_of_somebody_else_is_not_replaced(root):
    (root / "index.html").write_text("<h1>Our site</h1>")
    with pytest.raises(InvalidSettingError, match="not a register of this package"):
        write_register(root)
    assert (root / "index.html").read_text() == "<h1>Our site</h1>"


def test_a_link_is_not_followed_out_of_the_directory(root, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    released(elsewhere, "secret")
    (root / "linked").symlink_to(elsewhere)
    assert "secret" not in page_of(root)


def test_writers_at_the_same_time_leave_a_whole_page_with_every_release(root):
    """Each of many threads releases a table and writes the register; readers meanwhile see whole pages only."""
    pages, ended, problems = [], threading.Event(), []

    def read():
        while not ended.is_set():
            if (root / "index.html").exists():
                pages.append((root / "index.html").read_text())

    def write(number):
        try:
            if number % 2:
                released(root, f"table{number}")
            write_register(root, refusals=[])
        except BaseException as error:  # noqa: BLE001 - a thread has nobody else to tell
            problems.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    writers = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    ended.set()
    reader.join()
    assert problems == []
    assert all(page.endswith("</html>") for page in pages)
    final = (root / "index.html").read_text()
    assert all(f"table{number}, synthetic" in final for number in range(1, 12, 2))
    assert not list(root.glob(".partial-*"))


def test_a_writer_that_never_ends_is_not_waited_for_forever(root):
    with locked(root), pytest.raises(InvalidSettingError, match="Another process has been writing the register"):
        write_register(root, seconds_to_wait=0.1)


def test_a_writer_that_fails_leaves_the_earlier_page(root, monkeypatch):
    released(root)
    earlier = page_of(root)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        write_register(root)
    assert (root / "index.html").read_text() == earlier
    assert not list(root.glob(".partial-*"))


def test_a_thousand_releases_have_a_thousand_lines(root):
    released(root)
    (entry,) = read_entries(root)
    many = [replace(entry, table=f"table{number % 50}, synthetic") for number in range(1_000)]
    page = render_register(many, (), date(2026, 1, 1))
    assert page.count('<th scope="row">') == 1_000
    assert page.count("<svg") == 50 * 2


def replaced_by_a_link(written, elsewhere):
    written.rename(elsewhere)
    written.symlink_to(elsewhere)


def replaced_by_a_pipe(written, elsewhere):
    written.rename(elsewhere)
    os.mkfifo(written)


def replaced_by_a_file(written, elsewhere):
    written.rename(elsewhere)
    written.write_text("not a directory")


def replaced_above(written, elsewhere):
    written.parent.rename(elsewhere)
    written.parent.symlink_to(elsewhere)


@pytest.mark.parametrize("change", [replaced_by_a_link, replaced_by_a_pipe, replaced_by_a_file, replaced_above])
def test_what_is_no_directory_in_the_place_of_a_release_has_a_line_that_says_so(root, tmp_path, change):
    written = released(root)
    change(written, tmp_path / "elsewhere")
    place = (written.parent if change is replaced_above else written).relative_to(root).as_posix()
    (entry,) = read_entries(root)
    assert (entry.table, entry.kind, entry.link) == (place, "refused", "")
    assert "it is not the directory of a release, but a link or a file" in text_of(page_of(root))


def test_a_link_to_the_parts_of_a_release_is_seen(root, tmp_path):
    many = TABLE.iloc[[0, 1] * 1_200].reset_index(drop=True)
    directory = root / "people" / "synthetic"
    written = write_release(directory, many, fingerprint(many), record(), rows_per_part=1_000)
    (before,) = read_entries(root)
    (written / "synthetic.parquet").rename(tmp_path / "elsewhere")
    (written / "synthetic.parquet").symlink_to(tmp_path / "elsewhere")
    (after,) = read_entries(root)
    assert (before.files_kind, after.files_kind) == ("", "refused")
    assert not verify_release(written, max_bytes=None).verified
