"""Tables come out at one precision, in common codes, or not at all with a message that helps."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc.preprocess import PreprocessedTables, group_equal_rows, preprocess
from tests.examples import examples
from tests.mixed_tables import table_pairs, through_parquet
from tests.reference import mpucc as reference

ORIGINAL = pd.DataFrame({"age": [39, 40, 39], "weight": [70.5, 71.25, 70.5], "city": ["a", None, "a"]})
SYNTHETIC = pd.DataFrame({"city": ["a", "b"], "weight": [70.504, 71.0], "age": [39.0, 41.0]})
DATES = pd.DataFrame({"seen": pd.to_datetime(["2020-01-01", "2020-01-02"])})


@given(table_pairs(), st.booleans())
@settings(max_examples=examples(150), deadline=None)
def test_rows_are_equal_in_codes_when_they_are_equal_in_values(tables, deduplicate):
    prepared = preprocess(*tables, deduplicate=deduplicate)
    rows = reference.plain_rows(*tables)
    seen = {}
    for table, plain in zip((prepared.original, prepared.synthetic), rows, strict=True):
        firsts = reference.without_duplicates(plain)
        assert table.positions.tolist() == firsts
        expected = [1 if deduplicate else plain.count(plain[i]) for i in firsts]
        assert table.multiplicities.tolist() == expected
        assert table.n_equal.tolist() == [plain.count(plain[i]) for i in firsts]
        assert table.n_duplicates_dropped == (len(plain) - len(firsts) if deduplicate else 0)
        for i, codes in zip(firsts, zip(*(c.tolist() for c in table.codes), strict=True), strict=True):
            assert seen.setdefault(codes, plain[i]) == plain[i]
    assert len(seen) == len(set(rows[0]) | set(rows[1]))


CODE_DTYPES = {"position": "int64", "multiplicity": "int32", "n_equal": "int32", "code_": "uint8"}
LABEL_DTYPES = {"label": str(pd.Series(["text"]).dtype)}


@given(table_pairs(max_columns=4), st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_prepared_tables_return_from_their_artifact_unchanged(tables, has_control):
    prepared = preprocess(*tables, tables[1] if has_control else None)
    artifact = prepared.to_artifact()
    for frame in artifact.frames.values():
        dtypes = {str(name).rstrip("0123456789"): str(dtype) for name, dtype in frame.dtypes.items()}
        assert dtypes == (LABEL_DTYPES if "label" in frame.columns else CODE_DTYPES)
    header = json.loads(json.dumps(artifact.header, allow_nan=False))
    frames = {name: through_parquet(frame) for name, frame in artifact.frames.items()}
    restored = PreprocessedTables.from_artifact(replace(artifact, header=header, frames=frames))
    assert restored == prepared
    assert [c.dtype for c in restored.original.codes] == [c.dtype for c in prepared.original.codes]


def test_the_order_of_columns_is_that_of_the_original():
    prepared = preprocess(ORIGINAL, SYNTHETIC)
    assert prepared.columns == ("age", "weight", "city")
    assert prepared.kinds == ("number", "number", "text")
    assert prepared.numeric_precision == {"age": 0, "weight": 2}
    assert prepared.original.n_duplicates_dropped == 1
    assert [column[0] for column in prepared.synthetic.codes] == [column[0] for column in prepared.original.codes]


@pytest.mark.parametrize(("precision", "weight"), [(0, 0), ({"weight": 1}, 1), (np.int64(1), 1)])
def test_decimals_can_be_set_for_all_columns_or_some(precision, weight):
    assert preprocess(ORIGINAL, SYNTHETIC, numeric_precision=precision).numeric_precision["weight"] == weight


@pytest.mark.parametrize(
    ("given_unit", "unit"),
    [("D", "D"), ("h", "H"), ("MIN", "T"), ("sec", "s"), ("L", "ms"), ("u", "us"), ("N", "ns"), ({"seen": "h"}, "H")],
)
def test_units_can_be_set_in_any_case(given_unit, unit):
    assert preprocess(DATES, DATES, datetime_precision=given_unit).datetime_precision == {"seen": unit}


def test_a_column_without_values_is_legal_and_told():
    empty = ORIGINAL.assign(note=None)
    prepared = preprocess(empty, SYNTHETIC.assign(note=np.nan))
    assert prepared.kinds[-1] == "missing"
    assert prepared.n_codes[-1] == 1
    assert preprocess(ORIGINAL, SYNTHETIC.assign(city=None)).kinds[-1] == "text"


def refused(original, synthetic, match, control=None, error=InvalidTableError, **arguments):
    with pytest.raises(error, match=match) as caught:
        preprocess(original, synthetic, control, **arguments)
    return str(caught.value)


def test_columns_of_the_original_are_named_and_others_are_shown_by_position():
    odd = SYNTHETIC.rename(columns={"age": "aage"})
    refused(ORIGINAL, odd, r"The synthetic table does not have .* 1 missing \['age'\], 1 extra \(positions \d\)")
    refused(ORIGINAL, SYNTHETIC, r"The control table does not have", control=odd)


def test_repeated_column_names_are_named():
    refused(pd.concat([ORIGINAL, ORIGINAL[["age"]]], axis=1), SYNTHETIC, "1 are repeated")


def test_column_names_must_be_text():
    refused(ORIGINAL.set_axis([0, 1, 2], axis=1), SYNTHETIC, "3 are not text")


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0)])
def test_an_empty_table_is_refused(rows, columns):
    refused(ORIGINAL.iloc[:rows, :columns], SYNTHETIC, f"original table has {rows} rows and {columns} columns")


def test_what_is_no_frame_is_refused():
    refused(ORIGINAL.to_dict(), SYNTHETIC, "The original table is a dict. Expected a pandas DataFrame")


def test_all_columns_of_clashing_types_are_named_at_once():
    text = refused(ORIGINAL, SYNTHETIC.astype({"age": str, "weight": str}), "Column 'age' differs in type")
    assert "number in original, text in synthetic" in text
    assert "Column 'weight' differs in type" in text


def test_time_zones_must_be_the_same():
    aware = DATES.assign(seen=DATES["seen"].dt.tz_localize("UTC"))
    refused(DATES, aware, r"datetime in original, aware datetime \(UTC\) in synthetic")
    other = DATES.assign(seen=DATES["seen"].dt.tz_localize("Asia/Taipei"))
    refused(aware, other, r"aware datetime \(UTC\) in original, aware datetime \(Asia/Taipei\) in synthetic")


def test_infinite_values_are_counted_not_shown():
    refused(ORIGINAL, SYNTHETIC.assign(weight=np.inf), "Column 'weight' of the synthetic table has 2 infinite values")


def test_lists_are_refused():
    lists = ORIGINAL.assign(city=[[1], [2], [3]])
    refused(lists, SYNTHETIC, "Column 'city' of the original table has values of a kind that cannot be compared")


@pytest.mark.parametrize(
    ("setting", "value", "match"),
    [
        ("numeric_precision", -1, "numeric_precision is -1. Expected"),
        ("numeric_precision", 11, "from 0 to 10"),
        ("numeric_precision", True, "numeric_precision is True"),
        ("numeric_precision", {"size": 1}, r"do not have: \['size'\]"),
        ("numeric_precision", {"city": 1}, r"are not numbers: \['city'\]"),
        ("datetime_precision", "fortnight", "one of D, H, T, s, ms, us, ns"),
        ("datetime_precision", 3, "datetime_precision is 3"),
        ("datetime_precision", {"age": "D"}, r"are not datetimes: \['age'\]"),
        ("deduplicate", "yes", "deduplicate is 'yes'"),
    ],
)
def test_a_precision_that_does_not_exist_is_refused(setting, value, match):
    refused(ORIGINAL, SYNTHETIC, match, error=InvalidSettingError, **{setting: value})


@pytest.mark.parametrize("deduplicate", [True, False])
@pytest.mark.parametrize("person", [None, "who"])
def test_rows_that_stay_different_under_other_codes_are_those_of_such_values(person, deduplicate):
    rng = np.random.default_rng(0)
    people = rng.integers(0, 40, 90)
    frame = pd.DataFrame({"x": rng.integers(0, 8, 90), "y": rng.permutation(90)})

    def prepared(frame):
        original = frame if person is None else frame.assign(who=people)
        return preprocess(original, frame, deduplicate=deduplicate, person=person)

    before, expected = prepared(frame), prepared(frame.assign(x=frame["x"] // 2))
    place_of = {label: code for code, label in enumerate(expected.labels[0])}
    new_code = np.array([place_of[str(int(label) // 2)] for label in before.labels[0]], np.uint8)
    for name, table in before.tables.items():
        codes = new_code[table.codes[0]], table.codes[1]
        assert group_equal_rows(table, codes, list(expected.n_codes), deduplicate) == expected.tables[name]
