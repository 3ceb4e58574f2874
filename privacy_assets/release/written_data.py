"""The files of the data of a release: Parquet, and CSV, written here or by the tasks of an engine."""

import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pandas as pd

from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.columns.safe_names import class_name
from privacy_assets.contract.related import RelatedTables
from privacy_assets.errors import EngineError, InvalidTableError
from privacy_assets.release.manifest import read_manifest, table_files
from privacy_assets.release.received_files import open_regular
from privacy_assets.release.released_csv import write_csv
from privacy_assets.storage.durable_files import (
    PRIVATE_DIRECTORY_MODE,
    sync_directory,
    temporary_sibling,
    write_file,
)
from privacy_assets.storage.parquet_parts import part_name, require_few_parts, schema_of, write_part, write_parts
from privacy_assets.storage.private_directories import RELEASED_FILE_MODE
from privacy_assets.storage.table import StoredTable, Table, batches_of, write_batches

if TYPE_CHECKING:
    from privacy_assets.engine.protocol import Engine

ROWS_FILE = "rows.parquet"


def write_data(
    directory: Path,
    table: Table | RelatedTables,
    stage: str,
    formats: Sequence[str],
    rows_per_part: int,
    engine: "Engine | None" = None,
) -> dict[str, Any]:
    """Write the files of the data and return their entries in the manifest.

    With an engine, its workers write those of a stored table; they must see the directory under the same path. Frames
    and related tables are written here.
    """
    if isinstance(table, RelatedTables):
        for name, own in table.tables.items():
            write_table(directory / f"{name}.parquet", own, max(len(own), 1))
        return {}
    if engine is not None and isinstance(table, StoredTable):
        return _written_by(engine, directory, table, stage, formats, rows_per_part)
    parts = write_table(directory / f"{stage}.parquet", table, rows_per_part)
    return parts | ({"csv": _write_csv(directory / f"{stage}.csv", table)} if "csv" in formats else {})


def copied_data(waiting: Path, directory: Path) -> dict[str, Any]:
    """Copy the files of the data of a waiting release and return their entries in the manifest."""
    manifest = read_manifest(waiting)
    # Not the names in the manifest, which could lead out of the directory.
    for name in [*table_files(manifest), *([f"{manifest['stage']}.csv"] if "csv" in manifest else [])]:
        (directory / name).parent.mkdir(PRIVATE_DIRECTORY_MODE, exist_ok=True)
        with open_regular(waiting / name) as file:
            write_file(directory / name, lambda copy, file=file: shutil.copyfileobj(file, copy), RELEASED_FILE_MODE)  # type: ignore[misc]
    return {name: manifest[name] for name in ("parts", "csv") if name in manifest}


def without_extras(table: Any) -> Any:
    """Return the table without unused categories and attributes, which the fingerprint does not cover."""
    if isinstance(table, RelatedTables):
        return table.map(lambda _, own: without_extras(own))
    if isinstance(table, StoredTable):
        return table  # Each batch is written without extras.
    require_unique_text_names(table)
    # The columns are shared with the table, because they are not changed.
    return pd.DataFrame({name: _used_categories(table[name]).array for name in table.columns}, copy=False)


def _used_categories(column: "pd.Series[Any]") -> "pd.Series[Any]":
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return column
    n_used = column.cat.codes.nunique() - column.hasnans
    return column if n_used == len(column.cat.categories) else column.cat.remove_unused_categories()


def write_table(path: Path, table: Table, rows_per_part: int) -> dict[str, Any]:
    """Write the Parquet file, or a directory of parts, and return the entry of the parts in the manifest."""
    if len(table) <= rows_per_part:
        write_file(path, partial(_write_whole, table), RELEASED_FILE_MODE)
        return {}
    path.mkdir(PRIVATE_DIRECTORY_MODE)
    frames, schema = _frames(table), _schema_of_parts(table)
    written = write_parts(path, frames, rows_per_part, RELEASED_FILE_MODE, schema, with_fingerprint=False)
    return {"parts": {"rows_per_part": rows_per_part, "rows": list(written.rows)}}


def _frames(table: Table, rows: range | None = None) -> Iterator[pd.DataFrame]:
    """Yield the rows of a table, or of a range of a stored one, as they are released."""
    ordered = _orders_of(table)
    frames = table.batches(rows=rows) if isinstance(table, StoredTable) else batches_of(table, list(table.columns))
    return (without_extras(frame).astype(ordered) for frame in frames)


def _write_whole(table: Table, file: BinaryIO) -> None:
    if isinstance(table, StoredTable):
        write_batches(file, _frames(table), with_fingerprint=False)  # They are read back.
    else:
        table.to_parquet(file, index=False)


