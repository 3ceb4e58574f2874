"""Audit a linkage method: compare what it claims with what can be known of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from privacy_assets.tables.candidate_index import CandidateIndex
from privacy_assets.tables.compatibility import TOLERANCE, is_compatible, normalized
from privacy_assets.tables.errors import InvalidSettingError


@dataclass(frozen=True, eq=False)
class LinkerEvaluation:
    """Result of :func:`evaluate_linker`.

    Attributes
    ----------
    scores : dict
        ``support_share`` (Proposition 16: no candidate is ruled out), ``compatible_share`` (Definition 14),
        ``overclaim_share`` (a claim above the largest true probability), ``expected_correct_links`` (share of correct
        links if each record is linked to the largest claim, ties at random), ``mean_probability_of_truth``,
        ``mean_largest_claim``, ``n_released``.
    records : DataFrame
        The same by released record, as ``released, n_candidates, has_support, is_compatible, overclaims,
        expected_correct, probability_of_truth, largest_claim``. Private.
    """

    scores: dict[str, Any]
    records: pd.DataFrame


def evaluate_linker(
    index: CandidateIndex,
    claims: ArrayLike | csr_array,
    *,
    known: Sequence[str] | None = None,
    tolerance: float = TOLERANCE,
) -> LinkerEvaluation:
    """Compare what a linkage method claims with what can be known.

    Parameters
    ----------
    index : CandidateIndex
        The release. Of records, not of people.
    claims : array-like of shape (n_released, n_original), sparse matrix of this shape, or array-like of (n_released,)
        Scores of at least 0, in each row in proportion to the probability that the released record comes from each
        original; or, for a method that links, the position of one original per released record.
    known : sequence of str, optional
        Columns by which the true probability is defined: uniform over the candidates. Default: all that are released.
    tolerance : float
        Difference between two probabilities that does not count.

    Raises
    ------
    InvalidSettingError
        Claims of another shape, that are negative, not finite, or all 0 for a record; links to no original. With
        counts.

    Notes
    -----
    A method that fails a test is no sound measure of risk, whatever share of links it finds: it rules out originals
    that are possible, or is surer than the release allows. One that is compatible but finds few links may reassure
    falsely.
    """
    if index.people is not None:
        raise InvalidSettingError("The index counts people. Expected one of records. Nothing was evaluated.")
    rows = _read_claims(claims, index.n_released, index.n_original)
    columns = index.columns if known is None else known
    found: dict[tuple[bytes, bytes, bytes], tuple[bool, bool]] = {}
    records = []
    for i in range(index.n_released):
        candidates = index.members(i, columns)
        originals = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
        claim = normalized(rows.data[rows.indptr[i] : rows.indptr[i + 1]])
        # Records that look alike get equal claims from most methods.
        key = (candidates.tobytes(), originals.tobytes(), claim.tobytes())
        if key not in found:
            found[key] = _test(candidates, originals, claim, tolerance)
        largest = float(claim.max())
        is_linked = claim >= largest - tolerance
        is_truth = originals == index.truth[i]
        records.append(
            (
                i,
                len(candidates),
                *found[key],
                largest > 1 / len(candidates) + tolerance,
                float(is_linked[is_truth].sum() / is_linked.sum()),
                float(claim[is_truth].sum()),
                largest,
            )
        )
    frame = pd.DataFrame(
        records,
        columns=[
            "released",
            "n_candidates",
            "has_support",
            "is_compatible",
            "overclaims",
            "expected_correct",
            "probability_of_truth",
            "largest_claim",
        ],
    )
    scores = {
        "support_share": float(frame["has_support"].mean()),
        "compatible_share": float(frame["is_compatible"].mean()),
        "overclaim_share": float(frame["overclaims"].mean()),
        "expected_correct_links": float(frame["expected_correct"].mean()),
        "mean_probability_of_truth": float(frame["probability_of_truth"].mean()),
        "mean_largest_claim": float(frame["largest_claim"].mean()),
        "n_released": index.n_released,
    }
    return LinkerEvaluation(scores, frame)


def _test(
    candidates: NDArray[np.int64], originals: NDArray[np.int64], claim: NDArray[np.float64], tolerance: float
) -> tuple[bool, bool]:
    """Say whether a claim has the support of the truth, and whether it is compatible with it."""
    if not np.isin(candidates, originals).all():
        return False, False
    truth = np.isin(originals, candidates) / len(candidates)
    if len(claim) and claim.max() - claim.min() <= tolerance * claim.max():
        # Uniform over a superset of the candidates: the pignistic probability of one focal set.
        return True, True
    return True, is_compatible(truth, claim, tolerance=tolerance)


def _read_claims(claims: Any, n_released: int, n_original: int) -> csr_array:
    """Return the claims as rows of those that are not 0, originals ascending."""
    if issparse(claims):
        rows = csr_array(claims).astype(np.float64)
        rows.sum_duplicates()
    else:
        array = np.asarray(claims)
        if array.ndim == 1 and array.dtype.kind in "iu":
            return _read_links(array, n_released, n_original)
        if array.dtype.kind not in "iufb":
            raise InvalidSettingError(f"The claims have the dtype {array.dtype}. Expected numbers.")
        rows = csr_array(array.astype(np.float64)) if array.ndim == 2 else None
    if rows is None or rows.shape != (n_released, n_original):
        found = array.shape if rows is None else rows.shape
        raise InvalidSettingError(
            f"The claims have the shape {found}. Expected ({n_released}, {n_original}), a row per released record and "
            f"a column per original, or {n_released} integers. Nothing was evaluated."
        )
    n_infinite, n_negative = int((~np.isfinite(rows.data)).sum()), int((rows.data < 0).sum())
    rows.eliminate_zeros()
    n_empty = int((np.diff(rows.indptr) == 0).sum())
    if n_infinite or n_negative or n_empty:
        raise InvalidSettingError(
            f"The claims have {n_infinite} values that are not finite, {n_negative} negative ones, and {n_empty} rows "
            "in which all are 0. Expected numbers of at least 0, one above 0 in each row. Nothing was evaluated."
        )
    rows.sort_indices()
    return rows


def _read_links(links: NDArray[Any], n_released: int, n_original: int) -> csr_array:
    n_outside = int(((links < 0) | (links >= n_original)).sum())
    if len(links) != n_released or n_outside:
        raise InvalidSettingError(
            f"There are {len(links)} links, {n_outside} of them to no original. Expected {n_released} positions from 0 "
            f"to {n_original - 1}. Nothing was evaluated."
        )
    return csr_array((np.ones(n_released), links.astype(np.int64), np.arange(n_released + 1)), (n_released, n_original))
