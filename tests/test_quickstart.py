import json
import os
import re
import shutil
import subprocess
import sys

import dagster as dg
import pandas as pd
import pytest

from privacy_assets.cli import main
from privacy_assets.examples.rand_hie import BANDS, load_rand_hie
from privacy_assets.release.verification import verify_release
from tests.extras import NEEDS_DP
from tests.shared_data import REPOSITORY

pytest.importorskip("statsmodels", reason="needs the extra `examples`")


@pytest.fixture(scope="module")
def quickstart(made_once):
    """Run the quickstart once, as a user does, in a directory of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}

    def run_it(directory):
        shutil.copy(REPOSITORY / "dagster.yaml", directory)
        command = [sys.executable, "-m", "privacy_assets.cli", "quickstart"]
        run = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
        printed = [run.returncode, run.stdout, run.stderr]
        (directory.parent / "printed-by-the-quickstart.json").write_text(json.dumps(printed))

    directory = made_once.directory("quickstart", run_it)
    printed = json.loads((directory.parent / "printed-by-the-quickstart.json").read_text())
    return directory, subprocess.CompletedProcess([], *printed)


def test_the_quickstart_ends_and_says_where_the_release_is_and_what_refused_the_other(quickstart):
    directory, run = quickstart
    assert run.returncode == 0, run.stderr[-3000:]
    released = re.findall(r"RELEASED: (\S+)", run.stdout)
    assert [name.split("/releases/")[1].split("/")[:2] for name in released] == [
        ["rand_hie_copula", "synthetic"],
        ["rand_hie_records", "anonymized"],
    ]
    assert all(verify_release(directory).verified for directory in released)
    cart = run.stdout.split("=== rand_hie_cart ===")[1].split("=== rand_hie_records ===")[0]
    assert re.search(r"REFUSED by no_leakage_is_detected: .*expected", cart)
    assert "leakage_detected is yes; expected no (inference by claims, inference by the nearest record" in cart
    assert "Advice: " in cart
    assert not (directory / "releases" / "rand_hie_cart").exists()


def test_the_tutorial_shows_what_is_printed(quickstart):
    _, run = quickstart
    page = (REPOSITORY / "docs" / "tutorial.md").read_text()
    shown = next(block for block in re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL) if "=== rand_hie" in block)
    printed = [re.sub(r"\S*/releases/", "releases/", line) for line in run.stdout.splitlines()]
    for line in filter(None, shown.splitlines()):
        words = [re.escape(part.strip()) for part in line.split("...")]
        assert any(re.search(".*".join(words), each) for each in printed), line


def test_the_quickstart_says_how_far_its_stages_are(quickstart):
    _, run = quickstart
    # Which stage takes more than two seconds depends on the machine; the test of disclosure takes longest of all.
    lines = [line for line in run.stdout.splitlines() if re.search(r"\d of [\d,]+ done$", line)]
    assert lines, run.stdout
    assert all(line.startswith("          ") for line in lines)


def test_the_release_is_what_its_manifest_says_and_the_command_verifies_it(quickstart, capsys):
    directory, _ = quickstart
    latest = directory / "releases" / "rand_hie_copula" / "synthetic" / "latest"
    assert main(["verify", str(latest)]) == 0
    assert "4,730 records" in capsys.readouterr().out
    manifest = json.loads((latest / "manifest.json").read_text())
    assert manifest["policy"]["use_case"] == "internal_analytics"
    assert manifest["policy"]["changes"] == ["required.detectable_share"]
    assert "person_id" not in [column["column"] for column in manifest["columns"]]
    rare = manifest["figures"]["rare_values"]
    assert set(rare["by_column"]) == {"site", "sex", "self_rated_health"}
    assert (rare["people_per_value"], rare["rare_values_released"]) == (3, 0)
    assert manifest["settings"]["synthetic"]["settings"]["min_atom"] == 5
    assert manifest["settings"]["synthetic"]["redrawn"]["n_values"] == 0


def test_the_anonymized_records_are_in_classes_of_the_policy_and_the_rest_of_them_is_exact(quickstart):
    directory, run = quickstart
    latest = directory / "releases" / "rand_hie_records" / "anonymized" / "latest"
    table, original = pd.read_parquet(latest / "anonymized.parquet"), load_rand_hie()
    manifest = json.loads((latest / "manifest.json").read_text())
    by_role = {each["column"]: each["role"] for each in manifest["columns"]}
    known = [name for name, role in by_role.items() if role == "quasi_identifier"]
    assert table.groupby(known, observed=True, dropna=False).size().min() >= 3
    sensitive = [name for name, role in by_role.items() if role == "sensitive"]
    assert len(sensitive) == 7
    for name in sensitive:
        assert table[name].value_counts(dropna=False).to_dict() == original[name].value_counts(dropna=False).to_dict()
    assert re.search(r"passed +smallest_class is 3; expected at least 3", run.stdout)


def test_tables_between_the_stages_are_private(quickstart):
    directory, _ = quickstart
    private = directory / ".dagster" / "private"
    assert {path.stat().st_mode & 0o077 for path in [private, *private.rglob("*")]} == {0}


def test_the_definitions_are_valid_and_hold_all_releases():
    from privacy_assets.definitions import defs

    dg.Definitions.validate_loadable(defs)
    keys = {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}
    stages = ["source", "original", "control", "synthetic", "preprocessed", "mpucc_assessment"]
    stages += ["disclosure_assessment", "synthetic_release"]
    synthetic = {f"{name}/{stage}" for name in ("rand_hie_copula", "rand_hie_cart") for stage in stages}
    of_records = ("source", "anonymized", "reidentification_assessment", "anonymized_release")
    assert keys == synthetic | {f"rand_hie_records/{stage}" for stage in of_records}
    checks = {key.name for key in defs.resolve_asset_graph().asset_check_keys}
    assert checks == {
        "source_keeps_its_contract",
        "no_identifying_column_leaves_undecided",
        "no_person_is_on_both_sides",
        "synthetic_keeps_the_contract",
        "privacy_risk_score_is_below_its_limit",
        "no_leakage_is_detected",
        "rare_values_released_is_at_most_its_limit",
        "mpucc_assessment_settings_meet_the_policy",
        "disclosure_assessment_settings_meet_the_policy",
        "every_class_has_at_least_k_records",
        "smallest_class_is_at_least_its_limit",
        "max_reidentification_probability_is_at_most_its_limit",
        "reidentification_assessment_settings_meet_the_policy",
        "share_in_homogeneous_classes_is_at_most_its_limit",
        "release_gate",
    }


SWITCHED_ON = "rand_hie_mst: {synthetic: {method: mst, settings: {epsilon: 3.0}}, split: {seed: 1}}"
RUN_IT = """
import dagster as dg
from privacy_assets.cli import quickstart
from privacy_assets.definitions import RELEASES, defs
assert RELEASES[-2:] == ("rand_hie_mst", "rand_hie_records"), RELEASES
with dg.DagsterInstance.from_config(".") as instance:
    print(quickstart.__file__, quickstart._run_release(defs, instance, "rand_hie_mst"))
