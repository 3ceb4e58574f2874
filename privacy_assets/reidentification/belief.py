"""Belief functions over the records of a table (Shafer 1976), as far as re-identification needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import fsum, log

from privacy_assets.errors import InvalidSettingError

# Masses are written as decimals, so that they add up to 1 only nearly.
MASS_TOLERANCE = 1e-6


class BeliefFunction:
    """Masses of sets of records; who a released record can be, and how sure that is.

    Parameters
    ----------
    masses : mapping of frozenset of int to float
        Mass of each focal set, above 0 or 0, in all 1 (within 1e-6); no mass on the empty set.

    Raises
    ------
    InvalidSettingError
        Masses that are negative or do not add up to 1, or an empty focal set.

    References
    ----------
    V. Torra, K. Stokes, "A formalization of re-identification in terms of compatible probabilities" (2013),
    Definitions 1 to 4, 22 and 25. Its Definition 22 lacks the minus sign. All logarithms are natural.
    """

    def __init__(self, masses: Mapping[frozenset[int], float]) -> None:
        total = fsum(masses.values())
        if not all(mass >= 0 for mass in masses.values()) or not abs(total - 1) <= MASS_TOLERANCE:
            raise InvalidSettingError(
                f"{len(masses)} masses add up to {total:.6g}, the smallest is {min(masses.values(), default=0):.6g}. "
                "Expected masses of at least 0 that add up to 1."
            )
        self.masses = {focal: mass for focal, mass in masses.items() if mass > 0}
        if frozenset() in self.masses:
            raise InvalidSettingError("The empty set has a mass. Expected focal sets with at least one record.")

    @classmethod
    def categorical(cls, candidates: Iterable[int]) -> BeliefFunction:
        """Put all mass on one set: the true record is among the candidates, and nothing else is known."""
        return cls({frozenset(candidates): 1.0})

    def belief(self, records: Iterable[int]) -> float:
        """Sum the masses of the sets inside ``records``: how sure it is that the true record is one of them."""
        inside = frozenset(records)
        return fsum(mass for focal, mass in self.masses.items() if focal <= inside)

    def plausibility(self, records: Iterable[int]) -> float:
        """Sum the masses of the sets that meet ``records``: how possible it is."""
        inside = frozenset(records)
        return fsum(mass for focal, mass in self.masses.items() if focal & inside)

    def pignistic(self) -> dict[int, float]:
        """Share the mass of each set evenly among its records (Definition 4)."""
        parts: dict[int, list[float]] = {}
        for focal, mass in self.masses.items():
            for record in focal:
                parts.setdefault(record, []).append(mass / len(focal))
        return {record: fsum(own) for record, own in sorted(parts.items())}

    def entropy(self) -> float:
        """Entropy of the pignistic probability, in nats; it may rise as more gets known."""
        return -fsum(share * log(share) for share in self.pignistic().values())

    def nonspecificity(self) -> float:
        """Mean logarithm of the size of a focal set, in nats (Definition 25); 0 if every one is a single record."""
        return fsum(mass * log(len(focal)) for focal, mass in self.masses.items())

    def is_compatible_with(self, truth: Mapping[int, float], tolerance: float = 1e-9) -> bool:
        """Say whether a true probability is at least the belief of every set (Definition 7).

        It is enough to look at unions of focal sets: any other set has the belief of the largest union inside it, and
        at least that union's probability. The cost doubles with each focal set.
        """
        unions = {frozenset[int]()}
        for focal in self.masses:
            unions |= {union | focal for union in unions}
        return all(
            fsum(truth.get(record, 0.0) for record in union) >= self.belief(union) - tolerance for union in unions
        )
