"""Releases that were made to break whoever verifies them, and those of the version before."""

import gc
import hashlib
import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.campaigns.fuzz_manifest import FORGEABLE, campaign, forge, is_listed, make_releases
from privacy_assets.cli import main
from privacy_assets.release import manifest as manifest_module
from privacy_assets.release import received_files
from privacy_assets.release.files import published_fingerprint, read_anonymized_release, write_release
from privacy_assets.release.manifest import MANIFEST_KEYS, OPTIONAL_KEYS, digest_of
from privacy_assets.release.received_files import parse_json_object
from privacy_assets.release.released_csv import read_released_csv
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.examples import examples
from tests.release.test_files import RECORD, TABLE
from tests.shared_data import REPOSITORY

MIB = 2**20
BEYOND_LIMITS = "it cannot be read within the limits of this verification, 64 MiB and one hour"
WHAT_TO_DO = "If you trust its sender, allow more: max_bytes, or --max-gib"

OTHER_COLUMNS = "the file 'synthetic.parquet' does not have the recorded columns without an index"


@pytest.fixture
def release(tmp_path):
    return write_release(tmp_path / "releases", TABLE, fingerprint(TABLE), RECORD, ("parquet", "csv"))


def problems(directory, max_bytes=None):
    """Verify a release in this process, or, with a limit, in one of its own."""
    found = verify_release(directory, max_bytes=max_bytes)
    assert found.verified == (not found.problems)
    return "; ".join(found.problems)


def released(place, kind):
    """Return one of the releases of the campaign."""
    pytest.importorskip("cryptography", reason="needs the extra `signing`")
    return next(each for each in make_releases(place) if each.kind == kind).directory


def rewrite(directory, change):
    """Edit a manifest as somebody would who knows the format: its digest is right again."""
    manifest = json.loads((directory / "manifest.json").read_text())
    change(manifest)
    manifest["digest"] = digest_of(manifest)
    (directory / "manifest.json").write_text(json.dumps(manifest))


def swap(directory, data, columns=("age", "plan"), n_records=2):
    """Put another Parquet file there, and a manifest that describes it."""
    (directory / "synthetic.parquet").write_bytes(data)

    def describe(manifest):
        described = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        manifest["files"]["synthetic.parquet"] = described
        manifest["columns"] = [{"column": name, "role": "other"} for name in columns]
        manifest["n_records"] = n_records

    rewrite(directory, describe)


def parquet(table, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        (2, "later than 1, which this version"),
        (0, "has no manifest_version"),
        (True, "has no manifest_version"),
        ("1", "has no manifest_version"),
    ],
)
def test_a_version_that_is_not_known_is_said(release, version, problem):
    rewrite(release, lambda manifest: manifest.update(manifest_version=version))
    assert problem in problems(release)


# The manifest.


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text.replace('"run_id"', '"run_id": "x", "run_id"', 1), "a key is repeated in an object"),
        (lambda text: text.replace('"advice": null', '"advice": null, "advice": null', 1), "a key is repeated"),
        (lambda text: text.replace("0.1", "NaN", 1), "a number is not finite"),
        (lambda text: text.replace("0.1", "-Infinity", 1), "a number is not finite"),
        (lambda text: text.replace("0.1", "1e999", 1), "a number is not finite"),
        (lambda text: text.replace("0.1", "1" + "0" * 9_999, 1), "damaged or incomplete"),
        (lambda text: text.replace("0.1", "[" * 100_000, 1), "is nested too deeply"),
        (lambda text: text.replace("0.1", '{"a":' * 100_000, 1), "is nested too deeply"),
        (lambda text: text + "{}", "it is not JSON"),
        (lambda text: "\ufeff" + text, "it is not JSON"),
        (lambda text: "null", "not an object"),
        (lambda text: text.replace("people", "ppeople", 1), "does not match the digest that it records"),
        (lambda text: text.replace('"value": 0.05', '"value": 0.04', 1), "does not match the digest that it records"),
    ],
)
def test_a_manifest_that_not_all_readers_understand_alike_does_not_verify(release, change, problem):
    text = (release / "manifest.json").read_text()
    (release / "manifest.json").write_text(change(text))
    assert problem in problems(release)


def test_a_manifest_in_another_encoding_does_not_verify(release):
    text = (release / "manifest.json").read_text()
    (release / "manifest.json").write_text(text, encoding="utf-16")
    assert "it is not JSON" in problems(release)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.text().filter(lambda name: name != "digest"), JSON, max_size=5)


