"""Version 2 of the fingerprint of a table, computed from batches of its rows.

Version 1 reads a column from end to end, so the whole table must be in memory. Version 2 is a digest of digests: one
SHA-256 per column and 2**20 rows in row order, and one over these. How the rows are cut into batches does not matter,
and the digests of different rows can be computed apart from each other, on other machines as well.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.fingerprint import (
    canonical_array,
    canonical_type,
    fingerprint,
    require_unique_names,
    require_unique_text_names,
    update_with_values,
)

ROWS_PER_DIGEST = 2**20
FINGERPRINT_VERSIONS = (1, 2)
BATCH_FINGERPRINT_VERSION = b"privacy_assets table 2"
NO_VALUES = "null"
"""The kind of a column in which every value is missing: files and frames store it in different types."""
NANOSECONDS = 1000
"""Nanoseconds in a microsecond."""


@dataclass(frozen=True)
class _Column:
    """A column as it is hashed: its name, and the type that all its batches are converted to."""

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
        Rows of one digest. Any other number than the default gives another fingerprint.

    Raises
    ------
    InvalidTableError
        If a name is repeated, or a column has values of a kind that has no fingerprint.
    """

    def __init__(self, schema: pa.Schema, *, rows_per_digest: int = ROWS_PER_DIGEST) -> None:
        require_unique_names(schema.names)
        self._columns = [_Column(field.name, field.type, _batch_type(field.name, field.type)) for field in schema]
        self._rows_per_digest = rows_per_digest
        self._digests: list[list[bytes]] = [[] for _ in self._columns]
        self._has_values = [False] * len(self._columns)
        self._waiting: list[pa.RecordBatch] = []
        self._n_waiting = self._n_rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the next rows; at most ``rows_per_digest`` of them are kept until there are enough for a digest.

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
        for place, values in enumerate(batch.columns):
            self._has_values[place] = self._has_values[place] or _has_values(values)
        begin = 0
        while begin < batch.num_rows:
            rows = batch.slice(begin, self._rows_per_digest - self._n_waiting)
            begin += rows.num_rows
            self._waiting.append(rows)
            self._n_waiting += rows.num_rows
            if self._n_waiting == self._rows_per_digest:
                for own, digests in zip(self._digests, self._digests_of_waiting(), strict=True):
                    own += digests
                self._waiting, self._n_waiting = [], 0

    def hexdigest(self) -> str:
        """Return the fingerprint of the rows so far: 64 hexadecimal digits (SHA-256)."""
        last = self._digests_of_waiting()
        digests = [[*own, *rest] for own, rest in zip(self._digests, last, strict=True)]
        columns = [
            (column.name, column.label if has_values else NO_VALUES)
            for column, has_values in zip(self._columns, self._has_values, strict=True)
        ]
        return digest_of_digests(columns, self._n_rows, digests)

    def _digests_of_waiting(self) -> list[list[bytes]]:
        """Return the digest of the rows that wait, by column; without rows there is none."""
        if not self._waiting:
            return [[] for _ in self._columns]
        return [
            [digest_of_rows(pa.concat_arrays([_canonical(column, batch.column(place)) for batch in self._waiting]))]
            for place, column in enumerate(self._columns)
        ]


def fingerprint_of_batches(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, rows_per_digest: int = ROWS_PER_DIGEST
) -> str:
    """Compute version 2 of the fingerprint of a table from batches of its rows, in their order."""
    found = BatchFingerprint(schema, rows_per_digest=rows_per_digest)
    for batch in batches:
        found.update(batch)
    return found.hexdigest()


def table_fingerprint(table: pd.DataFrame, version: int) -> str:
    """Compute the fingerprint of a frame in one of the versions.

    Version 2 is that of the Parquet file that the frame is written to, read batch by batch.
    """
    if version == 1:
        return fingerprint(table)
    if version not in FINGERPRINT_VERSIONS:
        raise ValueError(f"there is no version {version!r} of the fingerprint")
    require_unique_text_names(table)
    arrays = {name: canonical_array(name, table[name]) for name in table.columns}
    schema = pa.schema([(name, array.type) for name, array in arrays.items()])
    found = BatchFingerprint(schema)
    for begin in range(0, len(table), ROWS_PER_DIGEST):
        rows = [array.slice(begin, ROWS_PER_DIGEST) for array in arrays.values()]
        found.update(pa.RecordBatch.from_arrays(rows, schema=schema))
    return found.hexdigest()


def digest_of_rows(values: pa.Array) -> bytes:
    """Return the SHA-256 of the values of one column in consecutive rows, in their canonical type."""
    sha = hashlib.sha256(struct.pack("<q", len(values)))
    if not pa.types.is_timestamp(values.type):
        update_with_values(sha, values)
        return sha.digest()
    # In microseconds, with what is left of nanoseconds only where there is some: so the unit does not matter.
    counts = values.view(pa.int64())
    if values.type.unit != "ns":
        update_with_values(sha, counts)
        return sha.digest()
    present = counts.fill_null(0).to_numpy(zero_copy_only=False)
    whole, rest = np.divmod(present, NANOSECONDS)
    is_missing = None if not counts.null_count else pc.is_null(counts).to_numpy(zero_copy_only=False)
    update_with_values(sha, pa.array(whole, mask=is_missing))
    if rest.any():
        sha.update(rest.astype(np.int16))
    return sha.digest()


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
    sha: Any = hashlib.sha256(BATCH_FINGERPRINT_VERSION)
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
    """Return the type that a column is hashed in, from its type alone: its values arrive later."""
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


def _has_values(values: pa.Array) -> bool:
    if values.null_count == len(values):
        return False
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return bool(pc.any(pc.invert(values.is_null(nan_is_null=True))).as_py())


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
