"""The settings of an mpUCC assessment, with their checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import comb, inf
from typing import Any, Literal, get_args

import numpy as np

from privacy_assets.setting_checks import is_integer, is_number, one_of, require, require_flag, setting

DEFAULT_MAX_COMBINATIONS = 5_000_000
DEFAULT_DECAY_FACTOR = 0.5
DEFAULT_RENYI_ALPHA = 2.0
Pruning = Literal["live_classes", "mutual_information"]
LIVE_CLASSES: Pruning = "live_classes"
MUTUAL_INFORMATION: Pruning = "mutual_information"
# Closer to 1, a normal quantile is meaningless for the figures here, and finally infinite.
MAX_CONFIDENCE_LEVEL = 0.999_999
MOST_COLUMNS_OF_VIEW = 3
"""Columns of the largest combinations in views of related tables: wide views need no larger ones, and have no limit."""


@dataclass(frozen=True)
class MpuccSettings:
    """Everything except the tables that determines an assessment; ``assess_mpuccs`` explains each setting."""

    max_baseline_cols: int | None = setting(
        None, "Largest size of the column combinations; null: all columns.", 3, at_least=1
    )
    min_entropy_delta: float = 0.0
    field_decay_factor: float = DEFAULT_DECAY_FACTOR
    renyi_alpha: float = DEFAULT_RENYI_ALPHA
    pruning: Pruning = LIVE_CLASSES
    calculate_baseline: bool = setting(True, "Whether to compare with the protection that the columns allow.", False)
    max_combinations: int = setting(
        DEFAULT_MAX_COMBINATIONS,
        "Combinations that may be checked; the search ends before the size that would exceed them.",
        100_000,
        at_least=1,
    )
    n_matched_samples: int = setting(
        5, "Samples of originals as large as the control, for the comparison.", 10, at_least=1
    )
    seed: int = setting(0, "Seed of these samples.", 1, at_least=0)
    confidence_level: float = setting(0.95, "Confidence of the intervals.", 0.9, above=0, at_most=MAX_CONFIDENCE_LEVEL)

    @property
    def search(self) -> str:
        """Whether the search is exact, or heuristic because it stops at small entropy gains or by information."""
        return "heuristic" if self.min_entropy_delta > 0 or self.pruning != LIVE_CLASSES else "exact"

    @property
    def shows_entropy(self) -> bool:
        """Whether the tree shows entropies and weights: only when their settings are not the default."""
        chosen = (self.min_entropy_delta, self.field_decay_factor, self.renyi_alpha)
        return chosen != (0.0, DEFAULT_DECAY_FACTOR, DEFAULT_RENYI_ALPHA)

    def max_size(self, n_columns: int) -> int:
        """Return the largest combination size searched."""
        return n_columns if self.max_baseline_cols is None else self.max_baseline_cols

    def described(self) -> dict[str, Any]:
        """Return the settings as JSON values; an infinite order of the entropy becomes the text "inf"."""
        values = {name: v.item() if isinstance(v, np.generic) else v for name, v in self._own().items()}
        if values["renyi_alpha"] == inf:
            values["renyi_alpha"] = "inf"
        return {**values, "search": self.search}

    def _own(self) -> dict[str, Any]:
        """Return the settings without those that a subclass adds."""
        return {each.name: getattr(self, each.name) for each in fields(MpuccSettings)}

    def check(self, n_columns: int) -> None:
        """Refuse settings out of their range, and more columns than combinations may be checked."""
        size = self.max_baseline_cols
        require(
            size is None or is_integer(size, 1),
            "max_baseline_cols",
            size,
            "None or the largest size as an integer, such as 3 for combinations of 1 to 3 columns",
        )
        require(
            size is None or size <= n_columns,
            "max_baseline_cols",
            size,
            f"at most {n_columns}, the number of columns, or None for all",
        )
        require(is_number(self.min_entropy_delta, 0, inf), "min_entropy_delta", self.min_entropy_delta, "0 or more")
        decay = self.field_decay_factor
        require(is_number(decay, 0, 1) and decay > 0, "field_decay_factor", decay, "more than 0 and at most 1")
        alpha = self.renyi_alpha
        require(is_number(alpha, 0, inf) or alpha == inf, "renyi_alpha", alpha, "0 or more; infinity is allowed")
        require(self.pruning in get_args(Pruning), "pruning", self.pruning, one_of(get_args(Pruning)))
        require_flag("calculate_baseline", self.calculate_baseline)
        require(is_integer(self.max_combinations, 1), "max_combinations", self.max_combinations, "an integer above 0")
        samples = self.n_matched_samples
        require(is_integer(samples, 1), "n_matched_samples", samples, "an integer above 0")
        require(is_integer(self.seed, 0), "seed", self.seed, "an integer of at least 0")
        level = self.confidence_level
        require(
            is_number(level, 0, MAX_CONFIDENCE_LEVEL) and level > 0,
            "confidence_level",
            level,
            f"more than 0 and at most {MAX_CONFIDENCE_LEVEL}",
        )
        require(
            n_columns <= self.max_combinations,
            "max_combinations",
            self.max_combinations,
            f"at least {n_columns}, the number of columns, to search them one by one",
        )


DEFAULT_SETTINGS = MpuccSettings()


def largest_size(max_baseline_cols: int | None, n_cols: Sequence[int] | None) -> int | None:
    """Return the largest size of the combinations, which the source also gives as the list of all sizes.

    Both, or a list that is not 1, 2, 3 and so on, are refused: a search of larger combinations needs the smaller ones.
    """
    if n_cols is None:
        return max_baseline_cols
    require(max_baseline_cols is None, "n_cols", n_cols, "either n_cols or max_baseline_cols")
    sizes = list(n_cols) if isinstance(n_cols, Sequence) else []
    is_whole = bool(sizes) and all(is_integer(size) for size in sizes)
    expected = "all sizes from 1 on, such as [1, 2, 3]; that is max_baseline_cols=3"
    require(is_whole and sorted(sizes) == list(range(1, len(sizes) + 1)), "n_cols", n_cols, expected)
    return len(sizes)


def count_combinations(n_columns: int, max_size: int) -> int:
    """Count the combinations of 1 to ``max_size`` of the columns."""
    return sum(comb(n_columns, size) for size in range(1, max_size + 1))
