"""The picture of the utility of a release: its figures between shuffled columns and the originals."""

from collections.abc import Mapping

from privacy_assets.display.pictures import BLUE, GRAY, Drawn, new_figure, without_frame

FIGURES_IN_WORDS = {
    "utility": "overall",
    "utility_columns": "single columns",
    "utility_pairs": "pairs of columns",
    "utility_counts": "counts",
    "utility_prediction": "predictions",
}


def draw_worth(scores: Mapping[str, float]) -> Drawn:
    """Draw each figure of ``UtilityAssessment.shown_scores`` as a bar from 0 to 1 with its interval."""
    drawn = [name for name in FIGURES_IN_WORDS if name in scores]
    figure = new_figure(6, 2.8)
    axes = figure.subplots()
    for place, name in enumerate(reversed(drawn)):
        low, high = (scores[name + end] for end in ("_lower", "_upper"))
        # A figure below 0 is worse than shuffled columns, by any amount.
        axes.barh(place, max(scores[name], 0.0), color=BLUE, height=0.6)
        axes.plot([max(low, 0.0), max(high, 0.0)], [place, place], color="black", linewidth=1.5)
        axes.text(1.06, place, f"{scores[name]:.3f}", va="center", fontsize=9)
    axes.axvline(1, color=GRAY, linestyle="--", linewidth=1)
    axes.set_yticks(range(len(drawn)), [FIGURES_IN_WORDS[name] for name in reversed(drawn)])
    axes.set_xlim(0, 1.05)
    axes.set_xticks([0, 0.5, 1], ["0: nothing kept", "0.5", "1: the originals"])
    return Drawn(without_frame(figure), "Bar chart: what the records are worth", _said(scores, drawn))


def _said(scores: Mapping[str, float], drawn: list[str]) -> str:
    if not drawn:
        return "Nothing could be judged."
    parts = [name for name in drawn if name != "utility"]
    least = min(parts, key=lambda name: scores[name], default="utility")
    overall = f"Overall the records are worth {scores['utility']:.3f}. " if "utility" in drawn else ""
    return (
        f"{overall}They keep least of the {FIGURES_IN_WORDS[least]} ({scores[least]:.3f}); the lines on the bars are "
        "95 % intervals."
        if parts
        else overall.rstrip()
    )
