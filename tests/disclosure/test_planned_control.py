"""What a control will reveal, rehearsed without synthetic records, against what an assessment states with them."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.planned_control import judge_by, plan_by_rehearsal, rehearse
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.errors import InvalidSettingError
from tests.disclosure.test_nearest_person import ratings


def people(n: int, n_values: int, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    table = pd.DataFrame(random.integers(0, n_values, (n, 5)), columns=[f"c{j}" for j in range(5)])
    return table.assign(name=random.choice(["a", "b", "c"], n), seen=random.normal(size=n).round(2))


@pytest.mark.parametrize(("n_original", "n_control", "n_values"), [(400, 200, 30), (800, 200, 30), (400, 400, 3)])
def test_the_rehearsal_agrees_with_the_assessment(n_original, n_control, n_values):
    real = people(n_original + n_control, n_values)
    planned = judge_by(rehearse(real, DisclosureSettings()), n_original, n_control)
    made = people(n_original, n_values, seed=1)
    stated = assess_disclosure(real[:n_original], made, real[n_original:]).scores["detectable_people"]
    assert 0.6 * stated <= planned.detectable_copies <= 1.6 * stated
    assert planned.detectable_share == planned.detectable_copies / n_original


def test_the_more_alike_people_are_the_more_copies_are_needed():
    needed = []
    for n_values in (3, 5, 10, 20, 100):
        table = people(900, n_values)[["c0", "c1", "name"]]
        needed.append(judge_by(rehearse(table, DisclosureSettings()), 600, 300).detectable_copies)
    alike, *distinct = needed
    # Not even copies of everybody would show.
    assert alike is None
    assert distinct == sorted(distinct, reverse=True)
    assert 300 < distinct[0] <= 600
    assert 5 * distinct[-1] < distinct[0]


def test_the_recommended_split_detects_the_share_that_is_asked_for():
    rehearsal = rehearse(people(1_000, 60), DisclosureSettings())
    for share in (0.012, 0.03, 0.5):
        plan = plan_by_rehearsal(rehearsal, 0.9, copied_share=share)
        if plan.recommended.detectable_share <= share:
            assert plan.recommended_fraction == 0.9 or plan.planned.detectable_share > share
        else:
            assert plan.recommended.detectable_share <= plan.planned.detectable_share
    assert plan.recommended_fraction == 0.9
    assert plan_by_rehearsal(rehearsal, 0.9, least_control=2_000).recommended is None


def test_people_with_several_records_are_rehearsed_together():
    table = people(600, 30).assign(person=np.arange(600) // 3)
    rehearsal = rehearse(table, DisclosureSettings(), person="person")
    assert (rehearsal.n_people, rehearsal.records_per_person) == (200, 3.0)
    assert len(rehearsal.scores) == 100
    assert judge_by(rehearsal, 120, 80).detectable_copies < 120


def test_with_a_key_of_synthetic_people_fewer_copies_are_needed():
    table = ratings(1_200, 0, 0)
    planned = [
        judge_by(rehearse(table, DisclosureSettings(), person="customer", has_synthetic_people=given), 600, 300)
        for given in (False, True)
    ]
    assert planned[1].detectable_copies < planned[0].detectable_copies / 2


def test_a_sample_detects_what_its_people_allow():
    table = people(2_000, 30)
    every = judge_by(rehearse(table, DisclosureSettings()), 1_200, 800)
    few = judge_by(rehearse(table, DisclosureSettings(sample=400)), 1_200, 800)
    assert few.detectable_copies > 1.5 * every.detectable_copies


def test_too_few_people_are_not_rehearsed_and_too_small_sides_reveal_nothing():
    assert rehearse(people(99, 30), DisclosureSettings()) is None
    rehearsal = rehearse(people(100, 30), DisclosureSettings())
    assert judge_by(rehearsal, 60, 40).detectable_copies is None


def test_unknown_columns_are_refused():
    with pytest.raises(InvalidSettingError, match="`known` names columns"):
        rehearse(people(200, 5), DisclosureSettings(known=("zip", "c0")))
