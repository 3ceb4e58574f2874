"""Copies beyond people: equal to a plain reference, not fooled by notation, repeats or people with several rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacy_assets import InvalidSettingError, Limit, Policy, assess_mpuccs, synthesize
from privacy_assets.examples.rand_hie import load_rand_hie
from privacy_assets.mpucc.copies_beyond_people import COPIES, copies_beyond_people
from privacy_assets.mpucc.preprocess import preprocess
from privacy_assets.release.metrics import METRICS, figures_of
from privacy_assets.release.policy import USE_CASES
from tests.reference import copies as reference

SHARES = ("unique_records_of_others", "unique_records_released", "copies_beyond_people")


def figures(original, synthetic, **settings):
    tables = preprocess(original, synthetic, **settings)
    return copies_beyond_people(tables.original, tables.synthetic, tables.n_codes, 0.95)


def low(found):
    return found["copies_beyond_people_interval_low"]


def table(records):
    return pd.DataFrame({"a": [record // 3 for record in records], "b": [f"t{record % 3}" for record in records]})


@st.composite
def cases(draw):
    size = draw(st.sampled_from([1, 2]))
    people = draw(st.lists(st.sets(st.integers(0, 8), min_size=size, max_size=size), min_size=2, max_size=7))
    return people, draw(st.lists(st.integers(0, 9), min_size=size, max_size=14))


@given(case=cases())
@settings(deadline=None, max_examples=60)
def test_figures_equal_all_divisions(case):
    people, released = case
    holders = max(sum(record in own for own in people) for each in people for record in each)
    n_records = sum(map(len, people))
    assume(max(map(released.count, released)) / len(released) <= 2 * holders / n_records)
    numbers = [number for number, own in enumerate(people) for _ in own]
    original = table([record for own in people for record in sorted(own)]).assign(who=numbers)
    found = figures(original, table(released), person="who")
    *shares, reach = reference.copies_beyond_people(people, released)
    assert [found[name] for name in SHARES] == pytest.approx(shares, abs=1e-9)
    assert low(found) == pytest.approx(max(shares[2] - reach, -1), abs=1e-9)
    if len(people[0]) == 1:
        assert figures(original.drop(columns="who"), table(released)) == pytest.approx(found, abs=1e-9)


def crowd(n, seed, n_values=6):
    random = np.random.default_rng(seed)
    return pd.DataFrame({name: random.integers(0, n_values, n) for name in "abcde"}).assign(
        town=random.choice(["Ulm", "Bonn", "Köln"], n)
    )


def test_other_people_copy_no_more_than_people_and_copies_are_found():
    original = crowd(3_000, 0)
    flagged = [low(figures(original, crowd(n, seed))) > 0 for seed in range(1, 31) for n in (600, 3_000, 9_000)]
    assert sum(flagged) <= 6, "2.5 % are expected by chance"
    for share in (0.05, 0.2, 1.0):
        copied = pd.concat([original.head(int(3_000 * share)), crowd(3_000 - int(3_000 * share), 9)])
        assert low(figures(original, copied)) > 0
    whole = figures(original, original)
    assert whole["unique_records_released"] == pytest.approx(0.5, abs=0.05)


def test_notation_helps_neither_copies_nor_their_repeats():
    original = crowd(2_000, 0)
    copied = pd.concat([original.head(400), crowd(1_600, 5)], ignore_index=True)
    found = figures(original, copied)
    written = copied.assign(town=" " + copied["town"].str.upper() + "\u200b", a=copied["a"].astype(float))
    assert figures(original, written) == pytest.approx(found)
    shuffled = written.sample(frac=1, random_state=0)[[*reversed(written.columns)]]
    assert figures(original, shuffled[list(original.columns)]) == pytest.approx(found)
    scores = assess_mpuccs(original, written, max_baseline_cols=1).scores
    assert {name: scores[name] for name in COPIES} == pytest.approx(found)
    # One record that is repeated a million times dilutes nothing.
    one = preprocess(original, copied)
    n_equal = one.synthetic.n_equal.copy()
    n_equal[-1] = 1_000_000
    object.__setattr__(one.synthetic, "n_equal", n_equal)
    repeated = copies_beyond_people(one.original, one.synthetic, one.n_codes, 0.95)
    assert low(repeated) > 0.9 * low(found) > 0
    doubled = pd.concat([copied, copied])
    assert low(figures(original, doubled)) > 0


def test_a_copy_that_is_one_only_as_it_is_written_is_found_in_that_reading():
    original = crowd(1_500, 0).assign(code=[f"{'0' * (i % 2)}{i // 2}" for i in range(1_500)])
    found = assess_mpuccs(original, original, max_baseline_cols=1).scores
    assert found["unique_records_released"] > 0.45
    assert found["copies_beyond_people_interval_low"] > 0.3


def visits(n_people, seed, n_each=4):
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(n_people), n_each)
    home = random.integers(0, 300, n_people)[who]
    return pd.DataFrame({"who": who, "home": home, "ill": random.integers(0, 12, len(who)), "day": who % 3})


def test_people_with_several_rows_count_once():
    flagged = 0
    for seed in range(20):
        original, others = visits(1_000, seed), visits(1_000, 100 + seed)
        flagged += low(figures(original, others.drop(columns="who"), person="who")) > 0
    assert flagged <= 3
    original = visits(1_000, 0)
    copied = pd.concat([original[original["who"] < 200], visits(800, 7)]).drop(columns="who")
    assert low(figures(original, copied, person="who")) > 0
    # A person with a thousand unique rows that were copied is one person.
    many = pd.DataFrame({"who": 5_000, "home": range(1_000, 2_000), "ill": 1, "day": 1})
    with_one = pd.concat([original, many], ignore_index=True)
    released = pd.concat([visits(1_000, 8), many]).drop(columns="who")
    found = figures(with_one, released, person="who")
    assert abs(found["copies_beyond_people"]) < 0.02
    assert low(found) <= 0
    twice = pd.concat([original, original], ignore_index=True)
    of_twice = figures(twice, pd.concat([copied, copied]), person="who")
    assert of_twice == pytest.approx(figures(original, copied, person="who"), abs=0.01)


def test_cart_repeats_people_and_the_default_does_not():
    people = load_rand_hie().drop(columns="person_id").iloc[:, [0, 3, 4, 5, 6, 8]].sample(3_000, random_state=0)
    assert low(figures(people, synthesize(people, method="cart", seed=0))) > 0
    for method in ("gaussian_copula", "smooth_cart"):
        assert low(figures(people, synthesize(people, method=method, seed=0))) <= 0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_small_tables_and_tables_of_one_record_have_figures(n):
    assert figures(crowd(n, 0), crowd(5, 1)).keys() == set(COPIES)
    same = pd.DataFrame({"a": [1] * 50, "b": "x"})
    assert figures(same, same) == dict.fromkeys(COPIES, 0.0)
    assert low(figures(crowd(n, 0), crowd(n, 0))) <= 0


def test_every_preset_blocks_above_0_and_nothing_is_admitted_by_it():
    for use_case in USE_CASES:
        limit = Policy.for_use_case(use_case).limit_on("copies_beyond_people")
        assert limit.blocks
        assert limit.holds_for(0.0) and limit.holds_for(-0.1)
        assert not limit.holds_for(1e-9) and not limit.holds_for(None)
    assert not Policy((Limit("copies_beyond_people", 0),)).protects("synthetic")
    assert METRICS["copies_beyond_people"].needs_control is False
    with pytest.raises(InvalidSettingError, match="direction 'above'"):
        Limit("copies_beyond_people", 0, "above")


def test_tables_that_cannot_be_compared_have_no_figure():
    original = crowd(400, 0)
    hidden = original.assign(town=[f"id-{i}" for i in range(400)])
    scores = assess_mpuccs(original, hidden, max_baseline_cols=1).scores
    assert all(scores[name] is None for name in COPIES)
    assert figures_of("mpucc_assessment", {"mpucc_assessment": scores})["copies_beyond_people"] is None
