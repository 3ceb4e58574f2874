"""The control comparison tells copies from coincidence."""

from math import isclose

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, hypergeom

from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.mpucc.control import ControlComparison, count_equal_records, probability_of_a_draw
from privacy_assets.mpucc.intervals import Estimate
from privacy_assets.mpucc.preprocess import preprocess
from tests.examples import examples


def population(rng, n_rows):
    """Records of mixed rarity: several columns single records out only together."""
    return pd.DataFrame(
        {
            "income": np.floor(np.exp(rng.normal(1.5, 1.0, n_rows))).astype(int),
            "children": rng.geometric(0.3, n_rows),
            "rooms": rng.geometric(0.5, n_rows),
            "sex": rng.integers(0, 2, n_rows),
            "region": rng.integers(0, 8, n_rows),
        }
    )


def with_weights(table, seed):
    """Add a column in which few records agree by chance."""
    return table.assign(weight=np.random.default_rng(seed).normal(70, 12, len(table)).round(1))


def draw(seed, n_original=600, n_control=300, n_synthetic=600, make=population):
    """Original, synthetic and control: independent draws from one population, so nobody is copied."""
    records = make(np.random.default_rng(seed), n_original + n_control + n_synthetic)
    original, rest = records.iloc[:n_original], records.iloc[n_original:]
    return original, rest.iloc[n_control:], rest.iloc[:n_control]


def low_cardinality(rng, n_rows):
    """Records of a few hundred kinds, so that most occur several times."""
    return pd.DataFrame(
        {"a": rng.geometric(0.3, n_rows), "b": rng.geometric(0.3, n_rows), "c": rng.integers(0, 5, n_rows)}
    )


