"""Evidence for the gate: the content stored now, and what Dagster recorded when it was made."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

import dagster as dg
import pandas as pd

from privacy_assets.anonymization.anonymized_table import (
    describe_columns,
    keeps_the_contract,
    linking_columns,
    measure_anonymity,
    roles_of,
)
from privacy_assets.anonymization.measured_loss import require_measured
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.scales import scale_digests
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.related import PEOPLE, RelatedTables
from privacy_assets.contract.rule_violations import RULE_VIOLATIONS, RULES
from privacy_assets.contract.views import columns_of_views
from privacy_assets.disclosure.rare_values import RARE_VALUES, RARE_VALUES_RELEASED
from privacy_assets.disclosure.result import DisclosureAssessment
from privacy_assets.display.pictures import Picture
from privacy_assets.errors import ContractError, InvalidTableError, PrivacyAssetsError
from privacy_assets.mpucc.assess import MpuccAssessment
from privacy_assets.mpucc.control import ControlComparison
from privacy_assets.mpucc.views import MpuccOfViews
from privacy_assets.orchestration.evidence.disclosure_tests import split_evidence
from privacy_assets.orchestration.evidence.published import published_besides
from privacy_assets.orchestration.evidence.related_people import other_forms
from privacy_assets.orchestration.evidence.units import decide_on_units, examined_units, published_units
from privacy_assets.orchestration.private.recorded import Recorded
from privacy_assets.orchestration.private.storage import UNREADABLE, Storage
from privacy_assets.orchestration.settings.anonymized import OtherReleaseSettings
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.synthetic import Synthesis
from privacy_assets.pipeline.measure import figures_in_manifest, rare_values_of, rule_violations_of
from privacy_assets.pipeline.related import rare_values_of_related, rule_violations_of_related
from privacy_assets.pipeline.settings.privacy_budget import NOISY_MODEL
from privacy_assets.pipeline.settings.utility import worth_stage
from privacy_assets.release.evidence import SPLIT_STAGES, AssessmentEvidence, Evidence, TableEvidence
from privacy_assets.release.files import published_fingerprint
from privacy_assets.release.leakage import LEVEL, figures_of_disclosure
from privacy_assets.release.metrics import (
    ANONYMITY,
    CONTROL,
    DISCLOSURE,
    LEAKAGE_DETECTED,
    MPUCC,
    REIDENTIFICATION,
    SEMANTIC,
    STATISTICS,
    UTILITY,
    figures_of,
    measured_in,
)
from privacy_assets.release.report_criteria import GUESSED, ROWS
from privacy_assets.release.report_words import LEAKAGE
from privacy_assets.release.row_links import KNOWN_ROWS_ADVICE, remark_on_rows
from privacy_assets.semantic_risk.result import SemanticAssessment
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.storage.table import Table, frame_of
from privacy_assets.synthesis.generalized import DISTINCT_RECORD, number_distinct_records
from privacy_assets.utility.result import SENTENCE, UtilityAssessment

MOST_COLUMNS: Final = 20
UNIT: Final = "unit"


@dataclass(frozen=True)
class StoredFigures:
    """The figures and settings of an assessment, without its rows."""

    scores: Mapping[str, Any]
    settings: Mapping[str, Any]
    control: ControlComparison | None
    notes: Sequence[str]
    views: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, artifact: Artifact) -> "StoredFigures":
        """Read the header of a stored assessment."""
        header = artifact.header
        control = header.get("control")
        read = None if control is None else ControlComparison.from_header(control)
        views = {name: own["scores"] for name, own in header.get("views", ())}
        return cls(dict(header["scores"]), dict(header["settings"]), read, tuple(header.get("notes", ())), views)


def tables_of_disclosure(assessment: DisclosureAssessment) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a disclosure assessment that the report shows, as JSON values."""
    nearest = assessment.sensitive[assessment.sensitive["attack"] == "nearest"].drop(columns="attack")
    most = nearest.sort_values("excess", ascending=False, kind="stable").head(MOST_COLUMNS)
    return {ROWS: _rows(assessment.criteria), GUESSED: _rows(most)}


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    as_objects = frame.astype(object)
    return [
        {str(name): value for name, value in row.items()}
        for row in as_objects.where(as_objects.notna(), None).to_dict("records")
    ]


_Assessment = TypeVar("_Assessment")
"""Assessments that a policy can limit and that have an asset."""


