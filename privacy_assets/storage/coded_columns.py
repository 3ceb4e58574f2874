"""A table that arrives in batches, in codes: the distinct values of each column, and the code of each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.columns import factorizing
from privacy_assets.columns.distinct_values import DistinctValues
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.column_files import ColumnFiles
from privacy_assets.storage.memory import memory_given_back
from privacy_assets.storage.table import StoredTable, Table

FEWEST_REPEATED = 4
"""Rows for each different value of the first ones from which on codes need less memory and time than the values."""


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column in codes.

    Attributes
    ----------
    distinct : Series
        The values that occur, in order of their first appearance and in the dtype of the column; the missing value, if
        the column has one, is the last.
    codes : ndarray of shape (n_rows,), integer
        Position of each row's value in ``distinct``.
    """

    distinct: pd.Series[Any]
    codes: NDArray[np.integer[Any]]


class CodedTexts(NamedTuple):
    """The place of each row's text in ``texts``, of which not all need to occur; ``len(texts)`` if it is missing."""

    codes: NDArray[np.signedinteger[Any]]
    texts: pa.LargeStringArray


class ColumnCoder:
    """Codes columns that arrive in batches."""

    def __init__(self) -> None:
        self._values: dict[str, DistinctValues] = {}
        self._numbers: dict[str, list[NDArray[np.signedinteger[Any]]]] = {}

    def add(self, batch: pd.DataFrame) -> None:
        """Code the next rows.

        Raises
        ------
        InvalidTableError
            If the batch has other columns than the previous batches.
        """
        if not self._values:
            self._values = {name: DistinctValues() for name in batch.columns}
            self._numbers = {name: [np.zeros(0, np.int8)] for name in batch.columns}
        if list(batch.columns) != list(self._values):
            raise InvalidTableError("The batches of the table have different columns. Nothing was coded.")
        for name, values in self._values.items():
            numbers = values.add(batch[name])
            self._numbers[name].append(numbers.astype(np.min_scalar_type(-1 - len(values))))

    def finish(self) -> Mapping[str, CodedColumn]:
        """Return the columns; the coder cannot be used again."""
        return {name: self._finished(name) for name in list(self._values)}

    def _finished(self, name: str) -> CodedColumn:
        values, numbers = self._values.pop(name), np.concatenate(self._numbers.pop(name))
        has_missing = bool((numbers < 0).any())
        # -1, the missing value, is the last.
        code_of = np.arange(len(values) + 1).astype(np.min_scalar_type(max(len(values) - 1 + has_missing, 0)))
        return CodedColumn(values.series(name, with_missing=has_missing), code_of[numbers])


def code_stored(table: StoredTable, name: str) -> CodedColumn:
    """Code a column of a stored table, of which some rows are in memory at a time."""
    coder = ColumnCoder()
    for batch in _batches(table, name):
        coder.add(batch)
    return coder.finish()[name]


def code_repeated(table: Table | ColumnFiles, name: str) -> CodedColumn | None:
    """Code a column of texts or whole numbers whose values repeat; None for another one.

    It must be in files. A missing text is always the last value. Floats are not coded: 0.0 and -0.0 would be one value.
    """
    if not isinstance(table, StoredTable) or table.empty or not table.is_in_files(name):
        return None
    dtype = table.dtypes[name]
    is_whole = types.is_integer_dtype(dtype) and not isinstance(dtype, pd.ArrowDtype)
    if not (is_whole or isinstance(dtype, pd.StringDtype)):
        return None
    first = next((batch[name] for batch in table.batches([name])), None)
    # With missing values, NumPy's integers are floats when they are read.
    has_floats = isinstance(dtype, np.dtype) and table.has_missing(name)
    if first is None or FEWEST_REPEATED * first.nunique() > len(first) or has_floats:
        return None
    if is_whole:
        return code_stored(table, name)
    texts = code_texts(table, name)
    if texts is None:
        return None
    values = pa.concat_arrays([texts.texts, pa.nulls(1, texts.texts.type)])
    return CodedColumn(pd.Series(pd.array(values, dtype=dtype), name=name), texts.codes)


def distinct_stored(table: StoredTable, name: str) -> pd.Series[Any]:
    """Return the ``distinct`` values of `code_stored`, without any codes."""
    values, has_missing = DistinctValues(), False
    for batch in _batches(table, name):
        has_missing |= bool((values.add(batch[name]) < 0).any())
    return values.series(name, with_missing=has_missing)


def _batches(table: StoredTable, name: str) -> Iterator[pd.DataFrame]:
    # A batch may lack some of the categories that have an order.
    is_whole = table.empty or not table.is_in_files(name) or getattr(table.dtypes[name], "ordered", False)
    return iter([table[[name]]]) if is_whole else table.batches([name])


def code_texts(table: StoredTable, name: str) -> CodedTexts | None:
    """Code a column of texts in files, of which nearly every one may be different; None for another column."""
    kind = table.schema.field(name).type if table.is_in_files(name) else pa.null()
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    batches = memory_given_back(table.arrow_batches([name]))
    codes, texts = factorizing.code_batches_of_texts(batch.column(0).combine_chunks() for batch in batches)
    codes[codes < 0] = len(texts)
    return CodedTexts(codes, texts)
