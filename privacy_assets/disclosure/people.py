"""Scores by person, the people who are examined, and what a copy of a person adds to the scores."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privacy_assets.disclosure.pooled_records import PooledRecords
from privacy_assets.disclosure.scores import (
    Attack,
    Evidence,
    Workers,
    gather_evidence,
    measure_all,
    plant_copies,
    score_records,
)

MOST_PAIRS: Final = 2_500_000_000
"""Pairs of real and synthetic records up to which all real records are examined."""
DEFAULT_SAMPLE: Final = 10_000
MOST_PLANTED: Final = 200


class OfPeople:
    """The people whose records are examined, originals first."""

    def __init__(self, records: PooledRecords, rows: NDArray[np.int64]) -> None:
        own = records.people[rows]
        self.people, self.owner, self.n_records = np.unique(own, return_inverse=True, return_counts=True)
        self.n = len(self.people)
        self.n_original = int((self.people < records.n_original_people).sum())

    def sum(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Add values of records up by person."""
        return np.asarray(np.bincount(self.owner, values, self.n), np.float64)

    def mean(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean score of the records of each person, of shape (n_people, n_criteria)."""
        return np.column_stack([self.sum(own) / self.n_records for own in scores.T])


def effect_of_copies(
    records: PooledRecords,
    attack: Attack,
    evidence: Evidence,
    scores: NDArray[np.float64],
    of_people: OfPeople,
    workers: Workers,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Plant copies of the records of some people; return what this adds to their scores, and the mean square of it."""
    most = max(min(MOST_PLANTED, records.n_synthetic // 10), 1)
    order = rng.permutation(of_people.n)
    n_people = max(int(np.searchsorted(np.cumsum(of_people.n_records[order]), most, side="right")), 1)
    # All records of each, unless one person has more than there are synthetic ones.
    rows = attack.rows[np.isin(of_people.owner, order[:n_people])][: records.n_synthetic]
    planted = plant_copies(records, rows, rng.choice(records.n_synthetic, len(rows), replace=False))
    found = gather_evidence(planted, Attack(attack.known, attack.max_known, rows), workers, evidence.precision)
    of_copied = OfPeople(records, rows)
    copied = of_copied.mean(score_records(found, measure_all(evidence)))
    added = copied - scores[np.searchsorted(of_people.people, of_copied.people)]
    return added.mean(axis=0), (added**2).mean(axis=0)


def people_to_examine(n_real: int, n_synthetic: int, sample: int | None) -> int | None:
    """Return how many people are drawn to be examined, None for all."""
    return DEFAULT_SAMPLE if sample is None and n_real * n_synthetic > MOST_PAIRS else sample


def draw_people(records: PooledRecords, n: int | None, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the records of so many people, drawn at random without a look at who is an original; None: of all."""
    if n is None or n >= records.n_people:
        return np.arange(records.n_real)
    is_drawn = np.zeros(records.n_people, np.bool_)
    is_drawn[rng.choice(records.n_people, n, replace=False)] = True
    return np.flatnonzero(is_drawn[records.people])
