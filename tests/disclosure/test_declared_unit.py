"""Whose the rows of a table are, judged against what its contract declares."""

import json
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest

from privacy_assets.contract.contract import TableContract
from privacy_assets.disclosure.declared_unit import (
    UnitExamination,
    decide_on_unit,
    examine_unit,
    find_other_people,
    published_unit,
)

REASON = "Schools of the pupils; A. Lovelace"


def hospital(n_people=300, n_rows=4, seed=0):
    """Patients of households, with stays, physicians who see anybody, phone numbers and an e-mail address."""
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(n_people), n_rows)
    house, physician = who // 2, random.integers(0, 60, len(who))
    visit = np.tile(np.arange(n_rows), n_people)
    table = pd.DataFrame(
        {
            "patient": [f"P{each:05d}" for each in random.permutation(90_000)[:n_people][who]],
            "stay": random.permutation(len(who))[who * n_rows + visit // 2],
            "number": 3_000 + random.permutation(n_people)[who],
            "name": np.array(["Ada Lovelace", "Alan Turing", "Grace Hopper", "Karen Jones"] * n_people)[who],
            "house": random.permutation(9_000)[:n_people][house],
            "rent": 10 * random.integers(30, 120, n_people)[house],
            "physician": physician,
            "rooms": random.integers(0, 40, 60)[physician],
            "age": random.integers(0, 100, n_people)[who],
            "sex": random.choice(["f", "m"], n_people)[who],
            "wave": visit,
            "illness": random.choice(list("abcdefgh"), len(who)),
        }
    )
    return table.sample(frac=1, random_state=seed).reset_index(drop=True)


ROLES = {"patient": "direct_identifier", "number": "direct_identifier", "name": "direct_identifier"}


def declared(table, unit=None, **columns):
    """Return a contract of all columns; `unit` is the list of person columns, by default each row is a person."""
    described = {
        name: {
            "type": "integer" if pd.api.types.is_integer_dtype(kind) else "text",
            "role": ROLES.get(name, "quasi_identifier"),
        }
        | ({"person": True} if name in (unit or ()) else {})
        | columns.get(name, {})
        for name, kind in table.dtypes.items()
    }
    return TableContract.from_mapping({"columns": described} | ({} if unit else {"one_row_per_person": True}))


def judged(table, unit=None, use_case=None, **columns):
    contract = declared(table, unit, **columns)
    return decide_on_unit({"source": examine_unit(contract.check(table), contract)}, contract, use_case)


def kinds_of(table, unit):
    contract = declared(table, unit)
    return {
        each.column: each.kind for each in examine_unit(contract.check(table), contract).findings if not each.made_by
    }


VISITS = ["patient", "age", "sex", "illness"]


def test_rows_of_a_patient_are_not_one_row_per_person():
    found = judged(hospital()[VISITS])
    assert not found.passed
    assert "'patient' repeats (300 values, 4.0 rows each) and goes with 'age', 'sex'" in found.reason
    assert "seem to be of one person" in found.reason
    assert "person: true" in found.advice and "not_a_person" in found.advice


def test_one_row_per_person_is_accepted_where_it_is_true():
    table = hospital()[VISITS].drop_duplicates("patient")
    assert judged(table) == (True, "nothing contradicts that each row is the person", "", "")


def test_the_right_person_is_accepted():
    assert judged(hospital()[VISITS], ["patient"]) == (True, "nothing contradicts that 'patient' is the person", "", "")


def test_two_numbers_of_the_same_people_are_accepted():
    assert judged(hospital()[[*VISITS, "number"]], ["patient"]).passed


@pytest.mark.parametrize("unit", [["stay"], ["illness"]])
def test_a_wrong_person_is_refused(unit):
    found = judged(hospital(n_rows=8)[["stay", *VISITS]], unit)
    assert not found.passed
    assert "'patient' repeats" in found.reason


def test_a_stay_as_the_person_is_refused_because_patients_have_several():
    table = hospital(n_rows=8)[["stay", *VISITS]]
    found = judged(table, ["stay"])
    assert "the people who share one have the same 'age', 'sex'" in found.reason
    assert kinds_of(table, ["patient"])["stay"] == "finer"


def test_stays_of_people_without_facts_are_refused_by_what_each_person_has_once():
    random = np.random.default_rng(0)
    who = np.repeat(np.arange(200), 10)
    table = pd.DataFrame({"rater": random.permutation(9_000)[who], "stay": np.arange(len(who)) // 2 * 7})
    table["movie"] = np.concatenate([random.choice(40, 10, replace=False) for _ in range(200)])
    found = judged(table, ["stay"])
    assert not found.passed
    assert "'rater' repeats (200 values, 10.0 rows each) and goes with 'movie'" in found.reason
    assert judged(table, ["rater"]).passed
    # Both members of a household may have rated a movie.
    table["house"] = who // 2 * 11 % 9_001
    assert judged(table, ["rater"]).passed


def test_a_number_of_rows_as_the_person_hides_no_identifier_that_repeats():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"number": 3_000 + np.repeat(np.arange(200), 4), "row": random.permutation(800)})
    table["cost"] = random.integers(0, 400, 800)
    for unit in (None, ["row"]):
        found = judged(table, unit)
        assert not found.passed
        assert "'number' repeats" in found.reason and "identifies people" in found.reason


@pytest.mark.parametrize("times", [2, 3])
def test_a_table_that_was_loaded_again_has_no_row_for_each_person(times):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"age": random.integers(0, 40, 300), "sex": random.choice(["f", "m"], 300)})
    assert table.duplicated(keep=False).mean() > 0.5
    assert judged(table).passed
    again = pd.concat([table] * times, ignore_index=True)
    found = judged(again)
    assert not found.passed
    assert f"every row occurs {times} times" in found.reason
    assert judged(again[:-1]).passed


