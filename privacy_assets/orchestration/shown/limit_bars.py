"""A picture of figures with their limits, small enough that Dagster shows it in place.

Dagster's pages show Markdown of less than 1,000 characters in the table of an asset's metadata, and longer Markdown,
such as a picture by Matplotlib, behind a link. So this picture is a few lines of SVG.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import dagster as dg

from privacy_assets.display.numbers import number
from privacy_assets.display.pictures import BLUE, RED
from privacy_assets.release.gate import Verdict
from privacy_assets.release.metrics import METRICS
from privacy_assets.release.policy import Policy

SHOWN_IN_PLACE: Final = 1_000
"""Characters below which Dagster shows Markdown in place."""
LIMITS: Final = "score_and_limit"
WIDTH, HALF, ROW = 190, 95, 46
"""A cell for values is 190 pixels wide in a window of 1280 pixels."""


def picture_of_limits(decided: Sequence[Verdict]) -> dict[str, Any]:
    """Return metadata with a picture of the verdicts that compare a figure with a limit; empty if there are none."""
    drawn = [
        verdict
        for verdict in sorted(decided, key=lambda verdict: verdict.passed)
        if verdict.metric is not None
        and not METRICS[verdict.metric].is_yes_no
        and None not in (verdict.value, verdict.limit)
    ]
    while drawn and len(limit_bars(drawn)) >= SHOWN_IN_PLACE:
        drawn = drawn[:-1]
    return {LIMITS: dg.MetadataValue.md(limit_bars(drawn))} if drawn else {}


def limits_metadata(policy: Policy, side: str, figures: Mapping[str, float | None]) -> dict[str, Any]:
    """Return metadata with a picture of an assessment's figures that the policy limits; empty without such figures."""
    found = [(limit, figures.get(limit.metric)) for limit in policy.limits_of(side)]
    return picture_of_limits(
        [
            Verdict("", limit.holds_for(value), "error", "", "", limit.metric, value, limit.value)
            for limit, value in found
        ]
    )


def limit_bars(decided: Sequence[Verdict]) -> str:
    """Draw figures as SVG in Markdown: bars, red where the limit is not met, and the limit as a line in the middle."""
    parts = []
    for place, verdict in enumerate(decided):
        top, value, limit = ROW * place, float(verdict.value or 0), float(verdict.limit or 0)
        # The limit is in the middle, so that a bar shows how far the figure is from it, regardless of the unit.
        share = value / limit if limit > 0 else 2 * float(value > limit)
        length = round(HALF * min(max(share, 0), 2))
        said = f"{number(value)}, limit {number(limit)}"
        parts.append(f'<text y="{top + 11}">{verdict.metric}</text><text y="{top + 25}">{said}</text>')
        parts.append(f'<path fill="{BLUE if verdict.passed else RED}" d="M0 {top + 31}h{max(length, 1)}v9H0z"/>')
    lines = "".join(f"M{HALF} {ROW * place + 28}v15" for place in range(len(decided)))
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{ROW * len(decided)}" font-size="11" '
        f'font-family="sans-serif"><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}'
        f'<path stroke="#000" d="{lines}"/></svg>'
    )
    return f"![Figures and limits](data:image/svg+xml;base64,{base64.b64encode(drawing.encode()).decode()})"
