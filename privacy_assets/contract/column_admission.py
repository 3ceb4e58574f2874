"""Admission of a table of which a few columns are read at a time, with the result and the refusals of the whole frame.

A contract decides on each column by itself, except by rules, which read the columns that they name. So a frame is only
needed for checks of the whole table: `needs_frame`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd

from privacy_assets.columns.spelling import people_of
from privacy_assets.contract.batches import refusal
from privacy_assets.contract.contract import TABLE, Failure, TableContract, broken_contract, shape_failures
from privacy_assets.contract.conversion import convert
from privacy_assets.contract.rules import broken_rules
from privacy_assets.display.progress_bar import StageProgress
from privacy_assets.storage.column_files import ColumnFiles, groups_of_columns
from privacy_assets.storage.memory import give_back_memory, memory_given_back
from privacy_assets.storage.parquet_dataset import ParquetDataset
from privacy_assets.storage.table import Table

MOST_COLUMNS: Final = 256
"""Each column takes the time to find it among all, so a table of more is read as a frame."""


class AdmittedColumns(NamedTuple):
    """An admitted table, and all of its columns as the contract converts them, as `TableContract.check` returns."""

    table: Table
    checked: pd.DataFrame | ColumnFiles


def needs_frame(contract: TableContract, names: Sequence[str]) -> bool:
    """Whether checks of a contract need all columns of a row at once, or a table of these columns is read at once."""
    checks = chain.from_iterable(column.checks for column in contract.schema.columns.values())
    of_frames = contract.schema.checks or contract.schema.unique or any(check.groupby is not None for check in checks)
    return bool(of_frames) or not len(set(names)) == len(names) <= MOST_COLUMNS


def admit_frame(contract: TableContract, table: pd.DataFrame) -> AdmittedColumns:
    """Admit a table that is in memory."""
    checked = contract.check(table)
    # It is freed before people are numbered, unless the caller keeps it.
    del table
    return AdmittedColumns(contract.with_people(checked), checked)


def admit_parquet(
    contract: TableContract,
    dataset: ParquetDataset,
    directory: Path | None = None,
    progress: Callable[[StageProgress], None] | None = None,
) -> AdmittedColumns:
    """Admit Parquet files a few columns at a time, or at once if the contract needs it; see `admit_columns`."""
    names, n_read = dataset.schema.names, 0
    if needs_frame(contract, names):
        return admit_frame(contract, dataset.read_unchanged())

    def read(some: list[str]) -> pd.DataFrame:
        nonlocal n_read
        columns = dataset.read_unchanged(some)
        n_read += len(some)
        if progress is not None:
            progress(StageProgress("columns", n_read, len(names)))
        return columns

    return admit_columns(contract, names, dataset.n_rows, read, directory)


def admit_columns(
    contract: TableContract,
    names: Sequence[str],
    n_rows: int,
    read: Callable[[list[str]], pd.DataFrame],
    directory: Path | None = None,
) -> AdmittedColumns:
    """Admit a table as `TableContract.check` and `with_people` do, and store it in files without names.

    Parameters
    ----------
    contract : TableContract
        One that does not need a frame (`needs_frame`).
    names : sequence of str
        The columns.
    n_rows : int
        The number of rows.
    read : function
        Returns some columns. All are read before anything is refused, because what cannot be read is refused first.
    directory : Path, optional
        A private directory for the files.

    Raises
    ------
    ContractError
        If the table violates the contract; all violations are counted by column and check.
    """
    failures = shape_failures(pd.DataFrame(columns=list(names), index=range(min(n_rows, 1))), contract.columns)
    is_no_table = any(column == TABLE for column, _, _ in failures)
    expected = [name for name in contract.columns if name in names]
    others = [name for name in names if name not in contract.columns]
    checked, broken = ColumnFiles(directory), list[Failure]()
    for group in memory_given_back(groups_of_columns([*expected, *others], n_rows)):
        given, converted = dict(read(group).items()), {}
        for name in group:
            column = given.pop(name)
            if name in contract.roles and not is_no_table:
                converted[name], lost = convert(column, contract.required_type(name))
                failures += [(name, check, count) for check, count in lost]
            del column
        if converted:
            result = pd.DataFrame(converted, copy=False)
            del converted
            broken += contract.check_failures(result, with_table_checks=False)
            if not failures:
                checked.add(result)
    if is_no_table:
        raise broken_contract("The table", failures)
    if not failures and contract.rules:
        broken += [(TABLE, *each) for each in broken_rules(contract.rules, checked)]
    if failures or broken:
        raise refusal(contract, failures + broken)
    return AdmittedColumns(with_people(contract, checked, directory), checked)


def with_people(contract: TableContract, checked: ColumnFiles, directory: Path | None) -> Table:
    """Store the released columns of converted rows, and the person of each row as codes."""
    if not contract.admitted_columns:
        # A file without columns has no rows.
        return pd.DataFrame(index=range(len(checked)), columns=pd.Index([], dtype="str"))
    people = ColumnFiles(directory)
    if contract.person is not None:
        people.add(pd.DataFrame({contract.person: people_of(checked[list(contract.person_columns)])}))
        give_back_memory()
    return checked.stored(contract.admitted_columns, people)
