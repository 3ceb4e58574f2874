"""Membership: how well a score of closeness to the synthetic records tells originals from people of the control.

An average cannot show few copies, so these figures inform, and the test of disclosure decides.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privacy_assets.disclosure.result import CONFIDENCE
from privacy_assets.mpucc.intervals import Estimate, normal_quantile

FALSE_POSITIVES: Final = 0.01
FEWEST_CONTROLS: Final = 200
"""Fewer people of the control do not show what 1 % of them reach."""
N_DRAWS: Final = 2_000


def measure_membership(scores: NDArray[np.float64], n_original: int, seed: int) -> dict[str, Any]:
    """Return the figures of membership by a score of people, originals first; larger scores look more like originals.

    ``most_exposed_people`` are originals who are closer than everybody in the control;
    ``most_exposed_people_by_chance`` would be if the records said nothing about who is an original.
    """
    originals, controls = scores[:n_original], scores[n_original:]
    advantage = advantage_of(originals, controls)
    share = share_at_false_positives(originals, controls, np.random.default_rng([seed, 4]))
    return {
        "membership_advantage": advantage.value,
        "membership_advantage_interval": [advantage.low, advantage.high],
        # An advantage below 0 tells as much: whoever is near no synthetic record is in the source.
        "membership_advantage_upper": max(abs(advantage.low), abs(advantage.high)),
        "membership_tpr_at_1_percent": None if share is None else share.value,
        "membership_tpr_at_1_percent_interval": None if share is None else [share.low, share.high],
        "most_exposed_people": int((originals > controls.max()).sum()),
        "most_exposed_people_by_chance": n_original / (len(controls) + 1),
    }


def advantage_of(originals: NDArray[np.float64], controls: NDArray[np.float64]) -> Estimate:
    """Estimate 2 AUC - 1, for one threshold the true minus the false positive rate, with DeLong's interval [1]_.

    .. [1] E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson (1988), "Comparing the areas under two or more correlated
       receiver operating characteristic curves", doi:10.2307/2531595.
    """
    above = _shares_below(controls, originals)
    below = 1 - _shares_below(originals, controls)
    spread = np.sqrt(above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below))
    value, reach = 2 * float(above.mean()) - 1, 2 * normal_quantile(CONFIDENCE) * float(spread)
    return Estimate(value, max(value - reach, -1.0), min(value + reach, 1.0))


def _shares_below(others: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of the others below each score; equal ones count half."""
    ordered = np.sort(others)
    n_below = np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")
    return np.asarray(n_below / (2 * len(ordered)), np.float64)


def share_at_false_positives(
    originals: NDArray[np.float64], controls: NDArray[np.float64], rng: np.random.Generator
) -> Estimate | None:
    """Estimate the share of originals above all but 1 % of the controls, by a bootstrap over people of both sides."""
    n, ordered = len(controls), np.sort(controls)
    if n < FEWEST_CONTROLS:
        return None
    n_above = int(FALSE_POSITIVES * n)
    # Of n places drawn with replacement, that of the next largest after n_above is this order statistic.
    drawn = (rng.beta(n - n_above, n_above + 1, N_DRAWS) * n).astype(np.int64)
    places = np.concatenate([[n - 1 - n_above], np.minimum(drawn, n - 1)])
    shares = 1 - np.searchsorted(np.sort(originals), ordered[places], "right") / len(originals)
    low, high = np.quantile(rng.binomial(len(originals), shares[1:]) / len(originals), [0.025, 0.975])
    return Estimate(float(shares[0]), float(low), float(high))
