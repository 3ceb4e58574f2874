"""The stages of the anonymized side, in order: anonymize, withhold, assess.

`assets` has the stages before these, and `release_steps` the stage after them. As there, each body loads its inputs,
calls one function of this package and attaches metadata.
"""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd

from privacy_assets.anonymization.anonymize import anonymize_with
from privacy_assets.anonymization.anonymized_table import (
    describe_columns,
    groups_of_linked_rows,
    linking_columns,
    measure_anonymity,
    models_that_fail,
    original_columns,
)
from privacy_assets.anonymization.measured_loss import require_measured
from privacy_assets.anonymization.records_of_people import (
    PEOPLE_WITH_SEVERAL_RECORDS,
    RecordsOfPeople,
    count_records_of_people,
    note_on_several_records,
    require_one_record_each,
)
from privacy_assets.anonymization.result import Anonymization, drawn_classes
from privacy_assets.anonymization.withheld_records import note_on_tight_ends, withhold_records_at_risk
from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.columns.scales import scale_digests
from privacy_assets.display.progress_bar import StageProgress
from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.evidence.published import published_besides
from privacy_assets.orchestration.private.guard import guarded, log_openly
from privacy_assets.orchestration.private.recorded import MADE_OF, MADE_WITH
from privacy_assets.orchestration.private.resources import IS_LARGE
from privacy_assets.orchestration.settings.anonymized import OtherReleaseSettings
from privacy_assets.orchestration.settings.engine import engine_of_stage, why_gathered
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.sources import read_source, upstream_inputs
from privacy_assets.orchestration.shown.metadata import advice_table, score_metadata, settings_metadata, table_metadata
from privacy_assets.orchestration.shown.pictures import picture_metadata
from privacy_assets.orchestration.stages import (
    asset_arguments,
    blocking_check,
    partition_key_of,
    progress_logger,
    storage_of,
    stored_artifact,
)
from privacy_assets.reidentification.assess import assess_reidentification
from privacy_assets.reidentification.membership import assess_membership
from privacy_assets.reidentification.other_releases import OtherRelease, join_original, require_described_columns
from privacy_assets.release.files import read_anonymized_release
from privacy_assets.release.metrics import ANONYMITY, REIDENTIFICATION, SEMANTIC, STATISTICS, figures_of
from privacy_assets.semantic_risk.assess import assess_semantic_risk_with
from privacy_assets.semantic_risk.result import LACKED_COLUMNS, SemanticAssessment, SemanticProgress
from privacy_assets.semantic_risk.settings import SemanticSettings, smallest_acceptable
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.fingerprint import kept_fingerprint
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.table import fingerprint_of
from privacy_assets.synthesis.generalized import number_distinct_records

CLASSES_CHECK = "every_class_has_at_least_k_records"
CLASSES_DESCRIPTION = "Every class of the generalized table has the required k, l and t, as measured."
OTHER_RELEASE_KIND = "OtherRelease"
SECRET_BITS = 62


def generalized_asset(release: ReleaseSettings, stage: str, made_of: str) -> dg.AssetsDefinition:
    """Build the asset of the source records, or of the synthetic ones, generalized into classes of at least k."""
    settings = release.generalize_synthetic if made_of == "synthetic" else release.anonymized
    assert settings is not None  # noqa: S101 - only called if this side is asked for
    generalization = release.generalization(made_of)
    asked = generalization.settings
    is_synthetic = made_of == "synthetic"
    unit = "people" if asked.subject == release.contract.person is not None else "records"

    @dg.asset(
        **asset_arguments(release, stage),
        description=f"Records of {made_of} in classes of at least {asked.k} {unit} with equal quasi-identifiers; all "
        "other columns are unchanged.",
        ins={"table": dg.AssetIn(release.key(made_of), metadata={IS_LARGE: not is_synthetic})},
        check_specs=[blocking_check(release, stage, CLASSES_CHECK, CLASSES_DESCRIPTION)],
    )
    @guarded
    def generalized_stage(context, table):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        content = fingerprint_of(table)
        directory = storage_of(context, release).private_tables.base_path
        if is_synthetic:
            table = number_distinct_records(table)
        used = replace(asked, seed=secrets.randbits(SECRET_BITS)) if generalization.draws_seed else asked
        progress = progress_logger(context, StageProgress.in_words)
        gathered = why_gathered(release.engine, generalization, table)
        if gathered:
            log_openly(context, f"The anonymization {gathered}, so all {len(table):,} records are cut here.")
        with engine_of_stage(release.engine, release.name, stage) as engine:
            anonymization = anonymize_with(
                table, used, generalization.hierarchies, progress=progress, engine=engine, directory=directory
            )
            give_back_memory()
            losses = require_measured(anonymization, table, generalization.hierarchies)
            contract, subject = release.contract, asked.subject
            report, statistics = measure_anonymity(anonymization, contract, table, subject, losses, engine)
        figures = figures_of(ANONYMITY, {ANONYMITY: report.to_header(), STATISTICS: statistics})
        failed = models_that_fail(anonymization, report)
        shown = score_metadata(figures)
        if failed:
            yield dg.AssetCheckResult(
                check_name=CLASSES_CHECK, passed=False, metadata=shown, description="; ".join(failed)
            )
            raise InvalidTableError(
                f"The classes do not meet the requirements: {'; '.join(failed)}. Nothing was stored."
            )
        artifact = replace(anonymization.to_artifact(), made_of={made_of: content})
        artifact = artifact.with_pictures(drawn_classes(anonymization, table, settings.pictured))
        made_with = {name: value for name, value in anonymization.settings.items() if name != "seed"}
        yield stored_artifact(
            artifact,
            {"classes": report.n_classes, **shown}
            | table_metadata(
                anonymization.table,
                artifact.fingerprints["table"],
                _roles_of(release, anonymization),
                (release.key(made_of), original_columns(anonymization)),
                release.contract.descriptions,
            )
            | {MADE_WITH: settings_metadata(made_with), MADE_OF: dg.MetadataValue.json(dict(artifact.made_of))},
        )
        yield dg.AssetCheckResult(
            check_name=CLASSES_CHECK,
            passed=True,
            metadata=shown,
            description=f"{report.n_classes:,} classes, the smallest of "
            f"{figures['smallest_class']:,.0f} {unit}; at least {asked.k} were required.",
        )

    return generalized_stage


