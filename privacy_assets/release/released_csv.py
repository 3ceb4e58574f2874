"""Released CSV files: text that a spreadsheet would execute is escaped, and every table can be read back unchanged.

Some spreadsheets take a text for a formula if it begins with ``=``, ``+``, ``-`` or ``@`` (also full-width, and after
spaces, quotes and invisible characters), or with a tab or a line end. Such a text is written with an apostrophe before
it, and so is a text that begins with an apostrophe. Removing one apostrophe from every text that begins with one
restores the original. Column names are escaped as well. Numbers, booleans, dates, times and durations are written as
they are.

An empty cell is a missing value or an empty text; the description says which for each column. If a column has both, a
lone apostrophe is the empty text. Cells with separators, quotes or line ends are quoted; rows end with a line feed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy_assets.errors import InvalidTableError
from privacy_assets.release.received_files import read_regular
from privacy_assets.storage.fingerprint import canonical_array, require_unique_text_names

ESCAPE = "'"
ROWS_AT_ONCE = 50_000
MAX_CSV_BYTES = 2**40
_RUN = re.compile(
    r"[\t\r\n']|"
    r"[\s\x00-\x20\x7f-\xa0\"'\u200b-\u200f\u2028-\u202f\u2060-\u2064\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b\u2212]"
)
_NEEDS_QUOTES = re.compile(r'[",\r\n]')
_CELL = re.compile(r'(?:"([^"]*+(?:""[^"]*+)*+)"|([^",\r\n]*+))(,|\n)')
_WITH_MISSING = {"int64": "Int64", "uint64": "UInt64", "bool": "boolean"}
_OFFSET = re.compile(r"(.*)([+-])(\d\d):(\d\d)(?::(\d\d))?")


def escape(text: str) -> str:
    """Write a text so that no spreadsheet executes it."""
    return ESCAPE + text if _RUN.match(text) else text


def unescape(text: str) -> str:
    """Read back what `escape` wrote."""
    return text.removeprefix(ESCAPE)


def write_csv(file: BinaryIO, table: pd.DataFrame) -> dict[str, Any]:
    """Write a table as CSV, and describe how.

    Parameters
    ----------
    file : binary file
        Takes UTF-8.
    table : DataFrame
        A table that has a fingerprint; its index is not written.

    Returns
    -------
    dict of JSON values
        ``escape``, the character; ``escaped_cells``, how many by column; ``escaped_names``; ``empty_is_text``, the
        columns in which an empty cell is an empty text; ``types`` by column. `read_csv` needs it.
    """
    require_unique_text_names(table)
    arrays = {name: canonical_array(name, table[name]) for name in table.columns}
    types = {name: _type_of(array, table[name]) for name, array in arrays.items()}
    texts = [name for name, kind in types.items() if kind == "text"]
    has_empty = [name for name in texts if bool(pc.any(pc.equal(arrays[name], "")).as_py())]
    has_both = [name for name in has_empty if arrays[name].null_count]
    dates_only = {name for name, array in arrays.items() if _is_of_days(array)}
    counts = dict.fromkeys(texts, 0)
    is_single = len(arrays) == 1

    def cells_of(name: str, array: pa.Array) -> list[str]:
        if name not in counts:
            return _render(array, types[name], name in dates_only)
        encoded = array.dictionary_encode()
        # Each distinct text is escaped once.
        plain = encoded.dictionary.to_pylist()
        escaped = [ESCAPE if text == "" and name in has_both else escape(text) for text in plain]
        is_escaped = np.array([own != text for own, text in zip(escaped, plain, strict=True)] + [False])
        codes = encoded.indices.fill_null(len(plain)).to_numpy(zero_copy_only=False)
        counts[name] += int(is_escaped[codes].sum())
        written = [_quoted(text) for text in escaped] + [""]
        return [written[code] for code in codes.tolist()]

    def lines(rows: Iterator[tuple[str, ...]]) -> bytes:
        # Most readers would skip an empty line.
        return "".join([(",".join(row) or ('""' if is_single else "")) + "\n" for row in rows]).encode()

    file.write(lines(iter([tuple(_quoted(escape(name)) for name in arrays)])))
    for start in range(0, len(table), ROWS_AT_ONCE):
        own = [cells_of(name, array.slice(start, ROWS_AT_ONCE)) for name, array in arrays.items()]
        file.write(lines(zip(*own, strict=True)))
    return {
        "escape": ESCAPE,
        "escaped_cells": {name: count for name, count in counts.items() if count},
        "escaped_names": [name for name in arrays if escape(name) != name],
        "empty_is_text": [name for name in has_empty if name not in has_both],
        "types": types,
    }


def read_csv(path: Path, described: Mapping[str, Any], max_bytes: int = MAX_CSV_BYTES) -> pd.DataFrame:
    """Read the output of `write_csv`, given its description.

    Raises
    ------
    InvalidTableError
        If `write_csv` did not write the file with this description.
    """
    types, empty_is_text = dict(described["types"]), set(described["empty_is_text"])
    try:
        columns = _columns_of(read_regular(path, max_bytes).decode())
        if [unescape(name) for name in columns[0]] != list(types) or described["escape"] != ESCAPE:
            raise ValueError
        cells = columns[1] or [[] for _ in types]
        return pd.DataFrame(
            {
                name: _parse(own, kind, name in empty_is_text)
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
        If there is no CSV file, or not the one that the manifest describes.
    """
    directory = Path(directory)
    try:
        manifest = json.loads((directory / "manifest.json").read_bytes())
        path, described = directory / f"{manifest['stage']}.csv", manifest["csv"]
        return read_csv(path, described)
    except (OSError, KeyError, TypeError, json.JSONDecodeError):
        raise InvalidTableError(
            f"{str(directory)!r} has no CSV file with a manifest that describes it. Expected the directory of a "
            "release with the format 'csv'."
        ) from None


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def _type_of(array: pa.Array, column: pd.Series[Any]) -> str:
    kind = array.type
    if pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_floating(kind):
        # The shortest decimal of a narrow float is a different number as a wide float.
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


