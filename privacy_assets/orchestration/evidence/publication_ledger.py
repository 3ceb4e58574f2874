"""The private record of what was published: it stays when the events of Dagster are wiped and releases are moved.

A line is added when a release has appeared. Where the process ended between the two, the next release of the same
table adds it. A damaged line refuses: what it recorded could be anything.
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
    """Add every release in a directory that the record does not have yet.

    Parameters
    ----------
    private_tables : PrivateParquetIOManager
        Where the record is.
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
                continue  # What cannot be read is said by whoever depends on it.
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
    """Return what the record has of a release asset, of all its partitions.

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
        f"{str(path)!r}, the record of what {key.to_user_string()} published, is damaged. What it had may be known to "
        "somebody. Restore it from a copy, or have somebody look at the releases and write it anew. Nothing was "
        "assessed."
    )


def _path(private_tables: PrivateParquetIOManager, key: dg.AssetKey) -> Path:
    return private_tables.private_path(DIRECTORY, "__".join(key.path) + ".jsonl", None)
