"""Synthetic people who are copies of real ones are found by all of their rows together, and honest ones are not."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.disclosure import nearest_person
from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.criteria import CRITERIA
from privacy_assets.disclosure.left_out_columns import assess_without_columns
from privacy_assets.disclosure.nearest_person import find_nearest, point_to_nearest
from privacy_assets.disclosure.pooled_records import pool_records
from privacy_assets.disclosure.scores import Attack, Workers, plant_copies
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc.people import number_synthetic_people
from privacy_assets.mpucc.preprocess import separate_people
from tests.examples import examples
from tests.mixed_tables import table_pairs
from tests.reference import disclosure as reference


def ratings(n_people, first, seed):
    """Each person has about ten ratings of 60 movies, some of which are much more popular than others."""
    random = np.random.default_rng(seed)
    popularity = 1 / (np.arange(60) + 10.0)
    rows = []
    for person in range(first, first + n_people):
        movies = random.choice(60, random.integers(4, 18), replace=False, p=popularity / popularity.sum())
        rows.append(pd.DataFrame({"customer": person, "movie": movies, "stars": random.integers(1, 6, len(movies))}))
    table = pd.concat(rows, ignore_index=True)
    return table.assign(movie="m" + table["movie"].astype(str), year=2000 + random.integers(0, 6, len(table)))


def sides(seed, n=300, share=0.0):
    """Originals, synthetic people with a key, and controls; a share of the originals is copied with all rows."""
    original, control, synthetic = (ratings(n, i * n, [seed, i]) for i in range(3))
    copied = np.random.default_rng(seed).choice(n, round(share * n), replace=False)
    own = original[original["customer"].isin(copied)].assign(customer=lambda rows: rows["customer"] + 2 * n)
    synthetic = pd.concat([synthetic[~(synthetic["customer"] - 2 * n).isin(copied)], own], ignore_index=True)
    return original, synthetic.rename(columns={"customer": "trace"}), control


def assessed(original, synthetic, control, **others):
    return assess_disclosure(original, synthetic, control, person="customer", synthetic_person="trace", **others)


def p_value(found):
    return found.criteria.set_index("criterion")["p_value"]["nearest_person"]


def pooled(original, control, synthetic, owners, makers):
    n = len(original)
    people = {"original": owners[:n], "control": owners[n:] - owners[n:].min(), "synthetic": makers}
    return pool_records({"original": original, "control": control, "synthetic": synthetic}, people)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_nearest_people_are_those_of_enumeration(data):
    pool, synthetic = data.draw(table_pairs(max_columns=4, max_rows=20))
    pool = pd.concat([pool, pool.iloc[::-1]], ignore_index=True)
    n = len(pool)
    cut = data.draw(st.integers(1, n - 1))
    owners = np.array(
        [data.draw(st.integers(0, 3)) for _ in range(cut)] + [data.draw(st.integers(4, 7)) for _ in range(n - cut)]
    )
    owners = np.unique(owners, return_inverse=True)[1]
    makers = np.array([data.draw(st.integers(0, 4)) for _ in range(len(synthetic))])
    records = pooled(pool[:cut], pool[cut:].reset_index(drop=True), synthetic, owners, makers)
    max_known = data.draw(st.integers(1, 3))
    attack = Attack(np.arange(len(pool.columns)), max_known, np.arange(n))
    with pytest.MonkeyPatch.context() as patch, Workers(2, None) as workers:
        patch.setattr(nearest_person, "MOST_OVERLAPS", data.draw(st.integers(1, 40)))
        nearest, lead = find_nearest(records, attack.sets, np.unique(records.people), workers)
        found = point_to_nearest(records, attack, workers)
    real, made, has_distance = reference.plain_tables(pool.astype(object), synthetic.astype(object))
    real, made = reference.binned(real, made, has_distance)
    sets = reference.all_sets(range(len(pool.columns)), max_known)
    expected = reference.nearest(real, owners.tolist(), made, makers.tolist(), sets)
    assert lead == pytest.approx([own for _, own in expected], abs=1e-5)
    assert all(a == b for a, (b, own) in zip(nearest.tolist(), expected, strict=True) if own > 1e-4)
    weight = dict.fromkeys(owners.tolist(), 0.0)
    for person, own in expected:
        weight[person] += own**2
    assert found["pointed"] == pytest.approx([weight[person] for person in owners.tolist()], abs=1e-3)


def test_two_percent_of_the_people_copied_are_found_and_today_they_are_not():
    found = [assessed(*sides(seed, share=0.02), seed=seed) for seed in range(6)]
    assert sum(p_value(each) <= 0.05 for each in found) >= 5
    others = [each.criteria["adjusted_p_value"][:-1].min() for each in found]
    assert sum(p <= 0.05 for p in others) <= 3


def test_honest_people_are_rarely_flagged():
    # An exact test: 5 or more of 24 are at most 0.05 in 6 of 1,000 cases.
    assert sum(p_value(assessed(*sides(seed, 80), seed=seed)) <= 0.05 for seed in range(100, 124)) <= 4


def test_the_rows_of_a_person_together_are_what_counts():
    """The same rows under keys at random lead to nobody."""
    original, synthetic, control = sides(3, share=0.05)
    shuffled = synthetic.assign(trace=np.random.default_rng(0).permutation(synthetic["trace"]))
    means = [assessed(original, made, control).criteria["original"].iloc[-1] for made in (synthetic, shuffled)]
    assert means[0] > 20 * means[1]


def test_without_the_key_nothing_changes_and_with_it_only_the_new_criterion_is_added():
    original, synthetic, control = sides(1, 120, 0.05)
    without = assess_disclosure(original, synthetic.drop(columns="trace"), control, person="customer")
    found = assessed(original, synthetic, control)
    assert list(found.criteria["criterion"]) == [*without.criteria["criterion"], "nearest_person"]
    same = ["criterion", "original", "control", "excess", "low", "high"]
    assert found.criteria[same][:-1].equals(without.criteria[same])
    # There may be more random divisions of one of them.
    assert np.allclose(found.criteria["p_value"][:-1], without.criteria["p_value"], atol=0.05)
    assert not any(name.startswith("nearest_person") for name in without.scores)
    assert (without.settings["synthetic_person"], found.settings["synthetic_person"]) == (None, "trace")


def test_the_result_depends_on_neither_spelling_nor_order_nor_threads_nor_the_name_of_the_key():
    original, synthetic, control = sides(2, 120, 0.05)
    expected = assessed(original, synthetic, control, n_threads=1)
    keys = "Person " + synthetic["trace"].astype(str)
    spelled = keys.where(np.arange(len(keys)) % 2 == 0, keys.str.upper() + " ")
    for trace in (spelled, spelled.astype("category"), synthetic["trace"].astype(float)):
        assert assessed(original, synthetic.assign(trace=trace), control).criteria.equals(expected.criteria)
    named = synthetic.rename(columns={"trace": "customer"})
    again = assess_disclosure(original, named, control, person="customer", synthetic_person="customer")
    assert again.criteria.equals(expected.criteria)
    mixed = synthetic.sample(frac=1, random_state=0)
    assert p_value(assessed(original, mixed, control)) == p_value(expected)


def test_a_copy_is_planted_as_one_synthetic_person_and_is_pointed_to():
    original, synthetic, control = sides(5, 60)
    owners = np.concatenate([original["customer"], control["customer"]])
    real, made = (table.drop(columns=[table.columns[0]]) for table in (original, synthetic))
    records = pooled(real, control.drop(columns="customer"), made, owners, number_synthetic_people(synthetic, "trace"))
    rows = np.flatnonzero(np.isin(records.people, [0, 70]))
    planted = plant_copies(records, rows, np.arange(len(rows)))
    assert len(np.unique(planted.synthetic_people[: len(rows)])) == 2
    known = np.arange(3)
    with Workers(1, None) as workers:
        before = point_to_nearest(records, Attack(known, 3, np.arange(records.n_real)), workers)
        after = point_to_nearest(planted, Attack(known, 3, rows), workers, before)
    assert (after["pointed"] > before["pointed"][rows] + 100).all()


def test_scores_do_not_depend_on_who_is_an_original():
    original, synthetic, control = sides(7, 60, 0.1)
    tables = {"original": original, "synthetic": synthetic, "control": control}
    found = []
    for first, second in (("original", "control"), ("control", "original")):
        swapped = {"original": tables[first], "synthetic": synthetic, "control": tables[second]}
        records = pool_records(*separate_people(swapped, "customer", "trace"))
        with Workers(1, None) as workers:
            evidence = point_to_nearest(records, Attack(np.arange(3), 3, np.arange(records.n_real)), workers)
        names = pd.concat([tables[first]["customer"], tables[second]["customer"]])
        found.append(pd.Series(evidence["pointed"], names.to_numpy()).groupby(level=0).first())
    assert found[0].equals(found[1])


def test_the_comparison_can_be_stopped():
    def stop(progress):
        if progress.stage == "nearest person":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        assessed(*sides(0, 60), progress=stop)


def test_of_a_sample_only_the_people_who_are_examined_are_pointed_to():
    found = assessed(*sides(4, share=0.1), sample=300)
    assert found.scores["n_examined"] == 300
    assert p_value(found) <= 0.05


def test_columns_are_left_out_with_the_key():
    original, synthetic, control = sides(6, 120, 0.1)
    found = assessed(original, synthetic, control)
    again = assess_without_columns(
        original,
        synthetic,
        control,
        found,
        DisclosureSettings(),
        person="customer",
        synthetic_person="trace",
        most_columns=3,
    )
    assert again["criteria"].str.contains(CRITERIA["nearest_person"].words).any()


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (np.arange(400), r"400 values of kind number in 400 rows, and 0 rows without one"),
        (np.zeros(400, int), "1 values of kind number"),
        (
            np.where(np.arange(400) < 30, np.nan, np.arange(400) // 4),
            "30 rows without one. If the rows were made one by one",
        ),
        (np.arange(400) // 4 + 0.5, "texts or whole numbers"),
        (pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(400) // 4, unit="D"), "values of kind datetime"),
        (np.arange(400) % 3 == 0, "values of kind boolean"),
    ],
)
def test_a_column_that_is_no_key_of_people_is_refused(trace, message):
    original, synthetic, control = sides(0, 60)
    with pytest.raises(InvalidTableError, match=message):
        assessed(original, synthetic.head(400).assign(trace=trace), control)


def test_a_key_without_people_or_without_its_column_is_refused():
    original, synthetic, control = sides(0, 60)
    with pytest.raises(InvalidSettingError, match="`person` names no column"):
        assess_disclosure(original, synthetic, control, synthetic_person="trace")
    with pytest.raises(InvalidSettingError, match="in column 'trace'. Expected such a column in the synthetic table"):
        assessed(original, synthetic.drop(columns="trace"), control)
