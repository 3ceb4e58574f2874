"""The one table, with its contract, that is anonymized instead of related tables, in one of the forms that protect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pandas as pd
import pandera.pandas as pa

from privacy_assets.anonymization.related import (
    LINKED_ROWS,
    aggregate_rows,
    columns_that_tie_rows,
    unlinked_rows,
)
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.conversion import ColumnType
from privacy_assets.contract.mapping import ONE_ROW_PER_PERSON
from privacy_assets.contract.related import PEOPLE, RelatedTables
from privacy_assets.contract.related_contracts import RelatedContracts
from privacy_assets.errors import InvalidSettingError, InvalidTableError

AGGREGATE: Final = "aggregate"
UNLINKED: Final = "unlinked"
FORMS: Final = (
    "make figures of rows columns of the people (`anonymized: {aggregate: {rows: count}}` of a child), or let the rows "
    "of one child leave without a key (`anonymized: {unlinked: [columns of the people]}`)"
)
ROLES_OF_FIGURES: Final = ("quasi_identifier", "sensitive", "other")
_DECLARED: Final = ("role", "description", "hierarchy", "leaves_as_is", "precision", "scale")
_OF_A_VALUE: Final = ("hierarchy", "precision", "scale")
"""Declarations on a column that also hold for one of its values."""
_PICKED: Final = ("min", "max", "first", "last")
_NEVER_MISSING: Final = ("count", "sum", "any")
_TYPICAL: Final[Mapping[str, Any]] = {
    "integer": 1,
    "float": 0.5,
    "boolean": True,
    "datetime": pd.Timestamp("2000-01-01"),
}
"""A value of each kind that is no text."""


@dataclass(frozen=True, eq=False)
class OneTable:
    """How related tables become one: people with figures of their rows, or the rows of a child without a key.

    Attributes
    ----------
    contract : TableContract
        The contract of the table: that of the people with figures, or that of the rows with columns of the people.
    aggregates : mapping
        Figures by child and column; empty if rows leave.
    unlinked : str or None
        The child whose rows leave.
    columns : tuple of str
        Columns of the people that leave with each row.
    links : mapping
        How each child belongs to the people, JSON-able.
    """

    contract: TableContract
    aggregates: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    unlinked: str | None = None
    columns: tuple[str, ...] = ()
    links: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, contracts: RelatedContracts, forms: Mapping[str, object]) -> OneTable:
        """Derive it from the form of each child, ``{"aggregate": ...}`` or ``{"unlinked": [...]}``.

        Raises
        ------
        InvalidSettingError
            If there is no form, or more than one that rows could be joined by, or if it does not fit the contracts.
        """
        wrong = [
            name
            for name, form in forms.items()
            if not isinstance(form, Mapping) or len(form) != 1 or not {AGGREGATE, UNLINKED}.issuperset(form)
        ]
        if wrong:
            raise _refused(
                f"that of {wrong} is no mapping with one key, {AGGREGATE!r} or {UNLINKED!r}. Expected one of them"
            )
        unlinked = {name: form[UNLINKED] for name, form in forms.items() if UNLINKED in form}  # type: ignore[index, operator]
        aggregates = {name: form[AGGREGATE] for name, form in forms.items() if AGGREGATE in form}  # type: ignore[index, operator]
        if not forms:
            raise _refused(f"no child has one. {LINKED_ROWS}. Expected one form: {FORMS}")
        if len(unlinked) > 1 or (unlinked and aggregates):
            raise _refused(
                f"{[*aggregates, *unlinked]} have several forms that can be joined: sums and equal values of a person "
                "show which rows are theirs. Expected figures of rows alone, or the rows of one child alone"
            )
        try:
            of_rows = [_of_rows(contracts, name, columns) for name, columns in unlinked.items()]
            made = of_rows[0] if of_rows else _of_people(contracts, aggregates)
            links = {
                name: {key: own for key, own in each._asdict().items() if key != "contract"}
                for name, each in contracts.links.items()
            }
            return replace(made, links=links)
        except InvalidTableError as error:
            problem = str(error)
        raise _refused(problem.removesuffix("."))

    def make(self, tables: RelatedTables) -> pd.DataFrame:
        """Make the table, as its contract admits it.

        Raises
        ------
        InvalidTableError
            If columns that would leave as they are tie the rows of a person together, or a figure is out of range.
        """
        if self.unlinked is None:
            return self.contract.admit(aggregate_rows(tables, self.aggregates))
        child = tables.children[self.unlinked]
        generalized = self.contract.columns_with_role("quasi_identifier")
        of_rows = [name for name in child.table.columns if self.named(name) in generalized]
        tying = columns_that_tie_rows(tables, self.unlinked, of_rows)
        if tying:
            raise InvalidTableError(
                f"{len(tying)} columns of {self.unlinked!r} that would leave as they are never differ within a person: "
                f"{tying}. Their equal values tie the rows of a person together again. Make them quasi-identifiers, or "
                "direct identifiers, which do not leave. Nothing was stored."
            )
        return self.contract.admit(unlinked_rows(tables, self.unlinked, self.columns))

    def named(self, column: str) -> str:
        """Return the name that a column of rows has next to those of the people."""
        return f"{column} of {self.unlinked}" if column in self.columns else column

    def to_json(self) -> dict[str, Any]:
        """Describe how the table is made, JSON-able; orders decide which row is the first of a person."""
        figures = {name: {column: list(own) for column, own in each.items()} for name, each in self.aggregates.items()}
        form = {AGGREGATE: figures} if self.unlinked is None else {UNLINKED: {self.unlinked: list(self.columns)}}
        return {**form, "links": dict(self.links)}


def _refused(problem: str) -> InvalidSettingError:
    return InvalidSettingError(f"`anonymized` of `children`: {problem}. Nothing was read.")


def _of_people(contracts: RelatedContracts, asked: Mapping[str, object]) -> OneTable:
    declared: dict[str, dict[str, dict[str, Mapping[str, Any]]]] = {}
    for name, by_column in asked.items():
        if not isinstance(by_column, Mapping):
            raise _refused(f"`{AGGREGATE}` of {name!r} is no mapping of columns to figures, such as {{rows: count}}")
        declared[name] = {column: _figures(name, column, given) for column, given in by_column.items()}
    aggregates = {name: {column: tuple(own) for column, own in each.items()} for name, each in declared.items()}
    people = contracts.tables[PEOPLE]
    made = aggregate_rows(_example(contracts), aggregates)
    columns = {name: _as_it_is(people, name) for name in made if name in people.released_columns}
    figures = [
        (name, column, figure, own)
        for name, by_column in declared.items()
        for column, each in by_column.items()
        for figure, own in each.items()
    ]
    for new, (name, column, figure, own) in zip(made.columns[len(columns) :], figures, strict=True):
        columns[new] = _column_of(contracts.tables[name], column, figure, own, str(made[new].dtype))
    roles = [columns[new].metadata["role"] for new in made.columns[-len(figures) :]]
    _require_hidden_counts([(*each, role) for each, role in zip(figures, roles, strict=True)])
    schema = pa.DataFrameSchema(columns, metadata={ONE_ROW_PER_PERSON: True})
    return OneTable(TableContract(schema), aggregates)


def _require_hidden_counts(figures: Sequence[tuple[str, str, str, Mapping[str, Any], str]]) -> None:
    """Refuse figures that leave as they are and show how many rows a person has, if that number is generalized."""
    hidden = {name for name, _, figure, _, role in figures if (figure, role) == ("count", "quasi_identifier")}
    exact: dict[tuple[str, str], list[str]] = {}
    for name, column, figure, own, role in figures:
        if name in hidden and role != "quasi_identifier" and figure != "any" and not own.get("leaves_as_is"):
            exact.setdefault((name, column), []).append(figure)
    shown = [f"{own} of {column!r} of {name!r}" for (name, column), own in exact.items() if "count" in own or own[1:]]
    if shown:
        raise InvalidTableError(
            f"{'; '.join(shown)} leave as they are, and show how many rows a person has, which is generalized: counts "
            "do, and so do several figures, which are equal for one row. Give them the role quasi_identifier, ask for "
            "one of them, or state a reason in leaves_as_is"
        )


def _of_rows(contracts: RelatedContracts, name: str, columns: object) -> OneTable:
    people, child = contracts.tables[PEOPLE], contracts.links[name].contract
    released = list(people.released_columns)
    if not isinstance(columns, list | tuple) or not all(each in released for each in columns):
        raise _refused(f"`{UNLINKED}` of {name!r} is no list of released columns of the people, which are {released}")
    if len(set(columns)) < len(columns):
        raise _refused(f"`{UNLINKED}` of {name!r} names a column twice: {list(columns)}. Expected each once")
    exact = {each: people.roles[each] for each in columns if people.roles[each] != "quasi_identifier"}
    if exact:
        raise _refused(
            f"`{UNLINKED}` of {name!r} names {list(exact)}, with the roles {sorted(set(exact.values()))}. They would "
            "leave as they are with each row, and their equal values tie the rows of a person together again. Expected "
            "quasi-identifiers, which are generalized; or anonymize the people with figures of their rows"
        )
    made = unlinked_rows(_example(contracts), name, columns)
    own = [each for each in contracts.columns_of(name) if each in child.released_columns]
    from_ = [(people, each) for each in columns] + [(child, each) for each in own]
    of_person = {"role": "direct_identifier", "person": True}
    described = {contracts.person: pa.Column("int64", metadata=of_person)}
    for new, (contract, old) in zip(made.columns[1:], from_, strict=True):
        described[new] = _as_it_is(contract, old)
    return OneTable(TableContract(pa.DataFrameSchema(described)), unlinked=name, columns=tuple(columns))


def _figures(name: str, column: object, given: object) -> dict[str, Mapping[str, Any]]:
    """Return what is declared of each figure of a column: a name, a list of them, or what each is."""
    several = [given] if isinstance(given, str) else given
    if isinstance(several, list | tuple) and all(isinstance(each, str) for each in several):
        several = {figure: {} for figure in several}
    figures = several if isinstance(several, Mapping) else {}
    found = {each: {"role": own} if isinstance(own, str) else own for each, own in figures.items()}
    problems = [] if found else ["expected a figure such as count, a list of them, or a mapping to their roles"]
    for figure, own in found.items():
        if not isinstance(own, Mapping) or not set(own) <= set(_DECLARED):
            problems.append(f"{figure!r} has neither a role nor a mapping with some of {list(_DECLARED)}")
        elif own.get("role", "sensitive") not in ROLES_OF_FIGURES:
            problems.append(f"the role of {figure!r} is none of {list(ROLES_OF_FIGURES)}")
    if problems:
        raise _refused(f"`{AGGREGATE}` of {name!r}, {column!r}: {'; '.join(problems)}")
    return found


def _column_of(contract: TableContract, column: str, figure: str, own: Mapping[str, Any], dtype: str) -> pa.Column:
    """Return what the contract says of a figure; one of the values is of the type of its column.

    Who knows the values of a quasi-identifier knows their figures, too.
    """
    is_known = figure != "count" and contract.roles[column] == "quasi_identifier"
    if is_known and own.get("role", "quasi_identifier") != "quasi_identifier" and not own.get("leaves_as_is"):
        raise InvalidTableError(
            f"{figure!r} of {column!r} would leave as it is, but {column!r} is a quasi-identifier, and of people with "
            "one row it is its value. Expected the role quasi_identifier, or a reason in leaves_as_is"
        )
    metadata = {
        "role": "quasi_identifier" if is_known else "sensitive",
        **{key: value for key, value in own.items() if key != "description"},
    }
    about: dict[str, Any] = {"description": own.get("description"), "nullable": figure not in _NEVER_MISSING}
    if figure not in _PICKED:
        return pa.Column(dtype, metadata=metadata, **about)
    picked = contract.schema.columns[column]
    inherited = picked.metadata or {}
    metadata = {key: inherited[key] for key in _OF_A_VALUE if key in inherited} | metadata
    return pa.Column(picked.dtype, checks=picked.checks, metadata=metadata, **about)


def _as_it_is(contract: TableContract, name: str) -> pa.Column:
    """Return a released column as it is in another contract; a generalized one needs no reason to leave as it is."""
    own = contract.schema.columns[name]
    is_generalized = contract.roles[name] == "quasi_identifier"
    metadata = {key: each for key, each in own.metadata.items() if key != "leaves_as_is" or not is_generalized}
    return pa.Column(
        own.dtype, checks=own.checks, nullable=own.nullable, metadata=metadata, description=own.description
    )


def _example(contracts: RelatedContracts) -> RelatedTables:
    """Return one person with one row in each table, of the types that the contracts admit."""
    tables = {}
    for name, contract in contracts.tables.items():
        values = {column: _typical(contract.required_type(column)) for column in contract.columns}
        numbers = [*contract.columns_with_role("direct_identifier"), *contracts.keys[name]]
        tables[name] = pd.DataFrame(values).assign(**dict.fromkeys(numbers, 1))
    return contracts.related(tables)


def _typical(kind: ColumnType) -> pd.Series[Any]:
    value = _TYPICAL.get(kind.kind, "a") if kind.categories is None else kind.categories[0]
    dtype: Any = pd.CategoricalDtype(kind.categories, kind.ordered) if kind.kind == "category" else kind.label
    column: pd.Series[Any] = pd.Series([value], dtype=dtype)
    return column
