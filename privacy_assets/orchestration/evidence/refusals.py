"""Runs in which a release was refused, from the records of the instance and the private history.

Both are used, because either can be lost: the history with its directory, the events with their run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import dagster as dg

from privacy_assets.orchestration.dagster_internals import PARTITION_NAME_TAG, AssetCheckExecutionRecord, check_history
from privacy_assets.orchestration.private.resources import (
    REFUSALS_DIRECTORY,
    PrivateParquetIOManager,
    RecordedRefusal,
    recorded_refusals,
)
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.shown.metadata import FOUND, REFUSES, VERDICTS
from privacy_assets.release.manifest import WITHHELD
from privacy_assets.release.metrics import PRIVACY_BUDGET, SIDES
from privacy_assets.release.outcomes import in_words
from privacy_assets.release.register import RecordedRun

_PAGE = 500


@dataclass
class RefusedRun:
    """A run in which blocking checks failed: what was found by condition, and the time (seconds since 1970)."""

    failed: dict[str, str] = field(default_factory=dict)
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
            run.failed |= _conditions(evaluation)
            run.at = max(run.at, record.event.timestamp)
    return refused


def refusals_before(
    storage: Storage, keys: Sequence[dg.AssetCheckKey], key: dg.AssetKey
) -> tuple[RecordedRefusal, ...]:
    """Return the refusals of a release, or of one of its partitions, one per run, oldest first.

    The findings of both records are united. Refusals at an unknown time come first.
    """
    by_run = storage.private_tables.refusal_history(key, storage.partition_key)
    side = key.path[-1].removesuffix("_release")
    for run_id, run in refused_runs(storage.instance, keys).items():
        if storage.partition_key in (None, run.partition):
            moment = datetime.fromtimestamp(run.at, UTC).isoformat(timespec="microseconds")
            known = by_run.get(run_id, RecordedRefusal(moment, {}))
            by_run[run_id] = RecordedRefusal(known.refused_at, run.failed).with_found(known.failed)
    # Also what was recorded before the figures were withheld.
    said = [RecordedRefusal(each.refused_at, said_of(each.failed, storage.release, side)) for each in by_run.values()]
    # A time begins with a digit.
    in_order = sorted(said, key=lambda each: each.refused_at if each.refused_at[:1].isdigit() else "")
    return tuple(in_order)


def every_refusal(private_tables: PrivateParquetIOManager) -> Iterator[RecordedRun]:
    """Yield the refused runs of every release whose history is in a private directory; a damaged line counts."""
    directory = private_tables.base_path / REFUSALS_DIRECTORY
    for path in sorted(directory.glob("*.jsonl")):
        release, _, stage = path.stem.rpartition("__")
        side = stage.removesuffix("_release")
        for (partition, _), refusal in recorded_refusals(path).items():
            yield RecordedRun(release, side, partition, refusal.refused_at, refusal.found)


def said_of(failed: Mapping[str, str], release: ReleaseSettings, side: str) -> dict[str, str]:
    """Return what a later release and the register say of failed conditions: no figure, if it withholds figures."""
    if not withholds_figures(release, side):
        return dict(failed)
    return {name: f"not met, the finding is {WITHHELD}: {in_words(name)}" for name in failed}


def withholds_figures(release: ReleaseSettings, side: str) -> bool:
    """Return whether what a side publishes has no figures that were computed on the people's records."""
    return side == SIDES[PRIVACY_BUDGET] and not release.budget.publish_figures


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


def _conditions(evaluation: dg.AssetCheckEvaluation) -> dict[str, str]:
    """Return what was found by failed condition: of the check itself, or those in the table of the gate's check."""
    table = evaluation.metadata.get(VERDICTS)
    if not isinstance(table, dg.TableMetadataValue):
        return {evaluation.check_name: evaluation.description or evaluation.check_name}
    failed = [
        each.data for each in table.records if not each.data.get("passed") and each.data.get("if_it_fails") == REFUSES
    ]
    return {str(each.get("condition")).replace(" ", "_"): str(each.get(FOUND)) for each in failed}
