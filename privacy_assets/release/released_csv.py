"""Released CSV files: text that a spreadsheet would execute is escaped, and every table can be read back unchanged.

Some spreadsheets interpret a text as a formula if it begins with ``=``, ``+``, ``-`` or ``@`` (also full-width, and
after spaces, quotes and invisible characters), or with a tab or a line end. A spreadsheet that separates cells at
semicolons, tabs or line ends, whatever the quotes, also begins a cell after each of them. Where a formula would begin,
an apostrophe is written, and so it is before an apostrophe at the beginning of a text or of such a cell. Removing one
apostrophe at each of these places restores the original. Column names are escaped, too. Numbers, booleans, dates, times
and durations are not escaped.

An empty cell is a missing value or an empty text; the description specifies which for each column. If a column has
both, a lone apostrophe is the empty text. Cells with separators, quotes or line ends are quoted; rows end with a line
feed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from numpy.typing import NDArray

from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.errors import InvalidTableError
from privacy_assets.release.manifest import DamagedManifestError, read_manifest
from privacy_assets.release.received_files import Unchecked, open_regular
from privacy_assets.storage.canonical_arrays import canonical_array

ESCAPE = "'"
NOTHING = '""'
ROWS_AT_ONCE = 2**14
_DICTIONARY = pa.dictionary(pa.int32(), pa.large_string())
BLOCK_BYTES = 2**19
"""Arrow reads up to 32 blocks ahead."""
BATCHES_AT_ONCE = 32
MAX_CSV_BYTES = 2**40
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
_CELL = re.compile(r'(?:"([^"]*+(?:""[^"]*+)*+)"|([^",\r\n]*+))(,|\n)')
_WITH_MISSING = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype(), pa.bool_(): pd.BooleanDtype()}
_OFFSET = re.compile(r"(.*)([+-])(\d\d):(\d\d)(?::(\d\d))?")


def escape(text: str) -> str:
    """Escape a text so that no spreadsheet executes it."""
    return (ESCAPE if _BEGINS_FORMULA.match(text) else "") + _BEGINS_INSIDE.sub(rf"\g<0>{ESCAPE}", text)


def unescape(text: str) -> str:
    """Restore a text that `escape` returned."""
    return _ESCAPED_INSIDE.sub(r"\1", text.removeprefix(ESCAPE)) if ESCAPE in text else text


class Writable(Protocol):
    """An object that the bytes of a file are written to."""

    def write(self, data: bytes | memoryview, /) -> object:
        """Accept the next bytes."""


def write_csv(file: Writable, table: pd.DataFrame) -> dict[str, Any]:
    """Write a table as CSV, and return a description of the file.

    Parameters
    ----------
    file : binary file
        The target for the UTF-8 bytes; only its ``write`` is called.
    table : DataFrame
        A table that has a fingerprint; its index is not written.

    Returns
    -------
    dict of JSON values
        ``escape``, the character; ``escaped_cells``, how many by column; ``escaped_names``; ``empty_is_text``, the
        columns in which an empty cell is an empty text; ``types`` by column. `read_csv` needs it.
    """
    require_unique_text_names(table)
    columns = [_written_column(name, table[name]) for name in table.columns]
    # Most readers would skip an empty line.
    cells = [own.cells.or_quotes() for own in columns] if len(columns) == 1 else [own.cells for own in columns]
    file.write(_header(table.columns))
    for start in range(0, len(table), ROWS_AT_ONCE):
        file.write(_lines([own.rows(start, ROWS_AT_ONCE) for own in cells]))
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
        places = self.places.fill_null(len(distinct))
        return _Cells(pa.concat_arrays([distinct, pa.array([NOTHING], distinct.type)]), places)


class _Column(NamedTuple):
    """The written form of a column."""

    name: str
    type: str
    cells: _Cells
    n_escaped: int = 0
    empty_is_text: bool = False


def _written_column(name: str, column: pd.Series[Any]) -> _Column:
    array = canonical_array(name, column, texts_as_dictionary=True)
    if not pa.types.is_dictionary(array.type):
        kind = _type_of(array, column)
        return _Column(name, kind, _render(array, kind, _is_of_days(array)))
    has_empty = _has_empty(array)
    has_both = has_empty and bool(array.indices.null_count)
    cells, n_escaped = _escaped(array, has_both)
    return _Column(name, "text", cells, n_escaped, has_empty and not has_both)


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
    n_rows = np.bincount(codes, minlength=len(distinct))[with_care]
    n_escaped = sum(int(n) for n, own, text in zip(n_rows, escaped, plain, strict=True) if own != text)
    if plain:
        mask = np.zeros(len(distinct), np.bool_)
        mask[with_care] = True
        in_order = np.argsort(with_care)
        replaced = pa.array([written[place] for place in in_order], distinct.type)
        distinct = pc.replace_with_mask(distinct, pa.array(mask), replaced)
    return _Cells(distinct, encoded.indices), n_escaped


def read_csv(
    path: Path, described: Mapping[str, Any], max_bytes: int = MAX_CSV_BYTES, *, texts_as_categories: bool = False
) -> pd.DataFrame:
    """Read the output of `write_csv`, given its description.

    Parameters
    ----------
    path : Path
        The file, which is read in blocks.
    described : mapping
        The description that `write_csv` returned.
    max_bytes : int
        Largest file that is read.
    texts_as_categories : bool
        Whether columns of texts become categories, which take less memory and have the same fingerprint.

    Raises
    ------
    InvalidTableError
        If `write_csv` did not write the file with this description.
    """
    types, empty_is_text = dict(described["types"]), set(described["empty_is_text"])
    try:
        if described["escape"] != ESCAPE:
            raise ValueError
        with open_regular(path) as file:
            cells = _columns_of(file, list(types), max_bytes)
        return pd.DataFrame(
            {
                name: _parse(own, kind, name in empty_is_text, texts_as_categories)
                for (name, kind), own in zip(types.items(), cells, strict=True)
            }
        )
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        raise InvalidTableError(
            f"The file {path.name!r} is not the CSV file that its manifest describes. Expected the file as released; "
            "request it again."
        ) from None


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
        path, described = directory / f"{manifest['stage']}.csv", manifest["csv"]
        return read_csv(path, described)
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
    if pa.types.is_integer(array.type):
        return _Cells(array.cast(pa.large_string()))
    # Each distinct value is written once. Compared as integers, because 0.0 and -0.0 are written differently.
    width = array.type.bit_width
    bits = array if width == 1 else array.view(pa.int64() if width == 64 else pa.int32())
    encoded = bits.dictionary_encode()
    distinct = encoded.dictionary if width == 1 else encoded.dictionary.view(array.type)
    return _Cells(pa.array(_written(distinct, kind, is_of_days), pa.large_string()), encoded.indices)


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


def _columns_of(file: BinaryIO, names: Sequence[str], max_bytes: int) -> list[pa.DictionaryArray]:
    """Split a file with columns of these names into its cells, by column.

    Arrow splits it, but tolerates forms that `write_csv` never writes. So the cells are written again: if that does not
    give the same bytes, the file is read as strictly as its format is defined.
    """
    read_by_arrow = Unchecked(file, max_bytes)
    try:
        found = _split_by_arrow(read_by_arrow, names)
    finally:
        read_by_arrow.end()
    if found is not None:
        return found
    file.seek(0)
    unchecked = Unchecked(file, max_bytes)
    written, columns = _split_strictly(unchecked.read_all().decode())
    if [unescape(name) for name in written] != list(names):
        raise ValueError
    return columns


def _split_by_arrow(unchecked: Unchecked, names: Sequence[str]) -> list[pa.DictionaryArray] | None:
    header = _header(names)
    unchecked.read(len(header))
    if not unchecked.begins_with(header):
        return None
    places = [f"f{place}" for place in range(len(names))]
    batches = []
    try:
        for batch in csv.open_csv(
            pa.PythonFile(unchecked, "r"),
            csv.ReadOptions(column_names=places, block_size=BLOCK_BYTES, use_threads=False),
            csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=dict.fromkeys(places, _DICTIONARY), strings_can_be_null=False),
        ):
            if not _is_as_written(batch, unchecked):
                return None
            batches.append(batch)
            if len(batches) == BATCHES_AT_ONCE:
                batches = [_as_one(batches)]
    except pa.ArrowInvalid:
        return None
    return list(_as_one(batches).columns) if unchecked.is_checked else None


def _as_one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Join batches and their dictionaries, which together can be as large as the file."""
    columns = pa.Table.from_batches(batches).columns
    joined = [column.unify_dictionaries().combine_chunks() for column in columns]
    return pa.RecordBatch.from_arrays(joined, batches[0].schema.names)


