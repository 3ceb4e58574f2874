"""The fingerprint of a table: one SHA-256 over its content as a reader sees it.

Two tables have the same fingerprint if they have the same columns in the same order, the same kind of value in each and
the same values row by row. The storage of a column in pandas (NumPy, nullable, Arrow-backed, categorical) and a Parquet
round trip do not matter, so evidence about a table also applies to the released file.

It is a digest of digests: one SHA-256 per column and 2**20 rows in row order, and one over these. How the rows are
divided into batches does not matter, and the digests of different rows can be computed separately, also on other
machines.
"""

import hashlib
import struct
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privacy_assets.columns.column_names import require_unique_names, require_unique_text_names
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.canonical_arrays import canonical_or_dictionary, canonical_type, value_bytes

ROWS_PER_DIGEST = 2**20
FORMAT = b"privacy_assets table 1"
NO_VALUES = "null"
"""The kind of a column in which every value is missing: files and frames store it in different types."""
NANOSECONDS = 1000
"""Nanoseconds in a microsecond."""


@dataclass(frozen=True)
class _Column:
    """A column as it is hashed: its name, and the type to which all its batches are converted."""

    name: str
    stored: pa.DataType
    canonical: pa.DataType

    @property
    def label(self) -> str:
        """Name of the kind of values; that of datetimes does not depend on their unit."""
        if pa.types.is_timestamp(self.canonical):
            return f"timestamp[tz={self.canonical.tz}]" if self.canonical.tz else "timestamp"
        return str(self.canonical)


