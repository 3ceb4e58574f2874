"""Related tables: people, and the rows that belong to them, such as visits, ratings or prescriptions.

The people are the unit of protection: tables are split, synthesized and assessed by person. Every row of a child table
has the key of its person, and nothing of the keys is released.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import kind_of_dtype, read_column
from privacy_assets.columns.column_names import problem_of_names
from privacy_assets.columns.row_hashes import hash_rows
from privacy_assets.columns.safe_names import dtype_name, type_name
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.table import Table, fingerprint_of

PEOPLE: Final = "people"
"""Name of the table of people, which no child can have."""
MOST_TABLES: Final = 8
NAME_OF_TABLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
"""Names of tables that are released, which are those of their files."""
MOST_LEVELS: Final = 2
"""Levels below the people that have an honest order of drawing."""
RELATED_KIND: Final = "RelatedTables"
"""Kind of artifacts with all tables."""


@dataclass(frozen=True, eq=False, repr=False)
class Child:
    """A table whose rows belong to people; a person may have none, one or many.

    Parameters
    ----------
    table : DataFrame
        The rows; those of a person may be anywhere.
    key : str
        Column of this table and of that above by which rows belong to people, or to rows. It is not released as it is.
    order : str, optional
        Column of integers, floats or datetimes that orders the rows of a person; equal values are allowed, missing ones
        are not.
    of : str
        Table to which the rows belong: ``people``, or a child of the people, which has the key as its ``own_key``.
    own_key : str, optional
        Column that numbers the rows, if rows of another table belong to them. It is not released as it is, either.
    """

    table: pd.DataFrame
    key: str
    order: str | None = None
    of: str = PEOPLE
    own_key: str | None = None

    @property
    def numbers(self) -> list[str]:
        """The key, and the own key if there is one."""
        return [self.key] if self.own_key is None else [self.key, self.own_key]

    @property
    def columns(self) -> list[str]:
        """All columns but the order and those that number people and rows."""
        return [name for name in self.table.columns if name != self.order and name not in self.numbers]

    def __repr__(self) -> str:
        return f"<Child of {self.of!r} by key {self.key!r}: {len(self.table):,} rows>"


@dataclass(frozen=True, eq=False, repr=False)
class RelatedTables:
    """A table of people and tables of their rows, which are split, synthesized and assessed as a whole.

    Parameters
    ----------
    people : DataFrame
        One row per person.
    children : mapping of str to Child
        At most 7 tables of rows, by name.
    person : str
        Column of ``people`` that numbers them. It is not released as it is, like every key.

    Attributes
    ----------
    whose : dict of str to ndarray of shape (n_rows,), dtype=np.intp
        Place in ``people`` of the person of each row, by child table.
    above : dict of str to ndarray of shape (n_rows,), dtype=np.intp
        Place of the row to which each row belongs, in the table of the child's ``of``.

    Raises
    ------
    InvalidSettingError
        If the settings name columns that the tables do not have, tables do not belong to people, or there are too many.
    InvalidTableError
        If rows do not have their person: people without a number or with the number of another one, rows without a key,
        with keys of another type, or with keys that nobody has; or if moments are missing. All are counted at once.
    """

    people: pd.DataFrame
    children: Mapping[str, Child]
    person: str
    whose: dict[str, NDArray[np.intp]] = field(init=False)
    above: dict[str, NDArray[np.intp]] = field(init=False)

    def __post_init__(self) -> None:
        _check_tables(self.people, self.children)
        _check_levels(self.children)
        _check_columns(self)
        problems: list[str] = []
        object.__setattr__(self, "children", dict(self.children))
        unique = {(PEOPLE, key): self.people[key] for key in sorted(self.identifiers)}
        unique |= {(name, own.own_key): own.table[own.own_key] for name, own in self.children.items() if own.own_key}
        keys = {at: _read_keys(column, at[0], problems, is_unique=True) for at, column in unique.items()}
        above = {
            name: _find_rows(name, child, keys[child.of, child.key], problems) for name, child in self.children.items()
        }
        object.__setattr__(self, "above", above)
        object.__setattr__(self, "whose", {name: self._people_of(name) for name in self.children})
        if problems:
            raise InvalidTableError(
                f"Rows and people do not belong together: {'; '.join(problems)}. Expected every row to have its "
                "person, and every person to have one row and one number. Nothing was done."
            )

    @property
    def identifiers(self) -> set[str]:
        """Columns of the people that number them: the person and all of their keys."""
        return {self.person, *(child.key for child in self.children.values() if child.of == PEOPLE)}

    @property
    def from_above(self) -> list[str]:
        """The children, each after that to which it belongs."""
        return sorted(self.children, key=lambda name: self.children[name].of != PEOPLE)

    def below(self, name: str) -> list[str]:
        """Return the children of a table."""
        return [below for below, child in self.children.items() if child.of == name]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name, the people first."""
        return {PEOPLE: self.people, **{name: child.table for name, child in self.children.items()}}

    @property
    def links(self) -> dict[str, dict[str, str | None]]:
        """How each child belongs to the people, as JSON values."""
        return {
            name: {"parent": own.of, "key": own.key, "order": own.order}
            | ({} if own.own_key is None else {"own_key": own.own_key})
            for name, own in self.children.items()
        }

    @property
    def keys(self) -> dict[str, str]:
        """The key of each table; in the tables `by_person` it has the person of a row."""
        return {PEOPLE: self.person, **{name: child.key for name, child in self.children.items()}}

    @property
    def content(self) -> str:
        """The fingerprint of the tables as a whole: SHA-256 over the person, the links and all their fingerprints."""
        return self.to_artifact().digest

    def to_artifact(self) -> Artifact:
        """Write all tables; the digest of the artifact is `content`."""
        return self._artifact

    @cached_property
    def _artifact(self) -> Artifact:
        return artifact_of(self.tables, self.person, self.links)

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> RelatedTables:
        """Read the output of :meth:`to_artifact`."""
        links, tables = artifact.header["links"], artifact.frames
        children = {
            name: Child(tables[name], own["key"], own["order"], own["parent"], own.get("own_key"))
            for name, own in links.items()
        }
        return cls(tables[PEOPLE], children, artifact.header["person"])

    def renumbered(self) -> RelatedTables:
        """Return the tables with people and rows numbered from 1, rows in the order of what they belong to."""
        numbers = {PEOPLE: np.arange(1, len(self.people) + 1)}
        made = {}
        for name in self.from_above:
            child = self.children[name]
            above = numbers[child.of][self.above[name]]
            order = np.argsort(above, kind="stable")
            numbers[name] = np.empty(len(order), np.int64)
            numbers[name][order] = np.arange(1, len(order) + 1)
            own = {child.key: above} | ({} if child.own_key is None else {child.own_key: numbers[name]})
            made[name] = replace(child, table=child.table.assign(**own).iloc[order].reset_index(drop=True))
        people = self.people.assign(**dict.fromkeys(self.identifiers, numbers[PEOPLE])).reset_index(drop=True)
        return replace(self, people=people, children={name: made[name] for name in self.children})

    def by_person(self, tables: Mapping[str, pd.DataFrame] | None = None) -> dict[str, pd.DataFrame]:
        """Return all tables by name, or others of the same rows, with the number of the person as key of each row."""
        found = dict(self.tables if tables is None else tables)
        people = found[PEOPLE][self.person].array
        for name, child in self.children.items():
            if child.of != PEOPLE:
                found[name] = found[name].assign(**{child.key: people[self.whose[name]]})
        return found

    def map(self, change: Callable[[str, pd.DataFrame], pd.DataFrame]) -> RelatedTables:
        """Return the tables, each changed by a function of its name and itself that keeps all rows and keys."""
        children = {name: replace(own, table=change(name, own.table)) for name, own in self.children.items()}
        return replace(self, people=change(PEOPLE, self.people), children=children)

    def take(self, places: NDArray[np.intp]) -> RelatedTables:
        """Return the people at some places of ``people``, which must differ, in this order, with all their rows."""
        is_taken = np.zeros(len(self.people), np.bool_)
        is_taken[places] = True
        children = {
            name: replace(child, table=child.table[is_taken[self.whose[name]]].reset_index(drop=True))
            for name, child in self.children.items()
        }
        return replace(self, people=self.people.iloc[places].reset_index(drop=True), children=children)

    def in_order(
        self, name: str, ties: NDArray[Any] | None = None, above: NDArray[np.intp] | None = None
    ) -> NDArray[np.intp]:
        """Return the rows of a child by what they belong to and by its order column; so they are by person, too.

        Equal ones are ordered by ``ties``, or by their content and that of the rows that belong to them. The rows to
        which they belong are ordered in the same way, unless their order is given by ``above``.
        """
        child = self.children[name]
        keys = [self._content_of_rows(name) if ties is None else ties, self.above[name]]
        if child.order is not None:
            keys.insert(1, pd.factorize(child.table[child.order], sort=True)[0])
        if child.of != PEOPLE:
            above = self.in_order(child.of) if above is None else above
            keys[-1] = np.argsort(above, kind="stable")[self.above[name]]
        return np.lexsort(keys)

    def _content_of_rows(self, name: str) -> NDArray[np.uint64]:
        """Return a number of each row that depends on its content, and on that of the rows that belong to it."""
        content = self.children[name].table.drop(columns=self.children[name].numbers)
        found = hash_rows((column for _, column in content.items()), len(content), seed=0)
        for below in self.below(name):
            # Sums do not depend on the order; they wrap around.
            np.add.at(found, self.above[below], self._content_of_rows(below))
        return found

    def _people_of(self, name: str) -> NDArray[np.intp]:
        """Return the place of the person of each row; -1 if it is unknown."""
        of, above = self.children[name].of, self.above[name]
        return above if of == PEOPLE else np.append(self._people_of(of), -1)[above]

    def __repr__(self) -> str:
        rows = "".join(f", {len(child.table):,} rows of {name!r}" for name, child in self.children.items())
        return f"<RelatedTables {len(self.people):,} people{rows}>"


