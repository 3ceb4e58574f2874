"""The search repeated after a change of one column, for the synthetic rows that the change can concern.

A combination without the column has the same values as before. So a row that one identified stays identified, and only
two kinds of rows are searched: those that were identified with the column, by combinations without it; and, where the
column is coarsened and not dropped, all that these leave, by combinations with it.

That is so as long as each class has the same numbers of records and people. Under deduplication, rows that become equal
count once: then all rows are searched that are not certain to stay identified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows
from privacy_assets.mpucc.kernels.search import SearchResult
from privacy_assets.mpucc.preprocess import PreprocessedTables, group_equal_rows
from privacy_assets.mpucc.results import SearchProgress, SyntheticSearch, count_identified, protection_scores
from privacy_assets.mpucc.settings import MpuccSettings


class _First(NamedTuple):
    """Rows that the unchanged tables identify, the columns of their combination, and whether a row was alone in it."""

    is_identified: NDArray[np.bool_]
    uses: NDArray[np.bool_]
    is_alone: NDArray[np.bool_]


class RepeatedSearch:
    """Scores of tables after changes of single columns, as a search of the changed tables finds them."""

    def __init__(
        self,
        tables: PreprocessedTables,
        settings: MpuccSettings,
        n_threads: int,
        progress: Callable[[SearchProgress], None] | None = None,
    ) -> None:
        self.tables, self.settings, self.n_threads, self.progress = tables, settings, n_threads, progress
        self._found: _First | None = None
        self._without: dict[int, NDArray[np.bool_]] = {}

    def scores_after(self, place: int, new_codes: NDArray[np.int64] | None) -> dict[str, float]:
        """Return the scores after a change.

        Parameters
        ----------
        place : int
            Position of the column.
        new_codes : ndarray of shape (n_codes,), dtype=int64, or None
            New code of each old code, any integers; None if the column is dropped.

        Returns
        -------
        dict of str to float
            ``identification_rate`` and the scores of protection.
        """
        # The deadline counts even where nothing is left to search.
        self._report()
        changed = _without(self.tables, place) if new_codes is None else _recoded(self.tables, place, new_codes)
        grouped = _with_equal_rows_once(changed) if self.tables.deduplicate else changed
        if self.settings.min_entropy_delta > 0:
            grouped = grouped if self.tables.deduplicate else _with_equal_rows_once(changed)
            is_identified = self._search(grouped, None).combo_of_row >= 0
        elif _n_rows(grouped) != _n_rows(changed):
            is_identified = self._after_merging(place, changed, grouped)
        else:
            grouped = changed
            is_identified = self._identified_without(place)
            if new_codes is not None:
                is_identified = is_identified | self._identified_with(place, changed, ~is_identified)
        search = self._prepared(grouped)
        n_identified = count_identified(search, is_identified)
        rate = n_identified / grouped.synthetic.n_assessed
        return {"identification_rate": rate, **protection_scores(search, n_identified)}

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(SearchProgress("synthetic against original", 0, 0, 0, 0, 0, 0))

    def _prepared(self, tables: PreprocessedTables, only_with: int | None = None) -> SyntheticSearch:
        size = self.settings.max_baseline_cols
        size = None if size is None else min(size, len(tables.columns))
        settings = replace(self.settings, max_baseline_cols=size)
        return SyntheticSearch(tables, settings, self.n_threads, self.progress, only_with)

    def _search(
        self, tables: PreprocessedTables, is_sought: NDArray[np.bool_] | None, only_with: int | None = None
    ) -> SearchResult:
        search = self._prepared(tables, only_with)
        return search.against(tables.original, "synthetic against original", with_profile=False, is_sought=is_sought)

    def _first(self) -> _First:
        """Search the unchanged tables, once."""
        if self._found is None:
            search = self._prepared(self.tables)
            found = self._search(self.tables, None)
            is_identified = found.combo_of_row >= 0
            uses = np.zeros((len(is_identified), len(self.tables.columns) + 1), np.bool_)
            rows = np.flatnonzero(is_identified)
            # The padding -1 of a combination is the last place, which is no column.
            order = np.append(search.order, len(self.tables.columns))
            uses[rows[:, None], order[found.combos[found.combo_of_row[rows]]]] = True
            self._found = _First(is_identified, uses, found.together_of_row == 1)
        return self._found

    def _identified_without(self, place: int) -> NDArray[np.bool_]:
        """Return the rows that a combination without the column identifies, equal rows counted each."""
        if place not in self._without:
            first = self._first()
            uses = first.uses[:, place]
            is_identified = first.is_identified & ~uses
            if len(self.tables.columns) > 1:
                found = self._search(_without(self.tables, place), first.is_identified & uses)
                is_identified |= found.combo_of_row >= 0
            self._without[place] = is_identified
        return self._without[place]

    def _identified_with(
        self, place: int, changed: PreprocessedTables, is_sought: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return the rows among those sought that a combination with the changed column identifies."""
        is_identified: NDArray[np.bool_] = self._search(changed, is_sought, place).combo_of_row >= 0
        return is_identified

    def _after_merging(self, place: int, changed: PreprocessedTables, grouped: PreprocessedTables) -> NDArray[np.bool_]:
        """Return the rows of deduplicated tables that are identified, where rows became equal.

        A class that identifies one row stays so if rows of it become equal. One that identifies several rows, for which
        a person has to have as many, can lose records of that person.
        """
        first = self._first()
        is_certain = first.is_identified & ~first.uses[:, place]
        if grouped.original.n_distinct < changed.original.n_distinct:
            is_certain &= first.is_alone
        groups, n_groups = group_rows(changed.synthetic.codes, list(changed.n_codes))
        stays = np.zeros(n_groups, np.bool_)
        stays[groups[is_certain]] = True
        return stays | (self._search(grouped, ~stays).combo_of_row >= 0)


