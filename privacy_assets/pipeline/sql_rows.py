"""Rows of a SQL query: DuckDB through its own package, every other database through SQLAlchemy.

Integers stay integers where some are missing, and decimals stay decimals; the contract decides what to convert.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from privacy_assets.columns.column_names import positions
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.storage.arrow_frames import as_frame
from privacy_assets.storage.temporary_directories import duckdb_connection

PARTITION_PARAMETER = "partition_key"
POSTGRESQL_DRIVER = "postgresql+psycopg"
"""The driver for ``postgresql://`` URLs, which the extra ``sql`` installs."""
CHANGED_BY_DUCKDB = ("UHUGEINT", "TIME WITH TIME ZONE")
"""Large numbers become negative, and times of day lose their offset."""


def read_rows(query: str, url: str, url_variable: str, partition_key: str | None) -> pd.DataFrame:
    """Run a query with ``:partition_key`` bound; messages name ``url_variable`` and not the URL, a secret."""
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
            if place.get_backend_name() == "sqlite":
                # It chooses the directory of its temporary files once in a process, which was before the step.
                connection.exec_driver_sql("PRAGMA temp_store = MEMORY")
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
    with duckdb_connection(None if in_memory else place.database) as connection:
        relation = connection.sql(str(statement), params=values or None)
        changed = [place for place, kind in enumerate(relation.types) if str(kind) in CHANGED_BY_DUCKDB]
        if changed:
            raise InvalidTableError(
                f"{len(changed)} columns of the query ({positions(changed)}) have types that DuckDB does not hand over "
                f"unchanged: {list(CHANGED_BY_DUCKDB)}. Nothing was read; cast them, for example to VARCHAR."
            )
        rows = relation.to_arrow_table()
    return as_frame(rows)
