"""What is decided about columns that leave as they are: in words for checks and verdicts, and in the manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, NamedTuple

import pandas as pd

from privacy_assets.disclosure.column_examination import ColumnExamination, Finding, columns_that_leave, examine_columns
from privacy_assets.storage.artifact import canonical_json

MANIFEST_KEY: Final = "columns_leaving_as_is"
IDENTIFYING_CHECK: Final = "no_identifying_column_leaves_undecided"
MEASURE_CHECK: Final = "no_nearly_unique_measure_leaves_undecided"
IDENTIFYING_ADVICE: Final = (
    "Give such a column the role direct_identifier, make it coarser before it is admitted, or say in the contract why "
    "it may leave and who decided: leaves_as_is."
)
MEASURE_ADVICE: Final = (
    "Who knows the value of somebody finds the record by it: make the measure coarser, call it a quasi-identifier, or "
    "say in the contract why it may leave and who decided: leaves_as_is."
)
MOST_COLUMNS_NAMED: Final = 20
COUNTED: Final = ("kind", "n_values", "n_distinct", "share_distinct", "share_alone", "longest_text", "median_text")
"""What an examination counts, whatever it makes of it."""


def undecided(
    examined: Iterable[ColumnExamination], acknowledged: Mapping[str, str], finding: str
) -> tuple[ColumnExamination, ...]:
    """Return one examination for each column with a finding, unless the contract says why the column may leave."""
    found = {each.column: each for each in examined if each.finding == finding and each.column not in acknowledged}
    return tuple(found.values())


def in_words(examined: Sequence[ColumnExamination]) -> str:
    """Say of columns what they look like, in one text; counts and shares, and no value."""
    said = [f"column {each.column!r} {' and '.join(each.reasons)}" for each in examined[:MOST_COLUMNS_NAMED]]
    if len(examined) > MOST_COLUMNS_NAMED:
        said.append(f"and {len(examined) - MOST_COLUMNS_NAMED} more columns")
    return "; ".join(said)


def say_what_is_decided(examined: Sequence[ColumnExamination], acknowledged: Mapping[str, str], finding: str) -> str:
    """Say how many columns leave as they are, and which of them the contract decides about."""
    columns = list(dict.fromkeys(each.column for each in examined))
    decided = list(dict.fromkeys(each.column for each in examined if each.finding == finding))
    what = "looks identifying" if finding == "identifying" else "is a nearly unique measure"
    if not decided:
        return f"none of {len(columns)} columns that leave as they are {what}"
    shown = [f"{name!r} ({acknowledged[name]})" for name in decided[:MOST_COLUMNS_NAMED]]
    more = f"; and {len(decided) - len(shown)} more" if len(decided) > len(shown) else ""
    return f"the contract says of every column that {what} why it leaves as it is: {'; '.join(shown)}{more}"


class Decision(NamedTuple):
    """Whether columns may leave, what was found, and what to do if they may not."""

    passed: bool
    reason: str
    advice: str = ""


def decide_on(
    finding: Finding,
    stages: Iterable[str],
    examined: Mapping[str, Sequence[ColumnExamination]],
    acknowledged: Mapping[str, str],
) -> Decision:
    """Decide on the columns that have a finding in any stage; all of `stages` must have been looked at."""
    missing = [stage for stage in dict.fromkeys(stages) if stage not in examined]
    if missing:
        reason = f"the columns of {missing} that leave as they are could not be looked at"
        return Decision(False, reason, f"Materialize from {missing[-1]} on.")
    columns = [each for own in examined.values() for each in own]
    found = undecided(columns, acknowledged, finding)
    if not found:
        return Decision(True, say_what_is_decided(columns, acknowledged, finding))
    if finding == "identifying":
        said, advice = "columns that would leave as they are look identifying", IDENTIFYING_ADVICE
    else:
        said, advice = "nearly unique measures leave as they are", MEASURE_ADVICE
    return Decision(False, f"{said} ({len(found)}): {in_words(found)}", advice)


def manifest_entries(
    table: pd.DataFrame, described: Sequence[Mapping[str, Any]], side: str, acknowledged: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Examine the columns of a released table that leave as they are, each record counting as a person.

    Parameters
    ----------
    table : DataFrame
        What leaves.
    described : sequence of mapping
        Its columns, as the manifest describes them.
    side : {"synthetic", "anonymized"}
        The side that it belongs to.
    acknowledged : mapping of str to str
        Why columns may leave, by column.
    """
    return [
        each.to_json() | {"leaves_as_is": acknowledged.get(each.column)}
        for each in examine_columns(table, columns_that_leave(described, side))
    ]


def recorded_problems(table: pd.DataFrame, manifest: Mapping[str, Any]) -> list[str]:
    """Examine a released table again, and say what is recorded of it otherwise.

    Manifests of earlier versions, which say nothing of these columns, have no problem here. What the counts are taken
    for is compared where this version of the package wrote the manifest.
    """
    recorded = manifest.get(MANIFEST_KEY)
    if recorded is None:
        is_asked = any(verdict["name"] == IDENTIFYING_CHECK for verdict in manifest["verdicts"])
        return ["the manifest does not list the columns that leave as they are"] if is_asked else []
    reasons = {each["column"]: each["leaves_as_is"] for each in recorded}
    expected = manifest_entries(table, manifest["columns"], manifest["stage"], reasons)
    if [each["column"] for each in recorded] != [each["column"] for each in expected]:
        return ["the manifest does not list the columns that leave as they are"]
    is_ours = manifest["versions"].get("privacy-assets") == version("privacy-assets")
    compared = tuple(expected[0]) if is_ours and expected else COUNTED
    return [
        f"what is recorded of the column {found['column']!r} is not what the table shows"
        for told, found in zip(recorded, expected, strict=True)
        # As text: of two numbers that are equal one can be a boolean, or written with a point.
        if (is_ours and told.keys() != found.keys())
        or any(canonical_json(told[name]) != canonical_json(found[name]) for name in compared)
    ] + [
        f"the column {told['column']!r} looks identifying, and no reason is recorded why it leaves"
        for told in recorded
        if told["finding"] == "identifying" and not (isinstance(told["leaves_as_is"], str) and told["leaves_as_is"])
    ]
