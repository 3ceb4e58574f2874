"""Content of the report in addition to the manifest: pictures, measured advice, history of refusals."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from privacy_assets.anonymization.class_rectangles import class_rectangles, columns_in_order
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.anonymization.withheld_records import note_on_tight_ends
from privacy_assets.mpucc.assess import MpuccAssessment
from privacy_assets.mpucc.column_changes import driving_columns, measure_column_changes
from privacy_assets.mpucc.preprocess import PreprocessedTables
from privacy_assets.orchestration.evidence.comparisons import candidates_compared
from privacy_assets.orchestration.evidence.evidence import UNREADABLE, Gathered
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager, RecordedRefusal
from privacy_assets.orchestration.settings.options import OPTIONS
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.shown.disclosure_pictures import excess_by_criterion, guessed_by_column
from privacy_assets.orchestration.shown.pictures import (
    as_markdown,
    classes_as_rectangles,
    columns_that_drive_the_risk,
    from_markdown,
    identified_by_size,
    information_loss_by_column,
    records_by_class_size,
)
from privacy_assets.orchestration.shown.reidentification_pictures import reidentification_curve
from privacy_assets.orchestration.shown.semantic_pictures import describe_risks, risk_distribution
from privacy_assets.orchestration.shown.utility_pictures import worth_of_figures
from privacy_assets.release.files import ReleaseRecord
from privacy_assets.release.gate import Verdict
from privacy_assets.release.metrics import DISCLOSURE, MPUCC, REIDENTIFICATION, SEMANTIC, UTILITY
from privacy_assets.release.report import Picture, Refusal, ReportMaterial
from privacy_assets.storage.artifact import Artifact

SECONDS_TO_MEASURE_CHANGES = 60.0
SECRETS = ("seed", "scale_digests")


def report_material(
    release: ReleaseSettings,
    side: str,
    gathered: Gathered,
    private_tables: PrivateParquetIOManager,
    partition_key: str | None,
    refusals: Sequence[RecordedRefusal],
) -> ReportMaterial:
    """Collect what the report of an admitted table shows in addition to its manifest."""
    changes, notes = None, []
    assessment = gathered.found.get(MPUCC)
    if assessment is not None:
        changes = _column_changes(release, assessment, gathered, private_tables, partition_key)
        if changes is None:
            notes.append(
                "The effect of dropping columns was not measured, because the assessed tables are no longer stored."
            )
    if UTILITY in gathered.found:
        notes.extend(gathered.found[UTILITY].notes)
    semantic = gathered.found.get(SEMANTIC)
    if semantic is not None:
        notes.extend(semantic.notes)
    if release.anonymized_stage == "suppressed" and side == "anonymized":
        notes.append(
            "The information loss by column is unknown, because records were withheld after the classes were made."
        )
        if isinstance(gathered.found.get("suppressed"), Anonymization):
            notes.extend(filter(None, [note_on_tight_ends(gathered.found["suppressed"])]))
    return ReportMaterial(
        pictures=tuple(Picture(*from_markdown(markdown)) for markdown in _pictures(release, gathered.found)),
        refusals=tuple(Refusal(each.refused_at, each.failed) for each in refusals),
        column_changes=changes,
        attribute_advice=None if semantic is None else semantic.advice,
        notes=notes,
    )


def release_record(
    context: Any,
    release: ReleaseSettings,
    side: str,
    gathered: Gathered,
    decided: tuple[Verdict, ...],
    partition_key: str | None,
    n_refusals: int,
) -> ReleaseRecord:
    """Return what the manifest of a table says, or what the page of its refusal shows."""
    waived_by = {verdict.waived_by for verdict in decided}
    private_tables = context.resources.private_tables
    return ReleaseRecord(
        release=release.name,
        stage=side,
        partition=partition_key,
        run_id=context.run.run_id,
        policy=release.policy,
        verdicts=decided,
        settings=_without_secrets(gathered.settings),
        figures=gathered.figures,
        columns=gathered.columns,
        refusals_before=n_refusals,
        acknowledged=release.contract.acknowledged,
        declaration=release.declaration,
        options_compared=candidates_compared(context.instance, private_tables, release.key(OPTIONS), partition_key),
        waivers=[each for each in release.waivers_of(side).usable if each.file in waived_by],
    )


def _without_secrets(settings: Any) -> Any:
    """Remove seeds, which would allow repeating the draws, and digests of guessable content from published settings."""
    if isinstance(settings, dict):
        return {name: _without_secrets(value) for name, value in settings.items() if name not in SECRETS}
    return settings


def _column_changes(
    release: ReleaseSettings,
    assessment: MpuccAssessment,
    gathered: Gathered,
    private_tables: PrivateParquetIOManager,
    partition_key: str | None,
) -> pd.DataFrame | None:
    """Measure on exactly the tables that were assessed; None if they are no longer stored."""
    try:
        artifact = private_tables.load(release.key("preprocessed"), partition_key)
    except UNREADABLE:
        return None
    assessed = gathered.evidence.assessments[MPUCC].made_of.get("preprocessed")
    if not isinstance(artifact, Artifact) or artifact.digest != assessed:
        return None
    tables = PreprocessedTables.from_artifact(artifact)
    return measure_column_changes(tables, assessment, time_limit_seconds=SECONDS_TO_MEASURE_CHANGES, pairs=True)


def _pictures(release: ReleaseSettings, found: dict[str, Any]) -> Iterator[str]:
    if MPUCC in found:
        yield identified_by_size(found[MPUCC])
        yield columns_that_drive_the_risk(driving_columns(found[MPUCC]), len(found[MPUCC].details))
    for stage, settings in ((release.synthetic_stage, release.generalize_synthetic), (release.anonymized_stage, None)):
        if isinstance(found.get(stage), Anonymization):
            yield from _pictures_of_classes(found[stage], found.get("source"), settings or release.anonymized)
    if DISCLOSURE in found:
        yield excess_by_criterion(found[DISCLOSURE])
        yield guessed_by_column(found[DISCLOSURE])
    if UTILITY in found:
        yield worth_of_figures(found[UTILITY])
    if REIDENTIFICATION in found:
        yield reidentification_curve(found[REIDENTIFICATION].curve)
    if SEMANTIC in found:
        yield as_markdown(risk_distribution(found[SEMANTIC]), describe_risks(found[SEMANTIC]))


def _pictures_of_classes(anonymization: Anonymization, source: pd.DataFrame | None, settings: Any) -> Iterator[str]:
    yield records_by_class_size(anonymization.classes)
    # After records were withheld, the loss by column is unknown.
    if "certainty_penalty" in anonymization.stats:
        yield information_loss_by_column(anonymization.stats["certainty_penalty"])
    if source is not None:
        columns = settings.pictured or columns_in_order(anonymization.model, source)[:2]
        if len(columns) == 2:
            yield classes_as_rectangles(class_rectangles(anonymization, source, *columns), *columns)
