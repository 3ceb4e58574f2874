"""Normal scores of records, and sums over all of them, in chunks of records.

The random numbers of a chunk depend only on the seed and on the number of the chunk, and sums are added in the order of
the chunks. So sums made here and sums made by the tasks of an engine are equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.engine.protocol import Engine, gather_batches

ROWS_PER_CHUNK: Final = 1 << 16
ROWS_OF_CHUNKS = pa.schema([("chunk", pa.int64()), ("rows", pa.binary())])
SUMS = pa.schema([("chunk", pa.int64()), ("sums", pa.binary())])


def generator_of(seed: int, chunk: int) -> np.random.Generator:
    """Return the random numbers of a chunk; those of the first are those of the seed itself."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(chunk,) if chunk else ()))


def chunks_of(n_records: int, rows_per_chunk: int = ROWS_PER_CHUNK) -> list[slice]:
    """Return the rows of each chunk."""
    return [slice(begin, min(begin + rows_per_chunk, n_records)) for begin in range(0, n_records, rows_per_chunk)]


def normal_scores(
    upper: NDArray[np.float64], cells: NDArray[np.integer[Any]], within: NDArray[np.float64], n_records: int
) -> NDArray[np.float64]:
    """Return the normal scores of records at ``within`` (0 to 1) of the width of their cells.

    ``upper`` are the upper ends of the cells; ``n_records`` are in the whole table.
    """
    from scipy.special import ndtri

    if len(upper) == 1:  # a constant column has no dependence; random scores would only add noise
        return np.zeros(len(cells))
    lower = np.concatenate([[0.0], upper[:-1]])[cells]
    half = 0.5 / (n_records + 1)  # avoids 0 and 1, where scores are infinite
    scores: NDArray[np.float64] = ndtri(np.clip(lower + within * (upper[cells] - lower), half, 1 - half))
    return scores