def test_a_household_needs_a_word_or_is_the_person():
    table = hospital(600)[["patient", "house", "rent", "age", "sex", "illness"]]
    found = judged(table, ["patient"])
    assert not found.passed
    assert "'house' repeats" in found.reason and "members of a household" in found.reason
    assert judged(table, ["house"]).passed
    assert judged(table, ["patient"], house={"not_a_person": REASON}, rent={"not_a_person": REASON}).passed


def test_what_people_share_by_chance_is_no_household():
    table = hospital(2_000)[["patient", "age", "sex", "illness"]]
    table["income"] = 100 * (table["patient"].str[1:].astype(int) % 997)
    assert judged(table, ["patient"]).passed


def test_a_unit_that_crosses_the_people_needs_a_word():
    table = hospital()[["patient", "physician", "rooms", "age", "sex"]]
    found = judged(table, ["patient"])
    assert not found.passed
    assert "'physician' repeats" in found.reason and "whoever is declared" in found.reason
    assert judged(table, ["patient"], physician={"not_a_person": REASON}, rooms={"not_a_person": REASON}).passed


def test_waves_that_each_person_has_once_need_no_word():
    table = hospital(n_rows=12)[["patient", "wave", "age", "sex"]]
    assert judged(table, ["patient"]).passed
    assert kinds_of(table, ["patient"])["wave"] == "half"


@pytest.mark.parametrize("use_case", [None, "research_sharing", "public_release"])
def test_a_reason_answers_a_finding_and_is_said(use_case):
    table = hospital()[["number", "age", "sex", "illness"]].rename(columns={"number": "school"})
    assert not judged(table).passed
    found = judged(table, use_case=use_case, school={"not_a_person": REASON})
    assert found.passed
    assert f"'school' is not ({REASON})" in found.reason
    assert ("a second person should approve" in found.reason) == (use_case == "public_release")


def test_a_reason_on_another_column_answers_nothing():
    table = hospital()[VISITS]
    assert not judged(table, illness={"not_a_person": REASON}).passed


IDENTIFIERS = {
    "number": lambda who: who,
    "text of digits": lambda who: who.astype(str),
    "e-mail address": lambda who: "a" + who.astype(str) + "@example.org",
    "phone number": lambda who: "+49 30 " + (1_000_000 + who).astype(str),
}


@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_a_number_or_address_that_repeats_contradicts_one_row_per_person(kind):
    random = np.random.default_rng(0)
    who = pd.Series(np.append(np.arange(500), random.integers(0, 500, 60)))
    table = pd.DataFrame({"patient": IDENTIFIERS[kind](who), "illness": random.choice(list("abc"), 560)})
    found = judged(table)
    assert not found.passed
    assert "'patient' repeats (500 values, 1.1 rows each) and identifies people" in found.reason
    assert judged(table, patient={"not_a_person": "Telephones of the wards; A. Lovelace"}).passed
    # As a quasi-identifier it may be anything, and few that repeat may be mistakes.
    assert judged(table.iloc[:512]).passed
    assert judged(table, patient={"role": "quasi_identifier"}).passed


def test_names_and_places_that_repeat_are_of_several_people():
    table = hospital(800, 1)[["name", "illness"]]
    table["zip"] = 10_000 + np.arange(800) % 90
    assert judged(table, zip={"role": "direct_identifier"}).passed


