"""Keyed hashes of rows, for orders that depend on the content of rows and not on their position."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.errors import InvalidTableError
from privacy_assets.kernels.numbers import number_type

ROWS_PER_BLOCK = 2**20


class Repeated(NamedTuple):
    """A column as values, and the place of each row's value in them; without places, each row has its own."""

    values: pd.Series[Any]
    places: NDArray[np.integer[Any]] | None


def hash_rows(columns: Iterable[pd.Series[Any] | Repeated], n_rows: int, seed: int) -> NDArray[np.uint64]:
    """Hash rows of columns with a key from ``seed`` and the position of each column; names and index are ignored."""
    total = np.zeros(n_rows, np.uint64)
    problems: dict[str, int] = {}
    broken: dict[str, int] = {}
    for place, given in enumerate(columns):
        column, places = given if isinstance(given, Repeated) else (given, None)
        key = hashlib.sha256(f"privacy_assets row {seed} {place}".encode()).digest()
        try:
            own = _hash_cells(column, key.hex()[:16])
        except TypeError:
            problems[str(column.name)] = sum(not pd.api.types.is_hashable(value) for value in column)
            continue
        except UnicodeEncodeError:
            broken[str(column.name)] = sum(_is_broken(value) for value in column)
            continue
        for begin in range(0, n_rows, ROWS_PER_BLOCK):
            rows = slice(begin, begin + ROWS_PER_BLOCK)
            keyed = own[rows if places is None else places[rows]] ^ np.uint64(int.from_bytes(key[8:16], "little"))
            total[rows] = _mix(np.bitwise_xor(total[rows], keyed, dtype=np.uint64))
    if problems:
        raise InvalidTableError(
            f"Columns have values that cannot be compared, such as lists, counted by column: {problems}. Expected "
            "numbers, booleans, text, dates, datetimes or durations. Convert the columns, or leave them out. Nothing "
            "was anonymized."
        )
    if broken:
        raise InvalidTableError(
            f"Columns have text that is not valid Unicode (lone surrogates), counted by column: {broken}. Expected "
            "text that "
            "can be stored. Repair the text, for example by reading it with its right encoding, or leave the columns "
            "out. Nothing was anonymized."
        )
    return total


def order_of_hashes(hashes: NDArray[np.uint64]) -> NDArray[np.signedinteger[Any]]:
    """Return what sorts hashes, equal ones by their position, as `numpy.argsort` with a part of the memory."""
    n_bits = min((len(hashes) // ROWS_PER_BLOCK).bit_length(), 8)
    first_bits = np.zeros(len(hashes), np.uint8)
    for begin in range(0, len(hashes) if n_bits else 0, ROWS_PER_BLOCK):
        rows = slice(begin, begin + ROWS_PER_BLOCK)
        first_bits[rows] = hashes[rows] >> np.uint64(64 - n_bits)
    order, begin = np.empty(len(hashes), number_type(len(hashes))), 0
    for bits in range(1 << n_bits):
        own = np.flatnonzero(first_bits == bits)
        order[begin : begin + len(own)] = own[np.argsort(hashes[own], kind="stable")]
        begin += len(own)
    return order


def _hash_cells(column: pd.Series[Any], key: str) -> NDArray[np.uint64]:
    # This refuses lists and the like, whose text would not be canonical.
    own = pd.util.hash_pandas_object(column, index=False, hash_key=key)
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) not in ("string", "empty"):
        # In pandas, 1, 1.0 and True are one value, and the first in the column determines the hash of all.
        told_apart = pd.Series([f"{type(value).__qualname__} {value}" for value in column], dtype=object)
        own = pd.util.hash_pandas_object(told_apart, index=False, hash_key=key)
    return np.asarray(own, np.uint64)


def _is_broken(value: object) -> bool:
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return True
    return False


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit over all others (the finalizer of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)), np.uint64)
