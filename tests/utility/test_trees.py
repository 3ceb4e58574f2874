"""Trees distinguish a release from the control, and predict a column, as a second opinion."""

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import InvalidSettingError, InvalidTableError, assess_with_trees
from privacy_assets.utility.trees import area_under_curve
from tests.examples import examples
from tests.extras import NEEDS_TREES

pytestmark = NEEDS_TREES


def people(n, seed=0):
    random = np.random.default_rng(seed)
    age = random.integers(18, 90, n)
    town = np.where(random.random(n) < 0.7, np.where(age > 50, "old", "new"), random.choice(["a", "b", "c"], n))
    return pd.DataFrame(
        {
            "age": age,
            "town": pd.Series(town, dtype=object).where(random.random(n) < 0.9, None),
            "retired": age > 64,
            "born": pd.Timestamp("2024-01-01") - pd.to_timedelta(age * 365, unit="D"),
            "income": np.round(np.where(random.random(n) < 0.1, np.nan, 50 * age + random.normal(0, 300, n)), 1),
            "size": pd.Categorical(np.array(["s", "m", "l"])[age // 31], ["s", "m", "l"], ordered=True),
        }
    )


def shuffled(table):
    random = np.random.default_rng(9)
    return pd.DataFrame({name: table[name].sample(frac=1, random_state=random).array for name in table})


def test_other_people_cannot_be_distinguished_and_shuffled_columns_can():
    original, control = people(900, 1), people(900, 2)
    same = assess_with_trees(original, people(900, 3), control, target="income")
    assert abs(same.discriminator_auc - 0.5) < 0.05
    assert abs(same.discriminator_auc_of_originals - 0.5) < 0.05
    assert same.explained == pytest.approx(same.explained_of_originals, abs=0.1)
    assert same.explained > 0.5
    useless = assess_with_trees(original, shuffled(original), control, target="income")
    assert useless.discriminator_auc > 0.9
    assert useless.explained < 0.05
    assert useless.explained_of_originals == same.explained_of_originals


def test_what_only_three_columns_together_show_is_seen():
    def odd(seed, is_related):
        random = np.random.default_rng(seed)
        table = pd.DataFrame(random.random((1500, 3)) < 0.5, columns=list("abc"))
        return table.assign(d=np.where(is_related, table["a"] ^ table["b"] ^ table["c"], random.random(1500) < 0.5))

    found = assess_with_trees(odd(0, True), odd(1, False), odd(2, True), target="d")
    assert found.discriminator_auc > 0.7
    assert found.explained < 0.1
    assert found.explained_of_originals > 0.9


@pytest.mark.parametrize("target", ["age", "town", "size"])
def test_every_kind_of_column_can_be_the_target(target):
    found = assess_with_trees(people(300, 1), people(300, 2), people(300, 3), target=target)
    assert found.target == target
    assert 0 < found.explained < 1


def test_the_seed_decides():
    tables = people(300, 1), people(300, 2), people(300, 3)
    assert assess_with_trees(*tables, seed=4) == assess_with_trees(*tables, seed=4)
    assert assess_with_trees(*tables, seed=4) != assess_with_trees(*tables, seed=5)


def test_a_constant_target_has_nothing_to_explain():
    tables = [people(300, seed).assign(same=1) for seed in range(3)]
    assert assess_with_trees(*tables, target="same").explained is None


@settings(max_examples=examples(60), deadline=None)
@given(scores=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_the_area_is_the_share_of_pairs_in_order(scores):
    good = [score for score, is_positive in scores if is_positive]
    bad = [score for score, is_positive in scores if not is_positive]
    if good and bad:
        expected = sum((a > b) + 0.5 * (a == b) for a in good for b in bad) / (len(good) * len(bad))
        own = np.array([score for score, _ in scores], float), np.array([flag for _, flag in scores])
        assert area_under_curve(*own) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"control": people(299)}, InvalidTableError, r"'control': 299"),
        ({"released": people(1)}, InvalidTableError, r"'released': 1"),
        ({"released": people(400).drop(columns="town")}, InvalidTableError, r"released table lacks .*'town'"),
        ({"released": people(400).assign(age="sentinel-99")}, InvalidTableError, "'age' has values of different kinds"),
        ({"original": people(400)[[]]}, InvalidTableError, "no columns"),
        ({"original": None}, InvalidTableError, "original table is a"),
        ({"target": "wage"}, InvalidSettingError, "'wage'"),
        ({"original": people(400)[["age"]], "target": "age"}, InvalidSettingError, "several columns"),
        ({"seed": -1}, InvalidSettingError, "seed"),
    ],
)
def test_bad_input_is_refused_without_a_cell(change, error, words):
    given_tables = {"original": people(400), "released": people(400, 1), "control": people(400, 2)} | change
    with pytest.raises(error, match=words) as raised:
        assess_with_trees(**given_tables)
    assert "sentinel" not in str(raised.value)


def test_an_absent_scikit_learn_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InvalidSettingError, match=r"privacy-assets\[trees\]"):
        assess_with_trees(people(300), people(300), people(300))
