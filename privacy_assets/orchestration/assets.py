"""The pipeline, in order: source, split, synthetic, preprocess, assess.

Each function builds the asset of one stage. `anonymized_assets` has the stages of the anonymized side. `release_steps`
has the last stage of both sides, the release, and the gate before it. Each body loads its inputs, calls one function of
this package and attaches metadata; it makes no decisions. Inputs have no annotations, so that Dagster does not check
their types or describe their cells.
"""

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any

import dagster as dg
import pandas as pd

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.factorizing import factorize
from privacy_assets.contract.contract import MAX_FAILURES_SHOWN
from privacy_assets.contract.rule_expressions import Columns
from privacy_assets.contract.rules import rules_on, violations
from privacy_assets.disclosure.declared_unit import UnitExamination, examine_unit
from privacy_assets.display.numbers import number
from privacy_assets.errors import ContractError, InvalidTableError
from privacy_assets.mpucc.assess import MpuccAssessment, SearchProgress, assess_preprocessed
from privacy_assets.mpucc.people import number_synthetic_people
from privacy_assets.mpucc.preprocess import PreprocessedTables
from privacy_assets.orchestration.column_checks import (
    check_columns,
    check_unit,
    columns_check,
    refuse_links_of_removed_columns,
    unit_check,
)
from privacy_assets.orchestration.control_plans import judged_metadata, plan_metadata, train_fraction_of
from privacy_assets.orchestration.evidence.partition_people import keep_people_of_source
from privacy_assets.orchestration.memory_check import check_memory, memory_check
from privacy_assets.orchestration.private.guard import guarded, log_openly, speaks
from privacy_assets.orchestration.private.recorded import MADE_OF, MADE_WITH, UNIT
from privacy_assets.orchestration.private.resources import IS_LARGE
from privacy_assets.orchestration.settings.anonymized import MEMBERSHIP_CONTROL
from privacy_assets.orchestration.settings.engine import engine_of_stage
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.sources import TableFile, TableSource, read_source, upstream_inputs
from privacy_assets.orchestration.settings.spark_source import SparkSource
from privacy_assets.orchestration.settings.synthetic import AUTO, SYNTHETIC_PEOPLE, ExternalSynthetic, GivenSplit
from privacy_assets.orchestration.shown.limit_bars import limits_metadata
from privacy_assets.orchestration.shown.metadata import ADVICE, FOUND, score_metadata
from privacy_assets.orchestration.stages import (
    CHECKS_OF_STAGES,
    RESOURCES,
    asset_arguments,
    blocking_check,
    output_arguments,
    partition_key_of,
    progress_logger,
    storage_of,
    stored_artifact,
    stored_table,
)
from privacy_assets.pipeline.measure import figures_in_manifest, prepared_tables, released_columns
from privacy_assets.pipeline.settings.privacy_budget import NOISY_MODEL
from privacy_assets.release.metrics import MPUCC, figures_of
from privacy_assets.release.policy import SINGLED_OUT_ADVICE, Policy
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.column_files import ColumnFiles
from privacy_assets.storage.durable_files import make_private_directory
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.table import StoredTable, Table, fingerprint_of
from privacy_assets.synthesis.kept_rules import Plan, keep_rules, totals_of
from privacy_assets.synthesis.private.stored_model import from_artifact
from privacy_assets.synthesis.redraw import shown_redrawn
from privacy_assets.synthesis.split import people_on_both_sides, split_records, split_stored
from privacy_assets.synthesis.synthesize import make_synthetic_records
from privacy_assets.synthesis.synthetic_people import admit_synthetic

VIOLATED = "records_that_violate_a_rule"


