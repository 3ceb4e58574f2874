"""What a control will reveal, rehearsed without synthetic records, against what an assessment states with them."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.exposed import combine_criteria
from privacy_assets.disclosure.planned_control import (
    GROWTH,
    judge_by,
    people_needed,
    reach_of,
    rehearse,
)
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.disclosure.sides import FEWEST_PEOPLE
from privacy_assets.errors import InvalidSettingError
from privacy_assets.mpucc.control_size import COPIED_SHARE, choose_split, people_in_original
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


def plan_by(rehearsal, copied_share=COPIED_SHARE, least_control=FEWEST_PEOPLE):
    def judged(fraction, most_share):
        n_original = people_in_original(rehearsal.n_people, fraction)
        return judge_by(rehearsal, n_original, rehearsal.n_people - n_original, most_share=most_share)

    return choose_split(judged, 0.9, copied_share, least_control)


def test_the_recommended_split_detects_the_share_that_is_asked_for():
    rehearsal = rehearse(people(1_000, 60), DisclosureSettings())
    for share in (0.012, 0.03, 0.5):
        plan = plan_by(rehearsal, copied_share=share)
        if plan.recommended.detectable_share <= share:
            assert plan.recommended_fraction == 0.9 or plan.planned.detectable_share > share
        else:
            assert plan.recommended.detectable_share <= plan.planned.detectable_share
    assert plan.recommended_fraction == 0.9
    assert plan_by(rehearsal, least_control=2_000).recommended is None


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


def test_the_exposed_share_to_expect_is_what_an_assessment_states_of_records_that_copy_nobody():
    real = people(2_000, 30)
    rehearsal = rehearse(real, DisclosureSettings())
    found = reach_of(rehearsal, 1_200, 800)
    stated = [
        assess_disclosure(real[:1_200], people(1_200, 30, seed), real[1_200:]).scores["exposed_share"]
        for seed in (1, 2, 3)
    ]
    # The estimate of nobody is between its own reach below and above zero.
    assert 0 < np.mean(stated) < 2.5 * found
    assert reach_of(rehearsal, 4_800, 3_200) == pytest.approx(found / 2)
    assert reach_of(rehearsal._replace(exposure_deviation=None), 1_200, 800) is None
    worse = rehearsal._replace(exposure_deviation=3 * rehearsal.exposure_deviation)
    assert reach_of(rehearsal._replace(alone=(worse,)), 1_200, 800) == pytest.approx(3 * found)


def test_scores_are_combined_by_what_each_criterion_can_tell():
    random = np.random.default_rng(3)
    scores, added = random.normal(size=(40, 3)) * [1, 2, 5], random.normal([1, 1, 2], size=(25, 3))
    asked = dict.fromkeys("abc", SimpleNamespace(counts_copies=True)) | {"b": SimpleNamespace(counts_copies=False)}
    combined, of_copies = combine_criteria(asked, scores, added)
    precisions = {}
    for j in (0, 2):
        variance = sum((score - scores[:, j].mean()) ** 2 for score in scores[:, j]) / 40
        precisions[j] = (sum(added[:, j]) / 25) ** 2 / variance
    for row, found in [*zip(scores, combined, strict=True), *zip(added, of_copies, strict=True)]:
        estimates = {j: row[j] / (added[:, j].sum() / 25) for j in precisions}
        expected = sum(precisions[j] * estimates[j] for j in precisions) / sum(precisions.values())
        assert found == pytest.approx(expected)
    assert np.mean(of_copies) == pytest.approx(1)
    assert combine_criteria(asked, scores, -np.abs(added)) is None


def test_the_number_of_people_that_is_needed_is_the_first_that_suffices():
    rehearsal = rehearse(people(1_000, 60), DisclosureSettings())
    needed = people_needed(rehearsal, 0.008)
    assert needed > 1_000
    assert judge_by(rehearsal, round(needed / 2), round(needed / 2)).detectable_share <= 0.008
    fewer = round(needed / GROWTH / 2)
    assert judge_by(rehearsal, fewer, fewer).detectable_share > 0.008
    assert people_needed(rehearsal, 1e-6) is None


def test_columns_that_are_tested_alone_are_rehearsed_alone():
    random = np.random.default_rng(1)
    table = people(2_000, 60)
    for name in ("c1", "c2", "c3", "c4"):
        table[name] = table["c0"] // 3 + random.integers(0, 3, 2_000)
    whole = rehearse(table, DisclosureSettings())
    assert [len(each.weights) for each in whole.alone] == [len(whole.weights)]
    with_all, alone = (judge_by(each, 1_000, 1_000) for each in (whole._replace(alone=()), whole.alone[0]))
    seen = [each.detectable_copies for each in (with_all, alone)]
    together = judge_by(whole, 1_000, 1_000).detectable_copies
    assert together is None or together >= max(each for each in seen if each is not None)


def test_a_larger_share_than_is_sought_counts_as_not_detected_and_no_other_figure_changes():
    rehearsal = rehearse(people(2_000, 40), DisclosureSettings())
    for n_original in (1_000, 1_600):
        whole = judge_by(rehearsal, n_original, 2_000 - n_original)
        share = whole.detectable_share
        assert judge_by(rehearsal, n_original, 2_000 - n_original, most_share=share) == whole
        assert judge_by(rehearsal, n_original, 2_000 - n_original, most_share=share / 2).detectable_copies is None
