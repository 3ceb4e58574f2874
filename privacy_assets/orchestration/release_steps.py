"""The last stage: checks that show the verdicts of the gate, and the release, which decides again."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from privacy_assets.columns.safe_names import class_name
from privacy_assets.contract.rule_violations import RULES
from privacy_assets.disclosure.rare_values import RARE_VALUES
from privacy_assets.errors import PrivacyAssetsError, ReleaseStoreError
from privacy_assets.orchestration.column_checks import with_examined_columns
from privacy_assets.orchestration.comparison.stored import say_nearest
from privacy_assets.orchestration.evidence.evidence import Gathered, gather_evidence
from privacy_assets.orchestration.evidence.other_partitions import with_values_of_other_partitions
from privacy_assets.orchestration.evidence.publication_ledger import record_publications
from privacy_assets.orchestration.evidence.refusals import every_refusal, refusals_before, said_of, withholds_figures
from privacy_assets.orchestration.evidence.spending import with_spending
from privacy_assets.orchestration.monitoring import keep_profile
from privacy_assets.orchestration.private.directories import from_project_root, mark_releases
from privacy_assets.orchestration.private.guard import ADVICE, ReleaseRefused, ReleaseWaits, guarded, log_openly, speaks
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.refusal_page import AT_THE_GATE, known_so_far, page_of_refusal
from privacy_assets.orchestration.report_material import release_record, report_material, without_figures
from privacy_assets.orchestration.settings.engine import engine_that_writes
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.shown.limit_bars import picture_of_limits
from privacy_assets.orchestration.shown.metadata import (
    FOUND,
    RELEASE_DIRECTORY,
    UPLOADED,
    VERDICTS,
    refusal_on_its_asset,
    verdict_result,
    verdict_table,
)
from privacy_assets.orchestration.stages import (
    GATE_CHECK,
    RESOURCES,
    asset_arguments,
    blocking_check,
    described_table,
    limit_checks_of,
    storage_of,
)
from privacy_assets.orchestration.waiting import (
    Waiting,
    decide_on_withdrawals,
    may_be_rejected,
    pending_directory,
    wait_for_people,
)
from privacy_assets.pipeline.settings.utility import worth_stage
from privacy_assets.release.drift import profile_table
from privacy_assets.release.evidence import SPLIT_STAGES
from privacy_assets.release.files import ReleaseRecord, write_release
from privacy_assets.release.formats.attestation import ATTESTATIONS
from privacy_assets.release.gate import (
    MEASURED_AT_THE_GATE,
    Verdict,
    is_admitted,
    limit_verdict,
    refusing,
    settings_verdict,
    verdicts,
    waived_verdict,
)
from privacy_assets.release.manifest import REPORT_FILE
from privacy_assets.release.metrics import ANONYMITY, MPUCC, PRIVACY_BUDGET, SIDES, UTILITY
from privacy_assets.release.outcomes import in_words
from privacy_assets.release.policy import INSTEAD, is_decided_instead
from privacy_assets.release.register import write_register
from privacy_assets.release.report import ReportMaterial
from privacy_assets.release.waiting import forget_files
from privacy_assets.storage.memory import give_back_memory

UNATTESTED = (
    f"{ATTESTATIONS[0]} was not written: there is no signing key, and an envelope without a signature says nothing."
)
NEAREST = "nearest_options"
REPORT = "report"
GATE_DESCRIPTION = "The policy admits the exact content that would be released; decided in the release step itself."


def limit_checks(
    release: ReleaseSettings, assessment: str, side: str | None = None, *, instead: bool = False
) -> dg.AssetChecksDefinition:
    """Build one check per limit on an assessment; the release step decides the same verdicts again.

    ``side`` is only needed for assessments of both sides. The limit that decides ``instead`` of others has a step of
    its own, after the assessment of the others.
    """
    side = side or SIDES[assessment]
    measured = {
        ANONYMITY: release.anonymized_stage,
        RARE_VALUES: release.synthetic_stage,
        RULES: release.synthetic_stage,
        PRIVACY_BUDGET: "synthetic",
        UTILITY: worth_stage(side),
    }
    stage = measured.get(assessment, assessment)
    name_of_checks = stage if assessment == UTILITY else assessment
    key = release.key(stage)
    # The figure is measured against these people, and synthetic records made elsewhere may exist before them.
    deps = [release.key(people) for people in SPLIT_STAGES] if assessment in (RARE_VALUES, RULES) else []
    limits = [limit for limit in release.policy.limits_of(side) if limit.assessment_on(side) == assessment]
    limits = [limit for limit in limits if is_decided_instead(limit) == instead]
    if instead:
        deps, name_of_checks = [release.key(MPUCC)], INSTEAD
    specs = limit_checks_of(limits, key, deps)
    has_settings = assessment not in MEASURED_AT_THE_GATE and not instead
    if has_settings:
        description = "The assessment was made with settings that the policy accepts."
        specs.append(blocking_check(release, stage, f"{assessment}_settings_meet_the_policy", description))

    @dg.multi_asset_check(
        name=f"{release.name}__{name_of_checks}_checks", specs=specs, can_subset=True, required_resource_keys=RESOURCES
    )
    @guarded
    def checks_of_limits(context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        storage = storage_of(context, release)
        counts = assessment in (RARE_VALUES, RULES)
        gathered = _gather(storage, side, with_details=False, with_counts=counts)
        waivers = release.waivers_of(side)
        decided = [
            waived_verdict(limit, limit_verdict(limit, gathered.evidence), waivers, gathered.content)
            for limit in limits
        ]
        if has_settings:
            decided.append(settings_verdict(assessment, release.policy, gathered.evidence))
        selected = {check.name for check in context.selected_asset_check_keys}
        decided = [verdict for verdict in decided if verdict.name in selected]
        refusal: dict[str, Any] = {}
        unrecorded = _record_refusal(context, storage, side, decided)
        if any(verdict.blocks for verdict in decided):
            # The verdicts are already final: this only helps to find better settings.
            nearest = say_nearest(storage, side)
            page = _page_of_checks(context, storage, side, name_of_checks, decided, nearest)
            refusal = {NEAREST: nearest, **page}
            released = release.key(f"{side}_release")
            yield refusal_on_its_asset(released, storage.partition_key, decided, refusal, key)
        for verdict in decided:
            yield verdict_result(key, verdict, refusal if verdict.blocks else None)
        if unrecorded is not None:
            raise unrecorded

    return checks_of_limits


def release_asset(release: ReleaseSettings, side: str, checks: Sequence[dg.AssetCheckKey] = ()) -> dg.AssetsDefinition:
    """Build the asset that releases the records of a side, if the policy admits exactly this content.

    ``checks`` are the blocking checks of the limits on this side; a run that they stop counts as refused.
    """
    stage = f"{side}_release"
    holding = (*checks, dg.AssetCheckKey(release.key(stage), GATE_CHECK))
    tables = {
        "synthetic": ("synthetic", release.synthetic_stage, *release.stages_assessed),
        "anonymized": (release.source_of_anonymized, "anonymized", release.anonymized_stage),
    }[side]

    @dg.asset(
        **asset_arguments(release, stage),
        description=f"{side.capitalize()} records that may be released, with a manifest that shows why.",
        deps=[release.key(made_of) for made_of in dict.fromkeys((*tables, *release.assessments_of(side)))],
        check_specs=[blocking_check(release, stage, GATE_CHECK, GATE_DESCRIPTION)],
    )
    @guarded
    def release_stage(context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        # No other run may release this between reading the evidence and the final rename.
        storage = storage_of(context, release)
        with storage.private_tables.releasing_alone(release.key(stage), storage.partition_key):
            yield from release_what_is_admitted(context, storage)

    def publishable(
        context: Any, storage: Storage, gathered: Gathered, decided: tuple[Verdict, ...]
    ) -> tuple[ReleaseRecord, Callable[[], ReportMaterial]]:
        refusals = refusals_before(storage, holding, release.key(stage))
        record = release_record(storage, side, gathered, decided, context.run.run_id, len(refusals))

        def report() -> ReportMaterial:
            return report_material(storage, side, gathered, refusals, decided)

        if not withholds_figures(release, side):
            return record, report
        return without_figures(record, ReportMaterial())[0], lambda: without_figures(record, report())[1]

    def waits(waiting: Waiting, decided: tuple[Verdict, ...], shown: dict[str, Any]) -> Iterator[Any]:
        open_points = [verdict for verdict in decided if verdict.blocks]
        reasons = "; ".join(verdict.reason for verdict in open_points)
        advice = " ".join(verdict.advice for verdict in open_points if verdict.advice)
        page = {REPORT: dg.MetadataValue.path(from_project_root(waiting.path / REPORT_FILE))}
        shown = {FOUND: reasons} | ({ADVICE: advice} if advice else {}) | page | shown
        warn = dg.AssetCheckSeverity.WARN
        yield dg.AssetCheckResult(
            check_name=GATE_CHECK, passed=False, severity=warn, metadata=shown, description=reasons
        )
        raise ReleaseWaits(
            description=f"{release.name}/{stage} is not released yet: {reasons}. {advice} Nothing was published, and "
            f"no refusal is counted; the files and their report wait in {from_project_root(waiting.path)}. An earlier "
            "release stays unchanged.",
            metadata=shown,
            allow_retries=False,
        )

    def release_what_is_admitted(context: Any, storage: Storage) -> Iterator[Any]:
        gathered = with_examined_columns(_gather(storage, side), storage, side)
        gathered = with_values_of_other_partitions(gathered, storage, side)
        table, content = gathered.table, gathered.content
        waivers = release.waivers_of(side)
        signer, signing = release.signer()
        decided = verdicts(release.policy, replace(gathered.evidence, signing=signing), content, waivers)
        decided += decide_on_withdrawals(storage, content)
        waiting = None
        asks_people = release.policy.required.approvals > 0 or not is_admitted(decided)
        asks_people |= may_be_rejected(storage, side, content)
        if table is not None and not refusing(decided) and asks_people:
            record, make_report = publishable(context, storage, gathered, decided)
            waiting = wait_for_people(storage, side, table, content, record, make_report)
            decided = (*decided, *waiting.verdicts)
        shown: dict[str, Any] = {**picture_of_limits(decided), VERDICTS: verdict_table(decided)}
        if table is None or refusing(decided):
            failed = refusing(decided)
            forget_files(pending_directory(storage, side) / content)
            reasons = "; ".join(verdict.reason for verdict in failed)
            unrecorded = _record_refusal(context, storage, side, decided)
            advice = " ".join(dict.fromkeys(verdict.advice for verdict in failed if verdict.advice))
            nearest = say_nearest(storage, side)
            page = page_of_refusal(context, storage, side, gathered, decided, AT_THE_GATE, nearest)
            found = {FOUND: reasons} | ({ADVICE: advice} if advice else {})
            shown = found | {NEAREST: nearest} | page | shown
            yield dg.AssetCheckResult(check_name=GATE_CHECK, passed=False, metadata=shown, description=reasons)
            if unrecorded is not None:
                raise unrecorded
            raise ReleaseRefused(
                description=f"{release.name}/{stage} was refused: {reasons}. Nothing was written; an earlier release "
                f"stays unchanged. {nearest}",
                metadata=shown,
                allow_retries=False,
            )
        if waiting is not None and not is_admitted(decided):
            yield from waits(waiting, decided, shown)
        record, make_report = publishable(context, storage, gathered, decided)
        record = record if waiting is None else waiting.recorded_in(record)
        report = make_report()
        # Writing also reads the release back, which takes memory.
        gathered = replace(gathered, found={})
        del make_report
        give_back_memory()
        root, objects = Path(storage.release_store.base_path).absolute(), storage.release_store.objects
        mark_releases(root)
        if objects is not None:
            objects.keep_address(root)
        directory = storage.release_store.directory(release.name, side, storage.partition_key)
        place = directory.relative_to(root).as_posix()
        record_publications(storage, release.key(stage), directory)
        watches_drift = release.source is not None and release.monitoring.drift_limit is not None
        profile = profile_table(storage.load("source", is_large=True)) if watches_drift else None
        with engine_that_writes(release.engine, release.name, stage) as engine:
            written = write_release(
                directory,
                table,
                content,
                record,
                release.formats,
                report,
                signer,
                release.rows_per_part,
                None if waiting is None else waiting.path,
                None if objects is None else partial(objects.uploaded, place),
                engine,
            )
        uploaded: dict[str, Any] = {}
        if objects is not None:
            uploaded[UPLOADED] = objects.address_of(place, written.name)
            try:
                objects.follow_latest(root, directory)
            except ReleaseStoreError as error:
                log_openly(
                    context,
                    f"The release is complete in the store, but `latest` may not name it yet. {error} The next "
                    "release writes it.",
                    logging.WARNING,
                )
        # The release exists; a failure of the run would suggest that it does not.
        try:
            record_publications(storage, release.key(stage), directory)
            if profile is not None:
                keep_profile(storage, profile)
            forget_files(pending_directory(storage, side) / content)
        except OSError as error:
            log_openly(
                context,
                f"The private record of the release and the profile of its source were not stored, or what waited was "
                f"not removed ({class_name(type(error))}). The next release does it; until then drift is measured "
                "from an earlier one.",
                logging.WARNING,
            )
        if signer is None:
            log_openly(context, UNATTESTED, logging.INFO)
        update_register(context, "release")
        yield dg.MaterializeResult(
            metadata=shown
            | described_table(
                release,
                table,
                content,
                release.key(gathered.evidence.stage),
                {each["column"]: each["role"] for each in gathered.columns},
            )
            | {RELEASE_DIRECTORY: dg.MetadataValue.path(str(written)), **uploaded},
            data_version=dg.DataVersion(content),
            check_results=[
                dg.AssetCheckResult(
                    check_name=GATE_CHECK, passed=True, metadata=shown, description="The policy admits this content."
                )
            ],
        )

    return release_stage


def _gather(storage: Storage, side: str, **asked: bool) -> Gathered:
    gathered = gather_evidence(storage, side, **asked)
    return with_spending(gathered, storage) if side == SIDES[PRIVACY_BUDGET] else gathered


def _page_of_checks(
    context: Any, storage: Storage, side: str, stage: str, decided: Sequence[Verdict], nearest: str
) -> dict[str, Any]:
    """Write the page of a refusal by the checks on a stage, with the run's findings so far."""
    release, gathered = storage.release, _gather(storage, side)
    every = verdicts(release.policy, gathered.evidence, gathered.content, release.waivers_of(side))
    gathered, shown = known_so_far(gathered, every, decided)
    note = f"The run ended after {in_words(stage)}; conditions that later steps decide are not on this page."
    return page_of_refusal(context, storage, side, gathered, shown, note, nearest)


