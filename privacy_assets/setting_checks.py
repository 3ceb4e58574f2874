"""Checks of settings, and the one sentence that refuses them."""

from math import inf, isnan

import numpy as np

from privacy_assets.errors import InvalidSettingError


def is_integer(value: object, least: int) -> bool:
    """Whether a value is an integer (no boolean) of at least ``least``."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= least


def is_number(value: object, low: float, high: float) -> bool:
    """Whether a value is a number (no boolean, not NaN) in a range; infinity only if it is below ``high``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return not isnan(value) and low <= float(value) <= high and float(value) != inf


def require(is_right: bool, setting: str, value: object, expected: str) -> None:
    """Refuse a setting that is not what was expected."""
    if not is_right:
        raise InvalidSettingError(f"{setting} is {value!r}. Expected {expected}. Nothing was assessed.")
