"""The picture of a re-identification assessment: risk by the number of known columns."""

from textwrap import fill
from typing import TYPE_CHECKING

import pandas as pd

from privacy_assets.orchestration.shown.pictures import BLUE, as_markdown, new_figure
from privacy_assets.reidentification.sample_intervals import CONFIDENCE_LEVEL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE_LENGTH = 90


def reidentification_curve(curve: pd.DataFrame) -> str:
    """Draw how the candidates of released records decrease as an attacker knows more columns.

    Parameters
    ----------
    curve : DataFrame
        ``ReidentificationAssessment.curve``.

    Returns
    -------
    str
        Markdown with the picture as PNG and the means as text.
    """
    worst = curve[curve["chosen_as"] != "named"].groupby("n_known")["mean_reidentification_probability"].max()
    numbers = ", ".join(f"{n_known}: {value:.3g}" for n_known, value in worst.items())
    sampled = describe_sample(curve)
    return as_markdown(
        draw_reidentification_curve(curve),
        f"Mean re-identification probability for the most identifying columns, by their number ({numbers})"
        + (f"; {sampled}" if sampled else ""),
    )


def describe_sample(curve: pd.DataFrame) -> str | None:
    """Say which records a curve was computed from, and what its intervals mean; None if it is exact."""
    n_sampled, n_released = int(curve["n_records"].min()), int(curve["n_records"].max())
    if n_sampled == n_released:
        return None
    return (
        f"from a random sample of {n_sampled:,} of {n_released:,} released records, but for all columns from every "
        f"record; the bars are {100 * CONFIDENCE_LEVEL:.0f} % intervals of all points together"
    )


def draw_reidentification_curve(curve: pd.DataFrame) -> "Figure":
    """Draw mean probability and mean nonspecificity over the number of known columns.

    The band and its mean cover all sets of a size, if all were assessed. The dashed line is the most identifying set of
    each size; for larger sizes, that of the greedy chain. If the curve was computed from a sample, bars show its
    intervals.
    """
    figure = new_figure(6, 5)
    sampled = describe_sample(curve)
    panels = (
        ("mean_reidentification_probability", "max", "mean 1 / candidates"),
        ("mean_nonspecificity", "min", "mean N = ln candidates"),
    )
    assessed = curve[curve["chosen_as"] != "named"]
    is_complete = assessed.groupby("n_known")["chosen_as"].transform(lambda chosen: "greedy" not in set(chosen))
    for axes, (name, worst, label) in zip(figure.subplots(2, 1, sharex=True), panels, strict=True):
        by_size = assessed[is_complete.astype(bool)].groupby("n_known")[name].agg(["min", "mean", "max"])
        # A gap where only the greedy chain was assessed.
        by_size = by_size.reindex(range(1, int(assessed["n_known"].max()) + 1))
        axes.fill_between(by_size.index, by_size["min"], by_size["max"], color=BLUE, alpha=0.25, linewidth=0)
        axes.plot(by_size.index, by_size["mean"], color=BLUE, marker="o", markersize=4, label="mean of all sets")
        most_telling = assessed.groupby("n_known")[name].agg(worst)
        axes.plot(most_telling.index, most_telling, color=BLUE, linestyle="--", label="most identifying set")
        if sampled:
            at_worst = assessed.loc[getattr(assessed.groupby("n_known")[name], f"idx{worst}")()]
            axes.vlines(at_worst["n_known"], at_worst[f"{name}_low"], at_worst[f"{name}_high"], color=BLUE)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    axes.set_xlabel("columns that an attacker knows")
    if sampled:
        figure.suptitle(fill(sampled[0].upper() + sampled[1:], LINE_LENGTH), fontsize=8)
    return figure
