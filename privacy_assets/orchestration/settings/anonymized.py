"""What the anonymized side of a release is configured with."""

import hashlib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from privacy_assets.anonymization.anonymized_table import Roles, roles_of
from privacy_assets.anonymization.kernels.models import TOLERANCE
from privacy_assets.anonymization.lattice import read_hierarchies
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.anonymization.settings import (
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
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.columns.scales import (
    Binary,
    ConceptualScale,
    Generalized,
    Ordinal,
    Windows,
    read_scale,
)
from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.sources import TableSource
from privacy_assets.reidentification.assess import DEFAULT_MAX_KNOWN
from privacy_assets.reidentification.other_releases import check_quasi_identifiers
from privacy_assets.release.policy import Policy
from privacy_assets.semantic_risk.formal_context import released_scales
from privacy_assets.semantic_risk.settings import DEFAULT_MIN_SUPPORT, SemanticSettings, smallest_acceptable
from privacy_assets.storage.artifact import canonical_json

SMALLEST_SECRET = 2**32
NAME_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*"
LONGEST_REASON = 2_000


@dataclass(frozen=True)
class AnonymizationSettings:
    """Parameters of `anonymize`, with the same meaning and defaults; the roles of the columns come from the contract.

    Parameters
    ----------
    k : int, optional
        Fewest people of a class (records, where the contract names no person); by default what the policy asks for as
        ``smallest_class``, or else as ``max_reidentification_probability``.
    l_diversity, t_closeness
        By default what the policy's blocking limits ask for, if they do.
    hierarchies : mapping of Hierarchy, or of the settings of one, by column, optional
        For the method "lattice"; added to those that the contract declares.
    method, criterion, relaxed, normalize, max_suppression, output, bounds
        See `anonymize`.
    seed : int, optional
        By default 0, and drawn anew, in private, for `relaxed`: who knows it can undo what separates ties.
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
    seed: int | None = None
    pictured: tuple[str, str] | None = None

    def arguments(self, contract: TableContract, policy: Policy, subject: str | None) -> dict[str, Any]:
        """Return the arguments of `anonymize` for a table of this contract; the seed is None if it is to be drawn.

        Raises
        ------
        InvalidSettingError
            A setting is out of its range, no k is asked for, or the contract has no quasi-identifier.
        """
        roles = roles_of(contract, subject)
        asked = {
            "k": self.k if self.k is not None else _smallest_class(policy),
            "l_diversity": self.l_diversity,
            "t_closeness": self.t_closeness,
        }
        if asked["k"] is None:
            raise InvalidSettingError(
                "No k is asked for: neither the anonymization sets k, nor the policy limits smallest_class or "
                "max_reidentification_probability."
            )
        diversity = policy.limit_on("l_diversity")
        # What only warns must not keep records from being anonymized where it cannot be reached.
        if roles.sensitive and self.l_diversity is None and diversity is not None and diversity.severity == "error":
            asked["l_diversity"] = _asked_by_policy(policy, "l_diversity")
        if roles.sensitive and self.t_closeness is None:
            asked["t_closeness"] = _largest_distance(policy)
        own = ("method", "criterion", "relaxed", "normalize", "max_suppression", "output", "bounds", "seed")
        arguments = {name: getattr(self, name) for name in own} | asked | roles._asdict()
        self._check_pictured(contract, roles)
        if self.relaxed and self.seed is not None and self.seed < SMALLEST_SECRET:
            raise InvalidSettingError(
                f"The anonymization is relaxed with a seed below {SMALLEST_SECRET}, which can be guessed, and with it "
                "what separates ties. Leave the seed out: one is drawn in private."
            )
        arguments["seed"] = self.seed if self.seed is not None else None if self.relaxed else 0
        self._check(arguments | {"seed": self.seed or 0}, roles)
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
        if self.method != "mondrian" or self.output != "labels":
            raise InvalidSettingError(
                f"The anonymization pictures {list(self.pictured)}, but has the method {self.method!r} and the output "
                f"{self.output!r}. Expected 'mondrian' and 'labels', whose classes are intervals. Leave `pictured` out."
            )
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


def _smallest_class(policy: Policy) -> int | None:
    k = _asked_by_policy(policy, "smallest_class")
    limit = policy.limit_on("max_reidentification_probability")
    if k is not None or limit is None or limit.value <= 0:
        return k
    k = smallest_acceptable(limit.value)
    return k if limit.holds_for(1 / k) else k + 1


def _asked_by_policy(policy: Policy, metric: str) -> int | None:
    """Return the smallest whole number that a limit from below admits."""
    limit = policy.limit_on(metric)
    if limit is None or limit.direction not in ("at_least", "above"):
        return None
    return math.ceil(limit.value) if limit.direction == "at_least" else math.floor(limit.value) + 1


def _largest_distance(policy: Policy) -> float | None:
    """Return the largest t that a blocking limit admits; a limit "below" admits less than what holds up to rounding."""
    limit = policy.limit_on("t_closeness")
    if limit is None or limit.severity != "error":
        return None
    return limit.value if limit.direction == "at_most" else max(limit.value - 2 * TOLERANCE, 0.0)


@dataclass(frozen=True)
class OtherReleaseSettings:
    """An earlier or neighbouring release of the same people, which an attacker may hold besides; give one place.

    Parameters
    ----------
    name : str
        Letters, digits and underscores; for messages and asset keys.
    key : str
        Column of both released tables that says which records belong together, such as a pseudonym.
    release : str, optional
        Name of another release of this project: its ``anonymized`` asset, and every table that it ever published.
    directory : str, optional
        Directory of an anonymized release that was published; its manifest says how the columns were masked.
    table, model : source and ReleaseModel, optional
        A table that was anonymized elsewhere, and how.
    quasi_identifiers : sequence of str, optional
        Its columns that an attacker may know; by default those that it was anonymized by.
    hierarchies : mapping of Hierarchy by column, optional
        Those that its model names.
    withdrawn : mapping of str to str, optional
        Tables that the release of this project published and that do not count, because nobody holds them any more or
        because they are of records that have changed since: by fingerprint (at least its first 12 digits), why and who
        decided. They are not assessed. The manifest shows what is said here.
    """

    name: str
    key: str
    release: str | None = None
    directory: str | None = None
    table: TableSource | None = None
    model: ReleaseModel | None = None
    quasi_identifiers: Sequence[str] | None = None
    hierarchies: Mapping[str, Hierarchy] | None = None
    withdrawn: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        places = [self.release is not None, self.directory is not None, self.table is not None]
        if sum(places) != 1 or (self.table is None) != (self.model is None):
            raise InvalidSettingError(
                f"The other release {self.name!r} needs one place: release, directory, or a table with its model."
            )
        if not re.fullmatch(NAME_PATTERN, self.name):
            raise InvalidSettingError(
                f"The other release is named {self.name!r}; expected letters, digits and underscores, not starting "
                "with a digit."
            )
        check_quasi_identifiers(self.name, self.quasi_identifiers)
        self._check_withdrawn()

    def _check_withdrawn(self) -> None:
        if self.withdrawn and self.release is None:
            raise InvalidSettingError(
                f"The other release {self.name!r} says what was withdrawn, but is not a release of this project. "
                "Expected `withdrawn` together with `release`; leave other tables out."
            )
        wrong = [
            number
            for number, (content, reason) in enumerate(self.withdrawn.items(), start=1)
            if not (isinstance(content, str) and re.fullmatch("[0-9a-f]{12,64}", content))
            or not (isinstance(reason, str) and 0 < len(reason.strip()) <= LONGEST_REASON)
        ]
        if wrong:
            raise InvalidSettingError(
                f"Entries {wrong} of `withdrawn` of the other release {self.name!r} cannot be used. Expected a "
                f"fingerprint, or its first 12 digits at least, with a text of 1 to {LONGEST_REASON:,} characters that "
                "says why, and who decided."
            )

    @property
    def stage(self) -> str:
        """What the gate calls it."""
        return f"other_{self.name}"

    @property
    def published_stage(self) -> str:
        """What the names of the tables that it published begin with, for the gate."""
        return f"{self.stage}_published"

    def counts(self, content: str) -> bool:
        """Whether a published table counts, by its fingerprint: nobody said that it was withdrawn."""
        return not any(content.startswith(withdrawn) for withdrawn in self.withdrawn)

    @property
    def digest(self) -> str:
        """Tell whether it is the same one: its place, how it was masked, and what an attacker knows of it."""
        place = [self.release, self.directory, _described_source(self.table)]
        names = None if self.quasi_identifiers is None else list(self.quasi_identifiers)
        parts = [
            place,
            None if self.model is None else self.model.to_json(),
            names,
            describe_hierarchies(self.hierarchies),
            *([dict(self.withdrawn)] if self.withdrawn else []),
        ]
        return hashlib.sha256(canonical_json([self.name, self.key, *parts]).encode()).hexdigest()

    def asset_keys(self, release_name: str) -> dict[str, dg.AssetKey]:
        """Return the keys of the assets that hold it, and what it was made of, by what the gate calls them."""
        if self.release is None:
            return {self.stage: dg.AssetKey([release_name, self.stage])}
        return {
            self.stage: dg.AssetKey([self.release, "anonymized"]),
            f"{self.stage}_source": dg.AssetKey([self.release, "source"]),
        }


def _described_source(source: TableSource | None) -> str:
    """Describe a source by what every process that loads the definitions says of it."""
    if callable(source):
        return f"{getattr(source, '__module__', '')}:{getattr(source, '__qualname__', type(source).__name__)}"
    return repr(source)


def describe_hierarchies(hierarchies: Mapping[str, Hierarchy] | None) -> dict[str, Any]:
    """Describe hierarchies by their rules, or by a digest of their values."""
    return {name: hierarchy.described() for name, hierarchy in sorted((hierarchies or {}).items())}


@dataclass(frozen=True)
class ReidentificationSettings:
    """Parameters of `assess_reidentification`; what an attacker knows is the policy's to say.

    Parameters
    ----------
    max_known : int
        All sets of up to so many quasi-identifiers are assessed for the curve.
    other_releases : sequence of OtherReleaseSettings
        Releases that an attacker holds as well.
    """

    max_known: int = DEFAULT_MAX_KNOWN
    other_releases: tuple[OtherReleaseSettings, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "other_releases", tuple(self.other_releases))
        names = [other.name for other in self.other_releases]
        # What belongs to another release of the project has names that are made of its own.
        derived = [f"{other.name}_source" for other in self.other_releases if other.release]
        published = tuple(f"{other.name}_published" for other in self.other_releases if other.release)
        if len({*names, *derived}) < len(names) + len(derived) or any(name.startswith(published) for name in names):
            raise InvalidSettingError(
                f"The other releases are named {names}; expected a name of its own for each, and none that is another "
                "with '_source' or '_published' behind it."
            )


@dataclass(frozen=True)
class SemanticRiskSettings:
    """Parameters of `assess_semantic_risk`, which counts records: with a limit, or `withhold`, nobody may have several.

    Parameters
    ----------
    scales : mapping of scale by column, optional
        Added to those that the contract declares. By default generalized quasi-identifiers have the attribute of every
        label that contains theirs, and nodes of a hierarchy those of all nodes above them.
    three_way : pair of float, optional
        Records up to the first risk are labelled "keep", from the second on "discard".
    semantic_risk : bool
        Whether to search the semantic risk beside the basic one; where rows include very many others that is refused.
    advice : bool
        Whether to tell what forgetting each column, and the columns of risk chains, would do.
    min_support : int
        Fewest records of the implications that the advice counts.
    withhold : bool
        Whether to leave out of the release the records that no acceptable subset can hold: the asset ``suppressed``.
    risk_limit : float, optional
        Largest basic semantic risk of a record; by default the policy's limit on ``max_basic_semantic_risk``,
        and for a limit ``below`` the next 1 / n that is.
    of_source : bool
        Whether to assess the source as well, for comparison.
    """

    scales: Mapping[str, Any] | None = None
    three_way: tuple[float, float] | None = None
    semantic_risk: bool = False
    advice: bool = True
    min_support: int = DEFAULT_MIN_SUPPORT
    withhold: bool = False
    risk_limit: float | None = None
    of_source: bool = False

    def limit(self, policy: Policy) -> float | None:
        """Return the largest risk of a record that is accepted: below a limit, the next 1 / n that is."""
        asked = policy.limit_on("max_basic_semantic_risk")
        if self.risk_limit is not None or asked is None:
            return self.risk_limit
        if asked.holds_for(asked.value):
            return asked.value
        n_records = smallest_acceptable(asked.value)
        return 1 / n_records if asked.holds_for(1 / n_records) else 1 / (n_records + 1)

    def check(self, contract: TableContract, policy: Policy, labelled: Collection[str] = ()) -> None:
        """Refuse settings that cannot work; ``labelled`` are the columns that are released as nodes of a hierarchy.

        Raises
        ------
        InvalidSettingError
            Unknown scales or columns, risks out of range, or nothing to withhold by.
        """
        SemanticSettings(self.limit(policy), self.three_way, self.semantic_risk, self.advice, self.min_support).check()
        for column, scale in self.declared_scales(contract).items():
            if column not in contract.released_columns:
                raise InvalidSettingError(
                    f"There is a scale for {column!r}, which is not released. The released columns are "
                    f"{list(contract.released_columns)}."
                )
            self._check_scale(column, read_scale(scale), column in labelled)
        if self.withhold and self.limit(policy) is None:
            raise InvalidSettingError(
                "Records at risk are to be withheld, but neither risk_limit nor a limit on max_basic_semantic_risk "
                "says from which risk on."
            )

    def _check_scale(self, column: str, scale: ConceptualScale, is_labelled: bool) -> None:
        """Refuse scales that no table of the release can have."""
        if isinstance(scale, Generalized) and self.of_source:
            raise InvalidSettingError(
                f"Column {column!r} has a generalized scale, and the source, in which nothing is generalized, is to be "
                "assessed as well. Leave the scale out, which is the default of the released table, or of_source."
            )
        if is_labelled and isinstance(scale, Ordinal | Windows | Binary | Generalized):
            raise InvalidSettingError(
                f"Column {column!r} has a scale of the kind {scale.kind}, but method='lattice' releases it as nodes of "
                "its hierarchy, which are text. Expected a nominal or hierarchy scale, or none: by default nodes have "
                "the attributes of all nodes above them."
            )

    def declared_scales(self, contract: TableContract) -> dict[str, Any]:
        """Return the scales of the contract and those given here."""
        return contract.metadata("scale") | dict(self.scales or {})

    def scales_for(
        self, anonymization: Anonymization, contract: TableContract, hierarchies: Mapping[str, Hierarchy] | None = None
    ) -> dict[str, Any]:
        """Return the scale of each column: as declared, and for quasi-identifiers what fits their labels."""
        quasi_identifiers = anonymization.settings["quasi_identifiers"]
        by_label = released_scales(anonymization.table, quasi_identifiers, anonymization.model, hierarchies)
        return by_label | self.declared_scales(contract)
