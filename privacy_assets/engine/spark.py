"""The engine of a Spark cluster, through any session of Spark 4: Spark Connect, Databricks Connect or classic.

For tables from elsewhere, only integer codes reach the cluster, and what is released, if executors write it; a table of
the cluster and a release to verify are read there. Spark's own error texts are not passed on, because a worker's
traceback may quote its data.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.engine.connection import Connection, require_address, shown_address, spark_types
from privacy_assets.engine.protocol import Mapper, Reducer
from privacy_assets.engine.staging import PATH, staged
from privacy_assets.errors import EngineError, InvalidSettingError
from privacy_assets.setting_checks import described, is_integer, require, setting

MOST_UPLOADED = 64 << 20
"""Bytes of codes that are sent to the server, whose store keeps them until it removes unused data."""
ROWS_PER_CELL = 1 << 16
"""Most rows whose codes are one value for Spark."""
CELLS = pa.schema([("cell", pa.binary())])


@dataclass(frozen=True)
class Batches:
    """Batches on the cluster, and the connection to it.

    With ``schema``, a row of the frame is a batch of codes, because Spark converts single numbers slowly.
    """

    frame: Any
    connection: Connection
    schema: pa.Schema | None = None


@dataclass(frozen=True)
class _OnWorker:
    """A function of batches, or of the batches in cells."""

    function: Mapper
    is_of_cells: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _keep_imports()
        yield from self.function(_unpack(batches) if self.is_of_cells else batches)


@cache
def _keep_imports() -> None:
    """Exclude imported objects from the garbage collection after each task, which would outlast a short task."""
    gc.freeze()


def _cells(table: pa.Table, n_rows: int) -> Iterator[pa.Table]:
    """Write this many rows into each cell; yield one cell after the other."""
    for batch in table.combine_chunks().to_batches(max_chunksize=n_rows):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_batch(batch)
        yield pa.table([pa.array([sink.getvalue().to_pybytes()], pa.binary())], schema=CELLS)


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for cell in batch.column("cell"):
            with pa.ipc.open_stream(cell.as_buffer()) as stream:
                yield from stream


@described
@dataclass(frozen=True)
class SparkEngine:
    """Runs tasks on the workers of a Spark cluster (extra spark), which need this package in the same version.

    It has either the address of a server, where it opens a session and ends it with the work, or a ``session``: a
    SparkSession, or an object with one as ``spark_session``, which is not stopped. ``tag`` is the tag of the jobs, such
    as the name of the release, without a comma.

    If the work fails or is canceled, the jobs with the tag are canceled, and the codes are removed. A lost server is
    refused within a minute; for this, pyspark's default retries of a given session are reduced.

    Raises
    ------
    InvalidSettingError
        If not exactly one of ``remote`` and ``session`` is given, if a setting is out of range, or without the extra.
    """

    remote: str | None = setting(
        None,
        "Address of a Spark Connect server, such as sc://host:15002; local[2] starts one on this machine, the same for "
        "all such addresses of a process.",
        "sc://spark:15002",
        is_secret=True,
    )
    session: Any = field(default=None, repr=False)
    rows_per_task: int = setting(
        1_000_000,
        "Approximate number of rows per task; no task of a search gets more than twice as many.",
        1_000_000,
        at_least=1,
    )
    tag: str = "privacy_assets"
    staging: str | None = setting(
        None,
        "Existing directory that the process of the run and the executors see under this absolute path, as the same "
        "user: codes, and the admitted rows of a Spark table, are written there and removed at the end. Needed for "
        "more than 64 MiB of codes.",
        "/mnt/staging",
    )
    writes_releases: bool = setting(
        False,
        "Whether executors write the files of a release, and read them back: they must see `release_path` under the "
        "same absolute path, as the same user, and are then trusted with what is released.",
        True,
    )

    def __post_init__(self) -> None:
        is_one = (self.remote is None) != (self.session is None)
        if not is_one:
            raise InvalidSettingError("Expected either `remote` or `session`. Nothing was assessed.")
        if self.remote is not None:
            require_address(self.remote)
        require(is_integer(self.rows_per_task, 1), "rows_per_task", self.rows_per_task, "an integer of at least 1")
        is_tag = isinstance(self.tag, str) and self.tag != "" and "," not in self.tag
        require(is_tag, "tag", self.tag, "a text without a comma")
        is_path = self.staging is None or (isinstance(self.staging, str) and PATH.fullmatch(self.staging) is not None)
        require(is_path, "staging", self.staging, "the absolute path of a directory, not an object store")
        require(isinstance(self.writes_releases, bool), "writes_releases", self.writes_releases, "true or false")

    def __repr__(self) -> str:
        """Return the settings, without the token of an address."""
        remote = None if self.remote is None else shown_address(self.remote)
        shown = {"remote": remote} | {
            name: getattr(self, name) for name in ("rows_per_task", "tag", "staging", "writes_releases")
        }
        return f"SparkEngine({', '.join(f'{name}={value!r}' for name, value in shown.items() if value is not None)})"

    @contextmanager
    def opened(self) -> Iterator[SparkEngine]:
        """Yield this engine with one session for all its tasks, which the first of them opens."""
        if isinstance(self.session, Connection):
            yield self
            return
        connection = Connection(self.remote, self.session)
        try:
            yield replace(self, remote=None, session=connection)
        finally:
            connection.close()

    @contextmanager
    def place(self, columns: Mapping[str, NDArray[np.integer[Any]]]) -> Iterator[Batches]:
        """Hand over columns of codes, and remove them at the end of the context."""
        whole = pa.table(dict(columns))
        if self.staging is None and whole.nbytes > MOST_UPLOADED:
            raise InvalidSettingError(
                f"The codes have {whole.nbytes / 2**20:,.1f} MiB, and the engine has no staging directory. A server "
                f"keeps what is sent to it, so at most {MOST_UPLOADED >> 20} MiB are. Nothing was sent. Set `staging` "
                "to a directory that this process and the executors see."
            )
        schema, n_tasks = whole.schema, max(-(-whole.num_rows // self.rows_per_task), 1)
        cells = _cells(whole, min(self.rows_per_task, ROWS_PER_CELL))
        # The cluster has them from here on.
        del whole, columns
        with self.opened() as engine, ExitStack() as stack:
            connection: Connection = engine.session
            spark = connection.spark
            if self.staging is None:
                sent = pa.concat_tables([CELLS.empty_table(), *cells])

                def upload() -> Any:
                    # Without the repartition, each task would receive its part again, although it is persisted.
                    return spark.createDataFrame(sent, spark_types(CELLS)).repartition(n_tasks).persist()

                frame = connection.run(self.tag, upload)
                stack.callback(connection.clean_up, lambda: frame.unpersist(True))
            else:
                path = stack.enter_context(staged(self.staging, cells, CELLS))
                task = "find the codes in the staging directory"
                frame = connection.run(self.tag, lambda: _analyzed(spark.read.parquet(path)), task)
            yield Batches(frame, connection, schema)

    def map(self, batches: Batches, function: Mapper, schema: pa.Schema) -> Batches:
        """Return the batches that a function makes of each partition."""
        task, connection = _OnWorker(function, batches.schema is not None), batches.connection
        made = connection.run(self.tag, lambda: batches.frame.mapInArrow(task, spark_types(schema)))
        return Batches(made, connection)

    def map_reduce(
        self, batches: Batches, function: Mapper, schema: pa.Schema, key: str, reduce: Reducer, reduced: pa.Schema
    ) -> Batches:
        """Map, bring all rows with one value of ``key`` together, and reduce them to a table."""

        # Spark counts the arguments of a function, and takes `self` of an object for one of them.
        def of_one_key(table: Any) -> Any:
            _keep_imports()
            return reduce(table)

        mapped, connection = self.map(batches, function, schema).frame, batches.connection
        made = connection.run(self.tag, lambda: mapped.groupBy(key).applyInArrow(of_one_key, spark_types(reduced)))
        return Batches(made, connection)

    def collect(self, batches: Batches) -> pa.Table:
        """Return all batches as one table."""
        found = batches.connection.run(self.tag, batches.frame.toArrow)
        cells = batches.schema
        return found if cells is None else pa.Table.from_batches(_unpack(iter(found.to_batches())), cells)

    @contextmanager
    def open_table(self, ask: Callable[[Any], Any]) -> Iterator[tuple[Batches, list[tuple[str, str]]]]:
        """Yield a table of the cluster, as requested from the session, and the names and types of its columns.

        Raises
        ------
        EngineError
            If the cluster does not provide it; of Spark's own error, only the name of its condition is reported.
        """
        with self.opened() as engine:
            connection: Connection = engine.session
            with connection.named_jobs(self.tag) as spark:
                frame, failure = connection.attempt(lambda: _analyzed(ask(spark)))
                if failure is not None:
                    raise EngineError(
                        f"Spark could not open the table ({failure}). Nothing was read. Check the name or path, the "
                        "format, and whether the user of the session may read it."
                    )
            columns = [(column.name, column.dataType.typeName()) for column in frame.schema]
            yield Batches(frame, connection), columns

    def stream(self, batches: Batches, task: str = "run the tasks") -> Generator[Mapping[str, Any]]:
        """Yield the records of all batches, in any order, as they arrive; an error says which task failed."""
        connection = batches.connection
        with connection.named_jobs(self.tag):
            records, failure = connection.attempt(batches.frame.toLocalIterator)
            while failure is None:
                record, failure = connection.attempt(lambda: next(records, None))
                if record is None:
                    break
                yield record.asDict()
            connection.refuse(failure, task)


def _analyzed(frame: Any) -> Any:
    """Return a frame whose columns the server has found."""
    frame.schema  # noqa: B018 - the server is asked for it
    return frame
