"""Whether every released record is a person of its own, for figures that count records."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from privacy_assets.errors import InvalidTableError

PEOPLE_WITH_SEVERAL_RECORDS = "people_with_several_records"
"""What the settings of an assessment call them."""


class RecordsOfPeople(NamedTuple):
    """How many people have several records.

    Attributes
    ----------
    n_people : int
        People with more than one record.
    n_of_these : int
        Records that they have together.
    n_records : int
        All records.
    """

    n_people: int
    n_of_these: int
    n_records: int


def count_records_of_people(whose: pd.Series[Any]) -> RecordsOfPeople:
    """Count the people who have several records.

    Parameters
    ----------
    whose : Series
        The person of each record; a missing cell says of nobody that it is theirs.
    """
    counts = whose.value_counts(dropna=True).to_numpy()
    several = counts[counts > 1]
    return RecordsOfPeople(len(several), int(several.sum()), len(whose))


def require_one_record_each(found: RecordsOfPeople) -> None:
    """Refuse to count records where they are not people.

    Raises
    ------
    InvalidTableError
        If a person has several records.
    """
    if found.n_people:
        raise InvalidTableError(
            f"The semantic risk counts records, and a person who has several stands behind their own: {found.n_people} "
            f"people have {found.n_of_these} of the {found.n_records} records. Expected one record per person, because "
            "the policy limits the semantic risk, or records at risk are withheld. Aggregate the source to one record "
            "per person, or leave the limit out. Nothing was stored."
        )


def note_on_several_records(found: RecordsOfPeople) -> str:
    """Say of an assessment that no limit is on what its figures do not count; empty if they do."""
    if not found.n_people:
        return ""
    return (
        f"The semantic risk counts records, not people: {found.n_people} people have {found.n_of_these} of the "
        f"{found.n_records} records, and stand behind their own. The risk of a person may be higher."
    )
