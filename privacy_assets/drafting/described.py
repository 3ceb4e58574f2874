"""Description of a column for a draft: type, format, precision, categories and range, from its profile."""

from __future__ import annotations

import datetime as dt
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import pandas as pd
from pandas.api import types

from privacy_assets.contract.conversion import INT64, ColumnType, convert
from privacy_assets.contract.mapping import DECIDE
from privacy_assets.display.numbers import percent
from privacy_assets.drafting.ordered_categories import in_order
from privacy_assets.drafting.profile import MOST_CATEGORIES, ColumnProfile
from privacy_assets.drafting.readings import AMBIGUOUS, MAX_DECIMALS, MISSING_SIGNS, PLAUSIBLE, Reading
from privacy_assets.errors import InvalidTableError

ROWS_PER_CATEGORY: Final = 5
"""Texts are categories if each has at least this many rows on average."""
FEWEST_OF_A_KIND: Final = 0.2
"""Share of numbers among texts at which both are reported."""
TEMPLATES: Final = ("{{", "{%", "{#")
"""Dagster would evaluate a text that contains these in a YAML file."""


@dataclass(frozen=True)
class Described:
    """A column with the keys of its contract, except the role."""

    profile: ColumnProfile
    description: Mapping[str, Any]
    remarks: tuple[str, ...] = ()

    def convert(self, column: pd.Series) -> pd.Series:
        """Return values of the column in their type, for the examination of their shapes."""
        own = self.description
        if types.is_numeric_dtype(column.dtype) or types.is_datetime64_any_dtype(column.dtype):
            return column
        form, mark = (own.get(key) if own.get(key) != DECIDE else None for key in ("format", "decimal"))
        kind: Any = own["type"].partition("64")[0]
        return convert(column, ColumnType(kind, True, None, None, False, form, mark, own.get("missing", ()))).column


def describe_column(profile: ColumnProfile, missing_words: frozenset[str]) -> Described:
    """Describe a column by its profile, and words for missing values that the table uses elsewhere."""
    kinds = set(profile.kinds)
    is_typed = len(kinds) == 1 and all(profile.typed[kind].fits for kind in kinds & set(profile.typed))
    is_text = kinds != {"boolean"} and not (is_typed and kinds <= {"number", "datetime"} and len(profile.zones) < 2)
    if is_text and not profile.fits_text:
        raise InvalidTableError(
            f"The column {profile.name!r} has values that no type of a contract stores exactly: {_counted(profile)}. "
            "Expected one kind of value: finite numbers, truth values, texts, times of day, or datetimes to the "
            "microsecond in the years 1 to 9999, all with a time zone or all without. Convert the column, or drop it."
        )
    if len(kinds) > 1:
        remark = f"decide: mixed types, {_counted(profile)}. Correct the column in the table; it is read as text here."
        return _described(profile, {"type": "text"}, remark)
    if profile.categories is not None and kinds <= {"text"}:
        return _of_categories(profile)
    if kinds == {"text"}:
        return _of_texts(profile, missing_words)
    if kinds == {"number"} and is_typed:
        return _described(profile, _of_number(profile.typed["number"]))
    if kinds == {"datetime"}:
        zone = profile.zone
        own = _of_datetime(profile.typed["datetime"], "", f"datetime64[us, {zone}]" if zone else "datetime")
        return _described(profile, own)
    if kinds == {"boolean"}:
        return _described(profile, {"type": "boolean"})
    return _described(profile, {"type": "text"})


def _counted(profile: ColumnProfile) -> str:
    return ", ".join(f"{profile.kinds[kind]:,} {_NAMES[kind]}" for kind in sorted(profile.kinds))


_NAMES: Final = {
    "text": "texts",
    "number": "numbers",
    "datetime": "datetimes",
    "boolean": "truth values",
    "other": "times of day, durations or others",
}


def _of_categories(profile: ColumnProfile) -> Described:
    """Describe a column that is already a category: by its own categories, if these are few."""
    categories = list(profile.categories or [])
    if len(categories) > MOST_CATEGORIES or not all(_can_be_listed(each) for each in categories):
        return _of_texts(profile, frozenset())
    own: dict[str, Any] = {"type": "category", "categories": categories}
    return _described(profile, own | ({"ordered": True} if profile.is_ordered else {}))


