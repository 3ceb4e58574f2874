"""Codes of long columns: of some rows after the others, and of many different texts a range of them at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy_assets.columns.distinct_values import DistinctValues
from privacy_assets.kernels.numbers import number_type

ROWS_AT_ONCE = TEXTS_AT_ONCE = 2**20
BATCHES_AT_ONCE = 16
N_DRAWN = 2**14
"""Rows that are drawn to see whether many values differ."""


def factorize(column: pd.Series[Any], *, sort: bool = False) -> tuple[NDArray[np.signedinteger[Any]], pd.Index[Any]]:
    """Return codes, in a small type, and values as `pandas.factorize`, of a long column with a part of the memory.

    Parameters
    ----------
    column : Series
        Its missing values have the code -1.
    sort : bool
        Whether values are in their order instead of that of their appearance.
    """
    many = _many_texts(column) if has_very_many_texts(column, sort=sort) else None
    if many is None:
        if len(column) > ROWS_AT_ONCE and _is_in_parts(column.dtype) and _has_few_values(column):
            return _factorize_long(column, sort=sort)
        numbers, found = pd.factorize(column, sort=sort)
        # -1 is a code, too.
        return numbers.astype(np.min_scalar_type(-max(len(found), 1))), pd.Index(found)
    texts, drawn = many
    codes: NDArray[np.signedinteger[Any]] = np.full(len(texts), -1, number_type(len(texts)))
    values, n_values = [pa.array([], texts.type)], 0
    for is_here in _ranges(texts, drawn):
        # Rows that are taken of texts in several pieces would be taken of a copy of all of them.
        own = texts.filter(pa.array(is_here)).combine_chunks().dictionary_encode()
        in_order = pc.array_sort_indices(own.dictionary).to_numpy()
        codes[is_here] = n_values + _inverse(in_order)[own.indices.to_numpy()]
        values.append(own.dictionary.take(pa.array(in_order)))
        n_values += len(in_order)
    distinct = pa.concat_arrays(values)
    del values
    if not sort:
        numbers, rows = number_by_appearance(codes, n_values)
        codes, distinct = numbers, distinct.take(pa.array(codes[rows]))
    return codes, pd.Index(pd.Series(pd.array(distinct, dtype=column.dtype)))


def number_by_appearance(
    codes: NDArray[np.signedinteger[Any]], n_codes: int
) -> tuple[NDArray[np.signedinteger[Any]], NDArray[np.signedinteger[Any]]]:
    """Renumber codes, each of which occurs, in order of their first appearance, and return the row at which each is.

    -1, the missing value, stays.
    """
    # The last place is that of -1.
    first = np.zeros(n_codes + 1, number_type(len(codes)))
    for end in range(len(codes), 0, -ROWS_AT_ONCE):
        rows = np.arange(end - 1, max(end - ROWS_AT_ONCE, 0) - 1, -1)
        first[codes[rows]] = rows  # What is assigned last stays.
    order = np.argsort(first[:-1])
    return np.append(_inverse(order), first.dtype.type(-1))[codes], first[order]


def code_batches_of_texts(batches: Iterable[pa.Array]) -> tuple[NDArray[np.signedinteger[Any]], pa.LargeStringArray]:
    """Return the place of each text of some batches, -1 if it is missing, in all texts, of which not all need to occur.

    The batches may have codes of several widths, and texts of both types.
    """
    known, codes = pa.array([], pa.large_string()), [np.zeros(0, np.int8)]
    encoded = (own if pa.types.is_dictionary(own.type) else own.dictionary_encode() for own in batches)
    coded = (
        pa.DictionaryArray.from_arrays(own.indices.cast(pa.int32()), own.dictionary.cast(pa.large_string()))
        for own in encoded
    )
    # All known texts are indexed again each time.
    while some := list(islice(coded, BATCHES_AT_ONCE)):
        joined = pa.chunked_array(some).unify_dictionaries().combine_chunks()
        texts = joined.dictionary
        known = pa.concat_arrays([known, texts.filter(pc.index_in(texts, known).is_null())])
        # The last place is that of the missing value, -1.
        places = np.append(pc.index_in(texts, known).to_numpy(), -1).astype(np.min_scalar_type(-1 - len(known)))
        codes.append(places[joined.indices.fill_null(-1).to_numpy()])
    return np.concatenate(codes), known


def _drawn_rows(n_rows: int) -> NDArray[np.int64]:
    return np.linspace(0, n_rows - 1, min(N_DRAWN, n_rows)).astype(np.int64)


def _has_few_values(column: pd.Series[Any]) -> bool:
    """Whether few of some drawn values differ. If many do, all rows at once need no more memory, and less time."""
    drawn = column.iloc[_drawn_rows(len(column))]
    return 8 * drawn.nunique(dropna=False) <= len(drawn)


def _is_in_parts(dtype: Any) -> bool:
    """Whether values of a dtype can be looked up in others: intervals that overlap cannot, objects are of any kind."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    is_plain = dtype.kind in "iufbmM" and not isinstance(dtype, pd.ArrowDtype)
    return isinstance(dtype, pd.StringDtype) or is_plain


