"""The Dagster component: a release that is configured in YAML, over `build_release_definitions`."""

from pathlib import Path
from typing import Any, Literal

import dagster as dg
from pydantic import BaseModel, Field, PrivateAttr

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.component.anonymized import (
    ResolvedAnonymization,
    ResolvedLinkageAudit,
    ResolvedReidentification,
    ResolvedSemanticRisk,
)
from privacy_assets.orchestration.component.engine import EngineYaml
from privacy_assets.orchestration.component.monitoring import ResolvedMonitoring
from privacy_assets.orchestration.component.options import ResolvedOptions
from privacy_assets.orchestration.component.scaffolder import scaffolded
from privacy_assets.orchestration.component.signing import SigningYaml
from privacy_assets.orchestration.component.source import (
    EXAMPLE_COLUMNS,
    ResolvedContract,
    ResolvedPolicy,
    ResolvedSource,
)
from privacy_assets.orchestration.component.synthetic import (
    PartitionsYaml,
    ResolvedAssessment,
    ResolvedDisclosure,
    ResolvedPrivacyBudget,
    ResolvedReport,
    ResolvedSplit,
    ResolvedSynthesis,
    ResolvedUtility,
)
from privacy_assets.orchestration.component.yaml_keys import require_single_keys
from privacy_assets.orchestration.component.yaml_settings import YamlSettings
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.private.resources import DEFAULT_PRIVATE_PATH, DEFAULT_RELEASE_PATH
from privacy_assets.orchestration.settings.sources import from_root
from privacy_assets.setting_checks import local_path
from privacy_assets.storage.parquet_parts import ROWS_PER_PART


def _parquet() -> list[Literal["parquet", "csv"]]:
    return ["parquet"]


