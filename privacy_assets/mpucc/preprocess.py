"""Preprocessing of original, synthetic and control records: one precision, no duplicates, common integer codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import (
    MAX_DECIMALS,
    ColumnValues,
    EncodedColumn,
    code_type,
    encode_column,
    group_rows,
    read_column,
    without_values,
)
from privacy_assets.columns.column_names import positions, require_unique_text_names
from privacy_assets.columns.parts import Parts, check_parts, join_parts
from privacy_assets.columns.safe_names import type_name
from privacy_assets.columns.spelling import encode_spelled
from privacy_assets.columns.time_units import DATETIME_UNITS
from privacy_assets.columns.unknown_values import UnknownValues, unknown_shares
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc.people import RowsOfPeople, Subjects, group_people, pooled_people, take_person
from privacy_assets.setting_checks import is_integer, require, require_flag
from privacy_assets.storage.artifact import WRITTEN, Artifact
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.table import ROWS_PER_BATCH, StoredTable, Table

_UNIT_NAMES: Mapping[str, str] = {
    **{name.lower(): name for name in DATETIME_UNITS},
    "min": "T",
    "sec": "s",
    "l": "ms",
    "u": "us",
    "n": "ns",
}

NO_PRECISION: Final[Mapping[str, Any]] = {}
NumericPrecision = int | Mapping[str, int] | None
DatetimePrecision = str | Mapping[str, str] | None


@dataclass(frozen=True, eq=False)
class CodedTable:
    """One table as codes, one entry per distinct row; with people, per distinct row of a person.

    ``positions`` are those of (the first of) each row in the input table; ``n_equal`` sums to ``n_records``, all rows
    of the input table; ``multiplicities`` are 1 after deduplication, otherwise the same.
    """

    codes: tuple[NDArray[np.unsignedinteger[Any]], ...]
    positions: NDArray[np.int64]
    multiplicities: NDArray[np.int32]
    n_equal: NDArray[np.int32]
    n_records: int
    people: Subjects | None = None

    @property
    def subjects(self) -> Subjects:
        """The people of the rows; without people, each distinct row belongs to everybody who has it."""
        return self.people or Subjects(np.arange(self.n_distinct), self.n_equal, self.multiplicities)

    @property
    def n_distinct(self) -> int:
        """Number of distinct rows."""
        return len(self.positions)

    @property
    def n_assessed(self) -> int:
        """Number of assessed records: all except dropped duplicates."""
        return int(self.multiplicities.sum(dtype=np.int64))

    @property
    def n_duplicates_dropped(self) -> int:
        """Number of records dropped because an equal one precedes them."""
        return self.n_records - self.n_assessed

    @cached_property
    def n_values(self) -> NDArray[np.int64]:
        """Number of distinct values of each column."""
        return np.array([np.count_nonzero(np.bincount(own)) for own in self.codes], np.int64)

    def take(self, rows: NDArray[np.integer[Any]]) -> CodedTable:
        """Return some of the distinct rows of a table without people, in this order."""
        n_equal = self.n_equal[rows]
        codes = tuple(column[rows] for column in self.codes)
        n_records = int(n_equal.sum(dtype=np.int64))
        return CodedTable(codes, self.positions[rows], self.multiplicities[rows], n_equal, n_records)

    def _key(self) -> tuple[Any, ...]:
        arrays = (*self.codes, self.positions, self.multiplicities, self.n_equal, *(self.people or ()))
        return (self.n_records, *((array.dtype.str, array.tobytes()) for array in arrays))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CodedTable) and self._key() == other._key()

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class PreprocessedTables:
    """Original, synthetic and control records as common codes, with columns in the order of the original table.

    Parts of one column are compared under its name. ``kinds`` are number, boolean, text, datetime, aware datetime,
    duration, or missing (no value anywhere); ``labels``, private because these are cells, the text of each code.
    Columns are rounded to decimals (``numeric_precision``) or floored to a unit (``datetime_precision``), found in the
    original unless given. ``unknown_values`` are by column the shares of synthetic values that nobody has
    (`unknown_shares`). ``foreign`` is why the synthetic records cannot be compared with people; empty if they can, None
    if it was not judged. ``as_written`` has the same tables with texts of real people compared as they are written;
    None if no two are spelled alike.
    """

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    labels: tuple[NDArray[np.object_], ...]
    original: CodedTable
    synthetic: CodedTable
    control: CodedTable | None
    numeric_precision: dict[str, int]
    datetime_precision: dict[str, str]
    deduplicate: bool
    given_precision: dict[str, int | str]
    unknown_values: UnknownValues = field(default_factory=dict)
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    foreign: str | None = None
    as_written: PreprocessedTables | None = None

    def judged(self, foreign: str) -> PreprocessedTables:
        """Return the tables with the judgment whether the synthetic records can be compared with people."""
        return replace(self, foreign=foreign, as_written=self.as_written and self.as_written.judged(foreign))

    @property
    def n_codes(self) -> tuple[int, ...]:
        """Distinct values of each column over all tables."""
        return tuple(len(labels) for labels in self.labels)

    @property
    def tables(self) -> dict[str, CodedTable]:
        """The tables by their stage."""
        tables = {"original": self.original, "synthetic": self.synthetic}
        return tables if self.control is None else {**tables, "control": self.control}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PreprocessedTables):
            return NotImplemented
        return (
            (self.columns, self.kinds, self.deduplicate) == (other.columns, other.kinds, other.deduplicate)
            and self.numeric_precision == other.numeric_precision
            and self.datetime_precision == other.datetime_precision
            and (self.given_precision, self.unknown_values) == (other.given_precision, other.unknown_values)
            and self.parts == other.parts
            and [labels.tolist() for labels in self.labels] == [labels.tolist() for labels in other.labels]
            and (self.tables, self.foreign, self.as_written) == (other.tables, other.foreign, other.as_written)
        )

    __hash__ = None  # type: ignore[assignment]

    def to_artifact(self) -> Artifact:
        """Write everything as plain columns under a JSON header."""
        frames = {}
        for name, table in self.tables.items():
            columns: dict[str, Any] = {
                "position": table.positions,
                "multiplicity": table.multiplicities,
                "n_equal": table.n_equal,
            }
            columns.update({f"code_{i}": codes for i, codes in enumerate(table.codes)})
            if table.people is not None:
                columns["person"] = table.people.of_row
                alike = {"n_alike": table.people.n_alike, "weight": table.people.weights}
                frames[f"people_of_{name}"] = pd.DataFrame(alike)
            frames[name] = pd.DataFrame(columns)
        texts = [text for labels in self.labels for text in labels if text is not None]
        frames["labels"] = pd.DataFrame({"label": pd.Series(texts, dtype=str)})
        header = {
            "columns": list(self.columns),
            "kinds": list(self.kinds),
            "n_codes": list(self.n_codes),
            "has_missing": [len(labels) > 0 and labels[-1] is None for labels in self.labels],
            "n_records": {name: table.n_records for name, table in self.tables.items()},
            "numeric_precision": dict(self.numeric_precision),
            "datetime_precision": dict(self.datetime_precision),
            "deduplicate": self.deduplicate,
            "given_precision": dict(self.given_precision),
            "unknown_values": self.unknown_values,
            "parts": self.parts,
            "foreign": self.foreign,
        }
        if self.as_written is not None:
            written = self.as_written.to_artifact()
            header["as_written"] = written.header
            frames |= {f"{WRITTEN}{name}": frame for name, frame in written.frames.items()}
        return Artifact("PreprocessedTables", header, frames)

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> PreprocessedTables:
        """Read the output of :meth:`to_artifact`."""
        header, frames = artifact.header, artifact.frames
        n_codes = header["n_codes"]
        dtypes = [code_type(n) for n in n_codes]
        tables = {}
        for name, n_records in header["n_records"].items():
            frame = frames[name]
            codes = tuple(np.array(frame[f"code_{i}"], dtype) for i, dtype in enumerate(dtypes))
            positions = np.array(frame["position"], np.int64)
            multiplicities, n_equal = (np.array(frame[c], np.int32) for c in ("multiplicity", "n_equal"))
            people = None
            if "person" in frame:
                alike = frames[f"people_of_{name}"]
                counts = (np.array(alike[c], np.int32) for c in ("n_alike", "weight"))
                people = Subjects(np.array(frame["person"], np.int64), *counts)
            tables[name] = CodedTable(codes, positions, multiplicities, n_equal, n_records, people)
        texts = frames["labels"]["label"].astype(object).tolist()
        labels = []
        begin = 0
        for n, has_missing in zip(n_codes, header["has_missing"], strict=True):
            column = np.full(n, None, object)
            stop = begin + n - has_missing
            column[: n - has_missing] = texts[begin:stop]
            labels.append(column)
            begin = stop
        return cls(
            tuple(header["columns"]),
            tuple(header["kinds"]),
            tuple(labels),
            tables["original"],
            tables["synthetic"],
            tables.get("control"),
            dict(header["numeric_precision"]),
            dict(header["datetime_precision"]),
            header["deduplicate"],
            dict(header["given_precision"]),
            header["unknown_values"],
            {name: tuple(own) for name, own in header["parts"].items()},
            header["foreign"],
            None if "as_written" not in header else cls.from_artifact(_written(artifact)),
        )


def _written(artifact: Artifact) -> Artifact:
    """Return the part of an artifact with the tables as they are written."""
    frames = {name: frame for name, frame in artifact.frames.items() if name.startswith(WRITTEN)}
    frames = {name.removeprefix(WRITTEN): frame for name, frame in frames.items()}
    return Artifact(artifact.kind, artifact.header["as_written"], frames)


def preprocess(
    original: Table,
    synthetic: Table,
    control: Table | None = None,
    *,
    numeric_precision: NumericPrecision = None,
    datetime_precision: DatetimePrecision = None,
    deduplicate: bool = True,
    person: str | None = None,
    parts: Parts | None = None,
    invented: Sequence[str] = (),
) -> PreprocessedTables:
    """Convert tables with the same columns, without direct identifiers, to one precision and to common integer codes.

    Definitions: ``docs/mpucc.md``, section "Preparation".

    Parameters
    ----------
    numeric_precision : int or mapping of str to int, optional
        Decimals (0 to 10) for rounding floats, for all columns or by name. Default: the number in the original.
    datetime_precision : str or mapping of str to str, optional
        D, H, T, s, ms, us or ns (any case; also min, sec, L, U, N) for flooring datetimes, for all columns or by name.
        Default: the coarsest unit that leaves the original unchanged.
    deduplicate : bool
        Whether to drop exact duplicates (after rounding) from each table. With ``person`` these are equal rows of a
        person, and people who have the same rows.
    person : str, optional
        Column of original and control with the person of each row; it is not compared, and the synthetic table must not
        have it. Default: every record is a person.
    parts : mapping of str to sequence of str, optional
        Columns that are parts of one, by a name for it: ``{"born": ["year", "month", "day"]}`` is compared like a date.
    invented : sequence of str
        Columns of invented values, such as names by a generator; see `encode_columns`.
    """
    frames = {"original": original, "synthetic": synthetic}
    if control is not None:
        frames["control"] = control
    require_flag("deduplicate", deduplicate)
    frames, people = separate_people(frames, person)
    columns = check_columns(frames)
    groups = check_parts(parts, columns)
    decimals, units = check_precisions(numeric_precision, datetime_precision, columns)
    owners, kinds = pooled_people(people), {}
    each: dict[str, EncodedColumn] = {}
    unknown_values: UnknownValues = {}
    for name, read, encoded_column, shares in encode_columns(
        columns, lambda _: frames, owners, invented, decimals, units
    ):
        kinds[name] = {table.kind for table in read}
        each[name] = encoded_column
        unknown_values = {**unknown_values, **shares}
    _check_kinds(kinds, numeric_precision, "numeric_precision", ("number",), "numbers")
    _check_kinds(kinds, datetime_precision, "datetime_precision", ("datetime", "aware datetime"), "datetimes")
    joined = join_parts(each, groups)
    encoded = list(joined.values())
    n_codes = [len(column.labels) for column in encoded]
    precisions = {name: column.precision for name, column in each.items()}

    def coded(codes: Sequence[Sequence[NDArray[Any]]]) -> dict[str, Any]:
        of_tables = zip(frames, zip(*codes, strict=True), strict=True)
        tables = {name: _coded_table(own, n_codes, deduplicate, people.get(name)) for name, own in of_tables}
        return {"control": None, **tables}

    tables = coded([column.all_spelled for column in encoded])
    prepared = PreprocessedTables(
        tuple(joined),
        tuple(column.kind for column in encoded),
        tuple(column.labels for column in encoded),
        tables["original"],
        tables["synthetic"],
        tables["control"],
        {name: precision for name, precision in precisions.items() if isinstance(precision, int)},
        {name: precision for name, precision in precisions.items() if isinstance(precision, str)},
        deduplicate,
        {**_given(numeric_precision, columns), **_given(datetime_precision, columns)},
        unknown_values,
        groups,
    )
    if all(column.key_of is None for column in encoded):
        return prepared
    written = coded([column.codes for column in encoded])
    return replace(prepared, as_written=replace(prepared, **written))


def _given(precision: NumericPrecision | DatetimePrecision, columns: Sequence[str]) -> dict[str, int | str]:
    if precision is None:
        return {}
    return dict(precision) if isinstance(precision, Mapping) else dict.fromkeys(columns, precision)


def _coded_table(
    codes: Sequence[NDArray[Any]], n_codes: Sequence[int], deduplicate: bool, people: NDArray[np.int64] | None
) -> CodedTable:
    """Keep the first of equal rows (of a person); without deduplication its weight is their number."""
    groups, n_groups = group_rows(codes, n_codes)
    n_records = len(groups)
    if people is not None:
        ones = np.ones(n_records, np.int32)
        alone = np.ones(int(people.max()) + 1, np.int32)
        grouped = group_people(groups, people, np.arange(n_records), ones, alone, deduplicate=deduplicate)
        return table_of_people(codes, grouped, n_records, deduplicate)
    positions = np.zeros(n_groups, np.int64)
    # Written backwards, so that the first of equal rows remains.
    positions[groups[::-1]] = np.arange(n_records - 1, -1, -1)
    n_equal = np.bincount(groups, minlength=n_groups).astype(np.int32)
    multiplicities = np.ones(n_groups, np.int32) if deduplicate else n_equal
    return CodedTable(tuple(column[positions] for column in codes), positions, multiplicities, n_equal, n_records)


def table_of_people(
    codes: Sequence[NDArray[Any]], grouped: RowsOfPeople, n_records: int, deduplicate: bool
) -> CodedTable:
    """Return the coded table of the rows of people; its positions are those of the codes."""
    rows, n_equal = grouped.positions, grouped.n_equal
    multiplicities = np.ones_like(n_equal) if deduplicate else n_equal
    return CodedTable(
        tuple(column[rows] for column in codes), rows, multiplicities, n_equal, n_records, grouped.subjects
    )


def _require_frames(frames: Mapping[str, object]) -> None:
    for name, frame in frames.items():
        if isinstance(frame, StoredTable):
            continue
        if not isinstance(frame, pd.DataFrame):
            raise InvalidTableError(
                f"The {name} table is a {type_name(frame)}. Expected a pandas DataFrame. Convert it first."
            )
        require_unique_text_names(frame)


def separate_people(
    frames: Mapping[str, Table], person: str | None, synthetic_person: str | None = None
) -> tuple[dict[str, Table], dict[str, NDArray[np.int64]]]:
    """Return the tables without the person columns, and the person of each row; see `take_person`."""
    _require_frames(frames)
    if person is None and synthetic_person is not None:
        raise InvalidSettingError(
            f"`synthetic_person` names {synthetic_person!r}, but `person` names no column, so each original and each "
            "control is a person, and there are no rows of one person to compare. Give `person`, too. Nothing was "
            "assessed."
        )
    return (dict(frames), {}) if person is None else take_person(frames, person, synthetic_person)


def check_columns(frames: Mapping[str, Table]) -> tuple[str, ...]:
    """Check that tables are frames with rows and the same distinct columns; return these in the original's order."""
    _require_frames(frames)
    for name, frame in frames.items():
        labels = list(frame.columns)
        if not labels or len(frame) == 0:
            raise InvalidTableError(
                f"The {name} table has {len(frame)} rows and {len(labels)} columns. Expected at least one row and one "
                "column. Nothing was assessed; check the step that made it."
            )
    columns = tuple(frames["original"].columns)
    for name, frame in frames.items():
        missing = [label for label in columns if label not in frame.columns]
        extra = [place for place, label in enumerate(frame.columns) if label not in columns]
        if missing or extra:
            raise InvalidTableError(
                f"The {name} table does not have the columns of the original table: {len(missing)} missing {missing}, "
                f"{len(extra)} extra ({positions(extra)}). Expected the same {len(columns)} columns. Add or drop "
                "columns."
            )
    return columns


