"""The settings of the assessment of a release's worth, and of its report."""

from dataclasses import dataclass

from privacy_assets.mpucc.column_changes import DEFAULT_SEARCHES
from privacy_assets.release.metrics import UTILITY
from privacy_assets.setting_checks import described, is_integer, require, setting
from privacy_assets.utility.by_group import MOST_VALUES

SHARE_THAT_JUDGES = 0.5
"""Share of the people in the source who judge anonymized records, which are made from everybody's records."""


def worth_stage(side: str) -> str:
    """Return the stage that measures the worth of the records of a side."""
    return UTILITY if side == "synthetic" else f"{side}_{UTILITY}"


@described
@dataclass(frozen=True, kw_only=True)
class UtilitySettings:
    """How the worth of the records of a release is assessed (`assess_utility`).

    Synthetic records are judged by the control; anonymized records by a random half of the people in the source.

    Raises
    ------
    InvalidSettingError
        If the seed is not an integer of at least 0, or the group is not the name of a column.
    """

    group: str | None = setting(
        None,
        f"Released column of at most {MOST_VALUES} values, such as a region, within whose groups the relations of the "
        "others are judged, too.",
        "region",
    )
    seed: int = setting(
        0,
        "Seed of the counting queries, of the records drawn from labels, and of the half of the people that judges.",
        1,
        at_least=0,
    )

    def __post_init__(self) -> None:
        require(is_integer(self.seed, 0, plain=True), "utility.seed", self.seed, "an integer of at least 0")
        is_name = self.group is None or (isinstance(self.group, str) and self.group != "")
        require(is_name, "utility.group", self.group, "None or the name of a column")


@described
@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """What is measured for the report of a release.

    Raises
    ------
    InvalidSettingError
        If the number is not an integer of at least 0.
    """

    column_changes: int = setting(
        DEFAULT_SEARCHES,
        "Number of changes of columns (dropped, coarsened, pairs) whose effect on the identification rate is measured, "
        "each by another search; 0 for none.",
        0,
        at_least=0,
    )

    def __post_init__(self) -> None:
        found = self.column_changes
        require(is_integer(found, 0, plain=True), "report.column_changes", found, "an integer of at least 0")
