"""Confidence intervals of proportions and of their differences."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import NamedTuple


class Estimate(NamedTuple):
    """A figure with the lower and the upper end of its confidence interval."""

    value: float
    low: float
    high: float


def normal_quantile(confidence_level: float) -> float:
    """Return the half-width of a two-sided normal interval of this confidence, in standard deviations."""
    return NormalDist().inv_cdf(0.5 + confidence_level / 2)


def wilson_interval(successes: float, trials: float, confidence_level: float) -> Estimate:
    """Estimate a proportion by Wilson's score interval [1]_.

    Means over repeated draws need not be integers. Without trials, the proportion is 0 and the interval (0, 1).

    .. [1] E. B. Wilson (1927), "Probable inference, the law of succession, and statistical inference",
       doi:10.1080/01621459.1927.10502953.
    """
    if trials <= 0:
        return Estimate(0.0, 0.0, 1.0)
    z = normal_quantile(confidence_level)
    share = successes / trials
    center = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    reach = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    low = 0.0 if successes == 0 else max(center - reach, 0.0)
    high = 1.0 if successes == trials else min(center + reach, 1.0)
    return Estimate(share, low, high)


def newcombe_interval(successes: tuple[float, float], trials: tuple[float, float], confidence_level: float) -> Estimate:
    """Estimate the difference of two independent proportions (first minus second) by Newcombe's method 10 [1]_.

    .. [1] R. G. Newcombe (1998), "Interval estimation for the difference between independent proportions: comparison of
       eleven methods", doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I.
    """
    first, second = (wilson_interval(s, t, confidence_level) for s, t in zip(successes, trials, strict=True))
    difference = first.value - second.value
    low = difference - sqrt((first.value - first.low) ** 2 + (second.high - second.value) ** 2)
    high = difference + sqrt((first.high - first.value) ** 2 + (second.value - second.low) ** 2)
    return Estimate(difference, max(low, -1.0), min(high, 1.0))
