"""CART keeps more than the copula and copies: both is held here."""

import sys

import numpy as np
import pandas as pd
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.synthesis.cart import Cart
from privacy_assets.synthesis.synthesize import synthesize
from tests.extras import NEEDS_TREES
from tests.people import every_kind
from tests.shared_data import shared_file
from tests.synthesis.fidelity import marginals_and_pairs, verbatim_share

pytestmark = NEEDS_TREES


def test_every_value_is_one_that_was_observed():
    original = every_kind(150)
    synthetic = synthesize(original, method="cart", n_records=400)
    for name in original:
        assert synthetic[name].dropna().isin(original[name].dropna()).all()


def test_text_with_thousands_of_values_is_learned_in_little_time_and_memory():
    random = np.random.default_rng(0)
    number = random.integers(0, 5000, 20_000)
    original = pd.DataFrame({"half": number < 2500, "name": pd.Series(number).astype(str), "n": number})
    synthetic = synthesize(original, method="cart", settings={"min_atom": 1})
    assert synthetic["name"].nunique() > 3000


def test_a_leaf_as_large_as_the_table_draws_columns_independently():
    ages = np.arange(400)
    original = pd.DataFrame({"a": ages, "b": ages})
    synthetic = synthesize(original, method="cart", settings={"min_samples_leaf": 400})
    assert abs(synthetic["a"].corr(synthetic["b"])) < 0.2


def test_narrow_leaves_copy_records():
    original = every_kind(300)[["age", "height", "town", "grade", "day"]]
    faithful = synthesize(original, method="cart", settings={"min_samples_leaf": 1})
    assert (
        verbatim_share(original, faithful)
        > verbatim_share(original, synthesize(original, method="gaussian_copula")) + 0.01
    )


def test_an_absent_scikit_learn_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InvalidSettingError, match=r"privacy-assets\[trees\]") as raised:
        Cart().fit(every_kind(5), seed=0)
    assert raised.value.__context__ is None


def test_adult_keeps_its_pairs_as_well_as_a_resample_does_and_some_records_are_copied():
    original = pd.read_csv(shared_file("data", "adult_ori.csv"))
    synthetic = synthesize(original, method="cart", seed=1)
    marginals, pairs = marginals_and_pairs(original, synthetic)
    resample = original.sample(len(original), replace=True, random_state=1)
    assert marginals > 0.99
    assert pairs > marginals_and_pairs(original, resample)[1] - 0.005
    assert 0.005 < verbatim_share(original, synthetic) < 0.1
