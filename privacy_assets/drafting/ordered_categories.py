"""Order of categories by common scales: ratings, frequencies, sizes, months, schooling, bands of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final

SCALES: Final = (
    "very low, low, medium-low, medium, moderate, medium-high, high, very high",
    "low, mid, high",
    "very bad, bad, poor, fair, moderate, good, very good, excellent",
    "poor, fair, average, good, very good, excellent, outstanding",
    "never, rarely, seldom, sometimes, occasionally, often, frequently, usually, very often, always",
    "never, less than monthly, monthly, weekly, daily",
    "never, former, current",
    "strongly disagree, disagree, somewhat disagree, neutral, neither, neither agree nor disagree, somewhat agree, "
    "agree, strongly agree",
    "very dissatisfied, dissatisfied, neutral, satisfied, very satisfied",
    "very unlikely, unlikely, neutral, likely, very likely",
    "none, minimal, very mild, mild, slight, moderate, severe, very severe, extreme",
    "not at all, slightly, a little, several days, moderately, quite a bit, more than half the days, very, extremely, "
    "nearly every day",
    "xxs, xs, s, m, l, xl, xxl, xxxl",
    "tiny, small, medium, large, extra large, huge",
    "negligible, minor, major, critical",
    "young, middle-aged, old",
    "child, teenager, adolescent, young adult, adult, senior",
    "junior, mid, senior, lead, principal",
    "bronze, silver, gold, platinum, diamond",
    "first, second, third, fourth, fifth, sixth",
    "underweight, normal, overweight, obese, obesity",
    "january, february, march, april, may, june, july, august, september, october, november, december",
    "jan, feb, mar, apr, may, jun, jul, aug, sep, oct, nov, dec",
    "monday, tuesday, wednesday, thursday, friday, saturday, sunday",
    "mon, tue, wed, thu, fri, sat, sun",
    "montag, dienstag, mittwoch, donnerstag, freitag, samstag, sonntag",
    "sehr schlecht, schlecht, mittelmäßig, gut, sehr gut",
    "niedrig, mittel, hoch, sehr hoch",
    "nie, selten, manchmal, oft, häufig, immer",
    "faible, moyen, élevé",
    "jamais, rarement, parfois, souvent, toujours",
    "none, primary, elementary, lower secondary, secondary, upper secondary, high school, vocational, college, some "
    "college, bachelor, bachelor's, undergraduate, bachelors, master, master's, masters, graduate, postgraduate, "
    "doctorate, phd",
    "preschool, 1st-4th, 5th-6th, 7th-8th, 9th, 10th, 11th, 12th, hs-grad, some-college, assoc-voc, assoc-acdm, "
    "bachelors, masters, prof-school, doctorate",
    "some high school, high school, some college, associate's degree, bachelor's degree, master's degree",
)
"""Scales, from the lowest to the highest category; a column has some of the categories."""

_RANK: Final = tuple({word.strip(): rank for rank, word in enumerate(scale.split(","))} for scale in SCALES)
_NUMBER: Final = r"[$€£]?\s*(\d+(?:[.,]\d+)*)\s*([kKmM]?)\s*[$€£%]?"
_BAND: Final = re.compile(rf"[\[(]?\s*{_NUMBER}\s*(?:-|\u2013|—|to|bis|,|\.\.)\s*{_NUMBER}[^\d]*")
_BELOW: Final = re.compile(rf"(?:<|<=|≤|under|below|up to|less than|unter|bis)\s*{_NUMBER}[^\d]*", re.IGNORECASE)
_ABOVE: Final = re.compile(
    rf"(?:>|>=|≥|over|above|more than|über|ab)\s*{_NUMBER}[^\d]*"
    rf"|{_NUMBER}\s*(?:\+|and over|and older|or more|plus)[^\d]*",
    re.IGNORECASE,
)
_STEP: Final = re.compile(r"(?:stage|grade|level|class|phase|tier|step|stufe|klasse|q)[ _-]*(\d{1,2}|[ivx]{1,4})", re.I)
_ROMAN: Final = {
    word: number for number, word in enumerate(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"), start=1)
}


def in_order(categories: Sequence[str]) -> list[str] | None:
    """Return categories from the lowest to the highest, if they belong to a common scale; None otherwise."""
    if len(categories) < 2:
        return None
    rankings: list[Callable[[str], Any]] = [*(scale.get for scale in _RANK), _band_rank, _step_rank]
    for rank_of in rankings:
        ranks = [rank_of(category.strip().casefold().replace("_", " ")) for category in categories]
        known = [rank for rank in ranks if rank is not None]
        if len(known) == len(categories) == len(set(known)):
            paired = sorted(zip(known, categories, strict=True))
            return [category for _, category in paired]
    return None


def _band_rank(text: str) -> tuple[float, float] | None:
    """Return the position of a band of numbers, which distinguishes the bands of a column."""
    found = _BAND.fullmatch(text)
    if found:
        return _number(found[1], found[2]), _number(found[3], found[4])
    found = _BELOW.fullmatch(text)
    if found:
        return -inf, _number(found[1], found[2])
    found = _ABOVE.fullmatch(text)
    if found:
        groups = [group for group in found.groups() if group is not None]
        return _number(groups[0], groups[1]), inf
    return None


def _number(digits: str, unit: str) -> float:
    plain = re.sub(r"[.,](?=\d{3}(?:\D|$))", "", digits).replace(",", ".")
    return float(plain) * {"": 1, "k": 1e3, "m": 1e6}[unit.casefold()] if plain.count(".") < 2 else inf


def _step_rank(text: str) -> int | None:
    found = _STEP.fullmatch(text)
    if found is None:
        return None
    return int(found[1]) if found[1].isdigit() else _ROMAN.get(found[1].casefold())