def _of_texts(profile: ColumnProfile, missing_words: frozenset[str]) -> Described:
    readings = [each for each in profile.readings or [] if each.fits and each.n_seen]
    if readings:
        own, remarks = _of_readings(readings)
        missing = sorted(profile.missing_texts)
        return _described(profile, own | ({"missing": missing} if missing else {}), *remarks)
    remarks = _plausible(profile)
    missing = sorted(text for text in profile.missing_texts if text in missing_words or text.strip() in MISSING_SIGNS)
    if sum(profile.missing_texts[text] for text in missing) == profile.n_values:
        missing = []  # a column needs values
    own = _of_few(profile, frozenset(missing)) or {"type": "text"}
    unsure = sorted(set(profile.missing_texts) - set(missing))
    if unsure and own["type"] == "category":
        remarks = (
            *remarks,
            f"decide: is one of {len(unsure)} of its categories a missing value? Then: `missing: [...]`",
        )
    return _described(profile, own | ({"missing": missing} if missing else {}), *remarks)


def _plausible(profile: ColumnProfile) -> tuple[str, ...]:
    """Report the kind that nearly all or many texts can be read as, because the others may be mistakes."""
    if profile.n_lists >= PLAUSIBLE * profile.n_values:
        return (
            "decide: its texts look like lists or records. A contract has columns of single values: turn the parts "
            "into columns or a separate table, or drop the column.",
        )
    # Digits that begin with a zero are a code, such as a zip code, and not a mistake.
    readings = [
        each
        for each in profile.readings or []
        if each.n_seen and not each.fits and not (each.kind == "number" and profile.is_padded)
    ]
    if not readings:
        of_numbers = profile.n_numbers / profile.n_values
        if profile.is_padded or not FEWEST_OF_A_KIND <= of_numbers < PLAUSIBLE:
            return ()
        n_others = profile.n_values - profile.n_numbers
        said = f"{percent(of_numbers)} of its texts are numbers, {n_others:,} are not"
        return (f"decide: {said}. Are these values of one kind?",)
    best = max(readings, key=lambda each: each.n_read)
    what = {"number": "numbers", "datetime": "datetimes", "boolean": "truth values"}[best.kind]
    form = f" ({best.form})" if best.form else ""
    n_others = best.n_seen - best.n_read
    share = percent(best.n_read / best.n_seen)
    return (
        f"decide: {share} of its texts are {what}{form}, {n_others:,} are not. Correct these, or leave it as text.",
    )


