"""The private record of publications, which survives wiped Dagster events and moved releases.

A line is added after a release has appeared. If the process ends between the two, the next release of the same table
adds the line. A damaged line refuses the release, because its content is unknown.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.private.recorded import Publication
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.release.manifest import RELEASE_NAME, DamagedManifestError, read_manifest
from privacy_assets.release.metrics import PRIVACY_BUDGET
from privacy_assets.setting_checks import is_integer
from privacy_assets.storage.histories import add_to_history, read_history

DIRECTORY = "publications"
STATED = ("population", "fits", "ledger")
"""What is recorded of the budget that a release states."""


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
            budget = manifest["figures"].get(PRIVACY_BUDGET)
            stated = {} if budget is None else {PRIVACY_BUDGET: {name: budget.get(name) for name in STATED}}
            entries.append(about | {"run_id": manifest["run_id"]} | stated)
    if entries:
        history = storage.private_tables.history_path(DIRECTORY, key)
        add_to_history(history, entries, "this release", "Its record is missing.")


def recorded_publications(storage: Storage, key: dg.AssetKey) -> list[Publication]:
    """Return the recorded publications of a release asset, for all its partitions; refuse a damaged record."""
    return _recorded(storage.private_tables.history_path(DIRECTORY, key))


def every_publication(storage: Storage, side: str) -> Iterator[Publication]:
    """Yield the recorded publications of a side of every release, for all partitions; refuse a damaged record."""
    for path in sorted((storage.private_tables.base_path / DIRECTORY).glob(f"*__{side}_release.jsonl")):
        yield from _recorded(path)


def published_budgets(storage: Storage) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield release and stated budget of the recorded publications of every release; refuse a damaged record."""
    for path in sorted((storage.private_tables.base_path / DIRECTORY).glob("*.jsonl")):
        release, _, _ = path.stem.rpartition("__")
        yield from ((release, each.budget) for each in _recorded(path) if each.budget is not None)


def _recorded(path: Path) -> list[Publication]:
    entries = read_history(path, _read)
    found = [each for each in entries if each is not None]
    if len(found) == len(entries):
        return found
    raise InvalidTableError(
        f"{str(path)!r}, a record of what was published, is damaged. Attackers may have releases that it listed. "
        "Restore it from a backup, or rebuild it from the existing releases. Nothing was assessed."
    )


def _read(entry: Any) -> Publication:
    budget = entry.get(PRIVACY_BUDGET)
    if budget is not None and not (isinstance(budget["population"], str) and is_integer(budget["fits"], 0)):
        raise ValueError
    directory = Path(entry["directory"])
    return Publication(str(entry["fingerprint"]), directory, str(entry["run_id"]), entry["partition"], budget)
