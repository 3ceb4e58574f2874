"""Trees on classes of people: nothing is learned from few, and structure that many share is kept."""

import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError
from privacy_assets.examples.rand_hie import load_rand_hie
from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.synthesis.smooth_cart import SmoothCart, even_places
from privacy_assets.synthesis.split import split_records
from privacy_assets.synthesis.synthesize import synthesize
from privacy_assets.utility.assess import assess_utility
from tests.examples import examples
from tests.extras import NEEDS_TREES
from tests.people import every_kind
from tests.synthesis.fidelity import marginals_and_pairs, verbatim_share

pytestmark = NEEDS_TREES


def fitted(table, person=None, **chosen):
    return SmoothCart(**chosen).fit(table, seed=0, person=person)


def people_by_class_and_leaf(table, person, synthesizer):
    """Count people by class of each column and by leaf of each tree, from the table alone."""
    whose = list(range(len(table))) if person is None else list(person)
    classes = np.zeros((len(table), table.shape[1]), dtype=int)
    counted = []
    for column in synthesizer._columns:
        upper = column.margin.upper[np.append(column.first_cells[1:], column.margin.n_cells) - 1]
        values = column.margin.observed
        cell_of = {_key(value): cell for cell, value in enumerate(values)}
        own = [cell_of[_key(value)] for value in table.iloc[:, column.place]]
        classes[:, column.place] = [sum(cell >= first for first in column.first_cells) - 1 for cell in own]
        assert len(upper) == len(column.first_cells)
    for column in synthesizer._columns:
        leaves = np.zeros(len(table), dtype=int)
        if column.step.tree is not None:
            leaves = column.step.tree.apply(classes[:, list(column.before)].astype(np.float32))
        for groups in (classes[:, column.place], leaves):
            people = Counter(group for group, _ in set(zip(groups.tolist(), whose, strict=True)))
            counted.append((column.place, people))
    return counted


def _key(value):
    return None if pd.isna(value) else value


@settings(max_examples=examples(25), deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(2, 300),
    n_people=st.integers(1, 200),
    min_people=st.integers(1, 40),
    smoothing=st.sampled_from([0.0, 1.0, 3.0]),
)
def test_no_class_and_no_leaf_has_fewer_people_than_were_asked_for(seed, n_rows, n_people, min_people, smoothing):
    table = every_kind(n_rows, seed)
    person = np.random.default_rng(seed).integers(0, n_people, n_rows)
    made = fitted(table, person, min_people=min_people, smoothing=smoothing, min_atom=1)
    n_present = len(set(person.tolist()))
    for place, people in people_by_class_and_leaf(table, person, made):
        assert len(people) == 1 or min(people.values()) >= min_people, table.columns[place]
    for column in made._columns:
        if column.step.tree is not None:
            leaves = people_by_class_and_leaf(table, person, made)
            assert min(min(people.values()) for people in dict(leaves[1::2]).values()) >= smoothing * n_present**0.5
            break


def test_people_count_once_in_a_leaf_however_many_records_they_have():
    flag = np.arange(400) < 200
    table = pd.DataFrame({"flag": flag, "code": np.where(flag, 1, 2)})
    kept = synthesize(table, method="smooth_cart", person=range(400))
    assert (kept["code"].eq(1) == kept["flag"]).all()
    few = np.where(flag, np.arange(400) % 5, np.arange(400))
    drawn = synthesize(table, method="smooth_cart", person=few)
    assert abs((drawn["code"].eq(1) == drawn["flag"]).mean() - 0.5) < 0.1


def test_noise_is_not_learned():
    noise = pd.DataFrame(np.random.default_rng(0).integers(0, 8, (3000, 4)), columns=list("abcd"))
    made = fitted(noise, smoothing=0)
    n_leaves = [1 if column.step.tree is None else column.step.tree.get_n_leaves() for column in made._columns]
    assert sum(n_leaves) <= 6


def test_numbers_of_few_people_are_drawn_from_intervals():
    original = pd.DataFrame({"income": np.arange(3000) * 7, "high": np.arange(3000) > 1500})
    synthetic = synthesize(original, method="smooth_cart", seed=2)
    assert synthetic["income"].between(0, 2999 * 7).all()
    assert synthetic["income"].nunique() > 1500
    assert (synthetic["high"] == (synthetic["income"] > 1500 * 7)).mean() > 0.97


def test_margins_are_kept_better_than_a_resample_keeps_them():
    original = every_kind(2000)[["adult", "adult_or_none", "town", "grade", "site_or_none"]]
    resample = original.sample(len(original), replace=True, random_state=1, ignore_index=True)
    synthetic = synthesize(original, method="smooth_cart", seed=1)
    assert marginals_and_pairs(original, synthetic)[0] > marginals_and_pairs(original, resample)[0]


@settings(max_examples=examples(50), deadline=None)
@given(groups=st.lists(st.integers(0, 4), min_size=1, max_size=60), seed=st.integers(0, 99))
def test_even_places_have_one_in_each_step_of_a_group(groups, seed):
    places = even_places(np.array(groups), 5, np.random.default_rng(seed))
    assert ((places >= 0) & (places < 1)).all()
    for group in set(groups):
        own = sorted(place for place, g in zip(places.tolist(), groups, strict=True) if g == group)
        assert [int(place * len(own) + 1e-9) for place in own] == list(range(len(own)))


def test_each_place_alone_is_uniform():
    random = np.random.default_rng(0)
    first = [even_places(np.zeros(3, int), 1, random)[0] for _ in range(3000)]
    assert abs(np.mean(first) - 0.5) < 0.02
    assert abs(np.var(first) - 1 / 12) < 0.005


def test_fewer_records_are_copied_than_by_cart():
    original = every_kind(1000)[["age", "height", "town", "grade", "day"]]
    copied = [verbatim_share(original, synthesize(original, method=method)) for method in ("cart", "smooth_cart")]
    assert copied[1] < copied[0] / 2


def test_it_cannot_sample_before_it_is_fitted():
    with pytest.raises(InvalidSettingError, match="before it is fitted"):
        SmoothCart().sample(3, seed=0)


def test_an_absent_scikit_learn_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InvalidSettingError, match=r"'smooth_cart' needs .*privacy-assets\[trees\]"):
        SmoothCart().fit(every_kind(5), seed=0)


def test_rand_is_worth_far_more_than_by_the_copula_and_meets_the_limits_of_internal_analytics():
    pytest.importorskip("statsmodels")
    table = load_rand_hie(banded=True).drop(columns="person_id")
    original, control = split_records(table, train_fraction=0.8, seed=0)
    synthetic = synthesize(original, method="smooth_cart", seed=0)
    assert assess_utility(original, synthetic, control).scores["utility"] > 0.9
    found = assess_mpuccs(original, synthetic, control, max_baseline_cols=3)
    assert found.scores["privacy_risk_score"] < 0.2
    assert found.control.leakage_detected is False
