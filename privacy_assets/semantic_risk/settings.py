"""The settings of a semantic assessment, with their checks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ceil, floor
from typing import Any

import numpy as np

from privacy_assets.errors import InvalidSettingError
from privacy_assets.semantic_risk.row_measures import MAX_COMPARISONS
from privacy_assets.setting_checks import is_integer, is_number, require, require_flag, setting

# Fewer records than this with a premise reveal little about the table and much about the records.
DEFAULT_MIN_SUPPORT = 5
MAX_CHAINS = 100
MAX_CONCEPTS = 500_000
MAX_WORDS_SEARCHED = 2 * 10**10
# A risk of one in more records than any table has and 64-bit integers can count.
SMALLEST_RISK = 2.0**-53
# A limit is near 1 / k if it is less than this share below it: 0.33 is near 1 / 3, 0.3 is not. Limits of more than 20
# records are not meant so exactly.
NEAR, MOST_MEANT = 0.02, 20

NOT_SMALLER = f", not below {SMALLEST_RISK:.2g}"


@dataclass(frozen=True, kw_only=True)
class SemanticSettings:
    """All settings that affect an assessment, except table, scales and model; see ``assess_semantic_risk``."""

    risk_limit: float | None = setting(
        None,
        "Largest basic semantic risk of a record; by default the limit of the policy.",
        0.2,
        at_least=SMALLEST_RISK,
        at_most=1,
    )
    three_way: tuple[float, float] | None = setting(
        None, "Two risks: records up to the first are labeled keep, from the second on discard.", [0.1, 0.3]
    )
    semantic_risk: bool = setting(
        True, "Whether to search the semantic risk in addition to the basic one, within `max_words_searched`.", False
    )
    advice: bool = setting(True, "Whether to report the effect of forgetting each column.", False)
    min_support: int = setting(
        DEFAULT_MIN_SUPPORT, "Smallest number of records of the implications counted in the advice.", 20, at_least=0
    )
    max_words_searched: int = setting(
        MAX_WORDS_SEARCHED,
        "Words of 8 bytes that the search of the semantic risk may read, about 5e8 in a second on each core; "
        "beyond it, the assessment has the risks found so far.",
        10**11,
        at_least=1,
    )
    max_chains: int = MAX_CHAINS
    max_concepts: int = MAX_CONCEPTS
    max_comparisons: int = MAX_COMPARISONS

    def check(self) -> None:
        """Refuse settings out of their range."""
        limit = self.risk_limit
        require(
            limit is None or is_semantic_risk(limit),
            "risk_limit",
            limit,
            f"None or a risk above 0 and at most 1{NOT_SMALLER}",
        )
        self._check_regions()
        for name in ("semantic_risk", "advice"):
            require_flag(name, getattr(self, name))
        require(is_integer(self.min_support, 0), "min_support", self.min_support, "an integer of at least 0")
        for name in ("max_chains", "max_concepts", "max_comparisons", "max_words_searched"):
            require(is_integer(getattr(self, name), 1), name, getattr(self, name), "an integer above 0")

    def _check_regions(self) -> None:
        if self.three_way is None:
            return
        is_pair = isinstance(self.three_way, tuple | list) and len(self.three_way) == 2
        require(is_pair, "three_way", self.three_way, "None or a pair of risks (alpha, beta)")
        alpha, beta = self.three_way
        require(
            is_semantic_risk(alpha) and is_semantic_risk(beta),
            "three_way",
            self.three_way,
            f"risks above 0 and at most 1{NOT_SMALLER}",
        )
        if alpha >= beta:
            raise InvalidSettingError(
                f"three_way is ({alpha:g}, {beta:g}). Expected alpha < beta: records are kept up to alpha and "
                "discarded from beta on. Nothing was assessed."
            )
        if self.risk_limit is not None and beta > self.risk_limit:
            raise InvalidSettingError(
                f"three_way discards from {beta:g} on, above the risk_limit {self.risk_limit:g}. Expected alpha < beta "
                "<= risk_limit. Nothing was assessed."
            )

    def described(self) -> dict[str, Any]:
        """Return the settings as JSON values, without those that a subclass adds."""
        own = {each.name: getattr(self, each.name) for each in fields(SemanticSettings)}
        values = {name: v.item() if isinstance(v, np.generic) else v for name, v in own.items()}
        if self.three_way is not None:
            values["three_way"] = [float(bound) for bound in self.three_way]
        return values


def is_semantic_risk(value: object) -> bool:
    """Whether a value is a number (not a boolean or NaN) above 0 and at most 1, and not too small to be a risk."""
    return is_number(value, SMALLEST_RISK, 1)


def smallest_acceptable(risk_limit: float) -> int:
    """Return the smallest whole number k with 1 / k at most the limit; 1 / 3 as a float gives 3, as 0.3333 gives 4."""
    _require_risk(risk_limit)
    k = max(floor(1 / risk_limit) - 1, 1)
    while 1 / k > risk_limit:
        k += 1
    return k


def note_on_limit(risk_limit: float) -> str | None:
    """Report how many records a limit requires if it is just below 1 / n, so that n was probably meant."""
    k = smallest_acceptable(risk_limit)
    if not 1 < k <= MOST_MEANT or (k - 1) * risk_limit <= 1 - NEAR:
        return None
    digits = 2 + 2 * len(str(k))
    larger = f"{ceil(10**digits / (k - 1)) / 10**digits:.{digits}f}"
    return (
        f"The risk limit of {risk_limit:.6g} requires at least {k:,} records, because 1/{k - 1:,} is just above it. If "
        f"{k - 1:,} were meant, write {larger}."
    )


def largest_risky(risk_limit: float) -> int:
    """Return the largest whole number s with 1 / s at least the limit: the size up to which a chain is at risk."""
    _require_risk(risk_limit)
    s = floor(1 / risk_limit) + 1
    while 1 / s < risk_limit:
        s -= 1
    return s


def _require_risk(value: float) -> None:
    if not is_semantic_risk(value):
        raise InvalidSettingError(f"A limit on a risk is {value!r}. Expected one above 0 and at most 1{NOT_SMALLER}.")
