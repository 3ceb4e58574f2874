"""Counts of a table on the grid, by group of rows, so that leaving out a group is free."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

N_GROUPS = 10
"""Groups of the jackknife."""
SMALLEST_SHARE, LARGEST_SHARE = 0.1, 0.6
"""Share of the rows that a condition of a counting query covers."""
MOST_ROWS_COUNTED = 100_000
"""Rows on which counting queries are answered, drawn at random."""
MOST_COLUMNS = 25
"""Largest number of columns whose pairs are all judged, and that predict each other."""
MOST_PAIRS = 300

Pair = tuple[int, int]
Shares = NDArray[np.float64]


class Query(NamedTuple):
    """A counting query: rows whose bin in every named column is one of the kept bins."""

    columns: tuple[int, ...]
    kept: tuple[NDArray[np.bool_], ...]


class Plan(NamedTuple):
    """The bins of each column, and the pairs, blocks of columns that predict each other, and queries."""

    n_bins: NDArray[np.int64]
    pairs: list[Pair]
    blocks: list[NDArray[np.int64]]
    queries: list[Query]

    @property
    def counted_pairs(self) -> list[Pair]:
        """Pairs that are judged or needed to predict."""
        within = {pair for block in self.blocks for pair in combinations(block.tolist(), 2)}
        return sorted({*self.pairs, *within})


class Counts(NamedTuple):
    """The counts of one table: rows by group and bin of each column, and by group and cell of each pair.

    ``answers`` (n_groups, n_queries) are the rows that a query counts, among ``n_counted`` of each group.
    """

    columns: list[NDArray[np.int64]]
    pairs: dict[Pair, NDArray[np.int64]]
    answers: NDArray[np.int64]
    n_counted: NDArray[np.int64]

    def of(self, weights: NDArray[np.int64]) -> Shared:
        """Return shares by variant over the groups whose weight, of shape (n_variants, n_groups), is 1 and not 0."""
        columns = [_shares(weights @ counts) for counts in self.columns]
        pairs = {
            pair: _shares(weights @ counts.reshape(len(counts), -1)).reshape(len(weights), *counts.shape[1:])
            for pair, counts in self.pairs.items()
        }
        n_rows = weights @ self.columns[0].sum(axis=1)
        answers = (weights @ self.answers) / np.maximum(weights @ self.n_counted, 1)[:, None]
        return Shared(columns, pairs, answers, n_rows)


class Shared(NamedTuple):
    """Shares of rows, as :class:`Counts` with variants in place of groups, and the rows of each variant."""

    columns: list[Shares]
    pairs: dict[Pair, Shares]
    answers: Shares
    n_rows: NDArray[np.int64]


def _shares(counts: NDArray[np.int64]) -> Shares:
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


ALL_AND_WITHOUT_ONE = np.concatenate([np.ones((1, N_GROUPS), np.int64), 1 - np.eye(N_GROUPS, dtype=np.int64)])
"""Variant 0 has all groups; variant g + 1 lacks group g."""
ONE_EACH = np.eye(N_GROUPS, dtype=np.int64)
"""Variant g has only group g."""
ALL = np.ones((N_GROUPS, N_GROUPS), np.int64)
"""The same number of variants, each with all groups."""


def make_plan(
    control: NDArray[np.uint8],
    n_bins: NDArray[np.int64],
    is_ordered: Sequence[bool],
    n_queries: int,
    random: np.random.Generator,
) -> Plan:
    """Choose pairs, blocks and queries.

    Queries cover their intended shares among the rows of ``control``, of shape (n_columns, n_rows); conditions on
    ordered columns are ranges, on others sets.
    """
    n_columns = len(n_bins)
    pairs = list(combinations(range(n_columns), 2))
    blocks = [np.arange(n_columns)]
    if n_columns > MOST_COLUMNS:
        pairs = [pairs[i] for i in np.sort(random.choice(len(pairs), MOST_PAIRS, replace=False))]
        n_blocks = -(-n_columns // MOST_COLUMNS)
        blocks = [np.sort(block) for block in np.array_split(random.permutation(n_columns), n_blocks)]
    margins = [np.bincount(bins, minlength=n) / control.shape[1] for bins, n in zip(control, n_bins, strict=True)]
    queries = []
    for _ in range(n_queries if n_columns > 1 else 0):
        n_asked = int(random.integers(2, min(3, n_columns) + 1))
        columns = tuple(random.choice(n_columns, n_asked, replace=False).tolist())
        kept = tuple(_condition(margins[j], is_ordered[j], random) for j in columns)
        queries.append(Query(columns, kept))
    return Plan(n_bins, pairs, blocks, queries)


def _condition(margin: Shares, is_ordered: bool, random: np.random.Generator) -> NDArray[np.bool_]:
    """Draw a range or a set of bins that covers a share drawn between the two bounds, or the next larger one."""
    wanted = random.uniform(SMALLEST_SHARE, LARGEST_SHARE)
    n_bins = len(margin)
    if is_ordered:
        # The last bin, of missing values, is not in any range.
        order = np.arange(int(random.integers(max(n_bins - 1, 1))), max(n_bins - 1, 1))
    else:
        # The bin before the last, of values that no original has, is in no set.
        order = random.permutation(n_bins - 1)
        order[order == n_bins - 2] = n_bins - 1
    n_kept = int(np.searchsorted(np.cumsum(margin[order]), wanted)) + 1
    kept = np.zeros(n_bins, np.bool_)
    kept[order[:n_kept]] = True
    return kept


def count(codes: NDArray[np.uint8], plan: Plan) -> Counts:
    """Count the rows of a table by group."""
    place, groups = places_and_groups(codes)
    with_group = [groups * n + bins for bins, n in zip(codes, plan.n_bins, strict=True)]
    columns = [
        np.bincount(key, minlength=N_GROUPS * n).reshape(N_GROUPS, n)
        for key, n in zip(with_group, plan.n_bins.tolist(), strict=True)
    ]
    pairs = {}
    for i, j in plan.counted_pairs:
        n_one, n_other = int(plan.n_bins[i]), int(plan.n_bins[j])
        key = with_group[i] * n_other
        key += codes[j]
        pairs[i, j] = np.bincount(key, minlength=N_GROUPS * n_one * n_other).reshape(N_GROUPS, n_one, n_other)
    is_counted = place < MOST_ROWS_COUNTED
    if not is_counted.all():
        codes, groups = codes[:, is_counted], groups[is_counted]
    # In order of the groups, so that each is a slice.
    order = np.argsort(groups, kind="stable")
    codes = codes[:, order]
    n_counted = np.bincount(groups, minlength=N_GROUPS)
    return Counts(columns, pairs, _answers(codes, plan.queries, n_counted), n_counted)


def places_and_groups(codes: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a random place of each row, and the group that follows from it.

    The permutation depends only on the number of rows, in the order of their bins: the order of the table changes
    nothing.
    """
    n_rows = codes.shape[1]
    place = np.empty(n_rows, np.int64)
    place[np.lexsort(codes)] = np.random.default_rng(n_rows).permutation(n_rows)
    return place, place % N_GROUPS


def _answers(codes: NDArray[np.uint8], queries: Sequence[Query], n_counted: NDArray[np.int64]) -> NDArray[np.int64]:
    answers = np.zeros((N_GROUPS, len(queries)), np.int64)
    ends = np.concatenate([[0], np.cumsum(n_counted)])
    for q, query in enumerate(queries):
        is_hit = query.kept[0][codes[query.columns[0]]]
        for j, kept in zip(query.columns[1:], query.kept[1:], strict=True):
            is_hit &= kept[codes[j]]
        upto = np.concatenate([[0], np.cumsum(is_hit)])
        answers[:, q] = np.diff(upto[ends])
    return answers
