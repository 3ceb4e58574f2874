"""The figures of stored assessments that a policy can limit, by metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.contract.contract import TableContract
from privacy_assets.disclosure.rare_values import RARE_VALUES_RELEASED, RareValues, count_rare_values
from privacy_assets.disclosure.result import DisclosureAssessment
from privacy_assets.mpucc.assess import MpuccAssessment
from privacy_assets.mpucc.control import ControlComparison
from privacy_assets.release.metrics import CONTROL, MPUCC, UTILITY
from privacy_assets.release.policy import Policy
from privacy_assets.release.report_criteria import GUESSED, ROWS
from privacy_assets.storage.artifact import Artifact
from privacy_assets.utility.result import shown

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


def rare_values_of(
    policy: Policy,
    contract: TableContract,
    table: pd.DataFrame,
    people: Sequence[pd.DataFrame],
    person: str | None,
    invented: Sequence[str],
    generalized: Anonymization | None = None,
) -> RareValues | None:
    """Count the rare values of a table among people, if the policy limits them."""
    if policy.limit_on(RARE_VALUES_RELEASED) is None:
        return None
    return count_rare_values(
        table,
        people,
        people_per_value=policy.people_per_value,
        person=person,
        columns=contract.released_columns,
        masks=None if generalized is None else generalized.model.masks,
        invented=invented,
    )


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


def figures_in_manifest(assessment: MpuccAssessment | StoredFigures, name: str = MPUCC) -> dict[str, Any]:
    """Return the figures of an assessment by their place, as a manifest has them."""
    scores = shown(assessment.scores) if name == UTILITY else assessment.scores
    control = {} if assessment.control is None else {CONTROL: assessment.control.to_header()}
    return {name: scores, **control}
