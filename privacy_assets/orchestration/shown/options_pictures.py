"""The map of candidate releases by risk and worth."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.display.pictures import BLUE, GRAY, GREEN, RED, Drawn, new_figure

COLORS = 256
"""Each color is used by few marks, which a small palette would lose."""
LEAST, MOST = 0.0, 0.9985
TICKS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
MOST_NAMES = 40
LINE = 0.085
"""Height of a name on the axis of worth, in the logarithmic unit of the axis."""
WIDTH, BESIDE, MARK, LETTER = 1.45, 0.035, 0.012, 0.0105
"""Width of a panel in widths of its marks; then, in widths of a panel: where a name starts, half a mark, a letter."""


def map_of_options(
    table: pd.DataFrame, risks: Mapping[str, str], limits: Mapping[str, float | None], recommended: Mapping[str, str]
) -> Drawn:
    """Draw a panel for each side that has candidates: risk to the right, worth upwards.

    ``risks`` names the column of the risk by side; the two risks have different scales. The limit of the risk is drawn
    as a line, and the recommended candidate has a ring.
    """
    drawn = {
        side: table[(table["side"] == side) & table["utility"].notna() & table[risk].notna()].reset_index(drop=True)
        for side, risk in risks.items()
        if risk in table.columns
    }
    drawn = {side: own for side, own in drawn.items() if len(own)}
    figure = new_figure(max(6.4 * len(drawn), 6), 5.4)
    panels = figure.subplots(1, max(len(drawn), 1), sharey=True, squeeze=False)[0]
    highest = max((own["utility_upper"].fillna(own["utility"]).max() for own in drawn.values()), default=MOST)
    top = min(float(_downwards(_upwards(min(highest, MOST)) + 2 * LINE)), MOST)
    for axes, (side, own) in zip(panels, drawn.items(), strict=False):
        _draw_side(axes, own, risks[side], limits.get(side), recommended.get(side))
        axes.set_ylim(LEAST, top)
        axes.set_title(f"{side} records", loc="left", fontsize=10)
    if drawn:
        panels[0].set_ylabel("worth: 1 as the originals, 0 as shuffled columns")
        handles, labels = panels[0].get_legend_handles_labels()
        known = dict(zip(labels, handles, strict=True))
        for axes in panels[1:]:
            handles, labels = axes.get_legend_handles_labels()
            known |= dict(zip(labels, handles, strict=True))
        figure.legend(
            known.values(), known.keys(), loc="outside lower center", ncols=len(known), fontsize=8, frameon=False
        )
    else:
        panels[0].set_axis_off()
    said = " ".join(_said(side, own, risks[side], recommended.get(side)) for side, own in drawn.items())
    return Drawn(figure, "Scatter plot: candidates by risk and worth", said or "No candidate could be judged.")


def _said(side: str, own: pd.DataFrame, risk: str, recommended: str | None) -> str:
    n_proposed, n_refused = int(own["is_proposed"].sum()), int((~own["is_admitted"].astype(bool)).sum())
    candidates = "1 candidate" if len(own) == 1 else f"{len(own)} candidates"
    compared = f"with {side} records {'was' if len(own) == 1 else 'were'} compared"
    said = f"{candidates} {compared}: {n_proposed} proposed, {n_refused} refused"
    chosen = own[own["candidate"] == recommended]
    if chosen.empty:
        return f"{said}; none is recommended."
    row = chosen.iloc[0]
    return (
        f"{said}; recommended is {recommended} with a {_in_words(risk)} of {row[risk]:.3f} and a worth of "
        f"{row['utility']:.3f}."
    )


def _in_words(name: str) -> str:
    return name.replace("_", " ").replace("max ", "largest ")


def _draw_side(axes: Any, own: pd.DataFrame, risk: str, limit: float | None, recommended: str | None) -> None:
    at, worth = own[risk].to_numpy(float), own["utility"].to_numpy(float).clip(LEAST, MOST)
    low = own["utility_lower"].fillna(own["utility"]).to_numpy(float).clip(LEAST, MOST)
    high = own["utility_upper"].fillna(own["utility"]).to_numpy(float).clip(LEAST, MOST)
    axes.vlines(at, np.minimum(low, worth), np.maximum(high, worth), color=GRAY, linewidth=1)
    proposed, admitted = own["is_proposed"].to_numpy(bool), own["is_admitted"].to_numpy(bool)
    for chosen, label, style in (
        (proposed, "proposed", {"c": GREEN, "marker": "o"}),
        (admitted & ~proposed, "admitted, within two deviations of a limit", {"c": BLUE, "marker": "D"}),
        (~admitted, "refused", {"c": RED, "marker": "x"}),
    ):
        if chosen.any():
            axes.scatter(at[chosen], worth[chosen], s=34, zorder=3, label=label, **style)
    ring = (own["candidate"] == recommended).to_numpy(bool)
    if ring.any():
        axes.scatter(
            at[ring], worth[ring], s=170, facecolors="none", edgecolors=GREEN, linewidth=1.6, label="recommended"
        )
    if limit is not None:
        axes.axvline(limit, color=RED, linewidth=0.9, linestyle="--", label="limit of the policy")
    axes.set_yscale("function", functions=(_upwards, _downwards))
    axes.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    right = max([*at, limit or 0.0]) or 1.0
    axes.set_xlim(-0.04 * right, WIDTH * right)
    axes.set_xlabel(f"{_in_words(risk)} (left is safer)")
    axes.grid(alpha=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    _write_names(axes, own["candidate"].tolist(), at, worth, right)


def _write_names(
    axes: Any, names: list[str], at: NDArray[np.float64], worth: NDArray[np.float64], right: float
) -> None:
    """Write names to the right of their marks, where there is neither a mark nor another name."""
    shown = np.argsort(-worth, kind="stable")[:MOST_NAMES]
    across, upwards = at / (WIDTH * right), _upwards(worth)
    heights = _heights_of_names([names[place] for place in shown], across[shown], upwards[shown])
    for place, height in zip(shown, heights, strict=True):
        axes.annotate(
            names[place],
            (at[place], worth[place]),
            (at[place] + BESIDE * WIDTH * right, float(_downwards(height))),
            fontsize=7,
            va="center",
            parse_math=False,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": GRAY},
        )


def _heights_of_names(
    names: list[str], across: NDArray[np.float64], upwards: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a free height for each name: that of its mark, or the next below, or else the next above.

    `across` and `upwards` are the places of the marks, in widths of the panel and in the unit of the axis of worth.
    """
    starts = across + BESIDE
    ends = starts + LETTER * np.array([len(name) for name in names])
    heights = np.zeros(len(names))
    for i in range(len(names)):
        is_beside = (starts[:i] < ends[i]) & (ends[:i] > starts[i])
        is_crossed = (across > starts[i] - MARK) & (across < ends[i])
        taken = np.concatenate([heights[:i][is_beside], upwards[is_crossed]])
        below = np.sort(taken)[::-1]
        heights[i] = _next_free(upwards[i], below, -LINE)
        if heights[i] < 0:
            heights[i] = _next_free(upwards[i], below[::-1], LINE)
    return heights


def _next_free(height: float, taken: NDArray[np.float64], step: float) -> float:
    """Go from one of the `taken` heights to the next, in the direction of `step`, until there is room for a line."""
    for each in taken.tolist():
        if abs(each - height) < 0.999 * abs(step):
            height = each + step
    return height


def _upwards(worth: Any) -> Any:
    return -np.log10(np.maximum(1 - np.asarray(worth), 1e-4))


def _downwards(height: Any) -> Any:
    return 1 - 10.0 ** -np.asarray(height)
