"""Pictures in the metadata of assets: aggregates only, without groups below 5 records."""

import base64
import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from privacy_assets.errors import InvalidTableError
from privacy_assets.mpucc.assess import MpuccAssessment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALLEST_GROUP_DRAWN = 5
MOST_COLUMNS_DRAWN = 30
MOST_RECTANGLES = 1_000
COLORS = 32
BLUE = "#3b6ea8"
GRAY = "#9aa5b1"
SPECIAL = re.escape("\\[]`<>&!")
"""Characters with a meaning in Markdown."""


def identified_by_size(assessment: MpuccAssessment) -> str:
    """Draw the identified records by combination size, with those of the control if there is one.

    Parameters
    ----------
    assessment : MpuccAssessment
        With a control, both are counted against equally many real records, as means over the samples.

    Returns
    -------
    str
        Markdown with the picture as PNG and the same numbers as text.
    """
    if assessment.control is None:
        by_size = assessment.tree.groupby("combo_size")["mpuccs_collision_cnt"].sum()
        counted = by_size.reindex(range(1, by_size.index.max() + 1), fill_value=0)
        against = {"an original": tuple(map(float, counted))}
    else:
        control = assessment.control
        n_matched = f"one of {control.n_matched_records:,}"
        units = ("originals", "control records")
        if "n_people" in assessment.settings:
            units = ("people of the original", "people of the control")
        against = {
            f"{n_matched} {units[0]}": control.matched_identified_by_size,
            f"{n_matched} {units[1]}": control.control_identified_by_size,
        }
    sizes = range(1, max(map(len, against.values())) + 1)
    figure = new_figure(6, 3)
    axes = figure.subplots()
    width, told = 0.8 / len(against), []
    for place, (whom, counts) in enumerate(against.items()):
        drawn = {size: round(n) for size, n in enumerate(counts, start=1) if n >= SMALLEST_GROUP_DRAWN}
        at = [size + (place - (len(against) - 1) / 2) * width for size in drawn]
        bars = axes.bar(at, list(drawn.values()), width, color=(BLUE, GRAY)[place], label=whom)
        axes.bar_label(bars, labels=[f"{count:,}" for count in drawn.values()], fontsize=8)
        numbers = ", ".join(f"{size}: {count:,}" for size, count in drawn.items()) or "none of 5 records or more"
        told.append(f"{whom} ({numbers})")
    axes.set_xticks(list(sizes))
    axes.set_xlim(0.5, max(len(sizes), 1) + 0.5)
    axes.set_xlabel("columns needed to single out a real record")
    axes.set_ylabel("synthetic records")
    axes.spines[["top", "right"]].set_visible(False)
    if len(against) > 1:
        axes.legend(title="that single out", fontsize=8, title_fontsize=8, frameon=False)
    text = f"Identified synthetic records by combination size, singling out {', '.join(told)}"
    return as_markdown(figure, text)


def columns_that_drive_the_risk(columns: Sequence[tuple[str, float]], n_identified: int) -> str:
    """Draw the share of identified records that have each column in the combination that singles them out.

    Parameters
    ----------
    columns : sequence of (str, float)
        The result of `driving_columns`; the first 30 columns in 5 records or more are drawn.
    n_identified : int
        Identified records.

    Returns
    -------
    str
        Markdown with the picture as PNG and the same numbers as text.
    """
    drawn = [(name, share) for name, share in columns if round(share * n_identified) >= SMALLEST_GROUP_DRAWN]
    drawn = drawn[:MOST_COLUMNS_DRAWN]
    figure = new_figure(6, 0.9 + 0.28 * len(drawn))
    axes = figure.subplots()
    bars = axes.barh([name for name, _ in drawn], [100 * share for _, share in drawn], color=BLUE)
    axes.bar_label(bars, fmt="%.1f %%", fontsize=8, padding=2)
    axes.invert_yaxis()
    axes.set_xlim(0, 110)
    axes.set_xlabel("share of the identified records, percent")
    axes.spines[["top", "right"]].set_visible(False)
    numbers = ", ".join(f"{name}: {share:.1%}" for name, share in drawn) or "none in 5 records or more"
    return as_markdown(figure, f"Columns that drive the risk, by share of the identified records ({numbers})")


