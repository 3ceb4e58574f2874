"""The score of other real people, and the score beyond it, agree with enumeration."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.mpucc.assess import MpuccAssessment, assess_mpuccs
from tests.examples import examples
from tests.reference.mpucc_draws import most_records, scores_of_draws


def expected_score(originals, attackers, deduplicate, max_size, n_records=None):
    """Score records in place of synthetic ones, by enumeration."""
    scores = scores_of_draws(originals, attackers, max_size, deduplicate=deduplicate, n_records=n_records)
    return np.mean([score for _, score in scores])


records = st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=12)


@settings(max_examples=examples(80), deadline=None)
@given(records, records, records, st.booleans(), st.sampled_from([1, 2, 3]))
def test_the_control_is_scored_in_place_of_as_many_synthetic_records(original, synthetic, control, deduplicate, size):
    tables = [pd.DataFrame(rows, columns=list("abc")) for rows in (original, synthetic, control)]
    scores = assess_mpuccs(*tables, max_baseline_cols=size, deduplicate=deduplicate).scores
    n_synthetic, n_control = (len(set(rows) if deduplicate else rows) for rows in (synthetic, control))
    n_scored = min(n_synthetic, most_records(original, deduplicate))
    n_records = min(n_scored, n_control)
    of_control = expected_score(original, control, deduplicate, size, n_records)
    of_synthetic = expected_score(original, synthetic, deduplicate, size, n_records)
    assert scores["score_of_control"] == pytest.approx(of_control)
    assert scores["score_at_control_size"] == pytest.approx(of_synthetic)
    if n_control >= n_scored:
        assert scores["score_at_control_size"] == scores["privacy_risk_score"]
    if of_control == pytest.approx(1):
        assert scores["score_beyond_control"] is None
    else:
        beyond = max((of_synthetic - of_control) / (1 - of_control), -1)
        assert scores["score_beyond_control"] == pytest.approx(beyond)


def wide(seed, n_rows, n_columns=8):
    """Records whose columns are all alike: three of them single out nearly everybody."""
    return pd.DataFrame(np.random.default_rng(seed).integers(0, 6, (n_rows, n_columns))).add_prefix("c")


def test_where_other_people_score_high_the_score_beyond_them_is_near_the_share_of_copies():
    original, other, control = wide(1, 400), wide(2, 400), wide(3, 400)
    half = pd.concat([original[:200], other[:200]])
    honest, some, copies = (
        assess_mpuccs(original, synthetic, control, max_baseline_cols=3) for synthetic in (other, half, original)
    )
    of_control = [found.scores["score_of_control"] for found in (honest, some, copies)]
    assert of_control == pytest.approx([0.8675] * 3, abs=1e-4)
    beyond = [found.scores["score_beyond_control"] for found in (honest, some, copies)]
    assert beyond == [pytest.approx(share, abs=0.2) for share in (0, 0.5, 1)]
    assert MpuccAssessment.from_artifact(some.to_artifact()) == some


def test_where_other_people_score_1_there_is_no_score_beyond_them():
    # A control of fewer records is more often alone: it is compared with as many synthetic records.
    found = assess_mpuccs(wide(1, 400), wide(2, 400), wide(3, 100), max_baseline_cols=3)
    assert found.scores["score_at_control_size"] == found.scores["score_of_control"] == 1.0
    assert found.scores["score_beyond_control"] is None


def test_without_a_control_or_a_baseline_there_is_no_score_of_the_control():
    table = wide(1, 50, 3)
    for arguments in ({}, {"control": wide(3, 50, 3), "calculate_baseline": False}):
        assert "score_of_control" not in assess_mpuccs(table, table, **arguments).scores
