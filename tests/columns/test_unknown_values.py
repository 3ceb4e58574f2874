"""A column in which copies cannot be seen is blind, and honest synthetic values never make one blind."""

import datetime as dt
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from privacy_assets import assess_disclosure, assess_mpuccs, synthesize
from privacy_assets.columns.unknown_values import blind_columns, frame_of, probability_of_unknown, said_of_blind
from privacy_assets.disclosure.rare_values import count_rare_values
from privacy_assets.mpucc.preprocess import preprocess
from tests.examples import examples
from tests.extras import CART
from tests.reference import unknown_values as reference

TEXTS = st.lists(st.sampled_from(["a", "A ", "b", "c", "7", "07", None, "nan"]), min_size=1, max_size=16)
NUMBERS = st.lists(st.sampled_from([0, 1, 2, 3, 400, -1, None]), min_size=1, max_size=12)


def shares_of(original, synthetic, control, people=None):
    frames = [pd.DataFrame({"x": pd.Series(each, dtype=object)}) for each in (original, synthetic, control)]
    person = None
    if people is not None:
        person, begin = "who", len(original)
        frames[0], frames[2] = frames[0].assign(who=people[:begin]), frames[2].assign(who=people[begin:])
    return preprocess(*frames, person=person).unknown_values.get("x")


@settings(max_examples=examples(300), deadline=None)
@given(TEXTS, TEXTS, TEXTS, st.data())
def test_texts_that_nobody_has_are_counted_as_defined(original, synthetic, control, data):
    people = None
    if data.draw(st.booleans()):
        # Nobody is on both sides.
        sides = [
            data.draw(st.lists(st.integers(0, 3), min_size=len(each), max_size=len(each)))
            for each in (original, control)
        ]
        people = sides[0] + [person + 10 for person in sides[1]]
    expected = reference.of_texts([*original, *control], synthetic, people)
    found = shares_of(original, synthetic, control, people)
    if expected is None:
        assert found is None
    elif expected != "left out":
        assert (found["unknown"], found["expected"]) == pytest.approx(expected)
        assert found["blind"] == reference.is_blind([*original, *control], synthetic, *expected)


@settings(max_examples=examples(200), deadline=None)
@given(NUMBERS, NUMBERS, NUMBERS)
def test_numbers_outside_the_range_are_counted_as_defined(original, synthetic, control):
    expected = reference.of_numbers([*original, *control], synthetic)
    found = shares_of(original, synthetic, control)
    assert (found and (found["unknown"], found["expected"])) == (expected and pytest.approx(expected))


def people(n, seed):
    random = np.random.default_rng(seed)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, n), unit="D")
    return pd.DataFrame(
        {
            "zip": [f"0{value}" for value in random.integers(1000, 1060, n)],
            "town": random.choice([f"Zürich {i}" for i in range(12)], n),
            "visit": day.strftime("%Y-%m-%d"),
            "age": random.integers(18, 90, n),
            "income": random.exponential(30_000, n).round(2),
            "seen": day,
            "stay": pd.to_timedelta(random.integers(1, 40, n), unit="D"),
            "smokes": random.random(n) < 0.3,
            "sex": random.choice(["f", "m"], n),
        }
    )


def changed(*columns, by):
    return lambda table: table.assign(**{name: by(table[name]) for name in columns})


OTHER = {
    "a prefix": (["zip"], changed("zip", by=lambda column: "CH-" + column)),
    "days first": (["visit"], changed("visit", by=lambda days: days.map(lambda day: ".".join(day.split("-")[::-1])))),
    "no umlauts": (["town"], changed("town", by=lambda column: column.str.replace("ü", "ue"))),
    "turned round": (["town"], changed("town", by=lambda column: column.str[::-1])),
    "hashed": (["zip", "sex"], changed("zip", "sex", by=lambda texts: texts.map(lambda text: f"#{hash(text)}"))),
    "words for codes": (["sex"], changed("sex", by=lambda column: column.map({"f": "woman", "m": "man"}))),
    "half of the records": (["zip"], changed("zip", by=lambda texts: texts.where(texts.index % 2 == 0, "x" + texts))),
    "one in 20 records": (["zip"], changed("zip", by=lambda texts: texts.where(texts.index % 20 > 0, "x" + texts))),
    "points for thousands": (["zip"], changed("zip", by=lambda column: column.str[1:2] + "." + column.str[2:])),
    "another unit": (["age"], changed("age", by=lambda column: column * 12)),
    "reflected at 0": (["income"], changed("income", by=lambda column: -column)),
    "logarithms": (["age"], changed("age", by=lambda column: np.log(column))),
    "years later": (["seen"], changed("seen", by=lambda column: column + pd.Timedelta("3650D"))),
    "hours for days": (["stay"], changed("stay", by=lambda column: column / 24)),
    "standardized": (["age"], changed("age", by=lambda column: (column - column.mean()) / column.std())),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER)
