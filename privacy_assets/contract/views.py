"""Views of related tables: plain tables in which each row belongs to a person, for all that assesses one table.

A view is made from the tables alone, without settings, so that views of originals, of controls and of synthetic people
can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import kind_of_dtype
from privacy_assets.contract.related import PEOPLE, Child, RelatedTables
from privacy_assets.errors import InvalidTableError

DIGITS = 6
"""Significant digits of means."""


def related_views(tables: RelatedTables) -> dict[str, pd.DataFrame]:
    """Make plain tables of related ones, each with the person of every row.

    Parameters
    ----------
    tables : RelatedTables
        People and their rows.

    Returns
    -------
    dict of str to DataFrame
        ``people``: a row per person, with the number of rows of each child table, and of its columns the mean of
        numbers (six digits), the most frequent other value (of equally frequent ones the least) and the first moment.

        For each child v, ``rows of v``: its rows with the columns of their person, and of the row to which they belong,
        and the gap to the row before; who has no rows has one of missing values. ``histories of v``: two consecutive
        rows of a person, without columns above and without moments, but with the gap between both. Rows of the same
        moment, or without ``order`` all of a person, are in an order that only depends on their content.

        The first column is the person; other keys are left out.
    """
    own = tables.people.drop(columns=sorted(tables.identifiers - {tables.person})).reset_index(drop=True)
    own = nullable(own[[tables.person, *(name for name in own if name != tables.person)]])
    views = {PEOPLE: own}
    for name in tables.children:
        views[PEOPLE] = beside(views[PEOPLE], _totals(tables, name), PEOPLE, name)
        views |= _of_child(tables, name, own)
    return views


def columns_of_views(tables: Sequence[RelatedTables]) -> dict[str, tuple[str, ...]]:
    """Return the columns, without the person, of each view that has columns, and records of all tables."""
    few = related_views(tables[0].take(np.arange(min(1, len(tables[0].people)))))
    found = {name: tuple(map(str, view.columns.drop(tables[0].person))) for name, view in few.items()}
    for child in tables[0].children:
        if any(np.bincount(own.whose[child]).max(initial=0) < 2 for own in tables):
            del found[f"histories of {child}"]
    return {name: columns for name, columns in found.items() if columns}


def _of_child(tables: RelatedTables, name: str, people: pd.DataFrame) -> dict[str, pd.DataFrame]:
    child = tables.children[name]
    joined, _ = _joined(tables, name, people)
    order = tables.in_order(name)
    whose, content = tables.whose[name][order], _content(child).iloc[order].reset_index(drop=True)
    is_next = np.zeros(len(whose), np.bool_)
    is_next[1:] = whose[1:] == whose[:-1]
    gap = pd.DataFrame(index=content.index)
    if child.order is not None:
        since = content[child.order].diff().where(is_next)
        gap = pd.DataFrame({f"gap of {child.order}": since})
    second = np.flatnonzero(is_next)
    # Only whole windows: the missing values of shorter ones would look like equal rare values.
    parts = [content[child.columns].iloc[at].add_suffix(end) for at, end in ((second - 1, " 1"), (second, " 2"))]
    histories = people[[tables.person]].iloc[whose[second]].reset_index(drop=True)
    for part in (*parts, gap.iloc[second]):
        histories = beside(histories, part.reset_index(drop=True), f"histories of {name}", name)
    rows = beside(joined, gap.reindex(joined.index), f"rows of {name}", name)
    return {f"rows of {name}": rows, f"histories of {name}": histories}


def _joined(tables: RelatedTables, name: str, people: pd.DataFrame) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Join the rows of a table with all columns above them, and return the place of each row.

    First come the rows in order; those above to which none belongs have missing values.
    """
    if name == PEOPLE:
        return people, np.arange(len(people))
    child, order = tables.children[name], tables.in_order(name)
    upper, places = _joined(tables, child.of, people)
    above, content = places[tables.above[name]][order], _content(child).iloc[order].reset_index(drop=True)
    without = np.setdiff1d(np.arange(len(upper)), above)
    shown = content.rename(columns={column: f"{column} of {name}" for column in content if column in upper})
    rows = np.append(np.arange(len(above)), np.full(len(without), -1))
    joined = upper.iloc[np.append(above, without)].reset_index(drop=True)
    joined = beside(joined, shown.reindex(rows).reset_index(drop=True), f"rows of {name}", name)
    return joined, np.argsort(order, kind="stable")


