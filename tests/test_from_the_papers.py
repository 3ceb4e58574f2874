"""The page that leads from the sources to the functions: every function exists, and no numbered part is left out."""

import re
from functools import reduce

import pytest

from tests.public_packages import PUBLIC
from tests.shared_data import REPOSITORY, shared_file

PAGE = (REPOSITORY / "docs/from-the-papers.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"(?ms)^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE))
SOURCES = {"mpUCCs": "mpuccs", "Mondrian": "mondrian", "Re-identification": "reidentification", "Concepts": "fca-risk"}
NUMBERED = {
    "mpUCCs": r"(?m)^#### (?P<number>\d+)\. ",
    "Mondrian": r"(?m)^Step (?P<number>\d+):",
    "Re-identification": r"(?m)^(?P<kind>Definition|Proposition|Lemma|Corollary|Example) (?P<number>\d+)\.",
    "Concepts": r"(?m)^(?P<kind>DEFINITION|THEOREM|PROPOSITION|COROLLARY|TABLE|FIGURE) (?P<number>\d+(?:\.\d+)?)",
}
SINGULAR = {f"{kind}s": kind for kind in ("Definition", "Proposition", "Example", "Figure", "Step")}


def rows(section):
    """What the source calls it, the functions, and the words here, of each row of the table of a section."""
    lines = [line for line in SECTIONS[section].splitlines() if line.startswith("|")]
    return [line[1:-1].split("|") for line in lines[2:]]


def named(cell):
    return re.findall(r"`([^`]+)`", cell)


def numbered_on_the_page(section):
    """(kind, number) of what the first column names: `Definitions 1, 2, Proposition 3` are three."""
    found, kind = set(), None
    for there, *_ in rows(section):
        for word in re.findall(r"[A-Za-z]+|\d+(?:\.\d+)?", there):
            if word[0].isdigit():
                found.add((kind, word))
            else:
                kind = SINGULAR.get(word, word)
    return found


@pytest.mark.parametrize("section", SOURCES)
def test_every_function_of_the_page_is_public(section):
    for there, functions, _ in rows(section):
        assert named(functions), there
        for name in named(functions):
            first, *more = name.split(".")
            assert callable(reduce(getattr, more, PUBLIC[first])), name


@pytest.mark.parametrize("section", SOURCES)
def test_every_word_here_is_one_of_the_code(section):
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "privacy_assets").rglob("*.py")))
    words = {word for *_, here in rows(section) for name in named(here) for word in re.findall(r"\w{3,}", name)}
    assert words
    assert {word for word in words if not re.search(rf"\b{word}\b", code)} == set()


@pytest.mark.parametrize(("section", "file"), SOURCES.items())
def test_every_numbered_part_of_a_source_is_on_the_page(section, file):
    text = shared_file("seeds", f"{file}.txt").read_text(encoding="utf-8")
    parts = re.finditer(NUMBERED[section], text)
    expected = {(found.groupdict().get("kind", "Step").capitalize(), found["number"]) for found in parts}
    assert len(expected) >= 2
    assert expected - numbered_on_the_page(section) == set()


def test_misprints_are_named_of_every_source():
    assert re.findall(r"^- \*\*([\w-]+)\.\*\*", SECTIONS["Misprints"], re.M) == list(SOURCES)
