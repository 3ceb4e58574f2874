"""The footer of a Parquet file, read without Arrow to decide whether Arrow may open the file.

For some damaged footers Arrow ends the whole process (an uncaught C++ exception), so it cannot be used on a file from
somebody else. The footer is a structure in Thrift's compact protocol. This module reads the few fields that bound the
unpacked size of the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

MAGIC = b"PAR1"
TAIL_BYTES = 8
MAX_FOOTER_BYTES = 64 * 2**20
MAX_DEPTH = 16
BYTE_ARRAY, FIXED_LENGTH_BYTE_ARRAY = 6, 7
REPEATED = 2
# Kinds of values in the compact protocol.
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
WHOLE_NUMBERS = (4, 5, 6)

Structure = Mapping[int, Any]


@dataclass(frozen=True)
class Column:
    """A column of the schema.

    Attributes
    ----------
    is_flat : bool
        Whether it has at most one value in each record.
    width : int
        Bytes of each value if values have a fixed length and are not numbers, else 0.
    """

    name: str
    is_flat: bool
    is_text: bool
    width: int


@dataclass(frozen=True)
class Chunk:
    """The footer's description of a column in a row group."""

    n_values: int
    n_unpacked_bytes: int
    codec: int
    encodings: frozenset[int]
    is_elsewhere: bool


@dataclass(frozen=True)
class Footer:
    """The footer: columns, records, and for each row group its number of records and its chunks."""

    columns: tuple[Column, ...]
    n_records: int
    groups: tuple[tuple[int, tuple[Chunk, ...]], ...]


def read_footer(file: BinaryIO) -> Footer:
    """Read the footer of an open file.

    Raises
    ------
    ValueError
        If the file has no Parquet footer.
    """
    n_bytes = file.seek(0, 2)
    file.seek(max(n_bytes - TAIL_BYTES, 0))
    tail = file.read(TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length > min(n_bytes - TAIL_BYTES - len(MAGIC), MAX_FOOTER_BYTES):
        raise ValueError("not a Parquet footer")
    file.seek(n_bytes - TAIL_BYTES - length)
    said = _Reader(file.read(length)).structure()
    try:
        root, *leaves = said[2]
        columns = tuple(_column(leaf) for leaf in leaves)
        if _whole(root.get(5, 0)) != len(columns):
            raise ValueError("nested")
        groups = tuple((_whole(group[3]), tuple(map(_chunk, group[1]))) for group in said[4])
        return Footer(columns, _whole(said[3]), groups)
    except (KeyError, TypeError, AttributeError):
        pass
    raise ValueError("not a Parquet footer")


def _column(leaf: Structure) -> Column:
    is_flat = not leaf.get(5) and leaf.get(3) != REPEATED
    width = _whole(leaf.get(2, 0)) if leaf[1] == FIXED_LENGTH_BYTE_ARRAY else 0
    return Column(leaf[4].decode(), is_flat, leaf[1] == BYTE_ARRAY, width)


def _chunk(chunk: Structure) -> Chunk:
    said = chunk[3]
    return Chunk(_whole(said[5]), _whole(said[6]), _whole(said[4]), frozenset(map(_whole, said[2])), bool(chunk.get(1)))


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a count is missing")
    return value


class _Reader:
    """Read values of the compact protocol, each of which takes at least one byte."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def structure(self, depth: int = 0) -> Structure:
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        found: dict[int, Any] = {}
        number = 0
        while header := self._byte():
            number = number + (header >> 4) if header >> 4 else self._number()
            if number in found:
                raise ValueError("a field is repeated")
            kind = header & 15
            found[number] = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in WHOLE_NUMBERS:
            return self._number()
        if kind in (TRUE, FALSE, BYTE):
            return self._byte()
        if kind == DOUBLE:
            return self._bytes(8)
        if kind == BINARY:
            return self._bytes(self._unsigned())
        if kind in (LIST, SET):
            return self._list(depth)
        if kind == MAP:
            return self._map(depth)
        if kind == STRUCT:
            return self.structure(depth + 1)
        raise ValueError("unknown kind of value")

    def _list(self, depth: int) -> list[Any]:
        header = self._byte()
        size = header >> 4 if header >> 4 != 15 else self._unsigned()
        self._require(size)
        return [self._value(header & 15, depth + 1) for _ in range(size)]

    def _map(self, depth: int) -> None:
        size = self._unsigned()
        self._require(size)
        kinds = self._byte() if size else 0
        for _ in range(size):
            self._value(kinds >> 4, depth + 1)
            self._value(kinds & 15, depth + 1)

    def _number(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number does not end")

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, size: int) -> bytes:
        self._require(size)
        self._position += size
        return self._data[self._position - size : self._position]

    def _require(self, size: int) -> None:
        if size > len(self._data) - self._position:
            raise ValueError("it ends too early")
