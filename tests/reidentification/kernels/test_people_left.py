from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError
from privacy_assets.reidentification import linked_rows
from privacy_assets.reidentification.code_sets import from_lists
from privacy_assets.reidentification.linked_rows import (
    LinkedRows,
    is_constant,
    link_rows,
    linked_curve,
    read_known_rows,
    share_certain_by_rows,
)
from privacy_assets.reidentification.masked_columns import MaskedColumn
from tests.examples import examples
from tests.reference import linked_rows as reference

N_CODES = 4


@st.composite
def releases(draw, overlap=None):
    """Rows, boxes that contain them (in all cases, classes of codes or any sets), people, groups and values."""
    n_rows, n_columns = draw(st.integers(1, 8)), draw(st.integers(1, 2))
    code = st.integers(0, N_CODES - 1)
    rows = draw(st.lists(st.tuples(*[code] * n_columns), min_size=n_rows, max_size=n_rows))
    if overlap is None:
        overlap = draw(st.booleans())
    if overlap:
        boxes = [[frozenset({own, *draw(st.frozensets(code, max_size=2))}) for own in row] for row in rows]
    else:
        classes = [draw(st.lists(st.integers(0, 2), min_size=N_CODES, max_size=N_CODES)) for _ in range(n_columns)]
        boxes = [
            [frozenset(c for c in range(N_CODES) if of[c] == of[own]) for own, of in zip(row, classes, strict=True)]
            for row in rows
        ]
    small = st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows)
    return rows, boxes, draw(small), draw(small), draw(small)


def arranged(rows, boxes):
    columns = []
    for j in range(len(rows[0])):
        codes = np.array([row[j] for row in rows], np.int32)
        lists = [np.array(sorted(box[j]), np.int64) for box in boxes]
        columns.append(MaskedColumn(codes, N_CODES, from_lists(lists, np.arange(len(rows))), None))
    return read_known_rows(columns, np.arange(len(rows)))


def linked(rows, boxes, people, groups):
    return LinkedRows.of_groups(arranged(rows, boxes), np.array(people), np.array(groups))


@pytest.mark.parametrize("overlap", [False, True])
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_people_left_and_their_bounds_are_those_of_trying_everything(overlap, data):
    rows, boxes, people, groups, _ = data.draw(releases(overlap))
    found = linked(rows, boxes, people, groups)
    for n_rows in (1, 2, 3, 4, "all"):
        exact = reference.fewest(len(rows) if n_rows == "all" else n_rows, rows, boxes, people, groups)
        for k in (1, 2, 3):
            worst = found.worst(n_rows, k)
            fewest, n_below = min(exact.values()), sum(size < k for size in exact.values())
            if n_rows in (1, 2, "all") or fewest < k:
                assert worst.at_least == worst.found == fewest
            assert min(fewest, k) <= worst.at_least <= fewest <= worst.found
            assert (worst.n_people_below, worst.n_people_open) == (n_below, 0)


