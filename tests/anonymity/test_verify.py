"""The report on a table agrees with the definitions, whatever its columns hold.

Where pycanon 1.3.6 (the peer of ``benchmarks/anonymity.py``) is wrong, the test names it.
"""

import datetime as dt
import json
import math
import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacy_assets
from privacy_assets.anonymity import worst_classes
from privacy_assets.anonymity.report import AnonymityReport
from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from tests.examples import examples
from tests.mixed_tables import table_pairs
from tests.reference import anonymity_measures as reference

ORDERED = ("integer", "nullable integer", "float", "datetime", "aware datetime", "duration", "date")


def rows_of(table, columns):
    return list(zip(*(reference.plain(table[name]) for name in columns), strict=True))


@given(table_pairs(max_columns=5, max_rows=25), st.data())
@settings(max_examples=examples(150), deadline=None)
def test_the_report_agrees_with_the_definitions_for_every_kind_of_column(tables, data):
    table = tables[0]
    names = data.draw(st.permutations(list(table.columns)))
    n_quasi = data.draw(st.integers(1, len(names)))
    quasi, sensitive = names[:n_quasi], names[n_quasi:]
    subject = sensitive.pop() if sensitive and data.draw(st.booleans()) else None
    report = verify_anonymity(table, quasi, sensitive, subject=subject)
    labels = rows_of(table, quasi)
    sizes = [len(rows) for rows in reference.classes_of(labels)]
    assert (report.k, report.n_classes, report.n_rows) == (min(sizes), len(sizes), len(table))
    assert report.class_sizes.largest == max(sizes)
    assert math.isclose(report.class_sizes.mean, np.mean(sizes))
    assert report.class_sizes.median == np.median(sizes)
    if subject is not None:
        people = reference.people_in_classes(labels, reference.plain(table[subject]))
        assert (report.k_people, report.class_people.largest) == (min(people), max(people))
    for name in sensitive:
        expected = reference.measure(labels, reference.plain(table[name]), name[:-2] in ORDERED)
        found = report.sensitive[name]
        assert {**found.l_recursive_c} == pytest.approx({l_: float(c) for l_, c in expected["l_recursive_c"].items()})
        for measure, value in expected.items():
            if measure != "l_recursive_c":
                assert getattr(found, measure) == pytest.approx(float(value), abs=1e-9), measure
    assert AnonymityReport.from_header(json.loads(json.dumps(report.to_header(), allow_nan=False))) == report


@given(table_pairs(max_columns=4, max_rows=15), st.integers(0, 2**32))
@settings(max_examples=examples(60), deadline=None)
def test_order_and_index_of_the_rows_change_nothing(tables, seed):
    # pycanon reads index labels as positions: on a table whose index was shuffled it measures other rows.
    table = tables[0]
    rng = np.random.default_rng(seed)
    quasi, sensitive = table.columns[:1], table.columns[1:]
    shuffled = table.iloc[rng.permutation(len(table))].set_axis(rng.integers(0, 3, len(table)))
    assert verify_anonymity(shuffled, quasi, sensitive) == verify_anonymity(table, quasi, sensitive)


def test_the_worst_of_all_sensitive_columns_is_reported():
    table = pd.DataFrame({"q": [0, 0, 0, 1, 1, 1], "a": list("xyzxyz"), "b": [1, 1, 2, 1, 2, 2]})
    report = verify_anonymity(table, ["q"], ["a", "b"])
    assert report.alpha == report.sensitive["b"].alpha == pytest.approx(2 / 3)
    assert (report.l_distinct, report.sensitive["a"].l_entropy) == (2, 3.0)
    assert report.l_entropy == report.sensitive["b"].l_entropy < 2
    assert report.l_recursive_c == pytest.approx({2: 2.0})
    assert report.t == report.sensitive["b"].t == pytest.approx(1 / 6)
    assert report.beta == report.sensitive["b"].beta == pytest.approx(1 / 3)
    assert report.enhanced_beta == pytest.approx(1 / 3)
    assert report.delta == pytest.approx(math.log(1.5))


def test_without_sensitive_columns_there_are_sizes_only():
    report = verify_anonymity(pd.DataFrame({"q": [1, 1, 2, 2, 2]}), ["q"])
    assert (report.k, report.class_sizes.mean, report.sensitive) == (2, 2.5, {})
    measures = ("alpha", "l_distinct", "l_entropy", "l_recursive_c", "t", "beta", "enhanced_beta", "delta")
    assert [getattr(report, name) for name in measures] == [None] * len(measures)
    assert report.share_in_homogeneous_classes is report.k_people is None


