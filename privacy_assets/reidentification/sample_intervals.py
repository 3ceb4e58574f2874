"""Intervals for means over all records of a table, from a random sample of its records."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

CONFIDENCE_LEVEL = 0.95


def mean_interval(
    values: NDArray[np.float64], n_population: int, least: float, most: float, log_n_means: float
) -> tuple[float, float]:
    """Bound the mean of a population by a simple random sample without replacement.

    All values lie between ``least`` and ``most``; both ends are the mean if the sample is the population.
    ``log_n_means`` is the natural logarithm of the number of means that are estimated from the same sample: all their
    intervals together contain the means in at least `CONFIDENCE_LEVEL` of all samples, for any population.

    The empirical Bernstein-Serfling inequality, Theorem 4.3 of [1]_, on both sides and for all means: unlike a normal
    approximation, it allows for values so rare that they do not occur in the sample.

    .. [1] R. Bardenet, O.-A. Maillard (2015), "Concentration inequalities for sampling without replacement",
       doi:10.3150/14-BEJ605.
    """
    n, mean = len(values), float(values.mean())
    if n >= n_population:
        return mean, mean
    share = n / n_population
    serfling = 1 - (n - 1) / n_population if 2 * n <= n_population else (1 - share) * (1 + 1 / n)
    # One side of one mean fails with a probability of at most 5 exp(-exponent).
    exponent = log(2 * 5 / (1 - CONFIDENCE_LEVEL)) + log_n_means
    spread = float(values.std()) * sqrt(2 * serfling * exponent / n)
    reach = spread + (7 / 3 + 3 / sqrt(2)) * (most - least) * exponent / n
    return max(mean - reach, min(least, mean)), min(mean + reach, max(most, mean))
