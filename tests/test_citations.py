"""Pages of the documentation that code, tests and benchmarks cite are there, with the sections that are cited."""

import re
from pathlib import Path

import pytest

import privacy_assets
from tests.shared_data import REPOSITORY, TESTS

DOCS = REPOSITORY / "docs"
ROOTS = [Path(privacy_assets.__file__).parent, TESTS, REPOSITORY / "benchmarks", REPOSITORY / "examples"]
SOURCES = {path: path.read_text(encoding="utf-8") for root in ROOTS for path in sorted(root.rglob("*.py"))}
# The name of a section may be broken over two lines of a docstring.
CITATION = re.compile(r"\b(docs/|design/)((?:[\w-]+/)*[\w-]+\.md)(?:`{0,2},\s+section\s+\"([^\"]+)\")?")
HEADING = re.compile(r"^#+ (.+)$", flags=re.MULTILINE)


def citations():
    """Return the file, the root, the page and the section (or None) of every citation."""
    return [
        (path, *found)
        for path, text in SOURCES.items()
        if path != Path(__file__).resolve()
        for found in CITATION.findall(text.replace("\n#", "\n"))
    ]


def test_every_cited_page_and_section_is_there():
    cited = citations()
    missing = []
    for path, root, page, section in cited:
        target = DOCS / page
        headings = HEADING.findall(target.read_text(encoding="utf-8")) if root == "docs/" and target.exists() else []
        if not headings or (section and " ".join(section.split()) not in headings):
            missing.append(f"{path.name} cites {root}{page} {section}")
    assert missing == []
    # Pages, and sections, that are known to be cited: the pattern sees them.
    assert {page for _, _, page, _ in cited} >= {"design/mondrian.md", "design/reidentification.md", "mpucc.md"}
    assert {section for *_, section in cited} >= {"Hierarchies", "Masks", "Preparation"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('see ``docs/design/mondrian.md``, section\n    "Cuts".', [("docs/", "design/mondrian.md", "Cuts")]),
        ("see ``design/mondrian.md``.", [("design/", "mondrian.md", "")]),
        ("see docs/signing.md)", [("docs/", "signing.md", "")]),
    ],
)
def test_a_citation_is_read(text, expected):
    assert CITATION.findall(text) == expected
