"""The test of all criteria, on all columns or on some without the others, and what it would have detected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.disclosure.criteria import Evidence, weights_of
from privacy_assets.disclosure.exposed import ColumnSet, Exposure, measure_exposure, worst_exposure
from privacy_assets.disclosure.people import OfPeople, PlantedCopies, Scored, add_copies, effect_of_copies
from privacy_assets.disclosure.permutation_test import (
    adjusted_p_values,
    as_integers,
    detectable_people,
    p_values,
    sums_to_decide,
)
from privacy_assets.disclosure.pooled_records import PooledRecords
from privacy_assets.disclosure.scores import Attack, Workers, gather_evidence, score_all, score_records
from privacy_assets.disclosure.settings import MOST_KNOWN
from privacy_assets.disclosure.sides import compare_sides

LEVEL: Final = 0.05
SPLIT_LEVEL: Final = 0.001
FEW_MORE: Final = 1.5
"""Synthetic records per original up to which planted copies show how much the other records dilute copies."""


class ExaminedCriteria(NamedTuple):
    """The test of all criteria, with its inputs.

    ``scores`` are those of people, of shape (n_people, n_criteria), ``whole`` the same as integers in ``units``,
    ``sums`` those of random divisions, of shape (n_permutations, n_criteria); ``p`` is the p value of each criterion,
    and ``adjusted`` that for all criteria with their ``weights``.
    """

    evidence: Evidence
    of_people: OfPeople
    scores: NDArray[np.float64]
    whole: NDArray[np.int64]
    units: NDArray[np.float64]
    sums: NDArray[np.int64]
    weights: NDArray[np.float64]
    p: NDArray[np.float64]
    adjusted: NDArray[np.float64]


def examine_criteria(
    records: PooledRecords,
    attack: Attack,
    n_permutations: int,
    workers: Workers,
    divisions: np.random.Generator,
    level: float = LEVEL,
) -> ExaminedCriteria:
    """Score the people, and test whether the scores of the originals are higher than those of the controls."""
    evidence = gather_evidence(records, attack, workers)
    of_people = OfPeople(records, attack.rows)
    asked = attack.criteria(records).values()
    scores = of_people.mean(score_all(records, attack, evidence, workers))
    whole, units = as_integers(scores)
    n_original, weights = of_people.n_original, weights_of(asked)
    report = workers.counter("permutations", n_permutations)
    sums = sums_to_decide(whole, n_original, n_permutations, weights, level, divisions, report)
    p = p_values(sums)
    scores = np.column_stack([scores[:, : len(asked) - 1], scores[:, len(asked) - 1 :].mean(axis=1)])
    whole, units = whole[:, : len(asked)], units[: len(asked)]
    adjusted = adjusted_p_values(weights * p)
    return ExaminedCriteria(evidence, of_people, scores, whole, units, sums[1:], weights, p[0], adjusted)


def find_power(
    examined: ExaminedCriteria,
    records: PooledRecords,
    attack: Attack,
    workers: Workers,
    others: np.random.Generator,
    level: float = LEVEL,
) -> tuple[list[int | None], PlantedCopies]:
    """Return how many copied people each criterion would have detected, and what planted copies add to the scores."""
    tested = examined.sums, examined.whole, examined.units, examined.weights
    scored = Scored(examined.of_people, examined.evidence, examined.scores)
    effect = effect_of_copies(records, attack, scored, workers, others)
    return detectable_people(*tested, effect, examined.of_people.n_original, level, others), effect


def compare_split(
    records: PooledRecords, attack: Attack, n_permutations: int, workers: Workers, divisions: np.random.Generator
) -> NDArray[np.float64]:
    """Return by column the p value of the comparison of originals and controls, without any synthetic record."""
    report = workers.counter("comparison of originals and controls", n_permutations)
    return compare_sides(records, attack.rows, n_permutations, divisions, report)


class ExaminedAlone(NamedTuple):
    """The test of some columns without the others; ``adjusted`` p values count as much as those of all columns."""

    columns: list[str]
    is_asked: bool
    adjusted: dict[str, float]
    detectable_share: float | None
    exposure: Exposure | None

    def to_json(self) -> dict[str, Any]:
        """Return what the settings of the assessment say."""
        share = None if self.exposure is None else self.exposure.share
        return {
            "columns": self.columns,
            "adjusted_p_value": min(self.adjusted.values()),
            "detectable_share": self.detectable_share,
            "exposed_share": share,
        }


def attack_on(attack: Attack, records: PooledRecords, places: Sequence[int]) -> tuple[PooledRecords, Attack]:
    """Return the columns at some places as if there were no others, and the attack on them.

    The attacker knows those of them that are known anyway, or, if that is at most one, all. Of more than `MOST_KNOWN`
    these are the ones with the most values, in sets of at most two.
    """
    chosen = records.only(places)
    known = [place for place, j in enumerate(places) if j in set(attack.known.tolist())]
    size = attack.max_known
    if len(known) < 2:
        known = sorted(np.argsort(-chosen.n_exact, kind="stable")[:MOST_KNOWN].tolist())
        size = size if len(known) == len(places) else min(size, 2)
    return chosen, replace(attack, known=np.array(known), max_known=size, named=(), earlier=None)


def examine_alone(
    records: PooledRecords,
    attack: Attack,
    own: ColumnSet,
    n_permutations: int,
    level: float,
    workers: Workers,
    rngs: Sequence[np.random.Generator],
) -> ExaminedAlone:
    """Test some columns without the others; ``rngs`` draw divisions and all else."""
    chosen, on_them = attack_on(attack, records, own.places)
    examined = examine_criteria(chosen, on_them, n_permutations, workers, rngs[0], level)
    copied, effect = find_power(examined, chosen, on_them, workers, rngs[1], level)
    adjusted = np.minimum(examined.adjusted * (LEVEL / level), 1.0).tolist()
    asked = on_them.criteria(chosen)
    n_original = examined.of_people.n_original
    return ExaminedAlone(
        list(chosen.columns),
        own.is_asked,
        dict(zip(asked, adjusted, strict=True)),
        min((n / n_original for n in copied if n is not None), default=None),
        exposure_of(chosen, on_them, examined, effect, workers, rngs[1]),
    )


def exposure_of(
    records: PooledRecords,
    attack: Attack,
    examined: ExaminedCriteria,
    effect: PlantedCopies,
    workers: Workers,
    others: np.random.Generator,
) -> Exposure | None:
    """Measure the exposure; if there are many more synthetic records than originals, also of a draw of as many.

    Publishing more records beside copies of originals does not make the copies fewer.
    """
    n_original, asked = examined.of_people.n_original, attack.criteria(records)
    found = [measure_exposure(asked, examined.scores, effect.added, n_original)]
    n_most = int((records.people < records.n_original_people).sum())
    if records.n_synthetic > FEW_MORE * n_most:
        draw = records.drawn(np.sort(others.choice(records.n_synthetic, n_most, replace=False)))
        counted = replace(attack, named=(), earlier=None, is_counted=True)
        evidence, asked = gather_evidence(draw, counted, workers), counted.criteria(draw)
        scores = examined.of_people.mean(score_records(asked.values(), evidence, evidence))
        added, *_ = add_copies(draw, counted, Scored(examined.of_people, evidence, scores), workers, others)
        found.append(measure_exposure(asked, scores, added, n_original))
    return worst_exposure(found)


def is_answered(n_detectable: int, split_p_value: float) -> bool:
    """Whether a negative test is meaningful: some criterion would detect copies, and the sides are alike."""
    return n_detectable > 0 and split_p_value > SPLIT_LEVEL