def test_t_of_a_constant_column_is_zero():
    # pycanon divides by the number of values less one: ZeroDivisionError for a constant column of numbers.
    for constant in (7, "a", None):
        table = pd.DataFrame({"q": [0, 0, 1], "s": pd.Series([constant] * 3, dtype=None if constant else object)})
        report = verify_anonymity(table, ["q"], ["s"])
        assert report.t == report.beta == report.enhanced_beta == report.delta == 0
        assert report.alpha == report.share_in_homogeneous_classes == 1


def test_recursive_diversity_sorts_counts_descending():
    # pycanon sorts them ascending and finds (1, 3)-diversity here; the most frequent value has 8 of 10 rows.
    table = pd.DataFrame({"q": [0] * 10, "s": list("aaaaaaaabc")})
    assert verify_anonymity(table, ["q"], ["s"]).l_recursive_c == pytest.approx({2: 4.0, 3: 8.0})


def test_categories_that_do_not_occur_are_no_values_and_no_classes():
    # pycanon counts categories without rows as classes: k = 0 and l = 0.
    levels = pd.CategoricalDtype(["low", "never", "high", "nobody"], ordered=True)
    table = pd.DataFrame({"q": list("aabb"), "s": ["low", "high", "low", "low"]})
    table = table.assign(q=table["q"].astype(pd.CategoricalDtype(list("xabz"))), s=table["s"].astype(levels))
    report = verify_anonymity(table, ["q"], ["s"])
    assert (report.n_classes, report.k, report.sensitive["s"].n_values) == (2, 2, 2)
    assert report.t == pytest.approx(0.25)


def test_ordered_categories_are_as_far_apart_as_their_order_says():
    levels = ["low", "middle", "high"]
    for ordered, t in ((True, 1 / 2), (False, 2 / 3)):
        s = pd.Categorical(["low", "middle", "high"], categories=levels, ordered=ordered)
        report = verify_anonymity(pd.DataFrame({"q": [0, 1, 2], "s": s}), ["q"], ["s"])
        assert report.t == pytest.approx(t)
        assert report.sensitive["s"].t_distance == ("ordered" if ordered else "equal")


def test_codes_in_order_of_appearance_are_no_distance():
    table = pd.DataFrame({"q": [0, 1, 1], "s": [100, 3, 50]})
    shuffled = table.iloc[[1, 0, 2]]
    assert verify_anonymity(table, ["q"], ["s"]).t == verify_anonymity(shuffled, ["q"], ["s"]).t == pytest.approx(1 / 2)


def test_a_missing_label_is_equal_to_itself_only():
    # pycanon drops rows whose only label is missing: it finds k = 2 where somebody stands alone.
    table = pd.DataFrame({"q": ["a", "a", None], "s": [1, 2, 3]})
    report = verify_anonymity(table, ["q"], ["s"])
    assert (report.k, report.n_classes, report.n_rows) == (1, 2, 3)


def test_labels_are_one_if_they_are_exactly_equal():
    table = pd.DataFrame({"q": [0.1 + 0.2, 0.3, 0.0, -0.0]})
    assert verify_anonymity(table, ["q"]).n_classes == 3
    assert verify_anonymity(pd.DataFrame({"q": ["1", "1.0", "01"]}), ["q"]).n_classes == 3


def test_labels_of_several_kinds_in_one_column_are_compared():
    table = pd.DataFrame({"age": pd.Series([34, 34, "*", "*", "[30, 39]", "[30, 39]", None, None], dtype=object)})
    assert (verify_anonymity(table, ["age"]).k, verify_anonymity(table, ["age"]).n_classes) == (2, 4)


@pytest.mark.parametrize(
    ("labels", "n_classes"),
    [
        ([1.5, "*", 1.5, "*"], 2),
        ([1, 2.5, "*"], 3),
        ([dt.date(2020, 1, 1), "*", dt.date(2020, 1, 1)], 2),
        ([pd.Timestamp("2020-01-01"), "2020-01-01", None, pd.NA], 3),
        ([True, 1, "*", False, 0], 5),
    ],
)
def test_any_mix_of_labels_is_compared_by_value_and_kind(labels, n_classes):
    table = pd.DataFrame({"q": pd.Series(labels, dtype=object)})
    assert verify_anonymity(table, ["q"]).n_classes == n_classes


