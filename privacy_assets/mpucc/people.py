"""People with several records: the person of each row of a table, and people with the same records.

If everybody has one record, a person is a record, and people with the same records are equal records.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import read_column
from privacy_assets.columns.spelling import factorize_keys, spelled_keys
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.storage.table import Table

FEW_PEOPLE = 32
"""Up to this many lists of one length are compared directly, without a step per position of the list."""


class Subjects(NamedTuple):
    """People of a table, one entry for all ``n_alike`` who have the same records.

    ``of_row`` is the position of the person of each row of the coded table. ``weights`` is how many of them are
    assessed: 1 after deduplication, otherwise all. Only a single person can be singled out.
    """

    of_row: NDArray[np.int64]
    n_alike: NDArray[np.int32]
    weights: NDArray[np.int32]

    @property
    def n_people(self) -> int:
        """Number of people, before deduplication."""
        return int(self.n_alike.sum(dtype=np.int64))

    @property
    def n_assessed(self) -> int:
        """Number of people, after it."""
        return int(self.weights.sum(dtype=np.int64))


class RowsOfPeople(NamedTuple):
    """Distinct rows of each subject: see `group_people`.

    ``groups``, ``positions`` and ``n_equal`` have an entry per row of the coded table.
    """

    groups: NDArray[np.int64]
    positions: NDArray[np.int64]
    n_equal: NDArray[np.int32]
    subjects: Subjects


def take_person(
    frames: Mapping[str, Table], person: str, synthetic_person: str | None = None
) -> tuple[dict[str, Table], dict[str, NDArray[np.int64]]]:
    """Separate the person column from original and control, and number the people of each from 0.

    Refused if one of them lacks the column, if the synthetic table has it, if a record has no person, or if a person is
    in both. If the synthetic table has its own people, they are numbered, too; their column is only kept if the other
    tables have it.
    """
    others, people, known = dict(frames), {}, []
    for name, frame in frames.items():
        n_columns = list(frame.columns).count(person)
        if n_columns != (name != "synthetic" or person == synthetic_person):
            expected = "none: synthetic records do not belong to people" if name == "synthetic" else "one"
            raise InvalidSettingError(
                f"`person` names {person!r}, of which the {name} table has {n_columns} columns. Expected {expected}. "
                "Nothing was assessed."
            )
        if name == "synthetic":
            if synthetic_person is not None:
                people[name] = number_synthetic_people(frame, synthetic_person)
                is_compared = person != synthetic_person and synthetic_person in frames["original"].columns
                others[name] = frame if is_compared else frame.drop(columns=synthetic_person)
            continue
        read = read_column(frame[person], f"Column {person!r} of the {name} table")
        n_missing = int((read.codes < 0).sum())
        if n_missing:
            raise InvalidTableError(
                f"{n_missing} records of the {name} table have no value in the person column {person!r}; each needs "
                "one. Nothing was assessed."
            )
        codes, distinct = pd.factorize(spelled_keys(frame[person]))
        others[name], people[name] = frame.drop(columns=person), np.asarray(codes, np.int64)
        known.append(pd.Index(distinct))
    on_both = int(known[0].isin(known[1]).sum()) if len(known) == 2 else 0
    if on_both:
        raise InvalidTableError(
            f"{on_both} people have records in both original and control. The control must contain only people whom "
            "the synthesizer has not seen. Split the records by person. Nothing was assessed."
        )
    return others, people


def number_synthetic_people(table: Table, column: str) -> NDArray[np.int64]:
    """Return the synthetic person of each row from 0, by a column that must repeat and be complete."""
    expected = f"The synthetic person of each row is in column {column!r}. Expected"
    if column not in table.columns:
        raise InvalidSettingError(f"{expected} such a column in the synthetic table. Nothing was assessed.")
    read = read_column(table[column], f"Column {column!r} of the synthetic table")
    is_key = read.kind == "text" or (read.kind == "number" and not any(each % 1 for each in read.distinct.tolist()))
    n_missing = int((read.codes < 0).sum())
    codes = factorize_keys(table[column])
    n_people = int(codes.max(initial=-1)) + 1
    if n_missing or not is_key or not 1 < n_people < len(table):
        raise InvalidTableError(
            f"{expected} texts or whole numbers, one in every row, of which some repeat; found {n_people:,} values of "
            f"kind {read.kind} in {len(table):,} rows, and {n_missing:,} rows without one. If the rows were made one "
            "by one, leave the column out of the settings. Nothing was assessed."
        )
    return codes.astype(np.int64)


def pooled_people(people: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """Return the person of each row of original and control together; None if each row is a person."""
    if "control" not in people:
        return people.get("original")
    return np.concatenate([people["original"], people["control"] + people["original"].max() + 1])


def group_people(
    groups: NDArray[np.int64],
    people: NDArray[np.int64],
    positions: NDArray[np.int64],
    n_equal: NDArray[np.int32],
    n_alike: NDArray[np.int32],
    *,
    deduplicate: bool,
) -> RowsOfPeople:
    """List each person's distinct rows, and those of people with the same records once, in order of the groups.

    Equal rows have one group; a row represents ``n_equal`` records, and a person ``n_alike`` people. If records that a
    person, or people with the same records, repeat are not deduplicated, people are only the same if they have each
    record equally often. Subjects are in order of their first group.
    """
    order = np.lexsort((groups, people))
    person, group = people[order], groups[order]
    starts = np.flatnonzero(np.r_[True, (person[1:] != person[:-1]) | (group[1:] != group[:-1])])
    person, group = person[starts], group[starts]
    n_rows = np.add.reduceat(n_equal[order].astype(np.int64), starts)
    first = np.minimum.reduceat(positions[order], starts)
    counts = np.ones_like(n_rows) if deduplicate else n_rows // n_alike[person]
    subject_of, n_subjects = _same_records(person, np.column_stack([group, counts]))
    of_row = subject_of[person]
    order = np.lexsort((of_row, group))
    starts = np.flatnonzero(np.r_[True, (np.diff(group[order]) != 0) | (np.diff(of_row[order]) != 0)])
    entries = order[starts]
    is_known = subject_of >= 0
    alike = np.bincount(subject_of[is_known], n_alike[is_known], n_subjects).astype(np.int32)
    return RowsOfPeople(
        group[entries],
        np.minimum.reduceat(first[order], starts),
        np.add.reduceat(n_rows[order], starts).astype(np.int32),
        Subjects(of_row[entries], alike, np.ones_like(alike) if deduplicate else alike),
    )


def _same_records(person: NDArray[np.int64], records: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Assign a number to each person in order of their first records, the same one to people with the same records.

    ``person`` is ascending, and so are the records of each. Returns a number per person, -1 for those without records.
    """
    starts = np.flatnonzero(np.r_[True, np.diff(person) != 0])
    n_records = np.diff(np.r_[starts, len(person)])
    codes, distinct = pd.factorize(records[:, 0] * (int(records[:, 1].max()) + 1) + records[:, 1])
    lists = np.empty(len(starts), np.int64)
    n_lists = 0
    # Only people with equally many records can have the same.
    by_number = np.argsort(n_records, kind="stable")
    edges = np.flatnonzero(np.r_[True, np.diff(n_records[by_number]) != 0, True])
    for begin, end in pairwise(edges.tolist()):
        own = by_number[begin:end]
        lists[own] = n_lists + _same_lists(codes, len(distinct), starts[own], int(n_records[own[0]]))
        n_lists += end - begin
    in_order = np.argsort(records[starts, 0], kind="stable")
    subject_of = np.full(int(person[-1]) + 1, -1, np.int64)
    subject_of[person[starts[in_order]]], subjects = pd.factorize(lists[in_order])
    return subject_of, len(subjects)


