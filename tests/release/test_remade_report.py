"""`privacy_assets report`: the page of a verified release, made anew; nothing is made of any other directory."""

import base64
import json
import re

import pandas as pd
import pytest

from privacy_assets.cli import main
from privacy_assets.errors import InvalidTableError
from privacy_assets.release.files import write_release
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.remade_report import LEFT_OUT, PNG_START, pictures_of, remake_report
from privacy_assets.release.report import Picture, ReportMaterial
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.test_report import ADVICE, CHANGES, MARKUP, record, text_of

CELL = "Zaphodine-Quxington"
TABLE = pd.DataFrame({"age": [31, 42], MARKUP: [CELL, None]})
PICTURES = (
    Picture("Most records need <two> columns.", PNG_START + b"first", "Bar chart & legend"),
    Picture("As earlier versions wrote it", PNG_START + b"second"),
)
MATERIAL = ReportMaterial(PICTURES, column_changes=CHANGES, attribute_advice=ADVICE, notes=("A note.",))


@pytest.fixture
def release(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_release(tmp_path / "releases", TABLE, fingerprint(TABLE), record(), ("csv",), MATERIAL)


def sealed(release, **changes):
    """Change a manifest as somebody would who can compute its digest again."""
    path = release / "manifest.json"
    manifest = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(manifest | {"digest": digest_of(manifest)}))


def test_the_page_is_made_anew_with_what_the_manifest_says_and_the_pictures_of_the_released_page(release, capsys):
    before = {path.name: path.read_bytes() for path in release.iterdir()}
    assert main(["report", str(release)]) == 0
    assert {path.name: path.read_bytes() for path in release.iterdir()} == before
    page = (release.parents[1] / f"report-{release.name}.html").read_text()
    assert f"report-{release.name}.html" in capsys.readouterr().out
    released = before["report.html"].decode()
    for section in ("verdict", "limits", "meaning", "pictures"):
        found = [re.search(rf'<section id="{section}".*?</section>', each, re.DOTALL)[0] for each in (released, page)]
        assert found[0] == found[1]
    text = text_of(page)
    assert LEFT_OUT in text and "A note." not in text
    assert "Made anew by privacy_assets" in text and "Written by privacy_assets" not in text
    assert "report.html, the page that was released, and not of this one" in text
    assert "This release was refused in 1 earlier run." in text
    assert "No earlier run of this release was refused." not in text
    assert CELL not in page


def test_pictures_are_those_of_the_page_and_nothing_else_is_taken_for_one(release):
    assert pictures_of((release / "report.html").read_text()) == PICTURES
    written = base64.b64encode(b"GIF89a").decode()
    for source in (f"data:image/png;base64,{written}", "data:image/png;base64,%%%", "https://example.org/a.png", ""):
        assert pictures_of(f'<figure><img src="{source}" alt="a"><figcaption>b</figcaption></figure>') == ()


def test_the_outcome_can_be_read_by_a_program_and_a_file_is_never_overwritten(release, capsys):
    arguments = ["report", str(release), "-o", "page.html", "--json"]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["report"], told["pictures"], told["records"], told["is_release"]) == ("page.html", 2, 2, False)
    assert told["fingerprint"] == fingerprint(TABLE)
    assert main(arguments) == 1
    assert "is not overwritten" in capsys.readouterr().err
    assert main(["report", str(release), "-o", "nowhere/page.html"]) == 1
    assert "cannot be written (FileNotFoundError)" in capsys.readouterr().err


def test_nothing_is_made_of_a_directory_that_does_not_verify(release, capsys, tmp_path):
    assert main(["report", str(tmp_path), "-o", "page.html"]) == 1
    assert "there is no regular file manifest.json" in capsys.readouterr().err
    (release / "report.html").write_text(f"<p>{CELL}</p>")
    assert main(["report", str(release), "-o", "page.html"]) == 1
    told = capsys.readouterr()
    assert "the file 'report.html' was changed" in told.err
    assert CELL not in told.err + told.out
    assert not (tmp_path / "page.html").exists()


def test_nothing_is_written_into_the_release(release, capsys):
    for output in (release / "page.html", release / "report.html", release.parent / "latest" / "page.html"):
        assert main(["report", str(release.parent / "latest"), "-o", str(output)]) == 1
        assert "is in the release, which would no longer verify" in capsys.readouterr().err


def test_a_manifest_that_cannot_be_shown_is_said_without_its_content(release):
    figures = {"mpucc_assessment": {"identification_rate": CELL, "total_identified": 1, "total_syn_records": CELL}}
    sealed(release, figures=figures)
    with pytest.raises(InvalidTableError, match="No report was made") as raised:
        remake_report(release)
    assert CELL not in str(raised.value)


def test_a_release_is_shown_only_if_the_named_key_signed_it(release, capsys):
    pytest.importorskip("cryptography", reason="needs the extra `signing`")
    assert main(["keygen", "key.pem"]) == 0
    assert main(["report", str(release), "--public-key", "key.pub.pem", "-o", "page.html"]) == 1
    assert "does not verify" in capsys.readouterr().err