def _factorize_long(column: pd.Series[Any], *, sort: bool) -> tuple[NDArray[np.signedinteger[Any]], pd.Index[Any]]:
    """Do what `factorize` does, of some rows after the others."""
    begins = range(0, len(column), ROWS_AT_ONCE)
    if _is_in_arrow(column.dtype):
        whole = _in_arrow(column)
        codes, texts = code_batches_of_texts(whole.slice(begin, ROWS_AT_ONCE).combine_chunks() for begin in begins)
        values = pd.Index(pd.Series(pd.array(texts, dtype=column.dtype)))
    else:
        distinct = DistinctValues()
        parts = (column.iloc[begin : begin + ROWS_AT_ONCE] for begin in begins)
        numbers = [distinct.add(part).astype(np.min_scalar_type(-1 - len(distinct))) for part in parts]
        found = distinct.series("", with_missing=False)
        # As pandas, which has no index of half floats.
        values = pd.Index(found.astype(np.float32) if found.dtype == np.float16 else found)
        codes = np.concatenate(numbers)
    if sort:
        place_of, values = pd.factorize(values, sort=True)
        codes = np.append(place_of, -1).astype(codes.dtype)[codes]
    return codes, values.rename(None)


def _is_in_arrow(dtype: Any) -> bool:
    return isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"


def _in_arrow(column: pd.Series[Any]) -> pa.ChunkedArray:
    own = pa.array(column, from_pandas=True)
    return own if isinstance(own, pa.ChunkedArray) else pa.chunked_array([own])


def has_very_many_texts(column: pd.Series[Any], *, sort: bool = False) -> bool:
    """Whether a column has texts in Arrow that `factorize` codes in ranges if many of them differ."""
    # Values in the order of their appearance are put into it at the end, which needs time and memory.
    return _is_in_arrow(column.dtype) and len(column) > (2 if sort else 4) * TEXTS_AT_ONCE


def _many_texts(column: pd.Series[Any]) -> tuple[pa.ChunkedArray, pa.Array] | None:
    """Return a column of many different texts in Arrow, and some of the texts in their order; None for another."""
    texts = _in_arrow(column)
    is_drawn = np.zeros(len(texts), np.bool_)
    is_drawn[_drawn_rows(len(texts))] = True
    drawn = pc.unique(texts.filter(pa.array(is_drawn)).drop_null())
    return None if 2 * len(drawn) <= np.count_nonzero(is_drawn) else (texts, drawn.take(pc.array_sort_indices(drawn)))


def _ranges(texts: pa.ChunkedArray, drawn: pa.Array) -> Iterator[NDArray[np.bool_]]:
    """Yield for each row if its text is in a range, in the order of the texts; the bounds are some of those drawn."""
    n_ranges = min(-(-len(texts) // TEXTS_AT_ONCE), 255)
    bounds = np.unique(np.arange(1, n_ranges) * len(drawn) // n_ranges)
    range_of_row = np.zeros(len(texts), np.uint8)
    for bound in bounds:
        range_of_row += pc.greater_equal(texts, drawn[int(bound)]).fill_null(False).to_numpy().view(np.uint8)
    range_of_row[pc.is_null(texts).to_numpy()] = 255
    for number in range(len(bounds) + 1):
        yield range_of_row == number


def _inverse(order: NDArray[np.integer[Any]]) -> NDArray[np.signedinteger[Any]]:
    place = np.empty(len(order), number_type(len(order)))
    place[order] = np.arange(len(order), dtype=place.dtype)
    return place
