import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.storage.table import fingerprint_of, store
from privacy_assets.synthesis.split import people_on_both_sides, split_records, split_stored


@given(
    people=st.lists(st.integers(0, 8), min_size=2, max_size=60).filter(lambda ids: len(set(ids)) > 1),
    train_fraction=st.floats(0.01, 0.99),
    seed=st.integers(0, 2**32),
)
def test_every_record_is_on_one_side_and_every_person_too(people, train_fraction, seed):
    table = pd.DataFrame({"person": people, "row": range(len(people))})
    original, control = split_records(table, train_fraction=train_fraction, seed=seed, person="person")
    assert sorted([*original["row"], *control["row"]]) == list(range(len(people)))
    assert not set(original["person"]) & set(control["person"])
    assert people_on_both_sides(original, control, "person") == 0
    for side in (original, control):
        assert len(side) > 0
        assert side["row"].is_monotonic_increasing
        assert list(side.index) == list(range(len(side)))


def test_without_a_person_column_rows_are_split():
    table = pd.DataFrame({"a": [1] * 100})
    original, control = split_records(table, train_fraction=0.8)
    assert (len(original), len(control)) == (80, 20)


def test_the_seed_decides_the_sides():
    table = pd.DataFrame({"row": range(50)})
    assert split_records(table, seed=1).original.equals(split_records(table, seed=1).original)
    assert not split_records(table, seed=1).original.equals(split_records(table, seed=2).original)


def test_the_train_fraction_counts_people_not_records():
    people = np.repeat(np.arange(100), np.arange(1, 101))
    original, _ = split_records(pd.DataFrame({"person": people}), train_fraction=0.3, person="person")
    assert original["person"].nunique() == 30


@pytest.mark.parametrize("train_fraction", [0.001, 0.999])
def test_each_side_gets_at_least_one_person(train_fraction):
    original, control = split_records(pd.DataFrame({"a": range(5)}), train_fraction=train_fraction)
    assert {len(original), len(control)} == {1, 4}


@pytest.mark.parametrize("train_fraction", [0, 1, -0.5, 1.5, float("nan"), "0.8", True])
def test_a_train_fraction_outside_its_range_is_refused(train_fraction):
    with pytest.raises(InvalidSettingError, match="above 0 and below 1"):
        split_records(pd.DataFrame({"a": range(5)}), train_fraction=train_fraction)


@pytest.mark.parametrize("seed", [-1, 0.5, None])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(InvalidSettingError, match="`seed`"):
        split_records(pd.DataFrame({"a": range(5)}), seed=seed)


@pytest.mark.parametrize("person", ["person", None])
def test_a_stored_table_is_split_like_a_frame(tmp_path, person):
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "person": random.integers(0, 30, 80),
            "town": pd.Categorical(random.choice(["a", "b"], 80), categories=["a", "b", "c"]),
            "name": pd.Series(random.choice(["x", None, "z"], 80), dtype="str"),
            "score": random.normal(size=80),
        }
    )
    stored = store([table], tmp_path)
    sides = split_stored(stored, train_fraction=0.7, seed=3, person=person)
    for own, expected in zip(sides, split_records(table, train_fraction=0.7, seed=3, person=person), strict=True):
        pd.testing.assert_frame_equal(own, expected, check_column_type=False)
        assert fingerprint_of(own) == fingerprint_of(expected)
    with pytest.raises(InvalidTableError, match="at least 2"):
        split_stored(store([table.head(1)], tmp_path), train_fraction=0.7, seed=3, person=person)


def test_a_single_record_cannot_be_split():
    with pytest.raises(InvalidTableError, match="has 1 record; a split needs one on each side"):
        split_records(pd.DataFrame({"a": [1]}))


def test_the_records_of_a_single_person_cannot_be_split():
    with pytest.raises(InvalidTableError, match="has 1 person; a split needs one on each side"):
        split_records(pd.DataFrame({"person": [7, 7, 7]}), person="person")


def test_an_unknown_person_column_is_named():
    with pytest.raises(InvalidSettingError, match=r"'patient', which is not a column. There are \['a'\]"):
        split_records(pd.DataFrame({"a": range(5)}), person="patient")


def test_records_without_a_person_are_counted_and_refused():
    with pytest.raises(InvalidTableError, match="2 records have no value in the person column 'person'"):
        split_records(pd.DataFrame({"person": ["a", None, "b", None]}), person="person")


def test_people_on_both_sides_are_counted_once():
    original, control = pd.DataFrame({"person": [1, 1, 2, 3]}), pd.DataFrame({"person": [1, 3, 3, 4]})
    assert people_on_both_sides(original, control, "person") == 2


def test_people_on_both_sides_needs_the_column_on_both():
    with pytest.raises(InvalidSettingError, match="not a column of the control table"):
        people_on_both_sides(pd.DataFrame({"person": [1]}), pd.DataFrame({"a": [1]}), "person")