@dataclass(frozen=True)
class Gathered:
    """Evidence about a table, the table itself, and the content of its manifest in addition to the verdicts.

    An unreadable table is None, and its fingerprint ``content`` empty; related ones are RelatedTables. ``settings`` and
    ``figures`` of stages affect no verdict; ``found`` has assessments, anonymizations and the source, if they can be
    read, for the report, and ``pictures`` what is stored with them.
    """

    evidence: Evidence
    table: Any
    content: str
    columns: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    pictures: dict[str, Sequence[Picture]] = field(default_factory=dict)


def gather_evidence(storage: Storage, side: str, *, with_details: bool = True, with_counts: bool = True) -> Gathered:
    """Collect the evidence about the table that a side of a release would publish.

    Without details, only the figures of assessments are read, which are all that a verdict needs; ``found`` then has no
    assessments. Without counts, rare values and violations of rules are not counted in the table.
    """
    gather = {"synthetic": _gather_synthetic, "anonymized": _gather_anonymized}[side]
    read = _Storage(**vars(storage), with_details=with_details, with_counts=with_counts)
    return replace(_with_unit(storage, gather(read)), pictures=read.pictures)


class _Stored(NamedTuple, Generic[_Assessment]):
    figures: StoredFigures
    evidence: AssessmentEvidence
    assessment: _Assessment | None


@dataclass(frozen=True)
class _Storage(Storage):
    """The storage of a release, read for the gate."""

    with_details: bool
    with_counts: bool
    pictures: dict[str, Sequence[Picture]] = field(default_factory=dict)

    def anonymization(self, stage: str, *, is_large: bool = False) -> tuple[Anonymization | None, TableEvidence]:
        """Return a stored anonymization and the evidence about it; a large one has a `StoredTable`."""
        recorded = self.recorded(stage)

        def read(stored: Artifact) -> tuple[Anonymization, str, str]:
            self.pictures[stage] = tuple(stored.pictures.values())
            return Anonymization.from_artifact(stored), stored.digest, stored.fingerprints["table"]

        found = self.read(self.release.key(stage), read, is_large=is_large)
        anonymization, digest, content = found or (None, None, None)
        digest = self.keyed(digest)
        settings = None if anonymization is None else anonymization.settings
        made_of, run_id = recorded.made_of, recorded.run_id
        return anonymization, TableEvidence(digest, recorded.version, run_id, made_of, content, settings)

    def evidence(self, stages: Iterable[str], at_hand: Mapping[str, str | None]) -> dict[str, TableEvidence]:
        """Return the evidence about plain tables, some of which are already loaded."""
        tables = {}
        for stage in stages:
            recorded = self.recorded(stage)
            content = at_hand.get(stage)
            digest = self.keyed(content) if stage in at_hand else recorded.version
            tables[stage] = TableEvidence(digest, recorded.version, recorded.run_id, recorded.made_of, content)
        return tables

    def assessment(
        self, name: str, read: Callable[[Artifact], _Assessment], assessment: str, *, is_small: bool = False
    ) -> _Stored[_Assessment] | None:
        """Return a stored assessment, with its details if they are wanted or small; None if it cannot be read."""
        recorded, release = self.recorded(name), self.release
        released = {release.synthetic_stage, release.anonymized_stage}

        def stored(artifact: Artifact) -> _Stored[_Assessment]:
            figures = StoredFigures.of(artifact)
            self.pictures[assessment] = tuple(artifact.pictures.values())
            keyed = {stage: self.private_tables.keyed(own) for stage, own in artifact.made_of.items()}
            evidence = AssessmentEvidence(
                digest=self.keyed(artifact.digest),
                recorded_digest=recorded.version,
                run_id=recorded.run_id,
                made_of=keyed | {stage: own for stage, own in artifact.made_of.items() if stage in released},
                metrics=figures_of(assessment, figures_in_manifest(figures, assessment), self.release.policy.required),
                settings=figures.settings,
            )
            return _Stored(figures, evidence, read(artifact) if self.with_details or is_small else None)

        return self.read(self.release.key(name), stored)

    def is_current(self, other: OtherReleaseSettings, key: dg.AssetKey) -> bool:
        """Return whether the stored copy of a published release still matches its directory."""
        if other.directory is None:
            return True
        directory = Path(other.directory)
        return bool(
            self.read(key, lambda stored: fingerprint(stored.frames["table"]) == published_fingerprint(directory))
        )

    def published(self, other: OtherReleaseSettings) -> dict[str, TableEvidence]:
        """Return published tables of another release of this project that its current asset does not cover."""
        if other.release is None:
            return {}
        found = self.read(
            other.asset_keys(self.release.name)[other.stage],
            lambda stored: published_besides(other, Anonymization.from_artifact(stored), self),
        )
        if found is None:
            return {other.published_stage: TableEvidence(None, None, None)}
        contents = {each.stage: (self.keyed(each.fingerprint), each.run_id) for each in found}
        return {stage: TableEvidence(content, content, run_id) for stage, (content, run_id) in contents.items()}

    def other_releases(self) -> dict[str, TableEvidence]:
        """Return what Dagster recorded about the other releases that an attacker may have."""
        tables = {}
        for other in self.release.reidentification_settings.other_releases:
            for stage, key in other.asset_keys(self.release.name).items():
                recorded = Recorded(self.instance, key, self.partition_key)
                digest = recorded.version if self.is_current(other, key) else None
                # Its inputs are renamed here, because its source is not the source of this release.
                made_of = {f"{other.stage}_{made}": content for made, content in recorded.made_of.items()}
                tables[stage] = TableEvidence(digest, recorded.version, recorded.run_id, made_of)
            tables |= self.published(other)
        return tables


