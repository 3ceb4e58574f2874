"""The mpUCC search by an engine: the levels are decided here, and tasks search them with the usual kernels."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.columns.coding import code_type
from privacy_assets.engine.protocol import Engine, gather_batches
from privacy_assets.kernels.slices import SlicePool
from privacy_assets.mpucc.divided_level import (
    BucketRows,
    Division,
    Part,
    Rows,
    bucket_numbers,
    number_tuples,
    rows_per_tuple,
    thin,
)
from privacy_assets.mpucc.kernels.code_blocks import (
    FIRST_GROUPED_SIZE,
    group_by_width,
    no_suffix_groups,
    suffix_groups,
    take_rows,
)
from privacy_assets.mpucc.kernels.common_columns import narrow_by_levels
from privacy_assets.mpucc.kernels.live_classes import identify
from privacy_assets.mpucc.kernels.people_classes import NOTHING, identify_people
from privacy_assets.mpucc.kernels.search import (
    NOT_IDENTIFIED,
    Findings,
    LevelProgress,
    LevelSearch,
    SearchInput,
    SearchResult,
    find_mpuccs,
    search_levels,
)
from privacy_assets.mpucc.kernels.uniqueness import Profile, profile_combinations
from privacy_assets.mpucc.placed_tables import (
    ROWS_PER_BLOB,
    Changed,
    Recoded,
    View,
    columns_to_place,
    count_blobs,
)

N_HEAD = 4
"""Numbers at the start of a blob: its rows of each side, and whether their weights follow."""
ALL_COLUMNS = np.iinfo(np.int64).max
"""The set of columns of a row that no combination has identified."""
ROWS_OF_TASKS = pa.schema([("task", pa.int32()), ("rows", pa.binary())])
FOUND = pa.schema(
    [
        ("task", pa.int32()),
        ("n_rows", pa.int64()),
        ("n_bytes", pa.int64()),
        *(
            (name, pa.binary())
            for name in ("row", "first", "partner", "together", "common", "is_checked", "is_live", "n_unique")
        ),
    ]
)


@dataclass(frozen=True)
class _Level:
    """The information that the tasks of one level have."""

    parts: tuple[Part, ...]
    n_codes: tuple[int, ...]
    n_rows: int
    has_people: bool
    most_records: int
    takes_any: bool

    def columns_of(self, part: Part) -> list[int]:
        """Return the columns that a task of a part needs: those of its buckets, and all later ones."""
        after = [] if _is_whole(part) else range(part.column + 1, len(self.n_codes))
        return [*part.prefix, *after]

    def part_of(self, task: int) -> Part:
        """Return the part that a task belongs to."""
        return self.parts[bisect_right(self.parts, task, key=lambda part: part.first_task) - 1]

    def to_blob(self, rows: Rows, columns: list[NDArray[Any]]) -> bytes:
        """Write rows that are sorted by side: the number of each, and their arrays one after the other."""
        has_weights = bool((rows.weight != 1).any())
        head = np.array([*np.bincount(rows.side, minlength=3), has_weights], np.int64)
        arrays = [head, rows.number.astype(code_type(self.n_rows)), *([rows.weight] if has_weights else []),
                  *([rows.person] if self.has_people else []), *columns]  # fmt: skip
        return b"".join(array.tobytes() for array in arrays)

    def read_blob(self, part: Part, blob: pa.Buffer) -> tuple[Rows, list[NDArray[Any]]]:
        """Return rows and codes that `to_blob` wrote."""
        head = np.frombuffer(blob, np.int64, N_HEAD)
        n_rows, at = int(head[:3].sum()), head.nbytes

        def read(dtype: np.dtype[Any]) -> NDArray[Any]:
            nonlocal at
            array = np.frombuffer(blob, dtype, n_rows, at)
            at += array.nbytes
            return array

        number = read(code_type(self.n_rows)).astype(np.int64)
        weight = read(np.dtype(np.int32)) if head[3] else np.ones(n_rows, np.int32)
        person = read(np.dtype(np.int32)) if self.has_people else np.zeros(0, np.int32)
        side = np.repeat(np.arange(3, dtype=np.int8), head[:3])
        return Rows(number, side, weight, person), [read(code_type(self.n_codes[c])) for c in self.columns_of(part)]


@dataclass(frozen=True)
class _PutIntoBuckets:
    """Sends the rows of each task as one value, so that rows are not copied one by one.

    ``sides`` has two bits for each placed row: 3 for rows that are not searched. Rows that are ``changed``, ascending,
    have another weight and person than where they were placed; ``columns`` are the places of those searched.
    """

    level: _Level
    sides: NDArray[np.uint8]
    columns: tuple[int, ...]
    changed: Changed
    recoded: Recoded | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in gather_batches(batches, ROWS_PER_BLOB):
            tasks: list[int] = []
            blobs: list[bytes] = []
            rows, columns = self._read(table)
            bucket_rows = BucketRows(columns, self.level.n_codes)
            for part in self.level.parts:
                for task, blob in self._of_part(part, rows, columns, bucket_rows.rows(part.within)):
                    tasks.append(task)
                    blobs.append(blob)
            if tasks:
                yield pa.record_batch([pa.array(tasks, pa.int32()), pa.array(blobs, pa.binary())], schema=ROWS_OF_TASKS)

    def _read(self, table: pa.Table) -> tuple[Rows, list[NDArray[Any]]]:
        """Return rows and codes in the order of :func:`_by_side`."""
        number = table.column("row").to_numpy()
        side = (self.sides[number >> 2] >> (number & 3).astype(np.uint8) * 2 & 3).astype(np.int8)
        searched = np.flatnonzero(side < 3)
        person = table.column("person").to_numpy()[searched] if self.level.has_people else np.zeros(0, np.int32)
        weight = table.column("weight").to_numpy()[searched]
        rows = self.changed.applied_to(Rows(number[searched], side[searched], weight, person))
        order = _by_side(rows.side, rows.number, has_people=self.level.has_people)
        columns = []
        for c, n in zip(self.columns, self.level.n_codes, strict=True):
            codes = table.column(f"c{c}").to_numpy()[searched[order]]
            codes = self.recoded.new_codes[codes] if self.recoded is not None and self.recoded.column == c else codes
            columns.append(codes.astype(code_type(n), copy=False))
        return rows.take(order), columns

    def _of_part(
        self, part: Part, rows: Rows, columns: list[NDArray[Any]], own: NDArray[np.int64] | None
    ) -> Iterator[tuple[int, bytes]]:
        sent = [columns[c] for c in self.level.columns_of(part)]
        if own is not None:
            rows, sent = rows.take(own), [codes[own] for codes in sent]
        if part.is_thinned:
            rows, sent = _thinned(self.level, part, rows, sent)
        # The columns of the prefix come first, the last of them is the one with buckets.
        if part.n_buckets == 1:
            if len(rows.number):
                yield part.first_task, self.level.to_blob(rows, sent)
            return
        buckets = bucket_numbers(sent[len(part.within)], self.level.n_codes[part.column], part.n_buckets)
        # Numbers of 16 bits are sorted in linear time.
        order = np.argsort(buckets.astype(np.min_scalar_type(part.n_buckets - 1)), kind="stable")
        edges = np.cumsum([0, *np.bincount(buckets, minlength=part.n_buckets)])
        for number in part.numbers:
            kept = order[edges[number] : edges[number + 1]]
            if len(kept):
                yield part.first_task + number, self.level.to_blob(rows.take(kept), [codes[kept] for codes in sent])


def _by_side(side: NDArray[np.int8], number: NDArray[np.int64], *, has_people: bool) -> NDArray[np.int64]:
    """Return the order of rows by side, and by number if the first row of a person is needed."""
    return np.lexsort((number, side)) if has_people else np.argsort(side, kind="stable")


def _thinned(level: _Level, part: Part, rows: Rows, columns: list[NDArray[Any]]) -> tuple[Rows, list[NDArray[Any]]]:
    """Drop rows that others represent; the rows are and remain in the order of :func:`_by_side`."""
    n_codes = [level.n_codes[c] for c in level.columns_of(part)]
    n_needed = len(part.prefix) if _is_whole(part) else len(n_codes)
    keys = number_tuples(columns[:n_needed], n_codes[:n_needed])
    kept, weight = thin(keys, rows, level.most_records)
    return rows.take(kept)._replace(weight=weight), [codes[kept] for codes in columns]


def _is_whole(part: Part) -> bool:
    """Return whether only the codes of the prefix matter."""
    return part.is_base or part.is_whole


@dataclass(frozen=True)
class _SearchBucket:
    """Searches the combinations of one task in its rows.

    If ``used`` is not empty, it has the columns of each combination, one bit each, and the intersections of those that
    identify a row are returned; the rows have people.
    """

    level: _Level
    combos: NDArray[np.int16]
    is_skipped: NDArray[np.bool_]
    used: NDArray[np.int64]
    with_profile: bool

    def __call__(self, table: pa.Table) -> pa.Table:
        task = int(table.column("task")[0].as_py())
        part = self.level.part_of(task)
        rows, columns, n_received = self._read(table, part)
        combos, blocks_of = self._own_combinations(part)
        n_prefix = len(part.prefix)
        n_codes = [self.level.n_codes[c] for c in self.level.columns_of(part)]
        if n_prefix > 1:
            prefix = np.unique(number_tuples(columns[:n_prefix], n_codes[:n_prefix]), return_inverse=True)[1]
            columns, n_codes = [prefix, *columns[n_prefix:]], [int(prefix.max()) + 1, *n_codes[n_prefix:]]
        blocks = group_by_width([columns[c] for c in blocks_of], [n_codes[c] for c in blocks_of])
        n_open, n_subject = (int((rows.side <= side).sum()) for side in (0, 1))
        n_combos = len(combos)
        is_checked, is_live = np.zeros(n_combos, np.bool_), np.zeros(n_combos, np.bool_)
        first, partner = np.full(n_open, NOT_IDENTIFIED, np.int32), np.zeros(n_open, np.int32)
        together = np.ones(n_open, np.int32)
        is_skipped = np.zeros(1, np.bool_) if part.is_base else self.is_skipped[part.begin : part.stop].copy()
        used = self.used[part.begin : part.stop].copy()
        common = np.full(n_open if len(used) else 0, ALL_COLUMNS)
        if self.level.has_people:
            copies = np.arange(len(rows.number))
            all_rows = copies.astype(np.int32)
            identify_people(combos, is_skipped, 0, n_combos, blocks, all_rows, n_open, n_subject, rows.person,
                            rows.weight, first, partner, together, used, common, is_checked, is_live)  # fmt: skip
        else:
            # The second copy of an open row that represents others is not open.
            n_copies = np.minimum(rows.weight, 2)
            more = n_copies.copy()
            more[:n_open] -= 1
            copies = np.concatenate([np.arange(n_open), np.repeat(np.arange(len(more)), more)])
            n_synthetic = int(n_copies[:n_subject].sum())
            copied = take_rows(blocks, copies)
            is_grouped = combos.shape[1] >= FIRST_GROUPED_SIZE
            suffixes = suffix_groups(copied) if is_grouped else no_suffix_groups(len(blocks_of))
            all_rows = np.arange(len(copies), dtype=np.int32)
            identify(combos, is_skipped, 0, n_combos, copied, suffixes, all_rows, n_open, n_synthetic,
                     self.level.takes_any, first, partner, is_checked, is_live)  # fmt: skip
        n_unique = np.zeros(0, np.int64)
        if self.with_profile and n_subject and not part.is_base:
            synthetic = take_rows(blocks, np.arange(n_subject))
            with SlicePool(1) as pool:
                n_unique = profile_combinations(synthetic, combos, rows.weight[:n_subject], None, pool).n_unique
        found = np.flatnonzero(first < NOT_IDENTIFIED)
        narrowed = np.flatnonzero(common < ALL_COLUMNS)
        partners = rows.number[copies[partner[found]]]
        arrays: list[NDArray[Any]] = [
            rows.number[narrowed if len(used) else found],
            first[found],
            partners,
            together[found],
            common[narrowed],
            is_checked,
            is_live,
            n_unique,
        ]
        n_bytes = sum(len(value.as_buffer()) for value in table.column("rows"))
        return pa.table([[task], [n_received], [n_bytes], *([array.tobytes()] for array in arrays)], schema=FOUND)

    def _read(self, table: pa.Table, part: Part) -> tuple[Rows, list[NDArray[Any]], int]:
        """Return the rows of a task, their codes, and the number of rows received."""
        blobs = [self.level.read_blob(part, value.as_buffer()) for value in table.column("rows")]
        ends = [np.searchsorted(own.side, [0, 1, 2, 3]) for own, _ in blobs]

        def by_side(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
            """Concatenate arrays of the blobs, side by side."""
            pairs = [(of_blob, array) for of_blob, array in zip(ends, arrays, strict=True) if len(array)]
            sides = [array[of_blob[side] : of_blob[side + 1]] for side in range(3) for of_blob, array in pairs]
            return np.concatenate([arrays[0][:0], *sides])

        rows = Rows(*(by_side(arrays) for arrays in zip(*(own for own, _ in blobs), strict=True)))
        others = [by_side(codes) for codes in zip(*(own for _, own in blobs), strict=True)]
        if self.level.has_people:
            order = _by_side(rows.side, rows.number, has_people=True)
            rows, others = rows.take(order), [codes[order] for codes in others]
        n_received = len(rows.number)
        if part.is_thinned:
            rows, others = _thinned(self.level, part, rows, others)
        return rows, others, n_received

    def _own_combinations(self, part: Part) -> tuple[NDArray[np.int16], list[int]]:
        """Return the combinations of a task over its own columns, the prefix as one of them, and these columns."""
        if _is_whole(part):
            return np.zeros((1, 1), np.int16), [0]
        own = self.combos[part.begin : part.stop, len(part.prefix) - 1 :] - part.column
        return np.ascontiguousarray(own, np.int16), list(range(len(self.level.n_codes) - part.column))


class DividedSearch(LevelSearch):
    """A search whose levels are searched by the tasks of an engine; counts what these received.

    Without a ``view``, the rows and columns of the search are those that were placed.
    """

    def __init__(self, engine: Engine, batches: Any, asked: SearchInput, view: View | None = None) -> None:
        super().__init__(asked)
        assert engine.rows_per_task is not None  # noqa: S101 - otherwise the work is not divided
        self.engine, self.batches, self.rows_per_task = engine, batches, engine.rows_per_task
        self.n_codes = tuple(max(int(n), 1) for n in asked.n_codes)
        has_people = asked.subjects is not None
        if view is None:
            people = np.full(len(asked.weights), -1, np.int32) if asked.subjects is None else asked.subjects
            rows, columns = np.arange(len(asked.weights)), tuple(range(self.n_columns))
            view = View(rows, columns, asked.weights, people, count_blobs(engine, batches))
        self.view, self.changed = view, view.changed(asked)
        self.bucket_rows = BucketRows(asked.columns, self.n_codes)
        self.search_row = np.full(len(view.weights), -1)
        self.search_row[view.rows] = np.arange(len(view.rows))
        self.rows_per_tuple = rows_per_tuple(view.n_blobs, self.most_records, has_people)
        self.n_tasks = self.largest_task = self.n_bytes_sent = 0
        self.n_unique: list[NDArray[np.int64]] = []

    def search(
        self, combos: NDArray[np.int16], is_skipped: NDArray[np.bool_], open_rows: NDArray[np.int64], _: SlicePool
    ) -> Findings:
        """Search all candidates in the tasks of a division."""
        n_synthetic, n_combos = len(self.combo_of_row), len(combos)
        place = np.full(n_synthetic, -1)
        place[open_rows] = np.arange(len(open_rows))
        first, partner = np.full(len(open_rows), NOT_IDENTIFIED, np.int32), np.zeros(len(open_rows), np.int32)
        together = np.zeros(len(open_rows), np.int32)
        is_checked, is_live = np.zeros(n_combos, np.bool_), np.zeros(n_combos, np.bool_)
        n_unique = np.zeros(n_combos, np.int64)
        if combos.shape[1] == 1:
            is_checked[:] = len(open_rows) > 0 and len(self.weights) > n_synthetic
        for part, of_task in self._searched(combos, is_skipped, open_rows, NOTHING, self.asked.alpha is None):
            own, live = slice(part.begin, part.stop), np.frombuffer(of_task["is_live"], np.bool_)
            if part.is_base:
                is_checked[own] |= live[0]
                continue
            if not part.is_whole:
                is_checked[own] |= np.frombuffer(of_task["is_checked"], np.bool_)
            is_live[own] |= live
            if of_task["n_unique"]:
                n_unique[own] += np.frombuffer(of_task["n_unique"], np.int64)
            rows = place[self._rows(of_task["row"])]
            ordinals = part.begin + np.frombuffer(of_task["first"], np.int32)
            is_earlier = ordinals < first[rows]
            earlier = rows[is_earlier]
            first[earlier] = ordinals[is_earlier]
            partners = self.search_row[np.frombuffer(of_task["partner"], np.int64)[is_earlier]]
            partner[earlier] = partners - n_synthetic
            together[earlier] = np.frombuffer(of_task["together"], np.int32)[is_earlier]
        self.n_unique.append(n_unique[is_checked])
        return Findings(first, partner, together, is_checked, is_live)

    def common_columns(
        self, asked_for: Sequence[int], on_progress: Callable[[LevelProgress], None] | None = None
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Do what :func:`~privacy_assets.mpucc.kernels.common_columns.find_common_columns` does, by tasks."""

        def narrow(
            combos: NDArray[np.int16], used: NDArray[np.int64], is_open: NDArray[np.bool_], common: NDArray[np.int64]
        ) -> NDArray[np.bool_]:
            is_live, is_skipped = np.zeros(len(combos), np.bool_), np.zeros(len(combos), np.bool_)
            open_rows = np.flatnonzero(is_open)
            for part, of_task in self._searched(combos, is_skipped, open_rows, used, with_profile=False):
                if not part.is_base:
                    is_live[part.begin : part.stop] |= np.frombuffer(of_task["is_live"], np.bool_)
                    common[self._rows(of_task["row"])] &= np.frombuffer(of_task["common"], np.int64)
            return is_live

        return narrow_by_levels(narrow, self.n_columns, self.could_be, asked_for, self.asked.max_size, on_progress)

    def _rows(self, numbers: bytes) -> NDArray[np.int64]:
        """Return the rows of the search for numbers of placed rows, as tasks send them."""
        return self.search_row[np.frombuffer(numbers, np.int64)]

    def _searched(
        self,
        combos: NDArray[np.int16],
        is_skipped: NDArray[np.bool_],
        open_rows: NDArray[np.int64],
        used: NDArray[np.int64],
        with_profile: bool,
    ) -> Iterator[tuple[Part, dict[str, Any]]]:
        """Yield the part and the answer of each task that searches candidates of one size."""
        division = Division(self.bucket_rows, combos, self.rows_per_task, self.rows_per_tuple)
        level = _Level(
            tuple(division.parts),
            self.n_codes,
            len(self.view.weights),
            self.subjects is not None,
            self.most_records,
            self.asked.takes_any,
        )
        sides = np.full(-(-len(self.search_row) // 4) * 4, 3, np.uint8)
        n_synthetic = len(self.combo_of_row)
        sides[self.view.rows[:n_synthetic]], sides[self.view.rows[n_synthetic:]] = 1, 2
        sides[self.view.rows[open_rows]] = 0
        packed = np.bitwise_or.reduce(sides.reshape(-1, 4) << np.array([0, 2, 4, 6], np.uint8), axis=1)
        put = _PutIntoBuckets(level, packed, self.view.columns, self.changed, self.view.recoded)
        search = _SearchBucket(level, combos, is_skipped, used, with_profile)
        found = self.engine.collect(self.engine.map_reduce(self.batches, put, ROWS_OF_TASKS, "task", search, FOUND))
        for of_task in found.to_pylist():
            self.n_tasks += 1
            self.largest_task = max(self.largest_task, of_task["n_rows"])
            self.n_bytes_sent += of_task["n_bytes"]
            yield level.part_of(of_task["task"]), of_task

    def profile(self, combos: NDArray[np.int16], pool: SlicePool) -> Profile:
        """Return the unique rows that the tasks counted; entropies are measured here, because sums are rounded."""
        if self.asked.alpha is not None:
            return super().profile(combos, pool)
        n_unique = np.concatenate([np.zeros(0, np.int64), *self.n_unique])
        return Profile(n_unique, np.zeros(len(n_unique)))


def find_mpuccs_by(
    engine: Engine | None,
    asked: SearchInput,
    n_threads: int = 1,
    on_progress: Callable[[LevelProgress], None] | None = None,
) -> SearchResult:
    """Search as :func:`~privacy_assets.mpucc.kernels.search.find_mpuccs` does, by the tasks of an engine.

    Parameters, result and errors are the same, and so is every array of the result. Without an engine, or with one that
    does not divide the work, this calls that function.
    """
    if engine is None or engine.rows_per_task is None:
        return find_mpuccs(asked, n_threads, on_progress)
    with engine.place(columns_to_place(asked.columns, asked.weights, asked.subjects)) as batches:
        return search_levels(DividedSearch(engine, batches, asked), n_threads, on_progress)
