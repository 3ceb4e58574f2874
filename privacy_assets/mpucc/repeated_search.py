"""The search repeated after a change of one column, for the synthetic rows that the change can affect.

A combination without the column has the same values as before. So the rows that such a combination identifies stay
identified. One search finds these rows for all columns. If the column is dropped, no others are identified; if it is
coarsened, the others are searched again, by combinations that have it.

This is true as long as each class has the same numbers of records and people. Under deduplication, rows that become
equal count once: then all rows that are not certain to stay identified are searched again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows
from privacy_assets.mpucc.placed_tables import PlacedTables
from privacy_assets.mpucc.preprocess import CodedTable, PreprocessedTables, group_equal_rows
from privacy_assets.mpucc.results import SearchProgress, SyntheticSearch, count_identified, protection_scores
from privacy_assets.mpucc.settings import MpuccSettings
from privacy_assets.storage.memory import give_back_memory

STAGE = "synthetic against original"


class RepeatedSearch:
    """Scores of tables after changes of the columns at some places, as a search of the changed tables finds them.

    With an engine, it has the synthetic and the original table as ``placed``.
    """

    def __init__(
        self,
        tables: PreprocessedTables,
        places: Sequence[int],
        settings: MpuccSettings,
        n_threads: int,
        progress: Callable[[SearchProgress], None] | None = None,
        placed: PlacedTables | None = None,
    ) -> None:
        self.tables, self.places, self.settings = tables, list(places), settings
        self.n_threads, self.progress, self.placed = n_threads, progress, placed
        self._needed: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None

    def scores_after(self, place: int, new_codes: NDArray[np.int64] | None) -> dict[str, float]:
        """Return the scores of protection and ``identification_rate`` after a change of the column at a place.

        ``new_codes`` has the new code of each old code, any integers; None if the column is dropped.
        """
        give_back_memory()
        compact = _compact(new_codes)
        changed = _changed(self.tables, place, compact)
        placed = self._placed_after(changed, place, compact)
        is_heuristic = self.settings.search == "heuristic"
        can_merge = self.tables.deduplicate and self._can_merge(changed)
        grouped = _with_equal_rows_once(changed) if is_heuristic or can_merge else changed
        if is_heuristic:
            changed, is_identified = grouped, self._search(grouped, placed)
        elif _n_rows(grouped) != _n_rows(changed):
            is_identified = self._after_merging(place, changed, grouped, placed)
            changed = grouped
        else:
            is_identified = self._identified_without(place)
            if compact is not None:
                is_identified = is_identified | self._search(changed, placed, ~is_identified, only_with=place)
        search = self._prepared(changed)
        rate = count_identified(search, is_identified) / changed.synthetic.n_assessed
        return {"identification_rate": rate, **protection_scores(search, rate)}

    def _can_merge(self, changed: PreprocessedTables) -> bool:
        """Return whether rows of a table could be one after a change: of those that are equal in the other columns."""
        sides = zip((changed.original, changed.synthetic), self._alike, strict=True)
        return any(
            len(rows) > 0 and group_rows([codes[rows] for codes in side.codes], changed.n_codes)[1] < len(rows)
            for side, rows in sides
        )

    @cached_property
    def _alike(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows of each table that equal another in all columns that no change concerns."""
        others = [c for c in range(len(self.tables.columns)) if c not in self.places]
        n_codes = [self.tables.n_codes[c] for c in others]

        def alike(side: CodedTable) -> NDArray[np.intp]:
            if not others:
                return np.arange(side.n_distinct)
            groups, n_groups = group_rows([side.codes[c] for c in others], n_codes)
            return np.flatnonzero(np.bincount(groups, minlength=n_groups)[groups] > 1)

        return alike(self.tables.original), alike(self.tables.synthetic)

    def _placed_after(
        self, changed: PreprocessedTables, place: int, new_codes: NDArray[np.unsignedinteger[Any]] | None
    ) -> PlacedTables | None:
        """Return the placed tables after a change of the column at a place, with as many rows."""
        if self.placed is None:
            return None
        sides = changed.synthetic, changed.original
        return (
            self.placed.without(place, sides) if new_codes is None else self.placed.with_codes(place, new_codes, sides)
        )

    def _prepared(
        self, tables: PreprocessedTables, placed: PlacedTables | None = None, only_with: int | None = None
    ) -> SyntheticSearch:
        size = self.settings.max_baseline_cols
        size = None if size is None else min(size, len(tables.columns))
        settings = replace(self.settings, max_baseline_cols=size)
        return SyntheticSearch(tables, settings, self.n_threads, self.progress, only_with, placed)

    def _search(
        self,
        tables: PreprocessedTables,
        placed: PlacedTables | None,
        is_sought: NDArray[np.bool_] | None = None,
        only_with: int | None = None,
    ) -> NDArray[np.bool_]:
        """Return the rows that are identified."""
        search = self._prepared(tables, placed, only_with)
        found = search.against(tables.original, STAGE, with_profile=False, is_sought=is_sought)
        return found.combo_of_row >= 0

    def _identified_without(self, place: int) -> NDArray[np.bool_]:
        """Return the rows that a combination without the column identifies, if each of several equal rows counts."""
        if self._needed is None:
            self._needed = self._prepared(self.tables, self.placed).needed_columns(
                self.tables.original, STAGE, self.places
            )
        is_identified, is_needed = self._needed
        return is_identified & ~is_needed[:, self.places.index(place)]

    def _after_merging(
        self, place: int, changed: PreprocessedTables, grouped: PreprocessedTables, placed: PlacedTables | None
    ) -> NDArray[np.bool_]:
        """Return the rows of deduplicated tables that are identified, where rows became equal.

        A class that identifies rows still does if only synthetic rows become equal, or if every original is a person.
        Otherwise its person may have fewer records than the class has synthetic ones.
        """
        groups, n_groups = group_rows(changed.synthetic.codes, list(changed.n_codes))
        stays = np.zeros(n_groups, np.bool_)
        if self.tables.original.people is None or grouped.original.n_distinct == changed.original.n_distinct:
            stays[groups[self._identified_without(place)]] = True
        return stays | self._search(grouped, placed, ~stays)


