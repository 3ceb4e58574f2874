"""The audit of a linkage method on the anonymized records: information without a limit."""

import dagster as dg

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.display.progress_bar import StageProgress
from privacy_assets.linkage.audit import audit_linkage
from privacy_assets.orchestration.private.guard import guarded
from privacy_assets.orchestration.private.recorded import MADE_WITH
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.shown.metadata import FOUND, score_metadata, settings_metadata
from privacy_assets.orchestration.stages import asset_arguments, progress_logger, stored_artifact
from privacy_assets.pipeline.settings.linkage import LINKAGE_AUDIT, LinkageAuditSettings
from privacy_assets.storage.fingerprint import kept_fingerprint


def linkage_audit_asset(release: ReleaseSettings, settings: LinkageAuditSettings) -> dg.AssetsDefinition:
    """Build the asset that links the anonymized records to the source, and audits the links."""
    stage, origin = release.anonymized_stage, release.source_of_anonymized

    @dg.asset(
        **asset_arguments(release, LINKAGE_AUDIT, kinds={"python"}),
        description="Links that a linkage method finds for the anonymized records, and whether it can know that they "
        "are right. For information only: no policy limits it, and the release does not depend on it.",
        ins={name: dg.AssetIn(release.key(name)) for name in (origin, stage)},
    )
    @guarded
    def linkage_audit_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        anonymization = Anonymization.from_artifact(inputs[stage])
        audit = audit_linkage(
            inputs[origin],
            anonymization,
            **settings.arguments,
            hierarchies=release.hierarchies,
            progress=progress_logger(context, StageProgress.in_words),
        )
        yield stored_artifact(
            audit.to_artifact(),
            {FOUND: audit.summary()} | score_metadata(audit.scores) | {MADE_WITH: settings_metadata(audit.settings)},
            {origin: kept_fingerprint(inputs[origin]), stage: inputs[stage].fingerprints["table"]},
        )

    return linkage_audit_stage
