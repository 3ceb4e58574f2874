"""A release that waits for people: its files and its page are in the private directory, until it may be published."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from privacy_assets.contract.related import RelatedTables
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.evidence.decided import keep_rejections, kept_rejections, known_withdrawals
from privacy_assets.orchestration.private.directories import from_project_root
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.stages import PENDING_DIRECTORY
from privacy_assets.release import clock
from privacy_assets.release.approvals import (
    APPROVERS_FILE,
    Approval,
    Decision,
    decide,
    read_approvals,
    read_approvers,
    subject_of,
)
from privacy_assets.release.files import ReleaseRecord
from privacy_assets.release.gate import APPROVAL_CHECK, DECLARATION_CHECK, WITHDRAWN_CHECK, Verdict
from privacy_assets.release.report import ReportMaterial
from privacy_assets.release.waiting import keep_waiting, pages_of
from privacy_assets.release.withdrawals import Withdrawal
from privacy_assets.storage.durable_files import replace_file


class Waiting(NamedTuple):
    """Where a release waits, the verdicts on what people decided so far, and what the manifest says of it."""

    path: Path
    verdicts: tuple[Verdict, ...]
    approvals: Sequence[Mapping[str, Any]]
    withdrawn_before: int

    def recorded_in(self, record: ReleaseRecord) -> ReleaseRecord:
        """Add to the content of a manifest what people decided."""
        return replace(record, approvals=self.approvals, withdrawn_before=self.withdrawn_before)


def pending_directory(storage: Storage, side: str) -> Path:
    """Return the private directory of the contents of a side that wait."""
    key = storage.release.key(f"{side}_release")
    return storage.private_tables.private_path(PENDING_DIRECTORY, "__".join(key.path), storage.partition_key)


def withdrawn_before(storage: Storage, content: str) -> tuple[Withdrawal, ...]:
    """Return the withdrawals of a content, under whatever name and version it was released."""
    return tuple(entry for entry in known_withdrawals(storage) if entry.fingerprint == content)


def decide_on_withdrawals(storage: Storage, content: str) -> tuple[Verdict, ...]:
    """Refuse a content that was withdrawn, unless people have to approve it again."""
    withdrawn = withdrawn_before(storage, content)
    if not withdrawn or storage.release.policy.required.approvals:
        return ()
    advice = "Make other records; or let the policy require approvals, with which the same ones can be released again."
    return (Verdict(WITHDRAWN_CHECK, False, "error", f"it was {withdrawn[-1].in_words}", advice),)


def wait_for_people(
    storage: Storage,
    side: str,
    table: pd.DataFrame | RelatedTables,
    content: str,
    record: ReleaseRecord,
    report: Callable[[], ReportMaterial],
) -> Waiting:
    """Keep the files of a release that only people can still stop, and decide on what they decided so far."""
    release, n_required = storage.release, storage.release.policy.required.approvals
    path = pending_directory(storage, side) / content
    if path.is_symlink():
        raise InvalidSettingError(f"{str(path)!r} is a link. Expected a directory. Nothing was released. Remove it.")
    waiting = Waiting(path, (), (), len(withdrawn_before(storage, content)))
    asked = [Verdict(APPROVAL_CHECK, False, "error", f"waits for {n_required} approvals")] if n_required else []
    waits = waiting.recorded_in(replace(record, verdicts=(*record.verdicts, *asked)))
    keyed = storage.private_tables.keyed
    manifest = keep_waiting(path, table, content, waits, release.formats, report, release.rows_per_part, keyed)
    if not n_required and not may_be_rejected(storage, side, content):
        return waiting
    before = kept_rejections(storage, side)
    decision = _decide(release.approvers, manifest, n_required, path, before, keyed)
    keep_rejections(storage, side, decision.rejections)
    if n_required and any(each.name == DECLARATION_CHECK and each.blocks for each in record.verdicts):
        # An approval is about the declaration, too.
        reason = f"needs {n_required} approvals, which can be given once the declaration is complete"
        later = Verdict(APPROVAL_CHECK, False, "error", reason)
        decided = tuple(later if each.name == APPROVAL_CHECK else each for each in decision.verdicts)
        return waiting._replace(verdicts=decided)
    counted = [asdict(each) for each in decision.counted]
    return waiting._replace(verdicts=decision.verdicts, approvals=counted)


def may_be_rejected(storage: Storage, side: str, content: str) -> bool:
    """Return whether a decision about a content is not an approval; a rejection holds without required approvals."""
    given = read_approvals(pending_directory(storage, side) / content).values()
    rejected = [each.subject["fingerprint"] for each in kept_rejections(storage, side)]
    return content in rejected or any(each is None or each.decision == "reject" for each in given)


def _decide(
    approvers: Path | None,
    manifest: Mapping[str, Any],
    n_required: int,
    path: Path,
    before: Sequence[Approval],
    keyed: Callable[[str], str],
) -> Decision:
    problem = ""
    try:
        people = () if approvers is None else read_approvers(approvers)
    except InvalidSettingError as error:
        problem = str(error)
    if problem:
        return Decision((Verdict(APPROVAL_CHECK, False, "error", problem),))
    if approvers is not None:
        # Approvers read it, on their own machines, too.
        replace_file(path / APPROVERS_FILE, approvers.read_bytes())
    command = f"`privacy_assets approve {shlex.quote(str(from_project_root(path)))} --key FILE --statement WHY`"
    given, is_page = read_approvals(path), pages_of(path, keyed)
    return decide(subject_of(manifest), n_required, people, given, clock.now(), command, before, is_page)
