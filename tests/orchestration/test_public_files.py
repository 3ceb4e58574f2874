"""Two machines: a recipient without the project verifies approval, withdrawal and attestation with public files."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from privacy_assets.cli import main
from privacy_assets.release.signing import SigningKey, generate_key_pair
from tests.orchestration.project import Project
from tests.orchestration.test_approvals import POLICY, STATEMENT, Officers, definitions, released, released_again

RECIPIENT = Path(__file__).with_name("recipient.py")
REASON = "The key of the pseudonyms was lost"
CARDS = {"croissant.json", "dcat.jsonld", "attestation.json", "attestation-figures.json"}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Return a directory with the public files of a release that was approved, published, and later withdrawn."""
    root = tmp_path_factory.mktemp("first-machine")
    project = Project(root)
    project.write_tables()
    officers = Officers(project, "Ada", "Grace")
    private, public, _ = generate_key_pair(root / "release.pem")
    settings = {"signing": SigningKey(private), "policy": POLICY.with_required(signature=True)}
    with pytest.MonkeyPatch.context() as patch:
        project.run(definitions(project, officers, **settings))
        waiting = {path.name for path in officers.waiting.iterdir()}
        assert officers.decide(patch, "Ada") == 0
    assert released_again(project, officers, **settings).success
    assert not waiting & CARDS
    (directory,) = released(project)
    assert {path.name for path in directory.iterdir()} >= CARDS

    there = tmp_path_factory.mktemp("second-machine")
    shutil.copytree(directory, there / "release")
    for file in (public, officers.file):
        shutil.copy(file, there)
    assert main(["withdraw", str(directory), "--reason", REASON, "--key", str(private)]) == 0
    shutil.copy(project.root / "releases" / "withdrawn.jsonl", there)
    shutil.rmtree(root)
    return there


@pytest.fixture
def received(published, tmp_path):
    return Path(shutil.copytree(published, tmp_path / "received"))


def found_out(received):
    files = [str(received / name) for name in ("release", "release.pub.pem", "approvers.yaml", "withdrawn.jsonl")]
    run = subprocess.run(
        [sys.executable, "-P", str(RECIPIENT), *files], cwd=received, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


RIGHT = {"attested": True, "figures": True, "approved": ["Ada"], "withdrawn": REASON}


def test_a_recipient_without_the_project_and_the_package_finds_out_everything(received, capsys):
    assert found_out(received) == RIGHT
    # The package says the same.
    keys = ["--public-key", str(received / "release.pub.pem"), "--approvers", str(received / "approvers.yaml")]
    assert main(["verify", str(received / "release"), *keys]) == 1
    assert REASON in capsys.readouterr().out
    (received / "withdrawn.jsonl").unlink()
    assert main(["verify", str(received / "release"), *keys]) == 0
    assert STATEMENT in capsys.readouterr().out


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new", "differs"),
    [
        ("release/report.html", "Teaching", "Selling", {"attested": False, "figures": False}),
        ("release/croissant.json", "Teaching", "Selling", {"attested": False, "figures": False}),
        ("release/attestation.json", '"keyid": "', '"keyid": "0', {"attested": False}),
        ("withdrawn.jsonl", "pseudonyms", "institute", {"withdrawn": "the list was edited"}),
        ("approvers.yaml", "name: Ada", "name: Eve", {"approved": []}),
        (
            "release/manifest.json",
            "Very small risk",
            "Rather small risk",
            {"attested": False, "figures": False, "approved": [], "withdrawn": None},
        ),
    ],
)
def test_what_was_edited_is_found(received, file, old, new, differs):
    edit(received / file, old, new)
    assert found_out(received) == RIGHT | differs
