"""The commands `privacy_assets` of the documentation run as they stand there, with the files that a reader has."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from privacy_assets.cli import main
from tests.orchestration.project import CONTRACT, people, synthetic_people
from tests.test_docs import BLOCKS, PAGES, commands, run_block, what_the_reader_has

RUN_ELSEWHERE = {
    "how-to-choose.md": "tests/orchestration/component/test_comparing.py runs `compare`",
    "how-to-images.md": "tests/test_warm_up.py runs `warm-up`",
    "tutorial.md": "tests/test_quickstart.py runs the quickstart and verifies its release",
}


def commands_of(page):
    return [line for name, line in commands() if name == page and shlex.split(line)[0] == "privacy_assets"]


def run_python_of(page):
    names = {"__name__": page, **what_the_reader_has(page)}
    for place, (kind, code) in enumerate(BLOCKS[page], start=1):
        if kind == "python":
            run_block(code, f"{page}, block {place}", names)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def exits_with_0(line, capsys):
    assert main(shlex.split(line)[1:]) == 0, capsys.readouterr()
    return capsys.readouterr()


def test_single_stages_run_as_the_page_says(folder, capsys):
    Path("data").mkdir()
    people(300, 0).to_csv("data/people.csv", index=False)
    for name, table in (
        ("original", people(300, 0)),
        ("control", people(300, 2)),
        ("synthetic", synthetic_people(300, 1)),
    ):
        table.to_csv(f"{name}.csv", index=False)
    # `try` asks on a terminal: test_try.py.
    every = [line for line in commands_of("how-to-project.md") if " try " not in line]
    for line in every:
        if "draft" not in line:
            # The reader has decided it.
            Path("contract.yaml").write_text(yaml.safe_dump(CONTRACT))
        exits_with_0(line, capsys)
    assert len(every) == 5
    assert Path("anonymized.parquet").is_file()


def test_a_release_is_verified_reported_and_registered_as_the_page_says(folder, capsys):
    pytest.importorskip("cryptography", reason="needs the extra `signing`")
    run_python_of("release.md")
    main(["keygen", "officer"])
    shutil.copy("officer.pub", "officer.pem")
    capsys.readouterr()
    # The tests of object stores have their own server.
    every = [line for line in commands_of("release.md") if "s3://" not in line]
    said = [exits_with_0(line, capsys).out for line in every]
    assert [line.split()[1] for line in every] == ["verify", "report", "register"]
    assert said[0].startswith("Verified: ")
    assert Path("report.html").is_file()
    assert Path("releases/index.html").is_file()


def test_keys_are_made_and_used_as_the_page_says(folder, capsys):
    pytest.importorskip("cryptography", reason="needs the extra `signing`")
    run_python_of("signing.md")
    released = Path("releases/people/anonymized/latest")
    make, verify, verify_with_two = commands_of("signing.md")
    assert "Signed with the key" in exits_with_0(verify, capsys).out
    shutil.copytree(released.resolve(), "release")
    shutil.copy("keys/release-2026.pub.pem", "release-2026.pub.pem")
    main(["keygen", "release-2027.pem"])
    capsys.readouterr()
    assert "(release-2026.pub.pem)" in exits_with_0(verify_with_two, capsys).out
    shutil.rmtree("keys")
    Path("keys").mkdir()
    assert "keys/release-2026.pub.pem" in exits_with_0(make, capsys).out


def test_every_page_with_such_commands_is_run():
    named = {name for name, line in commands() if shlex.split(line.replace(".venv/bin/", ""))[0] == "privacy_assets"}
    written = {name for name, page in PAGES.items() if re.search(r"privacy_assets warm-up", page)}
    assert named | (written & {"how-to-images.md"}) == {"how-to-project.md", "release.md", "signing.md", *RUN_ELSEWHERE}
