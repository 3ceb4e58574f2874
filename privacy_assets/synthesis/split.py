"""Split of a table into records that the synthesizer may see and a control that it never sees."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.contract.related import RelatedTables, refuse_with_related
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc.control_size import people_in_original
from privacy_assets.setting_checks import is_integer, is_number
from privacy_assets.storage.table import StoredTable, take_rows
from privacy_assets.storage.table import Table as StoredOrFrame

Table = TypeVar("Table", pd.DataFrame, RelatedTables)


class Split(NamedTuple, Generic[Table]):
    """Both sides of a split, each in the order of the table and with a RangeIndex."""

    original: Table
    """Records that a synthesizer may see."""
    control: Table
    """Records that it never sees."""


def split_records(
    table: Table, *, train_fraction: float = 0.8, seed: int = 0, person: str | None = None
) -> Split[Table]:
    """Split `table` at random, all records of a person on one side.

    Parameters
    ----------
    table : DataFrame or RelatedTables
        Records; constant columns and repeated records are allowed. Of related tables, the people are split, and all
        rows follow them.
    train_fraction : float
        Share of the people (or records, without `person`) in `original`; above 0 and below 1. Rounded to whole people,
        with at least one on each side.
    seed : int
        Seed of the split.
    person : str, optional
        Column with the person of each row. Without it each row counts as a person. Related tables have their own.

    Raises
    ------
    InvalidSettingError
        If `train_fraction` or `seed` is out of range, or `person` is not a column.
    InvalidTableError
        If there are fewer than two people, or records without a person.
    """
    check_split_settings(train_fraction, seed)
    if isinstance(table, RelatedTables):
        refuse_with_related(person=person)
        people, n_people = _people(table.people, None)
    else:
        require_unique_text_names(table)
        people, n_people = _people(table, person)
    rows = _rows_of_sides(people, n_people, train_fraction, seed, "record" if person is None else "person")
    if isinstance(table, RelatedTables):
        return Split(*(table.take(own) for own in rows))
    return Split(*(table.iloc[own].reset_index(drop=True) for own in rows))


def split_stored(table: StoredTable, *, train_fraction: float, seed: int, person: str | None) -> Split[pd.DataFrame]:
    """Split a table like `split_records`; its columns are read one after the other."""
    people, n_people = _people(table, person)
    rows = _rows_of_sides(people, n_people, train_fraction, seed, "record" if person is None else "person")
    return Split(*(take_rows(table, own, table.columns) for own in rows))


def _rows_of_sides(
    people: NDArray[np.intp], n_people: int, train_fraction: float, seed: int, noun: str
) -> list[NDArray[np.intp]]:
    """Return the rows of both sides, given the person of each row."""
    if n_people < 2:
        raise InvalidTableError(
            f"The table has {n_people} {noun}{'' if n_people == 1 else 's'}; a split needs one on each side, so at "
            "least 2. Nothing was split."
        )
    n_original = people_in_original(n_people, train_fraction)
    chosen = np.zeros(n_people, dtype=bool)
    chosen[np.random.default_rng(seed).permutation(n_people)[:n_original]] = True
    return [np.flatnonzero(chosen[people] == is_original) for is_original in (True, False)]


def people_on_both_sides(original: pd.DataFrame, control: pd.DataFrame, person: str) -> int:
    """Count the people who have records in both tables, which must be 0 after a split."""
    for side, table in (("original", original), ("control", control)):
        if person not in table.columns:
            raise InvalidSettingError(f"`person` names {person!r}, which is not a column of the {side} table.")
    return int(pd.Index(original[person].dropna().unique()).isin(control[person].dropna().unique()).sum())


def check_split_settings(train_fraction: object, seed: int, or_else: str = "") -> None:
    """Raise InvalidSettingError unless the fraction is between 0 and 1 and the seed is a whole number of at least 0."""
    if not is_number(train_fraction) or not 0 < train_fraction < 1:
        raise InvalidSettingError(
            f"`train_fraction` is {train_fraction!r}; expected a number above 0 and below 1{or_else}."
        )
    if not is_integer(seed, 0):
        raise InvalidSettingError(f"`seed` is {seed!r}; expected a whole number, 0 or more.")


def _people(table: StoredOrFrame, person: str | None) -> tuple[NDArray[np.intp], int]:
    """Return the person of each row as a number, and the number of people."""
    if person is None:
        return np.arange(len(table)), len(table)
    if person not in table.columns:
        raise InvalidSettingError(f"`person` names {person!r}, which is not a column. There are {list(table.columns)}.")
    codes, uniques = pd.factorize(table[person])
    n_missing = int((codes < 0).sum())
    if n_missing:
        raise InvalidTableError(
            f"{n_missing} records have no value in the person column {person!r}; every record needs one."
        )
    return codes, len(uniques)
