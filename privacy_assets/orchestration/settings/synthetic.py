"""The settings of the synthetic side of a release."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from privacy_assets.contract.contract import TableContract
from privacy_assets.disclosure.rare_values import RARE_VALUES_RELEASED
from privacy_assets.errors import InvalidSettingError
from privacy_assets.mpucc.assess import MpuccSettings
from privacy_assets.mpucc.settings import LIVE_CLASSES
from privacy_assets.orchestration.settings.sources import TableSource
from privacy_assets.release.metrics import METRICS
from privacy_assets.release.policy import Policy
from privacy_assets.setting_checks import REQUIRED, described, require, setting
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.synthesis.private.settings import MST, MstSettings
from privacy_assets.synthesis.redraw import MIN_ATOM
from privacy_assets.synthesis.split import check_split_settings
from privacy_assets.synthesis.synthesize import DEFAULT_SYNTHESIZER, Synthesizer, check_setting, resolve_synthesizer

AUTO: Literal["auto"] = "auto"
SYNTHETIC_PEOPLE = "synthetic_people"
"""Stage of the synthetic person of each synthetic record, which is never released."""


@described
@dataclass(frozen=True)
class Split:
    """Divide the source by person into records that the synthesizer may see and records that it never sees."""

    train_fraction: float | str = setting(
        0.8,
        "Share of the people whose records the synthesizer may see, above 0 and below 1; auto: the largest with which "
        "the leakage test sees what the policy requires (detectable_share), else one half.",
        AUTO,
        0.7,
        above=0,
        below=1,
    )
    seed: int = setting(0, "Seed of the division.", 1, at_least=0)

    def __post_init__(self) -> None:
        check_split_settings(0.5 if self.train_fraction == AUTO else self.train_fraction, self.seed, f", or {AUTO!r}")


@described
@dataclass(frozen=True)
class GivenSplit:
    """Originals and control that are already divided."""

    original: TableSource = setting(
        REQUIRED,
        "Records that the synthesizer has seen, if they are already divided; then there is no source.",
        {"file": "data/original.parquet"},
    )
    control: TableSource = setting(
        REQUIRED, "Records that the synthesizer has not seen.", {"file": "data/control.parquet"}
    )


@described
@dataclass(frozen=True)
class Synthesis:
    """Make synthetic records here.

    If the policy limits `rare_values_released`, `min_atom` is at least the number of people that it requires, unless
    `settings` has `min_atom`.
    """

    method: str | Synthesizer = setting(
        DEFAULT_SYNTHESIZER,
        "smooth_cart, gaussian_copula or cart (extra trees), mst (differentially private, extra dp), or the Python "
        "path of your own synthesizer.",
        "cart",
    )
    n_records: int | None = setting(
        None, "Number of records; by default that of the originals, which mst counts with noise.", 1000, at_least=1
    )
    seed: int = setting(0, "Seed of fit and sample.", 1, at_least=0)
    settings: Mapping[str, Any] = setting(dict, "Settings of the synthesizer.", {"min_samples_leaf": 20})

    def __post_init__(self) -> None:
        if self.n_records is not None:
            check_setting("Synthesis", "n_records", self.n_records, at_least=1)
        check_setting("Synthesis", "seed", self.seed, at_least=0)
        if self.method == MST:
            own = MstSettings.from_mapping(self.settings).to_json()
            object.__setattr__(self, "_described", canonical_json({"method": MST, "settings": own}))
            return
        synthesizer = resolve_synthesizer(self.method, self.settings)
        try:
            described = canonical_json({"method": synthesizer.name, "settings": dict(synthesizer.settings)})
        except (TypeError, ValueError):
            pass
        else:
            # Now, before the synthesizer has read a table, so that nothing it learns is in its settings.
            object.__setattr__(self, "_described", described)
            return
        raise InvalidSettingError(
            f"The settings of the synthesizer {synthesizer.name!r} cannot be written to the manifest. Expected plain "
            "JSON values: text, numbers that are finite, booleans, lists and mappings."
        )

    @property
    def private(self) -> MstSettings | None:
        """The settings of differentially private records; None for all other methods."""
        return MstSettings.from_mapping(self.settings) if self.method == MST else None

    def resolve(self, policy: Policy) -> "Synthesis":
        """Return it so that a built-in method redraws the policy's rare values, unless its settings differ."""
        if (
            not isinstance(self.method, str)
            or self.method == MST
            or "min_atom" in self.settings
            or policy.limit_on(RARE_VALUES_RELEASED) is None
        ):
            return self
        return replace(self, settings={**self.settings, "min_atom": max(MIN_ATOM, policy.people_per_value)})

    def for_manifest(self) -> dict[str, Any]:
        """Return the method, the seed and the used settings as JSON values."""
        described = json.loads(self._described)  # type: ignore[attr-defined]
        return {
            "method": described["method"],
            "n_records": self.n_records,
            "seed": self.seed,
            "settings": described["settings"],
        }


