"""A draft finds the people of a table by how values repeat, and never says that each row is a person."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets import InvalidSettingError, TableContract, draft_contract

NAMES = [
    *("USUBJID", "SEQN", "eid", "persnr", "pidp", "caseid", "kunde", "nhs_number", "participant", "hhidpn", "mergeid"),
    *("IDNR", "abonent", "voornaamnr", "patient", "userid", "X1"),
]


def panel(name, n=300, seed=0):
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), 4)
    numbers = np.array([f"{each:04d}" for each in range(n)]) if name.isupper() else np.arange(n)
    return pd.DataFrame(
        {
            name: numbers[who],
            "age": random.integers(20, 80, n)[who],
            "sex": random.choice(["f", "m"], n)[who],
            "wave": np.tile(range(4), n),
            "value": random.normal(50, 9, 4 * n).round(1),
        }
    )


@pytest.mark.parametrize("name", NAMES)
def test_people_are_found_whatever_their_number_is_called(name):
    draft = draft_contract(panel(name))
    own = draft.mapping["columns"][name]
    assert own["person"] in (True, "decide")
    text = draft.to_yaml()
    assert "300 values with 4.0 rows each; determines" in text
    assert "one_row_per_person: decide" not in text
    if own["person"] == "decide":
        assert name in draft.open_columns
        with pytest.raises(InvalidSettingError, match="still have `decide` as a value"):
            TableContract.from_mapping({"columns": {name: own}})
    else:
        assert own["role"] == "direct_identifier"


def test_people_with_missing_numbers_are_asked_for():
    table = panel("id")
    table.loc[::20, "id"] = np.nan
    draft = draft_contract(table)
    assert draft.mapping["columns"]["id"]["person"] == "decide"
    assert "rows without it are of unknown people, and have to be left out" in draft.to_yaml()


def test_visits_of_people_are_not_the_people():
    table = panel("patient_id")
    table["visit_id"] = np.repeat(np.arange(600) + 5_000, 2)
    draft = draft_contract(table)
    assert draft.person == "patient_id"
    assert "not_a_person" not in draft.mapping["columns"]["visit_id"]


def test_a_number_of_people_in_the_drafted_person_is_a_remark():
    table = panel("PATIENT")
    table["PATIENT"] = "P" + table["PATIENT"] + "-" + (table["wave"] // 2).astype(str)
    draft = draft_contract(table)
    assert draft.mapping["columns"]["PATIENT"]["person"] is True
    assert "not_a_person" not in draft.mapping["columns"]["PATIENT"]
    assert "Write this part into a column of its own" in draft.to_yaml()


def test_people_in_the_first_rows_of_a_large_table_are_found(monkeypatch):
    monkeypatch.setattr("privacy_assets.drafting.draft.MOST_ROWS", 100)
    monkeypatch.setattr("privacy_assets.drafting.draft.FEWEST_ROWS", 100)
    assert draft_contract(panel("subject")).person == "subject"


def test_without_people_the_draft_asks():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"age": random.integers(18, 90, 500), "sex": random.choice(["f", "m"], 500)})
    draft = draft_contract(table)
    assert draft.mapping["one_row_per_person"] == "decide"
    assert "one_row_per_person: decide  # no column repeats like a person, which is no proof" in draft.to_yaml()
    with pytest.raises(InvalidSettingError, match=r"\['one_row_per_person'\] still have `decide`"):
        TableContract.from_mapping({key: own for key, own in draft.mapping.items() if key != "drafted"})


def served(n=4_000, seed=0):
    random = np.random.default_rng(seed)
    who, by = random.integers(0, 900, n), random.integers(0, 60, n)
    return pd.DataFrame(
        {
            "customer_id": who,
            "employee_id": by,
            "birth_year": random.integers(1930, 2010, 900)[who],
            "sex": random.choice(["f", "m"], 900)[who],
            "hired": random.integers(1990, 2024, 60)[by],
            "store": random.integers(0, 9, 60)[by],
            "amount": random.integers(1, 999, n),
        }
    )


def test_of_two_numbers_of_people_the_one_that_looks_identifying_is_proposed():
    draft = draft_contract(served())
    assert draft.person == "customer_id"
    # Who served the customers is another person, and so it has to be said that nobody counts them.
    assert draft.mapping["columns"]["employee_id"]["not_a_person"] == "decide"
    assert "'employee_id' repeats (60 values, 66.7 rows each) and goes with 'hired', 'store'" in draft.to_yaml()


@pytest.mark.parametrize("other", ["patient_gp_code", "patient_ward", "customer_city", "account"])
def test_a_number_of_each_row_beside_what_repeats_like_a_person_is_asked_for(other):
    random = np.random.default_rng(0)
    group = random.integers(0, 300, 4_000)
    table = pd.DataFrame(
        {
            "patient_id": random.permutation(4_000),
            other: random.permutation(np.arange(10_000, 99_999))[:300][group],
            "size": random.integers(100, 200, 300)[group],
            "region": random.integers(0, 9, 300)[group],
            "age": random.integers(18, 90, 4_000),
        }
    )
    own = draft_contract(table).mapping["columns"]
    people = {name for name, each in own.items() if "person" in each}
    assert people == {"patient_id"}
    assert own["patient_id"]["person"] == (True if other == "customer_city" else "decide")


def test_a_table_that_was_loaded_twice_is_drafted():
    random = np.random.default_rng(0)
    once = pd.DataFrame({"age": random.integers(18, 90, 300), "score": random.normal(50, 9, 300).round(2)})
    draft = draft_contract(pd.concat([once, once], ignore_index=True))
    assert list(draft.mapping["columns"]) == ["age", "score"]
