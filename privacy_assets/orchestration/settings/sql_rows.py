"""Rows of a SQL query: DuckDB through its own package, every other database through SQLAlchemy.

Integers stay integers where some are missing, and decimals stay decimals; the contract decides what to convert.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from privacy_assets.errors import InvalidSettingError, InvalidTableError

PARTITION_PARAMETER = "partition_key"
POSTGRESQL_DRIVER = "postgresql+psycopg"
"""The driver for ``postgresql://`` URLs, which the extra ``sql`` installs."""


def read_rows(query: str, url: str, url_variable: str, partition_key: str | None) -> pd.DataFrame:
    """Run a query.

    Parameters
    ----------
    query : str
        A SELECT statement; ``:partition_key`` in it is bound.
    url : str
        SQLAlchemy URL. It is not shown, because it may contain a password.
    url_variable : str
        The environment variable of the URL, for messages.
    partition_key : str or None
        The partition that is materialized.

    Raises
    ------
    InvalidSettingError
        If a package is missing, the URL is not one, or the query has other parameters.
    InvalidTableError
        If there is no such DuckDB file.
    """
    if find_spec("sqlalchemy") is None:
        raise InvalidSettingError("A SqlQuery needs SQLAlchemy: install privacy-assets[sql].")
    import sqlalchemy

    try:
        place = sqlalchemy.make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        place = None
    if place is None:
        raise InvalidSettingError(
            f"The environment variable {url_variable!r} does not contain a SQLAlchemy URL. Expected one such as "
            "postgresql+psycopg://user:password@host/database or duckdb:////path/of/the.duckdb. Nothing was read."
        )
    parameters = _parameters(query, partition_key)
    if place.get_backend_name() == "duckdb":
        return _read_duckdb(query, place, url_variable, parameters)
    if place.drivername == "postgresql":
        place = place.set(drivername=POSTGRESQL_DRIVER)
    engine = sqlalchemy.create_engine(place, hide_parameters=True)
    try:
        with engine.connect() as connection:
            return pd.read_sql_query(
                sqlalchemy.text(query),
                connection,
                params=parameters or None,
                coerce_float=False,
                dtype_backend="numpy_nullable",
            )
    finally:
        engine.dispose()


def _parameters(query: str, partition_key: str | None) -> dict[str, str]:
    """Bind the parameters that the query names."""
    import sqlalchemy

    named = sorted(sqlalchemy.text(query).compile().params)
    if not named:
        return {}
    unknown = [name for name in named if name != PARTITION_PARAMETER]
    if unknown:
        raise InvalidSettingError(
            f"The query has the parameters {unknown}; only :{PARTITION_PARAMETER} is bound. Write the values into the "
            "query; a colon that is not a parameter is written as \\:. Nothing was read."
        )
    if partition_key is None:
        raise InvalidSettingError(
            f"The query names :{PARTITION_PARAMETER}, but the release has no partitions. Give it partitions, or "
            "remove the parameter. Nothing was read."
        )
    return {PARTITION_PARAMETER: partition_key}


def _read_duckdb(query: str, place: Any, url_variable: str, parameters: Mapping[str, str]) -> pd.DataFrame:
    """Open the file read-only, so that other processes can read it and no row can change."""
    if find_spec("duckdb") is None:
        raise InvalidSettingError("A SqlQuery of DuckDB needs its package: install privacy-assets[sql].")
    if place.query or place.host:
        raise InvalidSettingError(
            f"The DuckDB URL in {url_variable!r} has a host or options, which are not passed on. Expected "
            "duckdb:///relative/path, duckdb:////absolute/path, or duckdb:// to query files. Nothing was read."
        )
    import duckdb
    import sqlalchemy
    from sqlalchemy.engine.default import DefaultDialect

    in_memory = place.database in (None, "", ":memory:")
    if not in_memory and not Path(place.database).is_file():
        raise InvalidTableError(
            f"There is no DuckDB file {place.database!r} (looked from {Path.cwd()}), which {url_variable!r} names. "
            "Nothing was read; correct the variable."
        )
    # SQLAlchemy reads :name, casts and escapes as for every other database; DuckDB needs $1.
    statement = sqlalchemy.text(query).compile(dialect=DefaultDialect(paramstyle="numeric_dollar"))
    values = [parameters[name] for name in statement.positiontup or ()]
    with duckdb.connect(":memory:" if in_memory else place.database, read_only=not in_memory) as connection:
        rows = connection.sql(str(statement), params=values or None).to_arrow_table()
    table: pd.DataFrame = rows.to_pandas(types_mapper=_nullable_types().get)
    return table


def _nullable_types() -> dict[Any, Any]:
    """Return the pandas types of integers and booleans that allow missing values."""
    import pyarrow as pa

    whole = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint8(): pd.UInt8Dtype(),
        pa.uint16(): pd.UInt16Dtype(),
        pa.uint32(): pd.UInt32Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
    }
    return whole | {pa.bool_(): pd.BooleanDtype()}
