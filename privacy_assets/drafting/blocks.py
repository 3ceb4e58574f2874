"""Blocks of a table for its draft, from a CSV or Parquet file of any size, or a frame.

A file is read once, in blocks, so that its size does not matter. A file that is not a table is refused with its kind,
the place of the error, and advice; names and cells are not shown, because a file without a header has cells as names.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import pandas as pd

from privacy_assets.columns.column_names import positions, problem_of_names, require_unique_text_names
from privacy_assets.disclosure.text_shapes import shape_of
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.parquet_dataset import open_parquet_dataset

BLOCK_BYTES: Final = 4 * 2**20
LARGEST_BLOCK: Final = 256 * 2**20
BLOCK_ROWS: Final = 50_000
BLOCK_CELLS: Final = 2_000_000
LOOKED_AT: Final = 64 * 2**10
LONGEST_HEADER: Final = 64 * 2**20
SEPARATORS: Final = (",", ";", "\t", "|")
SHAPES_OF_VALUES: Final = frozenset(
    {
        *("account numbers", "coordinates", "dates", "document numbers", "e-mail addresses", "numbers"),
        *("phone numbers", "social security numbers", "times of day", "timestamps", "UUIDs", "whole numbers"),
    }
)
"""Shapes of cells that names of columns do not have."""
YEAR: Final = re.compile(r"(?:19|20)\d\d")
BYTES: Final = re.compile(r"b'.*'|b\".*\"", re.DOTALL)
MAGIC: Final = {
    b"PK\x03\x04": "a ZIP archive or a spreadsheet (export the sheet as CSV)",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"\x1f\x8b": "a gzip file (unpack it)",
    b"SQLite format 3": "an SQLite database (use a query)",
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file (export the sheet as CSV)",
}


@dataclass(frozen=True)
class TableBlocks:
    """A table in blocks of rows, in order, which can be iterated only once.

    ``format`` is "csv" or "parquet", or None if the table is not a file; ``separator`` is between the fields of a CSV
    file.
    """

    names: tuple[str, ...]
    blocks: Iterator[pd.DataFrame]
    format: str | None = None
    separator: str = ","


def blocks_of_frame(table: pd.DataFrame, subject: str = "The table") -> TableBlocks:
    """Return the blocks of a frame, which must have columns with distinct names, and rows."""
    require_unique_text_names(table)
    if not len(table.columns):
        raise InvalidTableError(f"{subject} has no columns. Expected a table.")
    if not len(table):
        raise InvalidTableError(
            f"{subject} has {table.shape[1]:,} columns and no rows, so there is nothing to draft from. Expected some "
            "records; correct the query or the function that returned it."
        )
    step = max(1, min(BLOCK_ROWS, BLOCK_CELLS // table.shape[1]))
    blocks = (table.iloc[start : start + step] for start in range(0, len(table), step))
    return TableBlocks(tuple(table.columns), blocks)


def require_table_file(path: Path, expected: str) -> None:
    """Refuse a file whose beginning shows that it is not a table in the format ``csv`` or ``parquet``."""
    found = _format_of(path)
    if found != expected:
        raise InvalidTableError(
            f"{str(path)!r} is {_FORMATS[found]}, but {_FORMATS[expected]} was expected. Set the other format, or give "
            "the right file."
        )


def open_table(path: Path, separator: str | None = None) -> TableBlocks:
    """Open a CSV or Parquet file; the content determines the format.

    A separator is that of a file that a contract describes. By default it is found, and the file must have a header and
    records to draft from. Further problems may be found while the blocks are read.
    """
    if _format_of(path) == "parquet":
        return _open_parquet(path)
    return _open_csv(path, _start_of(path), separator)


_FORMATS: Final = {"csv": "text", "parquet": "a Parquet file"}


def _start_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LOOKED_AT)


def _format_of(path: Path) -> str:
    """Return the format of the beginning of a file; refuse a file that is not a table."""
    if not path.is_file():
        found = "is a pipe, a socket or a device" if path.exists() else "does not exist"
        what = "is a directory" if path.is_dir() else found
        raise InvalidTableError(f"{str(path)!r} {what} (looked from {Path.cwd()}). Expected a CSV or Parquet file.")
    start = _start_of(path)
    if not start.strip():
        raise InvalidTableError(
            f"{str(path)!r} is empty ({path.stat().st_size} bytes). Expected a CSV or Parquet file with records."
        )
    if start.startswith(b"PAR1"):
        return "parquet"
    _require_text(path, start)
    return "csv"


def _require_text(path: Path, start: bytes) -> None:
    """Refuse a file that is not text in UTF-8."""
    kind = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)
    if kind is not None:
        raise InvalidTableError(f"{str(path)!r} is {kind}, not a table. Expected a CSV or Parquet file.")
    zeros = start.count(b"\0")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or zeros > len(start) / 4:
        raise InvalidTableError(
            f"{str(path)!r} is text in UTF-16. Expected UTF-8: convert it with `iconv -f UTF-16 -t UTF-8`."
        )
    if zeros:
        raise InvalidTableError(f"{str(path)!r} is a binary file, not a table. Expected a CSV or Parquet file.")
    if start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[", b"<"):
        kind = "HTML or XML" if b"<" in start[:8] else "JSON"
        raise InvalidTableError(f"{str(path)!r} looks like {kind}, not a table. Expected a CSV or Parquet file.")
    if not _is_utf8(start):
        raise InvalidTableError(_not_utf8(path))


def _is_utf8(start: bytes) -> bool:
    # A character of up to four bytes may be cut at the end.
    return any(_decodes(start[: len(start) - cut]) for cut in (range(4) if len(start) == LOOKED_AT else range(1)))


def _decodes(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _not_utf8(path: Path) -> str:
    return f"{str(path)!r} is text that is not in UTF-8. Convert it, for example with `iconv -f WINDOWS-1252 -t UTF-8`."


def _open_csv(path: Path, start: bytes, given: str | None) -> TableBlocks:
    text = start.decode("utf-8", errors="ignore").removeprefix("\ufeff")
    lines = text.splitlines()[:50]
    lines = lines[:-1] if len(start) == LOOKED_AT and len(lines) > 1 else lines
    records = {each: [record for record in _records(lines, each) if record] for each in SEPARATORS}
    separator = given or _separator(records)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        header, n_above = _first_record(file, separator, path)
    if len(records[separator]) > 1 and len(header) > 1:
        first = records[separator][1]
        # R writes row names without a field for them in the header.
        header = ["", *header] if len(first) == len(header) + 1 and first[-1] else header
    # pandas, R and spreadsheets write row names without a name; pandas reads them with this one.
    names = [name or f"Unnamed: {place}" for place, name in enumerate(header)]
    if given is None:
        _require_names(names, path)
    if len(names) == 1:
        _require_one_column({each: records[each] for each in SEPARATORS if each != separator}, path)
    blocks = _csv_blocks(path, names, separator, n_above, is_draft=given is None)
    return TableBlocks(tuple(names), blocks, "csv", separator)


def _separator(records: Mapping[str, list[list[str]]]) -> str:
    """Return the separator that splits the first lines into the most fields, with as many in most lines as in one."""
    best, most = ",", (False, 1)
    for separator, split in records.items():
        counts = Counter(map(len, split))
        n_fields, n_lines = counts.most_common(1)[0] if counts else (1, 0)
        n_names = len(split[0]) if split else 1
        found = (n_fields == n_names, n_fields)
        if (
            n_fields > 1
            and n_lines > counts.total() / 2
            and n_fields - n_names in (0, int(n_names > 1))
            and found > most
        ):
            best, most = separator, found
    return best


def _require_one_column(records: Mapping[str, list[list[str]]], path: Path) -> None:
    """Ask for the separator of a file whose records have one field, in which all of them have another separator."""
    for separator, split in records.items():
        if split[1:] and all(len(record) > 1 for record in split[1:]):
            raise InvalidTableError(
                f"{str(path)!r} has one column, and each of the first {len(split) - 1:,} records contains "
                f"{separator!r}. Is this the separator? Then set it, and name each column in the first line. If it is "
                "part of the texts, put them into quotation marks. Nothing was read."
            )


def _records(lines: Sequence[str], separator: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return []


def _first_record(file: IO[str], separator: str, path: Path) -> tuple[list[str], int]:
    """Return the first record, and the number of empty ones above it."""
    limit = csv.field_size_limit(LONGEST_HEADER)
    try:
        records = enumerate(csv.reader(file, delimiter=separator))
        return next(((record, place) for place, record in records if record), ([], 0))
    except csv.Error:
        pass
    finally:
        csv.field_size_limit(limit)
    raise InvalidTableError(
        f"The first line of {str(path)!r} cannot be read as names of columns. Expected a CSV or Parquet file."
    )


def _csv_blocks(
    path: Path, names: Sequence[str], separator: str, n_above: int, *, is_draft: bool
) -> Iterator[pd.DataFrame]:
    """Read the records as text, in blocks; an empty field is missing, as when the source is read."""
    ragged = _Ragged()
    n_rows, checked, breaks_at_end = 0, False, False
    for table in _arrow_blocks(path, names, separator, n_above, ragged):
        if ragged.n_rows:
            raise InvalidTableError(ragged.message(str(path), len(names)))
        if not len(table):
            continue
        if not checked:
            _require_no_bytes(path, table)
            if is_draft:
                _require_header(path, names, table)
            checked = True
        n_rows += len(table)
        breaks_at_end = any(isinstance(field, str) and "\n" in field for field in table.iloc[-1])
        yield table
    if ragged.n_rows:
        raise InvalidTableError(ragged.message(str(path), len(names)))
    if breaks_at_end and _n_quotes(path) % 2:
        raise InvalidTableError(
            f"{str(path)!r} ends within a field: a quotation mark is opened and not closed. Close it, or double it "
            "if it is part of the text."
        )
    if is_draft and not n_rows:
        raise InvalidTableError(
            f"{str(path)!r} has a header of {len(names):,} columns and no records. Expected some records to draft from."
        )


def _n_quotes(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b'"') for block in iter(lambda: file.read(BLOCK_BYTES), b""))


class _Ragged:
    """Count of the records with too few or too many fields."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.first: tuple[int, int] | None = None

    def __call__(self, row: Any) -> str:
        self.n_rows += 1
        if self.first is None:
            self.first = (row.number or 0, row.actual_columns)
        return "skip"

    def message(self, path: str, n_expected: int) -> str:
        number, n_fields = self.first or (0, 0)
        return (
            f"{path!r} has records with a different number of fields than its header, {n_expected:,}: the first is "
            f"record {number:,} with {n_fields:,}, and there are {self.n_rows:,} up to where reading ended. Quote "
            "fields that contain the separator or a line break, and add missing fields."
        )