def source_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset of the table as admitted by its contract."""
    source = release.source
    assert source is not None  # noqa: S101 - ReleaseSettings refuses a split without a source
    check = "source_keeps_its_contract"

    @dg.asset(
        **asset_arguments(release, "source"),
        description="The table as admitted by its contract: typed, checked, without direct identifiers.",
        ins=upstream_inputs(source=source),
        check_specs=[
            blocking_check(release, "source", check, CHECKS_OF_STAGES[check]),
            unit_check(release, "source"),
            columns_check(release, "source"),
            memory_check(release),
        ],
    )
    @guarded
    def source_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        storage, person = storage_of(context, release), release.contract.person
        counted: dict[str, Any] = {}
        examined: list[UnitExamination] = []

        def admit() -> Table:
            admitted: Table
            checked: pd.DataFrame | ColumnFiles
            if isinstance(source, SparkSource | TableFile):
                directory, key = storage.private_tables.base_path, storage.partition_key
                make_private_directory(directory)
                if isinstance(source, SparkSource):
                    jobs = f"{release.name} source"
                    admitted, checked = source.admit(release.contract, key, release.engine, jobs, directory)
                else:
                    admitted, checked = source.admit(release.contract, key, directory)
            else:
                table = read_source("source", source, storage.partition_key, inputs, release.engine, release.name)
                checked = release.contract.check(table)
                del table  # before its values are examined
                give_back_memory()
                admitted = release.contract.with_people(checked)
            examined.append(examine_unit(checked, release.contract))
            refuse_links_of_removed_columns(release, "source", checked, release.contract)
            keep_people_of_source(storage, checked, admitted)
            keys = list(release.contract.person_columns)
            own = [rule for rule in release.contract.rules if rule.check is None]
            if own:
                found = violations(own, Columns(checked))
                counted[VIOLATED] = dg.MetadataValue.json({name: int(each.sum()) for name, each in found.items()})
            if person is not None and (n_alike := _count_distinct(checked, keys) - admitted[person].nunique()):
                counted["person_keys_spelled_alike"] = n_alike
            return admitted

        def describe(admitted: Table) -> dict[str, Any]:
            planned = plan_metadata(release, admitted)
            _warn_of_split(context, planned)
            return planned | counted

        yield from _admitted(release, "source", check, admit, sides=release.sides, describe=describe, examined=examined)

    return source_stage


def _count_distinct(table: pd.DataFrame | ColumnFiles, keys: list[str]) -> int:
    """Count distinct keys, of which no part is missing."""
    return len(factorize(table[keys[0]], sort=True)[1]) if len(keys) == 1 else len(table[keys].drop_duplicates())


def membership_control_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset of people who are certainly not in the source, as admitted by the contract of the source."""
    control, source, contract = release.membership_control, release.source, release.contract
    assert control is not None and source is not None  # noqa: S101 - only called if there is a control
    check, person = "membership_control_keeps_the_contract", contract.person
    # Admitted people are only numbered, so both tables are read to find those in both. Spark's is not gathered for it.
    has_keys = person is not None and not isinstance(source, SparkSource)
    given: dict[str, TableSource] = {**({"source": source} if has_keys else {}), MEMBERSHIP_CONTROL: control}

    @dg.asset(
        **asset_arguments(release, MEMBERSHIP_CONTROL),
        description="Records of people who are not in the source, as admitted by its contract.",
        ins=upstream_inputs(**given),
        check_specs=[blocking_check(release, MEMBERSHIP_CONTROL, check, CHECKS_OF_STAGES["source_keeps_its_contract"])],
    )
    @guarded
    def membership_control_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        def admit() -> pd.DataFrame:
            place = partition_key_of(context, release.partitions_def), inputs, release.engine, release.name
            tables = [read_source(stage, each, *place) for stage, each in given.items()]
            for table in tables:
                contract.require_known_columns(table)
            admitted = contract.admit(pd.concat(tables, ignore_index=True))
            n_source = len(admitted) - len(tables[-1])
            others = admitted[n_source:].reset_index(drop=True)
            if person is None:
                return others
            n_shared = people_on_both_sides(admitted[:n_source], others, person)
            if n_shared:
                raise InvalidTableError(
                    f"{n_shared} of {others[person].nunique()} people of the control are people of the source. "
                    "Expected people who are certainly not in it. Remove them from the control. Nothing was stored."
                )
            return others.assign(**{person: pd.factorize(others[person])[0]})

        yield from _admitted(release, MEMBERSHIP_CONTROL, check, admit)

    return membership_control_stage