def test_hashes_of_names_are_no_numbers():
    table = pd.DataFrame({"name": pd.Series(np.arange(800) % 90, dtype="Int64"), "age": np.arange(800)})
    contract = declared(table, name={"type": "text"})
    assert examine_unit(table, contract).findings == ()
    assert examine_unit(table, declared(table)).findings != ()


def test_a_survey_weight_is_no_person():
    random = np.random.default_rng(0)
    stratum = random.integers(0, 200, 3_000)
    table = pd.DataFrame(
        {"weight": 1_000 + random.permutation(200)[stratum], "race": random.integers(0, 9, 200)[stratum]}
    )
    table["sex"] = random.choice(["f", "m"], 200)[stratum]
    assert not judged(table).passed
    assert judged(table, weight={"weight": True}).passed


def test_a_person_in_every_row_is_doubted():
    found = judged(hospital(n_rows=1)[VISITS], ["patient"])
    assert found.passed
    assert (
        "'patient' never repeats, so each row counts as another person: if that is so, declare "
        "`one_row_per_person: true`" in found.doubts
    )


def test_numbers_of_rows_as_people_do_not_hide_them():
    table = hospital()[VISITS].assign(row=np.arange(1_200))
    found = judged(table, ["row"])
    assert not found.passed
    assert "'patient' repeats" in found.reason
    assert not judged(table.assign(line=table["row"] % 7), ["patient", "row"]).passed


def test_one_value_is_no_person():
    found = judged(hospital()[VISITS].assign(hospital=1), ["hospital"])
    assert not found.passed
    assert "'hospital' has one value" in found.reason


def test_a_person_column_that_determines_the_other_is_refused():
    table = hospital()[VISITS].assign(site=1)
    table["site"] = pd.factorize(table["patient"])[0] % 5
    found = judged(table, ["patient", "site"])
    assert not found.passed
    assert "'patient' alone numbers as many people as together with 'site'" in found.reason


