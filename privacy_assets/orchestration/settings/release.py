"""The settings of one release."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import dagster as dg

from privacy_assets.anonymization.anonymized_table import roles_of
from privacy_assets.anonymization.one_table import OneTable
from privacy_assets.anonymization.records_of_people import PEOPLE_WITH_SEVERAL_RECORDS
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.contract.contract import TableContract, resolve_contract
from privacy_assets.contract.related_contracts import RelatedContracts
from privacy_assets.disclosure.column_examination import columns_that_leave
from privacy_assets.disclosure.settings import KNOWN_OF_RELATED, DisclosureSettings
from privacy_assets.drafting.parts import parts_of_moments
from privacy_assets.engine.local import LocalEngine
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import InvalidSettingError
from privacy_assets.mpucc.preprocess import check_precisions
from privacy_assets.orchestration.settings.anonymized import (
    MEMBERSHIP_CONTROL,
    NAME_PATTERN,
    Generalization,
    ReidentificationSettings,
    describe_hierarchies,
)
from privacy_assets.orchestration.settings.asked import Release
from privacy_assets.orchestration.settings.children import one_table_of, refuse_with_children, related_contracts
from privacy_assets.orchestration.settings.engine import read_engine
from privacy_assets.orchestration.settings.monitoring import NO_MONITORING, MonitoringSettings
from privacy_assets.orchestration.settings.sources import TableSource, require_partitioned
from privacy_assets.orchestration.settings.synthetic import (
    AUTO,
    SYNTHETIC_PEOPLE,
    AssessmentSettings,
    ExternalSynthetic,
    GivenSplit,
    Split,
    Synthesis,
)
from privacy_assets.pipeline.memory_of_stages import bytes_of
from privacy_assets.pipeline.settings.privacy_budget import PrivacyBudget
from privacy_assets.pipeline.settings.semantic_risk import SemanticRiskSettings
from privacy_assets.pipeline.settings.utility import ReportSettings, UtilitySettings, worth_stage
from privacy_assets.release import clock
from privacy_assets.release.approvals import read_approvers
from privacy_assets.release.declaration import lacks, require_declaration, review_of
from privacy_assets.release.evidence import SPLIT_STAGES, STAGES_ASSESSED, SigningEvidence
from privacy_assets.release.files import require_formats, require_rows_per_part
from privacy_assets.release.gate import EXAMPLE_METRICS
from privacy_assets.release.metrics import (
    DISCLOSURE,
    METRICS,
    MPUCC,
    ON_BOTH_SIDES,
    REIDENTIFICATION,
    SEMANTIC,
    SIDES,
    UTILITY,
)
from privacy_assets.release.policy import TOTAL_EPSILON, Policy, resolve_policy
from privacy_assets.release.signing import Signer, load_signer, require_cryptography
from privacy_assets.release.waivers import Waiver, Waivers, read_waivers
from privacy_assets.setting_checks import local_path
from privacy_assets.synthesis.generalized import DISTINCT_RECORD, require_cuts_that_apply
from privacy_assets.synthesis.private.accounting import epsilon_of, rho_of
from privacy_assets.synthesis.private.settings import MstSettings
from privacy_assets.synthesis.synthetic_people import check_synthetic_person
from privacy_assets.utility.result import GROUP_FIGURES

AS_ONE_TABLE = "_as_one_table"
"""End of the names of stages that make one table of related ones."""


@dataclass(frozen=True, kw_only=True)
class ReleaseSettings(Release):
    """All settings of one release, with their defaults, as contract and policy determine them.

    With ``related`` tables, the anonymized side has settings of its own (`on_side`): they are those of ``one_table``,
    and ``whole`` are these.
    """

    contract: TableContract
    policy: Policy
    split: Split | GivenSplit
    assessment: AssessmentSettings
    asked_assessment: AssessmentSettings | None = None
    monitoring: MonitoringSettings = NO_MONITORING
    waivers: Path | None = None
    approvers: Path | None = None
    related: RelatedContracts | None = None
    one_table: OneTable | None = None
    whole: "ReleaseSettings | None" = None
    declaration: Mapping[str, Any] = field(default_factory=dict)
    engine: LocalEngine | SparkEngine = field(default_factory=LocalEngine)
    report: ReportSettings = field(default_factory=ReportSettings)

    @classmethod
    def of(cls, asked: Release) -> Self:
        """Resolve the settings that were asked for."""
        policy, contract, synthetic = resolve_policy(asked.policy), resolve_contract(asked.contract), asked.synthetic
        related = related_contracts(contract, asked.children)
        if related is not None:
            refuse_with_children(asked)
            makes_synthetic = synthetic is not None or asked.anonymized is None
            policy = policy.for_related_tables() if makes_synthetic else policy
        if asked.utility is not None:
            policy = policy.with_worth_warnings()
        if synthetic is None and asked.anonymized is None:
            synthetic = Synthesis()
        if synthetic is not None:
            tables = [contract] if related is None else related.tables.values()
            policy = policy.with_rules(has_rules=any(each.rules for each in tables))
        if synthetic is None and asked.split is None and getattr(asked.anonymized, "of", None) == "original":
            raise InvalidSettingError(
                f"The release {asked.name!r} anonymizes the originals of a split, but has none. Give one, for example "
                "split=Split(train_fraction=0.8), or synthetic=..., which is made of the same originals."
            )
        if isinstance(synthetic, Synthesis):
            policy = policy if synthetic.private is None else policy.with_total_epsilon()
            synthetic = synthetic.resolve(policy)
        labels = () if asked.generalize_synthetic is None else contract.columns_with_role("quasi_identifier")
        assessment = asked.assessment or AssessmentSettings.required_by(policy, contract)
        resolved: dict[str, Any] = {
            "contract": contract,
            "related": related,
            "one_table": None if related is None else one_table_of(asked, related),
            "policy": policy,
            "split": asked.split or Split(),
            "synthetic": synthetic,
            "assessment": assessment.resolve(contract, labels),
            "asked_assessment": assessment,
            "formats": require_formats(asked.formats),
            "rows_per_part": require_rows_per_part(asked.rows_per_part),
            "monitoring": asked.monitoring or NO_MONITORING,
            "owners": tuple(asked.owners),
            "waivers": None if asked.waivers is None else local_path(asked.waivers, "waivers").absolute(),
            "approvers": None if asked.approvers is None else local_path(asked.approvers, "approvers").absolute(),
            "declaration": require_declaration(asked.declaration or {}),
            "engine": read_engine(asked.engine),
            "report": asked.report or ReportSettings(),
        }
        return cls(**vars(asked) | resolved)

    def __post_init__(self) -> None:
        if not re.fullmatch(NAME_PATTERN, self.name):
            raise InvalidSettingError(
                f"The release is named {self.name!r}; expected letters, digits and underscores, not starting with a "
                "digit. It becomes the prefix of the asset keys and the name of the group."
            )
        for side in self.sides:
            if not self.policy.protects(side):
                raise InvalidSettingError(
                    f"The release {self.name!r} releases {side} records, for which its policy has no limit of severity "
                    "'error' that prevents people from being singled out. Add one, for example on "
                    f"{EXAMPLE_METRICS[side]!r}."
                )
            if not self.on_side(side).contract.released_columns:
                raise InvalidSettingError(
                    f"The contract of {self.name!r} releases no column of {side} records: each is a direct identifier "
                    "or that of the person. Expected at least one other."
                )
        _check_owners(self.owners)
        bytes_of(self.memory)
        self._check_signing()
        self._check_approvers()
        if self.is_split and (self.source is None) != isinstance(self.split, GivenSplit):
            raise InvalidSettingError(
                f"The release {self.name!r} needs either a source, or a GivenSplit with original and control; it has "
                f"{'both' if self.source is not None else 'neither'}."
            )
        self._check_synthetic_side()
        if self.on_side("anonymized") is self:
            self._check_anonymized_side()
        self.contract.require_unit()
        self._check_acknowledged()
        self._check_options()
        self._check_groups()
        if self.source is None and self.monitoring.drift_limit is not None:
            raise InvalidSettingError(
                f"The release {self.name!r} monitors the drift of its source, but has no source: original and control "
                "are given. Set drift_limit to None (null in YAML)."
            )
        if self.partitions_def is not None:
            for name, source in self.sources.items():
                require_partitioned(name, source)
            if self.contract.links_rows:
                raise InvalidSettingError(
                    f"The release {self.name!r} has partitions, which are assessed one by one, and its contract lets "
                    f"{list(self.contract.links_rows)} link the rows of a person, who may be in several. Release the "
                    "whole table at once, or leave these columns out."
                )

    def _check_groups(self) -> None:
        """Refuse a group column that is not released, as one that numbers people, and limits on groups without one."""
        group, limited = self.utility_settings.group, [each for each in GROUP_FIGURES if self.policy.limit_on(each)]
        released = list(self.contract.released_columns)
        if group is not None and group not in released:
            raise InvalidSettingError(
                f"utility.group of {self.name!r} is {group!r}. Expected one of the released columns, among which is "
                f"none that numbers people: {released}."
            )
        if limited and group is None:
            raise InvalidSettingError(
                f"The policy of {self.name!r} limits {limited}, but utility.group names no column. Set it to one of "
                f"{released}, such as a region."
            )

    def _check_signing(self) -> None:
        if self.signing is not None:
            require_cryptography()
        elif self.policy.required.signature:
            raise InvalidSettingError(
                f"The policy of {self.name!r} requires signed releases, but this one has no signing key. Give one: "
                "signing=SigningKey(path=...) or SigningKey(variable=...); `privacy_assets keygen` makes one."
            )

    def _check_approvers(self) -> None:
        required = self.policy.required
        n_people = 0 if self.approvers is None else len(read_approvers(self.approvers))
        if n_people < max(required.approvals, required.signed_waivers):
            raise InvalidSettingError(
                f"The policy of {self.name!r} requires approvals ({required.approvals}) or signed waivers, but "
                f"`approvers` names {n_people} people. Name a YAML file with the name, role and public_key of each; "
                "`privacy_assets keygen` makes keys."
            )

    def _check_synthetic_side(self) -> None:
        if self.synthetic is None:
            if self.generalize_synthetic is not None:
                raise InvalidSettingError(
                    f"The release {self.name!r} generalizes synthetic records, but makes none. Set synthetic=..."
                )
            if self.disclosure is not None:
                raise InvalidSettingError(
                    f"The release {self.name!r} assesses disclosure by synthetic records, but makes no such records. "
                    "Set synthetic=..., or leave out disclosure."
                )
            return
        external = isinstance(self.synthetic, ExternalSynthetic) and not self.synthetic.control_was_withheld
        blocked_by_leakage = any(limit.needs_control and limit.blocks for limit in self.policy.limits)
        if external and isinstance(self.split, Split) and blocked_by_leakage:
            raise InvalidSettingError(
                f"The release {self.name!r} has synthetic records that were made elsewhere, divides the source "
                "itself, and limits leakage, which is measured against people whom the synthesizer has not seen. Give "
                "the original and control that the synthesizer had (GivenSplit), or declare "
                "ExternalSynthetic(..., control_was_withheld=True). If it saw everybody, nothing can be admitted: have "
                "the records made again from a random part of the people, give people of another period as control "
                "(docs/split.md), or release anonymized records."
            )
        joined = [each.name for each in self.contract.rules if each.kind == "determines"]
        if self.private is not None and joined:
            raise InvalidSettingError(
                f"The contract of {self.name!r} has rules that determine a column, {joined} in `rules`. Their values "
                "would be joined from observed pairs, which the guarantee of mst does not cover. Leave out these "
                "rules, or the determined columns, or choose another method. Nothing was spent."
            )
        self._check_group_of_synthesis()
        if getattr(self.split, "train_fraction", None) == AUTO and not self.assesses(DISCLOSURE):
            raise InvalidSettingError(
                f"The release {self.name!r} has train_fraction {AUTO!r}, which is chosen by what the leakage test "
                "sees, but its policy does not limit leakage. Write a number, or limit leakage_detected."
            )
        if self.synthetic_person is not None:
            check_synthetic_person(self.contract, self.synthetic_person)
        if self.assesses(DISCLOSURE) and self.related is None:
            self._check_disclosure()
        if self.assesses(MPUCC):
            self._check_parts()
        self._check_budget()
        self.assessment.check(len(self.contract.searched_columns))
        self.assessment.require_accepted_by(self.policy, len(self.contract.searched_columns))
        precisions = self.assessment.numeric_precision, self.assessment.datetime_precision
        check_precisions(*precisions, self.contract.released_columns)
        if self.generalize_synthetic is not None:
            require_cuts_that_apply(vars(self.generalize_synthetic))
            if self.generalize_synthetic.membership_control is not None:
                raise InvalidSettingError(
                    f"The release {self.name!r} has a membership_control for synthetic records, whose control is that "
                    "of the split. Expected it only in `anonymized`."
                )
            if self.generalize_synthetic.of != "source":
                raise InvalidSettingError(
                    f"The release {self.name!r} generalizes synthetic records with `of: original`. Expected that only "
                    "in `anonymized`."
                )
            if DISTINCT_RECORD in self.contract.released_columns:
                raise InvalidSettingError(
                    f"The contract has a column {DISTINCT_RECORD!r}, a name that is needed to number synthetic "
                    "records. Rename it."
                )
            self.generalization("synthetic")

    def _check_group_of_synthesis(self) -> None:
        made = self.synthetic.for_manifest() if isinstance(self.synthetic, Synthesis) else {}
        group = made["settings"].get("group") if made.get("method") == "smooth_cart" else None
        possible = [name for name in self.contract.released_columns if name not in self.contract.person_columns]
        if group is not None and group not in possible:
            raise InvalidSettingError(
                f"The `group` of the synthetic records of {self.name!r} is {group!r}, which is a person or not a "
                f"released column. Expected one of {possible}."
            )

    def _check_parts(self) -> None:
        """Refuse columns of one role that are parts of one by their names and are not declared so."""
        declared = {part for parts in self.contract.parts.values() for part in parts}
        for role in sorted(set(self.contract.roles.values())) if self.related is None else ():
            names = [each for each in self.contract.columns_with_role(role) if each in self.contract.released_columns]
            for what, parts in parts_of_moments(names).items():
                if not declared.issuperset(parts):
                    raise InvalidSettingError(
                        f"The columns {parts} of {self.name!r} are parts of one moment by their names, and "
                        f"whoever knows it knows all of them. Write `part_of: {what}` for each in the contract, so "
                        "that they count as one column. If they are of different moments, rename one."
                    )

    def _check_budget(self) -> None:
        """Refuse settings with which no fit could be made or released, before a fit spends budget."""
        if self.private is None:
            if self.privacy_budget is not None:
                raise InvalidSettingError(
                    f"The release {self.name!r} has a privacy budget, but nothing is charged to it: only the method "
                    f"mst spends one. Write synthetic: {{method: mst}}, or leave out privacy_budget."
                )
            return
        self.private.check(self.contract)
        has_partitions, has_source = self.partitions_def is not None, self.source is not None
        person = self.contract.person
        self.budget.check(self.waivers, person, has_partitions=has_partitions, has_source=has_source)
        stated = {"epsilon": self.private.epsilon, "delta": max(self.private.delta, self.budget.delta)}
        stated["total_epsilon"] = epsilon_of(rho_of(self.private.epsilon, self.private.delta), self.budget.delta)
        for limit in self.policy.limits:
            if limit.blocks and limit.metric in stated and not limit.holds_for(stated[limit.metric]):
                raise InvalidSettingError(
                    f"The release {self.name!r} would spend {limit.metric} {stated[limit.metric]:.6g}, which its "
                    f"policy never admits: expected {limit.bound}. Nothing was spent."
                )

    def _check_disclosure(self) -> None:
        """Refuse columns that the disclosure assessment would refuse in every run."""
        columns = self.contract.released_columns
        self.disclosure_settings.known_of(columns)
        assumed = {name for known in self.policy.known for name in known}
        left_out = [name for name in columns if name in assumed - {*(self.disclosure_settings.known or columns)}]
        if left_out:
            raise InvalidSettingError(
                f"The policy of {self.name!r} assumes that an attacker knows {left_out}, but `known` of `disclosure` "
                "leaves them out. Add them, or leave `known` out, which assumes that all released columns are known."
            )
        of_contract = [name for name in columns if name in self.contract.columns_with_role("sensitive")]
        asked = self.disclosure_settings.sensitive
        unlisted = [name for name in of_contract if name not in asked]
        if unlisted:
            raise InvalidSettingError(
                f"The contract of {self.name!r} declares {unlisted} sensitive, but `sensitive` of `disclosure` leaves "
                "them out, so it would not be assessed how well they are inferred. Add them, or leave `sensitive` out."
            )
        further = [name for name in asked if name not in of_contract]
        if of_contract and further and self.policy.limit_on("inference_excess") is not None:
            raise InvalidSettingError(
                f"The policy of {self.name!r} limits inference_excess, which is the mean over `sensitive` of "
                f"`disclosure`, and {further} are not sensitive in the contract: they would hide how well the others "
                "are inferred. Leave them out, or declare them sensitive in the contract."
            )
        if len(columns) < 2:
            raise InvalidSettingError(
                f"The release {self.name!r} releases only the column {columns[0]!r}, in which nothing can be linked "
                "or inferred, so leakage cannot be tested. Expected at least two released columns, or a policy "
                "without limits on leakage_detected and on the excess of a criterion."
            )

    def _check_anonymized_side(self) -> None:
        if self.anonymized is None:
            if any(each is not None for each in (self.reidentification, self.semantic_risk, self.linkage_audit)):
                raise InvalidSettingError(
                    f"The release {self.name!r} assesses anonymized records, but makes none. Set anonymized=..."
                )
            return
        if self.source is None and not self.is_of_originals:
            raise InvalidSettingError(
                f"The release {self.name!r} has an anonymized side, but no source to make it from. Give a source, or "
                "anonymize the originals of the split (of: original)."
            )
        self.generalization(self.source_of_anonymized)
        if self.assesses(REIDENTIFICATION) and self.anonymized.output == "centroid":
            raise InvalidSettingError(
                f"The release {self.name!r} publishes class centers, which do not bound any single value, so it cannot "
                "be assessed whose a record can be. Expected output='labels', or a policy without limits on "
                "re-identification."
            )
        of_sensitive = [name for name in ("l_diversity", "t_closeness") if self.policy.limit_on(name) is not None]
        if of_sensitive and not roles_of(self.contract, None).sensitive:
            raise InvalidSettingError(
                f"The policy limits {of_sensitive}, but the contract of {self.name!r} has no sensitive column. Give "
                "the columns that must not become known the role 'sensitive'."
            )
        self._check_known()
        self._check_reidentification()
        for other in self.reidentification_settings.other_releases:
            if other.key not in self.contract.released_columns or other.release == self.name:
                raise InvalidSettingError(
                    f"The other release {other.name!r} is linked by {other.key!r}, which is not released, or is this "
                    "release itself. Expected a different release, and a key among "
                    f"{list(self.contract.released_columns)}."
                )
            if other.key in self.contract.links_rows and other.release is None:
                raise InvalidSettingError(
                    f"The other release {other.name!r} is linked by {other.key!r}, which is of people and not of rows "
                    "(links_rows), and it is not known which row of the source each of its rows is. Expected another "
                    "release of this project (`release`), made from the same source, or a key of rows."
                )
        if self.linkage_audit is not None:
            self.linkage_audit.check(self.contract, self.anonymized.output)
        if self.assesses(SEMANTIC):
            labelled = tuple(self.hierarchies or ()) if self.anonymized.output == "labels" else ()
            self.semantic_risk_settings.check_columns(self.contract, labelled)

    def _check_acknowledged(self) -> None:
        """Refuse reasons for releasing columns unchanged if no side releases them unchanged."""
        leaving = {name for side in self.sides for name in self.columns_leaving(side)}
        reduced = [name for name in self.acknowledged if name not in leaving]
        if reduced:
            raise InvalidSettingError(
                f"The contract has reasons to release {reduced} unchanged, but no side of the release {self.name!r} "
                "does so: quasi-identifiers are generalized, and synthesized if they are numbers or times. Remove "
                "leaves_as_is, or give the column the role 'other' or 'sensitive'."
            )

    def _check_options(self) -> None:
        """Refuse the seeds of the comparison: the chosen settings must be used and judged with other draws."""
        own = (getattr(each, "seed", None) for each in (self.split, self.synthetic, self.utility))
        if self.options is not None and self.options.are_seeds_of(*own):
            raise InvalidSettingError(
                f"The release {self.name!r} uses a seed of the comparison by which its settings were chosen. Expected "
                "any other seed, so that the release is made and judged with new draws."
            )

    def _check_known(self) -> None:
        """Refuse columns that no release has; those of another release of the project are checked in its assessment."""
        if any(other.release is not None for other in self.reidentification_settings.other_releases):
            return
        unknown = sorted({name for known in self.policy.known for name in known} - {*self.contract.released_columns})
        if unknown:
            raise InvalidSettingError(
                f"The policy assumes that an attacker knows {unknown}, which the release {self.name!r} does not have. "
                f"Its columns are {list(self.contract.released_columns)}; other columns can only be those of another "
                "release of the project in other_releases."
            )

    def _check_reidentification(self) -> None:
        limits = [limit for limit in self.policy.limits_of("anonymized") if limit.blocks]
        if self.reidentification_settings.other_releases and not any(
            limit.assessment == REIDENTIFICATION for limit in limits
        ):
            raise InvalidSettingError(
                f"The release {self.name!r} names other releases, but its policy has no blocking limit on "
                "re-identification that considers them. Add one, for example on "
                "'max_reidentification_probability'."
            )
        if self.contract.links_rows and not any(limit.assessment == REIDENTIFICATION for limit in limits):
            raise InvalidSettingError(
                f"The contract of {self.name!r} lets {list(self.contract.links_rows)} link the rows of a person "
                "(links_rows), but its policy has no blocking limit on re-identification, for which people are "
                "counted. Add one, for example on 'max_reidentification_probability', or remove links_rows."
            )
        quasi_identifiers = set(roles_of(self.contract, None).quasi_identifiers)
        covers = not self.policy.known or any(quasi_identifiers <= set(columns) for columns in self.policy.known)
        if not covers and all(limit.assessment == REIDENTIFICATION for limit in limits if limit.protects):
            raise InvalidSettingError(
                f"The policy of {self.name!r} limits only re-identification, and assumes that an attacker never knows "
                "all quasi-identifiers, so anyone who does could single people out. Add a limit on smallest_class, or "
                "add all quasi-identifiers to `known`."
            )

    def on_side(self, side: str) -> "ReleaseSettings":
        """Return the settings as the stages of a side need them: those of one table on the anonymized side."""
        return self._of_one_table if side == "anonymized" and self.related and self.one_table else self

    @cached_property
    def _of_one_table(self) -> "ReleaseSettings":
        assert self.one_table is not None  # noqa: S101 - called only if there is one
        of_synthetic: dict[str, Any] = {"synthetic": None, "disclosure": None}
        return replace(self, contract=self.one_table.contract, related=None, whole=self, **of_synthetic)

    @property
    def private(self) -> MstSettings | None:
        """The settings of differentially private records, if the synthetic records are differentially private."""
        return self.synthetic.private if isinstance(self.synthetic, Synthesis) else None

    @property
    def synthetic_person(self) -> str | None:
        """Column of synthetic records made elsewhere with the synthetic person of each row, if they have one."""
        return self.synthetic.person if isinstance(self.synthetic, ExternalSynthetic) else None

    @property
    def stages_of_synthetic_people(self) -> tuple[str, ...]:
        """The stage of synthetic people, if there are any."""
        return () if self.synthetic_person is None else (SYNTHETIC_PEOPLE,)

    @property
    def budget(self) -> PrivacyBudget:
        """The given budget, or the default one."""
        return self.privacy_budget or PrivacyBudget()

    @property
    def population(self) -> str:
        """The population that fits are charged to."""
        return self.budget.population or self.name

    @property
    def total_epsilon(self) -> float:
        """The largest epsilon that may be spent on the population."""
        limit = self.policy.limit_on("total_epsilon")
        return TOTAL_EPSILON if limit is None else limit.value

    @property
    def invented(self) -> tuple[str, ...]:
        """Columns whose values may be nobody's: those the contract calls invented, and all of a noisy model."""
        return self.contract.invented if self.private is None else self.contract.released_columns

    @property
    def sources(self) -> dict[str, TableSource]:
        """The sources of the release's own tables, by stage."""
        sources = {} if self.source is None else {"source": self.source}
        sources |= {f"source_{name}": own.source for name, own in (self.children or {}).items()}
        if self.is_split and isinstance(self.split, GivenSplit):
            sources |= {"original": self.split.original, "control": self.split.control}
        if isinstance(self.synthetic, ExternalSynthetic):
            sources["synthetic"] = self.synthetic.source
        if self.membership_control is not None:
            sources[MEMBERSHIP_CONTROL] = self.membership_control
        return sources

    @property
    def membership_control(self) -> TableSource | None:
        """The records of people who are not in the source, for the membership of the anonymized records."""
        return None if self.anonymized is None else self.anonymized.membership_control

    @property
    def source_of_anonymized(self) -> str:
        """The stage whose table the anonymized records are made of: that of `as_one_table` with related tables."""
        return self.as_one_table("original" if self.is_of_originals else "source")

    @property
    def is_of_originals(self) -> bool:
        """Whether the anonymized records are made of the originals of the split."""
        return self.anonymized is not None and self.anonymized.of == "original"

    def as_one_table(self, stage: str) -> str:
        """Return the stage with the one table that is made of related ones; without these, the stage itself."""
        return stage if self.one_table is None else stage + AS_ONE_TABLE

    @property
    def stage_examined(self) -> str:
        """The stage whose columns are examined before they leave, apart from the table that leaves."""
        if self.whole is not None:
            return self.source_of_anonymized
        return "original" if self.source is None else "source"

    @property
    def is_split(self) -> bool:
        """Whether a side needs original and control."""
        return "synthetic" in self.sides or self.is_of_originals

    @property
    def control_of_anonymized(self) -> tuple[str, ...]:
        """The stage of the people who are not among the anonymized, if it is known who they are."""
        given = () if self.membership_control is None else (MEMBERSHIP_CONTROL,)
        return (self.as_one_table("control"),) if self.is_of_originals else given

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides that are released: ``"synthetic"``, ``"anonymized"``, or both."""
        asked = {"synthetic": self.synthetic is not None, "anonymized": self.anonymized is not None}
        return tuple(side for side in dict.fromkeys(SIDES.values()) if asked[side])

    def columns_leaving(self, side: str) -> dict[str, str]:
        """Return the role of each column that a side releases unchanged."""
        is_generalized = side == "synthetic" and self.generalize_synthetic is not None
        described = [
            each for each in self.describe_released() if not (is_generalized and each["role"] == "quasi_identifier")
        ]
        return columns_that_leave(described, side)

    def describe_released(self) -> list[dict[str, Any]]:
        """Describe the released columns, of all tables if there are several."""
        if self.related is not None:
            return self.related.describe()
        released = set(self.contract.released_columns)
        return [each for each in self.contract.describe() if each["column"] in released]

    @property
    def acknowledged(self) -> dict[str, str]:
        """Reasons in the contracts for releasing columns unchanged, by their names in `describe_released`."""
        return self.contract.acknowledged if self.related is None else self.related.acknowledged

    @property
    def roles(self) -> Mapping[str, str]:
        """Role of each column in the contracts, by their names in `describe_released`."""
        return self.contract.roles if self.related is None else self.related.roles

    @property
    def descriptions(self) -> Mapping[str, str]:
        """Descriptions of the columns in the contracts, by their names in `describe_released`."""
        return self.contract.descriptions if self.related is None else self.related.descriptions

    @property
    def stages_assessed(self) -> tuple[str, ...]:
        """The stages that the mpUCC assessment is based on, in addition to the records; views are made within it."""
        return STAGES_ASSESSED if self.related is None else SPLIT_STAGES

    @property
    def synthetic_stage(self) -> str:
        """The stage whose table the synthetic side releases."""
        return "synthetic" if self.generalize_synthetic is None else "generalized_synthetic"

    def assessments_of(self, side: str) -> tuple[str, ...]:
        """Return the stages that assess the records of a side."""
        own = (name for name in (MPUCC, DISCLOSURE, REIDENTIFICATION, SEMANTIC) if SIDES[name] == side)
        worth = (worth_stage(side),) if self.assesses(UTILITY) else ()
        return (*filter(self.assesses, own), *worth)

    @property
    def stages_that_age(self) -> tuple[str, ...]:
        """The stages that become stale: the assessments, and tables that are measured without an assessment."""
        assessed = tuple(stage for side in self.sides for stage in self.assessments_of(side))
        has_records_assessed = self.anonymized is None or not {REIDENTIFICATION, SEMANTIC}.isdisjoint(assessed)
        return assessed if has_records_assessed else (*assessed, self.anonymized_stage)

    @property
    def anonymized_stage(self) -> str:
        """The stage whose table the anonymized side releases."""
        return "suppressed" if self.semantic_risk is not None and self.semantic_risk.withhold else "anonymized"

    def assesses(self, assessment: str) -> bool:
        """Whether a side has an assessment, because it is configured or the policy limits it."""
        asked = {
            MPUCC: self.synthetic,
            REIDENTIFICATION: self.reidentification or self.control_of_anonymized or None,
            SEMANTIC: self.semantic_risk,
            UTILITY: self.utility,
            DISCLOSURE: self.disclosure,
        }
        limited = any(assessment in METRICS[limit.metric].assessments for limit in self.policy.limits)
        has_side = assessment in ON_BOTH_SIDES or SIDES[assessment] in self.sides
        return has_side and (asked[assessment] is not None or limited)

    @property
    def disclosure_settings(self) -> DisclosureSettings:
        """The given settings, or the defaults, with the contract's sensitive columns and quasi-identifiers."""
        if self.related is not None:
            return self.disclosure or DisclosureSettings(max_known=KNOWN_OF_RELATED)
        given = self.disclosure or DisclosureSettings()

        def of_contract(role: str) -> tuple[str, ...]:
            own = set(self.contract.columns_with_role(role))
            return tuple(name for name in self.contract.released_columns if name in own)

        # Columns cannot be taken from the quasi-identifiers of the contract, which are tested alone.
        known = dict.fromkeys((*of_contract("quasi_identifier"), *given.quasi_identifiers))
        sensitive = given.sensitive or of_contract("sensitive")
        return replace(given, sensitive=sensitive, quasi_identifiers=tuple(known))

    @property
    def utility_settings(self) -> UtilitySettings:
        """The settings given, or the defaults."""
        return self.utility or UtilitySettings()

    @property
    def reidentification_settings(self) -> ReidentificationSettings:
        """The settings given, or the defaults."""
        return self.reidentification or ReidentificationSettings()

    @property
    def semantic_risk_settings(self) -> SemanticRiskSettings:
        """The given settings, or the defaults, with the policy's limit."""
        return (self.semantic_risk or SemanticRiskSettings()).resolve(self.policy)

    @property
    def limits_semantic_risk(self) -> bool:
        """Whether a limit of the policy, or withholding, depends on the semantic risk."""
        limited = any(limit.assessment == SEMANTIC for limit in self.policy.limits)
        return limited or self.semantic_risk_settings.withhold

    @property
    def semantic_risk_stands_on(self) -> tuple[str, ...]:
        """Stages that an assessment of semantic risk must have been made from, in addition to the table itself."""
        return () if self.contract.person is None else (self.source_of_anonymized,)

    @property
    def semantic_risk_is_asked_of(self) -> dict[str, Any]:
        """Settings that an assessment of semantic risk must have been made with, as JSON values, without scales."""
        must_be_people = self.contract.person is not None and self.limits_semantic_risk
        return {PEOPLE_WITH_SEVERAL_RECORDS: 0} if must_be_people else {}

    def semantic_scales_of(self, anonymization: Anonymization) -> dict[str, Any]:
        """Return the scales of the anonymized table, according to the hierarchies of its release, if it is released."""
        return self.semantic_risk_settings.scales_for(anonymization, self.contract, self.hierarchies)

    @property
    def hierarchies(self) -> dict[str, Hierarchy] | None:
        """The hierarchies that anonymized records are released with, if they are released."""
        return self.generalization(self.source_of_anonymized).hierarchies

    def waivers_of(self, side: str) -> Waivers:
        """Read the current waivers, without those of the release's other side."""
        files = () if self.waivers is None else read_waivers(self.waivers)
        others = {other for other in (self.whole or self).sides if other != side}
        own = tuple(each for each in files if not (isinstance(each, Waiver) and each.side in others))
        if not self.policy.required.signed_waivers:
            return Waivers(self.name, clock.today(), own)
        people = read_approvers(self.approvers) if own and self.approvers is not None else ()
        signers = tuple(each.key for each in people if each.is_one_on(clock.today()))
        return Waivers(self.name, clock.today(), own, signers)

    @property
    def undeclared(self) -> str:
        """What the declaration lacks of what the policy demands, or that its review is due; empty if it is complete."""
        missing, review = lacks(self.declaration, self.policy.required.declaration), review_of(self.declaration)
        found = [f"the declaration lacks {', '.join(missing)}, which the policy demands"] if missing else []
        found += [f"its review_by, {review}, has passed"] if review is not None and review < clock.today() else []
        return "; ".join(found)

    def signer(self) -> tuple[Signer | None, SigningEvidence | None]:
        """Read the key now, and return it with the evidence for the gate."""
        if self.signing is None:
            return None, None
        problem = ""
        try:
            signer = load_signer(self.signing)
            return signer, SigningEvidence(signer.key_id)
        except InvalidSettingError as error:
            problem = str(error).removesuffix(".")
        return None, SigningEvidence(None, problem)

    @property
    def reidentification_is_asked_of(self) -> dict[str, Any]:
        """Settings that an assessment of re-identification must have been made with, as JSON values."""
        others = self.reidentification_settings.other_releases
        withdrawn = {other.name: dict(other.withdrawn) for other in others if other.withdrawn}
        return {
            "known_to_the_policy": [list(columns) for columns in self.policy.known],
            "own_hierarchies": describe_hierarchies(self.hierarchies),
            "others_digests": [other.digest for other in others],
            "membership_control": bool(self.control_of_anonymized),
            **({"withdrawn": withdrawn} if withdrawn else {}),
        }

    def generalization(self, made_of: str) -> Generalization:
        """Return how the table of a stage is anonymized, according to contract and policy."""
        of_people = made_of != "synthetic"
        settings = self.anonymized if of_people else self.generalize_synthetic
        assert settings is not None  # noqa: S101 - called only to build that side
        return settings.resolve(self.contract, self.policy, self.contract.person if of_people else DISTINCT_RECORD)

    def key(self, stage: str) -> dg.AssetKey:
        """Return the asset key of a stage."""
        return dg.AssetKey([self.name, stage])

    def for_manifest(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        made_here = self.synthetic if isinstance(self.synthetic, Synthesis) else None
        person = {} if self.synthetic_person is None else {"person": self.synthetic_person}
        synthetic = made_here.for_manifest() if made_here else {"method": "external", **person}
        split = asdict(self.split) if isinstance(self.split, Split) else {"given": True}
        return {"split": split, "synthetic": synthetic}


def _check_owners(owners: Sequence[str]) -> None:
    """Let Dagster read each owner now, because it would later refuse one without naming the setting."""
    for owner in owners:
        try:
            dg.AssetSpec("checked", owners=[owner])
            continue
        except Exception:  # noqa: BLE001, S110 (Dagster raises several)
            pass
        raise InvalidSettingError(f"owners names {owner!r}; expected 'team:' and a name, or an email address.")