def named(table: str, column: str) -> str:
    """Return the name of a column among those of all tables."""
    return f"{table}: {column}"


def content_of(table: Table | RelatedTables) -> str:
    """Return the fingerprint of a table, or of related tables as a whole."""
    return table.content if isinstance(table, RelatedTables) else fingerprint_of(table)


def artifact_of(tables: Mapping[str, pd.DataFrame], person: str, links: Mapping[str, Mapping[str, Any]]) -> Artifact:
    """Return the artifact of tables and their links, which need not belong together."""
    return Artifact(RELATED_KIND, {"person": person, "links": {name: dict(own) for name, own in links.items()}}, tables)


def broken_links(tables: Mapping[str, pd.DataFrame], person: str, links: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return why tables are not those of people who are numbered from 1 on, with rows in their order; with counts."""
    problems = []
    own_keys = [(name, own["own_key"]) for name, own in links.items() if own.get("own_key") is not None]
    for name, key in dict.fromkeys(
        [(PEOPLE, person), *((own["parent"], own["key"]) for own in links.values()), *own_keys]
    ):
        if name not in tables or key not in tables[name].columns:
            problems.append(f"{name!r} has no {key!r}")
            continue
        own = tables[name][key]
        if n_repeated := int(own.duplicated().sum()):
            problems.append(f"{n_repeated:,} rows of {name!r} repeat a {key!r}")
        elif own.tolist() != list(range(1, len(own) + 1)):
            problems.append(f"the {key!r} of {name!r} are not the numbers from 1 to {len(own):,} in their order")
    for name, link in links.items():
        of, key = link["parent"], link["key"]
        if name not in tables or key not in tables[name].columns:
            problems.append(f"{name!r} has no {key!r}")
            continue
        own, (nobody, above) = tables[name][key], ("nobody", "people") if of == PEOPLE else ("no row", f"{of!r}")
        is_known = of in tables and key in tables[of].columns
        if is_known and (n_orphans := int((~own.isin(tables[of][key])).sum())):
            problems.append(f"{n_orphans:,} rows of {name!r} have a {key!r} that {nobody} in {of!r} has")
        elif not own.is_monotonic_increasing:
            problems.append(f"the rows of {name!r} are not in the order of their {above}")
    return problems


def problem_of_level(name: str, children: Mapping[str, Any]) -> str:
    """Say why a table cannot belong to the table of its ``of``; empty if it can, or if another one is wrong."""
    child, above = children[name], [name]
    while above[-1] in children and children[above[-1]].of not in above:
        above.append(children[above[-1]].of)
    if above == [name]:
        return "which is the table itself, so that no order of drawing is honest"
    if above[-1] in children:
        return "so that the tables are a circle, in which no order of drawing is honest"
    if len(above) - 1 > MOST_LEVELS:
        return f"which is more than {MOST_LEVELS} levels below the people"
    return "" if child.of == PEOPLE or child.of in children else "which is not one of the tables"


def problem_of_own_key(child: Any, children: Mapping[str, Any]) -> str:
    """Say why a table has not the key of the rows to which it belongs; empty if it has."""
    if child.of == PEOPLE or child.key == (own_key := children[child.of].own_key):
        return ""
    return f"belongs to rows of {child.of!r} by the key {child.key!r}, and `own_key` there is {own_key!r}"


def columns_that_repeat_the_person(tables: RelatedTables) -> dict[str, list[str]]:
    """Return the columns of each child that never differ between the rows of a person, and so belong to the people.

    A missing value is a value. Only people with several rows count, and a column that is the same for all of them is
    not returned, because it says nothing about a person. Keys and orders are left out, and so are children without such
    columns.
    """
    found = {}
    for name, child in tables.children.items():
        whose = tables.whose[name]
        has_several = np.bincount(whose, minlength=len(tables.people))[whose] > 1
        own, n_people = whose[has_several], len(np.unique(whose[has_several]))
        repeats = []
        for column in child.columns:
            codes = read_column(child.table[column], f"Column {column!r} of table {name!r}").codes[has_several]
            pairs = pd.DataFrame({"person": own, "code": codes}).drop_duplicates()
            if len(pairs) == n_people and len(set(pairs["code"])) > 1:
                repeats.append(column)
        if repeats:
            found[name] = repeats
    return found


def refuse_with_related(**given: object) -> None:
    """Raise InvalidSettingError if a setting is given that related tables do not have yet."""
    names = sorted(name for name, value in given.items() if value is not None)
    if names:
        raise InvalidSettingError(
            f"{', '.join(f'`{name}`' for name in names)} cannot be set with RelatedTables, which have their own "
            "person; this is not built for them yet. Leave it out. Nothing was done."
        )


class _Keys(NamedTuple):
    """A key column: its kind, and for each value its place among the distinct ones, -1 if it is missing."""

    kind: str
    codes: NDArray[np.integer[Any]]
    distinct: pd.Index[Any]


def _check_tables(people: object, children: object) -> None:
    if not isinstance(children, Mapping) or not all(isinstance(child, Child) for child in children.values()):
        raise InvalidSettingError("`children` must map names of tables to Child objects. Nothing was done.")
    if not children or len(children) >= MOST_TABLES or not all(isinstance(name, str) and name for name in children):
        raise InvalidSettingError(
            f"`children` has {len(children)} tables. Expected 1 to {MOST_TABLES - 1}, each with a text as name; a "
            "table of people alone needs no RelatedTables. Nothing was done."
        )
    if PEOPLE in children:
        raise InvalidSettingError(f"A child is named {PEOPLE!r}, as the table of people is. Give it another name.")
    for name, table in {PEOPLE: people, **{name: child.table for name, child in children.items()}}.items():
        if not isinstance(table, pd.DataFrame):
            raise InvalidTableError(f"Table {name!r} is a {type_name(table)}. Expected a pandas DataFrame.")
        if problem := problem_of_names(list(table.columns)):
            raise InvalidTableError(f"Table {name!r}: {problem}")


def _check_levels(children: Mapping[str, Child]) -> None:
    """Refuse children of anything but people and their children, with the reason."""
    for name, child in children.items():
        if reason := problem_of_level(name, children):
            raise InvalidSettingError(
                f"`of` of child {name!r} is {child.of!r}, {reason}. Expected {PEOPLE!r} or a child of them: join the "
                "table into the one to which it belongs, or aggregate it. Nothing was done."
            )
    for name, child in children.items():
        if reason := problem_of_own_key(child, children):
            raise InvalidSettingError(
                f"Child {name!r} {reason}. Expected the same column, which numbers these rows. Nothing was done."
            )


def _check_columns(tables: RelatedTables) -> None:
    """Refuse settings that do not name a column, and children that have more than one number of their person."""
    _require_column("person", tables.person, PEOPLE, tables.people)
    own_keys = {child.own_key for child in tables.children.values() if child.own_key is not None}
    for name, child in tables.children.items():
        if child.of == PEOPLE:
            _require_column(f"key of child {name!r}", child.key, PEOPLE, tables.people)
        for setting, column in zip(("key", "own_key"), child.numbers, strict=False):
            _require_column(f"{setting} of child {name!r}", column, name, child.table)
        if child.own_key is not None and child.own_key in (child.key, child.order):
            raise InvalidSettingError(
                f"`own_key` of child {name!r} is {child.own_key!r}, which is also its key or its order. Expected "
                "another column, which numbers the rows. Nothing was done."
            )
        if child.order is not None:
            _require_column(f"order of child {name!r}", child.order, name, child.table)
            dtype = child.table[child.order].dtype
            if child.order == child.key or kind_of_dtype(dtype) not in ("number", "datetime"):
                raise InvalidSettingError(
                    f"`order` of child {name!r} is {child.order!r}, a column of type {dtype_name(dtype)}. Expected "
                    "integers, floats or datetimes, and another column than the key. Nothing was done."
                )
        again = sorted((tables.identifiers | own_keys) & set(child.table.columns) - set(child.numbers))
        if again:
            raise InvalidSettingError(
                f"Child {name!r} also has the columns {again}, which number people or rows; its key is {child.key!r}. "
                "Leave them out: all of these numbers are replaced, and they would be learned. Nothing was done."
            )
    if again := sorted(own_keys & set(map(str, tables.people)) - tables.identifiers):
        raise InvalidSettingError(
            f"Table {PEOPLE!r} has the columns {again}, which number rows of its children. Leave them out. Nothing was "
            "done."
        )


def _require_column(setting: str, column: object, name: str, table: pd.DataFrame) -> None:
    if not isinstance(column, str) or column not in table.columns:
        shown = repr(column) if isinstance(column, str) else f"a {type_name(column)}"
        raise InvalidSettingError(
            f"`{setting}` is {shown}. Expected the name of one column of table {name!r}; a key of several columns must "
            f"first be made one. Table {name!r} has {list(table.columns)}. Nothing was done."
        )


def _read_keys(column: pd.Series[Any], table: str, problems: list[str], *, is_unique: bool) -> _Keys:
    """Read a key; that of rows to which others belong must have every value once."""
    read = read_column(column, f"Key {column.name!r} of table {table!r}")
    # As objects, a float equals an integer only if it is the same number.
    keys = _Keys(read.kind, read.codes, pd.Index(read.distinct.tolist(), dtype=object))
    n_missing = int((keys.codes < 0).sum())
    if n_missing:
        problems.append(f"{n_missing:,} rows of {table!r} have no {column.name!r}")
    if is_unique and (n_repeated := len(column) - n_missing - len(keys.distinct)):
        problems.append(f"{n_repeated:,} rows of {table!r} repeat a {column.name!r}")
    return keys


def _find_rows(name: str, child: Child, above: _Keys, problems: list[str]) -> NDArray[np.intp]:
    """Return the place of what each row belongs to; what is wrong is added to the problems."""
    own = _read_keys(child.table[child.key], name, problems, is_unique=False)
    if "missing" not in (own.kind, above.kind) and own.kind != above.kind:
        problems.append(f"{child.key!r} is {own.kind} in {name!r} and {above.kind} in {child.of!r}")
    place = np.full(len(above.distinct) + 1, -1, np.intp)
    place[above.codes[::-1]] = np.arange(len(above.codes))[::-1]
    place[-1] = -1  # of missing and unknown keys
    found: NDArray[np.intp] = place[np.append(above.distinct.get_indexer(own.distinct), -1)][own.codes]
    n_orphans = int(((found < 0) & (own.codes >= 0)).sum())
    if n_orphans:
        who = "nobody" if child.of == PEOPLE else "no row"
        problems.append(f"{n_orphans:,} rows of {name!r} have a {child.key!r} that {who} in {child.of!r} has")
    if child.order is not None and (n_missing := int(child.table[child.order].isna().sum())):
        problems.append(f"{n_missing:,} rows of {name!r} have no {child.order!r}, which orders them")
    return found