@described
@dataclass(frozen=True)
class ExternalSynthetic:
    """Synthetic records that were made elsewhere.

    If the synthesizer also saw the control, comparing with the control shows nothing, because leakage is on both sides
    and cancels out.
    """

    source: TableSource = setting(
        REQUIRED,
        "Synthetic records that were made elsewhere; then none of the settings above apply.",
        {"file": "data/synthetic.parquet"},
    )
    control_was_withheld: bool = setting(
        False,
        "True if the external records were made from exactly the originals of the split, without its control.",
        True,
    )
    person: str | None = setting(
        None,
        "Column of the external records with the synthetic person of each row. It is compared with the real people, "
        "and not released unless the contract has it with links_rows.",
        "trace",
    )

    def __post_init__(self) -> None:
        is_name = self.person is None or (isinstance(self.person, str) and bool(self.person))
        require(is_name, "person", self.person, "the name of a column of the synthetic records, or None")


@described
@dataclass(frozen=True)
class AssessmentSettings(MpuccSettings):
    """How synthetic records are assessed: parameters of the mpUCC search (`assess_mpuccs`)."""

    numeric_precision: int | Mapping[str, int] | None = setting(
        None, "Decimals, for all columns or by column; by default those of the contract, else of the originals.", 2
    )
    datetime_precision: str | Mapping[str, str] | None = setting(
        None, "Unit of datetimes, for all columns or by column; by default as for numeric_precision.", "D"
    )
    deduplicate: bool = setting(True, "Whether repeated records count once.", False)

    @classmethod
    def required_by(cls, policy: Policy, contract: TableContract) -> "AssessmentSettings":
        """Return the settings that a policy requires, with no more columns than there are."""
        n_columns, required = len(contract.searched_columns), policy.required
        return cls(
            max_baseline_cols=min(required.max_baseline_cols or n_columns, n_columns),
            confidence_level=min(cls.confidence_level, required.confidence_level),
        )

    def require_accepted_by(self, policy: Policy, n_columns: int) -> None:
        """Refuse settings whose assessments a policy never accepts; the gate decides on all others."""
        required = policy.required
        searched, least = self.max_size(n_columns), min(required.max_baseline_cols or n_columns, n_columns)
        unscored = [limit.metric for limit in policy.limits if limit.blocks and METRICS[limit.metric].needs_baseline]
        wrong = {
            f"calculate_baseline=True, without which {' and '.join(unscored)} has no value": (
                bool(unscored) and not self.calculate_baseline
            ),
            f"max_baseline_cols={least} or more; it is {searched}": searched < least,
            f"min_entropy_delta=0; with {self.min_entropy_delta:g} the search is heuristic": (
                required.exact_search and self.min_entropy_delta > 0
            ),
            f"pruning={LIVE_CLASSES!r}; with {self.pruning!r} the search is heuristic": (
                required.exact_search and self.pruning != LIVE_CLASSES
            ),
            "deduplicate=True": required.deduplicated and not self.deduplicate,
            f"confidence_level={required.confidence_level:g} or less; it is {self.confidence_level:g}": (
                any(limit.needs_control for limit in policy.limits)
                and self.confidence_level > required.confidence_level
            ),
        }
        if any(wrong.values()):
            raise InvalidSettingError(
                "The policy never accepts an assessment with these settings. Write "
                f"{', and '.join(words for words, is_wrong in wrong.items() if is_wrong)}; or change the requirements "
                "of the policy. Nothing was assessed."
            )

    def resolve(self, contract: TableContract, labels: Collection[str]) -> "AssessmentSettings":
        """Return the settings with the precisions of the contract, unless they have their own.

        Columns that are released as ``labels`` have no precision.
        """
        declared = {name: value for name, value in contract.precisions.items() if name not in labels}
        decimals = {name: value for name, value in declared.items() if isinstance(value, int)}
        units = {name: value for name, value in declared.items() if isinstance(value, str)}
        numeric = self.numeric_precision if self.numeric_precision is not None else decimals or None
        return replace(self, numeric_precision=numeric, datetime_precision=self.datetime_precision or units or None)