def _is_as_written(batch: pa.RecordBatch, unchecked: Unchecked) -> bool:
    """Return whether `write_csv` writes exactly these bytes for these cells."""
    cells = [_Cells(_quoted_again(column.dictionary), column.indices) for column in batch.columns]
    cells = [cells[0].or_quotes()] if len(cells) == 1 else cells
    starts = range(0, batch.num_rows, ROWS_AT_ONCE)
    return all(unchecked.begins_with(_lines([own.rows(start, ROWS_AT_ONCE) for own in cells])) for start in starts)


def _quoted_again(cells: pa.Array) -> pa.Array:
    data = bytes(_bytes_of(cells))
    if not any(each in data for each in (b'"', b",", b"\r", b"\n")):
        return cells
    needs = pc.match_substring_regex(cells, _NEEDS_QUOTES.pattern)
    doubled = pc.replace_substring(cells, '"', '""')
    return pc.if_else(needs, pc.binary_join_element_wise(_text('"'), doubled, _text('"'), _text("")), cells)


def _split_strictly(text: str) -> tuple[list[str], list[pa.DictionaryArray]]:
    rows: list[list[str]] = []
    row: list[str] = []
    place = 0
    for found in _CELL.finditer(text):
        if found.start() != place:
            raise ValueError
        quoted, plain, end = found.groups()
        row.append(plain if quoted is None else quoted.replace('""', '"'))
        if end == "\n":
            rows.append(row)
            row = []
        place = found.end()
    if row or not rows or place != len(text):
        raise ValueError
    columns = list(zip(*rows[1:], strict=True)) or [()] * len(rows[0])
    return rows[0], [pa.array(column, pa.large_string()).dictionary_encode() for column in columns]


