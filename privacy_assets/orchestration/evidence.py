"""Gather what the gate may know: what lies in storage now, and what Dagster recorded when it was made."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import pandas as pd
from dagster._core.definitions.data_version import (
    DATA_VERSION_TAG,
    INPUT_DATA_VERSION_TAG_PREFIX,
)

from privacy_assets.orchestration.resources import PrivateTables
from privacy_assets.orchestration.settings import ReleaseSettings, Synthesis
from privacy_assets.tables.artifact import Artifact
from privacy_assets.tables.fingerprint import fingerprint
from privacy_assets.tables.gate import AssessmentEvidence, Evidence, TableEvidence
from privacy_assets.tables.mpucc import MpuccAssessment
from privacy_assets.tables.policy import METRICS, MPUCC

STAGES_ASSESSED = ("original", "control", "preprocessed")
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)


def gather_evidence(
    release: ReleaseSettings,
    instance: dg.DagsterInstance,
    private_tables: PrivateTables,
    partition_key: str | None,
) -> tuple[Evidence, pd.DataFrame | None, str]:
    """Gather the evidence about the synthetic table of a release.

    Returns
    -------
    evidence : Evidence
        For `verdicts`.
    table : DataFrame or None
        The table at hand; None when it cannot be read.
    fingerprint : str
        Its fingerprint; empty when it cannot be read.
    """
    stages = {
        stage: _recorded(instance, release.key(stage), partition_key) for stage in (*STAGES_ASSESSED, "synthetic")
    }
    table, content = _stored_table(private_tables, release.key("synthetic"), partition_key)
    tables = {
        stage: TableEvidence(
            digest=content if stage == "synthetic" else recorded.version,
            recorded_digest=recorded.version,
            run_id=recorded.run_id,
            made_of={
                other: version
                for other in STAGES_ASSESSED
                if (version := recorded.input_versions.get(release.key(other).to_user_string())) is not None
            },
        )
        for stage, recorded in stages.items()
    }
    assessment = _assessment_evidence(release, instance, private_tables, partition_key)
    evidence = Evidence(
        stage="synthetic",
        columns=() if table is None else tuple(table.columns),
        tables=tables,
        assessments={} if assessment is None else {MPUCC: assessment},
        declared_precisions=release.contract.precisions,
        made_of=("original",) if isinstance(release.synthetic, Synthesis) else (),
    )
    return evidence, table, content or ""


def metrics_of(assessment: MpuccAssessment) -> dict[str, float | None]:
    """Return every figure of an assessment that a policy can limit."""
    known: dict[str, Any] = dict(assessment.scores)
    if assessment.control is not None:
        known |= {name: getattr(assessment.control, name) for name in METRICS if hasattr(assessment.control, name)}
    return {name: None if known.get(name) is None else float(known[name]) for name in METRICS}


class _Recorded:
    """The latest materialization of an asset, as the instance knows it."""

    def __init__(self, instance: dg.DagsterInstance, key: dg.AssetKey, partition_key: str | None) -> None:
        wanted = key if partition_key is None else dg.AssetRecordsFilter(key, asset_partitions=[partition_key])
        records = instance.fetch_materializations(wanted, limit=1).records
        materialization = records[0].asset_materialization if records else None
        tags: Mapping[str, str] = (materialization.tags if materialization else None) or {}
        self.version = tags.get(DATA_VERSION_TAG)
        # A materialization that was reported by hand has no run; a forged run id is of no run that the instance knows.
        run_id = records[0].run_id if records else None
        self.run_id = run_id if run_id and instance.has_run(run_id) else None
        self.input_versions = {
            tag.removeprefix(f"{INPUT_DATA_VERSION_TAG_PREFIX}/"): version
            for tag, version in tags.items()
            if tag.startswith(INPUT_DATA_VERSION_TAG_PREFIX)
        }


_recorded = _Recorded


def _stored_table(
    private_tables: PrivateTables, key: dg.AssetKey, partition_key: str | None
) -> tuple[pd.DataFrame | None, str | None]:
    try:
        table = private_tables.load(key, partition_key)
        return (table, fingerprint(table)) if isinstance(table, pd.DataFrame) else (None, None)
    except UNREADABLE:
        return None, None


def _assessment_evidence(
    release: ReleaseSettings,
    instance: dg.DagsterInstance,
    private_tables: PrivateTables,
    partition_key: str | None,
) -> AssessmentEvidence | None:
    key = release.key(MPUCC)
    recorded = _recorded(instance, key, partition_key)
    try:
        artifact = private_tables.load(key, partition_key)
        if not isinstance(artifact, Artifact):
            return None
        assessment = MpuccAssessment.from_artifact(artifact)
        return AssessmentEvidence(
            digest=artifact.digest,
            recorded_digest=recorded.version,
            run_id=recorded.run_id,
            made_of=artifact.made_of,
            metrics=metrics_of(assessment),
            settings=assessment.settings,
        )
    except UNREADABLE:
        return None
