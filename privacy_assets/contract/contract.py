"""The contract of a table: a pandera schema in which every column has a privacy role.

The schema defines the columns, their types and ranges, and whether values may be missing. The role, in each column's
`metadata`, determines how the column is treated: direct identifiers are removed before anything else. A column that the
contract does not name is an error, because columns are never classified silently.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pandas as pd
import pandera.pandas as pa
from pandas.api import types

from privacy_assets.columns.column_names import positions, problem_of_names
from privacy_assets.columns.parts import names_with_parts, part_problems
from privacy_assets.columns.safe_names import type_name
from privacy_assets.columns.scales import read_scale
from privacy_assets.columns.spelling import people_of
from privacy_assets.contract.conversion import ColumnType, Kind, convert
from privacy_assets.contract.mapping import METADATA, ONE_ROW_PER_PERSON, REASONS, RULES, schema_from_mapping
from privacy_assets.contract.rules import Rule, broken_rules, read_rules
from privacy_assets.contract.written_values import format_problems
from privacy_assets.errors import ContractError, InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import FEWEST_REASON_WORDS, has_words, is_integer, is_printable
from privacy_assets.storage.table import TableOfKind

ROLES: Final = ("direct_identifier", "quasi_identifier", "sensitive", "other")
DATETIME_PRECISIONS: Final = ("D", "H", "T", "min", "S", "sec", "s", "L", "ms", "U", "us", "N", "ns")
MAX_DECIMALS: Final = 10
COPIES_ON_WRITE = int(pd.__version__.partition(".")[0]) >= 3
"""Whether a change by a user's check of a frame that shares its values is not seen in the others."""
MAX_FAILURES_SHOWN: Final = 40
LONGEST_REASON: Final = 500
TABLE: Final = "(table)"
"""Placeholder for the whole table in a failure that is not due to a single column."""

UNNAMED: Final = "custom_check"
ALWAYS: Final = pa.Check(lambda _: True)
_NOTHING: Final = pd.Series([], dtype=object)

UNKNOWN_UNIT: Final = "The contract does not say whose a row is"
REMEDIES: Final[Mapping[str, str]] = {
    "is_in_the_contract": (
        "give an extra column a role in the contract, or drop it (a name that the contract lacks is withheld, because "
        "it may be a value)"
    ),
    "is_not_all_missing": "drop a column without values from table and contract",
    "is_finite": "replace infinite values",
    "is_exact_as_float": "round numbers that have more digits than a float, or declare them as text",
    "has_one_time_zone": "give all datetimes a time zone, or none",
    "has_type_datetime": "write datetimes as ISO 8601",
    "has_no_more_than_microseconds": "floor datetimes to microseconds",
    "is_not_missing": (
        "replace missing values, or allow them with nullable (a person is never missing: give each unknown one a key "
        "of their own, or leave out their records)"
    ),
}
"""Advice for failures whose remedy does not follow from the name of the check."""

Failure = tuple[str, str, int]


class _Column(NamedTuple):
    """The contract's description of one column."""

    type: ColumnType
    role: str
    metadata: Mapping[str, Any]
    schema: pa.Column


