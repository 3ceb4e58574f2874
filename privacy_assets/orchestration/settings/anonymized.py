"""The settings of the anonymized side of a release."""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import dagster as dg

from privacy_assets.anonymization.anonymized_table import Roles, roles_of
from privacy_assets.anonymization.kernels.models import TOLERANCE
from privacy_assets.anonymization.lattice import read_hierarchies
from privacy_assets.anonymization.settings import (
    AnonymizeSettings,
    ClosenessSetting,
    DiversitySetting,
    LDiversity,
    MethodSettings,
    diversities,
    spread,
)
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.sources import TableSource, from_root
from privacy_assets.reidentification.assess import DEFAULT_CURVE_SAMPLE, DEFAULT_MAX_KNOWN
from privacy_assets.reidentification.masked_columns import refuse_weighing
from privacy_assets.reidentification.other_releases import check_quasi_identifiers
from privacy_assets.release.policy import Policy
from privacy_assets.semantic_risk.settings import smallest_acceptable
from privacy_assets.setting_checks import (
    FEWEST_REASON_WORDS,
    REQUIRED,
    described,
    has_words,
    is_integer,
    local_path,
    one_of,
    require,
    setting,
)
from privacy_assets.storage.artifact import canonical_json

SMALLEST_SECRET = 2**32
Origin = Literal["source", "original"]
NAME_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*"
LONGEST_REASON = 2_000
MEMBERSHIP_CONTROL = "membership_control"
"""The stage of the people who are not in the source."""


@dataclass(frozen=True)
class Generalization:
    """An anonymization whose remaining settings contract and policy have determined.

    The hierarchies are those of all quasi-identifiers for lattice, and of those cut along one for mondrian. With
    ``draws_seed``, the seed is drawn at the time and never shown, because it would show how ties were separated.
    """

    settings: AnonymizeSettings
    hierarchies: dict[str, Hierarchy] | None
    draws_seed: bool


