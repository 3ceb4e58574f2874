from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.reidentification.code_sets import from_lists
from privacy_assets.reidentification.linked_rows import (
    LinkedRows,
    is_constant,
    link_rows,
    read_known_rows,
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
            assert worst.at_least <= min(exact.values()) <= worst.found
            if n_rows in (1, 2, "all") or (not overlap and min(exact.values()) <= k):
                assert worst.at_least == worst.found == min(exact.values())
            below = sum(size < k for size in exact.values())
            assert worst.n_people_below <= below <= worst.n_people_below + worst.n_people_open
            expected = "refused" if worst.n_people_below else "not proven" if worst.n_people_open else "admitted"
            assert worst.outcome == expected
            assert overlap or worst.outcome == ("refused" if below else "admitted")


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
    groups = link_rows([np.array(own) for own in links], np.arange(n_rows))
    found = {frozenset(np.flatnonzero(groups == g).tolist()) for g in groups}
    assert found == reference.groups_of(links)


def test_a_value_of_k_people_does_not_link():
    clinic, people = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 2, 2])
    assert len(set(link_rows([clinic], people, k=2))) == 4
    assert len(set(link_rows([clinic], people, k=3))) == 2


def test_a_column_is_constant_if_nearly_all_people_with_several_rows_have_one_value():
    people = np.repeat(np.arange(40), 2)
    values = people % 7
    assert is_constant(people, values)
    for n_differing, expected in ((2, True), (3, False)):
        differing = values.copy()
        differing[: 2 * n_differing : 2] = 9
        assert is_constant(people, differing) is expected
    assert not is_constant(np.arange(40), np.zeros(40, np.int64))
