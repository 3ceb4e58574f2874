"""The settings of the privacy budget to which differentially private records of a release are charged."""

from dataclasses import dataclass
from pathlib import Path

from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import described, require, setting
from privacy_assets.synthesis.private.accounting import check_delta
from privacy_assets.synthesis.private.ledger import POPULATION, UNDONE

NOISY_MODEL = "noisy_model"
"""The stage that spends budget: the noisy model. Drawing records from it costs nothing."""


@described
@dataclass(frozen=True, kw_only=True)
class PrivacyBudget:
    """The privacy budget that the fits of a noisy model are charged to, in the ledger of the private directory.

    Raises
    ------
    InvalidSettingError
        If the name of the population or the delta is invalid.
    """

    population: str | None = setting(
        None,
        "Name of the people in the source: letters, digits, _ and -. Releases of the same people must name the same "
        "population, so that what they spend adds up. By default the name of the release.",
        "patients",
    )
    delta: float = setting(1e-6, "Delta for which total_epsilon is computed.", 1e-7, above=0, below=1)
    partitions_are_disjoint: bool = setting(
        False,
        "Whether each person is in one partition only. Keyed hashes of the people of each fit are compared to check "
        "this: if it is true, the largest epsilon of a partition counts, otherwise the sum over the partitions.",
        True,
    )
    publish_figures: bool = setting(
        True,
        "Whether manifest and report of the synthetic records show the figures that were computed on the people's "
        "records. If not, they show which limits were met, and that the figures are withheld; waivers are refused.",
        False,
    )

    def __post_init__(self) -> None:
        check_delta(self.delta)
        for name in ("partitions_are_disjoint", "publish_figures"):
            is_flag = isinstance(getattr(self, name), bool)
            require(is_flag, f"privacy_budget.{name}", getattr(self, name), "true or false", UNDONE)
        is_name = self.population is None or (
            isinstance(self.population, str) and POPULATION.fullmatch(self.population)
        )
        if not is_name:
            raise InvalidSettingError(
                f"privacy_budget.population is {self.population!r}. Expected letters, digits, '_' and '-', at most 64."
            )

    def check(self, waivers: Path | None, person: str | None, *, has_partitions: bool, has_source: bool) -> None:
        """Refuse settings that contradict the rest of a release."""
        lacking = [
            what
            for what, is_there in (
                ("partitions", has_partitions),
                ("a column with `person: true` in the contract", person is not None),
                ("a source that is divided here", has_source),
            )
            if not is_there
        ]
        if self.partitions_are_disjoint and lacking:
            raise InvalidSettingError(
                f"privacy_budget.partitions_are_disjoint is true, but the release lacks {', and '.join(lacking)}, so "
                "it cannot be checked who is in which partition. Leave it out: then all fits add up. Nothing was spent."
            )
        if waivers is not None and not self.publish_figures:
            raise InvalidSettingError(
                "privacy_budget.publish_figures is false, and there are waivers: each states the figure that it "
                "accepts. Publish the figures, or remove the waivers. Nothing was spent."
            )
