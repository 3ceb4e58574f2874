"""The assessment agrees with enumeration, record by record and combination by combination."""

import json
from dataclasses import replace
from itertools import pairwise
from math import inf, isclose, nan

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, entropy

from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc.assess import MpuccAssessment, assess_mpuccs, assess_preprocessed
from privacy_assets.mpucc.intervals import newcombe_interval, wilson_interval
from privacy_assets.mpucc.preprocess import preprocess
from privacy_assets.mpucc.settings import count_combinations
from tests.examples import examples
from tests.mixed_tables import table_pairs, through_parquet
from tests.reference import mpucc as reference

PEOPLE = pd.DataFrame({"age": [30, 30, 41, 52], "city": ["a", "b", "b", "c"], "sex": ["f", "m", "f", "m"]})
COPIES = pd.DataFrame({"age": [30, 41, 60, 60], "city": ["a", "c", "a", "a"], "sex": ["f", "f", "m", "f"]})


def compare_with_reference(original, synthetic, deduplicate, max_size=None, min_gain=0.0, alpha=2.0, **arguments):
    """Assess, enumerate, and compare everything that both know."""
    found = assess_mpuccs(
        original,
        synthetic,
        deduplicate=deduplicate,
        max_baseline_cols=max_size,
        min_entropy_delta=min_gain,
        renyi_alpha=alpha,
        **arguments,
    )
    originals, synthetics = reference.plain_rows(original, synthetic)
    kept = [reference.without_duplicates(r) if deduplicate else list(range(len(r))) for r in (originals, synthetics)]
    originals, synthetics = ([rows[i] for i in k] for rows, k in zip((originals, synthetics), kept, strict=True))
    by_gain = reference.follows_entropy(synthetics, alpha, min_gain) if min_gain > 0 else lambda combo: True
    by_information = arguments.get("pruning") == "mutual_information"
    by_stop = reference.follows_information(synthetics, alpha) if by_information else lambda combo: True

    def is_allowed(combo):
        return by_gain(combo) and by_stop(combo)

    expected = reference.find(originals, synthetics, max_size or len(original.columns), is_allowed)
    names = list(original.columns)
    expected_records = {kept[1][s]: (tuple(names[c] for c in combo), kept[0][o]) for s, (combo, o) in expected.items()}
    records = found.details[["syn_idx", "field_combo", "ori_idx"]].itertuples(index=False)
    assert {s: (combo, o) for s, combo, o in records} == expected_records
    assert (found.details["combo_size"] == found.details["field_combo"].map(len)).all()
    first_combos = [tuple(names[c] for c in combo) for combo, _ in expected.values()]
    for row in found.tree.itertuples():
        combo = tuple(names.index(name) for name in row.field_combo)
        assert row.mpuccs_cnt == reference.n_unique(synthetics, combo)
        assert row.mpuccs_collision_cnt == first_combos.count(row.field_combo)
    n_searched = int((found.tree["pruned_by"] != "entropy").sum())
    n_all = count_combinations(len(names), max_size or len(names))
    assert found.scores["combinations_checked"] == n_searched
    assert found.scores["combinations_pruned"] == n_all - n_searched
    return found, originals, synthetics


@given(table_pairs(), st.booleans(), st.sampled_from([1, 2]))
@settings(max_examples=examples(250), deadline=None)
def test_every_record_and_combination_agrees_with_enumeration(tables, deduplicate, n_threads):
    found, *_ = compare_with_reference(*tables, deduplicate, n_threads=n_threads)
    assert found.scores["search"] == "exact"


@given(table_pairs(max_columns=5), st.booleans(), st.integers(1, 4))
@settings(max_examples=examples(60), deadline=None)
def test_a_limited_search_agrees_with_a_limited_enumeration(tables, deduplicate, max_size):
    compare_with_reference(*tables, deduplicate, max_size=min(max_size, len(tables[0].columns)))


