"""Whether the rows of a table are of the people that its contract declares, judged before any column is removed.

The findings contain names of columns and counts. They do not depend on the reasons in the contract, so that the gate
decides on recorded findings by the current contract.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.columns.factorizing import number_by_appearance
from privacy_assets.columns.key_candidates import (
    FEWEST_VALUES,
    IN_ORDER,
    SEPARATOR,
    AnyCodes,
    CodedColumn,
    code_columns,
)
from privacy_assets.columns.place_names import names_a_place
from privacy_assets.columns.row_hashes import hash_rows
from privacy_assets.columns.spelling import number_keys, people_of
from privacy_assets.columns.unit_keys import UnitKey, determines, keys_among
from privacy_assets.disclosure.text_shapes import EMAIL, OF_PEOPLE, share_of_shapes
from privacy_assets.storage.column_files import ColumnFiles
from privacy_assets.storage.memory import give_back_memory

if TYPE_CHECKING:
    from privacy_assets.contract.contract import TableContract

UNIT_CHECK: Final = "rows_belong_to_the_declared_people"
NOT_A_PERSON: Final = "not_a_person"
UNIT_KEY: Final = "unit"
"""Key of the findings among the figures of a manifest."""
DOUBT_CHECK: Final = "nothing_suggests_other_people_than_declared"
MOST_REPEATED: Final = 0.05
"""Share of the rows in which a number, an e-mail address or a phone number may repeat if each person has one row."""
MOST_TEXTS: Final = 500
NUMBERS: Final = EMAIL | OF_PEOPLE | {"whole numbers", "identification codes", "UUIDs", "digests"}
MOST_NAMED: Final = 3
MOST_FINDINGS: Final = 20
UNIT_ADVICE: Final = (
    "Set `person: true` on the column that numbers the people (on a household: everybody in it counts as one), or "
    "state on the named column what its values number and who decided: not_a_person."
)
NEEDS_APPROVAL: Final = ("public_release", "high_risk_data")

Kind = Literal[
    "rows_of_one_person", "repeated_identifier", "repeated_rows", "coarser", "crossing", "superfluous", "one_person",
    "number_in_the_person", "part_of_the_person", "never_repeats", "finer", "half", "weak",
]  # fmt: skip
BLOCKING: Final = (
    "rows_of_one_person", "repeated_identifier", "repeated_rows", "coarser", "crossing", "superfluous", "one_person",
    "number_in_the_person",
)  # fmt: skip
DOUBTS: Final = ("part_of_the_person", "never_repeats")


@dataclass(frozen=True)
class UnitFinding:
    """A column that has to do with people, and how; empty for whole rows. Names in ``related`` are of columns, too."""

    column: str
    kind: Kind
    n_values: int
    n_rows: int
    related: tuple[str, ...] = ()
    made_by: str = ""

    @property
    def blocks(self) -> bool:
        """Whether the contract has to say what the values of the column number."""
        return self.kind in BLOCKING

    def in_words(self) -> str:
        """Say what was found."""
        part = f" ({self.made_by})" if self.made_by else ""
        what = f"{self.column!r}{part} repeats ({self.n_values:,} values, {self.n_rows / self.n_values:.1f} rows each)"
        named = ", ".join(map(repr, self.related[:MOST_NAMED]))
        said = {
            "rows_of_one_person": f"{what} and goes with {named}: its rows seem to be of one person",
            "repeated_identifier": f"{what} and identifies people, but is not declared as the person of a row",
            "repeated_rows": f"every row occurs {self.n_rows // self.n_values} times or a multiple of it, as if the "
            "table had been loaded again: remove the repeats, or state whose the rows are",
            "coarser": f"{what}, and the people who share one have the same {named}: they may be parts of one person, "
            "such as stays of a patient, or members of a household",
            "crossing": f"{what} and goes with {named}, whoever is declared as the person of a row",
            "superfluous": f"{self.column!r} alone numbers as many people as together with {named}: `person: true` "
            "belongs on one of them",
            "one_person": f"{self.column!r} has one value, so all rows would be of one person",
            "number_in_the_person": f"{what}, and the people who share one have the same {named}: they may be visits "
            "of one person, or members of a household. Write this part into a column of its own",
            "part_of_the_person": f"{what} and goes with {named}: the person column may number parts of people, or "
            "people of one household one after the other",
            "never_repeats": f"{self.column!r} never repeats, so each row counts as another person: if that is so, "
            "declare `one_row_per_person: true`",
        }
        return said.get(self.kind, what)

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return asdict(self) | {"related": list(self.related)}


@dataclass(frozen=True)
class UnitExamination:
    """What was found on a table, for the people that the contract declared then: columns, or none for each row."""

    person_columns: tuple[str, ...]
    weights: tuple[str, ...]
    findings: tuple[UnitFinding, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the examination as JSON values."""
        return {
            "person_columns": list(self.person_columns),
            "weights": list(self.weights),
            "findings": [each.to_json() for each in self.findings],
        }

    @classmethod
    def from_json(cls, recorded: Any) -> UnitExamination | None:
        """Read the output of `to_json`; None for anything else."""
        try:
            found = tuple(UnitFinding(**each | {"related": tuple(each["related"])}) for each in recorded["findings"])
            return cls(tuple(recorded["person_columns"]), tuple(recorded["weights"]), found)
        except (KeyError, TypeError):
            return None


