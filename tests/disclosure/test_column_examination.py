"""Columns that leave as they are: planted identifiers are found, ordinary columns are not, measures are warned of."""

import decimal
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.disclosure import column_examination
from privacy_assets.disclosure.column_examination import (
    ColumnExamination,
    columns_that_leave,
    count_holders,
    examine_columns,
)
from privacy_assets.disclosure.leaving_columns import say_what_is_decided
from privacy_assets.disclosure.text_shapes import SHAPES, is_name, shape_of, whole_number_of
from privacy_assets.storage import coded_columns
from privacy_assets.storage.table import StoredTable
from tests.disclosure.planted_columns import LANGUAGES, PLANTED, ordinary, planted, planted_numbers
from tests.examples import examples
from tests.shared_data import shared_file


def examine(column, person=None, name="x", role="other"):
    table = pd.DataFrame({name: column})
    if person is not None:
        table["person"] = person
    return examine_columns(table, {name: role}, None if person is None else "person")[0]


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 4)), min_size=1, max_size=50),
    st.booleans(),
    st.integers(1, 60),
)
def test_holders_are_counted_in_any_number_of_parts(rows, has_people, at_once):
    codes, people = (np.array(own) for own in zip(*rows, strict=True))
    whose = people.tolist() if has_people else list(range(len(rows)))
    holders = {value: {whose[i] for i, code in enumerate(codes) if code == value} for value in range(6)}
    alone = {next(iter(own)) for own in holders.values() if len(own) == 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_examination, "PAIRS_AT_ONCE", at_once)
        found = count_holders(codes, 6, people if has_people else None)
    assert found.share_alone == len(alone) / len(set(whose))
    assert found[:3] == (
        sum(map(len, holders.values())),
        sum(len(own) == 1 for own in holders.values()),
        max(map(len, holders.values())),
    )


@given(st.lists(st.text("ab", max_size=6), min_size=1, max_size=20))
def test_the_median_text_is_that_of_the_rows(texts):
    found = examine(pd.Series(texts, dtype="str"))
    assert found.median_text == np.median([len(text) for text in texts])


def findings(table):
    return {each.column: each.finding for each in examine_columns(table, dict.fromkeys(table.columns, "other"))}


def identifying(table):
    return {name for name, finding in findings(table).items() if finding == "identifying"}


class TestPlantedColumns:
    def test_there_are_more_than_twenty_kinds(self):
        assert len(PLANTED) > 40

    @pytest.mark.parametrize("missing", [0.0, 0.3])
    @pytest.mark.parametrize("n_records", [30, 200, 2_000])
    @pytest.mark.parametrize("kind", PLANTED)
    def test_each_is_found_among_few_and_many_records(self, kind, n_records, missing):
        for seed in (1, 2):
            assert examine(planted(kind, n_records, "en", missing, seed)).finding == "identifying"

    @pytest.mark.parametrize("language", LANGUAGES)
    @pytest.mark.parametrize("kind", PLANTED)
    def test_each_is_found_in_the_table_s_own_language_and_as_a_category(self, kind, language):
        assert examine(planted(kind, 200, language, 0.2, 3, "category")).finding == "identifying"
        assert examine(planted(kind, 40, language, 0.1, 4)).finding == "identifying"

    @pytest.mark.parametrize("missing", [0.0, 0.3])
    @pytest.mark.parametrize("n_records", [30, 200, 5_000])
    def test_numbers_and_times_that_lead_to_people_are_found(self, n_records, missing):
        for seed in (1, 2):
            table = planted_numbers(n_records, missing, seed)
            assert identifying(table) == set(table.columns)

    def test_numbers_with_missing_ones_are_found_as_floats_and_as_integers(self):
        table = planted_numbers(300, 0.2)[["running", "account"]]
        assert set(table.dtypes.astype(str)) == {"float64"}
        assert identifying(table.astype("Int64")) == identifying(table) == {"running", "account"}

    def test_reasons_are_words_and_counts_and_never_a_value(self):
        for kind in PLANTED:
            column = planted(kind, 60)
            said = " ".join(examine(column).reasons)
            assert "of the people have a unique value" in said
            assert not any(str(value) in said for value in column if len(str(value)) > 3)

    def test_what_it_reads_like_is_said(self):
        expected = {
            "email": "e-mail addresses", "phone in brackets": "phone numbers", "url": "URLs", "iban": "account numbers",
            "social security number": "social security numbers", "uuid": "UUIDs", "free text": "free text",
            "first and last name": "names of people", "last and first name": "names of people",
            "name list": "lists of names", "timestamp as text": "timestamps", "ip address": "IP addresses",
            "street address": "street addresses", "coordinates": "coordinates", "digest": "digests",
            "file path": "file paths", "user name": "user names", "national number with dots": "document numbers",
        }  # fmt: skip
        for kind, words in expected.items():
            found = examine(planted(kind, 300))
            assert max(found.reads_like, key=found.reads_like.get) == words, kind
            assert words in found.reasons[0]

    def test_names_are_found_where_many_people_share_them(self):
        pool = planted("first and last name", 2_000).to_numpy()
        crowd = pd.Series(np.random.default_rng(0).choice(pool, 60_000))
        found = examine(crowd)
        assert found.share_alone < 0.01
        assert found.finding == "identifying"

    def test_a_few_addresses_in_a_column_of_remarks_are_found(self):
        remarks = pd.Series(np.random.default_rng(0).choice(["none", "call again", "moved", "paid"], 400))
        remarks[:40] = [f"write to person{number}@example.org" for number in range(40)]
        assert "e-mail addresses" in examine(remarks).reasons[0]

    def test_a_constant_beside_identifying_texts_hides_nothing(self):
        names = planted("first and last name", 400)
        names[100:] = "unknown"
        assert examine(names).finding == "identifying"