@scaffolded
class PrivacyReleaseComponent(dg.Component, YamlSettings):
    """Release a table about people as synthetic or anonymized records, once a policy admits them.

    The table goes through a graph of assets: source, split, synthetic records and their assessments, anonymized records
    and their assessments, release. The release step checks exactly the content that it would write against the policy,
    and refuses unless every limit is met, regardless of how the step was started.
    """

    name: str | None = Field(
        None,
        description="Name of the release: prefix of the asset keys, name of the group. Letters, digits and "
        "underscores; by default the name of the folder.",
        examples=["people"],
    )
    source: ResolvedSource | None = Field(
        None,
        description="Where the table comes from. Leave it out only if split gives original and control.",
        examples=[{"file": "data/people.csv"}],
    )
    contract: ResolvedContract = Field(
        description="The table's contract: every column with its type and its privacy role, here or as the Python path "
        "of a pandera schema (my_project.contracts:people).",
        examples=[{"columns": EXAMPLE_COLUMNS}],
    )
    policy: ResolvedPolicy = Field(
        description="The limits that a table must meet to be released: the name of a use case (public_release, "
        "research_sharing, internal_analytics, development, high_risk_data), or your own limits.",
        examples=[
            "research_sharing",
            {"use_case": "research_sharing", "limits": [{"metric": "verbatim_copies", "value": 0, "severity": "warn"}]},
        ],
    )
    split: ResolvedSplit | None = Field(
        None,
        description="How people are divided into those whose records the synthesizer may see, and the control.",
        examples=[{"train_fraction": 0.7}],
    )
    synthetic: ResolvedSynthesis | None = Field(
        None,
        description="How synthetic records are made. By default the Gaussian copula makes them, unless only anonymized "
        "is given: then there are no synthetic records.",
        examples=[{"method": "cart"}],
    )
    assessment: ResolvedAssessment | None = Field(
        None,
        description="How synthetic records are assessed; by default as the policy requires.",
        examples=[{"max_baseline_cols": 3}],
    )
    anonymized: ResolvedAnonymization | None = Field(
        None,
        description="Release anonymized records of the source, alone or together with synthetic records.",
        examples=[{"k": 5}],
    )
    reidentification: ResolvedReidentification | None = Field(
        None,
        description="How to assess whose the anonymized records can be; by default done if the policy limits it.",
        examples=[{"max_known": 3}],
    )
    semantic_risk: ResolvedSemanticRisk | None = Field(
        None,
        description="How to assess what the concepts of the records reveal; by default done if the policy limits it.",
        examples=[{"withhold": True, "risk_limit": 0.2}],
    )
    linkage_audit: ResolvedLinkageAudit | None = Field(
        None,
        description="Link the anonymized records to the source, and show what the method finds and can know. These "
        "figures only inform: no policy limits them.",
        examples=[{"method": "distance"}],
    )
    utility: ResolvedUtility | None = Field(
        None,
        description="How to assess the worth of the records of each side; by default done if the policy limits it.",
        examples=[{"seed": 1}],
    )
    disclosure: ResolvedDisclosure | None = Field(
        None,
        description="How to test whether synthetic records reveal originals more than people of the control; by "
        "default done if the policy limits leakage_detected or the excess of a criterion.",
        examples=[{"known": ["age", "plan"]}],
    )
    options: ResolvedOptions | None = Field(
        None,
        description="Compare candidate releases on demand: the asset release_options shows the risk and the worth of "
        "each; by default there is no such asset.",
        examples=[{"candidates": "standard"}],
    )
    generalize_synthetic: ResolvedAnonymization | None = Field(
        None,
        description="Generalize synthetic records before they are assessed and released. Use it if they are refused "
        "because they single people out.",
        examples=[{"k": 5}],
    )
    formats: list[Literal["parquet", "csv"]] = Field(
        default_factory=_parquet,
        description="Files of a release; the Parquet file is always written.",
        examples=[["parquet", "csv"]],
    )
    rows_per_part: int = Field(
        ROWS_PER_PART,
        description="A release with more records is a directory of Parquet files of this many records each, at least "
        "1000.",
        examples=[5_000_000],
    )
    waivers: str | None = Field(
        None,
        description="YAML file of approved exceptions, or a directory of such files; relative to the root of the "
        "project.",
        examples=["waivers"],
    )
    signing: SigningYaml | None = Field(
        None,
        description="Key that signs releases (extra signing); by default they are not signed.",
        examples=[{"key_file": "/etc/privacy_assets/signing_key.pem"}],
    )
    privacy_budget: ResolvedPrivacyBudget | None = Field(
        None,
        description="The privacy budget that differentially private records (method mst) are charged to; by default "
        "that of the release.",
        examples=[{"population": "patients"}],
    )
    declaration: dict[str, str] | None = Field(
        None,
        description="What the first page of the report declares: purpose, recipient, legal_basis, retention and "
        "roles_decided_by, each a sentence. All are optional, and the gate ignores them.",
        examples=[{"purpose": "Teaching statistics", "recipient": "Students of the course"}],
    )
    engine: EngineYaml | None = Field(
        None,
        description="Where mpUCCs are searched, records cut, and candidates counted, if not in the run itself; the "
        "engine does not change the release.",
        examples=[{"spark": {"remote": "sc://spark:15002"}}],
    )
    report: ResolvedReport | None = Field(
        None, description="What is measured for the report.", examples=[{"column_changes": 0}]
    )
    monitoring: ResolvedMonitoring | None = Field(
        None,
        description="How the release is monitored between its runs; by default it is not monitored.",
        examples=[{"drift_limit": 0.2}],
    )
    partitions: PartitionsYaml | None = Field(
        None,
        description="Partitions of every asset; each has its own evidence and its own releases.",
        examples=[{"type": "monthly", "start_date": "2026-01-01"}],
    )
    owners: list[str] = Field(
        default_factory=list,
        description="Owners of the assets: team:name, or an email address.",
        examples=[["team:privacy"]],
    )
    private_path: str = Field(
        DEFAULT_PRIVATE_PATH,
        description="Private directory of the tables between the stages. It is relative to the root of the project, "
        "and the same for all releases of a project.",
        examples=[DEFAULT_PRIVATE_PATH],
    )
    release_path: str = Field(
        DEFAULT_RELEASE_PATH,
        description="Directory of the releases; relative and common to all releases like private_path.",
        examples=[DEFAULT_RELEASE_PATH],
    )

    _place: str | None = PrivateAttr(None)

    @classmethod
    def resolve_from_model(cls, context: dg.ResolutionContext, model: BaseModel) -> "PrivacyReleaseComponent":
        """Make the component, and remember the file and line where its settings begin."""
        tree = context.source_position_tree
        place = None
        if tree is not None:
            start = tree.children["attributes"].position if "attributes" in tree.children else tree.position
            place = f"{start.filename}:{start.start.line}"
            require_single_keys(Path(start.filename), start.start.line)
        component: PrivacyReleaseComponent = super().resolve_from_model(context, model)
        component._place = place
        return component

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Describe the component to `dg` and the UI."""
        return dg.ComponentTypeSpec(
            description="Release a table about people as synthetic or anonymized records, once a policy admits them.",
            tags=["privacy", "anonymization", "synthetic-data"],
            produces=["asset", "asset_check", "job", "resource"],
        )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Build the definitions of the release."""
        problem = ""
        try:
            self._check_name(context)
            return build_release_definitions(**self.arguments(context.path, context.project_root))
        except InvalidSettingError as error:
            problem = str(error)
        raise InvalidSettingError(f"{self._place or context.path}: {problem}")

    def _check_name(self, context: dg.ComponentLoadContext) -> None:
        """Refuse a second release of a file that would also be named after its folder."""
        if self.name is None and context.component_path.instance_key not in (None, 0):
            raise InvalidSettingError(
                "The file contains several releases, and this one has no name; only the first can be named after the "
                "folder. Give each release its own name."
            )

    def arguments(self, folder: Path, root: Path) -> dict[str, Any]:
        """Return the arguments of `build_release_definitions`; relative paths start at `root`."""
        arguments = {name: from_root(getattr(self, name), root) for name in type(self).model_fields}
        partitions = arguments.pop("partitions")
        return arguments | {
            "name": self.name if self.name is not None else folder.name,
            "reidentification": self.reidentification and self.reidentification.from_root(root),
            "engine": self.engine and self.engine.spark,
            "signing": self.signing and self.signing.build(root),
            "waivers": None if self.waivers is None else str(root / local_path(self.waivers, "waivers")),
            "partitions_def": partitions and partitions.build(),
            "private_path": str(root / local_path(self.private_path, "private_path")),
            "release_path": str(root / local_path(self.release_path, "release_path")),
        }
