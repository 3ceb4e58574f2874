"""The way of a table, told once from top to bottom: source, split, synthetic, preprocess, assess, anonymize.

Each function builds the asset of one stage; `release_steps` holds the last one, the release, and the gate before it. A
body fetches, calls one function of `privacy_assets.tables` and attaches metadata; what is decided is decided there.
Bodies take their inputs without annotations, so that Dagster checks no type and describes no cell.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import dagster as dg
import pandas as pd

from privacy_assets.orchestration.evidence import metrics_of
from privacy_assets.orchestration.guard import guarded
from privacy_assets.orchestration.metadata import NAMESPACE, score_metadata, table_metadata
from privacy_assets.orchestration.pictures import (
    classes_as_rectangles,
    identified_by_size,
    information_loss_by_column,
    records_by_class_size,
)
from privacy_assets.orchestration.recorded import MADE_OF, MADE_WITH
from privacy_assets.orchestration.settings import AnonymizationSettings, ExternalSynthetic, GivenSplit, ReleaseSettings
from privacy_assets.orchestration.sources import TableSource, read_source, upstream_inputs
from privacy_assets.orchestration.stages import (
    RESOURCES,
    asset_arguments,
    blocking_check,
    output_arguments,
    partition_key_of,
    progress_logger,
    stored_table,
)
from privacy_assets.tables.anonymization import Anonymization, AnonymizationProgress
from privacy_assets.tables.anonymize import anonymize
from privacy_assets.tables.anonymized_table import describe_columns, measure_anonymity, models_that_fail
from privacy_assets.tables.class_rectangles import class_rectangles, columns_in_order
from privacy_assets.tables.contract import MAX_FAILURES_SHOWN
from privacy_assets.tables.errors import ContractError, InvalidTableError
from privacy_assets.tables.fingerprint import fingerprint
from privacy_assets.tables.generalized_synthetic import number_distinct_records, preprocess_generalized
from privacy_assets.tables.mpucc import MpuccAssessment, SearchProgress, assess_preprocessed
from privacy_assets.tables.policy import MPUCC
from privacy_assets.tables.preprocess import PreprocessedTables, preprocess
from privacy_assets.tables.split import people_on_both_sides, split_records
from privacy_assets.tables.synthesize import synthesize

CLASSES_CHECK = "every_class_has_at_least_k_records"
CHECKS_OF_STAGES = {
    "source_keeps_its_contract": "Columns, types, ranges and missing values are as the contract says.",
    "no_person_is_on_both_sides": "Nobody whom the synthesizer may see is among the control records.",
    "synthetic_keeps_the_contract": "Synthetic records have the released columns, with their types and ranges.",
    CLASSES_CHECK: "Measured on the generalized table, every class has the k, l and t that were asked for.",
}


def source_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that holds the table as its contract admits it."""
    source = release.source
    assert source is not None  # noqa: S101 - ReleaseSettings refuses a split without a source
    check = "source_keeps_its_contract"

    @dg.asset(
        **asset_arguments(release, "source"),
        description="The table as its contract admits it: typed, checked, without direct identifiers.",
        ins=upstream_inputs(source=source),
        check_specs=[blocking_check(release, "source", check, CHECKS_OF_STAGES[check])],
    )
    @guarded
    def source_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        table = read_source("source", source, partition_key_of(context), inputs)
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
                **output_arguments(release, "original"), description="Records that the synthesizer may see."
            ),
            "control": dg.AssetOut(
                **output_arguments(release, "control"),
                description="Records of people whom it never sees.",
            ),
        },
        ins=upstream_inputs(**given) if given else {"source": dg.AssetIn(release.key("source"))},
        check_specs=[blocking_check(release, "original", check, CHECKS_OF_STAGES[check])],
        partitions_def=release.partitions_def,
        required_resource_keys=RESOURCES,
    )
    @guarded
    def split_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        sides: tuple[pd.DataFrame, pd.DataFrame]
        if isinstance(split, GivenSplit):
            sides = _given_sides(release, given, partition_key_of(context), inputs)
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
            yield stored_table(release, stage, table, made)

    return split_stage


