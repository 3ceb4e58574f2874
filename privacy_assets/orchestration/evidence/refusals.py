"""Runs in which a release was refused, from the records of the instance and the private history.

Both are used, because either can be lost: the history with its directory, the events with their run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import dagster as dg

from privacy_assets.orchestration.dagster_internals import PARTITION_NAME_TAG, AssetCheckExecutionRecord, check_history
from privacy_assets.orchestration.private.resources import (
    DAMAGED_REFUSAL,
    REFUSALS_DIRECTORY,
    PrivateParquetIOManager,
    RecordedRefusal,
    RefusalEntry,
)
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.shown.metadata import REFUSES, VERDICTS
from privacy_assets.release.register import RecordedRun
from privacy_assets.storage.histories import read_history

_PAGE = 500


@dataclass
class RefusedRun:
    """A run in which blocking checks failed: the reason, their names, and the time (seconds since 1970)."""

    reasons: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    at: float = 0.0
    partition: str | None = None


def refused_runs(
    instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey], most_evaluations: int | None = None
) -> dict[str, RefusedRun]:
    """Return the runs in which a check of severity ERROR failed, oldest failure first.

    ``keys`` are the blocking checks that enforce the policy on one side of a release; at most
    ``most_evaluations`` of each are read. Results reported by hand, without a known run, do not count.
    """
    records = [record for key in keys for record in _evaluations(instance, key, most_evaluations)]
    refused: dict[str, RefusedRun] = {}
    for record in sorted(records, key=lambda each: each.id):
        evaluation = record.evaluation
        # A check that is only planned has no evaluation yet.
        if record.event is None or not isinstance(evaluation, dg.AssetCheckEvaluation) or evaluation.passed:
            continue
        made_by = instance.get_run_by_id(record.run_id) if evaluation.severity == dg.AssetCheckSeverity.ERROR else None
        if made_by is not None:
            run = refused.setdefault(record.run_id, RefusedRun(partition=made_by.tags.get(PARTITION_NAME_TAG)))
            run.reasons.append(evaluation.description or evaluation.check_name)
            run.failed += [name for name in _conditions(evaluation) if name not in run.failed]
            run.at = max(run.at, record.event.timestamp)
    return refused


def refusals_before(
    storage: Storage, keys: Sequence[dg.AssetCheckKey], key: dg.AssetKey
) -> tuple[RecordedRefusal, ...]:
    """Return the refusals of a release, or of one of its partitions, one per run, oldest first.

    Refusals at an unknown time come first.
    """
    by_run = storage.private_tables.refusal_history(key, storage.partition_key)
    for run_id, run in refused_runs(storage.instance, keys).items():
        if run_id not in by_run and storage.partition_key in (None, run.partition):
            moment = datetime.fromtimestamp(run.at, UTC).isoformat(timespec="microseconds")
            by_run[run_id] = RecordedRefusal(moment, tuple(run.failed))
    # A time begins with a digit.
    in_order = sorted(by_run.values(), key=lambda each: each.refused_at if each.refused_at[:1].isdigit() else "")
    return tuple(in_order)


def every_refusal(private_tables: PrivateParquetIOManager) -> Iterator[RecordedRun]:
    """Yield the refused runs of every release whose history is in a private directory; a damaged line counts."""
    directory = private_tables.base_path / REFUSALS_DIRECTORY
    for path in sorted(directory.glob("*.jsonl")):
        release, _, stage = path.stem.rpartition("__")
        side = stage.removesuffix("_release")
        for entry in read_history(path, RefusalEntry.of):
            partition = None if entry is None or entry.partition is None else str(entry.partition)
            refusal = entry or DAMAGED_REFUSAL
            yield RecordedRun(release, side, partition, refusal.refused_at, refusal.failed)


def _evaluations(
    instance: dg.DagsterInstance, key: dg.AssetCheckKey, most: int | None
) -> Iterator[AssetCheckExecutionRecord]:
    cursor, n_seen = None, 0
    while most is None or n_seen < most:
        limit = _PAGE if most is None else min(_PAGE, most - n_seen)
        page = check_history(instance, key, limit=limit, cursor=cursor)
        yield from page
        if len(page) < limit:
            return
        cursor, n_seen = page[-1].id, n_seen + len(page)


def _conditions(evaluation: dg.AssetCheckEvaluation) -> list[str]:
    """Return the names of the failed conditions: the check itself, or those in the table of the gate's check."""
    table = evaluation.metadata.get(VERDICTS)
    if not isinstance(table, dg.TableMetadataValue):
        return [evaluation.check_name]
    failed = [
        each.data for each in table.records if not each.data.get("passed") and each.data.get("if_it_fails") == REFUSES
    ]
    return [str(each.get("condition")).replace(" ", "_") for each in failed]
