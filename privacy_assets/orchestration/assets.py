"""The way of a table, told once from top to bottom: source, split, synthetic, preprocess, assess, release.

Each function builds the asset of one stage. A body fetches, calls one function of `privacy_assets.tables` and attaches
metadata; what is decided is decided there. Bodies take their inputs without annotations, so that Dagster checks no type
and describes no cell.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import dagster as dg
import pandas as pd

from privacy_assets.orchestration.evidence import gather_evidence, metrics_of
from privacy_assets.orchestration.guard import ReleaseRefused, guarded, log_openly
from privacy_assets.orchestration.metadata import (
    NAMESPACE,
    score_metadata,
    table_metadata,
    verdict_metadata,
    verdict_table,
)
from privacy_assets.orchestration.pictures import identified_by_size
from privacy_assets.orchestration.recorded import MADE_OF, MADE_WITH
from privacy_assets.orchestration.settings import ExternalSynthetic, GivenSplit, ReleaseSettings
from privacy_assets.orchestration.sources import TableSource, read_source, upstream_inputs
from privacy_assets.tables.contract import MAX_FAILURES_SHOWN
from privacy_assets.tables.errors import ContractError, InvalidTableError
from privacy_assets.tables.fingerprint import fingerprint
from privacy_assets.tables.gate import STAGES_ASSESSED, Verdict, is_admitted, limit_verdict, settings_verdict, verdicts
from privacy_assets.tables.mpucc import MpuccAssessment, SearchProgress, assess_preprocessed
from privacy_assets.tables.policy import MPUCC
from privacy_assets.tables.preprocess import PreprocessedTables, preprocess
from privacy_assets.tables.release_files import ReleaseRecord, write_release
from privacy_assets.tables.split import people_on_both_sides, split_records
from privacy_assets.tables.synthesize import synthesize

RESOURCES = {"private_tables", "release_store"}
GATE_CHECK = "release_gate"
CHECKS_OF_STAGES = {
    "source_keeps_its_contract": "Columns, types, ranges and missing values are as the contract says.",
    "no_person_is_on_both_sides": "Nobody whom the synthesizer may see is among the control records.",
    "synthetic_keeps_the_contract": "Synthetic records have the released columns, with their types and ranges.",
    GATE_CHECK: "The policy admits the very content that would be released; asked by the release step itself.",
}
SETTINGS_CHECK = f"{MPUCC}_settings_meet_the_policy"
SECONDS_BETWEEN_PROGRESS_LINES = 2.0


def source_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that holds the table as its contract admits it."""
    source = release.source
    assert source is not None  # noqa: S101 - ReleaseSettings refuses a split without a source
    check = "source_keeps_its_contract"

    @dg.asset(
        **_asset_arguments(release, "source"),
        description="The table as its contract admits it: typed, checked, without direct identifiers.",
        ins=upstream_inputs(source=source),
        check_specs=[_blocking_check(release, "source", check)],
    )
    @guarded
    def source_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        table = read_source("source", source, _partition_key(context), inputs)
        yield from _admitted(release, "source", check, lambda: release.contract.admit(table))

    return source_stage


