"""Groups of rows that a key of people ties together in several releases.

An attacker who knows rows of a person knows them in each release that has them. A person is left if one group, over all
releases, has rows that fit: in each release a different one for each known row that this release has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.reidentification.candidate_index import CandidateIndex
from privacy_assets.reidentification.linked_rows import KnownRows, LinkedRows, WorstRows, read_known_rows


class RowsOfRelease(NamedTuple):
    """The rows of one release: as known rows, the original row of each, and the group of each."""

    rows: KnownRows
    truth: NDArray[np.int64]
    groups: NDArray[np.int64]

    @classmethod
    def of(cls, release: CandidateIndex, groups: NDArray[np.int64], known: Sequence[str]) -> RowsOfRelease:
        """Read the rows for an attacker who knows those of some columns that the release has."""
        columns = release.masked([name for name in known if name in release.columns])
        return cls(read_known_rows(columns, release.truth, release.n_threads), release.truth, groups)


@dataclass(frozen=True, kw_only=True)
class LinkedReleases(LinkedRows):
    """Groups of the rows of several releases; the known rows of a target are rows of the original.

    ``begins`` has the first original row of each target, and ``place`` the first of its known rows, one in each release
    that has it, among ``known_by_row``. ``by_release`` has them one by one.
    """

    begins: NDArray[np.int64]
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
        of_rows: dict[str, Any] = {
            "begins": np.searchsorted(target[place], np.arange(len(one_by_one.person) + 1)),
            "place": np.append(place, len(order)),
            "known_by_row": known.known_of_row[order],
        }
        return cls(**vars(one_by_one), **of_rows, by_release=one_by_one)

    @property
    def first_row(self) -> NDArray[np.int64]:
        """Number of the first original row of each target."""
        return self.begins

    @cached_property
    def fewest_of_one(self) -> NDArray[np.int64]:
        """People left by the worst single row of each target."""
        return np.minimum.reduceat(self.count_rows(np.arange(len(self.place) - 1)[:, None]), self.begins[:-1])

    def count_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the people left by samples of original rows, each known in every release that has it."""
        sample, row = np.repeat(np.arange(len(rows)), rows.shape[1]), rows.ravel()
        lengths = np.diff(self.place)[row]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        known, sample = self.known_by_row[np.repeat(self.place[row], lengths) + within], np.repeat(sample, lengths)
        first = np.searchsorted(sample, np.arange(len(rows) + 1))
        return self.count(first, known[np.lexsort((known, sample))])

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
        return WorstRows(at_least, int(found.min()), n_below, n_open)


def _joined(releases: Sequence[KnownRows]) -> KnownRows:
    """Return the rows of several releases as those of one, with other boxes and known rows for each of them."""
    n_each = [(int(own.box_of_row.max()) + 1, len(own.fit_first) - 1, len(own.fit_box)) for own in releases]
    parts = [
        (own.box_of_row + box, own.known_of_row + known, own.fit_first[:-1] + fit, own.fit_box + box)
        for own, (box, known, fit) in zip(releases, np.cumsum([(0, 0, 0), *n_each], axis=0), strict=False)
    ]
    box, known, first, fit = (np.concatenate(each) for each in zip(*parts, strict=True))
    return KnownRows(box, known, np.append(first, len(fit)), fit)
