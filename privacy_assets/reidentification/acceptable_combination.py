"""An acceptable combination of two belief functions (Definition 27), for masses of any sets.

The truth is not known when evidence is combined. So the result must be compatible with every probability that is
compatible with both: the belief of no set may exceed its smallest probability under any of them. Among the masses of
the focal sets and their intersections that satisfy this, a linear program finds those of the least nonspecificity.
Either belief function satisfies it, so the result is at least as specific as both.

Only unions of focal sets of a solution need a bound. Bounds are added where a solution violates them; each is found by
a linear program that moves the masses of both belief functions onto the same records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, log

import numpy as np
from numpy.typing import NDArray

from privacy_assets.errors import ConflictError, InvalidSettingError

Set = frozenset[int]
Masses = Mapping[Set, float]
# Sets whose smallest probability may be computed; each takes one or two milliseconds.
MAX_BOUNDS = 4_000
# Rounding error of the solver.
PRECISION = 1e-9


def combine_acceptably(first: Masses, second: Masses) -> dict[Set, float]:
    """Combine two belief functions as :meth:`~.belief.BeliefFunction.combine_acceptably` describes."""
    focal_sets = sorted(
        {*first, *second, *(own & other for own in first for other in second)} - {Set()},
        key=lambda own: (len(own), sorted(own)),
    )
    # Records that the same sets contain are exchangeable: one part stands for them.
    part_of: dict[tuple[bool, ...], int] = {}
    for record in sorted(Set().union(*first, *second)):
        part_of.setdefault(tuple(record in own for own in (*first, *second)), record)
    parts = {own: own.intersection(part_of.values()) for own in focal_sets}
    bounds = _Bounds(
        [{parts[own]: mass / fsum(each.values()) for own, mass in each.items()} for each in (first, second)]
    )
    costs = np.array([log(len(own)) for own in focal_sets])
    inside = [parts[own] for own in focal_sets]
    while True:
        masses = _solve(
            costs, [([float(own <= union) for own in inside], most) for union, most in bounds.found.items()]
        )
        unions = {Set()}
        for own in (own for own, mass in zip(inside, masses, strict=True) if mass > PRECISION):
            unions |= {union | own for union in unions}
            if len(bounds.found) + len(unions) > MAX_BOUNDS:
                raise InvalidSettingError(
                    f"{len(first)} and {len(second)} focal sets have more than {MAX_BOUNDS:,} unions to compare. "
                    "Expected fewer focal sets; join some of them first. Nothing was combined."
                )
        n_violated = 0
        for union in unions - bounds.found.keys() - {Set()}:
            belief = fsum(mass for own, mass in zip(inside, masses, strict=True) if own <= union)
            n_violated += belief > bounds.of(union) + PRECISION
        if not n_violated:
            kept = {own: mass for own, mass in zip(focal_sets, masses.tolist(), strict=True) if mass > PRECISION}
            return {own: mass / fsum(kept.values()) for own, mass in kept.items()}


class _Bounds:
    """Smallest probabilities of sets under all probabilities that are compatible with several belief functions."""

    def __init__(self, sources: Sequence[Masses]) -> None:
        records = sorted(Set().union(*(own for masses in sources for own in masses)))
        # One variable for each record of each focal set: the mass that moves onto it.
        self.moves = [(s, own, record) for s, masses in enumerate(sources) for own in masses for record in sorted(own)]
        self.equal = [
            ([float(move[:2] == (s, own)) for move in self.moves], mass)
            for s, masses in enumerate(sources)
            for own, mass in masses.items()
        ]
        for record in records:
            signs = [(1.0 if s == 0 else -1.0) if own_record == record else 0.0 for s, _, own_record in self.moves]
            self.equal.append((signs, 0.0))
        self.found: dict[Set, float] = {}

    def of(self, union: Set) -> float:
        """Return the smallest probability of a set, and keep it."""
        costs = np.array([float(s == 0 and record in union) for s, _, record in self.moves])
        self.found[union] = float(costs @ _solve(costs, [], self.equal))
        return self.found[union]


def _solve(
    costs: NDArray[np.float64],
    at_most: Sequence[tuple[Sequence[float], float]],
    equal: Sequence[tuple[Sequence[float], float]] | None = None,
) -> NDArray[np.float64]:
    """Minimize costs over numbers of at least 0, by default with the sum 1."""
    from scipy.optimize import linprog

    equal = [([1.0] * len(costs), 1.0)] if equal is None else equal
    found = linprog(
        costs,
        A_ub=np.array([row for row, _ in at_most]) if at_most else None,
        b_ub=[most for _, most in at_most] if at_most else None,
        A_eq=np.array([row for row, _ in equal]),
        b_eq=[value for _, value in equal],
        method="highs",
        options={"primal_feasibility_tolerance": PRECISION / 10},
    )
    if found.status == 2:
        raise ConflictError(
            "The evidence contradicts itself: no probability is compatible with both belief functions. Expected "
            "evidence of the same released record. Nothing was combined."
        )
    if found.status != 0:
        raise ArithmeticError(f"the linear program of a combination ended with status {found.status}")
    return np.asarray(found.x)
