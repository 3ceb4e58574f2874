"""Hierarchies hold every value, nest, and refuse what is no tree."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from tests.examples import examples

COUNTRIES = {"Europe": {"West": ["France", "Spain"], "East": ["Poland"]}, "Asia": {"Far East": ["Japan"]}}


def paths(hierarchy, values, dtype=None):
    """Labels of each value, from itself to the top, on the levels that join something."""
    leveled = hierarchy.apply(pd.Series(values, dtype=dtype), "c").merging()
    by_value = [[str(leveled.labels[node]) for node in leveled.nodes[:, code]] for code in leveled.codes]
    check_that_nodes_nest(leveled)
    return by_value


def check_that_nodes_nest(leveled):
    for lower, upper in zip(leveled.nodes, leveled.nodes[1:], strict=False):
        assert len({*zip(lower.tolist(), upper.tolist(), strict=True)}) == len(set(lower.tolist()))
        assert len(set(upper.tolist())) < len(set(lower.tolist()))
        assert (leveled.loss[upper] >= leveled.loss[lower]).all()
    assert len(set(leveled.nodes[-1].tolist())) == 1
    assert len(set(leveled.labels)) == len(leveled.labels)
    assert ((leveled.loss >= 0) & (leveled.loss <= 1)).all()


def test_a_tree_of_mappings_gives_each_value_its_ancestors():
    found = paths(Hierarchy.from_mapping(COUNTRIES), ["Spain", "Poland", "France", "Japan"])
    assert found[0] == ["Spain", "West", "Europe", "*"]
    assert found[3] == ["Japan", "Far East", "Asia", "*"]


def test_yaml_gives_the_same_tree():
    text = "tree: {Europe: {West: [France, Spain], East: [Poland]}, Asia: {Far East: [Japan]}}"
    values = ["Spain", "Poland", "France"]
    found = paths(Hierarchy.from_settings(yaml.safe_load(text)), values)
    assert found == paths(Hierarchy.from_mapping(COUNTRIES), values)


def test_a_hierarchy_with_one_top_node_keeps_its_name():
    assert paths(Hierarchy.from_mapping({"anybody": ["a", "b"]}), ["a", "b"])[0] == ["a", "anybody"]


@pytest.mark.parametrize(
    ("leaves", "values", "dtype"),
    [
        ([1, 2], [1, 2], "int64"),
        ([1, 2], [1.0, 2.0, None], "float64"),
        ([True, False], [True, False], "bool"),
        ([dt.date(2020, 1, 1), dt.date(2021, 1, 1)], ["2020-01-01", "2021-01-01"], "datetime64[ns]"),
        (["1", "2"], ["1", "2"], "category"),
        (["1", "2"], ["1", None], "string[pyarrow]"),
        ([0.3, 0.5], [0.1 + 0.2, 0.5], "float64"),
    ],
)
def test_values_of_every_kind_find_their_leaf(leaves, values, dtype):
    found = paths(Hierarchy.from_mapping({"both": leaves}), values, dtype)
    assert all(path[-1] == "both" for path in found)


@pytest.mark.parametrize(
    ("leaves", "values", "dtype"),
    [
        ([1.0, 2.5], [1.0, 2.5], "float64"),
        (["1.0", "2.50"], [1.0, 2.5], "float64"),
        (["1.0", "+2.0e0"], [1, 2], "int64"),
        (["01", "1e20"], [1, 10**20], object),
        ([0.1 + 0.2, ".5"], [0.3, 0.5], "Float64"),
        (["-0.0", "1e99999999999999999999", "1_0", "5"], [0.0, 5.0], "float64"),
    ],
)
def test_numbers_find_their_leaf_however_they_are_written(tmp_path, leaves, values, dtype):
    (tmp_path / "h.csv").write_text("\n".join(f"{leaf};both" for leaf in leaves))
    for hierarchy in (Hierarchy.from_mapping({"both": leaves}), Hierarchy.from_arx_csv(tmp_path / "h.csv")):
        assert [path[-1] for path in paths(hierarchy, values, dtype)] == ["both", "both"]
        with pytest.raises(InvalidTableError, match=r"'c' has 1 values \(in 1 rows\) that its hierarchy of"):
            paths(hierarchy, [*values, 77], dtype)


def test_texts_are_no_numbers():
    with pytest.raises(InvalidTableError, match="1 values"):
        paths(Hierarchy.from_mapping({"both": ["1.0", "2"]}), ["1", "2"], object)


def test_a_number_that_stands_twice_is_refused_without_it():
    tree = Hierarchy.from_mapping({"x": ["7", "7.0"], "y": ["8", "8.00000000001", "nine"]})
    with pytest.raises(
        InvalidTableError, match="'c' has numbers, and 2 values.*are the same number as another value"
    ) as raised:
        paths(tree, [7, 8])
    assert not {"7", "8"} & set(str(raised.value))
    assert paths(tree, ["7", "8"])[0] == ["7", "*"]


def test_losses_count_the_values_of_the_hierarchy():
    leveled = Hierarchy.from_mapping(COUNTRIES).apply(pd.Series(["France", "Poland", "Japan"]), "c")
    losses = dict(zip(leveled.labels, leveled.loss, strict=True))
    assert (losses["France"], losses["West"], losses["Europe"], losses["*"]) == (0, 1 / 3, 2 / 3, 1)


def test_levels_that_join_nothing_are_left_out_where_only_classes_are_made():
    leveled = Hierarchy.from_mapping(COUNTRIES).apply(pd.Series(["France", "Poland", "France"]), "c")
    assert [leveled.labels[node] for node in leveled.nodes[:, 0]] == ["France", "West", "Europe", "*"]
    assert [leveled.labels[node] for node in leveled.merging().nodes[:, 0]] == ["France", "Europe"]
    constant = Hierarchy.from_mapping(COUNTRIES).apply(pd.Series(["France", "France"]), "c")
    assert (len(constant.nodes), len(constant.merging().nodes)) == (4, 1)


def test_a_missing_value_is_a_leaf_of_its_own_until_the_top():
    found = paths(Hierarchy.from_mapping(COUNTRIES), ["France", None, "Spain"])
    assert found[1] == ["missing", "missing", "*"]
    assert paths(Hierarchy.from_mapping(COUNTRIES), [None, None], object) == [["missing"]] * 2
    with pytest.raises(InvalidTableError, match="'c': 1 labels.*different sets of values"):
        Hierarchy.from_mapping({"x": ["a"], "missing": ["b"]}).apply(pd.Series(["a", "b", None]), "c")


@pytest.mark.parametrize(
    ("hierarchy", "values", "dtype", "node"),
    [
        (Hierarchy.intervals([10]), [21, 22, None, 25], "Int64", "[20, 29]"),
        (Hierarchy.intervals([0.5]), [0.1, 0.2, None, 0.3], "float64", "[0.0, 0.5)"),
        (Hierarchy.prefixes([3]), ["81667", "81669", None, "81675"], object, "816*"),
        (Hierarchy.dates(["month", "year"]), ["2020-01-05", "2020-02-05", None, "2020-03-05"], "M8[s]", "2020"),
    ],
)
def test_a_missing_value_lies_under_no_node_of_a_rule_but_the_root(hierarchy, values, dtype, node):
    found = paths(hierarchy, values, dtype)
    assert found[2] == ["missing"] * (len(found[2]) - 1) + ["*"]
    assert found[0][-2:] == [node, "*"]
    # Without it the table is as it was: the last level is one node.
    complete = paths(hierarchy, [value for value in values if value is not None], dtype)
    assert complete[0] == found[0][:-1]


def test_a_missing_value_of_a_list_lies_under_its_top_whatever_its_name():
    assert paths(Hierarchy.from_mapping({"Europe": ["France", "Spain"]}), ["France", None])[1] == ["missing", "Europe"]


def test_a_top_that_is_called_like_one_of_its_values_takes_no_missing_value_in():
    # With one value, rules and trees may call every level by its name; {a, missing} needs another.
    for hierarchy in (Hierarchy.prefixes([1]), Hierarchy.from_mapping({"a": ["a"]})):
        assert paths(hierarchy, ["a", None]) == [["a", "*"], ["missing", "*"]]
    assert paths(Hierarchy.intervals([1]), [7, None], "Int64") == [["7", "*"], ["missing", "*"]]
    named = Hierarchy.from_mapping({"Europe": {"West": ["France"], "Europe": ["Poland"]}})
    with pytest.raises(InvalidTableError, match="'c': 1 labels"):
        named.apply(pd.Series(["France", None]), "c")


def test_a_top_that_stands_on_several_levels_takes_the_missing_value_in_on_all(tmp_path):
    (tmp_path / "h.csv").write_text("a;*;*\nb;*;*")
    assert paths(Hierarchy.from_arx_csv(tmp_path / "h.csv"), ["a", "b", None])[2] == ["missing", "*"]


def test_the_text_missing_is_not_taken_for_a_missing_value():
    tree = Hierarchy.from_mapping({"*": ["a", "missing"]})
    assert paths(tree, ["a", "missing"])[1] == ["missing", "*"]
    with pytest.raises(InvalidTableError, match="'c': 1 labels.*missing values are labeled 'missing'"):
        tree.apply(pd.Series(["a", "missing", None]), "c")


def test_a_label_may_repeat_upwards_only_while_it_means_the_same():
    padded = Hierarchy.from_mapping({"Other": ["Other"], "Rest": ["a", "b"]})
    assert paths(padded, ["Other", "a", "b"])[0] == ["Other", "Other", "*"]
    widened = Hierarchy.from_mapping({"Other": ["Other", "a"], "Rest": ["b"]})
    with pytest.raises(InvalidTableError, match="'c': 1 labels"):
        widened.apply(pd.Series(["Other"]), "c")


@given(
    st.lists(st.one_of(st.none(), st.integers(-(10**6), 10**6)), min_size=1, max_size=30),
    st.sampled_from([[1, 2], [5, 10, 20, 40], [7]]),
    st.integers(-9, 9),
)
@settings(max_examples=examples(100), deadline=None)
def test_whole_numbers_lie_in_closed_intervals(values, widths, origin):
    for value, path in zip(values, paths(Hierarchy.intervals(widths, origin), values, "Int64"), strict=True):
        assert path[0] == ("missing" if value is None else str(value))
        for label in path[1:-1]:
            if label != "missing":
                low, high = map(int, label.strip("[]").split(", "))
                assert low <= value <= high
                assert high - low + 1 in widths
                assert (low - origin) % (high - low + 1) == 0


@given(
    st.lists(st.decimals(-50, 50, places=3).map(float), min_size=1, max_size=30),
    st.sampled_from([[0.1, 0.2, 1.0], [0.25], [0.3, 0.6]]),
)
@settings(max_examples=examples(100), deadline=None)
def test_floats_lie_in_half_open_intervals(values, widths):
    for value, path in zip(values, paths(Hierarchy.intervals(widths), [*values, 0.0005])[:-1], strict=True):
        for label in path[1:-1]:
            low, high = map(float, label.strip("[)").split(", "))
            assert low <= value < high


def test_a_float_on_an_edge_lies_above_it():
    # 0.3 / 0.1 is 2.9999999999999996.
    found = paths(Hierarchy.intervals([0.1]), [0.3, 0.1 + 0.2, 0.35])
    assert [path[1] for path in found] == ["[0.3, 0.4)"] * 3


def test_integers_beyond_64_bits_have_intervals():
    assert paths(Hierarchy.intervals([10]), [2**64, 2**64 + 1, 7])[0][1] == f"[{2**64 - 6}, {2**64 + 3}]"


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**66), 2**66), min_size=2, max_size=9),
    st.sampled_from([[10], [1, 2**40, 2**80], [10**20], [3, 3 * 10**18], [2.0, 1e18]]),
    st.sampled_from([0, 5, -5, 2**63 - 1, -(2**63), 10**20]),
)
@settings(max_examples=examples(150), deadline=None)
def test_whole_numbers_of_any_size_lie_in_their_intervals(values, widths, origin):
    values = [2**63 - 1, 2**63 - 2, -(2**63), 1 - 2**63, *values]
    is_64_bit = all(-(2**63) <= value < 2**63 for value in values)
    for value, path in zip(values, paths(Hierarchy.intervals(widths, origin), values), strict=True):
        for label in path[1:-1]:
            low, high = map(int, label.strip("[]").split(", "))
            assert low <= value <= high and (low - origin) % (high - low + 1) == 0
            assert high - low + 1 in widths
    if is_64_bit:
        assert paths(Hierarchy.intervals(widths, origin), values, "int64")


@pytest.mark.parametrize(("value", "origin"), [(2**63 - 1, -5), (-(2**63), 5)])
def test_the_ends_of_64_bits_have_intervals(value, origin):
    values = [value, value - 1 if value > 0 else value + 1, 0]
    label = paths(Hierarchy.intervals([10], origin), values, "int64")[0][1]
    low, high = map(int, label.strip("[]").split(", "))
    assert low <= value <= high == low + 9


def test_large_floats_lie_in_intervals_or_are_refused():
    found = paths(Hierarchy.intervals([1e300, 2e300]), [2.5e300, 2.7e300, 0.5, 3.5e300])
    assert found[0] == ["2.5e+300", "[2e+300, 3e+300)", "[2e+300, 4e+300)", "*"]
    assert found[2][1] == "[0.0, 1e+300)"
    for widths, value in (([1e308], 1.75e308), ([0.1], 1e17), ([0.1], 1.75e308), ([0.5, 1e300], 1.5e16)):
        with pytest.raises(InvalidTableError, match=r"'c' has 1 values \(in 2 rows\) too large for the ends"):
            paths(Hierarchy.intervals(widths), [value, value, 0.25])
    # The float of 2**60 - 1 is 2**60, and lies where it does not.
    with pytest.raises(InvalidTableError, match="1 values"):
        paths(Hierarchy.intervals([1000.5], 2**60), [2**60 - 1, 2**60 + 1500], "int64")


def test_codes_keep_their_first_characters():
    found = paths(Hierarchy.prefixes([4, 3]), ["81667", "81661", "8161", "816", None])
    assert found[0] == ["81667", "8166*", "816*", "*"]
    assert [path[2] for path in found] == ["816*", "816*", "816*", "816", "missing"]
    assert paths(Hierarchy.prefixes([1]), [12, 13, 25])[0] == ["12", "1*", "*"]


def test_dates_are_cut_down_to_calendar_units():
    days = pd.to_datetime(["2020-01-15", "2020-01-16", "2020-03-01", "2024-01-01", "1969-12-31"])
    assert paths(Hierarchy.dates(), days)[0] == ["2020-01-15", "2020-01", "2020", "2020s", "*"]
    assert paths(Hierarchy.dates(), days)[4][-2] == "1960s"
    aware = pd.to_datetime(["2020-01-01 00:30", "2020-06-01 12:00"]).tz_localize("Europe/Berlin")
    assert paths(Hierarchy.dates(["year"]), aware)[0][1] == "2020"
    assert paths(Hierarchy.dates(["year"]), [dt.date(2020, 1, 1), dt.date(2020, 5, 5), None], object)[0][1] == "2020"


@pytest.mark.parametrize("separator", [";", ","])
def test_a_file_of_arx_is_read(tmp_path, separator):
    file = tmp_path / "h.csv"
    rows = [["a", "x", "*"], ['"b, or; c"', "x", "*"], ["d", "y", "*"]]
    file.write_text("\n".join(separator.join(row) for row in rows) + "\n", encoding="utf-8-sig")
    assert paths(Hierarchy.from_arx_csv(file), ["b, or; c", "d", "a"])[0] == ["b, or; c", "x", "*"]
    assert paths(Hierarchy.from_settings({"arx_csv": str(file)}), ["a", "b, or; c", "d"])[2] == ["d", "y", "*"]


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ("a;x;*\nb;x", r"different numbers of levels \(values by levels: \{2: 1, 3: 1\}\)"),
        ("a;x;*\na;y;*", "1 nodes of level 0 have more than one parent"),
        ("a;x;1\nb;x;2\nc;z;1\nd;z;2", "2 nodes of level 1 have more than one parent"),
        ("a;;*\nb;x;*", "1 of its nodes have no label"),
        ("", "has no values"),
        ("a;;*\nb;x", "different numbers of levels.*1 of its nodes"),
    ],
)
def test_a_file_that_is_no_tree_is_refused_with_counts(tmp_path, rows, match):
    file = tmp_path / "h.csv"
    file.write_text(rows)
    with pytest.raises(InvalidSettingError, match=match):
        Hierarchy.from_arx_csv(file)


@pytest.mark.parametrize(
    ("rows", "n_unread"),
    [
        ('"sentinel;x;*\nb;x;*\nc;x;*', 1),
        ('a;x;*\n"sentinel\nb";x;*\nc;x;*', 1),
        ('a;x;*\n"b"sentinel;x;*', 1),
        (f"a;x;*\n{'sentinel' * 20_000};x;*", 1),
    ],
)
def test_rows_that_cannot_be_read_are_counted(tmp_path, rows, n_unread):
    file = tmp_path / "h.csv"
    file.write_text(rows)
    with pytest.raises(InvalidSettingError, match=f"h.csv' has {n_unread} rows of .* that cannot be read") as raised:
        Hierarchy.from_arx_csv(file)
    assert "sentinel" not in str(raised.value)


@pytest.mark.parametrize("row", ['"a; b",x,*', 'a,"x; y",*', 'a,"x ""; y",*'])
def test_a_semicolon_in_quotes_separates_nothing(tmp_path, row):
    (tmp_path / "h.csv").write_text(row)
    assert Hierarchy.from_arx_csv(tmp_path / "h.csv").described()["tree"]["n_levels"] == 3


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InvalidSettingError, match="nowhere.csv' cannot be read: FileNotFoundError"):
        Hierarchy.from_arx_csv(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: Hierarchy.from_mapping({"x": {"y": ["a"]}, "z": ["b"]}), "different numbers of levels"),
        (lambda: Hierarchy.from_mapping({"x": ["a"], "z": ["a"]}), "more than one parent"),
        (lambda: Hierarchy.from_mapping({"x": "abc"}), "depth 1 that is neither"),
        (lambda: Hierarchy.from_mapping({"x": ["a", ["b"]]}), "neither a mapping of nodes nor a list"),
        (lambda: Hierarchy.from_mapping({}), "no values"),
        (lambda: Hierarchy.intervals([5, 12]), r"\[5, 12\].*has one parent"),
        (lambda: Hierarchy.intervals([10, 5]), "multiple of the previous one"),
        (lambda: Hierarchy.intervals([0]), "above 0"),
        (lambda: Hierarchy.intervals([5, np.inf]), "numbers above 0"),
        (lambda: Hierarchy.intervals("5"), "numbers above 0"),
        (lambda: Hierarchy.intervals([1e-11]), "at least 1e-10"),
        (lambda: Hierarchy.intervals([10**400]), "all within 1.8e308"),
        (lambda: Hierarchy.intervals([5], 10**400), "all within 1.8e308"),
        (lambda: Hierarchy.intervals([1e-9, 1.5e308]), "multiple of the previous one"),
        (lambda: Hierarchy.intervals([1e22, 1.55e23]), "multiple of the previous one"),
        (lambda: Hierarchy.intervals([3, 3 * 10**10 + 1]), "multiple of the previous one"),
        (lambda: Hierarchy.prefixes([3, 4]), "descending"),
        (lambda: Hierarchy.prefixes([]), "descending"),
        (lambda: Hierarchy.dates(["year", "month"]), "in order"),
        (lambda: Hierarchy.dates(["week"]), r"\['day', 'month', 'year', 'decade'\]"),
        (
            lambda: Hierarchy.from_settings({"interval": [5]}),
            "given as a mapping of 1 keys. Expected one key of .*'intervals'",
        ),
        (lambda: Hierarchy.from_settings({"intervals": {"width": 5}}), "Expected widths"),
        (lambda: Hierarchy.from_settings([5]), "given as list"),
        (lambda: Hierarchy.from_settings({"arx_csv": None}), "arx_csv is of the type NoneType. Expected the path"),
        (lambda: Hierarchy.from_arx_csv("h\0.csv"), "cannot be read: ValueError"),
        (
            lambda: Hierarchy.from_arx_csv("h.csv", separator="||"),
            "separator of a hierarchy is '\\|\\|'. Expected one char",
        ),
        (lambda: Hierarchy.from_arx_csv("h.csv", separator='"'), "Expected one character other than a quote"),
        (lambda: Hierarchy.from_arx_csv("h.csv", separator=5), "separator of a hierarchy is 5"),
    ],
)
def test_settings_that_make_no_hierarchy_are_refused(build, match):
    with pytest.raises(InvalidSettingError, match=match):
        build()


@pytest.mark.parametrize(
    ("hierarchy", "values", "match"),
    [
        (Hierarchy.from_mapping(COUNTRIES), ["sentinel", "sentinel", "other", "France"], r"2 values \(in 3 rows\)"),
        (Hierarchy.intervals([5]), ["sentinel"], "text values.*expects numbers"),
        (Hierarchy.prefixes([2]), [True], "boolean values.*expects text or numbers"),
        (Hierarchy.dates(), [2020], "number values.*expects dates"),
    ],
)
def test_columns_that_do_not_fit_are_refused_without_their_cells(hierarchy, values, match):
    with pytest.raises(InvalidTableError, match=f"Column 'c'.*{match}") as raised:
        hierarchy.apply(pd.Series(values), "c")
    assert "sentinel" not in str(raised.value)


def test_widths_beyond_the_digits_of_floats_are_multiples_as_floats():
    # int(1e23) is 99999999999999991611392.
    assert paths(Hierarchy.intervals([1e22, 1e23]), [5, 7, 10**22, 10**25])[0][2] == f"[0, {10**23 - 1}]"


def test_interval_settings_may_name_an_origin():
    found = paths(Hierarchy.from_settings({"intervals": {"widths": [10], "origin": 1}}), [1, 10, 11])
    assert [path[1] for path in found] == ["[1, 10]", "[1, 10]", "[11, 20]"]
