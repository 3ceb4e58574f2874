"""Mondrian: the recursive partition of a table into classes that satisfy every privacy model.

A class is cut while it has an allowable cut, which leaves every model satisfied on both sides. Rows are packed and
moved, so that a class is a range of rows and a node of the tree is two numbers; an explicit stack contains the open
nodes.
`mondrian_cuts` chooses the cut from counts alone (histograms, with a shortcut for small classes in
:mod:`~privacy_assets.anonymization.kernels.mondrian_few`; with people, l or t the counts of `mondrian_guarded`), so the
partition depends neither on the order of the rows nor on the number of threads.

References
----------
.. [1] K. LeFevre, D. J. DeWitt, R. Ramakrishnan (2006), "Mondrian multidimensional k-anonymity", ICDE,
   doi:10.1109/ICDE.2006.101. Departures: sets unless a column has a hierarchy, whose nodes are cut one at a time,
   any allowable cut instead of the median only, and the criterion "gain".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.models import Models, no_evidence
from privacy_assets.anonymization.kernels.mondrian_cuts import (
    DIMENSION,
    FEW_ROWS,
    IS_COARSE,
    MOST_BINS,
    N_HEAD,
    NO_CUT,
    RIGHT_LOW,
    THRESHOLD,
    Dimensions,
    Lists,
    make_box,
    make_lists,
    set_bins,
)
from privacy_assets.anonymization.kernels.mondrian_few import count_few_rows, decide_on_few, fit_words
from privacy_assets.anonymization.kernels.mondrian_guarded import Guard, decide_on_rows, make_guard
from privacy_assets.anonymization.kernels.mondrian_kept import (
    FEWEST_ROWS_KEPT,
    NO_SLOT,
    free_slot,
    keep,
    make_kept,
    subtract,
    take_over,
    take_slot,
)
from privacy_assets.anonymization.kernels.mondrian_nodes import make_nodes
from privacy_assets.anonymization.kernels.mondrian_rows import PackedRows, count_rows, move_rows
from privacy_assets.kernels.compilation import kernel

# The smaller side of a cut is processed first, so the stack never has more nodes than a number of rows has bits.
STACK_SIZE = 80
# Classes below this many rows are not worth a separate task.
FEWEST_ROWS_PER_TASK = 50_000
TASKS_PER_THREAD = 16


class Stack(NamedTuple):
    """Open nodes of a tree, with their range of rows and outermost codes.

    ``low`` and ``high`` have shape (STACK_SIZE, n_dimensions); ``begin``, ``stop`` and ``slot``, where the histogram of
    the node is kept, have shape (STACK_SIZE,); all int64.
    """

    begin: NDArray[np.int64]
    stop: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    slot: NDArray[np.int64]


class Buffers(NamedTuple):
    """Scratch of one task; ``histogram`` is zero and ``is_head`` False between nodes.

    ``histogram`` has shape (n_bins,) and dtype int64, ``is_head`` the length of the lists and dtype bool, ``occupied``
    shape (n_dimensions,) and dtype uint64, ``cut`` shape (5,) and dtype int64.
    """

    histogram: NDArray[np.int64]
    is_head: NDArray[np.bool_]
    occupied: NDArray[np.uint64]
    cut: NDArray[np.int64]


def make_buffers(dimensions: Dimensions, lists: Lists) -> Buffers:
    """Return scratch for one task; allocated here, because Numba takes long to compile NumPy's functions."""
    n_dimensions = len(dimensions.n_values)
    return Buffers(
        np.zeros(int(dimensions.first_bin[n_dimensions]), np.int64),
        np.zeros(len(lists.head), np.bool_),
        np.zeros(n_dimensions, np.uint64),
        np.zeros(5, np.int64),
    )


class Partition(NamedTuple):
    """Classes and cuts; neither depends on the number of threads.

    Classes are in the order of the tree, left before right; the records of each begin at ``begins``. ``cuts`` (n_cuts,
    5), parents before children and empty unless requested, have where the class began and ended, where its right side
    begins, the dimension, and the largest code on the left (0 for sets).
    """

    records: NDArray[np.signedinteger[Any]]
    begins: NDArray[np.int64]
    cuts: NDArray[np.int64]

    @property
    def edges(self) -> NDArray[np.int64]:
        """Where each class begins, and the number of rows."""
        return np.append(self.begins, len(self.records))


