"""Pictures in the metadata of assets, as PNG in Markdown with a sentence on what they show."""

import base64
import re
from collections.abc import Mapping

import dagster as dg

from privacy_assets.display.pictures import COLORS, Drawn

SPECIAL = re.escape("\\[]`<>&!")
"""Characters with a meaning in Markdown."""


def as_markdown(drawn: Drawn, colors: int = COLORS) -> str:
    """Return a picture as PNG of at most this many colors in Markdown; its sentence is the alternative text."""
    encoded = base64.b64encode(drawn.png(colors)).decode()
    return f"![{_escaped(drawn.text)}](data:image/png;base64,{encoded})"


def picture_metadata(pictures: Mapping[str, Drawn]) -> dict[str, dg.MarkdownMetadataValue]:
    """Show pictures by name."""
    return {name: dg.MetadataValue.md(as_markdown(drawn)) for name, drawn in pictures.items()}


def _escaped(text: str) -> str:
    """Escape names of columns, so that they cannot end the text of a picture or begin a link or HTML."""
    return re.sub(rf"([{SPECIAL}])", r"\\\1", " ".join(text.split()))