@described
@dataclass(frozen=True, kw_only=True)
class AnonymizationSettings(MethodSettings):
    """How records are anonymized (`anonymize`); the roles of the columns come from the contract."""

    k: int | None = setting(None, "Fewest people in a class; by default as the policy requires.", 5, at_least=1)
    l_diversity: DiversitySetting = setting(
        None,
        "Least diversity of every sensitive column in a class: a number, or least, kind and c; by default as the "
        "policy's blocking limit requires.",
        2,
        at_least=1,
    )
    l_diversity_by_column: Mapping[str, LDiversity] | None = setting(
        None, "Least diversity by sensitive column.", {"diagnosis": {"least": 3, "kind": "entropy"}}
    )
    t_closeness: ClosenessSetting = setting(
        None,
        "Largest distance of a class from the table, for all sensitive columns or by column; by default as the "
        "policy's blocking limit requires.",
        0.2,
        at_least=0,
        at_most=1,
    )
    hierarchies: Mapping[str, Hierarchy | Mapping[str, Any]] | None = setting(
        None,
        "By column, one of intervals, prefixes, dates, tree, arx_csv. Lattice uses them in addition to those of the "
        "contract. Mondrian cuts these columns along their hierarchies, and ignores those of the contract.",
        {"age": {"intervals": [5, 10, 20]}},
    )
    seed: int | None = setting(
        None, "Seed of the order of released records; by default 0, and drawn in private if relaxed.", 1, at_least=0
    )
    membership_control: TableSource | None = setting(
        None,
        "Records of people of the same population who are certainly not in the source, in its columns. They say how "
        "much better those in the source are found; by default that is estimated as a range.",
        {"file": "data/held_out.parquet"},
    )
    of: Origin = setting(
        "source",
        "What is anonymized: the source, or the originals of the split (original). Then the control of the split takes "
        "the place of membership_control.",
        "original",
    )
    pictured: tuple[str, str] | None = setting(
        None, "Two columns with numbers or datetimes, whose classes are drawn as rectangles.", ["age", "income"]
    )

    def check(self) -> None:
        """Refuse settings that are wrong for every contract and policy."""
        self._check_of()
        AnonymizeSettings(
            **self.method_settings,
            quasi_identifiers=("quasi-identifiers of the contract",),
            k=1 if self.k is None else self.k,
            l_diversity=diversities(self._diversity, _named_by(self._diversity)),
            t_closeness=spread(self.t_closeness, _named_by(self.t_closeness), "t_closeness"),
            seed=self.seed or 0,
        ).check()
        if isinstance(self.hierarchies, Mapping):
            read_hierarchies(self.hierarchies, tuple(self.hierarchies))

    def _check_of(self) -> None:
        require(self.of in get_args(Origin), "of", self.of, one_of(get_args(Origin)), "Nothing was anonymized.")
        if self.of == "original" and self.membership_control is not None:
            raise InvalidSettingError(
                "The originals of the split are anonymized and compared with its control, but there is also a "
                "membership_control. Leave membership_control out, or `of: original`."
            )

    @property
    def _diversity(self) -> DiversitySetting:
        if self.l_diversity is not None and self.l_diversity_by_column is not None:
            raise InvalidSettingError("Give either l_diversity or l_diversity_by_column, not both.")
        return self.l_diversity if self.l_diversity_by_column is None else self.l_diversity_by_column

    def resolve(self, contract: TableContract, policy: Policy, subject: str | None) -> Generalization:
        """Return the anonymization of a table with this contract; refuse settings that do not fit it."""
        self._check_of()
        roles = roles_of(contract, subject)
        k = self.k if self.k is not None else _smallest_class(policy)
        if k is None:
            raise InvalidSettingError(
                "There is no k: neither the anonymization sets k, nor the policy limits smallest_class or "
                "max_reidentification_probability."
            )
        self._check_pictured(contract, roles)
        if self.relaxed and self.seed is not None and self.seed < SMALLEST_SECRET:
            raise InvalidSettingError(
                f"The anonymization is relaxed with a seed below {SMALLEST_SECRET}, which can be guessed, and which "
                "shows how ties are separated. Leave the seed out: one is drawn in private."
            )
        if not roles.quasi_identifiers:
            raise InvalidSettingError(
                "The contract has no quasi-identifier, so there is nothing to generalize. Give the columns that an "
                "outsider may know about somebody the role 'quasi_identifier'."
            )
        diversity, closeness = self._diversity, self.t_closeness
        if roles.sensitive:
            diversity = _asked_diversity(policy) if diversity is None else diversity
            closeness = _largest_distance(policy) if closeness is None else closeness
        settings = AnonymizeSettings(
            **self.method_settings,
            **roles._asdict(),
            k=k,
            l_diversity=diversities(diversity, roles.sensitive),
            t_closeness=spread(closeness, roles.sensitive, "t_closeness"),
            seed=self.seed or 0,
        )
        settings.check()
        return Generalization(settings, self._hierarchies(contract, roles), self.relaxed and self.seed is None)

    def _check_pictured(self, contract: TableContract, roles: Roles) -> None:
        if self.pictured is None:
            return
        kinds = {each["column"]: str(each["type"]) for each in contract.describe()}
        in_order = [
            name
            for name in roles.quasi_identifiers
            if kinds[name].lower().startswith(("int", "float", "datetime")) and name not in (self.hierarchies or {})
        ]
        if self.method != "mondrian" or self.output != "labels":
            raise InvalidSettingError(
                f"The anonymization pictures {list(self.pictured)}, but has the method {self.method!r} and the output "
                f"{self.output!r}. Expected 'mondrian' and 'labels', whose classes are intervals. Leave `pictured` out."
            )
        if len(set(self.pictured)) != 2 or len(self.pictured) != 2 or not set(self.pictured) <= set(in_order):
            raise InvalidSettingError(
                f"The anonymization pictures {list(self.pictured)}; expected two quasi-identifiers with numbers or "
                f"datetimes and without a hierarchy. There are {in_order}."
            )

    def _hierarchies(self, contract: TableContract, roles: Roles) -> dict[str, Hierarchy] | None:
        if self.method != "lattice":
            if not self.hierarchies:
                return None
            return read_hierarchies(self.hierarchies, roles.quasi_identifiers, of_all=False)
        declared = contract.metadata("hierarchy")
        return read_hierarchies(
            {name: value for name, value in declared.items() if name in roles.quasi_identifiers}
            | dict(self.hierarchies or {}),
            roles.quasi_identifiers,
        )


def _named_by(setting: Any) -> tuple[str, ...]:
    """Return the columns that a setting names, or a phrase for all sensitive columns."""
    return tuple(setting) if isinstance(setting, Mapping) else ("every sensitive column",)