def records_by_class_size(classes: pd.DataFrame) -> str:
    """Draw the number of records by class size.

    Parameters
    ----------
    classes : DataFrame
        ``Anonymization.classes``.

    Returns
    -------
    str
        Markdown with the picture as PNG and the main numbers as text.
    """
    unit = "people" if "people" in classes.columns else "rows"
    sizes, rows = classes[unit].to_numpy(), classes["rows"].to_numpy()
    edges = np.unique(np.round(np.geomspace(sizes.min(), sizes.max() + 1, 25)).astype(int))
    edges = edges if len(edges) > 1 else np.array([sizes.min(), sizes.min() + 1])
    records, _ = np.histogram(sizes, bins=edges, weights=rows)
    records = np.where(records >= SMALLEST_GROUP_DRAWN, records, 0)
    figure = new_figure(6, 3)
    axes = figure.subplots()
    axes.bar(range(len(records)), records, width=0.9, color=BLUE)
    step = max(len(records) // 8, 1)
    shown = range(0, len(records), step)
    axes.set_xticks(list(shown), [_interval(edges[bar], edges[bar + 1] - 1) for bar in shown], fontsize=8)
    axes.set_xlabel(f"{unit} of the class")
    axes.set_ylabel("records")
    axes.spines[["top", "right"]].set_visible(False)
    text = (
        f"Records by class size ({len(sizes):,} classes; smallest {sizes.min():,} {unit}, median "
        f"{np.median(sizes):,.0f}, largest {sizes.max():,})"
    )
    return as_markdown(figure, text)


def information_loss_by_column(certainty_penalty: Mapping[str, float]) -> str:
    """Draw the loss of the 30 worst quasi-identifiers (NCP), from 0 % (unchanged) to 100 % (none left)."""
    by_loss = sorted(certainty_penalty.items(), key=lambda item: item[1])[-MOST_COLUMNS_DRAWN:]
    figure = new_figure(6, 0.9 + 0.28 * len(by_loss))
    axes = figure.subplots()
    bars = axes.barh([name for name, _ in by_loss], [100 * loss for _, loss in by_loss], color=BLUE)
    axes.bar_label(bars, fmt="%.1f %%", fontsize=8, padding=2)
    axes.set_xlim(0, max(105 * max(loss for _, loss in by_loss), 1) * 1.1)
    axes.set_xlabel("information loss (NCP), percent")
    axes.spines[["top", "right"]].set_visible(False)
    numbers = ", ".join(f"{name}: {loss:.1%}" for name, loss in reversed(by_loss))
    return as_markdown(figure, f"Information loss by column ({numbers})")


def classes_as_rectangles(rectangles: pd.DataFrame, x: str, y: str) -> str:
    """Draw the classes in the plane of two columns.

    Parameters
    ----------
    rectangles : DataFrame
        The result of `class_rectangles`. Classes of fewer than 5 records are not drawn. The axes are shares of the
        records, so no value of the table can be read from them.
    x, y : str
        Names of the columns.

    Returns
    -------
    str
        Markdown with the picture as PNG.
    """
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    drawn = rectangles[rectangles["rows"] >= SMALLEST_GROUP_DRAWN].nlargest(MOST_RECTANGLES, "rows")
    figure = new_figure(4, 4)
    axes = figure.subplots()
    width = (drawn["x_high"] - drawn["x_low"]).to_numpy()
    height = (drawn["y_high"] - drawn["y_low"]).to_numpy()
    corners = drawn[["x_low", "y_low"]].to_numpy()
    patches = [Rectangle((*corner,), *sides) for corner, sides in zip(corners, np.c_[width, height], strict=True)]
    # The more classes overlap, the fainter each one is drawn.
    alpha = float(np.clip(1 / max((width * height).sum(), 1), 0.05, 0.6))
    axes.add_collection(PatchCollection(patches, facecolor=BLUE, edgecolor="#1d3a5f", alpha=alpha, linewidth=0.4))
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel(f"{x}: share of the records below")
    axes.set_ylabel(f"{y}: share of the records below")
    text = f"Classes by {x} and {y} ({len(drawn):,} of {len(rectangles):,} distinct rectangles drawn)"
    return as_markdown(figure, text)


def _interval(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure, in inches; Matplotlib is imported now, as most processes draw nothing."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def as_markdown(figure: "Figure", text: str, colors: int = COLORS) -> str:
    """Write a picture as PNG of at most so many colors in Markdown, with alternative text."""
    from PIL import Image

    drawn, buffer = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png")
    # A palette makes it a third of the size; an event takes 100 KB in total.
    Image.open(drawn).convert("RGB").quantize(colors).save(buffer, "png", optimize=True)
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return f"![{_escaped(text)}](data:image/png;base64,{encoded})"


def from_markdown(markdown: str) -> tuple[str, bytes]:
    """Extract the text and the PNG from the output of `as_markdown`."""
    found = re.fullmatch(r"!\[(.*)\]\(data:image/png;base64,(\S+)\)", markdown, re.DOTALL)
    if found is None:
        raise InvalidTableError("The text is not a picture in Markdown. Nothing was shown.")
    return re.sub(rf"\\([{SPECIAL}])", r"\1", found[1]), base64.b64decode(found[2])


def _escaped(text: str) -> str:
    """Escape names of columns, so that they cannot end the text of a picture or begin a link or HTML."""
    return re.sub(rf"([{SPECIAL}])", r"\\\1", " ".join(text.split()))
