"""Tables that an engine holds for several searches, and what of them each search asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.columns.coding import code_type
from privacy_assets.engine.protocol import Engine, gather_batches
from privacy_assets.mpucc.divided_level import Rows
from privacy_assets.mpucc.kernels.search import SearchInput
from privacy_assets.mpucc.preprocess import CodedTable

ROWS_PER_BLOB = 1 << 18
COUNT = pa.schema([("n_blobs", pa.int64())])


class Changed(NamedTuple):
    """Placed rows, ascending, with the weight and person that they have in a search."""

    number: NDArray[np.int64]
    weight: NDArray[np.int32]
    person: NDArray[np.int32]

    def applied_to(self, rows: Rows) -> Rows:
        """Return rows with these weights and people."""
        if len(self.number) == 0:
            return rows
        place = np.minimum(np.searchsorted(self.number, rows.number), len(self.number) - 1)
        is_changed = self.number[place] == rows.number
        weight = np.where(is_changed, self.weight[place], rows.weight)
        person = np.where(is_changed, self.person[place], rows.person) if len(rows.person) else rows.person
        return rows._replace(weight=weight, person=person)


class Recoded(NamedTuple):
    """A placed column with other codes: the new code of each."""

    column: int
    new_codes: NDArray[np.unsignedinteger[Any]]


class View(NamedTuple):
    """The placed rows and columns of a search, in its order; weights and people of all placed rows.

    The rows are sent in ``n_blobs`` blobs. One column may have other codes than were placed.
    """

    rows: NDArray[np.int64]
    columns: tuple[int, ...]
    weights: NDArray[np.int32]
    people: NDArray[np.int32]
    n_blobs: int
    recoded: Recoded | None = None

    def changed(self, asked: SearchInput) -> Changed:
        """Return the rows with another weight or person than in the search; people may be numbered differently."""
        weight, person = self.weights[self.rows], self.people[self.rows]
        is_changed, others = weight != asked.weights, np.arange(len(self.rows)) >= asked.n_synthetic
        if asked.subjects is not None and not _are_same_people(person[others], asked.subjects[others]):
            is_changed, person = is_changed | others, asked.subjects
        changed = np.flatnonzero(is_changed)
        changed = changed[np.argsort(self.rows[changed], kind="stable")]
        return Changed(self.rows[changed], asked.weights[changed], person[changed])


def _are_same_people(people: NDArray[np.int32], others: NDArray[np.int32]) -> bool:
    """Return whether rows have the same people, or none, under numbers in the same order."""
    if np.array_equal(people, others):
        return True
    if not np.array_equal(people < 0, others < 0):
        return False
    # The number of each person among those that occur.
    first, second = (np.cumsum(np.bincount(own + 1) > 0)[own + 1] for own in (people, others))
    return np.array_equal(first, second)


@dataclass(frozen=True)
class _CountGathered:
    """Counts the blobs that the batches of a partition make."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        n_blobs = sum(1 for _ in gather_batches(batches, ROWS_PER_BLOB))
        yield pa.record_batch([pa.array([n_blobs], pa.int64())], schema=COUNT)


def count_blobs(engine: Engine, batches: Any) -> int:
    """Count the blobs in which the tasks of an engine send rows that were placed."""
    counted = engine.collect(engine.map(batches, _CountGathered(), COUNT))
    return int(counted.column("n_blobs").to_numpy().sum())


def columns_to_place(
    columns: Sequence[NDArray[Any]], weights: NDArray[np.int32], subjects: NDArray[np.int32] | None
) -> dict[str, NDArray[Any]]:
    """Return what is sent to an engine of the tables of a search: numbers of rows, weights, people and codes."""
    person = {} if subjects is None else {"person": subjects}
    codes = {
        f"c{c}": codes.astype(code_type(int(codes.max(initial=0)) + 1), copy=False) for c, codes in enumerate(columns)
    }
    return {"row": np.arange(len(weights)), "weight": weights, **person, **codes}


@dataclass(frozen=True)
class PlacedTables:
    """Tables that an engine has, so that searches of their rows, or of some of them, hand over nothing.

    ``columns`` are those that were placed for the columns of the tables, one of them with other codes if ``recoded``.
    """

    engine: Engine
    batches: Any
    tables: Sequence[CodedTable]
    weights: NDArray[np.int32]
    people: NDArray[np.int32]
    n_blobs: int
    columns: tuple[int, ...]
    recoded: Recoded | None = None

    def without(self, place: int, tables: Sequence[CodedTable]) -> PlacedTables:
        """Return the tables without a column."""
        return replace(self, tables=tables, columns=(*self.columns[:place], *self.columns[place + 1 :]))

    def with_codes(
        self, place: int, new_codes: NDArray[np.unsignedinteger[Any]], tables: Sequence[CodedTable]
    ) -> PlacedTables:
        """Return the tables with the new code of each code of a column."""
        return replace(self, tables=tables, recoded=Recoded(self.columns[place], new_codes))

    def view(self, synthetic: CodedTable, other: CodedTable, order: Sequence[int]) -> View | None:
        """Return the rows of two tables; None unless each has its rows in another placed table."""
        own, place = self._find(synthetic, None)
        others, _ = self._find(other, place)
        if own is None or others is None:
            return None
        columns = tuple(self.columns[place] for place in order)
        rows = np.concatenate([own, others])
        return View(rows, columns, self.weights, self.people, self.n_blobs, self.recoded)

    def _find(self, table: CodedTable, but: int | None) -> tuple[NDArray[np.int64] | None, int | None]:
        begin, n_positions = 0, max(int(each.positions.max(initial=0)) for each in (table, *self.tables)) + 1
        for place, placed in enumerate(self.tables):
            if place != but:
                pairs = list(zip((placed.positions, *placed.codes), (table.positions, *table.codes), strict=True))
                if all(codes is own for codes, own in pairs):
                    return np.arange(begin, begin + placed.n_distinct), place
                row_of = np.zeros(n_positions, np.int64)
                row_of[placed.positions] = np.arange(placed.n_distinct)
                rows = row_of[table.positions]
                if all(np.array_equal(codes[rows], own) for codes, own in pairs):
                    return begin + rows, place
            begin += placed.n_distinct
        return None, None


@contextmanager
def placed_tables(
    engine: Engine | None, tables: Sequence[CodedTable], *, has_people: bool = False
) -> Iterator[Engine | PlacedTables | None]:
    """Hand over tables with the same columns once; yield the engine itself if it does not divide the work.

    With ``has_people``, each record of a table without people is a person; who has a synthetic record does not matter.
    """
    if engine is None or engine.rows_per_task is None:
        yield engine
        return
    columns = [np.concatenate(codes) for codes in zip(*(table.codes for table in tables), strict=True)]
    weights = np.concatenate([table.multiplicities for table in tables])
    are_people = [has_people or each.people is not None for each in tables]
    people = [
        distinguished_people(each) if own else np.full(each.n_distinct, -1)
        for each, own in zip(tables, are_people, strict=True)
    ]
    person = np.concatenate(people).astype(np.int32)
    placed = columns_to_place(columns, weights, person if any(are_people) else None)
    with engine.place(placed) as batches:
        n_columns = len(columns)
        del columns, placed
        yield PlacedTables(
            engine, batches, tables, weights, person, count_blobs(engine, batches), tuple(range(n_columns))
        )


def distinguished_people(table: CodedTable) -> NDArray[np.int32]:
    """Return the person of each row, -1 for several people."""
    of_row, _, weights = table.subjects
    return np.where(weights[of_row] == 1, of_row, -1).astype(np.int32)
