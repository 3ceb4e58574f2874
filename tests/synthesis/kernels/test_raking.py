"""Factors of groups are those of a computation record by record, and give groups the margins that are wanted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.synthesis.kernels.raking import MAX_BLOCKS, ROUNDS, blocks_of, rake
from tests.examples import examples
from tests.reference import raking as reference


def counted(one, other):
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1)
    return table


def numbered(values):
    return np.unique(values, return_inverse=True)[1]


@settings(max_examples=examples(100), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 150),
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4)),
    rows_per_person=st.integers(1, 3),
    pool=st.sampled_from([1.0, 20.0]),
)
def test_factors_are_those_of_a_computation_record_by_record(seed, n_rows, sizes, rows_per_person, pool):
    random = np.random.default_rng(seed)
    leaves, groups = (numbered(random.integers(0, size, n_rows)) for size in sizes[:2])
    blocks = numbered((random.integers(0, sizes[2], n_rows) + groups * (random.random(n_rows) < 0.5)) % sizes[2])
    people = np.bincount(groups) / rows_per_person
    found = rake(counted(leaves, blocks), counted(groups, leaves), counted(groups, blocks), people, pool)
    expected = reference.rake(leaves.tolist(), groups.tolist(), blocks.tolist(), people.tolist(), pool, ROUNDS)
    for (group, block), factor in expected.items():
        assert found[group, block] == pytest.approx(factor, rel=1e-9)
    assert (found > 0).all()


def test_groups_that_do_not_differ_are_left_alone_and_large_ones_get_their_own_margin():
    alike = np.array([[500.0, 500.0], [505.0, 495.0]])
    donors, rows = alike.sum(axis=0, keepdims=True), alike.sum(axis=1, keepdims=True)
    assert rake(donors, rows, alike, rows[:, 0], 100) == pytest.approx(np.ones((2, 2)))
    differ = np.array([[90_000.0, 10_000.0], [10_000.0, 90_000.0]])
    donors, rows = differ.sum(axis=0, keepdims=True), differ.sum(axis=1, keepdims=True)
    shares = donors / donors.sum() * rake(donors, rows, differ, rows[:, 0], 100)
    assert shares / shares.sum(axis=1, keepdims=True) == pytest.approx(differ / rows, abs=2e-3)
    half_way = rake(donors, rows, differ, rows[:, 0], 100_000) * donors / donors.sum()
    assert (half_way / half_way.sum(axis=1, keepdims=True))[0, 0] == pytest.approx(0.7, abs=1e-3)


@settings(max_examples=examples(100), deadline=None)
@given(counts=st.lists(st.integers(1, 1000), min_size=1, max_size=40))
def test_blocks_are_few_neighborhoods_of_about_equal_frequency(counts):
    blocks = blocks_of(np.array(counts, dtype=float))
    assert sorted(set(blocks.tolist())) == list(range(blocks.max() + 1))
    assert (np.diff(blocks) >= 0).all()
    assert blocks.max() + 1 <= MAX_BLOCKS
    if len(counts) <= MAX_BLOCKS:
        assert blocks.tolist() == list(range(len(counts)))
        return
    largest = np.bincount(blocks, counts).max()
    assert largest <= sum(counts) / MAX_BLOCKS + max(counts)
