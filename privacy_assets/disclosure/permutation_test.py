"""An exact test of several scores at once, by permuting the labels of people.

If the synthetic table does not depend on which of the real people are originals, all divisions into as many originals
and controls are equally likely, given the table. So the share of divisions with a sum of scores as large as the
observed one is an exact p value for any scores that do not use the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from statistics import NormalDist
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

LARGEST_SUM: Final = 2**62
POWER: Final = 0.95
"""Probability with which the smallest detectable share is detected."""
PERMUTATIONS_AT_ONCE: Final = 100
N_TRIALS: Final = 200
N_COMPARED: Final = 399
MOST_ONE_BY_ONE: Final = 200
"""The effect of more copies on the sums of a division is drawn from a normal distribution."""
STEP: Final = 1.1
UNDECIDED: Final = (0.5, 1.6)
"""Of p values between these multiples of the level, more divisions could change the decision: four standard errors."""
MOST_PERMUTATIONS: Final = 9_999
STANDARDIZED: Final = 1e9
"""Standardized sums are integers in this unit."""


class EffectOfCopies(Protocol):
    """The effect of copies on scores."""

    @property
    def added(self) -> NDArray[np.float64]:
        """The amounts that a copy adds to the scores of some people, of shape (n_copied, n_criteria)."""

    def draw(self, m: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what m copies add, of shape (m, n_criteria), and the remaining share of each score for all others."""


