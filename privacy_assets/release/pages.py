"""The templates of the report and of the register."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment, Template


def page_template(name: str) -> Template:
    """Return the template of a page; it escapes all text."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    # Imported here, because every step loads the definitions, and few steps write a report.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("privacy_assets.release", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
