"""Released CSV files: text that a spreadsheet would execute is escaped, and every table can be read back unchanged.

Some spreadsheets interpret a text as a formula if it begins with ``=``, ``+``, ``-`` or ``@`` (also full-width, and
after spaces, quotes and invisible characters), or with a tab or a line end. A spreadsheet that separates cells at
semicolons, tabs or line ends, whatever the quotes, also begins a cell after each of them. Where a formula would begin,
an apostrophe is written, and so it is before an apostrophe at the beginning of a text or of such a cell. Removing one
apostrophe at each of these places restores the original. Column names are escaped, too. Numbers, booleans, dates, times
and durations are not escaped.

An empty cell is a missing value or an empty text, as the description says of each column; if a column has both, a lone
apostrophe is the empty text. Cells with separators, quotes or line ends are quoted; rows end with a line feed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from numpy.typing import NDArray

from privacy_assets.columns.coding import count_codes
from privacy_assets.columns.column_names import require_unique_names
from privacy_assets.errors import InvalidTableError
from privacy_assets.release.manifest import DamagedManifestError, read_manifest
from privacy_assets.release.received_files import is_as_recorded, open_regular
from privacy_assets.storage.canonical_arrays import canonical_array, canonical_or_dictionary
from privacy_assets.storage.coded_columns import code_repeated
from privacy_assets.storage.table import Table

ESCAPE = "'"
NOTHING = '""'
ROWS_AT_ONCE = 2**14
_DICTIONARY = pa.dictionary(pa.int32(), pa.large_string())
MOST_BLOCK_BYTES = 2**30
MOST_DISTINCT = 0.25
"""Share of the first rows up to which each different whole number is written once."""
ROWS_LOOKED_AT = 2**16
_SEPARATORS = ";\t\n\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029"
"""After each of these a spreadsheet may begin a cell, because its separators are others, or it splits lines first."""
_SIGN = r"[=+\-@\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b\u2212]"
_IGNORED = r"\s\x00-\x20\x7f-\xa0\"'\u200b-\u200f\u2028-\u202f\u2060-\u2064\ufeff"
_BEGINS_FORMULA = re.compile(rf"[\t\r\n']|[{_IGNORED}]*{_SIGN}")
# What follows a separator ends before the next one, so that many separators take no longer. Groups that do not give
# back (``*+``) match wrongly in Python 3.11.2.
_BEGINS_INSIDE = re.compile(rf"[{_SEPARATORS}](?='|(?:(?![{_SEPARATORS}])[{_IGNORED}])*{_SIGN})")
_ESCAPED_INSIDE = re.compile(rf"([{_SEPARATORS}]){ESCAPE}")
_PLAIN_BUT = rf'(?s)^[^A-Za-z0-9]|[",{_SEPARATORS}]'
_NEEDS_QUOTES = re.compile(r'[",\r\n]')
_WITH_MISSING = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype(), pa.bool_(): pd.BooleanDtype()}
_OFFSET = re.compile(r"(.*)([+-])(\d\d):(\d\d)(?::(\d\d))?")


def escape(text: str) -> str:
    """Escape a text so that no spreadsheet executes it."""
    # A template of a replacement is read again for each text.
    escaped = _BEGINS_INSIDE.sub(lambda found: found[0] + ESCAPE, text)
    return ESCAPE + escaped if _BEGINS_FORMULA.match(text) else escaped


def unescape(text: str) -> str:
    """Restore a text that `escape` returned."""
    return _ESCAPED_INSIDE.sub(r"\1", text.removeprefix(ESCAPE)) if ESCAPE in text else text


def write_csv(write: Callable[[bytes | memoryview], object], table: Table) -> dict[str, Any]:
    """Write a table that has a fingerprint as CSV, without its index, and return a description that `read_csv` needs.

    It has the character ``escape``, ``escaped_cells`` (their number by column), ``escaped_names``, ``empty_is_text``
    (the columns in which an empty cell is an empty text), and ``types`` by column.
    """
    require_unique_names(list(table.columns))
    columns = [_written_column(table, name) for name in table.columns]
    # Most readers would skip an empty line.
    cells = [own.cells.or_quotes() for own in columns] if len(columns) == 1 else [own.cells for own in columns]
    write(_header(table.columns))
    for start in range(0, len(table), ROWS_AT_ONCE):
        write(_lines([own.rows(start, ROWS_AT_ONCE) for own in cells]))
    return {
        "escape": ESCAPE,
        "escaped_cells": {own.name: own.n_escaped for own in columns if own.n_escaped},
        "escaped_names": [own.name for own in columns if escape(own.name) != own.name],
        "empty_is_text": [own.name for own in columns if own.empty_is_text],
        "types": {own.name: own.type for own in columns},
    }


class _Cells(NamedTuple):
    """The written cells of a column: each distinct cell once, and the position of each row's cell among them."""

    distinct: pa.Array
    places: pa.Array | None = None

    @classmethod
    def repeated(cls, distinct: pa.Array, places: pa.Array) -> Self:
        """Return cells whose places are of the smallest type, because those of all columns are in memory."""
        return cls(distinct, places.cast(pa.from_numpy_dtype(np.min_scalar_type(len(distinct)))))

    def rows(self, start: int, n_rows: int) -> pa.Array:
        """Return the cells of some rows; a missing value is an empty cell."""
        if self.places is None:
            return self.distinct.slice(start, n_rows)
        return self.distinct.take(self.places.slice(start, n_rows))

    def or_quotes(self) -> _Cells:
        """Return the cells with quotes in place of empty cells, for a line with one cell."""
        is_empty = pc.fill_null(pc.equal(self.distinct, ""), True)
        distinct = pc.if_else(is_empty, _text(NOTHING), self.distinct)
        if self.places is None:
            return _Cells(distinct)
        places = self.places.fill_null(pa.scalar(len(distinct), self.places.type))
        return _Cells(pa.concat_arrays([distinct, pa.array([NOTHING], distinct.type)]), places)


