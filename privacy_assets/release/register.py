"""The register: one page that lists every release below a directory, regenerated from their manifests."""

from __future__ import annotations

import html
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from privacy_assets.display.numbers import number
from privacy_assets.errors import InvalidSettingError
from privacy_assets.release import clock
from privacy_assets.release.approvals import Approval
from privacy_assets.release.declaration import review_of
from privacy_assets.release.gate import Verdict
from privacy_assets.release.manifest import (
    DIRECTORY_TIME,
    LATEST,
    MANIFEST_FILE,
    RELEASE_NAME,
    REPORT_FILE,
    WITHHELD,
    DamagedManifestError,
    are_withheld,
    parse_manifest,
    read_manifest_bytes,
)
from privacy_assets.release.metrics import METRICS, UTILITY
from privacy_assets.release.outcomes import Outcome, in_words, outcome_of, page_template
from privacy_assets.release.received_checks import LONGEST_NAME, present_files
from privacy_assets.release.received_files import read_regular
from privacy_assets.release.signing import PublicKey, find_signature, read_public_key
from privacy_assets.release.verification import verify_release
from privacy_assets.release.withdrawals import WITHDRAWN_FILE, read_withdrawals
from privacy_assets.setting_checks import is_integer
from privacy_assets.storage.durable_files import TEMPORARY_MARK, locked, replace_file

REGISTER_FILE = "index.html"
REGISTER_MARK = b'<meta name="generator" content="privacy_assets register">'
TEMPLATE = "register.html"
REGISTER_MODE = 0o644
REFUSALS_MARK = "privacy_assets refusals"
"""Name of the part of the page with its refusals as JSON, which a register without a private directory keeps."""
MAX_REGISTER_BYTES = 64 * 2**20
SECONDS_TO_WAIT = 30.0
MOST_COLUMNS_NAMED = 12
MOST_WAIVERS_NAMED = 20
WIDTH, HEIGHT, MARGIN = 220, 48, 4
MOST_POINTS = 200
FEWEST_POINTS = 2


@dataclass(frozen=True)
class OpenRefusal:
    """A table that was refused in so many runs since its last release, and what the latest of them found."""

    table: str
    refused_at: str
    n_runs: int
    failed: tuple[str, ...]

    @property
    def moment(self) -> str:
        """The time for people."""
        refused_at = _instant(self.refused_at)
        return "unknown" if refused_at is None else f"{refused_at:%Y-%m-%d %H:%M} UTC"


class RecordedRun(NamedTuple):
    """A refused run from the private history."""

    release: str
    side: str
    partition: str | None
    refused_at: str
    failed: tuple[str, ...]


class Trend(NamedTuple):
    """A limited figure of one table over its releases: the points of its line and of its limit's as an SVG polyline."""

    metric: str
    text: str
    found: str
    limits: str


@dataclass(frozen=True)
class RegisterEntry:
    """One release, as described by its manifest.

    ``problem`` says why the manifest cannot be read; then the time is empty. ``link`` is the address of the report,
    relative to the register; empty if there is none.
    """

    table: str
    created_at: str
    link: str = ""
    problem: str = ""
    policy: str = ""
    verdict: str = ""
    kind: str = "good"
    n_records: int = 0
    figures: tuple[Outcome, ...] = ()
    worth: str = ""
    refusals_before: int = 0
    waivers: tuple[str, ...] = ()
    leaving: str = ""
    withdrawn: str = ""
    review_by: str = ""
    approvals: tuple[str, ...] = ()
    signature: str = ""
    signature_kind: str = ""
    files: str = ""
    files_kind: str = ""
    outcomes: tuple[Verdict, ...] = ()

    @property
    def moment(self) -> str:
        """The time for people."""
        return f"{datetime.fromisoformat(self.created_at):%Y-%m-%d %H:%M} UTC" if self.created_at else "unknown"


class _Asked(NamedTuple):
    """What the rows of a register are compared with: keys, the limit of `verify_release`, and withdrawals by digest."""

    trusted: Sequence[PublicKey]
    verify_within: int | None
    withdrawn: Mapping[str, str]


