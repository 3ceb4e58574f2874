"""Pictures of a disclosure assessment: the difference between originals and control, and what is guessed of both."""

import math

from privacy_assets.disclosure.result import WORDS, DisclosureAssessment
from privacy_assets.orchestration.shown.pictures import BLUE, GRAY, as_markdown, new_figure
from privacy_assets.shown_numbers import number, percent

MOST_COLUMNS = 20


def excess_by_criterion(assessment: DisclosureAssessment) -> str:
    """Draw the difference between originals and control by criterion, in units of its standard error.

    Parameters
    ----------
    assessment : DisclosureAssessment
        A difference right of 0 means that originals are revealed more.

    Returns
    -------
    str
        Markdown with the picture as PNG; the text has the differences in their own units and the adjusted p values.
    """
    figure = new_figure(6, 2.8)
    axes = figure.subplots()
    rows = assessment.criteria.to_dict("records")
    for place, row in enumerate(reversed(rows)):
        reach = (row["high"] - row["low"]) / 2
        at = 1.96 * row["excess"] / reach if reach > 0 else 0.0
        axes.plot([at - 1.96, at + 1.96], [place, place], color=BLUE, linewidth=2)
        axes.plot([at], [place], marker="o", color=BLUE)
    told = [
        f"{WORDS[row['criterion']]} {number(row['excess'])} ({number(row['low'])} to {number(row['high'])}), "
        f"adjusted p value {number(row['adjusted_p_value'])}"
        for row in rows
    ]
    axes.axvline(0, color=GRAY, linestyle="--", linewidth=1)
    axes.set_yticks(range(len(rows)), [WORDS[row["criterion"]] for row in reversed(rows)])
    axes.set_xlabel("originals less control, in standard errors")
    axes.spines[["top", "right"]].set_visible(False)
    return as_markdown(
        figure, f"Mean score of originals less that of the control, with 95 % intervals: {'; '.join(told)}"
    )


def guessed_by_column(assessment: DisclosureAssessment) -> str:
    """Draw how often values are guessed right from the nearest synthetic record, of originals and of the control.

    Parameters
    ----------
    assessment : DisclosureAssessment
        Of its reported columns the 20 with the largest difference are drawn.

    Returns
    -------
    str
        Markdown with the picture as PNG and the same shares as text.
    """
    found = assessment.sensitive
    nearest = found[found["attack"] == "nearest"].sort_values("excess", ascending=False, kind="stable")
    rows = nearest.head(MOST_COLUMNS).to_dict("records")
    figure = new_figure(6, 1.2 + 0.3 * max(len(rows), 2))
    axes = figure.subplots()
    for place, row in enumerate(reversed(rows)):
        axes.plot([row["control"], row["original"]], [place, place], color=GRAY, linewidth=1)
        axes.plot([row["control"]], [place], marker="o", color=GRAY, linestyle="none")
        axes.plot([row["original"]], [place], marker="o", color=BLUE, linestyle="none")
    axes.set_yticks(range(len(rows)), [row["column"] for row in reversed(rows)])
    axes.set_xlim(0, 1)
    axes.set_xlabel("share guessed right: originals blue, control gray")
    axes.spines[["top", "right"]].set_visible(False)
    told = ", ".join(
        f"{row['column']} {percent(row['original'])} and {percent(row['control'])}"
        for row in rows
        if not math.isnan(row["original"])
    )
    return as_markdown(
        figure, f"Values guessed right from the nearest synthetic record, of originals and of the control: {told}"
    )
