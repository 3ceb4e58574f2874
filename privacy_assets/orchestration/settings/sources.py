"""Where a table comes from: a file, a query, a Spark cluster, an existing asset, or a function."""

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import dagster as dg
import pandas as pd
import pyarrow as pa

from privacy_assets.columns.safe_names import type_name
from privacy_assets.contract.column_admission import (
    AdmittedColumns,
    admit_columns,
    admit_frame,
    admit_parquet,
    needs_frame,
)
from privacy_assets.contract.contract import TableContract
from privacy_assets.drafting.blocks import TableBlocks, open_table, require_table_file
from privacy_assets.engine.local import LocalEngine
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.orchestration.settings.spark_source import PARTITION_FIELD, SparkSource
from privacy_assets.pipeline.sql_rows import PARTITION_PARAMETER, read_rows
from privacy_assets.setting_checks import REQUIRED, described, local_path, setting
from privacy_assets.storage.column_files import ColumnFiles
from privacy_assets.storage.parquet_dataset import ParquetDataset, open_parquet_dataset

VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FORMATS = ("csv", "parquet")
SEPARATORS = (",", ";", "\t", "|")
NOT_BOUND = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", flags=re.DOTALL)
"""Texts, quoted names and comments of a query, in which parameters are not bound."""
BOUND = re.compile(rf"(?<![:\w\\]):{PARTITION_PARAMETER}\b")


@described
@dataclass(frozen=True)
class TableFile:
    """A CSV or Parquet file, or a directory of Parquet files.

    Raises
    ------
    InvalidSettingError
        If the format is neither given nor shown by the suffix, or the separator is not one of ``, ; |`` and the tab.
    """

    path: str = setting(
        REQUIRED,
        "A CSV or Parquet file, or a directory of Parquet files (with format: parquet), read in the order of their "
        "paths; its directories column=value are columns of text. A relative path starts at the root of the project. "
        "{partition_key} in it is replaced by the materialized partition.",
        "data/people.csv",
    )
    format: str | None = setting(None, "Format of the file, if its suffix does not show it.", "csv")
    separator: str = setting(
        ",", "Character between the fields of a CSV file: a comma, a semicolon, a tab or a vertical bar.", ";"
    )

    def __post_init__(self) -> None:
        local_path(self.path, "the path of a table")
        if self.resolved_format not in FORMATS:
            raise InvalidSettingError(
                f"The format of {self.path!r} is {self.resolved_format!r}; expected one of {list(FORMATS)}. Give it as "
                "TableFile(path, format='csv')."
            )
        if self.separator not in SEPARATORS:
            raise InvalidSettingError(
                f"The separator of {self.path!r} is {self.separator!r}; expected one of {list(SEPARATORS)}."
            )

    @property
    def resolved_format(self) -> str:
        """The given format, or the suffix of the path."""
        return self.format or Path(self.path).suffix.removeprefix(".").lower()

    def read(self, partition_key: str | None) -> pd.DataFrame:
        """Read the file or directory, or that of a partition."""
        return _frame_of(self._open(partition_key))

    def admit(self, contract: TableContract, partition_key: str | None, directory: Path) -> AdmittedColumns:
        """Admit the table a few columns at a time, with the result and the refusals of the whole frame.

        A CSV file is first copied to ``directory``, where nobody else can read it. Parquet files must not change.
        """
        table = self._open(partition_key)
        if isinstance(table, ParquetDataset):
            return admit_parquet(contract, table, directory)
        names = list(table.names)
        if needs_frame(contract, names):
            return admit_frame(contract, _frame_of(table))
        texts, schema = ColumnFiles(directory), pa.schema([(name, pa.large_string()) for name in names])
        rows = (pa.Table.from_pandas(block, schema, preserve_index=False) for block in table.blocks)
        texts.add_batches(schema, (own.replace_schema_metadata(None) for own in rows), {})
        return admit_columns(contract, names, len(texts), texts.__getitem__, directory)

    def _open(self, partition_key: str | None) -> ParquetDataset | TableBlocks:
        if partition_key is not None and (partition_key in ("", ".", "..") or set(partition_key) & set("/\\\0")):
            raise InvalidSettingError(
                f"The partition key {partition_key!r} cannot be part of a path. Expected no separator, and not '.' or "
                "'..'. Nothing was read; rename the partition, or use a function as the source."
            )
        path = Path(self.path.replace(PARTITION_FIELD, partition_key) if partition_key is not None else self.path)
        if path.is_dir() and self.resolved_format == "parquet":
            return open_parquet_dataset(path)
        if not path.is_file():
            raise InvalidTableError(
                f"There is no file {str(path)!r} (looked from {Path.cwd()}){_directory_note(path)}. Nothing was read; "
                "put the table there or correct the path of the source."
            )
        require_table_file(path, self.resolved_format)
        if self.resolved_format == "parquet":
            return open_parquet_dataset(path)
        # As text, because the contract converts. Guessing would turn the zip code 01000 into a number, and the country
        # NA into a missing value.
        return open_table(path, self.separator)


def _frame_of(table: ParquetDataset | TableBlocks) -> pd.DataFrame:
    if isinstance(table, ParquetDataset):
        return table.read()
    return pd.concat([pd.DataFrame(columns=[*table.names], dtype="str"), *table.blocks], ignore_index=True)


def _directory_note(path: Path) -> str:
    if path.is_dir():
        return ", but a directory, which only Parquet files can be in"
    return ", but a pipe, a socket or a device, which is not read" if path.exists() else ""