def test_a_probability_is_of_the_people_who_are_proven_to_be_left():
    """Each person has another four of six rows: one row is of ten people, two of six, three of three, four of one."""
    chosen = list(combinations(range(6), 4))
    rows = [(code // 3, code % 3) for own in chosen for code in own]
    people = np.repeat(np.arange(15), 4)
    curve = linked_curve(linked(rows, [[frozenset({code}) for code in row] for row in rows], people, people), 3, 2)
    assert [row["max_reidentification_probability"] for row in curve] == [1 / 10, 1 / 6, 1 / 2]
    # That three people are left is not proven, only that k = 2 are.
    assert [row["fewest_candidates"] for row in curve] == [10, 6, 2] and curve[-1]["found"] >= 3


@settings(max_examples=examples(150), deadline=None)
@given(release=releases(), seed=st.integers(0, 5))
def test_samples_leave_the_people_and_the_values_of_trying_everything(release, seed):
    rows, boxes, people, groups, values = release
    random, own = np.random.default_rng(seed), arranged(rows, boxes)
    row_of_known = dict(zip(own.known_of_row.tolist(), rows, strict=True))
    people_left = LinkedRows.of_groups(own, np.array(people), np.array(groups))
    values_left = LinkedRows.of_values(own, np.array(people), np.array(values))
    for found, expected in (
        (people_left, lambda known: reference.people_left(known, boxes, people, groups)),
        (values_left, lambda known: reference.values_left(known, boxes, values)),
    ):
        samples = []
        for begin, end in pairwise(found.first):
            rows_of_target = found.known[begin:end]
            samples += [random.choice(rows_of_target, min(m, end - begin), replace=False) for m in (1, 2, 3)]
        first = np.cumsum([0, *map(len, samples)])
        sizes = found.count(first, np.concatenate([np.sort(sample) for sample in samples]))
        assert sizes.tolist() == [len(expected([row_of_known[q] for q in sample.tolist()])) for sample in samples]


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_links_make_the_groups_of_merging_one_by_one(data):
    n_rows, n_links = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
    code = st.integers(0, 5)
    links = [data.draw(st.lists(code, min_size=n_rows, max_size=n_rows)) for _ in range(n_links)]
    groups = link_rows([np.array(own) for own in links])
    found = {frozenset(np.flatnonzero(groups == g).tolist()) for g in groups}
    assert found == reference.groups_of(links)


def test_a_column_is_constant_if_nearly_all_people_with_several_rows_have_one_value():
    people = np.repeat(np.arange(40), 2)
    values = people % 7
    assert is_constant(people, values)
    for n_differing, expected in ((2, True), (3, False)):
        differing = values.copy()
        differing[: 2 * n_differing : 2] = 9
        assert is_constant(people, differing) is expected
    assert not is_constant(np.arange(40), np.zeros(40, np.int64))


def test_rows_that_fit_too_many_boxes_are_refused(monkeypatch):
    monkeypatch.setattr(linked_rows, "MOST_FITS", 3)
    with pytest.raises(InvalidSettingError, match="2 different known rows fit 4 released records"):
        arranged([(0,), (1,)], [[frozenset({0, 1})], [frozenset({0, 1, 2})]])


@settings(max_examples=examples(80), deadline=None)
@given(release=releases(), k=st.integers(1, 3))
def test_a_search_without_steps_is_not_a_proof(release, k):
    rows, boxes, people, groups, _ = release
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(linked_rows, "N_CHOICES", 0)
        worst = linked(rows, boxes, people, groups).worst(3, k)
    exact = reference.fewest(3, rows, boxes, people, groups)
    fewest, n_below = min(exact.values()), sum(size < k for size in exact.values())
    assert worst.at_least <= fewest <= worst.found
    assert worst.n_people_below <= n_below <= worst.n_people_below + worst.n_people_open


@pytest.mark.parametrize("overlap", [False, True])
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_samples_are_of_people_alike(overlap, data):
    rows, boxes, people, groups, values = data.draw(releases(overlap))
    known, k = arranged(rows, boxes), 2
    curve = linked_curve(LinkedRows.of_groups(known, np.array(people), np.array(groups)), 3, k, n_samples=4000)

    def mean(n_rows, value_of_size):
        def value(chosen):
            return value_of_size(len(reference.people_left(chosen, boxes, people, groups)))

        return reference.mean_over_known_rows(n_rows, value, rows, people, groups)

    for row in curve:
        assert (
            row["found"] == min(reference.fewest(row["n_rows"], rows, boxes, people, groups).values())
            or row["found"] >= k
        )
        assert row["mean_reidentification_probability"] == pytest.approx(mean(row["n_rows"], lambda n: 1 / n), abs=0.03)
        assert row["share_of_singletons"] == pytest.approx(mean(row["n_rows"], lambda n: n == 1), abs=0.03)
        assert row["share_below_k"] == pytest.approx(mean(row["n_rows"], lambda n: n < k), abs=0.03)
    by_value = LinkedRows.of_values(known, np.array(people), np.array(values))
    share, low, high = share_certain_by_rows(by_value, 2, n_samples=4000)
    one_group = [0] * len(rows)
    exact = reference.mean_over_known_rows(
        2, lambda own: len(reference.values_left(own, boxes, values)) == 1, rows, people, one_group
    )
    assert share == pytest.approx(exact, abs=0.03) and low <= share <= high and low <= exact <= high
