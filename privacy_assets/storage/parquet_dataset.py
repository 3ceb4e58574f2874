"""A Parquet file, or a directory of them as one table: its parts in the order of their paths, read whole or in batches.

Directories named ``column=value`` (as Hive and Spark write them) are columns of text; nothing is guessed about their
values. These values are cells, and nobody has described the columns yet, so messages here show neither a path below the
directory nor the name of a column.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privacy_assets.columns.column_names import positions, require_unique_names
from privacy_assets.columns.safe_names import class_name
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.arrow_frames import as_frame

ROWS_PER_BATCH = 2**18
HIVE_MISSING = "__HIVE_DEFAULT_PARTITION__"
TEXT_CODES = pa.dictionary(pa.int32(), pa.string())
NOT_READ = "Nothing was read"


@dataclass(frozen=True)
class _Part:
    """One file, and the values of its directories by column."""

    path: Path
    partition: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class ParquetDataset:
    """A Parquet file, or those below a directory; make one with `open_parquet_dataset`.

    Attributes
    ----------
    schema : pyarrow.Schema
        Columns of every batch: those of the files, then those of the directories.
    n_rows : int
        Rows of all parts.
    """

    parts: tuple[_Part, ...]
    schema: pa.Schema
    n_rows: int
    state: tuple[tuple[int, ...], ...] = ()

    def require_unchanged(self) -> None:
        """Refuse files that are others than when they were found, between two readings.

        Raises
        ------
        InvalidTableError
            If a part was written again in the meantime, or is gone.
        """
        changed = [place + 1 for place, own in enumerate(self.state) if _state_of(self.parts[place].path) != own]
        if changed:
            raise InvalidTableError(
                f"{len(changed)} of {len(self.parts)} files changed while they were read, the first being number "
                f"{changed[0]} in the order of their paths. {NOT_READ}; read them when nobody writes to them."
            )

    def batches(
        self, rows_per_batch: int = ROWS_PER_BATCH, names: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, at most ``rows_per_batch`` at a time, of some columns or all.

        Raises
        ------
        InvalidTableError
            If a part cannot be read, such as one with damaged pages.
        """
        for place, part in enumerate(self.parts):
            rows = self._batches_of(part, rows_per_batch, self.schema.names if names is None else names)
            while True:
                batch, problem = None, ""
                try:
                    batch = next(rows, None)
                except (pa.ArrowException, OSError) as error:
                    problem = class_name(type(error))
                if problem:
                    raise InvalidTableError(
                        f"Part {place + 1} of {len(self.parts)} (in the order of their paths) cannot be read "
                        f"completely ({problem}). {NOT_READ}; write this part again."
                    )
                if batch is None:
                    break
                yield batch

    def frames(self, rows_per_batch: int) -> Iterator[pd.DataFrame]:
        """Yield the rows as frames whose dtypes do not depend on which values are missing in a batch."""
        return (as_frame(pa.Table.from_batches([batch])) for batch in self.batches(rows_per_batch))

    def read(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Return all rows, of some columns or all."""
        return as_frame(pa.Table.from_batches(self.batches(names=names), schema=self._schema_of(names)))

    def read_unchanged(self, names: list[str] | None = None) -> pd.DataFrame:
        """Return some columns or all; if some cannot be read, refuse the table in the words of all of them."""
        with suppress(InvalidTableError):
            frame = self.read(names)
            self.require_unchanged()
            return frame
        self.require_unchanged()
        for _ in self.batches():
            pass  # A damaged part is found without the memory of a frame.
        frame = self.read()
        self.require_unchanged()
        return frame if names is None else frame[names]

    def _schema_of(self, names: Sequence[str] | None) -> pa.Schema:
        return self.schema if names is None else pa.schema([self.schema.field(name) for name in names])

    def _batches_of(self, part: _Part, rows_per_batch: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        schema, of_directories = self._schema_of(names), dict(part.partition)
        # Arrow would otherwise keep every page of the file until it is closed.
        with pq.ParquetFile(part.path, pre_buffer=False) as file:
            for batch in file.iter_batches(
                rows_per_batch, columns=[name for name in names if name not in of_directories]
            ):
                columns = [
                    _repeated(of_directories[name], batch.num_rows)
                    if name in of_directories
                    else batch.column(name).cast(kind)
                    for name, kind in zip(schema.names, schema.types, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def open_parquet_dataset(directory: Path) -> ParquetDataset:
    """Find the parts of a directory, or take a file, and compare their columns, without reading rows.

    Names that begin with ``_`` or ``.`` are skipped, because Spark and Dask use them for their own files.

    Raises
    ------
    InvalidTableError
        If there are no parts, or one that is a link or another thing than a file, a file is not Parquet, parts have
        different columns or types, or directories name different columns, or one that the files have.
    """
    parts = _find_parts(directory)
    if not parts:
        raise InvalidTableError(
            f"{str(directory)!r} has no files except those whose names begin with '_' or '.'. Expected Parquet "
            f"files. {NOT_READ}."
        )
    schemas: list[pa.Schema] = []
    n_rows, broken = 0, []
    state = tuple(_state_of(part.path) for part in parts)
    for place, part in enumerate(parts):
        try:
            with pq.ParquetFile(part.path) as file:
                schemas.append(file.schema_arrow)
                n_rows += file.metadata.num_rows
        except (pa.ArrowException, OSError):
            broken.append(place + 1)
    if broken and directory.is_file():
        raise InvalidTableError(
            f"{str(directory)!r} begins like a Parquet file, but is damaged or cut off. {NOT_READ}; copy it again."
        )
    if broken:
        raise InvalidTableError(
            f"{len(broken)} of {len(parts)} files are not Parquet files that can be read, the first being number "
            f"{broken[0]} in the order of their paths. {NOT_READ}; remove or replace them, or begin the names of files "
            "that are not parts with '_'."
        )
    named = {tuple(name for name, _ in part.partition) for part in parts}
    if len(named) > 1:
        raise InvalidTableError(
            f"The parts are in directories that name different columns, or only some are ({len(named)} kinds). "
            f"Expected the same directories `column=value` for each part. {NOT_READ}."
        )
    columns = next(iter(named))
    require_unique_names(schemas[0].names)
    schema = _common_schema(schemas)
    repeated = [level for level, name in enumerate(columns, 1) if name in schema.names or columns.count(name) > 1]
    if repeated:
        raise InvalidTableError(
            f"Directories name columns that the files also have, or that are named twice, at the levels {repeated}. "
            f"{NOT_READ}; remove the columns from the files, or rename the directories."
        )
    return ParquetDataset(tuple(parts), pa.schema([*schema, *((name, TEXT_CODES) for name in columns)]), n_rows, state)


def _state_of(path: Path) -> tuple[int, ...]:
    try:
        own = path.stat()
    except OSError:
        return ()
    return own.st_dev, own.st_ino, own.st_size, own.st_mtime_ns, own.st_ctime_ns


def _find_parts(directory: Path) -> list[_Part]:
    if directory.is_file():
        return [_Part(directory, ())]
    found, n_others = [], 0
    for above, below, files in os.walk(directory, onerror=_raise):
        below[:] = [name for name in below if not name.startswith(("_", "."))]
        paths = [Path(above, name) for name in files if not name.startswith(("_", "."))]
        is_file = [stat.S_ISREG(path.lstat().st_mode) for path in paths]
        found += [(path.relative_to(directory).parts, path) for path in paths]
        n_others += is_file.count(False) + sum(Path(above, name).is_symlink() for name in below)
    if n_others:
        raise InvalidTableError(
            f"{str(directory)!r} has entries that are links, pipes, sockets or devices ({n_others}). Expected only "
            f"files and directories. {NOT_READ}; replace them by files, or begin their names with '_' if they are not "
            "parts."
        )
    return [_Part(path, _partition_of(names[:-1])) for names, path in sorted(found)]


def _raise(error: OSError) -> None:
    raise error


def _partition_of(directories: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    pairs = [name.partition("=") for name in directories if "=" in name]
    return tuple((unquote(name), None if value == HIVE_MISSING else unquote(value)) for name, _, value in pairs)


def _common_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return the schema of all parts; a column whose values are all missing in a part may have any type there."""
    names = schemas[0].names
    other_names = sum(schema.names != names for schema in schemas)
    if other_names:
        raise InvalidTableError(
            f"{other_names} of {len(schemas)} parts have other columns than the first, or another order of columns. "
            f"Expected the same columns in each. {NOT_READ}."
        )
    types, differ = [], []
    for place, own in enumerate(zip(*(map(_plain_codes, schema.types) for schema in schemas), strict=True)):
        known = [kind for kind in own if not pa.types.is_null(kind)]
        types.append(known[0] if known else pa.null())
        if any(kind != types[-1] for kind in known):
            differ.append(place)
    if differ:
        raise InvalidTableError(
            f"Parts have different types in {len(differ)} columns ({positions(differ)}). Expected one type in all "
            f"parts. {NOT_READ}; write the parts with one schema."
        )
    return pa.schema(list(zip(names, types, strict=True)))


def _plain_codes(kind: pa.DataType) -> pa.DataType:
    """Return categories with codes of one width: pandas chooses it by the number of values in a part."""
    if pa.types.is_dictionary(kind):
        return pa.dictionary(pa.int32(), kind.value_type)
    return kind


def _repeated(value: str | None, n_rows: int) -> pa.Array:
    codes = pa.array([0], pa.int32()) if value is not None else pa.array([None], pa.int32())
    return pa.DictionaryArray.from_arrays(codes.take(pa.array([0] * n_rows, pa.int32())), pa.array([value or ""]))