def strictly(value):
    """Return a form in which two values are equal if they are written alike in JSON, but for the order of keys."""
    if isinstance(value, dict):
        return ("object", tuple(sorted((name, repr(strictly(inner))) for name, inner in value.items())))
    if isinstance(value, list):
        return ("list", tuple(map(strictly, value)))
    return (type(value).__name__, repr(value))


@settings(max_examples=examples(150), deadline=None)
@given(OBJECTS, st.sampled_from([None, 1, 4]), st.booleans())
def test_an_object_is_read_as_it_was_written(value, indent, is_ascii):
    read = parse_json_object(json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode())
    assert strictly(read) == strictly(value)
    assert digest_of(read) == digest_of(value) == digest_of(value | {"digest": "anything"})
    assert digest_of(dict(reversed(read.items()))) == digest_of(value)


@settings(max_examples=examples(150), deadline=None)
@given(OBJECTS, st.sampled_from([0, 0.0, -0.0, 1, 1.0, True, False, None, "", "1", [], {}, [[]]]), st.data())
def test_the_digest_is_of_the_meaning(value, other, data):
    name = data.draw(st.sampled_from([*value, "another"]))
    changed = value | {name: other}
    assert (digest_of(changed) == digest_of(value)) == (strictly(changed) == strictly(value))


@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=40) | st.text(alphabet='{}[]",:0.e1-NaInfity \\ud8', max_size=40).map(str.encode))
def test_whatever_bytes_are_parsed_nothing_but_a_refusal_comes_of_it(data):
    try:
        manifest_module.parse_manifest(data)
    except manifest_module.DamagedManifestError as error:
        assert str(error)
    else:
        raise AssertionError("no manifest is that short")


def test_spaces_and_the_order_of_keys_change_nothing(release):
    manifest = json.loads((release / "manifest.json").read_text())
    (release / "manifest.json").write_text(json.dumps(dict(reversed(manifest.items())), indent=None))
    assert problems(release) == ""


def test_a_manifest_that_is_too_large_is_not_read(release, monkeypatch):
    monkeypatch.setattr(manifest_module, "MAX_MANIFEST_BYTES", (release / "manifest.json").stat().st_size - 1)
    assert problems(release) == "manifest.json is too large for a manifest"


WRONG = {
    "release": [None, 5, ["people"]],
    "stage": ["suppressed", "../synthetic", None, ["synthetic"]],
    "partition": [5, []],
    "created_at": ["yesterday", "2026-01-01T00:00:00", None, 5],
    "run_id": [None],
    "fingerprint": ["0" * 63, "G" * 64, None],
    "n_records": [-1, 2.0, True, "2", None],
    "formats": [["xlsx"], "parquet", ["parquet", "csv"], ["csv", "csv"], [["csv"]], None],
    "columns": [[{}], {}, [{"column": "a", "role": "x"}] * 2, [{"column": 5, "role": "x"}], None],
    "files": [[], {"a": {}}, {"a": {"sha256": "0" * 64, "bytes": -1}}, {"a": {"sha256": "", "bytes": 1}}],
    "policy": [[], None],
    "verdicts": [{}, [None], None],
    "settings": [[]],
    "figures": [None],
    "refusals_before": [-1, None, 1.5, True],
    "options_compared": [-1, None, 1.5, True],
    "waivers": [{}, [1]],
    "versions": [{"python": 3}, []],
    "columns_leaving_as_is": [{}, [5]],
    "csv": [[], 5],
    "person": [None, 5, ["id"]],
    "tables": [
        *([], {}, {"visits": {"file": "visits.parquet", "rows": 1, "fingerprint": "0" * 64}}),
        {"people": {"file": "people.parquet", "rows": 1, "fingerprint": "0" * 64}},
        *(
            {name: {"file": file, "rows": n, "fingerprint": "0" * 64} for name in ("people", other)}
            for other, file, n in (("visits", "people.parquet", 1), ("../a", "../a.parquet", 1), ("visits", 5, 1))
        ),
    ],
    "links": [
        [],
        *({"visits": {"parent": "people", "key": "id", "order": None} | own} for own in ({"key": 5}, {"order": 5})),
        {"visits": {"parent": "stays", "key": "id", "order": None}},
        {"visits": {"key": "id"}},
    ],
    "engine": ["Spark", None, ["local"], "spark at sc://host/;token=a", "spark at sc://me@host"],
    "declaration": [[], 5, {"purpose": 5}, {"sampling_fraction": "half"}],
    "approvals": [{}, [5], None],
    "withdrawn_before": [-1, None, 0.5, True],
    "figures_withheld": [False, 1, "yes", None],
    "signed_by": ["", "me", 5],
    "parts": [[], {"rows_per_part": 3, "rows": [3]}, {"rows": [3, 3]}, {"rows_per_part": 3, "rows": [2, 3]}],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_a_value_that_cannot_be_one_is_named(release, key, value):
    rewrite(release, lambda manifest: manifest.update({key: value}))
    assert f"damaged or incomplete: the values of {key} are invalid" in problems(release)


def test_every_key_of_the_manifest_has_a_wrong_value_here():
    assert set(WRONG) == (MANIFEST_KEYS | OPTIONAL_KEYS) - {"manifest_version", "digest"}


def test_a_thousand_problems_are_not_all_shown(release):
    rewrite(
        release, lambda manifest: manifest["verdicts"].extend([manifest["verdicts"][0] | {"passed": False}] * 5_000)
    )
    found = verify_release(release, max_bytes=None).problems
    assert len(found) == 101
    assert found[-1] == "4900 more problems were found"


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest["verdicts"][0].update(passed="no"),
        lambda manifest: manifest["verdicts"][1].update(severity="info"),
        lambda manifest: manifest["verdicts"][1].update(limit=0.2),
        lambda manifest: manifest["policy"].update(more=1),
        lambda manifest: manifest["policy"].pop("required"),
        lambda manifest: manifest["policy"]["required"].update(signature="yes"),
        lambda manifest: manifest["policy"].update(known=5),
    ],
)
def test_a_forged_part_with_a_digest_of_its_own_is_found_where_it_contradicts_another(release, change):
    rewrite(release, change)
    assert problems(release) != ""


