"""The list of withdrawn releases: one line of JSON for each, chained by digests, in the directory of the releases.

Recipients have their copies anyway, so a withdrawal removes no file: it says which version should no longer be used.
Each line has the digest of the one before it, so that an edited or removed line is found; a list that ends early is
found only by those who have a longer copy.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from privacy_assets.errors import InvalidSettingError
from privacy_assets.release import clock
from privacy_assets.release.manifest import is_instant, is_sha256
from privacy_assets.release.received_files import parse_json_object, read_regular
from privacy_assets.release.signing import PublicKey, Signer
from privacy_assets.setting_checks import is_integer, is_printable
from privacy_assets.storage.artifact import canonical_json

WITHDRAWN_FILE = "withdrawn.jsonl"
RELEASES_MARK_FILE = ".privacy_assets_releases"
"""Marks the directory of the releases of a project."""
MOST_DIRECTORIES = 3
"""Between a release and the directory of all releases: partition, side and name."""
MAX_LIST_BYTES = 64 * 2**20
CONTEXT = b"privacy_assets withdrawal, signature version 1\0"
"""Precedes the entry in the signed message, so that no other signature is valid for it."""


@dataclass(frozen=True)
class Withdrawal:
    """One withdrawn release.

    ``number`` is the position in the list, from 1. ``release`` is the directory, below that of all releases, and
    ``manifest`` the digest that the manifest records, by which every copy is recognized. ``previous`` and ``digest``
    are the digest of the entry before it, and its own. ``signature`` is made with the key ``key_id``; both can be None.
    """

    number: int
    at: str
    release: str
    manifest: str
    fingerprint: str
    reason: str
    previous: str
    key_id: str | None = None
    digest: str = ""
    signature: str | None = None

    @property
    def body(self) -> bytes:
        """What the digest and the signature cover, as JSON with sorted keys and without spaces."""
        own = {name: value for name, value in asdict(self).items() if name not in ("digest", "signature")}
        return canonical_json(own).encode()

    @property
    def in_words(self) -> str:
        """The date, the reason and the key."""
        signed = "not signed" if self.key_id is None else f"signed with the key {self.key_id}"
        return " ".join(f"withdrawn on {self.at[:10]}: {self.reason} ({signed})".split())


def releases_root(directory: Path) -> Path | None:
    """Return the directory of all releases that has a release; None if it is not in one."""
    return next((path for path in _above(directory) if (path / RELEASES_MARK_FILE).is_file()), None)


def lists_above(directory: Path) -> list[Path]:
    """Return the lists of withdrawn releases above a release, also in a copy of the directory; none hides another."""
    return [path / WITHDRAWN_FILE for path in _above(directory) if os.path.lexists(path / WITHDRAWN_FILE)]


def _above(directory: Path) -> Sequence[Path]:
    return directory.resolve().parents[: MOST_DIRECTORIES + 1]


def read_withdrawals(path: Path, trusted: Sequence[PublicKey] = ()) -> tuple[Withdrawal, ...]:
    """Read the list; empty if there is none. Signatures are checked if they name one of the ``trusted`` keys.

    Raises InvalidSettingError if it cannot be read, was edited or lacks a line: then it is unknown what is withdrawn.
    """
    entries: list[Withdrawal] = []
    problem = ""
    try:
        for line in read_regular(path, MAX_LIST_BYTES).splitlines():
            entries.append(_entry(parse_json_object(line), entries, trusted))
    except FileNotFoundError:
        if os.path.lexists(path):
            problem = "it is not a regular file"
    except OSError:
        problem = f"it cannot be read, or has more than {MAX_LIST_BYTES:,} bytes"
    except (ValueError, TypeError, RecursionError):
        problem = f"line {len(entries) + 1} does not follow from the lines before it: it was edited, or one is missing"
    if problem:
        raise InvalidSettingError(
            f"The list of withdrawn releases {str(path)!r} cannot be used: {problem}. So it is unknown which releases "
            "are withdrawn. Restore the newest copy."
        )
    return tuple(entries)


def add_withdrawal(
    entries: Sequence[Withdrawal], release: str, manifest: dict[str, Any], reason: str, signer: Signer | None
) -> tuple[Withdrawal, ...]:
    """Return the list with one more entry, signed if there is a key."""
    entry = Withdrawal(
        number=len(entries) + 1,
        at=clock.now().isoformat(timespec="seconds"),
        release=release,
        manifest=manifest["digest"],
        fingerprint=manifest["fingerprint"],
        reason=reason,
        previous=entries[-1].digest if entries else "",
        key_id=None if signer is None else signer.key_id,
    )
    signature = None if signer is None else signer.signature_of(CONTEXT + entry.body)
    return (*entries, replace(entry, digest=hashlib.sha256(entry.body).hexdigest(), signature=signature))


def withdrawal_of(digest: str, entries: Sequence[Withdrawal]) -> Withdrawal | None:
    """Return the withdrawal of the release whose manifest records a digest, if there is one."""
    return next((entry for entry in entries if entry.manifest == digest), None)


def written(entries: Sequence[Withdrawal]) -> bytes:
    """Return the list as it is written."""
    return "".join(f"{canonical_json(asdict(entry))}\n" for entry in entries).encode()


def _entry(read: dict[str, Any], before: Sequence[Withdrawal], trusted: Sequence[PublicKey]) -> Withdrawal:
    """Return the entry of a parsed line; raise TypeError or ValueError if it is none, or does not follow."""
    entry = Withdrawal(**read)
    texts = (entry.release, entry.reason, entry.previous)
    is_right = (
        set(read) == {each.name for each in fields(Withdrawal)}
        and is_integer(entry.number, len(before) + 1, len(before) + 1)
        and all(isinstance(text, str) and is_printable(text) for text in texts)
        and is_instant(entry.at)
        and all(map(is_sha256, (entry.manifest, entry.fingerprint)))
        and entry.previous == (before[-1].digest if before else "")
        and entry.digest == hashlib.sha256(entry.body).hexdigest()
        and (entry.key_id is None) == (entry.signature is None)
    )
    if not is_right:
        raise ValueError("not the next entry")
    for key in trusted:
        if key.key_id == entry.key_id and not key.made(entry.signature, CONTEXT + entry.body):
            raise ValueError("not signed with the key that it names")
    return entry
