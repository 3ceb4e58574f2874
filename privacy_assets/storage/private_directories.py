"""Directories that only their owner can enter: created closed, and closed again if they were opened to others.

Whoever may write in a directory can replace what is in it. So a private directory is refused in a directory in which
others may write, and a directory of releases if others may write in it.
"""

import grp
import os
import pwd
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from privacy_assets.errors import InvalidSettingError

PRIVATE_DIRECTORY_MODE = 0o700
RELEASED_DIRECTORY_MODE = 0o755
RELEASED_FILE_MODE = 0o644
OPEN_TO_OTHERS = 0o077
MARK_FILE = ".gitignore"
MARK = b"*\n"
"""Makes git ignore private content, and marks a directory as private."""
TEMPORARY_MARK = ".partial-"
TAKE_AWAY = "take the permission away (`chmod go-w`), or choose another place"


_umasks_before: list[int] = []


@contextmanager
def closed_umask() -> Iterator[None]:
    """Let the process create files for their owner only, except directories of releases, which keep the umask."""
    _umasks_before.append(os.umask(OPEN_TO_OTHERS))
    try:
        yield
    finally:
        os.umask(_umasks_before.pop())


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
    """Make a directory and its missing parents writable by their owner only, regardless of the umask.

    Raises
    ------
    InvalidSettingError
        If other users may write in it, or could replace it.
    """
    made = _make_missing(path, RELEASED_DIRECTORY_MODE)
    for directory in made if _umasks_before else []:
        directory.chmod(RELEASED_DIRECTORY_MODE & ~_umasks_before[0])
    is_open = _open_to_writers(path)
    problem = f"is one that {is_open}" if is_open else _replaceable(path)
    if problem:
        raise InvalidSettingError(
            f"The directory of releases {str(path)!r} {problem}. Expected a directory in which only its owner writes, "
            f"because recipients trust what is there. Nothing was released; {TAKE_AWAY}."
        )


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
        has files but lacks the mark of a private directory, belongs to another user, or could be replaced by one.
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
    elif place.exists() and place.stat().st_uid != os.geteuid():
        problem = f"belongs to another user ({place.stat().st_uid}, and this is {os.geteuid()}), who can open it again"
    elif replaceable := _replaceable(path):
        problem = f"{replaceable}; {TAKE_AWAY}"
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


def _replaceable(path: Path) -> str:
    """Say why other users could replace a directory; empty if they cannot.

    Where the sticky bit is set, as in ``/tmp``, only owners replace their entries. Owners of the directories above are
    trusted, as the administrator is.
    """
    for above in dict.fromkeys((*path.absolute().parents, *path.resolve().parents)):
        if above.exists() and not above.stat().st_mode & stat.S_ISVTX and _open_to_writers(above):
            return f"is in {str(above)!r}, which {_open_to_writers(above)}"
    for link in (path.absolute(), *path.absolute().parents):
        if link.is_symlink() and link.lstat().st_uid not in (0, os.geteuid()):
            return f"is behind the link {str(link)!r} of another user"
    return ""


def _open_to_writers(directory: Path) -> str:
    """Say that other users may write in a directory; empty if they may not."""
    found = directory.stat()
    is_open = found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and _has_other_members(found.st_gid))
    return f"other users may write in (mode {stat.S_IMODE(found.st_mode):o})" if is_open else ""


@cache
def _has_other_members(group: int) -> bool:
    """Return whether a group has members other than this user and the administrator; many systems have one per user."""
    own = {user.pw_name for user in pwd.getpwall() if user.pw_uid in (0, os.geteuid())}
    members = {user.pw_name for user in pwd.getpwall() if user.pw_gid == group}
    members |= {name for each in grp.getgrall() if each.gr_gid == group for name in each.gr_mem}
    return not members <= own


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
