"""Pictures of a disclosure assessment: originals compared with people whom the synthesizer never saw."""

import pandas as pd

from privacy_assets.disclosure.criteria import CRITERIA, criteria_in_words
from privacy_assets.display.numbers import percent
from privacy_assets.display.pictures import BLUE, GRAY, Drawn, new_figure, without_frame

MOST_COLUMNS = 20
REACH = 1.96
"""Half the width of a 95 % interval, in standard errors."""


def draw_excess_by_criterion(criteria: pd.DataFrame, *, level: float, is_answered: bool) -> Drawn:
    """Draw the difference between originals and control by criterion, each in units of its own interval.

    A difference right of the line means that originals are revealed more, by copies or by gaps. Adjusted p values up
    to ``level`` count as found; ``is_answered`` is false if the tables cannot answer the question.
    """
    rows = criteria.to_dict("records")
    figure = new_figure(6, 0.8 + 0.33 * len(rows))
    axes = figure.subplots()
    most = REACH
    for place, row in enumerate(reversed(rows)):
        half = (row["high"] - row["low"]) / 2
        at = REACH * row["excess"] / half if half > 0 else 0.0
        axes.plot([at - REACH, at + REACH], [place, place], color=BLUE, linewidth=2)
        axes.plot([at], [place], marker="o", color=BLUE)
        most = max(most, abs(at) + REACH)
    axes.axvline(0, color=GRAY, linestyle="--", linewidth=1)
    words = [": ".join([*filter(None, [row.get("view")]), CRITERIA[row["criterion"]].words]) for row in reversed(rows)]
    axes.set_yticks(range(len(rows)), words)
    axes.set_xlim(-1.1 * most, 1.1 * most)
    sides = ["control\nstands out", "no\ndifference", "originals\nstand out"]
    axes.set_xticks([-0.7 * most, 0, 0.7 * most], sides, fontsize=8)
    axes.tick_params(axis="x", length=0)
    found = dict.fromkeys(row["criterion"] for row in rows if row["adjusted_p_value"] <= level)
    if found:
        named = criteria_in_words(found)
        said = f"More is revealed about originals than about people whom the synthesizer never saw: {named}."
    elif is_answered:
        said = (
            "No more is revealed about originals than about people whom the synthesizer never saw, given chance and "
            f"the number of questions ({len(rows)})."
        )
    else:
        said = "These tables cannot answer whether originals are revealed more than people in the control."
    return Drawn(without_frame(figure), "Dots with 95 % intervals: difference of originals and control", said)


def draw_guessed_by_column(sensitive: pd.DataFrame) -> Drawn:
    """Draw how often values are guessed right from the nearest synthetic record, for originals and for the control.

    The 20 columns with the largest difference are drawn.
    """
    nearest = sensitive[sensitive["attack"] == "nearest"].sort_values("excess", ascending=False, kind="stable")
    judged = nearest.dropna(subset=["original", "control"])
    rows = judged.head(MOST_COLUMNS).to_dict("records")
    figure = new_figure(6, 1.4 + 0.3 * max(len(rows), 2))
    axes = figure.subplots()
    for place, row in enumerate(reversed(rows)):
        axes.plot([row["control"], row["original"]], [place, place], color=GRAY, linewidth=1)
    places = range(len(rows))
    control, original = ([row[side] for row in reversed(rows)] for side in ("control", "original"))
    axes.plot(control, places, marker="o", color=GRAY, linestyle="none", label="of the control")
    axes.plot(original, places, marker="o", color=BLUE, linestyle="none", label="of originals")
    axes.set_yticks(places, [row["column"] for row in reversed(rows)])
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel("values guessed right from the nearest synthetic record")
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.18), ncols=2)
    said = "No column could be judged."
    if rows:
        first = rows[0]
        said = (
            f"{first['column']} has the largest difference: its values are guessed right for "
            f"{percent(first['original'])} of originals and {percent(first['control'])} of the control. If both are "
            "alike, the guesses are statistics and not a leak."
        )
    return Drawn(without_frame(figure), "Pairs of dots by column: values guessed right", said)
