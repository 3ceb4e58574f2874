"""The disclosure by synthetic records about the originals: the test by which the gate decides on leakage."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.contract.related import content_of
from privacy_assets.disclosure.left_out_columns import assess_without_columns
from privacy_assets.disclosure.result import DisclosureAssessment
from privacy_assets.display.progress_bar import StageProgress
from privacy_assets.orchestration.evidence.disclosure_tests import describe_test, published_before, record_test
from privacy_assets.orchestration.private.guard import guarded
from privacy_assets.orchestration.private.recorded import MADE_WITH
from privacy_assets.orchestration.private.resources import IS_LARGE
from privacy_assets.orchestration.settings.engine import engine_of_stage
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.synthetic import SYNTHETIC_PEOPLE
from privacy_assets.orchestration.shown.metadata import ADVICE, FOUND, advice_table, score_metadata, settings_metadata
from privacy_assets.orchestration.stages import asset_arguments, progress_logger, storage_of, stored_artifact
from privacy_assets.pipeline.measure import assess_leakage, compared_tables
from privacy_assets.pipeline.related import compared_related
from privacy_assets.release.evidence import SPLIT_STAGES
from privacy_assets.release.leakage import figures_of_disclosure
from privacy_assets.release.metrics import DISCLOSURE, LEAKAGE_DETECTED

MOST_COLUMNS, MOST_ROWS = 10, 1_000_000
"""Columns without which a leaking table is assessed again, and synthetic records of these assessments together."""


def disclosure_assessment_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that tests whether the synthetic records reveal originals more than people of the control."""
    stage = release.synthetic_stage
    stands_on = (*SPLIT_STAGES, *release.stages_of_synthetic_people)
    # Labels are made from whole tables.
    is_large = {IS_LARGE: stage == "synthetic" and release.related is None}
    ins = {name: dg.AssetIn(release.key(name), metadata=is_large) for name in (*SPLIT_STAGES, "synthetic")}
    others = (*release.stages_of_synthetic_people, stage)

    @dg.asset(
        **asset_arguments(release, DISCLOSURE, kinds={"python"}),
        description="Whether the synthetic records single out, link or copy originals, or allow inferences about them, "
        "more than people whom the synthesizer never saw.",
        ins={name: dg.AssetIn(release.key(name)) for name in others} | ins,
    )
    @guarded
    def disclosure_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        person, generalized = release.contract.person, None
        if stage != "synthetic":
            generalized = Anonymization.from_artifact(inputs[stage])
        real_and_made = inputs["original"], inputs["synthetic"], inputs["control"]
        tables: Any
        if release.related is None:
            tables = compared_tables(release, real_and_made, generalized, inputs.get(SYNTHETIC_PEOPLE))
        else:
            tables = compared_related(release.related, real_and_made)
        released = inputs["synthetic"] if generalized is None else generalized.table
        made_of = {name: content_of(inputs[name]) for name in stands_on} | {stage: content_of(released)}
        storage = storage_of(context, release)
        test = describe_test(storage, inputs, made_of)
        # Generalized records have other labels in each release.
        before = {} if generalized is not None else published_before(storage, test)
        progress = progress_logger(context, StageProgress.in_words)
        with engine_of_stage(release.engine, release.name, DISCLOSURE) as engine:
            assessment = assess_leakage(release, tables, progress, list(before.values()), engine)
        leaks = assessment.scores[LEAKAGE_DETECTED]
        record_test(storage, test._replace(leaks=leaks, together_with=list(before)))
        metadata = dict(_metadata(release, assessment))
        if leaks and release.related is None:
            original, compared, control = tables
            without = assess_without_columns(
                original,
                compared,
                control,
                assessment,
                release.disclosure_settings,
                person=person,
                synthetic_person=release.synthetic_person,
                most_columns=min(max(MOST_ROWS // len(inputs["synthetic"]), 1), MOST_COLUMNS),
                progress=progress_logger(context, lambda progress: f"without a column, {progress.in_words()}"),
            )
            # Not in the artifact: it is advice, not evidence.
            metadata["without_a_column"] = advice_table(without)
        pictures = {"excess": assessment.drawn("criteria"), "guessed": assessment.drawn("columns")}
        yield stored_artifact(assessment.to_artifact().with_pictures(pictures), metadata, made_of)

    return disclosure_stage


def _metadata(release: ReleaseSettings, assessment: DisclosureAssessment) -> Iterator[tuple[str, Any]]:
    decided = figures_of_disclosure(assessment.scores, release.policy.required)
    yield FOUND, assessment.summary()
    if decided.advice:
        yield ADVICE, decided.advice
    yield from score_metadata(assessment.scores | {LEAKAGE_DETECTED: decided.metrics[LEAKAGE_DETECTED]}).items()
    yield MADE_WITH, settings_metadata(assessment.settings)
