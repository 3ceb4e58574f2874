"""The figures of stored assessments that a policy can limit, by metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from privacy_assets.disclosure.result import DisclosureAssessment
from privacy_assets.mpucc.control import ControlComparison
from privacy_assets.release.report_criteria import GUESSED, ROWS
from privacy_assets.storage.artifact import Artifact

MOST_COLUMNS: Final = 20


@dataclass(frozen=True)
class StoredFigures:
    """The figures and settings of an assessment, without its rows."""

    scores: Mapping[str, Any]
    settings: Mapping[str, Any]
    control: ControlComparison | None
    notes: Sequence[str]

    @classmethod
    def of(cls, artifact: Artifact) -> "StoredFigures":
        """Read the header of a stored assessment."""
        header = artifact.header
        control = header.get("control")
        read = None if control is None else ControlComparison.from_header(control)
        return cls(dict(header["scores"]), dict(header["settings"]), read, tuple(header.get("notes", ())))


def tables_of_disclosure(assessment: DisclosureAssessment) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a disclosure assessment that the report shows, as JSON values."""
    nearest = assessment.sensitive[assessment.sensitive["attack"] == "nearest"].drop(columns="attack")
    most = nearest.sort_values("excess", ascending=False, kind="stable").head(MOST_COLUMNS)
    return {ROWS: _rows(assessment.criteria), GUESSED: _rows(most)}


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    as_objects = frame.astype(object)
    return [
        {str(name): value for name, value in row.items()}
        for row in as_objects.where(as_objects.notna(), None).to_dict("records")
    ]
