"""Related tables are anonymized as figures of people or as rows without them, and never with their links."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacy_assets as pa
from privacy_assets.anonymization.related import aggregate_rows, unlinked_rows
from privacy_assets.contract.related import Child, RelatedTables
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from tests.examples import examples
from tests.reference.aggregates import people_with_figures
from tests.related import clinic, of_visits, with_lines

ASKED = {
    "visits": {
        "rows": "count",
        "when": ["first", "last", "min", "max"],
        "code": ["count", "first", "last"],
        "cost": ["sum", "mean", "min", "max", "first"],
        "age": ["sum", "mean", "last"],
        "paid": ["any", "sum", "mean", "count"],
    }
}
AS_PAIRS = [
    (column, figure)
    for column, figures in ASKED["visits"].items()
    for figure in ([figures] if isinstance(figures, str) else figures)
]


@st.composite
def tables(draw):
    """Some people with none, one or several rows with moments that differ, stored in any order."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_rows = draw(st.integers(1, 10)), draw(st.integers(0, 30))
    whose, moments = random.integers(0, n, n_rows), random.permutation(200)[:n_rows]
    when = {
        "integer": moments,
        "float": moments / 4,
        "datetime": pd.Timestamp("2020-01-01") + pd.to_timedelta(moments, unit="D"),
    }[draw(st.sampled_from(["integer", "float", "datetime"]))]
    some = random.random(n_rows) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    people = pd.DataFrame({"age": random.integers(0, 5, n), "patient": random.permutation(n) + 7})
    rows = pd.DataFrame(
        {
            "when": when,
            "code": pd.Series(random.choice(["x", "y"], n_rows), dtype=object).where(~some, None),
            "patient": people["patient"].to_numpy()[whose],
            "age": random.integers(-3, 3, n_rows),
            "cost": np.where(some, np.nan, np.round(random.normal(0, 1e6, n_rows), 3)),
            "paid": pd.array(random.random(n_rows) < 0.4, dtype="boolean"),
        }
    )
    rows.loc[some, "paid"] = pd.NA
    return RelatedTables(people, {"visits": Child(rows, key="patient", order="when")}, person="patient")


def plain(frame):
    found = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{n: v.item() if isinstance(v, np.generic) else v for n, v in row.items()} for row in found]


@settings(max_examples=examples(150), deadline=None)
@given(tables())
def test_figures_of_rows_are_those_of_loops(related):
    rows = plain(related.children["visits"].table)
    expected = people_with_figures(plain(related.people), "visits", rows, "patient", "when", AS_PAIRS)
    assert plain(aggregate_rows(related, ASKED)) == expected


def test_figures_do_not_depend_on_where_rows_are_stored():
    related = clinic(60, seed=2)
    visits = related.children["visits"].table
    costs = np.where(np.arange(len(visits)) % 2, 1e17, visits["cost"])
    same_day = of_visits(related, table=visits.assign(date=pd.Timestamp("2020-01-01"), cost=costs))
    asked = {"visits": {"cost": ["sum", "mean", "first"], "diagnosis": ["first", "last"]}}
    expected = aggregate_rows(same_day, asked)
    shuffled = same_day.children["visits"].table.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(aggregate_rows(of_visits(same_day, table=shuffled), asked), expected)


def test_figures_keep_types_and_no_number_of_a_person_is_left():
    related = clinic(40, seed=1)
    visits = related.children["visits"].table
    size = pd.Categorical(np.where(visits["cost"] > 50, "small", "large"), ["small", "large"], ordered=True)
    related = RelatedTables(
        related.people.assign(case=range(40)),
        {
            "visits": replace(related.children["visits"], table=visits.assign(size=size)),
            "drugs": Child(pd.DataFrame({"case": [3, 3], "drug": ["x", "y"]}), key="case"),
        },
        person="patient",
    )
    made = aggregate_rows(
        related, {"visits": {"size": ["min", "max"], "date": "first"}, "drugs": {"rows": "count", "drug": "count"}}
    )
    assert list(made) == [
        *("age", "sex", "min size of visits", "max size of visits", "first date of visits"),
        *("rows of drugs", "count drug of drugs"),
    ]
    whose = related.whose["visits"]
    for person in range(40):
        own = {str(value) for value in size[whose == person]}
        smallest, largest = made["min size of visits"].iloc[person], made["max size of visits"].iloc[person]
        assert pd.isna(smallest) if not own else smallest == ("small" if "small" in own else "large")
        assert pd.isna(largest) if not own else largest == ("large" if "large" in own else "small")
    assert made["min size of visits"].dtype == size.dtype
    assert made["first date of visits"].dtype == visits["date"].dtype
    assert made["rows of drugs"].tolist() == [0, 0, 0, 2, *[0] * 36]


