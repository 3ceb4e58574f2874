"""How pages and pictures show the outcome of a limit: its figure, its bound and a word; and the templates of pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from privacy_assets.display.numbers import number
from privacy_assets.display.pictures import AMBER, GREEN, ORANGE, RED, Drawn, new_figure, without_frame
from privacy_assets.release.gate import Verdict
from privacy_assets.release.manifest import WITHHELD, are_withheld, is_withheld
from privacy_assets.release.metrics import METRICS, shown_figure

if TYPE_CHECKING:
    from jinja2 import Environment, Template

MOST = 2.0
"""Figures further beyond their limits are drawn at this share."""
KINDS = {
    "good": ("met", GREEN),
    "warning": ("warning", AMBER),
    "refused": ("not met", RED),
    "waived": ("waived", ORANGE),
}
"""Word and color in a picture by the kind of an outcome, which is the class of its mark on a page."""


class Outcome(NamedTuple):
    """A limited figure, as text; ``kind`` is a key of `KINDS`."""

    name: str
    found: str
    bound: str
    interval: str
    kind: str


def outcome_of(verdict: Verdict, manifest: Mapping[str, Any] | None = None) -> Outcome:
    """Return the outcome of a limit, with the interval that a manifest has; the bound is empty without a limit."""
    name = str(verdict.metric)
    absent = WITHHELD if manifest is not None and are_withheld(manifest) and is_withheld(name) else "no value"
    found, bound, interval = "", "", None if manifest is None else METRICS[name].interval_of(manifest["figures"])
    if verdict.limit is not None:
        value = verdict.limit if verdict.value is None else verdict.value
        found, bound = shown_figure(name, str(verdict.direction), float(value), float(verdict.limit))
    return Outcome(
        in_words(name),
        absent if verdict.value is None or not bound else found,
        bound,
        "" if interval is None else f"{number(interval[0])} to {number(interval[1])}",
        kind_of(verdict),
    )


def kind_of(verdict: Verdict) -> str:
    """Return the kind of a verdict, a key of `KINDS`."""
    if verdict.waived_by is not None:
        return "waived"
    return "good" if verdict.passed else "refused" if verdict.blocks else "warning"


def in_words(name: object) -> str:
    """Write a name for people."""
    return str(name).replace("_", " ")


def draw_limits(decided: Sequence[Verdict]) -> Drawn:
    """Draw each limited figure as a bar toward its limit, which is the same line for all of them.

    A bar that ends left of the line meets its limit. Its length is the figure as a share of the limit, or for figures
    that must be large enough, the limit as a share of the figure. Verdicts without a metric or a limit are left out.
    """
    limited = [each for each in decided if each.metric is not None and each.limit is not None]
    figure = new_figure(7.5, 1.0 + 0.34 * max(len(limited), 2))
    axes = figure.subplots()
    for place, verdict in enumerate(reversed(limited)):
        length, outcome = share_of_limit(verdict), outcome_of(verdict)
        word, color = KINDS[outcome.kind]
        if length is not None:
            axes.barh(place, max(min(length, MOST), 0.01), color=color, height=0.55)
        is_compared = verdict.value is not None and not METRICS[str(verdict.metric)].is_yes_no
        shown = f"{outcome.found} ({outcome.bound})" if is_compared else outcome.found
        axes.text(MOST * 1.03, place, f"{shown}: {word}", va="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=1.2)
    axes.set_yticks(range(len(limited)), [in_words(each.metric) for each in reversed(limited)], fontsize=8)
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


def _said(limited: Sequence[Verdict]) -> str:
    if not limited:
        return "No figure is limited."
    failed = [in_words(each.metric) for each in limited if kind_of(each) != "good"]
    if failed:
        met = f"{len(limited) - len(failed)} of {len(limited)} figures are within their limits"
        return f"{met}, but not {', '.join(failed)}."
    drawn = [(share, each) for each in limited if (share := share_of_limit(each)) is not None]
    nearest = in_words(max(drawn, key=lambda pair: pair[0])[1].metric)
    if len(limited) == 1:
        return f"The only limited figure, {nearest}, is within its limit."
    return f"All {len(limited)} figures are within their limits; closest to its limit is {nearest}."


def page_template(name: str) -> Template:
    """Return the template of a page; it escapes all text."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    # Imported here, because every step loads the definitions, and few steps write a report.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("privacy_assets.release", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
