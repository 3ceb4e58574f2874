"""The report of a release in a browser: for everyone, on paper, without network and without scripts."""

from contextlib import contextmanager

import pytest

pytest.importorskip("playwright", reason="needs the extra `e2e`")
pytest.importorskip("axe_playwright_python", reason="needs the extra `e2e`")

from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from tests.e2e.browser import chromium, needs_chromium
from tests.orchestration.project import Project

pytestmark = needs_chromium
DESK, NARROW, PAPER = 1280, 360, 794
"""Widths in CSS pixels: a desk, a telephone, and A4 at 96 to the inch."""


SCROLLED = "[...document.querySelectorAll('.scroll')].filter(each => each.scrollWidth > each.clientWidth + 1)"


def release_after_a_refusal(root):
    """Return the addresses of both reports of a release that was refused twice, and then released."""
    project = Project(root)
    project.write_tables()
    for admits in (False, True):
        limits = (
            Limit("privacy_risk_score", 0.999 if admits else 0.0, "at_most"),
            Limit("identification_rate", 0.0, "at_most", severity="warn"),
            Limit("smallest_class", 5 if admits else 50),
            Limit("max_reidentification_probability", 0.9),
            Limit("maximum_semantic_risk", 0.001, "at_most", severity="warn"),
        )
        definitions = project.definitions(
            policy=Policy(limits, RequiredSettings(control_records=40, detectable_share=None)),
            anonymized=AnonymizationSettings(k=5, seed=1),
            formats=("csv",),
        )
        assert project.run(definitions).success == admits
        if not admits:
            assert not project.run(definitions, "synthetic_release", "anonymized_release").success
            assert not project.everything_released()
    return {side: (project.releases(side=side)[-1] / "report.html").as_uri() for side in ("synthetic", "anonymized")}


def test_both_reports_read_well_for_everyone_on_paper_without_network_and_without_scripts(tmp_path):
    """One test, so that the release is made once, whatever pytest's workers take from each other."""
    pages = release_after_a_refusal(tmp_path)
    with chromium() as browser:
        for side, address in pages.items():
            for width in (DESK, NARROW):
                assert violations(browser, address, width) == []
            without_scripts(browser, address, side)
            assert cut_off(browser, address, NARROW, "screen") == []
            assert cut_off(browser, address, PAPER, "print") == []
        for page in ((tmp_path / "releases" / "index.html"), next((tmp_path / "private").rglob("refusal.html"))):
            for width in (DESK, NARROW):
                assert violations(browser, page.as_uri(), width) == []
            assert cut_off(browser, page.as_uri(), NARROW, "screen") == []


@contextmanager
def opened(browser, address, width, **options):
    """Open a page in a context of its own."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page = context.new_page()
    page.requested = []
    page.on("request", lambda request: page.requested.append(request.url))
    page.goto(address)
    yield page
    context.close()


def violations(browser, address, width):
    """Return what axe-core finds serious or critical."""
    from axe_playwright_python.sync_playwright import Axe

    # What the page forbids scripts of its own, it would forbid axe as well.
    with opened(browser, address, width, bypass_csp=True) as page:
        found = Axe().run(page).response
    assert len(found["passes"]) > 20
    shown = [(each["id"], each["impact"], [node["target"] for node in each["nodes"]]) for each in found["violations"]]
    return [each for each in shown if each[1] in ("serious", "critical")]


def without_scripts(browser, address, side):
    """Read a page with scripts turned off; it asks for nothing but itself."""
    with opened(browser, address, DESK, java_script_enabled=False) as page:
        assert [each for each in page.requested if not each.startswith("data:")] == [address]
        assert page.locator("h1").inner_text() == f"people: {side} release"
        assert page.get_by_text("Released, with 3 warnings").is_visible()
        assert page.locator("#refusals tbody tr").count() == 2
        assert page.locator("img").count() >= 1
        assert page.locator("script").count() == 0


def cut_off(browser, address, width, media):
    """Return what cannot be seen: the page if it is too wide, pictures, and on paper, where nobody scrolls, tables."""
    with opened(browser, address, width) as page:
        page.emulate_media(media=media)
        cut = ["page"] if page.evaluate("document.documentElement.scrollWidth") > width else []
        cut += page.evaluate("[...document.images].filter(each => !each.naturalWidth).map(each => each.alt)")
        if media == "print":
            cut += page.evaluate(f"{SCROLLED}.map(each => each.getAttribute('aria-label'))")
            assert not page.locator("nav").is_visible()
            assert page.pdf(format="A4").startswith(b"%PDF")
        return cut
