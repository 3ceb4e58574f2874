"""The engine of a Spark cluster, through any session of Spark 4: Spark Connect, Databricks Connect or classic.

For tables from elsewhere, only integer codes reach the cluster; a table of the cluster is read there. Spark's own error
texts are not passed on, because a worker's traceback may quote its data.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, reduce
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.engine.protocol import Mapper, Reducer
from privacy_assets.errors import EngineError, InvalidSettingError
from privacy_assets.setting_checks import is_integer, require

INSTALL = (
    "Install the same version of this package, of Python and of numpy where the tasks run: in the image or the"
    " environment archive of the executors (`spark.archives`), or as a library of the Databricks cluster."
)
CONDITION = re.compile(r"[A-Z][A-Z0-9_]*(\.[A-Z0-9_]+)*")
"""Names of Spark's error conditions, which are part of its documentation and do not quote data."""
ROWS_PER_UPLOAD = 1 << 20
"""Rows of a message that sends codes to the cluster; with 50 columns it has 200 MB."""
ROWS_PER_CELL = 1 << 16
"""Most rows whose codes are one value for Spark."""
CELLS = pa.schema([("cell", pa.binary())])


@dataclass(frozen=True)
class _Placed:
    """Codes on the cluster: a row of the frame is a batch of them, because Spark converts single numbers slowly."""

    frame: Any
    schema: pa.Schema


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


def _pack(table: pa.Table, n_rows: int) -> pa.Table:
    """Write this many rows into each cell."""
    cells = []
    for batch in table.combine_chunks().to_batches(max_chunksize=n_rows):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_batch(batch)
        cells.append(sink.getvalue().to_pybytes())
    return pa.table([pa.array(cells, pa.binary())], schema=CELLS)


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for cell in batch.column("cell"):
            with pa.ipc.open_stream(cell.as_buffer()) as stream:
                yield from stream