def _same_lists(codes: NDArray[np.int64], n_codes: int, starts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Assign a number below their own number to lists of one length; equal lists have the same number."""
    if len(starts) < FEW_PEOPLE:
        numbers: dict[bytes, int] = {}
        return np.array([numbers.setdefault(codes[at : at + length].tobytes(), len(numbers)) for at in starts.tolist()])
    key = np.zeros(len(starts), np.int64)
    for place in range(length):
        key = pd.factorize(key * n_codes + codes[starts + place])[0]
    return key


def without_repeated_people(table: pd.DataFrame, person: str) -> pd.DataFrame:
    """Return the first of each person's equal rows, for the first of the people who have the same distinct rows."""
    columns = [name for name in table.columns if name != person]
    groups = table.groupby(columns, dropna=False, observed=True, sort=False).ngroup().to_numpy().astype(np.int64)
    people: NDArray[np.int64] = np.asarray(pd.factorize(table[person])[0], np.int64)
    ones = np.ones(len(table), np.int32)
    of_people = group_people(
        groups, people, np.arange(len(table)), ones, np.ones(int(people.max()) + 1, np.int32), deduplicate=True
    )
    # The first person of each subject; the rows of the others repeat theirs.
    first = np.full(len(of_people.subjects.n_alike), len(table))
    np.minimum.at(first, of_people.subjects.of_row, of_people.positions)
    is_kept = np.isin(people, people[first]) & ~table.duplicated().to_numpy()
    kept: pd.DataFrame = table[is_kept]
    return kept