class _Column(NamedTuple):
    """The written form of a column."""

    name: str
    type: str
    cells: _Cells
    n_escaped: int = 0
    empty_is_text: bool = False


def _written_column(table: Table, name: str) -> _Column:
    array = _coded_texts(table, name)
    if array is None:
        column = table[name]
        array = canonical_array(name, column)
    if not pa.types.is_dictionary(array.type):
        kind = _type_of(array, column)
        return _Column(name, kind, _render(array, kind, _is_of_days(array)))
    has_empty = _has_empty(array)
    has_both = has_empty and bool(array.indices.null_count)
    cells, n_escaped = _escaped(array, has_both)
    return _Column(name, "text", cells, n_escaped, has_empty and not has_both)


def _coded_texts(table: Table, name: str) -> pa.DictionaryArray | None:
    """Return what `canonical_array` returns of texts that repeat, without all of them at once; None for others."""
    coded = code_repeated(table, name)
    if coded is None or not isinstance(coded.distinct.dtype, pd.StringDtype) or len(coded.distinct) == 1:
        return None
    n_texts = len(coded.distinct) - 1
    texts = canonical_or_dictionary(name, coded.distinct.iloc[:-1])
    return pa.DictionaryArray.from_arrays(pa.array(coded.codes, mask=coded.codes == n_texts), texts)


def _has_empty(texts: pa.DictionaryArray) -> bool:
    place: int = pc.index(texts.dictionary, _text("")).as_py()
    occurs = place >= 0 and pc.index(texts.indices, pa.scalar(place, texts.indices.type)).as_py() >= 0
    return bool(occurs)


def _header(names: Iterable[str]) -> bytes:
    cells = [_quoted(escape(name)) for name in names]
    return (",".join(cells if cells != [""] else [NOTHING]) + "\n").encode()


