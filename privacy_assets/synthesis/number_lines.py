"""Margins of numbers and datetimes: the numbers that are reproduced, and the intervals of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import MAX_DECIMALS
from privacy_assets.synthesis.synthesize import Kind

COMMON_STEPS: Final = sorted((unit * 10**power for unit in (1, 2, 5, 25) for power in range(17)), reverse=True)
UNITS_PER_SECOND: Final[Mapping[str, int]] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True)
class NumberLine:
    """Distinct numbers of a column in ascending order, and whether they are interpolated."""

    numbers: NDArray[Any]
    runs: NDArray[np.intp]
    """Run of neighboring rare numbers of each number; -1 for atoms, which are reproduced unchanged."""
    knots: NDArray[np.intp]
    """Rare numbers between which the others are interpolated, including the first and the last of each run."""
    kind: Kind
    step: int
    """Unit of which all numbers are multiples; for a float column in units of its last decimal, or 0."""
    decimals: int
    """Decimals of a float column; 0 for whole numbers and datetimes."""

    def between(self, low: NDArray[np.intp], high: NDArray[np.intp], weight: NDArray[np.float64]) -> NDArray[Any]:
        """Interpolate from number `low` to number `high`, at the column's own precision and within its range."""
        start, end = self.numbers[low], self.numbers[high]
        if self.kind == "float":
            mixed = start * (1 - weight) + end * weight
            unit = self.step / 10**self.decimals
            rounded = np.round(np.round(mixed / unit) * unit, self.decimals) if self.step else mixed
            return np.clip(rounded, self.numbers[0], self.numbers[-1])
        # Offsets from the lower knot stay small, so that large whole numbers keep their last digits. They are unsigned,
        # because int64 cannot represent its own range; a weight below 1 keeps a rounded offset within uint64.
        unsigned, step = np.uint64, np.uint64(self.step)
        lowest = start.astype(unsigned)
        span = (end.astype(unsigned) - lowest) // step
        n_steps = np.minimum(np.rint(span.astype(np.float64) * np.minimum(weight, 1 - 2**-53)).astype(unsigned), span)
        between: NDArray[Any] = (lowest + n_steps * step).astype(start.dtype)
        return between


def as_numbers(present: pd.Series, kind: Kind) -> NDArray[Any]:
    """Return the values as sortable numbers: datetimes as wall-clock counts of their unit."""
    if kind == "datetime":
        naive = present.dt.tz_localize(None) if isinstance(present.dtype, pd.DatetimeTZDtype) else present
        return naive.to_numpy().view(np.int64)
    if kind == "float":
        return present.to_numpy(dtype=np.float64)
    return present.to_numpy(dtype=np.uint64 if str(present.dtype).lower() == "uint64" else np.int64)


def coarsest_step(distinct: NDArray[Any], column: pd.Series, kind: Kind) -> tuple[int, int]:
    """Return the coarsest lossless step and its decimals; a step of 0 for floats of too many digits."""
    if kind == "datetime":
        second = UNITS_PER_SECOND[column.dt.unit]
        steps = [86_400 * second, 3_600 * second, 60 * second, *(second // 10**power for power in range(10))]
        return next(step for step in steps if step and not np.any(distinct % step)), 0
    if kind == "integer":
        return _common_step(distinct), 0
    decimals = next((d for d in range(MAX_DECIMALS + 1) if np.array_equal(np.round(distinct, d), distinct)), None)
    if decimals is None or np.abs(distinct).max(initial=0.0) * 10.0**decimals >= 2**53:
        return 0, 0
    return _common_step(np.rint(distinct * 10.0**decimals).astype(np.int64)), decimals


def _common_step(distinct: NDArray[Any]) -> int:
    divisor = int(np.gcd.reduce(np.abs(distinct).astype(np.uint64)))
    # 1 divides every number, so there is always a next step.
    coarsest: int = next(step for step in COMMON_STEPS if not divisor % step)
    return coarsest


def rare_runs(is_rare: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the run of neighboring rare numbers of each number, -1 for the others."""
    starts = is_rare & ~np.concatenate([[False], is_rare[:-1]])
    return np.where(is_rare, np.cumsum(starts) - 1, -1)


def shares_of_people(values: NDArray[np.intp], whose: NDArray[np.intp] | None) -> NDArray[np.float64]:
    """Return the records of each value; those of one person sum to 1.

    The people of several values together are at least the sum of their shares.
    """
    if whose is None:
        return np.bincount(values).astype(np.float64)
    _, own, n_own = np.unique(whose, return_inverse=True, return_counts=True)
    return np.bincount(values, 1 / n_own[own]).astype(np.float64)


def interval_knots(runs: NDArray[np.intp], shares: NDArray[np.float64], min_people: int) -> NDArray[np.intp]:
    """Choose the ends of each run, and inside it every number that completes an interval of `min_people`."""
    before = np.concatenate([[-1], runs[:-1]])
    after = np.concatenate([runs[1:], [-1]])
    is_knot = (runs >= 0) & ((runs != before) | (runs != after))[: len(runs)]
    up_to = np.cumsum(shares)
    starts, ends = np.flatnonzero(is_knot & (runs != before)), np.flatnonzero(is_knot & (runs != after))
    for start, end in zip(starts, ends, strict=True):
        last = start
        while (last := np.searchsorted(up_to, up_to[last] + min_people)) < end:
            is_knot[last] = True
    return np.flatnonzero(is_knot)


def restore_numbers(numbers: NDArray[Any], like: pd.Series, kind: Kind) -> pd.Series:
    """Turn numbers back into values of the dtype of `like`."""
    if kind != "datetime":
        return pd.Series(numbers).astype(like.dtype)
    naive = pd.Series(numbers.astype(f"datetime64[{like.dt.unit}]"))
    if not _is_aware(like):
        return naive
    first_of_two = np.ones(len(naive), dtype=bool)
    aware = naive.dt.tz_localize(like.dt.tz, ambiguous=first_of_two, nonexistent="shift_forward")
    return aware.clip(like.min(), like.max())


def _is_aware(column: pd.Series) -> bool:
    return isinstance(column.dtype, pd.DatetimeTZDtype)
