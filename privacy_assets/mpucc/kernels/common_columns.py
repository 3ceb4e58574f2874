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

from privacy_assets.kernels.slices import SlicePool
from privacy_assets.mpucc.kernels.code_blocks import CodeBlocks, group_by_width, take_rows
from privacy_assets.mpucc.kernels.people_classes import identify_people
from privacy_assets.mpucc.kernels.search import BATCH, LevelProgress, extend, most_records

MOST_COLUMNS = 62
"""Most columns that can be requested at once: one bit each, and one for rows that nothing identifies."""


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
    could_be = weights[:n_synthetic] <= most_records(weights[n_synthetic:], subjects[n_synthetic:])
    with SlicePool(n_threads) as pool:

        def search(
            combos: NDArray[np.int16], used: NDArray[np.int64], is_open: NDArray[np.bool_], common: NDArray[np.int64]
        ) -> NDArray[np.bool_]:
            return _search(blocks, combos, used, is_open, weights, subjects, common, pool)

        return narrow_by_levels(search, len(columns), could_be, asked_for, max_size, on_progress)


def narrow_by_levels(
    search: Callable[[NDArray[np.int16], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]], NDArray[np.bool_]],
    n_columns: int,
    could_be: NDArray[np.bool_],
    asked_for: Sequence[int],
    max_size: int,
    on_progress: Callable[[LevelProgress], None] | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return what `find_common_columns` does, of the synthetic rows that ``could_be`` identified.

    ``search`` is given candidates of one size, the columns asked for that each has (one bit each), which rows are open,
    and their sets of columns, which it narrows to those that all combinations found have. It returns which candidates
    live.
    """
    bit_of_column = np.zeros(n_columns, np.int64)
    bit_of_column[list(asked_for)] = 1 << np.arange(len(asked_for), dtype=np.int64)
    nothing = 1 << len(asked_for)
    common = np.full(len(could_be), 2 * nothing - 1, np.int64)
    report = on_progress or (lambda _: None)
    parents, n_checked = np.empty((1, 0), np.int16), 0
    for size in range(1, min(max_size, n_columns) + 1):
        combos, _ = extend(parents, n_columns)
        used = np.bitwise_or.reduce(bit_of_column[combos], axis=1)
        is_live = np.zeros(len(combos), np.bool_)
        for begin in range(0, len(combos), BATCH):
            is_open = could_be & (common != 0)
            if not is_open.any():
                break
            n_identified = int((common < nothing).sum())
            report(LevelProgress(size, n_checked + begin, n_identified, begin, len(combos)))
            batch = slice(begin, begin + BATCH)
            is_live[batch] = search(combos[batch], used[batch], is_open, common)
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
    is_skipped, is_checked, is_live = (np.zeros(len(combos), np.bool_) for _ in range(3))
    no_rows, all_rows = np.zeros(0, np.int32), np.arange(len(rows), dtype=np.int32)
    del rows

    def task(slices: Iterator[tuple[int, int]]) -> NDArray[np.int64]:
        narrowed = common[open_rows]
        for begin, stop in slices:
            identify_people(combos, is_skipped, begin, stop, own, all_rows, len(open_rows), n_synthetic, of_rows,
                            records, no_rows, no_rows, no_rows, used, narrowed, is_checked, is_live)  # fmt: skip
        return narrowed

    for narrowed in pool.run(len(combos), task):
        common[open_rows] &= narrowed
    return is_live
