"""The score in which nobody is singled out whose record three or more people have, by its slow definition."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.mpucc.assess import MpuccAssessment, assess_mpuccs


def score_by_counting(original, synthetic, *, max_size, whose=None):
    """Look each synthetic record up by each combination; people are those who have a record, however often."""
    whose = range(len(original)) if whose is None else whose
    histories = {}
    for person, row in zip(whose, original.itertuples(index=False), strict=True):
        histories.setdefault(person, set()).add(tuple(row))
    alike = {}
    for person, rows in histories.items():
        alike.setdefault(frozenset(rows), []).append(person)
    records = {tuple(row) for row in synthetic.itertuples(index=False)}

    def is_singled_out(record):
        for size in range(1, max_size + 1):
            for places in combinations(range(original.shape[1]), size):
                own = tuple(record[place] for place in places)
                n_records = sum(tuple(other[place] for place in places) == own for other in records)
                n_rows = {
                    rows: n
                    for rows in alike
                    if (n := sum(tuple(row[place] for place in places) == own for row in rows))
                }
                if len(n_rows) == 1 and all(n_records <= n and len(alike[rows]) < 3 for rows, n in n_rows.items()):
                    return True
        return False

    protection = 1 - np.mean([is_singled_out(record) for record in records])
    baseline = 1 - 1 / original.nunique().prod()
    return 1 - min(protection / baseline, 1) if baseline > 0 else 1.0


def tables(draw, n_columns):
    rows = st.lists(st.tuples(*[st.integers(0, 2)] * n_columns), min_size=4, max_size=40)
    names = [f"c{place}" for place in range(n_columns)]
    return [pd.DataFrame(draw(rows), columns=names) for _ in range(2)]


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(1, 4), st.booleans())
def test_the_score_is_that_of_its_definition(data, n_columns, has_people):
    original, synthetic = tables(data.draw, n_columns)
    whose = None
    if has_people:
        n = len(original)
        whose = data.draw(st.lists(st.integers(0, n), min_size=n, max_size=n))
    people = {} if whose is None else {"person": "who"}
    given_original = original if whose is None else original.assign(who=whose)
    found = assess_mpuccs(given_original, synthetic, max_baseline_cols=min(3, n_columns), **people).scores
    assert found["score_of_lone_people"] <= found["privacy_risk_score"]
    if "records_per_draw" in found:
        return
    expected = score_by_counting(original, synthetic, max_size=min(3, n_columns), whose=whose)
    assert found["score_of_lone_people"] == pytest.approx(expected)


def coarse(seed, n_rows):
    return pd.DataFrame(np.random.default_rng(seed).integers(0, 2, (n_rows, 4))).add_prefix("c")


def test_a_coarse_table_singles_nobody_out_although_its_distinct_records_are_unique():
    found = assess_mpuccs(coarse(1, 1_000), coarse(2, 1_000))
    assert found.scores["privacy_risk_score"] == 1
    assert found.scores["score_of_lone_people"] == 0
    assert MpuccAssessment.from_artifact(found.to_artifact()).scores == found.scores
    alone = assess_mpuccs(coarse(1, 1_000), coarse(2, 1_000), calculate_baseline=False)
    assert "score_of_lone_people" not in alone.scores


def test_one_lone_person_beside_shared_records_is_singled_out():
    original = pd.DataFrame({"a": [0] * 5 + [1] * 3 + [2], "b": [0] * 5 + [1] * 3 + [0]})
    scores = assess_mpuccs(original, pd.DataFrame({"a": [0, 1, 2], "b": [0, 1, 0]})).scores
    assert scores["total_identified"] == 3
    # 1 of 3 records is identified, and the baseline protection is 5 / 6.
    assert scores["score_of_lone_people"] == pytest.approx(1 - (2 / 3) / (5 / 6))


def test_draws_of_more_records_than_originals_count_by_their_mean():
    original = pd.concat([coarse(1, 60).assign(c4=0), pd.DataFrame({f"c{j}": range(2, 22) for j in range(5)})])
    synthetic = pd.DataFrame(np.random.default_rng(3).integers(0, 22, (400, 5))).add_prefix("c")
    scores = assess_mpuccs(original, synthetic, max_baseline_cols=2).scores
    assert scores["records_per_draw"] < 400
    assert 0 < scores["score_of_lone_people"] <= scores["privacy_risk_score"]


def test_texts_that_are_spelled_alike_share_no_more_than_as_they_are_written():
    original = pd.DataFrame({"code": ["7"] * 4 + ["007"] + ["8"] * 4, "b": [0] * 5 + [1] * 4})
    found = assess_mpuccs(original, pd.DataFrame({"code": ["007", "8"], "b": [0, 1]})).scores
    assert found["score_of_lone_people"] > 0
