"""Settings of the component that shape the anonymized side of a release."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from pydantic import BaseModel, Field, StrictInt, model_validator

from privacy_assets.anonymization.settings import (
    AnonymizeSettings,
    Bounds,
    Criterion,
    DiversityKind,
    DiversitySetting,
    LDiversity,
    Method,
    Normalization,
    Output,
    as_diversity,
)
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.columns.scales import read_scale
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.component.source import SourceYaml
from privacy_assets.orchestration.component.yaml_settings import Flag, Number, Whole, YamlSettings
from privacy_assets.orchestration.settings.anonymized import (
    AnonymizationSettings,
    OtherReleaseSettings,
    ReidentificationSettings,
    SemanticRiskSettings,
)
from privacy_assets.reidentification.assess import DEFAULT_MAX_KNOWN
from privacy_assets.semantic_risk.settings import DEFAULT_MIN_SUPPORT, SemanticSettings


class LDiversityYaml(YamlSettings):
    """How little a class may say about a sensitive column."""

    least: Number = Field(description="The l, at least 1.", examples=[2])
    kind: DiversityKind = Field("distinct", description="distinct, entropy or recursive.", examples=["entropy"])
    c: Number = Field(1.0, description="The c of the recursive kind.", examples=[3])

    @model_validator(mode="after")
    def _check(self) -> "LDiversityYaml":
        self.build().check("l_diversity")
        return self

    def build(self) -> LDiversity:
        """Return the setting."""
        return LDiversity(**self.given())


def _resolve_diversity(context: dg.ResolutionContext, value: Any) -> Any:
    return LDiversityYaml.resolve_from_model(context, value) if isinstance(value, BaseModel) else value


class AnonymizedYaml(YamlSettings):
    """How records are anonymized (`anonymize`); the roles of the columns come from the contract."""

    k: Whole | None = Field(
        None, description="Fewest people of a class; by default what the policy asks for.", examples=[5]
    )
    method: Method = Field(
        "mondrian", description="mondrian (classes of its own) or lattice (by hierarchies).", examples=["lattice"]
    )
    criterion: Criterion = Field(
        "gain",
        description="Which cut mondrian takes: where most information is lost (gain), or the widest column (range).",
        examples=["range"],
    )
    relaxed: Flag = Field(False, description="Whether a cut may divide records with equal values.", examples=[True])
    normalize: Normalization = Field(
        "rank", description="Whether mondrian compares columns by rank or by range.", examples=["range"]
    )
    l_diversity: Annotated[
        StrictInt | LDiversityYaml | None,
        dg.Resolver(_resolve_diversity, model_field_type=StrictInt | LDiversityYaml.model() | None),
    ] = Field(
        None,
        description="Least diversity of every sensitive column in a class: a number, or least, kind and c; by default "
        "what the policy's blocking limit asks for.",
        examples=[2],
    )
    l_diversity_by_column: dict[str, LDiversityYaml] | None = Field(
        None, description="The same, by column.", examples=[{"diagnosis": {"least": 3, "kind": "entropy"}}]
    )
    t_closeness: Number | dict[str, Number] | None = Field(
        None,
        description="Largest distance of a class from the table, for all sensitive columns or by column; by default "
        "what the policy's blocking limit asks for.",
        examples=[0.2],
    )
    max_suppression: Number = Field(
        0.0, description="Share of records that may be left out where the others gain by it.", examples=[0.02]
    )
    output: Output = Field(
        "labels", description="labels (ranges and sets), or centroid (the centre of each class).", examples=["labels"]
    )
    bounds: Bounds = Field(
        "tight",
        description="Whether ranges end at values of the class (tight) or where space was cut (cell).",
        examples=["cell"],
    )
    hierarchies: dict[str, dict[str, Any]] | None = Field(
        None,
        description="For lattice, by column, besides those of the contract: one of intervals, prefixes, dates, tree, "
        "arx_csv.",
        examples=[{"age": {"intervals": [5, 10, 20]}}],
    )
    seed: Whole | None = Field(
        None,
        description="Key of the order of released records; by default 0, and drawn in private if relaxed.",
        examples=[1],
    )
    pictured: list[str] | None = Field(
        None, description="Two columns with numbers or datetimes whose classes are drawn.", examples=[["age", "income"]]
    )

    @model_validator(mode="after")
    def _check(self) -> "AnonymizedYaml":
        if self.l_diversity is not None and self.l_diversity_by_column is not None:
            raise InvalidSettingError("Give l_diversity or l_diversity_by_column; both say the same.")
        for settings in (self.hierarchies or {}).values():
            Hierarchy.from_settings(settings)
        self._check_ranges()
        return self

    def _check_ranges(self) -> None:
        """Check what needs neither contract nor policy, where the line is still known."""
        built = self.build()
        every = "every sensitive column"
        by_column: dict[str, Mapping[str, Any]] = {
            name: value if isinstance(value, Mapping) else {} if value is None else {every: value}
            for name, value in (("l_diversity", built.l_diversity), ("t_closeness", built.t_closeness))
        }
        AnonymizeSettings(
            quasi_identifiers=("quasi-identifiers of the contract",),
            k=1 if self.k is None else self.k,
            sensitive=(),
            subject=None,
            direct_identifiers=(),
            method=self.method,
            criterion=self.criterion,
            relaxed=self.relaxed,
            normalize=self.normalize,
            l_diversity={name: as_diversity(value, name) for name, value in by_column["l_diversity"].items()},
            t_closeness=by_column["t_closeness"],
            max_suppression=self.max_suppression,
            output=self.output,
            bounds=self.bounds,
            seed=self.seed or 0,
        ).check()

    def build(self) -> AnonymizationSettings:
        """Return the settings."""
        given = self.given()
        diversity: DiversitySetting = given.pop("l_diversity", None)
        if isinstance(self.l_diversity, LDiversityYaml):
            diversity = self.l_diversity.build()
        by_column = given.pop("l_diversity_by_column", None)
        if by_column is not None:
            diversity = {name: value.build() for name, value in by_column.items()}
        if self.pictured is not None:
            given["pictured"] = tuple(self.pictured)
        return AnonymizationSettings(**given, l_diversity=diversity)


class OtherReleaseYaml(YamlSettings):
    """Another release of the same people, which an attacker may hold: give one of release, directory and table."""

    name: str = Field(
        description="Letters, digits and underscores; for messages and asset keys.", examples=["last_year"]
    )
    key: str = Field(
        description="Column of both released tables that says which records belong together.", examples=["pseudonym"]
    )
    release: str | None = Field(None, description="Name of another release of this project.", examples=["people_north"])
    directory: str | None = Field(
        None,
        description="Directory of an anonymized release that was published; relative to the root of the project.",
        examples=["releases/people/anonymized/latest"],
    )
    table: SourceYaml | None = Field(
        None, description="A table that was anonymized elsewhere.", examples=[{"file": "data/published.csv"}]
    )
    masks: dict[str, dict[str, Any]] | None = Field(
        None,
        description="How each of its columns was masked: kind (exact, label, interval, value_set, mapping, suppressed, "
        "bounded_noise, rank_window) and the mask's own settings.",
        examples=[{"age": {"kind": "label", "column": "age"}}],
    )
    quasi_identifiers: list[str] | None = Field(
        None, description="Its columns that an attacker may know.", examples=[["age", "sex"]]
    )
    hierarchies: dict[str, dict[str, Any]] | None = Field(
        None, description="Those that its model names.", examples=[{"age": {"intervals": [5, 10]}}]
    )
    withdrawn: dict[str, str] = Field(
        default_factory=dict,
        description="Published tables of a release of this project that do not count, as nobody holds them any more or "
        "their records have changed: by fingerprint, why and who decided.",
        examples=[{"0123456789ab": "Deleted by the only recipient, letter of 2 May; A. Lovelace"}],
    )

    @model_validator(mode="after")
    def _check(self) -> "OtherReleaseYaml":
        self.build(Path())
        return self

    def build(self, root: Path) -> OtherReleaseSettings:
        """Return the settings."""
        hierarchies = {name: Hierarchy.from_settings(each) for name, each in (self.hierarchies or {}).items()}
        return OtherReleaseSettings(
            self.name,
            self.key,
            release=self.release,
            directory=None if self.directory is None else str(root / self.directory),
            table=None if self.table is None else self.table.build(root),
            model=None if self.masks is None else _read_masks(self.masks),
            quasi_identifiers=self.quasi_identifiers,
            hierarchies=hierarchies or None,
            withdrawn=self.withdrawn,
        )


def _read_masks(masks: dict[str, dict[str, Any]]) -> ReleaseModel:
    problem = ""
    try:
        return ReleaseModel.from_json(masks)
    except (TypeError, KeyError) as error:
        problem = str(error)
    raise InvalidSettingError(f"masks cannot be read: {problem}. Expected a kind and its settings for each column.")


class ReidentificationYaml(YamlSettings):
    """Who the anonymized records can be (`assess_reidentification`)."""

    max_known: Whole = Field(
        DEFAULT_MAX_KNOWN, description="The curve covers all sets of up to so many quasi-identifiers.", examples=[4]
    )
    other_releases: list[OtherReleaseYaml] = Field(
        default_factory=list,
        description="Releases of the same people that an attacker holds as well.",
        examples=[[{"name": "last_year", "key": "pseudonym", "release": "people_last_year"}]],
    )

    @model_validator(mode="after")
    def _check(self) -> "ReidentificationYaml":
        if self.max_known < 1:
            raise InvalidSettingError(f"max_known is {self.max_known}; expected a whole number of at least 1.")
        self.build(Path())
        return self

    def build(self, root: Path) -> ReidentificationSettings:
        """Return the settings."""
        return ReidentificationSettings(self.max_known, tuple(other.build(root) for other in self.other_releases))


class SemanticRiskYaml(YamlSettings):
    """What the concepts of the anonymized records give away (`assess_semantic_risk`)."""

    scales: dict[str, Any] | None = Field(
        None,
        description="How columns are read, besides what the contract says: nominal, ordinal, binary, generalized, or a "
        "mapping with ordinal, interval or hierarchy.",
        examples=[{"income": {"ordinal": [1000, 2000]}}],
    )
    three_way: list[Number] | None = Field(
        None,
        description="Two risks: records up to the first are labelled keep, from the second on discard.",
        examples=[[0.1, 0.3]],
    )
    semantic_risk: Flag = Field(
        False, description="Whether to search the semantic risk beside the basic one.", examples=[True]
    )
    advice: Flag = Field(True, description="Whether to tell what forgetting each column would do.", examples=[False])
    min_support: Whole = Field(
        DEFAULT_MIN_SUPPORT, description="Fewest records of the implications that the advice counts.", examples=[20]
    )
    withhold: Flag = Field(
        False, description="Whether to leave out the records that no acceptable subset can hold.", examples=[True]
    )
    risk_limit: Number | None = Field(
        None,
        description="Largest basic semantic risk of a record; by default what the policy asks for.",
        examples=[0.2],
    )
    of_source: Flag = Field(False, description="Whether to assess the source as well.", examples=[True])

    @model_validator(mode="after")
    def _check(self) -> "SemanticRiskYaml":
        three_way = self.build().three_way
        SemanticSettings(self.risk_limit, three_way, self.semantic_risk, self.advice, self.min_support).check()
        for scale in (self.scales or {}).values():
            read_scale(scale)
        return self

    def build(self) -> SemanticRiskSettings:
        """Return the settings."""
        given = self.given()
        if self.three_way is not None:
            given["three_way"] = tuple(self.three_way)
        return SemanticRiskSettings(**given)