def _lines(columns: Sequence[pa.Array]) -> memoryview:
    """Return rows of cells as the bytes of the file."""
    joined = pc.binary_join_element_wise(*columns, _text(","), null_handling="replace", null_replacement="")
    # The texts of a column are contiguous in memory and are the bytes of the file.
    return _bytes_of(pc.binary_join_element_wise(joined, _text(""), _text("\n")))


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _bytes_of(texts: pa.Array) -> memoryview:
    _, offsets, data = texts.buffers()
    if data is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int64)
    return memoryview(data).cast("B")[ends[texts.offset] : ends[texts.offset + len(texts)]]


def _escaped(encoded: pa.DictionaryArray, has_both: bool) -> tuple[_Cells, int]:
    """Escape and quote the distinct texts of a column; return the cells, and the number of escaped cells."""
    distinct = encoded.dictionary
    # The others begin with a letter or a digit and need no quotes.
    with_care = np.flatnonzero(pc.match_substring_regex(distinct, _PLAIN_BUT).to_numpy(zero_copy_only=False))
    plain = distinct.take(pa.array(with_care)).to_pylist()
    if has_both:
        with_care = np.append(with_care, pc.index(distinct, _text("")).as_py())
        plain.append("")
    escaped = [ESCAPE if text == "" else escape(text) for text in plain]
    written = [_quoted(text) for text in escaped]
    codes = encoded.indices.drop_null().to_numpy(zero_copy_only=False)
    n_rows = count_codes(codes, len(distinct))[with_care]
    n_escaped = sum(int(n) for n, own, text in zip(n_rows, escaped, plain, strict=True) if own != text)
    if plain:
        mask = np.zeros(len(distinct), np.bool_)
        mask[with_care] = True
        in_order = np.argsort(with_care)
        replaced = pa.array([written[place] for place in in_order], distinct.type)
        distinct = pc.replace_with_mask(distinct, pa.array(mask), replaced)
    return _Cells.repeated(distinct, encoded.indices), n_escaped


def digest_of_csv(table: Table) -> tuple[str, dict[str, Any]]:
    """Return the SHA-256 of the CSV file of a table, and its description."""
    sha256 = hashlib.sha256()
    described = write_csv(sha256.update, table)
    return sha256.hexdigest(), described


def read_csv(path: Path, described: Mapping[str, Any]) -> pd.DataFrame:
    """Read the output of `write_csv`, given its description; raise InvalidTableError for anything else.

    Arrow splits the file, and tolerates forms that `write_csv` never writes. So the table is written again, and must
    give the same bytes.
    """
    try:
        with open_regular(path) as file:
            cells = _columns_of(file, list(described["types"]))
            table = pd.DataFrame(
                {
                    name: _parse(own, kind, name in described["empty_is_text"])
                    for (name, kind), own in zip(described["types"].items(), cells, strict=True)
                }
            )
            sha256, written = digest_of_csv(table)
            if written == described and is_as_recorded(file, sha256, os.fstat(file.fileno()).st_size):
                return table
    except (ValueError, TypeError, AttributeError, OverflowError, InvalidTableError, pa.ArrowException):
        pass
    raise InvalidTableError(
        f"The file {path.name!r} is not the CSV file that its manifest describes. Expected the file as released; "
        "request it again."
    )


def read_released_csv(directory: Path) -> pd.DataFrame:
    """Read the CSV file of a release: texts without escapes, missing values, types.

    Parameters
    ----------
    directory : Path
        A release directory, or ``latest``. Use :func:`~privacy_assets.release.verification.verify_release` to check
        that it is unchanged.

    Raises
    ------
    InvalidTableError
        If there is no CSV file, or it is not the file that the manifest describes.
    """
    directory = Path(directory)
    try:
        manifest = read_manifest(directory)
        return read_csv(directory / f"{manifest['stage']}.csv", manifest["csv"])
    except (OSError, KeyError, TypeError, DamagedManifestError):
        raise InvalidTableError(
            f"{str(directory)!r} has no CSV file with a manifest that describes it. Expected the directory of a "
            "release with the format 'csv'."
        ) from None


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def _type_of(array: pa.Array, column: pd.Series[Any]) -> str:
    kind = array.type
    if pa.types.is_floating(kind):
        # The shortest decimal of a narrow float is another number when read as a wide float.
        dtype = column.cat.categories.dtype if isinstance(column.dtype, pd.CategoricalDtype) else column.dtype
        narrow = {
            "float32": "float32",
            "float[pyarrow]": "float32",
            "float16": "float16",
            "halffloat[pyarrow]": "float16",
        }
        return narrow.get(str(dtype).lower(), "float64")
    return str(kind)


