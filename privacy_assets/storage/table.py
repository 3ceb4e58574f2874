"""A table in Parquet files that is not in memory: its columns are read when they are asked for.

It serves wherever a frame is only asked for its columns, its length and one column after another, so the peak of such
a step is that of a column instead of the table.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar, overload

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privacy_assets.columns.safe_names import class_name
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.fingerprint import BatchFingerprint, fingerprint, kept_fingerprint
from privacy_assets.storage.memory import memory_given_back

Read = TypeVar("Read")
ROWS_PER_BATCH = 2**18
"""Rows that are read or written at once."""


class UnreadableTableError(InvalidTableError):
    """A file is not the Parquet file that it seems to be."""


def _guarded(read: Callable[[], Read]) -> Read:
    """Turn anything that readers raise for a damaged or malicious file, which may show values, into one error."""
    try:
        return read()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - readers can raise anything
        problem = class_name(type(error))
    # Raised here instead of above, so that the other error is not its context.
    raise UnreadableTableError(f"A stored table cannot be read ({problem}). Materialize it again.")


class OpenFiles:
    """Files, opened again, that are closed when no table has them any more."""

    def __init__(self, files: Sequence[BinaryIO]) -> None:
        self._descriptors = [os.dup(file.fileno()) for file in files]
        # In a cycle of references, the file itself might be finalized first, and would warn that it is open.
        self.files = [os.fdopen(each, "rb", closefd=False) for each in self._descriptors]
        for file in files:
            file.close()

    def __del__(self) -> None:
        for each in self._descriptors:
            os.close(each)


class StoredTable:
    """The table in open Parquet files of one schema, in their order; opened here or written by `store`.

    The files stay open, so the table is the same even if another one takes its place in the meantime. Like a frame, it
    has ``columns``, ``len``, ``in``, ``items``, ``drop``, ``astype`` and, by name, a column; a list of names gives a
    frame, `select_columns` a table that is not read.

    Parameters
    ----------
    files : sequence of binary files, or of tables
        At least one; nobody writes to them, and they are closed here and opened again. Whatever cannot be read raises
        `UnreadableTableError`.
    """

    def __init__(self, files: Sequence[BinaryIO] | Sequence[StoredTable]) -> None:
        tables = [each for each in files if isinstance(each, StoredTable)]
        given = [each for each in files if not isinstance(each, StoredTable)]
        of_tables: list[OpenFiles] = [own for table in tables for own in table._open]
        self._open: list[OpenFiles] = of_tables or [OpenFiles(given)]
        self._files = [file for own in self._open for file in own.files]
        # Opened once, because the footer of many columns is long; without the buffer, in which pages would be kept.
        self._opened = _guarded(lambda: [pq.ParquetFile(file, pre_buffer=False) for file in self._files])
        self._footers = [own.metadata for own in self._opened]
        self.schema: pa.Schema = _guarded(lambda: self._opened[0].schema_arrow)
        self._n_rows: int = sum(footer.num_rows for footer in self._footers)
        self._more: Mapping[str, pd.Series[Any]] = {}
        self._names: Sequence[str] | None = None
        self._converted: Mapping[str, Any] = {}

    @cached_property
    def columns(self) -> pd.Index:
        """The names of the columns."""
        names: pd.Index = pd.Index(self.dtypes.index if self._names is None else self._names, dtype=object)
        return names

    @property
    def empty(self) -> bool:
        """Whether there are no rows."""
        return not self._n_rows

    @cached_property
    def dtypes(self) -> pd.Series[Any]:
        """The dtype of each column; categories are without values."""
        stored = _guarded(lambda: self._as_converted(self.schema.empty_table().to_pandas()).dtypes.to_dict())
        found = pd.Series(stored | {name: own.dtype for name, own in self._more.items()}, dtype=object)
        return found if self._names is None else found[list(self._names)]

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._n_rows

    def __contains__(self, name: object) -> bool:
        """Whether there is a column of this name."""
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the columns."""
        return iter(self.columns)

    @overload
    def __getitem__(self, names: str) -> pd.Series[Any]: ...
    @overload
    def __getitem__(self, names: list[str]) -> pd.DataFrame: ...
    def __getitem__(self, names: str | list[str]) -> Any:
        """Read a column, or a frame of several."""
        if isinstance(names, list):
            return pd.DataFrame({name: self[name] for name in names}, copy=False)
        if names in self._more:
            return self._more[names]
        return self._read([names])[names]

    def select(self, names: Sequence[str]) -> StoredTable:
        """Return a table of some columns, in this order, without reading them."""
        found = self._same()
        found._names = list(names)
        return found

    def drop(self, *, columns: str) -> StoredTable:
        """Return a table without a column, which need not exist, without reading the others."""
        return self.select([name for name in self.columns if name != columns])

    def astype(self, dtypes: Mapping[str, Any]) -> StoredTable:
        """Return a table of which some columns have another dtype whenever they are read."""
        found = self._same()
        found._converted = {**self._converted, **dtypes}
        found._more = {name: own.astype(dtypes.get(name, own.dtype)) for name, own in self._more.items()}
        return found

    def items(self) -> Iterator[tuple[str, pd.Series[Any]]]:
        """Yield each name and its column, one after the other."""
        return ((name, self[name]) for name in self)

    def frame(self) -> pd.DataFrame:
        """Read everything."""
        return self[list(self.columns)]

    def batches(self, columns: Sequence[str] | None = None, rows: range | None = None) -> Iterator[pd.DataFrame]:
        """Yield the rows of the files, or those of a range, in order, `ROWS_PER_BATCH` at a time."""
        names = list(self._names) if columns is None and self._names is not None else columns
        # These are not in the files.
        assert not self._more.keys() & set(self.columns if names is None else names)  # noqa: S101
        batches = self.arrow_batches(names, rows)
        # Giving back takes longer than reading a short column.
        for batch in memory_given_back(batches) if self._n_rows > ROWS_PER_BATCH else batches:
            yield self._as_converted(_guarded(partial(batch.to_pandas, split_blocks=True, use_threads=False)))

    def is_in_files(self, name: str) -> bool:
        """Whether a column is in the files as it is read: neither added nor converted."""
        return name not in self._more and name not in self._converted

    def has_missing(self, name: str) -> bool:
        """Whether a value of a column is missing; of one in the files, as their footers say."""
        if name in self._more:
            return bool(self._more[name].isna().any())
        place = self.schema.names.index(name)
        groups = [footer.row_group(each) for footer in self._footers for each in range(footer.num_row_groups)]
        counts = [group.column(place).statistics for group in groups]
        if any(own is None or not own.has_null_count for own in counts):
            return bool(self[name].isna().any())
        return any(own.null_count for own in counts)

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the table, which reads all of it once."""
        if self._is_view:
            return fingerprint(self.frame())
        found = BatchFingerprint(self.schema)
        for batch in memory_given_back(self.arrow_batches(None)):
            found.update(batch.to_batches()[0])
        return found.hexdigest()

    def with_fingerprint(self, known: str) -> StoredTable:
        """Return the table, whose fingerprint was computed while it was written."""
        self.__dict__["fingerprint"] = known  # As the property would keep it.
        return self

    def copy_to(self, file: BinaryIO) -> None:
        """Copy the only file, which has all columns as they are."""
        assert not self._is_view  # noqa: S101 - the file has other columns
        (own,) = self._files
        own.seek(0)
        shutil.copyfileobj(own, file)

    @property
    def _is_view(self) -> bool:
        return bool(self._more or self._converted) or self._names is not None

    def _same(self) -> StoredTable:
        """Return the same table, of which columns can be added, left out or converted."""
        found = copy(self)
        for computed in ("columns", "dtypes", "fingerprint"):
            vars(found).pop(computed, None)
        return found

    def _as_converted(self, frame: pd.DataFrame) -> pd.DataFrame:
        own = {name: self._converted[name] for name in frame.columns if name in self._converted}
        return frame.astype(own) if own else frame

    def _read(self, names: list[str]) -> pd.DataFrame:
        def read() -> pd.DataFrame:
            numbers = self._read_numbers(names[0]) if len(names) == 1 else None
            if numbers is not None:
                return self._as_converted(pd.DataFrame({names[0]: numbers}, copy=False))
            # Not `read_table`, whose threads may still close a file while Python ends, which aborts the process.
            parts = [each.read(names, use_threads=False).select(names) for each in self._opened]
            table = pa.concat_tables(parts).replace_schema_metadata(self._metadata_of(names))
            frame: pd.DataFrame = table.to_pandas(split_blocks=True, use_threads=False)
            return self._as_converted(frame)

        return _guarded(read)

    def _read_numbers(self, name: str) -> NDArray[Any] | None:
        """Read a column of numbers without the memory of a copy; None for another one, also with missing values."""
        dtype = self.dtypes[name]
        if not self.is_in_files(name) or not isinstance(dtype, np.dtype) or dtype.kind not in "iuf":
            return None
        found, begin = np.empty(self._n_rows, dtype), 0
        for batch in self.arrow_batches([name]):
            for chunk in batch.column(0).chunks:
                stop = begin + len(chunk)
                if chunk.null_count or stop > len(found):
                    return None
                found[begin:stop] = chunk.to_numpy()
                begin = stop
        return found if begin == len(found) else None

    def arrow_batches(self, columns: Sequence[str] | None, rows: range | None = None) -> Iterator[pa.Table]:
        """Yield the rows of the files, or those of a range, in order, as they are stored."""
        metadata = self.schema.metadata if columns is None else _guarded(partial(self._metadata_of, columns))
        # All rows are whatever the files have, although a footer may say another number.
        of_files = ((parquet, None, 0) for parquet in self._opened) if rows is None else self._groups_of(rows)
        for parquet, groups, begin in of_files:
            batches = parquet.iter_batches(ROWS_PER_BATCH, row_groups=groups, columns=columns, use_threads=False)
            while (batch := _guarded(partial(next, batches, None))) is not None:
                if rows is not None:
                    first, begin = max(rows.start - begin, 0), begin + batch.num_rows
                    batch = batch.slice(first, max(batch.num_rows - first - max(begin - rows.stop, 0), 0))
                if batch.num_rows:
                    table = pa.Table.from_batches([batch]).replace_schema_metadata(metadata)
                    # By a name, Parquet also finds those that continue it after a dot.
                    yield table if columns is None else table.select(list(columns))

    def _groups_of(self, rows: range) -> Iterator[tuple[pq.ParquetFile, list[int] | None, int]]:
        """Yield the files that have some rows, the groups of rows that have them, and the row at which these begin."""
        begin = 0
        for parquet, footer in zip(self._opened, self._footers, strict=True):
            ends = begin + np.cumsum([footer.row_group(each).num_rows for each in range(footer.num_row_groups)])
            groups = np.flatnonzero((ends > rows.start) & (np.append(begin, ends[:-1]) < rows.stop))
            if len(groups):
                yield parquet, groups.tolist(), int(ends[groups[0]]) - footer.row_group(int(groups[0])).num_rows
            begin += footer.num_rows

    @cached_property
    def _described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What pandas wrote about the table, and about each column."""
        about = json.loads((self.schema.metadata or {}).get(b"pandas", b"{}").decode())
        described: dict[str, Any] = {}
        for each in about["columns"] if about else ():
            described.setdefault(each.get("field_name", each["name"]), each)
        return about, described

    def _metadata_of(self, names: Sequence[str]) -> dict[bytes, Any] | None:
        """Return the metadata of some columns, because pandas reads those of all columns for each column."""
        about, described = self._described
        whole: dict[bytes, Any] | None = self.schema.metadata
        if whole is None or not about:
            return whole
        indexes = [each for each in about.get("index_columns", ()) if isinstance(each, str)]
        own = [described[name] for name in dict.fromkeys([*names, *indexes]) if name in described]
        return {**whole, b"pandas": json.dumps({**about, "columns": own})}


