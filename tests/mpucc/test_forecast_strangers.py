"""What strangers will score is forecast as it is counted later, and of a sample continued."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.mpucc.preprocess import preprocess
from privacy_assets.mpucc.settings import MpuccSettings
from privacy_assets.mpucc.strangers import forecast_strangers
from tests.examples import examples
from tests.reference.mpucc_draws import most_records, scores_of_draws

records = st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=2, max_size=14)


@settings(max_examples=examples(60), deadline=None)
@given(records, records, st.sampled_from([1, 2, 3]))
def test_with_enough_controls_the_forecast_is_their_score_by_enumeration(original, control, size):
    n_scored, n_control = most_records(original, True), len(set(control))
    if n_control < n_scored:
        original, control = control, original
        n_scored, n_control = most_records(original, True), len(set(control))
    if n_control < n_scored:
        return
    tables = [pd.DataFrame(rows, columns=list("abc")) for rows in (original, control, control)]
    found = forecast_strangers([preprocess(*tables)], MpuccSettings(max_baseline_cols=size), 0)
    drawn = scores_of_draws(original, control, size, deduplicate=True, n_records=n_scored)
    assert found[0] == pytest.approx(np.mean([score for _, score in drawn]))


def wide(seed, n_rows):
    random = np.random.default_rng(seed)
    common = random.integers(0, 4, (n_rows, 1))
    return pd.DataFrame(common + random.integers(0, 4, (n_rows, 8))).add_prefix("c")


def test_with_few_controls_it_is_the_score_of_strangers_of_the_assessment():
    original, control, records = wide(1, 600), wide(2, 200), wide(3, 600)
    stated = assess_mpuccs(original, records, control, max_baseline_cols=3).scores["score_of_strangers"]
    [found] = forecast_strangers([preprocess(original, control, control)], MpuccSettings(max_baseline_cols=3), 0)
    assert found == pytest.approx(stated, abs=0.02)


def test_a_sample_is_continued_with_its_mean_slope_and_never_upwards():
    parts = [preprocess(wide(1, n), wide(2, n), wide(2, n)) for n in (1_200, 600, 300)]
    asked = MpuccSettings(max_baseline_cols=3)
    [[one], [half], [quarter]] = [forecast_strangers([part], asked, 0) for part in parts]
    assert one < half < quarter
    [found] = forecast_strangers(parts, asked, 1.5)
    odds = one / (1 - one) * math.exp(1.5 * (math.log(one / (1 - one)) - math.log(quarter / (1 - quarter))) / 2)
    assert found == pytest.approx(odds / (1 + odds))
    [rising] = forecast_strangers(parts[::-1], asked, 1.5)
    assert rising == pytest.approx(quarter)
