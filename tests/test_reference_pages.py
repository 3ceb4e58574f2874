"""The reference of the public names: each stands on one page, and what is read of its docstring is complete."""

import re
import sys
from collections import Counter

import pytest

from tests.built_site import built_site
from tests.public_packages import PACKAGES, PATHS, PUBLIC
from tests.shared_data import REPOSITORY

PAGES = {path: path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "docs/reference").glob("*.md"))}
SHOWN = re.compile(r"^::: (\S+)$", re.M)
DATA = "privacy_assets.examples.ratings"  # of the tutorial
NAMED = re.compile(r"(?<!python -m )\bprivacy_assets\.[a-z]\w*(?:\.\w+)*")


def test_every_public_name_is_on_exactly_one_page():
    assert Counter(path for page in PAGES.values() for path in SHOWN.findall(page)) == Counter(PATHS.values())


def test_pages_teach_public_names_alone():
    pages = [*(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "README.md"]
    private = {
        f"{page.name}: {path}"
        for page in pages
        for path in NAMED.findall(page.read_text(encoding="utf-8"))
        if path not in {*PATHS.values(), *PACKAGES, DATA}
    }
    assert private == set()


def test_every_public_name_has_its_docstring_on_the_page_and_no_role_is_left():
    site = built_site() / "reference"
    for path, page in PAGES.items():
        html = (site / path.name).with_suffix(".html").read_text(encoding="utf-8")
        text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))
        for path in SHOWN.findall(page):
            name = path.rpartition(".")[2]
            assert f'id="{path}"' in html
            plain = re.search(r"[A-Za-z ,]{12,}", PUBLIC[name].__doc__)
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