Table: TypeAlias = pd.DataFrame | StoredTable
TableOfKind = TypeVar("TableOfKind", bound=Table)
Rows: TypeAlias = "NDArray[np.int64] | NDArray[np.bool_] | pd.Series[int]"
"""Places of rows, or whether each row is taken."""


def store(batches: Iterable[pd.DataFrame], directory: Path) -> StoredTable:
    """Write the rows of frames with the same columns and dtypes, at least one, to a file without a name.

    The file disappears with the last process that has it open. Categories may differ between frames.
    """
    file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - the table keeps it open
    fingerprint = write_batches(file, batches)
    return StoredTable([file]).with_fingerprint(fingerprint)


def write_batches(file: BinaryIO, batches: Iterable[pd.DataFrame], *, with_fingerprint: bool = True) -> str:
    """Write the rows of frames, as `store` does, to a file, and return their fingerprint, or nothing."""
    frames = iter(batches)
    tables = (pa.Table.from_pandas(frame, preserve_index=False) for frame in frames)
    first = next(tables)
    schema = pa.schema(map(_with_wide_codes, first.schema), first.schema.metadata)
    cast = (table.cast(schema).combine_chunks().to_batches()[0] for table in chain([first], tables))
    return write_record_batches(file, schema, memory_given_back(cast), with_fingerprint=with_fingerprint)