"""


def run_with_one_line_changed(place):
    """Copy what a clone has, switch the release on as a user would, and run it alone."""
    shutil.copytree(REPOSITORY / "privacy_assets", place / "privacy_assets")
    shutil.copy(REPOSITORY / "dagster.yaml", place)
    settings = place / "privacy_assets" / "quickstart.yaml"
    before = settings.read_text()
    settings.write_text(before.replace(f"# {SWITCHED_ON}", SWITCHED_ON))
    assert set(settings.read_text().splitlines()) - set(before.splitlines()) == {SWITCHED_ON}
    run = subprocess.run([sys.executable, "-c", RUN_IT], cwd=place, capture_output=True, text=True, check=False)
    assert f"{place}/privacy_assets/cli/quickstart.py True" in run.stdout, run.stdout + run.stderr[-3000:]
    return run.stdout


@NEEDS_DP
def test_one_line_switches_on_a_release_with_differential_privacy(tmp_path):
    # The noise has no seed, so now and then leakage is found by chance (docs: in 0 of 10 fits).
    for attempt in ("first", "second", "third"):
        place = tmp_path / attempt
        place.mkdir()
        printed = run_with_one_line_changed(place)
        if "RELEASED" in printed:
            break
        assert "REFUSED by no_leakage_is_detected" in printed
    released = place / "releases" / "rand_hie_mst" / "synthetic" / "latest"
    assert verify_release(released).verified, printed
    assert re.search(r"passed +total_epsilon is (3|2\.9+\d*); expected at most 3", printed), printed
    manifest = json.loads((released / "manifest.json").read_text())
    assert manifest["policy"]["changes"] == ["required.detectable_share"]
    assert manifest["figures"]["privacy_budget"]["epsilon"] == 3.0
    assert manifest["settings"]["synthetic"]["settings"]["epsilon"] == 3.0
    table = pd.read_parquet(released / "synthetic.parquet")
    for name, limits in BANDS.items():
        assert set(table[name].dropna()) <= set(limits)
    # A second fit would spend more than there is.
    again = subprocess.run([sys.executable, "-c", RUN_IT], cwd=place, capture_output=True, text=True, check=False)
    assert "RELEASED" not in again.stdout
    assert len(list(released.parent.glob("2*"))) == 1


def test_outside_of_a_project_the_quickstart_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    assert main(["quickstart"]) == 1
    assert "no dagster.yaml" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
