"""The settings of the privacy budget that differentially private records of a release are charged to."""

from dataclasses import dataclass

from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import described, setting
from privacy_assets.synthesis.private.accounting import check_delta
from privacy_assets.synthesis.private.ledger import POPULATION

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

    def __post_init__(self) -> None:
        check_delta(self.delta)
        is_name = self.population is None or (
            isinstance(self.population, str) and POPULATION.fullmatch(self.population)
        )
        if not is_name:
            raise InvalidSettingError(
                f"privacy_budget.population is {self.population!r}. Expected letters, digits, '_' and '-', at most 64."
            )
