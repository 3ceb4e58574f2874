"""Identified records on UCI Adult against a CTGAN table, by combination size.

Source: ``tests/golden/mpucc_adult.json``, cross-checked by a search that compares pairs of records.
"""

import functools
import json

import numpy as np
import pandas as pd
import pytest

from privacy_assets.mpucc.assess import assess_mpuccs
from tests.shared_data import golden_file, shared_file

SYNTHETIC = "adult_syn_ctgan"


def read(name):
    return pd.read_csv(shared_file("data", f"{name}.csv"))


@functools.cache
def assessed_with_control(max_size):
    return assess_mpuccs(
        read("adult_ori"), read(SYNTHETIC), read("adult_control"), max_baseline_cols=max_size, n_matched_samples=2
    )


@pytest.mark.parametrize("max_size", [1, 2, 3, 15])
@pytest.mark.parametrize("original", ["adult", "adult_ori", "adult_control"])
def test_identified_records_by_size_are_the_published_ones(original, max_size):
    golden = json.loads(golden_file("mpucc_adult.json").read_text())[f"{original}|syn_ctgan|{max_size}"]
    if original == "adult_ori":
        found = assessed_with_control(max_size)
    else:
        found = assess_mpuccs(read(original), read(SYNTHETIC), max_baseline_cols=max_size)
    assert found.scores["total_identified"] == golden["identified"]
    assert found.scores["total_syn_records"] == golden["rows"]
    assert np.bincount(found.details["combo_size"])[1:].tolist() == golden["by_size"]


@pytest.mark.parametrize("max_size", [1, 2, 3, 15])
def test_an_untouched_table_stays_within_the_intervals(max_size):
    found = assessed_with_control(max_size).control
    estimates = (found.excess_identification, found.excess_verbatim, found.excess_copy)
    for estimate in estimates:
        assert estimate.low <= 0 <= estimate.high
    assert found.leakage_detected is False


@pytest.mark.parametrize("max_size", [1, 2, 3])
def test_one_percent_of_planted_copies_is_detected(max_size):
    original, synthetic = read("adult_ori"), read(SYNTHETIC)
    n_planted = len(synthetic) // 100
    planted = pd.concat([synthetic.iloc[n_planted:], original.sample(n_planted, random_state=1)], ignore_index=True)
    found = assess_mpuccs(
        original, planted, read("adult_control"), max_baseline_cols=max_size, n_matched_samples=2
    ).control
    assert found.excess_verbatim.low > 0
    assert found.excess_copy.low > 0
    assert found.leakage_detected
    assert found.verbatim_copies >= n_planted - 5 > found.control_verbatim_copies
