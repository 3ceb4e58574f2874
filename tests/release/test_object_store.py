"""Releases in an object store: what is uploaded and in which order, and what a store that fails leaves."""

import io
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError, ReleaseStoreError
from privacy_assets.release import object_store
from privacy_assets.release.files import write_release
from privacy_assets.release.object_store import ObjectStore
from privacy_assets.release.signing import SigningKey, generate_key_pair, load_signer
from privacy_assets.release.verification import verify_release
from privacy_assets.release.withdrawals import RELEASES_MARK_FILE, WITHDRAWN_FILE
from privacy_assets.release.withdrawing import withdraw_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.object_store import SECRET, SLOW_DOWN, served
from tests.release.test_files import RECORD, TABLE
from tests.release.test_related_files import RELATED_RECORD, made

PLACE = "people/synthetic"
REASON = "The key of the pseudonyms was lost"


@pytest.fixture
def server():
    with served() as server:
        yield server


@pytest.fixture
def root(tmp_path):
    (tmp_path / "record").mkdir()
    (tmp_path / "record" / RELEASES_MARK_FILE).touch()
    return tmp_path / "record"


def at(server, path="releases"):
    return ObjectStore.at(server.uri(path), "release_path")


def released(server, root, run_id="run", **settings):
    uploaded, record = partial(at(server).uploaded, PLACE), replace(RECORD, run_id=run_id)
    return write_release(root / PLACE, TABLE, fingerprint(TABLE), record, uploaded=uploaded, **settings)


def in_store(server, name, path="releases"):
    return server.uri(f"{path}/{PLACE}/{name}")


def nothing_secret(text):
    assert SECRET not in text
    assert SECRET.replace("/", "%2F") not in text
    assert "AKIASENTINEL" not in text
    assert "sentinel-of-the-store" not in text
    return True


@pytest.mark.parametrize("rows_per_part", [5, 10_000])
def test_an_uploaded_release_is_the_local_one_and_verifies(server, root, rows_per_part):
    written = released(server, root, formats=("parquet", "csv"), rows_per_part=rows_per_part)
    local = {
        f"releases/{PLACE}/{written.name}/{path.relative_to(written).as_posix()}": path.read_bytes()
        for path in written.rglob("*")
        if path.is_file()
    }
    assert server.objects() == local
    found = verify_release(in_store(server, written.name))
    assert found.verified, found.problems
    assert (found.fingerprint, found.n_records) == (fingerprint(TABLE), len(TABLE))
    assert found.directory == f"s3://{server.bucket}/releases/{PLACE}/{written.name}"


def test_the_manifest_is_uploaded_last_and_each_object_is_read_back_before_the_next(server, root):
    written = released(server, root)
    names = [path.name for path in written.iterdir()]
    assert sorted(server.uploaded()) == sorted(names)
    assert server.uploaded()[-1] == "manifest.json"
    steps = [(method, key.rpartition("/")[2]) for method, key, query in server.asked if method in ("POST", "GET")]
    steps = list(dict.fromkeys(step for step in steps if step[1] in names))
    assert steps == [(method, name) for name in server.uploaded() for method in ("POST", "GET")]


def test_related_tables_are_uploaded_together(server, root):
    tables = made(1)
    uploaded = partial(at(server).uploaded, PLACE)
    written = write_release(root / PLACE, tables, tables.content, RELATED_RECORD, uploaded=uploaded)
    found = verify_release(in_store(server, written.name))
    assert found.verified, found.problems
    assert "visits" in found.records


def test_a_signature_is_uploaded_and_checked(server, root, tmp_path):
    pytest.importorskip("cryptography")
    private, public, key_id = generate_key_pair(tmp_path / "own.pem")
    _, other, _ = generate_key_pair(tmp_path / "other.pem")
    written = released(server, root, signer=load_signer(SigningKey(private)))
    found = verify_release(in_store(server, written.name), public_keys=[public])
    assert (found.verified, found.signing_key_id) == (True, key_id)
    assert not verify_release(in_store(server, written.name), public_keys=[other]).verified


def test_latest_is_an_object_that_verification_follows(server, root):
    first, second = released(server, root, "1"), released(server, root, "2")
    for release in (first, second):
        at(server).point_to(PLACE, release.name)
        assert server.objects()[f"releases/{PLACE}/latest"] == f"{release.name}\n".encode()
        assert verify_release(in_store(server, "latest")).verified
    server.delete(f"releases/{PLACE}/{second.name}/manifest.json")
    assert not verify_release(in_store(server, "latest")).verified
    assert verify_release(in_store(server, first.name)).verified


