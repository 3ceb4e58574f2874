"""The result of :func:`~privacy_assets.utility.assess.assess_utility`, and its picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import Any

import pandas as pd

from privacy_assets.display.notebook import ShowsFigures, ShowsPictures
from privacy_assets.display.pictures import BLUE, GRAY, Drawn, new_figure, without_frame
from privacy_assets.storage.artifact import Artifact

FIGURES = ("utility", "utility_columns", "utility_pairs", "utility_counts", "utility_prediction")
"""The figures that a policy can limit; each has a lower and an upper end."""
GROUP_FIGURES = BY_GROUP, WORST_GROUP = "utility_by_group", "utility_worst_group"
"""The figures of a release whose groups are judged; each has both ends, too."""
LOWER, UPPER = "_lower", "_upper"
WORST_COLUMNS, WORST_PAIRS, SENTENCE = "worst_columns", "worst_pairs", "in_people"
MOST_SHOWN = 5
PEOPLE = "worth_in_people"
N_ORIGINALS = "n_originals"
MEDIAN_ERROR, MEDIAN_ERROR_OF_ORIGINALS = "median_count_error", "median_count_error_of_originals"


@dataclass(frozen=True, eq=False, repr=False)
class UtilityAssessment(ShowsFigures, ShowsPictures):
    """The utility of a release, on a scale from 0 (columns shuffled) to 1 (the originals).

    Attributes
    ----------
    scores : mapping of str to float, int or None
        ``utility`` first, then ``utility_columns``, ``utility_pairs``, ``utility_counts`` and ``utility_prediction``;
        each is followed by the ends of its 95 % interval, such as ``utility_lower`` and ``utility_upper``. Below 0 is
        worse than shuffled; slightly above 1 is chance. None if a figure cannot be judged; `notes` has the reason.
        ``worth_in_people`` is m of "worth a random sample of m people", ``n_originals`` the number of originals;
        ``median_count_error`` is the median relative error of a counting query; that of the originals is also given.
        With a group column also ``utility_by_group`` (1 as good as the originals, 0 the group column shuffled) and
        ``utility_worst_group``, that of the group with the smallest upper end, each with both ends.
    columns : DataFrame
        One row per column: ``column``, ``distance`` (total variation to the control, 0 to 1),
        ``distance_of_originals``, ``distance_of_uniform``, ``explained`` (share of its variance in the control that a
        linear rule learned on the release explains), ``explained_of_originals``, and ``lost``, its part of ``1 -
        utility_prediction``. Worst prediction first.
    pairs : DataFrame
        One row per judged pair: ``one``, ``other``, and ``lost``, its part of ``1 - utility_pairs``. Worst first.
    groups : DataFrame
        One row per group, if there are any: ``group``, ``people`` (of the control), ``figure``, ``lower`` and
        ``upper``; NaN if it cannot be judged. Worst upper end first. The names of groups are cells of the tables.
    notes : tuple of str
        Why figures are None, and which columns have values that no original has.
    settings : mapping
        Settings that affect the figures, and the numbers of rows and columns, as JSON values.
    """

    pictures = ("worth",)
    main_figures = ("utility", "worth_in_people", "n_originals")

    scores: Mapping[str, float | int | None]
    columns: pd.DataFrame
    pairs: pd.DataFrame
    groups: pd.DataFrame
    notes: tuple[str, ...]
    settings: Mapping[str, Any]

    def _figures(self) -> Mapping[str, object]:
        return {**self.scores, **self.shown_scores}

    def _draw(self, what: str) -> Drawn:  # noqa: ARG002 - there is one picture
        return draw_worth(self.shown_scores)

    @property
    def shown_scores(self) -> dict[str, float | int]:
        """The scores that exist, rounded by :func:`shown`."""
        return shown(self.scores)

    @property
    def worst(self) -> dict[str, list[list[Any]]]:
        """The columns and pairs that lost most, by name: the loss of the figure from each, to three decimals."""
        return {
            WORST_COLUMNS: _most_lost(self.columns, ["column"]),
            WORST_PAIRS: _most_lost(self.pairs, ["one", "other"]),
        }

    @property
    def sentence(self) -> str:
        """What the release is worth in people, as a sentence; empty if this is unknown."""
        people, n_originals = self.scores.get(PEOPLE), self.scores.get(N_ORIGINALS)
        return "" if people is None or n_originals is None else worth_sentence(people, n_originals)

    def to_artifact(self) -> Artifact:
        """Write everything as plain columns under a JSON header."""
        header = {"scores": dict(self.scores), "notes": list(self.notes), "settings": dict(self.settings)}
        frames = {"columns": self.columns, "pairs": self.pairs, "groups": self.groups}
        return Artifact("UtilityAssessment", header, frames)

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> UtilityAssessment:
        """Read the output of :meth:`to_artifact`."""
        header, frames = artifact.header, artifact.frames
        notes = tuple(map(str, header["notes"]))
        columns, pairs, groups = (frames[name] for name in ("columns", "pairs", "groups"))
        return cls(dict(header["scores"]), columns, pairs, groups, notes, dict(header["settings"]))


def frame_of_groups(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Return the frame of groups from its rows."""
    kinds: dict[str, Any] = {
        "group": object,
        "people": "int64",
        "figure": "float64",
        "lower": "float64",
        "upper": "float64",
    }
    frame = pd.DataFrame(rows, columns=list(kinds)).astype(kinds)
    return frame.sort_values("upper", kind="stable", ignore_index=True)


def shown(scores: Mapping[str, float | int | None]) -> dict[str, float | int]:
    """Return the scores that exist, rounded down to three decimals: a score must not exceed a limit that it misses."""
    return {
        name: value if isinstance(value, int) else floor(round(value * 1000, 6)) / 1000
        for name, value in scores.items()
        if value is not None
    }


def _most_lost(frame: pd.DataFrame, names: list[str]) -> list[list[Any]]:
    """Return names and losses of the first rows that lost anything."""
    if "lost" not in frame:
        return []
    lost = frame[frame["lost"] >= 0.001].head(MOST_SHOWN)
    return [[*row[:-1], round(float(row[-1]), 3)] for row in lost[[*names, "lost"]].itertuples(index=False, name=None)]


def worth_sentence(people: float, n_originals: float) -> str:
    """Describe what a release is worth in people; two significant digits, because it is approximate."""
    if people >= n_originals:
        return f"Worth about as much as the originals, {int(n_originals):,} records."
    shown = int(float(f"{people:.1e}"))
    if shown < 1:
        return "Worth less than a random sample of a single one of the originals."
    return f"Worth about as much as a random sample of {shown:,} of the {int(n_originals):,} originals."


FIGURES_IN_WORDS = {
    "utility": "overall",
    "utility_columns": "single columns",
    "utility_pairs": "pairs of columns",
    "utility_counts": "counts",
    "utility_prediction": "predictions",
    BY_GROUP: "within groups",
    WORST_GROUP: "worst group",
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
    parts = [name for name in drawn if name in FIGURES[1:]]
    least = min(parts, key=lambda name: scores[name], default="utility")
    overall = f"Overall the records are worth {scores['utility']:.3f}. " if "utility" in drawn else ""
    return (
        f"{overall}They keep least of the {FIGURES_IN_WORDS[least]} ({scores[least]:.3f}); the lines on the bars are "
        "95 % intervals."
        if parts
        else overall.rstrip()
    )
