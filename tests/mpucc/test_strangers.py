"""What other real people would score in place of the records agrees with enumeration, also where it is continued."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.mpucc.assess import MpuccAssessment, assess_mpuccs
from tests.examples import examples
from tests.reference.mpucc import singled_out
from tests.reference.mpucc_draws import draws, most_records, scores_of_draws


def expected_score(originals, attackers, deduplicate, max_size, n_records):
    """Score records in place of synthetic ones, by enumeration; if there are fewer, continue the score."""
    return continued(
        originals,
        attackers,
        deduplicate,
        n_records,
        lambda n: [
            score for _, score in scores_of_draws(originals, attackers, max_size, deduplicate=deduplicate, n_records=n)
        ],
    )


def expected_share_singled_out(originals, attackers, deduplicate, max_size, n_records):
    """Count the originals whom records single out, by enumeration; if there are fewer, continue their share."""
    people = list(dict.fromkeys(originals)) if deduplicate else originals
    return continued(
        originals,
        attackers,
        deduplicate,
        n_records,
        lambda n: [
            len(singled_out(people, drawn, max_size)) / len(people)
            for drawn in draws(originals, attackers, n, deduplicate)
        ],
    )


def continued(originals, attackers, deduplicate, n_wanted, shares_of):
    """Step from n / 4 over n / 2 to n records, and as many doublings further as it takes, in logits."""
    n = min(n_wanted, len(set(attackers)) if deduplicate else len(attackers))
    last = sum(shares_of(n)) / len(shares_of(n))
    if n == n_wanted or n < 4:
        return last
    half, quarter = (sum(some[:2]) / len(some[:2]) for some in (shares_of(n // 2), shares_of(n // 4)))
    y0, y1, y2 = (math.log(p / (1 - p)) for p in (min(max(p, 1e-4), 1 - 1e-4) for p in (last, half, quarter)))
    doublings = math.log2(n_wanted / n)
    bends = (y0 - y1) - (y1 - y2) < 0
    there = y0 + doublings * (y0 - y1) + bends * doublings * (doublings + 1) / 2 * ((y0 - y1) - (y1 - y2))
    # One standard error, by the change of the result for a change of each of the three logits.
    q = bends * doublings * (doublings + 1) / 2
    variance = 0.0
    for y, by, n_records in ((y0, 1 + doublings + q, n), (y1, doublings + 2 * q, n), (y2, q, n / 2)):
        p = 1 / (1 + math.exp(-y))
        variance += by**2 / (p * (1 - p) * n_records)
    there -= math.sqrt(variance)
    if y0 > y1:
        there = max(there, y0)
    return 0.0 if last == 0 else 1 / (1 + math.exp(-there))


records = st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=12)


@settings(max_examples=examples(80), deadline=None)
@given(
    records,
    st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=40),
    records,
    st.booleans(),
    st.sampled_from([1, 2, 3]),
)
def test_strangers_are_scored_in_place_of_as_many_synthetic_records(original, synthetic, control, deduplicate, size):
    tables = [pd.DataFrame(rows, columns=list("abc")) for rows in (original, synthetic, control)]
    scores = assess_mpuccs(*tables, max_baseline_cols=size, deduplicate=deduplicate).scores
    n_synthetic = len(set(synthetic) if deduplicate else synthetic)
    asked = original, control, deduplicate, size
    n_scored = min(n_synthetic, most_records(original, deduplicate))
    assert scores["score_of_strangers"] == pytest.approx(expected_score(*asked, n_scored))
    # Everybody who is published singles out, not only as many as there are originals.
    expected = expected_share_singled_out(*asked, n_synthetic)
    assert scores["originals_singled_out_by_strangers"] == pytest.approx(expected)
    # Groups of fewer than three columns are not scored alone.
    assert scores["score_of_related_columns"] == scores["privacy_risk_score"]
    assert scores["score_of_strangers_on_related_columns"] == scores["score_of_strangers"]


def wide(seed, n_rows, n_columns=8):
    """Records whose columns are all alike: three of them single out nearly everybody."""
    return pd.DataFrame(np.random.default_rng(seed).integers(0, 6, (n_rows, n_columns))).add_prefix("c")


def test_strangers_score_the_same_whatever_is_released():
    original, other, control = wide(1, 400), wide(2, 400), wide(3, 400)
    half = pd.concat([original[:200], other[:200]])
    found = [assess_mpuccs(original, released, control, max_baseline_cols=3) for released in (other, half, original)]
    of_strangers = [each.scores["score_of_strangers"] for each in found]
    assert of_strangers == pytest.approx([0.8675] * 3, abs=1e-4)
    assert found[0].scores["privacy_risk_score"] == pytest.approx(0.8675, abs=0.05)
    assert MpuccAssessment.from_artifact(found[1].to_artifact()) == found[1]


def fewer_values(seed, n_rows, n_columns=6):
    random = np.random.default_rng(seed)
    return pd.DataFrame(np.floor(random.random((n_rows, n_columns)) ** 2 * 8).astype(int)).add_prefix("c")


@pytest.mark.parametrize("figure", ["score_of_strangers", "originals_singled_out_by_strangers"])
def test_fewer_strangers_are_continued_to_no_more_than_enough_of_them_reach(figure):
    """Scores fall with the number of records, shares of originals who are singled out grow."""
    continued_by, raw_by = [], []
    for seed in range(6):
        original, released, control = (fewer_values((seed, place), 1_200) for place in range(3))
        enough, fewer, as_they_are = (
            assess_mpuccs(original, records, people, max_baseline_cols=3).scores[figure]
            for records, people in ((released, control), (released, control[:400]), (released[:400], control[:400]))
        )
        falls = figure == "score_of_strangers"
        assert fewer <= as_they_are if falls else fewer >= as_they_are
        continued_by.append(fewer - enough)
        raw_by.append(as_they_are - enough)
    # On the low side: too high a figure would leave more to what decides instead.
    assert np.mean(continued_by) <= 0, continued_by
    if figure == "score_of_strangers":
        assert np.mean(raw_by) > 0
    else:
        assert np.mean(raw_by) <= np.mean(continued_by)


def beside_noise(seed, n_rows, n_noise):
    random = np.random.default_rng(seed)
    cause = random.normal(size=(n_rows, 1))
    related = np.clip(np.floor(cause + random.normal(size=(n_rows, 4)) + 3), 0, 5)
    noise = random.integers(0, 6, (n_rows, n_noise))
    return pd.DataFrame(np.hstack([related, noise]).astype(int)).add_prefix("c")


def test_columns_that_depend_on_no_others_are_scored_alone_as_a_table_without_the_others():
    tables = [beside_noise(seed, n, 8) for seed, n in ((1, 500), (2, 1_500), (3, 500))]
    found = assess_mpuccs(*tables, max_baseline_cols=3).scores
    alone = assess_mpuccs(*(table[["c0", "c1", "c2", "c3"]] for table in tables), max_baseline_cols=3).scores
    assert found["score_of_related_columns"] == alone["privacy_risk_score"] < found["privacy_risk_score"]
    assert found["score_of_strangers_on_related_columns"] == alone["score_of_strangers"] < found["score_of_strangers"]


def test_of_several_groups_the_one_counts_where_the_records_exceed_strangers_most():
    def two_groups(seed, n):
        own, other = (beside_noise((seed, place), n, 0) for place in (0, 1))
        return pd.concat([own, other.add_prefix("d")], axis=1)

    original, released, control = (two_groups(seed, 600) for seed in (1, 2, 3))
    # Half of the people are copied in the second group alone.
    second = [name for name in original if name.startswith("d")]
    copied = released.copy()
    copied.loc[:299, second] = original.loc[:299, second].to_numpy()
    found = assess_mpuccs(original, copied, control, max_baseline_cols=4).scores
    alone = assess_mpuccs(*(table[second] for table in (original, copied, control)), max_baseline_cols=4).scores
    assert found["score_of_related_columns"] == alone["privacy_risk_score"]
    assert found["score_of_strangers_on_related_columns"] == alone["score_of_strangers"]


def test_people_with_several_rows_are_strangers_by_their_records():
    tables = [beside_noise(seed, 400, 4) for seed in (1, 2, 3)]
    whose = [table.assign(person=np.arange(400) // 2 + 1_000 * place) for place, table in enumerate(tables)]
    found = assess_mpuccs(whose[0], tables[1], whose[2], person="person", max_baseline_cols=3).scores
    released = assess_mpuccs(whose[0], tables[2], person="person", max_baseline_cols=3).scores
    assert found["score_of_strangers"] == released["privacy_risk_score"]
    assert found["originals_singled_out_by_strangers"] == released["originals_singled_out"]
    related = ["c0", "c1", "c2", "c3"]
    people = [table[[*related, "person"]] for table in whose[::2]]
    alone = assess_mpuccs(people[0], tables[1][related], people[1], person="person", max_baseline_cols=3).scores
    assert found["score_of_related_columns"] == alone["privacy_risk_score"]
    assert found["score_of_strangers_on_related_columns"] == alone["score_of_strangers"]


def test_without_a_control_or_a_baseline_there_are_no_scores_of_strangers():
    table = wide(1, 50, 3)
    for arguments in ({}, {"control": wide(3, 50, 3), "calculate_baseline": False}):
        assert not [name for name in assess_mpuccs(table, table, **arguments).scores if "strangers" in name]