class ScoreSums(Protocol):
    """Makes sums over the records of a chunk."""

    def __call__(self, cells: NDArray[np.integer[Any]], scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sums of an array of shape (n_rows, n_columns), dtype of integers, and their scores."""


@dataclass(frozen=True)
class ScoreSumsByValue:
    """Sums the scores of the other columns over the records of each value of a column."""

    column: int
    n_values: int

    def __call__(self, cells: NDArray[np.integer[Any]], scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sums, shape (n_values, n_columns - 1), or one column of zeros if there are no other columns."""
        own = cells[:, self.column]
        others = np.delete(scores, self.column, axis=1)
        sums = np.zeros((self.n_values, max(others.shape[1], 1)))
        for place, column in enumerate(others.T):
            sums[:, place] = np.bincount(own, column, minlength=self.n_values)[: self.n_values]
        return sums


@dataclass(frozen=True)
class ScoreTotals:
    """Counts and sums the scores of each column; ``is_counted`` has, by column and cell, whether its records count."""

    is_counted: Sequence[NDArray[np.bool_]]

    def __call__(self, cells: NDArray[np.integer[Any]], scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return counts and sums, shape (2, n_columns)."""
        counts = _counted(self.is_counted, cells)
        return np.stack([counts.sum(axis=0).astype(np.float64), (scores * counts).sum(axis=0)])


@dataclass(frozen=True)
class ScoreProducts:
    """Sums products of the scores of two columns, and the squares of one if the other counts."""

    is_counted: Sequence[NDArray[np.bool_]]
    means: NDArray[np.float64]

    def __call__(self, cells: NDArray[np.integer[Any]], scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return squares and products, shape (2, n_columns, n_columns)."""
        counts = _counted(self.is_counted, cells)
        centered = np.where(counts, scores - self.means, 0.0)
        # The sums of a matrix product depend on the number of its threads.
        return np.stack(
            [np.einsum("ij,ik->jk", centered**2, counts.astype(np.float64)), np.einsum("ij,ik->jk", centered, centered)]
        )


def _counted(is_counted: Sequence[NDArray[np.bool_]], cells: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    return np.column_stack([own[cells[:, j]] for j, own in enumerate(is_counted)])


class Chunks(Protocol):
    """The scores of all records."""

    def replace(self, column: int, cells: NDArray[np.integer[Any]], upper: NDArray[np.float64]) -> None:
        """Replace the cells of a column."""

    def add(self, sums: ScoreSums) -> NDArray[np.float64]:
        """Add the sums of all chunks."""


class LocalChunks:
    """The scores of all records, in this process.

    Given are the cell of each record and the upper ends of the cells, by column; ``seed`` is that of the positions
    within cells. The result depends on ``rows_per_chunk``.
    """

    def __init__(
        self,
        cells: Sequence[NDArray[np.integer[Any]]],
        uppers: Sequence[NDArray[np.float64]],
        seed: int,
        rows_per_chunk: int = ROWS_PER_CHUNK,
    ) -> None:
        self._cells, self._seed, self._n_records = list(cells), seed, len(cells[0])
        self._chunks = chunks_of(self._n_records, rows_per_chunk)
        self._scores = [
            scores_of(self._cells_of(rows), uppers, seed, number, self._n_records)
            for number, rows in enumerate(self._chunks)
        ]

    def _cells_of(self, rows: slice) -> NDArray[np.integer[Any]]:
        return np.column_stack([own[rows] for own in self._cells])

    def replace(self, column: int, cells: NDArray[np.integer[Any]], upper: NDArray[np.float64]) -> None:
        """Replace the cells of a column."""
        self._cells[column] = cells
        for number, rows in enumerate(self._chunks):
            within = generator_of(self._seed, number).random(self._scores[number].shape)[:, column]
            self._scores[number][:, column] = normal_scores(upper, cells[rows], within, self._n_records)

    def add(self, sums: ScoreSums) -> NDArray[np.float64]:
        """Add the sums of all chunks."""
        made = (sums(self._cells_of(rows), scores) for rows, scores in zip(self._chunks, self._scores, strict=True))
        return _added(made)


class EngineChunks:
    """The scores of all records, made by the tasks of an engine whenever they are summed.

    Parameters are those of `LocalChunks`, and the cells as the engine has them. Values are not sent to it: cells are
    numbers.
    """

    def __init__(
        self,
        engine: Engine,
        batches: Any,
        cells: Sequence[NDArray[np.integer[Any]]],
        uppers: Sequence[NDArray[np.float64]],
        seed: int,
        rows_per_chunk: int,
    ) -> None:
        self._engine, self._batches, self._first, self._uppers = engine, batches, list(cells), list(uppers)
        self._seed, self._rows_per_chunk = seed, rows_per_chunk
        # The current cell of each cell that the engine has.
        self._places = [np.arange(len(upper), dtype=np.int64) for upper in uppers]

    def replace(self, column: int, cells: NDArray[np.integer[Any]], upper: NDArray[np.float64]) -> None:
        """Replace the cells of a column; records that shared a cell still do."""
        self._places[column][self._first[column]] = cells
        self._uppers[column] = upper

    def add(self, sums: ScoreSums) -> NDArray[np.float64]:
        """Add the sums of all chunks."""
        n_columns, places = len(self._first), tuple(self._places)
        send = _SendChunks(n_columns, self._rows_per_chunk)
        make = _SumChunk(sums, places, tuple(self._uppers), self._seed, len(self._first[0]))
        made = self._engine.map_reduce(self._batches, send, ROWS_OF_CHUNKS, "chunk", make, SUMS)
        found = self._engine.collect(made).sort_by("chunk")
        return _added(_read_array(value.as_py()) for value in found.column("sums"))


@contextmanager
def score_chunks(
    engine: Engine | None,
    cells: Sequence[NDArray[np.integer[Any]]],
    uppers: Sequence[NDArray[np.float64]],
    seed: int,
    rows_per_chunk: int = ROWS_PER_CHUNK,
) -> Iterator[Chunks]:
    """Score all records, by an engine if there is one that divides the work; see `LocalChunks` for the parameters."""
    if engine is None or engine.rows_per_task is None:
        yield LocalChunks(cells, uppers, seed, rows_per_chunk)
        return
    placed = {f"c{j}": own.astype(np.int64) for j, own in enumerate(cells)} | {"row": np.arange(len(cells[0]))}
    with engine.place(placed) as batches:
        del placed
        yield EngineChunks(engine, batches, cells, uppers, seed, rows_per_chunk)


def scores_of(
    cells: NDArray[np.integer[Any]], uppers: Sequence[NDArray[np.float64]], seed: int, chunk: int, n_records: int
) -> NDArray[np.float64]:
    """Return the scores of a chunk, shape (n_rows, n_columns), from cells of that shape."""
    within = generator_of(seed, chunk).random(cells.shape)
    scores = [normal_scores(upper, cells[:, j], within[:, j], n_records) for j, upper in enumerate(uppers)]
    return np.column_stack(scores)


def _added(sums: Iterator[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Add arrays in their order."""
    total = next(sums)
    for own in sums:
        total = total + own
    return total


@dataclass(frozen=True)
class _SendChunks:
    """Sends the cells of each record to the task of its chunk."""

    n_columns: int
    rows_per_chunk: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in gather_batches(batches, self.rows_per_chunk):
            rows = table.column("row").to_numpy()
            order = np.argsort(rows)
            rows = rows[order]
            cells = np.column_stack([table.column(f"c{j}").to_numpy()[order] for j in range(self.n_columns)])
            chunks, begins = np.unique(rows // self.rows_per_chunk, return_index=True)
            stops = np.append(begins[1:], len(rows))
            blobs = [
                rows[begin:stop].tobytes() + cells[begin:stop].astype(np.int32).tobytes()
                for begin, stop in zip(begins, stops, strict=True)
            ]
            yield pa.record_batch([pa.array(chunks), pa.array(blobs, pa.binary())], schema=ROWS_OF_CHUNKS)


@dataclass(frozen=True)
class _SumChunk:
    """Orders the records of a chunk, scores them, and sums the scores."""

    sums: ScoreSums
    places: tuple[NDArray[np.int64], ...]
    uppers: tuple[NDArray[np.float64], ...]
    seed: int
    n_records: int

    def __call__(self, table: pa.Table) -> pa.Table:
        chunk, n_columns = int(table.column("chunk")[0].as_py()), len(self.uppers)
        rows, sent = [], []
        for value in table.column("rows"):
            blob = value.as_buffer()
            n_rows = blob.size // (8 + 4 * n_columns)
            rows.append(np.frombuffer(blob, np.int64, n_rows))
            sent.append(np.frombuffer(blob, np.int32, n_rows * n_columns, 8 * n_rows).reshape(n_rows, n_columns))
        first = np.concatenate(sent)[np.argsort(np.concatenate(rows))]
        cells = np.column_stack([place[first[:, j]] for j, place in enumerate(self.places)])
        scores = scores_of(cells, self.uppers, self.seed, chunk, self.n_records)
        return pa.table([[chunk], [_written_array(self.sums(cells, scores))]], schema=SUMS)


def _written_array(array: NDArray[np.float64]) -> bytes:
    shape = np.array([array.ndim, *array.shape], np.int64)
    return shape.tobytes() + np.ascontiguousarray(array).tobytes()


def _read_array(blob: bytes) -> NDArray[np.float64]:
    n_dimensions = int.from_bytes(blob[:8], "little")
    shape = np.frombuffer(blob, np.int64, n_dimensions, 8)
    return np.frombuffer(blob, np.float64, offset=8 * (1 + n_dimensions)).reshape(shape)
