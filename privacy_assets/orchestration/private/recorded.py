"""Dagster's record of the last materialization of an asset."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg

from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.dagster_internals import DATA_VERSION_IS_USER_PROVIDED_TAG, DATA_VERSION_TAG
from privacy_assets.orchestration.shown.metadata import FINGERPRINT, RELEASE_DIRECTORY

MADE_WITH = "privacy_assets/made_with"
MADE_OF = "privacy_assets/made_of"
UNIT = "privacy_assets/unit"
CONTROL_PLAN = "control_plan"
_PAGE = 50


def of_partition(key: dg.AssetKey, partition_key: str | None) -> dg.AssetKey | dg.AssetRecordsFilter:
    """Return the filter for the events of an asset, or of one of its partitions."""
    return key if partition_key is None else dg.AssetRecordsFilter(key, asset_partitions=[partition_key])


def all_records(fetch: Callable[..., dg.EventRecordsResult], wanted: Any) -> Iterator[dg.EventLogRecord]:
    """Yield all records that a function of the instance fetches, latest first."""
    cursor, has_more = None, True
    while has_more:
        page = fetch(wanted, limit=_PAGE, cursor=cursor)
        yield from page.records
        cursor, has_more = page.cursor, page.has_more


class Recorded:
    """The latest materialization of an asset, or of one of its partitions, in the instance's records.

    Attributes
    ----------
    version : str or None
        Its data version; None if it was never materialized.
    version_is_content : bool
        Whether the asset itself set the version, as the assets of this package do; then it is the keyed digest of the
        stored content.
    run_id : str or None
        The run that made it; None if it was reported by hand, or the instance does not know the run.
    made_of : dict of str to str
        Keyed fingerprints of the tables it was made from, by stage. Dagster's own record of input versions omits
        partitions.
    made_with : dict
        Settings it was made with.
    unit, control_plan : object
        What a run found out about whose the rows are, and about the split; None if nothing is recorded.
    """

    def __init__(self, instance: dg.DagsterInstance, key: dg.AssetKey, partition_key: str | None) -> None:
        records = instance.fetch_materializations(of_partition(key, partition_key), limit=1).records
        materialization = records[0].asset_materialization if records else None
        tags: Mapping[str, str] = (materialization.tags if materialization else None) or {}
        self.version = tags.get(DATA_VERSION_TAG)
        self.version_is_content = tags.get(DATA_VERSION_IS_USER_PROVIDED_TAG) == "true"
        # A materialization reported by hand has no run; the instance does not know the run of a forged run id.
        run_id = records[0].run_id if records else None
        self.run_id = run_id if run_id and instance.has_run(run_id) else None
        metadata = materialization.metadata if materialization else {}
        self.made_of: dict[str, str] = _json(metadata.get(MADE_OF)) or {}
        self.made_with: Any = _json(metadata.get(MADE_WITH))
        found = {} if self.run_id is None else metadata
        self.unit, self.control_plan = (_json(found.get(name)) for name in (UNIT, CONTROL_PLAN))


def keyed_result(event: Any, keyed: Callable[[str], str]) -> Any:
    """Return the result of a stage with keyed digests; other events, and results of releases, as they are."""
    if not isinstance(event, dg.MaterializeResult) or RELEASE_DIRECTORY in (event.metadata or {}):
        return event
    metadata = dict(event.metadata or {})
    if FINGERPRINT in metadata:
        shown = metadata[FINGERPRINT]
        metadata[FINGERPRINT] = keyed(str(shown.value if isinstance(shown, dg.TextMetadataValue) else shown))
    if MADE_OF in metadata:
        metadata[MADE_OF] = {stage: keyed(own) for stage, own in (_json(metadata[MADE_OF]) or {}).items()}
    version = None if event.data_version is None else dg.DataVersion(keyed(event.data_version.value))
    return event._replace(metadata=metadata, data_version=version)


class Publication(NamedTuple):
    """A recorded release: its table, its place if that is known, its run and partition, and the budget it states."""

    fingerprint: str
    directory: Path | None
    run_id: str
    partition: str | None = None
    budget: Mapping[str, Any] | None = None


def publications(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[Publication]:
    """Return every release that runs published as an asset, of any partition, latest first.

    A materialization reported by hand published nothing, so it does not count.
    """
    found = []
    for record in _of_runs(instance, key):
        materialization, version = record.asset_materialization, _version_of(record)
        if materialization is None or version is None:
            continue
        path = materialization.metadata.get(RELEASE_DIRECTORY)
        directory = Path(path.value) if isinstance(path, dg.PathMetadataValue) and path.value else None
        found.append(Publication(version, directory, record.run_id, record.partition_key))
    return found


def require_alike_partitions(instance: dg.DagsterInstance, key: dg.AssetKey, partition_key: str | None) -> None:
    """Refuse an asset if it was last made with partitions and the release has none, or vice versa.

    Then none of its partitions corresponds to this one, so its published tables cannot be found.
    """
    record = next(_of_runs(instance, key), None)
    if record is None or (record.partition_key is None) == (partition_key is None):
        return
    has, lacks = ("no partitions", "has some") if record.partition_key is None else ("partitions", "has none")
    raise InvalidTableError(
        f"{key.to_user_string()!r} has {has}, but the release that names it {lacks}, so it is unknown which of its "
        "published tables belong to this release. Expected the same partitions for both, or the directory of the "
        "published table. Nothing was assessed."
    )


def _of_runs(instance: dg.DagsterInstance, wanted: dg.AssetKey) -> Iterator[dg.EventLogRecord]:
    """Yield the materializations by runs that set a data version, latest first.

    The run may have been deleted since; its publication still exists.
    """
    for record in all_records(instance.fetch_materializations, wanted):
        if _version_of(record) is not None and record.run_id:
            yield record


def _version_of(record: dg.EventLogRecord) -> str | None:
    tags = (record.asset_materialization.tags if record.asset_materialization else None) or {}
    return tags.get(DATA_VERSION_TAG) if tags.get(DATA_VERSION_IS_USER_PROVIDED_TAG) == "true" else None


def _json(value: Any) -> Any:
    return value.value if isinstance(value, dg.JsonMetadataValue) else None
