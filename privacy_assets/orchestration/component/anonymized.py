"""How the settings of the anonymized side of a release are written in YAML."""

from typing import Annotated, Any, TypeAlias

from pydantic import StrictInt

from privacy_assets.anonymization.settings import LDiversity
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.component.source import ResolvedSource
from privacy_assets.orchestration.component.yaml_settings import written
from privacy_assets.orchestration.settings.anonymized import (
    AnonymizationSettings,
    OtherReleaseSettings,
    ReidentificationSettings,
)
from privacy_assets.pipeline.settings.semantic_risk import SemanticRiskSettings

_DIVERSITY = written(LDiversity, check=lambda made: made.check("l_diversity"))
_HIERARCHIES = dict[str, dict[str, Any]] | None


def _read_masks(masks: dict[str, dict[str, Any]]) -> ReleaseModel:
    problem = ""
    try:
        return ReleaseModel.from_json(masks)
    except (TypeError, KeyError) as error:
        problem = str(error)
    raise InvalidSettingError(f"masks cannot be read: {problem}. Expected a kind and its settings for each column.")


def _read_hierarchies(hierarchies: dict[str, dict[str, Any]]) -> dict[str, Hierarchy]:
    return {name: Hierarchy.from_settings(each) for name, each in hierarchies.items()}


ResolvedAnonymization: TypeAlias = Annotated[
    AnonymizationSettings,
    written(
        AnonymizationSettings,
        kinds={
            "l_diversity": Annotated[int | LDiversity, _DIVERSITY.or_plain(StrictInt)] | None,
            "l_diversity_by_column": dict[str, Annotated[LDiversity, _DIVERSITY]] | None,
            "hierarchies": _HIERARCHIES,
            "membership_control": ResolvedSource | None,
        },
        check=AnonymizationSettings.check,
    ),
]
ResolvedOtherRelease: TypeAlias = Annotated[
    OtherReleaseSettings,
    written(
        OtherReleaseSettings,
        kinds={"table": ResolvedSource | None, "model": dict[str, dict[str, Any]] | None, "hierarchies": _HIERARCHIES},
        read={"model": _read_masks, "hierarchies": _read_hierarchies},
        names={"model": "masks"},
    ),
]
ResolvedReidentification: TypeAlias = Annotated[
    ReidentificationSettings, written(ReidentificationSettings, kinds={"other_releases": list[ResolvedOtherRelease]})
]
ResolvedSemanticRisk: TypeAlias = Annotated[
    SemanticRiskSettings, written(SemanticRiskSettings, check=SemanticRiskSettings.check)
]
