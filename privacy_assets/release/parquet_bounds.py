"""Checks of a received Parquet file before it is read: its unpacked size is bounded by its manifest.

A few bytes of Parquet can unpack to terabytes: a run of a billion equal values, a long text stored once in a dictionary
that a billion rows refer to, values that share a prefix, a codec that packs zeros a thousand to one. So the footer is
first compared with the manifest. Only the encodings and codecs that releases use are read. The cells are counted in
batches, in which a repeated text is stored once, before the table is made.
"""

from collections.abc import Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from privacy_assets.release.parquet_footer import Footer, read_footer

CODECS = frozenset({0, 1})
"""No compression, and Snappy."""
ENCODINGS = frozenset({0, 2, 3, 4, 8})
"""Plain, dictionaries, runs and packed bits; no encodings that derive a value from the previous one."""
MAX_SNAPPY_RATIO = 32
"""Snappy copies at most 64 bytes for 3; pages also have headers."""
WIDEST_FIXED_BYTES = 16
BATCH_ROWS = 16_384
MEBIBYTE = 2**20
OTHER_FOOTER = "its footer does not have the recorded columns and number of records"


def bound_problem(file: BinaryIO, columns: Sequence[str], n_records: int, max_bytes: int | None) -> str | None:
    """Return why a Parquet file must not be read; None if it may be.

    Parameters
    ----------
    file : binary file
        The file, at any position.
    columns : sequence of str
        Its columns according to the manifest.
    n_records : int
        Its number of records according to the manifest.
    max_bytes : int or None
        Largest size of its cells in memory; None for no limit.

    Notes
    -----
    Memory: one page and one batch at a time, at most `MAX_SNAPPY_RATIO` times the bytes of the file. Time: at most
    `max_bytes` cells, because each takes at least one byte.
    """
    if max_bytes is not None and n_records * max(len(columns), 1) > max_bytes:
        return _too_large(max_bytes)
    footer = read_footer(file)
    problem = _footer_problem(footer, columns, n_records, file.seek(0, 2))
    if problem is not None or max_bytes is None:
        return problem
    texts = [column.name for column in footer.columns if column.is_text]
    return _cells_problem(file, texts, n_records, max_bytes)


def _footer_problem(footer: Footer, columns: Sequence[str], n_records: int, n_bytes: int) -> str | None:
    if [column.name for column in footer.columns] != list(columns) or not all(each.is_flat for each in footer.columns):
        return OTHER_FOOTER
    if footer.n_records != n_records or sum(n_rows for n_rows, _ in footer.groups) != n_records:
        return OTHER_FOOTER
    for n_rows, chunks in footer.groups:
        if len(chunks) != len(columns) or any(chunk.n_values != n_rows for chunk in chunks):
            return OTHER_FOOTER
    everything = [chunk for _, chunks in footer.groups for chunk in chunks]
    is_usual = all(
        each.codec in CODECS and each.encodings <= ENCODINGS and not each.is_elsewhere for each in everything
    )
    if not is_usual or any(column.width > WIDEST_FIXED_BYTES for column in footer.columns):
        return "it uses an encoding or codec that releases are not written with"
    if sum(chunk.n_unpacked_bytes for chunk in everything) > MAX_SNAPPY_RATIO * n_bytes:
        return "its footer declares more data than its bytes can unpack to"
    return None


def _cells_problem(file: BinaryIO, texts: Sequence[str], n_records: int, max_bytes: int) -> str | None:
    """Count the cells batch by batch. A repeated text is stored once; other encodings of text are errors."""
    parquet = pq.ParquetFile(file, read_dictionary=list(texts))
    n_rows = n_bytes = 0
    for batch in parquet.iter_batches(batch_size=BATCH_ROWS, use_threads=False):
        n_rows += batch.num_rows
        n_bytes += sum(max(_bytes_of(column), batch.num_rows) for column in batch.columns)
        if n_rows > n_records:
            return "it has more records than recorded"
        if n_bytes > max_bytes:
            return _too_large(max_bytes)
    return None if n_rows == n_records else "it has fewer records than recorded"


def _bytes_of(column: Any) -> int:
    """Return the size of the cells of a batch if each is stored by itself."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary)
    total = pc.sum(pc.take(lengths, column.indices).cast(pa.int64())).as_py() or 0
    return int(total) + int(column.indices.nbytes)


def _too_large(max_bytes: int) -> str:
    return f"it unpacks to more than {max_bytes / MEBIBYTE:,.0f} MiB, the limit of this verification"