class TestOrdinaryColumns:
    @pytest.mark.parametrize("n_records", [30, 100, 300, 2_000])
    def test_none_looks_identifying(self, n_records):
        for seed in range(5):
            assert identifying(ordinary(n_records, seed)) == set()

    def test_none_looks_identifying_as_a_category(self):
        table = ordinary(300)
        assert identifying(table.astype(dict.fromkeys(table.columns, "category"))) == set()

    def test_measures_that_are_nearly_unique_are_warned_of(self):
        found = findings(ordinary(2_000))
        assert {found[name] for name in ("cost", "score", "price", "price as text", "weight")} == {"nearly_unique"}
        assert {found[name] for name in ("visits", "occupation", "answer", "income band")} == {"ordinary"}

    @pytest.mark.parametrize("n_records", [300, 32_561])
    def test_adult_raises_no_alarm_and_warns_of_its_weights(self, n_records):
        adult = pd.read_csv(shared_file("data/adult.csv")).head(n_records)
        found = findings(adult)
        assert "identifying" not in found.values()
        assert found["fnlwgt"] == "nearly_unique"

    def test_rand_raises_no_alarm_and_warns_of_its_expenditures(self):
        pytest.importorskip("statsmodels", reason="needs the extra `examples`")
        from privacy_assets.examples.rand_hie import load_rand_hie

        rand = load_rand_hie().drop(columns="person_id")
        assert {name for name, finding in findings(rand).items() if finding != "ordinary"} == {"medical_expenditure"}
        assert identifying(rand.sample(30, random_state=1)) == identifying(rand.sample(300, random_state=2)) == set()

    def test_the_number_of_people_of_rand_is_found(self):
        pytest.importorskip("statsmodels", reason="needs the extra `examples`")
        from privacy_assets.examples.rand_hie import load_rand_hie

        assert identifying(load_rand_hie()) == {"person_id"}

    def test_fair_raises_no_alarm(self):
        datasets = pytest.importorskip("statsmodels.datasets", reason="needs the extra `examples`")
        fair = datasets.fair.load_pandas().data
        assert set(findings(fair).values()) == {"ordinary"}
        assert identifying(fair.sample(40, random_state=1)) == set()

    @pytest.mark.parametrize("n_records", [30, 344])
    def test_penguins_raise_no_alarm(self, n_records):
        random = np.random.default_rng(n_records)
        table = pd.DataFrame(
            {
                "species": random.choice(["Adelie", "Chinstrap", "Gentoo"], n_records),
                "island": random.choice(["Biscoe", "Dream", "Torgersen"], n_records),
                "bill_length_mm": random.normal(43.9, 5.5, n_records).round(1),
                "bill_depth_mm": random.normal(17.2, 2.0, n_records).round(1),
                "flipper_length_mm": random.normal(201, 14, n_records).round(),
                "body_mass_g": (random.normal(4200, 800, n_records) / 25).round() * 25,
                "sex": random.choice(["female", "male", None], n_records),
                "year": random.choice([2007, 2008, 2009], n_records),
            }
        )
        assert identifying(table) == set()
        assert identifying(table.astype({"species": "category", "year": "category"})) == set()