def suppressed_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset of the anonymized records without those that no acceptable subset contains."""
    settings = release.semantic_risk_settings
    risk_limit, anonymized_as = settings.risk_limit, release.anonymized
    assert risk_limit is not None and anonymized_as is not None  # noqa: S101 - settings that withhold need both
    of_limit_alone = SemanticSettings(risk_limit=risk_limit, semantic_risk=False, advice=False)

    @dg.asset(
        **asset_arguments(release, "suppressed"),
        description=f"The largest subset of the anonymized records with a basic semantic risk of at most "
        f"{risk_limit:g} within it (at least {smallest_acceptable(risk_limit):,} records), in classes that still meet "
        "the requirements.",
        ins={
            "source": dg.AssetIn(release.key(release.source_of_anonymized)),
            "anonymized": dg.AssetIn(release.key("anonymized")),
        },
    )
    @guarded
    def suppressed_stage(context, source, anonymized):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        anonymization = Anonymization.from_artifact(anonymized)
        if release.contract.person is not None:
            require_one_record_each(_records_of_people(release, anonymization, source))
        scales = release.semantic_scales_of(anonymization)
        progress = progress_logger(context, _semantic_stage)

        def is_acceptable(table):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            return (
                assess_semantic_risk_with(table, scales, of_limit_alone, anonymization.model, progress=progress)
                .records["is_kept"]
                .to_numpy(dtype=bool)
            )

        kept = withhold_records_at_risk(anonymization, source, release.contract, is_acceptable)
        note = note_on_tight_ends(kept)
        notes = {"notes": [note]} if note else {}
        artifact = replace(kept.to_artifact(), made_of={"anonymized": anonymized.digest})
        artifact = artifact.with_pictures(drawn_classes(kept, source, anonymized_as.pictured))
        n_before, n_kept = len(anonymization.table), len(kept.table)
        withheld = {
            "records_kept": n_kept,
            "records_withheld": n_before - n_kept,
            "share_withheld": 1 - n_kept / n_before,
        }
        yield stored_artifact(
            artifact,
            table_metadata(
                kept.table,
                artifact.fingerprints["table"],
                _roles_of(release, kept),
                (release.key("anonymized"), {name: name for name in kept.table.columns}),
                release.contract.descriptions,
            )
            | score_metadata(withheld)
            | ({"notes": note} if note else {})
            | {
                MADE_WITH: dg.MetadataValue.json({"risk_limit": risk_limit, **withheld, **notes}),
                MADE_OF: dg.MetadataValue.json(dict(artifact.made_of)),
            },
        )

    return suppressed_stage


def other_release_asset(release: ReleaseSettings, other: OtherReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset of another release of the same people, from a directory or a table."""
    sources = {} if other.table is None else {other.stage: other.table}

    @dg.asset(
        **asset_arguments(release, other.stage),
        description=f"The release {other.name} of the same people, which an attacker may also have.",
        ins=upstream_inputs(**sources),
    )
    @guarded
    def other_release_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        if other.directory is not None:
            table, model, quasi_identifiers = read_anonymized_release(Path(other.directory))
        else:
            assert other.table is not None and other.model is not None  # noqa: S101 - checked by the settings
            partition_key = partition_key_of(context, release.partitions_def)
            table = read_source(other.stage, other.table, partition_key, inputs, release.engine, release.name)
            model, quasi_identifiers = other.model, None
            known = (*release.contract.columns, *(other.quasi_identifiers or ()))
            require_described_columns(other.name, table, other.key, model, known)
        if other.quasi_identifiers is not None:
            quasi_identifiers = list(other.quasi_identifiers)
        header = {"model": model.to_json(), "quasi_identifiers": quasi_identifiers}
        artifact = Artifact(OTHER_RELEASE_KIND, header, {"table": table})
        yield stored_artifact(artifact, table_metadata(table, artifact.fingerprints["table"], {}))

    return other_release_stage


