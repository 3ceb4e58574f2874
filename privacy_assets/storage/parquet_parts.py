"""A table as a directory of Parquet files with equally many rows, in the order of their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.durable_files import PRIVATE_FILE_MODE, sync_directory, write_file
from privacy_assets.storage.fingerprint import BatchFingerprint

ROWS_PER_PART = 2**24
"""Rows of a part by default; smaller tables are one file."""
MOST_PARTS = 900
"""A received release with more files than this is not read."""
ROWS_PER_GROUP = 2**18
"""Rows of a row group, whatever the frames in which they arrive, so that the file depends on its rows alone."""


@dataclass(frozen=True)
class WrittenParts:
    """Parts as written: their names, the rows of each, and the fingerprint of all rows, if it was asked for."""

    names: tuple[str, ...]
    rows: tuple[int, ...]
    fingerprint: str


def part_name(place: int) -> str:
    """Return the name of a part; their order is that of the names."""
    return f"part-{place:05}.parquet"


def write_parts(
    directory: Path,
    frames: Iterable[pd.DataFrame],
    rows_per_part: int,
    mode: int = PRIVATE_FILE_MODE,
    schema: pa.Schema | None = None,
    *,
    with_fingerprint: bool = True,
) -> WrittenParts:
    """Write a table that arrives in frames as Parquet files of ``rows_per_part`` rows, the last with the rest.

    Categories are written as their values, because each part would have all of them. The directory must exist and be
    empty. The schema is by default that of the first frame with rows, whose columns of objects must have values.

    Raises
    ------
    InvalidTableError
        If there are no rows, there would be more than `MOST_PARTS` parts, or frames have different columns or types.
    """
    rows = _Rows(iter(frames), schema, with_fingerprint=with_fingerprint)
    names: list[str] = []
    counts: list[int] = []
    while rows.has_more:
        require_few_parts(len(names) + 1, rows_per_part)
        names.append(part_name(len(names)))
        before = rows.n_taken
        write_file(directory / names[-1], lambda file: rows.write(file, rows_per_part), mode)
        counts.append(rows.n_taken - before)
    sync_directory(directory)
    return WrittenParts(tuple(names), tuple(counts), rows.fingerprint)


def write_part(file: BinaryIO, frames: Iterable[pd.DataFrame], rows_per_part: int, schema: pa.Schema) -> None:
    """Write one of the parts of `write_parts`, whose rows these frames have."""
    _Rows(iter(frames), schema, with_fingerprint=False).write(file, rows_per_part)


def require_few_parts(n_parts: int, rows_per_part: int) -> None:
    """Raise InvalidTableError if there are more than `MOST_PARTS`."""
    if n_parts > MOST_PARTS:
        raise InvalidTableError(
            f"The table has more than {MOST_PARTS} parts of {rows_per_part:,} rows. Expected at most that number. "
            "Nothing was released; raise rows_per_part."
        )


class _Rows:
    """The rows of frames, as batches with one schema."""

    def __init__(self, frames: Iterator[pd.DataFrame], schema: pa.Schema | None, *, with_fingerprint: bool) -> None:
        self._frames = frames
        self._left: pa.RecordBatch | None = None
        self.n_taken = 0
        first = next((frame for frame in frames if len(frame)), None)
        if first is None:
            raise InvalidTableError("The table has no rows. Expected at least one. Nothing was released.")
        self._schema = schema_of(first) if schema is None else schema
        self._found = BatchFingerprint(self._schema) if with_fingerprint else None
        self._left = self._batch(first)

    @property
    def has_more(self) -> bool:
        """Whether any rows remain."""
        while self._left is None:
            frame = next(self._frames, None)
            if frame is None:
                return False
            self._left = self._batch(frame) if len(frame) else None
        return True

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the rows that were taken; empty if it was not asked for."""
        return "" if self._found is None else self._found.hexdigest()

    def write(self, file: BinaryIO, n_rows: int) -> None:
        """Write the next rows as a Parquet file."""
        stop = self.n_taken + n_rows
        with pq.ParquetWriter(file, self._schema) as writer:
            while self.n_taken < stop and self.has_more:
                group = pa.Table.from_batches(self._take(min(stop - self.n_taken, ROWS_PER_GROUP)))
                writer.write_table(group.combine_chunks())

    def _take(self, n_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield this many of the next rows, or all that remain."""
        stop = self.n_taken + n_rows
        while self.n_taken < stop and self.has_more:
            assert self._left is not None  # noqa: S101 - has_more
            rows, rest = self._left.slice(0, stop - self.n_taken), self._left.slice(stop - self.n_taken)
            if self._found is not None:
                self._found.update(rows)
            self.n_taken += rows.num_rows
            self._left = rest if rest.num_rows else None
            yield rows

    def _batch(self, frame: pd.DataFrame) -> pa.RecordBatch:
        """Convert a frame to the common schema, with categories as their values."""
        batch = None
        try:
            # A record batch cannot be made of text in several chunks.
            found = pa.Table.from_pandas(frame, preserve_index=False)
            if found.schema.names == self._schema.names:
                whole = [own.combine_chunks() for own in found.columns]
                arrays = [
                    (own.dictionary_decode() if pa.types.is_dictionary(own.type) else own).cast(kind)
                    for own, kind in zip(whole, self._schema.types, strict=True)
                ]
                batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        except pa.ArrowException:
            pass
        if batch is None:
            raise InvalidTableError(
                "Parts of the released table have different columns or types. Nothing was released."
            )
        return batch


def schema_of(table: pd.DataFrame) -> pa.Schema:
    """Return the schema of the parts of a table: that of its Parquet file, with categories as their values."""
    empty = pd.DataFrame({name: _values_of(column).head(0) for name, column in table.items()})
    schema = pa.Schema.from_pandas(empty, preserve_index=False)
    for place, (name, column) in enumerate(table.items()):
        if pd.api.types.is_object_dtype(_values_of(column).dtype):
            # The values determine the schema, and a table without rows has none.
            values = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
            schema = schema.set(place, pa.field(name, pa.array(values, from_pandas=True).type))
    return schema


def _values_of(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column; one without rows gets the dtype of its categories that can have missing values."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return column
    dtype: Any = column.dtype.categories.dtype
    if pd.api.types.is_integer_dtype(dtype):
        dtype = "UInt64" if dtype.kind == "u" else "Int64"
    return pd.Series([], dtype="boolean" if pd.api.types.is_bool_dtype(dtype) else dtype)
