"""The settings of the assessment of what a release is worth."""

from dataclasses import dataclass

from privacy_assets.setting_checks import described, is_integer, require, setting


@described
@dataclass(frozen=True, kw_only=True)
class UtilitySettings:
    """How it is assessed what synthetic records are worth, by people whom the synthesizer never saw (`assess_utility`).

    Raises
    ------
    InvalidSettingError
        If the seed is not an integer of at least 0.
    """

    seed: int = setting(0, "Seed of the counting queries, and of the records drawn from labels.", 1)

    def __post_init__(self) -> None:
        require(is_integer(self.seed, 0, plain=True), "utility.seed", self.seed, "an integer of at least 0")
