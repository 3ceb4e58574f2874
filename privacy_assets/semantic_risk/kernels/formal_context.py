"""A formal context as bits: distinct rows, rows that include others, rows with an attribute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.bit_sets import BITS, count_bits, find_or_add, place_of_lowest, power_above
from privacy_assets.kernels.compilation import kernel, part


class PackedContext(NamedTuple):
    """The distinct rows of a context, those with most attributes first, so that a row only includes later ones.

    Attribute a of a row, which ``weights`` records have, is bit ``a % 64`` of word ``a // 64``. ``n_larger`` rows have
    more attributes than this one and come first; ``holders[first[a]:first[a + 1]]`` are the rows with attribute a,
    ascending.
    """

    rows: NDArray[np.uint64]
    weights: NDArray[np.int64]
    n_larger: NDArray[np.int64]
    first: NDArray[np.int64]
    holders: NDArray[np.int32]

    @property
    def n_attributes(self) -> int:
        """Number of attributes."""
        return len(self.first) - 1


def pack_patterns(codes: Sequence[NDArray[np.int64]], patterns: Sequence[NDArray[np.bool_]]) -> NDArray[np.uint64]:
    """Concatenate the attributes of several columns as bits, as in :class:`PackedContext`.

    Each column has its distinct patterns, of shape (n_patterns, n_own_attributes), and the pattern of each row.
    """
    n_attributes = sum(own.shape[1] for own in patterns)
    rows = np.zeros((len(codes[0]), max(-(-n_attributes // BITS), 1)), np.uint64)
    begin = 0
    for column, own in zip(codes, patterns, strict=True):
        word, shift = divmod(begin, BITS)
        begin += own.shape[1]
        padded = np.zeros((len(own), -(-(shift + own.shape[1]) // BITS) * BITS), np.bool_)
        padded[:, shift : shift + own.shape[1]] = own
        words = np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)
        rows[:, word : word + words.shape[1]] |= words[column]
    return rows


def unpack_rows(rows: NDArray[np.uint64], n_attributes: int) -> NDArray[np.bool_]:
    """Return the attributes of rows of bits, of shape (n_rows, n_attributes)."""
    octets = np.ascontiguousarray(rows.astype("<u8")).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=n_attributes, bitorder="little").astype(np.bool_)


def make_context(
    rows: NDArray[np.uint64], weights: NDArray[np.int64], n_attributes: int
) -> tuple[PackedContext, NDArray[np.int64]]:
    """Order distinct rows by their number of attributes, and list the rows of each attribute.

    ``rows``, at least one, are as in :class:`PackedContext`, in any order (not checked here); ties keep it. Return the
    input position of each row of the context, too.
    """
    sizes = count_bits(rows)
    order = np.argsort(-sizes, kind="stable")
    rows, sizes = np.ascontiguousarray(rows[order]), sizes[order]
    first, holders = list_holders(rows, n_attributes)
    n_larger = np.searchsorted(-sizes, -sizes, side="left").astype(np.int64)
    return PackedContext(rows, np.ascontiguousarray(weights[order]), n_larger, first, holders), order


@kernel
def number_rows(rows: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Assign numbers to distinct rows of bits in order of appearance; return also the first row of each number."""
    table = np.full(power_above(2 * len(rows)), -1, np.int64)
    numbers, first = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    n_distinct = 0
    for e in range(len(rows)):
        found = find_or_add(table, rows, e)
        if found == e:
            first[n_distinct] = e
            numbers[e] = n_distinct
            n_distinct += 1
        else:
            numbers[e] = numbers[found]
    return numbers, first[:n_distinct]


@kernel
def select_attributes(rows: NDArray[np.uint64], kept: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return rows of bits with some of the attributes, renumbered in the order of ``kept``."""
    selected = np.zeros((len(rows), max((len(kept) + 63) // 64, 1)), np.uint64)
    for e in range(len(rows)):
        for b in range(len(kept)):
            bit = (rows[e, kept[b] >> 6] >> np.uint64(kept[b] & 63)) & np.uint64(1)
            selected[e, b >> 6] |= bit << np.uint64(b & 63)
    return selected


@kernel
def list_holders(rows: NDArray[np.uint64], n_attributes: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """List the rows that have each attribute, as in :class:`PackedContext`."""
    n_rows, n_words = rows.shape
    first = np.zeros(n_attributes + 1, np.int64)
    for e in range(n_rows):
        for j in range(n_words):
            rest = rows[e, j]
            while rest:
                first[64 * j + place_of_lowest(rest) + 1] += 1
                rest &= rest - np.uint64(1)
    for a in range(n_attributes):
        first[a + 1] += first[a]
    holders = np.empty(first[n_attributes], np.int32)
    place = first[:n_attributes].copy()
    for e in range(n_rows):
        for j in range(n_words):
            rest = rows[e, j]
            while rest:
                held = 64 * j + place_of_lowest(rest)
                holders[place[held]] = e
                place[held] += 1
                rest &= rest - np.uint64(1)
    return first, holders


@part
def shortest_list(
    own: NDArray[np.uint64], n_larger: int, first: NDArray[np.int64], holders: NDArray[np.int32]
) -> tuple[int, int]:
    """Find the candidates for rows that include a set of bits: ``holders[begin:stop]``.

    ``begin`` is -1 for the empty set, whose candidates are the rows before ``stop``; only rows before ``n_larger`` are
    searched.
    """
    extent_begin, extent_stop = np.int64(-1), np.int64(n_larger)
    for j in range(len(own)):
        rest = own[j]
        while rest:
            a = 64 * j + place_of_lowest(rest)
            rest &= rest - np.uint64(1)
            begin, low, high = first[a], first[a], first[a + 1]
            while low < high:
                middle = (low + high) // 2
                if holders[middle] < n_larger:
                    low = middle + 1
                else:
                    high = middle
            if extent_begin < 0 or low - begin < extent_stop - extent_begin:
                extent_begin, extent_stop = begin, low
    return int(extent_begin), int(extent_stop)