class TestCounts:
    @staticmethod
    def reference(values, people):
        """Count in plain Python, person by person."""
        held, kept = {}, []
        for value, owner in zip(values, people, strict=True):
            if value is not None:
                kept.append(value)
                held.setdefault(owner, []).append(value)
        alone = 0
        for owner, own in held.items():
            others = [value for other, theirs in held.items() if other != owner for value in theirs]
            alone += any(value not in others for value in own)
        different = []
        for value in kept:
            if value not in different:
                different.append(value)
        return len(kept), len(different), alone / len(held) if held else 0.0

    @settings(max_examples=examples(150), deadline=None)
    @given(
        st.lists(st.tuples(st.sampled_from([None, *"abcdefgh"]), st.integers(0, 6)), min_size=1, max_size=25),
        st.sampled_from(["str", "category", "object", "number", "datetime"]),
        st.booleans(),
    )
    def test_shares_are_those_of_a_plain_count(self, rows, kind, by_person):
        values, people = [value for value, _ in rows], [owner for _, owner in rows]
        numbers = [None if value is None else float(ord(value)) for value in values]
        column = {
            "number": lambda: pd.Series(numbers, dtype="float64"),
            "datetime": lambda: pd.to_datetime(pd.Series(numbers, dtype="float64"), unit="D"),
        }.get(kind, lambda: pd.Series(values, dtype=object).astype(kind))()
        found = examine(column, people if by_person else None)
        n_values, n_distinct, alone = self.reference(values, people if by_person else range(len(values)))
        assert (found.n_values, found.n_distinct) == (n_values, n_distinct)
        assert found.share_distinct == (n_distinct / n_values if n_values else 0.0)
        assert found.share_alone == alone

    @settings(max_examples=examples(60), deadline=None)
    @given(st.lists(st.one_of(st.none(), st.text(max_size=12)), min_size=1, max_size=30))
    def test_lengths_are_those_of_the_texts_and_any_text_can_be_looked_at(self, texts):
        found = examine(pd.Series(texts, dtype=object).astype("str"))
        lengths = sorted(len(text) for text in texts if text is not None)
        assert found.longest_text == (lengths[-1] if lengths else None)
        assert found.median_text == (np.median(lengths) if lengths else None)

    @settings(max_examples=examples(300), deadline=None)
    @given(st.one_of(st.text(max_size=60), st.text("0123456789 .,-/()+:'@ABab", max_size=24)))
    def test_every_text_has_one_shape(self, text):
        assert shape_of(text) in {*SHAPES, "words"}
        assert isinstance(is_name(text), bool)

    def test_records_of_one_person_count_once(self):
        names = planted("medical record number", 60)
        repeated, people = names.repeat(20).reset_index(drop=True), np.arange(60).repeat(20)
        assert examine(repeated, people).share_alone == 1.0
        assert examine(repeated, people).finding == "identifying"
        assert examine(repeated).share_alone == 0.0

    def test_values_of_many_records_lead_to_nobody_because_a_person_has_one_of_them_alone(self):
        random = np.random.default_rng(0)
        codes = random.zipf(1.3, 20_000) % 2_000
        table = pd.Series([f"{'EIJM'[code % 4]}{code % 90 + 10}.{code % 7}" for code in codes])
        assert examine(table, np.arange(400).repeat(50)).finding != "identifying"

    def test_whole_numbers_are_read_in_groups(self):
        assert [whole_number_of(text) for text in ("1 234 567", "-12", "0042", "1.234", "12,5", "a", "1 23")] == [
            1_234_567, -12, 42, 1_234, None, None, None,
        ]  # fmt: skip