def reidentification_assessment_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that assesses re-identification by attackers who know some columns."""
    settings = release.reidentification_settings
    others = settings.other_releases
    keys_of_others = {name: key for other in others for name, key in other.asset_keys(release.name).items()}
    stage, origin, control = release.anonymized_stage, release.source_of_anonymized, release.control_of_anonymized
    keys = {name: release.key(name) for name in (origin, stage, *control)} | keys_of_others

    @dg.asset(
        **asset_arguments(release, REIDENTIFICATION, kinds={"python"}),
        description="Candidates of each released record, for an attacker who knows some columns.",
        ins={name: dg.AssetIn(key) for name, key in keys.items()},
    )
    @guarded
    def reidentification_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        anonymization = Anonymization.from_artifact(inputs[stage])
        original = inputs[origin]
        held = [_other_release(other, inputs[other.stage]) for other in others]
        made_of = {origin: kept_fingerprint(inputs[origin]), stage: inputs[stage].fingerprints["table"]}
        for other in others:
            if other.release is None:
                continue
            if "source" not in inputs[other.stage].made_of:
                raise InvalidTableError(
                    f"The release {other.release!r} anonymizes the originals of a split (of: original), or related "
                    "tables (children), whose rows are not those of its source. Name what it published by "
                    "`directory`. Nothing was assessed."
                )
            is_of_people = other.key in release.contract.links_rows
            its_source = inputs[f"{other.stage}_source"]
            original = join_original(original, its_source, other.key, other.name, is_of_people=is_of_people)
            current = Anonymization.from_artifact(inputs[other.stage])
            for published in published_besides(other, current, storage_of(context, release)):
                held.append(published.release)
                made_of[published.stage] = published.fingerprint
        k = release.policy.people_per_class
        groups = groups_of_linked_rows(anonymization, release.contract, inputs[origin], k)
        with engine_of_stage(release.engine, release.name, REIDENTIFICATION) as engine:
            assessment = assess_reidentification(
                original,
                anonymization,
                known=release.policy.known or None,
                max_known=settings.max_known,
                curve_sample=settings.curve_sample,
                links=linking_columns(anonymization, release.contract),
                groups=groups,
                known_rows=release.policy.known_rows,
                other_releases=held,
                hierarchies=release.hierarchies,
                progress=progress_logger(context, StageProgress.in_words),
                engine=engine,
            )
        membership = assess_membership(
            anonymization, inputs[origin], _of_others(release, inputs), hierarchies=release.hierarchies
        )
        settings_used = {**assessment.settings, **release.reidentification_is_asked_of}
        scores = {**assessment.scores, **membership.scores}
        assessment = replace(assessment, scores=scores, settings=settings_used)
        for name in (*control, *keys_of_others):
            given = inputs[name]
            made_of[name] = given.digest if isinstance(given, Artifact) else kept_fingerprint(given)
        artifact = assessment.to_artifact().with_pictures(
            {what: assessment.drawn(what) for what in assessment.drawable}
        )
        yield stored_artifact(artifact, score_metadata(assessment.scores), made_of)

    return reidentification_stage


def _of_others(release: ReleaseSettings, inputs: Mapping[str, Any]) -> pd.DataFrame | None:
    """Return the people who are not in the source, whose codes number them apart from those in it."""
    person = release.contract.person
    control = next((inputs[stage] for stage in release.control_of_anonymized), None)
    return control if control is None or person is None else control.assign(**{person: -1 - control[person]})


def semantic_assessment_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that assesses what the concepts of the released table reveal about its records."""
    stage = release.anonymized_stage
    # Only the source shows which person a record belongs to.
    made_of_stages = [*release.semantic_risk_stands_on, stage]

    @dg.asset(
        **asset_arguments(release, SEMANTIC, kinds={"python"}),
        description="Remaining records for an attacker who knows all attributes of a record and one that it lacks.",
        ins={name: dg.AssetIn(release.key(name)) for name in made_of_stages},
    )
    @guarded
    def semantic_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        anonymization = Anonymization.from_artifact(inputs[stage])
        made_of = {stage: inputs[stage].fingerprints["table"]}
        of_people = None
        if release.contract.person is not None:
            source = inputs[release.source_of_anonymized]
            made_of[release.source_of_anonymized] = kept_fingerprint(source)
            of_people = _records_of_people(release, anonymization, source)
            if release.limits_semantic_risk:
                require_one_record_each(of_people)
        scales = release.semantic_scales_of(anonymization)
        assessment = _assess_semantic_risk(context, release, anonymization.table, scales, anonymization.model)
        yield _semantic_result(_with_people(assessment, of_people), made_of)

    return semantic_stage


