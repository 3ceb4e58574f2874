"""The stage of differentially private records that spends budget: the noisy model.

The stage `synthetic` draws records from it, which costs nothing and can be repeated. Every materialization of this
stage spends budget again, even if its result is not used.
"""

import logging

import dagster as dg

from privacy_assets.errors import PrivacyBudgetError
from privacy_assets.orchestration.dagster_internals import MAX_RETRIES_TAG
from privacy_assets.orchestration.evidence.partition_people import people_of_fit
from privacy_assets.orchestration.evidence.spending import ledger_of, reserve_fit
from privacy_assets.orchestration.private.guard import guarded, log_openly
from privacy_assets.orchestration.private.recorded import MADE_OF, MADE_WITH
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.stages import asset_arguments, storage_of, stored_artifact
from privacy_assets.pipeline.settings.privacy_budget import NOISY_MODEL
from privacy_assets.storage.fingerprint import kept_fingerprint
from privacy_assets.synthesis.private.settings import MstSettings
from privacy_assets.synthesis.private.stored_model import to_artifact

PEOPLE_UNKNOWN = (
    "privacy_budget.partitions_are_disjoint is set, but it is not known whose records these are: the source was "
    "admitted before that, or again after it was divided. So this fit is added to the fits of all partitions. "
    "Materialize all stages from source before the next fit."
)


def noisy_model_asset(release: ReleaseSettings, private: MstSettings) -> dg.AssetsDefinition:
    """Build the asset of the noisy model, which is charged to the budget before a record is counted."""

    @dg.asset(
        **asset_arguments(release, NOISY_MODEL),
        description="Noisy counts of the records that the synthesizer may see. Every run spends privacy budget.",
        ins={"original": dg.AssetIn(release.key("original"))},
        # A job's policy would repeat the step.
        retry_policy=dg.RetryPolicy(max_retries=0),
    )
    @guarded
    def noisy_model_stage(context, original):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        synthesizer = private.synthesizer(release.contract)
        made_of, storage = kept_fingerprint(original), storage_of(context, release)
        people = people_of_fit(storage, original)
        if release.budget.partitions_are_disjoint and not people:
            log_openly(context, PEOPLE_UNKNOWN, logging.WARNING)
        # The retries of an instance would repeat the run.
        context.instance.add_run_tags(context.run.run_id, {MAX_RETRIES_TAG: "0"})
        entry, spending = reserve_fit(storage, context.run.run_id, synthesizer, made_of, people)
        # Dagster records the fit, too, before anything is counted.
        yield dg.AssetObservation(release.key(NOISY_MODEL), partition=storage.partition_key, metadata=spending)

        def require_as_recorded(rho: float) -> None:
            if rho != entry.rho:
                raise PrivacyBudgetError("The fit would not cost what was recorded. Nothing was counted.")

        person = release.contract.person
        columns = list(release.contract.released_columns)
        whose = None if person is None else original[person]
        model = synthesizer.fit(original[columns], person=whose, charge=require_as_recorded)
        artifact = to_artifact(model, entry.digest, private.to_json(), {"original": made_of})
        ledger = ledger_of(storage)
        total = ledger.epsilon(release.budget.delta)
        shown = {"epsilon": entry.epsilon, "delta": entry.delta, "total_epsilon": total, "fits": entry.number}
        if release.budget.partitions_are_disjoint:
            of_partitions = [each for each in ledger.entries() if each.people]
            shown["partitions_are_disjoint"] = bool(people) and ledger.people.are_apart(of_partitions)
        made = {MADE_WITH: release.for_manifest()["synthetic"], MADE_OF: {"original": made_of}}
        metadata = {name: dg.MetadataValue.json(value) for name, value in made.items()}
        yield stored_artifact(artifact, shown | spending | metadata)

    return noisy_model_stage
