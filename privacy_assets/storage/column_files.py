"""Columns in files without names, a few columns in each, which are read when they are asked for.

The files disappear with the process, however it ends, and cannot be opened by anyone else. They keep every dtype,
category and value of pandas, so a column is the same before and after.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

import pandas as pd
import pyarrow as pa

from privacy_assets.storage.memory import give_back_memory, memory_given_back
from privacy_assets.storage.table import ROWS_PER_BATCH, OpenFiles, StoredTable, write_record_batches

MOST_FILES = 32
MOST_CELLS_AT_ONCE = 2**20


class _Columns(NamedTuple):
    """An Arrow file and its schema."""

    open: OpenFiles
    schema: pa.Schema

    def schema_of(self, names: Sequence[str]) -> pa.Schema:
        """Return the schema of some columns, in their order in the file."""
        asked = set(names)
        return pa.schema([field for field in self.schema if field.name in asked], self.schema.metadata)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some columns, as they were written."""
        asked = set(names)
        places = [place for place, name in enumerate(self.schema.names) if name in asked]
        (file,) = self.open.files
        file.seek(0)
        # Some of the columns are always read into memory of Arrow's own allocator, which keeps it.
        some = places if len(places) < len(self.schema) else None
        options = pa.ipc.IpcReadOptions(included_fields=some, use_threads=False)
        with pa.ipc.open_file(pa.PythonFile(file, "r"), options=options) as reader:
            yield from (reader.get_batch(place) for place in range(reader.num_record_batches))


class ColumnFiles:
    """Columns of equal length; like a frame, it has ``columns``, ``dtypes``, ``len``, ``items`` and columns by name."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._files: dict[str, _Columns] = {}
        self._dtypes: dict[str, Any] = {}
        self._n_rows = 0

    def add(self, frame: pd.DataFrame) -> None:
        """Add columns."""
        table = pa.Table.from_pandas(frame, preserve_index=False)
        begins = range(0, max(len(frame), 1), ROWS_PER_BATCH)
        self.add_batches(table.schema, (table.slice(begin, ROWS_PER_BATCH) for begin in begins), frame.dtypes.to_dict())

    def add_batches(self, schema: pa.Schema, tables: Iterable[pa.Table], dtypes: Mapping[Any, Any]) -> None:
        """Add columns of a schema whose rows arrive in tables."""
        self._n_rows = 0
        with tempfile.TemporaryFile(dir=self._directory) as file:
            with pa.ipc.new_file(pa.PythonFile(file, "w"), schema) as writer:
                for table in tables:
                    self._n_rows += len(table)
                    for batch in table.combine_chunks().to_batches():
                        writer.write_batch(batch)
            file.flush()
            own = _Columns(OpenFiles([file]), schema)
        self._files |= dict.fromkeys(schema.names, own)
        self._dtypes |= dtypes

    @property
    def columns(self) -> pd.Index:
        """The names of the columns."""
        return pd.Index(list(self._files), dtype=object)

    @property
    def dtypes(self) -> pd.Series[Any]:
        """The dtype of each column."""
        return pd.Series(self._dtypes, dtype=object)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._n_rows

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the columns."""
        return iter(self._files)

    @overload
    def __getitem__(self, names: str) -> pd.Series[Any]: ...
    @overload
    def __getitem__(self, names: list[str]) -> pd.DataFrame: ...
    def __getitem__(self, names: str | list[str]) -> Any:
        """Read a column, or a frame of several."""
        if isinstance(names, str):
            return self[[names]][names]
        if self._n_rows > ROWS_PER_BATCH:
            give_back_memory()  # What was made of other columns.
        found: dict[str, Any] = {}
        for own, some in self._by_file(names):
            table = pa.Table.from_batches(list(own.batches(some)), own.schema_of(some))
            found |= dict(table.to_pandas(split_blocks=True, use_threads=False, self_destruct=True).items())
        return pd.DataFrame({name: found[name] for name in names}, copy=False)

    def _by_file(self, names: Sequence[str]) -> list[tuple[_Columns, list[str]]]:
        by_file: dict[int, tuple[_Columns, list[str]]] = {}
        for name in names:
            by_file.setdefault(id(self._files[name]), (self._files[name], []))[1].append(name)
        return list(by_file.values())

    def items(self) -> Iterator[tuple[str, pd.Series[Any]]]:
        """Yield each name and its column, one after the other."""
        return ((name, self[name]) for name in self)

    def only(self, names: Sequence[str]) -> ColumnFiles:
        """Return some of the columns, in this order."""
        found = ColumnFiles(self._directory)
        found._n_rows = self._n_rows
        found._files = {name: self._files[name] for name in names}
        found._dtypes = {name: self._dtypes[name] for name in names}
        return found

    def drop(self, columns: Collection[str]) -> ColumnFiles:
        """Return the other columns."""
        return self.only([name for name in self if name not in columns])

    def stored(self, names: Sequence[str], more: ColumnFiles) -> StoredTable:
        """Write columns, row by row, to a table without a name; those of ``more`` take the place of columns here."""
        both = ColumnFiles(self._directory)
        both._files = self._files | more._files
        by_file = both._by_file(names)
        fields, described, about = dict[str, pa.Field](), dict[str, Any](), dict[str, Any]()
        for own, some in by_file:
            about = json.loads(own.schema.metadata[b"pandas"])
            kept = {field.name: field for field in own.schema_of(some)}
            described |= {each["name"]: each for each in about["columns"] if each["name"] in kept}
            fields |= kept
        about["columns"] = [described[name] for name in names]
        schema = pa.schema([fields[name] for name in names], {b"pandas": json.dumps(about).encode()})

        def rows() -> Iterator[pa.RecordBatch]:
            for parts in zip(*(own.batches(some) for own, some in by_file), strict=True):
                found = {name: own for part in parts for name, own in zip(part.schema.names, part.columns, strict=True)}
                yield pa.RecordBatch.from_arrays([found[name] for name in names], schema=schema)

        with tempfile.TemporaryFile(dir=self._directory) as file:
            found = write_record_batches(file, schema, memory_given_back(rows()))
            return StoredTable([file]).with_fingerprint(found)


def groups_of_columns(names: Sequence[str], n_rows: int) -> Iterator[list[str]]:
    """Yield names of columns that are read at once: each alone, or more if they are many or short."""
    n_at_once = max(1, -(-len(names) // MOST_FILES), MOST_CELLS_AT_ONCE // max(n_rows, 1))
    return (list(names[begin : begin + n_at_once]) for begin in range(0, len(names), n_at_once))
