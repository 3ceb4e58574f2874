"""The checks at the source on columns that are released unchanged, and on whose the rows are, and their evidence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import dagster as dg
import pandas as pd

from privacy_assets.anonymity.links import find_links
from privacy_assets.columns.spelling import factorize_keys
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.related import RelatedTables
from privacy_assets.disclosure.column_examination import ColumnExamination, examine_columns
from privacy_assets.disclosure.declared_unit import UNIT_CHECK, UnitExamination
from privacy_assets.disclosure.leaving_columns import IDENTIFYING_CHECK, decide_on
from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.evidence.evidence import Gathered
from privacy_assets.orchestration.evidence.row_links import with_links
from privacy_assets.orchestration.evidence.units import decide_on_units
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.stages import blocking_check
from privacy_assets.release.outcomes import in_words
from privacy_assets.release.row_links import LinkEvidence, decide_on_links
from privacy_assets.storage.column_files import ColumnFiles
from privacy_assets.storage.table import Table

COLUMNS_DESCRIPTION = (
    "Every column that is released unchanged and looks identifying is acknowledged in the contract with a reason."
)
UNIT_DESCRIPTION = (
    "No column numbers other people than the contract declares, unless the contract says what it numbers: not_a_person."
)
MOST_COLUMNS_SHOWN = 40


def columns_check(release: ReleaseSettings, stage: str) -> dg.AssetCheckSpec:
    """Return the spec of the check on columns that are released unchanged."""
    return blocking_check(release, stage, IDENTIFYING_CHECK, COLUMNS_DESCRIPTION)


def check_columns(
    release: ReleaseSettings, stage: str, table: Table | RelatedTables, sides: Sequence[str]
) -> Iterator[dg.AssetCheckResult]:
    """Yield the check on identifying columns; raise if one of them has no reason in the contract."""
    by_side = {side: release.columns_leaving(side) for side in sides}
    roles = {name: role for own in by_side.values() for name, role in own.items()}
    examined = examine_columns(table, roles, release.contract.person)
    acknowledged = release.acknowledged
    decision = decide_on("identifying", [stage], {stage: examined}, acknowledged)
    sides_of = {each.column: [side for side in sides if each.column in by_side[side]] for each in examined}
    yield dg.AssetCheckResult(
        check_name=IDENTIFYING_CHECK,
        asset_key=release.key(stage),
        passed=decision.passed,
        metadata={"columns_that_leave_as_they_are": len(examined), "columns": _table(examined, acknowledged, sides_of)},
        description=decision.reason,
    )
    if not decision.passed:
        raise InvalidTableError(f"In {stage} {decision.reason}. Nothing was stored. {decision.advice}")


def unit_check(release: ReleaseSettings, stage: str) -> dg.AssetCheckSpec:
    """Return the spec of the check on whose the rows are."""
    return blocking_check(release, stage, UNIT_CHECK, UNIT_DESCRIPTION)


def check_unit(
    release: ReleaseSettings, stage: str, examined: UnitExamination | Mapping[str, UnitExamination]
) -> Iterator[dg.AssetCheckResult]:
    """Yield the check on whose the rows are; raise if they seem to be of other people than the contract declares.

    Of related tables, each was ``examined``.
    """
    by_table = examined if isinstance(examined, Mapping) else {"": examined}
    decision = decide_on_units(release, stage, by_table)
    said = f"In {stage}, {decision.reason}"
    yield dg.AssetCheckResult(
        check_name=UNIT_CHECK,
        asset_key=release.key(stage),
        passed=decision.passed,
        metadata={
            "findings": dg.MetadataValue.json([each.to_json() for own in by_table.values() for each in own.findings])
        },
        description=f"{said}; {decision.doubts}" if decision.doubts else said,
    )
    if not decision.passed:
        raise InvalidTableError(f"{said}. Nothing was stored. {decision.advice}")


def refuse_links_of_removed_columns(
    release: ReleaseSettings, stage: str, table: pd.DataFrame | ColumnFiles, contract: TableContract
) -> None:
    """Refuse values that leave and link rows as if a removed column with ``not_a_person`` numbered the people.

    ``table`` has all columns of its contract. Later, only those of released columns can be compared, which the gate
    does.
    """
    removed = [name for name in contract.not_a_person if name not in contract.released_columns]
    if release.anonymized is None or not removed:
        return
    names = [name for name in release.columns_leaving("anonymized") if name in table.columns]
    leaving = table.only(names) if isinstance(table, ColumnFiles) else table[names]
    k = release.policy.people_per_class
    links = {name: find_links(leaving, factorize_keys(table[name]), k, list(contract.links_rows)) for name in removed}
    _, decision = next(decide_on_links(LinkEvidence("", (), links), contract.links_rows))
    if not decision.passed:
        raise InvalidTableError(f"In {stage}, {decision.reason}. Nothing was stored. {decision.advice}")


def _table(
    examined: Sequence[ColumnExamination], acknowledged: dict[str, str], sides_of: dict[str, list[str]]
) -> dg.TableMetadataValue:
    """Show the first columns, identifying columns before the others, with counts and shares only."""
    places = ("identifying", "nearly_unique", "ordinary")
    first = sorted(examined, key=lambda each: (each.column in acknowledged, places.index(each.finding)))
    records = [
        dg.TableRecord(
            {
                "column": each.column,
                "sides": ", ".join(sides_of[each.column]),
                "finding": in_words(each.finding),
                "why": "; ".join(each.reasons),
                "values": each.n_values,
                "distinct": each.n_distinct,
                "share_alone": round(each.share_alone, 6),
                "leaves_as_is": acknowledged.get(each.column, ""),
            }
        )
        for each in first[:MOST_COLUMNS_SHOWN]
    ]
    kinds = {"values": "int", "distinct": "int", "share_alone": "float"}
    names = ("column", "sides", "finding", "why", "values", "distinct", "share_alone", "leaves_as_is")
    schema = dg.TableSchema([dg.TableColumn(name, kinds.get(name, "string")) for name in names])
    return dg.MetadataValue.table(records, schema)


def with_examined_columns(gathered: Gathered, storage: Storage, side: str) -> Gathered:
    """Examine exactly the table that would be released, and the table it was made from, which has the people.

    This is done once, in the step that releases: the decision needs it, and no figure of a limit does.
    """
    release = storage.release
    roles = release.columns_leaving(side)
    origin = release.stage_examined
    examined = {}
    if gathered.table is not None:
        examined[gathered.evidence.stage] = examine_columns(gathered.table, roles)
    recorded = storage.recorded(origin).version
    at_hand = gathered.evidence.tables.get(origin)
    if origin in gathered.found and at_hand is not None and at_hand.digest == recorded:
        # The table was hashed when it was loaded.
        source = gathered.found[origin]
    else:
        stored, content = storage.table(origin, is_large=release.related is None)
        source = stored if content is not None and storage.keyed(content) == recorded else None
    if source is not None:
        examined[origin] = examine_columns(source, roles, release.contract.person)
    evidence = replace(
        gathered.evidence,
        examined=examined,
        must_be_examined=(gathered.evidence.stage, origin),
        acknowledged=release.acknowledged,
    )
    if side == "anonymized" and release.is_of_originals:
        source = gathered.found.get(release.source_of_anonymized)  # The rows of classes are those of this table.
    return with_links(replace(gathered, evidence=evidence), storage, side, source)
