"""Copies share the score of near copies with all that is as close, as if they were planted and scored."""

import numpy as np
import pytest

from privacy_assets.disclosure.criteria import CRITERIA, number_of_closest
from privacy_assets.disclosure.people import PlantedCopies

NEAR = list(CRITERIA).index("near_copies")


def planted(closeness, owner, of_others, n_records=None):
    n = max(owner) + 1
    others = np.sort(np.array(of_others, np.int32))[::-1]
    n_records = n_records or len(others)
    added, n_closest = np.ones((n, len(CRITERIA))), number_of_closest(n_records, 0.5)
    return PlantedCopies(added, np.array(closeness), np.array(owner), others, n_records, n_closest)


def plain_marks(closeness, n_closest):
    """Give one to each from the closest on until as many as there are have been given; equals share."""
    marks, left = [0.0] * len(closeness), n_closest
    for value in sorted(set(closeness), reverse=True):
        own = [i for i, each in enumerate(closeness) if each == value]
        for i in own:
            marks[i] = min(1.0, left / len(own))
        left -= sum(marks[i] for i in own)
    return marks


@pytest.mark.parametrize("m", [1, 5, 12, 40])
@pytest.mark.parametrize("seed", range(3))
def test_copies_and_others_share_what_there_is(m, seed):
    random = np.random.default_rng([seed, m])
    others, of_copied = random.integers(0, 60, 400).tolist(), random.integers(30, 90, 20).tolist()
    copies = planted(of_copied, range(20), others)
    d, left = copies.draw(m, random)
    assert d.shape == (m, len(CRITERIA))
    assert (np.delete(d, NEAR, axis=1) == 1).all()
    times = random.multinomial(m, np.full(20, 0.05))
    found, left_to_others = copies._closest(times)
    together = [value for value, n in zip(of_copied, times, strict=True) for _ in range(n)]
    marks = plain_marks(together + others, number_of_closest(400, 0.5))
    expected = [marks[together.index(value)] for value, n in zip(of_copied, times, strict=True) if n]
    assert found[times > 0] == pytest.approx(expected)
    assert left_to_others * number_of_closest(400, 0.5) == pytest.approx(sum(marks[m:]))
    assert 0 <= left[NEAR] <= 1


def test_people_with_several_records_have_the_mean_and_samples_stand_for_all():
    copies = planted([100, 0, 100], [0, 0, 1], range(50))
    found, left = copies._closest(np.array([1, 1]))
    assert found.tolist() == [0.5, 1.0]
    assert left == pytest.approx(10 / 12)
    # Of 5,000 records 25 are the closest; 50 of them stand for 100 each.
    found, left = planted([48, 0, 100], [0, 0, 1], range(50), 5_000)._closest(np.array([1, 1]))
    assert found == pytest.approx([0.0, 1.0])
    assert left == pytest.approx(24 / 25)
