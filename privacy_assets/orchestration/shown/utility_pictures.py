"""The picture of what a release is worth: its figures between shuffled columns and the originals."""

from privacy_assets.orchestration.shown.pictures import BLUE, GRAY, as_markdown, new_figure
from privacy_assets.utility.result import FIGURES, LOWER, UPPER, UtilityAssessment


def worth_of_figures(assessment: UtilityAssessment) -> str:
    """Draw each figure as a bar from 0 to 1 with its interval.

    Parameters
    ----------
    assessment : UtilityAssessment
        Figures that could not be judged are left out; the notes say why.

    Returns
    -------
    str
        Markdown with the picture as PNG and the same numbers as text.
    """
    scores = assessment.shown_scores
    drawn = [name for name in FIGURES if scores.get(name) is not None]
    figure = new_figure(6, 2.8)
    axes = figure.subplots()
    for place, name in enumerate(reversed(drawn)):
        value, low, high = (float(scores[name + end] or 0) for end in ("", LOWER, UPPER))
        # A figure below 0 is worse than shuffled columns, by however much.
        axes.barh(place, max(value, 0.0), color=BLUE, height=0.6)
        axes.plot([max(low, 0.0), max(high, 0.0)], [place, place], color="black", linewidth=1.5)
        axes.text(1.06, place, f"{value:.3f}", va="center", fontsize=9)
    axes.axvline(1, color=GRAY, linestyle="--", linewidth=1)
    axes.set_yticks(range(len(drawn)), [name.removeprefix("utility_") for name in reversed(drawn)])
    axes.set_xlim(0, 1.05)
    axes.set_xticks([0, 0.5, 1], ["0: nothing kept", "0.5", "1: the originals"])
    axes.spines[["top", "right"]].set_visible(False)
    told = ", ".join(
        f"{name} {scores[name]:.3f} ({scores[name + LOWER]:.3f} to {scores[name + UPPER]:.3f})" for name in drawn
    )
    return as_markdown(figure, f"What the records are worth, with 95 % intervals: {told or 'nothing could be judged'}")