def _content(child: Child) -> pd.DataFrame:
    """Return the rows without what numbers people and rows."""
    return nullable(child.table.drop(columns=child.numbers).reset_index(drop=True))


def _totals(tables: RelatedTables, name: str) -> pd.DataFrame:
    """Return what the rows of each person sum up to."""
    child, whose, n_people = tables.children[name], tables.whose[name], len(tables.people)
    found: dict[str, Any] = {f"rows of {name}": np.bincount(whose, minlength=n_people)}
    for column in child.columns:
        values = child.table[column].reset_index(drop=True)
        if kind_of_dtype(values.dtype) == "number":
            found[f"mean {column} of {name}"] = _means(values, whose, n_people)
        else:
            found[f"most frequent {column} of {name}"] = _most_frequent(values, whose, n_people)
    if child.order is not None:
        first = nullable(child.table[[child.order]])[child.order].groupby(whose).min()
        found[f"first {child.order} of {name}"] = first.reindex(range(n_people))
    return pd.DataFrame(found)


def _most_frequent(values: pd.Series[Any], whose: NDArray[np.intp], n_people: int) -> pd.Series[Any]:
    codes, distinct = pd.factorize(values, sort=True)
    known = codes >= 0
    counted = pd.DataFrame({"whose": whose[known], "code": codes[known]}).value_counts().reset_index(name="n")
    counted = counted.sort_values(["whose", "n", "code"], ascending=[True, False, True]).drop_duplicates("whose")
    most = np.full(n_people, -1, np.intp)
    most[counted["whose"]] = counted["code"]
    of_code = nullable(pd.DataFrame({"value": pd.Series(distinct)}))["value"]
    return of_code.reindex(most).reset_index(drop=True)


def _means(values: pd.Series[Any], whose: NDArray[np.intp], n_people: int) -> NDArray[np.float64]:
    """Return the mean of each person, of exact sums, because a mean must not depend on the order of rows."""
    numbers = values.to_numpy(np.float64, na_value=np.nan)
    rows = np.flatnonzero(np.isfinite(numbers))
    rows = rows[np.argsort(whose[rows], kind="stable")]
    people, starts = np.unique(whose[rows], return_index=True)
    found = np.full(n_people, np.nan)
    for person, own in zip(people, np.split(numbers[rows], starts[1:]), strict=False):
        found[person] = float(f"{fsum(own) / len(own):.{DIGITS}g}")
    return found


def nullable(table: pd.DataFrame) -> pd.DataFrame:
    """Let whole numbers and booleans stay what they are next to missing values."""
    kinds = {name: _nullable_dtype(column.dtype) for name, column in table.items()}
    return table.astype({name: kind for name, kind in kinds.items() if kind})


def _nullable_dtype(dtype: Any) -> str:
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        return "UInt64" if dtype == np.uint64 else "Int64"
    return "boolean" if dtype == np.bool_ else ""


def beside(one: pd.DataFrame, other: pd.DataFrame, view: str = "the rows", child: str = "") -> pd.DataFrame:
    """Join columns to what a view has, with those that are made of a child; two of the same name are refused."""
    names = [*one.columns, *other.columns]
    again = sorted({str(name) for name in names if names.count(name) > 1})
    if again:
        whose = f"of {child!r}, or of the tables above it" if child else "of one of the tables"
        raise InvalidTableError(
            f"In {view}, several columns would be called {again}, because names are also made of those of tables and "
            f"columns. Rename columns {whose}. Nothing was done."
        )
    return pd.concat([one, other], axis=1)
