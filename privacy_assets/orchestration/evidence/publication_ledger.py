"""The private record of publications, which survives wiped Dagster events and moved releases.

A line is added after a release has appeared. If the process ends between the two, the next release of the same table
adds the line. A damaged line refuses the release, because its content is unknown.
"""

import json
import os
from pathlib import Path

import dagster as dg

from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.private.recorded import Publication
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager
from privacy_assets.release.files import RELEASE_NAME
from privacy_assets.release.manifest import DamagedManifestError, parse_manifest, read_manifest_bytes
from privacy_assets.storage.durable_files import PRIVATE_FILE_MODE, make_private_directory

DIRECTORY = "publications"


def record_publications(
    private_tables: PrivateParquetIOManager, key: dg.AssetKey, partition_key: str | None, directory: Path
) -> None:
    """Add every release in a directory that is not in the record yet.

    Parameters
    ----------
    private_tables : PrivateParquetIOManager
        Path of the record.
    key : AssetKey
        The release asset, such as ``people/anonymized_release``.
    partition_key : str or None
        Its partition.
    directory : Path
        The releases of this table, or of this partition.
    """
    known = {each.directory for each in recorded_publications(private_tables, key)}
    lines = []
    for path in sorted(directory.glob("*")):
        if RELEASE_NAME.fullmatch(path.name) and path not in known:
            try:
                manifest = parse_manifest(read_manifest_bytes(path))
            except (OSError, DamagedManifestError):
                continue  # Code that depends on an unreadable release reports it.
            entry = {
                "fingerprint": manifest["fingerprint"],
                "directory": str(path),
                "partition": None if partition_key is None else str(partition_key),
                "run_id": manifest["run_id"],
            }
            lines.append("\n" + json.dumps(entry))
    if lines:
        path = _path(private_tables, key)
        make_private_directory(path.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, PRIVATE_FILE_MODE)
        with os.fdopen(descriptor, "w") as file:
            file.write("".join(lines))
            file.flush()
            os.fsync(file.fileno())


def recorded_publications(private_tables: PrivateParquetIOManager, key: dg.AssetKey) -> list[Publication]:
    """Return the recorded publications of a release asset, of all its partitions.

    Raises
    ------
    InvalidTableError
        If the record is damaged.
    """
    path = _path(private_tables, key)
    if not path.exists():
        return []
    try:
        lines = path.read_text().splitlines() if path.is_file() else [""]
        entries = [json.loads(line) for line in lines if line or not path.is_file()]
        return [
            Publication(str(each["fingerprint"]), Path(each["directory"]), str(each["run_id"]), each["partition"])
            for each in entries
        ]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise InvalidTableError(
        f"{str(path)!r}, the record of what {key.to_user_string()} published, is damaged. Attackers may have releases "
        "that it listed. Restore it from a backup, or rebuild it from the existing releases. Nothing was "
        "assessed."
    )


def _path(private_tables: PrivateParquetIOManager, key: dg.AssetKey) -> Path:
    return private_tables.private_path(DIRECTORY, "__".join(key.path) + ".jsonl", None)
