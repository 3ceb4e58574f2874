"""Texts are one value for comparison if a program or a person takes them for the same, and stay as they are written."""

from unicodedata import normalize

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privacy_assets.columns.coding import read_column
from privacy_assets.columns.spelling import canonical, canonical_of_all, encode_spelled, spelled_keys
from tests.examples import examples
from tests.reference import spelling as reference

ALPHABET = [
    *"aAbBzZ019 -+.,:'\"eEtTnN/#<>", "é", "É", "e\u0301", "ß", "İ", "\u2013", "\u2212", "\u2019", "\u00b4", "\u201c",
    "\u200b", "\u00ad", "\ufeff", "\u200e", "\u00a0", "\u2003", "\t", "\n", "\x00", "\x1c", "\u0660", "\uff11",
    "\u2460", "\ufb01", "\u00bd", "na", "nan", "none", "2024-03-01", "T10:00", ":00", ".500", "Z", "+00:00", "1e3",
    "\u0345", "\u1e9e",
]  # fmt: skip
TEXTS = st.one_of(st.lists(st.sampled_from(ALPHABET), max_size=12).map("".join), st.text(max_size=8))

ALIKE = [
    ["Zoë Quill", "ZOË QUILL", " Zoë  Quill ", "Zo\u200bë Quill", '"Zoë Quill"', normalize("NFD", "Zoë Quill")],
    ["1037", "01037", "1037.0", "1037,00", "+1037", "1.037e3", "'1037", "１０３７", "1037 ", "1.0370E+03"],  # noqa: RUF001
    ["0", "-0", "0.0", "000", "0e5", ",0", "+.0"],
    ["0.1", ".1", "0,10", "1e-1", "0.100000"],
    ["2024-03-01", "2024-03-01T00:00:00Z", "2024-03-01 00:00:00.000", "2024-03-01t00:00", "2024-03-01 00:00:00+00:00"],
    ["2024-03-01 10:30:00.5", "2024-03-01T10:30:00,500Z", "2024-03-01 10:30:00.50+0000"],
    ["O'Brien-Smith", "O\u2019Brien\u2013Smith", "o\u02bcbrien\u2010smith", "O`BRIEN\u2212SMITH"],
    ["straße", "STRASSE", "Strasse\u00ad", "stra\u1e9ee"],
    ["", "NA", "n/a", "#N/A", "NaN", "null", "NULL ", "None", "<NA>", "NaT", '""', "'", '"nan"', "\u200b"],
    ["fi", "\ufb01", "FI", "f\ufe0fi", "f\u2800i", "fi\u2065", "\ufff0fi", "f\U000e0000i", "fi\ufffc"],
    ["5\u2033", "5\u2032\u2032", normalize("NFKC", "5\u2033")],
    ["a\u1ffdb", normalize("NFC", "a\u1ffdb"), "a'b"],
]  # fmt: skip
APART = [
    "unknown", "?", "-", "7", "7.5", "-7", "2024-03-02", "2024-03-01 10:00:00", "2024-03-01T00:00:00+02:00", "7 pm",
    "a b", "ab", "é", "e", "inf", "9" * 45, "9" * 44 + "8", "9" * 39, "9" * 38 + "8", "1 037", "1'037", "1,037",
    "-12,500", '5"', "yes", "1",
]  # fmt: skip


@pytest.mark.parametrize("texts", ALIKE)
def test_what_is_taken_for_the_same_value_is_spelled_alike(texts):
    assert len({canonical(text) for text in texts}) == 1


def test_other_values_stay_apart():
    assert len({canonical(text) for text in APART} | {canonical(texts[0]) for texts in ALIKE}) == len(APART) + len(
        ALIKE
    )


@settings(max_examples=examples(1500), deadline=None)
@given(TEXTS)
@example("\u0345\u0301")
@example("\u2033")
@example("\u00b4")
def test_the_spelling_of_a_spelling_is_itself(text):
    spelled = canonical(text)
    assert canonical(spelled) == spelled


@settings(max_examples=examples(1500), deadline=None)
@given(TEXTS, TEXTS)
def test_texts_are_alike_when_the_rules_one_by_one_say_so(one, other):
    assert (canonical(one) == canonical(other)) == (reference.spelled(one) == reference.spelled(other))
    assert (canonical(one) == "") == (reference.spelled(one) == ())


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.one_of(TEXTS, st.text("aB 01e.-n", max_size=4)), max_size=4))
@example(["none", "A b", "1e3", "007", ""])
@example(["a", " b"])
@example(["a\nb", "c"])
def test_texts_are_spelled_together_as_one_by_one(texts):
    assert canonical_of_all(texts) == [canonical(text) for text in texts]


