"""An audit from outside: whoever guesses which records were in a fit is not right too often.

One fit with many canaries, each in the table with a chance of one half, bounds epsilon from below [1]_. A pass proves
nothing, and is shown on no release; the test is here because a noise scale that is wrong fails it.

References
----------
.. [1] T. Steinke, M. Nasr, M. Jagielski (2023), "Privacy auditing with one (1) training run", arXiv:2305.08846,
   theorem 5.2.
"""

from math import exp

import numpy as np
from scipy.stats import binom

from privacy_assets.synthesis.private.domain import PublicDomain
from privacy_assets.synthesis.private.mst import Mst, Plan, fit_model
from privacy_assets.synthesis.private.records import PrivateRecords
from tests.extras import NEEDS_DP
from tests.synthesis.private.test_domain import contract_of

pytestmark = NEEDS_DP

N_CANARIES, N_GUESSES = 1000, 200
CLAIMED, DELTA, CONFIDENCE = 1.0, 1e-9, 1 - 1e-6


def chance_of(n_right, epsilon):
    """Bound the chance of at least so many right guesses, if the mechanism is (epsilon, delta)-private."""
    share = exp(epsilon) / (1 + exp(epsilon))
    tail = binom.sf(np.arange(n_right, -1, -1) - 1, N_GUESSES, share)
    slope = max((tail[1:] - tail[0]) / np.arange(1, n_right + 1), default=0.0)
    return tail[0] + 2 * N_CANARIES * DELTA * slope


def least_epsilon(n_right):
    """Return the largest epsilon that so many right guesses refute."""
    low, high = 0.0, 20.0
    if chance_of(n_right, 0.0) > 1 - CONFIDENCE:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance_of(n_right, middle) <= 1 - CONFIDENCE else (low, middle)
    return low


class Seen:
    """Records whose noisy counts of the wide column are kept for the attacker."""

    def __init__(self, records):
        self.records, self.n_classes, self.charges, self.counts = records, records.n_classes, records.charges, []

    def noisy_counts(self, columns, *others):
        answer = self.records.noisy_counts(columns, *others)
        if list(columns) == [0]:
            self.counts.append(answer)
        return answer

    def noisy_choice(self, *question):
        return self.records.noisy_choice(*question)


def right_guesses(wrong_by):
    """Fit once, with noise that is too small by a factor, and count the right guesses about canaries."""
    random = np.random.default_rng()
    wide = {"type": "integer", "role": "other", "isin": list(range(N_CANARIES + 4))}
    small = {"type": "integer", "role": "other", "min": 0, "max": 3}
    domain = PublicDomain.from_contract(contract_of(wide=wide, a=small, b=small))
    inside = random.random(N_CANARIES) < 0.5
    canaries = np.column_stack([4 + np.flatnonzero(inside), np.full((inside.sum(), 2), 3)])
    codes = np.vstack([random.integers(0, 3, (500, 3)), canaries])
    synthesizer = Mst(domain, CLAIMED, DELTA)
    synthesizer.plan = Plan.of(synthesizer.plan.rho * wrong_by**2, 3, 1)
    seen = Seen(PrivateRecords(codes, domain.sizes))
    fit_model(synthesizer, seen)
    order = np.argsort(sum(seen.counts)[0, 4:])
    out, into = order[: N_GUESSES // 2], order[-N_GUESSES // 2 :]
    return int((~inside[out]).sum() + inside[into].sum())


def test_the_audit_finds_nothing_wrong():
    assert least_epsilon(right_guesses(1.0)) <= CLAIMED


def test_the_audit_catches_a_wrong_scale_of_the_noise():
    assert least_epsilon(right_guesses(50.0)) > CLAIMED


def test_the_bound_is_what_right_guesses_refute():
    assert least_epsilon(N_GUESSES // 2) == 0
    assert least_epsilon(N_GUESSES) > 2.5
    bounds = [least_epsilon(n_right) for n_right in range(120, 201, 10)]
    assert bounds == sorted(bounds)
