"""Every cut of the kernel is the best allowable one by enumeration, and no allowable cut is left."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.kernels.bit_sets import BITS
from privacy_assets.kernels.mondrian import make_dimensions, partition_rows
from privacy_assets.kernels.mondrian_cuts import (
    DIMENSION,
    FEW_ROWS,
    IS_COARSE,
    MOST_BINS,
    N_HEAD,
    RIGHT_LOW,
    THRESHOLD,
    decide,
    decide_on_codes,
    make_box,
    make_lists,
    set_bins,
)
from privacy_assets.kernels.mondrian_few import count_few_rows, decide_on_few, fit_words
from privacy_assets.kernels.mondrian_models import (
    DISTINCT,
    ENTROPY,
    NO_L,
    RECURSIVE,
    Models,
    distance_to_table,
    no_evidence,
    row_models,
)
from privacy_assets.kernels.mondrian_rows import count_rows, pack_rows
from privacy_assets.kernels.mondrian_tree import build_tree, route_rows
from tests.reference import mondrian as reference


def even(n):
    return np.arange(n) / max(n - 1, 1)


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
    secret = np.unique(draw(st.lists(st.integers(0, 4), min_size=n_rows, max_size=n_rows)), return_inverse=True)[1]
    return kinds, columns, people.astype(np.int32), secret.astype(np.int32)


@st.composite
def limits(draw):
    """A diversity and a closeness, each there or not, as the kernel and as the reference take them."""
    kind = draw(st.sampled_from([NO_L, DISTINCT, ENTROPY, RECURSIVE]))
    least = draw(st.sampled_from([1.0, 2.0, 3.0]))
    c = draw(st.sampled_from([0.5, 1.0, 3.0]))
    most = draw(st.sampled_from([np.inf, 0.5, 0.2]))
    is_ordered = draw(st.booleans())
    models = []
    if kind != NO_L:
        models.append((0, {DISTINCT: "distinct", ENTROPY: "entropy", RECURSIVE: "recursive"}[kind], least, c))
    if most < np.inf:
        models.append((0, "t", most, is_ordered))
    return (kind, least, c, most, is_ordered), models


def describe(kinds, columns):
    n_values = [int(c.max()) + 1 for c in columns]
    coordinates = [even(n) if kind == "ordered" else None for kind, n in zip(kinds, n_values, strict=True)]
    return make_dimensions(coordinates, n_values), n_values


def classes_of(partition):
    return [partition.records[a:b].tolist() for a, b in zip(partition.edges, partition.edges[1:], strict=False)]


@given(coded_tables(), limits(), st.integers(1, 6), st.booleans(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_every_cut_is_the_best_allowable_one_and_none_is_left(table, limit, k, is_by_range, by_people):
    kinds, columns, people, secret = table
    (kind, least, c, most, is_ordered), wanted = limit
    dimensions, n_values = describe(kinds, columns)
    n_secrets = int(secret.max()) + 1
    models = Models(
        k, is_by_range, by_people, bool(wanted), np.array([0, n_secrets]), np.array([kind]), np.array([least]),
        np.array([c]), np.array([most]), np.array([is_ordered]), np.bincount(secret) / len(secret),
    )  # fmt: skip
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    places = [dict(enumerate(even(n))) for n in n_values]
    known = reference.Table(
        rows, kinds, places, people=people.tolist() if by_people else None, sensitive=[secret.tolist()]
    )
    found = partition_rows(
        pack_rows(columns, n_values), dimensions, models, person=people if by_people else None,
        sensitive=secret[:, None],
    )  # fmt: skip
    assert sorted(found.records.tolist()) == list(range(len(rows)))
    for begin, stop, middle, dimension, _ in found.cuts.tolist():
        members, left, right = (
            found.records[a:b].tolist() for a, b in ((begin, stop), (begin, middle), (middle, stop))
        )
        reference.check_cut(known, members, left, right, dimension, k, wanted, "range" if is_by_range else "gain")
    for members in classes_of(found):
        assert not known.allowable(members, k, wanted)
    if len(found.cuts):
        assert all(known.holds(members, k, wanted) for members in classes_of(found))


def wide_table(n_rows, seed=0, n_values=3000):
    """More values than bins, skewed, next to sets, one of them large."""
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, n_values, n_rows), np.minimum(rng.zipf(1.3, n_rows), 70_000), rng.normal(0, 50, n_rows)]
    drawn += [np.minimum(rng.zipf(1.7, n_rows), 12), rng.zipf(1.2, n_rows) % 700]
    columns = [np.unique(np.round(d).astype(np.int64), return_inverse=True)[1] for d in drawn]
    kinds = ["ordered", "ordered", "ordered", "set", "set"]
    return kinds, columns


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


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([250, 700, 3000]),
    st.lists(st.tuples(st.booleans(), st.sampled_from([1, 2, 7, 40, 200, 700, 5000])), min_size=1, max_size=5),
    st.sampled_from([1, 2, 9, 60]),
)
def test_histograms_kept_from_a_class_for_its_sides_change_nothing(seed, n_rows, kinds, k):
    random = np.random.default_rng(seed)
    columns = [np.minimum(random.geometric(4 / n, n_rows) - 1 if n > 4 else random.integers(0, n, n_rows), n - 1)
               for _, n in kinds]  # fmt: skip
    n_values = [n for _, n in kinds]
    dimensions = make_dimensions([even(n) if is_ordered else None for is_ordered, n in kinds], n_values)
    kept = partition_rows(pack_rows(columns, n_values), dimensions, row_models(k))
    # Each class is a task of its own here, and starts with nothing kept.
    counted = partition_rows(pack_rows(columns, n_values), dimensions, row_models(k), task_rows=1)
    assert kept.begins.tolist() == counted.begins.tolist()
    assert kept.cuts.tolist() == counted.cuts.tolist()
    assert kept.records.tolist() == counted.records.tolist()


def added(histograms):
    """Codes that occur in any of several histograms of single codes, and how often in all of them."""
    codes = np.concatenate([own for own, _ in histograms])
    distinct, place = np.unique(codes, return_inverse=True)
    return distinct, np.bincount(place, np.concatenate([tally for _, tally in histograms])).astype(np.int64)


def by_chunks(columns, chunks, dimensions, models):
    """A Mondrian that never sees more than a chunk of rows at once: histograms are counted apart, and added.

    Returns the classes, and in how many of them single codes had to be counted.
    """
    n_dimensions = len(columns)
    lists, evidence = make_lists(dimensions), no_evidence()
    root = (np.arange(len(columns[0])), np.zeros(n_dimensions, np.int64), dimensions.n_values - 1)
    waiting, classes, n_on_codes = [root], [], 0
    while waiting:
        members, low, high = waiting.pop()
        box, cut = make_box(n_dimensions), np.full(5, -1, np.int64)
        if len(members) >= 2 * models.k:
            box.low[:], box.high[:] = low, high
            set_bins(len(members), dimensions, box)
            total = np.zeros(dimensions.first_bin[-1], np.int64)
            parts = [own for own in (members[np.isin(members, chunk)] for chunk in chunks) if len(own)]
            for own in parts:
                part = np.zeros_like(total)
                rows = pack_rows([c[own] for c in columns], dimensions.n_values.tolist())
                count_rows(rows.codes, 0, len(own), dimensions.first_bin, box, part)
                total += part
            decide(len(members), total, dimensions, box, lists, models, evidence, cut)
            if cut[DIMENSION] < 0 and cut[IS_COARSE] == 1:
                n_on_codes += 1
                counted = [
                    added([np.unique(column[own], return_counts=True) for own in parts]) if shift > 0 else ([], [])
                    for column, shift in zip(columns, box.shift, strict=True)
                ]
                codes, tally = (np.concatenate([own[i] for own in counted]).astype(np.int64) for i in (0, 1))
                first = np.cumsum([0, *(len(own) for own, _ in counted)])
                decide_on_codes(len(members), codes, tally, first, dimensions, box, models, evidence, cut)
        if cut[DIMENSION] < 0:
            classes.append(frozenset(members.tolist()))
            continue
        j = cut[DIMENSION]
        codes = columns[j][members]
        is_left = np.isin(codes, lists.head[: cut[N_HEAD]]) if dimensions.is_set[j] else codes <= cut[THRESHOLD]
        waiting.append((members[is_left], box.low.copy(), box.high.copy()))
        waiting.append((members[~is_left], box.low.copy(), box.high.copy()))
        if not dimensions.is_set[j]:
            waiting[-2][2][j] = cut[THRESHOLD]
            waiting[-1][1][j] = cut[RIGHT_LOW]
    return set(classes), n_on_codes


@given(st.integers(0, 1000), st.integers(1, 7), st.sampled_from([3, 10, 40]), st.booleans())
@settings(max_examples=30, deadline=None)
def test_decisions_fed_with_added_histograms_of_chunks_give_the_identical_partition(seed, n_chunks, k, is_by_range):
    # Ordered dimensions of far more values than bins, and a set of more.
    kinds, columns = wide_table(1500, seed, n_values=60_000)
    dimensions, n_values = describe(kinds, columns)
    assert min(n_values[0], n_values[4]) > MOST_BINS
    models = row_models(k, is_by_range=is_by_range)
    found = partition_rows(pack_rows(columns, n_values), dimensions, models)
    chunks = np.array_split(np.random.default_rng(seed).permutation(1500), n_chunks)
    classes, _ = by_chunks(columns, chunks, dimensions, models)
    assert classes == set(map(frozenset, classes_of(found)))


def test_added_histograms_of_single_codes_decide_where_no_boundary_of_bins_allows_a_cut():
    # Of 302 values in bins of two, the two in the middle have 600 rows each and lie in one bin; k is 300.
    codes = np.concatenate([np.arange(302), np.repeat([150, 151], 599)])
    other = np.arange(len(codes)) % 7
    dimensions, n_values = describe(["ordered", "set"], [codes, other // 6])
    for is_by_range in (False, True):
        models = row_models(300, is_by_range=is_by_range)
        found = partition_rows(pack_rows([codes, other // 6], n_values), dimensions, models)
        chunks = np.array_split(np.random.default_rng(0).permutation(len(codes)), 5)
        classes, n_on_codes = by_chunks([codes, other // 6], chunks, dimensions, models)
        assert classes == set(map(frozenset, classes_of(found)))
        assert sorted(map(len, classes)) == [750, 750] and n_on_codes > 0


@given(
    st.integers(0, 10_000),
    st.lists(st.tuples(st.booleans(), st.sampled_from([1, 2, 3, 17, 63, 64, 5000])), min_size=1, max_size=6),
    st.integers(2, FEW_ROWS - 1),
    st.sampled_from([1, 2, 9]),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_a_class_of_few_rows_is_cut_as_its_histogram_says(seed, kinds, size, k, is_by_range):
    random = np.random.default_rng(seed)
    kinds = [(is_ordered, n if is_ordered else min(n, BITS)) for is_ordered, n in kinds]
    n_values = [n for _, n in kinds]
    # Few values in a part of the range, so that there are ties and dimensions of one value.
    columns = [random.choice(random.integers(0, n, random.integers(1, 20)), size) for n in n_values]
    dimensions = make_dimensions([even(n) if is_ordered else None for is_ordered, n in kinds], n_values)
    assert fit_words(dimensions)
    models, evidence, first_bin = row_models(k, is_by_range=is_by_range), no_evidence(), dimensions.first_bin
    codes = pack_rows(columns, n_values).codes
    # The outermost codes that a class has from its parent may lie outside its rows.
    low = [random.integers(0, c[:size].min() + 1) for c in columns]
    high = [random.integers(c[:size].max(), n) for c, n in zip(columns, n_values, strict=True)]
    found = []
    for is_few in (False, True):
        box, cut, lists = make_box(len(kinds)), np.full(5, -1, np.int64), make_lists(dimensions)
        box.low[:], box.high[:] = low, high
        set_bins(size, dimensions, box)
        histogram = np.zeros(first_bin[-1], np.int64)
        if is_few:
            words, part = np.zeros(len(kinds), np.uint64), np.zeros(len(kinds), np.uint64)
            for begin, stop in ((0, size // 2), (size // 2, size)):
                count_few_rows(codes, begin, stop, first_bin, box, histogram, part)
                words |= part
            decide_on_few(size, histogram, words, dimensions, box, lists, models, evidence, cut)
        else:
            count_rows(codes, 0, size, first_bin, box, histogram)
            decide(size, histogram, dimensions, box, lists, models, evidence, cut)
        assert not histogram.any()
        ends = [end[~dimensions.is_set].tolist() for end in (box.low, box.high)]
        head = lists.head[: cut[N_HEAD]].tolist() if cut[DIMENSION] >= 0 else []
        written = [cut[DIMENSION], cut[IS_COARSE]]
        if cut[DIMENSION] >= 0 and not dimensions.is_set[cut[DIMENSION]]:
            written += [cut[THRESHOLD], cut[RIGHT_LOW]]
        found.append((written, head, ends))
    assert found[0] == found[1]


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
    models = Models(
        1, False, False, True, np.array([0, 3]), np.array([RECURSIVE]), np.array([2.0]), np.array([1.5]),
        np.array([np.inf]), np.array([False]), np.bincount(sensitive) / 6,
    )  # fmt: skip
    # Both sides have counts 2 and 1: 2 < 1.5 x 1 is false, however the values are numbered.
    found = partition_rows(pack_rows([codes], n_values), dimensions, models, sensitive=sensitive[:, None])
    assert len(found.begins) == 1


def test_closeness_of_a_constant_column_is_zero():
    assert distance_to_table(np.array([3]), 3, np.array([1.0]), True) == 0.0
    assert distance_to_table(np.array([3]), 3, np.array([1.0]), False) == 0.0


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
