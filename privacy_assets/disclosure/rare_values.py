"""Rare values: released text and category values that few people share and that reveal presence in the source.

A synthetic record is not a real person, but an observed value in it belongs to one: anyone who knows who has a rare
occupation learns that this person is in the source. People are counted, not records: a person with a hundred records of
a value counts once.

Only text and categories are counted. Numbers, dates and booleans of the source also occur by chance, and the mpUCC
assessment measures what they reveal in combination. This includes codes and document numbers stored as numbers, so give
such columns the type text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.columns.masks import Interval, Mask, ValueSet
from privacy_assets.errors import InvalidTableError

RARE_VALUES = "rare_values"
RARE_VALUES_RELEASED = "rare_values_released"

MOST_COLUMNS_NAMED: Final = 10
OTHER_KINDS: Final = frozenset(
    {"empty", "boolean", "integer", "floating", "decimal", "complex", "date", "datetime", "time"}
)
"""Kinds of objects, as pandas infers them, that are neither text nor categories."""


@dataclass(frozen=True)
class RareColumn:
    """Rare values of one column.

    Attributes
    ----------
    n_values : int
        Number of distinct rare values in the released column.
    n_records : int
        Number of released records with a rare value.
    """

    n_values: int
    n_records: int


@dataclass(frozen=True)
class RareValues:
    """Result of `count_rare_values`, with counts only.

    Attributes
    ----------
    people_per_value : int
        A value that fewer people share is rare.
    by_column : mapping of str to RareColumn
        All counted columns, including those without rare values.
    n_records : int
        Number of released records with at least one rare value.
    """

    people_per_value: int
    by_column: Mapping[str, RareColumn]
    n_records: int

    @property
    def total(self) -> int:
        """Number of distinct rare values that would be released, over all columns."""
        return sum(own.n_values for own in self.by_column.values())

    @property
    def metrics(self) -> dict[str, float | None]:
        """The figure that a policy can limit."""
        return {RARE_VALUES_RELEASED: float(self.total)}

    @property
    def remark(self) -> str:
        """Columns with rare values, most values first; empty without rare values."""
        found = [(name, own) for name, own in most_rare_values_first(self.by_column) if own.n_values]
        if not found:
            return ""
        shown = ", ".join(f"{name!r}: {own.n_values:,}" for name, own in found[:MOST_COLUMNS_NAMED])
        more = f", and {len(found) - MOST_COLUMNS_NAMED:,} more columns" if len(found) > MOST_COLUMNS_NAMED else ""
        return f"values shared by fewer than {self.people_per_value} people, by column: {shown}{more}"

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON values, for the manifest."""
        return {
            "people_per_value": self.people_per_value,
            RARE_VALUES_RELEASED: self.total,
            "records_with_rare_values": self.n_records,
            "by_column": {name: asdict(own) for name, own in self.by_column.items()},
        }


def count_rare_values(
    released: pd.DataFrame,
    people: Sequence[pd.DataFrame],
    *,
    people_per_value: int,
    person: str | None = None,
    columns: Sequence[str] | None = None,
    masks: Mapping[str, Mask] | None = None,
) -> RareValues:
    """Count the text and category values of a released table that some people have, but fewer than required.

    Missing values do not count. A value that nobody has is invented and does not count. Values are compared exactly:
    `Nurse` and `nurse` are different.

    Parameters
    ----------
    released : DataFrame
        The table to be released.
    people : sequence of DataFrame
        The records of all available real people, such as originals and control, with original values.
    people_per_value : int
        A value that fewer people share is rare.
    person : str, optional
        The column of ``people`` with the person of each row, with the same codes in all tables. Rows without a person
        count as one person. By default each row counts as a person.
    columns : sequence of str, optional
        Columns of ``people`` to count; by default all except the person. Columns other than text and categories are
        ignored.
    masks : mapping of str to Mask, optional
        Masks of generalized columns. For sets and intervals the values listed in labels count. By default all columns
        are released unchanged.

    Returns
    -------
    RareValues
        Counts by column.

    Raises
    ------
    InvalidTableError
        If a table lacks a column to examine.

    Notes
    -----
    Cost is linear in the cells of text and categories.
    """
    names = [name for name in people[0].columns if name != person] if columns is None else list(columns)
    masks = masks or {}
    _require_columns(people, [*names, *([] if person is None else [person])])
    looked_at = [name for name in names if any(is_text_or_category(table[name]) for table in people)]
    _require_columns([released], [shown for name in looked_at for shown in _columns_shown(name, masks)])
    whose = None if person is None else pd.factorize(pd.concat([table[person] for table in people]))[0]
    by_column: dict[str, RareColumn] = {}
    shows_any = np.zeros(len(released), dtype=bool)
    for name in looked_at:
        held = [_factorized(table[name]) for table in people]
        as_text = isinstance(masks.get(name), ValueSet | Interval)
        rare = _rare_among(held, whose, people_per_value, as_text=as_text)
        shown: set[Any] = set()
        shows = np.zeros(len(released), dtype=bool)
        for column in _columns_shown(name, masks):
            codes, values = _factorized(released[column])
            spelled = [_spelled(value, masks.get(name)) & rare for value in values]
            shown = shown.union(*spelled)
            shows |= np.array([*map(bool, spelled), False])[codes]
        by_column[name] = RareColumn(len(shown), int(shows.sum()))
        shows_any |= shows
    return RareValues(people_per_value, by_column, int(shows_any.sum()))


