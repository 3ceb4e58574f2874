"""Numbers as people read them, to three significant digits; files and programs get all digits."""

from math import isnan

DIGITS = 3
ALL_DIGITS = 17
"""Significant digits with which every float reads back as itself."""


def percent(share: float) -> str:
    """Write a share in percent; only 0 reads ``0.0%``, and only 1 reads ``100.0%``."""
    if 0 < share < 0.0001:
        return "<0.01%"
    if 0.999 < share < 1:
        return ">99.9%"
    return f"{share:.2%}" if 0 < share < 0.1 else f"{share:.1%}"


def number(value: float) -> str:
    """Write a whole number in full and any other to three significant digits; only 1 reads ``1``."""
    if isnan(value):
        return "nan"
    if abs(value) >= 1000 or float(value).is_integer():
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.{DIGITS}g}"
    return ">0.999" if 0.999 < value < 1 else f"{value:.{DIGITS}g}"


def in_full(value: float) -> str:
    """Write a number so that it reads back as the same number, in six digits where they suffice."""
    shown = f"{value:g}"
    if float(shown) == value:
        return shown
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def against(value: float, limit: float, *, exact: bool = False) -> tuple[str, str]:
    """Write a value and its limit to three digits, or as many as it takes to show which is larger.

    A limit of at most six digits is written in full, as is every limit if ``exact``.
    """
    is_short = float(f"{limit:g}") == limit
    for digits in range(DIGITS, ALL_DIGITS):
        shown = _rounded(value, digits), in_full(limit) if exact or is_short else _rounded(limit, digits)
        if _order(*map(float, shown)) == _order(value, limit):
            return shown
    return in_full(value), in_full(limit)


def _rounded(value: float, digits: int) -> str:
    is_whole = float(value).is_integer() and abs(value) < 1e15
    return f"{value:.0f}" if is_whole else f"{value:.{digits}g}"


def _order(value: float, limit: float) -> tuple[bool, bool]:
    return value < limit, value > limit


def apart(one: float, other: float) -> tuple[str, str]:
    """Write two numbers that differ with three digits, or with as many as it takes to see the difference."""
    for digits in range(DIGITS, ALL_DIGITS):
        shown = f"{one:.{digits}g}", f"{other:.{digits}g}"
        if shown[0] != shown[1]:
            return shown
    return repr(float(one)), repr(float(other))


def yes_or_no(value: float) -> str:
    """Write a figure that is 1 for yes and 0 for no."""
    return "yes" if value else "no"