def _of_readings(readings: list[Reading]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Choose among the readings that fit all values; if several do, a person decides."""
    numbers = {each.form: each for each in readings if each.kind == "number"}
    times = {each.form: each for each in readings if each.kind == "datetime"}
    if any(each.kind == "boolean" for each in readings):
        return {"type": "boolean"}, ()
    if "" in times:
        return _of_iso(times[""])
    if times and (not numbers or all(form.startswith("%Y%m%d") for form in times)):
        form, remarks = _one_format(list(times))
        reading = times[next(iter(times))]
        own = _of_datetime(reading, form, "datetime")
        if form == DECIDE:
            own = {key: value for key, value in own.items() if key not in ("min", "max")}
        return own, remarks
    if "" in numbers:
        return _of_number(numbers[""]), ()
    if len(numbers) == 2:
        remark = 'decide: is 1,234 a thousand or a fraction? Write `decimal: "."` or `decimal: ","`'
        return {"type": "float", "decimal": DECIDE}, (remark,)
    mark, reading = next(iter(numbers.items()))
    return _of_number(reading) | {"decimal": mark}, ()


def _one_format(forms: list[str]) -> tuple[str, tuple[str, ...]]:
    for first, second in AMBIGUOUS:
        if any(form.startswith(first) for form in forms) and any(form.startswith(second) for form in forms):
            shown = " or ".join(repr(form) for form in forms if form.startswith((first, second)))
            return DECIDE, (f"decide: does the day or the month come first? No day is above the 12th: {shown}",)
    # Years with four digits before years with two, which read fewer texts.
    return min(forms, key=lambda form: ("%y" in form, forms.index(form))), ()


def _of_iso(reading: Reading) -> tuple[dict[str, Any], tuple[str, ...]]:
    if len({zone == "" for zone in reading.zones}) > 1:
        return {"type": "text"}, ("decide: some times have a time zone, others have none; correct them in the table",)
    remark = "its times have offsets; to keep the local clock, name the zone, such as datetime64[us, Europe/Paris]"
    has_offsets = bool(reading.zones - {"", "Z", "+00:00", "+0000"})
    kind = "datetime64[us, UTC]" if reading.zones - {""} else "datetime"
    return _of_datetime(reading, "", kind), ((remark,) if has_offsets else ())


def _of_number(reading: Reading) -> dict[str, Any]:
    low, high = reading.low, reading.high
    if low is None:
        return {"type": "float"}
    is_whole = reading.decimals == 0 and "integer" in reading.admits
    own: dict[str, Any] = {"type": "integer" if is_whole else "float"}
    low, high = rounded_outward(low, high)
    if is_whole:
        own |= {"min": in_int64(low), "max": in_int64(high)}
    else:
        own |= {"min": in_float64(low), "max": in_float64(high)}
    if not is_whole and reading.decimals <= MAX_DECIMALS:
        own["precision"] = reading.decimals
    return own


def rounded_outward(low: float, high: float) -> tuple[float, float]:
    """Return a range that contains another one, with ends of two digits."""
    return outward(low, high, unit_of_two_digits(low, high))


def in_float64(end: float) -> float:
    """Return an end as the nearest finite number."""
    return float(min(max(end, -sys.float_info.max), sys.float_info.max))


def in_int64(end: float) -> int:
    """Return a whole end as the nearest one that a contract can have."""
    return min(max(int(end), int(INT64.min)), int(INT64.max))


def unit_of_two_digits(low: Any, high: Any) -> Fraction:
    """Return the unit of the second digit of the end that is farther from 0."""
    largest = max(abs(low), abs(high))
    return Fraction(10) ** (math.floor(math.log10(largest)) - 1) if largest else Fraction(1)


def outward(low: Any, high: Any, unit: Fraction) -> tuple[float, float]:
    """Round the ends of a range outward to units; a range that begins near 0 begins at 0."""
    # By the decimals that are written, so that 0.3 stays 0.3, and whole numbers beyond floats stay exact.
    ends = [Fraction(str(end)) / unit for end in (low, high)]
    first, last = math.floor(ends[0]) * unit, math.ceil(ends[1]) * unit
    kind = int if unit.denominator == 1 else float
    return kind(0 if 0 < first < Fraction(str(high)) / 10 else first), kind(last)


def _of_datetime(reading: Reading, form: str, kind: str) -> dict[str, Any]:
    own = {"type": kind, "precision": reading.finest, "min": f"{reading.low.year:04d}-01-01"}
    own |= {"max": f"{reading.high.year + 1:04d}-01-01"} if reading.high.year < dt.MAXYEAR else {}
    return own | ({"format": form} if form else {})


def _of_few(profile: ColumnProfile, missing: frozenset[str]) -> dict[str, Any] | None:
    """Describe a column of few texts that many rows share as a category."""
    if profile.few is None:
        return None
    counts = {value: count for value, count in profile.few.items() if value not in missing}
    is_shared = sum(counts.values()) >= ROWS_PER_CATEGORY * len(counts)
    if not 1 <= len(counts) <= MOST_CATEGORIES or not is_shared or not all(map(_can_be_listed, counts)):
        return None
    ordered = in_order(list(counts))
    return {"type": "category", "categories": ordered or sorted(counts)} | ({"ordered": True} if ordered else {})


def _can_be_listed(value: object) -> bool:
    return not isinstance(value, str) or (len(value) <= 80 and not any(mark in value for mark in TEMPLATES))


def _described(profile: ColumnProfile, own: dict[str, Any], *remarks: str) -> Described:
    kind = own.pop("type")
    is_missing = profile.n_missing > 0 or any(text in profile.missing_texts for text in own.get("missing", ()))
    return Described(profile, {"type": kind} | ({"nullable": True} if is_missing else {}) | own, remarks)
