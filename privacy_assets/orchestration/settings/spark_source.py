"""A table of a Spark cluster, or files that the cluster can read."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from privacy_assets.contract.column_admission import AdmittedColumns
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.divided_admission import AdmitRows, DividedAdmission, require_supported
from privacy_assets.contract.gathered_rows import ANSWERS, GatheredRows, SendRows
from privacy_assets.engine.connection import require_address
from privacy_assets.engine.local import LocalEngine
from privacy_assets.engine.spark import Batches, SparkEngine
from privacy_assets.engine.staging import staging_directory
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import described, setting

PARTITION_FIELD = "{partition_key}"
FORMATS = ("parquet", "delta", "iceberg", "orc")
"""Formats that store the types of their columns; Spark would have to guess the types of a text file.

Of several Avro files, it reads the columns of one, and leaves out those of the others without a word.
"""
KEY_IN_NAME = re.compile(r"[^`/\\\0]+")


@described
@dataclass(frozen=True)
class SparkSource:
    """A table of a Spark catalog, or files that the cluster can read (needs the extra ``spark``).

    The workers check the contract. Only admitted columns are read; direct identifiers stay on the cluster unless a
    check needs the whole column. Rows are in the order of hashes of the admitted columns, because a Spark table has
    none. If the engine has a staging directory, workers write them there; otherwise the server has to return all.

    The session is that of the release's `SparkEngine`, a session of the server ``remote``, or the given ``session``: a
    SparkSession, or an object with a ``spark_session``.

    Raises
    ------
    InvalidSettingError
        If not exactly one of ``table`` and ``path`` is given, both ``remote`` and ``session`` are, or the format or
        the columns cannot be used.
    """

    table: str | None = setting(
        None,
        "A table or view of a Spark catalog (extra spark), checked on the cluster and ordered by hashes of its "
        "admitted columns. {partition_key} in its name is replaced by the materialized partition.",
        "medical.patients",
    )
    path: str | None = setting(
        None,
        "Files that the Spark cluster can read (extra spark), such as a directory of an object store. {partition_key} "
        "in the path is replaced by the materialized partition.",
        "s3a://lake/patients",
    )
    format: str = setting("parquet", "Format of the files.", "delta")
    columns: Sequence[str] | None = setting(
        None, "Columns to read; by default all. A column that is not in the contract is an error.", ["patient", "age"]
    )
    remote: str | None = setting(
        None,
        "Address of the Spark Connect server; by default that of the engine of the release.",
        "sc://spark:15002",
        is_secret=True,
    )
    session: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        given = [name for name in ("table", "path") if getattr(self, name) is not None]
        if len(given) != 1 or not isinstance(getattr(self, given[0]), str):
            raise InvalidSettingError("A Spark source needs the text of either `table` or `path`. Give one of them.")
        if self.remote is not None and self.session is not None:
            raise InvalidSettingError("A Spark source has both `remote` and `session`. Give one of them, or neither.")
        if self.remote is not None:
            require_address(self.remote)
        if self.format not in FORMATS:
            raise InvalidSettingError(
                f"The format of a Spark source is {self.format!r}; expected one of {list(FORMATS)}. Read text files "
                "with TableFile, or make a table of them in the catalog."
            )
        names = self.columns
        is_list = names is None or (not isinstance(names, str) and all(isinstance(name, str) for name in names))
        if not is_list or (names is not None and (not names or len(set(names)) < len(names))):
            raise InvalidSettingError("`columns` of a Spark source must be a list of distinct column names.")

    @property
    def is_partitioned(self) -> bool:
        """Whether each partition has its own table."""
        return PARTITION_FIELD in (self.table or self.path or "")

    def read(self, partition_key: str | None, engine: LocalEngine | SparkEngine, jobs: str) -> pd.DataFrame:
        """Read all rows of a partition unchanged, in the order of their hashes; ``jobs`` names Spark's jobs."""
        with self._opened(partition_key, engine, jobs) as (spark, batches, columns):
            require_supported([(f"position {place}", kind) for place, (_, kind) in enumerate(columns)])
            names = tuple(name for name, _ in columns)
            with _staging(spark) as staging:
                rows = GatheredRows(staging, None)
                with _run(spark, batches, AdmitRows(None, names, SendRows(staging, names)), names) as answers:
                    for answer in answers:
                        rows.add(answer)
                return rows.read(rows.columns)

    def admit(
        self,
        contract: TableContract,
        partition_key: str | None,
        engine: LocalEngine | SparkEngine,
        jobs: str,
        directory: Path,
    ) -> AdmittedColumns:
        """Let the workers check the contract, and store what they send in ``directory``; otherwise as `read`."""
        with self._opened(partition_key, engine, jobs) as (spark, batches, columns):
            admission = DividedAdmission(contract, columns)
            with (
                _staging(spark) as staging,
                _run(spark, batches, admission.task(staging), admission.columns) as answers,
            ):
                return admission.finish(answers, GatheredRows(staging, directory), directory)

    def require_session(self, name: str, engine: LocalEngine | SparkEngine) -> None:
        """Refuse a source without a known cluster: neither it nor the release has a session or an address."""
        if self.remote is None and self.session is None and not isinstance(engine, SparkEngine):
            raise InvalidSettingError(
                f"The {name} is a Spark table, but neither it nor the release names the cluster. Expected `remote` "
                "or `session` of the SparkSource, or a SparkEngine as the engine of the release."
            )

    @contextmanager
    def _opened(
        self, partition_key: str | None, engine: LocalEngine | SparkEngine, jobs: str
    ) -> Iterator[tuple[SparkEngine, Batches, list[tuple[str, str]]]]:
        self.require_session("source", engine)
        is_own = self.remote is not None or self.session is not None
        spark = SparkEngine(self.remote, self.session) if is_own else engine
        assert isinstance(spark, SparkEngine)  # noqa: S101 - require_session
        spark = replace(spark, tag=f"{spark.tag}: {jobs}")
        with spark.open_table(self._asked(partition_key)) as (batches, columns):
            asked = [name for name, _ in columns] if self.columns is None else self.columns
            missing = sorted(set(asked) - {name for name, _ in columns})
            if missing:
                raise InvalidTableError(
                    f"`columns` of the Spark source names columns that the table does not have: {missing}. Nothing was "
                    "read."
                )
            yield spark, batches, [(name, kind) for name, kind in columns if name in asked]

    def _asked(self, partition_key: str | None) -> Callable[[Any], Any]:
        """Return the name or path to read in a session."""
        if partition_key is not None and (not KEY_IN_NAME.fullmatch(partition_key) or partition_key in (".", "..")):
            raise InvalidSettingError(
                f"The partition key {partition_key!r} cannot be part of the name or path of a Spark table. Expected no "
                "separator and no backtick. Nothing was read; rename the partition."
            )
        place = self.table if self.table is not None else str(self.path)
        if partition_key is not None:
            place = place.replace(PARTITION_FIELD, partition_key)
        if self.table is not None:
            return lambda spark: spark.read.table(place)
        # Otherwise Spark would read all files with the columns of one of them, and leave out those of others. Delta and
        # Iceberg have one schema.
        options = {"mergeSchema": True} if self.format in ("parquet", "orc") else {}
        return lambda spark: spark.read.format(self.format).options(**options).load(place)


def _staging(spark: SparkEngine) -> AbstractContextManager[Path | None]:
    return nullcontext() if spark.staging is None else staging_directory(spark.staging)


def _run(
    spark: SparkEngine, batches: Batches, task: AdmitRows, names: Sequence[str]
) -> AbstractContextManager[Iterator[Mapping[str, Any]]]:
    """Run the task on some columns; the answers come as they arrive."""
    columns = batches.frame.select(*("`" + name.replace("`", "``") + "`" for name in names))
    named = "run the tasks" if spark.staging else "run the tasks, which return all rows without `staging` of the engine"
    return closing(spark.stream(spark.map(replace(batches, frame=columns), task, ANSWERS), named))
