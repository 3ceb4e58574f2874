"""Admission of a table on the workers of a cluster, with the result and the refusals of the whole table.

Workers convert and check their rows, and count violations; the counts are summed. Direct identifiers stay on the
cluster unless a check, such as uniqueness, needs the whole column; keyed hashes of them are returned, by which it is
judged whose the rows are.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa

from privacy_assets.contract.batches import NOT_EVALUATED, BatchAdmission, is_built_in, refusal
from privacy_assets.contract.column_admission import AdmittedColumns, with_people
from privacy_assets.contract.contract import TABLE, Failure, TableContract
from privacy_assets.contract.conversion import TEXT_DTYPE, ColumnType, convert
from privacy_assets.contract.gathered_rows import GatheredRows, SendRows, counted
from privacy_assets.contract.written_values import FORMAT_KEYS
from privacy_assets.engine.protocol import gather_batches
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.arrow_frames import as_frame
from privacy_assets.storage.column_files import ColumnFiles, groups_of_columns
from privacy_assets.storage.memory import memory_given_back

ROWS_PER_CHUNK: Final = 1 << 16
SUPPORTED: Final = frozenset(
    {
        *("string", "char", "varchar", "boolean", "byte", "short", "integer", "long", "float", "double", "decimal"),
        *("date", "timestamp", "timestamp_ntz", "void"),
    }
)
"""Spark's types with one value per cell."""