@given(
    table_pairs(max_columns=5), st.booleans(), st.sampled_from([0.01, 0.1, 0.3]), st.sampled_from([0.5, 1.0, 2.0, inf])
)
@settings(max_examples=examples(80), deadline=None)
def test_a_heuristic_search_follows_its_definition(tables, deduplicate, min_gain, alpha):
    min_gain += 1e-7  # off the round figures, where the last bit of a logarithm would decide
    found, _, rows = compare_with_reference(*tables, deduplicate, min_gain=min_gain, alpha=alpha)
    assert found.scores["search"] == found.settings["search"] == "heuristic"
    names = list(tables[0].columns)
    for row in found.tree.itertuples():
        combo = tuple(names.index(name) for name in row.field_combo)
        is_too_small = len(combo) > 1 and reference.entropy_gain(rows, combo, alpha) < min_gain
        assert (row.pruned_by == "entropy") == is_too_small


@given(table_pairs(max_columns=4), st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 3.0, inf]))
@settings(max_examples=examples(60), deadline=None)
def test_entropies_agree_with_their_formula(tables, deduplicate, alpha):
    found, _, rows = compare_with_reference(*tables, deduplicate, alpha=alpha)
    names = list(tables[0].columns)
    for row in found.tree.itertuples():
        combo = tuple(names.index(name) for name in row.field_combo)
        assert isclose(row.entropy, reference.entropy(rows, combo, alpha), abs_tol=1e-9)
        assert isclose(row.entropy_gain, reference.entropy_gain(rows, combo, alpha), abs_tol=1e-9)
        assert row.field_weight == 0.5 ** (row.combo_size - 1)
        assert row.weighted_collision == row.mpuccs_collision_cnt * row.field_weight


@given(table_pairs(max_columns=5))
@settings(max_examples=examples(40), deadline=None)
def test_the_number_of_threads_changes_nothing(tables):
    assert assess_mpuccs(*tables, n_threads=1) == assess_mpuccs(*tables, n_threads=2)


