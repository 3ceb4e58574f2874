"""Approvals: people who are named in a file decide on exactly one waiting release, and sign their decision.

An approval holds for one content in these files, under one policy, with one declaration and these figures; a rejection
holds for the content, whatever else changes. Only the files of the approvers' keys decide who is one.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from privacy_assets.errors import InvalidSettingError
from privacy_assets.release import clock
from privacy_assets.release.declaration import as_date
from privacy_assets.release.gate import (
    APPROVAL_CHECK,
    EVERY_WAIVER_IS_USED,
    REJECTION_CHECK,
    Verdict,
    first_of,
)
from privacy_assets.release.manifest import REPORT_FILE, data_files, is_instant, is_sha256
from privacy_assets.release.received_files import parse_json_object, read_regular
from privacy_assets.release.signing import PublicKey, Signer, parse_public_key
from privacy_assets.release.waivers import has_reason, is_text, shown_name, strict_yaml
from privacy_assets.setting_checks import is_printable
from privacy_assets.storage.artifact import canonical_json

APPROVERS_FILE: Final = "approvers.yaml"
APPROVAL_FILES: Final = "approval-*.json"
DECISIONS: Final = ("approve", "reject")
MAX_APPROVAL_BYTES: Final = 65_536
MOST_APPROVALS: Final = 1_000
CONTEXT: Final = b"privacy_assets approval, signature version 1\0"
"""Precedes the approval in the signed message, so that no other signature is valid for it."""
PAGE: Final = "report"
CONTENT: Final = ("release", "stage", "partition", "fingerprint")
FIGURES: Final = ("figures", "settings", "columns", "columns_leaving_as_is", "n_records")
_TEXTS: Final = ("name", "role", "public_key")
_PARTS: Final = {
    **dict.fromkeys(CONTENT, "other content"),
    "files": "other files",
    "policy": "another policy",
    "declaration": "another declaration",
    "figures": "other figures",
    "waivers": "other waivers",
    "withdrawn_before": "this content before it was withdrawn",
}
"""What an approval covers, and what one is about in which that differs."""
_DECIDED: Final = ("name", "passed", "severity", "metric", "value", "limit", "direction", "waived_by")
"""What of a verdict an approval covers: not its words, which also say what does not matter for the decision."""
_NOT_COVERED: Final = (APPROVAL_CHECK, REJECTION_CHECK, EVERY_WAIVER_IS_USED)


@dataclass(frozen=True)
class Approver:
    """Somebody who may approve releases, until a last day if there is one."""

    name: str
    role: str
    key: PublicKey
    until: date | None = None

    @property
    def in_words(self) -> str:
        """Name and role."""
        return f"{self.name} ({self.role})"

    def is_one_on(self, day: date) -> bool:
        """Return whether somebody may approve on a day."""
        return self.until is None or day <= self.until


def read_approvers(path: Path) -> tuple[Approver, ...]:
    """Read the file of the approvers; raise InvalidSettingError for whatever is wrong with it, without values."""
    problem, found = "", []
    try:
        entries = strict_yaml(path)
        if not isinstance(entries, list) or not entries:
            raise InvalidSettingError("it is not a list of approvers")
        found = [_approver(place, entry) for place, entry in enumerate(entries, start=1)]
        for what, values in (
            ("key", [each.key.key_id for each in found]),
            ("name", [_compared(each.name) for each in found]),
        ):
            if len(set(values)) < len(values):
                raise InvalidSettingError(f"two approvers have the same {what}; expected one of their own for each")
    except InvalidSettingError as error:
        problem = str(error).removesuffix(".")
    if problem:
        raise InvalidSettingError(f"The approvers in {str(path)!r} cannot be used: {problem}. Nothing was approved.")
    return tuple(found)


def _compared(name: str) -> str:
    """Return a name without what makes one person look like two: case, spaces, and forms of letters."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(each for each in plain if not each.isspace() and unicodedata.category(each) != "Cf")


def _approver(place: int, entry: object) -> Approver:
    given = entry if isinstance(entry, Mapping) else {}
    until = as_date(given.get("until"))
    is_right = {"name", "role", "public_key"} <= set(given) <= {"name", "role", "public_key", "until"}
    is_right = is_right and all(is_text(given[name]) and is_printable(given[name]) for name in _TEXTS)
    if not is_right or (given.get("until") is not None and until is None):
        raise InvalidSettingError(
            f"approver {place} needs name, role, and public_key (the text of a PEM file), and can have until, a date"
        )
    return Approver(given["name"], given["role"], parse_public_key(given["public_key"].encode(), given["name"]), until)


