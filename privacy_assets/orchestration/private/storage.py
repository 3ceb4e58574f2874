"""The private tables of one release, and Dagster's records of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import dagster as dg

from privacy_assets.contract.related import RelatedTables, broken_links, content_of
from privacy_assets.orchestration.private.recorded import Recorded
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager, ReleaseStore
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.table import Table

T = TypeVar("T")
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True)
class Storage:
    """The storage and the instance records of one release, or of one of its partitions."""

    release: ReleaseSettings
    instance: dg.DagsterInstance
    private_tables: PrivateParquetIOManager
    release_store: ReleaseStore
    partition_key: str | None

    def keyed(self, digest: str | None) -> str | None:
        """Return what Dagster's records have for a digest; None for None."""
        return None if digest is None else self.private_tables.keyed(digest)

    def recorded(self, stage: str) -> Recorded:
        """Return what Dagster recorded when a stage was last materialized."""
        return Recorded(self.instance, self.release.key(stage), self.partition_key)

    def load(self, stage: str, *, is_large: bool = False) -> Any:
        """Read the stored content of a stage; a table that may be large as a `StoredTable`."""
        return self.private_tables.load(self.release.key(stage), self.partition_key, is_large=is_large)

    def read(self, key: dg.AssetKey, read: Callable[[Artifact], T], *, is_large: bool = False) -> T | None:
        """Return a stored result; None if no readable result is stored. A large one has a `StoredTable`."""
        try:
            stored = self.private_tables.load(key, self.partition_key, is_large=is_large)
            return read(stored) if isinstance(stored, Artifact) else None
        except UNREADABLE:
            return None

    def table(self, stage: str, *, is_large: bool = False) -> tuple[Any, str | None]:
        """Return a stored table, or related tables, and the fingerprint; None for both if it cannot be read.

        One that may be large is a `StoredTable`.
        """
        try:
            table = self.private_tables.load(self.release.key(stage), self.partition_key, is_large=is_large)
            kind: Any = Table if self.release.related is None else RelatedTables
            return (table, content_of(table)) if isinstance(table, kind) else (None, None)
        except UNREADABLE:
            return None, None

    def broken_links(self, stage: str) -> list[str]:
        """Return why stored tables do not belong together as released ones must; see `broken_links`."""
        try:
            stored = self.private_tables.load_artifact(self.release.key(stage), self.partition_key)
            return broken_links(stored.frames, stored.header["person"], stored.header["links"])
        except UNREADABLE:
            return [f"{stage} cannot be read"]
