"""What a draft asks a person, and the draft with an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

from privacy_assets.contract.contract import ROLES, TableContract
from privacy_assets.contract.mapping import DECIDE, ONE_ROW_PER_PERSON
from privacy_assets.disclosure.declared_unit import NOT_A_PERSON
from privacy_assets.drafting.draft import QUESTIONS, WHOSE, ContractDraft, DraftedColumn, as_identifier
from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import one_of

ONE_ROW_EACH: Final = "one"
"""Answer to whose each row is: no person has two rows."""


class Question(NamedTuple):
    """A question about a key of a column, or of the person of each row (no column), and the proposed answer."""

    column: str | None
    key: str
    words: str
    proposed: str | None = None


def question_of_person(draft: ContractDraft) -> Question:
    """Return the first question, whose each row is; it decides which of the others remain."""
    words = f"{WHOSE} Name the column that numbers people (several with commas), or write `{ONE_ROW_EACH}` if no "
    return Question(None, "person", f"{words}person has two rows", draft.person)


def open_questions(draft: ContractDraft) -> list[Question]:
    """Return what is open in the columns of a draft."""
    return [Question(each.name, key, _words(each, key)) for each in draft.columns for key in each.open_keys]


def _words(column: DraftedColumn, key: str) -> str:
    said = column.reason if key == "role" else "; ".join(column.remarks)
    return f"{column.name}: {QUESTIONS[key]} ({said})"


def answer(draft: ContractDraft, question: Question, given: str) -> ContractDraft:
    """Return the draft with an answer; raise InvalidSettingError if it cannot be one."""
    given = given.strip()
    if not given:
        raise InvalidSettingError("The answer is empty.")
    if question.column is None:
        return _of_person(draft, given)
    if question.key == "role" and given not in ROLES:
        raise InvalidSettingError(f"{given!r} is not a role. Expected {one_of(tuple(ROLES))}.")
    found = _with(draft, question.column, {question.key: given})
    described = next(each.description for each in found.columns if each.name == question.column)
    own = {key: value for key, value in described.items() if value != DECIDE and key != "person"}
    # The contract knows what a reason, a format and a decimal mark are.
    columns = {question.column: {"role": "quasi_identifier"} | own}
    TableContract.from_mapping({ONE_ROW_PER_PERSON: True, "columns": columns})
    return found


def decide_role(draft: ContractDraft, column: str, role: str) -> ContractDraft:
    """Return the draft with another role of a column; raise InvalidSettingError if there is no such column or role."""
    if column not in {each.name for each in draft.columns}:
        raise InvalidSettingError(f"There is no column {column!r}.")
    return answer(draft, Question(column, "role", ""), role)


def _of_person(draft: ContractDraft, given: str) -> ContractDraft:
    names = [] if given == ONE_ROW_EACH else [name.strip() for name in given.split(",")]
    unknown = sorted(set(names) - {column.name for column in draft.columns})
    if unknown:
        raise InvalidSettingError(f"There is no column {unknown}. Expected names of columns, or {ONE_ROW_EACH!r}.")
    for column in draft.columns:
        is_chosen, was_asked = column.name in names, column.description.get("person")
        if is_chosen:
            draft = _with(draft, column.name, {"person": True} | _role_of_person(column, len(names)), NOT_A_PERSON)
        elif was_asked is not None:
            # It repeats like a person or is named so, and it was not the person.
            draft = _with(draft, column.name, {NOT_A_PERSON: DECIDE} if was_asked == DECIDE else {}, "person")
    return replace(draft, one_row_per_person=not names)


def _role_of_person(column: DraftedColumn, n_columns: int) -> dict[str, Any]:
    is_identifier = n_columns == 1 or column.description["role"] == DECIDE
    return {"role": "direct_identifier"} if is_identifier else {}


def _with(draft: ContractDraft, name: str, new: dict[str, Any], without: str = "") -> ContractDraft:
    def changed(column: DraftedColumn) -> DraftedColumn:
        own = dict(column.description)
        if new.get("role") == "direct_identifier":
            own = as_identifier(own)
        return replace(column, description={key: value for key, value in (own | new).items() if key != without})

    return replace(draft, columns=tuple(changed(each) if each.name == name else each for each in draft.columns))