@dataclass(frozen=True)
class AdmitRows:
    """Checks rows on a worker, and answers with the `kept` columns, and with hashes of the `hashed` ones.

    ``schema`` has only pandera's own checks of single values; by default, rows are sent as they are.
    """

    schema: pandera.DataFrameSchema | None
    kept: tuple[str, ...]
    send: SendRows
    hashed: tuple[str, ...] = ()
    hash_key: str = field(default="", repr=False)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Check the rows of one partition."""
        problem = ""
        try:
            with warnings.catch_warnings():
                # Warnings may quote values, and a worker's log is not private.
                warnings.simplefilter("ignore")
                yield from self._answers(batches)
        except Exception as error:  # noqa: BLE001 - the worker would log the text of the error, which may quote values
            problem = type(error).__name__
        if problem:
            yield counted(problem=problem)

    def _answers(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        admission = BatchAdmission(TableContract(self.schema)) if self.schema is not None else None
        yield from self.send(self._admitted(batches, admission))
        if admission is not None:
            yield counted(counts=admission.counts)

    def _admitted(self, batches: Iterator[pa.RecordBatch], admission: BatchAdmission | None) -> Iterator[pd.DataFrame]:
        for chunk in gather_batches(batches, ROWS_PER_CHUNK):
            for begin in range(0, chunk.num_rows, ROWS_PER_CHUNK):
                rows = as_frame(chunk.slice(begin, ROWS_PER_CHUNK))
                if admission is not None:
                    rows = admission.check(rows)
                hashes = {name: _hashed(rows[name], self.hash_key) for name in self.hashed if name in rows.columns}
                yield rows[[name for name in self.kept if name in rows.columns]].assign(**hashes)


class DividedAdmission:
    """The contract's decision on a table whose rows are checked on workers.

    ``columns`` are those of the table, with Spark's names of their types; types with more than one value per cell, or
    that cannot be read, are refused.
    """

    def __init__(self, contract: TableContract, columns: Sequence[tuple[str, str]]) -> None:
        self._contract = contract
        self._checked_here = _checked_here(contract)
        self._schema = _for_workers(contract, self._checked_here)
        self._admission = BatchAdmission(TableContract(self._schema))
        self._kept = {*contract.released_columns, *contract.person_columns} | self._checked_here
        names = [name for name, _ in columns]
        self._admission.check(pd.DataFrame(columns=pd.Index(names, dtype=object)))
        require_supported([(name, kind) for name, kind in columns if name in contract.columns])
        self.columns = tuple(name for name in contract.columns if name in names)

    def task(self, staging: Path | None) -> AdmitRows:
        """Return the function that the workers apply to the rows of `columns`."""
        kept, admitted = (
            tuple(name for name in self.columns if name in some)
            for some in (self._kept, {*self._contract.released_columns, *self._contract.person_columns})
        )
        return AdmitRows(self._schema, kept, SendRows(staging, admitted), self._hashed, secrets.token_hex(8))

    @property
    def _hashed(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name not in self._kept)

    def finish(
        self, answers: Iterable[Mapping[str, Any]], rows: GatheredRows, directory: Path | None
    ) -> AdmittedColumns:
        """Sum the counts in the answers, gather the rows, and make the checks that need whole columns.

        All violations are counted by column and check. Removed columns are hashes. The rows are in files without names,
        in a private directory if one is given.
        """
        contract = self._contract
        for answer in answers:
            counts = rows.add(answer)
            if counts is not None:
                self._admission.include(counts)
        losses, failures = self._admission.losses(), self._admission.check_failures()
        rows.require(self._admission.counts[0])
        columns = ColumnFiles(directory)
        for group in memory_given_back(groups_of_columns(rows.columns, self._admission.counts[0])):
            frame = rows.read(group)
            columns.add(pd.DataFrame({name: self._admitted(frame.pop(name), name) for name in group}, copy=False))
        whole = columns[[name for name in columns if name in self._checked_here]]
        if len(whole.columns):
            failures += contract.check_failures(whole, with_table_checks=not losses)
        if losses or failures:
            raise refusal(contract, losses + sorted(failures, key=self._place_of_check))
        return AdmittedColumns(with_people(contract, columns, directory), columns)

    def _admitted(self, column: pd.Series, name: str) -> pd.Series:
        """Return a column in the dtype of the whole table."""
        if name in self._hashed:
            return column.astype("Int64")
        wanted = self._contract.required_type(name)
        if name in self._admission.mixed_columns:
            return pd.Series(pd.NaT, column.index, dtype=wanted.label)
        return _narrowed(_typed(column, wanted), wanted)

    def _place_of_check(self, failure: Failure) -> tuple[int, int]:
        """Return the position of a failure in a refusal of the whole table."""
        name, check, _ = failure
        if name == TABLE:
            return (-1, 0) if check == "is_unique" else (len(self.columns), 0)
        names = [
            self._contract.name_of_check(name, place)
            for place in range(len(self._contract.schema.columns[name].checks))
        ]
        plain = check.removesuffix(NOT_EVALUATED)
        return self.columns.index(name), names.index(plain) if plain in names else -1


def require_supported(columns: Sequence[tuple[str, str]]) -> None:
    """Refuse types of Spark that have several values in a cell, or bytes."""
    unsupported = {name: kind for name, kind in columns if kind not in SUPPORTED}
    if unsupported:
        raise InvalidTableError(
            f"Columns of the Spark table have types that a contract cannot describe: {unsupported}. Expected text, "
            "numbers, booleans, dates and timestamps. Nothing was read; take such columns apart, or leave them out."
        )


def _checked_here(contract: TableContract) -> set[str]:
    """Return the columns whose checks workers cannot decide.

    Functions of the user may also decide on each value, but workers may lack the module that defines them. Their names
    are those that the contract recorded before they were given a table, so a contract is not made from them again.
    """
    schema = contract.schema
    if schema.checks:
        return set(contract.columns)
    found = {schema.unique} if isinstance(schema.unique, str) else {*(schema.unique or [])}
    for name, column in schema.columns.items():
        if column.unique or not all(is_built_in(check) for check in column.checks):
            found.add(str(name))
    return found.union(*(rule.columns for rule in contract.rules))


def _for_workers(contract: TableContract, checked_here: set[str]) -> pandera.DataFrameSchema:
    """Return the contract with the checks of the other columns, without the settings that only later stages need."""
    columns = {}
    for name, column in contract.schema.columns.items():
        metadata = {key: value for key, value in column.metadata.items() if key in ("role", "person", *FORMAT_KEYS)}
        checks = [] if name in checked_here else column.checks
        columns[name] = pandera.Column(column.dtype, checks, nullable=column.nullable, metadata=metadata)
    return pandera.DataFrameSchema(columns)


def _hashed(column: pd.Series, key: str) -> pd.Series:
    """Return keyed hashes of values, by which equal ones are found, and nothing else."""
    hashes = pd.util.hash_pandas_object(column.astype(str), index=False, hash_key=key)
    return hashes.astype(np.int64).astype("Int64").mask(column.isna())


def _typed(column: pd.Series, wanted: ColumnType) -> pd.Series:
    """Return converted values in the dtype of all batches of the column."""
    if wanted.kind == "category":
        return convert(column, wanted).column
    dtypes: dict[str, Any] = {"integer": "Int64", "float": "float64", "boolean": "boolean", "text": TEXT_DTYPE}
    return column.astype(dtypes.get(wanted.kind, wanted.label))


def _narrowed(column: pd.Series, wanted: ColumnType) -> pd.Series:
    """Return a column that cannot have missing values, and has none, in the dtype that does not support them."""
    plain: Any = {"integer": "int64", "boolean": "bool"}.get(wanted.kind)
    return column if plain is None or wanted.nullable or column.isna().any() else column.astype(plain)
