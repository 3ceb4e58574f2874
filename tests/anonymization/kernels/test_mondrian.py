"""Every cut of the kernel is the best allowable one by enumeration, and no allowable cut is left."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.kernels.models import (
    ENTROPY,
    RECURSIVE,
    row_models,
    values_hold,
)
from privacy_assets.anonymization.kernels.mondrian import partition_rows
from privacy_assets.anonymization.kernels.mondrian_cuts import Lists, sort_by_count
from privacy_assets.anonymization.kernels.mondrian_rows import pack_rows
from privacy_assets.anonymization.kernels.mondrian_tree import build_tree, route_rows
from tests.anonymization.kernels.mondrian_tables import (
    check_partition,
    classes_of,
    describe,
    even,
    limits,
    models_of_one,
    only_compiled,
    wide_table,
)
from tests.compiled import compiled
from tests.examples import examples
from tests.reference import mondrian as reference

sort_by_count = compiled(sort_by_count)


@st.composite
def coded_tables(draw, max_rows=40):
    """Codes of ordered dimensions and sets, people, and a sensitive column."""
    n_rows = draw(st.integers(1, max_rows))
    kinds = draw(st.lists(st.sampled_from(["ordered", "set"]), min_size=1, max_size=3))
    columns = []
    for _ in kinds:
        values = draw(st.lists(st.integers(0, draw(st.integers(0, 9))), min_size=n_rows, max_size=n_rows))
        columns.append(np.unique(values, return_inverse=True)[1])
    people = np.unique(draw(st.lists(st.integers(0, 12), min_size=n_rows, max_size=n_rows)), return_inverse=True)[1]
    secrets = st.integers(0, draw(st.sampled_from([1, 4, 1000])))
    secret = np.unique(draw(st.lists(secrets, min_size=n_rows, max_size=n_rows)), return_inverse=True)[1]
    return kinds, columns, people.astype(np.int32), secret.astype(np.int32)


@given(coded_tables(), limits(), st.integers(1, 6), st.booleans(), st.booleans())
@settings(max_examples=examples(300), deadline=None)
def test_every_cut_is_the_best_allowable_one_and_none_is_left(table, limit, k, is_by_range, by_people):
    kinds, columns, people, secret = table
    (kind, least, c, most, is_ordered), wanted = limit
    dimensions, n_values = describe(kinds, columns)
    models = models_of_one(k, secret, kind, least, c, most, is_ordered, is_by_range=is_by_range, by_people=by_people)
    places = [dict(enumerate(even(n))) for n in n_values]
    coded = (kinds, columns, n_values, dimensions, places, people if by_people else None, secret)
    known, found = check_partition(coded, models, k, wanted, is_by_range)
    if len(found.cuts):
        assert all(known.holds(members, k, wanted) for members in classes_of(found))


@only_compiled
@pytest.mark.parametrize("by_people", [False, True])
@pytest.mark.parametrize("k", [1, 3, 25])
def test_threads_and_sizes_of_tasks_change_nothing(k, by_people):
    kinds, columns = wide_table(20_000)
    dimensions, n_values = describe(kinds, columns)
    people = np.arange(20_000, dtype=np.int32) // 2
    hashes = set()
    for n_threads, task_rows in ((1, None), (1, 100), (2, 500), (2, 5000)):
        models = row_models(k)._replace(counts_people=by_people)
        found = partition_rows(
            pack_rows(columns, n_values), dimensions, models, person=people, n_threads=n_threads, task_rows=task_rows
        )
        classes = np.repeat(np.arange(len(found.begins)), np.diff(found.edges))
        boxes = [
            (np.minimum.reduceat(c[found.records], found.begins), np.maximum.reduceat(c[found.records], found.begins))
            for c in columns
        ]
        lines = np.column_stack([found.records, *(end[classes] for box in boxes for end in box)])
        lines = lines[np.argsort(lines[:, 0])]
        hashes.add(hashlib.sha256(lines.tobytes() + found.cuts.tobytes()).hexdigest())
    assert len(hashes) == 1


@pytest.mark.parametrize("is_by_range", [False, True])
def test_more_values_than_bins_leave_no_allowable_cut(is_by_range):
    kinds, columns = wide_table(3000, seed=1)
    dimensions, n_values = describe(kinds, columns)
    k = 4
    found = partition_rows(pack_rows(columns, n_values), dimensions, row_models(k, is_by_range=is_by_range))
    for members in classes_of(found):
        assert len(members) >= k
        for kind, column in zip(kinds, columns, strict=True):
            counts = np.unique(column[members], return_counts=True)[1]
            left = np.cumsum(np.sort(counts)[::-1] if kind == "set" else counts)
            assert not ((left >= k) & (len(members) - left >= k)).any()


@only_compiled
def test_more_than_65535_distinct_values_are_told_apart():
    codes = np.random.default_rng(0).permutation(70_000)
    dimensions, n_values = describe(["ordered"], [codes])
    found = partition_rows(pack_rows([codes], n_values), dimensions, row_models(1))
    assert len(found.begins) == 70_000
    assert codes[found.records].tolist() == list(range(70_000))


@pytest.mark.parametrize("kind", ["ordered", "set"])
def test_ties_at_the_cut_stay_together(kind):
    codes = np.array([0] * 5 + [1] * 5 + [2] * 2)
    dimensions, n_values = describe([kind], [codes])
    found = partition_rows(pack_rows([codes], n_values), dimensions, row_models(3))
    assert sorted(len(members) for members in classes_of(found)) == [5, 7]


def test_a_median_that_is_not_allowable_gives_way_to_the_nearest_cut_that_is():
    codes = np.array([0] * 2 + [1] * 9 + [2] * 3)
    dimensions, n_values = describe(["ordered"], [codes])
    found = partition_rows(pack_rows([codes], n_values), dimensions, row_models(3, is_by_range=True))
    assert sorted(len(members) for members in classes_of(found)) == [3, 11]


def test_a_dimension_without_an_allowable_cut_gives_way_to_the_next():
    widest, other = np.array([0, 5, 5, 5, 5, 5, 5, 5]), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    dimensions, n_values = describe(["ordered", "ordered"], [widest, other])
    found = partition_rows(pack_rows([widest, other], n_values), dimensions, row_models(4, is_by_range=True))
    assert len(found.begins) == 2


def test_widths_come_from_the_rows_of_the_class_not_from_a_stale_box():
    # Cut by the first column, the left class spans 2 of 9 in the second one although its parent spanned all.
    first = np.array([0] * 4 + [9] * 8)
    second = np.array([0, 1, 0, 1, 0, 9, 8, 7, 6, 5, 4, 3])
    third = np.array([0, 0, 5, 5, 0, 9, 8, 7, 6, 5, 4, 3])
    dimensions, n_values = describe(["ordered"] * 3, [first, second, third])
    found = partition_rows(pack_rows([first, second, third], n_values), dimensions, row_models(2, is_by_range=True))
    cut_of_left = [cut for cut in found.cuts.tolist() if found.records[cut[0] : cut[1]].max() < 4]
    assert [cut[3] for cut in cut_of_left] == [2]


def test_recursive_diversity_sorts_its_counts_descending():
    sensitive = np.array([0, 1, 1, 1, 2, 2], np.int32)
    codes = np.array([0, 0, 0, 1, 1, 1])
    dimensions, n_values = describe(["ordered"], [codes])
    models = models_of_one(1, sensitive, RECURSIVE, 2.0, 1.5)
    # Both sides have counts 2 and 1: 2 < 1.5 x 1 is false, however the values are numbered.
    found = partition_rows(pack_rows([codes], n_values), dimensions, models, sensitive=sensitive[:, None])
    assert len(found.begins) == 1


@pytest.mark.parametrize("is_ordered", [False, True])
def test_closeness_of_a_constant_column_is_zero(is_ordered):
    models = models_of_one(1, np.zeros(5, np.int64), most=0.0, is_ordered=is_ordered)
    assert values_hold(np.array([3]), np.array([0]), 3, models)


@only_compiled
@pytest.mark.parametrize("limit", [{"kind": ENTROPY, "least": 3.0}, {"most": 0.95}, {"most": 0.2, "is_ordered": True}])
def test_classes_of_few_among_many_sensitive_values_meet_the_limits(limit):
    kinds, columns = wide_table(1500, seed=2)
    dimensions, n_values = describe(kinds, columns)
    rng = np.random.default_rng(5)
    secret = np.unique(rng.geometric(0.003, 1500), return_inverse=True)[1].astype(np.int32)
    models = models_of_one(3, secret, **limit)
    found = partition_rows(pack_rows(columns, n_values), dimensions, models, sensitive=secret[:, None])
    assert len(found.cuts) > 10 and len(np.unique(secret)) > 400
    wanted = [(0, "entropy", 3.0, 1.0)] if "kind" in limit else [(0, "t", limit["most"], "is_ordered" in limit)]
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    places = [dict(enumerate(even(n))) for n in n_values]
    known = reference.Table(rows, kinds, places, sensitive=[secret.tolist()])
    assert all(known.holds(members, 3, wanted) for members in classes_of(found))


def test_new_rows_of_the_same_codes_find_their_class():
    kinds, columns = wide_table(2000, seed=3)
    dimensions, n_values = describe(kinds, columns)
    found = partition_rows(pack_rows(columns, n_values), dimensions, row_models(5))
    tree = build_tree(found, columns, n_values, [kind == "set" for kind in kinds])
    classes = np.empty(2000, np.int64)
    classes[found.records] = np.repeat(np.arange(len(found.begins)), np.diff(found.edges))
    assert (route_rows(tree, np.column_stack(columns).astype(np.int64)) == classes).all()


def test_progress_ends_at_all_rows_and_what_it_raises_ends_the_work():
    kinds, columns = wide_table(4000)
    dimensions, n_values = describe(kinds, columns)
    seen = []
    arguments = (dimensions, row_models(5))
    partition_rows(pack_rows(columns, n_values), *arguments, on_rows=seen.append, task_rows=300, n_threads=2)
    assert seen == sorted(seen) and seen[-1] == 4000 and len(seen) > 5

    def stop(n_rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        partition_rows(pack_rows(columns, n_values), *arguments, on_rows=stop, task_rows=300, n_threads=2)


@pytest.mark.parametrize("n_listed", [0, 1, 2, 3, 4, 64, 65, 1_000])
def test_the_most_frequent_values_come_first_and_equally_frequent_ones_by_code(n_listed):
    rng = np.random.default_rng(n_listed)
    for most in (1, 5, 10**6):
        bins, tally = rng.permutation(2_000)[:n_listed], rng.integers(1, most + 1, n_listed)
        beyond = np.array([-7, -7])
        lists = Lists(np.append(bins, beyond), np.append(tally, beyond), np.zeros(n_listed + 2, np.int64))
        sort_by_count(n_listed, lists)
        expected = sorted(zip(bins.tolist(), tally.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
        assert list(zip(lists.bins.tolist(), lists.tally.tolist(), strict=True)) == [*expected, (-7, -7), (-7, -7)]