@given(table_pairs(max_columns=4), st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_an_assessment_returns_from_its_artifact_unchanged(tables, has_control):
    found = assess_mpuccs(*tables, tables[0] if has_control else None, renyi_alpha=1.0)
    artifact = found.to_artifact()
    assert MpuccAssessment.from_artifact(artifact) == found
    header = json.loads(json.dumps(artifact.header, allow_nan=False))
    frames = {name: through_parquet(frame) for name, frame in artifact.frames.items()}
    assert MpuccAssessment.from_artifact(replace(artifact, header=header, frames=frames)) == found


@given(table_pairs())
@settings(max_examples=examples(60), deadline=None)
def test_a_reported_combination_does_single_out_its_pair(tables):
    original, synthetic = tables
    originals, synthetics = reference.plain_rows(original, synthetic)
    originals = [originals[i] for i in reference.without_duplicates(originals)]
    synthetics = [synthetics[i] for i in reference.without_duplicates(synthetics)]
    names = list(original.columns)
    for row in assess_mpuccs(original, synthetic).details.itertuples():
        combo = [names.index(name) for name in row.field_combo]
        values = [reference.project(rows, combo) for rows in (originals, synthetics)]
        target = reference.project([reference.plain_rows(original, synthetic)[1][row.syn_idx]], combo)[0]
        assert [v.count(target) for v in values] == [1, 1]
        assert 1 <= row.combo_size <= row.agreement <= len(names)


def test_shannon_entropy_is_that_of_scipy():
    found = assess_mpuccs(PEOPLE, COPIES, renyi_alpha=1.0)
    shares = COPIES["age"].value_counts(normalize=True)
    entropies = dict(zip(found.tree["field_combo"], found.tree["entropy"], strict=True))
    assert isclose(entropies["age",], entropy(shares, base=2) / 2)


def test_the_scores_stand_in_the_order_of_their_source():
    scores = assess_mpuccs(PEOPLE, COPIES).scores
    assert list(scores)[:7] == [
        "privacy_risk_score",
        "overall_protection",
        "main_protection",
        "baseline_protection",
        "identification_rate",
        "total_identified",
        "total_syn_records",
    ]
    # Worked by hand: 41 by age, 30 in a by age and city, the two of 60 by nothing. Originals: 3 * 3 * 2.
    assert scores["total_identified"] == 2
    assert scores["baseline_protection"] == 1 - 1 / 18
    assert isclose(scores["privacy_risk_score"], 1 - (2 / 4) / (17 / 18))


def test_details_and_tree_have_the_columns_of_their_source():
    found = assess_mpuccs(PEOPLE, COPIES)
    assert list(found.details) == [
        "risk_level", "syn_idx", "ori_idx", "combo_size", "field_combo", "value_combo",
        "baseline_protection", "agreement",
    ]  # fmt: skip
    assert list(found.tree) == [
        "check_order", "field_combo", "combo_size", "is_pruned", "pruned_by", "mpuccs_cnt", "mpuccs_collision_cnt",
        "baseline_protection", "overall_protection",
    ]  # fmt: skip
    assert found.details["value_combo"].tolist()[0] == ("41",)
    assert assess_mpuccs(PEOPLE, COPIES, field_decay_factor=0.9).tree.columns[-1] == "weighted_collision"


def test_without_a_baseline_nothing_of_it_is_reported():
    found = assess_mpuccs(PEOPLE, COPIES, calculate_baseline=False)
    names = {*found.scores, *found.details, *found.tree}
    assert not names & {"privacy_risk_score", "overall_protection", "baseline_protection"}
    assert found.scores["main_protection"] == 0.5


def test_index_labels_are_those_of_the_tables_handed_in():
    original = PEOPLE.set_axis(["p", "q", "r", "s"])
    synthetic = pd.concat([COPIES.iloc[[2]], COPIES]).set_axis([5, 6, 7, 8, 9])
    found = assess_mpuccs(original, synthetic).details
    assert set(found["syn_idx"]) <= {5, 6, 7, 8, 9}
    assert dict(zip(found["syn_idx"], found["ori_idx"], strict=True))[7] == "r"


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (pd.Index([7, 8, 9, 10], dtype="Int64"), [7, 8, 9, 10]),
        (pd.Index([7, 8, 9, 10], dtype="int64[pyarrow]"), [7, 8, 9, 10]),
        (pd.Index([7, 8, 9, 10], dtype="uint64"), [7, 8, 9, 10]),
        (pd.Index([7, None, 9, None], dtype="Int64"), ["7", "<NA>", "9", "<NA>"]),
        (pd.Index([7, None, 9, None], dtype="int64[pyarrow]"), ["7", "<NA>", "9", "<NA>"]),
        (pd.Index([1, 2**63, 3, 4], dtype="uint64"), ["1", str(2**63), "3", "4"]),
        (pd.Index(["a", "\ud800", "c", None], dtype=object), ["a", r"\ud800", "c", "None"]),
        (pd.MultiIndex.from_product([["a", "b"], [1, 2]]), ["('a', 1)", "('a', 2)", "('b', 1)", "('b', 2)"]),
    ],
)
def test_labels_are_integers_or_text_whatever_the_index_holds(index, expected):
    table = pd.DataFrame({"a": [1, 2, 3, 4]}, index=index)
    found = assess_mpuccs(table, table)
    assert found.details["ori_idx"].tolist() == found.details["syn_idx"].tolist() == expected
    assert MpuccAssessment.from_artifact(found.to_artifact()) == found


def test_missing_values_are_none_in_value_combo():
    original = pd.DataFrame({"a": [1.5, 2.5, np.nan]})
    found = assess_mpuccs(original, pd.DataFrame({"a": [np.nan, 7.0]}))
    assert found.details["value_combo"].tolist() == [(None,)]


def test_positions_stand_in_for_labels_when_tables_are_preprocessed():
    tables = preprocess(PEOPLE.set_axis(list("pqrs")), COPIES)
    found = assess_preprocessed(tables)
    assert found.details["ori_idx"].tolist() == assess_mpuccs(PEOPLE, COPIES).details["ori_idx"].tolist()