def equally_frequent(rng, n_rows):
    """Records of 800 kinds, all equally frequent."""
    kinds = rng.integers(0, 800, n_rows)
    return pd.DataFrame({"a": kinds // 28, "b": kinds % 28})


@pytest.mark.parametrize("deduplicate", [True, False])
@pytest.mark.parametrize("make", [population, low_cardinality, equally_frequent])
@pytest.mark.parametrize(
    ("n_original", "n_control", "n_synthetic"),
    [(600, 300, 800), (300, 300, 800), (300, 600, 800), (300, 1200, 800), (300, 2400, 300), (1200, 300, 1200)],
)
def test_an_honest_table_is_rarely_flagged(n_original, n_control, n_synthetic, make, deduplicate):
    # Samples of deduplicated tables hold too many rare values: with control 4 times the originals all were flagged.
    # Three 95 % intervals may miss 0 upwards in 7.5 % of tables; more, with a probability of 1 %, is too often.
    n_tables = examples(40)
    flags = [
        assess_mpuccs(
            *draw(seed, n_original, n_control, n_synthetic, make),
            n_matched_samples=3,
            n_threads=1,
            deduplicate=deduplicate,
        ).control.leakage_detected
        for seed in range(n_tables)
    ]
    assert None not in flags
    assert sum(flags) <= binom.ppf(0.99, n_tables, 0.075)


@pytest.mark.parametrize("deduplicate", [True, False])
def test_copies_among_records_that_occur_several_times_are_detected(deduplicate):
    # Samples of deduplicated tables hide copies as well: at this split of 80 to 20 hardly any were detected.
    n_detected = 0
    for seed in range(10):
        original, synthetic, control = draw(seed, 1200, 300, 1200, low_cardinality)
        leaky = pd.concat([synthetic.iloc[720:], original.sample(720, random_state=seed)], ignore_index=True)
        found = assess_mpuccs(original, leaky, control, n_matched_samples=3, n_threads=1, deduplicate=deduplicate)
        n_detected += found.control.leakage_detected
    assert n_detected >= 7


def test_too_few_records_to_compare_with_are_no_evidence_of_no_leakage():
    original, synthetic, control = draw(1)
    for n_original, n_control, expected in ((600, 49, None), (49, 300, None), (50, 50, False)):
        found = assess_mpuccs(original.head(n_original), synthetic, control.head(n_control)).control
        assert found.n_matched_records == min(n_original, n_control)
        assert found.leakage_detected is expected
    # What is found in spite of that counts.
    original, control = (with_weights(table, i) for i, table in enumerate((original, control)))
    found = assess_mpuccs(original, original, control.head(40)).control
    assert found.leakage_detected is True


@pytest.mark.parametrize(("n_records", "n_drawn"), [(10, 1), (10, 4), (10, 10), (3000, 700)])
def test_the_probability_of_a_draw_is_that_of_scipy(n_records, n_drawn):
    n_equal = np.array([0, 1, 2, 7, 10])
    found = probability_of_a_draw(n_equal, n_records, n_drawn)
    assert np.allclose(found, hypergeom.sf(0, n_records, n_equal, n_drawn), rtol=1e-9, atol=1e-12)
    assert found[0] == 0


def test_records_are_drawn_as_they_were_handed_in():
    # One kind of record is half of the table: a sample must hold it, and others as often as they occur.
    original = pd.DataFrame({"a": [0] * 500 + list(range(1, 501))})
    control = original.head(500).assign(a=range(1000, 1500))
    found = assess_mpuccs(original, pd.DataFrame({"a": [0, 1, 2, 1000]}), control, n_matched_samples=50).control
    assert found.matched_identification_rate == pytest.approx((1 + 2 * 0.5) / 4, abs=0.06)
    assert found.control_identification_rate == 0.25
    assert found.excess_copy.value == pytest.approx((1 + 2 * 0.5 - 1) / 4)


def test_copies_of_originals_are_detected():
    original, synthetic, control = (with_weights(table, i) for i, table in enumerate(draw(1)))
    assert not assess_mpuccs(original, synthetic, control).control.leakage_detected
    leaky = pd.concat([synthetic.iloc[40:], original.iloc[:40]], ignore_index=True)
    found = assess_mpuccs(original, leaky, control).control
    assert found.leakage_detected
    assert found.excess_verbatim.low > 0
    assert found.verbatim_copies > found.control_verbatim_copies


def test_rates_stand_on_the_size_of_the_smaller_table():
    original, synthetic, control = draw(2)
    found = assess_mpuccs(original, synthetic, control)
    as_control = assess_mpuccs(control, synthetic).scores
    rate = as_control["total_identified"] / as_control["total_syn_records"]
    assert isclose(found.control.control_identification_rate, rate)
    assert isclose(
        found.control.excess_identification.value,
        found.control.matched_identification_rate - found.control.control_identification_rate,
    )
    excess = found.control.excess_identification
    assert excess.low <= excess.value <= excess.high


@pytest.mark.parametrize("deduplicate", [True, False])
def test_records_by_combination_size_are_those_of_a_search_of_each_table(deduplicate):
    original, synthetic, control = draw(7, 300, 300, 300)
    settings = {"n_matched_samples": 2, "deduplicate": deduplicate}
    found = assess_mpuccs(original, synthetic, control=control, **settings).control
    for counts, table, rate in [
        (found.matched_identified_by_size, original, found.matched_identification_rate),
        (found.control_identified_by_size, control, found.control_identification_rate),
    ]:
        alone = assess_mpuccs(table, synthetic, deduplicate=deduplicate)
        by_size = alone.details["combo_size"].value_counts()
        assert counts == tuple(by_size.get(size, 0) for size in range(1, by_size.index.max() + 1))
        assert sum(counts) == round(rate * alone.scores["total_syn_records"])


def test_records_by_combination_size_are_means_over_samples():
    original, synthetic, control = draw(8, 600, 200)
    found = assess_mpuccs(original, synthetic, control=control, n_matched_samples=3).control
    n_records = len(synthetic.drop_duplicates())
    assert isclose(sum(found.matched_identified_by_size), found.matched_identification_rate * n_records)
    assert isclose(sum(found.control_identified_by_size), found.control_identification_rate * n_records)


def test_the_original_as_its_own_control_shows_no_excess():
    original, synthetic, _ = draw(3, n_original=300)
    found = assess_mpuccs(original, synthetic, original).control
    assert found.excess_identification.value == found.excess_verbatim.value == 0
    assert not found.leakage_detected


def test_the_seed_decides_the_samples():
    tables = draw(4)
    assert assess_mpuccs(*tables, seed=1) == assess_mpuccs(*tables, seed=1)
    first, second = (assess_mpuccs(*tables, seed=seed).control for seed in (1, 2))
    assert first.matched_identification_rate != second.matched_identification_rate


def test_copies_are_counted_with_their_multiplicity():
    original = pd.DataFrame({"a": [1, 2, 3, 3], "b": ["x", "y", "z", "z"]})
    synthetic = pd.DataFrame({"a": [1, 1, 2, 3], "b": ["x", "x", "z", "z"]})
    for deduplicate, n_copies in ((True, 2), (False, 3)):
        tables = preprocess(original, synthetic, original.head(1), deduplicate=deduplicate)
        assert count_equal_records(tables.synthetic, tables.original, tables.n_codes).tolist() == [1, 0, 2]
        found = assess_mpuccs(original, synthetic, original.head(1), deduplicate=deduplicate).control
        assert found.verbatim_copies == n_copies
        assert found.control_verbatim_copies == n_copies - 1


def test_a_comparison_returns_from_its_header_unchanged():
    found = assess_mpuccs(*draw(5)).control
    assert ControlComparison.from_header(found.to_header()) == found
    assert isinstance(ControlComparison.from_header(found.to_header()).excess_verbatim, Estimate)


def test_progress_names_every_search():
    stages = []
    tables = draw(6)
    assess_mpuccs(*tables, n_matched_samples=2, max_baseline_cols=1, progress=lambda p: stages.append(p.stage))
    assert stages[:7] == [
        "synthetic against original",
        "original sample 1 of 2",
        "original sample 2 of 2",
        "against control",
        "originals against synthetic",
        "against lone originals",
        "control against original",
    ]
    # Strangers are scored at several numbers of records.
    assert {"control against original", "control originals against synthetic", "originals against synthetic"} >= set(
        stages[7:]
    )


def test_a_table_without_identified_records_has_no_excess():
    table = pd.DataFrame({"a": [1, 1], "b": [2, 3]})
    other = pd.DataFrame({"a": [7, 8], "b": [9, 9]})
    found = assess_mpuccs(table, other, table).control
    assert (found.matched_identification_rate, found.verbatim_rate) == (0, 0)
    assert not found.leakage_detected


def test_copies_are_seen_where_small_combinations_single_nobody_out():
    # One column of five values singles nobody out, so no pair is verbatim; all columns together are copied.
    rng = np.random.default_rng(4)
    originals, controls, strangers = (
        pd.DataFrame(rng.integers(0, 5, (n_rows, 12)), columns=[f"c{i}" for i in range(12)])
        for n_rows in (900, 300, 870)
    )
    copies = pd.concat([strangers, originals.iloc[:30]], ignore_index=True)
    honest = assess_mpuccs(originals, strangers, controls, max_baseline_cols=1).control
    found = assess_mpuccs(originals, copies, controls, max_baseline_cols=1).control
    assert not honest.leakage_detected
    assert found.verbatim_rate == 0
    assert found.verbatim_copies == 30
    # 30 copies among 900 originals are 10 among as many as there are control records, of 900 synthetic records.
    assert found.excess_copy.value == pytest.approx(10 / 900, abs=1e-4)
    assert found.excess_copy.low > 0
    assert found.leakage_detected
