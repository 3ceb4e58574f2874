"""Tables as they are measured, and the evidence of their figures: for stages, checks and comparisons alike."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol, TypeAlias

import pandas as pd

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.masks import Exact
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.related import RelatedTables
from privacy_assets.contract.rule_violations import RULE_VIOLATIONS, RULES, RuleViolations, count_rule_violations
from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.rare_values import RARE_VALUES, RARE_VALUES_RELEASED, RareValues, count_rare_values
from privacy_assets.disclosure.result import DisclosureAssessment
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.engine.protocol import Engine
from privacy_assets.mpucc.assess import assess_preprocessed
from privacy_assets.mpucc.preprocess import PreprocessedTables, preprocess
from privacy_assets.release.evidence import AssessmentEvidence, Evidence
from privacy_assets.release.leakage import figures_of_disclosure
from privacy_assets.release.metrics import CONTROL, DISCLOSURE, LEAKAGE_DETECTED, MPUCC, UTILITY, figures_of
from privacy_assets.release.policy import Policy
from privacy_assets.storage.table import Table, TableOfKind, frame_of, select_columns, with_column
from privacy_assets.synthesis.generalized import generalize_people, labels_alone, preprocess_generalized
from privacy_assets.utility.foreign import why_foreign
from privacy_assets.utility.result import shown

Tables: TypeAlias = tuple[Table, Table, Table]
"""Original, synthetic and control."""


class Asked(Protocol):
    """The settings of a release that its measurements depend on."""

    @property
    def contract(self) -> TableContract: ...  # noqa: D102
    @property
    def policy(self) -> Policy: ...  # noqa: D102
    @property
    def assessment(self) -> Any: ...  # noqa: D102
    @property
    def disclosure_settings(self) -> DisclosureSettings: ...  # noqa: D102
    @property
    def invented(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def private(self) -> object | None: ...  # noqa: D102
    @property
    def synthetic_person(self) -> str | None: ...  # noqa: D102


def admit_people(
    contract: TableContract, original: pd.DataFrame, control: pd.DataFrame | None
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Admit both tables of people together, because admission numbers the people; return them apart."""
    given = [original] if control is None else [original, control]
    for each in given:
        # Concatenating them would give the columns of both.
        contract.require_known_columns(each)
    admitted = contract.admit(pd.concat(given, ignore_index=True))
    of_control = admitted.iloc[len(original) :].reset_index(drop=True)
    return admitted.iloc[: len(original)], None if control is None else of_control


def released_columns(release: Asked, table: TableOfKind, *, with_person: bool = False) -> TableOfKind:
    """Return the released columns of a table, and the person column if it is wanted and exists."""
    person = release.contract.person if with_person else None
    return select_columns(table, [*release.contract.released_columns, *([] if person is None else [person])])


def prepared_tables(release: Asked, tables: Tables, generalized: Anonymization | None) -> PreprocessedTables:
    """Return the tables of the mpUCC assessment, all with labels if synthetic records are generalized.

    They include whether the synthetic records can be compared with people at all.
    """
    original, synthetic, control = _with_people(release, tables)
    settings = _preprocessing(release)
    if generalized is None:
        prepared = preprocess(original, synthetic, control, **settings)
    else:
        real, made, others = (frame_of(each) for each in (original, synthetic, control))
        prepared = preprocess_generalized(real, made, others, generalized, **settings)
    if release.private is not None:
        # Drawn here from a noisy model, they are not copies in another notation.
        return prepared.judged("")
    person = release.contract.person
    return prepared.judged(why_foreign(original, synthetic, control, person=person, invented=release.invented))


def prepared_people(release: Asked, original: Table, control: Table) -> PreprocessedTables:
    """Return tables of people alone, with those of the control also as records, before there are others."""
    original, records, control = _with_people(release, (original, control, control))
    return preprocess(original, records, control, **_preprocessing(release))


def _preprocessing(release: Asked) -> dict[str, Any]:
    return {
        "person": release.contract.person,
        "invented": release.invented,
        "numeric_precision": release.assessment.numeric_precision,
        "datetime_precision": release.assessment.datetime_precision,
        "deduplicate": release.assessment.deduplicate,
        "parts": release.contract.parts,
    }


def compared_tables(
    release: Asked, tables: Tables, generalized: Anonymization | None, people: pd.DataFrame | None = None
) -> Tables:
    """Return the tables of the disclosure assessment, all with labels if synthetic records are generalized.

    ``people`` is the synthetic person of each synthetic record.
    """
    original, synthetic, control = _with_people(release, tables)
    compared, person = synthetic, release.contract.person
    if generalized is not None:
        frames = frame_of(original), frame_of(control)
        original, control = (generalize_people(generalized, each, frame_of(synthetic), person) for each in frames)
        compared = labels_alone(generalized, list(release.contract.released_columns))
        people = None if people is None else people.take(generalized.members["row"].to_numpy())
    if people is not None and release.synthetic_person not in compared.columns:
        for name, own in people.items():
            compared = with_column(compared, str(name), own)
    return original, compared, control


