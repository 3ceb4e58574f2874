"""Drawn records: what labels promise, for every mask that a release can have."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import Hierarchy, InvalidSettingError, InvalidTableError, anonymize, draw_records
from privacy_assets.reidentification import (
    BoundedNoise,
    Exact,
    GaussianNoise,
    HierarchyMapping,
    Interval,
    Label,
    Microaggregated,
    Pram,
    RankWindow,
    ReleaseModel,
    SimilarText,
    Suppressed,
    ValueSet,
)
from privacy_assets.reidentification.code_sets import from_lists
from privacy_assets.utility.drawing import _margin
from tests.utility.test_figures import KINDS, SIZES, related

ANONYMIZED = sorted(set(KINDS) - {"missing"})


def ends_of(column):
    known = column.dropna()
    known = known.cat.codes if isinstance(known.dtype, pd.CategoricalDtype) else known
    return (known.min(), known.max()) if len(known) else None


def classes_of(anonymization, table):
    """Yield the rows of each class in the release and in the table handed in."""
    for _, members in anonymization.members.reset_index().groupby("class"):
        yield members["index"].to_numpy(), table.iloc[members["row"]]


@given(
    kinds=st.lists(st.sampled_from(ANONYMIZED), min_size=1, max_size=3),
    n=st.integers(8, 40),
    k=st.integers(2, 5),
    bounds=st.sampled_from(["tight", "cell"]),
    seed=st.integers(0, 10_000),
)
@settings(deadline=None, max_examples=40)
def test_records_of_a_class_are_within_its_labels_and_tight_ends_occur(kinds, n, k, bounds, seed):
    table = related(kinds, n, seed)
    table["other"] = np.arange(n)
    names = [name for name in table if name != "other"]
    made = anonymize(table, quasi_identifiers=names, k=k, bounds=bounds)
    drawn = draw_records(made.table, made, seed, domain=table)
    assert list(drawn.columns) == list(table.columns)
    assert drawn["other"].tolist() == made.table["other"].tolist()
    for rows, originals in classes_of(made, table):
        own = drawn.iloc[rows]
        for name in names:
            true, found = originals[name], own[name]
            mask = made.model.masks[name]
            if isinstance(mask, ValueSet):
                assert set(found.dropna()) == set(true.dropna())
            elif bounds == "tight":
                assert ends_of(found) == ends_of(true)
            if bounds == "tight" or isinstance(mask, ValueSet):
                assert found.isna().any() == true.isna().any()
            if not true.isna().any():
                assert not found.isna().any()


def margin_by_value(sets, n_of_set, certain, n_iterations=30):
    """Turnbull's margin, one value and one set at a time."""
    n_rows = sum(certain) + sum(n_of_set)
    weights = [1 / len(certain)] * len(certain)
    for _ in range(n_iterations):
        expected = list(certain)
        for own, n in zip(sets, n_of_set, strict=True):
            total = sum(weights[v] for v in own)
            for v in own:
                expected[v] += n * weights[v] / total
        weights = [each / n_rows for each in expected]
    return weights


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_the_margin_equals_a_plain_reference(data):
    n_codes = data.draw(st.integers(1, 8))
    one_set = st.lists(st.integers(0, n_codes - 1), min_size=1, unique=True).map(sorted)
    lists = data.draw(st.lists(one_set, min_size=1, max_size=5, unique_by=tuple))
    n_of_set = data.draw(st.lists(st.integers(1, 5), min_size=len(lists), max_size=len(lists)))
    certain = data.draw(st.lists(st.integers(0, 3), min_size=n_codes, max_size=n_codes))
    sets = from_lists([np.array(own, np.int64) for own in lists], np.arange(len(lists)))
    found = _margin(sets, np.array(n_of_set), np.array(certain, float))
    assert found == pytest.approx(margin_by_value(lists, n_of_set, certain), abs=1e-6)