def _render(array: pa.Array, kind: str, is_of_days: bool) -> list[str]:
    """Write values other than text; a missing value is empty."""
    if pa.types.is_timestamp(array.type):
        return _render_times(array, is_of_days)
    if pa.types.is_duration(array.type):
        whole = array.cast(pa.int64()).to_pylist()
        return ["" if value is None else str(pd.Timedelta(value, "ns")) for value in whole]
    if kind in ("float32", "float16"):
        values = array.fill_null(0.0).to_numpy(zero_copy_only=False).astype(kind)
        is_known = array.is_valid().to_pylist()
        return [str(value) if known else "" for value, known in zip(values, is_known, strict=True)]
    return ["" if value is None else str(value) for value in array.to_pylist()]


def _render_times(array: pa.Array, is_of_days: bool) -> list[str]:
    unit, zone = array.type.unit, array.type.tz
    moments = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).view(f"datetime64[{unit}]")
    offsets = np.zeros(len(moments), np.int64)
    if zone is not None:
        local = _local(moments, zone)
        offsets = (local - moments).astype("timedelta64[s]").astype(np.int64)
        moments = local
    texts = []
    written = np.datetime_as_string(moments, unit="D" if is_of_days else unit).tolist()
    for text, offset, is_known in zip(written, offsets.tolist(), array.is_valid().to_pylist(), strict=True):
        day, _, time = text.partition("T")
        seconds, _, fraction = time.partition(".")
        fraction = fraction.rstrip("0")
        own = day + (f" {seconds}" if seconds else "") + (f".{fraction}" if fraction else "")
        texts.append((own if zone is None else own + _offset(offset)) if is_known else "")
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


def _columns_of(text: str) -> tuple[list[str], list[list[str]]]:
    """Split a file into its column names and, by column, its cells."""
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
    return rows[0], [list(column) for column in zip(*rows[1:], strict=True)]


def _parse(cells: list[str], kind: str, empty_is_text: bool) -> pd.Series[Any]:
    if kind == "text":
        texts = [None if cell == "" and not empty_is_text else unescape(cell) for cell in cells]
        return pd.Series(texts, dtype="string")
    is_missing = np.array([cell == "" for cell in cells], np.bool_)
    known = [cell for cell in cells if cell != ""]
    array = _values(known, kind)
    places = np.where(is_missing, -1, np.cumsum(~is_missing) - 1)
    taken = array.take(pa.array(places, pa.int64(), mask=is_missing))
    if taken.null_count and kind in _WITH_MISSING:
        return pd.Series(taken.to_pylist(), dtype=_WITH_MISSING[kind])
    if kind == "date32[day]":
        return pd.Series(taken.to_pylist(), dtype=pd.ArrowDtype(pa.date32()) if is_missing.all() else object)
    return pd.Series(taken.to_pandas())


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
