"""Rules that drafts propose hold in the whole table, are shown by enough people, and are comments."""

from itertools import permutations

import numpy as np
import pandas as pd
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.contract.contract import TableContract
from privacy_assets.drafting.draft import draft_contract
from privacy_assets.drafting.rules import _determined, _implications, propose_rules


def stays(n=2_000, seed=0):
    random = np.random.default_rng(seed)
    sex, age, ward = random.choice(["female", "male"], n), random.integers(18, 90, n), random.integers(0, 20, n)
    admitted = pd.Timestamp("2023-01-01") + pd.to_timedelta(random.integers(0, 300, n), "D")
    wages = random.integers(0, 50, n) * 100
    return pd.DataFrame(
        {
            "patient": np.arange(n),
            "sex": sex,
            "age": age,
            "births": np.where(sex == "male", 0, random.poisson(2, n)),
            "ward": ward,
            "house": np.array(["north", "south", "west"])[ward % 3],
            "admitted": admitted,
            "discharged": admitted + pd.to_timedelta(random.integers(0, 30, n), "D"),
            "income wages": wages,
            "income total": wages + random.integers(0, 30, n) * 100,
            "noise": random.choice(list("abc"), n),
        }
    )


def proposed(table, person=None):
    return {own.name: own.written for own in propose_rules(table, list(table.columns), person)}


def test_planted_rules_are_proposed_and_no_others():
    assert proposed(stays(), "patient") == {
        "admitted_at_most_discharged": "admitted <= discharged",
        "income_wages_at_most_income_total": "`income wages` <= `income total`",
        "ward_determines_house": {"determines": ["ward", "house"]},
        "sex_male_implies_births": "sex != 'male' or births == 0",
    }


def test_what_one_record_violates_is_not_proposed():
    table = stays()
    table.loc[7, ["sex", "births"]] = ["male", 1]
    table.loc[8, "admitted"] = pd.Timestamp("2030-01-01")
    table.loc[9, "house"] = "elsewhere"
    table.loc[10, "income wages"] = 10**6
    found = proposed(table, "patient")
    assert found.keys().isdisjoint(proposed(stays(), "patient"))
    assert set(found) == {"ward_0_implies_house", *(f"births_{n}_implies_sex" for n in (2, 3, 4))}


def test_people_count_and_not_records():
    table = stays().assign(patient=np.arange(2_000) % 49)
    assert proposed(table, "patient") == {}
    assert proposed(stays().head(49)) == {}


def test_chance_and_ranges_apart_are_no_rules():
    random = np.random.default_rng(1)
    table = pd.DataFrame({"score_a": random.integers(0, 9, 3_000), "score_b": random.integers(20, 29, 3_000)})
    table["rare"] = np.where(np.arange(3_000) < 55, "yes", "no")
    table["other"] = np.where(np.arange(3_000) >= 2_945, "yes", "no")
    assert proposed(table) == {}


def test_at_most_ten_are_proposed_of_every_kind():
    base = stays()
    table = pd.concat([base, *(base.add_suffix(f" {letter}") for letter in "xyz")], axis="columns")
    found = list(proposed(table, "patient").values())
    assert len(found) == 10
    assert {type(each) for each in found} == {str, dict}
    assert any("<=" in str(each) for each in found)
    assert any(" or " in str(each) for each in found)


def test_a_draft_shows_them_as_comments_that_a_contract_can_have(tmp_path):
    table = stays().rename(columns={"noise": "a`b\n"})
    for brief in (True, False):
        text = draft_contract(table).to_yaml(brief=brief)
        assert "#  sex_male_implies_births: \"sex != 'male' or births == 0\"  # " in text
        assert "people on one side, " in text
        assert "rules" not in yaml.safe_load(text)
        meant = text.replace("\n#rules:", "\nrules:").replace("\n#  ", "\n  ")
        mapping = yaml.safe_load(meant)
        mapping.pop("drafted")
        assert set(mapping["rules"]) == set(proposed(stays(), "patient"))
        assert len(TableContract.from_mapping(mapping).check(table)) == len(table)
    assert "constants, shared by 50 people, of sex_male_implies_births" in draft_contract(table).to_yaml()


def test_a_draft_without_rules_says_nothing_of_them():
    assert "rule" not in draft_contract(stays()[["patient", "noise"]]).to_yaml()


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(1, 9), st.integers(0, 2**20))
def test_implications_between_two_attributes_are_those_of_every_record(n, n_attributes, seed):
    random = np.random.default_rng(seed)
    has = random.random((n, n_attributes)) < random.random(n_attributes)
    has[:, -1] |= has[:, 0]
    found = _implications(has)
    for one, other in found:
        assert not (has[:, one] & ~has[:, other]).any()
    # Drafts have no attribute that all records have, which would be part of every premise.
    for one, other in permutations(range(0 if has.all(axis=0).any() else n_attributes), 2):
        if has[:, one].sum() >= 50 and not (has[:, one] & ~has[:, other]).any():
            assert other in reached(one, found)


def reached(one, pairs):
    known, grows = {one}, True
    while grows:
        more = {other for own, other in pairs if own in known} - known
        known, grows = known | more, bool(more)
    return known


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from([None, 1, 2, 3])] * 2), min_size=10, max_size=40))
def test_a_column_is_determined_if_no_value_of_the_other_has_two(rows):
    table = pd.DataFrame(rows * 60, columns=["one", "other"], dtype="Int64")
    found = [own.written["determines"] for own in _determined(table, list(table.columns), np.sum)]
    known = table.dropna()
    expected = [
        [code, label]
        for code, label in permutations(table.columns)
        if known[label].nunique() > 1 and known.groupby(code)[label].nunique().max() == 1
    ]
    has_all = all(table[name].nunique() == known[name].nunique() for name in table)  # else a value has no other
    if has_all:
        assert found == expected[:1]  # of two that determine each other, one is enough
    assert all(each in expected for each in found)
