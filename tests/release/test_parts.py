import errno
import hashlib
import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.release.files import require_rows_per_part, write_release
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.verification import verify_release
from privacy_assets.storage import parquet_parts
from privacy_assets.storage.durable_files import write_file
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.storage.parquet_dataset import open_parquet_dataset
from privacy_assets.storage.parquet_parts import schema_of, write_parts
from tests.examples import examples
from tests.mixed_tables import table_pairs
from tests.release.test_files import RECORD
from tests.release.test_received_releases import rewrite
from tests.storage.test_fingerprint_of_batches import fingerprint_of_batches

TABLE = pd.DataFrame(
    {
        "age": pd.array([31, None, 33, 34, 35, 36, 37], "Int64"),
        "plan": pd.Categorical(["free", None, "free", "paid", "free", "free", "paid"]),
    }
)


@pytest.fixture
def release(tmp_path):
    return write_release(tmp_path / "releases", TABLE, fingerprint(TABLE), RECORD, ("parquet", "csv"), rows_per_part=3)


def problems(directory):
    return "; ".join(verify_release(directory, max_bytes=None).problems)


def test_a_disk_that_is_full_at_the_thirtieth_part_publishes_nothing(release, tmp_path, monkeypatch):
    before = sorted((tmp_path / "releases").rglob("*"))
    table = pd.concat([TABLE] * 14, ignore_index=True)
    written = []

    def full_at_the_thirtieth(path, write, mode):
        def some(file):
            file.write(b"PAR1")
            raise OSError(errno.ENOSPC, "No space left on device")

        written.append(path)
        write_file(path, some if len(written) == 30 else write, mode)

    with monkeypatch.context() as patched:
        patched.setattr(parquet_parts, "write_file", full_at_the_thirtieth)
        with pytest.raises(OSError, match="No space left"):
            write_release(tmp_path / "releases", table, fingerprint(table), RECORD, rows_per_part=3)
    assert len(written) == 30
    assert sorted((tmp_path / "releases").rglob("*")) == before
    assert (tmp_path / "releases" / "latest").resolve() == release
    again = write_release(tmp_path / "releases", table, fingerprint(table), RECORD, rows_per_part=3)
    assert problems(again) == ""


def test_a_table_above_the_size_is_a_directory_of_parts_with_a_digest_each(release, tmp_path):
    assert problems(release) == ""
    assert sorted(path.name for path in (release / "synthetic.parquet").iterdir()) == [
        "part-00000.parquet",
        "part-00001.parquet",
        "part-00002.parquet",
    ]
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["parts"] == {"rows_per_part": 3, "rows": [3, 3, 1]}
    assert set(manifest["files"]) == {
        *(f"synthetic.parquet/part-0000{place}.parquet" for place in range(3)),
        *("synthetic.csv", "report.html", "croissant.json", "dcat.jsonld"),
    }
    assert manifest["formats"] == ["csv", "parquet"]
    for path in (release / "synthetic.parquet", *(release / "synthetic.parquet").iterdir()):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)
    assert fingerprint(pd.read_parquet(release / "synthetic.parquet")) == fingerprint(TABLE)
    assert [path.name for path in (tmp_path / "releases").iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("rows_per_part", [7, 1_000])
def test_a_table_up_to_the_size_is_one_file(tmp_path, rows_per_part):
    release = write_release(tmp_path, TABLE, fingerprint(TABLE), RECORD, rows_per_part=rows_per_part)
    assert (release / "synthetic.parquet").is_file()
    assert "parts" not in json.loads((release / "manifest.json").read_text())
    assert problems(release) == ""


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda part: part.unlink(), "part-00001.parquet' is missing"),
        (lambda part: part.write_bytes(part.read_bytes()[:-1] + b"x"), "part-00001.parquet' was changed"),
        (lambda part: part.with_name("part-00003.parquet").write_bytes(b"x"), "1 files are not listed"),
        (lambda part: part.with_name("note.txt").write_bytes(b"x"), "1 files are not listed"),
        (lambda part: part.with_name(".hidden").write_bytes(b"x"), "1 files are not listed"),
        (lambda part: part.with_name("_SUCCESS").mkdir(), "1 files are not listed"),
        (lambda part: os.mkfifo(part.with_name(".hidden")), "1 files are not listed"),
        (lambda part: os.mkfifo(part.parents[1] / ".hidden"), "1 files are not listed"),
        (lambda part: (part.unlink(), os.mkfifo(part)), "part-00001.parquet' is missing"),
        (lambda part: (part.rename(part.parents[2] / "p"), part.symlink_to(part.parents[2] / "p")), "is missing"),
        (
            lambda part: (part.parent.rename(part.parents[2] / "d"), part.parent.symlink_to(part.parents[2] / "d")),
            "part-00000.parquet' is missing",
        ),
        (lambda part: _swapped(part, part.with_name("part-00000.parquet")), "was changed"),
    ],
)
def test_a_part_that_is_changed_missing_or_added_is_found(release, change, found):
    change(release / "synthetic.parquet" / "part-00001.parquet")
    assert found in problems(release)


def _swapped(one, other):
    content = one.read_bytes(), other.read_bytes()
    one.write_bytes(content[1])
    other.write_bytes(content[0])


def test_parts_in_another_order_are_another_table_whatever_the_manifest_says(release):
    first, second = (f"synthetic.parquet/part-0000{place}.parquet" for place in (0, 1))
    _swapped(release / first, release / second)

    def swap(manifest):
        files = manifest["files"]
        files[first], files[second] = files[second], files[first]

    rewrite(release, swap)
    assert "the table does not have the recorded fingerprint" in problems(release)


