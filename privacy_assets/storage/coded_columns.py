"""A table that arrives in batches, in codes: the distinct values of each column, and the code of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy_assets.columns.distinct_values import DistinctValues
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.table import StoredTable

BATCHES_AT_ONCE = 16


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column in codes.

    Attributes
    ----------
    distinct : Series
        The values that occur, in order of their first appearance and in the dtype of the column; the missing value, if
        the column has one, is the last.
    codes : ndarray of shape (n_rows,), unsigned integer
        Position of each row's value in ``distinct``.
    """

    distinct: pd.Series[Any]
    codes: NDArray[np.unsignedinteger[Any]]


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
    # A batch may lack some of the categories that have an order.
    is_whole = not table.is_in_files(name) or getattr(table.dtypes[name], "ordered", False)
    for batch in [table[[name]]] if is_whole else table.batches([name]):
        coder.add(batch)
    return coder.finish()[name]


def code_texts(table: StoredTable, name: str) -> tuple[NDArray[np.integer[Any]], int] | None:
    """Return a code for each row of a column of texts in files, and the number of codes; None for another column.

    Nearly every text may be another one. The missing value has the last code; not all codes need to occur.
    """
    kind = table.schema.field(name).type if table.is_in_files(name) else pa.null()
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    known, codes = pa.array([], pa.large_string()), []
    batches = (batch.column(0).combine_chunks() for batch in table.arrow_batches([name]))
    # Files may have codes of several widths, and texts of both types.
    encoded = (own if pa.types.is_dictionary(own.type) else own.dictionary_encode() for own in batches)
    coded = (
        pa.DictionaryArray.from_arrays(own.indices.cast(pa.int32()), own.dictionary.cast(pa.large_string()))
        for own in encoded
    )
    # All known texts are indexed again each time.
    while some := list(islice(coded, BATCHES_AT_ONCE)):
        joined = pa.chunked_array(some).unify_dictionaries().combine_chunks()
        texts = joined.dictionary
        known = pa.concat_arrays([known, texts.filter(pc.index_in(texts, known).is_null())])
        # The last place is that of the missing value, -1.
        places = np.append(pc.index_in(texts, known).to_numpy(), -1).astype(np.int32)
        codes.append(places[joined.indices.fill_null(-1).to_numpy()])
        give_back_memory()
    found = np.concatenate(codes)
    found[found < 0] = len(known)
    return found.astype(np.min_scalar_type(len(known))), len(known) + 1
