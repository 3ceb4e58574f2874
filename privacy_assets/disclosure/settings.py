"""The settings of a disclosure assessment, with their checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import described, is_integer, require, setting

LARGEST_SET: Final = 3
KNOWN_OF_RELATED: Final = 2
"""Sets of three columns found no more in views of related tables, at three times the cost."""
MOST_KNOWN: Final = 64
MOST_COLUMNS: Final = 2_000
"""All pairs of columns are compared; a thousand columns of 2,000 records take more than 15 minutes of a processor."""
FEWEST_PERMUTATIONS: Final = 999


@described
@dataclass(frozen=True)
class DisclosureSettings:
    """All settings that affect an assessment, in addition to the tables.

    Raises
    ------
    InvalidSettingError
        If a setting is out of range.
    """

    sensitive: tuple[str, ...] = setting((), "Columns whose inference is reported; empty: all columns.", ["disease"])
    known: tuple[str, ...] | None = setting(None, "Columns that an attacker knows; null: all.", ["age", "zip"])
    quasi_identifiers: tuple[str, ...] = setting(
        (), "Columns that are also tested without the others; those of the contract are added.", ["age", "zip"]
    )
    max_known: int = setting(
        LARGEST_SET, "Columns of the largest sets that single out, link and infer.", 2, at_least=1, at_most=LARGEST_SET
    )
    n_permutations: int = setting(
        FEWEST_PERMUTATIONS, "Random divisions of the people, 999 or more.", 4_999, at_least=FEWEST_PERMUTATIONS
    )
    seed: int = setting(0, "Seed of the divisions and of the sample.", 1, at_least=0)
    sample: int | None = setting(
        None,
        "Number of real people whose scores are computed; null: all, or 10,000 of large tables.",
        5_000,
        at_least=100,
    )

    def __post_init__(self) -> None:
        for name in ("sensitive", "known", "quasi_identifiers"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        _require_names("sensitive", self.sensitive, 0)
        _require_names("quasi_identifiers", self.quasi_identifiers, 0)
        if self.known is not None:
            _require_names("known", self.known, 2)
        is_size = is_integer(self.max_known, 1, LARGEST_SET)
        require(is_size, "max_known", self.max_known, f"an integer from 1 to {LARGEST_SET}")
        is_enough = is_integer(self.n_permutations, FEWEST_PERMUTATIONS)
        require(is_enough, "n_permutations", self.n_permutations, f"an integer of at least {FEWEST_PERMUTATIONS}")
        require(is_integer(self.seed, 0), "seed", self.seed, "an integer of at least 0")
        is_sample = self.sample is None or is_integer(self.sample, 100)
        require(is_sample, "sample", self.sample, "None or an integer of at least 100")

    def known_of(self, columns: Sequence[str]) -> list[int]:
        """Return the positions of the known columns; refuse names that the tables lack, and too many columns."""
        for name in ("sensitive", "known", "quasi_identifiers"):
            unknown = [each for each in getattr(self, name) or () if each not in columns]
            if unknown:
                raise InvalidSettingError(
                    f"`{name}` names columns that the tables do not have: {unknown}. They have {list(columns)}. "
                    "Nothing was assessed."
                )
        if len(columns) > MOST_COLUMNS:
            raise InvalidSettingError(
                f"There are {len(columns):,} columns. Expected at most {MOST_COLUMNS:,}, because all pairs of them are "
                "compared. Nothing was assessed. Release fewer columns, or only an anonymized version, which may have "
                "more."
            )
        known = [columns.index(name) for name in (self.known or columns)]
        if len(known) > MOST_KNOWN:
            raise InvalidSettingError(
                f"An attacker is assumed to know {len(known)} columns. Expected at most {MOST_KNOWN}, because all sets "
                f"of up to {self.max_known} are examined. Set `known` to the columns that attackers know. Nothing was "
                "assessed."
            )
        return known

    def wanted_of(self, columns: Sequence[str]) -> tuple[int, ...]:
        """Return the positions of the columns that an attacker wants to learn, if it is said what he knows or wants.

        These are the sensitive columns, or all that are not known; none if he knows nothing else.
        """
        known = set(self.known or columns)
        wanted = [name for name in columns if (name in self.sensitive if self.sensitive else name not in known)]
        return tuple(map(columns.index, wanted)) if known - set(wanted) else ()

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        own = asdict(self)
        known = None if self.known is None else list(self.known)
        lists = {name: list(own[name]) for name in ("sensitive", "quasi_identifiers")}
        return {**own, **lists, "known": known}


def _require_names(name: str, names: object, fewest: int) -> None:
    is_right = isinstance(names, tuple) and all(isinstance(each, str) for each in names)
    if not is_right or len(set(names)) < len(names) or len(names) < fewest:  # type: ignore[arg-type, call-overload]
        least = f"at least {fewest} " if fewest else ""
        raise InvalidSettingError(f"`{name}` must be a list of {least}distinct column names. Nothing was assessed.")
