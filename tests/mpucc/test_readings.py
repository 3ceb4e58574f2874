"""Copies are copies in any spelling, and texts of real people that are spelled alike are assessed in both readings."""

import json
from dataclasses import replace
from decimal import Decimal
from unicodedata import normalize

import numpy as np
import pandas as pd
import pytest

from privacy_assets import assess_disclosure, assess_mpuccs, assess_utility
from privacy_assets.disclosure.rare_values import count_rare_values
from privacy_assets.errors import InvalidTableError
from privacy_assets.mpucc.assess import MpuccSettings, assess_preprocessed
from privacy_assets.mpucc.preprocess import PreprocessedTables, preprocess

UP_TO_2 = MpuccSettings(max_baseline_cols=2)
FIGURES = {"max_baseline_cols": 3, "n_matched_samples": 1}


def patients(n, seed):
    random = np.random.default_rng(seed)
    towns = np.array([f"Zürich-{i}" for i in range(20)] + [f"Sankt Émile {i}" for i in range(20)], object)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 200, n), unit="D")
    return pd.DataFrame(
        {
            "zip": [f"0{value}" for value in random.integers(1000, 1080, n)],
            "town": random.choice(towns, n),
            "visit": day.strftime("%Y-%m-%d"),
            "dose": [f"{value / 10:.1f}" for value in random.integers(1, 60, n)],
            "ward": random.choice(np.array(["A1", "b2", None], object), n),
        },
        dtype=object,
    )


def written(*columns, as_):
    def change(table):
        chosen = columns or list(table)
        return table.assign(**{name: table[name].map(as_, na_action="ignore").astype(object) for name in chosen})

    return change


SPELLINGS = {
    "blank after": written(as_=lambda text: text + " "),
    "blanks before": written(as_=lambda text: "\u00a0 " + text),
    "upper case": written(as_=str.upper),
    "decomposed": written(as_=lambda text: normalize("NFD", text)),
    "full width": written(as_=lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)),
    "zero width": written(as_=lambda text: text[:1] + "\u200b" + text[1:]),
    "variation selector": written(as_=lambda text: text + "\ufe0f"),
    "soft hyphen": written(as_=lambda text: text[:2] + "\u00ad" + text[2:]),
    "no leading zero": written("zip", as_=lambda text: text.lstrip("0")),
    "point zero": written("zip", as_=lambda text: f"{text.lstrip('0')}.0"),
    "exponent": written("zip", as_=lambda text: f"{float(text):.4e}"),
    "decimal comma": written("dose", as_=lambda text: text.replace(".", ",")),
    "more places": written("dose", as_=lambda text: text + "00"),
    "date with time": written("visit", as_=lambda text: f"{text}T00:00:00Z"),
    "missing as NA": lambda table: table.assign(ward=table["ward"].where(table["ward"].notna(), "NA")),
    "missing as an empty text": lambda table: table.assign(ward=table["ward"].where(table["ward"].notna(), "")),
    "quoted": written(as_=lambda text: f"\u201c{text}\u201d"),
    "apostrophe": written(as_=lambda text: f"'{text}"),
    "dashes": written(as_=lambda text: text.replace("-", "\u2011")),
    "half in capitals": lambda table: pd.concat([table[::2], written(as_=str.upper)(table[1::2])], ignore_index=True),
    "categories": lambda table: written(as_=str.upper)(table).astype("category"),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_no_spelling_hides_copies(name):
    original, control = patients(400, 0), patients(200, 1)
    synthetic = SPELLINGS[name](original)
    risk = assess_mpuccs(original, synthetic, control, **FIGURES)
    assert risk.scores["privacy_risk_score"] > 0.99
    assert risk.settings["spelling"] == "canonical/1"
    assert risk.settings["originals_spelled_alike"] == 0
    assert risk.control.verbatim_copies == len(synthetic)
    # What is shown of the records are their values as the originals have them.
    shown = {text for values in risk.details["value_combo"] for text in values}
    assert shown <= {None, *original.stack()}
    leak = assess_disclosure(original, synthetic, control)
    assert leak.scores["leakage_detected"] is True
    assert leak.settings["spelling"] == "canonical/1"


