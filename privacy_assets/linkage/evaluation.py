"""Audit of a linkage method: comparison of its claims with what a release reveals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from privacy_assets.display.notebook import ShowsFigures
from privacy_assets.display.progress_bar import StageProgress, shows_progress
from privacy_assets.errors import InvalidSettingError
from privacy_assets.linkage.uniform_compatibility import TOLERANCE, decide_by_program, decide_quickly, size_of_program
from privacy_assets.reidentification.candidate_index import CandidateIndex
from privacy_assets.reidentification.candidate_lists import members_by_cells
from privacy_assets.setting_checks import is_number, require

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Distinct scores of one claim, and of all claims that need a linear program. A score takes a tenth of a millisecond, or
# several milliseconds if the claim is at the limit of compatibility.
MAX_PROGRAM_SIZE = 5_000
MAX_WORK = 500_000


@dataclass(frozen=True, eq=False, repr=False)
class LinkerEvaluation(ShowsFigures):
    """Result of :func:`evaluate_linker`.

    Attributes
    ----------
    scores : dict
        ``support_share`` (Proposition 16: no candidate is excluded), ``compatible_share`` (Definition 14),
        ``overclaim_share`` (a claim above the largest true probability), ``expected_correct_links`` (share of correct
        links if each record is linked to the largest claim, ties at random), ``mean_probability_of_truth``,
        ``mean_largest_claim``, ``abstained_share`` (share of records without a link), ``n_released``. The first three
        and the largest claim are computed from the records with a claim; an abstention is not a correct link.
    records : DataFrame
        The same figures by released record, as ``released, n_candidates, has_support, is_compatible, overclaims,
        expected_correct, probability_of_truth, largest_claim``; missing where the method abstained. Private.
    """

    main_figures = ("expected_correct_links", "compatible_share", "overclaim_share", "n_released")

    scores: dict[str, Any]
    records: pd.DataFrame


@shows_progress
def evaluate_linker(
    index: CandidateIndex,
    claims: ArrayLike | csr_array,
    *,
    known: Sequence[str] | None = None,
    tolerance: float = TOLERANCE,
    progress: Callable[[StageProgress], None] | None = None,
) -> LinkerEvaluation:
    """Compare the claims of a linkage method with what the release reveals.

    Parameters
    ----------
    index : CandidateIndex
        The release, indexed by records, not by people.
    claims : array-like of shape (n_released, n_original), sparse matrix of this shape, or array-like of (n_released,)
        Scores of at least 0, in each row proportional to the probability that the released record comes from each
        original; or, for a method with definite links, the position of one original per released record, -1 if it does
        not name one.
    known : sequence of str, optional
        Columns that define the true probability, which is uniform over the candidates. Default: all released columns.
    tolerance : float
        Negligible probability, at least 0 and below 1: a claim may exceed the largest true probability by this much, be
        this far below the largest claim and still be linked, and deviate by this much in total from a compatible
        probability.
    progress : callable, optional
        Called before each record and each linear program; an exception that it raises ends the work.

    Raises
    ------
    InvalidSettingError
        If claims have another shape, are negative, not finite or all 0 for a record, a link does not point to an
        original, no record is linked, or too many claims need a linear program (MAX_PROGRAM_SIZE, MAX_WORK). The
        message has the counts.

    Notes
    -----
    A method that fails a test is not a sound measure of risk, regardless of the share of links that it finds: it
    excludes possible originals, or is more certain than the release allows. A compatible method that finds few links
    may give false reassurance.
    """
    if index.people is not None:
        raise InvalidSettingError("The index counts people. Expected an index of records. Nothing was evaluated.")
    is_small = is_number(tolerance, 0, 1) and tolerance < 1
    require(is_small, "tolerance", tolerance, "a number of at least 0 and below 1", "Nothing was evaluated.")
    rows = _read_claims(claims, index.n_released, index.n_original)
    columns = index.columns if known is None else known
    report = progress or (lambda _: None)
    tests: dict[bytes, dict[tuple[bytes, bytes], _Test]] = {}
    figures: list[tuple[Any, ...]] = [()] * index.n_released
    tests_of_records: list[_Test | None] = [None] * index.n_released
    is_candidate = np.zeros(index.n_original, np.bool_)
    n_done = 0
    for records, candidates in members_by_cells(index.masked(columns), index.n_original, index.n_released):
        is_candidate[candidates] = True
        # Most methods give equal claims to equal records.
        of_candidates = tests.setdefault(candidates.tobytes(), {})
        for i in records.tolist():
            report(StageProgress("records", n_done, index.n_released))
            n_done += 1
            if rows.indptr[i] == rows.indptr[i + 1]:
                figures[i] = (i, len(candidates), None, 0.0, 0.0, np.nan)
                continue
            originals = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
            claim = _normalized(rows.data[rows.indptr[i] : rows.indptr[i + 1]])
            key = (originals.tobytes(), claim.tobytes())
            if key not in of_candidates:
                of_candidates[key] = _Test(is_candidate[originals], len(candidates), claim, tolerance)
            tests_of_records[i] = of_candidates[key]
            largest = float(claim.max())
            is_linked = claim >= largest - tolerance
            is_truth = originals == index.truth[i]
            figures[i] = (
                i,
                len(candidates),
                largest > 1 / len(candidates) + tolerance,
                float(is_linked[is_truth].sum() / is_linked.sum()),
                float(claim[is_truth].sum()),
                largest,
            )
        is_candidate[candidates] = False
    _solve([test for own in tests.values() for test in own.values() if test.is_compatible is None], report)
    names = ["released", "n_candidates", "overclaims", "expected_correct", "probability_of_truth", "largest_claim"]
    frame = pd.DataFrame(figures, columns=names)
    frame.insert(2, "has_support", [None if test is None else test.has_support for test in tests_of_records])
    frame.insert(3, "is_compatible", [None if test is None else test.is_compatible for test in tests_of_records])
    frame = frame.astype(dict.fromkeys(("has_support", "is_compatible", "overclaims"), "boolean"))
    scores = {
        "support_share": float(frame["has_support"].mean()),
        "compatible_share": float(frame["is_compatible"].mean()),
        "overclaim_share": float(frame["overclaims"].mean()),
        "expected_correct_links": float(frame["expected_correct"].mean()),
        "mean_probability_of_truth": float(frame["probability_of_truth"].mean()),
        "mean_largest_claim": float(frame["largest_claim"].mean()),
        "abstained_share": float(frame["largest_claim"].isna().mean()),
        "n_released": index.n_released,
    }
    return LinkerEvaluation(scores, frame)


def _normalized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide numbers of at least 0, not all 0, by their sum, which may overflow."""
    shares = values / values.max()
    return np.asarray(shares / shares.sum())