def test_progress_is_told_before_each_level_and_can_cancel():
    seen = []
    assess_mpuccs(PEOPLE, COPIES, progress=seen.append)
    stages = list(dict.fromkeys(p.stage for p in seen))
    assert stages == ["synthetic against original", "originals against synthetic"]
    for stage in stages:
        sizes = [p.combo_size for p in seen if p.stage == stage]
        assert sizes == list(range(1, len(sizes) + 1))

    def stop(progress):
        if progress.combo_size == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        assess_mpuccs(PEOPLE, COPIES, progress=stop)


def test_combinations_that_a_small_entropy_gain_skips_are_pruned_and_not_checked():
    table = pd.DataFrame({"a": [0, 0, 1, 1, 2, 2], "b": [0, 1, 0, 1, 0, 1], "c": 1})
    found = assess_mpuccs(table, table, max_baseline_cols=2, min_entropy_delta=0.01)
    assert found.tree["pruned_by"].tolist() == [*[None] * 4, "entropy", "entropy"]
    assert (found.scores["combinations_checked"], found.scores["combinations_pruned"]) == (4, 2)


@given(
    table_pairs(max_columns=5),
    st.booleans(),
    st.sampled_from([1, 1.001, 2, 2.5, 40, inf]),
    st.sampled_from([0.0, 0.0, 0.05]),
)
@settings(max_examples=examples(150), deadline=None)
def test_the_stop_of_the_source_agrees_with_enumeration(tables, deduplicate, alpha, min_gain):
    found, _, rows = compare_with_reference(
        *tables, deduplicate, alpha=alpha, min_gain=min_gain, pruning="mutual_information"
    )
    assert (found.scores["search"], found.settings["pruning"]) == ("heuristic", "mutual_information")
    names = list(tables[0].columns)
    for row in found.tree[found.tree["pruned_by"] == "mutual_information"].itertuples():
        assert row.is_pruned
        assert reference.mutual_information(rows, tuple(map(names.index, row.field_combo)), alpha) < 0


@pytest.fixture(scope="module")
def stopped():
    """A table in which the stop of the source misses people."""
    rng, sizes = np.random.default_rng(11), {"a": 6, "b": 4, "c": 3, "d": 3}
    table = pd.DataFrame({name: np.minimum(rng.geometric(0.5, 40) - 1, most) for name, most in sizes.items()})
    return table, {how: assess_mpuccs(table, table, pruning=how) for how in ("live_classes", "mutual_information")}


def test_the_stop_of_the_source_misses_people_whom_our_search_finds(stopped):
    _, found = stopped
    ours, theirs = (set(each.details["syn_idx"]) for each in found.values())
    assert theirs < ours and (len(theirs), len(ours)) == (29, 33)
    assert "mutual_information" in set(found["mutual_information"].tree["pruned_by"])
    assert "mutual_information" not in set(found["live_classes"].tree["pruned_by"])
    assert [each.scores["search"] for each in found.values()] == ["exact", "heuristic"]


def test_with_shannons_entropy_the_stop_of_the_source_never_stops(stopped):
    table, found = stopped
    shannon = assess_mpuccs(table, table, pruning="mutual_information", renyi_alpha=1)
    assert shannon.details.equals(found["live_classes"].details)
    assert "mutual_information" not in set(shannon.tree["pruned_by"])


def test_tables_in_which_nobody_is_alone_are_assessed_with_a_control():
    pairs = pd.DataFrame({"a": [0, 0, 1, 1] * 100, "b": [0, 1, 0, 1] * 100})
    found = assess_mpuccs(pairs, pairs, pairs.head(80), deduplicate=False)
    assert found.scores["total_identified"] == 0
    assert found.control.matched_identified_by_size == found.control.control_identified_by_size == ()
    assert found.control.excess_identification.value == 0.0


