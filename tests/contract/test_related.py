"""Every row has its person, or the tables are refused with counts and names, and never with a cell."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacy_assets as pa
from privacy_assets.contract.related import Child, RelatedTables, columns_that_repeat_the_person
from privacy_assets.errors import InvalidSettingError, InvalidTableError, PrivacyAssetsError
from privacy_assets.synthesis.split import split_records
from tests.examples import examples
from tests.related import clinic, of_visits, with_lines

DAY = pd.Timedelta(days=1)


def people(*keys, **columns):
    return pd.DataFrame({"patient": list(keys), **columns})


def rows(*keys, **columns):
    return pd.DataFrame({"patient": list(keys), **columns})


def related(of_people, of_rows, person="patient", **child):
    return RelatedTables(of_people, {"visits": Child(of_rows, **{"key": "patient"} | child)}, person=person)


def test_whose_row_it_is_follows_from_the_keys_in_any_order():
    tables = related(people("b", "a", "c"), rows("a", "c", "a", "b"))
    assert tables.whose["visits"].tolist() == [1, 2, 1, 0]
    assert repr(tables) == "<RelatedTables 3 people, 4 rows of 'visits'>"


def test_all_that_is_wrong_is_counted_at_once():
    of_people = people("a", "a", "a", None, "b")
    of_rows = rows("a", "zz", "zz", None, date=[1.0, np.nan, 2.0, 3.0])
    with pytest.raises(InvalidTableError) as refused:
        related(of_people, of_rows, order="date")
    said = str(refused.value)
    assert "1 rows of 'people' have no 'patient'" in said
    assert "2 rows of 'people' repeat a 'patient'" in said
    assert "1 rows of 'visits' have no 'patient'" in said
    assert "2 rows of 'visits' have a 'patient' that nobody in 'people' has" in said
    assert "1 rows of 'visits' have no 'date', which orders them" in said


@pytest.mark.parametrize("keys", [[1, 2, 3], np.array([1.0, 2.0, 3.0]), pd.array([1, 2, 3], dtype="Int64")])
def test_numbers_are_the_same_keys_however_they_are_stored(keys):
    assert related(people(1, 2, 3), pd.DataFrame({"patient": keys})).whose["visits"].tolist() == [0, 1, 2]


def test_large_numbers_are_compared_digit_by_digit():
    large = 2**62
    with pytest.raises(InvalidTableError, match="1 rows of 'visits' have a 'patient' that nobody"):
        related(people(large, large + 1), rows(large, large + 2))


def test_keys_of_two_types_are_refused():
    with pytest.raises(InvalidTableError, match="'patient' is text in 'visits' and number in 'people'"):
        related(people(1, 2), rows("1", "2"))
    with pytest.raises(InvalidTableError, match="Key 'patient' of table 'visits'"):
        related(people(1, 2), pd.DataFrame({"patient": pd.Series([1, "two"], dtype=object)}))


def test_categories_are_keys_as_the_texts_that_they_stand_for():
    of_rows = pd.DataFrame({"patient": pd.Categorical(["b", "a"], categories=["b", "zz", "a"])})
    assert related(people("a", "b"), of_rows).whose["visits"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ({"visits": "visits"}, "which is the table itself"),
        ({"visits": "drugs", "drugs": "visits"}, "a circle"),
        ({"drugs": "visits"}, "by the key 'patient', and `own_key` there is None. Expected the same column"),
        ({"drugs": "visits", "doses": "drugs"}, "more than 2 levels below the people"),
        ({"visits": "physicians"}, "not one of the tables"),
    ],
)
def test_only_children_of_people_and_their_children_are_related(of, said):
    table = rows("a")
    children = {name: Child(table, key="patient", of=of.get(name, "people")) for name in ("doses", "visits", "drugs")}
    with pytest.raises(InvalidSettingError, match=said):
        RelatedTables(people("a"), children, person="patient")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"key": "number"}, "`key of child 'visits'` is 'number'"),
        ({"key": ["patient", "site"]}, "a key of several columns must first be made one"),
        ({"order": "day"}, "`order of child 'visits'` is 'day'"),
        ({"order": "text"}, "Expected integers, floats or datetimes"),
        ({"order": "is_new"}, "a column of type bool"),
        ({"order": "patient"}, "another column than the key"),
        ({"person": "name"}, "`person` is 'name'"),
    ],
)
def test_settings_name_columns_that_fit(changed, said):
    table = rows(1, 2, text=["x", "y"], is_new=[True, False])
    with pytest.raises(InvalidSettingError, match=said):
        related(people(1, 2), table, **changed)


def test_a_child_has_one_number_of_its_person():
    of_people = people("a", "b", case=[1, 2])
    of_rows = rows("a", "b", case=[1, 2])
    with pytest.raises(InvalidSettingError, match=r"also has the columns \['patient'\], which number people"):
        related(of_people, of_rows, key="case")
    assert related(of_people, of_rows.drop(columns="patient"), key="case").identifiers == {"patient", "case"}


def test_names_and_numbers_of_tables_are_bounded():
    child = Child(rows("a"), key="patient")
    for children in ({}, {f"t{i}": child for i in range(8)}, {1: child}):
        with pytest.raises(InvalidSettingError, match="Expected 1 to 7"):
            RelatedTables(people("a"), children, person="patient")
    with pytest.raises(InvalidSettingError, match="A child is named 'people'"):
        RelatedTables(people("a"), {"people": child}, person="patient")
    with pytest.raises(InvalidSettingError, match="must map names of tables to Child objects"):
        RelatedTables(people("a"), {"visits": rows("a")}, person="patient")
    with pytest.raises(InvalidTableError, match="Table 'people' is a list"):
        RelatedTables(["a"], {"visits": child}, person="patient")
    with pytest.raises(InvalidTableError, match="Table 'visits': The table has 2 columns"):
        RelatedTables(
            people("a"), {"visits": Child(rows("a")[["patient", "patient"]], key="patient")}, person="patient"
        )


def columns_that_repeat(of_rows, key, columns):
    """By loops over people; ``None`` is a value, and one value of all people is none of a person."""
    own = {}
    for row in of_rows:
        own.setdefault(row[key], []).append(row)
    several = [rows for rows in own.values() if len(rows) > 1]
    return [
        name
        for name in columns
        if all(row[name] == rows[0][name] for rows in several for row in rows)
        and len({rows[0][name] for rows in several}) > 1
    ]


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), *[st.sampled_from([None, "x", "y"])] * 2, st.booleans()), max_size=12))
def test_columns_that_repeat_the_person_are_those_of_loops(cells):
    of_rows = [
        {
            "patient": own,
            "code": code,
            "race": race,
            "own": f"{own % 2}",
            "all": "x",
            "even": own % 2 == 0,
            "odd": odd,
        }
        for own, code, race, odd in cells
    ]
    names = ["code", "race", "own", "all", "even", "odd"]
    table = pd.DataFrame(of_rows, columns=["patient", *names])
    tables = related(people(*range(5)), table.astype({"patient": "int64"}))
    expected = columns_that_repeat(of_rows, "patient", names)
    assert columns_that_repeat_the_person(tables) == ({"visits": expected} if expected else {})


def test_what_repeats_the_person_has_neither_key_nor_order_and_is_by_child():
    tables = clinic(40)
    visits = tables.children["visits"].table
    place = tables.whose["visits"]
    assert columns_that_repeat_the_person(tables) == {}
    repeats = of_visits(tables, table=visits.assign(ward=place % 3, date=pd.Timestamp("2024-01-01") + place * DAY))
    assert columns_that_repeat_the_person(repeats) == {"visits": ["ward"]}
    assert columns_that_repeat_the_person(of_visits(repeats, table=visits.assign(ward=place % 3).head(0))) == {}


@pytest.mark.parametrize("seed", range(3))
def test_a_split_divides_people_and_their_rows_follow(seed):
    tables = clinic(200, seed)
    sides = split_records(tables, train_fraction=0.7, seed=seed)
    assert [len(side.people) for side in sides] == [140, 60]
    for side in sides:
        for name, child in side.children.items():
            whole = tables.children[name].table
            expected = whole[whole["patient"].isin(side.people["patient"])].reset_index(drop=True)
            pd.testing.assert_frame_equal(child.table, expected)
    assert not set(sides[0].people["patient"]) & set(sides[1].people["patient"])


def test_a_split_of_related_tables_has_its_own_person():
    with pytest.raises(InvalidSettingError, match="`person` cannot be set with RelatedTables"):
        split_records(clinic(20), person="patient")


def test_people_are_taken_in_the_order_asked_for():
    tables = related(people("a", "b", "c"), rows("a", "c", "a", "b"))
    taken = tables.take(np.array([2, 0]))
    assert taken.people["patient"].tolist() == ["c", "a"]
    assert taken.children["visits"].table["patient"].tolist() == ["a", "c", "a"]
    assert taken.whose["visits"].tolist() == [1, 0, 1]


def test_a_child_may_have_no_rows():
    tables = related(people("a", "b"), rows("a").head(0).astype(object))
    assert tables.whose["visits"].tolist() == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: pa.anonymize(t, quasi_identifiers=["age"], k=5),
        lambda t: pa.assess_mpuccs(t, t, t),
        lambda t: pa.draft_contract(t),
        lambda t: pa.fingerprint(t),
        lambda t: pa.verify_anonymity(t, ["age"]),
        lambda t: pa.assess_with_trees(t, t, t),
    ],
)
def test_what_takes_one_table_refuses_related_ones_by_name(ask):
    with pytest.raises(InvalidTableError, match="RelatedTables"):
        ask(clinic(30))


def with_items(of_lines, **visits):
    own = {"table": rows("a", "b", "a", visit=[1, 2, 3]), "key": "patient", "own_key": "visit"} | visits
    children = {"lines": Child(of_lines, key="visit", of="visits"), "visits": Child(**own)}
    return RelatedTables(people("a", "b"), children, person="patient")


def test_rows_of_rows_are_of_the_person_of_the_row_above():
    tables = with_items(pd.DataFrame({"visit": [3, 2, 1, 2]}))
    assert tables.above["lines"].tolist() == [2, 1, 0, 1]
    assert tables.whose["lines"].tolist() == [0, 1, 0, 1]
    assert tables.identifiers == {"patient"}
    taken = tables.take(np.array([1]))
    assert taken.children["lines"].table["visit"].tolist() == [2, 2]
    assert taken.whose["lines"].tolist() == [0, 0]


@pytest.mark.parametrize("n", [0, 1, 30])
def test_a_split_of_two_levels_leaves_no_row_without_its_person(n):
    tables = with_lines(clinic(50), mean_lines=n / 20)
    sides = split_records(tables, train_fraction=0.6, seed=1)
    whole = tables.children["lines"].table
    visits = tables.children["visits"].table.set_index("visit")["patient"]
    for side in sides:
        own = whole[whole["visit"].map(visits).isin(side.people["patient"])].reset_index(drop=True)
        pd.testing.assert_frame_equal(side.children["lines"].table, own)


def test_what_is_wrong_on_two_levels_is_counted_at_once():
    with pytest.raises(InvalidTableError) as refused:
        with_items(pd.DataFrame({"visit": [3, 9, None, 2]}), table=rows("a", "zz", "b", "b", visit=[1, 2, 2, None]))
    said = str(refused.value)
    assert "1 rows of 'visits' have a 'patient' that nobody in 'people' has" in said
    assert "1 rows of 'visits' have no 'visit'" in said
    assert "1 rows of 'visits' repeat a 'visit'" in said
    assert "2 rows of 'lines' have a 'visit' that no row in 'visits' has" in said
    assert "1 rows of 'lines' have no 'visit'" in said
    with pytest.raises(InvalidTableError, match="'visit' is text in 'lines' and number in 'visits'"):
        with_items(pd.DataFrame({"visit": ["1", "2"]}))
    empty = with_items(pd.DataFrame({"visit": []}, dtype="int64"), table=rows(visit=[]).astype(object))
    assert empty.whose["lines"].tolist() == []
    with pytest.raises(InvalidTableError, match="1 rows of 'lines' have a 'visit' that no row in 'visits' has"):
        with_items(pd.DataFrame({"visit": [4]}), table=rows(visit=[]).astype(object))


@pytest.mark.parametrize(
    ("visits", "lines", "said"),
    [
        ({"own_key": None}, {}, "by the key 'visit', and `own_key` there is None"),
        ({"own_key": "patient"}, {}, "`own_key` there is 'patient'"),
        ({"own_key": "visit", "order": "visit"}, {}, "which is also its key or its order"),
        ({"own_key": "number"}, {"key": "number"}, "`own_key of child 'visits'` is 'number'"),
        ({}, {"patient": "a"}, r"'lines' also has the columns \['patient'\], which number people or rows"),
    ],
)
def test_numbers_of_rows_are_declared_once(visits, lines, said):
    of_lines = pd.DataFrame({"visit": [1]}).assign(**lines)
    own = {"table": rows("a", visit=[1]), "key": "patient", "own_key": "visit"} | visits
    children = {"visits": Child(**own), "lines": Child(of_lines, key=lines.get("key", "visit"), of="visits")}
    with pytest.raises(InvalidSettingError, match=said):
        RelatedTables(people("a"), children, person="patient")


def test_people_do_not_have_numbers_of_rows():
    of_people = people("a", visit=[1])
    visits = Child(rows("a", visit=[1]), key="patient", own_key="visit")
    with pytest.raises(InvalidSettingError, match=r"Table 'people' has the columns \['visit'\], which number rows"):
        RelatedTables(of_people, {"visits": visits}, person="patient")


def test_two_levels_are_stored_and_numbered_anew():
    tables = with_lines(clinic(40))
    again = RelatedTables.from_artifact(tables.to_artifact())
    assert again.links == tables.links
    assert again.content == tables.content
    anew = tables.renumbered()
    assert anew.people["patient"].tolist() == list(range(1, 41))
    visits, lines = (anew.children[name].table for name in ("visits", "lines"))
    assert visits["visit"].tolist() == list(range(1, len(visits) + 1))
    assert visits["patient"].is_monotonic_increasing
    assert lines["visit"].is_monotonic_increasing
    number = dict(zip(tables.people["patient"], anew.people["patient"], strict=True))
    joined = [
        own.children["lines"].table.merge(own.children["visits"].table, on="visit").drop(columns="visit")
        for own in (tables, anew)
    ]
    joined[0]["patient"] = joined[0]["patient"].map(number)
    names = list(joined[0])
    one, other = (own.sort_values(names, ignore_index=True) for own in joined)
    pd.testing.assert_frame_equal(one, other, check_dtype=False)


SENTINEL = "QX7731"


@pytest.mark.parametrize(
    "broken",
    [
        lambda t: replace(t, people=pd.concat([t.people, t.people])),
        lambda t: of_visits(t, table=t.children["visits"].table.assign(patient=SENTINEL)),
        lambda t: of_visits(t, table=t.children["visits"].table.assign(patient=1)),
        lambda t: of_visits(t, table=t.children["visits"].table.assign(patient=None)),
        lambda t: of_visits(t, order="diagnosis"),
        lambda t: of_visits(
            t, table=t.children["visits"].table.assign(date=[SENTINEL, 1][:1] * len(t.whose["visits"]))
        ),
        lambda t: replace(t, person=[SENTINEL]),
        lambda t: of_visits(t, key=(SENTINEL,)),
    ],
)
def test_no_cell_is_in_a_message_or_a_representation(broken):
    tables = clinic(50)
    marked = tables.people.assign(patient=SENTINEL + tables.people["patient"], sex=SENTINEL)
    visits = tables.children["visits"].table
    visits = visits.assign(patient=SENTINEL + visits["patient"], diagnosis=SENTINEL)
    tables = RelatedTables(marked, {"visits": Child(visits, key="patient", order="date")}, person="patient")
    assert SENTINEL not in f"{tables!r} {tables.children!r}"
    with pytest.raises(PrivacyAssetsError) as refused:
        broken(tables)
    error = refused.value
    while error is not None:
        assert SENTINEL not in str(error)
        error = error.__cause__ or error.__context__