@pytest.mark.parametrize(
    "text", ["'" * 10**5, "'\"" * 10**5, "e\u0301" * 10**5, "1" * 10**5, "a \u200b" * 10**5, "é" * 10**5]
)
def test_long_texts_are_spelled(text):
    assert canonical(canonical(text)) == canonical(text)


def encoded(*columns):
    read = [read_column(pd.Series(column, dtype=object), "x") for column in columns]
    column = encode_spelled(read)
    return column, [codes.tolist() for codes in column.all_spelled]


def test_synthetic_texts_get_the_code_of_the_first_real_text_and_keep_its_label():
    column, (original, synthetic, control) = encoded(["Ann", "Bob", None], ["ANN ", "bob", "NA", "eve", "EVE"], ["Eve"])
    assert column.labels.tolist() == ["Ann", "Bob", "Eve", None]
    unknown, _ = encoded(["Ann"], ["EVE ", "eve", "E.v.e."])
    assert unknown.labels.tolist() == ["Ann", "eve", "e.v.e."]
    assert (original, synthetic, control) == ([0, 1, 3], [0, 1, 3, 2, 2], [2])
    assert column.key_of is None


def test_real_texts_that_are_spelled_alike_keep_both_readings():
    column, (original, synthetic) = encoded(["7", "007", "7", "x"], ["007", "7", "7.0", "X"])
    assert original == [0, 0, 0, 2]
    assert synthetic == [0, 0, 0, 2]
    assert [codes.tolist() for codes in column.codes] == [[0, 1, 0, 2], [1, 0, 0, 2]]


def test_a_word_for_missing_is_missing_only_beside_missing_values_and_not_as_a_category():
    column, (original, synthetic) = encoded(["none", None, "a"], ["NONE", None, "a"])
    assert original[0] == original[1] == synthetic[0] == synthetic[1]
    assert column.codes[0][0] != column.codes[0][1]
    column, (original, synthetic) = encoded(["none", "a"], ["NONE", None])
    assert synthetic == [original[0]] * 2
    words = pd.Series(["none", None, "a"], dtype="category")
    column = encode_spelled([read_column(words, "x"), read_column(pd.Series(["NONE", None, "nan"], dtype=object), "x")])
    assert column.key_of is None
    assert [column.labels[code] for code in column.codes[1]] == ["none", None, None]


def test_a_text_that_nobody_wrote_is_the_only_one_with_its_letters_and_digits():
    column, _ = encoded(["1000", "1", "1.234", "12-2", ">50K", "<=50K", "-7"], ["1,000", "1,234", "1-22", "50K", "7-"])
    labels = [column.labels[code] for code in column.codes[1]]
    assert labels == ["1000", "1.234", "1-22", "50k", "7-"]


def test_columns_of_other_kinds_are_encoded_as_before():
    column, codes = encoded([1, 2, None], [2.0, 1.0, 3.0])
    assert column.kind == "number"
    assert codes == [[0, 1, 3], [1, 0, 2]]


def test_a_column_of_texts_that_are_all_missing_words_has_no_value():
    column, codes = encoded([None, None], ["NA", "null"])
    assert column.labels.tolist() == [None]
    assert codes == [[0, 0], [0, 0]]


def test_keys_of_people_are_spelled_alike_but_never_missing():
    keys = spelled_keys(pd.Series(["p1", "P1 ", "none", "p2", "007", "7", "None "], index=[9, 8, 7, 6, 5, 4, 3]))
    assert pd.factorize(keys)[0].tolist() == [0, 0, 1, 2, 3, 3, 1]
    assert keys.index.tolist() == [9, 8, 7, 6, 5, 4, 3]
    hexadecimal = ["00e037", "00e772", "1e3", "1000"]
    assert spelled_keys(pd.Series(hexadecimal)).nunique() == 4
    numbers = pd.Series([3, 1])
    assert spelled_keys(numbers) is numbers
    assert spelled_keys(pd.Series(["a", None], dtype="category")).isna().tolist() == [False, True]
    assert spelled_keys(pd.Series([1, "A", "a"], dtype=object)).tolist() == [1, "a", "a"]
    assert np.isnan(spelled_keys(pd.Series([np.nan, 1.0]))).tolist() == [True, False]


@pytest.mark.parametrize("text", ["kad\u0131k\u00f6y", "\u0130stanbul", "straße", "ŉ", "ﬁn", "ΣΑΣ", "ǆ"])
@pytest.mark.parametrize("change", [str.upper, str.lower, str.swapcase, str.title])
def test_no_change_of_case_is_another_value(text, change):
    assert canonical(change(text)) == canonical(text)
