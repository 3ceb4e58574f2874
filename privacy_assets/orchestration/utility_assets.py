"""The worth of the records of a release: a figure in addition to the risks, which a policy can limit."""

from typing import Any

import dagster as dg

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.contract.related import content_of
from privacy_assets.orchestration.private.guard import guarded
from privacy_assets.orchestration.private.recorded import MADE_WITH
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.shown.metadata import FOUND, score_metadata, settings_metadata
from privacy_assets.orchestration.stages import asset_arguments, stored_artifact
from privacy_assets.pipeline.settings.utility import SHARE_THAT_JUDGES, worth_stage
from privacy_assets.release.evidence import SPLIT_STAGES
from privacy_assets.synthesis.split import split_records
from privacy_assets.utility.assess import assess_utility
from privacy_assets.utility.result import UtilityAssessment


def utility_assessment_asset(release: ReleaseSettings, side: str) -> dg.AssetsDefinition:
    """Build the asset that measures the worth of the records of a side."""
    assess = {"synthetic": _worth_of_synthetic, "anonymized": _worth_of_anonymized}[side]
    made_of, stage = {
        "synthetic": ((*SPLIT_STAGES, "synthetic"), release.synthetic_stage),
        "anonymized": ((release.source_of_anonymized,), release.anonymized_stage),
    }[side]

    @dg.asset(
        **asset_arguments(release, worth_stage(side), kinds={"python"}),
        description=f"Worth of the {side} records for analyses: 1 as much as the originals, 0 as much as the originals "
        "with each column shuffled.",
        ins={name: dg.AssetIn(release.key(name)) for name in dict.fromkeys((*made_of, stage))},
    )
    @guarded
    def utility_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202, ARG001
        assessment = assess(release, inputs)
        released = inputs[stage]
        made_of_tables = {name: content_of(inputs[name]) for name in made_of if name != "synthetic"}
        table = released if stage == "synthetic" else Anonymization.from_artifact(released).table
        yield stored_artifact(
            assessment.to_artifact().with_pictures({"worth": assessment.drawn()}),
            {FOUND: " ".join(filter(None, (assessment.sentence, *assessment.notes)))}
            | score_metadata(assessment.shown_scores)
            | {MADE_WITH: settings_metadata(assessment.settings)},
            {**made_of_tables, stage: content_of(table)},
        )

    return utility_stage


def _worth_of_synthetic(release: ReleaseSettings, tables: dict[str, Any]) -> UtilityAssessment:
    """Let people whom the synthesizer never saw judge the records."""
    if release.related is not None:
        sides = (tables["original"], tables["synthetic"], tables["control"])
        return assess_utility(*sides, seed=release.utility_settings.seed)
    columns = list(release.contract.released_columns)
    released, model, hierarchies = tables["synthetic"], None, None
    if release.synthetic_stage != "synthetic":
        model = Anonymization.from_artifact(tables[release.synthetic_stage])
        released, hierarchies = model.table, release.generalization("synthetic").hierarchies
    return assess_utility(
        tables["original"][columns],
        released,
        tables["control"][columns],
        model,
        hierarchies=hierarchies,
        domain=tables["synthetic"],
        group=release.utility_settings.group,
        seed=release.utility_settings.seed,
    )


def _worth_of_anonymized(release: ReleaseSettings, tables: dict[str, Any]) -> UtilityAssessment:
    """Let a random part of the people judge, in comparison with exactly the records that were released.

    The judges are among the released people, but also among the originals, so this cancels out.
    """
    columns = list(release.contract.released_columns)
    source, seed = tables[release.source_of_anonymized], release.utility_settings.seed
    anonymization = Anonymization.from_artifact(tables[release.anonymized_stage])
    judging = split_records(
        source, train_fraction=1 - SHARE_THAT_JUDGES, seed=seed, person=release.contract.person
    ).control
    return assess_utility(
        source.iloc[anonymization.members["row"]][columns],
        anonymization.table,
        judging[columns],
        anonymization,
        hierarchies=release.hierarchies,
        domain=source,
        group=release.utility_settings.group,
        seed=seed,
    )
