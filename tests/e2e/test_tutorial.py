"""The tutorial, followed in a browser: every sentence about the UI is seen there, and every other is named."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

import privacy_assets
from privacy_assets.release import clock
from tests.e2e.browser import chromium, needs_chromium
from tests.e2e.dg_project import SECONDS_TO_START, running, wait_for
from tests.shared_data import REPOSITORY

pytest.importorskip("playwright", reason="needs the extra `e2e`")
pytest.importorskip("statsmodels", reason="needs the extra `examples`")
pytestmark = needs_chromium
MILLISECONDS_FOR_A_PAGE = 120_000
PAGE = (REPOSITORY / "docs" / "tutorial.md").read_text(encoding="utf-8")
LOCATION = "privacy_assets"
# One process for a run: a process for each step costs seconds.
IN_PROCESS = "defs = dg.Definitions.merge(defs, dg.Definitions(executor=dg.in_process_executor))\n"


def section(number):
    return re.split(r"\n## ", PAGE.split(f"\n## {number}. ")[1])[0].partition("\n")[2]


def sentences(number):
    """Return the sentences of a section, without its code."""
    text = re.sub(r"```.*?```", "", section(number), flags=re.DOTALL)
    parts = [" ".join(part.split()) for part in re.split(r"\n- |\n\n(?!- )", text)]
    return [each for part in parts if part for each in re.split(r"(?<=[.:]) (?=[A-Z\[])", part)]


@dataclass(frozen=True)
class Clone:
    """What the tutorial is followed in: the package as installed, as if it were the sources of a clone."""

    root: Path

    @property
    def log(self):
        return self.root / "dev.log"

    @property
    def definitions(self):
        return self.root / "privacy_assets" / "definitions.py"

    def environment(self):
        given = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER_", "PYTEST_"))}
        commands = str(Path(sys.executable).parent)
        return given | {
            "PATH": os.pathsep.join([commands, os.environ["PATH"]]),
            "PYTHONPATH": str(self.root),
            "DAGSTER_DG_UPDATE_CHECK_ENABLED": "0",
        }


@pytest.fixture
def clone(tmp_path):
    # With their times, so that the compiled code that is stored beside them fits.
    shutil.copytree(Path(privacy_assets.__file__).parent, tmp_path / "privacy_assets")
    for name in ("dagster.yaml", "workspace.yaml", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, tmp_path)
    made = Clone(tmp_path)
    with made.definitions.open("a") as definitions:
        definitions.write(IN_PROCESS)
    quickstart = [sys.executable, "-m", "privacy_assets.cli", "quickstart"]
    run = subprocess.run(quickstart, cwd=tmp_path, env=made.environment(), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return made


def is_loaded(site):
    try:
        found = site.ask("{assetsOrError {... on AssetConnection {nodes {definition {id}}}}}")
        return any(node["definition"] for node in found["assetsOrError"]["nodes"])
    except (OSError, KeyError, TypeError):
        return False


def loaded_at(site):
    entries = site.ask("{workspaceOrError {... on Workspace {locationEntries {updatedTimestamp}}}}")
    return entries["workspaceOrError"]["locationEntries"][0]["updatedTimestamp"]


class Reader:
    """Somebody who follows the tutorial in a browser."""

    def __init__(self, site, page):
        self.site, self.page = site, page
        self.read = set()

    def on(self, address):
        self.page.goto(self.site.address + address)

    def asset(self, name, view="overview"):
        self.on(f"/assets/{name}?view={view}")

    def sees(self, *texts):
        for text in texts:
            self.page.get_by_text(text).first.wait_for()

    def counts(self, found, number):
        """Wait until there are so many: plots are drawn after their titles."""
        from playwright.sync_api import expect

        expect(found).to_have_count(number, timeout=MILLISECONDS_FOR_A_PAGE)

    def rows(self):
        """Return the keys of the metadata on a page, in order."""
        table = self.page.locator("table").filter(has=self.page.get_by_text("Timestamp", exact=True)).last
        return [row.inner_text() for row in table.locator("tbody tr td:first-child").all()]

    def finds(self, sentence):
        """Mark a sentence of the page as seen."""
        self.read.add(sentence)

    def clicks(self, text):
        self.page.locator("button:enabled").filter(has_text=re.compile(f"^{text}$")).click()

    def run_of(self, text):
        before = self.site.runs()
        self.clicks(text)
        return self.site.finished_run_beside(before)

    def changes_definitions(self, old, new):
        """Change a line of the definitions, and load them again."""
        project = self.site.project
        described = project.definitions.read_text()
        assert old in described
        project.definitions.write_text(described.replace(old, new))
        loaded = loaded_at(self.site)
        self.on("/asset-groups")
        self.clicks("Reload definitions")
        wait_for(lambda: loaded_at(self.site) > loaded, SECONDS_TO_START, project.log)


def look_at_it(reader, ids):
    page = reader.page
    reader.on("/")
    page.get_by_text("Lineage", exact=True).first.click()
    reader.sees("Global asset lineage", "rand_hie_cart", "rand_hie_smooth_cart", "rand_hie_records")
    reader.finds("Open the address that it prints, then **Lineage**.")
    reader.finds("Each release is a group.")

    reader.asset("rand_hie_cart/mpucc_assessment")
    reader.sees("The privacy_risk_score is 0.197")
    keys = reader.rows()
    assert keys[:2] == ["found", "score_and_limit"]
    page.get_by_role("img", name="Figures and limits").first.wait_for()
    assert keys.index("privacy_risk_score") < keys.index("identified_by_combination_size")
    links = page.get_by_text("[Show Markdown]", exact=True)
    reader.counts(links, 2)
    for key, picture in (
        ("identified_by_combination_size", "people of the control, whom the synthesizer never saw"),
        ("columns_that_drive_the_risk", ""),
    ):
        page.locator("tr").filter(has_text=key).get_by_text("[Show Markdown]").click()
        shown = page.get_by_role("dialog").locator("img")
        shown.wait_for()
        assert picture in shown.get_attribute("alt")
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
    reader.finds("Select `rand_hie_cart/mpucc_assessment`.")
    reader.finds("Its overview begins with what was found.")
    reader.finds("A picture shows the score next to its limit.")
    reader.finds(
        "The scores with their ratings follow, then two pictures behind links: how many columns it takes to single out "
        "records, among the originals and in the control, and which columns drive the risk."
    )

    reader.asset("rand_hie_cart/disclosure_assessment")
    reader.sees("They reveal more about originals than about controls", "without_a_column")
    for column in ("self_rated_health", "family_size"):
        page.get_by_role("cell", name=column, exact=True).first.wait_for()
    reader.asset("rand_hie_cart/disclosure_assessment", "checks&checkDetail=no_leakage_is_detected")
    reader.sees("Checks (3)", "leakage_detected is yes; expected no", "Coarsen the columns that are inferred")
    page.get_by_text("Failed", exact=True).first.wait_for()
    page.get_by_text("no_leakage_is_detected", exact=True).first.wait_for()
    page.get_by_text("disclosure_assessment_settings_meet_the_policy").first.wait_for(state="attached")
    reader.sees("Plots")
    reader.counts(page.locator("canvas"), 2)
    reader.finds("Select `rand_hie_cart/disclosure_assessment`.")
    reader.finds(
        "Its overview describes what the records reveal about the originals beyond other people, and how that changes "
        "without each column."
    )
    reader.finds(
        "Its **Checks** tab has one check for each limit, and one for the settings of the assessment; "
        "`no_leakage_is_detected` failed and shows what was found, what was expected and what to do."
    )
    reader.finds("Scores and limits are plotted over time.")

    reader.asset("rand_hie_cart/synthetic_release")
    reader.sees("Latest materialization", "Failed in", "refused_by_checks_of", "refusal_page")
    reader.finds("Select `rand_hie_cart/synthetic_release`.")
    reader.finds("Its latest materialization failed, because the check failed first, and there was none before.")
    reader.finds("Its metadata have the reason, advice, and the file of the refusal page.")

    reader.asset("rand_hie_records/source")
    reader.sees("5,912", "Age in completed years at enrollment", "role: quasi_identifier", "int64")
    shown = page.inner_text("body")
    # Digits within a longer number or a fingerprint are no cell.
    assert not [person for person in ids if re.search(rf"(?<!\w){person}(?!\w)", shown)]
    private = reader.site.project.root / ".dagster" / "private"
    assert private.stat().st_mode & 0o777 == 0o700
    reader.finds("Select `rand_hie_records/source`.")
    reader.finds("You see the number of rows, and the columns with their types, roles and descriptions.")
    reader.finds("You do not see a cell.")
    reader.finds(
        "Cells reach neither the UI nor the logs; the tables between the stages are stored in `.dagster/private`, "
        "readable by their owner only."
    )


def see_a_refusal(reader):
    page, releases = reader.page, reader.site.project.root / "releases"
    reader.on("/assets/rand_hie_records/anonymized?view=checks&checkDetail=smallest_class_is_at_least_its_limit")
    reader.sees("Passed")
    reader.finds("Nothing was assessed again, and the checks of the first run are still green.")

    reader.on(f"/locations/{LOCATION}/asset-groups/rand_hie_records/lineage")
    page.locator("svg foreignObject").get_by_text("anonymized_release", exact=True).first.click()
    run_id, status = reader.run_of("Materialize selected")
    assert status == "FAILURE"
    quoted = " ".join(re.search(r"```text\n(.*?)```", section(4), re.DOTALL)[1].split())
    reader.on(f"/runs/{run_id}")
    page.get_by_text("anonymized_release was refused:").first.wait_for()
    assert quoted in " ".join(page.inner_text("body").split())
    reader.finds("Select `rand_hie_records/anonymized_release` **alone**, and choose *Materialize selected*.")
    reader.finds("In plain Dagster this run would succeed: a check blocks only in the run in which it is evaluated.")
    reader.finds(
        "Here it fails, because the release applies the policy itself, to the exact table that it would write:"
    )

    reader.asset("rand_hie_records/anonymized_release", "checks&checkDetail=release_gate")
    page.get_by_text("Failed", exact=True).first.wait_for()
    reader.sees("score_and_limit", "Anonymize with a larger k", "Require l_diversity or t_closeness")
    words = ["refuses", "warns", "passed"]
    cells = page.locator("tr:not(:has(tr)) td:nth-child(2)").all_inner_texts()
    results = [words.index(each) for each in cells if each in words]
    assert results.count(0) == 4
    assert results == sorted(results)
    reader.finds(
        "An attacker now [knows more rows of a person](how-to-limits.md#what-an-attacker-knows), so the assessment has "
        "to be made again."
    )
    reader.finds(
        "The check `release_gate` of this asset has a picture of the figures next to their limits, and the table of "
        "all verdicts: failed ones first, with advice."
    )
    reader.finds("[How the gate works](gate.md) describes this bypass and the others.")
    reader.finds("The advice is a larger k, and l-diversity.")

    settings = re.search(r"(AnonymizationSettings\()(l_diversity=2, )(.*)", section(4))
    reader.changes_definitions(settings[1] + settings[3], settings[0])
    reader.finds("In this release k comes from the policy.")
    reader.finds("Ask for classes with at least two values of each sensitive column in the same file:")
    latest = releases / "rand_hie_records" / "anonymized" / "latest" / "manifest.json"
    before = json.loads(latest.read_text())["figures"]["statistics"]
    reader.on(f"/locations/{LOCATION}/asset-groups/rand_hie_records/lineage")
    page.locator("svg foreignObject").get_by_text("anonymized_release", exact=True).first.wait_for()
    _, status = reader.run_of("Materialize all")
    assert status == "SUCCESS"
    manifest = json.loads(latest.read_text())
    after = manifest["figures"]["statistics"]
    assert after["smallest_class"] >= 5
    price = f"{after['information_loss']:.1%} instead of {before['information_loss']:.1%}".replace("%", " %")
    assert manifest["refusals_before"] == 1
    reader.finds("Reload the definitions, select the whole group `rand_hie_records` and materialize it.")
    reader.finds("The records are partitioned again, into classes of at least 5, and released.")
    reader.finds(f"The price is an information loss of {price}.")
    reader.finds("The manifest of the new release counts the refusal.")

    reader.on(f"/locations/{LOCATION}/asset-groups/rand_hie_smooth_cart/lineage")
    page.locator("svg foreignObject").get_by_text("synthetic_release", exact=True).first.click()
    _, status = reader.run_of("Materialize selected")
    assert status == "SUCCESS"
    reader.finds("The synthetic release `rand_hie_smooth_cart` is admitted under this policy, too.")
    reader.asset("rand_hie_smooth_cart/synthetic_release", "checks&checkDetail=release_gate")
    reader.sees("privacy_risk_score is 0.188", "exposed_share is 0.0665")
    warned = page.locator("tr:not(:has(tr))").filter(has_text="privacy_risk_score is 0.188")
    assert "warns" in warned.first.inner_text().split()
    reader.sees(re.compile("exposed_share decides"))
    reader.finds(
        "Its score of 0.188 fails as a warning: real people never seen [would fail as "
        "well](how-to-limits.md#where-nobody-meets-the-limit), so the exposed share decides."
    )
    reader.finds("See [Choose among releases](how-to-choose.md) for what each setting is worth.")


def test_every_sentence_of_the_tutorial_about_the_ui_is_true(clone):
    from privacy_assets.examples.rand_hie import load_rand_hie

    old, new = (found[1] for found in re.finditer(r"```python\n.*?(POLICY = .*?)\n```", section(3), re.DOTALL))
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.set_default_timeout(MILLISECONDS_FOR_A_PAGE)
        with running(clone, is_loaded) as site:
            reader = Reader(site, page)
            look_at_it(reader, load_rand_hie()["person_id"][:100])
            assert reader.read == set(sentences(2))
            reader = Reader(site, page)
            reader.changes_definitions(old, new)
            review = clock.today() + timedelta(days=365)
            reader.changes_definitions('"review_by": None', f'"review_by": "{review}"')
            see_a_refusal(reader)
            assert reader.read == set(sentences(4))