def _with_people(release: Asked, tables: Tables) -> Tables:
    original, synthetic, control = tables
    compared = release.contract.as_compared
    return (
        compared(released_columns(release, original, with_person=True)),
        compared(released_columns(release, synthetic)),
        compared(released_columns(release, control, with_person=True)),
    )


def measure(
    release: Asked,
    tables: Tables,
    generalized: Anonymization | None,
    only: Collection[str],
    progress: Callable[[Any], None] | None = None,
) -> dict[str, Any]:
    """Return the named assessments of synthetic records, and what the policy limits of rare values and rules."""
    found: dict[str, Any] = {}
    if MPUCC in only:
        prepared = prepared_tables(release, tables, generalized)
        found[MPUCC] = assess_preprocessed(prepared, release.assessment, progress=progress)
    if DISCLOSURE in only:
        found[DISCLOSURE] = assess_leakage(release, compared_tables(release, tables, generalized), progress)
    if RARE_VALUES in only:
        original, synthetic, control = tables
        released = synthetic if generalized is None else generalized.table
        policy, contract, people = release.policy, release.contract, [original, control]
        found[RARE_VALUES] = rare_values_of(
            policy, contract, released, people, contract.person, release.invented, generalized
        )
    if RULES in only:
        original, synthetic, control = tables
        released = synthetic if generalized is None else generalized.table
        found[RULES] = rule_violations_of(release.policy, release.contract, released, [original, control], generalized)
    return {name: each for name, each in found.items() if each is not None}


def assess_leakage(
    release: Asked,
    compared: Any,
    progress: Callable[[Any], None] | None = None,
    published_before: Sequence[pd.DataFrame] = (),
    engine: Engine | None = None,
) -> DisclosureAssessment:
    """Test compared tables for disclosure with the settings of a release, and with what was published before."""
    asked: dict[str, Any] = asdict(release.disclosure_settings)
    if isinstance(compared[0], RelatedTables):
        return assess_disclosure(*compared, **asked, progress=progress)
    asked |= {"person": release.contract.person, "synthetic_person": release.synthetic_person}
    asked["published_before"] = [release.contract.as_compared(each) for each in published_before]
    return assess_disclosure(*compared, **asked, invented=release.invented, engine=engine, progress=progress)


def rare_values_of(
    policy: Policy,
    contract: TableContract,
    table: Table,
    people: Sequence[Table],
    person: str | None,
    invented: Sequence[str],
    generalized: Anonymization | None = None,
) -> RareValues | None:
    """Count the rare values of a table among people, if the policy limits them."""
    if policy.limit_on(RARE_VALUES_RELEASED) is None:
        return None
    return count_rare_values(
        table,
        people,
        people_per_value=policy.people_per_value,
        person=person,
        columns=contract.released_columns,
        masks=None if generalized is None else generalized.model.masks,
        invented=invented,
    )


def rule_violations_of(
    policy: Policy,
    contract: TableContract,
    table: Table,
    people: Sequence[Table],
    generalized: Anonymization | None = None,
) -> RuleViolations | None:
    """Count the records of a table, of the originals and of the control that violate rules, if they are limited."""
    if policy.limit_on(RULE_VIOLATIONS) is None:
        return None
    masks = {} if generalized is None else generalized.model.masks
    labels = [name for name, mask in masks.items() if not isinstance(mask, Exact)]
    return count_rule_violations(
        contract.rules, table, dict(zip(("original", "control"), people, strict=False)), labels
    )


def figures_in_manifest(assessment: Any, name: str = MPUCC) -> dict[str, Any]:
    """Return the figures of an assessment by their place, as a manifest has them."""
    scores = shown(assessment.scores) if name == UTILITY else assessment.scores
    control = getattr(assessment, "control", None)
    return {name: scores, **({} if control is None else {CONTROL: control.to_header()})}


def evidence_of(
    policy: Policy,
    contract: TableContract,
    side: str,
    stage: str,
    found: Mapping[str, Any],
    measured: Mapping[str, Mapping[str, float | None]] | None = None,
) -> Evidence:
    """Return the evidence of results of this process; it has no provenance, so it never releases anything.

    ``found`` has assessments and counts (rare values, violations of rules) by name, and ``measured`` figures that have
    no assessment.
    """
    remarks: dict[str, str] = {}
    assessments, advised, figures = {}, {}, dict(measured or {})
    for name, each in found.items():
        if name in (RARE_VALUES, RULES):
            figures[name] = each.metrics
            remarks |= dict.fromkeys(each.metrics, each.remark)
            continue
        metrics = figures_of(name, figures_in_manifest(each, name), policy.required)
        if name == DISCLOSURE:
            decided = figures_of_disclosure(each.scores, policy.required)
            remarks[LEAKAGE_DETECTED], advised[LEAKAGE_DETECTED] = decided.remark, decided.advice
        assessments[name] = AssessmentEvidence(None, None, None, metrics=metrics, settings=each.settings)
    return Evidence(
        side,
        stage,
        contract.searched_columns,
        {},
        assessments,
        declared_precisions=contract.precisions,
        measured=figures,
        remarks=remarks,
        advised=advised,
        has_person=contract.person is not None,
        parts=contract.parts,
    )