def read_columns(frames: Mapping[str, Any], columns: Sequence[str]) -> dict[str, list[ColumnValues]]:
    """Read columns of every table, which gives them by name; report all that cannot be compared at once."""
    values: dict[str, list[ColumnValues]] = {}
    problems = []
    for column in columns:
        tables = []
        for name, frame in frames.items():
            try:
                tables.append(read_column(frame[column], f"Column {column!r} of the {name} table"))
            except InvalidTableError as error:
                problems.append(str(error))
        found = [f"{table.description} in {name}" for name, table in zip(frames, tables, strict=False)]
        if len({table.description for table in tables if table.kind != "missing"}) > 1 and len(tables) == len(frames):
            problems.append(
                f"Column {column!r} differs in type between the tables: {', '.join(found)}. Expected one type (and one "
                "time zone). Convert one side."
            )
        values[column] = tables
    if problems:
        raise InvalidTableError(" ".join(problems))
    return values


def encode_columns(
    columns: Iterable[str],
    frames_of: Callable[[str], Mapping[str, Any]],
    whose: NDArray[np.int64] | None,
    invented: Sequence[str],
    decimals: Mapping[str, int] = NO_PRECISION,
    units: Mapping[str, str] = NO_PRECISION,
) -> Iterator[tuple[str, list[ColumnValues], EncodedColumn, UnknownValues]]:
    """Read and encode one column after the other, because values need more memory than codes.

    ``frames_of`` returns the tables of a column by name. Yields the column, its values in each table, its codes, and
    the shares of unknown values, if it has some. What cannot be read is reported after all columns, at once; a column
    that cannot be encoded is named.

    An invented column is encoded as if it had no value, because nobody knows its values, if at least nine in ten of its
    synthetic values are nobody's. Otherwise it is compared like any other column.
    """
    problems: list[str] = []
    for name in columns:
        try:
            tables = read_columns(frames_of(name), [name])[name]
        except InvalidTableError as error:
            problems.append(str(error))
            continue
        try:
            column = encode_spelled(tables, decimals=decimals.get(name), unit=units.get(name))
        except InvalidTableError as error:
            raise InvalidTableError(f"Column {name!r}: {error}") from None
        shares = unknown_shares(tables, column, whose, may_be_invented=name in invented)
        if shares is not None and shares["invented"]:
            column = encode_column([without_values(len(table.codes)) for table in tables])
        yield name, tables, column, {} if shares is None else {name: shares}
        if len(tables[0].codes) > ROWS_PER_BATCH:
            del tables
            give_back_memory()
    if problems:
        raise InvalidTableError(" ".join(problems))


