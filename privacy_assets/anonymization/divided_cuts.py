"""Mondrian by an engine: large classes are cut here by counts that tasks sum, each small class by one task.

A class of at most the rows of a task is finished by the same loop as a whole table. So the partition is that of
`partition_rows`; only the order of the records within a class may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.anonymization.divided_counts import (
    CountBins,
    CountCodes,
    PeopleOfCuts,
    SortIntoLeaves,
    add_up,
    count_people,
    count_values,
)
from privacy_assets.anonymization.kernels.models import Models, no_evidence
from privacy_assets.anonymization.kernels.mondrian import Grower, Partition, Task
from privacy_assets.anonymization.kernels.mondrian_cuts import (
    DIMENSION,
    IS_COARSE,
    N_HEAD,
    NO_CUT,
    RIGHT_LOW,
    THRESHOLD,
    Box,
    Dimensions,
    make_lists,
)
from privacy_assets.anonymization.kernels.mondrian_divided import (
    Listed,
    choose_cut,
    choose_cut_of_sides,
    choose_cut_on_codes,
    cover,
    list_cuts,
    list_cuts_on_codes,
)
from privacy_assets.anonymization.kernels.mondrian_rows import pack_matrix, pack_rows
from privacy_assets.anonymization.kernels.mondrian_tree import TreeArrays
from privacy_assets.engine.protocol import Engine
from privacy_assets.kernels.numbers import number_type

LARGEST_SHARE = 2
"""A class of up to this many times the rows of a task is left to one task: each level of cuts reads all rows."""
PARTS_OF_FINISHED_CLASS = 64
"""A large class that cannot be cut is collected in this many parts, because its rows are never needed all at once."""
ROWS_OF_CLASSES = pa.schema([("task", pa.int64()), ("rows", pa.binary())])
FINISHED = pa.schema([("task", pa.int64()), *((name, pa.binary()) for name in ("records", "begins", "cuts"))])


@dataclass
class _Node:
    """A class, or what it was before it was cut; a leaf has no ``sides``."""

    size: int
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    is_finished: bool = False
    dimension: int = 0
    threshold: int = 0
    right_low: int = 0
    head: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    sides: tuple[int, int] | None = None


@dataclass(frozen=True)
class _Sides:
    """The counts on both sides of each cut of a class, if more than rows are needed."""

    listed: Listed
    people: PeopleOfCuts | None
    by_bin: NDArray[np.int64] | None


@dataclass(frozen=True)
class _SendClasses:
    """Sends the rows of each leaf to the task that finishes it, and the records of those that are finished."""

    sort: SortIntoLeaves
    is_finished: NDArray[np.bool_]
    has_people: bool
    n_sensitive: int
    numbers: np.dtype[np.signedinteger[Any]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        n_leaves = len(self.is_finished)
        for table, order, codes, leaf in self.sort(batches):
            records = table.column("row").to_numpy().astype(self.numbers)[order]
            people = records[:0]
            if self.has_people:
                people = table.column("person").to_numpy().astype(self.numbers)[order]
            sensitive = np.empty((len(order), self.n_sensitive), np.int32)
            for v in range(self.n_sensitive):
                sensitive[:, v] = table.column(f"v{v}").to_numpy()[order]
            distinct, begins = np.unique(leaf, return_index=True)
            tasks, blobs = [], []
            for own, begin, stop in zip(distinct, begins, np.append(begins[1:], len(leaf)), strict=True):
                part = int(records[begin]) % PARTS_OF_FINISHED_CLASS if self.is_finished[own] else 0
                tasks.append(int(own) + part * n_leaves)
                parts = [records[begin:stop]]
                if not self.is_finished[own]:
                    parts += [people[begin:stop], sensitive[begin:stop], codes[begin:stop]]
                blobs.append(b"".join([int(stop - begin).to_bytes(8, "little"), *(each.tobytes() for each in parts)]))
            yield pa.record_batch([pa.array(tasks, pa.int64()), pa.array(blobs, pa.binary())], schema=ROWS_OF_CLASSES)


@dataclass(frozen=True)
class _Finish:
    """Cuts a class until no cut remains."""

    corners: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]
    is_finished: NDArray[np.bool_]
    dimensions: Dimensions
    models: Models
    n_padded: int
    dtype: np.dtype[Any]
    numbers: np.dtype[np.signedinteger[Any]]

    def __call__(self, table: pa.Table) -> pa.Table:
        task = int(table.column("task")[0].as_py())
        leaf = task % len(self.corners)
        n_codes = 0 if self.is_finished[leaf] else self.n_padded
        counts_people = self.models.counts_people and not self.is_finished[leaf]
        n_sensitive = len(self.models.l_kind) if self.models.needs_values and not self.is_finished[leaf] else 0
        records, people, sensitive, codes = [], [], [], []
        for value in table.column("rows"):
            blob = value.as_buffer()
            n_rows = int.from_bytes(blob[:8].to_pybytes(), "little")
            records.append(np.frombuffer(blob, self.numbers, n_rows, 8))
            place = 8 + self.numbers.itemsize * n_rows
            if counts_people:
                people.append(np.frombuffer(blob, self.numbers, n_rows, place))
                place += self.numbers.itemsize * n_rows
            values = np.frombuffer(blob, np.int32, n_rows * n_sensitive, place)
            sensitive.append(values.reshape(n_rows, n_sensitive))
            place += values.nbytes
            codes.append(np.frombuffer(blob, self.dtype, n_rows * n_codes, place).reshape(n_rows, n_codes))
        numbers = np.concatenate(records)
        if self.is_finished[leaf]:
            return self._described(task, numbers, np.zeros(1, np.int64), np.zeros((0, 5), np.int64))
        order = np.argsort(numbers)
        rows = pack_matrix(np.ascontiguousarray(np.concatenate(codes)[order]))
        person = None
        if counts_people:
            person = np.unique(np.concatenate(people)[order], return_inverse=True)[1].astype(np.int32)
        values_of_rows = np.concatenate(sensitive)[order] if n_sensitive > 0 else None
        grower = Grower(rows, self.dimensions, self.models, person, values_of_rows, len(numbers))
        low, high = self.corners[leaf]
        grown = grower.grow(Task(0, len(numbers), low.copy(), high.copy()))
        return self._described(task, numbers[order][rows.records], np.sort(grown.begins), grown.cuts)

    def _described(self, task: int, *arrays: NDArray[np.signedinteger[Any]]) -> pa.Table:
        blobs = ([np.ascontiguousarray(array, self.numbers).tobytes()] for array in arrays)
        return pa.table([[task], *blobs], schema=FINISHED)


class _DividedCuts:
    """A partition in progress."""

    def __init__(
        self, engine: Engine, batches: Any, n_rows: int, n_values: Sequence[int], dimensions: Dimensions, models: Models
    ) -> None:
        assert engine.rows_per_task is not None  # noqa: S101 - otherwise the work is not divided
        self.engine, self.batches, self.rows_per_task = engine, batches, engine.rows_per_task
        self.n_values, self.dimensions, self.models = tuple(n_values), dimensions, models
        self.nodes = [_Node(n_rows, np.zeros(len(n_values), np.int64), dimensions.n_values - 1)]

    def leaves(self) -> list[int]:
        """Return the leaves, left before right, as the tree numbers them."""
        return [i for i in self._in_order() if self.nodes[i].sides is None]

    def _in_order(self) -> Iterator[int]:
        """Yield the nodes, parents first and left before right."""
        waiting = [0]
        while waiting:
            i = waiting.pop()
            yield i
            waiting += reversed(self.nodes[i].sides or ())

    def tree(self) -> TreeArrays:
        """Return the cuts made so far."""
        order = [i for i in self._in_order() if self.nodes[i].sides is not None]
        place = {i: n for n, i in enumerate(order)} | {i: -1 - n for n, i in enumerate(self.leaves())}
        inner = [self.nodes[i] for i in order]
        sides = np.array([[place[side] for side in node.sides or ()] for node in inner], np.int64).reshape(-1, 2)
        ints = np.array([[n.dimension, n.threshold, n.right_low] for n in inner], np.int64).reshape(-1, 3)
        heads = [node.head for node in inner]
        first_head = np.cumsum([0, *map(len, heads)]).astype(np.int64)
        head = np.concatenate([np.zeros(0, np.int64), *heads])
        dimension, threshold, right_low, left, right = (np.ascontiguousarray(array) for array in (*ints.T, *sides.T))
        return TreeArrays(dimension, threshold, right_low, left, right, first_head, head)

    def cut_large_classes(self) -> bool:
        """Cut every class that is too large for a task once; return False if there is none."""
        leaves = self.leaves()
        large = {}
        for number, i in enumerate(leaves):
            node = self.nodes[i]
            is_large = node.size > LARGEST_SHARE * self.rows_per_task
            node.is_finished |= is_large and node.size < 2 * self.models.k
            if is_large and not node.is_finished:
                large[number] = node
        if not large:
            return False
        boxes = {number: cover(node.size, node.low, node.high, self.dimensions) for number, node in large.items()}
        sort = SortIntoLeaves(self.tree(), self.n_values)
        n_bins = int(self.dimensions.first_bin[-1])
        counts = self._sum(CountBins(sort, boxes, self.dimensions.first_bin), len(large) * n_bins)
        histograms = dict(zip(large, counts.reshape(len(large), n_bins), strict=True))
        sides: dict[int, _Sides] = {}
        if self.models.counts_people or self.models.needs_values:
            lists = make_lists(self.dimensions)
            listed = {
                number: list_cuts(histogram.copy(), self.dimensions, boxes[number], lists)
                for number, histogram in histograms.items()
            }
            sides = self._count_sides(sort, boxes, listed)
        for number, node in large.items():
            self._cut(node, number, boxes[number], histograms[number], sort, sides.get(number))
        return True

    def _count_sides(self, sort: SortIntoLeaves, boxes: dict[int, Box], listed: dict[int, Listed]) -> dict[int, _Sides]:
        classes = {number: (each, boxes[number]) for number, each in listed.items()}
        people: dict[int, PeopleOfCuts] = {}
        by_bin: dict[int, NDArray[np.int64]] = {}
        if self.models.counts_people:
            n_tasks = -(-self.nodes[0].size // self.rows_per_task)
            people = count_people(self.engine, self.batches, sort, classes, n_tasks)
        if self.models.needs_values:
            n_columns, n_values = len(self.models.l_kind), len(self.models.totals)
            by_bin = count_values(self.engine, self.batches, sort, classes, n_columns, n_values)
        return {number: _Sides(each, people.get(number), by_bin.get(number)) for number, each in listed.items()}

    def _sum(self, count: CountBins | CountCodes, n_bins: int) -> NDArray[np.int64]:
        return add_up(self.engine, self.batches, count, n_bins)

    def _cut(
        self,
        node: _Node,
        number: int,
        box: Box,
        histogram: NDArray[np.int64],
        sort: SortIntoLeaves,
        sides: _Sides | None,
    ) -> None:
        dimensions, lists, cut = self.dimensions, make_lists(self.dimensions), np.full(5, NO_CUT, np.int64)
        cut[IS_COARSE] = cut[N_HEAD] = 0

        def choose_of_sides(own: _Sides) -> None:
            choose_cut_of_sides(node.size, own.people, own.by_bin, own.listed, dimensions, box, lists, self.models, cut)

        if sides is None:
            choose_cut(node.size, histogram.copy(), dimensions, box, lists, self.models, no_evidence(), cut)
        else:
            choose_of_sides(sides)
        shift, base = box.shift.copy(), box.base.copy()
        if cut[DIMENSION] == NO_CUT and cut[IS_COARSE] == 1:
            n_codes = np.where(shift > 0, dimensions.n_values, 0)
            first = np.concatenate([[0], np.cumsum(n_codes)]).astype(np.int64)
            n_rows = self._sum(CountCodes(sort, number, first), int(first[-1]))
            codes = np.concatenate([np.arange(n) for n in n_codes]).astype(np.int64)
            occurs = n_rows > 0
            first_listed = np.concatenate([[0], np.cumsum(occurs)]).astype(np.int64)[first]
            if sides is None:
                choose_cut_on_codes(node.size, codes[occurs], n_rows[occurs], first_listed, dimensions, box,
                                    self.models, no_evidence(), cut)  # fmt: skip
            else:
                listed = list_cuts_on_codes(codes[occurs], n_rows[occurs], first_listed, dimensions, box)
                choose_of_sides(self._count_sides(sort, {number: box}, {number: listed})[number])
            histogram, shift, base = n_rows, np.zeros_like(shift), np.zeros_like(base)
            first_bin = first
        else:
            first_bin = dimensions.first_bin
        j = int(cut[DIMENSION])
        if j == NO_CUT:
            node.is_finished = True
            return
        node.dimension = j
        low, high = (box.low.copy(), box.low.copy()), (box.high.copy(), box.high.copy())
        if dimensions.is_set[j]:
            node.head = np.sort(lists.head[: cut[N_HEAD]])
            n_left = int(histogram[first_bin[j] + node.head].sum())
        else:
            node.threshold, node.right_low = int(cut[THRESHOLD]), int(cut[RIGHT_LOW])
            last = (node.threshold - int(base[j])) >> int(shift[j])
            n_left = int(histogram[first_bin[j] : first_bin[j] + last + 1].sum())
            high[0][j], low[1][j] = node.threshold, node.right_low
        node.sides = (len(self.nodes), len(self.nodes) + 1)
        self.nodes.append(_Node(n_left, low[0], high[0]))
        self.nodes.append(_Node(node.size - n_left, low[1], high[1]))

    @property
    def _numbers(self) -> np.dtype[np.signedinteger[Any]]:
        """The numbers of records and people, as in the partition of the kernels."""
        return number_type(self.nodes[0].size)

    def finish(self) -> Partition:
        """Finish all classes, each in one task, and put the partition together."""
        leaves = [self.nodes[i] for i in self.leaves()]
        is_finished = np.array([leaf.is_finished for leaf in leaves], np.bool_)
        layout = pack_rows([np.zeros(0, np.int64) for _ in self.n_values], self.n_values).codes
        corners = tuple((leaf.low, leaf.high) for leaf in leaves)
        numbers = self._numbers
        finish = _Finish(corners, is_finished, self.dimensions, self.models, layout.shape[1], layout.dtype, numbers)
        sort = SortIntoLeaves(self.tree(), self.n_values)
        n_sensitive = len(self.models.l_kind) if self.models.needs_values else 0
        send = _SendClasses(sort, is_finished, self.models.counts_people, n_sensitive, numbers)
        made = self.engine.collect(
            self.engine.map_reduce(self.batches, send, ROWS_OF_CLASSES, "task", finish, FINISHED)
        )
        of_leaf: dict[int, list[dict[str, Any]]] = {}
        for finished in made.sort_by("task").to_pylist():
            of_leaf.setdefault(finished["task"] % len(leaves), []).append(finished)
        return self._put_together([of_leaf[number] for number in range(len(leaves))])

    def _put_together(self, finished: list[list[dict[str, Any]]]) -> Partition:
        records, begins, cuts, n_done = [], [], [], 0
        begin_of, stop_of = {}, {}
        for i, parts in zip(self.leaves(), finished, strict=True):
            begin_of[i], stop_of[i] = n_done, n_done + self.nodes[i].size
            records += [np.frombuffer(part["records"], self._numbers) for part in parts]
            begins.append(np.frombuffer(parts[0]["begins"], self._numbers) + np.int64(n_done))
            own = np.frombuffer(parts[0]["cuts"], self._numbers).reshape(-1, 5).astype(np.int64)
            own[:, :3] += n_done
            cuts.append(own)
            n_done = stop_of[i]
        for i in reversed(range(len(self.nodes))):
            node = self.nodes[i]
            if node.sides is not None:
                left, right = node.sides
                begin_of[i], stop_of[i] = begin_of[left], stop_of[right]
                cuts.append(np.array([[begin_of[i], stop_of[i], stop_of[left], node.dimension, node.threshold]]))
        all_cuts = np.concatenate(cuts)
        in_order = np.lexsort((-all_cuts[:, 1], all_cuts[:, 0]))
        return Partition(np.concatenate(records), np.concatenate(begins), all_cuts[in_order])


def partition_by(
    engine: Engine,
    columns: Sequence[NDArray[Any]],
    n_values: Sequence[int],
    dimensions: Dimensions,
    models: Models,
    person: NDArray[np.int32] | None = None,
    sensitive: NDArray[np.int32] | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Partition:
    """Cut a table into the classes of `partition_rows` by the tasks of an engine.

    Only the order of the records within a class differs.
    """
    n_rows = len(columns[0])
    types = [np.min_scalar_type(max(n - 1, 0)) for n in n_values]
    placed = {f"c{j}": codes.astype(types[j], copy=False) for j, codes in enumerate(columns)}
    placed["row"] = np.arange(n_rows, dtype=np.min_scalar_type(n_rows))
    if models.counts_people:
        assert person is not None  # noqa: S101 - the caller counts people
        placed["person"] = person.astype(np.int64)
    if models.needs_values:
        assert sensitive is not None  # noqa: S101 - the caller has limits on them
        type_of_values = np.min_scalar_type(len(models.totals))
        placed |= {f"v{v}": sensitive[:, v].astype(type_of_values) for v in range(sensitive.shape[1])}
    with engine.place(placed) as batches:
        del placed
        cuts = _DividedCuts(engine, batches, n_rows, n_values, dimensions, models)
        while cuts.cut_large_classes():
            if on_rows is not None:
                on_rows(sum(node.size for node in cuts.nodes if node.is_finished))
        partition = cuts.finish()
    if on_rows is not None:
        on_rows(n_rows)
    return partition
