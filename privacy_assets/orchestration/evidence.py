"""Gather what the gate may know: what lies in storage now, and what Dagster recorded when it was made."""

from typing import Any

import dagster as dg
import pandas as pd

from privacy_assets.orchestration.recorded import Recorded
from privacy_assets.orchestration.resources import PrivateTables
from privacy_assets.orchestration.settings import ReleaseSettings, Synthesis
from privacy_assets.tables.artifact import Artifact
from privacy_assets.tables.errors import ContractError, InvalidTableError
from privacy_assets.tables.fingerprint import fingerprint
from privacy_assets.tables.gate import STAGES_ASSESSED, AssessmentEvidence, Evidence, TableEvidence
from privacy_assets.tables.mpucc import MpuccAssessment
from privacy_assets.tables.policy import METRICS, MPUCC

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
    stages = (*STAGES_ASSESSED, "synthetic", *(["source"] if release.source is not None else []))
    recorded = {stage: Recorded(instance, release.key(stage), partition_key) for stage in stages}
    table, content = _stored_table(private_tables, release.key("synthetic"), partition_key)
    tables = {
        stage: TableEvidence(
            digest=content if stage == "synthetic" else each.version,
            recorded_digest=each.version,
            run_id=each.run_id,
            made_of=each.made_of,
        )
        for stage, each in recorded.items()
    }
    assessment = _assessment_evidence(release, instance, private_tables, partition_key)
    evidence = Evidence(
        stage="synthetic",
        columns=() if table is None else tuple(table.columns),
        tables=tables,
        assessments={} if assessment is None else {MPUCC: assessment},
        declared_precisions=release.contract.precisions,
        lineage=_lineage(release),
        keeps_contract=table is not None and _keeps_contract(release, table, content),
        made_with={stage: recorded[stage].made_with for stage in ("original", "synthetic")},
    )
    return evidence, table, content or ""


def _lineage(release: ReleaseSettings) -> dict[str, tuple[str, ...]]:
    """Say what each table must have been made of."""
    lineage: dict[str, tuple[str, ...]] = {}
    if isinstance(release.synthetic, Synthesis):
        lineage["synthetic"] = ("original",)
    if release.source is not None:
        lineage |= {"original": ("source",), "control": ("source",)}
    return lineage


def _keeps_contract(release: ReleaseSettings, table: pd.DataFrame, content: str | None) -> bool:
    """Ask the contract of today, which may not be the one that the table was admitted by."""
    try:
        return fingerprint(release.contract.admit_synthetic(table)) == content
    except (ContractError, InvalidTableError):
        return False


def metrics_of(assessment: MpuccAssessment) -> dict[str, float | None]:
    """Return every figure of an assessment that a policy can limit."""
    known: dict[str, Any] = dict(assessment.scores)
    if assessment.control is not None:
        known |= {name: getattr(assessment.control, name) for name in METRICS if hasattr(assessment.control, name)}
    return {name: None if known.get(name) is None else float(known[name]) for name in METRICS}


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
    recorded = Recorded(instance, key, partition_key)
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
