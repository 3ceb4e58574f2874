"""What one release is configured with."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import dagster as dg

from privacy_assets.orchestration.sources import TableSource
from privacy_assets.tables.anonymize_settings import (
    AnonymizeSettings,
    Bounds,
    ClosenessSetting,
    Criterion,
    DiversitySetting,
    Method,
    Normalization,
    Output,
    diversities,
    spread,
)
from privacy_assets.tables.anonymized_table import Roles, roles_of
from privacy_assets.tables.artifact import canonical_json
from privacy_assets.tables.contract import TableContract
from privacy_assets.tables.errors import InvalidSettingError
from privacy_assets.tables.generalized_synthetic import DISTINCT_RECORD, require_cuts_that_apply
from privacy_assets.tables.hierarchy import Hierarchy
from privacy_assets.tables.lattice import read_hierarchies
from privacy_assets.tables.mpucc import MpuccSettings
from privacy_assets.tables.policy import SIDES, Policy
from privacy_assets.tables.preprocess import check_precisions
from privacy_assets.tables.split import check_split_settings
from privacy_assets.tables.synthesize import Synthesizer, check_setting, resolve_synthesizer

NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Split:
    """Divide the source by person into records the synthesizer may see and records it never sees.

    Parameters
    ----------
    train_fraction : float
        Share of the people whose records the synthesizer may see, in (0, 1).
    seed : int
        Seed of the division.
    """

    train_fraction: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        check_split_settings(self.train_fraction, self.seed)


@dataclass(frozen=True)
class GivenSplit:
    """Originals and control that are divided already.

    Parameters
    ----------
    original, control : TableFile, SqlQuery, UpstreamAsset or callable
        Records that the synthesizer has seen, and records it has not.
    """

    original: TableSource
    control: TableSource


@dataclass(frozen=True)
class Synthesis:
    """Make synthetic records here.

    Parameters
    ----------
    method : str or Synthesizer
        ``"gaussian_copula"``, ``"cart"`` or an object with the Synthesizer protocol.
    n_records : int, optional
        Number of records; by default as many as there are originals.
    seed : int
        Seed of fit and sample.
    settings : mapping
        Settings of an embedded method.
    """

    method: str | Synthesizer = "gaussian_copula"
    n_records: int | None = None
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.n_records is not None:
            check_setting("Synthesis", "n_records", self.n_records, at_least=1)
        check_setting("Synthesis", "seed", self.seed, at_least=0)
        synthesizer = resolve_synthesizer(self.method, self.settings)
        try:
            canonical_json(dict(synthesizer.settings))
        except (TypeError, ValueError):
            pass
        else:
            return
        raise InvalidSettingError(
            f"The settings of the synthesizer {synthesizer.name!r} cannot be written to the manifest. Expected plain "
            "JSON values: text, numbers that are finite, booleans, lists and mappings."
        )

    def for_manifest(self) -> dict[str, Any]:
        """Return method, seed and settings in use as JSON values."""
        synthesizer = resolve_synthesizer(self.method, self.settings)
        return {
            "method": synthesizer.name,
            "n_records": self.n_records,
            "seed": self.seed,
            "settings": dict(synthesizer.settings),
        }


@dataclass(frozen=True)
class ExternalSynthetic:
    """Synthetic records that were made elsewhere.

    Parameters
    ----------
    source : TableFile, SqlQuery, UpstreamAsset or callable
        Where they come from.
    control_was_withheld : bool
        Say True if whoever made them had exactly the records that a `Split` with this fraction and seed calls original.
        If they also saw the control, comparing with it tells nothing: leakage shows on both sides and cancels out.
    """

    source: TableSource
    control_was_withheld: bool = False


@dataclass(frozen=True)
class AssessmentSettings(MpuccSettings):
    """Parameters of `assess_mpuccs`, with the same meaning and defaults.

    Precisions that are None are those that the contract declares, else those found in the originals.
    """

    numeric_precision: int | Mapping[str, int] | None = None
    datetime_precision: str | Mapping[str, str] | None = None
    deduplicate: bool = True


@dataclass(frozen=True)
class AnonymizationSettings:
    """Parameters of `anonymize`, with the same meaning and defaults; the roles of the columns come from the contract.

    Parameters
    ----------
    k : int, optional
        Fewest people of a class (records, where the contract names no person); by default what the policy asks for as
        ``smallest_class``.
    l_diversity, t_closeness
        By default what the policy asks for, if it does.
    hierarchies : mapping of Hierarchy, or of the settings of one, by column, optional
        For the method "lattice"; added to those that the contract declares.
    method, criterion, relaxed, normalize, max_suppression, output, bounds, seed
        See `anonymize`.
    pictured : tuple of two str, optional
        Quasi-identifiers with numbers or datetimes whose classes are drawn as rectangles; by default the first two.
    """

    k: int | None = None
    method: Method = "mondrian"
    criterion: Criterion = "gain"
    relaxed: bool = False
    normalize: Normalization = "rank"
    l_diversity: DiversitySetting = None
    t_closeness: ClosenessSetting = None
    max_suppression: float = 0.0
    output: Output = "labels"
    bounds: Bounds = "tight"
    hierarchies: Mapping[str, Hierarchy | Mapping[str, Any]] | None = None
    seed: int = 0
    pictured: tuple[str, str] | None = None

    def arguments(self, contract: TableContract, policy: Policy, subject: str | None) -> dict[str, Any]:
        """Return the arguments of `anonymize` for a table of this contract.

        Raises
        ------
        InvalidSettingError
            A setting is out of its range, no k is asked for, or the contract has no quasi-identifier.
        """
        roles = roles_of(contract, subject)
        asked = {
            "k": self.k if self.k is not None else _asked_by_policy(policy, "smallest_class"),
            "l_diversity": self.l_diversity,
            "t_closeness": self.t_closeness,
        }
        if asked["k"] is None:
            raise InvalidSettingError(
                "No k is asked for: neither the anonymization sets k, nor the policy limits smallest_class."
            )
        if roles.sensitive and self.l_diversity is None:
            asked["l_diversity"] = _asked_by_policy(policy, "l_diversity")
        closeness = policy.limit_on("t_closeness")
        if roles.sensitive and self.t_closeness is None and closeness is not None:
            asked["t_closeness"] = closeness.value
        own = ("method", "criterion", "relaxed", "normalize", "max_suppression", "output", "bounds", "seed")
        arguments = {name: getattr(self, name) for name in own} | asked | roles._asdict()
        self._check_pictured(contract, roles)
        self._check(arguments, roles)
        if self.method == "lattice":
            arguments["hierarchies"] = self._hierarchies(contract, roles)
        elif self.hierarchies:
            raise InvalidSettingError(
                "The anonymization has hierarchies, but its method is 'mondrian', which makes classes of its own. "
                "Expected method='lattice'."
            )
        return arguments

    def _check(self, arguments: Mapping[str, Any], roles: Roles) -> None:
        if not roles.quasi_identifiers:
            raise InvalidSettingError(
                "The contract has no quasi-identifier, so there is nothing to generalize. Give the columns that an "
                "outsider may know of somebody the role 'quasi_identifier'."
            )
        spread_out = {
            "l_diversity": diversities(arguments["l_diversity"], roles.sensitive),
            "t_closeness": spread(arguments["t_closeness"], roles.sensitive, "t_closeness"),
        }
        AnonymizeSettings(**{**arguments, **spread_out, "direct_identifiers": ()}).check()

    def _check_pictured(self, contract: TableContract, roles: Roles) -> None:
        if self.pictured is None:
            return
        kinds = {each["column"]: str(each["type"]) for each in contract.describe()}
        in_order = [
            name for name in roles.quasi_identifiers if kinds[name].lower().startswith(("int", "float", "datetime"))
        ]
        if len(set(self.pictured)) != 2 or len(self.pictured) != 2 or not set(self.pictured) <= set(in_order):
            raise InvalidSettingError(
                f"The anonymization pictures {list(self.pictured)}; expected two quasi-identifiers with numbers or "
                f"datetimes. There are {in_order}."
            )

    def _hierarchies(self, contract: TableContract, roles: Roles) -> dict[str, Hierarchy]:
        declared = contract.metadata("hierarchy")
        return read_hierarchies(
            {name: value for name, value in declared.items() if name in roles.quasi_identifiers}
            | dict(self.hierarchies or {}),
            roles.quasi_identifiers,
        )


def _asked_by_policy(policy: Policy, metric: str) -> int | None:
    """Return the smallest whole number that a limit from below admits."""
    limit = policy.limit_on(metric)
    if limit is None or limit.direction not in ("at_least", "above"):
        return None
    return math.ceil(limit.value) if limit.direction == "at_least" else math.floor(limit.value) + 1


@dataclass(frozen=True)
class ReleaseSettings:
    """Everything one release is configured with; see `build_release_definitions`."""

    name: str
    contract: TableContract
    policy: Policy
    source: TableSource | None
    split: Split | GivenSplit
    synthetic: Synthesis | ExternalSynthetic | None
    assessment: AssessmentSettings
    formats: tuple[str, ...]
    anonymized: AnonymizationSettings | None = None
    generalize_synthetic: AnonymizationSettings | None = None
    partitions_def: dg.PartitionsDefinition[Any] | None = None
    owners: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not NAME_PATTERN.fullmatch(self.name):
            raise InvalidSettingError(
                f"The release is named {self.name!r}; expected letters, digits and underscores, not starting with a "
                "digit. It becomes the prefix of the asset keys and the name of the group."
            )
        for side in self.sides:
            if not any(limit.blocks for limit in self.policy.limits_of(side)):
                example = "privacy_risk_score" if side == "synthetic" else "smallest_class"
                raise InvalidSettingError(
                    f"The release {self.name!r} lets {side} records out, on which its policy has no limit of severity "
                    f"'error', so it would admit everything. Add one, for example on {example!r}."
                )
        self._check_synthetic_side()
        self._check_anonymized_side()

    def _check_synthetic_side(self) -> None:
        if self.synthetic is None:
            if self.generalize_synthetic is not None:
                raise InvalidSettingError(
                    f"The release {self.name!r} generalizes synthetic records, but makes none. Say how: synthetic=..."
                )
            return
        if (self.source is None) != isinstance(self.split, GivenSplit):
            raise InvalidSettingError(
                f"The release {self.name!r} needs either a source, or a GivenSplit with original and control; it has "
                f"{'both' if self.source is not None else 'neither'}."
            )
        external = isinstance(self.synthetic, ExternalSynthetic) and not self.synthetic.control_was_withheld
        blocked_by_leakage = any(limit.needs_control and limit.blocks for limit in self.policy.limits)
        if external and isinstance(self.split, Split) and blocked_by_leakage:
            raise InvalidSettingError(
                f"The release {self.name!r} brings synthetic records in, divides the source itself, and limits "
                "leakage. That is measured against people whom the synthesizer has not seen. Give original and control "
                "as they were for it (GivenSplit), or say ExternalSynthetic(..., control_was_withheld=True)."
            )
        self.assessment.check(len(self.contract.released_columns))
        check_precisions(self.numeric_precision, self.datetime_precision, self.contract.released_columns)
        if self.generalize_synthetic is not None:
            require_cuts_that_apply(vars(self.generalize_synthetic))
            self.arguments_of(self.generalize_synthetic, "synthetic")

    def _check_anonymized_side(self) -> None:
        if self.anonymized is None:
            return
        if self.source is None:
            raise InvalidSettingError(
                f"The release {self.name!r} has an anonymized side, which is made of the source; it has none."
            )
        self.arguments_of(self.anonymized, "source")

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides that are released: ``"synthetic"``, ``"anonymized"``, or both."""
        asked = {"synthetic": self.synthetic is not None, "anonymized": self.anonymized is not None}
        return tuple(side for side in dict.fromkeys(SIDES.values()) if asked[side])

    @property
    def synthetic_stage(self) -> str:
        """The stage whose table the synthetic side releases."""
        return "synthetic" if self.generalize_synthetic is None else "generalized_synthetic"

    def arguments_of(self, settings: AnonymizationSettings, made_of: str) -> dict[str, Any]:
        """Return the arguments of `anonymize` for the table of a stage."""
        subject = self.contract.person if made_of == "source" else DISTINCT_RECORD
        return settings.arguments(self.contract, self.policy, subject)

    def key(self, stage: str) -> dg.AssetKey:
        """Return the asset key of a stage."""
        return dg.AssetKey([self.name, stage])

    @property
    def numeric_precision(self) -> int | Mapping[str, int] | None:
        """Decimals as configured, else as the contract declares them."""
        declared = {name: value for name, value in self._declared_precisions.items() if isinstance(value, int)}
        return self.assessment.numeric_precision if self.assessment.numeric_precision is not None else declared or None

    @property
    def datetime_precision(self) -> str | Mapping[str, str] | None:
        """Datetime units as configured, else as the contract declares them."""
        declared = {name: value for name, value in self._declared_precisions.items() if isinstance(value, str)}
        return self.assessment.datetime_precision or declared or None

    @property
    def _declared_precisions(self) -> dict[str, int | str]:
        """What the contract declares of the columns that are assessed as values, not as labels."""
        labels = set() if self.generalize_synthetic is None else {*self.contract.columns_with_role("quasi_identifier")}
        return {name: value for name, value in self.contract.precisions.items() if name not in labels}

    def for_manifest(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        made_here = self.synthetic if isinstance(self.synthetic, Synthesis) else None
        synthetic = made_here.for_manifest() if made_here else {"method": "external"}
        split = asdict(self.split) if isinstance(self.split, Split) else {"given": True}
        return {"split": split, "synthetic": synthetic}