def test_recursive_diversity_is_measured_up_to_the_l_that_is_asked_for():
    table = pd.DataFrame({"q": [0] * 30, "s": [*range(15), *range(15)]})
    assert max(verify_anonymity(table, ["q"], ["s"]).l_recursive_c) == 10
    found = verify_anonymity(table, ["q"], ["s"], recursive_l=40).l_recursive_c
    assert found[15] == 1.0 and max(found) == 15
    with pytest.raises(InvalidSettingError, match="`recursive_l` is 0"):
        verify_anonymity(table, ["q"], ["s"], recursive_l=0)


def test_k_rows_are_not_k_people():
    table = pd.DataFrame({"q": [0] * 10 + [1] * 10, "who": [1] * 10 + list(range(10)), "s": range(20)})
    report = verify_anonymity(table, ["q"], ["s"], subject="who")
    assert (report.k, report.k_people, report.class_people.mean) == (10, 1, 5.5)
    unknown = table.assign(who=[None] * 10 + list(range(10)))
    assert verify_anonymity(unknown, ["q"], subject="who").k_people == 1


@pytest.mark.parametrize(
    "name_of",
    [
        lambda number: number,
        lambda number: number - 3,
        lambda number: number * 2**40,
        lambda number: f"p{number}",
        lambda number: number / 2,
    ],
)
def test_people_are_counted_whatever_they_are_called(name_of):
    rng = np.random.default_rng(0)
    classes, people = rng.integers(0, 20, 200), rng.integers(0, 90, 200)
    table = pd.DataFrame({"q": classes, "who": [name_of(int(person)) for person in people]})
    expected = [len(set(people[classes == c].tolist())) for c in range(20)]
    report = verify_anonymity(table, ["q"], subject="who")
    assert (report.k_people, report.class_people.mean) == (min(expected), np.mean(expected))


def test_classes_measured_in_parts_have_the_same_report(monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"q": rng.integers(0, 50, 400), "s": rng.integers(0, 4, 400), "t": rng.integers(0, 9, 400)})
    report = verify_anonymity(table, ["q"], ["s", "t"])
    monkeypatch.setattr(worst_classes, "CLASSES_AT_ONCE", 7)
    assert verify_anonymity(table, ["q"], ["s", "t"]) == report


def test_rows_whose_sensitive_value_is_certain_are_counted():
    table = pd.DataFrame({"q": [0, 0, 1, 1, 1, 2, 2], "s": list("aababbb"), "u": [1, 2, 5, 5, 5, 1, 2]})
    report = verify_anonymity(table, ["q"], ["s", "u"])
    assert report.sensitive["s"].share_in_homogeneous_classes == pytest.approx(4 / 7)
    assert report.sensitive["u"].share_in_homogeneous_classes == pytest.approx(3 / 7)
    assert report.share_in_homogeneous_classes == 1.0


def test_an_entropy_of_equal_shares_gives_a_whole_number():
    # pycanon cuts off the last bit of the logarithm: two equal shares give 1, four give 3.
    for n in range(1, 40):
        table = pd.DataFrame({"q": [0] * n, "s": [f"v{i}" for i in range(n)]})
        assert verify_anonymity(table, ["q"], ["s"]).l_entropy == n


def test_delta_and_enhanced_beta_say_where_no_limit_holds():
    table = pd.DataFrame({"q": [0] * 4 + [1] * 4, "s": list("abcdaaaa")})
    found = verify_anonymity(table, ["q"], ["s"]).sensitive["s"]
    # pycanon finds 1 for enhanced beta-likeness: it compares every value with the rarest one's limit. The share of "a"
    # rises from 5/8 to 1, by 0.6 of it, which no beta allows, as -ln(5/8) is 0.47.
    assert (found.beta, found.enhanced_beta, found.n_classes_lacking_values) == (1.0, math.inf, 1)
    assert found.delta == pytest.approx(math.log(2.5))