@pytest.mark.parametrize("n_before", [0, 2])
def test_a_store_that_answers_503_takes_no_release(server, root, n_before):
    earlier = released(server, root)
    before, asked = server.objects(), len(server.uploaded())

    def answers(method, key):
        is_upload = method == "POST" and len(server.uploaded()) >= asked + n_before
        return SLOW_DOWN if is_upload else None

    server.answers = answers
    with pytest.raises(ReleaseStoreError, match="could not be uploaded: SLOW_DOWN") as raised:
        released(server, root)
    assert "Nothing was released, and an earlier release stays unchanged." in str(raised.value)
    assert "materialize the release again: its tables and evidence are kept" in str(raised.value)
    assert nothing_secret(str(raised.value))
    assert {key: content for key, content in server.objects().items() if content} == before
    assert [path for path in (root / PLACE).iterdir() if path.name != "latest"] == [earlier]
    server.answers = lambda method, key: None
    again = released(server, root)
    assert verify_release(in_store(server, again.name)).verified


def test_a_store_that_vanishes_takes_no_release(server, root):
    def answers(method, key):
        if len(server.uploaded()) == 2:
            server.vanish()
            return SLOW_DOWN
        return None

    server.answers = answers
    with pytest.raises(ReleaseStoreError, match="NETWORK_CONNECTION|SLOW_DOWN") as raised:
        released(server, root)
    assert re.search(
        r"\d objects below s3://bucket-\w+/releases/people/synthetic/\S+ could not be removed", str(raised.value)
    )
    assert "if manifest.json is among them, remove it, and without it they are not a release." in str(raised.value)
    assert nothing_secret(str(raised.value))
    assert list((root / PLACE).iterdir()) == []


def test_a_lost_manifest_may_be_there_so_the_error_says_where(server, root):
    def answers(method, key):
        is_sent = "manifest.json" in server.uploaded()
        return SLOW_DOWN if is_sent else None

    server.answers = answers
    with pytest.raises(ReleaseStoreError, match="if manifest.json is among them, remove it") as raised:
        released(server, root)
    assert nothing_secret(str(raised.value))


@pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "modified"])
@pytest.mark.parametrize("name", ["synthetic.parquet", "manifest.json"])
def test_an_object_that_is_not_read_back_as_written_is_no_release(server, root, name, is_lost):
    changed = []

    def answers(method, key):
        if not changed and key.endswith(name) and method in ("GET", "HEAD"):
            changed.append(key)
            key = key.partition("/")[2]
            server.delete(key) if is_lost else server.write(key, b"x" * 100)

    server.answers = answers
    with pytest.raises(ReleaseStoreError, match=f"{name}' could not be uploaded: ") as raised:
        released(server, root)
    assert nothing_secret(str(raised.value))
    assert not any(server.objects().values())
    assert list((root / PLACE).iterdir()) == []


def test_a_release_that_cannot_appear_here_is_removed_there(server, root, monkeypatch):
    class Interrupt(BaseException):
        pass

    def rename(path, target):
        assert any(key.endswith("/synthetic.parquet") for key in server.objects())
        assert not any(key.endswith("/manifest.json") for key in server.objects())
        raise Interrupt

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(Interrupt):
        released(server, root)
    assert not any(server.objects().values())


def changes():
    return {
        "lost table": lambda server, place: server.delete(f"{place}/synthetic.parquet"),
        "lost manifest": lambda server, place: server.delete(f"{place}/manifest.json"),
        "modified table": lambda server, place: server.write(f"{place}/synthetic.parquet", b"PAR1"),
        "modified report": lambda server, place: server.write(f"{place}/report.html", b"<p>"),
        "added": lambda server, place: server.write(f"{place}/more.csv", b"a"),
        "deep": lambda server, place: server.write(f"{place}/a/b/c.csv", b"a"),
        "file and directory": lambda server, place: server.write(f"{place}/report.html/c.csv", b"a"),
    }


@pytest.mark.parametrize("change", changes())
def test_a_changed_release_does_not_verify(server, root, change, capsys):
    written = released(server, root)
    changes()[change](server, f"releases/{PLACE}/{written.name}")
    assert main(["verify", in_store(server, written.name)]) == 1
    said = capsys.readouterr()
    assert said.out.startswith(f"NOT verified: s3://{server.bucket}/releases/{PLACE}/{written.name}\n  - ")
    assert nothing_secret(said.out + said.err)


