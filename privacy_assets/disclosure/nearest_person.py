"""The real person that each synthetic person is nearest to, by the rows that both have.

The overlap of a synthetic and a real person is the number of their common distinct rows, on every set of columns that
an attacker may know, each weighted by minus the logarithm of the share of real people who have it. A synthetic person
points to the nearest real person, with the square of the lead over the second nearest as weight: who is a copy leads by
much, and all others by little. Numbers are in bins, which come from originals and controls together.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from privacy_assets.disclosure.criteria import Evidence
from privacy_assets.disclosure.kernels.column_sets import add_shared_rows
from privacy_assets.disclosure.pooled_records import PooledRecords
from privacy_assets.disclosure.scores import Attack, Workers

UNITS_PER_NAT: Final = 2.0**24
"""Overlaps are integers, so that equal ones are equal regardless of the order in which they are added."""
MOST_OVERLAPS: Final = 8_000_000
"""Overlaps in memory at once, by thread."""


def point_to_nearest(
    records: PooledRecords, attack: Attack, workers: Workers, whole: Evidence | None = None
) -> Evidence:
    """Return the weight with which synthetic people point to the person of each record: ``pointed``, (n_scored,).

    Only the people who are examined can be pointed to; ``compared_people`` are their numbers.
    """
    people = np.unique(records.people[attack.rows]) if whole is None else whole["compared_people"]
    nearest, lead = find_nearest(records, attack.sets, people, workers)
    pointed = np.bincount(nearest, lead**2, len(people))
    return {"pointed": pointed[np.searchsorted(people, records.people[attack.rows])], "compared_people": people}


def find_nearest(
    records: PooledRecords, sets: NDArray[np.int64], people: NDArray[np.int32], workers: Workers
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return, by synthetic person, the position in ``people`` of the nearest one, and its lead over the next in nats.

    Cost: for each set a pass over all records, and a step for each pair of people who share a row.
    """
    makers = records.synthetic_people
    assert makers is not None  # noqa: S101 - otherwise this is not asked
    rows = np.flatnonzero(np.isin(records.people, people))
    rows = rows[np.argsort(records.people[rows], kind="stable")]
    owner = np.searchsorted(people, records.people[rows]).astype(np.int32)
    scored = records.binned.real.take(rows)
    order = np.argsort(makers, kind="stable")
    of_synthetic = np.unique(makers[order], return_inverse=True)[1].astype(np.int32)
    synthetic = records.binned.synthetic.take(order)
    shares = np.arange(1, len(people) + 1) / len(people)
    weight = np.rint(np.concatenate([[0.0], -np.log(shares)]) * UNITS_PER_NAT).astype(np.int64)
    n_synthetic = int(of_synthetic[-1]) + 1
    nearest, lead = np.zeros(n_synthetic, np.int64), np.zeros(n_synthetic)
    n_at_once = max(min(MOST_OVERLAPS // len(people), -(-n_synthetic // workers.pool.n_threads)), 1)

    def work(first_block: int, stop_block: int) -> None:
        for first in range(first_block * n_at_once, min(stop_block * n_at_once, n_synthetic), n_at_once):
            begin, end = np.searchsorted(of_synthetic, [first, first + n_at_once])
            own, own_rows = of_synthetic[begin:end] - first, np.ascontiguousarray(synthetic[:, begin:end])
            overlap = np.zeros((int(own[-1]) + 1, len(people)), np.int64)
            for columns in sets:
                if workers.pool.is_stopped[0]:
                    return
                add_shared_rows(columns, scored, owner, own_rows, own, records.n_binned, weight, overlap)
            first_two = np.partition(overlap, -2, axis=1)[:, -2:]
            nearest[first : first + len(overlap)] = overlap.argmax(axis=1)
            lead[first : first + len(overlap)] = (first_two[:, 1] - first_two[:, 0]) / UNITS_PER_NAT

    workers.run("nearest person", -(-n_synthetic // n_at_once), work)
    return nearest, lead
