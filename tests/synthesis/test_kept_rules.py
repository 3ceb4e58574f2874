"""Built-in synthesizers keep the rules of a contract: by joining, by computing, and by drawing again."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.contract.rule_expressions import Columns
from privacy_assets.contract.rules import read_rules, violations
from privacy_assets.errors import InvalidTableError
from privacy_assets.synthesis.kept_rules import MOST_ROUNDS, Plan, keep_rules, plan_joins
from privacy_assets.synthesis.synthesize import SYNTHESIZERS, make_synthetic_records, synthesize
from tests.reference.rules import fewest_to_remove

METHODS = list(SYNTHESIZERS)
RULES = {
    "order": "end >= begin",
    "implication": 'not (sex == "male" and born > 0)',
    "label": {"determines": ["code", "name"]},
    "of_label": {"determines": ["name", "group"]},
    "back": {"determines": ["name", "code"]},
    "band": {"determines": ["age", "band"]},
    "total": {"sum": ["one", "two"], "equals": "all"},
    "more": {"sum": ["all", "born"], "equals": "everything"},
}


def people(n=1_000, seed=0):
    random = np.random.default_rng(seed)
    sex = random.choice(["female", "male"], n)
    code, age = random.integers(0, 9, n), random.integers(20, 80, n)
    begin = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, n), "D")
    one, two = np.round(random.gamma(2, 20, n), 2), pd.Series(np.round(random.gamma(1, 5, n), 2))
    born = np.where(sex == "male", 0, random.poisson(1, n))
    table = pd.DataFrame(
        {
            "sex": pd.Categorical(sex),
            "born": born,
            "code": code + 100 * (code > 4),
            "name": [f"name {each}" for each in code],
            "group": pd.Categorical(np.array(["x", "y"])[code % 2]),
            "age": age,
            "band": np.array(["young", "old"])[(age > 50).astype(int)],
            "begin": begin,
            "end": begin + pd.to_timedelta(random.geometric(0.2, n), "D"),
            "one": one,
            "two": two.where(random.random(n) > 0.1),
        }
    )
    table["all"] = (table["one"] + table["two"]).round(2).fillna(1.0)
    table["everything"] = (table["all"] + table["born"]).round(2)
    table.loc[random.random(n) < 0.1, "group"] = None
    return table


def counts(table, rules=RULES):
    found = violations(read_rules(rules, table), Columns(table))
    return {name: int(own.sum()) for name, own in found.items() if own.any()}


@pytest.mark.parametrize("method", METHODS)
def test_records_keep_rules_of_every_kind(method):
    table = people()
    assert counts(table) == {}
    assert counts(synthesize(table, method=method, seed=1)) != {}
    made = make_synthetic_records(table, method, 700, 1, None, None, rules=read_rules(RULES, table))
    assert counts(made.table) == {}
    assert made.rules["left"] == 0
    assert list(made.table.columns) == list(table.columns)
    assert made.table.dtypes.equals(table.dtypes)
    pd.testing.assert_frame_equal(made.table, synthesize(table, method=method, n_records=700, seed=1, rules=RULES))


@pytest.mark.parametrize("method", METHODS)
def test_without_rules_on_its_columns_the_records_are_the_same(method):
    table = people()[["sex", "born", "age"]]
    rules = read_rules({"of_others": "end >= begin"}, people())
    made = make_synthetic_records(table, method, None, 3, None, None, rules=rules)
    assert made.rules is None
    pd.testing.assert_frame_equal(made.table, synthesize(table, method=method, seed=3))


@pytest.mark.parametrize("method", METHODS)
def test_only_pairs_that_enough_people_share_are_joined(method):
    table = people()
    rare = table.head(6).assign(code=[901, 902, 903, 904, 999, 999], name=[f"rare {i}" for i in "abcdee"])
    together = pd.concat([table, rare], ignore_index=True)
    rules = {"label": {"determines": ["code", "name"]}}
    made = synthesize(together, method=method, seed=2, n_records=3_000, settings={"min_atom": 5}, rules=rules)
    pairs = set(zip(made["code"], made["name"], strict=True))
    assert pairs <= set(zip(table["code"], table["name"], strict=True))
    assert len(pairs) == 9


def test_people_count_and_not_their_records():
    table = pd.DataFrame({"code": ["a"] * 9 + ["b"] * 9, "label": ["A"] * 9 + ["B"] * 9})
    rules = read_rules({"label": {"determines": ["code", "label"]}}, table)
    (join,) = plan_joins(rules, table, 5, [0] * 9 + list(range(1, 10)))
    assert set(join.donors["code"]) == {"b"}
    with pytest.raises(
        InvalidTableError, match=r"rule 'label' joins 'label' .* min_atom=5 people share, and there are"
    ):
        plan_joins(rules, table, 5, [0] * 18)


def max_known(own):
    return max((n for label, n in own.items() if label is not None), default=0)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([None, "a", "b", "c"]), st.sampled_from([None, "x", "y"])), min_size=1, max_size=30
    ),
    st.integers(1, 3),
    st.lists(st.sampled_from([None, "a", "b", "d"]), min_size=1, max_size=20),
)
def test_what_is_joined_is_an_observed_pair_of_the_most_frequent_label(pairs, min_atom, codes):
    table = pd.DataFrame(pairs, columns=["code", "label"], dtype=object)
    rules = read_rules({"rule": {"determines": ["code", "label"]}}, table)
    try:
        (join,) = plan_joins(rules, table, min_atom, None)
    except InvalidTableError:
        labels = {code: Counter(own for each, own in pairs if each == code) for code in "abc"}
        kept = [n for own in labels.values() for label, n in own.items() if label is None or n == max_known(own)]
        assert max(kept, default=0) < min_atom
        return
    donors = [tuple(None if pd.isna(cell) else cell for cell in row) for row in join.donors.to_numpy(object)]
    assert all(Counter(pairs)[pair] >= min_atom for pair in donors)
    assert fewest_to_remove(donors) == 0
    given_codes = pd.DataFrame({"code": pd.Series(codes, dtype=object)})
    made = join.into(given_codes, np.random.default_rng(0))
    for before, code, label in zip(codes, made["code"], made["label"], strict=True):
        code, label = (None if pd.isna(cell) else cell for cell in (code, label))
        known = {own for own, _ in donors}
        if before in known:
            assert code == before
            assert (code, label) in donors
        else:
            assert (code is None) == (before is None)
            assert label in {own for _, own in donors}


def test_numbers_between_observed_codes_become_the_nearest():
    table = pd.DataFrame({"code": [1, 1, 5, 5, 9, 9], "label": list("aabbcc")})
    (join,) = plan_joins(read_rules({"r": {"determines": ["code", "label"]}}, table), table, 2, None)
    made = join.into(pd.DataFrame({"code": [0, 2, 4, 6, 8, 20]}), np.random.default_rng(0))
    assert made["code"].tolist() == [1, 1, 5, 5, 9, 9]
    assert made["label"].tolist() == list("aabbcc")


def test_a_cycle_of_rules_is_joined_from_its_first_column():
    table = people()
    rules = {name: {"determines": pair} for name, pair in (("r", ["name", "code"]), ("s", ["code", "name"]))}
    assert [(each.code, each.label) for each in plan_joins(read_rules(rules, table), table, 5, None)] == [
        ("name", "code")
    ]
    chain = {"b": {"determines": ["name", "group"]}, "a": {"determines": ["code", "name"]}}
    joins = plan_joins(read_rules(chain, table), table, 5, None)
    assert [each.label for each in joins] == ["name", "group"]


def test_totals_have_the_decimals_and_the_range_of_those_drawn_before():
    table = people()
    made = synthesize(table, seed=1, rules=RULES, n_records=2_000)
    for name in ("all", "everything"):
        assert (made[name] == made[name].round(2)).all()
        assert table[name].min() <= made[name].min() <= made[name].max() <= table[name].max()
    assert made["two"].isna().mean() == pytest.approx(0.1, abs=0.05)


def test_what_violates_a_rule_after_all_rounds_is_counted_and_stays():
    seeds = []

    def draw(n_records, seed):
        seeds.append(seed)
        return pd.DataFrame({"a": np.arange(n_records) % 2})

    rules = read_rules({"never": "a < 0 or a == 1", "other": "a > 5 or a == 1"}, draw(2, 0))
    kept = keep_rules(draw, 9, 7, Plan.of(rules, draw(2, 0), 1, None))
    assert (kept.redrawn, kept.left) == (5, 0)
    assert kept.table["a"].tolist() == [1] * 9
    # Of 9 + 5 * 4 drawn, the first five that are right replace the wrong ones.
    assert kept.drawn.tolist() == [10, 1, 12, 3, 14, 5, 16, 7, 18]
    impossible = keep_rules(draw, 9, 7, Plan.of(read_rules({"never": "a < 0"}, draw(2, 0)), draw(2, 0), 1, None))
    assert (impossible.redrawn, impossible.left, len(impossible.table)) == (0, 9, 9)
    assert len(set(seeds[-MOST_ROUNDS:])) == MOST_ROUNDS


@pytest.mark.parametrize("method", ["cart", "smooth_cart"])
def test_trees_draw_the_last_column_again_so_that_the_others_stay(method):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"first": random.integers(0, 10, 4_000)})
    table["second"] = 9 - random.integers(0, 10 - table["first"])
    made = synthesize(table, method=method, seed=1, n_records=8_000, rules={"order": "second >= first"})
    shares = [own.value_counts(normalize=True).sort_index().to_numpy() for own in (table["first"], made["first"])]
    assert np.abs(shares[0] - shares[1]).max() < 0.03
    assert (made["second"] >= made["first"]).all()


def test_own_synthesizers_are_left_alone():
    class Constant:
        name, settings = "constant", {}

        def fit(self, table, *, seed):
            self.table = table
            return self

        def sample(self, n_records, *, seed):
            return pd.concat([self.table.head(1)] * n_records)

    table = people().assign(born=5, sex=pd.Categorical(["male"] * 1_000))
    made = make_synthetic_records(table, Constant(), 5, 0, None, None, rules=read_rules(RULES, table))
    assert made.rules is None
    assert counts(made.table, {"r": RULES["implication"]}) == {"r": 5}