# What lies in the directory.


@pytest.mark.parametrize("name", ["manifest.json", "synthetic.parquet", "synthetic.csv", "report.html"])
@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path.with_name("elsewhere")),
    ],
)
def test_a_pipe_a_directory_or_a_link_in_place_of_a_file_keeps_nobody_waiting(release, name, make):
    (release / name).rename(release.parent / "elsewhere")
    make(release / name)
    started = time.perf_counter()
    told = problems(release)
    of_a_file = f"{name!r} is missing, or is not a regular file"
    assert ("there is no regular file manifest.json" if name == "manifest.json" else of_a_file) in told
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("read", [published_fingerprint, read_anonymized_release, read_released_csv])
def test_a_manifest_that_is_a_pipe_keeps_no_reader_waiting(release, read):
    (release / "manifest.json").unlink()
    os.mkfifo(release / "manifest.json")
    with pytest.raises(ValueError, match="there is no regular file manifest.json|has no CSV file"):
        read(release)


@pytest.mark.parametrize("name", ["../secret.parquet", "/etc/passwd", "a/b", "..", "", "\0", "manifest.json"])
def test_a_name_that_leads_elsewhere_is_not_followed(release, name):
    (release.parent / "secret.parquet").write_bytes(b"x")
    described = {"sha256": hashlib.sha256(b"x").hexdigest(), "bytes": 1}
    rewrite(release, lambda manifest: manifest["files"].update({name: described}))
    assert "the manifest does not list the files of its formats and its report" in problems(release)
    if name != "manifest.json":
        assert f"the file {name!r} is missing" in problems(release)


def test_of_a_file_that_is_larger_than_recorded_nothing_is_read(release):
    with (release / "synthetic.csv").open("ab") as file:
        file.truncate(2**40)  # A terabyte of holes.
    with (release / "synthetic.parquet").open("ab") as file:
        file.truncate(2**40)
    started = time.perf_counter()
    assert problems(release) == "the file 'synthetic.csv' was changed; the file 'synthetic.parquet' was changed"
    assert time.perf_counter() - started < 5


def test_a_file_that_is_recorded_as_larger_than_the_limit_is_not_read(release):
    with (release / "synthetic.csv").open("ab") as file:
        file.truncate(2**40)
    rewrite(release, lambda manifest: manifest["files"]["synthetic.csv"].update(bytes=2**40))
    started = time.perf_counter()
    assert (
        problems(release, 2**32)
        == "the file 'synthetic.csv' has more than 4,294,967,296 bytes, the limit of this verification"
    )
    assert time.perf_counter() - started < 60


