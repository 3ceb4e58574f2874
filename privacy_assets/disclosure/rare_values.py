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
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.columns.coding import ColumnValues, EncodedColumn, people_of_values
from privacy_assets.columns.masks import Exact, Interval, Mask, ValueSet
from privacy_assets.columns.spelling import canonical, encode_spelled
from privacy_assets.columns.unknown_values import UnknownValues, blind_columns, said_of_blind, unknown_shares
from privacy_assets.errors import InvalidTableError
from privacy_assets.mpucc.preprocess import read_columns
from privacy_assets.storage.table import Table

RARE_VALUES = "rare_values"
RARE_VALUES_RELEASED = "rare_values_released"

MOST_COLUMNS_NAMED: Final = 10
Cells = list[tuple[NDArray[np.integer[Any]], list[list[int]]]]
"""By released column, the distinct cell of each row, and the distinct values in each distinct cell."""
OTHER_KINDS: Final = frozenset(
    {"empty", "boolean", "integer", "floating", "decimal", "complex", "date", "datetime", "time"}
)
"""Kinds of objects, as pandas infers them, that are neither text nor categories."""


@dataclass(frozen=True)
class RareColumn:
    """Numbers of distinct rare values in a released column, and of records with one."""

    n_values: int
    n_records: int


@dataclass(frozen=True)
class RareValues:
    """Result of `count_rare_values`, with counts only.

    A value that fewer than ``people_per_value`` share is rare. ``by_column`` has all counted columns, including those
    without rare values; ``n_records`` is the number of released records with at least one, and ``unknown_values`` the
    share of released values that nobody has, by column (`unknown_shares`).
    """

    people_per_value: int
    by_column: Mapping[str, RareColumn]
    n_records: int
    unknown_values: UnknownValues = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of distinct rare values that would be released, over all columns."""
        return sum(own.n_values for own in self.by_column.values())

    @property
    def metrics(self) -> dict[str, float | None]:
        """The figure that a policy can limit; None if a column is blind."""
        return {RARE_VALUES_RELEASED: None if blind_columns(self.unknown_values) else float(self.total)}

    @property
    def remark(self) -> str:
        """Blind columns, or columns with rare values, most values first; empty without either."""
        if blind_columns(self.unknown_values):
            return said_of_blind(self.unknown_values)
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
            RARE_VALUES_RELEASED: None if blind_columns(self.unknown_values) else self.total,
            "records_with_rare_values": self.n_records,
            "by_column": {name: asdict(own) for name, own in self.by_column.items()},
        }


def count_rare_values(
    released: Table,
    people: Sequence[Table],
    *,
    people_per_value: int,
    person: str | None = None,
    columns: Sequence[str] | None = None,
    masks: Mapping[str, Mask] | None = None,
    invented: Sequence[str] = (),
) -> RareValues:
    """Count the text and category values of a released table that some people have, but fewer than required.

    Missing values do not count. A value that nobody has is invented and does not count. A value is rare if few people
    have it as it is written, or in any spelling (`canonical`): ``007`` of one person is rare beside ``7`` of a hundred.

    Parameters
    ----------
    released : DataFrame
        The table to be released.
    people : sequence of DataFrame
        The records of all available real people, such as originals and control, with original values.
    people_per_value : int
        A value that fewer people share is rare.
    person : str, optional
        The column of ``people`` with the person of each row, alike in all tables; rows without one count as one person.
        By default each row counts as a person.
    columns : sequence of str, optional
        Columns of ``people`` to count, if they are text or categories; by default all except the person.
    masks : mapping of str to Mask, optional
        Masks of generalized columns. For sets and intervals the values listed in labels count.
    invented : sequence of str
        Columns of invented values, in which it does not matter that nobody has them.

    Raises
    ------
    InvalidTableError
        If a table lacks a column to examine, or its values are of another kind than those of the others.
    """
    names = [name for name in people[0].columns if name != person] if columns is None else list(columns)
    masks = masks or {}
    _require_columns(people, [*names, *([] if person is None else [person])])
    is_plain = {name: isinstance(masks.get(name), Exact | None) and name in released.columns for name in names}
    looked_at = [
        name
        for name in names
        if any(_may_count(table, name) for table in ([*people, released] if is_plain[name] else people))
    ]
    _require_columns([released], [shown for name in looked_at for shown in _columns_shown(name, masks)])
    whose = None if person is None else pd.factorize(pd.concat([table[person] for table in people]))[0]
    by_column: dict[str, RareColumn] = {}
    shows_any = np.zeros(len(released), dtype=bool)
    unknown_values: dict[str, dict[str, Any]] = {}
    for name in looked_at:
        compared = {f"table {number} of people": table for number, table in enumerate(people, 1)}
        compared |= {"released table": released} if is_plain[name] else {}
        first, *others = read_columns(compared, [name])[name]
        if is_plain[name]:
            shown = others.pop()
            cells: Cells = [(shown.codes, [[place] for place in range(len(shown.distinct))])]
        else:
            shown, cells = _spelled_out([released[own] for own in _columns_shown(name, masks)], masks[name])
            first, *others = (_as_texts(own) for own in (first, *others))
        encoded = encode_spelled([first, shown, *others])
        if is_plain[name]:
            shares = unknown_shares([first, shown, *others], encoded, whose, may_be_invented=name in invented)
            unknown_values |= {} if shares is None else {name: shares}
        values = np.zeros(len(shown.distinct), np.int64)
        values[shown.codes[shown.codes >= 0]] = encoded.codes[1][shown.codes >= 0]
        known = {value for each in (first, *others) for value in each.distinct.tolist()}
        is_known = np.array([value in known for value in shown.distinct.tolist()], np.bool_)
        as_written, as_spelled = _are_rare(encoded, whose, people_per_value)
        is_rare = np.where(is_known, as_written[values], as_spelled[values])
        own = np.zeros(len(released), dtype=bool)
        for codes, places in cells:
            own |= np.array([*(bool(is_rare[each].any()) for each in places), False])[codes]
        by_column[name] = RareColumn(len(np.unique(values[is_rare])), int(own.sum()))
        shows_any |= own
    return RareValues(people_per_value, by_column, int(shows_any.sum()), unknown_values)


def _may_count(table: Table, name: str) -> bool:
    # Only objects are read.
    dtype = table.dtypes[name]
    return is_text_or_category(table[name] if types.is_object_dtype(dtype) else pd.Series([], dtype=dtype))


def is_text_or_category(column: pd.Series[Any]) -> bool:
    """Whether a column has text or categories; objects count as text unless all are of another known kind."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return True
    if types.is_object_dtype(dtype):
        return types.infer_dtype(column, skipna=True) not in OTHER_KINDS
    return bool(types.is_string_dtype(dtype))