class BatchFingerprint:
    """The fingerprint of a table that arrives in batches.

    Parameters
    ----------
    schema : pyarrow.Schema
        Names and types of the columns; every batch has these.
    rows_per_digest : int
        Rows of one digest. A number other than the default gives another fingerprint.

    Raises
    ------
    InvalidTableError
        If a name is repeated, or a column has values of a kind without a fingerprint.
    """

    def __init__(self, schema: pa.Schema, *, rows_per_digest: int = ROWS_PER_DIGEST) -> None:
        require_unique_names(schema.names)
        self._columns = [_Column(field.name, field.type, _batch_type(field.name, field.type)) for field in schema]
        self._rows_per_digest = rows_per_digest
        self._digests: list[list[bytes]] = [[] for _ in self._columns]
        self._has_values = [False] * len(self._columns)
        self._n_rows = 0
        self._start_digests()

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the next rows; they are not kept.

        Raises
        ------
        InvalidTableError
            If the batch has other columns or types than the schema.
        """
        expected = [(column.name, column.stored) for column in self._columns]
        if list(zip(batch.schema.names, batch.schema.types, strict=True)) != expected:
            raise InvalidTableError(
                "A batch of rows has other columns or types than the table. Nothing was computed; convert all batches "
                "to one schema."
            )
        self._n_rows += batch.num_rows
        begin = 0
        while begin < batch.num_rows:
            rows = batch.slice(begin, self._rows_per_digest - self._n_in_digest)
            begin += rows.num_rows
            self._n_in_digest += rows.num_rows
            for place, column in enumerate(self._columns):
                values = _canonical(column, rows.column(place))
                self._has_values[place] |= values.null_count < len(values)
                self._open[place].update(values)
            if self._n_in_digest == self._rows_per_digest:
                self._end_digests(self._digests)
                self._start_digests()

    def hexdigest(self) -> str:
        """Return the fingerprint of the rows so far: 64 hexadecimal digits (SHA-256)."""
        digests = [list(own) for own in self._digests]
        if self._n_in_digest:
            self._end_digests(digests)
        columns = [
            (column.name, column.label if has_values else NO_VALUES)
            for column, has_values in zip(self._columns, self._has_values, strict=True)
        ]
        return digest_of_digests(columns, self._n_rows, digests)

    def _start_digests(self) -> None:
        self._open = [RowsDigest() for _ in self._columns]
        self._n_in_digest = 0

    def _end_digests(self, digests: list[list[bytes]]) -> None:
        for own, rows in zip(digests, self._open, strict=True):
            own.append(rows.digest())


def fingerprint(table: pd.DataFrame) -> str:
    """Compute the fingerprint of a table.

    Parameters
    ----------
    table : DataFrame
        Unique text column names; columns of integers, floats, booleans, text, categories, dates, datetimes or
        durations. The index is ignored.

    Returns
    -------
    str
        64 hexadecimal digits (SHA-256): that of the Parquet file of the table, read batch by batch.

    Raises
    ------
    InvalidTableError
        If a column has values of another kind, or a name is repeated or not a string.
    """
    require_unique_text_names(table)
    arrays = {name: canonical_or_dictionary(name, table[name]) for name in table.columns}
    schema = pa.schema([(name, array.type) for name, array in arrays.items()])
    found = BatchFingerprint(schema)
    for begin in range(0, len(table), ROWS_PER_DIGEST):
        rows = [array.slice(begin, ROWS_PER_DIGEST) for array in arrays.values()]
        found.update(pa.RecordBatch.from_arrays(rows, schema=schema))
    return found.hexdigest()


_kept: dict[int, tuple[weakref.ref[pd.DataFrame], str]] = {}


def keep_fingerprint(table: pd.DataFrame, digest: str) -> None:
    """Remember the fingerprint of a table that was just read, which nobody changes, as long as it exists."""
    key = id(table)
    _kept[key] = weakref.ref(table, lambda _: _kept.pop(key, None)), digest


def kept_fingerprint(table: pd.DataFrame) -> str:
    """Return the fingerprint of a table, which is not hashed again if `keep_fingerprint` had it."""
    of, digest = _kept.get(id(table), (None, ""))
    return digest if of is not None and of() is table else fingerprint(table)


class RowsDigest:
    """The SHA-256 of the values of one column in consecutive rows, which may arrive one after the other.

    It covers the number of rows and four digests: which values are present, lengths of texts, the values, and the
    nanoseconds of datetimes below a microsecond. Datetimes count microseconds, so that their unit does not matter.
    """

    def __init__(self) -> None:
        self._n_rows = 0
        self._parts = [hashlib.sha256() for _ in range(4)]

    def update(self, values: pa.Array) -> None:
        """Add the values of the next rows, in their canonical type."""
        self._n_rows += len(values)
        if pa.types.is_timestamp(values.type):
            values, below = _microseconds(values)
            self._parts[3].update(below)
        for digest, part in zip(self._parts, value_bytes(values), strict=False):
            digest.update(part)

    def digest(self) -> bytes:
        """Return the digest of the rows so far."""
        digests = b"".join(part.digest() for part in self._parts)
        return hashlib.sha256(struct.pack("<q", self._n_rows) + digests).digest()


def _microseconds(values: pa.Array) -> tuple[pa.Array, Any]:
    """Return datetimes as microseconds, rounded down, and the remaining nanoseconds of each present one."""
    counts = values.view(pa.int64())
    if values.type.unit != "ns":
        return counts, np.zeros(len(counts) - counts.null_count, np.int16)
    whole, below = np.divmod(counts.fill_null(0).to_numpy(zero_copy_only=False), NANOSECONDS)
    is_missing = pc.is_null(counts).to_numpy(zero_copy_only=False)
    return pa.array(whole, pa.int64(), mask=is_missing), below[~is_missing].astype(np.int16)


def digest_of_digests(columns: Sequence[tuple[str, str]], n_rows: int, digests: Sequence[Sequence[bytes]]) -> str:
    """Return the fingerprint of a table from the digests of its rows.

    Parameters
    ----------
    columns : sequence of (str, str)
        Name and kind of each column; the kind is ``null`` if all values are missing.
    n_rows : int
        Rows of the table.
    digests : sequence of sequence of bytes
        For each column, the digests of its rows in row order.
    """
    sha: Any = hashlib.sha256(FORMAT)
    sha.update(struct.pack("<qq", n_rows, len(columns)))
    for texts, own in zip(columns, digests, strict=True):
        for text in texts:
            encoded = text.encode()
            sha.update(struct.pack("<q", len(encoded)))
            sha.update(encoded)
        sha.update(struct.pack("<q", len(own)))
        for digest in own:
            sha.update(digest)
    return str(sha.hexdigest())


def _batch_type(name: str, stored: pa.DataType) -> pa.DataType:
    """Return the type in which a column is hashed, from its type alone: its values arrive later."""
    values = stored.value_type if pa.types.is_dictionary(stored) else stored
    try:
        if pa.types.is_timestamp(values):
            return pa.timestamp("ns" if values.unit == "ns" else "us", values.tz)
        return canonical_type(values)
    except TypeError:
        pass
    raise InvalidTableError(
        f"Column {name!r} has values of a kind without a fingerprint (type {values}). Expected integers, floats, "
        "booleans, text, categories, dates, datetimes or durations; convert the column first."
    )


def _canonical(column: _Column, values: pa.Array) -> pa.Array:
    try:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        values = values.cast(column.canonical)
        # Not every dtype of pandas distinguishes NaN from a missing value, so the fingerprint does not.
        return pc.if_else(pc.is_nan(values), None, values) if pa.types.is_floating(values.type) else values
    except pa.ArrowException:
        pass
    raise InvalidTableError(
        f"Column {column.name!r} has values that its kind cannot store, such as datetimes beyond the year 292,277 or "
        "durations beyond 292 years. Nothing was computed; set them to missing, or to a bound of your choice."
    )
