"""Directories that only their owner can enter: created closed, and closed again if they were opened to others."""

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from privacy_assets.errors import InvalidSettingError

PRIVATE_DIRECTORY_MODE = 0o700
RELEASED_DIRECTORY_MODE = 0o755
OPEN_TO_OTHERS = 0o077
MARK_FILE = ".gitignore"
MARK = b"*\n"
"""Makes git ignore private content, and marks a directory as private."""
TEMPORARY_MARK = ".partial-"


def make_private_directory(path: Path) -> None:
    """Make a directory and its missing parents readable by their owner only, regardless of the umask.

    Existing ones that are in a private root, or are one, are closed to others if they are open.

    Raises
    ------
    InvalidSettingError
        If a directory is open to others and its permissions cannot be restricted.
    """
    made = _make_missing(path, PRIVATE_DIRECTORY_MODE)
    for directory in made:
        directory.chmod(PRIVATE_DIRECTORY_MODE)  # The umask can remove bits of the owner.
    if path not in made:
        inside = [path, *path.parents]
        root = next((number for number, each in enumerate(inside) if is_marked(each)), None)
        for directory in [] if root is None else inside[: root + 1]:
            close_to_others(directory.resolve())


def make_released_directory(path: Path) -> None:
    """Make a directory and its missing parents writable by their owner only, regardless of the umask."""
    _make_missing(path, RELEASED_DIRECTORY_MODE)


def _make_missing(path: Path, mode: int) -> list[Path]:
    made = []
    for directory in reversed([each for each in (path, *path.parents) if not each.exists()]):
        try:
            directory.mkdir(mode)
        except FileExistsError:
            if not directory.is_dir():
                raise
        else:
            made.append(directory)
    return made


def require_private_root(path: Path) -> None:
    """Refuse a directory that is not only for private tables, without changing anything.

    Raises
    ------
    InvalidSettingError
        If it is the home or working directory, a directory above them, the temporary directory or another shared one,
        or has files but lacks the mark of a private directory.
    """
    try:
        _require_own_directory(path)
    except OSError as error:
        raise InvalidSettingError(
            f"The private directory {str(path)!r} cannot be read ({type(error).__name__}). Expected a separate "
            "directory, new or empty, that this user can enter."
        ) from None


def _require_own_directory(path: Path) -> None:
    place = path.resolve()
    shared = [own for find in (Path.home, Path.cwd) for own in _with_parents(find)]
    is_above = place in [Path("/"), Path(tempfile.gettempdir()).resolve(), *shared]
    found = place.stat().st_mode if place.exists() else stat.S_IFDIR
    problem = ""
    if is_above:
        problem = "is the home or the working directory, or one above them, or the temporary directory"
    elif not stat.S_ISDIR(found):
        problem = "is not a directory"
    elif found & stat.S_ISVTX:
        problem = "is writable by many users"
    elif place.exists():
        # Names first: a private directory is marked before it has other content.
        n_entries = sum(not name.name.startswith(TEMPORARY_MARK) for name in place.iterdir())
        if n_entries and not is_marked(place):
            problem = (
                f"has {n_entries} entries, but no {MARK_FILE} with the single line '*' that marks a private directory"
            )
    if problem:
        raise InvalidSettingError(
            f"The private directory {str(path)!r} {problem}. Expected a separate directory, new or empty, because it "
            "will be closed to others. Nothing was changed."
        )


def _with_parents(find: Callable[[], Path]) -> list[Path]:
    try:
        found = find().resolve()
    except (OSError, RuntimeError):
        return []  # A user without a home, or a missing directory, cannot be confused with the private one.
    return [found, *found.parents]


def is_marked(directory: Path) -> bool:
    """Return whether a directory is marked as private."""
    try:
        with (directory / MARK_FILE).open("rb") as file:
            return file.read(len(MARK) + 1) == MARK
    except OSError:
        return False


def close_tree_to_others(root: Path) -> None:
    """Close a private root to others and, if it was open, also everything in it."""
    if not close_to_others(root):
        return
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            if not (Path(directory) / name).is_symlink():
                close_to_others(Path(directory) / name)


def close_to_others(path: Path) -> bool:
    """Remove the permissions of group and others; return whether there were any.

    Raises
    ------
    InvalidSettingError
        If it belongs to another user, or to a file system without permissions.
    """
    if not path.lstat().st_mode & OPEN_TO_OTHERS:
        return False
    try:
        # Never a different file that replaced it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) & ~OPEN_TO_OTHERS)
            is_open = bool(os.fstat(descriptor).st_mode & OPEN_TO_OTHERS)
        finally:
            os.close(descriptor)
    except PermissionError:
        is_open = True
    if is_open:
        raise InvalidSettingError(
            f"{str(path)!r} is private, but open to other users (mode {stat.S_IMODE(path.lstat().st_mode):o}), and "
            "cannot be closed: it belongs to another user, or its file system does not have permissions. Expected "
            f"mode {PRIVATE_DIRECTORY_MODE:o} for directories. Close it as its owner, or choose another private_path."
        )
    return True
