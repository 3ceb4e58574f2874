"""Pictures of aggregates: without cells of a table, and without groups below 5 records."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALLEST_GROUP_DRAWN = 5
MOST_COLUMNS_DRAWN = 30
COLORS = 32
BLUE, GRAY = "#3b6ea8", "#9aa5b1"
GREEN, AMBER, RED, ORANGE = "#1b7f5c", "#c9a227", "#b3261e", "#c26a1c"


@dataclass(frozen=True)
class Picture:
    """A picture of aggregates as PNG, with the sentence below it, and the kind of picture as alternative text."""

    text: str
    png: bytes
    title: str = ""

    @property
    def source(self) -> str:
        """The picture as a data URL, so that the page needs no other file."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}"


class Drawn(NamedTuple):
    """A picture, the kind of picture for people who cannot see it, and a sentence on what it shows."""

    figure: Figure
    title: str
    text: str

    def png(self, colors: int = COLORS) -> bytes:
        """Return the picture as PNG with at most this many colors."""
        from PIL import Image

        drawn, buffer = io.BytesIO(), io.BytesIO()
        self.figure.savefig(drawn, format="png")
        # A palette reduces the size to a third; a Dagster event can have 100 KB in total.
        Image.open(drawn).convert("RGB").quantize(colors).save(buffer, "png", optimize=True)
        return buffer.getvalue()

    def picture(self, colors: int = COLORS) -> Picture:
        """Return the picture as PNG with its words."""
        return Picture(self.text, self.png(colors), self.title)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, with its size in inches, that a notebook displays.

    Matplotlib is imported here, because most processes draw nothing. No figure is registered with pyplot.
    """
    return _figure_class()(figsize=(width, height), layout="constrained")


def without_frame(figure: Figure) -> Figure:
    """Remove the top and the right line around each panel."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


@cache
def _figure_class() -> type[Figure]:
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A figure that a notebook shows without pyplot."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    return ShownFigure
