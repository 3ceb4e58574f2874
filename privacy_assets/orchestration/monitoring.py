"""Monitoring of a release between its runs: a schedule, drift of the source, alerts on refusals."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd

from privacy_assets.orchestration.dagster_internals import PARTITION_NAME_TAG, check_history
from privacy_assets.orchestration.evidence.decided import known_withdrawals
from privacy_assets.orchestration.evidence.refusals import refused_runs
from privacy_assets.orchestration.private.guard import guarded
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.settings.monitoring import AlertHook, MonitoringSettings, Refusal
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.stages import GATE_CHECK, PENDING_DIRECTORY, RESOURCES, storage_of
from privacy_assets.release import clock
from privacy_assets.release.approvals import APPROVAL_FILES
from privacy_assets.release.declaration import review_of
from privacy_assets.release.drift import measure_drift
from privacy_assets.release.manifest import MANIFEST_FILE, RELEASE_NAME, DamagedManifestError, is_sha256, read_manifest
from privacy_assets.release.withdrawals import Withdrawal, withdrawal_of
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact

DRIFT_CHECK = "source_has_not_drifted"
NOT_WITHDRAWN_CHECK = "release_is_not_withdrawn"
REVIEW_CHECK = "review_is_not_overdue"
MOST_EVALUATIONS = 500
MOST_ATTEMPTS = 3
DECISIONS_TAG = "privacy_assets/decisions"
"""Tag of the runs that the sensor of approvals starts: which decisions they were started for."""
NEWS_SECONDS = 3600
"""Refusals older than this at the first evaluation of a sensor are not reported."""
PROFILES_DIRECTORY = "profiles"


def release_schedule(
    name: str, job: Any, monitoring: MonitoringSettings, partitions: Any
) -> dg.ScheduleDefinition | None:
    """Build the schedule of a release; it runs the latest time partition, or all static partitions."""
    if monitoring.cron_schedule is None:
        return None
    about: dict[str, Any] = {
        "name": f"{name}_schedule",
        "job": job,
        "cron_schedule": monitoring.cron_schedule,
        "execution_timezone": monitoring.timezone,
    }
    if partitions is None:
        return dg.ScheduleDefinition(**about)

    @dg.schedule(**about)
    def schedule_partitions(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest]:
        keys = partitions.get_partition_keys(
            current_time=context.scheduled_execution_time, dynamic_partitions_store=context.instance
        )
        if isinstance(partitions, dg.TimeWindowPartitionsDefinition):
            keys = keys[-1:]
        return [dg.RunRequest(f"{context.scheduled_execution_time:%Y-%m-%d} {key}", partition_key=key) for key in keys]

    return schedule_partitions


def refusal_sensor(
    name: str, checks: Mapping[str, Sequence[dg.AssetCheckKey]], on_refusal: AlertHook
) -> dg.SensorDefinition:
    """Build the sensor that reports once each run in which the policy refused a side; it starts switched off.

    ``checks`` are the blocking checks of each side: the checks of its limits, which stop a run before the release
    begins, and the check of the gate.
    """

    @dg.sensor(name=f"{name}_refusals", minimum_interval_seconds=60)
    def tell_of_refusals(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        told: dict[str, list[str]] = json.loads(context.cursor) if context.cursor else {}
        since = 0.0 if context.cursor else time.time() - NEWS_SECONDS
        n_told = 0
        for side, keys in checks.items():
            refused = refused_runs(context.instance, keys, MOST_EVALUATIONS)
            # Refusals that are no longer in the history cannot appear again.
            before = [run_id for run_id in told.get(side, []) if run_id in refused]
            new = [run_id for run_id in refused if run_id not in before]
            for run_id in new:
                run = context.instance.get_run_by_id(run_id)
                if run is None or refused[run_id].at < since:
                    continue
                reason = "; ".join(refused[run_id].failed.values())
                on_refusal(context, Refusal(name, side, run_id, reason, run.tags.get(PARTITION_NAME_TAG)))
                n_told += 1
            told[side] = before + new
        context.update_cursor(json.dumps(told))
        return dg.SkipReason(f"{n_told} refusals were reported.")

    return tell_of_refusals


def approval_sensor(release: ReleaseSettings, private_path: str) -> dg.SensorDefinition:
    """Build the sensor that starts the release of what waits, once somebody decided on it; it starts switched off.

    For the same decisions and file of approvers, by which decisions hold, it starts at most `MOST_ATTEMPTS` runs, each
    after the one before has ended without the gate having decided. What the gate decided, also that the release still
    waits, is not asked again: the same decisions would have the same answer.
    """
    keys = {side: release.key(f"{side}_release") for side in release.sides}

    @dg.sensor(
        name=f"{release.name}_approvals",
        asset_selection=dg.AssetSelection.assets(*keys.values()),
        minimum_interval_seconds=60,
    )
    def release_what_was_decided(context: dg.SensorEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        requests, n_given_up, approvers = [], 0, b""
        with suppress(OSError):  # a run says what is wrong with the file
            approvers = b"" if release.approvers is None else release.approvers.read_bytes()
        for key in keys.values():
            root = Path(private_path) / PENDING_DIRECTORY / "__".join(key.path)
            for path in sorted(each.parent for each in root.rglob(MANIFEST_FILE) if is_sha256(each.parent.name)):
                decided = [str(each.relative_to(root)) for each in sorted(path.glob(APPROVAL_FILES))]
                known = "\n".join([*decided, hashlib.sha256(approvers).hexdigest()])
                of_these = {DECISIONS_TAG: hashlib.sha256(known.encode()).hexdigest()}
                runs = context.instance.get_run_records(dg.RunsFilter(tags=of_these)) if decided else []
                is_answered = not all(run.dagster_run.is_failure_or_canceled for run in runs) or _has_decided(
                    context.instance, key, [run.dagster_run.run_id for run in runs]
                )
                # A damaged manifest is written anew by the next run of the release.
                with suppress(DamagedManifestError):
                    partition = read_manifest(path)["partition"]
                    if decided and not is_answered and len(runs) < MOST_ATTEMPTS:
                        about = {"tags": of_these, "partition_key": partition, "asset_selection": [key]}
                        requests.append(dg.RunRequest(f"{of_these[DECISIONS_TAG]} {len(runs) + 1}", **about))
                    n_given_up += not is_answered and len(runs) >= MOST_ATTEMPTS
        given_up = f"{n_given_up} releases failed {MOST_ATTEMPTS} times before the gate decided: see their runs."
        return requests or dg.SkipReason(given_up if n_given_up else "Nothing was decided that no run has answered.")

    return release_what_was_decided


def _has_decided(instance: dg.DagsterInstance, key: dg.AssetKey, run_ids: Sequence[str]) -> bool:
    """Return whether the gate decided in one of some runs; a check that is only planned did not."""
    check = dg.AssetCheckKey(key, GATE_CHECK)
    records = check_history(instance, check, limit=MOST_EVALUATIONS, cursor=None) if run_ids else []
    return any(each.run_id in run_ids and isinstance(each.evaluation, dg.AssetCheckEvaluation) for each in records)


def drift_check(release: ReleaseSettings, limit: float) -> dg.AssetChecksDefinition:
    """Build the check that compares the source with that of the last release."""
    source = release.key("source")
    description = f"No column has drifted by more than {limit:g} from the source of the last release."
    spec = dg.AssetCheckSpec(DRIFT_CHECK, asset=source, description=description)

    @dg.multi_asset_check(name=f"{release.name}__drift_check", specs=[spec], required_resource_keys=RESOURCES)
    @guarded
    def source_has_not_drifted(context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        storage = storage_of(context, release)
        yield _drift_of(storage, storage.load("source", is_large=True), limit)

    return source_has_not_drifted


def published_checks(release: ReleaseSettings, side: str) -> dg.AssetChecksDefinition:
    """Build the checks of the newest published version of a side, which can be run at any time."""
    key = release.key(f"{side}_release")
    specs = [
        dg.AssetCheckSpec(
            NOT_WITHDRAWN_CHECK, asset=key, blocking=True, description="The newest version was not withdrawn."
        ),
        dg.AssetCheckSpec(REVIEW_CHECK, asset=key, description="The declared day of the next review has not passed."),
    ]

    @dg.multi_asset_check(
        name=f"{release.name}__{side}_release_checks", specs=specs, can_subset=True, required_resource_keys=RESOURCES
    )
    @guarded
    def checks_of_published(context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        storage = storage_of(context, release)
        directory = storage.release_store.directory(release.name, side, storage.partition_key)
        versions = sorted(path for path in directory.glob("*") if RELEASE_NAME.fullmatch(path.name))
        manifest = read_manifest(versions[-1]) if versions else None
        listed = known_withdrawals(storage)
        selected = {check.name for check in context.selected_asset_check_keys}
        if NOT_WITHDRAWN_CHECK in selected:
            yield _withdrawal_result(key, manifest, listed)
        if REVIEW_CHECK in selected:
            review = None if manifest is None else review_of(manifest.get("declaration", {}))
            is_overdue = review is not None and review < clock.today()
            found = "No review was declared." if review is None else f"It is to be reviewed by {review}."
            found += " That day has passed: look at the release again, then publish or withdraw it." * is_overdue
            warn = dg.AssetCheckSeverity.WARN
            yield dg.AssetCheckResult(
                check_name=REVIEW_CHECK, asset_key=key, passed=not is_overdue, severity=warn, description=found
            )

    return checks_of_published


def _withdrawal_result(
    key: dg.AssetKey, manifest: Mapping[str, Any] | None, listed: Sequence[Withdrawal]
) -> dg.AssetCheckResult:
    entry = None if manifest is None else withdrawal_of(manifest["digest"], listed)
    found = "Nothing has been released yet." if manifest is None else "The newest version was not withdrawn."
    if entry is not None:
        found = (
            f"The newest version, {entry.release}, was {entry.in_words}. Release again before anything is made of it."
        )
    return dg.AssetCheckResult(check_name=NOT_WITHDRAWN_CHECK, asset_key=key, passed=entry is None, description=found)


def keep_profile(storage: Storage, profile: Artifact) -> None:
    """Store the private profile of the source of a release."""
    write_artifact(_profile_path(storage), profile)


def _profile_path(storage: Storage) -> Path:
    return storage.private_tables.private_path(PROFILES_DIRECTORY, storage.release.name, storage.partition_key)


def _drift_of(storage: Storage, table: pd.DataFrame, limit: float) -> dg.AssetCheckResult:
    path, key = _profile_path(storage), storage.release.key("source")
    about: dict[str, Any] = {"check_name": DRIFT_CHECK, "asset_key": key, "severity": dg.AssetCheckSeverity.WARN}
    if not path.exists():
        return dg.AssetCheckResult(**about, passed=True, description="There is no release yet to compare with.")
    drift = measure_drift(read_artifact(path), table)
    moved = [column for column, distance in drift.distances.items() if distance > limit]
    changed = drift.columns_lost + drift.columns_added
    largest = sorted(drift.distances.items(), key=lambda item: -item[1])[:10]
    found = f"No column has drifted by more than {limit:g} since the last release."
    if moved or changed:
        found = (
            f"{len(moved)} columns have drifted by more than {limit:g} since the last release, and {len(changed)} were "
            "removed or added. If the change is intended, assess and release again."
        )
    return dg.AssetCheckResult(
        **about,
        passed=not moved and not changed,
        description=found,
        metadata={
            "score": float(drift.largest),
            "limit": float(limit),
            "records_before": drift.rows_before,
            "records_now": drift.rows_now,
            "columns_lost_or_added": changed,
            **{f"distance of {column}": float(distance) for column, distance in largest},
        },
    )