class UnitDecision(NamedTuple):
    """Whether the declared people are accepted, why, advice if not, and what is doubtful anyway."""

    passed: bool
    reason: str
    advice: str = ""
    doubts: str = ""


def examine_unit(table: pd.DataFrame | ColumnFiles, contract: TableContract) -> UnitExamination:
    """Examine converted rows of a source table, with all of its columns, for the people that the contract declares."""
    weights = [name for name in contract.weights if name in table.columns]
    coded = code_columns(table)
    # A weight goes with the labels of its stratum, and the number of a person with exact figures, too.
    numbers = [key for key in keys_among(coded) if key.column in weights and key.measures] if weights else []
    table, coded = table.drop(columns=weights), {name: own for name, own in coded.items() if name not in weights}
    persons = contract.person_columns
    # Texts that arrive as hashes may be names.
    identifiers = [
        name
        for name in contract.columns_with_role("direct_identifier")
        if name in table.columns
        and (contract.required_type(name).kind == "integer" or not types.is_integer_dtype(table.dtypes[name]))
    ]
    others = _others(table, coded, persons, identifiers)
    del coded  # Rows are compared without the codes, if each is a person.
    found = (*(_finding(key, "rows_of_one_person") for key in numbers), *others)
    return UnitExamination(persons, contract.weights, found)


def find_other_people(
    table: pd.DataFrame, persons: tuple[str, ...], identifiers: Sequence[str] = ()
) -> tuple[UnitFinding, ...]:
    """Find what speaks for other people than those of the person columns, which have no missing values.

    If each row is a person, direct ``identifiers`` whose numbers repeat contradict that, too.
    """
    return tuple(_others(table, code_columns(table), persons, identifiers))


def _others(
    table: pd.DataFrame | ColumnFiles,
    coded: Mapping[str, CodedColumn],
    persons: tuple[str, ...],
    identifiers: Sequence[str],
) -> Iterator[UnitFinding]:
    if persons:
        return _of_people(table, coded, persons, identifiers)
    return _of_rows(table, keys_among(coded), identifiers)


def decide_on_unit(
    examined: Mapping[str, UnitExamination | None],
    contract: TableContract,
    use_case: str | None = None,
    person: str = "",
) -> UnitDecision:
    """Decide by the current contract on what was found in each stage; None if nothing is recorded.

    ``person`` says who the people are, if it is not the columns of the contract by themselves.
    """
    declared = contract.person_columns, contract.weights
    stale = [
        stage for stage, each in examined.items() if each is None or (each.person_columns, each.weights) != declared
    ]
    if stale:
        reason = f"{stale} was not examined for the people that the current contract declares"
        return UnitDecision(False, reason, f"Materialize from {stale[0]} on.")
    found = [each for own in examined.values() if own is not None for each in own.findings]
    blocking = [each for each in found if each.blocks]
    open_findings = [each for each in blocking if each.column not in contract.not_a_person]
    doubts = _in_words([each for each in found if each.kind in DOUBTS])
    if open_findings:
        return UnitDecision(False, _in_words(open_findings), UNIT_ADVICE, doubts)
    unit = person or " and ".join(map(repr, contract.person_columns)) or "each row"
    answered = {each.column: contract.not_a_person[each.column] for each in blocking}
    said = f"nothing contradicts that {unit} is the person" if not answered else f"{unit} is declared as the person"
    said += "".join(f"; {name!r} is not ({reason})" for name, reason in answered.items())
    if answered and use_case in NEEDS_APPROVAL:
        said += f"; with {use_case}, a second person should approve these reasons"
    return UnitDecision(True, said, "", doubts)


def published_unit(examined: UnitExamination | None, contract: TableContract) -> dict[str, Any]:
    """Return what a manifest says of other people than the declared ones: findings, and the contract's answers."""
    found = [] if examined is None else examined.findings[:MOST_FINDINGS]
    reasons = contract.not_a_person
    told = [each.to_json() | {"said": each.in_words(), NOT_A_PERSON: reasons.get(each.column)} for each in found]
    return {UNIT_KEY: {"findings": told}}


def _in_words(findings: Sequence[UnitFinding]) -> str:
    more = f"; and {len(findings) - MOST_FINDINGS} more" if len(findings) > MOST_FINDINGS else ""
    return "; ".join(each.in_words() for each in findings[:MOST_FINDINGS]) + more