def write_register(
    root: Path,
    *,
    refusals: Sequence[RecordedRun] | None = None,
    public_keys: Sequence[str | Path] = (),
    verify_within: int | None = None,
    seconds_to_wait: float = SECONDS_TO_WAIT,
) -> tuple[Path, int]:
    """Write ``index.html``, which lists every release below a directory; return it and the number of releases.

    Everything is read while the directory is locked, so the last of several concurrent writers has read every release.
    If refused runs are None, those of the register that is replaced stay, as far as nothing was released since, or are
    shown as unknown if there is none. All files are read, within this number of bytes as by `verify_release`,
    only if ``verify_within`` is given; else their sizes are compared.
    Raises InvalidSettingError if the directory does not exist, another writer does not finish, or ``index.html`` is
    another page.
    """
    trusted = [read_public_key(key) for key in public_keys]
    if not root.is_dir():
        raise InvalidSettingError(f"{str(root)!r} is not a directory. Expected the directory of the releases.")
    path, end = root / REGISTER_FILE, time.monotonic() + seconds_to_wait
    while True:
        with locked(root, wait=False) as is_alone:
            if is_alone:
                _require_own(path)
                entries = list(read_entries(root, trusted, verify_within=verify_within))
                shown = _kept_refusals(path, entries) if refusals is None else open_refusals(entries, refusals)
                page = render_register(entries, shown)
                # Names in a file system or a manifest can have halves of characters, which no page can.
                replace_file(path, page.encode(errors="replace"), REGISTER_MODE)
                return path, len(entries)
        if time.monotonic() >= end:
            raise InvalidSettingError(
                f"Another process has been writing the register of {str(root)!r} for {seconds_to_wait:g} seconds. The "
                "register was not written. Run `privacy_assets register` on the directory when that process has ended."
            )
        time.sleep(0.02)


def read_entries(
    root: Path, trusted: Sequence[PublicKey] = (), *, verify_within: int | None = None
) -> Iterator[RegisterEntry]:
    """Yield an entry for each release below a directory; with a damaged manifest, it has a problem and no figures.

    A link is not followed, and neither it nor what has the name of a release without being a directory is skipped.
    Raises InvalidSettingError if the list of withdrawn releases was edited.
    """
    listed = read_withdrawals(root / WITHDRAWN_FILE, trusted)
    asked = _Asked(trusted, verify_within, {entry.manifest: entry.in_words for entry in listed})
    unread: list[OSError] = []
    for directory, below, files in os.walk(root, onerror=unread.append):
        # A release has a manifest, whatever that is, or at least the name of a release.
        if MANIFEST_FILE in (*files, *below) or RELEASE_NAME.fullmatch(Path(directory).name):
            below.clear()
            yield _entry(root, Path(directory), asked)
        for name in sorted([*below, *filter(RELEASE_NAME.fullmatch, files)]):
            path = Path(directory, name)
            if (name in files or path.is_symlink()) and not _is_latest(path):
                problem = "it is not the directory of a release, but a link or a file, and was not read"
                yield RegisterEntry(path.relative_to(root).as_posix(), "", "", problem, kind="refused")
        below[:] = sorted(name for name in below if not name.startswith(TEMPORARY_MARK))
    for error in unread:
        place = Path(error.filename).relative_to(root).as_posix()
        yield RegisterEntry(place, "", "", f"the directory cannot be read ({type(error).__name__})", kind="refused")


def render_register(
    entries: Sequence[RegisterEntry], refusals: Sequence[OpenRefusal] | None, on: date | None = None
) -> str:
    """Return the register as one HTML page that needs no other file, no network and no script.

    It has the latest release first. Refusals are None if unknown. Waivers are judged to have expired on the given day.
    """
    today = (on or clock.today()).isoformat()
    latest_first = sorted(entries, key=lambda entry: (entry.created_at, entry.link), reverse=True)
    by_table: dict[str, list[RegisterEntry]] = {}
    for entry in reversed(latest_first):
        by_table.setdefault(entry.table, []).append(entry)
    trends: list[tuple[str, Sequence[Trend]]] = [
        (table, trends_of([(entry.created_at, entry.outcomes) for entry in own]))
        for table, own in sorted(by_table.items())
    ]
    return page_template(TEMPLATE).render(
        mark=REGISTER_MARK.decode(),
        refusals_mark=REFUSALS_MARK,
        refusals_json=None if refusals is None else json.dumps([asdict(each) for each in refusals]),
        entries=latest_first,
        n_tables=len(by_table),
        trends=[(table, own) for table, own in trends if own],
        refusals=refusals,
        today=today,
    )


def trends_of(releases: Sequence[tuple[str, Sequence[Verdict]]]) -> tuple[Trend, ...]:
    """Return how limited figures changed over releases, given as time and verdicts, oldest first.

    Only the last 200 releases are drawn, and figures of at least two.
    """
    series: dict[str, list[tuple[float, float]]] = {}
    for _, outcomes in releases[-MOST_POINTS:]:
        for verdict in outcomes:
            if verdict.value is not None and verdict.limit is not None:
                series.setdefault(str(verdict.metric), []).append((float(verdict.value), float(verdict.limit)))
    return tuple(_drawn(metric, points) for metric, points in series.items() if len(points) >= FEWEST_POINTS)