class _Test:
    """Whether a claim has the support of the truth and is compatible with it; None if only a program can decide."""

    def __init__(
        self, is_candidate: NDArray[np.bool_], n_candidates: int, claim: NDArray[np.float64], tolerance: float
    ) -> None:
        self.tolerance = tolerance
        self.has_support = int(is_candidate.sum()) == n_candidates
        self.inside, self.outside = claim[is_candidate], claim[~is_candidate]
        self.is_compatible: bool | None = False
        if self.has_support:
            self.is_compatible = decide_quickly(self.inside, self.outside, tolerance=tolerance)
        if self.is_compatible is not None:
            self.inside = self.outside = np.zeros(0)

    @property
    def size(self) -> int:
        return size_of_program(self.inside, self.outside)

    def solve(self) -> None:
        self.is_compatible = decide_by_program(self.inside, self.outside, tolerance=self.tolerance)


def _solve(tests: Sequence[_Test], report: Callable[[StageProgress], None]) -> None:
    """Decide the claims that quick tests leave open with linear programs."""
    sizes = [test.size for test in tests]
    if sum(sizes) > MAX_WORK or max(sizes, default=0) > MAX_PROGRAM_SIZE:
        raise InvalidSettingError(
            f"{len(tests)} distinct claims need a linear program each, with up to {max(sizes)} distinct scores, and "
            f"{sum(sizes)} in total. Expected at most {MAX_PROGRAM_SIZE} and {MAX_WORK}. Round the scores, set those "
            "close to 0 to 0, or evaluate a sample of the released records. Nothing was evaluated."
        )
    for n_done, test in enumerate(tests):
        report(StageProgress("linear programs", n_done, len(tests)))
        test.solve()


def _read_claims(claims: Any, n_released: int, n_original: int) -> csr_array:
    """Return the non-zero claims by row, originals ascending."""
    from scipy.sparse import csr_array, issparse

    if issparse(claims):
        _require_numbers(claims.dtype)
        rows = csr_array(claims).astype(np.float64)
        rows.sum_duplicates()
    else:
        try:
            array = np.asarray(claims)
        except ValueError:  # rows of different lengths
            array = np.zeros(0, object)
        if array.ndim == 1 and array.dtype.kind in "iu":
            return _read_links(array, n_released, n_original)
        _require_numbers(array.dtype)
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


def _require_numbers(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "iufb":
        raise InvalidSettingError(
            f"The claims have the dtype {dtype}. Expected real numbers, equally many in each row. Nothing was "
            "evaluated."
        )


def _read_links(links: NDArray[Any], n_released: int, n_original: int) -> csr_array:
    from scipy.sparse import csr_array

    is_linked = links != -1
    n_outside = int((is_linked & ((links < 0) | (links >= n_original))).sum())
    if len(links) != n_released or n_outside or not is_linked.any():
        raise InvalidSettingError(
            f"There are {len(links)} links, {n_outside} of them not to an original, {int((~is_linked).sum())} of them "
            f"-1, which stands for no link. Expected {n_released} positions from 0 to {n_original - 1} or -1, not all "
            "of them -1. Nothing was evaluated."
        )
    first = np.concatenate([[0], np.cumsum(is_linked)])
    return csr_array((np.ones(first[-1]), links[is_linked].astype(np.int64), first), (n_released, n_original))