def write_record_batches(
    file: BinaryIO, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, with_fingerprint: bool = True
) -> str:
    """Write rows of one schema to a file, and return their fingerprint, or nothing."""
    found = BatchFingerprint(schema) if with_fingerprint else None
    with pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            if found is not None:
                found.update(batch)
    return "" if found is None else found.hexdigest()


def fingerprint_of(table: Table) -> str:
    """Return the fingerprint of a table, which is computed once for one that is stored."""
    return table.fingerprint if isinstance(table, StoredTable) else kept_fingerprint(table)


def with_column(table: Table, name: str, values: pd.Series[Any]) -> Table:
    """Return a table with one more column, in memory, whose values are in the order of its rows."""
    if not isinstance(table, StoredTable):
        return table.assign(**{name: values.set_axis(table.index)})
    found = table._same()
    found._more = {**table._more, name: values}
    found._names = None if table._names is None else [*(each for each in table._names if each != name), name]
    return found


def select_columns(table: TableOfKind, names: Sequence[str]) -> TableOfKind:
    """Return some columns of a table, in this order; those of one that is stored are not read."""
    some: Any = table.select(names) if isinstance(table, StoredTable) else table[list(names)]
    found: TableOfKind = some
    return found


def frame_of(table: Table) -> pd.DataFrame:
    """Return a table with all of its columns in memory."""
    return table.frame() if isinstance(table, StoredTable) else table


def take_rows(table: Table, rows: Rows, names: Iterable[str]) -> pd.DataFrame:
    """Return some rows, numbered anew, of some columns, which are read one after the other."""
    return pd.DataFrame({name: table[name].iloc[rows].reset_index(drop=True) for name in names}, copy=False)


def has_missing(table: Table, name: str) -> bool:
    """Whether a value of a column is missing."""
    return table.has_missing(name) if isinstance(table, StoredTable) else bool(table[name].isna().any())


def batches_of(table: Table, columns: list[str]) -> Iterator[pd.DataFrame]:
    """Yield the rows of some columns in order, `ROWS_PER_BATCH` at a time."""
    if isinstance(table, StoredTable):
        return table.batches(columns)
    some = table[columns]
    return (some.iloc[begin : begin + ROWS_PER_BATCH] for begin in range(0, len(some), ROWS_PER_BATCH))


def _with_wide_codes(field: pa.Field) -> pa.Field:
    """Return a field whose categories may be any number: pandas chooses the codes by those of one frame."""
    if not pa.types.is_dictionary(field.type):
        return field
    return field.with_type(pa.dictionary(pa.int32(), field.type.value_type, field.type.ordered))