class TableContract:
    """Columns, types, ranges and privacy roles of a table about people.

    Parameters
    ----------
    schema : DataFrameSchema or DataFrameModel class
        Each column needs a type and `metadata={"role": ...}` with one of `ROLES`. Optional in the metadata: `precision`
        (decimals of a float column, unit of a datetime column), `hierarchy`, `scale`, `person` (True for the column
        that numbers the people, or for several that do so together), `weight` (True for a survey weight, a positive
        number), `not_a_person` (what the values of a column number that repeat like people, and who decided),
        `links_rows` (why a column that shows which rows are of one person may be released, and who decided), `part_of`
        (a name for the column that two or more columns of one role are parts of, such as year, month and day: they are
        searched as one), `leaves_as_is` (why a column that looks identifying may be released unchanged, and who
        decided; the reasons are published), `invented` (True if a generator makes its synthetic values; it needs
        `leaves_as_is`), and how its texts are written: `format` of datetimes, `decimal` mark of numbers, `missing`
        texts. If no column is the person, the schema's own metadata needs `{"one_row_per_person": True}`, or no release
        is made. `{"rules": {name: rule}}` there has rules across columns, as do its named checks of the whole table
        (`privacy_assets.contract.rules`). The schema's own `strict`, `coerce` and `ordered` are ignored: a contract is
        always strict, and only makes lossless conversions.

    Raises
    ------
    InvalidSettingError
        If a column has no role, or roles, metadata, types or schema features are unknown or unsupported; all are
        listed.

    Notes
    -----
    Types after admission survive a Parquet round trip: int64 (Int64 where missing values are allowed), float64, bool
    (boolean), text, category, datetime64[us] with or without a time zone. Narrower types of the schema are widened.
    """

    __slots__ = (
        *("_check_names", "_columns", "_schema", "one_row_per_person", "person_columns", "precisions", "roles"),
        "rules",
    )

    roles: Mapping[str, str]
    """Role of each column, in order."""
    person_columns: tuple[str, ...]
    """Columns that number the people, together if there are several."""
    one_row_per_person: bool
    """Whether the contract says that each row is another person."""
    precisions: Mapping[str, int | str]
    """Declared precision of the columns that have one."""
    rules: tuple[Rule, ...]
    """Rules across columns, and the named checks of the whole table."""

    def __init__(self, schema: pa.DataFrameSchema | type[pa.DataFrameModel]) -> None:
        if isinstance(schema, type) and issubclass(schema, pa.DataFrameModel):
            schema = schema.to_schema()
        if not isinstance(schema, pa.DataFrameSchema):
            raise InvalidSettingError(
                f"A contract wraps a pandera DataFrameSchema or a DataFrameModel class; got {type(schema).__name__}."
            )
        _check_schema(schema)
        weights = [name for name, column in schema.columns.items() if (column.metadata or {}).get("weight")]
        if weights:
            positive = {name: {"checks": [*schema.columns[name].checks, pa.Check.gt(0)]} for name in weights}
            schema = schema.update_columns(positive)
        columns = {str(name): _described(column) for name, column in schema.columns.items()}
        persons = tuple(name for name, column in columns.items() if column.metadata.get("person"))
        self._freeze("_schema", schema)
        self._freeze("_columns", MappingProxyType(columns))
        # Recorded before any check is given a table.
        checks = {TABLE: schema.checks} | {str(name): column.checks for name, column in schema.columns.items()}
        names = {(name, i): _check_name(check) for name, own in checks.items() for i, check in enumerate(own)}
        self._freeze("_check_names", MappingProxyType(names))
        self._freeze("roles", MappingProxyType({name: column.role for name, column in columns.items()}))
        self._freeze("person_columns", persons)
        self._freeze("one_row_per_person", _says_one_row_per_person(schema))
        self._freeze("precisions", MappingProxyType(self.metadata("precision")))
        named = {self.name_of_check(TABLE, place): check for place, check in enumerate(schema.checks)}
        named.pop(UNNAMED, None)
        rules = read_rules((schema.metadata or {}).get(RULES, {}), self.without_records(), named, is_declared=True)
        self._freeze("rules", rules)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> TableContract:
        """Build a contract from plain data, such as a YAML file; see `contract_mapping` for the keys."""
        return cls(schema_from_mapping(mapping))

    @classmethod
    def from_path(cls, path: str) -> TableContract:
        """Import ``package.module:attribute``: a schema, a model, a contract, or a function that returns one."""
        module, _, attribute = path.partition(":")
        if not module or not attribute:
            raise InvalidSettingError(f"{path!r} is not a Python path of the form 'package.module:attribute'.")
        found: Any = None
        problem = ""
        try:
            found = getattr(import_module(module), attribute)
            is_function = callable(found) and not isinstance(found, type | pa.DataFrameSchema)
            found = found() if is_function else found
        except Exception as error:  # noqa: BLE001 (a user's module can raise anything, and its text may contain values)
            problem = type(error).__name__
        if problem:
            raise InvalidSettingError(f"The contract {path!r} could not be imported: {problem}. Check path and module.")
        return found if isinstance(found, cls) else cls(found)

    @property
    def schema(self) -> pa.DataFrameSchema:
        """The pandera schema the contract wraps; do not change it."""
        schema: pa.DataFrameSchema = self._schema  # type: ignore[attr-defined]
        return schema

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of a source table, in order."""
        return tuple(self.roles)

    @property
    def person(self) -> str | None:
        """Column of an admitted table with the person of each row; None if each row counts as a person."""
        return " + ".join(self.person_columns) or None

    def require_unit(self) -> None:
        """Refuse a contract that does not say whose a row is.

        Raises
        ------
        InvalidSettingError
            If no column is the person, and nothing says that each person has one row.
        """
        if not self.person_columns and not self.one_row_per_person:
            raise InvalidSettingError(
                f"{UNKNOWN_UNIT}, so all figures would count rows. Expected either `person: true` on the column that "
                "numbers the people (on several columns, if they do so together), or "
                f"`{ONE_ROW_PER_PERSON}: true` next to `columns` if each person has one row (in pandera: "
                f'DataFrameSchema(..., metadata={{"{ONE_ROW_PER_PERSON}": True}})). Nothing was read.'
            )

    @property
    def released_columns(self) -> tuple[str, ...]:
        """Columns that are synthesized, assessed and may be released: all except direct identifiers and the person."""
        kept = (name for name, role in self.roles.items() if role != "direct_identifier")
        return tuple(name for name in kept if name not in self.person_columns)

    @property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """The released columns that are parts of one, by the name that the contract has for it."""
        return _grouped(self.metadata("part_of"))

    @property
    def searched_columns(self) -> tuple[str, ...]:
        """The released columns as the mpUCC search has them: parts of one column are one."""
        return names_with_parts(self.released_columns, self.parts)

    def columns_with_role(self, role: str) -> tuple[str, ...]:
        """Return the columns that have `role`, in order."""
        if role not in ROLES:
            raise InvalidSettingError(f"There is no role {role!r}. There are {list(ROLES)}.")
        return tuple(name for name, own in self.roles.items() if own == role)

    @property
    def descriptions(self) -> dict[str, str]:
        """Descriptions of the columns from the schema, by column."""
        own = {str(name): column.description for name, column in self.schema.columns.items()}
        return {name: text for name, text in own.items() if text}

    @property
    def acknowledged(self) -> dict[str, str]:
        """Reasons in the contract for releasing columns unchanged, by column."""
        return self._reasons("leaves_as_is")

    @property
    def not_a_person(self) -> dict[str, str]:
        """Reasons in the contract why columns whose values repeat like people do not number people, by column."""
        return self._reasons("not_a_person")

    @property
    def links_rows(self) -> dict[str, str]:
        """Reasons in the contract for releasing columns that show which rows are of one person, by column."""
        return self._reasons("links_rows")

    @property
    def weights(self) -> tuple[str, ...]:
        """Columns with survey weights."""
        return tuple(name for name, is_weight in self.metadata("weight").items() if is_weight)

    @property
    def invented(self) -> tuple[str, ...]:
        """Columns whose values a generator invents."""
        return tuple(name for name, is_invented in self.metadata("invented").items() if is_invented)

    def as_compared(self, table: TableOfKind) -> TableOfKind:
        """Return a table in which categories that the contract does not list are text, as comparisons need them."""
        types_of = {name: column.type for name, column in self._described().items() if column.type.kind == "category"}
        plain = [name for name, own in types_of.items() if own.categories is None and not own.ordered]
        converted: Any = table.astype({name: object for name in plain if name in table.columns})
        found: TableOfKind = converted
        return found

    def without_records(self) -> pd.DataFrame:
        """Return a table of all columns with their types, which has no records."""
        return pd.DataFrame({name: convert(_NOTHING, each.type).column for name, each in self._described().items()})

    def _reasons(self, key: str) -> dict[str, str]:
        return {name: reason.strip() for name, reason in self.metadata(key).items()}

    def metadata(self, key: str) -> dict[str, Any]:
        """Return the declarations under `key` (precision, hierarchy, scale), by column."""
        declared = {name: column.metadata.get(key) for name, column in self._described().items()}
        return {name: value for name, value in declared.items() if value is not None}

    def admit(self, table: pd.DataFrame) -> pd.DataFrame:
        """Check a source table and return it in the contract's order and types, without direct identifiers.

        The person column is kept, regardless of its role, as integer codes 0, 1, ... in order of appearance; keys that
        are spelled alike are one person.

        Raises
        ------
        ContractError
            If the table violates the contract; all violations are counted by column and check.
        """
        if not self.person_columns and not self.one_row_per_person:
            warnings.warn(f"{UNKNOWN_UNIT}: rows are taken for people, and no release is made of them.", stacklevel=2)
        return self.with_people(self.check(table))

    def check(self, table: pd.DataFrame, subject: str = "The table") -> pd.DataFrame:
        """Check a source table like `admit`, and return all of its columns converted, as the unit is judged on them."""
        return self._validate(table, self.columns, subject)

    def with_people(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the released columns of converted rows, and the person of each row as codes."""
        if self.person is not None:
            table = table.assign(**{self.person: people_of(table[list(self.person_columns)])})
        return table[self.admitted_columns]

    @property
    def admitted_columns(self) -> list[str]:
        """Columns of an admitted table, in order: those that are released, and the person."""
        first = self.person_columns[:1]
        kept = (name for name in self.columns if name in self.released_columns or name in first)
        return [str(self.person) if name in first else name for name in kept]

    def require_known_columns(self, table: pd.DataFrame) -> None:
        """Refuse a table whose columns differ from the contract's, such as a file that was read without its header.

        Raises
        ------
        ContractError
            If the columns differ; the message counts them and names only columns of the contract.
        """
        failures = [each for each in shape_failures(table, self.columns) if each[:2] != (TABLE, "has_records")]
        if failures:
            raise broken_contract("The table", failures)

    def admit_synthetic(self, table: pd.DataFrame, subject: str = "The synthetic table") -> pd.DataFrame:
        """Check a synthetic table: exactly the released columns, with the same types, ranges and checks of columns.

        Rules are not asked of it: their violations are counted (`privacy_assets.contract.rules`).

        Raises
        ------
        ContractError
            If the table violates the contract; all violations are counted by column and check.
        """
        return self._validate(table, self.released_columns, subject, with_rules=False)

    def describe(self) -> list[dict[str, str | bool]]:
        """Describe the columns without values, JSON-able."""
        return [
            {"column": name, "type": column.type.label, "role": column.role, "nullable": column.type.nullable}
            for name, column in self._described().items()
        ]

    def _validate(
        self, table: pd.DataFrame, expected: tuple[str, ...], subject: str, *, with_rules: bool = True
    ) -> pd.DataFrame:
        failures = shape_failures(table, expected, self.columns)
        if any(column == TABLE for column, _, _ in failures):
            raise broken_contract(subject, failures)
        acknowledged = [name for name, check, _ in failures if check == "is_present" and name in self.acknowledged]
        converted = {}
        for name in expected:
            if name in table.columns:
                converted[name], lost = convert(table[name], self.required_type(name))
                failures += [(name, check, count) for check, count in lost]
        result = pd.DataFrame(converted, copy=not COPIES_ON_WRITE)
        failures += self.check_failures(result, with_table_checks=not failures, with_rules=with_rules)
        if failures:
            raise broken_contract(subject, failures, acknowledged)
        return result

    def required_type(self, name: str) -> ColumnType:
        """Return the type of a column; the person of a row is never missing, what is removed may be without values."""
        own = self._described()[name].type
        if name in self.person_columns:
            return replace(own, nullable=False)
        return replace(own, may_be_empty=self.roles[name] == "direct_identifier")

    def check_failures(self, table: pd.DataFrame, *, with_table_checks: bool, with_rules: bool = True) -> list[Failure]:
        """Run the schema's checks on converted columns, and the rules; missing values were counted before."""
        described = self._described()
        columns = {
            name: pa.Column(checks=described[name].schema.checks, nullable=True, unique=described[name].schema.unique)
            for name in table.columns
        }
        together = self.schema.unique or []
        has_all = set([together] if isinstance(together, str) else together) <= set(table.columns)
        of_table = [
            check if with_rules or self.name_of_check(TABLE, place) == UNNAMED else ALWAYS
            for place, check in enumerate(self.schema.checks)
        ]
        checks = pa.DataFrameSchema(
            columns,
            checks=of_table if with_table_checks else None,
            unique=self.schema.unique if together and has_all else None,
        )
        found = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a user's check may warn with values
            try:
                checks.validate(table.copy(deep=not COPIES_ON_WRITE), lazy=True, inplace=True)
            except pa.errors.SchemaErrors as errors:
                found = [_failure(error, self._check_names) for error in errors.schema_errors]  # type: ignore[attr-defined]
        found = found or []
        if with_table_checks and with_rules and self.rules:
            found += [(TABLE, *each) for each in broken_rules([each for each in self.rules if not each.check], table)]
        return found

    def name_of_check(self, column: str, place: int) -> str:
        """Return the name of a check in the schema, with its bounds."""
        names: Mapping[tuple[str, int | None], str] = self._check_names  # type: ignore[attr-defined]
        return names[column, place]

    def _described(self) -> Mapping[str, _Column]:
        columns: Mapping[str, _Column] = self._columns  # type: ignore[attr-defined]
        return columns

    def _freeze(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A TableContract cannot be changed: {name!r} cannot be set.")

    def __repr__(self) -> str:
        counts = {role: len(self.columns_with_role(role)) for role in ROLES}
        return f"TableContract({len(self.roles)} columns: {counts})"


def resolve_contract(contract: Any) -> TableContract:
    """Return a contract that is given as an object, a Python path, a mapping or a pandera schema."""
    if isinstance(contract, str):
        return TableContract.from_path(contract)
    if isinstance(contract, Mapping):
        return TableContract.from_mapping(contract)
    return contract if isinstance(contract, TableContract) else TableContract(contract)


def _check_schema(schema: pa.DataFrameSchema) -> None:
    """Raise one error with all problems of a contract."""
    problems = _table_problems(schema)
    persons = [str(name) for name, column in schema.columns.items() if (column.metadata or {}).get("person")]
    for name, column in schema.columns.items():
        problems += [f"column {str(name)!r} {problem}" for problem in _column_problems(name, column)]
    if persons and _says_one_row_per_person(schema):
        problems.append(
            f"it says both `{ONE_ROW_PER_PERSON}` and that {persons} number the people: expected one of them"
        )
    if len(persons) > 1 and " + ".join(persons) in map(str, schema.columns):
        problems.append(f"it has a column {' + '.join(persons)!r}, as {persons} are named together: rename it")
    problems += _part_problems({str(name): column.metadata or {} for name, column in schema.columns.items()})
    if problems:
        raise InvalidSettingError(f"The contract cannot be used ({len(problems)} problems): {'; '.join(problems)}.")


def _table_problems(schema: pa.DataFrameSchema) -> list[str]:
    problems = [] if schema.columns else ["it has no columns"]
    if schema.index is not None:
        problems.append("it describes an index: make that a column with a role")
    if schema.parsers or any(column.parsers for column in schema.columns.values()):
        problems.append("it has parsers: clean the table before it is admitted")
    if schema.drop_invalid_rows or schema.add_missing_columns:
        problems.append("it drops invalid rows or adds missing columns, but a contract must refuse them")
    if any(check.raise_warning for check in schema.checks):
        problems.append("a check of the table only warns, but a contract must refuse")
    if not isinstance((schema.metadata or {}).get(ONE_ROW_PER_PERSON, False), bool):
        problems.append(f"its `{ONE_ROW_PER_PERSON}` is neither true nor false")
    return problems


def _says_one_row_per_person(schema: pa.DataFrameSchema) -> bool:
    return (schema.metadata or {}).get(ONE_ROW_PER_PERSON) is True


def _part_problems(columns: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Describe what is wrong with `part_of` in the metadata of columns."""
    named = {column: own["part_of"] for column, own in columns.items() if own.get("part_of") is not None}
    wrong = [column for column, name in named.items() if not isinstance(name, str) or not name.strip().isprintable()]
    if wrong or not all(map(str.strip, named.values())):
        yield f"`part_of` of {wrong or list(named)} is no name: write that of the column that they are parts of"
        return
    parts = _grouped(named)
    yield from (f"`part_of` makes {problem}" for problem in part_problems(parts, list(columns)))
    for name, own in parts.items():
        roles = {column: columns[column].get("role") for column in own}
        if len(set(roles.values())) > 1:
            yield f"the parts of {name!r} have different roles, {roles}: give them one"
        if "direct_identifier" in roles.values() or any(columns[column].get("person") for column in own):
            yield f"the parts of {name!r}, {list(own)}, are never released: remove their `part_of`"


def _grouped(part_of: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(part for part in part_of if part_of[part] == name) for name in part_of.values()}


def _column_problems(name: Hashable, column: pa.Column) -> Iterable[str]:
    metadata = column.metadata or {}
    role = metadata.get("role")
    if not isinstance(name, str) or column.regex:
        yield "does not have a string as its name"
    if "role" not in metadata:
        yield f"has no role: give it one of {list(ROLES)} in its metadata"
    elif role not in ROLES:
        yield f"has the unknown role {role!r}: there are {list(ROLES)}"
    unknown = sorted(str(key) for key in metadata if key not in METADATA)
    if unknown:
        yield f"has unknown metadata {unknown}: there are {list(METADATA)}"
    yield from (
        f"has a value of `{key}` that is neither true nor false"
        for key in ("person", "invented", "weight")
        if not isinstance(metadata.get(key, False), bool)
    )
    for key in REASONS:
        if key in metadata:
            yield from _reason_problems(key, metadata)
    if metadata.get("invented") is True and "leaves_as_is" not in metadata:
        yield "is `invented` without a reason; expected `leaves_as_is`: what invents its values, and who decided"
    if not column.required or column.default is not None:
        yield "is optional or has a default, which a contract does not allow"
    if any(check.raise_warning for check in column.checks):
        yield "has a check that only warns, but a contract must refuse"
    kind = _kind(column)
    if metadata.get("person") is True and kind in ("float", "boolean", "datetime"):
        yield f"is the person, but has the type {kind}: people are numbered by integers, texts or categories"
    if metadata.get("weight") is True and (kind not in ("integer", "float") or metadata.get("person") is True):
        yield "is a `weight`, but no number, or the person: a weight is a positive number"
    if kind is None:
        shown = "no type" if column.dtype is None else f"the type {column.dtype}"
        yield f"has {shown}: there are integer, float, boolean, text, category and datetime types"
    yield from _precision_problems(metadata.get("precision"), kind)
    yield from format_problems(metadata, kind)
    categories = getattr(column.dtype.type, "categories", None) if kind == "category" else None
    if categories is not None and not all(isinstance(each, str) for each in categories):
        yield "has categories that are not text; expected texts, as which numbers are read, too"
    if metadata.get("scale") is not None:
        yield from _scale_problems(metadata["scale"])


def _reason_problems(key: str, metadata: Mapping[str, Any]) -> Iterable[str]:
    reason, expected = metadata[key], f"expected {REASONS[key]}, and who decided: at least {FEWEST_REASON_WORDS} words"
    if not isinstance(reason, str):
        yield f"has a `{key}` that is not text; {expected}"
    elif len(reason) > LONGEST_REASON:
        yield f"has a `{key}` of {len(reason)} characters; expected at most {LONGEST_REASON}"
    elif not is_printable(reason):
        yield f"has a `{key}` with characters that cannot be printed; expected plain text"
    elif not has_words(reason):
        yield f"has a `{key}` without a reason; {expected}"
    if key == "not_a_person":
        if metadata.get("person") is True:
            yield "has a `not_a_person`, but is the person. Remove one of them"
    elif metadata.get("role") == "direct_identifier" or metadata.get("person") is True:
        yield f"has a `{key}`, but is never released: it is a direct identifier, or the person. Remove it"


def _precision_problems(precision: object, kind: Kind | None) -> Iterable[str]:
    if precision is None:
        return
    if kind == "float":
        if not is_integer(precision, 0, MAX_DECIMALS, plain=True):
            yield f"has the precision {precision!r}: a float column takes a number of decimals, 0 to {MAX_DECIMALS}"
    elif kind == "datetime":
        if str(precision).lower() not in {unit.lower() for unit in DATETIME_PRECISIONS}:
            yield f"has the precision {precision!r}: a datetime column takes one of {list(DATETIME_PRECISIONS)}"
    else:
        yield "has a precision, which only float and datetime columns can have"


def _scale_problems(scale: object) -> Iterable[str]:
    try:
        read_scale(scale)
    except InvalidSettingError as error:
        yield f"has a scale that cannot be used: {error}"


def _described(column: pa.Column) -> _Column:
    metadata = dict(column.metadata or {})
    kind = _kind(column)
    if kind is None:
        raise InvalidSettingError(f"Column {column.name!r} has a type that contracts do not support.")
    native = column.dtype.type
    is_category = isinstance(native, pd.CategoricalDtype)
    kind_type = ColumnType(
        kind=kind,
        nullable=column.nullable,
        time_zone=getattr(native, "tz", None),
        categories=native.categories if is_category else None,
        ordered=bool(native.ordered) if is_category else False,
        format=metadata.get("format"),
        decimal=metadata.get("decimal"),
        missing=tuple(metadata.get("missing") or ()),
    )
    return _Column(kind_type, metadata["role"], MappingProxyType(metadata), column)


def _kind(column: pa.Column) -> Kind | None:
    native = getattr(column.dtype, "type", None)
    if column.dtype is None or native is None:
        return None
    if isinstance(native, pd.CategoricalDtype) or str(column.dtype) == "category":
        return "category"
    if str(column.dtype).startswith("str"):
        return "text"
    tests: tuple[tuple[Any, Kind], ...] = (
        (types.is_bool_dtype, "boolean"),
        (types.is_integer_dtype, "integer"),
        (types.is_float_dtype, "float"),
        (types.is_datetime64_any_dtype, "datetime"),
    )
    return next((kind for test, kind in tests if test(native)), None)


def shape_failures(table: pd.DataFrame, expected: tuple[str, ...], described: tuple[str, ...] = ()) -> list[Failure]:
    """Compare the columns; after failures of the `TABLE`, nothing else is checked.

    A column that is neither expected nor ``described`` in the contract has its position for a name, because its own
    name may be a value.
    """
    if not isinstance(table, pd.DataFrame):
        raise InvalidTableError(f"A contract admits a pandas DataFrame; got {type_name(table)}.")
    names = list(table.columns)
    problem = problem_of_names(names)
    is_known = bool(set(names) & set(expected))
    if problem and (is_known or not all(isinstance(name, str) for name in names)):
        raise ContractError(problem, ((TABLE, "has_different_texts_as_names", 1),))
    if not is_known:
        return [(TABLE, f"has_any_of_the_columns {list(expected)}", len(names))]
    failures = [(name, "is_present", 1) for name in expected if name not in names]
    failures += [(name, "is_in_the_contract", 1) for name in names if name in described and name not in expected]
    known = {*expected, *described}
    extra = [place for place, name in enumerate(names) if name not in known]
    if extra:
        failures.append((f"({positions(extra)})", "is_in_the_contract", len(extra)))
    return failures if len(table) else [*failures, (TABLE, "has_records", 1)]


def _check_name(check: Any) -> str:
    """Return the name of a check with its bounds, which come from the contract; longer lists are not shown."""
    given = str(getattr(check, "name", None) or "check")
    bounds = getattr(check, "statistics", None) or {}
    shown = ", ".join(f"{bound:g}" for bound in bounds.values() if isinstance(bound, int | float))
    return UNNAMED if given == "<lambda>" else f"{given}({shown})" if shown else given


def _failure(error: pa.errors.SchemaError, names: Mapping[tuple[str, int | None], str]) -> Failure:
    """Count the failures in a pandera error; its text and failure cases contain values and are not used."""
    of_column = isinstance(error.schema, pa.Column)
    column = str(error.schema.name) if of_column else TABLE
    reason = getattr(error.reason_code, "name", "")
    if reason in {"DUPLICATES", "SERIES_CONTAINS_DUPLICATES"}:
        name = "is_unique"
    else:
        name = names.get((column, error.check_index), UNNAMED)
    if reason == "CHECK_ERROR":
        return column, f"{name} (could not be evaluated)", 1
    cases = error.failure_cases
    count = cases["index"].nunique() if isinstance(cases, pd.DataFrame) and "index" in cases else 1
    return column, name, max(int(count), 1)


def broken_contract(subject: str, failures: list[Failure], acknowledged: Sequence[str] = ()) -> ContractError:
    """Return the error with all violations of a contract."""
    shown = "; ".join(_sentence(*failure) for failure in failures[:MAX_FAILURES_SHOWN])
    if len(failures) > MAX_FAILURES_SHOWN:
        shown += f"; and {len(failures) - MAX_FAILURES_SHOWN} more"
    remedies = [REMEDIES[check] for check in dict.fromkeys(check for _, check, _ in failures) if check in REMEDIES]
    if acknowledged:
        remedies.append(
            f"remove {list(acknowledged)}, with its `leaves_as_is`, from the contract if it no longer exists"
        )
    advice = "; ".join([*remedies, "correct the table, or the contract if it is wrong"])
    return ContractError(
        f"{subject} does not meet its contract: {shown}. Nothing was admitted: {advice}.", tuple(failures)
    )


def _sentence(column: str, check: str, count: int) -> str:
    """Describe a failure: in words for the shape of a table, by the name of the check for values."""
    if column == TABLE:
        said = f"{check} in {count} records" if check.startswith("rule") else f"{check} fails ({count})"
        return "there are no records" if check == "has_records" else said
    if column.startswith("(positions "):
        return f"{count} columns {column} are not in the contract"
    words = {"is_present": "is missing", "is_in_the_contract": "is not released"}
    return f"column {column!r} {words.get(check) or f'fails {check} in {count} records'}"
