"""The Dagster component: a release that is configured in YAML, over `build_release_definitions`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import dagster as dg
from pydantic import BaseModel, Field, PrivateAttr, model_validator

from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.component.anonymized import (
    ResolvedAnonymization,
    ResolvedReidentification,
    ResolvedSemanticRisk,
)
from privacy_assets.orchestration.component.scaffolder import scaffolded
from privacy_assets.orchestration.component.source import ResolvedContract, ResolvedPolicy, ResolvedSource
from privacy_assets.orchestration.component.synthetic import PartitionsYaml, ResolvedSplit, ResolvedSynthesis
from privacy_assets.orchestration.component.yaml_keys import require_single_keys
from privacy_assets.orchestration.component.yaml_settings import (
    WrittenList,
    WrittenMapping,
    YamlSettings,
    import_path,
    model_of,
    written,
)
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.settings.asked import Release
from privacy_assets.orchestration.settings.children import ChildTable
from privacy_assets.orchestration.settings.monitoring import MonitoringSettings
from privacy_assets.orchestration.settings.options import Candidate, OptionsSettings
from privacy_assets.orchestration.settings.sources import from_root
from privacy_assets.release.signing import SigningKey
from privacy_assets.setting_checks import is_in_store, local_path


class EngineYaml(YamlSettings):
    """Where mpUCCs are searched, records cut, and candidates counted; it does not change the release."""

    spark: Annotated[SparkEngine, written(SparkEngine)] = Field(
        description="On the workers of a Spark cluster.", examples=[{"remote": "sc://spark:15002"}]
    )


class SigningYaml(YamlSettings):
    """The key that signs releases: give one of key_file and key_variable."""

    key_file: str | None = Field(
        None,
        description="PEM file with the private key, readable only by its owner (0600); a relative path starts at the "
        "root of the project.",
        examples=["/etc/privacy_assets/signing_key.pem"],
    )
    key_variable: str | None = Field(
        None,
        description="Name (and not a template that reads it) of the environment variable with the private key, as PEM "
        "or in base64.",
        examples=["RELEASE_SIGNING_KEY"],
    )
    key_id: str | None = Field(
        None,
        description="Identifier that privacy_assets keygen printed; any other key is refused.",
        examples=["70403ccee94b6155e4dcd4b2dfcd6a1cf6f6a3ab7f4ec4d0a2f9d4e4c3b5f1aa"],
    )

    @model_validator(mode="after")
    def _check(self) -> "SigningYaml":
        self.build(Path())
        return self

    def build(self, root: Path) -> SigningKey:
        """Return the settings; a relative path starts at `root`."""
        if (self.key_file is None) == (self.key_variable is None):
            raise InvalidSettingError("The settings of signing need one of key_file and key_variable.")
        # Checked as written, before it is joined to a path, because it may be the key itself.
        key = SigningKey(self.key_file, self.key_variable, self.key_id)
        if self.key_file is None:
            return key
        return SigningKey(root / self.key_file, None, self.key_id)


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


ResolvedMonitoring: TypeAlias = Annotated[
    MonitoringSettings,
    written(
        MonitoringSettings,
        kinds={"on_refusal": str | None},
        read={"on_refusal": lambda path: import_path(path, "on_refusal")},
    ),
]


ResolvedChildren: TypeAlias = Annotated[
    dict[str, ChildTable],
    WrittenMapping(written(ChildTable, kinds={"source": ResolvedSource, "contract": ResolvedContract})),
]


READ_AS: dict[str, Any] = {
    "name": str | None,
    "contract": ResolvedContract,
    "children": ResolvedChildren | None,
    "policy": ResolvedPolicy,
    "source": ResolvedSource | None,
    "split": ResolvedSplit | None,
    "synthetic": ResolvedSynthesis | None,
    "generalize_synthetic": ResolvedAnonymization | None,
    "anonymized": ResolvedAnonymization | None,
    "reidentification": ResolvedReidentification | None,
    "semantic_risk": ResolvedSemanticRisk | None,
    "options": ResolvedOptions | None,
    "formats": list[Literal["parquet", "csv"]],
    "waivers": str | None,
    "approvers": str | None,
    "signing": SigningYaml | None,
    "engine": EngineYaml | None,
    "monitoring": ResolvedMonitoring | None,
    "partitions_def": PartitionsYaml | None,
}
"""The settings of a release that YAML writes otherwise than Python; all others are read by their type."""
_Fields: Any = model_of(Release, READ_AS, {"partitions_def": "partitions"}, {"name": None})


@scaffolded
class PrivacyReleaseComponent(dg.Component, _Fields):  # type: ignore[misc]
    """Release a table about people as synthetic or anonymized records, once a policy admits them.

    The table goes through a graph of assets: source, split, synthetic records and their assessments, anonymized records
    and their assessments, release. The release step checks exactly the content that it would write against the policy,
    and refuses unless every limit is met, regardless of how the step was started.
    """

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
            "children": self.children and {name: from_root(each, root) for name, each in self.children.items()},
            "engine": self.engine and self.engine.spark,
            "signing": self.signing and self.signing.build(root),
            "approvers": None if self.approvers is None else str(root / local_path(self.approvers, "approvers")),
            "waivers": None if self.waivers is None else str(root / local_path(self.waivers, "waivers")),
            "partitions_def": partitions and partitions.build(),
            "private_path": str(root / local_path(self.private_path, "private_path")),
            "release_path": self.release_path
            if is_in_store(self.release_path)
            else str(root / local_path(self.release_path, "release_path")),
        }