def is_text_or_category(column: pd.Series[Any]) -> bool:
    """Whether a column has text or categories; objects count as text unless all are of another known kind."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return True
    if types.is_object_dtype(dtype):
        return types.infer_dtype(column, skipna=True) not in OTHER_KINDS
    return bool(types.is_string_dtype(dtype))


def people_of_values(
    codes: NDArray[np.integer[Any]], n_values: int, whose: NDArray[np.integer[Any]] | None
) -> NDArray[np.int64]:
    """Count the people of each value.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        Value of each row, from 0; -1 for missing.
    n_values : int
        Number of values.
    whose : ndarray of shape (n_rows,), optional
        Code of the person of each row; -1 for unknown, which counts as one person. By default each row is a person.

    Returns
    -------
    ndarray of shape (n_values,), dtype=int64
        Number of distinct people by value.
    """
    is_known = codes >= 0
    codes = codes[is_known].astype(np.int64)
    if whose is not None:
        whose = whose[is_known].astype(np.int64) + 1
        n_people = int(whose.max(initial=0)) + 1
        codes = pd.unique(codes * n_people + whose) // n_people
    return np.bincount(codes, minlength=n_values).astype(np.int64)


def most_rare_values_first(by_column: Mapping[str, RareColumn]) -> list[tuple[str, RareColumn]]:
    """Return columns and their counts, those with the most rare values first, and ties by name."""
    return sorted(by_column.items(), key=lambda item: (-item[1].n_values, item[0]))


def _require_columns(tables: Sequence[pd.DataFrame], names: Sequence[str]) -> None:
    missing = sorted({name for table in tables for name in names if name not in table.columns})
    if missing:
        raise InvalidTableError(f"Rare values cannot be counted: a table lacks the columns {missing}.")


def _columns_shown(name: str, masks: Mapping[str, Mask]) -> Iterator[str]:
    mask = masks.get(name)
    if isinstance(mask, Interval):
        yield from (mask.low, mask.high)
    else:
        yield mask.column if isinstance(mask, ValueSet) else name


def _factorized(column: pd.Series[Any]) -> tuple[NDArray[np.intp], list[Any]]:
    """Return the position of each cell among the distinct values, -1 for missing, and these values."""
    codes, values = pd.factorize(column)
    return codes, list(values)


def _spelled(value: Any, mask: Mask | None) -> set[Any]:
    """Return the values in a released cell, as text if it is a label."""
    if isinstance(mask, ValueSet):
        return {text for text in json.loads(value) if text is not None}
    return {str(value)} if isinstance(mask, Interval) else {value}


def _rare_among(
    held: Sequence[tuple[NDArray[np.intp], list[Any]]],
    whose: NDArray[np.intp] | None,
    people_per_value: int,
    *,
    as_text: bool,
) -> set[Any]:
    """Return the values that some people have, but fewer than required."""
    numbers: dict[Any, int] = {}
    joint = []
    for codes, values in held:
        own = [numbers.setdefault(str(value) if as_text else value, len(numbers)) for value in values]
        joint.append(np.array([*own, -1], dtype=np.int64)[codes])
    counts = people_of_values(np.concatenate(joint), len(numbers), whose)
    return {value for value, number in numbers.items() if 0 < counts[number] < people_per_value}