def make_dimensions(
    coordinates: Sequence[NDArray[np.float64] | None],
    n_values: Sequence[int],
    hierarchies: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]] | None] | None = None,
) -> Dimensions:
    """Describe dimensions by the coordinates of their codes; None for sets, which may have a hierarchy."""
    is_set = np.array([c is None for c in coordinates], np.bool_)
    values = np.array(n_values, np.int64)
    n_bins = np.where(is_set, values, MOST_BINS)
    parts = [np.zeros(0) if c is None else np.asarray(c, np.float64) for c in coordinates]
    first = np.cumsum([0, *(len(part) for part in parts)])[:-1].astype(np.int64)
    first_bin = np.concatenate([[0], np.cumsum(n_bins)]).astype(np.int64)
    nodes = make_nodes([None] * len(n_values) if hierarchies is None else hierarchies)
    return Dimensions(is_set, values, first_bin, np.concatenate([*parts, np.zeros(1)]), first, nodes)


@kernel
def _grow(
    rows: PackedRows,
    dimensions: Dimensions,
    models: Models,
    guard: Guard | None,
    stack: Stack,
    n_open: int,
    most_cuts: int,
    begins: NDArray[np.int64],
    cuts: NDArray[np.int64],
    lists: Any,
    box: Any,
    evidence: Any,
    kept: Any,
    buffers: Buffers,
) -> tuple[int, int, int]:
    """Process the open nodes of a stack until it is empty or enough cuts were made.

    Written in place: ``begins`` of finished classes and the cuts. Returns the number of
    open nodes, of finished classes, and of cuts.
    """
    n_dimensions = len(box.low)
    histogram, is_head, occupied, cut = buffers
    has_large_set = False
    fewest_kept = FEWEST_ROWS_KEPT
    for j in range(n_dimensions):
        if dimensions.is_set[j] and dimensions.n_values[j] > MOST_BINS:
            # Its bins do not become fewer in small classes, so keeping them soon costs more than counting.
            has_large_set = True
            fewest_kept += dimensions.n_values[j]
    is_plain = not (models.counts_people or models.needs_values or has_large_set)
    fits_words = is_plain and fit_words(dimensions)
    n_classes = 0
    n_cuts = 0
    while n_open > 0 and n_cuts < most_cuts:
        n_open -= 1
        begin, stop = stack.begin[n_open], stack.stop[n_open]
        size = stop - begin
        cut[DIMENSION], cut[IS_COARSE] = NO_CUT, 0
        slot, own_slot = stack.slot[n_open], NO_SLOT
        if size < 2 * models.k:
            free_slot(kept, slot, dimensions.first_bin)
        else:
            for d in range(n_dimensions):
                box.low[d], box.high[d] = stack.low[n_open, d], stack.high[n_open, d]
            set_bins(size, dimensions, box)
            is_few = fits_words and size < FEW_ROWS and slot == NO_SLOT
            if is_few:
                count_few_rows(rows.codes, begin, stop, dimensions.first_bin, box, histogram, occupied)
            elif not take_over(kept, slot, box, dimensions.first_bin, histogram):
                count_rows(rows.codes, begin, stop, dimensions.first_bin, box, histogram)
            if size >= fewest_kept:
                own_slot = keep(kept, histogram, box, dimensions.first_bin)
            if is_few:
                decide_on_few(size, histogram, occupied, dimensions, box, lists, models, evidence, cut)
            else:
                # Like `decide` if only rows are counted: one function compiles faster than two.
                decide_on_rows(rows, begin, stop, histogram, dimensions, box, lists, models, guard, cut)
            if cut[DIMENSION] == NO_CUT and cut[IS_COARSE] == 1:
                # The bins will have one code each, unlike those of the kept histogram of the class.
                free_slot(kept, own_slot, dimensions.first_bin)
                own_slot = NO_SLOT
                decide_on_rows(rows, begin, stop, histogram, dimensions, box, lists, models, guard, cut)
        if cut[DIMENSION] == NO_CUT:
            free_slot(kept, own_slot, dimensions.first_bin)
            begins[n_classes] = begin
            n_classes += 1
            continue
        j = cut[DIMENSION]
        head = lists.head[: cut[N_HEAD]]
        for code in head:
            is_head[code] = True
        middle = move_rows(
            rows.codes,
            rows.words,
            rows.records,
            begin,
            stop,
            j,
            cut[THRESHOLD],
            is_head[: len(is_head) * (len(head) > 0)],
        )
        for code in head:
            is_head[code] = False
        cuts[n_cuts, 0], cuts[n_cuts, 1], cuts[n_cuts, 2] = begin, stop, middle
        cuts[n_cuts, 3], cuts[n_cuts, 4] = j, cut[THRESHOLD] * (1 - dimensions.is_set[j])
        n_cuts += 1
        is_left_larger = middle - begin > stop - middle
        smaller_slot = NO_SLOT
        if own_slot != NO_SLOT:
            smaller_slot = take_slot(kept, box)
            if smaller_slot == NO_SLOT:
                free_slot(kept, own_slot, dimensions.first_bin)
                own_slot = NO_SLOT
            else:
                first, last = (middle, stop) if is_left_larger else (begin, middle)
                count_rows(rows.codes, first, last, dimensions.first_bin, box, kept.histograms[smaller_slot])
                subtract(kept, own_slot, smaller_slot, dimensions.first_bin)
        for side in range(2):
            is_left = (side == 0) == is_left_larger
            stack.begin[n_open] = begin if is_left else middle
            stack.stop[n_open] = middle if is_left else stop
            for d in range(n_dimensions):
                stack.low[n_open, d], stack.high[n_open, d] = box.low[d], box.high[d]
            stack.slot[n_open] = own_slot if side == 0 else smaller_slot
            if not dimensions.is_set[j]:
                if is_left:
                    stack.high[n_open, j] = cut[THRESHOLD]
                else:
                    stack.low[n_open, j] = cut[RIGHT_LOW]
            n_open += 1
    return n_open, n_classes, n_cuts