def test_sizes_are_taken_as_the_source_writes_them():
    assert assess_mpuccs(PEOPLE, COPIES, n_cols=[1, 2]) == assess_mpuccs(PEOPLE, COPIES, max_baseline_cols=2)
    with pytest.raises(InvalidSettingError, match="either n_cols or max_baseline_cols"):
        assess_mpuccs(PEOPLE, COPIES, n_cols=[1, 2], max_baseline_cols=2)


@pytest.mark.parametrize("n_rows", [1, 2])
def test_tables_of_one_and_two_rows_are_assessed(n_rows):
    found = assess_mpuccs(PEOPLE.head(n_rows), PEOPLE.head(n_rows))
    assert found.scores["identification_rate"] == 1.0


def test_sixty_columns_are_assessed_up_to_two():
    rng = np.random.default_rng(1)
    wide = pd.DataFrame(rng.integers(0, 4, (40, 60)), columns=[f"c{i}" for i in range(60)])
    found = assess_mpuccs(wide, wide.sample(frac=1, random_state=0), max_baseline_cols=2)
    assert found.scores["combinations_checked"] <= count_combinations(60, 2) == 1830
    assert found.scores["total_identified"] == 40


def wide_tables(n_columns, seed=0):
    """Originals, synthetic records and a control of few values, so that combinations of several columns are needed."""
    rng = np.random.default_rng(seed)
    names = [f"c{i}" for i in range(n_columns)]
    return [pd.DataFrame(rng.integers(0, 3, (n, n_columns)), columns=names) for n in (90, 90, 60)]


def test_thirty_columns_are_searched_in_full_because_only_what_is_checked_counts():
    original, synthetic, _ = wide_tables(30)
    found = assess_mpuccs(original, synthetic)
    assert found.scores["max_combo_size"] == found.settings["complete_up_to"] == 30
    assert found.scores["combinations_checked"] < 200_000 < 2**30 - 1
    assert found.scores["combinations_checked"] + found.scores["combinations_pruned"] == 2**30 - 1
    assert "any_size_identification_rate" not in found.scores


def test_a_search_that_may_check_no_more_is_complete_up_to_the_size_before():
    original, synthetic, control = wide_tables(12)
    sizes = []
    found = assess_mpuccs(
        original, synthetic, control, max_combinations=100, progress=lambda at: sizes.append(at.combo_size)
    )
    upto_two = assess_mpuccs(original, synthetic, control, max_baseline_cols=2)
    assert found.scores["max_combo_size"] == found.settings["complete_up_to"] == max(sizes) == 2
    assert found.tree.equals(upto_two.tree)
    assert found.details.equals(upto_two.details)
    assert found.control == upto_two.control
    everything = assess_mpuccs(original, synthetic).scores["identification_rate"]
    assert found.scores["any_size_records"] == 90
    assert found.scores["any_size_identification_rate"] == everything > found.scores["identification_rate"]
    low, high = found.scores["any_size_interval_low"], found.scores["any_size_interval_high"]
    assert (low, high) == tuple(wilson_interval(everything * 90, 90, 0.95)[1:])


def test_four_hundred_columns_end_at_two_and_say_what_any_size_finds():
    original, synthetic, _ = wide_tables(400)
    found = assess_mpuccs(original, synthetic)
    assert (found.scores["max_combo_size"], found.scores["any_size_identification_rate"]) == (2, 1.0)
    assert found.scores["combinations_checked"] == 400 + 400 * 399 // 2


def test_more_columns_than_combinations_that_may_be_checked_are_refused_before_the_search():
    original, synthetic, _ = wide_tables(12)
    with pytest.raises(
        InvalidSettingError, match=r"max_combinations is 11\. Expected at least 12, the number of columns"
    ):
        assess_mpuccs(original, synthetic, max_combinations=11, progress=lambda _: pytest.fail("the search started"))