def test_hours_that_clocks_show_twice_are_two_values_in_order():
    moments = pd.to_datetime(["2021-10-30 23:30", "2021-10-31 00:30", "2021-10-31 01:30"], utc=True)
    table = pd.DataFrame({"q": [0, 1, 2], "s": moments.tz_convert("Europe/Berlin")})
    report = verify_anonymity(table, ["q"], ["s"])
    assert (report.sensitive["s"].n_values, report.t) == (3, 0.5)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"quasi_identifiers": ["q", "no", "nor"]}, InvalidTableError, r"does not have: \['no', 'nor'\]"),
        ({"quasi_identifiers": []}, InvalidSettingError, "is empty"),
        ({"quasi_identifiers": "q"}, InvalidSettingError, "is a string"),
        ({"sensitive": ["q"]}, InvalidSettingError, "named more than once.*'quasi_identifiers', 'sensitive'"),
        ({"quasi_identifiers": ["q", "q"]}, InvalidSettingError, "named more than once"),
        ({"subject": "s"}, InvalidSettingError, "'sensitive', 'subject'"),
        ({"subject": "nobody"}, InvalidTableError, "`subject` names columns"),
        ({"quasi_identifiers": ["lists"]}, InvalidTableError, "Column 'lists'.*cannot be compared"),
        ({"quasi_identifiers": ["lists"], "sensitive": ["endless"]}, InvalidTableError, "'lists'.*'endless'.*infinite"),
        ({"table": pd.DataFrame({"q": [], "s": []})}, InvalidTableError, "no rows"),
        ({"table": [1, 2]}, InvalidTableError, "a list. Expected a pandas DataFrame"),
        ({"table": pd.DataFrame([[1, 2]], columns=["q", "q"])}, InvalidTableError, "repeated"),
    ],
)
def test_bad_input_is_named(arguments, error, match):
    table = pd.DataFrame({"q": [1, 2], "s": ["sentinel", "b"], "lists": [[1], [2]], "endless": [1.0, np.inf]})
    with pytest.raises(error, match=match) as raised:
        verify_anonymity(**{"table": table, "quasi_identifiers": ["q"], "sensitive": ["s"], **arguments})
    assert "sentinel" not in str(raised.value)


def test_one_row_and_many_columns_work():
    one = pd.DataFrame({"q": [dt.date(2020, 1, 1)], "s": [None]})
    assert verify_anonymity(one, ["q"], ["s"]).k == 1
    wide = pd.DataFrame(np.arange(640).reshape(10, 64) // 320, columns=[f"c{i}" for i in range(64)])
    assert verify_anonymity(wide, list(wide.columns)).k == 5


WRITTEN = {
    "case": str.upper,
    "a trailing blank": lambda text: text + " ",
    "a zero-width space": lambda text: text + "\u200b",
    "another normalization": lambda text: unicodedata.normalize("NFD", text),
    "quotes": lambda text: f'"{text}"',
    "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalpha() else c for c in text),
}


@pytest.mark.parametrize("dtype", [object, "string", "category", "ordered"])
@pytest.mark.parametrize("how", WRITTEN)
def test_sensitive_texts_are_compared_in_one_spelling(how, dtype):
    values = ["grippe \u00e9tat", "asthma"] * 20
    written = [WRITTEN[how](value) if place % 4 > 1 else value for place, value in enumerate(values)]
    if dtype in ("category", "ordered"):
        dtype = pd.CategoricalDtype(sorted({*values, *written}), ordered=dtype == "ordered")
    table = pd.DataFrame({"age": np.repeat(np.arange(8), 5), "illness": pd.Series(values, dtype=dtype)})
    table.loc[table["age"] == 0, "illness"] = values[0]
    in_two_ways = table.assign(illness=pd.Series(written, dtype=dtype).where(table["age"] > 0, table["illness"]))
    in_two_ways.loc[[1, 3], "illness"] = WRITTEN[how](values[0])
    found = verify_anonymity(in_two_ways, ["age"], ["illness"])
    assert found == verify_anonymity(table, ["age"], ["illness"])
    assert (found.l_distinct, found.share_in_homogeneous_classes) == (1, 5 / 40)


@pytest.mark.parametrize("how", WRITTEN)
def test_a_class_is_not_diverse_because_a_value_is_written_in_two_ways(how):
    random = np.random.default_rng(0)
    illness = random.choice(["grippe \u00e9tat", "asthma"], 400)
    table = pd.DataFrame({"age": random.integers(20, 60, 400), "illness": illness})
    written = table.assign(illness=[WRITTEN[how](value) if place % 2 else value for place, value in enumerate(illness)])
    asked = {"quasi_identifiers": ["age"], "sensitive": ["illness"], "k": 5, "l_diversity": 2}
    made, other = (privacy_assets.anonymize(each, **asked) for each in (table, written))
    assert sorted(made.table["age"]) == sorted(other.table["age"])
    assert set(other.table["illness"]) == set(written["illness"])
    assert verify_anonymity(other.table, ["age"], ["illness"]).l_distinct == 2
