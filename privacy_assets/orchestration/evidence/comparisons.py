"""The number of candidate releases compared before a release, from the private history and the instance's records.

As for refusals, both are used, because either record can be lost.
"""

from pathlib import Path
from typing import Any

import dagster as dg

from privacy_assets.orchestration.private.recorded import all_records, of_partition
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.settings.options import OPTIONS
from privacy_assets.setting_checks import is_integer
from privacy_assets.storage.histories import add_to_history, read_history

COMPARISONS_DIRECTORY = "comparisons"
COMPARED = "privacy_assets/candidates_compared"


def record_comparison(storage: Storage, run_id: str, n_compared: int) -> None:
    """Add the candidates that a run made to the private history of comparisons."""
    entry = {"partition": storage.partition_key, "run_id": run_id, "n_compared": n_compared}
    add_to_history(_path(storage), [entry], "this comparison", "Nothing was stored.")


def candidates_compared(storage: Storage) -> int:
    """Count the candidates that were made for a release, or one of its partitions, in all comparisons.

    A damaged line of the history counts as one candidate.
    """
    by_run = _recorded_by_dagster(storage)
    entries = read_history(_path(storage), _read)
    for partition, run_id, n_compared in filter(None, entries):
        if partition == storage.partition_key:
            by_run[run_id] = max(by_run.get(run_id, 0), n_compared)
    return sum(by_run.values()) + entries.count(None)


def _read(entry: Any) -> tuple[str | None, str, int]:
    if not is_integer(entry["n_compared"], 0):
        raise ValueError
    return entry["partition"], str(entry["run_id"]), entry["n_compared"]


def _path(storage: Storage) -> Path:
    return storage.private_tables.history_path(COMPARISONS_DIRECTORY, storage.release.key(OPTIONS))


def _recorded_by_dagster(storage: Storage) -> dict[str, int]:
    by_run: dict[str, int] = {}
    wanted = of_partition(storage.release.key(OPTIONS), storage.partition_key)
    for record in all_records(storage.instance.fetch_materializations, wanted):
        metadata = record.asset_materialization.metadata if record.asset_materialization else {}
        counted = metadata.get(COMPARED)
        if isinstance(counted, dg.IntMetadataValue) and is_integer(counted.value, 0) and record.run_id:
            by_run[record.run_id] = max(by_run.get(record.run_id, 0), counted.value)
    return by_run