@dataclass(frozen=True)
class Approval:
    """One signed decision; ``subject`` is what it is about (`subject_of`), ``at`` its time in UTC."""

    approval_version: int
    subject: Mapping[str, Any]
    decision: str
    statement: str
    name: str
    role: str
    at: str
    key_id: str
    signature: str = ""

    @property
    def body(self) -> bytes:
        """What the signature covers, as JSON with sorted keys and without spaces."""
        return canonical_json({name: own for name, own in asdict(self).items() if name != "signature"}).encode()

    def to_json(self) -> dict[str, Any]:
        """Return the approval as JSON values."""
        return asdict(self)

    @property
    def in_words(self) -> str:
        """Who decided what and why, in one line: another could look as if somebody else had decided."""
        return " ".join(f"{self.name} ({self.role}), {self.at[:10]}: {self.statement}".split())

    @classmethod
    def of(cls, read: Mapping[str, Any]) -> Approval:
        """Read the JSON of an approval; raise ValueError if it is none."""
        is_right = (
            set(read) == {each.name for each in fields(cls)}
            and read["approval_version"] == 1
            and isinstance(read["subject"], Mapping)
            and read["decision"] in DECISIONS
            and has_reason(read["statement"])
            and all(is_text(each) and is_printable(each) for each in (read["name"], read["role"]))
            and is_instant(read["at"])
            and is_sha256(read["key_id"])
            and isinstance(read["signature"], str)
        )
        if not is_right:
            raise ValueError("not an approval")
        return cls(**read)

    def problems(self, subject: Mapping[str, Any], approvers: Sequence[Approver] | None, at: datetime) -> Iterator[str]:
        """Yield why it does not hold for a subject at a time; without approvers, who decided is not checked.

        Which page the approver read is not in the subject: `decide` asks.
        """
        approver = _signer_of(self, approvers)
        if approvers is not None and approver is None:
            yield "its key is not that of an approver, or it was edited after it was signed"
        if approver is not None and not approver.is_one_on(at.date()):
            yield f"{approver.in_words} is an approver until {approver.until} only"
        if datetime.fromisoformat(self.at) > at:
            yield f"it was signed at {self.at}, which is still to come at {at.isoformat(timespec='seconds')}"
        others = [_PARTS[part] for part, own in subject.items() if self.subject.get(part) != own]
        if others:
            yield f"it is about {', '.join(dict.fromkeys(others))}"


class Decision(NamedTuple):
    """The verdicts on the approvals of a release, the approvals that count, and the rejections that hold."""

    verdicts: tuple[Verdict, ...]
    counted: tuple[Approval, ...] = ()
    rejections: tuple[Approval, ...] = ()


def subject_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an approval of a release is about, by its manifest, or by that of a waiting one.

    An approval also names the page that the approver read, `PAGE`: the published page says who approved it.
    """
    decided = [[each[name] for name in _DECIDED] for each in manifest["verdicts"] if each["name"] not in _NOT_COVERED]
    data = {name: manifest["files"][name]["sha256"] for name in data_files(manifest)}
    waived_by = {each["waived_by"] for each in manifest["verdicts"]}
    return {
        **{name: manifest[name] for name in CONTENT},
        "files": _digest(data),
        "policy": _digest(manifest["policy"]),
        "declaration": _digest(manifest.get("declaration", {})),
        "figures": _digest([*(manifest[name] for name in FIGURES), decided]),
        "waivers": _digest([each for each in manifest["waivers"] if each["file"] in waived_by]),
        "withdrawn_before": manifest.get("withdrawn_before", 0),
    }


def sign_approval(
    manifest: Mapping[str, Any], approvers: Sequence[Approver], signer: Signer, decision: str, statement: str
) -> Approval:
    """Return the signed decision on a waiting release; raise InvalidSettingError if the key is not an approver's."""
    approver = next((each for each in approvers if each.key.key_id == signer.key_id), None)
    names = ", ".join(each.in_words for each in approvers)
    if approver is None:
        raise InvalidSettingError(f"The key {signer.key_id} is not that of an approver: {names}. Nothing was approved.")
    if not approver.is_one_on(clock.today()):
        raise InvalidSettingError(f"{approver.in_words} is an approver until {approver.until} only. Ask another one.")
    if not has_reason(statement):
        raise InvalidSettingError("The statement has fewer than three words, or too many characters. Say why.")
    at = clock.now().isoformat(timespec="seconds")
    subject = subject_of(manifest) | {PAGE: manifest["files"][REPORT_FILE]["sha256"]}
    who = approver.name, approver.role
    approval = Approval(1, subject, decision, statement.strip(), *who, at, signer.key_id)
    return replace(approval, signature=signer.signature_of(CONTEXT + approval.body))


