"""Shapes of texts: e-mail addresses, phone numbers, names of people, numbers, dates.

Only shapes are examined, without dictionaries. A shape by itself is weak evidence: "New York" looks like the name of a
person. `column_examination` also counts how many people share the values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

LOOKED_AT: Final = 200
"""Number of examined characters of a text."""
NAME_TOKENS: Final = range(2, 6)
LONGEST_NAME: Final = 60
PARTICLES: Final = frozenset(
    [
        *("al", "bin", "da", "dal", "de", "del", "della", "den", "der", "di", "do", "dos", "du", "e", "el", "ibn"),
        *("la", "le", "ten", "ter", "van", "vom", "von", "y", "zu", "zum"),
    ]
)
"""Particles in names of people."""

_DATE: Final = (
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})|\d{8}"
    r"|\d{1,2}\.?[ -][^\W\d_]{3,12}\.?,?[ -]\d{2,4}|[^\W\d_]{3,12}\.? \d{1,2},? \d{4}|\d{4}年\d{1,2}月\d{1,2}日)"
)
_ZONE: Final = r"(?:\s?(?:Z|UTC|[+-]\d{2}:?\d{2}))?"
_DAY: Final = re.compile(
    rf"(?!\d{{8}}$){_DATE}(?:[ T]00:00(?::00(?:[.,]0+)?)?{_ZONE})?|\d{{4}}-\d{{2}}|\d{{1,2}}/\d{{4}}"
)
_TIMESTAMP: Final = re.compile(
    rf"{_DATE},?(?:T|\s+|\s+at\s+)\d{{1,2}}[:.h]\d{{2}}(?:[:.]\d{{2}}(?:[.,]\d+)?)?\s?(?:[AaPp]\.?[Mm]\.?)?{_ZONE}.{{0,6}}"
    rf"|\d{{1,2}}:\d{{2}}(?::\d{{2}})?\s?(?:[AaPp][Mm])?,?\s+{_DATE}"
)
_TIME: Final = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s?(?:[AaPp][Mm])?")
_WHOLE: Final = re.compile(r"-?(?:\d{1,3}([ .,'\u2019\u00a0\u202f])\d{3}(?:\1\d{3})*|\d+)")
_ZERO_DECIMALS: Final = re.compile(r"(?<=\d)[.,](?:0{1,2}|0{4,})$")
"""Not three zeros, which are a group."""
_UNIT: Final = r"(?:\s?[€$£¥%‰°]|\s[A-Za-zµ°²³/]{1,8}|[a-zµ°²³/]{1,5})?"
_PLAIN_NUMBER: Final = r"(?:\d{1,3}(?:[ .,'\u2019\u00a0\u202f]\d{3})+|\d+)(?:[.,]\d+)?(?:[eE][+-]?\d+)?"
_NUMBER: Final = re.compile(rf"(?:[€$£¥]|[A-Z]{{3}})?\s?[+-]?\s?(?:[€$£¥]\s?)?(?!0\d)(?!\d{{7}}){_PLAIN_NUMBER}{_UNIT}")
_DECIMAL: Final = re.compile(rf"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?{_UNIT}|[+-]?\d+(?:[.,]\d+)?[eE][+-]?\d+")
_INTERVAL: Final = re.compile(
    r"[\[(]?\s*(-?\d+(?:[.,]\d+)?)\s*(?:-|\u2013|—|to|,|;|\.\.)\s*(-?\d+(?:[.,]\d+)?)\s*[\])]?"
)
_BOUND: Final = re.compile(r"(?:[<>≤≥]=?|over|under)\s*\d+(?:[.,]\d+)?\D{0,4}|\d+(?:[.,]\d+)?\s*\+")
_CODE_LIST: Final = re.compile(r"[A-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4}|[0-9])?[+*†!]?|[A-Z]\d\d[A-Z]{2}\d\d")
"""Diagnoses (ICD-10) and substances (ATC): short codes of published lists."""

_EMAIL: Final = re.compile(r"[^\s@<>,;]{1,64}@[^\s@<>,;]{1,100}\.[^\W\d_]{2,24}")
_URL: Final = re.compile(r"(?:https?|ftp)://\S|\bwww\.\S+\.\S")
_PATH: Final = re.compile(
    r"(?:[A-Za-z]:[\\/]|\\\\|~/|/|\.\.?/|file:)[^\\/\n]+[\\/].+|(?:[^\\/\n]+[\\/]){1,12}[^\\/\n]+\.\w{2,5}"
)
_IPV4: Final = re.compile(r"((?:\d{1,3}\.){3}\d{1,3})(?:[:/]\d{1,5})?")
_IPV6: Final = re.compile(r"(?=[^:]*:[^:]*:)[0-9a-fA-F:]{3,39}(?:/\d{1,3})?")
_MAC: Final = re.compile(r"(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}")
_UUID: Final = re.compile(r"\{?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\}?")
_DIGEST: Final = re.compile(
    r"(?:[a-z0-9]{2,10}[:$])?(?=[^\s]*\d)(?:[0-9a-fA-F]{12,}|(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9+/_-]{16,}={0,2})"
)
_IBAN: Final = re.compile(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?")
_COORDINATES: Final = re.compile(
    r"(?:POINT\s*)?\(?\s*[+-]?\d{1,3}\.\d{3,}\s*°?\s*[NSns]?\s*[,;/ ]\s*[+-]?\d{1,3}\.\d{3,}\s*°?\s*[EWOewo]?\s*\)?"
    r"|[NS]?\s*\d{1,3}\s*°\s*\d{1,2}(?:\.\d+)?\s*['\u2032\u2019].{0,40}"
)
_SOCIAL: Final = re.compile(r"\d{3}-\d{2}-\d{4}")
_GROUPED: Final = re.compile(r"[+(]?\s?\d(?:[\d\s().\-/]{0,28})(?:(?:x|ext\.?|#)\s?\d{1,6}|-?[0-9A-Za-z])?")
_CODE: Final = re.compile(r"[^\W_a-z]{1,14}(?:[-\s./·:#_][^\W_a-z]{1,14}){0,5}|[A-Za-z]{1,4}[-/#:_. ]?\d{4,}[A-Za-z]?")
_USER: Final = re.compile(r"@?[a-z][a-z0-9]{0,30}(?:[._-][a-z0-9]{1,30}){0,3}")
_HOUSE: Final = re.compile(r"\d{1,5}\s?[A-Za-z]?(?:[-/]\d{1,4}[A-Za-z]?)?")
_LISTED: Final = re.compile(r"\s*[;|\n]\s*|\s+[&+/]\s+|\s+(?:and|und|et|y|e|en|og|och)\s+")
_WORD: Final = re.compile(r"[^\W\d_]+")


def whole_number_of(text: str) -> int | None:
    """Return the number in a text of digits, grouped in threes or not, without decimals but 0; None for other text."""
    bare = _ZERO_DECIMALS.sub("", text.strip()) if len(text) <= LOOKED_AT else text
    return int(re.sub(r"[^\d-]", "", bare)) if len(text) <= LOOKED_AT and _WHOLE.fullmatch(bare) else None


@lru_cache(2**16)
def shape_of(text: str) -> str:
    """Return the shape of a text: a key of `SHAPES`, or ``"words"``.

    Shapes are remembered. Texts may be personal, so each step of a release ends with ``shape_of.cache_clear()``.
    """
    bare = text[: LOOKED_AT + 1].strip()
    if not bare:
        return "words"
    is_whole = len(text) <= LOOKED_AT
    return next((name for name, matches in SHAPES.items() if matches(bare) and (is_whole or name in LONG)), "words")


def share_of_shapes(texts: Iterable[str]) -> dict[str, float]:
    """Return the share of texts with each shape, the most frequent first."""
    counts = Counter(map(shape_of, texts))
    total = counts.total()
    return {name: count / total for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))}


def is_name(text: str) -> bool:
    """Return whether a text looks like the name of a single person, ``First Last`` or ``Last, First``."""
    if len(text) > LONGEST_NAME or any(mark.isdigit() for mark in text):
        return False
    if _is_han(text):
        return 2 <= len(text.replace("·", "")) <= 6
    parts = [part.split() for part in text.split(",")]
    if len(parts) > 2 or not all(parts):
        return False
    tokens = [token for part in parts for token in part]
    full = [token for token in tokens if _is_name_token(token)]
    is_written_so = all(_is_name_token(token) or token in PARTICLES for token in tokens)
    # Initials alone, such as "A B", are not a name.
    return is_written_so and len(tokens) in NAME_TOKENS and len(full) >= 2 and any(len(token) > 2 for token in full)


def _is_name_token(token: str) -> bool:
    letters = [part for part in re.split(r"['\u2019`.\-\u2010]", token) if part]
    return bool(letters) and all(part.isalpha() or _has_marks(part) for part in letters) and _is_capitalized(token)


def _is_capitalized(token: str) -> bool:
    first = token[0]
    # Scripts without capital letters are accepted.
    return first.isupper() or first.istitle() or (first.lower() == first.upper() and first.isalpha())


def _has_marks(part: str) -> bool:
    """Return whether a text consists of letters with combining marks, as in Devanagari."""
    return part[0].isalpha() and not any(mark.isdigit() or mark.isspace() or mark in "()[]{}<>*#%&/\\" for mark in part)


def _is_han(text: str) -> bool:
    return all("\u4e00" <= mark <= "\u9fff" or "\uac00" <= mark <= "\ud7a3" or mark == "·" for mark in text)


def _is_name_list(text: str) -> bool:
    parts = [part for part in _LISTED.split(text) if part]
    if len(parts) == 1:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return len(parts) > 1 and all(is_name(part) for part in parts)
    return len(parts) > 1 and all(is_name(part) for part in parts)


def _is_interval(text: str) -> bool:
    found = _INTERVAL.fullmatch(text)
    if found is None:
        return _BOUND.fullmatch(text) is not None
    low, high = found.groups()
    has_zeros = any(re.match(r"-?0\d", end) for end in (low, high))
    return not has_zeros and float(low.replace(",", ".")) <= float(high.replace(",", "."))


def _is_ip(text: str) -> bool:
    if _MAC.fullmatch(text) or _IPV6.fullmatch(text):
        return True
    found = _IPV4.fullmatch(text)
    return found is not None and all(int(part) < 256 for part in found.group(1).split("."))


def _is_phone(text: str) -> bool:
    is_local = re.fullmatch(r"\d{3}[-.\s]\d{4}|\(?\d{3}\)?[-.\s]\d{3}[-.\s]\d{4}.{0,10}", text) is not None
    return is_local or (_is_grouped(text) and text[0] in "+0(")


def _is_grouped(text: str) -> bool:
    n_digits = sum(mark.isdigit() for mark in text)
    return 7 <= n_digits <= 20 and _GROUPED.fullmatch(text) is not None


def _is_code(text: str) -> bool:
    n_signs = sum(mark.isalnum() for mark in text)
    if any(mark.isalpha() and mark.lower() == mark.upper() for mark in text):
        return False
    return 5 <= n_signs <= 24 and any(mark.isdigit() for mark in text) and _CODE.fullmatch(text) is not None


def _is_user(text: str) -> bool:
    has_sign = any(mark.isdigit() or mark in "._-@" for mark in text)
    return len(text) >= 4 and has_sign and _USER.fullmatch(text) is not None


def _is_address(text: str) -> bool:
    if not 6 <= len(text) <= 160 or not any(mark.isdigit() for mark in text):
        return False
    tokens = [token for token in re.split(r"[\s,;]+", text) if token]
    words = [token for token in tokens if sum(mark.isalpha() for mark in token) >= 3]
    has_house = any(_HOUSE.fullmatch(token.rstrip(".")) for token in tokens)
    is_written_so = any(token[0].isupper() or token[0].lower() == token[0].upper() for token in words)
    return 2 <= len(tokens) <= 14 and bool(words) and has_house and is_written_so


def _is_free_text(text: str) -> bool:
    n_words = len(_WORD.findall(text))
    is_unspaced = n_words <= 3 and len(text) >= 15 and any("\u0e00" <= mark <= "\ud7a3" for mark in text)
    return len(text) > 80 or (n_words >= 5 and len(text) >= 25) or is_unspaced


SHAPES: Final[dict[str, Callable[[str], object]]] = {
    "e-mail addresses": _EMAIL.search,
    "URLs": _URL.search,
    "dates": _DAY.fullmatch,
    "timestamps": _TIMESTAMP.fullmatch,
    "times of day": _TIME.fullmatch,
    "IP addresses": _is_ip,
    "whole numbers": _WHOLE.fullmatch,
    "coordinates": _COORDINATES.fullmatch,
    "UUIDs": _UUID.fullmatch,
    "phone numbers": _is_phone,
    "social security numbers": _SOCIAL.fullmatch,
    "numbers": lambda text: _NUMBER.fullmatch(text) or _DECIMAL.fullmatch(text),
    "ranges": _is_interval,
    "codes of a published list": _CODE_LIST.fullmatch,
    "account numbers": _IBAN.fullmatch,
    "document numbers": _is_grouped,
    "digests": _DIGEST.fullmatch,
    "file paths": _PATH.fullmatch,
    "names of people": is_name,
    "lists of names": _is_name_list,
    "identification codes": _is_code,
    "user names": _is_user,
    "street addresses": _is_address,
    "free text": _is_free_text,
}
"""Shapes by name; the first match counts."""

LONG: Final = frozenset({"e-mail addresses", "URLs", "free text"})
"""Shapes that do not depend on the end of the text."""
MEASURES: Final = frozenset(
    {"dates", "whole numbers", "times of day", "numbers", "ranges", "codes of a published list"}
)
CONTINUOUS: Final = frozenset({"numbers"})
EMAIL: Final = frozenset({"e-mail addresses"})
OF_PEOPLE: Final = frozenset({"phone numbers", "social security numbers", "account numbers", "document numbers"})
FORMATS: Final = frozenset({"URLs", "timestamps", "coordinates", "IP addresses", "UUIDs", "digests", "file paths"})
NAMES: Final = frozenset({"names of people", "lists of names", "street addresses"})
CODES: Final = frozenset({"identification codes", "user names"})
FREE_TEXT: Final = frozenset({"free text"})
