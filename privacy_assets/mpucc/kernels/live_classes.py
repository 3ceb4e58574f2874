"""The compiled part of the mpUCC search: classes of synthetic and original rows that may still identify someone.

A class (rows equal on a combination) is live while it has a synthetic row that is not yet identified and an original
row, and is more than one pair of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel, part
from privacy_assets.mpucc.kernels.class_lists import begin_lists, count_shared
from privacy_assets.mpucc.kernels.code_blocks import CodeBlocks, SuffixGroups, code_at

# Classes of at most this many rows are not worth a first pass that drops rows which later columns cannot distinguish.
SMALL_CLASS = 8


@part
def _count_class(
    memory: NDArray[np.uint8],
    offset: int,
    shift: int,
    rows: NDArray[np.int32],
    start: int,
    mid: int,
    end: int,
    n_open: int,
    group: NDArray[np.int32],
    n_seen: NDArray[np.uint8],
    kept: NDArray[np.int32],
    counts: NDArray[np.int32],
    touched: NDArray[np.int32],
) -> tuple[int, int, int]:
    """Count the rows of one class by value, for values of open rows; list these rows in ``kept``.

    Arguments as in :func:`_split_live`. Returns the number of values, of synthetic rows kept, and of all rows kept.
    """
    n_touched = 0
    n_kept = 0
    has_groups = group.size > 0 and end - start > SMALL_CLASS
    for p in range(start, mid):
        row = rows[p]
        value = code_at(memory, offset, shift, row)
        if counts[value, 0] == 0:
            if row >= n_open:
                continue
            counts[value, 1] = 0
            touched[n_touched] = value
            n_touched += 1
        if has_groups:
            if n_seen[group[row], 0] == 2:
                continue
            n_seen[group[row], 0] += 1
        counts[value, 0] += 1
        kept[n_kept] = row
        n_kept += 1
    n_kept_synthetic = n_kept
    for p in range(mid, end):
        row = rows[p]
        value = code_at(memory, offset, shift, row)
        if counts[value, 0] == 0:
            continue
        if has_groups:
            if n_seen[group[row], 1] == 2:
                continue
            n_seen[group[row], 1] += 1
        counts[value, 1] += 1
        kept[n_kept] = row
        n_kept += 1
    if has_groups:
        for p in range(n_kept):
            n_seen[group[kept[p]], 0] = 0
            n_seen[group[kept[p]], 1] = 0
    return n_touched, n_kept_synthetic, n_kept


@part
def _split_live(
    memory: NDArray[np.uint8],
    offset: int,
    shift: int,
    rows: NDArray[np.int32],
    starts: NDArray[np.int32],
    mids: NDArray[np.int32],
    n_classes: int,
    n_open: int,
    group: NDArray[np.int32],
    n_seen: NDArray[np.uint8],
    kept: NDArray[np.int32],
    counts: NDArray[np.int32],
    touched: NDArray[np.int32],
    out_rows: NDArray[np.int32],
    out_starts: NDArray[np.int32],
    out_mids: NDArray[np.int32],
) -> int:
    """Split live classes by one column and keep the live parts.

    Class i is ``rows[starts[i]:starts[i + 1]]``: open synthetic rows (numbers below ``n_open``), then other synthetic
    rows, then, from ``mids[i]``, original rows. The order survives the split, because the split is stable.
    ``counts`` of shape (n_codes, 4) is zero in its first column on entry and on exit, ``n_seen`` of shape (n_groups, 2)
    everywhere. Of rows with one ``group`` (see SuffixGroups; empty if rows are not grouped), two synthetic (open ones
    first) and two original ones are kept. Returns the number of live parts.
    """
    n_out = 0
    write = 0
    out_starts[0] = 0
    for i in range(n_classes):
        start, mid, end = starts[i], mids[i], starts[i + 1]
        if mid - start == 1:
            row = rows[start]
            value = code_at(memory, offset, shift, row)
            out_rows[write] = row
            position = write + 1
            for p in range(mid, end):
                other = rows[p]
                out_rows[position] = other
                position += code_at(memory, offset, shift, other) == value
            if position > write + 2:
                out_mids[n_out] = write + 1
                n_out += 1
                write = position
                out_starts[n_out] = write
        elif end - mid == 1:
            row = rows[mid]
            value = code_at(memory, offset, shift, row)
            position = write
            for p in range(start, mid):
                other = rows[p]
                out_rows[position] = other
                position += code_at(memory, offset, shift, other) == value
            if position > write + 1 and out_rows[write] < n_open:
                out_rows[position] = row
                out_mids[n_out] = position
                n_out += 1
                write = position + 1
                out_starts[n_out] = write
        else:
            n_touched, n_kept_synthetic, n_kept = _count_class(
                memory, offset, shift, rows, start, mid, end, n_open, group, n_seen, kept, counts, touched
            )
            before = write
            for t in range(n_touched):
                value = touched[t]
                n_synthetic, n_original = counts[value, 0], counts[value, 1]
                if n_original > 0 and n_synthetic + n_original > 2:
                    counts[value, 2] = write
                    counts[value, 3] = write + n_synthetic
                    out_mids[n_out] = write + n_synthetic
                    n_out += 1
                    write += n_synthetic + n_original
                    out_starts[n_out] = write
                else:
                    counts[value, 0] = 0
            if write > before:
                for p in range(n_kept_synthetic):
                    row = kept[p]
                    value = code_at(memory, offset, shift, row)
                    if counts[value, 0] > 0:
                        out_rows[counts[value, 2]] = row
                        counts[value, 2] += 1
                for p in range(n_kept_synthetic, n_kept):
                    row = kept[p]
                    value = code_at(memory, offset, shift, row)
                    if counts[value, 0] > 0:
                        out_rows[counts[value, 3]] = row
                        counts[value, 3] += 1
            for t in range(n_touched):
                counts[touched[t], 0] = 0
    return n_out


@part
def _match_live(
    memory: NDArray[np.uint8],
    offset: int,
    shift: int,
    rows: NDArray[np.int32],
    starts: NDArray[np.int32],
    mids: NDArray[np.int32],
    n_classes: int,
    n_open: int,
    n_codes: int,
    counts: NDArray[np.int32],
    touched: NDArray[np.int32],
    takes_any: bool,
    ordinal: int,
    first: NDArray[np.int32],
    partner: NDArray[np.int32],
) -> bool:
    """Record every open synthetic row that one more column turns into a 1:1 pair; return whether a live part remains.

    With ``takes_any``, any number of original rows takes the place of one. Classes as in :func:`_split_live`.
    ``first[s]`` keeps the smallest ordinal (ordinals are ascending) and ``partner[s]`` the original row of that pair.
    Counting of large classes stops early once no value occurs exactly once, because they cannot identify a record then.
    """
    is_live = False
    for i in range(n_classes):
        start, mid, end = starts[i], mids[i], starts[i + 1]
        if mid - start == 1:
            value = code_at(memory, offset, shift, rows[start])
            found, match = 0, 0
            for p in range(mid, end):
                row = rows[p]
                if code_at(memory, offset, shift, row) == value:
                    found += 1
                    match = row
            if found == 1 or (takes_any and found > 1):
                if first[rows[start]] > ordinal:
                    first[rows[start]] = ordinal
                    partner[rows[start]] = match
            elif found > 1:
                is_live = True
        elif end - mid == 1:
            value = code_at(memory, offset, shift, rows[mid])
            found, match = 0, 0
            for p in range(mid - 1, start - 1, -1):
                row = rows[p]
                if code_at(memory, offset, shift, row) == value:
                    found += 1
                    match = row
            if found == 1:
                if match < n_open and first[match] > ordinal:
                    first[match] = ordinal
                    partner[match] = rows[mid]
            elif found > 1 and match < n_open:
                is_live = True
        else:
            n_touched = 0
            n_single = 0
            for p in range(start, mid):
                row = rows[p]
                value = code_at(memory, offset, shift, row)
                seen = counts[value, 0]
                if seen > 0:
                    counts[value, 0] = seen + 1
                    if seen == 1:
                        n_single -= 1
                        if n_single == 0 and n_touched == n_codes:
                            break
                elif row < n_open:
                    counts[value, 0] = 1
                    counts[value, 1] = 0
                    counts[value, 2] = row
                    touched[n_touched] = value
                    n_touched += 1
                    n_single += 1
            if n_single > 0 or not is_live:
                for p in range(mid, end):
                    row = rows[p]
                    value = code_at(memory, offset, shift, row)
                    if counts[value, 0] > 0:
                        counts[value, 1] += 1
                        counts[value, 3] = row
            for t in range(n_touched):
                value = touched[t]
                n_synthetic, n_original = counts[value, 0], counts[value, 1]
                counts[value, 0] = 0
                if n_original > 0:
                    if n_synthetic > 1 or (n_original > 1 and not takes_any):
                        is_live = True
                    elif first[counts[value, 2]] > ordinal:
                        first[counts[value, 2]] = ordinal
                        partner[counts[value, 2]] = counts[value, 3]
    return is_live


@kernel
def identify(
    candidates: NDArray[np.int16],
    is_skipped: NDArray[np.bool_],
    begin: int,
    stop: int,
    blocks: CodeBlocks,
    suffixes: SuffixGroups,
    all_rows: NDArray[np.int32],
    n_open: int,
    n_synthetic: int,
    takes_any: bool,
    first: NDArray[np.int32],
    partner: NDArray[np.int32],
    is_checked: NDArray[np.bool_],
    is_live: NDArray[np.bool_],
) -> None:
    """Search the candidates from ``begin`` to ``stop``, all of one size and in lexicographic order.

    ``all_rows`` are the numbers of the rows, 0 and up: open synthetic, other synthetic, original. Written in place:
    ``first`` and ``partner`` per open row (see :func:`_match_live`, also for ``takes_any``; the ordinal is the position
    in ``candidates``), ``is_checked`` and ``is_live`` per candidate. A skipped candidate is checked but not searched;
    one whose prefix has no live rows is not checked. Memory: one row list per column of the prefix, but for the first.
    """
    memory, offset, shift, n_codes, _ = blocks
    suffix_ids, first_suffix, n_groups = suffixes
    size = candidates.shape[1]
    n_seen = np.zeros((n_groups, 2), np.uint8)
    kept = np.empty(len(all_rows), np.int32)
    rows, places, starts, mids, n_classes, prefix, counts, touched = begin_lists(
        size, len(all_rows), n_open, n_synthetic, 3, n_codes, 4
    )
    depth = 0
    for i in range(begin, stop):
        depth = count_shared(prefix, depth, candidates, i)
        while depth < size - 1 and n_classes[depth] > 0:
            c = candidates[i, depth]
            d, e = depth, depth + 1
            group = suffix_ids[c - first_suffix] if c >= first_suffix else suffix_ids[:0].reshape(-1)
            own_rows = all_rows if d == 0 else rows[d - 1]
            n_classes[e] = _split_live(memory, offset[c], shift[c], own_rows, starts[places[d]:], mids[places[d]:],
                                       n_classes[d], n_open, group, n_seen, kept, counts, touched, rows[d],
                                       starts[places[e]:], mids[places[e]:])  # fmt: skip
            prefix[depth] = c
            depth += 1
        if n_classes[depth] == 0:
            continue
        is_checked[i] = True
        if is_skipped[i]:
            continue
        c, d = candidates[i, depth], depth
        own_rows = all_rows if d == 0 else rows[d - 1]
        is_live[i] = _match_live(memory, offset[c], shift[c], own_rows, starts[places[d]:], mids[places[d]:],
                                 n_classes[d], n_open, n_codes[c], counts, touched, takes_any, i, first,
                                 partner)  # fmt: skip
