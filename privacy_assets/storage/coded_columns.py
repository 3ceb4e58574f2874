"""A table in codes on disk: the distinct values of each column in memory, the code of each row in a mapped file.

The files are without a name: they disappear with the process, however it ends, and cannot be opened by anyone else. The
system writes their pages out and reads them again as memory allows.
"""

from __future__ import annotations

import mmap
import secrets
import tempfile
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.distinct_values import DistinctValues
from privacy_assets.errors import InvalidTableError

ROWS_PER_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column in codes.

    Attributes
    ----------
    distinct : Series
        The values that occur, in order of their first appearance and in the dtype of the column; the missing value, if
        the column has one, is the last.
    codes : ndarray of shape (n_rows,), unsigned integer
        Position of each row's value in ``distinct``, in a mapped file.
    directory : Path or None
        Where the file was made, and where files of codes derived from it will be.
    """

    distinct: pd.Series[Any]
    codes: NDArray[np.unsignedinteger[Any]]
    directory: Path | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.codes)

    def take(self, rows: NDArray[np.integer[Any]]) -> pd.Series[Any]:
        """Return the values of some rows."""
        return self.distinct.take(self.codes[rows].astype(np.int64)).reset_index(drop=True)

    def translated(self, code_of: NDArray[Any]) -> NDArray[Any]:
        """Return another code for each row, in a mapped file: that of its value in ``distinct``."""
        codes = self.codes
        return mapped(len(codes), code_of.dtype, self.directory, lambda begin, stop: code_of[codes[begin:stop]])


class ColumnCoder:
    """Codes columns that arrive in batches; to be used in a ``with`` statement, which removes its files.

    Parameters
    ----------
    directory : Path, optional
        Where the files are made, such as a private directory; by default that for temporary files.
    hashed : collection of str
        Columns of text without missing values in which nearly every value may differ. Their distinct values are keyed
        hashes of 64 bits, so that texts are not kept; two texts may have the same hash.
    """

    def __init__(self, directory: Path | None = None, hashed: Collection[str] = ()) -> None:
        self._directory = directory
        self._hashed, self._hash_key = hashed, secrets.token_hex(8)
        self._values: dict[str, DistinctValues] = {}
        self._files: dict[str, IO[bytes]] = {}
        self._open = ExitStack()
        self._has_missing: dict[str, bool] = {}
        self._n_rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def add(self, batch: pd.DataFrame) -> None:
        """Code the next rows.

        Raises
        ------
        InvalidTableError
            If the batch has other columns than the previous batches.
        """
        if not self._values:
            for name in batch.columns:
                self._values[name], self._has_missing[name] = DistinctValues(), False
                file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115 - the stack closes it
                self._files[name] = self._open.enter_context(file)
        if list(batch.columns) != list(self._values):
            raise InvalidTableError("The batches of the table have different columns. Nothing was coded.")
        for name, values in self._values.items():
            if name in self._hashed:
                hashes = pd.util.hash_pandas_object(batch[name], index=False, hash_key=self._hash_key)
                self._files[name].write(hashes.to_numpy(np.uint64).data)
                continue
            numbers = values.add(batch[name])
            self._has_missing[name] |= bool((numbers < 0).any())
            self._files[name].write(numbers.astype(np.int32).data)
        self._n_rows += len(batch)

    def finish(self) -> Mapping[str, CodedColumn]:
        """Return the columns; the coder cannot be used again."""
        return {
            name: self._finished_hashes(name) if name in self._hashed else self._finished(name)
            for name in list(self._values)
        }

    def _finished(self, name: str) -> CodedColumn:
        values, has_missing = self._values.pop(name), self._has_missing[name]
        with self._files.pop(name) as file:
            file.seek(0)
            # -1, the missing value, is the last.
            dtype = np.min_scalar_type(max(len(values) - 1 + has_missing, 0))
            code_of = np.append(np.arange(len(values)), len(values)).astype(dtype)
            # Read instead of mapped, so that its pages do not count as memory of the process.
            codes = mapped(
                self._n_rows,
                dtype,
                self._directory,
                lambda begin, stop: code_of[np.fromfile(file, np.int32, stop - begin)],
            )
        return CodedColumn(values.series(name, with_missing=has_missing), codes, self._directory)

    def _finished_hashes(self, name: str) -> CodedColumn:
        with self._files.pop(name) as file:
            file.seek(0)
            numbers, distinct = pd.factorize(np.fromfile(file, np.uint64))
        dtype = np.min_scalar_type(max(len(distinct) - 1, 0))
        codes = mapped(self._n_rows, dtype, self._directory, lambda begin, stop: numbers[begin:stop])
        return CodedColumn(pd.Series(distinct, name=name), codes, self._directory)


def unload(array: NDArray[Any]) -> None:
    """Let the system take back the memory of codes from `mapped`; codes that are used again are read again.

    Its mapping is shared, so what was written into the codes stays in the file.
    """
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def mapped(n_rows: int, dtype: Any, directory: Path | None, block: Any) -> NDArray[Any]:
    """Return an array in a file without a name; ``block(begin, stop)`` gives its content, block by block."""
    if not n_rows:
        return np.zeros(0, dtype)
    with tempfile.TemporaryFile(dir=directory) as file:
        for begin in range(0, n_rows, ROWS_PER_BLOCK):
            file.write(np.ascontiguousarray(block(begin, min(begin + ROWS_PER_BLOCK, n_rows)), dtype).data)
        file.flush()
        # Compiled code distinguishes arrays that cannot be written to, and subclasses of arrays.
        return np.memmap(file, dtype, "r+", shape=(n_rows,)).view(np.ndarray)