def test_other_people_score_the_same_in_any_spelling():
    original, control, others = (patients(n, seed) for n, seed in ((400, 0), (200, 1), (400, 2)))
    expected = assess_mpuccs(original, others, control, **FIGURES).scores
    for name in ("upper case", "quoted", "point zero", "missing as NA"):
        assert assess_mpuccs(original, SPELLINGS[name](others), control, **FIGURES).scores == expected


def coded(n, seed, codes):
    random = np.random.default_rng(seed)
    code = random.choice(np.array(codes, object), n)
    return pd.DataFrame({"code": code, "age": random.integers(20, 26, n), "sex": random.choice(["f", "m"], n)})


@pytest.mark.parametrize(
    "codes",
    [
        [spelled for i in range(30) for spelled in (f"{i}", f"0{i}", f"00{i}", f"{i}.0")],
        [spelled for letter in "abcdefghijklmnop" for spelled in (letter, letter.upper(), f"'{letter}")],
        ["none", "NA", "null", "nan", None, "", "a", "b"],
        [spelled for i in range(9) for spelled in (f"é{i}", f"e\u0301{i}", f"É{i}")],
        [
            spelled
            for i in range(1, 9)
            for spelled in (f"2024-03-0{i}", f"2024-03-0{i} 00:00:00", f"2024-03-0{i}T00:00Z")
        ],
    ],
)
def test_the_larger_of_both_readings_counts(codes):
    original, control = coded(300, 0, codes), coded(150, 1, codes)
    tables = preprocess(original, original, control)
    fewer, more = (assess_preprocessed(each, UP_TO_2).scores["privacy_risk_score"] for each in one_reading(tables))
    assert fewer < more
    found = assess_preprocessed(tables, UP_TO_2)
    assert found.scores["privacy_risk_score"] == more
    # Distinct originals that equal others only because they are spelled alike.
    assert (
        found.settings["originals_spelled_alike"]
        == tables.as_written.original.n_distinct - tables.original.n_distinct
        > 0
    )
    assert assess_mpuccs(original, original, control, max_baseline_cols=2).scores == found.scores
    without = replace(UP_TO_2, calculate_baseline=False)
    rates = [assess_preprocessed(each, without).scores["identification_rate"] for each in one_reading(tables)]
    assert assess_preprocessed(tables, without).scores["identification_rate"] == max(rates)
    artifact = tables.to_artifact()
    assert PreprocessedTables.from_artifact(artifact) == tables
    assert json.loads(json.dumps(artifact.header, allow_nan=False)) == artifact.header
    assert assess_disclosure(original, original, control).scores["leakage_detected"] is True


def one_reading(tables):
    return replace(tables, as_written=None), tables.as_written


def test_copies_in_capitals_are_found_where_codes_of_the_originals_are_spelled_alike():
    codes = [spelled for i in range(30) for spelled in (f"{i}", f"0{i}")]
    original, control = coded(300, 0, codes), coded(150, 1, codes)
    original["town"], control["town"] = (patients(n, 3)["town"] for n in (300, 150))
    synthetic = original.assign(town=original["town"].str.upper())
    same, copies = (
        assess_mpuccs(original, each, control).scores["privacy_risk_score"] for each in (original, synthetic)
    )
    assert copies == same > 0.5


def test_people_who_become_equal_are_counted_with_their_records():
    original = pd.DataFrame({"who": [1, 1, 2, 2, 3], "code": ["7", "x", "007", "X", "y"], "age": [1, 2, 1, 2, 3]})
    found = assess_mpuccs(original, original.drop(columns="who"), person="who")
    assert found.settings["originals_spelled_alike"] == 1


