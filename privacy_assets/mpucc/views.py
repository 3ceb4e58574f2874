"""The mpUCC assessment of several tables of the same people, the views of related tables: one for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from privacy_assets.columns.spelling import SPELLING
from privacy_assets.mpucc.assess import MpuccAssessment, assess_preprocessed
from privacy_assets.mpucc.preprocess import PreprocessedTables
from privacy_assets.mpucc.results import SearchProgress
from privacy_assets.mpucc.settings import MOST_COLUMNS_OF_VIEW, MpuccSettings
from privacy_assets.storage.algorithms import ALGORITHM, algorithm_of
from privacy_assets.storage.artifact import Artifact

KIND: Final = "MpuccAssessments"
_APART: Final = " | "


@dataclass(frozen=True, eq=False)
class MpuccOfViews:
    """The assessment of each view; none of their figures is limited, because wide views single almost everybody out."""

    views: Mapping[str, MpuccAssessment]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of all views, and what a gate asks of the whole."""
        own = {name: each.settings for name, each in self.views.items()}
        unknown = {
            f"{name}: {column}": found for name, each in own.items() for column, found in each["unknown_values"].items()
        }
        foreign = [each["foreign"] and f"{name}: {each['foreign']}" for name, each in own.items()]
        return {
            ALGORITHM: algorithm_of("mpucc_assessment"),
            "spelling": SPELLING,
            "unknown_values": unknown,
            "foreign": None if None in foreign else next(filter(None, foreign), ""),
            "n_people": next(iter(own.values())).get("n_people", {}),
            "confidence_level": max(each["confidence_level"] for each in own.values()),
            "views": own,
        }

    def to_artifact(self) -> Artifact:
        """Write all views; the frames of a view have its place before their names."""
        parts = [each.to_artifact() for each in self.views.values()]
        frames = {
            f"{place}{_APART}{name}": frame for place, part in enumerate(parts) for name, frame in part.frames.items()
        }
        views = [[name, dict(part.header)] for name, part in zip(self.views, parts, strict=True)]
        return Artifact(KIND, {"scores": {}, "settings": self.settings, "views": views}, frames)

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> MpuccOfViews:
        """Read the output of :meth:`to_artifact`, without the values of the records."""
        views = {}
        for place, (name, header) in enumerate(artifact.header["views"]):
            start = f"{place}{_APART}"
            frames = {each.removeprefix(start): own for each, own in artifact.frames.items() if each.startswith(start)}
            views[name] = MpuccAssessment.without_values(Artifact("MpuccAssessment", header, frames))
        return cls(views)

    @property
    def figures(self) -> dict[str, dict[str, Any]]:
        """The scores of each view."""
        return {name: dict(each.scores) for name, each in self.views.items()}


def assess_views(
    views: Mapping[str, PreprocessedTables],
    settings: MpuccSettings,
    progress: Callable[[str], Callable[[SearchProgress], None]],
) -> MpuccOfViews:
    """Assess prepared views, each with combinations of at most three columns."""
    found = {}
    for name, tables in views.items():
        size = min(MOST_COLUMNS_OF_VIEW, len(tables.columns))
        found[name] = assess_preprocessed(tables, replace(settings, max_baseline_cols=size), progress=progress(name))
    return MpuccOfViews(found)
