"""The way of admitted rows from the workers of a cluster to the process of the run.

Tables of a cluster have no order. Their rows are ordered by hashes of their values, so that a table has the same digest
however it is divided. Workers send runs, which are in this order. Runs are written into the staging directory, if there
is one: a server keeps all that is returned in memory, by default no more than 1 GiB. Nothing is shuffled, so no file of
Spark has a value.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.columns.row_hashes import hash_rows
from privacy_assets.columns.safe_names import class_name
from privacy_assets.contract.conversion import TEXT_DTYPE
from privacy_assets.errors import EngineError, InvalidTableError
from privacy_assets.storage.arrow_frames import as_frame
from privacy_assets.storage.durable_files import PRIVATE_FILE_MODE

Read = TypeVar("Read")
ANSWERS: Final = pa.schema([("counts", pa.binary()), ("rows", pa.binary())])
"""What workers send: counts or the name of a staged run, as JSON, or a run, as an Arrow file."""
N_HASHES: Final = 2
BYTES_PER_RUN: Final = 64 << 20
"""Bytes from which a staged run is written; a returned one has as few rows as there are checked at once."""
ROWS_PER_RANGE: Final = 1 << 18
"""Rows that are put in order at once, about."""


def counted(**counts: Any) -> pa.RecordBatch:
    """Return counts as an answer."""
    return _answer(counts=json.dumps(counts).encode())


@dataclass(frozen=True)
class SendRows:
    """Sends rows from a worker, through the ``staging`` directory if there is one, in the order of some columns."""

    staging: Path | None
    ordered_by: tuple[str, ...]

    def __call__(self, frames: Iterator[pd.DataFrame]) -> Iterator[pa.RecordBatch]:
        """Yield the answers with the rows of some frames."""
        waiting, n_bytes = list[pa.Table](), 0
        for rows in frames:
            waiting.append(self._hashed(rows))
            n_bytes += waiting[-1].nbytes
            if self.staging is None or n_bytes >= BYTES_PER_RUN:
                yield self._sent(waiting)
                waiting, n_bytes = [], 0
        if waiting:
            yield self._sent(waiting)

    def _hashed(self, rows: pd.DataFrame) -> pa.Table:
        """Return rows with two hashes, which are equal for equal rows, and hardly ever both for others."""
        columns = [rows[name] for name in self.ordered_by if name in rows.columns]
        # Of objects, such as decimals, the hash of a missing value would depend on the other rows.
        columns = [column.astype(TEXT_DTYPE) if column.dtype == object else column for column in columns]
        hashes = [pa.array(hash_rows(columns, len(rows), seed)) for seed in range(N_HASHES)]
        own = _in_arrow(rows)
        # No column has a longer name.
        length = 1 + max(map(len, own.column_names), default=0)
        return pa.table(
            [*hashes, *own.columns], [*(f"{seed:0{length}}" for seed in range(N_HASHES)), *own.column_names]
        )

    def _sent(self, tables: Sequence[pa.Table]) -> pa.RecordBatch:
        # A column may be empty in some of them, and then has no type.
        run = pa.concat_tables(tables, promote_options="permissive")
        run = run.take(_order(run)).combine_chunks()
        if self.staging is None:
            sink = pa.BufferOutputStream()
            _write(run, sink)
            return _answer(rows=sink.getvalue().to_pybytes())
        name, problem = f"{uuid4().hex}.arrow", ""
        try:
            # Another attempt may send the same rows, whose file is not read then.
            descriptor = os.open(self.staging / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE)
            with os.fdopen(descriptor, "wb") as file:
                if os.geteuid() == 0:
                    # Of the user of the process of the run, as the directory is.
                    owner = self.staging.stat()
                    os.fchown(descriptor, owner.st_uid, owner.st_gid)
                _write(run, file)
        except OSError as error:
            problem = error.strerror or class_name(type(error))
        return counted(not_sent=problem) if problem else counted(run=name)


class GatheredRows:
    """Runs that arrive in any order; some columns are read at a time.

    Parameters
    ----------
    staging : Path, optional
        The directory into which workers write.
    directory : Path, optional
        A private directory for the file, without a name, of the runs that workers return.
    """

    def __init__(self, staging: Path | None, directory: Path | None) -> None:
        self._staging, self._directory = staging, directory
        # Each is a file, or from where on it is in that of the returned runs, and its bytes.
        self._runs: list[Path | tuple[int, int]] = []
        self._returned: BinaryIO | None = None
        self._bounds: list[NDArray[np.int64]] = []
        self._orders: list[NDArray[np.uint32]] = []

    def __del__(self) -> None:
        if self._returned is not None:
            self._returned.close()

    def add(self, answer: Mapping[str, Any]) -> Any | None:
        """Take an answer; return the counts of rows and violations in it, if there are any.

        Raises
        ------
        EngineError
            If a worker could not read, check or send its rows.
        """
        found = {} if answer["counts"] is None else json.loads(bytes(answer["counts"]))
        if "problem" in found:
            raise EngineError(
                f"A worker could not read or check its rows of the table ({found['problem']}). Nothing was admitted; "
                "the text of the error stayed there, because it may quote a record. Compare the types of the columns "
                "with the contract."
            )
        if "not_sent" in found:
            raise _not_sent(found["not_sent"])
        if "run" in found and self._staging is not None:
            self._runs.append(self._staging / Path(found["run"]).name)
        elif answer["rows"] is not None:
            self._runs.append(_arrived(lambda: self._kept(bytes(answer["rows"]))))
        return found.get("counts")

    def _kept(self, run: bytes) -> tuple[int, int]:
        if self._returned is None:
            self._returned = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115 - it outlives this call
        begin = self._returned.seek(0, os.SEEK_END)
        self._returned.write(run)
        return begin, len(run)

    @property
    def columns(self) -> list[str]:
        """The names of the columns; none without rows."""
        return _arrived(self._names)

    def require(self, n_rows: int) -> None:
        """Refuse another number of rows than the workers counted."""
        if _arrived(lambda: sum(map(len, self._in_order()))) != n_rows:
            raise _not_sent("rows are missing")

    def read(self, names: Sequence[str]) -> pd.DataFrame:
        """Return some columns of all rows, in their order."""
        return _arrived(lambda: as_frame(self._read(names))[list(names)]) if self._runs else pd.DataFrame()

    def _names(self) -> list[str]:
        for run in self._runs[:1]:
            with self._opened(run) as file:
                return list(file.schema.names[N_HASHES:])
        return []

    def _in_order(self) -> list[NDArray[np.uint32]]:
        """Return the order of the rows in each range of hashes, of which a run has the rows between two bounds."""
        if not self._orders and self._runs:
            hashed = self._read_runs(range(N_HASHES))
            n_ranges = max(sum(map(len, hashed)) // ROWS_PER_RANGE, 1)
            ends = np.array([2**64 * number // n_ranges for number in range(1, n_ranges)], np.uint64)
            self._bounds = [np.array([0, *own.column(0).to_numpy().searchsorted(ends), len(own)]) for own in hashed]
            self._orders = [_order(own).astype(np.uint32) for own in self._ranges(hashed)]
        return self._orders

    def _read(self, names: Sequence[str]) -> pa.Table:
        orders = self._in_order()
        places = [place for place, name in enumerate(self._names(), N_HASHES) if name in set(names)]
        rows = [own.take(order) for own, order in zip(self._ranges(self._read_runs(places)), orders, strict=True)]
        return pa.concat_tables(rows, promote_options="permissive")

    def _read_runs(self, places: Sequence[int]) -> list[pa.Table]:
        """Read columns of each run, one run after the other: they may be more than the files that may be open."""
        runs = list[pa.Table]()
        for run in self._runs:
            with self._opened(run, places) as file:
                runs.append(file.read_all())
        if any(run.schema.names != runs[0].schema.names for run in runs):
            raise _not_sent("their columns differ")
        return runs

    def _ranges(self, runs: Sequence[pa.Table]) -> Iterator[pa.Table]:
        for number in range(len(self._bounds[0]) - 1):
            own = [
                run.slice(bounds[number], bounds[number + 1] - bounds[number])
                for run, bounds in zip(runs, self._bounds, strict=True)
                if bounds[number] < bounds[number + 1]
            ]
            yield pa.concat_tables(own or [runs[0].slice(0, 0)], promote_options="permissive").combine_chunks()

    @contextmanager
    def _opened(
        self, run: Path | tuple[int, int], places: Sequence[int] = ()
    ) -> Iterator[pa.ipc.RecordBatchFileReader]:
        """Open a run, of which only the columns at some places are read; of none, all."""
        options = pa.ipc.IpcReadOptions(included_fields=list(places), use_threads=False)
        with ExitStack() as stack:
            if isinstance(run, Path):
                source: Any = stack.enter_context(pa.OSFile(str(run)))
            else:
                assert self._returned is not None  # noqa: S101 - it has the run
                begin, n_bytes = run
                self._returned.seek(begin)
                source = pa.py_buffer(self._returned.read(n_bytes))
            yield stack.enter_context(pa.ipc.open_file(source, options=options))


def _arrived(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except (MemoryError, EngineError, InvalidTableError):
        raise
    except Exception as error:  # noqa: BLE001 - readers can raise anything for a damaged file
        number = getattr(error, "errno", None)
        problem = os.strerror(number) if number else class_name(type(error))
    # Raised here, so that the other error, which may show values, is not its context.
    raise _not_sent(problem)


def _not_sent(problem: str) -> EngineError:
    return EngineError(
        f"Admitted rows did not arrive from the workers ({problem}). Nothing was admitted. Expected that they and this "
        "process see `staging` under the same absolute path, as the same user, and enough space and memory; of other "
        "errors, only the kind is shown."
    )


def _order(hashed: pa.Table) -> NDArray[np.intp]:
    """Return the order of rows by their hashes, which are the first columns."""
    return np.lexsort([hashed.column(place).to_numpy() for place in reversed(range(N_HASHES))])


def _write(run: pa.Table, file: Any) -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    with pa.ipc.new_file(file, run.schema, options=options) as stream:
        stream.write_table(run)


def _in_arrow(rows: pd.DataFrame) -> pa.Table:
    """Return rows in Arrow, with values in the place of categories."""
    values = {
        str(name): column.astype(TEXT_DTYPE if types.is_string_dtype(column.cat.categories.dtype) else object)
        for name, column in rows.items()
        if isinstance(column.dtype, pd.CategoricalDtype)
    }
    return pa.Table.from_pandas(rows.assign(**values), preserve_index=False)


def _answer(**values: bytes) -> pa.RecordBatch:
    arrays = [pa.array([values.get(name)], pa.binary()) for name in ANSWERS.names]
    return pa.RecordBatch.from_arrays(arrays, schema=ANSWERS)
