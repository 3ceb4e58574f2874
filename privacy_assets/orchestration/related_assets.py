"""The pipeline of related tables, in order: source, split, synthetic, assess by combinations of columns.

Each stage is one asset with all tables, so that no table can be of another run than its siblings. The assessments of
disclosure and utility, and the release, are those of one table. The anonymized side begins with one table that is made
of them, and is then that of a single table, too.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import dagster as dg
import pandas as pd

from privacy_assets.anonymization.one_table import OneTable
from privacy_assets.contract.contract import MAX_FAILURES_SHOWN
from privacy_assets.contract.related import PEOPLE, RelatedTables, columns_that_repeat_the_person, content_of
from privacy_assets.contract.related_contracts import RelatedContracts
from privacy_assets.disclosure.declared_unit import UnitExamination, examine_unit
from privacy_assets.display.numbers import number
from privacy_assets.errors import ContractError, InvalidTableError
from privacy_assets.mpucc.results import SearchProgress
from privacy_assets.mpucc.settings import MpuccSettings
from privacy_assets.mpucc.views import MpuccOfViews, assess_views
from privacy_assets.orchestration.column_checks import (
    check_columns,
    check_unit,
    columns_check,
    refuse_links_of_removed_columns,
    unit_check,
)
from privacy_assets.orchestration.control_plans import require_large_enough
from privacy_assets.orchestration.evidence.related_people import keep_people
from privacy_assets.orchestration.memory_check import check_memory_of_related, memory_check
from privacy_assets.orchestration.private.guard import guarded, speaks
from privacy_assets.orchestration.private.recorded import MADE_OF, MADE_WITH, UNIT
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.sources import read_source, upstream_inputs
from privacy_assets.orchestration.settings.synthetic import Split, Synthesis
from privacy_assets.orchestration.shown.metadata import FOUND
from privacy_assets.orchestration.stages import (
    CHECKS_OF_STAGES,
    RESOURCES,
    asset_arguments,
    blocking_check,
    output_arguments,
    progress_logger,
    storage_of,
    stored_artifact,
    stored_table,
)
from privacy_assets.pipeline.related import prepared_views
from privacy_assets.release.evidence import SPLIT_STAGES
from privacy_assets.release.gate import LINKED_CHECK
from privacy_assets.release.metrics import MPUCC
from privacy_assets.synthesis.split import people_on_both_sides, split_records
from privacy_assets.synthesis.synthesize import make_related

T = TypeVar("T")
REPEATS_CHECK = "no_column_repeats_the_person"
ONE_TABLE_CHECK = "no_row_shows_its_person"
ONE_TABLE_DESCRIPTION = "Figures can be made of the rows, or what leaves of them differs within a person."


def related_assets(release: ReleaseSettings) -> list[dg.AssetsDefinition]:
    """Build the assets of related tables before those that are the same for one table."""
    related = release.related
    assert related is not None  # noqa: S101 - only called if there are children
    assets = [_source_asset(release, related)]
    assets += [_split_assets(release, related)] if release.is_split else []
    if "synthetic" in release.sides:
        assets += [_synthetic_asset(release, related), _mpucc_asset(release, related)]
    if release.one_table is None:
        return assets
    stages = ("original", "control") if release.is_of_originals else ("source",)
    return [*assets, *(_one_table_asset(release, release.one_table, stage) for stage in stages)]


def _source_asset(release: ReleaseSettings, contracts: RelatedContracts) -> dg.AssetsDefinition:
    check = "source_keeps_its_contract"
    given = dict(zip(contracts.tables, release.sources.items(), strict=True))

    @dg.asset(
        **asset_arguments(release, "source"),
        description="The people and their rows as admitted by their contracts: typed, checked, with codes as keys.",
        ins=upstream_inputs(**release.sources),
        check_specs=[
            blocking_check(release, "source", check, CHECKS_OF_STAGES[check]),
            blocking_check(
                release, "source", LINKED_CHECK, "Every row belongs to a person, and every person to a row."
            ),
            dg.AssetCheckSpec(
                REPEATS_CHECK,
                asset=release.key("source"),
                description="No column of a child table is the same in all rows of each person.",
            ),
            unit_check(release, "source"),
            columns_check(release, "source"),
            memory_check(release),
        ],
    )
    @guarded
    def related_source_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        tables = {
            name: read_source(stage, source, None, inputs, release.engine, release.name)
            for name, (stage, source) in given.items()
        }
        checked = yield from _checked(check, lambda: contracts.check(tables))
        admitted = yield from _checked(LINKED_CHECK, lambda: contracts.related(checked))
        yield _repeats_result(admitted)
        examined = _examined(contracts, admitted.by_person(checked))
        yield from check_unit(release, "source", examined)
        _refuse_links_of_unlinked_rows(release, contracts, checked)
        # What leaves with anonymized records is examined in the one table that is made of these.
        yield from check_columns(release, "source", admitted, [side for side in release.sides if side == "synthetic"])
        yield check_memory_of_related(release, admitted)
        unit = {UNIT: dg.MetadataValue.json({name: own.to_json() for name, own in examined.items()})}
        keep_people(storage_of(context, release), checked[PEOPLE], admitted)
        yield stored_table(release, "source", admitted, more=unit)

    asset: dg.AssetsDefinition = related_source_stage
    return asset


def _split_assets(release: ReleaseSettings, contracts: RelatedContracts) -> dg.AssetsDefinition:
    check, split = "no_person_is_on_both_sides", release.split
    assert isinstance(split, Split)  # noqa: S101 - refused with children otherwise
    about = ("People that the synthesizer may see", "People whom the synthesizer never sees")

    @dg.multi_asset(
        name=f"{release.name}__split",
        group_name=release.name,
        outs={
            stage: dg.AssetOut(**output_arguments(release, stage), description=f"{words}, with all their rows.")
            for stage, words in zip(SPLIT_STAGES, about, strict=True)
        },
        ins={"source": dg.AssetIn(release.key("source"))},
        check_specs=[blocking_check(release, "original", check, CHECKS_OF_STAGES[check])],
        required_resource_keys=RESOURCES,
    )
    @guarded
    def related_split_stage(context, source):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG001
        original, control = split_records(source, train_fraction=float(split.train_fraction), seed=split.seed)
        n_on_both = people_on_both_sides(original.people, control.people, contracts.person)
        yield dg.AssetCheckResult(
            check_name=check,
            asset_key=release.key("original"),
            passed=not n_on_both,
            description=f"{n_on_both} people are in both original and control.",
            metadata={"people_on_both_sides": n_on_both, "person_column": contracts.person},
        )
        if n_on_both:
            raise InvalidTableError(f"{n_on_both} people are in both original and control. Nothing was stored.")
        require_large_enough(release, len(original.people), len(control.people))
        made = {MADE_WITH: release.for_manifest()["split"], MADE_OF: {"source": content_of(source)}}
        for stage, tables in zip(SPLIT_STAGES, (original, control), strict=True):
            yield stored_table(release, stage, tables, made)

    return related_split_stage


def _synthetic_asset(release: ReleaseSettings, contracts: RelatedContracts) -> dg.AssetsDefinition:
    check, synthetic = "synthetic_keeps_the_contract", release.synthetic
    assert isinstance(synthetic, Synthesis)  # noqa: S101 - refused with children otherwise

    @dg.asset(
        **asset_arguments(release, "synthetic"),
        description="Synthetic people and their rows.",
        ins={"original": dg.AssetIn(release.key("original"))},
        check_specs=[blocking_check(release, "synthetic", check, CHECKS_OF_STAGES[check])],
    )
    @guarded
    def related_synthetic_stage(context, original):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG001
        settings = synthetic.settings or None
        rules = {name: contract.rules for name, contract in contracts.tables.items()}
        made = make_related(original, synthetic.method, synthetic.n_records, synthetic.seed, settings, rules)
        tables = yield from _checked(check, lambda: contracts.admit_synthetic(made.tables))
        made_with = release.for_manifest()["synthetic"] | ({"rules": made.rules} if made.rules else {})
        how = {MADE_WITH: made_with, MADE_OF: {"original": content_of(original)}}
        yield stored_table(release, "synthetic", tables, how)

    asset: dg.AssetsDefinition = related_synthetic_stage
    return asset


def _one_table_asset(release: ReleaseSettings, one_table: OneTable, stage: str) -> dg.AssetsDefinition:
    """Build the asset of the one table that is anonymized, or of that of the control, which is compared with it."""
    of_one, made = release.on_side("anonymized"), release.as_one_table(stage)
    examines = made == release.source_of_anonymized
    what = "People with figures of their rows" if one_table.unlinked is None else "Rows without keys, with their person"

    @dg.asset(
        **asset_arguments(of_one, made),
        description=f"{what}, made of the tables of {stage}.",
        ins={"tables": dg.AssetIn(release.key(stage))},
        check_specs=[
            blocking_check(of_one, made, ONE_TABLE_CHECK, ONE_TABLE_DESCRIPTION),
            *([columns_check(of_one, made)] if examines else []),
        ],
    )
    @guarded
    def one_table_stage(context, tables):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG001
        table = yield from _checked(ONE_TABLE_CHECK, lambda: one_table.make(tables))
        if examines:
            yield from check_columns(of_one, made, table, ["anonymized"])
        how = {MADE_WITH: one_table.to_json(), MADE_OF: {stage: content_of(tables)}}
        yield stored_table(of_one, made, table, how)

    asset: dg.AssetsDefinition = one_table_stage
    return asset


def _mpucc_asset(release: ReleaseSettings, contracts: RelatedContracts) -> dg.AssetsDefinition:
    stages = (*SPLIT_STAGES, "synthetic")
    settings = MpuccSettings(confidence_level=release.policy.required.confidence_level)

    @dg.asset(
        **asset_arguments(release, MPUCC, kinds={"python"}),
        description="Synthetic records that single out an original, and the columns by which they do, in each view of "
        "the tables; other people are as unique in wide views, so no limit is on these figures.",
        ins={stage: dg.AssetIn(release.key(stage)) for stage in stages},
    )
    @guarded
    def related_mpucc_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        views = prepared_views(contracts, (inputs["original"], inputs["synthetic"], inputs["control"]))
        found = assess_views(views, settings, lambda view: progress_logger(context, _combinations_checked_in(view)))
        made_of = {stage: content_of(inputs[stage]) for stage in stages}
        yield stored_artifact(found.to_artifact(), _shown(found), made_of)

    asset: dg.AssetsDefinition = related_mpucc_stage
    return asset


def _shown(found: MpuccOfViews) -> dict[str, Any]:
    scores = {name: own["privacy_risk_score"] for name, own in found.figures.items()}
    said = ", ".join(f"{name} {number(score)}" for name, score in scores.items() if score is not None)
    sentence = f"The privacy_risk_score by view: {said or 'none'}. The release decides by the joint test of disclosure."
    pictures: dict[str, Any] = {f"privacy_risk_score of {name}": own for name, own in scores.items() if own is not None}
    return {FOUND: sentence, **pictures}


def _combinations_checked_in(view: str) -> Callable[[SearchProgress], str]:
    return lambda progress: (
        f"{view}: {progress.stage}, {progress.combinations_checked:,} combinations checked so far, "
        f"{progress.n_identified:,} records identified"
    )


def _checked(check: str, make: Callable[[], T]) -> Generator[dg.AssetCheckResult, None, T]:
    """Yield whether tables are as they must be and return them, or yield all that was counted and raise."""
    problem: InvalidTableError | None = None
    try:
        found = make()
    except InvalidTableError as error:
        if not speaks(error):
            raise
        problem = error
    if problem is not None:
        failures = problem.failures if isinstance(problem, ContractError) else ()
        counts = {f"{column}: {rule}": count for column, rule, count in failures[:MAX_FAILURES_SHOWN]}
        yield dg.AssetCheckResult(check_name=check, passed=False, metadata=counts, description=str(problem))
        raise problem
    yield dg.AssetCheckResult(check_name=check, passed=True)
    return found


def _refuse_links_of_unlinked_rows(
    release: ReleaseSettings, contracts: RelatedContracts, checked: Mapping[str, pd.DataFrame]
) -> None:
    """Refuse rows that leave without a key if their values link them as a removed column does."""
    one_table = release.one_table
    if one_table is None or one_table.unlinked is None:
        return
    contract, table = contracts.tables[one_table.unlinked], checked[one_table.unlinked]
    renamed = table.rename(columns={name: one_table.named(name) for name in contract.released_columns})
    refuse_links_of_removed_columns(release.on_side("anonymized"), "source", renamed, contract)


def _examined(contracts: RelatedContracts, checked: Mapping[str, pd.DataFrame]) -> dict[str, UnitExamination]:
    """Examine whose the rows of each table are; that a person has one row is as it must be."""
    found = {name: examine_unit(table, contracts.tables[name]) for name, table in checked.items()}
    return {
        name: replace(own, findings=tuple(each for each in own.findings if each.kind != "never_repeats"))
        for name, own in found.items()
    }


def _repeats_result(tables: RelatedTables) -> dg.AssetCheckResult:
    found = columns_that_repeat_the_person(tables)
    advice = f"Move them to {PEOPLE!r}, because in synthetic rows they would differ."
    said = "; ".join(f"{columns} of {name!r}" for name, columns in found.items())
    return dg.AssetCheckResult(
        check_name=REPEATS_CHECK,
        passed=not found,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"The same in all rows of each person: {said}. {advice}"
        if found
        else "Every column differs between the rows of somebody.",
    )
