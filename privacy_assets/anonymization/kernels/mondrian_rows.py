"""Counting and moving the rows of Mondrian classes: the part that reads rows and does not decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.mondrian_cuts import Box, Lists
from privacy_assets.kernels.compilation import allocating_part, kernel, part
from privacy_assets.kernels.numbers import number_type
from privacy_assets.kernels.sorting import sort_ascending

BYTES_PER_WORD = 8


class PackedRows(NamedTuple):
    """Rows of codes, contiguous in memory and padded with zeros to whole words, and the record of each row.

    ``words`` are the same memory as ``codes``; ``records`` are moved together with them.
    """

    codes: NDArray[np.unsignedinteger[Any]]
    words: NDArray[np.uint64]
    records: NDArray[np.signedinteger[Any]]


def pack_rows(columns: Sequence[NDArray[Any]], n_values: Sequence[int]) -> PackedRows:
    """Copy columns of codes, from 0 to ``n_values[j] - 1`` (not checked here), into rows."""
    dtype = np.dtype(np.uint16 if max(n_values, default=1) <= 1 << 16 else np.uint32)
    per_word = BYTES_PER_WORD // dtype.itemsize
    n_rows = len(columns[0])
    codes = np.zeros((n_rows, -(-len(columns) // per_word) * per_word), dtype)
    for j, column in enumerate(columns):
        codes[:, j] = column
    return pack_matrix(codes)


def pack_matrix(codes: NDArray[np.unsignedinteger[Any]]) -> PackedRows:
    """Wrap a matrix of rows that fill whole words; its rows will be moved."""
    n_rows = len(codes)
    records: NDArray[Any] = np.arange(n_rows, dtype=number_type(n_rows))
    return PackedRows(codes, codes.view(np.uint64), records)


@allocating_part
def count_rows(
    codes: NDArray[np.unsignedinteger[Any]],
    begin: int,
    stop: int,
    first_bin: NDArray[np.int64],
    box: Box,
    histogram: NDArray[np.int64],
) -> None:
    """Add rows to the histogram of their class; any engine may do this counting chunk by chunk."""
    n_dimensions = len(box.low)
    offset, shift = np.empty(n_dimensions, np.int64), box.shift
    is_shifted = False
    for j in range(n_dimensions):
        offset[j] = first_bin[j] - (box.base[j] >> shift[j])  # wraps around, and so back again
        is_shifted = is_shifted or shift[j] > 0
    if not is_shifted:
        for i in range(begin, stop):
            for j in range(n_dimensions):
                histogram[np.uint64(offset[j]) + np.uint64(codes[i, j])] += 1
        return
    for i in range(begin, stop):
        for j in range(n_dimensions):
            histogram[np.uint64(offset[j]) + (np.uint64(codes[i, j]) >> np.uint64(shift[j]))] += 1


@part
def list_codes(
    codes: NDArray[np.unsignedinteger[Any]],
    begin: int,
    stop: int,
    j: int,
    histogram: NDArray[np.int64],
    first_bin: int,
    lists: Lists,
) -> int:
    """List the codes of one counted dimension row by row, in no particular order, and clear their bins.

    Like `list_bins`, but the cost depends on the rows instead of the bins.
    """
    n_listed = 0
    for i in range(begin, stop):
        code = np.int64(codes[i, j])
        count = histogram[first_bin + code]
        if count > 0:
            lists.bins[n_listed] = code
            lists.tally[n_listed] = count
            histogram[first_bin + code] = 0
            n_listed += 1
    return n_listed


@allocating_part
def list_single_codes(
    codes: NDArray[np.unsignedinteger[Any]], begin: int, stop: int, j: int, lists: Lists
) -> tuple[int, Lists]:
    """List the codes of an ordered dimension one by one, ascending; the lists grow if they are too short."""
    size = stop - begin
    if size > len(lists.bins):
        lists = Lists(np.empty(size, np.int64), np.empty(size, np.int64), lists.head)
    bins, tally = lists.bins, lists.tally
    for i in range(size):
        bins[i] = codes[begin + i, j]
    if size > 48:
        sort_ascending(bins[:size])
    else:
        for x in range(1, size):
            code = bins[x]
            y = x - 1
            while y >= 0 and bins[y] > code:
                bins[y + 1] = bins[y]
                y -= 1
            bins[y + 1] = code
    n_listed = 0
    for i in range(size):
        if n_listed > 0 and bins[n_listed - 1] == bins[i]:
            tally[n_listed - 1] += 1
        else:
            bins[n_listed] = bins[i]
            tally[n_listed] = 1
            n_listed += 1
    return n_listed, lists


@part
def move_rows(
    codes: NDArray[np.unsignedinteger[Any]],
    words: NDArray[np.uint64],
    records: NDArray[np.signedinteger[Any]],
    begin: int,
    stop: int,
    j: int,
    threshold: int,
    is_head: NDArray[np.bool_],
) -> int:
    """Move the rows on the left of a cut to the front, in place; return the start of the right side.

    A row is on the left when its code is at most ``threshold``, or, for sets (``is_head`` not empty), is marked.
    """
    # Every row is exchanged, regardless of its side: a data-dependent branch costs more than the writes.
    n_words = words.shape[1]
    is_set = len(is_head) > 0
    left = np.int64(begin)
    for i in range(begin, stop):
        code = np.int64(codes[i, j])
        goes_left = np.int64(is_head[code]) if is_set else np.int64(code <= threshold)
        for w in range(n_words):
            word = words[i, w]
            words[i, w] = words[left, w]
            words[left, w] = word
        record = records[i]
        records[i] = records[left]
        records[left] = record
        left += goes_left
    return int(left)


def list_class_values(
    codes: NDArray[np.integer[Any]], begins: NDArray[np.int64], stops: NDArray[np.int64], n_values: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the distinct codes of ranges of rows, ascending, and where those of each range begin.

    The ranges may overlap; codes are below ``n_values``.
    """
    # Codes have several widths, and the kernel would be compiled for each of them.
    first, values = _list_class_values(codes.astype(np.int64, copy=False), begins, stops, n_values)
    return first, values


@kernel
def _list_class_values(
    codes: NDArray[np.int64], begins: NDArray[np.int64], stops: NDArray[np.int64], n_values: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    n_ranges = len(begins)
    last_range, first = np.empty(n_values, np.int64), np.empty(n_ranges + 1, np.int64)
    for value in range(n_values):
        last_range[value] = -1
    first[0] = 0
    for c in range(n_ranges):
        n_distinct = 0
        for i in range(begins[c], stops[c]):
            if last_range[codes[i]] != c:
                last_range[codes[i]] = c
                n_distinct += 1
        first[c + 1] = first[c] + n_distinct
    for value in range(n_values):
        last_range[value] = -1
    values = np.empty(first[n_ranges], np.int64)
    end = np.int64(0)
    for c in range(n_ranges):
        for i in range(begins[c], stops[c]):
            if last_range[codes[i]] != c:
                last_range[codes[i]] = c
                values[end] = codes[i]
                end += 1
        sort_ascending(values[first[c] : end])
    return first, values
