"""A search divided into tasks equals that of the kernels in every array."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import assess_mpuccs
from privacy_assets.mpucc.divided_level import LARGEST_SHARE, Division
from privacy_assets.mpucc.divided_search import DividedSearch, columns_to_place
from privacy_assets.mpucc.kernels.search import find_mpuccs, search_levels
from tests.engines import ShufflingEngine
from tests.examples import examples
from tests.mpucc.search_cases import agree, searches


@settings(max_examples=examples(200), deadline=None)
@given(searches(), st.sampled_from([8, 20, 50, 150]), st.integers(1, 1000))
def test_tasks_find_what_the_kernels_find(case, rows_per_task, seed):
    tables, arguments = case
    agree(ShufflingEngine(rows_per_task=rows_per_task, seed=seed), tables, arguments)


def skewed_table(n_rows=20_000):
    """Columns in which one value has 90 % of the rows, so that every first column leaves one large bucket."""
    rng = np.random.default_rng(5)
    columns = [np.where(rng.random(n_rows) < 0.9, 0, rng.integers(0, n, n_rows)) for n in (900, 400, 300, 200)]
    return columns, [900, 400, 300, 200], n_rows // 2, np.ones(n_rows, np.int32)


@pytest.mark.parametrize("by_person", [False, True])
def test_one_value_in_most_rows_does_not_end_in_one_task(by_person):
    rows_per_task = 1_000
    tables = skewed_table()
    columns, _, n_synthetic, weights = tables
    people = np.where(np.arange(len(weights)) < n_synthetic, -1, np.arange(len(weights)) // 2).astype(np.int32)
    subjects = people if by_person else None
    engine = ShufflingEngine(rows_per_task=rows_per_task, rows_per_batch=1_000)
    with engine.place(columns_to_place(columns, weights, subjects)) as batches:
        search = DividedSearch(engine, batches, *tables, subjects, 3, None, 0.0, None)
        found = search_levels(
            search, only_with_first=False, max_combinations=None, with_profile=True, n_threads=1, on_progress=None
        )
    expected = find_mpuccs(*tables, subjects=subjects, max_size=3)
    for name in ("combo_of_row", "partner_of_row", "together_of_row", "was_exhausted"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (expected.combo_of_row >= 0).any()
    assert 0 < search.largest_task <= LARGEST_SHARE * rows_per_task


def test_large_buckets_are_divided_down_to_whole_combinations():
    columns, n_codes, _, _ = skewed_table()
    combos = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]], np.int16)
    parts = Division(columns, n_codes, combos, 1_000).parts
    assert {len(part.prefix) for part in parts} == {1, 2, 3}
    assert all(part.is_whole == (len(part.prefix) == 3) for part in parts)
    assert [part.prefix for part in parts if part.is_base] == [[0, 1], [0, 2], [1, 2]]


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


@pytest.mark.parametrize("person", [None, "person"])
def test_an_assessment_with_control_does_not_depend_on_the_engine(person):
    original, control = people_table(200, 0), people_table(150, 1).assign(person=lambda t: "c" + t["person"])
    synthetic = pd.concat([people_table(200, 2), original.head(30)], ignore_index=True).drop(columns="person")
    if person is None:
        original, control = original.drop(columns="person"), control.drop(columns="person")
    expected, found = (
        assess_mpuccs(original, synthetic, control, person=person, n_threads=1, engine=engine)
        for engine in (None, ShufflingEngine(rows_per_task=60))
    )
    assert found.scores == expected.scores
    assert found.control == expected.control
    assert found.settings == expected.settings
    pd.testing.assert_frame_equal(found.details, expected.details)
    pd.testing.assert_frame_equal(found.tree, expected.tree)
    assert len(expected.details) > 0
