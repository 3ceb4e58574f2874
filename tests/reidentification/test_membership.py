"""A fitting record is one by definition, for everybody in the source and others, with and without their own records."""

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc.intervals import newcombe_interval, wilson_interval
from privacy_assets.reidentification import membership
from privacy_assets.reidentification.membership import assess_membership
from tests.examples import examples
from tests.reference import membership as reference

NUMBERS, SETS, EXACT = {"age": True, "size": False}, ["town"], ["plan"]
rows_of = st.fixed_dictionaries(
    {
        "age": st.one_of(st.none(), st.integers(0, 9)),
        "size": st.sampled_from([0.5, 1.25, 2.5, 3.75]),
        "town": st.one_of(st.none(), st.sampled_from("abcde")),
        "plan": st.sampled_from("xyz"),
        "who": st.integers(0, 9),
    }
)


def as_table(rows):
    table = pd.DataFrame(rows, columns=["age", "size", "town", "plan", "who"])
    return table.astype({"age": "Int64", "size": float, "town": object, "plan": object, "who": "int64"})


def as_rows(table):
    return [{k: None if pd.isna(v) else v for k, v in row.items()} for row in table.astype(object).to_dict("records")]


def anonymized(table, **settings_):
    given = {"quasi_identifiers": ["age", "size", "town"], "k": 2, "sensitive": ["plan"], "subject": "who"}
    return anonymize(table, **given | settings_)


@given(
    source=st.lists(rows_of, min_size=2, max_size=25),
    control=st.lists(rows_of, min_size=1, max_size=12),
    by_person=st.booleans(),
    asked=st.sampled_from(
        [
            {},
            {"relaxed": True},
            {"bounds": "cell"},
            {"max_suppression": 0.5},
            {"l_diversity": {"plan": 2}, "max_suppression": 0.5},
        ]
    ),
)
@settings(max_examples=examples(200), deadline=None)
def test_people_are_found_by_the_definition(source, control, by_person, asked):
    table, others = as_table(source), as_table(control)
    others["who"] += 100
    if not by_person:
        table["who"], others["who"] = np.arange(len(table)), np.arange(len(others)) + 100
    try:
        found = anonymized(table, **asked | ({} if by_person else {"subject": None, "direct_identifiers": ["who"]}))
    except (InvalidTableError, InvalidSettingError):
        return
    if table["age"].isna().all():
        return
    released = as_rows(pd.concat([found.table, found.members], axis=1))
    both = as_rows(table), list(table["who"]), as_rows(others), list(others["who"]), released
    numbers = {name: found.model.masks[name].includes_high for name in NUMBERS}
    expected = [reference.search(*both, numbers, SETS, exact) for exact in (EXACT, [])]
    with patch.object(membership, "count_alike", lambda *_: (0, False)):
        sides = membership._read_sides(found, table, others, {})
        scores = assess_membership(found, table, others).scores
    for known, counts in zip(([*NUMBERS, *SETS, *EXACT], [*NUMBERS, *SETS]), expected, strict=True):
        assert tuple(membership._search(sides, found, known, 1)) == counts
    assert scores["membership_found"] == expected[0][0] / table["who"].nunique()


def people(n, seed=0, first=0):
    rng = np.random.default_rng(seed)
    table = {"age": rng.integers(18, 90, n), "town": rng.choice(list("abcdefgh"), n), "pay": rng.integers(0, 40, n)}
    return pd.DataFrame({**table, "who": first + np.arange(n)})


def classes(table, **settings_):
    given = {"quasi_identifiers": ["age", "town"], "k": 4, "sensitive": ["pay"], "subject": "who"}
    return anonymize(table, **given | settings_)


def test_a_control_gives_the_advantage_and_none_gives_a_range_that_contains_it():
    source, control = people(400), people(300, 1, 1000)
    found = classes(source)
    with_control, without = assess_membership(found, source, control).scores, assess_membership(found, source).scores
    n_found = round(with_control["membership_found_control"] * 300)
    assert with_control["membership_found"] == 1
    expected = newcombe_interval((400, n_found), (400, 300), 0.95)
    assert with_control["membership_advantage"] == expected.value
    assert with_control["membership_advantage_interval"] == [expected.low, expected.high]
    assert with_control["membership_estimated"] is None
    assert with_control["membership_advantage_of_quasi_identifiers"] < expected.value
    low, high = without["membership_left_out_interval"]
    assert low < with_control["membership_found_control"] < high
    assert without["membership_advantage"] is None and without["membership_found_control"] is None
    assert without["membership_advantage_interval"] == [1 - high, 1 - low]
    assert without["membership_advantage_upper"] == 1 - low
    assert without["membership_estimated"] == membership.NO_CONTROL


