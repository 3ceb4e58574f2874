"""A picture of all limited figures of a release: how far each is from its limit."""

from collections.abc import Sequence

from privacy_assets.display.pictures import AMBER, GREEN, RED, Drawn, new_figure, without_frame
from privacy_assets.release.gate import Verdict
from privacy_assets.release.metrics import METRICS, shown_figure

MOST = 2.0
"""Figures further beyond their limits are drawn at this share."""
ORANGE = "#c26a1c"


def draw_limits(decided: Sequence[Verdict]) -> Drawn:
    """Draw each limited figure as a bar toward its limit, which is the same line for all of them.

    A bar that ends left of the line meets its limit. Its length is the figure as a share of the limit, or for figures
    that must be large enough, the limit as a share of the figure.

    Parameters
    ----------
    decided : sequence of Verdict
        Verdicts; those without a metric or a limit are left out.
    """
    limited = [each for each in decided if each.metric is not None and each.limit is not None]
    figure = new_figure(7.5, 1.0 + 0.34 * max(len(limited), 2))
    axes = figure.subplots()
    for place, verdict in enumerate(reversed(limited)):
        length = share_of_limit(verdict)
        color, outcome = _outcome(verdict)
        if length is not None:
            axes.barh(place, max(min(length, MOST), 0.01), color=color, height=0.55)
        axes.text(MOST * 1.03, place, f"{_figure(verdict)}: {outcome}", va="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=1.2)
    axes.set_yticks(range(len(limited)), [str(each.metric).replace("_", " ") for each in reversed(limited)], fontsize=8)
    axes.set_xlim(0, MOST)
    axes.set_ylim(-0.6, max(len(limited), 1) - 0.4)
    axes.set_xticks([0.5, 1, 1.5], ["within", "limit", "beyond"])
    axes.tick_params(axis="x", length=0)
    return Drawn(without_frame(figure), "Bar chart: figures against their limits", _said(limited))


def share_of_limit(verdict: Verdict) -> float | None:
    """Return a figure as a share of its limit, so that more than 1 is beyond it; None without a figure."""
    value, limit = verdict.value, verdict.limit
    if value is None or limit is None or value != value:
        return None
    is_largest = METRICS[str(verdict.metric)].direction in ("below", "at_most")
    over, under = (value, limit) if is_largest else (limit, value)
    if under > 0:
        return max(over, 0.0) / under
    # A share of 0 or less is undefined; only the side of the limit counts.
    return 0.0 if over <= under else MOST


def _outcome(verdict: Verdict) -> tuple[str, str]:
    if verdict.waived_by is not None:
        return ORANGE, "waived"
    if verdict.passed:
        return GREEN, "met"
    return (RED, "not met") if verdict.blocks else (AMBER, "warning")


def _figure(verdict: Verdict) -> str:
    name = str(verdict.metric)
    if verdict.value is None or verdict.limit is None:
        return "no value"
    found, bound = shown_figure(name, str(verdict.direction), verdict.value, verdict.limit)
    return found if METRICS[name].is_yes_no else f"{found} ({bound})"


def _said(limited: Sequence[Verdict]) -> str:
    if not limited:
        return "No figure is limited."
    failed = [each for each in limited if _outcome(each)[1] != "met"]
    if failed:
        names = ", ".join(str(each.metric).replace("_", " ") for each in failed)
        return f"{len(limited) - len(failed)} of {len(limited)} figures are within their limits, but not {names}."
    drawn = [(share, each) for each in limited if (share := share_of_limit(each)) is not None]
    nearest = str(max(drawn, key=lambda pair: pair[0])[1].metric).replace("_", " ")
    if len(limited) == 1:
        return f"The only limited figure, {nearest}, is within its limit."
    return f"All {len(limited)} figures are within their limits; closest to its limit is {nearest}."