def settings_of(release: ReleaseSettings) -> dict[str, str]:
    """Return the settings of a stage as named in the manifest."""
    generalized = {} if release.generalize_synthetic is None else {"generalized_synthetic": "generalized_synthetic"}
    return {"split": "original", "synthetic": "synthetic", **generalized}


def lineage_of(release: ReleaseSettings) -> dict[str, tuple[str, ...]]:
    """Return the stages that each table of the synthetic side must have been made from."""
    lineage: dict[str, tuple[str, ...]] = {}
    if release.generalize_synthetic is not None:
        lineage["generalized_synthetic"] = ("synthetic",)
    if isinstance(release.synthetic, Synthesis):
        lineage["synthetic"] = ("original",) if release.private is None else (NOISY_MODEL,)
        lineage |= {} if release.private is None else {NOISY_MODEL: ("original",)}
    lineage |= dict.fromkeys(release.stages_of_synthetic_people, ("synthetic",))
    if release.source is not None:
        lineage |= {"original": ("source",), "control": ("source",)}
    return lineage


def _gather_synthetic(storage: _Storage) -> Gathered:
    release, contract, stage = storage.release, storage.release.contract, storage.release.synthetic_stage
    # Labels are compared with whole tables.
    is_large = stage == "synthetic" and release.related is None
    synthetic, synthetic_content = storage.table("synthetic", is_large=is_large)
    stages = (*release.stages_assessed, "synthetic", *release.stages_of_synthetic_people)
    stages += () if release.source is None else ("source",)
    needs_people = storage.with_counts and any(
        release.policy.limit_on(each) for each in (RARE_VALUES_RELEASED, RULE_VIOLATIONS)
    )
    needs_people |= release.related is not None
    people = {side: storage.table(side, is_large=is_large) for side in SPLIT_STAGES} if needs_people else {}
    contents = {side: content for side, (_, content) in people.items()}
    tables = storage.evidence(stages, {"synthetic": synthetic_content, **contents})
    table, content = synthetic, synthetic_content
    found: dict[str, Any] = {}
    keeps_contract = table is not None and _is_admitted_as_it_is(release, table, content)
    columns: list[dict[str, Any]] = release.describe_released()
    if stage != "synthetic":
        generalized, tables[stage] = storage.anonymization(stage)
        table, content = (None, None) if generalized is None else (generalized.table, tables[stage].content)
        keeps_contract = False
        found = {} if generalized is None else {stage: generalized}
        if generalized is not None and synthetic is not None:
            made_of = number_distinct_records(synthetic)
            keeps_contract = keeps_the_contract(generalized, contract, made_of, DISTINCT_RECORD)
        columns = [] if generalized is None else describe_columns(generalized, contract)
    counted = _counted(storage, table, found.get(stage), [each for each, _ in people.values()])
    evidence = Evidence(
        side="synthetic",
        stage=stage,
        # Only the labels of generalized columns are assessed; the other columns made from them add no information.
        columns=_searched(release, table, keeps_contract=keeps_contract),
        tables=tables,
        assessments={},
        declared_precisions=contract.precisions,
        lineage=lineage_of(release),
        keeps_contract=keeps_contract,
        measured={name: each.metrics for name, each in counted.items()},
        remarks={metric: each.remark for each in counted.values() for metric in each.metrics},
        has_person=contract.person is not None,
        parts=contract.parts,
        views={} if release.related is None else _views([table, *(each for each, _ in people.values())]),
        broken_links=None if release.related is None else storage.broken_links(stage),
    )
    settings: dict[str, Any] = {UNIT: _unit_of(contract)}
    settings |= {made: storage.recorded(name).made_with for made, name in settings_of(release).items()}
    gathered = Gathered(evidence, table, content or "", columns, settings, found=found)
    read: Any = MpuccAssessment.without_values if release.related is None else MpuccOfViews.from_artifact
    stored: Any = storage.assessment(MPUCC, read, MPUCC)
    if stored is not None:
        gathered = _with_assessment(gathered, MPUCC, stored, stored.figures.scores, release.stages_assessed)
        if stored.figures.views:
            del gathered.figures[MPUCC]
            gathered.figures.update({f"{MPUCC} of {name}": own for name, own in stored.figures.views.items()})
        control = stored.figures.control
        if control is not None:
            unit = "people" if "n_people" in stored.figures.settings else "records"
            leakage = LEAKAGE[control.leakage_detected]
            gathered.figures[CONTROL] = {"leakage": leakage, "counted": unit, **control.to_header()}
    gathered.figures.update({name: each.to_json() for name, each in counted.items()})
    return _with_worth(storage, _with_disclosure(storage, gathered), SPLIT_STAGES)