def _of_rows(
    table: pd.DataFrame | ColumnFiles,
    keys: Sequence[UnitKey],
    identifiers: Sequence[str],
    persons: tuple[str, ...] = (),
) -> Iterator[UnitFinding]:
    """Yield what contradicts that each row is another person, of whom `persons` are numbers."""
    strong = set()
    for key in keys:
        if key.column in persons and key.made_by.startswith(IN_ORDER):
            yield _finding(key, "part_of_the_person" if key.is_strong else "weak")
            continue  # as of families whose members are numbered one after the other
        if key.column not in strong:
            yield _finding(key, "rows_of_one_person" if key.is_strong else "weak")
        strong |= {key.column} if key.is_strong else set()
    yield from _repeated_identifiers(table, [name for name in identifiers if name not in strong])
    # People who are alike by chance are not all alike in pairs.
    n_alike = np.unique(hash_rows((column for _, column in table.items()), len(table), 0), return_counts=True)[1]
    times = int(np.gcd.reduce(n_alike, initial=0))
    if times > 1 and len(n_alike) >= FEWEST_VALUES:
        yield UnitFinding("", "repeated_rows", len(table) // times, len(table))


def _repeated_identifiers(table: pd.DataFrame | ColumnFiles, identifiers: Sequence[str]) -> Iterator[UnitFinding]:
    for name in identifiers:
        counts = table[name].value_counts()
        repeated = counts[counts > 1].sum()
        is_enough = repeated > MOST_REPEATED * len(table) and len(counts) >= FEWEST_VALUES
        if is_enough and not names_a_place(name) and _are_numbers(counts.index):
            yield UnitFinding(name, "repeated_identifier", len(counts), int(counts.sum()))


def _are_numbers(values: pd.Index[Any]) -> bool:
    """Whether values are numbers, e-mail addresses or phone numbers; a name may be of several people."""
    if not types.is_string_dtype(values.dtype):
        return types.is_integer_dtype(values.dtype)
    places = np.linspace(0, len(values) - 1, min(len(values), MOST_TEXTS)).astype(int)
    shapes = share_of_shapes([str(values[place]) for place in places])
    return sum(shapes.get(shape, 0.0) for shape in NUMBERS) >= 0.5


def _of_people(
    table: pd.DataFrame | ColumnFiles,
    coded: Mapping[str, CodedColumn],
    persons: tuple[str, ...],
    identifiers: Sequence[str],
) -> Iterator[UnitFinding]:
    """Yield what speaks for other people than those of the person columns."""
    people, first_rows = _numbered_people(table, coded, persons)
    give_back_memory()  # Of what was made of the columns, and of the spelling of people.
    together, n_people, n_rows = " + ".join(persons), len(first_rows), len(table)
    if n_people == 1 and n_rows > 1:
        yield UnitFinding(together, "one_person", 1, n_rows)
    elif n_people == n_rows:
        yield UnitFinding(together, "never_repeats", n_people, n_rows)
        yield from _of_rows(table, keys_among(coded), identifiers, persons)
        return
    for name in persons if len(persons) > 1 else ():
        if table[name].nunique(dropna=False) == n_people > 1:
            yield UnitFinding(name, "superfluous", n_people, n_rows, tuple(each for each in persons if each != name))
    # Whether people share something is asked once for each person, whose rows repeat it.
    is_first = np.zeros(n_rows, np.bool_)
    is_first[first_rows] = True
    for key in keys_among({name: own.of_rows(is_first) for name, own in coded.items()}):
        if key.has_strong_facts and key.column in persons:
            # Of digits alone it is not clear where a number ends. A column with the same number is a finding itself.
            is_number = SEPARATOR in key.made_by and not key.names
            yield _finding(key, "number_in_the_person" if is_number else "part_of_the_person")
        elif key.has_strong_facts and _is_of(table[key.column], people):
            yield _finding(key, "coarser")
    for key in keys_among(coded, people, persons):
        if key.is_coarser and key.halves:
            # Each of its values goes with another value once, as with the rows of one person, but not of several.
            yield _finding(key, "rows_of_one_person")
        elif key.is_finer or key.is_coarser or not key.is_strong:
            yield _finding(key, "finer" if key.is_finer else "weak")
        else:
            yield _finding(key, "crossing" if key.has_strong_facts else "half")
    for found in _repeated_identifiers(table, [name for name in identifiers if name not in persons]):
        codes = pd.factorize(table[found.column])[0].astype(np.int64)
        known = codes >= 0
        own, its = people[known], codes[known]
        if not determines(own, its) and not determines(its, own):
            yield found


def _numbered_people(
    table: pd.DataFrame | ColumnFiles, coded: Mapping[str, CodedColumn], persons: tuple[str, ...]
) -> tuple[AnyCodes, NDArray[np.integer[Any]]]:
    """Return the number of the person of each row, in order of appearance, and the first row of each person."""
    own = coded[persons[0]]
    if len(persons) == 1 and len(own.distinct):
        return number_keys(own.codes, own.distinct)
    people = people_of(table[list(persons)])
    return number_by_appearance(people, int(people.max(initial=-1)) + 1)


def _is_of(column: pd.Series[Any], people: np.ndarray[Any, Any]) -> bool:
    """Whether a column has one value for each person."""
    return determines(people, pd.factorize(column, use_na_sentinel=False)[0].astype(np.int64))


def _finding(key: UnitKey, kind: Kind) -> UnitFinding:
    related = (*key.facts[:MOST_NAMED], *key.halves[:MOST_NAMED])
    return UnitFinding(key.column, kind, key.n_values, key.n_rows, related, key.made_by)
