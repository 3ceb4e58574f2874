"""Whoever counts, and however: whole classes, chunks, few rows, or what a class kept, the partition is the same."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.kernels.models import DISTINCT, no_evidence, row_models
from privacy_assets.anonymization.kernels.mondrian import make_dimensions, partition_rows
from privacy_assets.anonymization.kernels.mondrian_cuts import (
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
from privacy_assets.anonymization.kernels.mondrian_few import count_few_rows, decide_on_few, fit_words
from privacy_assets.anonymization.kernels.mondrian_rows import count_rows, pack_rows
from privacy_assets.kernels.bit_sets import BITS
from tests.anonymization.kernels.mondrian_tables import classes_of, describe, even, heavy_neighbors, wide_table
from tests.compiled import compiled
from tests.examples import examples

set_bins, fit_words = compiled(set_bins), compiled(fit_words)
count_rows, count_few_rows = compiled(count_rows), compiled(count_few_rows)
decide, decide_on_few, decide_on_codes = compiled(decide), compiled(decide_on_few), compiled(decide_on_codes)


@settings(max_examples=examples(25), deadline=None)
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
@settings(max_examples=examples(30), deadline=None)
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


@given(st.integers(0, 100_000), st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_kept_histograms_are_given_back_where_single_codes_decide(seed, is_by_range):
    kinds, columns, k = heavy_neighbors(seed)
    dimensions, n_values = describe(kinds, columns)
    models = row_models(k, is_by_range=is_by_range)
    found = partition_rows(pack_rows(columns, n_values), dimensions, models)
    classes, _ = by_chunks(columns, [np.arange(len(columns[0]))], dimensions, models)
    assert classes == set(map(frozenset, classes_of(found)))


@given(st.integers(0, 100_000), st.booleans(), st.booleans())
@settings(max_examples=examples(40), deadline=None)
def test_people_and_diversity_hold_where_single_codes_decide(seed, is_by_range, by_people):
    kinds, columns, k = heavy_neighbors(seed)
    dimensions, n_values = describe(kinds, columns)
    n_rows = len(columns[0])
    people = (np.random.default_rng(seed).permutation(n_rows) // 2).astype(np.int32)
    secret = np.random.default_rng(seed).integers(0, 4, n_rows).astype(np.int32)
    models = row_models(k // 2 + 1, is_by_range=is_by_range)._replace(
        counts_people=by_people, needs_values=True, first_value=np.array([0, 4]), l_kind=np.array([DISTINCT]),
        l_least=np.array([3.0]), l_factor=np.ones(1), t_most=np.array([0.3]), is_ordered=np.zeros(1, bool),
        totals=np.bincount(secret), cumulative=np.cumsum(np.bincount(secret)), prefix=np.zeros(5),
    )  # fmt: skip
    found = partition_rows(
        pack_rows(columns, n_values),
        dimensions,
        models,
        person=people if by_people else None,
        sensitive=secret[:, None],
    )
    assert sorted(found.records.tolist()) == list(range(n_rows))
    for members in classes_of(found):
        assert len(np.unique(people[members])) >= models.k if by_people else len(members) >= models.k
        shares = np.bincount(secret[members], minlength=4) / len(members)
        assert (shares > 0).sum() >= 3 and np.abs(shares - models.totals / n_rows).sum() / 2 <= 0.3 + 1e-9


def test_heavy_neighbors_make_single_codes_decide_in_classes_that_are_cut_again():
    n_on_codes = []
    for seed in range(20):
        kinds, columns, k = heavy_neighbors(seed)
        dimensions, _ = describe(kinds, columns)
        classes, n = by_chunks(columns, [np.arange(len(columns[0]))], dimensions, row_models(k))
        n_on_codes.append(n if len(classes) > 3 else 0)
    assert sum(n > 2 for n in n_on_codes) > 5


@given(
    st.integers(0, 10_000),
    st.lists(st.tuples(st.booleans(), st.sampled_from([1, 2, 3, 17, 63, 64, 5000])), min_size=1, max_size=6),
    st.integers(2, FEW_ROWS - 1),
    st.sampled_from([1, 2, 9]),
    st.booleans(),
)
@settings(max_examples=examples(150), deadline=None)
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
