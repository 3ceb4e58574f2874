"""An engine gives the same evidence as this process, however it divides the records."""

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.disclosure import divided_evidence, nearest_evidence
from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.divided_evidence import placed_by
from privacy_assets.disclosure.examination import attack_on
from privacy_assets.disclosure.nearest_evidence import Closest
from privacy_assets.disclosure.pooled_records import pool_records
from privacy_assets.disclosure.scores import Attack, Workers, gather_evidence, plant_copies
from privacy_assets.engine.local import LocalEngine
from tests.disclosure.test_scores import draw_tables, mixed
from tests.engines import ShufflingEngine
from tests.examples import examples


def pooled(original, control, synthetic, people=None):
    people = {} if people is None else dict(zip(("original", "control"), people, strict=True))
    return pool_records({"original": original, "control": control, "synthetic": synthetic}, people)


def require_same_evidence(records, attack, engine, whole=None):
    """Compare the evidence; of sums of floats, the order is that of the sets in both."""
    with Workers(1, None) as workers, placed_by(records, engine) as placed:
        assert placed.placed is not None
        expected = gather_evidence(records, attack, workers, whole)
        found = gather_evidence(placed, attack, workers, whole)
        assert set(found) == set(expected)
        for name, own in expected.items():
            assert np.array_equal(found[name], own), name
        return expected


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_any_tables_have_the_same_evidence(data):
    records = pooled(*draw_tables(data))
    n_columns, seed = len(records.columns), data.draw(st.integers(1, 9))
    known = data.draw(st.lists(st.sampled_from(range(n_columns)), min_size=1, unique=True).map(sorted))
    attack = Attack(np.array(known), data.draw(st.integers(1, 3)), np.arange(records.n_real))
    engine = ShufflingEngine(rows_per_task=1, rows_per_batch=data.draw(st.integers(1, 9)), seed=seed)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nearest_evidence, "ROWS_AT_ONCE", data.draw(st.integers(1, 9)))
        require_same_evidence(records, attack, engine)


@pytest.fixture
def tables():
    random = np.random.default_rng(2)
    people = [np.unique(random.integers(0, n // 2, n), return_inverse=True)[1] for n in (60, 50)]
    made = mixed(90, 12)
    # Copies, so that people are singled out and linked.
    original = mixed(60, 10)
    return original, mixed(50, 11), pd.concat([made, original[:9], made[:5]], ignore_index=True), people


@pytest.mark.parametrize("engine", [ShufflingEngine(), LocalEngine(rows_per_task=100, rows_per_batch=33)])
def test_planted_copies_and_columns_alone_have_the_same_evidence(tables, engine):
    records = pooled(*tables)
    attack = Attack(np.arange(5), 3, np.flatnonzero(records.people % 2 == 0))
    evidence = require_same_evidence(records, attack, engine)
    assert evidence["linked"].any() and evidence["singled_out"].any()
    with Workers(1, None) as workers, placed_by(records, engine) as placed:
        rows, places = attack.rows[3:8], [100, 3, 7, 8, 50]
        for own, of in ((records, placed), (records.only([4, 0, 2]), placed.only([4, 0, 2]))):
            asked = attack if own is records else attack_on(attack, records, [4, 0, 2])[1]
            whole = gather_evidence(own, asked, workers)
            assert np.array_equal(whole["linked"], gather_evidence(of, asked, workers)["linked"])
            copied = Attack(asked.known, 3, rows)
            mine, its = (
                gather_evidence(plant_copies(each, rows, places), copied, workers, whole) for each in (own, of)
            )
            assert mine["linked"].any()
            assert all(np.array_equal(mine[name], its[name]) for name in mine.keys() | its.keys())


def test_columns_beyond_a_word_and_chunks_of_one_set_have_the_same_evidence(monkeypatch):
    monkeypatch.setattr(divided_evidence, "BYTES_OF_CHUNK", 1)
    random = np.random.default_rng(7)
    made = [pd.DataFrame(random.integers(0, 2, (n, 70))).add_prefix("c") for n in (14, 10, 12)]
    for table in made:
        table["c68"] = table["c69"]
    records = pooled(*made)
    found = require_same_evidence(
        records, Attack(np.array([0, 30, 69]), 2, np.arange(24)), ShufflingEngine(rows_per_task=9)
    )
    assert found["n_claims"][68].sum() > 0


def test_an_assessment_by_an_engine_is_the_same(tables):
    original, control, synthetic, _ = tables
    original, control = (mixed(n, seed).assign(person=np.arange(n) // 2) for n, seed in ((240, 10), (200, 11)))
    control["person"] += 1_000
    alone, by_engine = (
        assess_disclosure(original, synthetic, control, person="person", quasi_identifiers=["age", "town"], engine=each)
        for each in (None, ShufflingEngine())
    )
    assert alone.scores == by_engine.scores
    pd.testing.assert_frame_equal(alone.criteria, by_engine.criteria)
    pd.testing.assert_frame_equal(alone.sensitive, by_engine.sensitive)


def test_tables_of_one_task_stay_here(tables):
    records = pooled(*tables)
    with placed_by(records, LocalEngine(rows_per_task=1_000)) as own:
        assert own is records


def test_more_matches_than_fit_are_found_here(tables, monkeypatch):
    records = pooled(*tables)
    monkeypatch.setattr("privacy_assets.disclosure.scores.MATCHES_AT_ONCE", 10)
    monkeypatch.setattr(divided_evidence, "gather_divided", None)
    require_same_evidence(records, Attack(np.arange(5), 2, np.arange(9)), ShufflingEngine())


@dataclass(frozen=True)
class Watched(ShufflingEngine):
    """An engine that remembers the bytes of all that its tasks receive and return."""

    seen: ClassVar[list[bytes]] = []

    def map_reduce(self, batches, function, schema, key, reduce, reduced):
        self.seen[:] = [pickle.dumps(each) for each in (batches, function, reduce)]

        def watched(given):
            for made in function(given):
                self.seen.extend(uncompressed(arrays) for arrays in made.column("arrays").to_pylist())
                yield made

        return super().map_reduce(batches, watched, schema, key, reduce, reduced)


def uncompressed(arrays):
    """Return the bytes of arrays as they are, not compressed."""
    return b"".join(own.tobytes() for own in divided_evidence._unpacked(arrays).values())


def values_seen(tables):
    """Return how many values of the tables are among the bytes that tasks received or returned."""
    records = pooled(*tables)
    require_same_evidence(records, Attack(np.arange(5), 2, np.arange(9)), Watched())
    original, control, synthetic, _ = tables
    values = pd.concat([original, control, synthetic])["income"].dropna().to_numpy()
    forms = [value.tobytes() for value in np.unique(values)] + [b"town "]
    return sum(any(form in each for each in Watched.seen) for form in forms)


def test_no_value_reaches_a_task(tables):
    for table in tables[:3]:
        # A number like none that is made of counts.
        table["income"] = table["income"] * np.pi + 7e9
    assert values_seen(tables) == 0


def test_the_search_would_find_a_value(tables, monkeypatch):
    monkeypatch.setattr(Closest, "without_values", lambda self: self)
    assert values_seen(tables) > 50
