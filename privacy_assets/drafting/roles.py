"""Proposed roles of columns, by the shapes of their values, by how many people share these, and by their names.

A proposal is a question to a person, with its reason. It is cautious: an unrecognized column is proposed as a
quasi-identifier, and a person has to decide on a measure that singles people out.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from privacy_assets.columns.place_names import words_of
from privacy_assets.contract.mapping import DECIDE
from privacy_assets.disclosure.column_examination import DAY_ALONE, ColumnExamination
from privacy_assets.drafting.profile import ColumnProfile
from privacy_assets.drafting.words import IDENTIFIERS, NAME_OF, NUMBER_WORDS, PERSON_WORDS, QUASI, REMARKS, SENSITIVE

FEW_PEOPLE_SHARE: Final = 0.02
FEW_NAMES: Final = 5
FEW_OF_OTHERS: Final = 20
"""Up to this many distinct texts, such a column describes something else, such as the kind of a license."""


class ProposedRole(NamedTuple):
    """A role, its reason, and whether a person has to decide because it cannot be guessed."""

    role: str
    reason: str


def propose_role(profile: ColumnProfile, examined: ColumnExamination, kind: str) -> ProposedRole:
    """Propose the role of a column by its counts, the shapes of its values, and the drafted type."""
    counted = in_figures(profile)
    words = words_of(profile.name)
    last = words[-1] if words else ""
    if not profile.n_values:
        return ProposedRole("direct_identifier", "it has no values, so it is left out")
    if profile.is_counted and profile.n_distinct == 1:
        return ProposedRole("other", "one value only")
    if examined.finding == "identifying" and not kind.startswith("datetime"):
        return ProposedRole("direct_identifier", f"{counted}; {_looks(examined)}")
    if kind in ("text", "category", "integer") and _is_named_identifier(words, kind, profile):
        return ProposedRole("direct_identifier", f"{counted}; named like an identifier")
    if kind == "text" and last in REMARKS and profile.n_distinct > 20:
        return ProposedRole("direct_identifier", f"{counted}; free text can name anybody")
    known = "sensitive" if _names(words, SENSITIVE) else "quasi_identifier" if _names(words, QUASI) else None
    if examined.finding == "identifying" and (known != "quasi_identifier" or DAY_ALONE not in examined.reasons):
        said = "direct_identifier, or a quasi_identifier with `precision: D`"
        return ProposedRole(DECIDE, f"{counted}; {_looks(examined)}: {said}")
    if examined.finding != "ordinary":
        said = f"{counted}; its values find records: "
        return ProposedRole(known or DECIDE, said + (known or "direct_identifier, quasi_identifier or sensitive"))
    if known == "sensitive":
        return ProposedRole(known, f"{counted}; named like a private matter")
    if known == "quasi_identifier":
        return ProposedRole(known, f"{counted}; named like what outsiders know")
    return ProposedRole("quasi_identifier", f"{counted}; unknown; outsiders may know it")


def is_person_number(profile: ColumnProfile) -> bool:
    """Return whether the name of a column suggests that it numbers people."""
    words = words_of(profile.name)
    return bool(words) and (words[-1] in NUMBER_WORDS or words[-1] in ("patient", "person", "subject", "ssn"))


def names_people(profile: ColumnProfile) -> bool:
    """Return whether the name has a word for people, such as in ``patient_id``."""
    return _names(words_of(profile.name), PERSON_WORDS)


def in_figures(profile: ColumnProfile) -> str:
    """Return the counts of a column in words."""
    more = "" if profile.is_counted else "more than "
    missing = f", {profile.n_missing:,} missing" if profile.n_missing else ""
    return f"{more}{profile.n_distinct:,} distinct of {profile.n_values:,}{missing}"


def _looks(examined: ColumnExamination) -> str:
    return " and ".join(examined.reasons)


def _names(words: list[str], known: frozenset[str]) -> bool:
    return any(word in known for word in words)


def _is_named_identifier(words: list[str], kind: str, profile: ColumnProfile) -> bool:
    if not words:
        return False
    if kind in ("text", "category"):
        if words[-1] in ("name", "names") and (len(words) == 1 or words[-2] in NAME_OF):
            return profile.n_distinct > FEW_NAMES
        if _names(words[-2:], IDENTIFIERS) and (kind == "text" or profile.n_distinct > FEW_OF_OTHERS):
            return True
    is_number = words[-1] in NUMBER_WORDS and (len(words) == 1 or words[-1] != "code")
    # Numbers of people repeat if a person has several rows; numbers of sites, plans and wards are few.
    is_many = profile.n_distinct > max(50, FEW_PEOPLE_SHARE * profile.n_values)
    is_of_people = _names(words, PERSON_WORDS) or len(words) == 1 or profile.n_distinct > 0.5 * profile.n_values
    return (is_number and is_many and is_of_people) or (kind != "category" and _names(words, frozenset({"ssn", "mrn"})))