def test_the_command_verifies_one_and_shows_no_credentials(server, root, capsys):
    written = released(server, root)
    assert main(["verify", in_store(server, written.name)]) == 0
    said = capsys.readouterr()
    assert f"Verified: s3://{server.bucket}/releases/{PLACE}/{written.name} has" in said.out
    assert nothing_secret(said.out + said.err)
    assert main(["verify", in_store(server, "latest")]) == 1
    assert "does not name a release" in capsys.readouterr().out
    server.answers = lambda method, key: SLOW_DOWN
    assert main(["verify", in_store(server, written.name)]) == 1
    said = capsys.readouterr()
    assert "could not be read: SLOW_DOWN" in said.out
    assert nothing_secret(said.out + said.err)


def test_more_than_the_largest_file_or_the_free_space_is_not_downloaded(server, root, monkeypatch):
    written = released(server, root)
    server.asked.clear()
    found = verify_release(in_store(server, written.name), max_bytes=1_000)
    assert "more than max_bytes or the free space" in found.problems[0]
    assert [method for method, key, _ in server.asked if method == "GET" and key.endswith(".parquet")] == []
    usage = object_store.shutil.disk_usage("/")._replace(free=10)
    monkeypatch.setattr(object_store.shutil, "disk_usage", lambda _: usage)
    assert "more than max_bytes or the free space" in verify_release(in_store(server, written.name)).problems[0]


def test_a_withdrawal_reaches_the_store_and_verification_finds_it(server, root, capsys, monkeypatch):
    first, second = released(server, root, "1"), released(server, root, "2")
    at(server).point_to(PLACE, second.name)
    at(server).keep_address(root)
    kept = (root / object_store.STORE_FILE).read_text()
    assert nothing_secret(kept)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    found = withdraw_release(second, REASON)
    assert (found.latest, found.undone) == (first.name, "")
    assert server.objects()["releases/withdrawn.jsonl"] == (root / WITHDRAWN_FILE).read_bytes()
    assert server.objects()[f"releases/{PLACE}/latest"] == f"{first.name}\n".encode()
    assert main(["verify", in_store(server, second.name)]) == 1
    assert f"WITHDRAWN: s3://{server.bucket}/releases/{PLACE}/{second.name} was withdrawn" in capsys.readouterr().out
    assert verify_release(in_store(server, "latest")).verified
    server.answers = lambda method, key: SLOW_DOWN
    found = withdraw_release(first, REASON)
    assert "could not be read: HTTP 503" in found.undone
    server.answers = lambda method, key: None
    assert withdraw_release(first, REASON).undone == ""
    assert f"releases/{PLACE}/latest" not in server.objects()
    assert withdraw_release(first, REASON).undone == ""
    # The list of another machine has more entries.
    server.write("releases/withdrawn.jsonl", (root / WITHDRAWN_FILE).read_bytes() + b"{}\n")
    assert "has entries that" in withdraw_release(first, REASON).undone
    damaged = verify_release(in_store(server, first.name))
    assert "withdrawn" in damaged.problems[0]


@pytest.mark.parametrize(
    "uri",
    [
        "s3://",
        "s3:///people",
        "s3://bucket//people",
        "s3://bucket/../people",
        "s3://bucket/./people",
        "s3://bucket/people?colour=SECRET",
        "s3://id:SECRET/more@bucket/people",
        "s3://id:SECRET@bucket/people#part",
        "s3://bucket/SECRET@people",
        "s3://bucket/people\nSECRET",
        "s3://[SECRET/people",
        "gs://bucket/people?colour=SECRET",
        "abfss://container:SECRET@account.dfs.core.windows.net/people?colour=1",
    ],
)
def test_an_address_that_pyarrow_cannot_use_is_refused_without_being_shown(uri):
    with pytest.raises(InvalidSettingError, match="release_path is not the address of an object store") as raised:
        ObjectStore.at(uri, "release_path")
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(
    ("uri", "name", "kept"),
    [
        ("s3://bucket/a", "s3://bucket/a", ""),
        ("s3://id:own@bucket/a/?region=eu-west-1", "s3://bucket/a", "?region=eu-west-1"),
        ("gs://bucket/a%20b", "gs://bucket/a%20b", ""),
        (
            "abfss://things:own@account.dfs.core.windows.net/a?client_secret=own&client_id=1&tenant_id=2",
            "abfss://things@account.dfs.core.windows.net/a",
            "?client_id=1&tenant_id=2",
        ),
    ],
)
def test_an_address_is_shown_without_credentials_and_without_asking(uri, name, kept):
    store = ObjectStore.at(uri, "release_path")
    assert store.name == name
    assert store.without_credentials == name + kept
    assert "own" not in repr(store)


