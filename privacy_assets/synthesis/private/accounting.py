"""Zero-concentrated differential privacy (zCDP): conversion between rho and epsilon.

The costs of mechanisms are summed in rho, and a guarantee is stated as epsilon at a delta. The conversion is that of
[1]_, Proposition
12. Its bound is valid for every alpha above 1, so a search that stops early states an epsilon that is too large, never
one that is too small.

References
----------
.. [1] C. Canonne, G. Kamath, T. Steinke (2020), "The discrete Gaussian for differential privacy", arXiv:2004.00010.
"""

from __future__ import annotations

from math import exp, log, log1p

from privacy_assets.setting_checks import is_number, require

N_HALVINGS = 200
LARGEST_EPSILON = 1000.0
UNDONE = "Nothing was computed."


def epsilon_of(rho: float, delta: float) -> float:
    """Return an epsilon such that every rho-zCDP mechanism is (epsilon, delta)-differentially private."""
    require(is_number(rho, 0), "rho", rho, "a number of at least 0", UNDONE)
    check_delta(delta)
    if rho == 0:
        return 0.0

    def bound(log_excess: float) -> float:
        excess = exp(log_excess)
        alpha = 1 + excess
        # log(1 - 1 / alpha) is log_excess - log(alpha): exact even if 1 / alpha rounds to 1.
        return alpha * rho + (-log(delta) + excess * (log_excess - log1p(excess)) - log1p(excess)) / excess

    low, high = -40.0, 40.0
    for _ in range(N_HALVINGS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if bound(left) < bound(right) else (left, high)
    return max(0.0, bound((low + high) / 2))


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho, within rounding, whose `epsilon_of` is at most `epsilon`."""
    is_right = is_number(epsilon, 0, LARGEST_EPSILON) and epsilon > 0
    require(is_right, "epsilon", epsilon, f"a number above 0, at most {LARGEST_EPSILON:g}", UNDONE)
    check_delta(delta)
    low, high = 0.0, epsilon
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of(middle, delta) <= epsilon else (low, middle)
    return low


def check_delta(delta: object) -> None:
    """Refuse a delta that is not between 0 and 1."""
    is_right = is_number(delta) and 0 < delta < 1
    require(is_right, "delta", delta, "a number above 0 and below 1", UNDONE)
