"""Metadata of assets: counts, columns with their roles, figures and verdicts, without cells."""

import json
from collections.abc import Mapping, Sequence, Sized
from typing import Any

import dagster as dg
import pandas as pd

from privacy_assets.columns.safe_names import dtype_name
from privacy_assets.contract.related import RelatedTables, named
from privacy_assets.release.gate import WAITS, Verdict
from privacy_assets.release.metrics import METRICS
from privacy_assets.release.outcomes import in_words
from privacy_assets.storage.table import Table

NAMESPACE = "privacy_assets"
FINGERPRINT = f"{NAMESPACE}/fingerprint"
RELEASE_DIRECTORY = f"{NAMESPACE}/release"
UPLOADED = f"{NAMESPACE}/uploaded"
FOUND, ADVICE = "found", "advice"
VERDICTS = "verdicts"
REFUSES = "refuses"
MOST_ADVICE_SHOWN = 40
MOST_OPTIONS_SHOWN = 60
LONGEST_REASON = 300
# An event can have 100 KB in total.
MOST_COLUMNS_SHOWN = 70
LONGEST_SETTINGS = 16_384
LONGEST_NAMES = 16_384


def related_metadata(
    tables: RelatedTables, roles: Mapping[str, str], descriptions: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Describe related tables: the people like one table, the columns and the number of rows of each child.

    Roles and descriptions are by the names of columns among those of all tables.
    """
    metadata: dict[str, Any] = {}
    for name, table in tables.tables.items():
        own = {column: named(name, column) for column in table.columns}
        told = [
            {column: known[each] for column, each in own.items() if each in known}
            for known in (roles, descriptions or {})
        ]
        described = table_metadata(table, tables.content, told[0], None, told[1])
        if not metadata:
            metadata = described
        else:
            metadata[f"{NAMESPACE}/rows of {name}"] = len(table)
            metadata[f"{NAMESPACE}/columns of {name}"] = dg.MetadataValue.table_schema(
                described["dagster/column_schema"]
            )
    return metadata


def table_metadata(
    table: Table,
    fingerprint: str,
    roles: Mapping[str, str],
    made_of: tuple[dg.AssetKey, Mapping[str, str]] | None = None,
    descriptions: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Describe a table by its row count, its first 70 columns (fewer if their names are long) and its fingerprint.

    Columns are tagged with their roles and have the descriptions of the contract. ``made_of`` is the asset that the
    table was made from, and the source of each column there.
    """
    columns = [
        dg.TableColumn(
            name,
            dtype_name(table.dtypes[name]),
            description=(descriptions or {}).get(name),
            tags={f"{NAMESPACE}/role": roles[name]} if name in roles else {},
        )
        for name in _shown_columns(table)
    ]
    return {
        "dagster/row_count": len(table),
        f"{NAMESPACE}/column_count": len(table.columns),
        "dagster/column_schema": dg.TableSchema(columns),
        FINGERPRINT: fingerprint,
        **({} if made_of is None else {"dagster/column_lineage": _lineage(table, *made_of)}),
    }


def _lineage(table: Table, key: dg.AssetKey, columns: Mapping[str, str]) -> dg.TableColumnLineage:
    return dg.TableColumnLineage(
        {name: [dg.TableColumnDep(key, columns[name])] for name in _shown_columns(table) if name in columns}
    )


def _shown_columns(table: Table) -> list[str]:
    """Return the first columns, as many as fit into an event."""
    shown, length = [], 0
    for name in table.columns[:MOST_COLUMNS_SHOWN]:
        length += len(json.dumps(name))
        if length > LONGEST_NAMES:
            break
        shown.append(name)
    return shown


def score_metadata(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Show the scores of an assessment in their order, without ratings: other conditions may refuse the release."""
    return {
        name: _short_number(value) if isinstance(value, float) else value
        for name, value in scores.items()
        if isinstance(value, int | float | str)
    }


def _short_number(value: float) -> float:
    """Round to three significant digits, and numbers above 100 to whole ones."""
    return float(f"{value:.3g}") if abs(value) < 100 else float(round(value))


def refusal_on_its_asset(
    key: dg.AssetKey, partition: str | None, decided: Sequence[Verdict], refusal: Mapping[str, Any], failed: dg.AssetKey
) -> dg.AssetObservation:
    """Return what the asset of a release shows if checks on another asset refused it, before its step began."""
    blocking = [verdict for verdict in decided if verdict.blocks]
    found = "; ".join(verdict.reason for verdict in blocking)
    shown: dict[str, Any] = {
        FOUND: found,
        ADVICE: " ".join(dict.fromkeys(verdict.advice for verdict in blocking)),
        "refused_by_checks_of": dg.MetadataValue.asset(failed),
        **refusal,
        VERDICTS: verdict_table(decided),
    }
    return dg.AssetObservation(key, f"Refused: {found}", partition=partition, metadata=shown)


def settings_metadata(settings: Mapping[str, Any]) -> dg.JsonMetadataValue:
    """Show the settings of a stage; if they are long, settings by column are only counted.

    The contract and the manifest of the release have the role of each column.
    """
    shown = dict(settings)
    if len(json.dumps(shown)) > LONGEST_SETTINGS:
        by_column = {name: value for name, value in shown.items() if isinstance(value, Sized) and len(value) > 1}
        shown |= {
            name: f"{len(value)} entries, too many to show"
            for name, value in by_column.items()
            if not isinstance(value, str)
        }
    return dg.MetadataValue.json(shown)


def verdict_table(decided: Sequence[Verdict]) -> dg.TableMetadataValue:
    """Show verdicts as a table, those that refuse first and those that passed last: condition, result, finding, advice.

    The records have two fields that the table does not show: whether the condition is met, and its effect otherwise.
    """
    columns = [dg.TableColumn(name, "string") for name in ("condition", "result", FOUND, ADVICE)]
    records = [
        dg.TableRecord(
            {
                "condition": in_words(verdict.name),
                "result": "passed" if verdict.passed else _consequence(verdict),
                FOUND: verdict.reason,
                ADVICE: verdict.advice,
                "passed": verdict.passed,
                "if_it_fails": _consequence(verdict),
            }
        )
        for verdict in sorted(decided, key=lambda verdict: (verdict.passed, verdict.severity != "error"))
    ]
    return dg.MetadataValue.table(records, dg.TableSchema(columns))


def _consequence(verdict: Verdict) -> str:
    # Not the word `error`, which would suggest a failure next to a condition that is met.
    return "waits" if verdict.name in WAITS else REFUSES if verdict.severity == "error" else "warns"


def advice_table(advice: pd.DataFrame) -> dg.TableMetadataValue:
    """Show the effect of forgetting columns on the semantic risk, with names of columns and counts."""
    return _table(advice.head(MOST_ADVICE_SHOWN))


def options_table(options: pd.DataFrame) -> dg.TableMetadataValue:
    """Show candidate releases, the proposed ones first and by worth, with names of settings and figures only."""
    in_order = options.sort_values(["side", "is_proposed", "utility"], ascending=[True, False, False], kind="stable")
    figures = [name for name in options.columns if name in METRICS and name != "utility"]
    columns = ["candidate", "side", "is_proposed", "utility", "worth_in_people", *figures, "reason"]
    shown = in_order.assign(reason=in_order["reason"].map(_short))[columns]
    return _table(shown.round(3).head(MOST_OPTIONS_SHOWN))


def _table(shown: pd.DataFrame) -> dg.TableMetadataValue:
    records = [
        dg.TableRecord({str(name): _plain(value) for name, value in row.items()}) for row in shown.to_dict("records")
    ]
    return dg.MetadataValue.table(records, dg.TableSchema([dg.TableColumn(str(name)) for name in shown.columns]))


def _short(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else reason[: LONGEST_REASON - 1] + "…"


def _plain(value: Any) -> str | int | float | bool:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if pd.isna(value):
        return ""
    plain: str | int | float | bool = value.item() if hasattr(value, "item") else value
    return plain


def verdict_result(key: dg.AssetKey, verdict: Verdict, more: Mapping[str, Any] | None = None) -> dg.AssetCheckResult:
    """Return the result of the check that shows a verdict.

    Its metadata are the sentence and the advice, then score and limit as floats, which the Checks tab plots over time,
    then ``more``.
    """
    shown: dict[str, Any] = {FOUND: verdict.reason}
    if verdict.advice:
        shown[ADVICE] = verdict.advice
    if verdict.value is not None:
        shown["score"] = _short_number(float(verdict.value))
    if verdict.limit is not None:
        shown["limit"] = float(verdict.limit)
    return dg.AssetCheckResult(
        check_name=verdict.name,
        asset_key=key,
        passed=verdict.passed,
        severity=dg.AssetCheckSeverity.ERROR if verdict.severity == "error" else dg.AssetCheckSeverity.WARN,
        metadata=shown | dict(more or {}),
        description=verdict.reason,
    )