def test_progress_is_reported_within_a_size_of_combinations():
    original, synthetic, _ = wide_tables(60)
    seen = []
    assess_mpuccs(original, synthetic, max_baseline_cols=3, progress=seen.append)
    seen = [at for at in seen if at.stage == "synthetic against original"]
    of_three = [at for at in seen if at.combo_size == 3]
    assert [at.n_done for at in of_three] == list(range(0, of_three[-1].n_done + 1, 8192))
    assert {at.n_candidates for at in of_three} == {60 * 59 * 58 // 6}
    assert all(a.combinations_checked <= b.combinations_checked for a, b in pairwise(seen))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_baseline_cols", 0),
        ("max_baseline_cols", -1),
        ("max_baseline_cols", 4),
        ("max_baseline_cols", True),
        ("max_baseline_cols", 2.0),
        ("n_cols", 3),
        ("n_cols", []),
        ("n_cols", [2, 3]),
        ("n_cols", [1, 1]),
        ("renyi_alpha", -0.1),
        ("renyi_alpha", nan),
        ("renyi_alpha", True),
        ("field_decay_factor", 0.0),
        ("field_decay_factor", 1.1),
        ("min_entropy_delta", -0.01),
        ("min_entropy_delta", inf),
        ("pruning", "none"),
        ("max_combinations", 0),
        ("n_matched_samples", 0),
        ("seed", -1),
        ("confidence_level", 1.0),
        ("confidence_level", 1 - 1e-16),
        ("confidence_level", 0.0),
        ("calculate_baseline", 1),
        ("deduplicate", 1),
        ("n_threads", 0),
    ],
)
def test_a_setting_out_of_its_range_is_named(setting, value):
    with pytest.raises(InvalidSettingError, match=f"{setting} is .* Expected"):
        assess_mpuccs(PEOPLE, COPIES, **{setting: value})


@pytest.mark.parametrize("name", ["original", "synthetic"])
def test_an_empty_table_is_refused(name):
    tables = {"original": PEOPLE, "synthetic": COPIES} | {name: PEOPLE.head(0)}
    with pytest.raises(InvalidTableError, match=f"The {name} table has 0 rows and 3 columns"):
        assess_mpuccs(**tables)


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([0.8, 0.95, 0.99]))
@settings(max_examples=examples(50), deadline=None)
def test_the_wilson_interval_is_that_of_scipy(successes, failures, level):
    if successes + failures == 0:
        assert wilson_interval(0, 0, level) == (0, 0, 1)
        return
    expected = binomtest(successes, successes + failures).proportion_ci(level, method="wilson")
    assert np.allclose(wilson_interval(successes, successes + failures, level)[1:], expected, atol=1e-12)


def test_the_newcombe_interval_is_that_of_the_paper():
    # Newcombe (1998), table II, column (a), method 10: 56/70 - 48/80 gives 0.0524 to 0.3339.
    assert np.allclose(newcombe_interval((56, 48), (70, 80), 0.95), (0.2, 0.0524, 0.3339), atol=5e-5)


@pytest.mark.parametrize("seed", range(5))
def test_the_pandas_search_that_benchmarks_time_finds_the_same_records(seed):
    rng = np.random.default_rng(seed)
    tables = [pd.DataFrame(rng.geometric(0.4, (60, 4)), columns=list("abcd")).drop_duplicates() for _ in range(2)]
    found = assess_mpuccs(*tables, max_baseline_cols=3).details
    sizes = reference.find_with_pandas(*tables, 3)
    position_of = {label: position for position, label in enumerate(tables[1].index)}
    expected = {position_of[label]: size for label, size in zip(found["syn_idx"], found["combo_size"], strict=True)}
    assert sizes == expected


def test_an_assessment_is_read_without_the_values_of_records():
    original, synthetic = pd.DataFrame({"a": [1, 2, 3], "b": [1, 1, 2]}), pd.DataFrame({"a": [1, 2, 4], "b": [1, 1, 3]})
    found = assess_mpuccs(original, synthetic)
    read = MpuccAssessment.without_values(found.to_artifact())
    assert read == replace(found, details=found.details.drop(columns="value_combo"))
