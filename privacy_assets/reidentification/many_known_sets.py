"""Candidates of some released records for many sets of known columns at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows
from privacy_assets.kernels.bit_sets import BITS
from privacy_assets.kernels.slices import SlicePool
from privacy_assets.reidentification.code_sets import coarsen
from privacy_assets.reidentification.kernels.candidate_bits import Places, Ranges, Trie, add_counts, fill_bits
from privacy_assets.reidentification.masked_columns import MaskedColumn

# Bits of a block of originals, and counts, are kept for all sets at once: up to 64 and 128 MiB.
BYTES_OF_BITS = 1 << 26
MOST_COUNTS = 1 << 24
MOST_WORDS, FEWEST_WORDS = 512, 8


def count_for_many_sets(
    columns: Sequence[MaskedColumn],
    sets: Sequence[Sequence[int]],
    rows: NDArray[np.int64],
    people: NDArray[np.int64] | None,
    n_threads: int,
    on_share: Callable[[float], None] | None = None,
) -> NDArray[np.int64]:
    """Count the candidates of released rows for each of some sets of columns, of shape (n_sets, n).

    Columns, rows and the columns of each set are at least one; ``people`` of None counts originals. ``on_share`` is
    called from time to time with the share of the work that is done. Cost: the distinct boxes of the rows times the
    sets times originals / 64. Memory: 4 bytes for each original and column, and some that does not grow with the
    originals.
    """
    set_of_row = [column.sets.set_of_row[rows] for column in columns]
    box_of_row, n_boxes = group_rows(set_of_row, [column.sets.n_sets for column in columns])
    example = np.zeros(n_boxes, np.int64)
    example[box_of_row] = np.arange(len(rows))
    places = place_originals(people, len(columns[0].codes))
    boxes, ranges, codes = _prepare(columns, [own[example] for own in set_of_row], places)
    sizes = np.empty((len(sets), len(rows)), np.int64)
    at_a_time = max(MOST_COUNTS // n_boxes, 1)
    for begin in range(0, len(sets), at_a_time):
        own = sets[begin : begin + at_a_time]
        trie = _make_trie(own)

        def on_batch(share: float, begin: int = begin, n_own: int = len(own)) -> None:
            if on_share is not None:
                on_share((begin + share * n_own) / len(sets))

        counts = _count(boxes, ranges, codes, places, trie, len(own), n_threads, on_batch)
        sizes[begin : begin + len(own)] = counts.T[:, box_of_row]
    return sizes


def place_originals(people: NDArray[np.int64] | None, n_original: int) -> Places:
    """Assign a bit to each original, so that those of a person are together."""
    none = np.zeros(0, np.int64)
    if people is None:
        every = np.full(-(-n_original // BITS), np.iinfo(np.uint64).max, np.uint64)
        return Places(np.arange(n_original), every, none, none)
    counts = np.bincount(people)
    by_person = np.argsort(people, kind="stable")
    within = np.empty(n_original, np.int64)
    within[by_person] = np.arange(n_original) - np.repeat(np.cumsum(counts) - counts, counts)
    start, last_bits, n_words = np.zeros(len(counts), np.int64), [none], 0
    for n_own in range(1, BITS + 1):
        own = np.flatnonzero(counts == n_own)
        word, place = np.divmod(np.arange(len(own)), BITS // n_own)
        start[own] = (n_words + word) * BITS + place * n_own
        last_bits.append(start[own] + n_own - 1)
        n_words += -(-len(own) // (BITS // n_own))
    long = np.flatnonzero(counts > BITS)
    long_end = n_words + np.cumsum(-(-counts[long] // BITS))
    long_begin = np.concatenate([[n_words], long_end[:-1]])[: len(long)].astype(np.int64)
    start[long] = long_begin * BITS
    ends = np.zeros(int(long_end[-1]) if len(long) else n_words, np.uint64)
    last = np.concatenate(last_bits)
    np.bitwise_or.at(ends, last // BITS, np.uint64(1) << (last % BITS).astype(np.uint64))
    return Places(start[people] + within, ends, long_begin, long_end.astype(np.int64))


def _prepare(
    columns: Sequence[MaskedColumn], set_of_box: Sequence[NDArray[np.int64]], places: Places
) -> tuple[NDArray[np.int64], Ranges, NDArray[np.int32]]:
    """Return the boxes, the sets of codes that they use, and the codes at each bit."""
    codes = np.full((len(columns), BITS * len(places.ends)), -1, np.int32)
    boxes = np.empty((len(set_of_box[0]), len(columns)), np.int64)
    first_row, n_ranges, low, high = [0], [np.zeros(1, np.int64)], [], []
    n_sets = 0
    for a, (column, own) in enumerate(zip(columns, set_of_box, strict=True)):
        used, boxes[:, a] = np.unique(own, return_inverse=True)
        boxes[:, a] += n_sets
        n_sets += len(used)
        # Codes that only unused sets distinguish are merged.
        own_codes, n_codes, sets = coarsen(column.codes.astype(np.int64), column.n_codes, column.sets.only(used))
        codes[a, places.of_original] = own_codes
        n_ranges.append(np.diff(sets.first))
        low.append(sets.low + first_row[-1])
        high.append(sets.high + first_row[-1] + 1)
        first_row.append(first_row[-1] + n_codes + 1)
    first = np.cumsum(np.concatenate(n_ranges))
    return boxes, Ranges(np.array(first_row), first, np.concatenate(low), np.concatenate(high)), codes


def _make_trie(sets: Sequence[Sequence[int]]) -> Trie:
    """Join sets that begin with the same columns; the targets are the positions of the sets."""
    depth, column, target = [], [], []
    above: tuple[int, ...] = ()
    for number in sorted(range(len(sets)), key=lambda number: sorted(sets[number])):
        own = tuple(sorted(sets[number]))
        same = 0
        while same < min(len(own), len(above)) and own[same] == above[same]:
            same += 1
        for d in range(same, len(own)):
            depth.append(d)
            column.append(own[d])
            target.append(-1)
        target[-1] = number
        above = own
    return Trie(np.array(depth), np.array(column), np.array(target))


def _count(
    boxes: NDArray[np.int64],
    ranges: Ranges,
    codes: NDArray[np.int32],
    places: Places,
    trie: Trie,
    n_targets: int,
    n_threads: int,
    on_share: Callable[[float], None],
) -> NDArray[np.int64]:
    """Count block by block; return the counts by box and set of columns."""
    n_words, n_rows, n_sets = len(places.ends), int(ranges.first_row[-1]), len(ranges.first) - 1
    width = int(np.clip(BYTES_OF_BITS // 8 // (n_rows + n_sets), FEWEST_WORDS, MOST_WORDS))
    counts = np.zeros((len(boxes), n_targets), np.int64)
    is_continued = np.zeros(counts.shape if len(places.long_end) else (1, 1), np.bool_)
    share = 0.0
    with SlicePool(n_threads, lambda: on_share(share)) as pool:
        for begin in range(0, n_words, width):
            own = min(width, n_words - begin)
            bits = np.empty((n_sets, own), np.uint64)
            fill_bits(codes, begin, ranges, np.empty((n_rows, own), np.uint64), bits)

            def task(slices: Iterator[tuple[int, int]], begin: int = begin, bits: NDArray[np.uint64] = bits) -> None:
                for first, last in slices:
                    add_counts(boxes, bits, begin, places, trie, counts, is_continued, first, last)

            pool.run(len(boxes), task)
            share = (begin + own) / n_words
            on_share(share)
    return counts
