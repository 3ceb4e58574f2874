"""Labels of a table that was generalized elsewhere are read by the hierarchy as given, whatever values occur.

Other programs write the label of a level although that level merges none of these originals. The reference labels each
original by plain text and arithmetic, level by level, and compares.
"""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import Hierarchy, anonymize, assess_reidentification
from privacy_assets.errors import InvalidTableError
from privacy_assets.reidentification import CandidateIndex, HierarchyMapping, OtherRelease, ReleaseModel
from privacy_assets.utility.drawing import draw_records
from tests.examples import examples

TREE = """
tree:
  World:
    Europe: {West: {France: [Paris, Lyon], Spain: [Madrid]}, East: {Poland: [Lodz]}}
    Asia: {Far: {Japan: [Kyoto, Osaka]}}
"""
PATHS = {
    "Paris": ["France", "West", "Europe", "World"],
    "Lyon": ["France", "West", "Europe", "World"],
    "Madrid": ["Spain", "West", "Europe", "World"],
    "Lodz": ["Poland", "East", "Europe", "World"],
    "Kyoto": ["Japan", "Far", "Asia", "World"],
    "Osaka": ["Japan", "Far", "Asia", "World"],
}


def of_tree(value, has_missing):
    return [value, *PATHS[value]]


def of_prefixes(*lengths):
    return lambda value, _: [value, *(value if len(value) <= n else value[:n] + "*" for n in lengths), "*"]