def test_copies_in_another_notation_leave_no_figure_and_are_named(name):
    columns, change = OTHER[name]
    original, control = people(300, 0), people(150, 1)
    synthetic = change(original)
    risk, leak = (
        assess_mpuccs(original, synthetic, control, max_baseline_cols=2),
        assess_disclosure(original, synthetic, control),
    )
    assert blind_columns(risk.settings["unknown_values"]) == columns
    assert leak.settings["unknown_values"] == risk.settings["unknown_values"]
    unknown = (
        "privacy_risk_score",
        "overall_protection",
        "main_protection",
        "identification_rate",
        "originals_singled_out",
    )
    assert [risk.scores[figure] for figure in unknown] == [None] * 5
    # A found leak stays found.
    assert leak.scores["leakage_detected"] in (None, True)
    said = said_of_blind(risk.settings["unknown_values"])
    assert said.startswith(f"Column {columns[0]!r}: ")
    assert said.endswith("Write the values as the source does, or leave the column out.")
    assert f"Column {columns[0]!r}" in leak.summary() or leak.scores["leakage_detected"]
    assert leak.columns[leak.columns["blind"]]["column"].tolist() == columns
    rare = count_rare_values(synthetic, [original, control], people_per_value=2)
    if original[columns[0]].dtype.kind not in "ifmM":
        assert rare.metrics == {"rare_values_released": None}
        assert columns[0] in rare.remark


