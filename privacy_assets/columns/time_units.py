"""Datetimes and durations as integers in one unit, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy_assets.errors import InvalidTableError

DATETIME_UNITS: Mapping[str, int] = {
    "D": 86_400_000_000_000,
    "H": 3_600_000_000_000,
    "T": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
LARGEST_INT64 = 2**63 - 1


def align_times(one: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Make datetimes or durations of two units comparable; all other arrays are returned unchanged.

    NumPy compares them in the finer unit, in which distant ones overflow silently.
    """
    if one.dtype == other.dtype or one.dtype.kind not in "mM" or other.dtype.kind not in "mM":
        return one, other
    finest = min(DATETIME_UNITS[own_unit(values)] for values in (one, other))
    return _counted_in(one, finest), _counted_in(other, finest)


def integers_in(values: NDArray[Any], nanoseconds: int) -> NDArray[np.int64]:
    """Count datetimes or durations in a unit, rounding down; refuse values that int64 cannot represent."""
    own = DATETIME_UNITS[own_unit(values)]
    integers = values.astype(np.int64)
    if own <= nanoseconds:
        return integers // (nanoseconds // own)
    factor = own // nanoseconds
    if len(integers) and max(int(integers.max()), -int(integers.min())) > LARGEST_INT64 // factor:
        raise InvalidTableError(
            "It has dates or durations too far from 1970 for the precision of the original table. Expected them "
            "within 292 years for nanoseconds. Set a coarser datetime_precision, or replace the distant ones by "
            "missing values."
        )
    return integers * factor


def _counted_in(values: NDArray[Any], nanoseconds: int) -> NDArray[Any]:
    """Count datetimes or durations in a unit that is not coarser than theirs; as objects if int64 is too small."""
    factor = DATETIME_UNITS[own_unit(values)] // nanoseconds
    integers = values.astype(np.int64)
    if len(integers) and max(int(integers.max()), -int(integers.min())) > LARGEST_INT64 // factor:
        return integers.astype(object) * factor
    return integers * factor


def own_unit(values: NDArray[Any]) -> str:
    """Return the unit in which datetimes or durations are stored, in the notation of `DATETIME_UNITS`."""
    name = np.datetime_data(values.dtype)[0]
    return {"h": "H", "m": "T"}.get(name, name)