def synthetic_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that holds synthetic records, made here or brought in."""
    synthetic = release.synthetic
    assert synthetic is not None  # noqa: S101 - asked for by those who build the synthetic side alone
    check = "synthetic_keeps_the_contract"
    brought_in = isinstance(synthetic, ExternalSynthetic)

    @dg.asset(
        **asset_arguments(release, "synthetic"),
        description="Synthetic records that were brought in." if brought_in else "Synthetic records.",
        ins=upstream_inputs(synthetic=synthetic.source)
        if isinstance(synthetic, ExternalSynthetic)
        else {"original": dg.AssetIn(release.key("original"))},
        check_specs=[blocking_check(release, "synthetic", check, CHECKS_OF_STAGES[check])],
    )
    @guarded
    def synthetic_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        if isinstance(synthetic, ExternalSynthetic):
            made = read_source("synthetic", synthetic.source, partition_key_of(context), inputs)
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
    generalizes = release.generalize_synthetic is not None

    @dg.asset(
        **asset_arguments(release, "preprocessed"),
        description="Original, control and synthetic at one precision, deduplicated, as integer codes.",
        ins={stage: dg.AssetIn(release.key(stage)) for stage in dict.fromkeys((*stages, release.synthetic_stage))},
    )
    @guarded
    def preprocessed_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202, ARG001
        made_of = _fingerprints(inputs, *stages)
        original, control, synthetic = (_released_columns(release, inputs[stage]) for stage in stages)
        settings: dict[str, Any] = {
            "numeric_precision": release.numeric_precision,
            "datetime_precision": release.datetime_precision,
            "deduplicate": release.assessment.deduplicate,
        }
        if generalizes:
            generalized = Anonymization.from_artifact(inputs["generalized_synthetic"])
            made_of["generalized_synthetic"] = fingerprint(generalized.table)
            prepared = preprocess_generalized(original, synthetic, control, generalized, **settings)
        else:
            prepared = preprocess(original, synthetic, control, **settings)
        artifact = replace(prepared.to_artifact(), made_of=made_of)
        metadata = {f"{NAMESPACE}/{stage}_records": len(inputs[stage]) for stage in stages}
        yield dg.MaterializeResult(value=artifact, metadata=metadata, data_version=dg.DataVersion(artifact.digest))

    return preprocessed_stage


def mpucc_assessment_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that holds the mpUCC risk of the synthetic records."""

    @dg.asset(
        **asset_arguments(release, MPUCC, kinds={"python"}),
        description="Which synthetic records single out an original, by which columns, and whether chance explains it.",
        ins={"preprocessed": dg.AssetIn(release.key("preprocessed"))},
    )
    @guarded
    def mpucc_assessment_stage(context, preprocessed):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        settings = asdict(release.assessment)
        for preprocessing in ("numeric_precision", "datetime_precision", "deduplicate"):
            del settings[preprocessing]
        assessment = assess_preprocessed(
            PreprocessedTables.from_artifact(preprocessed),
            **settings,
            progress=progress_logger(context, _combinations_checked),
        )
        made_of = {**preprocessed.made_of, "preprocessed": preprocessed.digest}
        artifact = replace(assessment.to_artifact(), made_of=made_of)
        yield dg.MaterializeResult(
            value=artifact, metadata=_assessment_metadata(assessment), data_version=dg.DataVersion(artifact.digest)
        )

    return mpucc_assessment_stage


def anonymized_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that holds the source records, generalized until nobody can be told from k others."""
    settings = release.anonymized
    assert settings is not None  # noqa: S101 - asked for by those who build the anonymized side alone
    return _generalized_asset(release, "anonymized", "source", settings)


def generalized_synthetic_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that holds the synthetic records, generalized before they are assessed."""
    settings = release.generalize_synthetic
    assert settings is not None  # noqa: S101 - as above
    return _generalized_asset(release, "generalized_synthetic", "synthetic", settings)


