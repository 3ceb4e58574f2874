"""Waivers: a named person takes responsibility for one limit that one content fails, until a given day.

Anyone who can write the file can waive limits, so protect its directory like the policy. See ``docs/waivers.md``.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from privacy_assets.display.numbers import in_full
from privacy_assets.errors import InvalidSettingError
from privacy_assets.release.declaration import as_date
from privacy_assets.release.metrics import METRICS, SIDES
from privacy_assets.release.policy import Limit
from privacy_assets.release.signing import PublicKey, Signer
from privacy_assets.setting_checks import FEWEST_REASON_WORDS, has_words, is_number
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.storage.durable_files import replace_file

MAX_DAYS = 366
"""Longest time from signature to expiry."""
LONGEST_FILE = 65_536
LONGEST_TEXT = 2_000
MOST_FILES = 1_000
SIGNATURE = "signature"
CONTEXT = b"privacy_assets waiver, signature version 1\0"
"""Precedes the waiver in the signed message, so that no other signature is valid for it."""
SUFFIXES = (".yaml", ".yml")
NOT_WAIVABLE = frozenset({"leakage_detected"})
CANNOT_BE_WAIVED = (
    "detected leakage cannot be waived, because its figure is 1 regardless of how much leaks; let the policy warn of "
    "it and limit excess_identification_rate, excess_verbatim_rate and excess_copy_rate, which can be waived"
)


@dataclass(frozen=True)
class Waiver:
    """An approved exception from one limit for one content.

    Parameters
    ----------
    metric : str
        Metric of the limit; not `leakage_detected`, which is 1 regardless of how much leaks.
    limit : float
        Value of the limit, exactly as in the policy and in the refusal.
    figure : float
        The accepted figure, within the range of the metric: the exact figure of the refusal, or that figure rounded
        towards more risk. Any riskier figure is not waived. The same records can be riskier when assessed against other
        originals.
    person, reason : str
        Who signed, and why. Both are published with the release.
    signed_on, expires_on : date
        First and last day (UTC) on which the waiver applies; at most 366 days apart.
    signature : str, optional
        Signature of an approver in base64, which `privacy_assets approve` adds.
    """

    file: str
    release: str
    metric: str
    limit: float
    figure: float
    fingerprint: str
    person: str
    reason: str
    signed_on: date
    expires_on: date
    signature: str | None = None

    @classmethod
    def from_mapping(cls, file: str, mapping: object) -> Waiver:
        """Read the fields of a waiver; raise InvalidSettingError that lists all that is wrong, without values."""
        if not isinstance(mapping, Mapping):
            raise InvalidSettingError(f"it is not a mapping with the fields {', '.join(FIELDS)}")
        problems = []
        missing = [name for name in FIELDS if name not in mapping]
        if missing:
            problems.append(f"it lacks {', '.join(missing)}")
        n_unknown = len(set(mapping) - {*FIELDS, SIGNATURE})
        if n_unknown:
            problems.append(f"{n_unknown} of its fields are unknown; the fields are {', '.join(FIELDS)}")
        problems += (
            [] if mapping.get(SIGNATURE) is None or is_text(mapping[SIGNATURE]) else ["its signature is no text"]
        )
        problems += [
            f"its {name} is not {expected}"
            for name, (is_right, expected) in _EXPECTED.items()
            if name in mapping and not is_right(mapping[name])
        ]
        if not problems:
            signed_on, expires_on = as_date(mapping["signed_on"]), as_date(mapping["expires_on"])
            assert signed_on is not None and expires_on is not None  # noqa: S101 - checked above
            days = (expires_on - signed_on).days
            if not 0 <= days <= MAX_DAYS:
                problems.append(f"it applies for {days} days from its signature; expected 0 to {MAX_DAYS}")
            metric = METRICS[mapping["metric"]]
            if not metric.low <= mapping["figure"] <= metric.high:
                problems.append(
                    f"its figure is impossible: {mapping['metric']} ranges from {metric.low} to {metric.high}"
                )
        if problems:
            raise InvalidSettingError("; ".join(problems))
        dates = {"signed_on": signed_on, "expires_on": expires_on, SIGNATURE: mapping.get(SIGNATURE)}
        return cls(**{**{name: mapping[name] for name in FIELDS}, **dates, "file": file})

    @classmethod
    def from_json(cls, recorded: Mapping[str, Any]) -> Waiver:
        """Read the output of :meth:`to_json`; raise InvalidSettingError for anything else."""
        file = recorded.get("file")
        if not isinstance(file, str):
            raise InvalidSettingError("it does not name its file")
        return cls.from_mapping(file, {name: value for name, value in recorded.items() if name != "file"})

    def to_json(self) -> dict[str, Any]:
        """Return the waiver as JSON values."""
        written = asdict(self) | {"signed_on": self.signed_on.isoformat(), "expires_on": self.expires_on.isoformat()}
        return {name: value for name, value in written.items() if name != SIGNATURE or value is not None}

    @property
    def body(self) -> bytes:
        """What a signature covers: everything but the name of the file, as JSON with sorted keys and without spaces."""
        own = {name: value for name, value in self.to_json().items() if name not in ("file", SIGNATURE)}
        return CONTEXT + canonical_json(own).encode()

    def is_signed_by(self, keys: Sequence[PublicKey]) -> bool:
        """Return whether one of the keys signed the waiver as it is."""
        return any(key.made(self.signature, self.body) for key in keys)

    @property
    def side(self) -> str:
        """The side of a release whose limit the waiver is for; empty if the limit is on both sides."""
        metric = METRICS[self.metric]
        return "" if metric.is_on_both_sides else SIDES[metric.assessment]

    def problems(self, release: str, fingerprint: str, limit: Limit, value: float | None, on: date) -> tuple[str, ...]:
        """Return why the waiver does not apply to a limit for a content on a day (UTC); empty if it applies.

        A missing figure cannot be waived, because its risk is unknown.
        """
        conditions = {
            "it is for another release": self.release == release,
            "it is for another limit": self.metric == limit.metric,
            CANNOT_BE_WAIVED: self.metric != limit.metric or self.metric not in NOT_WAIVABLE,
            f"it waives a limit of {in_full(self.limit)}, but the policy has {in_full(limit.value)}": (
                self.metric != limit.metric or self.limit == limit.value
            ),
            "it is for other content": self.fingerprint == fingerprint,
            "a figure without a value cannot be waived": value is not None,
            f"it accepts a figure of {in_full(self.figure)}, but the figure found is riskier": (
                value is None or self.metric != limit.metric or self._accepts(value)
            ),
            f"it applies only from {self.signed_on} on": self.signed_on <= on,
            f"it expired on {self.expires_on}": on <= self.expires_on,
        }
        return tuple(problem for problem, is_met in conditions.items() if not is_met)

    def _accepts(self, value: float) -> bool:
        larger_is_riskier = METRICS[self.metric].direction in ("below", "at_most")
        return value <= self.figure if larger_is_riskier else value >= self.figure


@dataclass(frozen=True)
class UnusableWaiver:
    """A file in the place of waivers that is not a valid waiver, with the reason."""

    file: str
    problem: str


@dataclass(frozen=True)
class Waivers:
    """All files in the place of waivers, for the gate that decides on a release on a day (UTC)."""

    release: str
    on: date
    files: tuple[Waiver | UnusableWaiver, ...] = ()
    signers: tuple[PublicKey, ...] | None = None
    """Keys of those who must have signed a waiver, if somebody must."""

    def problems(self, waiver: Waiver, fingerprint: str, limit: Limit, value: float | None) -> tuple[str, ...]:
        """Return why a waiver does not apply, also because no approver signed it."""
        unsigned = self.signers is not None and not waiver.is_signed_by(self.signers)
        found = waiver.problems(self.release, fingerprint, limit, value, self.on)
        return (*found, "no approver signed it as it is") if unsigned else found

    @property
    def usable(self) -> tuple[Waiver, ...]:
        """The valid waivers."""
        return tuple(each for each in self.files if isinstance(each, Waiver))

    @property
    def of_the_release(self) -> tuple[Waiver | UnusableWaiver, ...]:
        """All files except waivers of other releases, which may be in the same directory."""
        return tuple(each for each in self.files if isinstance(each, UnusableWaiver) or each.release == self.release)


def read_waivers(path: Path) -> tuple[Waiver | UnusableWaiver, ...]:
    """Read a waiver, or all waivers in a directory. Every file that cannot be read is reported.

    A directory has at most 1,000 YAML files; those beyond the first 1,000 by name are counted, not read. Hidden files
    (``.gitkeep``) are ignored.
    """
    try:
        paths = sorted(each for each in path.iterdir() if not each.name.startswith("."))
    except NotADirectoryError:
        return (_read(path),)
    except FileNotFoundError:
        return (UnusableWaiver(shown_name(path), "it does not exist"),)
    except OSError:
        return (UnusableWaiver(shown_name(path), "it cannot be read"),)
    found = tuple(_read(each) for each in paths[:MOST_FILES])
    if len(paths) <= MOST_FILES:
        return found
    problem = f"it has {len(paths):,} files, of which only the first {MOST_FILES:,} by name were read"
    return (*found, UnusableWaiver(shown_name(path), problem))


def _read(path: Path) -> Waiver | UnusableWaiver:
    name = shown_name(path)
    try:
        if name != path.name:
            raise InvalidSettingError("its name is not UTF-8")
        if path.suffix.lower() not in SUFFIXES and not path.is_dir():
            raise InvalidSettingError(f"its name does not end in {' or '.join(SUFFIXES)}")
        return Waiver.from_mapping(name, strict_yaml(path))
    except InvalidSettingError as error:
        return UnusableWaiver(name, str(error))


def sign_waiver(path: Path, signer: Signer, confirm: Callable[[Waiver], bool]) -> Waiver | None:
    """Add a signature to the file of a waiver, whose other lines stay; None if whoever signs does not ``confirm`` it.

    Raises InvalidSettingError if it is no waiver.
    """
    waiver = _read(path)
    problem = waiver.problem if isinstance(waiver, UnusableWaiver) else ""
    problem = "it has a signature already; remove that line" if getattr(waiver, SIGNATURE, None) else problem
    if isinstance(waiver, UnusableWaiver) or problem:
        raise InvalidSettingError(f"{str(path)!r} is not signed: {problem}.")
    signature = signer.signature_of(waiver.body)
    signed = _content(path).rstrip() + f"\n{SIGNATURE}: {signature}\n".encode()
    problem = "its YAML takes no line more; write each field on a line of its own, and nothing after them"
    with suppress(yaml.YAMLError, InvalidSettingError):
        if Waiver.from_mapping(waiver.file, yaml.load(signed, _StrictLoader)).is_signed_by((signer.public_key,)):  # noqa: S506
            problem = ""
    if problem:
        raise InvalidSettingError(f"{str(path)!r} is not signed: {problem}.")
    if not confirm(waiver):
        return None
    replace_file(path, signed, stat.S_IMODE(path.stat().st_mode))
    return waiver


def strict_yaml(path: Path) -> Any:
    """Read a YAML file of bounded size without repeated keys or references; errors show no value of it."""
    problem = ""
    try:
        return yaml.load(_content(path), _StrictLoader)  # noqa: S506 - a SafeLoader
    except InvalidSettingError as error:
        problem = str(error)
    except FileNotFoundError:
        problem = "it does not exist"
    except OSError:
        problem = "it cannot be read"
    except Exception:  # noqa: BLE001 (PyYAML does not wrap errors of its conversions, such as KeyError for !!bool x)
        # The message of the parser would quote the file.
        problem = "it is not valid YAML"
    raise InvalidSettingError(problem)


def _content(path: Path) -> bytes:
    """Read a file of bounded size, without waiting for a named pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise InvalidSettingError("it is a directory; expected all waivers in one directory")
        if not stat.S_ISREG(mode):
            raise InvalidSettingError("it is not a file but a pipe, a socket or a device")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(LONGEST_FILE + 1)
    finally:
        os.close(descriptor)
    if len(content) > LONGEST_FILE:
        raise InvalidSettingError(f"it is larger than {LONGEST_FILE:,} bytes")
    return content