def update_register(context: Any, after: str) -> None:
    """Write the register again ``after`` a release or a refusal; if this fails, warn, and keep the decision."""
    root = Path(context.resources.release_store.base_path)
    reason = ""
    try:
        mark_releases(root)
        write_register(root, refusals=list(every_refusal(context.resources.private_tables)))
    except Exception as error:  # noqa: BLE001 - a problem with the register does not change the decision
        is_ours = isinstance(error, PrivacyAssetsError) and speaks(error)
        reason = f"{class_name(type(error))}: {error}" if is_ours else class_name(type(error))
    if reason:
        log_openly(
            context,
            f"The register of releases was not written ({reason}). The {after} itself is complete and recorded. The "
            "next release or refusal writes the whole register again, as does `privacy_assets register` on the "
            "directory of the releases.",
            logging.WARNING,
        )


def _record_refusal(context: Any, storage: Storage, side: str, decided: Sequence[Verdict]) -> Exception | None:
    """Record a refusal, if there is one, before any other action on it.

    Return the error if that failed; it is raised after Dagster has recorded the verdicts, which are the other record.
    """
    failed = said_of({each.name: each.reason for each in refusing(decided)}, storage.release, side)
    if not failed:
        return None
    key = storage.release.key(f"{side}_release")
    try:
        storage.private_tables.record_refusal(key, storage.partition_key, context.run.run_id, failed)
    except Exception as error:  # noqa: BLE001 - raised after the verdicts
        return error
    update_register(context, "refusal")
    return None
