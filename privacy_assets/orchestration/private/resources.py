"""Storage: private tables between the stages, and releases.

Both directories are fixed when definitions are built. Their resources take no configuration, so a launched run cannot
point them elsewhere.
"""

import copy
import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import dagster as dg
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.contract.related import RELATED_KIND, RelatedTables
from privacy_assets.errors import ConcurrentReleaseError, InvalidSettingError, InvalidTableError
from privacy_assets.orchestration.private.directories import (
    from_project_root,
    not_about_one_partition,
    partition_directory,
    require_separate,
    require_within,
)
from privacy_assets.orchestration.private.guard import call_guarded, nothing_attached_to_input
from privacy_assets.orchestration.private.recorded import Recorded
from privacy_assets.orchestration.settings.asked import DEFAULT_PRIVATE_PATH, DEFAULT_RELEASE_PATH
from privacy_assets.orchestration.settings.sources import UpstreamAsset
from privacy_assets.release.object_store import ObjectStore
from privacy_assets.setting_checks import local_path
from privacy_assets.storage.artifact import TABLE_KIND, Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from privacy_assets.storage.durable_files import kept_key, locked, make_private_directory
from privacy_assets.storage.fingerprint import keep_fingerprint
from privacy_assets.storage.histories import add_to_history, read_history
from privacy_assets.storage.table import StoredTable, Table

if TYPE_CHECKING:
    from upath import UPath

LOCKS_DIRECTORY = "locks"
KEYS_DIRECTORY = "keys"
REFUSALS_DIRECTORY = "refusals"
IS_LARGE = "is_large"
"""Metadata of an input whose table is loaded as a `StoredTable`."""
Content: TypeAlias = pd.DataFrame | StoredTable | RelatedTables | Artifact
NO_CONFIGURATION: dict[str, Any] = {}
"""A resource with this schema refuses run configuration; without a schema it would accept and ignore it."""


@dataclass(frozen=True)
class RecordedRefusal:
    """Time of a refused run, and what was found, by failed condition and in their order."""

    refused_at: str
    failed: Mapping[str, str]

    def with_found(self, failed: Mapping[str, str]) -> "RecordedRefusal":
        """Add what another step of the run found."""
        return RecordedRefusal(self.refused_at, dict(sorted({**self.failed, **failed}.items())))

    @property
    def found(self) -> tuple[str, ...]:
        """What was found, each finding once."""
        return tuple(dict.fromkeys(self.failed.values()))


class RefusalEntry(NamedTuple):
    """An entry in the history of refusals."""

    run_id: str
    partition: str | None
    refused_at: str
    failed: dict[str, str]

    @classmethod
    def of(cls, entry: Any) -> "RefusalEntry":
        """Read a line of the history."""
        failed = {name: str(found) for name, found in dict(entry["failed"]).items()}
        partition = None if entry["partition"] is None else str(entry["partition"])
        return cls(str(entry["run_id"]), partition, str(entry["refused_at"]), failed)


DAMAGED_REFUSAL = RecordedRefusal("unknown", {"": "the record of this refusal is damaged"})


def recorded_refusals(path: Path) -> dict[tuple[str | None, str], RecordedRefusal]:
    """Return the refusals of a history by partition and run, all findings of a run united; a damaged line is one."""
    by_run: dict[tuple[str | None, str], RecordedRefusal] = {}
    for number, entry in enumerate(read_history(path, RefusalEntry.of)):
        if entry is None:
            by_run[None, f"damaged line {number}"] = DAMAGED_REFUSAL
        else:
            run = (entry.partition, entry.run_id)
            by_run[run] = by_run.get(run, RecordedRefusal(entry.refused_at, {})).with_found(entry.failed)
    return by_run