def _schema_of_parts(table: Table) -> Any:
    # The values of objects determine the schema of a frame; a stored table has no objects.
    return schema_of(next(table.batches()) if isinstance(table, StoredTable) else table)


def _orders_of(table: Table) -> dict[str, Any]:
    """Return the dtypes of the ordered categories of a stored table, because a batch may lack one of them."""
    if not isinstance(table, StoredTable):
        return {}
    ordered = [str(name) for name, dtype in table.dtypes.items() if getattr(dtype, "ordered", False)]
    return {name: table[name].cat.remove_unused_categories().dtype for name in ordered}


def _write_csv(path: Path, table: Table) -> dict[str, Any]:
    """Write the CSV file and return its entry in the manifest."""
    described: dict[str, Any] = {}
    write_file(path, lambda file: described.update(write_csv(file.write, table)), RELEASED_FILE_MODE)
    return described


def _written_by(
    engine: "Engine", directory: Path, table: StoredTable, stage: str, formats: Sequence[str], rows_per_part: int
) -> dict[str, Any]:
    """Hand the file of a stored table over, next to the directory, and have each file of the data written by a task."""
    from privacy_assets.engine.tasks import tasks_on

    directory = directory.absolute()
    n_parts = max(-(-len(table) // rows_per_part), 1)
    require_few_parts(n_parts, rows_per_part)
    path = directory / f"{stage}.parquet"
    if n_parts > 1:
        path.mkdir(PRIVATE_DIRECTORY_MODE)
    handed_over = temporary_sibling(directory)
    try:
        rows = handed_over / ROWS_FILE
        write_file(rows, table.copy_to)
        task = _WriteFile(rows, rows.stat().st_size, path, len(table), rows_per_part)
        with tasks_on(engine) as run:
            answers = run(task, range(n_parts + ("csv" in formats)))
    finally:
        shutil.rmtree(handed_over, ignore_errors=True)
    if None in answers:
        raise EngineError(
            f"The executors do not see {str(directory.parent)!r} as this process does. Nothing was released. Expected "
            "a directory of releases that they see under the same absolute path; or switch off `writes_releases`."
        )
    for answer in answers:
        if answer["refused"]:
            raise InvalidTableError(answer["refused"])
    problems = sorted({answer["problem"] for answer in answers} - {""})
    if problems:
        raise EngineError(
            f"The executors could not write the files of the release: {', '.join(problems)}. Nothing was released. "
            "Expected that they run as the user of this process, with enough space and memory; of other errors, only "
            "the kind is shown."
        )
    found: dict[str, Any] = {"csv": answers[-1]["csv"]} if "csv" in formats else {}
    if n_parts > 1:
        sync_directory(path)
        n_last = len(table) - (n_parts - 1) * rows_per_part
        found["parts"] = {"rows_per_part": rows_per_part, "rows": [*[rows_per_part] * (n_parts - 1), n_last]}
    return found


@dataclass(frozen=True)
class _WriteFile:
    """Writes a file where a worker sees the rows: the table, or a part of it; after these, the CSV file.

    It answers with the entry of the CSV file, why the table was refused, or a problem; None if it does not see the
    rows.
    """

    rows: Path
    n_bytes: int
    path: Path
    n_rows: int
    rows_per_part: int

    def __call__(self, number: int) -> dict[str, Any] | None:
        described, refused, problem = {}, "", ""
        # Another attempt may write the same file at the same time.
        temporary = self.rows.parent / f"{number}-{uuid.uuid4().hex}"
        try:
            with open_regular(self.rows) as file:
                if os.fstat(file.fileno()).st_size != self.n_bytes:
                    return None
                table = StoredTable([file])
            path, begin = self.path, number * self.rows_per_part
            if number and begin >= self.n_rows:
                path, described = path.with_suffix(".csv"), _write_csv(temporary, table)
            elif self.n_rows <= self.rows_per_part:
                write_table(temporary, table, self.rows_per_part)
            else:
                path = path / part_name(number)
                own = _frames(table, range(begin, begin + self.rows_per_part))
                write = partial(
                    write_part, frames=own, rows_per_part=self.rows_per_part, schema=_schema_of_parts(table)
                )
                write_file(temporary, write, RELEASED_FILE_MODE)
            temporary.replace(path)
        except FileNotFoundError:
            return None
        except InvalidTableError as error:
            refused = str(error)
        except Exception as error:  # noqa: BLE001 - the worker would log the text of the error, which may quote values
            number_of_error = getattr(error, "errno", None)
            problem = os.strerror(number_of_error) if number_of_error else class_name(type(error))
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        return {"csv": described, "refused": refused, "problem": problem}