def shown_name(path: Path) -> str:
    """Return a file name in a form that every log can contain, with characters that are not UTF-8 replaced."""
    return os.fsencode(path.name).decode(errors="replace")


class _StrictLoader(yaml.SafeLoader):  # type: ignore[misc]
    """Refuse repeated keys, of which plain YAML would use the last, and references, which can grow without bound."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Read a value that is not a reference."""
        if self.check_event(yaml.AliasEvent):
            raise InvalidSettingError("it contains a reference (*name); expected every value written out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping with distinct keys."""
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            raise InvalidSettingError("it has a field twice")
        return mapping


# YAML 1.1 reads 1e-05, which is how Python writes that number, as text.
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+"), list("-+0123456789")
)


def is_text(value: object) -> bool:
    """Return whether a value is a text of 1 to 2,000 characters that can be written everywhere."""
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TEXT:
        return False
    # A lone surrogate, which YAML can contain, cannot be written to a manifest or a log.
    return value.encode(errors="ignore").decode() == value


def has_reason(value: object) -> bool:
    """Return whether a value is such a text with enough words to be a reason."""
    return is_text(value) and has_words(str(value))


_TEXT = (is_text, f"a text of 1 to {LONGEST_TEXT:,} characters")
_DATE = (lambda value: as_date(value) is not None, "a date such as 2026-09-30")
_EXPECTED = {
    "release": _TEXT,
    "metric": (lambda value: isinstance(value, str) and value in METRICS, "a metric that a policy can limit"),
    "limit": (is_number, "a number"),
    "figure": (is_number, "a number"),
    "fingerprint": (
        lambda value: isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None,
        "a fingerprint, 64 characters from 0 to 9 and a to f (in quotes)",
    ),
    "person": _TEXT,
    "reason": (
        has_reason,
        f"a text of 1 to {LONGEST_TEXT:,} characters, with at least {FEWEST_REASON_WORDS} words",
    ),
    "signed_on": _DATE,
    "expires_on": _DATE,
}
FIELDS = tuple(field.name for field in fields(Waiver) if field.name not in ("file", SIGNATURE))