def split_assets(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the assets that hold the records a synthesizer may see, and those it never sees."""
    split = release.split
    given: dict[str, TableSource] = (
        {"original": split.original, "control": split.control} if isinstance(split, GivenSplit) else {}
    )
    check = "no_person_is_on_both_sides"
    person = release.contract.person

    @dg.multi_asset(
        name=f"{release.name}__split",
        group_name=release.name,
        outs={
            "original": dg.AssetOut(
                **_output_arguments(release, "original"), description="Records that the synthesizer may see."
            ),
            "control": dg.AssetOut(
                **_output_arguments(release, "control"),
                description="Records of people whom it never sees.",
            ),
        },
        ins=upstream_inputs(**given) if given else {"source": dg.AssetIn(release.key("source"))},
        check_specs=[_blocking_check(release, "original", check)],
        partitions_def=release.partitions_def,
        required_resource_keys=RESOURCES,
    )
    @guarded
    def split_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        sides: tuple[pd.DataFrame, pd.DataFrame]
        if isinstance(split, GivenSplit):
            sides = _given_sides(release, given, _partition_key(context), inputs)
        else:
            fraction, seed = split.train_fraction, split.seed
            sides = split_records(inputs["source"], train_fraction=fraction, seed=seed, person=person)
        on_both = people_on_both_sides(*sides, person) if person is not None else 0
        yield _split_check(release, check, person, on_both)
        if on_both:
            raise InvalidTableError(
                f"{on_both} people have records in both original and control. The control must hold only people whom "
                "the synthesizer has not seen; divide the records by person. Nothing was stored."
            )
        made = {MADE_WITH: release.for_manifest()["split"], MADE_OF: _fingerprints(inputs, "source")}
        for stage, table in zip(("original", "control"), sides, strict=True):
            yield _stored_table(release, stage, table, made)

    return split_stage


def synthetic_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that holds synthetic records, made here or brought in."""
    synthetic = release.synthetic
    check = "synthetic_keeps_the_contract"
    brought_in = isinstance(synthetic, ExternalSynthetic)

    @dg.asset(
        **_asset_arguments(release, "synthetic"),
        description="Synthetic records that were brought in." if brought_in else "Synthetic records.",
        ins=upstream_inputs(synthetic=synthetic.source)
        if isinstance(synthetic, ExternalSynthetic)
        else {"original": dg.AssetIn(release.key("original"))},
        check_specs=[_blocking_check(release, "synthetic", check)],
    )
    @guarded
    def synthetic_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        if isinstance(synthetic, ExternalSynthetic):
            made = read_source("synthetic", synthetic.source, _partition_key(context), inputs)
        else:
            made = synthesize(
                _released_columns(release, inputs["original"]),
                method=synthetic.method,
                n_records=synthetic.n_records,
                seed=synthetic.seed,
                settings=synthetic.settings or None,
            )
        how = {MADE_WITH: release.for_manifest()["synthetic"], MADE_OF: _fingerprints(inputs, "original")}
        yield from _admitted(release, "synthetic", check, lambda: release.contract.admit_synthetic(made), how)

    return synthetic_stage


def preprocessed_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that holds the three tables at one precision, deduplicated, as integer codes."""
    stages = ("original", "control", "synthetic")

    @dg.asset(
        **_asset_arguments(release, "preprocessed"),
        description="Original, control and synthetic at one precision, deduplicated, as integer codes.",
        ins={stage: dg.AssetIn(release.key(stage)) for stage in stages},
    )
    @guarded
    def preprocessed_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202, ARG001
        tables = {stage: _released_columns(release, inputs[stage]) for stage in stages}
        settings = release.assessment
        prepared = preprocess(
            tables["original"],
            tables["synthetic"],
            tables["control"],
            numeric_precision=release.numeric_precision,
            datetime_precision=release.datetime_precision,
            deduplicate=settings.deduplicate,
        )
        artifact = replace(prepared.to_artifact(), made_of=_fingerprints(inputs, *stages))
        metadata = {f"{NAMESPACE}/{stage}_records": len(table) for stage, table in tables.items()}
        yield dg.MaterializeResult(value=artifact, metadata=metadata, data_version=dg.DataVersion(artifact.digest))

    return preprocessed_stage


def mpucc_assessment_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that holds the mpUCC risk of the synthetic records."""

    @dg.asset(
        **_asset_arguments(release, MPUCC, kinds={"python"}),
        description="Which synthetic records single out an original, by which columns, and whether chance explains it.",
        ins={"preprocessed": dg.AssetIn(release.key("preprocessed"))},
    )
    @guarded
    def mpucc_assessment_stage(context, preprocessed):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        settings = asdict(release.assessment)
        for preprocessing in ("numeric_precision", "datetime_precision", "deduplicate"):
            del settings[preprocessing]
        assessment = assess_preprocessed(
            PreprocessedTables.from_artifact(preprocessed), **settings, progress=_progress_logger(context)
        )
        made_of = {**preprocessed.made_of, "preprocessed": preprocessed.digest}
        artifact = replace(assessment.to_artifact(), made_of=made_of)
        yield dg.MaterializeResult(
            value=artifact, metadata=_assessment_metadata(assessment), data_version=dg.DataVersion(artifact.digest)
        )

    return mpucc_assessment_stage


def mpucc_checks(release: ReleaseSettings) -> dg.AssetChecksDefinition:
    """Build one blocking check per limit of the policy; they show the verdicts that the release step asks for again."""
    key = release.key(MPUCC)
    limits = {limit.check_name: limit for limit in release.policy.limits}
    specs = [
        dg.AssetCheckSpec(
            name,
            asset=key,
            blocking=limit.severity == "error",
            description=f"{limit.metric} must be {str(limit.direction).replace('_', ' ')} {limit.value:g}.",
        )
        for name, limit in limits.items()
    ]
    specs.append(
        dg.AssetCheckSpec(
            SETTINGS_CHECK,
            asset=key,
            blocking=True,
            description="The assessment was made with settings that the policy accepts.",
        )
    )

    @dg.multi_asset_check(
        name=f"{release.name}__{MPUCC}_checks", specs=specs, can_subset=True, required_resource_keys=RESOURCES
    )
    @guarded
    def mpucc_checks_of_release(context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        partition_key = _partition_key(context)
        private_tables = context.resources.private_tables
        evidence, _, _ = gather_evidence(release, context.instance, private_tables, partition_key)
        decided = [limit_verdict(limit, evidence) for limit in limits.values()]
        decided.append(settings_verdict(MPUCC, release.policy, evidence))
        selected = {check.name for check in context.selected_asset_check_keys}
        decided = [verdict for verdict in decided if verdict.name in selected]
        for verdict in decided:
            yield dg.AssetCheckResult(
                check_name=verdict.name,
                asset_key=key,
                passed=verdict.passed,
                severity=dg.AssetCheckSeverity.ERROR if verdict.severity == "error" else dg.AssetCheckSeverity.WARN,
                metadata=verdict_metadata(verdict),
                description=verdict.reason,
            )
        _record_refusal(context, release, decided)

    return mpucc_checks_of_release


def synthetic_release_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that lets the synthetic records out, if the policy admits the very content it holds."""

    @dg.asset(
        **_asset_arguments(release, "synthetic_release"),
        description="Synthetic records that may leave, with the manifest that says why.",
        deps=[release.key(stage) for stage in ("synthetic", *STAGES_ASSESSED, MPUCC)],
        check_specs=[_blocking_check(release, "synthetic_release", GATE_CHECK)],
    )
    @guarded
    def synthetic_release_stage(context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        partition_key = _partition_key(context)
        private_tables = context.resources.private_tables
        evidence, table, content = gather_evidence(release, context.instance, private_tables, partition_key)
        decided = verdicts(release.policy, evidence, content)
        shown = {"verdicts": verdict_table(decided)}
        if table is None or not is_admitted(decided):
            reasons = "; ".join(verdict.reason for verdict in decided if verdict.blocks)
            yield dg.AssetCheckResult(check_name=GATE_CHECK, passed=False, metadata=shown, description=reasons)
            _record_refusal(context, release, decided)
            raise ReleaseRefused(
                description=f"{release.name}/synthetic_release was refused: {reasons}. Nothing was written; an earlier "
                "release stays as it is.",
                metadata=shown,
                allow_retries=False,
            )
        record = ReleaseRecord(
            release=release.name,
            stage="synthetic",
            partition=partition_key,
            run_id=context.run.run_id,
            policy=release.policy,
            verdicts=decided,
            settings={
                "split": evidence.made_with["original"],
                "synthetic": evidence.made_with["synthetic"],
                MPUCC: dict(evidence.assessments[MPUCC].settings),
            },
            columns=[each for each in release.contract.describe() if each["column"] in table.columns],
            refusals_before=private_tables.refusals(release.key("synthetic_release"), partition_key),
        )
        directory = context.resources.release_store.directory(release.name, "synthetic", partition_key)
        written = write_release(directory, table, content, record, release.formats)
        yield dg.MaterializeResult(
            metadata=shown
            | table_metadata(table, content, release.contract)
            | {f"{NAMESPACE}/release": dg.MetadataValue.path(str(written))},
            data_version=dg.DataVersion(content),
            check_results=[
                dg.AssetCheckResult(
                    check_name=GATE_CHECK, passed=True, metadata=shown, description="The policy admits this content."
                )
            ],
        )

    return synthetic_release_stage


def _admitted(
    release: ReleaseSettings,
    stage: str,
    check: str,
    admit: Callable[[], pd.DataFrame],
    made: dict[str, Any] | None = None,
) -> Iterator[dg.MaterializeResult[pd.DataFrame] | dg.AssetCheckResult]:
    """Yield the table that the contract admits; if it admits none, the failed check with its counts, then the error."""
    violation: ContractError | None = None
    try:
        table = admit()
    except ContractError as error:
        violation = error
    if violation is not None:
        counts = {f"{column}: {rule}": count for column, rule, count in violation.failures[:MAX_FAILURES_SHOWN]}
        yield dg.AssetCheckResult(check_name=check, passed=False, metadata=counts, description=str(violation))
        raise violation
    yield _stored_table(release, stage, table, made)
    yield dg.AssetCheckResult(check_name=check, passed=True)


def _split_check(release: ReleaseSettings, check: str, person: str | None, on_both: int) -> dg.AssetCheckResult:
    unknown = person is None and isinstance(release.split, GivenSplit)
    return dg.AssetCheckResult(
        check_name=check,
        asset_key=release.key("original"),
        passed=not on_both and not unknown,
        severity=dg.AssetCheckSeverity.WARN if unknown else dg.AssetCheckSeverity.ERROR,
        description="The contract names no person column, so whether a person is on both sides cannot be told."
        if unknown
        else f"{on_both} people have records on both sides.",
        metadata={"people_on_both_sides": on_both, "person_column": person or "none: each row counts as a person"},
    )


def _given_sides(
    release: ReleaseSettings, given: dict[str, TableSource], partition_key: str | None, inputs: dict[str, Any]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Admit both sides as one table, so that one person has one code on both."""
    sides = [read_source(stage, source, partition_key, inputs) for stage, source in given.items()]
    admitted = release.contract.admit(pd.concat(sides, ignore_index=True))
    n_originals = len(sides[0])
    return admitted.iloc[:n_originals].reset_index(drop=True), admitted.iloc[n_originals:].reset_index(drop=True)


def _fingerprints(inputs: dict[str, Any], *stages: str) -> dict[str, str]:
    return {stage: fingerprint(inputs[stage]) for stage in stages if stage in inputs}


def _released_columns(release: ReleaseSettings, table: pd.DataFrame) -> pd.DataFrame:
    return table[list(release.contract.released_columns)]


def _stored_table(
    release: ReleaseSettings, stage: str, table: pd.DataFrame, made: dict[str, Any] | None = None
) -> dg.MaterializeResult[pd.DataFrame]:
    content = fingerprint(table)
    return dg.MaterializeResult(
        asset_key=release.key(stage),
        value=table,
        metadata=table_metadata(table, content, release.contract)
        | {name: dg.MetadataValue.json(value) for name, value in (made or {}).items()},
        data_version=dg.DataVersion(content),
    )


def _assessment_metadata(assessment: MpuccAssessment) -> dict[str, Any]:
    figures = {name: value for name, value in metrics_of(assessment).items() if value is not None}
    return score_metadata(dict(assessment.scores) | figures) | {
        f"{NAMESPACE}/identified_by_combination_size": dg.MetadataValue.md(identified_by_size(assessment.tree))
    }


def _progress_logger(context: Any) -> Callable[[SearchProgress], None]:
    last_line = time.monotonic()

    def log(progress: SearchProgress) -> None:
        nonlocal last_line
        if time.monotonic() - last_line < SECONDS_BETWEEN_PROGRESS_LINES:
            return
        last_line = time.monotonic()
        log_openly(
            context,
            f"{progress.stage}: combinations of {progress.combo_size} of at most {progress.max_combo_size} columns, "
            f"{progress.combinations_checked} checked so far, {progress.n_identified} records identified",
        )

    return log


def _record_refusal(context: Any, release: ReleaseSettings, decided: list[Verdict] | tuple[Verdict, ...]) -> None:
    failed = [verdict.name for verdict in decided if verdict.blocks]
    if failed:
        key = release.key("synthetic_release")
        context.resources.private_tables.record_refusal(key, _partition_key(context), context.run.run_id, failed)


def _partition_key(context: Any) -> str | None:
    return context.partition_key if context.has_partition_key else None


def _blocking_check(release: ReleaseSettings, stage: str, name: str) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(name, asset=release.key(stage), blocking=True, description=CHECKS_OF_STAGES[name])


def _asset_arguments(release: ReleaseSettings, stage: str, kinds: set[str] | None = None) -> dict[str, Any]:
    return {
        "key": release.key(stage),
        "group_name": release.name,
        "kinds": kinds or {"parquet"},
        "owners": list(release.owners),
        "io_manager_key": "private_tables",
        "required_resource_keys": RESOURCES,
        "partitions_def": release.partitions_def,
        "dagster_type": dg.Any,
    }


def _output_arguments(release: ReleaseSettings, stage: str) -> dict[str, Any]:
    return {
        "key": release.key(stage),
        "kinds": {"parquet"},
        "owners": list(release.owners),
        "io_manager_key": "private_tables",
        "dagster_type": dg.Any,
    }
