import gc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidTableError
from privacy_assets.storage import table as table_module
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from privacy_assets.storage.fingerprint import _kept, fingerprint, keep_fingerprint, kept_fingerprint
from tests.examples import examples


def every_kind() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "integer": [1, 2, 3],
            "float": [1.5, np.nan, -0.0],
            "text": ["x", None, "yé"],
            "category": pd.Categorical(["u", "v", "u"], categories=["v", "u", "unused"]),
            "datetime": pd.to_datetime(["2020-01-01", None, "2021-05-05"]),
            "aware": pd.to_datetime(["2020-01-01"] * 3).tz_localize("Europe/Paris"),
            "boolean": [True, False, True],
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "duration": pd.to_timedelta([1, 2, 3], unit="s"),
            "missing": [None] * 3,
        }
    )


def test_a_table_keeps_its_fingerprint_through_storage(tmp_path):
    table = every_kind()
    write_artifact(tmp_path / "a", Artifact.of_table(table))
    assert read_artifact(tmp_path / "a").digest == fingerprint(table)


def test_a_fingerprint_is_kept_for_the_very_table_and_as_long_as_it_exists():
    table = every_kind()
    keep_fingerprint(table, "kept")
    assert (kept_fingerprint(table), fingerprint(table)) != ("kept", "kept")
    assert kept_fingerprint(table) == "kept"
    other = table.copy()
    assert kept_fingerprint(other) == fingerprint(table)
    # As if it had the place in memory of a table that was freed.
    _kept[id(other)] = _kept[id(table)]
    assert kept_fingerprint(other) == fingerprint(table)
    key = id(table)
    del table
    gc.collect()
    assert key not in _kept


def test_how_pandas_holds_a_column_does_not_matter():
    table = every_kind()
    assert fingerprint(table.convert_dtypes(dtype_backend="pyarrow")) == fingerprint(table)
    assert fingerprint(table.assign(category=table["category"].astype(str))) == fingerprint(table)
    assert fingerprint(pd.concat([table, table]).iloc[3:]) == fingerprint(table)


def test_datetimes_beyond_nanoseconds_have_a_fingerprint():
    table, other = (pd.DataFrame({"until": np.array([f"9999-12-{day}"], dtype="datetime64[us]")}) for day in (30, 31))
    assert fingerprint(table) != fingerprint(other)
    assert fingerprint(table) == fingerprint(table.copy())


@pytest.mark.parametrize(
    "changed",
    [
        every_kind().iloc[::-1],
        every_kind().iloc[:2],
        every_kind().rename(columns={"text": "texts"}),
        every_kind()[list(every_kind().columns[::-1])],
        every_kind().assign(integer=[1.0, 2.0, 3.0]),
        every_kind().assign(text=["x", "", "yé"]),
        every_kind().assign(text=[None, "x", "yé"]),
        every_kind().assign(float=[1.5, 0.0, 0.0]),
        every_kind().assign(boolean=[True, True, True]),
        every_kind().assign(aware=every_kind()["aware"].dt.tz_convert("UTC")),
    ],
    ids=[
        "order",
        "rows",
        "name",
        "column order",
        "type",
        "missing is not empty",
        "which is missing",
        "0",
        "bool",
        "tz",
    ],
)
def test_what_a_reader_would_see_matters(changed):
    assert fingerprint(changed) != fingerprint(every_kind())


def test_moving_a_character_between_neighbors_matters():
    assert fingerprint(pd.DataFrame({"a": ["ab", "c"]})) != fingerprint(pd.DataFrame({"a": ["a", "bc"]}))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(["", "a", "b", None])), max_size=5))
def test_equal_rows_have_equal_fingerprints_and_others_do_not(rows):
    table = pd.DataFrame(rows, columns=["n", "t"]).astype({"n": "int64", "t": "str"})
    other = pd.DataFrame([*rows, (0, "a")], columns=["n", "t"]).astype({"n": "int64", "t": "str"})
    assert fingerprint(table) == fingerprint(table.copy())
    assert fingerprint(table) != fingerprint(other)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "1 are repeated"),
        (pd.DataFrame([[1, 2]], columns=["a", 7]), "1 are not text"),
        (pd.DataFrame({"a": [["SENTINEL"], 1]}), "'a' has values of several kinds"),
        (pd.DataFrame({"a": ["SENTINEL", 1]}, dtype=object), "'a' has values of several kinds"),
    ],
)
def test_what_cannot_be_fingerprinted_is_named_without_a_cell(table, message):
    with pytest.raises(InvalidTableError, match=message) as raised:
        fingerprint(table)
    assert "SENTINEL" not in str(raised.value)
    assert raised.value.__context__ is None