class PrivateParquetIOManager(dg.UPathIOManager):
    """IO manager that stores tables and results as Parquet files that only their owner can read (0700 and 0600).

    It handles a `pandas.DataFrame`, `RelatedTables` or an `Artifact`. An asset is a directory that is replaced as a
    whole. Errors while reading or writing never show a cell.

    Parameters
    ----------
    base_path : str
        Private local directory; relative to the working directory of the process that builds the definitions.
    """

    extension = ".artifact"

    def __init__(self, base_path: str = DEFAULT_PRIVATE_PATH) -> None:
        from upath import UPath

        self._root = local_path(base_path, "private_tables.base_path").absolute()
        self._release_paths: set[Path] = set()
        super().__init__(UPath(self._root))

    @property
    def base_path(self) -> Path:
        """The private directory, checked to be currently separate from the release directories.

        Raises
        ------
        InvalidSettingError
            If one directory contains the other, with symbolic links resolved.
        """
        require_separate(self._root, self._release_paths)
        return self._root

    def keep_apart_from(self, release_path: Path) -> None:
        """Register a directory of releases, which must stay separate."""
        self._release_paths.add(release_path)

    def make_directory(self, path: "UPath") -> None:
        """Create directories that only their owner can enter."""
        make_private_directory(Path(str(path)))

    def make_safe_partition_path(self, base_path: "UPath", partition: str) -> "UPath":
        """Return the path of a partition, which cannot leave the asset's directory."""
        return base_path / partition_directory(partition)

    def _get_paths_for_partitions(self, context: dg.InputContext | dg.OutputContext) -> "dict[str, UPath]":
        """Return a path for each partition. The base class joins the keys of several dimensions before this call."""
        asset_path = self._get_path_without_extension(context)
        return {
            key: self._with_extension(asset_path / partition_directory(key)) for key in context.asset_partition_keys
        }

    def dump_to_path(self, context: dg.OutputContext, obj: Any, path: "UPath") -> None:
        """Store a frame or an artifact."""

        def store() -> None:
            artifact = obj if isinstance(obj, Artifact) else _as_artifact(obj)
            write_artifact(self._own(Path(str(path))), artifact)

        call_guarded(store, self.base_path, f"Storing {context.asset_key.to_user_string()}")

    def get_metadata(self, context: dg.OutputContext, obj: Any) -> dict[str, dg.MetadataValue]:  # noqa: ARG002
        """Show the directory."""
        return {"path": dg.MetadataValue.path(from_project_root(self.base_path))}

    def load_input(self, context: dg.InputContext) -> Any:
        """Read the stored asset, or the partition that the run selects."""
        what = context.asset_key.to_user_string()

        def require_one_partition() -> None:
            if context.has_asset_partitions and not context.has_partition_key:
                raise InvalidSettingError(not_about_one_partition(what, context.step_context.run_tags))

        call_guarded(require_one_partition, self.base_path, f"Loading {what}")
        return super().load_input(context)

    def load_from_path(self, context: dg.InputContext, path: "UPath") -> Content:
        """Read a frame or an artifact."""

        def load() -> Content:
            partition_key = context.partition_key if context.has_asset_partitions else None
            recorded = Recorded(context.instance, context.asset_key, partition_key)
            is_large = bool((context.definition_metadata or {}).get(IS_LARGE))
            artifact = read_artifact(self._own(Path(str(path))), is_large=is_large)
            if recorded.version_is_content and self.keyed(artifact.digest) != recorded.version:
                raise InvalidTableError(
                    f"The content stored for {context.asset_key.to_user_string()} is not what Dagster recorded: it "
                    "was overwritten, or a run was interrupted. Materialize the asset again."
                )
            if recorded.version_is_content and artifact.kind == TABLE_KIND and not is_large:
                keep_fingerprint(artifact.frames[TABLE_KIND], artifact.digest)
            return _content(artifact)

        return call_guarded(load, self.base_path, f"Loading {context.asset_key.to_user_string()}")

    def load(self, key: dg.AssetKey, partition_key: str | None, *, is_large: bool = False) -> Content:
        """Read the content stored for an asset, outside Dagster's inputs, like `load_artifact`."""
        return _content(self.load_artifact(key, partition_key, is_large=is_large))

    def load_artifact(self, key: dg.AssetKey, partition_key: str | None, *, is_large: bool = False) -> Artifact:
        """Read the artifact stored for an asset; if its table may be large, as a `StoredTable`.

        Raises
        ------
        FileNotFoundError
            If nothing is stored.
        OSError, ValueError, KeyError
            If the stored files cannot be read.
        """
        path = self.base_path.joinpath(*key.path)
        if partition_key is not None:
            path = path / partition_directory(partition_key)
        return read_artifact(self._own(path.with_name(path.name + self.extension)), is_large=is_large)

    def keyed(self, digest: str) -> str:
        """Return what Dagster's records have for the digest of private content: its HMAC-SHA256.

        Whoever sees the records cannot try tables until one has the digest. If the key is lost, all content counts as
        changed.
        """
        key = kept_key(self.private_path(KEYS_DIRECTORY, "fingerprint", None))
        return hmac.new(key, digest.encode(), hashlib.sha256).hexdigest()

    def keyed_numbers(self, texts: Iterable[str]) -> NDArray[np.uint64]:
        """Return 64 bits of the HMAC-SHA256 of each of many private texts, with a key of their own."""
        key = kept_key(self.private_path(KEYS_DIRECTORY, "people", None))
        found = (hmac.digest(key, text.encode(), "sha256")[:8] for text in texts)
        return np.frombuffer(b"".join(found), "<u8")

    def private_path(self, kind: str, name: str, partition_key: str | None) -> Path:
        """Return the path of private content that is not an asset."""
        path = self.base_path / kind / name
        return self._own(path if partition_key is None else path / partition_directory(partition_key))

    @contextmanager
    def releasing_alone(self, key: dg.AssetKey, partition_key: str | None) -> Iterator[None]:
        """Prevent other runs from releasing the same table and partition in the meantime.

        Raises
        ------
        ConcurrentReleaseError
            If another run is releasing it. The lock ends with its process, even if the process is killed.
        """
        directory = self.private_path(LOCKS_DIRECTORY, "__".join(key.path), partition_key)
        make_private_directory(directory)
        with locked(directory, wait=False) as is_alone:
            if not is_alone:
                raise ConcurrentReleaseError(
                    f"Another run is releasing {key.to_user_string()} at this moment. This run wrote nothing. Check "
                    "the other release, and launch again only if it was refused."
                )
            yield

    def record_refusal(self, key: dg.AssetKey, partition_key: str | None, run_id: str, failed: dict[str, str]) -> None:
        """Add a refusal to the private history of a release: what was found, by failed condition."""
        moment = datetime.now(UTC).isoformat(timespec="microseconds")
        entry = {"refused_at": moment, "partition": partition_key, "run_id": run_id, "failed": failed}
        add_to_history(self.history_path(REFUSALS_DIRECTORY, key), [entry], "this refusal", "Nothing was released.")

    def refusal_history(self, key: dg.AssetKey, partition_key: str | None) -> "dict[str, RecordedRefusal]":
        """Return the recorded refusals of a release by run; damaged lines count as refusals."""
        recorded = recorded_refusals(self.history_path(REFUSALS_DIRECTORY, key)).items()
        return {run: own for (part, run), own in recorded if part == partition_key or own is DAMAGED_REFUSAL}

    def history_path(self, kind: str, key: dg.AssetKey) -> Path:
        """Return the path of a private history of an asset."""
        return self._own(self.base_path / kind / ("__".join(key.path) + ".jsonl"))

    def _own(self, path: Path) -> Path:
        """Return a path below the private directory, after checking that no link leads elsewhere."""
        require_within(path, self.base_path)
        return path


