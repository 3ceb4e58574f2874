"""The settings of the privacy budget that differentially private records of a release are charged to."""

from dataclasses import dataclass
from pathlib import Path

from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import described, require, setting
from privacy_assets.synthesis.private.accounting import check_delta
from privacy_assets.synthesis.private.ledger import POPULATION, UNDONE

NOISY_MODEL = "noisy_model"
"""The stage that spends: the noisy model, from which drawing records is free."""


@described
@dataclass(frozen=True, kw_only=True)
class PrivacyBudget:
    """Whose privacy budget the fits of a noisy model are charged to, in the ledger of the private directory.

    Raises
    ------
    InvalidSettingError
        If the name or the delta cannot be one.
    """

    population: str | None = setting(
        None,
        "Name of the people in the source: letters, digits, _ and -. Releases of the same people must name the same "
        "population, so that what they spend adds up. By default the name of the release.",
        "patients",
    )
    delta: float = setting(1e-6, "Delta at which total_epsilon is stated.", 1e-7)
    publish_figures: bool = setting(
        True,
        "Whether manifest and report of the synthetic records have the figures that were computed on the people's "
        "records. If not, they say which limits were met, and that the figures are withheld; waivers are refused.",
        False,
    )

    def __post_init__(self) -> None:
        check_delta(self.delta)
        is_flag = isinstance(self.publish_figures, bool)
        require(is_flag, "privacy_budget.publish_figures", self.publish_figures, "true or false", UNDONE)
        is_name = self.population is None or (
            isinstance(self.population, str) and POPULATION.fullmatch(self.population)
        )
        if not is_name:
            raise InvalidSettingError(
                f"privacy_budget.population is {self.population!r}. Expected letters, digits, '_' and '-', at most 64."
            )

    def require_figures_for(self, waivers: Path | None) -> None:
        """Refuse waivers where figures are withheld."""
        if waivers is not None and not self.publish_figures:
            raise InvalidSettingError(
                "privacy_budget.publish_figures is false, and there are waivers: each states the figure that it "
                "accepts. Publish the figures, or remove the waivers. Nothing was spent."
            )