class TestBadInput:
    @pytest.mark.parametrize("dtype", ["str", "object", "category", "float64", "Int64", "datetime64[us]", "boolean"])
    def test_a_column_without_values_is_ordinary(self, dtype):
        found = examine(pd.Series([None] * 5, dtype=dtype))
        assert (found.n_values, found.n_distinct, found.share_distinct, found.share_alone) == (0, 0, 0.0, 0.0)
        assert found.finding == "ordinary"

    @pytest.mark.parametrize("value", ["ann@example.org", 7, 2.5, True, pd.Timestamp("2020-01-01 10:11")])
    def test_a_column_of_one_value_is_ordinary(self, value):
        assert examine(pd.Series([value] * 50)).finding == "ordinary"

    def test_a_single_record_is_ordinary(self):
        assert examine(pd.Series(["Ann Example"])).finding == "ordinary"

    def test_mixed_objects_are_looked_at_as_they_are_written(self):
        mixed = pd.Series([decimal.Decimal("1.5"), [1], {"a": 1}, "x", None, 3, pd.Timestamp("2020-01-01")] * 5)
        assert examine(mixed).n_values == 30
        people = planted("first and last name", 60).astype(object)
        people[::10] = [[number] for number in range(6)]
        assert examine(people).finding == "identifying"

    def test_categories_that_are_numbers_or_times_are_judged_as_such(self):
        table = planted_numbers(100)[["running", "account", "moment"]]
        assert identifying(table.astype("category")) == {"running", "account", "moment"}
        assert examine(pd.Series(range(100), dtype="category")).kind == "number"

    def test_numbers_beyond_64_bits_infinity_and_the_smallest_integer_are_looked_at(self):
        assert examine(pd.Series([str(10**30 + number * 10**9) for number in range(40)])).finding == "identifying"
        assert examine(pd.Series([np.inf, -np.inf, np.nan, 1.5] * 10)).finding == "ordinary"
        assert examine(pd.Series([-(2**63), 2**63 - 1, 0])).finding == "ordinary"
        assert examine(pd.Series([2**63 + number for number in range(30)], dtype="uint64")).n_distinct == 30

    def test_columns_named_like_a_directory_or_a_pattern_are_columns(self):
        for name in ("../../releases", "/etc/passwd", "a|b(", "latest", "", "名前", "MRN", "$&"):
            assert examine(pd.Series(["a", "b"] * 20), name=name).column == name

    def test_cells_of_a_megabyte_are_looked_at_in_time(self):
        cells = [f"{number} reports " + "pain " * 200_000 for number in range(60)]
        started = time.monotonic()
        found = examine(pd.Series(cells))
        assert time.monotonic() - started < 10
        assert found.finding == "identifying"
        assert found.longest_text > 1_000_000

    @pytest.mark.parametrize(
        "text", ["a-" * 400, "1" * 5_000, "1 " * 3_000, "A." * 500, "/" * 4_000, "x@" * 999, "12:" * 300]
    )
    def test_no_text_keeps_a_pattern_busy(self, text):
        started = time.monotonic()
        for end in ("", "!", " z", "@"):
            shape_of(text + end)
            shape_of((text + end)[:200])
        assert time.monotonic() - started < 0.5

    def test_ten_thousand_columns_are_looked_at_in_time(self):
        random = np.random.default_rng(0)
        wide = pd.DataFrame(random.integers(0, 40, (60, 10_000))).add_prefix("c")
        wide["c7"] = planted("email", 60)
        started = time.monotonic()
        assert identifying(wide) == {"c7"}
        assert time.monotonic() - started < 30

    def test_the_order_of_the_records_does_not_matter_where_all_values_are_looked_at(self):
        table = ordinary(300).join(planted_numbers(300))
        table["name"] = planted("first and last name", 300)
        roles = dict.fromkeys(table.columns, "other")
        shuffled = table.sample(frac=1, random_state=5).reset_index(drop=True)
        assert examine_columns(table, roles) == examine_columns(shuffled, roles)


class TestWhichColumnsLeave:
    DESCRIBED = (
        {"column": "age", "type": "int64", "role": "quasi_identifier"},
        {"column": "town", "type": "str", "role": "quasi_identifier"},
        {"column": "sex", "type": "category", "role": "quasi_identifier"},
        {"column": "zip", "type": "str", "role": "quasi_identifier", "generalizes": "zip"},
        {"column": "illness", "type": "str", "role": "sensitive"},
        {"column": "number", "type": "int64", "role": "other"},
    )

    def test_anonymized_records_keep_all_but_their_quasi_identifiers(self):
        assert columns_that_leave(self.DESCRIBED, "anonymized") == {"illness": "sensitive", "number": "other"}

    def test_synthetic_records_repeat_texts_and_categories_besides(self):
        leaving = columns_that_leave(self.DESCRIBED, "synthetic")
        assert list(leaving) == ["town", "sex", "illness", "number"]

    def test_columns_that_the_table_lacks_are_left_out(self):
        assert examine_columns(pd.DataFrame({"a": [1]}), {"a": "other", "gone": "other"}) == (
            ColumnExamination("a", "other", "number", 1, 1, 1.0, 1.0),
        )


