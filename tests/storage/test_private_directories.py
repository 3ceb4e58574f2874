import os
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.storage import private_directories
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from privacy_assets.storage.durable_files import make_private_root
from privacy_assets.storage.private_directories import make_private_directory, require_private_root
from tests.release.test_files import TABLE, write

UMASKS = [0o000, 0o022, 0o027, 0o077, 0o277, 0o777]


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def modes_below(root):
    return {str(path.relative_to(root)): mode(path) for path in sorted(root.rglob("*")) if not path.is_symlink()}


@pytest.fixture
def set_umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("umask", UMASKS)
def test_what_is_private_is_for_its_owner_alone_whatever_the_umask(tmp_path, set_umask, umask):
    root = tmp_path / "project" / "private"
    (tmp_path / "project").mkdir()
    set_umask(umask)
    make_private_root(root)
    write_artifact(root / "people" / "source.artifact", Artifact.of_table(TABLE))
    write_artifact(root / "people" / "source.artifact", Artifact.of_table(TABLE))
    assert modes_below(tmp_path / "project") == {
        "private": 0o700,
        "private/.gitignore": 0o600,
        "private/people": 0o700,
        "private/people/source.artifact": 0o700,
        "private/people/source.artifact/header.json": 0o600,
        "private/people/source.artifact/table.parquet": 0o600,
    }


@pytest.mark.parametrize("umask", UMASKS[:4])
def test_what_is_released_is_written_by_its_owner_alone_and_its_files_can_be_read(tmp_path, set_umask, umask):
    set_umask(umask)
    written = write(tmp_path / "releases" / "people" / "synthetic")
    above = [tmp_path / "releases", tmp_path / "releases" / "people", written.parent]
    assert {mode(path) for path in above} == {0o755 & ~umask}
    assert mode(written) == 0o755
    assert {mode(path) for path in written.iterdir()} == {0o644}


def opened(root):
    """Make a private root with a table in it, and open all of it to everybody."""
    make_private_root(root)
    write_artifact(root / "people" / "source.artifact", Artifact.of_table(TABLE))
    for path in (root, *root.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)


def test_a_private_root_that_was_opened_is_closed_with_all_that_is_in_it(tmp_path):
    root = tmp_path / "private"
    opened(root)
    outside = tmp_path / "shared"
    outside.mkdir()
    outside.chmod(0o755)
    (root / "people" / "link").symlink_to(outside)
    make_private_root(root)
    assert {mode(root), *modes_below(root).values()} == {0o700, 0o600}
    assert mode(outside) == 0o755


def test_a_directory_in_it_that_was_opened_is_closed_when_it_is_written(tmp_path):
    root = tmp_path / "private"
    tmp_path.chmod(0o755)
    make_private_root(root)
    write_artifact(root / "people" / "source.artifact", Artifact.of_table(TABLE))
    (root / "people").chmod(0o755)
    write_artifact(root / "people" / "source.artifact", Artifact.of_table(TABLE))
    assert mode(root / "people") == 0o700
    assert mode(tmp_path) == 0o755


def test_an_empty_directory_that_is_there_is_taken_and_closed(tmp_path):
    root = tmp_path / "private"
    root.mkdir()
    root.chmod(0o755)
    make_private_root(root)
    assert mode(root) == 0o700
    assert (root / ".gitignore").read_text() == "*\n"


def test_a_root_behind_a_link_is_closed_and_the_link_stays(tmp_path):
    real = tmp_path / "disk"
    real.mkdir()
    real.chmod(0o755)
    root = tmp_path / "private"
    root.symlink_to(real)
    make_private_root(root)
    make_private_directory(root / "people")
    assert (mode(real), mode(real / "people"), root.is_symlink()) == (0o700, 0o700, True)


