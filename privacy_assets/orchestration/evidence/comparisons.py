"""How many candidate releases were compared before a release, from the private history and the records of the instance.

As for refusals, either record can be lost: so both are used.
"""

import json
import os
from pathlib import Path

import dagster as dg

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager
from privacy_assets.setting_checks import is_integer
from privacy_assets.storage.durable_files import PRIVATE_FILE_MODE, make_private_directory

COMPARISONS_DIRECTORY = "comparisons"
COMPARED = "privacy_assets/candidates_compared"
_PAGE = 100


def record_comparison(
    private_tables: PrivateParquetIOManager, key: dg.AssetKey, partition_key: str | None, run_id: str, n_compared: int
) -> None:
    """Add the candidates that a run made to the private history of comparisons."""
    path = _path(private_tables, key)
    if path.exists() and not path.is_file():
        raise InvalidSettingError(
            f"{str(path)!r} is not a file, so this comparison could not be added to the history in it. Nothing was "
            "stored. Move it away."
        )
    make_private_directory(path.parent)
    entry = {"partition": partition_key, "run_id": run_id, "n_compared": n_compared}
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, PRIVATE_FILE_MODE)
    with os.fdopen(descriptor, "w") as file:
        # Begin a new line, even if an interrupted process left a partial one.
        file.write("\n" + json.dumps(entry))


def candidates_compared(
    instance: dg.DagsterInstance, private_tables: PrivateParquetIOManager, key: dg.AssetKey, partition_key: str | None
) -> int:
    """Count the candidates that were made for a release, or one of its partitions, in all comparisons.

    A damaged line of the history counts as one candidate.
    """
    by_run = _recorded_by_dagster(instance, key, partition_key)
    path = _path(private_tables, key)
    lines: list[str] = []
    if path.exists():
        try:
            lines = path.read_text(errors="replace").splitlines()
        except OSError:
            lines = ["damaged"]
    for number, line in enumerate(filter(None, lines)):
        try:
            entry = json.loads(line)
            n_compared, run_id, partition = entry["n_compared"], str(entry["run_id"]), entry["partition"]
            if not is_integer(n_compared, 0):
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            by_run[f"damaged line {number}"] = 1
            continue
        if partition == partition_key:
            by_run[run_id] = max(by_run.get(run_id, 0), n_compared)
    return sum(by_run.values())


def _recorded_by_dagster(instance: dg.DagsterInstance, key: dg.AssetKey, partition_key: str | None) -> dict[str, int]:
    wanted = key if partition_key is None else dg.AssetRecordsFilter(key, asset_partitions=[partition_key])
    by_run: dict[str, int] = {}
    cursor, has_more = None, True
    while has_more:
        page = instance.fetch_materializations(wanted, limit=_PAGE, cursor=cursor)
        for record in page.records:
            metadata = record.asset_materialization.metadata if record.asset_materialization else {}
            counted = metadata.get(COMPARED)
            if isinstance(counted, dg.IntMetadataValue) and is_integer(counted.value, 0) and record.run_id:
                by_run[record.run_id] = max(by_run.get(record.run_id, 0), counted.value)
        cursor, has_more = page.cursor, page.has_more
    return by_run


def _path(private_tables: PrivateParquetIOManager, key: dg.AssetKey) -> Path:
    return private_tables.private_path(COMPARISONS_DIRECTORY, "__".join(key.path) + ".jsonl", None)
