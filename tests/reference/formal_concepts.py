"""Formal concept analysis by closing every set of attributes: slow, obvious, and without anything from the package.

A context is a list of frozensets, the attributes of each record, and the set of all attributes. Risks are fractions.
"""

from fractions import Fraction
from functools import cache
from itertools import chain, combinations, product

import numpy as np


def subsets(items):
    items = sorted(items)
    return map(frozenset, chain.from_iterable(combinations(items, n) for n in range(len(items) + 1)))


def extent(rows, attributes):
    """Records that have all of some attributes."""
    return frozenset(g for g, row in enumerate(rows) if attributes <= row)


def intent(rows, records, universe):
    """Attributes that all of some records have."""
    return frozenset(universe).intersection(*(rows[g] for g in records))


def closure(rows, attributes, universe):
    return intent(rows, extent(rows, attributes), universe)


def concepts(rows, universe):
    """All pairs of extent and intent."""
    intents = {closure(rows, own, universe) for own in subsets(universe)}
    return [(extent(rows, own), own) for own in intents]


def covers(lattice):
    """Pairs of a concept and a lower neighbor."""
    return [
        (upper, lower)
        for upper in lattice
        for lower in lattice
        if lower[0] < upper[0] and not any(lower[0] < between[0] < upper[0] for between in lattice)
    ]


def classical_risk(rows, g):
    return Fraction(1, sum(row == rows[g] for row in rows))


def basic_semantic_risk(rows, universe, lattice=None):
    """Definition 3.3, over the lower neighbors of the concept of each record; of a lone bottom its own size."""
    lattice = lattice or concepts(rows, universe)
    pairs = covers(lattice)
    risks = []
    for row in rows:
        own = extent(rows, row)
        below = [lower[0] for upper, lower in pairs if upper[0] == own]
        risks.append(max((Fraction(1, len(own - lower)) for lower in below), default=Fraction(1, len(own))))
    return risks


def semantic_risk(rows, universe, lattice=None):
    """Definition 3.4, by recursion over lower neighbors that are not empty."""
    lattice = lattice or concepts(rows, universe)
    below = {}
    for upper, lower in covers(lattice):
        if lower[0]:
            below.setdefault(upper[0], []).append(lower[0])

    @cache
    def risk(own):
        if own not in below:
            return Fraction(1, len(own))
        return max(risk(lower) / len(own - lower) for lower in below[own])

    return [risk(extent(rows, row)) for row in rows]


def differences(rows, universe):
    """d by the formula: records that have all attributes of a record, but lack one that it lacks."""
    found = []
    for row in rows:
        own = extent(rows, row)
        found.append(min((sum(m not in rows[g] for g in own) for m in universe - row), default=len(own)))
    return found


def greatest_acceptable_subset(rows, universe, k):
    """The union of all sets of records in which every d is at least k; itself one of them.

    All sets at once: row i of a matrix says who is in set i, and a product counts, in every set, those who have what a
    record has but lack one attribute more.
    """
    kept = np.array(list(product([False, True], repeat=len(rows))))
    is_acceptable = np.ones(len(kept), bool)
    for g, row in enumerate(rows):
        for m in [*(universe - row)] or [None]:
            counts = kept @ np.array([row <= other and m not in other for other in rows], int)
            is_acceptable &= ~kept[:, g] | (counts >= k)
    acceptable = [frozenset(np.flatnonzero(one).tolist()) for one in kept[is_acceptable]]
    return frozenset().union(*acceptable), acceptable


def pseudo_intents(rows, universe):
    """Sets P that are not closed and hold the closure of every smaller pseudo-intent in them."""
    found = []
    for own in subsets(universe):
        if closure(rows, own, universe) != own and all(closure(rows, p, universe) <= own for p in found if p < own):
            found.append(own)
    return found


def stem_basis(rows, universe):
    """Premise, conclusion and support of each rule."""
    return {(own, closure(rows, own, universe) - own, len(extent(rows, own))) for own in pseudo_intents(rows, universe)}


def entails(rules, premise, conclusion):
    """Whether premise -> conclusion follows from rules, by applying them until nothing changes."""
    known = set(premise)
    while True:
        new = set().union(*(c for p, c in rules if p <= known)) - known
        if not new:
            return conclusion <= known
        known |= new


def chains(lattice, largest):
    """Maximal chains upwards from a concept, in which the first concept and every step have at most so many records."""
    steps = [(u[0], low[0]) for u, low in covers(lattice) if low[0] and len(u[0] - low[0]) <= largest]
    starts = [x for x, _ in lattice if 0 < len(x) <= largest and not any(u == x for u, _ in steps)]

    def longer(chain):
        above = [u for u, low in steps if low == chain[-1]]
        return [full for u in above for full in longer([*chain, u])] if above else [chain]

    return [chain for start in starts for chain in longer([start])]
