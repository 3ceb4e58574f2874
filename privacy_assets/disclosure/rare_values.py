"""Text and category values that few people have, and that appear in what would leave: they prove presence.

A synthetic record is nobody's, but a value in it that was not made up is somebody's: whoever knows who has a rare
occupation learns that this person is in the source. Counted are people, not records: one person with a hundred records
of a value is one.

Only text and categories are looked at. Numbers, dates and booleans that occur in the source also occur by chance, and
what they give away in combination is what the mpUCC assessment measures; a code or a document number that is stored as
a number is one of them, so give such columns the type text.
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
        Different rare values that appear in the released column.
    n_records : int
        Released records that show one.
    """

    n_values: int
    n_records: int


@dataclass(frozen=True)
class RareValues:
    """What `count_rare_values` found; counts only.

    Attributes
    ----------
    people_per_value : int
        A value that fewer people have is rare.
    by_column : mapping of str to RareColumn
        Every column that was looked at, those without rare values included.
    n_records : int
        Released records that show at least one rare value.
    """

    people_per_value: int
    by_column: Mapping[str, RareColumn]
    n_records: int

    @property
    def total(self) -> int:
        """Different rare values that would leave, over all columns."""
        return sum(own.n_values for own in self.by_column.values())

    @property
    def metrics(self) -> dict[str, float | None]:
        """The figure that a policy can limit."""
        return {RARE_VALUES_RELEASED: float(self.total)}

    @property
    def remark(self) -> str:
        """Which columns the figure comes from, most values first; empty without rare values."""
        found = sorted(((own.n_values, name) for name, own in self.by_column.items() if own.n_values), key=_most_first)
        if not found:
            return ""
        shown = ", ".join(f"{name!r}: {count:,}" for count, name in found[:MOST_COLUMNS_NAMED])
        more = f", and {len(found) - MOST_COLUMNS_NAMED:,} more columns" if len(found) > MOST_COLUMNS_NAMED else ""
        return f"values that fewer than {self.people_per_value} people have, by column: {shown}{more}"

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
    """Count the text and category values of a released table that somebody has, and fewer people than asked for.

    A missing value is not a value. A value that nobody has was made up, and proves nothing. Values are compared as
    they are: `Nurse` and `nurse` are two.

    Parameters
    ----------
    released : DataFrame
        What would leave.
    people : sequence of DataFrame
        The records of all real people at hand, such as originals and control, with the columns as values.
    people_per_value : int
        A value that fewer people have is rare.
    person : str, optional
        The column of ``people`` that says whose record a row is, with one code for one person in all of them. Rows
        without a person count as one. By default each row counts as a person.
    columns : sequence of str, optional
        Columns of ``people`` to look at; by default all but the person. Those that are neither text nor categories are
        left out.
    masks : mapping of str to Mask, optional
        How columns were generalized. Of a set or an interval the values that its labels spell out are looked at. By
        default all columns are released as they are.

    Returns
    -------
    RareValues
        Counts by column.

    Raises
    ------
    InvalidTableError
        If a table lacks a column that is to be examined.

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
    """Whether a column holds text or categories; objects do, unless all of them are of another known kind."""
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
        Code of the person of each row; -1 for unknown, which counts as one. By default each row is a person.

    Returns
    -------
    ndarray of shape (n_values,), dtype=int64
        Different people by value.
    """
    is_known = codes >= 0
    codes = codes[is_known].astype(np.int64)
    if whose is not None:
        whose = whose[is_known].astype(np.int64) + 1
        n_people = int(whose.max(initial=0)) + 1
        codes = np.unique(codes * n_people + whose) // n_people
    return np.bincount(codes, minlength=n_values).astype(np.int64)


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
    """Return the place of each cell in the different values, -1 for missing, and these values."""
    codes, values = pd.factorize(column)
    return codes, list(values)


def _spelled(value: Any, mask: Mask | None) -> set[Any]:
    """Return the values that a released cell shows, as text where it is a label."""
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
    """Return the values that somebody has, and fewer people than asked for."""
    numbers: dict[Any, int] = {}
    joint = []
    for codes, values in held:
        own = [numbers.setdefault(str(value) if as_text else value, len(numbers)) for value in values]
        joint.append(np.array([*own, -1], dtype=np.int64)[codes])
    counts = people_of_values(np.concatenate(joint), len(numbers), whose)
    return {value for value, number in numbers.items() if 0 < counts[number] < people_per_value}


def _most_first(found: tuple[int, str]) -> tuple[int, str]:
    return -found[0], found[1]