@pytest.mark.parametrize("n_records_each", [10, 60])
@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ([f"person{number}@example.org" for number in range(15)], "e-mail addresses"),
        ([f"person{number}@example.org" for number in range(100)], "e-mail addresses"),
        ([f"+49 30 90{number:05d}" for number in range(15)], "phone numbers"),
        ([f"123-45-{number:04d}" for number in range(1000, 1100)], "social security numbers"),
    ],
)
def test_what_reaches_a_person_does_so_however_often_it_stands_there(values, shape, n_records_each):
    table = pd.DataFrame({"contact": values * n_records_each})
    (found,) = examine_columns(table, {"contact": "other"})
    assert found.finding == "identifying"
    assert shape in found.reasons[0]


def assigned(n_people, seed):
    """Numbers, days and texts that each person has alone, because they were assigned or are many."""
    random = np.random.default_rng(seed)
    numbers = random.choice(10**6, n_people, replace=False)
    gaps = np.cumsum(random.integers(1, 9, n_people)) + 5000
    born = pd.Timestamp("1940-01-01") + pd.to_timedelta(random.choice(25_000, n_people, replace=False), unit="D")
    return {
        "without a pattern": numbers,
        "with gaps": random.permutation(gaps),
        "by branch": random.integers(1, 9, n_people) * 100_000 + random.choice(50_000, n_people, replace=False),
        "in two blocks": random.permutation(np.r_[: n_people // 2, 700_000 : 700_000 + n_people - n_people // 2]),
        "few possible ones": random.choice(max(3 * n_people, 1000), n_people, replace=False),
        "times ten": numbers * 10,
        "times fifty": numbers * 50,
        "times a thousand and seven": numbers * 1000 + 7,
        "times a hundred but one": np.r_[numbers[1:] * 100, 7],
        "with a half": numbers + 0.5,
        "three letters": [f"CUS{number}" for number in numbers],
        "three letters and a blank": [f"INV {number}" for number in numbers],
        "a letter behind": [f"{number}a" for number in numbers],
        "a year before": [f"2024-{number}" for number in numbers],
        "a branch before": [f"{place % 20 + 10}-{number}" for place, number in enumerate(numbers)],
        "EAN": random.integers(4 * 10**12, 5 * 10**12, n_people),
        "negative": -numbers,
        "floats": numbers.astype(float),
        "missing ones": pd.Series(numbers, dtype="Int64").mask(random.random(n_people) < 0.1),
        "Decimal": pd.Series([decimal.Decimal(int(number)) for number in numbers], dtype=object),
        "texts": numbers.astype(str),
        "texts of floats": [f"{number}.0" for number in numbers],
        "padded": [f"{number:08d}" for number in numbers],
        "prefixed": [f"AB-{number}" for number in numbers],
        "a category": pd.Series(numbers.astype(str), dtype="category"),
        "hashes": random.integers(0, 2**60, n_people),
        "birth": born,
        "birth as text": born.strftime("%d.%m.%Y"),
        "moments": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 10**8, n_people), unit="s"),
        "durations": pd.to_timedelta(random.choice(10**7, n_people, replace=False), unit="s"),
    }