def test_an_artifact_that_changes_anywhere_changes_its_digest(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]})
    artifact = Artifact("result", {"score": 0.5}, {"details": frame}, {"original": "f"})
    others = [
        Artifact("other", {"score": 0.5}, {"details": frame}, {"original": "f"}),
        Artifact("result", {"score": 0.25}, {"details": frame}, {"original": "f"}),
        Artifact("result", {"score": 0.5}, {"details": frame + 1}, {"original": "f"}),
        Artifact("result", {"score": 0.5}, {"tree": frame}, {"original": "f"}),
        Artifact("result", {"score": 0.5}, {"details": frame}, {"original": "g"}),
    ]
    assert artifact.digest not in {other.digest for other in others}
    write_artifact(tmp_path / "a", artifact)
    assert read_artifact(tmp_path / "a").digest == artifact.digest


def test_an_artifact_hashes_each_frame_once_and_a_changed_copy_again(monkeypatch):
    hashed = []

    def counted(frame):
        hashed.append(len(frame))
        return fingerprint(frame)

    monkeypatch.setattr(table_module, "kept_fingerprint", counted)
    artifact = Artifact("result", {}, {"details": pd.DataFrame({"a": [1, 2]}), "table": pd.DataFrame({"a": [1]})})
    assert artifact.digest == artifact.digest
    assert artifact.fingerprints["table"] == fingerprint(artifact.frames["table"])
    assert sorted(hashed) == [1, 2]
    changed = replace(artifact, frames={**artifact.frames, "table": pd.DataFrame({"a": [2]})})
    assert changed.digest != artifact.digest
    assert changed.fingerprints["table"] != artifact.fingerprints["table"]


def test_stored_files_are_for_their_owner_alone(tmp_path):
    path = tmp_path / "private" / "release" / "source"
    write_artifact(path, Artifact.of_table(every_kind()))
    for entry in [tmp_path / "private", *(tmp_path / "private").rglob("*")]:
        assert entry.stat().st_mode & 0o777 == (0o700 if entry.is_dir() else 0o600)


def test_a_failed_write_keeps_the_earlier_artifact_and_leaves_nothing_behind(tmp_path):
    path = tmp_path / "source"
    write_artifact(path, Artifact.of_table(pd.DataFrame({"a": [1]})))
    with pytest.raises(Exception, match=r".+"):
        write_artifact(path, Artifact.of_table(pd.DataFrame({"a": [{1}, "x"]})))
    assert read_artifact(path).frames["table"]["a"].tolist() == [1]
    assert [entry.name for entry in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize("at_once", [1, 2, 7])
def test_categories_that_are_hashed_by_a_few_rows_have_the_fingerprint_of_their_texts(monkeypatch, at_once):
    monkeypatch.setattr("privacy_assets.storage.fingerprint.ROWS_PER_DIGEST", at_once)
    texts = ["ä", None, "", "long text", "ä", "b", None, "b"]
    for values in (texts, [each or "" for each in texts], texts[:1]):
        plain = pd.DataFrame({"text": pd.Series(values, dtype="str")})
        for categories in (None, ["unused", *sorted({each for each in values if each is not None}, reverse=True)]):
            coded = pd.DataFrame({"text": pd.Categorical(plain["text"], categories=categories)})
            assert fingerprint(coded) == fingerprint(plain)


def test_categories_that_are_no_unicode_are_refused_without_a_value():
    table = pd.DataFrame({"text": pd.Categorical.from_codes([0, 1], pd.Index(["secret \ud800", "b"], dtype=object))})
    with pytest.raises(InvalidTableError) as refused:
        fingerprint(table)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None
