"""Decisions on columns that are released unchanged, for checks, verdicts and the manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, NamedTuple

from privacy_assets.contract.related import RelatedTables
from privacy_assets.disclosure.column_examination import (
    UNSHARED,
    ColumnExamination,
    Finding,
    columns_that_leave,
    examine_columns,
)
from privacy_assets.display.numbers import percent
from privacy_assets.setting_checks import has_words
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.storage.table import Table

MANIFEST_KEY: Final = "columns_leaving_as_is"
IDENTIFYING_CHECK: Final = "no_identifying_column_leaves_undecided"
MEASURE_CHECK: Final = "no_nearly_unique_measure_leaves_undecided"
IDENTIFYING_ADVICE: Final = (
    "Give such a column the role direct_identifier, coarsen it before it is admitted, or state in the contract why it "
    "may be released and who decided: leaves_as_is."
)
MEASURE_ADVICE: Final = (
    "Anyone who knows the value of a person can find the record by it: coarsen the measure, make it a "
    "quasi-identifier, or state in the contract why it may be released and who decided: leaves_as_is."
)
MOST_COLUMNS_NAMED: Final = 20
COUNTED: Final = ("kind", "n_values", "n_distinct", "share_distinct", "share_alone", "longest_text", "median_text")
"""The counts of an examination, without its finding."""


def undecided(
    examined: Iterable[ColumnExamination], acknowledged: Mapping[str, str], finding: str
) -> tuple[ColumnExamination, ...]:
    """Return one examination for each column with a finding, unless the contract has a reason for releasing it."""
    found = {each.column: each for each in examined if each.finding == finding and each.column not in acknowledged}
    return tuple(found.values())


def in_words(examined: Sequence[ColumnExamination]) -> str:
    """Describe the examined columns in one text, with counts and shares and without values."""
    said = [f"column {each.column!r}: {' and '.join(each.reasons)}" for each in examined[:MOST_COLUMNS_NAMED]]
    if len(examined) > MOST_COLUMNS_NAMED:
        said.append(f"and {len(examined) - MOST_COLUMNS_NAMED} more columns")
    return "; ".join(said)


def say_what_is_decided(examined: Sequence[ColumnExamination], acknowledged: Mapping[str, str], finding: str) -> str:
    """Describe how many columns are released unchanged, and which of them the contract acknowledges."""
    columns = list(dict.fromkeys(each.column for each in examined))
    decided = list(dict.fromkeys(each.column for each in examined if each.finding == finding))
    what = "looks identifying" if finding == "identifying" else "is a nearly unique measure"
    said = f"none of {len(columns)} columns that are released unchanged {what}"
    if decided:
        shown = [f"{name!r} ({acknowledged[name]})" for name in decided[:MOST_COLUMNS_NAMED]]
        more = f"; and {len(decided) - len(shown)} more" if len(decided) > len(shown) else ""
        said = f"the contract has a reason for every released column that {what}: {'; '.join(shown)}{more}"
    alone = {each.column: each for each in examined if each.share_alone >= UNSHARED and each.column not in decided}
    if finding != "identifying" or not alone:
        return said
    # Even if its digits or distribution make it a measure, such a column must not be called harmless.
    unique = [f"{name!r} ({percent(each.share_alone)})" for name, each in alone.items()]
    more = f" and {len(unique) - MOST_COLUMNS_NAMED} more" if len(unique) > MOST_COLUMNS_NAMED else ""
    said = said if decided else f"{len(columns)} columns are released unchanged"
    return f"{said}; nearly everybody has a unique value in {', '.join(unique[:MOST_COLUMNS_NAMED])}{more}"


class Decision(NamedTuple):
    """Whether columns may be released, the finding, and advice if they may not."""

    passed: bool
    reason: str
    advice: str = ""


def decide_on(
    finding: Finding,
    stages: Iterable[str],
    examined: Mapping[str, Sequence[ColumnExamination]],
    acknowledged: Mapping[str, str],
) -> Decision:
    """Decide on the columns with a finding in any stage; all of `stages` must have been examined."""
    missing = [stage for stage in dict.fromkeys(stages) if stage not in examined]
    if missing:
        reason = f"the columns of {missing} that would be released unchanged could not be examined"
        return Decision(False, reason, f"Materialize from {missing[-1]} on.")
    columns = [each for own in examined.values() for each in own]
    found = undecided(columns, acknowledged, finding)
    if not found:
        return Decision(True, say_what_is_decided(columns, acknowledged, finding))
    if finding == "identifying":
        said, advice = "columns that would be released unchanged look identifying", IDENTIFYING_ADVICE
    else:
        said, advice = "nearly unique measures are released unchanged", MEASURE_ADVICE
    return Decision(False, f"{said} ({len(found)}): {in_words(found)}", advice)


def manifest_entries(
    table: Table | RelatedTables,
    described: Sequence[Mapping[str, Any]],
    side: str,
    acknowledged: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Examine the unchanged columns of a released table, counting each record as a person unless keys show people."""
    return [
        each.to_json() | {"leaves_as_is": acknowledged.get(each.column)}
        for each in examine_columns(table, columns_that_leave(described, side))
    ]


def recorded_problems(table: Table | RelatedTables, manifest: Mapping[str, Any]) -> list[str]:
    """Examine a released table again, and return the differences from the manifest.

    Findings are compared only if this version of the package wrote the manifest.
    """
    recorded = manifest[MANIFEST_KEY]
    reasons = {each["column"]: each["leaves_as_is"] for each in recorded}
    expected = manifest_entries(table, manifest["columns"], manifest["stage"], reasons)
    if [each["column"] for each in recorded] != [each["column"] for each in expected]:
        return ["the manifest does not list the columns that are released unchanged"]
    is_ours = manifest["versions"].get("privacy-assets") == version("privacy-assets")
    compared = tuple(expected[0]) if is_ours and expected else COUNTED
    return [
        f"the record of the column {found['column']!r} differs from the table"
        for told, found in zip(recorded, expected, strict=True)
        # As text, because equal numbers can be booleans or have a decimal point.
        if (is_ours and told.keys() != found.keys())
        or any(canonical_json(told[name]) != canonical_json(found[name]) for name in compared)
    ] + [
        f"the column {told['column']!r} looks identifying, but no reason for releasing it is recorded"
        for told in recorded
        if told["finding"] == "identifying"
        and not (isinstance(told["leaves_as_is"], str) and has_words(told["leaves_as_is"]))
    ]