def _parse(cells: pa.DictionaryArray, kind: str, empty_is_text: bool, texts_as_categories: bool) -> pd.Series[Any]:
    """Read the cells of a column, each distinct cell once."""
    distinct, places = cells.dictionary.to_pylist(), cells.indices
    if kind == "text":
        texts = [None if cell == "" and not empty_is_text else unescape(cell) for cell in distinct]
        if texts_as_categories and any(text is not None for text in texts):
            return _categories(texts, places.to_numpy())
        return _series(pa.array(texts, pa.large_string()).take(places))
    known = [cell for cell in distinct if cell != ""]
    values = _values(known, kind)
    if len(known) < len(distinct):
        # The empty cell is a missing value.
        empty = distinct.index("")
        place_of = np.concatenate([np.arange(empty), [len(known)], np.arange(empty, len(known))])
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
        places = pa.array(place_of[places.to_numpy()])
    return _series(values.take(places))


def _categories(texts: list[str | None], places: NDArray[np.integer[Any]]) -> pd.Series[Any]:
    code_of = np.arange(len(texts), dtype=np.int32)
    if None in texts:
        missing = texts.index(None)
        code_of[missing:] -= 1
        code_of[missing] = -1
    known = pd.Index([text for text in texts if text is not None], dtype=pd.StringDtype())
    return pd.Series(pd.Categorical.from_codes(code_of[places], known))


def _series(array: pa.Array) -> pd.Series[Any]:
    """Return a column in the pandas type that can also contain missing values."""
    if pa.types.is_date32(array.type):
        dtype = pd.ArrowDtype(pa.date32()) if array.null_count == len(array) else object
        return pd.Series(array.to_pylist(), dtype=dtype)
    with_missing = _WITH_MISSING if array.null_count else {}
    types = {pa.large_string(): pd.StringDtype(), **with_missing}
    return pd.Series(array.to_pandas(types_mapper=types.get))


def _values(known: list[str], kind: str) -> pa.Array:
    if kind in ("float32", "float16"):
        return pa.array(np.array(known, kind).astype(np.float64), pa.float64())
    if kind == "float64":
        return pa.array([float(cell) for cell in known], pa.float64())
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