def _n_rows(tables: PreprocessedTables) -> tuple[int, int]:
    return tables.original.n_distinct, tables.synthetic.n_distinct


def _without(tables: PreprocessedTables, place: int) -> PreprocessedTables:
    """Return original and synthetic without a column; rows that become equal stay apart."""

    def left(entries: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*entries[:place], *entries[place + 1 :])

    return replace(
        tables,
        columns=left(tables.columns),
        kinds=left(tables.kinds),
        labels=left(tables.labels),
        original=replace(tables.original, codes=left(tables.original.codes)),
        synthetic=replace(tables.synthetic, codes=left(tables.synthetic.codes)),
        control=None,
    )


def _recoded(tables: PreprocessedTables, place: int, new_codes: NDArray[np.int64]) -> PreprocessedTables:
    """Return original and synthetic with other codes of a column; rows that become equal stay apart."""
    distinct, compact = np.unique(new_codes, return_inverse=True)
    compact = compact.astype(np.min_scalar_type(len(distinct)))

    def recoded(codes: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
        return (*codes[:place], compact[codes[place]], *codes[place + 1 :])

    labels = np.array([str(code) for code in distinct], object)
    return replace(
        tables,
        labels=(*tables.labels[:place], labels, *tables.labels[place + 1 :]),
        original=replace(tables.original, codes=recoded(tables.original.codes)),
        synthetic=replace(tables.synthetic, codes=recoded(tables.synthetic.codes)),
        control=None,
    )


def _with_equal_rows_once(tables: PreprocessedTables) -> PreprocessedTables:
    """Group rows that are equal, as `preprocess` does."""
    n_codes = list(tables.n_codes)
    original, synthetic = (
        group_equal_rows(table, table.codes, n_codes, tables.deduplicate)
        for table in (tables.original, tables.synthetic)
    )
    return replace(tables, original=original, synthetic=synthetic)
