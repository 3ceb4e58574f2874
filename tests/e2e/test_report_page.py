"""The report of a release in a browser: for everyone, on paper, without network and without scripts."""

import pytest

pytest.importorskip("playwright", reason="needs the extra `e2e`")
pytest.importorskip("axe_playwright_python", reason="needs the extra `e2e`")

from privacy_assets.orchestration.anonymized_settings import AnonymizationSettings
from privacy_assets.tables.policy import Limit, Policy, RequiredSettings
from tests.e2e.browser import chromium, needs_chromium
from tests.orchestration.project import Project

pytestmark = needs_chromium
NARROW, PAPER = 360, 794
"""Widths in CSS pixels: a telephone, and A4 at 96 to the inch."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the addresses of both reports of a release that was refused, and then released."""
    project = Project(tmp_path_factory.mktemp("project"))
    project.write_tables()
    for admits in (False, True):
        limits = (
            Limit("privacy_risk_score", 0.999 if admits else 0.0, "at_most"),
            Limit("identification_rate", 0.0, "at_most", severity="warn"),
            Limit("smallest_class", 5 if admits else 50),
            Limit("max_reidentification_probability", 0.9),
            Limit("max_basic_semantic_risk", 0.001, "at_most", severity="warn"),
        )
        definitions = project.definitions(
            policy=Policy(limits, RequiredSettings(control_records=40)),
            anonymized=AnonymizationSettings(k=5, seed=1),
            formats=("csv",),
        )
        result = project.run(definitions)
        assert result.success == admits
        if not admits:
            assert not project.run(definitions, "synthetic_release", "anonymized_release").success
            assert not project.everything_released()
    return {side: (project.releases(side=side)[-1] / "report.html").as_uri() for side in ("synthetic", "anonymized")}


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def opened(browser):
    """Open pages in contexts of their own, and close those."""
    contexts = []

    def open_page(address, width=1280, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.requested = []
        page.on("request", lambda request: page.requested.append(request.url))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("width", [1280, NARROW])
@pytest.mark.parametrize("side", ["synthetic", "anonymized"])
def test_axe_finds_no_serious_violation(pages, opened, side, width):
    from axe_playwright_python.sync_playwright import Axe

    # What the page forbids scripts of its own, it would forbid axe as well.
    found = Axe().run(opened(pages[side], width, bypass_csp=True)).response
    assert len(found["passes"]) > 20
    shown = [(each["id"], each["impact"], [node["target"] for node in each["nodes"]]) for each in found["violations"]]
    assert [each for each in shown if each[1] in ("serious", "critical")] == []


@pytest.mark.parametrize("side", ["synthetic", "anonymized"])
def test_a_page_asks_for_nothing_and_reads_without_scripts(pages, opened, side):
    page = opened(pages[side], java_script_enabled=False)
    assert [address for address in page.requested if not address.startswith("data:")] == [pages[side]]
    assert page.locator("h1").inner_text() == f"people: {side} release"
    assert page.get_by_text("Released", exact=False).first.is_visible()
    assert page.locator("#refusals tbody tr").count() == 2
    assert page.locator("img").count() >= 1
    assert page.locator("script").count() == 0


@pytest.mark.parametrize("side", ["synthetic", "anonymized"])
def test_nothing_is_cut_off_on_a_telephone_and_on_paper(pages, opened, side):
    for width, media in ((NARROW, "screen"), (PAPER, "print")):
        page = opened(pages[side], width)
        page.emulate_media(media=media)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert all(page.evaluate("[...document.images].map(image => image.naturalWidth > 0)"))
        if media == "print":
            assert not page.locator("nav").is_visible()
            # On paper nobody can scroll: every table shows all of itself.
            cut = "[...document.querySelectorAll('.scroll')].filter(each => each.scrollWidth > each.clientWidth + 1)"
            assert page.evaluate(f"{cut}.map(each => each.getAttribute('aria-label'))") == []
            assert page.pdf(format="A4").startswith(b"%PDF")
