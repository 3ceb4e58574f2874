"""Parser of generalized cells, as written by ARX, sdcMicro and this package.

==============================================  ====================================================================
``*``                                           unknown value
``missing``                                     a missing value
``[20, 29]``, ``[20, 30)``, ``(19, 29]``        an interval; a round bracket, or an outward one as in ``[20, 30[``,
                                                excludes the end; ``;`` may separate the ends; ``-Inf`` and ``Inf``
``20-29``                                       an interval of numbers with both ends
``<20``, ``<=20``, ``>64``, ``>=65``, ``65+``   an interval with one end
``{a, b}``                                      a set
``816**``                                       text, each star one character; a single star at an end any text
``[20, 29] or missing``, ``a or missing``       either
anything else, and text in JSON quotes          the value itself
==============================================  ====================================================================
"""

from __future__ import annotations

import json
import re
from math import inf
from typing import NamedTuple

from privacy_assets.anonymization.labels import MISSING_LABEL

ANY_LABEL = "*"
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_DASHED = re.compile(rf"({_NUMBER})\s*[-\u2013]\s*({_NUMBER})")
_COMPARED = re.compile(r"(<=|>=|<|>|\u2264|\u2265)\s*(.+)")
_PLUS = re.compile(rf"({_NUMBER})\s*\+")
_OR_MISSING = re.compile(rf"(.+) or {MISSING_LABEL}")
_INFINITE = {"-inf": -inf, "inf": inf, "+inf": inf, "-infinity": -inf, "infinity": inf}


class Range(NamedTuple):
    """An interval of values; None means unbounded on that side."""

    low: str | None
    high: str | None
    includes_low: bool = True
    includes_high: bool = True


class Meaning(NamedTuple):
    """Meaning of a label: the original matches at least one part.

    Every value matches if ``is_anything``; else it is in a range, is one of the texts, or matches the ``pattern`` as a
    whole.
    """

    is_anything: bool = False
    may_be_missing: bool = False
    ranges: tuple[Range, ...] = ()
    texts: tuple[str, ...] = ()
    pattern: str | None = None


ANYTHING = Meaning(is_anything=True)
MISSING = Meaning(may_be_missing=True)


def read_label(text: str) -> Meaning:
    """Read the unambiguous forms; any other text is a value."""
    text = text.strip()
    if text == ANY_LABEL:
        return ANYTHING
    if text == MISSING_LABEL:
        return MISSING
    if text.startswith('"'):
        value = _unquoted(text)
        if value is not None:
            return Meaning(texts=(value,))
    either = _OR_MISSING.fullmatch(text)
    if either:
        return read_label(either[1])._replace(may_be_missing=True)
    if len(text) > 1 and text[0] == "{" and text[-1] == "}":
        return _set(text[1:-1])
    if len(text) > 1 and text[0] in "[](" and text[-1] in "[])":
        ends = _split(text[1:-1], ",") if "," in text else _split(text[1:-1], ";")
        if len(ends) == 2:
            low, high = (None if end.lower() in _INFINITE else end for end in ends)
            return Meaning(ranges=(Range(low, high, text[0] == "[", text[-1] == "]"),))
    if text.strip(ANY_LABEL) and ANY_LABEL in text:
        return Meaning(pattern=_pattern(text))
    return Meaning(texts=(text,))


def read_number_label(text: str) -> Meaning | None:
    """Read the forms of ordered columns, such as ``20-29``, ``>=65`` and ``65+``; None for others."""
    text = text.strip()
    either = _OR_MISSING.fullmatch(text)
    if either:
        inner = read_number_label(either[1])
        return None if inner is None else inner._replace(may_be_missing=True)
    if found := _DASHED.fullmatch(text):
        return Meaning(ranges=(Range(found[1], found[2]),))
    if found := _PLUS.fullmatch(text):
        return Meaning(ranges=(Range(found[1], None),))
    if found := _COMPARED.fullmatch(text):
        is_closed = found[1] not in "<>"
        if found[1] in ("<", "<=", "\u2264"):
            return Meaning(ranges=(Range(None, found[2], True, is_closed),))
        return Meaning(ranges=(Range(found[2], None, is_closed, True),))
    return None


def _unquoted(text: str) -> str | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _set(text: str) -> Meaning:
    parts = _split(text, ",")
    values = [part for part in parts if part != MISSING_LABEL]
    unquoted = [_unquoted(value) if value.startswith('"') else value for value in values]
    return Meaning(
        may_be_missing=MISSING_LABEL in parts,
        texts=tuple(own if value is None else value for own, value in zip(values, unquoted, strict=True)),
    )


def _split(text: str, separator: str) -> list[str]:
    """Split at a separator outside JSON quotes."""
    parts, begin, is_quoted, i = [], 0, False, 0
    while i < len(text):
        if text[i] == '"' and (is_quoted or not text[begin:i].strip()):
            is_quoted = not is_quoted
        elif text[i] == "\\" and is_quoted:
            i += 1
        elif text[i] == separator and not is_quoted:
            parts.append(text[begin:i].strip())
            begin = i + 1
        i += 1
    return [*parts, text[begin:].strip()]


def _pattern(text: str) -> str:
    """Turn stars into a regular expression: a single star at an end is any text, others one character each."""
    runs = re.split(r"(\*+)", text)
    parts = []
    for place, run in enumerate(runs):
        if not run.startswith(ANY_LABEL):
            parts.append(re.escape(run))
        elif len(run) == 1 and "" in (runs[place - 1] if place else "", runs[place + 1]):
            parts.append(".+")
        else:
            parts.append(f".{{{len(run)}}}")
    return "".join(parts)
