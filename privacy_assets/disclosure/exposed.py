"""The share of the originals of whom the synthetic records could hold copies, and the columns on which it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows, group_rows_of
from privacy_assets.columns.dependence import columns_alone
from privacy_assets.disclosure.codes import WrittenSides
from privacy_assets.disclosure.criteria import Criterion
from privacy_assets.disclosure.pooled_records import PooledRecords

CONFIDENCE: Final = 0.95
ONE_SIDED: Final = 1.645
LEAST_VISIBLE: Final = 0.1
"""Share of the people whose copies show least, for whom the share is stated, too."""
SHARE_OF_LEVEL: Final = 0.8
"""Share of the level of the test that is left for all columns if some of them are also tested without the others."""
FEWEST_ASKED: Final = 5
"""Columns of a group, at least, on which copies must be visible: on fewer, many tables show nobody's."""


class ColumnSet(NamedTuple):
    """Columns that are tested without the others, as places; ``is_asked`` if copies must be visible on them."""

    places: list[int]
    is_asked: bool


def column_sets(records: PooledRecords, quasi_identifiers: Sequence[str]) -> list[ColumnSet]:
    """Return the columns that are tested without the others, because those could hide what these show.

    Each group of columns that depend on no others (`columns_alone`): columns of noise make copies of all others harder
    to see. Then the quasi-identifiers: they, and groups of fewer than
    five columns, may be so coarse that copies cannot be seen there, but what is found counts.
    """
    first = np.unique(records.people, return_index=True)[1]
    codes = [ranks[own[first]] for ranks, own in zip(records.ranks, records.exact.real, strict=True)]
    groups = columns_alone(codes, records.is_number.tolist())
    sets = [ColumnSet(own, len(own) >= FEWEST_ASKED) for own in groups]
    own = sorted(records.columns.index(name) for name in quasi_identifiers if name in records.columns)
    if 1 < len(own) < len(records.columns) and own not in [each.places for each in sets]:
        sets.append(ColumnSet(own, is_asked=False))
    return sets


class Exposure(NamedTuple):
    """Upper 95 % ends of the share of the originals of whom there are copies, if they were drawn at random.

    ``share`` is for all people, ``least_visible`` for the tenth whose copies show least; None if that cannot be said.
    """

    share: float
    least_visible: float | None


def measure_exposure(
    asked: Mapping[str, Criterion], scores: NDArray[np.float64], added: NDArray[np.float64], n_original: int
) -> Exposure | None:
    """Estimate the share of copied originals from what the criteria show and what planted copies add to them.

    Of each criterion that counts whole copies, the excess of the originals' mean score over the controls', divided by
    the mean of what a copy adds, estimates the share. The estimates are combined with weights of 1 / variance, so that
    criteria that can tell little count little; the scores are combined before the variance is taken, because they
    depend on each other. ``scores`` are of shape (n_people, n_criteria), originals first, and ``added`` of shape
    (n_copied, n_criteria). None if no copy adds anything.
    """
    found = combine_criteria(asked, scores, added)
    if found is None:
        return None
    combined, of_copies = found
    reach = reach_of_exposure(float(combined.std()), n_original, len(scores) - n_original)
    share = float(combined[:n_original].mean() - combined[n_original:].mean()) + reach
    least = float(np.quantile(of_copies, LEAST_VISIBLE))
    return Exposure(share, share / least if least > 0 else None)


def reach_of_exposure(deviation: float, n_original: int, n_control: int) -> float:
    """Return what is added to the estimated share for its upper end: it is the share if nobody is copied."""
    return ONE_SIDED * deviation * float(np.sqrt(1 / n_original + 1 / n_control))


def combine_criteria(
    asked: Mapping[str, Criterion], scores: NDArray[np.float64], added: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return people's scores combined in units of a copied person, and what copies add; see `measure_exposure`."""
    of_copy, spread = added.mean(axis=0), scores.std(axis=0)
    counted = [j for j, each in enumerate(asked.values()) if each.counts_copies and of_copy[j] > 0 and spread[j] > 0]
    if not counted:
        return None
    weights: NDArray[Any] = (of_copy[counted] / spread[counted]) ** 2
    of_score = weights / weights.sum() / of_copy[counted]
    return scores[:, counted] @ of_score, added[:, counted] @ of_score


def worst_exposure(found: Sequence[Exposure | None]) -> Exposure | None:
    """Return the largest shares of several estimates of the same people; None if one cannot be said."""
    if None in found:
        return None
    known = [each for each in found if each is not None]
    least = [each.least_visible for each in known]
    return Exposure(max(each.share for each in known), None if None in least else max(own for own in least if own))


def exposed_scores(on_all: Exposure | None, alone: Sequence[tuple[Exposure | None, bool]]) -> dict[str, float | None]:
    """Return the scores: the worst of all columns and of those tested alone.

    Where copies need not be visible, what cannot be said does not count.
    """
    found = [on_all, *(own for own, is_asked in alone if is_asked or own is not None)]
    worst = worst_exposure(found)
    shares = (None, None) if worst is None else worst
    names = ("exposed_share", "exposed_share_of_least_visible")
    # The estimates are not bounded, because copies of everybody show more than the sum of what each adds.
    return {name: None if own is None else min(max(own, 0.0), 1.0) for name, own in zip(names, shares, strict=True)}


def smallest_shared_cell(records: PooledRecords) -> int:
    """Return how many originals (people) equal a synthetic record on all columns, for the record with the fewest.

    Texts are compared as they are written, which never makes a cell larger.
    """
    written = [
        records.as_written.get(name, WrittenSides(real, synthetic))
        for name, real, synthetic in zip(records.columns, *records.exact, strict=True)
    ]
    is_original = records.people < records.n_original_people
    n_original = int(is_original.sum())
    codes = (np.concatenate([own.real[is_original], own.synthetic]) for own in written)
    cells, n_cells = group_rows_of(((own, int(own.max()) + 1) for own in codes), n_original + records.n_synthetic)
    of_originals, of_synthetic = np.split(cells, [n_original])
    # A person with several equal records counts once.
    pairs = np.unique(np.column_stack([of_originals, records.people[is_original]]), axis=0)
    return int(np.bincount(pairs[:, 0], minlength=n_cells)[of_synthetic].min())


def share_in_homogeneous_cells(
    records: PooledRecords, quasi_identifiers: Sequence[str], sensitive: Sequence[str]
) -> float:
    """Return the share of the synthetic records in classes where a sensitive column has one value; from 0 to 1.

    A class has equal quasi-identifiers: those named, or all columns that are not sensitive. Without sensitive columns,
    the share is 0.
    """
    known = [j for j, name in enumerate(records.columns) if name in (quasi_identifiers or records.columns)]
    known = [j for j in known if records.columns[j] not in sensitive]
    is_certain = np.zeros(records.n_synthetic, np.bool_)
    codes, n_codes = records.exact.synthetic, records.n_exact
    of_class, n_classes = (
        group_rows([codes[j] for j in known], [int(n_codes[j]) for j in known])
        if known
        else (np.zeros(records.n_synthetic, np.int64), 1)
    )
    for name in sensitive:
        own = codes[records.columns.index(name)]
        least, most = np.full(n_classes, own.max()), np.zeros(n_classes, own.dtype)
        np.minimum.at(least, of_class, own)
        np.maximum.at(most, of_class, own)
        is_certain |= (least == most)[of_class]
    return float(is_certain.mean())
