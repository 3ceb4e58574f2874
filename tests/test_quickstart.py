import json
import math
import os
import re
import shutil
import subprocess
import sys

import dagster as dg
import pandas as pd
import pytest

from privacy_assets import anonymize, assess_mpuccs, assess_utility, split_records, synthesize
from privacy_assets.cli import main
from privacy_assets.definitions import POLICY
from privacy_assets.examples.rand_hie import BANDS, load_rand_hie, rand_hie_contract
from privacy_assets.release.policy import Policy
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.artifact_files import read_artifact
from tests.extras import NEEDS_DP
from tests.shared_data import REPOSITORY

pytest.importorskip("statsmodels", reason="needs the extra `examples`")


OFTEN = """
import sys
from privacy_assets.orchestration import stages
stages.SECONDS_BETWEEN_PROGRESS_LINES = 0.1
from privacy_assets.cli import main
sys.exit(main())
"""
"""The command, with progress lines of stages of less than two seconds: how fast they are is up to the machine."""


@pytest.fixture(scope="module")
def quickstart(made_once):
    """Run the quickstart once, as a user does, in a directory of its own."""
    return run_of(made_once, "quickstart")


def run_of(made_once, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    name = "".join(arguments)
    kept = f"printed-by-the-{name}.json"

    def run_it(directory):
        shutil.copy(REPOSITORY / "dagster.yaml", directory)
        command = [sys.executable, "-c", OFTEN, *arguments]
        run = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
        printed = [run.returncode, run.stdout, run.stderr]
        (directory.parent / kept).write_text(json.dumps(printed))

    directory = made_once.directory(name, run_it)
    return directory, subprocess.CompletedProcess([], *json.loads((directory.parent / kept).read_text()))


def test_people_and_their_years_are_released_as_the_tutorial_shows(made_once):
    directory, run = run_of(made_once, "quickstart", "--related")
    assert run.returncode == 0, run.stderr[-3000:]
    [released] = re.findall(r"RELEASED: (\S+)", run.stdout)
    assert verify_release(released).verified
    people, years = (pd.read_parquet(f"{released}/{name}.parquet") for name in ("people", "years"))
    assert sorted(people["person_id"]) == list(range(1, len(people) + 1))
    assert years["person_id"].isin(people["person_id"]).all()
    lines = [
        re.sub(r"\S*/releases/", "releases/", line)
        for line in run.stdout.splitlines()
        if line.startswith(("===", "  "))
    ]
    page = (REPOSITORY / "docs" / "tutorial.md").read_text()
    shown = page.split("quickstart --related")[1].split("```text\n")[1].split("```")[0]
    assert_are_shown(shown, lines)
    assert not (directory / "releases" / "rand_hie_cart").exists()


def test_the_quickstart_ends_and_says_where_the_release_is_and_what_refused_the_other(quickstart):
    directory, run = quickstart
    assert run.returncode == 0, run.stderr[-3000:]
    released = re.findall(r"RELEASED: (\S+)", run.stdout)
    assert [name.split("/releases/")[1].split("/")[:2] for name in released] == [
        ["rand_hie_smooth_cart", "synthetic"],
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
    assert_are_shown(shown, [re.sub(r"\S*/releases/", "releases/", line) for line in run.stdout.splitlines()])


def assert_are_shown(shown, printed):
    for line in filter(None, shown.splitlines()):
        words = [re.escape(part.strip()) for part in line.split("...")]
        assert any(re.search(".*".join(words), each) for each in printed), line


def in_one_line(text):
    return " ".join(text.split())


def without(text, phrases):
    """Return a page in one line without phrases that it must contain."""
    for phrase in map(in_one_line, phrases):
        assert phrase in text, phrase
        text = text.replace(phrase, " ")
    return text


def rows_of(table, columns):
    return set(table[columns].astype(object).where(table[columns].notna(), None).itertuples(index=False, name=None))


@pytest.fixture(scope="module")
def figures(quickstart):
    """What the run of the quickstart gave, and what the pages compare it with, as the pages write it."""
    directory, _ = quickstart
    private = directory / ".dagster" / "private"

    def stored(release, stage):
        return read_artifact(private / release / f"{stage}.artifact")

    found = {}
    for name in ("rand_hie_smooth_cart", "rand_hie_cart"):
        synthetic, original, control = (
            stored(name, stage).frames["table"] for stage in ("synthetic", "original", "control")
        )
        columns = list(synthetic.columns)
        known, unseen, made = (rows_of(each, columns) for each in (original, control, synthetic))
        short = name.removeprefix("rand_hie_")
        found[short] = f"{stored(name, 'mpucc_assessment').header['scores']['privacy_risk_score']:.3f}"
        found[f"{short}_distinct"], found[f"{short}_copies"] = len(made), len(made & known)
        found[f"{short}_unseen"] = len(made & unseen)
        found[f"{short}_by_chance"] = round(len(made & unseen) / len(control) * len(original))
        found |= {"n_original": len(original), "n_control": len(control), "n_columns": len(columns)}
    found["undetected"] = stored("rand_hie_smooth_cart", "disclosure_assessment").header["scores"]["detectable_people"]
    stats = stored("rand_hie_records", "anonymized").header["stats"]
    found |= {name: stats[name] for name in ("n_rows", "n_classes", "smallest_class_people")}
    found |= {"loss": f"{stats['information_loss']:.1%}".replace("%", " %"), "n_sensitive": len(stats["sensitive"])}
    found["certain"] = stats["share_in_homogeneous_classes"]
    scores = stored("rand_hie_records", "reidentification_assessment").header["scores"]
    found |= {"probability": scores["max_reidentification_probability"], "candidates": scores["fewest_candidates"]}
    contract = rand_hie_contract()
    table = contract.admit(load_rand_hie())
    stricter = anonymize(
        table,
        quasi_identifiers=contract.columns_with_role("quasi_identifier"),
        sensitive=contract.columns_with_role("sensitive"),
        subject=contract.person,
        k=5,
        l_diversity=2,
    )
    found["stricter_loss"] = f"{stricter.stats['information_loss']:.1%}".replace("%", " %")
    original, control = (each.drop(columns=contract.person) for each in split_records(table, seed=0))
    limits = {limit.metric: limit for limit in POLICY.limits}
    for method in ("smooth_cart", "cart"):
        exact = assess_mpuccs(original, synthesize(original, method=method, seed=0), control, max_baseline_cols=3)
        found[f"exact_{method}"] = f"{exact.scores['privacy_risk_score']:.3f}"
        assert limits["privacy_risk_score"].outcome(exact.scores) == "beyond"
    return found


def limits_of(use_case):
    return {limit.metric: limit.value for limit in Policy.for_use_case(use_case).limits}


NUMBER = r"(?<![\w.])\d[\d,]*(?:\.\d+)?"
WORDS = {2: "two", 3: "three", 7: "seven"}


def test_every_figure_of_the_readme_is_that_of_the_run(quickstart, figures):
    page = in_one_line(
        (REPOSITORY / "README.md").read_text().split("## Run the quickstart")[1].split("## Run the tests")[0]
    )
    page = re.sub(r"```.*?```", " ", page)
    own, limits = figures, limits_of("internal_analytics")
    assert own["smallest_class_people"] == own["candidates"] == limits["smallest_class"] == 3
    assert own["probability"] == 1 / 3
    copies, unseen = own["cart_copies"], own["cart_unseen"]
    left = without(
        page,
        [
            f"It takes {own['n_rows']:,} people",
            f"`privacy_risk_score` below {limits['privacy_risk_score']:.2f} with combinations of up to "
            f"{POLICY.required.max_baseline_cols} columns",
            f"classes of at least {limits['smallest_class']:.0f} people",
            f"no record with fewer than {math.ceil(1 / limits['max_reidentification_probability'])} candidates",
            f"Without the bands, they score {own['exact_smooth_cart']} and {own['exact_cart']}, as people never seen",
            f"| `rand_hie_smooth_cart` | {own['smooth_cart']} | {own['smooth_cart_copies']} | "
            f"{own['smooth_cart_unseen']} | released |",
            f"| `rand_hie_cart` | {own['cart']} | {copies} | {unseen} | refused: `no_leakage_is_detected` |",
            f"| `rand_hie_records` | {own['n_classes']:,} | 3 people | 1/3 | {own['loss']} | released, with a warning: "
            f"`share_in_homogeneous_classes` is {own['certain']:.2f} |",
            f"{copies} of its records equal an original on all {own['n_columns']} columns, and only {unseen} equal one "
            f"of the people that it never saw, which corresponds to {own['cart_by_chance']} by chance",
            f"copies of whole records of fewer than {own['undetected']} people might have gone unnoticed",
            f"in classes of {WORDS[own['smallest_class_people']]}, in which one of the "
            f"{WORDS[own['n_sensitive']]} sensitive",
            "Python 3.11 to 3.14",
        ],
    )
    assert re.findall(NUMBER, left) == []
    assert min(map(float, (own["exact_smooth_cart"], own["exact_cart"]))) > limits["privacy_risk_score"]


def test_every_figure_of_the_tutorial_is_that_of_the_run(quickstart, figures, capsys):
    directory, _ = quickstart
    page = (REPOSITORY / "docs" / "tutorial.md").read_text()
    own, usual, stricter = figures, limits_of("internal_analytics"), limits_of("research_sharing")
    capsys.readouterr()
    assert main(["verify", str(directory / "releases" / "rand_hie_smooth_cart" / "synthetic" / "latest")]) == 0
    verified = in_one_line(re.sub(r"\S*/releases/", "releases/", capsys.readouterr().out))
    verified = re.sub(r"(fingerprint \w{12})\w+", r"\1...", verified).partition(" It is not signed")[0]
    certain, share = own["certain"], stricter["share_in_homogeneous_classes"]
    probability = own["probability"]
    k = f"{stricter['smallest_class']:.0f}"
    page, _, rest = page.partition("## 6. ")  # whose code says its figures, and is run with those of all pages
    page += rest.partition("## Go on")[2]
    # The first block is compared line by line with what is printed.
    first = next(block for block in re.findall(r"```text\n.*?```", page, re.DOTALL) if "=== rand_hie" in block)
    page = re.sub(r"```(?:sh|python)\n.*?```", " ", page.replace(first, ""), flags=re.DOTALL)
    left = without(
        in_one_line(re.sub(r"(?m)^## \d\.", "", page)),
        [
            verified,
            f"{own['n_rows']:,} people, public domain",
            f"copies of fewer than {100 * POLICY.required.detectable_share:.0f} % of the people might go unnoticed",
            f"below {stricter['privacy_risk_score']:.2f} instead of {usual['privacy_risk_score']:.2f}",
            f"classes of at least {k} people instead of {usual['smallest_class']:.0f}",
            f"At most {100 * share:.0f} % of the people may be in a class",
            f"smallest_class is {own['smallest_class_people']}; expected at least {k};",
            f"max_reidentification_probability is {probability:.3f} (exactly {probability!r}); expected at most "
            f"{stricter['max_reidentification_probability']};",
            f"share_in_homogeneous_classes is {certain:.3f} (exactly {certain!r}); expected at most {share}.",
            f"into classes of at least {k},",
            f"an information loss of {own['stricter_loss']} instead of {own['loss']}.",
            f"Its score of {own['smooth_cart']} fails as a warning",
            "Python 3.11 to 3.14",
        ],
    )
    assert re.findall(NUMBER, left) == []


def test_the_figures_of_the_copula_beside_mst_are_those_of_the_same_split():
    contract = rand_hie_contract(banded=True)
    split = split_records(contract.admit(load_rand_hie(banded=True)), seed=1)
    original, control = (each.drop(columns=contract.person) for each in split)
    synthetic = synthesize(original, method="gaussian_copula", seed=0)
    score = assess_mpuccs(original, synthetic, control, max_baseline_cols=3).scores["privacy_risk_score"]
    worth = assess_utility(original, synthetic, control).scores
    page = (REPOSITORY / "docs" / "differential-privacy.md").read_text()
    row = f"{score:.3f} | no | {worth['utility_lower']:.3f} | {worth['utility_columns_lower']:.3f} | released |"
    assert f"| `gaussian_copula` | {row}" in page


def test_the_quickstart_says_how_far_its_stages_are(quickstart):
    _, run = quickstart
    lines = [line for line in run.stdout.splitlines() if re.search(r"\d of [\d,]+ done$", line)]
    assert lines, run.stdout
    assert all(line.startswith("          ") for line in lines)


def test_the_release_is_what_its_manifest_says_and_the_command_verifies_it(quickstart, capsys):
    directory, _ = quickstart
    latest = directory / "releases" / "rand_hie_smooth_cart" / "synthetic" / "latest"
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
    synthetic = {f"{name}/{stage}" for name in ("rand_hie_smooth_cart", "rand_hie_cart") for stage in stages}
    of_records = ("source", "anonymized", "reidentification_assessment", "anonymized_release")
    related = {f"rand_hie_people_and_years/{stage}" for stage in stages if stage != "preprocessed"}
    assert keys == synthetic | related | {f"rand_hie_records/{stage}" for stage in of_records}
    checks = {key.name for key in defs.resolve_asset_graph().asset_check_keys}
    assert checks == {
        "source_keeps_its_contract",
        "rows_belong_to_the_declared_people",
        "no_identifying_column_leaves_undecided",
        "enough_memory",
        "every_row_has_its_person",
        "no_column_repeats_the_person",
        "no_person_is_on_both_sides",
        "synthetic_keeps_the_contract",
        "privacy_risk_score_is_below_its_limit",
        "no_leakage_is_detected",
        "originals_singled_out_is_below_its_limit",
        "exposed_share_is_below_its_limit",
        "copies_beyond_people_is_at_most_its_limit",
        "rare_values_released_is_at_most_its_limit",
        "mpucc_assessment_settings_meet_the_policy",
        "disclosure_assessment_settings_meet_the_policy",
        "every_class_has_at_least_k_records",
        "release_is_not_withdrawn",
        "review_is_not_overdue",
        "smallest_class_is_at_least_its_limit",
        "max_reidentification_probability_is_at_most_its_limit",
        "reidentification_assessment_settings_meet_the_policy",
        "share_in_homogeneous_classes_is_at_most_its_limit",
        "share_certain_by_rows_is_at_most_its_limit",
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