def _with_assessment(
    gathered: Gathered,
    name: str,
    stored: _Stored[Any],
    figures: Mapping[str, Any],
    stands_on: tuple[str, ...],
    asked_for: Mapping[str, Any] | None = None,
) -> Gathered:
    """Add a stored assessment, the tables it must be based on, and the settings it must have been made with."""
    evidence = gathered.evidence
    return replace(
        gathered,
        evidence=replace(
            evidence,
            assessments={**evidence.assessments, name: stored.evidence},
            stands_on={**evidence.stands_on, name: stands_on},
            asked_for=evidence.asked_for if asked_for is None else {**evidence.asked_for, name: asked_for},
        ),
        settings={**gathered.settings, name: dict(stored.figures.settings)},
        figures={**gathered.figures, name: dict(figures)},
        found=gathered.found if stored.assessment is None else {**gathered.found, name: stored.assessment},
    )


def _with_unit(storage: Storage, gathered: Gathered) -> Gathered:
    """Add the decision of the current contract on what a run found out about whose the rows are."""
    release = storage.release.whole or storage.release
    origin = "original" if release.source is None else "source"
    examined = examined_units(release, storage.recorded(origin).unit)
    decision = decide_on_units(release, origin, examined)
    figures = {**gathered.figures, **published_units(release, examined)}
    evidence = replace(gathered.evidence, unit=decision, undeclared=release.undeclared)
    return replace(gathered, evidence=evidence, figures=figures)


def _with_disclosure(storage: _Storage, gathered: Gathered) -> Gathered:
    """Add the disclosure by the synthetic records, if it is assessed."""
    release, required = storage.release, storage.release.policy.required
    if not release.assesses(DISCLOSURE):
        return gathered
    stored = storage.assessment(DISCLOSURE, DisclosureAssessment.from_artifact, DISCLOSURE, is_small=True)
    if stored is None or stored.assessment is None:
        return gathered
    asked: dict[str, Any] = {**release.disclosure_settings.to_json(), "level": LEVEL}
    if release.related is None:
        asked |= {"columns": list(release.contract.released_columns), "synthetic_person": release.synthetic_person}
    else:
        left_out = stored.figures.settings["left_out_views"]
        asked["views"] = {name: list(own) for name, own in gathered.evidence.views.items() if name not in left_out}
    figures = {**stored.figures.scores, **tables_of_disclosure(stored.assessment)}
    stands_on = (*SPLIT_STAGES, *release.stages_of_synthetic_people)
    gathered = _with_assessment(gathered, DISCLOSURE, stored, figures, stands_on, asked)
    splits = split_evidence(storage, stored.evidence.made_of.get("original"), gathered.content)
    gathered.figures[DISCLOSURE] |= splits.figures
    evidence, decided = gathered.evidence, figures_of_disclosure(stored.figures.scores, required)
    remarks = {**evidence.remarks, LEAKAGE_DETECTED: decided.remark}
    advised = {**evidence.advised, LEAKAGE_DETECTED: decided.advice}
    return replace(gathered, evidence=replace(evidence, remarks=remarks, advised=advised, splits=splits))