WRITTEN_OTHERWISE = {
    "no blanks": changed("town", by=lambda column: column.str.replace(" ", "")),
    "a final dot": changed("town", "zip", "sex", by=lambda column: column + "."),
    "parentheses": changed("town", "zip", "sex", by=lambda column: "(" + column + ")"),
    "HTML": changed("town", by=lambda column: column.str.replace("ü", "&uuml;")),
    "an address": changed("town", by=lambda column: column.map(quote)),
    "UTF-8 read as Latin-1": changed("town", by=lambda column: column.str.encode("utf-8").str.decode("latin-1")),
    "no accents": changed("town", by=lambda column: column.str.replace("ü", "u")),
    "slashes": changed("visit", by=lambda column: column.str.replace("-", "/")),
    "apostrophes for thousands": changed("zip", by=lambda column: column.str[1:2] + "'" + column.str[2:]),
    "commas for thousands": changed("zip", by=lambda column: column.str[1:2] + "," + column.str[2:]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN_OTHERWISE)
def test_texts_with_the_letters_and_digits_of_a_real_one_are_it(name):
    original, control = people(300, 0), people(150, 1)
    synthetic = WRITTEN_OTHERWISE[name](original)
    expected, found = (assess_mpuccs(original, each, control, max_baseline_cols=2) for each in (original, synthetic))
    assert found.scores == expected.scores
    rare = [count_rare_values(each, [original, control], people_per_value=12) for each in (original, synthetic)]
    assert rare[0].by_column == rare[1].by_column
    assert rare[0].total > 0


def test_a_leak_that_is_found_in_other_columns_stays_found_and_one_that_is_not_is_unknown():
    original, control, others = people(300, 0), people(150, 1), people(300, 2)
    blind = changed("town", by=lambda column: "x" + column)
    assert assess_disclosure(original, blind(original), control).scores["leakage_detected"] is True
    assert assess_disclosure(original, blind(others), control).scores["leakage_detected"] is None
    assert assess_disclosure(original, others, control).scores["leakage_detected"] is False


def test_the_sentence_names_the_column_with_both_shares():
    shares = {"unknown": 1.0, "expected": 0.02, "blind": True, "invented": False, "by_range": False}
    assert said_of_blind({"zip": shares}) == (
        "Column 'zip': 100.0% of the synthetic values are values that nobody has (2.00% of real people's). Copies in "
        "another notation cannot be seen there. Write the values as the source does, or leave the column out."
    )
    assert "are outside the range of real people's (2.00% of real people's)." in said_of_blind(
        {"age": shares | {"by_range": True}}
    )
    assert said_of_blind({"zip": shares | {"blind": False}}) == said_of_blind({}) == ""
    assert "The same holds for 3 more columns." in said_of_blind({f"c{i}": shares for i in range(13)})
    assert frame_of({"zip": shares}).to_dict("records") == [{"column": "zip", **shares}]


@pytest.mark.parametrize("counts", [(5, 5, 0, 9), (0, 7, 0, 5), (3, 10, 4, 12), (40, 900, 9, 800), (6, 6, 6, 6)])
def test_chance_is_that_of_the_exact_test(counts):
    n_unknown, n, n_alone, n_real = counts
    table = [[n_unknown, n - n_unknown], [n_alone, n_real - n_alone]]
    assert probability_of_unknown(*counts) == pytest.approx(fisher_exact(table, alternative="greater").pvalue)


METHODS = ["others", "independent", "bootstrap with noise", "gaussian_copula", CART, "smooth_cart"]


def honest(method, original, others):
    random = np.random.default_rng(0)
    if method == "others":
        return others
    if method == "independent":
        return pd.DataFrame(
            {name: column.sample(frac=1, random_state=random).to_numpy() for name, column in original.items()}
        )
    if method == "bootstrap with noise":
        made = original.sample(len(original), replace=True, random_state=0, ignore_index=True)
        noisy = (made["income"] + random.normal(0, 3000, len(made))).clip(
            original["income"].min(), original["income"].max()
        )
        ages = (made["age"] + random.integers(-2, 3, len(made))).clip(18, 90)
        return made.assign(income=noisy.round(1), age=ages)
    return synthesize(original.drop(columns="stay"), method=method, seed=0)


@pytest.mark.parametrize("method", METHODS)
def test_no_honest_table_is_blind(method):
    original, control, others = people(400, 0), people(200, 1), people(400, 2)
    synthetic = honest(method, original, others)
    tables = [table[list(synthetic)] for table in (original, synthetic, control)]
    found = preprocess(*tables).unknown_values
    assert set(found) == set(synthetic) - {"smokes"}
    assert max(own["unknown"] - own["expected"] for own in found.values()) < 0.05


def test_where_nearly_every_text_is_unique_unknown_ones_are_expected():
    notes = [pd.DataFrame({"note": [f"note {seed} {i}" for i in range(100)], "age": range(100)}) for seed in range(3)]
    found = preprocess(*notes).unknown_values["note"]
    assert (found["unknown"], found["expected"], found["blind"]) == (1.0, 1.0, False)


@pytest.mark.parametrize("dates", [True, False])
def test_columns_without_values_or_with_one_value_are_compared_where_they_can_be(dates):
    one = [dt.date(2020, 1, 1) if dates else "a"] * 9
    assert shares_of(one, [None] * 9, one) is None
    assert shares_of([None] * 9, one, [None] * 9) is None
    assert shares_of(one, one, one)["unknown"] == 0.0
    assert shares_of(one, [dt.date(2021, 1, 1) if dates else "b"] * 9, one)["blind"]


def test_invented_values_are_known_to_nobody_and_nobody_has_to_have_them():
    original, control = people(300, 0), people(150, 1)
    synthetic = original.assign(town=[f"Atlantis {i % 7}" for i in range(300)])
    without = [table.drop(columns="town") for table in (original, synthetic, control)]
    expected = assess_mpuccs(*without, max_baseline_cols=2).scores
    found = assess_mpuccs(original, synthetic, control, max_baseline_cols=2, invented=["town"])
    assert found.scores["privacy_risk_score"] == pytest.approx(expected["privacy_risk_score"])
    assert found.settings["unknown_values"]["town"] == {
        "unknown": 1.0,
        "expected": 0.0,
        "blind": False,
        "invented": True,
        "by_range": False,
    }
    leak = assess_disclosure(original, synthetic, control, invented=["town"], known=["town", "zip", "visit", "age"])
    assert leak.scores["leakage_detected"] is True
    rare = count_rare_values(synthetic, [original], people_per_value=3, columns=["town"], invented=["town"])
    assert rare.metrics == {"rare_values_released": 0.0}


def test_a_column_that_is_called_invented_is_compared_if_real_values_recur():
    original, control = people(300, 0), people(150, 1)
    found = assess_mpuccs(original, original, control, max_baseline_cols=2, invented=["town", "zip"])
    assert found.scores == assess_mpuccs(original, original, control, max_baseline_cols=2).scores
    assert not any(own["invented"] for own in found.settings["unknown_values"].values())
    some = original.assign(town=original["town"].where(original.index % 5 > 0, "Atlantis"))
    assert blind_columns(preprocess(original, some, control).unknown_values) == ["town"]
    prepared = preprocess(original, some, control, invented=["town"])
    assert blind_columns(prepared.unknown_values) == []
    assert prepared.kinds[1] == "text"