def _generalized_asset(
    release: ReleaseSettings, stage: str, made_of: str, settings: AnonymizationSettings
) -> dg.AssetsDefinition:
    arguments = release.arguments_of(settings, made_of)
    is_synthetic = made_of == "synthetic"
    unit = "people" if arguments["subject"] == release.contract.person is not None else "records"

    @dg.asset(
        **asset_arguments(release, stage),
        description=f"Records of {made_of} in classes of at least {arguments['k']} {unit} that read the same on the "
        "quasi-identifiers; all other columns are as they were.",
        ins={"table": dg.AssetIn(release.key(made_of))},
        check_specs=[blocking_check(release, stage, CLASSES_CHECK, CHECKS_OF_STAGES[CLASSES_CHECK])],
    )
    @guarded
    def generalized_stage(context, table):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        content = fingerprint(table)
        if is_synthetic:
            table = number_distinct_records(table)
        anonymization = anonymize(table, **arguments, progress=progress_logger(context, _rows_cut))
        report, figures = measure_anonymity(anonymization, release.contract, table, arguments["subject"])
        failed = models_that_fail(anonymization, report)
        shown = {name: value for name, value in figures.items() if value is not None}
        if failed:
            yield dg.AssetCheckResult(
                check_name=CLASSES_CHECK, passed=False, metadata=shown, description="; ".join(failed)
            )
            raise InvalidTableError(f"The classes are not what was asked for: {'; '.join(failed)}. Nothing was stored.")
        artifact = replace(anonymization.to_artifact(), made_of={made_of: content})
        made_with = {name: value for name, value in anonymization.settings.items() if name != "seed"}
        yield dg.MaterializeResult(
            value=artifact,
            metadata=table_metadata(
                anonymization.table,
                fingerprint(anonymization.table),
                {each["column"]: each["role"] for each in describe_columns(anonymization, release.contract)},
            )
            | score_metadata({"classes": report.n_classes, **shown})
            | _pictures_of_classes(anonymization, table, settings.pictured)
            | {
                MADE_WITH: dg.MetadataValue.json(made_with),
                MADE_OF: dg.MetadataValue.json(dict(artifact.made_of)),
            },
            data_version=dg.DataVersion(artifact.digest),
        )
        yield dg.AssetCheckResult(
            check_name=CLASSES_CHECK,
            passed=True,
            metadata=shown,
            description=f"{report.n_classes:,} classes, the smallest of "
            f"{figures['smallest_class']:,.0f} {unit}; {arguments['k']} were asked for.",
        )

    return generalized_stage


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
    yield stored_table(release, stage, table, made)
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


def _assessment_metadata(assessment: MpuccAssessment) -> dict[str, Any]:
    figures = {name: value for name, value in metrics_of(assessment).items() if value is not None}
    return score_metadata(dict(assessment.scores) | figures) | {
        f"{NAMESPACE}/identified_by_combination_size": dg.MetadataValue.md(identified_by_size(assessment.tree))
    }


def _pictures_of_classes(
    anonymization: Anonymization, made_of: pd.DataFrame, pictured: tuple[str, str] | None
) -> dict[str, Any]:
    pictures = {
        "records_by_class_size": records_by_class_size(anonymization.classes),
        "information_loss_by_column": information_loss_by_column(anonymization.stats["certainty_penalty"]),
    }
    columns = pictured or columns_in_order(anonymization.model, made_of)[:2]
    if len(columns) == 2:
        rectangles = class_rectangles(anonymization, made_of, *columns)
        pictures["classes_as_rectangles"] = classes_as_rectangles(rectangles, *columns)
    return {f"{NAMESPACE}/{name}": dg.MetadataValue.md(picture) for name, picture in pictures.items()}


def _rows_cut(progress: AnonymizationProgress) -> str:
    return f"{progress.stage}: {progress.n_rows_done:,} of {progress.n_rows:,} rows are in their classes"


def _combinations_checked(progress: SearchProgress) -> str:
    return (
        f"{progress.stage}: combinations of {progress.combo_size} of at most {progress.max_combo_size} columns, "
        f"{progress.combinations_checked} checked so far, {progress.n_identified} records identified"
    )