def _with_worth(storage: _Storage, gathered: Gathered, judged_by: tuple[str, ...]) -> Gathered:
    """Add the worth of the records, if it is assessed."""
    release, stage = storage.release, worth_stage(gathered.evidence.side)
    if not release.assesses(UTILITY):
        return gathered
    stored = storage.assessment(stage, UtilityAssessment.from_artifact, UTILITY, is_small=True)
    if stored is None or stored.assessment is None:
        return gathered
    worth = stored.assessment
    asked = asdict(release.utility_settings) | {"columns": list(release.contract.released_columns)}
    asked = asked if release.related is None else {"seed": release.utility_settings.seed}
    figures = {SENTENCE: worth.sentence, **worth.shown_scores, **worth.worst}
    return _with_assessment(gathered, UTILITY, stored, figures, judged_by, asked)


def _counted(storage: _Storage, table: Any, generalized: Anonymization | None, people: list[Any]) -> dict[str, Any]:
    """Count rare values and violations of rules in a stored table, next to the stored people; none if impossible."""
    release, contract = storage.release, storage.release.contract
    known = [each for each in people if each is not None]
    if table is None or not people or len(known) < len(people):
        return {}
    try:
        if release.related is not None:
            of_related = release.policy, release.related, table, known
            found = {RARE_VALUES: rare_values_of_related(*of_related), RULES: rule_violations_of_related(*of_related)}
        else:
            given = release.policy, contract, table, known
            found = {
                RARE_VALUES: rare_values_of(*given, contract.person, release.invented, generalized),
                RULES: rule_violations_of(*given, generalized),
            }
    except UNREADABLE:
        return {}
    return {name: each for name, each in found.items() if each is not None}


def _gather_anonymized(storage: _Storage) -> Gathered:
    release, stage = storage.release, storage.release.anonymized_stage
    origin, control = release.source_of_anonymized, release.control_of_anonymized
    source, source_content = storage.table(origin, is_large=True)
    anonymization, at_hand = storage.anonymization(stage, is_large=True)
    made_of_source = () if release.source is None or not release.is_of_originals else SPLIT_STAGES
    related = () if release.one_table is None else made_of_source or ("source",)
    lineage = dict.fromkeys(made_of_source, ("source",)) | {"anonymized": (origin,)}
    lineage |= {release.as_one_table(name): (name,) for name in related}
    lineage |= {"suppressed": ("anonymized",)} if stage == "suppressed" else {}
    lineage |= {
        other.stage: (f"{other.stage}_source",)
        for other in release.reidentification_settings.other_releases
        if other.release is not None
    }
    others = storage.other_releases()
    own = dict.fromkeys((origin, "anonymized", *control, *related, *(["source"] if made_of_source else [])))
    read = storage.evidence(own, {origin: source_content})
    tables = {**read, stage: at_hand, **others}
    gathered = _measured(storage, anonymization, source)
    found = {name: value for name, value in {stage: anonymization, origin: source}.items() if value is not None}
    evidence = replace(
        gathered.evidence,
        tables=tables,
        lineage=lineage,
        must_succeed=(REIDENTIFICATION,) if release.assesses(REIDENTIFICATION) else (),
        other_forms=None if release.one_table is None else other_forms(storage, release.one_table),
    )
    gathered = replace(gathered, evidence=evidence, content=at_hand.content or "", found=found)
    stands_on = {REIDENTIFICATION: (origin, *control, *others), SEMANTIC: release.semantic_risk_stands_on}
    asked_for = _asked_for(release, anonymization)
    for name in filter(release.assesses, stands_on):
        # Of re-identification, the report needs figures and pictures alone.
        read_details: Any = SemanticAssessment.from_artifact if name == SEMANTIC else lambda _: None
        stored = storage.assessment(name, read_details, name)
        if stored is not None:
            notes = {"notes": list(stored.figures.notes)} if stored.figures.notes else {}
            figures = {**stored.figures.scores, **notes}
            gathered = _with_assessment(gathered, name, stored, figures, stands_on[name], asked_for.get(name))
    return _with_worth(storage, _with_remark_on_rows(release, gathered), (origin,))


def _with_remark_on_rows(release: ReleaseSettings, gathered: Gathered) -> Gathered:
    """Say how many known rows single people out, if the contract lets columns link rows."""
    remark = remark_on_rows(gathered.figures.get(REIDENTIFICATION, {}), release.policy.people_per_class)
    if not remark:
        return gathered
    evidence = gathered.evidence
    counted = measured_in(REIDENTIFICATION) - {"share_certain_by_rows"}
    remarks = {**evidence.remarks, **dict.fromkeys(counted, remark)}
    advised = {**evidence.advised, **dict.fromkeys(counted, KNOWN_ROWS_ADVICE)}
    return replace(gathered, evidence=replace(evidence, remarks=remarks, advised=advised))


