"""Code shared by the assets of all stages: tables, storage, metadata and progress logs."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar

import dagster as dg

from privacy_assets.contract.related import RelatedTables, content_of
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.private.directories import not_about_one_partition
from privacy_assets.orchestration.private.guard import log_openly
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.shown.metadata import related_metadata, table_metadata
from privacy_assets.orchestration.shown.pictures import picture_metadata
from privacy_assets.release.policy import Limit
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.table import Table

GATE_CHECK = "release_gate"
CHECKS_OF_STAGES = {
    "source_keeps_its_contract": "Columns, types, ranges and missing values meet the contract.",
    "no_person_is_on_both_sides": "No person that the synthesizer may see is in the control.",
    "synthetic_keeps_the_contract": "Synthetic records have the released columns, with their types and ranges.",
}
PENDING_DIRECTORY = "pending"
RESOURCES = {"private_tables", "release_store"}
SECONDS_BETWEEN_PROGRESS_LINES = 2.0

Progress = TypeVar("Progress")
_also_to: ContextVar[Callable[[str], object] | None] = ContextVar("also_to", default=None)


def asset_arguments(release: ReleaseSettings, stage: str, kinds: set[str] | None = None) -> dict[str, Any]:
    """Return the arguments of `dagster.asset` for a stage."""
    return output_arguments(release, stage, kinds) | {
        "group_name": release.name,
        "required_resource_keys": RESOURCES,
        "partitions_def": release.partitions_def,
        "freshness_policy": release.monitoring.freshness_policy if stage in release.stages_that_age else None,
    }


def output_arguments(release: ReleaseSettings, stage: str, kinds: set[str] | None = None) -> dict[str, Any]:
    """Return the arguments of `dagster.AssetOut` for a stage that is made together with another."""
    return {
        "key": release.key(stage),
        "kinds": kinds or {"parquet"},
        "owners": list(release.owners),
        "io_manager_key": "private_tables",
        "dagster_type": dg.Any,
        "automation_condition": release.monitoring.automation_condition,
    }


def blocking_check(release: ReleaseSettings, stage: str, name: str, description: str) -> dg.AssetCheckSpec:
    """Return the spec of a check that blocks stages after this one."""
    return dg.AssetCheckSpec(name, asset=release.key(stage), blocking=True, description=description)


def limit_checks_of(limits: Iterable[Limit], key: dg.AssetKey, deps: Sequence[dg.AssetKey]) -> list[dg.AssetCheckSpec]:
    """Return the specs of the checks that show whether limits are met."""
    return [
        dg.AssetCheckSpec(
            limit.check_name,
            asset=key,
            additional_deps=deps,
            blocking=limit.blocks,
            description=f"{limit.metric} must be {limit.bound}.",
        )
        for limit in limits
    ]


def partition_key_of(context: Any, partitions: dg.PartitionsDefinition[Any] | None) -> str | None:
    """Return the partition of a step, or None without partitions; refuse a run that does not select exactly one."""
    if partitions is None:
        return None
    if not context.has_partition_key:
        raise InvalidSettingError(
            not_about_one_partition(context.op_execution_context.op_handle.name, context.run.tags)
        )
    key: str = context.partition_key
    return key


def storage_of(context: Any, release: ReleaseSettings) -> Storage:
    """Return the storage that a step works on, with the partition that `partition_key_of` returns."""
    resources, partition_key = context.resources, partition_key_of(context, release.partitions_def)
    return Storage(release, context.instance, resources.private_tables, resources.release_store, partition_key)


def described_table(
    release: ReleaseSettings,
    table: Table | RelatedTables,
    content: str,
    made_of: dg.AssetKey | None,
    roles: Mapping[str, str],
) -> dict[str, Any]:
    """Describe a table of a release, or related ones, by counts, columns and fingerprint, for metadata."""
    if isinstance(table, RelatedTables):
        return related_metadata(table, roles, release.descriptions)
    lineage = None if made_of is None else (made_of, {name: name for name in table.columns})
    return table_metadata(table, content, roles, lineage, release.descriptions)


def stored_table(
    release: ReleaseSettings,
    stage: str,
    table: Table | RelatedTables,
    made: dict[str, Any] | None = None,
    made_of: str | None = None,
    more: dict[str, Any] | None = None,
) -> dg.MaterializeResult[Any]:
    """Return the result of a stage that makes a plain table, or related ones; its data version is the fingerprint.

    ``made`` contains the settings and fingerprints that it was made with; ``made_of`` is the stage that its columns
    come from, and ``more`` is metadata that comes first.
    """
    content = content_of(table)
    return dg.MaterializeResult(
        asset_key=release.key(stage),
        value=table,
        metadata=(more or {})
        | described_table(release, table, content, None if made_of is None else release.key(made_of), release.roles)
        | {name: dg.MetadataValue.json(value) for name, value in (made or {}).items()},
        data_version=dg.DataVersion(content),
    )


def stored_artifact(
    artifact: Artifact, metadata: Mapping[str, Any], made_of: Mapping[str, str] | None = None
) -> dg.MaterializeResult[Artifact]:
    """Return the result of a stage that makes an artifact; its data version is the artifact's digest.

    ``made_of`` contains the fingerprints of the tables that it was made from, unless the artifact has them.
    """
    if made_of is not None:
        artifact = replace(artifact, made_of=made_of)
    shown = {**metadata, **picture_metadata(artifact.pictures)}
    return dg.MaterializeResult(value=artifact, metadata=shown, data_version=dg.DataVersion(artifact.digest))


def progress_logger(context: Any, describe: Callable[[Progress], str]) -> Callable[[Progress], None]:
    """Return a function that logs the progress of a step, at most every few seconds."""
    last_line, also_to = time.monotonic(), _also_to.get()

    def log(progress: Progress) -> None:
        nonlocal last_line
        if time.monotonic() - last_line < SECONDS_BETWEEN_PROGRESS_LINES:
            return
        last_line = time.monotonic()
        line = describe(progress)
        log_openly(context, line)
        if also_to is not None:
            also_to(line)

    return log


@contextmanager
def progress_also_to(report: Callable[[str], object]) -> Iterator[None]:
    """Also pass the progress lines of steps that run in this process to a function, for example to print them."""
    reset = _also_to.set(report)
    try:
        yield
    finally:
        _also_to.reset(reset)
