"""Content of the report in addition to the manifest: pictures, measured advice, history of refusals."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.anonymization.withheld_records import note_on_tight_ends
from privacy_assets.display.pictures import Picture
from privacy_assets.mpucc.assess import MpuccAssessment
from privacy_assets.mpucc.column_changes import measure_column_changes
from privacy_assets.mpucc.preprocess import PreprocessedTables
from privacy_assets.orchestration.evidence.comparisons import candidates_compared
from privacy_assets.orchestration.evidence.evidence import Gathered
from privacy_assets.orchestration.private.resources import RecordedRefusal
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.settings.engine import engine_name, engine_of_stage
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.release.files import ReleaseRecord
from privacy_assets.release.gate import WAITS, Verdict
from privacy_assets.release.manifest import WITHHELD, WITHHELD_IN_WORDS, is_withheld
from privacy_assets.release.metrics import DISCLOSURE, MPUCC, PRIVACY_BUDGET, REIDENTIFICATION, SEMANTIC, SIDES, UTILITY
from privacy_assets.release.outcomes import draw_limits
from privacy_assets.release.report import Refusal, ReportMaterial
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.utility.related_pictures import drawn_related

SECRETS = ("seed", "scale_digests")
OF_THE_RECORDS = "ledger"
"""The figure of the budget that depends on the records: the digest of an entry, which covers their fingerprint."""


def report_material(
    storage: Storage, side: str, gathered: Gathered, refusals: Sequence[RecordedRefusal], decided: Sequence[Verdict]
) -> ReportMaterial:
    """Collect what the report of a table shows in addition to its manifest."""
    release = storage.release
    changes, notes = None, []
    assessment = gathered.found.get(MPUCC)
    if release.related is not None:
        notes.append("The effect of dropping columns was not measured, because the tables are related.")
    elif assessment is not None and assessment.scores["identification_rate"] is not None:
        changes = _column_changes(storage, assessment, gathered) if release.report.column_changes else None
        if changes is None:
            reason = (
                "the assessed tables are no longer stored" if release.report.column_changes else "it is switched off"
            )
            notes.append(f"The effect of dropping columns was not measured, because {reason}.")
    if UTILITY in gathered.found:
        notes.extend(gathered.found[UTILITY].notes)
    semantic = gathered.found.get(SEMANTIC)
    if semantic is not None:
        notes.extend(semantic.notes)
    if release.anonymized_stage == "suppressed" and side == "anonymized":
        notes.append(
            "The information loss by column is unknown, because records were withheld after the classes were made."
        )
        if isinstance(gathered.found.get("suppressed"), Anonymization):
            notes.extend(filter(None, [note_on_tight_ends(gathered.found["suppressed"])]))
    original = storage.table("original")[0] if release.related is not None and gathered.table is not None else None
    of_rows = [] if original is None else [each.picture() for each in drawn_related(original, gathered.table)]
    return ReportMaterial(
        pictures=(*_pictures(release, gathered, decided), *of_rows),
        refusals=tuple(Refusal(each.refused_at, each.found) for each in refusals),
        column_changes=changes,
        attribute_advice=None if semantic is None else semantic.advice,
        notes=notes,
    )


def release_record(
    storage: Storage, side: str, gathered: Gathered, decided: tuple[Verdict, ...], run_id: str, n_refusals: int
) -> ReleaseRecord:
    """Return the content of the manifest of a table, or of the page of its refusal."""
    release = storage.release
    waived_by = {verdict.waived_by for verdict in decided}
    return ReleaseRecord(
        release=release.name,
        stage=side,
        partition=storage.partition_key,
        run_id=run_id,
        policy=release.policy,
        verdicts=decided,
        settings=_without_secrets(gathered.settings),
        figures=gathered.figures,
        columns=gathered.columns,
        refusals_before=n_refusals,
        acknowledged=release.acknowledged,
        declaration=release.declaration,
        engine=engine_name(release.engine),
        options_compared=candidates_compared(storage),
        waivers=[each for each in release.waivers_of(side).usable if each.file in waived_by],
    )


def without_figures(record: ReleaseRecord, report: ReportMaterial) -> tuple[ReleaseRecord, ReportMaterial]:
    """Return the published content of a release that withholds its figures; its verdicts stay."""
    budget = record.figures.get(PRIVACY_BUDGET, {})
    published = replace(
        record,
        verdicts=tuple(_without_figure(verdict, record) for verdict in record.verdicts),
        figures={PRIVACY_BUDGET: {name: value for name, value in budget.items() if name != OF_THE_RECORDS}},
        settings={stage: own for stage, own in record.settings.items() if stage not in SIDES},
        figures_withheld=True,
    )
    return published, ReportMaterial(refusals=report.refusals, notes=(WITHHELD_IN_WORDS,))


def _without_figure(verdict: Verdict, record: ReleaseRecord) -> Verdict:
    limit = None if verdict.metric is None else record.policy.limit_on(verdict.metric)
    if limit is not None and is_withheld(limit.metric):
        return replace(verdict, value=None, advice="", reason=f"{limit.metric} is {WITHHELD}; expected {limit.bound}")
    is_open = verdict.passed or verdict.name in WAITS
    return verdict if is_open else replace(verdict, advice="", reason=f"the finding is {WITHHELD}")


def _without_secrets(settings: Any) -> Any:
    """Remove seeds, which would allow repeating the draws, and digests of guessable content from published settings."""
    if isinstance(settings, dict):
        return {name: _without_secrets(value) for name, value in settings.items() if name not in SECRETS}
    return settings


def _column_changes(storage: Storage, assessment: MpuccAssessment, gathered: Gathered) -> pd.DataFrame | None:
    """Measure on exactly the tables that were assessed; None if they are no longer stored."""
    stored = storage.read(storage.release.key("preprocessed"), lambda artifact: artifact, is_large=True)
    if stored is None or storage.keyed(stored.digest) != gathered.evidence.assessments[MPUCC].made_of.get(
        "preprocessed"
    ):
        return None
    tables = PreprocessedTables.from_artifact(stored)
    del stored  # The search needs its memory.
    give_back_memory()
    release = storage.release
    with engine_of_stage(release.engine, release.name, "column_changes") as engine:
        return measure_column_changes(
            tables, assessment, most_searches=release.report.column_changes, pairs=True, engine=engine
        )


def _pictures(release: ReleaseSettings, gathered: Gathered, decided: Sequence[Verdict]) -> Iterator[Picture]:
    """Yield the verdicts drawn, and the pictures that the stages stored."""
    yield draw_limits(decided).picture()
    tables, known = (release.synthetic_stage, release.anonymized_stage), gathered.found.keys() | gathered.figures
    for stage in dict.fromkeys((MPUCC, *tables, DISCLOSURE, UTILITY, REIDENTIFICATION, SEMANTIC)):
        yield from gathered.pictures.get(stage, ()) if stage in known else ()