def _is_of_days(array: pa.Array) -> bool:
    if not pa.types.is_timestamp(array.type) or array.type.tz is not None:
        return False
    per_day = np.timedelta64(1, "D") // np.timedelta64(1, array.type.unit)
    return not (array.drop_null().cast(pa.int64()).to_numpy(zero_copy_only=False) % per_day).any()


def _render(array: pa.Array, kind: str, is_of_days: bool) -> _Cells:
    """Write values other than text; a missing value is empty."""
    if pa.types.is_null(array.type):
        return _Cells(pa.nulls(len(array), pa.large_string()))
    is_whole = pa.types.is_integer(array.type)
    if is_whole:
        first = array.slice(0, ROWS_LOOKED_AT)
        if len(first.unique()) > len(first) * MOST_DISTINCT:
            return _Cells(array.cast(pa.large_string()))
    # Each distinct value is written once. Compared as integers, because 0.0 and -0.0 are written differently.
    width = array.type.bit_width
    bits = array if width == 1 else array.view(pa.int64() if width == 64 else pa.int32())
    encoded = bits.dictionary_encode()
    distinct = encoded.dictionary if width == 1 else encoded.dictionary.view(array.type)
    cells = distinct if is_whole else pa.array(_written(distinct, kind, is_of_days))
    return _Cells.repeated(cells.cast(pa.large_string()), encoded.indices)


def _written(array: pa.Array, kind: str, is_of_days: bool) -> list[str]:
    if pa.types.is_timestamp(array.type):
        return _render_times(array, is_of_days)
    if pa.types.is_duration(array.type):
        return [str(pd.Timedelta(value, "ns")) for value in array.cast(pa.int64()).to_pylist()]
    if kind in ("float32", "float16"):
        return [str(value) for value in array.to_numpy(zero_copy_only=False).astype(kind)]
    return [str(value) for value in array.to_pylist()]


def _render_times(array: pa.Array, is_of_days: bool) -> list[str]:
    unit, zone = array.type.unit, array.type.tz
    moments = array.cast(pa.int64()).to_numpy(zero_copy_only=False).view(f"datetime64[{unit}]")
    offsets = np.zeros(len(moments), np.int64)
    if zone is not None:
        local = _local(moments, zone)
        offsets = (local - moments).astype("timedelta64[s]").astype(np.int64)
        moments = local
    texts = []
    written = np.datetime_as_string(moments, unit="D" if is_of_days else unit).tolist()
    for text, offset in zip(written, offsets.tolist(), strict=True):
        day, _, time = text.partition("T")
        seconds, _, fraction = time.partition(".")
        fraction = fraction.rstrip("0")
        own = day + (f" {seconds}" if seconds else "") + (f".{fraction}" if fraction else "")
        texts.append(own if zone is None else own + _offset(offset))
    return texts


def _local(moments: NDArray[np.datetime64], zone: str) -> NDArray[np.datetime64]:
    """Convert UTC to local time; a zone that pandas does not know is written in UTC, with that offset."""
    try:
        local = pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert(zone).tz_localize(None).to_numpy()
    except (KeyError, ValueError, TypeError, OSError):
        return moments
    return np.asarray(local.astype(moments.dtype))


def _offset(seconds: int) -> str:
    minutes, rest = divmod(abs(seconds), 60)
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}" + (f":{rest:02}" if rest else "")


