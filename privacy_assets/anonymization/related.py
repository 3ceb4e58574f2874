"""Forms in which related tables can be anonymized: figures of people, or rows without people.

Rows that keep their person cannot be protected by classes of their people: who knows two rows of a person looks for
people who have both. Figures of the rows can become columns of the people, who are then one table as any other; or the
rows leave without a key, generalized in classes of people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import ORDERED_KINDS, read_column
from privacy_assets.columns.safe_names import type_name
from privacy_assets.columns.time_units import LARGEST_INT64
from privacy_assets.contract.related import RelatedTables, columns_that_repeat_the_person
from privacy_assets.contract.views import beside, nullable
from privacy_assets.errors import InvalidSettingError, InvalidTableError

ROWS: Final = "rows"
"""Stands for the rows themselves, which can be counted."""
LINKED_ROWS: Final = (
    "Classes of people do not protect rows that keep their person: of the people of a health survey in classes of 5, "
    "98 % had fewer than 5 candidates if two of their rows were known"
)
AGGREGATES: Final = ("count", "sum", "mean", "min", "max", "first", "last", "any")


def aggregate_rows(tables: RelatedTables, aggregates: Mapping[str, Mapping[str, str | Sequence[str]]]) -> pd.DataFrame:
    """Return the people with figures of their rows, as a table in which each row is a person.

    Such a table can be anonymized or synthesized as any other. Give each figure a role: who knows how often a person
    came, or when first, can look for it.

    Parameters
    ----------
    tables : RelatedTables
        People and their rows.
    aggregates : mapping of str to mapping of str to str, or to several
        By child table, what becomes of a column: ``{"visits": {"rows": "count", "cost": ["sum", "max"]}}``. Missing
        values are left out. ``count`` counts values, and the rows if the column is called ``rows``; ``sum`` and
        ``mean`` take numbers or booleans, ``min`` and ``max`` what has an order, ``any`` booleans. ``first`` and
        ``last`` are values of the first and last row with one, by the order column; of rows of the same moment, which
        is first depends on their content only. Without values, count and sum are 0, any is False, others are missing.

    Returns
    -------
    DataFrame
        The people in their order, without their numbers and keys, and for each figure a column such as ``rows of
        visits``, ``sum cost of visits`` or ``first date of visits``.

    Raises
    ------
    InvalidSettingError, InvalidTableError
        If a table, column or figure does not exist or does not fit its column, or if values cannot be read.
    """
    if not isinstance(tables, RelatedTables):
        raise InvalidTableError("`tables` are not RelatedTables. Nothing was aggregated.")
    people = tables.people.drop(columns=sorted(tables.identifiers)).reset_index(drop=True)
    for name, asked in _checked(tables, aggregates).items():
        order = tables.in_order(name)
        whose, table = tables.whose[name][order], tables.children[name].table.iloc[order].reset_index(drop=True)
        for column, figures in asked.items():
            people = beside(people, _figures_of(table, column, figures, whose, len(people), name))
    return people


def unlinked_rows(tables: RelatedTables, name: str, columns: Sequence[str] = ()) -> pd.DataFrame:
    """Return the rows of a child with their person, but without keys, as `anonymize` takes them with ``unlinked``.

    Parameters
    ----------
    tables : RelatedTables
        People and their rows.
    name : str
        The child table.
    columns : sequence of str
        Columns of the people that go with each row. They must be generalized: equal values of a person that leave as
        they are tie its rows together again. `anonymize` takes those among its quasi-identifiers.

    Returns
    -------
    DataFrame
        The person first, which is the subject of the anonymization, then the columns of the people and those of the
        rows, in their order. A column of the rows with the name of one of the people is called ``age of visits``.
    """
    if not isinstance(tables, RelatedTables):
        raise InvalidTableError("`tables` are not RelatedTables. Nothing was made.")
    _require_child(tables, name)
    known = _columns_of_people(tables)
    unknown = [columns] if isinstance(columns, str) else [column for column in columns if column not in known]
    if unknown:
        raise InvalidSettingError(
            f"`columns` is not a list of columns of the people: {unknown}. Expected some of {known}. Nothing was made."
        )
    above = tables.people[[tables.person, *columns]].iloc[tables.whose[name]].reset_index(drop=True)
    own = tables.children[name].table.drop(columns=tables.children[name].numbers).reset_index(drop=True)
    return beside(above, own.rename(columns={column: f"{column} of {name}" for column in own if column in above}))


def columns_that_tie_rows(tables: RelatedTables, name: str, generalized_or_dropped: Sequence[str]) -> list[str]:
    """Return the columns of a child that never differ within a person, and would leave as they are."""
    repeating = columns_that_repeat_the_person(tables).get(name, [])
    return [column for column in repeating if column not in generalized_or_dropped]


def rows_to_anonymize(
    tables: RelatedTables,
    unlinked: str | None,
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str],
    direct_identifiers: Sequence[str],
) -> pd.DataFrame:
    """Return the rows of a child with those columns of the people that are generalized, or refuse."""
    if unlinked is None:
        raise InvalidTableError(
            f"RelatedTables are not anonymized with their links. {LINKED_ROWS}. Make figures of the rows columns of "
            "the people with `aggregate_rows`, and anonymize that table; or give `unlinked`, the name of the child "
            "whose rows leave without a key. Choose one of them for a release: sums would join both. Nothing was "
            "anonymized."
        )
    _require_child(tables, unlinked)
    columns = tables.children[unlinked].table.columns
    of_people = [name for name in sensitive if name in _columns_of_people(tables) and name not in columns]
    if of_people:
        raise InvalidSettingError(
            f"`sensitive` names columns of the people: {of_people}. They would leave as they are with each row, and "
            "their equal values tie the rows of a person together again. Leave them out, or anonymize the people with "
            "figures of their rows (`aggregate_rows`). Nothing was anonymized."
        )
    if as_they_are := columns_that_tie_rows(tables, unlinked, [*quasi_identifiers, *direct_identifiers]):
        raise InvalidSettingError(
            f"Columns of {unlinked!r} that would leave as they are never differ within a person: {as_they_are}. Their "
            "equal values tie the rows of a person together again. Make them quasi-identifiers, or name them in "
            "`direct_identifiers`, so that they do not leave. Nothing was anonymized."
        )
    return unlinked_rows(tables, unlinked, [name for name in quasi_identifiers if name in _columns_of_people(tables)])


def _columns_of_people(tables: RelatedTables) -> list[str]:
    return [name for name in map(str, tables.people) if name not in tables.identifiers]


def _require_child(tables: RelatedTables, name: object) -> None:
    if not isinstance(name, str) or name not in tables.children:
        shown = repr(name) if isinstance(name, str) else f"A {type_name(name)}"
        raise InvalidSettingError(
            f"{shown} is not the name of a child. Expected one of {list(tables.children)}. Nothing was done."
        )


def _checked(tables: RelatedTables, aggregates: object) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the figures of each column of each table; refuse what is none, all at once."""
    if not isinstance(aggregates, Mapping) or not aggregates:
        raise InvalidSettingError(
            "`aggregates` must map names of children to figures by column, such as {'visits': {'rows': 'count'}}. "
            "Nothing was aggregated."
        )
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    problems: list[str] = []
    for name, by_column in aggregates.items():
        _require_child(tables, name)
        child = tables.children[name]
        known = [column for column in child.table.columns if column in (child.order, *child.columns)]
        if not isinstance(by_column, Mapping) or not by_column:
            problems.append(f"{name!r} has no figures by column")
            continue
        found[name] = {}
        for column, given in by_column.items():
            figures = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
            found[name][column] = figures
            if unknown := [own for own in figures if own not in AGGREGATES]:
                problems.append(f"{unknown} of {column!r} of {name!r} are none of {list(AGGREGATES)}")
            elif not figures:
                problems.append(f"{column!r} of {name!r} has no figure")
            elif column == ROWS and ROWS in child.table:
                problems.append(f"{name!r} has a column {ROWS!r}, which stands for the rows: rename it")
            elif column == ROWS and figures != ("count",):
                problems.append(f"{ROWS!r} of {name!r} can only be counted, not {list(figures)}")
            elif column != ROWS and column not in known:
                problems.append(f"{column!r} is no column of {name!r}, which has {known}")
            elif child.order is None and (placed := [own for own in figures if own in ("first", "last")]):
                problems.append(f"{placed} of {column!r} of {name!r} need an `order` of its rows")
    if problems:
        raise InvalidSettingError(f"`aggregates` cannot be made: {'; '.join(problems)}. Nothing was aggregated.")
    return found


