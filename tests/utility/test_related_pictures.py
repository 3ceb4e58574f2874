"""Pictures of related tables show shares of at least 5 people, and how consecutive rows depend on each other."""

from collections import Counter

import numpy as np
import pytest

from privacy_assets.utility.related_pictures import drawn_related, last_count, shares_of_counts
from tests.related import clinic, of_visits


@pytest.mark.parametrize("seed", range(6))
def test_shares_are_those_of_a_slow_count_and_none_is_of_fewer_than_5_people(seed):
    counts = np.random.default_rng(seed).geometric(0.3, 60) - 1
    last = last_count(counts)
    assert sum(own >= last for own in counts) >= 5
    assert last == 30 or sum(own > last for own in counts) < 5
    people = Counter(min(int(own), last) for own in counts)
    expected = [people[n] / 60 if people[n] >= 5 else None for n in range(last + 1)]
    assert shares_of_counts(counts, last) == expected
    assert None in expected or len(people) == last + 1


def test_few_people_have_no_counts():
    assert last_count(np.array([9, 9, 9])) == 0
    assert shares_of_counts(np.array([9, 9, 9]), 0) == [None]


def test_a_child_with_an_order_has_two_pictures_and_one_without_has_one():
    original, released = clinic(200, 1), clinic(200, 2)
    drawn = list(drawn_related(original, released))
    assert [each.title for each in drawn] == [
        "Bar chart: rows of visits per person",
        "Bar chart: consecutive rows of visits",
        "Bar chart: rows of drugs per person",
    ]
    n_without = int((np.bincount(original.whose["visits"], minlength=200) == 0).sum())
    assert f"Without visits: {n_without / 2:.1f}% of the originals" in drawn[0].text
    assert all(each.png() for each in drawn)


def test_rows_that_nobody_has_in_order_are_not_drawn():
    original = of_visits(clinic(60, 1))
    first = original.children["visits"].table.drop_duplicates("patient")
    assert len(list(drawn_related(original, of_visits(original, table=first)))) == 1
