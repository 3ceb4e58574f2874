"""What another release of this project has published: an attacker holds it, whatever its assets are today."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg

from privacy_assets.orchestration.anonymized_settings import OtherReleaseSettings
from privacy_assets.orchestration.recorded import Recorded
from privacy_assets.tables.anonymization import Anonymization
from privacy_assets.tables.errors import InvalidTableError
from privacy_assets.tables.other_releases import OtherRelease, is_part_of
from privacy_assets.tables.release_files import MANIFEST_FILE, read_anonymized_release

SIDE = "anonymized"
RELEASE_DIRECTORIES = "2*"


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
        What was published last is not in its directory any more, or does not verify.
    OSError, ValueError, KeyError
        Its manifest cannot be read.
    """
    assert other.release is not None  # noqa: S101 - those that lie elsewhere have no asset that could move on
    directory = release_store.directory(other.release, SIDE, partition_key)
    recorded = Recorded(instance, dg.AssetKey([other.release, f"{SIDE}_release"]), partition_key).version
    written = sorted(path for path in directory.glob(RELEASE_DIRECTORIES) if path.is_dir())
    if recorded is not None and not any(_manifest(path)["fingerprint"] == recorded for path in reversed(written)):
        raise InvalidTableError(
            f"The release {other.release!r} published a table that is not in {str(directory)!r} any more. Whoever has "
            "it may combine it with this release, so it must be assessed. Expected it there; put it back, or name "
            "where it lies with `directory` instead of `release`. Nothing was assessed."
        )
    if not written:
        return None
    content, run_id = (str(_manifest(written[-1])[name]) for name in ("fingerprint", "run_id"))
    table, model, quasi_identifiers = read_anonymized_release(written[-1])
    release = OtherRelease(
        table,
        other.key,
        model,
        f"{other.name} (last published)",
        quasi_identifiers if other.quasi_identifiers is None else other.quasi_identifiers,
        other.hierarchies,
    )
    return None if is_part_of(release, current) else Published(content, run_id, release)


def _manifest(directory: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((directory / MANIFEST_FILE).read_bytes())
    return manifest