def as_integers(scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Round scores, of shape (n_people, n_criteria), to integers: equal sums are equal regardless of their order.

    Returns the integers and, by criterion, their unit: a power of two such that no sum overflows.
    """
    largest = np.maximum(np.abs(scores).max(axis=0), np.finfo(float).tiny)
    bits = np.floor(np.log2(LARGEST_SUM / len(scores))) - np.ceil(np.log2(largest))
    units = 2.0 ** -np.minimum(bits, 40)
    return np.rint(scores / units).astype(np.int64), units


def permuted_sums(
    scores: NDArray[np.int64],
    n_original: int,
    n_permutations: int,
    rng: np.random.Generator,
    on_done: Callable[[int], None] | None = None,
) -> NDArray[np.int64]:
    """Return the originals' sums in random divisions of the people, of shape (n_permutations, n_criteria).

    ``on_done`` is called with the number of completed divisions.
    """
    n_people = len(scores)
    n_drawn = min(n_original, n_people - n_original)
    sums = np.empty((n_permutations, scores.shape[1]), np.int64)
    for i in range(n_permutations):
        if on_done is not None and i % PERMUTATIONS_AT_ONCE == 0:
            on_done(i)
        sums[i] = scores.take(rng.choice(n_people, n_drawn, replace=False, shuffle=False), axis=0).sum(axis=0)
    return sums if n_drawn == n_original else scores.sum(axis=0) - sums


def sums_to_decide(
    scores: NDArray[np.int64],
    n_original: int,
    n_permutations: int,
    weights: NDArray[np.float64],
    level: float,
    rng: np.random.Generator,
    on_done: Callable[[int], None] | None = None,
) -> NDArray[np.int64]:
    """Return the originals' sums by criterion, the real division first, then random ones.

    There are ten times as many random ones, at most `MOST_PERMUTATIONS`, if that could change whether the smallest
    adjusted p value is at most the level: otherwise a heavy criterion would have to exceed all divisions.
    ``scores`` are of shape (n_people, n_scores), the last ones those of the last criterion.
    """
    drawn = permuted_sums(scores, n_original, n_permutations, rng, on_done)
    sums = np.vstack([scores[:n_original].sum(axis=0), drawn])
    more = min(10 * n_permutations + 9, MOST_PERMUTATIONS) - n_permutations
    if more > 0:
        p = float(adjusted_p_values(weights * p_values(joined(sums, len(weights)))).min())
        if UNDECIDED[0] * level < p <= UNDECIDED[1] * level:
            sums = np.vstack([sums, permuted_sums(scores, n_original, more, rng)])
    return joined(sums, len(weights))


def p_values(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return one-sided p values: for each sum, the share of all divisions (rows) with a sum at least as large."""
    p = np.empty(sums.shape)
    for j, own in enumerate(sums.T):
        p[:, j] = (len(own) - np.searchsorted(np.sort(own), own, side="left")) / len(own)
    return p


def adjusted_p_values(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the p values of the first division, adjusted for all criteria by the step-down minP method [1]_.

    ``p`` is the output of :func:`p_values`, or any figures of which the smallest are the most extreme. If nothing
    leaks, the smallest adjusted p value is at most a with probability at most a.

    .. [1] P. H. Westfall, S. S. Young (1993), "Resampling-Based Multiple Testing", Wiley, section 2.6, algorithm 2.8.
    """
    order = np.argsort(p[0], kind="stable")
    # The smallest p value of the criteria from each place on, in each division.
    least = np.minimum.accumulate(p[:, order[::-1]], axis=1)[:, ::-1]
    shares = (least <= p[0, order]).mean(axis=0)
    adjusted = np.empty(p.shape[1])
    adjusted[order] = np.maximum.accumulate(shares)
    return adjusted


def joined(sums: NDArray[np.int64], n_criteria: int) -> NDArray[np.int64]:
    """Join the sums of several scores of the last criterion: the largest, each standardized by its own divisions."""
    if sums.shape[1] <= n_criteria:
        return sums
    several = sums[:, n_criteria - 1 :].astype(float)
    spread = several.std(axis=0)
    largest = ((several - several.mean(axis=0)) / np.where(spread > 0, spread, 1)).max(axis=1)
    return np.column_stack([sums[:, : n_criteria - 1], np.rint(largest * STANDARDIZED).astype(np.int64)])


def detectable_people(
    sums: NDArray[np.int64],
    scores: NDArray[np.int64],
    units: NDArray[np.float64],
    weights: NDArray[np.float64],
    effect: EffectOfCopies,
    n_original: int,
    level: float,
    rng: np.random.Generator,
) -> list[int | None]:
    """Return by score the smallest number of copied originals that it would have detected, with probability `POWER`.

    ``scores`` and their ``sums`` in random divisions are in ``units``; ``weights`` are those of the p values. None
    means that even copies of all would go unnoticed. Of m copies with additional scores d, the permuted originals get
    their share f = n_original / n_people, so the difference to detect is m (1 - f) d. Its variance among permutations
    grows by m f (1 - f) d**2. The required number of standard deviations is that of the permutations at the level that
    remains for one of several scores. Sums of few copies are not normal, and if copies of some people add nothing, it
    matters who is copied; so the smallest number is raised until trials detect it.
    """
    needed = needed_deviations(sums, scores, weights, n_original, level)
    variances = scores.astype(float).var(axis=0) * units**2
    found = people_to_detect(needed, variances, effect.added, len(scores), n_original)
    deviations = (sums - sums.mean(axis=0)) * units
    return raise_until_detected(found, deviations, weights, effect, len(scores), n_original, level, rng)


def needed_deviations(
    sums: NDArray[np.int64],
    scores: NDArray[np.int64],
    weights: NDArray[np.float64],
    n_original: int,
    level: float,
) -> NDArray[np.float64]:
    """Return by how many standard deviations a sum must exceed the mean of its random divisions to be detected."""
    n_people, share = len(scores), n_original / len(scores)
    least = np.sort((weights * p_values(sums)).min(axis=1))
    # If all people have equal scores, every division is as probable as the real one.
    joint_level = min(float(least[max(int(level * len(least)) - 1, 0)]), level)
    needed = np.empty(sums.shape[1])
    for j, level_of_each in enumerate(joint_level / weights):
        needed[j] = NormalDist().inv_cdf(1 - level_of_each)
        own = sums[:, j].astype(float)
        spread = np.sqrt(scores[:, j].astype(float).var() * n_people * share * (1 - share))
        if spread > 0:
            critical = np.sort(own)[::-1][min(int(level_of_each * len(own)), len(own) - 1)]
            needed[j] = max(needed[j], (critical - own.mean()) / spread)
    return needed


def people_to_detect(
    needed: NDArray[np.float64],
    variances: NDArray[np.float64],
    added: NDArray[np.float64],
    n_people: int,
    n_original: int,
) -> list[int | None]:
    """Compute the start of `detectable_people`, given the needed standard deviations and the variances of scores."""
    share, m = n_original / n_people, np.arange(1, n_original + 1)
    copies, squares = added.mean(axis=0), (added**2).mean(axis=0)
    found: list[int | None] = []
    for j in range(len(needed)):
        spread = np.sqrt(variances[j] * n_people * share * (1 - share))
        among_permutations = np.sqrt(spread**2 + m * share * (1 - share) * squares[j])
        is_seen = m * (1 - share) * copies[j] > needed[j] * among_permutations + NormalDist().inv_cdf(POWER) * spread
        found.append(int(m[is_seen][0]) if is_seen.any() else None)
    return found


def raise_until_detected(
    found: Sequence[int | None],
    deviations: NDArray[np.float64],
    weights: NDArray[np.float64],
    effect: EffectOfCopies,
    n_people: int,
    n_original: int,
    level: float,
    rng: np.random.Generator,
    most: int | None = None,
) -> list[int | None]:
    """Raise numbers of copied people to the smallest of them, or more, that trials of the whole test detect.

    ``deviations`` are the sums of random divisions minus their mean; the others are as for `detectable_people`. More
    than ``most`` people, by default all originals, are not sought.
    """
    m, most = min((own for own in found if own is not None), default=None), n_original if most is None else most
    share = n_original / n_people
    while m is not None and (m > most or not _are_detected(m, deviations, weights, effect, share, level, rng)):
        m = None if m >= most else min(max(m + 1, int(m * STEP)), n_original)
    return [None if own is None or m is None else max(own, m) for own in found]


def _are_detected(
    m: int,
    deviations: NDArray[np.float64],
    weights: NDArray[np.float64],
    effect: EffectOfCopies,
    share: float,
    level: float,
    rng: np.random.Generator,
) -> bool:
    """Return whether `POWER` of `N_TRIALS` trials detect m copied people; trials end once this is decided."""
    n_missed, most = 0, int(N_TRIALS * (1 - POWER) + 1e-9)
    for is_detected in islice(trials(m, deviations, weights, effect, share, level, rng), N_TRIALS):
        n_missed += not is_detected
        if n_missed > most:
            return False
    return True


def trials(
    m: int,
    deviations: NDArray[np.float64],
    weights: NDArray[np.float64],
    effect: EffectOfCopies,
    share: float,
    level: float,
    rng: np.random.Generator,
) -> Iterator[bool]:
    """Yield endlessly, for one trial after another, whether the whole test detects m copied people.

    In each trial one division is the real one, and it is compared with others. The real originals have all copies, and
    in the others each of the copied people is an original with probability `share`.
    """
    n_others = min(N_COMPARED, len(deviations) - 1)
    largest = np.maximum(np.abs(deviations).max(axis=0), np.abs(effect.added).max(axis=0) * m)
    unit = np.where(largest > 0, largest, 1.0) * 1e-9  # Equal sums must be equal in any order of addition.
    while True:
        drawn = rng.choice(len(deviations), n_others + 1, replace=False)
        d, left = effect.draw(m, rng)
        of_real = np.ones(m) @ d
        d = d[d.any(axis=1)]
        if len(d) <= MOST_ONE_BY_ONE:
            of_others = (rng.random((n_others, len(d)), np.float32) < share) @ d
        else:
            roots, vectors = np.linalg.eigh(d.T @ d)
            normal = rng.standard_normal((n_others, d.shape[1])) * np.sqrt(np.maximum(roots, 0.0) * share * (1 - share))
            of_others = share * d.sum(axis=0) + normal @ vectors.T
        sums = left * deviations[drawn] + np.vstack([of_real, of_others])
        yield is_detected(np.rint(sums / unit), weights, level)


def is_detected(sums: NDArray[Any], weights: NDArray[np.float64], level: float) -> bool:
    """Return whether any of the `adjusted_p_values` of the weighted `p_values` of all sums is at most a level.

    The smallest is the share of divisions in which any sum is as extreme for its criterion as the most extreme sum of
    the first division, so only the largest sums of each criterion matter.
    """
    n_as_large = float((weights * (sums >= sums[0]).sum(axis=0)).min())
    is_as_extreme = np.zeros(len(sums), np.bool_)
    for own, n in zip(sums.T, (n_as_large / weights + 1e-9).astype(int), strict=True):
        place = len(own) - 1 - n
        is_as_extreme |= True if place < 0 else own > np.partition(own, place)[place]
    return bool(is_as_extreme.mean() <= level)