@described
@dataclass(frozen=True)
class SqlQuery:
    """Rows of a SQL query (needs the extra ``sql``), from any database that SQLAlchemy has a driver for.

    A DuckDB file (``duckdb:////path/of/the.duckdb``) is opened for reading.

    Raises
    ------
    InvalidSettingError
        If ``url_variable`` is not a name, but the URL itself, which is not shown, because it can contain a password.
    """

    query: str = setting(
        REQUIRED,
        "A SELECT statement (extra sql); :partition_key in it is bound. Use ORDER BY, because a seeded split depends "
        "on the order of the rows.",
        "SELECT * FROM people ORDER BY id",
    )
    url_variable: str = setting(
        REQUIRED,
        "Name (and not a template that reads it) of the environment variable with the SQLAlchemy URL for the query, "
        "such as duckdb:////data/my.duckdb or postgresql://user:password@host/database.",
        "WAREHOUSE_URL",
    )

    def __post_init__(self) -> None:
        if not isinstance(self.url_variable, str) or not VARIABLE_NAME.fullmatch(self.url_variable):
            raise InvalidSettingError(
                "url_variable is not the name of an environment variable (it is not shown, because it may contain a "
                "password). Expected a name of letters, digits and underscores, such as WAREHOUSE_URL; put the URL "
                "into that variable, and write neither the URL nor a template that reads it here."
            )

    def read(self, partition_key: str | None) -> pd.DataFrame:
        """Run the query."""
        url = os.environ.get(self.url_variable)
        if not url:
            raise InvalidSettingError(
                f"The environment variable {self.url_variable!r} is not set; expected an SQLAlchemy URL such as "
                "postgresql+psycopg://user:password@host/database."
            )
        return read_rows(self.query, url, self.url_variable, partition_key)


@described
@dataclass(frozen=True)
class UpstreamAsset:
    """A table that another asset of the project makes; that asset's own IO manager loads it."""

    key: Any = setting(REQUIRED, "Key of an asset of this project that makes the table.", "warehouse/people")
    io_manager_key: str = setting("io_manager", "IO manager of that asset.", "io_manager")

    @property
    def input_manager_key(self) -> str:
        """Key of the resource that loads the table inside the guard."""
        return f"guarded_{self.io_manager_key}"

    @property
    def partition_input_manager_key(self) -> str:
        """Key of the resource that loads the table inside the guard, for a check of one partition."""
        return f"guarded_partition_{self.io_manager_key}"

    @property
    def asset_key(self) -> dg.AssetKey:
        """The key in Dagster's notation."""
        return dg.AssetKey.from_user_string(self.key) if isinstance(self.key, str) else dg.AssetKey(self.key)


TableSource: TypeAlias = TableFile | SqlQuery | SparkSource | UpstreamAsset | Callable[..., pd.DataFrame]


def from_root(settings: Any, root: Path) -> Any:
    """Return settings with the relative paths of their files looked up from ``root``."""
    if isinstance(settings, TableFile):
        return replace(settings, path=str(root / settings.path))
    if not is_dataclass(settings) or isinstance(settings, type):
        return settings
    parts = {each.name: getattr(settings, each.name) for each in fields(settings)}
    files = {name: from_root(part, root) for name, part in parts.items() if isinstance(part, TableFile)}
    return replace(settings, **files) if files else settings


def upstream_inputs(**sources: TableSource) -> dict[str, dg.AssetIn]:
    """Return the Dagster inputs of the sources that are assets."""
    return {
        f"{name}_upstream": dg.AssetIn(key=source.asset_key, input_manager_key=source.input_manager_key)
        for name, source in sources.items()
        if isinstance(source, UpstreamAsset)
    }


def require_partitioned(name: str, source: TableSource) -> None:
    """Refuse a source that would give the same table for every partition, except an asset, which Dagster loads."""
    if isinstance(source, UpstreamAsset):
        return
    if isinstance(source, TableFile):
        is_partitioned = PARTITION_FIELD in source.path
        found, expected = f"the file {source.path!r}", f"{PARTITION_FIELD} in its path"
    elif isinstance(source, SparkSource):
        is_partitioned = source.is_partitioned
        found, expected = "a Spark table", f"{PARTITION_FIELD} in its name or path"
    elif isinstance(source, SqlQuery):
        is_partitioned = BOUND.search(NOT_BOUND.sub("", source.query)) is not None
        found, expected = "the rows of a query", f":{PARTITION_PARAMETER} in it, outside of texts and comments"
    else:
        is_partitioned = _takes_partition(source)
        found, expected = "the result of a function", f"a parameter {PARTITION_PARAMETER!r} of the function"
    if not is_partitioned:
        raise InvalidSettingError(
            f"The release has partitions, but its {name} is {found}, which is the same for all of them: the whole "
            f"table would be released under every key. Expected {expected}, or no partitions."
        )


def _takes_partition(source: Callable[..., pd.DataFrame]) -> bool:
    try:
        return PARTITION_PARAMETER in inspect.signature(source).parameters
    except (TypeError, ValueError):
        # Functions written in C do not always have a signature.
        return False


def read_source(
    name: str,
    source: TableSource,
    partition_key: str | None,
    inputs: dict[str, Any],
    engine: LocalEngine | SparkEngine,
    release: str,
) -> pd.DataFrame:
    """Read a table of a release from its source."""
    if isinstance(source, UpstreamAsset):
        table = inputs[f"{name}_upstream"]
    elif isinstance(source, TableFile | SqlQuery):
        table = source.read(partition_key)
    elif isinstance(source, SparkSource):
        table = source.read(partition_key, engine, f"{release} {name}")
    else:
        table = source(partition_key=partition_key) if _takes_partition(source) else source()
    if not isinstance(table, pd.DataFrame):
        raise InvalidTableError(
            f"The source {name!r} gave a {type_name(table)}; expected a pandas DataFrame. Nothing was stored."
        )
    return table
