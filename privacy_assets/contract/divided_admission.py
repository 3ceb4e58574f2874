"""Admission of a table on the workers of a cluster, with the result and the refusals of the whole table.

Workers convert and check their rows, and count violations; the counts are summed. Admitted columns are returned as
codes with their dictionaries. Direct identifiers stay on the cluster unless a check, such as uniqueness, needs the
whole column; keyed hashes of them are returned, by which it is judged whose the rows are. Tables of a cluster have no
order. Their rows are sorted by their values, so that a table has the same digest however it is divided.
"""

from __future__ import annotations

import json
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
from numpy.typing import NDArray

from privacy_assets.contract.batches import NOT_EVALUATED, BatchAdmission, is_built_in, refusal
from privacy_assets.contract.column_admission import AdmittedColumns, with_people
from privacy_assets.contract.contract import TABLE, Failure, TableContract
from privacy_assets.contract.conversion import TEXT_DTYPE, ColumnType, convert
from privacy_assets.contract.written_values import FORMAT_KEYS
from privacy_assets.engine.protocol import gather_batches
from privacy_assets.errors import EngineError, InvalidTableError
from privacy_assets.storage.arrow_frames import as_frame
from privacy_assets.storage.coded_columns import CodedColumn, ColumnCoder
from privacy_assets.storage.column_files import ColumnFiles, groups_of_columns
from privacy_assets.storage.memory import memory_given_back

