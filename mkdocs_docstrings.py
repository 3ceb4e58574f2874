"""Make the docstrings of the public names ready for the documentation; mkdocs.yml names this file.

Packages resolve their public names when they are used, so a reader of their source does not find them: they are added
here as aliases. Docstrings refer to code by roles and to sources by footnotes, which Markdown does not know.
"""

import ast
import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?\.?([\w.]+)`")
SOURCE = re.compile(r"^\.\. \[(\d+)\] ", flags=re.MULTILINE)
FOOTNOTE = re.compile(r"\[(\d+)\]_")
# Parameters without a type that share a description: their types are in the signature.
SHARED = re.compile(r"^(\w+(?:, \w+)+)\n((?:    .*(?:\n|\Z))+)", flags=re.MULTILINE)


class PublicNames(griffe.Extension):
    """Adds the public names to their packages, and rewrites docstrings as Markdown."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Add an alias for each public name of the package and of those below it."""
        public = {}
        for package in (pkg, *pkg.modules.values()):
            if "_PUBLIC_NAMES" in package.members:
                for name, module in ast.literal_eval(str(package["_PUBLIC_NAMES"].value)).items():
                    public[name] = f"{pkg.path}.{module}.{name}"
                    package.set_member(name, griffe.Alias(name, public[name]))
        _rewrite(pkg, public)


def _rewrite(of: griffe.Object, public: dict[str, str]) -> None:
    for member in of.members.values():
        if isinstance(member, griffe.Object):
            _rewrite(member, public)
    if of.docstring is not None:
        of.docstring.value = as_markdown(of.docstring.value, public)


def as_markdown(docstring: str, public: dict[str, str]) -> str:
    """Replace roles by links to public names (given with their places), and else by code; number sources as a list.

    Parameters that share a description get one each, because what reads docstrings gives all of them the first type.
    """

    def link(role: re.Match[str]) -> str:
        name = role[1].rpartition(".")[2]
        return f"[`{name}`][{public[name]}]" if name in public else f"`{name}`"

    def repeat(shared: re.Match[str]) -> str:
        return "".join(f"{name}\n{shared[2].rstrip()}\n" for name in shared[1].split(", "))

    text = FOOTNOTE.sub(r"[\1]", SOURCE.sub(r"\1. ", ROLE.sub(link, docstring)))
    return SHARED.sub(repeat, text)