def test_the_ends_of_the_range_are_those_of_wilson(monkeypatch):
    source = people(30)
    found = classes(source)
    monkeypatch.setattr(membership, "_search", lambda *_: membership._Found(30, 0, 6, 12))
    scores = assess_membership(found, source).scores
    low, high = wilson_interval(6, 30, 0.95).low, wilson_interval(12, 30, 0.95).high
    assert scores["membership_left_out_interval"] == [low, high]


def test_fewer_than_fifty_people_give_the_range_alone_with_the_reason():
    source = people(400)
    scores = assess_membership(classes(source), source, people(49, 1, 1000)).scores
    assert scores["membership_advantage"] is None
    assert scores["membership_estimated"] == "fewer than 50 people on a side"
    assert scores["membership_found_control"] is not None


def test_a_person_with_several_rows_is_found_if_all_of_them_fit():
    source = people(200).loc[np.repeat(np.arange(200), 2)].reset_index(drop=True)
    source["pay"] += np.tile([0, 5], 200)
    control = people(100, 1, 1000).loc[np.repeat(np.arange(100), 2)].reset_index(drop=True)
    # The second row of everybody in the control has a value that nobody in the source has.
    control["pay"] = np.where(np.arange(200) % 2, 999, control["pay"])
    scores = assess_membership(classes(source), source, control).scores
    assert (scores["membership_found"], scores["membership_found_control"]) == (1, 0)
    assert scores["membership_found_control_of_quasi_identifiers"] > 0.3


def test_the_control_is_read_in_the_spelling_of_the_source():
    source, control = people(300), people(100, 1, 1000)
    source["town"], control["town"] = "Town " + source["town"].str.upper(), control["town"].map("“town  {}”".format)
    plain = control.assign(town="Town " + people(100, 1)["town"].str.upper())
    found = classes(source)
    assert assess_membership(found, source, control).scores == assess_membership(found, source, plain).scores


@pytest.mark.parametrize("kind", ["lattice", "nodes"])
def test_along_hierarchies_ranges_are_those_of_the_nodes(kind):
    source, control = people(400), people(300, 1, 1000)
    hierarchies = {"age": Hierarchy.intervals([10, 20, 40]), "town": Hierarchy.prefixes([1])}
    if kind == "nodes":
        found = classes(source, hierarchies={"age": hierarchies["age"]})
    else:
        found = classes(source, hierarchies=hierarchies, method="lattice", max_suppression=0.05)
    scores = assess_membership(found, source, control, hierarchies=hierarchies).scores
    low, high = scores["membership_left_out_interval"]
    assert low <= scores["membership_found_control"] <= high


def test_people_of_the_source_in_the_control_are_refused_with_their_number():
    source, control = people(400), people(300, 1, 1000)
    found = classes(source)
    control.loc[:6, "who"] = source.loc[:6, "who"]
    with pytest.raises(InvalidTableError, match=r"^7 of 300 people of the control are people of the source\."):
        assess_membership(found, source, control)
    renamed = pd.concat([control[7:], source[:250].assign(who=np.arange(250) + 5000)], ignore_index=True)
    with pytest.raises(InvalidTableError, match=r"2\d\d of 543 people of the control equal one of the source"):
        assess_membership(found, source, renamed)


def test_what_cannot_be_answered_is_refused():
    source, control = people(400), people(300, 1, 1000)
    found = classes(source)
    with pytest.raises(InvalidSettingError, match="people who are certainly not in the source would answer it"):
        assess_membership(found.table, source, control)
    with pytest.raises(InvalidTableError, match="made from 400 rows, but the source has 399"):
        assess_membership(found, source[1:], control)
    with pytest.raises(InvalidTableError, match=r"lacks the columns \['pay'\]"):
        assess_membership(found, source, control.drop(columns="pay"))
    with pytest.raises(InvalidTableError, match="The control table has no rows"):
        assess_membership(found, source, control[:0])
    with pytest.raises(InvalidTableError, match="Column 'age' differs in type"):
        assess_membership(found, source, control.assign(age=control["age"].astype(str) + " years"))
    with pytest.raises(InvalidSettingError, match="centers of classes"):
        assess_membership(classes(source, output="centroid"), source, control)
    ranked = pd.CategoricalDtype(list("abcdefgh"), ordered=True)
    found = classes(source.astype({"town": ranked}))
    with pytest.raises(InvalidTableError, match="1 values that are none of the ordered categories"):
        assess_membership(found, source.astype({"town": ranked}), control.assign(town=["z", *control["town"][1:]]))