KINDS = {
    "bytes": lambda texts: texts.map(str.encode),
    "numbers": lambda texts: texts.map(float),
    "whole numbers": lambda texts: texts.map(int),
    "decimals": lambda texts: pd.Series([Decimal(text) for text in texts], dtype=object),
    "booleans": lambda texts: texts.map(int) > 1040,
    "days": lambda texts: pd.Timestamp("2024-01-01") + pd.to_timedelta(texts.map(int), unit="D"),
    "durations": lambda texts: pd.to_timedelta(texts.map(int), unit="D"),
    "categories of numbers": lambda texts: texts.map(int).astype("category"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["original", "synthetic"])
def test_kinds_that_differ_are_refused_wherever_a_figure_is_computed(kind, side):
    texts, control = patients(400, 0), patients(400, 1)
    other = texts.assign(zip=KINDS[kind](texts["zip"]))
    original, synthetic = (other, texts) if side == "original" else (texts, other)
    if side == "original":
        control = control.assign(zip=KINDS[kind](control["zip"]))
    for assess in (
        lambda: assess_mpuccs(original, synthetic, control),
        lambda: assess_disclosure(original, synthetic, control),
        lambda: count_rare_values(synthetic, [original, control], people_per_value=3),
        lambda: assess_utility(original, synthetic, control),
    ):
        with pytest.raises(InvalidTableError, match="'zip'") as raised:
            assess()
        assert "text" in str(raised.value)
        assert "103" not in str(raised.value)


def test_numbers_of_other_storage_are_the_same_kind():
    original, control = (patients(n, n).assign(zip=lambda table: table["zip"].map(int)) for n in (400, 300))
    for synthetic in (original.assign(zip=original["zip"].map(float)), original.astype({"zip": "category"})):
        assert assess_mpuccs(original, synthetic, control, **FIGURES).scores["privacy_risk_score"] > 0.99
        assert count_rare_values(synthetic, [original], people_per_value=3).total >= 0


def test_a_person_in_both_tables_is_found_in_any_spelling():
    original = patients(60, 0).assign(who=[f"P-{i:03}" for i in range(60)])
    control = patients(60, 1).assign(who=[f"p\u20110{i:02} " for i in range(59, 119)])
    with pytest.raises(InvalidTableError, match="1 people have records in both"):
        assess_mpuccs(original, patients(60, 2), control, person="who")


def test_two_columns_that_become_equal_are_two_columns():
    original, control = patients(300, 0), patients(200, 1)
    original["copy"], control["copy"] = (table["town"].str.upper() for table in (original, control))
    found = assess_mpuccs(original, original, control, **FIGURES)
    assert found.scores["privacy_risk_score"] > 0.99
    assert found.settings["columns"] == list(original)


def test_parts_of_a_column_are_compared_in_any_spelling_and_in_both_readings():
    codes = [spelled for i in range(20) for spelled in (f"{i}", f"0{i}")]
    original, control = (coded(n, n, codes).assign(day=patients(n, n)["visit"]) for n in (300, 150))
    arguments = {"parts": {"both": ["code", "day"]}, "max_baseline_cols": 2}
    whole = assess_mpuccs(original, original, control, **arguments)
    assert whole.settings["originals_spelled_alike"] == 0
    written = original.assign(day=original["day"] + "T00:00Z", code="'" + original["code"])
    found = assess_mpuccs(original, written, control, **arguments)
    assert found.scores["privacy_risk_score"] > 0.5
    alike = [table.assign(day="2024-03-01", age=20) for table in (original, written, control)]
    assert assess_mpuccs(*alike, **arguments).settings["originals_spelled_alike"] > 0


def test_two_readings_and_a_column_that_compares_nothing_have_no_score():
    original = pd.DataFrame({"code": ["7", "007", "8", "9"] * 5, "town": list("abcde") * 4})
    found = assess_mpuccs(original, original.assign(town=list("vwxyz") * 4), max_baseline_cols=1)
    assert found.settings["originals_spelled_alike"] > 0
    assert found.scores["score_of_lone_people"] is None
    assert found.scores["privacy_risk_score"] is None