class Task(NamedTuple):
    """An open node: its range of rows and outermost codes."""

    begin: int
    stop: int
    low: NDArray[np.int64]
    high: NDArray[np.int64]


class _Grown(NamedTuple):
    """Result of a task: finished classes, cuts, and nodes that are still open."""

    begins: NDArray[np.int64]
    cuts: NDArray[np.int64]
    open: list[Task]
    n_rows_done: int


class Grower:
    """Runs the compiled loop on open nodes; one task is one thread's work."""

    def __init__(
        self,
        rows: PackedRows,
        dimensions: Dimensions,
        models: Models,
        person: NDArray[np.int32] | None,
        sensitive: NDArray[np.int32] | None,
        task_rows: int,
    ) -> None:
        self.rows, self.dimensions, self.models = rows, dimensions, models
        self.person, self.sensitive = person, sensitive
        self.task_rows = task_rows

    def root(self) -> Task:
        """Return the open node of the whole table."""
        n_values = self.dimensions.n_values
        return Task(0, len(self.rows.codes), np.zeros(len(n_values), np.int64), n_values - 1)

    def grow(self, task: Task) -> _Grown:
        """Finish a node, or cut it once if it is too large for one task."""
        size = task.stop - task.begin
        most_cuts = 1 if size > self.task_rows else size
        n_dimensions = len(task.low)
        stack = Stack(
            np.empty(STACK_SIZE, np.int64),
            np.empty(STACK_SIZE, np.int64),
            np.empty((STACK_SIZE, n_dimensions), np.int64),
            np.empty((STACK_SIZE, n_dimensions), np.int64),
            np.full(STACK_SIZE, NO_SLOT, np.int64),
        )
        stack.begin[0], stack.stop[0], stack.low[0], stack.high[0] = task
        most_classes = size // max(self.models.k, 1) + 1 if most_cuts > 1 else 1
        begins = np.empty(most_classes, np.int64)
        cuts = np.empty((most_classes, 5), np.int64)
        # Without a guard, Numba leaves out the code that only counts of people and values need.
        is_guarded = self.person is not None or self.sensitive is not None
        guard = make_guard(self.person, self.sensitive, len(self.rows.codes), self.models) if is_guarded else None
        lists = make_lists(self.dimensions)
        box = make_box(n_dimensions)
        n_open, n_classes, n_cuts = _grow(
            self.rows,
            self.dimensions,
            self.models,
            guard,
            stack,
            1,
            most_cuts,
            begins,
            cuts,
            lists,
            box,
            no_evidence() if is_guarded else None,
            make_kept(int(self.dimensions.first_bin[-1]), n_dimensions),
            make_buffers(self.dimensions, lists),
        )
        still_open = [
            Task(int(stack.begin[i]), int(stack.stop[i]), stack.low[i].copy(), stack.high[i].copy())
            for i in range(n_open)
        ]
        n_rows_open = sum(node.stop - node.begin for node in still_open)
        kept = cuts[:n_cuts]
        if 2 * n_classes < most_classes:
            begins, kept = begins[:n_classes].copy(), kept.copy()
        return _Grown(begins[:n_classes], kept, still_open, size - n_rows_open)