def _figures_of(
    table: pd.DataFrame, column: str, figures: Sequence[str], whose: NDArray[np.intp], n_people: int, name: str
) -> pd.DataFrame:
    """Return figures of a column of rows that are in order, by person."""
    if column == ROWS:
        return pd.DataFrame({f"rows of {name}": np.bincount(whose, minlength=n_people)})
    values = table[column]
    read = read_column(values, f"Column {column!r} of table {name!r}")
    is_flag, is_number = (read.kind in (kind, "missing") for kind in ("boolean", "number"))
    is_ordered = read.kind in (*ORDERED_KINDS, "missing") or read.is_ranked or getattr(values.dtype, "ordered", False)
    fits = {**dict.fromkeys(("sum", "mean"), is_number or is_flag), **dict.fromkeys(("min", "max"), is_ordered)}
    if wrong := [own for own in figures if not {**fits, "any": is_flag}.get(own, True)]:
        raise InvalidSettingError(
            f"`aggregates` asks for {wrong} of {column!r} of {name!r}, a column of kind {read.description}. Expected "
            "numbers or booleans for sum and mean, booleans for any, and an order for min and max. Nothing was "
            "aggregated."
        )
    rows = np.flatnonzero(read.codes >= 0)
    known, own = whose[rows], read.distinct[read.codes[rows]]
    made: dict[str, Any] = {}
    for figure in figures:
        if figure == "count":
            found: Any = np.bincount(known, minlength=n_people)
        elif figure == "any":
            found = np.bincount(known[own.astype(bool)], minlength=n_people) > 0
        elif figure in ("sum", "mean"):
            found = _totals(own.astype(int) if is_flag else own, known, n_people, is_mean=figure == "mean")
        else:
            by = rows if figure in ("first", "last") else pd.factorize(values, sort=True)[0][rows]
            in_order = np.lexsort((by, known))
            people = np.unique(known)
            is_first = figure in ("min", "first")
            places = np.searchsorted(known, people) if is_first else np.searchsorted(known, people, "right") - 1
            picked = nullable(values.to_frame())[column].iloc[rows[in_order[places]]]
            found = picked.set_axis(people).reindex(range(n_people))
        made[f"{figure} {column} of {name}"] = found
    return pd.DataFrame(made)


def _totals(numbers: NDArray[Any], whose: NDArray[np.intp], n_people: int, *, is_mean: bool) -> NDArray[Any]:
    """Return exact sums of the numbers of people, who ascend, or means: neither may depend on the order of rows."""
    people = np.unique(whose)
    starts, ends = (np.searchsorted(whose, people, side) for side in ("left", "right"))
    is_whole = numbers.dtype.kind != "f"
    found: list[Any] = [np.nan if is_mean else 0 if is_whole else 0.0] * n_people
    each = numbers.tolist()
    for person, start, end in zip(people.tolist(), starts.tolist(), ends.tolist(), strict=True):
        total = sum(each[start:end]) if is_whole else fsum(each[start:end])
        found[person] = total / (end - start) if is_mean else total
    if is_whole and not is_mean and max(map(abs, found), default=0) > LARGEST_INT64:
        raise InvalidTableError(
            "Sums of whole numbers are beyond 64 bits. Convert the column to floats. Nothing was aggregated."
        )
    return np.array(found, np.int64 if is_whole and not is_mean else np.float64)
