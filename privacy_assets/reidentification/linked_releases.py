"""Groups of rows that a key of people ties together in several releases.

An attacker who knows rows of a person knows them in each release that has them. A person is left if one group, over all
releases, has rows that fit: in each release a different one for each known row that this release has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.reidentification.linked_rows import KnownRows, LinkedRows, WorstRows


class RowsOfRelease(NamedTuple):
    """The rows of one release: as known rows, the original row of each, and the group of each."""

    rows: KnownRows
    truth: NDArray[np.int64]
    groups: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class LinkedReleases(LinkedRows):
    """Groups of the rows of several releases; the known rows of a target are rows of the original.

    ``row_first`` has the first original row of each target, and ``place`` the first of its known rows, one in each
    release that has it, among ``known_by_row``. ``by_release`` has them one by one.
    """

    row_first: NDArray[np.int64]
    place: NDArray[np.int64]
    known_by_row: NDArray[np.int64]
    by_release: LinkedRows

    @classmethod
    def of_releases(cls, releases: Sequence[RowsOfRelease], people: NDArray[np.int64], *options: Any) -> LinkedReleases:
        """Arrange the rows of releases by group; ``people`` has the person of each original row."""
        known, truth = _joined([each.rows for each in releases]), np.concatenate([each.truth for each in releases])
        groups = np.concatenate([each.groups for each in releases])
        one_by_one = LinkedRows.of_groups(known, people[truth], groups, *options)
        target = np.unique(people[truth] * (int(groups.max()) + 1) + groups, return_inverse=True)[1]
        order = np.lexsort((known.known_of_row, truth, target))
        target, truth = target[order], truth[order]
        place = np.flatnonzero(np.diff(target, prepend=-1).astype(np.bool_) | (np.diff(truth, prepend=-1) != 0))
        row_first = np.searchsorted(target[place], np.arange(len(one_by_one.person) + 1))
        return cls(
            one_by_one.fits,
            one_by_one.first,
            one_by_one.known,
            one_by_one.person,
            *options,
            row_first=row_first,
            place=np.append(place, len(order)),
            known_by_row=known.known_of_row[order],
            by_release=one_by_one,
        )

    @cached_property
    def n_rows(self) -> NDArray[np.int64]:
        """Number of original rows of each target."""
        return np.diff(self.row_first)

    @cached_property
    def fewest_of_one(self) -> NDArray[np.int64]:
        """People left by the worst single row of each target."""
        every = np.arange(len(self.place) - 1)
        return np.minimum.reduceat(self._count_rows(every, every), self.row_first[:-1])

    def sample(self, steps: Sequence[int], n_samples: int, seed: int) -> Iterator[NDArray[np.int64]]:
        """Yield the numbers of people left, as :meth:`LinkedRows.sample`."""
        random = np.random.default_rng(seed)
        begins = np.append(self.row_first[self.first_of_person], len(self.place) - 1)
        person = random.integers(len(begins) - 1, size=n_samples)
        row = random.integers(begins[person], begins[person + 1])
        target = np.searchsorted(self.row_first, row, side="right") - 1
        drawn = [random.permutation(n) for n in self.n_rows[target]]
        for step in steps:
            sizes, some = self.sizes_of_all[target], np.flatnonzero(self.n_rows[target] > step)
            rows = [self.row_first[target[s]] + drawn[s][:step] for s in some]
            if rows:
                sizes[some] = self._count_rows(np.repeat(np.arange(len(some)), step), np.concatenate(rows))
            yield sizes

    def worst(self, n_rows: int | Literal["all"], k: int, fewest: NDArray[np.int64] | None = None) -> WorstRows:  # noqa: ARG002
        """Bound the number of people left by the worst ``n_rows`` original rows of each person.

        One row is compared exactly. Beyond it, k people are proven to be left if any so many rows in each release
        leave them, also if these are other rows in another release.
        """
        most = self.steps(n_rows)[-1]
        found = np.where(self.n_rows <= most, self.sizes_of_all, self.fewest_of_one)
        found = np.minimum.reduceat(found, self.first_of_person)
        n_below, n_open, at_least = int((found < k).sum()), 0, int(found.min())
        if most > 1:
            bound = self.by_release.worst(most * int(np.diff(self.place).max()), k)
            at_least, n_open = bound.at_least, bound.n_people_below + bound.n_people_open - n_below
        outcome: Literal["refused", "not proven", "admitted"] = "not proven" if n_open else "admitted"
        return WorstRows("refused" if n_below else outcome, at_least, int(found.min()), n_below, n_open)

    def _count_rows(self, sample: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the people left by samples of original rows, which are numbered in ascending order."""
        lengths = np.diff(self.place)[rows]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        known, sample = self.known_by_row[np.repeat(self.place[rows], lengths) + within], np.repeat(sample, lengths)
        first = np.searchsorted(sample, np.arange(int(sample[-1]) + 2))
        return self.count(first, known[np.lexsort((known, sample))])


def _joined(releases: Sequence[KnownRows]) -> KnownRows:
    """Return the rows of several releases as those of one, with other boxes and known rows for each of them."""
    parts, n_known, n_boxes, n_fits = [], 0, 0, 0
    for rows in releases:
        parts.append(
            (
                rows.box_of_row + n_boxes,
                rows.known_of_row + n_known,
                rows.fit_first[:-1] + n_fits,
                rows.fit_box + n_boxes,
            )
        )
        n_known, n_fits = n_known + len(rows.fit_first) - 1, n_fits + len(rows.fit_box)
        n_boxes += int(rows.box_of_row.max()) + 1
    box, known, first, fit = (np.concatenate(each) for each in zip(*parts, strict=True))
    return KnownRows(box, known, np.append(first, n_fits), fit)
