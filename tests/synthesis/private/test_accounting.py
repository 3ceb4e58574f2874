"""What is added up and converted equals the accounting of OpenDP."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError
from privacy_assets.synthesis.private.accounting import epsilon_of, rho_of
from privacy_assets.synthesis.private.mechanisms import gaussian, noisy_maximum, opendp
from privacy_assets.synthesis.private.mst import Plan
from tests.examples import examples
from tests.extras import NEEDS_DP

pytestmark = NEEDS_DP


def opendp_epsilon(rho, delta):
    dp = opendp()
    converted = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian(rho, 1).measurement), delta)
    return converted.map(1.0)[0]


@settings(max_examples=examples(100), deadline=None)
@given(st.floats(1e-4, 5.0), st.sampled_from([1e-4, 1e-6, 1e-9]))
def test_epsilon_is_that_of_opendp(rho, delta):
    ours, theirs = epsilon_of(rho, delta), opendp_epsilon(rho, delta)
    assert ours == pytest.approx(theirs, rel=1e-6)
    # OpenDP rounds up; neither may claim more privacy than the other beyond rounding.
    assert ours >= theirs * (1 - 1e-9)


@settings(max_examples=examples(100), deadline=None)
@given(st.floats(0.01, 50), st.sampled_from([1e-4, 1e-6, 1e-9]))
def test_rho_never_costs_more_than_its_epsilon(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert epsilon_of(rho, delta) <= epsilon
    assert epsilon_of(rho * (1 + 1e-6), delta) > epsilon


def test_a_pure_bound_is_never_exceeded():
    # A rho-zCDP mechanism is (rho + 2 sqrt(rho log(1 / delta)), delta)-private (Bun and Steinke 2016, Prop. 1.3).
    for rho in (0.001, 0.02, 0.5, 3.0):
        assert epsilon_of(rho, 1e-6) < rho + 2 * (rho * 13.815510557964274) ** 0.5
    assert epsilon_of(0, 1e-6) == 0


@pytest.mark.parametrize("n_columns", [1, 2, 3, 15, 60])
@pytest.mark.parametrize("rows_per_person", [1, 3])
def test_a_plan_costs_what_opendp_adds_up(n_columns, rows_per_person):
    dp = opendp()
    plan = Plan.of(0.05, n_columns, rows_per_person)
    n_pairs = n_columns - 1
    counts = [plan.columns.measurement] * n_columns + [plan.pairs.measurement if plan.pairs else None] * n_pairs
    theirs = dp.c.make_composition(counts).map(float(rows_per_person))
    if plan.choice is not None:
        theirs += dp.c.make_composition([plan.choice.measurement] * n_pairs).map(rows_per_person * 1024)
    assert plan.rho == pytest.approx(theirs, abs=1e-12)
    assert plan.rho == pytest.approx(0.05, abs=1e-12)


def test_a_person_with_more_records_needs_more_noise():
    assert gaussian(0.1, 3).scale == pytest.approx(3 * gaussian(0.1, 1).scale)
    assert gaussian(0.1, 3).rho == pytest.approx(0.1)
    assert noisy_maximum(0.1, 3).scale == pytest.approx(3 * noisy_maximum(0.1, 1).scale)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-6), (-1, 1e-6), (float("nan"), 1e-6), (1, 0), (1, 1), (1, "x")])
def test_budgets_that_mean_nothing_are_refused(epsilon, delta):
    with pytest.raises(InvalidSettingError, match=r"Nothing was computed"):
        rho_of(epsilon, delta)