def read_approvals(directory: Path) -> dict[str, Approval | None]:
    """Return the approvals in the directory of a waiting release by file; None for what is none.

    Of too many files, the rest count as one that is none: a rejection could be among them.
    """
    paths = sorted(directory.glob(APPROVAL_FILES))
    more = {f"{len(paths):,} files": None} if len(paths) > MOST_APPROVALS else {}
    return {shown_name(path): _read(path) for path in paths[:MOST_APPROVALS]} | more


def decide(
    subject: Mapping[str, Any],
    n_required: int,
    approvers: Sequence[Approver] | None,
    given: Mapping[str, Approval | None],
    at: datetime,
    command: str = "",
    rejected_before: Sequence[Approval] = (),
    is_page: Callable[[object], bool] = lambda _: True,
) -> Decision:
    """Decide whether a release is approved by as many people as the policy requires, and rejected by nobody.

    A decision that cannot be read, and a rejection whose signer is no approver, could have been a rejection that holds.
    ``subject`` is what the approvals must be about, ``command`` what approvers are to run, ``given`` the approvals by
    their file. ``rejected_before`` are rejections that held before: they hold until the content changes. ``is_page``
    says of the digest of a page whether it is one that was made of this content.
    """
    counted: dict[str, Approval] = {}
    others, unclear = [], []
    rejections = {each.signature: each for each in rejected_before if _is_of(each, subject)}
    for file, approval in given.items():
        if approval is None:
            unclear.append(f"{file}: it is not an approval")
        elif approval.decision == "reject" and _is_of(approval, subject):
            is_signed = _signer_of(approval, approvers) is not None
            rejections |= {approval.signature: approval} if is_signed else {}
            is_known = is_signed or approval.signature in rejections
            unclear += [] if is_known else [f"{file}: it rejects, and its key is not that of an approver as it is"]
        elif approval.decision == "approve":
            problems = list(approval.problems(subject, approvers, at))
            problems += [] if is_page(approval.subject.get(PAGE)) else ["who approved was shown another page"]
            others += [f"{file}: {problem}" for problem in problems]
            counted |= {} if problems else {approval.key_id: approval}
    is_approved = len(counted) >= n_required and not unclear
    names = ", ".join(f"{each.name} ({each.role})" for each in counted.values())
    left = [each for each in approvers or () if each.key.key_id not in counted and each.is_one_on(at.date())]
    asked = ", ".join(each.in_words for each in left) or "nobody: there is no other approver today"
    reason = f"approved by {names}" if names else "no approval is required"
    if unclear:
        reason = f"waits until these decisions are restored or removed: {first_of(unclear)}"
    elif not is_approved:
        reason = f"waits for {n_required - len(counted)} of {n_required} approvals; ask {asked}" + (
            f", who read {REPORT_FILE} and run {command}" if command else ""
        )
        reason += f" (not counted: {first_of(others)})" if others else ""
    refusal = first_of([f"rejected by {each.in_words}" for each in rejections.values()]) or "nobody rejected it"
    advice = "Make other records: a rejection holds until the content changes." if rejections else ""
    return Decision(
        (
            Verdict(REJECTION_CHECK, not rejections, "error", refusal, advice),
            Verdict(APPROVAL_CHECK, is_approved, "error", reason),
        ),
        tuple(counted.values()),
        tuple(rejections.values()),
    )


def _signer_of(approval: Approval, approvers: Sequence[Approver] | None) -> Approver | None:
    """Return the approver who signed this approval, under the own name."""
    for each in approvers or ():
        is_named = (each.key.key_id, each.name, each.role) == (approval.key_id, approval.name, approval.role)
        if is_named and each.key.made(approval.signature, CONTEXT + approval.body):
            return each
    return None


def _is_of(approval: Approval, subject: Mapping[str, Any]) -> bool:
    return all(approval.subject.get(part) == subject[part] for part in CONTENT)


def _read(path: Path) -> Approval | None:
    try:
        return Approval.of(parse_json_object(read_regular(path, MAX_APPROVAL_BYTES)))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value as it is read back: tuples are lists, and keys are texts."""
    return hashlib.sha256(canonical_json(json.loads(json.dumps(value, allow_nan=False))).encode()).hexdigest()
