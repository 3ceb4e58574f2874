"""Where things rest: private tables between the stages, and releases that may leave."""

import copy
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import dagster as dg
import pandas as pd
from pydantic import Field

from privacy_assets.orchestration.guard import call_guarded
from privacy_assets.orchestration.recorded import Recorded
from privacy_assets.orchestration.sources import UpstreamAsset
from privacy_assets.tables.artifact import TABLE_KIND, Artifact
from privacy_assets.tables.artifact_files import read_artifact, write_artifact
from privacy_assets.tables.durable_files import PRIVATE_FILE_MODE, make_private_directory
from privacy_assets.tables.errors import InvalidSettingError, InvalidTableError

if TYPE_CHECKING:
    from upath import UPath

DEFAULT_PRIVATE_PATH = ".dagster/private"
DEFAULT_RELEASE_PATH = "releases"
REFUSALS_DIRECTORY = "refusals"


class PrivateTables(dg.UPathIOManager):
    """Keep tables and results as Parquet files that their owner alone can read (directories 0700, files 0600).

    Takes and gives a `pandas.DataFrame` or an `Artifact`. An asset is a directory that is replaced as a whole. Nothing
    that goes wrong while reading or writing shows a cell.
    """

    extension = ".artifact"

    def __init__(self, base_path: str) -> None:
        from upath import UPath

        if UPath(base_path).protocol not in ("", "file"):
            raise InvalidSettingError(
                f"private_tables.base_path has protocol {UPath(base_path).protocol!r}; tables must rest in a local "
                "directory, where they can be replaced as a whole and kept from others."
            )
        self.base_path = Path(base_path).absolute()
        super().__init__(UPath(self.base_path))

    def make_directory(self, path: "UPath") -> None:
        """Make directories that their owner alone can enter."""
        make_private_directory(Path(str(path)))

    def make_safe_partition_path(self, base_path: "UPath", partition: str) -> "UPath":
        """Keep a partition key from leaving the asset's directory."""
        return base_path / partition_directory(partition)

    def dump_to_path(self, context: dg.OutputContext, obj: Any, path: "UPath") -> None:
        """Store a frame or an artifact."""

        def store() -> None:
            artifact = obj if isinstance(obj, Artifact) else Artifact.of_table(obj)
            write_artifact(Path(str(path)), artifact)

        call_guarded(store, self.base_path, f"Storing {context.asset_key.to_user_string()}")

    def load_from_path(self, context: dg.InputContext, path: "UPath") -> pd.DataFrame | Artifact:
        """Read a frame or an artifact."""

        def load() -> pd.DataFrame | Artifact:
            if context.has_asset_partitions and not context.has_partition_key:
                raise InvalidTableError(
                    f"{context.asset_key.to_user_string()} has partitions, and what reads it has none: there is no one "
                    "table to read. Expected the same partitions on both sides. Nothing was read."
                )
            partition_key = context.partition_key if context.has_asset_partitions else None
            recorded = Recorded(context.instance, context.asset_key, partition_key)
            artifact = read_artifact(Path(str(path)))
            if recorded.version_is_content and artifact.digest != recorded.version:
                raise InvalidTableError(
                    f"What is stored for {context.asset_key.to_user_string()} is not what Dagster recorded: it was "
                    "overwritten, or a run was cut off. Materialize it again."
                )
            return _content(artifact)

        return call_guarded(load, self.base_path, f"Loading {context.asset_key.to_user_string()}")

    def load(self, key: dg.AssetKey, partition_key: str | None) -> pd.DataFrame | Artifact:
        """Read what is stored for an asset, outside Dagster's inputs.

        Raises
        ------
        FileNotFoundError
            Nothing is stored.
        OSError, ValueError, KeyError
            What is stored cannot be read.
        """
        path = self.base_path.joinpath(*key.path)
        if partition_key is not None:
            path = path / partition_directory(_partition_text(partition_key))
        return _content(read_artifact(path.with_name(path.name + self.extension)))

    def private_path(self, kind: str, name: str, partition_key: str | None) -> Path:
        """Return where something private that is no asset rests."""
        path = self.base_path / kind / name
        return path if partition_key is None else path / partition_directory(_partition_text(partition_key))

    def record_refusal(self, key: dg.AssetKey, partition_key: str | None, run_id: str, failed: list[str]) -> None:
        """Add a refusal to the private history of a release."""
        path = self._refusals_path(key)
        make_private_directory(path.parent)
        entry = {
            "refused_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "partition": partition_key,
            "run_id": run_id,
            "failed": failed,
        }
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE_MODE)
        with os.fdopen(descriptor, "w") as file:
            # A line of its own, whatever a process that was cut off left behind.
            file.write("\n" + json.dumps(entry))

    def refusal_history(self, key: dg.AssetKey, partition_key: str | None) -> list[tuple[str, list[str]]]:
        """Return when a release was refused and by which conditions, run by run; a damaged line is one of its own."""
        path = self._refusals_path(key)
        if not path.exists():
            return []
        by_run: dict[str, tuple[str, list[str]]] = {}
        for number, line in enumerate(filter(None, path.read_text(errors="replace").splitlines())):
            try:
                entry = json.loads(line)
                names, moment = [str(name) for name in entry["failed"]], str(entry["refused_at"])
                if entry["partition"] == partition_key:
                    _, failed = by_run.setdefault(entry["run_id"], (moment, []))
                    failed += [name for name in names if name not in failed]
            except (ValueError, KeyError, TypeError):
                by_run[f"damaged line {number}"] = ("unknown", ["the record of this refusal is damaged"])
        return list(by_run.values())

    def _refusals_path(self, key: dg.AssetKey) -> Path:
        return self.base_path / REFUSALS_DIRECTORY / ("__".join(key.path) + ".jsonl")


