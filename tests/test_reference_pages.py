"""The reference of the public names: each stands on one page, and what is read of its docstring is complete."""

import re
import sys
from collections import Counter

import pytest

import privacy_assets
from tests.built_site import built_site
from tests.shared_data import REPOSITORY

PAGES = {path: path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "docs/reference").glob("*.md"))}
PRIVATE = re.compile(r"\bprivacy_assets\.([a-z]\w*)(?:\.\w+)*")


def test_every_public_name_is_on_exactly_one_page():
    named = Counter(name for page in PAGES.values() for name in re.findall(r"^::: privacy_assets\.(\S+)$", page, re.M))
    assert named == Counter(privacy_assets.__all__)


def test_pages_teach_public_names_alone():
    pages = [*(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "README.md"]
    private = {
        f"{page.name}: {found[0]}"
        for page in pages
        for found in PRIVATE.finditer(page.read_text(encoding="utf-8"))
        if found[1] not in privacy_assets.__all__
    }
    assert private == set()


def test_every_public_name_has_its_docstring_on_the_page_and_no_role_is_left():
    site = built_site() / "reference"
    for path, page in PAGES.items():
        html = (site / path.name).with_suffix(".html").read_text(encoding="utf-8")
        text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))
        for name in re.findall(r"^::: privacy_assets\.(\S+)$", page, flags=re.M):
            assert f'id="privacy_assets.{name}"' in html
            plain = re.search(r"[A-Za-z ,]{12,}", getattr(privacy_assets, name).__doc__)
            assert plain is not None, name
            assert plain[0].strip() in text, name
        assert re.findall(r":(?:func|class|meth|mod):|\[\d\]_|\.\. \[", text) == []


def test_roles_footnotes_and_shared_descriptions_become_markdown():
    pytest.importorskip("griffe", reason="needs the extra `docs`")
    sys.path.insert(0, str(REPOSITORY))
    try:
        from mkdocs_docstrings import as_markdown
    finally:
        sys.path.remove(str(REPOSITORY))
    docstring = """See :func:`~privacy_assets.a.b.find` and :meth:`C.close` [1]_.

    k, subject
        Shared.
        Twice.
    other : int
        Alone.

.. [1] A source.
""".replace("\n    ", "\n")
    assert as_markdown(docstring, {"find": "privacy_assets.a.b.find"}) == (
        "See [`find`][privacy_assets.a.b.find] and `close` [1].\n\n"
        "k\n    Shared.\n    Twice.\nsubject\n    Shared.\n    Twice.\nother : int\n    Alone.\n\n1. A source.\n"
    )
