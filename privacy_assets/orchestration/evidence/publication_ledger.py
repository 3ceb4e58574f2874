"""The private record of publications, which survives wiped Dagster events and moved releases.

A line is added after a release has appeared. If the process ends between the two, the next release of the same table
adds the line. A damaged line refuses the release, because its content is unknown.
"""

from pathlib import Path
from typing import Any

import dagster as dg

from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.private.recorded import Publication
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.release.files import RELEASE_NAME
from privacy_assets.release.manifest import DamagedManifestError, read_manifest
from privacy_assets.storage.histories import add_to_history, read_history

DIRECTORY = "publications"


def record_publications(storage: Storage, key: dg.AssetKey, directory: Path) -> None:
    """Add all releases of an asset in a directory that are not in the record yet."""
    known = {each.directory for each in recorded_publications(storage, key)}
    entries = []
    for path in sorted(directory.glob("*")):
        if RELEASE_NAME.fullmatch(path.name) and path not in known:
            try:
                manifest = read_manifest(path)
            except DamagedManifestError:
                continue  # Code that depends on an unreadable release reports it.
            partition = None if storage.partition_key is None else str(storage.partition_key)
            about = {"fingerprint": manifest["fingerprint"], "directory": str(path), "partition": partition}
            entries.append(about | {"run_id": manifest["run_id"]})
    if entries:
        history = storage.private_tables.history_path(DIRECTORY, key)
        add_to_history(history, entries, "this release", "Its record is missing.")


def recorded_publications(storage: Storage, key: dg.AssetKey) -> list[Publication]:
    """Return the recorded publications of a release asset, for all its partitions; refuse a damaged record."""
    path = storage.private_tables.history_path(DIRECTORY, key)
    entries = read_history(path, _read)
    found = [each for each in entries if each is not None]
    if len(found) == len(entries):
        return found
    raise InvalidTableError(
        f"{str(path)!r}, the record of what {key.to_user_string()} published, is damaged. Attackers may have releases "
        "that it listed. Restore it from a backup, or rebuild it from the existing releases. Nothing was "
        "assessed."
    )


def _read(entry: Any) -> Publication:
    return Publication(str(entry["fingerprint"]), Path(entry["directory"]), str(entry["run_id"]), entry["partition"])
