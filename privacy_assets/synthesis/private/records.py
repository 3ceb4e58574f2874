"""The private records, and the only two functions that touch them.

Everything else in the synthesis works on the results of these two, so it is post-processing, which does not cost
privacy. Both sum their costs, by OpenDP's own accounting.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.synthesis.private.mechanisms import Mechanism

RESOLUTION: Final = 1024
"""Steps to which an expected count is rounded, so that scores are whole numbers, whose sensitivity is exact."""


class Charge(NamedTuple):
    """The cost of one use of a mechanism in zCDP, and the query, by names of columns."""

    what: str
    rho: float


class Grouping(NamedTuple):
    """Public grouping of the codes of a column: the group of each code, and the number of groups."""

    group: NDArray[np.int64]
    n_groups: int


class PrivateRecords:
    """Coded records that answer two kinds of queries, each with noise.

    ``codes``, of shape (n_records, n_columns), are those of the public domain. Every count is divided by the classes of
    the column at ``classes``. Records with a ``person`` below 0 do not belong to a known person and are left out; of
    each person, ``rows_per_person`` are kept, chosen at random by the operating system; without `person` it must be 1.
    """

    def __init__(
        self,
        codes: NDArray[np.int64],
        sizes: Sequence[int],
        classes: int | None = None,
        person: NDArray[np.int64] | None = None,
        rows_per_person: int = 1,
    ) -> None:
        kept = codes if person is None else codes[_rows_kept(person, rows_per_person)]
        self._codes = kept
        self._class_of = np.zeros(len(kept), dtype=np.int64) if classes is None else kept[:, classes]
        self._distances: dict[tuple[int, int], int] = {}
        self.n_classes = 1 if classes is None else sizes[classes]
        self.charges: list[Charge] = []

    def noisy_counts(
        self, columns: Sequence[int], groupings: Sequence[Grouping], mechanism: Mechanism, what: str
    ) -> NDArray[np.int64]:
        """Count the records by class and by the groups of one or two columns, with Gaussian noise.

        One record changes one cell by 1.
        """
        counts = self._counts(columns, groupings)
        self.charges.append(Charge(what, mechanism.rho))
        return mechanism.noisy(counts)

    def noisy_choice(
        self,
        pairs: Sequence[tuple[int, int]],
        groupings: Mapping[int, Grouping],
        expected: Mapping[int, NDArray[np.float64]],
        penalties: Mapping[tuple[int, int], int],
        mechanism: Mechanism,
        what: str,
    ) -> int:
        """Return the position of a pair whose counts are far from those expected for independent columns.

        A score is the sum of the distances, in steps of 1 / `RESOLUTION`, minus the public penalty of the pair; one
        record changes it by at most `RESOLUTION`. `expected` has the counts of each column by class, which are public;
        they must be the same in every call, because distances are computed once.
        """
        for a, b in pairs:
            if (a, b) not in self._distances:
                steps = np.rint(independent(expected[a], expected[b]) * RESOLUTION).astype(np.int64)
                counts = self._counts((a, b), (groupings[a], groupings[b]))
                self._distances[a, b] = int(np.abs(counts * RESOLUTION - steps).sum())
        scores = np.array([self._distances[pair] - penalties[pair] for pair in pairs], dtype=np.int64)
        self.charges.append(Charge(what, mechanism.rho))
        return mechanism.best(scores)

    def _counts(self, columns: Sequence[int], groupings: Sequence[Grouping]) -> NDArray[np.int64]:
        cell = self._class_of
        for column, grouping in zip(columns, groupings, strict=True):
            cell = cell * grouping.n_groups + grouping.group[self._codes[:, column]]
        shape = (self.n_classes, *(grouping.n_groups for grouping in groupings))
        counts: NDArray[np.int64] = np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape).astype(np.int64)
        return counts


def independent(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the counts expected if two columns, of shape (n_classes, n_codes), were independent within each class."""
    totals = np.maximum((a.sum(axis=1) + b.sum(axis=1)) / 2, 1.0)
    product: NDArray[np.float64] = a[:, :, None] * b[:, None, :] / totals[:, None, None]
    return product


def _rows_kept(person: NDArray[np.int64], rows_per_person: int) -> NDArray[np.intp]:
    """Return the rows that are kept: of each person the first few in a secret order."""
    n_rows = len(person)
    # Drawn like noise: anyone who knew the order would know which of a person's records count.
    order = np.argsort(np.frombuffer(secrets.token_bytes(8 * n_rows), dtype=np.uint64), kind="stable")
    order = order[person[order] >= 0]
    order = order[np.argsort(person[order], kind="stable")]
    own = person[order]
    starts = np.flatnonzero(np.diff(own, prepend=-1))
    rank = np.arange(len(own)) - np.repeat(starts, np.diff(starts, append=len(own)))
    return np.sort(order[rank < rows_per_person])
