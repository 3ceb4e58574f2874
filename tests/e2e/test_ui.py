"""A release made by clicking in the Dagster UI: refused, refused alone, then released, and its report read.

The project is one of `create-dagster` in a directory of its own; it knows privacy_assets as an installed package.
"""

import json
import re

import pytest

from privacy_assets.release.files import verify_release
from tests.e2e.browser import chromium, needs_chromium
from tests.e2e.dg_project import NAME, UNREACHABLE_CLASS, make_project, running

pytest.importorskip("playwright", reason="needs the extra `e2e`")
pytest.importorskip("create_dagster", reason="needs the extra `e2e`")
pytestmark = needs_chromium
MILLISECONDS_FOR_A_PAGE = 120_000
GROUP = f"/locations/{NAME}/asset-groups/people/lineage"
REASON = f"smallest_class is 5; expected at least {UNREACHABLE_CLASS}"


@pytest.fixture
def site(tmp_path):
    with running(make_project(tmp_path)) as started:
        yield started


def button(page, text):
    """Find a button by what it shows: the name that it has for Playwright begins with that of its icon."""
    return page.locator("button:enabled").filter(has_text=re.compile(f"^{text}$"))


def node(page, asset):
    """Find an asset in the drawn graph."""
    return page.locator("svg foreignObject").get_by_text(asset, exact=True).first


def click_and_wait_for_the_run(site, page, text):
    before = site.runs()
    button(page, text).click()
    return site.finished_run_beside(before)


def test_a_release_is_refused_and_released_by_clicking(site):
    releases = site.project.releases
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(MILLISECONDS_FOR_A_PAGE)

        page.goto(site.address + GROUP)
        node(page, "anonymized_release").wait_for()
        _, status = click_and_wait_for_the_run(site, page, "Materialize all")
        assert status == "FAILURE"
        page.goto(
            f"{site.address}/assets/people/anonymized?view=checks&checkDetail=smallest_class_is_at_least_its_limit"
        )
        page.get_by_text(REASON).first.wait_for()
        page.get_by_text("Failed", exact=True).first.wait_for()
        assert not releases.exists()

        page.goto(site.address + GROUP)
        node(page, "anonymized_release").click()
        run_id, status = click_and_wait_for_the_run(site, page, "Materialize selected")
        assert status == "FAILURE"
        page.goto(f"{site.address}/runs/{run_id}")
        page.get_by_text(re.compile(f"was refused: {REASON}")).first.wait_for()
        page.goto(f"{site.address}/assets/people/anonymized_release?view=checks&checkDetail=release_gate")
        verdicts = page.locator("tr").filter(has_text="smallest class is at least its limit")
        verdicts.get_by_text(re.compile(f"^{REASON}")).first.wait_for()
        verdicts.get_by_text("refuses", exact=True).first.wait_for()
        assert not releases.exists()

        described = site.project.defs_yaml.read_text()
        assert f"value: {UNREACHABLE_CLASS}" in described
        site.project.defs_yaml.write_text(described.replace(f"value: {UNREACHABLE_CLASS}", "value: 5"))
        page.goto(site.address + GROUP)
        button(page, "Reload definitions").click()
        site.wait_for_the_limit("smallest_class must be at least 5.")
        node(page, "anonymized_release").click()
        _, status = click_and_wait_for_the_run(site, page, "Materialize selected")
        assert status == "SUCCESS"

        latest = (releases / "latest").resolve()
        assert verify_release(latest).verified
        assert json.loads((latest / "manifest.json").read_text())["refusals_before"] == 2
        page.goto((latest / "report.html").as_uri())
        assert page.locator("h1").inner_text() == "people: anonymized release"
        assert page.locator("#refusals tbody tr").count() == 2