def test_no_file_stays_open_until_garbage_is_collected(release):
    def files():
        return sorted(each.name for each in Path("/proc/self/fd").iterdir())

    before = files()
    gc.disable()
    try:
        assert verify_release(release, max_bytes=None).verified
        assert files() == before
    finally:
        gc.enable()


def test_many_files_are_counted_to_a_bound_only(release):
    for number in range(1_100):
        (release / f"more-{number}").touch()
    assert "files are not listed in the manifest" in problems(release)


# Parquet.


def test_zero_records_of_zero_are_no_division_by_zero(tmp_path):
    anonymized = released(tmp_path, "anonymized")
    shutil.copytree(anonymized, tmp_path / "empty")
    empty = pd.read_parquet(tmp_path / "empty" / "anonymized.parquet").head(0)
    data = empty.to_parquet(index=False)
    (tmp_path / "empty" / "anonymized.parquet").write_bytes(data)

    def describe(manifest):
        described = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        manifest["files"]["anonymized.parquet"] = described
        manifest["n_records"] = 0
        manifest["fingerprint"] = fingerprint(empty)
        manifest["figures"]["statistics"] |= {"n_rows": 0, "n_released": 0, "n_suppressed": 0, "suppressed_share": 0.0}

    rewrite(tmp_path / "empty", describe)
    assert "the table has no records, so it has no classes to measure" in problems(tmp_path / "empty")
    rewrite(anonymized, lambda manifest: manifest["figures"]["statistics"].update(n_rows=0, n_suppressed=-8))
    assert "statistics are impossible" in problems(anonymized)


def test_a_recursive_diversity_that_no_class_can_have_fills_no_memory(tmp_path):
    anonymized = released(tmp_path, "anonymized")

    def claim(manifest):
        manifest["figures"]["anonymity"]["sensitive"]["illness"]["l_recursive_c"] = {str(10**15): 1.0}

    rewrite(anonymized, claim)
    assert "l_recursive_c of 'illness' of the table differ from the manifest" in problems(anonymized)


BOMBS = ("a run of equal numbers", "a long text that all records have", "texts with one prefix", "zeros, packed")


@pytest.fixture(scope="module")
def all_bombs():
    """Return small files that unpack to a lot, with their columns and their number of records."""
    n_records = 20_000_000
    numbers = pa.table({"age": pa.array(np.zeros(n_records, np.int64))})
    long = "x" * (2 * MIB)
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int32)), [long])
    prefixed = pa.table({"plan": [long + str(number) for number in range(200)]})
    return {
        "a run of equal numbers": (parquet(numbers), ["age"], n_records),
        "a long text that all records have": (
            parquet(pa.table({"plan": texts}), store_schema=False),
            ["plan"],
            100_000,
        ),
        "texts with one prefix": (
            parquet(prefixed, use_dictionary=False, column_encoding={"plan": "DELTA_BYTE_ARRAY"}),
            ["plan"],
            200,
        ),
        "zeros, packed": (
            parquet(pa.table({"plan": [long] * 200}), use_dictionary=False, compression="zstd"),
            ["plan"],
            200,
        ),
    }


@pytest.mark.parametrize("kind", ["nothing", *BOMBS])
def test_a_parquet_bomb_is_refused_and_fills_no_memory(release, all_bombs, kind, monkeypatch):
    monkeypatch.setattr(received_files, "BYTES_OF_LIBRARIES", 0)
    if kind != "nothing":
        data, columns, n_records = all_bombs[kind]
        assert len(data) < 2 * MIB
        swap(release, data, columns, n_records)
    before = pa.total_allocated_bytes()
    started = time.perf_counter()
    ends = ("exit code 3", "signal 6", "signal 9", "signal 11")
    said = [""] if kind == "nothing" else [f"{BEYOND_LIMITS} ({ended}). {WHAT_TO_DO}" for ended in ends]
    assert problems(release, 64 * MIB) in said
    assert time.perf_counter() - started < 60
    assert pa.total_allocated_bytes() == before


