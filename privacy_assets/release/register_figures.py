"""Figures of the register: intervals from the manifests, and small pictures of figure and limit over time."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from privacy_assets.display.numbers import number
from privacy_assets.release.gate import Verdict
from privacy_assets.release.metrics import METRICS

WIDTH, HEIGHT, MARGIN = 220, 48, 4
MOST_POINTS = 200
FEWEST_POINTS = 2


class Trend(NamedTuple):
    """A limited figure of one table over its releases.

    Attributes
    ----------
    metric : str
        Its name in words.
    text : str
        Description of the picture in words.
    found, limits : str
        Points of the lines of the figure and of its limit, in the format of an SVG polyline.
    """

    metric: str
    text: str
    found: str
    limits: str


def interval_of(metric: str, figures: Mapping[str, Any]) -> str:
    """Return the interval that a manifest has for a limited figure, in words.

    Parameters
    ----------
    metric : str
        Name of the figure.
    figures : mapping
        ``figures`` of the manifest.
    """
    interval = METRICS[metric].interval_of(figures)
    return "" if interval is None else f"{number(interval[0])} to {number(interval[1])}"


def trends_of(releases: Sequence[tuple[str, Sequence[Verdict]]]) -> tuple[Trend, ...]:
    """Return how each limited figure of a table changed over its releases, oldest first.

    Parameters
    ----------
    releases : sequence of (str, sequence of Verdict)
        Time and limits of each release. Only the last 200 are drawn, and figures of at least two releases.
    """
    series: dict[str, list[tuple[float, float]]] = {}
    for _, outcomes in releases[-MOST_POINTS:]:
        for verdict in outcomes:
            if verdict.value is not None and verdict.limit is not None:
                series.setdefault(str(verdict.metric), []).append((float(verdict.value), float(verdict.limit)))
    return tuple(_drawn(metric, points) for metric, points in series.items() if len(points) >= FEWEST_POINTS)


def _drawn(metric: str, points: Sequence[tuple[float, float]]) -> Trend:
    every = [value for point in points for value in point]
    low, high = min(every), max(every)
    across = (WIDTH - 2 * MARGIN) / (len(points) - 1)
    upwards = (HEIGHT - 2 * MARGIN) / ((high - low) or 1)

    def line(which: int) -> str:
        return " ".join(
            f"{MARGIN + place * across:.1f},{HEIGHT - MARGIN - (point[which] - low) * upwards:.1f}"
            for place, point in enumerate(points)
        )

    (first, _), (last, limit) = points[0], points[-1]
    text = f"{number(first)} to {number(last)} over {len(points)} releases; limit now {number(limit)}"
    return Trend(metric.replace("_", " "), text, line(0), line(1))
