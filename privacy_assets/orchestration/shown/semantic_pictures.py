"""Pictures of a semantic assessment: counts and names of attributes, without values of the table."""

from typing import TYPE_CHECKING

import pandas as pd

from privacy_assets.orchestration.shown.pictures import SMALLEST_GROUP_DRAWN, new_figure
from privacy_assets.semantic_risk.result import SemanticAssessment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {"keep": "#3b6ea8", "boundary": "#c9a227", "discard": "#b3392f"}
WORDS = {"keep": "keep: up to alpha", "boundary": "boundary", "discard": "discard: from beta on"}
MOST_BARS = 12
MOST_NEIGHBORS_DRAWN = 5
MOST_NAMES = 4
MOST_RISKS_SAID = 6


def risk_distribution(assessment: SemanticAssessment) -> "Figure":
    """Draw the number of records by basic semantic risk, in the colors of the three regions.

    Parameters
    ----------
    assessment : SemanticAssessment
        Without ``three_way`` all bars have one color; the risk limit, if there is one, is a line.

    Returns
    -------
    Figure
        One bar per risk 1 / d, the smallest risks combined; parts of fewer than 5 records are not drawn.
    """
    records = assessment.records
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
    labels = [f"1/{d}" for d in counts.index]
    axes.set_xticks(places, [*labels[:-1], f"≤ {labels[-1]}"], fontsize=8)
    axes.set_xlabel("basic semantic risk")
    axes.set_ylabel("records")
    axes.spines[["top", "right"]].set_visible(False)
    _explain(axes, assessment, is_colored="region" in records)
    return figure


def describe_risks(assessment: SemanticAssessment) -> str:
    """Describe `risk_distribution` in text, with the largest risks of 5 records or more."""
    by_risk = assessment.records["basic_semantic_risk"].value_counts().sort_index(ascending=False)
    told = by_risk[by_risk >= SMALLEST_GROUP_DRAWN].head(MOST_RISKS_SAID)
    numbers = ", ".join(f"{risk:.3g}: {count:,}" for risk, count in told.items()) or "none of 5 records or more"
    limit = assessment.settings["risk_limit"]
    among = "" if limit is None else f", and the limit of {limit:g} on it"
    return f"Records by basic semantic risk{among} (the largest risks: {numbers})"


def _explain(axes: "Axes", assessment: SemanticAssessment, *, is_colored: bool) -> None:
    """Add the legend of the regions and the line of the limit."""
    if is_colored:
        from matplotlib.patches import Patch

        patches = [Patch(color=color, label=WORDS[region]) for region, color in COLORS.items()]
        axes.legend(handles=patches, fontsize=7, frameon=False)
    limit = assessment.settings["risk_limit"]
    if limit is not None:
        # Between the bars of the largest acceptable risk and of the next one.
        n_acceptable = sum(1 / d <= limit for d in range(1, MOST_BARS + 1))
        if n_acceptable:
            axes.axvline(n_acceptable - 0.5, color="black", linestyle=":", linewidth=1)
        within = "" if n_acceptable else f", below 1/{MOST_BARS}"
        axes.set_title(f"risk limit {limit:.3g}{within}", fontsize=8)


def concept_neighborhood(assessment: SemanticAssessment) -> "Figure":
    """Draw the riskiest concept of a record with its neighbors as a small line diagram.

    Attributes are named by column and number. Counts below 5 records are not shown.

    Parameters
    ----------
    assessment : SemanticAssessment
        Its ``neighborhood`` is drawn, with at most 5 neighbors above and 5 below.

    Returns
    -------
    Figure
        Concepts with more records are above; the attributes that a line adds or removes are at its other end.
    """
    neighborhood = assessment.neighborhood
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
    return figure


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