def _as_decimals(value: object, setting: str) -> int:
    is_right = is_integer(value, 0, MAX_DECIMALS)
    require(is_right, setting, value, f"a number of decimals, an integer from 0 to {MAX_DECIMALS}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def _as_unit(value: object, setting: str) -> str:
    name = _UNIT_NAMES.get(value.lower()) if isinstance(value, str) else None
    require(name is not None, setting, value, f"one of {', '.join(DATETIME_UNITS)} (or min, sec, L, U, N)")
    return str(name)


def check_precisions(
    numeric_precision: NumericPrecision, datetime_precision: DatetimePrecision, columns: Sequence[str]
) -> tuple[dict[str, int], dict[str, str]]:
    """Return decimals and units by column; raise InvalidSettingError for invalid ones."""
    decimals = _per_column(numeric_precision, columns, "numeric_precision", _as_decimals)
    return decimals, _per_column(datetime_precision, columns, "datetime_precision", _as_unit)


def _per_column(
    precision: Any, columns: Sequence[str], setting: str, convert: Callable[[object, str], Any]
) -> dict[str, Any]:
    """Assign a precision to its columns."""
    if precision is None:
        return {}
    if not isinstance(precision, Mapping):
        return dict.fromkeys(columns, convert(precision, setting))
    unknown = [str(name) for name in precision if name not in columns]
    if unknown:
        raise InvalidSettingError(
            f"{setting} names columns that the tables do not have: {unknown}. They have {list(columns)}. Correct the "
            "names."
        )
    return {name: convert(value, f"{setting}[{name!r}]") for name, value in precision.items()}


def _check_kinds(
    found: Mapping[str, Set[str]], precision: Any, setting: str, kinds: Sequence[str], expected: str
) -> None:
    """Refuse a precision set for a single column that cannot have it."""
    if not isinstance(precision, Mapping):
        return
    wrong = [name for name in precision if not found[name] <= {*kinds, "missing"}]
    if wrong:
        raise InvalidSettingError(
            f"{setting} names columns that are not {expected}: {wrong}. Expected columns of {expected} only. Remove "
            "the others."
        )


def group_equal_rows(
    table: CodedTable, codes: tuple[NDArray[np.unsignedinteger[Any]], ...], n_codes: list[int], deduplicate: bool
) -> CodedTable:
    """Keep the first of equal rows under codes of another table of the same rows, as `preprocess` does."""
    groups, n_groups = group_rows(codes, n_codes)
    if n_groups == table.n_distinct:
        return replace(table, codes=codes)
    if table.people is not None:
        of_row, n_alike, _ = table.people
        rows = np.arange(len(groups))
        grouped = group_people(groups, of_row, rows, table.n_equal, n_alike, deduplicate=deduplicate)
        changed = table_of_people(codes, grouped, table.n_records, deduplicate)
        return replace(changed, positions=table.positions[changed.positions])
    first = np.zeros(n_groups, np.int64)
    first[groups[::-1]] = np.arange(len(groups) - 1, -1, -1)
    n_equal = np.bincount(groups, weights=table.n_equal, minlength=n_groups).astype(np.int32)
    multiplicities = np.ones(n_groups, np.int32) if deduplicate else n_equal
    return CodedTable(
        tuple(column[first] for column in codes), table.positions[first], multiplicities, n_equal, table.n_records
    )
