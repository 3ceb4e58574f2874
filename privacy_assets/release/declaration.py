"""What the owner of a release declares: for whom and why it is made, who decided, and when that is reviewed."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

from privacy_assets.errors import InvalidSettingError
from privacy_assets.release import clock
from privacy_assets.setting_checks import is_number, is_printable

REVIEW_BY: Final = "review_by"
FRACTION: Final = "sampling_fraction"
DECLARED: Mapping[str, str] = {
    "purpose": "Purpose",
    "recipient": "Recipient",
    "recipient_means": "What the recipient could link, and what prevents it",
    "legal_basis": "Legal basis",
    "retention": "Retention",
    "roles_decided_by": "Roles of the columns decided by",
    "policy_decided_by": "Policy decided by",
    FRACTION: "Share of the population in the source",
    "intruder_test": "Test by an intruder",
    REVIEW_BY: "Review by",
}
"""The possible declarations about a release, with their names in the report."""
ALWAYS_STATED: Final = ("purpose", "recipient", "legal_basis", "retention", "roles_decided_by")
"""What a report always has a line for, and a draft asks for where the policy demands nothing."""
LONGEST_DECLARED: Final = 500
PLACEHOLDERS: Final = frozenset({"decide", "todo", "tbd", "fixme", "xxx"})
"""Texts that say that somebody is still to declare something."""
MOST_DAYS_TO_REVIEW: Final = 3 * 365 + 1
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def as_date(value: object) -> date | None:
    """Return a date, also from its text; None for anything else, such as a date with a time."""
    if type(value) is date:
        return value
    try:
        return date.fromisoformat(value) if isinstance(value, str) and _DAY.fullmatch(value) else None
    except ValueError:
        return None


def require_declaration(declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declarations about a release as JSON values, without those that are None.

    Raises InvalidSettingError for unknown keys, empty or long texts, and a review more than three years ahead. A date
    in the past is not refused here, because definitions must load after it.
    """
    if not isinstance(declared, Mapping):
        raise InvalidSettingError(f"declaration is not a mapping. Expected a mapping with some of {list(DECLARED)}.")
    unknown = sorted(str(name)[:LONGEST_DECLARED] for name in set(declared) - set(DECLARED))
    if unknown:
        raise InvalidSettingError(f"declaration has {unknown}; expected some of {list(DECLARED)}.")
    given = {name: declared[name] for name in DECLARED if declared.get(name) is not None}
    fraction, review = given.pop(FRACTION, None), given.pop(REVIEW_BY, None)
    wrong = [name for name, value in given.items() if not _is_sentence(value)]
    if wrong:
        raise InvalidSettingError(
            f"declaration has no text, a placeholder, or a text of more than {LONGEST_DECLARED} characters, for "
            f"{wrong}. Expected a sentence for each."
        )
    if fraction is not None and not (is_number(fraction, plain=True) and 0 < fraction <= 1):
        raise InvalidSettingError(f"declaration.{FRACTION} is no share. Expected a number above 0 and at most 1.")
    if "intruder_test" in given and _DAY.search(given["intruder_test"]) is None:
        raise InvalidSettingError("declaration.intruder_test names no date. Expected when it was made: 2026-09-30.")
    day = as_date(review)
    if review is not None and (day is None or day > clock.today() + timedelta(days=MOST_DAYS_TO_REVIEW)):
        raise InvalidSettingError(
            f"declaration.{REVIEW_BY} is no date of the next three years. Expected one such as 2027-09-30."
        )
    read = {name: value.strip() for name, value in given.items()}
    read |= {} if fraction is None else {FRACTION: fraction}
    return read | ({} if day is None else {REVIEW_BY: day.isoformat()})


def lacks(declared: Mapping[str, Any], demanded: Sequence[str]) -> tuple[str, ...]:
    """Return the demanded declarations that are not there."""
    return tuple(name for name in demanded if name not in declared)


def review_of(declared: Mapping[str, Any]) -> date | None:
    """Return the last day before a release is to be reviewed, if one was declared."""
    return as_date(declared.get(REVIEW_BY))


def is_declaration(value: object) -> bool:
    """Return whether a value of a manifest can be a declaration; how long ago it was made does not matter."""
    return isinstance(value, dict) and all(
        is_number(own) if name == FRACTION else isinstance(own, str) for name, own in value.items()
    )


def _is_sentence(value: object) -> bool:
    if not isinstance(value, str) or len(value.strip()) > LONGEST_DECLARED or not is_printable(value):
        return False
    return any(map(str.isalnum, value)) and value.strip(" .:!?").casefold() not in PLACEHOLDERS