def test_a_child_without_rows_and_one_with_very_many_have_figures():
    related = clinic(30)
    visits = related.children["visits"].table
    asked = {"visits": {"rows": "count", "cost": ["sum", "max"], "date": "last", "paid": "any"}}
    empty = aggregate_rows(of_visits(related, table=visits.head(0)), asked)
    assert (empty["rows of visits"] == 0).all()
    assert (empty["sum cost of visits"] == 0).all()
    assert not empty["any paid of visits"].any()
    assert empty[["max cost of visits", "last date of visits"]].isna().all(axis=None)
    many = visits.iloc[np.zeros(100_000, int)].assign(cost=0.1)
    made = aggregate_rows(of_visits(related, table=many), asked)
    place = int(related.whose["visits"][0])
    assert made["rows of visits"].iloc[place] == 100_000
    assert made["sum cost of visits"].iloc[place] == 10_000.0  # Added one after the other, it is 10000.000000018848.


@pytest.mark.parametrize(
    ("aggregates", "said"),
    [
        ({}, "must map names of children to figures"),
        ([("visits", "rows")], "must map names of children to figures"),
        ({"calls": {"rows": "count"}}, "'calls' is not the name of a child"),
        ({"visits": "count"}, "'visits' has no figures by column"),
        ({"visits": {"cost": "median"}}, r"\['median'\] of 'cost' of 'visits' are none of"),
        ({"visits": {"cost": []}}, "'cost' of 'visits' has no figure"),
        ({"visits": {"rows": "sum"}}, r"'rows' of 'visits' can only be counted, not \['sum'\]"),
        ({"visits": {"price": "sum"}}, "'price' is no column of 'visits'"),
        ({"visits": {"patient": "count"}}, "'patient' is no column of 'visits'"),
        ({"drugs": {"drug": ["first", "last"]}}, r"\['first', 'last'\] of 'drug' of 'drugs' need an `order`"),
        ({"visits": {"diagnosis": ["sum", "min"]}}, r"\['sum', 'min'\] of 'diagnosis' of 'visits', a column of kind"),
        ({"visits": {"cost": "any"}}, r"\['any'\] of 'cost' of 'visits', a column of kind number"),
        ({"visits": {"date": "mean"}}, r"\['mean'\] of 'date' of 'visits', a column of kind datetime"),
    ],
)
def test_figures_that_cannot_be_made_are_refused_by_name(aggregates, said):
    with pytest.raises(InvalidSettingError, match=said):
        aggregate_rows(clinic(30), aggregates)


def test_all_figures_that_cannot_be_made_are_named_at_once():
    with pytest.raises(InvalidSettingError, match=r"median.*'price' is no column.*need an `order`"):
        aggregate_rows(
            clinic(30), {"visits": {"cost": "median", "price": "sum"}, "drugs": {"rows": "count", "drug": "first"}}
        )


def test_a_column_called_rows_and_sums_beyond_64_bits_are_refused():
    related = clinic(30)
    visits = related.children["visits"].table
    with pytest.raises(InvalidSettingError, match="has a column 'rows', which stands for the rows: rename it"):
        aggregate_rows(of_visits(related, table=visits.assign(rows=1)), {"visits": {"rows": "count"}})
    large = of_visits(related, table=visits.assign(cost=2**62))
    with pytest.raises(InvalidTableError, match="beyond 64 bits"):
        aggregate_rows(large, {"visits": {"cost": "sum"}})
    assert aggregate_rows(large, {"visits": {"cost": "mean"}})["mean cost of visits"].max() == 2.0**62


def test_unlinked_rows_have_their_person_and_columns_of_the_people():
    related = clinic(40)
    visits = related.children["visits"].table.assign(age=1)
    related = of_visits(related, table=visits)
    made = unlinked_rows(related, "visits", ["age"])
    assert list(made) == ["patient", "age", "date", "diagnosis", "cost", "paid", "age of visits"]
    of_person = related.people.set_index("patient")["age"]
    assert made["patient"].tolist() == visits["patient"].tolist()
    assert made["age"].tolist() == [of_person[own] for own in visits["patient"]]
    pd.testing.assert_frame_equal(made[["date", "cost"]], visits[["date", "cost"]])
    assert list(unlinked_rows(related, "visits"))[:2] == ["patient", "date"]
    for columns in (["patient"], ["cost"], "age"):
        with pytest.raises(InvalidSettingError, match="is not a list of columns of the people"):
            unlinked_rows(related, "visits", columns)


def test_rows_leave_without_a_key_in_classes_of_people():
    related = clinic(200, seed=4)
    found = pa.anonymize(
        related, unlinked="visits", quasi_identifiers=["date", "age", "sex"], sensitive=["diagnosis"], k=5
    )
    given = unlinked_rows(related, "visits", ["date", "age", "sex"][1:])
    assert "patient" not in found.table
    assert len(found.table) == len(given)
    people = defaultdict(set)
    for own in found.members.itertuples():
        people[found.table.loc[own.Index, ["date", "age", "sex"]].to_json()].add(given["patient"].iloc[own.row])
    assert min(map(len, people.values())) >= 5
    assert len(people) > 5


