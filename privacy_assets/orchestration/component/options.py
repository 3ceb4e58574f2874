"""How a comparison of candidate releases is written in YAML."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from privacy_assets.orchestration.component.anonymized import ResolvedAnonymization
from privacy_assets.orchestration.component.synthetic import ResolvedSynthesis
from privacy_assets.orchestration.component.yaml_settings import WrittenList, written
from privacy_assets.orchestration.settings.options import Candidate, OptionsSettings

_CANDIDATE = written(
    Candidate,
    kinds={
        "synthetic": ResolvedSynthesis | None,
        "generalize_synthetic": ResolvedAnonymization | None,
        "anonymized": ResolvedAnonymization | None,
    },
)
ResolvedCandidates: TypeAlias = Annotated[
    Literal["standard"] | Sequence[Candidate], WrittenList(_CANDIDATE, Literal["standard"])
]
ResolvedOptions: TypeAlias = Annotated[
    OptionsSettings, written(OptionsSettings, kinds={"candidates": ResolvedCandidates})
]