@pytest.mark.parametrize(
    ("described", "found"),
    [
        ({"rows_per_part": 3, "rows": [3, 4]}, "the values of parts are invalid"),
        ({"rows_per_part": 3, "rows": [3, 3, 0]}, "the values of parts are invalid"),
        ({"rows_per_part": 3, "rows": [3, 3]}, "does not list the files of its formats"),
        ({"rows_per_part": 3, "rows": [3, 3, 2]}, "the parts do not have the recorded number of records"),
        ({"rows_per_part": 2, "rows": [2, 2, 2]}, "the parts do not have the recorded number of records"),
    ],
)
def test_parts_that_are_described_wrongly_are_found(release, described, found):
    rewrite(release, lambda manifest: manifest.update(parts=described))
    assert found in problems(release)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    "hide",
    [
        lambda part: part.assign(name="SENTINEL").set_index("name"),
        lambda part: part.assign(name="SENTINEL", home="SENTINEL").set_index(["name", "home"]),
        lambda part: part.set_index(pd.RangeIndex(len(part), name="SENTINEL")),
        lambda part: part.set_index(pd.Index(["SENTINEL"] * len(part))),
        lambda part: part.assign(name="SENTINEL"),
    ],
)
def test_a_column_that_is_hidden_as_an_index_of_one_part_does_not_verify(release, place, hide):
    name = f"synthetic.parquet/part-0000{place}.parquet"
    hide(pd.read_parquet(release / name)).to_parquet(release / name)
    data = (release / name).read_bytes()
    described = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    rewrite(release, lambda manifest: manifest["files"].update({name: described}))
    assert problems(release) == f"the file {name!r} does not have the recorded columns without an index"


def test_a_part_outside_of_the_release_is_not_read(release):
    def outside(manifest):
        own = manifest["files"].pop("synthetic.parquet/part-00002.parquet")
        manifest["files"]["synthetic.parquet/../../../part-00002.parquet"] = own

    rewrite(release, outside)
    assert "does not list the files of its formats" in problems(release)


def test_parts_are_read_within_the_limits(release):
    assert verify_release(release).verified


def test_the_second_version_of_the_fingerprint_verifies_parts(release):
    content = {"fingerprint": fingerprint(TABLE)}
    rewrite(release, lambda manifest: manifest.update(content))
    assert problems(release) == ""


def test_a_write_that_fails_leaves_no_part_behind(tmp_path, monkeypatch):
    write_release(tmp_path, TABLE, fingerprint(TABLE), RECORD)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(parquet_parts, "MOST_PARTS", 2)
    with pytest.raises(InvalidTableError, match="more than 2 parts of 3 rows.*raise rows_per_part"):
        write_release(tmp_path, TABLE, fingerprint(TABLE), RECORD, rows_per_part=3)
    assert sorted(tmp_path.rglob("*")) == before


@settings(max_examples=examples(80), deadline=None)
@given(table_pairs(max_columns=4, max_rows=20), st.integers(1, 6), st.integers(1, 6))
def test_parts_are_the_table_however_it_arrives(tmp_path_factory, tables, rows_per_part, rows_per_frame):
    directory = tmp_path_factory.mktemp("parts")
    table = tables[0][[name for name in tables[0] if not name.startswith(("date ", "missing"))]]
    if not len(table.columns):
        return
    frames = [table.iloc[begin : begin + rows_per_frame] for begin in range(0, len(table), rows_per_frame)]
    frames.insert(len(frames) // 2, table.head(0))
    written = write_parts(directory, frames, rows_per_part, schema=schema_of(table))
    assert sum(written.rows) == len(table)
    assert set(written.rows[:-1]) <= {rows_per_part}
    assert [pq.ParquetFile(directory / name).metadata.num_rows for name in written.names] == list(written.rows)
    read = pd.read_parquet(directory)
    bare = table.assign(
        **{name: own.cat.remove_unused_categories() for name, own in table.items() if own.dtype == "category"}
    )
    if all(own.notna().any() or (own.dtype != object and own.dtype != "category") for _, own in bare.items()):
        assert fingerprint(read) == fingerprint(bare)
    assert written.fingerprint == fingerprint(bare)
    dataset = open_parquet_dataset(directory)
    assert fingerprint_of_batches(dataset.schema, dataset.batches(rows_per_frame)) == written.fingerprint


def test_frames_with_other_columns_or_types_are_refused(tmp_path):
    for place, other in enumerate([pd.DataFrame({"b": [1]}), pd.DataFrame({"a": ["SENTINEL"]})]):
        (tmp_path / str(place)).mkdir()
        with pytest.raises(InvalidTableError, match="different columns or types") as raised:
            write_parts(tmp_path / str(place), [pd.DataFrame({"a": [1]}), other], 10)
        assert raised.value.__context__ is None
    with pytest.raises(InvalidTableError, match="no rows"):
        write_parts(tmp_path, [pd.DataFrame({"a": []})], 10)


@pytest.mark.parametrize("value", [999, 0, 1e6, "1000", True])
def test_a_part_has_at_least_a_thousand_rows_as_a_setting(value):
    with pytest.raises(InvalidSettingError, match="rows_per_part"):
        require_rows_per_part(value)
    assert require_rows_per_part(np.int64(1_000)) == 1_000


def test_the_digest_covers_the_parts(release):
    manifest = json.loads((release / "manifest.json").read_text())
    manifest["parts"]["rows_per_part"] = 4
    assert digest_of(manifest) != manifest["digest"]


def test_text_that_arrow_holds_in_several_chunks_is_written(tmp_path):
    texts = pa.chunked_array([["a", "b"], ["c"]], pa.large_string())
    table = pd.DataFrame({"town": pd.Series(pd.array(texts, dtype="string[pyarrow]"))})
    written = write_parts(tmp_path, [table], 2)
    assert written.rows == (2, 1)