class PrivateParquetIOManager(dg.ConfigurableIOManagerFactory[PrivateTables]):
    """Private Parquet storage for tables and results between the stages."""

    base_path: str = Field(default=DEFAULT_PRIVATE_PATH, description="Private local directory.")

    def create_io_manager(self, context: dg.InitResourceContext) -> PrivateTables:  # noqa: ARG002 - Dagster's signature
        """Open the storage."""
        return PrivateTables(self.base_path)


def guarded_input_manager(io_manager_key: str, private_path: str) -> dg.InputManagerDefinition:
    """Return an input manager that loads by the IO manager of another asset, with the guard around it."""

    @dg.input_manager(required_resource_keys={io_manager_key})
    def load_guarded(context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        io_manager = getattr(context.resources, io_manager_key)
        what = f"Loading {context.asset_key.to_user_string()}"
        return call_guarded(lambda: io_manager.load_input(context), Path(private_path).absolute(), what)

    return load_guarded


def guarded_partition_input_manager(io_manager_key: str, private_path: str) -> dg.InputManagerDefinition:
    """Return an input manager for checks: of an asset with partitions it loads the one that the run is about.

    Dagster would load them all: the step of a check has no partitions, whatever the asset has.
    """

    @dg.input_manager(required_resource_keys={io_manager_key})
    def load_guarded(context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        io_manager = getattr(context.resources, io_manager_key)
        what = f"Loading {context.asset_key.to_user_string()}"
        return call_guarded(lambda: io_manager.load_input(_of_the_run(context)), Path(private_path).absolute(), what)

    return load_guarded


def _of_the_run(context: dg.InputContext) -> dg.InputContext:
    if not context.has_asset_partitions:
        return context
    partitions = context.asset_partitions_def
    partition_key = context.partition_key if context.has_partition_key else None
    keys = partitions.get_partition_keys(dynamic_partitions_store=context.instance)
    if partition_key is None or partition_key not in keys:
        raise InvalidSettingError(
            f"{context.asset_key.to_user_string()} has partitions, and the run is about "
            f"{'none of them' if partition_key is None else f'{partition_key!r}, which is none of them'}. Nothing was "
            "checked; run the check together with the asset, for one partition."
        )
    of_the_run = copy.copy(context)
    of_the_run._asset_partitions_subset = partitions.subset_with_partition_keys([partition_key])
    return of_the_run


class ReleaseStore(dg.ConfigurableResource[Any]):
    """The directory that releases leave from."""

    base_path: str = Field(default=DEFAULT_RELEASE_PATH, description="Directory of the releases.")

    def directory(self, release: str, stage: str, partition_key: str | None) -> Path:
        """Return the directory that holds the releases of one table, and of one partition if it has partitions."""
        path = Path(self.base_path).absolute() / release / stage
        return path if partition_key is None else path / partition_directory(_partition_text(partition_key))


def private_resources(private_path: str, upstream: Sequence[UpstreamAsset]) -> dict[str, Any]:
    """Return the private storage, and what loads upstream assets with the guard around it.

    The same objects for the same directory: Dagster merges definitions only if they share resources.
    """
    return {"private_tables": _private_tables(private_path)} | {
        asset.input_manager_key: _guarded_input_manager(asset.io_manager_key, private_path) for asset in upstream
    }


def partition_input_managers(private_path: str, assets: Sequence[UpstreamAsset]) -> dict[str, Any]:
    """Return what loads assets for checks, partition by partition, with the guard around it."""
    return {
        asset.partition_input_manager_key: _guarded_partition_input_manager(asset.io_manager_key, private_path)
        for asset in assets
    }


def release_resources(release_path: str) -> dict[str, Any]:
    """Return the directory that releases leave from, the same object for the same directory."""
    return {"release_store": _release_store(release_path)}


@cache
def _private_tables(private_path: str) -> PrivateParquetIOManager:
    return PrivateParquetIOManager(base_path=private_path)


@cache
def _release_store(release_path: str) -> ReleaseStore:
    return ReleaseStore(base_path=release_path)


@cache
def _guarded_input_manager(io_manager_key: str, private_path: str) -> dg.InputManagerDefinition:
    return guarded_input_manager(io_manager_key, private_path)


@cache
def _guarded_partition_input_manager(io_manager_key: str, private_path: str) -> dg.InputManagerDefinition:
    return guarded_partition_input_manager(io_manager_key, private_path)


def partition_directory(partition: str) -> str:
    """Return a directory name for a partition key: one for each, and none that leads elsewhere."""
    return quote(partition, safe="").replace(".", "%2E")


def _partition_text(partition_key: str) -> str:
    """Write the key as UPathIOManager does: the keys of several dimensions in the order of the dimensions' names."""
    if not isinstance(partition_key, dg.MultiPartitionKey):
        return partition_key
    return "/".join(key for _, key in sorted(partition_key.keys_by_dimension.items()))


def _content(artifact: Artifact) -> pd.DataFrame | Artifact:
    return artifact.frames[TABLE_KIND] if artifact.kind == TABLE_KIND else artifact