def test_margins_follow_the_release_and_not_the_width():
    exact = pd.DataFrame({"x_low": [0] * 90 + [9] * 10 + [0] * 900, "x_high": [0] * 90 + [9] * 10 + [9] * 900})
    model = ReleaseModel({"x": Interval("x_low", "x_high", True)})
    shares = draw_records(exact, model, bounds="cell")["x"].value_counts(normalize=True)
    assert shares[0] == pytest.approx(0.9, abs=0.05)


def test_nodes_of_hierarchies_are_uniform_over_the_values_below():
    table = pd.DataFrame({"zip": [f"{a}{b}" for a in "12" for b in "0123"] * 60, "age": np.arange(480) % 60})
    hierarchies = {"zip": Hierarchy.prefixes([1]), "age": Hierarchy.intervals([10, 30])}
    made = anonymize(table, quasi_identifiers=["zip", "age"], k=40, method="lattice", hierarchies=hierarchies)
    assert {type(mask) for mask in made.model.masks.values()} == {HierarchyMapping}
    drawn = draw_records(made.table, made, domain=table, hierarchies=hierarchies)
    below = {f"{digit}*": {f"{digit}{other}" for other in "0123"} for digit in "12"}
    below |= {f"[{low}, {low + 9}]": set(range(low, low + 10)) for low in range(0, 60, 10)}
    for name, n_labels, n_each in (("zip", 2, 60), ("age", 6, 8)):
        assert made.table[name].nunique() == n_labels
        for label, own in drawn[name].groupby(made.table[name]):
            counts = Counter(own)
            assert set(counts) <= below[label]
            # Five standard deviations of a value that is drawn with the same chance as the others below its label.
            expected = len(own) / len(below[label])
            assert expected == n_each
            assert max(abs(counts[value] - expected) for value in below[label]) < 5 * expected**0.5
    # Without the known values: rules name their own ends, lists their leaves; stars stand for anything.
    alone = draw_records(made.table[["age"]], ReleaseModel({"age": made.model.masks["age"]}), hierarchies=hierarchies)
    assert alone["age"].between(0, 59).all()
    tree = {"x": Hierarchy.from_mapping({"A": ["a1", "a2"], "B": ["b1"]})}
    released = pd.DataFrame({"x": ["A", "B", "*"] * 40})
    found = draw_records(released, ReleaseModel({"x": HierarchyMapping("x", "x")}), hierarchies=tree)["x"]
    assert set(found[released["x"] == "A"]) == {"a1", "a2"}
    assert set(found[released["x"] == "B"]) == {"b1"}
    assert set(found[released["x"] == "*"]) >= {"a1", "a2", "b1"}
    known = pd.DataFrame({"x": ["a1", "a2", "b1", "elsewhere", None]})
    found = draw_records(released, ReleaseModel({"x": HierarchyMapping("x", "x")}), domain=known, hierarchies=tree)["x"]
    assert set(found[released["x"] == "A"]) == {"a1", "a2"}
    assert set(found[released["x"] == "*"].dropna()) == {"a1", "a2", "b1"}