def _arrow_blocks(
    path: Path, names: Sequence[str], separator: str, n_above: int, ragged: _Ragged
) -> Iterator[pd.DataFrame]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    n_bytes = max(BLOCK_BYTES, min(LARGEST_BLOCK, 2_000 * len(names)))
    problem = ""
    try:
        with arrow_csv.open_csv(
            path,
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=n_bytes, column_names=list(names), skip_rows_after_names=n_above + 1
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=separator, newlines_in_values=True, invalid_row_handler=ragged
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        ) as reader:
            for batch in reader:
                yield batch.to_pandas()
        return
    except pa.ArrowInvalid as error:
        # The text of the error quotes the row.
        problem = str(error)
    if "UTF8" in problem:
        raise InvalidTableError(_not_utf8(path))
    if ragged.n_rows:
        raise InvalidTableError(ragged.message(str(path), len(names)))
    if "Empty CSV" in problem:
        return
    if "straddl" in problem:
        raise InvalidTableError(
            f"{str(path)!r} has a record of more than {n_bytes:,} bytes. The cause may be a quotation mark that is not "
            "closed or not doubled; correct it."
        )
    raise InvalidTableError(f"{str(path)!r} cannot be read as CSV. Expected fields separated by {separator!r}.")


def _require_names(names: Sequence[str], path: Path) -> None:
    """Refuse names of a file that a contract cannot have."""
    problem = problem_of_names(names) if names else "It has no columns. Expected a table."
    if problem:
        raise InvalidTableError(f"{str(path)!r} cannot be used: {problem}")


