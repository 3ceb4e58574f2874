import json
import os
import re
import shutil
import subprocess
import sys

import dagster as dg
import pytest

from privacy_assets.cli import main
from privacy_assets.tables.release_files import verify_release
from tests.shared_data import REPOSITORY

pytest.importorskip("statsmodels", reason="needs the extra `examples`")


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    """Run the quickstart once, as a user does, in a directory of its own."""
    directory = tmp_path_factory.mktemp("quickstart")
    shutil.copy(REPOSITORY / "dagster.yaml", directory)
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    run = subprocess.run(
        [sys.executable, "-m", "privacy_assets.cli", "quickstart"],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return directory, run


def test_the_quickstart_ends_and_says_where_the_release_is_and_what_refused_the_other(quickstart):
    directory, run = quickstart
    assert run.returncode == 0, run.stderr[-3000:]
    released = re.findall(r"RELEASED: (\S+)", run.stdout)
    assert len(released) == 1
    assert "rand_hie_copula" in released[0]
    assert verify_release(released[0]).verified
    cart = run.stdout.split("=== rand_hie_cart ===")[1]
    assert re.search(r"REFUSED by no_leakage_is_detected: .*expected", cart)
    assert "Advice: " in cart
    assert not (directory / "releases" / "rand_hie_cart").exists()


def test_the_release_is_what_its_manifest_says_and_the_command_verifies_it(quickstart, capsys):
    directory, _ = quickstart
    latest = directory / "releases" / "rand_hie_copula" / "synthetic" / "latest"
    assert main(["verify", str(latest)]) == 0
    assert "4,730 records" in capsys.readouterr().out
    manifest = json.loads((latest / "manifest.json").read_text())
    assert manifest["policy"]["use_case"] == "internal_analytics"
    assert "person_id" not in [column["column"] for column in manifest["columns"]]


def test_tables_between_the_stages_are_private(quickstart):
    directory, _ = quickstart
    private = directory / ".dagster" / "private"
    assert {path.stat().st_mode & 0o077 for path in [private, *private.rglob("*")]} == {0}


def test_the_definitions_are_valid_and_hold_both_releases():
    from privacy_assets.definitions import defs

    dg.Definitions.validate_loadable(defs)
    keys = {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}
    stages = ["source", "original", "control", "synthetic", "preprocessed", "mpucc_assessment", "synthetic_release"]
    assert keys == {f"{name}/{stage}" for name in ("rand_hie_copula", "rand_hie_cart") for stage in stages}
    checks = {key.name for key in defs.resolve_asset_graph().asset_check_keys}
    assert checks == {
        "source_keeps_its_contract",
        "no_person_is_on_both_sides",
        "synthetic_keeps_the_contract",
        "privacy_risk_score_is_below_its_limit",
        "no_leakage_is_detected",
        "mpucc_assessment_settings_meet_the_policy",
        "release_gate",
    }


def test_outside_of_a_project_the_quickstart_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    assert main(["quickstart"]) == 1
    assert "no dagster.yaml" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