def most_rare_values_first(by_column: Mapping[str, RareColumn]) -> list[tuple[str, RareColumn]]:
    """Return columns and their counts, those with the most rare values first, and ties by name."""
    return sorted(by_column.items(), key=lambda item: (-item[1].n_values, item[0]))


def _require_columns(tables: Sequence[Table], names: Sequence[str]) -> None:
    missing = sorted({name for table in tables for name in names if name not in table.columns})
    if missing:
        raise InvalidTableError(f"Rare values cannot be counted: a table lacks the columns {missing}.")


def _columns_shown(name: str, masks: Mapping[str, Mask]) -> Iterator[str]:
    mask = masks.get(name)
    if isinstance(mask, Interval):
        yield from (mask.low, mask.high)
    else:
        yield mask.column if isinstance(mask, ValueSet) else name


def _spelled_out(columns: Sequence[pd.Series[Any]], mask: Mask) -> tuple[ColumnValues, Cells]:
    """Return the distinct values in labels as a column of texts, and by column the label of each row and its values."""
    places: dict[str, int] = {}
    cells: Cells = []
    for column in columns:
        codes, labels = pd.factorize(column)
        texts = [json.loads(each) if isinstance(mask, ValueSet) else [str(each)] for each in labels]
        cells.append(
            (codes, [[places.setdefault(text, len(places)) for text in own if text is not None] for own in texts])
        )
    return ColumnValues("text" if places else "missing", np.arange(len(places)), np.array(list(places), object)), cells


def _as_texts(values: ColumnValues) -> ColumnValues:
    """Return values as texts, as labels have them."""
    distinct = np.array([str(value) for value in values.distinct.tolist()], object)
    return replace(values, kind="text" if len(distinct) else "missing", distinct=distinct)


def _are_rare(
    encoded: EncodedColumn, whose: NDArray[np.intp] | None, people_per_value: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return by code whether some people have the value, but too few: as it is written, and in any spelling."""
    codes = np.arange(len(encoded.labels))
    readings = []
    for keys in (codes, codes if encoded.key_of is None else encoded.key_of):
        real = np.concatenate([keys[own] for t, own in enumerate(encoded.codes) if t != 1])
        counts = people_of_values(real, len(codes), whose, people_per_value)[keys]
        readings.append((counts > 0) & (counts < people_per_value))
    is_missing = np.array([label is None for label in encoded.labels], np.bool_)
    is_word = np.array([label is None or not canonical(label) for label in encoded.labels], np.bool_)
    return readings[0] & ~is_missing, readings[1] & ~is_word