def changed_tables(tables: PreprocessedTables, place: int, new_codes: NDArray[np.int64] | None) -> PreprocessedTables:
    """Return original and synthetic after a change of a column, as `preprocess` would make them of changed records."""
    return _with_equal_rows_once(_changed(tables, place, _compact(new_codes)))


def _compact(new_codes: NDArray[np.int64] | None) -> NDArray[np.unsignedinteger[Any]] | None:
    """Return codes from 0 without gaps for any integers."""
    if new_codes is None:
        return None
    distinct, compact = np.unique(new_codes, return_inverse=True)
    return compact.astype(np.min_scalar_type(len(distinct)))


def _changed(
    tables: PreprocessedTables, place: int, new_codes: NDArray[np.unsignedinteger[Any]] | None
) -> PreprocessedTables:
    return _without(tables, place) if new_codes is None else _recoded(tables, place, new_codes)


def _n_rows(tables: PreprocessedTables) -> tuple[int, int]:
    return tables.original.n_distinct, tables.synthetic.n_distinct


def _without(tables: PreprocessedTables, place: int) -> PreprocessedTables:
    """Return original and synthetic without a column; rows that become equal stay separate."""

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


def _recoded(tables: PreprocessedTables, place: int, new_codes: NDArray[np.unsignedinteger[Any]]) -> PreprocessedTables:
    """Return original and synthetic with other codes of a column; rows that become equal stay separate."""

    def recoded(codes: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
        return (*codes[:place], new_codes[codes[place]], *codes[place + 1 :])

    labels = np.array([str(code) for code in range(int(new_codes.max()) + 1)], object)
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
