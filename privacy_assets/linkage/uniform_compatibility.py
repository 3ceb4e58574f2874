"""Compatibility of a claim with a uniform true probability: two quick tests, then a growing linear program.

Let P be uniform over c candidates, q the claims, and K(x) the pignistic probabilities of the belief functions whose
focal sets all contain x. By Definition 14, q is compatible if and only if it is a mean of one element of K(x) for each
candidate x. So it is incompatible if and only if some weights w separate them: the weighted claims exceed the largest
mean of beliefs,

    sum_z q(z) w(z) > 1/c sum_x v(x),    v(x) = max of the mean of w over a set that contains x.

A largest mean is that of x and the records of the greatest weights: v(x) - w(x) = sum_z max(w(z) - v(x), 0). The
largest excess of the left side, for weights from -1 to 1, is the total deviation of the claims.

As P is uniform, exchanging the weights of two candidates, or of two others, does not change the right side; so the best
separating weights rise with the claims on either side. The sums of the greatest weights are then those of the greatest
claims, and each bound on v has few terms. Bounds are added to the program where its solution violates them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Approximate precision of the solver; claims of linkage programs do not have more digits.
TOLERANCE = 1e-7
# Rounding error of sums of floats.
ROUNDING = 1e-12
GROUPING_DECIMALS = 12
# Number of sets of the greatest claims in the quick test, on either side.
MAX_TESTED = 400
MAX_ROUNDS = 200


class Side(NamedTuple):
    """Distinct claims of the candidates, or of the others, greatest first, with their numbers of records."""

    claims: Floats
    sizes: Integers

    @classmethod
    def of(cls, claims: Floats) -> Side:
        """Group equal claims; claims of 0 are ignored."""
        claims = claims[claims > 0]
        rounded = -np.round(claims, GROUPING_DECIMALS)
        _, number, sizes = np.unique(rounded, return_inverse=True, return_counts=True)
        means = np.bincount(number.ravel(), weights=claims) / sizes
        return cls(means.astype(np.float64), sizes.astype(np.int64))

    @property
    def totals(self) -> Floats:
        """Sum of the claims of each group."""
        return np.asarray(self.claims * self.sizes)


def decide_quickly(inside: Floats, outside: Floats, *, tolerance: float = TOLERANCE) -> bool | None:
    """Decide whether claims are compatible with a probability that is uniform over the candidates, or return None.

    Those of the candidates (``inside``) are above 0, those of the other records at least 0; all sum to 1. They may
    deviate by ``tolerance`` in total. None if a linear program is needed.
    """
    tolerance = max(tolerance, TOLERANCE)
    if len(inside) == 1:
        every = np.concatenate([inside, outside])
        ones = np.ones(len(every), np.int64)
        return bool(2 * (largest_means(inside, every, ones)[0] - inside[0]) <= tolerance)
    if _can_keep_all(inside, outside):
        return True
    if _exceeds_some_set(Side.of(inside), Side.of(outside), len(inside), tolerance):
        return False
    return None


def decide_by_program(inside: Floats, outside: Floats, *, tolerance: float = TOLERANCE) -> bool:
    """Decide by the linear program: hundredths of a second for hundreds of distinct claims, seconds for thousands."""
    return _Program(Side.of(inside), Side.of(outside)).decide(max(tolerance, TOLERANCE))


def size_of_program(inside: Floats, outside: Floats) -> int:
    """Count the distinct claims, which determine the work of the program."""
    return sum(len(Side.of(side).claims) for side in (inside, outside))


def largest_means(own: Floats, weights: Floats, sizes: Integers) -> Floats:
    """Return the largest mean weight of a set that contains a record, for each of the records of weight ``own``."""
    order = np.argsort(-weights, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum((weights * sizes)[order])])
    counts = np.concatenate([[0], np.cumsum(sizes[order])])
    # A set with the record twice has no larger mean: its weight is no larger than that.
    return np.asarray(((own[:, None] + sums) / (1 + counts)).max(axis=1))


def _can_keep_all(inside: Floats, outside: Floats) -> bool:
    """Return whether each candidate can keep the probability that it claims while the rest covers the others.

    This is sufficient, not necessary. A candidate gives another record at most what it keeps, so k records get at
    most the sum of min(rest, k times what is kept): enough for the k that lack most, for all k (Gale).
    """
    probability = 1 / len(inside)
    kept = np.minimum(inside, probability)
    rest = probability - kept
    lack = -np.sort(-np.concatenate([inside - kept, outside]))
    lack = lack[lack > 0]
    gives = rest > 0
    kept, rest = kept[gives], rest[gives]
    order = np.argsort(rest / kept)
    kept, rest = kept[order], rest[order]
    # Those whose rest is at most k times what they keep give all of it; the others give k times what they keep.
    k = np.arange(1, len(lack) + 1)
    n_all = np.searchsorted(rest / kept, k, side="right")
    given = np.concatenate([[0.0], np.cumsum(rest)])[n_all]
    given = given + k * (kept.sum() - np.concatenate([[0.0], np.cumsum(kept)])[n_all])
    return bool((np.cumsum(lack) <= given + ROUNDING).all())


def _exceeds_some_set(inside: Side, outside: Side, n_candidates: int, tolerance: float) -> bool:
    """Return whether a set of the greatest claims exceeds every belief: weights of 1 inside, -1 outside.

    A candidate inside gives all its probability to the set, one outside n / (n + 1) for a set of n records.
    """
    parts = []
    for side in (inside, outside):
        claimed = np.concatenate([[0.0], np.cumsum(side.totals)])
        number = np.concatenate([[0], np.cumsum(side.sizes)])
        tested = np.unique(np.linspace(0, len(number) - 1, min(len(number), MAX_TESTED)).astype(np.int64))
        parts.append((claimed[tested], number[tested]))
    (claimed_in, n_in), (claimed_out, n_out) = parts
    n_records = n_in[:, None] + n_out
    share = n_records / (n_records + 1)
    given = (n_in[:, None] + (n_candidates - n_in[:, None]) * share) / n_candidates
    excess = 2 * (claimed_in[:, None] + claimed_out - given)
    return bool(excess.max() > tolerance)


class _Program:
    """A linear program over weights, extended by bounds on the means where they are violated.

    The variables are the sums of the greatest weights of the candidates and of the others, group by group; then, for
    each group of candidates, the largest mean, and what the candidates and the others of greater weight add to it.
    """

    def __init__(self, inside: Side, outside: Side) -> None:
        self.inside, self.outside = inside, outside
        self.n_candidates = int(inside.sizes.sum())
        self.n_in, self.n_out = len(inside.sizes), len(outside.sizes)
        self.counts = (np.cumsum(inside.sizes), np.cumsum(outside.sizes))
        n_sums = self.n_in + self.n_out
        self.mean = n_sums + np.arange(self.n_in)
        self.added = (self.mean + self.n_in, self.mean + 2 * self.n_in)
        self.n_variables = n_sums + 3 * self.n_in
        self.rows: list[Integers] = []
        self.columns: list[Integers] = []
        self.values: list[Floats] = []
        self.at_most: list[Floats] = []
        self.n_rows = 0
        self.known: tuple[set[tuple[int, int]], ...] = (set(), set())
        self._order_weights()
        self._bound_means()

    def decide(self, tolerance: float) -> bool:
        """Solve, add violated bounds, and solve again until the comparison with the tolerance is decided."""
        for _ in range(MAX_ROUNDS):
            solution, at_most = self._solve()
            weights = self._weights(solution)
            means = largest_means(weights[0], np.concatenate(weights), np.concatenate(self.sizes))
            claimed = sum(
                float(side.totals @ own) for side, own in zip((self.inside, self.outside), weights, strict=True)
            )
            at_least = claimed - float(self.inside.sizes @ means) / self.n_candidates
            if at_least > tolerance or at_most <= tolerance:
                return at_least <= tolerance
            if not self._add_violated(solution, weights):
                return at_least <= tolerance
        raise ArithmeticError("the linear program of compatibility did not converge")

    @property
    def sizes(self) -> tuple[Integers, Integers]:
        return self.inside.sizes, self.outside.sizes

    def _add(self, entries: list[tuple[Integers, float | Floats]], at_most: float | Floats, n: int) -> None:
        """Add ``n`` rows: the sum of values times variables is at most a number. Negative variables are ignored."""
        own = self.n_rows + np.arange(n)
        for columns, values in entries:
            counts = columns >= 0
            self.rows.append(own[counts])
            self.columns.append(columns[counts])
            self.values.append(np.broadcast_to(np.asarray(values, np.float64), n)[counts])
        self.at_most.append(np.broadcast_to(np.asarray(at_most, np.float64), n))
        self.n_rows += n

    def _weight(self, side: int) -> list[tuple[Integers, Floats]]:
        """Return the weights of a side in terms of the variables: differences of sums."""
        n, begin = (self.n_in, 0) if side == 0 else (self.n_out, self.n_in)
        last = begin + np.arange(n)
        share = 1 / self.sizes[side]
        return [(last, share), (np.where(last > begin, last - 1, -1), -share)]

    def _order_weights(self) -> None:
        """Require weights to fall with the claims, from at most 1 to at least -1."""
        for side in (0, 1):
            terms = self._weight(side)
            n = len(self.sizes[side])
            if n == 0:
                continue
            above = [(columns[:-1], -values[:-1]) for columns, values in terms]
            below = [(columns[1:], values[1:]) for columns, values in terms]
            self._add([*above, *below], 0.0, n - 1)
            self._add([(columns[:1], values[:1]) for columns, values in terms], 1.0, 1)
            self._add([(columns[-1:], -values[-1:]) for columns, values in terms], 1.0, 1)

    def _bound_means(self) -> None:
        """Define a mean as the weight of its record plus additions, at first of 1, 2, 4, ... groups."""
        own = self._weight(0)
        terms = [(self.mean, -1.0), (self.added[0], 1.0), (self.added[1], 1.0)]
        self._add([*own, *terms], 0.0, self.n_in)
        for side in (0, 1):
            n = len(self.sizes[side])
            first = np.unique(np.minimum(2 ** np.arange(max(n, 1).bit_length() + 1), n) - 1)
            for group in first[first >= 0]:
                self._add_bounds(side, np.arange(self.n_in), np.full(self.n_in, group))

    def _add_bounds(self, side: int, groups: Integers, places: Integers) -> int:
        """Bound the additions to means: the sum of the greatest weights up to a group, minus so many times the mean."""
        pairs = list(zip(groups.tolist(), places.tolist(), strict=True))
        is_new = np.array([pair not in self.known[side] for pair in pairs], np.bool_)
        self.known[side].update(pairs)
        groups, places = groups[is_new], places[is_new]
        begin = 0 if side == 0 else self.n_in
        terms: list[tuple[Integers, float | Floats]] = [
            (begin + places, 1.0),
            (self.mean[groups], -self.counts[side][places].astype(np.float64)),
            (self.added[side][groups], -1.0),
        ]
        self._add(terms, 0.0, len(groups))
        return len(groups)

    def _add_violated(self, solution: Floats, weights: tuple[Floats, Floats]) -> int:
        n_added = 0
        means = solution[self.mean]
        for side in (0, 1):
            if len(weights[side]) == 0:
                continue
            # Weights above the mean are those of the first groups.
            n_above = np.searchsorted(-weights[side], -means, side="left")
            groups = np.flatnonzero(n_above > 0)
            n_added += self._add_bounds(side, groups, n_above[groups] - 1)
        return n_added

    def _weights(self, solution: Floats) -> tuple[Floats, Floats]:
        """Return the weights of a solution, in order and within their bounds to the last bit."""
        found = []
        for begin, end, sizes in (
            (0, self.n_in, self.inside.sizes),
            (self.n_in, self.n_in + self.n_out, self.outside.sizes),
        ):
            own = np.clip(np.diff(solution[begin:end], prepend=0.0) / sizes, -1.0, 1.0)
            found.append(np.minimum.accumulate(own))
        return found[0], found[1]

    def _solve(self) -> tuple[Floats, float]:
        """Return the best separating weights for the current bounds, and their separation."""
        from scipy.optimize import linprog
        from scipy.sparse import coo_array

        gain = np.zeros(self.n_variables)
        for begin, side in ((0, self.inside), (self.n_in, self.outside)):
            n = len(side.claims)
            gain[begin : begin + n] = side.claims - np.append(side.claims[1:], 0.0)
        gain[self.mean] = -self.inside.sizes / self.n_candidates
        free, positive = (None, None), (0, None)
        matrix = coo_array(
            (np.concatenate(self.values), (np.concatenate(self.rows), np.concatenate(self.columns))),
            shape=(self.n_rows, self.n_variables),
        )
        n_free = self.n_variables - 2 * self.n_in
        found = linprog(
            -gain,
            A_ub=matrix.tocsr(),
            b_ub=np.concatenate(self.at_most),
            bounds=[free] * n_free + [positive] * (2 * self.n_in),
            method="highs",
        )
        if found.status != 0:
            raise ArithmeticError(f"the linear program of compatibility ended with status {found.status}")
        return np.asarray(found.x), -float(found.fun)
