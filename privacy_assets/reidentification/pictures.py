"""Pictures of a re-identification assessment: the risk by how many columns, and rows of a person, an attacker knows."""

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from privacy_assets.display.numbers import percent
from privacy_assets.display.pictures import BLUE, Drawn, new_figure, without_frame
from privacy_assets.errors import InvalidSettingError
from privacy_assets.reidentification.sample_intervals import CONFIDENCE_LEVEL

LINE_LENGTH = 90
PANELS = (
    ("mean_reidentification_probability", "max", "right pick, on average"),
    ("mean_nonspecificity", "min", "candidates, geometric mean"),
)


def describe_sample(curve: pd.DataFrame) -> str | None:
    """Describe the records from which a curve was computed, and its intervals; None if it is exact."""
    n_sampled, n_released = int(curve["n_records"].min()), int(curve["n_records"].max())
    if n_sampled == n_released:
        return None
    return (
        f"from a random sample of {n_sampled:,} of {n_released:,} released records, but for all columns from every "
        f"record; the bars are {100 * CONFIDENCE_LEVEL:.0f} % intervals of all points together"
    )


def draw_candidates(curve: pd.DataFrame) -> Drawn:
    """Draw the mean probability of the right pick, and the number of candidates, by the number of known columns.

    The band and its mean cover all sets of a size, if all were assessed. The dashed line is the most identifying set of
    each size; for larger sizes, that of the greedy chain. If the curve was computed from a sample, bars show its
    intervals. The mean nonspecificity, a mean logarithm, is drawn as the geometric mean of the numbers of candidates.
    """
    figure = new_figure(6, 5)
    sampled = describe_sample(curve)
    assessed = curve[curve["chosen_as"] != "named"]
    is_complete = assessed.groupby("n_known")["chosen_as"].transform(lambda chosen: "greedy" not in set(chosen))
    for axes, (name, worst, label) in zip(figure.subplots(2, 1, sharex=True), PANELS, strict=True):
        by_size = assessed[is_complete.astype(bool)].groupby("n_known")[name].agg(["min", "mean", "max"])
        # A gap where only the greedy chain was assessed.
        by_size = _in_people(name, by_size.reindex(range(1, int(assessed["n_known"].max()) + 1)))
        axes.fill_between(by_size.index, by_size["min"], by_size["max"], color=BLUE, alpha=0.25, linewidth=0)
        axes.plot(by_size.index, by_size["mean"], color=BLUE, marker="o", markersize=4, label="mean of all sets")
        most_telling = _in_people(name, assessed.groupby("n_known")[name].agg(worst))
        axes.plot(most_telling.index, most_telling, color=BLUE, linestyle="--", label="most identifying set")
        if sampled:
            at_worst = assessed.loc[getattr(assessed.groupby("n_known")[name], f"idx{worst}")()]
            ends = (_in_people(name, at_worst[f"{name}_{end}"]) for end in ("low", "high"))
            axes.vlines(at_worst["n_known"], *ends, color=BLUE)
        axes.set_ylabel(label)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(frameon=False, fontsize=8)
    probabilities, candidates = figure.axes
    probabilities.set_ylim(bottom=0)
    probabilities.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    candidates.set_yscale("log")
    candidates.set_ylim(bottom=1)
    candidates.yaxis.set_major_formatter(lambda number, _: f"{number:,.0f}")
    candidates.set_xlabel("columns that an attacker knows")
    if sampled:
        figure.suptitle(fill(sampled[0].upper() + sampled[1:], LINE_LENGTH), fontsize=8)
    return Drawn(without_frame(figure), "Two curves: risk by the number of known columns", _said(assessed, sampled))


def draw_linked_rows(curve: pd.DataFrame) -> Drawn:
    """Draw the share of people who are singled out by the number of their known rows, which the release links.

    For several sets of known columns, the worst is drawn. Bars show the intervals of the estimates; the dashed line is
    the mean probability of picking the right person.
    """
    if not (curve["n_rows"] > 1).any():
        raise InvalidSettingError(
            "The assessment has no figures for several known rows. Expected `links`, `known_rows` above 1, and people "
            "with several rows. Nothing was drawn."
        )
    sets = curve["known"].map(frozenset)
    linked = curve[sets.isin(sets[curve["n_rows"] > 1])]
    by_rows = linked.loc[linked.groupby("n_rows")["share_of_singletons"].idxmax()].set_index("n_rows")
    share = by_rows["share_of_singletons"]
    figure = new_figure(6, 3)
    axes = figure.subplots()
    places = range(len(by_rows))
    ends = by_rows["share_of_singletons_low"], by_rows["share_of_singletons_high"]
    axes.plot(places, share, color=BLUE, marker="o", markersize=4, label="singled out: nobody else fits")
    axes.vlines(places, *ends, color=BLUE)
    right_pick = linked.groupby("n_rows")["mean_reidentification_probability"].max()
    axes.plot(places, right_pick, color=BLUE, linestyle="--", label="right pick, on average")
    axes.set_xticks(places, [f"{n_rows:,}" for n_rows in by_rows.index])
    axes.set_ylim(0, 1.05)
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    axes.set_xlabel("rows of a person that an attacker knows")
    axes.set_ylabel("people")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    said = ", ".join(f"{percent(found)} with {n_rows:,}" for n_rows, found in share.items())
    title = "Curve: people singled out by the number of their known rows"
    return Drawn(without_frame(figure), title, f"The share of people singled out is {said} known rows.")


def _in_people(name: str, found: Any) -> Any:
    """Turn mean logarithms into numbers of candidates."""
    return np.exp(found) if name == "mean_nonspecificity" else found


def _said(assessed: pd.DataFrame, sampled: str | None) -> str:
    worst = assessed.groupby("n_known")["mean_reidentification_probability"].max()
    few, most = int(worst.index.min()), int(worst.index.max())
    said = f"Knowing {_all(most)}, an attacker picks the right record with a probability of {percent(worst[most])} "
    said += "on average"
    if few != most:
        said += f"; knowing the most identifying {_columns(few)}, of {percent(worst[few])}"
    return f"{said}{f' ({sampled})' if sampled else ''}."


def _columns(n: int) -> str:
    return "column" if n == 1 else f"{n:,} columns"


def _all(n: int) -> str:
    return "the only column" if n == 1 else f"all {n:,} columns"
