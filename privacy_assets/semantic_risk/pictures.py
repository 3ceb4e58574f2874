"""Pictures of a semantic assessment: counts and names of attributes, without values of the table."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from privacy_assets.display.numbers import number, percent
from privacy_assets.display.pictures import AMBER, BLUE, RED, SMALLEST_GROUP_DRAWN, Drawn, new_figure, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {"keep": BLUE, "boundary": AMBER, "discard": RED}
MOST_BARS = 12
MOST_NEIGHBORS_DRAWN = 5
MOST_NAMES = 4


def draw_risk_distribution(records: pd.DataFrame, settings: Mapping[str, Any]) -> Drawn:
    """Draw the number of records by basic semantic risk, in the colors of the three regions, if there are any.

    One bar per risk 1 / d, the smallest risks combined; parts of fewer than 5 records are not drawn. The risk limit, if
    there is one, is a line.
    """
    largest = records["smallest_difference"].clip(upper=MOST_BARS)
    regions = records["region"] if "region" in records else pd.Series("keep", index=records.index)
    counts = pd.crosstab(largest, regions).reindex(range(1, MOST_BARS + 1), fill_value=0)
    counts = counts.where(counts >= SMALLEST_GROUP_DRAWN, 0)
    figure = new_figure(6, 3.2)
    axes = figure.subplots()
    places = MOST_BARS - counts.index.to_numpy()
    below = pd.Series(0, index=counts.index)
    for region in (name for name in COLORS if name in counts):
        axes.bar(places, counts[region], bottom=below, color=COLORS[region])
        below += counts[region]
    for place, count in zip(places, below, strict=True):
        if count:
            axes.annotate(f"{count:,}", (place, count), ha="center", va="bottom", fontsize=7)
    labels = ["certain", *(f"1 in {d}" for d in counts.index[1:])]
    axes.set_xticks(places, [*labels[:-1], f"{labels[-1]}\nor less"], fontsize=7)
    axes.set_xlabel("probability of picking the right record (basic semantic risk)")
    axes.set_ylabel("records")
    if "region" in records:
        _explain_colors(axes, *settings["three_way"])
    if settings["risk_limit"] is not None:
        _draw_limit(axes, settings["risk_limit"])
    return Drawn(without_frame(figure), "Bar chart: records by semantic risk", _said(records, settings["risk_limit"]))


def _said(records: pd.DataFrame, limit: float | None) -> str:
    """Describe how many records are at the largest risk, or above the limit on it."""
    risks = records["basic_semantic_risk"]
    attacker = "an attacker who knows all attributes of a record and one that it lacks"
    if limit is None:
        n_certain = int((risks >= 1).sum())
        return f"For {_of(n_certain, len(records))}, {attacker} is certain to pick the right one."
    n_above = int((risks > limit).sum())
    of_all = _of(n_above, len(records))
    return f"For {of_all}, {attacker} picks the right one with a probability above the limit of {number(limit)}."


def _of(n: int, n_records: int) -> str:
    if n == 0:
        return f"none of {n_records:,} records"
    if n < SMALLEST_GROUP_DRAWN:
        return f"fewer than {SMALLEST_GROUP_DRAWN} of {n_records:,} records"
    return f"{n:,} of {n_records:,} records ({percent(n / n_records)})"


def _explain_colors(axes: "Axes", alpha: float, beta: float) -> None:
    from matplotlib.patches import Patch

    words = {
        "keep": f"acceptable: up to {number(alpha)}",
        "boundary": "in between: to be decided",
        "discard": f"too high: from {number(beta)} on",
    }
    axes.legend(
        handles=[Patch(color=color, label=words[region]) for region, color in COLORS.items()], fontsize=7, frameon=False
    )


def _draw_limit(axes: "Axes", limit: float) -> None:
    """Draw a line between the bars of the largest acceptable risk and of the next one."""
    n_acceptable = sum(1 / d <= limit for d in range(1, MOST_BARS + 1))
    if n_acceptable:
        axes.axvline(n_acceptable - 0.5, color="black", linestyle=":", linewidth=1)
    within = "" if n_acceptable else f", below 1 in {MOST_BARS}"
    axes.set_title(f"dotted: limit of {number(limit)}{within}", fontsize=8)


def draw_riskiest_concept(neighborhood: pd.DataFrame) -> Drawn:
    """Draw the riskiest concept of a record with its neighbors as a small line diagram.

    Attributes are named by column and number; those that a line adds or removes are at its other end. At most 5
    neighbors above, which have more records, and 5 below are drawn. Counts below 5 are not shown.
    """
    figure = new_figure(7, 4)
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_xlim(-0.5, 0.5)
    nodes = {place: _nodes(neighborhood, place) for place in ("above", "below")}
    # Without neighbors there is nothing to draw.
    axes.set_ylim(-1.6 if nodes["below"] else -0.3, 1.6 if nodes["above"] else 0.3)
    figure.set_figheight(1 + 1.5 * sum(map(bool, nodes.values())))
    for place, height, sign in (("above", 1.0, "without "), ("below", -1.0, "with ")):
        every = nodes[place]
        drawn = every[:MOST_NEIGHBORS_DRAWN]
        for i, (names, n_records) in enumerate(drawn):
            x = (i + 0.5) / len(drawn) - 0.5
            axes.plot([0, x], [0, height], color="#999999", linewidth=1, zorder=1)
            _draw_node(axes, (x, height), n_records, sign + _some(names), height * 0.3)
        if len(every) > len(drawn):
            axes.text(0.5, height * 1.55, f"and {len(every) - len(drawn)} more", ha="right", va="center", fontsize=7)
    for names, n_records in _nodes(neighborhood, "concept"):
        _draw_node(axes, (0, 0), n_records, _some(names), 0, color=COLORS["discard"])
    said = (
        "The red box is the group of records that reveals most, with its attributes. Above are the larger groups "
        "without an attribute, below the smaller ones with one more; the numbers are records."
    )
    return Drawn(figure, "Diagram: the group of records that reveals most, and its neighbors", said)


def _nodes(neighborhood: pd.DataFrame, place: str) -> list[tuple[tuple[str, ...], int]]:
    own = neighborhood[neighborhood["place"] == place]
    return list(zip(own["attributes"], own["records"].tolist(), strict=True))


def _draw_node(
    axes: "Axes", place: tuple[float, float], n_records: int, text: str, offset: float, color: str = COLORS["keep"]
) -> None:
    x, y = place
    count = f"{n_records:,}" if n_records >= SMALLEST_GROUP_DRAWN else f"< {SMALLEST_GROUP_DRAWN}"
    axes.text(
        x, y, count, ha="center", va="center", color="white", fontsize=8, zorder=2,
        bbox={"boxstyle": "round", "facecolor": color, "edgecolor": "none"},
    )  # fmt: skip
    x_text, align = (x, "center") if offset else (0.06, "left")
    axes.text(x_text, y + offset, text, ha=align, va="center", fontsize=7, zorder=2)


def _some(names: tuple[str, ...]) -> str:
    """Write the first names, two per line, and the number of the others."""
    shown = [*names[:MOST_NAMES], *([f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else [])]
    return "\n".join(", ".join(shown[i : i + 2]) for i in range(0, len(shown), 2)) or "no attribute"
