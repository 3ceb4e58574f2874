"""Counting of candidates for many sets of known columns at once, with one bit per original.

For each set of codes of a column, the originals inside it are stored as bits. The candidates of a box for some known
columns are the bits that these columns have in common, so each further set of columns costs a few operations per 64
originals. The bits of a block of originals are made for all sets of codes first, and used by all boxes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.bit_sets import count_ones
from privacy_assets.kernels.compilation import kernel
from privacy_assets.kernels.sorting import place_in


class Places(NamedTuple):
    """Where the originals are among the bits.

    The bits of a person with up to 64 originals are consecutive and in one word, and ``ends`` is set at the last of
    them (of records, at every bit); a person with more has separate words, from ``long_begin`` to ``long_end``,
    ascending.
    """

    of_original: NDArray[np.int64]
    ends: NDArray[np.uint64]
    long_begin: NDArray[np.int64]
    long_end: NDArray[np.int64]


class Ranges(NamedTuple):
    """Sets of codes of all columns in one list, as ranges of rows of a table of cumulative bits.

    A column has a row for each code, and one more; they begin at ``first_row``. The ranges of a set begin at ``first``:
    the row of the first code, and of the one after the last code.
    """

    first_row: NDArray[np.int64]
    first: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


class Trie(NamedTuple):
    """Sets of columns as a trie, parents before their children; arrays of shape (n_nodes,), dtype=int64.

    A node adds ``column`` to its parent, the last one before it with a ``depth`` less by one; ``target`` is the set of
    columns that ends at it, or -1.
    """

    depth: NDArray[np.int64]
    column: NDArray[np.int64]
    target: NDArray[np.int64]


@kernel
def fill_bits(
    codes: NDArray[np.int32], begin: int, ranges: Ranges, below: NDArray[np.uint64], bits: NDArray[np.uint64]
) -> None:
    """Make the bits of a block of words, which begins at ``begin``, for each set of codes.

    ``codes`` (n_columns, 64 * n_all_words) has the code of each column at each bit; -1 where there is no original.
    ``below`` (n_rows, n_words) is scratch: for each code, the bits of all originals with smaller codes. ``bits``
    (n_sets, n_words) are written.
    """
    n_words = below.shape[1]
    below[:] = 0
    for a in range(len(codes)):
        own = codes[a, 64 * begin : 64 * (begin + n_words)]
        for place in range(len(own)):
            if own[place] >= 0:
                below[ranges.first_row[a] + own[place] + 1, place >> 6] |= np.uint64(1) << np.uint64(place & 63)
        for row in range(ranges.first_row[a] + 1, ranges.first_row[a + 1]):
            for w in range(n_words):
                below[row, w] |= below[row - 1, w]
    for s in range(len(bits)):
        bits[s] = 0
        for r in range(ranges.first[s], ranges.first[s + 1]):
            for w in range(n_words):
                bits[s, w] |= below[ranges.high[r], w] ^ below[ranges.low[r], w]


@kernel
def add_counts(
    boxes: NDArray[np.int64],
    bits: NDArray[np.uint64],
    begin: int,
    places: Places,
    trie: Trie,
    counts: NDArray[np.int64],
    is_continued: NDArray[np.bool_],
    first_box: int,
    last_box: int,
) -> None:
    """Add the candidates in a block of words, which begins at ``begin``, to the counts of some boxes.

    ``boxes`` (n_boxes, n_columns) are the sets of each column, as rows of ``bits``. Modified in place, of shape
    (n_boxes, n_column_sets), are ``counts``, the originals, or people, found so far, and ``is_continued``, whether a
    person whose words continue in the next block was found: blocks must follow each other.
    """
    n_words = bits.shape[1]
    end = begin + n_words
    ends = places.ends[begin:end]
    first_long = place_in(places.long_end, begin + 1)
    last_long = place_in(places.long_begin, end)
    common = np.empty((boxes.shape[1], n_words), np.uint64)
    for b in range(first_box, last_box):
        for node in range(len(trie.depth)):
            depth, target = trie.depth[node], trie.target[node]
            own, now = bits[boxes[b, trie.column[node]]], common[depth]
            above = own if depth == 0 else common[depth - 1]
            total = np.uint64(0)
            for w in range(n_words):
                found = above[w] & own[w]
                now[w] = found
                # Adding ones to the bits of a person below the last one sets the last one if any of them is set.
                inside = ~ends[w]
                total += count_ones((((found & inside) + inside) | found) & ends[w])
            if target < 0:
                continue
            counts[b, target] += np.int64(total)
            for p in range(first_long, last_long):
                is_found = False
                for w in range(max(places.long_begin[p], begin) - begin, min(places.long_end[p], end) - begin):
                    is_found = is_found or now[w] != 0
                if places.long_begin[p] < begin and is_continued[b, target]:
                    is_found = True
                elif is_found:
                    counts[b, target] += 1
                if places.long_end[p] > end:
                    is_continued[b, target] = is_found
