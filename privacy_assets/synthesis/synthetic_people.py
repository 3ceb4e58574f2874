"""Admission of synthetic records that were made elsewhere, with the synthetic person of each row if there is one.

Whoever has a key of synthetic people must give it: their rows together can be those of one real person although no
single row is. It need not be released.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from privacy_assets.columns.unit_keys import UnitKey, find_unit_keys
from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidSettingError, InvalidTableError


def check_synthetic_person(contract: TableContract, person: str) -> None:
    """Refuse a column of synthetic people that the contract does not allow."""
    if contract.person is None:
        raise InvalidSettingError(
            f"The synthetic person of each row is in column {person!r}, but by the contract each person has one row, "
            "so there are no rows of one person to compare. Expected `person: true` on a column of the contract, or no "
            "such column."
        )
    if person in contract.columns and not (person in contract.links_rows and person in contract.released_columns):
        raise InvalidSettingError(
            f"The synthetic person of each row is in column {person!r}, which the contract names. Expected a column "
            "that it does not name, and that is not released; or a released column with `links_rows`. Rename the "
            "column in the synthetic table."
        )


def admit_synthetic(contract: TableContract, table: pd.DataFrame, people: pd.DataFrame | None) -> pd.DataFrame:
    """Admit a synthetic table without the column of its ``people``, who are given as codes, unless it is released.

    Raises
    ------
    ContractError
        If the table violates the contract.
    InvalidTableError
        If a column that nobody answered for numbers people.
    """
    unreleased = [] if people is None else [name for name in people.columns if name not in contract.released_columns]
    admitted = contract.admit_synthetic(table.drop(columns=unreleased))
    keys = list(_unanswered(contract, admitted, people))
    if keys:
        found = "; ".join(f"{key.column!r} ({key.n_values:,} values that determine {_facts(key)})" for key in keys)
        raise InvalidTableError(
            f"The rows of the synthetic table seem to be of one person, or of another unit, where they agree on "
            f"{found}. Expected the column with the synthetic person of each row, if there is one, as `person` of the "
            "external records; or `not_a_person` in the contract, with the reason. Nothing was stored."
        )
    return admitted


def _unanswered(contract: TableContract, table: pd.DataFrame, people: pd.DataFrame | None) -> Iterator[UnitKey]:
    """Yield the columns that number people or other units, and that neither contract nor settings explain.

    Repeated rows are left out: of a row that occurs twice, every value would determine the others. Of two columns, each
    pair then occurs once, whatever they are, which says nothing.
    """
    answered = {*contract.not_a_person, *contract.weights, *(() if people is None else people.columns)}
    kept = np.flatnonzero(~table.duplicated())
    codes = None if people is None else people.iloc[kept, 0].to_numpy()
    says_halves = people is None and (table.shape[1] > 2 or len(kept) == len(table))
    for key in find_unit_keys(table.take(kept), codes):
        is_half = says_halves and not answered.issuperset(key.halves)
        if (key.has_strong_facts or is_half) and key.column not in answered and not (key.made_by or key.is_finer):
            yield key


def _facts(key: UnitKey) -> str:
    return ", ".join(key.facts[:3]) or f"which value of {key.halves[0]} occurs once"