def source_semantic_assessment_asset(release: ReleaseSettings) -> dg.AssetsDefinition:
    """Build the asset that assesses the source in the same way, for comparison."""

    @dg.asset(
        **asset_arguments(release, f"source_{SEMANTIC}", kinds={"python"}),
        description="Semantic assessment of the source, to compare with that of the anonymized records. It has no "
        "limit.",
        ins={"source": dg.AssetIn(release.key(release.source_of_anonymized))},
    )
    @guarded
    def source_semantic_stage(context, source):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        declared = release.semantic_risk_settings.declared_scales(release.contract)
        scales = dict.fromkeys(release.contract.columns_with_role("quasi_identifier"), "nominal") | declared
        table = source[list(release.contract.released_columns)]
        assessment = _assess_semantic_risk(context, release, table, scales, None)
        person = release.contract.person
        of_people = None if person is None else count_records_of_people(source[person])
        yield _semantic_result(
            _with_people(assessment, of_people), {release.source_of_anonymized: kept_fingerprint(source)}
        )

    return source_semantic_stage


def _records_of_people(release: ReleaseSettings, anonymization: Anonymization, source: pd.DataFrame) -> RecordsOfPeople:
    rows = anonymization.members["row"].to_numpy()
    return count_records_of_people(source[release.contract.person].take(rows))


def _with_people(assessment: SemanticAssessment, of_people: RecordsOfPeople | None) -> SemanticAssessment:
    """Return a note on how many people have several records, if there is a person column."""
    if of_people is None:
        return assessment
    settings = {**assessment.settings, PEOPLE_WITH_SEVERAL_RECORDS: of_people.n_people}
    note = note_on_several_records(of_people)
    return replace(assessment, settings=settings, notes=(*assessment.notes, *([note] if note else [])))


def _assess_semantic_risk(
    context: Any, release: ReleaseSettings, table: pd.DataFrame, scales: Mapping[str, Any], model: ReleaseModel | None
) -> SemanticAssessment:
    progress = progress_logger(context, _semantic_stage)
    assessment = assess_semantic_risk_with(table, scales, release.semantic_risk_settings, model, progress=progress)
    return replace(assessment, settings={**assessment.settings, "scale_digests": scale_digests(scales)})


def _semantic_result(assessment: SemanticAssessment, made_of: dict[str, str]) -> dg.MaterializeResult[Artifact]:
    artifact = assessment.to_artifact().with_pictures({"risk_distribution": assessment.drawn("risks")})
    shown: dict[str, Any] = {"notes": " ".join(assessment.notes)} if assessment.notes else {}
    if len(assessment.advice):
        shown["what_forgetting_columns_would_do"] = advice_table(assessment.advice)
    if LACKED_COLUMNS in assessment.scores:
        shown[LACKED_COLUMNS] = dg.MetadataValue.json(assessment.scores[LACKED_COLUMNS])
    shown |= picture_metadata({"riskiest_concept": assessment.drawn("concept").picture()})
    return stored_artifact(artifact, score_metadata(assessment.scores) | shown, made_of)


def _other_release(other: OtherReleaseSettings, artifact: Artifact) -> OtherRelease:
    if other.release is not None:
        return OtherRelease(
            Anonymization.from_artifact(artifact),
            other.key,
            name=other.name,
            quasi_identifiers=other.quasi_identifiers,
            hierarchies=other.hierarchies,
        )
    return OtherRelease(
        artifact.frames["table"],
        other.key,
        ReleaseModel.from_json(artifact.header["model"]),
        other.name,
        artifact.header["quasi_identifiers"],
        other.hierarchies,
    )


def _roles_of(release: ReleaseSettings, anonymization: Anonymization) -> dict[str, str]:
    return {each["column"]: each["role"] for each in describe_columns(anonymization, release.contract)}


def _semantic_stage(progress: SemanticProgress) -> str:
    columns = f" without {', '.join(progress.columns)}" if progress.columns else ""
    found = f", {progress.n_rows_done:,} of {progress.n_rows:,} distinct rows found" if progress.n_rows else ""
    return f"{progress.stage}: {progress.n_records:,} records{columns}{found}"
