"""Draft of a contract: the type, format, range and proposed role of every column of a table, as YAML for review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import shorten
from typing import Any, Final, NamedTuple

import pandas as pd

from privacy_assets.columns.place_names import names_a_place
from privacy_assets.columns.safe_names import type_name
from privacy_assets.columns.unit_keys import UnitKey, find_unit_keys
from privacy_assets.contract.mapping import DECIDE, DRAFTED, MOST_NAMED, ONE_ROW_PER_PERSON, RULES
from privacy_assets.disclosure.column_examination import ColumnExamination, examine_columns
from privacy_assets.disclosure.declared_unit import NOT_A_PERSON, UnitFinding, find_other_people
from privacy_assets.drafting.blocks import TableBlocks, blocks_of_frame, open_table
from privacy_assets.drafting.described import Described, describe_column
from privacy_assets.drafting.few_people import FEWEST_PEOPLE, without_few_people
from privacy_assets.drafting.parts import parts_by_values, parts_of_moments
from privacy_assets.drafting.profile import ColumnProfile, RowSample
from privacy_assets.drafting.roles import in_figures, is_person_number, names_people, propose_role
from privacy_assets.drafting.rules import ProposedRule, propose_rules
from privacy_assets.drafting.yaml_text import entry_in_yaml, in_yaml
from privacy_assets.errors import InvalidTableError
from privacy_assets.setting_checks import local_path

MOST_CELLS: Final = 5_000_000
MOST_ROWS: Final = 200_000
FEWEST_ROWS: Final = 2_000
MOST_FACTS: Final = 3
LONGEST_COMMENT: Final = 60
QUESTIONS: Final[Mapping[str, str]] = {
    "person": "true if it numbers people; else `not_a_person: what`",
    NOT_A_PERSON: "a sentence on what its values number",
    "role": "direct_identifier, quasi_identifier or sensitive?",
    "format": "does the day or the month come first?",
    "decimal": "is 1,234 a thousand (.) or a fraction (,)?",
}
"""What is asked about the keys of a column whose value is open."""
WHOSE: Final = "Whose is each row?"
ONE_ROW: Final = (
    "Write true if no person has two rows; else replace this line by `person: true` in the column that numbers people."
)
NO_PERSON: Final = (
    "no column repeats like a person, which is no proof: write true if each person has one row, or remove the line and "
    "add `person: true` to the column that numbers them"
)


@dataclass(frozen=True)
class DraftedColumn:
    """One column of a draft.

    ``description`` has its keys in the contract; a person has to replace the value ``decide``. ``reason`` is why this
    role is proposed, with counts and without values.
    """

    name: str
    description: Mapping[str, Any]
    reason: str
    remarks: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether a person has to decide something that cannot be proposed."""
        return bool(self.open_keys)

    @property
    def open_keys(self) -> tuple[str, ...]:
        """Keys with a ``decide``."""
        return tuple(key for key, value in self.description.items() if value == DECIDE)

    @property
    def comment(self) -> str:
        """What is asked, or why the role is proposed, in at most 60 characters."""
        asked = [f"{DECIDE}: {QUESTIONS[key]}" for key in self.open_keys]
        asked += [each for each in self.remarks if each.startswith(DECIDE) or "person" in self.description]
        return shorten(_in_a_line((*asked, self.reason)[0]), LONGEST_COMMENT, placeholder=" ...")


