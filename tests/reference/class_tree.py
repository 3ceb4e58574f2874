"""Every split of a node, with the rise of the log-likelihood, one by one."""

from itertools import pairwise
from math import log


def possible_splits(codes, target, weights, min_people, whose=None):
    """Return the gain of each split with enough people on both sides, by feature and threshold.

    ``codes`` has a list per feature. A threshold is the whole number at or below the middle of two neighboring codes.
    People are the sum of the weights, or the different ones if it is said whose the rows are.
    """

    def people(side):
        return sum(weights[row] for row in side) if whose is None else len({whose[row] for row in side})

    found = {}
    for feature, own in enumerate(codes):
        present = sorted(set(own))
        for low, high in pairwise(present):
            sides = [[row for row, code in enumerate(own) if (code > low) is above] for above in (False, True)]
            if all(people(side) >= min_people - 1e-9 for side in sides):
                parts = sum(_log_likelihood(side, target, weights) for side in sides)
                everyone = _log_likelihood(range(len(own)), target, weights)
                found[feature, (low + high) // 2] = parts - everyone
    return found


def _log_likelihood(rows, target, weights):
    people = {}
    for row in rows:
        people[target[row]] = people.get(target[row], 0.0) + weights[row]
    return sum(own * log(own / sum(people.values())) for own in people.values())
