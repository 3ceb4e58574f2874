"""The way of admitted rows from the workers of a cluster to the process of the run.

Tables of a cluster have no order. Their rows are ordered by hashes of their values, so that a table has the same digest
however it is divided. Workers send runs, which are in this order; each has a batch for every range of hashes, so that
one range after the other can be put together. Runs are written into the staging directory, if there is one: a server
keeps all that is returned in memory, by default no more than 1 GiB. Nothing is shuffled: no file of Spark has a value.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.columns.row_hashes import hash_rows
from privacy_assets.columns.safe_names import class_name
from privacy_assets.contract.conversion import TEXT_DTYPE
from privacy_assets.errors import EngineError
from privacy_assets.storage.arrow_frames import as_frame
from privacy_assets.storage.durable_files import PRIVATE_FILE_MODE
from privacy_assets.storage.table import OpenFiles

Read = TypeVar("Read")
ANSWERS: Final = pa.schema([("counts", pa.binary()), ("rows", pa.binary())])
"""What workers send: counts or the name of a staged run, as JSON, or a run, as an Arrow file."""
N_RANGES: Final = 32
N_HASHES: Final = 2
ROWS_PER_RUN: Final = 1 << 20


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
        waiting, n_waiting = list[pa.Table](), 0
        # Staged runs do not pass through the server, so they may be long.
        rows_per_run = 1 if self.staging is None else ROWS_PER_RUN
        for rows in frames:
            waiting.append(self._hashed(rows))
            n_waiting += len(rows)
            if n_waiting >= rows_per_run:
                yield self._sent(waiting)
                waiting, n_waiting = [], 0
        if waiting:
            yield self._sent(waiting)

    def _hashed(self, rows: pd.DataFrame) -> pa.Table:
        """Return rows with two hashes, which are equal for equal rows, and hardly ever both for others."""
        columns = [rows[name] for name in self.ordered_by if name in rows.columns]
        # Of objects, such as decimals, the hash of a missing value would depend on the other rows.
        columns = [column.astype(TEXT_DTYPE) if column.dtype == object else column for column in columns]
        hashes = [pa.array(hash_rows(columns, len(rows), seed)) for seed in range(N_HASHES)]
        own = _plain(rows)
        # No column has a longer name.
        length = 1 + max(map(len, own.column_names), default=0)
        return pa.table(
            [*hashes, *own.columns], [*(f"{seed:0{length}}" for seed in range(N_HASHES)), *own.column_names]
        )

    def _sent(self, tables: Sequence[pa.Table]) -> pa.RecordBatch:
        # A column may be empty in some of them, and then has no type.
        run = pa.concat_tables(tables, promote_options="permissive")
        (batch,) = run.take(_order(run)).combine_chunks().to_batches()
        if self.staging is None:
            sink = pa.BufferOutputStream()
            _write(batch, sink)
            return _answer(rows=sink.getvalue().to_pybytes())
        name, problem = f"{uuid4().hex}.arrow", ""
        try:
            # Another attempt may send the same rows, whose file is not read then.
            descriptor = os.open(self.staging / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE)
            with os.fdopen(descriptor, "wb") as file:
                _write(batch, file)
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
        A private directory for files of the runs that workers return; by default, these are kept in memory.
    """

    def __init__(self, staging: Path | None, directory: Path | None) -> None:
        self._staging, self._directory = staging, directory
        self._runs: list[bytes | OpenFiles] = []
        self._orders: list[NDArray[np.uint32]] = []

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
        problem = found.get("not_sent", "")
        try:
            if "run" in found and self._staging is not None:
                self._runs.append(OpenFiles([(self._staging / Path(found["run"]).name).open("rb")]))
            elif answer["rows"] is not None and self._directory is not None:
                with tempfile.TemporaryFile(dir=self._directory) as file:
                    file.write(answer["rows"])
                    file.flush()
                    self._runs.append(OpenFiles([file]))
            elif answer["rows"] is not None:
                self._runs.append(bytes(answer["rows"]))
        except OSError as error:
            problem = error.strerror or class_name(type(error))
        if problem:
            raise _not_sent(problem)
        return found.get("counts")

    @property
    def columns(self) -> list[str]:
        """The names of the columns; none without rows."""
        return _arrived(self._names)

    def read(self, names: Sequence[str]) -> pd.DataFrame:
        """Return some columns of all rows, in their order."""
        return _arrived(lambda: as_frame(self._read(names))[list(names)]) if self._runs else pd.DataFrame()

    def _names(self) -> list[str]:
        return [name for run in self._runs[:1] for name in self._opened(run).schema.names[N_HASHES:]]

    def _read(self, names: Sequence[str]) -> pa.Table:
        if not self._orders:
            self._orders = [_order(hashes).astype(np.uint32) for hashes in self._ranges(range(N_HASHES))]
        places = [place for place, name in enumerate(self._names(), N_HASHES) if name in set(names)]
        ranges = [rows.take(order) for rows, order in zip(self._ranges(places), self._orders, strict=True)]
        return pa.concat_tables(ranges, promote_options="permissive")

    def _ranges(self, places: Sequence[int]) -> Iterator[pa.Table]:
        """Yield some columns of each range of hashes, one run after the other."""
        options = pa.ipc.IpcReadOptions(included_fields=list(places), use_threads=False)
        runs = [self._opened(run, options) for run in self._runs]
        for number in range(N_RANGES):
            own = [pa.Table.from_batches([run.get_batch(number)]) for run in runs]
            yield pa.concat_tables(own, promote_options="permissive").combine_chunks()

    def _opened(self, run: bytes | OpenFiles, options: Any = None) -> pa.ipc.RecordBatchFileReader:
        if isinstance(run, bytes):
            return pa.ipc.open_file(pa.py_buffer(run), options=options)
        run.files[0].seek(0)
        return pa.ipc.open_file(pa.PythonFile(run.files[0], "r"), options=options)


def _arrived(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except (OSError, pa.ArrowException) as error:
        problem = class_name(type(error))
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


def _write(run: pa.RecordBatch, file: Any) -> None:
    """Write a run, with a batch for each range of hashes."""
    ends = np.arange(1, N_RANGES, dtype=np.uint64) << np.uint64(64 - (N_RANGES - 1).bit_length())
    bounds = [0, *np.searchsorted(run.column(0).to_numpy(), ends).tolist(), run.num_rows]
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    with pa.ipc.new_file(file, run.schema, options=options) as stream:
        for begin, end in pairwise(bounds):
            stream.write_batch(run.slice(begin, end - begin))


def _plain(rows: pd.DataFrame) -> pa.Table:
    """Return rows in Arrow, with values in the place of categories."""
    values = {
        # Categories without any value do not have a type.
        str(name): column.astype(object if column.cat.categories.empty else column.cat.categories.dtype)
        for name, column in rows.items()
        if isinstance(column.dtype, pd.CategoricalDtype)
    }
    return pa.Table.from_pandas(rows.assign(**values), preserve_index=False)


def _answer(**values: bytes) -> pa.RecordBatch:
    arrays = [pa.array([values.get(name)], pa.binary()) for name in ANSWERS.names]
    return pa.RecordBatch.from_arrays(arrays, schema=ANSWERS)