def test_every_mask_is_read():
    released = pd.DataFrame(
        {
            "exact": [1, 2, 3, 4],
            "i_low": [1.5, 2.5, np.nan, 1.5],
            "i_high": [2.6, 2.6, np.nan, 2.6],
            "i_missing": [False, False, True, True],
            "set": [json.dumps(["a", None]), '["b"]', '["a", "b"]', '["a", null]'],
            "label": ["[1, 3]", "2", "{1, 4}", "missing"],
            "star": ["ab*", "{x, y}", "x", "*"],
            "noise": [1.1, 2.2, np.nan, 3.3],
            "swapped": [3, 2, 1, 4],
            "typed": ["ann", "bob", "eve", None],
            "mean": [2.5] * 4,
            "normal": [0.1, 0.2, 0.3, 0.4],
            "pram": ["u", "v", "u", "v"],
            "centre": [7.5] * 4,
            "unmasked": [9, 9, 8, 8],
        }
    )
    masks = {
        "exact": Exact("exact"),
        "interval": Interval("i_low", "i_high", False, "i_missing"),
        "values": ValueSet("set"),
        "label": Label("label"),
        "star": Label("star"),
        "noise": BoundedNoise("noise", 0.5),
        "swapped": RankWindow("swapped", 10),
        "typed": SimilarText("typed", 1),
        "mean": Microaggregated("mean", ["mean"]),
        "normal": GaussianNoise("normal", 1.0),
        "pram": Pram("pram", {"u": {"u": 0.9, "v": 0.1}, "v": {"v": 1.0}}),
        "centre": Suppressed(),
        "gone": Suppressed(),
    }
    domain = pd.DataFrame({"star": ["abc", "x", "y", "z"]})
    for seed in range(5):
        drawn = draw_records(released, ReleaseModel(masks), seed, domain=domain)
        assert list(drawn.columns) == [*(name for name in masks if name != "gone"), "unmasked"]
        for name in ("exact", "noise", "swapped", "typed", "mean", "normal", "pram", "centre", "unmasked"):
            pd.testing.assert_series_equal(drawn[name], released[name])
        assert drawn["interval"].iloc[:2].between(1.5, 2.6, inclusive="left").all()
        assert drawn["interval"].iloc[1] == 2.5
        assert pd.isna(drawn["interval"].iloc[2])
        assert drawn["values"].iloc[1] == "b"
        assert drawn["values"].iloc[0] == "a" or pd.isna(drawn["values"].iloc[0])
        assert drawn["label"].iloc[0] in (1, 2, 3)
        assert drawn["label"].iloc[1] == 2
        assert drawn["label"].iloc[2] in (1, 4)
        assert pd.isna(drawn["label"].iloc[3])
        assert drawn["star"].iloc[0] == "abc"
        assert drawn["star"].iloc[1] in ("x", "y")


def test_ordered_categories_need_their_order():
    table = pd.DataFrame({"size": pd.Categorical(SIZES * 10, SIZES, ordered=True), "n": np.arange(40)})
    made = anonymize(table, quasi_identifiers=["size", "n"], k=7)
    with pytest.raises(InvalidSettingError, match="does not contain their order"):
        draw_records(made.table, made)
    drawn = draw_records(made.table, made, domain=table)
    assert drawn["size"].dtype == table["size"].dtype


def test_centroids_are_used_as_they_are():
    table = pd.DataFrame({"n": np.arange(40.0), "t": list("ab") * 20})
    made = anonymize(table, quasi_identifiers=["n", "t"], k=5, output="centroid")
    pd.testing.assert_frame_equal(draw_records(made.table, made), made.table, check_dtype=False)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda t, m: draw_records(t, m, -1), InvalidSettingError, "seed"),
        (lambda t, m: draw_records(t, m, bounds="loose"), InvalidSettingError, "bounds"),
        (lambda t, m: draw_records(t.to_numpy(), m), InvalidTableError, "DataFrame"),
        (lambda t, m: draw_records(t, m.masks), InvalidSettingError, "ReleaseModel"),
        (lambda t, m: draw_records(t, ReleaseModel({"x": "no mask"})), InvalidSettingError, "Mask objects"),
        (lambda t, m: draw_records(t.head(0), m), InvalidTableError, "no rows"),
        (lambda t, m: draw_records(t.drop(columns="x_low"), m), InvalidTableError, r"lacks the columns \['x_low'\]"),
        (lambda t, m: draw_records(t.assign(x_low=[5, 6, 7]), m), InvalidTableError, "no value fits the labels of 3"),
        (lambda t, m: draw_records(t, ReleaseModel({"x": HierarchyMapping("text", "h")})), InvalidTableError, "text|x"),
    ],
)
def test_bad_input_is_refused_without_a_cell(call, error, words):
    table = pd.DataFrame({"x_low": [1, 2, 2], "x_high": [2, 3, 4], "text": ["sentinel*99*", "[a, 3]", "*"]})
    with pytest.raises(error, match=words) as caught:
        call(table, ReleaseModel({"x": Interval("x_low", "x_high", True)}))
    assert "sentinel" not in str(caught.value)