def _drawn(metric: str, points: Sequence[tuple[float, float]]) -> Trend:
    every = [value for point in points for value in point]
    low, high = min(every), max(every)
    across = (WIDTH - 2 * MARGIN) / (len(points) - 1)
    upwards = (HEIGHT - 2 * MARGIN) / ((high - low) or 1)

    def line(which: int) -> str:
        return " ".join(
            f"{MARGIN + place * across:.1f},{HEIGHT - MARGIN - (point[which] - low) * upwards:.1f}"
            for place, point in enumerate(points)
        )

    (first, _), (last, limit) = points[0], points[-1]
    text = f"{number(first)} to {number(last)} over {len(points)} releases; limit now {number(limit)}"
    return Trend(in_words(metric), text, line(0), line(1))


def open_refusals(entries: Sequence[RegisterEntry], refusals: Sequence[RecordedRun]) -> tuple[OpenRefusal, ...]:
    """Return the tables that were refused after their last release, latest first."""
    since: dict[str, list[RecordedRun]] = {}
    for run in refusals:
        since.setdefault(_table_name(run.release, run.side, run.partition), []).append(run)
    last = _last_releases(entries)
    found = []
    for table, runs in since.items():
        own = [run for run in runs if _is_after(run.refused_at, last.get(table))]
        if own:
            latest = max(own, key=lambda run: run.refused_at)
            found.append(OpenRefusal(table, latest.refused_at, len(own), latest.failed))
    return tuple(sorted(found, key=lambda each: each.refused_at, reverse=True))


def _last_releases(entries: Sequence[RegisterEntry]) -> dict[str, datetime]:
    last: dict[str, datetime] = {}
    for entry in entries:
        if entry.created_at:
            moment = datetime.fromisoformat(entry.created_at)
            last[entry.table] = max(moment, last.get(entry.table, moment))
    return last


def _is_after(at: str, release: datetime | None) -> bool:
    """Return whether something was refused after a release; at an unknown time, it could have been."""
    moment = _instant(at)
    return release is None or moment is None or moment > release