@dataclass(frozen=True)
class SparkEngine:
    """Runs tasks on the workers of a Spark cluster (extra ``spark``).

    Parameters
    ----------
    remote : str, optional
        Address of a Spark Connect server, such as ``sc://host:15002``; ``local[2]`` starts one on this machine.
    session : SparkSession, optional
        An existing session, or an object that has one as ``spark_session``. It is not stopped.
    rows_per_task : int
        Approximate number of rows of a task; tasks of a search receive at most twice as many.
    tag : str
        Tag of the jobs, such as the name of the release; without a comma.

    Raises
    ------
    InvalidSettingError
        If not exactly one of ``remote`` and ``session`` is given, if a setting is out of range, or without the extra.

    Notes
    -----
    The executors need this package in the same version; otherwise tasks are refused before any codes are sent. On
    failure, and if the run is canceled, the jobs with the tag are canceled, and the codes are removed from the cluster.
    """

    remote: str | None = None
    session: Any = field(default=None, repr=False)
    rows_per_task: int = 1_000_000
    tag: str = "privacy_assets"

    def __post_init__(self) -> None:
        is_one = (self.remote is None) != (self.session is None)
        if not is_one:
            raise InvalidSettingError("Expected either `remote` or `session`. Nothing was assessed.")
        require(is_integer(self.rows_per_task, 1), "rows_per_task", self.rows_per_task, "an integer of at least 1")
        is_tag = isinstance(self.tag, str) and self.tag != "" and "," not in self.tag
        require(is_tag, "tag", self.tag, "a text without a comma")

    @cached_property
    def _spark(self) -> Any:
        """The session, whose executors were found to have this package."""
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise InvalidSettingError(
                "`SparkEngine` needs the extra `spark`: pip install 'privacy-assets[spark]'. Nothing was assessed."
            ) from None
        if self.session is not None:
            spark = getattr(self.session, "spark_session", self.session)
            if spark is None:
                raise EngineError("The Spark resource has no session yet. Nothing was sent. Open one before the run.")
        else:
            spark, failure = _attempt(lambda: SparkSession.builder.remote(str(self.remote)).getOrCreate())
            _refuse(failure, "connect to the server")
        _check_workers(spark)
        return spark

    @contextmanager
    def place(self, columns: Mapping[str, NDArray[np.integer[Any]]]) -> Iterator[Any]:
        """Hand over columns of codes, and remove them at the end of the context."""
        whole = pa.table(dict(columns))

        def upload(spark: Any) -> Any:
            frames = []
            rows_per_cell = min(self.rows_per_task, ROWS_PER_CELL)
            for begin in range(0, max(whole.num_rows, 1), ROWS_PER_UPLOAD):
                cells = _pack(whole.slice(begin, ROWS_PER_UPLOAD), rows_per_cell)
                frames.append(spark.createDataFrame(cells, _spark_types(CELLS)))
            while len(frames) > 1:
                # In pairs, because Spark does not accept plans that are a thousand levels deep.
                pairs = [frames[begin : begin + 2] for begin in range(0, len(frames), 2)]
                frames = [reduce(lambda one, other: one.unionAll(other), pair) for pair in pairs]
            # Otherwise each task of each job would receive its part of the upload again, although it is persisted.
            return frames[0].repartition(max(-(-whole.num_rows // self.rows_per_task), 1)).persist()

        frame = self._run(upload)
        try:
            yield _Placed(frame, whole.schema)
        finally:
            # The session may be lost, and its data with it.
            with suppress(Exception):
                frame.unpersist()

    def map(self, batches: Any, function: Mapper, schema: pa.Schema) -> Any:
        """Return the batches that a function makes of each partition."""
        is_placed = isinstance(batches, _Placed)
        frame = batches.frame if is_placed else batches
        return frame.mapInArrow(_OnWorker(function, is_placed), _spark_types(schema))

    def map_reduce(
        self, batches: Any, function: Mapper, schema: pa.Schema, key: str, reduce: Reducer, reduced: pa.Schema
    ) -> Any:
        """Map, bring all rows with one value of ``key`` together, and reduce them to a table."""

        # Spark counts the arguments of a function, and takes `self` of an object for one of them.
        def of_one_key(table: Any) -> Any:
            _keep_imports()
            return reduce(table)

        return self.map(batches, function, schema).groupBy(key).applyInArrow(of_one_key, _spark_types(reduced))

    def collect(self, batches: Any) -> pa.Table:
        """Return all batches as one table."""
        if isinstance(batches, _Placed):
            cells = self._run(lambda _: batches.frame.toArrow())
            return pa.Table.from_batches(_unpack(iter(cells.to_batches())), batches.schema)
        return self._run(lambda _: batches.toArrow())

    def open_table(self, ask: Callable[[Any], Any]) -> tuple[Any, list[tuple[str, str]]]:
        """Return a table of the cluster, as requested from the session, and the names and types of its columns.

        Raises
        ------
        EngineError
            If the cluster does not provide it; of Spark's own error, only the name of its condition is reported.
        """
        with self._named_jobs() as spark:

            def described() -> tuple[Any, list[tuple[str, str]]]:
                frame = ask(spark)
                return frame, [(column.name, column.dataType.typeName()) for column in frame.schema]

            found, failure = _attempt(described)
            if failure is not None:
                raise EngineError(
                    f"Spark could not open the table ({failure}). Nothing was read. Check the name or path, the format,"
                    " and whether the user of the session may read it."
                )
        frame, columns = found
        return frame, columns

    def stream(self, batches: Any) -> Generator[Mapping[str, Any]]:
        """Yield the records of all batches, in any order, as they arrive."""
        with self._named_jobs():
            records, failure = _attempt(batches.toLocalIterator)
            while failure is None:
                record, failure = _attempt(lambda: next(records, None))
                if record is None:
                    break
                yield record.asDict()
            _refuse(failure, "run the tasks")

    def _run(self, work: Callable[[Any], Any]) -> Any:
        """Do work with the session."""
        with self._named_jobs() as spark:
            made, failure = _attempt(lambda: work(spark))
            _refuse(failure, "run the tasks")
        return made

    @contextmanager
    def _named_jobs(self) -> Iterator[Any]:
        """Tag the jobs of this thread, and cancel them if anything ends the work early."""
        spark = self._spark
        tags = [self.tag, f"{self.tag} {uuid4().hex}"]
        is_done = False
        try:
            for tag in tags:
                spark.addTag(tag)
            yield spark
            is_done = True
        finally:
            with suppress(Exception):
                if not is_done:
                    spark.interruptTag(tags[1])
                for tag in tags:
                    spark.removeTag(tag)


def _attempt(work: Callable[[], Any]) -> tuple[Any, str | None]:
    """Return the result of work with Spark, or the kind of its error, whose text may quote a worker's data."""
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - Spark raises errors of many libraries
        return None, _kind_of(error)


def _kind_of(error: Exception) -> str:
    """Return the class of an error, and the name of Spark's condition, such as TABLE_OR_VIEW_NOT_FOUND."""
    condition = None
    with suppress(Exception):
        condition = error.getCondition()  # type: ignore[attr-defined]
    is_name = isinstance(condition, str) and CONDITION.fullmatch(condition)
    return f"{type(error).__name__}, {condition}" if is_name else type(error).__name__


def _refuse(failure: str | None, task: str) -> None:
    """Raise an error without Spark's error, not even as its context."""
    if failure is not None:
        raise EngineError(
            f"Spark could not {task} ({failure}). No results were kept. Spark's own log on the cluster has "
            "the cause: a worker or session that was lost, too little memory, or a server that does not answer."
        )


def _spark_types(schema: pa.Schema) -> str:
    """Write a schema in Spark's notation."""
    names = {pa.int32(): "int", pa.int64(): "long", pa.binary(): "binary"}
    return ", ".join(f"`{one.name}` {names[one.type]}" for one in schema)


def _versions() -> str:
    """Return the versions on which tasks depend."""
    import privacy_assets

    return f"{privacy_assets.__version__}, Python {sys.version_info[0]}.{sys.version_info[1]}, numpy {np.__version__}"


def _reader_of_versions() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that is sent with its code, because a worker without this package cannot import it."""

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        import sys

        import pyarrow

        for _ in batches:
            try:
                import numpy

                import privacy_assets

                python = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
                found = f"{privacy_assets.__version__}, {python}, numpy {numpy.__version__}"
            except ImportError:
                found = ""
            yield pyarrow.record_batch([[found]], names=["version"])

    return read


def _check_workers(spark: Any) -> None:
    """Refuse executors whose versions differ from those of this process."""
    numbers = spark.range(0, 64, 1, 16)
    asked, failure = _attempt(lambda: numbers.mapInArrow(_reader_of_versions(), "version string").toArrow())
    _refuse(failure, "ask its workers for the version of this package")
    found = set(asked.column("version").to_pylist())
    if "" in found:
        raise EngineError(f"Workers of the Spark cluster do not have privacy_assets. Nothing was sent. {INSTALL}")
    if found != {_versions()}:
        others = ", and ".join(sorted(found - {_versions()}))
        raise EngineError(
            f"Workers of the Spark cluster have privacy_assets {others}; here it is {_versions()}. Nothing was sent."
            f" {INSTALL}"
        )
