"""The two directories of a project, private tables and releases; neither contains the other.

They are fixed when the definitions are built. They are compared again whenever one of them is used, with symbolic links
resolved, because a link can be created in the meantime. Both are marked, so that the directories of other code
locations are recognized, too.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

import dagster as dg

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.dagster_internals import ASSET_PARTITION_RANGE_START_TAG
from privacy_assets.release.manifest import LATEST, MANIFEST_FILE
from privacy_assets.release.withdrawals import RELEASES_MARK_FILE
from privacy_assets.storage.durable_files import write_mark
from privacy_assets.storage.private_directories import MARK_FILE, RELEASED_FILE_MODE, is_marked, make_released_directory

RELEASES_MARK = b"Releases of privacy_assets lie below this directory. No private table may.\n"


def require_separate(private_path: Path, release_paths: Iterable[Path]) -> None:
    """Refuse directories if one contains the other, or if the private one is inside a published release.

    Symbolic links in all of them are resolved.
    """
    private = private_path.resolve()
    for release_path in release_paths:
        released = release_path.resolve()
        if private == released or private in released.parents or released in private.parents:
            links = " once symbolic links are resolved" if (private, released) != (private_path, release_path) else ""
            raise InvalidSettingError(
                f"private_path {str(private_path)!r} and release_path {str(release_path)!r} are the same directory, or "
                f"one contains the other{links}. Private tables and releases need separate directories. Nothing "
                "was written."
            )
        _require_nothing_private_above(release_path, released)
    marks = {MANIFEST_FILE: "a published release", RELEASES_MARK_FILE: "a release_path, perhaps of another project"}
    for path in (private, *private.parents):
        for mark, what in marks.items():
            if (path / mark).exists():
                raise InvalidSettingError(
                    f"private_path {str(private_path)!r} is inside {str(path)!r}, which is {what}. Expected a "
                    "separate directory. Nothing was written."
                )


def _require_nothing_private_above(release_path: Path, released: Path) -> None:
    for path in (released, *released.parents):
        if is_marked(path):
            raise InvalidSettingError(
                f"release_path {str(release_path)!r} is inside {str(path)!r}, which is a private directory, perhaps "
                f"of another project: its {MARK_FILE} has the single line '*'. Expected a directory that others may "
                "read. Nothing was written. If that file should only keep git from tracking the directory, write '/*' "
                "into it."
            )


def mark_releases(release_path: Path) -> None:
    """Mark a directory as a directory of releases, so that no private directory is created below it.

    A directory with a private one below it is refused, and one in which other users may write.
    """
    if (release_path / RELEASES_MARK_FILE).exists():
        return
    for directory, below, files in os.walk(release_path):
        if MANIFEST_FILE in files:
            below.clear()  # Releases are replaced as a whole, so they cannot contain private directories.
        elif is_marked(Path(directory)):
            raise InvalidSettingError(
                f"The private directory {directory!r}, perhaps of another project, is inside release_path "
                f"{str(release_path)!r}. Private tables and releases need separate directories. Nothing was released; "
                "move one of them."
            )
    make_released_directory(release_path)
    write_mark(release_path / RELEASES_MARK_FILE, RELEASES_MARK, RELEASED_FILE_MODE)


def require_within(path: Path, root: Path) -> None:
    """Refuse a path that a symbolic link leads out of its root."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise InvalidSettingError(
            f"A symbolic link leads {str(path)!r} out of {str(root)!r}. Expected directories that are not links. "
            "Nothing was read or written. Remove the link."
        )


def from_project_root(path: Path) -> Path:
    """Return a path to show, from the root of the project if it is there: a long one widens Dagster's tables."""
    project = Path.cwd()
    return path.relative_to(project) if path.is_relative_to(project) else path


def partition_directory(partition_key: str) -> str:
    """Return a directory name for a partition key: unique, and unable to lead elsewhere.

    Keys of several dimensions are written in the order of the dimension names.
    """
    if isinstance(partition_key, dg.MultiPartitionKey):
        keys = [key for _, key in sorted(partition_key.keys_by_dimension.items())]
        # A slash separates the dimensions, so a slash inside a key is escaped.
        text = "/".join(key.replace("%", "%25").replace("/", "%2F") for key in keys)
    else:
        text = partition_key
    name = quote(text, safe="").replace(".", "%2E")
    # Releases without partitions have a link with this name.
    return f"%{ord(LATEST[0]):X}{LATEST[1:]}" if name == LATEST else name or "%"


def not_about_one_partition(what: str, run_tags: Mapping[str, str]) -> str:
    """Describe that a run selects no partition, or a range of partitions, and what to launch instead."""
    found = "a range of them" if ASSET_PARTITION_RANGE_START_TAG in run_tags else "none of them"
    return (
        f"{what} has partitions, and this run selects {found}. Each partition has its own evidence and its own "
        "releases, so a run must select exactly one. Nothing was read or written. Choose a partition when you launch "
        "(`--partition KEY` on the command line); for several partitions launch a backfill with one run each. An "
        "asset without partitions cannot read one with partitions."
    )
