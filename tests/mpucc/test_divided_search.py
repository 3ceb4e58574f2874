"""A search divided into tasks equals that of the kernels in every array."""

from functools import cached_property

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import assess_mpuccs
from privacy_assets.mpucc.divided_level import LARGEST_SHARE, BucketRows, Division
from privacy_assets.mpucc.divided_search import DividedSearch
from privacy_assets.mpucc.kernels.search import SearchInput, find_mpuccs, search_levels
from privacy_assets.mpucc.placed_tables import View, columns_to_place
from tests.engines import ShufflingEngine
from tests.examples import examples
from tests.mpucc.search_cases import agree, searches


@settings(max_examples=examples(200), deadline=None)
@given(searches(), st.sampled_from([8, 20, 50, 150]), st.integers(1, 1000))
def test_tasks_find_what_the_kernels_find(case, rows_per_task, seed):
    tables, arguments = case
    agree(ShufflingEngine(rows_per_task=rows_per_task, seed=seed), tables, arguments)


class RecordingEngine(ShufflingEngine):
    """Records how many rows each call of a reducing function gets."""

    def map_reduce(self, batches, function, schema, key, reduce, reduced):
        def record(table):
            # A blob begins with its numbers of open, other synthetic, and original rows.
            heads = [np.frombuffer(blob, np.int64, 3) for blob in table.column("rows").to_pylist()]
            self.n_rows.append(int(np.sum(heads)))
            return reduce(table)

        return super().map_reduce(batches, function, schema, key, record, reduced)

    @cached_property
    def n_rows(self):
        return []


def skewed_table(n_values, share, n_rows=20_000):
    """Columns in which one value has a share of the rows, so that every first column leaves one large bucket."""
    rng = np.random.default_rng(5)
    columns = [np.where(rng.random(n_rows) < share, 0, rng.integers(0, n, n_rows)) for n in n_values]
    return columns, n_values, n_rows // 2, np.ones(n_rows, np.int32)


MANY = [900, 400, 300, 200]


@pytest.mark.parametrize(
    ("n_values", "share", "records_per_person", "rows_per_batch"),
    [
        (MANY, 0.9, None, 1_000),
        (MANY, 0.99, 40, 1_000),
        ([2] * 7, 0.9, None, 50),
        ([2] * 6, 0.0, None, 50),
        ([2] * 7, 0.9, 40, 1_000),
        ([2, 1, 900, 2, 30], 0.9, 2, 1_000),
        ([9_000, 2, 2, 2], 0.9, None, 1_000),
    ],
)
def test_one_value_in_most_rows_does_not_end_in_one_task(n_values, share, records_per_person, rows_per_batch):
    rows_per_task = 1_000
    tables = skewed_table(n_values, share)
    columns, _, n_synthetic, weights = tables
    subjects = None
    if records_per_person is not None:
        is_original = np.arange(len(weights)) >= n_synthetic
        subjects = np.where(is_original, np.arange(len(weights)) // records_per_person, -1).astype(np.int32)
    engine = RecordingEngine(rows_per_task=rows_per_task, rows_per_batch=rows_per_batch)
    with engine.place(columns_to_place(columns, weights, subjects)) as batches:
        asked = SearchInput(*tables, 3, subjects)
        search = DividedSearch(engine, batches, asked)
        found = search_levels(search, 1, None)
    expected = find_mpuccs(asked)
    for name in ("combos", "combo_of_row", "partner_of_row", "together_of_row", "was_exhausted"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(found.profile.n_unique, expected.profile.n_unique)
    assert len(engine.n_rows) == search.n_tasks > 1
    assert 0 < max(engine.n_rows) == search.largest_task <= LARGEST_SHARE * rows_per_task


def test_large_buckets_are_divided_down_to_whole_combinations():
    columns, n_codes, _, _ = skewed_table(MANY, 0.9)
    combos = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]], np.int16)
    rows = BucketRows(columns, n_codes)
    parts = Division(rows, combos, 1_000, 10).parts
    # What was counted in buckets would take more memory than the table.
    assert {within for within, _ in rows._counts} == {()}
    assert rows._rows == {}
    assert {len(part.prefix) for part in parts} == {1, 2, 3}
    assert all(part.is_whole == (len(part.prefix) == 3) for part in parts)
    assert [part.prefix for part in parts if part.is_base] == [[0, 1], [0, 2], [1, 2]]


@pytest.mark.parametrize(
    ("people", "changed"),
    [([0, 0, 1], []), ([4, 4, 6], []), ([0, 1, 1], [1, 2, 3]), ([1, 1, 0], [1, 2, 3]), ([0, 0, -1], [1, 2, 3])],
)
def test_people_are_sent_again_unless_only_their_numbers_differ(people, changed):
    weights = np.ones(4, np.int32)
    placed = View(np.arange(4), (0,), weights, np.array([-1, 3, 3, 7], np.int32), n_blobs=1)
    asked = SearchInput([np.zeros(4, np.uint8)], [1], 1, weights, 1, np.array([-1, *people], np.int32))
    sent = placed.changed(asked)
    assert sent.number.tolist() == changed
    assert sent.person.tolist() == [asked.subjects[row] for row in changed]


def people_table(n_people, seed):
    rng = np.random.default_rng(seed)
    visits = rng.integers(1, 4, n_people).sum()
    return pd.DataFrame(
        {
            "person": rng.integers(0, n_people, visits).astype(str),
            "age": rng.integers(18, 90, visits),
            "sex": rng.choice(["a", "b"], visits, p=[0.9, 0.1]),
            "zip": rng.integers(0, 200, visits).astype(str),
        }
    )


class CountingEngine(ShufflingEngine):
    """Counts how often tables are placed."""

    def place(self, columns):
        self.placed.append(columns)
        return super().place(columns)

    @cached_property
    def placed(self):
        return []


@pytest.mark.parametrize("n_synthetic", [200, 500])
@pytest.mark.parametrize("deduplicate", [True, False])
@pytest.mark.parametrize("person", [None, "person"])
def test_an_assessment_with_control_does_not_depend_on_the_engine_and_places_the_tables_once(
    person, deduplicate, n_synthetic
):
    original, control = people_table(200, 0), people_table(150, 1).assign(person=lambda t: "c" + t["person"])
    synthetic = pd.concat([people_table(n_synthetic, 2), original.head(30)], ignore_index=True).drop(columns="person")
    if person is None:
        original, control = original.drop(columns="person"), control.drop(columns="person")
    counting = CountingEngine(rows_per_task=60)
    expected, found = (
        assess_mpuccs(original, synthetic, control, person=person, deduplicate=deduplicate, n_threads=1, engine=engine)
        for engine in (None, counting)
    )
    assert len(counting.placed) == 1
    assert found.scores == expected.scores
    assert found.control == expected.control
    assert found.settings == expected.settings
    pd.testing.assert_frame_equal(found.details, expected.details)
    pd.testing.assert_frame_equal(found.tree, expected.tree)
    assert len(expected.details) > 0