@dataclass(frozen=True, repr=False)
class ContractDraft:
    """A contract that was drafted from a table, and that nobody has reviewed yet.

    :class:`~privacy_assets.contract.contract.TableContract` refuses it until every ``decide`` is replaced and the key
    ``drafted`` is removed. It contains no cell of the table except categories and ends of ranges that at
    least 5 people share; a column with a rarer category has no list.

    Attributes
    ----------
    columns : tuple of DraftedColumn
        The columns, in order.
    n_rows : int
        Rows of the table.
    format : str or None
        Format of the file, if the table is a file.
    separator : str
        Character between the fields of a CSV file.
    one_row_per_person : bool or "decide"
        Whether no column numbers people, because each person has one row.
    is_decided : bool
        Whether a person has decided every role.
    rules : tuple of ProposedRule
        Rules across columns that hold in the table, proposed as comments.
    """

    columns: tuple[DraftedColumn, ...]
    n_rows: int
    format: str | None = None
    separator: str = ","
    one_row_per_person: bool | str = False
    is_decided: bool = False
    rules: tuple[ProposedRule, ...] = ()

    @property
    def mapping(self) -> dict[str, Any]:
        """The draft as plain data, which `TableContract.from_mapping` reads once all decisions are made."""
        drafted = {} if self.is_decided else {DRAFTED: True}
        unit = {ONE_ROW_PER_PERSON: self.one_row_per_person} if self.one_row_per_person else {}
        return {**drafted, **unit, "columns": {column.name: dict(column.description) for column in self.columns}}

    @property
    def open_columns(self) -> tuple[str, ...]:
        """Columns with a ``decide``."""
        return tuple(column.name for column in self.columns if column.is_open)

    @property
    def person(self) -> str | None:
        """The column that is proposed as the person column; None if there is none, or a person has to decide."""
        return next((column.name for column in self.columns if column.description.get("person") is True), None)

    def shown(self) -> list[str]:
        """Describe which cells of the table became part of the draft."""
        kinds = {
            "categories": [column.name for column in self.columns if "categories" in column.description],
            f"ranges, rounded outward until {FEWEST_PEOPLE} people share each end,": [
                column.name for column in self.columns if {"min", "max"} & set(column.description)
            ],
            "constants, shared by 50 people,": [own.name for own in self.rules if "implies" in own.name],
            "texts for missing values": [column.name for column in self.columns if "missing" in column.description],
        }
        return [f"{what} of {_some(names)}" for what, names in kinds.items() if names]

    def to_yaml(self, *, brief: bool = False) -> str:
        """Return the contract as YAML, with reasons and open decisions as comments.

        Parameters
        ----------
        brief : bool
            Write one line a column, whose comment of at most 60 characters asks what is open, or has the reason.
        """
        return "\n".join(self._brief_lines() if brief else self._lines()) + "\n"

    def _brief_lines(self) -> Iterator[str]:
        if self.shown():
            yield f"# Categories and ends of ranges are cells of the table that at least {FEWEST_PEOPLE} people share."
        if not self.is_decided:
            yield f"{DRAFTED}: true  # decide: read each role, correct it, then remove this line"
        people = [column.name for column in self.columns if "person" in column.description]
        if self.one_row_per_person == DECIDE:
            yield f"# {WHOSE} {ONE_ROW}"
        elif people:
            said = "see there" if self.person is None else "correct it if not"
            yield f"# {WHOSE} Of the person in {_some(people)}: {said}."
        if self.one_row_per_person:
            yield f"{ONE_ROW_PER_PERSON}: {in_yaml(self.one_row_per_person)}"
        yield "columns:"
        for column in self.columns:
            entry = f"{entry_in_yaml(column.name, column.description)}  # {column.comment}"
            yield from (f"  {line}" for line in entry.splitlines())
        yield from self._proposed_rules()

    def _proposed_rules(self) -> Iterator[str]:
        if self.rules:
            yield "# Rules that no row violates; decide: remove the # of those that are meant, and of `rules`."
            yield f"#{RULES}:"
        for name, written, (one, other) in self.rules:
            yield f"#  {entry_in_yaml(name, written)}  # {one:,} people on one side, {other:,} on the other"

    def _lines(self) -> Iterator[str]:
        yield f"# Drafted from {self.n_rows:,} rows. It contains these cells:"
        yield from (f"# - {line}" for line in self.shown() or ["none"])
        yield f"{DRAFTED}: true  # decide: read each proposed role, correct it, then remove this line"
        if self.one_row_per_person:
            yield f"{ONE_ROW_PER_PERSON}: {DECIDE}  # {NO_PERSON}"
        yield "columns:"
        for column in self.columns:
            role = column.description["role"]
            question = f"{role}?" if role != DECIDE else "decide!"
            yield f"  # {question} {_in_a_line(column.reason)}"
            yield from (f"  # {_in_a_line(remark)}" for remark in column.remarks)
            ending = "  # decide" if column.is_open else ""
            entry = entry_in_yaml(column.name, column.description)
            yield from (f"  {line}" for line in f"{entry}{ending}".splitlines())
        yield from self._proposed_rules()

    def __repr__(self) -> str:
        n_open = len(self.open_columns)
        return f"ContractDraft({len(self.columns)} columns of {self.n_rows:,} rows; {n_open} with something to decide)"