def _require_header(path: Path, names: Sequence[str], block: pd.DataFrame) -> None:
    """Refuse a first line that looks like a record."""
    n_like_cells = sum(
        (shape_of(name) in SHAPES_OF_VALUES and not YEAR.fullmatch(name)) or bool((block[name] == name).any())
        for name in names
    )
    if n_like_cells and n_like_cells >= len(names) / 4:
        raise InvalidTableError(
            f"{str(path)!r} seems to have no header: of the {len(names):,} fields of its first line, {n_like_cells:,} "
            "look like values (they are not shown). Put a line with the names of the columns on top."
        )


def _require_no_bytes(path: Path, block: pd.DataFrame) -> None:
    """Refuse columns of bytes, which Python writes into a CSV file in its own notation."""
    columns = (block.iloc[:, place].dropna() for place in range(block.shape[1]))
    found = [place for place, own in enumerate(columns) if len(own) and own.str.fullmatch(BYTES).all()]
    if found:
        raise InvalidTableError(
            f"{len(found)} columns of {str(path)!r} have bytes in Python's notation ({positions(found)}), as a CSV "
            "file cannot carry bytes. Nothing was read; drop these columns, or write hexadecimal digits."
        )


def _open_parquet(path: Path) -> TableBlocks:
    import pyarrow as pa

    dataset = open_parquet_dataset(path)
    nested = [
        place
        for place, field in enumerate(dataset.schema)
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type)
    ]
    if nested:
        raise InvalidTableError(
            f"{len(nested)} columns of {str(path)!r} have lists, records or bytes as values ({positions(nested)}). A "
            "contract has columns of single values: turn the parts into columns or a separate table, or drop these "
            "columns."
        )
    names = dataset.schema.names
    _require_names(names, path)
    if not dataset.n_rows:
        raise InvalidTableError(f"{str(path)!r} has {len(names):,} columns and no records. Expected some records.")
    return TableBlocks(tuple(names), dataset.frames(max(1, min(BLOCK_ROWS, BLOCK_CELLS // len(names)))), "parquet")