def partition_rows(
    rows: PackedRows,
    dimensions: Dimensions,
    models: Models,
    *,
    person: NDArray[np.int32] | None = None,
    sensitive: NDArray[np.int32] | None = None,
    n_threads: int = 1,
    on_rows: Callable[[int], None] | None = None,
    task_rows: int | None = None,
) -> Partition:
    """Cut a table into classes; the whole table satisfies the models (not checked here).

    ``rows`` are moved in place. ``person`` (from 0) is needed if the models count people, ``sensitive`` (positions in
    ``models.totals``) if they need values. ``on_rows`` is called with the number of rows in finished classes; one
    thread finishes classes of up to ``task_rows`` on its own. Time O(n_rows x n_dimensions x log(n_rows / k)). Memory
    beyond ``rows``: 8 bytes per class, 40 per cut.
    """
    n_rows = len(rows.codes)
    if task_rows is None:
        task_rows = max(n_rows // (TASKS_PER_THREAD * n_threads), FEWEST_ROWS_PER_TASK)
        if n_threads == 1 and on_rows is None:
            task_rows = n_rows
    grower = Grower(rows, dimensions, models, person, sensitive, task_rows)
    done = list(_grow_all(grower, n_threads, on_rows))
    begins = np.sort(np.concatenate([grown.begins for grown in done]))
    cuts = np.concatenate([grown.cuts for grown in done])
    return Partition(rows.records, begins, cuts[np.lexsort((-cuts[:, 1], cuts[:, 0]))])


def _grow_all(grower: Grower, n_threads: int, on_rows: Callable[[int], None] | None) -> list[_Grown]:
    """Process open nodes, largest first, until none remains."""
    waiting = [grower.root()]
    done: list[_Grown] = []
    n_rows_done = 0
    running: set[Future[_Grown]] = set()
    # A single task does not need threads; creating them takes a tenth of the time of a small table.
    pool = ThreadPoolExecutor(n_threads) if n_threads > 1 and len(grower.rows.codes) > grower.task_rows else None
    try:
        while waiting or running:
            finished: list[_Grown] = []
            if pool is None:
                finished = [grower.grow(waiting.pop())]
            else:
                waiting.sort(key=lambda task: task.stop - task.begin)
                while waiting and len(running) < n_threads:
                    running.add(pool.submit(grower.grow, waiting.pop()))
                ready, running = wait(running, return_when=FIRST_COMPLETED)
                finished = [future.result() for future in ready]
            for grown in finished:
                done.append(grown)
                waiting.extend(grown.open)
                n_rows_done += grown.n_rows_done
                if on_rows is not None:
                    on_rows(n_rows_done)
    finally:
        if pool is not None:
            pool.shutdown()
    return done
