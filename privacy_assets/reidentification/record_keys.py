"""Keys between tables, and people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from privacy_assets.columns.coding import read_column
from privacy_assets.columns.spelling import spelled_keys
from privacy_assets.errors import InvalidSettingError, InvalidTableError


def true_positions(truth: str | ArrayLike, original: pd.DataFrame, released: pd.DataFrame) -> NDArray[np.int64]:
    """Return the position in the original of each released row."""
    if isinstance(truth, str):
        return match_keys(truth, released, "release", original, "original")
    try:
        positions = np.asarray(truth)
    except ValueError:  # lists of different lengths
        positions = np.empty(0, object)
    n_original, n_released = len(original), len(released)
    if positions.shape != (n_released,) or positions.dtype.kind not in "iu":
        raise InvalidSettingError(
            f"`truth` has the shape {positions.shape} and the dtype {positions.dtype}. Expected one position in the "
            f"original per released row, so {n_released} integers, or the name of a key column. Nothing was assessed."
        )
    n_outside = int(((positions < 0) | (positions >= n_original)).sum())
    if n_outside:
        raise InvalidSettingError(
            f"`truth` has {n_outside} positions outside the original, which has {n_original} rows. Nothing was "
            "assessed."
        )
    return positions.astype(np.int64)


def match_keys(
    key: str, table: pd.DataFrame, words: str, other: pd.DataFrame, other_words: str, *, both_ways: bool = False
) -> NDArray[np.int64]:
    """Return the row of ``other`` with the key of each row of ``table``.

    Keys that are missing, repeated, or without a row in the other table (in either, if checked both ways) are refused
    and counted.
    """
    tables = {words: table, other_words: other}
    _require_key(key, tables)
    problems = []
    for name, each in tables.items():
        read = read_column(each[key], f"The key column {key!r} of the {name}")
        n_missing = int((read.codes < 0).sum())
        n_repeated = len(each) - n_missing - len(np.unique(read.codes[read.codes >= 0]))
        if n_missing or n_repeated:
            problems.append(f"The key column {key!r} of the {name} has {n_missing} missing and {n_repeated} repeated.")
    places = np.zeros(0, np.int64)
    if not problems:
        places = _find(other[key], table[key])
        n_lost = int((places < 0).sum())
        n_unused = len(other) - len(table) + n_lost if both_ways else 0
        if n_lost:
            problems.append(f"{n_lost} of {len(table)} keys {key!r} of the {words} are not in the {other_words}.")
        if n_unused:
            problems.append(f"{n_unused} of {len(other)} keys {key!r} of the {other_words} are not in the {words}.")
    if problems:
        raise InvalidTableError(
            f"{' '.join(problems)} Expected one key per record, and every key in both. Nothing was assessed."
        )
    return places


def _require_key(key: str, tables: Mapping[str, pd.DataFrame]) -> None:
    lacking = [name for name, each in tables.items() if key not in each.columns]
    if lacking:
        raise InvalidTableError(
            f"The key column {key!r} is not in: {lacking}. Expected it in both tables. Nothing was assessed."
        )


def code_keys(
    key: str, table: pd.DataFrame, words: str, other: pd.DataFrame, other_words: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a number for the key of each row of two tables, equal if they are spelled alike; -1 if missing."""
    _require_key(key, {words: table, other_words: other})
    spelled = pd.concat([_spelled_texts(each[key]) for each in (table, other)], ignore_index=True)
    codes = np.asarray(pd.factorize(spelled)[0], np.int64)
    return codes[: len(table)], codes[len(table) :]


def _spelled_texts(keys: pd.Series[Any]) -> pd.Series[Any]:
    """Return keys as texts in one spelling, whatever their type; missing ones stay missing."""
    return spelled_keys(keys.astype(object).map(str, na_action="ignore")).astype(object)


def _find(keys: pd.Series[Any], wanted: pd.Series[Any]) -> NDArray[np.int64]:
    """Return the position of each wanted key, in any spelling if this is unambiguous; -1 if missing."""
    index = pd.Index(keys.astype(object))
    places = np.asarray(index.get_indexer(pd.Index(wanted.astype(object))), np.int64)
    if (places < 0).any():
        spelled, own = (pd.Index(_spelled_texts(each)) for each in (keys, wanted))
        if spelled.is_unique and own.is_unique:
            return np.asarray(spelled.get_indexer(own), np.int64)
    return places


def number_people(original: pd.DataFrame, subject: str) -> NDArray[np.int64]:
    """Assign a number to each person; a row without a person counts as a separate person."""
    read = read_column(original[subject], f"Column {subject!r}")
    people = read.codes.astype(np.int64)
    nobody = people < 0
    people[nobody] = len(read.distinct) + np.arange(int(nobody.sum()))
    return people
