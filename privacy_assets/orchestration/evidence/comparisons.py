"""How many candidate releases were compared before a release, from the private history and the records of the instance.

As for refusals, either record can be lost: so both are used.
"""

from typing import Any

import dagster as dg

from privacy_assets.orchestration.private.histories import add_to_history, read_history
from privacy_assets.orchestration.private.recorded import all_records, of_partition
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager
from privacy_assets.setting_checks import is_integer

COMPARISONS_DIRECTORY = "comparisons"
COMPARED = "privacy_assets/candidates_compared"


def record_comparison(
    private_tables: PrivateParquetIOManager, key: dg.AssetKey, partition_key: str | None, run_id: str, n_compared: int
) -> None:
    """Add the candidates that a run made to the private history of comparisons."""
    path = private_tables.history_path(COMPARISONS_DIRECTORY, key)
    entry = {"partition": partition_key, "run_id": run_id, "n_compared": n_compared}
    add_to_history(path, [entry], "this comparison", "Nothing was stored.")


def candidates_compared(
    instance: dg.DagsterInstance, private_tables: PrivateParquetIOManager, key: dg.AssetKey, partition_key: str | None
) -> int:
    """Count the candidates that were made for a release, or one of its partitions, in all comparisons.

    A damaged line of the history counts as one candidate.
    """
    by_run = _recorded_by_dagster(instance, key, partition_key)
    entries = read_history(private_tables.history_path(COMPARISONS_DIRECTORY, key), _read)
    for partition, run_id, n_compared in filter(None, entries):
        if partition == partition_key:
            by_run[run_id] = max(by_run.get(run_id, 0), n_compared)
    return sum(by_run.values()) + entries.count(None)


def _read(entry: Any) -> tuple[str | None, str, int]:
    if not is_integer(entry["n_compared"], 0):
        raise ValueError
    return entry["partition"], str(entry["run_id"]), entry["n_compared"]


def _recorded_by_dagster(instance: dg.DagsterInstance, key: dg.AssetKey, partition_key: str | None) -> dict[str, int]:
    by_run: dict[str, int] = {}
    for record in all_records(instance.fetch_materializations, of_partition(key, partition_key)):
        metadata = record.asset_materialization.metadata if record.asset_materialization else {}
        counted = metadata.get(COMPARED)
        if isinstance(counted, dg.IntMetadataValue) and is_integer(counted.value, 0) and record.run_id:
            by_run[record.run_id] = max(by_run.get(record.run_id, 0), counted.value)
    return by_run
