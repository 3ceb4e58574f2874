"""Microaggregation: the candidates are those whose known values somebody in the group has, one by one."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import InvalidSettingError, InvalidTableError, assess_reidentification
from privacy_assets.reidentification import (
    CandidateIndex,
    Exact,
    Microaggregated,
    ReleaseModel,
    WeightedCandidates,
    combine,
)
from tests.examples import examples

JOINT = {name: Microaggregated(name, ["a", "b"]) for name in "ab"}
ALONE = {name: Microaggregated(name, [name]) for name in "ab"}


def aggregated(original, groups):
    """Release means of groups; missing values are left out of them."""
    return original.groupby(np.asarray(groups))[["a", "b"]].transform("mean").assign(c=original["c"])


def fits(x, i, original, released, truth, groups_of_columns, known):
    for together in groups_of_columns:
        asked = [name for name in together if name in known]
        alike = [
            r for r in range(len(released)) if released.loc[r, list(together)].equals(released.loc[i, list(together)])
        ]
        if not any(original.loc[truth[r], asked].equals(original.loc[x, asked]) for r in alike):
            return False
    return "c" not in known or original.loc[x, "c"] == released.loc[i, "c"]


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 1.0, 2.0, 5.0, None]), st.sampled_from([0.0, 1.0, 7.0]), st.integers(0, 1)),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
    st.sampled_from([["a"], ["b"], ["a", "b"], ["b", "c", "a"], ["c"]]),
    st.data(),
)
@settings(max_examples=examples(100), deadline=None)
def test_candidates_are_those_of_the_group(rows, is_joint, known, data):
    original = pd.DataFrame(rows, columns=["a", "b", "c"]).astype({"a": float, "b": float})
    groups = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    truth = data.draw(st.permutations(range(len(rows))))[: data.draw(st.integers(1, len(rows)))]
    released = aggregated(original, groups).iloc[truth].reset_index(drop=True)
    model = ReleaseModel((JOINT if is_joint else ALONE) | {"c": Exact("c")})
    again = ReleaseModel.from_json(json.loads(json.dumps(model.to_json())))
    assert again == model
    index = CandidateIndex(again, original, released, list(truth), n_threads=1)
    columns = [("a", "b")] if is_joint else [("a",), ("b",)]
    asked = [own for own in columns if set(own) & set(known)]
    for i in range(len(released)):
        expected = [x for x in range(len(original)) if fits(x, i, original, released, truth, asked, known)]
        assert index.members(i, known).tolist() == expected
        assert index.sizes(known)[i] == len(expected)
        assert truth[i] in expected


def test_groups_of_three_protect_together_and_not_apart():
    """Each column alone has groups of three, which cross; over joint groups nobody has fewer than three."""
    cells = np.arange(9)
    original = pd.DataFrame({"a": cells.astype(float), "b": (cells % 3 * 3 + cells // 3).astype(float)})
    apart = original.apply(lambda column: column.groupby(column.rank(method="first").sub(1) // 3).transform("mean"))
    found = assess_reidentification(original, apart, ReleaseModel(ALONE), truth=range(9), known=[["a"], ["a", "b"]])
    assert found.figures(["a"])["fewest_candidates"] == 3
    assert found.figures(["a", "b"])["max_reidentification_probability"] == 1
    joint = original.groupby(cells // 3).transform("mean")
    found = assess_reidentification(original, joint, ReleaseModel(JOINT), truth=range(9), known=[["a"], ["a", "b"]])
    assert found.figures(["a", "b"])["fewest_candidates"] == 3


def test_releases_in_another_order_are_combined():
    original = pd.DataFrame({"key": range(4), "a": [0.0, 1, 2, 3], "b": [0.0, 1, 2, 3]})

    def index(groups, order):
        released = original[["a", "b"]].groupby(np.asarray(groups)).transform("mean").assign(key=range(4))
        released = released.iloc[order].reset_index(drop=True)
        return CandidateIndex(ReleaseModel(JOINT), original, released, "key", keys=["key"], n_threads=1)

    both = combine([index([0, 0, 1, 1], [0, 1, 2, 3]), index([0, 1, 1, 1], [3, 1, 0, 2])], "key")
    assert both.sizes(["a"]).tolist() == [1, 1, 2, 2]
    assert both.members(3, ["a", "b"]).tolist() == [2, 3]


def test_what_it_does_not_take_is_refused():
    table = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, 1.0]})
    index = CandidateIndex(ReleaseModel(JOINT), table, table, range(2), n_threads=1)
    for make in (
        lambda: WeightedCandidates.of_index(index),
        lambda: WeightedCandidates(ReleaseModel(JOINT), table, table, range(2)),
    ):
        with pytest.raises(InvalidSettingError, match="has microaggregated columns"):
            make()
    for masks, wrong in (
        ({"a": Microaggregated("a", ["b"]), "b": ALONE["b"]}, r"\['a'\]"),
        ({"a": Microaggregated("a", ["a", "b", "a"]), "b": JOINT["b"]}, r"\['a'\]"),
        ({"a": JOINT["a"], "b": ALONE["b"]}, r"\['a'\]"),
        ({"a": JOINT["a"], "b": Exact("b")}, r"\['a'\]"),
        ({"a": JOINT["a"]}, r"\['a'\]"),
    ):
        with pytest.raises(InvalidSettingError, match=f"that {wrong} were aggregated together with do not agree"):
            CandidateIndex(ReleaseModel(masks), table, table, range(2))
    with pytest.raises(InvalidTableError, match=r"The release lacks the columns \['z'\]"):
        CandidateIndex(ReleaseModel(JOINT | {"a": Microaggregated("a", ["a", "z"])}), table, table, range(2))
