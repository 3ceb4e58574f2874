"""Pictures of an anonymization: the sizes of its classes, the losses of its columns, and classes as rectangles."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from privacy_assets.display.numbers import percent
from privacy_assets.display.pictures import (
    BLUE,
    MOST_COLUMNS_DRAWN,
    SMALLEST_GROUP_DRAWN,
    Drawn,
    new_figure,
    without_frame,
)

MOST_RECTANGLES = 1_000


def draw_class_sizes(classes: pd.DataFrame) -> Drawn:
    """Draw the number of records by class size from ``Anonymization.classes``."""
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
    axes.set_xlabel("people who share a class" if unit == "people" else "records of a class")
    axes.set_ylabel("records")
    words = "people" if unit == "people" else "records"
    said = (
        f"The smallest of {len(sizes):,} classes has {sizes.min():,} {words}, half of the classes have at most "
        f"{np.median(sizes):,.0f}, and the largest has {sizes.max():,}."
        if len(sizes) > 1
        else f"All records are in one class of {sizes.min():,} {words}."
    )
    return Drawn(without_frame(figure), "Bar chart: records by the size of their class", said)


def draw_information_loss(certainty_penalty: Mapping[str, float]) -> Drawn:
    """Draw the loss of the 30 worst quasi-identifiers (NCP), from 0 % (unchanged) to 100 % (nothing left)."""
    by_loss = sorted(certainty_penalty.items(), key=lambda item: item[1])[-MOST_COLUMNS_DRAWN:]
    figure = new_figure(6, 0.9 + 0.28 * len(by_loss))
    axes = figure.subplots()
    bars = axes.barh([name for name, _ in by_loss], [100 * loss for _, loss in by_loss], color=BLUE)
    axes.bar_label(bars, fmt="%.1f %%", fontsize=8, padding=2)
    axes.set_xlim(0, max(105 * max(loss for _, loss in by_loss), 1) * 1.1)
    axes.set_xlabel("precision lost: 0 % unchanged, 100 % nothing left")
    (least, least_loss), (most, most_loss) = by_loss[0], by_loss[-1]
    if most_loss == 0:
        said = "No column lost precision."
    elif len(by_loss) == 1:
        said = f"{most} lost {percent(most_loss)} of its precision."
    else:
        said = f"{most} lost the most precision ({percent(most_loss)}), {least} the least ({percent(least_loss)})."
    return Drawn(without_frame(figure), "Bar chart: precision lost by column", said)


def draw_rectangles(rectangles: pd.DataFrame, x: str, y: str) -> Drawn:
    """Draw the classes in the plane of two columns from the result of `class_rectangles`.

    Classes of fewer than 5 records are not drawn. The axes are shares of the records, so no value of the table can be
    read from them.
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
    said = (
        f"The wider and higher a rectangle, the less the records of its class reveal about {x} and {y}; "
        f"{len(drawn):,} of {len(rectangles):,} are drawn."
    )
    return Drawn(figure, f"Classes as rectangles in the plane of {x} and {y}", said)


def _interval(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"