def test_a_directory_of_somebody_else_is_never_closed(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    root.chmod(0o755)
    (root / "notes.txt").touch()
    (root / "data.csv").touch()
    for ask in (require_private_root, make_private_root):
        with pytest.raises(InvalidSettingError, match=r"has 2 entries, but no .gitignore.* Nothing was changed"):
            ask(root)
    make_private_directory(root)
    assert (mode(root), sorted(path.name for path in root.iterdir())) == (0o755, ["data.csv", "notes.txt"])


@pytest.mark.parametrize("kind", ["home", "above home", "working", "temporary", "/", "sticky", "file"])
def test_places_that_others_share_are_refused_even_with_a_mark(tmp_path, monkeypatch, kind):
    home, working, temporary = (tmp_path / name / "in" for name in ("home", "working", "temporary"))
    for place in (home, working, temporary):
        place.mkdir(parents=True)
        (place / ".gitignore").write_text("*\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(working)
    (tmp_path / "sticky").mkdir()
    (tmp_path / "sticky").chmod(0o1777)
    (tmp_path / "file").touch()
    place = {
        "home": home,
        "above home": home.parent,
        "working": Path(),
        "temporary": temporary,
        "/": Path("/"),
    }.get(kind, tmp_path / kind)
    before = mode(place.resolve())
    with pytest.raises(InvalidSettingError, match=r"private directory .* Expected a separate directory"):
        make_private_root(place)
    assert mode(place.resolve()) == before


def test_a_user_without_a_home_can_have_a_private_directory(tmp_path, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(private_directories.Path, "home", homeless)
    make_private_root(tmp_path / "private")
    assert mode(tmp_path / "private") == 0o700


@pytest.mark.parametrize("way", ["refused", "ignored"])
def test_a_directory_that_cannot_be_closed_is_refused_with_its_mode(tmp_path, monkeypatch, way):
    root = tmp_path / "private"
    opened(root)

    def cannot(*_):
        if way == "refused":
            raise PermissionError(1, "not the owner")

    monkeypatch.setattr(private_directories.os, "fchmod", cannot)
    with pytest.raises(InvalidSettingError, match=r"open to other users \(mode 777\), and cannot be closed"):
        make_private_root(root)


def test_a_root_that_was_cut_off_before_its_mark_was_whole_can_be_used(tmp_path):
    root = tmp_path / "private"
    root.mkdir()
    (root / ".partial-.gitignore-0").write_text("")
    make_private_root(root)
    assert [path.name for path in root.iterdir()] == [".gitignore"]


def test_many_that_make_the_same_root_at_once_all_succeed(tmp_path):
    def make(number):
        root = tmp_path / f"private-{number // 8}" / "deep"
        make_private_root(root)
        write_artifact(root / "people" / f"{number}.artifact", Artifact.of_table(TABLE))
        return root / "people" / f"{number}.artifact"

    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(make, range(40)))
    assert all(isinstance(read_artifact(path).frames["table"], pd.DataFrame) for path in written)
    assert not list(tmp_path.rglob(".partial-*"))


SHARED_GROUP = 4711


@pytest.fixture
def groups(monkeypatch):
    """Give the group of this user to the user alone, and another group to somebody else, too."""
    user, other = (SimpleNamespace(pw_name=name, pw_uid=uid, pw_gid=7) for name, uid in (("me", 1), ("other", 2)))
    monkeypatch.setattr(private_directories.os, "geteuid", lambda: 1)
    monkeypatch.setattr(private_directories.pwd, "getpwall", lambda: [user, other])
    shared = SimpleNamespace(gr_gid=SHARED_GROUP, gr_mem=["me", "other"])
    monkeypatch.setattr(private_directories.grp, "getgrall", lambda: [shared])
    private_directories._has_other_members.cache_clear()
    yield
    private_directories._has_other_members.cache_clear()


@pytest.mark.parametrize(
    ("group", "has_others"),
    [(SHARED_GROUP, True), (7, True), (8, False), (9, False)],
    ids=["shared", "main", "", "new"],
)
def test_a_group_without_other_members_is_as_good_as_none(groups, group, has_others):
    assert private_directories._has_other_members(group) is has_others


@pytest.fixture
def group_is_shared(monkeypatch):
    monkeypatch.setattr(private_directories, "_has_other_members", lambda _: True)


@pytest.fixture
def way(tmp_path):
    """Make a project with a way that leads to it in three steps, and return its parts."""
    for part in (tmp_path / "disk", tmp_path / "home", tmp_path / "disk" / "project"):
        part.mkdir()
        part.chmod(0o755)
    (tmp_path / "home" / "project").symlink_to(tmp_path / "disk" / "project")
    return tmp_path


WRITABLE = {
    "the project": ("disk/project", 0o777),
    "the project, for its group": ("disk/project", 0o775),
    "the project, with the group's files": ("disk/project", 0o2775),
    "above the project": ("disk", 0o757),
    "above the link": ("home", 0o777),
    "only writing": ("disk", 0o713),
}


@pytest.mark.parametrize("place", WRITABLE)
def test_a_private_directory_that_others_can_replace_is_refused(way, group_is_shared, place):
    name, mode_there = WRITABLE[place]
    root = way / "home" / "project" / ".dagster" / "private"
    make_private_root(root)
    (way / name).chmod(mode_there)
    expected = (
        rf"'.*/{Path(name).name}', which other users may write in \(mode {mode_there:o}\); take the permission away"
    )
    for ask in (require_private_root, make_private_root):
        with pytest.raises(InvalidSettingError, match=expected):
            ask(root)
    assert mode(way / name) == mode_there
    (way / name).chmod(mode_there & ~0o022)
    make_private_root(root)


@pytest.mark.parametrize("place", WRITABLE)
def test_a_directory_of_releases_that_others_can_replace_is_refused(way, group_is_shared, place):
    name, mode_there = WRITABLE[place]
    directory = way / "home" / "project" / "releases" / "people" / "synthetic"
    write(directory)
    (way / name).chmod(mode_there)
    with pytest.raises(
        InvalidSettingError, match=rf"/{Path(name).name}', which other users may .* Nothing was released"
    ):
        write(directory)
    assert len(list(directory.glob("2*"))) == 1


@pytest.mark.parametrize("mode_there", [0o777, 0o775, 0o1777, 0o757, 0o2775])
@pytest.mark.parametrize("level", ["releases", "releases/people", "releases/people/synthetic"])
def test_releases_that_were_opened_to_writers_are_refused(tmp_path, group_is_shared, level, mode_there):
    directory = tmp_path / "releases" / "people" / "synthetic"
    write(directory)
    (tmp_path / level).chmod(mode_there)
    if level != "releases/people/synthetic" and mode_there == 0o1777:
        write(directory)  # In it, only owners replace their entries.
        return
    with pytest.raises(InvalidSettingError, match=r"other users may write in \(mode .*take the permission away"):
        write(directory)
    (tmp_path / level).chmod(0o755)
    write(directory)


def test_a_shared_directory_with_the_sticky_bit_may_be_above(way):
    (way / "disk").chmod(0o1777)
    make_private_root(way / "home" / "project" / "private")
    write(way / "home" / "project" / "releases")
    assert list((way / "home" / "project" / "releases").iterdir())


def test_a_private_directory_of_another_user_is_refused(tmp_path, monkeypatch):
    root = tmp_path / "private"
    make_private_root(root)
    owner = os.geteuid()
    monkeypatch.setattr(private_directories.os, "geteuid", lambda: owner + 1)
    with pytest.raises(InvalidSettingError, match=f"belongs to another user \\({owner}, and this is {owner + 1}\\)"):
        make_private_root(root)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
@pytest.mark.parametrize("place", ["private", "project"])
def test_a_link_of_another_user_is_not_followed(way, place):
    link = way / "home" / place
    if place == "private":
        (way / "disk" / "private").mkdir()
        link.symlink_to(way / "disk" / "private")
    root = link if place == "private" else link / "private"
    make_private_root(root)
    os.lchown(link, SHARED_GROUP, SHARED_GROUP)
    with pytest.raises(InvalidSettingError, match=f"is behind the link '.*{place}' of another user"):
        make_private_root(root)