def _smallest_class(policy: Policy) -> int | None:
    k = _asked_by_policy(policy, "smallest_class")
    limit = policy.limit_on("max_reidentification_probability")
    if k is not None or limit is None or limit.value <= 0:
        return k
    k = smallest_acceptable(limit.value)
    return k if limit.holds_for(1 / k) else k + 1


def _asked_by_policy(policy: Policy, metric: str) -> int | None:
    """Return the smallest whole number that a lower limit admits."""
    limit = policy.limit_on(metric)
    if limit is None or limit.direction not in ("at_least", "above"):
        return None
    return math.ceil(limit.value) if limit.direction == "at_least" else math.floor(limit.value) + 1


def _asked_diversity(policy: Policy) -> int | None:
    """Return the l that a blocking limit requires; a warning must not prevent anonymization."""
    limit = policy.limit_on("l_diversity")
    return _asked_by_policy(policy, "l_diversity") if limit is not None and limit.severity == "error" else None


def _largest_distance(policy: Policy) -> float | None:
    """Return the largest t that a blocking limit admits; for a limit "below", allow for rounding errors."""
    limit = policy.limit_on("t_closeness")
    if limit is None or limit.severity != "error":
        return None
    return limit.value if limit.direction == "at_most" else max(limit.value - 2 * TOLERANCE, 0.0)


@described
@dataclass(frozen=True)
class OtherReleaseSettings:
    """Another release of the same people, which an attacker may have: give one of release, directory and table."""

    name: str = setting(REQUIRED, "Letters, digits and underscores; for messages and asset keys.", "last_year")
    key: str = setting(REQUIRED, "Column of both released tables that links their records.", "pseudonym")
    release: str | None = setting(
        None, "Name of another release of this project; all tables that it has ever published count.", "people_north"
    )
    directory: str | None = setting(
        None,
        "Directory of an anonymized release that was published; relative to the root of the project.",
        "releases/people/anonymized/latest",
    )
    table: TableSource | None = setting(None, "A table that was anonymized elsewhere.", {"file": "data/published.csv"})
    model: ReleaseModel | None = setting(
        None,
        "How each column of the table was masked: kind (exact, label, interval, value_set, mapping, suppressed, "
        "bounded_noise, rank_window, similar_text, microaggregated) and the mask's own settings.",
        {"age": {"kind": "label", "column": "age"}},
    )
    quasi_identifiers: Sequence[str] | None = setting(
        None, "Columns that an attacker may know; by default those that the table was anonymized by.", ["age", "sex"]
    )
    hierarchies: Mapping[str, Hierarchy] | None = setting(
        None, "Hierarchies that its model names.", {"age": {"intervals": [5, 10]}}
    )
    withdrawn: Mapping[str, str] = setting(
        dict,
        "Tables that a release of this project published and that do not count, because nobody has them any more or "
        "their records have changed: by fingerprint (at least its first 12 digits), the reason and who decided. They "
        "are not assessed; the manifest shows the reason.",
        {"0123456789ab": "Deleted by the only recipient, letter of 2 May; A. Lovelace"},
    )

    def __post_init__(self) -> None:
        places = [self.release is not None, self.directory is not None, self.table is not None]
        if sum(places) != 1 or (self.table is None) != (self.model is None):
            raise InvalidSettingError(
                f"The other release {self.name!r} needs one place: release, directory, or a table with its model."
            )
        local_path(self.directory or "", "the directory of another release")
        if not re.fullmatch(NAME_PATTERN, self.name):
            raise InvalidSettingError(
                f"The other release is named {self.name!r}; expected letters, digits and underscores, not starting "
                "with a digit."
            )
        if isinstance(self.model, ReleaseModel):
            refuse_weighing(self.model)
        check_quasi_identifiers(self.name, self.quasi_identifiers)
        self._check_withdrawn()

    def _check_withdrawn(self) -> None:
        if self.withdrawn and self.release is None:
            raise InvalidSettingError(
                f"The other release {self.name!r} has `withdrawn`, but is not a release of this project. "
                "Expected `withdrawn` together with `release`; leave other tables out."
            )
        wrong = [
            number
            for number, (content, reason) in enumerate(self.withdrawn.items(), start=1)
            if not (isinstance(content, str) and re.fullmatch("[0-9a-f]{12,64}", content))
            or not (isinstance(reason, str) and len(reason) <= LONGEST_REASON and has_words(reason))
        ]
        if wrong:
            raise InvalidSettingError(
                f"Entries {wrong} of `withdrawn` of the other release {self.name!r} cannot be used. Expected a "
                f"fingerprint, or at least its first 12 digits, with a text of 1 to {LONGEST_REASON:,} characters that "
                f"gives the reason, in at least {FEWEST_REASON_WORDS} words, and who decided."
            )

    @property
    def stage(self) -> str:
        """The name of the other release for the gate."""
        return f"other_{self.name}"

    @property
    def published_stage(self) -> str:
        """The prefix of the names of its published tables, for the gate."""
        return f"{self.stage}_published"

    def from_root(self, root: Path) -> "OtherReleaseSettings":
        """Return the settings with relative paths looked up from ``root``."""
        if self.directory is not None:
            return replace(self, directory=str(root / self.directory))
        found: OtherReleaseSettings = from_root(self, root)
        return found

    def counts(self, content: str) -> bool:
        """Whether a published table with this fingerprint counts, because it was not withdrawn."""
        return not any(content.startswith(withdrawn) for withdrawn in self.withdrawn)

    @property
    def digest(self) -> str:
        """Digest of the release's place, its masks, and the columns that an attacker knows."""
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
        """Return the asset keys of its table and of the source of that table, by their names for the gate."""
        if self.release is None:
            return {self.stage: dg.AssetKey([release_name, self.stage])}
        return {
            self.stage: dg.AssetKey([self.release, "anonymized"]),
            f"{self.stage}_source": dg.AssetKey([self.release, "source"]),
        }