@cache
def guarded_input_manager(
    io_manager_key: str, private_path: str, *, of_the_run: bool = False
) -> dg.InputManagerDefinition:
    """Return an input manager that loads with the IO manager of another asset, inside the guard.

    For checks, ``of_the_run`` loads the partition that the run selects: Dagster would load all partitions, because the
    step of a check has no partitions.
    """

    @dg.input_manager(required_resource_keys={io_manager_key})
    def load_guarded(context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        io_manager = getattr(context.resources, io_manager_key)
        what = f"Loading {context.asset_key.to_user_string()}"

        def load() -> Any:
            return io_manager.load_input(_of_the_run(context) if of_the_run else context)

        with nothing_attached_to_input(context):
            return call_guarded(load, Path(private_path).absolute(), what)

    return load_guarded


def _of_the_run(context: dg.InputContext) -> dg.InputContext:
    if not context.has_asset_partitions:
        return context
    partitions = context.asset_partitions_def
    partition_key = context.partition_key if context.has_partition_key else None
    keys = partitions.get_partition_keys(dynamic_partitions_store=context.instance)
    if partition_key is None or partition_key not in keys:
        raise InvalidSettingError(
            f"{context.asset_key.to_user_string()} has partitions, and the run selects "
            f"{'none of them' if partition_key is None else f'{partition_key!r}, which is not one of them'}. Nothing "
            "was checked. Run the check together with the asset, for one partition."
        )
    of_the_run = copy.copy(context)
    of_the_run._asset_partitions_subset = partitions.subset_with_partition_keys([partition_key])
    return of_the_run


@dataclass(frozen=True)
class ReleaseStore:
    """The directory of the releases.

    Parameters
    ----------
    base_path : str
        Local directory; relative to the working directory of the process that builds the definitions.
    objects : ObjectStore, optional
        Where releases are published, if not in that directory, which is then the record of them.
    """

    base_path: str = DEFAULT_RELEASE_PATH
    objects: ObjectStore | None = None

    def __post_init__(self) -> None:
        local_path(self.base_path, "release_store.base_path")

    def directory(self, release: str, stage: str, partition_key: str | None) -> Path:
        """Return the directory of the releases of one table, or of one of its partitions."""
        root = Path(self.base_path).absolute()
        path = root / release / stage
        path = path if partition_key is None else path / partition_directory(partition_key)
        require_within(path, root)
        return path


def private_resources(
    private_path: str, upstream: Sequence[UpstreamAsset], release_path: str | None = None
) -> dict[str, Any]:
    """Return the private storage and the guarded input manager for upstream assets.

    The objects are the same for the same directory, because Dagster merges definitions only if they share resources.
    """
    tables, resource = _private_tables(private_path)
    if release_path is not None:
        tables.keep_apart_from(Path(release_path).absolute())
    return {"private_tables": resource} | {
        asset.input_manager_key: guarded_input_manager(asset.io_manager_key, private_path) for asset in upstream
    }


def partition_input_managers(private_path: str, assets: Sequence[UpstreamAsset]) -> dict[str, Any]:
    """Return the guarded input manager that loads assets for checks, by partition."""
    return {
        asset.partition_input_manager_key: guarded_input_manager(asset.io_manager_key, private_path, of_the_run=True)
        for asset in assets
    }


def release_resources(release_path: str, objects: ObjectStore | None = None) -> dict[str, Any]:
    """Return the directory of the releases, the same object for the same directory and object store."""
    return {"release_store": _release_store(release_path, objects)}


@cache
def _private_tables(private_path: str) -> tuple[PrivateParquetIOManager, dg.IOManagerDefinition]:
    tables = PrivateParquetIOManager(private_path)
    resource = dg.IOManagerDefinition(lambda _: tables, NO_CONFIGURATION, "Private tables; the directory is fixed.")
    return tables, resource


@cache
def _release_store(release_path: str, objects: ObjectStore | None) -> dg.ResourceDefinition:
    store = ReleaseStore(release_path, objects)
    return dg.ResourceDefinition(lambda _: store, NO_CONFIGURATION, "Releases; the directory is fixed.")


def _as_artifact(table: Table | RelatedTables) -> Artifact:
    return table.to_artifact() if isinstance(table, RelatedTables) else Artifact.of_table(table)


def _content(artifact: Artifact) -> Content:
    if artifact.kind == RELATED_KIND:
        return RelatedTables.from_artifact(artifact)
    return artifact.frames[TABLE_KIND] if artifact.kind == TABLE_KIND else artifact
