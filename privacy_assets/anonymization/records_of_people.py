"""Checks that every released record is a different person, for figures that count records."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from privacy_assets.errors import InvalidTableError

PEOPLE_WITH_SEVERAL_RECORDS = "people_with_several_records"
"""The name of these counts in the settings of an assessment."""


class RecordsOfPeople(NamedTuple):
    """Counts of the people with more than one record, of their records, and of all records."""

    n_people: int
    n_of_these: int
    n_records: int


def count_records_of_people(whose: pd.Series[Any]) -> RecordsOfPeople:
    """Count the people who have several records; a record with a missing cell belongs to nobody."""
    counts = whose.value_counts(dropna=True).to_numpy()
    several = counts[counts > 1]
    return RecordsOfPeople(len(several), int(several.sum()), len(whose))


def require_one_record_each(found: RecordsOfPeople) -> None:
    """Refuse to count records if people have several."""
    if found.n_people:
        raise InvalidTableError(
            "The semantic risk counts records, so several records of one person would make each other look less "
            f"unique: {found.n_people} people have {found.n_of_these} of the {found.n_records} records. Expected one "
            "record per person, because the policy limits the semantic risk, or records at risk are withheld. "
            "Aggregate the source to one record per person, or remove the limit. Nothing was stored."
        )


def note_on_several_records(found: RecordsOfPeople) -> str:
    """Note for an assessment without a limit that its figures count records; empty if records are people."""
    if not found.n_people:
        return ""
    return (
        f"The semantic risk counts records, not people: {found.n_people} people have {found.n_of_these} of the "
        f"{found.n_records} records, which make each other look less unique. The risk of a person may be higher."
    )
