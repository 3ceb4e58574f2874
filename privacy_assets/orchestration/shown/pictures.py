"""Pictures in the metadata of assets, as PNG in Markdown with a sentence on what they show."""

import re
from collections.abc import Mapping

import dagster as dg

from privacy_assets.display.pictures import Picture

SPECIAL = re.escape("\\[]`<>&!")
"""Characters with a meaning in Markdown."""


def as_markdown(picture: Picture) -> str:
    """Return a picture as Markdown; its sentence is the alternative text."""
    return f"![{_escaped(picture.text)}]({picture.source})"


def picture_metadata(pictures: Mapping[str, Picture]) -> dict[str, dg.MarkdownMetadataValue]:
    """Show pictures by name."""
    return {name: dg.MetadataValue.md(as_markdown(picture)) for name, picture in pictures.items()}


def _escaped(text: str) -> str:
    """Escape names of columns, so that they cannot end the text of a picture or begin a link or HTML."""
    return re.sub(rf"([{SPECIAL}])", r"\\\1", " ".join(text.split()))