def _columns_of(file: BinaryIO, names: Sequence[str]) -> list[pa.ChunkedArray]:
    """Split the rows below the header into cells, by column."""
    begin, end = len(_header(names)), os.fstat(file.fileno()).st_size
    if end <= begin:
        return [pa.chunked_array([], _DICTIONARY)] * len(names)
    # Arrow miscounts the lines of a header with NUL characters, so it sees only the end of the header; without that, it
    # would take U+FEFF at the beginning of the first cell for a byte order mark.
    file.seek(begin - 1)
    places = [str(place) for place in range(len(names))]
    columns: list[pa.ChunkedArray] = csv.read_csv(
        file,
        # A row must be within one block.
        csv.ReadOptions(column_names=places, skip_rows=1, block_size=min(end - begin, MOST_BLOCK_BYTES) + 2),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(column_types=dict.fromkeys(places, _DICTIONARY), strings_can_be_null=False),
    ).columns
    return columns


def _parse(cells: pa.ChunkedArray, kind: str, empty_is_text: bool) -> pd.Series[Any]:
    """Read the cells of a column, each distinct cell once. An empty cell is a missing value unless it is a text."""
    encoded = cells.unify_dictionaries().combine_chunks()
    distinct = encoded.dictionary.to_pylist()
    if kind == "text" and empty_is_text:
        return _series(pa.array(map(unescape, distinct), pa.large_string()).take(encoded.indices))
    known = [cell for cell in distinct if cell != ""]
    values = pa.array(map(unescape, known), pa.large_string()) if kind == "text" else _values(known, kind)
    place_of = {cell: place for place, cell in enumerate(known)}
    places = pa.array([place_of.get(cell) for cell in distinct], pa.int32())
    return _series(values.take(places.take(encoded.indices)))


def _series(array: pa.Array) -> pd.Series[Any]:
    """Return a column in the pandas type that can also contain missing values."""
    if pa.types.is_date32(array.type):
        dtype = pd.ArrowDtype(pa.date32()) if array.null_count == len(array) else object
        return pd.Series(array.to_pylist(), dtype=dtype)
    with_missing = _WITH_MISSING if array.null_count else {}
    types = {pa.large_string(): pd.StringDtype(), **with_missing}
    return pd.Series(array.to_pandas(types_mapper=types.get))


def _values(known: list[str], kind: str) -> pa.Array:
    if kind in ("float16", "float32", "float64"):
        return pa.array(np.array(known, kind))
    if kind in ("int64", "uint64"):
        return pa.array([int(cell) for cell in known], kind)
    if kind == "bool":
        return pa.array([{"True": True, "False": False}[cell] for cell in known], pa.bool_())
    if kind == "date32[day]":
        return pa.array(np.array(known, "datetime64[D]"), pa.date32())
    if kind == "duration[ns]":
        return pa.array(pd.to_timedelta(known).to_numpy().astype("timedelta64[ns]"), pa.duration("ns"))
    if kind == "null" and not known:
        return pa.nulls(0)
    found = re.fullmatch(r"timestamp\[(ns|us)(?:, tz=(.+))?\]", kind)
    if found is None:
        raise ValueError
    unit, zone = found.groups()
    shifts = np.zeros(len(known), np.int64)
    if zone is not None:
        parts = [_OFFSET.fullmatch(cell) for cell in known]
        if None in parts:
            raise ValueError
        groups = [part.groups() for part in parts if part is not None]
        known = [own for own, *_ in groups]
        sizes = [int(hours) * 3600 + int(minutes) * 60 + int(rest or 0) for _, _, hours, minutes, rest in groups]
        shifts = np.array([-n if sign == "-" else n for n, (_, sign, *_) in zip(sizes, groups, strict=True)], np.int64)
    local = np.array([cell.replace(" ", "T") for cell in known], f"datetime64[{unit}]")
    return pa.array(local - shifts.astype("timedelta64[s]"), pa.timestamp(unit, zone))