def split_assets(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the assets of the records that a synthesizer may see and of the records that it never sees."""
    split = release.split
    given: dict[str, TableSource] = (
        {"original": split.original, "control": split.control} if isinstance(split, GivenSplit) else {}
    )
    check = "no_person_is_on_both_sides"
    person = release.contract.person
    # A share that is chosen by a rehearsal needs the whole table.
    is_large = {IS_LARGE: release.related is None and getattr(split, "train_fraction", AUTO) != AUTO}

    @dg.multi_asset(
        name=f"{release.name}__split",
        group_name=release.name,
        outs={
            "original": dg.AssetOut(
                **output_arguments(release, "original"), description="Records that the synthesizer may see."
            ),
            "control": dg.AssetOut(
                **output_arguments(release, "control"), description="Records of people whom the synthesizer never sees."
            ),
        },
        ins=upstream_inputs(**given) if given else {"source": dg.AssetIn(release.key("source"), metadata=is_large)},
        check_specs=[
            blocking_check(release, "original", check, CHECKS_OF_STAGES[check]),
            *([unit_check(release, "original"), columns_check(release, "original")] if given else []),
        ],
        partitions_def=release.partitions_def,
        required_resource_keys=RESOURCES,
    )
    @guarded
    def split_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        sides: tuple[pd.DataFrame, pd.DataFrame]
        examined, divided, plan = None, dict[str, Any](), None
        if isinstance(split, GivenSplit):
            sides, examined = _given_sides(release, given, partition_key_of(context, release.partitions_def), inputs)
        else:
            plan = storage_of(context, release).recorded("source").control_plan
            source = inputs["source"]
            fraction = train_fraction_of(release, source)
            divide: Any = split_stored if isinstance(source, StoredTable) else split_records
            sides = divide(source, train_fraction=fraction, seed=split.seed, person=person)
            divided = {"train_fraction": fraction} | ({"asked": AUTO} if split.train_fraction == AUTO else {})
        on_both = people_on_both_sides(*sides, person) if person is not None else 0
        yield _split_check(release, check, person, on_both)
        if on_both:
            raise InvalidTableError(
                f"{on_both} people have records in both original and control. The control must contain only people "
                "whom the synthesizer has not seen. Split the records by person. Nothing was stored."
            )
        judged = judged_metadata(release, *sides, plan)
        if examined is not None:
            # Otherwise the metadata of the source already has it.
            _warn_of_split(context, judged)
            yield from check_unit(release, "original", examined)
            yield from check_columns(release, "original", pd.concat(sides, ignore_index=True), release.sides)
        made_with = release.for_manifest()["split"] | divided
        made = {MADE_WITH: made_with, MADE_OF: _fingerprints(inputs, "source")}
        for stage, table in zip(("original", "control"), sides, strict=True):
            more = judged if stage == "control" else None if examined is None else _recorded_unit(examined)
            yield stored_table(release, stage, table, made, None if given else "source", more)

    return split_stage


def synthetic_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset of the synthetic records, made here or elsewhere."""
    synthetic = release.synthetic
    assert synthetic is not None  # noqa: S101 - only called for releases with a synthetic side
    check = "synthetic_keeps_the_contract"
    brought_in = isinstance(synthetic, ExternalSynthetic)
    made_of = "original" if release.private is None else NOISY_MODEL
    outs = {"synthetic": "Synthetic records made elsewhere." if brought_in else "Synthetic records."}
    of_people = "The synthetic person of each synthetic record, which is compared and not released."
    outs |= dict.fromkeys(release.stages_of_synthetic_people, of_people)

    @dg.multi_asset(
        name=f"{release.name}__synthetic",
        group_name=release.name,
        outs={stage: dg.AssetOut(**output_arguments(release, stage), description=own) for stage, own in outs.items()},
        ins=upstream_inputs(synthetic=synthetic.source)
        if isinstance(synthetic, ExternalSynthetic)
        else {made_of: dg.AssetIn(release.key(made_of))},
        check_specs=[
            blocking_check(release, "synthetic", check, CHECKS_OF_STAGES[check]),
            *([columns_check(release, "synthetic")] if brought_in else []),
        ],
        partitions_def=release.partitions_def,
        required_resource_keys=RESOURCES,
    )
    @guarded
    def synthetic_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        made_with = release.for_manifest()["synthetic"]
        if isinstance(synthetic, ExternalSynthetic):
            partition_key = partition_key_of(context, release.partitions_def)
            made = read_source("synthetic", synthetic.source, partition_key, inputs, release.engine, release.name)
        elif synthetic.private is not None:
            model = from_artifact(inputs[NOISY_MODEL], synthetic.private.domain(release.contract))
            rules, n = rules_on(release.contract.rules, release.contract.released_columns), synthetic.n_records
            made = model.sample(n, seed=synthetic.seed)
            if rules:
                # They are public, so that what is drawn again has the guarantee, too.
                plan = Plan(list(made.columns), rules, (), (), totals_of(rules, made))
                again = keep_rules(lambda n, seed: model.sample(n, seed=seed), len(made), synthetic.seed, plan)
                made, made_with = again.table, made_with | {"rules": {"redrawn": again.redrawn, "left": again.left}}
        else:
            original, person = inputs["original"], release.contract.person
            with engine_of_stage(release.engine, release.name, "synthetic") as engine:
                made, redrawn, kept = make_synthetic_records(
                    released_columns(release, original),
                    synthetic.method,
                    synthetic.n_records,
                    synthetic.seed,
                    synthetic.settings or None,
                    None if person is None else original[person],
                    engine=engine,
                    rules=release.contract.rules,
                )
            made_with |= {} if redrawn is None else {"redrawn": shown_redrawn(redrawn)}
            made_with |= {} if kept is None else {"rules": dict(kept)}
        upstream = None if brought_in or release.private is not None else "original"
        how = {MADE_WITH: made_with, MADE_OF: _fingerprints(inputs, made_of)}
        sides, key = ("synthetic",) if brought_in else (), release.synthetic_person
        people = None if key is None else pd.DataFrame({key: number_synthetic_people(made, key)})
        admit = partial(release.contract.admit_synthetic, made)
        admit = partial(admit_synthetic, release.contract, made, people) if brought_in else admit
        table = yield from _admitted(release, "synthetic", check, admit, how, upstream, sides)
        if people is not None:
            yield stored_table(release, SYNTHETIC_PEOPLE, people, {MADE_OF: {"synthetic": fingerprint_of(table)}})

    return synthetic_stage


def preprocessed_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset of the three tables at the same precision, deduplicated, as integer codes."""
    stages = ("original", "control", "synthetic")
    generalizes = release.generalize_synthetic is not None

    @dg.asset(
        **asset_arguments(release, "preprocessed"),
        description="Original, control and synthetic at the same precision, deduplicated, as integer codes.",
        # Labels are made from whole tables.
        ins={release.synthetic_stage: dg.AssetIn(release.key(release.synthetic_stage))}
        | {stage: dg.AssetIn(release.key(stage), metadata={IS_LARGE: not generalizes}) for stage in stages},
    )
    @guarded
    def preprocessed_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202, ARG001
        # Only for the assessed table, because a precision declared for values does not apply to labels.
        made_of = _fingerprints(inputs, "original", "control", *([] if generalizes else ["synthetic"]))
        generalized = None
        if generalizes:
            generalized = Anonymization.from_artifact(inputs["generalized_synthetic"])
            made_of["generalized_synthetic"] = inputs["generalized_synthetic"].fingerprints["table"]
        tables = inputs["original"], inputs["synthetic"], inputs["control"]
        metadata = {f"{stage}_records": len(inputs[stage]) for stage in stages}
        yield stored_artifact(prepared_tables(release, tables, generalized).to_artifact(), metadata, made_of)

    return preprocessed_stage


def mpucc_assessment_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset of the mpUCC assessment of the synthetic records."""

    @dg.asset(
        **asset_arguments(release, MPUCC, kinds={"python"}),
        description="Synthetic records that single out an original, the columns by which they do, and whether chance "
        "explains them.",
        ins={"preprocessed": dg.AssetIn(release.key("preprocessed"), metadata={IS_LARGE: True})},
    )
    @guarded
    def mpucc_assessment_stage(context, preprocessed):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        with engine_of_stage(release.engine, release.name, MPUCC) as engine:
            assessment = assess_preprocessed(
                PreprocessedTables.from_artifact(preprocessed),
                release.assessment,
                progress=progress_logger(context, _combinations_checked),
                engine=engine,
            )
        made_of = {**preprocessed.made_of, "preprocessed": preprocessed.digest}
        pictures = {
            "identified_by_combination_size": assessment.drawn("sizes"),
            "columns_that_drive_the_risk": assessment.drawn("columns"),
        }
        artifact = assessment.to_artifact().with_pictures(pictures)
        yield stored_artifact(artifact, _assessment_metadata(assessment, release.policy), made_of)

    return mpucc_assessment_stage


def _admitted(
    release: ReleaseSettings,
    stage: str,
    check: str,
    admit: Callable[[], Table],
    made: dict[str, Any] | None = None,
    made_of: str | None = None,
    sides: Sequence[str] = (),
    describe: Callable[[Table], dict[str, Any]] = lambda _: {},
    examined: Sequence[UnitExamination] = (),
) -> Generator[dg.MaterializeResult[Any] | dg.AssetCheckResult, None, Table]:
    """Yield and return the table that the contract admits, or yield the failed check with its counts, and then raise.

    Before anything is stored, columns that would be released unchanged on one of the `sides` are examined, and it is
    decided on whose the rows are if `admit` has `examined` that. The metadata that `describe` returns for the table is
    shown with it.
    """
    violation: ContractError | None = None
    try:
        table = admit()
    except ContractError as error:
        if not speaks(error):
            raise
        violation = error
    if violation is not None:
        counts = {f"{column}: {rule}": count for column, rule, count in violation.failures[:MAX_FAILURES_SHOWN]}
        yield dg.AssetCheckResult(check_name=check, passed=False, metadata=counts, description=str(violation))
        raise violation
    give_back_memory()
    yield dg.AssetCheckResult(check_name=check, passed=True)
    for each in examined:
        yield from check_unit(release, stage, each)
    if sides:
        yield from check_columns(release, stage, table, sides)
    if stage == "source":
        yield check_memory(release, table)
    more = {name: own for each in examined for name, own in _recorded_unit(each).items()}
    yield stored_table(release, stage, table, made, made_of, describe(table) | more)
    return table


def _recorded_unit(examined: UnitExamination) -> dict[str, Any]:
    return {UNIT: dg.MetadataValue.json(examined.to_json())}


def _warn_of_split(context: Any, judged: Mapping[str, Any]) -> None:
    if FOUND in judged:
        log_openly(context, f"{judged[FOUND]} {judged[ADVICE]}", logging.WARNING)


def _split_check(release: ReleaseSettings, check: str, person: str | None, on_both: int) -> dg.AssetCheckResult:
    unknown = person is None and isinstance(release.split, GivenSplit)
    return dg.AssetCheckResult(
        check_name=check,
        asset_key=release.key("original"),
        passed=not on_both and not unknown,
        severity=dg.AssetCheckSeverity.WARN if unknown else dg.AssetCheckSeverity.ERROR,
        description="The contract has no person column, so it is unknown whether a person is in both."
        if unknown
        else f"{on_both} people have records in both original and control.",
        metadata={"people_on_both_sides": on_both, "person_column": person or "none: each row counts as a person"},
    )


def _given_sides(
    release: ReleaseSettings, given: dict[str, TableSource], partition_key: str | None, inputs: dict[str, Any]
) -> tuple[tuple[pd.DataFrame, pd.DataFrame], UnitExamination]:
    """Admit and examine both sides as one table, so that each person has the same code on both."""
    sides = [
        read_source(stage, source, partition_key, inputs, release.engine, release.name)
        for stage, source in given.items()
    ]
    for side in sides:
        # Concatenating them would give the columns of both.
        release.contract.require_known_columns(side)
    converted = release.contract.check(pd.concat(sides, ignore_index=True))
    refuse_links_of_removed_columns(release, "original", converted, release.contract)
    examined, admitted = examine_unit(converted, release.contract), release.contract.with_people(converted)
    n_originals = len(sides[0])
    parts = admitted.iloc[:n_originals].reset_index(drop=True), admitted.iloc[n_originals:].reset_index(drop=True)
    return parts, examined


def _fingerprints(inputs: dict[str, Any], *stages: str) -> dict[str, str]:
    found = {stage: inputs[stage] for stage in stages if stage in inputs}
    return {stage: each.digest if isinstance(each, Artifact) else fingerprint_of(each) for stage, each in found.items()}


def _assessment_metadata(assessment: MpuccAssessment, policy: Policy) -> dict[str, Any]:
    metrics = figures_of(MPUCC, figures_in_manifest(assessment))
    figures = {name: value for name, value in metrics.items() if value is not None}
    score = assessment.scores.get("privacy_risk_score")
    failed = {limit.metric for limit in policy.limits if limit.outcome(figures) == "not met"}
    found: dict[str, Any] = {FOUND: "No synthetic record was assessed."}
    if score is not None:
        is_met = "privacy_risk_score" not in failed
        outcome = "it fails no limit; the release decides on the others" if is_met else "the policy does not accept it"
        found = {
            FOUND: f"The privacy_risk_score is {number(score)}: {outcome}.",
            **({} if is_met else {ADVICE: SINGLED_OUT_ADVICE}),
        }
    return found | limits_metadata(policy, "synthetic", figures) | score_metadata(dict(assessment.scores) | figures)


def _combinations_checked(progress: SearchProgress) -> str:
    return (
        f"{progress.stage}: combinations of {progress.combo_size} of at most {progress.max_combo_size} columns, "
        f"{progress.n_done:,} of {progress.n_candidates:,} done; {progress.combinations_checked:,} checked so far, "
        f"{progress.n_identified:,} records identified"
    )
