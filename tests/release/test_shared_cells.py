"""Coarse tables: nobody is singled out by records that many people have, and copies of these cannot be seen."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.exposed import share_in_homogeneous_cells
from privacy_assets.disclosure.pooled_records import pool_records
from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.pipeline.measure import figures_in_manifest
from privacy_assets.release.metrics import DISCLOSURE, MPUCC, figures_of
from privacy_assets.release.policy import Policy


def binary(n_columns, n, seed, share=0.5):
    random = np.random.default_rng(seed)
    return pd.DataFrame((random.random((n, n_columns)) < share).astype(int)).add_prefix("c")


def outcomes(policy, original, synthetic, control, **settings):
    found = {
        MPUCC: assess_mpuccs(original, synthetic, control, max_baseline_cols=min(3, original.shape[1])),
        DISCLOSURE: assess_disclosure(original, synthetic, control, **settings),
    }
    figures = {}
    for name, each in found.items():
        figures |= figures_of(name, figures_in_manifest(each, name), policy.required)
    decided = {
        limit.metric: limit.outcome(figures) for limit in policy.limits_of("synthetic") if limit.metric in figures
    }
    return decided, figures


@pytest.mark.parametrize("n_columns", [2, 3, 4])
def test_records_of_few_binary_columns_are_admitted_although_copies_cannot_be_seen(n_columns):
    original, control, others = (binary(n_columns, n, seed) for n, seed in ((1_000, 0), (500, 1), (1_000, 2)))
    decided, figures = outcomes(Policy.for_use_case("public_release"), original, others, control)
    counts = Counter(map(tuple, original.to_numpy()))
    assert figures["smallest_shared_cell"] == min(counts[row] for row in map(tuple, others.to_numpy())) >= 11
    # Combinations of all columns single out each distinct record, also those of strangers.
    assert figures["privacy_risk_score"] == figures["score_of_strangers"] == float(n_columns <= 3)
    assert decided["privacy_risk_score"] == ("beyond" if n_columns <= 3 else "met")
    assert "not met" not in decided.values()


def test_one_record_that_few_people_have_closes_the_way():
    original, control, others = (binary(3, n, seed) for n, seed in ((1_000, 0), (500, 1), (1_000, 2)))
    for table, n in ((original, 10), (control, 5)):
        table.loc[: n - 1, "c0"] = 2
        table.loc[: n - 1, ["c1", "c2"]] = 0
    alone = pd.concat([others[:-1], original[:1]], ignore_index=True)
    for synthetic, is_closed in ((others, False), (alone, True)):
        decided, figures = outcomes(Policy.for_use_case("public_release"), original, synthetic, control)
        assert (figures["smallest_shared_cell"] == 10) == is_closed
        assert (decided["leakage_detected"] == "not met") == is_closed == ("not met" in decided.values())


def test_a_sensitive_value_that_is_certain_closes_the_way_where_the_policy_refuses_it():
    original, control, others = (binary(3, n, seed) for n, seed in ((1_000, 0), (500, 1), (1_000, 2)))
    for table in (original, control, others):
        table["c2"] = np.where(table["c0"] == 1, 1, table["c2"])
    asked = {"sensitive": ["c2"], "quasi_identifiers": ["c0", "c1"]}
    for use_case, is_refused in (("public_release", True), ("internal_analytics", False)):
        decided, figures = outcomes(Policy.for_use_case(use_case), original, others, control, **asked)
        assert figures["share_in_homogeneous_cells"] == pytest.approx((others["c0"] == 1).mean())
        assert ("not met" in decided.values()) == is_refused


def test_copies_that_are_found_stay_found_whatever_is_shared():
    policy = Policy.for_use_case("public_release")
    figures = dict.fromkeys(
        (
            *("privacy_risk_score", "score_of_strangers", "score_of_related_columns", "originals_singled_out"),
            *("score_of_strangers_on_related_columns", "originals_singled_out_by_strangers", "leakage_detected"),
        ),
        1.0,
    ) | {"smallest_shared_cell": 50.0, "share_in_homogeneous_cells": 0.0, "exposed_share": None}
    limits = {limit.metric: limit for limit in policy.limits_of("synthetic")}
    assert limits["leakage_detected"].outcome(figures) == limits["exposed_share"].outcome(figures) == "not met"
    unknown = figures | {"leakage_detected": None}
    assert limits["leakage_detected"].outcome(unknown) == limits["exposed_share"].outcome(unknown) == "met"


def test_the_share_in_homogeneous_cells_agrees_with_counting():
    random = np.random.default_rng(5)
    for _ in range(20):
        tables = [pd.DataFrame(random.integers(0, 3, (60, 4)), columns=list("abcd")) for _ in range(3)]
        records = pool_records(dict(zip(("original", "synthetic", "control"), tables, strict=True)), {})
        rows = [tuple(row) for row in tables[1].to_numpy()]
        certain = 0
        for row in rows:
            alike = [other for other in rows if other[:2] == row[:2]]
            certain += len({other[2] for other in alike}) == 1 or len({other[3] for other in alike}) == 1
        assert share_in_homogeneous_cells(records, ["a", "b"], ["c", "d"]) == pytest.approx(certain / len(rows))
        assert share_in_homogeneous_cells(records, ["a"], []) == 0