def of_whole(*widths):
    def labels(value, _):
        lows = [value // width * width for width in widths]
        return [str(value), *(f"[{low}, {low + n - 1}]" for low, n in zip(lows, widths, strict=True)), "*"]

    return labels


def of_halves(value, _):
    return [str(value), *(f"[{value // n * n!r}, {value // n * n + n!r})" for n in (0.5, 2.0)), "*"]


def of_dates(value, _):
    return [str(value), value.strftime("%Y-%m-%d"), value.strftime("%Y-%m"), value.strftime("%Y"),
            f"{value.year // 10 * 10}s", "*"]  # fmt: skip


def tree(folder):
    return Hierarchy.from_settings(yaml.safe_load(TREE))


def arx_file(folder):
    (folder / "places.csv").write_text("".join(f"{value};{';'.join(path)}\n" for value, path in PATHS.items()))
    return Hierarchy.from_arx_csv(folder / "places.csv")


KINDS = {
    "tree in YAML": (tree, list(PATHS), of_tree),
    "ARX file": (arx_file, list(PATHS), of_tree),
    "prefixes": (lambda _: Hierarchy.prefixes([3, 2, 1]), ["1111", "1121", "1211", "2111", "21"], of_prefixes(3, 2, 1)),
    "intervals": (lambda _: Hierarchy.intervals([5, 10, 40]), [3, 4, 8, 21, 33, 61], of_whole(5, 10, 40)),
    "half-open intervals": (lambda _: Hierarchy.intervals([0.5, 2.0]), [0.1, 0.3, 0.6, 3.25, 9.75], of_halves),
    "dates": (
        lambda _: Hierarchy.dates(),
        [pd.Timestamp(text) for text in ("2020-01-05", "2020-01-30", "2020-07-01", "2021-12-31", "1999-04-04")],
        of_dates,
    ),
}


@pytest.fixture(scope="module")
def hierarchies(tmp_path_factory):
    return {kind: make(tmp_path_factory.mktemp("lists")) for kind, (make, _, _) in KINDS.items()}


@st.composite
def releases(draw):
    """A kind, originals, the level of the label of each record, and whether the mask names one level."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    _, pool, labels_of = KINDS[kind]
    values = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=6))
    n_levels = len(labels_of(values[0], False))
    level = draw(st.none() | st.integers(0, n_levels - 1))
    each = st.integers(0, n_levels - 1) if level is None else st.just(level)
    return kind, values, draw(st.lists(each, min_size=len(values), max_size=len(values))), level


@settings(max_examples=examples(200), deadline=None)
@given(drawn=releases())
def test_candidates_are_the_originals_with_this_label_on_its_level(hierarchies, drawn):
    kind, values, levels, level = drawn
    labels = [KINDS[kind][2](value, False) for value in values]
    if kind == "dates":
        # Dates without a time are labeled as days are.
        labels = [[own[1], *own[1:]] for own in labels]
    released = [own[at] for own, at in zip(labels, levels, strict=True)]
    expected = [
        sum(label == "*" or label in (own if level is None else own[level : level + 1]) for own in labels)
        for label in released
    ]
    model = ReleaseModel({"x": HierarchyMapping("x", "h", level)})
    table, release = pd.DataFrame({"x": values}), pd.DataFrame({"x": released})
    index = CandidateIndex(model, table, release, range(len(values)), hierarchies={"h": hierarchies[kind]})
    assert index.sizes(["x"]).tolist() == expected


@pytest.mark.parametrize(
    ("hierarchy", "values", "released", "expected"),
    [
        # A level in the middle, at the bottom and at the top merges none of the values.
        (Hierarchy.prefixes([2, 1]), ["111", "121", "211"], ["11*", "12*", "21*"], [1, 1, 1]),
        (Hierarchy.prefixes([3, 1]), ["1111", "2111"], ["111*", "2*"], [1, 1]),
        (Hierarchy.from_settings(yaml.safe_load(TREE)), ["Paris", "Lodz"], ["World", "East"], [2, 1]),
        (Hierarchy.from_settings(yaml.safe_load(TREE)), ["Paris"] * 2, ["France", "Europe"], [2, 2]),
        (Hierarchy.intervals([5, 10]), [21, 38, None], ["[20, 24]", "[35, 39]", "missing"], [1, 1, 1]),
        (Hierarchy.intervals([0.5, 1.0]), [0.25, 1.75], ["[0.0, 0.5)", "[1.0, 2.0)"], [1, 1]),
        (Hierarchy.dates(["month", "year"]), [dt.date(2020, 1, 1), dt.date(2021, 5, 1)], ["2020-01", "2021"], [1, 1]),
        (Hierarchy.from_mapping({"All": {"a": ["x"], "b": ["y"]}}), ["x", "y", None], ["a", "b", "All"], [1, 1, 3]),
    ],
)
def test_labels_of_levels_that_merge_nobody_in_each_kind(hierarchy, values, released, expected):
    table = pd.DataFrame({"x": pd.Series(values, dtype=object if isinstance(values[0], dt.date) else None)})
    release = pd.DataFrame({"x": released})
    model = ReleaseModel({"x": HierarchyMapping("x", "h")})
    index = CandidateIndex(model, table, release, range(len(values)), hierarchies={"h": hierarchy})
    assert index.sizes(["x"]).tolist() == expected
    found = draw_records(release, model, domain=table, hierarchies={"h": hierarchy})
    assert len(found) == len(release)


def test_a_label_of_another_level_than_the_mask_names_is_refused():
    table, model = pd.DataFrame({"z": ["111", "121"]}), ReleaseModel({"z": HierarchyMapping("z", "h", 1)})
    for label, level in (("111", 1), ("1*", 1), ("11*", 0), ("11*", 2)):
        model = ReleaseModel({"z": HierarchyMapping("z", "h", level)})
        with pytest.raises(
            InvalidTableError, match=r"'z': 1 of its released values \(in 1 rows\) are not nodes of 'h'"
        ):
            CandidateIndex(
                model, table[:1], pd.DataFrame({"z": [label]}), [0], hierarchies={"h": Hierarchy.prefixes([2, 1])}
            )


def test_another_release_with_such_labels_takes_part():
    table = pd.DataFrame({"key": range(4), "zip": ["111", "121", "211", "221"], "age": [20, 20, 30, 30]})
    ours = anonymize(table, quasi_identifiers=["zip", "age"], k=2)
    theirs = pd.DataFrame({"key": range(4), "zip": ["11*", "12*", "21*", "22*"]})
    other = OtherRelease(
        theirs,
        "key",
        ReleaseModel({"zip": HierarchyMapping("zip", "h")}),
        hierarchies={"h": Hierarchy.prefixes([2, 1])},
    )
    alone, together = (assess_reidentification(table, ours, other_releases=each) for each in ((), (other,)))
    key = "max_reidentification_probability"
    assert (alone.scores[key], together.scores[key]) == (0.5, 1.0)


def test_our_own_classes_are_released_as_before():
    table = pd.DataFrame({"z": ["111", "121", "211", "221"] * 2})
    for method in ("lattice", "mondrian"):
        found = anonymize(
            table, quasi_identifiers=["z"], k=2, method=method, hierarchies={"z": Hierarchy.prefixes([2, 1])}
        )
        # The level of two characters says no less than the values, so the values are released.
        assert set(found.table["z"].astype(str)) == {"111", "121", "211", "221"}
        assert np.isclose(found.stats["information_loss"], 0)
