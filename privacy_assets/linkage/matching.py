"""Candidates that remain if every released record has a different original (Dulmage and Mendelsohn)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy_assets.display.notebook import ShowsFigures
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.reidentification.candidate_index import CandidateIndex
from privacy_assets.reidentification.kernels.candidates import count_candidates, list_candidates
from privacy_assets.reidentification.masked_columns import make_boxes, make_points, point_of_original

MAX_PAIRS = 200_000_000


@dataclass(frozen=True, eq=False, repr=False)
class MatchedCandidates(ShowsFigures):
    """Result of :func:`match_candidates`.

    Attributes
    ----------
    sizes : ndarray of shape (n_released,), dtype=int64
        Number of candidates of each released record in some assignment of all records.
    """

    main_figures = ("n_released", "fewest_candidates", "mean_candidates")

    sizes: NDArray[np.int64]
    _box_of_row: NDArray[np.int64]
    _point_of_original: NDArray[np.int64]
    _pairs: tuple[NDArray[np.int64], NDArray[np.int64]]

    def _figures(self) -> Mapping[str, object]:
        return {
            "n_released": len(self.sizes),
            "fewest_candidates": int(self.sizes.min()) if len(self.sizes) else None,
            "mean_candidates": float(self.sizes.mean()) if len(self.sizes) else None,
        }

    def members(self, i: int) -> NDArray[np.int64]:
        """Return the candidates of released record ``i`` as positions in the original, ascending."""
        starts, points = self._pairs
        box = int(self._box_of_row[i])
        return np.flatnonzero(np.isin(self._point_of_original, points[starts[box] : starts[box + 1]])).astype(np.int64)


def match_candidates(index: CandidateIndex, known: Sequence[str]) -> MatchedCandidates:
    """Remove candidates that do not occur in any assignment of released records to different originals.

    An attacker who has all released records can exclude an original that another record must come from. A candidate
    remains if it belongs to some assignment of all released records to different originals.

    Parameters
    ----------
    index : CandidateIndex
        No two released records have the same true original. Originals without a released record may remain unassigned.
    known : sequence of str
        As in :meth:`CandidateIndex.sizes`.

    Raises
    ------
    InvalidTableError
        If two released records come from one original, or there are more than MAX_PAIRS pairs of different records.
    InvalidSettingError
        If the index counts people, because a person may have several records.

    Notes
    -----
    Equal records are one node with a multiplicity. The truth is one assignment; a pair belongs to some assignment if
    and only if both of its ends are in one strongly connected component of the residual graph.
    """
    if index.people is not None:
        raise InvalidSettingError("The index counts people. Expected an index of records, each released at most once.")
    n_doubled = index.n_released - len(np.unique(index.truth))
    if n_doubled:
        raise InvalidTableError(
            f"{n_doubled} released records have the same original as another one. Expected at most one released record "
            "per original. Nothing was assessed."
        )
    columns = index.masked(known)
    if not columns:
        return _everybody(index)
    boxes, box_of_row = make_boxes(columns)
    points = make_points(columns, None)
    n_codes = max(column.n_codes for column in columns)
    singly = points._replace(weights=np.ones_like(points.weights))
    n_pairs = count_candidates(singly, boxes, n_codes, index.n_threads)
    if int(n_pairs.sum()) > MAX_PAIRS:
        raise InvalidTableError(
            f"The release has {int(n_pairs.sum())} pairs of distinct released records and originals. Expected at most "
            f"{MAX_PAIRS}. Use more known columns, or fewer records. Nothing was assessed."
        )
    candidates = list_candidates(points, boxes, n_codes, n_pairs)
    box_of_pair, point_of_pair = np.repeat(np.arange(len(n_pairs)), n_pairs), candidates.points.astype(np.int64)
    point_of_row = point_of_original(columns, points)
    component = _components(
        box_of_pair, point_of_pair, box_of_row, point_of_row[index.truth], len(n_pairs), points.weights
    )
    remains = component[box_of_pair] == component[len(n_pairs) + point_of_pair]
    sizes = np.bincount(box_of_pair[remains], weights=points.weights[point_of_pair[remains]], minlength=len(n_pairs))
    starts = np.concatenate([[0], np.cumsum(np.bincount(box_of_pair[remains], minlength=len(n_pairs)))])
    return MatchedCandidates(
        sizes.astype(np.int64)[box_of_row], box_of_row, point_of_row, (starts, point_of_pair[remains])
    )


def _components(
    box_of_pair: NDArray[np.int64],
    point_of_pair: NDArray[np.int64],
    box_of_row: NDArray[np.int64],
    true_point_of_row: NDArray[np.int64],
    n_boxes: int,
    weights: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Return the strongly connected component of each box and then each point."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_points = len(weights)
    # From a box to all its candidates, and from the true one back to it. Originals that were not released belong to an
    # extra box, which may have any of them.
    n_free = weights - np.bincount(true_point_of_row, minlength=n_points)
    nobody = n_boxes + n_points
    free = np.flatnonzero(n_free > 0)
    sources = [box_of_pair, n_boxes + true_point_of_row]
    targets = [n_boxes + point_of_pair, box_of_row]
    if len(free):
        sources += [np.full(n_points, nobody), n_boxes + free]
        targets += [n_boxes + np.arange(n_points), np.full(len(free), nobody)]
    source, target = np.concatenate(sources), np.concatenate(targets)
    graph = coo_array((np.ones(len(source), np.int32), (source, target)), shape=(nobody + 1, nobody + 1))
    _, component = connected_components(graph.tocsr(), directed=True, connection="strong")
    return np.asarray(component, np.int32)


def _everybody(index: CandidateIndex) -> MatchedCandidates:
    """Return the candidates of records without known columns."""
    nothing = np.zeros(index.n_released, np.int64)
    pairs = (np.array([0, 1]), np.zeros(1, np.int64))
    sizes = np.full(index.n_released, index.n_original, np.int64)
    return MatchedCandidates(sizes, nothing, np.zeros(index.n_original, np.int64), pairs)
