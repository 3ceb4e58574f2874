"""Draft of related tables: by which columns rows belong to people or to other rows, and what orders them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from privacy_assets.columns.spelling import factorize_keys
from privacy_assets.contract.related import PEOPLE
from privacy_assets.disclosure.declared_unit import NOT_A_PERSON
from privacy_assets.drafting.blocks import blocks_of_frame
from privacy_assets.drafting.draft import ContractDraft, as_identifier, draft_of_blocks
from privacy_assets.errors import InvalidTableError

KINDS_OF_KEYS: Final = ("integer", "text", "category")


class ProposedLink(NamedTuple):
    """The table to which rows belong, by which column, what orders them, and why; ``own_key`` numbers the rows."""

    of: str
    key: str
    order: str | None
    own_key: str | None
    why_key: str
    why_order: str


class _Match(NamedTuple):
    """A column of two tables, and how many rows of the lower one have the same value."""

    of: str
    key: str
    rows_a_value: float


def draft_related(
    tables: Mapping[str, pd.DataFrame], alone: Mapping[str, ContractDraft]
) -> tuple[dict[str, ContractDraft], dict[str, ProposedLink]]:
    """Draft the contracts of people, the first table, and of tables of their rows.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        The people, by the name ``people``, and the others; a table can only belong to one before it.
    alone : mapping of str to ContractDraft
        The drafts of the tables alone, from which types are read.

    Returns
    -------
    drafts, links : dict of str to ContractDraft, dict of str to ProposedLink
        The drafts, in which all columns that number people or rows are direct identifiers, and how rows belong
        together. Rows count as those of their people, so that no draft shows values of few.

    Raises
    ------
    InvalidTableError
        If rows belong to no table before theirs, with what was found.
    """
    names = list(tables)
    found = {name: _key_of(name, tables, names[:place], alone) for place, name in enumerate(names) if place}
    too_deep = [name for name, each in found.items() if each.of != PEOPLE and found[each.of].of != PEOPLE]
    if too_deep:
        raise InvalidTableError(
            f"{too_deep} belong to rows of rows of the people. Expected at most two levels below the people. Join each "
            "of them into the table to which it belongs. Nothing was drafted."
        )
    own_keys = {each.of: each.key for each in found.values() if each.of != PEOPLE}
    person = next(each.key for each in found.values() if each.of == PEOPLE)
    numbers = {person, *(each.key for each in found.values())}
    links, drafts = {}, {}
    for name, table in tables.items():
        if name == PEOPLE:
            drafts[name] = _with_numbers(_drafted(table, person, alone[name]), numbers, person)
            continue
        match = found[name]
        of, known = match.of, table
        if of != PEOPLE and person not in table:
            # The people of the rows above, of whom each value in the draft must have several.
            above = tables[of].drop_duplicates(match.key).set_index(match.key)[found[of].key]
            known = table.assign(**{person: table[match.key].map(above)})
        draft = _drafted(known, person if person in known else match.key, alone[name])
        draft = replace(draft, columns=tuple(own for own in draft.columns if own.name in table))
        drafts[name] = _with_numbers(draft, numbers, None)
        order, why_order = _order_of(table, match.key, numbers, alone[name])
        n_above = tables[of][match.key].nunique()
        why = f"each of {len(table):,} rows has one of the {n_above:,} in {of}, {match.rows_a_value:.1f} rows a value"
        links[name] = ProposedLink(of, match.key, order, own_keys.get(name), why, why_order)
    return drafts, links


def _key_of(
    name: str, tables: Mapping[str, pd.DataFrame], above: Sequence[str], drafts: Mapping[str, ContractDraft]
) -> _Match:
    """Propose the column by which rows belong to a table above; refuse if there is none, with what was found."""
    table, matches, tried = tables[name], [], []
    types = {column.name: column.description["type"] for column in drafts[name].columns}
    for of in above:
        for key in (key for key in map(str, tables[of]) if key in table and types[key] in KINDS_OF_KEYS):
            # As texts, because a file may have the numbers that another one has as text.
            both = pd.concat([tables[of][key].astype(object), table[key].astype(object)], ignore_index=True)
            codes = factorize_keys(both.map(str, na_action="ignore"))
            of_above, own = np.split(codes, [len(tables[of])])
            n_repeated = len(of_above) - len(np.unique(of_above))
            n_missing = int((codes < 0).sum())
            n_orphans = int((~np.isin(own, of_above)).sum())
            if n_repeated or n_missing or n_orphans:
                tried.append(
                    f"{key!r} repeats {n_repeated:,} times in {of!r}, is missing in {n_missing:,} rows, and "
                    f"{n_orphans:,} rows have another value"
                )
            else:
                matches.append(_Match(of, key, len(own) / max(len(np.unique(own)), 1)))
    if not matches:
        common = "; ".join(tried) or "they have no column in common"
        raise InvalidTableError(
            f"Table {name!r} has no key of {' or '.join(map(repr, above))}: {common}. "
            "Expected a column of both tables with values that occur once in the upper one, among which are all of the "
            "lower one. Give the people first, or name their numbers alike. Nothing was drafted."
        )
    people = {column.name for column in drafts[PEOPLE].columns if column.description["role"] == "direct_identifier"}
    # Rows may be numbered from 1 in several tables: only numbers that repeat are of rows above.
    rows = [each for each in matches if each.of != PEOPLE and each.rows_a_value > 1]
    of_people = [each for each in matches if each.of == PEOPLE]
    return max(rows or of_people or matches, key=lambda each: (each.key in people, each.rows_a_value))


def _drafted(table: pd.DataFrame, person: str, alone: ContractDraft) -> ContractDraft:
    blocks = replace(blocks_of_frame(table), format=alone.format, separator=alone.separator)
    return draft_of_blocks(blocks, person=person)


def _with_numbers(draft: ContractDraft, numbers: set[str], person: str | None) -> ContractDraft:
    """Let columns that number people or rows never leave; of children, the key says whose the rows are."""
    columns = []
    for column in draft.columns:
        own = {key: value for key, value in column.description.items() if key != "person"}
        if column.name in numbers:
            own = {key: value for key, value in as_identifier(own).items() if key != NOT_A_PERSON}
            own |= {"person": True} if column.name == person else {}
            column = replace(column, reason="it links the tables", remarks=())
        columns.append(replace(column, description=own))
    return replace(draft, columns=tuple(columns), one_row_per_person=False)


def _order_of(table: pd.DataFrame, key: str, numbers: set[str], draft: ContractDraft) -> tuple[str | None, str]:
    """Propose a column that orders the rows: the first datetimes, or integers that ascend in the rows of each value."""
    released = [own for own in draft.columns if own.description["role"] != "direct_identifier"]
    complete = [own for own in released if own.name not in numbers and not own.description.get("nullable")]
    moments = [column.name for column in complete if column.description["type"] == "datetime"]
    if moments:
        more = f"; or {', '.join(moments[1:])}" if moments[1:] else ""
        return moments[0], f"datetimes without missing ones{more}"
    codes = factorize_keys(table[key].astype(object))
    order = np.argsort(codes, kind="stable")
    is_next = codes[order][1:] == codes[order][:-1]
    for column in complete:
        if column.description["type"] == "integer" and is_next.any():
            steps = np.diff(pd.to_numeric(table[column.name], errors="coerce").to_numpy(np.float64)[order])
            if (steps[is_next] > 0).all():
                return column.name, "it ascends in the rows of each value of the key"
    return None, "no column without missing values has datetimes, or integers that ascend"
