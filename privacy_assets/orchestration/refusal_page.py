"""The refusal page in the private directory: the findings, the expectations, and how to lower the risk."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg

from privacy_assets.columns.safe_names import class_name
from privacy_assets.orchestration.evidence.evidence import Gathered
from privacy_assets.orchestration.private.directories import from_project_root
from privacy_assets.orchestration.private.guard import REFUSAL_PAGE, log_openly
from privacy_assets.orchestration.private.resources import RecordedRefusal
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.report_material import release_record, report_material
from privacy_assets.release.files import render_refusal
from privacy_assets.release.gate import MEASURED_AT_THE_GATE, Verdict
from privacy_assets.release.metrics import CONTROL, METRICS, MPUCC
from privacy_assets.storage.durable_files import locked, make_private_directory, replace_file

PAGE = "refusal.html"
PAGES_DIRECTORY = "refusal_pages"
AT_THE_GATE = "The release step decided every condition of the policy."
MADE_FROM_IT = ("exists", "was_made_by_a_run", "is_as_recorded", "is_of_this_table", "stands_on_the_recorded_tables")
"""Suffixes of the conditions that an assessment of exactly this table meets."""


def page_of_refusal(
    context: Any, storage: Storage, side: str, gathered: Gathered, decided: tuple[Verdict, ...], note: str, advice: str
) -> dict[str, Any]:
    """Write the page of a refusal and return the metadata that names it; empty, with a warning, if that failed.

    ``note`` names the step at which the run ended, and ``advice`` the settings that would be admitted.
    """
    try:
        path = _write(storage, context.run.run_id, side, gathered, decided, note, advice)
    except Exception as error:  # noqa: BLE001 - a problem with the page must not replace the refusal
        log_openly(
            context,
            f"The page of this refusal could not be written ({class_name(type(error))}). The release remains refused, "
            "and the figures are in the metadata of this step.",
            logging.WARNING,
        )
        return {}
    return {REFUSAL_PAGE: dg.MetadataValue.path(from_project_root(path))}


def _write(
    storage: Storage, run_id: str, side: str, gathered: Gathered, decided: tuple[Verdict, ...], note: str, advice: str
) -> Path:
    private_tables, key = storage.private_tables, storage.release.key(f"{side}_release")
    history = private_tables.refusal_history(key, storage.partition_key)
    before = [refusal for run, refusal in history.items() if run != run_id]
    on_page = {verdict.name for verdict in decided if verdict.blocks}
    own = history.get(run_id, RecordedRefusal("", {})).failed
    others = [found for name, found in own.items() if name not in on_page]
    note = f"{note} Other steps of this run found: {'; '.join(others)}." if others else note
    material = report_material(storage, side, gathered, before, decided)
    material = replace(material, notes=[*material.notes, advice])
    record = release_record(storage, side, gathered, decided, run_id, len(before))
    page = render_refusal(record, gathered.table, gathered.content, material, note).encode()
    directory = private_tables.private_path(PAGES_DIRECTORY, "__".join(key.path), storage.partition_key) / run_id
    make_private_directory(directory)
    # Other steps of the run may write it, too.
    with locked(directory):
        replace_file(directory / PAGE, page)
    return directory / PAGE


def known_so_far(
    gathered: Gathered, every: Sequence[Verdict], decided: Sequence[Verdict]
) -> tuple[Gathered, tuple[Verdict, ...]]:
    """Leave out the assessments of later steps of the run, because those of an earlier run are about another table.

    Return the evidence without those assessments, and the verdicts of ``every`` that do not depend on them; ``decided``
    are the verdicts of this step.
    """
    names = {verdict.name for verdict in decided}
    side = gathered.evidence.side
    own = {METRICS[verdict.metric].assessment_on(side) for verdict in decided if verdict.metric is not None}
    failed = {verdict.name for verdict in every if not verdict.passed}
    assessed = {METRICS[verdict.metric].assessment_on(side) for verdict in every if verdict.metric is not None}
    assessed |= set(gathered.evidence.assessments)
    later = {
        name
        for name in assessed - own - set(MEASURED_AT_THE_GATE)
        if name not in gathered.evidence.assessments or failed & {f"{name}_{end}" for end in MADE_FROM_IT}
    }
    of_later = tuple(f"{name}_" for name in later)
    left_out = later | ({CONTROL} if MPUCC in later else set())
    shown = tuple(
        verdict
        for verdict in every
        if verdict.name in names
        or (verdict.metric is not None and METRICS[verdict.metric].assessment_on(side) not in later)
        or (verdict.metric is None and verdict.passed and not verdict.name.startswith(of_later))
    )
    without = replace(
        gathered,
        # Those of views are named after the assessment.
        figures={name: own for name, own in gathered.figures.items() if name.partition(" of ")[0] not in left_out},
        settings={name: own for name, own in gathered.settings.items() if name not in left_out},
        found={name: value for name, value in gathered.found.items() if name not in left_out},
    )
    return without, shown
