"""The scores agree with enumeration in plain Python, on every kind of column."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.disclosure import column_set_evidence, nearest_evidence, pooled_records, shifted_copies
from privacy_assets.disclosure.criteria import CRITERIA, number_of_closest
from privacy_assets.disclosure.kernels.nearest import Compared, Grids, find_closest
from privacy_assets.disclosure.pooled_records import pool_records
from privacy_assets.disclosure.scores import (
    Attack,
    Workers,
    gather_evidence,
    plant_copies,
    score_records,
)
from tests.examples import examples
from tests.mixed_tables import table_pairs
from tests.reference import disclosure as reference

UNIT = 1000
COMPARED = {
    *("singled_out", "linked", "claim_score", "n_claims", "n_right", "guessed", "closeness", "is_rare"),
    *("n_beyond_opposite", "relative_distance"),
}
"""Evidence that `compare` compares with a reference; precision is compared as part of the score of claims."""


def evidence_of(original, control, synthetic, people=None, known=None, max_known=3, rows=None, named=()):
    people = {} if people is None else dict(zip(("original", "control"), people, strict=True))
    records = pool_records({"original": original, "control": control, "synthetic": synthetic}, people)
    known = range(len(records.columns)) if known is None else known
    attack = Attack(np.array(known), max_known, np.arange(records.n_real) if rows is None else rows, named)
    with Workers(2, None) as workers:
        return gather_evidence(records, attack, workers), records, attack


def compare(original, control, synthetic, people=None, known=None, max_known=3):
    found, records, _ = evidence_of(original, control, synthetic, people, known, max_known)
    pool = pd.concat([original.astype(object), control.astype(object)], ignore_index=True)
    real, made, has_distance = reference.plain_tables(pool, synthetic.astype(object))
    assert records.is_number.tolist() == has_distance
    owners = records.people.tolist() if people is not None else list(range(len(real)))
    columns = list(range(len(pool.columns))) if known is None else list(known)
    sets = reference.all_sets(columns, max_known)
    in_bins, made_in_bins = reference.binned(real, made, has_distance)
    unit = min(UNIT, 65_535 // len(has_distance))
    placed, made_placed = reference.places(real, made, has_distance, unit)
    score, n_claims, n_right, _ = reference.claims(real, made, sets)
    can_be_rare = [kind != "boolean" for kind in records.kinds]
    unique, unique_in_bins = (reference.distinct(rows, made) for rows in (made, made_in_bins))
    assert found["n_claims"].T.tolist() == n_claims
    assert found["n_right"].T.tolist() == n_right
    assert found["claim_score"] == pytest.approx([float(own) for own in score], abs=1e-3)
    for i, x in enumerate(real):
        assert found["singled_out"][i] == reference.is_singled_out(in_bins[i], in_bins, owners, unique_in_bins, sets)
        assert found["linked"][i] == reference.is_linked(x, unique, sets)
        assert found["closeness"][i] == max(reference.closeness(x, s, real, has_distance) for s in made)
        assert found["is_rare"][:, i].tolist() == reference.are_rare(x, real, owners, made, can_be_rare)
        relative = reference.relative_distance(i, placed, owners, made_placed, has_distance, unit)
        assert found["relative_distance"][i] == pytest.approx(relative)
        for j in range(len(x)):
            expected = reference.guess(in_bins[i], placed[i], made_placed, made_in_bins, j, columns, has_distance, unit)
            assert found["guessed"][j, i] == pytest.approx(float(expected))
    assert found["n_beyond_opposite"].tolist() == reference.beyond_opposite(real, owners, made, has_distance)
    assert found["compared_share"] == 1
    assert set(found) == COMPARED | {"precision", "compared_share", "n_closest"}
    return found


def draw_tables(data):
    """Draw originals, a control and synthetic records with the same few values per column."""
    pool, synthetic = data.draw(table_pairs(max_columns=5))
    cut = data.draw(st.integers(0, len(pool)))
    if cut in (0, len(pool)):
        return pool, pool, synthetic
    return pool[:cut], pool[cut:], synthetic


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_scores_are_those_of_enumeration(data):
    compare(*draw_tables(data))


def mixed(n, seed):
    random = np.random.default_rng(seed)
    skewed = np.round(random.exponential(30, n), 1)
    return pd.DataFrame(
        {
            "age": random.integers(18, 90, n),
            "income": np.where(random.random(n) < 0.1, np.nan, skewed),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 400, n), unit="D"),
            "town": random.choice([f"town {i}" for i in range(12)], n),
            "smokes": random.random(n) < 0.3,
        }
    )


@pytest.mark.parametrize("seed", range(2))
def test_numbers_of_many_values_are_in_bins(seed):
    tables = [mixed(n, 10 * seed + i) for i, n in enumerate((40, 25, 50))]
    found = compare(*tables)
    assert 0 < found["singled_out"].sum() < len(found["singled_out"])


def test_people_and_known_columns_are_those_given():
    tables = [mixed(n, i) for i, n in enumerate((30, 20, 40))]
    random = np.random.default_rng(0)
    people = [np.unique(random.integers(0, n // 2, n), return_inverse=True)[1] for n in (30, 20)]
    compare(*tables, people=people, known=[0, 3, 4], max_known=2)


def test_values_of_more_than_64_columns_are_claimed():
    random = np.random.default_rng(7)
    tables = [pd.DataFrame(random.integers(0, 2, (n, 70))).add_prefix("c") for n in (14, 10, 12)]
    for table in tables:
        table["c68"] = table["c69"]
    found = compare(*tables, known=[0, 30, 69], max_known=2)
    assert found["n_claims"][68].sum() > found["n_claims"][67].sum() > 0


def test_blocks_of_few_records_and_few_sets_at_once_change_nothing(monkeypatch):
    def in_fives(*numbers):
        return (slice(begin, min(begin + 5, numbers[-1])) for begin in range(0, numbers[-1], 5))

    monkeypatch.setattr(column_set_evidence, "_blocks", in_fives)
    monkeypatch.setattr(column_set_evidence, "BYTES_AT_ONCE", 1)
    monkeypatch.setattr(column_set_evidence, "MATCHES_AT_ONCE", 1_000)
    monkeypatch.setattr(nearest_evidence, "ROWS_AT_ONCE", 7)
    random = np.random.default_rng(5)
    people = [np.unique(random.integers(0, n // 2, n), return_inverse=True)[1] for n in (30, 20)]
    compare(*(mixed(n, 20 + n) for n in (30, 20, 43)), people=people)


@pytest.mark.parametrize("n_synthetic", [40, 9000])
def test_numbers_of_more_values_than_bins_are_compared_in_blocks(n_synthetic):
    """Numbers of more than 255 values are only bounded at first, and 9,000 records are three blocks."""
    random = np.random.default_rng(3)
    original, control, synthetic = (
        pd.DataFrame({"a": random.integers(0, 5000, n), "b": random.integers(0, 800, n), "c": random.integers(0, 4, n)})
        for n in (200, 100, n_synthetic)
    )
    found, records, _ = evidence_of(original, control, synthetic)
    pool = pd.concat([original, control], ignore_index=True).to_numpy()
    made = synthetic.to_numpy()
    for i in range(0, 300, 29):
        total = np.zeros(len(made))
        for j in range(3):
            far = np.abs(made[:, j] - pool[i, j])
            if j == 2 and records.is_number[j]:
                assert len(np.unique(pool[:, j])) == 4
            n = (np.abs(pool[:, j] - pool[i, j])[None, :] <= far[:, None]).sum(axis=1)
            total += np.rint(-np.log(n / 300) * 1000) + 4000 * (far == 0)
        assert found["closeness"][i] == total.max()


def test_a_sample_has_the_scores_of_the_whole():
    tables = [mixed(n, i) for i, n in enumerate((60, 40, 80))]
    whole, _, attack = evidence_of(*tables)
    rows = np.array([3, 17, 55, 61, 99])
    some, records, part = evidence_of(*tables, rows=rows)
    with Workers(1, None) as workers:
        some = gather_evidence(records, part, workers, whole)
    for name in ("singled_out", "linked", "closeness"):
        assert some[name].tolist() == whole[name][rows].tolist()
    assert np.array_equal(some["claim_score"], whole["claim_score"][rows])
    assert np.array_equal(some["guessed"], whole["guessed"][:, rows])
    assert np.array_equal(some["n_claims"], whole["n_claims"][:, rows])
    assert len(attack.sets) == 5 + 10 + 10


def test_codes_of_many_categories_do_not_change_guesses(monkeypatch):
    tables = [mixed(n, i) for i, n in enumerate((60, 40, 80))]
    few, _, _ = evidence_of(*tables)
    monkeypatch.setattr(pooled_records, "LARGEST_INT16", 0)
    many, records, _ = evidence_of(*tables)
    assert pooled_records.distance_codes(records)[0].real.dtype == np.int32
    assert np.array_equal(many["guessed"], few["guessed"])


def test_the_closest_records_share_the_edge():
    found, _, _ = evidence_of(*[mixed(n, i) for i, n in enumerate((60, 40, 80))])
    scores = score_records([CRITERIA["near_copies"]], found, found)[:, 0]
    # 0.5 % of 100 records is less than one, so 12 count; those as close as the twelfth share what is left.
    assert scores.sum() == pytest.approx(12)
    edge = sorted(found["closeness"])[-12]
    assert set(np.flatnonzero(scores)) == set(np.flatnonzero(found["closeness"] >= edge))
    assert (scores[found["closeness"] > edge] == 1).all()
    assert len(set(scores[found["closeness"] == edge])) == 1


def test_half_a_percent_of_the_records_are_the_closest_and_enough_to_be_evidence():
    assert number_of_closest(6000, 2 / 3) == 30
    # The smallest m with share**m <= 0.0025, at least 12.
    assert [number_of_closest(1000, share) for share in (0.5, 2 / 3, 0.8)] == [12, 15, 27]
    assert number_of_closest(5, 0.5) == 5


def test_those_nearest_to_synthetic_records_are_a_tenth_who_share_the_edge():
    found, _, _ = evidence_of(*[mixed(n, i) for i, n in enumerate((300, 140, 300))])
    scores = score_records([CRITERIA["absence"]], found, found)[:, 0]
    assert scores.sum() == pytest.approx(-44)
    assert found["relative_distance"][scores == -1].max() < found["relative_distance"][scores == 0].min()
    few, _, _ = evidence_of(*[mixed(n, i) for i, n in enumerate((60, 40, 80))])
    assert score_records([CRITERIA["absence"]], few, few).sum() == pytest.approx(-30)


def test_what_is_known_with_a_named_column_agrees_as_by_enumeration():
    tables = [mixed(n, i)[["town", "smokes", "age"]] for i, n in enumerate((60, 40, 80))]
    for table in tables:
        table["age"] = table["age"] // 15
    people = [np.arange(n) // 2 for n in (60, 40)]
    found, records, _ = evidence_of(*tables, people=people, named=(1, 2))
    real = list(pd.concat(tables[:2]).itertuples(index=False, name=None))
    made = list(tables[2].itertuples(index=False, name=None))
    for place, wanted in enumerate((1, 2)):
        expected = [reference.agreement(x, real, records.people.tolist(), made, [0], wanted) for x in real]
        assert found["agreed"][place].tolist() == [is_so for is_so, _ in expected]
        assert found["agreement"][place] == pytest.approx([figure for _, figure in expected])
    assert 0 < found["agreed"].sum() < found["agreed"].size


def test_a_text_is_rare_in_either_reading():
    written = ["007"] + ["7"] * 40 + ["North"] * 20
    real, made = pd.DataFrame({"code": written, "n": range(61)}), pd.DataFrame({"code": ["007"] * 5, "n": range(5)})
    found, records, _ = evidence_of(real[:30], real[30:], made)
    assert found["is_rare"][0].tolist() == [True] + [False] * 60
    assert len(set(records.exact.real[0])) == 2


def test_of_many_differences_those_of_people_and_records_drawn_at_random_are_counted(monkeypatch):
    random = np.random.default_rng(0)
    original, control, synthetic = (pd.DataFrame(random.integers(0, 10**6, (n, 2))) for n in (400, 200, 400))
    synthetic[:80] = original[:80] + np.array([7, -3])
    whole, _, _ = evidence_of(original, control, synthetic)
    assert (whole["n_beyond_opposite"] >= 70).sum() == 80
    monkeypatch.setattr(shifted_copies, "MOST_DIFFERENCES", 600 * 400 // 4)
    found, _, _ = evidence_of(original, control, synthetic)
    assert found["compared_share"] == 0.5
    assert 5 < found["n_beyond_opposite"].max() < 40
    assert 5 < (found["n_beyond_opposite"] > 5).sum() < 40


def test_a_copy_in_a_table_of_many_columns_is_as_close_as_can_be():
    random = np.random.default_rng(1)
    original, control, synthetic = (
        pd.DataFrame(random.integers(0, 99, (n, 1_200)).astype(str)).add_prefix("c") for n in (40, 20, 30)
    )
    synthetic.iloc[7] = original.iloc[3]
    records = pool_records({"original": original, "control": control, "synthetic": synthetic}, {})
    attack = Attack(np.arange(2), 1, np.array([3, 4, 50]))
    with Workers(1, None) as workers:
        closeness = nearest_evidence.find_closest_records(records, attack, workers)["closeness"]
    # Each equal value counts four nats at least.
    assert closeness[0] > 1_200 * 4_000 > 10 * closeness[1:].max()


def test_middles_that_single_precision_rounds_still_bound_how_many_are_between():
    """Of 2**25 real records and more, middles are multiples of 4; here two are moved apart, by 4 records."""
    numbers, n_with = np.array([-1_000, -10.5, 0, 1, 10]), np.array([1 << 25, 1, 2, 3, 0])
    below = np.concatenate([[0], np.cumsum(n_with)])
    middles = (below[1:] - n_with / 2).astype(np.float32)[None]
    n_records, own, others = int(below[-1]), np.array([2]), np.array([1, 4])
    assert middles[0, 4] - middles[0, 2] == (below[4] - below[3] + 1) + 4
    weights = np.rint(-np.log(np.maximum(np.arange(n_records + 1), 1) / n_records) * 1_000).astype(np.int32)
    # At most 10 away are 0 and 1; the other record, 10.5 away, is one more. Its bound is smaller, so it comes first.
    equal, (real, block) = weights[[[2]]] + 4_000, (own[None].astype(np.int32) for own in (own, others))
    compared = Compared(
        real, block, middles[:, own], middles[:, others], np.array([True]), equal.astype(np.int32), 1_000.0, n_records
    )
    closeness = np.full(1, -1, np.int32)
    find_closest(0, 1, compared, Grids(weights, numbers, below, np.array([0, 5])), closeness)
    assert closeness[0] == weights[5] > weights[6]


def test_a_planted_copy_is_as_close_as_can_be():
    tables = [mixed(n, i) for i, n in enumerate((60, 40, 80))]
    _, records, attack = evidence_of(*tables)
    planted = plant_copies(records, [5, 70], [0, 1])
    with Workers(1, None) as workers:
        found = gather_evidence(planted, attack, workers)
    assert found["closeness"][[5, 70]].min() > np.delete(found["closeness"], [5, 70]).max()
    assert found["singled_out"][[5, 70]].all()
    assert found["linked"][[5, 70]].all()
