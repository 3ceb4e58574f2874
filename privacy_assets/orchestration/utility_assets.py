"""What the synthetic records are worth, judged by the control: a figure beside the risks, which a policy can limit."""

from dataclasses import replace

import dagster as dg

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.orchestration.private.guard import guarded
from privacy_assets.orchestration.private.recorded import MADE_WITH
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.shown.metadata import NAMESPACE, score_metadata, settings_metadata
from privacy_assets.orchestration.shown.utility_pictures import worth_of_figures
from privacy_assets.orchestration.stages import asset_arguments
from privacy_assets.release.evidence import SPLIT_STAGES
from privacy_assets.release.metrics import UTILITY
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.utility.assess import assess_utility


def utility_assessment_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that says what the synthetic records are worth."""
    stage = release.synthetic_stage
    columns = list(release.contract.released_columns)

    @dg.asset(
        **asset_arguments(release, UTILITY, kinds={"python"}),
        description="What the synthetic records are worth to other people's questions: 1 as much as the originals, 0 "
        "as their columns shuffled.",
        ins={name: dg.AssetIn(release.key(name)) for name in dict.fromkeys((*SPLIT_STAGES, "synthetic", stage))},
    )
    @guarded
    def utility_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202, ARG001
        made_of = {name: fingerprint(inputs[name]) for name in SPLIT_STAGES}
        released, model, hierarchies = inputs["synthetic"], None, None
        if stage != "synthetic":
            model = Anonymization.from_artifact(inputs[stage])
            released, hierarchies = model.table, release.generalization("synthetic").hierarchies
        assessment = assess_utility(
            inputs["original"][columns],
            released,
            inputs["control"][columns],
            model,
            hierarchies=hierarchies,
            domain=inputs["synthetic"],
            seed=release.utility_settings.seed,
        )
        artifact = replace(assessment.to_artifact(), made_of={**made_of, stage: fingerprint(released)})
        yield dg.MaterializeResult(
            value=artifact,
            metadata=score_metadata(assessment.shown_scores)
            | {f"{NAMESPACE}/in_people": assessment.sentence or " ".join(assessment.notes)}
            | {f"{NAMESPACE}/worth": dg.MetadataValue.md(worth_of_figures(assessment))}
            | {MADE_WITH: settings_metadata(assessment.settings)},
            data_version=dg.DataVersion(artifact.digest),
        )

    return utility_stage