def draft_contract(table: pd.DataFrame | str | Path) -> ContractDraft:
    """Draft the contract of a table: types, formats, ranges, categories, and a proposed role for each column.

    Every row is read for types, missing values, categories and ranges; the shapes of values are examined on up to
    200,000 rows. A file is read once, in blocks of bounded size.

    Parameters
    ----------
    table : DataFrame, str or Path
        The table, or the path of a CSV or Parquet file. A CSV file can have commas, semicolons, tabs or vertical bars
        between its fields.

    Raises
    ------
    InvalidTableError
        If a contract cannot describe the table.

    Notes
    -----
    A role is a decision, so the draft is refused as a contract until a person has decided all roles.
    """
    if isinstance(table, str | Path):
        return draft_of_blocks(open_table(local_path(table, "table")))
    if not isinstance(table, pd.DataFrame):
        raise InvalidTableError(f"A draft needs a pandas DataFrame or the path of a file; got {type_name(table)}.")
    return draft_of_blocks(blocks_of_frame(table))


def draft_of_blocks(table: TableBlocks, person: str | None = None) -> ContractDraft:
    """Draft the contract of a table in blocks; a column whose values are known to number people need not be found."""
    profiles = [ColumnProfile(name, len(table.names)) for name in table.names]
    sample = RowSample(min(MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // len(table.names))))
    for block in table.blocks:
        for profile in profiles:
            profile.see(block[profile.name])
        sample.see(block)
    rows = sample.rows()
    words = _missing_words(profiles)
    described = [describe_column(profile, words) for profile in profiles]
    examined = [_examine(rows, each) for each in described]
    proposed = [
        propose_role(each.profile, found, each.description["type"])
        for each, found in zip(described, examined, strict=True)
    ]
    at_hand = rows if len(rows) == sample.n_seen else sample.first_rows()
    typed = pd.DataFrame({each.profile.name: each.convert(at_hand[each.profile.name]) for each in described})
    units = [unit for unit in find_unit_keys(typed) if not unit.made_by]
    known = None if person is None else _Person(person, True, "it links related tables")
    found = known or _person(described, [each.role for each in proposed], units)
    person = None if found is None else found.column
    # Of identifiers nothing is shown.
    described = [
        each if role == "direct_identifier" else without_few_people(each, rows, person)
        for each, (role, _) in zip(described, proposed, strict=True)
    ]
    columns = [
        _column(each, role, reason, found if each.profile.name == person else None)
        for each, (role, reason) in zip(described, proposed, strict=True)
    ]
    columns = _with_units(columns, _other_people(typed, columns, person))
    columns = _with_parts(columns, rows)
    unit: bool | str = DECIDE if found is None else False
    released = [each.name for each in columns if each.description["role"] != "direct_identifier"]
    rules = propose_rules(typed, released, person)
    return ContractDraft(tuple(columns), sample.n_seen, table.format, table.separator, unit, rules=rules)


def _missing_words(profiles: Sequence[ColumnProfile]) -> frozenset[str]:
    """Return the words for missing values in the table: those in columns of numbers, times and truth values."""
    found: set[str] = set()
    for profile in profiles:
        if profile.readings and any(each.fits for each in profile.readings):
            found |= set(profile.missing_texts)
    return frozenset(found)


def _examine(rows: pd.DataFrame, described: Described) -> ColumnExamination:
    """Examine a column as it would be released, in its drafted type."""
    column = described.convert(rows[described.profile.name])
    return examine_columns(column.to_frame(described.profile.name), {described.profile.name: "other"})[0]


class _Person(NamedTuple):
    """The column with the person of each row, whether that is proposed or asked, and why."""

    column: str
    is_proposed: bool
    reason: str


def _person(described: Sequence[Described], roles: Sequence[str], units: Sequence[UnitKey]) -> _Person | None:
    """Guess the column with the person of each row: first by how its values repeat, then by its name."""
    profiles = {each.profile.name: each.profile for each in described}
    keys = {unit.column: unit for unit in units}
    identifies = {name: role == "direct_identifier" for name, role in zip(profiles, roles, strict=True)}
    named = [
        profile
        for name, profile in profiles.items()
        if is_person_number(profile) and (identifies[name] or names_people(profile) or name.casefold() == "id")
    ]
    strong = [profiles[unit.column] for unit in units if unit.is_strong]
    likely = [each for each in named if names_people(each)]
    likely += [each for each in strong if each not in likely and (each in named or names_people(each))]
    if likely:
        # What looks identifying first, and the coarsest, because the others may be of their visits.
        best = min(likely, key=lambda each: (not identifies[each.name], not names_people(each), each.n_distinct))
    elif strong:
        best = max(strong, key=lambda each: each.n_distinct)
    elif named:
        best = min(named, key=lambda each: each.n_distinct)
    else:
        return None
    found = keys.get(best.name)
    reason = in_figures(best) if found is None else said_of_unit(found)
    if best.n_missing or best.missing_texts:
        return _Person(best.name, False, f"{reason}; rows without it are of unknown people, and have to be left out")
    if best not in strong and any(not names_a_place(each.name) for each in strong):
        return _Person(best.name, False, f"{reason}; another column repeats like a person")
    is_certain = found.is_strong if found is not None else not _repeats(best)
    return _Person(best.name, names_people(best) or (best in named and is_certain), reason)


def _repeats(profile: ColumnProfile) -> bool:
    return profile.is_counted and profile.n_distinct < profile.n_values


def said_of_unit(unit: UnitKey) -> str:
    """Say in which columns the rows with one value of a key are alike."""
    facts, halves = list(unit.facts[:MOST_FACTS]), list(unit.halves[:MOST_FACTS])
    said = [f"determines {_some(facts)}"] if facts else []
    said += [f"has each value of {_some(halves)} once"] if halves else []
    return f"{unit.n_values:,} values with {unit.n_rows / unit.n_values:.1f} rows each; {' and '.join(said)}"


def _column(described: Described, role: str, reason: str, person: _Person | None) -> DraftedColumn:
    """Assemble the draft of a column; if it identifies people, the draft shows none of its values."""
    own = dict(described.description)
    remarks = described.remarks
    if person is not None and person.is_proposed and role != "direct_identifier":
        role, reason = "direct_identifier", f"it numbers people: {reason}"
    description = as_identifier(own) if role == "direct_identifier" else own
    description = {"type": description["type"], "role": role} | description
    if person is not None:
        description["person"] = True if person.is_proposed else DECIDE
        asked = (
            ""
            if person.is_proposed
            else f": write `person: true`, or `not_a_person` with what it numbers, and `{ONE_ROW_PER_PERSON}: true`"
        )
        guessed = "guessed as" if person.is_proposed else "decide: is it"
        remarks = (*remarks, f"{guessed} the person of each row ({person.reason}){asked}")
    return DraftedColumn(described.profile.name, description, reason, remarks)


def as_identifier(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a column that identifies people, without any of its values."""
    own = {key: value for key, value in description.items() if key not in ("min", "max", "categories", "ordered")}
    return own | {"type": "text" if own["type"] == "category" else own["type"], "role": "direct_identifier"}


def _other_people(table: pd.DataFrame, columns: Sequence[DraftedColumn], person: str | None) -> list[UnitFinding]:
    """Find the columns that would have to be answered in the contract if it had the drafted person."""
    identifiers = [each.name for each in columns if each.description["role"] == "direct_identifier"]
    persons = () if person is None else (person,)
    known = table.dropna(subset=list(persons), ignore_index=True)
    found = find_other_people(known, persons, identifiers) if len(known) else ()
    # A finding on all columns together, such as repeated rows, is of no column that could answer it.
    told = [each for each in found if each.column in table.columns and each.kind != "weak"]
    return [each for each in told if each.column != person or each.blocks]


def _with_units(columns: Sequence[DraftedColumn], others: Sequence[UnitFinding]) -> list[DraftedColumn]:
    """Ask what other columns number whose values repeat like people; remark on what needs no answer."""
    drafted = {column.name: column for column in columns}
    for each in others:
        own = drafted[each.column]
        asked = {NOT_A_PERSON: DECIDE} if each.blocks and "person" not in own.description else {}
        remark = each.in_words() + (f": decide what it numbers, `{NOT_A_PERSON}`" if asked else "")
        drafted[each.column] = replace(own, description={**own.description, **asked}, remarks=(*own.remarks, remark))
    return list(drafted.values())


def _with_parts(columns: Sequence[DraftedColumn], rows: pd.DataFrame) -> list[DraftedColumn]:
    """Propose the columns that are parts of one by their names, and remark on those that are by their values."""
    drafted = {column.name: column for column in columns}
    for what, names in parts_of_moments(list(drafted)).items():
        roles = {drafted[name].description["role"] for name in names}
        # Different roles have to be decided first, and identifiers are never released.
        for name in names if len(roles) == 1 and roles.isdisjoint(("direct_identifier", DECIDE)) else ():
            drafted[name] = replace(drafted[name], description={**drafted[name].description, "part_of": what})
    for name, parts in parts_by_values(rows):
        remark = f"determined by {_some(parts)} together, and determines them: leave out one or the other"
        drafted[name] = replace(drafted[name], remarks=(*drafted[name].remarks, remark))
    return list(drafted.values())


def _in_a_line(text: str) -> str:
    """Return a comment as one printable line, for any name of a column."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return _in_a_line(", ".join(names[:MOST_NAMED])) + more
