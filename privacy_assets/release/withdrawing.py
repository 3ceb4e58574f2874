"""Withdraw a release: add it to the list, and let ``latest`` point to the newest version that is not withdrawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from privacy_assets.errors import InvalidSettingError, PrivacyAssetsError
from privacy_assets.release.files import link_to
from privacy_assets.release.manifest import LATEST, RELEASE_NAME, DamagedManifestError, digest_of, read_manifest
from privacy_assets.release.object_store import ObjectStore
from privacy_assets.release.register import write_register
from privacy_assets.release.signing import SigningKey, load_signer
from privacy_assets.release.withdrawals import (
    RELEASES_MARK_FILE,
    WITHDRAWN_FILE,
    Withdrawal,
    add_withdrawal,
    read_withdrawals,
    releases_root,
    withdrawal_of,
    written,
)
from privacy_assets.setting_checks import FEWEST_REASON_WORDS, has_words
from privacy_assets.storage.durable_files import locked, replace_file, sync_directory
from privacy_assets.storage.private_directories import RELEASED_FILE_MODE

LONGEST_REASON = 2_000
UNDONE = "Nothing was withdrawn."


class Withdrawn(NamedTuple):
    """A withdrawn release: its entry, whether it was in the list before, and the version that is now the latest.

    ``same_records`` are other versions next to it with the same records, which are not withdrawn.
    ``undone`` says why ``latest`` or the register could not be written; then the withdrawal itself stands.
    """

    entry: Withdrawal
    was_listed: bool
    latest: str | None = None
    undone: str = ""
    same_records: tuple[str, ...] = ()


def withdraw_release(directory: Path, reason: str, key: SigningKey | None = None) -> Withdrawn:
    """Add a release to the list of withdrawn releases, move ``latest`` away from it, and write the register.

    The files stay, because recipients have them anyway. A release that is listed already gets no second entry; what an
    interrupted withdrawal left undone is done.

    Raises
    ------
    InvalidSettingError
        If the directory is not a release of a project, the reason has no words, the key cannot be used, or the list was
        edited.
    """
    if not has_words(reason) or len(reason) > LONGEST_REASON:
        raise InvalidSettingError(
            f"The reason of a withdrawal must have at least {FEWEST_REASON_WORDS} words and at most "
            f"{LONGEST_REASON:,} characters: recipients read it. {UNDONE}"
        )
    signer = None if key is None else load_signer(key)
    directory = directory.resolve()
    root, problem = releases_root(directory), ""
    if not directory.is_dir():
        problem = "there is no such directory"
    elif RELEASE_NAME.fullmatch(directory.name) is None:
        problem = "it is not the directory of a version, such as releases/people/synthetic/20261121T075755.929729Z-..."
    elif root is None:
        problem = f"no directory above it has the file {RELEASES_MARK_FILE}, which marks the releases of a project"
    if root is None or problem:
        raise InvalidSettingError(f"{str(directory)!r} cannot be withdrawn: {problem}. {UNDONE}")
    try:
        manifest = read_manifest(directory)
        # Copies are recognized by the digest.
        problem = "" if manifest["digest"] == digest_of(manifest) else "its manifest was changed"
    except DamagedManifestError as error:
        problem = str(error)
    if problem:
        raise InvalidSettingError(f"{str(directory)!r} cannot be withdrawn: {problem}. Restore its manifest. {UNDONE}")
    with locked(root):
        entries = read_withdrawals(root / WITHDRAWN_FILE)
        was_listed = withdrawal_of(manifest["digest"], entries) is not None
        if not was_listed:
            place = directory.relative_to(root).as_posix()
            entries = add_withdrawal(entries, place, manifest, " ".join(reason.split()), signer)
            replace_file(root / WITHDRAWN_FILE, written(entries), RELEASED_FILE_MODE)
    entry = withdrawal_of(manifest["digest"], entries)
    assert entry is not None  # noqa: S101 - it was listed, or was added
    try:
        latest = _move_latest(directory.parent, entries)
        write_register(root)
        store = ObjectStore.of_record(root)
        if store is not None:
            store.withdraw(root)
            store.follow_latest(root, directory.parent)
    except PrivacyAssetsError as error:
        return Withdrawn(entry, was_listed, undone=str(error))
    except OSError as error:
        return Withdrawn(entry, was_listed, undone=f"A file could not be written ({type(error).__name__}).")
    return Withdrawn(entry, was_listed, latest, same_records=_same_records(directory.parent, entry, entries))


def _move_latest(directory: Path, entries: Sequence[Withdrawal]) -> str | None:
    """Let ``latest`` point to the newest version that is not withdrawn unless it points to one; return its target."""
    with locked(directory):
        versions = sorted(path for path in directory.iterdir() if RELEASE_NAME.fullmatch(path.name))
        left = [path for path in versions if _can_be_latest(path, entries)]
        # Also if it was made when the clock was behind that of another.
        now = (directory / LATEST).readlink().name if (directory / LATEST).is_symlink() else ""
        if now in [path.name for path in left]:
            return now
        if left:
            link_to(left[-1]).replace(directory / LATEST)
        elif (directory / LATEST).is_symlink():
            (directory / LATEST).unlink()
        sync_directory(directory)
    return left[-1].name if left else None


def _same_records(directory: Path, entry: Withdrawal, entries: Sequence[Withdrawal]) -> tuple[str, ...]:
    # A name ends with the first digits of the fingerprint.
    versions = sorted(directory.glob(f"*-{entry.fingerprint[:12]}"))
    return tuple(each.name for each in versions if RELEASE_NAME.fullmatch(each.name) and _can_be_latest(each, entries))


def _can_be_latest(path: Path, entries: Sequence[Withdrawal]) -> bool:
    try:
        return withdrawal_of(read_manifest(path)["digest"], entries) is None
    except DamagedManifestError:
        return False
