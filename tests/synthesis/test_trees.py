"""What both synthesizers that grow trees keep."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets.synthesis.synthesize import synthesize
from tests.extras import CART
from tests.synthesis.fidelity import marginals_and_pairs

pytestmark = pytest.mark.parametrize("method", [CART, "smooth_cart"])


def test_dependence_no_correlation_shows_is_kept(method):
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, 4000)
    original = pd.DataFrame({"x": x, "bowl": x**2 + 0.05 * random.standard_normal(4000), "far": np.abs(x) > 0.5})
    synthetic = synthesize(original, method=method)
    least_pairs, least_right = {"cart": (0.9, 0.97), "smooth_cart": (0.85, 0.95)}[method]
    assert marginals_and_pairs(original, synthetic)[1] > least_pairs
    assert (synthetic["far"] == (np.abs(synthetic["x"]) > 0.5)).mean() > least_right


def test_missing_depends_on_other_columns_as_it_did(method):
    flag = np.random.default_rng(0).random(2000) < 0.5
    original = pd.DataFrame({"flag": flag, "n": np.where(flag, np.nan, np.arange(2000))})
    synthetic = synthesize(original, method=method)
    assert (synthetic["n"].isna() == synthetic["flag"]).all()
