"""All tables that another release of this project has ever published, because an attacker may have all of them.

A later publication does not withdraw an earlier one. So all publications count that Dagster recorded or that are in
the directory of the releases, regardless of their names and times.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.evidence.publication_ledger import recorded_publications
from privacy_assets.orchestration.private.recorded import Publication, publications, require_alike_partitions
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.settings.anonymized import OtherReleaseSettings
from privacy_assets.reidentification.other_releases import OtherRelease, is_part_of
from privacy_assets.release.files import read_anonymized_release
from privacy_assets.release.manifest import MANIFEST_FILE, RELEASE_NAME, DamagedManifestError, read_manifest
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.storage.fingerprint import fingerprint

SIDE = "anonymized"
SHOWN_DIGITS = 12
MOST_SHOWN = 5


class Published(NamedTuple):
    """A published table of another release that its current asset does not cover, by its manifest.

    ``stage`` is its name for the evidence.
    """

    stage: str
    fingerprint: str
    run_id: str
    release: OtherRelease


def published_besides(other: OtherReleaseSettings, current: Anonymization, storage: Storage) -> tuple[Published, ...]:
    """Return every publication of another release of this project that its current asset does not cover.

    Tables listed as withdrawn do not count. ``storage`` is the storage of the assessed release.
    """
    instance, store, partition_key = storage.instance, storage.release_store, storage.partition_key
    assert other.release is not None  # noqa: S101 - only releases of this project have an asset
    require_alike_partitions(instance, dg.AssetKey([other.release, SIDE]), partition_key)
    key = dg.AssetKey([other.release, f"{SIDE}_release"])
    directory = store.directory(other.release, SIDE, partition_key)
    recorded = [
        each
        for each in (*publications(instance, key), *recorded_publications(storage, key))
        # A publication from before or after a change of partitions also covers these people.
        if partition_key is None or each.partition in (None, partition_key)
    ]
    written = _manifests(directory)
    if partition_key is None:
        # Publications from a time with partitions, if any.
        written |= {path: manifest for each in directory.glob("*/") for path, manifest in _manifests(each).items()}
    else:
        written |= _manifests(store.directory(other.release, SIDE, None))
    written |= dict(_recorded_elsewhere(recorded, directory))
    contents = {manifest["fingerprint"] for manifest in written.values()}
    lost = [each for each in recorded if each.fingerprint not in contents and other.counts(each.fingerprint)]
    if lost:
        raise InvalidTableError(_how_to_bring_back(other, lost, directory))
    return tuple(_known_besides(other, current, written))


def _known_besides(
    other: OtherReleaseSettings, current: Anonymization, written: Mapping[Path, Mapping[str, Any]]
) -> Iterator[Published]:
    now = (fingerprint(current.table), canonical_json(current.model.to_json()))
    seen = {now}
    for path, manifest in written.items():
        content = manifest["fingerprint"]
        described = (content, canonical_json(manifest["figures"]["model"]))
        if described in seen or not other.counts(content):
            continue
        seen.add(described)
        table, model, quasi_identifiers = read_anonymized_release(path, max_bytes=None)
        name = content[:SHOWN_DIGITS]
        release = OtherRelease(
            table,
            other.key,
            model,
            f"{other.name} (published as {name})",
            quasi_identifiers if other.quasi_identifiers is None else other.quasi_identifiers,
            other.hierarchies,
        )
        if not is_part_of(release, current):
            stage = f"{other.published_stage}_{name}"
            several = sum(one == content for one, _ in seen) > 1
            yield Published(f"{stage}_{len(seen)}" if several else stage, content, str(manifest["run_id"]), release)


def _manifests(directory: Path) -> dict[Path, dict[str, Any]]:
    """Return the manifests in the directory of the releases; other files there are not releases."""
    paths = sorted(path for path in directory.glob("*") if RELEASE_NAME.fullmatch(path.name))
    found = {path: _manifest(path) for path in paths}
    readable = {path: manifest for path, manifest in found.items() if manifest is not None}
    if len(readable) == len(found):
        return readable
    raise InvalidTableError(
        f"Some releases in {str(directory)!r} cannot be read: {len(found) - len(readable)} have a missing or damaged "
        f"{MANIFEST_FILE}. Expected every release as it was written. Restore the releases, and move other directories "
        "elsewhere. Nothing was assessed."
    )


def _recorded_elsewhere(recorded: list[Publication], directory: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield publications in other directories, where definitions used to write their releases."""
    for publication in recorded:
        place = publication.directory
        manifest = None if place is None or place.parent == directory else _manifest(place)
        if place is not None and manifest is not None and manifest["fingerprint"] == publication.fingerprint:
            yield place, manifest


def _manifest(path: Path) -> dict[str, Any] | None:
    try:
        manifest = read_manifest(path)
        is_whole = bool(manifest["figures"]["model"])
    except (DamagedManifestError, KeyError):
        return None
    return manifest if is_whole else None


def _how_to_bring_back(other: OtherReleaseSettings, lost: list[Publication], directory: Path) -> str:
    contents = list(dict.fromkeys(each.fingerprint for each in lost))
    places = sorted({str(each.directory or directory) for each in lost})
    more = f" and {len(places) - MOST_SHOWN} more" if len(places) > MOST_SHOWN else ""
    return (
        f"Of the tables that the release {other.release!r} published, {len(contents)} cannot be read where they were "
        f"written, or were altered: {places[:MOST_SHOWN]}{more}. Anyone who has them may combine them with this "
        "release, so they must be assessed. Restore them; or, if nobody has them any more, declare that with "
        f"withdrawn={{fingerprint: reason and who decided}} for {contents[:MOST_SHOWN]}. Nothing was assessed."
    )
