"""The spelling by which texts are compared, character by character, without anything from the package."""

import unicodedata
from fractions import Fraction

WORDS = ["", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "nat"]
NOT_SHOWN = [0x2800, 0x2065, 0xFFFC, *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000)]
DASHES = "‐‑‒–—―−"  # noqa: RUF001
SINGLE, DOUBLE = "‘’‚‛‹›′ʼ`´\u1ffd", "“”„‟«»"  # noqa: RUF001


def spelled(text):
    """One text for all that a reader takes for the same value, and () for a missing value."""
    for _ in range(5):
        text = once(text)
    if text in WORDS:
        return ()
    number = as_number(text) if len(text) < 40 else None
    return text if number is None and as_moment(text) is None else as_moment(text) if number is None else number


def once(text):
    plain = ""
    for character in text:
        if character in DASHES or unicodedata.category(character) == "Pd":
            character = "-"
        elif character in SINGLE:
            character = "'"
        elif character in DOUBLE:
            character = '"'
        elif ord(character) in NOT_SHOWN or (
            unicodedata.category(character) in ("Cf", "Cc") and not character.isspace()
        ):
            character = ""
        plain += character
    plain = unicodedata.normalize("NFKC", plain)
    plain = plain.casefold() if plain.isascii() else plain.upper().casefold().replace("i\u0307", "i")
    plain = " ".join(plain.split())
    while True:
        if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "'\"":
            plain = plain[1:-1].strip(" ")
        elif plain.startswith("'"):
            plain = plain[1:].strip(" ")
        else:
            return plain


def as_number(text):
    """The exact value of a number, as a fraction."""
    mantissa, is_scientific, exponent = text.partition("e")
    if is_scientific and not (1 <= len(exponent.lstrip("+-")) <= 3 and len(exponent) - len(exponent.lstrip("+-")) <= 1):
        return None
    before, comma, after = text.lstrip("+-").partition(",")
    if comma and before.isdecimal() and after.isdecimal() and before[0] != "0" and len(before) <= 3 == len(after):
        return None  # thousands or decimals
    sign = mantissa[:1] if mantissa[:1] in ("+", "-") else ""
    mantissa = mantissa.removeprefix(sign).replace(",", ".")
    whole, has_point, part = mantissa.partition(".")
    if not (whole + part).isdecimal() or (is_scientific and not exponent.lstrip("+-").isdecimal()):
        return None
    if has_point and not whole and not part:
        return None
    value = Fraction(int(whole + part), 10 ** len(part)) * Fraction(10) ** int(exponent or 0)
    return -value if sign == "-" else value


def as_moment(text):
    """Day, and time of day with its fraction of a second, of a moment in ISO form."""
    for zone in ("z", "+00:00", "-00:00", "+0000", "-0000"):
        if text.endswith(zone) and len(text) > 15:
            text = text.removesuffix(zone)
            break
    day, rest = text[:10], text[10:]
    parts = day.split("-")
    if [len(part) for part in parts] != [4, 2, 2] or not all(part.isdecimal() for part in parts):
        return None
    if not rest:
        return (day, 0, 0, Fraction(0))
    if rest[0] not in "t " or not is_clock(rest[1:]):
        return None
    hour, minute, *second = rest[1:].split(":")
    return (day, int(hour), int(minute), as_number(second[0]) if second else Fraction(0))


def is_clock(text):
    """Whether a text is ``hh:mm``, ``hh:mm:ss`` or with a fraction of a second."""
    parts = text.replace(",", ".").split(":")
    if len(parts) not in (2, 3) or not all(len(part) == 2 and part.isdecimal() for part in parts[:2]):
        return False
    if len(parts) == 2:
        return True
    whole, has_point, part = parts[2].partition(".")
    return len(whole) == 2 and whole.isdecimal() and (not has_point or part.isdecimal())