ANSWERS: Final = pa.schema([("counts", pa.binary()), ("rows", pa.binary())])
"""What workers send: either their counts, as JSON, or rows, as an Arrow stream."""
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
            yield _answer(counts=json.dumps({"problem": problem}).encode())

    def _answers(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        admission = BatchAdmission(TableContract(self.schema)) if self.schema is not None else None
        for chunk in gather_batches(batches, ROWS_PER_CHUNK):
            for begin in range(0, chunk.num_rows, ROWS_PER_CHUNK):
                rows = as_frame(chunk.slice(begin, ROWS_PER_CHUNK))
                if admission is not None:
                    rows = admission.check(rows)
                hashes = {name: _hashed(rows[name], self.hash_key) for name in self.hashed if name in rows.columns}
                kept = rows[[name for name in self.kept if name in rows.columns]]
                yield _answer(rows=_packed(kept.assign(**hashes)))
        if admission is not None:
            yield _answer(counts=json.dumps({"counts": admission.counts}).encode())


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

    @property
    def task(self) -> AdmitRows:
        """The function that the workers apply to the rows of `columns`."""
        kept = tuple(name for name in self.columns if name in self._kept)
        return AdmitRows(self._schema, kept, self._hashed, secrets.token_hex(8))

    @property
    def _hashed(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name not in self._kept)

    def finish(self, answers: Iterable[Mapping[str, Any]], directory: Path | None = None) -> AdmittedColumns:
        """Sum the answers of the workers, sort the rows, and make the checks that need whole columns.

        All violations are counted by column and check. Removed columns are hashes. The rows are in files without names,
        in a private directory if one is given.
        """
        contract = self._contract
        types = {name: contract.required_type(name) for name in self.columns}
        coded = self._gather(answers, types)
        losses, failures = self._admission.losses(), self._admission.check_failures()
        admitted = [name for name in self.columns if name in (*contract.released_columns, *contract.person_columns)]
        n_rows = self._admission.counts[0]
        order = _order(coded, admitted, n_rows)
        columns = ColumnFiles(directory)
        for group in memory_given_back(groups_of_columns(list(coded), n_rows)):
            frame = _taken({name: coded.pop(name) for name in group}, order)
            for name in (each for each in group if each not in self._hashed):
                frame[name] = _narrowed(frame[name], types[name])
            for name in self._admission.mixed_columns & set(group):
                frame[name] = pd.Series(pd.NaT, frame.index, dtype=types[name].label)
            columns.add(frame)
        whole = columns[[name for name in columns if name in self._checked_here]]
        if len(whole.columns):
            failures += contract.check_failures(whole, with_table_checks=not losses)
        if losses or failures:
            raise refusal(contract, losses + sorted(failures, key=self._place_of_check))
        return AdmittedColumns(with_people(contract, columns, directory), columns)

    def _gather(self, answers: Iterable[Mapping[str, Any]], types: Mapping[str, ColumnType]) -> dict[str, CodedColumn]:
        coder = ColumnCoder()
        for counts, rows in _read(answers):
            if counts is not None:
                self._admission.include(counts)
            if rows is not None:
                typed = {
                    str(name): column.astype("Int64") if name in self._hashed else _typed(column, types[str(name)])
                    for name, column in rows.items()
                }
                coder.add(pd.DataFrame(typed))
        return dict(coder.finish())

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


def gather_rows(answers: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows that workers sent unchanged, sorted by their values, missing ones last."""
    n_rows, coder = 0, ColumnCoder()
    for _, rows in _read(answers):
        if rows is not None:
            coder.add(rows)
            n_rows += len(rows)
    coded = coder.finish()
    return _taken(coded, _order(coded, list(coded), n_rows))


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


def _answer(counts: bytes | None = None, rows: bytes | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([counts], pa.binary()), pa.array([rows], pa.binary())], schema=ANSWERS)


def _packed(rows: pd.DataFrame) -> bytes:
    """Write rows as codes with a dictionary for each column."""
    columns = {str(name): _coded(column) for name, column in rows.items()}
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _coded(column: pd.Series) -> pa.Array:
    if isinstance(column.dtype, pd.CategoricalDtype):
        # Categories without any value do not have a type.
        column = column.astype(object) if column.cat.categories.empty else column.cat.remove_unused_categories()
    values = pa.array(column, from_pandas=True)
    is_coded = pa.types.is_dictionary(values.type) or pa.types.is_null(values.type)
    return values if is_coded else values.dictionary_encode()


def _read(answers: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Any, pd.DataFrame | None]]:
    """Yield the counts, or the rows, of each answer; an error if a worker could not check its rows."""
    for answer in answers:
        counts, rows = answer["counts"], None
        if answer["rows"] is not None:
            with pa.ipc.open_stream(pa.py_buffer(bytes(answer["rows"]))) as stream:
                table = stream.read_all()
            plain = [_plain(column) for column in table.columns]
            rows = as_frame(pa.table(plain, names=table.column_names))
        found = {} if counts is None else json.loads(bytes(counts))
        if "problem" in found:
            raise EngineError(
                f"A worker could not read or check its rows of the table ({found['problem']}). Nothing was admitted; "
                "the text of the error stayed there, because it may quote a record. Compare the types of the columns "
                "with the contract."
            )
        yield found.get("counts"), rows


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


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


def _order(columns: Mapping[str, CodedColumn], keys: Sequence[str], n_rows: int) -> NDArray[np.int64]:
    """Return the rows sorted by their values in some columns, by the first column first, missing ones last."""
    return np.lexsort([_ranks(columns[name]) for name in reversed(keys)]) if keys else np.arange(n_rows)


def _taken(columns: Mapping[str, CodedColumn], rows: NDArray[np.int64]) -> pd.DataFrame:
    names = pd.Index(list(columns), dtype=TEXT_DTYPE)
    return pd.DataFrame({name: column.take(rows) for name, column in columns.items()}, range(len(rows)), names)


def _ranks(column: CodedColumn) -> NDArray[Any]:
    """Return the position of each row's value among the sorted values of the column."""
    in_order = column.distinct.sort_values(kind="stable", na_position="last").index.to_numpy()
    rank = np.empty(len(in_order), column.codes.dtype)
    rank[in_order] = np.arange(len(in_order))
    ranks: NDArray[Any] = rank[column.codes]
    return ranks
