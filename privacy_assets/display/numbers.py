"""Numbers for people, with three significant digits; files and programs get all digits."""

from decimal import Decimal
from math import isfinite, isnan
from numbers import Integral

DIGITS = 3
ALL_DIGITS = 17
"""Significant digits with which every float is read back unchanged."""
SMALLEST_PLAIN, LARGEST_PLAIN = 1e-4, 1e15
"""Magnitudes between which a number is written without an exponent."""


def percent(share: float, limit: float | None = None) -> str:
    """Format a share in percent; only 0 is shown as ``0.0%``, and only 1 as ``100.0%``.

    With a limit, it has enough decimals to show which of the two is larger.
    """
    shown = _short_percent(share)
    if limit is None or not isfinite(share):
        return shown
    order, exact, bound = _order(share, limit), _hundredfold(share), _hundredfold(limit)
    if shown[0] in "<>":
        # `<0.01%` shows on which side of a limit the share is only if the share is below the limit.
        on_side = (shown[0] == "<", shown[0] == ">")
        if order == on_side == _order(_read(shown.strip("<>%")), bound):
            return shown
    for decimals in range(2 if 0 < abs(share) < 0.1 else 1, ALL_DIGITS):
        shown = f"{exact:.{decimals}f}"
        expected = bound if _is_short(limit) else Decimal(f"{bound:.{decimals}f}")
        if _order(Decimal(shown), expected) == order and (abs(Decimal(shown)) in {0, 100}) == (abs(exact) in {0, 100}):
            return f"{shown}%"
    return f"{exact:f}%"


def _hundredfold(share: float) -> Decimal:
    return Decimal(repr(float(share) + 0.0)) * 100


def _short_percent(share: float) -> str:
    for low, high, bound in ((0, 0.0001, "0.01%"), (0.999, 1, "99.9%"), (1, 1.001, "100.0%")):
        if low < abs(share) < high:
            is_below = (low == 0) == (share > 0)
            return f"{'<' if is_below else '>'}{'-' if share < 0 else ''}{bound}"
    # Adding 0 removes the sign of -0.0.
    return f"{share + 0.0:.2%}" if 0 < abs(share) < 0.1 else f"{share + 0.0:.1%}"


def number(value: float) -> str:
    """Format a whole number in full and any other with three significant digits; only 0, 1 and -1 are shown so."""
    return _rounded(value, DIGITS)


def in_full(value: float, *, grouped: bool = False) -> str:
    """Format a number so that it is read back unchanged; ``grouped`` adds thousands separators for people."""
    if _is_whole(value):
        return f"{int(value):,}" if grouped else str(int(value))
    shown = f"{value:g}"
    exact = shown if isnan(value) or float(shown) == value else repr(float(value))
    return f"{Decimal(exact):,f}" if grouped and _is_plain(value) else exact


def against(value: float, limit: float, *, exact: bool = False) -> tuple[str, str]:
    """Format a value and its limit with three digits, or enough to show which of the two is larger.

    A limit with at most six digits is written in full. If ``exact``, every limit is, and neither number has thousands
    separators, so that programs can read them.
    """
    for digits in range(DIGITS, ALL_DIGITS):
        shown = (
            _rounded(value, digits),
            in_full(limit, grouped=True) if exact or _is_short(limit) else _rounded(limit, digits),
        )
        if _order(*map(_read, shown)) == _order(value, limit):
            break
    else:
        shown = in_full(value, grouped=True), in_full(limit, grouped=True)
    return (shown[0].replace(",", ""), shown[1].replace(",", "")) if exact else shown


def apart(one: float, other: float) -> tuple[str, str]:
    """Format two different numbers with three digits, or enough to show the difference."""
    for digits in range(DIGITS, ALL_DIGITS):
        shown = _rounded(one, digits), _rounded(other, digits)
        if shown[0] != shown[1]:
            return shown
    return in_full(one, grouped=True), in_full(other, grouped=True)


def _rounded(value: float, digits: int) -> str:
    """Format a whole number in full and any other with this many digits, or more if it would be shown as 1 or -1."""
    if _is_whole(value) or not isfinite(value):
        return in_full(value, grouped=True)
    for enough in range(digits, ALL_DIGITS):
        shown = _to_digits(value, enough)
        if shown not in ("1", "-1"):
            return shown
    return in_full(value, grouped=True)


def _to_digits(value: float, digits: int) -> str:
    if not _is_plain(value):
        return f"{value:.{digits}g}"
    # The exponent after rounding: 999.6 has the exponent of 1,000.
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    shown = f"{value:,.{max(0, digits - 1 - exponent)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _is_whole(value: float) -> bool:
    return _is_integer(value) or (abs(value) <= LARGEST_PLAIN and float(value).is_integer())


def _is_integer(value: object) -> bool:
    """Return whether a number has an integer type; it may be larger than any float."""
    return isinstance(value, Integral)


def _is_short(limit: float) -> bool:
    return _is_whole(limit) or float(f"{limit:g}") == limit


def _is_plain(value: float) -> bool:
    return SMALLEST_PLAIN <= abs(value) <= LARGEST_PLAIN


def _read(shown: str) -> Decimal:
    return Decimal(shown.replace(",", ""))


def _order(value: float | Decimal, limit: float | Decimal) -> tuple[bool, bool]:
    # Decimals refuse to compare NaN.
    return (False, False) if _is_nan(value) or _is_nan(limit) else (value < limit, value > limit)


def _is_nan(value: float | Decimal) -> bool:
    return not _is_integer(value) and isnan(value)


def yes_or_no(value: float) -> str:
    """Format a figure that is 1 for yes and 0 for no."""
    return "yes" if value else "no"
