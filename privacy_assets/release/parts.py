"""A released table as a directory of Parquet files, read and checked by its manifest."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privacy_assets.release.received_files import open_regular
from privacy_assets.setting_checks import is_integer
from privacy_assets.storage.artifact_files import read_frame
from privacy_assets.storage.parquet_parts import MOST_PARTS, part_name


def are_parts(value: object) -> bool:
    """Return whether a value describes the parts of a table in a manifest."""
    if not isinstance(value, dict) or set(value) != {"rows_per_part", "rows"}:
        return False
    each, rows = value["rows_per_part"], value["rows"]
    if not is_integer(each, 1) or not isinstance(rows, list) or not 1 < len(rows) <= MOST_PARTS:
        return False
    return all(is_integer(own, 1) for own in rows) and all(own == each for own in rows[:-1]) and rows[-1] <= each


def table_files(manifest: Mapping[str, Any]) -> list[str]:
    """Return the names of the Parquet files of a release, in the order of their rows."""
    name = f"{manifest['stage']}.parquet"
    if "parts" not in manifest:
        return [name]
    return [f"{name}/{part_name(place)}" for place in range(len(manifest["parts"]["rows"]))]


def files_of_parts(directory: Path, manifest: Mapping[str, Any], most: int) -> set[str]:
    """Return the files in the directory of the parts, at most this many; none if the directory is a link."""
    name = f"{manifest['stage']}.parquet"
    try:
        is_directory = stat.S_ISDIR(os.lstat(directory / name).st_mode)
    except FileNotFoundError:
        is_directory = False
    if "parts" not in manifest or not is_directory:
        return set()
    with os.scandir(directory / name) as entries:
        return {f"{name}/{entry.name}" for entry, _ in zip(entries, range(most), strict=False)}


def read_table(directory: Path, manifest: Mapping[str, Any]) -> tuple[pd.DataFrame | None, str]:
    """Read the table of a release whose files are as recorded; otherwise return the problem.

    Returns
    -------
    table : DataFrame or None
        The table; None if it was not read.
    problem : str
        Why it was not read; empty if a file was changed, which is reported elsewhere.
    """
    if "parts" not in manifest:
        (name,) = table_files(manifest)
        return _read(directory, name, manifest, read_frame)
    if sum(manifest["parts"]["rows"]) != manifest["n_records"]:
        return None, "the parts do not have the recorded number of records"
    tables: list[pa.Table] = []
    for name, n_rows in zip(table_files(manifest), manifest["parts"]["rows"], strict=True):
        table, problem = _read(directory, name, manifest, pq.read_table)
        if table is None:
            return None, problem
        if table.num_rows != n_rows:
            return None, "the parts do not have the recorded numbers of records"
        if tables and table.schema != tables[0].schema:
            return None, "the parts have different columns or types"
        tables.append(table)
    return pa.concat_tables(tables).to_pandas(), ""


def _read(directory: Path, name: str, manifest: Mapping[str, Any], read: Callable[[BinaryIO], Any]) -> tuple[Any, str]:
    try:
        with open_regular(directory / name) as file:
            if os.fstat(file.fileno()).st_size != manifest["files"][name]["bytes"]:
                return None, ""
            return read(file), ""
    except FileNotFoundError:
        return None, ""
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - Parquet readers can raise anything for a malicious file
        return None, f"the file {name!r} cannot be read as a table"
