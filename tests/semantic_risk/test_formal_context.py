"""Scales: which attributes cells become, also cells of released tables."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import Exact, HierarchyMapping, Interval, Label, ReleaseModel, ValueSet
from privacy_assets.columns.scales import Ancestors, Generalized, Nominal, Ordinal, Windows, read_scale
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.semantic_risk import formal_context
from privacy_assets.semantic_risk.formal_context import read_formal_context, released_scales
from tests.examples import examples
from tests.people import every_kind

PLACES = Hierarchy.from_mapping(
    {"Europe": {"West": ["France", "Spain"], "East": ["Poland"]}, "Asia": {"Far": ["Japan"]}}
)


def attributes_of(table, scales, model=None):
    """Labels of the attributes of each record."""
    context = read_formal_context(table, scales, model)
    labels = np.array([attribute.label for attribute in context.attributes])
    return [set(labels[own]) for own in context.incidence()[context.row_of_record]]


def one(values, scale, **kwargs):
    return attributes_of(
        pd.DataFrame({"x": pd.Series(values, **kwargs), "y": [True] * len(values)}), {"x": scale, "y": "binary"}
    )


def says(*labels):
    return {"y", *labels}


def test_a_nominal_value_is_an_attribute_and_a_missing_or_suppressed_one_none():
    assert one(["b", "a", None, "*"], "nominal") == [says("x = b"), says("x = a"), says(), says()]
    assert one([1.0, np.nan, 0.1 + 0.2, 0.3], "nominal") == [says("x = 1"), says(), says("x = 0.3"), says("x = 0.3")]
    assert one([34, "*", None, "35"], "nominal", dtype=object) == [says("x = 34"), says(), says(), says("x = 35")]


def test_an_ordinal_value_has_all_attributes_up_to_its_own():
    assert one([3, 1, None, 2], "ordinal", dtype="Int64") == [
        says("x >= 1", "x >= 2", "x >= 3"),
        says("x >= 1"),
        says(),
        says("x >= 1", "x >= 2"),
    ]
    assert one([17, 18, 70], {"ordinal": [18, 65.5]}) == [says(), says("x >= 18"), says("x >= 18", "x >= 65.5")]
    far = 2**53
    assert one([far, far + 1], {"ordinal": [far + 1]}) == [says(), says(f"x >= {far + 1}")]


def test_windows_may_overlap_and_hold_the_ends_they_say():
    windows = [[0, 10], [5, 15]]
    assert one([0, 5, 10, 15, 16], {"interval": windows}) == [
        says("x in [0, 10]"),
        says("x in [0, 10]", "x in [5, 15]"),
        says("x in [0, 10]", "x in [5, 15]"),
        says("x in [5, 15]"),
        says(),
    ]
    left = {"interval": {"windows": [[0, 10]], "closed": "left"}}
    assert one([0, 9.9, 10], left) == [says("x in [0, 10)"), says("x in [0, 10)"), says()]
    assert one([0, 9.9, 10], Windows(((0, 10),), "neither")) == [says(), says("x in (0, 10)"), says()]


@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(-6, 5), st.integers(1, 6)), min_size=1, max_size=4, unique=True),
    st.sampled_from(["both", "left", "right", "neither"]),
)
@settings(max_examples=examples(100), deadline=None)
def test_windows_agree_with_comparison(values, drawn, closed):
    windows = [(low, low + width) for low, width in drawn]
    context = read_formal_context(
        pd.DataFrame({"x": values, "y": True}),
        {"x": {"interval": {"windows": windows, "closed": closed}}, "y": "binary"},
    )
    expected = [
        [
            (a < v or (a == v and closed in ("both", "left"))) and (v < b or (v == b and closed in ("both", "right")))
            for a, b in windows
        ]
        for v in values
    ]
    assert context.incidence()[context.row_of_record][:, :-1].tolist() == expected


def test_dates_durations_and_ordered_categories_have_an_order():
    days = pd.to_datetime(["2020-01-01", "2020-06-01", None])
    assert one(days, {"ordinal": ["2020-03-01"]})[:2] == [says(), {"y", "x >= 2020-03-01 00:00:00"}]
    aware = pd.to_datetime(["2020-01-01 00:30", "2020-01-01 01:30"]).tz_localize("Europe/Berlin")
    assert [len(own) for own in one(aware, {"ordinal": [dt.datetime(2020, 1, 1, 0, 0, tzinfo=dt.UTC)]})] == [1, 2]
    assert [len(own) for own in one(aware, {"ordinal": ["2020-01-01 01:00"]})] == [1, 2]
    spans = pd.to_timedelta([1, 3], unit="h")
    assert [len(own) for own in one(spans, {"interval": [["2h", "4h"]]})] == [1, 2]
    sizes = pd.Categorical(["small", "large", None], categories=["small", "middle", "large"], ordered=True)
    assert one(sizes, {"ordinal": ["middle", "large"]}) == [says(), says("x >= middle", "x >= large"), says()]
    assert one(sizes, "ordinal") == [says("x >= small"), says("x >= small", "x >= large"), says()]


def test_a_value_has_its_ancestors_and_a_coarse_cell_only_its_own():
    found = one(["France", "Poland", "West", "Asia", "*", None], Ancestors(PLACES))
    assert found == [
        says("x under France", "x under West", "x under Europe"),
        says("x under Poland", "x under East", "x under Europe"),
        says("x under West", "x under Europe"),
        says("x under Asia"),
        says(),
        says(),
    ]
    # Numbers find their leaf however the hierarchy writes them.
    numbers = Hierarchy.from_mapping({"low": ["1.0", "2.50"], "high": ["9"]})
    found = one([1.0, 9.0], Ancestors(numbers))
    assert found == [says("x under 1.0", "x under low"), says("x under 9", "x under high")]
    # Levels that join nothing would repeat the ones below them, and are left out.
    assert one([23, 27, 31, None], {"hierarchy": {"intervals": [5, 10, 20]}}, dtype="Int64") == [
        says("x under 23", "x under [20, 29]", "x under [20, 39]"),
        says("x under 27", "x under [20, 29]", "x under [20, 39]"),
        says("x under 31", "x under [30, 39]", "x under [20, 39]"),
        says(),
    ]


def test_a_binary_table_is_a_context_already():
    table = pd.DataFrame({"a": [1, 0, 1], "b": pd.array([True, None, False], dtype="boolean")})
    assert attributes_of(table, "binary") == [{"a", "b"}, set(), {"a"}]
    assert read_formal_context(table, "binary").names == ("a", "b")


def test_names_hold_no_value_and_do_not_depend_on_the_order_of_rows():
    table = pd.DataFrame({"town": ["Como", "Bonn", "Arles"], "age": [3, 1, 2]})
    scales = {"town": "nominal", "age": "ordinal"}
    context = read_formal_context(table, scales)
    assert context.names == ("town #1", "town #2", "town #3", "age #1", "age #2", "age #3")
    assert read_formal_context(table.iloc[::-1], scales).attributes == context.attributes


def release(**kwargs):
    table = every_kind(60)[["age", "age_or_none", "height", "town", "day", "grade"]]
    return table, anonymize(table, quasi_identifiers=list(table.columns), k=4, **kwargs)


def originals_of_each_row(table, found):
    """For each released row the original rows of its class: what a label must be true of."""
    members = found.members.groupby("class")["row"].apply(list)
    return [table.iloc[members[own]] for own in found.members["class"]]


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("age", "ordinal"),
        ("age", {"ordinal": [18, 40, 65]}),
        ("age", {"interval": [[0, 40], [20, 89]]}),
        ("age_or_none", {"interval": [[0, 40], [20, 89]]}),
        ("age_or_none", {"ordinal": [0, 30]}),
        ("height", {"interval": [[150.0, 172.5], [165.5, 200.0]]}),
        ("height", {"ordinal": [160.5, 170.1]}),
        ("height", {"hierarchy": {"intervals": [10, 40]}}),
        ("age", {"hierarchy": {"intervals": [20, 40]}}),
        ("day", {"ordinal": ["2002-01-01", "2005-01-01"]}),
        ("day", {"hierarchy": {"dates": ["year", "decade"]}}),
        ("town", {"hierarchy": {"tree": {"North": ["Bonn", "Delft"], "South": ["Arles", "Como"]}}}),
    ],
)
def test_a_generalized_cell_has_what_all_values_of_its_class_have(name, scale):
    table, found = release()
    before = attributes_of(table[[name]].assign(y=True), {name: scale, "y": "binary"})
    after = attributes_of(found.table.assign(y=True), {name: scale, "y": "binary"}, found.model)
    n_exact = 0
    for own, originals in zip(after, originals_of_each_row(table, found), strict=True):
        shared = set.intersection(*(before[row] for row in originals.index))
        assert own <= shared
        n_exact += own == shared
    # Sound always; complete too, unless the thresholds are the values that occur, which are others then.
    assert n_exact == (len(after) if isinstance(scale, dict) else 12)


def test_a_generalized_scale_has_the_labels_that_contain_a_cell():
    released = pd.DataFrame(
        {
            "age": ["[20, 24]", "[20, 29]", "27", "missing", "27 or missing", "[25, 29] or missing"],
            "age_low": pd.array([20, 20, 27, None, 27, 25], dtype="Int64"),
            "age_high": pd.array([24, 29, 27, None, 27, 29], dtype="Int64"),
            "age_missing": [False, False, False, True, True, True],
            "town": ["Bonn", "{Bonn, Como}", "Como", "missing", "{Como, missing}", "{Bonn, Como}"],
            "town_values": ['["Bonn"]', '["Bonn", "Como"]', '["Como"]', "[null]", '["Como", null]', '["Bonn", "Como"]'],
            "y": True,
        }
    )
    model = ReleaseModel({"age": Interval("age_low", "age_high", True, "age_missing"), "town": ValueSet("town_values")})
    ages = attributes_of(released, {"age": "generalized", "y": "binary"}, model)
    assert ages == [
        says("age in [20, 24]", "age in [20, 29]"),
        says("age in [20, 29]"),
        says("age in 27", "age in [20, 29]", "age in 27 or missing", "age in [25, 29] or missing"),
        says(),
        says("age in 27 or missing", "age in [25, 29] or missing"),
        says("age in [25, 29] or missing"),
    ]
    towns = attributes_of(released, {"town": "generalized", "y": "binary"}, model)
    assert towns == [
        says("town in Bonn", "town in {Bonn, Como}"),
        says("town in {Bonn, Como}"),
        says("town in Como", "town in {Bonn, Como}", "town in {Como, missing}"),
        says(),
        says("town in {Como, missing}"),
        says("town in {Bonn, Como}"),
    ]


def test_released_scales_fit_what_anonymize_releases():
    table, found = release()
    scales = released_scales(found.table, list(table.columns), found.model)
    assert {name: scale.kind for name, scale in scales.items()} == {
        **dict.fromkeys(["age", "age_or_none", "height", "day", "town"], "generalized"),
        "grade": "nominal",
    }
    context = read_formal_context(found.table, scales, found.model)
    sizes = np.sort(np.bincount(context.row_of_record))
    assert sizes.tolist() == np.sort(found.classes["rows"]).tolist()
    assert released_scales(found.table, ["age"], ReleaseModel({"age": Exact("age")})) == {"age": Nominal()}


@pytest.mark.parametrize("name", [n for n in every_kind(5).columns if n not in ("nothing", "nobody")])
def test_every_kind_of_column_has_a_nominal_scale(name):
    table = every_kind(80)
    context = read_formal_context(table, {name: "nominal"})
    codes = context.row_of_record[table[name].notna().to_numpy()]
    assert len(set(codes.tolist())) == table[name].nunique()
    has_none = ~context.incidence()[context.row_of_record].any(axis=1)
    assert (has_none == table[name].isna().to_numpy()).all()


def test_columns_without_values_have_no_attributes_beside_others():
    table = every_kind(20)[["age", "nothing", "nobody"]]
    context = read_formal_context(table, {"age": "ordinal", "nothing": {"ordinal": [1]}, "nobody": "nominal"})
    assert {attribute.column for attribute in context.attributes} == {"age"}
    with pytest.raises(InvalidTableError, match=r"All cells of the columns \['nothing', 'nobody'\] are missing"):
        read_formal_context(table, {"nothing": "ordinal", "nobody": "nominal"})


def test_parts_of_a_context_are_contexts():
    table = pd.DataFrame({"a": [1, 1, 0, 0], "b": [0, 1, 1, 0], "c": [1, 1, 1, 1]})
    context = read_formal_context(table, "binary")
    some = context.of_records(np.array([True, False, True, False]))
    assert some.incidence()[some.row_of_record].tolist() == [[True, False, True], [False, True, True]]
    fewer = context.without(["b"])
    assert fewer.incidence()[fewer.row_of_record].tolist() == [[True, True], [True, True], [False, True], [False, True]]
    assert (fewer.names, fewer.columns, fewer.n_rows) == (("a", "c"), ("a", "c"), 2)
    nothing = context.without(["a", "b", "c"])
    assert (nothing.n_rows, nothing.n_records, nothing.names) == (1, 4, ())
    assert context.names_in(context.words_of(["c", "a"])) == ("a", "c")
    with pytest.raises(InvalidSettingError, match=r"no attributes \['d'\]"):
        context.without(["d"])
    with pytest.raises(InvalidTableError, match="No record is kept"):
        context.of_records(np.zeros(4, bool))


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ("nominall", r"The scale is 'nominall'. Expected one of \['nominal', 'ordinal', 'binary', 'generalized'\]"),
        ({"windows": [[1, 2]]}, "a mapping with 1 keys, 1 of them unknown"),
        ({"interval": {"Peru": [1, 2]}}, "has 1 unknown keys and no windows. Expected windows"),
        ({"ordinal": [3, 2, 1, 0]}, "list categories that are numbers in another order as text"),
        (3, "The scale is int"),
        ({"interval": [[2, 2]]}, r"the window \[2, 2\].*lower end below the upper"),
        ({"interval": [[3, 2]]}, r"the window \[3, 2\]"),
        ({"interval": []}, "has no window"),
        ({"interval": [[1, 2, 3]]}, "A window has 3 ends"),
        ({"interval": "1-2"}, "scale is a str. Expected a list of windows"),
        ({"interval": {"closed": "left"}}, "Expected windows, and optionally closed"),
        ({"interval": {"windows": [[1, 2]], "closed": "up"}}, "closed is 'up'"),
        ({"interval": [[1, "a"]]}, "Expected one kind"),
        ({"interval": [[1, float("nan")]]}, "lower end below"),
        ({"ordinal": []}, "has an empty list of thresholds"),
        ({"ordinal": [2, 1]}, "do not ascend"),
        ({"ordinal": 5}, "scale is a int"),
        ({"hierarchy": {"nothing": 1}}, "A hierarchy is given as"),
        (Ordinal((3, 1)), "do not ascend"),
    ],
)
def test_a_scale_that_cannot_be_is_refused(scale, message):
    with pytest.raises(InvalidSettingError, match=message):
        read_scale(scale)
    with pytest.raises(InvalidSettingError, match=f"Column 'x': .*{message}"):
        read_formal_context(pd.DataFrame({"x": [1, 2]}), {"x": scale})


@pytest.mark.parametrize(
    ("values", "scale", "message"),
    [
        (["a", "b"], "ordinal", "text values, which are not ordered. .* nominal scale"),
        ([True, False], "ordinal", "boolean values, which are not ordered"),
        ([1, 2], {"ordinal": ["a"]}, "number values. The ends in its scale cannot be compared"),
        ([1, 2], {"ordinal": [float("inf")]}, "cannot be compared"),
        (pd.to_datetime(["2020-01-01"] * 2), {"ordinal": ["soon"]}, "dates as ISO 8601"),
        (pd.to_datetime(["2020-01-01"] * 2), {"interval": [["2021-01-01", "2020-01-01"]]}, "lower end is not below"),
        (pd.Categorical(["lo", "hi"], ["lo", "hi"], ordered=True), {"ordinal": ["mid"]}, r"does not have: \['mid'\]"),
        (pd.Categorical(["lo", "hi"], ["lo", "hi"], ordered=True), {"ordinal": ["hi", "lo"]}, "do not ascend"),
        ([1, 2], "binary", "1 values other than true, false, 1 and 0"),
        (["yes", "no"], "binary", "2 values other than true, false, 1 and 0"),
        ([1, 2], "generalized", "is not generalized"),
        (["Peru", "France"], Ancestors(PLACES), r"1 values \(in 1 rows\) that are not nodes"),
        (range(5000), "nominal", "5000 attributes. Expected at most 4096"),
        (range(5000), "ordinal", "5000 attributes. Expected at most 4096"),
    ],
)
def test_a_column_that_does_not_fit_its_scale_is_refused(values, scale, message):
    with pytest.raises((InvalidSettingError, InvalidTableError), match=message) as caught:
        read_formal_context(pd.DataFrame({"x": values}), {"x": scale})
    assert not {"Peru", "yes"} & set(str(caught.value).split())


def test_ten_thousand_attributes_are_refused_with_the_columns_that_make_them():
    table = pd.DataFrame({f"c{n}": np.arange(2500) for n in range(4)})
    message = "10000 attributes. Expected at most 4096. Most come from {'c0': 2500"
    with pytest.raises(InvalidSettingError, match=message):
        read_formal_context(table, dict.fromkeys(table.columns, "nominal"))


def test_rows_beyond_the_memory_allowed_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(formal_context, "MAX_WORDS", 90)
    table = pd.DataFrame({"x": np.arange(100)})
    with pytest.raises(InvalidSettingError, match="100 distinct rows of 100 attributes, which take .* coarser scales"):
        read_formal_context(table, {"x": "nominal"})


def test_ten_thousand_binary_columns_are_refused():
    table = pd.DataFrame(np.zeros((3, 10_000), bool), columns=[f"c{n}" for n in range(10_000)])
    with pytest.raises(InvalidSettingError, match="10000 attributes. Expected at most 4096"):
        read_formal_context(table, "binary")


@pytest.mark.parametrize(
    ("scales", "error", "message"),
    [
        ({}, InvalidSettingError, "scales is empty"),
        ("all", InvalidSettingError, "scales is 'all'. Expected a mapping"),
        (["x"], InvalidSettingError, "scales is list"),
        ({"z": "nominal"}, InvalidTableError, r"does not have: \['z'\]"),
    ],
)
def test_scales_that_name_nothing_are_refused(scales, error, message):
    with pytest.raises(error, match=message):
        read_formal_context(pd.DataFrame({"x": [1]}), scales)


def test_a_table_that_is_none_is_refused():
    with pytest.raises(InvalidTableError, match="The table is a list"):
        read_formal_context([1], "binary")
    with pytest.raises(InvalidSettingError, match=r"Attributes would have the repeated names \['x #1'\]"):
        read_formal_context(pd.DataFrame({"x": [1], "x #1": [True]}), {"x": "nominal", "x #1": "binary"})


def test_scales_of_intervals_and_sets_that_cannot_be_read_are_refused():
    _, found = release()
    for name, scale, message in [
        ("town", "ordinal", "has sets of values, which are not ordered"),
        ("age", Ancestors(PLACES), "does not define the values in an interval"),
        ("grade", "ordinal", "lists all its categories, the smallest first"),
        ("grade", {"interval": [["low", "middle"]]}, "lists all its categories, the smallest first"),
        ("grade", {"ordinal": ["low", "middle", "low"]}, "It lists some categories twice"),
        ("grade", {"ordinal": ["low", "top"]}, r"[0-9]+ cells of 'grade_low' are not among the 2 listed"),
    ]:
        with pytest.raises((InvalidSettingError, InvalidTableError), match=message):
            read_formal_context(found.table, {name: scale}, found.model)
    order = ["top", "high", "middle", "low"]
    with pytest.raises(InvalidSettingError, match="Expected the order of the anonymization") as caught:
        read_formal_context(found.table, {"grade": {"ordinal": order}}, found.model)
    n_reversed = int((found.table["grade_low"] != found.table["grade_high"]).sum())
    assert f"has {n_reversed} released intervals whose lower end is above the upper end" in str(caught.value)
    for cell in ("[1", "[]", None, "[1]", '"a"'):
        broken = found.table.assign(town_values=pd.Series([cell, *found.table["town_values"][1:]], dtype=object))
        for scale in ("generalized", Ancestors(PLACES)):
            with pytest.raises(InvalidTableError, match="1 distinct cells that are not JSON arrays") as caught:
                read_formal_context(broken, {"town": scale}, found.model)
            assert caught.value.__context__ is None
    with pytest.raises(InvalidTableError, match=r"does not have: \['age_low'\]"):
        read_formal_context(found.table.drop(columns="age_low"), {"age": "generalized"}, found.model)


def test_keys_that_may_be_values_are_not_shown():
    with pytest.raises(InvalidSettingError) as caught:
        read_formal_context(pd.DataFrame({"x": [1]}), {"x": {"positive": ["a"], "negative": ["b"]}})
    assert "a mapping with 2 keys, 2 of them unknown" in str(caught.value)
    assert "positive" not in str(caught.value)


def test_categories_that_are_numbers_are_listed_as_text():
    ordered = pd.Categorical([3, 0, 2], [3, 2, 1, 0], ordered=True)
    found = attributes_of(pd.DataFrame({"x": ordered}), {"x": {"ordinal": ["3", "2", "0"]}})
    assert found == [{"x >= 3"}, {"x >= 3", "x >= 2", "x >= 0"}, {"x >= 3", "x >= 2"}]


def test_nodes_of_a_lattice_release_carry_their_ancestors():
    model = ReleaseModel({"place": HierarchyMapping("place", "place", 1)})
    released = pd.DataFrame({"place": ["West", "East", "Far"]})
    assert attributes_of(released, {"place": Ancestors(PLACES)}, model) == [
        {"place under West", "place under Europe"},
        {"place under East", "place under Europe"},
        {"place under Far", "place under Asia"},
    ]


def by_labels(cells, hierarchy):
    model = ReleaseModel({"x": HierarchyMapping("x", "x")})
    table = pd.DataFrame({"x": pd.Series(cells, dtype=object), "y": True})
    found = attributes_of(table, {"x": {"hierarchy": hierarchy}, "y": "binary"}, model)
    return [{label.removeprefix("x under ") for label in own - {"y"}} for own in found]


@pytest.mark.parametrize(
    ("hierarchy", "expected"),
    [
        (
            {"intervals": [5, 10, 20]},
            {
                "23": {"23", "[20, 24]", "[20, 29]", "[20, 39]"},
                "[20, 24]": {"[20, 24]", "[20, 29]", "[20, 39]"},
                "[20, 29]": {"[20, 29]", "[20, 39]"},
                "[30, 39]": {"[30, 39]", "[20, 39]"},
                "[-20, -1]": {"[-20, -1]"},
                "*": set(),
                "missing": set(),
                None: set(),
            },
        ),
        (
            {"intervals": {"widths": [0.1, 0.2, 0.8], "origin": 0.1}},
            {
                "0.35": {"0.35", "[0.3, 0.4)", "[0.3, 0.5)", "[0.1, 0.9)"},
                "[0.3, 0.4)": {"[0.3, 0.4)", "[0.3, 0.5)", "[0.1, 0.9)"},
                "[0.3, 0.5)": {"[0.3, 0.5)", "[0.1, 0.9)"},
                "[0.1, 0.9)": {"[0.1, 0.9)"},
            },
        ),
        (
            {"intervals": [8, 80]},
            {
                "[16.0, 24.0)": {"[16.0, 24.0)", "[0.0, 80.0)"},
                "[24.0, 32.0)": {"[24.0, 32.0)", "[0.0, 80.0)"},
                "[0.0, 80.0)": {"[0.0, 80.0)"},
            },
        ),
        (
            {"dates": ["day", "month", "year", "decade"]},
            {
                "2020-02-03 10:00:00": {"2020-02-03 10:00:00", "2020-02-03", "2020-02", "2020", "2020s"},
                "2020-02-03": {"2020-02-03", "2020-02", "2020", "2020s"},
                "2020-02": {"2020-02", "2020", "2020s"},
                "2021": {"2021", "2020s"},
                "2021-07-01T23 Europe/Berlin": {
                    "2021-07-01T23 Europe/Berlin",
                    "2021-07-01",
                    "2021-07",
                    "2021",
                    "2020s",
                },
                "2021-07-02 UTC": {"2021-07-02 UTC", "2021-07-02", "2021-07", "2021", "2020s"},
                "1990s": {"1990s"},
            },
        ),
        (
            {"dates": ["year"]},
            {"2020-02-03": {"2020-02-03", "2020"}, "2020": {"2020"}, "2021-01-01": {"2021-01-01", "2021"}},
        ),
        (
            {"prefixes": [4, 2]},
            {
                "81667": {"81667", "8166*", "81*"},
                "8166*": {"8166*", "81*"},
                "8170*": {"8170*", "81*"},
                "90*": {"90*"},
                "9": {"9"},
            },
        ),
    ],
)
def test_nodes_of_a_rule_carry_those_above_them(hierarchy, expected):
    cells = list(expected)
    assert dict(zip(cells, by_labels(cells, hierarchy), strict=True)) == expected


@pytest.mark.parametrize(
    ("hierarchy", "cells"),
    [
        ({"intervals": [5, 10]}, ["23", "young", "[20, 25]", "[1.0, inf)", "nan"]),
        ({"dates": ["month", "year"]}, ["2020", "2020s", "soon", "2020-13", "Monday"]),
        ({"prefixes": [4, 2]}, ["81*", "816*", "*xy*", "\u00e9*", "a*"]),
    ],
)
def test_labels_of_another_hierarchy_are_refused_with_their_number(hierarchy, cells):
    with pytest.raises(InvalidTableError, match="Column 'x' has 4 distinct labels that are not nodes") as caught:
        by_labels(cells, hierarchy)
    assert not any(cell in str(caught.value) for cell in cells)


LATTICE = {
    "age_or_none": Hierarchy.intervals([5, 10, 20, 40, 80]),
    "height": Hierarchy.intervals([0.5, 5, 20]),
    "town": Hierarchy.from_mapping({"North": ["Bonn", "Delft"], "South": ["Arles", "Como"]}),
    "day_or_none": Hierarchy.dates(["month", "year", "decade"]),
    "moment": Hierarchy.dates(["year", "decade"]),
    "zip": Hierarchy.prefixes([4, 3, 2]),
}


@pytest.mark.parametrize("names", [["age_or_none", "town"], ["height"], ["day_or_none", "zip"], ["moment"]])
def test_a_node_of_a_lattice_release_has_what_all_values_of_its_class_have(names):
    table = every_kind(60)
    table["zip"] = (81000 + table["age"] * 7).astype(str)
    table = table[names]
    hierarchies = {name: LATTICE[name] for name in names}
    found = anonymize(
        table, quasi_identifiers=names, k=3, method="lattice", hierarchies=hierarchies, max_suppression=0.3
    )
    scales = released_scales(found.table, names, found.model, hierarchies)
    assert {scale.kind for scale in scales.values()} == {"hierarchy"}
    before = attributes_of(table.assign(y=True), {**scales, "y": "binary"})
    after = attributes_of(found.table.assign(y=True), {**scales, "y": "binary"}, found.model)
    n_more = 0
    for own, originals in zip(after, originals_of_each_row(table, found), strict=True):
        assert own <= set.intersection(*(before[row] for row in originals.index))
        n_more += len(own) > 1 + len(names)
    assert n_more > 0
    for name in names:
        assert f"{name} under missing" not in set.union(*after)


def test_the_label_of_a_missing_value_is_no_attribute_where_cells_are_labels():
    released = pd.DataFrame({"x": ["missing", "a", "*"], "x_values": ["[null]", '["a"]', '["a", "b"]'], "y": True})
    scales = {"x": "nominal", "y": "binary"}
    for mask in (ValueSet("x_values"), HierarchyMapping("x", "x"), Label("x")):
        assert attributes_of(released, scales, ReleaseModel({"x": mask})) == [says(), says("x = a"), says()]
    for kind in ("age", "height", "day", "moment", "adult_or_none", "site"):
        table = every_kind(20)[[kind]]
        model = ReleaseModel({kind: Label(kind)})
        assert attributes_of(table, {kind: "nominal"}, model) == attributes_of(table, {kind: "nominal"})
    # In a table that nobody generalized it is a value like others.
    assert attributes_of(released, scales)[0] == says("x = missing")


def test_ordered_categories_that_were_released_have_the_order_that_their_scale_lists():
    table = every_kind(60)[["grade", "town"]]
    grades = table["grade"].mask(np.arange(60) % 11 == 0)
    found = anonymize(table.assign(grade=grades), quasi_identifiers=["grade", "town"], k=4)
    order = ["low", "middle", "high"]
    after = attributes_of(found.table.assign(y=True), {"grade": {"ordinal": order}, "y": "binary"}, found.model)
    released = found.table
    n_missing = 0
    for own, low, may_be_missing in zip(after, released["grade_low"], released["grade_missing"], strict=True):
        n_up_to = 0 if may_be_missing else 1 + order.index(low)
        assert own == says(*(f"grade >= {value}" for value in order[:n_up_to]))
        n_missing += may_be_missing
    assert 0 < n_missing < len(released)


def test_a_scale_object_is_taken_as_it_is():
    assert read_scale(Generalized()) == Generalized()
    assert read_scale({"ordinal": [1, 2]}) == Ordinal((1, 2))
    assert read_scale({"interval": [(1, 2)]}) == Windows(((1, 2),))
