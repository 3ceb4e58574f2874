"""Belief functions over the records of a table (Shafer 1976), for re-identification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from math import fsum, inf, log

from privacy_assets.errors import ConflictError, InvalidSettingError

# Masses are written as decimals, so their sum is only approximately 1.
MASS_TOLERANCE = 1e-6
MOST_UNIONS = 100_000


class BeliefFunction:
    """Masses of sets of records: the possible originals of a released record, with their certainty.

    Parameters
    ----------
    masses : mapping of frozenset of int to float
        Mass of each focal set, at least 0, with sum 1 (within 1e-6); no mass on the empty set.

    Raises
    ------
    InvalidSettingError
        If masses are negative or do not sum to 1, or a focal set is empty.

    References
    ----------
    V. Torra, K. Stokes, "A formalization of re-identification in terms of compatible probabilities" (2013),
    Definitions 1 to 4, 7, 22, 25, 27 and 28. Its Definition 22 lacks the minus sign. All logarithms are natural.
    """

    def __init__(self, masses: Mapping[frozenset[int], float]) -> None:
        total = fsum(masses.values())
        if not all(mass >= 0 for mass in masses.values()) or not abs(total - 1) <= MASS_TOLERANCE:
            raise InvalidSettingError(
                f"{len(masses)} masses sum to {total:.6g}; the smallest is {min(masses.values(), default=0):.6g}. "
                "Expected masses of at least 0 that sum to 1."
            )
        self.masses = {focal: mass for focal, mass in masses.items() if mass > 0}
        if frozenset() in self.masses:
            raise InvalidSettingError("The empty set has a mass. Expected focal sets with at least one record.")

    @classmethod
    def categorical(cls, candidates: Iterable[int]) -> BeliefFunction:
        """Put all mass on one set: it is only known that the true record is among the candidates."""
        return cls({frozenset(candidates): 1.0})

    def belief(self, records: Iterable[int]) -> float:
        """Sum the masses of the subsets of ``records``: the certainty that the true record is one of them."""
        inside = frozenset(records)
        return fsum(mass for focal, mass in self.masses.items() if focal <= inside)

    def plausibility(self, records: Iterable[int]) -> float:
        """Sum the masses of the sets that intersect ``records``: the plausibility."""
        inside = frozenset(records)
        return fsum(mass for focal, mass in self.masses.items() if focal & inside)

    def pignistic(self) -> dict[int, float]:
        """Divide the mass of each set evenly among its records (Definition 4)."""
        parts: dict[int, list[float]] = {}
        for focal, mass in self.masses.items():
            for record in focal:
                parts.setdefault(record, []).append(mass / len(focal))
        return {record: fsum(own) for record, own in sorted(parts.items())}

    def entropy(self) -> float:
        """Entropy of the pignistic probability, in nats; it may rise with more knowledge."""
        return -fsum(share * log(share) for share in self.pignistic().values())

    def nonspecificity(self) -> float:
        """Mean logarithm of the size of a focal set, in nats (Definition 25); 0 if every one is a single record."""
        return fsum(mass * log(len(focal)) for focal, mass in self.masses.items())

    def is_compatible_with(self, truth: Mapping[int, float], tolerance: float = 1e-9) -> bool:
        """Return whether a true probability is at least the belief of every set (Definition 7).

        Parameters
        ----------
        truth : mapping of int to float
            Probability of each record to be the true one, with sum 1 (within 1e-6); omitted records have 0.
        tolerance : float
            Belief may exceed probability by this much.

        Raises
        ------
        InvalidSettingError
            If ``truth`` is not a probability, or more than 100,000 unions of focal sets would have to be compared.

        Notes
        -----
        It is enough to check unions of focal sets: any other set has the belief of the largest union inside it, and
        at least that union's probability. A focal set of one record takes its mass from that record alone, so only sets
        of several records have unions, and only those that share records, directly or through others, have to be
        examined together.
        """
        _require_probability(truth)
        rest = {record: truth.get(record, 0.0) for focal in self.masses for record in focal}
        several = {}
        for focal, mass in self.masses.items():
            if len(focal) == 1:
                rest[next(iter(focal))] -= mass
            else:
                several[focal] = mass
        # The set whose probability is furthest below its belief is made of the worst set of each connected part.
        joined = frozenset[int]().union(*several)
        differences = [min(value, 0.0) for record, value in rest.items() if record not in joined]
        for own in _connected(several):
            records = frozenset[int]().union(*own)
            differences.append(
                min(
                    fsum(rest[record] if record in union else min(rest[record], 0.0) for record in records)
                    - fsum(mass for focal, mass in own.items() if focal <= union)
                    for union in _unions(own)
                )
            )
        return fsum(differences) >= -tolerance

    def combine(self, *others: BeliefFunction) -> BeliefFunction:
        """Combine with the evidence of independent sources, one after the other, by Dempster's rule.

        Raises
        ------
        ConflictError
            If the sources contradict each other: the focal sets of one do not share records with those of the other.

        Notes
        -----
        Mass of A and B goes to their intersection; mass that would go to the empty set is removed, and the rest is
        scaled to 1 (Shafer 1976). The rule is not acceptable in the sense of Definition 27 for all belief functions, as
        `combine_acceptably` is.
        """
        combined = self
        for other in others:
            products: dict[frozenset[int], list[float]] = {}
            for focal, mass in combined.masses.items():
                for other_focal, other_mass in other.masses.items():
                    products.setdefault(focal & other_focal, []).append(mass * other_mass)
            products.pop(frozenset(), None)
            total = fsum(product for own in products.values() for product in own)
            if total <= 0:
                raise ConflictError(
                    f"The evidence contradicts itself: none of {len(combined.masses)} focal sets shares a record with "
                    f"one of {len(other.masses)}. Expected evidence of the same released record."
                )
            combined = BeliefFunction({focal: fsum(own) / total for focal, own in products.items()})
        return combined

    def combine_acceptably(self, *others: BeliefFunction) -> BeliefFunction:
        """Combine with other evidence, one after the other, so that no truth that all of it admits is contradicted.

        Each step is an acceptable combination (Definition 27) under every true probability with which both belief
        functions are compatible; together they are the recursion of Definition 28. Sources may depend on each other.

        Raises
        ------
        ConflictError
            If no probability is compatible with both.
        InvalidSettingError
            If more than 4,000 unions of focal sets would have to be compared.

        Notes
        -----
        Of the masses of the focal sets and their intersections that are compatible with every such truth, it takes
        those of the least nonspecificity, by linear programs (HiGHS). Categorical belief is intersected. In general the
        order of more than two matters, and other masses may be as specific.
        """
        from privacy_assets.reidentification.acceptable_combination import combine_acceptably

        masses: Mapping[frozenset[int], float] = self.masses
        for other in others:
            masses = combine_acceptably(masses, other.masses)
        return BeliefFunction(masses)

    def condition(self, records: Iterable[int]) -> BeliefFunction:
        """Take into account that the true record is one of ``records``, and nothing else (section 4.3).

        Raises
        ------
        ConflictError
            If none of these records is plausible.
        """
        return self.combine(BeliefFunction.categorical(records))

    def is_acceptable_combination_of(self, parts: Iterable[BeliefFunction], truth: Mapping[int, float]) -> bool:
        """Return whether it combines others as Definition 27 requires, under a true probability.

        It must be compatible with the truth and no less specific than any of the parts.

        Raises
        ------
        InvalidSettingError
            If a part is not compatible with the truth, a case that the definition does not cover.
        """
        given = list(parts)
        n_others = sum(not part.is_compatible_with(truth) for part in given)
        if n_others:
            raise InvalidSettingError(
                f"{n_others} of {len(given)} belief functions are not compatible with the truth. Expected all of them "
                "to be (Definition 27)."
            )
        most = min((part.nonspecificity() for part in given), default=inf)
        return self.is_compatible_with(truth) and self.nonspecificity() <= most + MASS_TOLERANCE

    @classmethod
    def from_belief(cls, belief: Mapping[frozenset[int], float]) -> BeliefFunction:
        """Find the masses behind the belief of each set (the Moebius inverse, Shafer 1976, Theorem 2.2).

        Parameters
        ----------
        belief : mapping of frozenset of int to float
            Belief of every set of the records that occur, except the empty one.

        Raises
        ------
        InvalidSettingError
            If a set is missing, or the beliefs do not come from masses.
        """
        records = sorted(frozenset().union(*belief))
        sets = [frozenset(own) for size in range(1, len(records) + 1) for own in combinations(records, size)]
        n_missing = sum(own not in belief for own in sets)
        if n_missing:
            raise InvalidSettingError(
                f"The belief of {n_missing} of {len(sets)} sets of {len(records)} records is missing. Expected that of "
                "every set except the empty one."
            )
        masses: dict[frozenset[int], float] = {}
        for own in sets:
            mass = belief[own] - fsum(value for part, value in masses.items() if part < own)
            masses[own] = 0.0 if abs(mass) <= MASS_TOLERANCE else mass
        return cls(masses)


def _require_probability(truth: Mapping[int, float]) -> None:
    total = fsum(truth.values())
    if not all(share >= 0 for share in truth.values()) or not abs(total - 1) <= MASS_TOLERANCE:
        raise InvalidSettingError(
            f"The true probabilities of {len(truth)} records sum to {total:.6g}; the smallest is "
            f"{min(truth.values(), default=0):.6g}. Expected probabilities of at least 0 that sum to 1."
        )


def _connected(masses: Mapping[frozenset[int], float]) -> list[dict[frozenset[int], float]]:
    """Group focal sets by shared records, directly or through others."""
    parts: list[tuple[frozenset[int], dict[frozenset[int], float]]] = []
    for focal, mass in masses.items():
        joined, own = focal, {focal: mass}
        apart = []
        for records, part in parts:
            if records & joined:
                joined, own = joined | records, own | part
            else:
                apart.append((records, part))
        parts = [*apart, (joined, own)]
    return [own for _, own in parts]


def _unions(focal_sets: Iterable[frozenset[int]]) -> set[frozenset[int]]:
    unions = {frozenset[int]()}
    for focal in focal_sets:
        unions |= {union | focal for union in unions}
        if len(unions) > MOST_UNIONS:
            raise InvalidSettingError(
                f"More than {MOST_UNIONS:,} unions of focal sets share records. Expected fewer focal sets of several "
                "records; join some of them first."
            )
    return unions
