import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.kernels import slices
from privacy_assets.reidentification.kernels import candidates
from privacy_assets.reidentification.kernels.candidates import (
    Boxes,
    Points,
    count_candidates,
    count_fitting,
    list_candidates,
)
from tests.examples import examples
from tests.reference import reidentification as reference


@st.composite
def cases(draw):
    """Points, people, and boxes of sets of up to several ranges; sizes that make both ways to look codes up occur."""
    n_columns = draw(st.integers(1, 4))
    n_codes = draw(st.sampled_from([1, 3, 8, 300]))
    code = st.integers(0, n_codes - 1)
    points = draw(st.lists(st.tuples(*[code] * n_columns), min_size=1, max_size=20))
    people = draw(st.lists(st.integers(0, 5), min_size=len(points), max_size=len(points)))
    own_set = st.one_of(
        st.frozensets(code, max_size=6),
        st.tuples(code, code).map(lambda ends: frozenset(range(min(ends), max(ends) + 1))),
    )
    boxes = draw(st.lists(st.tuples(*[own_set] * n_columns), min_size=1, max_size=12))
    return n_codes, points, people, boxes


def arranged(n_codes, points, people, boxes):
    """The arrays of the kernel."""
    points, people = zip(*sorted(zip(points, people, strict=True)), strict=True)
    codes = np.array(points, np.int32).T
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes[0], minlength=n_codes))])
    sets = {}
    rows = sorted([sets.setdefault((c, own), len(sets)) for c, own in enumerate(box)] for box in boxes)
    ranges = []
    for _, own in sets:
        codes_of_set = sorted(own)
        begins = [c for c in codes_of_set if c - 1 not in own]
        ranges.append([(b, next(c for c in codes_of_set if c >= b and c + 1 not in own)) for b in begins])
    flat = np.array([ends for own in ranges for ends in own], np.int32).reshape(-1, 2)
    of_set = list(sets)
    arrays = Boxes(
        np.array(rows, np.int32),
        np.concatenate([[0], np.cumsum([len(own) for own in ranges])]).astype(np.int64),
        np.ascontiguousarray(flat[:, 0]),
        np.ascontiguousarray(flat[:, 1]),
    )
    kernel_points = Points(
        np.ascontiguousarray(codes),
        np.ones(len(points), np.int64),
        np.array(people, np.int32),
        starts.astype(np.int64),
        6,
    )
    return kernel_points, arrays, points, people, [[of_set[number][1] for number in row] for row in rows]


@given(cases(), st.sampled_from([1, 2]))
@settings(max_examples=examples(200), deadline=None)
def test_counts_are_those_of_the_reference(case, n_threads):
    points, boxes, plain, people, sets = arranged(*case)
    found = count_candidates(points, boxes, case[0], n_threads)
    assert found.tolist() == reference.count_people_in_boxes(plain, people, sets)
    records = points._replace(person=np.zeros(0, np.int32), n_people=0)
    expected = reference.count_in_boxes(plain, sets)
    assert count_candidates(records, boxes, case[0], n_threads).tolist() == expected
    heavy = records._replace(weights=np.full(len(plain), 3))
    assert count_candidates(heavy, boxes, case[0], n_threads).tolist() == [3 * count for count in expected]


@pytest.mark.parametrize("n_columns", [1, 2])
def test_an_empty_set_has_no_candidates(n_columns):
    points, boxes, *_ = arranged(2, [(1,) * n_columns], [0], [(frozenset(),) * n_columns])
    assert count_candidates(points, boxes, 2).tolist() == [0]


@given(cases())
@settings(max_examples=examples(100), deadline=None)
def test_the_points_of_each_box_are_listed(case):
    points, boxes, plain, _, sets = arranged(*case)
    singly = points._replace(person=np.zeros(0, np.int32), n_people=0)
    counts = count_candidates(singly, boxes, case[0])
    found = list_candidates(singly, boxes, case[0], counts)
    for b, own in enumerate(sets):
        listed = found.points[found.starts[b] : found.starts[b + 1]].tolist()
        expected = [i for i, p in enumerate(plain) if all(code in s for code, s in zip(p, own, strict=True))]
        assert sorted(listed) == expected


@given(cases(), st.sampled_from([1, 2]))
@settings(max_examples=examples(100), deadline=None)
def test_the_weights_of_the_boxes_of_each_point_are_summed(case, n_threads):
    points, boxes, plain, _, sets = arranged(*case)
    weights = np.arange(1, len(sets) + 1)
    found = count_fitting(points, boxes, case[0], weights, n_threads)
    expected = [
        sum(w for w, own in zip(weights, sets, strict=True) if all(c in s for c, s in zip(p, own, strict=True)))
        for p in plain
    ]
    assert found.tolist() == expected


def test_what_is_raised_while_candidates_are_counted_ends_the_counting(monkeypatch):
    points, boxes, *_ = arranged(2, [(0,), (1,)], [0, 1], [(frozenset({0}),)])
    has_waited = threading.Event()

    def count(*_):
        assert has_waited.wait(60)

    def on_wait():
        has_waited.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(candidates, "_count", count)
    monkeypatch.setattr(slices, "SECONDS_BETWEEN_REPORTS", 0.01)
    with pytest.raises(KeyboardInterrupt):
        count_candidates(points, boxes, 2, 1, on_wait)