def measured(n_people, seed):
    """Whole and other numbers that are measures although hardly anybody shares them."""
    random = np.random.default_rng(seed)
    return {
        "salary": np.exp(random.normal(10.5, 0.4, n_people)).round(-2).astype(int),
        "salary to the unit": np.exp(random.normal(10.5, 0.4, n_people)).astype(int),
        "cost": np.exp(random.normal(7, 1, n_people)).astype(int),
        "steps": random.gamma(4, 2000, n_people).astype(int),
        "weight in grams": random.normal(75_000, 12_000, n_people).astype(int),
        "platelets": random.normal(250_000, 60_000, n_people).astype(int),
        "inhabitants": np.exp(random.normal(9, 1.5, n_people)).astype(int),
        "seconds": random.exponential(9000, n_people).astype(int),
        "euros": [f"{cost:,} €" for cost in np.exp(random.normal(8, 1, n_people)).astype(int)],
        "kilograms": [f"{weight:.1f} kg" for weight in random.normal(75, 12, n_people)],
        "multiples of fifty": (np.exp(random.normal(9, 1, n_people)) / 50).round().astype(int) * 50,
        "expenditure": np.exp(random.normal(6, 1.2, n_people)).round(2),
        "any fraction": random.random(n_people),
        "score": random.normal(100, 15, n_people).round().astype(int),
        "age": random.integers(18, 90, n_people),
    }


@pytest.mark.parametrize("n_people", [100, 300, 2_000])
@pytest.mark.parametrize("kind", assigned(10, 0))
def test_what_nearly_everybody_has_alone_looks_identifying(kind, n_people):
    for seed in (1, 2):
        assert examine(pd.Series(assigned(n_people, seed)[kind])).finding == "identifying"


@pytest.mark.parametrize("n_people", [100, 300, 2_000])
@pytest.mark.parametrize("kind", measured(10, 0))
def test_what_is_a_measure_by_its_digits_or_distribution_does_not(kind, n_people):
    for seed in (1, 2):
        assert examine(pd.Series(measured(n_people, seed)[kind])).finding != "identifying"


@pytest.mark.parametrize("kind", ["expenditure", "any fraction", "steps"])
def test_no_column_is_called_harmless_beside_one_that_is_unique_for_everybody(kind):
    column = pd.Series(measured(300, 1)[kind]).drop_duplicates()
    examined = examine_columns(pd.DataFrame({"x": column, "y": "a"}), {"x": "other", "y": "other"})
    said = say_what_is_decided(examined, {}, "identifying")
    assert "looks identifying" not in said
    assert said == "2 columns are released unchanged; nearly everybody has a unique value in 'x' (100.0%)"


@pytest.mark.parametrize(("n_distinct", "is_assigned"), [(1_000, True), (950, True), (949, False), (900, False)])
def test_consecutive_numbers_of_which_one_in_twenty_is_shared_are_still_assigned(n_distinct, is_assigned):
    numbers = np.concatenate([np.arange(n_distinct), np.arange(1_000 - n_distinct)])
    found = examine(numbers)
    assert ("has consecutive numbers" in found.reasons) == is_assigned
    assert found.finding == ("identifying" if is_assigned else "nearly_unique")


@pytest.mark.parametrize(
    ("n_people", "n_shared", "is_identifying"),
    [(99, 0, False), (100, 0, True), (200, 10, True), (200, 12, False)],
)
def test_dates_as_texts_identify_where_nearly_everybody_of_many_has_their_own(n_people, n_shared, is_identifying):
    days = pd.date_range("1950-01-01", periods=n_people - n_shared // 2, freq="37D")
    dates = [*days, *days[: n_shared // 2]]
    found = examine([f"{day:%Y-%m-%d}" for day in dates])
    assert found.finding == ("identifying" if is_identifying else "nearly_unique")


@pytest.mark.parametrize("n_rows", [0, 1, 7, 200])
def test_a_stored_table_is_examined_like_its_frame(tmp_path, monkeypatch, n_rows):
    monkeypatch.setattr(coded_columns, "FEWEST_REPEATED", 0)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "text": pd.Series(rng.choice(["one", "two", "", None], n_rows), dtype="str"),
            "kind": pd.Series(rng.choice(["b", "a"], n_rows), dtype="str").astype("category"),
            "whole": rng.integers(0, 5, n_rows),
            "number": rng.normal(size=n_rows),
            "nothing": pd.Series([None] * n_rows, dtype="str"),
            "person": rng.integers(0, 50, n_rows),
        }
    )
    frame.to_parquet(tmp_path / "table.parquet", index=False, row_group_size=max(n_rows // 2, 1))
    stored = StoredTable([(tmp_path / "table.parquet").open("rb")])
    roles = dict.fromkeys(frame.columns, "other")
    assert examine_columns(stored, roles, "person") == examine_columns(stored.frame(), roles, "person")
    assert examine_columns(stored, roles) == examine_columns(stored.frame(), roles)
