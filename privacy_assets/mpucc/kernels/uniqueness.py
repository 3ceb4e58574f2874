"""Unique rows and entropy of many column combinations of one table.

The combinations are walked depth first. A row that is unique on a combination stays unique on all its extensions, so
only classes of two or more rows are split on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel, part
from privacy_assets.kernels.slices import SlicePool
from privacy_assets.mpucc.kernels.code_blocks import (
    FIRST_GROUPED_SIZE,
    CodeBlocks,
    SuffixGroups,
    code_at,
    no_suffix_groups,
    suffix_groups,
)

# The smallest share of a billion rows, raised to this power, is 1e-270, far from underflow.
HIGHEST_ORDER_OF_POWERS = 30.0
# Entropies of this order are the min-entropy within 1e-10, and its logarithms do not overflow.
HIGHEST_ORDER = 1e12
# For orders this close to 1, differences from 1 are summed, to avoid cancellation.
NEAR_ONE = 0.1


class Profile(NamedTuple):
    """Measures of column combinations on the synthetic rows alone, one entry per combination."""

    n_unique: NDArray[np.int64]
    entropy: NDArray[np.float64]

    def take(self, rows: NDArray[np.int64]) -> Profile:
        """Return the entries at some positions."""
        return Profile(self.n_unique[rows], self.entropy[rows])


@part
def _add_class(
    n_rows: int, total: float, largest: int, term: NDArray[np.float64], is_relative: bool
) -> tuple[float, int]:
    """Add a class to the sum inside the entropy; return the sum and the size of the largest class so far.

    Relative means that the sum is one of powers divided by the power of the largest class, and ``term`` has their
    logarithms, because powers of a high order would underflow.
    """
    if not is_relative:
        return total + term[n_rows], max(largest, n_rows)
    if n_rows > largest:
        return total * 2.0 ** (term[largest] - term[n_rows]) + 1.0, n_rows
    return total + 2.0 ** (term[n_rows] - term[largest]), largest


@part
def _split_repeated(
    memory: NDArray[np.uint8],
    offset: int,
    shift: int,
    rows: NDArray[np.int32],
    starts: NDArray[np.int32],
    n_classes: int,
    group: NDArray[np.int32],
    n_seen: NDArray[np.uint8],
    kept: NDArray[np.int32],
    term: NDArray[np.float64],
    is_relative: bool,
    counts: NDArray[np.int32],
    touched: NDArray[np.int32],
    out_rows: NDArray[np.int32],
    out_starts: NDArray[np.int32],
) -> tuple[int, int, float, int]:
    """Split classes of two or more rows by one column, keep the parts of two or more rows.

    ``counts`` of shape (n_codes, 3) is zero in its first column on entry and on exit, ``n_seen`` of shape (n_groups,)
    everywhere. Of rows with one ``group`` (see SuffixGroups; empty if rows are not grouped) two are kept, and a part is
    dropped if every row in it has a twin that later columns do not distinguish, because its rows never become unique.
    Returns the number of kept parts, of rows that became unique, the sum over the kept parts (see :func:`_add_class`; 0
    if ``term`` is empty) and the size of the largest part.
    """
    n_out = 0
    write = 0
    n_unique = 0
    total = 0.0
    largest: Any = np.int64(1)  # a literal 1 would be a separate type
    out_starts[0] = 0
    for i in range(n_classes):
        start, end = starts[i], starts[i + 1]
        n_touched = 0
        n_kept = 0
        for p in range(start, end):
            row = rows[p]
            if group.size > 0:
                if n_seen[group[row]] == 2:
                    continue
                n_seen[group[row]] += 1
            value = code_at(memory, offset, shift, row)
            if counts[value, 0] == 0:
                touched[n_touched] = value
                counts[value, 2] = group.size == 0
                n_touched += 1
            counts[value, 0] += 1
            kept[n_kept] = row
            n_kept += 1
        if group.size > 0:
            for p in range(n_kept):
                row = kept[p]
                counts[code_at(memory, offset, shift, row), 2] |= n_seen[group[row]] == 1
            for p in range(n_kept):
                n_seen[group[kept[p]]] = 0
        before = write
        for t in range(n_touched):
            value = touched[t]
            n_rows = counts[value, 0]
            if n_rows == 1:
                n_unique += 1
                counts[value, 0] = 0
            elif counts[value, 2] == 0:
                counts[value, 0] = 0
            else:
                counts[value, 1] = write
                write += n_rows
                n_out += 1
                out_starts[n_out] = write
                if term.size > 0:
                    total, largest = _add_class(n_rows, total, largest, term, is_relative)
        if write > before:
            for p in range(n_kept):
                row = kept[p]
                value = code_at(memory, offset, shift, row)
                if counts[value, 0] > 0:
                    out_rows[counts[value, 1]] = row
                    counts[value, 1] += 1
        for t in range(n_touched):
            counts[touched[t], 0] = 0
    return n_out, n_unique, total, largest


@part
def _count_repeated(
    memory: NDArray[np.uint8],
    offset: int,
    shift: int,
    rows: NDArray[np.int32],
    starts: NDArray[np.int32],
    n_classes: int,
    n_codes: int,
    term: NDArray[np.float64],
    is_relative: bool,
    counts: NDArray[np.int32],
    touched: NDArray[np.int32],
) -> tuple[int, float, int]:
    """Count like :func:`_split_repeated`, but do not keep parts; without ``term``, stop once no row is unique."""
    n_unique = 0
    total = 0.0
    largest: Any = np.int64(1)  # a literal 1 would be a separate type
    for i in range(n_classes):
        start, end = starts[i], starts[i + 1]
        if end - start == 2 and term.size == 0:
            if code_at(memory, offset, shift, rows[start]) != code_at(memory, offset, shift, rows[start + 1]):
                n_unique += 2
            continue
        n_touched = 0
        n_single = 0
        for p in range(start, end):
            value = code_at(memory, offset, shift, rows[p])
            seen = counts[value, 0]
            counts[value, 0] = seen + 1
            if seen == 0:
                touched[n_touched] = value
                n_touched += 1
                n_single += 1
            elif seen == 1:
                n_single -= 1
                if n_single == 0 and n_touched == n_codes and term.size == 0:
                    break
        n_unique += n_single
        for t in range(n_touched):
            value = touched[t]
            if term.size > 0 and counts[value, 0] > 1:
                total, largest = _add_class(counts[value, 0], total, largest, term, is_relative)
            counts[value, 0] = 0
    return n_unique, total, largest


@kernel
def _profile(
    combos: NDArray[np.int16],
    sizes: NDArray[np.int64],
    begin: int,
    stop: int,
    blocks: CodeBlocks,
    suffixes: SuffixGroups,
    root: NDArray[np.int32],
    term: NDArray[np.float64],
    is_relative: bool,
    n_unique: NDArray[np.int64],
    total: NDArray[np.float64],
    largest: NDArray[np.int64],
) -> None:
    """Profile the combinations from ``begin`` to ``stop``, a depth-first list in which prefixes come first.

    ``root`` lists the rows of the one class of the empty combination. Written in place, per combination: ``n_unique``
    (rows), and with a ``term`` ``total`` (sum over all classes, see :func:`_add_class`) and ``largest`` (rows of the
    largest class).
    """
    memory, offset, shift, n_codes, _ = blocks
    most_codes = 1
    for c in range(len(n_codes)):
        most_codes = max(most_codes, n_codes[c])
    suffix_ids, first_suffix, n_groups = suffixes
    n_rows = root.shape[0]
    n_seen = np.zeros(n_groups, np.uint8)
    kept = np.empty(n_rows, np.int32)
    deepest = 0
    for i in range(begin, stop):
        deepest = max(deepest, sizes[i])
    rows = np.empty((deepest + 1, n_rows), np.int32)
    starts = np.empty((deepest + 1, n_rows // 2 + 2), np.int32)
    n_classes = np.zeros(deepest + 1, np.int64)
    unique = np.zeros(deepest + 1, np.int64)
    counts = np.zeros((most_codes, 3), np.int32)
    touched = np.empty(most_codes, np.int32)
    for i in range(n_rows):
        rows[0, i] = root[i]
    starts[0, 0], starts[0, 1] = 0, n_rows
    if n_rows > 1:
        n_classes[0] = 1
    else:
        unique[0] = n_rows
    prefix = np.empty(deepest, np.int64)
    for d in range(deepest):
        prefix[d] = -1
    depth = 0
    for i in range(begin, stop):
        size = sizes[i]
        shared = 0
        while shared < min(depth, size) and prefix[shared] == combos[i, shared]:
            shared += 1
        depth = shared
        has_extension = i + 1 < stop and sizes[i + 1] > size
        for j in range(size):
            has_extension = has_extension and combos[i, j] == combos[i + 1, j]
        while depth < size:
            c, d, e = combos[i, depth], depth, depth + 1
            group = suffix_ids[c - first_suffix] if c >= first_suffix else suffix_ids[:0].reshape(-1)
            if e == size and not has_extension:
                found, value, most = _count_repeated(memory, offset[c], shift[c], rows[d], starts[d],
                                                     n_classes[d], n_codes[c], term, is_relative, counts,
                                                     touched)  # fmt: skip
            else:
                n_classes[e], found, value, most = _split_repeated(memory, offset[c], shift[c], rows[d],
                                                                   starts[d], n_classes[d], group, n_seen, kept, term,
                                                                   is_relative, counts, touched, rows[e],
                                                                   starts[e])  # fmt: skip
            unique[e] = unique[d] + found
            if e == size:
                n_unique[i] = unique[e]
                largest[i] = most
                if term.size > 0:
                    total[i] = value + unique[e] * (2.0 ** (term[1] - term[most]) if is_relative else term[1])
            if e == size and not has_extension:
                break
            prefix[depth] = c
            depth += 1


def entropy_terms(n_rows: int, alpha: float) -> NDArray[np.float64]:
    """Return the term of a class of c rows in the sum of the Renyi entropy of order alpha, for c from 0 to n_rows.

    With p = c / n_rows it is p ** alpha; near order 1, where the sum is nearly 1 and its logarithm is divided by nearly
    0, it is p ** alpha - p; at order 1 it is p * log2(1 / p) [1]_. Above ``HIGHEST_ORDER_OF_POWERS`` it is the base 2
    logarithm of c ** alpha, for sums relative to the largest class.

    .. [1] A. Renyi (1961), "On measures of entropy and information", Proceedings of the Fourth Berkeley Symposium on
       Mathematical Statistics and Probability, vol. 1, 547-561.
    """
    n_of_class = np.arange(n_rows + 1, dtype=np.float64)
    n_of_class[0] = 1.0
    share = n_of_class / max(n_rows, 1)
    if np.isinf(alpha):
        term = np.zeros_like(share)
    elif alpha > HIGHEST_ORDER_OF_POWERS:
        term = min(alpha, HIGHEST_ORDER) * np.log2(n_of_class)
    elif alpha == 1:
        term = -share * np.log2(share)
    elif abs(alpha - 1) < NEAR_ONE:
        term = share * np.expm1((alpha - 1) * np.log(share))
    else:
        term = share**alpha
    term[0] = 0.0
    return term


def _normalized_entropy(
    total: NDArray[np.float64], largest: NDArray[np.int64], n_rows: int, alpha: float
) -> NDArray[np.float64]:
    """Turn sums over classes into Renyi entropies in bits, divided by their largest possible value log2(n_rows)."""
    if n_rows < 2:
        return np.zeros(len(total))
    if np.isinf(alpha):
        bits = np.log2(n_rows / largest)
    elif alpha > HIGHEST_ORDER_OF_POWERS:
        order = min(alpha, HIGHEST_ORDER)
        bits = (order * np.log2(n_rows / largest) - np.log2(total)) / (order - 1.0)
    elif alpha == 1:
        bits = total
    elif abs(alpha - 1) < NEAR_ONE:
        bits = np.log1p(total) / np.log(2.0) / (1.0 - alpha)
    else:
        bits = np.log2(total) / (1.0 - alpha)
    return np.asarray(np.clip(bits / np.log2(n_rows), 0.0, 1.0), np.float64)


def renyi_entropy(counts: NDArray[np.int64], alpha: float) -> float:
    """Return the Renyi entropy of order alpha, in bits, of the shares of counts above 0."""
    n_rows, largest = int(counts.sum()), int(counts.max())
    term = entropy_terms(n_rows, alpha)
    terms = term[counts]
    if HIGHEST_ORDER_OF_POWERS < alpha < np.inf:
        terms = 2.0 ** (terms - term[largest])
    entropy = _normalized_entropy(np.array([terms.sum()]), np.array([largest]), n_rows, alpha)
    return float(entropy[0] * np.log2(n_rows))


def profile_combinations(
    blocks: CodeBlocks, combos: NDArray[np.int16], weights: NDArray[np.int32], alpha: float | None, pool: SlicePool
) -> Profile:
    """Count unique rows and measure the entropy of each combination.

    ``combos`` (n_combos, max_size) has ascending columns, padded with -1. An ``alpha`` of None omits the entropy
    (zeros), which is faster.
    """
    if len(combos) == 0:
        return Profile(np.zeros(0, np.int64), np.zeros(0))
    order = np.lexsort(combos.T[::-1])
    copies = weights if alpha is not None else np.minimum(weights, 2)
    root = np.repeat(np.arange(len(weights), dtype=np.int32), copies)
    term = np.empty(0) if alpha is None else entropy_terms(len(root), alpha)
    is_relative = alpha is not None and HIGHEST_ORDER_OF_POWERS < alpha < np.inf
    n_unique = np.zeros(len(combos), np.int64)
    total = np.zeros(len(combos))
    largest = np.ones(len(combos), np.int64)
    # Entropies need the true sizes of classes; for unique rows only sizes above one matter.
    is_grouped = alpha is None and combos.shape[1] >= FIRST_GROUPED_SIZE
    suffixes = suffix_groups(blocks) if is_grouped else no_suffix_groups(len(blocks.n_codes))
    in_order = combos[order]
    sizes_in_order = (in_order >= 0).sum(axis=1)

    def task(slices: Iterator[tuple[int, int]]) -> None:
        for begin, stop in slices:
            _profile(in_order, sizes_in_order, begin, stop, blocks, suffixes, root, term, is_relative, n_unique, total,
                     largest)  # fmt: skip

    pool.run(len(combos), task)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    entropy = np.zeros(len(combos))
    if alpha is not None:
        entropy = _normalized_entropy(total[back], largest[back], len(root), alpha)
    return Profile(n_unique[back], entropy)
