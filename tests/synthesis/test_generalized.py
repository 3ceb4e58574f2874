"""Synthetic records, generalized: whoever is alike in values is alike in labels, and copies make no class."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.errors import InvalidSettingError
from privacy_assets.mpucc.assess import assess_preprocessed
from privacy_assets.mpucc.settings import MpuccSettings
from privacy_assets.synthesis.generalized import (
    DISTINCT_RECORD,
    OUTSIDE_LABEL,
    generalize_alike,
    number_distinct_records,
    preprocess_generalized,
)
from tests.examples import examples

PRECISIONS = {"numeric_precision": None, "datetime_precision": None}


def records(n_rows: int, seed: int, jobs: tuple[str, ...] = ("cook", "nurse")) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(20, 60, n_rows),
            "weight": np.round(random.normal(70, 9, n_rows), 1),
            "job": random.choice(jobs, n_rows),
            "illness": random.choice(["flu", "cold", "gout"], n_rows),
        }
    )


def generalized(synthetic: pd.DataFrame, k: int = 5, **changes):
    return anonymize(
        number_distinct_records(synthetic),
        quasi_identifiers=["age", "weight", "job"],
        sensitive=["illness"],
        subject=DISTINCT_RECORD,
        k=k,
        **changes,
    )


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(10, 60), st.integers(0, 1000), st.integers(1, 6))
def test_a_row_that_was_anonymized_gets_its_own_label(n_rows, seed, k):
    synthetic = records(n_rows, seed)
    anonymization = generalized(synthetic, k=min(k, len(synthetic.drop_duplicates())))
    rows = anonymization.members["row"].to_numpy()
    alike = generalize_alike(anonymization, synthetic, synthetic).iloc[rows].reset_index(drop=True)
    for name in ("age", "weight", "job"):
        assert alike[name].tolist() == anonymization.table[name].astype(str).tolist()
    assert alike["illness"].tolist() == anonymization.table["illness"].tolist()


def test_a_value_that_no_class_holds_reads_as_outside_and_the_rest_of_the_row_as_some_class():
    synthetic = records(50, 0)
    anonymization = generalized(synthetic)
    others = records(20, 1, jobs=("cook", "smith"))
    alike = generalize_alike(anonymization, others, synthetic)
    outside = (others["job"] == "smith").to_numpy()
    assert outside.any()
    assert ((alike["job"] == OUTSIDE_LABEL) == outside).all()
    for name in ("age", "weight"):
        assert set(alike[name]) <= set(anonymization.table[name].astype(str))


@pytest.mark.parametrize("rare", ["smith", None])
def test_a_copy_of_somebody_with_a_rare_category_is_still_found(rare):
    original = records(300, 0).assign(job=pd.Series([rare, "cook", "nurse"] * 100, dtype=object))
    copies = original.assign(job=original["job"].where(original["job"].isin(["cook", "nurse"]), "cook"))
    anonymization = generalized(copies, k=5)
    alike = generalize_alike(anonymization, original, copies)
    rows = anonymization.members["row"].to_numpy()
    rare_ones = ~original["job"].isin(["cook", "nurse"]).to_numpy()[rows]
    for name in ("age", "weight"):
        released = anonymization.table[name].astype(str).to_numpy(dtype=object)
        assert (alike[name].to_numpy(dtype=object)[rows][rare_ones] == released[rare_ones]).all()
    assert (alike["job"].to_numpy(dtype=object)[rows][rare_ones] == OUTSIDE_LABEL).all()


@pytest.mark.parametrize("changes", [{"relaxed": True}, {"output": "centroid"}, {"max_suppression": 0.1}])
def test_classes_that_cannot_be_told_for_other_rows_are_refused(changes):
    synthetic = records(50, 0)
    anonymization = generalized(synthetic, **changes)
    with pytest.raises(InvalidSettingError, match="must also apply to other rows"):
        generalize_alike(anonymization, synthetic, synthetic)


def test_copies_of_one_record_make_no_class():
    copied = pd.concat([records(30, 0)] * 5, ignore_index=True)
    numbered = number_distinct_records(copied)
    assert numbered[DISTINCT_RECORD].nunique() == 30
    anonymization = generalized(copied)
    assert anonymization.stats["smallest_class_people"] >= 5
    assert anonymization.stats["smallest_class"] >= 25


def test_equal_records_have_one_number_also_where_values_are_missing():
    table = pd.DataFrame({"a": [1.0, None, None, 1.0], "b": pd.Series(["x", None, None, None], dtype=object)})
    assert number_distinct_records(table)[DISTINCT_RECORD].tolist() == [0, 1, 1, 2]


def test_nobody_is_singled_out_by_what_was_generalized_and_some_are_by_what_was_not():
    original, control = records(300, 0), records(80, 1)
    # Copies of the originals: as values, everybody is singled out.
    synthetic = original.copy()
    anonymization = generalized(synthetic, k=10)
    prepared = preprocess_generalized(original, synthetic, control, anonymization, deduplicate=True, **PRECISIONS)
    assert prepared.deduplicate
    assessment = assess_preprocessed(prepared, MpuccSettings(max_baseline_cols=4))
    labels = anonymization.table[["age", "weight", "job"]].astype(str)
    sizes = labels.assign(illness=anonymization.table["illness"]).groupby(["age", "weight", "job", "illness"]).size()
    # Alone in its class with its illness: all three tables have the same rows here, so it is identified.
    assert assessment.scores["total_identified"] == (sizes == 1).sum()
    assert len(assessment.details) == assessment.scores["total_identified"] > 0
    assert ["illness" in columns for columns in assessment.details["field_combo"]] == [True] * len(assessment.details)


def test_repeated_values_are_left_out_before_and_equal_labels_are_kept():
    synthetic = pd.concat([records(60, 0), records(60, 0).iloc[:20]], ignore_index=True)
    original, control = records(100, 2), records(40, 3)
    anonymization = generalized(synthetic)
    once = preprocess_generalized(original, synthetic, control, anonymization, deduplicate=True, **PRECISIONS)
    twice = preprocess_generalized(original, synthetic, control, anonymization, deduplicate=False, **PRECISIONS)
    distinct = len(synthetic.drop_duplicates())
    assert sum(once.synthetic.multiplicities) == distinct
    assert sum(twice.synthetic.multiplicities) == len(synthetic)


def test_people_keep_their_records_where_synthetic_records_are_generalized():
    synthetic, original = records(120, 1), records(90, 2)
    anonymization = generalized(synthetic)
    one_each = [original.assign(who=range(start, start + 90)) for start in (0, 1000)]
    settings = {**PRECISIONS, "deduplicate": True}
    expected = preprocess_generalized(original, synthetic, original, anonymization, **settings)
    found = preprocess_generalized(one_each[0], synthetic, one_each[1], anonymization, **settings, person="who")
    by_record, by_person = (assess_preprocessed(tables, MpuccSettings()) for tables in (expected, found))
    assert by_person.details.equals(by_record.details)
    assert by_person.control == by_record.control
    visits = original.assign(who=np.arange(90) // 3)
    twice = pd.concat([visits, visits.assign(who=visits["who"] + 500)])
    once = preprocess_generalized(visits, synthetic, one_each[1], anonymization, **settings, person="who").original
    both = preprocess_generalized(twice, synthetic, one_each[1], anonymization, **settings, person="who").original
    # People who repeat the records of others are left out before.
    assert once == both
    assert once.people.n_people == 30


@pytest.mark.parametrize(("times", "is_drawn"), [(1, False), (5, True)])
def test_generalized_records_are_scored_together_unless_there_are_more_than_originals(times, is_drawn):
    original, control = records(400, 0), records(100, 2)
    original = pd.concat([original, original.head(30)], ignore_index=True)
    synthetic = records(times * 400, 1)
    prepared = preprocess_generalized(
        original, synthetic, control, generalized(synthetic), deduplicate=True, **PRECISIONS
    )
    scores = assess_preprocessed(prepared, MpuccSettings(max_baseline_cols=2)).scores
    assert ("records_per_draw" in scores) == is_drawn
    if is_drawn:
        assert 350 < scores["records_per_draw"] <= 440
    else:
        assert scores["identification_rate"] == scores["total_identified"] / scores["total_syn_records"]