def _described_source(source: TableSource | None) -> str:
    """Describe a source identically in every process that loads the definitions."""
    if callable(source):
        return f"{getattr(source, '__module__', '')}:{getattr(source, '__qualname__', type(source).__name__)}"
    return repr(source)


def describe_hierarchies(hierarchies: Mapping[str, Hierarchy] | None) -> dict[str, Any]:
    """Describe hierarchies by their rules, or by a digest of their values."""
    return {name: hierarchy.described() for name, hierarchy in sorted((hierarchies or {}).items())}


@described
@dataclass(frozen=True)
class ReidentificationSettings:
    """How to assess whose the anonymized records can be; the policy sets the columns that an attacker knows."""

    max_known: int = setting(
        DEFAULT_MAX_KNOWN, "The curve covers all sets of up to this many quasi-identifiers.", 4, at_least=1
    )
    curve_sample: int | None = setting(
        DEFAULT_CURVE_SAMPLE,
        "The curve is computed from this many released records, drawn at random if there are more; null for all. The "
        "figures that a policy limits are always computed from all.",
        100_000,
        at_least=1,
    )
    other_releases: tuple[OtherReleaseSettings, ...] = setting(
        (),
        "Releases of the same people that an attacker also has.",
        [{"name": "last_year", "key": "pseudonym", "release": "people_last_year"}],
    )

    def __post_init__(self) -> None:
        if not is_integer(self.max_known, 1):
            raise InvalidSettingError(f"max_known is {self.max_known!r}; expected a whole number of at least 1.")
        if self.curve_sample is not None and not is_integer(self.curve_sample, 1):
            raise InvalidSettingError(
                f"curve_sample is {self.curve_sample!r}; expected a whole number of at least 1, or None for all."
            )
        object.__setattr__(self, "other_releases", tuple(self.other_releases))
        names = [other.name for other in self.other_releases]
        # The asset names of another release of the project are derived from its name.
        derived = [f"{other.name}_source" for other in self.other_releases if other.release]
        published = tuple(f"{other.name}_published" for other in self.other_releases if other.release)
        if len({*names, *derived}) < len(names) + len(derived) or any(name.startswith(published) for name in names):
            raise InvalidSettingError(
                f"The other releases are named {names}; expected a different name for each, none of which is another "
                "name followed by '_source' or '_published'."
            )

    def from_root(self, root: Path) -> "ReidentificationSettings":
        """Return the settings with relative paths looked up from ``root``."""
        return replace(self, other_releases=tuple(other.from_root(root) for other in self.other_releases))
