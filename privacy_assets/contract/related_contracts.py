"""The contracts of related tables: one for the people, and one for each table of their rows, with its key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from privacy_assets.columns.safe_names import type_name
from privacy_assets.columns.spelling import factorize_keys
from privacy_assets.contract.contract import TableContract, resolve_contract
from privacy_assets.contract.related import (
    MOST_TABLES,
    NAME_OF_TABLE,
    PEOPLE,
    Child,
    RelatedTables,
    named,
    problem_of_level,
    problem_of_own_key,
)
from privacy_assets.contract.views import related_views
from privacy_assets.errors import ContractError, InvalidSettingError, InvalidTableError

RESERVED: Final = re.compile("con|prn|aux|nul|com[0-9]|lpt[0-9]")
KEY_ROLE: Final = "key"
"""Role in a manifest of the columns that link the released tables: new numbers, of nobody."""
NOT_BUILT: Final = ("links_rows", "part_of", "invented", "weight")
"""Declarations on columns that releases of related tables do not have yet."""
NUMBERS: Final = "releases {}, which number people or rows in other tables: expected the role direct_identifier"
JOIN: Final = "join it into the table to which it belongs, or aggregate it"


class Linked(NamedTuple):
    """A table of rows as it is declared: its contract, and how its rows are linked; see `Child`."""

    contract: Any
    key: str
    order: str | None = None
    of: str = PEOPLE
    own_key: str | None = None

    def child(self, table: pd.DataFrame, *, ordered: bool = True) -> Child:
        """Return the rows with their links."""
        return Child(table, self.key, self.order if ordered else None, self.of, self.own_key)


@dataclass(frozen=True, eq=False)
class RelatedContracts:
    """The contracts of all tables by name, the people first; that of a child has its key as the person.

    ``links`` has the children as they were declared.

    Raises
    ------
    InvalidSettingError
        If a name, key or order cannot be used, or a contract has what related tables do not have yet; all are listed.
    """

    tables: Mapping[str, TableContract]
    links: Mapping[str, Linked]

    @classmethod
    def of(cls, people: TableContract, children: Mapping[str, Linked]) -> RelatedContracts:
        """Check the declarations against each other."""
        own = {name: each._replace(contract=_resolved(name, each.contract)) for name, each in children.items()}
        problems = [*_problems_of_people(people), *_problems_of_names(own), *(strange := _problems_of_types(own))]
        if not strange:
            released = sorted({*people.released_columns} & {each.own_key for each in own.values()})
            problems += [f"`contract` {NUMBERS.format(released)}"] if released else []
            problems += [f"{name!r} {problem}" for name in own for problem in _problems(name, people, own)]
        if problems:
            raise InvalidSettingError(
                f"The tables of `children` cannot be released together ({len(problems)} problems): "
                f"{'; '.join(problems)}. Nothing was read."
            )
        found = cls({PEOPLE: people, **{name: _with_key(each) for name, each in own.items()}}, own)
        found._check_views()
        return found

    @property
    def person(self) -> str:
        """The column that numbers the people."""
        return self.tables[PEOPLE].person_columns[0]

    def person_of(self, name: str) -> str:
        """Say whose the rows of rows are; of other tables the key says it, so that it is empty."""
        of = PEOPLE if name == PEOPLE else self.links[name].of
        return "" if of == PEOPLE else f"the {self.person!r} of its {of!r}"

    @property
    def keys(self) -> dict[str, list[str]]:
        """The columns of each table by which the tables are linked."""
        of_people = dict.fromkeys([self.person, *(each.key for each in self.links.values() if each.of == PEOPLE)])
        of_rows = {name: [each.key, each.own_key] for name, each in self.links.items()}
        return {PEOPLE: list(of_people), **{name: [key for key in own if key] for name, own in of_rows.items()}}

    @property
    def roles(self) -> dict[str, str]:
        """Role of each column, by its name among those of all tables."""
        return self._of_all(lambda contract: contract.roles)

    @property
    def descriptions(self) -> dict[str, str]:
        """Descriptions of columns, by their names among those of all tables."""
        return self._of_all(lambda contract: contract.descriptions)

    @property
    def acknowledged(self) -> dict[str, str]:
        """Reasons for releasing columns unchanged, by their names among those of all tables."""
        return self._of_all(lambda contract: contract.acknowledged)

    def describe(self) -> list[dict[str, Any]]:
        """Describe the released columns of all tables, JSON-able, in the order of the tables."""
        described: list[dict[str, Any]] = []
        for name, contract in self.tables.items():
            of_contract = {str(each["column"]): each for each in contract.describe()}
            for column in self.columns_of(name):
                is_key = column in self.keys[name]
                own = {"type": "int64", "role": KEY_ROLE, "nullable": False} if is_key else of_contract[column]
                described.append({**own, "column": named(name, column), "table": name})
        return described

    def columns_of(self, name: str) -> list[str]:
        """Return the columns of a table that are admitted and released, in the order of its contract."""
        contract, keys = self.tables[name], self.keys[name]
        return [column for column in contract.columns if column in contract.released_columns or column in keys]

    def check(self, tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """Check source tables like `TableContract.check`; violations of all of them are counted at once."""
        return self._each(tables, lambda contract, table, subject: contract.check(table, subject))

    def related(self, checked: Mapping[str, pd.DataFrame]) -> RelatedTables:
        """Link checked tables, without direct identifiers; keys become codes, and those that are spelled alike are one.

        Raises
        ------
        InvalidTableError
            If rows and people do not belong together; see `RelatedTables`.
        """
        admitted = {name: table[self.columns_of(name)].copy() for name, table in checked.items()}
        for of, key in dict.fromkeys([(PEOPLE, self.person), *((each.of, each.key) for each in self.links.values())]):
            whose = [of, *(name for name, each in self.links.items() if (each.of, each.key) == (of, key))]
            parts = [checked[name][key].astype(object) for name in whose]
            codes = factorize_keys(pd.concat(parts, ignore_index=True))
            ends = np.cumsum([len(part) for part in parts])[:-1]
            for name, own in zip(whose, np.split(codes, ends), strict=True):
                admitted[name][key] = pd.Series(own, admitted[name].index, "Int64").mask(own < 0)
        return self._of(admitted).map(lambda name, table: table.astype(dict.fromkeys(self.keys[name], "int64")))

    def admit_synthetic(self, tables: RelatedTables) -> RelatedTables:
        """Check synthetic tables like `TableContract.admit_synthetic`, all at once, and number their people anew.

        Raises
        ------
        ContractError
            If a table violates its contract; all violations are counted by table, column and check.
        InvalidTableError
            If there are other tables, or tables without one of their keys.
        """
        keys = self.keys
        lacking = {name: sorted({*keys.get(name, [])} - {*table}) for name, table in tables.tables.items()}
        if any(lacking.values()):
            raise InvalidTableError(
                f"The synthetic tables lack keys: { ({name: own for name, own in lacking.items() if own}) }. Expected "
                "those of the contracts, with numbers of any kind. Nothing was admitted."
            )
        without = {
            name: table.drop(columns=keys.get(name, []), errors="ignore") for name, table in tables.tables.items()
        }
        checked = self._each(without, lambda contract, table, subject: contract.admit_synthetic(table, subject))
        keyed = {
            name: table.assign(**{key: tables.tables[name][key].to_numpy() for key in self.keys[name]})
            for name, table in checked.items()
        }
        return self._of({name: table[self.columns_of(name)] for name, table in keyed.items()}).renumbered()

    def as_compared(self, tables: RelatedTables) -> RelatedTables:
        """Return tables like `TableContract.as_compared`."""
        return tables.map(lambda name, table: self.tables[name].as_compared(table))

    def _check_views(self) -> None:
        """Refuse columns that would have one name in a view."""
        problem = ""
        try:
            nothing = {name: own.without_records()[self.columns_of(name)] for name, own in self.tables.items()}
            related_views(self._of(nothing))
        except InvalidTableError as error:
            problem = str(error)
        if problem:
            raise InvalidSettingError(f"The tables of `children` cannot be released together. {problem}")

    def _of_all(self, told: Callable[[TableContract], Mapping[str, str]]) -> dict[str, str]:
        return {
            named(name, column): text
            for name, contract in self.tables.items()
            for column, text in told(contract).items()
        }

    def _of(self, tables: Mapping[str, pd.DataFrame]) -> RelatedTables:
        children = {name: each.child(tables[name]) for name, each in self.links.items()}
        return RelatedTables(tables[PEOPLE], children, self.person)

    def _each(
        self,
        tables: Mapping[str, pd.DataFrame],
        check: Callable[[TableContract, pd.DataFrame, str], pd.DataFrame],
    ) -> dict[str, pd.DataFrame]:
        if set(tables) != set(self.tables):
            raise InvalidTableError(
                f"There are the tables {list(tables)}. Expected those with a contract, {list(self.tables)}. Nothing "
                "was admitted."
            )
        found, said, failures = {}, [], []
        for name, contract in self.tables.items():
            try:
                found[name] = check(contract, tables[name], f"Table {name!r}")
            except ContractError as error:
                said.append(str(error))
                failures += [(named(name, column), broken, count) for column, broken, count in error.failures]
        if said:
            raise ContractError(" ".join(said), tuple(failures))
        return found


def _resolved(name: str, contract: Any) -> TableContract:
    problem = ""
    try:
        return resolve_contract(contract)
    except InvalidSettingError as error:
        problem = str(error)
    raise InvalidSettingError(f"`children`, {name!r}: {problem}")


def _with_key(linked: Linked) -> TableContract:
    """Return the contract with its key as the person, so that its rows are judged as those of people."""
    schema = linked.contract.schema
    metadata = {**(schema.columns[linked.key].metadata or {}), "person": True}
    return TableContract(schema.update_column(linked.key, metadata=metadata))


def _problems_of_people(people: TableContract) -> Iterator[str]:
    if len(people.person_columns) != 1:
        yield (
            f"the contract of the people has {len(people.person_columns)} columns with `person: true`, expected one: "
            "with a key of several columns, make it one first"
        )
    yield from (f"`contract` has {problem}" for problem in _not_built(people))


def _problems_of_names(children: Mapping[str, Linked]) -> Iterator[str]:
    if not 0 < len(children) < MOST_TABLES:
        yield f"there are {len(children)}, expected 1 to {MOST_TABLES - 1}"
    wrong = [name for name in children if not isinstance(name, str) or not NAME_OF_TABLE.fullmatch(name)]
    if wrong:
        yield f"{wrong} are not names of tables: expected a letter, then letters, digits and underscores, at most 40"
    # Some file systems take names for one that differ in case, and have no files of these names.
    names = [PEOPLE, *map(str.casefold, map(str, children))]
    if len(set(names)) < len(names):
        yield f"names of tables, of which {PEOPLE!r} is one, must differ also in small letters"
    reserved = [name for name in names if RESERVED.fullmatch(name)]
    if reserved:
        yield f"{reserved} are names of devices, which some systems do not take for files"


def _problems_of_types(children: Mapping[str, Linked]) -> list[str]:
    one_of = {"key": "column: make one of several first", "own_key": "column", "order": "column"}
    one_of["of"] = f"table: with two parents no order of drawing is honest; {JOIN}"
    return [
        f"{name!r} has {setting!r} of type {type_name(value)}: expected the name of one {expected}"
        for name, each in children.items()
        for setting, expected in one_of.items()
        if not isinstance(value := getattr(each, setting), str) and (value is not None or setting in ("key", "of"))
    ]


def _problems(name: str, people: TableContract, children: Mapping[str, Linked]) -> Iterator[str]:
    child = children[name]
    contract, key, order = child.contract, child.key, child.order
    yield from (f"has {problem}" for problem in _not_built(contract))
    if contract.person_columns or contract.one_row_per_person:
        yield "says whose its rows are (`person`, `one_row_per_person`): its key does, so leave that out"
    reason = problem_of_level(name, children)
    if reason:
        yield f"belongs to {child.of!r}, {reason}: expected {PEOPLE!r} or a child of them; {JOIN}"
    elif problem := problem_of_own_key(child, children):
        yield f"{problem}: expected the same column of both, which numbers these rows"
    above = people if child.of == PEOPLE or reason else children[child.of].contract
    named_above = "the people" if above is people else repr(child.of)
    for what, own in (("its contract", contract), (f"that of {named_above}", above)):
        if reason and own is above:
            continue
        role = own.roles.get(key)
        if role is None:
            yield f"has the key {key!r}, which {what} does not have: expected one column of both"
        elif role != "direct_identifier":
            yield f"has the key {key!r}, which is {role} in {what}: keys never leave, expected direct_identifier"
    yield from _problems_of_own_key(name, child, children)
    if key in contract.columns and key in above.columns and not reason:
        kinds = contract.required_type(key).kind, above.required_type(key).kind
        # Categories are texts.
        if len({"text" if kind == "category" else kind for kind in kinds}) > 1:
            yield f"has the key {key!r}, which is {kinds[0]} there and {kinds[1]} in {named_above}: expected one type"
        elif kinds[0] not in ("integer", "text", "category"):
            yield f"has the key {key!r} of type {kinds[0]}: expected integer, text or category"
    numbers = {*people.person_columns, *(number for each in children.values() for number in (each.key, each.own_key))}
    released = [column for column in contract.released_columns if column in numbers - {child.own_key}]
    if released:
        yield NUMBERS.format(released)
    if not contract.released_columns:
        yield "releases no column of its own: make the number of its rows a column of the people"
    if order is None:
        return
    kind = contract.required_type(order).kind if order in contract.released_columns else "not released"
    if order == key or kind not in ("integer", "float", "datetime"):
        yield f"has the order {order!r}, which is {kind}: expected a released column of integers, floats or datetimes"
    elif contract.schema.columns[order].nullable:
        yield f"has the order {order!r}, which may be missing (nullable): every row needs its place, so leave that out"


def _problems_of_own_key(name: str, child: Linked, children: Mapping[str, Linked]) -> Iterator[str]:
    own_key = child.own_key
    if own_key is None:
        return
    role = child.contract.roles.get(own_key)
    if role is None:
        yield f"has the own_key {own_key!r}, which its contract does not have: expected a column that numbers its rows"
    elif role != "direct_identifier":
        yield f"has the own_key {own_key!r}, which is {role}: keys never leave, expected direct_identifier"
    if own_key == child.key:
        yield f"has the own_key {own_key!r}, which is its key, too: expected another column, which numbers its rows"
    if not any(each.of == name for each in children.values()):
        yield f"has the own_key {own_key!r}, and no table belongs to its rows (`of: {name}`): leave it out"


def _not_built(contract: TableContract) -> list[str]:
    return [
        f"{declaration!r} on {sorted(columns)}, which releases with `children` do not have yet: leave it out"
        for declaration in NOT_BUILT
        if (columns := [name for name, own in contract.metadata(declaration).items() if own])
    ]
