"""The columns that all combinations identifying a synthetic row have in common, found in one search.

A row stays identified without a column if and only if some combination without it identifies the row. So the
intersection of these combinations shows for every column whether dropping it would matter. The search is that of
`search`, by person, but a row stays open until its intersection contains none of the requested columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel, part
from privacy_assets.kernels.slices import SlicePool
from privacy_assets.mpucc.kernels.class_lists import begin_lists, count_shared
from privacy_assets.mpucc.kernels.code_blocks import CodeBlocks, code_at, group_by_width, take_rows
from privacy_assets.mpucc.kernels.people_classes import N_COUNTS, find_people, split_people
from privacy_assets.mpucc.kernels.search import BATCH, LevelProgress, extend, most_records

MOST_COLUMNS = 62
"""Most columns that can be requested at once: one bit each, and one for rows that nothing identifies."""


@part
def _narrow(
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
    used: int,
    common: NDArray[np.int64],
) -> bool:
    """Intersect ``common`` of each open row that one more column identifies with ``used``; return whether a part lives.

    Classes as in `people_classes`; ``common`` and ``used`` are sets of columns, one bit each.
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
                if counts[code_at(memory, offset, shift, row), 0] > 0:
                    common[row] &= used
        for t in range(n_touched):
            counts[touched[t], 0] = 0
    return is_live


@kernel
def narrow_common(
    candidates: NDArray[np.int16],
    used: NDArray[np.int64],
    begin: int,
    stop: int,
    blocks: CodeBlocks,
    n_rows: int,
    n_open: int,
    n_synthetic: int,
    subject: NDArray[np.int32],
    weight: NDArray[np.int32],
    common: NDArray[np.int64],
    is_live: NDArray[np.bool_],
) -> None:
    """Search the candidates like ``people_classes.identify_people``, for common columns.

    ``used`` has the columns of each candidate as a set of bits. Written are ``common``, the set of each open row,
    intersected with that of each candidate that identifies it, and ``is_live``, whether larger combinations can
    identify rows.
    """
    memory, offset, shift, n_codes, _ = blocks
    size = candidates.shape[1]
    rows, starts, mids, n_classes, prefix, counts, touched = begin_lists(
        size, n_rows, n_open, n_synthetic, 2, n_codes, N_COUNTS
    )
    depth = 0
    for i in range(begin, stop):
        depth = count_shared(prefix, depth, candidates, i)
        while depth < size - 1 and n_classes[depth] > 0:
            c, d, e = candidates[i, depth], depth, depth + 1
            n_classes[e] = split_people(memory, offset[c], shift[c], rows[d], starts[d], mids[d],
                                        n_classes[d], n_open, subject, weight, counts, touched, rows[e], starts[e],
                                        mids[e])  # fmt: skip
            prefix[depth] = c
            depth += 1
        if n_classes[depth] == 0:
            continue
        c, d = candidates[i, depth], depth
        is_live[i] = _narrow(memory, offset[c], shift[c], rows[d], starts[d], mids[d], n_classes[d],
                             n_open, n_codes[c], subject, weight, counts, touched, used[i], common)  # fmt: skip


def find_common_columns(
    columns: Sequence[NDArray[Any]],
    n_codes: Sequence[int],
    n_synthetic: int,
    weights: NDArray[np.int32],
    subjects: NDArray[np.int32],
    *,
    asked_for: Sequence[int],
    max_size: int,
    n_threads: int = 1,
    on_progress: Callable[[LevelProgress], None] | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the synthetic rows that combinations of at most ``max_size`` columns identify, and the columns each needs.

    A column is needed, of shape (n_synthetic, n_asked_for), if every combination that identifies the row has it; True
    for rows that are not identified. At most ``MOST_COLUMNS`` are asked for. Other parameters are those of
    :func:`~privacy_assets.mpucc.kernels.search.find_mpuccs`; ``subjects`` is required: if every original record is a
    person, those of weight one are numbered, and the others are -1.
    """
    blocks = group_by_width(columns, n_codes)
    bit_of_column = np.zeros(len(columns), np.int64)
    bit_of_column[list(asked_for)] = 1 << np.arange(len(asked_for), dtype=np.int64)
    nothing = 1 << len(asked_for)
    common = np.full(n_synthetic, 2 * nothing - 1, np.int64)
    could_be = weights[:n_synthetic] <= most_records(weights[n_synthetic:], subjects[n_synthetic:])
    report = on_progress or (lambda _: None)
    parents, n_checked = np.empty((1, 0), np.int16), 0
    with SlicePool(n_threads) as pool:
        for size in range(1, min(max_size, len(columns)) + 1):
            combos, _ = extend(parents, len(columns))
            used = np.bitwise_or.reduce(bit_of_column[combos], axis=1)
            is_live = np.zeros(len(combos), np.bool_)
            for begin in range(0, len(combos), BATCH):
                is_open = could_be & (common != 0)
                n_identified = int((common < nothing).sum())
                report(LevelProgress(size, n_checked + begin, n_identified, begin, len(combos)))
                batch = slice(begin, begin + BATCH)
                is_live[batch] = _search(blocks, combos[batch], used[batch], is_open, weights, subjects, common, pool)
            n_checked += len(combos)
            parents = combos[is_live]
    is_needed = (common[:, None] >> np.arange(len(asked_for))) & 1 == 1
    return common < nothing, is_needed


def _search(
    blocks: CodeBlocks,
    combos: NDArray[np.int16],
    used: NDArray[np.int64],
    is_open: NDArray[np.bool_],
    weights: NDArray[np.int32],
    subjects: NDArray[np.int32],
    common: NDArray[np.int64],
    pool: SlicePool,
) -> NDArray[np.bool_]:
    """Renumber the rows so that the open ones come first, and narrow their sets; return which candidates live."""
    n_synthetic = len(is_open)
    open_rows = np.flatnonzero(is_open)
    rows = np.concatenate([open_rows, np.flatnonzero(~is_open), np.arange(n_synthetic, len(weights))])
    own, of_rows, records = take_rows(blocks, rows), subjects[rows], weights[rows]
    is_live = np.zeros(len(combos), np.bool_)

    def task(slices: Iterator[tuple[int, int]]) -> NDArray[np.int64]:
        narrowed = common[open_rows]
        for begin, stop in slices:
            narrow_common(combos, used, begin, stop, own, len(rows), len(open_rows), n_synthetic, of_rows, records,
                          narrowed, is_live)  # fmt: skip
        return narrowed

    for narrowed in pool.run(len(combos), task):
        common[open_rows] &= narrowed
    return is_live
