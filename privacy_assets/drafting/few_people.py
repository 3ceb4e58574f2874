"""What a draft leaves out because fewer than 5 people have it: lists with rare categories, and ends of ranges."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import pandas as pd

from privacy_assets.drafting.described import Described, in_float64, in_int64, outward, unit_of_two_digits

FEWEST_PEOPLE: Final = 5
"""Fewest people who share what a draft writes of a table."""
COARSER: Final = (1, 10, 100)


def without_few_people(described: Described, rows: pd.DataFrame, person: str | None) -> Described:
    """Leave out the categories of a column if some are rare, and move the ends of its range outward.

    The ends have two digits or those of a year. ``rows`` are all, or a sample of them, in which each person counts at
    most as in all.
    """
    own, remarks = dict(described.description), list(described.remarks)
    column = rows[described.profile.name]
    # The profile counts all rows, and each is a person.
    people = pd.Series(rows.index, rows.index) if person is None else rows[person].astype(object)
    if "categories" in own:
        every = described.profile.few if person is None else people.groupby(column.astype(object)).nunique()
        n_all = len(own["categories"])
        n_rare = sum(every is None or every.get(each, 0) < FEWEST_PEOPLE for each in own["categories"])
        if n_rare:
            own = {key: value for key, value in own.items() if key not in ("categories", "ordered")}
            remarks.append(
                f"{n_rare:,} of its {n_all:,} categories have fewer than {FEWEST_PEOPLE} people, so none is listed: "
                "combine these in the table, or list what the column may have: `categories: [...]`"
            )
    if own.keys() & {"min", "max"}:
        shared = _shared_ends(own, described.convert(column), people)
        left_out = [end for end in ("min", "max") if end in own and end not in shared]
        own = {key: shared.get(key, value) for key, value in own.items() if key not in left_out}
        if left_out:
            said = " and ".join(left_out)
            remarks.append(f"{said} left out, because fewer than {FEWEST_PEOPLE} people are near; set what can occur")
    return replace(described, description=own, remarks=tuple(remarks))


def _shared_ends(own: dict[str, Any], column: pd.Series, people: pd.Series) -> dict[str, Any]:
    """Return the least coarse ends that would be the same without the people who are farthest out."""
    by_person = column.dropna().groupby(people)
    # Not `nsmallest`, which knows no float16 and no decimals of Arrow.
    lowest, highest = by_person.min().sort_values(), by_person.max().sort_values(ascending=False)
    if len(lowest) < FEWEST_PEOPLE:
        return {}
    fifth = lowest.iloc[FEWEST_PEOPLE - 1], highest.iloc[FEWEST_PEOPLE - 1]
    rounded = _rounded_years if isinstance(own["min"], str) else _rounded_numbers
    ends: dict[str, Any] = {}
    for coarser in reversed(COARSER):
        drafted, of_fifth = rounded(own, fifth, coarser)
        ends |= {end: drafted[end] for end in drafted if end in own and drafted[end] == of_fifth.get(end)}
    return ends


def _rounded_numbers(own: dict[str, Any], fifth: tuple[Any, Any], coarser: int) -> list[dict[str, Any]]:
    """Return the ends of the draft, and those of the fifth people, rounded outward to a unit of the latter."""
    exact = [Fraction(str(end)) for end in fifth]
    unit = unit_of_two_digits(*exact) * coarser
    both = [outward(own["min"], own["max"], unit), outward(exact[0], exact[1], unit)]
    kind = in_int64 if isinstance(own["min"], int) else in_float64
    return [{"min": kind(low), "max": kind(high)} for low, high in both]


def _rounded_years(own: dict[str, Any], fifth: tuple[Any, Any], coarser: int) -> list[dict[str, Any]]:
    both = (int(own["min"][:4]), int(own.get("max", "")[:4] or dt.MAXYEAR)), (fifth[0].year, fifth[1].year + 1)
    years = [(low // coarser * coarser, -(-high // coarser) * coarser) for low, high in both]
    # A year that no datetime has is no end.
    named = [zip(("min", "max"), each, strict=True) for each in years]
    return [{end: f"{year:04d}-01-01" for end, year in each if 0 < year <= dt.MAXYEAR} for each in named]
