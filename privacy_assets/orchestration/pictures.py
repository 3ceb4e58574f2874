"""Pictures in the metadata of assets: aggregates only, groups below 5 records are not drawn."""

import base64
import io

import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

SMALLEST_GROUP_DRAWN = 5


def identified_by_size(tree: pd.DataFrame) -> str:
    """Draw the identified records by combination size.

    Parameters
    ----------
    tree : DataFrame
        ``MpuccAssessment.tree``.

    Returns
    -------
    str
        Markdown with the picture as PNG and the same numbers as its text.
    """
    by_size = tree.groupby("combo_size")["mpuccs_collision_cnt"].sum()
    drawn = by_size[by_size >= SMALLEST_GROUP_DRAWN]
    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    bars = axes.bar([str(size) for size in drawn.index], drawn.to_numpy(), color="#3b6ea8")
    axes.bar_label(bars, labels=[f"{count:,}" for count in drawn], fontsize=8)
    axes.set_xlabel("columns needed to single out an original")
    axes.set_ylabel("synthetic records")
    axes.spines[["top", "right"]].set_visible(False)
    numbers = ", ".join(f"{size}: {count:,}" for size, count in drawn.items()) or "none of 5 records or more"
    return _as_markdown(figure, f"Identified synthetic records by combination size ({numbers})")


def _as_markdown(figure: Figure, text: str) -> str:
    buffer = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(buffer, format="png")
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return f"![{text}](data:image/png;base64,{encoded})"