def test_a_table_that_is_not_what_the_manifest_says_is_named(release):
    table = pa.table({"age": [1, 2], "plan": ["a", "b"]})
    for columns, n_records in ((["age"], 2), (["plan", "age"], 2), (["age", "plan"], 3), (["age", "plan"], 10**12)):
        swap(release, parquet(table), columns, n_records)
        told = "the table does not have the recorded columns and number of records"
        assert (told if columns == ["age", "plan"] else OTHER_COLUMNS) in problems(release)
    nested = pa.table({"age": [[1], [2]], "plan": [{"a": 1}, {"a": 2}]})
    wide = pa.table({"age": pa.array([b"x" * 100] * 2, pa.binary(100)), "plan": ["a", "b"]})
    for other in (nested, wide):
        swap(release, parquet(other))
        assert problems(release) == "the file 'synthetic.parquet' cannot be read as a table"


NAMES = ["Person Zaphodine", "Person Quxington"]


def _with_metadata(table, **changes):
    """Return an Arrow table whose description for pandas is edited."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    edited = json.dumps(arrow.schema.pandas_metadata | changes)
    return arrow.replace_schema_metadata({"pandas": edited})


@pytest.mark.parametrize(
    "hidden",
    [
        pa.Table.from_pandas(TABLE.assign(name=NAMES).set_index("name")),
        pa.Table.from_pandas(TABLE.assign(name=NAMES, home=NAMES).set_index(["name", "home"])),
        pa.Table.from_pandas(TABLE.set_index(pd.RangeIndex(2, name=NAMES[0]))),
        pa.Table.from_pandas(TABLE.set_index(pd.RangeIndex(19_500_101, 19_500_103))),
        pa.Table.from_pandas(TABLE.set_index(pd.Index(NAMES))),  # As `__index_level_0__`.
        pa.Table.from_pandas(TABLE.assign(name=NAMES), preserve_index=False),
        _with_metadata(TABLE.assign(name=NAMES), index_columns=["name"]),
        _with_metadata(TABLE, index_columns=["plan"]),
        pa.table({"age": [31, 42], "plan": ["a", "b"], "age ": NAMES}),
    ],
    ids=lambda table: ", ".join(table.column_names),
)
def test_a_column_that_is_hidden_as_an_index_does_not_verify(release, hidden, capsys):
    swap(release, parquet(hidden))
    assert problems(release) == problems(release, 64 * MIB) == OTHER_COLUMNS
    assert main(["verify", str(release)]) == 1
    assert not any(part in capsys.readouterr().out for name in NAMES for part in name.split()[1:])


def test_columns_that_pandas_renames_do_not_verify(release):
    columns = [
        {"name": name, "field_name": field, "pandas_type": "unicode", "numpy_type": "object", "metadata": None}
        for name, field in (("plan", "age"), ("age", "plan"))
    ]
    swap(release, parquet(_with_metadata(TABLE, columns=columns)))
    assert "the table does not have the recorded" in problems(release)


def test_a_large_table_whose_column_is_hidden_as_an_index_does_not_verify(release):
    n_records = 2**20
    table = pd.DataFrame({"age": np.zeros(n_records, int), "name": NAMES[0]}, np.arange(n_records))
    swap(release, parquet(pa.Table.from_pandas(table.set_index("name"))), ["age"], n_records)
    rewrite(release, lambda manifest: manifest.update(fingerprint=fingerprint(table[["age"]])))
    assert OTHER_COLUMNS in problems(release)


def test_a_footer_that_lies_about_its_pages_is_found(release):
    """The counts in the footer are edited, so that it agrees with the manifest, and the pages do not."""
    data = parquet(pa.table({"age": pa.array(range(5_000), pa.int64())}), compression="none", use_dictionary=False)
    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
    start = len(data) - 8 - metadata.serialized_size
    footer = bytearray(data[start:-8])
    true, lie = bytes([0x90, 0x4E]), bytes([0x92, 0x4E])  # 5,000 and 5,001 as Thrift writes them.
    assert footer.count(true) >= 3  # Of the file, of its row group and of the column.
    swap(release, data[:start] + bytes(footer).replace(true, lie) + data[-8:], ["age"], 5_001)
    assert "the table does not have the recorded fingerprint" in problems(release, 64 * MIB)


@pytest.mark.parametrize(("position", "step"), [(0, 1), (7, 16), (20, 255), (33, 16), (44, 1)])
def test_a_footer_at_which_arrow_may_end_the_process_ends_no_verification(release, position, step):
    """A column that is made required, beside statistics of an optional one: an exception of C++ that nobody catches."""
    mutated = bytearray((release / "synthetic.parquet").read_bytes())
    place = len(mutated) - 8 - int.from_bytes(mutated[-8:-4], "little") + position
    mutated[place] = (mutated[place] + step) % 256
    swap(release, bytes(mutated))
    assert problems(release, 64 * MIB) != ""


def test_damaged_parquet_files_raise_nothing(release):
    chance = np.random.default_rng(0)
    original = (release / "synthetic.parquet").read_bytes()
    for _ in range(5):
        data = bytearray(original)
        for position in chance.integers(0, len(data), chance.integers(1, 4)):
            data[position] = chance.integers(0, 256)
        swap(release, bytes(data))
        assert problems(release, 64 * MIB) != ""


def test_the_limit_can_be_raised_and_lowered(release, capsys):
    assert problems(release, max_bytes=None) == problems(release, max_bytes=MIB) == ""
    assert "'synthetic.csv' has more than 3 bytes, the limit of this verification" in problems(release, max_bytes=3)
    assert main(["verify", str(release), "--max-gib", "0.000001"]) == 1
    assert main(["verify", str(release), "--max-gib", "1"]) == 0
    for wrong in ("0", "-1", "nan", "many"):
        with pytest.raises(SystemExit):
            main(["verify", str(release), "--max-gib", wrong])
    capsys.readouterr()


def test_tables_of_every_kind_of_column_are_within_the_limits(tmp_path):
    n_records = 40_000
    table = pd.DataFrame(
        {
            "text": [f"a text {number}" for number in range(n_records)],
            "category": pd.Categorical(np.array(["x", "y", None], object)[np.arange(n_records) % 3]),
            "numbers": pd.Categorical(np.arange(n_records) % 5),
            "float": np.linspace(0, 1, n_records),
            "half": np.linspace(0, 1, n_records).astype(np.float16),
            "flag": np.arange(n_records) % 2 == 0,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(n_records), unit="h"),
            "zone": pd.Timestamp("2020-01-01", tz="Europe/Berlin") + pd.to_timedelta(np.arange(n_records), unit="h"),
            "span": pd.to_timedelta(np.arange(n_records), unit="s"),
            "nothing": [None] * n_records,
            "with.dots": np.arange(n_records, dtype=np.uint8),
            "whole": pd.array([None, *range(1, n_records)], "Int64"),
        }
    )
    reasons = dict.fromkeys(table.columns, "Made for a test, of nobody")
    columns = [{"column": name, "role": "other"} for name in table.columns]
    record = replace(RECORD, columns=columns, acknowledged=reasons)
    written = write_release(tmp_path, table, fingerprint(table), record)
    assert problems(written) == ""
    assert problems(written, max_bytes=64 * MIB) == ""


# Campaigns, at one percent; in full they are run by hand.


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    pytest.importorskip("cryptography", reason="needs the extra `signing`")
    return make_releases(tmp_path_factory.mktemp("fuzzed"))


def test_no_slip_verifies_and_none_raises(fuzzed):
    counts = campaign(20, seed=11, releases=fuzzed)
    assert (counts.n_mutations, counts.tracebacks, counts.false_verified) == (20, [], [])
    assert counts.n_refused >= 15


def test_no_forgery_of_a_signed_release_verifies_and_of_others_only_where_it_is_said(fuzzed):
    counts = forge(60, seed=11, releases=fuzzed)
    assert (counts.n_mutations, counts.tracebacks, counts.false_verified) == (60, [], [])
    assert [place for place in counts.forged if not is_listed(*place)] == []
    assert 0 < counts.forged.total() < 30


def test_the_campaign_sees_a_verification_that_is_none(fuzzed, monkeypatch):
    from benchmarks.campaigns import fuzz_manifest

    def admits_everything(*_, **__):
        class Found:
            verified = True

        return Found

    def raises(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(fuzz_manifest, "verify_release", admits_everything)
    assert len(campaign(20, seed=11, releases=fuzzed).false_verified) >= 10
    assert [place for place in forge(60, seed=11, releases=fuzzed).forged if not is_listed(*place)] != []
    monkeypatch.setattr(fuzz_manifest, "verify_release", raises)
    assert len(campaign(20, seed=11, releases=fuzzed).tracebacks) == 20


def test_what_a_forger_can_change_is_named_on_the_page():
    page = (REPOSITORY / "docs" / "signing.md").read_text()
    named = {place.split(".")[-1].removesuffix("[]") for places in FORGEABLE.values() for place in places}
    assert [name for name in sorted(named) if f"`{name}`" not in page] == []
