"""The exposed share agrees with plain loops, is near the share of planted copies, and noise does not hide them."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.criteria import CRITERIA
from privacy_assets.disclosure.examination import attack_on
from privacy_assets.disclosure.exposed import Exposure, column_sets, exposed_scores, measure_exposure, worst_exposure
from privacy_assets.disclosure.pooled_records import pool_records
from privacy_assets.disclosure.scores import Attack
from privacy_assets.errors import InvalidSettingError
from tests.examples import examples

COUNTING = ["linkability", "inference_exact", "inference_near"]
ASKED = {name: CRITERIA[name] for name in ("singling_out", *COUNTING, "near_copies")}


def expected_exposure(scores, added, n_original):
    """Estimate by loops: (share, that of the tenth who show least), or None."""
    names = list(ASKED)
    n_people, n_control = len(scores), len(scores) - n_original

    def mean(values):
        return sum(values) / len(values)

    def spread(values):
        return math.sqrt(mean([(value - mean(values)) ** 2 for value in values]))

    effect, weight = {}, {}
    for j, name in enumerate(names):
        own = [row[j] for row in scores]
        of_copies = mean([row[j] for row in added])
        if name in COUNTING and of_copies > 0 and spread(own) > 0:
            effect[j], weight[j] = of_copies, (of_copies / spread(own)) ** 2
    if not effect:
        return None
    total = sum(weight.values())

    def estimate(row):
        return sum(weight[j] / total * row[j] / effect[j] for j in effect)

    combined = [estimate(row) for row in scores]
    excess = mean(combined[:n_original]) - mean(combined[n_original:])
    share = excess + 1.645 * spread(combined) * math.sqrt(1 / n_original + 1 / n_control)
    ordered = sorted(estimate(row) for row in added)
    place = 0.1 * (len(ordered) - 1)
    low = ordered[int(place)] + (place - int(place)) * (
        ordered[min(int(place) + 1, len(ordered) - 1)] - ordered[int(place)]
    )
    assert n_people == n_original + n_control
    return share, share / low if low > 1e-12 else None


@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(2, 40), st.integers(1, 15), st.floats(-0.2, 1))
@settings(max_examples=examples(200), deadline=None)
def test_the_share_agrees_with_loops(seed, n_original, n_control, n_planted, shift):
    random = np.random.default_rng(seed)
    scores = random.random((n_original + n_control, len(ASKED))) * random.integers(0, 2, len(ASKED))
    added = random.random((n_planted, len(ASKED))) + shift
    found = measure_exposure(ASKED, scores, added, n_original)
    expected = expected_exposure(scores.tolist(), added.tolist(), n_original)
    if expected is None:
        assert found is None
        return
    assert found.share == pytest.approx(expected[0], rel=1e-3, abs=1e-9)
    if expected[1] is None or found.least_visible is None:
        assert (expected[1] is None) == (found.least_visible is None)
    else:
        assert found.least_visible == pytest.approx(expected[1], rel=1e-3)


def test_the_worst_of_several_counts_and_what_cannot_be_said_is_said_only_where_it_must_be():
    one, other = Exposure(0.02, 0.3), Exposure(0.05, None)
    assert worst_exposure([one, Exposure(0.01, 0.4)]) == Exposure(0.02, 0.4)
    assert worst_exposure([one, other]) == Exposure(0.05, None)
    assert worst_exposure([one, None]) is None
    assert exposed_scores(one, [(None, False)])["exposed_share"] == 0.02
    assert exposed_scores(one, [(None, True)])["exposed_share"] is None
    assert exposed_scores(one, [(Exposure(0.5, 0.6), False)]) == {
        "exposed_share": 0.5,
        "exposed_share_of_least_visible": 0.6,
    }
    assert exposed_scores(None, [(one, True)])["exposed_share"] is None


def related(seed, n, n_columns=6):
    """Columns with a cause in common."""
    random = np.random.default_rng(seed)
    cause = random.normal(size=(n, 1))
    values = np.floor(1.5 * (cause + random.normal(size=(n, n_columns)))) + 6
    return pd.DataFrame(np.clip(values, 0, 12).astype(int)).add_prefix("c")


def with_copies(released, original, share):
    """Replace a share of the records by the first originals, of whom they are that share, too."""
    n = int(share * len(original))
    return pd.concat([original[:n], released[n:]], ignore_index=True)


@pytest.fixture(scope="module")
def sides():
    table = related(0, 6_000)
    return table[:2_000], table[2_000:4_000].reset_index(drop=True), table[4_000:]


def scores_of(original, released, control, **settings):
    return assess_disclosure(original, released, control, n_permutations=999, max_known=2, **settings).scores


@pytest.fixture(scope="module")
def share_found(sides):
    """Return the share that is found by the share that was copied; each is computed once."""
    original, released, control = sides
    return cache(lambda share: scores_of(original, with_copies(released, original, share), control)["exposed_share"])


def test_the_share_is_near_that_of_copies_and_not_below_it(share_found):
    found = {share: share_found(share) for share in (0, 0.05, 0.2, 1)}
    # An upper end, which is near 0 if nobody is copied.
    assert 0 <= found[0] < 0.05
    for share in (0.05, 0.2):
        assert found[share] - found[0] == pytest.approx(share, rel=0.4), found
        assert found[share] > 0.9 * share, found
    assert found[1] == 1


@pytest.mark.parametrize("n_more", [500, 950, 4_000])
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_publishing_more_records_beside_the_copies_does_not_lower_the_share(share, n_more, sides, share_found):
    original, released, control = sides
    copied = with_copies(released, original, share)
    more = pd.concat([copied, related(9, n_more)], ignore_index=True)
    found = scores_of(original, more, control)
    assert found["leakage_detected"] is True
    assert found["exposed_share"] > 0.9 * share
    assert found["exposed_share"] > 0.9 * share_found(share)


def independent(seed, n, n_columns):
    return pd.DataFrame(np.random.default_rng(seed).integers(0, 12, (n, n_columns))).add_prefix("noise")


@pytest.mark.parametrize("noise", [independent, related])
def test_copies_are_found_beside_14_columns_of_noise(noise, sides):
    original, released, control = sides
    tables = original, with_copies(released, original, 0.05), control
    with_noise = [
        pd.concat([table.reset_index(drop=True), noise((7, place), 2_000, 14).add_prefix("noise ")], axis=1)
        for place, table in enumerate(tables)
    ]
    found = assess_disclosure(*with_noise, n_permutations=999, max_known=2)
    assert found.scores["leakage_detected"] is True
    assert found.scores["exposed_share"] > 0.04
    alone = [each["columns"] for each in found.settings["tested_alone"]]
    assert [f"c{place}" for place in range(6)] in alone
    assert min(each["adjusted_p_value"] for each in found.settings["tested_alone"]) <= 0.05


def test_what_is_tested_alone_follows_from_the_people_and_the_quasi_identifiers():
    table = pd.concat([related(1, 3_000, 5), independent(2, 3_000, 3)], axis=1)
    frames = {"original": table[:1_000], "control": table[1_000:2_000], "synthetic": table[2_000:]}
    whose = {name: np.arange(1_000) for name in ("original", "control")}
    records = pool_records(frames, whose)
    assert [(own.places, own.is_asked) for own in column_sets(records, ())] == [([0, 1, 2, 3, 4], True)]
    own = column_sets(records, ["noise1", "c0"])
    assert [(each.places, each.is_asked) for each in own] == [([0, 1, 2, 3, 4], True), ([0, 6], False)]
    # One column, all columns, and columns that are tested anyway are not tested again.
    for named in (["c0"], list(table), ["c4", "c3", "c2", "c1", "c0"]):
        assert len(column_sets(records, named)) == 1


def test_of_columns_alone_the_attacker_knows_the_same_or_all_up_to_64():
    table = pd.DataFrame({f"c{place}": np.arange(300) % (place % 30 + 2) for place in range(90)})
    frames = {"original": table[:100], "control": table[100:200], "synthetic": table[200:]}
    records = pool_records(frames, {name: np.arange(100) for name in frames if name != "synthetic"})
    attack = Attack(np.array([0, 5, 88]), 3, np.arange(9), named=(3,))

    def known(places):
        chosen, found = attack_on(attack, records, places)
        assert (list(chosen.columns), found.named) == ([f"c{place}" for place in places], ())
        return [places[place] for place in found.known], found.max_known

    assert known([4, 5, 88, 2]) == ([5, 88], 3)
    assert known([4, 5, 7]) == ([4, 5, 7], 3)
    assert known([*range(6, 70)]) == ([*range(6, 70)], 3)
    # Of 80 columns the 64 with the most values, in their order; of equally many, the first.
    most = sorted(range(6, 86), key=lambda place: (-(place % 30 + 2), place))[:64]
    assert known([*range(6, 86)]) == (sorted(most), 2)
    assert attack_on(replace(attack, max_known=1), records, [*range(6, 86)])[1].max_known == 1


def test_copies_are_found_in_more_columns_than_a_word_has_bits():
    """The attacker knows two columns beside them, so that those are tested as if all were known."""
    tables = [pd.concat([related(seed, 200, 70), independent(seed + 9, 200, 2)], axis=1) for seed in (1, 2, 3)]
    found = assess_disclosure(*tables, known=["noise0", "noise1"], n_permutations=999)
    assert [len(each["columns"]) for each in found.settings["tested_alone"]] == [70]
    assert found.scores["leakage_detected"] is False
    tables[1] = with_copies(tables[1], tables[0], 0.1)
    found = assess_disclosure(*tables, known=["noise0", "noise1"], n_permutations=999)
    assert found.settings["tested_alone"][0]["adjusted_p_value"] <= 0.05


def test_quasi_identifiers_are_columns_of_the_tables():
    table = related(1, 300, 4)
    with pytest.raises(InvalidSettingError, match="`quasi_identifiers` names columns that the tables do not have"):
        assess_disclosure(table[:100], table[100:200], table[200:], quasi_identifiers=["zip"])
    found = assess_disclosure(
        table[:100], table[100:200], table[200:], quasi_identifiers=["c0", "c1"], n_permutations=999
    )
    assert [each["columns"] for each in found.settings["tested_alone"]] == [["c0", "c1"]]
    assert found.settings["quasi_identifiers"] == ["c0", "c1"]
