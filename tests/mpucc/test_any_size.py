"""Identification by any combination, found from agree sets, is that of a search of all combinations."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.mpucc import results
from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.mpucc.preprocess import preprocess
from privacy_assets.mpucc.results import sample_any_size
from tests.examples import examples


def random_tables(seed, n_columns, n_rows):
    rng = np.random.default_rng(seed)
    names = [f"c{i}" for i in range(n_columns)]
    return [pd.DataFrame(rng.integers(0, 3, (n, n_columns)), columns=names) for n in n_rows]


@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 30), st.integers(1, 30), st.booleans())
@settings(max_examples=examples(100), deadline=None)
def test_the_rate_of_a_sample_of_all_records_is_that_of_the_search(seed, n_columns, n_original, n_synthetic, dedupe):
    original, synthetic = random_tables(seed, n_columns, (n_original, n_synthetic))
    found = assess_mpuccs(original, synthetic, deduplicate=dedupe)
    sampled = sample_any_size(preprocess(original, synthetic, deduplicate=dedupe), 0, 0.95)
    assert sampled.n_records == found.scores["total_syn_records"]
    assert sampled.rate.value == pytest.approx(found.scores["total_identified"] / found.scores["total_syn_records"])


def test_more_columns_than_a_word_has_bits_are_compared():
    original, synthetic = random_tables(1, 130, (20, 20))
    # All agree on all columns but the last, by which one synthetic record singles out one original.
    table = pd.concat([original, synthetic]) * 0
    table["c129"] = [*range(20), 5, *[30] * 19]
    tables = preprocess(table.iloc[:20], table.iloc[20:].reset_index(drop=True), deduplicate=False)
    assert sample_any_size(tables, 0, 0.95).rate.value == 1 / 20


def test_a_sample_is_as_large_as_time_allows_and_its_interval_covers_the_rate(monkeypatch):
    original, synthetic = random_tables(2, 6, (500, 600))
    tables = preprocess(original, synthetic)
    scores = assess_mpuccs(original, synthetic).scores
    rate = scores["total_identified"] / scores["total_syn_records"]
    monkeypatch.setattr(results, "MOST_RECORDS", 120)
    samples = [sample_any_size(tables, seed, 0.95) for seed in range(40)]
    assert {each.n_records for each in samples} == {120}
    assert sum(each.rate.low <= rate <= each.rate.high for each in samples) >= 36
    monkeypatch.setattr(results, "CELLS_COMPARED", 1)
    assert sample_any_size(tables, 0, 0.95).n_records == 50