def test_people_of_two_columns_together_are_accepted():
    table = hospital()[VISITS]
    number = pd.factorize(table["patient"])[0]
    table = table.drop(columns="patient").assign(site=number % 5, patient=number // 5)
    assert judged(table, ["site", "patient"]).passed
    assert not judged(table).passed


@pytest.mark.parametrize("separator", ["-", " / "])
def test_a_number_of_people_in_the_person_column_is_refused_until_it_is_a_column_of_its_own(separator):
    table = hospital(400, 8)
    number, stay = table["patient"], (table["wave"] // 2).astype(str)
    table["patient"] = number + separator + stay
    found = judged(table[VISITS], ["patient"])
    assert not found.passed
    assert "'patient' (up to its last separator) repeats (400 values, 4.0 rows each), and the people" in found.reason
    assert "Write this part into a column of its own" in found.reason
    # Then it is a finding itself, and as with a household, either word answers it.
    table["number"] = number
    visits, other = table[[*VISITS, "number"]], {"role": "other", "leaves_as_is": REASON}
    assert "'number' repeats" in judged(visits, ["patient"]).reason
    answered = judged(visits, ["patient"], number=other | {"not_a_person": REASON})
    assert answered.passed and "'patient' (up to its last separator)" in answered.doubts
    assert judged(visits, ["number"]).passed


def test_digits_of_a_person_number_are_doubted():
    table = hospital(400, 8)
    table["patient"] = table["patient"] + (table["wave"] // 2).astype(str)
    found = judged(table[VISITS], ["patient"])
    assert found.passed
    assert "'patient' (without its last digit) repeats (400 values, 4.0 rows each) and goes with 'age'" in found.doubts


def test_spellings_of_a_key_are_one_person():
    table = hospital()[VISITS]
    table.loc[::2, "patient"] = table.loc[::2, "patient"] + " "
    assert judged(table, ["patient"]).passed


def test_a_unit_that_changed_since_the_table_was_examined_is_refused():
    table = hospital()[VISITS]
    before, now = declared(table, ["patient"]), declared(table)
    examined = examine_unit(before.check(table), before)
    for found in (decide_on_unit({"source": examined}, now), decide_on_unit({"source": None}, before)):
        assert not found.passed
        assert "was not examined for the people that the current contract declares" in found.reason
        assert "Materialize from source on." in found.advice
    weighted = declared(table, ["patient"], age={"weight": True})
    assert not decide_on_unit({"source": examined}, weighted).passed


def test_findings_are_read_back_from_json_and_published_without_values():
    table = hospital(600)[["patient", "house", "rent", "age", "sex", "illness"]]
    contract = declared(table, ["patient"], house={"not_a_person": REASON})
    examined = examine_unit(contract.check(table), contract)
    text = json.dumps(examined.to_json())
    assert UnitExamination.from_json(json.loads(text)) == examined
    published = published_unit(examined, contract)["unit"]
    assert {each["column"]: each["not_a_person"] for each in published["findings"]}["house"] == REASON
    assert not any(value in json.dumps(published) + text for value in table["patient"])


@pytest.mark.parametrize("recorded", [None, {}, [], {"findings": [{"column": "a"}]}, "text", {"findings": 1}])
def test_anything_else_is_no_examination(recorded):
    assert UnitExamination.from_json(recorded) is None


@pytest.mark.parametrize("n_rows", [1, 2, 12])
def test_small_tables_are_judged(n_rows):
    assert judged(hospital(n_rows, 1)[VISITS]).passed
    assert judged(hospital(n_rows, 2)[VISITS], ["patient"]).passed == (n_rows > 1)


def test_families_whose_members_are_numbered_in_order_are_a_doubt():
    random = np.random.default_rng(0)
    family = np.repeat(np.arange(400), random.integers(1, 5, 400))
    income, rent, rooms = (random.integers(1, 300, 400)[family] for _ in range(3))
    table = pd.DataFrame(
        {
            "patient": [f"P{number:05d}" for number in 10_000 + np.arange(len(family))],
            "income": income,
            "rent": rent,
            "rooms": rooms,
            "age": random.integers(0, 90, len(family)),
        }
    )
    found = judged(table, ["patient"])
    assert found.passed
    assert "people of one household one after the other" in found.doubts
    assert not judged(table).passed


def numbered_patients(**columns):
    """Patients with ten visits each, and columns made of the number and the visit of each row."""
    random = np.random.default_rng(0)
    who, visit = np.repeat(np.arange(300), 10), np.tile(np.arange(10), 300)
    table = pd.DataFrame({"age": random.integers(20, 80, 300)[who], "sex": random.choice(["f", "m"], 300)[who]})
    number = random.permutation(10**6)[:300][who] + 1
    return table.assign(
        cost=random.integers(0, 400, len(who)), **{name: of(number, visit, random) for name, of in columns.items()}
    )


def test_a_number_that_is_called_a_weight_is_found_and_a_weight_of_strata_is_none():
    table = numbered_patients(number=lambda number, *_: number)
    weighted = {"number": {"weight": True}}
    assert "'number' repeats (300 values" in judged(table, **weighted).reason
    assert judged(table, number={"weight": True, "not_a_person": REASON}).passed
    random = np.random.default_rng(1)
    stratum = random.integers(0, 12, 2_000)
    survey = pd.DataFrame(
        {
            "sex": stratum % 2,
            "region": stratum // 2,
            "number": 1_000 + stratum * 7,
            "age": random.integers(20, 80, 2_000),
        }
    )
    assert judged(survey, **weighted).passed


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_a_word_for_unknown_people_hides_no_number(share):
    table = numbered_patients(
        number=lambda number, _, random: np.where(
            random.random(len(number)) < share, "unknown", [f"P{each}" for each in number]
        )
    )
    assert "'number' repeats" in judged(table).reason


def test_numbers_that_are_spelled_otherwise_in_each_row_are_one():
    table = numbered_patients(
        number=lambda number, visit, _: ["0" * own + str(each) for each, own in zip(number, visit, strict=True)]
    )
    assert "'number' repeats (300 values" in judged(table).reason


def test_a_direct_identifier_that_crosses_the_declared_person_needs_a_word():
    random = np.random.default_rng(0)
    rated = random.random((300, 60)) < 0.3
    customer, movie = np.nonzero(rated)
    table = pd.DataFrame({"number": 10_000 + customer, "movie": [f"m{each}" for each in movie]})
    table = table.assign(stars=random.integers(1, 6, len(table)))
    assert "'number' repeats (300 values" in judged(table, ["movie"]).reason
    assert judged(table, ["movie"], number={"not_a_person": REASON}).passed
    assert judged(table, ["number"]).passed


def test_people_whose_values_cannot_be_compared_are_not_one_person():
    values = [date(2020, 1, 1) + timedelta(days=each) if each % 2 else each for each in range(100)]
    table = pd.DataFrame({"who": pd.Series(values * 3, dtype=object), "wave": np.repeat([1, 2, 3], 100)})
    assert find_other_people(table, ("who",)) == ()