def test_each_store_has_a_local_record_of_its_own(tmp_path):
    places = ["s3://bucket/a", "s3://bucket/b", "s3://bucket/a?endpoint_override=127.0.0.1:9000"]
    records = {ObjectStore.at(uri, "release_path").local_record(tmp_path / "private") for uri in places}
    assert len(records) == len(places)
    assert {path.parent for path in records} == {tmp_path / "private.uploaded"}
    with_key = ObjectStore.at("s3://id:own@bucket/a?region=eu-west-1", "release_path")
    assert with_key.local_record(tmp_path / "private") in records


def test_parts_of_a_key_are_escaped_in_the_address(server):
    store, name = at(server), "20261121T075755.929729Z-14e54447bf86"
    address = store.address_of("people/synthetic/a%20b", name)
    assert address.endswith("/people/synthetic/a%2520b/" + name)
    files, base = store._opened()
    store._put(files, f"{base}/people/synthetic/a%20b/{name}/x.csv", io.BytesIO(b"a"))
    assert list(server.objects()) == [f"releases/people/synthetic/a%20b/{name}/x.csv"]
    query = server.uri().partition("?")[2]
    found = ObjectStore.at(f"{address}?{query}".replace("s3://", "s3://id:own@"), "directory")
    assert found._sizes(*found._opened()) == {"x.csv": 1}


def test_withdrawals_at_one_time_are_all_in_the_store(server, root, monkeypatch):
    first, second = released(server, root, "1"), released(server, root, "2")
    at(server).keep_address(root)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    with ThreadPoolExecutor() as threads:
        found = list(threads.map(lambda each: withdraw_release(each, REASON), (first, second)))
    assert [each.undone for each in found] == ["", ""]
    assert server.objects()["releases/withdrawn.jsonl"] == (root / WITHDRAWN_FILE).read_bytes()
    assert len((root / WITHDRAWN_FILE).read_text().splitlines()) == 2


def test_latest_names_what_the_local_link_names_at_that_moment(server, root):
    released(server, root, "1")
    second = released(server, root, "2")
    # The step of the first release comes late.
    at(server).follow_latest(root, root / PLACE)
    assert server.objects()[f"releases/{PLACE}/latest"] == f"{second.name}\n".encode()
    (root / PLACE / "latest").unlink()
    at(server).follow_latest(root, root / PLACE)
    assert f"releases/{PLACE}/latest" not in server.objects()


@pytest.mark.parametrize("is_link", [False, True])
def test_only_the_files_that_were_verified_are_uploaded(server, root, tmp_path, is_link):
    (tmp_path / "private.csv").write_text("a private value")

    def replaced(directory, name):
        if is_link:
            (directory / "more.csv").symlink_to(tmp_path / "private.csv")
        else:
            (directory / "synthetic.parquet").write_text("a private value")
        return at(server).uploaded(PLACE, directory, name)

    with pytest.raises(ReleaseStoreError, match=r"is not the file that was verified. Nothing was released"):
        write_release(root / PLACE, TABLE, fingerprint(TABLE), RECORD, uploaded=replaced)
    assert not [content for content in server.objects().values() if b"private value" in content]
    assert list((root / PLACE).iterdir()) == []


def test_what_an_interrupted_upload_leaves_is_said(server, root, monkeypatch):
    put = ObjectStore._put

    def interrupted(self, store, key, file):
        put(self, store, key, file)
        if key.endswith("manifest.json"):
            server.answers = lambda method, key: SLOW_DOWN
            raise KeyboardInterrupt

    monkeypatch.setattr(ObjectStore, "_put", interrupted)
    with pytest.raises(ReleaseStoreError, match=r"interrupted.*\d objects below .* could not be removed"):
        released(server, root)
    server.answers = lambda method, key: None
    with pytest.raises(KeyboardInterrupt):
        monkeypatch.setattr(server, "answers", lambda method, key: None)
        monkeypatch.setattr(ObjectStore, "_put", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        released(server, root)


def test_the_local_record_names_an_object_store(server, root, tmp_path):
    written = released(server, root)
    (root / object_store.STORE_FILE).write_text(f"{(tmp_path / 'elsewhere').as_uri()}\n")
    assert "has no address of an object store" in withdraw_release(written, REASON).undone
    assert not (tmp_path / "elsewhere").exists()


def test_credentials_in_a_parameter_are_refused():
    with pytest.raises(InvalidSettingError) as raised:
        ObjectStore.at("s3://bucket/a?endpoint_override=https://AKIASENTINEL:b@host", "release_path")
    assert nothing_secret(str(raised.value))
