"""Many sets of known columns at once: the same counts as one by one, and as by the definition."""

from itertools import combinations
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.reidentification import many_known_sets
from privacy_assets.reidentification.code_sets import from_lists
from privacy_assets.reidentification.many_known_sets import count_for_many_sets, place_originals
from privacy_assets.reidentification.masked_columns import MaskedColumn
from tests.examples import examples
from tests.reference import reidentification as reference


@st.composite
def columns_and_people(draw):
    """Columns of originals with the possible codes of released rows, and people of whom some have many originals."""
    n_original, n_columns = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    n_codes = [draw(st.integers(1, 6)) for _ in range(n_columns)]
    codes = [draw(st.lists(st.integers(0, n - 1), min_size=n_original, max_size=n_original)) for n in n_codes]
    n_released = draw(st.integers(1, 12))
    cells = [draw(st.lists(st.sets(st.integers(0, n - 1)), min_size=n_released, max_size=n_released)) for n in n_codes]
    people = draw(st.none() | st.lists(st.integers(0, 5), min_size=n_original, max_size=n_original))
    return codes, n_codes, cells, people


def masked(codes, n_codes, cells):
    lists = [np.array(sorted(own), np.int64) for own in cells]
    return MaskedColumn(np.array(codes, np.int32), n_codes, from_lists(lists, np.arange(len(cells))), None)


@given(columns_and_people(), st.sampled_from([1, 70]), st.sampled_from([1, 1 << 24]), st.data())
@settings(max_examples=examples(150), deadline=None)
def test_counts_are_those_of_the_definition(drawn, n_copies, most_counts, data):
    codes, n_codes, cells, people = drawn
    codes = [own * n_copies for own in codes]
    numbers = None if people is None else np.unique(people * n_copies, return_inverse=True)[1]
    columns = [masked(*each) for each in zip(codes, n_codes, cells, strict=True)]
    every = [own for size in range(1, len(columns) + 1) for own in combinations(range(len(columns)), size)]
    sets = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    rows = np.array(data.draw(st.lists(st.integers(0, len(cells[0]) - 1), min_size=1, max_size=9)))
    with mock.patch.multiple(many_known_sets, MOST_WORDS=1, FEWEST_WORDS=1, MOST_COUNTS=most_counts):
        found = count_for_many_sets(columns, sets, rows, numbers, 1)
    wide = count_for_many_sets(columns, sets, rows, numbers, 2)
    for known, sizes, again in zip(sets, found, wide, strict=True):
        points = list(zip(*(codes[a] for a in known), strict=True))
        boxes = [[cells[a][row] for a in known] for row in rows]
        expected = (
            reference.count_in_boxes(points, boxes)
            if people is None
            else reference.count_people_in_boxes(points, numbers.tolist(), boxes)
        )
        assert sizes.tolist() == again.tolist() == expected


@given(st.lists(st.integers(1, 200), min_size=1, max_size=30), st.randoms(use_true_random=False))
@settings(max_examples=examples(100), deadline=None)
def test_originals_of_a_person_are_together_and_nobody_else_is_between(counts, random):
    people = [person for person, n_own in enumerate(counts) for _ in range(n_own)]
    random.shuffle(people)
    places = place_originals(np.array(people), len(people))
    assert len(set(places.of_original.tolist())) == len(people)
    assert places.of_original.max() < 64 * len(places.ends)
    ends = {64 * w + bit for w, word in enumerate(places.ends.tolist()) for bit in range(64) if word >> bit & 1}
    spans = dict(zip(places.long_begin.tolist(), places.long_end.tolist(), strict=True))
    for person, n_own in enumerate(counts):
        own = sorted(places.of_original[np.array(people) == person].tolist())
        assert own == list(range(own[0], own[0] + n_own))
        if n_own <= 64:
            assert own[0] // 64 == own[-1] // 64 and own[-1] in ends and not ends & set(own[:-1])
        else:
            words = range(own[0] // 64, spans[own[0] // 64])
            assert own[0] % 64 == 0 and len(words) == -(-n_own // 64) and not any(places.ends[w] for w in words)
    assert len(ends) + len(spans) == len(counts)


def test_what_the_progress_function_raises_ends_the_work():
    column = masked([0, 1] * 50, 2, [{0}, {1}])
    shares = []
    count_for_many_sets([column], [[0]], np.arange(2), None, 1, shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0

    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_for_many_sets([column], [[0]], np.arange(2), None, 1, stop)
