"""What another release of this project has published: an attacker holds it, whatever its assets are today."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg

from privacy_assets.orchestration.anonymized_settings import OtherReleaseSettings
from privacy_assets.orchestration.recorded import last_content, require_alike_partitions
from privacy_assets.tables.anonymization import Anonymization
from privacy_assets.tables.errors import InvalidTableError
from privacy_assets.tables.fingerprint import fingerprint
from privacy_assets.tables.other_releases import OtherRelease, is_part_of
from privacy_assets.tables.release_files import read_anonymized_release
from privacy_assets.tables.release_verification import MANIFEST_FILE

SIDE = "anonymized"
RELEASE_DIRECTORY = re.compile(r"\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{12}")


class Published(NamedTuple):
    """The last table that another release has published, where its asset tells less.

    Attributes
    ----------
    fingerprint, run_id : str
        What the manifest records: the table, and the run that published it.
    release : OtherRelease
        For `assess_reidentification`.
    """

    fingerprint: str
    run_id: str
    release: OtherRelease


def published_besides(
    other: OtherReleaseSettings,
    current: Anonymization,
    release_store: Any,
    instance: dg.DagsterInstance,
    partition_key: str | None,
) -> Published | None:
    """Return what another release published last, unless its current asset tells as much.

    Raises
    ------
    InvalidTableError
        What was published last is not in its directory any more, or does not verify; or the other release has
        partitions and this one has none, or the other way round.
    """
    assert other.release is not None  # noqa: S101 - those that lie elsewhere have no asset that could move on
    directory = release_store.directory(other.release, SIDE, partition_key)
    require_alike_partitions(instance, dg.AssetKey([other.release, SIDE]), partition_key)
    last_version = last_content(instance, dg.AssetKey([other.release, f"{SIDE}_release"]), partition_key)
    written = _manifests(directory)
    contents = [manifest["fingerprint"] for _, manifest in written]
    if last_version is not None and last_version not in contents:
        raise InvalidTableError(
            f"The release {other.release!r} published a table that is not in {str(directory)!r} any more. Whoever has "
            "it may combine it with this release, so it must be assessed. Expected it there; put it back, or name "
            "where it lies with `directory` instead of `release`. Nothing was assessed."
        )
    if not written:
        return None
    last, manifest = written[-1]
    if contents[-1] == fingerprint(current.table) and manifest["figures"]["model"] == current.model.to_json():
        return None
    table, model, quasi_identifiers = read_anonymized_release(last)
    release = OtherRelease(
        table,
        other.key,
        model,
        f"{other.name} (last published)",
        quasi_identifiers if other.quasi_identifiers is None else other.quasi_identifiers,
        other.hierarchies,
    )
    return None if is_part_of(release, current) else Published(contents[-1], str(manifest["run_id"]), release)


def _manifests(directory: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Return what was published, the last one behind; what else lies there is none of it."""
    paths = sorted(path for path in directory.glob("*") if RELEASE_DIRECTORY.fullmatch(path.name) and path.is_dir())
    try:
        found = [(path, json.loads((path / MANIFEST_FILE).read_bytes())) for path in paths]
        if all(isinstance(manifest["fingerprint"], str) and manifest["figures"]["model"] for _, manifest in found):
            return found
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise InvalidTableError(
        f"What was published in {str(directory)!r} cannot be read: a {MANIFEST_FILE} is missing or damaged. Expected "
        "every release as it was written; put it back, or move what is none away. Nothing was assessed."
    )
