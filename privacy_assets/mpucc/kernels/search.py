"""Exact search for maximal partial unique column combinations (mpUCC) over integer codes.

A synthetic row is identified by a column combination X if exactly one synthetic row and exactly one original row have
its values on X. The search goes level by level, one level per combination size. Inside a level it walks a lexicographic
list of candidates and keeps one partition per column of the shared prefix, so a step splits the classes of the parent
by one more column and never compares whole rows.

Four facts make it fast and keep it exact:

- Only *live* classes are split on: those with a synthetic row that is not yet identified and an original row. As X
  grows, classes only shrink, so descendants of a dead class cannot identify a record.
- Counts are only compared with one. A row of weight two or more is therefore entered as two copies and never
  identified.
- Rows that agree on all later columns stay together, so two of them represent all (SuffixGroups).
- A level is searched in batches of the list. Rows that a batch identifies are masked in the next one, and a level ends
  when no row remains. The mask is constant within a batch, so its slices are independent: the result does not depend on
  the number of threads.

Before a level, its combinations are counted. If they would exceed the number that may be checked, the search ends; it
is then complete up to the previous size.

If people may have several original rows, one person takes the place of one original row, and as many synthetic rows as
the person has rows take the place of one synthetic row. The second and third facts do not apply then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.slices import SlicePool
from privacy_assets.mpucc.kernels.code_blocks import (
    FIRST_GROUPED_SIZE,
    CodeBlocks,
    SuffixGroups,
    group_by_width,
    no_suffix_groups,
    suffix_groups,
    take_rows,
)
from privacy_assets.mpucc.kernels.live_classes import identify
from privacy_assets.mpucc.kernels.mutual_information import ROUNDING, mutual_information
from privacy_assets.mpucc.kernels.people_classes import NOTHING, identify_people
from privacy_assets.mpucc.kernels.uniqueness import Profile, profile_combinations

NOT_IDENTIFIED = np.iinfo(np.int32).max
"""In place of a position in a batch of combinations, and as such of 32 bits."""
NOT_BY_LEVEL = np.iinfo(np.int64).max
BATCH = 8_192
"""Combinations after which identified rows are masked, and progress is reported."""


class SearchInput(NamedTuple):
    """Tables to search, and what to find in them.

    Parameters
    ----------
    columns : sequence of ndarray of shape (n_rows,), integer
        Codes of each column, below ``n_codes``, in the search order, synthetic rows first, then original rows.
    weights : ndarray of shape (n_rows,), dtype=int32
        Multiplicity of each row, at least 1. Without ``subjects``, only rows of weight one are identified or singled
        out.
    subjects : ndarray of shape (n_rows,), dtype=int32, optional
        Person of each original row, -1 for people who are not distinguished. A synthetic row is then identified if all
        original rows with its values belong to one person, and there are at most as many synthetic records as original
        ones with these values. Default: every original record is a person.
    is_sought : ndarray of shape (n_synthetic,), dtype=bool, optional
        Synthetic rows to identify; the others count where they have the same values. Default: all.
    takes_any : bool
        Whether a synthetic row is identified by any number of original rows, not by one alone; not with ``subjects``.
    only_with_first : bool
        Search only the combinations that contain the first column.
    max_combinations : int, optional
        End before the size with which more combinations than this would be checked.
    alpha : float or None
        Order of the Renyi entropy. None: not measured (then ``min_entropy_gain`` must be 0).
    min_entropy_gain : float
        Above 0 the search is heuristic: a combination of two or more columns whose normalized entropy is less than this
        above that of its base (itself without its last column) is neither searched nor extended.
    by_information : bool
        Whether combinations of negative mutual information are searched, but not extended; the search is then heuristic
        and needs an ``alpha``.
    with_profile : bool
        Whether to count the unique rows of each combination.
    """

    columns: Sequence[NDArray[Any]]
    n_codes: Sequence[int]
    n_synthetic: int
    weights: NDArray[np.int32]
    max_size: int
    subjects: NDArray[np.int32] | None = None
    is_sought: NDArray[np.bool_] | None = None
    takes_any: bool = False
    only_with_first: bool = False
    max_combinations: int | None = None
    alpha: float | None = None
    min_entropy_gain: float = 0.0
    by_information: bool = False
    with_profile: bool = True


class SearchResult(NamedTuple):
    """Outcome of :func:`find_mpuccs`, for each checked combination and each synthetic row.

    ``combos`` (n_checked, max_size) has the columns of each in search order, padded with -1. It was not searched if its
    entropy gain was below the threshold, exhausted if extensions within ``max_size`` were skipped because no live rows
    remained, and stopped if they were because of its mutual information. ``combo_of_row`` is the position of the first
    combination that identifies the row, ``partner_of_row`` the original row that it singles out, or the first row of
    the person in its class, both or -1; ``together_of_row`` counts the synthetic records in that class, more than one
    only if people are counted. Every combination of at most ``complete_size`` columns was searched, or could not have
    identified a row, unless the search is heuristic.
    """

    combos: NDArray[np.int16]
    sizes: NDArray[np.int64]
    was_searched: NDArray[np.bool_]
    was_exhausted: NDArray[np.bool_]
    was_stopped: NDArray[np.bool_]
    profile: Profile | None
    combo_of_row: NDArray[np.int64]
    partner_of_row: NDArray[np.int32]
    together_of_row: NDArray[np.int32]
    complete_size: int


class LevelProgress(NamedTuple):
    """Progress of a search before it continues: within a level, ``n_done`` of its ``n_candidates`` are done.

    ``n_checked`` and ``n_identified`` count the combinations of all levels, and the rows identified so far.
    """

    size: int
    n_checked: int
    n_identified: int
    n_done: int
    n_candidates: int


def _last_columns(combos: NDArray[np.int16]) -> NDArray[np.int64]:
    return combos[:, -1].astype(np.int64) if combos.shape[1] else np.full(len(combos), -1, np.int64)


def extend(combos: NDArray[np.int16], n_columns: int) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
    """Extend each combination by every later column; keep lexicographic order. Returns them and their parents."""
    n_children = n_columns - 1 - _last_columns(combos)
    parents = np.repeat(np.arange(len(combos), dtype=np.int32), n_children)
    # The added column of the first child is the one after the last, and the children of all are one list.
    shift = n_columns - np.cumsum(n_children)
    added = np.arange(len(parents), dtype=np.int32) + shift.astype(np.int32)[parents]
    return np.column_stack([combos[parents], added.astype(np.int16)]), parents


def most_records(weights: NDArray[np.int32], subjects: NDArray[np.int32] | None) -> int:
    """Return the largest number of records of one person: so many equal synthetic rows can still single one out."""
    if subjects is None or not (subjects >= 0).any():
        return 1
    return int(np.bincount(subjects[subjects >= 0], weights[subjects >= 0]).max())


class _Level(NamedTuple):
    """Combinations of one size that were checked."""

    combos: NDArray[np.int16]
    was_searched: NDArray[np.bool_]
    was_exhausted: NDArray[np.bool_]
    was_stopped: NDArray[np.bool_]
    profile: Profile | None


class Findings(NamedTuple):
    """Result of the compiled search of some candidates: three arrays per row, two per candidate.

    ``first`` is the position in a batch (int32) or in a level (int64), or `NOT_IDENTIFIED`, or `NOT_BY_LEVEL`.
    """

    first: NDArray[np.signedinteger[Any]]
    partner: NDArray[np.int32]
    together: NDArray[np.int32]
    is_checked: NDArray[np.bool_]
    is_live: NDArray[np.bool_]


class LevelSearch:
    """State of a search between its levels."""

    def __init__(self, asked: SearchInput) -> None:
        n_synthetic, weights, subjects = asked.n_synthetic, asked.weights, asked.subjects
        self.asked, self.weights, self.subjects = asked, weights, subjects
        self.n_columns = len(asked.n_codes)
        self.synthetic_weights = weights[:n_synthetic]
        self.most_records = most_records(weights[n_synthetic:], None if subjects is None else subjects[n_synthetic:])
        self.could_be = self.synthetic_weights <= self.most_records
        if asked.is_sought is not None:
            self.could_be &= asked.is_sought
        self.combo_of_row = np.full(n_synthetic, -1, np.int64)
        self.partner_of_row = np.full(n_synthetic, -1, np.int32)
        self.together_of_row = np.zeros(n_synthetic, np.int32)
        self.levels: list[_Level] = []
        self.n_checked = 0
        # The combinations to extend, their position in the last level and their entropy, starting with the empty one.
        self.parents = np.empty((1, 0), np.int16)
        self.parent_places = np.zeros(1, np.int64)
        self.parent_entropy = np.zeros(1)

    @cached_property
    def blocks(self) -> CodeBlocks:
        """The codes of all rows, which only a search in this process needs."""
        return group_by_width(self.asked.columns, self.asked.n_codes)

    @cached_property
    def suffixes(self) -> SuffixGroups:
        """The groups of all rows by the last columns."""
        return suffix_groups(self.blocks)

    def run_level(self, size: int, pool: SlicePool, report: Callable[[LevelProgress], None]) -> bool:
        """Search all candidates of one size; return False if there were no candidates to check."""
        combos, parent = extend(self.parents, self.n_columns)
        if self.asked.only_with_first and size == 1:
            combos, parent = combos[:1], parent[:1]
        if len(combos) == 0:
            return False
        profile = None
        is_skipped = np.zeros(len(combos), np.bool_)
        if self.asked.min_entropy_gain > 0:
            profile = self.profile(combos, pool)
            if size > 1:
                is_skipped = profile.entropy - self.parent_entropy[parent] < self.asked.min_entropy_gain
        found = self._search_in_batches(size, combos, is_skipped, pool, report)
        if size > 1:
            self.levels[-1].was_exhausted[self.parent_places[parent[~found.is_checked]]] = True
        kept = np.flatnonzero(found.is_checked)
        if len(kept) == 0:
            return False
        place = np.cumsum(found.is_checked) - 1
        identified = np.flatnonzero(found.first < NOT_BY_LEVEL)
        self.combo_of_row[identified] = self.n_checked + place[found.first[identified]]
        self.partner_of_row[identified] = found.partner[identified]
        self.together_of_row[identified] = found.together[identified]
        was_searched = ~is_skipped[kept]
        could_grow = (combos[kept, -1] < self.n_columns - 1) & (size < self.asked.max_size)
        was_exhausted = ~found.is_live[kept] & was_searched & could_grow
        is_extended = found.is_live[kept] & was_searched
        was_stopped = np.zeros(len(kept), np.bool_)
        if self.asked.by_information and size > 1:
            was_stopped = is_extended & could_grow
            was_stopped[was_stopped] = self._information(combos[kept[was_stopped]]) < -ROUNDING
        self.levels.append(
            _Level(combos[kept], was_searched, was_exhausted, was_stopped, profile and profile.take(kept))
        )
        self.n_checked += len(kept)
        self.parent_places = np.flatnonzero(is_extended & ~was_stopped)
        self.parents = combos[kept[self.parent_places]]
        if profile is not None:
            self.parent_entropy = profile.entropy[kept[self.parent_places]]
        return True

    def _information(self, combos: NDArray[np.int16]) -> NDArray[np.float64]:
        assert self.asked.alpha is not None  # noqa: S101 - the caller of the search gives it
        columns = [self.blocks.column(c)[: self.asked.n_synthetic] for c in range(self.n_columns)]
        return mutual_information(columns, self.synthetic_weights, combos, self.asked.alpha)

    def _search_in_batches(
        self,
        size: int,
        combos: NDArray[np.int16],
        is_skipped: NDArray[np.bool_],
        pool: SlicePool,
        report: Callable[[LevelProgress], None],
    ) -> Findings:
        """Search the candidates of a level; those after the last open row was identified remain unchecked."""
        n_synthetic = len(self.combo_of_row)
        of_level = Findings(
            np.full(n_synthetic, NOT_BY_LEVEL),
            np.zeros(n_synthetic, np.int32),
            np.zeros(n_synthetic, np.int32),
            np.zeros(len(combos), np.bool_),
            np.zeros(len(combos), np.bool_),
        )
        could_be = (self.combo_of_row < 0) & self.could_be
        n_before = int((self.combo_of_row >= 0).sum())
        for begin in range(0, len(combos), BATCH):
            of_batch = slice(begin, begin + BATCH)
            open_rows = np.flatnonzero(could_be & (of_level.first == NOT_BY_LEVEL))
            n_identified = n_before + int((of_level.first < NOT_BY_LEVEL).sum())
            n_checked = self.n_checked + int(of_level.is_checked[:begin].sum())
            report(LevelProgress(size, n_checked, n_identified, begin, len(combos)))
            if len(open_rows) == 0:
                break
            found = self.search(combos[of_batch], is_skipped[of_batch], open_rows, pool)
            of_level.is_checked[of_batch], of_level.is_live[of_batch] = found.is_checked, found.is_live
            identified = found.first < NOT_IDENTIFIED
            of_level.first[open_rows[identified]] = begin + found.first[identified]
            of_level.partner[open_rows[identified]] = found.partner[identified]
            of_level.together[open_rows[identified]] = found.together[identified]
        return of_level

    def search(
        self, combos: NDArray[np.int16], is_skipped: NDArray[np.bool_], open_rows: NDArray[np.int64], pool: SlicePool
    ) -> Findings:
        """Renumber the rows so that the open ones come first, and run the compiled search over all candidates."""
        n_synthetic = len(self.combo_of_row)
        is_open = np.zeros(n_synthetic, np.bool_)
        is_open[open_rows] = True
        copies = np.minimum(self.weights, 2) if self.subjects is None else np.ones_like(self.weights)
        closed_rows = np.repeat(np.flatnonzero(~is_open), copies[:n_synthetic][~is_open])
        original_rows = np.repeat(np.arange(n_synthetic, len(copies)), copies[n_synthetic:])
        rows = np.concatenate([open_rows, closed_rows, original_rows])
        n_open, n_subject = len(open_rows), len(open_rows) + len(closed_rows)
        del is_open, copies, closed_rows, original_rows
        blocks = take_rows(self.blocks, rows)
        is_grouped = combos.shape[1] >= FIRST_GROUPED_SIZE and self.subjects is None
        suffixes = self.suffixes.take(rows) if is_grouped else no_suffix_groups(self.n_columns)
        is_checked, is_live = np.zeros(len(combos), np.bool_), np.zeros(len(combos), np.bool_)
        subjects = None if self.subjects is None else self.subjects[rows]
        weights = self.weights[rows]
        # The kernels number rows in 32 bits.
        rows, all_rows = rows.astype(np.int32), np.arange(len(rows), dtype=np.int32)

        def task(slices: Iterator[tuple[int, int]]) -> tuple[NDArray[Any], ...]:
            first, partner = np.full(n_open, NOT_IDENTIFIED, np.int32), np.zeros(n_open, np.int32)
            together = np.ones(n_open, np.int32)
            for begin, stop in slices:
                if subjects is None:
                    identify(combos, is_skipped, begin, stop, blocks, suffixes, all_rows, n_open, n_subject,
                             self.asked.takes_any, first, partner, is_checked, is_live)  # fmt: skip
                else:
                    identify_people(combos, is_skipped, begin, stop, blocks, all_rows, n_open, n_subject, subjects,
                                    weights, first, partner, together, NOTHING, NOTHING, is_checked,
                                    is_live)  # fmt: skip
            return first, partner, together

        first, partner = np.full(n_open, NOT_IDENTIFIED, np.int32), np.zeros(n_open, np.int32)
        together = np.zeros(n_open, np.int32)
        for first_of_thread, partner_of_thread, together_of_thread in pool.run(len(combos), task):
            is_earlier = first_of_thread < first
            first[is_earlier] = first_of_thread[is_earlier]
            partner[is_earlier] = partner_of_thread[is_earlier]
            together[is_earlier] = together_of_thread[is_earlier]
        found = first < NOT_IDENTIFIED
        partner[found] = rows[partner[found]] - n_synthetic
        return Findings(first, partner, together, is_checked, is_live)

    def profile(self, combos: NDArray[np.int16], pool: SlicePool) -> Profile:
        """Profile combinations of the synthetic rows."""
        # Not kept, because a search needs memory itself.
        synthetic = take_rows(self.blocks, np.arange(self.asked.n_synthetic))
        return profile_combinations(synthetic, combos, self.synthetic_weights, self.asked.alpha, pool)

    def result(self, pool: SlicePool, complete_size: int) -> SearchResult:
        """Combine the levels; profile the combinations that were not profiled within a level."""
        sizes = np.repeat([level.combos.shape[1] for level in self.levels], [len(v.combos) for v in self.levels])
        combos = np.full((len(sizes), self.asked.max_size), -1, np.int16)
        stop = 0
        for level in self.levels:
            begin, stop = stop, stop + len(level.combos)
            combos[begin:stop, : level.combos.shape[1]] = level.combos
        profiles = [level.profile for level in self.levels if level.profile is not None]
        profile = None
        if profiles:
            profile = Profile(*(np.concatenate(parts) for parts in zip(*profiles, strict=True)))
        elif self.asked.with_profile:
            profile = self.profile(combos, pool)
        none = np.zeros(0, np.bool_)
        return SearchResult(
            combos,
            sizes.astype(np.int64),
            np.concatenate([none, *(level.was_searched for level in self.levels)]),
            np.concatenate([none, *(level.was_exhausted for level in self.levels)]),
            np.concatenate([none, *(level.was_stopped for level in self.levels)]),
            profile,
            self.combo_of_row,
            self.partner_of_row,
            self.together_of_row,
            complete_size,
        )


def find_mpuccs(
    asked: SearchInput, n_threads: int = 1, on_progress: Callable[[LevelProgress], None] | None = None
) -> SearchResult:
    """Find for each synthetic row the first column combination that singles out one original row.

    Definitions: ``docs/mpucc.md``. Memory: the codes twice, per thread one row list per column of a combination but
    one, and a few numbers per combination checked. ``on_progress`` is called before each level and each batch of a
    level; an exception that it raises ends the search.
    """
    return search_levels(LevelSearch(asked), n_threads, on_progress)


def search_levels(
    search: LevelSearch, n_threads: int, on_progress: Callable[[LevelProgress], None] | None
) -> SearchResult:
    """Search level by level, as :func:`find_mpuccs` describes."""
    max_combinations = search.asked.max_combinations
    largest_size = min(search.asked.max_size, search.n_columns)
    report = on_progress or (lambda _: None)
    with SlicePool(n_threads) as pool:
        for size in range(1, largest_size + 1):
            n_candidates = int((search.n_columns - 1 - _last_columns(search.parents)).sum())
            if max_combinations is not None and search.n_checked + n_candidates > max_combinations:
                return search.result(pool, size - 1)
            if not search.run_level(size, pool, report):
                break
        return search.result(pool, largest_size)