def _kept_refusals(path: Path, entries: Sequence[RegisterEntry]) -> tuple[OpenRefusal, ...] | None:
    """Return the refusals of the register that is replaced, without those before a release; None if unknown."""
    last = _last_releases(entries)
    try:
        page = read_regular(path, MAX_REGISTER_BYTES).decode(errors="replace")
        found = re.search(f'<meta name="{REFUSALS_MARK}" content="([^"]*)">', page)
        read: list[dict[str, Any]] = [] if found is None else json.loads(html.unescape(found[1]))
        kept = [OpenRefusal(**each | {"failed": tuple(map(str, each["failed"]))}) for each in read]
        still = tuple(each for each in kept if _is_after(each.refused_at, last.get(each.table)))
        return still if found is not None and all(is_integer(each.n_runs, 1) for each in still) else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _instant(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment


def _entry(root: Path, directory: Path, asked: _Asked) -> RegisterEntry:
    place = directory.relative_to(root).as_posix()
    link = quote(os.fsencode(f"{place}/{REPORT_FILE}")) if _is_regular(directory / REPORT_FILE) else ""
    try:
        data = read_manifest_bytes(directory)
        return _described(directory, link, parse_manifest(data), data, asked)
    except DamagedManifestError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 - a manifest that breaks its row has a row that says so
        problem = f"{MANIFEST_FILE} is damaged or incomplete: {type(error).__name__} while it was read"
    return RegisterEntry(place, "", link, problem, kind="refused")


def _is_regular(path: Path) -> bool:
    return os.path.lexists(path) and stat.S_ISREG(path.lstat().st_mode)


def _is_latest(path: Path) -> bool:
    return path.name == LATEST and RELEASE_NAME.fullmatch(str(path.readlink())) is not None


def _described(
    directory: Path,
    link: str,
    manifest: Mapping[str, Any],
    data: bytes,
    asked: _Asked,
) -> RegisterEntry:
    # As text that can be sorted, because Python versions differ in the forms of a time that they accept.
    created_at = _created_at(directory, manifest).isoformat(timespec="microseconds")
    decided = [Verdict.from_json(verdict) for verdict in manifest["verdicts"]]
    warnings = [verdict for verdict in decided if not verdict.passed]
    waived = [verdict for verdict in decided if verdict.waived_by is not None]
    said = "Released"
    said += f" under {len(waived)} waiver{'s' if len(waived) > 1 else ''}" if waived else ""
    said += f", with {len(warnings)} warning{'s' if len(warnings) > 1 else ''}" if warnings else ""
    policy = manifest["policy"]
    name = "of its own" if policy["use_case"] is None else in_words(_short(policy["use_case"]))
    changed = in_words(_first(policy["changes"], MOST_COLUMNS_NAMED))
    name += f", changed in {changed}" if changed else ""
    signature, signature_kind = _signature_state(directory, manifest, data, asked.trusted)
    files, files_kind = _state_of_files(directory, manifest, asked)
    limited = {each.metric: each for each in decided if each.metric in METRICS and each.limit is not None}
    outcomes = tuple(limited.values())
    return RegisterEntry(
        table=_table_name(manifest["release"], manifest["stage"], manifest["partition"]),
        created_at=created_at,
        link=link,
        policy=name,
        verdict=said,
        kind="waived" if waived else "warning" if warnings else "good",
        n_records=int(manifest["n_records"]),
        figures=tuple(outcome_of(verdict, manifest) for verdict in outcomes),
        worth=WITHHELD if are_withheld(manifest) else _worth(manifest["figures"].get(UTILITY, {})),
        refusals_before=int(manifest["refusals_before"]),
        waivers=tuple(
            f"{in_words(metric)}, by {person}, expires {expires_on}"
            for metric, person, expires_on in map(_waiver, manifest["waivers"][:MOST_WAIVERS_NAMED])
        ),
        leaving=_first([each["column"] for each in manifest.get("columns_leaving_as_is", ())], MOST_COLUMNS_NAMED),
        review_by=str(review_of(manifest.get("declaration", {})) or ""),
        approvals=tuple(Approval.of(each).in_words for each in manifest.get("approvals", ())[:MOST_WAIVERS_NAMED]),
        withdrawn=asked.withdrawn.get(manifest["digest"], ""),
        signature=signature,
        signature_kind=signature_kind,
        files=files,
        files_kind=files_kind,
        outcomes=outcomes,
    )


def _waiver(recorded: Mapping[str, Any]) -> Iterator[str]:
    return (_short(recorded[name]) for name in ("metric", "person", "expires_on"))


def _short(text: object) -> str:
    return str(text)[:LONGEST_NAME]


def _first(names: Sequence[object], most: int) -> str:
    """Join the first names, shortened, and count the others."""
    more = f", and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(_short, names[:most])) + more


def _created_at(directory: Path, manifest: Mapping[str, Any]) -> datetime:
    """Return when a release was made; the name of its directory, if unchanged, has the microseconds."""
    moment = datetime.fromisoformat(manifest["created_at"]).astimezone(UTC)
    try:
        exact = datetime.strptime(directory.name.partition("-")[0], DIRECTORY_TIME).replace(tzinfo=UTC)
    except ValueError:
        return moment
    return exact if exact.replace(microsecond=0) == moment else moment


def _table_name(release: str, side: str, partition: str | None) -> str:
    return f"{_short(release)}, {side}" + ("" if partition is None else f", {_short(partition)}")


def _worth(scores: Mapping[str, Any]) -> str:
    if scores.get("utility") is None:
        return "not judged"
    ends = [scores.get(f"utility_{end}") for end in ("lower", "upper")]
    interval = "" if None in ends else f" ({number(float(ends[0] or 0))} to {number(float(ends[1] or 0))})"
    return f"{number(float(scores['utility']))}{interval}"


def _signature_state(
    directory: Path, manifest: Mapping[str, Any], data: bytes, trusted: Sequence[PublicKey]
) -> tuple[str, str]:
    named = manifest.get("signed_by")
    found = find_signature(directory, data, trusted)
    if named is None and found.key_id is None and not trusted:
        return "not signed", "warning" if manifest["policy"]["required"].get("signature") else ""
    if found.problems:
        return found.problems[0], "refused"
    if found.key_id != named:
        return "manifest and signature name different keys", "refused"
    if found.trusted_key is None:
        return f"signed with {str(named)[:12]}…, not checked: no public key was given", ""
    return f"signed with {str(named)[:12]}… ({found.trusted_key}), checked", "good"


def _state_of_files(directory: Path, manifest: Mapping[str, Any], asked: _Asked) -> tuple[str, str]:
    if asked.verify_within is not None:
        problems = verify_release(directory, public_keys=asked.trusted, max_bytes=asked.verify_within).problems
        return (f"NOT verified: {problems[0]}", "refused") if problems else ("verified", "good")
    present = present_files(directory, manifest)
    for name, entry in manifest["files"].items():
        path = directory / name
        if name not in present or not _is_regular(path) or path.lstat().st_size != entry["bytes"]:
            return "a file is missing, or does not have the recorded size", "refused"
    return "files exist, content not verified", ""


def _require_own(path: Path) -> None:
    """Refuse to replace a page that is not a register."""
    if not path.exists():
        return
    is_own = False
    if path.is_file():
        with path.open("rb") as file:
            is_own = REGISTER_MARK in file.read(4_096)
    if not is_own:
        raise InvalidSettingError(
            f"{str(path)!r} is not a register of this package, so it was not replaced. Move it away to get a register."
        )
