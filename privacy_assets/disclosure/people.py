"""Scores by person, the examined people, and the effect of a copy of a person on the scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.disclosure.criteria import CRITERIA, Evidence
from privacy_assets.disclosure.pooled_records import PooledRecords
from privacy_assets.disclosure.scores import Attack, Workers, gather_evidence, plant_copies, score_records

MOST_PAIRS: Final = 2_500_000_000
"""Largest number of pairs of real and synthetic records for which all real records are examined."""
DEFAULT_SAMPLE: Final = 10_000
MOST_PLANTED: Final = 200
(RATIONED,) = (place for place, criterion in enumerate(CRITERIA.values()) if criterion.is_rationed)
"""Place of the only criterion for which copies compete."""


class OfPeople:
    """The people whose records are examined, originals first."""

    def __init__(self, records: PooledRecords, rows: NDArray[np.int64]) -> None:
        own = records.people[rows]
        self.people, self.owner, self.n_records = np.unique(own, return_inverse=True, return_counts=True)
        self.n = len(self.people)
        self.n_original = int((self.people < records.n_original_people).sum())

    def sum(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Sum values of records by person."""
        return np.asarray(np.bincount(self.owner, values, self.n), np.float64)

    def mean(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean score of the records of each person, of shape (n_people, n_criteria)."""
        return np.column_stack([self.sum(own) / self.n_records for own in scores.T])


class Scored(NamedTuple):
    """Examined people, with the evidence on their records and their scores, of shape (n_people, n_criteria)."""

    of_people: OfPeople
    evidence: Evidence
    scores: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PlantedCopies:
    """The amounts that copies of some people, drawn at random, add to their scores.

    ``added`` has them by person, of shape (n_copied, n_criteria); 0 for criteria that do not find copies.
    ``closeness`` is that of the records of these people, ``owner`` the place of the person of each record in ``added``,
    and ``of_others`` the closeness of all records without copies, the closest first: all of the ``n_records`` that are
    examined, or a sample. ``n_closest`` of them count as the closest.
    """

    added: NDArray[np.float64]
    closeness: NDArray[np.int32]
    owner: NDArray[np.int64]
    of_others: NDArray[np.int32]
    n_records: int
    n_closest: float

    def draw(self, m: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what copies of m people add to their scores, and the remaining share of each score for all others.

        They are drawn from a bootstrap of the planted copies, so that the uncertainty of the effect counts. The number
        of closest records is fixed: many copies, and others that are as close, share the rationed score.
        """
        return self.of_drawn(draw_copied(len(self.added), m, rng))

    def of_drawn(self, drawn: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the same for certain copied people."""
        n_copied, n_criteria = self.added.shape
        d, left = self.added[drawn], np.ones(n_criteria)
        of_person, left[RATIONED] = self._closest(np.bincount(drawn, minlength=n_copied))
        d[:, RATIONED] = of_person[drawn]
        return d, left

    def _closest(self, times: NDArray[np.int64]) -> tuple[NDArray[np.float64], float]:
        """Return the rationed score of each person, copied this many times, and the remaining share of others."""
        n_closest, weight = self.n_closest, self.n_records / len(self.of_others)
        others = self.of_others[: int(np.ceil(n_closest / weight))]
        closeness = np.concatenate([self.closeness, others])
        n_each = np.concatenate([times[self.owner].astype(float), np.full(len(others), weight)])
        order = np.argsort(-closeness, kind="stable")
        at_edge = int(np.searchsorted(np.cumsum(n_each[order]), n_closest - 1e-9))
        edge = int(closeness[order][at_edge])
        n_above, n_at = n_each[closeness > edge].sum(), n_each[closeness == edge].sum()
        of_record = np.where(closeness == edge, (n_closest - n_above) / n_at, closeness > edge)
        n_rows = np.bincount(self.owner)
        of_person = np.bincount(self.owner, of_record[: len(self.owner)]) / n_rows
        return of_person, float((of_record * n_each)[len(self.owner) :].sum() / n_closest)


def draw_copied(n_copied: int, m: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw m of the planted copies from a bootstrap of them."""
    known = np.asarray(rng.integers(0, n_copied, size=n_copied))
    return known[rng.integers(0, n_copied, size=m)]


def most_planted(records: PooledRecords) -> int:
    """Return the number of records to plant.

    Of the distinct records, because repeats would make the effect look more certain.
    """
    return max(min(MOST_PLANTED, len(records.distinct) // 10), 1)


def people_within(n_records: NDArray[np.int64], most: int) -> int:
    """Return how many of the first people have together no more than this many records, at least one."""
    return max(int(np.searchsorted(np.cumsum(n_records), most, side="right")), 1)


def add_copies(
    records: PooledRecords,
    attack: Attack,
    scored: Scored,
    workers: Workers,
    rng: np.random.Generator,
    copied: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.float64], Evidence, OfPeople]:
    """Plant copies of the records of some people, drawn at random or given as places among the examined ones.

    Returns what this adds to the scores of each, of shape (n_copied, n_criteria), with the evidence on their records
    and the people themselves.
    """
    of_people, evidence, scores = scored
    if copied is None:
        order = rng.permutation(of_people.n)
        copied = order[: people_within(of_people.n_records[order], most_planted(records))]
    # All records of each person, unless a person has more than there are synthetic records.
    rows = attack.rows[np.isin(of_people.owner, copied)][: records.n_synthetic]
    planted = plant_copies(records, rows, rng.choice(records.n_synthetic, len(rows), replace=False))
    found = gather_evidence(planted, replace(attack, rows=rows), workers, evidence)
    of_copied = OfPeople(records, rows)
    asked = attack.criteria(records).values()
    finding = [place for place, criterion in enumerate(asked) if criterion.finds_copies]
    of_copies = of_copied.mean(score_records((each for each in asked if each.finds_copies), found, evidence))
    added = np.zeros((of_copied.n, len(asked)))
    added[:, finding] = of_copies - scores[np.searchsorted(of_people.people, of_copied.people)][:, finding]
    return added, found, of_copied


def effect_of_copies(
    records: PooledRecords,
    attack: Attack,
    scored: Scored,
    workers: Workers,
    rng: np.random.Generator,
    copied: NDArray[np.int64] | None = None,
) -> PlantedCopies:
    """Plant copies of people as `add_copies`; return what this adds to the scores, and how they compete."""
    added, found, of_copied = add_copies(records, attack, scored, workers, rng, copied)
    of_others, n_closest = np.sort(scored.evidence["closeness"])[::-1], float(scored.evidence["n_closest"])
    return PlantedCopies(added, found["closeness"], of_copied.owner, of_others, len(attack.rows), n_closest)


def people_to_examine(n_real: int, n_synthetic: int, sample: int | None) -> int | None:
    """Return the number of people to draw and examine; None for all."""
    return DEFAULT_SAMPLE if sample is None and n_real * n_synthetic > MOST_PAIRS else sample


def draw_people(records: PooledRecords, n: int | None, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the records of n people (None: of all), drawn at random regardless of who is an original."""
    if n is None or n >= records.n_people:
        return np.arange(records.n_real)
    is_drawn = np.zeros(records.n_people, np.bool_)
    is_drawn[rng.choice(records.n_people, n, replace=False)] = True
    return np.flatnonzero(is_drawn[records.people])