def _measured(storage: _Storage, anonymization: Anonymization | None, source: Table | None) -> Gathered:
    """Measure a stored anonymized table; a table that cannot be measured fails the contract."""
    contract, stage = storage.release.contract, storage.release.anonymized_stage
    one_table, origin = storage.release.one_table, storage.release.source_of_anonymized
    as_one = {} if one_table is None else {origin: storage.recorded(origin).made_with}
    evidence = Evidence("anonymized", stage, (), {}, {})
    if anonymization is None:
        return Gathered(evidence, None, "")
    nothing = Gathered(evidence, anonymization.table, "")
    if source is None:
        return nothing
    keeps_contract = False
    try:
        keeps_contract = keeps_the_contract(anonymization, contract, source, contract.person)
        keeps_contract &= one_table is None or as_one[origin] == one_table.to_json()
        losses = require_measured(anonymization, source, storage.release.hierarchies)
        # Only in this process: a release depends on this measurement, so that no worker has to be trusted.
        report, statistics = measure_anonymity(anonymization, contract, source, contract.person, losses)
        columns = describe_columns(anonymization, contract)
        figures = {ANONYMITY: report.to_header(), STATISTICS: anonymization.stats | statistics}
    except PrivacyAssetsError as error:
        return replace(nothing, evidence=replace(evidence, problem=str(error) if keeps_contract else ""))
    except UNREADABLE:
        return nothing
    return replace(
        nothing,
        evidence=replace(
            evidence,
            columns=tuple(anonymization.table.columns),
            keeps_contract=keeps_contract,
            measured={ANONYMITY: figures_of(ANONYMITY, figures)},
        ),
        columns=columns,
        settings={
            UNIT: _unit_of(contract),
            **({"split": storage.recorded("original").made_with} if storage.release.is_of_originals else {}),
            **as_one,
            **{name: storage.recorded(name).made_with for name in dict.fromkeys(("anonymized", stage))},
        },
        figures={**figures, "model": anonymization.model.to_json()},
    )


def _unit_of(contract: TableContract) -> list[str] | str:
    """Return the columns that number the people, or that each row is one."""
    return list(contract.person_columns) or "rows"


def _asked_for(release: ReleaseSettings, anonymization: Anonymization | None) -> dict[str, dict[str, Any]]:
    """Return the settings that assessments of anonymized records must have."""
    roles = roles_of(release.contract, release.contract.person)
    known = [list(columns) for columns in release.policy.known] or [list(roles.quasi_identifiers)]
    others = [[other.name, other.key] for other in release.reidentification_settings.other_releases]
    asked: dict[str, dict[str, Any]] = {
        REIDENTIFICATION: {
            "known": known,
            "subject": release.contract.person,
            "other_releases": others,
            "links": [] if anonymization is None else linking_columns(anonymization, release.contract),
            "known_rows": release.policy.known_rows,
            **release.reidentification_is_asked_of,
        }
    }
    if anonymization is not None and release.assesses(SEMANTIC):
        scales = release.semantic_scales_of(anonymization)
        asked[SEMANTIC] = {"scale_digests": scale_digests(scales), **release.semantic_risk_is_asked_of}
    return asked


def _searched(release: ReleaseSettings, table: Any, *, keeps_contract: bool) -> tuple[str, ...]:
    """Return the columns that the mpUCC assessment of one table must have covered; those of views are apart."""
    if table is None or release.related is not None:
        return ()
    return release.contract.searched_columns if keeps_contract else tuple(table.columns)


def _views(tables: Sequence[RelatedTables | None]) -> dict[str, tuple[str, ...]]:
    """Return the columns of the views that must have been assessed; no assessment has what unreadable tables need."""
    known = [each for each in tables if each is not None]
    return columns_of_views(known) if len(known) == len(tables) else {PEOPLE: ()}


def _is_admitted_as_it_is(release: ReleaseSettings, table: Any, content: str | None) -> bool:
    """Apply the current contract, which may differ from the one that admitted the table."""
    try:
        if release.related is not None:
            return release.related.admit_synthetic(table).content == content
        return fingerprint(release.contract.admit_synthetic(frame_of(table))) == content
    except (ContractError, InvalidTableError):
        return False
