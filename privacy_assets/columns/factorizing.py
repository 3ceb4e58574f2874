"""Codes of a column whose texts may be too many for one table of all: of a range of them at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

TEXTS_AT_ONCE = 2**20
N_DRAWN = 2**14
"""Rows of which the texts are drawn; if less than half of these differ, one table of all is small, and faster."""


def factorize(column: pd.Series[Any], *, sort: bool = False) -> tuple[NDArray[np.signedinteger[Any]], pd.Index[Any]]:
    """Return codes, in a small type, and values as `pandas.factorize`, of many texts with a part of the memory.

    Parameters
    ----------
    column : Series
        Its missing values have the code -1.
    sort : bool
        Whether values are in their order instead of that of their appearance.
    """
    # Values in the order of their appearance are put into it at the end, which needs time and memory.
    many = _many_texts(column, (2 if sort else 4) * TEXTS_AT_ONCE)
    if many is None:
        numbers, found = pd.factorize(column, sort=sort)
        # -1 is a code, too.
        return numbers.astype(np.min_scalar_type(-max(len(found), 1))), pd.Index(found)
    texts, drawn = many
    codes = np.full(len(texts), -1, np.int32)
    n_values = 0
    values, first = list[pa.Array](), [np.zeros(0, np.int64)]
    for rows in _ranges(texts, drawn):
        own = texts.take(pa.array(rows)).combine_chunks().dictionary_encode()
        in_order, local = pc.array_sort_indices(own.dictionary).to_numpy(), own.indices.to_numpy()
        codes[rows] = n_values + _inverse(in_order)[local]
        values.append(own.dictionary.take(pa.array(in_order)))
        n_values += len(in_order)
        first_row = np.zeros(len(in_order), np.int64)
        first_row[local[::-1]] = rows[::-1]  # What is assigned last stays.
        first.append(first_row[in_order])
    distinct = pa.chunked_array(values, texts.type)
    if not sort:
        order = np.argsort(np.concatenate(first))
        codes = np.append(_inverse(order), -1).astype(np.int32)[codes]
        distinct = distinct.take(pa.array(order))
    return codes, pd.Index(pd.Series(pd.array(distinct, dtype=column.dtype)))


def _many_texts(column: pd.Series[Any], fewest: int) -> tuple[pa.ChunkedArray, pa.Array] | None:
    """Return a column of many different texts in Arrow, and some of the texts in their order; None for another."""
    is_in_arrow = isinstance(column.dtype, pd.StringDtype) and column.dtype.storage == "pyarrow"
    if not is_in_arrow or len(column) <= fewest:
        return None
    own = pa.array(column, from_pandas=True)
    texts = own if isinstance(own, pa.ChunkedArray) else pa.chunked_array([own])
    places = np.linspace(0, len(texts) - 1, min(N_DRAWN, len(texts))).astype(np.int64)
    drawn = pc.unique(texts.take(pa.array(places)).drop_null())
    return None if 2 * len(drawn) <= len(places) else (texts, drawn.take(pc.array_sort_indices(drawn)))


def _ranges(texts: pa.ChunkedArray, drawn: pa.Array) -> Iterator[NDArray[np.int64]]:
    """Yield the rows whose texts are in a range, in the order of the texts; the bounds are some of those drawn."""
    n_ranges = min(-(-len(texts) // TEXTS_AT_ONCE), 255)
    bounds = np.unique(np.arange(1, n_ranges) * len(drawn) // n_ranges)
    range_of_row = np.zeros(len(texts), np.uint8)
    for bound in bounds:
        range_of_row += pc.greater_equal(texts, drawn[int(bound)]).fill_null(False).to_numpy().view(np.uint8)
    range_of_row[pc.is_null(texts).to_numpy()] = 255
    for number in range(len(bounds) + 1):
        yield np.flatnonzero(range_of_row == number)


def _inverse(order: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place
