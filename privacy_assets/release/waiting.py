"""A release that waits for people: its files in the private directory, next to what they decided about them."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from privacy_assets.contract.related import RelatedTables
from privacy_assets.release import clock
from privacy_assets.release.approvals import APPROVAL_FILES, subject_of
from privacy_assets.release.files import ReleaseRecord, manifest_without_files, write_waiting
from privacy_assets.release.manifest import REPORT_FILE, DamagedManifestError, is_sha256, read_manifest
from privacy_assets.release.received_checks import changed_files
from privacy_assets.release.received_files import read_regular
from privacy_assets.storage.durable_files import (
    TEMPORARY_MARK,
    locked,
    make_private_directory,
    remove_leftovers,
    replace_file,
    temporary_sibling,
)

if TYPE_CHECKING:
    from privacy_assets.release.report import ReportMaterial

PAGES_SUFFIX = ".pages"
MAX_PAGES_BYTES = 2**20


def keep_waiting(
    path: Path,
    table: pd.DataFrame | RelatedTables,
    content: str,
    record: ReleaseRecord,
    formats: Sequence[str],
    report: Callable[[], "ReportMaterial"],
    rows_per_part: int,
    keyed: Callable[[str], str],
) -> dict[str, Any]:
    """Return the manifest of what waits in a directory, which is written unless it is already what is asked for.

    The decisions in the directory stay. The files of other contents that waited for the same are removed. What
    ``keyed`` returns for the digest of the page is kept next to the directory (`pages_of`).
    """
    make_private_directory(path.parent)
    with locked(path.parent):
        manifest = _intact(path, pages_of(path, keyed))
        now = manifest_without_files(record, table, content, clock.now()) | {"files": {}}
        is_in_parts = not isinstance(table, RelatedTables) and len(table) > rows_per_part
        shape = (sorted({"parquet", *formats}), rows_per_part if is_in_parts else None)
        if manifest is None or _shape(manifest) != shape or subject_of({**manifest, "files": {}}) != subject_of(now):
            temporary = temporary_sibling(path)
            try:
                write_waiting(temporary, table, content, record, formats, report(), rows_per_part)
                _keep_page(path, keyed(read_manifest(temporary)["files"][REPORT_FILE]["sha256"]))
                _replace(path, temporary)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
        for other in path.parent.iterdir():
            if other != path and is_sha256(other.name):
                forget_files(other)
        return read_manifest(path)


def forget_files(path: Path) -> None:
    """Remove the files of a content that no longer waits; what people decided about it stays."""
    if path.is_symlink() or not path.is_dir():
        return
    for each in path.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        elif not each.match(APPROVAL_FILES):
            each.unlink()


def pages_of(path: Path, keyed: Callable[[str], str]) -> Callable[[object], bool]:
    """Return whether a digest is that of a page of what waits in a directory, which was kept with a key.

    Who can write to the directory, but has not the key, could show approvers another page.
    """
    kept = _pages(path)
    return lambda digest: isinstance(digest, str) and keyed(digest) in kept


def _pages(path: Path) -> list[str]:
    file = path.with_suffix(PAGES_SUFFIX)
    return read_regular(file, MAX_PAGES_BYTES).decode().split() if os.path.lexists(file) else []


def _keep_page(path: Path, page: str) -> None:
    replace_file(path.with_suffix(PAGES_SUFFIX), "\n".join(dict.fromkeys([*_pages(path), page])).encode())


def _intact(path: Path, is_page: Callable[[object], bool]) -> dict[str, Any] | None:
    try:
        manifest = read_manifest(path)
        is_own = is_page(manifest["files"][REPORT_FILE]["sha256"])
        return manifest if is_own and not changed_files(path, manifest) else None
    except (DamagedManifestError, OSError, KeyError):
        return None


def _shape(manifest: dict[str, Any]) -> tuple[list[str], int | None]:
    return manifest["formats"], manifest.get("parts", {}).get("rows_per_part")


def _replace(path: Path, temporary: Path) -> None:
    """Put new files in place, with all decisions of before, also of a moment ago and of an interrupted run."""
    before = path.with_name(f"{temporary.name}-before")
    _copy_decisions([path, *path.parent.glob(f"{TEMPORARY_MARK}{path.name}-*")], temporary)
    if path.exists():
        path.rename(before)
    temporary.rename(path)
    _copy_decisions([before], path)
    remove_leftovers(path)


def _copy_decisions(directories: Sequence[Path], to: Path) -> None:
    for each in (each for directory in directories for each in directory.glob(APPROVAL_FILES)):
        if not os.path.lexists(to / each.name):
            shutil.copy2(each, to / each.name, follow_symlinks=False)
