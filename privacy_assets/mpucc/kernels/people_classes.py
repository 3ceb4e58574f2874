"""The compiled part of the mpUCC search where a person may have several original records.

Classes as in `live_classes`, but a class identifies its open synthetic rows if all of its original records belong to
one person, and it does not have more synthetic records than these. If everybody has one record, this is a 1:1 pair.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel, part
from privacy_assets.mpucc.kernels.class_lists import begin_lists, count_shared
from privacy_assets.mpucc.kernels.code_blocks import CodeBlocks, code_at

# The columns of the counts of a value: rows and records of both tables, the person, and two positions in lists.
N_COUNTS = 7
NOTHING = np.zeros(0, np.int64)
"""In place of sets of columns, if they are not narrowed."""


@part
def _count_people(
    memory: NDArray[np.uint8],
    offset: int,
    shift: int,
    rows: NDArray[np.int32],
    start: int,
    mid: int,
    end: int,
    n_open: int,
    subject: NDArray[np.int32],
    weight: NDArray[np.int32],
    counts: NDArray[np.int32],
    touched: NDArray[np.int32],
) -> int:
    """Count the rows of one class by value, for values of open rows; return the number of values.

    Written to ``counts``: synthetic rows, synthetic records, original rows, original records, and their person (-1 for
    several). The records are only counted if there is one person.
    """
    n_touched = 0
    for p in range(start, mid):
        row = rows[p]
        value = code_at(memory, offset, shift, row)
        if counts[value, 0] == 0:
            if row >= n_open:
                continue
            counts[value, 1] = counts[value, 2] = counts[value, 3] = 0
            touched[n_touched] = value
            n_touched += 1
        counts[value, 0] += 1
    for p in range(mid, end):
        row = rows[p]
        value = code_at(memory, offset, shift, row)
        if counts[value, 0] == 0:
            continue
        if counts[value, 2] == 0:
            counts[value, 4] = subject[row]
        counts[value, 2] += 1
        if counts[value, 4] >= 0:
            if counts[value, 4] != subject[row]:
                counts[value, 4] = -1
            counts[value, 3] += weight[row]
    n_single = 0
    for t in range(n_touched):
        n_single += counts[touched[t], 2] > 0 and counts[touched[t], 4] >= 0
    if n_single > 0:
        for p in range(start, mid):
            row = rows[p]
            value = code_at(memory, offset, shift, row)
            if counts[value, 0] > 0 and counts[value, 2] > 0 and counts[value, 4] >= 0:
                counts[value, 1] += weight[row]
    return n_touched


@part
def split_people(
    memory: NDArray[np.uint8],
    offset: int,
    shift: int,
    rows: NDArray[np.int32],
    starts: NDArray[np.int32],
    mids: NDArray[np.int32],
    n_classes: int,
    n_open: int,
    subject: NDArray[np.int32],
    weight: NDArray[np.int32],
    counts: NDArray[np.int32],
    touched: NDArray[np.int32],
    out_rows: NDArray[np.int32],
    out_starts: NDArray[np.int32],
    out_mids: NDArray[np.int32],
) -> int:
    """Split live classes by one column, in a stable order, and keep the live parts; return their number.

    A part is live if it has an open synthetic row and an original row, and does not identify its open rows.
    """
    n_out = 0
    write = 0
    out_starts[0] = 0
    for i in range(n_classes):
        start, mid, end = starts[i], mids[i], starts[i + 1]
        n_touched = _count_people(
            memory, offset, shift, rows, start, mid, end, n_open, subject, weight, counts, touched
        )
        before = write
        for t in range(n_touched):
            value = touched[t]
            n_synthetic, n_original = counts[value, 0], counts[value, 2]
            if n_original > 0 and (counts[value, 4] < 0 or counts[value, 1] > counts[value, 3]):
                counts[value, 5] = write
                counts[value, 6] = write + n_synthetic
                out_mids[n_out] = write + n_synthetic
                n_out += 1
                write += n_synthetic + n_original
                out_starts[n_out] = write
            else:
                counts[value, 0] = 0
        if write > before:
            for p in range(start, end):
                row = rows[p]
                value = code_at(memory, offset, shift, row)
                if counts[value, 0] > 0:
                    place = 5 if p < mid else 6
                    out_rows[counts[value, place]] = row
                    counts[value, place] += 1
        for t in range(n_touched):
            counts[touched[t], 0] = 0
    return n_out


@part
def find_people(
    memory: NDArray[np.uint8],
    offset: int,
    shift: int,
    rows: NDArray[np.int32],
    start: int,
    mid: int,
    end: int,
    n_open: int,
    n_codes: int,
    subject: NDArray[np.int32],
    weight: NDArray[np.int32],
    counts: NDArray[np.int32],
    touched: NDArray[np.int32],
) -> tuple[int, int, bool]:
    """Find the values by which one class identifies its open rows.

    ``counts`` is zero in its first column on entry; on exit, only for other values than these. Their synthetic records,
    and their first original row, are in its columns 1 and 5. A class is read only until it is known that several people
    have each value of its open rows: the more rows it has per value, the smaller the part that is read. Return the
    values written to ``touched``, those that identify, and whether others have original rows.
    """
    n_touched = 0
    for p in range(start, mid):
        row = rows[p]
        if row >= n_open:
            break
        value = code_at(memory, offset, shift, row)
        if counts[value, 0] == 0:
            counts[value, 0] = 1
            counts[value, 1] = counts[value, 2] = counts[value, 3] = 0
            touched[n_touched] = value
            n_touched += 1
            if n_touched == n_codes:
                break
    n_several = 0
    for p in range(mid, end):
        row = rows[p]
        value = code_at(memory, offset, shift, row)
        if counts[value, 0] == 0:
            continue
        if counts[value, 2] == 0:
            counts[value, 2] = 1
            counts[value, 4] = subject[row]
            counts[value, 5] = row
        if subject[row] < 0 or counts[value, 4] != subject[row]:
            # This value does not identify anybody, so its other rows do not matter; it stays in ``touched``.
            counts[value, 0] = 0
            n_several += 1
            if n_several == n_touched:
                return n_touched, 0, True
        counts[value, 3] += weight[row]
    n_single = 0
    for t in range(n_touched):
        value = touched[t]
        if counts[value, 2] == 0:
            counts[value, 0] = 0
        n_single += counts[value, 0]
    n_found = 0
    if n_single > 0:
        for p in range(start, mid):
            row = rows[p]
            value = code_at(memory, offset, shift, row)
            if counts[value, 0] > 0:
                counts[value, 1] += weight[row]
        for t in range(n_touched):
            value = touched[t]
            if counts[value, 1] > counts[value, 3]:
                counts[value, 0] = 0
            n_found += counts[value, 0]
    return n_touched, n_found, n_several > 0 or n_found < n_single


@part
def _match_people(
    memory: NDArray[np.uint8],
    offset: int,
    shift: int,
    rows: NDArray[np.int32],
    starts: NDArray[np.int32],
    mids: NDArray[np.int32],
    n_classes: int,
    n_open: int,
    n_codes: int,
    subject: NDArray[np.int32],
    weight: NDArray[np.int32],
    counts: NDArray[np.int32],
    touched: NDArray[np.int32],
    ordinal: int,
    first: NDArray[np.int32],
    partner: NDArray[np.int32],
    together: NDArray[np.int32],
    used: int,
    common: NDArray[np.int64],
) -> bool:
    """Record every open synthetic row that one more column lets single out a person; return whether a part is live.

    ``first[s]`` keeps the smallest ordinal (ordinals are ascending), ``partner[s]`` the first original row of that
    class and ``together[s]`` its synthetic records. If ``common`` is not empty, ``common[s]`` is intersected with
    ``used`` instead: sets of columns, one bit each.
    """
    is_live = False
    for i in range(n_classes):
        start, mid, end = starts[i], mids[i], starts[i + 1]
        n_touched, n_found, has_live = find_people(
            memory, offset, shift, rows, start, mid, end, n_open, n_codes, subject, weight, counts, touched
        )
        is_live |= has_live
        if n_found > 0:
            for p in range(start, mid):
                row = rows[p]
                if row >= n_open:
                    break
                value = code_at(memory, offset, shift, row)
                if counts[value, 0] == 0:
                    continue
                if len(common) > 0:
                    common[row] &= used
                elif first[row] > ordinal:
                    first[row] = ordinal
                    partner[row] = counts[value, 5]
                    together[row] = counts[value, 1]
        for t in range(n_touched):
            counts[touched[t], 0] = 0
    return is_live


@kernel
def identify_people(
    candidates: NDArray[np.int16],
    is_skipped: NDArray[np.bool_],
    begin: int,
    stop: int,
    blocks: CodeBlocks,
    all_rows: NDArray[np.int32],
    n_open: int,
    n_synthetic: int,
    subject: NDArray[np.int32],
    weight: NDArray[np.int32],
    first: NDArray[np.int32],
    partner: NDArray[np.int32],
    together: NDArray[np.int32],
    used: NDArray[np.int64],
    common: NDArray[np.int64],
    is_checked: NDArray[np.bool_],
    is_live: NDArray[np.bool_],
) -> None:
    """Search the candidates from ``begin`` to ``stop`` like ``live_classes.identify``, by person.

    ``subject`` is the person of each original row, -1 if several people have the records of this one, and ``weight``
    the records of each row. Written are ``first``, ``partner`` and ``together``, see :func:`_match_people`; or, if they
    are not empty, ``common`` by the columns that each candidate has ``used``.
    """
    memory, offset, shift, n_codes, _ = blocks
    size = candidates.shape[1]
    rows, places, starts, mids, n_classes, prefix, counts, touched = begin_lists(
        size, len(all_rows), n_open, n_synthetic, 2, n_codes, N_COUNTS
    )
    depth = 0
    for i in range(begin, stop):
        depth = count_shared(prefix, depth, candidates, i)
        while depth < size - 1 and n_classes[depth] > 0:
            c, d, e = candidates[i, depth], depth, depth + 1
            own_rows = all_rows if d == 0 else rows[d - 1]
            n_classes[e] = split_people(memory, offset[c], shift[c], own_rows, starts[places[d]:], mids[places[d]:],
                                        n_classes[d], n_open, subject, weight, counts, touched, rows[d],
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
        is_live[i] = _match_people(memory, offset[c], shift[c], own_rows, starts[places[d]:], mids[places[d]:],
                                   n_classes[d], n_open, n_codes[c], subject, weight, counts, touched, i, first,
                                   partner, together, used[i] if len(used) > 0 else 0, common)  # fmt: skip