def test_rows_of_rows_are_figures_of_their_people_or_leave_without_any_number():
    related = with_lines(clinic(120, seed=2))
    made = aggregate_rows(related, {"lines": {"rows": "count", "price": "max", "line": "last"}})
    visits, lines = (related.children[name].table.to_dict("records") for name in ("visits", "lines"))
    for place, patient in enumerate(related.people["patient"]):
        own = [(visit["date"], visit["visit"]) for visit in visits if visit["patient"] == patient]
        of_person = [[line for line in lines if line["visit"] == number] for _, number in sorted(own)]
        flat = [line for of_visit in of_person for line in sorted(of_visit, key=lambda line: line["line"])]
        assert made["rows of lines"].iloc[place] == len(flat)
        if flat and len({date for date, _ in own}) == len(own):
            assert made["max price of lines"].iloc[place] == max(line["price"] for line in flat)
            assert made["last line of lines"].iloc[place] == flat[-1]["line"]
    found = pa.anonymize(related, unlinked="lines", quasi_identifiers=["age", "item"], sensitive=["price"], k=5)
    assert set(found.labels) == {"age", "item", "line", "price"}
    assert found.stats["smallest_class_people"] >= 5


def test_links_are_refused_with_the_reason_and_what_to_do():
    related = clinic(60)
    with pytest.raises(InvalidTableError, match=r"98 % had fewer than 5 candidates.*`aggregate_rows`.*`unlinked`"):
        pa.anonymize(related, quasi_identifiers=["age"], k=5)
    with pytest.raises(InvalidSettingError, match="`subject` cannot be set with RelatedTables"):
        pa.anonymize(related, unlinked="visits", quasi_identifiers=["age"], k=5, subject="patient")
    with pytest.raises(InvalidSettingError, match="'calls' is not the name of a child"):
        pa.anonymize(related, unlinked="calls", quasi_identifiers=["age"], k=5)
    with pytest.raises(InvalidSettingError, match="A dict is not the name of a child"):
        pa.anonymize(related, unlinked={"visits": ["age"]}, quasi_identifiers=["age"], k=5)
    with pytest.raises(InvalidSettingError, match="`unlinked` names a child of RelatedTables, but one table"):
        pa.anonymize(related.people, unlinked="visits", quasi_identifiers=["age"], k=5)


def test_what_ties_the_rows_of_a_person_together_does_not_leave_as_it_is():
    related = clinic(60)
    ask = {"unlinked": "visits", "quasi_identifiers": ["age"], "k": 5}
    with pytest.raises(InvalidSettingError, match=r"`sensitive` names columns of the people: \['sex'\]"):
        pa.anonymize(related, **ask, sensitive=["sex", "cost"])
    visits = related.children["visits"].table
    repeating = of_visits(related, table=visits.assign(ward=related.whose["visits"] % 3))
    with pytest.raises(InvalidSettingError, match=r"never differ within a person: \['ward'\]"):
        pa.anonymize(repeating, **ask)
    assert "ward" not in pa.anonymize(repeating, **ask, direct_identifiers=["ward"]).table
    generalized = pa.anonymize(repeating, **{**ask, "quasi_identifiers": ["age", "ward"]})
    assert "ward" in generalized.model.masks
    # A column of the people that nobody asked for does not go along.
    assert "sex" not in generalized.table


SENTINEL = "QX7731"


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: aggregate_rows(t, {"visits": {"diagnosis": "sum"}}),
        lambda t: aggregate_rows(t, {"visits": {"mixed": "count"}}),
        lambda t: unlinked_rows(t, "visits", ["date"]),
        lambda t: pa.anonymize(t, quasi_identifiers=["age"], k=5),
        lambda t: pa.anonymize(t, quasi_identifiers=["age"], k=5, unlinked="visits", sensitive=["sex"]),
        lambda t: pa.anonymize(t, quasi_identifiers=["age"], k=5, unlinked="visits"),
    ],
)
def test_no_cell_is_in_a_message(ask):
    related = clinic(50)
    visits = related.children["visits"].table
    ward = pd.Series(related.whose["visits"] % 3).map(lambda own: f"{SENTINEL} {own}")
    mixed = pd.Series([1, SENTINEL] * len(visits), dtype=object).head(len(visits))
    marked = of_visits(related, table=visits.assign(diagnosis=SENTINEL, ward=ward, mixed=mixed))
    marked = replace(marked, people=marked.people.assign(sex=SENTINEL))
    with pytest.raises(pa.PrivacyAssetsError) as refused:
        ask(marked)
    error = refused.value
    while error is not None:
        assert SENTINEL not in str(error)
        error = error.__cause__ or error.__context__
